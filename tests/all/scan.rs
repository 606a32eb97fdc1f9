//! Memory scans as a black box: every region, the integrity check, and what is refused.

use std::process::Stdio;
use std::time::{Duration, Instant};

use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::note::NoteCode;
use memgauge_model::result::{Incomplete, PlacementStatus, Report};

use memgauge_testing::not_tested;

use crate::support::watch::{InTime, Watched};
use crate::support::{alone, program, refused, report, run, save, temporary, text};

#[test]
fn a_scan_measures_every_region_and_checks_what_it_keeps() {
    let report = report("scan --size 16M --region 4M --passes 7 --node 0 --integrity --bucket 0.5");
    assert!(report.complete);
    let numbers: Vec<u32> = report.results.iter().map(|m| m.at.region.unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let mut addresses = Vec::new();
    // Regions that scatter widely, as beside other work, have none.
    let medians: Vec<f64> = report.results.iter().filter_map(|m| m.estimate.value).collect();
    let weak_below = memgauge_analysis::conclusions::scan::weak_below(&medians);
    for m in &report.results {
        assert_eq!((m.experiment, m.metric, m.at.memory_node()), (Experiment::MemoryScan, Metric::Bandwidth, Some(0)));
        let gbs = m.estimate.value.unwrap();
        assert!(gbs > 0.05 && gbs < 5000.0, "{gbs} GB/s");
        // Passes that other work disturbed are repeated once, and left out if enough others remain.
        let passes = m.evidence.noise.bursts.unwrap();
        assert!((7..=8).contains(&passes), "{passes}");
        assert_eq!((m.estimate.n, m.evidence.buffer.0), (passes - m.evidence.noise.bursts_left_out.unwrap(), 4 << 20));
        assert_ne!(m.evidence.placement.status, PlacementStatus::Wrong);
        assert!(m.evidence.pages.obtained.is_some());
        assert_eq!(m.verdict.limit, weak_below);
        let integrity = m.evidence.integrity.as_ref().unwrap();
        assert_eq!((integrity.patterns, integrity.patterns_planned, integrity.mismatches), (137, 137, 0));
        assert_eq!((integrity.tested.len(), integrity.compared.0), (6, 137 * (4 << 20)));
        assert!(integrity.held_s.is_some_and(|s| s > 0.0) && integrity.watched.is_some_and(|share| share > 0.8), "{integrity:?}");
        let ecc = integrity.ecc.as_ref().unwrap();
        assert_eq!(ecc.corrected_before.is_none(), ecc.reason.is_some());
        let physical = m.evidence.physical.as_ref().unwrap();
        assert_eq!(physical.first.is_some(), physical.reason.is_none());
        addresses.extend(physical.first);
    }
    addresses.sort_unstable();
    assert!(addresses.windows(2).all(|w| w[0] < w[1]), "two regions share a page: {addresses:x?}");
    let hidden = report.notes.iter().any(|n| n.code == NoteCode::ScanNoAddresses);
    assert_eq!(hidden, addresses.is_empty());
    // A saved result shows the same text as the run.
    let folder = temporary("scan");
    let file = folder.join("scan.json");
    save(&report, &file);
    let shown = run(&format!("render {}", file.display()));
    assert!(text(&shown.stdout).contains("Memory scan") && text(&shown.stdout).contains("4 regions of 4 MiB"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_interrupted_scan_keeps_what_it_measured_and_gives_the_memory_back() {
    let _permit = alone();
    let mut command = program();
    command.args(["scan", "--size", "16M", "--region", "4M", "--passes", "10000", "--format", "json"]);
    let mut run = Watched::start(&mut command);
    // A pass over all regions is a burst; so are those that choose the kernel, a hundred at most where others use the CPUs.
    if !run.until_it_measures(160) {
        not_tested!("it ended before it was interrupted: {}", text(&run.end().output.stderr));
    }
    run.signal(libc::SIGINT);
    let ended = run.end();
    assert_eq!(ended.output.status.code(), Some(130), "{}", text(&ended.output.stderr));
    let late = ended.within(Duration::from_secs(3));
    assert!(!matches!(late, InTime::No(_)), "it ends after the pass in progress: {late:?}");
    let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
    assert!(!report.complete && report.incomplete == Some(Incomplete::Signal { name: "SIGINT".into() }));
    let nodes = report.plan.as_ref().unwrap().steps[0].cells.len();
    let measured = report.results.iter().filter(|m| m.estimate.value.is_some()).count();
    if measured < 4
        && let Some(why) = ended.starved()
    {
        not_tested!("{measured} regions measured: {why}");
    }
    assert!((4..=4 * nodes).contains(&measured), "{measured} regions measured");
    assert!(report.results.iter().filter(|m| m.estimate.value.is_some()).all(|m| m.estimate.n < 10_000));
}

/// Limits the address space of a process to what it has and so much more.
fn limit_memory(pid: u32, more: u64) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: u64 = size.split_whitespace().next().unwrap().parse().unwrap();
    let most = (kib << 10) + more;
    let limit = libc::rlimit64 { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is read, and nothing is written.
    assert_eq!(unsafe { libc::prlimit64(pid as i32, libc::RLIMIT_AS, &raw const limit, std::ptr::null_mut()) }, 0);
}

#[test]
fn a_scan_for_which_memory_gets_scarce_is_not_complete() {
    let _permit = alone();
    let mut command = program();
    command.args("scan --size 512M --region 16M --passes 3 --node 0 --format json".split(' '));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let region = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        line.contains(" rw-p 00000000 00:00 0 ").then_some(end - start).filter(|bytes| (16 << 20..32 << 20).contains(bytes))
    };
    let began = Instant::now();
    while std::fs::read_to_string(&maps).unwrap().lines().find_map(region).is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "it takes no region");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Less than another region, and enough for threads.
    limit_memory(child.id(), 14 << 20);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::CellsMissing)));
    let stopped = report.notes.iter().find(|note| note.code == NoteCode::ScanMemoryScarce).unwrap();
    assert!(stopped.message.to_string().contains(" of 32 regions were taken on node 0"), "{stopped:?}");
    assert!(!report.results.is_empty() && report.results.len() < 32, "{} regions", report.results.len());
    assert!(report.results.iter().all(|m| m.estimate.value.is_some()), "{:?}", report.results[0].estimate);
}

#[test]
fn a_scan_that_cannot_be_is_refused() {
    assert!(refused("scan --size 900T", 4).contains("--size"));
    assert!(refused("scan --region 3K", 64).contains("region"));
    assert!(refused("scan --size 1M --region 16M", 64).contains("no room for a region of 16 MiB: give 16 MiB or more"));
    assert!(refused("scan --size 0", 64).contains("--size of 0 B has no room for a region of 1 MiB: give 8 MiB or more"));
}
