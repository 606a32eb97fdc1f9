//! Sizes of buffers: large enough that no cache can hold them, and within the limits on memory.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::directory::MemoryDir;
use memgauge_model::experiment::PageRequest;
use memgauge_model::interleave::Weights;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{BufferPlan, Loader};
use memgauge_model::spec::{Spec, Task};
use memgauge_model::topology::{Cache, Machine, Node, Topology};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording;
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way, Ways};

use crate::check::{PlanError, invalid};
use crate::requested::Requested;
use crate::room::{Reserved, Room, in_turn, pool_bytes};

pub(super) use memgauge_model::reserve::amount as approximately;

/// A buffer of four times the caches that could hold it measures memory. A random reference then hits at most a quarter of the time under
/// any replacement policy, and a cyclic chase under LRU never does (STREAM's rule of 4 x the last-level cache).
const CACHES_TIMES: u64 = 4;
/// The same if the time is short: a random reference hits at most half of the time, a cyclic chase under LRU still never.
const SHORT_CACHES_TIMES: u64 = 2;
/// The same for a memory-side cache, which is direct-mapped (Intel's cache mode): of a buffer eight times as large an eighth is in it.
const MEMORY_SIDE_TIMES: u64 = 8;
/// The smallest derived buffer; covers machines that state no caches (many virtual machines, RISC-V boards).
const MIN_DERIVED: u64 = 64 << 20;
/// The smallest derived buffer of a loader: every stream is then much longer than what prefetchers and TLBs cover.
const MIN_LOADER: u64 = 32 << 20;
/// The fewest bytes that the loaders behind one cache go over if the description of the processor may leave out its last-level cache, in a
/// virtual machine or if no cache is known: twice the largest of today, 504 MB.
const MIN_GUEST_LOADERS: u64 = 1 << 30;
/// But no more than this part of the memory that may be taken.
const GUEST_LOADERS_ONE_IN: u64 = 8;
/// Derived sizes that are not powers of two are multiples of this: whole huge pages, and whole steps of all streams.
pub(super) const STEP: u64 = 4 << 20;
/// The smallest buffer that is made where there is little memory: it leaves the first caches.
pub(super) const LEAST_BUFFER: u64 = 1 << 20;
/// The huge pages of most machines: the unit of memory whose pages are on nodes in turn.
const HUGE_PAGE: u64 = 2 << 20;
/// The smallest buffer of a loader: one step, four bursts of four lines, of most kernels. Which kernels fit into a small buffer is found when
/// their streams are laid out.
const MIN_LOADER_SIZE: Bytes = Bytes::kib(1);
/// The chase window: 128 pages of 4 KiB fit a second-level TLB, and it has far more lines than prefetchers track.
const WINDOW: Bytes = Bytes::kib(512);
/// The largest number of threads that touch one buffer first. Fewer already saturate memory by clearing pages.
const MAX_TOUCHERS: usize = 16;
/// Stands for the nodes of the inherited memory policy on which pages are in turn. No machine has a node with this number.
pub(super) const IN_TURN: u32 = u32::MAX;
/// The transfer window, in bytes, if the size of the holder's L2 is not known.
const HANDOFF_WINDOW: u64 = 128 << 10;

pub(super) struct Sizes<'a> {
    spec: &'a Spec,
    requested: Requested<'a>,
    machine: &'a Machine,
    line: u64,
    /// Computed once, because a plan for 1,024 CPUs uses it a million times.
    caches: BTreeMap<u32, CpuCaches>,
    /// Last-level caches.
    domains: u64,
    touch: BTreeMap<u32, IdSet>,
    /// The weights behind [`IN_TURN`].
    turns: Option<Weights>,
}

/// The caches that one CPU's data may stay in.
#[derive(Default, Clone, Copy)]
struct CpuCaches {
    /// Bytes of its last-level cache and of every L2 in front of that.
    reach: u64,
    /// The first CPU behind the same last-level cache.
    domain: u32,
    /// Its part of its L2.
    l2: Option<u64>,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(spec: &'a Spec, requested: Requested<'a>, machine: &'a Machine, turns: Option<Weights>) -> Self {
        let line = machine.topology.line().0.max(16);
        let touch = machine.topology.nodes.iter().map(|n| (n.id, touchers(machine, n))).collect();
        let caches = cpu_caches(&machine.topology);
        let domains = caches.values().map(|c| c.domain).collect::<BTreeSet<u32>>().len().max(1) as u64;
        Self { spec, requested, machine, line, caches, domains, touch, turns }
    }

