//! The wheels: used on this machine, and for other instruction sets as pip and a checker of wheels see them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::subject::Outcome::{NotChecked, Passed};
use super::subject::{Checked, Outcome, scratch};
use crate::dist::target::Target;
use crate::folders::project_folder;
use crate::programs::{find_program, run};

/// PyPI's checker of the contents of wheels.
const CHECKER: &str = "check-wheel-contents";

/// Installs the wheel of this machine, uses and removes it.
pub(super) fn used(checked: &Checked<'_>) -> Result<Outcome> {
    let names = checked.own()?;
    let wheel = checked.with_ending(&format!("{}.whl", names.wheel)).pop().context("no wheel")?;
    let mut test = Command::new(&checked.args.python);
    test.arg(project_folder().join("python/test.py")).arg(wheel);
    if checked.args.full {
        test.arg("--types");
    }
    let output = match test.env_remove("MEMGAUGE").output() {
        Err(error) => return Ok(NotChecked(format!("cannot start {}: {error}", checked.args.python.display()))),
        Ok(output) => output,
    };
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().for_each(|line| println!("    {line}"));
    ensure!(output.status.success(), "python/test.py: {}", String::from_utf8_lossy(&output.stderr).trim());
    let not_checked: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("not checked: ")).collect();
    if not_checked.is_empty() { Ok(Passed) } else { Ok(NotChecked(not_checked.join("; "))) }
}

/// Has pip choose among all wheels as it would on a machine of each instruction set, for each of its tags, and the checker read what it chose.
pub(super) fn taken_by_pip(checked: &Checked<'_>) -> Result<Outcome> {
    let python = &checked.args.python;
    if run(Command::new(python).args(["-m", "pip", "--version"])).is_err() {
        return Ok(NotChecked(format!("{} has no pip", python.display())));
    }
    let folder = scratch("wheels")?;
    for names in checked.targets.iter().copied().filter_map(Target::linux) {
        let wheel = format!("memgauge-{}-py3-none-{}.whl", checked.release.version, names.wheel);
        for tag in names.wheel.split('.') {
            let to = folder.join(tag);
            let mut pip = Command::new(python);
            pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--only-binary=:all:"]);
            pip.arg("--find-links").arg(checked.out).args(["--platform", tag, "--dest"]).arg(&to).arg("memgauge");
            run(&mut pip).with_context(|| format!("pip takes no wheel for {tag}"))?;
            ensure!(to.join(&wheel).is_file(), "for {tag}, pip takes another wheel than {wheel}");
        }
    }
    let beside: Option<PathBuf> = python.parent().map(|folder| folder.join(CHECKER)).filter(|file| file.exists());
    let Some(checker) = beside.or_else(|| find_program(CHECKER)) else {
        return Ok(NotChecked(format!("what is in the wheels: {CHECKER} is not installed (PyPI has it)")));
    };
    // The checker looks for modules only; the program is in the folder of scripts, which it does not know to be a package's content.
    run(Command::new(checker).args(checked.with_ending(".whl")))?;
    Ok(Passed)
}
