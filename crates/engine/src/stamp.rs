//! A stamp: quick probes that tell states of the machine apart, before and after a run.
//!
//! The probes take turns: each runs for some milliseconds in every round. A slow moment of the machine is then in one round of all probes and not in
//! all rounds of one. Buffers are new for each stamp of a run and freed at its end: the run has all of its memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::ChaseOrder;
use memgauge_model::plan::{Plan, Probe, StampPlan};
use memgauge_model::protocol::{LEAST_STAMP_ROUNDS, STAMP_TRANSFER_RUN, STAMP_WINDOWS, SWEEP_WINDOW};
use memgauge_model::result::{PageKind, ProbeReading, Stamp, StampProbe};
use memgauge_model::stats;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock;
use memgauge_os::memory::Buffer;

use crate::burst::chase::{Chase, Ring};
use crate::burst::handover::{Transfer, participants};
use crate::burst::load::Load;
use crate::burst::result::BurstShape;
use crate::burst::windows::shortest_window;
use crate::burst::workers::SchedulerNoise;
use crate::context::{RunContext, Unobserved};
use crate::error::{Result, chase_lost};
use crate::experiment::loaders::{LoaderGroup, window_gbs};
use crate::experiment::sampling::hop_ns;
use crate::kernel_choice::candidates;
use crate::session::Session;
use crate::transfer::pair;

/// Takes a stamp of the machine, as `plan` has it. `None` if it has none, or the run is interrupted before anything was probed.
pub fn stamp(plan: &Plan, context: &RunContext<'_>) -> Option<Stamp> {
    let wanted = plan.stamp.as_deref()?;
    let began = context.now();
    let bare = bare(plan);
    let mut nobody = Unobserved;
    let mut session = Session::new(&bare, context, &mut nobody);
    end_by(&mut session, began + Duration::from_secs_f64(wanted.at_most_s));
    let mut probes = None;
    take(&mut session, wanted, &mut probes, began)
}

/// Takes stamp after stamp with the same buffers, which are set up before the first: how long that takes is not part of a stamp. `next` gets each of
/// them, and says when the next one shall begin, or that this was the last.
pub fn stamps(plan: &Plan, context: &RunContext<'_>, next: &mut dyn FnMut(Stamp) -> Option<Instant>) {
    let Some(wanted) = plan.stamp.as_deref() else { return };
    let at_most = Duration::from_secs_f64(wanted.at_most_s);
    let bare = bare(plan);
    let mut nobody = Unobserved;
    let mut session = Session::new(&bare, context, &mut nobody);
    let set_up = |session: &mut Session<'_>| {
        end_by(session, context.now() + SET_UP);
        Probes::new(session, wanted)
    };
    let mut probes = Some(set_up(&mut session));
    loop {
        let set_up_from = context.now();
        let probes_now = match probes.take() {
            Some(probes) => probes,
            None => set_up(&mut session),
        };
        let mut probes_now = Some(probes_now);
        let began = context.now();
        let set_up_took = began - set_up_from;
        end_by(&mut session, began + at_most);
        let Some(stamp) = take(&mut session, wanted, &mut probes_now, began) else { return };
        // A probe that failed may have lost its buffers: all are set up again.
        probes = probes_now.filter(|probes| probes.series.iter().all(|series| series.failed.is_none()));
        let Some(moment) = next(stamp) else { return };
        // As rarely as stamps of that length would be.
        context.wait_until(moment.max(began + set_up_took * SET_UP_ONE_IN));
    }
}

/// Setting up again takes at most one hundredth of the time.
const SET_UP_ONE_IN: u32 = 100;
/// The longest time for setting up the buffers of [`stamps`].
const SET_UP: Duration = Duration::from_secs(10);

/// Nothing of the run but its seed and the CPUs that are kept awake.
fn bare(plan: &Plan) -> Plan {
    Plan { steps: Vec::new(), counters: false, contents: Vec::new(), start_signal: None, ..plan.clone() }
}