    fn caches(&self, cpu: u32) -> CpuCaches {
        self.caches.get(&cpu).copied().unwrap_or(CpuCaches { domain: cpu, ..CpuCaches::default() })
    }

    /// A note about CPUs whose caches are not known: it says what is assumed if the size of buffers follows from them.
    pub(super) fn without_caches(&self, cpus: &IdSet) -> Option<Note> {
        let without: IdSet = cpus.iter().filter(|&cpu| self.caches(cpu).reach == 0).collect();
        let who = if without == self.machine.topology.online() { String::new() } else { format!(" of CPUs {without}") };
        let message = format!(
            "no caches{who} are known: buffers are as large as for caches of at most {}, and numbers may be those of a larger cache",
            Bytes(MIN_DERIVED / CACHES_TIMES)
        );
        let note = || {
            Note::warning(NoteCode::CachesNotKnown, message).advise(words![
                "give ",
                Knob::Size,
                ": four times the processor's last-level cache, or more"
            ])
        };
        // The others' buffers follow from other sizes.
        let derived = self.requested.buffer().is_none() && !matches!(self.spec.task, Task::Scan(_) | Task::Sweep(_));
        (derived && !without.is_empty()).then(note)
    }

    /// The distance between chased lines: two lines by default, because adjacent-line prefetchers fetch pairs.
    pub(super) fn stride(&self) -> Result<Bytes, PlanError> {
        let line = self.line;
        match self.requested.chase.stride {
            None => Ok(Bytes(2 * line)),
            Some(Bytes(s)) if s >= line && s.is_multiple_of(line) => Ok(Bytes(s)),
            Some(s) => invalid(format!("a stride of {s} is not a multiple of the {line} B cache line")),
        }
    }

    /// The chase window, no larger than the buffer.
    pub(super) fn window(&self, buffer: Bytes, stride: Bytes) -> Result<Bytes, PlanError> {
        let derived = || Bytes((WINDOW.0 / stride.0).max(2).saturating_mul(stride.0));
        let window = whole_strides(self.requested.chase.window.unwrap_or_else(derived), stride)?;
        if self.requested.chase.window.is_some() && window > buffer {
            return invalid(Problem::new(
                format!("the window of {window} is larger than the buffer of {buffer}"),
                Way::Smaller(Knob::Window).either_or(words!["a larger ", Knob::Size]),
            ));
        }
        Ok(window.min(buffer))
    }

    /// The transfer window: half of the holder's L2, so that it stays there while it is handed over, and at most half of the buffer, so
    /// that the next window is a different one.
    pub(super) fn handoff_window(&self, named: Option<Bytes>, holder: u32, stride: Bytes, buffer: Bytes) -> Result<Bytes, PlanError> {
        if let Some(window) = named {
            let window = whole_strides(window, stride)?;
            if window.0 > buffer.0 / 2 {
                return invalid(Problem::new(
                    format!("a window of {window} is too large for a buffer of {buffer}, which must hold two of them"),
                    Way::Larger(Knob::Size).either_or(words!["a smaller ", Knob::Window]),
                ));
            }
            return Ok(window);
        }
        let half = self.caches(holder).l2.map_or(HANDOFF_WINDOW, |l2| floor_power_of_two(l2 / 2));
        let window = half.max(64 * stride.0).next_multiple_of(stride.0);
        let largest = buffer.0 / 2 / stride.0 * stride.0;
        if largest < 2 * stride.0 {
            return invalid(Problem::new(
                format!("a buffer of {buffer} is too small for transfers of lines {stride} apart"),
                Way::Larger(Knob::Size),
            ));
        }
        Ok(Bytes(window.min(largest)))
    }

    /// Whether lines that a CPU has read may still be in its own caches one lap over the buffer later.
    pub(super) fn may_hold(&self, cpu: u32, buffer: Bytes, stride: Bytes) -> bool {
        buffer.0 / stride.0 * self.line < self.caches(cpu).reach
    }

    fn buffer_in(&self, room: &Room, bytes: Bytes, node: u32, derived: bool) -> BufferPlan {
        let buffer = self.buffer(bytes, node, derived);
        BufferPlan { pages: if buffer.pages == PageRequest::Auto { room.pages(bytes.0) } else { buffer.pages }, ..buffer }
    }

