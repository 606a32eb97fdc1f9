//! Comparisons of made-up runs, whose differences are known.

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Coordinates, Experiment, LineState, Metric, Unit};
use memgauge_model::result::{CurvePoint, CurveSummary, DifferentField, PairMatrix, Quality, QualityLevel, Samples};
use memgauge_model::stats::median;
use memgauge_model::traffic::Mix;
use memgauge_model::units::Bytes;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::effect::RunSamples;
use super::quantities::QuantityRuns;
use super::*;
use crate::conclusions::limit::tests::{bandwidth, machine, report};

/// Normal, by summing twelve uniform numbers.
fn normal(random: &mut impl Rng) -> f64 {
    (0..12).map(|_| (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
}

/// How much runs, allocations and bursts differ, as standard deviations of logarithms.
const NOISE: [f64; 3] = [0.01, 0.008, 0.01];

/// A run with `cells` latencies, each `factor` times 100 ns.
fn run(random: &mut Xoshiro256PlusPlus, factor: f64, cells: u32) -> Report {
    let mut report = report(machine(), Vec::new());
    for cell in 0..cells {
        let of_run = NOISE[0] * normal(random);
        let mut samples = Samples::default();
        for allocation in 0..4 {
            let of_allocation = NOISE[1] * normal(random);
            for _ in 0..4 {
                let burst = of_run + of_allocation + NOISE[2] * normal(random);
                samples.bursts.push((0..5).map(|_| 100.0 * factor * (burst + 0.01 * normal(random)).exp()).collect());
                samples.allocations.push(allocation);
            }
        }
        let value = median(&samples.bursts.concat()).unwrap();
        let mut m = bandwidth("0", Some(0), Mix::AllReads, value, None);
        (m.experiment, m.metric, m.unit) = (Experiment::Sweep, Metric::Latency, Unit::Nanoseconds);
        m.at.working_set = Some(Bytes::mib(u64::from(cell) + 1));
        m.samples = Some(Box::new(samples));
        report.results.push(m);
    }
    report
}

fn runs(random: &mut Xoshiro256PlusPlus, count: usize, factor: f64, cells: u32) -> Vec<Report> {
    (0..count).map(|_| run(random, factor, cells)).collect()
}

fn compared(before: &[Report], after: &[Report]) -> Comparison {
    compare(("before", before), ("after", after), ComparisonOptions::default())
}

/// How many of `trials` comparisons of 5 runs with 5 others call any of four cells different, and how many cells they call worse.
fn rates(trials: u64, factor: f64) -> (f64, f64) {
    let (mut different, mut worse) = (0, 0);
    for seed in 0..trials {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (before, after) = (runs(&mut random, 5, 1.0, 4), runs(&mut random, 5, factor, 4));
        let comparison = compared(&before, &after);
        different +=
            usize::from(comparison.cells.iter().any(|c| matches!(c.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse)));
        worse += comparison.count(ComparisonVerdict::Worse);
    }
    (different as f64 / trials as f64, worse as f64 / (4 * trials) as f64)
}

#[test]
fn equal_runs_are_rarely_called_different_and_five_percent_is_found() {
    let (different, _) = rates(100, 1.0);
    // Of 100 comparisons, 12 are called different with a probability of 0.2 % if it is 5 % of all.
    assert!(different < 0.12, "{different}");
    let (_, worse) = rates(40, 1.05);
    assert!(worse > 0.95, "{worse}");
}

/// `cargo test --release -p memgauge-analysis --lib comparison -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes in a debug build"]
fn two_thousand_comparisons() {
    let (different, _) = rates(2000, 1.0);
    let (_, worse) = rates(500, 1.05);
    println!("called different without a difference: {:.2} %; 5 % called worse: {:.2} %", 100.0 * different, 100.0 * worse);
    assert!(different <= 0.05 && worse >= 0.95, "{different} {worse}");
}

#[test]
fn narrow_intervals_within_the_margin_are_the_same_and_wide_ones_say_how_many_runs_they_take() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let same = compared(&runs(&mut random, 12, 1.0, 2), &runs(&mut random, 12, 1.0, 2));
    assert_eq!(same.verdict, ComparisonVerdict::Same, "{:?}", same.cells);
    let open = compared(&runs(&mut random, 2, 1.0, 1), &runs(&mut random, 2, 1.02, 1));
    let cell = &open.cells[0];
    assert_eq!((cell.verdict, cell.open), (ComparisonVerdict::Inconclusive, Some(Inconclusive::IntervalTooWide)));
    assert!(cell.runs_to_settle.is_some_and(|n| n > 2 && n < 60), "{cell:?}");
}

#[test]
fn one_inconclusive_number_among_many_of_its_kind_does_not_decide() {
    // `open` of `all` numbers of a kind differ by 3 %, with a spread that leaves the conclusion open.
    let judged = |open: u32, all: u32, more: Option<(Experiment, f64, f64)>| {
        let pair = |experiment, i: u32, mean, deviation| QuantityRuns {
            experiment,
            at: Coordinates { working_set: Some(Bytes::mib(u64::from(i) + 1)), ..Coordinates::default() },
            aspect: Aspect::Value,
            metric: Metric::Latency,
            unit: Unit::Nanoseconds,
            before: spaced(5, 0.0, deviation),
            after: spaced(5, mean, deviation),
        };
        let mut pairs: Vec<QuantityRuns> = (0..all)
            .map(|i| if i < open { pair(Experiment::Sweep, i, 0.03, 0.03) } else { pair(Experiment::Sweep, i, 0.0, 0.002) })
            .collect();
        pairs.extend(more.map(|(experiment, mean, deviation)| pair(experiment, 0, mean, deviation)));
        let cells = verdict::judge(&pairs, ComparisonOptions::default(), false);
        let found = cells.iter().filter(|c| c.verdict == ComparisonVerdict::Inconclusive).count();
        (verdict::overall(&cells), found)
    };
    assert_eq!(judged(0, 24, None), (ComparisonVerdict::Same, 0));
    assert_eq!(judged(1, 24, None), (ComparisonVerdict::Same, 1));
    assert_eq!(judged(6, 24, None), (ComparisonVerdict::Same, 6), "a quarter");
    assert_eq!(judged(7, 24, None), (ComparisonVerdict::Inconclusive, 7));
    // The only number of another experiment is not outvoted.
    let idle = Experiment::IdleLatency;
    assert_eq!(judged(0, 24, Some((idle, 0.03, 0.03))), (ComparisonVerdict::Inconclusive, 1));
    assert_eq!(judged(1, 24, Some((idle, 0.2, 0.002))), (ComparisonVerdict::Worse, 1));
    assert_eq!(judged(1, 24, Some((idle, -0.2, 0.002))), (ComparisonVerdict::Better, 1));
}

/// Runs whose logarithms are evenly spaced, with this mean and this standard deviation.
fn spaced(count: u32, mean: f64, deviation: f64) -> Vec<RunSamples> {
    let (n, middle) = (f64::from(count), f64::from(count - 1) / 2.0);
    // Of the numbers 0 to n - 1.
    let of_numbers = (n * (n + 1.0) / 12.0).sqrt();
    let value = |i: u32| 100.0 * (mean + deviation * (f64::from(i) - middle) / of_numbers).exp();
    (0..count).map(|i| RunSamples::single(value(i))).collect()
}

#[test]
fn the_runs_that_settle_it_among_many_numbers_are_more_than_there_are_and_enough() {
    // One of `numbers` numbers differs by 5 %, and runs by 2.4 %.
    let judged = |runs: u32, numbers: u32| {
        let pair = |i: u32| QuantityRuns {
            experiment: Experiment::Sweep,
            at: Coordinates { working_set: Some(Bytes::mib(u64::from(i) + 1)), ..Coordinates::default() },
            aspect: Aspect::Value,
            metric: Metric::Latency,
            unit: Unit::Nanoseconds,
            before: spaced(runs, 0.0, 0.024),
            after: spaced(runs, if i == 0 { 0.05 } else { 0.0 }, 0.024),
        };
        verdict::judge(&(0..numbers).map(pair).collect::<Vec<_>>(), ComparisonOptions::default(), false).remove(0)
    };
    assert_eq!(judged(5, 1).verdict, ComparisonVerdict::Worse, "alone it is shown");
    for numbers in [20, 60] {
        let open = judged(5, numbers);
        assert_eq!(open.open, Some(Inconclusive::ManyCells), "{open:?}");
        let settle = open.runs_to_settle.unwrap();
        assert!(settle > 5 && settle < 15, "{open:?}");
        // The bootstrap's own error is some per cent.
        assert_eq!(judged(settle + 1, numbers).verdict, ComparisonVerdict::Worse, "{open:?}");
    }
}

#[test]
fn never_fewer_runs_settle_it_than_there_are() {
    for seed in 0..20 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let comparison = compared(&runs(&mut random, 4, 1.0, 8), &runs(&mut random, 4, 1.025, 8));
        let open = comparison.cells.iter().filter(|c| c.open.is_some());
        open.for_each(|c| assert!(c.runs_to_settle.is_none_or(|n| n > 4), "seed {seed}: {c:?}"));
    }
}

