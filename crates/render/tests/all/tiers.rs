//! Persistent memory and its stand-ins, tiers, interleave weights: what each output says of them.

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::{persistent, summary::summarise};
use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::interleave::{Goal, Weights};
use memgauge_model::persistent::{PersistentNamespace, PersistentRegion};
use memgauge_model::result::{InterleaveSummary, Measurement, QualityLevel, Report};
use memgauge_model::tiers::kinds;
use memgauge_model::topology::{NodeDevice, NodeDeviceKind, SettingsFrom};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::Bytes;
use memgauge_render::{Appearance, Document, Format};

use crate::samples::{self, interleave::interleave};

const STAND_IN: &str = "(volatile stand-in)";

fn rendered(format: Format, appearance: &Appearance, report: &Report) -> String {
    let report = Report { summary: Some(summarise(report)), ..report.clone() };
    String::from_utf8(report.render(format, appearance).unwrap()).unwrap()
}

fn text(report: &Report, verbose: bool) -> String {
    rendered(Format::TEXT, &Appearance { width: 200, verbose, ..Appearance::default() }, report)
}

/// Persistent memory whose device is emulated, or is what it says.
fn pmem(volatile: Option<&str>) -> Report {
    let mut report = samples::pmem();
    let volatile = volatile.map(str::to_owned);
    report.plan.as_mut().unwrap().directories.iter_mut().for_each(|dir| dir.file.volatile.clone_from(&volatile));
    report.results.iter_mut().filter_map(|m| m.evidence.file.as_mut()).for_each(|file| file.volatile.clone_from(&volatile));
    let ats = report.results.iter_mut().filter(|m| m.experiment == Experiment::LoadedLatency).map(|m| &mut m.at);
    ats.chain(report.curves.iter_mut().map(|curve| &mut curve.at)).for_each(|at| at.access = Some(Access::Random));
    report
}

/// The values of a column.
fn column(report: &Report, name: &str) -> Vec<String> {
    let text = rendered(Format::CSV, &Appearance::default(), report);
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize().map(Result::unwrap).collect::<Vec<BTreeMap<String, String>>>();
    rows.into_iter().map(|row| row[name].clone()).collect()
}

#[test]
fn a_stand_in_for_persistent_memory_is_called_that_in_every_output() {
    let (emulated, real) = (pmem(Some("an emulated device (QEMU)")), pmem(None));
    assert!(column(&emulated, "volatile").iter().all(|why| why == "an emulated device (QEMU)"));
    assert!(column(&real, "volatile").iter().all(String::is_empty));
    let series = |report: &Report| {
        let text = rendered(Format::OPENMETRICS, &Appearance::default(), report);
        let of_files: Vec<String> = text.lines().filter(|line| line.contains("memory_dir=")).map(str::to_owned).collect();
        assert!(of_files.len() > 8, "{text}");
        (of_files.len(), of_files.iter().filter(|line| line.contains("volatile=\"true\"")).count())
    };
    let (all, marked) = series(&emulated);
    assert_eq!((marked, series(&real)), (all, (all, 0)));
    let line = Appearance { one_line: true, ..Appearance::default() };
    assert!(rendered(Format::TEXT, &line, &emulated).contains("volatile stand-in for persistent memory"));
    assert!(!rendered(Format::TEXT, &line, &real).contains("volatile"));
    for verbose in [false, true] {
        assert!(text(&emulated, verbose).contains(STAND_IN) && !text(&real, verbose).contains("volatile"));
    }
    let page = text(&emulated, false);
    let headline = page.lines().find(|line| line.starts_with("Latency under load")).unwrap();
    assert!(headline.ends_with("· random access, files in /mnt/pmem (volatile stand-in)"), "the curve's own place: {headline}");
}

