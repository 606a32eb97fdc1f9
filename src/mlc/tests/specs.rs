//! Modes and letters → specs.

use std::path::Path;
use std::time::Duration;

use memgauge_model::experiment::{ChaseOrder, Hops, LineState, PageRequest};
use memgauge_model::spec::*;
use memgauge_model::topology::{OperatingSystem, PagePool};
use memgauge_model::traffic::{Access, LineContent, LineUse, Mix, Width};
use memgauge_model::units::Bytes;
use memgauge_planner::plan;

use super::super::letters::{LETTERS, parse};
use super::super::sections::{BURST_LINES, DELAYS, SectionKind};
use super::super::text::prefetchers_on;
use super::*;

/// The spec of a mode without letters.
fn plain(mode: &str) -> Spec {
    let stride = Some(Bytes(128));
    let latency = |shape| {
        let chase = ChaseSpec { stride, ..ChaseSpec::default() };
        Task::Latency(LatencySpec { shape, chase, orders: vec![ChaseOrder::WindowLocal] })
    };
    let load = |mixes: &[Mix]| LoadSpec { mixes: mixes.to_vec(), width: WidthRequest::Is(Width::Sse2) };
    let bandwidth = |shape, mixes| {
        let traffic = TrafficSpec { load: load(mixes), ..TrafficSpec::default() };
        Task::Bandwidth(BandwidthSpec { shape, delays: Vec::new(), traffic })
    };
    let peak = [Mix::AllReads, Mix::R3W1, Mix::R2W1, Mix::R1W1, Mix::R2W1Nt];
    let task = match mode {
        "--latency_matrix" => latency(LatencyShape::Matrix),
        "--idle_latency" => latency(LatencyShape::One),
        "--bandwidth_matrix" => bandwidth(BandwidthShape::Matrix, &[Mix::AllReads]),
        "--peak_injection_bandwidth" | "--peak_bandwidth" => bandwidth(BandwidthShape::Peak, &peak),
        "--max_bandwidth" => bandwidth(BandwidthShape::Search, &peak),
        "--loaded_latency" => Task::Loaded(LoadedSpec {
            chase: ChaseSpec { stride, ..ChaseSpec::default() },
            order: Some(ChaseOrder::WindowLocal),
            curve: CurveSpec { delays: DELAYS.to_vec(), ..CurveSpec::default() },
            traffic: TrafficSpec { load: load(&[Mix::AllReads]), burst_lines: BURST_LINES.into(), ..TrafficSpec::default() },
        }),
        "--c2c_latency" => Task::c2c(TransferShape::NodeMatrix),
        other => panic!("{other}"),
    };
    Spec { time: Some(Duration::from_secs(2)), ..Spec::new(task) }
}

fn chase(s: &mut Spec) -> &mut ChaseSpec {
    s.task.chase_mut().unwrap()
}

fn curve(s: &mut Spec) -> &mut CurveSpec {
    &mut options!(&mut s.task, Loaded).curve
}

fn transfer(s: &mut Spec) -> &mut TransferSpec {
    options!(&mut s.task, C2c)
}

/// The traffic of a bandwidth, or of a curve.
fn load(s: &mut Spec) -> &mut TrafficSpec {
    match &mut s.task {
        Task::Bandwidth(bandwidth) => &mut bandwidth.traffic,
        task => &mut options!(task, Loaded).traffic,
    }
}

/// The curve's bandwidths only, at these delays.
fn bandwidth_only(s: &mut Spec, delays: &[u32]) {
    let traffic = load(s).clone();
    s.task = Task::Bandwidth(BandwidthSpec { shape: BandwidthShape::One, delays: delays.to_vec(), traffic });
}

/// The change that letters make to a mode's plain spec.
type Change = fn(&mut Spec);

fn sequential(s: &mut Spec) {
    chase(s).stride = Some(Bytes(64));
    match &mut s.task {
        Task::Latency(latency) => latency.orders = vec![ChaseOrder::Sequential],
        task => options!(task, Loaded).order = Some(ChaseOrder::Sequential),
    }
}

