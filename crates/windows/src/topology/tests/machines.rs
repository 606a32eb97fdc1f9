//! The program's plans for these machines: the plans of the suite, the matrices and the transfers.
//! `SNAPSHOTS=overwrite cargo test -p memgauge-windows machines` writes the texts in `tests/machines` anew.

use std::path::Path;

use memgauge_model::plan::{KernelRow, Work};
use memgauge_model::spec::{BandwidthShape, LatencyShape, Spec, Task, TransferShape};
use memgauge_model::topology::{Allowed, Identity, Machine, OperatingSystem};
use memgauge_model::traffic::{Form, Mix, Width};
use memgauge_planner::plan;
use memgauge_render::{Appearance, Document, PlannedRun};
use snapbox::Data;

use super::*;

/// Cores with two threads each, a node and a last-level cache for each mask, all in a package for each of `packages`.
fn server(nodes: &[(u16, u64)], packages: &[&[(u16, u64)]], groups: &[u64]) -> Answer {
    let mut answer = Answer::default();
    for package in packages {
        answer = answer.package(package);
    }
    for (id, &(group, mask)) in (0..).zip(nodes) {
        let first = mask.trailing_zeros();
        for core in 0..mask.count_ones() / 2 {
            let threads = 0b11 << (first + 2 * core);
            answer = answer.core(0, &[(group, threads)]).cache(2, 16, 1 << 20, Kind::Unified, &[(group, threads)]);
        }
        answer = answer.node(id, &[(group, mask)]).cache(3, 16, 32 << 20, Kind::Unified, &[(group, mask)]);
    }
    answer.groups(groups)
}

fn machine(answer: Answer, nodes: u32) -> Machine {
    let (total, free) = (64 * GIB, 48 * GIB);
    let answers = Answers {
        processors: answer.bytes(),
        total: Some(total * u64::from(nodes)),
        available: Some(free * u64::from(nodes)),
        nodes: (0..nodes).map(|id| (id, known(total, free))).collect(),
        ..Answers::default()
    };
    let topology = interpret(&answers).unwrap();
    let allowed = Allowed {
        cpus: topology.online(),
        isolated: IdSet::new(),
        nodes: (0..nodes).collect(),
        memory: Some(Bytes(free * u64::from(nodes))),
        node_limited_by: Default::default(),
        memory_limited_by: format!("available memory (GlobalMemoryStatusEx, {} GiB)", 48 * nodes),
        node_memory: (0..nodes).map(|id| (id, Bytes(free / 5 * 4))).collect(),
        cpu_quota: None,
        ..Allowed::default()
    };
    let identity = Identity {
        arch: "x86_64".into(),
        vendor: Some("GenuineIntel".into()),
        model_name: Some("A processor of a test".into()),
        system: OperatingSystem::Windows,
        kernel: Some("10.0.20348 (Windows Server 2022)".into()),
        ..Identity::default()
    };
    Machine { identity, topology, allowed }
}

fn kernels() -> Vec<KernelRow> {
    let row = |name: &str, mix| KernelRow { name: name.into(), mix, width: Width::Avx2, form: Form::default() };
    vec![row("load-avx2", Mix::AllReads), row("store-avx2", Mix::R1W1), row("nt-avx2", Mix::NtWrite)]
}

fn check(name: &str, what: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/machines/{name}/{what}.txt"));
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(Data::text(lines.join("\n") + "\n").raw(), Data::read_from(&path, None).raw());
}

/// Compares the texts, and the plans with what the machine has.
fn machine_is_planned(name: &str, machine: &Machine) {
    for (what, task) in [
        ("suite", Task::suite()),
        ("latency-matrix", Task::latency(LatencyShape::Matrix)),
        ("bandwidth-matrix", Task::bandwidth(BandwidthShape::Matrix)),
        ("c2c", Task::c2c(TransferShape::Representatives)),
    ] {
        let plan = plan(&Spec::new(task), machine, &kernels()).unwrap();
        check(name, what, &PlannedRun { plan: &plan, machine }.text(&Appearance::default()));
        let cells: Vec<_> = plan.steps.iter().flat_map(|step| &step.cells).collect();
        let cpus = cells.iter().fold(IdSet::new(), |all, cell| all.union(&cell.work.cpus()));
        assert!(cpus.is_subset(&machine.allowed.cpus) && !cpus.is_empty(), "{name}: {what}: {cpus}");
        if what.ends_with("-matrix") {
            let pairs = cells.iter().filter(|cell| !cell.repeat && !matches!(cell.work, Work::Transfers(_))).count();
            assert_eq!(pairs, machine.topology.nodes.len().pow(2), "{name}: {what}");
        }
    }
}

#[test]
fn machines() {
    let two = server(&[(0, 0xFF), (0, 0xFF00)], &[&[(0, 0xFF)], &[(0, 0xFF00)]], &[0xFFFF]);
    machine_is_planned("two-nodes", &machine(two, 2));
    let four: Vec<(u16, u64)> = (0..4).map(|node| (0, 0xFF << (8 * node))).collect();
    machine_is_planned("four-nodes", &machine(server(&four, &[&[(0, 0xFFFF_FFFF)]], &[0xFFFF_FFFF]), 4));
    let group = (1 << 40) - 1;
    let groups = server(&[(0, group), (1, group)], &[&[(0, group)], &[(1, group)]], &[group, group]);
    let machine = machine(groups, 2);
    assert_eq!(machine.allowed.cpus, ids("0-39,64-103"));
    machine_is_planned("two-groups", &machine);
}
