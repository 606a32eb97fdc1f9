//! Cores that read their clocks ahead of the hops that they wait for, and threads that begin cold.

use memgauge_model::experiment::Hops;

use super::*;

/// A model without noise, of cores with `hops_in_flight` hops on their way.
fn model(machine: &Machine, hops_in_flight: u32) -> Model {
    let mut model = with_noise(machine, Noise::NONE);
    model.hops_in_flight = hops_in_flight;
    model
}

/// Nanoseconds of every latency that a task reports, in their order.
fn latencies(spec: &Spec, machine: &Machine, model: &Model) -> Vec<f64> {
    let report = run(spec, machine, model, None);
    report.results.iter().filter(|m| m.metric == Metric::Latency).filter_map(|m| m.estimate.value).collect()
}

#[test]
fn hops_on_their_way_when_a_window_ends_change_no_latency() {
    let machine = TWO_NODES.machine();
    let mut sweep = Spec::new(Task::sweep(SweepShape::One));
    options!(&mut sweep.task, Sweep).metrics = vec![Metric::Latency];
    let mut loaded = Spec::new(Task::loaded());
    options!(&mut loaded.task, Loaded).curve.delays = vec![0, 1000];
    for spec in [Spec::new(Task::latency(LatencyShape::One)), sweep, loaded] {
        // Both in blocks, because a machine that counts by windows has whole units in them only. 16 hops hide the readings of the clock, too.
        let (few, many) = (latencies(&spec, &machine, &model(&machine, 16)), latencies(&spec, &machine, &model(&machine, 100)));
        assert!(few.len() >= 2 && few.len() == many.len(), "{few:?} {many:?}");
        for (few, many) in few.iter().zip(&many) {
            assert!(close(*many, *few, 5e-4), "{:?}: {many} ns, where cores with few hops on their way find {few}", spec.task);
        }
    }
}

#[test]
fn an_exact_chase_does_not_begin_cold() {
    let machine = TWO_NODES.machine();
    let mut spec = Spec::new(Task::latency(LatencyShape::One));
    let by_time = latencies(&spec, &machine, &model(&machine, 80));
    let mut cold = model(&machine, 80);
    cold.cold = (60.0, Duration::from_millis(12));
    for hops in [100_000, 1_000_000, 5_000_000] {
        options!(&mut spec.task, Latency).chase.hops = Some(Hops::Count(hops));
        let exact = latencies(&spec, &machine, &cold);
        assert_eq!(by_time.len(), exact.len());
        for (timed, exact) in by_time.iter().zip(&exact) {
            assert!(close(*exact, *timed, 5e-4), "{hops} hops: {exact} ns, and {timed} by windows");
        }
    }
}
