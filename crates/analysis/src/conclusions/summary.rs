//! The summary of a run: the numbers that most readers look for, and how far to trust them.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{ChaseOrder, Experiment, LineState, Metric};
use memgauge_model::result::{
    Absent, Measurement, Over, OverWhat, PairMatrix, QualityLevel, QualityReason, Report, Summary, SummaryValue, Trust, TrustReason,
};
use memgauge_model::stats;
use memgauge_model::traffic::Mix;

/// The summary's trust is degraded if more than this share of the results is degraded or missing, and unreliable if more than this share is
/// unreliable.
const DEGRADED: f64 = 0.25;

/// Sums up a report. Unreliable results are left out.
pub fn summarise(report: &Report) -> Summary {
    sum_up(report, false)
}

/// The same, but a number without a reliable result comes from the unreliable ones, and its quality says so. For pages that mark it.
pub fn with_unreliable(report: &Report) -> Summary {
    sum_up(report, true)
}

/// The measurements with the highest bandwidth of loads alone and of any mix: those of `peak_read_gbs` and `peak_any_gbs` of [`with_unreliable`].
pub fn peaks(report: &Report) -> [Option<&Measurement>; 2] {
    let streams = select(report, is_streaming);
    let reads: Vec<&Measurement> = streams.iter().copied().filter(|m| m.at.mix == Some(Mix::AllReads)).collect();
    [highest(&reads, true).1, highest(&streams, true).1]
}

fn sum_up(report: &Report, doubt: bool) -> Summary {
    let nodes = report.machine.topology.nodes.iter().filter(|n| !n.cpus.is_empty() && n.has_memory());
    let with_cpus: Vec<u32> = nodes.map(|n| n.id).collect();
    let is_local = |cpu, memory| report.machine.topology.is_local(cpu, memory);
    let local = select(report, |m| is_idle(m) && m.at.cpu_node.is_some() && m.at.cpu_node == m.at.memory_node());
    let remote = select(report, |m| {
        let node = m.at.memory_node();
        let apart = m.at.cpu_node.zip(node).is_some_and(|(cpu, memory)| !is_local(cpu, memory));
        is_idle(m) && apart && node.is_some_and(|n| with_cpus.contains(&n))
    });
    let mut idle_latency_remote_ns =
        median(&usable(&remote, doubt), &remote, OverWhat::Pairs, |m| (m.at.cpu_node, m.at.cpu, m.at.memory_node()));
    if remote.is_empty() && with_cpus.len() < 2 {
        idle_latency_remote_ns.absent = Some(Absent::OneNode);
    }
    let by_cpu = local.iter().any(|m| m.experiment == Experiment::IdleLatencyPerCpu);
    let what = if by_cpu { OverWhat::Cpus } else { OverWhat::Nodes };
    let streams = select(report, is_streaming);
    let (peak_any_gbs, fastest) = highest(&streams, doubt);
    let reads: Vec<&Measurement> = streams.into_iter().filter(|m| m.at.mix == Some(Mix::AllReads)).collect();
    let transfers = |state| {
        let listed = select(report, move |m| is_transfer(m) && m.at.state == Some(state));
        let matrices: Vec<&PairMatrix> = report.matrices.iter().filter(|m| m.state == state && m.memory_dir.is_none()).collect();
        match matrices.is_empty() {
            true => median(&usable(&listed, doubt), &listed, OverWhat::Pairs, |m| (m.at.cpu, m.at.holder_cpu)),
            false => median_of_pairs(&matrices),
        }
    };
    Summary {
        idle_latency_local_ns: median(&usable(&local, doubt), &local, what, |m| m.at.cpu.filter(|_| by_cpu).or(m.at.cpu_node)),
        idle_latency_remote_ns,
        peak_read_gbs: highest(&reads, doubt).0,
        peak_any_gbs,
        peak_any_mix: fastest.and_then(|m| m.at.mix),
        transfer_hit_ns: transfers(LineState::Hit),
        transfer_hitm_ns: transfers(LineState::Hitm),
        trust: trust(report),
    }
}

/// The results that may be a headline: the reliable ones, or, with `doubt` and if there are none, all that have a value.
fn usable<'a>(results: &[&'a Measurement], doubt: bool) -> Vec<&'a Measurement> {
    let with_value = |reliable: bool| results.iter().copied().filter(move |m| m.estimate.value.is_some() && (!reliable || is_reliable(m)));
    let reliable: Vec<&Measurement> = with_value(true).collect();
    if reliable.is_empty() && doubt { with_value(false).collect() } else { reliable }
}

fn select(report: &Report, is_wanted: impl Fn(&Measurement) -> bool) -> Vec<&Measurement> {
    report.results.iter().filter(|m| m.at.memory_dir.is_none() && is_wanted(m)).collect()
}

fn is_idle(m: &Measurement) -> bool {
    matches!(m.experiment, Experiment::IdleLatency | Experiment::IdleLatencyPerCpu) && m.at.order == Some(ChaseOrder::WindowLocal)
}

fn is_streaming(m: &Measurement) -> bool {
    use Experiment as E;
    matches!(m.experiment, E::Bandwidth | E::BandwidthMatrix | E::BandwidthRamp | E::BandwidthSearch) && m.metric == Metric::Bandwidth
}

