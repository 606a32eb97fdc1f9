//! `cargo xtask busy`: whether numbers hold while other processes use a part of every CPU.
//!
//! Each round measures once quiet and once at each load, so that what drifts hits all of them. A busy value may differ from the quiet
//! median by the bound, or be marked as unreliable; anything else is a failure. Quiet values of a shared virtual machine differ, too: how far
//! busy ones lie outside their range is shown beside, and how many are not between the quiet values just before and after them, give or take
//! the bound, next to how many quiet values are not between theirs.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memgauge_core::result::{Measurement, QualityLevel, Report};
use memgauge_core::stats::median;
use memgauge_core::units::IdSet;
use memgauge_os::cpu;
use serde::{Deserialize, Serialize};

/// Idle latency may differ by this share.
const LATENCY_BOUND: f64 = 0.03;
/// Bandwidth and transfers by this.
const BOUND: f64 = 0.05;
/// Share of the cells of quiet runs that may be worse than good.
const WORSE: f64 = 0.2;
/// A loop is busy for its share of this, and sleeps for the rest.
const PERIOD: Duration = Duration::from_millis(10);
/// What is measured in each round: idle latency, bandwidth, transfers.
const COMMANDS: [&[&str]; 3] = [&["latency", "--budget", "2s"], &["bandwidth", "--budget", "2s"], &["c2c", "--budget", "1s"]];

/// The arguments of `cargo xtask busy`.
#[derive(Debug, clap::Args)]
pub(crate) struct BusyArgs {
    /// Rounds: each measures everything once quiet and once at each load
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How busy loops keep each CPU, in percent
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [30, 60], value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: Vec<u32>,
    /// The memgauge to check [default: a release build of this checkout]
    #[arg(long, value_name = "PROGRAM")]
    memgauge: Option<PathBuf>,
    /// Keep each value here as a line, after each round; those that it has already are counted, too. They must be of this program on this host
    #[arg(long, value_name = "FILE.jsonl")]
    raw: Option<PathBuf>,
    /// Run this instead while the CPUs are busy, at the first of --percent
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn busy(args: &BusyArgs) -> Result<()> {
    let cpus = cpu::process_affinity()?;
    if let Some((program, rest)) = args.command.split_first() {
        let _loops = Loops::start(&cpus, args.percent.first().copied().unwrap_or(0));
        let status = Command::new(program).args(rest).status().with_context(|| format!("cannot start {program}"))?;
        ensure!(status.success(), "{program} ended with {status}");
        return Ok(());
    }
    let memgauge = args.memgauge.clone().map_or_else(crate::programs::build_release, Ok)?;
    let mut cells: BTreeMap<String, Cell> = BTreeMap::new();
    let origin = if args.raw.is_some() { Some(Origin::here(&memgauge)?) } else { None };
    let mut raw = args.raw.as_deref().zip(origin.as_ref()).map(|(path, origin)| open_raw(path, origin, &mut cells)).transpose()?;
    for round in 1..=args.rounds {
        let mut lines = String::new();
        if let Some(origin) = &origin {
            lines += &serde_json::to_string(&Line::Origin(Origin { load: load(), ..origin.clone() }))?;
            lines.push('\n');
        }
        for percent in std::iter::once(0).chain(args.percent.iter().copied()) {
            eprintln!("round {round} of {}, {percent} % busy", args.rounds);
            let _loops = Loops::start(&cpus, percent);
            for command in COMMANDS {
                for m in measure(&memgauge, command)? {
                    let value = (m.estimate.value, m.quality.level);
                    lines += &serde_json::to_string(&Line::Value(command[0].to_owned(), name(&m), percent, value))?;
                    lines.push('\n');
                    add(&mut cells, command[0], name(&m), percent, value);
                }
            }
        }
        // Whole rounds only: a value is compared with those of the rounds beside it.
        if let Some(raw) = &mut raw {
            raw.write_all(lines.as_bytes())?;
        }
    }
    let (table, failed) = table(&cells);
    print!("{table}");
    if failed > 0 { bail!("{failed} failed") } else { Ok(()) }
}

/// What a round's values are of: the first line of each round in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Origin {
    program: String,
    host: String,
    /// The load average of the last minute before the round.
    load: Option<f64>,
}