#[test]
fn one_run_a_side_has_no_verdict() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(8);
    let comparison = compared(&runs(&mut random, 1, 1.0, 1), &runs(&mut random, 3, 1.5, 1));
    let cell = &comparison.cells[0];
    assert_eq!((cell.verdict, cell.open), (ComparisonVerdict::Inconclusive, Some(Inconclusive::OneRun)));
    assert!(comparison.has_single_run() && cell.ratio > 1.4 && cell.ratio_low.is_some(), "{cell:?}");
}

#[test]
fn what_is_missing_or_unreliable_is_named_and_not_compared() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
    let (mut before, mut after) = (runs(&mut random, 2, 1.0, 3), runs(&mut random, 2, 1.0, 3));
    before.iter_mut().for_each(|r| drop(r.results.remove(0)));
    after.iter_mut().for_each(|r| {
        r.results[1].quality = Quality { level: QualityLevel::Unreliable, reasons: vec![] };
        r.results.truncate(2);
    });
    let comparison = compared(&before, &after);
    let why: Vec<_> = comparison.not_compared.iter().map(|n| n.why).collect();
    assert_eq!(why, [WhyNotCompared::Unreliable, WhyNotCompared::OnlyBefore, WhyNotCompared::OnlyAfter]);
    assert_eq!((comparison.cells.len(), comparison.verdict), (0, ComparisonVerdict::Inconclusive));
}

