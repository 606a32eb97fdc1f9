//! The loaders of a cell: their memory, the traffic that they make, and what their bursts add up to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_core::conclusions::limit;
use memgauge_core::counters::ExpectedEvents;
use memgauge_core::plan::{Loader, Traffic};
use memgauge_core::result::{Checksums, Evidence, Placement, TrafficRates};
use memgauge_core::topology::{Machine, Topology};
use memgauge_core::traffic::{LineContent, LineUse, Mix, Rfo, Width};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels::{Kernel, LINE};
use memgauge_os::memory::Buffer;

use super::kernels::{ChosenKernels, LoaderMemory, TrialKey};
use crate::burst::counters::{CounterTotals, certain};
use crate::burst::load::Load;
use crate::burst::runner::{BurstResult, BurstShape};
use crate::error::{CellError, Result};
use crate::memory::combined_pages;
use crate::session::Session;

pub(crate) struct GroupLoader {
    pub(crate) cpu: u32,
    buffer: Arc<Buffer>,
    bytes: Bytes,
    /// A second buffer, and the percent of the accesses that go there.
    second: Option<(Arc<Buffer>, u32)>,
    /// Where the memory is, for trials.
    pub(crate) memory: LoaderMemory,
    pub(crate) traffic: Traffic,
    /// Instead of the cell's.
    delay: Option<u32>,
}

pub(crate) struct LoaderGroup {
    pub(crate) loaders: Vec<GroupLoader>,
    /// What stores write, where that was asked for.
    stored: Option<LineContent>,
}

impl LoaderGroup {
    /// Loaders with memory: what the last cell used where it is what this one wants.
    pub(crate) fn prepare(session: &mut Session<'_>, loaders: &[Loader], traffic: &Traffic) -> Result<Self> {
        session.memory.keep_loader_buffers(loaders);
        let mut group = Self { loaders: Vec::with_capacity(loaders.len()), stored: session.plan.contents.first().cloned() };
        for loader in loaders {
            let own = loader.own.as_deref();
            let buffer = session.memory.loader_buffer(&mut session.noise, loader.cpu, 0, &loader.buffer)?;
            let second = match own.and_then(|own| own.second.as_ref().map(|plan| (plan, own.second_percent))) {
                Some((plan, percent)) => Some((session.memory.loader_buffer(&mut session.noise, loader.cpu, 1, plan)?, percent)),
                None => None,
            };
            group.loaders.push(GroupLoader {
                cpu: loader.cpu,
                buffer,
                bytes: loader.buffer.bytes,
                second,
                memory: LoaderMemory::planned(loader),
                traffic: own.map_or(traffic, |own| &own.traffic).clone(),
                delay: own.and_then(|own| own.delay),
            });
        }
        Ok(group)
    }

    pub(crate) fn cpus(&self) -> IdSet {
        self.loaders.iter().map(|l| l.cpu).collect()
    }

    pub(crate) fn first_cpu(&self) -> u32 {
        self.loaders.first().map_or(0, |l| l.cpu)
    }

    /// Buffers, each once.
    pub(crate) fn buffers(&self) -> Vec<(&Arc<Buffer>, Bytes)> {
        let mut seen = BTreeSet::new();
        let all = self.loaders.iter().flat_map(|l| [(&l.buffer, l.bytes)].into_iter().chain(l.second.iter().map(|(b, _)| (b, l.bytes))));
        all.filter(|(buffer, _)| seen.insert(Arc::as_ptr(buffer))).collect()
    }

    pub(crate) fn bytes(&self) -> Bytes {
        Bytes(self.buffers().iter().map(|(_, bytes)| bytes.0).sum())
    }

    /// Whether the buffers are too large for the caches.
    pub(crate) fn memory_sized(&self, machine: &Machine) -> bool {
        limit::memory_sized(&machine.topology, &self.cpus(), self.bytes())
    }

