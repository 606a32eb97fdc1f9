//! Buffers that cells share, the chains in them, and the pages of several buffers as one evidence.
//!
//! A cell gets the buffers of an earlier cell again if it needs them on the same node and of the same kind. Loaders' buffers are kept
//! while the next cell wants them. Buffers of chases are kept with their number, so that the nth allocation of one cell is the nth of the
//! next; allocations of one cell are still different memory. A chase's line has room for several pointers: the chain of each order has its
//! own slot in the line, so chains stay while others are written and run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_kernels::LINE;
use memgauge_model::directory::MemoryDir;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::ChaseOrder;
use memgauge_model::plan::{BufferPlan, Loader, Plan, Probe};
use memgauge_model::protocol::KEPT_ALLOCATIONS;
use memgauge_model::result::{PageEvidence, PageKind, Placement, PlacementStatus};
use memgauge_model::units::Bytes;
use memgauge_os::memory::{Buffer, MemoryError, MemoryErrorKind};

use crate::burst::chase::{ChainSpec, Ring, WindowExits};
use crate::burst::prefix::Prefix;
use crate::context::RunContext;
use crate::cutoff::{Cutoff, Heartbeat};
use crate::error::Result;
use crate::noise::NoiseWatch;

/// Kept buffers take at most one in this many bytes of what may be taken: the rest is for what the cell in progress needs.
const KEPT_ONE_IN: u64 = 4;
/// Bytes of a line between the slots of chains: a pointer, and what a transfer stores beside it.
const SLOT_BYTES: u64 = 16;
/// Orders that have a slot each.
const SLOTS: usize = 3;

pub(crate) struct MemoryStore<'a> {
    plan: &'a Plan,
    context: &'a RunContext<'a>,
    heartbeat: Option<Heartbeat>,
    /// Loaders' first and second buffers by CPU.
    loaders: BTreeMap<(u32, u8), (BufferPlan, Arc<Buffer>)>,
    chases: Vec<ChaseBuffer>,
    /// Time spent on mapping, first touch, reading back pages and placement.
    pub(crate) allocating: Duration,
    /// Bytes allocated in that time.
    allocated: u64,
    /// Time spent on laying out and writing chains.
    pub(crate) writing_chains: Duration,
    /// When setting up must end.
    pub(crate) end: Option<Instant>,
}

/// Enough to see how fast memory is touched, and done in a tenth of a second even by a slow hypervisor.
const RATE_TRIAL: Bytes = Bytes::mib(32);

/// Lines that are filled between two looks whether the run is to end: 1 MiB.
const LINES_AT_A_TIME: usize = 1 << 14;

struct ChaseBuffer {
    plan: BufferPlan,
    /// Which of a cell's allocations it is.
    nth: u32,
    buffer: Arc<Buffer>,
    /// For later cells, and not only until the next buffer is wanted.
    keep: bool,
    /// The chain in each slot.
    chains: [Option<(ChainSpec, Ring)>; SLOTS],
}

/// The slot of an order's chain in a line, where lines have room for all of them.
const fn slot(order: ChaseOrder) -> usize {
    match order {
        ChaseOrder::WindowLocal => 0,
        ChaseOrder::FullRandom => 1,
        ChaseOrder::Sequential => 2,
    }
}

/// Whether at least two cells chase over buffers of this plan, whose bytes the search for the plateau may have changed.
fn used_by_several_cells(plan: &Plan, buffer: &BufferPlan) -> bool {
    let alike =
        |other: &BufferPlan| BufferPlan { bytes: if buffer.derived { buffer.bytes } else { other.bytes }, ..other.clone() } == *buffer;
    let chased = plan.steps.iter().flat_map(|s| &s.cells).filter_map(|cell| cell.work.shared_chase());
    chased.filter(|chased| alike(chased)).take(2).count() == 2
}