impl Origin {
    /// Of this program, built from this commit.
    fn here(memgauge: &Path) -> Result<Self> {
        let report = run(memgauge, &["latency", "--size", "1M", "--budget", "50ms"])?;
        let commit = report.tool.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
        let host = report.run.host.and_then(|host| host.hostname).unwrap_or_default();
        Ok(Self { program: format!("{} {}{commit}", report.tool.name, report.tool.version), host, load: None })
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.program, &self.host) == (&other.program, &other.host)
    }
}

/// The load average of the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// A line of the file of values.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Origin(Origin),
    Value(String, String, u32, Value),
}

/// A value with how far it can be trusted.
type Value = (Option<f64>, QualityLevel);

fn add(cells: &mut BTreeMap<String, Cell>, command: &str, name: String, percent: u32, value: Value) {
    cells.entry(name).or_insert_with(|| Cell::new(command)).values.entry(percent).or_default().push(value);
}

/// The file of single values, to append to. What it has is added to the cells, so that many rounds need not be made at once.
fn open_raw(path: &Path, origin: &Origin, cells: &mut BTreeMap<String, Cell>) -> Result<std::fs::File> {
    let name = || path.display().to_string();
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path).with_context(|| format!("cannot open {}", name()))?;
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", name()))?;
    read_raw(&text, origin, cells).with_context(name)?;
    Ok(file)
}

/// Adds the values of a file to the cells; values of another program or host are an error.
fn read_raw(text: &str, origin: &Origin, cells: &mut BTreeMap<String, Cell>) -> Result<()> {
    let mut known = false;
    for line in text.lines() {
        match serde_json::from_str(line).with_context(|| format!("a line is no value: {line}"))? {
            Line::Origin(found) => {
                let (of, on) = (&found.program, &found.host);
                ensure!(
                    found.is_same(origin),
                    "it has values of {of} on {on}, not of {} on {}: name another file",
                    origin.program,
                    origin.host
                );
                known = true;
            }
            Line::Value(..) if !known => bail!("it does not say of which program and host its values are: name another file"),
            Line::Value(command, cell, percent, value) => add(cells, &command, cell, percent, value),
        }
    }
    Ok(())
}

fn measure(memgauge: &Path, command: &[&str]) -> Result<Vec<Measurement>> {
    Ok(run(memgauge, command)?.results)
}

fn run(memgauge: &Path, command: &[&str]) -> Result<Report> {
    let output = Command::new(memgauge).args(command).args(["--format", "json"]).output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("memgauge {} printed no report: {}", command.join(" "), String::from_utf8_lossy(&output.stderr)))
}

/// A name that is the same in each round.
fn name(m: &Measurement) -> String {
    let at = serde_json::to_value(&m.at).unwrap_or_default();
    let part =
        |key: &str| at.get(key).filter(|value| !value.is_null()).map(|value| format!(" {key} {}", value.to_string().replace('"', "")));
    let parts: String = ["cpu", "cpu_node", "memory", "order", "mix", "state", "holder", "reader"].into_iter().filter_map(part).collect();
    format!("{:?}{parts}", m.experiment)
}

/// The values of one cell: by how busy the CPUs were, those of each round with their quality.
struct Cell {
    bound: f64,
    values: BTreeMap<u32, Vec<Value>>,
}

impl Cell {
    fn new(command: &str) -> Self {
        Self { bound: if command == "latency" { LATENCY_BOUND } else { BOUND }, values: BTreeMap::new() }
    }

    /// The values at a load that are not marked as unreliable, and the number of others.
    fn unmarked(&self, percent: u32) -> (Vec<f64>, usize) {
        let all = self.values.get(&percent).map_or(&[][..], Vec::as_slice);
        let unmarked: Vec<f64> =
            all.iter().filter(|(_, level)| *level < QualityLevel::Unreliable).filter_map(|(value, _)| *value).collect();
        let marked = all.len() - unmarked.len();
        (unmarked, marked)
    }
}

