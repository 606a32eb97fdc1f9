//! What texts say of disturbed bursts, drift and outliers, of shares of the peak and load on other nodes, and of translation.

use memgauge_analysis::conclusions::summary::summarise;
use memgauge_model::estimate::*;
use memgauge_model::experiment::*;
use memgauge_model::microbench::LoopProof;
use memgauge_model::result::*;
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_render::{Appearance, Document, Format};

use crate::samples;

fn text(report: &Report) -> String {
    words(report, true)
}

fn words(report: &Report, verbose: bool) -> String {
    let shown = String::from_utf8(
        report.render(Format::TEXT, &Appearance { width: 100, colour: false, verbose, ..Appearance::default() }).unwrap(),
    )
    .unwrap();
    // Lines are broken at the width; words are looked for.
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line(report: &Report) -> String {
    String::from_utf8(report.render(Format::TEXT, &Appearance { one_line: true, ..Appearance::default() }).unwrap()).unwrap()
}

/// Makes a number unreliable, with this value.
fn disturb(m: &mut Measurement, value: f64) {
    m.quality = Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::BurstsDisturbed] };
    (m.estimate.value, m.estimate.ci95_low, m.estimate.ci95_high) = (Some(value), Some(value / 2.0), Some(value * 2.0));
}

fn has(shown: &str, words: &[&str]) {
    for words in words {
        assert!(shown.contains(words), "'{words}' is missing in: {shown}");
    }
}

/// The results of one experiment of a machine with two nodes.
fn only(experiment: Experiment) -> Report {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == experiment);
    report.curves.retain(|_| experiment == Experiment::LoadedLatency);
    report
}

#[test]
fn disturbed_bursts_drift_and_outliers_are_told() {
    let mut report = only(Experiment::IdleLatency);
    let m = &mut report.results[0];
    m.estimate.outliers = Some(0.08);
    m.estimate.drift = Some(Drift { change: -0.04, tau: -0.9 });
    let noise = &mut m.evidence.noise;
    (noise.bursts, noise.bursts_disturbed, noise.bursts_repeated, noise.bursts_left_out) = (Some(20), Some(8), Some(7), Some(8));
    m.quality = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::Drift, QualityReason::BurstsDisturbed] };
    let shown = text(&report);
    has(
        &shown,
        &["fell by 4 % while it was measured", "many bursts were disturbed (40 %)", "outliers ≤ 8 %", "7 disturbed bursts repeated"],
    );
    assert!(!text(&only(Experiment::IdleLatency)).contains("disturbed"), "a quiet run says nothing of it");
}

#[test]
fn an_unreliable_value_is_marked() {
    let mut report = only(Experiment::IdleLatency);
    assert!(!text(&report).contains('~'));
    let m = &mut report.results[0];
    m.quality = Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::InvoluntarySwitches] };
    m.estimate.value = Some(123.4);
    has(&text(&report), &["~123.4", "~ unreliable: disturbances are in the value"]);
}

#[test]
fn a_loop_says_how_long_it_was_off_its_cpu() {
    let mut report = samples::sweeps::one_loop();
    assert!(!text(&report).contains("off CPU"));
    report.results[0].evidence.noise = Noise { waited: Some(0.52), ..Noise::default() };
    has(&text(&report), &["off CPU 52 %: unreliable"]);
    report.results[0].evidence.noise.left_out = Some(0.5);
    has(&text(&report), &["off CPU 52 %: left out"]);
}

