//! Compares numbers: siblings within one machine, and a machine with a baseline.

use std::collections::BTreeMap;

use memgauge_model::experiment::{ChaseOrder, Experiment, MemoryPlace, Metric};
use memgauge_model::result::{Finding, FindingCode, HealthStatus, Measurement, Report};
use memgauge_model::stats;
use memgauge_model::tiers::{self, MemoryKind};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Command, Knob, Verb};

use crate::conclusions::findings::rules::Baselines;
use crate::conclusions::findings::suspicion::{Suspicion, capped, format_value, name};
use crate::conclusions::limit::{disturbed, is_of_memory};

/// The smallest difference that counts between two similar machines, or two similar parts of one. Effects that
/// the interval of a median does not cover (other pages, other times) are below 3 %.
pub(super) const MIN_DIFFERENCE: f64 = 0.03;
/// The difference between similar nodes or machines that is large enough for a warning.
const WARN_DIFFERENCE: f64 = 0.05;
/// The same for a failure: a difference this large is a defect.
pub(super) const FAIL_DIFFERENCE: f64 = 0.10;

/// A median and the bounds of its interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Bounds {
    /// `None` if the number is not reliable, or has no interval.
    pub(crate) fn new(m: &Measurement) -> Option<Self> {
        if !m.is_reliable() {
            return None;
        }
        let e = &m.estimate;
        Some(Self { value: e.value?, low: e.ci95_low?, high: e.ci95_high? })
    }

    /// How much worse it is, if the intervals do not overlap and the difference is large enough to count.
    pub(super) fn worse_than(self, reference: Self, metric: Metric) -> Option<f64> {
        let (apart, worse) = match metric {
            Metric::Bandwidth => (self.high < reference.low, reference.value - self.value),
            Metric::Latency => (self.low > reference.high, self.value - reference.value),
        };
        let by = worse / reference.value;
        (apart && by >= MIN_DIFFERENCE).then_some(by)
    }
}

pub(super) fn severity(by: f64, metric: Metric) -> HealthStatus {
    match by {
        by if by >= FAIL_DIFFERENCE && metric == Metric::Bandwidth => HealthStatus::Failure,
        by if by >= WARN_DIFFERENCE => HealthStatus::Warning,
        _ => HealthStatus::Ok,
    }
}

/// In words: the value of `m` is worse, by the share `by`, than what it was compared with.
pub(super) fn worse(m: &Measurement, value: f64, by: f64, than: &str, reference: f64) -> String {
    let (value, reference) = (format_value(m.metric, value), format_value(m.metric, reference));
    format!("{}: {value}, {:.0} % worse than {than} ({reference})", name(m), 100.0 * by)
}

/// The properties that siblings have in common: they do the same work on similar parts of the machine.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Family<'a> {
    experiment: Experiment,
    metric: Metric,
    mix: Option<Mix>,
    order: Option<ChaseOrder>,
    delay_cycles: Option<u32>,
    cpus: usize,
    core_kind: Option<&'a str>,
    /// Distance of the memory, if it is not local.
    distance: Option<u32>,
    /// The kind of the memory and its size in GiB, if its node has no CPUs.
    far: Option<(MemoryKind, u64)>,
}

/// The family of a measurement; `None` if it has no siblings.
fn family<'a>(report: &'a Report, m: &Measurement) -> Option<Family<'a>> {
    use Experiment as E;
    let at = &m.at;
    let local = (at.memory == Some(MemoryPlace::Own) && at.cpu_node.is_some())
        || at.cpu_node.zip(at.memory_node()).is_some_and(|(cpu, memory)| report.machine.topology.is_local(cpu, memory));
    let compared = matches!(m.experiment, E::IdleLatency | E::BandwidthMatrix | E::BandwidthPerCache | E::CacheToCache);
    let first = at.cpu.or_else(|| at.cpus.as_ref()?.first())?;
    // Remote memory is alike at the same distance; bandwidths between packages alone are sampled so that they can be compared.
    let link = at.load_nodes.as_ref().filter(|_| m.experiment == E::Bandwidth).and_then(IdSet::first);
    let topology = &report.machine.topology;
    // Stacks of HBM, CXL cards and GPUs are alike if their kind, size and distance are.
    let bare = at.memory_node().filter(|_| compared).and_then(|node| topology.node(node)).filter(|node| node.cpus.is_empty());
    let distance =
        link.or(bare.map(|node| node.id)).and_then(|node| topology.node(topology.cpu(first)?.node)?.distances.get(&node).copied());
    if !((local && compared) || distance.is_some()) || at.memory_dir.is_some() {
        return None;
    }
    Some(Family {
        experiment: m.experiment,
        metric: m.metric,
        mix: at.mix,
        order: at.order,
        delay_cycles: at.delay_cycles,
        cpus: at.cpus.as_ref().map_or(1, IdSet::len),
        core_kind: topology.cpu(first).and_then(|c| c.kind.as_deref()),
        distance,
        far: bare.map(|node| (tiers::kind(&report.machine, node).kind, (node.stated_bytes() + (1 << 29)) >> 30)),
    })
}

