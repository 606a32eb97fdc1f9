//! The work of loaders: forms of traffic, their kernels, and threads with work of their own.

use std::time::Duration;

use memgauge_model::integrity::TestPattern;
use memgauge_model::spec::{BufferPlace, SecondStream, ThreadSpec};

use super::*;

fn rows() -> Vec<KernelRow> {
    let mut rows = kernels();
    let mut add = |name: &str, mix, access, line| {
        rows.push(KernelRow { name: name.into(), mix, width: Width::Avx2, form: Form { access, line } });
    };
    add("triad-random", Mix::R2W1NtX1, Access::Random, LineUse::Whole);
    add("store-part", Mix::R1W1, Access::Strided, LineUse::Part);
    add("load-strided", Mix::AllReads, Access::Strided, LineUse::Whole);
    add("store-clwb", Mix::R1W1, Access::Sequential, LineUse::WrittenBack);
    add("xor", Mix::AllReads, Access::Sequential, LineUse::Checked);
    rows
}

/// Bandwidth of all CPUs with these words about its traffic.
fn shaped(mixes: &[Mix], change: impl FnOnce(&mut memgauge_model::spec::TrafficSpec)) -> Result<Plan, PlanError> {
    let mut spec = Spec::new(Task::bandwidth(BandwidthShape::One));
    traffic(&mut spec).load.mixes = mixes.to_vec();
    change(traffic(&mut spec));
    plan(&spec, &machine(), &rows())
}

fn matching_kernels(plan: &Plan) -> Vec<String> {
    plan.steps[0]
        .cells
        .iter()
        .flat_map(|c| match &c.work {
            Work::Bandwidth(Loading { traffic, .. }) => traffic.kernels.clone(),
            _ => Vec::new(),
        })
        .collect()
}

#[test]
fn each_form_has_its_own_kernels() {
    let names = |mixes: &[Mix], change: &dyn Fn(&mut memgauge_model::spec::TrafficSpec)| matching_kernels(&shaped(mixes, change).unwrap());
    assert_eq!(names(&[Mix::AllReads], &|_| ()), ["load-sse2", "load-avx2"]);
    assert_eq!(names(&[Mix::AllReads, Mix::R2W1Nt], &|t| t.access = Access::Random), ["load-avx2-random", "triad-random"]);
    assert_eq!(names(&[Mix::R1W1], &|t| t.line = LineUse::Part), ["store-part"]);
    // Loads leave nothing to write back.
    assert_eq!(names(&[Mix::R1W1, Mix::AllReads], &|t| t.line = LineUse::WrittenBack), ["store-clwb", "load-sse2", "load-avx2"]);
    assert_eq!(names(&[Mix::AllReads], &|t| t.line = LineUse::Checked), ["xor"]);
    let strided = |t: &mut memgauge_model::spec::TrafficSpec| t.stride = Some(Bytes(256));
    assert_eq!(names(&[Mix::AllReads], &strided), ["load-strided"]);
    let plan = shaped(&[Mix::AllReads], strided).unwrap();
    assert!(plan.steps[0].title.ends_with("one line every 256 B"), "{}", plan.steps[0].title);
    assert!(matches!(&plan.steps[0].cells[0].work, Work::Bandwidth(Loading { traffic, .. }) if traffic.stride == Some(Bytes(256))));
    let error = shaped(&[Mix::R4W1], |t| t.access = Access::Random).unwrap_err().to_string();
    assert!(error.contains("random access with the mix 4:1") && error.contains("all-reads"), "{error}");
}

#[test]
fn traffic_that_contradicts_itself_is_refused() {
    type Change = fn(&mut memgauge_model::spec::TrafficSpec);
    let cases: [(&[Mix], Change, &str); 8] = [
        (&[Mix::AllReads], |t| t.stride = Some(Bytes(100)), "multiple of 64"),
        (&[Mix::AllReads], |t| t.window = Some(Bytes::kib(64)), "needs random access"),
        (&[Mix::AllReads], |t| (t.access, t.stride) = (Access::Random, Some(Bytes(128))), "no stride"),
        (&[Mix::AllReads], |t| (t.access, t.line) = (Access::Random, LineUse::Part), "in order"),
        (&[Mix::R1W1], |t| t.shared = true, "the mix 1:1 writes"),
        (&[Mix::R1W1], |t| t.line = LineUse::Checked, "nobody changes"),
        (&[Mix::AllReads], |t| t.patterns = vec![TestPattern::Random], "add --line check"),
        (&[Mix::AllReads], |t| t.hold = Some(Duration::from_secs(1)), "add --line check"),
    ];
    for (mixes, change, why) in cases {
        let error = shaped(mixes, change).unwrap_err();
        assert!(matches!(&error, PlanError::Request(text) if text.to_string().contains(why)), "{error}");
    }
}

