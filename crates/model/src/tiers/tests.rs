use super::*;
use crate::installed::{InstalledMemory, MemoryDevice};
use crate::topology::{Allowed, CxlMemory, HmatAccess, Identity, Topology};
use crate::units::{Bytes, IdSet};

fn node(id: u32, cpus: &str) -> Node {
    let distances = [(0, if id == 0 { 10 } else { 14 }), (id, 10)].into();
    Node { id, cpus: cpus.parse().unwrap(), memory: Some(Bytes::gib(8)), distances, ..Node::default() }
}

fn machine(bare: Node) -> Machine {
    let mut own = node(0, "0-3");
    own.distances.insert(bare.id, 14);
    Machine {
        identity: Identity::default(),
        topology: Topology { nodes: vec![own, bare], ..Topology::default() },
        allowed: Allowed {
            cpus: IdSet::new(),
            isolated: IdSet::new(),
            nodes: IdSet::new(),
            memory: None,
            node_limited_by: Default::default(),
            memory_limited_by: String::new(),
            node_memory: [].into(),
            cpu_quota: None,
            ..Allowed::default()
        },
    }
}

fn of(machine: &Machine, node: u32) -> (MemoryKind, bool) {
    let found = kinds(machine).into_iter().find(|k| k.node == node).unwrap();
    (found.kind, found.guessed)
}

fn claim(mbs: u64) -> Vec<HmatAccess> {
    vec![HmatAccess { class: 1, read_bandwidth_mbs: Some(mbs), read_latency_ns: Some(100), ..HmatAccess::default() }]
}

fn device(kind: NodeDeviceKind) -> Vec<NodeDevice> {
    vec![NodeDevice { name: "dax0.0".into(), kind, region: Some("region0".into()), qos_class: None }]
}

#[test]
fn devices_state_the_kind() {
    for (bus, kind) in [
        (NodeDeviceKind::Nvdimm, (MemoryKind::Persistent, false)),
        (NodeDeviceKind::Cxl, (MemoryKind::Cxl, false)),
        (NodeDeviceKind::SpecificPurpose, (MemoryKind::WithoutCpus, false)),
    ] {
        assert_eq!(of(&machine(Node { devices: device(bus), ..node(2, "") }), 2), kind, "{bus:?}");
    }
    // Memory of a device that was added to a node with CPUs does not make all of it that kind.
    let mut mixed = machine(node(2, ""));
    mixed.topology.nodes[0].devices = device(NodeDeviceKind::Cxl);
    assert_eq!(of(&mixed, 0), (MemoryKind::Dram, true));
}

#[test]
fn memory_of_a_gpu_is_measured_only_if_it_is_named() {
    let with = |kind, distance| {
        let mut machine = machine(Node { devices: device(kind), ..node(2, "") });
        machine.topology.nodes[0].distances.insert(2, distance);
        machine.allowed.nodes = "0,2".parse().unwrap();
        (of(&machine, 2), default_nodes(&machine).to_string())
    };
    assert_eq!(with(NodeDeviceKind::Gpu, 14), ((MemoryKind::Gpu, false), "0".into()));
    assert_eq!(with(NodeDeviceKind::PciAccelerator, 80), ((MemoryKind::Gpu, true), "0".into()));
    // DRAM of a socket without online CPUs has accelerators, too.
    assert_eq!(with(NodeDeviceKind::PciAccelerator, 32), ((MemoryKind::WithoutCpus, false), "0,2".into()));
    let mut only = machine(Node { devices: device(NodeDeviceKind::Gpu), ..node(2, "") });
    only.allowed.nodes = IdSet::one(2);
    assert_eq!(default_nodes(&only), IdSet::one(2), "better than nothing");
}

#[test]
fn what_nothing_states_is_a_guess_or_unknown() {
    let plain = machine(node(2, ""));
    assert_eq!((of(&plain, 0), of(&plain, 2)), ((MemoryKind::Dram, true), (MemoryKind::WithoutCpus, false)));
    assert_eq!(kinds(&plain)[1].evidence, [KindEvidence::Distance { from: 0, distance: 14 }]);
    let mut expander = machine(node(2, ""));
    expander.topology.cxl_memory = vec![CxlMemory { name: "mem0".into(), cpu_node: Some(0), bytes: Bytes::gib(8), qos_class: None }];
    assert_eq!(of(&expander, 2), (MemoryKind::Cxl, true));
    // Firmware that lists DDR only makes the nodes with CPUs certain.
    let mut listed = machine(node(2, ""));
    let stick = MemoryDevice { kind: Some("DDR5".into()), ..MemoryDevice::default() };
    listed.identity.installed = InstalledMemory { devices: vec![stick], slots: 1, reason: None };
    assert_eq!(of(&listed, 0), (MemoryKind::Dram, false));
}

#[test]
fn hbm_is_guessed_from_claims() {
    for (mbs, kind) in [(400_000, MemoryKind::Hbm), (300_000, MemoryKind::WithoutCpus), (60_000, MemoryKind::WithoutCpus)] {
        let mut machine = machine(Node { hmat: claim(mbs), memory_tier: Some(3), ..node(2, "") });
        (machine.topology.nodes[0].hmat, machine.topology.nodes[0].memory_tier) = (claim(200_000), Some(4));
        assert_eq!(of(&machine, 2).0, kind, "{mbs}");
        assert_eq!(of(&machine, 0).0, MemoryKind::Dram);
        let evidence = &kinds(&machine)[1].evidence;
        assert_eq!(evidence[0], KindEvidence::MemoryTier { tier: 3, of_cpus: Some(4) });
        let expected = KindEvidence::Claim { read_latency_ns: Some(100), read_bandwidth_mbs: Some(mbs), of_cpus_mbs: Some(200_000) };
        assert_eq!(evidence[1], expected);
    }
}
