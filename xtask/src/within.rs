//! `cargo xtask within`: whether `--within` keeps its promise, and loses no kind of measurement for it.
//!
//! A run fails that takes more than a tenth longer than it was given, or in which a kind of number has no value that a run without a limit
//! plans.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use memgauge_core::experiment::Experiment;
use memgauge_core::plan::Plan;
use memgauge_core::result::Report;
use memgauge_core::stats;
use memgauge_os::cpu;
use serde::de::DeserializeOwned;

use crate::busy::Loops;

/// A run may take so many times what it was given.
const LATE: f64 = 1.1;

/// The arguments of `cargo xtask within`.
#[derive(Debug, clap::Args)]
pub(crate) struct WithinArgs {
    /// Runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds that each run is given
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    within: u32,
    /// How busy loops keep each CPU meanwhile, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    percent: u32,
    /// The memgauge to check [default: a release build of this checkout]
    #[arg(long, value_name = "PROGRAM")]
    memgauge: Option<PathBuf>,
    /// The command to run, such as quick or sweep [default: the suite]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn within(args: &WithinArgs) -> Result<()> {
    let memgauge = args.memgauge.clone().map_or_else(crate::programs::build_release, Ok)?;
    let wanted = planned(&memgauge, &args.command)?;
    let cpus = cpu::process_affinity()?;
    let mut runs = Vec::new();
    for round in 1..=args.rounds {
        let run = {
            let _loops = Loops::start(&cpus, args.percent);
            Run::measure(&memgauge, &args.command, args.within)?
        };
        println!("{}", run.line(round, &wanted, args.within));
        runs.push(run);
    }
    let (text, failed) = summary(&runs, &wanted, args.within);
    print!("{text}");
    if failed > 0 { bail!("{failed} failed") } else { Ok(()) }
}

/// The kinds of measurements that the command plans without a limit on its time.
fn planned(memgauge: &Path, command: &[String]) -> Result<BTreeSet<String>> {
    let plan: Plan = run_json(memgauge, command, &["--plan"])?;
    Ok(plan.steps.iter().filter(|step| !step.cells.is_empty()).map(|step| kind(step.experiment)).collect())
}

fn kind(experiment: Experiment) -> String {
    format!("{experiment:?}")
}

fn run_json<T: DeserializeOwned>(memgauge: &Path, command: &[String], more: &[&str]) -> Result<T> {
    let output = Command::new(memgauge).args(command).args(more).args(["--format", "json"]).output()?;
    let told = || {
        format!(
            "memgauge {} {} printed no JSON of this version: {}",
            command.join(" "),
            more.join(" "),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    serde_json::from_slice(&output.stdout).with_context(told)
}

/// What a run took, and how many numbers of each kind it has.
struct Run {
    seconds: f64,
    values: BTreeMap<String, usize>,
}

impl Run {
    fn measure(memgauge: &Path, command: &[String], within: u32) -> Result<Self> {
        let begin = Instant::now();
        let report: Report = run_json(memgauge, command, &["--within", &format!("{within}s")])?;
        Ok(Self { seconds: begin.elapsed().as_secs_f64(), values: values(report.results.iter().map(|m| (m.experiment, m.estimate.value))) })
    }

    fn lost<'a>(&self, wanted: &'a BTreeSet<String>) -> Vec<&'a str> {
        wanted.iter().filter(|kind| !self.values.contains_key(*kind)).map(String::as_str).collect()
    }

    fn failed(&self, wanted: &BTreeSet<String>, within: u32) -> bool {
        self.seconds > LATE * f64::from(within) || !self.lost(wanted).is_empty()
    }

    fn line(&self, round: u32, wanted: &BTreeSet<String>, within: u32) -> String {
        let kinds: Vec<String> = self.values.iter().map(|(kind, values)| format!("{kind} {values}")).collect();
        let lost = self.lost(wanted);
        let lost = if lost.is_empty() { String::new() } else { format!(", lost: {}", lost.join(", ")) };
        let late = if self.seconds > LATE * f64::from(within) { ", late" } else { "" };
        format!("run {round}: {:.1} s of {within}{late}; {}{lost}", self.seconds, kinds.join(", "))
    }
}

/// How many numbers of each kind have a value.
fn values(results: impl Iterator<Item = (Experiment, Option<f64>)>) -> BTreeMap<String, usize> {
    let mut values = BTreeMap::new();
    for (experiment, _) in results.filter(|(_, value)| value.is_some()) {
        *values.entry(kind(experiment)).or_insert(0) += 1;
    }
    values
}

/// The closing lines, and how many runs failed.
fn summary(runs: &[Run], wanted: &BTreeSet<String>, within: u32) -> (String, usize) {
    let seconds = stats::sorted(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
    let failed = runs.iter().filter(|run| run.failed(wanted, within)).count();
    let took = match (seconds.first(), stats::median(&seconds), seconds.last()) {
        (Some(shortest), Some(median), Some(longest)) => format!("{shortest:.1} to {longest:.1} s, median {median:.1} s, of {within} s\n"),
        _ => String::new(),
    };
    (format!("{took}{} passed, {failed} failed\n", runs.len() - failed), failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seconds: f64, kinds: &[&str]) -> Run {
        Run { seconds, values: kinds.iter().map(|kind| ((*kind).to_owned(), 2)).collect() }
    }

    #[test]
    fn a_run_that_is_late_or_loses_a_kind_fails() {
        let wanted = ["Bandwidth", "IdleLatency"].map(String::from).into();
        let both = ["Bandwidth", "IdleLatency"];
        let runs = [run(9.0, &both), run(10.8, &both), run(11.1, &both), run(5.0, &["Bandwidth"])];
        assert_eq!(summary(&runs, &wanted, 10), ("5.0 to 11.1 s, median 9.9 s, of 10 s\n2 passed, 2 failed\n".to_owned(), 2));
        assert_eq!(runs[2].line(3, &wanted, 10), "run 3: 11.1 s of 10, late; Bandwidth 2, IdleLatency 2");
        assert_eq!(runs[3].line(4, &wanted, 10), "run 4: 5.0 s of 10; Bandwidth 2, lost: IdleLatency");
    }

    #[test]
    fn a_number_without_a_value_is_no_number_of_its_kind() {
        let cells = [(Experiment::IdleLatency, Some(90.0)), (Experiment::CacheToCache, None), (Experiment::IdleLatency, Some(91.0))];
        assert_eq!(values(cells.into_iter()), BTreeMap::from([("IdleLatency".to_owned(), 2)]));
    }
}
