//! How the numbers of one host changed over time.
//!
//! Change points are found with PELT (R. Killick, P. Fearnhead, I. A. Eckley, "Optimal detection of changepoints with a linear computational
//! cost", Journal of the American Statistical Association 107, 2012): the levels whose squared distances from the logarithms of the values,
//! in units of the noise, are smallest in sum, with a penalty for each level. The noise is that from one run to the next, so that steps do
//! not count as noise. A run that is off alone is drawn to its neighbours first (J. W. Tukey's running medians), because squares would
//! make a level of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_analysis::fleet::robust::median;
use memgauge_analysis::fleet::{
    Change, ChangedNumber, FLEET_VERSION, FleetHistory, HistoryRun, MIN_DIFFERENCE, MIN_ROBUST_Z, Series, SeriesLevel, SeriesPoint,
};
use memgauge_model::experiment::Metric;
use memgauge_model::result::Difference;
use memgauge_model::result::QualityLevel;

use crate::groups::properties;
use crate::hosts::{HostError, Hosts};
use crate::row::{Cell, HostRun, Row};

/// The number of values that a series needs before it is searched for levels: three on each side of a step.
const MIN_VALUES: usize = 6;
/// Runs on which a level rests at least.
const MIN_LEVEL: usize = 2;
/// Runs around one, with itself, whose median it is compared with.
const NEIGHBOURS: usize = 5;
/// Standard deviations to which a run that is off alone is drawn.
const OFF: f64 = 2.0;
/// No noise is smaller than this share.
const MIN_NOISE: f64 = 0.001;

/// The numbers of a host over time, and when they or the host's properties changed. `word`: its name, or the beginning of its machine id.
/// `as_one`: all machines that the word means are one host, which was installed again or renamed.
///
/// # Errors
/// When the word means no host, or several that are not one.
pub fn history(rows: &[Row], word: &str, as_one: bool) -> Result<FleetHistory, HostError> {
    let mut runs: Vec<&Arc<HostRun>> = rows.iter().map(|row| &row.run).collect();
    runs.sort_unstable_by_key(|run| Arc::as_ptr(run));
    runs.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let hosts = Hosts::from_runs(runs.into_iter().map(|run| &**run));
    let chosen = if as_one { hosts.find(word)? } else { BTreeSet::from([hosts.one(word)?]) };
    let own: Vec<&Row> = rows.iter().filter(|row| chosen.iter().any(|id| row.run.is_of(id))).collect();
    let by_id: BTreeMap<(&str, &str), &HostRun> = own.iter().map(|r| ((r.run.started.as_str(), r.run.run_id.as_str()), &*r.run)).collect();
    let runs: Vec<&HostRun> = by_id.values().copied().collect();
    let number: BTreeMap<&str, u32> = runs.iter().map(|run| run.run_id.as_str()).zip(0..).collect();
    let mut cells: BTreeMap<&Cell, BTreeMap<u32, &Row>> = BTreeMap::new();
    for row in own {
        cells.entry(&*row.cell).or_default().insert(number[row.run.run_id.as_str()], row);
    }
    let tests = cells.values().map(BTreeMap::len).sum();
    let series: Vec<Series> = cells.into_iter().map(|(cell, rows)| one_series(cell, &rows, tests)).collect();
    let names: BTreeSet<&str> = runs.iter().map(|run| run.host.as_str()).collect();
    let ids: BTreeSet<&String> = runs.iter().filter_map(|run| run.machine_id_hash.as_ref()).collect();
    Ok(FleetHistory {
        fleet_version: FLEET_VERSION,
        host: names.into_iter().collect::<Vec<_>>().join(", "),
        machine_id_hashes: ids.into_iter().cloned().collect(),
        changes: changes(&runs, &series),
        runs: runs.iter().map(|r| HistoryRun { run_id: r.run_id.clone(), started: r.started.clone(), complete: r.complete }).collect(),
        series,
    })
}