#[test]
fn memory_of_an_emulated_device_is_a_stand_in_as_a_tier_too() {
    let mut report = samples::tiers();
    report.machine.topology.nodes[2].devices =
        vec![NodeDevice { name: "dax0.0".into(), kind: NodeDeviceKind::Nvdimm, region: None, qos_class: None }];
    let namespace = PersistentNamespace { name: "namespace0.0".into(), memory_node: Some(2), ..PersistentNamespace::default() };
    let region = |emulated: Option<&str>| PersistentRegion {
        name: "region0".into(),
        emulated: emulated.map(str::to_owned),
        namespaces: vec![namespace.clone()],
        ..PersistentRegion::default()
    };
    for emulated in [None, Some("a virtual device (virtio-pmem)")] {
        report.machine.topology.persistent = vec![region(emulated)];
        report.plan.as_mut().unwrap().tiers = kinds(&report.machine);
        let page = text(&report, true);
        assert_eq!(page.contains("persistent memory as memory (volatile stand-in)"), emulated.is_some(), "{page}");
        let far = report.results.iter().map(|m| emulated.filter(|_| m.at.memory_node() == Some(2)).unwrap_or_default());
        assert_eq!(column(&report, "volatile"), far.map(str::to_owned).collect::<Vec<_>>());
    }
}

