//! Stamps tell states of a machine apart.

use memgauge_analysis::conclusions::state::compare;
use memgauge_model::result::{QualityLevel, Stamp, StampProbe, StateComparison, StateVerdict};

use super::*;

/// Makes a machine worse by a share.
pub(super) type Change = fn(&mut Model, f64);

/// Probes, and changes from one stamp to the next that they show.
pub(super) const CHANGES: [(StampProbe, Change); 5] = [
    (StampProbe::MemoryLatency, |model, share| model.slow_memory(1.0, 1.0 + share)),
    (StampProbe::CacheLatency, |model, share| model.slow_caches(1.0 + share)),
    (StampProbe::ReadsOfAllCpus, |model, share| {
        model.slow_memory(1.0 - share, 1.0);
        model.domains.iter_mut().for_each(|gbs| *gbs *= 1.0 - share);
    }),
    (StampProbe::Transfer, |model, share| model.slow_transfers(1.0 + share)),
    (StampProbe::Frequency, |model, share| model.clock_down(1.0 - share)),
];

/// Machines on which stamps are taken: a node of one cache, and of several.
const SHAPES: [Shape; 2] = [TWO_NODES, Shape { domains: 4, ..TWO_NODES }];

fn stamp_of(model: &Model, machine: &Machine) -> Stamp {
    let spec = Spec { stamp: true, ..Spec::new(Task::latency(LatencyShape::One)) };
    let plan = memgauge_planner::plan(&spec, machine, &kernels()).unwrap();
    let stop = Stop::raised(None);
    let context = RunContext::new(machine, *CLOCK, ROOT.into(), stop.flag()).simulated(model);
    memgauge_engine::stamp(&plan, &context).unwrap()
}

/// A stamp before a change and one after it, on the machine of a seed.
fn before_and_after(seed: u64, change: impl Fn(&mut Model)) -> StateComparison {
    let machine = SHAPES[seed as usize % SHAPES.len()].machine();
    let before = stamp_of(&Model::new(&machine, None, seed), &machine);
    let mut model = Model::new(&machine, None, seed);
    change(&mut model);
    let after = stamp_of(&model.again(seed + 1_000_000), &machine);
    compare(&before, &after, Vec::new(), None)
}

/// How many of `machines` a change is found on, for each kind, and on how many one is found where there is none.
fn found(machines: u64, share: f64) -> ([u64; CHANGES.len()], u64) {
    let mut of_kind = [0; CHANGES.len()];
    for (found, (probe, change)) in of_kind.iter_mut().zip(CHANGES) {
        let shows = |seed: &u64| before_and_after(*seed, |model| change(model, share)).changes().iter().any(|c| c.probe == probe);
        *found = (0..machines).filter(shows).count() as u64;
    }
    let alarms = (0..machines).filter(|seed| before_and_after(*seed, |_| ()).verdict != StateVerdict::Same).count() as u64;
    (of_kind, alarms)
}

#[test]
fn a_change_of_five_percent_is_found_and_none_is_seen_where_there_is_none() {
    let machines = 100;
    let (found, alarms) = found(machines, 0.05);
    assert!(found.iter().all(|n| *n >= machines - 1) && alarms <= 1, "{found:?} of {machines}, {alarms} false alarms");
}

/// As docs/state.md states it.
#[test]
#[ignore = "minutes"]
fn changes_of_five_percent_are_found_in_99_of_100_stamps() {
    let machines = 10_000;
    for share in [0.05, 0.10] {
        let (found, alarms) = found(machines, share);
        println!("{share}: {found:?} of {machines}, {alarms} false alarms");
        assert!(found.iter().all(|n| *n >= machines / 100 * 99) && alarms <= machines / 100);
    }
}

/// A machine whose memory becomes slower while it is measured.
pub(super) struct Slower<'a> {
    pub(super) before: &'a Model,
    pub(super) after: &'a Model,
    pub(super) from: Duration,
}

impl Slower<'_> {
    fn now(&self) -> &Model {
        if self.before.elapsed() < self.from { self.before } else { self.after }
    }
}

impl SimulatedMachine for Slower<'_> {
    fn elapsed(&self) -> Duration {
        self.before.elapsed()
    }

    fn pass(&self, time: Duration) {
        self.before.pass(time);
    }

    fn ghz(&self, cpu: u32, busy: usize) -> f64 {
        self.now().ghz(cpu, busy)
    }

    fn burst(&self, chase: Option<ChaseWork>, loads: &[LoadWork], windows: usize, window: Duration) -> BurstRates {
        self.now().burst(chase, loads, windows, window)
    }

    fn read_all(&self, cpu: u32, bytes: Bytes) {
        self.now().read_all(cpu, bytes);
    }

    fn transfers(&self, work: &[TransferWork], run: Duration) -> Vec<Vec<f64>> {
        self.now().transfers(work, run)
    }
}

#[test]
fn a_run_says_once_that_the_state_changed_and_marks_what_depends_on_it() {
    let machine = TWO_NODES.machine();
    let before = Model::new(&machine, None, 3);
    let mut after = Model::new(&machine, None, 3).again(4);
    after.slow_memory(1.0, 1.3);
    let spec = Spec { stamp: true, ..Spec::new(Task::suite()) };
    let report = run(&spec, &machine, &Slower { before: &before, after: &after, from: Duration::from_secs(2) }, None);
    let state = report.state.as_ref().unwrap();
    let compared = state.compared.as_ref().unwrap();
    assert_eq!((state.stamps.len(), compared.verdict), (2, StateVerdict::Another), "{compared:?}");
    let marked = |m: &&memgauge_model::result::Measurement| m.quality.reasons.contains(&QualityReason::StateChanged);
    assert!(report.results.iter().filter(|m| m.metric == Metric::Latency && m.at.holder_cpu.is_none()).all(|m| marked(&m)));
    assert!(report.results.iter().filter(|m| m.at.holder_cpu.is_some()).all(|m| !marked(&m)), "transfers did not change");
    assert!(report.results.iter().filter(marked).all(|m| m.quality.level >= QualityLevel::Degraded));
    let text = String::from_utf8(report.render(Format::TEXT, &Appearance::default()).unwrap()).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(text.matches("the machine's state changed during the run: memory latency").count(), 1, "{text}");
    // The stamps have their time, and are in the plan.
    let stamps_s: f64 = state.stamps.iter().map(|stamp| stamp.took_s).sum();
    let plan = report.plan.as_ref().unwrap().stamp.as_ref().unwrap();
    assert!(stamps_s > 0.1 && stamps_s <= plan.both_s(), "{stamps_s}");

    let quiet = run(&spec, &machine, &Model::new(&machine, None, 3), None);
    assert_eq!(quiet.state.unwrap().compared.unwrap().verdict, StateVerdict::Same);
}
