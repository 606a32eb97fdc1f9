//! Better, worse, the same, or not known yet.

use std::collections::BTreeMap;

use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::significance::{adjust, t_quantile, upper_quantile};

use super::effect::{BeforeAfter, effect};
use super::outcome::{CellComparison, ComparisonOptions, ComparisonVerdict, Inconclusive, MetricMean};
use super::quantities::QuantityRuns;

/// The share of cells called different that may be so by chance.
const FALSE_DISCOVERIES: f64 = 0.05;
/// More runs than this nobody makes.
const MAX_RUNS: u32 = 100;

/// Judges every pair. If the sides are in `different` states of the machine, nothing is shown.
pub(super) fn judge(pairs: &[QuantityRuns], options: ComparisonOptions, different: bool) -> Vec<CellComparison> {
    let seed = |i: usize| options.seed.wrapping_add(i as u64);
    let effects = pairs.iter().enumerate().filter_map(|(i, pair)| Some((pair, effect(&pair.before, &pair.after, seed(i))?)));
    let effects: Vec<(&QuantityRuns, BeforeAfter)> = effects.collect();
    let adjusted = adjust(&effects.iter().map(|(_, e)| e.spread.map(|s| s.p)).collect::<Vec<_>>());
    let judged = effects.into_iter().zip(adjusted).map(|((pair, effect), q)| cell(pair, &effect, q, options.margin));
    let open = |cell: CellComparison| CellComparison {
        verdict: ComparisonVerdict::Inconclusive,
        open: Some(Inconclusive::AnotherState),
        runs_to_settle: None,
        ..cell
    };
    judged.map(|cell| if different { open(cell) } else { cell }).collect()
}

fn cell(pair: &QuantityRuns, effect: &BeforeAfter, q: Option<f64>, margin: f64) -> CellComparison {
    let spread = effect.spread;
    let runs = (pair.before.len() as u32, pair.after.len() as u32);
    let inconclusive = |why| (ComparisonVerdict::Inconclusive, Some(why));
    let (verdict, open) = match spread.zip(q) {
        _ if runs.0 < 2 || runs.1 < 2 => inconclusive(Inconclusive::OneRun),
        None => inconclusive(Inconclusive::NoInterval),
        Some((s, _)) if s.low >= 1.0 - margin && s.high <= 1.0 + margin => (ComparisonVerdict::Same, None),
        Some((_, q)) if q <= FALSE_DISCOVERIES => {
            let better = (effect.ratio > 1.0) == (pair.metric == Metric::Bandwidth);
            (if better { ComparisonVerdict::Better } else { ComparisonVerdict::Worse }, None)
        }
        Some((s, _)) if s.low > 1.0 || s.high < 1.0 => inconclusive(Inconclusive::ManyCells),
        Some(_) => inconclusive(Inconclusive::IntervalTooWide),
    };
    CellComparison {
        experiment: pair.experiment,
        at: pair.at.clone(),
        aspect: pair.aspect,
        metric: pair.metric,
        unit: pair.unit,
        before: effect.before,
        after: effect.after,
        runs,
        ratio: effect.ratio,
        ratio_low: spread.map(|s| s.low),
        ratio_high: spread.map(|s| s.high),
        q,
        verdict,
        open,
        runs_to_settle: open.and_then(|_| runs_to_settle(effect, q, runs, margin)),
    }
}

/// How many runs of each side, more than there are, show a difference among this number of cells or give an interval within the margin, if
/// ratio and spread stay as they are.
fn runs_to_settle(effect: &BeforeAfter, q: Option<f64>, runs: (u32, u32), margin: f64) -> Option<u32> {
    let (spread, q) = effect.spread.zip(q)?;
    let deviation = spread.run_deviation?;
    let distance = effect.ratio.ln().abs();
    let room = (1.0 + margin).ln() - distance;
    // A difference counts if its probability is at most this share of the false discovery rate: its rank over the number of cells.
    let share = if q > 0.0 { (spread.p / q).clamp(f64::MIN_POSITIVE, 1.0) } else { 1.0 };
    let settles = |n: &u32| {
        let (n, freedom) = (f64::from(*n), 2.0 * f64::from(*n) - 2.0);
        let error = deviation * (2.0 / n).sqrt();
        upper_quantile(FALSE_DISCOVERIES * share / 2.0, freedom) * error < distance || t_quantile(freedom) * error < room
    };
    let (fewer, more) = (runs.0.min(runs.1), runs.0.max(runs.1));
    ((fewer + 1).max(more).max(2)..=MAX_RUNS).find(settles)
}

/// The share of an experiment's numbers that may be inconclusive while the rest speaks for them.
const MAY_BE_OPEN: f64 = 0.25;

/// The worst verdict that counts. One inconclusive number among dozens of its kind leaves the others their say: a kind is an experiment's
/// latencies or bandwidths, and is not known where more than a quarter of it is inconclusive. Without a cell nothing is known.
pub(super) fn overall(cells: &[CellComparison]) -> ComparisonVerdict {
    let any = |verdict| cells.iter().any(|c| c.verdict == verdict);
    let mut kinds: BTreeMap<(Experiment, Metric), (usize, usize)> = BTreeMap::new();
    for cell in cells {
        let (open, all) = kinds.entry((cell.experiment, cell.metric)).or_default();
        *open += usize::from(cell.verdict == ComparisonVerdict::Inconclusive);
        *all += 1;
    }
    let unknown = kinds.values().any(|(open, all)| *open as f64 > MAY_BE_OPEN * *all as f64);
    match () {
        () if any(ComparisonVerdict::Worse) => ComparisonVerdict::Worse,
        () if cells.is_empty() || unknown => ComparisonVerdict::Inconclusive,
        () if any(ComparisonVerdict::Better) => ComparisonVerdict::Better,
        () => ComparisonVerdict::Same,
    }
}

/// The geometric means of ratios, by experiment and metric.
pub(super) fn means(cells: &[CellComparison]) -> Vec<MetricMean> {
    let mut logs: BTreeMap<(Experiment, Metric), Vec<f64>> = BTreeMap::new();
    cells.iter().for_each(|c| logs.entry((c.experiment, c.metric)).or_default().push(c.ratio.ln()));
    let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    logs.into_iter()
        .map(|((experiment, metric), logs)| MetricMean { experiment, metric, cells: logs.len() as u32, ratio: mean(&logs) })
        .collect()
}
