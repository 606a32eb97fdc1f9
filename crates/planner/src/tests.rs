use std::collections::BTreeMap;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, LineState, PageRequest};
use memgauge_model::plan::{Cell, Delays, Handoff, IdleChase, KernelRow, LoadCurve, Loading, Plan, Step, Work};
use memgauge_model::spec::{BandwidthShape, ChaseSpec, CurveSpec, LatencyShape, Spec, Task, TrafficSpec, TransferShape, WidthRequest};
use memgauge_model::topology::{Allowed, Cache, Cpu, Identity, Machine, MemorySideCache, Node, PagePool, Topology};
use memgauge_model::traffic::{Access, Form, LineUse, Mix, Width};
use memgauge_model::units::{Bytes, IdSet};

use super::*;

mod curve;
mod directory;
mod nodes;
mod pmem;
mod policy;
mod prefetch;
mod probe;
mod scan;
mod sweep;
mod tiers;
mod time;
mod traffic;

/// Two packages of two cores of two threads (CPUs 0-3 and 4-7, siblings next to each other), one node each, and a node of memory only.
fn machine() -> Machine {
    let cpus: Vec<Cpu> = (0..8)
        .map(|id| Cpu {
            id,
            package: id / 4,
            die: None,
            cluster: None,
            core: id % 4 / 2,
            siblings: [id / 2 * 2, id / 2 * 2 + 1].into_iter().collect(),
            node: id / 4,
            kind: None,
            capacity: None,
            max_mhz: None,
        })
        .collect();
    let cache =
        |level, size, first: u32, n| Cache { level, size: Bytes(size), line: Some(64), ways: None, cpus: (first..first + n).collect() };
    let mut caches: Vec<Cache> = (0..4).map(|core| cache(2, 1 << 20, core * 2, 2)).collect();
    caches.extend([cache(3, 16 << 20, 0, 4), cache(3, 16 << 20, 4, 4)]);
    let node = |id: u32, cpus: &str| Node {
        id,
        cpus: cpus.parse().unwrap(),
        memory: Some(Bytes::gib(8)),
        free: Some(Bytes::gib(6)),
        distances: [(0, 10 + 10 * id), (1, 10 + 10 * (1 - id.min(1))), (2, 30)].into_iter().collect(),
        ..Default::default()
    };
    Machine {
        identity: Identity { arch: "x86_64".into(), ..Default::default() },
        topology: Topology { cpus, caches, nodes: vec![node(0, "0-3"), node(1, "4-7"), node(2, "")], ..Default::default() },
        allowed: Allowed {
            cpus: "0-7".parse().unwrap(),
            nodes: "0-2".parse().unwrap(),
            memory: Some(Bytes::gib(12)),
            node_limited_by: Default::default(),
            memory_limited_by: "MemAvailable".into(),
            node_memory: (0..3).map(|n| (n, Bytes::gib(4))).collect::<BTreeMap<_, _>>(),
            isolated: IdSet::new(),
            cpu_quota: None,
            ..Allowed::default()
        },
    }
}

fn kernels() -> Vec<KernelRow> {
    let row = |name: &str, mix, width| KernelRow { name: name.into(), mix, width, form: Form::default() };
    vec![
        row("load-sse2", Mix::AllReads, Width::Sse2),
        row("load-avx2", Mix::AllReads, Width::Avx2),
        row("store-avx2", Mix::R1W1, Width::Avx2),
        row("fill-stosb", Mix::Fill, Width::String),
        // Not for a survey, and not for plain traffic.
        row("mix-9:1-avx2", Mix::R9W1, Width::Avx2),
        KernelRow { form: Form { access: Access::Random, ..Form::default() }, ..row("load-avx2-random", Mix::AllReads, Width::Avx2) },
    ]
}

/// The options of a chase.
fn chase(spec: &mut Spec) -> &mut ChaseSpec {
    spec.task.chase_mut().unwrap()
}

/// The options of a curve.
fn curve(spec: &mut Spec) -> &mut CurveSpec {
    let Task::Loaded(loaded) = &mut spec.task else { panic!("another task") };
    &mut loaded.curve
}

/// The options of loaders.
fn traffic(spec: &mut Spec) -> &mut TrafficSpec {
    match &mut spec.task {
        Task::Bandwidth(bandwidth) => &mut bandwidth.traffic,
        Task::Loaded(loaded) => &mut loaded.traffic,
        other => panic!("{other:?}"),
    }
}

