//! Makes a plan coarser so that the run ends in time.
//!
//! One thing after the other is given up, in the order of [`Coarsening`], and each first where a step takes longest, so that every kind of
//! measurement keeps its share. No step is left without a cell.

use std::collections::BTreeMap;

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{BufferPlan, Coarsened, Coarsening, Delays, IdleChase, LoadCurve, Loading, Step, StopRule, Work, worth};
use memgauge_model::protocol;
use memgauge_model::spec::Task;
use memgauge_model::units::Bytes;
use memgauge_model::words;
use memgauge_model::words::Knob;

use crate::context::Planner;
use crate::cost;

/// Cells keep this share of their budget while there is something else to give up that costs less: bursts are then about as long as usual.
const FIRST_SHARE: f64 = 1.0 / 8.0;
/// The fewest allocations of a latency cell: the fewest whose median lies between two others.
const FEWEST_ALLOCATIONS: u32 = 3;
/// The fewest points of a curve: its ends, and enough between them for a knee.
const FEWEST_POINTS: usize = 5;
/// The fewest sizes of a sweep: one in two doublings from 4 KiB to 1 GiB, so that each level still has one.
const FEWEST_SIZES: usize = 9;
/// The fewest regions of a scan: a weak one among fewer does not stand out.
pub(super) const FEWEST_REGIONS: u32 = 4;
/// Full-random chases are given up first over buffers from this size on: the numbers of their lines miss every cache while they are shuffled.
const LONG_SHUFFLE: Bytes = Bytes::gib(1);

/// A part of a plan that is given up.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reduction {
    what: Coarsening,
    /// Of orders: only over buffers of at least these bytes.
    from: Bytes,
}

const fn less(what: Coarsening) -> Reduction {
    Reduction { what, from: Bytes(0) }
}

const NO_LONG_SHUFFLES: Reduction = Reduction { what: Coarsening::Orders, from: LONG_SHUFFLE };

/// The parts that are given up, in this order. The budget shrinks before them, down to its [`FIRST_SHARE`], and after them, down to the shortest
/// bursts.
const ALL: [Reduction; 8] = [
    less(Coarsening::Repetitions),
    less(Coarsening::Points),
    NO_LONG_SHUFFLES,
    less(Coarsening::BufferBytes),
    less(Coarsening::Kernels),
    less(Coarsening::Orders),
    less(Coarsening::Regions),
    less(Coarsening::Cells),
];

/// The amounts of a step that these reductions make smaller.
const REDUCED: [Coarsening; 7] = [
    Coarsening::Repetitions,
    Coarsening::Points,
    Coarsening::Orders,
    Coarsening::BufferBytes,
    Coarsening::Kernels,
    Coarsening::Regions,
    Coarsening::Cells,
];

/// How much of each a step has.
fn amounts(step: &Step) -> [f64; REDUCED.len()] {
    REDUCED.map(|what| step.amount(what))
}

