//! `cargo xtask peers`: compares memgauge with public benchmarks, run by run in turn.
//!
//! In each round every tool of a row runs once, and who begins changes from round to round; a ratio is of two runs of the same round, so
//! that what drifts hits both. Nothing of the peers is in this repository: they are found on `PATH` or in a folder, already built.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memgauge_core::result::Report;
use memgauge_core::stats::median;
use memgauge_core::units::Bytes;

mod command;
mod compare;
mod core_to_core;
mod likwid;
mod lmbench;
mod mbw;
mod memgauge;
mod multichase;
mod row;
mod stream;
mod sysbench;
mod table;
mod tinymembench;
mod tool;
mod tools;
mod xmem;

use command::{Call, RunOutput};
use compare::Series;
use row::Row;
use table::{Outcome, Part};
use tool::{Found, Tool, Way};
use tools::TOOLS;

/// The arguments of `cargo xtask peers`.
#[derive(Debug, clap::Args)]
pub(crate) struct PeersArgs {
    /// Also look for the peers' programs in this folder and below, before PATH
    #[arg(long, value_name = "FOLDER")]
    with: Option<PathBuf>,
    /// Rounds: figures of each tool in each row; the 95 % interval of a ratio needs six
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Sizes instead of those in L1, L2, the last-level cache and memory; sizes above the last-level cache are divided among CPUs
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    size: Vec<Bytes>,
    /// Peers to run, by name; slow ones run only when named here
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Rows whose name contains one of these, such as 'reads, 512 MiB' [default: all]; may be repeated
    #[arg(long, value_name = "TEXT")]
    row: Vec<String>,
    /// The memgauge to compare [default: a release build of this checkout]
    #[arg(long, value_name = "PROGRAM")]
    memgauge: Option<PathBuf>,
    /// Leave a round's pair out when other processes used more than this of the machine's CPUs during either run, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 15.0)]
    others: f64,
    /// Also write every run to this file, as lines of tab-separated values
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// List the peers found and the rows, without running them
    #[arg(long)]
    list: bool,
}

/// A tool that has not ended by then is stuck. The longest, STREAM with one thread on a slow machine, needs half of it.
const LIMIT: Duration = Duration::from_secs(90);
/// The same for tools that run only when named.
const SLOW_LIMIT: Duration = Duration::from_secs(600);

/// Others' share from which on a comparison is one of schedulers: a sixth of a machine of two CPUs is a third of one of them.
const BUSY: f64 = 0.15;

pub(crate) fn peers(args: &PeersArgs) -> Result<()> {
    let memgauge = args.memgauge.clone().map_or_else(build, Ok)?;
    let tools = chosen(&args.only)?;
    let found = found(args.with.as_deref(), &tools)?;
    let info = Call::new(&memgauge, ["info", "--format", "json"]).run(LIMIT)?;
    let report: Report = memgauge::first_json(&info.text)?;
    let groups: Vec<Vec<Row>> = row::groups(&report.machine, &args.size, found.stream_bytes)
        .into_iter()
        .map(|rows| {
            rows.into_iter().filter(|row| wanted(row, &args.row) && tools.iter().any(|t| !(t.ways)(row, &found).is_empty())).collect()
        })
        .filter(|rows: &Vec<Row>| !rows.is_empty())
        .collect();
    let versions = versions(&memgauge, &tools, &found);
    if args.list {
        print!("{versions}");
        for row in groups.iter().flatten() {
            let names: Vec<&str> = tools.iter().filter(|t| !(t.ways)(row, &found).is_empty()).map(|t| t.name).collect();
            println!("{}: {}", row.name(), names.join(", "));
        }
        return Ok(());
    }
    ensure!(!groups.is_empty(), "no peer was found for any row; 'cargo xtask peers --list' says what there is, --with names a folder");
    let began = Instant::now();
    let mut runner = Runner {
        rounds: args.rounds as usize,
        max_others: args.others / 100.0,
        raw: String::from("row\tround\ttool\tway\tvalue\tunit\tothers\tseconds\tcommand\n"),
        ..Runner::default()
    };
    let mut outcomes = Vec::new();
    for rows in &groups {
        outcomes.extend(runner.group(rows, &memgauge, &tools, &found)?);
        // After each group, so that a run that is stopped leaves what it has.
        if let Some(path) = &args.raw {
            fs::write(path, &runner.raw).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    print!("{}", document(&report, &versions, &outcomes, &runner, began.elapsed()));
    Ok(())
}

fn wanted(row: &Row, asked: &[String]) -> bool {
    asked.is_empty() || asked.iter().any(|text| row.name().contains(text.as_str()))
}

/// Builds memgauge as its users have it, so that tests' and debug builds are never compared.
pub(crate) fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(cargo).args(["build", "--release", "--bin", "memgauge"]).current_dir(crate::folders::project_folder()).status()?;
    ensure!(status.success(), "memgauge could not be built");
    Ok(crate::folders::target_folder().join("release/memgauge"))
}

/// The tools named, or all but the slow ones.
fn chosen(only: &[String]) -> Result<Vec<&'static Tool>> {
    for name in only {
        if !TOOLS.iter().any(|tool| tool.name.eq_ignore_ascii_case(name)) {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            bail!("no peer is called '{name}'; there are {}", names.join(", "));
        }
    }
    let named = |tool: &Tool| only.iter().any(|name| tool.name.eq_ignore_ascii_case(name));
    Ok(TOOLS.iter().filter(|tool| if only.is_empty() { tool.slow.is_none() } else { named(tool) }).collect())
}