impl<'a> MemoryStore<'a> {
    pub(crate) const fn new(plan: &'a Plan, context: &'a RunContext<'a>, heartbeat: Option<Heartbeat>) -> Self {
        let (allocating, writing_chains) = (Duration::ZERO, Duration::ZERO);
        Self { plan, context, heartbeat, loaders: BTreeMap::new(), chases: Vec::new(), allocating, allocated: 0, writing_chains, end: None }
    }

    /// When to give up setting something up.
    pub(crate) fn cutoff(&self) -> Cutoff {
        self.context.cutoff(self.end).with_heartbeat(self.heartbeat.as_ref())
    }

    /// Allocates a buffer. Other CPUs than those watched touch it, so that does not count as noise.
    pub(crate) fn allocate(&mut self, noise: &mut NoiseWatch, plan: &BufferPlan) -> Result<Arc<Buffer>> {
        noise.while_paused(|| self.allocate_now(plan))
    }

    fn allocate_now(&mut self, plan: &BufferPlan) -> Result<Arc<Buffer>> {
        // Half a buffer is of no use: do not begin an allocation that would not end in time.
        let known = self.end.filter(|_| plan.bytes > RATE_TRIAL).and_then(|_| self.allocation_rate(plan));
        let takes = Duration::from_secs_f64(known.map_or(0.0, |rate| plan.bytes.0 as f64 / rate));
        if self.context.interrupted() || self.end.is_some_and(|end| self.context.now() + takes >= end) {
            return Err(NotMeasured::Interrupted);
        }
        let started = self.context.now();
        self.make_room(plan);
        let buffer = match self.obtain(plan) {
            // Other processes may have taken memory meanwhile. Buffers that are only kept for later make room.
            Err(e) if matches!(e.kind, MemoryErrorKind::Space | MemoryErrorKind::Pages) && !self.chases.is_empty() => {
                self.chases.clear();
                self.obtain(plan)
            }
            buffer => buffer,
        };
        self.allocating += self.context.now() - started;
        let buffer = buffer?;
        self.allocated += plan.bytes.0;
        Ok(Arc::new(buffer))
    }

    /// Bytes a second at which buffers were allocated so far; by a trial where there was none yet.
    pub(crate) fn allocation_rate(&mut self, plan: &BufferPlan) -> Option<f64> {
        if self.allocated == 0 {
            let started = self.context.now();
            self.obtain(&BufferPlan { bytes: plan.bytes.min(RATE_TRIAL), ..plan.clone() }).ok()?;
            self.allocating += self.context.now() - started;
            self.allocated += plan.bytes.min(RATE_TRIAL).0;
        }
        Some(self.allocated as f64 / self.allocating.as_secs_f64().max(1e-9))
    }

    fn obtain(&self, plan: &BufferPlan) -> Result<Buffer, MemoryError> {
        self.context.platform.allocate(plan, &self.cutoff())
    }

    /// Gives up kept buffers where they and this one would be more than may be taken.
    fn make_room(&mut self, plan: &BufferPlan) {
        let allowed = &self.context.machine.allowed;
        let needed = |node: Option<u32>| {
            let here = |p: &BufferPlan| node.map_or(p.bytes.0, |n| p.bytes_on(n));
            self.chase_bytes(node) + self.loaders.values().map(|(p, _)| here(p)).sum::<u64>() + here(plan)
        };
        let full = |node: u32| allowed.node_memory.get(&node).is_some_and(|room| needed(Some(node)) > room.0);
        let too_many = plan.nodes().iter().any(full);
        if needed(None) > allowed.room() || too_many {
            self.chases.clear();
        }
    }

    fn chase_bytes(&self, node: Option<u32>) -> u64 {
        self.chases.iter().map(|c| node.map_or(c.plan.bytes.0, |n| c.plan.bytes_on(n))).sum()
    }

    /// Whether the buffers of this plan are kept, and all of them are there.
    fn all_kept(&self, plan: &BufferPlan) -> bool {
        self.chases.iter().filter(|c| c.keep && c.plan == *plan).count() == KEPT_ALLOCATIONS as usize
    }

