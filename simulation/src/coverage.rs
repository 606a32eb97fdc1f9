//! How often the 95 % interval of a number holds the truth: cells on a simulated machine whose true values are known, measured by the
//! program's planner, engine and statistics. `docs/method/intervals.md` has the table.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use memgauge_engine::{RunContext, SimulatedMachine, Unobserved};
use memgauge_model::experiment::Metric;
use memgauge_model::plan::{KernelRow, Plan};
use memgauge_model::result::Measurement;
use memgauge_model::spec::{
    BandwidthShape, BandwidthSpec, ChaseSpec, CurveSpec, LatencySpec, LoadSpec, LoadedSpec, Spec, SweepSpec, Task, TrafficSpec,
    TransferShape,
};
use memgauge_model::topology::Machine;
use memgauge_model::traffic::Mix;
use memgauge_model::units::Bytes;
use memgauge_os::clock::Clock;

use crate::{Model, Noise, Shape};

/// One package of four cores: what more cores do is the model's, not the statistics'.
const MACHINE: Shape = Shape { packages: 1, nodes: 1, domains: 1, cores: 4, threads: 1, cache: Bytes::mib(16) };
/// The seed of the machine: its latencies and bandwidths.
const MACHINE_SEED: u64 = 3;
/// The median of a noise is taken from this many windows, and is right to a hundredth of the noise.
const WINDOWS_OF_NOISE: u32 = 200_000;
/// Far beyond the caches, so that no search for a larger buffer is needed.
const BUFFER: Option<Bytes> = Some(Bytes::mib(256));

/// A kind of measurement: a command, and which of its numbers are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its name in tables.
    pub name: &'static str,
    /// Whether each group of its samples has a buffer of its own.
    pub fresh_buffers: bool,
    metric: Metric,
    spec: fn() -> Spec,
}

/// The kinds of measurement that have an interval and can be simulated.
pub const KINDS: [Kind; 10] = [
    Kind { name: "latency", fresh_buffers: true, metric: Metric::Latency, spec: latency },
    Kind { name: "latency, 0.3 s", fresh_buffers: true, metric: Metric::Latency, spec: short_latency },
    Kind { name: "bandwidth, three mixes", fresh_buffers: false, metric: Metric::Bandwidth, spec: bandwidth },
    Kind { name: "bandwidth, three mixes, 0.1 s", fresh_buffers: false, metric: Metric::Bandwidth, spec: short_bandwidth },
    Kind { name: "loaded: latency", fresh_buffers: false, metric: Metric::Latency, spec: loaded },
    Kind { name: "loaded: bandwidth", fresh_buffers: false, metric: Metric::Bandwidth, spec: loaded },
    Kind { name: "c2c", fresh_buffers: false, metric: Metric::Latency, spec: transfers },
    Kind { name: "c2c, 0.45 s", fresh_buffers: true, metric: Metric::Latency, spec: short_transfers },
    Kind { name: "sweep: latency", fresh_buffers: false, metric: Metric::Latency, spec: latency_sweep },
    Kind { name: "sweep: bandwidth", fresh_buffers: false, metric: Metric::Bandwidth, spec: bandwidth_sweep },
];

fn latency() -> Spec {
    let chase = ChaseSpec { buffer: BUFFER, ..ChaseSpec::default() };
    Spec::new(Task::Latency(LatencySpec { chase, ..LatencySpec::default() }))
}

fn short_latency() -> Spec {
    Spec { budget: Some(Duration::from_millis(300)), ..latency() }
}

fn traffic(mixes: Vec<Mix>) -> TrafficSpec {
    TrafficSpec { load: LoadSpec { mixes, ..LoadSpec::default() }, buffer: BUFFER, ..TrafficSpec::default() }
}

fn bandwidth() -> Spec {
    let traffic = traffic(vec![Mix::AllReads, Mix::R2W1, Mix::R1W1Nt]);
    Spec::new(Task::Bandwidth(BandwidthSpec { shape: BandwidthShape::One, traffic, ..BandwidthSpec::default() }))
}

fn short_bandwidth() -> Spec {
    Spec { budget: Some(Duration::from_millis(100)), ..bandwidth() }
}

fn loaded() -> Spec {
    let curve = CurveSpec { delays: vec![100, 1000], ..CurveSpec::default() };
    let chase = ChaseSpec { buffer: BUFFER, ..ChaseSpec::default() };
    Spec::new(Task::Loaded(LoadedSpec { chase, curve, traffic: traffic(vec![Mix::AllReads]), ..LoadedSpec::default() }))
}

fn transfers() -> Spec {
    Spec::new(Task::c2c(TransferShape::Representatives))
}

fn short_transfers() -> Spec {
    Spec { budget: Some(Duration::from_millis(450)), ..transfers() }
}