#[test]
fn shares_of_the_peak_have_a_table_with_intervals() {
    let mut report = only(Experiment::LoadedLatency);
    let estimate = |value: f64| Estimate {
        value: Some(value),
        n: 72,
        ci95_low: Some(value * 0.99),
        ci95_high: Some(value * 1.01),
        converged: true,
        ..Estimate::default()
    };
    report.curves[0].shares = vec![
        CurveShare {
            percent: 75,
            reached: Some(0.7512),
            delay_cycles: Some(137),
            latency: estimate(123.0),
            bandwidth: estimate(234.0),
            missed: None,
        },
        CurveShare {
            percent: 2,
            reached: Some(0.06),
            delay_cycles: Some(20_000),
            missed: Some(ShareMissed::NotCloser),
            ..CurveShare::default()
        },
    ];
    let at = report.curves[0].at.clone();
    let load_nodes = Some("1,3".parse().unwrap());
    for m in report.results.iter_mut().filter(|m| Coordinates { delay_cycles: None, ..m.at.clone() } == at) {
        m.at.load_nodes.clone_from(&load_nodes);
    }
    report.curves[0].at.load_nodes = load_nodes;
    let shown = text(&report);
    has(
        &shown,
        &[
            "of the peak reached delay GB/s ns",
            "75 % 75.1 % 137 234.0 ±2.4 123.0 ±1.3",
            "2 % of the peak was not reached: no delay came closer",
        ],
    );
    has(&shown, &["memory of nodes 1,3"]);
}

#[test]
fn what_prefetchers_did_is_said_of_the_cells_that_it_was_so_in() {
    for (ratios, words) in [
        ([12.0, 9.0], "9.00–12.0 (prefetchers are on; the random order defeats them)"),
        ([12.0, 1.2], "1.20–12.0 (prefetchers are at work in some of these cells; the random order defeats them)"),
        ([1.3, 1.2], "1.20–1.30 (no prefetcher at work)"),
    ] {
        let mut report = only(Experiment::IdleLatency);
        for (i, m) in report.results.iter_mut().enumerate() {
            m.evidence.prefetch = Some(PrefetchEvidence { sequential_ns: 10.0, random_over_sequential: ratios[i % 2] });
        }
        has(&text(&report), &[words]);
    }
}

#[test]
fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
    let mut report = only(Experiment::IdleLatency);
    let mut costs = [1.0, 4.0, 8.0, 9.0].into_iter();
    for m in &mut report.results {
        let cost = if m.at.order == Some(ChaseOrder::FullRandom) { costs.next().unwrap() } else { 0.0 };
        m.estimate.value = Some(100.0 + cost);
    }
    has(&text(&report), &["translation costs 1.00–9.00 ns, median 6.00"]);
}

#[test]
fn base_pages_show_memory_and_translation_apart() {
    let mut report = samples::vm();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency);
    let full = |m: &&mut Measurement| m.at.order == Some(ChaseOrder::FullRandom);
    for m in report.results.iter_mut().filter(full) {
        m.evidence.translation_ns = m.estimate.value.map(|v| v / 4.0);
    }
    has(&text(&report), &["25 % of full-random"]);
    for m in report.results.iter_mut().filter(full) {
        m.evidence.translation_ns = Some(0.0);
    }
    has(&text(&report), &["too small for the intervals to show"]);
}

#[test]
fn the_cause_of_modes_is_named_only_where_it_was_seen() {
    let told = |disturbed: bool| {
        let mut report = only(Experiment::IdleLatency);
        let m = &mut report.results[0];
        m.estimate.modes = vec![Mode { value: 98.0, share: 0.6 }, Mode { value: 160.0, share: 0.4 }];
        let noise = &mut m.evidence.noise;
        (noise.bursts, noise.bursts_disturbed, noise.bursts_left_out) = (Some(12), Some(if disturbed { 12 } else { 0 }), Some(0));
        let level = if disturbed { QualityLevel::Unreliable } else { QualityLevel::Degraded };
        m.quality = Quality { level, reasons: vec![QualityReason::SeveralModes] };
        text(&report)
    };
    has(&told(true), &["two modes: 98.0 ns (60 %), 160.0 ns (40 %); 12 of 12 bursts were disturbed; the median hides them"]);
    has(&told(false), &["two modes: 98.0 ns (60 %), 160.0 ns (40 %); the median hides them"]);
    assert!(!told(true).contains("home") && !told(false).contains("home"), "nothing was seen of pages");
}