    /// Pages of all buffers, where they are now, and the file that they are. Reading back takes about as long as for one.
    pub(crate) fn memory(&self) -> Evidence {
        let buffers = self.buffers();
        Evidence {
            pages: combined_pages(buffers.iter().map(|(b, bytes)| (b.pages(), *bytes))),
            placement: Placement::combined(buffers.iter().map(|(b, _)| b.placement_among(buffers.len()))),
            file: buffers.first().and_then(|(b, _)| b.file().cloned()),
            ..Evidence::default()
        }
    }

    /// What a trial of kernels for this traffic depends on.
    pub(crate) fn trial_key(&self, traffic: &Traffic, topology: &Topology) -> TrialKey {
        let same = || self.loaders.iter().filter(|l| l.traffic == *traffic);
        let distance = |cpu: u32, node: u32| {
            let own = topology.cpu(cpu).and_then(|c| topology.node(c.node));
            own.and_then(|n| n.distances.get(&node).copied()).unwrap_or(node)
        };
        let mut memory: Vec<LoaderMemory> = same().map(|l| l.memory.by_distance(|node| distance(l.cpu, node))).collect();
        memory.dedup();
        let mut cpus: BTreeMap<Option<String>, usize> = BTreeMap::new();
        same().for_each(|l| *cpus.entry(topology.cpu(l.cpu).and_then(|c| c.kind.clone())).or_default() += 1);
        let caches: BTreeSet<Option<u32>> = same().map(|l| topology.last_level_cache(l.cpu).and_then(|c| c.cpus.first())).collect();
        TrialKey { traffic: traffic.clone(), cpus, caches: caches.len(), bytes: self.bytes(), memory }
    }

    /// Lays `kernel` out over the first `bytes` of the buffer of the loader at `index`.
    fn lay_out(&self, index: usize, kernel: &'static Kernel, traffic: &Traffic, bytes: Bytes) -> Result<Load> {
        let GroupLoader { cpu, buffer, .. } = &self.loaders[index];
        let load = Load::new(kernel, traffic, buffer, bytes.0 as usize, index, self.stored.as_ref());
        load.map_err(|why| CellError::Load { cpu: *cpu, why })
    }

    /// Fresh loads of all loaders.
    pub(crate) fn loads(&self, chosen: &ChosenKernels, delay: u32) -> Result<Vec<(u32, Load)>> {
        self.loads_where(|index| chosen.kernels[index], |_| true, delay)
    }

    /// Fresh loads of the loaders chosen by `which`.
    pub(crate) fn loads_where(
        &self,
        kernel: impl Fn(usize) -> &'static Kernel,
        which: impl Fn(&GroupLoader) -> bool,
        delay: u32,
    ) -> Result<Vec<(u32, Load)>> {
        let loaders = self.loaders.iter().enumerate().filter(|(_, l)| which(l));
        loaders
            .map(|(index, l)| {
                let mut load = self.lay_out(index, kernel(index), &l.traffic, l.bytes)?;
                load.delay = l.delay.unwrap_or(delay);
                Ok((l.cpu, if let Some((buffer, percent)) = &l.second { load.with_second(buffer, *percent) } else { load }))
            })
            .collect()
    }

    /// Fresh loads of all loaders over the first `bytes` of their first buffers.
    pub(crate) fn prefix_loads(&self, kernel: impl Fn(usize) -> &'static Kernel, bytes: Bytes) -> Result<Vec<(u32, Load)>> {
        let loaders = self.loaders.iter().enumerate();
        loaders.map(|(index, l)| Ok((l.cpu, self.lay_out(index, kernel(index), &l.traffic, bytes)?))).collect()
    }

    /// Fresh loads of all loaders over their first buffers, with another traffic than theirs.
    pub(crate) fn loads_of_traffic(&self, kernel: &'static Kernel, traffic: &Traffic) -> Result<Vec<(u32, Load)>> {
        let loaders = self.loaders.iter().enumerate();
        loaders.map(|(index, l)| Ok((l.cpu, self.lay_out(index, kernel, traffic, l.bytes)?))).collect()
    }

