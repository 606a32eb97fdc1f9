//! x86-64: the widths of vector registers, and the frame of every vector kernel.
//!
//! Each width is a macro that answers by name: `$width!(mov)` is its move instruction. Register 0 takes what is loaded. Registers 1, 2 …
//! hold the line that is stored: they are the line's slots, and slot n is stored to part n of a line.
//!
//! A kernel uses vector instructions of its width only, so the upper halves of registers never have to be merged. `clean` zeroes them at
//! the end; without it, later SSE code would be slow.

/// 128 bits: part of every x86-64.
#[rustfmt::skip] // It would put every word on three lines.
macro_rules! sse2 {
    (name) => { "sse2" };
    (width) => { Width::Sse2 };
    (supported) => { || true };
    (bytes) => { 16 };
    (slots) => { "1,2,3,4" };
    (register) => { "xmm" };
    (mov) => { "movdqa " };
    (nt_mov) => { "movntdq " };
    (add) => { "paddd xmm0, " };
    (xor) => { "pxor xmm\\slot, " };
    (clean) => { "" };
}

/// 256 bits. The detection includes that the operating system saves the registers.
#[rustfmt::skip]
macro_rules! avx2 {
    (name) => { "avx2" };
    (width) => { Width::Avx2 };
    (supported) => { || std::arch::is_x86_feature_detected!("avx2") };
    (bytes) => { 32 };
    (slots) => { "1,2" };
    (register) => { "ymm" };
    (mov) => { "vmovdqa " };
    (nt_mov) => { "vmovntdq " };
    (add) => { "vpaddd ymm0, ymm0, " };
    (xor) => { "vpxor ymm\\slot, ymm\\slot, " };
    (clean) => { "vzeroupper\n" };
}

/// 512 bits: a whole line.
#[rustfmt::skip]
macro_rules! avx512 {
    (name) => { "avx512" };
    (width) => { Width::Avx512 };
    (supported) => { || std::arch::is_x86_feature_detected!("avx512f") };
    (bytes) => { 64 };
    (slots) => { "1" };
    (register) => { "zmm" };
    (mov) => { "vmovdqa64 " };
    (nt_mov) => { "vmovntdq " };
    (add) => { "vpaddd zmm0, zmm0, " };
    (xor) => { "vpxorq zmm\\slot, zmm\\slot, " };
    (clean) => { "vzeroupper\n" };
}

/// The address of the part, of the line at `$place`, that goes with the slot that is counted.
macro_rules! part {
    ($width:ident, $place:expr) => {
        concat!("[", $place, " + ", $width!(bytes), " * \\slot - ", $width!(bytes), "]")
    };
}

/// The instructions `$op`, in turn, for each slot.
macro_rules! slots {
    ($width:ident, $($op:expr),+) => {
        concat!(".irp slot,", $width!(slots), "\n", $($op, "\n",)+ ".endr\n")
    };
}

/// An operation on the part of a line at the address `$part`.
macro_rules! operation {
    ($width:ident, Load $part:expr) => {
        concat!($width!(mov), $width!(register), "0, ", $part)
    };
    ($width:ident, Add $part:expr) => {
        concat!($width!(add), $part)
    };
    ($width:ident, Store $part:expr) => {
        concat!($width!(mov), $part, ", ", $width!(register), "\\slot")
    };
    ($width:ident, NtStore $part:expr) => {
        concat!($width!(nt_mov), $part, ", ", $width!(register), "\\slot")
    };
    ($width:ident, StoreLoaded $part:expr) => {
        concat!($width!(mov), $part, ", ", $width!(register), "0")
    };
    ($width:ident, NtStoreLoaded $part:expr) => {
        concat!($width!(nt_mov), $part, ", ", $width!(register), "0")
    };
}

/// Operations on the lines at these places, part by part.
macro_rules! whole {
    ($width:ident, $($operation:ident $place:expr),+) => {
        slots!($width, $(operation!($width, $operation part!($width, $place))),+)
    };
}