fn one_series(cell: &Cell, rows: &BTreeMap<u32, &Row>, tests: usize) -> Series {
    let point = |(&run, row): (&u32, &&Row)| SeriesPoint {
        run,
        value: row.value,
        low: row.interval.map(|i| i.0),
        high: row.interval.map(|i| i.1),
        quality: row.quality,
        not_measured: row.not_measured.clone(),
    };
    let usable = |(&run, row): (&u32, &&Row)| {
        let reliable = row.quality.is_some_and(|q| q <= QualityLevel::Degraded);
        row.value.filter(|v| reliable && v.is_finite() && *v > 0.0).map(|v| (run, v.ln()))
    };
    let (runs, logs): (Vec<u32>, Vec<f64>) = rows.iter().filter_map(usable).unzip();
    let half = |row: &&Row| row.interval.zip(row.value).map(|((low, high), value)| (high - low).abs() / 2.0 / value / 1.96);
    let mut halves: Vec<f64> = rows.values().filter_map(half).filter(|h| h.is_finite()).collect();
    let noise = noise(&logs).map(|noise| noise.max(median(&mut halves).unwrap_or(0.0)));
    let levels = match noise {
        Some(noise) if logs.len() >= MIN_VALUES => levels(&logs, noise, tests),
        _ => Vec::new(),
    };
    let level = |(first, end): (usize, usize)| SeriesLevel {
        first_run: runs[first],
        last_run: runs[end - 1],
        values: (end - first) as u32,
        median: median(&mut logs[first..end].to_vec()).unwrap_or_default().exp(),
    };
    Series {
        experiment: cell.experiment,
        at: cell.at.clone(),
        metric: cell.metric,
        unit: cell.unit,
        noise,
        points: rows.iter().map(point).collect(),
        levels: levels.into_iter().map(level).collect(),
    }
}

/// The standard deviation of a run's logarithm, from the differences of one run and the next. `None` with fewer than three runs.
fn noise(logs: &[f64]) -> Option<f64> {
    if logs.len() < 3 {
        return None;
    }
    let mut differences: Vec<f64> = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // Of a normal distribution, whose differences are wider by the root of 2. In few differences it is too small on average.
    let n = differences.len() as f64;
    let spread = 1.4826 / std::f64::consts::SQRT_2 * median(&mut differences)? * n / (n - 0.8);
    Some(spread.max(MIN_NOISE))
}

/// Values that are off alone, drawn to the median of the runs around them.
fn without_spikes(logs: &[f64], noise: f64) -> Vec<f64> {
    let side = NEIGHBOURS / 2;
    let calm = |(i, &value): (usize, &f64)| {
        let around = &logs[i.saturating_sub(side)..(i + side + 1).min(logs.len())];
        let middle = median(&mut around.to_vec()).unwrap_or(value);
        value.clamp(middle - OFF * noise, middle + OFF * noise)
    };
    logs.iter().enumerate().map(calm).collect()
}

/// The levels of a series: the first value of each and the one after its last. `tests`: how many values all series of the host have, for
/// the penalty, so that not one of many series changes by chance.
fn levels(logs: &[f64], noise: f64, tests: usize) -> Vec<(usize, usize)> {
    let scaled: Vec<f64> = without_spikes(logs, noise).iter().map(|v| v / noise).collect();
    let penalty = 2.0 * (logs.len().max(2) as f64).ln() + 2.0 * (tests.max(2) as f64).ln();
    let mut levels = pelt(&scaled, penalty);
    // Steps that count as none join what they part; the smallest first.
    loop {
        let middle = |(first, end): (usize, usize)| median(&mut logs[first..end].to_vec()).unwrap_or_default();
        let steps = levels.windows(2).enumerate().map(|(i, pair)| (i, (middle(pair[1]) - middle(pair[0])).abs()));
        let smallest = steps.min_by(|a, b| a.1.total_cmp(&b.1));
        match smallest {
            Some((i, step)) if step < (1.0 + MIN_DIFFERENCE).ln() || step < MIN_ROBUST_Z * noise / 2.0 => {
                levels[i].1 = levels[i + 1].1;
                levels.remove(i + 1);
            }
            _ => return levels,
        }
    }
}

/// The segments with the smallest sum of squared distances from their means, with a penalty for each.
fn pelt(values: &[f64], penalty: f64) -> Vec<(usize, usize)> {
    let n = values.len();
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + value, squares + value * value));
    }
    let cost = |first: usize, end: usize| {
        let (sum, squares) = (sums[end].0 - sums[first].0, sums[end].1 - sums[first].1);
        squares - sum * sum / (end - first) as f64
    };
    // The least cost of the values before each, and where their last segment begins.
    let mut least = vec![(-penalty, 0); n + 1];
    let mut starts: Vec<usize> = vec![0];
    for end in MIN_LEVEL..=n {
        let total = |&first: &usize| (least[first].0 + cost(first, end) + penalty, first);
        let best = starts.iter().filter(|first| end - **first >= MIN_LEVEL).map(total).min_by(|a, b| a.0.total_cmp(&b.0));
        least[end] = best.unwrap_or((f64::INFINITY, 0));
        // A last segment that is worse than beginning another one at `next` stays worse for all ends at which that one is long enough.
        let next = end + 1 - MIN_LEVEL;
        starts.retain(|&first| first + MIN_LEVEL > next || least[first].0 + cost(first, next) <= least[next].0);
        if end + MIN_LEVEL <= n {
            starts.push(end);
        }
    }
    let (mut segments, mut end) = (Vec::new(), n);
    while end > 0 {
        let first = least[end].1;
        segments.push((first, end));
        end = first;
    }
    segments.reverse();
    segments
}

