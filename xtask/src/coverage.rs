//! `cargo xtask coverage`: how often printed 95 % intervals hold the truth, measured on simulated machines.
//!
//! Millions of bursts are simulated, which an unoptimised build would do in an hour. So this chore builds an example of the simulation as it would be
//! released, and runs it; nothing of it is part of this program.

use anyhow::{Context, Result, ensure};

use crate::programs::cargo;

/// The arguments of `cargo xtask coverage`.
#[derive(Debug, clap::Args)]
pub(crate) struct CoverageArgs {
    /// Numbers with an interval in each line of the table, at least
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    cells: u32,
    /// Seed of the simulated noise: the same gives the same table
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Prints the tables of docs/method/intervals.md.
pub(crate) fn coverage(args: &CoverageArgs) -> Result<()> {
    ensure!(args.cells > 0, "--cells must be at least 1");
    let status = cargo()
        .args(["run", "--quiet", "--release", "--package", "memgauge-simulation", "--example", "coverage", "--"])
        .args([args.cells.to_string(), args.seed.to_string()])
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "the simulation: {status}");
    Ok(())
}
