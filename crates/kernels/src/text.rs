//! Assembly text shared by the instruction sets.
//!
//! The assembler's own `.irp name,values` repeats lines with each value in turn put in place of `\name`; kernels
//! are written as one access and expanded over bursts, lines and parts of lines.

/// Hops of [`chase`](crate::chase) between two of its branches: every instruction set repeats the load this often.
pub const CHASE_UNROLL: usize = 64;

/// The instructions `$op`, in turn, for each part (offset in a line) of each line (offset in a burst). They use `\line` and `\part`,
/// and `\burst`, which the loop around them counts.
macro_rules! each {
    ($lines:literal, $parts:expr, $($op:expr),+) => {
        concat!(".irp line,", $lines, "\n.irp part,", $parts, "\n", $($op, "\n",)+ ".endr\n.endr\n")
    };
}

/// The instructions `$op`, in turn, for each line (offset in a burst).
macro_rules! lines {
    ($lines:literal, $($op:expr),+) => { concat!(".irp line,", $lines, "\n", $($op, "\n",)+ ".endr\n") };
}

/// The instructions `$op`, in turn, for each part (offset in a line) of one line.
macro_rules! parts {
    ($parts:expr, $($op:expr),+) => { concat!(".irp part,", $parts, "\n", $($op, "\n",)+ ".endr\n") };
}

/// The instructions `$op`, in turn, `$n` times.
macro_rules! times {
    ($n:literal, $($op:expr),+) => { concat!(".rept ", $n, "\n", $($op, "\n",)+ ".endr\n") };
}
