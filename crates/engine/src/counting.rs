//! Hardware counters of the workers, around exactly the windows that count.
//!
//! Each worker opens its events on itself once, while nothing is measured, and switches them on where the first counted window begins and
//! off where the burst ends ([`crate::burst::keep_count`]). Memory controllers are the whole machine's: the burst's first loader, or the chase
//! where it is alone, switches those as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_core::counters::{CountedWork, Counters, CountingContext, EventTotals, ExpectedEvents, Scope, WorkUnit};
use memgauge_core::note::Note;
use memgauge_core::topology::Machine;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels as kernels;
use memgauge_linux::clock::Clock;
use memgauge_linux::perf::{self, Catalogue, Counting, EventSet, PerfError, Reading};

use crate::Setting;
use crate::burst::{Loaded, Trace};
use crate::session::{CellError, Session};

/// The counters that one worker switches.
#[derive(Clone, Copy)]
pub(crate) struct Switches<'a> {
    pub(crate) own: &'a Counting,
    pub(crate) system: Option<&'a Counting>,
}

impl Switches<'_> {
    pub(crate) fn read(&self) -> Readings {
        Readings { own: self.own.read(), system: self.system.map(Counting::read) }
    }

    pub(crate) fn on(&self) {
        if let Some(system) = self.system {
            system.enable();
        }
        self.own.enable();
    }

    pub(crate) fn off(&self) {
        self.own.disable();
        if let Some(system) = self.system {
            system.disable();
        }
    }
}

/// What counters showed.
pub(crate) struct Readings {
    own: Vec<Vec<Reading>>,
    system: Option<Vec<Vec<Reading>>>,
}

/// What a worker counted in a burst.
pub(crate) struct Count {
    pub(crate) before: Readings,
    pub(crate) after: Readings,
    /// Clock ticks from on to off.
    pub(crate) ticks: u64,
    /// Units of the trace's work done meanwhile.
    pub(crate) work: u64,
}

/// The counters of a run.
pub(crate) struct Bench {
    set: Result<EventSet, PerfError>,
    /// By CPU: those of its worker.
    workers: BTreeMap<u32, Arc<Counting>>,
    system: Option<Arc<Counting>>,
    /// Reasons that were told.
    told: bool,
}

impl Bench {
    /// Finds out what can be counted on CPUs like `cpu`.
    pub(crate) fn new(setting: &Setting<'_>, cpu: u32) -> Self {
        let set = Catalogue::read(&setting.root, &setting.machine.identity, cpu).metrics();
        let system = set.as_ref().ok().filter(|s| !s.system.is_empty()).map(|s| Arc::new(Counting::of_system(s)));
        Self { set, workers: BTreeMap::new(), system, told: false }
    }

    /// The events to open on a worker that has not opened them yet.
    pub(crate) fn to_open(&self, cpu: u32) -> Option<EventSet> {
        self.set.as_ref().ok().filter(|_| !self.workers.contains_key(&cpu)).cloned()
    }

    /// Whether there is anything to count.
    pub(crate) fn counts(&self) -> bool {
        self.set.is_ok()
    }

    /// These CPUs have lost their workers, and with them what those had opened: new ones open their own.
    pub(crate) fn forget(&mut self, cpus: &[u32]) {
        self.workers.retain(|cpu, _| !cpus.contains(cpu));
    }

    /// The worker of this CPU has opened its events.
    pub(crate) fn opened(&mut self, cpu: u32, counting: Counting) {
        self.workers.insert(cpu, Arc::new(counting));
    }

    /// The counters of a burst's worker; one of a burst has the machine's too.
    pub(crate) fn of(&self, cpu: u32, system: bool) -> Option<(Arc<Counting>, Option<Arc<Counting>>)> {
        Some((self.workers.get(&cpu)?.clone(), self.system.clone().filter(|_| system)))
    }

