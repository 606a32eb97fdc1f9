//! Transfers between every two of some CPUs, in rounds of pairs that have no core in common, a round's pairs at once.
//!
//! Pairs at once are right only where they do not disturb each other: the mesh, the caches' directory and the home's memory are shared. So a
//! calibration comes first. One pair runs alone and beside the others, in turn; only when the ratio of the two is within a few percent of
//! 1 with its whole interval are pairs measured together. Otherwise they are measured one by one, or, where the plan says that this would take
//! too long, those that stand for the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memgauge_core::estimate::Estimate;
use memgauge_core::experiment::{Coordinates, Experiment, LineState, Metric};
use memgauge_core::note::Note;
use memgauge_core::pairing::Rounds;
use memgauge_core::plan::{Handoff, Probe, Transfers};
use memgauge_core::result::{Evidence, Pushes};
use memgauge_core::stats;
use memgauge_core::units::IdSet;
use memgauge_linux::memory::Buffer;

use crate::handoff::{Baton, PATIENCE, Track, protocol};
use crate::pages::combined_pages;
use crate::session::{CellError, Session, Watch};
use crate::takes::{Mark, Takes};
use crate::team::{Disturbance, Job};

/// One run of a round's hand-offs: some 50 windows of half an L2.
const RUN: Duration = Duration::from_millis(50);
/// Runs of a transfer, at least.
const LEAST_RUNS: usize = 3;
/// Windows at the start of a run that find both cores' clocks and predictors cold.
const COLD_WINDOWS: usize = 4;
/// Pairs do not disturb each other when being together changes a pair's latency by less than this.
const UNDISTURBED: f64 = 0.03;
/// Comparisons of a calibration, at least (the fewest of which an interval exists) and at most.
const COMPARISONS: std::ops::RangeInclusive<usize> = 6..=24;

/// Memory of the readers, by CPU and home, and where each reader goes on.
type Places = BTreeMap<(u32, usize), (Arc<Buffer>, usize)>;

/// A transfer of a round.
struct Leg {
    at: Coordinates,
    plan: Handoff,
    home: usize,
    /// Samples by run.
    takes: Takes,
}

impl Leg {
    fn new(transfers: &Transfers, (reader, holder): (u32, u32), home: usize, state: LineState) -> Option<Self> {
        let (at, plan) = transfers.transfer(reader, holder, home, state)?;
        Some(Self { at, plan, home, takes: Takes::by_burst(LEAST_RUNS) })
    }

    fn cpus(&self) -> [u32; 2] {
        [self.plan.reader, self.plan.holder]
    }

    /// Median of all runs.
    fn median(&self) -> Option<f64> {
        stats::median(&self.takes.groups(0).concat())
    }
}

/// Whether pairs at once disturb each other, by what being beside others makes of a pair's latency. `None`: not known yet.
fn undisturbed(ratios: &[f64]) -> Option<bool> {
    let (low, high) = stats::median_interval(&stats::sorted(ratios))?;
    let (least, most) = (1.0 - UNDISTURBED, 1.0 + UNDISTURBED);
    match () {
        () if low >= least && high <= most => Some(true),
        () if high < least || low > most => Some(false),
        () => None,
    }
}

/// What a reader brings back: a sample for each of its turns, and the line it came to.
type Read = (Vec<f64>, usize);

