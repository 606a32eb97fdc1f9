//! Loops that the compiler makes vector instructions of, compiled for wider registers than those that every CPU of the instruction set has.

/// Work that [`with_wide_registers`](crate::with_wide_registers) runs.
pub trait Wide {
    /// The result of the work.
    type Output;

    /// Does the work. This and all that its loops call are `#[inline(always)]`: other functions are compiled for the CPUs that have least.
    fn run(self) -> Self::Output;
}
