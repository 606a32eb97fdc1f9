//! Transfers between every two of some CPUs, in rounds of pairs that have no core in common, a round's pairs at once.
//!
//! Pairs may run at once only where they do not disturb each other: they share the mesh, the caches' directory and the home's memory. So a
//! calibration comes first. One pair runs alone and beside the others, in turn; only when the whole interval of the ratio of the two is
//! within a few percent of 1 are pairs measured together. Otherwise they are measured one by one or, where the plan says that this would
//! take too long, only pairs that represent the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memgauge_analysis::conclusions::judge;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{ChaseOrder, Coordinates, LineState, Metric};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::pairing::Rounds as PairRounds;
use memgauge_model::plan::{Handoff, Probe, Transfers};
use memgauge_model::protocol::{MAX_BURST, MIN_PAIR_RUNS, PAIR_RUN};
use memgauge_model::result::{Evidence, Noise, PairMatrix, PairsNotMeasured, Placement};
use memgauge_model::stats;
use memgauge_model::units::IdSet;
use memgauge_model::wording::{self, reasons};
use memgauge_model::words;
use memgauge_model::words::{Knob, Way};
use memgauge_os::memory::Buffer;

use super::pair::{run_at_once, transfer_evidence};
use crate::burst::chase::Ring;
use crate::burst::handover::{Transfer, TransferRun};
use crate::burst::result::Conditions;
use crate::burst::workers::SchedulerNoise;
use crate::error::{Result, no_buffer};
use crate::experiment::disturbance::{BurstConditions, BurstSamples, GroupBy};
use crate::experiment::sampling::{Sampler, StopAfter, measure_until_sure};
use crate::measured::{FREE_CPUS, Measured, Subject};
use crate::memory::combined_pages;
use crate::session::Session;

/// Pairs do not disturb each other when being together changes a pair's latency by less than this.
const MAX_CHANGE: f64 = 0.03;
/// Comparisons of a calibration: at least the fewest for which an interval exists, and at most.
const COMPARISONS: std::ops::RangeInclusive<usize> = 6..=24;

/// Memory of a reader at a home.
struct ReaderBuffer {
    buffer: Arc<Buffer>,
    /// The ring, at the line where the reader goes on.
    ring: Ring,
    /// The location of its pages, read back once it was first used.
    placement: Option<Placement>,
}

/// Memory of the readers, by CPU and home.
type ReaderMemory = BTreeMap<(u32, usize), ReaderBuffer>;

/// The matrices of many CPUs, by home and state; empty where each pair has a result of its own.
type Matrices = BTreeMap<(usize, LineState), PairMatrix>;

/// A reader and a holder.
type CpuPair = (u32, u32);

struct PairTransfer {
    at: Coordinates,
    plan: Handoff,
    home: usize,
    /// Samples by run.
    samples: BurstSamples,
}

impl PairTransfer {
    fn new(transfers: &Transfers, (reader, holder): CpuPair, home: usize, state: LineState) -> Option<Self> {
        let (at, plan) = transfers.transfer(reader, holder, home, state)?;
        Some(Self { at, plan, home, samples: BurstSamples::new(GroupBy::Burst, MIN_PAIR_RUNS) })
    }

    fn cpus(&self) -> [u32; 2] {
        [self.plan.reader, self.plan.holder]
    }

    fn median(&self) -> Option<f64> {
        stats::median(&self.samples.groups(0).concat())
    }
}

/// The runs of several transfers at once.
struct RoundSampler<'a> {
    transfers: Vec<PairTransfer>,
    memory: &'a mut ReaderMemory,
    run: Duration,
}

impl Sampler for RoundSampler<'_> {
    fn sample_round(&mut self, session: &mut Session<'_>, _: u32) -> Result<Duration> {
        run_pairs(session, &mut self.transfers, self.memory, self.run)?;
        Ok(self.run)
    }

    fn samples(&self) -> impl Iterator<Item = &BurstSamples> {
        self.transfers.iter().map(|t| &t.samples)
    }
}

/// Whether pairs at once leave each other undisturbed, by the ratios of a pair's latency beside others to that alone. `None`: not known yet.
fn undisturbed(ratios: &[f64]) -> Option<bool> {
    let (low, high) = stats::median_interval(&stats::sorted(ratios))?;
    let (min, max) = (1.0 - MAX_CHANGE, 1.0 + MAX_CHANGE);
    match () {
        () if low >= min && high <= max => Some(true),
        () if high < min || low > max => Some(false),
        () => None,
    }
}

