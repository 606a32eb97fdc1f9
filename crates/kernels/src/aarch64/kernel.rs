//! aarch64: the frame of every kernel.

/// An operation on a half of the line at `$place`, a pair of registers.
///
/// Loads go to `q0` and `q1`, those that are added to `q2` and `q3`; `q4` to `q7` hold the line that is stored.
macro_rules! operation {
    ($half:ident Load $place:expr) => { concat!("ldp q0, q1, ", half!($half $place)) };
    ($half:ident Add $place:expr) => {
        concat!("ldp q2, q3, ", half!($half $place), "add v0.4s, v0.4s, v2.4s\n add v1.4s, v1.4s, v3.4s\n")
    };
    (first Store $place:expr) => { concat!("stp q4, q5, ", half!(first $place)) };
    (second Store $place:expr) => { concat!("stp q6, q7, ", half!(second $place)) };
    (first NtStore $place:expr) => { concat!("stnp q4, q5, ", half!(first $place)) };
    (second NtStore $place:expr) => { concat!("stnp q6, q7, ", half!(second $place)) };
    ($half:ident StoreLoaded $place:expr) => { concat!("stp q0, q1, ", half!($half $place)) };
    ($half:ident NtStoreLoaded $place:expr) => { concat!("stnp q0, q1, ", half!($half $place)) };
}

/// The address of a half of the line at `$place`.
macro_rules! half {
    (first $place:expr) => {
        concat!("[", $place, "]\n")
    };
    (second $place:expr) => {
        concat!("[", $place, " + 32]\n")
    };
}

/// Operations on the lines at these places, half by half.
macro_rules! whole {
    ($($operation:ident $place:expr),+) => {
        concat!($(operation!(first $operation $place),)+ $(operation!(second $operation $place)),+)
    };
}

/// The counted line in stream `$s`. A chunk has `$lines` there. Pointers move on after each step, and the text names the chunk (`fixed`), or
/// they move on after each chunk (`own`).
macro_rules! place {
    (fixed $s:ident $lines:tt) => {
        concat!("{", stringify!($s), "}, #", bytes!($lines), " * \\chunk + \\line")
    };
    (own $s:ident $lines:tt) => {
        concat!("{", stringify!($s), "}, #\\line")
    };
}

/// A step of a chunk over lines one after the other. Stores to several streams alternate line by line, everything else half by half.
macro_rules! step {
    ($advance:ident, $(Store $s:ident),+ at $lines:tt) => {
        lines!($lines, $(whole!(Store place!($advance $s $lines))),+)
    };
    ($advance:ident, $($operation:ident $s:ident),+ at $lines:tt) => {
        lines!($lines, whole!($($operation place!($advance $s $lines)),+))
    };
}

/// Moves the pointers of these streams on by `$n` chunks.
macro_rules! advance {
    ($n:literal, $($s:ident $lines:tt),+) => {
        concat!($("add {", stringify!($s), "}, {", stringify!($s), "}, #", $n, " * ", bytes!($lines), "\n"),+)
    };
}

/// A kernel that visits every line, one after the other, from the text of its chunk and what that does in each stream. NEON is part of every
/// aarch64 Linux.
macro_rules! in_order {
    ($name:expr, $mix:ident, $use:ident, own, [$($operation:ident $s:ident $lines:tt),+],
     chunk $chunk:expr, finish $finish:expr, line($walk:ident) $line:expr) => {
        kernel!($name, $mix, Neon, || true, form Sequential $use of LINE, streams [$($s stream!($operation $lines, LINE)),+],
            advance ["", ""], chunk concat!($chunk, advance!(1, $($s $lines),+)), finish $finish, operands($walk) [line = in(reg) $line,])
    };
    ($name:expr, $mix:ident, $use:ident, fixed, [$($operation:ident $s:ident $lines:tt),+],
     chunk $chunk:expr, finish $finish:expr, line($walk:ident) $line:expr) => {
        kernel!($name, $mix, Neon, || true, form Sequential $use of LINE, streams [$($s stream!($operation $lines, LINE)),+],
            advance [advance!(4, $($s $lines),+), advance!(1, $($s $lines),+)],
            chunk $chunk, finish $finish, operands($walk) [line = in(reg) $line,])
    };
}

/// A kernel from the text of its chunk. `streams` gives each stream's operand name and its traffic, `advance` the texts by which pointers
/// move on after a step and after a chunk.
///
/// `q4` to `q7` begin with the line at the operand `{line}`; `x9` is free for addresses. `finish` comes after the loop.
macro_rules! kernel {
    ($name:expr, $mix:ident, $width:ident, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident $stream:expr),+], advance [$step:expr, $chunk_by_chunk:expr],
     chunk $chunk:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {
        framed!($name, $mix, Width::$width, $supported, form $order $use of $touched, streams [$($s $stream),+],
            operands($walk) [$($operand)*],
            run [
                "cbz {n}, 3f",
                "ldp q4, q5, [{line}]",
                "ldp q6, q7, [{line}, #32]",
                ".p2align 6",
                "2:",
                ".irp chunk,0,1,2,3",
                $chunk,
                ".endr",
                $step,
                "subs {n}, {n}, #1",
                "b.ne 2b",
                $finish,
                "3:",
            ],
            paced [
                "cbz {n}, 5f",
                "ldp q4, q5, [{line}]",
                "ldp q6, q7, [{line}, #32]",
                ".p2align 6",
                "2:",
                ".irp chunk,0",
                $chunk,
                ".endr",
                $chunk_by_chunk,
                // The count is 0 here, by the chain before: this delay starts when that one has ended.
                "adds {count}, {count}, {delay}",
                "b.eq 4f",
                // Two instructions of at most 8 bytes in all, which so never cross what a core fetches or decodes at once.
                ".p2align 3",
                "3:",
                "subs {count}, {count}, {one}",
                "b.ne 3b",
                "4:",
                // Adds 0, after the chain: the next chunk has no address before.
                $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, {count}"),)+
                "subs {n}, {n}, {one}",
                "b.ne 2b",
                $finish,
                "5:",
            ],
            overwrites [
                out("x9") _, out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            ])
    };
}
