//! The programs of a release: built here, or taken from where cargo left them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::linked;
use super::target::{Build, Target, is_windows, program};
use crate::folders::{project_folder, target_folder};
use crate::programs::{self, find_program, run};

/// Both programs of a target.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) memgauge: Vec<u8>,
    pub(super) mlc: Vec<u8>,
    /// Rust's name of what they were built for.
    pub(super) triple: &'static str,
    /// Whether they say which crates they are made of.
    pub(super) auditable: bool,
}

/// Where the programs of a target come from.
pub(super) struct Origin {
    way: &'static Build,
    /// Where cargo has left them; `None` when they are to be built.
    folder: Option<PathBuf>,
}

impl Origin {
    /// A way to build them here, or where they are in `folder`.
    ///
    /// # Errors
    /// When there is neither.
    pub(super) fn find(target: &Target, folder: Option<&Path>) -> Result<Self> {
        match folder {
            None => Ok(Self { way: Self::way(target)?, folder: None }),
            Some(folder) => {
                let folder = project_folder().join(folder);
                let built = |build: &&Build| release(&folder, build.triple).join(program("memgauge", build.triple)).is_file();
                let names = || target.builds.iter().map(|build| build.triple).collect::<Vec<_>>().join(" or ");
                let way =
                    target.builds.iter().find(built).with_context(|| format!("{} has no programs for {}", folder.display(), names()))?;
                Ok(Self { way, folder: Some(folder) })
            }
        }
    }

    /// Builds them, or reads those that are there.
    ///
    /// # Errors
    /// When they do not build, or need more than their system has.
    pub(super) fn programs(&self) -> Result<Programs> {
        match &self.folder {
            None => Programs::compiled(self.way, &project_folder(), &target_folder().join("dist")),
            Some(folder) => Programs::read(folder, self.way.triple),
        }
    }

    /// A target's first way to build that needs nothing that is missing here.
    fn way(target: &Target) -> Result<&'static Build> {
        let mut why = Vec::new();
        for way in target.builds {
            let added = run(Command::new("rustup").args(["target", "add", way.triple]).env("RUST_BACKTRACE", "0"));
            match added {
                Err(error) => why.push(format!("the Rust target {} cannot be had: {error:#}", way.triple)),
                Ok(_) if find_program(way.linker).is_none() && way.needs.is_some() => {
                    why.push(format!("{} needs {}: {}", way.triple, way.linker, way.needs.unwrap_or_default()));
                }
                Ok(_) => {
                    why.iter().for_each(|why| println!("{why}"));
                    return Ok(way);
                }
            }
        }
        bail!("{} cannot be built here: {}", target.name, why.join("; "))
    }
}

impl Programs {
    /// Builds the sources in `source` below `folder`.
    ///
    /// # Errors
    /// When they do not build, in none of the ways that the target has.
    pub(super) fn build(target: &Target, source: &Path, folder: &Path) -> Result<Self> {
        Self::compiled(Origin::way(target)?, source, folder)
    }

    fn compiled(way: &Build, source: &Path, folder: &Path) -> Result<Self> {
        compile(way, source, folder)?;
        let programs = Self::read(folder, way.triple)?;
        for program in [&programs.memgauge, &programs.mlc].into_iter().filter(|_| is_windows(way.triple)) {
            ensure!(linked::linked_at(program)? == 0, "the programs for {} say when they were linked", way.triple);
        }
        Ok(programs)
    }

    /// Reads what cargo has built.
    fn read(folder: &Path, triple: &'static str) -> Result<Self> {
        let read = |name: &str| -> Result<Vec<u8>> {
            let path = release(folder, triple).join(program(name, triple));
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let needed = linked::needed(&bytes).with_context(|| path.display().to_string())?;
            ensure!(needed.is_empty(), "{} needs what not every system of its kind has: {}", path.display(), needed.join(", "));
            Ok(bytes)
        };
        let (memgauge, mlc) = (read("memgauge")?, read("mlc")?);
        let auditable = linked::crates(&memgauge)?.is_some() && linked::crates(&mlc)?.is_some();
        Ok(Self { auditable, memgauge, mlc, triple })
    }
}

/// Where cargo leaves released programs.
fn release(folder: &Path, triple: &str) -> PathBuf {
    folder.join(triple).join("release")
}

/// Builds both programs with nothing in them that depends on where that is.
fn compile(way: &Build, source: &Path, folder: &Path) -> Result<()> {
    let mut cargo = programs::cargo();
    if can_audit() {
        cargo.arg("auditable");
    }
    cargo.args(["build", "--release", "--locked", "--package", "memgauge", "--target", way.triple]).current_dir(source);
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![
        remap(&source.canonicalize()?, "/memgauge"),
        remap(&cargo_home(), "/cargo"),
        "-Ctarget-feature=+crt-static".to_owned(),
        format!("-Clinker={}", way.linker),
    ];
    flags.extend(way.flags.iter().map(|flag| format!("-Clink-arg={flag}")));
    if way.needs.is_none() {
        flags.push("-Clink-self-contained=yes".to_owned());
    }
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env("CARGO_TARGET_DIR", folder);
    println!("building for {}", way.triple);
    ensure!(cargo.status().context("cannot start cargo")?.success(), "the programs for {} do not build", way.triple);
    Ok(())
}

/// Whether cargo-auditable is installed: beside cargo itself, or on PATH.
pub(super) fn can_audit() -> bool {
    find_program("cargo-auditable").is_some() || cargo_home().join("bin/cargo-auditable").exists()
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