    /// Says once what cannot be counted, and why.
    pub(crate) fn note(&mut self, counters: &Counters) -> Option<Note> {
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        if let Some(reason) = &counters.reason {
            return Some(Note::warning("no-counters", format!("--counters: {reason}")).advise(advice(reason)));
        }
        let gaps = counters.gaps();
        if gaps.is_empty() {
            return None;
        }
        let list: Vec<String> = gaps.iter().map(|(reason, events)| format!("{}: {reason}", events.join(", "))).collect();
        Some(Note::info("counters-missing", format!("not counted: {}", list.join("; "))))
    }
}

fn advice(reason: &str) -> &'static str {
    if reason.contains("hypervisor") {
        "use an instance type with a virtual PMU or bare metal, or switch the guest's PMU on; latency and bandwidth do not need it"
    } else {
        "see kernel.perf_event_paranoid, CAP_PERFMON and the container's filter of system calls; latency and bandwidth do not need it"
    }
}

/// What was counted in the bursts of one measurement.
#[derive(Default)]
pub(crate) struct Sheet {
    own: Vec<Result<EventTotals, String>>,
    system: Vec<Result<EventTotals, String>>,
    threads: BTreeSet<u32>,
    ticks: u64,
    wall_ticks: u64,
    work: u64,
}

impl Sheet {
    /// Adds what a worker counted in a burst; `per_unit` is the hops or lines of a unit of its trace's work.
    pub(crate) fn add(&mut self, bench: &Bench, cpu: u32, count: &Count, per_unit: u64) {
        let (Ok(set), Some(counting)) = (&bench.set, bench.workers.get(&cpu)) else { return };
        let zero = || Ok(EventTotals::default());
        self.own.resize_with(set.groups.iter().flatten().count(), zero);
        self.system.resize_with(set.system.len(), zero);
        counting.add(&mut self.own, &count.before.own, &count.after.own);
        if let (Some(system), Some(before), Some(after)) = (&bench.system, &count.before.system, &count.after.system) {
            system.add(&mut self.system, before, after);
            self.wall_ticks += count.ticks;
        }
        self.threads.insert(cpu);
        self.ticks += count.ticks;
        self.work += count.work * per_unit;
    }

    /// What the counts say.
    pub(crate) fn counters(&self, bench: &Bench, clock: &Clock, unit: WorkUnit, certain: ExpectedEvents) -> Counters {
        let set = match &bench.set {
            Ok(set) => set,
            Err(error) => return Counters::missing(error.to_string()),
        };
        if let Some(error) = bench.workers.values().find(|w| !w.any()).and_then(|w| w.first_error()) {
            return Counters::missing(format!("perf_event_open {error}"));
        }
        if self.threads.is_empty() {
            return Counters::missing("no worker ran while it was counted");
        }
        let tallies: Vec<_> = self.own.iter().chain(&self.system).cloned().collect();
        let account = CountingContext {
            scope: Scope::User,
            threads: self.threads.len() as u32,
            thread_s: clock.ns(self.ticks) / 1e9,
            wall_s: clock.ns(self.wall_ticks) / 1e9,
            work: Some(CountedWork { unit, count: self.work }),
            expected: certain,
        };
        Counters::new(&account, &perf::counted(set.choices(), &tallies))
    }
}

/// Counters around one stretch of work in the calling thread, without a worker: the timed passes of a loop.
pub(crate) struct Stretch {
    bench: Bench,
    cpu: u32,
    sheet: Sheet,
    /// What the counters showed before, and the clock when they were switched on.
    begun: Option<(Readings, u64)>,
}

impl Stretch {
    /// Opens the events of CPUs like `cpu` on the calling thread.
    pub(crate) fn open(setting: &Setting<'_>, cpu: u32) -> Self {
        let mut bench = Bench::new(setting, cpu);
        if let Some(set) = bench.to_open(cpu) {
            bench.opened(cpu, Counting::of_this_thread(&set));
        }
        Self { bench, cpu, sheet: Sheet::default(), begun: None }
    }

    /// Begins to count.
    pub(crate) fn begin(&mut self, clock: &Clock) {
        if let Some((own, system)) = self.bench.of(self.cpu, true) {
            let switches = Switches { own: &own, system: system.as_deref() };
            let before = switches.read();
            switches.on();
            self.begun = Some((before, clock.stamp()));
        }
    }