    /// What the loaders are certain to have caused. Kernels that only store load nothing, and what a string instruction counts as differs
    /// from core to core. `prefix`: how much of their buffers they use, where it is not all.
    pub(crate) fn certain(&self, machine: &Machine, chosen: &ChosenKernels, prefix: Option<Bytes>) -> ExpectedEvents {
        let each = self.loaders.iter().zip(&chosen.kernels).map(|(l, kernel)| {
            let loads = kernel.lines_read_per_step() > 0 && kernel.width != Width::String;
            if loads { certain(machine, l.cpu, prefix.unwrap_or(l.bytes)) } else { ExpectedEvents::default() }
        });
        let either = |a: ExpectedEvents, b: ExpectedEvents| ExpectedEvents {
            loads: a.loads || b.loads,
            l1_missed: a.l1_missed || b.l1_missed,
            l2_missed: a.l2_missed || b.l2_missed,
            llc_missed: a.llc_missed || b.llc_missed,
        };
        each.reduce(either).unwrap_or_default()
    }
}

/// GB/s of all loaders in each counted window in which every one of them read the clock. Where CPUs are shared with others (a host with
/// fewer CPUs than its guests) there may be no such window: the whole burst is then the one sample, and its coverage says how much it is
/// worth.
pub(crate) fn window_gbs(burst: &BurstResult, ns: impl Fn(u64) -> f64, shape: BurstShape) -> Vec<f64> {
    let rate = |load: &Load, (ticks, steps): (u64, u64)| (steps > 0).then(|| steps as f64 * bytes_per_step(load.kernel()) / ns(ticks));
    // Bytes per nanosecond are GB/s.
    let common: Vec<f64> = shape
        .counted_windows()
        .filter_map(|w| burst.loads.iter().map(|l| l.trace.window(w).and_then(|t| rate(&l.load, t))).sum::<Option<f64>>())
        .collect();
    if !common.is_empty() {
        return common;
    }
    burst.loads.iter().map(|l| l.trace.whole().and_then(|t| rate(&l.load, t))).sum::<Option<f64>>().into_iter().collect()
}

/// Lines that a step loads and stores: lines are what memory moves, also where a part of each is touched.
pub(crate) fn lines_per_step(kernel: &Kernel) -> u64 {
    kernel.lines_read_per_step() + kernel.lines_written_per_step()
}

fn bytes_per_step(kernel: &Kernel) -> f64 {
    (lines_per_step(kernel) * u64::from(LINE)) as f64
}

/// What one loader did in all bursts of a cell.
struct LoaderTotal {
    cpu: u32,
    kernel: &'static Kernel,
    ticks: u64,
    steps: u64,
}

/// What the loaders did in all bursts of a cell.
#[derive(Default)]
pub(crate) struct LoadTotals {
    loaders: Vec<LoaderTotal>,
    checked: Option<Checksums>,
    /// What their hardware counters showed.
    pub(crate) counters: CounterTotals,
}

impl LoadTotals {
    pub(crate) fn add(&mut self, burst: &BurstResult) {
        if self.loaders.is_empty() {
            let new = |l: &crate::burst::runner::Loaded| LoaderTotal { cpu: l.cpu, kernel: l.load.kernel(), ticks: 0, steps: 0 };
            self.loaders = burst.loads.iter().map(new).collect();
        }
        for (total, loaded) in self.loaders.iter_mut().zip(&burst.loads) {
            let (ticks, steps) = loaded.trace.whole().unwrap_or_default();
            total.ticks += ticks;
            total.steps += steps;
        }
        // Loads count for as long as they live, which is all bursts of a cell.
        let sum = burst.loads.iter().filter_map(|l| l.load.checked());
        self.checked = sum.reduce(|a, b| Checksums { passes: a.passes + b.passes, mismatches: a.mismatches + b.mismatches });
    }