#[test]
fn each_link_to_memory_has_a_row() {
    let mut report = samples::tiers();
    let row = |report: &Report| {
        let page = text(report, false);
        let (_, links) = page.split_once("\nLinks to memory ")?;
        links
            .lines()
            .find(|line| line.trim_start().starts_with("node 0 "))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let cxl = row(&report).unwrap();
    assert!(cxl.starts_with("node 0 node 2 CXL 254.1 ±") && cxl.contains(" 145.2 49.3 ±") && cxl.contains(" 19 % 63.8 ±"), "{cxl}");
    let mut with = |kind: NodeDeviceKind| {
        report.machine.topology.nodes[2].devices[0].kind = kind;
        report.plan.as_mut().unwrap().tiers = kinds(&report.machine);
        row(&report)
    };
    assert_eq!(with(NodeDeviceKind::Gpu).as_deref(), Some(&*cxl.replace("CXL", "GPU memory")));
    // DIMMs are beside the others, and not behind a link.
    assert_eq!(with(NodeDeviceKind::Nvdimm), None);
    // A doubtful number makes what is computed of it doubtful.
    let mut doubtful = samples::tiers();
    let of_link = doubtful.results.iter_mut().filter(|m| m.at.memory_node() == Some(2) && m.at.load_nodes.is_none());
    of_link.for_each(|m| m.quality.level = QualityLevel::Unreliable);
    let marked = row(&doubtful).unwrap();
    assert!(marked.contains(" ~145.2 ") && marked.contains(" ~19 % "), "{marked}");
}

/// Numbers of writers and sizes of blocks, as published of Optane.
fn optane() -> Report {
    let mut report = samples::pmem();
    let one = report.results.iter().find(|m| m.at.mix == Some(Mix::NtWrite)).unwrap().clone();
    let valued = |experiment, at: Coordinates, gbs: f64| {
        let mut m: Measurement = one.clone();
        (m.experiment, m.at) =
            (experiment, Coordinates { cpu_node: Some(1), memory_dir: one.at.memory_dir.clone(), memory: one.at.memory, ..at });
        (m.estimate.value, m.estimate.ci95_low, m.estimate.ci95_high) = (Some(gbs), Some(gbs - 0.06), Some(gbs + 0.06));
        m
    };
    let writers = [(1, 1.9), (2, 3.6), (3, 4.55), (4, 4.6), (8, 4.1), (16, 2.9)].map(|(count, gbs)| {
        let cpus = Some((16..16 + count).collect());
        valued(Experiment::BandwidthRamp, Coordinates { cpus, mix: Some(Mix::NtWrite), ..Coordinates::default() }, gbs)
    });
    let blocks = [(64, 9.0), (128, 18.0), (256, 36.0), (512, 36.5), (1024, 37.0)].map(|(block, gbs)| {
        let at = Coordinates { block: Some(Bytes(block)), mix: Some(Mix::AllReads), ..Coordinates::default() };
        valued(Experiment::AccessSize, at, gbs)
    });
    report.results = writers.into_iter().chain(blocks).collect();
    report.curves.clear();
    report.best_writers = persistent::best_writers(&report.results);
    report.access_knees = persistent::access_knees(&report.results);
    report
}

#[test]
fn the_best_number_of_writers_and_the_knee_of_access_sizes_are_said() {
    let page = text(&optane(), false);
    for line in [
        "Bandwidth by number of writers",
        "most bandwidth with 4 writers: 4.60 GB/s ±0.06; 3 may have as much",
        "all-reads: knee at 256 B: larger blocks bring less than 10 % more, blocks of 64 B have 24 % of the most",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(!page.contains("number of CPUs"), "{page}");
}

/// Two searches of sockets with nodes 0 and 1 of their own and node 2 between them, that recommend these weights.
fn two_sockets(first: &str, second: &str) -> Report {
    let mut report = interleave(2, Goal::Bandwidth);
    let of_second = |summary: &InterleaveSummary| InterleaveSummary {
        at: Coordinates { cpu_node: Some(1), cpu: Some(16), cpus: Some("17-31".parse().unwrap()), ..summary.at.clone() },
        nodes: vec![if second.contains("1=") { 1 } else { 0 }, 2],
        recommended: second.parse().unwrap(),
        gains: Vec::new(),
        ..summary.clone()
    };
    let other = of_second(&report.interleaves[0]);
    report.interleaves[0].recommended = first.parse().unwrap();
    report.interleaves.push(other);
    report
}

#[test]
fn what_one_list_of_weights_means_for_two_sockets_is_said() {
    let page = |first, second| text(&two_sockets(first, second), false).split_whitespace().collect::<Vec<_>>().join(" ");
    let both = page("0=3,2=1", "1=3,2=2");
    assert!(both.contains("CPUs of node 0 and CPUs of node 1 share nodes 2: 0=6,1=3,2=2 serves both."), "{both}");
    assert!(!both.contains("not measured"), "{both}");
    let neither = page("0=3,2=1", "0=29,2=2");
    assert!(neither.contains("The kernel has one weight for each node"), "{neither}");
    assert!(neither.contains("What CPUs of node 0 have with the other's weights was not measured."), "{neither}");
    // Both were tried by the search.
    let report = interleave(2, Goal::Bandwidth);
    let tried =
        |n: usize| report.interleaves[0].trials.iter().map(|t| &t.weights).filter(|w| w.only_node().is_none()).nth(n).unwrap().to_string();
    let measured = page(&tried(0), &tried(1));
    assert!(measured.contains("With the other's weights CPUs of node 0 have") && !measured.contains("was not measured"), "{measured}");
}

#[test]
fn weights_are_set_where_the_machine_lets_them() {
    let mut report = interleave(2, Goal::Bandwidth);
    report.interleaves[0].recommended = "0=3,2=1".parse().unwrap();
    let page = |report: &Report| text(report, false).split_whitespace().collect::<Vec<_>>().join(" ");
    let set = |report: &mut Report, weight| {
        report.machine.topology.nodes.iter_mut().for_each(|node| node.interleave_weight = weight);
    };
    set(&mut report, None);
    assert!(page(&report).contains("has no weighted interleave") && !page(&report).contains("numactl -w"), "{}", page(&report));
    set(&mut report, Some(1));
    let file = "/sys/kernel/mm/mempolicy/weighted_interleave/node2";
    let shown = page(&report);
    assert!(shown.contains(&format!("as root: echo 1 > {file} numactl -w 0,2 PROGRAM")), "{shown}");
    report.machine.allowed.settings = SettingsFrom::OutsideContainer;
    assert!(page(&report).contains(&format!("outside of this container, as root: set {file} to 1")), "{}", page(&report));
}

#[test]
fn the_plateau_of_weights_is_said() {
    let report = interleave(2, Goal::Bandwidth);
    let found = &report.interleaves[0];
    assert!(found.plateau.len() > 1 && found.plateau.contains(&found.best), "{found:?}");
    let shares: Vec<f64> = found.plateau.iter().map(|weights: &Weights| weights.share(0)).collect();
    assert!(shares.windows(2).all(|pair| pair[0] >= pair[1]), "{shares:?}");
    let page = text(&report, false);
    let line = page.lines().find(|line| line.contains("Within 1 % of the best: ")).unwrap_or_else(|| panic!("{page}"));
    assert!(line.contains(" % of the pages on node 0 ("), "{line}");
}