/// Whether nothing says that the memory of this number is the same model as that of others like it: two CXL cards of one size may well differ.
fn may_be_unlike(report: &Report, m: &Measurement) -> bool {
    let bare = m.at.memory_node().and_then(|node| report.machine.topology.node(node)).filter(|node| node.cpus.is_empty());
    bare.is_some_and(|node| tiers::kind(&report.machine, node).kind != MemoryKind::Hbm)
}

/// The measurements that `counts` accepts, grouped by family. A family with only one of them is left out.
pub(super) fn families(report: &Report, view: &[&Measurement], counts: Counts) -> Vec<Vec<usize>> {
    let mut all: BTreeMap<Family<'_>, Vec<usize>> = BTreeMap::new();
    for (index, m) in view.iter().enumerate().filter(|(_, m)| counts(m)) {
        if let Some(family) = family(report, m) {
            all.entry(family).or_default().push(index);
        }
    }
    all.into_values().filter(|members| members.len() > 1).collect()
}

/// A number among those of similar parts of the machine.
pub(super) struct AmongSiblings {
    index: usize,
    pub(super) others: Vec<usize>,
    pub(super) own: Bounds,
    /// The median of the others that can be relied on.
    pub(super) theirs: Bounds,
}

impl AmongSiblings {
    /// `None` if there is nothing to conclude from.
    pub(super) fn new(view: &[&Measurement], members: &[usize], index: usize) -> Option<Self> {
        let others: Vec<usize> = members.iter().copied().filter(|other| *other != index).collect();
        let intervals: Vec<Bounds> = others.iter().filter_map(|&i| Bounds::new(view[i])).collect();
        let median = |part: fn(&Bounds) -> f64| stats::median(&intervals.iter().map(part).collect::<Vec<_>>());
        let theirs = Bounds { value: median(|i| i.value)?, low: median(|i| i.low)?, high: median(|i| i.high)? };
        Some(Self { index, others, own: Bounds::new(view[index])?, theirs })
    }
}

/// Parts of the machine that are slower than similar ones.
pub(super) fn siblings(report: &Report, view: &[&Measurement]) -> Vec<Suspicion> {
    let mut found = Vec::new();
    for members in families(report, view, has_value) {
        for AmongSiblings { index, others, own, theirs } in members.iter().filter_map(|&index| AmongSiblings::new(view, &members, index)) {
            let m = view[index];
            let Some(by) = own.worse_than(theirs, m.metric) else { continue };
            let mut severity = capped(severity(by, m.metric), m, report);
            // Cache domains of one node share its memory, and no published figure says how alike they must be.
            let shares = m.experiment == Experiment::BandwidthPerCache || others.iter().any(|&i| disturbed(view[i]));
            if severity == HealthStatus::Failure && (shares || may_be_unlike(report, m)) {
                severity = HealthStatus::Warning;
            }
            let like = if others.len() == 1 { name(view[others[0]]) } else { format!("{} others like it", others.len()) };
            let message = worse(m, own.value, by, &like, theirs.value);
            let system = report.machine.identity.system;
            let (info, log) = (words![Verb::Info, system.words().for_memory_devices], system.words().hardware_log);
            let advice = words!["compare its memory devices with those of the others ("]
                .followed_by(info)
                .followed_by(format!("), and look at {log} for errors and throttling"));
            // If there are only two, either may be the wrong one.
            let others = if others.len() == 1 { others } else { Vec::new() };
            found.push(Suspicion { index, others, finding: Finding::new(FindingCode::SlowerThanSiblings, severity, message, advice) });
        }
    }
    found
}