    /// Slowest loader's rate over the fastest's.
    fn fairness(&self) -> Option<f64> {
        if self.loaders.len() < 2 || self.loaders.iter().any(|l| l.ticks == 0) {
            return None;
        }
        let rates = self.loaders.iter().map(|l| l.steps as f64 * bytes_per_step(l.kernel) / l.ticks as f64);
        let (slowest, fastest) = rates.fold((f64::MAX, 0.0f64), |(slowest, fastest), r| (slowest.min(r), fastest.max(r)));
        (fastest > 0.0).then(|| slowest / fastest)
    }

    /// Splits a bandwidth of all loaders by what they read and wrote. `rfo`: whether plain stores of whole lines read first. `in_memory`:
    /// whether the buffers are too large for caches; otherwise nothing is said of the bus.
    pub(crate) fn traffic(&self, gbs: f64, rfo: Rfo, in_memory: bool) -> TrafficRates {
        let lines = |count: fn(&Kernel) -> u64| self.loaders.iter().map(|l| (count(l.kernel) * l.steps) as f64).sum::<f64>();
        let (read, written) = (lines(Kernel::lines_read_per_step), lines(Kernel::lines_written_per_step));
        let (all, mut fetched) = (read + written, 0.0);
        let mut rfos = Vec::new();
        for LoaderTotal { kernel, steps, .. } in &self.loaders {
            let reads_first = stores_read(kernel, rfo);
            if reads_first == Rfo::Yes {
                fetched += (kernel.lines_written_per_step() * steps) as f64;
            }
            rfos.push(reads_first);
        }
        // One loader whose stores are unknown makes the whole unknown.
        let rfo = [Rfo::Unknown, Rfo::Yes].into_iter().find(|r| rfos.contains(r)).unwrap_or(Rfo::No);
        let part = |lines: f64| if all > 0.0 { gbs * lines / all } else { 0.0 };
        let bus_estimate_gbs = (in_memory && rfo != Rfo::Unknown).then(|| gbs + part(fetched));
        TrafficRates { app_read_gbs: part(read), app_write_gbs: gbs - part(read), bus_estimate_gbs, rfo }
    }

    /// What a group's results have in common, once it has measured; without what is known of the memory, which takes a while to read.
    pub(crate) fn evidence(&self, group: &LoaderGroup, chosen: &ChosenKernels, ns: impl Fn(u64) -> f64) -> Evidence {
        let rate = |l: &LoaderTotal| (l.ticks > 0).then(|| (l.cpu, l.steps as f64 * bytes_per_step(l.kernel) / ns(l.ticks)));
        Evidence {
            threads: group.loaders.len() as u32,
            kernel: chosen.name(),
            kernels_tried: chosen.tried.clone(),
            buffer: group.bytes(),
            allocations: 1,
            fairness: self.fairness(),
            gbs_by_cpu: self.loaders.iter().filter_map(rate).collect::<BTreeMap<u32, f64>>(),
            checksums: self.checked,
            ..Default::default()
        }
    }
}

/// Whether a kernel's stores read the line first, where plain stores of whole lines do as `plain` says.
fn stores_read(kernel: &Kernel, plain: Rfo) -> Rfo {
    match () {
        () if kernel.mix.lines().1 == 0 || kernel.mix.non_temporal() => Rfo::No,
        // No core can avoid reading a line of which it stores a part.
        () if kernel.form.line == LineUse::Part => Rfo::Yes,
        // A string instruction chooses its stores itself.
        () if kernel.width == Width::String || kernel.mix == Mix::Fill => Rfo::Unknown,
        () => plain,
    }
}

#[cfg(test)]
mod tests {
    use memgauge_core::experiment::PageRequest;
    use memgauge_core::plan::BufferPlan;
    use memgauge_kernels as kernels;

    use super::*;
    use crate::burst::runner::Conditions;
    use crate::burst::runner::Loaded;
    use crate::burst::windows::Trace;