pub(crate) fn measure(session: &mut Session<'_>, subject: Subject<'_>, transfers: &Transfers, measured: &mut Measured) -> Result {
    let cpus: IdSet = transfers.ends.iter().map(|e| e.cpu).collect();
    let rounds = PairRounds::new(&cpus, &session.context.machine.topology);
    let mut memory = allocate(session, transfers)?;
    let at_once = pairs_may_run_at_once(session, transfers, &rounds, &mut memory, measured)?;
    if !at_once && !transfers.representatives.is_empty() {
        let rounds: Vec<Vec<CpuPair>> = transfers.representatives.iter().map(|pair| vec![*pair]).collect();
        return measure_rounds(session, subject, transfers, &rounds, &mut memory, measured);
    }
    let rounds: Vec<Vec<CpuPair>> =
        if at_once { rounds.iter().collect() } else { rounds.iter().flatten().map(|pair| vec![pair]).collect() };
    let reversed = |round: &Vec<CpuPair>| round.iter().map(|&(a, b)| (b, a)).collect();
    let both_ways: Vec<Vec<CpuPair>> = rounds.into_iter().flat_map(|round| [reversed(&round), round]).collect();
    measure_rounds(session, subject, transfers, &both_ways, &mut memory, measured)
}

/// Measures rounds of pairs of reader and holder, in each state, with lines at each home; and the first pair once more.
fn measure_rounds(
    session: &mut Session<'_>,
    subject: Subject<'_>,
    transfers: &Transfers,
    rounds: &[Vec<CpuPair>],
    memory: &mut ReaderMemory,
    measured: &mut Measured,
) -> Result {
    let listed = !transfers.as_matrix() || !transfers.representatives.is_empty() && rounds.len() == transfers.representatives.len();
    let mut entries = Entries { subject, matrices: if listed { Matrices::new() } else { empty_matrices(transfers) }, measured };
    let outcome = measure_into(session, transfers, rounds, memory, &mut entries);
    entries.finish(memory);
    outcome
}

/// The tables that pairs are entered in.
struct Entries<'a> {
    subject: Subject<'a>,
    matrices: Matrices,
    measured: &'a mut Measured,
}

/// The home and state that pairs at once share.
#[derive(Clone, Copy)]
struct Entry {
    home: usize,
    state: LineState,
}

/// A matrix for each home and state.
fn empty_matrices(transfers: &Transfers) -> Matrices {
    let cpus: Vec<u32> = transfers.ends.iter().map(|e| e.cpu).collect();
    let matrix = |home: usize, state: LineState| {
        let buffer = transfers.ends.first().and_then(|e| e.buffers.get(home));
        let node = buffer.filter(|_| transfers.homes() > 1).map(|b| b.node);
        let memory_dir = buffer.and_then(|b| b.directory.clone());
        let evidence = transfers.transfer(cpus[0], cpus[1], home, state).map(|(_, plan)| transfer_evidence(&plan)).unwrap_or_default();
        PairMatrix { order: transfers.order, memory_dir, evidence, ..PairMatrix::new(cpus.clone(), state, node) }
    };
    let all = (0..transfers.homes()).flat_map(|home| transfers.states.iter().map(move |&state| (home, state)));
    all.map(|(home, state)| ((home, state), matrix(home, state))).collect()
}

fn measure_into(
    session: &mut Session<'_>,
    transfers: &Transfers,
    rounds: &[Vec<CpuPair>],
    memory: &mut ReaderMemory,
    entries: &mut Entries<'_>,
) -> Result {
    let mut failed = None;
    let again = rounds.first().and_then(|r| r.first()).filter(|_| rounds.len() > 2).map(|p| vec![*p]);
    for (nth, round) in rounds.iter().chain(&again).enumerate() {
        entries.measured.again |= nth == rounds.len();
        for home in 0..transfers.homes() {
            for &state in &transfers.states {
                let pairs: Vec<PairTransfer> = round.iter().filter_map(|&pair| PairTransfer::new(transfers, pair, home, state)).collect();
                if session.interrupted() {
                    return Err(NotMeasured::Interrupted);
                }
                match measure_at_once(session, transfers.each_s, pairs, memory, (entries, Entry { home, state })) {
                    Err(NotMeasured::Interrupted) => return Err(NotMeasured::Interrupted),
                    Err(error) => failed = Some(error),
                    Ok(()) => {}
                }
            }
        }
        session.progress.within_cell((nth + 1) as f64 / rounds.len() as f64);
    }
    failed.map_or(Ok(()), Err)
}

