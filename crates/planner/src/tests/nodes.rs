//! Nodes that share CPUs, that have no memory, or too little.

use memgauge_model::experiment::MemoryPlace;

use super::*;

/// One package of four CPUs. All four are in each of `nodes` nodes, as with `numa=fake`.
fn emulated(nodes: u32) -> Machine {
    let mut machine = machine();
    let topology = &mut machine.topology;
    topology.cpus.truncate(4);
    topology.caches.retain(|c| c.cpus.is_subset(&"0-3".parse().unwrap()));
    let node = Node { distances: (0..nodes).map(|n| (n, 10)).collect(), ..topology.nodes[0].clone() };
    topology.nodes = (0..nodes).map(|id| Node { id, ..node.clone() }).collect();
    machine.allowed.cpus = "0-3".parse().unwrap();
    machine.allowed.nodes = (0..nodes).collect();
    machine.allowed.node_memory = (0..nodes).map(|n| (n, Bytes::gib(1))).collect();
    machine
}

fn plan_on(machine: &Machine, task: Task) -> Plan {
    plan(&Spec::new(task), machine, &kernels()).unwrap()
}

/// The nodes that loaders of a cell use.
fn loaded_nodes(cell: &Cell) -> IdSet {
    let buffers =
        cell.work.loaders().iter().flat_map(|l| l.buffers().flat_map(|b| b.nodes().iter().collect::<Vec<_>>()).collect::<Vec<_>>());
    buffers.collect()
}

fn messages(plan: &Plan, code: &str) -> Vec<String> {
    plan.notes.iter().filter(|n| n.code.word() == code).map(|n| n.message.to_string()).collect()
}

#[test]
fn traffic_is_on_all_nodes_that_list_its_cpus() {
    for nodes in [2, 3, 4, 8, 13] {
        let machine = emulated(nodes);
        let all: IdSet = (0..nodes).collect();
        for task in [Task::suite(), Task::quick(), Task::bandwidth(BandwidthShape::Peak)] {
            let plan = plan_on(&machine, task.clone());
            let at_full = plan.steps.iter().flat_map(|s| &s.cells).filter(|c| c.at.cpus.as_ref().is_some_and(|cpus| cpus.len() >= 2));
            let own: Vec<&Cell> = at_full.filter(|c| c.at.memory.is_none_or(|m| m == MemoryPlace::Own)).collect();
            assert!(!own.is_empty(), "{task:?}");
            for cell in own {
                let loaders = cell.work.loaders();
                let expected = if loaders.len() as u32 >= nodes || loaders.len() == 4 { &all } else { continue };
                assert_eq!(&loaded_nodes(cell).intersection(&all).len().min(4), &expected.len().min(4), "{task:?} on {nodes} nodes");
                assert!(nodes < 4 || loaded_nodes(cell) == all, "{task:?} on {nodes} nodes: {}", loaded_nodes(cell));
            }
            assert_eq!(messages(&plan, "nodes-share-cpus").len(), 1);
            assert!(messages(&plan, "nodes-share-cpus")[0].starts_with(&format!("nodes 0-{} share CPUs 0-3", nodes - 1)));
        }
    }
    let shared: IdSet = "0-7".parse().unwrap();
    let plan = plan_on(&emulated(8), Task::bandwidth(BandwidthShape::One));
    for loader in plan.steps[0].cells[0].work.loaders() {
        let weights = loader.buffer.weights.as_ref().unwrap();
        assert!(weights.nodes().is_subset(&shared) && weights.nodes().len() == 2);
        assert_eq!(loader.buffer.bytes.0 % (2 * (2 << 20)), 0, "each node has its share of huge pages");
    }
}

#[test]
fn nodes_that_share_no_cpus_are_used_as_before() {
    let plan = planned(Task::bandwidth(BandwidthShape::One), |_| ()).unwrap();
    let homes: Vec<(u32, u32)> = plan.steps[0].cells[0].work.loaders().iter().map(|l| (l.cpu, l.buffer.node)).collect();
    assert!(homes.iter().all(|(cpu, node)| cpu / 4 == *node), "{homes:?}");
    assert!(plan.steps[0].cells[0].work.loaders().iter().all(|l| l.buffer.weights.is_none()));
    assert!(messages(&plan, "nodes-share-cpus").is_empty());
}

