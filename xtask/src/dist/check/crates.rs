//! The crates: as cargo packs them for a registry, and as the programs list them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;
use tar::Archive;

use super::subject::Outcome::{NotChecked, Passed};
use super::subject::{Checked, Outcome, scratch};
use crate::dist::{build, linked};
use crate::folders::project_folder;
use crate::programs::{cargo, run};

/// The files that the licences require in every crate.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Packs every crate that is published, offline: all that they need was fetched when they were built.
pub(super) fn packed() -> Result<Outcome> {
    let folder = scratch("crates")?;
    let metadata = run(cargo().args(["metadata", "--no-deps", "--format-version", "1", "--offline"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("what cargo metadata says")?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let (published, own): (Vec<&Value>, Vec<&Value>) = packages.iter().partition(|package| package["publish"].is_null());
    let mut command = cargo();
    command.args(["package", "--workspace", "--no-verify", "--offline", "--locked", "--allow-dirty", "--quiet"]);
    for package in own {
        command.arg("--exclude").arg(package["name"].as_str().context("a package without a name")?);
    }
    run(command.env("CARGO_TARGET_DIR", &folder))?;
    for package in published {
        let (name, version) = (package["name"].as_str().unwrap_or_default(), package["version"].as_str().unwrap_or_default());
        lists_what_it_should(&folder.join("package").join(format!("{name}-{version}.crate")), &format!("{name}-{version}"))?;
    }
    Ok(Passed)
}

/// Whether each program lists every crate that is linked into it. More may be listed: those that only build it.
pub(super) fn listed_in_programs(checked: &Checked<'_>) -> Result<Outcome> {
    let mut without = Vec::new();
    for (name, programs) in checked.programs {
        let linked = crate::dist::crates::linked(programs.triple)?;
        for (program, bytes) in [("memgauge", &programs.memgauge), ("mlc", &programs.mlc)] {
            let Some(listed) = linked::crates(bytes)? else {
                without.push(format!("{program} for {name}"));
                continue;
            };
            let missing = linked.iter().find(|krate| !listed.contains(&(krate.name.clone(), krate.version.clone())));
            ensure!(missing.is_none(), "{program} for {name} does not list {}", missing.map_or("", |krate| &krate.name));
        }
    }
    if without.is_empty() {
        return Ok(Passed);
    }
    let without = without.join(", ");
    // Programs that were built elsewhere (--programs) may have been built without it.
    ensure!(checked.args.programs.is_some() || !build::can_audit(), "cargo-auditable left no list of crates in {without}");
    Ok(NotChecked(format!("no list of crates is in {without}: build with cargo-auditable (cargo install cargo-auditable --locked)")))
}

/// Whether a packed crate has its README, and the licences as files and not as links to files outside of it.
fn lists_what_it_should(path: &Path, root: &str) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cargo package made no {}", path.display()))?;
    let (mut archive, mut found) = (Archive::new(GzDecoder::new(file)), BTreeSet::new());
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.strip_prefix(root)?.to_string_lossy().into_owned();
        if LICENCES.contains(&name.as_str()) {
            let mut text = Vec::new();
            entry.read_to_end(&mut text)?;
            ensure!(text == fs::read(project_folder().join(&name))?, "{root}: {name} is another one");
        }
        found.insert(name);
    }
    for name in LICENCES.iter().chain(&["README.md", "Cargo.toml"]) {
        ensure!(found.contains(*name), "{root}: the packed crate has no {name}");
    }
    Ok(())
}
