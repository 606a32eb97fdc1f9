//! Tiers of memory and interleave weights on simulated machines.

use super::*;

/// [`TWO_NODES`] with a node without CPUs that has half of the first one's capacity and twice its latency; only the first package is used.
pub(super) fn with_far_tier() -> (Machine, Model) {
    let mut machine = TWO_NODES.machine();
    add_far_node(&mut machine);
    machine.topology.nodes[0].interleave_weight = Some(5);
    machine.topology.nodes[2].interleave_weight = Some(1);
    let mut model = Model::new(&machine, None, 11);
    let (gbs, ns) = model.nodes[&0];
    model.nodes.insert(2, (gbs / 2.0, 2.0 * ns));
    model.domains.iter_mut().for_each(|domain| *domain = 4.0 * gbs);
    model.noise = Noise { burst: 0.03, ..Noise::QUIET };
    (machine, model)
}

#[test]
fn weights_are_found_on_a_machine_with_a_far_tier() {
    let (machine, model) = with_far_tier();
    let (near, far) = (model.nodes[&0].0, model.nodes[&2].0);
    let mut spec = Spec::new(Task::interleave());
    spec.cpus = Some(machine.topology.cpus.iter().filter(|c| c.package == 0).map(|c| c.id).collect());
    let report = run(&spec, &machine, &model, None);
    let [found] = &report.interleaves[..] else { panic!("{:?}", report.notes) };
    assert!(report.complete && found.nodes == [0, 2], "{found:?}");
    let best = found.trial(&found.recommended).unwrap();
    // Both tiers are busy to the end with two thirds of the pages on the near one.
    assert!((best.weights.share(0) - 2.0 / 3.0).abs() < 0.05, "{best:?}");
    // The core that chases does not load.
    assert!(best.bandwidth_gbs.value > 0.8 * (near + far) && best.bandwidth_gbs.value < 1.05 * (near + far), "{best:?} of {near} + {far}");
    let gains: Vec<_> = found.gains.iter().map(|gain| (gain.over, gain.bandwidth.value)).collect();
    assert_eq!(gains.len(), 3, "the near tier, equal weights, the kernel's: {gains:?}");
    assert!(gains.iter().all(|(_, gain)| *gain > 0.05) && gains[0].1 > 0.2, "{gains:?}");
    let text = String::from_utf8(report.render(Format::TEXT, &Appearance { width: 100, verbose: false, ..Appearance::default() }).unwrap())
        .unwrap();
    println!("{text}");
    assert!(text.contains("numactl -w 0,2 PROGRAM") && text.contains("weighted_interleave/node2"), "{text}");
    assert!(text.contains("the kernel's weights (5:1)"), "{text}");
    assert!(found.plateau.contains(&found.recommended) && found.plateau.contains(&found.best), "{:?}", found.plateau);
    let best_gbs = found.trial(&found.best).unwrap().bandwidth_gbs.value;
    let as_good = |weights| found.trial(weights).unwrap().bandwidth_gbs.value >= best_gbs / 1.0101;
    assert!(found.plateau.iter().all(as_good), "{:?} {:?}", found.plateau, found.trials);
    // A search for each number of CPUs; what is more than all is all.
    options!(&mut spec.task, Interleave).threads = vec![1, 3, 400];
    let report = run(&spec, &machine, &model, None);
    let loading: Vec<usize> = report.interleaves.iter().map(|found| found.at.cpus.as_ref().unwrap().len()).collect();
    assert_eq!(loading, [1, 3, 14], "eight cores, of which one chases");
    options!(&mut spec.task, Interleave).threads = Vec::new();
    let json: Report = serde_json::from_slice(&report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
    assert_eq!(json.interleaves, report.interleaves);
    // Most of the latency of half the near tier's bandwidth is the far tier's.
    options!(&mut spec.task, Interleave).demand_gbs = Some(near / 4.0);
    let report = run(&spec, &machine, &model, None);
    let [found] = &report.interleaves[..] else { panic!("{:?}", report.notes) };
    assert_eq!(found.recommended.only_node(), Some(0), "{:?}", found.trials);
    // More than the near tier has needs both.
    options!(&mut spec.task, Interleave).demand_gbs = Some(near * 1.2);
    let report = run(&spec, &machine, &model, None);
    let share = report.interleaves[0].recommended.share(0);
    assert!(share > 0.5 && share < 0.9, "{:?}", report.interleaves[0].trials);
}

/// A model whose loaders get no time while a chase runs.
struct Starved(Model);

impl SimulatedMachine for Starved {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn pass(&self, time: Duration) {
        self.0.pass(time);
    }

    fn ghz(&self, cpu: u32, busy: usize) -> f64 {
        self.0.ghz(cpu, busy)
    }

    fn burst(&self, chase: Option<ChaseWork>, loads: &[LoadWork], windows: usize, window: Duration) -> BurstRates {
        let starved = chase.is_some();
        let rates = self.0.burst(chase, loads, windows, window);
        if starved { BurstRates { lines_per_ns: vec![Vec::new(); loads.len()], ..rates } } else { rates }
    }

    fn read_all(&self, cpu: u32, bytes: Bytes) {
        self.0.read_all(cpu, bytes);
    }

    fn transfers(&self, work: &[TransferWork], run: Duration) -> Vec<Vec<f64>> {
        self.0.transfers(work, run)
    }
}

#[test]
fn a_search_for_weights_whose_threads_get_no_time_does_not_ask_for_more_of_it() {
    let (machine, model) = with_far_tier();
    let mut spec = Spec::new(Task::interleave());
    spec.cpus = Some(machine.topology.cpus.iter().filter(|c| c.package == 0).map(|c| c.id).collect());
    let report = run(&spec, &machine, &Starved(model), None);
    assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::CellsMissing)));
    let why = report.results.iter().find(|m| m.at.weights.is_none()).and_then(|m| m.estimate.not_measured.clone());
    // Nothing loads on the chasing core's second thread, CPU 16.
    assert_eq!(why, Some(NotMeasured::NeverTogether { cpus: "0-7,17-23".parse().unwrap() }), "{:?}", report.notes);
}