/// The baseline's measurement of the same cell, with the same pages, and of memory where this one is, or of a cache.
pub(super) fn counterpart<'b>(report: &Report, m: &Measurement, baseline: &'b Report) -> Option<&'b Measurement> {
    let of_memory = |m: &Measurement| is_of_memory(&report.machine.topology, m);
    baseline
        .results
        .iter()
        .find(|b| b.is_of_same_cell(m))
        .filter(|b| b.estimate.value.is_some() && b.evidence.pages.obtained == m.evidence.pages.obtained && of_memory(b) == of_memory(m))
}

/// Why two machines cannot be compared.
pub(super) fn machine_difference(report: &Report, baseline: &Report) -> Option<String> {
    let (a, b) = (&report.machine, &baseline.machine);
    let differs = |what: &str, a: Option<&str>, b: Option<&str>| {
        (a != b).then(|| format!("its {what} is {}, here it is {}", b.unwrap_or("not known"), a.unwrap_or("not known")))
    };
    let counts = |m: &memgauge_model::topology::Machine| format!("{} CPUs and {} nodes", m.topology.cpus.len(), m.topology.nodes.len());
    let one_design = a.identity.core_design().is_some() && a.identity.core_design() == b.identity.core_design();
    differs("CPU", a.identity.model_name.as_deref(), b.identity.model_name.as_deref())
        .filter(|_| !one_design)
        .or_else(|| differs("size", Some(&counts(a)), Some(&counts(b))))
        .or_else(|| {
            let names = [a, b].map(|machine| machine.identity.hypervisor_for_all().unwrap_or("none"));
            report.is_on_another_hypervisor_than(baseline).then(|| format!("its hypervisor is {}, here it is {}", names[1], names[0]))
        })
}

/// Cells that are worse than in the baseline.
pub(super) fn baseline(report: &Report, view: &[&Measurement], baseline: &Report) -> Vec<Suspicion> {
    if machine_difference(report, baseline).is_some() {
        return Vec::new();
    }
    let worse = view.iter().enumerate().filter(|(_, m)| is_judged(m)).filter_map(|(index, m)| {
        let before = counterpart(report, m, baseline)?;
        let (now, then) = (Bounds::new(m)?, Bounds::new(before)?);
        let by = now.worse_than(then, m.metric)?;
        let mut severity = capped(severity(by, m.metric), m, report);
        if severity == HealthStatus::Failure && disturbed(before) {
            severity = HealthStatus::Warning;
        }
        let message = worse(m, now.value, by, "in the baseline", then.value);
        let advice = "look for what changed since: firmware and its settings, kernel, memory devices, power limits";
        Some(Suspicion { index, others: Vec::new(), finding: Finding::new(FindingCode::WorseThanBaseline, severity, message, advice) })
    });
    worse.collect()
}

/// Problems of the baseline or the rules themselves.
pub(super) fn reference_problems(report: &Report, references: Baselines<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(baseline) = references.baseline {
        let quick = Command::new(Verb::Quick).to("FILE.json");
        let advice = words!["give a result of this machine, or of one like it, made by ", quick];
        if let Some(why) = machine_difference(report, baseline) {
            let message = format!("the baseline is of another machine: {why}");
            found.push(Finding::new(FindingCode::BaselineOfAnotherMachine, HealthStatus::Warning, message, advice));
        } else if !report.results.iter().any(|m| counterpart(report, m, baseline).is_some()) {
            let message = "the baseline has none of the numbers that were measured here, or they were measured with other pages or buffers of another size";
            found.push(Finding::new(FindingCode::BaselineWithoutCells, HealthStatus::Warning, message, advice));
        }
    }
    for rule in references.rules.iter().flat_map(|r| &r.rules) {
        if !report.results.iter().any(|m| rule.applies_to(m) && m.estimate.value.is_some()) {
            let message = format!("no measured number matches this rule: {}", rule.describe());
            let advice = words!["see ", Command::new(Verb::Quick).with(Knob::Plan), " for what is measured"];
            found.push(Finding::new(FindingCode::RuleWithoutCell, HealthStatus::Warning, message, advice));
        }
    }
    found
}

/// Which measurements count.
pub(super) type Counts = fn(&Measurement) -> bool;

pub(super) const fn has_value(m: &Measurement) -> bool {
    m.estimate.value.is_some()
}

/// Whether a number says something of the machine: a bandwidth at a delay says how often loads were asked for.
pub(super) fn is_judged(m: &Measurement) -> bool {
    has_value(m) && !(m.metric == Metric::Bandwidth && m.at.delay_cycles.is_some_and(|delay| delay > 0))
}
