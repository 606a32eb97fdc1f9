//! Better, worse, the same, or not known yet.

use std::collections::BTreeMap;

use super::effect::{Effect, effect, t_quantile};
use super::outcome::{CellComparison, ComparisonOptions, ComparisonVerdict, Inconclusive, MetricMean};
use super::quantities::Pair;
use crate::experiment::{Experiment, Metric};

/// The share of cells called different that may be so by chance.
const FALSE_DISCOVERIES: f64 = 0.05;
/// More runs than this nobody makes.
const MAX_RUNS: u32 = 100;

/// Judges every pair.
pub(super) fn judge(pairs: &[Pair], options: ComparisonOptions) -> Vec<CellComparison> {
    let seed = |i: usize| options.seed.wrapping_add(i as u64);
    let effects = pairs.iter().enumerate().filter_map(|(i, pair)| Some((pair, effect(&pair.before, &pair.after, seed(i))?)));
    let effects: Vec<(&Pair, Effect)> = effects.collect();
    let adjusted = adjust(&effects.iter().map(|(_, e)| e.spread.map(|s| s.p)).collect::<Vec<_>>());
    effects.into_iter().zip(adjusted).map(|((pair, effect), q)| cell(pair, &effect, q, options.margin)).collect()
}

/// Probabilities adjusted for their number (Y. Benjamini, Y. Hochberg, "Controlling the False Discovery Rate", Journal of the Royal
/// Statistical Society B 57, 1995). If nothing differs, the chance that any cell is called different is 5 %, too.
fn adjust(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = ps.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut adjusted, mut least, n) = (vec![None; ps.len()], 1.0_f64, order.len() as f64);
    for (rank, (i, p)) in order.into_iter().enumerate().rev() {
        least = least.min(p * n / (rank + 1) as f64);
        adjusted[i] = Some(least);
    }
    adjusted
}

fn cell(pair: &Pair, effect: &Effect, q: Option<f64>, margin: f64) -> CellComparison {
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
        runs_to_settle: open.and_then(|_| runs_to_settle(effect, margin)),
    }
}

/// How many runs of each side give an interval that either excludes 1 or is within the margin, if ratio and spread stay as they are.
fn runs_to_settle(effect: &Effect, margin: f64) -> Option<u32> {
    let deviation = effect.spread?.run_deviation?;
    let distance = effect.ratio.ln().abs();
    let room = (1.0 + margin).ln() - distance;
    let narrow_enough = distance.max(room);
    let half = |n: u32| t_quantile(2.0 * f64::from(n) - 2.0) * deviation * (2.0 / f64::from(n)).sqrt();
    (2..=MAX_RUNS).find(|&n| half(n) < narrow_enough)
}

/// The worst verdict that counts. Without a cell nothing is known.
pub(super) fn overall(cells: &[CellComparison]) -> ComparisonVerdict {
    let any = |verdict| cells.iter().any(|c| c.verdict == verdict);
    match () {
        () if any(ComparisonVerdict::Worse) => ComparisonVerdict::Worse,
        () if cells.is_empty() || any(ComparisonVerdict::Inconclusive) => ComparisonVerdict::Inconclusive,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_adjusted_as_published() {
        // The example of Benjamini and Hochberg (1995), section 3: of 15 tests four are rejected at 5 %.
        let ps = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000];
        let adjusted = adjust(&ps.map(Some));
        assert_eq!(adjusted.iter().filter(|q| q.unwrap() <= 0.05).count(), 4);
        assert_eq!(adjust(&[None, Some(0.03)]), [None, Some(0.03)]);
    }
}