impl Session<'_> {
    pub(crate) fn transfers(&mut self, experiment: Experiment, transfers: &Transfers) -> Result<(), CellError> {
        let cpus: IdSet = transfers.ends.iter().map(|e| e.cpu).collect();
        let rounds = Rounds::new(&cpus, &self.setting.machine.topology);
        let mut places = self.places(transfers)?;
        let rounds: Vec<Vec<(u32, u32)>> = match self.disturbing(transfers, &rounds, &mut places)? {
            None => rounds.iter().collect(),
            Some(_) if !transfers.representatives.is_empty() => {
                return self.directed(
                    experiment,
                    transfers,
                    &transfers.representatives.iter().map(|p| vec![*p]).collect::<Vec<_>>(),
                    &mut places,
                );
            }
            Some(_) => rounds.iter().flatten().map(|pair| vec![pair]).collect(),
        };
        let back = |round: &Vec<(u32, u32)>| round.iter().map(|&(a, b)| (b, a)).collect();
        let directed: Vec<Vec<(u32, u32)>> = rounds.into_iter().flat_map(|round| [back(&round), round]).collect();
        self.directed(experiment, transfers, &directed, &mut places)
    }

    /// Rounds of pairs of reader and holder, in each state, with lines at each home; and the first pair once more.
    fn directed(
        &mut self,
        experiment: Experiment,
        transfers: &Transfers,
        rounds: &[Vec<(u32, u32)>],
        places: &mut Places,
    ) -> Result<(), CellError> {
        let (mut done, mut failed) = (0, None);
        let again = rounds.first().and_then(|r| r.first()).filter(|_| rounds.len() > 2).map(|p| vec![*p]);
        for (nth, round) in rounds.iter().chain(&again).enumerate() {
            for home in 0..transfers.homes() {
                for &state in &transfers.states {
                    let mut legs: Vec<Leg> = round.iter().filter_map(|&pair| Leg::new(transfers, pair, home, state)).collect();
                    if nth == rounds.len() {
                        legs.iter_mut().for_each(|leg| leg.at.repeat = true);
                    }
                    match self.measured(experiment, transfers, legs, places) {
                        Err(CellError::Interrupted) => return Err(CellError::Interrupted),
                        Err(error) => failed = Some(error),
                        Ok(()) => {}
                    }
                }
            }
            done += 1;
            self.within(f64::from(done) / rounds.len() as f64);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Runs legs together until their intervals are narrow or their time is over, and tells their results.
    fn measured(
        &mut self,
        experiment: Experiment,
        transfers: &Transfers,
        mut legs: Vec<Leg>,
        places: &mut Places,
    ) -> Result<(), CellError> {
        let Some(first) = legs.first().map(|l| l.plan.reader) else { return Ok(()) };
        let cpus: IdSet = legs.iter().flat_map(Leg::cpus).collect();
        let watch = self.watch(first, &cpus)?;
        let target = self.plan.stop.relative_half_width;
        let (fixed, mut spent) = (self.plan.stop.fixed_time, 0.0);
        loop {
            let run = if fixed { Duration::from_secs_f64(transfers.each_s / LEAST_RUNS as f64) } else { RUN };
            self.run_legs(&mut legs, places, run)?;
            spent += run.as_secs_f64();
            let runs = legs.iter().map(|l| l.takes.len()).min().unwrap_or(0);
            // With a tenth of a run to spare: lengths of runs do not add up exactly.
            let over = spent + run.as_secs_f64() / 10.0 >= transfers.each_s;
            // Where a run was disturbed there is another one, while there is time.
            let narrow = || legs.iter().all(|l| l.takes.settled() && l.takes.converged(0, target));
            if self.interrupted() || (runs >= LEAST_RUNS && (over || (!fixed && narrow()))) {
                break;
            }
        }
        if self.interrupted() {
            return Err(CellError::Interrupted);
        }
        self.told(experiment, legs, places, watch);
        Ok(())
    }

    fn told(&mut self, experiment: Experiment, legs: Vec<Leg>, places: &Places, watch: Watch) {
        let mut all = Disturbance::default();
        legs.iter().for_each(|leg| all.add(&leg.takes.course().disturbance));
        let noise = self.unwatch(watch, &all);
        for Leg { at, plan, home, takes } in legs {
            let mut estimate = takes.conclude(0, self.plan.stop.relative_half_width);
            let mut noise = noise.clone();
            takes.tell(&mut noise);
            if estimate.value.is_none() {
                let reason = format!("CPUs {} and {} never ran at the same time", plan.reader, plan.holder);
                estimate = Estimate { reason: Some(reason), ..Estimate::default() };
            }
            let buffer = places.get(&(plan.reader, home)).map(|(buffer, _)| buffer);
            let pushes = Pushes { holder: plan.holder_pushes, reader: plan.reader_pushes };
            let evidence = Evidence {
                threads: 2,
                kernel: protocol(&plan),
                pushes: (plan.holder_pushes.0 > 0 || plan.reader_pushes.0 > 0).then_some(pushes),
                buffer: plan.buffer.bytes,
                window: Some(plan.window),
                stride: Some(plan.stride),
                allocations: 1,
                pages: combined_pages(buffer.iter().map(|b| (b.pages(), plan.buffer.bytes))),
                placement: buffer.map(|b| b.placement_now()).unwrap_or_default(),
                noise,
                ..Default::default()
            };
            self.push(experiment, at, Metric::Latency, estimate, evidence);
        }
    }

    /// Each reader's memory, with its chain: one for all holders, in windows of the smallest of theirs.
    fn places(&mut self, transfers: &Transfers) -> Result<Places, CellError> {
        let window = transfers.ends.iter().map(|e| e.window).min().unwrap_or_default();
        let mut places = Places::new();
        for (nth, end) in transfers.ends.iter().enumerate() {
            for (home, plan) in end.buffers.iter().enumerate() {
                let buffer = self.allocate(plan)?;
                let probe = Probe { cpu: end.cpu, buffer: plan.clone(), stride: transfers.stride, window };
                let order = transfers.order.unwrap_or(memgauge_core::experiment::ChaseOrder::WindowLocal);
                let start = self.chain_start(&probe, plan.bytes, order, &buffer, nth as u64)?;
                places.insert((end.cpu, home), (buffer, start));
                if self.interrupted() {
                    return Err(CellError::Interrupted);
                }
            }
        }
        Ok(places)
    }

    /// By how much being together changes a pair's latency, when that is more than pairs at once may; and says so.
    fn disturbing(&mut self, transfers: &Transfers, rounds: &Rounds, places: &mut Places) -> Result<Option<f64>, CellError> {
        let Some(fullest) = rounds.iter().max_by_key(Vec::len).filter(|r| r.len() > 1) else { return Ok(None) };
        let state = transfers.states.iter().copied().max().unwrap_or(LineState::Hitm);
        let leg = |pair: (u32, u32)| Leg::new(transfers, pair, 0, state);
        let mut ratios = Vec::new();
        let mut verdict = None;
        for turn in 0..*COMPARISONS.end() {
            // Another pair each time: near ones and far ones may be disturbed differently.
            let pair = fullest[turn % fullest.len()];
            let mut alone: Vec<Leg> = leg(pair).into_iter().collect();
            self.run_legs(&mut alone, places, RUN)?;
            let mut together: Vec<Leg> = fullest.iter().filter_map(|&p| leg(p)).collect();
            self.run_legs(&mut together, places, RUN)?;
            let beside = together.iter().find(|l| (l.plan.reader, l.plan.holder) == pair).and_then(Leg::median);
            ratios.extend(beside.zip(alone.first().and_then(Leg::median)).map(|(beside, alone)| beside / alone));
            if self.interrupted() {
                return Err(CellError::Interrupted);
            }
            verdict = undisturbed(&ratios).filter(|_| ratios.len() >= *COMPARISONS.start());
            if verdict.is_some() {
                break;
            }
        }
        let ratio = stats::median(&ratios).unwrap_or(f64::NAN);
        let pairs = fullest.len();
        if verdict == Some(true) {
            self.note(Note::info(
                "pairs-at-once",
                format!(
                    "up to {pairs} pairs of CPUs were measured at once: beside others a pair's latency was {ratio:.3} times that alone"
                ),
            ));
            return Ok(None);
        }
        let found = match verdict {
            Some(_) => format!("beside others a pair's latency was {ratio:.2} times that alone"),
            None => "whether pairs of CPUs disturb each other could not be told".to_owned(),
        };
        let instead = match transfers.representatives.len() {
            0 => "pairs were measured one by one".to_owned(),
            n => format!("{n} pairs that stand for the others were measured one by one"),
        };
        let advice = "name fewer CPUs with --cpu for all of their pairs, or measure when the machine is idle";
        self.note(Note::info("pairs-one-by-one", format!("{found}; {instead}")).advise(advice));
        Ok(Some(ratio))
    }

    /// One run of legs at once.
    fn run_legs(&mut self, legs: &mut [Leg], places: &mut Places, run: Duration) -> Result<(), CellError> {
        let clock = self.clock();
        let mut jobs: Vec<(u32, Job<Option<Read>>)> = Vec::with_capacity(2 * legs.len());
        let mut tracks = Vec::with_capacity(legs.len());
        for Leg { plan, home, .. } in legs.iter() {
            let Some((buffer, start)) = places.get(&(plan.reader, *home)).cloned() else {
                return Err(CellError::Cannot(format!("CPU {} has no buffer", plan.reader)));
            };
            let (reads, pushes) = (self.other_buffer(plan, plan.reader_pushes)?, self.other_buffer(plan, plan.holder_pushes)?);
            tracks.push((plan, buffer, start, reads, pushes));
        }
        // Set once everything is allocated, so that all end together.
        let end = clock.now() + clock.ticks_of(run);
        for (plan, buffer, start, reads, pushes) in tracks {
            let hops = (plan.window.0 / plan.stride.0) as usize;
            let track = Track { parties: 2, other: reads, buffer, start, hops, clock, end, baton: Baton::new() };
            let (holder, state) = (Track { other: pushes, ..track.clone() }, plan.state);
            jobs.push((plan.reader, Box::new(move || Some(track.read_on()))));
            jobs.push((
                plan.holder,
                Box::new(move || {
                    holder.hold(state);
                    None
                }),
            ));
        }
        let cpus = legs.iter().flat_map(Leg::cpus).collect();
        let before = self.stolen(&cpus);
        let mut done = self.team.run(jobs, run + 4 * PATIENCE)?.into_iter();
        let stolen = self.stolen_since(before, &cpus, run);
        self.spent(run);
        self.worked(&cpus);
        for leg in legs {
            // The reader's job comes before the holder's.
            let (Some(reader), Some(holder)) = (done.next(), done.next()) else { break };
            let mut disturbance = reader.disturbance;
            disturbance.add(&holder.disturbance);
            let Some((mut samples, next)) = reader.value else { continue };
            if let Some(place) = places.get_mut(&(leg.plan.reader, leg.home)) {
                place.1 = next;
            }
            let cold = (samples.len() / 2).min(COLD_WINDOWS);
            let mark = Mark::of_threads(leg.cpus().len(), disturbance, stolen, None, None);
            leg.takes.add(0, vec![samples.split_off(cold)], mark);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::plan::Work;
    use memgauge_core::spec::{Spec, Task, TransferShape};
    use memgauge_core::units::Bytes;
    use memgauge_linux::clock::Clock;

    #[test]
    fn the_whole_interval_decides() {
        assert_eq!(undisturbed(&[1.0; 5]), None, "too few for an interval");
        assert_eq!(undisturbed(&[0.99, 1.0, 1.01, 1.02, 1.0, 0.98]), Some(true));
        assert_eq!(undisturbed(&[1.2, 1.1, 1.3, 1.2, 1.15, 1.25]), Some(false));
        assert_eq!(undisturbed(&[0.5; 6]), Some(false), "a pair that others make faster is disturbed as well");
        assert_eq!(undisturbed(&[1.0, 1.0, 1.0, 1.1, 1.1, 1.0]), None);
    }

    #[test]
    fn pairs_of_a_round_are_measured_at_once() {
        struct Nobody;
        impl crate::Observer for Nobody {
            fn cell(&mut self, _: &memgauge_core::plan::Step, _: &memgauge_core::plan::Cell) {}
            fn progress(&mut self, _: f64) {}
        }
        let root = std::path::Path::new("/");
        let Ok(machine) = memgauge_linux::sysfs::read_machine(root) else {
            eprintln!("skipped: no sysfs");
            return;
        };
        let mut spec = Spec::new(Task::C2c(TransferShape::CpuMatrix));
        spec.cpus = Some(machine.topology.one_per_core(&machine.allowed.cpus).iter().take(6).collect());
        spec.size = Some(Bytes::mib(4));
        spec.time = Some(Duration::from_millis(150));
        let Ok(plan) = memgauge_core::planner::plan(&spec, &machine, &[]) else {
            eprintln!("skipped: fewer than two cores");
            return;
        };
        let Work::Transfers(transfers) = &plan.steps[0].cells[0].work else { panic!() };
        let stop = std::sync::atomic::AtomicBool::new(false);
        let setting = crate::Setting { deadline: None, machine: &machine, clock: Clock::calibrate(root), root: root.into(), stop: &stop };
        let mut nobody = Nobody;
        let mut session = Session::new(&plan, &setting, &mut nobody);
        let mut places = session.places(transfers).unwrap();
        // Without a calibration, whose answer is the machine's.
        let rounds: Vec<_> = Rounds::new(spec.cpus.as_ref().unwrap(), &machine.topology).iter().collect();
        session.directed(Experiment::CacheToCache, transfers, &rounds, &mut places).unwrap();
        let n = spec.cpus.as_ref().unwrap().len();
        let once = session.results.iter().filter(|m| !m.at.repeat);
        let measured = once.clone().filter(|m| m.estimate.value.is_some_and(|ns| ns > 0.0)).count();
        assert_eq!(once.count(), n * (n - 1), "each pair one way, in both states");
        // Other processes may keep two CPUs from ever running at the same time.
        assert!(2 * measured > n * (n - 1), "{measured} measured");
    }
}
