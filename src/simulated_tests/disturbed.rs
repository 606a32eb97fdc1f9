//! Others take the CPUs, or use the memory, while a simulated machine is measured.

use std::sync::atomic::{AtomicUsize, Ordering};

use memgauge_model::protocol::{SETTLE_WINDOWS, TRIAL_WINDOWS};
use memgauge_model::result::{Measurement, QualityLevel};

use super::*;

/// A model whose CPUs others take: `away` says for how much of each window, by the number of the burst, its loads, and its windows.
struct Beside<F> {
    model: Model,
    bursts: AtomicUsize,
    away: F,
    /// Returns, for the number of a burst, the share that others have of the other CPUs, and by how much they slow the memory down.
    neighbours: fn(usize) -> (f64, f64),
}

impl<F: Fn(usize, &[LoadWork], usize) -> f64> Beside<F> {
    fn new(model: Model, away: F) -> Self {
        Self { model, bursts: AtomicUsize::new(0), away, neighbours: |_| (0.01, 1.0) }
    }
}

impl<F: Fn(usize, &[LoadWork], usize) -> f64 + Sync> SimulatedMachine for Beside<F> {
    fn elapsed(&self) -> Duration {
        self.model.elapsed()
    }

    fn pass(&self, time: Duration) {
        self.model.pass(time);
    }

    fn ghz(&self, cpu: u32, busy: usize) -> f64 {
        self.model.ghz(cpu, busy)
    }

    fn burst(&self, chase: Option<ChaseWork>, loads: &[LoadWork], windows: usize, window: Duration) -> BurstRates {
        let mut rates = self.model.burst(chase, loads, windows, window);
        let nth = self.bursts.fetch_add(1, Ordering::Relaxed);
        let (share, slower) = (self.neighbours)(nth);
        rates.lines_per_ns.iter_mut().flatten().for_each(|rate| *rate /= slower);
        rates.hop_ns.iter_mut().for_each(|ns| *ns *= slower);
        BurstRates { away: vec![(self.away)(nth, loads, windows); windows], neighbours: Some(share), ..rates }
    }

    fn read_all(&self, cpu: u32, bytes: Bytes) {
        self.model.read_all(cpu, bytes);
    }

    fn transfers(&self, work: &[TransferWork], run: Duration) -> Vec<Vec<f64>> {
        self.model.transfers(work, run)
    }
}

/// A trial's bursts have fewer windows than those of a result.
const TRIAL: usize = SETTLE_WINDOWS + TRIAL_WINDOWS;

/// The kernels that trials have tried, the fastest on a quiet model last, and the one that was chosen there.
fn quiet_choice(spec: &Spec, machine: &Machine) -> String {
    let quiet = run(spec, machine, &with_noise(machine, Noise::NONE), None);
    let [m] = &quiet.results[..] else { panic!("{} results", quiet.results.len()) };
    assert_eq!((m.quality.level, m.evidence.kernel_chosen_busy), (QualityLevel::Good, false), "{:?}", m.quality);
    m.evidence.kernel.clone()
}

fn one_bandwidth() -> Spec {
    Spec::new(Task::bandwidth(BandwidthShape::One))
}

#[test]
fn a_kernel_whose_trial_others_interrupt_is_tried_again() {
    let machine = TWO_NODES.machine();
    let fastest = quiet_choice(&one_bandwidth(), &machine);
    // Others have nine tenths of the time of the first two bursts of the fastest kernel.
    let taken = AtomicUsize::new(0);
    let model = Beside::new(with_noise(&machine, Noise::NONE), |_, loads: &[LoadWork], windows| {
        let hit = windows == TRIAL && loads.iter().any(|load| load.kernel.name == fastest);
        if hit && taken.fetch_add(1, Ordering::Relaxed) < 2 { 0.9 } else { 0.0 }
    });
    let report = run(&one_bandwidth(), &machine, &model, None);
    let m = &report.results[0];
    assert!(taken.load(Ordering::Relaxed) > 2, "the model took the CPU in trials");
    assert_eq!(m.evidence.kernel, fastest);
    assert_eq!((m.quality.level, &m.quality.reasons[..]), (QualityLevel::Good, &[][..]));
}

