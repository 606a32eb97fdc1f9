//! The requests for the chase and for transfers.

use memgauge_model::experiment::Hops;
use memgauge_model::spec::{LatencySpec, LoadedSpec, TransferSpec};

use super::*;

fn transfer(spec: &mut Spec) -> &mut TransferSpec {
    let Task::C2c(transfer) = &mut spec.task else { panic!("another task") };
    transfer
}

fn refused(task: Task, change: impl FnOnce(&mut Spec)) -> String {
    match planned(task.clone(), change) {
        Err(PlanError::Request(text)) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_chase_goes_as_far_and_in_the_orders_asked() {
    let latency = |change: fn(&mut Spec)| match planned(Task::latency(LatencyShape::One), change).unwrap().steps[0].cells[0].work.clone() {
        Work::Latency(IdleChase { allocations, orders, hops, histogram, .. }) => (allocations, orders, hops, histogram),
        other => panic!("{other:?}"),
    };
    use memgauge_model::experiment::ChaseOrder::*;
    assert_eq!(latency(|_| ()), (12, vec![], None, None));
    let twice =
        |s: &mut Spec| s.task = Task::Latency(LatencySpec { orders: vec![Sequential, FullRandom, Sequential], ..Default::default() });
    assert_eq!(latency(twice).1, [Sequential, FullRandom], "each once, in the order named");
    assert_eq!(latency(|s| chase(s).histogram = Some(64)).3, Some(64));
    // A hundred million hops of some 100 ns take ten seconds: once is enough.
    for (hops, allocations) in [(Hops::Count(1000), 12), (Hops::OnePass, 12), (Hops::Count(10_000_000), 4), (Hops::Count(100_000_000), 1)] {
        let plan = planned(Task::latency(LatencyShape::One), |s| chase(s).hops = Some(hops)).unwrap();
        let Work::Latency(IdleChase { allocations: got, hops: requested, .. }) = plan.steps[0].cells[0].work else { panic!() };
        assert_eq!((got, requested), (allocations, Some(hops)));
    }
    let plan = planned(Task::Loaded(LoadedSpec { order: Some(FullRandom), ..Default::default() }), |s| {
        (chase(s).hops, chase(s).histogram) = (Some(Hops::OnePass), Some(8));
    })
    .unwrap();
    let Work::Curve(LoadCurve { order, hops, histogram, .. }) = plan.steps[0].cells[0].work else { panic!() };
    assert_eq!((order, hops, histogram), (FullRandom, Some(Hops::OnePass), Some(8)));
    assert_eq!(plan.steps[0].cells[0].at.order, Some(FullRandom));
}

#[test]
fn what_cannot_be_chased_is_refused() {
    let latency = Task::latency(LatencyShape::One);
    assert!(refused(latency.clone(), |s| chase(s).hops = Some(Hops::Count(0))).contains("'pass'"));
    assert!(refused(latency.clone(), |s| chase(s).histogram = Some(3)).contains("give 1, 8 or 64"));
    assert!(refused(latency.clone(), |s| (chase(s).touch, s.nodes) = (Some(1), Some(IdSet::one(0)))).contains("both say where"));
    assert!(refused(latency.clone(), |s| chase(s).touch = Some(8)).starts_with("--touch-cpu: there is no CPU 8"));
    assert!(refused(Task::latency(LatencyShape::Matrix), |s| chase(s).touch = Some(1)).contains("one buffer"));
    assert!(refused(Task::loaded(), |s| curve(s).cpu = Some(9)).contains("there is no CPU 9"));
    assert!(refused(Task::loaded(), |s| curve(s).node = Some(7)).starts_with("--probe-node: there is no node 7"));
    assert!(refused(Task::loaded(), |s| (curve(s).node, chase(s).touch) = (Some(1), Some(1))).contains("leave one of them out"));
    let time = Some(std::time::Duration::from_secs(1));
    assert!(refused(latency.clone(), |s| (chase(s).hops, s.time) = (Some(Hops::OnePass), time)).contains("--hops and --time"));
    for name in ["", "/", "a/b", "..", &"x".repeat(256)] {
        assert!(refused(Task::loaded(), |s| s.start_signal = Some(name.into())).contains("cannot name shared memory"), "{name}");
    }
}

#[test]
fn the_chase_and_its_buffer_are_where_they_are_asked_to_be() {
    let buffer = |task: Task, change: fn(&mut Spec)| match planned(task, change).unwrap().steps[0].cells[0].clone() {
        Cell { at, work: Work::Latency(IdleChase { probe, .. }) | Work::Curve(LoadCurve { probe, .. }), .. } => {
            assert_eq!(at.memory_node(), Some(probe.buffer.node));
            (probe.cpu, probe.buffer.node, probe.buffer.touch.to_string())
        }
        other => panic!("{other:?}"),
    };
    let one = Task::latency(LatencyShape::One);
    assert_eq!(buffer(one.clone(), |s| chase(s).touch = Some(5)), (0, 1, "5".into()), "on the node of the CPU that touches it");
    assert_eq!(buffer(Task::latency(LatencyShape::PerCpu), |s| (s.cpus, chase(s).touch) = (Some(IdSet::one(3)), Some(5))).1, 1);
    assert_eq!(buffer(Task::loaded(), |s| curve(s).cpu = Some(5)), (5, 1, "4,6".into()));
    assert_eq!(buffer(Task::loaded(), |s| curve(s).node = Some(2)), (0, 2, "0,2,4,6".into()));
    assert_eq!(buffer(Task::loaded(), |s| (chase(s).touch, s.nodes) = (Some(6), Some(IdSet::one(0)))), (0, 1, "6".into()));
    let plan = planned(Task::loaded(), |s| (curve(s).cpu, curve(s).node) = (Some(5), Some(2))).unwrap();
    let Work::Curve(LoadCurve { loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert_eq!(loaders.iter().map(|l| l.cpu).collect::<IdSet>().to_string(), "0-3,6-7", "all but the chaser's core");
    assert!(loaders.iter().all(|l| l.buffer.node == l.cpu / 4), "loaders stay with their own memory");
}

#[test]
fn named_cpus_are_kept_awake_and_a_start_signal_is_waited_for() {
    let one = Task::latency(LatencyShape::One);
    let plan = planned(one.clone(), |s| s.keep_awake = Some("1,5".parse().unwrap())).unwrap();
    assert_eq!((plan.keep_awake.to_string().as_str(), plan.keep_awake_named), ("1,5", true));
    assert!(!planned(one.clone(), |_| ()).unwrap().keep_awake_named);
    assert!(refused(one.clone(), |s| s.keep_awake = Some(IdSet::one(8))).starts_with("--keep-awake: there is no CPU 8"));
    let plan = planned(Task::loaded(), |s| s.start_signal = Some("go".into())).unwrap();
    assert_eq!(plan.start_signal.as_deref(), Some("go"));
}

fn handoffs(plan: &Plan) -> Vec<(Handoff, Coordinates)> {
    let cells = plan.steps[0].cells.iter().filter(|c| !c.repeat);
    let mut all: Vec<_> = cells
        .map(|c| match &c.work {
            Work::Handoff(h) => (h.clone(), c.at.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    all.sort_by_key(|(h, _)| (h.reader, h.holder, h.buffer.node, h.state));
    all
}

#[test]
fn a_pair_is_measured_as_asked() {
    let task = Task::c2c(TransferShape::Representatives);
    let plan = planned(task.clone(), |s| {
        (transfer(s).reader, transfer(s).holder, transfer(s).sharer) = (Some(2), Some(6), Some(0));
        (transfer(s).holder_pushes, transfer(s).reader_pushes) = (Bytes::mib(2), Bytes::mib(1));
        (transfer(s).states, transfer(s).order) = (vec![LineState::Hitm], Some(ChaseOrder::Sequential));
        s.cpus = Some(IdSet::one(4));
    })
    .unwrap();
    let cells = handoffs(&plan);
    assert_eq!(cells.iter().map(|(h, _)| (h.reader, h.holder, h.buffer.node)).collect::<Vec<_>>(), [(2, 6, 0), (2, 6, 1)], "at both homes");
    for (handoff, at) in &cells {
        assert_eq!((handoff.sharer, handoff.state, handoff.order), (Some(0), LineState::Hitm, ChaseOrder::Sequential));
        assert_eq!((handoff.holder_pushes, handoff.reader_pushes), (Bytes::mib(2), Bytes::mib(1)));
        assert_eq!((at.sharer_cpu, at.order, at.holder_node), (Some(0), Some(ChaseOrder::Sequential), None));
        assert_eq!(Work::Handoff(handoff.clone()).cpus().to_string(), "0,2,6");
    }
    let touched =
        planned(task.clone(), |s| (transfer(s).reader, transfer(s).holder, transfer(s).touch) = (Some(2), Some(0), Some(5))).unwrap();
    let homes: Vec<_> = handoffs(&touched).iter().map(|(h, at)| (h.buffer.node, h.buffer.touch.to_string(), at.memory_node())).collect();
    assert_eq!(homes, [(1, "5".into(), Some(1)), (1, "5".into(), Some(1))], "both states, at home with the CPU that touches");
    let long = planned(task.clone(), |s| {
        (transfer(s).chase_window, transfer(s).hops) = (Some(Bytes::kib(8)), Some(Hops::Count(1_000_000)));
    })
    .unwrap();
    let asked: Vec<_> = handoffs(&long).iter().map(|(h, _)| (h.chase_window, h.hops)).collect();
    assert!(asked.iter().all(|a| *a == (Some(Bytes::kib(8)), Some(Hops::Count(1_000_000)))), "{asked:?}");
    let error = planned(task.clone(), |s| transfer(s).chase_window = Some(Bytes(128))).unwrap_err();
    assert!(error.to_string().contains("at least twice"), "{error}");
    // The other buffer takes room as well.
    let error = planned(task.clone(), |s| transfer(s).holder_pushes = Bytes::gib(5)).unwrap_err();
    assert!(error.to_string().contains("may be taken there"), "{error}");
}

#[test]
fn pairs_that_cannot_be_are_refused() {
    let task = Task::c2c(TransferShape::Representatives);
    let pair = |reader, holder, sharer| {
        refused(task.clone(), |s| (transfer(s).reader, transfer(s).holder, transfer(s).sharer) = (reader, holder, sharer))
    };
    assert!(pair(Some(1), Some(1), None).contains("both reader and holder"));
    assert!(pair(None, Some(1), None).contains("--reader"));
    assert!(pair(Some(0), Some(1), Some(0)).contains("reads the lines"));
    assert!(pair(Some(0), Some(1), Some(1)).contains("holds the lines"));
    assert!(pair(None, None, Some(1)).contains("one pair"));
    assert!(pair(Some(0), Some(9), None).starts_with("--holder: there is no CPU 9"));
    assert!(pair(Some(0), Some(1), Some(9)).starts_with("--sharer: there is no CPU 9"));
    for shape in [TransferShape::CpuMatrix, TransferShape::NodeMatrix] {
        assert!(
            refused(Task::c2c(shape), |s| (transfer(s).reader, transfer(s).holder) = (Some(0), Some(1))).contains("a matrix has all pairs")
        );
    }
    assert!(refused(Task::c2c(TransferShape::NodeMatrix), |s| s.nodes = Some(IdSet::one(0))).contains("leave --node out"));
}

#[test]
fn a_node_matrix_of_one_node_says_so() {
    let noted = |cpus: Option<&str>| {
        let plan = planned(Task::c2c(TransferShape::NodeMatrix), |s| s.cpus = cpus.map(|cpus| cpus.parse().unwrap())).unwrap();
        plan.notes
            .iter()
            .any(|note| note.code == memgauge_model::note::NoteCode::OneNode && note.message.to_string().contains("no two nodes"))
    };
    assert!(!noted(None) && noted(Some("0-1")));
}

#[test]
fn a_node_matrix_has_a_near_pair_and_both_homes_of_every_two_nodes() {
    let plan = planned(Task::c2c(TransferShape::NodeMatrix), |_| ()).unwrap();
    let cells: Vec<_> = handoffs(&plan)
        .into_iter()
        .map(|(h, at)| {
            assert_eq!((at.cpu_node, at.holder_node), (Some(h.reader / 4), Some(h.holder / 4)));
            (h.reader, h.holder, h.buffer.node, h.state)
        })
        .collect();
    use memgauge_model::experiment::LineState::*;
    let near = [(0, 2, 0, Hit), (0, 2, 0, Hitm)];
    let far = [(0, 4, 0, Hitm), (0, 4, 1, Hitm), (4, 0, 0, Hitm), (4, 0, 1, Hitm)];
    assert_eq!(cells, [near.as_slice(), far.as_slice()].concat());
    let near = |cpus: &str| {
        let plan = planned(Task::c2c(TransferShape::NodeMatrix), |s| s.cpus = Some(cpus.parse().unwrap())).unwrap();
        handoffs(&plan).iter().find(|(h, _)| h.state == Hit).map(|(h, _)| (h.reader, h.holder))
    };
    assert_eq!(near("0-1,4"), Some((0, 1)), "one core before another package");
    assert_eq!(near("0,4"), Some((0, 4)), "the nearest there is");
    assert_eq!(near("0-1,3"), Some((0, 3)), "another core before the same");
}

#[test]
fn a_chase_over_more_lines_than_can_be_numbered_is_window_local_or_refused() {
    let over = |task, orders: &[ChaseOrder]| {
        let mut machine = machine();
        machine.allowed.memory = Some(Bytes::gib(2048));
        machine.allowed.node_memory.insert(0, Bytes::gib(1024));
        let mut spec = Spec::new(task);
        set_size(&mut spec, Some(Bytes::gib(512)));
        match &mut spec.task {
            Task::Loaded(loaded) => loaded.order = orders.first().copied(),
            Task::Latency(latency) => latency.orders = orders.to_vec(),
            other => panic!("{other:?}"),
        }
        plan(&spec, &machine, &kernels())
    };
    let latency = Task::latency(LatencyShape::One);
    let orders = |plan: &Plan| match &plan.steps[0].cells[0].work {
        Work::Latency(IdleChase { orders, .. }) => orders.clone(),
        other => panic!("{other:?}"),
    };
    let noted = |plan: &Plan| plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::NoFullRandom);
    let local = over(latency.clone(), &[]).unwrap();
    assert!(orders(&local) == [ChaseOrder::WindowLocal] && noted(&local));
    let sequential = over(latency.clone(), &[ChaseOrder::Sequential]).unwrap();
    assert!(orders(&sequential) == [ChaseOrder::Sequential] && !noted(&sequential), "what was requested is no news");
    for task in [latency, Task::loaded()] {
        let refused = over(task, &[ChaseOrder::FullRandom]).unwrap_err().to_string();
        assert!(refused.contains("2^32") && refused.contains("--order"), "{refused}");
    }
}
