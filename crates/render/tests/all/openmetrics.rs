//! OpenMetrics: valid, in base units, and few series however large the machine is.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use memgauge_analysis::conclusions::levels;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{LineState, Metric};
use memgauge_model::result::{Health, HealthStatus, Measurement, PairMatrix, Quality, QualityLevel, Report};
use memgauge_model::topology::Node;
use memgauge_model::units::Bytes;
use memgauge_render::{Appearance, Document, Format, Named};
use memgauge_testing::not_tested;

use crate::samples;

fn text(report: &Report) -> String {
    String::from_utf8(report.render(Format::OPENMETRICS, &Appearance::default()).unwrap()).unwrap()
}

/// The series with this beginning, without it.
fn series<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(name)).collect()
}

/// Every kind of result, and labels that need escapes.
fn reports() -> Vec<Report> {
    let mut all: Vec<Report> = samples::all().into_iter().map(|(_, report)| report).collect();
    all.extend([samples::sweeps::counted(&[], 1000), samples::sweeps::prefetch(2), samples::machines::cpus(64), samples::sweeps::loops()]);
    all.extend([samples::sweeps::domains(4), samples::sweeps::node_pairs(4), samples::machines::pairs(24), pairs(64, 4)]);
    for report in &mut all {
        report.levels = levels::summarise(&report.results, &report.machine);
    }
    all[0].run.labels = [("rack.row-2".into(), "a \"b\" \\ c".into())].into();
    all[0].health = Some(Health { status: HealthStatus::Warning, ..Health::default() });
    all
}

/// A matrix of all pairs of CPUs, the first CPUs on the first node.
fn pairs(cpus: u32, nodes: u32) -> Report {
    let mut report = samples::vm();
    let topology = &mut report.machine.topology;
    let (cpu, node) = (topology.cpus[0].clone(), topology.nodes[0].clone());
    topology.cpus = (0..cpus).map(|id| memgauge_model::topology::Cpu { id, node: id * nodes / cpus, ..cpu.clone() }).collect();
    topology.nodes = (0..nodes).map(|id| Node { id, ..node.clone() }).collect();
    report.matrices = [LineState::Hit, LineState::Hitm].map(|state| PairMatrix::new((0..cpus).collect(), state, None)).into();
    for matrix in &mut report.matrices {
        for reader in 0..cpus {
            for holder in (0..cpus).filter(|holder| *holder != reader) {
                let (near, n) = (reader * nodes / cpus == holder * nodes / cpus, f64::from((reader + holder) % 10));
                let value = Some(if near { 50.0 } else { 150.0 } + n);
                matrix.set(reader, holder, &Estimate { value, ..Estimate::default() }, &Quality::default());
            }
        }
    }
    report
}

#[test]
fn families_are_described_once_and_series_occur_once() {
    for report in reports() {
        let text = text(&report);
        let (mut types, mut seen) = (BTreeMap::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').unwrap();
                assert_eq!((kind, types.insert(name.to_owned(), kind)), ("gauge", None), "{name} twice");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
                let name = series.split('{').next().unwrap();
                assert!(types.contains_key(name), "{name} is not described before");
                let unit = ["_seconds", "_bytes_per_second"].iter().find(|unit| name.ends_with(*unit));
                assert!(unit.is_none_or(|unit| text.contains(&format!("# UNIT {name} {}\n", &unit[1..]))), "{name}");
                assert!(seen.insert(series.to_owned()), "{series} twice");
            }
        }
        assert!(types.len() >= 3 && text.ends_with("# EOF\n"));
        assert_eq!(text, self::text(&report), "the same result gives the same bytes");
    }
}