/// How many unmarked values at a load lie beyond the bound outside the quiet ones just before and after, and of how many.
fn not_between(cell: &Cell, percent: u32) -> (usize, usize) {
    let unmarked = |at: u32, round: usize| {
        let (value, level) = cell.values.get(&at)?.get(round)?;
        value.filter(|_| *level < QualityLevel::Unreliable)
    };
    let rounds = cell.values.get(&percent).map_or(0, Vec::len);
    let off = |round: usize| {
        // A round begins with its quiet runs.
        let before = if percent == 0 { round.checked_sub(1)? } else { round };
        let (a, b) = (unmarked(0, before)?, unmarked(0, round + 1)?);
        let value = unmarked(percent, round)?;
        Some((value / value.clamp(a.min(b), a.max(b)) - 1.0).abs() > cell.bound)
    };
    let off: Vec<bool> = (0..rounds).filter_map(off).collect();
    (off.iter().filter(|off| **off).count(), off.len())
}

/// The table with its closing line, and how many of its checks failed.
fn table(cells: &BTreeMap<String, Cell>) -> (String, usize) {
    let mut lines = vec![format!(
        "{:<70} {:>9} {:>5} {:>9} {:>8} {:>8} {:>7} {:>7} {:>9} {:>9}",
        "cell", "quiet", "busy", "median", "worst", "outside", "beyond", "marked", "unlike", "quiet so"
    )];
    let (mut passed, mut failed) = (0, 0);
    for (name, cell) in cells {
        let (quiet, _) = cell.unmarked(0);
        let reference = median(&quiet);
        for percent in cell.values.keys().filter(|percent| **percent > 0) {
            let (unmarked, marked) = cell.unmarked(*percent);
            // Where quiet runs left no value, a busy one cannot be checked.
            let ends = quiet.iter().copied().reduce(f64::min).zip(quiet.iter().copied().reduce(f64::max));
            let beside = |value: &f64| ends.map(|(low, high)| value / value.clamp(low, high) - 1.0);
            let outside = unmarked.iter().filter_map(beside).max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let off: Vec<f64> = reference.iter().flat_map(|quiet| unmarked.iter().map(move |value| value / quiet - 1.0)).collect();
            let beyond = off.iter().filter(|off| off.abs() > cell.bound).count() + if reference.is_none() { unmarked.len() } else { 0 };
            let worst = off.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
            let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
            let share = |off: Option<f64>| off.map_or_else(|| "–".to_owned(), |off| format!("{:+.1} %", 100.0 * off));
            let (worst, outside) = (share(worst), share(outside));
            let (quiet, busy) = (number(reference), number(median(&unmarked)));
            let of = |(off, all): (usize, usize)| format!("{off} of {all}");
            lines.push(format!(
                "{name:<70} {quiet:>9} {percent:>3} % {busy:>9} {worst:>8} {outside:>8} {beyond:>7} {marked:>7} {:>9} {:>9}",
                of(not_between(cell, *percent)),
                of(not_between(cell, 0)),
            ));
            if beyond == 0 { passed += 1 } else { failed += 1 }
        }
    }
    let quiet = || cells.values().filter_map(|cell| cell.values.get(&0)).flatten();
    let worse = quiet().filter(|(_, level)| *level != QualityLevel::Good).count();
    let all = quiet().count();
    if worse as f64 <= WORSE * all as f64 {
        passed += 1
    } else {
        failed += 1
    }
    lines.push(format!("quiet: {worse} of {all} values are worse than good; at most a fifth may be"));
    lines.push(format!("{passed} passed, {failed} failed\n"));
    (lines.join("\n"), failed)
}

