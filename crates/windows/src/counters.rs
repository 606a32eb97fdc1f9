//! Hardware counters: Windows gives programs none. They need a driver, and memgauge brings none, so every event has a reason in place of a
//! count.

use std::convert::Infallible;
use std::path::Path;

use memgauge_model::counters::{Event, EventOutcome, EventTotals};
use memgauge_model::topology::Identity;

/// Advice for a machine without counters.
pub const NO_PMU: &str = "count on Linux on the same machine, or with the maker's own profiler";
/// Advice for a process that may not use the counters.
pub const WITHHELD: &str = NO_PMU;
/// Why nothing is counted.
const WHY: &str = "hardware counters need a driver on Windows, and memgauge brings none";

/// An event with its code. There is none on Windows, and no value of this type.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedEvent {
    /// The event as results show it.
    pub event: Event,
    /// The CPUs to open it on, for events that a unit of the chip counts; empty for events of a thread.
    pub cpus: Vec<u32>,
    _none: Infallible,
}

/// Events in groups that are counted together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventSet {
    /// Events of threads, in groups.
    pub groups: Vec<Vec<EncodedEvent>>,
    /// Events of the memory controllers, one for each controller.
    pub system: Vec<EncodedEvent>,
    /// Events of the mesh, one for each home agent.
    pub mesh: Vec<EncodedEvent>,
    /// Units whose memory traffic the machine does not count, and their descriptions.
    pub uncounted: Vec<String>,
}

impl EventSet {
    /// The traffic that the machine's count of memory traffic leaves out, in words; `None` if nothing is known to be missing.
    pub fn left_out(&self) -> Option<String> {
        (!self.uncounted.is_empty()).then(|| format!("memory traffic of {}", self.uncounted.join(", ")))
    }

    /// Whether some of the events are counted by a unit that one kind of core has.
    pub const fn counts_one_kind_of_core(&self) -> bool {
        false
    }

    /// Every event, in order.
    pub fn events(&self) -> impl Iterator<Item = &EncodedEvent> {
        self.groups.iter().flatten().chain(&self.system)
    }

    /// Divides groups that get no counters on `cpu` into smaller ones that do. Without counters nothing is to be divided.
    #[must_use]
    pub const fn fitted(self, _cpu: u32) -> Self {
        self
    }
}

/// The events of a machine.
#[derive(Debug)]
pub struct Catalogue(());

impl Catalogue {
    /// Reads the events of the machine, for the kind of core that `cpu` is.
    pub const fn read(_root: &Path, _identity: &Identity, _cpu: u32) -> Self {
        Self(())
    }

    /// The events that metrics are computed from.
    ///
    /// # Errors
    /// Always: [`CounterError::NoPmu`].
    pub fn metrics(&self) -> Result<EventSet, CounterError> {
        Err(CounterError::NoPmu(WHY.to_owned()))
    }

    /// The event of this name or code.
    ///
    /// # Errors
    /// Always: there is no such event.
    pub fn named(&self, name: &str) -> Result<EncodedEvent, CounterError> {
        Err(CounterError::Unknown(format!("no event '{name}' here: {WHY}")))
    }

    /// The system's own events that describe the run of a program: Windows has none that follow a program and its children.
    pub const fn software(&self) -> Vec<EncodedEvent> {
        Vec::new()
    }
}

/// What was read from a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Events.
    pub value: u64,
    /// Nanoseconds during which it was enabled.
    pub enabled_ns: u64,
    /// Nanoseconds during which it counted.
    pub running_ns: u64,
}

impl Reading {
    /// The difference from an earlier reading.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.saturating_sub(earlier.value),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }
}

/// Why an event cannot be counted here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// The system gives programs no counters of CPU events.
    #[error("{0}")]
    NoPmu(String),
    /// The machine does not offer the event.
    #[error("is not among the events that this machine offers ({0})")]
    NotHere(&'static str),
    /// The name or code of the event is wrong.
    #[error("{0}")]
    Unknown(String),
}

/// The open counters of a set of events: none.
#[derive(Debug)]
pub struct OpenCounters {
    why: CounterError,
}

impl OpenCounters {
    fn none() -> Self {
        Self { why: CounterError::NoPmu(WHY.to_owned()) }
    }

    /// Opens the thread events of the set for the calling thread: there are none.
    pub fn for_this_thread(_set: &EventSet) -> Self {
        Self::none()
    }

    /// Opens events for the next program that the calling thread starts: there are none.
    pub fn for_program(_groups: &[Vec<EncodedEvent>]) -> Self {
        Self::none()
    }

    /// Opens the memory controller events of the set: there are none.
    pub fn for_system(_set: &EventSet) -> Self {
        Self::none()
    }

    /// Whether only user code is counted.
    pub const fn user_only(&self) -> bool {
        false
    }

    /// Whether any event could be opened.
    pub const fn any_open(&self) -> bool {
        false
    }

    /// Why none is open.
    pub const fn first_error(&self) -> Option<&CounterError> {
        Some(&self.why)
    }

    /// Switches all counters on.
    pub const fn enable(&self) {}

    /// Switches all counters off.
    pub const fn disable(&self) {}

    /// Reads all counters, in the order of the events.
    pub const fn read(&self) -> Vec<Vec<Reading>> {
        Vec::new()
    }

    /// Adds the differences between two readings to the tallies, event by event. A tally without a counter becomes the reason.
    pub fn add(&self, tallies: &mut [Result<EventTotals, String>], _before: &[Vec<Reading>], _after: &[Vec<Reading>]) {
        tallies.fill(Err(self.why.to_string()));
    }
}

/// Whether an event of this name counts nanoseconds. No event of Windows does.
pub const fn counts_nanoseconds(_name: &str) -> bool {
    false
}

/// Joins events with their counts.
pub fn join_counts<'a>(events: impl Iterator<Item = &'a EncodedEvent>, tallies: &[Result<EventTotals, String>]) -> Vec<EventOutcome> {
    events.zip(tallies).map(|(event, tally)| EventOutcome { event: event.event.clone(), outcome: tally.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_count_gives_the_reason() {
        let catalogue = Catalogue::read(Path::new("/"), &Identity::default(), 0);
        assert!(matches!(catalogue.metrics(), Err(CounterError::NoPmu(why)) if why.contains("driver")));
        let unknown = catalogue.named("cycles").unwrap_err().to_string();
        assert!(unknown.contains("'cycles'") && unknown.contains("driver"), "{unknown}");
        let set = EventSet { groups: vec![catalogue.software()], ..EventSet::default() }.fitted(0);
        assert_eq!((set.events().count(), set.left_out(), set.counts_one_kind_of_core()), (0, None, false));
        let open = OpenCounters::for_this_thread(&set);
        open.enable();
        open.disable();
        assert!(!open.any_open() && open.read().is_empty());
        let mut tallies = vec![Ok(EventTotals::default())];
        open.add(&mut tallies, &[], &[]);
        assert!(tallies[0].as_ref().unwrap_err().contains("driver") && open.first_error().is_some());
        assert!(join_counts(set.events(), &tallies).is_empty());
    }
}
