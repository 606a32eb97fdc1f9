//! `cargo xtask check`: what to run before each commit. It installs nothing and needs no root; `.ci/run` is the whole gate.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::circles::{self, CirclesArgs};
use crate::folders::project_folder;
use crate::{docs, font, programs, schema};

/// The arguments of `cargo xtask check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Steps to do [default: all]: format, lints, docs, circles, files, tests
    #[arg(value_name = "STEP")]
    steps: Vec<String>,
}

/// A step by its name, and what it checks.
struct Step {
    name: &'static str,
    about: &'static str,
    check: fn() -> Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "format", about: "formatting", check: || cargo(&["fmt", "--all", "--check"]) },
    Step { name: "lints", about: "lints", check: || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-Dwarnings"]) },
    Step { name: "docs", about: "documentation of the crates", check: || cargo(&["doc", "--quiet", "--workspace", "--no-deps"]) },
    Step { name: "circles", about: "circles of imports", check: || circles::circles(&CirclesArgs::default()) },
    Step { name: "files", about: "files that are written from code", check: files },
    Step { name: "tests", about: "tests", check: tests },
];

/// Does the steps in their order, up to the first that fails.
pub(crate) fn check(args: &CheckArgs) -> Result<()> {
    if let Some(unknown) = args.steps.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
        bail!("there is no step '{unknown}': {}", STEPS.iter().map(|step| step.name).collect::<Vec<_>>().join(", "));
    }
    let steps: Vec<&Step> = STEPS.iter().filter(|step| args.steps.is_empty() || args.steps.iter().any(|name| name == step.name)).collect();
    let about = steps.iter().map(|step| step.about).collect::<Vec<_>>().join(", ");
    println!("Checks {about}. It installs nothing and needs no root; what is not built is built first, which takes minutes.");
    let begun = Instant::now();
    for step in steps {
        println!("\n== {} ({} s)", step.about, begun.elapsed().as_secs());
        (step.check)().with_context(|| format!("{} failed: 'cargo xtask check {}' does this step alone", step.about, step.name))?;
    }
    println!("\nPassed in {} s: {about}.", begun.elapsed().as_secs());
    Ok(())
}

fn cargo(words: &[&str]) -> Result<()> {
    let status = programs::cargo().args(words).env("RUSTDOCFLAGS", "-Dwarnings").status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo {}: {status}", words.join(" "));
    Ok(())
}

/// Files that are checked in and that a task writes.
fn files() -> Result<()> {
    schema::schema(true)?;
    docs::docs(true)?;
    font::font(true)
}

/// The tests by the command that README.md names.
fn tests() -> Result<()> {
    let readme = std::fs::read_to_string(project_folder().join("README.md")).context("README.md")?;
    let command = command_of(&readme).context("README.md has no command for the tests")?;
    cargo(&command.split_whitespace().skip(1).collect::<Vec<_>>())
}

fn command_of(readme: &str) -> Option<&str> {
    readme.lines().find(|line| line.starts_with("cargo test "))?.split('#').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen_by_name_and_the_tests_by_the_readme() {
        let unknown = check(&CheckArgs { steps: vec!["format".to_owned(), "all".to_owned()] }).unwrap_err().to_string();
        assert_eq!(unknown, "there is no step 'all': format, lints, docs, circles, files, tests");
        assert_eq!(command_of("```\ncargo build\ncargo test --workspace  # all\n```\n").map(str::trim), Some("cargo test --workspace"));
        assert_eq!(command_of(include_str!("../../README.md")).map(|command| command.starts_with("cargo test --workspace")), Some(true));
    }
}