    /// Ends it; so many hops or lines were done meanwhile.
    pub(crate) fn end(&mut self, clock: &Clock, work: u64) {
        if let (Some((own, system)), Some((before, from))) = (self.bench.of(self.cpu, true), self.begun.take()) {
            let switches = Switches { own: &own, system: system.as_deref() };
            let ticks = clock.stamp().saturating_sub(from);
            switches.off();
            let count = Count { before, after: switches.read(), ticks, work };
            self.sheet.add(&self.bench, self.cpu, &count, 1);
        }
    }

    /// What was counted, and a note of what could not be.
    pub(crate) fn conclude(mut self, clock: &Clock, unit: WorkUnit, certain: ExpectedEvents) -> (Counters, Option<Note>) {
        let counters = self.sheet.counters(&self.bench, clock, unit, certain);
        let note = self.bench.note(&counters);
        (counters, note)
    }
}

/// A working set this many times a cache's size misses it in most accesses, whatever its replacement.
const BEYOND: u64 = 2;

/// What loads over `bytes` from one CPU are certain to have caused: misses in each cache that is much smaller.
pub(crate) fn certain(machine: &Machine, cpu: u32, bytes: Bytes, loads: bool) -> ExpectedEvents {
    let level = |level: u8| machine.topology.caches.iter().filter(|c| c.level == level && c.cpus.contains(cpu)).map(|c| c.size).max();
    let deepest = (1..=4).rev().find(|&l| level(l).is_some());
    let missed = |l: Option<u8>| l.and_then(level).is_some_and(|size| size.0 > 0 && bytes.0 / size.0 >= BEYOND);
    ExpectedEvents { loads, l1_missed: missed(Some(1)), l2_missed: missed(Some(2)), llc_missed: missed(deepest.filter(|d| *d > 1)) }
}

impl Session<'_> {
    /// Lets workers that have not done so open their hardware counters, where they were asked for.
    pub(crate) fn open_counters(&mut self, cpus: &IdSet) -> Result<(), CellError> {
        if let Some(bench) = &mut self.bench {
            bench.forget(&self.team.take_lost());
        }
        for cpu in cpus.iter() {
            let Some(set) = self.bench.as_ref().and_then(|b| b.to_open(cpu)) else { continue };
            let counting = self.team.run_on(cpu, move || Counting::of_this_thread(&set))?;
            if let Some(bench) = &mut self.bench {
                bench.opened(cpu, counting);
            }
        }
        Ok(())
    }

    /// Whether hardware events are counted: they were asked for, and there are some.
    pub(crate) fn counts(&self) -> bool {
        self.bench.as_ref().is_some_and(Bench::counts)
    }

    /// Adds what the workers of a burst counted to a measurement's sheet: the chase's, or the loaders'.
    pub(crate) fn tally_chase(&self, sheet: &mut Sheet, cpu: u32, trace: &Trace) {
        if let Some((bench, count)) = self.bench.as_ref().zip(trace.count()) {
            sheet.add(bench, cpu, count, kernels::CHASE_UNROLL as u64);
        }
    }

    pub(crate) fn tally_loads(&self, sheet: &mut Sheet, loads: &[Loaded]) {
        let Some(bench) = &self.bench else { return };
        for loaded in loads {
            let kernel = loaded.load.kernel();
            if let Some(count) = loaded.trace.count() {
                sheet.add(bench, loaded.cpu, count, kernel.lines_read_per_step() + kernel.lines_written_per_step());
            }
        }
    }

    /// Gives the last result what was counted while it was measured.
    pub(crate) fn attach(&mut self, sheet: &Sheet, unit: WorkUnit, certain: ExpectedEvents) {
        let clock = self.clock();
        let Some(bench) = &mut self.bench else { return };
        let counters = sheet.counters(bench, &clock, unit, certain);
        let note = bench.note(&counters);
        if let Some(last) = self.results.last_mut() {
            last.counters = Some(Box::new(counters));
        }
        if let Some(note) = note {
            self.note(note);
        }
    }
}
