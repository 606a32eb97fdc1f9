//! Topologies of machines whose answers are made by hand, in the layout that Microsoft documents.

mod answer;
#[cfg(not(windows))]
mod machines;

use memgauge_model::topology::{Cache, Cpu, Node};
use memgauge_model::units::{Bytes, IdSet};
use proptest::prelude::*;

use super::*;
use answer::{Answer, Kind};

const GIB: u64 = 1 << 30;

fn ids(list: &str) -> IdSet {
    list.parse().unwrap()
}

fn known(total: u64, available: u64) -> NodeMemory {
    NodeMemory { total: Some(total), available: Some(available) }
}

fn cache(level: u8, size: u64, ways: Option<u32>, cpus: &str) -> Cache {
    Cache { level, size: Bytes(size), line: Some(64), ways, cpus: ids(cpus) }
}

fn node(id: u32, cpus: &str, memory: u64, free: Option<u64>) -> Node {
    Node { id, cpus: ids(cpus), memory: Some(Bytes(memory)), free: free.map(Bytes), ..Node::default() }
}

/// A machine with one group, two cores of two threads, and their caches.
fn small() -> Answer {
    Answer::default()
        .core(0, &[(0, 0b0011)])
        .core(0, &[(0, 0b1100)])
        .package(&[(0, 0b1111)])
        .cache(1, 8, 32 << 10, Kind::Data, &[(0, 0b0011)])
        .cache(1, 8, 32 << 10, Kind::Instructions, &[(0, 0b0011)])
        .cache(2, 0xFF, 1 << 20, Kind::Unified, &[(0, 0b0011)])
        .cache(1, 8, 32 << 10, Kind::Data, &[(0, 0b1100)])
        .cache(2, 0xFF, 1 << 20, Kind::Unified, &[(0, 0b1100)])
        .cache(3, 16, 32 << 20, Kind::Unified, &[(0, 0b1111)])
        .node(0, &[(0, 0b1111)])
        .groups(&[0b1111])
}

#[test]
fn one_group_with_two_threads_per_core() {
    let answers = Answers {
        processors: small().bytes(),
        total: Some(16 * GIB),
        available: Some(9 * GIB),
        nodes: [(0, NodeMemory { total: None, available: Some(8 * GIB) })].into(),
        ..Answers::default()
    };
    let cpu = |id: u32, core: u32, siblings: &str| Cpu {
        id,
        package: 0,
        die: None,
        cluster: None,
        core,
        siblings: ids(siblings),
        node: 0,
        kind: None,
        capacity: None,
        max_mhz: None,
    };
    let expected = Topology {
        cpus: vec![cpu(0, 0, "0-1"), cpu(1, 0, "0-1"), cpu(2, 1, "2-3"), cpu(3, 1, "2-3")],
        caches: vec![
            cache(1, 32 << 10, Some(8), "0-1"),
            cache(1, 32 << 10, Some(8), "2-3"),
            cache(2, 1 << 20, None, "0-1"),
            cache(2, 1 << 20, None, "2-3"),
            cache(3, 32 << 20, Some(16), "0-3"),
        ],
        nodes: vec![node(0, "0-3", 16 * GIB, Some(9 * GIB))],
        smt_active: Some(true),
        ..Topology::default()
    };
    assert_eq!(interpret(&answers).unwrap(), expected);
    // The form before Windows Server 2022, in which nodes and caches state no number of groups.
    let older = Answers { processors: small().older().bytes(), ..answers };
    assert_ne!(older.processors, small().bytes());
    assert_eq!(interpret(&older).unwrap(), expected);
}

