//! The most that the machine's memory can transfer, who states it, and how bandwidths compare with it.

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Method, Metric};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::{
    Environment, LimitShare, LimitSource, Measurement, QualityLevel, QualityReason, Report, Verdict, VerdictReason, VerdictStatus,
};
use memgauge_model::topology::{Machine, Topology};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::Knob;

use crate::conclusions::judge::CLOCK_TOLERANCE;

/// The shares of the limit that a bandwidth must reach to be good, or only low.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Band {
    /// From this share on it is good.
    ok: f64,
    /// From this share on it is low; below it, far too low.
    low: f64,
    /// The reasons for a low and for a far too low bandwidth.
    reasons: (VerdictReason, VerdictReason),
}

/// The share of the limit from which on a bandwidth of loads is good.
pub(crate) const GOOD_READS: f64 = 0.80;

impl Band {
    /// Loads only. Published systems reach 70 to 90 % of the theoretical peak with reads, most of them above 80 %.
    const READS: Self = Self { ok: GOOD_READS, low: 0.70, reasons: (VerdictReason::Below80Percent, VerdictReason::Below70Percent) };
    /// Loads and stores: turning the bus around costs published DDR systems 4 to 12 points.
    const MIXED: Self = Self { ok: 0.68, low: 0.58, reasons: (VerdictReason::Below68Percent, VerdictReason::Below58Percent) };
}

/// The most that a memory can transfer, and who states it.
#[derive(Debug, Clone, PartialEq)]
struct Limit {
    /// In 10^9 bytes a second.
    gbs: f64,
    /// The source that states it.
    source: LimitSource,
    /// The part of the machine that it is for, when the machine's limit was divided evenly among nodes.
    share: Option<LimitShare>,
    /// Whether it rests on something that nobody states, or on a claim that is often wrong. A bandwidth far below it is then no failure.
    doubtful: bool,
    /// Whether there are published figures for how much of such a limit CPUs reach.
    has_band: bool,
}

/// A machine's limits, if they are known.
#[derive(Debug, Clone)]
struct Limits<'a> {
    topology: &'a Topology,
    /// The limit of the whole machine, or why it is not known.
    machine: Result<Limit, String>,
    /// The nodes with CPUs and memory, in sets with channels of their own, among which the limit is divided.
    groups: Vec<IdSet>,
}

impl<'a> Limits<'a> {
    /// The limits from the user's `peak_gbs`, otherwise from SMBIOS. HMAT describes single nodes only.
    fn new(machine: &'a Machine, peak_gbs: Option<f64>) -> Self {
        let topology = &machine.topology;
        let stated = match peak_gbs {
            Some(gbs) => Ok(Limit { gbs, source: LimitSource::User, share: None, doubtful: false, has_band: true }),
            None => machine.identity.installed.peak().map(|peak| {
                // The firmware of a virtual machine says what the hypervisor made up.
                let doubtful = !peak.channels_known || machine.identity.may_be_virtual();
                let source = if doubtful { LimitSource::SmbiosUpperBound } else { LimitSource::Smbios };
                Limit { gbs: peak.gbs, source, share: None, doubtful, has_band: peak.dimms }
            }),
        };
        Self { topology, machine: stated, groups: topology.channel_groups() }
    }

    /// The limit of these nodes' memory, used by CPUs of node `from`, or by each node's own CPUs if `from` is `None`.
    ///
    /// The machine's limit is assumed to be divided evenly among the sets of nodes with channels of their own ([`Topology::channel_groups`]);
    /// the share of a set is an upper bound for each of its nodes. Nodes without CPUs (CXL, HBM) have no such share. For them, and if nothing
    /// else is known, the read bandwidth that HMAT claims is the limit. The kernel's own figure for a CXL region is not used: firmware does
    /// not claim it.
    fn for_nodes(&self, nodes: &IdSet, from: Option<u32>) -> Option<Limit> {
        if nodes.is_empty() {
            return None;
        }
        let used = self.groups_of(nodes);
        let (covered, all) = (count(used.iter().copied()), count(&self.groups));
        let own = from.is_none_or(|node| used.len() == 1 && used.iter().all(|group| group.contains(node)));
        if let Ok(limit) = &self.machine
            && own
            && used.iter().fold(nodes.clone(), |rest, group| rest.difference(group)).is_empty()
        {
            // Of nodes that share CPUs a part is not known to reach what all of them do.
            let emulated = |group: &&&IdSet| self.topology.shared_nodes().iter().any(|nodes| !nodes.intersection(group).is_empty());
            if used.iter().filter(emulated).any(|group| !group.difference(nodes).is_empty()) {
                return None;
            }
            let share = (covered < all).then_some(LimitShare { nodes: covered, total: all });
            return Some(Limit { gbs: limit.gbs * used.len() as f64 / self.groups.len() as f64, share, ..*limit });
        }
        let claim = |n| self.topology.claim(from.unwrap_or(n), n).filter(|claim| claim.cxl_region.is_none());
        let claims = nodes.iter().map(|n| Some(claim(n)?.read_bandwidth_mbs? as f64 / 1e3));
        let gbs = claims.sum::<Option<f64>>().filter(|gbs| *gbs > 0.0)?;
        Some(Limit { gbs, source: LimitSource::Hmat, share: None, doubtful: true, has_band: true })
    }
}

