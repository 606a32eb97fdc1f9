//! Every mode and every letter, alone and together, parsed to the specs that they should give.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

use memgauge_core::directory::MemoryDir;
use memgauge_core::experiment::{ChaseOrder, Hops, LineState, PageRequest};
use memgauge_core::plan::{KernelRow, Work};
use memgauge_core::planner::plan;
use memgauge_core::result::Report;
use memgauge_core::spec::*;
use memgauge_core::topology::{Machine, PagePool};
use memgauge_core::traffic::{Access, Form, LineContent, LineUse, Mix, Width};
use memgauge_core::units::{Bytes, IdSet};
use proptest::prelude::*;

use super::letters::{Invocation, LETTERS, Letters, MODES, Mode, parse, usage};
use super::sections::{DELAYS, Inputs, SectionKind, Translation, translate};
use crate::exit::UsageError;

/// Two packages of 16 cores with two threads each: CPUs 0-63, nodes 0-1, nothing measured.
fn two_nodes() -> Machine {
    let report: Report = serde_json::from_str(include_str!("../../tests/results/two-nodes.json")).unwrap();
    report.machine
}

fn pmem(path: &Path) -> Result<MemoryDir, String> {
    let report: Report = serde_json::from_str(include_str!("../../tests/results/pmem.json")).unwrap();
    let mut dir = report.plan.unwrap().directories[0].clone();
    dir.file.path = path.display().to_string();
    Ok(dir)
}

/// The kernels that an x86-64 CPU may have: every mix in order, strided and random; parts of lines; written back with plain stores; checked reads.
fn kernels(widths: &[Width]) -> Vec<KernelRow> {
    let forms = [
        (Access::Sequential, LineUse::Whole),
        (Access::Strided, LineUse::Whole),
        (Access::Random, LineUse::Whole),
        (Access::Strided, LineUse::Part),
        (Access::Sequential, LineUse::WrittenBack),
        (Access::Sequential, LineUse::Checked),
    ];
    let mut rows = Vec::new();
    for (mix, width) in Mix::ALL.into_iter().flat_map(|m| widths.iter().map(move |w| (m, *w))) {
        for (access, line) in forms {
            let plain_stores = mix.lines().1 > 0 && !mix.non_temporal();
            let exists = match (access, line) {
                (Access::Random, _) => mix == mix.with_one_read_stream(),
                (_, LineUse::WrittenBack) => plain_stores,
                (_, LineUse::Checked) => mix == Mix::AllReads,
                (_, LineUse::Part) => !mix.non_temporal(),
                _ => true,
            };
            if exists {
                let form = Form { access, line };
                rows.push(KernelRow { name: format!("{mix}-{width}-{access:?}-{line:?}"), mix, width, form });
            }
        }
    }
    rows
}

const X86: [Width; 3] = [Width::Sse2, Width::Avx2, Width::Avx512];

