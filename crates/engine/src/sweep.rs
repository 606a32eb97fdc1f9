//! Sweeps over working sets: one buffer for each CPU, of which every working set is a prefix, touched once; chains of large working sets
//! share their windows and differ in the order of these only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_core::counters::{ExpectedEvents, WorkUnit};
use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment, Metric};
use memgauge_core::pattern::ChaseLayout;
use memgauge_core::plan::{BandwidthSweep, LatencySweep};
use memgauge_core::result::{Evidence, Noise, Trial};
use memgauge_core::stats;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels::{self as kernels, Kernel};
use memgauge_linux::clock::Clock;
use memgauge_linux::memory::Buffer;

use crate::burst::{Chase, Trace};
use crate::chain::{self, Exits};
use crate::counting::{Sheet, certain};
use crate::crew::{Choice, Crew, Deeds, window_gbs, winner};
use crate::latency::{hop_ns, window_of};
use crate::session::{CellError, SETTLE_WINDOWS, Session};
use crate::takes::Course;

/// Samples of a point are means over this time: some 10,000 hops of 100 ns. Shorter than a scheduler's slice, so that on a busy machine
/// many windows pass in which the thread was never taken off its CPU.
const POINT_WINDOW: Duration = Duration::from_millis(1);
/// A window that took so many times its length was cut: threads look at the clock 50 times in one.
const LATE: f64 = 1.2;
/// Counted windows of a point's burst, which is over before a thread that just woke up has used up its slice.
const POINT_WINDOWS: usize = 3;
/// The same where hardware events are counted: groups of events that share a core's counters take turns every 1 to 10 ms, by the kernel's
/// tick, and each of some eight has to have its turn in every burst.
const COUNTED_WINDOWS: usize = 40;
/// Bursts of a point at least.
const POINT_BURSTS: usize = 8;
/// Lines that a burst touches before it chases, at most: 64 MiB of lines. Larger working sets leave the caches to chance whatever was done
/// before.
const MOST_TOUCHED: u64 = 1 << 20;
/// Working sets from here on share the windows of the largest one; smaller ones are written anew in a millisecond, with windows that
/// divide them evenly.
const SHARED_FROM: Bytes = Bytes::mib(8);
/// Rounds and counted windows of a trial between kernels: levels differ far more than kernels do.
const TRIAL_ROUNDS: usize = 3;
const TRIAL_WINDOWS: usize = 5;
/// A kernel takes part where its whole steps fill at least this share of the working set.
const FILLED: f64 = 0.95;

/// A point that was measured.
struct Taken {
    size: Bytes,
    estimate: Estimate,
    evidence: Evidence,
    course: Course,
    /// What hardware counters showed.
    sheet: Sheet,
    certain: ExpectedEvents,
}

