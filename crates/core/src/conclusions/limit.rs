//! What the machine's memory could transfer at most, who says so, and how bandwidths stand against it.

use crate::conclusions::verdict::{self, Band, Limit, VerdictInput};
use crate::experiment::{Method, Metric};
use crate::note::Note;
use crate::result::{Environment, LimitShare, LimitSource, Measurement, QualityLevel, QualityReason, Report, VerdictReason};
use crate::topology::{Machine, Topology};
use crate::traffic::Mix;
use crate::units::{Bytes, IdSet};

/// The limit of a whole machine, as somebody states it.
#[derive(Debug, Clone, Copy)]
struct MachineLimit {
    gbs: f64,
    source: LimitSource,
    doubtful: bool,
    has_band: bool,
}

/// What is known of a machine's limit.
#[derive(Debug, Clone)]
pub struct Limits<'a> {
    topology: &'a Topology,
    /// Of the whole machine; or why it is not known.
    machine: Result<MachineLimit, String>,
    /// Nodes with CPUs and memory, among which it is divided.
    nodes: IdSet,
}

impl<'a> Limits<'a> {
    /// From the user's `peak_gbs`, else from SMBIOS. HMAT speaks of single nodes only.
    pub fn new(machine: &'a Machine, peak_gbs: Option<f64>) -> Self {
        let topology = &machine.topology;
        let stated = match peak_gbs {
            Some(gbs) => Ok(MachineLimit { gbs, source: LimitSource::User, doubtful: false, has_band: true }),
            // What a virtual machine's firmware says is made up by its host.
            None => {
                let doubtful = |known: bool| !known || machine.identity.hypervisor.is_some();
                let of = |p: crate::installed::InstalledPeak| MachineLimit {
                    gbs: p.gbs,
                    source: if doubtful(p.channels_known) { LimitSource::SmbiosUpperBound } else { LimitSource::Smbios },
                    doubtful: doubtful(p.channels_known),
                    has_band: p.dimms,
                };
                machine.identity.installed.peak().map(of)
            }
        };
        let nodes = topology.nodes.iter().filter(|n| !n.cpus.is_empty() && n.memory.0 > 0).map(|n| n.id).collect();
        Self { topology, machine: stated, nodes }
    }

    /// The limit of the whole machine's memory with CPUs beside it.
    pub fn for_machine(&self) -> Option<Limit> {
        self.for_nodes(&self.nodes, None)
    }

    /// The limit of these nodes' memory, read and written by CPUs of `from`; each CPU by its own node where that is `None`.
    ///
    /// The machine's limit is assumed to be divided evenly among the nodes that have CPUs. Memory without CPUs (CXL, HBM) is in no such
    /// share; for it, and where nothing else is known, HMAT's claim of read bandwidth is the limit.
    pub fn for_nodes(&self, nodes: &IdSet, from: Option<u32>) -> Option<Limit> {
        if nodes.is_empty() {
            return None;
        }
        let own = from.is_none_or(|node| *nodes == IdSet::one(node));
        if let Ok(MachineLimit { gbs, source, doubtful, has_band }) = self.machine
            && own
            && nodes.difference(&self.nodes).is_empty()
        {
            let share = (nodes.len(), self.nodes.len());
            return Some(Limit {
                gbs: gbs * share.0 as f64 / share.1 as f64,
                source,
                share: (share.0 < share.1).then_some(LimitShare { nodes: share.0 as u32, of: share.1 as u32 }),
                doubtful,
                has_band,
            });
        }
        let claims = nodes.iter().map(|n| Some(self.topology.claim(from.unwrap_or(n), n)?.read_bandwidth_mbs? as f64 / 1e3));
        let gbs = claims.sum::<Option<f64>>().filter(|gbs| *gbs > 0.0)?;
        Some(Limit { gbs, source: LimitSource::Hmat, share: None, doubtful: true, has_band: true })
    }
}

