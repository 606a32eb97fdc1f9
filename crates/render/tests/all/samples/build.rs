//! Builds reports from a few figures.

use std::collections::BTreeMap;

use memgauge_model::directory::{FileBacking, FileEvidence, MemoryDir};
use memgauge_model::estimate::*;
use memgauge_model::experiment::PageRequest;
use memgauge_model::experiment::*;
use memgauge_model::installed::InstalledMemory;
use memgauge_model::integrity::TestPattern;
use memgauge_model::plan::*;
use memgauge_model::result::*;
use memgauge_model::topology::*;
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_model::units::{Bytes, IdSet};

pub fn set(list: &str) -> IdSet {
    list.parse().unwrap()
}

pub fn cpu(id: u32, core: u32, node: u32, siblings: &[u32]) -> Cpu {
    let siblings = siblings.iter().copied().collect();
    Cpu { id, package: 0, die: None, cluster: None, core, siblings, node, kind: None, capacity: None, max_mhz: None }
}

pub fn node(id: u32, cpus: &str, memory: Bytes) -> Node {
    let distances = BTreeMap::from([(id, 10)]);
    Node { id, cpus: set(cpus), memory: Some(memory), free: Some(Bytes(memory.0 / 10 * 9)), distances, ..Node::default() }
}

pub struct Curve<'a> {
    pub cpu: u32,
    pub node: u32,
    pub cpus: &'a str,
    pub mix: Mix,
    /// Delay, GB/s, ns; from the lightest load.
    pub points: &'a [(u32, f64, f64)],
    pub knee: Option<u32>,
    pub over_saturated: bool,
}

/// A machine and what was measured on it.
pub struct Lab {
    pub cpus: Vec<Cpu>,
    pub nodes: Vec<Node>,
    pub caches: Vec<Cache>,
    pub ghz: f64,
    identity: Identity,
    pages: PageEvidence,
    directory: Option<MemoryDir>,
    results: Vec<Measurement>,
    curves: Vec<CurveSummary>,
}

impl Lab {
    pub fn new(model: &str, vendor: &str, hypervisor: Option<&str>) -> Self {
        Self {
            cpus: vec![],
            nodes: vec![],
            caches: vec![],
            ghz: 3.0,
            identity: Identity {
                arch: "x86_64".into(),
                vendor: Some(vendor.into()),
                model_name: Some(model.into()),
                model: BTreeMap::from([("family".into(), "25".into()), ("model".into(), "17".into()), ("stepping".into(), "1".into())]),
                system: OperatingSystem::Linux,
                kernel: Some("6.12.48".into()),
                firmware: BTreeMap::new(),
                hypervisor: hypervisor.map(str::to_owned),
                hypervisor_unknown: None,
                memory_encryption: None,
                installed: InstalledMemory::default(),
            },
            pages: PageEvidence { obtained: Some(PageKind::Base), share: Some(1.0), page: Some(Bytes::kib(4)), ..PageEvidence::default() },
            directory: None,
            results: vec![],
            curves: vec![],
        }
    }

    /// Buffers come from a pool of 2 MiB pages.
    pub fn pool(&mut self) {
        self.pages =
            PageEvidence { obtained: Some(PageKind::Pool), share: Some(1.0), page: Some(Bytes::mib(2)), ..PageEvidence::default() };
    }

    /// Buffers are files on persistent memory at `node`, mounted with DAX.
    pub fn pmem(&mut self, node: u32) {
        let file = FileEvidence {
            path: "/mnt/pmem".into(),
            filesystem: "ext4".into(),
            device: Some("/dev/pmem0".into()),
            device_node: Some(node),
            backing: FileBacking::Dax,
            map_sync: true,
            reason: None,
            volatile: None,
        };
        self.directory = Some(MemoryDir { file, free: Some(Bytes::gib(700)), block: Bytes::kib(4), persistent: None });
        self.pages = PageEvidence { obtained: Some(PageKind::Dax), share: Some(1.0), page: Some(Bytes::mib(2)), ..PageEvidence::default() };
    }

