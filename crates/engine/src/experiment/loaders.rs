//! The loaders of a cell: their memory, the traffic that they make, and what their bursts add up to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use memgauge_analysis::conclusions::limit;
use memgauge_kernels::{Kernel, LINE};
use memgauge_model::counters::ExpectedEvents;
use memgauge_model::integrity::{BLOCK_BYTES, Words};
use memgauge_model::plan::{Loader, Traffic};
use memgauge_model::result::{Checksums, Evidence, Placement, RfoEvidence, RfoReason, TrafficRates};
use memgauge_model::topology::{Machine, Topology};
use memgauge_model::traffic::{LineContent, LineUse, Rfo, Width};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;

use crate::burst::counters::{CounterTotals, certain};
use crate::burst::load::{Contents, LineBytes, Load, LoadLayout, lines_per_iteration};
use crate::burst::result::Loaded;
use crate::burst::slots::BurstWindows;
use crate::error::{Result, no_room};
use crate::integrity::{CheckedBuffers, TestedBuffer};
use crate::kernel_choice::{ChosenKernels, LoaderMemory, TrialKey};
use crate::memory::combined_pages;
use crate::session::Session;
use crate::stores::{self, Round, Stores, StoresRead};

pub(crate) struct GroupLoader {
    pub(crate) cpu: u32,
    buffer: Arc<Buffer>,
    bytes: Bytes,
    /// A second buffer, and the percent of the accesses that go there.
    second: Option<(Arc<Buffer>, u32)>,
    /// The location of the memory, for trials.
    pub(crate) memory: LoaderMemory,
    pub(crate) traffic: Traffic,
    /// Instead of the cell's.
    delay: Option<u32>,
}

/// A larger buffer holds a step of every kernel: at most 36 lines, or a page of each stream of a string kernel.
const ANY_KERNEL: Bytes = Bytes::kib(64);

pub(crate) struct LoaderGroup {
    pub(crate) loaders: Vec<GroupLoader>,
    /// The line that stores write, if the plan asks for one.
    stored: Option<LineContent>,
    /// The words in the buffers of loaders that keep checksums.
    words: Vec<(Arc<Buffer>, Words)>,
    /// The machine's cache line.
    line: Bytes,
}

impl LoaderGroup {
    /// Loaders with memory: what the last cell used where it is what this one wants.
    pub(crate) fn prepare(session: &mut Session<'_>, loaders: &[Loader], traffic: &Traffic) -> Result<Self> {
        session.memory.keep_loader_buffers(loaders);
        let stored = session.plan.contents.first().cloned();
        let mut group = Self { loaders: Vec::with_capacity(loaders.len()), stored, words: Vec::new(), line: session.context.line() };
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
        group.words = group.checked_words(session);
        Ok(group)
    }

    /// The words that each buffer of loaders that keep checksums will hold: the plan's contents, or random words that differ everywhere.
    fn checked_words(&self, session: &Session<'_>) -> Vec<(Arc<Buffer>, Words)> {
        let mut first_block = 0;
        let mut words: Vec<(Arc<Buffer>, Words)> = Vec::new();
        for loader in self.loaders.iter().filter(|l| l.traffic.form.line == LineUse::Checked) {
            for buffer in [&loader.buffer].into_iter().chain(loader.second.as_ref().map(|(buffer, _)| buffer)) {
                if words.iter().all(|(known, _)| !Arc::ptr_eq(known, buffer)) {
                    words.push((buffer.clone(), Words::lines(&session.plan.contents, session.plan.seed, first_block)));
                    first_block += buffer.len().div_ceil(BLOCK_BYTES) as u64;
                }
            }
        }
        words
    }

    fn words_of(&self, buffer: &Arc<Buffer>) -> Option<&Words> {
        self.words.iter().find(|(known, _)| Arc::ptr_eq(known, buffer)).map(|(_, words)| words)
    }