#[test]
fn patterns_of_checked_lines_are_in_the_plan_and_in_its_time() {
    let checked = |patterns: &[TestPattern]| {
        let plan = shaped(&[Mix::AllReads], |t| (t.line, t.patterns) = (LineUse::Checked, patterns.to_vec())).unwrap();
        let Work::Bandwidth(Loading { traffic, .. }) = &plan.steps[0].cells[0].work else { panic!() };
        (traffic.patterns.clone(), plan.estimated_s)
    };
    let (none, two) = (checked(&[]), checked(&[TestPattern::WalkingOnes, TestPattern::Random, TestPattern::WalkingOnes]));
    assert_eq!((none.0, two.0), (vec![], vec![TestPattern::WalkingOnes, TestPattern::Random]));
    assert!(two.1 > none.1 + 1.0, "66 sweeps over all buffers: {} s and {} s", none.1, two.1);
}

#[test]
fn the_time_for_which_checked_lines_are_held_is_in_the_plan_and_in_its_time() {
    let held = |hold| {
        let plan = shaped(&[Mix::AllReads], |t| {
            (t.line, t.patterns, t.hold) = (LineUse::Checked, vec![TestPattern::Address], hold);
        });
        let plan = plan.unwrap();
        let Work::Bandwidth(Loading { traffic, .. }) = &plan.steps[0].cells[0].work else { panic!() };
        (traffic.hold_s, plan.estimated_s)
    };
    let (not, two) = (held(None), held(Some(Duration::from_secs(2))));
    assert_eq!((not.0, two.0), (0.0, 2.0));
    // Two writes of the pattern and the complement before the reading, two contents after it.
    assert!((two.1 - not.1 - 10.0).abs() < 1e-6, "{} s and {} s", not.1, two.1);
}

#[test]
fn a_shared_buffer_exists_once() {
    let plan = shaped(&[Mix::AllReads], |t| t.shared = true).unwrap();
    let Work::Bandwidth(Loading { loaders, .. }) = &plan.steps[0].cells[0].work else { panic!() };
    assert!(loaders.len() == 8 && loaders.iter().all(|l| l.buffer == loaders[0].buffer && l.buffer.shared));
}

#[test]
fn a_search_tries_fewer_cpus_and_longer_delays() {
    let mut spec = Spec::new(Task::bandwidth(BandwidthShape::Search));
    traffic(&mut spec).load.mixes = vec![Mix::AllReads];
    let plan = plan(&spec, &machine(), &rows()).unwrap();
    let cells = &plan.steps[0].cells;
    let counts: std::collections::BTreeSet<usize> = cells.iter().map(|c| c.at.cpus.as_ref().unwrap().len()).collect();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [2, 3, 4, 8]);
    let delays: std::collections::BTreeSet<u32> = cells.iter().map(|c| c.at.delay_cycles.unwrap()).collect();
    assert!(delays.len() >= 4 && delays.contains(&0) && cells.len() == 4 * delays.len());
}

#[test]
fn threads_do_what_each_was_given() {
    let thread = |cpus: &str, place| ThreadSpec {
        cpus: cpus.parse().unwrap(),
        mix: Mix::AllReads,
        access: Access::Sequential,
        size: Some(Bytes::mib(16)),
        place,
        delay: None,
        second: None,
    };
    let two = vec![
        ThreadSpec { mix: Mix::R1W1, delay: Some(50), ..thread("1-2", BufferPlace::Node(2)) },
        ThreadSpec { second: Some(SecondStream { place: BufferPlace::Node(2), percent: 25 }), ..thread("5", BufferPlace::Local) },
    ];
    for task in [Task::bandwidth(BandwidthShape::One), Task::loaded()] {
        let mut spec = Spec::new(task);
        traffic(&mut spec).threads.clone_from(&two);
        let made = plan(&spec, &machine(), &rows()).unwrap();
        let cell = &made.steps[0].cells[0];
        let (Work::Bandwidth(Loading { loaders, .. }) | Work::Curve(LoadCurve { loaders, .. })) = &cell.work else { panic!() };
        assert!(cell.at.mix.is_none());
        let nodes: Vec<(u32, u32)> = loaders.iter().map(|l| (l.cpu, l.buffer.node)).collect();
        assert_eq!(nodes, [(1, 2), (2, 2), (5, 1)]);
        let own = |i: usize| loaders[i].own.as_ref().unwrap();
        assert!(own(0).traffic.mix == Mix::R1W1 && own(0).delay == Some(50) && own(0).second.is_none());
        assert!(own(2).second.as_ref().is_some_and(|b| b.node == 2) && own(2).second_percent == 25);
    }
    let refused = |threads: Vec<ThreadSpec>| {
        let mut spec = Spec::new(Task::bandwidth(BandwidthShape::One));
        traffic(&mut spec).threads = threads;
        plan(&spec, &machine(), &rows()).unwrap_err().to_string()
    };
    assert!(refused(vec![thread("1-2", BufferPlace::Local), thread("2", BufferPlace::Local)]).contains("CPU 2 is given two things"));
    assert!(refused(vec![thread("1", BufferPlace::Node(9))]).contains("no node 9"));
    assert!(refused(vec![thread("99", BufferPlace::Local)]).contains("no CPU 99"));
    let large = ThreadSpec { size: Some(Bytes::gib(3)), ..thread("0-7", BufferPlace::Local) };
    assert!(refused(vec![large]).contains("together"));
    // A chase takes memory of its own node, and of no other.
    let beside_a_chase = |node: u32, size: Bytes| {
        let mut machine = machine();
        machine.allowed.node_memory.insert(1, Bytes::mib(40));
        let mut spec = Spec::new(Task::loaded());
        traffic(&mut spec).threads = vec![ThreadSpec { size: Some(size), ..thread("5", BufferPlace::Node(node)) }];
        plan(&spec, &machine, &rows()).map_err(|error| error.to_string())
    };
    assert!(beside_a_chase(1, Bytes::mib(16)).is_ok());
    assert!(beside_a_chase(0, Bytes::mib(4095)).unwrap_err().contains("a thread's buffer of 4095 MiB on node 0"));
    let nothing = SecondStream { place: BufferPlace::Local, percent: 0 };
    assert!(refused(vec![ThreadSpec { second: Some(nothing), ..thread("1", BufferPlace::Local) }]).contains("1 to 99"));
}