#[test]
fn a_kernel_that_was_never_tried_in_peace_marks_the_number() {
    let machine = TWO_NODES.machine();
    let fastest = quiet_choice(&one_bandwidth(), &machine);
    let model = Beside::new(with_noise(&machine, Noise::NONE), |_, loads: &[LoadWork], windows| {
        let hit = windows == TRIAL && loads.iter().any(|load| load.kernel.name == fastest);
        if hit { 0.9 } else { 0.0 }
    });
    let m = run(&one_bandwidth(), &machine, &model, None).results[0].clone();
    assert_ne!(m.evidence.kernel, fastest, "nothing is known of the fastest");
    assert_eq!((m.quality.level, &m.quality.reasons[..]), (QualityLevel::Degraded, &[QualityReason::KernelChosenBusy][..]));
    // If no kernel has a clean burst, none of the rates says anything.
    let model = Beside::new(
        with_noise(&machine, Noise::NONE),
        |nth, _: &[LoadWork], windows| {
            if windows == TRIAL { 0.05 + 0.9 * (nth % 2) as f64 } else { 0.0 }
        },
    );
    let m = run(&one_bandwidth(), &machine, &model, None).results[0].clone();
    assert_eq!((m.evidence.kernel, m.quality.reasons), (fastest, vec![QualityReason::KernelChosenBusy]), "the widest");
}

#[test]
fn a_choice_in_trouble_is_made_again_for_the_next_cell() {
    let machine = TWO_NODES.machine();
    let spec = Spec::new(Task::bandwidth(BandwidthShape::Matrix));
    let quiet = run(&spec, &machine, &with_noise(&machine, Noise::NONE), None);
    let kernel_of = |m: &Measurement| m.evidence.kernel.clone();
    let trials = AtomicUsize::new(0);
    let model = Beside::new(with_noise(&machine, Noise::NONE), |_, _: &[LoadWork], windows| {
        let trial = windows == TRIAL;
        if trial && trials.fetch_add(1, Ordering::Relaxed) < 4 { 0.9 } else { 0.0 }
    });
    let report = run(&spec, &machine, &model, None);
    let busy = report.measurements().filter(|m| m.evidence.kernel_chosen_busy).count();
    assert!(busy <= 1, "{busy} of {}", report.measurements().count());
    let calm = report.results.iter().filter(|m| !m.evidence.kernel_chosen_busy);
    for m in calm {
        let same = quiet.results.iter().find(|q| q.is_of_same_cell(m)).map(kernel_of);
        assert_eq!(Some(kernel_of(m)), same);
    }
}

/// A latency beside neighbours.
fn beside_neighbours(neighbours: fn(usize) -> (f64, f64)) -> Measurement {
    let machine = TWO_NODES.machine();
    let model = Beside { neighbours, ..Beside::new(with_noise(&machine, Noise::NONE), |_, _: &[LoadWork], _| 0.0) };
    let mut spec = Spec::new(Task::latency(LatencyShape::One));
    options!(&mut spec.task, Latency).chase.buffer = Some(Bytes::mib(256));
    run(&spec, &machine, &model, None).results[0].clone()
}

#[test]
fn traffic_of_cpus_that_are_not_measured_is_a_reason_for_doubt() {
    let quiet = beside_neighbours(|_| (0.01, 1.0));
    assert_eq!((quiet.quality.level, &quiet.quality.reasons[..]), (QualityLevel::Good, &[][..]));
    let slow = beside_neighbours(|_| (0.5, 1.4));
    assert!(close(slow.estimate.value.unwrap() / quiet.estimate.value.unwrap(), 1.4, 0.01), "{:?}", slow.estimate);
    assert_eq!((slow.quality.level, &slow.quality.reasons[..]), (QualityLevel::Degraded, &[QualityReason::BusyNeighbours][..]));
    assert_eq!(slow.evidence.noise.neighbours.and_then(|n| n.memory), Some(0.5));
}

#[test]
fn the_quiet_moments_of_a_cell_count() {
    let quiet = beside_neighbours(|_| (0.01, 1.0));
    // In two bursts of three.
    let mixed = beside_neighbours(|nth| if nth % 3 < 2 { (0.5, 1.4) } else { (0.01, 1.0) });
    assert_eq!((mixed.quality.level, &mixed.quality.reasons[..]), (QualityLevel::Good, &[][..]));
    assert!(close(mixed.estimate.value.unwrap() / quiet.estimate.value.unwrap(), 1.0, 0.01), "{:?}", mixed.estimate);
    let noise = &mixed.evidence.noise;
    assert!(noise.bursts_left_out > Some(0) && noise.disturbed_by.len() == 1, "{noise:?}");
}
