//! A fleet of simulated hosts: rows of values as a fleet's store has them, some hosts of which are sick, and what is wrong with each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment, LineState, MemoryPlace, Metric, Unit};
use memgauge_core::result::QualityLevel;
use memgauge_core::traffic::Mix;
use memgauge_fleet::{Cell, Fingerprint, HostRun, Row};

use crate::random::Random;

/// What a fleet is like.
#[derive(Debug, Clone)]
pub struct FleetShape {
    /// How many hosts.
    pub hosts: u32,
    /// Standard deviation of a number between healthy hosts, as a share.
    pub deviation: f64,
    /// Degrees of freedom of that deviation: Student's t. `None`: normally distributed.
    pub tails: Option<u32>,
    /// The share of sick hosts.
    pub sick: f64,
    /// By how much a sick host's numbers are worse, from the least to the most, as shares.
    pub slower_by: (f64, f64),
    /// The share of hosts that lack some numbers, each in one of three ways.
    pub lacking: f64,
    /// The share of hosts some of whose numbers are degraded.
    pub degraded: f64,
    /// The share of hosts that have another BIOS, and how much less bandwidth that gives.
    pub other_bios: Option<(f64, f64)>,
    /// Whether two names have one machine id, and one name two.
    pub duplicates: bool,
}

impl Default for FleetShape {
    /// Four hundred hosts that differ by 0.8 %, of which nobody is sick.
    fn default() -> Self {
        Self {
            hosts: 400,
            deviation: 0.008,
            tails: None,
            sick: 0.0,
            slower_by: (0.10, 0.35),
            lacking: 0.0,
            degraded: 0.0,
            other_bios: None,
            duplicates: false,
        }
    }
}

/// What is wrong with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostFault {
    /// Everything is slower.
    Whole,
    /// All bandwidths are lower.
    Bandwidth,
    /// The memory of this node is slower.
    Node(u32),
    /// This cache has less bandwidth.
    Cache(u32),
    /// From the CPUs of node 0 to the memory of node 1 everything is slower.
    Link,
}

/// A fleet.
pub struct SimulatedFleet {
    /// Its rows, those of a run after each other.
    pub rows: Vec<Row>,
    /// The sick hosts, what is wrong with each, and by what share it is slower.
    pub sick: BTreeMap<String, (HostFault, f64)>,
    /// Hosts that lack numbers, or of which some are degraded.
    pub uncertain: BTreeSet<String>,
}

/// The BIOS of most hosts, and of the others.
pub const BIOSES: [&str; 2] = ["Example S1 BIOS 1.7", "Example S1 BIOS 2.0"];

/// Sixty numbers of a host with two nodes, eight caches and sixteen CPUs, with a typical value of each.
pub fn cells() -> Vec<(Arc<Cell>, f64)> {
    let mut all = Vec::new();
    let mut add = |experiment, metric, at: Coordinates, value: f64| {
        let unit = if metric == Metric::Latency { Unit::Nanoseconds } else { Unit::GigabytesPerSecond };
        all.push((Arc::new(Cell { experiment, at, metric, unit }), value));
    };
    let between =
        |cpu: u32, memory: u32| Coordinates { cpu_node: Some(cpu), memory: Some(MemoryPlace::Node(memory)), ..Coordinates::default() };
    let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
    for (order, more) in [(ChaseOrder::WindowLocal, 0.0), (ChaseOrder::FullRandom, 15.0)] {
        for (cpu, memory) in pairs {
            let at = Coordinates { cpu: Some(8 * cpu), order: Some(order), ..between(cpu, memory) };
            add(Experiment::IdleLatency, Metric::Latency, at, more + if cpu == memory { 95.0 } else { 160.0 });
        }
    }
    for mix in Mix::PEAK {
        let at = Coordinates { cpus: Some((0..16).collect()), mix: Some(mix), ..Coordinates::default() };
        add(Experiment::Bandwidth, Metric::Bandwidth, at, if mix == Mix::AllReads { 560.0 } else { 480.0 });
    }
    for mix in [Mix::AllReads, Mix::R2W1, Mix::NtWrite] {
        for (cpu, memory) in pairs {
            let at = Coordinates { mix: Some(mix), ..between(cpu, memory) };
            add(Experiment::BandwidthMatrix, Metric::Bandwidth, at, if cpu == memory { 280.0 } else { 110.0 });
        }
    }
    for cache in 0..8 {
        let cpus = (2 * cache..2 * cache + 2).collect();
        let at = Coordinates { cpus: Some(cpus), mix: Some(Mix::AllReads), ..between(cache / 4, cache / 4) };
        add(Experiment::BandwidthPerCache, Metric::Bandwidth, at, 62.0);
    }
    for cpu in 0..16 {
        let at = Coordinates { cpu: Some(cpu), ..between(cpu / 8, cpu / 8) };
        add(Experiment::IdleLatencyPerCpu, Metric::Latency, at, 96.0);
    }
    for (reader, holder) in [(0, 1), (0, 4), (0, 9)] {
        for state in [LineState::Hit, LineState::Hitm] {
            let at = Coordinates { cpu: Some(reader), holder_cpu: Some(holder), state: Some(state), ..Coordinates::default() };
            add(Experiment::CacheToCache, Metric::Latency, at, 30.0 + 8.0 * f64::from(holder));
        }
    }
    all
}

