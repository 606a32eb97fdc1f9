//! Windows' answers about CPUs, nodes and memory. They are parsed on every system, and asked for on Windows.

#[cfg(windows)]
mod asked;
mod inputs;
#[cfg(windows)]
mod node_totals;
mod records;

#[cfg(windows)]
pub(crate) use asked::{active_cpus, ask, available_on, highest_node, memory_status};
pub use inputs::{Answers, NodeMemory};
pub(crate) use records::{CacheKind, CacheRecord, Record, parse};
#[cfg(windows)]
pub(crate) use records::{GROUP_CPUS, ids_in};