#[test]
fn the_weakest_regions_are_below_the_median_and_limits_above_zero() {
    let scanned = |gbs: fn(usize) -> f64| {
        let mut report = samples::scan();
        report.results.retain(|m| m.at.memory_node() == Some(0));
        for (i, m) in report.results.iter_mut().enumerate() {
            (m.estimate.value, m.verdict) = (Some(gbs(i)), Verdict::default());
            (m.estimate.ci95_low, m.estimate.ci95_high) = (Some(gbs(i) * 0.99), Some(gbs(i) * 1.01));
        }
        memgauge_analysis::conclusions::scan::judge(&mut report.results);
        (text(&report), report.results.len())
    };
    // Of twelve regions or more, half lie below the median: a list of ten would hold others.
    let (shown, regions) = scanned(|i| [8.0, 22.9, 60.0][i % 3] + i as f64 / 10.0);
    assert!(regions > 10 && !shown.contains("from median −") && !shown.contains('+'), "{shown}");
    has(&shown, &["the regions scatter too much to tell weak ones"]);
    has(&scanned(|i| 88.0 + i as f64 / 10.0).0, &["none is weak (interval below 84.", "slowest are listed"]);
}

#[test]
fn wide_intervals_show_their_ends() {
    let mut report = only(Experiment::IdleLatency);
    let e = &mut report.results[0].estimate;
    (e.value, e.ci95_low, e.ci95_high) = (Some(98.2), Some(97.0), Some(14_866.0));
    has(&text(&report), &["98.2 (97.0–14866)"]);
}

#[test]
fn a_last_level_that_may_be_a_cache_says_how_to_tell() {
    let mut report = samples::sweeps::counted(&[], 1000);
    assert!(!text(&report).contains("too early"));
    report.machine.identity.hypervisor = Some("KVM".into());
    report.results.retain(|m| m.at.working_set.is_none_or(|s| s.0 <= 128 << 20));
    report.levels = memgauge_analysis::conclusions::levels::summarise(&report.results, &report.machine);
    has(&text(&report), &["the sweep ends too early to separate the last level from a cache"]);
}

#[test]
fn sums_of_cpus_and_pairs_leave_out_what_is_unreliable() {
    let mut report = samples::machines::cpus(100);
    report.results.retain(|m| m.experiment == Experiment::IdleLatencyPerCpu);
    for m in report.results.iter_mut().filter(|m| matches!(m.at.cpu, Some(7 | 63))) {
        disturb(m, 812.0);
    }
    let shown = text(&report);
    has(&shown, &["2 unreliable left out", "slowest: CPU 7 ~812.0, CPU 63 ~812.0, CPU 33 1"]);
    assert!(!shown.contains(" 812.0"), "{shown}");

    let mut report = samples::degraded();
    report.results.retain(|m| m.experiment == Experiment::CacheToCacheMatrix);
    report.results.iter_mut().for_each(|m| m.quality = Quality::default());
    assert!(!text(&report).contains("left out"));
    disturb(report.results.iter_mut().find(|m| (m.at.cpu, m.at.holder_cpu) == (Some(0), Some(5))).unwrap(), 950.0);
    let shown = text(&report);
    has(&shown, &["~950.0", "1 unreliable left out"]);
    assert!(!shown.contains(" 950.0"), "{shown}");

    let mut report = only(Experiment::IdleLatency);
    let full = |m: &&mut Measurement| m.at.order == Some(ChaseOrder::FullRandom) && m.at.cpu == Some(0);
    disturb(report.results.iter_mut().find(full).unwrap(), 800.0);
    let shown = text(&report);
    let costs = shown.split("translation costs").nth(1).unwrap().split("all").next().unwrap();
    assert!(costs.contains("; 1 unreliable left out") && !costs.contains("00."), "{costs}");
}