#[test]
fn two_groups_of_forty() {
    let group = (1 << 40) - 1;
    let mut answer = Answer::default();
    for package in [0, 1] {
        for core in 0..20 {
            answer = answer.core(0, &[(package, 0b11 << (2 * core))]);
        }
        answer = answer.package(&[(package, group)]).die(&[(package, group)]).node(package.into(), &[(package, group)]);
        answer = answer.cache(3, 11, 27 << 20, Kind::Unified, &[(package, group)]);
    }
    let answers = Answers {
        processors: answer.groups(&[group, group]).bytes(),
        total: Some(191 * GIB),
        available: Some(150 * GIB),
        nodes: [(0, known(96 * GIB, 60 * GIB)), (1, known(95 * GIB, 90 * GIB))].into(),
        ..Answers::default()
    };
    let topology = interpret(&answers).unwrap();
    assert_eq!(topology.online(), ids("0-39,64-103"));
    assert_eq!(topology.nodes, [node(0, "0-39", 96 * GIB, Some(60 * GIB)), node(1, "64-103", 95 * GIB, Some(90 * GIB))]);
    assert_eq!(topology.caches, [cache(3, 27 << 20, Some(11), "0-39"), cache(3, 27 << 20, Some(11), "64-103")]);
    let last = topology.cpu(103).unwrap();
    assert_eq!((last.package, last.die, last.core, last.node), (1, Some(0), 19, 1), "dies and cores are numbered within their package");
    assert_eq!(last.siblings, ids("102-103"));
    assert_eq!(topology.packages(), ids("0-1"));
    assert_eq!(topology.offline, IdSet::new());
}

#[test]
fn four_nodes_in_a_package() {
    let mut answer = Answer::default().package(&[(0, 0xFFFF)]).groups(&[0xFFFF]);
    for id in 0..4u32 {
        answer = answer.node(id, &[(0, 0xF << (4 * id))]).die(&[(0, 0xF << (4 * id))]);
    }
    for core in 0..16 {
        answer = answer.core(0, &[(0, 1 << core)]);
    }
    let free = |id: u64| NodeMemory { total: None, available: Some((id + 1) * GIB) };
    let answers = Answers {
        processors: answer.bytes(),
        total: Some(64 * GIB),
        available: Some(10 * GIB),
        nodes: (0..4).map(|id| (id, free(u64::from(id)))).collect(),
        ..Answers::default()
    };
    let topology = interpret(&answers).unwrap();
    // No total is known, so that what is available is the size. It is not shared out.
    let expected = [("0-3", 1), ("4-7", 2), ("8-11", 3), ("12-15", 4)];
    let expected: Vec<Node> = (0..).zip(expected).map(|(id, (cpus, gib))| node(id, cpus, gib * GIB, Some(gib * GIB))).collect();
    assert_eq!(topology.nodes, expected);
    assert_eq!(topology.smt_active, Some(false));
    let dies: Vec<_> = topology.cpus.iter().map(|cpu| (cpu.die.unwrap(), cpu.node)).collect();
    assert!(dies.iter().all(|(die, node)| die == node), "{dies:?}");
}

#[test]
fn a_node_with_two_groups() {
    let (first, second) = (u64::MAX, (1 << 32) - 1);
    let mut answer = Answer::default().package(&[(0, first), (1, second)]).groups(&[first, second]);
    for core in 0..96u16 {
        answer = answer.core(0, &[(core / 64, 1 << (core % 64))]);
    }
    // The general answer names the node's first group only.
    let processors = answer.node(0, &[(0, first)]).cache(3, 16, 96 << 20, Kind::Unified, &[(0, first), (1, second)]).bytes();
    let whole_nodes = Answer::default().node(0, &[(0, first), (1, second)]).bytes();
    let answers = Answers { processors, whole_nodes, total: Some(64 * GIB), ..Answers::default() };
    let topology = interpret(&answers).unwrap();
    assert_eq!(topology.nodes, [node(0, "0-95", 64 * GIB, None)]);
    assert_eq!(topology.cpus.len(), 96);
    assert!(topology.cpus.iter().all(|cpu| (cpu.package, cpu.node) == (0, 0)));
    assert_eq!(topology.caches, [cache(3, 96 << 20, Some(16), "0-95")]);
}