/// A run with a curve of four points up to 100 GB/s, read at these delays; latencies are `slower` times as high.
fn curve(delays: [u32; 4], slower: f64) -> Report {
    let mut report = report(machine(), Vec::new());
    let at = Coordinates { cpu: Some(0), mix: Some(Mix::AllReads), ..Coordinates::default() };
    for delay in delays {
        let gbs = 100.0 - f64::from(delay) / 10.0;
        let ns = slower * (90.0 + gbs);
        for (metric, unit, value) in [(Metric::Latency, Unit::Nanoseconds, ns), (Metric::Bandwidth, Unit::GigabytesPerSecond, gbs)] {
            let mut m = bandwidth("0", None, Mix::AllReads, value, None);
            (m.experiment, m.metric, m.unit) = (Experiment::LoadedLatency, metric, unit);
            m.at = Coordinates { delay_cycles: Some(delay), ..at.clone() };
            report.results.push(m);
        }
    }
    report.curves.push(CurveSummary {
        at,
        unloaded_ns: None,
        knee: None,
        saturated_ns: None,
        peak_gbs: None,
        over_saturated: false,
        full_load_by_node: Default::default(),
        shares: Vec::new(),
    });
    report
}

/// The delays of a curve, and others.
const DELAYS: [[u32; 4]; 2] = [[0, 200, 400, 900], [0, 300, 700, 950]];