    pub(super) fn buffer(&self, bytes: Bytes, node: u32, derived: bool) -> BufferPlan {
        let directory = self.spec.memory_dir.as_ref().map(|d| d.file.path.clone());
        let weights = self.turns_at(node).cloned();
        let node = weights.as_ref().and_then(|weights| weights.nodes().first()).unwrap_or(node);
        BufferPlan {
            bytes,
            node,
            pages: self.spec.pages,
            touch: self.touch.get(&node).cloned().unwrap_or_default(),
            derived,
            directory,
            shared: false,
            weights,
            leave_pools: matches!(self.spec.task, Task::Quick(_)) && self.spec.pages == PageRequest::Auto,
        }
    }

    /// The weights with which pages of memory on this node are on several in turn.
    fn turns_at(&self, node: u32) -> Option<&Weights> {
        self.turns.as_ref().filter(|_| node == IN_TURN)
    }

    /// Whether a chase that is random over all of a buffer has more lines than the layout can number.
    pub(super) const fn too_long(&self, buffer: Bytes) -> bool {
        buffer.0 / self.line > u32::MAX as u64
    }

    /// How many times its size a working set is spread over, if its lines are `stride` apart.
    pub(super) fn spread(&self, stride: Bytes) -> u64 {
        stride.0 / self.line
    }

    /// The most bytes on a node, the place in words, and what limits them; `None` if nothing does.
    fn node_limit(&self, node: u32) -> Option<(u64, String, String)> {
        let allowed = &self.machine.allowed;
        if let Some(weights) = self.turns_at(node) {
            let (bytes, tightest) = in_turn(allowed, weights)?;
            return Some((bytes.0, wording::nodes(&weights.nodes()), allowed.limit_of_node(tightest)));
        }
        Some((allowed.node_memory.get(&node)?.0, format!("node {node}"), allowed.limit_of_node(node)))
    }

    /// The memory that each of `in_all` buffers may use, `on_node` of them on `node`, in addition to what is reserved. Files of tmpfs and
    /// in the page cache use both memory and the file system, files with DAX the file system only.
    fn room(&self, node: u32, reserved: Reserved<'_>, on_node: u64, in_all: u64) -> Room {
        let allowed = &self.machine.allowed;
        let of_all = allowed.room().saturating_sub(reserved.in_all()) / in_all;
        let on = |bytes: u64| bytes.saturating_sub(reserved.on(node)) / on_node;
        let memory = match self.node_limit(node).map(|(bytes, place, by)| (on(bytes), place, by)) {
            Some((bytes, place, limited_by)) if bytes < of_all => Room { bytes, place, limited_by, pool: None },
            limit => {
                let place = limit.map_or_else(|| format!("node {node}"), |(_, place, _)| place);
                Room { bytes: of_all, place, limited_by: allowed.memory_limited_by.clone(), pool: None }
            }
        };
        let Some(dir) = &self.spec.memory_dir else {
            // Pages of a pool are not part of the free memory.
            let bytes = memory.bytes + self.in_pool(node) / on_node;
            return Room { bytes, pool: self.pool_beside(node, reserved.on(node), on_node), ..memory };
        };
        let free = if self.requested.buffer().is_some() { dir.capacity() } else { dir.room() };
        let bytes = free.saturating_sub(reserved.in_all()) / in_all;
        if dir.is_dax() || bytes < memory.bytes { Room::in_directory(dir, bytes) } else { memory }
    }

    /// The pages of a pool to take if free memory is too small for a buffer and no pages were asked for, and the bytes that each of `on_node`
    /// buffers may have of them. A health check leaves pools to those for whom they were made.
    fn pool_beside(&self, node: u32, reserved: u64, on_node: u64) -> Option<(PageRequest, u64)> {
        if self.spec.pages != PageRequest::Auto || matches!(self.spec.task, Task::Quick(_)) {
            return None;
        }
        let of_pool = |pages: PageRequest| {
            let page = self.machine.pool_page(pages)?;
            let pool = self.machine.topology.node(node)?.pools.iter().find(|pool| pool.page == page)?;
            // Each buffer takes whole pages.
            let free = pool.free.saturating_sub(reserved.div_ceil(page.0));
            Some((pages, free / on_node * page.0)).filter(|(_, bytes)| *bytes > 0)
        };
        [PageRequest::Huge2M, PageRequest::Huge1G].into_iter().filter_map(of_pool).max_by_key(|(_, bytes)| *bytes)
    }