fn sweep(metric: Metric) -> Spec {
    let sizes = SweepSpec { min: Some(Bytes::kib(512)), max: Some(Bytes::mib(64)), points_per_octave: Some(1), ..SweepSpec::default() };
    Spec::new(Task::Sweep(SweepSpec { metrics: vec![metric], ..sizes }))
}

fn latency_sweep() -> Spec {
    sweep(Metric::Latency)
}

fn bandwidth_sweep() -> Spec {
    sweep(Metric::Bandwidth)
}

/// A kind of noise by its name.
#[derive(Debug, Clone, Copy)]
pub struct NoiseKind {
    /// Its name in tables.
    pub name: &'static str,
    /// Whether the interval holds the truth of all kinds of measurement under it, or only of those with fresh buffers, or of none: then the
    /// table says what it does not cover.
    pub covered: Covered,
    /// The noise.
    pub noise: Noise,
}

/// The kinds of measurement whose interval is to hold the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covered {
    /// All.
    All,
    /// Those with a fresh buffer for each group of samples. Others measure one buffer, and cannot know how much others differ.
    FreshBuffers,
    /// None: a run that is short beside the changes sees one state of the machine.
    None,
}

/// Of windows, where nothing else is said: the noise of quiet servers.
const STEADY: Noise = Noise { window: 0.005, ..Noise::NONE };

/// The kinds of noise.
pub const NOISES: [NoiseKind; 8] = [
    NoiseKind { name: "independent windows, 2 %", covered: Covered::All, noise: Noise { window: 0.02, ..Noise::NONE } },
    NoiseKind { name: "bursts differ, 0.5 %", covered: Covered::All, noise: Noise { burst: 0.005, ..STEADY } },
    NoiseKind { name: "bursts differ, 1.5 %", covered: Covered::All, noise: Noise { burst: 0.015, ..STEADY } },
    NoiseKind { name: "bursts differ, 3 %", covered: Covered::All, noise: Noise { burst: 0.03, ..STEADY } },
    NoiseKind {
        name: "outliers: 5 % of windows, 5 % of bursts",
        covered: Covered::All,
        noise: Noise { burst: 0.005, outliers: 0.05, slow_bursts: 0.05, ..STEADY },
    },
    NoiseKind {
        name: "allocations differ, 1.5 %",
        covered: Covered::FreshBuffers,
        noise: Noise { allocation: 0.015, burst: 0.005, ..STEADY },
    },
    NoiseKind {
        name: "state wanders by 1 % within 0.1 s",
        covered: Covered::None,
        noise: Noise { state: 0.01, state_s: 0.1, burst: 0.005, ..STEADY },
    },
    NoiseKind {
        name: "state wanders by 1 % within 5 s",
        covered: Covered::None,
        noise: Noise { state: 0.01, state_s: 5.0, burst: 0.005, ..STEADY },
    },
];

impl NoiseKind {
    /// Whether the interval of `kind` is to hold the truth.
    pub fn is_covered(&self, kind: &Kind) -> bool {
        self.covered == Covered::All || (self.covered == Covered::FreshBuffers && kind.fresh_buffers)
    }
}

/// How often intervals held the truth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Held {
    /// Numbers that were measured.
    pub cells: u32,
    /// Those whose interval held the truth.
    pub held: u32,
    /// The sum of half widths, as shares of the values.
    half_widths: f64,
    /// The sum of the times that runs took on the machine, in seconds, and how many runs there were.
    seconds: (f64, u32),
}

impl Held {
    /// The share that held the truth, 0 to 1.
    pub fn share(&self) -> f64 {
        f64::from(self.held) / f64::from(self.cells)
    }

    /// The 95 % interval of that share (E. B. Wilson, "Probable Inference", Journal of the American Statistical Association 22, 1927).
    pub fn interval(&self) -> (f64, f64) {
        const Z: f64 = 1.959_964;
        let (n, p) = (f64::from(self.cells), self.share());
        let (middle, half) = (p + Z * Z / (2.0 * n), Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt());
        let all = 1.0 + Z * Z / n;
        ((middle - half) / all, (middle + half) / all)
    }

    /// The mean of half widths, as a share of the values.
    pub fn half_width(&self) -> f64 {
        self.half_widths / f64::from(self.cells)
    }

    /// The mean time that a run took on the machine, in seconds.
    pub fn run_s(&self) -> f64 {
        self.seconds.0 / f64::from(self.seconds.1)
    }

    fn add(&mut self, other: &Self) {
        self.cells += other.cells;
        self.held += other.held;
        self.half_widths += other.half_widths;
        self.seconds = (self.seconds.0 + other.seconds.0, self.seconds.1 + other.seconds.1);
    }
}