#[test]
fn curves_are_compared_at_equal_bandwidth_and_not_at_equal_delay() {
    let [before, after] = DELAYS;
    let comparison = compared(&[curve(before, 1.0), curve(before, 1.0)], &[curve(after, 1.2), curve(after, 1.2)]);
    let latencies: Vec<_> = comparison.cells.iter().filter(|c| matches!(c.aspect, Aspect::AtBandwidth { .. })).collect();
    assert_eq!(latencies.len(), 4);
    assert!(latencies.iter().all(|c| (c.ratio - 1.2).abs() < 1e-9 && c.verdict == ComparisonVerdict::Worse), "{latencies:?}");
    let peak = comparison.cells.iter().find(|c| c.aspect == Aspect::PeakBandwidth).unwrap();
    assert_eq!((peak.verdict, comparison.not_compared.len()), (ComparisonVerdict::Same, 0));
}

#[test]
fn curves_and_knees_that_one_side_lacks_are_named() {
    let missing = |before: &Report, after: &Report| {
        let comparison = compared(&[before.clone(), before.clone()], &[after.clone(), after.clone()]);
        let all: Vec<_> = comparison.not_compared.iter().map(|n| (n.aspect, n.metric, n.why)).collect();
        (comparison.cells.len(), all)
    };
    let of_curve = |why| (None, Metric::Latency, why);
    let (whole, nothing) = (curve(DELAYS[0], 1.0), report(machine(), Vec::new()));
    assert_eq!(missing(&whole, &nothing), (0, vec![of_curve(WhyNotCompared::OnlyBefore)]));
    assert_eq!(missing(&nothing, &whole), (0, vec![of_curve(WhyNotCompared::OnlyAfter)]));
    let mut bent = whole.clone();
    bent.curves[0].knee = Some(CurvePoint { delay_cycles: 200, bandwidth_gbs: 80.0, latency_ns: 170.0 });
    let knee = |why| [(Aspect::KneeBandwidth, Metric::Bandwidth), (Aspect::KneeLatency, Metric::Latency)].map(|(a, m)| (Some(a), m, why));
    assert_eq!(missing(&whole, &bent), (5, knee(WhyNotCompared::OnlyAfter).to_vec()));
    assert_eq!(missing(&bent, &whole), (5, knee(WhyNotCompared::OnlyBefore).to_vec()));
    assert_eq!(missing(&bent, &bent), (7, vec![]));
    // One of them has no point below 60 GB/s.
    let low = [25.0, 50.0].map(|gbs| (Some(Aspect::AtBandwidth { gbs }), Metric::Latency, WhyNotCompared::OnlyBefore));
    assert_eq!(missing(&whole, &curve([0, 200, 300, 400], 1.0)), (3, low.to_vec()));
    // Without a reliable point, its knee is none either.
    bent.results.iter_mut().for_each(|m| m.quality.level = QualityLevel::Unreliable);
    assert_eq!(missing(&bent, &bent), (0, vec![of_curve(WhyNotCompared::Unreliable)]));
    assert_eq!(missing(&whole, &bent), (0, vec![of_curve(WhyNotCompared::Unreliable)]));
}

/// Transfers between all of four CPUs, with all lines at home on a node.
fn transfers(home: u32, ns: f64) -> PairMatrix {
    let mut matrix = PairMatrix::new((0..4).collect(), LineState::Hitm, Some(home));
    let estimate = Estimate { value: Some(ns), ..Estimate::default() };
    (0..16).filter(|i| i / 4 != i % 4).for_each(|i| matrix.set(i / 4, i % 4, &estimate, &Quality::default()));
    matrix
}