/// Samples transfers together until their intervals are narrow or their time is over, and enters them.
fn measure_at_once(
    session: &mut Session<'_>,
    each_s: f64,
    transfers: Vec<PairTransfer>,
    memory: &mut ReaderMemory,
    (entries, entry): (&mut Entries<'_>, Entry),
) -> Result {
    let Some(first) = transfers.first().map(|t| t.plan.reader) else { return Ok(()) };
    let cpus: IdSet = transfers.iter().flat_map(PairTransfer::cpus).collect();
    session.watch(first, &cpus)?;
    let fixed = session.budget.stop.fixed_time;
    let run = if fixed { Duration::from_secs_f64(each_s / f64::from(MIN_PAIR_RUNS)).min(MAX_BURST) } else { PAIR_RUN };
    // With a tenth of a run to spare: lengths of runs do not add up exactly.
    let budget = Duration::from_secs_f64(each_s).saturating_sub(run / 10);
    let mut sampler = RoundSampler { transfers, memory, run };
    let stop_after = StopAfter { min_rounds: MIN_PAIR_RUNS, budget: Some(budget), want_undisturbed: true };
    measure_until_sure(session, stop_after, &mut sampler, entries.measured)?;
    // An interruption discards the results only if a transfer was not measured often enough.
    if session.interrupted() && sampler.samples().any(|samples| samples.groups(0).len() < MIN_PAIR_RUNS as usize) {
        return Err(NotMeasured::Interrupted);
    }
    let RoundSampler { transfers, memory, .. } = sampler;
    entries.add(session, transfers, memory, entry);
    Ok(())
}

impl Entries<'_> {
    /// Ends watching, and enters transfers as results or in their matrix.
    fn add(&mut self, session: &mut Session<'_>, transfers: Vec<PairTransfer>, memory: &mut ReaderMemory, entry: Entry) {
        let mut all = SchedulerNoise::default();
        transfers.iter().for_each(|t| all.add(&t.samples.conditions().scheduler));
        let noise = session.unwatch(&all);
        let readers = memory.len();
        let mut matrix = self.matrices.get_mut(&(entry.home, entry.state));
        if let Some(matrix) = &mut matrix {
            matrix.evidence.noise.add(&noise);
        }
        for PairTransfer { at, plan, home, samples } in transfers {
            let mut estimate = samples.estimate_with_drift(0, session.budget.stop.relative_half_width);
            let mut noise = noise.clone();
            samples.write_disturbances(&mut noise);
            if estimate.value.is_none() {
                let error = NotMeasured::NeverTogether { cpus: [plan.reader, plan.holder].into_iter().collect() };
                estimate = Estimate { not_measured: Some(error), ..Estimate::default() };
            }
            let reader = memory.get_mut(&(plan.reader, home));
            let placement =
                reader.map(|r| r.placement.get_or_insert_with(|| r.buffer.placement_among(readers)).clone()).unwrap_or_default();
            let buffer = memory.get(&(plan.reader, home)).map(|reader| &reader.buffer);
            let evidence = Evidence {
                threads: 2,
                allocations: 1,
                pages: combined_pages(buffer.iter().map(|b| (b.pages(), plan.buffer.bytes))),
                placement,
                noise,
                ..transfer_evidence(&plan)
            };
            match &mut matrix {
                Some(matrix) if !self.measured.again => {
                    let why = estimate.not_measured.clone().or_else(|| judge::taken_away(&estimate, &evidence));
                    let mut disturbed = Noise::default();
                    samples.write_disturbances(&mut disturbed);
                    matrix.evidence.noise.add(&disturbed);
                    match why {
                        Some(why) => matrix.miss(plan.reader, plan.holder, why),
                        None => matrix.set(plan.reader, plan.holder, &estimate, &judge::quality(&estimate, &evidence)),
                    }
                }
                _ => self.measured.add(self.subject.judge(at, Metric::Latency, estimate, evidence)),
            }
        }
    }

    /// Adds to matrices what their pairs have in common.
    fn finish(self, memory: &ReaderMemory) {
        for ((home, _), mut matrix) in self.matrices {
            let buffers = || memory.iter().filter(|((_, at), _)| *at == home).map(|(_, reader)| reader);
            let bytes = matrix.evidence.buffer;
            matrix.evidence = Evidence {
                threads: 2,
                allocations: 1,
                pages: combined_pages(buffers().map(|b| (b.buffer.pages(), bytes))),
                placement: Placement::combined(buffers().filter_map(|b| b.placement.clone())),
                ..matrix.evidence
            };
            let all = matrix.cpus.len() * matrix.cpus.len().saturating_sub(1);
            for PairsNotMeasured { why, pairs } in &matrix.not_measured {
                let (at, why_not) = (wording::coordinates(&matrix.shared_coordinates()), reasons::not_measured(why));
                let note = Note::error(NoteCode::CellNotMeasured, format!("{} of {all} pairs of CPUs, {at}: {why_not}", pairs.len()));
                self.measured.note(if why.is_want_of_cpu_time() { note.advise(FREE_CPUS) } else { note });
            }
            self.measured.matrices.push(matrix);
        }
    }
}