impl Limits<'_> {
    /// The sets of nodes with channels of their own that these nodes are in.
    fn groups_of(&self, nodes: &IdSet) -> Vec<&IdSet> {
        self.groups.iter().filter(|group| !group.intersection(nodes).is_empty()).collect()
    }
}

/// How many nodes there are in these sets.
fn count<'a>(groups: impl IntoIterator<Item = &'a IdSet>) -> u32 {
    groups.into_iter().map(|group| group.len() as u32).sum()
}

/// The nodes whose memory is local to these CPUs.
fn homes_of(topology: &Topology, cpus: &IdSet) -> IdSet {
    // Most CPUs have the nodes of their neighbour: no node is asked twice.
    let own: IdSet = cpus.iter().filter_map(|c| Some(topology.cpu(c)?.node)).collect();
    topology.nodes.iter().filter(|n| own.contains(n.id) || !n.cpus.intersection(cpus).is_empty()).map(|n| n.id).collect()
}

/// The bytes of all caches that data of these CPUs may stay in: their last-level caches and their L2s.
fn cache_reach(topology: &Topology, cpus: &IdSet) -> Bytes {
    let last = topology.caches.iter().map(|c| c.level).max().unwrap_or(0);
    let counts = |level: u8| level == last || (level == 2 && last > 2);
    let caches = topology.caches.iter().filter(|c| counts(c.level) && !c.cpus.intersection(cpus).is_empty());
    Bytes(caches.map(|c| c.size.0).sum())
}

/// Buffers that are streamed over are in memory if they are this many times the caches. Under LRU a cyclic pass then finds no line in the
/// caches, under random replacement few.
const MEMORY_TIMES: u64 = 2;
/// The least size that counts as memory if the machine states no caches (many virtual machines): more than most caches.
const MIN_MEMORY: Bytes = Bytes::mib(32);

/// Whether traffic of these CPUs over `bytes` of buffers in all goes to memory rather than to a cache.
pub fn memory_sized(topology: &Topology, cpus: &IdSet, bytes: Bytes) -> bool {
    bytes.0 >= (cache_reach(topology, cpus).0 * MEMORY_TIMES).max(MIN_MEMORY.0)
}

