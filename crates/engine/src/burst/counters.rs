//! Hardware counters of the workers, around exactly the windows that count.
//!
//! Each worker opens its events on itself once, while nothing is measured. It switches them on where the first counted window begins and
//! off where the burst ends ([`run_until_end`](super::windows::run_until_end)). Memory controllers belong to the whole machine: the burst's
//! first loader, or the chase where it is alone, switches their counters as well.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use memgauge_model::counters::{CountedWork, Counters, CountingContext, EventTotals, ExpectedEvents, Scope, WorkUnit};
use memgauge_model::metrics::Role;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::topology::Machine;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::Knob;
use memgauge_os::clock::Clock;
use memgauge_os::counters::{self, Catalogue, CounterError, EventSet, NO_PMU, OpenCounters, Reading, WITHHELD};

use super::workers::Workers;
use crate::error::WorkerError;

/// The counters that one worker switches.
pub(crate) struct CounterSwitches {
    own: Arc<OpenCounters>,
    /// The machine's, which one worker of a burst switches.
    system: Option<Arc<OpenCounters>>,
}

impl CounterSwitches {
    pub(crate) fn read(&self) -> Readings {
        Readings { own: self.own.read(), system: self.system.as_deref().map(OpenCounters::read) }
    }

    pub(crate) fn on(&self) {
        if let Some(system) = &self.system {
            system.enable();
        }
        self.own.enable();
    }

    pub(crate) fn off(&self) {
        self.own.disable();
        if let Some(system) = &self.system {
            system.disable();
        }
    }
}

/// The counters' values at one moment.
pub(crate) struct Readings {
    own: Vec<Vec<Reading>>,
    system: Option<Vec<Vec<Reading>>>,
}

pub(crate) struct BurstCount {
    pub(crate) before: Readings,
    pub(crate) after: Readings,
    /// Clock ticks from on to off.
    pub(crate) ticks: u64,
    /// Units of the trace's work done meanwhile.
    pub(crate) work: u64,
}

pub(crate) struct RunCounters {
    set: Result<EventSet, CounterError>,
    /// By CPU: those of its worker.
    workers: BTreeMap<u32, Arc<OpenCounters>>,
    system: Option<Arc<OpenCounters>>,
    /// A note has said what cannot be counted.
    noted: bool,
}

impl RunCounters {
    /// Finds out what can be counted on CPUs like `cpu`; `root` is the folder below which `/sys` and `/proc` are.
    pub(crate) fn new(root: &Path, machine: &Machine, cpu: u32) -> Self {
        let set = Catalogue::read(root, &machine.identity, cpu).metrics().map(|set| set.fitted(cpu));
        let system = set.as_ref().ok().filter(|s| !s.system.is_empty()).map(|s| Arc::new(OpenCounters::for_system(s)));
        Self { set, workers: BTreeMap::new(), system, noted: false }
    }

    pub(crate) fn can_count(&self) -> bool {
        self.set.is_ok()
    }

    /// Lets workers that have not done so open their events. Counters of CPUs that have lost their workers are dropped.
    pub(crate) fn open(&mut self, workers: &mut Workers, cpus: &IdSet) -> Result<(), WorkerError> {
        let lost = workers.take_lost();
        self.workers.retain(|cpu, _| !lost.contains(cpu));
        let Ok(set) = &self.set else { return Ok(()) };
        for cpu in cpus.iter() {
            if let Entry::Vacant(entry) = self.workers.entry(cpu) {
                let set = set.clone();
                entry.insert(Arc::new(workers.run_on(cpu, move || OpenCounters::for_this_thread(&set))?));
            }
        }
        Ok(())
    }

    /// The counters that the worker on this CPU switches; one worker of a burst switches the machine's too.
    pub(crate) fn switched_by(&self, cpu: u32, system: bool) -> Option<CounterSwitches> {
        Some(CounterSwitches { own: self.workers.get(&cpu)?.clone(), system: self.system.clone().filter(|_| system) })
    }

    /// The counts, with a note the first time that an event could not be counted.
    pub(crate) fn summarise(
        &mut self,
        totals: &CounterTotals,
        clock: &Clock,
        unit: WorkUnit,
        certain: ExpectedEvents,
    ) -> (Counters, Option<Note>) {
        let counters = totals.counters(self, clock, unit, certain);
        let note = if std::mem::replace(&mut self.noted, true) {
            None
        } else {
            missing(&counters, self.no_pmu(), self.set.as_ref().ok().and_then(EventSet::left_out))
        };
        (counters, note)
    }

    /// Whether the machine has no PMU, or none that counts these events.
    fn no_pmu(&self) -> bool {
        let absent = |error: &CounterError| matches!(error, CounterError::NoPmu(_) | CounterError::NotHere(_));
        match &self.set {
            Err(error) => absent(error),
            Ok(_) => self.workers.values().any(|w| w.first_error().is_some_and(absent)),
        }
    }
}

/// A note on the events that cannot be counted, with the reason.
fn missing(counters: &Counters, no_pmu: bool, left_out: Option<String>) -> Option<Note> {
    if let Some(reason) = &counters.reason {
        let advice = format!("{}; latency and bandwidth do not need them", if no_pmu { NO_PMU } else { WITHHELD });
        return Some(Note::warning(NoteCode::NoCounters, words![Knob::Counters, ": {reason}"]).advise(advice));
    }
    let gaps = counters.gaps();
    let events = gaps.iter().map(|(reason, events)| format!("{}: {reason}", events.join(", ")));
    let list: Vec<String> = events.chain(left_out).collect();
    if list.is_empty() {
        return None;
    }
    Some(Note::info(NoteCode::CountersMissing, format!("not counted: {}", list.join("; "))))
}