#[rustfmt::skip]
const TABLE: &[(&str, &str, Change)] = &[
    ("--latency_matrix", "", |_| {}),
    ("--latency_matrix", "-e", sequential),
    ("--latency_matrix", "-e0", |_| {}),
    ("--latency_matrix", "-e -r", |_| {}),
    ("--latency_matrix", "-r", |_| {}),
    ("--latency_matrix", "-e -l256", |s| { sequential(s); chase(s).stride = Some(Bytes(256)); }),
    ("--latency_matrix", "-b2g", |s| chase(s).buffer = Some(Bytes::gib(2))),
    ("--latency_matrix", "-b512K -b1000M", |s| chase(s).buffer = Some(Bytes::mib(1000))),
    ("--latency_matrix", "-t5", |s| s.time = Some(Duration::from_secs(5))),
    ("--latency_matrix", "-t0.05", |s| s.time = Some(Duration::from_millis(50))),
    ("--latency_matrix", "-x7", |s| { s.time = None; chase(s).hops = Some(Hops::Count(7_000_000)); }),
    ("--latency_matrix", "-x0", |s| { s.time = None; chase(s).hops = Some(Hops::OnePass); }),
    ("--latency_matrix", "-D8192", |s| chase(s).window = Some(Bytes::mib(1))),
    ("--latency_matrix", "-D8192 -b512", |s| { chase(s).buffer = Some(Bytes::kib(512)); chase(s).window = Some(Bytes::kib(512)); }),
    ("--latency_matrix", "-L", |s| s.pages = PageRequest::Huge2M),
    ("--latency_matrix", "-L -h", |s| s.pages = PageRequest::Huge1G),
    ("--latency_matrix", "-X", |s| s.one_thread_per_core = true),
    ("--idle_latency", "", |_| {}),
    ("--idle_latency", "-c3", |s| s.cpus = ids("3")),
    ("--idle_latency", "-e -c3 -j1", |s| { sequential(s); s.cpus = ids("3"); s.nodes = ids("1"); }),
    ("--idle_latency", "-c3 -i17", |s| { s.cpus = ids("3"); chase(s).touch = Some(17); }),
    ("--idle_latency", "-j1 -i17", |s| s.nodes = ids("1")),
    ("--idle_latency", "-p0,16", |s| s.keep_awake = ids("0,16")),
    ("--idle_latency", "-J/mnt/p -j1", |s| s.memory_dir = Some(pmem(Path::new("/mnt/p")).unwrap())),
    ("--idle_latency", "-J/mnt/p -L", |s| s.memory_dir = Some(pmem(Path::new("/mnt/p")).unwrap())),
    ("--idle_latency", "-f5", |s| chase(s).histogram = Some(1)),
    ("--idle_latency", "-Z -X -k1-3 -W5", |_| {}),
    ("--bandwidth_matrix", "", |_| {}),
    ("--bandwidth_matrix", "-W3", |s| load(s).load.mixes = vec![Mix::R3W1]),
    ("--bandwidth_matrix", "-W3 -R", |_| {}),
    ("--bandwidth_matrix", "-W3 -b1m", |s| { load(s).load.mixes = vec![Mix::R3W1]; load(s).buffer = Some(Bytes::mib(2)); }),
    ("--bandwidth_matrix", "-W6 -b1m", |s| { load(s).load.mixes = vec![Mix::NtWrite]; load(s).buffer = Some(Bytes::mib(1)); }),
    ("--bandwidth_matrix", "-b100000", |s| load(s).buffer = Some(Bytes::kib(100_000))),
    ("--bandwidth_matrix", "-Y", |s| load(s).load.width = WidthRequest::Is(Width::Avx2)),
    ("--bandwidth_matrix", "-Y -Z", |s| load(s).load.width = WidthRequest::Is(Width::Avx512)),
    ("--bandwidth_matrix", "-l256 -W2", |s| { load(s).load.mixes = vec![Mix::R2W1]; load(s).access = Access::Strided; load(s).stride = Some(Bytes(256)); }),
    ("--bandwidth_matrix", "-l64", |_| {}),
    ("--bandwidth_matrix", "-U", |s| load(s).access = Access::Random),
    ("--bandwidth_matrix", "-U -W10", |s| { load(s).access = Access::Random; load(s).load.mixes = vec![Mix::R2W1NtX1]; }),
    ("--bandwidth_matrix", "-Mpattern", |s| load(s).contents = vec![LineContent([0x5a; 64])]),
    ("--bandwidth_matrix", "-X -h", |s| { s.one_thread_per_core = true; s.pages = PageRequest::Huge1G; }),
    ("--peak_injection_bandwidth", "", |_| {}),
    ("--peak_bandwidth", "-k1-3,8", |s| s.cpus = ids("1-3,8")),
    ("--peak_injection_bandwidth", "-k1 -mff", |s| s.cpus = ids("0-7")),
    ("--peak_injection_bandwidth", "-m0x08", |s| s.cpus = ids("3")),
    ("--peak_injection_bandwidth", "-m2", |s| s.cpus = ids("1")),
    ("--peak_injection_bandwidth", "-K1 -K0", |_| {}),
    ("--peak_injection_bandwidth", "-W6", |s| load(s).load.mixes.push(Mix::NtWrite)),
    ("--peak_injection_bandwidth", "-W4", |s| load(s).load.mixes.push(Mix::R3W2)),
    ("--peak_injection_bandwidth", "-W12", |s| load(s).load.mixes.push(Mix::R4W1)),
    ("--peak_injection_bandwidth", "-j1", |s| s.nodes = ids("1")),
    ("--max_bandwidth", "-j1", |s| s.nodes = ids("1")),
    ("--peak_injection_bandwidth", "-W3", |_| {}),
    ("--max_bandwidth", "", |_| {}),
    ("--max_bandwidth", "-u", |s| { load(s).load.mixes = vec![Mix::AllReads]; load(s).shared = true; }),
    ("--max_bandwidth", "-X -Z -t1", |s| { s.one_thread_per_core = true; load(s).load.width = WidthRequest::Is(Width::Avx512); s.time = Some(Duration::from_secs(1)); }),
    ("--loaded_latency", "", |_| {}),
    ("--loaded_latency", "-d0 -e", |s| { sequential(s); curve(s).delays = vec![0]; }),
    ("--loaded_latency", "-d0 -gdelays", |s| curve(s).delays = vec![0, 300]),
    ("--loaded_latency", "-gdelays -d7", |s| curve(s).delays = vec![7]),
    ("--loaded_latency", "-c4", |s| curve(s).cpu = Some(4)),
    ("--loaded_latency", "-k1-7", |s| { s.cpus = ids("1-7"); curve(s).cpu = Some(0); }),
    ("--loaded_latency", "-c2 -mf0", |s| { s.cpus = ids("4-7"); curve(s).cpu = Some(2); }),
    ("--loaded_latency", "-T -d0 -k0-63", |s| { bandwidth_only(s, &[0]); s.cpus = ids("0-63"); }),
    ("--loaded_latency", "-T -c3 -r", |s| { bandwidth_only(s, &DELAYS); }),
    ("--loaded_latency", "-j1", |s| { curve(s).node = Some(1); s.nodes = ids("1"); }),
    ("--loaded_latency", "-T -d0 -R -j1", |s| { bandwidth_only(s, &[0]); s.nodes = ids("1"); }),
    ("--loaded_latency", "-b100000 -W2", |s| { load(s).load.mixes = vec![Mix::R2W1]; chase(s).buffer = Some(Bytes::kib(100_000)); load(s).buffer = Some(Bytes::kib(200_000)); }),
    ("--loaded_latency", "-i16", |s| chase(s).touch = Some(16)),
    ("--loaded_latency", "-U -n1024 -W2", |s| { load(s).load.mixes = vec![Mix::R2W1]; load(s).access = Access::Random; load(s).window = Some(Bytes::kib(64)); }),
    ("--loaded_latency", "-n1024", |_| {}),
    ("--loaded_latency", "-l256", |s| { chase(s).stride = Some(Bytes(256)); load(s).access = Access::Strided; load(s).stride = Some(Bytes(256)); }),
    ("--loaded_latency", "-U -n1", |s| { load(s).access = Access::Random; load(s).window = Some(Bytes(36 * 64)); }),
    ("--loaded_latency", "-T -d0 -b12", |s| {
        bandwidth_only(s, &[0]);
        (load(s).buffer, load(s).line) = (Some(Bytes::kib(12)), LineUse::Part);
    }),
    ("--bandwidth_matrix", "-b1", |s| load(s).buffer = Some(Bytes::kib(1))),
    ("--loaded_latency", "-I", |s| load(s).line = LineUse::Checked),
    ("--loaded_latency", "-I -W5", |s| load(s).line = LineUse::Checked),
    ("--loaded_latency", "-I -U", |s| load(s).access = Access::Random),
    ("--loaded_latency", "-Q -Z -W5", |s| { load(s).load.mixes = vec![Mix::R1W1]; load(s).line = LineUse::WrittenBack; load(s).load.width = WidthRequest::Is(Width::Avx512); }),
    ("--loaded_latency", "-Q", |_| {}),
    ("--loaded_latency", "-P -W5", |s| load(s).load.mixes = vec![Mix::R1W1]),
    ("--loaded_latency", "-u -W5", |s| load(s).shared = true),
    ("--loaded_latency", "-sgo", |s| s.start_signal = Some("go".into())),
    ("--loaded_latency", "-B -v -f4", |s| chase(s).histogram = Some(1)),
    ("--loaded_latency", "-x3", |s| { s.time = None; chase(s).hops = Some(Hops::Count(3_000_000)); }),
    ("--loaded_latency", "-W4", |s| load(s).load.mixes = vec![Mix::R3W2]),
    ("--loaded_latency", "-W12", |s| load(s).load.mixes = vec![Mix::R4W1]),
    ("--loaded_latency", "-K1 -W5", |s| { load(s).load.mixes = vec![Mix::R1W1]; load(s).line = LineUse::Part; }),
    ("--loaded_latency", "-Mpattern -Y", |s| { load(s).contents = vec![LineContent([0x5a; 64])]; load(s).load.width = WidthRequest::Is(Width::Avx2); }),
    ("--c2c_latency", "", |_| {}),
    ("--c2c_latency", "-e", |_| {}),
    ("--c2c_latency", "-C500k -b10m", |s| { transfer(s).window = Some(Bytes::kib(500)); transfer(s).buffer = Some(Bytes::mib(10)); }),
    ("--c2c_latency", "-E100 -G200 -S5", |s| { transfer(s).holder_pushes = Bytes::kib(100); transfer(s).reader_pushes = Bytes::kib(200); transfer(s).sharer = Some(5); }),
    ("--c2c_latency", "-H", |s| transfer(s).states = vec![LineState::Hit]),
    ("--c2c_latency", "-r", |s| transfer(s).chase_window = Some(Bytes::kib(512))),
    ("--c2c_latency", "-r -D64", |s| transfer(s).chase_window = Some(Bytes::kib(8))),
    ("--c2c_latency", "-x5", |s| { s.time = None; transfer(s).hops = Some(Hops::Count(5_000_000)); }),
    ("--c2c_latency", "-x0 -C2000", |s| { s.time = None; transfer(s).hops = Some(Hops::OnePass); transfer(s).window = Some(Bytes::kib(2000)); }),
    ("--c2c_latency", "-c1 -w17 -i16", |s| {
        s.cpus = ids("1,17");
        let (reader, holder, touch) = (Some(1), Some(17), Some(16));
        s.task = Task::C2c(TransferSpec { reader, holder, touch, states: vec![LineState::Hitm], ..TransferSpec::default() });
    }),
    ("--c2c_latency", "-w0 -H", |s| {
        s.cpus = ids("0,1");
        s.task = Task::C2c(TransferSpec { reader: Some(1), holder: Some(0), states: vec![LineState::Hit], ..TransferSpec::default() });
    }),
];

