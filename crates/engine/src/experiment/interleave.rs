//! Weighted interleave: a chase beside loaders over memory whose pages are on several nodes in turn, with weights that the search chooses.

use memgauge_analysis::conclusions::curve;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{ChaseOrder, Coordinates, Metric, PageRequest};
use memgauge_model::interleave::{Goal, Reading, Search, Trial, Weights};
use memgauge_model::plan::{BufferPlan, Delays, InterleaveSearch, LoadCurve, Loader, Probe};
use memgauge_model::result::{CurvePoint, InterleaveSummary};
use memgauge_model::units::Bytes;
use memgauge_planner::cost;

use super::loaded;
use crate::error::Result;
use crate::measured::{Measured, Subject};
use crate::session::Session;

/// Huge pages as most machines have them.
const HUGE_PAGE: u64 = Bytes::mib(2).0;
/// A load is as much as was demanded if it is so close to it, as a share.
const CLOSE: f64 = 0.01;
/// Delays that are tried to come so close.
const MOST_DELAYS: u32 = 6;

pub(crate) fn measure(session: &mut Session<'_>, subject: Subject<'_>, plan: &InterleaveSearch, measured: &mut Measured) -> Result {
    let mut search = Search::new(plan.nodes.clone(), plan.goal);
    let always: Vec<Weights> = plan.kernel.iter().cloned().collect();
    let (mut tried, about) = (0.0, cost::weights_measured(plan.nodes.len()));
    let ended = search.run(&always, &mut |weights| {
        let trial = one(session, subject, plan, weights, measured);
        tried += 1.0;
        session.progress.within_cell(f64::min(tried / about, 1.0));
        trial
    });
    let summary = InterleaveSummary::from_search(subject.at.clone(), &plan.nodes, plan.goal, plan.kernel.as_ref(), &search);
    measured.interleaves.extend(summary);
    ended
}

/// Measures one ratio: the most bandwidth, and where there is a demand the latency at that.
fn one(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    plan: &InterleaveSearch,
    weights: &Weights,
    measured: &mut Measured,
) -> Result<Trial> {
    let at = Coordinates { weights: Some(weights.clone()), ..subject.at.clone() };
    let probe = Probe { buffer: in_turn(&plan.probe.buffer, weights), ..plan.probe.clone() };
    let loader = |l: &Loader| Loader { buffer: in_turn(&l.buffer, weights), ..l.clone() };
    let loaders: Vec<Loader> = plan.loaders.iter().map(loader).collect();
    // The next weights have other buffers: these need not be kept while those are made.
    session.memory.keep_loader_buffers(&loaders);
    let (mut points, mut delay): (Vec<CurvePoint>, u32) = (Vec::new(), 0);
    let (mut most, mut close): (Option<Reading>, Option<(f64, Reading)>) = (None, None);
    loop {
        let (latency, bandwidth) = point(session, subject.at(&at), (&probe, &loaders), plan, delay, measured)?;
        let (Some(latency_reading), Some(gbs)) = (reading(&latency), reading(&bandwidth)) else {
            return Err(without_value(session, &probe, &loaders));
        };
        points.push(CurvePoint { delay_cycles: delay, bandwidth_gbs: gbs.value, latency_ns: latency_reading.value });
        let most = *most.get_or_insert(gbs);
        let goal = match plan.goal {
            Goal::LatencyAt(demand) if most.value + most.half < demand => return Ok(trial(weights, most, None)),
            Goal::LatencyAt(demand) => demand.min(most.value),
            Goal::Bandwidth => return Ok(trial(weights, most, Some(latency_reading))),
        };
        let off = (gbs.value / goal - 1.0).abs();
        if close.is_none_or(|(least, _)| off < least) {
            close = Some((off, latency_reading));
        }
        let next = curve::next_for_bandwidth(&points, goal, points.len() as u32 - 1);
        match next.filter(|next| off > CLOSE && points.len() < MOST_DELAYS as usize && points.iter().all(|p| p.delay_cycles != *next)) {
            Some(next) => delay = next,
            None => return Ok(trial(weights, most, close.map(|(_, latency)| latency))),
        }
    }
}

/// Why a point has no value: the run must end, or the threads never got their CPUs together however long they were given.
fn without_value(session: &Session<'_>, probe: &Probe, loaders: &[Loader]) -> NotMeasured {
    if session.interrupted() {
        return session.budget.interruption();
    }
    NotMeasured::NeverTogether { cpus: loaders.iter().map(|l| l.cpu).chain([probe.cpu]).collect() }
}

fn trial(weights: &Weights, bandwidth_gbs: Reading, latency_ns: Option<Reading>) -> Trial {
    Trial { weights: weights.clone(), bandwidth_gbs, latency_ns, measured: 1 }
}

/// Latency and bandwidth at one delay. Both are recorded.
fn point(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    (probe, loaders): (&Probe, &[Loader]),
    plan: &InterleaveSearch,
    delay: u32,
    measured: &mut Measured,
) -> Result<(Estimate, Estimate)> {
    let curve = LoadCurve {
        probe: probe.clone(),
        loaders: loaders.to_vec(),
        traffic: plan.traffic.clone(),
        delays: Delays::Cycles(vec![delay]),
        at_percent: Vec::new(),
        order: ChaseOrder::WindowLocal,
        hops: None,
        histogram: None,
    };
    let mut point = Measured::new(measured.again);
    let ended = loaded::measure_curve(session, subject, &curve, &mut point);
    // A single point is not a curve.
    point.curves.clear();
    let estimate = |metric| point.all().find(|m| m.metric == metric).map(|m| m.estimate.clone()).unwrap_or_default();
    let both = (estimate(Metric::Latency), estimate(Metric::Bandwidth));
    measured.append(point);
    ended.map(|()| both)
}

fn reading(estimate: &Estimate) -> Option<Reading> {
    let value = estimate.value?;
    let half = estimate.ci95_low.zip(estimate.ci95_high).map_or(0.0, |(low, high)| (high - low) / 2.0);
    Some(Reading { value, half })
}

/// The buffer with its pages on the nodes in turn: of huge pages whole rounds, so that each node has its share.
fn in_turn(buffer: &BufferPlan, weights: &Weights) -> BufferPlan {
    let round = u64::from(weights.total()) * HUGE_PAGE;
    let whole = buffer.bytes.0 / round * round;
    let bytes = if buffer.pages == PageRequest::Base || whole == 0 { buffer.bytes } else { Bytes(whole) };
    let node = weights.iter().map(|(node, _)| node).next().unwrap_or(buffer.node);
    BufferPlan { bytes, node, weights: Some(weights.clone()), ..buffer.clone() }
}