fn end_by(session: &mut Session<'_>, end: Instant) {
    (session.memory.end, session.budget.cell_end) = (Some(end), Some(end));
}

/// Takes a stamp that ends when the session's cell does. `probes` are set up if they are not.
fn take<'p>(session: &mut Session<'_>, wanted: &'p StampPlan, probes: &mut Option<Probes<'p>>, began: Instant) -> Option<Stamp> {
    let context = session.context;
    let taken = clock::moment();
    let cpus: IdSet = wanted.loaders.iter().map(|l| l.cpu).collect();
    let nodes = wanted.loaders.iter().map(|l| l.buffer.node).collect();
    session.runner.begin_beside(&cpus, &nodes);
    let ghz = session.runner.ghz(wanted.memory.cpu).unwrap_or_default();
    session.noise = context.platform.watch(&cpus, &session.runner.neighbours, ghz);
    let probes = match probes {
        Some(probes) => probes,
        None => probes.insert(Probes::new(session, wanted)),
    };
    probes.run(session, began + Duration::from_secs_f64(wanted.at_most_s));
    // The first round does not count.
    if context.interrupted() && probes.rounds() <= LEAST_STAMP_ROUNDS {
        return None;
    }
    let noise = session.unwatch(&probes.scheduler);
    let probes = probes.readings(session.budget.interruption());
    Some(Stamp { taken, took_s: (context.now() - began).as_secs_f64(), probes, noise })
}

/// A probe: its rounds, or why it has none.
struct Series {
    probe: StampProbe,
    rounds: Vec<f64>,
    failed: Option<NotMeasured>,
    cpus: IdSet,
    bytes: Option<Bytes>,
    pages: Option<PageKind>,
}

/// Loads of CPUs, which go on where they were in the next burst.
type Loads = Vec<(u32, Load)>;

/// The probes of a stamp, with what they go on with in the next round.
struct Probes<'p> {
    plan: &'p StampPlan,
    shape: BurstShape,
    memory: Option<Chase>,
    cache: Option<(Chase, Arc<Buffer>)>,
    one: Loads,
    all: Loads,
    /// The buffer that the first CPU reads.
    large: Option<Arc<Buffer>>,
    lines: Option<Ring>,
    series: Vec<Series>,
    scheduler: SchedulerNoise,
}

impl<'p> Probes<'p> {
    /// Sets up what can be set up.
    fn new(session: &mut Session<'_>, plan: &'p StampPlan) -> Self {
        let window = shortest_window(SWEEP_WINDOW, session.context.clock.overhead_ns());
        let shape = BurstShape { windows: STAMP_WINDOWS, window };
        let mut probes = Self {
            plan,
            shape,
            memory: None,
            cache: None,
            one: Vec::new(),
            all: Vec::new(),
            large: None,
            lines: None,
            series: Vec::new(),
            scheduler: SchedulerNoise::default(),
        };
        probes.set_up(session);
        probes
    }

    fn set_up(&mut self, session: &mut Session<'_>) {
        let plan = self.plan;
        let first = IdSet::one(plan.memory.cpu);
        let memory = chase(session, &plan.memory, 0).map(|(chase, buffer)| {
            self.memory = Some(chase);
            buffer
        });
        self.add(StampProbe::MemoryLatency, &first, Some(plan.memory.buffer.bytes), memory.map(|buffer| buffer.pages().obtained));
        if let Some(probe) = &plan.cache {
            // Another buffer than that of the chase over memory, which may have the same size.
            let cache = chase(session, probe, 1).map(|(chase, buffer)| {
                let pages = buffer.pages().obtained;
                self.cache = Some((chase, buffer));
                pages
            });
            self.add(StampProbe::CacheLatency, &first, Some(probe.buffer.bytes), cache);
        }
        let all: IdSet = plan.loaders.iter().map(|l| l.cpu).collect();
        // Those of a node share one.
        let bytes = |cpus: &IdSet| {
            let own = plan.loaders.iter().filter(|l| cpus.contains(l.cpu));
            let buffers: BTreeMap<u32, u64> = own.map(|l| (l.buffer.node, l.buffer.bytes.0)).collect();
            Some(Bytes(buffers.values().sum()))
        };
        let loads = self.prepare_loads(session);
        self.add(StampProbe::ReadsOfOneCpu, &first, bytes(&first), loads.clone().map(|()| None));
        self.add(StampProbe::ReadsOfAllCpus, &all, bytes(&all), loads.map(|()| None));
        if let Some(transfer) = &plan.transfer {
            let probe = Probe { cpu: transfer.reader, buffer: transfer.buffer.clone(), stride: transfer.stride, window: transfer.window };
            let lines = chase_ring(session, &probe, 2).map(|(ring, _)| self.lines = Some(ring));
            self.add(StampProbe::Transfer, &participants(transfer), Some(transfer.buffer.bytes), lines.map(|()| None));
        }
        self.add(StampProbe::Frequency, &first, None, Ok(None));
    }

