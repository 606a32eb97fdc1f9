//! Experiments with loaders: bandwidth, and latency under load by a chase beside them, at injection delays that spread the points evenly over
//! bandwidth. The kernels are those that short trials found fastest.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use memgauge_analysis::conclusions::curve;
use memgauge_model::counters::WorkUnit;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Coordinates, Metric};
use memgauge_model::metrics;
use memgauge_model::plan::{Delays, LoadCurve, Loading, Traffic};
use memgauge_model::result::{CurvePoint, CurveSummary, Evidence, Measurement, Placement};
use memgauge_model::traffic::LineUse;
use memgauge_model::units::Bytes;
use memgauge_os::memory::Buffer;
use memgauge_planner::cost;

use super::loaders::LoaderGroup;
use super::sampling::{Axis, BANDWIDTH, LATENCY, Series, Workload, chase_window, hop_count};
use super::trials;
use crate::burst::chase::Chase;
use crate::burst::counters::certain;
use crate::error::{Result, chase_lost};
use crate::integrity::CheckedBuffers;
use crate::kernel_choice::ChosenKernels;
use crate::measured::{Measured, Subject};
use crate::memory::combined_pages;
use crate::session::Session;
use crate::stores::StoresRead;
use crate::time_budget::TimeBudget;

pub(crate) fn measure_bandwidth(session: &mut Session<'_>, subject: Subject<'_>, loading: &Loading, measured: &mut Measured) -> Result {
    let Loading { loaders, traffic, delay } = loading;
    let delay = *delay;
    let group = LoaderGroup::prepare(session, loaders, traffic)?;
    let checked = group.write_checked(session)?;
    let workload = Workload { probe: None, loaders: Some(&group), axis: Axis::Nothing };
    workload.watch(session)?;
    let (chosen, stores, loads) = session.unwatched(|session| {
        let chosen = trials::choose_kernels(session, &group)?;
        let stores = trials::stores_read(session, &group, &chosen)?;
        let loads = group.loads(&chosen, delay)?;
        Ok::<_, NotMeasured>((chosen, stores, loads))
    })?;
    let mut series = workload.series(None, loads, None);
    let metric = match persisted_block(traffic) {
        Some(block) => {
            series.per_block = Some(block);
            Metric::Latency
        }
        None => Metric::Bandwidth,
    };
    let series = workload.sample_point(session, series, None, measured)?;
    let estimate = series.samples.estimate_with_drift(0, session.budget.stop.relative_half_width);
    let mut evidence = series.load_evidence(session, &group, &chosen);
    let (stores, in_memory) = (stores.at_delay(group.longest_delay(delay)), group.memory_sized(session.context.machine));
    evidence.traffic = estimate.value.filter(|_| metric == Metric::Bandwidth).map(|gbs| series.load_totals.traffic(gbs, stores, in_memory));
    series.unwatch(session, &mut evidence);
    evidence.integrity = checked.map(|mut checked| checked.end(session, measured)).transpose()?;
    let certain = group.certain(session.context.machine, &chosen, None);
    let counters = session.counted(measured, &series.load_totals.counters, WorkUnit::Line, certain);
    let samples = Some(series.samples.keep(0));
    let result = subject.judge(subject.at.clone(), metric, estimate, evidence);
    measured.add(Measurement { counters, samples, ..result });
    Ok(())
}

/// Bytes that traffic loads and stores for each block that it makes durable; `None` for traffic that makes nothing durable.
fn persisted_block(traffic: &Traffic) -> Option<Bytes> {
    let block = traffic.block?;
    match traffic.form.line {
        LineUse::Persisted(_) => Some(block),
        LineUse::ReadBack(_) => Some(Bytes(2 * block.0)),
        _ => None,
    }
}

/// Points are added while two neighbours are further apart than this share of the peak.
const LARGEST_GAP: f64 = 0.08;

/// The delay that an adaptive curve needs next; `None` when it needs none, or needs one that was tried and left no point: its threads got
/// no time in many times its budget, and would get none again.
fn adaptive(points: &[CurvePoint], max_points: u32, tried: impl Fn(u32) -> bool) -> Option<u32> {
    curve::next_delay(points, max_points, LARGEST_GAP).filter(|&delay| !tried(delay))
}

