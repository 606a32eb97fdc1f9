//! The registers that switch prefetchers, changed so that they are always restored: they are saved in a journal first, then written, read
//! back, and restored at the end.
//!
//! A change is undone by the run itself, by its [`Guardian`] when the run was killed, by the next run that finds the journal, or by
//! `memgauge prefetch restore`. A boot resets the registers, and makes the journal void.

mod change;
mod guardian;
mod journal;
mod msr;
mod registers;

pub use change::PrefetchChange;
pub use guardian::{Guardian, run_guardian};
pub use journal::{ChangeKind, JournalError};
pub use msr::{MSR_DEVICES, Msr, MsrError, MsrFault};
pub use registers::{JOURNALS, Leftover, PrefetchError, PrefetchRegisters};