impl HostFault {
    const ALL: [Self; 5] = [Self::Whole, Self::Bandwidth, Self::Node(1), Self::Cache(3), Self::Link];

    /// Whether a number is worse with it.
    fn concerns(self, cell: &Cell) -> bool {
        let (cpu_node, memory_node) = (cell.at.cpu_node, cell.at.memory_node());
        match self {
            Self::Whole => true,
            Self::Bandwidth => cell.metric == Metric::Bandwidth,
            Self::Node(node) => memory_node == Some(node),
            Self::Cache(cache) => {
                cell.experiment == Experiment::BandwidthPerCache && cell.at.cpus.as_ref().is_some_and(|cpus| cpus.contains(2 * cache))
            }
            Self::Link => (cpu_node, memory_node) == (Some(0), Some(1)),
        }
    }
}

/// Makes the fleet of this seed.
pub fn fleet(shape: &FleetShape, seed: u64) -> SimulatedFleet {
    let mut random = Random::new(seed);
    let cells = cells();
    let mut fleet = SimulatedFleet { rows: Vec::new(), sick: BTreeMap::new(), uncertain: BTreeSet::new() };
    for number in 0..shape.hosts {
        let run = host(shape, number, &mut random);
        let host = run.host.clone();
        let fault = (random.between(0.0, 1.0) < shape.sick).then(|| {
            let fault = HostFault::ALL[random.below(HostFault::ALL.len() as u32) as usize];
            (fault, random.between(shape.slower_by.0, shape.slower_by.1))
        });
        let lacks = (random.between(0.0, 1.0) < shape.lacking).then(|| random.below(3));
        let degraded = random.between(0.0, 1.0) < shape.degraded;
        if lacks.is_some() || degraded {
            fleet.uncertain.insert(host.clone());
        }
        if let Some(fault) = fault {
            fleet.sick.insert(host, fault);
        }
        let other_bios = run.fingerprint.firmware.as_deref() == Some(BIOSES[1]);
        let run = Arc::new(HostRun { complete: lacks != Some(0), ..run });
        for (i, (cell, typical)) in cells.iter().enumerate() {
            // A run that ended early lacks its last numbers, another some in the middle, a third says why it has none.
            let absent = match lacks {
                Some(0) => i >= 50,
                Some(1) => (20..23).contains(&i),
                _ => false,
            };
            if absent {
                continue;
            }
            let mut value = typical * spread(shape, &mut random);
            let worse = |share: f64| if cell.metric == Metric::Bandwidth { 1.0 - share } else { 1.0 + share };
            if let Some((_, by)) = fault.filter(|(fault, _)| fault.concerns(cell)) {
                value *= worse(by);
            }
            if let Some((_, by)) = shape.other_bios.filter(|_| other_bios && cell.metric == Metric::Bandwidth) {
                value *= worse(by);
            }
            let measured = !(lacks == Some(2) && i == 30);
            let half = value * random.between(0.001, 0.006);
            let quality = if degraded && i % 7 == 3 { QualityLevel::Degraded } else { QualityLevel::Good };
            fleet.rows.push(Row {
                run: Arc::clone(&run),
                cell: Arc::clone(cell),
                value: measured.then_some(value),
                interval: measured.then_some((value - half, value + half)),
                quality: measured.then_some(quality),
                not_measured: (!measured).then(|| "no-memory".to_owned()),
            });
        }
    }
    fleet
}

fn spread(shape: &FleetShape, random: &mut Random) -> f64 {
    match shape.tails {
        None => random.factor(shape.deviation),
        // Of the same standard deviation.
        Some(freedom) => {
            let scale = ((f64::from(freedom) - 2.0) / f64::from(freedom)).sqrt();
            (1.0 + shape.deviation * scale * random.student(freedom)).max(0.2)
        }
    }
}

fn host(shape: &FleetShape, number: u32, random: &mut Random) -> HostRun {
    let other_bios = shape.other_bios.is_some_and(|(share, _)| random.between(0.0, 1.0) < share);
    // The last two hosts: one has the machine id of the first, one the name of the second.
    let last = shape.duplicates.then_some(shape.hosts);
    let id = if last == Some(number + 1) { 0 } else { number };
    let name = if last == Some(number + 2) { 1 } else { number };
    HostRun {
        host: format!("n{name:05}"),
        machine_id_hash: Some(format!("{id:064x}")),
        run_id: format!("{number:032x}"),
        started: format!("2026-11-{:02}T{:02}:{:02}:00Z", 1 + number % 20, number % 24, number % 60),
        labels: BTreeMap::from([("rack".to_owned(), format!("r{:03}", number / 32))]),
        complete: true,
        fingerprint: Fingerprint {
            cpu: Some("Example CPU 9000".to_owned()),
            stepping: Some("family 25, model 17, stepping 1".to_owned()),
            hypervisor: None,
            cpus: 16,
            nodes: 2,
            memory: Some("24 × 4800 MT/s × 8 B".to_owned()),
            pages: Some("2m".to_owned()),
            microcode: Some("0xa101148".to_owned()),
            firmware: Some(BIOSES[usize::from(other_bios)].to_owned()),
            kernel: Some("6.12.0".to_owned()),
        },
    }
}