    /// The number of different buffers that a chase has had after `allocations` allocations.
    pub(crate) fn distinct_buffers(&self, plan: &BufferPlan, allocations: u32) -> u32 {
        if self.all_kept(plan) { allocations.min(KEPT_ALLOCATIONS) } else { allocations }
    }

    /// The `nth` buffer of a chase: the one that an earlier cell had as its nth, or a fresh one.
    ///
    /// If buffers are kept, there are three of them, and the fourth is the first again. A buffer that is freed and allocated anew is
    /// mostly the same physical memory, so nothing is lost, and a hypervisor that takes back free memory need not find it each time.
    pub(crate) fn chase_buffer(&mut self, noise: &mut NoiseWatch, plan: &BufferPlan, nth: u32) -> Result<Arc<Buffer>> {
        let nth = if self.all_kept(plan) { nth % KEPT_ALLOCATIONS } else { nth };
        self.chases.retain(|c| c.keep || (c.plan == *plan && c.nth == nth));
        if let Some(known) = self.chases.iter().find(|c| c.plan == *plan && c.nth == nth) {
            return Ok(known.buffer.clone());
        }
        let buffer = self.allocate(noise, plan)?;
        let allowed = &self.context.machine.allowed;
        let room = allowed.node_memory.get(&plan.node).map_or(allowed.room(), |n| n.0.min(allowed.room()));
        let fits = self.chase_bytes(Some(plan.node)) + plan.bytes.0 <= room / KEPT_ONE_IN
            && self.chase_bytes(None) + plan.bytes.0 <= allowed.room() / KEPT_ONE_IN;
        // Kept pages of a pool would leave other pages to the next allocation, and a file takes room that belongs to others.
        let plain = plan.directory.is_none() && !matches!(buffer.pages().obtained, Some(PageKind::Pool | PageKind::Large));
        let keep = plain && fits && used_by_several_cells(self.plan, plan);
        self.chases.push(ChaseBuffer { plan: plan.clone(), nth, buffer: buffer.clone(), keep, chains: Default::default() });
        Ok(buffer)
    }

    /// Drops all buffers.
    pub(crate) fn forget(&mut self) {
        self.loaders.clear();
        self.chases.clear();
    }

    /// Drops buffers whose pages were moved to other nodes after they were allocated, as the kernel does where memory goes offline.
    pub(crate) fn forget_moved(&mut self) {
        let all = self.loaders.len() + self.chases.len();
        let moved = |buffer: &Buffer| {
            let wrong = |placement: &Placement| placement.status == PlacementStatus::Wrong;
            !wrong(buffer.placement()) && wrong(&buffer.placement_among(all))
        };
        self.loaders.retain(|_, (_, buffer)| !moved(buffer));
        self.chases.retain(|c| !moved(&c.buffer));
    }

    /// Drops the buffers that only the cell in progress had.
    pub(crate) fn end_cell(&mut self) {
        self.chases.retain(|c| c.keep);
    }

    /// Writes a chain into the first bytes of `buffer`, as many as the probe says, unless it is there. `nth` distinguishes the chains of
    /// several allocations.
    pub(crate) fn ring(
        &mut self,
        noise: &mut NoiseWatch,
        probe: &Probe,
        order: ChaseOrder,
        (buffer, nth): (&Arc<Buffer>, u64),
    ) -> Result<Ring> {
        let line = self.context.line();
        let slot = if line.0 >= SLOT_BYTES * SLOTS as u64 { slot(order) } else { 0 };
        let spec = ChainSpec {
            bytes: probe.buffer.bytes,
            window: probe.window,
            stride: probe.stride,
            line,
            order,
            seed: self.plan.seed.wrapping_add(nth),
            offset_in_line: SLOT_BYTES as usize * slot,
            even: false,
        };
        let cutoff = self.cutoff();
        let known = self.chases.iter_mut().find(|c| Arc::ptr_eq(&c.buffer, buffer)).map(|c| &mut c.chains[slot]);
        if let Some(Some((_, ring))) = known.as_deref().map(|chain| chain.as_ref().filter(|(written, _)| *written == spec)) {
            return Ok(ring.clone());
        }
        let started = self.context.now();
        let platform = &self.context.platform;
        let ring = noise.while_paused(|| platform.write_chain(buffer, &spec, &probe.buffer.touch, &cutoff))?;
        if let Some(chain) = known {
            *chain = Some((spec, ring.clone()));
        }
        self.writing_chains += self.context.now() - started;
        Ok(ring)
    }

