//! The memory of a run: buffers that cells share, the chains in them, and the time that both take.
//!
//! Whatever a cell needs of memory that an earlier cell had, on the same node and of the same kind, it gets again: loaders' buffers stay on a
//! shelf, and buffers of chases are kept with their number, so that the nth allocation of one cell is the nth of the next. Allocations of
//! one cell are still different memory. A chase's line has room for several pointers: the chain of each order has its own place in it, so
//! chains stay where they are while others are written and run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_core::experiment::ChaseOrder;
use memgauge_core::plan::{BufferPlan, Plan, Probe, Work};
use memgauge_core::result::{PageKind, SetUp};
use memgauge_core::units::Bytes;
use memgauge_linux::memory::{Buffer, MemoryErrorKind};

use crate::burst::Chase;
use crate::chain::{self, Order};
use crate::session::{CellError, Session};

/// Kept buffers take at most one in this many bytes that may be taken: the rest is for what the cell in progress needs.
const KEPT_ONE_IN: u64 = 4;
/// Different buffers of a chase, where they are kept: the fewest that show a placement effect.
const DISTINCT: u32 = 3;
/// Bytes of a line between the places of chains: a pointer, and what a hand-off stores beside it.
const PLACE_BYTES: u64 = 16;
/// Orders that have a place each.
const PLACES: usize = 3;

/// Buffers of chases.
#[derive(Default)]
pub(crate) struct ChaseBuffers {
    all: Vec<ChaseBuffer>,
}

struct ChaseBuffer {
    plan: BufferPlan,
    /// Which of a cell's allocations it is.
    nth: u32,
    buffer: Arc<Buffer>,
    /// For later cells, and not only until the next one is asked for.
    keep: bool,
    /// The chain in each place, and the offset where it starts.
    chains: [Option<(Order, usize)>; PLACES],
}

impl ChaseBuffers {
    /// How many of this plan are kept.
    fn kept(&self, plan: &BufferPlan) -> usize {
        self.all.iter().filter(|c| c.keep && c.plan == *plan).count()
    }

    fn bytes(&self, node: Option<u32>) -> u64 {
        self.all.iter().filter(|c| node.is_none_or(|n| c.plan.node == n)).map(|c| c.plan.bytes.0).sum()
    }
}

/// The place of an order's chain in a line, where lines have room for all of them.
fn place_of(order: ChaseOrder) -> usize {
    match order {
        ChaseOrder::WindowLocal => 0,
        ChaseOrder::FullRandom => 1,
        ChaseOrder::Sequential => 2,
    }
}

/// Whether at least two cells chase over buffers of this plan, whose bytes the search for the plateau may have changed.
fn shared_by_cells(plan: &Plan, buffer: &BufferPlan) -> bool {
    let alike =
        |other: &BufferPlan| BufferPlan { bytes: if buffer.derived { buffer.bytes } else { other.bytes }, ..other.clone() } == *buffer;
    let chased = |work: &Work| match work {
        Work::Latency { probe, .. } | Work::Curve { probe, .. } => alike(&probe.buffer),
        Work::Handoff(handoff) => alike(&handoff.buffer),
        _ => false,
    };
    plan.steps.iter().flat_map(|s| &s.cells).filter(|cell| chased(&cell.work)).take(2).count() == 2
}

