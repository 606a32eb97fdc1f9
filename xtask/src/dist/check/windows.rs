//! The zip for Windows: unpacked, listed, and its programs run under Wine.

use std::collections::BTreeSet;
use std::fs::{self, File};

use anyhow::{Result, ensure};
use zip::ZipArchive;

use super::subject::Outcome::{NotChecked, Passed};
use super::subject::{Checked, Outcome, scratch};
use crate::dist::linked;
use crate::dist::target::Target;
use crate::wine::Wine;

/// The files of the archive. It may contain more schemas, and nothing else.
const FILES: &[&str] = &[
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "THIRD-PARTY.txt",
    "docs/prefetch.md",
    "docs/scripts.md",
    "docs/windows.md",
    "memgauge.exe",
    "mlc.exe",
    "schema/result.schema.json",
];

pub(super) fn zip(checked: &Checked<'_>, target: &Target) -> Result<Outcome> {
    let name = format!("memgauge-{}-{}", checked.release.version, target.platform());
    let folder = scratch("zip")?;
    let mut archive = ZipArchive::new(File::open(checked.out.join(format!("{name}.zip")))?)?;
    let expected: BTreeSet<String> = FILES.iter().map(|file| format!("{name}/{file}")).collect();
    // Every schema is as welcome as the one that is expected.
    let (schemas, others): (BTreeSet<String>, BTreeSet<String>) =
        archive.file_names().map(str::to_owned).partition(|path| path.ends_with(".schema.json") && !expected.contains(path));
    ensure!(others == expected, "{name}.zip has {others:?}");
    ensure!(schemas.iter().all(|path| path.starts_with(&format!("{name}/schema/"))), "{name}.zip has {schemas:?}");
    archive.extract(&folder)?;
    let folder = folder.join(&name);
    for program in ["memgauge.exe", "mlc.exe"] {
        let bytes = fs::read(folder.join(program))?;
        let needed = linked::needed(&bytes)?;
        ensure!(needed.is_empty(), "{program} needs {}", needed.join(", "));
    }
    let Some(wine) = Wine::find()? else {
        return Ok(NotChecked("its programs did not run: there is no Wine (on Debian: apt-get install wine64)".to_owned()));
    };
    let said = |program: &str, argument: &str| -> Result<String> {
        let output = wine.run(&folder.join(program), &folder, argument)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{program} {argument}: {}: {text}", output.status);
        Ok(text)
    };
    let version = said("memgauge.exe", "--version")?;
    ensure!(version.starts_with(&format!("memgauge {} (", checked.release.version)), "{version}");
    let info = said("memgauge.exe", "info")?;
    ensure!(info.contains("CPUs"), "memgauge info: {info}");
    let help = said("mlc.exe", "--help")?;
    ensure!(help.contains("--loaded_latency"), "mlc --help: {help}");
    Ok(Passed)
}