/// Each reader's memory, with its chain: one for all holders, in windows of the smallest of theirs.
fn allocate(session: &mut Session<'_>, transfers: &Transfers) -> Result<ReaderMemory> {
    let window = transfers.ends.iter().map(|e| e.window).min().unwrap_or_default();
    let mut memory = ReaderMemory::new();
    for (nth, end) in transfers.ends.iter().enumerate() {
        for (home, plan) in end.buffers.iter().enumerate() {
            let buffer = session.allocate(plan)?;
            let probe = Probe { cpu: end.cpu, buffer: plan.clone(), stride: transfers.stride, window };
            let order = transfers.order.unwrap_or(ChaseOrder::WindowLocal);
            let ring = session.ring(&probe, order, &buffer, nth as u64)?;
            memory.insert((end.cpu, home), ReaderBuffer { buffer, ring, placement: None });
            if session.interrupted() {
                return Err(NotMeasured::Interrupted);
            }
        }
    }
    Ok(memory)
}

/// Whether the pairs of a round may be measured at once, with a note that says so. A round of one pair always may.
fn pairs_may_run_at_once(
    session: &mut Session<'_>,
    transfers: &Transfers,
    rounds: &PairRounds,
    memory: &mut ReaderMemory,
    measured: &mut Measured,
) -> Result<bool> {
    let Some(fullest) = rounds.iter().max_by_key(Vec::len).filter(|r| r.len() > 1) else { return Ok(true) };
    let state = transfers.states.iter().copied().max().unwrap_or(LineState::Hitm);
    let transfer = |pair: CpuPair| PairTransfer::new(transfers, pair, 0, state);
    let mut ratios = Vec::new();
    let mut verdict = None;
    for turn in 0..*COMPARISONS.end() {
        // Another pair each time: near ones and far ones may be disturbed differently.
        let pair = fullest[turn % fullest.len()];
        let mut alone: Vec<PairTransfer> = transfer(pair).into_iter().collect();
        run_pairs(session, &mut alone, memory, PAIR_RUN)?;
        let mut together: Vec<PairTransfer> = fullest.iter().filter_map(|&p| transfer(p)).collect();
        run_pairs(session, &mut together, memory, PAIR_RUN)?;
        let beside = together.iter().find(|t| (t.plan.reader, t.plan.holder) == pair).and_then(PairTransfer::median);
        ratios.extend(beside.zip(alone.first().and_then(PairTransfer::median)).map(|(beside, alone)| beside / alone));
        if session.interrupted() {
            return Err(NotMeasured::Interrupted);
        }
        verdict = undisturbed(&ratios).filter(|_| ratios.len() >= *COMPARISONS.start());
        if verdict.is_some() {
            break;
        }
    }
    let ratio = stats::median(&ratios).unwrap_or(f64::NAN);
    measured.note(note_at_once(verdict, ratio, fullest.len(), transfers.representatives.len()));
    Ok(verdict == Some(true))
}

