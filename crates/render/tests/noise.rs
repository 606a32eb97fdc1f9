//! What texts say of disturbed bursts, drift and outliers, of shares of the peak and load on other nodes, and of translation.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

mod samples;

use memgauge_core::estimate::*;
use memgauge_core::experiment::*;
use memgauge_core::result::*;
use memgauge_render::{Format, Text};

fn text(report: &Report) -> String {
    let shown = String::from_utf8(Text { width: 100, colour: false, verbose: true }.render(report).unwrap()).unwrap();
    // Lines are broken at the width; words are looked for.
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
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
    has(&text(&report), &["off CPU 52 %: not reliable"]);
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
        memgauge_core::conclusions::scan::judge(&mut report.results);
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
    report.levels = memgauge_core::conclusions::levels::summarise(&report.results, &report.machine);
    has(&text(&report), &["the sweep ends too early to tell the last level from a cache"]);
}
