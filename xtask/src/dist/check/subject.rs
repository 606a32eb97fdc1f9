//! The subject of the checks, and the outcomes of a check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::dist::build::Programs;
use crate::dist::release::{DistArgs, Release};
use crate::dist::target::{Names, Target};
use crate::folders::target_folder;
use crate::programs::find_program;

/// The release that is checked.
pub(in crate::dist) struct Checked<'a> {
    pub(in crate::dist) args: &'a DistArgs,
    /// Where the packages are.
    pub(in crate::dist) out: &'a Path,
    pub(in crate::dist) release: &'a Release,
    pub(in crate::dist) targets: &'a [&'static Target],
    pub(in crate::dist) programs: &'a BTreeMap<&'static str, Programs>,
    pub(in crate::dist) packages: &'a BTreeMap<String, Vec<u8>>,
    /// The same, packed a second time.
    pub(in crate::dist) packed_again: &'a BTreeMap<String, Vec<u8>>,
}

/// How a check ended, if nothing was wrong.
pub(super) enum Outcome {
    Passed,
    /// A thing that the check needs is not available here; says which.
    NotChecked(String),
}

impl Checked<'_> {
    /// The packages with this ending, of one instruction set or of all.
    pub(super) fn with_ending(&self, ending: &str) -> Vec<PathBuf> {
        self.packages.keys().filter(|name| name.ends_with(ending)).map(|name| self.out.join(name)).collect()
    }

    /// The packages' names for this machine's instruction set, if there are any packages for it.
    pub(super) fn own(&self) -> Result<&'static Names> {
        let own = self.targets.iter().copied().find(|target| target.runs_here()).and_then(Target::linux);
        own.context("no package is for this machine's instruction set")
    }
}

/// A folder for one check, empty.
pub(super) fn scratch(name: &str) -> Result<PathBuf> {
    let folder = target_folder().join("dist-check").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The outcome that names the missing programs; `None` if all are installed.
pub(super) fn missing(programs: &[&str]) -> Option<Outcome> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| find_program(program).is_none()).collect();
    (!missing.is_empty()).then(|| Outcome::NotChecked(format!("{} is not installed", missing.join(" and "))))
}
