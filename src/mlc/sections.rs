//! Letters → sections: a section is the output under one heading, with the [`Spec`] of each measurement for it.

use std::path::Path;
use std::time::Duration;

use memgauge_model::directory::MemoryDir;
use memgauge_model::distribution::least_batch;
use memgauge_model::experiment::{ChaseOrder, Hops, LineState, PageRequest};
use memgauge_model::plan::KernelRow;
use memgauge_model::spec::{
    BandwidthShape, BandwidthSpec, ChaseSpec, LatencyShape, LatencySpec, LoadedSpec, ScanSpec, Spec, Task, TrafficSpec, TransferShape,
    TransferSpec,
};
use memgauge_model::tiers;
use memgauge_model::topology::{Machine, OperatingSystem, PagePool};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_render::mlc::Wording;

use super::files;
use super::letters::{Letters, Mode};

/// Seconds of a point without `-t`, as scripts expect.
const DEFAULT_SECONDS: f64 = 2.0;
/// The delays of a curve without `-d` and `-g`.
pub(crate) const DELAYS: [u32; 19] = [0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20000];
/// Mixes of the peak table, in the order of its rows.
const PEAK: [Mix; 5] = [Mix::AllReads, Mix::R3W1, Mix::R2W1, Mix::R1W1, Mix::R2W1Nt];
/// Mixes that have a row in the peak table if `-W` names them.
const PEAK_MORE: [Mix; 3] = [Mix::NtWrite, Mix::R4W1, Mix::R3W2];
/// Lines that a thread loads and stores between two delays, if that is not four as with reads. In public curves (bandwidth less the
/// latency thread's) times delay has these ratios: 2, 2.5, 3 and 8 lines at the memory with -W5, -W4, -W2 and -W3, and half as much again as
/// reads with -W7.
pub(super) const BURST_LINES: [(Mix, f64); 5] =
    [(Mix::R1W1, 1.0), (Mix::R3W2, 1.5), (Mix::R2W1, 2.0), (Mix::R3W1, 6.0), (Mix::R2W1NtX1, 6.0)];
/// Bytes of the blocks that `-D` counts.
const WINDOW_BLOCK: u64 = 128;
/// Blocks without `-D`.
const WINDOW_BLOCKS: u32 = 4096;
/// Bytes of a line, as `-n` counts.
pub(super) const LINE: u64 = 64;
/// The passes of a scan and the width of its buckets, without letters.
const PASSES: u32 = 10;
const BUCKET_MBS: u32 = 5000;

/// The kind of output under one heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SectionKind {
    LatencyMatrix,
    LatencyPerCpu,
    Idle,
    Peak,
    BandwidthMatrix,
    Loaded,
    /// Latency under load without load.
    Unloaded,
    C2c,
    OneTransfer,
    Scan,
}

/// Measurements that are made and printed together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    /// Usually one. If the size of buffers depends on the mix, one for each mix. A scan may have one for each kind of pages.
    pub(crate) specs: Vec<Spec>,
    pub(crate) wording: Wording,
    /// The injection delays of rows that are measured without load, one of each spec.
    pub(crate) delays: Vec<u32>,
    /// Whether a blank line follows. After a curve that is all that is printed there is none: scripts take the last line.
    pub(crate) blank_after: bool,
}

impl Section {
    /// Whether prefetchers would be in its numbers: it chases through memory.
    pub(crate) fn chases(&self) -> bool {
        use SectionKind as K;
        match self.kind {
            K::LatencyMatrix | K::LatencyPerCpu | K::Idle | K::Unloaded => true,
            K::Loaded => self.specs.iter().any(|spec| matches!(spec.task, Task::Loaded(_))),
            K::Peak | K::BandwidthMatrix | K::C2c | K::OneTransfer | K::Scan => false,
        }
    }
}

