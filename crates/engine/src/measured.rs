//! Results as they are measured: each whole, judged, and with notes for its reader.

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::judge;
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Coordinates, Experiment, Method, Metric};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::Work;
use memgauge_model::result::{
    Checksums, CurveSummary, Evidence, Incomplete, InterleaveSummary, Measurement, PairMatrix, PlacementStatus, RfoEvidence, Timing,
};
use memgauge_model::topology::Topology;
use memgauge_model::traffic::Mix;
use memgauge_model::wording::{self, reasons};
use memgauge_os::memory::MemoryFaultKind;

use crate::context::Progress;

/// What to do about memory that does not keep what is written to it.
const TEST_MEMORY: &str = "take the machine out of service, look at its log for memory errors, and test its memory";
/// What to do where other processes have the CPUs.
pub(crate) const FREE_CPUS: &str = "run again when other processes leave these CPUs some time, or for longer";
/// What to do about a file whose memory cannot be read.
const SEE_MEDIA_ERRORS: &str =
    "see the kernel's log (dmesg); of persistent memory, 'ndctl list --media-errors' lists the ranges with errors that the device knows";

/// The results of a run.
pub struct Outcome {
    /// One or more results a cell; cells that could not be measured have a result without value and with the reason.
    pub results: Vec<Measurement>,
    /// Those of cells that were measured again.
    pub repeats: Vec<Measurement>,
    /// All pairs of many CPUs.
    pub matrices: Vec<PairMatrix>,
    /// A summary for each loaded-latency curve.
    pub curves: Vec<CurveSummary>,
    /// The findings of searches for interleave weights.
    pub interleaves: Vec<InterleaveSummary>,
    /// Whether plain stores read the line first, for each class of loaders for which that was measured.
    pub stores_read: Vec<RfoEvidence>,
    /// What a reader should know.
    pub notes: Vec<Note>,
    /// How the time was spent; `total_s` is the caller's.
    pub timing: Timing,
    /// Core frequency in GHz by CPU, as measured along the way.
    pub core_ghz: BTreeMap<u32, f64>,
    /// The same while all cores worked, where cores were compared.
    pub all_cores_ghz: BTreeMap<u32, f64>,
    /// Why not everything was measured: the time was over, or cells have no value.
    pub incomplete: Option<Incomplete>,
}

/// The subject of results: the experiment and the coordinates of a cell, on a machine.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) experiment: Experiment,
    pub(crate) at: &'a Coordinates,
}

impl<'a> Subject<'a> {
    /// The same at other coordinates.
    pub(crate) const fn at(self, at: &'a Coordinates) -> Self {
        Self { at, ..self }
    }

    /// A number with its judgement and what firmware claims; without distribution, counters and samples.
    pub(crate) fn judge(self, at: Coordinates, metric: Metric, mut estimate: Estimate, mut evidence: Evidence) -> Measurement {
        if let Some(why) = judge::taken_away(&estimate, &evidence) {
            // These are computed from the value.
            (evidence.traffic, evidence.prefetch, evidence.translation_ns) = (None, None, None);
            estimate = Estimate { not_measured: Some(why), ..Estimate::default() };
        }
        if metric == Metric::Bandwidth {
            evidence.bytes_per_cycle = estimate.value.and_then(|gbs| judge::bytes_per_cycle(gbs, evidence.threads, &evidence.noise));
        }
        Measurement {
            experiment: self.experiment,
            metric,
            unit: metric.unit(),
            firmware: firmware_claim(self.topology, self.experiment.method(metric), &at),
            at,
            distribution: None,
            quality: judge::quality(&estimate, &evidence),
            verdict: memgauge_analysis::conclusions::limit::unjudged(metric, &estimate),
            estimate,
            evidence,
            counters: None,
            lines_in_flight: None,
            samples: None,
        }
    }
}

/// The results, curves and notes of a cell, or of the cells of a run. They are kept when something fails later.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) results: Vec<Measurement>,
    /// The results that are added now repeat earlier ones.
    pub(crate) again: bool,
    pub(crate) repeats: Vec<Measurement>,
    pub(crate) matrices: Vec<PairMatrix>,
    pub(crate) curves: Vec<CurveSummary>,
    pub(crate) interleaves: Vec<InterleaveSummary>,
    pub(crate) notes: Vec<Note>,
    /// Why not everything was measured: something failed, or was cut short and has results nevertheless.
    incomplete: Option<Incomplete>,
    /// Results that the observer has.
    shown: usize,
}

impl Measured {
    /// Not everything is measured, because of this.
    pub(crate) fn cut_short(&mut self, why: Incomplete) {
        self.incomplete = Incomplete::join(self.incomplete.take(), Some(why));
    }

