//! memgauge's development tasks.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task prints what it did")]

use std::process::ExitCode;

use clap::Parser;

mod check;
mod circles;
mod coverage;
mod dist;
mod docs;
mod folders;
mod font;
mod fuzz;
mod generated;
mod lab;
mod programs;
mod recipes;
mod schema;
mod torture;
mod windows;
mod wine;

/// memgauge's development tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Check what a commit needs: formatting, lints, documentation, tests, generated files; installs nothing
    Check(check::CheckArgs),
    /// Write the schema of results from the types
    Schema {
        /// Only check that the file is up to date
        #[arg(long)]
        check: bool,
    },
    /// Write man pages and completions from the definition of the command line
    Docs {
        /// Only check that the files are up to date
        #[arg(long)]
        check: bool,
    },
    /// Write the glyphs of figures' text from the bundled fonts
    Font {
        /// Only check that the files are up to date
        #[arg(long)]
        check: bool,
    },
    /// Run memgauge in virtual machines that have what this one lacks
    Lab(lab::LabArgs),
    /// Run every parser and format with mutated input
    Fuzz(fuzz::FuzzArgs),
    /// Give memgauge bad input, signals, limits and filters, and check that it always ends well
    Torture(torture::TortureArgs),
    /// Make the packages of a release: archives, deb, rpm, images, wheels, bills of materials, checksums
    Dist(dist::DistArgs),
    /// Build the programs for Windows and run them under Wine
    Windows(windows::WindowsArgs),
    /// Follow the recipes of CONTRIBUTING.md in a copy of the tree, and test that
    Recipes(recipes::RecipesArgs),
    /// Fail where files or modules of a crate use each other in a circle
    Circles(circles::CirclesArgs),
    /// Count how often 95 % intervals hold the truth on simulated machines: the tables of docs/method/intervals.md
    Coverage(coverage::CoverageArgs),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Check(args) => check::check(&args),
        Command::Schema { check } => schema::schema(check),
        Command::Docs { check } => docs::docs(check),
        Command::Font { check } => font::font(check),
        Command::Lab(args) => lab::lab(&args),
        Command::Fuzz(args) => fuzz::fuzz(&args),
        Command::Torture(args) => torture::torture(&args),
        Command::Dist(args) => dist::dist(&args),
        Command::Windows(args) => windows::windows(&args),
        Command::Recipes(args) => recipes::recipes(&args),
        Command::Circles(args) => circles::circles(&args),
        Command::Coverage(args) => coverage::coverage(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
