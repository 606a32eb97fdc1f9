//! Which cause a health check names first, on machines with one fault each.
//!
//! The model has the effect of a fault on numbers. The report is given what firmware and the kernel would say of it, and changes that
//! have no effect. No SMBIOS table recorded from a server was at hand: the names of slots are those of six vendors' tables.

use memgauge_analysis::conclusions::findings;
use memgauge_model::installed::{InstalledMemory, MemoryDevice};
use memgauge_model::note::Codes;
use memgauge_model::result::{CauseCode, Host, MemoryErrors, Neighbours, PageKind, QualityLevel};

use super::*;

/// The kinds of faults, each by the cause that should be named first.
const KINDS: [CauseCode; 19] = [
    CauseCode::EmptyChannel,
    CauseCode::ModulesClockedDown,
    CauseCode::UnequalModules,
    CauseCode::NodesPerPackage,
    CauseCode::MemoryOfOneNode,
    CauseCode::LinkBetweenPackages,
    CauseCode::PathOfOneCache,
    CauseCode::PrefetchersOff,
    CauseCode::FrequencyLimited,
    CauseCode::ThermalThrottling,
    CauseCode::SlowCores,
    CauseCode::SmallPages,
    CauseCode::CpuLimits,
    CauseCode::NumaBalancing,
    CauseCode::OtherPrograms,
    CauseCode::Virtualisation,
    CauseCode::MemoryErrors,
    CauseCode::KernelOrFirmwareChanged,
    CauseCode::MemoryEncryption,
];

/// How a vendor names the slot of a channel's only module: bank and locator.
fn slot(style: u32, package: u32, channel: u32) -> (Option<String>, Option<String>) {
    let letter = char::from(b'A' + channel as u8);
    match style {
        0 => (Some(format!("P{package} CHANNEL {letter}")), Some("DIMM 0".to_owned())),
        1 => (None, Some(format!("CPU{}_DIMM_{letter}1", package + 1))),
        2 => (None, Some(format!("DIMM_P{package}_{letter}0"))),
        3 => (None, Some(format!("P{}-DIMM{letter}1", package + 1))),
        4 => (Some(format!("_Node{package}_Channel{channel}_Dimm0")), None),
        // Numbers of slots do not tell channels.
        _ => (None, Some(format!("PROC {} DIMM {}", package + 1, channel + 1))),
    }
}

/// A machine with its modules, and a model of it.
struct Server {
    shape: Shape,
    machine: Machine,
    channels: u32,
    /// The quota of CPU time that it always had, which costs it nothing.
    quota: Option<f64>,
    seed: u64,
}

impl Server {
    fn new(shape: Shape, seed: u64, random: &mut Random) -> Self {
        let mut machine = shape.machine();
        let channels = random.pick(&[4, 6, 8, 12]);
        let style = random.below(6);
        let rated = 1.0 + 0.17 * f64::from(random.below(2));
        // Reads reach 87 % of what the modules can transfer.
        let gbs: f64 = Model::new(&machine, None, seed).nodes.values().map(|node| node.0).sum();
        let mts = (gbs / 0.87 * 1e3 / 8.0 / f64::from(channels * shape.packages)).round() as u32;
        let device = |package: u32, channel: u32| {
            let (bank, locator) = slot(style, package, channel);
            MemoryDevice {
                bank,
                locator,
                size: Some(Bytes::gib(32)),
                kind: Some("DDR5".into()),
                data_bits: Some(64),
                configured_mts: Some(mts),
                rated_mts: Some((f64::from(mts) * rated) as u32),
                ranks: Some(2),
            }
        };
        let devices: Vec<MemoryDevice> =
            (0..shape.packages).flat_map(|p| (0..channels).map(move |c| (p, c))).map(|(p, c)| device(p, c)).collect();
        machine.identity.installed = InstalledMemory { slots: 2 * devices.len() as u32, devices, reason: None };
        machine.identity.kernel = Some("6.12.0".into());
        machine.identity.model.insert("microcode".into(), "0x1000".into());
        Self { shape, machine, channels, quota: seed.is_multiple_of(11).then_some(1.5), seed }
    }

    /// Changes that have no effect: machines are updated, and users cannot read firmware's list.
    fn update(&mut self, random: &mut Random) {
        if random.below(4) == 0 {
            self.machine.identity.kernel = Some("6.12.9".into());
        }
        if random.below(8) == 0 {
            self.machine.identity.model.insert("microcode".into(), "0x1001".into());
        }
    }

