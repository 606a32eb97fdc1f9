//! The time that cells take, so that a plan can say its time before it starts.
//!
//! A cell ends when its interval is narrow, which on a quiet machine is after the fewest bursts, or when its budget is spent. So a plan has two
//! times: with every cell halfway between the two, and with every cell at its budget. The suite's budget is close to the fewest bursts, so there
//! the two are close as well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use memgauge_model::experiment::{ChaseOrder, Hops};
use memgauge_model::interleave::Goal;
use memgauge_model::plan::{
    BandwidthSweep, BufferPlan, Cell, Delays, IdleChase, InterleaveSearch, LatencySweep, LoadCurve, Loader, Loading, Plan, Probe, Scan,
    Step, StopRule, Traffic, Transfers, Work, more_passes,
};
use memgauge_model::protocol;
use memgauge_model::traffic::{Access, LineUse, Mix};
use memgauge_model::units::Bytes;

use crate::chase;

/// Waking a burst's threads and collecting what they did.
const WAKE_S: f64 = 0.001;
/// Measuring the core's frequency after a burst of a cell.
const FREQUENCY_S: f64 = 0.0005;

/// Seconds of a burst with this number of counted windows.
const fn burst_s(windows: usize, window: Duration) -> f64 {
    (windows + protocol::SETTLE_WINDOWS) as f64 * window.as_secs_f64() + WAKE_S
}

/// Seconds until a chase over `bytes` of new memory is measured.
fn settling_s(order: ChaseOrder, bytes: Bytes) -> f64 {
    protocol::settling(order, bytes).as_secs_f64()
}

const MIN_BURSTS: f64 = protocol::MIN_BURSTS as f64;
/// The minimum number of runs of transfers, each over one allocation.
const MIN_RUNS: f64 = protocol::MIN_TRANSFER_ALLOCATIONS as f64;
/// Three windows of 20 ms until the core's clock is known to be steady, if other work was done before.
const WARM_UP_S: f64 = 0.07;
/// Looking at the machine before and after a cell: counters of the kernel, placement, the core's clock.
const WATCH_S: f64 = 0.01;
/// Finding out whether plain stores read first.
const RFO_S: f64 = burst_s(protocol::RFO_WINDOWS, protocol::WINDOW) * (protocol::RFO_ROUNDS * protocol::RFO_KINDS) as f64;
/// Driving a chase's buffer out of all caches, once: mapping and reading 1 GiB.
const DRIVE_OUT_S: f64 = 0.8;
/// Bytes a second at which two CPUs map and clear memory: half of what two cores of this decade clear, for a hypervisor may have to find the
/// memory first. More CPUs clear more, up to four times as much.
const ALLOCATE_BYTES_S: f64 = 2e9;
const MAX_ALLOCATE_FACTOR: f64 = 4.0;
/// The same for files: one CPU allocates all blocks before pages of 4 KiB are mapped. A tmpfs on a busy virtual machine.
const ALLOCATE_FILE_BYTES_S: f64 = 0.6e9;
/// Bytes of a file a second whose placement is read back after each cell: 4 KiB pages, asked for one by one.
const READ_BACK_FILE_BYTES_S: f64 = 8e9;
/// Bytes of buffer a second at which they write a chase into it.
const CHAIN_BYTES_S: f64 = 5e9;
/// Seconds to shuffle one line of a chase that is random over its whole buffer, by one thread; of a buffer whose numbers of lines fit a cache
/// of 16 MiB, and of a larger one, where each step misses it.
const SHUFFLE_S: f64 = 8e-9;
const FAR_SHUFFLE_S: f64 = 50e-9;
const SHUFFLED_IN_CACHE: u64 = 4 << 20;
/// Points that it mostly takes to find the delay of a share of the peak, next to those of the curve.
const TRIES_PER_SHARE: usize = 2;
/// Measurements of a search for weights, as its simulations needed on average (`interleave/tests.rs`), and delays for each where there is a
/// demand.
const RATIOS_OF_TWO: f64 = 31.0;
const RATIOS_OF_THREE: f64 = 135.0;
const DELAYS_OF_DEMAND: f64 = 3.0;
/// A burst of a sweep's point, without and with hardware events.
const POINT_BURST_S: f64 = burst_s(protocol::SWEEP_WINDOWS, protocol::SWEEP_WINDOW);
const COUNTED_POINT_BURST_S: f64 = burst_s(protocol::SWEEP_COUNTED_WINDOWS, protocol::SWEEP_WINDOW);
/// Preparing a sweep's point: linking its chain or laying out its loads.
const POINT_S: f64 = 0.004;
/// A kernel's bursts in a sweep's trial, and the levels that have a trial.
const POINT_TRIAL_S: f64 = burst_s(protocol::SWEEP_TRIAL_WINDOWS, protocol::SWEEP_WINDOW) * protocol::TRIAL_ROUNDS as f64;
const LEVELS: f64 = 4.0;
/// Bytes a second that one thread per core reads in a scan, and that first touch clears.
const READ_BYTES_S: f64 = 10e9;
const TOUCH_BYTES_S: f64 = 3e9;
/// Threads of a scan meet before each pass.
const MEET_S: f64 = 1e-3;
/// The fewest bytes a second that the CPUs of a node compare and write in a sweep of an integrity check.
const CHECK_BYTES_S: f64 = 3e9;
/// Bytes a second at which the buffers of a core-to-core matrix are allocated and their chains written, and what its calibration takes.
const MATRIX_BYTES_S: f64 = 2e9;
const CALIBRATION_S: f64 = 1.5;

