//! The units of systemd, as systemd itself judges them without running them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::subject::Outcome::Passed;
use super::subject::{Checked, Outcome, missing, scratch};
use crate::folders::project_folder;

/// The highest exposure level that `systemd-analyze security` may give the service, in tenths: below 5.0 is "OK". Most of the remaining exposure
/// comes from two needs of the service: it runs as root, and it has access to devices.
const MOST_EXPOSED: u32 = 49;

/// Checks the units as they are packed: in a root that has them and the program, and nothing else.
pub(super) fn verified(checked: &Checked<'_>) -> Result<Outcome> {
    if let Some(outcome) = missing(&["systemd-analyze"]) {
        return Ok(outcome);
    }
    let root = scratch("units")?;
    let folder = root.join("usr/lib/systemd/system");
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(root.join("usr/bin"))?;
    let program = checked.programs.values().next().context("no program")?;
    let path = root.join("usr/bin/memgauge");
    fs::write(&path, &program.memgauge)?;
    ensure!(Command::new("chmod").arg("755").arg(&path).status()?.success(), "chmod {}", path.display());
    let units = project_folder().join("packaging/systemd");
    let mut names = Vec::new();
    for entry in fs::read_dir(&units)? {
        let entry = entry?;
        fs::copy(entry.path(), folder.join(entry.file_name()))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    ensure!(names.len() == 3, "{}: {names:?}", units.display());
    // The targets of a whole system are not there.
    analyze(
        &root,
        &[&["verify", "--man=no", "--recursive-errors=no"][..], &names.iter().map(String::as_str).collect::<Vec<_>>()].concat(),
    )?;
    let most = format!("--threshold={MOST_EXPOSED}");
    for service in ["memgauge.service", "memgauge-watch.service"] {
        analyze(&root, &["security", "--offline=yes", "--no-pager", &most, service])?;
    }
    // That it accepts the service proves something only if it refuses others.
    let service = folder.join("memgauge.service");
    let text = fs::read_to_string(&service)?;
    for (what, changed) in [
        ("a word that no unit has", text.replace("ProtectHome=", "ProtectHouse=")),
        ("a program that is not there", text.replace("/usr/bin/memgauge", "/usr/bin/memgauges")),
    ] {
        ensure!(changed != text, "{} has nothing to change into {what}", service.display());
        fs::write(&service, changed)?;
        let verified = analyze(&root, &["verify", "--man=no", "--recursive-errors=no", "memgauge.service"]);
        ensure!(verified.is_err(), "systemd-analyze verify accepts {what}");
    }
    Ok(Passed)
}

/// Runs `systemd-analyze` on a root. A complaint on standard error is an error, even if the exit status is a success.
fn analyze(root: &Path, words: &[&str]) -> Result<()> {
    let output = Command::new("systemd-analyze").arg("--root").arg(root).args(words).output()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().last().unwrap_or_default();
    ensure!(output.status.success() && complaints.trim().is_empty(), "systemd-analyze {}: {} {last}", words.join(" "), complaints.trim());
    Ok(())
}
