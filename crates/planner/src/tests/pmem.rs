//! The suite for persistent memory.

use std::collections::BTreeSet;

use memgauge_model::directory::{FileBacking, MemoryDir};
use memgauge_model::spec::PmemSpec;
use memgauge_model::traffic::PersistMethod;

use super::directory::directory;
use super::*;

fn row(name: &str, mix: Mix, width: Width) -> KernelRow {
    KernelRow { name: name.into(), mix, width, form: Form::default() }
}

fn kernels() -> Vec<KernelRow> {
    let mut rows: Vec<KernelRow> = Vec::new();
    for access in [Access::Sequential, Access::Random, Access::Blocks] {
        for mix in [Mix::AllReads, Mix::NtWrite, Mix::R2W1Nt, Mix::R2W1NtX1, Mix::R1W1, Mix::R2W1] {
            rows.push(KernelRow { form: Form { access, ..Form::default() }, ..row(&format!("{mix}-{access:?}"), mix, Width::Avx2) });
        }
    }
    for line in [LineUse::Persisted(PersistMethod::NtStore), LineUse::ReadBack(PersistMethod::NtStore)] {
        let form = Form { access: Access::Blocks, line };
        rows.push(KernelRow { form, ..row(&format!("{line:?}"), Mix::NtWrite, Width::Sse2) });
    }
    rows
}

fn suite(pmem: PmemSpec, kernels: &[KernelRow]) -> Result<Plan, PlanError> {
    crate::plan(&Spec::new(Task::Pmem(pmem)), &machine(), kernels)
}

fn directories() -> Vec<MemoryDir> {
    let at = |path: &str, node| {
        let mut dir = directory(FileBacking::Dax, Some(node), Some(Bytes::gib(100)));
        dir.file.path = path.into();
        dir
    };
    vec![at("/mnt/pmem0", 0), at("/mnt/pmem1", 1)]
}

#[test]
fn every_node_measures_every_directory() {
    let plan = suite(PmemSpec { directories: directories(), ramp: true, loaded: true, ..PmemSpec::default() }, &kernels()).unwrap();
    let of = |experiment, access| {
        let cells = plan.steps.iter().filter(move |s| s.experiment == experiment).flat_map(|s| &s.cells);
        cells.filter(move |c| !c.repeat && c.at.access == access)
    };
    let places: Vec<_> = of(Experiment::IdleLatency, None).map(|c| (c.at.memory_dir.clone().unwrap(), c.at.cpu_node)).collect();
    for (path, node) in [("/mnt/pmem0", 0), ("/mnt/pmem0", 1), ("/mnt/pmem1", 0), ("/mnt/pmem1", 1)] {
        assert!(places.contains(&(path.to_owned(), Some(node))), "{places:?}");
    }
    // Ten runs in each of four places.
    for access in [Access::Sequential, Access::Random] {
        assert_eq!(of(Experiment::Bandwidth, Some(access)).count(), 5 * 4, "{access:?}");
        assert_eq!(of(Experiment::LoadedLatency, Some(access)).count(), 4, "{access:?}");
        let curve = of(Experiment::LoadedLatency, Some(access)).next().unwrap();
        let Work::Curve(LoadCurve { delays: Delays::Cycles(list), traffic, order, .. }) = &curve.work else { panic!("{curve:?}") };
        assert_eq!((list.len(), list[8], list[19]), (20, 850, 80000), "the delays of the field's script");
        let chase = if access == Access::Random { ChaseOrder::WindowLocal } else { ChaseOrder::Sequential };
        assert_eq!((traffic.form.access, *order, curve.at.order), (access, chase, Some(chase)));
        let mixes: BTreeSet<Mix> = of(Experiment::Bandwidth, Some(access)).filter_map(|c| c.at.mix).collect();
        assert_eq!(mixes, [Mix::AllReads, Mix::R2W1, Mix::R1W1, Mix::NtWrite, Mix::R2W1NtX1].into(), "W7, and not W10, in either order");
    }
    assert_eq!(of(Experiment::AccessSize, None).count(), 7 * 2 * 4);
    assert_eq!(of(Experiment::PersistLatency, None).count(), 5 * 4, "four sizes, and one that is read again");
    assert!(of(Experiment::PersistLatency, None).all(|c| c.work.cpus().len() == 1));
    let run = of(Experiment::Bandwidth, Some(Access::Random)).next().unwrap();
    assert!(run.work.buffers().iter().all(|b| b.bytes >= Bytes(400_000 << 10) && b.directory.is_some()), "{:?}", run.work.buffers());
    assert_eq!(plan.directories.len(), 2);
}

#[test]
fn files_are_smaller_where_there_is_less_room() {
    let mut directories = directories();
    directories.truncate(1);
    directories[0].free = Some(Bytes::mib(800));
    let plan = suite(PmemSpec { directories, loaded: true, ..PmemSpec::default() }, &kernels()).unwrap();
    for cell in plan.steps.iter().flat_map(|s| &s.cells) {
        let all: u64 = cell.work.buffers().iter().map(|b| b.bytes.0).sum();
        assert!(all <= Bytes::mib(750).0, "{} in {:?}", Bytes(all), cell.at);
    }
}

#[test]
fn what_cannot_be_measured_is_said() {
    let named = |nodes: &str| PmemSpec { directories: directories(), cpu_nodes: nodes.parse().ok(), ..PmemSpec::default() };
    let error = suite(named("7"), &kernels()).unwrap_err().to_string();
    assert!(error.contains("--node") && error.contains("node 7"), "{error}");
    let plan = suite(named("1"), &kernels()).unwrap();
    assert!(plan.steps.iter().flat_map(|s| &s.cells).all(|c| c.at.cpu_node == Some(1)));
    // A CPU that has neither non-temporal stores nor instructions that make lines durable, as RISC-V.
    let few: Vec<KernelRow> = kernels().into_iter().filter(|k| !k.mix.non_temporal()).collect();
    let plan = suite(named("0"), &few).unwrap();
    let codes: Vec<&str> = plan.notes.iter().map(|n| n.code.word()).collect();
    assert!(codes.contains(&"no-kernel-for-mix") && codes.contains(&"no-persist-instruction"), "{codes:?}");
}