impl Session<'_> {
    /// Latency over the working set.
    pub(crate) fn latency_sweep(&mut self, experiment: Experiment, at: &Coordinates, sweep: &LatencySweep) -> Result<(), CellError> {
        let probe = &sweep.probe;
        let watch = self.watch(probe.cpu, &IdSet::one(probe.cpu))?;
        let buffer = self.allocate(&probe.buffer)?;
        let mut exits = None;
        let mut taken = Vec::new();
        for (i, &size) in sweep.sizes.iter().enumerate() {
            if self.cut_short() {
                break;
            }
            self.within(i as f64 / sweep.sizes.len() as f64);
            let range = sweep.range(size, self.line());
            let (layout, window) = self.aside(|session| session.prefix_chain(sweep, range, &buffer, &mut exits))?;
            let clock = self.clock();
            let mut chase = Chase::new(buffer.clone(), layout.start());
            if layout.slots() as u64 <= MOST_TOUCHED {
                chase = chase.touching(layout);
            }
            let (mut groups, begun, mut course) = (Vec::new(), Instant::now(), Course::default());
            let mut sheet = Sheet::default();
            let windows = self.point_windows();
            loop {
                let burst = self.burst_of(Some((probe.cpu, chase)), Vec::new(), windows, POINT_WINDOW)?;
                course.add(&burst);
                let Some((trace, moved_on)) = burst.chase else { return Err(CellError::Cannot("the chase left no trace".into())) };
                self.tally_chase(&mut sheet, probe.cpu, &trace);
                groups.push(undisturbed_ns(&trace, &clock, windows));
                chase = moved_on;
                if self.point_done(&groups, begun) {
                    break;
                }
            }
            let evidence = Evidence {
                threads: 1,
                kernel: "chase".into(),
                buffer: range,
                window: Some(window),
                stride: Some(probe.stride),
                allocations: 1,
                ..Default::default()
            };
            let estimate = stats::estimate(&groups, self.plan.stop.relative_half_width);
            let certain = certain(self.setting.machine, probe.cpu, size, true);
            taken.push(Taken { size, estimate, evidence, course, sheet, certain });
        }
        let mut all = Course::default();
        taken.iter().for_each(|t| all.befell(&t.course.disturbance));
        let noise = self.unwatch(watch, &all.disturbance);
        let (pages, placement, file) = (buffer.pages().clone(), buffer.placement_now(), buffer.file().cloned());
        self.push_points(experiment, at, Metric::Latency, taken, &noise, |evidence| {
            evidence.pages = pages.clone();
            evidence.placement = placement.clone();
            evidence.file = file.clone();
        })
    }

    /// Writes a chain over the first `size` bytes of `buffer`: how it is laid out, and the window that it is random in.
    fn prefix_chain(
        &self,
        sweep: &LatencySweep,
        size: Bytes,
        buffer: &Arc<Buffer>,
        exits: &mut Option<Exits>,
    ) -> Result<(ChaseLayout, Bytes), CellError> {
        let probe = &sweep.probe;
        let (line, seed, touch) = (self.line(), self.plan.seed, &probe.buffer.touch);
        let shared = sweep.order == ChaseOrder::WindowLocal && size >= SHARED_FROM && size.0 >= 2 * probe.window.0;
        let order =
            |bytes, window| chain::Order { bytes, window, stride: probe.stride, line, order: sweep.order, seed, even: true, within: 0 };
        if shared {
            let exits = match exits {
                Some(exits) => exits,
                None => exits.insert(chain::write_with_exits(buffer, &order(probe.buffer.bytes, probe.window), touch)?),
            };
            let order = order(size, probe.window);
            chain::relink(buffer, &order, exits)?;
            return Ok((chain::layout(buffer, &order)?, probe.window));
        }
        // Windows of equal size, so that none of the working set is left over.
        let windows = size.0.div_ceil(window_of(sweep.order, probe).0.max(1)).max(1);
        let window = Bytes((size.0 / windows / probe.stride.0 * probe.stride.0).max(2 * probe.stride.0));
        let whole = if sweep.order == ChaseOrder::WindowLocal { Bytes((window.0 * windows).min(size.0)) } else { size };
        let order = order(whole, window);
        chain::write(buffer, &order, touch)?;
        Ok((chain::layout(buffer, &order)?, window))
    }

    /// Bandwidth over the working set.
    pub(crate) fn bandwidth_sweep(&mut self, experiment: Experiment, at: &Coordinates, sweep: &BandwidthSweep) -> Result<(), CellError> {
        let crew = self.crew(&sweep.loaders, &sweep.traffic)?;
        let watch = self.watch(crew.first_cpu(), &crew.cpus())?;
        let clock = self.clock();
        let bounds: Vec<Bytes> =
            memgauge_core::conclusions::levels::caches(&self.setting.machine.topology, at).iter().map(|c| c.size).collect();
        let level = |size: Bytes| bounds.iter().filter(|b| **b < size).count();
        let mut choice: Option<(usize, Choice)> = None;
        let mut taken = Vec::new();
        for (i, &size) in sweep.sizes.iter().enumerate() {
            if self.cut_short() {
                break;
            }
            self.within(i as f64 / sweep.sizes.len() as f64);
            // Kernels are tried once a level, at the size in its middle; a point whose size they do not fill has its own trial.
            let known = choice.take().filter(|(of, choice)| *of == level(size) && choice.kernels.iter().all(|k| fills(k, size)));
            let (_, chosen) = match known {
                Some(known) => choice.insert(known),
                None => {
                    let ahead: Vec<Bytes> = sweep.sizes.iter().copied().filter(|s| *s >= size && level(*s) == level(size)).collect();
                    let middle = ahead.get(ahead.len() / 2).copied().unwrap_or(size);
                    let made = self.try_at(&crew, sweep, size, middle)?;
                    choice.insert((level(size), made))
                }
            };
            let chosen = chosen.clone();
            let mut loads = self.aside(|session| session.prefix_loads(&crew, |index| chosen.kernels[index], size))?;
            let (mut groups, begun) = (Vec::new(), Instant::now());
            let (mut course, mut deeds) = (Course::default(), Deeds::default());
            let windows = self.point_windows();
            loop {
                let mut burst = self.burst_of(None, loads, windows, POINT_WINDOW)?;
                course.add(&burst);
                deeds.add(&burst);
                self.tally_loads(&mut deeds.loaded, &burst.loads);
                groups.push(window_gbs(&burst, |t| clock.ns(t), windows));
                loads = burst.take_loads();
                if self.point_done(&groups, begun) {
                    break;
                }
            }
            let estimate = stats::estimate(&groups, self.plan.stop.relative_half_width);
            let mut evidence = deeds.own_evidence(&crew, &chosen, |t| clock.ns(t));
            evidence.buffer = Bytes(size.0 * crew.buffers().len() as u64);
            let in_memory = memgauge_core::conclusions::limit::memory_sized(&self.setting.machine.topology, &crew.cpus(), evidence.buffer);
            evidence.traffic = estimate.value.map(|gbs| deeds.traffic(gbs, self.known_rfo(), in_memory));
            evidence.coverage = course.coverage;
            let certain = crew.certain_over(self.setting.machine, &chosen, size);
            taken.push(Taken { size, estimate, evidence, course, sheet: deeds.loaded, certain });
        }
        let mut all = Course::default();
        taken.iter().for_each(|t| all.befell(&t.course.disturbance));
        let noise = self.unwatch(watch, &all.disturbance);
        let lies = crew.lies();
        self.push_points(experiment, at, Metric::Bandwidth, taken, &noise, |evidence| {
            (evidence.pages, evidence.placement, evidence.file) = lies.clone();
        })
    }

    /// The fastest of the kernels that fill a working set of `size`, over one of `middle` bytes.
    fn try_at(&mut self, crew: &Crew, sweep: &BandwidthSweep, size: Bytes, middle: Bytes) -> Result<Choice, CellError> {
        let known = |name: &String| kernels::find(name).filter(|k| k.supported());
        let mut candidates: Vec<&'static Kernel> = sweep.traffic.kernels.iter().filter_map(known).collect();
        let filling: Vec<&'static Kernel> = candidates.iter().copied().filter(|k| fills(k, size) && fills(k, middle)).collect();
        if !filling.is_empty() {
            candidates = filling;
        }
        // Those that have no room for a step are no candidates either.
        candidates.retain(|k| self.prefix_loads(crew, |_| k, size).is_ok());
        let clock = self.clock();
        let mut rates = vec![Vec::new(); candidates.len()];
        for _ in 0..if candidates.len() > 1 { TRIAL_ROUNDS } else { 0 } {
            for (kernel, rates) in candidates.iter().zip(&mut rates) {
                let loads = self.prefix_loads(crew, |_| kernel, middle)?;
                let burst = self.burst_of(None, loads, TRIAL_WINDOWS, POINT_WINDOW)?;
                rates.extend(stats::median(&window_gbs(&burst, |t| clock.ns(t), TRIAL_WINDOWS)));
                if self.interrupted() {
                    return Err(CellError::Interrupted);
                }
            }
        }
        let (kernel, tried): (&'static Kernel, Vec<Trial>) = winner(&candidates, &rates, sweep.traffic.mix)?;
        Ok(Choice { kernels: vec![kernel; crew.cpus().len()], tried })
    }

    /// Counted windows of each burst of a point.
    fn point_windows(&self) -> usize {
        let fixed = (self.plan.stop.budget_s / POINT_BURSTS as f64 / POINT_WINDOW.as_secs_f64()).ceil() as usize;
        let least = if self.counts() { COUNTED_WINDOWS } else { POINT_WINDOWS };
        if self.plan.stop.fixed_time { fixed.max(1) } else { least }
    }

    /// Whether a point has enough bursts. Its budget is time that passed, with what surrounds its windows.
    fn point_done(&self, groups: &[Vec<f64>], begun: Instant) -> bool {
        let converged = stats::converged(groups, self.plan.stop.relative_half_width);
        self.interrupted()
            || (groups.len() >= POINT_BURSTS && self.enough(begun.elapsed(), groups.iter().any(|g| !g.is_empty()), converged))
    }

    /// Gives the points of a curve away, each with what befell it, and with what was seen of the machine over the whole curve.
    fn push_points(
        &mut self,
        experiment: Experiment,
        at: &Coordinates,
        metric: Metric,
        taken: Vec<Taken>,
        noise: &Noise,
        complete: impl Fn(&mut Evidence),
    ) -> Result<(), CellError> {
        if taken.is_empty() {
            return Err(CellError::Interrupted);
        }
        let unit = if metric == Metric::Latency { WorkUnit::Hop } else { WorkUnit::Line };
        for Taken { size, estimate, mut evidence, course, sheet, certain } in taken {
            complete(&mut evidence);
            let disturbance = course.disturbance;
            evidence.noise = Noise {
                involuntary_switches: disturbance.switches,
                waited: disturbance.waited(),
                migrations: Some(disturbance.migrations),
                ..noise.clone()
            };
            self.push(experiment, Coordinates { working_set: Some(size), ..at.clone() }, metric, estimate, evidence);
            self.attach(&sheet, unit, certain);
        }
        Ok(())
    }
}