/// The end of a run: stores past the caches need a fence, because they are ordered like no other store.
macro_rules! finish {
    (NonTemporal) => {
        "sfence\n"
    };
    ($other:ident) => {
        ""
    };
}

/// A kernel from the text of its chunk. `streams` gives each stream's operand name and its traffic, `advance` the texts by which pointers
/// move on after a step and after a chunk; `finish` comes after the loop, and before `clean`. The slots begin with the line at the operand
/// `{line}`.
macro_rules! kernel {
    ($name:expr, $mix:ident, $width:ident, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident $stream:expr),+], advance [$step:expr, $chunk_by_chunk:expr],
     chunk $chunk:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {
        framed!($name, $mix, $width!(width), $supported, form $order $use of $touched, streams [$($s $stream),+],
            operands($walk) [$($operand)*],
            run [
                "test {n}, {n}",
                "jz 3f",
                slots!($width, concat!($width!(mov), $width!(register), "\\slot, ", part!($width, "{line}"))),
                ".p2align 6",
                "2:",
                ".irp chunk,0,1,2,3",
                $chunk,
                ".endr",
                $step,
                "sub {n}, 1",
                "jnz 2b",
                concat!($finish, $width!(clean)),
                "3:",
            ],
            paced [
                "test {n}, {n}",
                "jz 5f",
                slots!($width, concat!($width!(mov), $width!(register), "\\slot, ", part!($width, "{line}"))),
                ".p2align 6",
                "2:",
                ".irp chunk,0",
                $chunk,
                ".endr",
                $chunk_by_chunk,
                // The count is 0 here, by the chain before: this delay starts when that one has ended.
                "add {count}, {delay}",
                "jz 4f",
                // `sub` of a register, not of a constant, which some cores do in no time (see `dependent_adds`); it fuses with the branch
                // all the same.
                // Two instructions of at most 8 bytes in all, which so never cross what a core fetches or decodes at once.
                ".p2align 3",
                "3:",
                "sub {count}, {one}",
                "jnz 3b",
                "4:",
                // Adds 0, after the chain: the next chunk has no address before.
                $(concat!("add {", stringify!($s), "}, {count}"),)+
                "sub {n}, {one}",
                "jnz 2b",
                concat!($finish, $width!(clean)),
                "5:",
            ],
            overwrites [
                // The names of the 16-byte registers stand for the whole of them.
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            ])
    };
}

/// The counted line and chunk in stream `$s`. A chunk has `$lines` there.
macro_rules! place {
    ($s:ident $lines:tt) => {
        concat!("{", stringify!($s), "} + ", bytes!($lines), " * \\chunk + \\line")
    };
}

/// A step of a chunk over lines one after the other. Stores to several streams alternate line by line, everything else part by part.
macro_rules! step {
    ($width:ident, $(Store $s:ident),+ at $lines:tt) => {
        lines!($lines, $(whole!($width, Store place!($s $lines))),+)
    };
    ($width:ident, $($operation:ident $s:ident),+ at $lines:tt) => {
        lines!($lines, whole!($width, $($operation place!($s $lines)),+))
    };
}

/// Moves the pointers of these streams on by `$n` chunks.
macro_rules! advance {
    ($n:literal, $($s:ident $lines:tt),+) => {
        concat!($("add {", stringify!($s), "}, ", $n, " * ", bytes!($lines), "\n"),+)
    };
}

/// A kernel that visits every line, one after the other, from the text of its chunk and what that does in each stream.
macro_rules! in_order {
    ($name:expr, $mix:ident, $width:ident, $supported:expr, $use:ident, [$($operation:ident $s:ident $lines:tt),+],
     chunk $chunk:expr, finish $finish:expr, line($walk:ident) $line:expr) => {
        kernel!($name, $mix, $width, $supported, form Sequential $use of LINE,
            streams [$($s stream!($operation $lines, LINE)),+],
            advance [advance!(4, $($s $lines),+), advance!(1, $($s $lines),+)],
            chunk $chunk, finish $finish, operands($walk) [line = in(reg) $line,])
    };
}