    /// Packages of one node each, second threads numbered after all first ones, as Linux does.
    pub fn packages(&mut self, packages: u32, cores: u32, threads: u32) {
        let firsts = packages * cores;
        for id in 0..firsts * threads {
            let first = id % firsts;
            let siblings: Vec<u32> = (0..threads).map(|t| first + t * firsts).collect();
            let mut cpu = cpu(id, first % cores, first / cores, &siblings);
            cpu.package = first / cores;
            self.cpus.push(cpu);
        }
        for p in 0..packages {
            let cpus: IdSet = self.cpus.iter().filter(|c| c.package == p).map(|c| c.id).collect();
            let mut node = node(p, &cpus.to_string(), Bytes::gib(256));
            node.distances = (0..packages).map(|to| (to, if to == p { 10 } else { 21 })).collect();
            self.nodes.push(node);
            self.caches.push(Cache { level: 3, size: Bytes::mib(105), line: Some(64), ways: Some(15), cpus });
        }
        for first in 0..firsts {
            let cpus = self.cpus[first as usize].siblings.clone();
            self.caches.push(Cache { level: 2, size: Bytes::mib(2), line: Some(64), ways: Some(16), cpus });
        }
        self.caches.sort_by_key(|c| (c.level, c.cpus.first()));
    }

    fn measure(&self, experiment: Experiment, metric: Metric, at: Coordinates, value: f64) -> Measurement {
        let at = Coordinates { memory_dir: self.directory.as_ref().map(|d| d.file.path.clone()), ..at };
        let unit = if metric == Metric::Latency { Unit::Nanoseconds } else { Unit::GigabytesPerSecond };
        let nodes: BTreeMap<u32, u64> = at.memory_node().map(|n| (n, 512)).into_iter().collect();
        // Three digits of the value stand in for randomness, so that every run of this code makes the same report.
        let wobble = 0.002 + (value * 37.0).fract() * 0.004;
        Measurement {
            counters: None,
            lines_in_flight: None,
            firmware: None,
            distribution: None,
            samples: None,
            experiment,
            at,
            metric,
            unit,
            estimate: Estimate {
                value: Some(value),
                not_measured: None,
                n: 24,
                min: Some(value * (1.0 - 3.0 * wobble)),
                max: Some(value * (1.0 + 4.0 * wobble)),
                mad: Some(value * wobble),
                ci95_low: Some(value * (1.0 - 0.6 * wobble)),
                ci95_high: Some(value * (1.0 + wobble)),
                converged: true,
                modes: vec![],
                outliers: None,
                drift: None,
            },
            evidence: Evidence {
                threads: 1,
                kernel: "chase".into(),
                buffer: Bytes::mib(512),
                allocations: 6,
                pages: self.pages.clone(),
                file: self.directory.as_ref().map(|d| d.file.clone()),
                placement: Placement {
                    status: PlacementStatus::Verified,
                    method: Some(PlacementMethod::Mbind),
                    source: Some(PlacementSource::MovePages),
                    pages_by_node: nodes,
                    problems: Vec::new(),
                },
                noise: Noise { steal: Some(0.0), others: Some(0.004), involuntary_switches: Some(0), ..Noise::default() },
                ..Evidence::default()
            },
            quality: Quality::default(),
            verdict: Verdict { status: VerdictStatus::Unknown, reason: VerdictReason::LimitUnknown, ..Verdict::default() },
        }
    }

    fn chase(&self, experiment: Experiment, at: Coordinates, ns: f64) -> Measurement {
        let random = at.order;
        let mut m = self.measure(experiment, Metric::Latency, at, ns);
        m.evidence.window = (random == Some(ChaseOrder::WindowLocal)).then_some(Bytes::kib(512));
        m.evidence.stride = Some(Bytes(128));
        m.evidence.prefetch = Some(PrefetchEvidence { sequential_ns: 11.6, random_over_sequential: ns / 11.6 });
        m.evidence.plateau = Some(Plateau { half_ns: ns * 0.996, whole_ns: ns, cold_ns: None, reached: true });
        m
    }