    /// Writes what loaders compare checksums with to their buffers, and compares all of it; `None` where none does.
    ///
    /// # Errors
    /// When the run must end, or a thread is lost.
    pub(crate) fn write_checked(&self, session: &mut Session<'_>) -> Result<Option<CheckedBuffers>> {
        if self.words.is_empty() || !session.context.platform.keeps_contents() {
            return Ok(None);
        }
        let cpus = |buffer: &Arc<Buffer>| {
            let uses = |l: &&GroupLoader| Arc::ptr_eq(&l.buffer, buffer) || l.second.as_ref().is_some_and(|(b, _)| Arc::ptr_eq(b, buffer));
            self.loaders.iter().filter(uses).map(|l| l.cpu).collect()
        };
        let buffers = self.words.iter().map(|(buffer, words)| (TestedBuffer::new(buffer.clone(), cpus(buffer)), words.clone()));
        let checked = self.loaders.iter().map(|l| &l.traffic).find(|traffic| traffic.form.line == LineUse::Checked);
        let (patterns, hold_s) = checked.map_or((&[][..], 0.0), |traffic| (&traffic.patterns[..], traffic.hold_s));
        CheckedBuffers::begin(session, buffers.collect(), patterns, Duration::from_secs_f64(hold_s)).map(Some)
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

    /// Whether the buffers are too large for the caches. If the machine's lines are longer than what random accesses touch, the windows must be
    /// too large as well: caches still hold the rest of a small window's line when its turn comes.
    pub(crate) fn memory_sized(&self, machine: &Machine) -> bool {
        let window = |l: &GroupLoader| l.traffic.window.filter(|_| self.line.0 > u64::from(LINE));
        let windows = self.loaders.iter().map(|l| window(l).map_or(l.bytes.0, |w| w.0.min(l.bytes.0))).sum();
        limit::memory_sized(&machine.topology, &self.cpus(), self.bytes().min(Bytes(windows)))
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

    /// Whether the plain stores of `kernel`, which all of these loaders run, read lines first. `rounds` are those in which it was compared
    /// with others; `None` where there is nothing to compare it with.
    pub(crate) fn conclude_stores(&self, kernel: &'static Kernel, rounds: Option<(Stores, Vec<Round>)>) -> RfoEvidence {
        let found = match rounds {
            Some((compared, rounds)) => stores::conclude(compared, &rounds),
            None => {
                RfoEvidence { rfo: Rfo::Unknown, reason: RfoReason::NoKernels, kernels: vec![kernel.name.into()], ..RfoEvidence::default() }
            }
        };
        let nodes = self.loaders.iter().flat_map(|l| l.memory.plans()).map(|plan| plan.node).collect();
        RfoEvidence { mix: kernel.mix, cpus: self.cpus(), nodes, ..found }
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
        let contents = Contents { stored: self.stored.as_ref(), words: self.words_of(buffer) };
        let layout = LoadLayout { index, contents, line: self.line, ..LoadLayout::new(kernel, traffic, bytes.0 as usize) };
        let load = Load::new(buffer, layout);
        load.map_err(|why| no_room(*cpu, &why))
    }

    /// Whether the buffers of the loaders with this traffic hold a step of `kernel`.
    pub(crate) fn fits(&self, kernel: &'static Kernel, traffic: &Traffic) -> bool {
        let laid_out = |(index, l): (usize, &GroupLoader)| l.bytes > ANY_KERNEL || self.lay_out(index, kernel, traffic, l.bytes).is_ok();
        self.loaders.iter().enumerate().filter(|(_, l)| l.traffic == *traffic).all(laid_out)
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
                let Some((buffer, percent)) = &l.second else { return Ok((l.cpu, load)) };
                Ok((l.cpu, load.with_second(buffer, *percent, self.words_of(buffer))))
            })
            .collect()
    }

    /// Fresh loads of all loaders over the first `bytes` of their first buffers.
    pub(crate) fn prefix_loads(&self, kernel: impl Fn(usize) -> &'static Kernel, bytes: Bytes) -> Result<Vec<(u32, Load)>> {
        let loaders = self.loaders.iter().enumerate();
        loaders.map(|(index, l)| Ok((l.cpu, self.lay_out(index, kernel(index), &l.traffic, bytes)?))).collect()
    }

