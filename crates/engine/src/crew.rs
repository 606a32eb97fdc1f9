//! The loaders of a cell: their memory, the kernels that short trials found fastest for them, and what their bursts say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use memgauge_core::counters::ExpectedEvents;
use memgauge_core::directory::FileEvidence;
use memgauge_core::plan::{BufferPlan, Loader, Traffic};
use memgauge_core::result::{Checksums, Evidence, PageEvidence, Placement, TrafficRates, Trial};
use memgauge_core::stats;
use memgauge_core::topology::Machine;
use memgauge_core::traffic::{LineUse, Mix, Rfo, Width};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels::{self as kernels, Kernel, LINE};
use memgauge_linux::memory::Buffer;

use crate::burst::BurstResult;
use crate::counting::{Sheet, certain};
use crate::load::{Checked, Load};
use crate::pages::combined_pages;
use crate::session::{CellError, SETTLE_WINDOWS, Session};

/// Rounds of a trial; each kernel runs once a round, so that a slow moment does not decide against one of them.
pub(crate) const TRIAL_ROUNDS: usize = 3;
/// How far behind the best a kernel may be to be tried again, by the rounds so far: short bursts scatter by 5 % and seldom by 20 %.
const MARGINS: [f64; 3] = [1.0, 0.2, 0.07];
/// Counted windows of a kernel in a round.
const TRIAL_WINDOWS: usize = 2;

/// A loader with its memory.
pub(crate) struct Member {
    pub(crate) cpu: u32,
    buffer: Arc<Buffer>,
    bytes: Bytes,
    /// Where its memory is, for the trials: each buffer's place, and the percent of the accesses that the second gets.
    lies: String,
    traffic: Traffic,
    /// Instead of the cell's.
    delay: Option<u32>,
    /// A second buffer, and the percent of the accesses that go there.
    second: Option<(Arc<Buffer>, u32)>,
}

/// Loaders with their memory.
pub(crate) struct Crew {
    members: Vec<Member>,
}

/// The kernels that won trials.
#[derive(Clone)]
pub(crate) struct Choice {
    /// Each member's.
    pub(crate) kernels: Vec<&'static Kernel>,
    /// What else was tried for the first member's traffic.
    pub(crate) tried: Vec<Trial>,
}

impl Choice {
    /// Names of the kernels, each once.
    pub(crate) fn name(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for kernel in &self.kernels {
            if !names.contains(&kernel.name) {
                names.push(kernel.name);
            }
        }
        names.join(" + ")
    }
}

impl Crew {
    pub(crate) fn cpus(&self) -> IdSet {
        self.members.iter().map(|m| m.cpu).collect()
    }

    pub(crate) fn first_cpu(&self) -> u32 {
        self.members.first().map_or(0, |m| m.cpu)
    }

    /// Buffers, each once.
    pub(crate) fn buffers(&self) -> Vec<(&Arc<Buffer>, Bytes)> {
        let mut all: Vec<(&Arc<Buffer>, Bytes)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for member in &self.members {
            for buffer in [&member.buffer].into_iter().chain(member.second.iter().map(|(b, _)| b)) {
                if seen.insert(Arc::as_ptr(buffer)) {
                    all.push((buffer, member.bytes));
                }
            }
        }
        all
    }

    /// Each member's CPU and first buffer.
    pub(crate) fn memory(&self) -> impl Iterator<Item = (u32, &Arc<Buffer>, Bytes)> {
        self.members.iter().map(|m| (m.cpu, &m.buffer, m.bytes))
    }

    /// What members are certain to have caused. Kernels that only store load nothing, and what a string instruction counts as is each
    /// core's own business.
    pub(crate) fn certain(&self, machine: &Machine, choice: &Choice) -> ExpectedEvents {
        self.certain_of(machine, choice, |m| m.bytes)
    }

    /// The same where each of them uses the first `size` bytes of its buffer.
    pub(crate) fn certain_over(&self, machine: &Machine, choice: &Choice, size: Bytes) -> ExpectedEvents {
        self.certain_of(machine, choice, |_| size)
    }

