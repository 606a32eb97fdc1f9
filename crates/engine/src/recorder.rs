//! The results of a run: every measurement is recorded whole, with its judgement.

use std::collections::BTreeMap;

use memgauge_core::conclusions::{judge, scan};
use memgauge_core::estimate::{Estimate, NotMeasured};
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment, Method, Metric};
use memgauge_core::note::Note;
use memgauge_core::plan::{Cell, Work};
use memgauge_core::result::{
    Checksums, CurveSummary, Evidence, Incomplete, InterleaveSummary, Measurement, PairMatrix, PlacementStatus, RfoEvidence, Timing,
};
use memgauge_core::topology::Topology;
use memgauge_core::traffic::Mix;
use memgauge_core::wording::{self, reasons};
use memgauge_os::memory::{MemoryError, MemoryFaultKind};

use crate::error::CellError;

/// What to do about memory that does not keep what is written to it.
const TEST_MEMORY: &str = "take the machine out of service, look at its log for memory errors, and test its memory";
/// What to do where other processes have the CPUs.
pub(crate) const FREE_CPUS: &str = "run again when other processes leave these CPUs some time, or for longer";
/// What to do about a file whose memory cannot be read.
const SEE_MEDIA_ERRORS: &str =
    "see the kernel's log (dmesg); of persistent memory, 'ndctl list --media-errors' lists the ranges with errors that the device knows";

/// What came out.
pub struct Outcome {
    /// One or more results a cell; cells that could not be measured have a result without value and with the reason.
    pub results: Vec<Measurement>,
    /// Those of cells that were measured again.
    pub repeats: Vec<Measurement>,
    /// All pairs of many CPUs.
    pub matrices: Vec<PairMatrix>,
    /// A summary for each loaded-latency curve.
    pub curves: Vec<CurveSummary>,
    /// What searches for interleave weights found.
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

/// Judges results, and collects them with curves and notes.
pub(crate) struct Recorder<'a> {
    topology: &'a Topology,
    pub(crate) experiment: Experiment,
    pub(crate) results: Vec<Measurement>,
    pub(crate) repeats: Vec<Measurement>,
    /// What is recorded now was measured before.
    pub(crate) repeating: bool,
    pub(crate) matrices: Vec<PairMatrix>,
    pub(crate) curves: Vec<CurveSummary>,
    pub(crate) interleaves: Vec<InterleaveSummary>,
    pub(crate) notes: Vec<Note>,
    /// Samples of each burst that results keep at most, where that is fewer than usual.
    kept_samples: Option<usize>,
    /// Why not everything was measured: a cell failed, or was cut short and has results nevertheless.
    incomplete: Option<Incomplete>,
}

impl<'a> Recorder<'a> {
    pub(crate) const fn new(topology: &'a Topology, experiment: Experiment, kept_samples: Option<usize>) -> Self {
        Self {
            topology,
            experiment,
            results: Vec::new(),
            repeats: Vec::new(),
            repeating: false,
            matrices: Vec::new(),
            curves: Vec::new(),
            interleaves: Vec::new(),
            notes: Vec::new(),
            kept_samples,
            incomplete: None,
        }
    }

    /// Not everything is measured, because of this.
    pub(crate) fn cut_short(&mut self, why: Incomplete) {
        self.incomplete = Incomplete::join(self.incomplete.take(), Some(why));
    }

    /// Why not everything was measured: what was cut short, or lacks a value.
    pub(crate) fn incomplete(&self) -> Option<Incomplete> {
        let empty = || self.results.iter().chain(&self.repeats).map(|m| &m.estimate).filter(|estimate| estimate.value.is_none());
        let over = empty().any(|e| matches!(e.not_measured, Some(NotMeasured::Interrupted | NotMeasured::OutOfTime)));
        // Threads that got no time leave a cell, or a point of it, without a value.
        let missing = empty().next().is_some() || self.matrices.iter().any(|m| m.counts().2 > 0);
        let why = if over { Some(Incomplete::OutOfTime) } else { missing.then_some(Incomplete::CellsMissing) };
        Incomplete::join(self.incomplete.clone(), why)
    }