    /// Fresh loads of all loaders with another kernel and without delay.
    pub(crate) fn loads_at_full_speed(&self, kernel: &'static Kernel) -> Result<Vec<(u32, Load)>> {
        let mut loads = self.loads_where(|_| kernel, |_| true, 0)?;
        loads.iter_mut().for_each(|(_, load)| load.delay = 0);
        Ok(loads)
    }

    /// The traffic of all loaders, where it is one.
    pub(crate) fn only_traffic(&self) -> Option<&Traffic> {
        let first = &self.loaders.first()?.traffic;
        self.loaders.iter().all(|l| l.traffic == *first).then_some(first)
    }

    /// The longest delay of a loader, where the cell's is `delay`.
    pub(crate) fn longest_delay(&self, delay: u32) -> u32 {
        self.loaders.iter().map(|l| l.delay.unwrap_or(delay)).max().unwrap_or(delay)
    }

    /// Events that the loaders must have caused. Kernels that only store load nothing, and what a string instruction counts as differs
    /// from core to core. `prefix`: how much of their buffers they use, where it is not all.
    pub(crate) fn certain(&self, machine: &Machine, chosen: &ChosenKernels, prefix: Option<Bytes>) -> ExpectedEvents {
        let each = self.loaders.iter().zip(&chosen.kernels).map(|(l, kernel)| {
            let loads = kernel.lines_read_per_iteration() > 0 && kernel.width != Width::String;
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

/// GB/s of all loaders in each window that counts. They are the last threads of their burst.
pub(crate) fn window_gbs(loads: &[Loaded], windows: &BurstWindows, clock: &Clock) -> Vec<f64> {
    // Bytes per nanosecond are GB/s.
    let rate = |(loaded, (ticks, steps)): (&Loaded, &(u64, u64))| *steps as f64 * bytes_per_iteration(&loaded.load) / clock.ns(*ticks);
    let sum = |threads: &Vec<(u64, u64)>| loads.iter().zip(&threads[threads.len() - loads.len()..]).map(rate).sum();
    windows.windows.iter().map(sum).collect()
}

/// Bytes that a bandwidth counts.
fn bytes_per_iteration(load: &Load) -> f64 {
    (lines_per_iteration(load.kernel()) * load.line_bytes().counted) as f64
}

/// The work of one loader in all bursts of a cell.
struct LoaderTotal {
    cpu: u32,
    kernel: &'static Kernel,
    line: LineBytes,
    ticks: u64,
    steps: u64,
}

impl LoaderTotal {
    /// Bytes that the bandwidth counts.
    fn counted(&self) -> f64 {
        (lines_per_iteration(self.kernel) * self.line.counted * self.steps) as f64
    }
}

/// The work of the loaders in all bursts of a cell.
#[derive(Default)]
pub(crate) struct LoadTotals {
    loaders: Vec<LoaderTotal>,
    checked: Option<Checksums>,
    /// Their hardware counters.
    pub(crate) counters: CounterTotals,
}

impl LoadTotals {
    /// Adds what the loaders, the last threads of a burst, did in its windows.
    pub(crate) fn add(&mut self, loads: &[Loaded], windows: &BurstWindows) {
        if self.loaders.is_empty() {
            let new = |l: &Loaded| LoaderTotal { cpu: l.cpu, kernel: l.load.kernel(), line: l.load.line_bytes(), ticks: 0, steps: 0 };
            self.loaders = loads.iter().map(new).collect();
        }
        for threads in &windows.windows {
            for (total, (ticks, steps)) in self.loaders.iter_mut().zip(&threads[threads.len() - loads.len()..]) {
                total.ticks += ticks;
                total.steps += steps;
            }
        }
        // Loads count for as long as they live, which is all bursts of a cell.
        let sum = loads.iter().filter_map(|l| l.load.checked());
        self.checked = sum.reduce(|a, b| Checksums { passes: a.passes + b.passes, mismatches: a.mismatches + b.mismatches });
    }

    /// Slowest loader's rate over the fastest's.
    fn fairness(&self) -> Option<f64> {
        if self.loaders.len() < 2 || self.loaders.iter().any(|l| l.ticks == 0) {
            return None;
        }
        let rates = self.loaders.iter().map(|l| l.counted() / l.ticks as f64);
        let (slowest, fastest) = rates.fold((f64::MAX, 0.0f64), |(slowest, fastest), r| (slowest.min(r), fastest.max(r)));
        (fastest > 0.0).then(|| slowest / fastest)
    }

    /// Splits a bandwidth of all loaders by what they read and wrote. `plain`: what plain stores of whole lines do. `in_memory`: whether the
    /// buffers are too large for caches; otherwise nothing is said of the bus.
    pub(crate) fn traffic(&self, gbs: f64, plain: StoresRead, in_memory: bool) -> TrafficRates {
        let (mut read, mut written, mut moved) = (0.0, 0.0, 0.0);
        let mut found = Vec::new();
        for LoaderTotal { kernel, line, steps, .. } in &self.loaders {
            let (loads, stores) = (kernel.lines_read_per_iteration() * steps, kernel.lines_written_per_iteration() * steps);
            let reads_first = plain.of_kernel(kernel, line.partial());
            let fetched = if reads_first.0 == Rfo::Yes { stores } else { 0 };
            read += (loads * line.counted) as f64;
            written += (stores * line.counted) as f64;
            moved += ((loads + stores + fetched) * line.moved) as f64;
            found.push(reads_first);
        }
        // One loader whose stores are unknown makes the whole unknown.
        let first = |rfo: Rfo| found.iter().find(|f| f.0 == rfo).copied();
        let no = || found.iter().find(|f| f.1.is_some()).copied();
        let (rfo, rfo_reason) = first(Rfo::Unknown).or_else(|| first(Rfo::Yes)).or_else(no).unwrap_or((Rfo::No, None));
        let all = read + written;
        let part = |bytes: f64| if all > 0.0 { gbs * bytes / all } else { 0.0 };
        let bus_estimate_gbs = (in_memory && rfo != Rfo::Unknown).then(|| part(moved));
        TrafficRates { app_read_gbs: part(read), app_write_gbs: part(written), bus_estimate_gbs, rfo, rfo_reason }
    }

    /// The evidence that a measured group's results share. It lacks the evidence on the memory, which takes a while to read.
    pub(crate) fn evidence(&self, group: &LoaderGroup, chosen: &ChosenKernels, ns: impl Fn(u64) -> f64) -> Evidence {
        let rate = |l: &LoaderTotal| (l.ticks > 0).then(|| (l.cpu, l.counted() / ns(l.ticks)));
        Evidence {
            threads: group.loaders.len() as u32,
            kernel: chosen.name(),
            kernels_tried: chosen.tried.clone(),
            kernel_chosen_busy: chosen.busy,
            buffer: group.bytes(),
            allocations: 1,
            fairness: self.fairness(),
            gbs_by_cpu: self.loaders.iter().filter_map(rate).collect::<BTreeMap<u32, f64>>(),
            checksums: self.checked,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use memgauge_kernels as kernels;
    use memgauge_model::experiment::PageRequest;
    use memgauge_model::plan::BufferPlan;
    use memgauge_model::traffic::{Access, LineUse, Mix};

    use super::*;
    use crate::burst::result::Loaded;
    use crate::burst::windows::Trace;

    fn plan() -> BufferPlan {
        BufferPlan::plain(Bytes::mib(1), 0, PageRequest::Auto)
    }

    fn load() -> Load {
        let kernel = kernels::all().iter().find(|k| k.mix == Mix::AllReads && k.form.is_plain()).unwrap();
        let buffer = Arc::new(Buffer::allocate(&plan(), std::path::Path::new("/")).unwrap());
        Load::new(&buffer, LoadLayout::new(kernel, &Traffic::default(), 1 << 20)).unwrap()
    }

    const LINE_64: LineBytes = LineBytes { counted: 64, moved: 64 };

    #[test]
    fn reads_that_stores_cause_are_on_the_bus_and_not_in_the_applications_bytes() {
        let kernel = |mix: Mix| kernels::all().iter().find(|k| k.mix == mix && k.form.is_plain() && k.width != Width::String).unwrap();
        let totals = |kernels: &[&'static Kernel]| LoadTotals {
            loaders: kernels
                .iter()
                .zip(0..)
                .map(|(kernel, cpu)| LoaderTotal { cpu, kernel, line: LINE_64, ticks: 100, steps: 1000 })
                .collect(),
            ..LoadTotals::default()
        };
        let plain = |rfo| StoresRead { rfo, reason: RfoReason::AsSlowAsParts };
        let bus = |mix: Mix, rfo, in_memory| {
            let totals = totals(&[kernel(mix)]);
            totals.traffic(30.0, plain(rfo), in_memory).bus_estimate_gbs
        };
        assert_eq!(bus(Mix::R1W1, Rfo::Yes, true), Some(60.0));
        assert_eq!(bus(Mix::R2W1, Rfo::Yes, true), Some(45.0), "one load and one store of the program");
        assert_eq!(bus(Mix::R1W1, Rfo::No, true), Some(30.0));
        assert_eq!(bus(Mix::R1W1, Rfo::Unknown, true), None);
        assert_eq!(bus(Mix::AllReads, Rfo::Unknown, true), Some(30.0));
        assert_eq!(bus(Mix::NtWrite, Rfo::Yes, true), Some(30.0));
        assert_eq!(bus(Mix::AllReads, Rfo::No, false), None, "a cache's bytes cross no bus");
        let mixed = totals(&[kernel(Mix::AllReads), kernel(Mix::R1W1)]);
        assert_eq!(mixed.traffic(30.0, plain(Rfo::Yes), true).rfo, Rfo::Yes);
        assert_eq!(mixed.traffic(30.0, plain(Rfo::Unknown), true).bus_estimate_gbs, None);
        let part = kernels::all().iter().find(|k| k.form.line == LineUse::Part && k.mix == Mix::R1W1).unwrap();
        assert_eq!(plain(Rfo::No).of_kernel(part, false).0, Rfo::Yes);
        assert_eq!(plain(Rfo::No).at_delay(100).rfo, Rfo::Unknown, "cores may avoid reading only when memory is busy");
        assert_eq!(plain(Rfo::Yes).at_delay(100).rfo, Rfo::Yes);
        // Nothing, not what rounding leaves.
        assert_eq!(totals(&[kernel(Mix::AllReads); 3]).traffic(50.241_479_856_357, plain(Rfo::No), true).app_write_gbs, 0.0);
        let delayed = totals(&[kernel(Mix::AllReads)]).traffic(30.0, plain(Rfo::No).at_delay(100), true);
        assert_eq!((delayed.rfo, delayed.rfo_reason), (Rfo::No, None), "no stores");
    }

    #[test]
    fn lines_that_are_longer_than_what_is_touched_cross_the_bus_whole() {
        let rates = |mix: Mix, access: Access, line: LineBytes| {
            let kernel = kernels::all().iter().find(|k| k.mix == mix && k.form.access == access && k.form.line == LineUse::Whole).unwrap();
            let loaders = vec![LoaderTotal { cpu: 0, kernel, line, ticks: 100, steps: 1000 }];
            let plain = StoresRead { rfo: Rfo::No, reason: RfoReason::AsFastAsNonTemporal };
            let rates = LoadTotals { loaders, ..LoadTotals::default() }.traffic(30.0, plain, true);
            (rates.bus_estimate_gbs, rates.rfo)
        };
        let long = |moved| LineBytes { counted: 64, moved };
        assert_eq!(rates(Mix::AllReads, Access::Random, long(128)), (Some(60.0), Rfo::No));
        assert_eq!(rates(Mix::AllReads, Access::Strided, long(256)), (Some(120.0), Rfo::No));
        assert_eq!(rates(Mix::R1W1, Access::Random, long(128)), (Some(120.0), Rfo::Yes), "half a line is stored: the rest is read");
        assert_eq!(rates(Mix::R1W1, Access::Random, LINE_64), (Some(30.0), Rfo::No));
        let non_temporal = kernels::all().iter().any(|k| k.mix == Mix::NtWrite);
        assert!(!non_temporal || rates(Mix::NtWrite, Access::Strided, long(128)) == (None, Rfo::Unknown));
    }

    /// Loaders that store, on no machine in particular.
    fn storing(cpus: u32, node: u32) -> LoaderGroup {
        let buffer = Arc::new(Buffer::allocate(&plan(), std::path::Path::new("/")).unwrap());
        let plan = BufferPlan { node, ..plan() };
        let loader = |cpu| GroupLoader {
            cpu,
            buffer: buffer.clone(),
            bytes: plan.bytes,
            second: None,
            memory: LoaderMemory::planned(&Loader { cpu, buffer: plan.clone(), own: None }),
            traffic: Traffic { mix: Mix::R1W1, ..Traffic::default() },
            delay: None,
        };
        LoaderGroup { loaders: (0..cpus).map(loader).collect(), stored: None, words: Vec::new(), line: Bytes(64) }
    }

    /// A machine whose cores stop reading what they overwrite when eight of them make memory busy, as Intel's SpecI2M does.
    #[test]
    fn what_few_cpus_do_is_not_said_of_many() {
        let Some(kernel) = kernels::available().filter(|k| k.mix == Mix::R1W1 && k.form.is_plain()).max_by_key(|k| k.width) else { return };
        if stores::compared_with(kernel).is_none() {
            return;
        }
        let (mut known, mut bursts) = (stores::KnownStores::default(), 0);
        let mut bus = |cpus: u32, node: u32| {
            let group = storing(cpus, node);
            let measure = |kernel: &'static Kernel| {
                bursts += 1;
                let reads = !kernel.mix.non_temporal() && (kernel.form.line == LineUse::Part || cpus < 8);
                Ok((Some(if reads { 50.0 } else { 100.0 }), true))
            };
            let class = group.trial_key(group.only_traffic().unwrap(), &Topology::default());
            let read = known.find(&class, kernel).unwrap_or_else(|| {
                let compared = stores::compared_with(kernel).unwrap();
                let rounds = stores::measure_rounds(compared, measure).unwrap();
                known.add(class, kernel, group.conclude_stores(kernel, Some((compared, rounds))))
            });
            let loaders = (0..cpus).map(|cpu| LoaderTotal { cpu, kernel, line: LINE_64, ticks: 100, steps: 1000 }).collect();
            let rates = LoadTotals { loaders, ..LoadTotals::default() }.traffic(30.0, read, true);
            (rates.bus_estimate_gbs, rates.rfo_reason, bursts)
        };
        assert_eq!(bus(2, 0), (Some(60.0), Some(RfoReason::AsSlowAsParts), 12));
        assert_eq!(bus(8, 0), (Some(30.0), Some(RfoReason::AsFastAsNonTemporal), 24));
        assert_eq!(bus(2, 0), (Some(60.0), Some(RfoReason::AsSlowAsParts), 24), "the same loaders again");
        assert_eq!(bus(2, 1).2, 36, "other memory");
        let measured: Vec<_> = known.evidence.iter().map(|e| (e.cpus.len(), e.nodes.clone())).collect();
        assert_eq!(measured, [(2, IdSet::one(0)), (8, IdSet::one(0)), (2, IdSet::one(1))]);
    }

    #[test]
    fn bandwidth_is_the_sum_of_all_loaders_beside_a_chase() {
        let (load, clock) = (load(), Clock::calibrate(std::path::Path::new("/")));
        let loads: Vec<Loaded> = (0..2).map(|cpu| Loaded { cpu, trace: Trace::default(), load: load.clone() }).collect();
        // Two windows of a chase and two loaders.
        let windows = vec![vec![(90, 1), (100, 1000), (100, 1000)], vec![(90, 1), (100, 1000), (400, 1000)]];
        let windows = BurstWindows { windows, clean: true, ..BurstWindows::default() };
        let scale = bytes_per_iteration(&load) / clock.ns(1);
        let gbs: Vec<f64> = window_gbs(&loads, &windows, &clock).iter().map(|gbs| gbs / scale).collect();
        assert!((gbs[0] - 20.0).abs() < 1e-9 && (gbs[1] - 12.5).abs() < 1e-9, "{gbs:?}");
        let mut totals = LoadTotals::default();
        totals.add(&loads, &windows);
        assert_eq!(totals.fairness(), Some(0.4));
    }
}