/// Changes of levels and of properties, by the runs between which they happened.
fn changes(runs: &[&HostRun], series: &[Series]) -> Vec<Change> {
    let mut numbers: BTreeMap<(u32, u32), Vec<ChangedNumber>> = BTreeMap::new();
    for (i, one) in series.iter().enumerate() {
        for pair in one.levels.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let ratio = after.median / before.median;
            let worse = (ratio < 1.0) == (one.metric == Metric::Bandwidth);
            let changed = ChangedNumber { series: i as u32, before: before.median, after: after.median, ratio, worse };
            numbers.entry((before.last_run, after.first_run)).or_default().push(changed);
        }
    }
    for (before, after) in (0..runs.len() as u32).zip(1..runs.len() as u32) {
        if !differences(runs[before as usize], runs[after as usize]).is_empty() {
            numbers.entry((before, after)).or_default();
        }
    }
    let change = |((before, after), mut numbers): ((u32, u32), Vec<ChangedNumber>)| {
        numbers.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
        Change { before, after, differences: differences(runs[before as usize], runs[after as usize]), numbers }
    };
    numbers.into_iter().map(change).collect()
}

/// What differs between two runs of a host apart from the numbers.
fn differences(before: &HostRun, after: &HostRun) -> Vec<Difference> {
    let both = properties(&before.fingerprint).into_iter().zip(properties(&after.fingerprint));
    let list = |value: Option<String>| value.into_iter().collect();
    both.filter(|(a, b)| a != b).map(|((field, a), (_, b))| Difference { field, before: list(a), after: list(b) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[f64]) -> Vec<(usize, usize)> {
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        levels(&logs, noise(&logs).unwrap(), 60 * values.len())
    }

    /// Values around `level` that differ by half a percent.
    fn around(level: f64, n: usize, seed: usize) -> Vec<f64> {
        (0..n).map(|i| level * (1.0 + 0.005 * (((i * 7 + seed * 3) % 11) as f64 - 5.0) / 5.0)).collect()
    }

    #[test]
    fn steps_are_found_where_they_are() {
        assert_eq!(found(&around(100.0, 30, 1)), [(0, 30)]);
        assert_eq!(found(&[around(100.0, 12, 1), around(90.0, 9, 2)].concat()), [(0, 12), (12, 21)]);
        assert_eq!(
            found(&[around(100.0, 12, 1), around(90.0, 9, 2), around(100.0, 10, 3)].concat()),
            [(0, 12), (12, 21), (21, 31)],
            "there and back"
        );
    }

    #[test]
    fn one_run_that_is_off_is_no_level() {
        let mut values = around(100.0, 30, 1);
        (values[11], values[20]) = (70.0, 140.0);
        assert_eq!(found(&values), [(0, 30)]);
    }

    #[test]
    fn steps_below_three_percent_are_none() {
        assert_eq!(found(&[around(100.0, 40, 1), around(98.0, 40, 2)].concat()), [(0, 80)]);
    }

    #[test]
    fn pruning_changes_nothing() {
        // The same search over all segments.
        fn whole(values: &[f64], penalty: f64) -> f64 {
            let cost = |part: &[f64]| {
                let mean = part.iter().sum::<f64>() / part.len() as f64;
                part.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
            };
            let mut least = vec![f64::INFINITY; values.len() + 1];
            least[0] = -penalty;
            for end in MIN_LEVEL..=values.len() {
                for first in (0..=end - MIN_LEVEL).filter(|first| *first == 0 || *first >= MIN_LEVEL) {
                    least[end] = least[end].min(least[first] + cost(&values[first..end]) + penalty);
                }
            }
            least[values.len()]
        }
        let value = |i: usize| ((i * 7919 + 13) % 101) as f64 / 30.0 + if i % 50 > 30 { 6.0 } else { 0.0 };
        let values: Vec<f64> = (0..160).map(value).collect();
        for penalty in [3.0, 10.0, 40.0] {
            let cost = |&(first, end): &(usize, usize)| {
                let mean = values[first..end].iter().sum::<f64>() / (end - first) as f64;
                values[first..end].iter().map(|v| (v - mean).powi(2)).sum::<f64>() + penalty
            };
            let pruned = pelt(&values, penalty).iter().map(cost).sum::<f64>() - penalty;
            assert!((pruned - whole(&values, penalty)).abs() < 1e-6, "{penalty}: {pruned}");
        }
    }
}
