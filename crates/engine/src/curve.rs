//! Latency under load: a chase beside loaders, at injection delays that spread the points evenly over bandwidth.

use std::collections::BTreeMap;
use std::time::Duration;

use memgauge_core::conclusions::curve;
use memgauge_core::counters::WorkUnit;
use memgauge_core::distribution::{Distribution, Recorder};
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment, Hops, Metric};
use memgauge_core::metrics;
use memgauge_core::plan::{Delays, Loader, Probe, Traffic};
use memgauge_core::result::{CurvePoint, CurveSummary, Evidence, Placement};
use memgauge_core::stats;
use memgauge_core::units::{Bytes, IdSet};

use memgauge_kernels::CHASE_UNROLL;
use memgauge_linux::memory::Buffer;

use crate::burst::Chase;
use crate::counting::certain;
use crate::crew::{Choice, Crew, Deeds, window_gbs};
use crate::latency::{hop_ns, hops_of, window_of};
use crate::pages::combined_pages;
use crate::session::{CellError, Session, WINDOW};
use crate::takes::{Course, Takes};

/// Bursts of a point, at least; see `bandwidth`.
const LEAST_BURSTS: u32 = 6;
/// Quantities of a burst, in the order in which their samples are kept.
const LATENCY: usize = 0;
const BANDWIDTH: usize = 1;
/// Points are added while two neighbours are further apart than this share of the peak.
const LARGEST_GAP: f64 = 0.08;

/// How the chase of a curve goes, as the plan says it.
pub(crate) struct Manner<'a> {
    pub(crate) probe: &'a Probe,
    pub(crate) order: ChaseOrder,
    pub(crate) hops: Option<Hops>,
    pub(crate) histogram: Option<u32>,
    /// Shares of the peak whose latency is looked for.
    pub(crate) at_percent: &'a [u32],
}

/// The delay that an adaptive curve needs next; `None` when it needs none, or needs one that was tried and left no point: its threads got
/// no time in many times its budget, and would get none again.
fn adaptive(points: &[CurvePoint], most: u32, tried: impl Fn(u32) -> bool) -> Option<u32> {
    curve::next_delay(points, most, LARGEST_GAP).filter(|&delay| !tried(delay))
}

/// What was measured at one delay.
struct Point {
    latency: Estimate,
    bandwidth: Estimate,
    evidence: Evidence,
    deeds: Deeds,
    distribution: Option<Distribution>,
}