#[test]
fn kinds_of_cores() {
    let hybrid = |classes: &[u8]| {
        let mut answer = Answer::default().groups(&[(1 << classes.len()) - 1]);
        for (cpu, class) in classes.iter().enumerate() {
            answer = answer.core(*class, &[(0, 1 << cpu)]);
        }
        let topology = interpret(&Answers { processors: answer.bytes(), ..Answers::default() }).unwrap();
        topology.cpus.into_iter().map(|cpu| cpu.kind.unwrap_or_else(|| "alike".to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(hybrid(&[1, 1, 0]), ["performance", "performance", "efficiency"]);
    assert_eq!(hybrid(&[2, 1, 0]), ["performance", "class-1", "efficiency"]);
    assert_eq!(hybrid(&[0, 0]), ["alike", "alike"]);
    assert_eq!(hybrid(&[3, 3]), ["alike", "alike"]);
}

#[test]
fn modules_are_clusters() {
    let answer = small().module(&[(0, 0b0011)]).module(&[(0, 0b1100)]);
    let topology = interpret(&Answers { processors: answer.bytes(), ..Answers::default() }).unwrap();
    let clusters: Vec<_> = topology.cpus.iter().map(|cpu| cpu.cluster).collect();
    assert_eq!(clusters, [Some(0), Some(0), Some(1), Some(1)]);
}

#[test]
fn nodes_of_memory_only() {
    let nodes = [(0, known(16 * GIB, 8 * GIB)), (2, known(32 * GIB, 0)), (3, known(0, 0)), (4, NodeMemory::default())];
    let answers = Answers { processors: small().bytes(), total: Some(48 * GIB), nodes: nodes.into(), ..Answers::default() };
    let topology = interpret(&answers).unwrap();
    let expected = [node(0, "0-3", 16 * GIB, Some(8 * GIB)), node(2, "", 32 * GIB, Some(0))];
    assert_eq!(topology.nodes, expected, "a number without CPUs and memory is no node");
    // The same where Windows names the node without CPUs.
    let answers = Answers { processors: small().node(2, &[(0, 0)]).node(3, &[(0, 0)]).bytes(), ..answers };
    assert_eq!(interpret(&answers).unwrap().nodes, expected);
}

#[test]
fn a_node_of_cpus_only_has_no_memory() {
    let answer = Answer::default().node(0, &[(0, 0b01)]).node(1, &[(0, 0b10)]).groups(&[0b11]);
    let nodes = [(0, known(GIB, GIB)), (1, known(0, 0))].into();
    let answers = Answers { processors: answer.bytes(), total: Some(GIB), nodes, ..Answers::default() };
    assert_eq!(interpret(&answers).unwrap().nodes, [node(0, "0", GIB, Some(GIB)), node(1, "1", 0, Some(0))]);
}

#[test]
fn what_is_not_told_is_unknown() {
    // Only groups: no core, package, node or cache is named.
    let answers = Answers { processors: Answer::default().groups(&[0b101]).bytes(), total: Some(GIB), ..Answers::default() };
    let topology = interpret(&answers).unwrap();
    assert_eq!(topology.online(), ids("0,2"));
    assert_eq!(topology.smt_active, None);
    assert_eq!(topology.nodes, [node(0, "0,2", GIB, None)]);
    assert!(topology.cpus.iter().all(|cpu| cpu.siblings == IdSet::one(cpu.id) && cpu.die.is_none() && cpu.cluster.is_none()));
    // Only cores: they are the CPUs.
    let cores = Answers { processors: Answer::default().core(0, &[(0, 0b11)]).bytes(), ..Answers::default() };
    assert_eq!(interpret(&cores).unwrap().online(), ids("0-1"));
    // Caches without a size or a line, and of a CPU that is not active.
    let odd = small().cache(4, 0, 0, Kind::Unified, &[(0, 1)]).cache(4, 0, 4096, Kind::Unified, &[(0, 1 << 9)]);
    let topology = interpret(&Answers { processors: odd.bytes(), ..Answers::default() }).unwrap();
    assert!(topology.caches.iter().all(|cache| cache.level < 4));
    let other = small().cache(4, 0, 4096, Kind::Other, &[(0, 1)]);
    let topology = interpret(&Answers { processors: other.bytes(), ..Answers::default() }).unwrap();
    assert_eq!(topology.caches.last(), Some(&cache(4, 4096, None, "0")), "a kind that Windows does not name may hold data");
}

#[test]
fn relationships_of_later_versions_are_passed_over() {
    let processors = [Answer::record(99, &[1, 2, 3]), small().bytes()].concat();
    let known = interpret(&Answers { processors: small().bytes(), ..Answers::default() }).unwrap();
    assert_eq!(interpret(&Answers { processors, ..Answers::default() }).unwrap(), known);
}

#[test]
fn answers_that_are_cut_are_errors() {
    let whole = small().bytes();
    let ends = Answer::ends(&whole);
    for len in 0..whole.len() {
        let result = interpret(&Answers { processors: whole[..len].to_vec(), ..Answers::default() });
        match result {
            Err(TopologyError::NoCpus) => assert_eq!(len, 0),
            Err(TopologyError::Garbled(why)) => assert!(!ends.contains(&len) && why.contains("at byte"), "{len}: {why}"),
            other => assert!(ends.contains(&len), "{len}: {other:?}"),
        }
    }
    let garbled = |bytes: Vec<u8>| interpret(&Answers { processors: bytes, ..Answers::default() }).unwrap_err().to_string();
    assert!(garbled(Answer::record(0, &[0; 8])).contains("too short"));
    assert!(garbled(vec![0; 64]).contains("states a size of 0"), "it would never end");
    // More groups than the record has room for.
    let mut core = Answer::default().core(0, &[(0, 1)]).bytes();
    core[30] = 2;
    assert!(garbled(core).contains("too short"));
    let far = Answer::default().core(0, &[(2000, 1)]).bytes();
    assert!(garbled(far).contains("no machine has"));
    assert!(garbled(Vec::new()).contains("names no CPU"));
}

#[cfg(windows)]
#[test]
fn this_machine() {
    let machine = read_machine(Path::new("/")).unwrap();
    let topology = &machine.topology;
    assert!(!topology.cpus.is_empty() && !topology.nodes.is_empty());
    assert!(topology.nodes.iter().any(|node| node.memory > Some(Bytes(0))));
    for cpu in &topology.cpus {
        assert!(cpu.siblings.contains(cpu.id) && topology.node(cpu.node).is_some(), "{cpu:?}");
    }
    for cache in &topology.caches {
        assert!(cache.size.0 > 0 && cache.cpus.is_subset(&topology.online()), "{cache:?}");
    }
    let reread = interpret(&answers::ask().unwrap()).unwrap();
    assert_eq!((&reread.cpus, &reread.caches), (&topology.cpus, &topology.caches));
    for folder in ["/recorded/machine", "recorded", ".", ""] {
        let recorded = read_machine(Path::new(folder)).unwrap_err().to_string();
        assert!(recorded.contains("on Linux only"), "{folder}: {recorded}");
    }
}

proptest! {
    #[test]
    fn garbage_never_panics(
        processors in proptest::collection::vec(any::<u8>(), 0..400),
        whole_nodes in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        drop(interpret(&Answers { processors, whole_nodes, ..Answers::default() }));
    }

    /// Answers with a few wrong bytes reach further than garbage does.
    #[test]
    fn damaged_answers_never_panic(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut processors = small().bytes();
        for (at, byte) in damage {
            let at = at.index(processors.len());
            processors[at] = byte;
        }
        if let Ok(topology) = interpret(&Answers { processors, ..Answers::default() }) {
            prop_assert!(!topology.cpus.is_empty() && !topology.nodes.is_empty());
            prop_assert!(topology.cpus.windows(2).all(|pair| pair[0].id < pair[1].id));
        }
    }
}