/// The delays of a curve: those of the plan or adaptive ones, and then those that find the latency at shares of the peak.
struct NextDelay<'a> {
    planned: std::vec::IntoIter<u32>,
    max_adaptive: Option<u32>,
    shares: Peekable<std::slice::Iter<'a, u32>>,
    /// Delays tried for the first of `shares`.
    tries: u32,
}

impl<'a> NextDelay<'a> {
    fn new(curve: &'a LoadCurve, budget: &TimeBudget<'_>) -> Self {
        let (planned, max_adaptive) = match &curve.delays {
            Delays::Cycles(list) => (budget.point_order(list.len(), |_| false).into_iter().map(|index| list[index]).collect(), None),
            // `curve::next_delay` begins with the two ends itself.
            Delays::Adaptive { points } => (Vec::new(), Some(*points)),
        };
        Self { planned: planned.into_iter(), max_adaptive, shares: curve.at_percent.iter().peekable(), tries: 0 }
    }

    fn next(&mut self, points: &[CurvePoint], tried: impl Fn(u32) -> bool) -> Option<u32> {
        let planned = self.planned.next().or_else(|| adaptive(points, self.max_adaptive?, &tried));
        planned.or_else(|| self.next_for_share(points, tried))
    }

    fn next_for_share(&mut self, points: &[CurvePoint], tried: impl Fn(u32) -> bool) -> Option<u32> {
        while let Some(&&percent) = self.shares.peek() {
            // A delay whose chase got no time left no point; it is not tried again.
            if let Some(delay) = curve::next_for_share(points, percent, self.tries).filter(|delay| !tried(*delay)) {
                self.tries += 1;
                return Some(delay);
            }
            self.shares.next();
            self.tries = 0;
        }
        None
    }
}

struct Setup<'a> {
    curve: &'a LoadCurve,
    group: LoaderGroup,
    chosen: ChosenKernels,
    /// Whether plain stores read lines first, for loaders without delay.
    stores: StoresRead,
    buffer: Arc<Buffer>,
    checked: Option<CheckedBuffers>,
}

pub(crate) fn measure_curve(session: &mut Session<'_>, subject: Subject<'_>, curve: &LoadCurve, measured: &mut Measured) -> Result {
    let group = LoaderGroup::prepare(session, &curve.loaders, &curve.traffic)?;
    let checked = group.write_checked(session)?;
    let chosen = trials::choose_kernels(session, &group)?;
    let stores = trials::stores_read(session, &group, &chosen)?;
    let buffer = session.chase_buffer(&curve.probe.buffer, 0)?;
    let chase = Chase::new(session.ring(&curve.probe, curve.order, &buffer, 0)?);
    let mut chase = session.settle(curve.probe.cpu, chase, curve.order, curve.probe.buffer.bytes)?;
    let mut setup = Setup { curve, group, chosen, stores, buffer, checked };
    let (mut delays, most_points) = (NextDelay::new(curve, &session.budget), cost::curve_points(&curve.delays, &curve.at_percent));
    let mut points = MeasuredPoints::default();
    let outcome = loop {
        let Some(delay) = delays.next(&points.points, |delay| points.by_delay.contains_key(&delay)) else { break Ok(()) };
        if session.interrupted() {
            break Err(NotMeasured::Interrupted);
        }
        session.budget.begin_point(most_points.saturating_sub(points.by_delay.len()));
        let point;
        (point, chase) = match measure_point(session, subject, &mut setup, delay, chase, measured) {
            Ok(done) => done,
            // The points before are kept.
            Err(error) => break Err(error),
        };
        measured.show(&mut session.progress);
        points.add(delay, point);
        session.progress.within_cell(points.by_delay.len() as f64 / most_points.max(1) as f64);
    };
    measured.curves.push(points.summarise(subject.at, &curve.at_percent));
    outcome
}

/// A point of a curve as it was judged.
struct MeasuredPoint {
    latency: Estimate,
    bandwidth: Estimate,
    /// Whether conclusions may be drawn from both.
    reliable: bool,
}