impl Session<'_> {
    pub(crate) fn curve(
        &mut self,
        experiment: Experiment,
        at: &Coordinates,
        manner: &Manner<'_>,
        loaders: &[Loader],
        traffic: &Traffic,
        delays: &Delays,
    ) -> Result<(), CellError> {
        let probe = manner.probe;
        let crew = self.crew(loaders, traffic)?;
        let choice = self.choose(&crew)?;
        self.calibrate_rfo(&crew, loaders, traffic)?;
        let (rfo, in_memory) = (self.known_rfo(), self.memory_sized(&crew));
        let buffer = self.chase_buffer(&probe.buffer, 0)?;
        let mut chase = self.chain(probe, probe.buffer.bytes, manner.order, &buffer, 0)?;
        let mut points: Vec<CurvePoint> = Vec::new();
        let mut given = match delays {
            Delays::Cycles(list) => list.clone(),
            // `next_delay` begins with the two ends itself.
            Delays::Adaptive { .. } => Vec::new(),
        }
        .into_iter();
        let (mut shares, mut tried) = (manner.at_percent.iter().copied().peekable(), 0);
        let mut estimates: BTreeMap<u32, (Estimate, Estimate)> = BTreeMap::new();
        loop {
            let delay = match (given.next(), delays) {
                (Some(delay), _) => Some(delay),
                (None, Delays::Adaptive { points: most }) => adaptive(&points, *most, |delay| estimates.contains_key(&delay)),
                (None, Delays::Cycles(_)) => None,
            };
            let delay = delay.or_else(|| {
                while let Some(&percent) = shares.peek() {
                    // A delay whose chase got no time left no point; it is not tried again.
                    match curve::next_for_share(&points, percent, tried).filter(|delay| !estimates.contains_key(delay)) {
                        Some(delay) => {
                            tried += 1;
                            return Some(delay);
                        }
                        None => (_, tried) = (shares.next(), 0),
                    }
                }
                None
            });
            let Some(delay) = delay else { break };
            if self.interrupted() {
                self.summarise(at, &points, manner.at_percent, &estimates);
                return Err(CellError::Interrupted);
            }
            let here = Coordinates { delay_cycles: Some(delay), ..at.clone() };
            let (point, moved_on) = self.point(manner, chase, &crew, &choice, delay, &buffer)?;
            let Point { latency, bandwidth, evidence, deeds, distribution } = point;
            chase = moved_on;
            if let (Some(latency_ns), Some(bandwidth_gbs)) = (latency.value, bandwidth.value) {
                points.push(CurvePoint { delay_cycles: delay, bandwidth_gbs, latency_ns });
            }
            estimates.insert(delay, (latency.clone(), bandwidth.clone()));
            // The chase's own line a hop is in the bandwidth and not in its loaders' traffic.
            let line = self.line().0 as f64;
            let loads = bandwidth.value.zip(latency.value).map(|(all, ns)| deeds.traffic(all - line / ns, rfo, in_memory));
            self.tell_of_corruption(&evidence, &here);
            let in_flight = bandwidth.value.zip(latency.value).map(|(gbs, ns)| metrics::lines_in_flight(gbs, ns, line));
            let machine = self.setting.machine;
            self.push(experiment, here.clone(), Metric::Latency, latency, evidence.clone());
            self.attach_distribution(distribution);
            self.attach(&deeds.chased, WorkUnit::Hop, certain(machine, probe.cpu, probe.buffer.bytes, true));
            self.push(experiment, here, Metric::Bandwidth, bandwidth, Evidence { traffic: loads, ..evidence });
            self.attach(&deeds.loaded, WorkUnit::Line, crew.certain(machine, &choice));
            if let Some(last) = self.results.last_mut() {
                last.lines_in_flight = in_flight;
            }
        }
        self.summarise(at, &points, manner.at_percent, &estimates);
        Ok(())
    }

    fn summarise(&mut self, at: &Coordinates, points: &[CurvePoint], percents: &[u32], estimates: &BTreeMap<u32, (Estimate, Estimate)>) {
        let of = |delay: u32| estimates.get(&delay).cloned();
        let shares = percents.iter().map(|&percent| curve::at_share(points, percent, of)).collect();
        let interval = |delay: u32| estimates.get(&delay).and_then(|(_, bandwidth)| bandwidth.ci95_low.zip(bandwidth.ci95_high));
        self.curves.push(CurveSummary { shares, ..curve::summarise_within(at.clone(), points, interval) });
    }

    /// Latency and bandwidth (the probe's included) at one delay.
    fn point(
        &mut self,
        manner: &Manner<'_>,
        mut chase: Chase,
        crew: &Crew,
        choice: &Choice,
        delay: u32,
        buffer: &Buffer,
    ) -> Result<(Point, Chase), CellError> {
        let probe = manner.probe;
        let (most_hops, mut hops) = (manner.hops.map(|hops| hops_of(hops, probe)), 0);
        let mut recorder = manner.histogram.and_then(Recorder::new);
        // Laying them out may read all of their memory, from whichever CPU this thread is on.
        let mut going = self.loads(crew, choice, delay)?;
        let watch = self.watch(probe.cpu, &crew.cpus().union(&IdSet::one(probe.cpu)))?;
        let clock = self.clock();
        // Batches of a histogram take half of the time.
        let windows = self.burst_windows(LEAST_BURSTS * if recorder.is_some() { 2 } else { 1 });
        let (mut takes, mut spent) = (Takes::by_burst(LEAST_BURSTS as usize), Duration::ZERO);
        let (mut timing, mut deeds) = (Course::default(), Deeds::default());
        let target = self.plan.stop.relative_half_width;
        let line = self.line().0 as f64;
        loop {
            let mut burst = self.burst(Some((probe.cpu, chase)), going, windows)?;
            let mark = self.mark(&burst, probe.cpu);
            deeds.add(&burst);
            self.tally_loads(&mut deeds.loaded, &burst.loads);
            let loads = window_gbs(&burst, |t| clock.ns(t), windows);
            going = burst.take_loads();
            let Some((trace, moved_on)) = burst.chase else {
                return Err(CellError::Cannot("the chase left no trace".into()));
            };
            self.tally_chase(&mut deeds.chased, probe.cpu, &trace);
            chase = moved_on;
            hops += trace.whole().map_or(0, |(_, units)| units * CHASE_UNROLL as u64);
            let ns = hop_ns(&trace, &clock, windows);
            // A chase that got no time in a burst leaves no bandwidth either, rather than one without its share.
            let hop = stats::median(&ns);
            let all = hop.map_or(Vec::new(), |hop| loads.iter().map(|gbs| gbs + line / hop).collect());
            takes.add(0, vec![ns, all], mark);
            spent += WINDOW * windows as u32;
            if let Some(recorder) = &mut recorder {
                let mut timed = self.burst(Some((probe.cpu, chase.timing(recorder.batch_hops()))), going, windows)?;
                going = timed.take_loads();
                timing.add(&timed);
                chase = self.record(timed, recorder).ok_or_else(|| CellError::Cannot("the chase left no trace".into()))?;
                spent += WINDOW * windows as u32;
            }
            let converged = takes.settled() && [LATENCY, BANDWIDTH].into_iter().all(|of| takes.converged(of, target));
            let sampled = takes.sampled();
            let enough = match most_hops {
                // A chase that gets no time at all is given up like any other.
                Some(most) => hops >= most || (hops == 0 && self.enough(spent, sampled, false)),
                None => takes.len() >= LEAST_BURSTS as usize && self.enough(spent, sampled, converged),
            };
            if self.interrupted() || enough {
                break;
            }
        }
        let mut evidence = deeds.evidence(crew, choice, |t| clock.ns(t));
        evidence.kernel = format!("chase beside {}", evidence.kernel);
        evidence.threads += 1;
        evidence.buffer = Bytes(evidence.buffer.0 + probe.buffer.bytes.0);
        evidence.window = Some(window_of(manner.order, probe));
        evidence.stride = Some(probe.stride);
        let loaders = crew.buffers();
        let loaders = loaders.iter().map(|(buffer, bytes)| (buffer.pages(), *bytes));
        evidence.pages = combined_pages(loaders.chain([(buffer.pages(), probe.buffer.bytes)]));
        evidence.placement = Placement::combined([evidence.placement, buffer.placement_now()]);
        let mut course = takes.course();
        course.befell(&timing.disturbance);
        course.covered(timing.coverage);
        evidence.coverage = course.coverage;
        evidence.noise = self.unwatch(watch, &course.disturbance);
        takes.tell(&mut evidence.noise);
        let distribution = recorder.and_then(Recorder::finish);
        let (latency, bandwidth) = (takes.conclude(LATENCY, target), takes.conclude(BANDWIDTH, target));
        Ok((Point { latency, bandwidth, evidence, deeds, distribution }, chase))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
