//! Counters that are open: switching them, reading them, and adding up what they counted.

use std::time::{Duration, Instant};

use memgauge_model::counters::{EventOutcome, EventTotals};

use super::catalogue::{EncodedEvent, EventSet};
use super::perf_event::{Count, Counter, CounterError, Reading, Target};
use crate::process;

/// How long a group is tried. The kernel lets groups take turns every 4 ms (`perf_event_mux_interval_ms`), so one that other programs' events
/// leave room for has had a turn by then.
const TRIAL: Duration = Duration::from_millis(20);

/// The counters of one event: one for an event of a thread; for an event of a unit, one on each CPU that the unit is opened on.
#[derive(Debug)]
struct Opened<C = Counter> {
    counters: Result<Vec<C>, CounterError>,
    /// It is the leader of its group, so switching it switches the group.
    leads: bool,
}

/// The open counters of a set of events.
#[derive(Debug)]
pub struct OpenCounters {
    opened: Vec<Opened>,
    user_only: bool,
}

impl OpenCounters {
    /// Opens the thread events of the set for the calling thread, switched off. Only user code is counted: interrupts and other work of the
    /// kernel do not belong to the timed loop, and this needs no privilege.
    pub fn for_this_thread(set: &EventSet) -> Self {
        Self::open(&set.groups, Target::ThisThread, true)
    }

    /// Opens events for the next program that the calling thread starts, and for all children of that program, from its `execve` on. The
    /// counters serve one program only. When the kernel switches from the thread to the child before that `execve`, it may give the thread's
    /// own events to the child and leave the inherited ones to the thread; the events then start with that `execve`, and with no later one.
    /// The kernel's work for the program is counted too if this process may see it.
    pub fn for_program(groups: &[Vec<EncodedEvent>]) -> Self {
        let all = Self::open(groups, Target::Program, false);
        let refused =
            |o: &Opened| matches!(o.counters, Err(CounterError::Refused(..) | CounterError::Withheld(_) | CounterError::Forbidden));
        if !all.opened.iter().any(refused) {
            return all;
        }
        let mut user = Self::open(groups, Target::Program, true);
        // If the kernel's part is withheld, that is also the reason why events that happen only in the kernel are not counted.
        for (user, all) in user.opened.iter_mut().zip(all.opened) {
            if let (Err(CounterError::InKernelOnly), Err(denied @ CounterError::Withheld(_))) = (&user.counters, all.counters) {
                user.counters = Err(denied);
            }
        }
        user
    }

    /// Opens the memory controller events of the set, switched off.
    pub fn for_system(set: &EventSet) -> Self {
        let open = |event: &EncodedEvent| -> Result<Vec<Counter>, CounterError> {
            let config = event.config.clone()?;
            event.cpus.iter().map(|&cpu| Counter::open(config, Target::Cpu(cpu), false, None)).collect()
        };
        Self { opened: set.system.iter().map(|event| Opened { counters: open(event), leads: true }).collect(), user_only: false }
    }

    fn open(groups: &[Vec<EncodedEvent>], target: Target, user_only: bool) -> Self {
        process::raise_file_limit();
        Self { opened: groups.iter().flat_map(|group| open_group(group, target, user_only)).collect(), user_only }
    }

    /// Whether only user code is counted.
    pub fn user_only(&self) -> bool {
        self.user_only
    }

    /// Whether any event could be opened.
    pub fn any_open(&self) -> bool {
        self.opened.iter().any(|o| o.counters.is_ok())
    }

    /// The error of the first event that could not be opened.
    pub fn first_error(&self) -> Option<&CounterError> {
        self.opened.iter().find_map(|o| o.counters.as_ref().err())
    }

    /// Switches all counters on. The first group, which counts cycles and instructions, comes last, so that it counts least of the switching.
    pub fn enable(&self) {
        leaders(&self.opened).rev().for_each(|counter| counter.switch(true));
    }

    /// Switches all counters off, the first group first.
    pub fn disable(&self) {
        leaders(&self.opened).for_each(|counter| counter.switch(false));
    }

    /// Reads all counters, in the order of the events. An event that could not be opened has no readings.
    pub fn read(&self) -> Vec<Vec<Reading>> {
        let readings = |o: &Opened| o.counters.iter().flatten().map(|c| c.read().unwrap_or_default()).collect();
        self.opened.iter().map(readings).collect()
    }