    fn add(&mut self, probe: StampProbe, cpus: &IdSet, bytes: Option<Bytes>, set_up: Result<Option<PageKind>>) {
        let (pages, failed) = match set_up {
            Ok(pages) => (pages, None),
            Err(why) => (None, Some(why)),
        };
        self.series.push(Series { probe, rounds: Vec::new(), failed, cpus: cpus.clone(), bytes, pages });
    }

    fn prepare_loads(&mut self, session: &mut Session<'_>) -> Result {
        let StampPlan { loaders, traffic, memory, .. } = self.plan;
        let kernel = *candidates(traffic).first().ok_or(NotMeasured::NoKernel { mix: traffic.mix })?;
        let group = LoaderGroup::prepare(session, loaders, traffic)?;
        self.one = group.loads_where(|_| kernel, |l| l.cpu == memory.cpu, 0)?;
        self.all = group.loads_where(|_| kernel, |_| true, 0)?;
        self.large = group.buffers().first().map(|(buffer, _)| (*buffer).clone());
        Ok(())
    }

    /// Runs round after round until there are enough, or another would end after `end`. Those of an earlier stamp are forgotten.
    fn run(&mut self, session: &mut Session<'_>, end: Instant) {
        self.series.iter_mut().for_each(|series| series.rounds.clear());
        self.scheduler = SchedulerNoise::default();
        let mut longest = Duration::ZERO;
        for _ in 0..self.plan.rounds {
            let started = session.context.now();
            if session.interrupted() || started + longest > end {
                return;
            }
            for index in 0..self.series.len() {
                if self.series[index].failed.is_some() {
                    continue;
                }
                match self.probe(session, self.series[index].probe) {
                    Ok(value) => self.series[index].rounds.extend(value.filter(|v| v.is_finite() && *v > 0.0)),
                    Err(why) => self.series[index].failed = Some(why),
                }
            }
            longest = longest.max(session.context.now() - started);
        }
    }

    /// How many rounds the probe with most has.
    fn rounds(&self) -> usize {
        self.series.iter().map(|s| s.rounds.len()).max().unwrap_or(0)
    }

    /// One round of a probe; `None` where its threads had no time.
    fn probe(&mut self, session: &mut Session<'_>, probe: StampProbe) -> Result<Option<f64>> {
        let cpu = self.plan.memory.cpu;
        match probe {
            StampProbe::MemoryLatency => {
                let Some(chase) = self.memory.take() else { return Ok(None) };
                // Its lines shall be in no cache.
                if let Some(large) = &self.large {
                    session.runner.read_all(cpu, large, session.budget.worker_timeout())?;
                }
                let (ns, chase) = self.chase_ns(session, chase)?;
                self.memory = Some(chase);
                Ok(ns)
            }
            StampProbe::CacheLatency => {
                let Some((chase, buffer)) = self.cache.take() else { return Ok(None) };
                // The other probes have driven its lines out.
                session.runner.read_all(cpu, &buffer, session.budget.worker_timeout())?;
                let (ns, chase) = self.chase_ns(session, chase)?;
                self.cache = Some((chase, buffer));
                Ok(ns)
            }
            StampProbe::ReadsOfOneCpu => {
                let loads = std::mem::take(&mut self.one);
                let (gbs, loads) = self.gbs(session, loads)?;
                self.one = loads;
                Ok(gbs)
            }
            StampProbe::ReadsOfAllCpus => {
                let loads = std::mem::take(&mut self.all);
                let (gbs, loads) = self.gbs(session, loads)?;
                self.all = loads;
                Ok(gbs)
            }
            StampProbe::Transfer => self.transfer_ns(session),
            StampProbe::Frequency => Ok(session.runner.ghz(cpu)),
        }
    }