#[test]
fn unreliable_points_are_marked_wherever_their_numbers_are_repeated() {
    let mut report = only(Experiment::LoadedLatency);
    report.curves.truncate(1);
    let at = report.curves[0].at.clone();
    let of_curve = |m: &Measurement| Coordinates { delay_cycles: None, ..m.at.clone() } == at;
    report.results.retain(of_curve);
    let latency = report.results.iter_mut().find(|m| m.at.delay_cycles == Some(0) && m.metric == Metric::Latency).unwrap();
    latency.quality = Quality { level: QualityLevel::Unreliable, reasons: vec![QualityReason::BurstsDisturbed] };
    let (latency, ns) = (latency.estimate.clone(), report.curves[0].saturated_ns.unwrap());
    assert_eq!(latency.value, Some(ns));
    let share = CurveShare { percent: 90, reached: Some(0.9), delay_cycles: Some(0), latency, ..CurveShare::default() };
    report.curves[0].shares = vec![share];
    let shown = text(&report);
    has(&shown, &[&format!("saturated ~{ns:.1} ns")]);
    // The curve's table, the sum and the table of shares.
    assert_eq!(shown.matches(&format!("~{ns:.1}")).count(), 3, "{shown}");
    assert!(!shown.contains(&format!(" {ns:.1}")), "{shown}");

    let mut report = samples::tiers();
    let curve = report.curves.iter().find(|c| c.at.load_nodes.is_some()).unwrap().clone();
    let loaded = |m: &&mut Measurement| m.at.delay_cycles == Some(0) && Coordinates { delay_cycles: None, ..m.at.clone() } == curve.at;
    let table = |report: &Report| text(report).split("chase in").nth(1).unwrap().split("Latency under load").next().unwrap().to_owned();
    assert!(!table(&report).contains('~'), "{}", table(&report));
    report.results.iter_mut().filter(loaded).for_each(|m| m.quality.level = QualityLevel::Unreliable);
    has(&table(&report), &[&format!("~{:.1}", curve.saturated_ns.unwrap())]);

    let mut report = samples::machines::cpus(8);
    report.results.retain(|m| m.experiment == Experiment::BandwidthRamp && m.at.mix == Some(Mix::AllReads));
    disturb(&mut report.results[1], 90.0);
    has(&text(&report), &["~90.0", "~45.0"]);
}

#[test]
fn the_share_of_the_limit_is_of_the_number_beside_it() {
    let with_summary = |report: &Report| text(&Report { summary: Some(summarise(report)), ..report.clone() });
    let share = |report: &Report| {
        let shown = with_summary(report);
        Some(shown.split(" of the limit").next().filter(|before| before.len() < shown.len())?.rsplit(" · ").next().unwrap().to_owned())
    };
    let mut report = samples::two_nodes();
    let reads = |m: &Measurement| m.experiment == Experiment::Bandwidth && m.at.mix == Some(Mix::AllReads);
    let first = share(&report).unwrap();
    let mut other = report.results.iter().find(|m| reads(m)).unwrap().clone();
    other.at.cpus = Some("0".parse().unwrap());
    let higher = other.estimate.value.unwrap() * 1.2;
    disturb(&mut other, higher);
    report.results.push(other);
    assert_eq!(share(&report).as_ref(), Some(&first), "of the unreliable one");
    report.results.iter_mut().filter(|m| m.at.mix == Some(Mix::AllReads)).for_each(|m| m.quality.level = QualityLevel::Unreliable);
    has(&with_summary(&report), &["~590.2 GB/s (295.1–1180) all-reads"]);
    assert_eq!(share(&report), None);
}

#[test]
fn a_share_of_the_limit_needs_what_the_bus_moved() {
    let mut report = only(Experiment::Bandwidth);
    report.results.retain(|m| m.at.mix == Some(Mix::R2W1));
    has(&text(&report), &["of limit", " %"]);
    let traffic = report.results[0].evidence.traffic.as_mut().unwrap();
    (traffic.bus_estimate_gbs, traffic.rfo) = (None, Rfo::Unknown);
    let shown = text(&report);
    assert!(!shown.contains("of limit") && shown.contains("2:1"), "{shown}");
}