#[test]
fn a_machine_without_a_second_tier_has_no_weights_to_find() {
    let machine = TWO_NODES.machine();
    let error = memgauge_planner::plan(&Spec::new(Task::interleave()), &machine, &kernels()).unwrap_err();
    assert!(error.to_string().contains("no second tier of memory"), "{error}");
}

#[test]
fn tiers_are_compared_alone_and_disturbed() {
    let (mut machine, model) = with_far_tier();
    machine.topology.nodes.iter_mut().for_each(|node| node.memory_tier = Some(4));
    let (near, far) = (model.nodes[&0].0, model.nodes[&2].0);
    let mut spec = Spec::new(Task::tiers());
    spec.cpus = Some(machine.topology.cpus.iter().filter(|c| c.package == 0).map(|c| c.id).collect());
    let report = run(&spec, &machine, &model, None);
    assert!(report.complete, "{:?}", report.notes);
    let peak = |memory: u32, load: &str| {
        let load = Some(load.parse().unwrap());
        let curve = report.curves.iter().find(|c| c.at.memory_node() == Some(memory) && c.at.load_nodes == load);
        curve.and_then(|c| c.peak_gbs).unwrap_or_else(|| panic!("no curve of {memory} under load of {load:?}"))
    };
    let about = |gbs: f64, expected: f64| (0.8..1.05).contains(&(gbs / expected));
    // Each alone has its own capacity, wherever the chase is; both together have more than either.
    assert!(about(peak(0, "0"), near) && about(peak(2, "2"), far));
    assert!(about(peak(0, "2"), far) && about(peak(2, "0"), near));
    assert!(peak(0, "0,2") > 1.05 * near, "{} of {near} and {far}", peak(0, "0,2"));
    // What each gives of that: the near one to its half of the CPUs, the far one all that it has.
    let together = report.curves.iter().find(|c| c.at.load_nodes.as_ref().is_some_and(|nodes| nodes.len() == 2)).unwrap();
    let by_node = &together.full_load_by_node;
    assert!(by_node.keys().eq(&[0, 2]) && by_node[&0] > by_node[&2], "{by_node:?}");
    let sum: f64 = by_node.values().sum();
    assert!((0.85..1.02).contains(&(sum / together.peak_gbs.unwrap())), "{by_node:?} of {:?}: the rest is the chase's", together.peak_gbs);
    assert!(report.curves.iter().all(|c| c.full_load_by_node.is_empty() || c.at == together.at));
    let text = String::from_utf8(report.render(Format::TEXT, &Appearance { width: 120, verbose: false, ..Appearance::default() }).unwrap())
        .unwrap();
    println!("{text}");
    assert!(text.contains("GB/s by node at full load"), "{text}");
    for expected in ["Tiers of memory", "memory without CPUs", "distance 14 from node 0", "Latency of each tier by what is loaded"] {
        assert!(text.contains(expected), "{expected}");
    }
    // The far node has twice the latency in the same tier, and weights of 5:1 for bandwidths of 2:1.
    let codes: Vec<&str> = report.notes.iter().map(|note| note.code.word()).collect();
    assert!(codes.contains(&"tier-shared") && codes.contains(&"weights-differ") && !codes.contains(&"tier-order"), "{:?}", report.notes);
    let json: Report = serde_json::from_slice(&report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
    assert_eq!(json.plan.unwrap().tiers.iter().map(|t| t.node).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn the_callers_memory_policy_says_which_tier_is_measured() {
    use memgauge_model::experiment::MemoryPlace;
    use memgauge_model::policy::{MemoryPolicy, PolicyMode};
    let (mut machine, model) = with_far_tier();
    let mut spec = Spec::new(Task::bandwidth(BandwidthShape::One));
    options!(&mut spec.task, Bandwidth).traffic.load.mixes = vec![Mix::AllReads];
    spec.cpus = Some(machine.topology.cpus.iter().filter(|c| c.package == 0).map(|c| c.id).collect());
    let mut under = |mode, nodes: &str| {
        machine.allowed.memory_policy = Some(MemoryPolicy { mode, nodes: nodes.parse().unwrap(), weights: None });
        let report = run(&spec, &machine, &model, None);
        let m = report.results[0].clone();
        let nodes: Vec<u32> = m.evidence.placement.pages_by_node.keys().copied().collect();
        let text =
            String::from_utf8(report.render(Format::TEXT, &Appearance { width: 100, verbose: true, ..Appearance::default() }).unwrap())
                .unwrap();
        (m.estimate.value.unwrap(), m.at, nodes, text)
    };
    let (near, at, nodes, text) = under(PolicyMode::Default, "");
    assert!(at.memory == Some(MemoryPlace::Own) && nodes == [0] && !text.contains("memory policy"), "{at:?} {text}");
    let (far, at, nodes, text) = under(PolicyMode::Bind, "2");
    assert!(at.memory == Some(MemoryPlace::Node(2)) && nodes == [2] && far < 0.7 * near, "{at:?} {far} {near}");
    assert!(text.contains("memory policy: bind to node 2 (inherited"), "{text}");
    let (both, at, nodes, text) = under(PolicyMode::Interleave, "0,2");
    assert!(at.memory == Some(MemoryPlace::Inherited) && nodes == [0, 2] && both > 1.1 * far, "{at:?} {both} {far}");
    assert!(text.contains("memory policy: interleave over nodes 0,2 (inherited") && text.contains("pages on nodes in turn"), "{text}");
}
