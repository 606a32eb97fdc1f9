//! Hardware counters through `perf_event_open(2)`: the events that this machine has ([`Catalogue`]), and counters that are open for a
//! thread, a program or the machine ([`OpenCounters`]).
//!
//! Events are opened in groups. The kernel counts all events of a group at the same time, or none of them. When a core has too few counters
//! for all groups, the groups take turns, and each reading has the time in which its event was enabled and the time in which it was counted.

mod catalogue;
mod events;
mod open;
mod perf_event;
mod pmu;

pub use catalogue::{Catalogue, EncodedEvent, EventSet};
pub use events::counts_nanoseconds;
pub use open::{OpenCounters, join_counts};
pub use perf_event::{CounterError, Reading};

/// Advice for a machine without counters.
pub const NO_PMU: &str = "use an instance type with a virtual PMU or bare metal, or switch the guest's PMU on";
/// Advice for a machine that has counters, if this process may not use them.
pub const WITHHELD: &str = "see kernel.perf_event_paranoid, CAP_PERFMON and the container's filter of system calls";