/// The programs of the chosen tools that are installed, and what must be found out about them beforehand.
fn found(folder: Option<&Path>, tools: &[&Tool]) -> Result<Found> {
    if let Some(folder) = folder {
        ensure!(folder.is_dir(), "{} is no folder", folder.display());
    }
    let mut files = tools::find(folder, &std::env::var("PATH").unwrap_or_default());
    files.retain(|name, _| tools.iter().any(|tool| tool.files.contains(name)));
    let thp = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let mut found = Found { files, thp_always: thp.contains("[always]"), ..Found::default() };
    if let Some(program) = found.get("likwid-bench") {
        found.likwid_kernels = likwid::kernels(&Call::new(program, ["-a"]).run(LIMIT)?.text);
    }
    if let Some(call) = stream::probe(&found) {
        found.stream_bytes = Some(stream::bytes(&call.run(LIMIT)?.text)?);
    }
    Ok(found)
}

/// A line for each tool: what it says of its version, where it is, or that it was not found.
fn versions(memgauge: &Path, tools: &[&Tool], found: &Found) -> String {
    let mut text = String::new();
    let own = Call::new(memgauge, ["--version"]).run(LIMIT).map_or_else(|_| String::new(), |output| output.text.trim().to_owned());
    let _ = writeln!(text, "- {own}");
    for tool in tools {
        let Some(path) = tool.files.iter().find_map(|file| found.get(file)) else {
            let _ = writeln!(text, "- {}: not found", tool.name);
            continue;
        };
        let version = tool.version.and_then(|(args, label)| {
            let output = Call::new(path, args.iter().copied()).run(LIMIT).ok()?;
            let rest = output.text.split_once(label)?.1;
            Some(rest.lines().next()?.trim().to_owned())
        });
        let _ = writeln!(text, "- {} {}", tool.name, version.as_deref().unwrap_or("(states no version)"));
    }
    text
}

/// Runs tools in turn.
#[derive(Default)]
struct Runner {
    rounds: usize,
    /// Runs beside which others used more of the machine than this share do not count: tools take being pushed off their CPUs in
    /// different ways, and a ratio would compare that.
    max_others: f64,
    /// Every run, as tab-separated values.
    raw: String,
    /// The share of the machine that other processes used, by run.
    others: Vec<f64>,
    runs: usize,
}

/// One round's runs: a command that tells several rows is run once.
type Round = BTreeMap<Call, std::result::Result<RunOutput, String>>;