    /// Why not everything was measured: what was cut short, or lacks a value.
    pub(crate) fn incomplete(&self) -> Option<Incomplete> {
        let empty = || self.all().map(|m| &m.estimate).filter(|estimate| estimate.value.is_none());
        let over = empty().any(|e| matches!(e.not_measured, Some(NotMeasured::Interrupted | NotMeasured::OutOfTime)));
        // Threads that got no time leave a cell, or a point of it, without a value.
        let missing = empty().next().is_some() || self.matrices.iter().any(|m| m.counts().2 > 0);
        let why = if over { Some(Incomplete::OutOfTime) } else { missing.then_some(Incomplete::CellsMissing) };
        Incomplete::join(self.incomplete.clone(), why)
    }

    /// Nothing yet, of a cell that may be measured `again`.
    pub(crate) fn new(again: bool) -> Self {
        Self { again, ..Self::default() }
    }

    /// Adds a result, with what a reader should know of it.
    pub(crate) fn add(&mut self, mut result: Measurement) {
        if let Some(note) = taken_away(&result) {
            (result.distribution, result.lines_in_flight) = (None, None);
            self.note(note);
        }
        // Data that was not what was written deserves more than a line in a table.
        if let Some(Checksums { passes, mismatches }) = result.evidence.checksums.filter(|c| c.mismatches > 0) {
            let found = format!("{}: {mismatches} of {passes} passes read other data than was written", wording::coordinates(&result.at));
            self.note(Note::error(NoteCode::MemoryCorrupted, found).advise(TEST_MEMORY));
        }
        if self.again { &mut self.repeats } else { &mut self.results }.push(result);
    }

    /// Adds results without value for what failed, so that none goes missing silently.
    pub(crate) fn fail(&mut self, subject: Subject<'_>, work: &Work, error: &NotMeasured) {
        if !matches!(error, NotMeasured::Interrupted | NotMeasured::OutOfTime) {
            self.note(failure(&wording::coordinates(subject.at), error));
        }
        self.cut_short(error.into());
        let estimate = || Estimate { not_measured: Some(error.clone()), ..Estimate::default() };
        for at in work.places(subject.at) {
            self.add(subject.judge(at, work.metric(), estimate(), Evidence::default()));
        }
    }

    /// Results and repeats.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Measurement> {
        self.results.iter().chain(&self.repeats)
    }

    /// Whether pages of a result were on other nodes than they should.
    pub(crate) fn moved(&self) -> bool {
        self.all().any(|m| m.evidence.placement.status == PlacementStatus::Wrong)
    }

    /// Adds a note, once.
    pub(crate) fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Hands the observer the results that it does not have yet.
    pub(crate) fn show(&mut self, progress: &mut Progress<'_>) {
        if self.shown < self.results.len() {
            progress.observer.measured(&self.results[self.shown..]);
        }
        self.shown = self.results.len();
    }

    /// Adds what was measured after all this.
    pub(crate) fn append(&mut self, other: Self) {
        self.shown = self.results.len() + other.shown;
        self.results.extend(other.results);
        self.repeats.extend(other.repeats);
        self.matrices.extend(other.matrices);
        self.curves.extend(other.curves);
        self.interleaves.extend(other.interleaves);
        other.notes.into_iter().for_each(|note| self.note(note));
        self.incomplete = Incomplete::join(self.incomplete.take(), other.incomplete);
    }
}

/// The note on a number that only shows a lost CPU.
pub(crate) fn taken_away(result: &Measurement) -> Option<Note> {
    let why = result.estimate.not_measured.as_ref().filter(|why| matches!(why, NotMeasured::CpuTakenAway { .. }))?;
    let message = format!("{}: {}", wording::coordinates(&result.at), reasons::not_measured(why));
    Some(Note::error(NoteCode::CellNotMeasured, message).advise(FREE_CPUS))
}

/// The note on something that failed, and what to do about it.
pub(crate) fn failure(at: &str, error: &NotMeasured) -> Note {
    let message = format!("{at}: {error}");
    match error {
        NotMeasured::Corrupted { .. } => Note::error(NoteCode::MemoryCorrupted, message).advise(TEST_MEMORY),
        NotMeasured::MemoryFailed { fault, .. } => match fault.kind {
            MemoryFaultKind::Poisoned if fault.directory.is_none() => Note::error(NoteCode::MemoryCorrupted, message).advise(TEST_MEMORY),
            MemoryFaultKind::Poisoned => Note::error(NoteCode::MemoryCorrupted, message).advise(SEE_MEDIA_ERRORS),
            MemoryFaultKind::Truncated => {
                Note::error(NoteCode::CellNotMeasured, message).advise("measure in a directory that nothing else changes")
            }
            MemoryFaultKind::Device | MemoryFaultKind::Gone => Note::error(NoteCode::CellNotMeasured, message).advise(SEE_MEDIA_ERRORS),
        },
        NotMeasured::NoMemory { detail, .. } => {
            let note = Note::error(NoteCode::CellNotMeasured, detail.what.clone().after(format!("{at}: ")));
            Note { advice: detail.advice.clone(), ..note }
        }
        _ => Note::error(NoteCode::CellNotMeasured, message),
    }
}