#[test]
fn matrices_are_compared_by_the_home_of_their_lines_and_named_where_a_side_lacks_them() {
    let run = |homes: &[(u32, f64)]| {
        let mut report = report(machine(), Vec::new());
        report.matrices = homes.iter().map(|(home, ns)| transfers(*home, *ns)).collect();
        report
    };
    // One run on each side, with two homes that differ: this does not show how much runs differ.
    let one = compared(&[run(&[(0, 100.0), (1, 101.0)])], &[run(&[(0, 150.0), (1, 151.0)])]);
    let cells: Vec<_> = one.cells.iter().map(|c| (c.at.memory_node(), c.runs, c.before, c.open)).collect();
    let open = Some(Inconclusive::OneRun);
    assert_eq!(cells.iter().map(|c| (c.0, c.1, c.3)).collect::<Vec<_>>(), [(Some(0), (1, 1), open), (Some(1), (1, 1), open)]);
    assert!(cells.iter().zip([100.0, 101.0]).all(|(cell, ns)| (cell.2 - ns).abs() < 1e-9), "{cells:?}");
    let missing = compared(&[run(&[(0, 100.0)])], &[run(&[(0, 100.0), (1, 101.0)])]).not_compared;
    let [missing] = &missing[..] else { panic!("{missing:?}") };
    assert_eq!((missing.at.memory_node(), missing.aspect), (Some(1), Some(Aspect::PairMedian)));
    assert_eq!((missing.experiment, missing.why), (Experiment::CacheToCacheMatrix, WhyNotCompared::OnlyAfter));
}

#[test]
fn what_a_run_measured_twice_is_one_value_of_one_run() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
    let twice = |random: &mut Xoshiro256PlusPlus, factor| {
        let mut first = run(random, factor, 1);
        first.results.extend(run(random, factor, 1).results);
        first
    };
    let (before, after) = (twice(&mut random, 1.0), twice(&mut random, 1.5));
    let comparison = compared(&[before], &[after]);
    let [cell] = &comparison.cells[..] else { panic!("{comparison:?}") };
    assert_eq!((cell.runs, cell.open), ((1, 1), Some(Inconclusive::OneRun)), "{cell:?}");
    assert!((cell.ratio - 1.5).abs() < 0.1 && cell.ratio_low.is_some(), "{cell:?}");
}

#[test]
fn differences_come_in_order_and_unlike_machines_are_told() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(10);
    let (before, mut after) = (runs(&mut random, 2, 1.0, 1), runs(&mut random, 2, 1.0, 1));
    assert_eq!(compared(&before, &after).differences, []);
    after[0].environment.thp = Some("never".into());
    after[1].machine.identity.model.insert("microcode".into(), "0x2b".into());
    after[0].argv = ["memgauge", "quick", "-o", "x.json"].map(str::to_owned).to_vec();
    let fields: Vec<_> = compared(&before, &after).differences.iter().map(|d| d.field).collect();
    assert_eq!(fields, [DifferentField::Microcode, DifferentField::TransparentHugePages, DifferentField::CommandLine]);
    assert_eq!(unlike(&before, &after), None, "microcode and settings are what people change");
    let mut guests = [before.clone(), after.clone()];
    for (side, name) in guests.iter_mut().zip(["Firecracker", "KVM"]) {
        side.iter_mut().for_each(|report| report.machine.identity.hypervisor = Some(name.into()));
    }
    assert_eq!(unlike(&guests[0], &guests[1]), None, "root reads a more precise name");
    assert_eq!(unlike(&before, &guests[1]).map(|d| d.field), Some(DifferentField::Hypervisor));
    after[0].machine.identity.model_name = Some("another".into());
    assert_eq!(unlike(&before, &after).map(|d| d.field), Some(DifferentField::Cpu));
}