    fn certain_of(&self, machine: &Machine, choice: &Choice, bytes: impl Fn(&Member) -> Bytes) -> ExpectedEvents {
        let each = self.members.iter().zip(&choice.kernels).map(|(m, kernel)| {
            let loads = kernel.lines_read_per_step() > 0 && kernel.width != Width::String;
            let found = certain(machine, m.cpu, bytes(m), loads);
            if loads { found } else { ExpectedEvents::default() }
        });
        let both = |a: ExpectedEvents, b: ExpectedEvents| ExpectedEvents {
            loads: a.loads || b.loads,
            l1_missed: a.l1_missed || b.l1_missed,
            l2_missed: a.l2_missed || b.l2_missed,
            llc_missed: a.llc_missed || b.llc_missed,
        };
        each.reduce(both).unwrap_or_default()
    }

    /// Pages of all buffers, where they are now, and the file that they are.
    pub(crate) fn lies(&self) -> (PageEvidence, Placement, Option<FileEvidence>) {
        let buffers = self.buffers();
        (
            combined_pages(buffers.iter().map(|(b, bytes)| (b.pages(), *bytes))),
            Placement::combined(buffers.iter().map(|(b, _)| b.placement_now())),
            buffers.first().and_then(|(b, _)| b.file().cloned()),
        )
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.buffers().iter().map(|(_, bytes)| bytes.0).sum()
    }
}

/// GB/s of all loaders in each counted window in which every one of them looked at the clock. Where CPUs are shared with others (a
/// host with fewer CPUs than its guests) there may be none: the whole burst is then the one sample, and its coverage says how much it is worth.
pub(crate) fn window_gbs(burst: &BurstResult, ns: impl Fn(u64) -> f64, windows: usize) -> Vec<f64> {
    let rate = |load: &Load, (ticks, steps): (u64, u64)| (steps > 0).then(|| steps as f64 * bytes_per_step(load.kernel()) / ns(ticks));
    // Bytes per nanosecond are GB/s.
    let common: Vec<f64> = (SETTLE_WINDOWS..SETTLE_WINDOWS + windows)
        .filter_map(|w| burst.loads.iter().map(|l| l.trace.window(w).and_then(|t| rate(&l.load, t))).sum::<Option<f64>>())
        .collect();
    if !common.is_empty() {
        return common;
    }
    burst.loads.iter().map(|l| l.trace.whole().and_then(|t| rate(&l.load, t))).sum::<Option<f64>>().into_iter().collect()
}

/// Bytes of the lines that a step loads and stores: lines are what memory moves, also where a part of each is touched.
fn bytes_per_step(kernel: &Kernel) -> f64 {
    ((kernel.lines_read_per_step() + kernel.lines_written_per_step()) * u64::from(LINE)) as f64
}