    pub fn latency(&mut self, cpu_node: u32, cpu: u32, memory: u32, local: f64, random: f64) {
        for (order, ns) in [(ChaseOrder::WindowLocal, local), (ChaseOrder::FullRandom, random)] {
            let at = Coordinates {
                cpu_node: Some(cpu_node),
                memory: Some(MemoryPlace::Node(memory)),
                cpu: Some(cpu),
                order: Some(order),
                ..Default::default()
            };
            let m = self.chase(Experiment::IdleLatency, at, ns);
            self.results.push(m);
        }
    }

    pub fn latency_of_cpu(&mut self, cpu: u32, memory: u32, ns: f64) {
        let at = Coordinates {
            cpu_node: Some(memory),
            memory: Some(MemoryPlace::Node(memory)),
            cpu: Some(cpu),
            order: Some(ChaseOrder::WindowLocal),
            ..Default::default()
        };
        let m = self.chase(Experiment::IdleLatencyPerCpu, at, ns);
        self.results.push(m);
    }

    /// The control of drift for the first result.
    pub fn repeat_first(&self, ns: f64) -> Measurement {
        let first = &self.results[0];
        self.chase(first.experiment, first.at.clone(), ns)
    }

    #[allow(clippy::too_many_arguments, reason = "the coordinates of a cell")]
    pub fn bandwidth(
        &mut self,
        experiment: Experiment,
        from: Option<u32>,
        memory: Option<u32>,
        cpus: &str,
        mix: Mix,
        gbs: f64,
        kernel: &str,
        rfo: Rfo,
    ) {
        let cpus = set(cpus);
        let threads = cpus.len() as u32;
        let memory = memory.map_or(MemoryPlace::Own, MemoryPlace::Node);
        let at = Coordinates { cpu_node: from, memory: Some(memory), cpus: Some(cpus), mix: Some(mix), ..Default::default() };
        let mut m = self.measure(experiment, Metric::Bandwidth, at, gbs);
        let (loads, stores) = mix.lines();
        let lines = f64::from(loads + stores);
        let written = gbs * f64::from(stores) / lines;
        m.evidence.threads = threads;
        m.evidence.kernel = kernel.into();
        m.evidence.buffer = Bytes::mib(256 * u64::from(threads));
        m.evidence.allocations = 1;
        m.evidence.coverage = Some(0.991);
        m.evidence.fairness = (threads > 1).then_some(0.968);
        m.evidence.traffic = Some(TrafficRates {
            app_read_gbs: gbs * f64::from(loads) / lines,
            app_write_gbs: written,
            bus_estimate_gbs: match rfo {
                Rfo::Yes => Some(gbs + written),
                Rfo::No => Some(gbs),
                Rfo::Unknown => None,
            },
            rfo,
            rfo_reason: (stores > 0 && !mix.non_temporal()).then_some(match rfo {
                Rfo::Yes => RfoReason::AsSlowAsParts,
                Rfo::No => RfoReason::AsFastAsNonTemporal,
                Rfo::Unknown => RfoReason::StringInstruction,
            }),
        });
        self.results.push(m);
    }