/// The counts in the bursts of one measurement.
#[derive(Clone, Default)]
pub(crate) struct CounterTotals {
    own: Vec<Result<EventTotals, String>>,
    system: Vec<Result<EventTotals, String>>,
    threads: BTreeSet<u32>,
    ticks: u64,
    wall_ticks: u64,
    work: u64,
}

impl CounterTotals {
    /// Adds what a worker counted in a burst; `per_unit` is the hops or lines in a unit of its trace's work.
    pub(crate) fn add(&mut self, counters: &RunCounters, cpu: u32, count: &BurstCount, per_unit: u64) {
        let (Ok(set), Some(counting)) = (&counters.set, counters.workers.get(&cpu)) else { return };
        let zero = || Ok(EventTotals::default());
        self.own.resize_with(set.groups.iter().flatten().count(), zero);
        self.system.resize_with(set.system.len(), zero);
        counting.add(&mut self.own, &count.before.own, &count.after.own);
        if let (Some(system), Some(before), Some(after)) = (&counters.system, &count.before.system, &count.after.system) {
            system.add(&mut self.system, before, after);
            self.wall_ticks += count.ticks;
        }
        self.threads.insert(cpu);
        self.ticks += count.ticks;
        self.work += count.work * per_unit;
    }

    /// Seconds that the threads spent on their CPUs while cycles were counted: a thread's events are enabled only then. By the clock, the cycles
    /// of a thread that others interrupt would look slow.
    fn on_cpu_s(&self, set: &EventSet) -> Option<f64> {
        let cycles = set.groups.iter().flatten().position(|event| event.event.roles.contains(&Role::Cycles))?;
        let totals = self.own.get(cycles)?.as_ref().ok()?;
        (totals.enabled_ns > 0).then(|| totals.enabled_ns as f64 / 1e9)
    }

    fn counters(&self, counters: &RunCounters, clock: &Clock, unit: WorkUnit, certain: ExpectedEvents) -> Counters {
        let set = match &counters.set {
            Ok(set) => set,
            Err(error) => return Counters::missing(error.to_string()),
        };
        if let Some(error) = counters.workers.values().find(|w| !w.any_open()).and_then(|w| w.first_error()) {
            return Counters::missing(format!("perf_event_open {error}"));
        }
        if self.threads.is_empty() {
            return Counters::missing("no worker ran while it was counted");
        }
        let tallies: Vec<_> = self.own.iter().chain(&self.system).cloned().collect();
        let account = CountingContext {
            scope: Scope::User,
            threads: self.threads.len() as u32,
            thread_s: self.on_cpu_s(set).unwrap_or_else(|| clock.ns(self.ticks) / 1e9),
            wall_s: clock.ns(self.wall_ticks) / 1e9,
            work: Some(CountedWork { unit, count: self.work }),
            expected: certain,
        };
        Counters::new(&account, &counters::join_counts(set.events(), &tallies))
    }
}

/// Counters of the calling thread, without a worker: around the timed passes of a loop.
pub(crate) struct ThreadCounters {
    counters: RunCounters,
    cpu: u32,
    totals: CounterTotals,
    /// The counter readings from before, and the clock when the counters were switched on.
    started: Option<(Readings, u64)>,
}

impl ThreadCounters {
    /// Opens the events of CPUs like `cpu` on the calling thread.
    pub(crate) fn open(root: &Path, machine: &Machine, cpu: u32) -> Self {
        let mut counters = RunCounters::new(root, machine, cpu);
        if let Ok(set) = &counters.set {
            counters.workers.insert(cpu, Arc::new(OpenCounters::for_this_thread(set)));
        }
        Self { counters, cpu, totals: CounterTotals::default(), started: None }
    }

    pub(crate) fn start(&mut self, clock: &Clock) {
        if let Some(switches) = self.counters.switched_by(self.cpu, true) {
            let before = switches.read();
            switches.on();
            self.started = Some((before, clock.stamp()));
        }
    }

    /// Stops counting; `work` hops or lines were done meanwhile.
    pub(crate) fn stop(&mut self, clock: &Clock, work: u64) {
        if let (Some(switches), Some((before, from))) = (self.counters.switched_by(self.cpu, true), self.started.take()) {
            let ticks = clock.stamp().saturating_sub(from);
            switches.off();
            let count = BurstCount { before, after: switches.read(), ticks, work };
            self.totals.add(&self.counters, self.cpu, &count, 1);
        }
    }

    /// The counts, and a note on the events that could not be counted.
    pub(crate) fn finish(mut self, clock: &Clock, unit: WorkUnit, certain: ExpectedEvents) -> (Counters, Option<Note>) {
        self.counters.summarise(&self.totals, clock, unit, certain)
    }
}

/// A working set this many times a cache's size misses it in most accesses, whatever the cache's replacement policy.
const MISSES_FROM: u64 = 2;

/// Events that loads over `bytes` from one CPU must have caused: misses in each cache that is much smaller.
pub(crate) fn certain(machine: &Machine, cpu: u32, bytes: Bytes) -> ExpectedEvents {
    let level = |level: u8| machine.topology.caches.iter().filter(|c| c.level == level && c.cpus.contains(cpu)).map(|c| c.size).max();
    let deepest = (1..=4).rev().find(|&l| level(l).is_some());
    let missed = |l: Option<u8>| l.and_then(level).is_some_and(|size| size.0 > 0 && bytes.0 / size.0 >= MISSES_FROM);
    ExpectedEvents { loads: true, l1_missed: missed(Some(1)), l2_missed: missed(Some(2)), llc_missed: missed(deepest.filter(|d| *d > 1)) }
}