/// How far from the fewest bursts to the budget the estimate of a plan is.
const HALFWAY: f64 = 0.5;

/// The time that a cell takes, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellCost {
    /// With nothing but the shortest bursts, and no more than the fewest.
    pub least_s: f64,
    /// With its whole budget.
    pub most_s: f64,
}

/// The time that each cell of a plan takes, by step and in the order that they run in: a cell finds what an earlier one has set up.
pub fn cells(plan: &Plan) -> Vec<CellCost> {
    let window = protocol::window(plan.stop.budget_s, plan.counters);
    let seconds_within = |budget_s: f64| {
        let stop = StopRule { budget_s, ..plan.stop };
        Costs { window, ..Costs::new(plan.steps.iter().flat_map(|s| &s.cells), &stop, plan.counters, 1.0) }.steps(&plan.steps)
    };
    let least = seconds_within(if plan.stop.fixed_time { plan.stop.budget_s } else { 0.0 });
    let both = least.into_iter().zip(seconds_within(plan.stop.budget_s));
    both.flat_map(|(least, most)| least.into_iter().zip(most)).map(|(least_s, most_s)| CellCost { least_s, most_s }).collect()
}

/// Seconds that a cell alone takes with its whole budget, with all of its set-up.
pub fn cell_seconds(cell: &Cell, stop: &StopRule) -> f64 {
    Costs::new(std::iter::once(cell), stop, false, 1.0).cell(cell)
}

/// The points of a curve, at most: those planned, and those that mostly are needed to find the shares of the peak.
pub fn curve_points(delays: &Delays, at_percent: &[u32]) -> usize {
    let planned = match delays {
        Delays::Cycles(list) => list.len(),
        Delays::Adaptive { points } => *points as usize,
    };
    planned + at_percent.len() * TRIES_PER_SHARE
}

/// About how many measurements a search for the weights of this number of nodes makes.
pub fn weights_measured(nodes: usize) -> f64 {
    if nodes > 2 { RATIOS_OF_THREE } else { RATIOS_OF_TWO }
}

/// Fills in the time that each step takes, and returns the most that all of them may take, in seconds.
pub(super) fn fill(steps: &mut [Step], stop: &StopRule, counters: bool) -> f64 {
    let about = seconds(steps, stop, counters, HALFWAY);
    let most = most(steps, stop, counters);
    steps.iter_mut().zip(about).for_each(|(step, cells)| step.estimated_s = cells.iter().sum());
    most
}

/// Seconds that all steps take with every budget spent.
pub(super) fn most(steps: &[Step], stop: &StopRule, counters: bool) -> f64 {
    by_step(steps, stop, counters).iter().sum()
}