    /// The package of a node.
    fn package(&self, node: u32) -> u32 {
        node / self.shape.nodes
    }
}

/// Adds to the report of a check what firmware and the kernel say of the fault.
type Edit = Box<dyn Fn(&mut Report)>;

/// The report of a check, as the system would have described the machine and the time of the check.
fn check(server: &Server, model: &Model, references: Baselines<'_>, edit: &Edit) -> Report {
    let mut report = run_beside(&Spec::new(Task::quick()), &server.machine, model, references);
    report.run.host = Some(Host { hostname: None, machine_id_hash: Some(format!("{:064x}", server.seed)) });
    report.environment.thp = Some("always".into());
    report.environment.governors = vec![if server.seed.is_multiple_of(5) { "powersave" } else { "performance" }.into()];
    report.machine.allowed.cpu_quota = report.machine.allowed.cpu_quota.or(server.quota);
    report.environment.numa_balancing = Some(server.seed.is_multiple_of(3));
    report.environment.memory_errors = Some(MemoryErrors::default());
    report.environment.thermal_throttles = server.seed.is_multiple_of(2).then_some(0);
    if server.seed.is_multiple_of(4) {
        disturb(&mut report, 0.1, None, |noise| noise.others = Some(0.06));
    }
    edit(&mut report);
    report.health = Some(findings::judge(&report, references));
    report
}

/// Marks some of the numbers as disturbed.
fn disturb(report: &mut Report, share: f64, reason: Option<QualityReason>, noise: impl Fn(&mut memgauge_model::result::Noise)) {
    let most = (share * report.results.len() as f64).ceil() as usize;
    for m in report.results.iter_mut().take(most) {
        noise(&mut m.evidence.noise);
        if let Some(reason) = reason {
            m.quality.reasons.push(reason);
            m.quality.level = m.quality.level.max(QualityLevel::Degraded);
        }
    }
}

/// A machine with a fault, a model of it, and what the system says of it.
struct Faulty {
    server: Server,
    model: Model,
    edit: Edit,
    /// Whether another part of the machine is like the faulty one and healthy.
    alone: bool,
}

