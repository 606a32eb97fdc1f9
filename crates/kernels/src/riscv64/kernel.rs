//! riscv64: the frame of every kernel.

/// Hands all mixes but those with non-temporal stores on to `$mixes`.
macro_rules! plain_mixes {
    ($to:tt $mix:ident NonTemporal $($row:tt)+) => { &[] };
    (($mixes:ident $to:tt) $($row:tt)+) => { $mixes!($to $($row)+) };
}

/// An operation on the word `$word` of the line at `$offset` from `$pointer`: loads go to `t0`, and the register `$register` holds that word of
/// the line that is stored.
macro_rules! operation {
    (Load $offset:expr, $pointer:expr, $word:literal $register:literal) => {
        concat!("ld t0, ", $offset, $word, "(", $pointer, ")\n")
    };
    (Store $offset:expr, $pointer:expr, $word:literal $register:literal) => {
        concat!("sd ", $register, ", ", $offset, $word, "(", $pointer, ")\n")
    };
    (StoreLoaded $offset:expr, $pointer:expr, $word:literal $register:literal) => {
        concat!("sd t0, ", $offset, $word, "(", $pointer, ")\n")
    };
    // Of the frame: the line that will be stored.
    (LoadStored $offset:expr, $pointer:expr, $word:literal $register:literal) => {
        concat!("ld ", $register, ", ", $offset, $word, "(", $pointer, ")\n")
    };
    // Of checksums.
    (Xor $offset:expr, $pointer:expr, $word:literal $register:literal) => {
        concat!("ld t0, ", $offset, $word, "(", $pointer, ")\n xor ", $register, ", ", $register, ", t0\n")
    };
}

/// Operations on the lines at these places, word by word. A place is an offset and the pointer's operand.
macro_rules! whole {
    ($($operation:ident $offset:expr, $pointer:expr);+) => {
        concat!(
            $(operation!($operation $offset, $pointer, " + 0" "t1"),)+
            $(operation!($operation $offset, $pointer, " + 8" "t2"),)+
            $(operation!($operation $offset, $pointer, " + 16" "t3"),)+
            $(operation!($operation $offset, $pointer, " + 24" "t4"),)+
            $(operation!($operation $offset, $pointer, " + 32" "t5"),)+
            $(operation!($operation $offset, $pointer, " + 40" "t6"),)+
            $(operation!($operation $offset, $pointer, " + 48" "a6"),)+
            $(operation!($operation $offset, $pointer, " + 56" "a7")),+
        )
    };
}

/// The offset of the counted line in a stream. A chunk has `$lines` there. Pointers move on after each step, and the text names the chunk
/// (`fixed`), or they move on after each chunk (`own`).
macro_rules! offset {
    (fixed $lines:tt) => {
        concat!("\\line + ", bytes!($lines), " * \\chunk")
    };
    (own $lines:tt) => {
        "\\line"
    };
}

/// A step of a chunk over lines one after the other.
macro_rules! step {
    ($advance:ident, $($operation:ident $s:ident),+ at $lines:tt) => {
        lines!($lines, whole!($($operation offset!($advance $lines), concat!("{", stringify!($s), "}"));+))
    };
}

/// Moves the pointers of these streams on by `$n` chunks.
macro_rules! advance {
    ($n:literal, $($s:ident $lines:tt),+) => {
        concat!($("addi {", stringify!($s), "}, {", stringify!($s), "}, ", $n, " * ", bytes!($lines), "\n"),+)
    };
}

/// A kernel that visits every line, one after the other, from the text of its chunk and what that does in each stream.
macro_rules! in_order {
    ($name:expr, $mix:ident, $use:ident, own, [$($operation:ident $s:ident $lines:tt),+],
     chunk $chunk:expr, finish $finish:expr, line($walk:ident) $line:expr) => {
        kernel!($name, $mix, form Sequential $use of LINE, streams [$($s stream!($operation $lines, LINE)),+],
            advance ["", ""], chunk concat!($chunk, advance!(1, $($s $lines),+)), finish $finish, operands($walk) [line = in(reg) $line,])
    };
    ($name:expr, $mix:ident, $use:ident, fixed, [$($operation:ident $s:ident $lines:tt),+],
     chunk $chunk:expr, finish $finish:expr, line($walk:ident) $line:expr) => {
        kernel!($name, $mix, form Sequential $use of LINE, streams [$($s stream!($operation $lines, LINE)),+],
            advance [advance!(4, $($s $lines),+), advance!(1, $($s $lines),+)],
            chunk $chunk, finish $finish, operands($walk) [line = in(reg) $line,])
    };
}

/// A kernel from the text of its chunk. `streams` gives each stream's operand name and its traffic, `advance` the texts by which pointers
/// move on after a step and after a chunk.
///
/// `t1` to `t6`, `a6` and `a7` begin with the line at the operand `{line}`. `finish` comes after the loop.
macro_rules! kernel {
    ($name:expr, $mix:ident, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident $stream:expr),+], advance [$step:expr, $chunk_by_chunk:expr],
     chunk $chunk:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {
        framed!($name, $mix, Width::Scalar, || true, form $order $use of $touched, streams [$($s $stream),+],
            operands($walk) [$($operand)*],
            run [
                "beqz {n}, 3f",
                whole!(LoadStored "0", "{line}"),
                "2:",
                ".irp chunk,0,1,2,3",
                $chunk,
                ".endr",
                $step,
                "addi {n}, {n}, -1",
                "bnez {n}, 2b",
                $finish,
                "3:",
            ],
            paced [
                "beqz {n}, 5f",
                whole!(LoadStored "0", "{line}"),
                "2:",
                ".irp chunk,0",
                $chunk,
                ".endr",
                $chunk_by_chunk,
                // The count is 0 here, by the chain before: this delay starts when that one has ended.
                "add {count}, {count}, {delay}",
                "beqz {count}, 4f",
                // Two instructions of at most 8 bytes in all, which so never cross what a core fetches or decodes at once.
                ".p2align 3",
                "3:",
                "sub {count}, {count}, {one}",
                "bnez {count}, 3b",
                "4:",
                // Adds 0, after the chain: the next chunk has no address before.
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
