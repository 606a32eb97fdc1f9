//! Programs of the host: finding and running them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::folders::{project_folder, target_folder};

/// The program of this name on `PATH`, or where Debian keeps those of the administrator.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder: PathBuf| folder.join(name)).find(|file| file.exists())
}

/// For Cargo: tests of edges, of kernels and of recipes need little of the model, and optimising it for each would take half a minute.
pub(crate) const UNOPTIMISED: [&str; 2] = ["--config", "profile.dev.package.memgauge-model.opt-level=0"];

/// The cargo that built this program, in the project's folder. Its compiler may be rustup's proxy, which would take another toolchain for a
/// dependency with a file `rust-toolchain`.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    if let Some(toolchain) = option_env!("RUSTUP_TOOLCHAIN") {
        cargo.env("RUSTUP_TOOLCHAIN", toolchain);
    }
    cargo.current_dir(project_folder());
    cargo
}

/// Cargo, with a linker for another target.
pub(crate) fn cargo_for(target: &str, linker: &str) -> Command {
    let mut cargo = cargo();
    cargo.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), linker);
    cargo
}

/// Builds memgauge as its users have it, so that debug builds are never measured.
pub(crate) fn build_release() -> Result<PathBuf> {
    let mut cargo = cargo();
    cargo.args(["build", "--release", "--bin", "memgauge"]);
    ensure!(cargo.status()?.success(), "memgauge could not be built");
    Ok(target_folder().join("release/memgauge"))
}

/// Builds packages of this checkout as static programs for an instruction set: with musl and Rust's own linker, so no C toolchain is needed. The
/// folder that they are in.
pub(crate) fn build_static(arch: &str, profile: &str, packages: &[&str]) -> Result<PathBuf> {
    let target = format!("{arch}-unknown-linux-musl");
    run(Command::new("rustup").args(["target", "add", &target]))
        .with_context(|| format!("the Rust target {target} is missing, and rustup could not add it"))?;
    let mut cargo = cargo_for(&target, "rust-lld");
    cargo.args(["build", "--quiet", "--profile", profile, "--target", &target]);
    cargo.args(packages.iter().flat_map(|package| ["-p", package]));
    ensure!(cargo.status()?.success(), "the programs for {target} do not build");
    Ok(target_folder().join(target).join(profile))
}

/// Runs a program to its end and gives what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{} failed: {}", command.get_program().display(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