    fn chase_ns(&mut self, session: &mut Session<'_>, chase: Chase) -> Result<(Option<f64>, Chase)> {
        let cpu = self.plan.memory.cpu;
        let burst = session.run_burst(Some((cpu, chase)), Vec::new(), self.shape)?;
        let windows = burst.windows(&session.context.clock, self.shape);
        self.scheduler.add(&burst.conditions.scheduler);
        let (_, chase) = burst.chase.ok_or_else(|| chase_lost(cpu))?;
        Ok((stats::median(&hop_ns(&windows, &session.context.clock)), chase))
    }

    fn gbs(&mut self, session: &mut Session<'_>, loads: Loads) -> Result<(Option<f64>, Loads)> {
        let mut burst = session.run_burst(None, loads, self.shape)?;
        let clock = session.context.clock;
        let windows = burst.windows(&clock, self.shape);
        self.scheduler.add(&burst.conditions.scheduler);
        let gbs = stats::median(&window_gbs(&burst.loads, &windows, &clock));
        Ok((gbs, burst.take_loads()))
    }

    fn transfer_ns(&mut self, session: &mut Session<'_>) -> Result<Option<f64>> {
        let (Some(plan), Some(ring)) = (&self.plan.transfer, self.lines.take()) else { return Ok(None) };
        let (done, _) = pair::run_at_once(session, &[Transfer { plan, ring }], STAMP_TRANSFER_RUN, u64::MAX)?;
        let Some(run) = done.into_iter().next() else { return Ok(None) };
        self.scheduler.add(&run.scheduler);
        self.lines = run.ring;
        Ok(stats::median(&run.samples))
    }

    /// The readings, without the first round. `over` is why the rest is missing where there is too little.
    fn readings(&self, over: NotMeasured) -> Vec<ProbeReading> {
        let reading = |series: &Series| {
            let rounds: Vec<f64> = series.rounds.iter().skip(1).map(|v| stats::significant(*v)).collect();
            let enough = rounds.len() >= LEAST_STAMP_ROUNDS;
            let value = if enough && series.failed.is_none() { stats::median(&rounds) } else { None };
            let interrupted = |why| if matches!(why, NotMeasured::Interrupted) { over.clone() } else { why };
            let not_measured = match value {
                Some(_) => None,
                None => Some(
                    series
                        .failed
                        .clone()
                        .map_or_else(|| if series.rounds.is_empty() { NotMeasured::NoSamples } else { over.clone() }, interrupted),
                ),
            };
            ProbeReading {
                probe: series.probe,
                unit: series.probe.unit().to_owned(),
                value,
                not_measured,
                rounds,
                cpus: series.cpus.clone(),
                bytes: series.bytes,
                pages: series.pages,
            }
        };
        self.series.iter().map(reading).collect()
    }
}

/// A chase over new memory: the `nth` of these.
fn chase(session: &mut Session<'_>, probe: &Probe, nth: u32) -> Result<(Chase, Arc<Buffer>)> {
    chase_ring(session, probe, nth).map(|(ring, buffer)| (Chase::new(ring), buffer))
}

fn chase_ring(session: &mut Session<'_>, probe: &Probe, nth: u32) -> Result<(Ring, Arc<Buffer>)> {
    let buffer = session.chase_buffer(&probe.buffer, nth)?;
    Ok((session.ring(probe, ChaseOrder::WindowLocal, &buffer, u64::from(nth))?, buffer))
}