    /// Free bytes of the pool that the requested pages come from.
    pub(super) fn in_pool(&self, node: u32) -> u64 {
        let free = |node: u32| self.machine.topology.node(node).map_or(0, |node| pool_bytes(node, self.spec.pages));
        let in_turn = |weights: &Weights| weights.iter().map(|(node, _)| (free(node) as f64 / weights.share(node)) as u64).min();
        self.turns_at(node).map_or_else(|| free(node), |weights| in_turn(weights).unwrap_or(0))
    }

    fn too_much(&self, requested: u64, what: &str, room: &Room, node: u32) -> PlanError {
        let Room { place, limited_by, .. } = room;
        let most = room.most();
        // A smaller size helps only if one is possible.
        let less = if most >= LEAST_BUFFER { Way::Smaller(Knob::Size) } else { format!("free memory on {place}").into() };
        let of_pool = self
            .pool_for(requested, node)
            .map(|(pages, _)| words!["take free pages of node {node}'s pool with ", Knob::Pages, format!(" {}", pages.name())]);
        let advice = of_pool.into_iter().fold(Ways::from(less), Ways::or);
        let (requested, room) = (Bytes(requested), approximately(most));
        PlanError::Unavailable(Problem::new(
            format!("{what} of {requested} on {place} is more than the {room} that may be taken there (limited by {limited_by})"),
            advice,
        ))
    }

    /// The pages of a pool of the node that could hold one buffer of this size.
    pub(super) fn pool_for(&self, bytes: u64, node: u32) -> Option<(PageRequest, u64)> {
        let node = self.machine.topology.node(node).filter(|_| self.spec.pages.pool_page().is_none() && self.spec.memory_dir.is_none())?;
        let fits = |pages: &PageRequest| self.machine.pool_page(*pages).is_some() && pool_bytes(node, *pages) >= bytes;
        [PageRequest::Huge2M, PageRequest::Huge1G].into_iter().find(fits).map(|pages| (pages, pool_bytes(node, pages)))
    }

    /// The memory that each of `in_all` buffers may use, `on_node` of them on `node`, and what limits it.
    pub(super) fn max_bytes(&self, node: u32, on_node: u64, in_all: u64) -> (u64, String) {
        let room = self.room(node, Reserved::Bytes(0), on_node.max(1), in_all.max(1));
        (room.bytes, format!("{}: {}", room.place, room.limited_by))
    }

    /// The buffer of a chase that is to reach `node`'s memory from `cpu`, behind a memory-side cache as well.
    pub(super) fn probe_buffer(&self, cpu: u32, node: u32, notes: &mut Vec<Note>) -> Result<BufferPlan, PlanError> {
        // The other half is for loaders, which run beside some chases.
        let room = self.room(node, Reserved::Bytes(0), 1, 1).most() / 2;
        let behind = match self.requested.chase.buffer {
            Some(given) => {
                self.warn_if_in_caches(given, given.0, cpu, notes);
                0
            }
            None => self.behind_memory_side_cache(node, 0, 1, room, notes),
        };
        self.transfer_buffer(cpu, node, Reserved::Bytes(0), behind, notes)
    }

    /// Warns if buffers of a `given` size, `together` bytes behind the last-level cache of `cpu`, may stay in caches.
    fn warn_if_in_caches(&self, given: Bytes, together: u64, cpu: u32, notes: &mut Vec<Note>) {
        let reach = self.caches(cpu).reach;
        if together < SHORT_CACHES_TIMES * reach {
            let message = format!("buffers of {given} may stay in caches of {}: the numbers may be theirs, not memory's", Bytes(reach));
            notes.push(Note::warning(NoteCode::SizeInCaches, message).advise(Way::LeaveOut(Knob::Size).to("measure memory")));
        }
    }

    /// The buffer of a chase from `cpu` on `node` that need not leave the caches, of `at_least` bytes or more.
    pub(super) fn transfer_buffer(
        &self,
        cpu: u32,
        node: u32,
        reserved: Reserved<'_>,
        at_least: u64,
        notes: &mut Vec<Note>,
    ) -> Result<BufferPlan, PlanError> {
        let room = self.room(node, reserved, 1, 1);
        if let Some(requested) = self.requested.chase.buffer {
            let stride = self.stride()?;
            if requested.0 < 2 * stride.0 {
                return invalid(format!("a buffer of {requested} does not hold two lines {stride} apart"));
            }
            if requested.0 > room.most() {
                return Err(self.too_much(requested.0, "a buffer", &room, node));
            }
            return Ok(self.chase_buffer(&room, requested.0 / stride.0 * stride.0, node, false));
        }
        let wanted = (CACHES_TIMES * self.caches(cpu).reach).max(MIN_DERIVED);
        let bytes = self.shrink(wanted.next_power_of_two().max(at_least), &room, node, notes)?;
        Ok(self.chase_buffer(&room, bytes, node, true))
    }

