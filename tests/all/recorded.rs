//! Machines recorded elsewhere, or generated: how the program describes each, and what it would do there.
//!
//! Each `tests/machines/NAME.tar.gz` is unpacked; what is printed is compared with the texts in `tests/machines/NAME/`.
//! `SNAPSHOTS=overwrite cargo test --test all recorded` writes those anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use flate2::read::GzDecoder;
use memgauge_model::plan::{Cell, IdleChase, LoadCurve, Loading, Plan, Work};
use memgauge_model::result::Report;
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_planner::quick::{DEFAULT_WITHIN_S, FIRST_ROUND_SHARE};
use snapbox::Data;

/// Texts, and the command lines that print them.
const LINES: [(&str, &str); 10] = [
    ("info", "info"),
    ("suite", "--plan"),
    ("latency-matrix", "latency --matrix --plan"),
    ("bandwidth-matrix", "bandwidth --matrix --plan"),
    ("loaded", "loaded --plan"),
    ("c2c", "c2c --plan"),
    ("quick", "quick --plan"),
    ("c2c-matrix", "c2c --matrix --plan"),
    ("scan", "scan --plan"),
    ("interleave", "interleave --plan"),
];

/// An unpacked archive, and a folder for what a test writes, which is removed when this is dropped.
struct Recording {
    folder: PathBuf,
    root: PathBuf,
}