impl Planner<'_> {
    /// Coarsens `steps` until they take no longer than `within_s`, and returns the budget with which they do. A budget that the user gave
    /// stays. All else is given up before windows become shorter than usual.
    pub(super) fn fit(&mut self, steps: &mut [Step], stop: &StopRule, within_s: f64) -> f64 {
        let own = self.spec.time.or(self.spec.budget).is_some();
        let counters = self.spec.counters;
        let before: Vec<_> = steps.iter().map(amounts).collect();
        for reduction in ALL {
            let early = matches!(reduction.what, Coarsening::Repetitions | Coarsening::Points);
            let least = if early { FIRST_SHARE * stop.budget_s } else { 0.0 };
            let budget_s = if own { stop.budget_s } else { least.max(protocol::SHORT_BUDGET.as_secs_f64()).min(stop.budget_s) };
            self.reduce(reduction, steps, &StopRule { budget_s, ..*stop }, within_s);
        }
        let budget_s = if own { stop.budget_s } else { cost::budget_within(steps, stop, counters, within_s) };
        if budget_s < 0.99 * stop.budget_s {
            self.coarsened.push(Coarsened { step: None, what: Coarsening::Seconds, from: stop.budget_s, to: budget_s });
        }
        self.note_reductions(&before, steps);
        if self.coarsened.iter().any(|c| c.what == Coarsening::Regions) {
            self.say_what_is_scanned(steps);
        }
        budget_s
    }

    /// Gives up long shuffles and large buffers only, as a health check does before it leaves nodes out.
    pub(super) fn lighten(&mut self, steps: &mut [Step], stop: &StopRule, within_s: f64) {
        let before: Vec<_> = steps.iter().map(amounts).collect();
        for reduction in [NO_LONG_SHUFFLES, less(Coarsening::BufferBytes)] {
            self.reduce(reduction, steps, stop, within_s);
        }
        self.note_reductions(&before, steps);
    }

    /// Reduces something in the step that takes longest, again and again, until the steps fit or nothing is left of it.
    fn reduce(&self, reduction: Reduction, steps: &mut [Step], stop: &StopRule, within_s: f64) {
        loop {
            let seconds = cost::by_step(steps, stop, self.spec.counters);
            if seconds.iter().sum::<f64>() <= within_s {
                return;
            }
            if reduction.what == Coarsening::BufferBytes {
                // Buffers are shared between steps, so they shrink together.
                if !steps.iter_mut().flat_map(|s| &mut s.cells).fold(false, |any, cell| self.shrink(&mut cell.work) | any) {
                    return;
                }
                continue;
            }
            let mut longest: Vec<usize> = (0..steps.len()).collect();
            longest.sort_by(|a, b| seconds[*b].total_cmp(&seconds[*a]));
            if !longest.into_iter().any(|i| self.coarsen(reduction, &mut steps[i])) {
                return;
            }
        }
    }

    /// Reduces something in a step once. Returns whether that changed anything.
    fn coarsen(&self, reduction: Reduction, step: &mut Step) -> bool {
        if reduction.what == Coarsening::Cells {
            let ranks = worth::cell_ranks(&step.cells);
            return drop_least(&mut step.cells, &ranks);
        }
        step.cells.iter_mut().fold(false, |any, cell| self.coarsen_work(reduction, &mut cell.work) | any)
    }

    fn coarsen_work(&self, Reduction { what, from }: Reduction, work: &mut Work) -> bool {
        match (what, work) {
            (Coarsening::Repetitions, Work::Latency(IdleChase { allocations, hops: None, .. })) => lower(allocations, FEWEST_ALLOCATIONS),
            (Coarsening::Repetitions, Work::Scan(scan)) => lower(&mut scan.passes, 1),
            // So much memory was asked for.
            (Coarsening::Regions, Work::Scan(_)) if matches!(&self.spec.task, Task::Scan(scan) if scan.memory.is_some()) => false,
            (Coarsening::Regions, Work::Scan(scan)) => lower(&mut scan.regions, FEWEST_REGIONS),
            (Coarsening::Points, Work::Curve(LoadCurve { delays: Delays::Adaptive { points }, .. })) => lower(points, FEWEST_POINTS as u32),
            (Coarsening::Points, Work::Curve(LoadCurve { delays: Delays::Cycles(list), .. })) => thin(list, FEWEST_POINTS),
            (Coarsening::Points, Work::LatencySweep(sweep)) => thin(&mut sweep.sizes, FEWEST_SIZES),
            (Coarsening::Points, Work::BandwidthSweep(sweep)) => thin(&mut sweep.sizes, FEWEST_SIZES),
            (Coarsening::Orders, Work::Latency(IdleChase { probe, orders, .. }))
                if orders.is_empty() && probe.orders(orders).len() > 1 && probe.buffer.bytes >= from =>
            {
                orders.push(ChaseOrder::WindowLocal);
                true
            }
            (Coarsening::Kernels, Work::Bandwidth(Loading { traffic, .. }) | Work::Curve(LoadCurve { traffic, .. })) => {
                self.widest(&mut traffic.kernels)
            }
            (Coarsening::Kernels, Work::BandwidthSweep(sweep)) => self.widest(&mut sweep.traffic.kernels),
            _ => false,
        }
    }

    /// Keeps the widest kernel.
    fn widest(&self, names: &mut Vec<String>) -> bool {
        if names.len() < 2 {
            return false;
        }
        let width = |name: &String| self.kernels.iter().find(|k| k.name == *name).map(|k| k.width);
        if let Some(best) = names.iter().max_by_key(|name| width(name)).cloned() {
            *names = vec![best];
        }
        true
    }

    /// Halves derived buffers, down to twice the caches that could hold them: a random chase then hits at most half of the time, and a
    /// cyclic one under LRU still never. Of a sweep whose end was not asked for, the largest working sets are left out.
    fn shrink(&self, work: &mut Work) -> bool {
        match work {
            Work::LatencySweep(sweep) => {
                let spread = sweep.probe.buffer.bytes.0 / sweep.sizes.last().map_or(1, |s| s.0.max(1));
                let least = self.sizes.least_probe(sweep.probe.cpu);
                let changed = self.fewer_sizes(&mut sweep.sizes, least);
                sweep.probe.buffer.bytes = Bytes(sweep.sizes.last().map_or(0, |s| s.0) * spread);
                changed
            }
            Work::BandwidthSweep(sweep) => {
                let least = sweep.loaders.first().map_or(0, |l| self.sizes.least_probe(l.cpu));
                let changed = self.fewer_sizes(&mut sweep.sizes, least);
                let bytes = sweep.sizes.last().copied().unwrap_or(Bytes(0));
                sweep.loaders.iter_mut().for_each(|l| l.buffer.bytes = bytes);
                changed
            }
            Work::Latency(chase) => halve(&mut chase.probe.buffer, self.sizes.least_probe(chase.probe.cpu)),
            Work::Bandwidth(loading) => self.halve_loaders(&mut loading.loaders),
            Work::Curve(curve) => {
                halve(&mut curve.probe.buffer, self.sizes.least_probe(curve.probe.cpu)) | self.halve_loaders(&mut curve.loaders)
            }
            _ => false,
        }
    }

    fn halve_loaders(&self, loaders: &mut [memgauge_model::plan::Loader]) -> bool {
        let mut sharers: BTreeMap<u32, u64> = BTreeMap::new();
        for loader in loaders.iter() {
            *sharers.entry(self.sizes.domain(loader.cpu)).or_default() += 1;
        }
        loaders.iter_mut().fold(false, |any, l| {
            let least = self.sizes.least_loader(l.cpu, sharers.get(&self.sizes.domain(l.cpu)).copied().unwrap_or(1));
            halve(&mut l.buffer, least) | any
        })
    }

    fn fewer_sizes(&self, sizes: &mut Vec<Bytes>, least: u64) -> bool {
        let last = sizes.last().map_or(0, |s| s.0);
        let named = matches!(&self.spec.task, Task::Sweep(sweep) if sweep.max.is_some());
        if named || last / 2 < least {
            return false;
        }
        sizes.retain(|s| s.0 <= last / 2);
        true
    }

    /// Writes down what has become of the steps.
    fn note_reductions(&mut self, before: &[[f64; REDUCED.len()]], steps: &[Step]) {
        for (before, step) in before.iter().zip(steps) {
            for ((what, from), to) in REDUCED.into_iter().zip(*before).zip(amounts(step)) {
                if to < from {
                    self.coarsened.push(Coarsened { step: Some(step.title.clone()), what, from, to });
                }
            }
        }
    }
}