impl Runner {
    fn group(&mut self, rows: &[Row], memgauge: &Path, tools: &[&Tool], found: &Found) -> Result<Vec<Outcome>> {
        let mut contests = Vec::new();
        let mut trial = Round::new();
        for row in rows {
            let mut ways = vec![("memgauge", memgauge::way(memgauge, row))];
            for tool in tools {
                let choice = (tool.ways)(row, found);
                ways.extend(self.fastest(choice, row, tool, &mut trial).map(|way| (tool.name, way)));
            }
            contests.push((row, ways));
        }
        let part = |(tool, way): &(&str, Way)| Part {
            tool: (*tool).to_owned(),
            way: way.name.clone(),
            command: way.call.line(),
            series: Series::default(),
            best: Series::default(),
            prints_best: tools.iter().any(|t| t.name == *tool && t.prints_best),
            huge: None,
            disturbed: 0,
            failures: Vec::new(),
        };
        let mut parts: Vec<Vec<Part>> = contests.iter().map(|(_, ways)| ways.iter().map(part).collect()).collect();
        let mut huge: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for round in 0..self.rounds {
            let mut done = Round::new();
            for (i, (row, ways)) in contests.iter().enumerate() {
                for turn in 0..ways.len() {
                    let j = (turn + round) % ways.len();
                    let (tool, way) = &ways[j];
                    let limit = if tools.iter().any(|t| t.name == *tool && t.slow.is_some()) { SLOW_LIMIT } else { LIMIT };
                    let (value, output) = self.figure(way, row, limit, &mut done);
                    let part = &mut parts[i][j];
                    if let Some(output) = output {
                        huge.entry((i, j)).or_default().extend(output.huge);
                        if j == 0 {
                            part.way = memgauge::kernel(&output.text, row).unwrap_or_default();
                        }
                        let _ = writeln!(
                            self.raw,
                            "{}\t{round}\t{tool}\t{}\t{}\t{}\t{}\t{:.2}\t{}",
                            row.name(),
                            part.way,
                            value.as_ref().map_or_else(|_| String::new(), f64::to_string),
                            row.measure.unit(),
                            output.others.map_or_else(String::new, |o| format!("{o:.3}")),
                            output.seconds,
                            way.call.line()
                        );
                    }
                    eprintln!(
                        "round {}/{} {} {tool} {}",
                        round + 1,
                        self.rounds,
                        row.name(),
                        value.as_ref().map_or_else(|e| e.clone(), |v| format!("{v:.3}"))
                    );
                    let quiet = output.and_then(|s| s.others).is_none_or(|others| others <= self.max_others);
                    part.disturbed += usize::from(value.is_ok() && !quiet);
                    part.series.0.push(value.as_ref().ok().copied().filter(|_| quiet));
                    if j == 0 {
                        part.best.0.push(output.filter(|_| quiet).and_then(|output| memgauge::best_burst(&output.text, row)));
                    }
                    if let Err(why) = value
                        && !part.failures.contains(&why)
                    {
                        part.failures.push(why);
                    }
                }
            }
        }
        for (&(i, j), shares) in &huge {
            parts[i][j].huge = median(shares);
        }
        let rows = contests.iter().map(|(row, _)| (*row).clone());
        Ok(rows.zip(parts).map(|(row, mut parts)| Outcome { row, ours: parts.remove(0), peers: parts }).collect())
    }

    /// The fastest of a tool's ways in one run of each, as memgauge chooses among its kernels; the only one without a run.
    fn fastest(&mut self, mut ways: Vec<Way>, row: &Row, tool: &Tool, trial: &mut Round) -> Option<Way> {
        if ways.len() < 2 {
            return ways.pop();
        }
        let limit = if tool.slow.is_some() { SLOW_LIMIT } else { LIMIT };
        let speeds: Vec<Option<f64>> = ways.iter().map(|way| self.figure(way, row, limit, trial).0.ok()).collect();
        let sign = if row.measure.is_time() { -1.0 } else { 1.0 };
        let speed = |i: &usize| speeds[*i].map_or(f64::NEG_INFINITY, |s| sign * s);
        let best = (0..ways.len()).max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        Some(ways.swap_remove(best))
    }

    /// A way's figure for the row, from a run of this round.
    fn figure<'a>(
        &mut self,
        way: &Way,
        row: &Row,
        limit: Duration,
        done: &'a mut Round,
    ) -> (std::result::Result<f64, String>, Option<&'a RunOutput>) {
        let output = done.entry(way.call.clone()).or_insert_with(|| {
            self.runs += 1;
            let output = way.call.run(limit).map_err(|error| format!("{error:#}"));
            self.others.extend(output.iter().filter_map(|s| s.others));
            output
        });
        match output {
            Ok(output) => ((way.read)(&output.text, row).map_err(|error| format!("{error:#}")), Some(output)),
            Err(why) => (Err(why.clone()), None),
        }
    }
}

