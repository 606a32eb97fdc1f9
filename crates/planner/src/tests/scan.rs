//! Scans.

use std::time::Duration;

use memgauge_model::integrity::TestPattern;
use memgauge_model::plan::{Coarsening, Scan};
use memgauge_model::spec::ScanSpec;

use super::*;

fn scans(plan: &Plan) -> Vec<&Scan> {
    let of = |cell: &'_ Cell| matches!(cell.work, Work::Scan(_));
    assert!(plan.steps[0].cells.iter().all(of), "{:?}", plan.steps[0]);
    plan.steps[0].cells.iter().filter_map(|c| if let Work::Scan(scan) = &c.work { Some(scan) } else { None }).collect()
}

fn has_note(plan: &Plan, code: &str) -> bool {
    plan.notes.iter().any(|n| n.code.word() == code)
}

fn options(spec: &mut Spec) -> &mut ScanSpec {
    let Task::Scan(scan) = &mut spec.task else { panic!("another task") };
    scan
}

#[test]
fn a_scan_takes_what_each_node_leaves_and_the_nodes_own_cpus_read_it() {
    let plan = planned(Task::scan(), |_| ()).unwrap();
    let nodes: Vec<_> = plan.steps[0].cells.iter().map(|c| c.at.memory_node().unwrap()).collect();
    assert_eq!(nodes, [0, 1, 2]);
    let cpus: Vec<String> = scans(&plan).iter().map(|s| s.cpus.to_string()).collect();
    // Node 2 has no CPUs; node 1 is nearest.
    assert_eq!(cpus, ["0-3", "4-7", "4-7"]);
    for scan in scans(&plan) {
        // 4 GiB may be taken: 6 free, less 2.
        assert_eq!((scan.region.bytes, scan.regions, scan.margin), (Bytes::gib(1), 4, Bytes::gib(2)));
        assert_eq!((scan.passes, scan.bucket_gbs, scan.integrity), (10, 5.0, false));
        assert_eq!(scan.traffic.kernels, ["load-sse2", "load-avx2"]);
        assert!(!scan.region.touch.is_empty());
    }
    assert!(has_note(&plan, "scan-share") && !has_note(&plan, "scan-in-cache"));
    assert!((plan.stop.relative_half_width - 0.05).abs() < 1e-12);
    let named = planned(Task::scan(), |s| (s.cpus, s.nodes) = (Some("0,5".parse().unwrap()), Some(IdSet::one(2)))).unwrap();
    assert_eq!(scans(&named)[0].cpus, "0,5".parse().unwrap());
    assert_eq!(named.steps[0].cells[0].at.cpu_node, None, "CPUs of two nodes");
}

#[test]
fn a_scan_keeps_its_margin_and_says_where_it_is_smaller() {
    let tight = |memory, free, allowed| {
        let mut machine = machine();
        machine.topology.nodes[0].memory = Some(memory);
        machine.topology.nodes[0].free = Some(free);
        machine.allowed.node_memory.insert(0, allowed);
        let mut spec = Spec::new(Task::scan());
        spec.nodes = Some(IdSet::one(0));
        plan(&spec, &machine, &kernels())
    };
    // Of 100 GiB 5 stay free.
    let large = tight(Bytes::gib(100), Bytes::gib(12), Bytes::gib(11)).unwrap();
    assert_eq!((scans(&large)[0].regions, scans(&large)[0].margin), (7, Bytes((100u64 << 30) / 100 * 5)));
    assert!(!has_note(&large, "scan-margin"));
    let small = tight(Bytes::gib(1), Bytes::mib(800), Bytes::mib(640)).unwrap();
    let scan = scans(&small)[0];
    assert_eq!(scan.margin, Bytes::mib(256));
    // 544 MiB in regions of 64.
    assert_eq!((scan.region.bytes, scan.regions), (Bytes::mib(64), 8));
    assert!(has_note(&small, "scan-margin") && has_note(&small, "scan-region"));
    // The kernel keeps files in nearly all of it, which it gives up.
    let cached = tight(Bytes::gib(100), Bytes::gib(1), Bytes::gib(11)).unwrap();
    assert_eq!(scans(&cached)[0].regions, 6);
    // A busy host of 1 TiB: half of what is free, because 8 GiB are more than that.
    let busy = tight(Bytes::gib(1024), Bytes::gib(10), Bytes::gib(8)).unwrap();
    assert_eq!((scans(&busy)[0].regions, scans(&busy)[0].margin), (5, Bytes::gib(5)));
    assert!(has_note(&busy, "scan-margin"));
    let full = tight(Bytes::gib(1), Bytes::mib(257), Bytes::mib(200)).unwrap_err();
    assert!(
        matches!(&full, PlanError::Unavailable(text) if text.to_string().contains("no room for a region") && text.to_string().contains("256 MiB that stay free")),
        "{full}"
    );
}