/// The same of each step.
pub(super) fn by_step(steps: &[Step], stop: &StopRule, counters: bool) -> Vec<f64> {
    seconds(steps, stop, counters, 1.0).iter().map(|cells| cells.iter().sum()).collect()
}

/// The largest budget of a cell, in seconds, that lets all steps end within `within_s`; 0 if there is none.
pub(super) fn budget_within(steps: &[Step], stop: &StopRule, counters: bool, within_s: f64) -> f64 {
    let fits = |budget_s: f64| most(steps, &StopRule { budget_s, ..*stop }, counters) <= within_s;
    if fits(stop.budget_s) {
        return stop.budget_s;
    }
    let (mut low, mut high) = (0.0, stop.budget_s);
    // To a thousandth of the budget.
    for _ in 0..10 {
        let middle = f64::midpoint(low, high);
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// Seconds of each cell of each step, with every cell that `share` of the way from the fewest bursts to the budget.
fn seconds(steps: &[Step], stop: &StopRule, counters: bool, share: f64) -> Vec<Vec<f64>> {
    Costs::new(steps.iter().flat_map(|s| &s.cells), stop, counters, share).steps(steps)
}

/// The estimates of one plan's cells, in the order that they run in: a cell finds what an earlier one has set up.
struct Costs<'a> {
    stop: &'a StopRule,
    counters: bool,
    share: f64,
    window: Duration,
    /// Chases over each kind of buffer: those of several cells are kept.
    chases: BTreeMap<(u32, Bytes), u32>,
    /// How many of them were allocated.
    chased: BTreeMap<(u32, Bytes), u32>,
    /// Loaders whose buffers are there.
    loading: &'a [Loader],
    /// Trials that were made: the mix, the first CPU, the node of its buffer and the number of CPUs.
    tried: BTreeSet<(Mix, u32, u32, usize)>,
    warm: bool,
}

/// Whether the bytes that these stores read are measured: only of plain stores of whole lines in ascending order, because only these
/// have other stores to compare with.
fn compares_stores(traffic: &Traffic) -> bool {
    let Traffic { mix, form, .. } = traffic;
    mix.compared_with().is_some() && form.access != Access::Random && form.line == LineUse::Whole
}

impl<'a> Costs<'a> {
    fn new(cells: impl Iterator<Item = &'a Cell>, stop: &'a StopRule, counters: bool, share: f64) -> Self {
        let mut chases = BTreeMap::new();
        for cell in cells {
            let Some(buffer) = cell.work.shared_chase() else { continue };
            *chases.entry((buffer.node, buffer.bytes)).or_insert(0) += 1;
        }
        let (chased, tried) = (BTreeMap::new(), BTreeSet::new());
        let window = protocol::window(stop.budget_s, counters);
        Self { stop, counters, share, window, chases, chased, loading: &[], tried, warm: false }
    }

    /// Seconds of each cell of each step.
    fn steps(mut self, steps: &'a [Step]) -> Vec<Vec<f64>> {
        let mut all = Vec::with_capacity(steps.len());
        for step in steps {
            self.warm = false;
            all.push(step.cells.iter().map(|cell| self.cell(cell)).collect());
        }
        all
    }

    /// Between `least` and `most` seconds.
    fn between(&self, least: f64, most: f64) -> f64 {
        least + (most - least).max(0.0) * self.share
    }

    /// Bursts of a cell of `kinds` kinds: between the fewest of each kind, whose windows share the budget, and those that fill it.
    fn bursts(&self, least: f64, kinds: f64) -> f64 {
        let budget_s = self.stop.budget_s;
        if self.stop.fixed_time {
            return budget_s + least * kinds * self.beside_windows_s();
        }
        let counted_s = self.counted_s(least * kinds);
        self.between(least, (budget_s / (counted_s * kinds)).ceil()) * kinds * (counted_s + self.beside_windows_s())
    }

    /// The time that a burst of a cell takes beyond its counted windows.
    const fn beside_windows_s(&self) -> f64 {
        burst_s(0, self.window) + FREQUENCY_S
    }

    /// A chase that is only evidence.
    const fn comparison_s(&self) -> f64 {
        burst_s(protocol::COMPARISON_WINDOWS, self.window)
    }

    /// Fresh buffers that a cell needs of `wanted`: several cells share a few, which keep their chains.
    fn buffers(&mut self, buffer: &BufferPlan, wanted: f64) -> f64 {
        let key = (buffer.node, buffer.bytes);
        if self.chases.get(&key).is_none_or(|cells| *cells < 2) {
            return wanted;
        }
        let known = self.chased.entry(key).or_insert(0);
        let more = (wanted as u32).min(protocol::KEPT_ALLOCATIONS).saturating_sub(*known);
        *known += more;
        if more > 0 {
            self.warm = false;
        }
        f64::from(more)
    }

    /// Allocates the loaders' buffers that the cell before did not have.
    fn loaders(&mut self, loaders: &'a [Loader]) -> f64 {
        let new = loaders.iter().enumerate().filter(|(i, l)| self.loading.get(*i) != Some(l));
        let seconds = new.flat_map(|(_, l)| l.buffers()).map(allocate).sum();
        self.loading = loaders;
        seconds
    }

    fn warm_up(&mut self) -> f64 {
        if std::mem::replace(&mut self.warm, true) { 0.0 } else { WARM_UP_S }
    }

    /// Chooses a kernel, and finds out what stores cost.
    fn trials(&mut self, loaders: &[Loader], traffic: &Traffic) -> f64 {
        let (cpu, node) = loaders.first().map_or((0, 0), |l| (l.cpu, l.buffer.node));
        let new = self.tried.insert((traffic.mix, cpu, node, loaders.len()));
        let kernels = if new && traffic.kernels.len() > 1 { traffic.kernels.len() } else { 0 };
        let calibration = if new && compares_stores(traffic) { RFO_S } else { 0.0 };
        calibration + self.trial_s(kernels)
    }

    /// A trial of these kernels. Few of them fall so far behind that they are dropped before the last round: 52 trials on a two-core virtual
    /// machine took 49 ms for each kernel.
    fn trial_s(&self, kernels: usize) -> f64 {
        (kernels * protocol::trial_rounds(self.stop.budget_s)) as f64 * burst_s(protocol::TRIAL_WINDOWS, self.window)
    }

    /// Seconds of a cell.
    fn cell(&mut self, cell: &'a Cell) -> f64 {
        if !matches!(cell.work, Work::Bandwidth(_) | Work::Curve(_)) {
            self.loading = &[];
        }
        let own = match &cell.work {
            Work::Latency(IdleChase { probe, allocations, orders, hops, histogram }) => {
                self.latency(probe, *allocations, orders, *hops, with_batches(*histogram))
            }
            Work::Bandwidth(Loading { loaders, traffic, .. }) => {
                self.loaders(loaders) + self.trials(loaders, traffic) + line_check_s(loaders, traffic, 1.0) + self.bursts(MIN_BURSTS, 1.0)
            }
            Work::Curve(LoadCurve { probe, order, loaders, traffic, delays, at_percent, hops, histogram, .. }) => {
                let timed = with_batches(*histogram);
                let points = curve_points(delays, at_percent) as f64;
                let point = hops.map_or_else(|| self.bursts(MIN_BURSTS, timed), |hops| chase::seconds(hops, probe));
                let set_up = self.buffers(&probe.buffer, 1.0) * allocate(&probe.buffer) + chain(probe.buffer.bytes) + self.loaders(loaders);
                let settling = settling_s(*order, probe.buffer.bytes);
                set_up + settling + self.trials(loaders, traffic) + line_check_s(loaders, traffic, points) + points * (point + WATCH_S)
            }
            Work::Interleave(search) => {
                let InterleaveSearch { probe, loaders, traffic, nodes, goal, .. } = &**search;
                let ratios = weights_measured(nodes.len());
                let delays = if *goal == Goal::Bandwidth { 1.0 } else { DELAYS_OF_DEMAND };
                let buffers: f64 = loaders.iter().flat_map(Loader::buffers).chain([&probe.buffer]).map(allocate).sum();
                let trials = self.trial_s(traffic.kernels.len());
                let points = delays * (self.bursts(MIN_BURSTS, 1.0) + WATCH_S + trials);
                ratios * (buffers + chain(probe.buffer.bytes) + points)
            }
            Work::Handoff(handoff) => {
                // The holder chases every window before the reader.
                let both = |hops| MIN_RUNS * 2.0 * chase::hops_s(hops, handoff.buffer.bytes, handoff.stride);
                let run_s = protocol::transfer_run(self.stop.budget_s).as_secs_f64();
                let timed = || match self.stop.fixed_time {
                    true => self.stop.budget_s,
                    false => self.between(MIN_RUNS, (self.stop.budget_s / run_s).ceil()) * run_s,
                };
                let runs = handoff.hops.map_or_else(timed, both);
                self.buffers(&handoff.buffer, MIN_RUNS) * allocate(&handoff.buffer) + MIN_RUNS * chain(handoff.buffer.bytes) + runs
            }
            Work::Transfers(transfers) => self.transfers(transfers),
            Work::Scan(scan) => self.scan(scan),
            Work::LatencySweep(LatencySweep { probe, order, sizes }) => {
                let spread = probe.buffer.bytes.0 / sizes.last().map_or(1, |largest| largest.0.max(1));
                let settling: f64 = sizes.iter().map(|size| settling_s(*order, Bytes(size.0 * spread))).sum();
                self.points(sizes) + allocate(&probe.buffer) + chain(probe.buffer.bytes) + settling
            }
            Work::BandwidthSweep(BandwidthSweep { loaders, traffic, sizes }) => {
                let buffers: f64 = loaders.iter().map(|l| allocate(&l.buffer)).sum();
                self.points(sizes) + buffers + LEVELS * traffic.kernels.len() as f64 * POINT_TRIAL_S
            }
        };
        let files = cell.work.buffers().iter().filter(|b| b.directory.is_some()).map(|b| b.bytes.0).sum::<u64>() as f64;
        let points = if let Work::Curve(LoadCurve { delays, at_percent, .. }) = &cell.work { curve_points(delays, at_percent) } else { 1 };
        self.warm_up() + WATCH_S + points as f64 * files / READ_BACK_FILE_BYTES_S + own
    }

    fn latency(&mut self, probe: &Probe, allocations: u32, orders: &[ChaseOrder], hops: Option<Hops>, timed: f64) -> f64 {
        let (node, bytes) = (probe.buffer.node, probe.buffer.bytes);
        let orders = probe.orders(orders);
        let kinds = orders.len() as f64;
        let known = self.chased.contains_key(&(node, bytes));
        let drive_out = if self.chased.is_empty() { DRIVE_OUT_S + self.comparison_s() } else { 0.0 };
        let plateau = if known || !probe.buffer.derived { 0.0 } else { 2.5 * chain(bytes) + 2.0 * self.comparison_s() + drive_out };
        let least = f64::from(allocations);
        let measuring = match hops {
            Some(hops) => least * kinds * (protocol::SETTLE_HOPS.as_secs_f64() + chase::seconds(hops, probe)),
            // A fixed time is each order's.
            None if self.stop.fixed_time => kinds * self.bursts(least, 1.0),
            None => self.bursts(least, kinds * timed),
        };
        // Beyond those planned each allocation measures twice as long as one of them.
        let (timed_round, fixed) = (kinds * timed * self.counted_s(least * kinds * timed), hops.is_some() || self.stop.fixed_time);
        let more = if fixed { 0.0 } else { ((self.stop.budget_s / timed_round - least) / 2.0).max(0.0).ceil() * self.share };
        let groups = least + more;
        let shuffled = orders.contains(&ChaseOrder::FullRandom);
        let chains = kinds * chain(bytes) + if shuffled { shuffle(probe) } else { 0.0 };
        let settling: f64 = orders.iter().map(|order| settling_s(*order, bytes)).sum();
        let fresh = self.buffers(&probe.buffer, groups);
        fresh * (allocate(&probe.buffer) + chains) + plateau + self.comparison_s() + groups * settling + measuring
    }

    /// Counted seconds of a burst if at least `bursts` of them share the budget.
    fn counted_s(&self, bursts: f64) -> f64 {
        protocol::burst_windows(self.stop.budget_s, bursts, self.window) as f64 * self.window.as_secs_f64()
    }

    fn points(&self, sizes: &[Bytes]) -> f64 {
        let burst_s = if self.counters { COUNTED_POINT_BURST_S } else { POINT_BURST_S };
        let least = f64::from(protocol::sweep_bursts(self.stop.budget_s, burst_s)) * burst_s;
        let point = if self.stop.fixed_time { self.stop.budget_s.max(least) } else { self.between(least, self.stop.budget_s) };
        sizes.len() as f64 * (point + POINT_S)
    }

    /// Pairs at once; at most, one by one or those that stand for the others.
    fn transfers(&self, transfers: &Transfers) -> f64 {
        // A smaller budget is each transfer's as well.
        let shorter = transfers.one_s_within(self.stop.budget_s) / transfers.one_s();
        let (together_s, one_by_one_s) = (transfers.together_s() * shorter, transfers.one_by_one_s * shorter);
        let apart_s = match transfers.representatives.len() {
            0 => one_by_one_s,
            n => one_by_one_s * n as f64 / transfers.pairs().max(1) as f64,
        };
        let most = if self.share < 1.0 || transfers.at_once < 2 { together_s } else { together_s.max(apart_s) };
        let bytes: u64 = transfers.ends.iter().flat_map(|e| &e.buffers).map(|b| b.bytes.0).sum();
        most + bytes as f64 / MATRIX_BYTES_S + CALIBRATION_S
    }

    /// Its passes are counted; at most, some are repeated.
    fn scan(&self, scan: &Scan) -> f64 {
        let bytes = scan.bytes().0 as f64;
        let passes = f64::from(scan.passes);
        let more = if self.share < 1.0 { 0.0 } else { f64::from(more_passes(scan.passes)) };
        bytes / TOUCH_BYTES_S + (passes + more) * (bytes / READ_BYTES_S + f64::from(scan.regions) * MEET_S) + check_s(scan)
    }
}

/// Writing and comparing the patterns of a scan.
pub(super) fn check_s(scan: &Scan) -> f64 {
    let sweep_s = scan.bytes().0 as f64 / CHECK_BYTES_S + f64::from(scan.regions) * MEET_S;
    let writes = f64::from(scan.pattern_writes());
    // A region waits while others are gone over.
    let waits_s = writes * (scan.hold_s - sweep_s).max(0.0);
    if writes > 0.0 { (writes + 1.0) * sweep_s + waits_s } else { 0.0 }
}

/// Writing and comparing what checked lines hold: the patterns and two contents before they are read, and two after each point. Each is held for
/// a time before it is compared. Reading is a part of that time, which is not subtracted here.
fn line_check_s(loaders: &[Loader], traffic: &Traffic, points: f64) -> f64 {
    if traffic.form.line != LineUse::Checked {
        return 0.0;
    }
    let bytes: u64 = loaders.iter().flat_map(Loader::buffers).map(|b| b.bytes.0).sum();
    let patterns: u32 = traffic.patterns.iter().map(|pattern| pattern.writes()).sum();
    let compared = f64::from(patterns) + 1.0 + 2.0 * points;
    (compared + 1.0) * bytes as f64 / CHECK_BYTES_S + compared * traffic.hold_s
}

/// Times that a burst is run: once more for the batches of a histogram.
const fn with_batches(histogram: Option<u32>) -> f64 {
    if histogram.is_some() { 2.0 } else { 1.0 }
}

/// Writing a chain.
fn chain(bytes: Bytes) -> f64 {
    bytes.0 as f64 / CHAIN_BYTES_S
}

/// Shuffling all lines of a probe's buffer.
fn shuffle(probe: &Probe) -> f64 {
    let lines = probe.buffer.bytes.0 / probe.stride.0;
    lines as f64 * if lines > SHUFFLED_IN_CACHE { FAR_SHUFFLE_S } else { SHUFFLE_S }
}

/// Mapping and clearing a buffer.
fn allocate(buffer: &BufferPlan) -> f64 {
    let bytes_s = if buffer.directory.is_some() { ALLOCATE_FILE_BYTES_S } else { ALLOCATE_BYTES_S };
    buffer.bytes.0 as f64 / (bytes_s * (buffer.touch.len() as f64 / 2.0).clamp(1.0, MAX_ALLOCATE_FACTOR))
}