    /// A number with its judgement and what firmware claims; without distribution, counters and samples.
    pub(crate) fn judge(&self, at: Coordinates, metric: Metric, mut estimate: Estimate, mut evidence: Evidence) -> Measurement {
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
            verdict: memgauge_core::conclusions::limit::unjudged(metric, &estimate),
            estimate,
            evidence,
            counters: None,
            lines_in_flight: None,
            samples: None,
        }
    }

    pub(crate) fn record(&mut self, mut result: Measurement) {
        if let Some((samples, kept)) = result.samples.as_mut().zip(self.kept_samples) {
            samples.thin(kept);
        }
        if let Some(note) = taken_away(&result) {
            (result.distribution, result.lines_in_flight) = (None, None);
            self.note(note);
        }
        // Data that was not what was written deserves more than a line in a table.
        if let Some(Checksums { passes, mismatches }) = result.evidence.checksums.filter(|c| c.mismatches > 0) {
            let found = format!("{}: {mismatches} of {passes} passes read other data than was written", wording::coordinates(&result.at));
            self.note(Note::error(scan::CORRUPTED, found).advise(TEST_MEMORY));
        }
        if self.repeating { &mut self.repeats } else { &mut self.results }.push(result);
    }

    /// Records results without value for a cell that failed, so that none goes missing silently.
    pub(crate) fn record_failure(&mut self, cell: &Cell, error: &CellError) {
        if !matches!(error, CellError::Interrupted | CellError::OutOfTime) {
            self.note(failure(format!("{}: {error}", wording::coordinates(&cell.at)), error));
        }
        self.cut_short(error.into());
        let estimate = || Estimate { not_measured: Some(error.into()), ..Estimate::default() };
        let at = match &cell.work {
            Work::Latency { probe, orders, .. } => {
                let at = |order: &ChaseOrder| Coordinates { order: Some(*order), ..cell.at.clone() };
                probe.orders(orders).iter().map(at).collect()
            }
            _ => vec![cell.at.clone()],
        };
        for at in at {
            self.record(self.judge(at, cell.work.metric(), estimate(), Evidence::default()));
        }
    }

    /// How many results and repeats there are.
    pub(crate) fn measurements(&self) -> (usize, usize) {
        (self.results.len(), self.repeats.len())
    }

    /// Whether pages of a result since then were on other nodes than they should.
    pub(crate) fn moved_since(&self, (results, repeats): (usize, usize)) -> bool {
        let mut new = self.results[results..].iter().chain(&self.repeats[repeats..]);
        new.any(|m| m.evidence.placement.status == PlacementStatus::Wrong)
    }

    /// Adds a note, once.
    pub(crate) fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The note on a number that only shows a lost CPU.
pub(crate) fn taken_away(result: &Measurement) -> Option<Note> {
    let why = result.estimate.not_measured.as_ref().filter(|why| matches!(why, NotMeasured::CpuTakenAway { .. }))?;
    let message = format!("{}: {}", wording::coordinates(&result.at), reasons::not_measured(why));
    Some(Note::error("cell-not-measured", message).advise(FREE_CPUS))
}

/// The note on something that failed, and what to do about it.
pub(crate) fn failure(message: String, error: &CellError) -> Note {
    match error {
        CellError::WrongPointer { .. } => Note::error(scan::CORRUPTED, message).advise(TEST_MEMORY),
        CellError::MemoryFailed { fault, .. } => match fault.kind {
            MemoryFaultKind::Poisoned if fault.directory.is_none() => Note::error(scan::CORRUPTED, message).advise(TEST_MEMORY),
            MemoryFaultKind::Poisoned => Note::error(scan::CORRUPTED, message).advise(SEE_MEDIA_ERRORS),
            MemoryFaultKind::Truncated => {
                Note::error("cell-not-measured", message).advise("measure in a directory that nothing else changes")
            }
            MemoryFaultKind::Device | MemoryFaultKind::Gone => Note::error("cell-not-measured", message).advise(SEE_MEDIA_ERRORS),
        },
        CellError::Memory(MemoryError { advice, .. }) => Note::error("cell-not-measured", message).advise(advice),
        _ => Note::error("cell-not-measured", message),
    }
}

/// What firmware claims of a cell that is one node's CPUs and one node's memory. Its bandwidth is that of reads.
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
    use memgauge_core::distribution;
    use memgauge_core::experiment::PageRequest;
    use memgauge_core::plan::{BufferPlan, Probe};
    use memgauge_core::result::{Noise, QualityLevel};
    use memgauge_core::units::{Bytes, IdSet};

    use super::*;

    #[test]
    fn a_number_of_a_lost_cpu_is_not_recorded() {
        let topology = Topology::default();
        let recorded = |off_cpu: f64| {
            let mut recorder = Recorder::new(&topology, Experiment::IdleLatency, None);
            let estimate = Estimate { value: Some(1_305_731.0), n: 9, converged: true, ..Estimate::default() };
            let noise = Noise { off_cpu: Some(off_cpu), ..Noise::default() };
            let evidence = Evidence { threads: 1, noise, translation_ns: Some(9.0), ..Evidence::default() };
            let result = recorder.judge(Coordinates::default(), Metric::Latency, estimate, evidence);
            let mut distribution = distribution::Recorder::new(8).unwrap();
            distribution.add(&[1_000; 10], 0, 1.0);
            recorder.record(Measurement { distribution: distribution.finish(), ..result });
            let why = recorder.incomplete();
            assert_eq!(recorder.notes.iter().filter(|note| note.code == "cell-not-measured").count(), usize::from(why.is_some()));
            (recorder.results.remove(0), why)
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
            let cell = Cell::new(Coordinates::default(), Work::Latency { probe, allocations: 3, orders, hops: None, histogram: None });
            let mut recorder = Recorder::new(&topology, Experiment::IdleLatency, None);
            recorder.record_failure(&cell, &CellError::ChaseStarved { cpu: 1, bursts: 5 });
            let results = recorder.results.into_iter();
            results.map(|m| (m.at.order.unwrap(), m.estimate.not_measured.unwrap())).collect::<Vec<_>>()
        };
        let starved = |order| (order, NotMeasured::NoCpuTime { cpu: 1 });
        assert_eq!(failed(vec![], 1 << 19), [WindowLocal, FullRandom].map(starved));
        assert_eq!(failed(vec![], 4 << 20), [WindowLocal].map(starved));
        assert_eq!(failed(vec![Sequential, WindowLocal], 1 << 19), [Sequential, WindowLocal].map(starved));
    }
}