/// All that is printed.
fn document(report: &Report, versions: &str, outcomes: &[Outcome], runner: &Runner, took: Duration) -> String {
    let (identity, topology) = (&report.machine.identity, &report.machine.topology);
    let caches: Vec<String> =
        topology.cpu_caches(report.machine.allowed.cpus.first().unwrap_or(0)).map(|c| format!("L{} {}", c.level, c.size)).collect();
    let others = median(&runner.others).map_or_else(|| "unknown".to_owned(), |o| format!("{:.0} %", o * 100.0));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{}; {} CPUs of {}; {}; {} memory node(s); {}; Linux {}; transparent huge pages {}\n",
        identity.model_name.as_deref().unwrap_or("CPU of unknown model"),
        report.machine.allowed.cpus.len(),
        topology.cpus.len(),
        caches.join(", "),
        topology.nodes.len(),
        match (&identity.hypervisor, identity.is_virtual()) {
            (Some(name), _) => format!("guest of {name}"),
            (None, Some(_)) => "no hypervisor".to_owned(),
            (None, None) => "hypervisor not known".to_owned(),
        },
        identity.kernel.as_deref().unwrap_or("unknown"),
        report.environment.thp.as_deref().unwrap_or("unknown"),
    );
    let _ = writeln!(
        text,
        "{}; {} rounds; {} runs in {:.0} s; other processes used {others} of the CPUs in the median run\n\n{versions}",
        report.started.utc,
        runner.rounds,
        runner.runs,
        took.as_secs_f64()
    );
    if median(&runner.others).is_some_and(|others| others > BUSY) && runner.max_others > BUSY {
        let _ = writeln!(
            text,
            "The machine was busy: these ratios compare how tools take being pushed off their CPUs, not what they reach. Repeat on a quiet one.\n"
        );
    }
    let _ = writeln!(text, "{}", table::ratios(outcomes));
    let _ = writeln!(text, "{}", table::hand_offs(outcomes));
    let failures = table::failures(outcomes);
    if !failures.is_empty() {
        let _ = writeln!(text, "Runs without a figure:\n\n{failures}");
    }
    let _ = writeln!(text, "Commands:\n\n```\n{}```", table::commands(outcomes));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;
    use row::{Measure, Pages};

    fn names(only: &[&str]) -> Result<Vec<&'static str>> {
        let only: Vec<String> = only.iter().map(|n| (*n).to_owned()).collect();
        Ok(chosen(&only)?.iter().map(|t| t.name).collect())
    }

    #[test]
    fn slow_ones_only_when_named() {
        let all = names(&[]).unwrap();
        assert!(all.contains(&"STREAM") && !all.contains(&"tinymembench") && !all.contains(&"lmbench"), "{all:?}");
        assert_eq!(names(&["stream", "lmbench"]).unwrap(), ["STREAM", "lmbench"]);
        assert!(names(&["mlc"]).unwrap_err().to_string().contains("likwid-bench"));
    }

    fn row() -> Row {
        Row { measure: Measure::Reads, bytes: 1 << 20, cpus: IdSet::one(0), pages: Pages::Huge }
    }

    fn echo(name: &str, text: &str) -> Way {
        Way::new(name, Call::new("echo", [text]), |text, _| text.trim().parse().context("no number"))
    }

    #[test]
    fn the_fastest_way_takes_part() {
        let mut runner = Runner::default();
        let mut best = |ways| runner.fastest(ways, &row(), &TOOLS[0], &mut Round::new()).map(|way| way.name);
        assert_eq!(best(vec![echo("slow", "1"), echo("fast", "3"), echo("broken", "x"), echo("middle", "2")]).as_deref(), Some("fast"));
        assert_eq!(best(vec![echo("only", "x")]).as_deref(), Some("only"), "it is not tried");
        assert_eq!(best(Vec::new()), None);
        assert_eq!(runner.runs, 4);
    }

    #[test]
    fn a_command_runs_once_a_round() {
        let mut runner = Runner::default();
        let mut round = Round::new();
        let way = echo("", "2.5");
        assert_eq!(runner.figure(&way, &row(), LIMIT, &mut round).0, Ok(2.5));
        assert_eq!(runner.figure(&way, &row(), LIMIT, &mut round).0, Ok(2.5));
        assert_eq!(runner.runs, 1);
        assert!(runner.figure(&echo("", "x"), &row(), LIMIT, &mut round).0.unwrap_err().contains("no number"));
    }

    #[test]
    fn rows_by_a_part_of_their_name() {
        assert!(wanted(&row(), &[]) && wanted(&row(), &["copy".to_owned(), "reads, 1 MiB".to_owned()]));
        assert!(!wanted(&row(), &["copy".to_owned()]));
    }
}