impl Session<'_> {
    /// Memory for loaders: what the last cell used where it is what this one wants.
    pub(crate) fn crew(&mut self, loaders: &[Loader], traffic: &Traffic) -> Result<Crew, CellError> {
        self.shelf.retain(|(cpu, _), (plan, _)| loaders.iter().any(|l| l.cpu == *cpu && l.buffers().any(|b| b == plan)));
        let mut members: Vec<Member> = Vec::new();
        for loader in loaders {
            let buffer = self.shelved(loader.cpu, 0, &loader.buffer)?;
            let own = loader.own.as_deref();
            let second = match own.and_then(|own| own.second.as_ref().map(|plan| (plan, own.second_percent))) {
                Some((plan, percent)) => Some((self.shelved(loader.cpu, 1, plan)?, percent)),
                None => None,
            };
            members.push(Member {
                cpu: loader.cpu,
                buffer,
                bytes: loader.buffer.bytes,
                lies: lies(loader),
                traffic: own.map_or(traffic, |own| &own.traffic).clone(),
                delay: own.and_then(|own| own.delay),
                second,
            });
        }
        Ok(Crew { members })
    }

    /// A loader's first or second buffer.
    fn shelved(&mut self, cpu: u32, place: u8, plan: &BufferPlan) -> Result<Arc<Buffer>, CellError> {
        if let Some((_, buffer)) = self.shelf.get(&(cpu, place)).filter(|(on_shelf, _)| on_shelf == plan) {
            return Ok(buffer.clone());
        }
        let shared = self.shelf.values().find(|(on_shelf, _)| plan.shared && on_shelf == plan).map(|(_, buffer)| buffer.clone());
        let buffer = match shared {
            Some(buffer) => buffer,
            None => {
                let buffer = self.allocate(plan)?;
                self.fill(&buffer);
                buffer
            }
        };
        self.shelf.insert((cpu, place), (plan.clone(), buffer.clone()));
        Ok(buffer)
    }

    /// Writes the plan's contents, again and again.
    fn fill(&self, buffer: &Buffer) {
        let contents = &self.plan.contents;
        if contents.is_empty() {
            return;
        }
        for (at, line) in (0..buffer.len() / LINE as usize).zip(contents.iter().cycle()) {
            // SAFETY: line `at` lies inside the buffer, which is mapped and writable, and no thread uses it yet.
            unsafe { buffer.as_ptr().add(at * LINE as usize).copy_from_nonoverlapping(line.0.as_ptr(), line.0.len()) };
        }
    }

    /// Fresh loads of all members, or of those chosen by `which`.
    fn loads_of(
        &self,
        crew: &Crew,
        kernel: impl Fn(usize) -> &'static Kernel,
        which: impl Fn(&Member) -> bool,
        delay: u32,
    ) -> Result<Vec<(u32, Load)>, CellError> {
        let members = crew.members.iter().enumerate().filter(|(_, m)| which(m));
        members
            .map(|(index, m)| {
                let load = self.lay_out(index, (m.cpu, &m.buffer, m.bytes), kernel(index), &m.traffic)?;
                let load = load.with_delay(m.delay.unwrap_or(delay));
                Ok((m.cpu, if let Some((buffer, percent)) = &m.second { load.with_second(buffer, *percent) } else { load }))
            })
            .collect()
    }

    /// Fresh loads of all members over the first `bytes` of their buffers.
    pub(crate) fn prefix_loads(
        &self,
        crew: &Crew,
        kernel: impl Fn(usize) -> &'static Kernel,
        bytes: Bytes,
    ) -> Result<Vec<(u32, Load)>, CellError> {
        let members = crew.members.iter().enumerate();
        members.map(|(index, m)| Ok((m.cpu, self.lay_out(index, (m.cpu, &m.buffer, bytes), kernel(index), &m.traffic)?))).collect()
    }

    /// A kernel over so many bytes of a buffer, for the member of this index on this CPU.
    pub(crate) fn lay_out(
        &self,
        index: usize,
        (cpu, buffer, bytes): (u32, &Arc<Buffer>, Bytes),
        kernel: &'static Kernel,
        traffic: &Traffic,
    ) -> Result<Load, CellError> {
        let load = Load::new(kernel, traffic, buffer, bytes.0 as usize, index, self.plan.contents.first());
        load.map_err(|why| CellError::Cannot(format!("CPU {cpu}: {why}")))
    }

    /// Fresh loads of all members.
    pub(crate) fn loads(&self, crew: &Crew, choice: &Choice, delay: u32) -> Result<Vec<(u32, Load)>, CellError> {
        self.loads_of(crew, |index| choice.kernels[index], |_| true, delay)
    }

    /// The fastest of the plan's kernels for each traffic, by all members that do it.
    pub(crate) fn choose(&mut self, crew: &Crew) -> Result<Choice, CellError> {
        let mut winners: Vec<(&Traffic, &'static Kernel)> = Vec::new();
        let mut choice = Choice { kernels: Vec::new(), tried: Vec::new() };
        for member in &crew.members {
            let known = winners.iter().find(|(traffic, _)| **traffic == member.traffic).map(|(_, kernel)| *kernel);
            let kernel = match known {
                Some(kernel) => kernel,
                None => {
                    let (kernel, tried) = self.fastest(crew, &member.traffic)?;
                    if winners.is_empty() {
                        choice.tried = tried;
                    }
                    winners.push((&member.traffic, kernel));
                    kernel
                }
            };
            choice.kernels.push(kernel);
        }
        Ok(choice)
    }

    fn fastest(&mut self, crew: &Crew, traffic: &Traffic) -> Result<(&'static Kernel, Vec<Trial>), CellError> {
        let candidates: Vec<&'static Kernel> =
            traffic.kernels.iter().filter_map(|name| kernels::find(name)).filter(|k| k.supported()).collect();
        let cpus: IdSet = crew.members.iter().filter(|m| m.traffic == *traffic).map(|m| m.cpu).collect();
        let mut lies: Vec<&str> = crew.members.iter().filter(|m| m.traffic == *traffic).map(|m| m.lies.as_str()).collect();
        lies.dedup();
        let key = format!("{traffic:?} {cpus} {} {}", crew.bytes(), lies.join(" "));
        if let Some(known) = self.winners.get(&key) {
            return Ok(known.clone());
        }
        let clock = self.clock();
        let mut rates = vec![Vec::new(); candidates.len()];
        let rounds = if candidates.len() > 1 { TRIAL_ROUNDS } else { 0 };
        let (begun, measured) = (Instant::now(), self.measuring());
        for round in 0..rounds {
            let still = contenders(&rates, round);
            for ((kernel, rates), _) in candidates.iter().zip(&mut rates).zip(still).filter(|(_, still)| *still) {
                let loads = self.loads_of(crew, |_| kernel, |m| m.traffic == *traffic, 0)?;
                let burst = self.burst(None, loads, TRIAL_WINDOWS)?;
                rates.extend(stats::median(&window_gbs(&burst, |t| clock.ns(t), TRIAL_WINDOWS)));
                if self.interrupted() {
                    return Err(CellError::Interrupted);
                }
            }
        }
        // Choosing is setting up.
        self.stages.trials += begun.elapsed();
        self.set_measuring(measured);
        let won = winner(&candidates, &rates, traffic.mix)?;
        self.winners.insert(key, won.clone());
        Ok(won)
    }
}

