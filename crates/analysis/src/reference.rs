//! Published values of other machines of the same CPU generation, beside the ones measured here.
//!
//! The table `reference/published.tsv` says for each value where it is published. A span of a handful of values says what was seen, not
//! what must be: nothing is judged by it.

mod microarchitecture;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memgauge_model::experiment::{ChaseOrder, Experiment, LineState, MemoryPlace, Metric, Unit};
use memgauge_model::result::{Comparable, Measurement, NoReference, Position, PublishedSpan, Report, Unreferenced};
use memgauge_model::stats::{median, sorted};
use memgauge_model::topology::{Cpu, Machine, Topology};
use memgauge_model::traffic::{Access, Mix};
use serde::Serialize;

use crate::conclusions::limit::is_of_memory;
pub use microarchitecture::microarchitecture;

const TABLE: &str = include_str!("../reference/published.tsv");
/// Columns of the table.
const COLUMNS: usize = 16;

/// One published value. Texts are empty if the source does not say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedValue<'a> {
    /// The CPU as the source names it.
    pub cpu_model: &'a str,
    /// Its generation.
    pub microarch: &'a str,
    /// Its sockets.
    pub sockets: Option<u32>,
    /// The kind of memory.
    pub mem_type: &'a str,
    /// Memory channels of a socket.
    pub channels: Option<u32>,
    /// Their speed in millions of transfers a second.
    pub mts: Option<u32>,
    /// Virtual or metal, and how nodes were divided.
    pub mode: &'a str,
    /// The pages of the buffer.
    pub pages: &'a str,
    /// The measured quantity, as the table calls it.
    pub quantity: &'a str,
    /// The value, in `unit`.
    pub value: f64,
    /// `ns` or `GB/s`.
    pub unit: &'a str,
    /// Our estimate of the value without hits in the last-level cache, if the buffer was small.
    pub corrected: Option<f64>,
    /// How it was measured.
    pub method: &'a str,
    /// Where it is published.
    pub source: &'a str,
    /// `primary`, `quoted` or `approximate`.
    pub confidence: &'a str,
    /// Anything else that the source says.
    pub note: &'a str,
}

/// Every published value.
pub fn published() -> impl Iterator<Item = PublishedValue<'static>> {
    static ROWS: LazyLock<Vec<PublishedValue<'static>>> = LazyLock::new(|| TABLE.lines().skip(1).filter_map(parse).collect());
    ROWS.iter().copied()
}

fn parse(line: &str) -> Option<PublishedValue<'_>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let fields: &[&str; COLUMNS] = fields.as_slice().try_into().ok()?;
    let &[
        cpu_model,
        microarch,
        sockets,
        mem_type,
        channels,
        mts,
        mode,
        pages,
        quantity,
        value,
        corrected,
        unit,
        method,
        source,
        confidence,
        note,
    ] = fields;
    Some(PublishedValue {
        cpu_model,
        microarch,
        sockets: sockets.parse().ok(),
        mem_type,
        channels: channels.parse().ok(),
        mts: mts.parse().ok(),
        mode,
        pages,
        quantity,
        value: value.parse().ok().filter(|v: &f64| v.is_finite() && *v > 0.0)?,
        unit,
        corrected: corrected.parse().ok(),
        method,
        source,
        confidence,
        note,
    })
}