    fn chase_buffer(&self, room: &Room, bytes: u64, node: u32, derived: bool) -> BufferPlan {
        let buffer = self.buffer_in(room, Bytes(bytes), node, derived);
        BufferPlan { touch: self.requested.chase.touch.map_or(buffer.touch, IdSet::one), ..buffer }
    }

    /// Bytes of each of `on_node` buffers that together are [`MEMORY_SIDE_TIMES`] the memory-side cache before the node's memory. If
    /// `room` bytes for each are less than that, the largest that fit, with a note. 0 if there is no such cache.
    fn behind_memory_side_cache(&self, node: u32, wanted: u64, on_node: u64, room: u64, notes: &mut Vec<Note>) -> u64 {
        // The cache of a node's DRAM does not cache persistent memory.
        if self.spec.memory_dir.as_ref().is_some_and(MemoryDir::is_dax) {
            return 0;
        }
        let caches = self.machine.topology.node(node).map(|n| n.memory_side_caches.as_slice()).unwrap_or_default();
        let Some(cache) = caches.iter().map(|c| c.size).max() else { return 0 };
        let needed = (MEMORY_SIDE_TIMES * cache.0).div_ceil(on_node);
        let bytes = needed.next_multiple_of(STEP).min(room / STEP * STEP).max(wanted);
        if bytes < needed {
            // Without the bytes that are taken, which differ from cell to cell, and with all nodes that have such a cache: it is said once.
            let has_such = |n: &&Node| n.memory_side_caches.iter().map(|c| c.size).max() == Some(cache);
            let is_asked = |n: &&Node| self.spec.nodes.as_ref().is_none_or(|nodes| nodes.contains(n.id));
            let all = self.machine.topology.nodes.iter().filter(has_such).filter(is_asked);
            let nodes = all.map(|n| n.id).chain([node]).collect();
            let enough = Bytes(MEMORY_SIDE_TIMES * cache.0);
            let message = format!(
                "a memory-side cache of {cache} is in front of {}: buffers of less than {enough} partly measure the cache in this run",
                wording::nodes(&nodes)
            );
            let advice = Way::from("free memory or raise the limit").or(words!["give ", Knob::Size, ", to measure the memory behind it"]);
            notes.push(Note::warning(NoteCode::MemorySideCache, message).advise(advice));
        }
        bytes
    }

    /// `wanted`, or the largest smaller power of two that fits.
    fn shrink(&self, wanted: u64, room: &Room, node: u32, notes: &mut Vec<Note>) -> Result<u64, PlanError> {
        let (bytes, Room { place, limited_by, .. }) = (room.most(), room);
        if wanted <= bytes {
            if room.pages(wanted) != PageRequest::Auto {
                let (pages, rest) = (room.pages(wanted).name(), approximately(room.bytes));
                let message = format!(
                    "{place} leaves {rest} of free memory to a buffer (limited by {limited_by}): its {pages} pages come from the pool"
                );
                notes.push(
                    Note::info(NoteCode::PoolUsed, message)
                        .advise(Way::Say(words!["give ", Knob::Pages, " thp"]).to("leave the pool alone")),
                );
            }
            return Ok(wanted);
        }
        if bytes < LEAST_BUFFER {
            return Err(self.too_much(LEAST_BUFFER, "even a buffer", room, node));
        }
        let (rest, wanted) = (approximately(bytes), Bytes(wanted));
        let message = format!(
            "{place} leaves {rest} to take (limited by {limited_by}), less than the {wanted} that four times its caches need: results may be partly cache"
        );
        let advice = match self.pool_for(wanted.0, node) {
            Some((pages, _)) => Way::from("free some there").or("raise the limit").or(words![
                "take free pages of the pool with ",
                Knob::Pages,
                format!(" {}", pages.name())
            ]),
            None => "free some there or raise the limit".into(),
        };
        notes.push(Note::warning(NoteCode::SmallBuffer, message).advise(advice));
        Ok(floor_power_of_two(bytes))
    }