#[test]
fn a_scan_of_a_size_in_regions() {
    let some = planned(Task::scan(), |s| (options(s).memory, options(s).region) = (Some(Bytes::mib(64)), Some(Bytes::mib(16)))).unwrap();
    assert_eq!((scans(&some)[0].region.bytes, scans(&some)[0].regions), (Bytes::mib(16), 4));
    assert!(has_note(&some, "scan-in-cache") && !has_note(&some, "scan-share"));
    let refused = |change: fn(&mut Spec)| planned(Task::scan(), change).unwrap_err();
    let too_much = refused(|s| options(s).memory = Some(Bytes::gib(5)));
    assert!(
        matches!(&too_much, PlanError::Unavailable(text) if text.to_string().contains("--size") && text.to_string().contains("4.0 GiB")),
        "{too_much}"
    );
    let too_large = refused(|s| options(s).region = Some(Bytes::gib(8)));
    assert!(matches!(&too_large, PlanError::Unavailable(text) if text.to_string().contains("region of 8 GiB")), "{too_large}");
    for wrong in [
        refused(|s| options(s).region = Some(Bytes::kib(100))),
        refused(|s| options(s).passes = Some(0)),
        refused(|s| options(s).bucket_gbs = Some(0.0)),
    ] {
        assert!(matches!(wrong, PlanError::Request(_)), "{wrong}");
    }
}

#[test]
fn a_scan_that_must_end_soon_reads_fewer_regions_and_says_so() {
    let within = |seconds, size| {
        let plan = planned(Task::scan(), |s| {
            (s.nodes, options(s).region, s.within, options(s).memory) = (Some(IdSet::one(0)), Some(Bytes::mib(256)), seconds, size)
        });
        plan.unwrap()
    };
    let whole = within(None, None);
    assert_eq!(scans(&whole)[0].regions, 16);
    let seconds = Some(Duration::from_secs(1));
    let part = within(seconds, None);
    let regions = scans(&part)[0].regions;
    assert!((4..16).contains(&regions), "{regions}");
    assert!(
        part.coarsened.iter().any(|c| (c.what, c.from, c.to) == (Coarsening::Regions, 16.0, f64::from(regions))),
        "{:?}",
        part.coarsened
    );
    let share: Vec<_> = part.notes.iter().filter(|n| n.code == memgauge_model::note::NoteCode::ScanShare).collect();
    assert!(matches!(share[..], [note] if note.message.to_string().contains("limited by --within")), "{share:?}");
    let asked_for = within(seconds, Some(Bytes::gib(4)));
    assert_eq!(scans(&asked_for)[0].regions, 16, "so much memory was asked for");
}

#[test]
fn patterns_are_those_asked_for_or_those_that_fit_the_time() {
    let integrity = |change: fn(&mut Spec)| {
        let plan = planned(Task::scan(), |s| {
            options(s).integrity = true;
            change(s);
        });
        let plan = plan.unwrap();
        (scans(&plan)[0].clone(), has_note(&plan, "patterns-left-out"), plan)
    };
    let all = TestPattern::ALL.map(|(_, pattern)| pattern);
    // 64 MiB.
    let (scan, left_out, _) = integrity(|s| (options(s).memory, options(s).region) = (Some(Bytes::mib(64)), Some(Bytes::mib(16))));
    assert_eq!((&scan.patterns[..], left_out, scan.pattern_writes(), scan.hold_s), (&all[..], false, 137, 0.0));
    // 4 GiB each of three nodes: a sweep takes 1.4 s.
    let (scan, left_out, plan) = integrity(|s| s.within = Some(Duration::from_secs(120)));
    assert_eq!((&scan.patterns[..], left_out), (&all[..4], true));
    let note = plan.notes.iter().find(|n| n.code == memgauge_model::note::NoteCode::PatternsLeftOut).unwrap();
    assert!(note.advice.as_ref().unwrap().to_string().contains("--patterns walking-ones,walking-zeros"), "{note:?}");
    let (scan, ..) = integrity(|s| s.within = Some(Duration::from_secs(1)));
    assert_eq!(scan.patterns, [TestPattern::Random], "one in any case");
    // With a hold of 100 s, ten of these would not fit.
    let (named, left_out, plan) = integrity(|s| {
        options(s).patterns = vec![TestPattern::WalkingOnes, TestPattern::Address, TestPattern::WalkingOnes];
        options(s).hold = Some(Duration::from_secs(10));
    });
    assert_eq!((named.patterns, named.hold_s, left_out), (vec![TestPattern::WalkingOnes, TestPattern::Address], 10.0, false));
    assert!(plan.estimated_s > 3.0 * 66.0 * 10.0, "{}", plan.estimated_s);
}

#[test]
fn a_scan_of_pool_pages_takes_the_pool_and_no_free_memory() {
    let pooled = |pages, free| {
        let mut machine = machine();
        machine.topology.nodes[0].pools = vec![PagePool { page: Bytes::gib(1), total: free, free }];
        let mut spec = Spec::new(Task::scan());
        (spec.nodes, spec.pages) = (Some(IdSet::one(0)), pages);
        plan(&spec, &machine, &kernels())
    };
    let plan = pooled(PageRequest::Huge1G, 6).unwrap();
    assert_eq!((scans(&plan)[0].regions, scans(&plan)[0].margin), (6, Bytes(0)));
    assert_eq!(scans(&pooled(PageRequest::Huge1G, 1).unwrap())[0].region.bytes, Bytes::gib(1));
    let command = "as root: echo 1 > /sys/devices/system/node/node0/hugepages/hugepages-1048576kB/";
    let boot = "this kernel has no pool of 2 MiB pages; boot it with hugepagesz=2M hugepages=1";
    for (none, command) in [(pooled(PageRequest::Huge1G, 0), command), (pooled(PageRequest::Huge2M, 6), boot)] {
        assert!(
            matches!(&none, Err(PlanError::Unavailable(text)) if text.to_string().contains("pool") && text.to_string().contains(command)),
            "{none:?}"
        );
    }
}