/// Whether a number is of memory and not of a cache: its buffer was seen to be beyond the caches, or is that large.
pub fn is_of_memory(topology: &Topology, m: &Measurement) -> bool {
    let cpus: IdSet = m.at.cpus.iter().flat_map(IdSet::iter).chain(m.at.cpu).collect();
    m.evidence.plateau.is_some_and(|p| p.reached) || memory_sized(topology, &cpus, m.evidence.buffer)
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
    // The regions of a scan were compared with each other.
    if m.metric != Metric::Bandwidth || m.method() == Method::MemoryScan || m.estimate.value.is_none() {
        return;
    }
    let all_reads = m.at.mix == Some(Mix::AllReads);
    let cpus = m.at.cpus.clone().unwrap_or_default();
    let in_memory = m.at.memory_dir.is_none() && memory_sized(&machine.topology, &cpus, m.evidence.buffer);
    let limit = memory_limit(m, limits, &cpus).filter(|l| in_memory && (all_reads || l.source != LimitSource::Hmat));
    // A limit applies to the bus. The application's bytes are fewer if stores read first.
    let bus = m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).filter(|_| m.method() == Method::Bandwidth);
    let band = match () {
        () if !in_memory => Err(VerdictReason::NotMemory),
        () if m.method() != Method::Bandwidth || m.at.delay_cycles.is_some_and(|d| d > 0) => Err(VerdictReason::NotAllLoad),
        () if threads_as_given(m) => Err(VerdictReason::ThreadsAsGiven),
        () if !uses_all_cores(limits, &cpus, m) => Err(VerdictReason::NotAllCores),
        () if bus.is_none() => Err(VerdictReason::BusBytesUnknown),
        () if limit.as_ref().is_some_and(|l| !l.has_band) => Err(VerdictReason::NoBandForThisMemory),
        () if all_reads => Ok(Band::READS),
        () => Ok(Band::MIXED),
    };
    let may_fail = all_reads && m.estimate.converged && limit.as_ref().is_some_and(|l| !l.doubtful) && blameless(m, machine, environment);
    m.verdict = verdict(bus.or(m.estimate.value), limit.as_ref(), band, may_fail);
    if matches!(m.verdict.status, VerdictStatus::Warning | VerdictStatus::Failure) && !m.is_reliable() {
        (m.verdict.status, m.verdict.reason) = (VerdictStatus::Unknown, VerdictReason::Unreliable);
    }
}

/// The limit of the memory that a measurement used.
fn memory_limit(m: &Measurement, limits: &Limits<'_>, cpus: &IdSet) -> Option<Limit> {
    let homes: IdSet = cpus.iter().filter_map(|c| Some(limits.topology.cpu(c)?.node)).collect();
    match m.at.memory_node() {
        // Several nodes' memory is in use at the same time, or each thread uses the memory that the user gave it.
        _ if m.at.load_nodes.is_some() || m.at.weights.is_some() || threads_as_given(m) => None,
        Some(node) if homes.len() == 1 => limits.for_nodes(&IdSet::one(node), homes.first()),
        // CPUs of several nodes share one node's memory, so some of them are remote.
        Some(_) => None,
        // Each CPU's own node, unless some of these nodes had no memory to use.
        None => {
            let local = homes_of(limits.topology, cpus);
            let used: IdSet = m.evidence.placement.pages_by_node.keys().copied().collect();
            limits.for_nodes(&local, None).filter(|_| used.is_empty() || used == local)
        }
    }
}

/// Whether the user described the work of each thread.
fn threads_as_given(m: &Measurement) -> bool {
    m.method() == Method::Bandwidth && m.at.mix.is_none()
}

/// Whether all cores of the nodes took part. Fewer are limited by the requests that a core, or a link of a few cores, can have outstanding.
fn uses_all_cores(limits: &Limits<'_>, cpus: &IdSet, m: &Measurement) -> bool {
    let topology = limits.topology;
    let homes = homes_of(topology, cpus);
    let beside = limits.groups_of(&homes).into_iter().fold(homes.clone(), |all, group| all.union(group));
    let nodes = topology.nodes.iter().filter(|n| beside.contains(n.id) || Some(n.id) == m.at.memory_node());
    nodes.flat_map(|n| n.cpus.iter()).all(|cpu| topology.cpu(cpu).is_none_or(|c| !c.siblings.intersection(cpus).is_empty()))
}

/// Whether only the machine can be the cause of a low number: it is known not to be virtual (nothing is known about a host), the run was privileged,
/// and nothing disturbed it.
pub fn blameless(m: &Measurement, machine: &Machine, environment: &Environment) -> bool {
    !machine.identity.may_be_virtual() && environment.root && !disturbed(m)
}

/// Whether something other than the memory may have lowered a number. The width of its interval does not count.
pub fn disturbed(m: &Measurement) -> bool {
    use QualityReason as R;
    m.quality.level != QualityLevel::Good && m.quality.reasons.iter().any(|r| !matches!(r, R::MemoryErrors | R::NotConverged))
}

/// The verdict before a limit is known: `limit-unknown`, `not-measured`, or `not-judged` for latencies, because no limit is published for
/// them.
pub fn unjudged(metric: Metric, estimate: &Estimate) -> Verdict {
    let reason = match (metric, estimate.value) {
        (_, None) => VerdictReason::NotMeasured,
        (Metric::Latency, _) => VerdictReason::NotJudged,
        (Metric::Bandwidth, _) => VerdictReason::LimitUnknown,
    };
    Verdict { reason, ..Verdict::default() }
}