/// The machine with a fault of this kind, a model of it, and what the system says of it; `None` where the machine cannot have it.
fn with_fault(kind: CauseCode, healthy: &Server, random: &mut Random) -> Option<Faulty> {
    use CauseCode as C;
    let shape = healthy.shape;
    let nodes = shape.packages * shape.nodes;
    let mut server = Server { machine: healthy.machine.clone(), ..*healthy };
    server.update(random);
    let node = random.below(nodes);
    let less = random.between(0.10, 0.40);
    let share = random.between(0.3, 1.0);
    let mut fault = None;
    // Nodes that have these channels together, and the share of their bandwidth that is lost.
    let (mut hit, mut hit_less) = (IdSet::new(), less);
    let (mut bandwidth, mut latency, mut clock) = (1.0, 1.0, 1.0);
    let mut edit: Edit = Box::new(|_| {});
    let devices = &mut server.machine.identity.installed.devices;
    match kind {
        C::EmptyChannel => {
            let channel = random.below(server.channels);
            let index = (healthy.package(node) * server.channels + channel) as usize;
            devices.remove(index);
            hit = server.machine.topology.channel_groups().into_iter().find(|group| group.contains(node))?;
            let share = f64::from(shape.packages) * hit.len() as f64 / f64::from(nodes);
            let of_group = f64::from(server.channels) * share;
            hit_less = (1.0 / of_group).min(0.5);
            for node in server.machine.topology.nodes.iter_mut().filter(|n| hit.contains(n.id)) {
                node.memory = node.memory.map(|memory| Bytes((memory.0 as f64 * (1.0 - hit_less)) as u64));
            }
        }
        C::ModulesClockedDown => {
            let ratio = random.between(0.70, 0.92);
            devices.iter_mut().for_each(|d| d.configured_mts = d.configured_mts.map(|mts| (f64::from(mts) * ratio) as u32));
            (bandwidth, latency) = (ratio, 1.0 + 0.25 * (1.0 - ratio));
        }
        C::UnequalModules => {
            let index = (healthy.package(node) * server.channels + random.below(server.channels)) as usize;
            match random.below(3) {
                0 => devices[index].ranks = Some(1),
                1 => devices[index].size = Some(Bytes::gib(16)),
                _ => devices[index].configured_mts = devices[index].configured_mts.map(|mts| mts * 9 / 10),
            }
            hit = server.machine.topology.channel_groups().into_iter().find(|group| group.contains(node))?;
        }
        C::NodesPerPackage => {
            let wrong = Fault::WrongNodes;
            if shape.nodes == 1 && shape.domains == 1 {
                return None;
            }
            let other = wrong.shape(&shape);
            let machine = other.machine();
            (server.machine.topology, server.machine.allowed) = (machine.topology, machine.allowed);
            server.shape = other;
        }
        C::MemoryOfOneNode => {
            fault = Some(Fault::Node { node, less });
        }
        C::LinkBetweenPackages => fault = Some(Fault::random(2, &shape, random)?),
        C::PathOfOneCache => fault = Some(Fault::random(3, &shape, random)?),
        C::SlowCores => fault = Some(Fault::random(4, &shape, random)?),
        C::PrefetchersOff => fault = Some(Fault::random(5, &shape, random)?),
        C::FrequencyLimited => {
            clock = 1.0 - random.between(0.25, 0.55);
            if random.below(2) == 0 {
                edit = Box::new(|report| report.environment.governors = vec!["powersave".into()]);
            }
        }
        C::ThermalThrottling => {
            clock = 1.0 - random.between(0.25, 0.55);
            let counted = random.below(5) < 3;
            edit = Box::new(move |report| {
                report.environment.thermal_throttles = counted.then_some(17);
                disturb(report, share, Some(QualityReason::FrequencyDrift), |noise| {
                    (noise.ghz_before, noise.ghz_after) = (Some(3.0), Some(2.6));
                });
            });
        }
        C::SmallPages => {
            (bandwidth, latency) = (random.between(0.94, 0.99), 1.02);
            let never = random.below(3) > 0;
            edit = Box::new(move |report| {
                if never {
                    report.environment.thp = Some("never".into());
                }
                report.results.iter_mut().chain(&mut report.repeats).for_each(|m| m.evidence.pages.obtained = Some(PageKind::Base));
            });
        }
        C::CpuLimits if random.below(2) == 0 => {
            (bandwidth, latency) = (1.0 - less - 0.1, 1.0);
            let cpus = server.machine.topology.cpus.len() as f64;
            server.machine.allowed.cpu_quota = Some((cpus * (1.0 - less - 0.1)).floor().max(1.0));
        }
        C::CpuLimits => {
            let all = &server.machine.allowed.cpus;
            let cores = server.machine.topology.one_per_core(all);
            let half: IdSet = cores.iter().take(cores.len() / 2).collect();
            server.machine.allowed.cpus = half;
            bandwidth = 0.8;
        }
        C::NumaBalancing => {
            (bandwidth, latency) = (random.between(0.80, 0.92), random.between(1.06, 1.15));
            edit = Box::new(move |report| {
                report.environment.numa_balancing = Some(true);
                disturb(report, share, Some(QualityReason::PagesMigrated), |noise| noise.pages_migrated = Some(900));
            });
        }
        C::OtherPrograms => {
            (bandwidth, latency) = (1.0 - less, 1.0 + less / 2.0);
            edit = Box::new(move |report| {
                let beside = Neighbours { memory: Some(0.3), ..Neighbours::default() };
                disturb(report, share, Some(QualityReason::BusyNeighbours), |noise| noise.neighbours = Some(beside));
            });
        }
        C::Virtualisation => {
            (bandwidth, latency) = (1.0 - less, 1.0 + less / 2.0);
            server.machine.identity.hypervisor = Some("KVM".into());
            edit = Box::new(move |report| disturb(report, share, Some(QualityReason::Steal), |noise| noise.steal = Some(0.03)));
        }
        C::MemoryErrors => {
            fault = Some(Fault::Node { node, less });
            edit = Box::new(|report| report.environment.memory_errors = Some(MemoryErrors { corrected: 2000, ..MemoryErrors::default() }));
        }
        C::KernelOrFirmwareChanged => {
            (bandwidth, latency) = (random.between(0.91, 0.94), random.between(1.03, 1.06));
            server.machine.identity.kernel = Some("6.18.0".into());
        }
        C::MemoryEncryption => {
            (bandwidth, latency) = (random.between(0.93, 0.98), random.between(1.06, 1.12));
            server.machine.identity.memory_encryption = Some("AMD TSME".into());
        }
    }
    let mut model = Model::new(&server.machine, fault, server.seed).again(server.seed * 10 + 3);
    model.nodes.iter_mut().filter(|(id, _)| hit.contains(**id)).for_each(|(_, node)| node.0 *= 1.0 - hit_less);
    model.slow_memory(bandwidth, latency);
    model.clock_down(clock);
    Some(Faulty { server, model, edit, alone: fault.is_none_or(|fault| shows_alone(&fault, &shape)) && hit.len() < nodes as usize })
}