/// The work that the letters ask for.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Translation {
    pub(crate) sections: Vec<Section>,
    /// Print the two lines about prefetchers: the chase is random because they are on.
    pub(crate) prefetchers_on: bool,
    /// Sections that chase are measured with prefetchers off.
    pub(crate) prefetchers_off: bool,
    /// The operating system that this runs on.
    pub(crate) system: OperatingSystem,
    /// Messages for standard error.
    pub(crate) notes: Vec<String>,
}

impl Translation {
    /// Times batches of loads where the clock advances by `step_ns` at a time, so that a histogram does not show these steps. Returns a note
    /// if that changes anything.
    pub(crate) fn suit_clock(&mut self, step_ns: f64) -> Option<String> {
        let least = least_batch(step_ns);
        let mut changed = false;
        for chase in self.sections.iter_mut().flat_map(|s| &mut s.specs).filter_map(|s| s.task.chase_mut()) {
            let batch = chase.histogram.and_then(|batch| least.map(|least| least.max(batch)));
            changed |= batch != chase.histogram;
            chase.histogram = batch;
        }
        changed.then(|| match least {
            Some(batch) => {
                format!("-f: the clock advances by {step_ns:.1} ns at a time: means of {batch} loads are counted, not single loads")
            }
            None => format!("-f: the clock advances by {step_ns:.0} ns at a time, too coarse for a histogram"),
        })
    }
}

/// The inputs of the translation besides the letters: the machine, its kernels, and access to files.
pub(crate) struct Inputs<'a> {
    pub(crate) machine: &'a Machine,
    /// Kernels of this CPU; empty if they are unknown.
    pub(crate) kernels: &'a [KernelRow],
    /// Prefetchers can be switched off for chases.
    pub(crate) prefetchers_off: bool,
    pub(crate) read: &'a dyn Fn(&Path) -> Result<String, String>,
    pub(crate) directory: &'a dyn Fn(&Path) -> Result<MemoryDir, String>,
}

impl Inputs<'_> {
    pub(super) fn line(&self) -> u64 {
        self.machine.topology.line().0.max(16)
    }

    /// CPU 0 as in the original, or the first that may be used.
    fn first_cpu(&self) -> u32 {
        self.machine.default_cpus().first().unwrap_or(0)
    }
}

/// The meaning of `letters` in `mode`.
///
/// # Errors
/// When a file cannot be read, or its content is wrong.
pub(crate) fn translate(mode: Mode, letters: &Letters, inputs: &Inputs<'_>) -> Result<Translation, String> {
    let mut translator = Translator { letters, inputs, notes: Vec::new() };
    let one = |section| vec![section];
    let sections = match mode {
        Mode::LatencyMatrix => one(translator.latency_matrix()),
        Mode::Idle => one(translator.idle()?),
        Mode::Peak => one(translator.peak(false)?),
        Mode::Max => one(translator.peak(true)?),
        Mode::BandwidthMatrix => one(translator.bandwidth_matrix()?),
        Mode::Loaded => one(Section { blank_after: false, ..translator.loaded()? }),
        Mode::C2c => one(translator.c2c()),
        Mode::Full => {
            vec![
                translator.latency_matrix(),
                translator.peak(false)?,
                translator.bandwidth_matrix()?,
                translator.loaded()?,
                translator.c2c(),
            ]
        }
        Mode::Scan => one(translator.scan()?),
    };
    let switched = !letters.leave_prefetchers && sections.iter().any(Section::chases);
    let off = inputs.prefetchers_off;
    Ok(Translation {
        sections,
        prefetchers_on: switched && !off,
        prefetchers_off: switched && off,
        system: inputs.machine.identity.system,
        notes: translator.notes,
    })
}

/// Translates letters into specs.
pub(super) struct Translator<'a> {
    pub(super) letters: &'a Letters,
    pub(super) inputs: &'a Inputs<'a>,
    notes: Vec<String>,
}