impl PublishedValue<'_> {
    /// Whether it was measured in a virtual machine; `None` if the source does not say.
    pub fn is_virtual(&self) -> Option<bool> {
        match self.mode {
            mode if mode.contains("cloud VM") => Some(true),
            mode if mode.contains("bare metal") => Some(false),
            _ => None,
        }
    }

    /// NUMA nodes of a socket; `None` if the source does not say. NPS0 spreads every page over both sockets: there are none.
    pub fn nodes_per_socket(&self) -> Option<u32> {
        let mode = self.mode;
        let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok());
        let named = ["NPS", "SNC"].iter().find_map(|name| digits(mode.split_once(name)?.1));
        // Cluster on die has two nodes a socket.
        named.or_else(|| mode.starts_with("COD").then_some(2)).or_else(|| {
            let nodes: u32 = mode.split_once(" NUMA nodes")?.0.rsplit(' ').next()?.parse().ok()?;
            self.sockets.filter(|&sockets| sockets > 0 && nodes.is_multiple_of(sockets)).map(|sockets| nodes / sockets)
        })
    }

    /// The quantity that it can be compared with; `None` if memgauge measures nothing like it.
    pub fn comparable(&self) -> Option<Comparable> {
        COMPARABLE
            .iter()
            .find(|(quantities, method, _)| quantities.contains(&self.quantity) && self.method.starts_with(method))
            .map(|row| row.2)
    }

    /// The value without hits in the last-level cache, if it may bound a span. Values that are only approximate may not, nor those from
    /// buffers that partly stay in a cache, unless there is a correction.
    fn bound(&self) -> Option<f64> {
        let partly_cached = self.quantity.ends_with("_mixed_ns");
        let exact = self.confidence != "approximate" && self.nodes_per_socket() != Some(0);
        self.corrected.or((!partly_cached).then_some(self.value)).filter(|_| exact)
    }
}

type Row = (&'static [&'static str], &'static str, Comparable);

/// The quantities and methods of the table, and what they are comparable with. A method is recognised by its first words.
const COMPARABLE: [Row; 10] = [
    (&["idle_latency_local_ns", "idle_latency_local_mixed_ns"], "SpareCores membench: random chase", Comparable::IdleLocalRandom),
    (&["idle_latency_local_ns"], "random pointer chase", Comparable::IdleLocalRandom),
    (&["idle_latency_local_ns"], "Mess 2.0: pointer chase with TLB cost subtracted", Comparable::IdleLocalTranslationHidden),
    (&["idle_latency_local_ns"], "Arm ASCT latency-sweep, random pointer chase, 1 GiB", Comparable::IdleLocalTranslationHidden),
    (&["idle_latency_remote_ns"], "random pointer chase", Comparable::IdleRemoteRandom),
    (&["read_bw_socket_gbs"], "MLC node-local read-only", Comparable::ReadPerSocket),
    (&["read_bw_socket_gbs"], "Mess 2.0", Comparable::ReadPerSocket),
    (&["read_bw_socket_gbs"], "ASCT peak-bandwidth", Comparable::ReadPerSocket),
    (&["c2c_same_domain_ns"], "MLC cache-to-cache L2->L2 HITM same socket", Comparable::TransferSameSocket),
    (&["c2c_cross_socket_ns"], "MLC cache-to-cache L2->L2 HITM remote socket", Comparable::TransferOtherSocket),
];

/// If at least this many values are of machines of the same kind, virtual or bare metal, the others are left out.
const ENOUGH: usize = 3;

/// Published values of CPUs like the report's, and the numbers of the report that have none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct References {
    /// A span for each kind of number and memory.
    pub spans: Vec<PublishedSpan>,
    /// Kinds of numbers in the report that no published value can be set beside.
    pub none: Option<Unreferenced>,
}

/// The published values of machines like the report's, for each quantity that the report has a reliable value of.
pub fn references(report: &Report) -> References {
    let all = [
        Comparable::IdleLocalRandom,
        Comparable::IdleLocalTranslationHidden,
        Comparable::IdleRemoteRandom,
        Comparable::ReadPerSocket,
        Comparable::TransferSameSocket,
        Comparable::TransferOtherSocket,
    ];
    let microarch = microarchitecture(&report.machine.identity);
    let rows: Vec<PublishedValue<'_>> = published().filter(|row| Some(row.microarch) == microarch).collect();
    let (mut spans, mut without) = (Vec::new(), Vec::new());
    for comparable in all {
        let Some(measured) = measured(report, comparable) else { continue };
        let of_it = spans_of(&report.machine, comparable, measured, &rows);
        if of_it.is_empty() {
            without.push(comparable);
        }
        spans.extend(of_it);
    }
    let reason = match microarch {
        None => NoReference::GenerationUnknown,
        Some(_) if rows.is_empty() => NoReference::GenerationNotInTable,
        Some(_) => NoReference::NothingComparable,
    };
    let none = Unreferenced { reason, microarch: microarch.map(str::to_owned), comparables: without };
    References { spans, none: (!none.comparables.is_empty()).then_some(none) }
}

