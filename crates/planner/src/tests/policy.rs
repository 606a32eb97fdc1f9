use memgauge_model::experiment::MemoryPlace;
use memgauge_model::policy::{MemoryPolicy, PolicyMode};
use memgauge_model::spec::{BufferPlace, SweepShape, ThreadSpec};

use super::*;

fn under(mode: PolicyMode, nodes: &str) -> Machine {
    let mut machine = machine();
    machine.allowed.memory_policy = Some(MemoryPolicy { mode, nodes: nodes.parse().unwrap(), weights: None });
    machine
}

fn planned_on(machine: &Machine, task: Task, change: impl FnOnce(&mut Spec)) -> Plan {
    let mut spec = Spec::new(task);
    change(&mut spec);
    plan(&spec, machine, &kernels()).unwrap()
}

fn cells(plan: &Plan) -> impl Iterator<Item = &Cell> {
    plan.steps.iter().flat_map(|step| &step.cells)
}

/// The nodes of all buffers of a cell.
fn nodes(cell: &Cell) -> IdSet {
    cell.work.buffers().into_iter().fold(IdSet::new(), |all, buffer| all.union(&buffer.nodes()))
}

fn without_nodes() -> [Task; 9] {
    [
        Task::latency(LatencyShape::One),
        Task::latency(LatencyShape::PerCpu),
        Task::bandwidth(BandwidthShape::One),
        Task::bandwidth(BandwidthShape::Peak),
        Task::bandwidth(BandwidthShape::Ramp(IdSet::new())),
        Task::loaded(),
        Task::c2c(TransferShape::Representatives),
        Task::c2c(TransferShape::CpuMatrix),
        Task::sweep(SweepShape::AllCpus),
    ]
}

#[test]
fn memory_that_no_option_places_is_where_the_inherited_policy_says() {
    for mode in [PolicyMode::Bind, PolicyMode::Preferred] {
        let far = under(mode, "2");
        for task in without_nodes().into_iter().chain([Task::scan()]) {
            let plan = planned_on(&far, task.clone(), |_| ());
            assert!(cells(&plan).all(|cell| nodes(cell) == IdSet::one(2)), "{task:?}");
            assert!(cells(&plan).all(|cell| matches!(cell.at.memory, Some(MemoryPlace::Node(2)) | None)), "{task:?}");
            assert!(
                plan.notes
                    .iter()
                    .any(|n| n.code == memgauge_model::note::NoteCode::MemoryPolicy && n.message.to_string().contains("node 2")),
                "{task:?}: {:?}",
                plan.notes
            );
            assert!(plan.notes.iter().all(|n| n.code != memgauge_model::note::NoteCode::NoLocalMemory), "{task:?}: {:?}", plan.notes);
        }
    }
}