fn is_transfer(m: &Measurement) -> bool {
    matches!(m.experiment, Experiment::CacheToCache | Experiment::CacheToCacheMatrix)
}

/// The median of results, with the hull of their intervals, and what it is over. `planned` tells why there are none.
fn median<P: Ord>(results: &[&Measurement], planned: &[&Measurement], what: OverWhat, place: impl Fn(&Measurement) -> P) -> SummaryValue {
    let all: Vec<&Estimate> = results.iter().map(|m| &m.estimate).collect();
    let values: Vec<f64> = all.iter().filter_map(|e| e.value).collect();
    let Some(value) = stats::median(&values) else { return absent(planned) };
    let places = results.iter().map(|m| place(m)).collect::<BTreeSet<_>>().len();
    let over = match places {
        1 => Over { count: values.len() as u32, what: OverWhat::Results },
        places => Over { count: places as u32, what },
    };
    SummaryValue {
        value: Some(value),
        ci95_low: all.iter().filter_map(|e| e.ci95_low).min_by(f64::total_cmp),
        ci95_high: all.iter().filter_map(|e| e.ci95_high).max_by(f64::total_cmp),
        over: Some(over).filter(|over| over.count > 1),
        quality: results.iter().map(|m| m.quality.level).max(),
        absent: None,
    }
}

/// The median of all pairs, with the hull of their intervals.
fn median_of_pairs(matrices: &[&PairMatrix]) -> SummaryValue {
    let pairs = || matrices.iter().flat_map(|m| m.pairs());
    let Some(value) = stats::median(&pairs().map(|p| p.value).collect::<Vec<_>>()) else {
        return SummaryValue { absent: Some(Absent::NotMeasured), ..SummaryValue::default() };
    };
    let ends = |side: f64| pairs().filter_map(move |p| Some(p.value + side * p.half_width?));
    let degraded = matrices.iter().any(|m| m.counts().1 > 0);
    let over = Over { count: pairs().count() as u32, what: OverWhat::Pairs };
    SummaryValue {
        value: Some(value),
        ci95_low: ends(-1.0).min_by(f64::total_cmp),
        ci95_high: ends(1.0).max_by(f64::total_cmp),
        over: Some(over).filter(|over| over.count > 1),
        quality: Some(if degraded { QualityLevel::Degraded } else { QualityLevel::Good }),
        absent: None,
    }
}

/// The highest of several results, and which it is.
fn highest<'a>(all: &[&'a Measurement], doubt: bool) -> (SummaryValue, Option<&'a Measurement>) {
    let usable = usable(all, doubt).into_iter();
    let best = usable.filter_map(|m| Some((m.estimate.value?, m))).max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((value, m)) = best else { return (absent(all), None) };
    let Estimate { ci95_low, ci95_high, .. } = m.estimate;
    (SummaryValue { value: Some(value), ci95_low, ci95_high, quality: Some(m.quality.level), ..SummaryValue::default() }, Some(m))
}

/// Whether the number may be a headline.
fn is_reliable(m: &Measurement) -> bool {
    m.quality.level != QualityLevel::Unreliable
}

/// Why none of these results, which are those planned, is a headline.
fn absent(planned: &[&Measurement]) -> SummaryValue {
    let why = match () {
        () if planned.is_empty() => Absent::NotPlanned,
        () if planned.iter().any(|m| m.estimate.value.is_some()) => Absent::Unreliable,
        () => Absent::NotMeasured,
    };
    SummaryValue { absent: Some(why), ..SummaryValue::default() }
}

/// How far to trust the numbers of a run.
fn trust(report: &Report) -> Trust {
    let results = &report.results;
    let count = |level| results.iter().filter(|m| m.quality.level == level).count() as u32;
    let (mut good, mut degraded, mut missing) = (count(QualityLevel::Good), count(QualityLevel::Degraded), count(QualityLevel::None));
    let unreliable = count(QualityLevel::Unreliable);
    let mut by_reason: BTreeMap<QualityReason, u32> = BTreeMap::new();
    for reason in results.iter().flat_map(|m| &m.quality.reasons) {
        *by_reason.entry(*reason).or_default() += 1;
    }
    for matrix in &report.matrices {
        let counts = matrix.counts();
        (good, degraded, missing) = (good + counts.0, degraded + counts.1, missing + counts.2);
        matrix.reasons.iter().for_each(|(reason, pairs)| *by_reason.entry(*reason).or_default() += pairs);
    }
    let mut reasons: Vec<TrustReason> = by_reason.into_iter().map(|(reason, results)| TrustReason { reason, results }).collect();
    reasons.sort_by_key(|r| std::cmp::Reverse(r.results));
    let values = good + degraded + unreliable;
    let above = |number: u32, of: u32| f64::from(number) > DEGRADED * f64::from(of);
    let level = match () {
        () if values == 0 => QualityLevel::None,
        // Missing numbers make those that are there no better.
        () if above(unreliable, values) => QualityLevel::Unreliable,
        () if above(degraded + unreliable + missing, values + missing) => QualityLevel::Degraded,
        () => QualityLevel::Good,
    };
    Trust { level, good, degraded, unreliable, missing, reasons }
}

#[cfg(test)]
mod tests;