/// The spans of one kind of number: one if the kind of the machine's memory is known, otherwise one for each kind of memory.
fn spans_of(machine: &Machine, comparable: Comparable, measured: f64, rows: &[PublishedValue<'_>]) -> Vec<PublishedSpan> {
    // If all sources that state a generation's kind of memory agree, values without a stated kind have that kind too.
    let stated: BTreeSet<&str> = rows.iter().map(|row| row.mem_type).filter(|kind| is_main_memory(kind)).collect();
    let only = stated.first().copied().filter(|_| stated.len() == 1).unwrap_or_default();
    let kind = |row: &PublishedValue<'_>| if row.mem_type.is_empty() { only.to_owned() } else { row.mem_type.to_owned() };
    let here: BTreeSet<&str> = machine.identity.installed.devices.iter().filter_map(|d| d.kind.as_deref()).collect();
    let nodes_here = nodes_per_socket(machine);
    let usable: Vec<&PublishedValue<'_>> = rows
        .iter()
        .filter(|row| row.comparable() == Some(comparable) && row.bound().is_some())
        .filter(|row| nodes_here.zip(row.nodes_per_socket()).is_none_or(|(a, b)| a == b))
        // Without a stated kind of memory, all values of a generation are of CPUs with one kind.
        .filter(|row| here.is_empty() || here.contains(kind(row).as_str()) || (stated.is_empty() && kind(row).is_empty()))
        .collect();
    let usable = if comparable == Comparable::ReadPerSocket { same_channels(&usable, machine) } else { usable };
    let kinds: BTreeSet<String> = usable.iter().map(|row| kind(row)).collect();
    let of_kind = |memory: String| {
        let rows: Vec<_> = usable.iter().copied().filter(|row| kind(row) == memory).collect();
        span(machine, comparable, measured, &rows, memory)
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// Whether a kind of memory can be what a CPU's own channels have.
fn is_main_memory(kind: &str) -> bool {
    kind.starts_with("DDR") || kind.starts_with("LPDDR")
}

/// NUMA nodes with CPUs in each package, if all packages have equally many. A guest's nodes are made up, so they do not count.
fn nodes_per_socket(machine: &Machine) -> Option<u32> {
    let nodes = machine.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).count() as u32;
    let sockets = packages(machine);
    (!machine.identity.may_be_virtual() && sockets > 0 && nodes.is_multiple_of(sockets)).then(|| nodes / sockets).filter(|&n| n > 0)
}

fn span(machine: &Machine, comparable: Comparable, measured: f64, all: &[&PublishedValue<'_>], memory: String) -> Option<PublishedSpan> {
    let virtual_here = machine.identity.is_virtual();
    let alike: Vec<_> = all.iter().copied().filter(|row| virtual_here.is_some() && row.is_virtual() == virtual_here).collect();
    let chosen = if alike.len() >= ENOUGH { alike } else { all.to_vec() };
    let values = sorted(&chosen.iter().filter_map(|row| row.bound()).collect::<Vec<_>>());
    let (low, high) = (*values.first()?, *values.last()?);
    let position = match measured {
        m if m < low => Position::Below,
        m if m > high => Position::Above,
        _ => Position::Within,
    };
    let count = |test: &dyn Fn(&PublishedValue<'_>) -> bool| chosen.iter().filter(|row| test(row)).count() as u32;
    let (virtual_values, metal_values) = (count(&|row| row.is_virtual() == Some(true)), count(&|row| row.is_virtual() == Some(false)));
    let n = values.len() as u32;
    let nodes_here = nodes_per_socket(machine);
    Some(PublishedSpan {
        comparable,
        microarch: chosen.first()?.microarch.to_owned(),
        memory: Some(memory).filter(|memory| !memory.is_empty()),
        virtual_machines: [(virtual_values, true), (metal_values, false)].into_iter().find(|(count, _)| *count == n).map(|(_, v)| v),
        n,
        virtual_values,
        metal_values,
        other_nodes_possible: count(&|row| nodes_here.is_none() || row.nodes_per_socket().is_none()),
        corrected: count(&|row| row.corrected.is_some()),
        low,
        high,
        unit: if comparable == Comparable::ReadPerSocket { Unit::GigabytesPerSecond } else { Unit::Nanoseconds },
        measured,
        position,
    })
}

/// Bandwidths of sockets with the same channels at the same speed; none if firmware does not state this machine's.
fn same_channels<'a>(rows: &[&'a PublishedValue<'a>], machine: &Machine) -> Vec<&'a PublishedValue<'a>> {
    let sockets = packages(machine);
    let Some(peak) = machine.identity.installed.peak().ok().filter(|p| p.channels_known && p.mts.0 == p.mts.1 && sockets > 0) else {
        return Vec::new();
    };
    let here = (Some(peak.channels / sockets), Some(peak.mts.0));
    rows.iter().copied().filter(|row| (row.channels, row.mts) == here).collect()
}

fn packages(machine: &Machine) -> u32 {
    let packages: BTreeSet<u32> = machine.topology.cpus.iter().map(|cpu| cpu.package).collect();
    packages.len() as u32
}

/// The median of the report's reliable values of a quantity.
fn measured(report: &Report, comparable: Comparable) -> Option<f64> {
    let topology = &report.machine.topology;
    let package = |cpu: Option<u32>| Some(topology.cpu(cpu?)?.package);
    let package_of_node = |node: u32| package(topology.node(node)?.cpus.first());
    let idle = |m: &Measurement, order| {
        matches!(m.experiment, Experiment::IdleLatency | Experiment::IdleLatencyPerCpu) && m.at.order == Some(order)
    };
    let local = |m: &Measurement| m.at.cpu_node.is_some() && m.at.cpu_node == m.at.memory_node();
    let other_socket = |m: &Measurement| {
        let (cpu, memory) = (m.at.cpu_node.and_then(package_of_node), m.at.memory_node().and_then(package_of_node));
        cpu.zip(memory).is_some_and(|(a, b)| a != b)
    };
    let transfer = |m: &Measurement, same: bool| {
        let (reader, holder) = (package(m.at.cpu), package(m.at.holder_cpu));
        m.experiment.is_cache_to_cache() && m.at.state == Some(LineState::Hitm) && reader.zip(holder).is_some_and(|(a, b)| (a == b) == same)
    };
    let wanted = |m: &&Measurement| match comparable {
        Comparable::IdleLocalRandom => idle(m, ChaseOrder::FullRandom) && local(m),
        Comparable::IdleLocalTranslationHidden => idle(m, ChaseOrder::WindowLocal) && local(m),
        Comparable::IdleRemoteRandom => idle(m, ChaseOrder::FullRandom) && other_socket(m),
        Comparable::ReadPerSocket => is_whole_machine(topology, m),
        Comparable::TransferSameSocket => transfer(m, true),
        Comparable::TransferOtherSocket => transfer(m, false),
    };
    // Transfers are between caches; a small buffer's latency or bandwidth is a cache's.
    let is_transfer = matches!(comparable, Comparable::TransferSameSocket | Comparable::TransferOtherSocket);
    let of_its_place = |m: &&Measurement| is_transfer || is_of_memory(topology, m);
    let reliable = report.results.iter().filter(|m| m.is_reliable() && m.at.memory_dir.is_none()).filter(wanted).filter(of_its_place);
    let values: Vec<f64> = reliable.filter_map(|m| m.estimate.value).collect();
    let value = median(&values)?;
    match comparable {
        // In a guest a socket is not known to be one.
        Comparable::ReadPerSocket if report.machine.identity.may_be_virtual() => None,
        Comparable::ReadPerSocket => Some(value / f64::from(packages(&report.machine).max(1))),
        _ => Some(value),
    }
}

/// Whether all cores of the machine together did nothing but read memory of their own nodes, one line after the other.
fn is_whole_machine(topology: &Topology, m: &Measurement) -> bool {
    let at = &m.at;
    let takes_part = |cpu: &Cpu| at.cpus.as_ref().is_some_and(|cpus| cpus.contains(cpu.id) || !cpu.siblings.intersection(cpus).is_empty());
    m.experiment == Experiment::Bandwidth
        && m.metric == Metric::Bandwidth
        && at.mix == Some(Mix::AllReads)
        && at.access.is_none_or(|access| access == Access::Sequential)
        && at.delay_cycles.unwrap_or(0) == 0
        && at.memory == Some(MemoryPlace::Own)
        && topology.cpus.iter().all(takes_part)
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::Coordinates;
    use memgauge_model::result::{Evidence, Plateau};
    use memgauge_model::units::Bytes;

    use super::*;
    use crate::conclusions::limit::tests::{bandwidth, machine, report};

    #[test]
    fn every_line_of_the_table_is_read_and_has_a_source() {
        let rows: Vec<_> = published().collect();
        assert_eq!(rows.len(), TABLE.lines().count() - 1, "a line does not have {COLUMNS} columns, or no positive value");
        for row in &rows {
            assert!(!row.source.is_empty() && !row.method.is_empty() && !row.quantity.is_empty(), "{row:?}");
            assert!(["ns", "GB/s"].contains(&row.unit), "{row:?}");
            assert!(["primary", "quoted", "approximate"].contains(&row.confidence), "{row:?}");
            assert_eq!(row.unit == "ns", row.quantity.ends_with("_ns"), "{row:?}");
        }
        // Every row of the list is used.
        for (quantities, method, comparable) in COMPARABLE {
            let used = rows.iter().any(|r| quantities.contains(&r.quantity) && r.method.starts_with(method) && r.bound().is_some());
            assert!(used, "{method} {comparable:?}");
        }
    }

    #[test]
    fn neither_approximate_nor_partly_cached_values_bound_a_span() {
        let never: Vec<_> = published()
            .filter(|r| r.confidence == "approximate" || (r.quantity.ends_with("_mixed_ns") && r.corrected.is_none()) || r.mode == "NPS0")
            .collect();
        assert!(never.len() > 15, "the table has such values");
        assert!(never.iter().all(|r| r.bound().is_none()), "{:?}", never.iter().find(|r| r.bound().is_some()));
        // 92.3 and 93.3 ns of Altra have no correction: the two that have one are 109 and 114 ns.
        let n1: Vec<_> = published().filter(|r| r.microarch == "Neoverse N1").collect();
        let mut machine = machine();
        machine.identity.hypervisor = Some("kvm".into());
        machine.identity.installed.devices.clear();
        let spans = spans_of(&machine, Comparable::IdleLocalRandom, 100.0, &n1);
        let [span] = &spans[..] else { panic!("{spans:?}") };
        assert_eq!((span.low, span.high, span.n, span.position), (109.0, 114.0, 2, Position::Below));
        assert_eq!((span.virtual_machines, span.virtual_values, span.metal_values), (None, 1, 1), "too few of guests alone");
    }

    #[test]
    fn kinds_of_memory_are_not_pooled() {
        let v2: Vec<_> = published().filter(|r| r.microarch == "Neoverse V2").collect();
        let spans = |kinds: &[&str]| {
            let mut machine = machine();
            let device = |kind: &&str| memgauge_model::installed::MemoryDevice { kind: Some((*kind).into()), ..Default::default() };
            machine.identity.installed.devices = kinds.iter().map(device).collect();
            let spans = spans_of(&machine, Comparable::IdleLocalTranslationHidden, 120.0, &v2);
            spans.into_iter().map(|s| (s.memory, s.low, s.high)).collect::<Vec<_>>()
        };
        let (graviton, grace) = ((Some("DDR5".to_owned()), 114.56, 114.56), (Some("LPDDR5".to_owned()), 176.6, 176.6));
        assert_eq!(spans(&["DDR5"]), std::slice::from_ref(&graviton));
        assert_eq!(spans(&["LPDDR5"]), std::slice::from_ref(&grace));
        assert_eq!(spans(&[]), [graviton, grace], "unknown here: one for each");
        assert_eq!(spans(&["DDR4"]), []);
    }

    #[test]
    fn nodes_of_a_socket_are_those_of_the_machine() {
        let nodes = |mode, sockets| PublishedValue { mode, sockets, ..published().next().unwrap() }.nodes_per_socket();
        assert_eq!(
            [nodes("NPS4", None), nodes("SNC4 (8 NUMA nodes)", Some(2)), nodes("COD (4 NUMA nodes)", Some(2))],
            [Some(4), Some(4), Some(2)]
        );
        assert_eq!(nodes("bare metal gcp c3-standard-192-metal, 4 NUMA nodes", Some(2)), Some(2));
        assert_eq!([nodes("cloud VM x, 5 NUMA nodes", Some(2)), nodes("cloud VM x, 2 NUMA nodes", None), nodes("", None)], [None; 3]);
        // The metal Sapphire Rapids of the table has two nodes a socket.
        let rows: Vec<_> = published().filter(|r| r.microarch == "Sapphire Rapids" && r.is_virtual() == Some(false)).collect();
        let mut one = machine();
        assert_eq!(nodes_per_socket(&one), Some(1));
        assert_eq!(spans_of(&one, Comparable::IdleLocalRandom, 130.0, &rows), []);
        let mut halves = one.topology.nodes.clone();
        halves.iter_mut().for_each(|node| node.id += 2);
        one.topology.nodes.extend(halves);
        let spans = spans_of(&one, Comparable::IdleLocalRandom, 130.0, &rows);
        assert_eq!(spans.iter().map(|s| (s.n, s.other_nodes_possible)).collect::<Vec<_>>(), [(1, 0)]);
        one.identity.hypervisor = Some("kvm".into());
        let spans = spans_of(&one, Comparable::IdleLocalRandom, 130.0, &rows);
        assert_eq!(spans.iter().map(|s| (s.n, s.other_nodes_possible)).collect::<Vec<_>>(), [(1, 1)], "a guest's nodes say nothing");
    }

    #[test]
    fn where_nothing_is_published_it_says_why() {
        let none = |report: &Report| references(report).none.map(|n| (n.reason, n.comparables));
        let random = vec![Comparable::IdleLocalRandom];
        let mut unknown = zen4(120.0, ChaseOrder::FullRandom, None);
        assert_eq!(none(&unknown), None, "there is a span");
        unknown.machine.identity.model.insert("family".into(), "99".into());
        assert_eq!(none(&unknown), Some((NoReference::GenerationUnknown, random.clone())));
        let hidden = zen4(80.0, ChaseOrder::WindowLocal, None);
        assert_eq!(none(&hidden), Some((NoReference::NothingComparable, vec![Comparable::IdleLocalTranslationHidden])));
        let mut gone = zen4(120.0, ChaseOrder::FullRandom, None);
        gone.machine.identity.model.insert("family".into(), "23".into());
        gone.machine.identity.vendor = Some("GenuineIntel".into());
        gone.machine.identity.model = [("family", "6"), ("model", "175")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(none(&gone), Some((NoReference::GenerationNotInTable, random)), "Sierra Forest has no value");
        gone.results.clear();
        assert_eq!(none(&gone), None, "nothing was measured that could be compared");
    }

    fn zen4(ns: f64, order: ChaseOrder, hypervisor: Option<&str>) -> Report {
        let mut machine = machine();
        let identity = &mut machine.identity;
        identity.vendor = Some("AuthenticAMD".into());
        identity.model = [("family", "25"), ("model", "17")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        identity.hypervisor = hypervisor.map(Into::into);
        let mut m = bandwidth("0", Some(0), Mix::AllReads, ns, None);
        (m.experiment, m.metric, m.unit) = (Experiment::IdleLatency, Metric::Latency, Unit::Nanoseconds);
        m.at = Coordinates {
            cpu: Some(0),
            cpu_node: Some(0),
            memory: Some(MemoryPlace::Node(0)),
            order: Some(order),
            ..Coordinates::default()
        };
        report(machine, vec![m])
    }

    #[test]
    fn a_latency_is_set_beside_values_of_the_same_method_and_kind_of_machine() {
        let one = |report: &Report| references(report).spans.into_iter().next();
        let metal = one(&zen4(120.0, ChaseOrder::FullRandom, None)).unwrap();
        assert_eq!((metal.low, metal.high, metal.n, metal.virtual_machines), (113.0, 114.0, 3, Some(false)));
        assert_eq!((metal.position, metal.corrected), (Position::Above, 3));
        let guest = one(&zen4(120.0, ChaseOrder::FullRandom, Some("kvm"))).unwrap();
        assert_eq!((guest.low, guest.high, guest.virtual_machines, guest.position), (114.0, 133.0, Some(true), Position::Within));
        assert_eq!(one(&zen4(80.0, ChaseOrder::Sequential, None)), None, "nothing of that method is comparable");
        let mut unknown = zen4(120.0, ChaseOrder::FullRandom, None);
        unknown.machine.identity.model.insert("family".into(), "99".into());
        assert_eq!(references(&unknown).spans, []);
    }

    #[test]
    fn a_cache_is_not_set_beside_memory() {
        let mut report = zen4(120.0, ChaseOrder::FullRandom, None);
        assert_eq!(references(&report).spans.len(), 1);
        report.results[0].evidence.buffer = Bytes::mib(1);
        assert_eq!(references(&report), References::default());
        // A small buffer that was seen to be beyond the caches counts.
        report.results[0].evidence.plateau = Some(Plateau { half_ns: 119.0, whole_ns: 120.0, cold_ns: Some(120.0), reached: true });
        assert_eq!(references(&report).spans.len(), 1);
        // Transfers between caches have small buffers.
        report.results[0].evidence = Evidence { buffer: Bytes::mib(1), ..Evidence::default() };
        (report.results[0].experiment, report.results[0].at.order) = (Experiment::CacheToCache, None);
        (report.results[0].at.state, report.results[0].at.holder_cpu) = (Some(LineState::Hitm), Some(1));
        assert_eq!(measured(&report, Comparable::TransferSameSocket), Some(120.0));
    }

    #[test]
    fn bandwidth_of_a_socket_is_that_of_all_its_cores_reading_memory() {
        let of = |change: &dyn Fn(&mut Measurement)| {
            let mut m = bandwidth("0-3", None, Mix::AllReads, 200.0, None);
            change(&mut m);
            measured(&report(machine(), vec![m]), Comparable::ReadPerSocket)
        };
        assert_eq!(of(&|_| ()), Some(100.0), "the machine has two sockets");
        assert_eq!(of(&|m| m.at.access = Some(Access::Sequential)), Some(100.0));
        let others: [&dyn Fn(&mut Measurement); 6] = [
            &|m| m.at.cpus = Some("0".parse().unwrap()),
            &|m| m.at.cpus = Some("0-1".parse().unwrap()),
            &|m| m.at.memory = Some(MemoryPlace::Node(0)),
            &|m| m.at.access = Some(Access::Random),
            &|m| m.at.delay_cycles = Some(100),
            &|m| m.evidence.buffer = Bytes::mib(4),
        ];
        assert_eq!(others.map(of), [None; 6]);
        // One hardware thread of each core is all cores.
        let mut two = machine();
        two.topology.cpus.iter_mut().for_each(|cpu| cpu.siblings = [cpu.id / 2 * 2, cpu.id / 2 * 2 + 1].into_iter().collect());
        let m = bandwidth("0,2", None, Mix::AllReads, 200.0, None);
        assert_eq!(measured(&report(two, vec![m]), Comparable::ReadPerSocket), Some(100.0));
    }

    #[test]
    fn bandwidths_need_the_same_channels_and_speed() {
        let row =
            published().find(|r| r.comparable() == Some(Comparable::ReadPerSocket) && r.channels.is_some() && r.mts.is_some()).unwrap();
        let mut machine = machine();
        assert_eq!(same_channels(&[&row], &machine), [] as [&PublishedValue<'_>; 0], "the machine has two channels a package");
        let device = |n: u32| memgauge_model::installed::MemoryDevice {
            bank: Some(format!("P{} CHANNEL {}", n % 2, char::from(b'A' + (n / 2) as u8))),
            kind: Some("DDR5".into()),
            configured_mts: row.mts,
            ..Default::default()
        };
        machine.identity.installed.devices = (0..2 * row.channels.unwrap()).map(device).collect();
        assert_eq!(same_channels(&[&row], &machine), [&row]);
    }
}