#[derive(Default)]
struct MeasuredPoints {
    /// Those that have values.
    points: Vec<CurvePoint>,
    by_delay: BTreeMap<u32, MeasuredPoint>,
}

impl MeasuredPoints {
    fn add(&mut self, delay: u32, point: MeasuredPoint) {
        if let (Some(latency_ns), Some(bandwidth_gbs)) = (point.latency.value, point.bandwidth.value) {
            self.points.push(CurvePoint { delay_cycles: delay, bandwidth_gbs, latency_ns });
        }
        self.by_delay.insert(delay, point);
    }

    /// The curve, and its shares of the peak, by reliable points.
    fn summarise(&self, at: &Coordinates, at_percent: &[u32]) -> CurveSummary {
        let estimates = |delay: u32| self.by_delay.get(&delay).map(|point| (point.latency.clone(), point.bandwidth.clone()));
        let is_reliable = |delay: u32| self.by_delay.get(&delay).is_some_and(|point| point.reliable);
        let shares = at_percent.iter().map(|&percent| curve::at_share(&self.points, percent, estimates, is_reliable)).collect();
        CurveSummary { shares, ..curve::summarise(at.clone(), &self.points, estimates, is_reliable) }
    }
}

/// Measures and records latency and bandwidth (the probe's included) at one delay. Returns both, and the chase to go on with.
fn measure_point(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    setup: &mut Setup<'_>,
    delay: u32,
    chase: Chase,
    measured: &mut Measured,
) -> Result<(MeasuredPoint, Chase)> {
    let Setup { curve, group, chosen, buffer, checked, .. } = &mut *setup;
    let probe = &curve.probe;
    let workload = Workload { probe: Some(probe), loaders: Some(group), axis: Axis::Delay(delay) };
    let loads = group.loads(chosen, delay)?;
    workload.watch(session)?;
    let series = workload.series(Some(chase), loads, curve.histogram);
    let mut series = workload.sample_point(session, series, curve.hops.map(|hops| hop_count(hops, probe)), measured)?;
    let chase = series.chase.take().ok_or_else(|| chase_lost(probe.cpu))?;
    // Its buffer has no checksums, and is half of the memory in use: at least no pointer in it may have changed.
    match checked {
        Some(_) => session.check_all_links(probe.cpu, chase.ring())?,
        None => session.check_links(probe.cpu, chase.ring())?,
    }
    let mut evidence = series.load_evidence(session, group, chosen);
    evidence.kernel = format!("chase beside {}", evidence.kernel);
    evidence.threads += 1;
    evidence.buffer = Bytes(evidence.buffer.0 + probe.buffer.bytes.0);
    evidence.window = Some(chase_window(curve.order, probe));
    evidence.stride = Some(probe.stride);
    let loaders = group.buffers();
    let loaders = loaders.iter().map(|(buffer, bytes)| (buffer.pages(), *bytes));
    evidence.pages = combined_pages(loaders.chain([(buffer.pages(), probe.buffer.bytes)]));
    evidence.placement = Placement::combined([evidence.placement, buffer.placement_now()]);
    series.unwatch(session, &mut evidence);
    evidence.integrity = checked.as_mut().map(|checked| checked.end(session, measured)).transpose()?;
    let at = workload.axis.coordinates(subject.at);
    Ok((record_point(session, subject.at(&at), setup, series, evidence, measured), chase))
}

