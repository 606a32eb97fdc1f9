//! What cells take, so that a plan can say its time before it starts.
//!
//! A cell ends when its interval is narrow, which on a quiet machine is after the fewest bursts, or when its budget is spent. The suite's budget is
//! close to those fewest bursts, so its time is known; of other commands the estimate is the most.

use super::{Cell, Delays, Traffic, Work};
use crate::units::Bytes;

/// A burst: twelve windows of 5 ms that count and one that does not, and waking its threads.
pub(super) const BURST_S: f64 = 0.0665;
/// Part of it that counts against the budget.
const COUNTED_S: f64 = 0.06;
/// The fewest bursts of which a non-parametric interval exists.
const LEAST_BURSTS: f64 = 6.0;
/// A run of hand-offs over one allocation, and the fewest of them.
const RUN_S: f64 = 0.15;
const LEAST_RUNS: f64 = 3.0;
/// Three windows of 20 ms until the core's clock is known to be steady, where other work was done before.
const WARM_UP_S: f64 = 0.07;
/// Looking at the machine before and after a cell: counters of the kernel, placement, the core's clock.
const WATCH_S: f64 = 0.01;
/// A kernel's burst in a trial (two windows, one to settle), in three rounds: few fall so far behind that they are dropped before. The 52
/// trials of the author's machine took 49 ms each.
const TRIAL_S: f64 = 0.016 * 3.0;
/// Chases that are only evidence: a burst of four windows.
const GLANCE_S: f64 = 0.026;
/// Finding out whether plain stores read first: five rounds of three kinds.
const RFO_S: f64 = 0.24;
/// Bytes a second at which the CPUs of one node map and clear memory: half of what two cores of this decade clear, for a hypervisor may have
/// to find the memory first.
pub(super) const ALLOCATE_BYTES_S: f64 = 2e9;
/// Bytes of buffer a second at which they write a chase into it.
const CHAIN_BYTES_S: f64 = 5e9;
/// Buffers that one chase has and that later cells share.
pub(super) const SHARED_ALLOCATIONS: u32 = 3;

/// The estimates of one plan's cells, in the order in which they run: what one has set up the next finds.
pub(super) struct Costs {
    budget_s: f64,
    fixed: bool,
    /// Intervals decide within this share of the way from the fewest bursts to the budget.
    share: f64,
    chased: Vec<(u32, Bytes, u32)>,
    warm: bool,
}

impl Costs {
    pub(super) const fn of_suite(budget_s: f64, fixed: bool) -> Self {
        Self { budget_s, fixed, share: 0.5, chased: Vec::new(), warm: false }
    }

    /// Between the fewest repetitions of a part and those that fill the budget.
    fn repeated(&self, least: f64, counted_s: f64, takes_s: f64) -> f64 {
        if self.fixed {
            return self.budget_s + least * (takes_s - counted_s);
        }
        let most = (self.budget_s / counted_s).ceil().max(least);
        (least + (most - least) * self.share) * takes_s
    }

    /// Allocates what earlier cells have not.
    fn buffers(&mut self, node: u32, bytes: Bytes, wanted: u32) -> f64 {
        let wanted = wanted.min(SHARED_ALLOCATIONS);
        let known = match self.chased.iter_mut().find(|(n, b, _)| (*n, *b) == (node, bytes)) {
            Some((.., known)) => known,
            None => {
                self.chased.push((node, bytes, 0));
                let last = self.chased.len() - 1;
                &mut self.chased[last].2
            }
        };
        let more = wanted.saturating_sub(*known);
        *known += more;
        if more > 0 {
            self.warm = false;
        }
        f64::from(more) * bytes.0 as f64 / ALLOCATE_BYTES_S
    }

    fn warm_up(&mut self) -> f64 {
        if std::mem::replace(&mut self.warm, true) { 0.0 } else { WARM_UP_S }
    }

    fn trials(traffic: &Traffic) -> f64 {
        if traffic.kernels.len() > 1 { traffic.kernels.len() as f64 * TRIAL_S } else { 0.0 }
    }

    /// Seconds of a cell; `first` of its step.
    pub(super) fn cell(&mut self, cell: &Cell, first: bool) -> f64 {
        let chain = |bytes: Bytes| bytes.0 as f64 / CHAIN_BYTES_S;
        if first {
            self.warm = false;
        }
        let own = match &cell.work {
            Work::Latency { probe, allocations, orders, .. } => {
                let (node, bytes) = (probe.buffer.node, probe.buffer.bytes);
                let orders = if orders.is_empty() { 2.0 } else { orders.len() as f64 };
                let groups = f64::from(*allocations);
                let known = self.chased.iter().any(|(n, b, _)| (*n, *b) == (node, bytes));
                let plateau = if known { 0.0 } else { 2.5 * chain(bytes) + 2.0 * GLANCE_S };
                let measuring = self.repeated(groups, COUNTED_S * orders, BURST_S * orders);
                self.buffers(node, bytes, *allocations) + plateau + GLANCE_S + measuring + groups * orders * chain(bytes)
            }
            Work::Bandwidth { loaders, traffic, .. } => {
                let bytes: u64 = if first { loaders.iter().map(|l| l.buffer.bytes.0).sum() } else { 0 };
                let stores = if first { RFO_S } else { 0.0 };
                bytes as f64 / ALLOCATE_BYTES_S + stores + Self::trials(traffic) + self.repeated(LEAST_BURSTS, COUNTED_S, BURST_S)
            }
            Work::Curve { probe, loaders, traffic, delays, .. } => {
                let points = match delays {
                    Delays::Cycles(list) => list.len() as f64,
                    Delays::Adaptive { points } => f64::from(*points),
                };
                let bytes = loaders.iter().map(|l| l.buffer.bytes.0).sum::<u64>() as f64;
                let set_up = self.buffers(probe.buffer.node, probe.buffer.bytes, 1) + bytes / ALLOCATE_BYTES_S + chain(probe.buffer.bytes);
                set_up + Self::trials(traffic) + points * (self.repeated(LEAST_BURSTS, COUNTED_S, BURST_S) + WATCH_S)
            }
            Work::Handoff(handoff) => {
                let runs = self.repeated(LEAST_RUNS, RUN_S, RUN_S);
                let (node, bytes) = (handoff.buffer.node, handoff.buffer.bytes);
                self.buffers(node, bytes, LEAST_RUNS as u32) + LEAST_RUNS * chain(bytes) + runs
            }
            Work::Transfers(_) | Work::Scan(_) | Work::LatencySweep(_) | Work::BandwidthSweep(_) => self.budget_s,
        };
        self.warm_up() + WATCH_S + own
    }
}