    /// Writes the chain of a working set. Returns it with the window that it is random in. `exits` are those of the windows that several
    /// working sets share, once they are written.
    pub(crate) fn write_prefix(&self, prefix: &Prefix<'_>, exits: &mut Option<WindowExits>) -> Result<(Ring, Bytes)> {
        Ok(self.context.platform.write_prefix(prefix, exits, &self.cutoff())?)
    }

    /// Whether a buffer of this size on the plan's node, or in its directory, is within what this process may take.
    pub(crate) fn fits(&self, plan: &BufferPlan, bytes: Bytes) -> bool {
        let allowed = &self.context.machine.allowed;
        let directory = self.plan.buffer_directory(plan);
        let in_memory = bytes.0 <= allowed.room() && allowed.node_memory.get(&plan.node).is_none_or(|room| bytes <= *room);
        directory.is_none_or(|d| bytes.0 <= d.room()) && (in_memory || directory.is_some_and(MemoryDir::is_dax))
    }

    /// Drops loaders' buffers that these loaders do not use.
    pub(crate) fn keep_loader_buffers(&mut self, loaders: &[Loader]) {
        self.loaders.retain(|(cpu, _), (plan, _)| loaders.iter().any(|l| l.cpu == *cpu && l.buffers().any(|b| b == plan)));
    }

    /// A loader's first or second buffer: the one of the last cell where it is what this cell wants, or one that it shares with another loader.
    pub(crate) fn loader_buffer(&mut self, noise: &mut NoiseWatch, cpu: u32, which: u8, plan: &BufferPlan) -> Result<Arc<Buffer>> {
        let own = self.loaders.get(&(cpu, which)).filter(|(known, _)| known == plan);
        let known = own.or_else(|| self.loaders.values().find(|(known, _)| plan.shared && known == plan));
        let buffer = match known {
            Some((_, buffer)) => buffer.clone(),
            None => {
                let buffer = self.allocate(noise, plan)?;
                self.fill(&buffer)?;
                buffer
            }
        };
        self.loaders.insert((cpu, which), (plan.clone(), buffer.clone()));
        Ok(buffer)
    }

    /// Writes the plan's contents into a buffer, again and again.
    fn fill(&self, buffer: &Buffer) -> Result {
        let contents = &self.plan.contents;
        if contents.is_empty() || !self.context.platform.keeps_contents() {
            return Ok(());
        }
        let cutoff = self.cutoff();
        for (at, line) in (0..buffer.len() / LINE as usize).zip(contents.iter().cycle()) {
            if at.is_multiple_of(LINES_AT_A_TIME) && cutoff.passed() {
                return Err(NotMeasured::Interrupted);
            }
            // SAFETY: line `at` is inside the buffer, which is mapped and writable, and no thread uses it yet.
            unsafe { buffer.as_ptr().add(at * LINE as usize).copy_from_nonoverlapping(line.0.as_ptr(), line.0.len()) };
        }
        Ok(())
    }
}