/// The value that firmware claims for a cell of one node's CPUs and one node's memory. Firmware's bandwidth is that of reads.
fn firmware_claim(topology: &Topology, method: Method, at: &Coordinates) -> Option<f64> {
    if at.memory_dir.is_some() {
        // Firmware describes the node's memory, not a device there.
        return None;
    }
    let claim = topology.claim(at.cpu_node?, at.memory_node()?)?;
    match method {
        Method::IdleLatency => claim.read_latency_ns.map(|ns| ns as f64),
        Method::Bandwidth | Method::MemoryScan if at.mix == Some(Mix::AllReads) => claim.read_bandwidth_mbs.map(|mbs| mbs as f64 / 1e3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::distribution;
    use memgauge_model::experiment::{ChaseOrder, PageRequest};
    use memgauge_model::plan::{BufferPlan, IdleChase, Probe};
    use memgauge_model::result::{Noise, QualityLevel};
    use memgauge_model::units::{Bytes, IdSet};

    use super::*;

    #[test]
    fn a_number_of_a_lost_cpu_is_not_recorded() {
        let topology = Topology::default();
        let recorded = |off_cpu: f64| {
            let mut measured = Measured::default();
            let estimate = Estimate { value: Some(1_305_731.0), n: 9, converged: true, ..Estimate::default() };
            let noise = Noise { off_cpu: Some(off_cpu), ..Noise::default() };
            let evidence = Evidence { threads: 1, noise, translation_ns: Some(9.0), ..Evidence::default() };
            let at = Coordinates::default();
            let subject = Subject { topology: &topology, experiment: Experiment::IdleLatency, at: &at };
            let result = subject.judge(at.clone(), Metric::Latency, estimate, evidence);
            let mut distribution = distribution::Recorder::new(8).unwrap();
            distribution.add(&[1_000; 10], 0, 1.0);
            measured.add(Measurement { distribution: distribution.finish(), ..result });
            let why = measured.incomplete();
            assert_eq!(measured.notes.iter().filter(|note| note.code == NoteCode::CellNotMeasured).count(), usize::from(why.is_some()));
            (measured.results.remove(0), why)
        };
        let (lost, why) = recorded(0.96);
        assert_eq!(lost.estimate.not_measured, Some(NotMeasured::CpuTakenAway { percent: 96 }));
        assert_eq!((lost.estimate.value, lost.quality.level, why), (None, QualityLevel::None, Some(Incomplete::CellsMissing)));
        assert!(lost.distribution.is_none() && lost.evidence.translation_ns.is_none(), "{lost:?}");
        let (marked, why) = recorded(0.8);
        assert_eq!((marked.estimate.value, marked.quality.level, why), (Some(1_305_731.0), QualityLevel::Unreliable, None));
        assert!(marked.distribution.is_some() && marked.evidence.translation_ns.is_some());
    }

    #[test]
    fn a_chase_that_failed_has_a_result_for_each_order() {
        use ChaseOrder::{FullRandom, Sequential, WindowLocal};
        let topology = Topology::default();
        let failed = |orders: Vec<ChaseOrder>, window: u64| {
            let buffer = BufferPlan { touch: IdSet::one(1), ..BufferPlan::plain(Bytes::mib(4), 0, PageRequest::Auto) };
            let probe = Probe { cpu: 1, buffer, stride: Bytes(128), window: Bytes(window) };
            let (at, work) =
                (Coordinates::default(), Work::Latency(IdleChase { probe, allocations: 3, orders, hops: None, histogram: None }));
            let mut measured = Measured::default();
            let subject = Subject { topology: &topology, experiment: Experiment::IdleLatency, at: &at };
            measured.fail(subject, &work, &NotMeasured::NoCpuTime { cpu: 1 });
            let results = measured.results.into_iter();
            results.map(|m| (m.at.order.unwrap(), m.estimate.not_measured.unwrap())).collect::<Vec<_>>()
        };
        let starved = |order| (order, NotMeasured::NoCpuTime { cpu: 1 });
        assert_eq!(failed(vec![], 1 << 19), [WindowLocal, FullRandom].map(starved));
        assert_eq!(failed(vec![], 4 << 20), [WindowLocal].map(starved));
        assert_eq!(failed(vec![Sequential, WindowLocal], 1 << 19), [Sequential, WindowLocal].map(starved));
    }
}
