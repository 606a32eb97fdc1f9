//! The text of the drop-in: golden for saved results, and read back by parsers written here in the styles that scripts have.

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, LineState, MemoryPlace, Metric};
use memgauge_model::plan::{Cell, Loader, Loading, OwnTraffic, Traffic, Work};
use memgauge_model::result::Report;
use memgauge_model::traffic::Mix;
use memgauge_render::mlc::{self, Wording};

use crate::goldens::check;
use crate::samples;

fn whole(report: &Report) -> String {
    mlc::all_sections(report)
}

#[test]
fn golden_text_of_one_two_four_and_eight_nodes_and_of_nodes_without_cpus() {
    for (name, report) in [
        ("mlc-one-node.txt", samples::vm()),
        ("mlc-two-nodes.txt", samples::two_nodes()),
        ("mlc-four-nodes.txt", samples::four_nodes()),
        ("mlc-eight-nodes.txt", samples::eight_nodes()),
        ("mlc-cpuless.txt", samples::cxl()),
        ("mlc-interrupted.txt", samples::interrupted()),
        ("mlc-degraded.txt", samples::degraded()),
    ] {
        check(name, &whole(&report));
    }
}

#[test]
fn golden_text_with_everything_that_is_asked_for() {
    let report = samples::four_nodes();
    let wording =
        Wording { one_thread_per_core: true, large_pages: true, searched: true, more_mixes: true, per_thread: true, ..Wording::default() };
    let text =
        [mlc::peak(&report, wording), mlc::loaded(&report, wording), mlc::one_transfer(&report), mlc::idle_latency(&report)].join("\n");
    check("mlc-asked.txt", &text);
    let only_reads = mlc::peak(&report, Wording { only_reads: true, ..Wording::default() });
    assert_eq!(only_reads.lines().filter(|l| l.contains(":\t")).count(), 1, "{only_reads}");
    let mut per_cpu = samples::degraded();
    per_cpu.results.retain(|m| m.experiment == Experiment::IdleLatencyPerCpu);
    check("mlc-per-cpu.txt", &mlc::latency_per_cpu(&per_cpu));
}

/// Every sample: rules of all modes.
#[test]
fn no_line_but_a_row_begins_with_a_digit() {
    for (name, report) in samples::all() {
        let text = whole(&report);
        for line in text.lines().filter(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit())) {
            // What a script takes for a row: a number, a tab, and nothing but numbers and tabs; a colon is a mix's row.
            let row = line.contains('\t')
                && line.split('\t').all(|f| f.trim().is_empty() || ["-", "nan"].contains(&f.trim()) || f.trim().parse::<f64>().is_ok());
            assert!(row || line.contains("Reads-Writes :\t"), "{name}: {line:?}");
        }
        let zeros: Vec<&str> = text.lines().filter(|l| l.contains("00000")).collect();
        assert!(zeros.iter().all(|l| l.starts_with(" 00000\t")) && zeros.len() <= 1, "{name}: {zeros:?}");
    }
}

// Parsers. None of them knows how the text is made.

/// Splits words, waits for a heading, takes rows until one does not begin with a whole number.
fn by_words(text: &str, heading: &str) -> Vec<Vec<f64>> {
    text.lines()
        .skip_while(|l| !l.starts_with(heading))
        .skip_while(|l| !l.starts_with("Numa node\t"))
        .skip(1)
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .take_while(|w| w.first().is_some_and(|w| w.parse::<u32>().is_ok()))
        .map(|w| w[1..].iter().map(|w| w.parse().unwrap()).collect())
        .collect()
}

/// Trims a line and splits it at tabs.
fn by_tabs(text: &str, heading: &str) -> Vec<Vec<f64>> {
    let from = text.find(heading).unwrap();
    let body: Vec<&str> = text[from..].lines().collect();
    let head = body.iter().position(|l| l.trim().split('\t').next() == Some("Numa node") && l.contains("     0")).unwrap();
    let columns = body[head].trim().split('\t').count() - 1;
    let rows: Vec<Vec<f64>> = body[head + 1..]
        .iter()
        .take_while(|l| !l.trim().is_empty())
        .map(|l| l.trim().split('\t').skip(1).map(|f| f.trim().parse().unwrap()).collect())
        .collect();
    assert!(rows.iter().all(|r: &Vec<f64>| r.len() == columns));
    rows
}