fn arguments(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn letters_of(line: &str) -> (Mode, Letters, Vec<String>) {
    match parse(&arguments(line)) {
        Ok(Invocation::Measure { mode, letters, ignored }) => (mode, *letters, ignored),
        other => panic!("{line}: {other:?}"),
    }
}

fn files(path: &Path) -> Result<String, String> {
    Ok(match path.to_str() {
        Some("delays") => "0\n300\n".into(),
        Some("pattern") => format!("{}\n", "5a".repeat(64)),
        Some("threads") => {
            "0 R seq 1m dram 1\n1-3 W5 rand 2m dram 0 100\n4-5 W6 seq 2m pmem /pmemfs0\n6 W21 seq 1m dram 0 dram 1 25\n".into()
        }
        _ => return Err(format!("{}: not there", path.display())),
    })
}

fn ask_on(line: &str, widths: &[Width]) -> Result<Translation, String> {
    let (mode, letters, _) = letters_of(line);
    let (machine, kernels) = (two_nodes(), kernels(widths));
    translate(mode, &letters, &Inputs { machine: &machine, kernels: &kernels, read: &files, directory: &pmem })
}

fn ask(line: &str) -> Translation {
    ask_on(line, &X86).unwrap()
}

/// The only spec of a mode's only section.
fn spec(line: &str) -> Spec {
    let translation = ask(line);
    assert_eq!(translation.sections.len(), 1, "{line}");
    assert_eq!(translation.sections[0].specs.len(), 1, "{line}");
    translation.sections[0].specs[0].clone()
}

fn ids(list: &str) -> Option<IdSet> {
    Some(list.parse().unwrap())
}

/// The spec of a mode without letters.
fn plain(mode: &str) -> Spec {
    let two_seconds = Some(Duration::from_secs(2));
    let mut spec = Spec { time: two_seconds, ..Spec::new(Task::Suite) };
    let random = |spec: &mut Spec| {
        spec.chase.orders = vec![ChaseOrder::WindowLocal];
        spec.stride = Some(Bytes(128));
    };
    let sse2 = WidthRequest::Is(Width::Sse2);
    match mode {
        "--latency_matrix" => {
            spec.task = Task::Latency(LatencyShape::Matrix);
            random(&mut spec);
        }
        "--idle_latency" => {
            spec.task = Task::Latency(LatencyShape::One);
            random(&mut spec);
        }
        "--bandwidth_matrix" => {
            spec = Spec { task: Task::Bandwidth(BandwidthShape::Matrix), mixes: vec![Mix::AllReads], width: sse2, ..spec };
        }
        "--peak_injection_bandwidth" | "--peak_bandwidth" | "--max_bandwidth" => {
            let shape = if mode == "--max_bandwidth" { BandwidthShape::Search } else { BandwidthShape::Peak };
            let mixes = vec![Mix::AllReads, Mix::R3W1, Mix::R2W1, Mix::R1W1, Mix::R2W1Nt];
            spec = Spec { task: Task::Bandwidth(shape), mixes, width: sse2, ..spec };
        }
        "--loaded_latency" => {
            spec = Spec { task: Task::Loaded, mixes: vec![Mix::AllReads], width: sse2, delays: DELAYS.to_vec(), ..spec };
            random(&mut spec);
        }
        "--c2c_latency" => spec.task = Task::C2c(TransferShape::NodeMatrix),
        other => panic!("{other}"),
    }
    spec
}

/// What letters change in a mode's plain spec.
type Change = fn(&mut Spec);

fn sequential(s: &mut Spec) {
    s.chase.orders = vec![ChaseOrder::Sequential];
    s.stride = Some(Bytes(64));
}

#[rustfmt::skip]
const TABLE: &[(&str, &str, Change)] = &[
    ("--latency_matrix", "", |_| {}),
    ("--latency_matrix", "-e", sequential),
    ("--latency_matrix", "-e0", |_| {}),
    ("--latency_matrix", "-e -r", |_| {}),
    ("--latency_matrix", "-r", |_| {}),
    ("--latency_matrix", "-e -l256", |s| { sequential(s); s.stride = Some(Bytes(256)); }),
    ("--latency_matrix", "-b2g", |s| s.size = Some(Bytes::gib(2))),
    ("--latency_matrix", "-b512K -b1000M", |s| s.size = Some(Bytes::mib(1000))),
    ("--latency_matrix", "-t5", |s| s.time = Some(Duration::from_secs(5))),
    ("--latency_matrix", "-t0.05", |s| s.time = Some(Duration::from_millis(50))),
    ("--latency_matrix", "-x7", |s| { s.time = None; s.chase.hops = Some(Hops::Count(7_000_000)); }),
    ("--latency_matrix", "-x0", |s| { s.time = None; s.chase.hops = Some(Hops::OnePass); }),
    ("--latency_matrix", "-D8192", |s| s.window = Some(Bytes::mib(1))),
    ("--latency_matrix", "-D8192 -b512", |s| { s.size = Some(Bytes::kib(512)); s.window = Some(Bytes::kib(512)); }),
    ("--latency_matrix", "-L", |s| s.pages = PageRequest::Huge2M),
    ("--latency_matrix", "-L -h", |s| s.pages = PageRequest::Huge1G),
    ("--latency_matrix", "-X", |s| s.one_thread_per_core = true),
    ("--idle_latency", "", |_| {}),
    ("--idle_latency", "-c3", |s| s.cpus = ids("3")),
    ("--idle_latency", "-e -c3 -j1", |s| { sequential(s); s.cpus = ids("3"); s.nodes = ids("1"); }),
    ("--idle_latency", "-c3 -i17", |s| { s.cpus = ids("3"); s.chase.touch = Some(17); }),
    ("--idle_latency", "-j1 -i17", |s| s.nodes = ids("1")),
    ("--idle_latency", "-p0,16", |s| s.keep_awake = ids("0,16")),
    ("--idle_latency", "-J/mnt/p -j1", |s| s.memory_dir = Some(pmem(Path::new("/mnt/p")).unwrap())),
    ("--idle_latency", "-J/mnt/p -L", |s| s.memory_dir = Some(pmem(Path::new("/mnt/p")).unwrap())),
    ("--idle_latency", "-f5", |s| s.chase.histogram = Some(1)),
    ("--idle_latency", "-Z -X -k1-3 -W5", |_| {}),
    ("--bandwidth_matrix", "", |_| {}),
    ("--bandwidth_matrix", "-W3", |s| s.mixes = vec![Mix::R3W1]),
    ("--bandwidth_matrix", "-W3 -R", |_| {}),
    ("--bandwidth_matrix", "-W3 -b1m", |s| { s.mixes = vec![Mix::R3W1]; s.size = Some(Bytes::mib(2)); }),
    ("--bandwidth_matrix", "-W6 -b1m", |s| { s.mixes = vec![Mix::NtWrite]; s.size = Some(Bytes::mib(1)); }),
    ("--bandwidth_matrix", "-b100000", |s| s.size = Some(Bytes::kib(100_000))),
    ("--bandwidth_matrix", "-Y", |s| s.width = WidthRequest::Is(Width::Avx2)),
    ("--bandwidth_matrix", "-Y -Z", |s| s.width = WidthRequest::Is(Width::Avx512)),
    ("--bandwidth_matrix", "-l256 -W2", |s| { s.mixes = vec![Mix::R2W1]; s.traffic.access = Access::Strided; s.traffic.stride = Some(Bytes(256)); }),
    ("--bandwidth_matrix", "-l64", |_| {}),
    ("--bandwidth_matrix", "-U", |s| s.traffic.access = Access::Random),
    ("--bandwidth_matrix", "-U -W10", |s| { s.traffic.access = Access::Random; s.mixes = vec![Mix::R2W1NtX1]; }),
    ("--bandwidth_matrix", "-Mpattern", |s| s.traffic.contents = vec![LineContent([0x5a; 64])]),
    ("--bandwidth_matrix", "-X -h", |s| { s.one_thread_per_core = true; s.pages = PageRequest::Huge1G; }),
    ("--peak_injection_bandwidth", "", |_| {}),
    ("--peak_bandwidth", "-k1-3,8", |s| s.cpus = ids("1-3,8")),
    ("--peak_injection_bandwidth", "-k1 -mff", |s| s.cpus = ids("0-7")),
    ("--peak_injection_bandwidth", "-m0x08", |s| s.cpus = ids("3")),
    ("--peak_injection_bandwidth", "-m2", |s| s.cpus = ids("1")),
    ("--peak_injection_bandwidth", "-K1 -K0", |_| {}),
    ("--peak_injection_bandwidth", "-W6", |s| s.mixes.push(Mix::NtWrite)),
    ("--peak_injection_bandwidth", "-W4", |s| s.mixes.push(Mix::R4W1)),
    ("--peak_injection_bandwidth", "-W3", |_| {}),
    ("--max_bandwidth", "", |_| {}),
    ("--max_bandwidth", "-u", |s| { s.mixes = vec![Mix::AllReads]; s.traffic.shared = true; }),
    ("--max_bandwidth", "-X -Z -t1", |s| { s.one_thread_per_core = true; s.width = WidthRequest::Is(Width::Avx512); s.time = Some(Duration::from_secs(1)); }),
    ("--loaded_latency", "", |_| {}),
    ("--loaded_latency", "-d0 -e", |s| { sequential(s); s.delays = vec![0]; }),
    ("--loaded_latency", "-d0 -gdelays", |s| s.delays = vec![0, 300]),
    ("--loaded_latency", "-gdelays -d7", |s| s.delays = vec![7]),
    ("--loaded_latency", "-c4", |s| s.chase.cpu = Some(4)),
    ("--loaded_latency", "-k1-7", |s| { s.cpus = ids("1-7"); s.chase.cpu = Some(0); }),
    ("--loaded_latency", "-c2 -mf0", |s| { s.cpus = ids("4-7"); s.chase.cpu = Some(2); }),
    ("--loaded_latency", "-T -d0 -k0-63", |s| { s.task = Task::Bandwidth(BandwidthShape::One); s.delays = vec![0]; s.cpus = ids("0-63"); s.chase = ChaseSpec::default(); s.stride = None; }),
    ("--loaded_latency", "-T -c3 -r", |s| { s.task = Task::Bandwidth(BandwidthShape::One); s.chase = ChaseSpec::default(); s.stride = None; }),
    ("--loaded_latency", "-j1", |s| s.chase.node = Some(1)),
    ("--loaded_latency", "-b100000 -W2", |s| { s.mixes = vec![Mix::R2W1]; s.size = Some(Bytes::kib(100_000)); s.traffic.size = Some(Bytes::kib(200_000)); }),
    ("--loaded_latency", "-i16", |s| s.chase.touch = Some(16)),
    ("--loaded_latency", "-U -n1024 -W2", |s| { s.mixes = vec![Mix::R2W1]; s.traffic.access = Access::Random; s.traffic.window = Some(Bytes::kib(64)); }),
    ("--loaded_latency", "-n1024", |_| {}),
    ("--loaded_latency", "-l256", |s| { s.stride = Some(Bytes(256)); s.traffic.access = Access::Strided; s.traffic.stride = Some(Bytes(256)); }),
    ("--loaded_latency", "-I", |s| s.traffic.line = LineUse::Checked),
    ("--loaded_latency", "-I -W5", |s| s.traffic.line = LineUse::Checked),
    ("--loaded_latency", "-I -U", |s| s.traffic.access = Access::Random),
    ("--loaded_latency", "-Q -Z -W5", |s| { s.mixes = vec![Mix::R1W1]; s.traffic.line = LineUse::WrittenBack; s.width = WidthRequest::Is(Width::Avx512); }),
    ("--loaded_latency", "-Q", |_| {}),
    ("--loaded_latency", "-P -W5", |s| s.mixes = vec![Mix::R1W1]),
    ("--loaded_latency", "-u -W5", |s| s.traffic.shared = true),
    ("--loaded_latency", "-sgo", |s| s.start_signal = Some("go".into())),
    ("--loaded_latency", "-B -v -f4", |s| s.chase.histogram = Some(1)),
    ("--loaded_latency", "-x3", |s| { s.time = None; s.chase.hops = Some(Hops::Count(3_000_000)); }),
    ("--loaded_latency", "-W4", |s| s.mixes = vec![Mix::R4W1]),
    ("--loaded_latency", "-K1 -W5", |s| { s.mixes = vec![Mix::R1W1]; s.traffic.line = LineUse::Part; }),
    ("--loaded_latency", "-Mpattern -Y", |s| { s.traffic.contents = vec![LineContent([0x5a; 64])]; s.width = WidthRequest::Is(Width::Avx2); }),
    ("--c2c_latency", "", |_| {}),
    ("--c2c_latency", "-e", |_| {}),
    ("--c2c_latency", "-C500k -b10m", |s| { s.window = Some(Bytes::kib(500)); s.size = Some(Bytes::mib(10)); }),
    ("--c2c_latency", "-E100 -G200 -S5", |s| { s.transfer.holder_pushes = Bytes::kib(100); s.transfer.reader_pushes = Bytes::kib(200); s.transfer.sharer = Some(5); }),
    ("--c2c_latency", "-H", |s| s.transfer.states = vec![LineState::Hit]),
    ("--c2c_latency", "-r", |s| s.transfer.chase_window = Some(Bytes::kib(512))),
    ("--c2c_latency", "-r -D64", |s| s.transfer.chase_window = Some(Bytes::kib(8))),
    ("--c2c_latency", "-x5", |s| { s.time = None; s.chase.hops = Some(Hops::Count(5_000_000)); }),
    ("--c2c_latency", "-x0 -C2000", |s| { s.time = None; s.chase.hops = Some(Hops::OnePass); s.window = Some(Bytes::kib(2000)); }),
    ("--c2c_latency", "-c1 -w17 -i16", |s| {
        s.task = Task::C2c(TransferShape::Representatives);
        s.cpus = ids("1,17");
        s.chase = ChaseSpec { cpu: Some(1), touch: Some(16), ..ChaseSpec::default() };
        s.transfer = TransferSpec { holder: Some(17), states: vec![LineState::Hitm], ..TransferSpec::default() };
    }),
    ("--c2c_latency", "-w0 -H", |s| {
        s.task = Task::C2c(TransferShape::Representatives);
        s.cpus = ids("0,1");
        s.chase.cpu = Some(1);
        s.transfer = TransferSpec { holder: Some(0), states: vec![LineState::Hit], ..TransferSpec::default() };
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
    // -a, -o and the scan's are tested below; -B and -v change what is printed.
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
        (4, Mix::R4W1),
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
            assert_eq!(spec(&format!("{mode} -W{code}")).mixes, [mix], "-W{code}");
        }
        assert_eq!(spec(&format!("--loaded_latency -U -Z -W{code}")).mixes, [mix.with_one_read_stream()], "-U -W{code}");
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
    assert_eq!(all.sections[0].specs[0].chase.orders, [ChaseOrder::WindowLocal]);
    assert!(ask("").prefetchers_on);
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

#[test]
fn a_buffer_is_taken_again_for_writes() {
    let translation = ask("--peak_injection_bandwidth -b1m");
    let sizes: Vec<_> = translation.sections[0].specs.iter().map(|s| (s.mixes[0], s.size)).collect();
    let (one, two) = (Some(Bytes::mib(1)), Some(Bytes::mib(2)));
    assert_eq!(sizes, [(Mix::AllReads, one), (Mix::R3W1, two), (Mix::R2W1, two), (Mix::R1W1, one), (Mix::R2W1Nt, two)]);
}

#[test]
fn parts_of_lines_are_for_the_mixes_that_have_them() {
    let lines: Vec<_> = ask("--peak_injection_bandwidth -K1").sections[0].specs.iter().map(|s| (s.mixes.clone(), s.traffic.line)).collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], (vec![Mix::AllReads], LineUse::Part));
    assert_eq!(lines[4], (vec![Mix::R2W1Nt], LineUse::Whole));
}

#[test]
fn small_buffers_are_touched_in_part_unless_whole_lines_are_asked_for() {
    let lines = |line: &str| -> Vec<LineUse> { ask(line).sections[0].specs.iter().map(|s| s.traffic.line).collect() };
    use LineUse::{Checked, Part, Whole, WrittenBack};
    for mode in ["--peak_injection_bandwidth", "--max_bandwidth"] {
        assert_eq!(lines(&format!("{mode} -b1m")), [Part, Part, Part, Part, Whole], "{mode}");
        assert_eq!(lines(&format!("{mode} -b1m -K0")), [Whole; 5], "{mode}");
        assert_eq!(lines(&format!("{mode} -b50m")), [Whole; 5], "{mode}");
    }
    for (options, line) in [
        ("-b48000", Part),
        ("-b1m -W5 -T", Part),
        ("-b1m -W6", Whole),
        ("-b1m -W12", Whole),
        ("-b1m -U", Whole),
        ("-b1m -l256", Whole),
        ("-b1m -othreads", Whole),
        ("-b1m -I", Checked),
        ("-b1m -W2 -Q", WrittenBack),
        ("-b1m -K0", Whole),
        ("", Whole),
    ] {
        let got = ask(&format!("--loaded_latency {options}"));
        assert_eq!((got.sections[0].specs[0].traffic.line, got.notes.len()), (line, 0), "{options}: {:?}", got.notes);
    }
    assert_eq!(lines("--bandwidth_matrix -b1m"), [Whole]);
}

#[test]
fn only_the_buffers_of_traffic_are_taken_again_for_writes() {
    for (line, chased, loaded) in [("-b20m -W2", 20, 40), ("-b20m -W6", 20, 20), ("-b20m", 20, 20)] {
        let plan = plan(&spec(&format!("--loaded_latency {line}")), &MACHINE, &KERNELS).unwrap();
        let Work::Curve { probe, loaders, .. } = &plan.steps[0].cells[0].work else { panic!("{plan:?}") };
        assert_eq!((probe.buffer.bytes, loaders[0].buffer.bytes), (Bytes::mib(chased), Bytes::mib(loaded)), "{line}");
    }
}

#[test]
fn a_named_node_has_the_latency_buffer_and_traffic_stays_local() {
    let plan = plan(&spec("--loaded_latency -j1"), &MACHINE, &KERNELS).unwrap();
    let Work::Curve { probe, loaders, .. } = &plan.steps[0].cells[0].work else { panic!("{plan:?}") };
    let homes: IdSet = loaders.iter().map(|l| l.buffer.node).collect();
    assert_eq!((probe.cpu, probe.buffer.node, homes), (0, 1, "0-1".parse().unwrap()));
}

#[test]
fn a_coarse_clock_makes_histograms_of_batches() {
    let batches = |step_ns: f64| {
        let mut translation = ask("--idle_latency -f5");
        let note = translation.suit_clock(step_ns);
        (translation.sections[0].specs[0].chase.histogram, note)
    };
    assert_eq!(batches(0.4), (Some(1), None));
    for (step_ns, batch) in [(10.0, 8), (40.0, 8), (52.1, 64)] {
        let (got, note) = batches(step_ns);
        assert!(got == Some(batch) && note.unwrap().contains(&format!("means of {batch} loads")), "{step_ns} ns: {got:?}");
    }
    let (none, note) = batches(1000.0);
    assert!(none.is_none() && note.unwrap().contains("too coarse"));
    assert_eq!(ask("--idle_latency").suit_clock(40.0), None, "no histogram was asked for");
}

#[test]
fn latency_of_every_cpu() {
    let matrix = spec("--latency_matrix -a -X");
    assert_eq!((matrix.task, matrix.nodes, matrix.one_thread_per_core), (Task::Latency(LatencyShape::PerCpu), ids("0-1"), true));
    let idle = spec("--idle_latency -a -c3");
    assert_eq!((idle.task, idle.cpus, idle.nodes), (Task::Latency(LatencyShape::PerCpu), None, None));
}

#[test]
fn a_file_of_threads() {
    let got = spec("--loaded_latency -othreads -d0");
    assert_eq!((got.size, got.chase.node, got.chase.cpu), (Some(Bytes::mib(1)), Some(1), Some(0)));
    let cpus: Vec<String> = got.traffic.threads.iter().map(|t| t.cpus.to_string()).collect();
    assert_eq!(cpus, ["1-3", "4-5", "6"]);
    assert_eq!((got.traffic.threads[0].delay, got.traffic.threads[0].access), (Some(100), Access::Random));
    assert!(matches!(&got.traffic.threads[1].place, BufferPlace::Directory(d) if d.file.path == "/pmemfs0"));
    assert!(ask("--loaded_latency -othreads").sections[0].wording.per_thread);
    // CPU 0 makes traffic if nothing measures latency.
    assert_eq!(spec("--loaded_latency -T -othreads").traffic.threads[0].cpus, IdSet::one(0));
    assert_eq!(spec("--loaded_latency -othreads -P").traffic.line, LineUse::WrittenBack);
    assert!(ask_on("--loaded_latency -onowhere", &X86).unwrap_err().contains("nowhere"));
    assert!(ask_on("--loaded_latency -gpattern", &X86).unwrap_err().contains("pattern: line 1"));
    assert!(ask_on("--loaded_latency -Mdelays", &X86).unwrap_err().contains("delays: line 1"));
}

#[test]
fn a_scan() {
    let plain = spec("--memory_bandwidth_scan");
    assert_eq!((plain.task, plain.nodes, plain.cpus, plain.time), (Task::Scan, Some(IdSet::one(0)), None, None));
    assert_eq!((plain.scan.passes, plain.scan.bucket_gbs), (Some(10), Some(5.0)));
    let all = spec("--memory_bandwidth_scan -j1 -n0 -t2 -q3 -S1000");
    assert_eq!((all.nodes, all.cpus.map(|c| c.len())), (Some(IdSet::one(1)), Some(2)));
    assert_eq!((all.scan.passes, all.scan.bucket_gbs), (Some(3), Some(1.0)));
    assert!(ask_on("--memory_bandwidth_scan -n9", &X86).unwrap_err().contains("no such node"));
    let mut machine = two_nodes();
    machine.topology.nodes[0].pools.push(PagePool { page: Bytes::gib(1), total: 4, free: 3 });
    let pages = |line: &str| -> Vec<PageRequest> {
        let (mode, letters, _) = letters_of(line);
        let inputs = Inputs { machine: &machine, kernels: &KERNELS, read: &files, directory: &pmem };
        translate(mode, &letters, &inputs).unwrap().sections[0].specs.iter().map(|s| s.pages).collect()
    };
    assert_eq!(pages("--memory_bandwidth_scan"), [PageRequest::Huge1G, PageRequest::Auto]);
    assert_eq!(pages("--memory_bandwidth_scan -j1"), [PageRequest::Auto], "its pool has none");
}

#[test]
fn widths_fall_back_and_say_so() {
    let without = ask_on("--loaded_latency -Z", &[Width::Sse2, Width::Avx2]).unwrap();
    assert_eq!(without.sections[0].specs[0].width, WidthRequest::Is(Width::Avx2));
    assert!(without.notes.iter().any(|n| n.starts_with("-Z")), "{:?}", without.notes);
    let arm = ask_on("--loaded_latency", &[Width::Neon]).unwrap();
    assert_eq!(arm.sections[0].specs[0].width, WidthRequest::Is(Width::Neon));
    assert!(arm.notes.is_empty());
    let other = ask_on("--bandwidth_matrix -Y", &[Width::Scalar]).unwrap();
    assert_eq!(other.sections[0].specs[0].width, WidthRequest::Best);
    assert!(!other.notes.is_empty());
}

#[test]
fn letters_without_effect_are_reported_and_no_others() {
    for (line, option) in [
        ("--idle_latency -Z", "-Z"),
        ("--idle_latency -X", "-X"),
        ("--latency_matrix -W3", "-W3"),
        ("--c2c_latency -l128", "-l128"),
        ("--bandwidth_matrix -k1", "-k1"),
        ("--memory_bandwidth_scan -L", "-L"),
        ("--idle_latency --c2c_latency", "--idle_latency"),
    ] {
        let (_, _, ignored) = letters_of(line);
        assert!(ignored.len() == 1 && ignored[0].starts_with(option), "{line}: {ignored:?}");
    }
    for line in [
        "--idle_latency -j1 -i3",
        "--loaded_latency -n8",
        "--loaded_latency -e -D64",
        "--loaded_latency -P",
        "--loaded_latency -T -c1",
        "--loaded_latency -T -j1",
    ] {
        assert_eq!(ask(line).notes.len(), 1, "{line}: {:?}", ask(line).notes);
    }
}

fn refusal(arg: &str) -> UsageError {
    match parse(&[OsString::from(arg)]) {
        Err(refusal) => refusal,
        other => panic!("{arg}: {other:?}"),
    }
}

#[test]
fn unknown_options_are_refused() {
    for bad in [
        "--bandwidth",
        "-N3",
        "-y",
        "5",
        "",
        "-",
        "--",
        "mlc",
        "-t",
        "-t0",
        "-tx",
        "-t1e3",
        "-t-1",
        "-t99999999",
        "-b",
        "-b0",
        "-b5x",
        "-b-5",
        "-b99999999999g",
        "-c",
        "-c-1",
        "-c+1",
        "-c9999999",
        "-k",
        "-k3-1",
        "-kx",
        "-m",
        "-m0",
        "-mxyz",
        "-K2",
        "-W",
        "-Wx",
        "-d99999999",
        "-g",
        "-o",
        "-J",
        "-X1",
        "-ex",
        "-L2",
        "-f99",
        "--Idle_latency",
    ] {
        assert!(parse(&[OsString::from(bad)]).is_err(), "{bad}");
    }
    assert!(refusal("--nothing").0.contains("--nothing"));
}

#[test]
fn dashes_of_web_pages_have_their_own_message() {
    for (arg, fixed) in [
        ("\u{2013}t5", "-t5"),
        ("\u{2013}loaded_latency", "--loaded_latency"),
        ("\u{2013}\u{2013}idle_latency", "--idle_latency"),
        ("\u{2014}b2g", "-b2g"),
    ] {
        let message = refusal(arg).0;
        assert!(message.contains("U+201") && message.ends_with(fixed), "{message}");
    }
}

#[test]
fn usage_is_printed_for_help_and_version() {
    for line in ["--help", "--version", "-h", "-h -e", "--idle_latency --help", "-t5 --version"] {
        assert_eq!(parse(&arguments(line)), Ok(Invocation::Usage), "{line}");
    }
    assert!(matches!(letters_of("--idle_latency -h").1.pages, PageRequest::Huge1G));
    let text = usage();
    for row in &LETTERS {
        assert!(text.lines().any(|l| l.starts_with(&format!("  -{}", row.letter)) && l.ends_with(row.help)), "-{}", row.letter);
        let refusal = parse(&arguments(&format!("-{}x.", row.letter))).err().map(|error| error.0).unwrap_or_default();
        assert_eq!(row.value.is_empty(), refusal.contains("takes no value"), "-{}", row.letter);
    }
    assert!(MODES.iter().all(|(name, ..)| text.contains(name)));
    assert!(text.lines().all(|l| !l.trim_start().starts_with(|c: char| c.is_ascii_digit()) && !l.contains("00000")), "{text}");
}

#[test]
fn no_letter_twice_and_each_somewhere_of_use() {
    let mut letters: Vec<char> = LETTERS.iter().map(|l| l.letter).collect();
    letters.sort_unstable();
    letters.dedup();
    assert_eq!(letters.len(), LETTERS.len());
    assert!(LETTERS.iter().all(|l| MODES.iter().any(|(_, mode, _)| l.applies(*mode))));
}

#[test]
fn the_manual_names_every_mode_letter_and_variable() {
    let manual = include_str!("../../docs/mlc.1").replace("\\-", "-");
    for (name, ..) in MODES {
        assert!(manual.contains(name), "{name}");
    }
    for row in &LETTERS {
        let head = format!("-{}", row.letter);
        let described = manual.lines().any(|l| l.strip_prefix(".BI ").or(l.strip_prefix(".B ")).is_some_and(|l| l.starts_with(&head)));
        assert!(described, "-{}", row.letter);
    }
    for variable in [super::text::NAME_VARIABLE, super::text::VERSION_VARIABLE] {
        assert!(manual.contains(variable), "{variable}");
    }
}

/// The planner accepts the specs, except those that this machine cannot satisfy.
#[test]
fn the_planner_takes_them() {
    let (machine, kernels) = (two_nodes(), kernels(&X86));
    for (mode, letters, _) in TABLE.iter().filter(|(mode, letters, _)| *mode != "--c2c_latency" && !letters.contains("-J")) {
        let line = format!("{mode} {letters}");
        for spec in ask(&line).sections.iter().flat_map(|s| &s.specs) {
            if let Err(error) = plan(spec, &machine, &kernels) {
                panic!("{line}: {error}");
            }
        }
    }
}

fn some_argument() -> impl Strategy<Value = OsString> {
    let letter = (0..LETTERS.len(), prop_oneof!["", "[0-9]{1,12}", "[0-9a-z,./:-]{0,6}", "\\PC{0,6}"])
        .prop_map(|(i, value)| OsString::from(format!("-{}{value}", LETTERS[i].letter)));
    let mode = (0..MODES.len()).prop_map(|i| OsString::from(MODES[i].0));
    let bytes = prop::collection::vec(any::<u8>(), 0..6).prop_map(OsString::from_vec);
    prop_oneof![6 => letter, 3 => mode, 1 => bytes, 1 => "\\PC{0,8}".prop_map(OsString::from)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_argument_vector_panics(args in prop::collection::vec(some_argument(), 0..8)) {
        if let Ok(Invocation::Measure { mode, letters, .. }) = parse(&args) {
            let (machine, kernels) = (MACHINE.clone(), KERNELS.clone());
            let inputs = Inputs { machine: &machine, kernels: &kernels, read: &files, directory: &pmem };
            if let Ok(translation) = translate(mode, &letters, &inputs) {
                prop_assert!(!translation.sections.is_empty());
                for spec in translation.sections.iter().flat_map(|s| &s.specs) {
                    // Refusals are fine; panics are not.
                    let _ = plan(spec, &machine, &kernels);
                }
            }
        }
    }

    #[test]
    fn no_file_panics(text in "([0-9a-zRW#, .-]{0,12}[ \n]){0,8}", bytes in "\\PC{0,80}") {
        for text in [text, bytes] {
            let _ = super::files::threads(&text, Some(0), &pmem);
            let _ = super::files::delays(&text);
            let _ = crate::contents::parse(&text);
        }
    }
}

static MACHINE: std::sync::LazyLock<Machine> = std::sync::LazyLock::new(two_nodes);
static KERNELS: std::sync::LazyLock<Vec<KernelRow>> = std::sync::LazyLock::new(|| kernels(&X86));