#[test]
fn loaders_of_a_guest_go_over_more_than_a_hidden_cache_holds() {
    let loader_bytes = |hypervisor: Option<&str>, memory: Bytes| {
        let mut machine = machine();
        if hypervisor == Some("not known") {
            machine.identity.hypervisor_unknown = Some("nothing says so".into());
        } else {
            machine.identity.hypervisor = hypervisor.map(Into::into);
        }
        machine.allowed.memory = Some(memory);
        let plan = plan(&Spec::new(Task::bandwidth(BandwidthShape::One)), &machine, &rows()).unwrap();
        let Work::Bandwidth(Loading { loaders, .. }) = &plan.steps[0].cells[0].work else { panic!("{plan:?}") };
        let behind_first_cache: u64 = loaders.iter().filter(|l| l.cpu < 4).map(|l| l.buffer.bytes.0).sum();
        assert!(loaders.iter().all(|l| l.buffer.bytes == loaders[0].buffer.bytes), "{loaders:?}");
        Bytes(behind_first_cache)
    };
    let described = loader_bytes(None, Bytes::gib(16));
    assert!(described < Bytes::mib(256), "the hardware itself says what caches it has: {described}");
    assert_eq!(loader_bytes(Some("KVM"), Bytes::gib(16)), Bytes::gib(1));
    assert_eq!(loader_bytes(Some("not known"), Bytes::gib(16)), Bytes::gib(1));
    // Two caches share an eighth of 8 GiB.
    assert_eq!(loader_bytes(Some("KVM"), Bytes::gib(8)), Bytes::mib(512));
    assert_eq!(loader_bytes(Some("KVM"), Bytes::gib(2)), described, "no less than the caches that are described need");
}

#[test]
fn loaders_whose_caches_are_not_known_are_taken_to_share_one_on_each_node() {
    let all = |hypervisor: Option<&str>| {
        let mut machine = machine();
        machine.topology.caches.clear();
        machine.identity.hypervisor = hypervisor.map(Into::into);
        machine.allowed.memory = Some(Bytes::gib(64));
        let plan = plan(&Spec::new(Task::bandwidth(BandwidthShape::One)), &machine, &rows()).unwrap();
        let Work::Bandwidth(Loading { loaders, .. }) = &plan.steps[0].cells[0].work else { panic!("{plan:?}") };
        Bytes(loaders.iter().map(|l| l.buffer.bytes.0).sum())
    };
    assert_eq!((all(None), all(Some("KVM"))), (Bytes::gib(2), Bytes::gib(2)));
}

#[test]
fn buffers_that_no_known_cache_gives_a_size_come_with_a_warning() {
    let warned = |size: Option<Bytes>, change: fn(&mut Machine)| {
        let mut machine = machine();
        change(&mut machine);
        let mut spec = Spec::new(Task::latency(LatencyShape::One));
        set_size(&mut spec, size);
        let plan = plan(&spec, &machine, &rows()).unwrap();
        plan.notes.into_iter().find(|note| note.code == memgauge_model::note::NoteCode::CachesNotKnown).map(|note| note.message.to_string())
    };
    assert_eq!(warned(None, |_| ()), None);
    let none = warned(None, |machine| machine.topology.caches.clear()).unwrap();
    assert!(none.to_string().starts_with("no caches are known") && none.to_string().contains("16 MiB"), "{none}");
    let some = warned(None, |machine| machine.topology.caches.retain(|c| c.cpus.contains(0))).unwrap();
    assert!(
        some.to_string().starts_with("no caches of CPUs 2-7 are known") || some.to_string().starts_with("no caches of CPUs 4-7 are known"),
        "{some}"
    );
    assert_eq!(warned(Some(Bytes::gib(1)), |machine| machine.topology.caches.clear()), None, "the size was chosen");
}