/// The curve as those read it who look for lines that begin with a digit, below a line of `=`.
fn curve(text: &str) -> Vec<(u32, f64, f64)> {
    let below = text.split(&"=".repeat(26)).nth(1).unwrap_or_default();
    below
        .lines()
        .filter(|l| l.trim().starts_with(|c: char| c.is_ascii_digit()))
        .map_while(|l| match l.split_whitespace().collect::<Vec<_>>()[..] {
            [delay, ns, mbs] if delay.len() == 5 => Some((delay.parse().ok()?, ns.parse().ok()?, mbs.parse().ok()?)),
            _ => None,
        })
        .collect()
}

/// Mixes as `name : number`.
fn mixes(text: &str) -> Vec<(String, f64)> {
    let row = |l: &str| {
        let (name, value) = l.split_once(":\t").or_else(|| l.split_once(": \t"))?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(row).collect()
}

/// A matrix of transfers: (writer, reader, ns), and the diagonal must be dashes.
fn transfers(text: &str, homed: &str) -> Vec<(u32, u32, f64)> {
    let heading = format!("Remote Socket L2->L2 HITM latency (data address homed in {homed} socket)");
    let mut lines = text.lines().skip_while(|l| *l != heading).skip(1);
    assert_eq!(lines.next(), Some("\t\t\tReader Numa Node"));
    let readers: Vec<u32> =
        lines.next().unwrap().strip_prefix("Writer Numa Node ").unwrap().split_whitespace().map(|w| w.parse().unwrap()).collect();
    let mut cells = Vec::new();
    for line in lines.take_while(|l| l.starts_with("      ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let writer = words[0].parse().unwrap();
        for (reader, word) in readers.iter().zip(&words[1..]) {
            assert_eq!(*word == "-", *reader == writer, "{line}");
            cells.extend(word.parse().ok().map(|ns| (writer, *reader, ns)));
        }
    }
    cells
}

/// What a matrix should hold, from the results themselves.
fn expected(report: &Report, experiment: Experiment, scale: f64) -> Vec<Vec<f64>> {
    let cells: Vec<_> =
        report.results.iter().filter(|m| m.experiment == experiment && m.at.order != Some(ChaseOrder::FullRandom)).collect();
    let mut rows: Vec<u32> = cells.iter().filter_map(|m| m.at.cpu_node).collect();
    rows.sort_unstable();
    rows.dedup();
    let of = |row, column| {
        cells.iter().find(|m| m.at.cpu_node == Some(row) && m.at.memory_node() == Some(column)).and_then(|m| m.estimate.value).unwrap()
            * scale
    };
    let columns = report.machine.allowed.nodes.clone();
    rows.iter().map(|&row| columns.iter().map(|column| (of(row, column) * 10.0).round() / 10.0).collect()).collect()
}

#[test]
fn matrices_read_back() {
    for report in [samples::four_nodes(), samples::eight_nodes(), samples::cxl(), samples::two_nodes()] {
        let text = whole(&report);
        for (experiment, heading, scale) in [
            (Experiment::IdleLatency, "Measuring idle latencies for random access (in ns)...", 1.0),
            (Experiment::BandwidthMatrix, "Measuring Memory Bandwidths between nodes within system ", 1e3),
        ] {
            let table = expected(&report, experiment, scale);
            let near = |got: &[Vec<f64>]| {
                got.len() == table.len() && got.iter().flatten().zip(table.iter().flatten()).all(|(a, b)| (a - b).abs() < 0.051)
            };
            assert!(near(&by_words(&text, heading)), "{text}");
            assert!(near(&by_tabs(&text, heading)), "{text}");
        }
        let nodes = report.machine.topology.nodes.iter().filter(|n| !n.cpus.is_empty()).count();
        assert_eq!(by_words(&text, "Measuring idle").len(), nodes);
    }
}

#[test]
fn curves_read_back_with_the_bytes_counted_as_the_original_does() {
    let report = samples::four_nodes();
    // 0.5 GB/s are the chase's; of the rest each stored byte is read first: half as much again.
    let counted = |gbs: f64| ((0.5 + (gbs - 0.5) * 1.5) * 1e4).round() / 10.0;
    let points = curve(&whole(&report));
    assert_eq!(
        points,
        [(0, 1329.26, counted(260.004)), (2, 330.68, counted(259.1)), (100, 125.98, counted(158.9926)), (20_000, 82.3, counted(2.9321))]
    );
    // Threads that were off their CPUs for half of the time: their means are half of the median of undisturbed windows.
    let mut report = report;
    for m in &mut report.results {
        m.evidence.gbs_by_cpu.values_mut().for_each(|gbs| *gbs /= 2.0);
    }
    let threads = mlc::loaded(&report, Wording { per_thread: true, ..Wording::default() });
    let of_cpu: Vec<f64> =
        threads.lines().filter(|l| l.starts_with("CPU ")).map(|l| l.rsplit('\t').next().unwrap().parse().unwrap()).collect();
    assert_eq!(of_cpu.len(), 60);
    assert!((of_cpu[..15].iter().sum::<f64>() - counted(260.004) + 500.0).abs() < 1.0, "{threads}");
    assert_eq!(curve(&threads), points);
}

#[test]
fn a_curve_without_load_has_a_row_for_each_delay() {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::WindowLocal));
    let ns = report.results[0].estimate.value.unwrap();
    let text = mlc::unloaded(&report, Wording::default(), &[300]);
    let [(delay, latency, mbs)] = curve(&text)[..] else { panic!("{text}") };
    assert!(delay == 300 && (latency - ns).abs() < 0.006 && (mbs - 64e3 / ns).abs() < 0.06, "{text}");
    let mut again = report.results[0].clone();
    again.estimate.value = Some(2.0 * ns);
    report.results = vec![report.results[0].clone(), again];
    let rows = curve(&mlc::unloaded(&report, Wording::default(), &[0, 40_000]));
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [0, 40_000]);
    assert!((rows[1].1 - 2.0 * rows[0].1).abs() < 0.02, "{rows:?}");
}