/// Sets the size of all buffers.
fn set_size(spec: &mut Spec, size: Option<Bytes>) {
    match &mut spec.task {
        Task::Latency(latency) => latency.chase.buffer = size,
        Task::Bandwidth(bandwidth) => bandwidth.traffic.buffer = size,
        Task::Loaded(loaded) => (loaded.chase.buffer, loaded.traffic.buffer) = (size, size),
        Task::C2c(transfer) => transfer.buffer = size,
        other => panic!("{other:?}"),
    }
}

fn planned(task: Task, change: impl FnOnce(&mut Spec)) -> Result<Plan, PlanError> {
    let mut spec = Spec::new(task);
    change(&mut spec);
    plan(&spec, &machine(), &kernels())
}

fn matrix_cells(step: &Step) -> Vec<(u32, u32)> {
    let mut cells: Vec<_> =
        step.cells.iter().filter(|c| !c.repeat).map(|c| (c.at.cpu_node.unwrap(), c.at.memory_node().unwrap())).collect();
    cells.sort_unstable();
    cells
}

#[test]
fn a_matrix_has_a_row_for_each_node_with_cpus_and_a_column_for_each_with_memory() {
    for task in [Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Matrix)] {
        let plan = planned(task, |_| ()).unwrap();
        assert_eq!(matrix_cells(&plan.steps[0]), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        let last = plan.steps[0].cells.last().unwrap();
        assert!(last.repeat, "the control of drift comes last");
        assert_eq!(last.work, plan.steps[0].cells[0].work);
    }
}