/// Whether only firmware's list of modules tells the cause.
fn is_of_modules(kind: CauseCode) -> bool {
    matches!(kind, CauseCode::EmptyChannel | CauseCode::ModulesClockedDown | CauseCode::UnequalModules)
}

/// Whether a virtual machine shows it as a physical one does.
fn shows_in_guests(kind: CauseCode) -> bool {
    let metal = [CauseCode::NodesPerPackage, CauseCode::FrequencyLimited, CauseCode::ThermalThrottling, CauseCode::SlowCores];
    !is_of_modules(kind) && !metal.contains(&kind)
}

/// The kinds that a check can see without an earlier result: a part of the machine differs from the others, or the system says what is wrong.
const SEEN_ALONE: [CauseCode; 8] = [
    CauseCode::EmptyChannel,
    CauseCode::UnequalModules,
    CauseCode::MemoryOfOneNode,
    CauseCode::LinkBetweenPackages,
    CauseCode::PathOfOneCache,
    CauseCode::PrefetchersOff,
    CauseCode::SlowCores,
    CauseCode::MemoryErrors,
];

/// How often the true cause was named, and healthy machines accused.
#[derive(Default, Clone, Copy)]
struct Named {
    faults: u32,
    first: u32,
    among_three: u32,
    healthy: u32,
    /// Healthy machines that were accused of anything.
    accused: u32,
}

/// Checks this many machines with a fault of this kind, and healthy ones for a quarter of them: against an earlier result, or `alone`.
fn named(kind: CauseCode, alone: bool, machines: u64, seed: u64) -> Named {
    let mut named = Named::default();
    let mut number = 0;
    while u64::from(named.faults) < machines {
        number += 1;
        let seed = seed + 100_000 * kind as u64 + number;
        let mut random = Random::new(seed);
        let shape = Shape::random(&mut random);
        let mut healthy = Server::new(shape, seed, &mut random);
        if kind == CauseCode::Virtualisation || (shows_in_guests(kind) && random.below(4) == 0) {
            healthy.machine.identity.hypervisor = Some("KVM".into());
        }
        if !is_of_modules(kind) && random.below(4) == 0 {
            healthy.machine.identity.installed = InstalledMemory::unknown("only root may read it");
        }
        if kind == CauseCode::CpuLimits {
            healthy.quota = None;
        }
        let nothing: Edit = Box::new(|_| {});
        let model = |run: u64| Model::new(&healthy.machine, None, seed).again(seed * 10 + run);
        let Some(faulty) = with_fault(kind, &healthy, &mut random).filter(|faulty| faulty.alone || !alone) else { continue };
        let before = check(&healthy, &model(1), Baselines::default(), &nothing);
        let references = Baselines { baseline: Some(&before).filter(|_| !alone), ..Baselines::default() };
        let report = check(&faulty.server, &faulty.model, references, &faulty.edit);
        let health = report.health.as_ref().unwrap();
        let place = health.causes.iter().position(|cause| cause.code == kind);
        named.faults += 1;
        named.first += u32::from(place == Some(0));
        named.among_three += u32::from(place.is_some_and(|place| place < 3));
        if place != Some(0) {
            let causes: Vec<_> = health.causes.iter().map(|c| (c.code.word(), c.points)).collect();
            let found: Vec<_> = health.findings.iter().map(|f| f.code.word()).collect();
            println!("seed {seed}: {} of {shape:?} is not first: {causes:?}; findings {found:?}", kind.word());
        }
        if number <= machines.div_ceil(4) {
            let mut later = Server { machine: healthy.machine.clone(), ..healthy };
            later.update(&mut random);
            let report = check(&later, &model(2), references, &nothing);
            named.healthy += 1;
            let causes = &report.health.as_ref().unwrap().causes;
            named.accused += u32::from(!causes.is_empty());
            if !causes.is_empty() {
                println!("seed {seed}: a healthy {shape:?} is accused: {:?}", report.health);
            }
        }
    }
    named
}

/// The same for these kinds.
fn rates(kinds: &[CauseCode], alone: bool, machines: u64, seed: u64) -> Vec<(CauseCode, Named)> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(&kind) = kinds.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            found.push((kind, named(kind, alone, machines, seed)));
        }
        found
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut rates: Vec<(CauseCode, Named)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    rates.sort_by_key(|(kind, _)| KINDS.iter().position(|k| k == kind));
    println!("| cause | machines | first | among the first three |\n| --- | --- | --- | --- |");
    for (kind, named) in &rates {
        println!("| `{}` | {} | {} | {} |", kind.word(), named.faults, named.first, named.among_three);
    }
    let (healthy, accused) = healthy(&rates);
    println!("{healthy} healthy machines, {accused} of them accused");
    rates
}

