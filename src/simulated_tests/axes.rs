//! Results state of their place what the table of experiments says.

use std::collections::BTreeSet;

use memgauge_model::experiment::Experiment;

use super::*;

/// Asserts it of all results, and returns the experiments that have any.
fn check(report: &Report) -> BTreeSet<Experiment> {
    for m in report.measurements() {
        let wrong = m.experiment.row().axes.wrong(&m.at, m.estimate.value.is_some());
        assert!(wrong.is_empty(), "{}: {wrong:?} of {:?}", m.experiment.name(), m.at);
    }
    report.measurements().map(|m| m.experiment).collect()
}

#[test]
fn saved_results_state_what_their_experiments_do() {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results")).unwrap() {
        found.extend(check(&memgauge_render::read(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap()));
    }
    assert!(found.len() > 6, "{found:?}");
}

#[test]
fn simulated_results_state_what_their_experiments_do() {
    let mut delayed = Task::bandwidth(BandwidthShape::One);
    options!(&mut delayed, Bandwidth).delays = vec![0, 300];
    let mut shared = Task::c2c(TransferShape::Representatives);
    let transfer = options!(&mut shared, C2c);
    (transfer.reader, transfer.holder, transfer.sharer) = (Some(0), Some(1), Some(2));
    let of_two_nodes = [
        Task::suite(),
        Task::quick(),
        Task::latency(LatencyShape::PerCpu),
        Task::bandwidth(BandwidthShape::Search),
        Task::bandwidth(BandwidthShape::Ramp("1,4".parse().unwrap())),
        delayed,
        Task::sweep(SweepShape::One),
        Task::sweep(SweepShape::AllCpus),
        shared,
        Task::c2c(TransferShape::CpuMatrix),
        Task::prefetch(),
    ];
    let machine = TWO_NODES.machine();
    let two_nodes = (with_noise(&machine, Noise::NONE), machine, of_two_nodes.to_vec());
    let (machine, model) = tiers::with_far_tier();
    let tiers = (model, machine, vec![Task::tiers(), Task::interleave()]);
    let mut found = BTreeSet::new();
    for (model, machine, tasks) in [two_nodes, tiers] {
        for task in tasks {
            found.extend(check(&run(&Spec::new(task), &machine, &model, None)));
        }
    }
    assert!(found.len() > 11, "{found:?}");
}