#[test]
fn buffers_are_four_times_the_caches_that_could_hold_them() {
    let plan = planned(Task::latency(LatencyShape::One), |_| ()).unwrap();
    let Work::Latency(IdleChase { probe, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    // 4 x (16 MiB + 2 x 1 MiB), rounded up to a power of two.
    assert_eq!(probe.buffer.bytes, Bytes::mib(128));
    assert_eq!(probe.stride, Bytes(128));
    assert_eq!(probe.buffer.touch.to_string(), "0,2", "one thread of each core of the node");
}

#[test]
fn touching_cpus_of_a_node_without_cpus_are_any_allowed() {
    let plan = planned(Task::latency(LatencyShape::One), |s| s.nodes = Some(IdSet::one(2))).unwrap();
    let Work::Latency(IdleChase { probe, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert_eq!((probe.buffer.node, probe.buffer.touch.to_string().as_str()), (2, "0,2,4,6"));
}

#[test]
fn the_suite_has_every_measurement_and_ends_with_a_control() {
    let plan = planned(Task::suite(), |_| ()).unwrap();
    let experiments: Vec<_> = plan.steps.iter().map(|s| s.experiment).collect();
    use memgauge_model::experiment::Experiment::*;
    assert_eq!(experiments, [IdleLatency, Bandwidth, BandwidthMatrix, LoadedLatency, CacheToCache, IdleLatency]);
    assert!(plan.steps.last().unwrap().cells[0].repeat);
    assert_eq!(plan.keep_awake.to_string(), "0,4", "a CPU of each package");
    let mixes: Vec<Mix> = plan.steps[1].cells.iter().filter_map(|c| c.at.mix).collect();
    assert_eq!(mixes, [Mix::AllReads, Mix::R1W1, Mix::Fill], "only mixes that have a kernel");
    let Work::Bandwidth(Loading { traffic, .. }) = &plan.steps[1].cells[0].work else { panic!() };
    assert_eq!(traffic.kernels, ["load-sse2", "load-avx2"], "of one form");
}

#[test]
fn one_cpu_gets_a_suite_without_what_needs_two() {
    let plan = planned(Task::suite(), |s| s.cpus = Some(IdSet::one(3))).unwrap();
    assert!(plan.steps.iter().all(|s| !matches!(s.experiment, Experiment::LoadedLatency | Experiment::CacheToCache)));
    assert!(plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::OneCpu));
    assert!(matches!(planned(Task::c2c(TransferShape::Representatives), |s| s.cpus = Some(IdSet::one(3))), Err(PlanError::Unavailable(_))));
}

#[test]
fn one_core_of_two_threads_gets_a_suite_without_latency_under_load() {
    let plan = planned(Task::suite(), |s| s.cpus = Some("2-3".parse().unwrap())).unwrap();
    assert!(plan.steps.iter().any(|s| s.experiment == Experiment::CacheToCache));
    assert!(plan.steps.iter().all(|s| s.experiment != Experiment::LoadedLatency));
    assert!(plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::OneCore));
    assert!(matches!(planned(Task::loaded(), |s| s.cpus = Some("2-3".parse().unwrap())), Err(PlanError::Unavailable(_))));
}

#[test]
fn the_chaser_has_its_core_for_itself() {
    let plan = planned(Task::loaded(), |_| ()).unwrap();
    let Work::Curve(LoadCurve { probe, loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert_eq!(probe.cpu, 0);
    let cpus: Vec<u32> = loaders.iter().map(|l| l.cpu).collect();
    assert_eq!(cpus, [2, 4, 6, 3, 5, 7], "CPU 1 is CPU 0's sibling; first threads first, over both packages");
    assert!(loaders.iter().all(|l| l.buffer.node == l.cpu / 4), "each loads its own node");
    let error = planned(Task::loaded(), |s| s.cpus = Some("0,1".parse().unwrap())).unwrap_err();
    assert!(error.to_string().contains("second core besides CPU 0"), "{error}");
}

#[test]
fn representatives_are_one_of_each_distance() {
    let plan = planned(Task::c2c(TransferShape::Representatives), |_| ()).unwrap();
    let pairs: std::collections::BTreeSet<_> = plan.steps[0].cells.iter().map(|c| (c.at.cpu.unwrap(), c.at.holder_cpu.unwrap())).collect();
    assert_eq!(pairs.into_iter().collect::<Vec<_>>(), [(0, 1), (0, 2), (0, 4)], "sibling, same cache, other package");
    let homes: IdSet = plan.steps[0].cells.iter().filter(|c| c.at.holder_cpu == Some(4)).filter_map(|c| c.at.memory_node()).collect();
    assert_eq!(homes.to_string(), "0-1", "across packages the home matters");
}

#[test]
fn a_full_core_to_core_matrix_has_every_ordered_pair_in_both_states() {
    let plan = planned(Task::c2c(TransferShape::CpuMatrix), |_| ()).unwrap();
    assert_eq!(plan.steps[0].experiment, Experiment::CacheToCacheMatrix);
    let [Cell { work: Work::Transfers(all), .. }] = &plan.steps[0].cells[..] else { panic!() };
    assert_eq!((all.pairs(), all.results()), (8 * 7, 8 * 7 * 2));
    let (at, handoff) = all.transfer(3, 6, 0, LineState::Hitm).unwrap();
    assert_eq!((at.cpu, at.holder_cpu, at.memory_node(), at.state), (Some(3), Some(6), Some(0), Some(LineState::Hitm)));
    assert_eq!((handoff.reader, handoff.holder, handoff.buffer.node), (3, 6, 0));
    assert!(all.transfer(3, 9, 0, LineState::Hit).is_none() && all.transfer(3, 6, 1, LineState::Hit).is_none());
    // Four cores of two threads: three turns of four rounds, and one round that pairs the threads of each core.
    assert_eq!((all.rounds, all.at_once), (13, 4));
    assert!(all.representatives.is_empty() && all.one_by_one_s < 600.0);
    let two = planned(Task::c2c(TransferShape::CpuMatrix), |s| s.nodes = Some([0, 1].into_iter().collect())).unwrap();
    let Work::Transfers(two) = &two.steps[0].cells[0].work else { panic!() };
    assert_eq!((two.homes(), two.results()), (2, 2 * 8 * 7 * 2));
}

#[test]
fn a_matrix_of_a_thousand_cpus_says_what_it_would_cost() {
    let mut machine = machine();
    let model = machine.topology.cpus[0].clone();
    machine.topology.cpus = (0..1024).map(|id| Cpu { id, siblings: IdSet::one(id), core: id, ..model.clone() }).collect();
    machine.allowed.cpus = (0..1024).collect();
    let mut spec = Spec::new(Task::c2c(TransferShape::CpuMatrix));
    set_size(&mut spec, Some(Bytes::mib(1)));
    let plan = plan(&spec, &machine, &kernels()).unwrap();
    let Work::Transfers(all) = &plan.steps[0].cells[0].work else { panic!() };
    assert_eq!((all.rounds, all.at_once, all.results()), (1023, 512, 1024 * 1023 * 2));
    assert!(plan.estimated_s > 2.0 * 1023.0 * 2.0 * 0.15 && plan.estimated_s < 1000.0, "{}", plan.estimated_s);
    assert!(all.one_by_one_s > 300_000.0 && !all.representatives.is_empty());
    assert!(
        plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::PairsAtOnce && n.message.to_string().contains("hours")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn a_ramp_spreads_over_packages_first() {
    let plan = planned(Task::bandwidth(BandwidthShape::Ramp(IdSet::new())), |_| ()).unwrap();
    let cpus: Vec<String> = plan.steps[0].cells.iter().map(|c| c.at.cpus.as_ref().unwrap().to_string()).collect();
    assert_eq!(cpus, ["0", "0,4", "0,2,4,6", "0-7"]);
    let named = |list: &str| {
        let list = list.parse().unwrap();
        planned(Task::bandwidth(BandwidthShape::Ramp(list)), |_| ())
    };
    let counts: Vec<usize> = named("1,3-7:2").unwrap().steps[0].cells.iter().map(|c| c.at.cpus.as_ref().unwrap().len()).collect();
    assert_eq!(counts, [1, 3, 5, 7]);
    for (list, why) in [("0,2", "0 CPUs"), ("1,9", "names 9 CPUs, and 8 are measured from")] {
        assert!(named(list).unwrap_err().to_string().contains(why), "{list}");
    }
}

#[test]
fn what_does_not_exist_is_named_with_what_does() {
    let message = |change: fn(&mut Spec)| planned(Task::latency(LatencyShape::One), change).unwrap_err().to_string();
    assert_eq!(message(|s| s.cpus = Some(IdSet::one(8))), "there is no CPU 8; online are 0-7");
    assert_eq!(message(|s| s.nodes = Some(IdSet::one(7))), "there is no node 7; nodes with memory are 0-2");
    assert!(
        message(|s| set_size(s, Some(Bytes::gib(5))))
            .starts_with("a buffer of 5 GiB on node 0 is more than the 4.0 GiB that may be taken there")
    );
    assert!(message(|s| chase(s).stride = Some(Bytes(100))).contains("not a multiple of the 64 B cache line"));
    assert!(message(|s| set_size(s, Some(Bytes(64)))).contains("does not hold two lines"));
    assert!(message(|s| { chase(s).window = Some(Bytes::gib(1)) }).contains("larger than the buffer"));
}

#[test]
fn everything_named_is_measured_or_refused() {
    let both = |s: &mut Spec| (s.cpus, s.nodes) = (Some("1,5".parse().unwrap()), Some("0,2".parse().unwrap()));
    let plan = planned(Task::latency(LatencyShape::One), both).unwrap();
    let mut cells: Vec<_> =
        plan.steps[0].cells.iter().filter(|c| !c.repeat).map(|c| (c.at.cpu.unwrap(), c.at.memory_node().unwrap())).collect();
    cells.sort_unstable();
    assert_eq!(cells, [(1, 0), (1, 2), (5, 0), (5, 2)]);
    for task in [Task::bandwidth(BandwidthShape::One), Task::bandwidth(BandwidthShape::Ramp(IdSet::new())), Task::loaded()] {
        assert!(matches!(planned(task, both), Err(PlanError::Request(m)) if m.to_string().contains("one node's memory")));
    }
    let suite = planned(Task::suite(), both).unwrap();
    let Work::Bandwidth(Loading { loaders, .. }) = &suite.steps[1].cells[0].work else { panic!() };
    assert_eq!(loaders.iter().map(|l| l.buffer.node).collect::<Vec<_>>(), [0, 0], "the nearest of the nodes named");
}

#[test]
fn what_may_not_be_used_is_refused_with_the_reason() {
    let mut machine = machine();
    machine.allowed.cpus = "4-7".parse().unwrap();
    machine.allowed.nodes = IdSet::one(1);
    let mut spec = Spec::new(Task::latency(LatencyShape::Matrix));
    let plan_all = plan(&spec, &machine, &kernels()).unwrap();
    assert_eq!(matrix_cells(&plan_all.steps[0]), [(1, 1)]);
    spec.cpus = Some(IdSet::one(0));
    assert!(matches!(plan(&spec, &machine, &kernels()), Err(PlanError::Unavailable(m)) if m.to_string().contains("may not use CPU 0")));
    spec.cpus = None;
    spec.nodes = Some(IdSet::one(2));
    assert!(matches!(plan(&spec, &machine, &kernels()), Err(PlanError::Unavailable(m)) if m.to_string().contains("memory of node 2")));
}

#[test]
fn cpus_without_local_memory_use_the_nearest_and_say_so() {
    let mut machine = machine();
    machine.allowed.nodes = "1-2".parse().unwrap();
    let plan = plan(&Spec::new(Task::bandwidth(BandwidthShape::One)), &machine, &kernels()).unwrap();
    let Work::Bandwidth(Loading { loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert!(loaders.iter().all(|l| l.buffer.node == 1));
    assert_eq!(plan.notes.iter().filter(|n| n.code == memgauge_model::note::NoteCode::NoLocalMemory).count(), 1, "said once");
}

#[test]
fn little_memory_shrinks_derived_buffers_and_says_so() {
    let mut machine = machine();
    machine.allowed.memory = Some(Bytes::mib(100));
    let plan = plan(&Spec::new(Task::suite()), &machine, &kernels()).unwrap();
    assert!(plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::SmallBuffer));
    for cell in plan.steps.iter().flat_map(|s| &s.cells) {
        let total: u64 = cell.work.buffers().iter().map(|b| b.bytes.0).sum();
        assert!(total <= 100 << 20, "{total} for {:?}", cell.at);
    }
}

#[test]
fn a_size_that_caches_hold_is_planned_with_a_warning() {
    let warns = |task: Task, size: Bytes| {
        let plan = planned(task, |s| set_size(s, Some(size))).unwrap();
        plan.notes
            .iter()
            .filter(|n| n.code == memgauge_model::note::NoteCode::SizeInCaches && n.message.to_string().contains(&size.to_string()))
            .count()
    };
    // 16 MiB of L3, and two L2 of 1 MiB before it.
    let latency = Task::latency(LatencyShape::Matrix);
    assert_eq!([35, 36].map(|mib| warns(latency.clone(), Bytes::mib(mib))), [1, 0]);
    // Several loaders share it.
    let bandwidth = Task::bandwidth(BandwidthShape::One);
    assert_eq!([4, 32].map(|mib| warns(bandwidth.clone(), Bytes::mib(mib))), [1, 0]);
    assert_eq!(warns(Task::c2c(TransferShape::Representatives), Bytes::kib(64)), 0, "transfers are between caches");
}

#[test]
fn pages_of_a_pool_are_room_beside_free_memory() {
    let mut machine = machine();
    machine.allowed.node_memory.insert(1, Bytes::mib(16));
    machine.topology.nodes[1].pools = vec![PagePool { page: Bytes::mib(2), total: 64, free: 64 }];
    let requested = |pages| {
        let mut spec = Spec::new(Task::latency(LatencyShape::One));
        spec.pages = pages;
        spec.cpus = Some("4".parse().unwrap());
        spec.nodes = Some("1".parse().unwrap());
        set_size(&mut spec, Some(Bytes::mib(128)));
        plan(&spec, &machine, &kernels())
    };
    for pages in [PageRequest::Huge2M, PageRequest::Auto] {
        let plan = requested(pages).unwrap();
        assert!(plan.steps[0].cells[0].work.buffers().iter().all(|b| b.pages == PageRequest::Huge2M), "free memory is too short");
    }
    for pages in [PageRequest::Base, PageRequest::Huge1G] {
        let error = requested(pages).unwrap_err().to_string();
        assert!(error.contains("16 MiB") && error.contains("limited by free memory of node 1"), "{error}");
        assert_eq!(error.contains("or take free pages of node 1's pool with --pages 2m"), pages == PageRequest::Base, "{error}");
    }
}

#[test]
fn a_pool_stands_in_where_free_memory_is_short_but_not_in_a_health_check() {
    let mut machine = machine();
    machine.allowed.memory = Some(Bytes::mib(40));
    machine.allowed.node_memory = (0..3).map(|n| (n, Bytes::mib(13))).collect();
    for node in &mut machine.topology.nodes {
        node.pools = vec![PagePool { page: Bytes::gib(1), total: 20, free: 12 }];
    }
    let pages = |task| {
        let plan = plan(&Spec::new(task), &machine, &kernels()).unwrap();
        let buffers = plan.steps.iter().flat_map(|s| &s.cells).flat_map(|c| c.work.buffers());
        let small = plan.notes.iter().filter(|n| n.code == memgauge_model::note::NoteCode::SmallBuffer).count();
        (buffers.map(|b| b.pages.name()).collect::<std::collections::BTreeSet<_>>(), small > 0)
    };
    for task in [Task::suite(), Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Matrix)] {
        assert_eq!(pages(task.clone()), (["1g"].into(), false), "{task:?}");
    }
    assert_eq!(pages(Task::quick()), (["auto"].into(), true));
    let leaves = |task| {
        let plan = plan(&Spec::new(task), &machine, &kernels()).unwrap();
        plan.steps.iter().flat_map(|s| &s.cells).flat_map(|c| c.work.buffers()).all(|b| b.leave_pools)
    };
    assert!(leaves(Task::quick()) && !leaves(Task::latency(LatencyShape::One)), "a health check leaves a pool to whom it was made for");
    // Nothing to take, in a pool or not: no size helps.
    machine.allowed.memory = Some(Bytes(0));
    machine.topology.nodes.iter_mut().for_each(|node| node.pools.clear());
    let error = plan(&Spec::new(Task::latency(LatencyShape::One)), &machine, &kernels()).unwrap_err().to_string();
    assert!(error.ends_with("free memory on node 0"), "{error}");
}

#[test]
fn a_pool_that_is_too_small_for_every_cell_is_refused_in_one_line() {
    let mut machine = machine();
    let pool = |total, free| vec![PagePool { page: Bytes::mib(2), total, free }];
    machine.topology.nodes[0].pools = pool(4, 3);
    machine.topology.nodes[1].pools = pool(64, 64);
    let requested = |node: &str, size| {
        let mut spec = Spec::new(Task::latency(LatencyShape::Matrix));
        (spec.pages, spec.nodes) = (PageRequest::Huge2M, Some(node.parse().unwrap()));
        set_size(&mut spec, Some(Bytes::mib(size)));
        plan(&spec, &machine, &kernels()).map(|_| ()).map_err(|e| e.to_string())
    };
    let error = requested("0", 16).unwrap_err();
    let command = "reserve pages as root: echo 9 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    assert!(error.contains("has 3 free of 4, and 8 are needed") && error.contains(command) && !error.contains('\n'), "{error}");
    assert_eq!((requested("0", 6), requested("0-1", 16)), (Ok(()), Ok(())), "what one node lacks, another may have");
    assert!(requested("0-1", 256).is_err());
    machine.allowed.settings = memgauge_model::topology::SettingsFrom::OutsideContainer;
    let mut spec = Spec::new(Task::latency(LatencyShape::One));
    spec.pages = PageRequest::Huge2M;
    set_size(&mut spec, Some(Bytes::mib(16)));
    let error = plan(&spec, &machine, &kernels()).unwrap_err().to_string();
    assert!(error.contains("reserve pages outside of this container, as root: set /sys/") && !error.contains("echo"), "{error}");
    // A kernel without NUMA may show a single node, so the pools of a single node are where those of the machine are.
    machine.topology.nodes.truncate(1);
    let change = |node, page| machine.pool_change(node, page, 9).unwrap_or_default();
    assert!(change(Some(0), Bytes::mib(2)).ends_with("set /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages to 9"));
    assert_eq!(change(Some(0), Bytes::gib(1)), "", "no such pool");
}

#[test]
fn a_width_that_a_mix_lacks_is_refused_with_those_it_has() {
    let error = planned(Task::bandwidth(BandwidthShape::One), |s| traffic(s).load.width = WidthRequest::Is(Width::Neon)).unwrap_err();
    assert!(error.to_string().contains("it has avx2, sse2"), "{error}");
}

#[test]
fn buffers_are_eight_times_a_memory_side_cache_where_memory_allows() {
    let bytes = |cache: Bytes, task| {
        let mut machine = machine();
        machine.topology.nodes[0].memory_side_caches.push(MemorySideCache { level: 1, size: cache, line: None });
        let mut spec = Spec::new(task);
        spec.cpus = Some("0,2".parse().unwrap());
        let plan = plan(&spec, &machine, &kernels()).unwrap();
        let said = plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::MemorySideCache);
        (plan.steps[0].cells[0].work.buffers().iter().map(|b| b.bytes.0).sum::<u64>(), said)
    };
    let mut machine = machine();
    let cache = MemorySideCache { level: 1, size: Bytes::gib(96), line: None };
    machine.topology.nodes.iter_mut().for_each(|node| node.memory_side_caches.push(cache.clone()));
    let suite = plan(&Spec::new(Task::suite()), &machine, &kernels()).unwrap();
    let notes: Vec<_> = suite.notes.iter().filter(|n| n.code == memgauge_model::note::NoteCode::MemorySideCache).collect();
    assert_eq!(notes.len(), 1, "once for all nodes: {notes:?}");
    let all: IdSet = machine.topology.nodes.iter().map(|n| n.id).collect();
    assert!(notes[0].message.to_string().contains(&format!("in front of {}", memgauge_model::wording::nodes(&all))), "{notes:?}");
    let (latency, bandwidth) = (Task::latency(LatencyShape::One), Task::bandwidth(BandwidthShape::One));
    assert_eq!(bytes(Bytes::mib(256), latency.clone()), (2 << 30, false));
    assert_eq!(bytes(Bytes::mib(256), bandwidth.clone()), (2 << 30, false), "both loaders together");
    // As much as may be taken, half of it by a chase, and a note that it is not enough.
    assert_eq!(bytes(Bytes::gib(96), latency), (2 << 30, true));
    assert_eq!(bytes(Bytes::gib(96), bandwidth), (4 << 30, true));
}

#[test]
fn a_health_check_fits_machines_with_very_large_caches() {
    let mut machine = machine();
    machine.topology.caches.iter_mut().filter(|c| c.level == 3).for_each(|c| c.size = Bytes::mib(504));
    machine.allowed.memory = Some(Bytes::gib(900));
    machine.allowed.node_memory = (0..3).map(|n| (n, Bytes::gib(300))).collect();
    let plan = plan(&Spec::new(Task::quick()), &machine, &kernels()).unwrap();
    let most: f64 = super::cost::cells(&plan).iter().map(|c| c.most_s).sum();
    assert!(most <= super::tasks::quick::FIRST_ROUND_SHARE * super::quick::DEFAULT_WITHIN_S, "{most}");
    let latencies = plan.steps[0].cells.iter().filter_map(|c| c.work.probe()).collect::<Vec<_>>();
    assert_eq!(latencies.len(), 4, "nothing is left out");
    assert!(latencies.iter().all(|p| p.buffer.bytes >= Bytes::gib(1)), "twice the cache at least: {latencies:?}");
    // The lines of some GiB are not shuffled by one thread.
    let shuffled = |c: &Cell| matches!(&c.work, Work::Latency(IdleChase { orders, .. }) if orders.is_empty());
    assert!(
        !plan.steps[0].cells.iter().any(shuffled) && plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::Coarsened),
        "{:?}",
        plan.notes
    );
    assert!(!plan.coarsened.is_empty());
}

/// A recording without the files that state sizes.
#[test]
fn memory_of_unknown_size_is_measured_by_buffers_of_the_usual_size() {
    let mut machine = machine();
    machine.topology.nodes.iter_mut().for_each(|node| (node.memory, node.free) = (None, None));
    (machine.allowed.memory, machine.allowed.memory_limited_by) = (None, "/proc/meminfo is missing".into());
    machine.allowed.node_memory.clear();
    for task in [Task::suite(), Task::quick(), Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Peak)] {
        let unknown = plan(&Spec::new(task.clone()), &machine, &kernels()).unwrap();
        let usual = planned(task.clone(), |_| ()).unwrap();
        let buffers = |plan: &Plan| plan.steps.iter().flat_map(|s| &s.cells).flat_map(|c| c.work.buffers()).map(|b| b.bytes).max();
        assert_eq!(buffers(&unknown), buffers(&usual), "{task:?}");
        assert!(unknown.notes.iter().all(|note| note.code != memgauge_model::note::NoteCode::NoLocalMemory), "{:?}", unknown.notes);
        assert!(
            unknown.notes.iter().any(|note| note.message.to_string().ends_with("not known: /proc/meminfo is missing")),
            "{:?}",
            unknown.notes
        );
    }
    let scan = plan(&Spec::new(Task::scan()), &machine, &kernels()).unwrap_err().to_string();
    assert!(scan.contains("is not known (/proc/meminfo is missing); give --size"), "{scan}");
}

#[test]
fn the_same_seed_gives_the_same_order_of_cells() {
    let order = |seed| matrix_order(planned(Task::latency(LatencyShape::Matrix), |s| s.seed = Some(seed)).unwrap());
    assert_eq!(order(3), order(3));
    assert!((0..20).any(|s| order(s) != order(3)));
}

fn matrix_order(plan: Plan) -> Vec<(u32, u32)> {
    plan.steps[0].cells.iter().map(|c| (c.at.cpu_node.unwrap(), c.at.memory_node().unwrap())).collect()
}

#[test]
fn a_health_check_samples_nodes_and_ends_in_time() {
    let plan = planned(Task::quick(), |_| ()).unwrap();
    let tables: Vec<_> = plan.steps.iter().map(|s| (s.experiment, s.cells.len())).collect();
    // Own memory of two nodes, one remote pair, one node of memory only; two nodes with the one mix that has a kernel, and the one of memory
    // only; no second cache domain; two packages that read from each other.
    let expected =
        [(Experiment::IdleLatency, 4), (Experiment::BandwidthMatrix, 3), (Experiment::Bandwidth, 2), (Experiment::LoadedLatency, 1)];
    assert_eq!(tables, expected);
    assert_eq!(plan.compared_cores, machine().topology.one_per_core(&machine().allowed.cpus));
    assert!(plan.estimated_s <= super::tasks::quick::FIRST_ROUND_SHARE * super::quick::DEFAULT_WITHIN_S, "{}", plan.estimated_s);
    let Work::Curve(LoadCurve { delays, .. }) = &plan.steps[3].cells[0].work else { panic!() };
    assert_eq!(*delays, Delays::Cycles(vec![0, 20_000]), "full load, and one that should be as fast as idle");
    let Work::Bandwidth(Loading { loaders, .. }) = &plan.steps[1].cells[1].work else { panic!() };
    assert_eq!(loaders.iter().map(|l| (l.cpu, l.buffer.node)).collect::<Vec<_>>(), [(4, 1), (6, 1)], "one thread of each core, own memory");
}

/// Two nodes of CPUs, each with two stacks of HBM in its package, and a device as far from both.
#[test]
fn a_health_check_reads_every_memory_without_cpus_from_the_nearest_cores() {
    let mut machine = machine();
    let bare = machine.topology.nodes[2].clone();
    machine.topology.nodes.extend((3..7).map(|id| Node { id, ..bare.clone() }));
    for reader in [0, 1] {
        let distance = |far: u32| if far == 6 { 30 } else { 13 + 10 * u32::from(far % 2 != reader) };
        machine.topology.nodes[reader as usize].distances.extend((2..7).map(|far| (far, distance(far))));
    }
    machine.allowed.nodes = "0-6".parse().unwrap();
    machine.allowed.node_memory = (0..7).map(|n| (n, Bytes::gib(4))).collect();
    let plan = plan(&Spec::new(Task::quick()), &machine, &kernels()).unwrap();
    assert_eq!(matrix_cells(&plan.steps[1]), [(0, 0), (0, 2), (0, 4), (0, 6), (1, 1), (1, 3), (1, 5)]);
    let latencies: Vec<_> = plan.steps[0].cells.iter().map(|c| (c.at.cpu.unwrap(), c.at.memory_node().unwrap())).collect();
    assert_eq!(latencies, [(0, 0), (4, 1), (0, 1), (0, 2), (4, 3), (0, 4), (4, 5), (0, 6)]);
    assert!(plan.estimated_s <= super::tasks::quick::FIRST_ROUND_SHARE * super::quick::DEFAULT_WITHIN_S, "{}", plan.estimated_s);
}

/// With CPUs 1-7 isolated, node 0 is measured from CPU 0 and node 1 from its isolated CPUs; a named CPU is always measured.
#[test]
fn isolated_cpus_are_for_those_who_name_them() {
    let mut machine = machine();
    machine.allowed.isolated = "1-7".parse().unwrap();
    let cpus = |spec: &Spec| {
        let plan = plan(spec, &machine, &kernels()).unwrap();
        let used = plan.steps.iter().flat_map(|s| &s.cells).fold(IdSet::new(), |all, c| all.union(&c.work.cpus()));
        (used.to_string(), plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::IsolatedCpusUsed))
    };
    let mut spec = Spec::new(Task::bandwidth(BandwidthShape::Peak));
    assert_eq!(cpus(&spec), ("0,4-7".to_owned(), true));
    spec.cpus = Some("1-2".parse().unwrap());
    assert_eq!(cpus(&spec), ("1-2".to_owned(), false));
}
