//! Hardware prefetchers: the registers that control them, and a guard that switches them during a run.

pub(crate) mod guard;
pub(crate) mod registers;
