//! `cargo xtask torture`: whatever is given to memgauge, and whatever is taken from it, it ends by itself, within a bound, with a status that
//! is documented, and says why. Nothing here looks at what was measured.

mod arguments;
mod bench;
#[path = "../../tests/support/confined.rs"]
mod confined;
mod confinement;
mod signals;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memgauge_core::units::parse_duration;

use crate::fuzz;
use bench::{Bench, Dice};

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

/// What an area does once: a run of the program, in words, and why it failed, if it did.
type Once = fn(&Bench, &mut Dice) -> Result<(String, Option<String>)>;

pub(crate) fn torture(args: &TortureArgs) -> Result<()> {
    let memgauge = args.memgauge.clone().map_or_else(crate::peers::build, Ok)?;
    let bench = Bench { memgauge: memgauge.canonicalize()?, folder: fuzz::scratch("torture")? };
    let areas: [(&str, Once); 6] = [
        ("arguments, plans", arguments::plan),
        ("arguments, runs", arguments::run),
        ("arguments, mlc", arguments::mlc),
        ("signals", signals::once),
        ("limits", confinement::limited),
        ("system calls denied", confinement::filtered),
    ];
    // Parsers and formats get as much as an area for each of their targets.
    let share = args.time / (areas.len() as u32 + fuzz::targets());
    let (mut passed, mut failed) = (0, 0);
    for (name, once) in areas {
        let (runs, failures) = area(&bench, once, share, args.seed)?;
        println!("{name:<20} {runs:>8} runs, {} failures", failures.len());
        failures.iter().take(SHOWN).for_each(|failure| println!("  {failure}"));
        passed += runs - failures.len() as u64;
        failed += failures.len() as u64;
    }
    std::fs::remove_dir_all(&bench.folder)?;
    let (executions, findings) = fuzz::run_all(share, args.seed)?;
    passed += executions - findings as u64;
    failed += findings as u64;
    println!("{passed} passed, {failed} failed");
    ensure!(failed == 0, "{failed} failed");
    Ok(())
}

fn area(bench: &Bench, once: Once, time: Duration, seed: u64) -> Result<(u64, Vec<String>)> {
    let (end, mut runs, mut failures) = (Instant::now() + time, 0, Vec::new());
    while Instant::now() < end {
        let (what, failure) = once(bench, &mut Dice::new(seed, runs))?;
        runs += 1;
        failures.extend(failure.map(|why| format!("{what}: {why}")));
    }
    Ok((runs, failures))
}