/// Threads that keep each CPU busy for a share of the time; they end when this is dropped.
pub(crate) struct Loops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    pub(crate) fn start(cpus: &IdSet, percent: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let on = PERIOD * percent / 100;
        let keep_busy = |cpu: u32| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                // A loop on another CPU than planned keeps that one busy.
                let _ = cpu::pin_to(cpu);
                while !stop.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    while begin.elapsed() < on {
                        std::hint::spin_loop();
                    }
                    std::thread::sleep(PERIOD - on);
                }
            })
        };
        let threads = if percent == 0 { Vec::new() } else { cpus.iter().map(keep_busy).collect() };
        Self { stop, threads }
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(command: &str, quiet: &[f64], busy: &[(f64, QualityLevel)]) -> Cell {
        let mut cell = Cell::new(command);
        cell.values.insert(0, quiet.iter().map(|value| (Some(*value), QualityLevel::Good)).collect());
        cell.values.insert(30, busy.iter().map(|(value, level)| (Some(*value), *level)).collect());
        cell
    }

    #[test]
    fn a_busy_value_is_near_the_quiet_one_or_marked() {
        use QualityLevel::{Good, Unreliable};
        let failed = |cell: Cell| table(&BTreeMap::from([("a cell".to_owned(), cell)])).1;
        assert_eq!(failed(cell("latency", &[100.0, 101.0, 99.0], &[(102.9, Good), (97.1, Good)])), 0);
        assert_eq!(failed(cell("latency", &[100.0, 101.0, 99.0], &[(103.1, Good), (100.0, Good)])), 1);
        assert_eq!(failed(cell("bandwidth", &[100.0], &[(95.1, Good)])), 0);
        assert_eq!(failed(cell("bandwidth", &[100.0], &[(50.0, Unreliable)])), 0, "marked");
        let mut noisy = cell("bandwidth", &[100.0; 4], &[]);
        noisy.values.insert(0, vec![(Some(100.0), Good), (Some(100.0), QualityLevel::Degraded)]);
        let (text, failed) = table(&BTreeMap::from([("a cell".to_owned(), noisy)]));
        assert!(failed == 1 && text.contains("1 of 2 values are worse than good") && text.ends_with("1 passed, 1 failed\n"), "{text}");
    }

    #[test]
    fn where_the_machine_changes_a_value_is_compared_with_its_neighbours() {
        use QualityLevel::{Good, Unreliable};
        let quiet = [100.0, 100.0, 200.0, 200.0, 150.0, 200.0];
        let busy = [(99.0, Good), (150.0, Good), (180.0, Good), (50.0, Unreliable), (175.0, Good), (9.0, Good)];
        let cell = cell("latency", &quiet, &busy);
        assert_eq!(not_between(&cell, 30), (1, 4), "180 between 200 and 200; one is marked, one has no quiet value after it");
        assert_eq!(not_between(&cell, 0), (1, 4), "150 between 200 and 200");
        assert!(table(&BTreeMap::from([("a cell".to_owned(), cell)])).0.contains("1 of 4    1 of 4"));
    }

    #[test]
    fn values_of_different_builds_do_not_mix() {
        let origin = |program: &str, load| Origin { program: program.to_owned(), host: "node1".to_owned(), load };
        let line = |line: &Line| serde_json::to_string(line).unwrap() + "\n";
        let value = line(&Line::Value("latency".into(), "a cell".into(), 30, (Some(90.5), QualityLevel::Good)));
        let file = line(&Line::Origin(origin("memgauge 0.1.0 (abc)", Some(0.5)))) + &value;
        let read = |text: &str, program: &str| {
            let mut cells = BTreeMap::new();
            read_raw(text, &origin(program, None), &mut cells).map(|()| cells)
        };
        let cells = read(&file, "memgauge 0.1.0 (abc)").unwrap();
        assert_eq!(cells["a cell"].values[&30], [(Some(90.5), QualityLevel::Good)]);
        let error = read(&file, "memgauge 0.1.0 (def)").err().unwrap().to_string();
        assert!(error.contains("(abc) on node1, not of memgauge 0.1.0 (def)"), "{error}");
        assert!(read(&value, "memgauge 0.1.0 (abc)").is_err(), "a file of before, which says nothing of its program");
        assert!(read("", "memgauge 0.1.0 (abc)").unwrap().is_empty());
    }

    #[test]
    fn loops_end_when_they_are_dropped() {
        let begin = Instant::now();
        drop(Loops::start(&cpu::process_affinity().unwrap(), 30));
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}