    fn load() -> Load {
        let kernel = kernels::all().iter().find(|k| k.mix == Mix::AllReads && k.form.is_plain()).unwrap();
        let plan = BufferPlan {
            bytes: Bytes::mib(1),
            node: 0,
            pages: PageRequest::Auto,
            touch: IdSet::new(),
            derived: false,
            directory: None,
            shared: false,
        };
        let buffer = Arc::new(Buffer::allocate(&plan, std::path::Path::new("/")).unwrap());
        Load::new(kernel, &Traffic::default(), &buffer, 1 << 20, 0, None).unwrap()
    }

    fn trace(marks: Vec<Option<(u64, u64)>>) -> Trace {
        Trace { marks, ..Trace::default() }
    }

    fn rates(traces: Vec<Trace>) -> Vec<f64> {
        let load = load();
        let bytes = bytes_per_step(load.kernel());
        let loads = traces.into_iter().map(|trace| Loaded { cpu: 0, trace, load: load.clone() }).collect();
        let burst = BurstResult { chase: None, loads, conditions: Conditions::default(), steal: None };
        window_gbs(&burst, |ticks| ticks as f64, BurstShape::cell(2)).iter().map(|gbs| gbs / bytes).collect()
    }

    /// Ten steps a tick; windows of 100 ticks.
    fn steady() -> Vec<Option<(u64, u64)>> {
        (0..4).map(|w| Some((w * 100, w * 1000))).collect()
    }

    #[test]
    fn windows_in_which_all_read_the_clock_count() {
        assert_eq!(rates(vec![trace(steady()), trace(steady())]), [20.0, 20.0]);
        let mut late = steady();
        late[3] = None;
        assert_eq!(rates(vec![trace(steady()), trace(late)]), [20.0]);
    }

    #[test]
    fn reads_that_stores_cause_are_on_the_bus_and_not_in_the_applications_bytes() {
        let kernel = |mix: Mix| kernels::all().iter().find(|k| k.mix == mix && k.form.is_plain() && k.width != Width::String).unwrap();
        let totals = |kernels: &[&'static Kernel]| LoadTotals {
            loaders: kernels.iter().zip(0..).map(|(kernel, cpu)| LoaderTotal { cpu, kernel, ticks: 100, steps: 1000 }).collect(),
            ..LoadTotals::default()
        };
        let bus = |mix: Mix, rfo, in_memory| {
            let totals = totals(&[kernel(mix)]);
            totals.traffic(30.0, rfo, in_memory).bus_estimate_gbs
        };
        assert_eq!(bus(Mix::R1W1, Rfo::Yes, true), Some(60.0));
        assert_eq!(bus(Mix::R2W1, Rfo::Yes, true), Some(45.0), "one load and one store of the program");
        assert_eq!(bus(Mix::R1W1, Rfo::No, true), Some(30.0));
        assert_eq!(bus(Mix::R1W1, Rfo::Unknown, true), None);
        assert_eq!(bus(Mix::AllReads, Rfo::Unknown, true), Some(30.0));
        assert_eq!(bus(Mix::NtWrite, Rfo::Yes, true), Some(30.0));
        assert_eq!(bus(Mix::AllReads, Rfo::No, false), None, "a cache's bytes cross no bus");
        let mixed = totals(&[kernel(Mix::AllReads), kernel(Mix::R1W1)]);
        assert_eq!(mixed.traffic(30.0, Rfo::Yes, true).rfo, Rfo::Yes);
        assert_eq!(mixed.traffic(30.0, Rfo::Unknown, true).bus_estimate_gbs, None);
        let part = kernels::all().iter().find(|k| k.form.line == LineUse::Part && k.mix == Mix::R1W1).unwrap();
        assert_eq!(stores_read(part, Rfo::No), Rfo::Yes);
    }

    #[test]
    fn threads_that_never_read_the_clock_together_leave_one_sample() {
        // On a host with fewer CPUs than its guest a thread may read the clock only when it starts and when all is over.
        let rare = vec![Some((0, 0)), None, None, Some((400, 1000))];
        assert_eq!(rates(vec![trace(steady()), trace(rare)]), [12.5]);
        let never = vec![None, None, None, Some((400, 0))];
        assert!(rates(vec![trace(steady()), trace(never)]).is_empty());
    }
}