impl Translator<'_> {
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    fn spec(&self, task: Task) -> Spec {
        let l = self.letters;
        let mut spec = Spec::new(task);
        // A number of loads instead of a time is for chases.
        let timed = self.hops().is_none() || matches!(spec.task, Task::Bandwidth(_));
        spec.time = timed.then(|| Duration::from_secs_f64(l.seconds.unwrap_or(DEFAULT_SECONDS)));
        spec.pages = l.pages;
        spec.one_thread_per_core = l.one_thread_per_core;
        spec
    }

    fn section(&self, kind: SectionKind, specs: Vec<Spec>) -> Section {
        let l = self.letters;
        let wording = Wording {
            one_thread_per_core: l.one_thread_per_core,
            large_pages: specs.iter().any(|s| s.pages != PageRequest::Auto),
            searched: false,
            only_reads: l.shared,
            more_mixes: true,
            per_thread: l.per_thread,
            bucket_log2: l.histogram_log2,
        };
        Section { kind, specs, wording, delays: Vec::new(), blank_after: true }
    }

    /// One node, read by its own CPUs, by those of another node, or by some of them.
    fn scan(&self) -> Result<Section, String> {
        let l = self.letters;
        let mut spec = Spec::new(Task::Scan(ScanSpec {
            passes: Some(l.passes.unwrap_or(PASSES).max(1)),
            bucket_gbs: Some(f64::from(l.bucket_mbs.unwrap_or(BUCKET_MBS).max(1)) / 1e3),
            ..ScanSpec::default()
        }));
        let allowed = &self.inputs.machine.allowed;
        let inherited = || allowed.inherited_policy().and_then(|policy| policy.nodes.intersection(&allowed.nodes).first());
        let node = l.node.or_else(inherited).or_else(|| allowed.nodes.first());
        spec.nodes = node.map(IdSet::one);
        let cpu_node = l.cpu_node.or_else(|| l.scan_threads.and(node));
        if let Some(id) = cpu_node {
            let own = self.inputs.machine.topology.node(id).ok_or_else(|| format!("-n{id}: there is no such node"))?;
            let cpus = own.cpus.intersection(&self.inputs.machine.default_cpus());
            let max = l.scan_threads.unwrap_or(usize::MAX);
            let some: IdSet = self.inputs.machine.topology.spread(&cpus).into_iter().take(max.max(1)).collect();
            spec.cpus = Some(some).filter(|some| !some.is_empty());
            if spec.cpus.is_none() && l.cpu_node.is_some() {
                return Err(format!("-n{id}: this node has no CPU that may be used"));
            }
        }
        // As in the original, free 1 GiB pages come first, then other memory.
        let pooled = |pool: &PagePool| pool.page == Bytes::gib(1) && pool.free > 0;
        let large = node.and_then(|id| self.inputs.machine.topology.node(id)).is_some_and(|n| n.pools.iter().any(pooled));
        let first = large.then(|| Spec { pages: PageRequest::Huge1G, ..spec.clone() });
        Ok(self.section(SectionKind::Scan, first.into_iter().chain([spec]).collect()))
    }

    /// The random order is the default where prefetchers are on: it defeats them.
    fn random(&self) -> bool {
        self.letters.random_chase || !(self.letters.leave_prefetchers || self.inputs.prefetchers_off)
    }

    fn order(&self) -> ChaseOrder {
        if self.random() { ChaseOrder::WindowLocal } else { ChaseOrder::Sequential }
    }

    fn chase(&mut self) -> ChaseSpec {
        let l = self.letters;
        let random = self.random();
        let line = self.inputs.line();
        let requested = l.stride.map_or(if random { 2 * LINE } else { LINE }, u64::from);
        let stride = requested.max(1).next_multiple_of(line);
        if l.stride.is_some() && stride != requested {
            self.note(format!("-l{requested}: the chase visits whole lines of {line} B; its stride is {stride}"));
        }
        if l.chase_window_lines.is_some() && !random {
            self.note("-D: no effect on a sequential chase; give -r");
        }
        let max = l.buffer.map_or(u64::MAX, |b| (b.0 / stride).max(2) * stride);
        let window = l.chase_window_lines.filter(|_| random).map(|blocks| Bytes(blocks_of(blocks, stride).0.min(max)));
        // A histogram of single loads. With batches, it would be a histogram of averages.
        let histogram = l.histogram_log2.map(|_| 1);
        ChaseSpec { buffer: l.buffer, stride: Some(Bytes(stride)), window, touch: l.touch, hops: self.hops(), histogram }
    }

    /// A latency with this shape.
    fn latency(&mut self, shape: LatencyShape) -> LatencySpec {
        LatencySpec { shape, chase: self.chase(), orders: vec![self.order()] }
    }

    /// `-x`: a number of loads instead of a time.
    fn hops(&self) -> Option<Hops> {
        self.letters.million_hops.map(|n| if n == 0 { Hops::OnePass } else { Hops::Count(u64::from(n) * 1_000_000) })
    }

    fn latency_matrix(&mut self) -> Section {
        let every_cpu = self.letters.every_cpu;
        let latency = self.latency(if every_cpu { LatencyShape::PerCpu } else { LatencyShape::Matrix });
        let mut spec = self.spec(Task::Latency(latency));
        spec.nodes = every_cpu.then(|| tiers::default_nodes(self.inputs.machine));
        self.section(if every_cpu { SectionKind::LatencyPerCpu } else { SectionKind::LatencyMatrix }, vec![spec])
    }

    fn idle(&mut self) -> Result<Section, String> {
        let l = self.letters;
        let latency = self.latency(if l.every_cpu { LatencyShape::PerCpu } else { LatencyShape::One });
        let mut spec = self.spec(Task::Latency(latency));
        spec.cpus = l.cpu.filter(|_| !l.every_cpu).map(IdSet::one);
        if l.cpu.is_some() && l.every_cpu {
            self.note("-c: no effect with -a, which measures from every CPU");
        }
        if l.one_thread_per_core && !l.every_cpu {
            // The CPU that is named may be a core's second thread.
            self.note("-X: no effect on the latency of one CPU; give -a");
            spec.one_thread_per_core = false;
        }
        spec.keep_awake = l.keep_awake.clone();
        spec.memory_dir = l.directory.as_deref().map(self.inputs.directory).transpose()?;
        if spec.memory_dir.is_some() && spec.pages != PageRequest::Auto {
            self.note("-L, -h: no effect with -J: the file system chooses the pages of its files");
            spec.pages = PageRequest::Auto;
        }
        match l.node {
            Some(_) if l.directory.is_some() => self.note("-j: no effect with -J"),
            Some(node) => {
                spec.nodes = Some(IdSet::one(node));
                if spec.task.chase_mut().and_then(|chase| chase.touch.take()).is_some() {
                    self.note("-i: no effect with -j");
                }
            }
            None => {}
        }
        Ok(self.section(if l.every_cpu { SectionKind::LatencyPerCpu } else { SectionKind::Idle }, vec![spec]))
    }

    /// The buffer of a thread with this mix: `-b` for what it reads, and as much again for what it writes.
    fn buffer(&self, mix: Mix) -> Option<Bytes> {
        let (loads, stores) = mix.lines();
        // One step of 9:1 goes over 40 lines, and the smallest buffers that scripts ask for have 32.
        let step = Bytes(LINE * if mix == Mix::R9W1 { 40 } else { 0 });
        self.letters.buffer.map(|b| if loads > 0 && stores > 0 { Bytes(b.0 * 2).max(step) } else { b })
    }

    /// One spec for all mixes, or one for each if their buffers differ.
    fn by_mix(&mut self, spec: &Spec, shape: &BandwidthShape, mixes: &[Mix]) -> Result<Vec<Spec>, String> {
        // Only plain loads and stores touch parts of lines. Other mixes get a spec that does not.
        let apart = self.letters.buffer.is_some() || self.letters.part_of_line == Some(true);
        let groups: Vec<Vec<Mix>> = if apart { mixes.iter().map(|m| vec![*m]).collect() } else { vec![mixes.to_vec()] };
        let mut specs = Vec::new();
        for group in groups {
            let buffer = group.first().and_then(|m| self.buffer(*m));
            let mut traffic = TrafficSpec { buffer, ..TrafficSpec::default() };
            traffic.load.mixes = group;
            self.traffic(&mut traffic, *shape != BandwidthShape::Matrix)?;
            let task = Task::Bandwidth(BandwidthSpec { shape: shape.clone(), delays: Vec::new(), traffic });
            specs.push(Spec { task, ..spec.clone() });
        }
        Ok(specs)
    }

    fn peak(&mut self, search: bool) -> Result<Section, String> {
        let l = self.letters;
        let shape = if search { BandwidthShape::Search } else { BandwidthShape::Peak };
        let mut spec = self.spec(Task::bandwidth(shape.clone()));
        spec.cpus = l.loaders.clone();
        spec.nodes = l.node.map(IdSet::one);
        let mut mixes = if l.shared { vec![Mix::AllReads] } else { PEAK.to_vec() };
        match l.mix {
            Some(mix) if PEAK_MORE.contains(&mix) && !l.shared => mixes.push(mix),
            Some(_) if l.shared => self.note("-W: no effect with -u, which only reads"),
            Some(_) => self.note("-W: no effect here: the table has its own mixes, and additional rows for 4, 6 and 12 only"),
            None => {}
        }
        let specs = self.by_mix(&spec, &shape, &mixes)?;
        let mut section = self.section(SectionKind::Peak, specs);
        section.wording.searched = search;
        Ok(section)
    }

    fn bandwidth_matrix(&mut self) -> Result<Section, String> {
        let spec = self.spec(Task::bandwidth(BandwidthShape::Matrix));
        let specs = self.by_mix(&spec, &BandwidthShape::Matrix, &[self.letters.mix.unwrap_or_default()])?;
        Ok(self.section(SectionKind::BandwidthMatrix, specs))
    }

    fn loaded(&mut self) -> Result<Section, String> {
        let l = self.letters;
        let mut spec = self.spec(if l.bandwidth_only { Task::bandwidth(BandwidthShape::One) } else { Task::loaded() });
        let mut loaded = LoadedSpec::default();
        loaded.curve.delays = match (l.delay, &l.delay_file) {
            (Some(delay), _) => vec![delay],
            (None, Some(path)) => files::delays(&(self.inputs.read)(path)?).map_err(|why| format!("{}: {why}", path.display()))?,
            (None, None) => DELAYS.to_vec(),
        };
        spec.cpus = l.loaders.clone();
        // The lines of -o say where the memory of traffic is.
        spec.nodes = l.node.filter(|_| l.threads.is_none()).map(IdSet::one);
        loaded.traffic.burst_lines = BURST_LINES.into();
        let mut mix = l.mix.unwrap_or_default();
        if mix != Mix::AllReads && (l.shared || l.checked) {
            self.note("-W: no effect with -u or -I, which only read");
            mix = Mix::AllReads;
        }
        loaded.traffic.load.mixes = vec![mix];
        loaded.traffic.buffer = self.buffer(mix);
        spec.start_signal = l.signal.clone();
        let latency_cpu = (!l.bandwidth_only).then(|| l.cpu.unwrap_or(self.inputs.first_cpu()));
        if l.bandwidth_only {
            for (given, letter) in [
                (l.cpu.is_some(), "-c"),
                (l.touch.is_some(), "-i"),
                (l.node.is_some() && l.threads.is_some(), "-j"),
                (l.histogram_log2.is_some(), "-f"),
                (l.random_chase, "-r"),
                (l.million_hops.is_some(), "-x"),
                (l.chase_window_lines.is_some(), "-D"),
            ] {
                if given {
                    self.note(format!("{letter}: no effect with -T, which measures no latency"));
                }
            }
        } else {
            (loaded.chase, loaded.order) = (self.chase(), Some(self.order()));
            loaded.curve.node = l.node;
            if l.node.is_some() && loaded.chase.touch.take().is_some() {
                self.note("-i: no effect with -j");
            }
            if l.cpu.is_some() || l.loaders.is_some() || l.threads.is_some() {
                loaded.curve.cpu = latency_cpu;
            }
        }
        let pmem = self.threads(&mut spec, &mut loaded, latency_cpu)?;
        if l.threads.is_some() && loaded.traffic.threads.is_empty() {
            return Ok(self.unloaded(spec, loaded));
        }
        self.traffic(&mut loaded.traffic, true)?;
        self.flush(&mut loaded.traffic, pmem);
        let per_thread = l.per_thread || !loaded.traffic.threads.is_empty();
        spec.task = if l.bandwidth_only {
            Task::Bandwidth(BandwidthSpec { shape: BandwidthShape::One, delays: loaded.curve.delays, traffic: loaded.traffic })
        } else {
            Task::Loaded(loaded)
        };
        let mut section = self.section(SectionKind::Loaded, vec![spec]);
        section.wording.per_thread = per_thread;
        Ok(section)
    }

    /// `-o` with a line for the latency CPU alone: what `loaded` would measure, without load.
    fn unloaded(&mut self, spec: Spec, loaded: LoadedSpec) -> Section {
        let delays = loaded.curve.delays;
        if self.letters.checked {
            self.note("-I: no effect: no CPU makes traffic, so nothing is checked");
        }
        if delays.len() > 1 {
            self.note("-o: no CPU makes traffic, so that injection delays have no effect: each row is the latency without load");
        }
        let latency = LatencySpec { shape: LatencyShape::One, chase: loaded.chase, orders: loaded.order.into_iter().collect() };
        let spec =
            Spec { task: Task::Latency(latency), cpus: loaded.curve.cpu.map(IdSet::one), nodes: loaded.curve.node.map(IdSet::one), ..spec };
        let specs = vec![spec; delays.len()];
        Section { delays, ..self.section(SectionKind::Unloaded, specs) }
    }

    fn c2c(&mut self) -> Section {
        let l = self.letters;
        let pair = l.cpu.is_some() || l.writer.is_some();
        let stride = 2 * self.inputs.line();
        let mut transfer = TransferSpec {
            shape: if pair { TransferShape::Representatives } else { TransferShape::NodeMatrix },
            sharer: l.sharer,
            buffer: l.buffer,
            window: l.transfer_window.map(|w| Bytes((w.0 / stride).max(2) * stride)),
            hops: self.hops(),
            holder_pushes: l.writer_pushes,
            reader_pushes: l.reader_pushes,
            ..TransferSpec::default()
        };
        if pair {
            transfer.touch = l.touch;
        } else if l.touch.is_some() {
            self.note("-i: no effect on the matrix, which has a buffer for each node; give -c and -w");
        }
        let blocks = l.chase_window_lines.or(l.random_chase.then_some(WINDOW_BLOCKS));
        transfer.chase_window = blocks.map(|blocks| blocks_of(blocks, stride));
        if l.clean {
            transfer.states = vec![LineState::Hit];
        } else if pair {
            transfer.states = vec![LineState::Hitm];
        }
        let mut cpus = None;
        if pair {
            let allowed = self.inputs.machine.default_cpus();
            let other = |than: u32| allowed.iter().find(|&cpu| cpu != than).unwrap_or(than);
            let reader = l.cpu.unwrap_or_else(|| {
                if l.writer == Some(self.inputs.first_cpu()) { other(self.inputs.first_cpu()) } else { self.inputs.first_cpu() }
            });
            let writer = l.writer.unwrap_or_else(|| other(reader));
            (transfer.reader, transfer.holder) = (Some(reader), Some(writer));
            cpus = Some([reader, writer].into_iter().collect());
        }
        // -X does not apply to a pair, and the pairs of the matrix are on different cores anyway.
        let spec = Spec { cpus, one_thread_per_core: false, ..self.spec(Task::C2c(transfer)) };
        self.section(if pair { SectionKind::OneTransfer } else { SectionKind::C2c }, vec![spec])
    }
}

/// The window of a chase of this number of blocks.
fn blocks_of(blocks: u32, stride: u64) -> Bytes {
    Bytes((u64::from(blocks) * WINDOW_BLOCK / stride).max(2) * stride)
}