#[test]
fn nodes_that_an_option_or_an_experiment_names_are_measured_whatever_the_policy() {
    let far = under(PolicyMode::Bind, "2");
    for task in without_nodes() {
        let plan = planned_on(&far, task.clone(), |s| s.nodes = Some(IdSet::one(0)));
        assert!(cells(&plan).all(|cell| nodes(cell) == IdSet::one(0)), "{task:?}");
        assert!(plan.notes.iter().all(|n| n.code != memgauge_model::note::NoteCode::MemoryPolicy), "{task:?}");
    }
    for task in [Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Matrix)] {
        assert_eq!(matrix_cells(&planned_on(&far, task, |_| ()).steps[0]), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    }
    let plan = planned_on(&far, Task::loaded(), |s| curve(s).load_nodes = Some(IdSet::one(1)));
    let Work::Curve(LoadCurve { probe, loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert_eq!(probe.buffer.node, 2, "the chase has no node of its own");
    assert!(loaders.iter().all(|l| l.buffer.node == 1));
    let plan = planned_on(&far, Task::loaded(), |s| curve(s).node = Some(1));
    let Work::Curve(LoadCurve { probe, loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert!(probe.buffer.node == 1 && loaders.iter().all(|l| l.buffer.node == 2));
    let plan = planned_on(&far, Task::latency(LatencyShape::One), |s| chase(s).touch = Some(4));
    assert_eq!(nodes(&plan.steps[0].cells[0]), IdSet::one(1), "a CPU that touches names its node");
}

#[test]
fn matrices_of_a_suite_keep_all_nodes_and_the_rest_follows() {
    let plan = planned_on(&under(PolicyMode::Bind, "2"), Task::suite(), |_| ());
    for step in &plan.steps {
        let all = step.cells.iter().fold(IdSet::new(), |all, cell| all.union(&nodes(cell)));
        let matrix = matches!(step.experiment, Experiment::IdleLatency | Experiment::BandwidthMatrix);
        let control = step.cells.iter().all(|cell| cell.repeat);
        assert!(control || all == if matrix { "0-2".parse().unwrap() } else { IdSet::one(2) }, "{}: {all}", step.title);
    }
}

#[test]
fn a_health_check_measures_what_is_local_by_the_policy() {
    let plan = planned_on(&under(PolicyMode::Bind, "2"), Task::quick(), |_| ());
    let loaded = plan.steps.iter().find(|step| step.experiment == Experiment::LoadedLatency).unwrap();
    assert_eq!(nodes(&loaded.cells[0]), IdSet::one(2));
    let by_node = plan.steps.iter().find(|step| step.experiment == Experiment::BandwidthMatrix).unwrap();
    assert!(by_node.cells.iter().all(|cell| cell.at.memory == Some(MemoryPlace::Node(2)) && nodes(cell) == IdSet::one(2)));
}

#[test]
fn pages_are_on_the_nodes_of_an_interleave_policy_in_turn() {
    let spread = under(PolicyMode::Interleave, "0,2");
    for task in without_nodes() {
        let plan = planned_on(&spread, task.clone(), |_| ());
        for cell in cells(&plan) {
            assert!(cell.work.buffers().iter().all(|b| b.weights.as_ref().is_some_and(|w| w.to_string() == "0=1,2=1")), "{task:?}");
            let place = cell.at.memory;
            assert!(place == Some(MemoryPlace::Inherited) || matches!(cell.work, Work::Transfers(_)), "{task:?}: {:?}", cell.at);
            let stated = cell.at.weights.as_ref().map(ToString::to_string);
            assert!(stated.as_deref() == Some("0=1,2=1") || matches!(cell.work, Work::Transfers(_)), "{task:?}: {:?}", cell.at);
        }
    }
    let plan = planned_on(&spread, Task::bandwidth(BandwidthShape::One), |s| {
        let place = BufferPlace::Local;
        let thread = ThreadSpec {
            cpus: "0,4".parse().unwrap(),
            mix: Mix::AllReads,
            access: Access::Sequential,
            size: Some(Bytes::gib(3)),
            place,
            delay: None,
            second: None,
        };
        traffic(s).threads = vec![thread];
    });
    assert!(cells(&plan).all(|cell| nodes(cell) == "0,2".parse().unwrap()), "6 GiB, of which each node has 3 of its 4");
}

#[test]
fn weights_are_the_kernels() {
    let mut machine = under(PolicyMode::WeightedInterleave, "0-1");
    machine.allowed.memory_policy.as_mut().unwrap().weights = Some("0=3,1=1,2=9".parse().unwrap());
    let plan = planned_on(&machine, Task::bandwidth(BandwidthShape::One), |_| ());
    assert_eq!(plan.steps[0].cells[0].at.weights.as_ref().unwrap().to_string(), "0=3,1=1");
}

#[test]
fn cpus_outside_of_the_policys_nodes_use_the_nearest_of_them() {
    let plan = planned_on(&under(PolicyMode::Bind, "0,2"), Task::bandwidth(BandwidthShape::One), |_| ());
    let cell = &plan.steps[0].cells[0];
    assert!(cell.work.loaders().iter().all(|l| l.buffer.node == 0), "node 1 is 20 from node 0 and 30 from node 2");
    assert_eq!((cell.at.memory, &cell.at.weights), (Some(MemoryPlace::Inherited), &None), "it is not each CPU's own");
    let all = planned_on(&under(PolicyMode::Bind, "0-2"), Task::bandwidth(BandwidthShape::One), |_| ());
    assert_eq!(all.steps[0].cells[0].at.memory, Some(MemoryPlace::Own), "a policy that names all nodes changes nothing");
    assert!(all.notes.iter().all(|n| n.code != memgauge_model::note::NoteCode::MemoryPolicy));
}

#[test]
fn sizes_are_planned_by_the_memory_of_the_policys_nodes() {
    let mut machine = under(PolicyMode::Bind, "2");
    machine.allowed.node_memory.insert(2, Bytes::mib(40));
    let short = planned_on(&machine, Task::latency(LatencyShape::One), |_| ());
    let Work::Latency(IdleChase { probe, .. }) = &short.steps[0].cells[0].work else { panic!() };
    assert_eq!((probe.buffer.bytes, probe.buffer.node), (Bytes::mib(32), 2));
    assert!(
        short.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::SmallBuffer && n.message.to_string().contains("node 2")),
        "{:?}",
        short.notes
    );
    machine.allowed.memory_policy = under(PolicyMode::Interleave, "1-2").allowed.memory_policy;
    let spread = planned_on(&machine, Task::latency(LatencyShape::One), |_| ());
    let Work::Latency(IdleChase { probe, .. }) = &spread.steps[0].cells[0].work else { panic!() };
    assert_eq!(probe.buffer.bytes, Bytes::mib(64), "half of it is on node 2");
    assert!(
        spread.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::SmallBuffer && n.message.to_string().contains("nodes 1-2")),
        "{:?}",
        spread.notes
    );
    machine.allowed.node_memory.insert(2, Bytes::gib(4));
    let large = planned_on(&machine, Task::latency(LatencyShape::One), |s| set_size(s, Some(Bytes::gib(6))));
    let Work::Latency(IdleChase { probe, .. }) = &large.steps[0].cells[0].work else { panic!() };
    assert_eq!(probe.buffer.bytes, Bytes::gib(6), "more than one node has");
}
