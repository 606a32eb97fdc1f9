//! Compares the contents of packages, as the tools of their distributions list them, with the expected files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use super::subject::Outcome::Passed;
use super::subject::{Checked, Outcome, missing};
use crate::programs::run;

/// Files that every main package has.
const MAIN: &[&str] = &[
    "/usr/bin/memgauge",
    "/usr/lib/systemd/system/memgauge-watch.service",
    "/usr/lib/systemd/system/memgauge.service",
    "/usr/lib/systemd/system/memgauge.timer",
    "/usr/share/bash-completion/completions/memgauge",
    "/usr/share/fish/vendor_completions.d/memgauge.fish",
    "/usr/share/man/man1/memgauge-quick.1.gz",
    "/usr/share/man/man1/memgauge.1.gz",
    "/usr/share/memgauge/schema/result.schema.json",
];

/// Files of the drop-in's packages.
const DROP_IN: &[&str] = &["/usr/bin/mlc", "/usr/bin/mlc_avx512", "/usr/share/man/man1/mlc.1.gz"];

pub(super) fn debs(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["dpkg-deb"]) {
        return Ok(outcome);
    }
    for path in all(checked, ".deb")? {
        let listing = run(Command::new("dpkg-deb").arg("--contents").arg(&path))?;
        let foreign = listing.lines().find(|line| line.split_whitespace().nth(1) != Some("root/root"));
        ensure!(foreign.is_none(), "{}: not root's: {foreign:?}", path.display());
        let files = listing.lines().filter_map(|line| Some(format!("/{}", line.split_whitespace().nth(5)?.trim_start_matches("./"))));
        compare(&path.to_string_lossy(), &files.collect(), &["/usr/share/zsh/vendor-completions/_memgauge"])?;
    }
    Ok(Passed)
}

pub(super) fn rpms(checked: &Checked<'_>) -> Result<Outcome> {
    let packages = all(checked, ".rpm")?;
    if let Some(outcome) = missing(&["rpm"]) {
        return Ok(outcome);
    }
    for path in packages {
        let query = |words: &[&str]| run(Command::new("rpm").args(words).arg(&path));
        query(&["--checksig", "--nosignature"])?;
        let files = query(&["-qlp", "--nosignature"])?;
        compare(&path.to_string_lossy(), &files.lines().map(str::to_owned).collect(), &["/usr/share/zsh/site-functions/_memgauge"])?;
    }
    Ok(Passed)
}

/// Two packages of each instruction set of Linux.
fn all(checked: &Checked<'_>, ending: &str) -> Result<Vec<PathBuf>> {
    let expected = 2 * checked.targets.iter().filter(|target| target.linux().is_some()).count();
    let packages = checked.with_ending(ending);
    ensure!(packages.len() == expected, "{} of {expected} {ending} were made: is nfpm installed?", packages.len());
    Ok(packages)
}

/// Whether a package has what it should have, and nothing of the other one.
fn compare(package: &str, files: &BTreeSet<String>, more: &[&str]) -> Result<()> {
    let (own, other) = if package.contains("memgauge-mlc") { (DROP_IN.to_vec(), MAIN) } else { ([MAIN, more].concat(), DROP_IN) };
    let missing: Vec<&str> = own.iter().copied().filter(|path| !files.contains(*path)).collect();
    ensure!(missing.is_empty(), "{package} lacks {}", missing.join(", "));
    let foreign: Vec<&str> = other.iter().copied().filter(|path| files.contains(*path)).collect();
    ensure!(foreign.is_empty(), "{package} has what the other package has: {}", foreign.join(", "));
    Ok(())
}