    pub fn curve(&mut self, c: &Curve<'_>) {
        let at = Coordinates {
            cpu: Some(c.cpu),
            cpus: Some(set(c.cpus)),
            cpu_node: Some(c.node),
            memory: Some(MemoryPlace::Node(c.node)),
            memory_dir: self.directory.as_ref().map(|d| d.file.path.clone()),
            mix: Some(c.mix),
            ..Default::default()
        };
        for &(delay, gbs, ns) in c.points {
            let at = Coordinates { delay_cycles: Some(delay), ..at.clone() };
            let mut latency = self.measure(Experiment::LoadedLatency, Metric::Latency, at.clone(), ns);
            latency.evidence.kernel = "chase + load-avx512".into();
            latency.evidence.window = Some(Bytes::kib(512));
            latency.evidence.stride = Some(Bytes(128));
            latency.evidence.coverage = Some(0.987);
            let mut bandwidth = latency.clone();
            bandwidth.metric = Metric::Bandwidth;
            bandwidth.unit = Unit::GigabytesPerSecond;
            bandwidth.estimate = self.measure(Experiment::LoadedLatency, Metric::Bandwidth, at, gbs).estimate;
            self.results.extend([latency, bandwidth]);
        }
        let point = |&(delay_cycles, bandwidth_gbs, latency_ns): &(u32, f64, f64)| CurvePoint { delay_cycles, bandwidth_gbs, latency_ns };
        self.curves.push(CurveSummary {
            at,
            unloaded_ns: c.points.first().map(|p| p.2),
            knee: c.points.iter().find(|p| Some(p.0) == c.knee).map(point),
            saturated_ns: c.points.last().map(|p| p.2),
            peak_gbs: c.points.iter().map(|p| p.1).max_by(f64::total_cmp),
            over_saturated: c.over_saturated,
            full_load_by_node: BTreeMap::new(),
            shares: vec![],
        });
    }

    fn transfer(&mut self, experiment: Experiment, reader: u32, holder: u32, home: u32, state: LineState, ns: f64) {
        let at = Coordinates {
            cpu: Some(reader),
            holder_cpu: Some(holder),
            cpu_node: self.cpus.iter().find(|c| c.id == reader).map(|c| c.node),
            memory: Some(MemoryPlace::Node(home)),
            state: Some(state),
            ..Default::default()
        };
        let mut m = self.measure(experiment, Metric::Latency, at, ns);
        m.evidence.threads = 2;
        m.evidence.kernel = if state == LineState::Hit { "load-then-chase" } else { "store-then-chase" }.into();
        m.evidence.buffer = Bytes::mib(64);
        m.evidence.window = Some(Bytes::kib(512));
        m.evidence.stride = Some(Bytes(128));
        self.results.push(m);
    }

    pub fn handoff(&mut self, reader: u32, holder: u32, home: u32, state: LineState, ns: f64) {
        self.transfer(Experiment::CacheToCache, reader, holder, home, state, ns);
    }

    pub fn pair(&mut self, reader: u32, holder: u32, state: LineState, ns: f64) {
        self.transfer(Experiment::CacheToCacheMatrix, reader, holder, 0, state, ns);
    }

    /// A region of 1 GiB; `physical`: the number of the GiB where it is.
    pub fn region(&mut self, number: u32, node: u32, cpus: &str, gbs: f64, physical: Option<u64>) {
        let cpus = set(cpus);
        let threads = cpus.len() as u32;
        let at = Coordinates {
            cpu_node: Some(node),
            memory: Some(MemoryPlace::Node(node)),
            cpus: Some(cpus),
            mix: Some(Mix::AllReads),
            region: Some(number),
            ..Default::default()
        };
        let mut m = self.measure(Experiment::MemoryScan, Metric::Bandwidth, at, gbs);
        m.estimate.n = 10;
        m.evidence.threads = threads;
        m.evidence.kernel = "load-avx512".into();
        m.evidence.buffer = Bytes::gib(1);
        m.evidence.allocations = 1;
        m.evidence.coverage = Some(0.988);
        m.evidence.traffic =
            Some(TrafficRates { app_read_gbs: gbs, app_write_gbs: 0.0, bus_estimate_gbs: Some(gbs), rfo: Rfo::No, rfo_reason: None });
        m.evidence.physical = Some(match physical {
            Some(gib) => {
                let low = gib << 30;
                PhysicalRange { first: Some(low), low: Some(low), high: Some(low + (1 << 30)), contiguous: Some(true), reason: None }
            }
            None => PhysicalRange {
                reason: Some("the kernel shows page frames to processes with CAP_SYS_ADMIN only".into()),
                ..PhysicalRange::default()
            },
        });
        m.evidence.integrity = Some(Integrity {
            patterns: 4,
            patterns_planned: 4,
            tested: vec![TestPattern::Random, TestPattern::Address],
            compared: Bytes::gib(4),
            seconds: 0.42,
            held_s: Some(1.5),
            watched: Some(0.982),
            past_caches: Some(true),
            ..Integrity::default()
        });
        self.results.push(m);
    }

