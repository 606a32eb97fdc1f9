//! Tiers of memory.

use memgauge_model::topology::{NodeDevice, NodeDeviceKind};

use super::*;

/// Node of the CPUs, node of the chase, nodes of the load.
fn curves(plan: &Plan) -> Vec<(u32, u32, String)> {
    let cells = plan.steps.iter().filter(|s| s.experiment == Experiment::LoadedLatency).flat_map(|s| &s.cells);
    cells.map(|c| (c.at.cpu_node.unwrap(), c.at.memory_node().unwrap(), c.at.load_nodes.as_ref().unwrap().to_string())).collect()
}

fn tiers(change: impl FnOnce(&mut Spec, &mut Machine)) -> Result<Plan, PlanError> {
    let (mut spec, mut machine) = (Spec::new(Task::tiers()), machine());
    change(&mut spec, &mut machine);
    crate::plan(&spec, &machine, &[])
}

#[test]
fn every_socket_measures_every_tier_alone_disturbed_and_with_another() {
    // CPUs with cores enough to load two tiers: node 1's CPUs have three.
    let plan = tiers(|_, machine| {
        for cpu in machine.topology.cpus.iter_mut() {
            cpu.siblings = IdSet::one(cpu.id);
        }
    })
    .unwrap();
    let experiments: Vec<Experiment> = plan.steps.iter().map(|s| s.experiment).collect();
    let loaded = Experiment::LoadedLatency;
    assert_eq!(experiments, [Experiment::IdleLatency, Experiment::BandwidthMatrix, loaded, loaded, loaded]);
    let all = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)];
    assert_eq!(matrix_cells(&plan.steps[0]), all);
    let mixes = |mix| plan.steps[1].cells.iter().filter(|c| !c.repeat && c.at.mix == Some(mix)).count();
    assert_eq!((mixes(Mix::AllReads), mixes(Mix::R2W1)), (all.len(), all.len()));
    let alone = [(0, 0, "0"), (0, 2, "2"), (1, 1, "1"), (1, 2, "2")];
    let disturbed = [(0, 0, "2"), (0, 2, "0"), (1, 1, "2"), (1, 2, "1")];
    let together = [(0, 0, "0,2"), (1, 1, "1-2")];
    let expected = alone.into_iter().chain(disturbed).chain(together);
    assert_eq!(curves(&plan), expected.map(|(cpus, chase, load)| (cpus, chase, load.to_owned())).collect::<Vec<_>>());
    // The loaders' memory really is on those nodes, and nobody else's CPUs load.
    for cell in plan.steps[2..].iter().flat_map(|s| &s.cells) {
        let homes: IdSet = cell.work.loaders().iter().map(|l| l.buffer.node).collect();
        assert_eq!(Some(homes), cell.at.load_nodes);
        let cpus = cell.work.cpus();
        assert_eq!(cpus, if cell.at.cpu_node == Some(0) { "0-3".parse().unwrap() } else { "4-7".parse().unwrap() });
    }
    assert_eq!(plan.tiers.iter().map(|t| t.node).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn one_tier_is_refused_with_what_was_looked_at() {
    let refusal = |change: fn(&mut Spec, &mut Machine)| match tiers(change) {
        Err(PlanError::Unavailable(why)) => why.to_string(),
        other => panic!("{other:?}"),
    };
    let without = refusal(|_, machine| machine.allowed.nodes = "0-1".parse().unwrap());
    assert!(without.to_string().contains("nodes 0-1 have one kind") && without.to_string().contains("HMAT"), "{without}");
    assert!(refusal(|spec, _| spec.nodes = Some(IdSet::one(2))).to_string().contains("name at least two"));
    // Named nodes are compared whatever they are.
    let plan = tiers(|spec, _| (spec.nodes, spec.cpus) = (Some("0-1".parse().unwrap()), Some("0-3".parse().unwrap()))).unwrap();
    assert_eq!(curves(&plan)[..2], [(0, 0, "0".to_owned()), (0, 1, "1".to_owned())]);
}

#[test]
fn without_a_third_core_no_two_tiers_are_loaded_together() {
    let plan = tiers(|spec, _| (spec.cpus, spec.one_thread_per_core) = (Some("0-3".parse().unwrap()), true)).unwrap();
    assert_eq!(plan.steps.len(), 4);
    assert!(
        plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::NoCoreToLoad && n.message.to_string().contains("three cores")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn memory_of_a_gpu_is_loaded_only_if_it_is_named() {
    let mut with_gpu = machine();
    with_gpu.topology.nodes[2].devices =
        vec![NodeDevice { name: "0009:01:00.0".into(), kind: NodeDeviceKind::Gpu, region: None, qos_class: None }];
    let used = |plan: &Plan| -> IdSet {
        let works = || plan.steps.iter().flat_map(|step| &step.cells).map(|cell| &cell.work);
        let probes = works().filter_map(|work| work.probe().map(|probe| probe.buffer.node));
        probes.chain(works().flat_map(|work| work.loaders().iter().map(|loader| loader.buffer.node))).collect()
    };
    let gpu: u32 = with_gpu.topology.nodes[2].id;
    for task in [Task::suite(), Task::quick(), Task::bandwidth(BandwidthShape::Matrix), Task::latency(LatencyShape::Matrix), Task::scan()] {
        let mut spec = Spec::new(task);
        let plan = crate::plan(&spec, &with_gpu, &kernels()).unwrap();
        assert!(!used(&plan).contains(gpu), "{:?}", spec.task);
        let note = plan.notes.iter().find(|note| note.code.word() == "gpu-memory-left-out").unwrap();
        assert!(note.message.to_string().starts_with("memory of a GPU is not measured (node 2)"), "{note:?}");
        assert_eq!(note.advice.as_ref().unwrap().to_string(), "name the nodes with --node to measure it");
        spec.nodes = Some(IdSet::one(gpu));
        let plan = crate::plan(&spec, &with_gpu, &kernels()).unwrap();
        assert!(plan.notes.iter().all(|note| note.code.word() != "gpu-memory-left-out"), "{:?}", plan.notes);
    }
    // Two sockets' DRAM is one tier; the GPU's memory is another if it is named.
    assert!(crate::plan(&Spec::new(Task::tiers()), &with_gpu, &[]).is_err());
    let mut spec = Spec::new(Task::tiers());
    spec.nodes = Some("0,2".parse().unwrap());
    assert!(used(&crate::plan(&spec, &with_gpu, &[]).unwrap()).contains(gpu));
}