/// Where a loader's memory is: what may make another kernel the fastest.
fn lies(loader: &Loader) -> String {
    let of = |b: &BufferPlan| format!("node {} {:?} {:?} shared {}", b.node, b.directory, b.pages, b.shared);
    let second = loader.own.as_deref().and_then(|own| Some((own.second.as_ref()?, own.second_percent)));
    format!("{}{}", of(&loader.buffer), second.map(|(b, percent)| format!(" and {percent} % {}", of(b))).unwrap_or_default())
}

/// Which kernels are worth another round, given their rates in `rounds` of them. Disturbances only slow a kernel down, so the best of its
/// rates counts, and the margin shrinks as there are more of them.
fn contenders(rates: &[Vec<f64>], rounds: usize) -> Vec<bool> {
    let best: Vec<f64> = rates.iter().map(|r| r.iter().copied().fold(0.0, f64::max)).collect();
    let most = best.iter().copied().fold(0.0, f64::max);
    let margin = MARGINS.get(rounds).copied().unwrap_or(0.0);
    best.iter().map(|b| *b >= most * (1.0 - margin)).collect()
}

/// The kernel with the highest median rate, and those of all; the first where none was tried.
pub(crate) fn winner(candidates: &[&'static Kernel], rates: &[Vec<f64>], mix: Mix) -> Result<(&'static Kernel, Vec<Trial>), CellError> {
    let tried: Vec<Trial> = candidates
        .iter()
        .zip(rates)
        .filter_map(|(kernel, rates)| Some(Trial { kernel: kernel.name.into(), value: stats::median(rates)? }))
        .collect();
    let best = tried.iter().max_by(|a, b| a.value.total_cmp(&b.value)).map(|t| t.kernel.as_str());
    let kernel = candidates.iter().find(|k| best.is_none_or(|name| k.name == name)).copied();
    let kernel = kernel.ok_or_else(|| CellError::Cannot(format!("this CPU runs none of the kernels planned for the mix {mix}")))?;
    Ok((kernel, tried))
}

/// What the members did in all bursts of a cell, member by member.
#[derive(Default)]
pub(crate) struct Deeds {
    /// CPU, kernel, ticks, steps.
    members: Vec<(u32, &'static Kernel, u64, u64)>,
    checked: Option<Checked>,
    /// What their hardware counters showed.
    pub(crate) loaded: Sheet,
    /// And those of a chase beside them.
    pub(crate) chased: Sheet,
}

impl Deeds {
    pub(crate) fn add(&mut self, burst: &BurstResult) {
        if self.members.is_empty() {
            self.members = burst.loads.iter().map(|l| (l.cpu, l.load.kernel(), 0, 0)).collect();
        }
        for (member, loaded) in self.members.iter_mut().zip(&burst.loads) {
            let (ticks, steps) = loaded.trace.whole().unwrap_or_default();
            (member.2, member.3) = (member.2 + ticks, member.3 + steps);
        }
        // Loads count for as long as they live, which is all bursts of a cell.
        let sum = burst.loads.iter().filter_map(|l| l.load.checked());
        self.checked = sum.reduce(|a, b| Checked { passes: a.passes + b.passes, mismatches: a.mismatches + b.mismatches });
    }

    /// Slowest loader's rate over the fastest's.
    fn fairness(&self) -> Option<f64> {
        if self.members.len() < 2 || self.members.iter().any(|m| m.2 == 0) {
            return None;
        }
        let rates = self.members.iter().map(|(_, kernel, ticks, steps)| *steps as f64 * bytes_per_step(kernel) / *ticks as f64);
        let (least, most) = rates.fold((f64::MAX, 0.0f64), |(least, most), r| (least.min(r), most.max(r)));
        (most > 0.0).then(|| least / most)
    }

    /// Splits a bandwidth of all members by what they read and wrote. `rfo`: whether plain stores of whole lines read first. `in_memory`:
    /// whether the buffers are too large for caches; otherwise nothing is said of the bus.
    pub(crate) fn traffic(&self, gbs: f64, rfo: Rfo, in_memory: bool) -> TrafficRates {
        let lines = |count: fn(&Kernel) -> u64| self.members.iter().map(|m| (count(m.1) * m.3) as f64).sum::<f64>();
        let (read, written) = (lines(Kernel::lines_read_per_step), lines(Kernel::lines_written_per_step));
        let (all, mut fetched) = (read + written, 0.0);
        let mut rfos = Vec::new();
        for (_, kernel, _, steps) in &self.members {
            let reads_first = stores_read(kernel, rfo);
            if reads_first == Rfo::Yes {
                fetched += (kernel.lines_written_per_step() * steps) as f64;
            }
            rfos.push(reads_first);
        }
        // Of several members' traffic the least known one decides.
        let rfo = [Rfo::Unknown, Rfo::Yes].into_iter().find(|r| rfos.contains(r)).unwrap_or(Rfo::No);
        let part = |lines: f64| if all > 0.0 { gbs * lines / all } else { 0.0 };
        let bus_estimate_gbs = (in_memory && rfo != Rfo::Unknown).then(|| gbs + part(fetched));
        TrafficRates { app_read_gbs: part(read), app_write_gbs: gbs - part(read), bus_estimate_gbs, rfo }
    }

    /// What a crew's results have in common, once it has measured.
    pub(crate) fn evidence(&self, crew: &Crew, choice: &Choice, ns: impl Fn(u64) -> f64) -> Evidence {
        let (pages, placement, file) = crew.lies();
        Evidence { pages, placement, file, ..self.own_evidence(crew, choice, ns) }
    }

    /// The same without what is known of the memory, which takes a while to look up.
    pub(crate) fn own_evidence(&self, crew: &Crew, choice: &Choice, ns: impl Fn(u64) -> f64) -> Evidence {
        let rate = |(cpu, kernel, ticks, steps): &(u32, &Kernel, u64, u64)| {
            (*ticks > 0).then(|| (*cpu, *steps as f64 * bytes_per_step(kernel) / ns(*ticks)))
        };
        Evidence {
            threads: crew.members.len() as u32,
            kernel: choice.name(),
            kernels_tried: choice.tried.clone(),
            buffer: Bytes(crew.bytes()),
            allocations: 1,
            fairness: self.fairness(),
            gbs_by_cpu: self.members.iter().filter_map(rate).collect::<BTreeMap<u32, f64>>(),
            checksums: self.checked.map(|c| Checksums { passes: c.passes, mismatches: c.mismatches }),
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
    use super::*;

    #[test]
    fn a_trial_is_of_where_the_memory_is() {
        let buffer = |node| BufferPlan {
            bytes: Bytes::mib(1),
            node,
            pages: PageRequest::Auto,
            touch: IdSet::one(node),
            derived: false,
            directory: None,
            shared: false,
        };
        let loader = |buffer, own| Loader { cpu: 3, buffer, own };
        let plain = lies(&loader(buffer(0), None));
        assert_eq!(plain, lies(&Loader { cpu: 4, ..loader(buffer(0), None) }), "the CPUs are told apart by the set of them");
        let second = |node, second_percent| {
            let own = OwnTraffic { traffic: Traffic::default(), delay: None, second: Some(buffer(node)), second_percent };
            lies(&loader(buffer(0), Some(Box::new(own))))
        };
        let others = [
            lies(&loader(buffer(1), None)),
            lies(&loader(BufferPlan { pages: PageRequest::Base, ..buffer(0) }, None)),
            lies(&loader(BufferPlan { directory: Some("/mnt/pmem".into()), ..buffer(0) }, None)),
            second(0, 50),
            second(1, 50),
            second(1, 20),
        ];
        let different: std::collections::BTreeSet<_> = others.iter().chain([&plain]).collect();
        assert_eq!(different.len(), others.len() + 1, "{different:?}");
    }

    #[test]
    fn kernels_far_behind_are_not_tried_again() {
        let rates = [vec![10.0], vec![7.9], vec![8.1], vec![]];
        assert_eq!(contenders(&rates, 0), [true; 4], "nothing is known before the first round");
        assert_eq!(contenders(&rates, 1), [true, false, true, false]);
        assert_eq!(contenders(&[vec![10.0, 6.0], vec![7.0, 9.4], vec![9.2, 9.2]], 2), [true, true, false], "the best of each counts");
        assert_eq!(contenders(&[vec![], vec![]], 1), [true, true], "a round without any rate says nothing");
    }
    use crate::burst::Loaded;
    use crate::burst::Trace;
    use crate::team::Disturbance;
    use memgauge_core::experiment::PageRequest;
    use memgauge_core::plan::OwnTraffic;

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

    fn rates(traces: Vec<Trace>) -> Vec<f64> {
        let load = load();
        let bytes = bytes_per_step(load.kernel());
        let loads = traces.into_iter().map(|trace| Loaded { cpu: 0, trace, load: load.clone() }).collect();
        let burst = BurstResult { chase: None, loads, disturbance: Disturbance::default(), coverage: None, stolen: None };
        window_gbs(&burst, |ticks| ticks as f64, 2).iter().map(|gbs| gbs / bytes).collect()
    }

    /// Ten steps a tick; windows of 100 ticks.
    fn steady() -> Vec<Option<(u64, u64)>> {
        (0..4).map(|w| Some((w * 100, w * 1000))).collect()
    }

    #[test]
    fn windows_in_which_all_looked_count() {
        assert_eq!(rates(vec![Trace::of(steady()), Trace::of(steady())]), [20.0, 20.0]);
        let mut late = steady();
        late[3] = None;
        assert_eq!(rates(vec![Trace::of(steady()), Trace::of(late)]), [20.0]);
    }

    #[test]
    fn reads_that_stores_cause_are_on_the_bus_and_not_in_the_applications_bytes() {
        let of = |mix: Mix| kernels::all().iter().find(|k| k.mix == mix && k.form.is_plain() && k.width != Width::String).unwrap();
        let bus = |mix: Mix, rfo, in_memory| {
            let deeds = Deeds { members: vec![(0, of(mix), 100, 1000)], checked: None, loaded: Sheet::default(), chased: Sheet::default() };
            deeds.traffic(30.0, rfo, in_memory).bus_estimate_gbs
        };
        assert_eq!(bus(Mix::R1W1, Rfo::Yes, true), Some(60.0));
        assert_eq!(bus(Mix::R2W1, Rfo::Yes, true), Some(45.0), "one load and one store of the program");
        assert_eq!(bus(Mix::R1W1, Rfo::No, true), Some(30.0));
        assert_eq!(bus(Mix::R1W1, Rfo::Unknown, true), None);
        assert_eq!(bus(Mix::AllReads, Rfo::Unknown, true), Some(30.0));
        assert_eq!(bus(Mix::NtWrite, Rfo::Yes, true), Some(30.0));
        assert_eq!(bus(Mix::AllReads, Rfo::No, false), None, "a cache's bytes cross no bus");
        let mixed = Deeds {
            members: vec![(0, of(Mix::AllReads), 100, 1000), (1, of(Mix::R1W1), 100, 1000)],
            checked: None,
            loaded: Sheet::default(),
            chased: Sheet::default(),
        };
        assert_eq!(mixed.traffic(30.0, Rfo::Yes, true).rfo, Rfo::Yes);
        assert_eq!(mixed.traffic(30.0, Rfo::Unknown, true).bus_estimate_gbs, None);
        let part = kernels::all().iter().find(|k| k.form.line == LineUse::Part && k.mix == Mix::R1W1).unwrap();
        assert_eq!(stores_read(part, Rfo::No), Rfo::Yes);
    }

    #[test]
    fn threads_that_never_looked_together_leave_one_sample() {
        // On a host with fewer CPUs than its guest a thread may look only when it starts and when all is over.
        let rare = vec![Some((0, 0)), None, None, Some((400, 1000))];
        assert_eq!(rates(vec![Trace::of(steady()), Trace::of(rare)]), [12.5]);
        let never = vec![None, None, None, Some((400, 0))];
        assert!(rates(vec![Trace::of(steady()), Trace::of(never)]).is_empty());
    }
}
