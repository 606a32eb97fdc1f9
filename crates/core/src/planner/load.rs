//! What loaders do: mixes, kernels that can produce them, and what single threads were given to do.

use std::collections::{BTreeMap, BTreeSet};

use crate::directory::MemoryDir;
use crate::experiment::Coordinates;
use crate::plan::{BufferPlan, Cell, KernelRow, Loader, OwnTraffic, Traffic, Work};
use crate::planner::context::Planner;
use crate::planner::error::PlanError;
use crate::planner::sizes::approximately;
use crate::spec::{BandwidthShape, BufferPlace, Task, ThreadSpec, WidthRequest};
use crate::traffic::{Access, Form, LineUse, Mix, Width};
use crate::units::{Bytes, IdSet};

/// Delays that a search tries, in core cycles between bursts of four lines. A core at 10 GB/s and 3 GHz takes some 80 cycles for a burst;
/// longer delays can only lose bandwidth, shorter ones thin the queue at the controllers.
pub(super) const SEARCH_DELAYS: [u32; 5] = [0, 10, 25, 50, 80];
/// Bytes of a cache line on every instruction set here: strides are multiples of it.
const LINE: u64 = 64;

impl Planner<'_> {
    /// Whether the parts of what was asked of traffic go together.
    pub(super) fn check_traffic(&self) -> Result<(), PlanError> {
        let requested = &self.spec.traffic;
        let wrong = |why: String| Err(PlanError::Request(why));
        if let Some(stride) = requested.stride.filter(|s| s.0 < LINE || s.0 % LINE != 0) {
            return wrong(format!("a stride of {stride} is not a multiple of {LINE} B"));
        }
        if requested.window.is_some() && requested.access != Access::Random {
            return wrong("a random window needs random access".into());
        }
        if requested.stride.is_some() && requested.access == Access::Random {
            return wrong("random access has no stride; leave one of them out".into());
        }
        if requested.line != LineUse::Whole && (requested.access == Access::Random || requested.stride.is_some_and(|s| s.0 > LINE)) {
            return wrong("only traffic that visits every line in order can touch parts of lines, write them back or sum them up".into());
        }
        let reads = |mix: &Mix| *mix == Mix::AllReads;
        let writes = self.spec.mixes.iter().find(|m| !reads(m)).copied();
        let peak = matches!(self.spec.task, Task::Suite | Task::Bandwidth(BandwidthShape::Peak | BandwidthShape::Search));
        let writes = writes.or((peak && self.spec.mixes.is_empty()).then_some(Mix::R1W1));
        match writes {
            Some(mix) if requested.shared => wrong(format!("loaders that share one buffer can only read it; the mix {mix} writes")),
            Some(mix) if requested.line == LineUse::Checked => {
                wrong(format!("a checksum needs data that nobody changes; the mix {mix} writes"))
            }
            _ => Ok(()),
        }
    }

    /// The form in which a mix is asked for, and the mix that has it.
    fn form(&self, mix: Mix, access: Access) -> (Form, Mix) {
        let requested = &self.spec.traffic;
        let strided = access == Access::Sequential && requested.stride.is_some_and(|s| s.0 > LINE);
        let form = Form::new(mix, if strided { Access::Strided } else { access }, requested.line);
        (form, if access == Access::Random { mix.with_one_read_stream() } else { mix })
    }

    /// The mixes asked for, or these.
    pub(super) fn mixes(&self, default: &[Mix]) -> Result<Vec<Mix>, PlanError> {
        let requested = if self.spec.mixes.is_empty() { default } else { &self.spec.mixes };
        let runnable = |m: &Mix| self.kernels.is_empty() || !self.candidates(*m, self.spec.traffic.access).is_empty();
        let mixes: Vec<Mix> = requested.iter().copied().filter(runnable).collect();
        match requested.iter().find(|m| !runnable(m)) {
            Some(missing) if !self.spec.mixes.is_empty() || mixes.is_empty() => {
                Err(PlanError::Request(self.no_kernel(*missing, self.spec.traffic.access)))
            }
            _ => Ok(mixes),
        }
    }

    fn no_kernel(&self, mix: Mix, access: Access) -> String {
        let widths: BTreeSet<&str> = self.matching_kernels(mix, access).map(|k| k.width.name()).collect();
        match self.spec.width {
            WidthRequest::Is(width) if !widths.is_empty() => {
                let widths: Vec<&str> = widths.into_iter().collect();
                format!("this CPU has no {width} kernel for the mix {mix}; it has {}: use one of these or --width best", widths.join(", "))
            }
            _ => {
                let (form, mix) = self.form(mix, access);
                let others: BTreeSet<&str> = self.kernels.iter().filter(|k| k.form == form).map(|k| k.mix.name()).collect();
                let kind = form_name(form);
                if others.is_empty() {
                    format!("this CPU has no kernel for {kind}")
                } else {
                    let others: Vec<&str> = others.into_iter().collect();
                    format!("this CPU has no kernel for {kind} with the mix {mix}; it has {}", others.join(", "))
                }
            }
        }
    }

    /// Kernels of other forms are other measurements.
    fn matching_kernels(&self, mix: Mix, access: Access) -> impl Iterator<Item = &KernelRow> {
        let (form, mix) = self.form(mix, access);
        self.kernels.iter().filter(move |k| k.mix == mix && k.form == form)
    }

    fn candidates(&self, mix: Mix, access: Access) -> Vec<String> {
        self.matching_kernels(mix, access)
            .filter(|k| match self.spec.width {
                WidthRequest::Best => true,
                // The fill mix exists only as a string instruction; a width asked for beside it means the other mixes.
                WidthRequest::Is(width) => k.width == width || (mix == Mix::Fill && k.width == Width::String),
            })
            .map(|k| k.name.clone())
            .collect()
    }

    /// What loaders of a mix do.
    pub(super) fn traffic(&self, mix: Mix) -> Result<Traffic, PlanError> {
        self.traffic_with_access(mix, self.spec.traffic.access)
    }

    fn traffic_with_access(&self, mix: Mix, access: Access) -> Result<Traffic, PlanError> {
        let kernels = self.candidates(mix, access);
        if kernels.is_empty() && !self.kernels.is_empty() {
            return Err(PlanError::Request(self.no_kernel(mix, access)));
        }
        let (form, mix) = self.form(mix, access);
        let requested = &self.spec.traffic;
        Ok(Traffic {
            mix,
            kernels,
            form,
            stride: requested.stride.filter(|_| form.access == Access::Strided && form.line == LineUse::Whole),
            window: requested.window.filter(|_| form.access == Access::Random),
        })
    }

    /// A step's title with what is unusual in its traffic.
    pub(super) fn titled(&self, title: &str) -> String {
        let requested = &self.spec.traffic;
        let mut title = title.to_owned();
        let form = self.form(Mix::R1W1, requested.access).0;
        if let (true, Some(stride)) = (form.access == Access::Strided && form.line == LineUse::Whole, requested.stride) {
            title = format!("{title}, one line every {stride}");
        } else if let (Access::Random, Some(window)) = (form.access, requested.window) {
            title = format!("{title}, random access in windows of {window}");
        } else if !form.is_plain() {
            title = format!("{title}, {}", form_name(form));
        }
        if requested.shared { format!("{title}, one buffer for all") } else { title }
    }

    /// Loaders on `cpus` with memory on `node`, or each on its own node.
    pub(super) fn loaders(&mut self, cpus: &[u32], node: Option<u32>, reserved: u64) -> Result<Vec<Loader>, PlanError> {
        if self.spec.traffic.shared {
            let first = cpus.first().copied().unwrap_or(0);
            let home = (first, node.unwrap_or_else(|| self.local_node(first)));
            let one = self.sizes.loader_buffers(&[home], reserved, &mut self.notes)?;
            let Some(Loader { buffer, .. }) = one.into_iter().next() else { return Ok(Vec::new()) };
            let buffer = BufferPlan { shared: true, ..buffer };
            return Ok(cpus.iter().map(|&cpu| Loader { cpu, buffer: buffer.clone(), own: None }).collect());
        }
        let homes: Vec<(u32, u32)> = cpus.iter().map(|&cpu| (cpu, node.unwrap_or_else(|| self.local_node(cpu)))).collect();
        self.sizes.loader_buffers(&homes, reserved, &mut self.notes)
    }

    /// A bandwidth cell at each delay that was asked for.
    pub(super) fn delayed(&self, cell: Cell) -> Vec<Cell> {
        if self.spec.delays.is_empty() {
            return vec![cell];
        }
        self.spec.delays.iter().map(|&delay| with_delay(cell.clone(), delay)).collect()
    }

    /// Numbers of CPUs that a search tries: all of them, one thread of each core, three quarters and half of those.
    pub(super) fn search_cpu_sets(&self, order: &[u32]) -> Vec<Vec<u32>> {
        let cores = self.machine.topology.one_per_core(&self.cpus).len();
        let counts: BTreeSet<usize> = [order.len(), cores, cores * 3 / 4, cores / 2].into_iter().filter(|n| *n > 0).collect();
        // `order` has one thread of each core before second threads.
        counts.into_iter().rev().map(|n| order[..n.min(order.len())].to_vec()).collect()
    }

    /// The threads that were given what to do, without a chase beside them.
    pub(super) fn threads_alone(&mut self) -> Result<Vec<Cell>, PlanError> {
        let loaders = self.threads(0, &IdSet::new())?;
        let at = Coordinates { cpus: Some(loaders.iter().map(|l| l.cpu).collect()), ..Default::default() };
        let traffic = loaders.first().and_then(|l| l.own.as_ref()).map(|own| own.traffic.clone()).unwrap_or_default();
        Ok(self.delayed(Cell::new(at, Work::Bandwidth { loaders, traffic, delay: 0 })))
    }

    /// The threads that were given what to do, beside `beside` bytes of a chase on `chaser`.
    pub(super) fn threads(&mut self, reserved: u64, chaser: &IdSet) -> Result<Vec<Loader>, PlanError> {
        let mut loaders: Vec<Loader> = Vec::new();
        for thread in &self.spec.traffic.threads {
            super::check::check_cpus(&thread.cpus, self.machine)?;
            let twice: IdSet = loaders.iter().map(|l| l.cpu).chain(chaser.iter()).collect::<IdSet>().intersection(&thread.cpus);
            if !twice.is_empty() {
                return Err(PlanError::Request(format!("CPU {twice} is given two things to do; name each CPU once")));
            }
            for cpu in thread.cpus.iter() {
                loaders.push(self.thread(thread, cpu, reserved)?);
            }
        }
        self.check_room(&loaders, reserved)?;
        Ok(loaders)
    }

    fn thread(&mut self, thread: &ThreadSpec, cpu: u32, reserved: u64) -> Result<Loader, PlanError> {
        let buffer = |planner: &mut Self, place: &BufferPlace| -> Result<BufferPlan, PlanError> {
            let node = match place {
                BufferPlace::Node(node) => {
                    super::check::check_nodes(&IdSet::one(*node), planner.machine)?;
                    *node
                }
                BufferPlace::Local | BufferPlace::Directory(_) => planner.local_node(cpu),
            };
            let directory = match place {
                BufferPlace::Directory(dir) => Some(dir.as_ref()),
                _ => None,
            };
            planner.sizes.thread_buffer(cpu, node, thread.size, directory, reserved)
        };
        let first = buffer(self, &thread.place)?;
        let second = thread.second.as_ref().map(|second| Ok((buffer(self, &second.place)?, second.percent))).transpose()?;
        if let Some((_, percent)) = second.as_ref().filter(|(_, percent)| !(1..=99).contains(percent)) {
            return Err(PlanError::Request(format!("{percent} % of the accesses to a second buffer: it is 1 to 99")));
        }
        let (second, second_percent) = second.map_or((None, 0), |(buffer, percent)| (Some(buffer), percent));
        let traffic = self.traffic_with_access(thread.mix, thread.access)?;
        Ok(Loader { cpu, buffer: first, own: Some(Box::new(OwnTraffic { traffic, delay: thread.delay, second, second_percent })) })
    }

    /// Sizes of given threads are mostly asked for: all of them together must fit, on each node, in each directory and in all.
    fn check_room(&self, loaders: &[Loader], reserved: u64) -> Result<(), PlanError> {
        let allowed = &self.machine.allowed;
        let mut on_node: BTreeMap<u32, u64> = BTreeMap::new();
        let mut in_directory: BTreeMap<&str, u64> = BTreeMap::new();
        for buffer in loaders.iter().flat_map(Loader::buffers) {
            match &buffer.directory {
                Some(path) => *in_directory.entry(path).or_default() += buffer.bytes.0,
                None => *on_node.entry(buffer.node).or_default() += buffer.bytes.0,
            }
        }
        let check = |taken: u64, room: u64, place: &str, limited_by: &str| {
            if taken <= room {
                return Ok(());
            }
            Err(PlanError::Unavailable(format!(
                "the threads' buffers take {}{place} together, more than the {} that may be taken (limited by {limited_by}); give smaller sizes",
                Bytes(taken),
                approximately(room),
            )))
        };
        for (node, taken) in &on_node {
            // Pages of a pool are not among what is free.
            let room = allowed.node_memory.get(node).map_or(u64::MAX, |b| b.0.saturating_add(self.sizes.in_pool(*node)));
            check(*taken, room, &format!(" on node {node}"), "free memory there")?;
        }
        for dir in self.thread_directories() {
            let taken = in_directory.get(dir.file.path.as_str()).copied().unwrap_or(0);
            check(taken, dir.capacity(), &format!(" in {}", dir.file.path), &dir.limited_by())?;
        }
        let pools: u64 = on_node.keys().map(|node| self.sizes.in_pool(*node)).sum();
        let room = allowed.memory.0.saturating_sub(reserved).saturating_add(pools);
        check(on_node.values().sum(), room, "", &allowed.memory_limited_by)
    }

    /// Directories in which threads' buffers are.
    pub(super) fn thread_directories(&self) -> Vec<MemoryDir> {
        let mut all: Vec<MemoryDir> = Vec::new();
        for thread in &self.spec.traffic.threads {
            for place in [Some(&thread.place), thread.second.as_ref().map(|s| &s.place)].into_iter().flatten() {
                if let BufferPlace::Directory(dir) = place
                    && all.iter().all(|known| known.file.path != dir.file.path)
                {
                    all.push(dir.as_ref().clone());
                }
            }
        }
        all
    }
}

/// The cell with a delay between bursts.
pub(super) fn with_delay(mut cell: Cell, cycles: u32) -> Cell {
    if let Work::Bandwidth { delay, .. } = &mut cell.work {
        *delay = cycles;
    }
    cell.at.delay_cycles = Some(cycles);
    cell
}

/// What a form is, for people.
fn form_name(form: Form) -> &'static str {
    match (form.access, form.line) {
        (Access::Sequential, LineUse::Whole) => "sequential access",
        (Access::Strided, LineUse::Whole) => "strided access",
        (Access::Random, _) => "random access",
        (_, LineUse::Part) => "parts of lines",
        (_, LineUse::WrittenBack) => "lines written back after each store",
        (_, LineUse::Checked) => "checksums of what is read",
    }
}