/// How many healthy machines were checked, and how many of them were accused of anything.
fn healthy(rates: &[(CauseCode, Named)]) -> (u32, u32) {
    rates.iter().fold((0, 0), |sum, (_, of)| (sum.0 + of.healthy, sum.1 + of.accused))
}

/// The true cause is named first for at least 90 % of each kind's machines, and among the first three for 99 %; at most 1 % of healthy machines are
/// accused of anything.
fn assert_named(rates: &[(CauseCode, Named)]) {
    for (kind, named) in rates {
        let share = |count: u32| f64::from(count) / f64::from(named.faults);
        assert!(share(named.first) >= 0.90, "{} first", kind.word());
        assert!(share(named.among_three) >= 0.99, "{} among three", kind.word());
    }
    let (healthy, accused) = healthy(rates);
    assert!(f64::from(accused) <= 0.01 * f64::from(healthy), "{accused} of {healthy} accused");
}

#[test]
fn the_cause_of_a_fault_is_named() {
    for (kinds, alone) in [(&KINDS[..], false), (&SEEN_ALONE[..], true)] {
        let rates = rates(kinds, alone, 2, 1);
        let (faults, first) = rates.iter().fold((0, 0), |sum, (_, of)| (sum.0 + of.faults, sum.1 + of.first));
        assert!(f64::from(first) >= 0.9 * f64::from(faults), "{first} of {faults}");
        assert_eq!(healthy(&rates).1, 0);
    }
}

#[test]
#[ignore = "a thousand machines of each kind take half an hour on two CPUs: cargo test --lib simulated_tests::causes -- --ignored --nocapture"]
fn the_causes_of_a_thousand_faults_of_each_kind_are_named() {
    assert_named(&rates(&KINDS, false, 1000, 50_000_000));
}

#[test]
#[ignore = "a thousand machines of each kind take a quarter of an hour: cargo test --lib simulated_tests::causes -- --ignored --nocapture"]
fn the_causes_of_a_thousand_faults_that_show_alone_are_named() {
    assert_named(&rates(&SEEN_ALONE, true, 1000, 70_000_000));
}

/// The page of a check that names causes, at 80 columns.
fn page(kind: CauseCode, shape: Shape, seed: u64) -> String {
    let mut random = Random::new(seed);
    let healthy = Server::new(shape, seed, &mut random);
    let nothing: Edit = Box::new(|_| {});
    let faulty = with_fault(kind, &healthy, &mut random).unwrap();
    let model = Model::new(&healthy.machine, None, seed).again(seed * 10 + 1);
    let mut before = check(&healthy, &model, Baselines::default(), &nothing);
    before.started.utc = "2026-11-12T03:00:00.000Z".into();
    let references = Baselines { baseline: Some(&before), baseline_file: Some("before.json"), ..Baselines::default() };
    let report = check(&faulty.server, &faulty.model, references, &faulty.edit);
    let text = report.render(Format::TEXT, &Appearance { width: 80, colour: false, verbose: false, ..Appearance::default() }).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_page_names_causes_with_their_evidence() {
    let page = page(CauseCode::ModulesClockedDown, TWO_NODES, 4);
    let lines: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("Likely causes")).collect();
    assert!(lines[1].starts_with("  1. modules-clocked-down: memory modules run at "), "{page}");
    assert!(lines[2].starts_with("     + firmware states ") && lines.iter().any(|line| line.starts_with("     → ")), "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
#[ignore = "prints the pages that docs/method/causes.md shows: cargo test --lib pages_of_five -- --ignored --nocapture"]
fn pages_of_five_faults() {
    let eight = Shape { packages: 2, nodes: 4, domains: 2, cores: 4, threads: 2, cache: Bytes::mib(32) };
    for (kind, shape, seed) in [
        (CauseCode::EmptyChannel, TWO_NODES, 2),
        (CauseCode::NodesPerPackage, eight, 3),
        (CauseCode::ThermalThrottling, TWO_NODES, 5),
        (CauseCode::SmallPages, TWO_NODES, 6),
        (CauseCode::MemoryOfOneNode, eight, 7),
    ] {
        println!("=== {}\n{}", kind.word(), page(kind, shape, seed));
    }
}