#[test]
fn modes_and_letters_give_their_specs() {
    for (mode, letters, change) in TABLE {
        let mut expected = plain(mode);
        change(&mut expected);
        assert_eq!(spec(&format!("{mode} {letters}")), expected, "{mode} {letters}");
        assert_eq!(spec(&format!("{letters} {mode}")), expected, "{letters} {mode}");
    }
}

#[test]
fn every_letter_is_in_the_table_of_tests_or_has_no_part_in_a_spec() {
    // -a, -o and the scan's are tested below; -B and -v change the output.
    let elsewhere = "aoq";
    for row in &LETTERS {
        let named = |(_, letters, _): &&(&str, &str, Change)| letters.split(' ').any(|l| l[l.len().min(1)..].starts_with(row.letter));
        assert!(elsewhere.contains(row.letter) || TABLE.iter().any(|t| named(&t)), "-{}", row.letter);
    }
}

#[test]
fn every_ratio_has_its_mix() {
    let table = [
        (2, Mix::R2W1),
        (3, Mix::R3W1),
        (4, Mix::R3W2),
        (5, Mix::R1W1),
        (6, Mix::NtWrite),
        (7, Mix::R2W1NtX1),
        (8, Mix::R1W1Nt),
        (9, Mix::R3W1Nt),
        (10, Mix::R2W1Nt),
        (11, Mix::R3W1X2),
        (12, Mix::R4W1),
        (19, Mix::R9W1),
    ];
    for (code, mix) in table {
        for mode in ["--loaded_latency", "--bandwidth_matrix"] {
            assert_eq!(traffic(&spec(&format!("{mode} -W{code}"))).load.mixes, [mix], "-W{code}");
        }
        assert_eq!(traffic(&spec(&format!("--loaded_latency -U -Z -W{code}"))).load.mixes, [mix.with_one_read_stream()], "-U -W{code}");
    }
    for code in [0, 1, 13, 21, 23, 27, 100] {
        assert!(parse(&arguments(&format!("--loaded_latency -W{code}"))).is_err(), "-W{code}");
    }
}