/// Nanoseconds per hop in the counted windows that took no longer than a window: a thread that is taken off its CPU comes late to its next
/// look at the clock. Of a burst in which every window was cut so, all of them.
fn undisturbed_ns(trace: &Trace, clock: &Clock, windows: usize) -> Vec<f64> {
    let longest = LATE * POINT_WINDOW.as_nanos() as f64;
    let of = |(ticks, units): (u64, u64)| {
        let ns = clock.ns(ticks);
        (units > 0 && ns <= longest).then(|| ns / (units * kernels::CHASE_UNROLL as u64) as f64)
    };
    let whole: Vec<f64> = (SETTLE_WINDOWS..SETTLE_WINDOWS + windows).filter_map(|i| trace.window(i)).filter_map(of).collect();
    if whole.is_empty() { hop_ns(trace, clock, windows) } else { whole }
}

/// Whether whole steps of a kernel fill most of a working set.
fn fills(kernel: &Kernel, size: Bytes) -> bool {
    let step: u64 = kernel.streams.iter().map(|s| s.advance() as u64).sum();
    step > 0 && (size.0 / step * step) as f64 >= size.0 as f64 * FILLED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_in_which_the_thread_was_gone_does_not_count() {
        let clock = Clock::calibrate(std::path::Path::new("/"));
        let window = clock.ticks_of(POINT_WINDOW);
        let marks = |late: u64| vec![0, window, 2 * window, 2 * window + late, 3 * window + late];
        let trace = |late: u64| Trace::of(marks(late).into_iter().enumerate().map(|(i, at)| Some((at, 100 * i as u64))).collect());
        let expected = clock.ns(window) / (100.0 * kernels::CHASE_UNROLL as f64);
        for (late, count) in [(window, 3), (window * 5, 2)] {
            let ns = undisturbed_ns(&trace(late), &clock, 3);
            assert_eq!(ns.len(), count);
            assert!(ns.iter().all(|ns| (ns / expected - 1.0).abs() < 1e-6), "{ns:?} of {expected}");
        }
        let cut = Trace::of((0..5).map(|i| Some((3 * i * window, 100 * i))).collect());
        assert_eq!(undisturbed_ns(&cut, &clock, 3).len(), 3, "what there is, where every window was cut");
    }
}