/// The caches that data of these CPUs may stay in: every last-level cache that one of them is behind, and every L2 of theirs.
pub fn cache_reach(topology: &Topology, cpus: &IdSet) -> Bytes {
    let last = topology.caches.iter().map(|c| c.level).max().unwrap_or(0);
    let counts = |level: u8| level == last || (level == 2 && last > 2);
    let of = topology.caches.iter().filter(|c| counts(c.level) && !c.cpus.intersection(cpus).is_empty());
    Bytes(of.map(|c| c.size.0).sum())
}

/// Buffers that are streamed over stay in memory when they are twice what could hold them: under LRU no line of a cyclic pass is left,
/// under random replacement few are.
const MEMORY_TIMES: u64 = 2;
/// Where the machine states no caches (many virtual machines): more than most have.
const MIN_MEMORY: Bytes = Bytes::mib(32);

/// Whether traffic over buffers of `bytes` together, by these CPUs, is memory's and not a cache's.
pub fn memory_sized(topology: &Topology, cpus: &IdSet, bytes: Bytes) -> bool {
    bytes.0 >= (cache_reach(topology, cpus).0 * MEMORY_TIMES).max(MIN_MEMORY.0)
}

/// Judges every bandwidth of `report` against the machine's limit.
pub fn attach(report: &mut Report) {
    let machine = report.machine.clone();
    let peak_gbs = report.plan.as_ref().and_then(|p| p.peak_gbs);
    let limits = Limits::new(&machine, peak_gbs);
    for m in report.results.iter_mut().chain(&mut report.repeats) {
        set_verdict(m, &limits, &machine, &report.environment);
    }
}

/// Sets the verdict of one measurement.
fn set_verdict(m: &mut Measurement, limits: &Limits<'_>, machine: &Machine, environment: &Environment) {
    // A scan's regions were judged against each other.
    if m.metric != Metric::Bandwidth || m.method() == Method::MemoryScan || m.estimate.value.is_none() {
        return;
    }
    let all_reads = m.at.mix == Some(Mix::AllReads);
    let cpus = m.at.cpus.clone().unwrap_or_default();
    let in_memory = m.at.memory_dir.is_none() && memory_sized(&machine.topology, &cpus, m.evidence.buffer);
    let limit = memory_limit(m, limits, &cpus).filter(|l| in_memory && (all_reads || l.source != LimitSource::Hmat));
    // The bus is what a limit is about; the application's bytes are less where stores read first.
    let bus = m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).filter(|_| m.method() == Method::Bandwidth);
    let band = match () {
        () if !in_memory => Err(VerdictReason::NotMemory),
        () if m.method() != Method::Bandwidth || m.at.delay_cycles.is_some_and(|d| d > 0) => Err(VerdictReason::NotAllLoad),
        () if threads_as_given(m) => Err(VerdictReason::ThreadsAsGiven),
        () if !uses_all_cores(&machine.topology, &cpus, m) => Err(VerdictReason::NotAllCores),
        () if bus.is_none() => Err(VerdictReason::BusBytesUnknown),
        () if limit.as_ref().is_some_and(|l| !l.has_band) => Err(VerdictReason::NoBandForThisMemory),
        () if all_reads => Ok(Band::READS),
        () => Ok(Band::MIXED),
    };
    let may_fail = all_reads && m.estimate.converged && limit.as_ref().is_some_and(|l| !l.doubtful) && blameless(m, machine, environment);
    m.verdict = verdict::verdict(&VerdictInput { value: bus.or(m.estimate.value), limit, band, may_fail });
}

/// The limit of the memory that a measurement used.
fn memory_limit(m: &Measurement, limits: &Limits<'_>, cpus: &IdSet) -> Option<Limit> {
    let homes: IdSet = cpus.iter().filter_map(|c| Some(limits.topology.cpu(c)?.node)).collect();
    match m.at.memory_node() {
        // Several nodes' memory is busy at once, or each thread's is what its line in a file says.
        _ if m.at.load_nodes.is_some() || threads_as_given(m) => None,
        Some(node) if homes.len() == 1 => limits.for_nodes(&IdSet::one(node), homes.first()),
        // CPUs of several nodes share one node's memory: some of them are remote.
        Some(_) => None,
        // Each CPU's own, unless there was nothing to take on some of their nodes.
        None => {
            let used: IdSet = m.evidence.placement.pages_by_node.keys().copied().collect();
            limits.for_nodes(&homes, None).filter(|_| used.is_empty() || used == homes)
        }
    }
}