#[test]
fn a_delay_that_is_asked_for_twice_has_two_rows() {
    let mut report = samples::two_nodes();
    let loaded: Vec<_> = report.results.iter().filter(|m| m.experiment == Experiment::LoadedLatency).cloned().collect();
    let first = loaded[0].at.delay_cycles;
    let again = loaded.into_iter().filter(|m| m.at.delay_cycles == first);
    let again: Vec<_> = again
        .map(|mut m| {
            m.estimate.value = m.estimate.value.map(|value| value * 2.0);
            m
        })
        .collect();
    let before = curve(&mlc::loaded(&report, Wording::default()));
    report.results.extend(again);
    let rows = curve(&mlc::loaded(&report, Wording::default()));
    assert_eq!(rows[..before.len()], before);
    let [(delay, ns, _)] = rows[before.len()..] else { panic!("{rows:?}") };
    assert!(delay == before[0].0 && (ns - 2.0 * before[0].1).abs() < 0.02, "{rows:?}");
}

#[test]
fn a_thread_with_a_delay_of_its_own_is_labelled_with_it() {
    let mut report = samples::four_nodes();
    let mut plan = samples::vm().plan.unwrap();
    let buffer = plan.steps.iter().flat_map(|s| &s.cells).flat_map(|c| c.work.buffers()).next().unwrap().clone();
    let own = OwnTraffic { traffic: Traffic::default(), delay: Some(700), second: None, second_percent: 0 };
    let loader = Loader { cpu: 2, buffer, own: Some(Box::new(own)) };
    let work = Work::Bandwidth(Loading { loaders: vec![loader], traffic: Traffic::default(), delay: 0 });
    plan.steps[0].cells = vec![Cell::new(Coordinates::default(), work)];
    report.plan = Some(plan);
    let text = mlc::loaded(&report, Wording { per_thread: true, ..Wording::default() });
    assert!(text.contains("\nCPU 2, delay 700:\t") && !text.contains("\nCPU 2, delay 0:"), "{text}");
    assert!(text.contains("\nCPU 3, delay 0:\t"), "{text}");
}

