//! Assembly text shared by the instruction sets.
//!
//! The assembler's own `.irp name,values` repeats lines with each value in turn put in place of `\name`; kernels
//! are written as one access and expanded over bursts, lines and parts of lines.

/// The instructions `$op`, in turn, for each part (offset in a line) of each line (offset in a burst). They use `\line` and `\part`,
/// and `\burst`, which the loop around them counts.
macro_rules! each {
    ($lines:literal, $parts:literal, $($op:expr),+) => {
        concat!(".irp line,", $lines, "\n.irp part,", $parts, "\n", $($op, "\n",)+ ".endr\n.endr\n")
    };
}