/// Whether each thread did what it was told to: with a delay, over memory of its own.
fn threads_as_given(m: &Measurement) -> bool {
    m.method() == Method::Bandwidth && m.at.mix.is_none()
}

/// Whether every core of the nodes that took part did. Fewer are limited by what a core, or a link of a few cores, can have on its way.
fn uses_all_cores(topology: &Topology, cpus: &IdSet, m: &Measurement) -> bool {
    let homes: IdSet = cpus.iter().filter_map(|c| Some(topology.cpu(c)?.node)).collect();
    let nodes = topology.nodes.iter().filter(|n| homes.contains(n.id) || Some(n.id) == m.at.memory_node());
    nodes.flat_map(|n| n.cpus.iter()).all(|cpu| topology.cpu(cpu).is_none_or(|c| !c.siblings.intersection(cpus).is_empty()))
}

/// Whether nothing but the machine can be blamed for a low number: it is no virtual one, whose host is unknown; the run was privileged;
/// and nothing disturbed it.
pub fn blameless(m: &Measurement, machine: &Machine, environment: &Environment) -> bool {
    machine.identity.hypervisor.is_none() && environment.root && !disturbed(m)
}

/// Whether something beside the memory may have lowered a number. How wide its interval is is another question.
pub fn disturbed(m: &Measurement) -> bool {
    use QualityReason as R;
    m.quality.level != QualityLevel::Good && m.quality.reasons.iter().any(|r| !matches!(r, R::MemoryErrors | R::NotConverged))
}

/// What a reader should know of the limit where bandwidth was measured.
pub fn note(report: &Report) -> Option<Note> {
    let judged =
        |m: &&Measurement| m.method() == Method::Bandwidth && m.at.memory_dir.is_none() && m.verdict.reason != VerdictReason::NotMemory;
    let measured: Vec<&Measurement> = report.results.iter().filter(judged).filter(|m| m.estimate.value.is_some()).collect();
    if measured.is_empty() {
        return None;
    }
    if measured.iter().all(|m| m.verdict.limit.is_none()) {
        if report.plan.as_ref().is_some_and(|p| p.peak_gbs.is_some()) {
            let text =
                "the limit that was given is the machine's, and is not compared with what used another node's memory, or a part of it";
            return Some(Note::info("limit-unknown", text.to_owned()));
        }
        let why = match report.machine.identity.installed.peak() {
            Err(why) if !why.is_empty() => why,
            _ => "it is known for memory of the CPUs' own nodes only".into(),
        };
        return Some(
            Note::info("limit-unknown", format!("how much this memory could transfer is not known: {why}"))
                .advise("give it with --limit GB/s (populated channels × MT/s × 8 B)"),
        );
    }
    if measured.iter().any(|m| m.verdict.reason == VerdictReason::AboveLimit) {
        return Some(
            Note::warning("above-limit", "more was transferred than the limit allows: the limit is wrong".to_owned())
                .advise("give the right one with --limit GB/s (populated channels × MT/s × 8 B)"),
        );
    }
    let smbios = measured.iter().any(|m| matches!(m.verdict.limit_source, Some(LimitSource::Smbios | LimitSource::SmbiosUpperBound)));
    let peak = report.machine.identity.installed.peak().ok().filter(|_| smbios)?;
    let mut text = format!("the limit is {} = {:.1} GB/s, as firmware states its memory devices (SMBIOS)", peak.formula(), peak.gbs);
    if !peak.channels_known {
        text.push_str("; each device is taken for a channel of its own, which is too much where two share one");
    }
    if measured.iter().any(|m| m.verdict.limit_share.is_some()) {
        text.push_str("; a node is assumed to have an even part of it");
    }
    Some(Note::info("limit", text))
}

#[cfg(test)]
pub(crate) mod tests;
