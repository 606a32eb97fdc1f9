//! The programs of a release: built here, or taken from where cargo left them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::target::Target;
use crate::folders::{project_folder, target_folder};
use crate::programs::{find_program, run};

/// The section in which cargo-auditable leaves the list of crates.
const AUDIT_SECTION: &[u8] = b".dep-v0\0";

/// Both programs of one instruction set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) memgauge: Vec<u8>,
    pub(super) mlc: Vec<u8>,
    /// Whether they say which crates they are made of.
    pub(super) auditable: bool,
}

impl Programs {
    /// Builds them, or reads those in `folder`.
    ///
    /// # Errors
    /// When they do not build, are missing or are not static.
    pub(super) fn of(target: &Target, folder: Option<&Path>) -> Result<Self> {
        let folder = match folder {
            Some(folder) => project_folder().join(folder),
            None => {
                let folder = target_folder().join("dist");
                build(target, &project_folder(), &folder)?;
                folder
            }
        };
        Self::read(&folder.join(target.triple).join("release"))
    }

    /// Reads what cargo has built.
    ///
    /// # Errors
    /// When a program is missing or needs shared libraries.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let read = |name: &str| -> Result<Vec<u8>> {
            let path = folder.join(name);
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            ensure!(bytes.starts_with(b"\x7fELF"), "{} is no program", path.display());
            ensure!(!needs_interpreter(&bytes), "{} is not static: it asks for a dynamic linker", path.display());
            Ok(bytes)
        };
        let (memgauge, mlc) = (read("memgauge")?, read("mlc")?);
        let says = |bytes: &[u8]| bytes.windows(AUDIT_SECTION.len()).any(|window| window == AUDIT_SECTION);
        Ok(Self { auditable: says(&memgauge) && says(&mlc), memgauge, mlc })
    }
}

/// Builds both programs of the sources in `source` below `folder`, with nothing in them that depends on where that is.
///
/// # Errors
/// When they do not build.
pub(super) fn build(target: &Target, source: &Path, folder: &Path) -> Result<()> {
    run(Command::new("rustup").args(["target", "add", target.triple])).with_context(|| format!("the Rust target {}", target.triple))?;
    let mut cargo = Command::new(env!("CARGO"));
    // Beside cargo itself, or on PATH.
    if find_program("cargo-auditable").is_some() || cargo_home().join("bin/cargo-auditable").exists() {
        cargo.arg("auditable");
    }
    cargo.args(["build", "--release", "--locked", "--package", "memgauge", "--target", target.triple]).current_dir(source);
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [
        remap(&source.canonicalize()?, "/memgauge"),
        remap(&cargo_home(), "/cargo"),
        "-Ctarget-feature=+crt-static".to_owned(),
        "-Clinker=rust-lld".to_owned(),
        "-Clink-self-contained=yes".to_owned(),
    ];
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env("CARGO_TARGET_DIR", folder);
    println!("building for {}", target.triple);
    ensure!(cargo.status().context("cannot start cargo")?.success(), "the programs for {} do not build", target.triple);
    Ok(())
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// Whether an ELF file of 64 bits, least significant byte first, has a header of type PT_INTERP.
fn needs_interpreter(elf: &[u8]) -> bool {
    const INTERP: u32 = 3;
    let number = |at: usize, bytes: usize| elf.get(at..at + bytes).map(|b| b.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)));
    let (Some(table), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2)) else { return true };
    (0..count).any(|i| number((table + i * size) as usize, 4) == Some(u64::from(INTERP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_dynamic_linker_is_known() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(needs_interpreter(&own), !cfg!(target_feature = "crt-static"));
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        assert!(!needs_interpreter(&header), "no program headers");
    }
}
