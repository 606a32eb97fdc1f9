//! Hardware counters by `perf_event_open(2)`: which events this machine has ([`Catalogue`]), counting them on a thread ([`Counting`]).
//!
//! Events are opened in groups, whose members the kernel counts together or not at all. A core with fewer counters than groups need lets
//! them take turns; every reading carries the time in which its event was enabled and the time in which it was counted.

mod attr;
mod choose;
mod error;
mod events;
mod pmu;
mod uarch;

use memgauge_core::counters::{EventOutcome, EventTotals};

pub use attr::{Config, Reading};
use attr::{Counter, Target};
pub use choose::{Catalogue, Choice, EventSet};
pub use error::PerfError;
pub use pmu::{Pmu, Pmus};
pub use uarch::Microarchitecture;

/// Whether the event counts nanoseconds and not occurrences.
pub fn counts_nanoseconds(name: &str) -> bool {
    events::counts_nanoseconds(name)
}

/// One event's counters: one for a thread, several for a part of the chip that there are several of.
#[derive(Debug)]
struct Opened {
    counters: Result<Vec<Counter>, PerfError>,
    /// Switches its group.
    leads: bool,
}

/// Open counters of a set of events.
#[derive(Debug)]
pub struct Counting {
    opened: Vec<Opened>,
    user_only: bool,
}

impl Counting {
    /// Opens the set's thread events on the calling thread, off. User code only: interrupts and other work of the kernel are not the
    /// loop's, and no privilege is needed.
    pub fn of_this_thread(set: &EventSet) -> Self {
        Self::open(&set.groups, Target::ThisThread, true)
    }

    /// Opens the set's events for the next program that the calling thread starts, and all its children, from its `execve` on. One program
    /// only: the kernel may give the thread's own events to the child and leave it those that it inherited, when it switches from one to the
    /// other before that `execve`, which then is the last one they wait for. The kernel's work on their behalf is counted too where this process may see it.
    pub fn of_program(groups: &[Vec<Choice>]) -> Self {
        let all = Self::open(groups, Target::Program, false);
        let refused = |o: &Opened| matches!(o.counters, Err(PerfError::Refused { .. } | PerfError::Forbidden));
        if all.opened.iter().any(refused) { Self::open(groups, Target::Program, true) } else { all }
    }

    /// Opens the set's events of the memory controllers, off.
    pub fn of_system(set: &EventSet) -> Self {
        let open = |choice: &Choice| -> Result<Vec<Counter>, PerfError> {
            let config = choice.config.clone()?;
            choice.on.iter().map(|&cpu| Counter::open(config, Target::Cpu(cpu), false, None)).collect()
        };
        Self { opened: set.system.iter().map(|choice| Opened { counters: open(choice), leads: true }).collect(), user_only: false }
    }

    fn open(groups: &[Vec<Choice>], target: Target, user_only: bool) -> Self {
        raise_file_limit();
        let mut opened: Vec<Opened> = Vec::new();
        for group in groups {
            let mut leader: Option<usize> = None;
            for choice in group {
                let lead = leader.and_then(|at| opened[at].counters.as_ref().ok()?.first());
                let open = |with: Option<&Counter>| Counter::open(choice.config.clone()?, target, user_only, with);
                let (counter, leads) = match open(lead) {
                    Ok(counter) => (Ok(counter), lead.is_none()),
                    // A group that does not fit the counters is refused as invalid; the event may fit alone.
                    Err(PerfError::Invalid) if lead.is_some() => (open(None), true),
                    Err(error) => (Err(error), lead.is_none()),
                };
                if counter.is_ok() && leader.is_none() {
                    leader = Some(opened.len());
                }
                opened.push(Opened { counters: counter.map(|c| vec![c]), leads });
            }
        }
        Self { opened, user_only }
    }

    /// Whether only user code is counted.
    pub fn user_only(&self) -> bool {
        self.user_only
    }

    /// Whether any event could be opened.
    pub fn any(&self) -> bool {
        self.opened.iter().any(|o| o.counters.is_ok())
    }

    /// Why the first event that could not be opened could not.
    pub fn first_error(&self) -> Option<&PerfError> {
        self.opened.iter().find_map(|o| o.counters.as_ref().err())
    }

    /// Switches everything on; the first group, which has cycles and instructions, last, so that it sees least of the others' switching.
    pub fn enable(&self) {
        self.leaders().rev().for_each(Counter::enable);
    }

    /// Switches everything off, the first group first.
    pub fn disable(&self) {
        self.leaders().for_each(Counter::disable);
    }

    fn leaders(&self) -> impl DoubleEndedIterator<Item = &Counter> {
        self.opened.iter().filter(|o| o.leads).filter_map(|o| o.counters.as_ref().ok()).flatten()
    }

    /// What all counters show, in the order of the events; nothing for events that could not be opened.
    pub fn read(&self) -> Vec<Vec<Reading>> {
        let of = |o: &Opened| o.counters.iter().flatten().map(|c| c.read().unwrap_or_default()).collect();
        self.opened.iter().map(of).collect()
    }

    /// Adds what came between two readings to tallies, event by event; an event that could not be opened gets its reason.
    pub fn add(&self, tallies: &mut [Result<EventTotals, String>], before: &[Vec<Reading>], after: &[Vec<Reading>]) {
        for (((opened, tally), before), after) in self.opened.iter().zip(tallies).zip(before).zip(after) {
            match (&opened.counters, tally) {
                (Ok(_), Ok(tally)) => {
                    for (before, after) in before.iter().zip(after) {
                        let Reading { value, enabled_ns, running_ns } = after.since(*before);
                        tally.add(value, enabled_ns, running_ns);
                    }
                }
                (Err(error), tally) => *tally = Err(error.to_string()),
                (Ok(_), Err(_)) => {}
            }
        }
    }
}

/// Joins events with what was counted of them.
pub fn counted<'a>(choices: impl Iterator<Item = &'a Choice>, tallies: &[Result<EventTotals, String>]) -> Vec<EventOutcome> {
    let list = choices.zip(tallies).map(|(choice, tally)| EventOutcome { event: choice.event.clone(), outcome: tally.clone() });
    merged(list.collect())
}

/// Adds up the events of memory controllers, of which there is one a channel: one event for each role.
fn merged(list: Vec<EventOutcome>) -> Vec<EventOutcome> {
    let mut all: Vec<EventOutcome> = Vec::new();
    for next in list {
        let chip = next.event.roles.iter().any(|r| r.system_wide());
        let same = all.iter_mut().find(|c| chip && c.event.roles == next.event.roles);
        match (same, next) {
            (None, next) => all.push(next),
            (Some(sum), next) => match (&mut sum.outcome, next.outcome) {
                (Ok(a), Ok(b)) => {
                    *a = EventTotals {
                        raw: a.raw + b.raw,
                        scaled: a.scaled + b.scaled,
                        enabled_ns: a.enabled_ns + b.enabled_ns,
                        running_ns: a.running_ns + b.running_ns,
                        starved: a.starved + b.starved,
                    };
                }
                // A sum that lacks a channel is none.
                (a, Err(reason)) => *a = Err(reason),
                (Err(_), Ok(_)) => {}
            },
        }
    }
    all
}

/// An event on each of many threads takes many descriptors: as many as this process may have without asking anybody.
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a structure of the right type to be filled.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 && limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: a structure of the right type, which is only read. A refusal leaves the limit as it was.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}

#[cfg(test)]
mod tests;