/// A kind of measurement with its plan and its true values.
struct Setting<'a> {
    kind: &'a Kind,
    machine: Machine,
    plan: Plan,
    clock: Clock,
    stop: Arc<AtomicBool>,
}

/// One kernel of each kind, so that no trial decides by noise what is true.
fn kernels() -> Vec<KernelRow> {
    let mut kept: Vec<KernelRow> = Vec::new();
    for row in memgauge_kernels::rows() {
        if !kept.iter().any(|k| k.mix == row.mix && k.form == row.form) {
            kept.push(row);
        }
    }
    kept
}

impl<'a> Setting<'a> {
    /// `None` where this machine's kernels do not allow the plan.
    fn new(kind: &'a Kind, clock: Clock) -> Option<Self> {
        let machine = MACHINE.machine();
        let plan = memgauge_planner::plan(&(kind.spec)(), &machine, &kernels()).ok()?;
        Some(Self { kind, machine, plan, clock, stop: Arc::new(AtomicBool::new(false)) })
    }

    fn model(&self, noise: Noise) -> Model {
        let mut model = Model::new(&self.machine, None, MACHINE_SEED);
        model.noise = noise;
        model
    }

    /// The numbers of a run.
    fn run(&self, model: &Model) -> Vec<Measurement> {
        let context = RunContext::new(&self.machine, self.clock, "/a simulated machine has no files".into(), &self.stop).simulated(model);
        let outcome = memgauge_engine::run(&self.plan, &context, &mut Unobserved);
        outcome.results.into_iter().filter(|m| m.metric == self.kind.metric).collect()
    }

    /// Counts how many intervals of `cells` numbers hold the truth.
    fn count(&self, noise: &Noise, cells: u32, seed: u64) -> Held {
        let truth: Vec<Option<f64>> = self.run(&self.model(Noise::NONE)).into_iter().map(|m| m.estimate.value).collect();
        let slower = noise.median_factor(WINDOWS_OF_NOISE).unwrap_or(1.0);
        let factor = if self.kind.metric == Metric::Latency { slower } else { 1.0 / slower };
        let (mut model, mut held) = (self.model(*noise), Held::default());
        // Each run has a number or more, unless they have no interval.
        for run in 0..u64::from(cells) {
            if held.cells >= cells || truth.is_empty() {
                break;
            }
            model = model.again(seed.wrapping_add(run));
            for (m, truth) in self.run(&model).iter().zip(&truth) {
                held.look_at(m, truth.map(|truth| truth * factor));
            }
            held.seconds = (held.seconds.0 + model.elapsed().as_secs_f64(), held.seconds.1 + 1);
        }
        held
    }
}

impl Held {
    fn look_at(&mut self, m: &Measurement, truth: Option<f64>) {
        let estimate = &m.estimate;
        // Too few samples for an interval: none is printed.
        let (Some(low), Some(high), Some(value)) = (estimate.ci95_low, estimate.ci95_high, estimate.value) else { return };
        self.cells += 1;
        self.held += u32::from(truth.is_some_and(|truth| low <= truth && truth <= high));
        self.half_widths += (high - low) / 2.0 / value;
    }
}

/// A line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// What was measured.
    pub kind: &'static Kind,
    /// Under which noise.
    pub noise: &'static NoiseKind,
    /// How often intervals held the truth.
    pub held: Held,
}

/// Counts for these kinds of measurement and of noise, with at least `cells` numbers each, on all CPUs. The same seed gives the same rows.
pub fn rows(wanted: &[(&'static Kind, &'static NoiseKind)], cells: u32, seed: u64) -> Vec<Row> {
    /// Numbers that are counted at a time, so that all CPUs have work to the end.
    const PART: u32 = 500;
    let clock = Clock::calibrate(Path::new("/"));
    let parts = cells.div_ceil(PART).max(1);
    let jobs: Vec<(usize, u32)> = (0..wanted.len()).flat_map(|row| (0..parts).map(move |part| (row, part))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&(row, part)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (kind, noise) = wanted[row];
            // A part has fewer runs than numbers, and all parts have fewer than 2^32: neither parts nor seeds share a run.
            let seed = (seed << 32).wrapping_add(u64::from(part) * u64::from(PART));
            let numbers = cells.min(PART.max(cells / parts));
            done.push((row, Setting::new(kind, clock).map_or_else(Held::default, |s| s.count(&noise.noise, numbers, seed))));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut held = vec![Held::default(); wanted.len()];
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // A thread that panicked has said so; its rows have fewer cells.
        for (row, part) in threads.into_iter().filter_map(|thread| thread.join().ok()).flatten() {
            held[row].add(&part);
        }
    });
    wanted.iter().zip(held).map(|(&(kind, noise), held)| Row { kind, noise, held }).collect()
}