#[test]
fn values_are_in_base_units_with_their_digits_beside_interval_and_quality() {
    let mut report = samples::vm();
    let first = report.results[0].clone();
    let value = first.estimate.value.unwrap();
    report.results[1].estimate = Estimate { not_measured: Some(NotMeasured::OutOfTime), ..Estimate::default() };
    report.results[1].quality = Quality { level: QualityLevel::None, reasons: vec![] };
    let text = text(&report);
    let one = |name: &str, with: &str| -> Vec<f64> {
        series(&text, name).iter().filter(|s| s.contains(with)).map(|s| s.rsplit_once(' ').unwrap().1.parse().unwrap()).collect()
    };
    assert_eq!(value, 104.3);
    assert_eq!(one("memgauge_idle_latency_seconds{", "window-local"), [1.043e-7]);
    let low = one("memgauge_idle_latency_low_seconds{", "window-local")[0];
    assert!((low * 1e9 / first.estimate.ci95_low.unwrap() - 1.0).abs() < 1e-9 && low < 1.043e-7);
    assert_eq!(one("memgauge_bandwidth_bytes_per_second{", "mix=\"all-reads\""), [41.72e9]);
    // What was not measured has a quality and no value, and never 0.
    assert_eq!(one("memgauge_idle_latency_seconds{", "full-random"), [0.0; 0]);
    assert_eq!(one("memgauge_idle_latency_quality{", "full-random"), [3.0]);
    assert_eq!(one("memgauge_idle_latency_quality{", "window-local"), [0.0]);
}

#[test]
fn a_curve_has_series_that_do_not_depend_on_the_delays_of_one_run() {
    let text = text(&samples::two_nodes());
    let points: BTreeSet<&str> =
        series(&text, "memgauge_loaded_latency_seconds{").iter().map(|s| s.split_once("point=").unwrap().1).collect();
    assert_eq!(points.len(), series(&text, "memgauge_loaded_bandwidth_bytes_per_second{").len());
    assert!(points.len() >= 2 && points.iter().any(|p| p.starts_with("\"lowest-load\"")), "{points:?}");
    assert!(!text.contains("delay_cycles"), "delays are chosen by each run");
}