    /// The plan that these results would come from.
    fn plan(&self) -> Plan {
        let mut steps: Vec<Step> = Vec::new();
        for m in &self.results {
            let at = Coordinates { order: None, delay_cycles: None, region: None, ..m.at.clone() };
            let title = match (m.method(), m.experiment) {
                (Method::IdleLatency, _) => "Idle latency",
                (Method::Bandwidth, Experiment::Bandwidth) => "Peak bandwidth by mix",
                (Method::Bandwidth, Experiment::BandwidthRamp) => "Bandwidth by number of CPUs",
                (Method::Bandwidth, _) => "Bandwidth by node",
                (Method::LoadedLatency, _) => "Latency under load",
                (Method::CacheToCache, _) => "Cache-to-cache transfers",
                (Method::MemoryScan, _) => "Memory scan",
                (Method::PersistLatency, _) => "Persist latency",
            };
            let i = steps.iter().position(|s| s.experiment == m.experiment).unwrap_or_else(|| {
                let title = self.directory.as_ref().map_or(title.to_owned(), |d| format!("{title}, files in {}", d.file.path));
                steps.push(Step { title, experiment: m.experiment, cells: vec![], estimated_s: 0.0 });
                steps.len() - 1
            });
            let step = &mut steps[i];
            if step.cells.last().is_none_or(|c| c.at != at) {
                step.estimated_s += 1.5;
                step.cells.push(Cell::new(at, self.work(m)));
            }
        }
        let estimated_s = steps.iter().map(|s| s.estimated_s).sum();
        let packages: std::collections::BTreeSet<u32> = self.cpus.iter().map(|c| c.package).collect();
        let first = |p: &u32| self.cpus.iter().find(|c| c.package == *p).map(|c| c.id);
        let keep_awake = if packages.len() > 1 { packages.iter().filter_map(first).collect() } else { IdSet::new() };
        let stop = StopRule { relative_half_width: 0.01, budget_s: 1.0, fixed_time: false };
        let directories = self.directory.iter().cloned().collect();
        Plan {
            steps,
            stop,
            seed: 1,
            keep_awake,
            keep_awake_named: false,
            compared_cores: IdSet::new(),
            directories,
            tiers: vec![],
            estimated_s,
            max_s: estimated_s * 1.1,
            within_s: None,
            coarsened: Vec::new(),
            contents: vec![],
            start_signal: None,
            peak_gbs: None,
            counters: false,
            stamp: None,
            notes: vec![],
        }
    }

