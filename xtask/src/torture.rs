//! `cargo xtask torture`: whatever memgauge is given or deprived of, it ends by itself, within a bound, with a documented status, and says why.
//! Nothing here looks at the measured values. `tests/all/kills.rs` checks what SIGKILL leaves behind.

mod arguments;
mod bench;
#[path = "../../tests/all/support/confined.rs"]
mod confined;
mod confinement;
mod signals;
mod terminals;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memgauge_model::units::parse_duration;

use crate::fuzz;
use bench::{Bench, Dice, Outcome};

/// Failures that are printed of each area.
const SHOWN: usize = 10;

/// The arguments of `cargo xtask torture`.
#[derive(Debug, clap::Args)]
pub(crate) struct TortureArgs {
    /// Time for everything
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_duration)]
    time: Duration,
    /// The seed of all choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The memgauge to torture [default: a release build of this checkout]
    #[arg(long, value_name = "PROGRAM")]
    memgauge: Option<PathBuf>,
}

/// One try of an area. It runs the program and returns a description of the run, and its outcome.
type Once = fn(&Bench, &mut Dice) -> Result<(String, Outcome)>;

/// An area, its part of the time, and what it does. A run that is ended or hidden from takes about a second, a command line milliseconds.
const AREAS: [(&str, u32, Once); 8] = [
    ("arguments, plans", 1, arguments::plan),
    ("arguments, runs", 2, arguments::run),
    ("arguments, mlc", 2, arguments::mlc),
    ("signals", 8, signals::once),
    ("terminals", 3, terminals::once),
    ("limits", 3, confinement::limited),
    ("system calls denied", 3, confinement::filtered),
    ("/proc, /sys hidden", 3, confinement::hidden),
];

pub(crate) fn torture(args: &TortureArgs) -> Result<()> {
    let memgauge = args.memgauge.clone().map_or_else(crate::programs::build_release, Ok)?;
    let bench = Bench { memgauge: memgauge.canonicalize()?, folder: fuzz::scratch("torture")? };
    let part = args.time / AREAS.iter().map(|(_, parts, _)| parts).sum::<u32>();
    let mut sum = Tally::default();
    for (name, parts, once) in AREAS {
        let tally = area(&bench, once, part * parts, args.seed)?;
        println!("{name:<20} {}", tally.in_words());
        tally.failures.iter().take(SHOWN).for_each(|failure| println!("  {failure}"));
        tally.not_tried.iter().for_each(|(why, n)| println!("  not tried, {n} times: {why}"));
        sum.add(tally);
    }
    std::fs::remove_dir_all(&bench.folder)?;
    let not_tried: u64 = sum.not_tried.values().sum();
    if not_tried > 0 {
        println!("not checked: {not_tried} runs, because {}", sum.not_tried.keys().cloned().collect::<Vec<_>>().join("; "));
    }
    println!("{} passed, {} failed", sum.passed, sum.failures.len());
    ensure!(sum.failures.is_empty(), "{} failed", sum.failures.len());
    Ok(())
}

/// The outcomes of an area's runs.
#[derive(Default)]
struct Tally {
    passed: u64,
    failures: Vec<String>,
    /// How often something was missing.
    not_tried: BTreeMap<String, u64>,
}

impl Tally {
    fn in_words(&self) -> String {
        let not_tried: u64 = self.not_tried.values().sum();
        format!("{:>8} passed, {} failed, {not_tried} not tried", self.passed, self.failures.len())
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        other.not_tried.into_iter().for_each(|(why, n)| *self.not_tried.entry(why).or_default() += n);
    }
}

fn area(bench: &Bench, once: Once, time: Duration, seed: u64) -> Result<Tally> {
    let (end, mut run, mut tally) = (Instant::now() + time, 0, Tally::default());
    while Instant::now() < end {
        let (what, outcome) = once(bench, &mut Dice::new(seed, run))?;
        run += 1;
        match outcome {
            Outcome::Passed => tally.passed += 1,
            Outcome::Failed(why) => tally.failures.push(format!("{what}: {why}")),
            Outcome::NotTried(why) => *tally.not_tried.entry(why).or_default() += 1,
        }
    }
    Ok(tally)
}
