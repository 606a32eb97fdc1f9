//! A fleet of simulated hosts: rows of values as a fleet's store has them. Some hosts are sick, and the fleet says what is wrong with each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memgauge_fleet::{Cell, Fingerprint, HostRun, Row};
use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, LineState, MemoryPlace, Metric, Unit};
use memgauge_model::result::{PageKind, Quality, QualityLevel, Report};
use memgauge_model::traffic::Mix;

use crate::random::Random;

/// The parameters of a simulated fleet.
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
    /// Four hundred hosts that differ by 0.8 %, none of them sick.
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

/// A host's fault.
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
    /// Hosts that lack numbers, or have degraded ones.
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
        let host = Host::draw(shape, number, &mut random);
        if host.lacks.is_some() || host.degraded {
            fleet.uncertain.insert(host.run.host.clone());
        }
        if let Some(fault) = host.fault {
            fleet.sick.insert(host.run.host.clone(), fault);
        }
        let run = Arc::new(host.run.clone());
        for (i, (cell, typical)) in cells.iter().enumerate() {
            if host.never_measured(i) {
                continue;
            }
            let value = typical * host.factor(shape, cell, &mut random);
            let measured = !(host.lacks == Some(Lacks::Value) && i == 30);
            let half = value * random.between(0.001, 0.006);
            fleet.rows.push(Row {
                run: Arc::clone(&run),
                cell: Arc::clone(cell),
                value: measured.then_some(value),
                interval: measured.then_some((value - half, value + half)),
                pages: Some(PageKind::Pool),
                quality: measured.then(|| host.quality(i)),
                not_measured: (!measured).then(|| "no-memory".to_owned()),
                volatile: None,
            });
        }
    }
    fleet
}

/// Results of the hosts of a fleet, as files hold them: those of `template` with other values, names and BIOS, without samples. With each its
/// fault, if it makes any number of these worse.
pub fn reports<'a>(
    template: &'a Report,
    shape: &'a FleetShape,
    seed: u64,
) -> impl Iterator<Item = (Report, Option<(HostFault, f64)>)> + 'a {
    let mut random = Random::new(seed);
    (0..shape.hosts).map(move |number| {
        let host = Host::draw(shape, number, &mut random);
        let mut report = template.clone();
        let name =
            memgauge_model::result::Host { hostname: Some(host.run.host.clone()), machine_id_hash: host.run.machine_id_hash.clone() };
        (report.run.id, report.run.labels, report.run.host) = (host.run.run_id.clone(), host.run.labels.clone(), Some(name));
        (report.started.utc, report.complete) = (host.run.started.clone(), host.run.complete);
        report.machine.identity.firmware.extend(host.run.fingerprint.firmware.clone().map(|bios| ("bios_version".to_owned(), bios)));
        let (mut place, mut concerned) = (0, false);
        report.results.retain_mut(|m| {
            place += 1;
            let cell = Cell { experiment: m.experiment, at: m.at.clone(), metric: m.metric, unit: m.unit };
            (m.samples, m.quality) = (None, Quality { level: host.quality(place), reasons: Vec::new() });
            let Some(value) = m.estimate.value else { return false };
            concerned |= host.fault.is_some_and(|(fault, _)| fault.concerns(&cell));
            let value = value * host.factor(shape, &cell, &mut random);
            let estimate = &mut m.estimate;
            (estimate.value, estimate.ci95_low, estimate.ci95_high) = (Some(value), Some(value * 0.997), Some(value * 1.003));
            (estimate.min, estimate.max) = (Some(value * 0.99), Some(value * 1.01));
            !host.never_measured(place)
        });
        (report, host.fault.filter(|_| concerned))
    })
}

/// How a host lacks numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lacks {
    /// The run ended early.
    End,
    /// Some were never planned.
    Some,
    /// One has a reason instead of a value.
    Value,
}

/// A host before it is measured.
struct Host {
    run: HostRun,
    fault: Option<(HostFault, f64)>,
    lacks: Option<Lacks>,
    degraded: bool,
    other_bios: bool,
}

impl Host {
    fn draw(shape: &FleetShape, number: u32, random: &mut Random) -> Self {
        let run = host(shape, number, random);
        let mut happens = |share: f64| random.between(0.0, 1.0) < share;
        let (sick, lacking, degraded) = (happens(shape.sick), happens(shape.lacking), happens(shape.degraded));
        let fault = HostFault::ALL[random.below(HostFault::ALL.len() as u32) as usize];
        let by = random.between(shape.slower_by.0, shape.slower_by.1);
        let lacks = [Lacks::End, Lacks::Some, Lacks::Value][random.below(3) as usize];
        let lacks = lacking.then_some(lacks);
        let other_bios = run.fingerprint.firmware.as_deref() == Some(BIOSES[1]);
        let run = HostRun { complete: lacks != Some(Lacks::End), ..run };
        Self { run, fault: sick.then_some((fault, by)), lacks, degraded, other_bios }
    }

    /// Whether it has no number at this place of the list.
    fn never_measured(&self, place: usize) -> bool {
        match self.lacks {
            Some(Lacks::End) => place >= 50,
            Some(Lacks::Some) => (20..23).contains(&place),
            Some(Lacks::Value) | None => false,
        }
    }

    fn quality(&self, place: usize) -> QualityLevel {
        if self.degraded && place % 7 == 3 { QualityLevel::Degraded } else { QualityLevel::Good }
    }

    /// The ratio of the host's number to the typical one.
    fn factor(&self, shape: &FleetShape, cell: &Cell, random: &mut Random) -> f64 {
        let worse = |share: f64| if cell.metric == Metric::Bandwidth { 1.0 - share } else { 1.0 + share };
        let of_fault = self.fault.filter(|(fault, _)| fault.concerns(cell)).map_or(1.0, |(_, by)| worse(by));
        let of_bios = shape.other_bios.filter(|_| self.other_bios && cell.metric == Metric::Bandwidth).map_or(1.0, |(_, by)| worse(by));
        spread(shape, random) * of_fault * of_bios
    }
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
            pages: Some("pool".to_owned()),
            microcode: Some("0xa101148".to_owned()),
            firmware: Some(BIOSES[usize::from(other_bios)].to_owned()),
            kernel: Some("6.12.0".to_owned()),
        },
    }
}