    fn work(&self, m: &Measurement) -> Work {
        let buffer = |bytes, node| BufferPlan {
            touch: self.nodes[node as usize].cpus.clone(),
            derived: true,
            directory: self.directory.as_ref().map(|d| d.file.path.clone()),
            ..BufferPlan::plain(bytes, node, PageRequest::Auto)
        };
        let home = m.at.memory_node().unwrap_or(0);
        let probe = |cpu| Probe { cpu, buffer: buffer(Bytes::mib(512), home), stride: Bytes(128), window: Bytes::kib(512) };
        let loaders = || -> Vec<Loader> {
            let node_of = |id| self.cpus.iter().find(|c| c.id == id).map_or(0, |c| c.node);
            let cpus = m.at.cpus.clone().unwrap_or_default();
            cpus.iter()
                .map(|cpu| Loader { cpu, buffer: buffer(Bytes::mib(256), m.at.memory_node().unwrap_or(node_of(cpu))), own: None })
                .collect()
        };
        let kernel = m.evidence.kernel.trim_start_matches("chase + ").to_owned();
        let traffic = || Traffic { mix: m.at.mix.unwrap_or(Mix::AllReads), kernels: vec![kernel.clone()], ..Default::default() };
        match m.method() {
            Method::IdleLatency => Work::Latency(IdleChase {
                probe: probe(m.at.cpu.unwrap_or(0)),
                allocations: 6,
                orders: vec![],
                hops: None,
                histogram: None,
            }),
            Method::Bandwidth | Method::PersistLatency => Work::Bandwidth(Loading { loaders: loaders(), traffic: traffic(), delay: 0 }),
            Method::LoadedLatency => Work::Curve(LoadCurve {
                probe: probe(m.at.cpu.unwrap_or(0)),
                loaders: loaders(),
                traffic: traffic(),
                delays: Delays::Adaptive { points: 12 },
                at_percent: vec![],
                order: ChaseOrder::WindowLocal,
                hops: None,
                histogram: None,
            }),
            Method::CacheToCache => Work::Handoff(Handoff {
                holder: m.at.holder_cpu.unwrap_or(0),
                reader: m.at.cpu.unwrap_or(0),
                state: m.at.state.unwrap_or(LineState::Hit),
                buffer: buffer(Bytes::mib(64), home),
                window: Bytes::kib(512),
                stride: Bytes(128),
                order: ChaseOrder::WindowLocal,
                chase_window: None,
                hops: None,
                sharer: None,
                holder_pushes: Bytes(0),
                reader_pushes: Bytes(0),
            }),
            Method::MemoryScan => Work::Scan(Scan {
                cpus: m.at.cpus.clone().unwrap_or_default(),
                region: buffer(Bytes::gib(1), home),
                regions: self.results.iter().filter(|r| r.experiment == m.experiment && r.at.memory_node() == m.at.memory_node()).count()
                    as u32,
                margin: Bytes::gib(2),
                passes: 10,
                traffic: traffic(),
                bucket_gbs: 5.0,
                integrity: true,
                patterns: vec![TestPattern::Random, TestPattern::Address],
                hold_s: 0.0,
            }),
        }
    }

    pub fn report(mut self) -> Report {
        let plan = Some(self.plan());
        self.cpus.sort_by_key(|c| c.id);
        let total: u64 = self.nodes.iter().map(|n| n.stated_bytes()).sum();
        let topology = Topology {
            offline: IdSet::new(),
            caches: self.caches,
            smt_active: Some(self.cpus.iter().any(|c| c.siblings.len() > 1)),
            cpus: self.cpus,
            nodes: self.nodes,
            cxl_memory: vec![],
            persistent: vec![],
        };
        let allowed = Allowed {
            cpus: topology.online(),
            nodes: topology.nodes.iter().map(|n| n.id).collect(),
            memory: Some(Bytes(total / 10 * 8)),
            node_limited_by: Default::default(),
            memory_limited_by: "available memory".into(),
            node_memory: topology.nodes.iter().map(|n| (n.id, Bytes(n.stated_bytes() / 10 * 8))).collect(),
            isolated: IdSet::new(),
            cpu_quota: None,
            ..Allowed::default()
        };
        let first = topology.cpus.first().map_or(0, |c| c.id);
        let tool = Tool { name: "memgauge".into(), version: "0.0.0-sample".into(), commit: None };
        Report {
            argv: vec!["memgauge".into()],
            started: Moment { utc: "2026-03-14T09:26:53Z".into(), monotonic_ns: 1_000_000_000 },
            ended: Moment { utc: "2026-03-14T09:27:42Z".into(), monotonic_ns: 50_000_000_000 },
            environment: Environment {
                clock: Some(ClockReport {
                    source: "tsc".into(),
                    hz: 2.6e9,
                    error_ppm: 0.42,
                    resolution_ns: 0.77,
                    overhead_ns: 9.6,
                    reason: None,
                }),
                core_ghz: BTreeMap::from([(first, self.ghz)]),
                numa_balancing: Some(false),
                thp: Some("madvise".into()),
                thp_defrag: Some("madvise".into()),
                governors: vec!["schedutil".into()],
                turbo: Some(true),
                ..Environment::default()
            },
            plan,
            results: self.results,
            curves: self.curves,
            timing: Timing { setup_s: 7.8, measuring_s: 38.4, total_s: 48.6, setup: None },
            ..Report::of_machine(tool, Machine { identity: self.identity, topology, allowed })
        }
    }
}