/// Compares a bandwidth (bytes that crossed the bus, if they are known) with the limit, by the shares of it that are expected or the
/// reason why there are none. `may_fail`: a far too low one is a failure, and not a warning because something else may be the cause.
fn verdict(value: Option<f64>, limit: Option<&Limit>, band: Result<Band, VerdictReason>, may_fail: bool) -> Verdict {
    use VerdictStatus as S;
    let limit = limit.filter(|l| l.gbs.is_finite() && l.gbs > 0.0);
    let (status, reason) = match (value, limit, band) {
        (None, ..) => (S::Unknown, VerdictReason::NotMeasured),
        (Some(value), Some(limit), _) if value / limit.gbs > CLOCK_TOLERANCE => (S::Unknown, VerdictReason::AboveLimit),
        (_, _, Err(word)) => (S::Unknown, word),
        (_, None, _) => (S::Unknown, VerdictReason::LimitUnknown),
        (Some(value), Some(limit), Ok(band)) => match value / limit.gbs {
            share if share >= band.ok => (S::Ok, VerdictReason::WithinLimit),
            share if share >= band.low => (S::Warning, band.reasons.0),
            _ if may_fail => (S::Failure, band.reasons.1),
            _ => (S::Warning, band.reasons.1),
        },
    };
    Verdict { status, reason, limit: limit.map(|l| l.gbs), limit_source: limit.map(|l| l.source), limit_share: limit.and_then(|l| l.share) }
}

/// The note that a reader needs about the limit, if bandwidth was measured.
pub fn note(report: &Report) -> Option<Note> {
    let judged =
        |m: &&Measurement| m.method() == Method::Bandwidth && m.at.memory_dir.is_none() && m.verdict.reason != VerdictReason::NotMemory;
    let measured: Vec<&Measurement> = report.results.iter().filter(judged).filter(|m| m.estimate.value.is_some()).collect();
    if measured.is_empty() {
        return None;
    }
    if measured.iter().all(|m| m.verdict.limit.is_none()) {
        if report.plan.as_ref().is_some_and(|p| p.peak_gbs.is_some()) {
            let text = "the given limit is that of the whole machine; it does not apply to cells that used another node's memory or part of the machine's";
            return Some(Note::info(NoteCode::LimitUnknown, text.to_owned()));
        }
        let why = match report.machine.identity.installed.peak() {
            Err(why) if !why.is_empty() => why,
            _ => "it is known only for CPUs that use the memory of their own node".into(),
        };
        return Some(Note::info(NoteCode::LimitUnknown, format!("the limit of this memory is not known: {why}")).advise(words![
            "give it with ",
            Knob::Limit,
            " GB/s (populated channels × MT/s × 8 B)"
        ]));
    }
    if measured.iter().any(|m| m.verdict.reason == VerdictReason::AboveLimit) {
        return Some(
            Note::warning(NoteCode::AboveLimit, "a bandwidth is above the limit, so the limit is wrong".to_owned()).advise(words![
                "give the right one with ",
                Knob::Limit,
                " GB/s (populated channels × MT/s × 8 B)"
            ]),
        );
    }
    let smbios = measured.iter().any(|m| matches!(m.verdict.limit_source, Some(LimitSource::Smbios | LimitSource::SmbiosUpperBound)));
    let peak = report.machine.identity.installed.peak().ok().filter(|_| smbios)?;
    let mut text = format!("the limit is {} = {:.1} GB/s, from firmware's list of memory devices (SMBIOS)", peak.formula(), peak.gbs);
    if !peak.channels_known {
        text.push_str("; each device counts as a channel, which is too many if two devices share one");
    }
    if measured.iter().any(|m| m.verdict.limit_share.is_some()) {
        let groups = report.machine.topology.channel_groups();
        let each = if groups.iter().any(|group| group.len() > 1) { "each set of nodes with the same channels" } else { "each node" };
        text.push_str(&format!("; {each} is assumed to have an equal share of it"));
    }
    Some(Note::info(NoteCode::Limit, text))
}

#[cfg(test)]
pub(crate) mod tests;
