//! Loops that the compiler makes vector instructions of, compiled for wider registers than those that every CPU of the instruction set has.

/// What [`with_wide_registers`](crate::with_wide_registers) runs.
pub trait Wide {
    /// What comes of it.
    type Output;

    /// Does it. This and all that its loops call are `#[inline(always)]`: what is not is compiled for the CPUs that have least.
    fn run(self) -> Self::Output;
}