/// A note on the finding of the calibration and its consequence.
fn note_at_once(verdict: Option<bool>, ratio: f64, pairs: usize, representatives: usize) -> Note {
    if verdict == Some(true) {
        return Note::info(
            NoteCode::PairsAtOnce,
            format!(
                "up to {pairs} pairs of CPUs were measured at once: with other pairs running, a pair's latency was {ratio:.3} times its latency alone"
            ),
        );
    }
    let found = match verdict {
        Some(_) => format!("with other pairs running, a pair's latency was {ratio:.2} times its latency alone"),
        None => "it could not be found out whether pairs of CPUs disturb each other".to_owned(),
    };
    let instead = match representatives {
        0 => "pairs were measured one by one".to_owned(),
        n => format!("{n} pairs that represent the others were measured one by one"),
    };
    let fewer = words!["name fewer CPUs with ", Knob::Cpus, " for all of their pairs"];
    let advice = Way::Say(fewer).or("measure when the machine is idle");
    Note::info(NoteCode::PairsOneByOne, format!("{found}; {instead}")).advise(advice)
}

/// One run of pairs at once; each goes on where its reader stopped.
fn run_pairs(session: &mut Session<'_>, transfers: &mut [PairTransfer], memory: &mut ReaderMemory, run: Duration) -> Result {
    let mut runs = Vec::with_capacity(transfers.len());
    for PairTransfer { plan, home, .. } in transfers.iter() {
        let reader = memory.get(&(plan.reader, *home)).ok_or_else(|| no_buffer(plan.reader))?;
        runs.push(Transfer { plan, ring: reader.ring.clone() });
    }
    let (done, others) = run_at_once(session, &runs, run, u64::MAX)?;
    for (transfer, TransferRun { samples, ring, scheduler, clean, left_out, stalled, .. }) in transfers.iter_mut().zip(done) {
        if let Some((reader, ring)) = memory.get_mut(&(transfer.plan.reader, transfer.home)).zip(ring) {
            reader.ring = ring;
        }
        let conditions = BurstConditions::judge(transfer.cpus().len(), Conditions { scheduler, coverage: None }, others, None);
        let conditions = conditions.with_samples(clean, left_out, stalled);
        transfer.samples.add(0, vec![samples], conditions);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_model::plan::Work;
    use memgauge_model::spec::{Spec, Task, TransferShape, TransferSpec};
    use memgauge_model::units::Bytes;
    use memgauge_os::clock::Clock;
    use memgauge_testing::not_tested;

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
        struct Silent;
        impl crate::context::Observer for Silent {
            fn cell(&mut self, _: &memgauge_model::plan::Step, _: &memgauge_model::plan::Cell) {}
            fn progress(&mut self, _: f64) {}
        }
        let root = std::path::Path::new("/");
        let Ok(machine) = memgauge_os::topology::read_machine(root) else {
            not_tested!("no sysfs");
        };
        let (shape, buffer) = (TransferShape::CpuMatrix, Some(Bytes::mib(4)));
        let mut spec = Spec::new(Task::C2c(TransferSpec { shape, buffer, ..TransferSpec::default() }));
        spec.cpus = Some(machine.topology.one_per_core(&machine.allowed.cpus).iter().take(6).collect());
        spec.time = Some(Duration::from_millis(150));
        let Ok(plan) = memgauge_planner::plan(&spec, &machine, &[]) else {
            not_tested!("fewer than two cores");
        };
        let Work::Transfers(transfers) = &plan.steps[0].cells[0].work else { panic!() };
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let context = crate::context::RunContext::new(&machine, Clock::calibrate(root), root.into(), &stop);
        let mut silent = Silent;
        let mut session = Session::new(&plan, &context, &mut silent);
        let mut memory = allocate(&mut session, transfers).unwrap();
        // Without a calibration, whose answer is the machine's.
        let rounds: Vec<_> = PairRounds::new(spec.cpus.as_ref().unwrap(), &machine.topology).iter().collect();
        let n = spec.cpus.as_ref().unwrap().len();
        // Other processes may keep two CPUs from ever running at the same time, for a while.
        let mut measured = (0..3).map(|_| {
            let mut measured = Measured::default();
            let at = Coordinates::default();
            let subject = Subject { topology: &machine.topology, experiment: plan.steps[0].experiment, at: &at };
            measure_rounds(&mut session, subject, transfers, &rounds, &mut memory, &mut measured).unwrap();
            assert_eq!(measured.results.len(), n * (n - 1), "each pair one way, in both states");
            measured.results.iter().filter(|m| m.estimate.value.is_some_and(|ns| ns > 0.0)).count()
        });
        assert!(measured.any(|measured| 2 * measured > n * (n - 1)), "less than half in each of three tries");
    }
}