/// Records both numbers of a point.
fn record_point(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    setup: &Setup<'_>,
    series: Series,
    evidence: Evidence,
    measured: &mut Measured,
) -> MeasuredPoint {
    let target = session.budget.stop.relative_half_width;
    let latency = series.samples.estimate_with_drift(LATENCY, target);
    let bandwidth = series.samples.estimate_with_drift(BANDWIDTH, target);
    let at = subject.at;
    let (machine, line) = (session.context.machine, session.context.line().0 as f64);
    let delay = at.delay_cycles.unwrap_or(0);
    let (stores, in_memory) = (setup.stores.at_delay(setup.group.longest_delay(delay)), setup.group.memory_sized(machine));
    let both = bandwidth.value.zip(latency.value);
    // The bandwidth includes the chase's line per hop, which is not part of the loaders' traffic.
    let traffic = both.map(|(gbs, ns)| series.load_totals.traffic(gbs - line / ns, stores, in_memory));
    let chase_certain = certain(machine, setup.curve.probe.cpu, setup.curve.probe.buffer.bytes);
    let counters = session.counted(measured, &series.chase_counters, WorkUnit::Hop, chase_certain);
    let result = subject.judge(at.clone(), Metric::Latency, latency.clone(), evidence.clone());
    let (reliable, both) = (result.is_reliable(), both.filter(|_| result.estimate.value.is_some()));
    let distribution = series.histogram.and_then(memgauge_model::distribution::Recorder::finish);
    let samples = Some(series.samples.keep(LATENCY));
    measured.add(Measurement { distribution, counters, samples, ..result });
    let load_certain = setup.group.certain(machine, &setup.chosen, None);
    let counters = session.counted(measured, &series.load_totals.counters, WorkUnit::Line, load_certain);
    let lines_in_flight = both.map(|(gbs, ns)| metrics::lines_in_flight(gbs, ns, line));
    let result = subject.judge(at.clone(), Metric::Bandwidth, bandwidth.clone(), Evidence { traffic, ..evidence });
    let reliable = reliable && result.is_reliable();
    let samples = Some(series.samples.keep(BANDWIDTH));
    measured.add(Measurement { counters, lines_in_flight, samples, ..result });
    MeasuredPoint { latency, bandwidth, reliable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_unreliable_point_is_a_knee_or_an_end() {
        // Loads from the heaviest to the lightest; the knee is at delay 100.
        let curve = [(0, 100.0, 300.0), (50, 95.0, 200.0), (100, 90.0, 110.0), (400, 50.0, 100.0), (20_000, 1.0, 95.0)];
        let summary = |unreliable: &[u32]| {
            let estimate =
                |v: f64| Estimate { value: Some(v), ci95_low: Some(v * 0.995), ci95_high: Some(v * 1.005), ..Estimate::default() };
            let mut measured = MeasuredPoints::default();
            for (delay, gbs, ns) in curve {
                let reliable = !unreliable.contains(&delay);
                measured.add(delay, MeasuredPoint { latency: estimate(ns), bandwidth: estimate(gbs), reliable });
            }
            measured.summarise(&Coordinates::default(), &[90])
        };
        let delays = |summary: &CurveSummary| (summary.knee.map(|k| k.delay_cycles), summary.shares[0].delay_cycles);
        let all = summary(&[]);
        assert_eq!((delays(&all), all.unloaded_ns, all.saturated_ns), ((Some(100), Some(100)), Some(95.0), Some(300.0)));
        assert_eq!(delays(&summary(&[100])), (Some(400), Some(50)), "the best of the others");
        let no_end = summary(&[0]);
        assert_eq!((no_end.knee, no_end.unloaded_ns, no_end.saturated_ns, no_end.peak_gbs), (None, Some(95.0), None, Some(95.0)));
        assert_eq!(summary(&[0, 50, 100, 400, 20_000]).peak_gbs, None);
    }

    #[test]
    fn an_adaptive_curve_ends_where_a_delay_gives_no_point() {
        for starved in 0..6 {
            let (mut points, mut tried) = (Vec::new(), Vec::new());
            while let Some(delay_cycles) = adaptive(&points, 20, |delay| tried.contains(&delay)) {
                assert!(!tried.contains(&delay_cycles) && tried.len() < 20, "{delay_cycles} after {tried:?}");
                if tried.len() != starved {
                    let bandwidth_gbs = 100.0 / (1.0 + f64::from(delay_cycles) / 50.0);
                    points.push(CurvePoint { delay_cycles, bandwidth_gbs, latency_ns: 100.0 + bandwidth_gbs });
                }
                tried.push(delay_cycles);
            }
            assert_eq!(tried.len(), starved + 1, "{tried:?}");
        }
    }
}