    /// Adds the differences between two readings to the tallies, event by event. The tally of an event that could not be opened becomes the
    /// reason.
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

/// Opens the events of a group. The first that opens leads it.
fn open_group<C: Count>(group: &[EncodedEvent], target: Target, user_only: bool) -> Vec<Opened<C>> {
    let mut opened: Vec<Opened<C>> = Vec::new();
    let mut leader: Option<usize> = None;
    for event in group {
        let lead = leader.and_then(|at| opened[at].counters.as_ref().ok()?.first());
        let open = |leader: Option<&C>| match event.config.clone()? {
            config if user_only && config.in_kernel_only() => Err(CounterError::InKernelOnly),
            config => C::open(config, target, user_only, leader),
        };
        let (counter, leads) = match open(lead) {
            Ok(counter) => (Ok(counter), lead.is_none()),
            // A group that needs too many counters is refused as invalid. The event may fit alone.
            Err(CounterError::Invalid) if lead.is_some() => (open(None), true),
            Err(error) => (Err(error), lead.is_none()),
        };
        if counter.is_ok() && leader.is_none() {
            leader = Some(opened.len());
        }
        opened.push(Opened { counters: counter.map(|c| vec![c]), leads });
    }
    opened
}

fn leaders<C>(opened: &[Opened<C>]) -> impl DoubleEndedIterator<Item = &C> {
    opened.iter().filter(|o| o.leads).filter_map(|o| o.counters.as_ref().ok()).flatten()
}

impl EventSet {
    /// Divides groups that get no counters on `cpu` into smaller ones that do, and keeps the order of the events.
    ///
    /// The kernel accepts a group by what the core has, not by what is free: the NMI watchdog and other profilers hold counters all the time,
    /// and a group that needs one of these is enabled and never counted.
    #[must_use]
    pub fn fitted(mut self, cpu: u32) -> Self {
        let groups = &self.groups;
        let fit = move || {
            // On a hybrid machine only the CPU's own kind of core counts its events.
            let _ = crate::cpu::pin_to(cpu);
            groups.iter().flat_map(|group| fitting_parts::<Counter>(group)).collect()
        };
        let fitted = std::thread::scope(|scope| std::thread::Builder::new().spawn_scoped(scope, fit).map(|thread| thread.join()));
        if let Ok(Ok(groups)) = fitted {
            self.groups = groups;
        }
        self
    }
}

/// The group in parts that get counters, each as long as can be from the first event on: the rows of tables begin with those that belong
/// together. If not even one event gets a counter, smaller groups would not help.
fn fitting_parts<C: Count>(group: &[EncodedEvent]) -> Vec<Vec<EncodedEvent>> {
    let mut parts = Vec::new();
    let mut rest = group;
    while !rest.is_empty() {
        let fits = (1..=rest.len()).rev().find(|&n| gets_counters::<C>(&rest[..n]));
        let (part, others) = rest.split_at(fits.unwrap_or(rest.len()));
        parts.push(part.to_vec());
        rest = others;
    }
    parts
}

/// Whether every event of this group that opens is counted, when nothing else of this thread is.
fn gets_counters<C: Count>(group: &[EncodedEvent]) -> bool {
    let opened = open_group::<C>(group, Target::ThisThread, true);
    let waits = |c: &C| c.read().is_some_and(|r| r.running_ns == 0);
    let all = || opened.iter().filter_map(|o| o.counters.as_ref().ok()).flatten();
    leaders(&opened).for_each(|counter| counter.switch(true));
    let started = Instant::now();
    while all().any(waits) && started.elapsed() < TRIAL {
        std::hint::spin_loop();
    }
    !all().any(waits)
}

/// Joins events with their counts.
pub fn join_counts<'a>(events: impl Iterator<Item = &'a EncodedEvent>, tallies: &[Result<EventTotals, String>]) -> Vec<EventOutcome> {
    let in_lines = |totals: EventTotals, per_line: f64| EventTotals { scaled: totals.scaled / per_line, ..totals };
    let list = events
        .zip(tallies)
        .map(|(event, tally)| EventOutcome { event: event.event.clone(), outcome: tally.clone().map(|t| in_lines(t, event.per_line)) });
    merge_controllers(list.collect())
}

/// Adds up the events of the memory controllers, so that one event remains for each role: there is a controller for each channel.
fn merge_controllers(list: Vec<EventOutcome>) -> Vec<EventOutcome> {
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
                // A sum that lacks one of the channels would be too low.
                (a, Err(reason)) => *a = Err(reason),
                (Err(_), Ok(_)) => {}
            },
        }
    }
    all
}

#[cfg(test)]
mod tests;
