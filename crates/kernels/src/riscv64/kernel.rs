//! riscv64: the frame of every kernel.

/// `$op` (`ld` or `sd`) between the registers from which lines are stored and the line at a pointer, or an offset from it.
#[rustfmt::skip] // It would put every word on a line of its own.
macro_rules! line_by {
    ($op:literal, $pointer:expr) => {
        line_by!($op, "0", $pointer)
    };
    ($op:literal, $offset:expr, $pointer:expr) => {
        concat!(
            $op, " t1, ", $offset, "(", $pointer, ")\n", $op, " t2, ", $offset, " + 8(", $pointer, ")\n",
            $op, " t3, ", $offset, " + 16(", $pointer, ")\n", $op, " t4, ", $offset, " + 24(", $pointer, ")\n",
            $op, " t5, ", $offset, " + 32(", $pointer, ")\n", $op, " t6, ", $offset, " + 40(", $pointer, ")\n",
            $op, " a6, ", $offset, " + 48(", $pointer, ")\n", $op, " a7, ", $offset, " + 56(", $pointer, ")\n"
        )
    };
}

/// The step from one burst, or step, to the next: `fixed` for loops whose bursts name their place in the step, `own` where the text of
/// the burst moves on by itself.
macro_rules! advance {
    (fixed, $s:ident, $bytes:expr) => {
        concat!("addi {", stringify!($s), "}, {", stringify!($s), "}, ", $bytes)
    };
    (own, $s:ident, $bytes:expr) => {
        ""
    };
}

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst.
///
/// Loads go to `t0`; `t1` to `t6`, `a6` and `a7` hold the line at the operand `{line}`, which is stored. `finish` comes after the loop.
macro_rules! kernel {
    // Whole lines, one after the other.
    ($name:literal, $mix:ident, streams $streams:tt, burst $burst:expr) => {
        kernel!($name, $mix, Scalar, || true, form Sequential Whole of LINE, streams $streams, advance fixed,
            burst $burst, finish "", operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),])
    };
    ($name:literal, $mix:ident, $width:ident, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident = $index:literal $access:ident $bytes:tt),+], advance $advance:ident,
     burst $burst:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {
        framed!($name, $mix, Width::$width, $supported, form $order $use of $touched, streams [$($s = $index $access $bytes),+],
            operands($walk) [$($operand)*],
            run [
                "beqz {n}, 3f",
                line_by!("ld", "{line}"),
                "2:",
                ".irp burst,0,1,2,3",
                $burst,
                ".endr",
                $(advance!($advance, $s, concat!("4 * ", $bytes)),)+
                "addi {n}, {n}, -1",
                "bnez {n}, 2b",
                $finish,
                "3:",
            ],
            paced [
                "beqz {n}, 5f",
                line_by!("ld", "{line}"),
                "2:",
                ".irp burst,0",
                $burst,
                ".endr",
                $(advance!($advance, $s, $bytes),)+
                // The count is 0 here, by the chain before: this delay starts when that one has ended.
                "add {count}, {count}, {delay}",
                "beqz {count}, 4f",
                // Two instructions of at most 8 bytes in all, which so never cross what a core fetches or decodes at once.
                ".p2align 3",
                "3:",
                "sub {count}, {count}, {one}",
                "bnez {count}, 3b",
                "4:",
                // Adds 0, after the chain: the next burst has no address before.
                $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, {count}"),)+
                "addi {n}, {n}, -1",
                "bnez {n}, 2b",
                $finish,
                "5:",
            ],
            overwrites [
                out("t0") _, out("t1") _, out("t2") _, out("t3") _, out("t4") _, out("t5") _, out("t6") _, out("a6") _, out("a7") _,
            ])
    };
}

/// The eight words of each line.
macro_rules! words {
    ($lines:literal, $($op:expr),+) => { each!($lines, "0,8,16,24,32,40,48,56", $($op),+) };
}

/// `$op` between a register and stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! access {
    ($op:literal, $s:literal, $bytes:literal) => {
        concat!($op, ", ", $bytes, " * \\burst + \\line + \\part({", $s, "})")
    };
}

/// Stores lines of stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! store_lines {
    ($lines:literal, $s:literal, $bytes:literal) => {
        lines!($lines, line_by!("sd", concat!($bytes, " * \\burst + \\line"), concat!("{", $s, "}")))
    };
}