    /// The buffers of loaders given as (CPU, node). Together they are four times the caches that they share, and equal within a cache
    /// domain.
    pub(super) fn loader_buffers(
        &self,
        homes: &[(u32, u32)],
        reserved: Reserved<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<Vec<Loader>, PlanError> {
        let domain = |cpu: u32| self.caches(cpu).domain;
        let mut in_domain = BTreeMap::new();
        let mut on_node = BTreeMap::new();
        for &(cpu, node) in homes {
            *in_domain.entry(domain(cpu)).or_insert(0u64) += 1;
            *on_node.entry(node).or_insert(0u64) += 1;
        }
        let total = homes.len().max(1) as u64;
        homes
            .iter()
            .map(|&(cpu, node)| {
                let sharers = in_domain.get(&domain(cpu)).copied().unwrap_or(1);
                let room = self.room(node, reserved, on_node.get(&node).copied().unwrap_or(1), total);
                if let Some(requested) = self.requested.loader_buffer {
                    if requested < MIN_LOADER_SIZE {
                        return invalid(format!("a loader's buffer of {requested} is less than {MIN_LOADER_SIZE}"));
                    }
                    if requested.0 > room.most() {
                        return Err(self.too_much(requested.0, "a buffer for each CPU", &room, node));
                    }
                    self.warn_if_in_caches(requested, requested.0.saturating_mul(sharers), cpu, notes);
                    return Ok(Loader { cpu, buffer: self.buffer_in(&room, requested, node, false), own: None });
                }
                let (wanted, here) = (self.wanted_by_loader(cpu, sharers), on_node.get(&node).copied().unwrap_or(1));
                let behind = self.behind_memory_side_cache(node, wanted, here, room.most(), notes);
                let hidden = self.behind_hidden_cache(cpu, sharers, room.bytes);
                let bytes = self.shrink(wanted.max(behind).max(hidden), &room, node, notes)?;
                Ok(Loader { cpu, buffer: self.buffer_in(&room, Bytes(bytes), node, true), own: None })
            })
            .collect()
    }

    /// Puts the pages of a buffer on these nodes in turn, if there are several. Whole rounds of huge pages give each node its share.
    pub(super) fn spread_over(&self, buffer: &mut BufferPlan, nodes: &[u32]) {
        if nodes.len() < 2 || buffer.directory.is_some() {
            return;
        }
        let round = nodes.len() as u64 * HUGE_PAGE;
        let free = |node: &u32| self.machine.allowed.node_memory.get(node).map_or(u64::MAX, |room| room.0);
        let room = nodes.iter().map(free).min().unwrap_or(u64::MAX);
        let whole = buffer.bytes.0.next_multiple_of(round);
        if buffer.derived && whole / nodes.len() as u64 <= room {
            buffer.bytes = Bytes(whole);
        }
        buffer.weights = Weights::equal(nodes.iter().copied());
    }

    /// Bytes of a loader's buffer, if `sharers` loaders share a cache.
    fn wanted_by_loader(&self, cpu: u32, sharers: u64) -> u64 {
        (CACHES_TIMES * self.caches(cpu).reach / sharers).max(MIN_LOADER).next_multiple_of(STEP)
    }

    /// The same if the description may leave out the processor's cache, as in a virtual machine; at most `room`.
    fn behind_hidden_cache(&self, cpu: u32, sharers: u64, room: u64) -> u64 {
        if !self.machine.identity.may_be_virtual() && self.caches(cpu).reach > 0 {
            return 0;
        }
        let share = self.machine.allowed.room() / GUEST_LOADERS_ONE_IN / self.domains;
        (MIN_GUEST_LOADERS.min(share) / sharers).min(room) / STEP * STEP
    }

    /// The first CPU behind the same last-level cache.
    pub(super) fn domain(&self, cpu: u32) -> u32 {
        self.caches(cpu).domain
    }

    /// The fewest bytes of a chase's buffer if the time is short.
    pub(super) fn least_probe(&self, cpu: u32) -> u64 {
        (SHORT_CACHES_TIMES * self.caches(cpu).reach).max(MIN_DERIVED)
    }

    /// The fewest bytes of a loader's buffer if the time is short and `sharers` loaders share a cache.
    pub(super) fn least_loader(&self, cpu: u32, sharers: u64) -> u64 {
        (SHORT_CACHES_TIMES * self.caches(cpu).reach / sharers).max(MIN_LOADER)
    }

    /// A buffer of a thread that the user describes.
    pub(super) fn thread_buffer(
        &self,
        cpu: u32,
        node: u32,
        size: Option<Bytes>,
        directory: Option<&MemoryDir>,
        reserved: Reserved<'_>,
    ) -> Result<BufferPlan, PlanError> {
        let bytes = size.map_or_else(|| self.wanted_by_loader(cpu, 1), |s| s.0);
        let room = match directory {
            Some(dir) => Room::in_directory(dir, dir.capacity()),
            None => Room { pool: None, ..self.room(node, reserved, 1, 1) },
        };
        if bytes > room.bytes {
            return Err(self.too_much(bytes, "a thread's buffer", &room, node));
        }
        let bytes = Bytes(bytes);
        if bytes < MIN_LOADER_SIZE {
            return invalid(format!("a thread's buffer of {bytes} is less than {MIN_LOADER_SIZE}"));
        }
        let directory = directory.map(|dir| dir.file.path.clone());
        Ok(BufferPlan { directory, ..self.buffer(bytes, node, size.is_none()) })
    }

    /// Bytes that the caches of these CPUs together could hold.
    pub(super) fn cache_bytes(&self, cpus: &IdSet) -> u64 {
        let domains: BTreeMap<u32, u64> = cpus.iter().map(|cpu| (self.caches(cpu).domain, self.caches(cpu).reach)).collect();
        domains.values().sum()
    }
}

/// This window, if it is a whole number of strides and at least two.
fn whole_strides(window: Bytes, stride: Bytes) -> Result<Bytes, PlanError> {
    if window.0 / 2 < stride.0 || !window.0.is_multiple_of(stride.0) {
        return invalid(format!("a window of {window} must be a multiple of the stride ({stride}) and at least twice it"));
    }
    Ok(window)
}

/// CPUs that touch a node's memory first: its own, or any when it has none.
pub(super) fn touchers(machine: &Machine, node: &Node) -> IdSet {
    let usable = machine.default_cpus();
    let own = node.cpus.intersection(&usable);
    let all = if own.is_empty() { usable } else { own };
    machine.topology.one_per_core(&all).iter().take(MAX_TOUCHERS).collect()
}

fn cpu_caches(topology: &Topology) -> BTreeMap<u32, CpuCaches> {
    let mut last: BTreeMap<u32, &Cache> = BTreeMap::new();
    let mut l2: BTreeMap<u32, u64> = BTreeMap::new();
    for cache in &topology.caches {
        for cpu in cache.cpus.iter() {
            if last.get(&cpu).is_none_or(|c| c.level <= cache.level) {
                last.insert(cpu, cache);
            }
            if cache.level == 2 {
                l2.insert(cpu, cache.size.0 / cache.cpus.len().max(1) as u64);
            }
        }
    }
    // The L2s in front of each last-level cache. The first CPU identifies the cache.
    let domain = |cpu: u32| last.get(&cpu).and_then(|c| c.cpus.first()).unwrap_or(cpu);
    let mut in_front: BTreeMap<u32, u64> = BTreeMap::new();
    for cache in topology.caches.iter().filter(|c| c.level == 2) {
        if let Some(cpu) = cache.cpus.first().filter(|cpu| last.get(cpu).is_some_and(|llc| llc.level > 2)) {
            *in_front.entry(domain(cpu)).or_default() += cache.size.0;
        }
    }
    let caches = |cpu: u32, llc: &Cache| CpuCaches {
        reach: llc.size.0 + in_front.get(&domain(cpu)).copied().unwrap_or(0),
        domain: domain(cpu),
        l2: l2.get(&cpu).copied(),
    };
    let mut all: BTreeMap<u32, CpuCaches> = last.iter().map(|(&cpu, llc)| (cpu, caches(cpu, llc))).collect();
    // A cache that is not known may be shared by all CPUs of a node.
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(|cpu| !last.contains_key(&cpu.id)) {
        let domain = *first.entry(cpu.node).or_insert(cpu.id);
        all.insert(cpu.id, CpuCaches { domain, ..CpuCaches::default() });
    }
    all
}

pub(super) fn floor_power_of_two(n: u64) -> u64 {
    if n == 0 { 0 } else { 1 << n.ilog2() }
}