/// Pages of several buffers, each given with its size: the kind that backs most bytes, and its share of all.
pub(crate) fn combined_pages<'a>(buffers: impl IntoIterator<Item = (&'a PageEvidence, Bytes)>) -> PageEvidence {
    let buffers: Vec<(&PageEvidence, Bytes)> = buffers.into_iter().collect();
    let Some((first, _)) = buffers.first() else { return PageEvidence::default() };
    // One buffer that could not be read back leaves the kind of all unknown.
    if let Some((unknown, _)) = buffers.iter().find(|(pages, _)| pages.obtained.is_none()) {
        return (*unknown).clone();
    }
    let total: u64 = buffers.iter().map(|(_, bytes)| bytes.0).sum();
    let mut kinds: BTreeMap<(PageKind, Option<Bytes>), (f64, usize)> = BTreeMap::new();
    for (pages, bytes) in &buffers {
        let Some(kind) = pages.obtained else { continue };
        let total_of_kind = kinds.entry((kind, pages.page)).or_default();
        total_of_kind.0 += pages.share.unwrap_or(1.0) * bytes.0 as f64;
        total_of_kind.1 += 1;
    }
    let most = kinds.iter().max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b));
    let Some((&(kind, page), &(backed, _))) = most else { return PageEvidence::default() };
    let mut reasons: Vec<String> = Vec::new();
    if kinds.len() > 1 {
        let list: Vec<String> = kinds.iter().map(|((kind, _), (_, count))| format!("{count} of {}", name(*kind))).collect();
        reasons.push(format!("the {} buffers are {}", buffers.len(), list.join(", ")));
    }
    for reason in buffers.iter().filter_map(|(pages, _)| pages.reason.as_ref()) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    PageEvidence {
        requested: first.requested,
        obtained: Some(kind),
        // Of pages of a device the share may not be known.
        share: buffers.iter().all(|(pages, _)| pages.share.is_some()).then_some(backed / total.max(1) as f64),
        page,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
    }
}

fn name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Base => "base pages",
        PageKind::Thp => "transparent huge pages",
        PageKind::Pool => "pool pages",
        PageKind::Large => "large pages",
        PageKind::File => "pages of files",
        PageKind::Dax => "pages of a device",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(kind: PageKind, share: f64) -> PageEvidence {
        PageEvidence { obtained: Some(kind), share: Some(share), page: Some(Bytes::mib(2)), ..PageEvidence::default() }
    }

    #[test]
    fn alike_stays_as_it_is() {
        let pool = pages(PageKind::Pool, 1.0);
        assert_eq!(combined_pages([(&pool, Bytes::mib(4)), (&pool, Bytes::mib(2))]), pool);
        assert_eq!(combined_pages([]), PageEvidence::default());
    }

    #[test]
    fn a_pool_that_served_some_is_not_claimed_for_all() {
        let (pool, thp) = (pages(PageKind::Pool, 1.0), pages(PageKind::Thp, 0.9));
        let mixed = combined_pages([(&pool, Bytes::mib(4)), (&thp, Bytes::mib(4)), (&thp, Bytes::mib(4))]);
        assert_eq!(mixed.obtained, Some(PageKind::Thp));
        assert!((mixed.share.unwrap() - 0.6).abs() < 1e-9, "{mixed:?}");
        assert_eq!(mixed.reason.as_deref(), Some("the 3 buffers are 2 of transparent huge pages, 1 of pool pages"));
    }

    #[test]
    fn a_share_that_is_not_known_stays_so() {
        let dax = PageEvidence { obtained: Some(PageKind::Dax), reason: Some("old kernel".into()), ..PageEvidence::default() };
        assert_eq!(combined_pages([(&dax, Bytes::mib(6)), (&dax, Bytes::mib(2))]), dax);
    }

    #[test]
    fn sizes_weigh() {
        let (pool, thp) = (pages(PageKind::Pool, 1.0), pages(PageKind::Thp, 1.0));
        let mixed = combined_pages([(&pool, Bytes::mib(6)), (&thp, Bytes::mib(2))]);
        assert_eq!((mixed.obtained, mixed.share), (Some(PageKind::Pool), Some(0.75)));
    }

    #[test]
    fn what_was_not_read_back_is_not_known() {
        let unknown = PageEvidence { reason: Some("smaps cannot be read".into()), ..PageEvidence::default() };
        assert_eq!(combined_pages([(&pages(PageKind::Thp, 1.0), Bytes(1)), (&unknown, Bytes(1))]), unknown);
    }
}
