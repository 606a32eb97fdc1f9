//! Results of cells that were not measured.

use memgauge_model::plan::Coarsening;

use super::*;
use crate::prefetch::guard::unmeasured;

#[test]
fn a_cell_that_is_not_measured_is_missing_what_it_would_have_measured() {
    let machine = TWO_NODES.machine();
    let mut sweep = Spec::new(Task::sweep(SweepShape::One));
    options!(&mut sweep.task, Sweep).metrics = vec![Metric::Latency];
    let tasks = [Task::latency(LatencyShape::One), Task::bandwidth(BandwidthShape::One), Task::c2c(TransferShape::Representatives)];
    for spec in tasks.into_iter().map(Spec::new).chain([sweep]) {
        let measured = run(&spec, &machine, &with_noise(&machine, Noise::NONE), None);
        let plan = memgauge_planner::plan(&spec, &machine, &kernels()).unwrap();
        let cell = &plan.steps[0].cells[0];
        let missing = unmeasured(plan.steps[0].experiment, cell, &NotMeasured::OutOfTime);
        let there = &measured.results[0];
        assert_eq!((missing.metric, missing.unit), (there.metric, there.unit), "{:?}", spec.task);
    }
}

#[test]
fn a_curve_whose_time_is_over_keeps_its_ends() {
    let machine = TWO_NODES.machine();
    let mut sweep = Spec::new(Task::sweep(SweepShape::One));
    let options = options!(&mut sweep.task, Sweep);
    (options.metrics, options.max) = (vec![Metric::Latency], Some(Bytes::gib(1)));
    let mut loaded = Spec::new(Task::loaded());
    options!(&mut loaded.task, Loaded).curve.delays = vec![0, 10, 20, 50, 100, 200, 500, 1000, 5000];
    // Nine and five points of 0.4 s are planned at least.
    for (mut spec, within) in [(sweep, 2500), (loaded, 1500)] {
        (spec.time, spec.within) = (Some(Duration::from_millis(400)), Some(Duration::from_millis(within)));
        let report = run(&spec, &machine, &with_noise(&machine, Noise::NONE), None);
        assert_eq!(report.incomplete, Some(Incomplete::OutOfTime));
        let measured = report.results.iter().filter(|m| m.metric == Metric::Latency && m.estimate.value.is_some());
        let axis: Vec<u64> = measured.filter_map(|m| m.at.working_set.map(|size| size.0).or(m.at.delay_cycles.map(u64::from))).collect();
        let ends = if matches!(spec.task, Task::Sweep(_)) { (4 << 10, 1 << 30) } else { (0, 5000) };
        let planned = report.plan.as_ref().unwrap().steps[0].amount(Coarsening::Points);
        assert!(axis.len() >= 3 && (axis.len() as f64) < planned, "{axis:?} of {planned}");
        assert_eq!((axis.iter().min(), axis.iter().max()), (Some(&ends.0), Some(&ends.1)), "{axis:?}");
    }
}
