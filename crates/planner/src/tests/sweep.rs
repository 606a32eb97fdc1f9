//! Sweeps over working sets.

use memgauge_model::experiment::Metric;
use memgauge_model::plan::{BandwidthSweep, LatencySweep};
use memgauge_model::spec::{SweepShape, SweepSpec};

use super::*;

fn latency(plan: &Plan) -> Vec<&LatencySweep> {
    let cells = plan.steps.iter().flat_map(|s| &s.cells);
    cells.filter_map(|c| if let Work::LatencySweep(sweep) = &c.work { Some(sweep) } else { None }).collect()
}

fn bandwidth(plan: &Plan) -> Vec<&BandwidthSweep> {
    let cells = plan.steps.iter().flat_map(|s| &s.cells);
    cells.filter_map(|c| if let Work::BandwidthSweep(sweep) = &c.work { Some(sweep) } else { None }).collect()
}

fn sweep(spec: &mut Spec) -> &mut SweepSpec {
    let Task::Sweep(sweep) = &mut spec.task else { panic!("another task") };
    sweep
}

#[test]
fn one_cpu_sweeps_both_quantities_over_the_same_sizes() {
    let plan = planned(Task::sweep(SweepShape::One), |_| ()).unwrap();
    let ([chase], [load]) = (&latency(&plan)[..], &bandwidth(&plan)[..]) else { panic!("{plan:?}") };
    assert_eq!(chase.sizes, load.sizes);
    assert_eq!((chase.sizes[0], chase.sizes.last().copied()), (Bytes::kib(4), Some(Bytes::gib(1))));
    // Four in each of 18 doublings, and the end.
    assert_eq!(chase.sizes.len(), 4 * 18 + 1);
    assert!(chase.sizes.windows(2).all(|w| w[0] < w[1]));
    assert!(chase.sizes.contains(&Bytes::kib(48)) && chase.sizes.contains(&Bytes::kib(1280)));
    // A line every two: the chase's lines are spread over twice the working set.
    assert_eq!((chase.probe.buffer.bytes, load.loaders[0].buffer.bytes), (Bytes::gib(2), Bytes::gib(1)));
    assert_eq!(chase.range(Bytes::kib(48), Bytes(64)), Bytes::kib(96));
    assert_eq!((chase.order, chase.probe.cpu, load.loaders.len()), (ChaseOrder::WindowLocal, 0, 1));
}

#[test]
fn every_domain_or_all_cpus_have_a_curve() {
    let domains = planned(Task::sweep(SweepShape::PerDomain), |_| ()).unwrap();
    assert_eq!(latency(&domains).iter().map(|s| (s.probe.cpu, s.probe.buffer.node)).collect::<Vec<_>>(), [(0, 0), (4, 1)]);
    let groups: Vec<Vec<u32>> = bandwidth(&domains).iter().map(|s| s.loaders.iter().map(|l| l.cpu).collect()).collect();
    assert_eq!(groups.iter().map(|c| c.iter().copied().collect::<IdSet>().to_string()).collect::<Vec<_>>(), ["0-3", "4-7"]);
    let all = planned(Task::sweep(SweepShape::AllCpus), |_| ()).unwrap();
    let [sweep] = bandwidth(&all)[..] else { panic!() };
    assert_eq!(sweep.loaders.len(), 8);
    assert!(sweep.loaders.iter().all(|l| l.buffer.node == l.cpu / 4), "each in its own node");
    // Eight CPUs share 4 GiB a node: 1 GiB each would be all of it.
    assert!(sweep.sizes.last().unwrap().0 <= (1 << 30));
}

#[test]
fn a_sweep_that_is_cut_says_so_and_one_that_cannot_be_is_refused() {
    let small = |change: fn(&mut Spec)| {
        let mut machine = machine();
        machine.allowed.node_memory.insert(0, Bytes::mib(300));
        let mut spec = Spec::new(Task::sweep(SweepShape::One));
        change(&mut spec);
        plan(&spec, &machine, &kernels())
    };
    let cut = small(|_| ()).unwrap();
    assert_eq!(latency(&cut)[0].sizes.last(), Some(&Bytes::mib(128)), "spread over 256 MiB");
    assert!(cut.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::SweepCut));
    let refused = |change| small(change).unwrap_err().to_string();
    assert!(refused(|s| sweep(s).max = Some(Bytes::gib(1))).contains("--max"));
    assert!(refused(|s| sweep(s).points_per_octave = Some(0)).contains("give 1 to 32"));
    assert!(refused(|s| sweep(s).min = Some(Bytes(64))).contains("the smallest is 4 KiB"));
    assert!(refused(|s| (sweep(s).min, sweep(s).max) = (Some(Bytes::mib(2)), Some(Bytes::mib(1)))).contains("--min is at most --max"));
    let only = small(|s| sweep(s).metrics = vec![Metric::Bandwidth]).unwrap();
    assert!(latency(&only).is_empty() && bandwidth(&only).len() == 1);
}

#[test]
fn counted_points_take_the_time_of_their_longer_bursts() {
    let plain = planned(Task::sweep(SweepShape::One), |_| ()).unwrap();
    let counted = planned(Task::sweep(SweepShape::One), |s| s.counters = true).unwrap();
    // Eight bursts of 41 windows of 1 ms, for each point.
    let points = latency(&counted)[0].sizes.len() as f64;
    assert!(counted.steps[0].estimated_s > points * 8.0 * 0.041, "{}", counted.steps[0].estimated_s);
    assert!(counted.estimated_s > 1.5 * plain.estimated_s);
    assert!(counted.max_s >= counted.estimated_s && plain.max_s > plain.estimated_s);
}