#[test]
fn a_full_run_is_five_sections_in_order() {
    let kinds: Vec<SectionKind> = ask("-e").sections.iter().map(|s| s.kind).collect();
    assert_eq!(kinds, [SectionKind::LatencyMatrix, SectionKind::Peak, SectionKind::BandwidthMatrix, SectionKind::Loaded, SectionKind::C2c]);
    let all = ask("-e -r -X -v -t1");
    assert!(!all.prefetchers_on && all.notes.is_empty());
    for section in &all.sections {
        assert!(section.specs.iter().all(|s| s.time == Some(Duration::from_secs(1))));
    }
    assert_eq!(options!(&all.sections[0].specs[0].task, Latency).orders, [ChaseOrder::WindowLocal]);
    assert!(ask("").prefetchers_on);
    let lines = [OperatingSystem::Linux, OperatingSystem::Windows].map(prefetchers_on);
    assert!(lines[0].contains("modprobe msr") && !lines[1].contains("modprobe") && lines[1].contains("driver"), "{lines:?}");
    for lines in lines {
        assert!(lines.starts_with("*** Unable to modify prefetchers (") && lines.ends_with("for latency measurements\n"), "{lines}");
    }
}

#[test]
fn the_lines_about_prefetchers_are_for_chases_without_e() {
    for mode in ["--latency_matrix", "--idle_latency", "--loaded_latency"] {
        assert!(ask(mode).prefetchers_on && !ask(&format!("{mode} -e")).prefetchers_on, "{mode}");
    }
    for mode in ["--bandwidth_matrix", "--max_bandwidth", "--peak_bandwidth", "--c2c_latency", "--loaded_latency -T"] {
        assert!(!ask(mode).prefetchers_on, "{mode}");
    }
}

/// The planner accepts the specs, except those that this machine cannot satisfy.
#[test]
fn the_planner_takes_them() {
    let (mut machine, kernels) = (two_nodes(), kernels(&X86));
    // Large pools: if a pool has too few pages, it is the program that uses other pages and says so.
    for node in &mut machine.topology.nodes {
        node.pools = [Bytes::mib(2), Bytes::gib(1)].map(|page| PagePool { page, total: 1 << 20, free: 1 << 20 }).to_vec();
    }
    for (mode, letters, _) in TABLE.iter().filter(|(mode, letters, _)| *mode != "--c2c_latency" && !letters.contains("-J")) {
        let line = format!("{mode} {letters}");
        for spec in ask(&line).sections.iter().flat_map(|s| &s.specs) {
            if let Err(error) = plan(spec, &machine, &kernels) {
                panic!("{line}: {error}");
            }
        }
    }
}
