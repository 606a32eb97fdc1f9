use memgauge_model::installed::InstalledMemory;
use memgauge_model::topology::{Allowed, Cpu, Identity, Node, Topology};

use super::*;

fn machine() -> Machine {
    let cpu = |id: u32, node: u32| Cpu {
        id,
        package: 0,
        die: None,
        cluster: None,
        core: id,
        siblings: IdSet::one(id),
        node,
        kind: None,
        capacity: None,
        max_mhz: None,
    };
    let node = |id: u32, cpus: IdSet| Node { id, cpus, memory: Some(Bytes::gib(8)), ..Node::default() };
    Machine {
        topology: Topology {
            cpus: vec![cpu(0, 0), cpu(1, 0), cpu(2, 1), cpu(3, 1)],
            nodes: vec![node(0, [0, 1].into_iter().collect()), node(1, [2, 3].into_iter().collect())],
            ..Topology::default()
        },
        identity: Identity::default(),
        allowed: Allowed {
            cpus: (0..4).collect(),
            isolated: IdSet::new(),
            nodes: [0, 1].into_iter().collect(),
            memory: Some(Bytes::gib(12)),
            node_limited_by: Default::default(),
            memory_limited_by: String::new(),
            node_memory: BTreeMap::new(),
            cpu_quota: None,
            ..Allowed::default()
        },
    }
}

fn codes(environment: &Environment) -> Vec<&str> {
    environment.limits.iter().map(|note| note.code.word()).collect()
}

#[test]
fn an_administrator_with_large_pages_on_the_whole_machine() {
    let held = ["SeChangeNotifyPrivilege".to_owned(), LARGE_PAGES.to_owned()];
    let environment = environment(&machine(), Power::default(), Some(true), &held);
    assert!(environment.root);
    assert_eq!(environment.capabilities, [LARGE_PAGES]);
    assert_eq!(codes(&environment), ["perf-absent"]);
    assert_eq!((environment.numa_balancing, environment.thp, environment.turbo), (None, None, None));
}

#[test]
fn what_is_limited_is_said_with_advice() {
    let mut machine = machine();
    machine.topology.offline = IdSet::one(9);
    machine.identity.hypervisor = Some("Hyper-V".into());
    machine.identity.installed = InstalledMemory::unknown("Windows shows no firmware table (SMBIOS)");
    machine.allowed = Allowed {
        cpus: (0..3).collect(),
        nodes: IdSet::one(0),
        memory: Some(Bytes::mib(512)),
        node_limited_by: Default::default(),
        memory_limited_by: "a job object".into(),
        cpu_quota: Some(1.5),
        settings: memgauge_model::topology::SettingsFrom::Here,
        ..machine.allowed
    };
    let limited = environment(&machine, Power::default(), Some(false), &[]);
    assert!(!limited.root && limited.capabilities.is_empty());
    let expected = [
        "cpus-not-allowed",
        "no-local-memory",
        "cpus-offline",
        "cpu-quota",
        "little-memory",
        "no-large-pages",
        "virtual-machine",
        "dmi-absent",
        "perf-absent",
    ];
    assert_eq!(codes(&limited), expected);
    let message = |code: &str| limited.limits.iter().find(|note| note.code.word() == code).unwrap().message.to_string();
    assert!(message("cpus-not-allowed").ends_with("CPU 3") && message("no-local-memory").ends_with("CPU 2"));
    assert!(message("cpu-quota").contains("1.50 CPUs' worth of time on 3 CPUs"));
    assert_eq!(message("little-memory"), "at most 0.5 GiB of memory is taken: a job object");
    machine.allowed.cpus = IdSet::one(0);
    assert!(codes(&environment(&machine, Power::default(), None, &[])).contains(&"one-cpu"));
}

#[test]
fn this_machine_can_be_read() {
    let refused = refused_notes(&[Refused::FullSpeed, Refused::Timer, Refused::Awake]);
    assert_eq!(refused.iter().map(|note| note.code.word()).collect::<Vec<_>>(), ["may-be-slowed-down", "coarse-timer", "may-fall-asleep"]);
    let environment = read_environment(Path::new("/"), &machine());
    assert_eq!(environment.root, is_elevated() == Some(true));
    assert!(codes(&environment).contains(&"perf-absent"));
}