#[test]
fn the_widest_interval_of_a_matrix_is_its_larger_half_rounded_up() {
    let mut report = samples::eight_nodes();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency);
    for m in &mut report.results {
        let value = m.estimate.value.unwrap();
        (m.estimate.ci95_low, m.estimate.ci95_high) = (Some(value * 0.9999), Some(value * 1.0044));
    }
    has(&words(&report, false), &["all within ±0.5 %"]);
    let e = &mut report.results[3].estimate;
    (e.value, e.ci95_low, e.ci95_high) = (Some(120.6), Some(120.3), Some(180.6));
    has(&words(&report, false), &["all within ±49.8 %"]);
    (report.results[0].estimate.ci95_low, report.results[0].estimate.ci95_high) = (None, None);
    has(&words(&report, false), &["all that have an interval within ±49.8 %"]);
}

#[test]
fn corrupted_memory_is_said_first_and_is_in_the_list() {
    let mut report = samples::scan();
    report.results.retain(|m| m.at.memory_node() == Some(0));
    assert!(!line(&report).contains("CORRUPTED"));
    let fastest = report.results.iter_mut().max_by(|a, b| a.estimate.value.partial_cmp(&b.estimate.value).unwrap()).unwrap();
    let (region, gbs) = (fastest.at.region.unwrap(), fastest.estimate.value.unwrap());
    let integrity = fastest.evidence.integrity.as_mut().unwrap();
    (integrity.mismatches, integrity.first) = (3, vec![]);
    assert!(line(&report).starts_with("MEMORY CORRUPTED in 1 result · "), "{}", line(&report));
    let shown = text(&report);
    let row = shown.split("from median").nth(1).unwrap().split("weak").next().unwrap().to_owned();
    assert!(row.contains(&format!(" {region} 0x")) && row.contains(&format!("{gbs:.1}")) && row.contains("corrupted"), "{row}");
    has(&shown, &["1 region CORRUPTED", "the 10 corrupted and slowest are listed"]);
    let mut report = samples::sweeps::one_loop();
    report.results[0].estimate =
        Estimate { not_measured: Some(NotMeasured::Corrupted { cpu: Some(0), detail: "bit 3".into() }), ..Estimate::default() };
    assert!(line(&report).contains("MEMORY CORRUPTED"), "{}", line(&report));
}

#[test]
fn loops_pass_no_escape_sequences_on() {
    let mut report = samples::sweeps::one_loop();
    let m = &mut report.results[0];
    m.evidence.proof = Some(LoopProof { checksum: Some("abc\x1b[2J\x07".into()), ..LoopProof::default() });
    m.evidence.pages.reason = Some("x\x1b[2J".into());
    for shown in [text(&report), line(&report)] {
        assert!(shown.contains("abc") && !shown.contains(['\x1b', '\x07']), "{shown:?}");
    }
}

#[test]
fn a_column_of_which_nothing_was_measured_stays() {
    let shown = words(&samples::interrupted(), false);
    has(&shown, &["mix GB/s ", "all-reads loads only —"]);
}

#[test]
fn pairs_of_a_matrix_without_a_number_have_their_cause() {
    let mut report = samples::machines::two_times_64();
    let mut matrix = PairMatrix::new(vec![0, 1, 2], LineState::Hitm, None);
    let degraded = Quality { level: QualityLevel::Degraded, reasons: vec![QualityReason::NotConverged] };
    matrix.set(0, 1, &Estimate { value: Some(20.0), ..Estimate::default() }, &degraded);
    matrix.miss(1, 2, NotMeasured::CpuTakenAway { percent: 97 });
    report.matrices = vec![matrix];
    let said = "1 degraded (not-converged), 5 missing (CPU taken away: its threads were off their CPUs for up to 97 % of the time)";
    assert!(text(&report).contains(said), "{}", text(&report));
    let csv = String::from_utf8(report.render(Format::CSV, &Appearance::default()).unwrap()).unwrap();
    let causes = |cause: &str| csv.lines().filter(|line| line.contains(cause)).count();
    assert_eq!((causes("cpu-taken-away"), causes("cells-missing")), (1, 4), "{csv}");
}