/// Four nodes of two CPUs, as far from each other; those of `without` have no memory.
fn four(without: &[u32]) -> Machine {
    let mut machine = machine();
    let topology = &mut machine.topology;
    for cpu in &mut topology.cpus {
        (cpu.package, cpu.node) = (0, cpu.id / 2);
    }
    let node = |id: u32| Node {
        id,
        cpus: [2 * id, 2 * id + 1].into_iter().collect(),
        memory: Some(if without.contains(&id) { Bytes(0) } else { Bytes::gib(8) }),
        distances: (0..4).map(|n| (n, if n == id { 10 } else { 12 })).collect(),
        ..Node::default()
    };
    topology.nodes = (0..4).map(node).collect();
    machine.allowed.nodes = (0..4).filter(|n| !without.contains(n)).collect();
    machine.allowed.node_memory = machine.allowed.nodes.iter().map(|n| (n, Bytes::gib(4))).collect();
    machine
}

#[test]
fn nodes_without_memory_take_the_nearest_by_turns_and_no_control_group_is_blamed() {
    for (without, expected) in [(&[0, 3][..], [1, 1, 2, 2]), (&[1, 2], [0, 0, 3, 3]), (&[0, 1, 2], [3, 3, 3, 3]), (&[3], [0, 1, 2, 0])] {
        let plan = plan_on(&four(without), Task::bandwidth(BandwidthShape::One));
        let home = |node: u32| plan.steps[0].cells[0].work.loaders().iter().find(|l| l.cpu / 2 == node).unwrap().buffer.node;
        assert_eq!([0, 1, 2, 3].map(home), expected, "{without:?}");
        for node in without {
            let near = expected[*node as usize];
            let message = format!("node {node} has no memory; the nearest, node {near}, is used");
            assert!(messages(&plan, "no-local-memory").contains(&message), "{:?}", plan.notes);
        }
        assert!(
            !plan.notes.iter().any(|n| n.advice.as_ref().map(ToString::to_string).as_deref().is_some_and(|a| a.contains("cpuset"))),
            "{:?}",
            plan.notes
        );
    }
    // Of a node that has memory and may not be used, the control group is the cause.
    let mut machine = machine();
    machine.allowed.nodes = IdSet::one(1);
    let plan = plan_on(&machine, Task::bandwidth(BandwidthShape::One));
    assert!(plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::NoLocalMemory
        && n.advice.as_ref().map(ToString::to_string).as_deref().is_some_and(|a| a.contains("cpuset.mems"))));
}

#[test]
fn a_node_short_of_memory_costs_its_cells_only() {
    for task in [Task::suite(), Task::quick(), Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Matrix), Task::loaded()]
    {
        for room in [0, 100 << 10] {
            let mut machine = machine();
            machine.allowed.node_memory.insert(1, Bytes(room));
            let plan = plan_on(&machine, task.clone());
            let used: IdSet = plan
                .steps
                .iter()
                .flat_map(|s| &s.cells)
                .flat_map(|c| c.work.buffers())
                .flat_map(|b| b.nodes().iter().collect::<Vec<_>>())
                .collect();
            assert!(used.contains(0) && !used.contains(1), "{task:?}: {used}");
            let said = messages(&plan, "node-short-of-memory").concat();
            assert!(said.starts_with("node 1 is not measured: 0 MiB of its memory may be taken"), "{task:?}: {said}");
        }
    }
    // A size that one node cannot hold.
    let mut machine = machine();
    machine.allowed.node_memory.insert(1, Bytes::mib(200));
    let mut spec = Spec::new(Task::latency(LatencyShape::Matrix));
    set_size(&mut spec, Some(Bytes::mib(256)));
    assert_eq!(messages(&plan(&spec, &machine, &kernels()).unwrap(), "node-short-of-memory").len(), 1);
    // The request is refused if it names the node, or if all nodes are short.
    let named = Spec { nodes: Some(IdSet::one(1)), ..spec.clone() };
    assert!(matches!(plan(&named, &machine, &kernels()), Err(PlanError::Unavailable(_))));
    machine.allowed.node_memory = (0..3).map(|n| (n, Bytes::mib(100))).collect();
    assert!(matches!(plan(&spec, &machine, &kernels()), Err(PlanError::Unavailable(_))));
}

#[test]
fn a_chase_leaves_other_nodes_their_memory() {
    for task in [Task::suite(), Task::loaded()] {
        let mut machine = machine();
        machine.allowed.node_memory.insert(1, Bytes::mib(100));
        let plan = plan_on(&machine, task.clone());
        let loaded = plan.steps.iter().flat_map(|s| &s.cells).find(|c| matches!(c.work, Work::Curve(_))).unwrap();
        let buffers = loaded.work.loaders().iter().map(|l| &l.buffer).filter(|b| b.node == 1).collect::<Vec<_>>();
        assert!(!buffers.is_empty() && buffers.iter().all(|b| b.bytes >= Bytes::mib(4)), "{task:?}: {buffers:?}");
    }
}
