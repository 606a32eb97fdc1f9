//! Results of cells that were not measured.

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
