//! aarch64: the frame of every kernel.

/// The place in stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! at {
    ($s:literal, $bytes:literal) => {
        concat!("[{", $s, "}, #", $bytes, " * \\burst + \\line + \\part]")
    };
}

/// The step from one burst, or step, to the next: `fixed` for loops whose bursts name their place in the step, `own` where the text of
/// the burst moves on by itself.
macro_rules! advance {
    (fixed, $s:ident, $bytes:expr) => {
        concat!("add {", stringify!($s), "}, {", stringify!($s), "}, #", $bytes)
    };
    (own, $s:ident, $bytes:expr) => {
        ""
    };
}

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst.
///
/// Loads go to `q0` and `q1`, a second stream's to `q2` and `q3`; `q4` to `q7` hold the line at the operand `{line}`, which is stored;
/// `x9` is free for addresses. `finish` comes after the loop.
macro_rules! kernel {
    // Whole lines, one after the other. NEON is part of every aarch64 Linux.
    ($name:literal, $mix:ident, streams $streams:tt, burst $burst:expr) => {
        kernel!($name, $mix, Neon, || true, streams $streams, advance fixed, burst $burst)
    };
    ($name:literal, $mix:ident, streams $streams:tt, advance $advance:ident, burst $burst:expr) => {
        kernel!($name, $mix, Neon, || true, streams $streams, advance $advance, burst $burst)
    };
    ($name:literal, $mix:ident, $width:ident, $supported:expr, streams $streams:tt, advance $advance:ident, burst $burst:expr) => {
        kernel!($name, $mix, $width, $supported, form Sequential Whole of LINE, streams $streams, advance $advance,
            burst $burst, finish "", operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),])
    };
    ($name:literal, $mix:ident, $width:ident, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident = $index:literal $access:ident $bytes:tt),+], advance $advance:ident,
     burst $burst:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {
        framed!($name, $mix, Width::$width, $supported, form $order $use of $touched, streams [$($s = $index $access $bytes),+],
            operands($walk) [$($operand)*],
            run [
                "cbz {n}, 3f",
                "ldp q4, q5, [{line}]",
                "ldp q6, q7, [{line}, #32]",
                ".p2align 6",
                "2:",
                ".irp burst,0,1,2,3",
                $burst,
                ".endr",
                $(advance!($advance, $s, concat!("4 * ", $bytes)),)+
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
                ".irp burst,0",
                $burst,
                ".endr",
                $(advance!($advance, $s, $bytes),)+
                // The count is 0 here, by the chain before: this delay starts when that one has ended.
                "adds {count}, {count}, {delay}",
                "b.eq 4f",
                // Two instructions of at most 8 bytes in all, which so never cross what a core fetches or decodes at once.
                ".p2align 3",
                "3:",
                "subs {count}, {count}, {one}",
                "b.ne 3b",
                "4:",
                // Adds 0, after the chain: the next burst has no address before.
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

/// Offsets of the two pairs in a line.
macro_rules! pairs {
    ($lines:literal, $($op:expr),+) => { each!($lines, "0,32", $($op),+) };
}

/// Loads a pair from stream `$s`.
macro_rules! ldp {
    ($s:literal, $bytes:literal) => {
        concat!("ldp q0, q1, ", at!($s, $bytes))
    };
}

/// Stores, by `$op`, lines of stream `$s`.
macro_rules! store_lines {
    ($op:literal, $lines:literal, $s:literal, $bytes:literal) => {
        lines!(
            $lines,
            concat!($op, " q4, q5, [{", $s, "}, #", $bytes, " * \\burst + \\line]"),
            concat!($op, " q6, q7, [{", $s, "}, #", $bytes, " * \\burst + \\line + 32]")
        )
    };
}