impl Recording {
    /// The files of an archive, which other tests read, too.
    fn of(archive: &Path, name: &str) -> Self {
        let unpacked = memgauge_testing::unpacked(archive, Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self::at(own_folder(name), unpacked.join(name))
    }

    /// Files that a test may change.
    fn own(archive: &Path, name: &str) -> Self {
        let folder = own_folder(name);
        tar::Archive::new(GzDecoder::new(File::open(archive).unwrap())).unpack(&folder).unwrap();
        Self::at(folder.clone(), folder.join(name))
    }

    fn at(folder: PathBuf, root: PathBuf) -> Self {
        assert!(root.is_dir(), "{} is no folder", root.display());
        Self { folder, root }
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memgauge"));
        command.args(line.split_whitespace()).arg("--machine").arg(&self.root);
        command.stdin(Stdio::null()).env_remove("NO_COLOR").output().unwrap()
    }

    fn machine(&self) -> Machine {
        let output = self.run("info --format json");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Report>(&output.stdout).unwrap().machine
    }

    /// The text of a plan, or why there is none, and the plan.
    fn text_and_plan(&self, line: &str) -> (String, Option<Plan>) {
        let file = self.folder.join("plan.json");
        let text = self.text(&format!("{line} -o {}", file.display()));
        let plan = fs::read(&file).ok().map(|json| serde_json::from_slice(&json).unwrap());
        let _ = fs::remove_file(file);
        (text, plan)
    }

    /// The text, or why there is none.
    fn text(&self, line: &str) -> String {
        let output = self.run(line);
        let text = if output.status.success() {
            String::from_utf8(output.stdout).unwrap()
        } else {
            format!("exit status {}\n{}", output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
        };
        lasting(&text.replace(&self.root.display().to_string(), "MACHINE"))
    }

    /// The plan, unless it is refused.
    fn plan(&self, line: &str) -> Option<Plan> {
        let output = self.run(&format!("{line} --format json"));
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn own_folder(name: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let unique = format!("recorded-{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Removes what differs between versions and days.
fn lasting(text: &str) -> String {
    let this = concat!("memgauge ", env!("CARGO_PKG_VERSION"));
    let lines = text.lines().map(|line| if line.starts_with(this) { "memgauge VERSION DATE" } else { line.trim_end() });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

fn archives() -> BTreeMap<String, PathBuf> {
    let paths = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    paths.filter_map(|path| Some((path.file_name()?.to_str()?.strip_suffix(".tar.gz")?.to_owned(), path))).collect()
}

fn overwriting() -> bool {
    std::env::var("SNAPSHOTS").is_ok_and(|action| action == "overwrite")
}

fn check(path: &Path, text: String) {
    let advice = "SNAPSHOTS=overwrite cargo test --test all recorded writes it; read it before committing it";
    assert!(path.exists() || overwriting(), "{} is missing: {advice}", path.display());
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(Data::text(text).raw(), Data::read_from(path, None).raw());
}

#[test]
fn machines() {
    let archives = archives();
    assert!(!archives.is_empty(), "{} holds no archive", folder().display());
    std::thread::scope(|scope| {
        for (name, archive) in &archives {
            std::thread::Builder::new().name(name.clone()).spawn_scoped(scope, move || one_machine(name, archive)).unwrap();
        }
    });
}

fn one_machine(name: &str, archive: &Path) {
    let recording = Recording::of(archive, name);
    let machine = recording.machine();
    let golden = folder().join(name);
    fs::create_dir_all(&golden).unwrap();
    for (text, line) in LINES {
        let golden = golden.join(format!("{text}.txt"));
        if text == "info" {
            check(&golden, recording.text(line));
            continue;
        }
        let begin = Instant::now();
        let (printed, plan) = recording.text_and_plan(line);
        check(&golden, printed);
        if let Some(plan) = plan {
            println!("{name}: memgauge {line}: {:.2} s to plan in this build", begin.elapsed().as_secs_f64());
            is_allowed(&plan, &machine, &format!("{name}: {text}"));
            if ["suite", "latency-matrix", "quick"].contains(&text) {
                a_time_for_the_whole_run_is_kept(&recording, line, &plan, name);
            }
            has_the_machines_rows_and_columns(&plan, &machine, text, name);
            assert!(
                text != "quick" || plan.estimated_s <= FIRST_ROUND_SHARE * DEFAULT_WITHIN_S,
                "{name}: a health check of {} s",
                plan.estimated_s
            );
        }
    }
    if let Some(sweep) = recording.plan("sweep --plan") {
        a_time_for_the_whole_run_is_kept(&recording, "sweep --plan", &sweep, name);
    }
}

fn a_time_for_the_whole_run_is_kept(recording: &Recording, line: &str, whole: &Plan, name: &str) {
    let titles = |plan: &Plan| plan.steps.iter().map(|s| s.title.clone()).collect::<Vec<_>>();
    for seconds in [2.0, 20.0, 300.0] {
        let plan = recording.plan(&format!("{line} --within {seconds}s")).unwrap();
        assert_eq!(titles(&plan), titles(whole), "{name}: {line} within {seconds} s");
        let too_short = plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::WithinTooShort);
        assert!(plan.max_s <= seconds || too_short, "{name}: {line} within {seconds} s: {}", plan.max_s);
        assert!(!too_short || seconds < 300.0, "{name}: {line} within {seconds} s: {}", plan.max_s);
    }
}

fn cells(plan: &Plan) -> impl Iterator<Item = &Cell> {
    plan.steps.iter().flat_map(|step| &step.cells)
}

/// The plan uses only what the recording process was allowed to use.
fn is_allowed(plan: &Plan, machine: &Machine, what: &str) {
    let allowed = &machine.allowed;
    assert!(!plan.steps.is_empty() && plan.steps.iter().all(|step| !step.cells.is_empty()), "{what}: a step without cells");
    assert!(plan.estimated_s > 0.0 && plan.estimated_s.is_finite(), "{what}: {} s", plan.estimated_s);
    assert!(plan.keep_awake.is_subset(&allowed.cpus), "{what}: keeps CPUs {} awake", plan.keep_awake);
    for cell in cells(plan) {
        let at = &cell.at;
        let what = format!("{what}: CPU {:?} of node {:?} to memory {:?}, {:?}", at.cpu, at.cpu_node, at.memory, at.mix);
        assert!(cell.work.cpus().is_subset(&allowed.cpus), "{what}: runs on CPUs {}", cell.work.cpus());
        let mut taken: BTreeMap<u32, u64> = BTreeMap::new();
        for buffer in cell.work.buffers() {
            assert!(allowed.nodes.contains(buffer.node), "{what}: takes memory of node {}", buffer.node);
            assert!(buffer.touch.is_subset(&allowed.cpus) && !buffer.touch.is_empty(), "{what}: touched by {}", buffer.touch);
            assert!(buffer.bytes.0 > 0, "{what}: has an empty buffer");
            *taken.entry(buffer.node).or_default() += buffer.bytes.0;
        }
        if let Work::Scan(scan) = &cell.work {
            taken.insert(scan.region.node, scan.bytes().0);
        }
        for (node, bytes) in &taken {
            assert!(*bytes <= allowed.node_memory[node].0, "{what}: takes {bytes} bytes of node {node}");
        }
        assert!(taken.values().sum::<u64>() <= allowed.room(), "{what}: takes more than there is");
        if let (Some(node), Work::Latency(IdleChase { probe, .. })) = (at.cpu_node, &cell.work) {
            assert_eq!(machine.topology.cpu(probe.cpu).unwrap().node, node, "{what}: chases on CPU {}", probe.cpu);
        }
        if let (Some(node), Work::Bandwidth(Loading { loaders, .. })) = (at.cpu_node, &cell.work) {
            let own = |cpu: u32| machine.topology.cpu(cpu).unwrap().node == node;
            assert!(loaders.iter().all(|l| own(l.cpu)), "{what}: loads from other nodes' CPUs");
        }
        // On a curve this is the probe's node; loaders use their own.
        let placed = match &cell.work {
            Work::Curve(LoadCurve { probe, .. }) => vec![&probe.buffer],
            work => work.buffers(),
        };
        if let Some(node) = at.memory_node() {
            assert!(placed.iter().all(|b| b.node == node), "{what}: takes other nodes' memory");
        }
    }
}

/// A matrix has a row for each node with CPUs and a column for each with memory; a matrix of pairs has each pair, both ways.
fn has_the_machines_rows_and_columns(plan: &Plan, machine: &Machine, text: &str, name: &str) {
    let allowed = &machine.allowed;
    if text.ends_with("-matrix") && text != "c2c-matrix" {
        let node_of = |cpu: u32| machine.topology.cpu(cpu).unwrap().node;
        let rows: BTreeSet<u32> = allowed.cpus.iter().map(node_of).collect();
        let expected: BTreeSet<_> = rows.iter().flat_map(|row| allowed.nodes.iter().map(move |column| (*row, column))).collect();
        let once: Vec<_> = cells(plan).filter(|c| !c.repeat).collect();
        let found: BTreeSet<_> = once.iter().map(|c| (c.at.cpu_node.unwrap(), c.at.memory_node().unwrap())).collect();
        assert_eq!((found, once.len()), (expected.clone(), expected.len()), "{name}: {text}");
    }
    if text == "c2c-matrix" {
        let [Cell { work: Work::Transfers(all), .. }] = &plan.steps[0].cells[..] else { panic!("{name}: {text} is not one cell") };
        let cpus: IdSet = all.ends.iter().map(|e| e.cpu).collect();
        assert_eq!(cpus, allowed.cpus, "{name}: {text}");
        // One or two million pairs, in a plan that names each CPU once.
        let bytes = serde_json::to_string(plan).unwrap().len();
        assert!(bytes < 4096 * (4 + cpus.len()), "{name}: {text}: {bytes} bytes for {} CPUs", cpus.len());
    }
}

/// Writes `line` wherever the machine states the size of a cache line; how often it does.
fn set_lines(folder: &Path, line: u32) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let set = |path: PathBuf| match path {
        path if path.is_symlink() => 0,
        path if path.is_dir() => set_lines(&path, line),
        path if path.ends_with("coherency_line_size") => fs::write(path, format!("{line}\n")).map(|()| 1).unwrap(),
        _ => 0,
    };
    entries.map(set).sum()
}

/// As on Apple's and IBM's cores (128 B) and on Fujitsu's A64FX (256 B): a part of each of the machine's lines, not of each 64 bytes.
#[test]
fn lines_of_128_and_256_bytes_are_the_machines() {
    for line in [64, 128, 256] {
        let recording = Recording::own(&folder().join("numa.tar.gz"), "numa");
        assert!(set_lines(&recording.root, line) > 0, "no cache states its line");
        assert_eq!(recording.machine().topology.line().0, u64::from(line));
        let plan = recording.plan("bandwidth --mix all-reads --line part --plan").unwrap();
        let cells = plan.steps.iter().flat_map(|step| &step.cells);
        let strides: Vec<Option<u64>> = cells
            .filter_map(|cell| match &cell.work {
                Work::Bandwidth(Loading { traffic, .. }) => Some(traffic.stride.map(|s| s.0)),
                _ => None,
            })
            .collect();
        assert!(!strides.is_empty());
        assert!(strides.iter().all(|stride| *stride == (line > 64).then_some(u64::from(line))), "{line}: {strides:?}");
    }
}

#[test]
fn every_text_has_its_machine() {
    let archives = archives();
    let texts: BTreeSet<String> = LINES.iter().map(|(text, _)| format!("{text}.txt")).collect();
    for entry in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        assert!(archives.contains_key(name), "{} has no archive beside it", entry.display());
        for text in fs::read_dir(&entry).unwrap().map(|text| text.unwrap().file_name().into_string().unwrap()) {
            assert!(texts.contains(&text), "{}/{text} is compared with nothing", entry.display());
        }
    }
}