impl Session<'_> {
    pub(crate) fn allocate(&mut self, plan: &BufferPlan) -> Result<Arc<Buffer>, CellError> {
        let begun = Instant::now();
        let buffer = self.aside(|session| {
            session.make_room(plan);
            match Buffer::allocate(plan, &session.setting.root) {
                // What other processes took meanwhile may be among what is only kept.
                Err(e) if matches!(e.kind, MemoryErrorKind::Space | MemoryErrorKind::Pages) && !session.chase_buffers.all.is_empty() => {
                    session.chase_buffers.all.clear();
                    Buffer::allocate(plan, &session.setting.root)
                }
                buffer => buffer,
            }
        });
        self.stages.buffers += begun.elapsed();
        Ok(Arc::new(buffer?))
    }

    /// Gives up kept buffers where they and this one would be more than may be taken.
    fn make_room(&mut self, plan: &BufferPlan) {
        let allowed = &self.setting.machine.allowed;
        let shelved = |node: Option<u32>| -> u64 {
            self.shelf.values().filter(|(p, _)| node.is_none_or(|n| p.node == n)).map(|(p, _)| p.bytes.0).sum()
        };
        let kept = &self.chase_buffers;
        let all = kept.bytes(None) + shelved(None) + plan.bytes.0;
        let here = kept.bytes(Some(plan.node)) + shelved(Some(plan.node)) + plan.bytes.0;
        if all > allowed.memory.0 || allowed.node_memory.get(&plan.node).is_some_and(|room| here > room.0) {
            self.chase_buffers.all.clear();
        }
    }

    /// How many different buffers a chase has had after so many groups of samples.
    pub(crate) fn distinct(&self, plan: &BufferPlan, made: u32) -> u32 {
        if self.chase_buffers.kept(plan) == DISTINCT as usize { made.min(DISTINCT) } else { made }
    }

    /// The `nth` buffer of a chase: the one that an earlier cell had as its nth, or a fresh one.
    ///
    /// Where buffers are kept there are three of them, and the fourth is the first again. A buffer that is given back and asked for anew is
    /// mostly the same physical memory, so nothing is lost, and a hypervisor that takes back what is free need not find it each time.
    pub(crate) fn chase_buffer(&mut self, plan: &BufferPlan, nth: u32) -> Result<Arc<Buffer>, CellError> {
        let nth = if self.chase_buffers.kept(plan) == DISTINCT as usize { nth % DISTINCT } else { nth };
        self.chase_buffers.all.retain(|c| c.keep || (c.plan == *plan && c.nth == nth));
        if let Some(known) = self.chase_buffers.all.iter().find(|c| c.plan == *plan && c.nth == nth) {
            return Ok(known.buffer.clone());
        }
        let buffer = self.allocate(plan)?;
        let allowed = &self.setting.machine.allowed;
        let room = allowed.node_memory.get(&plan.node).map_or(allowed.memory, |n| (*n).min(allowed.memory));
        let fits = self.chase_buffers.bytes(Some(plan.node)) + plan.bytes.0 <= room.0 / KEPT_ONE_IN
            && self.chase_buffers.bytes(None) + plan.bytes.0 <= allowed.memory.0 / KEPT_ONE_IN;
        // A pool's pages kept would leave other pages to the next allocation, and a file's room is somebody else's.
        let plain = plan.directory.is_none() && buffer.pages().obtained != Some(PageKind::Pool);
        let keep = plain && fits && shared_by_cells(self.plan, plan);
        self.chase_buffers.all.push(ChaseBuffer { plan: plan.clone(), nth, buffer: buffer.clone(), keep, chains: Default::default() });
        Ok(buffer)
    }

    /// Lets go of the buffers that only the cell in progress had.
    pub(crate) fn end_of_cell(&mut self) {
        self.chase_buffers.all.retain(|c| c.keep);
    }

    /// Writes a chain into the first `bytes` of `buffer`.
    pub(crate) fn chain(
        &mut self,
        probe: &Probe,
        bytes: Bytes,
        order: ChaseOrder,
        buffer: &Arc<Buffer>,
        nth: u64,
    ) -> Result<Chase, CellError> {
        Ok(Chase::new(buffer.clone(), self.chain_start(probe, bytes, order, buffer, nth)?))
    }

    /// Writes a chain, unless it is there, and returns the offset of its first pointer. `nth` tells the chains of several allocations apart.
    pub(crate) fn chain_start(
        &mut self,
        probe: &Probe,
        bytes: Bytes,
        order: ChaseOrder,
        buffer: &Buffer,
        nth: u64,
    ) -> Result<usize, CellError> {
        let line = self.line();
        let places = line.0 >= PLACE_BYTES * PLACES as u64;
        let place = if places { place_of(order) } else { 0 };
        let seed = self.plan.seed.wrapping_add(nth);
        let wanted = Order {
            bytes,
            window: probe.window,
            stride: probe.stride,
            line,
            order,
            seed,
            within: PLACE_BYTES as usize * place,
            even: false,
        };
        let known = self.chase_buffers.all.iter().position(|c| std::ptr::eq(Arc::as_ptr(&c.buffer), buffer));
        let chain = known.and_then(|c| self.chase_buffers.all[c].chains[place].as_ref());
        if let Some((_, start)) = chain.filter(|(written, _)| *written == wanted) {
            return Ok(*start);
        }
        let begun = Instant::now();
        let start = self.aside(|_| chain::write(buffer, &wanted, &probe.buffer.touch))?;
        if let Some(known) = known {
            self.chase_buffers.all[known].chains[place] = Some((wanted, start));
        }
        self.stages.chains += begun.elapsed();
        Ok(start)
    }

    /// The machine's cache line; the largest where caches differ, 64 B where the machine does not say.
    pub(crate) fn line(&self) -> Bytes {
        let lines = self.setting.machine.topology.caches.iter().filter_map(|c| c.line);
        Bytes(lines.max().map_or(64, u64::from))
    }
}

/// What setting up was spent on.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Stages {
    /// Mapping, first touch, reading back pages and placement.
    pub(crate) buffers: Duration,
    /// Laying out and writing chases.
    pub(crate) chains: Duration,
    /// Waiting for the core's frequency.
    pub(crate) warming: Duration,
    /// Trials of kernels.
    pub(crate) trials: Duration,
}

impl Stages {
    pub(crate) fn told(&self) -> SetUp {
        SetUp {
            buffers_s: self.buffers.as_secs_f64(),
            chains_s: self.chains.as_secs_f64(),
            warm_up_s: self.warming.as_secs_f64(),
            trials_s: self.trials.as_secs_f64(),
        }
    }
}