/// One note that says all of it; `None` if nothing was coarsened.
pub(super) fn note(coarsened: &[Coarsened], within_s: f64) -> Option<Note> {
    let mut parts: BTreeMap<Coarsening, Vec<&Coarsened>> = BTreeMap::new();
    coarsened.iter().for_each(|c| parts.entry(c.what).or_default().push(c));
    let words: Vec<String> = parts.iter().map(|(what, list)| words(*what, list)).collect();
    let message = format!("to end within {within_s:.0} s: {}", words.join("; "));
    (!words.is_empty())
        .then(|| Note::info(NoteCode::Coarsened, message).advise(words!["give it more time with ", Knob::Within, " for the usual detail"]))
}

/// One of the two numbers of what was coarsened.
type CoarsenedValue = fn(&Coarsened) -> f64;

fn words(what: Coarsening, list: &[&Coarsened]) -> String {
    let range = |value: CoarsenedValue, word: fn(f64) -> String| {
        let (low, high) = list.iter().fold((f64::INFINITY, 0.0f64), |(low, high), c| (low.min(value(c)), high.max(value(c))));
        if low < high { format!("{} to {}", word(low), word(high)) } else { word(high) }
    };
    let number = |value: CoarsenedValue| range(value, |n| format!("{n:.0}"));
    let (to, from): (CoarsenedValue, CoarsenedValue) = (|c| c.to, |c| c.from);
    match what {
        Coarsening::Seconds => {
            // Shorter than the shortest bursts is as short as these.
            let seconds = |s: f64| if s < 0.05 { format!("{:.0} ms", s * 1e3) } else { format!("{s:.2} s") };
            format!("cells have {} instead of {}", range(to, seconds), range(from, seconds))
        }
        Coarsening::Repetitions => format!("{} allocations or passes instead of {}", number(to), number(from)),
        Coarsening::Points => format!("{} points of a curve instead of {}", number(to), number(from)),
        Coarsening::Orders => "no full-random chase".into(),
        Coarsening::BufferBytes => {
            let bytes = |b: f64| Bytes(b as u64).to_string();
            format!("buffers of {} instead of {}", range(to, bytes), range(from, bytes))
        }
        Coarsening::Kernels => "the widest kernel without a trial".into(),
        Coarsening::Regions => format!("{} regions of memory instead of {}", number(to), number(from)),
        Coarsening::Cells => format!("{} cells of a table instead of {}", number(to), number(from)),
    }
}

/// Halves a number, down to `least`.
fn lower(number: &mut u32, least: u32) -> bool {
    let lower = (*number / 2).max(least);
    let changed = lower < *number;
    *number = lower.min(*number);
    changed
}

/// Keeps every second, and both ends, while at least `least` are left.
fn thin<T>(list: &mut Vec<T>, least: usize) -> bool {
    list.len().div_ceil(2) >= least && drop_least(list, &worth::point_ranks(list.len()))
}

/// Drops what is worth least: what has the highest rank. Returns whether anything was.
fn drop_least<T>(list: &mut Vec<T>, ranks: &[u32]) -> bool {
    let highest = ranks.iter().copied().max().unwrap_or(0);
    let mut ranks = ranks.iter();
    list.retain(|_| highest == 0 || ranks.next() != Some(&highest));
    highest > 0
}

/// Halves a derived buffer that is still at least `least` bytes then.
fn halve(buffer: &mut BufferPlan, least: u64) -> bool {
    let fits = buffer.derived && buffer.bytes.0 / 2 >= least;
    if fits {
        buffer.bytes = Bytes((buffer.bytes.0 / 2).next_multiple_of(1 << 20));
    }
    fits
}