#[test]
fn bandwidth_alone_has_no_latency() {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == Experiment::Bandwidth && m.at.mix == Some(Mix::AllReads));
    let text = mlc::loaded(&report, Wording::default());
    assert!(text.ends_with("\n 00000\t  0.00\t 491800.0\n"), "{text}");
}

#[test]
fn the_last_six_lines_of_a_search_are_its_rows() {
    let report = samples::four_nodes();
    // As the program prints it: the section and an empty line.
    let text = mlc::peak(&report, Wording { searched: true, ..Wording::default() }) + "\n";
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len() - 6..];
    let values: Vec<&str> = last[..5].iter().map(|l| l.rsplit(':').next().unwrap().trim()).collect();
    // Twelve CPUs were the best; stores count twice: 2:1 as loads:stores is 280 x 4/3.
    assert_eq!(values, ["300000.00", "373333.33", "390000.00", "240000.00", "270000.00"]);
    assert_eq!(last[5], "");
    let names: Vec<String> = mixes(&text).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["ALL Reads", "3:1 Reads-Writes", "2:1 Reads-Writes", "1:1 Reads-Writes", "Stream-triad like"]);
    let more = mlc::peak(&report, Wording { searched: true, more_mixes: true, ..Wording::default() });
    assert_eq!(mixes(&more).last().unwrap(), &("All NT writes".to_owned(), 150_000.0));
}

#[test]
fn transfers_read_back() {
    let report = samples::four_nodes();
    let text = whole(&report);
    for (homed, writers) in [("writer", true), ("reader", false)] {
        let cells = transfers(&text, homed);
        assert_eq!(cells.len(), 12, "{text}");
        for (writer, reader, ns) in cells {
            let home = if writers { writer } else { reader };
            let found = report.results.iter().find(|m| {
                m.experiment == Experiment::CacheToCache
                    && (m.at.holder_cpu, m.at.cpu, m.at.memory_node()) == (Some(writer * 4), Some(reader * 4), Some(home))
                    && m.at.state == Some(LineState::Hitm)
            });
            assert!((found.unwrap().estimate.value.unwrap() - ns).abs() < 0.051);
        }
    }
    assert!(text.contains("Local Socket L2->L2 HIT  latency\t49.5\nLocal Socket L2->L2 HITM latency\t55.4\n"), "{text}");
    // One node: no remote part. Clean lines only: the headings say so.
    assert!(!whole(&samples::vm()).contains("Remote"));
    let mut clean = report;
    clean.results.retain(|m| m.experiment == Experiment::CacheToCache);
    clean.results.iter_mut().for_each(|m| m.at.state = Some(LineState::Hit));
    let text = mlc::cache_to_cache(&clean);
    assert!(text.contains("Remote Socket L2->L2 HIT latency") && !text.contains("HITM"), "{text}");
}

#[test]
fn single_numbers_read_back() {
    let text = mlc::idle_latency(&samples::vm());
    let clocks: f64 = text.split("Each iteration took ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let ns: f64 = text.split(['(', ')']).nth(1).unwrap().trim().trim_end_matches("ns").trim().parse().unwrap();
    assert_eq!((ns, clocks), (104.3, 271.2), "2.6 GHz of the sample's clock: {text:?}");
    let pair = mlc::one_transfer(&samples::four_nodes());
    let line = pair.strip_prefix("Measuring cache-to-cache transfer latency (in ns)...\n").unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words[0], words[1], &words[3..6]), ("Latency", "=", &["base", "frequency", "clocks"][..]));
    assert!(words[6].starts_with('(') && words[6][1..].parse::<f64>().is_ok() && words[7] == "ns)", "{pair:?}");
}

