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
    (parts) => { "0,16,32,48" };
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
    (parts) => { "0,32" };
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
    (parts) => { "0" };
    (slots) => { "1" };
    (register) => { "zmm" };
    (mov) => { "vmovdqa64 " };
    (nt_mov) => { "vmovntdq " };
    (add) => { "vpaddd zmm0, zmm0, " };
    (xor) => { "vpxorq zmm\\slot, zmm\\slot, " };
    (clean) => { "vzeroupper\n" };
}

/// Loads from the address `$place` to register 0.
macro_rules! load_part {
    ($width:ident, $place:expr) => {
        concat!($width!(mov), $width!(register), "0, [", $place, "]")
    };
}

/// Stores register 0, which was loaded, by `$mov` to the address `$place`.
macro_rules! store_loaded {
    ($width:ident, $mov:ident, $place:expr) => {
        concat!($width!($mov), "[", $place, "], ", $width!(register), "0")
    };
}

/// The address, from `$place` on, of the slot that is counted.
macro_rules! slot_at {
    ($width:ident, $place:expr) => {
        concat!("[", $place, " + ", $width!(bytes), " * \\slot - ", $width!(bytes), "]")
    };
}

/// The instruction `$op` for each slot.
macro_rules! slots {
    ($width:ident, $op:expr) => {
        concat!(".irp slot,", $width!(slots), "\n", $op, "\n.endr\n")
    };
}

/// Loads the line at `$place` to the slots.
macro_rules! load_slots {
    ($width:ident, $place:expr) => {
        slots!($width, concat!($width!(mov), $width!(register), "\\slot, ", slot_at!($width, $place)))
    };
}

/// Stores the slots by `$mov` to the line at `$place`.
macro_rules! store_slots {
    ($width:ident, $mov:ident, $place:expr) => {
        slots!($width, concat!($width!($mov), slot_at!($width, $place), ", ", $width!(register), "\\slot"))
    };
}

/// The place in stream `$s`, of which a burst has `$bytes` bytes, of the line and burst that are counted.
macro_rules! line_at {
    ($s:literal, $bytes:literal) => {
        concat!("{", $s, "} + ", $bytes, " * \\burst + \\line")
    };
}

/// The same, of the part of a line that is counted.
macro_rules! part_at {
    ($s:literal, $bytes:literal) => {
        concat!(line_at!($s, $bytes), " + \\part")
    };
}

/// Loads lines of stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! load_lines {
    ($width:ident, $lines:literal, $s:literal, $bytes:literal) => {
        each!($lines, $width!(parts), load_part!($width, part_at!($s, $bytes)))
    };
}

/// Stores lines of stream `$s`, of which a burst has `$bytes` bytes, by `$mov`; `$then` comes after each.
macro_rules! store_lines {
    ($width:ident, $mov:ident, $lines:literal, $s:literal, $bytes:literal $(, $then:expr)?) => {
        lines!($lines, store_slots!($width, $mov, line_at!($s, $bytes)) $(, $then)?)
    };
}

/// The step from one burst, or step, to the next: `fixed` for loops whose bursts name their place in the step, `own` where the text of
/// the burst moves on by itself.
macro_rules! advance {
    (fixed, $s:ident, $bytes:expr) => {
        concat!("add {", stringify!($s), "}, ", $bytes)
    };
    (own, $s:ident, $bytes:expr) => {
        ""
    };
}

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst;
/// `finish` comes after the loop, and before `clean`. The slots begin with the line at the operand `{line}`.
macro_rules! kernel {
    ($name:expr, $mix:ident, $width:ident, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident = $index:literal $access:ident $bytes:tt),+], advance $advance:ident,
     burst $burst:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {
        framed!($name, $mix, $width!(width), $supported, form $order $use of $touched, streams [$($s = $index $access $bytes),+],
            operands($walk) [$($operand)*],
            run [
                "test {n}, {n}",
                "jz 3f",
                load_slots!($width, "{line}"),
                ".p2align 6",
                "2:",
                ".irp burst,0,1,2,3",
                $burst,
                ".endr",
                $(advance!($advance, $s, concat!("4 * ", $bytes)),)+
                "sub {n}, 1",
                "jnz 2b",
                concat!($finish, $width!(clean)),
                "3:",
            ],
            paced [
                "test {n}, {n}",
                "jz 5f",
                load_slots!($width, "{line}"),
                ".p2align 6",
                "2:",
                ".irp burst,0",
                $burst,
                ".endr",
                $(advance!($advance, $s, $bytes),)+
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
                // Adds 0, after the chain: the next burst has no address before.
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