#[test]
fn a_thousand_cpus_are_summed_up_by_node() {
    let report = pairs(1024, 16);
    let text = text(&report);
    let of = |with: &[&str]| {
        let all = series(&text, "memgauge_transfer_matrix_latency_seconds{");
        let found: Vec<&str> = all.into_iter().filter(|s| with.iter().all(|w| s.contains(w))).collect();
        assert_eq!(found.len(), 1, "{with:?}: {found:?}");
        found[0].rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    let near = ["cpu_node=\"3\"", "holder_node=\"3\"", "state=\"hitm\""];
    assert_eq!([of(&[&near[..], &["\"min\""]].concat()), of(&[&near[..], &["\"max\""]].concat())], [50e-9, 59e-9]);
    assert_eq!(of(&["cpu_node=\"0\"", "holder_node=\"15\"", "state=\"hit\"", "\"min\""]), 150e-9);
    // Both states, 16 x 16 nodes, three statistics, value and quality.
    let matrix = text.lines().filter(|l| l.starts_with("memgauge_transfer_matrix")).count();
    assert_eq!(matrix, 2 * 16 * 16 * 3 * 2, "of a million pairs");
    // A scan of many regions and the latency of many CPUs are summed up alike.
    let few = self::text(&samples::machines::cpus(1024));
    assert!(series(&few, "memgauge_cpu_idle_latency_seconds{").len() <= 12, "{few}");
    let scan = self::text(&samples::scan());
    assert!(!scan.contains("region=") && scan.contains("memgauge_scan_bandwidth_bytes_per_second{"), "{scan}");
}

#[test]
fn levels_have_the_quality_of_their_sizes_and_statistics_no_interval() {
    let mut report = samples::sweeps::counted(&[], 1000);
    let l1 = report.levels.iter().find(|l| l.metric == Some(Metric::Latency)).unwrap().levels[0].clone();
    let quality = |report: &Report, level: &str| -> Vec<f64> {
        let text = text(report);
        let all = series(&text, "memgauge_level_latency_quality{").into_iter();
        all.filter(|s| s.contains(&format!("level=\"{level}\""))).map(|s| s.rsplit_once(' ').unwrap().1.parse().unwrap()).collect()
    };
    assert_eq!((l1.name.as_str(), quality(&report, "L1d")), ("L1d", vec![0.0]));
    let on_plateau = |m: &&mut Measurement| m.metric == Metric::Latency && m.at.working_set == Some(l1.to);
    report.results.iter_mut().find(on_plateau).unwrap().quality.level = QualityLevel::Unreliable;
    assert_eq!((quality(&report, "L1d"), quality(&report, "L2")), (vec![2.0], vec![0.0]));
    let scan = text(&samples::scan());
    assert!(scan.contains("memgauge_scan_bandwidth_quality{") && !scan.contains("memgauge_scan_bandwidth_low"), "{scan}");
}

#[test]
fn corrupted_memory_has_a_series_to_alert_on() {
    let mut report = samples::scan();
    report.argv = ["memgauge", "scan"].map(str::to_owned).to_vec();
    let corrupted = |report: &Report| series(&text(report), "memgauge_corrupted_results{task=\"scan\"} ").concat();
    assert_eq!(corrupted(&report), "0.0");
    report.results[3].evidence.integrity.as_mut().unwrap().mismatches = 3;
    assert_eq!(corrupted(&report), "1.0");
}

#[test]
fn verdicts_labels_and_several_results() {
    let reports = reports();
    let one = text(&reports[0]);
    let health = |status: &str| series(&one, &format!("memgauge_health_status{{status=\"{status}\",task=\"suite\"}} ")).concat();
    assert_eq!((health("warning"), health("ok")), ("1.0".into(), "0.0".into()));
    assert!(one.contains("label_rack_row_2=\"a \\\"b\\\" \\\\ c\""), "{one}");
    let both = [Named { name: "a", report: &reports[0] }, Named { name: "b", report: &reports[0] }];
    let both = String::from_utf8(both.render(Format::OPENMETRICS, &Appearance::default()).unwrap()).unwrap();
    let latencies = |text: &str| series(text, "memgauge_idle_latency_seconds{").len();
    assert_eq!(latencies(&both), 2 * latencies(&one));
    assert_eq!(series(&both, "memgauge_run_complete{"), ["result=\"a\",task=\"suite\"} 1.0", "result=\"b\",task=\"suite\"} 1.0"]);
    let bytes = Bytes(4096);
    let level = |report: &Report| report.levels.iter().flat_map(|l| &l.levels).any(|l| l.from <= bytes);
    let sweep = reports.iter().find(|r| level(r)).unwrap();
    assert!(text(sweep).contains("level=\"L1d\""));
}

/// A collector that finds a series in two files keeps the first or none: a corrupted result would not be seen.
#[test]
fn no_series_is_in_the_files_of_two_command_lines() {
    let lines = [
        "memgauge",
        "memgauge quick",
        "memgauge quick --cpu 0-3",
        "memgauge quick --node 1 -q",
        "memgauge quick --pages 4k",
        "memgauge quick --size 1G",
    ];
    for report in reports() {
        let mut seen = BTreeSet::new();
        for line in lines {
            let run = |end: &str| Report { argv: format!("{line}{end}").split(' ').map(Into::into).collect(), ..report.clone() };
            let names = |report: &Report| -> BTreeSet<String> {
                let own = text(report);
                own.lines().filter(|l| !l.starts_with('#')).map(|l| l.rsplit_once(' ').unwrap().0.to_owned()).collect()
            };
            let own = names(&run(""));
            assert!(own.len() > 5 && seen.is_disjoint(&own), "{line}");
            assert_eq!(own, names(&run(" -o /tmp/of-monday.prom --wait-quiet 5m --against old.json")), "where it goes does not matter");
            seen.extend(own);
        }
    }
}

#[test]
fn labels_of_the_user_that_get_one_name_are_all_kept() {
    let mut report = samples::vm();
    report.run.labels = ["a-b", "a.b", "a_b"].map(|key| (key.to_owned(), format!("of {key}"))).into();
    let info = series(&text(&report), "memgauge_run_info{").concat();
    for label in ["label_a_b=\"of a-b\"", "label_a_b_2=\"of a.b\"", "label_a_b_3=\"of a_b\""] {
        assert!(info.contains(label), "{info}");
    }
    let keys = report.run.labels.keys().map(String::as_str);
    assert_eq!(memgauge_render::same_label(keys), Some(("a-b", "a.b", "label_a_b".to_owned())));
}

/// Prometheus' own check, where it is.
#[test]
fn promtool_finds_nothing_wrong() {
    if Command::new("promtool").arg("--version").output().is_err() {
        not_tested!("OpenMetrics: there is no promtool; it is in Debian's package prometheus");
    }
    for report in reports() {
        let mut command = Command::new("promtool");
        let streams = command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text(&report).as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.is_empty(), "{said}");
    }
}