#[test]
fn histograms_keep_the_rules() {
    let text = mlc::histogram(&[(96, 5), (128, 70_000), (1 << 20, 1)], 5);
    assert_eq!(text, "Latency histogram (in base frequency clocks)\n[96-127]\t5\n[128-159]\t70000\n[1048576-1048607]\t1\n");
}

/// Rows of posted outputs: what the numbers parsed from them print again must be these bytes.
#[test]
fn rows_of_the_original_come_out_byte_for_byte() {
    let mut report = samples::two_nodes();
    let cell = |report: &Report, experiment| {
        report.results.iter().find(|m| m.experiment == experiment && m.at.order != Some(ChaseOrder::FullRandom)).unwrap().clone()
    };
    let (latency, bandwidth) = (cell(&report, Experiment::IdleLatency), cell(&report, Experiment::BandwidthMatrix));
    let point = |metric| report.results.iter().find(|m| m.experiment == Experiment::LoadedLatency && m.metric == metric).unwrap().clone();
    let (loaded_ns, loaded_gbs) = (point(Metric::Latency), point(Metric::Bandwidth));
    report.results.clear();
    for (to, ns, mbs) in [(0, 82.1, 79670.3), (1, 141.0, 34393.4)] {
        for (mut m, value) in [(latency.clone(), ns), (bandwidth.clone(), mbs / 1e3)] {
            (m.at.cpu_node, m.at.memory, m.estimate.value) = (Some(0), Some(MemoryPlace::Node(to)), Some(value));
            m.evidence.traffic = None;
            report.results.push(m);
        }
    }
    for (delay, ns, mbs) in [(0, 329.26, 159_154.0), (400, 99.63, 95_356.2), (20_000, 90.94, 2870.0)] {
        for (mut m, value) in [(loaded_ns.clone(), ns), (loaded_gbs.clone(), mbs / 1e3)] {
            (m.at.delay_cycles, m.estimate.value, m.evidence.traffic) = (Some(delay), Some(value), None);
            report.results.push(m);
        }
    }
    let mut peak = bandwidth;
    (peak.experiment, peak.at.cpu_node, peak.at.memory, peak.estimate.value) = (Experiment::Bandwidth, None, None, Some(158.8445));
    peak.evidence.traffic = None;
    report.results.push(peak);
    let transfer =
        samples::two_nodes().results.into_iter().find(|m| m.experiment == Experiment::CacheToCache && m.at.holder_cpu == Some(0)).unwrap();
    for (writer, reader, home, ns) in [(0, 1, 0, 115.2), (1, 0, 1, 115.5), (0, 1, 1, 184.8), (1, 0, 0, 185.9)] {
        let mut m = transfer.clone();
        (m.at.holder_cpu, m.at.cpu, m.at.memory, m.at.state) =
            (Some(writer * 16), Some(reader * 16), Some(MemoryPlace::Node(home)), Some(LineState::Hitm));
        m.estimate.value = Some(ns);
        report.results.push(m);
    }
    let text = whole(&report);
    for row in [
        "\nRemote Socket L2->L2 HITM latency (data address homed in writer socket)\n\t\t\tReader Numa Node\nWriter Numa Node     0\t     1\t\n            0\t     -\t 115.2\t\n            1\t 115.5\t     -\t\nRemote Socket L2->L2 HITM latency (data address homed in reader socket)\n\t\t\tReader Numa Node\nWriter Numa Node     0\t     1\t\n            0\t     -\t 184.8\t\n            1\t 185.9\t     -\t\n",
        "\t\tNuma node\nNuma node\t     0\t     1\t\n       0\t  82.1\t 141.0\t\n",
        "\n       0\t79670.3\t34393.4\t\n",
        "ALL Reads        :\t158844.5\t\n",
        "==========================\n 00000\t329.26\t 159154.0\n 00400\t 99.63\t  95356.2\n 20000\t 90.94\t   2870.0\n",
    ] {
        assert!(text.contains(row), "{row:?} in {text:?}");
    }
}
