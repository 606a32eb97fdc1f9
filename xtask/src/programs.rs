//! Programs of the host: finding and running them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The program of this name on `PATH`, or where Debian keeps those of the administrator.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder: PathBuf| folder.join(name)).find(|file| file.exists())
}

/// Cargo, with a linker for another target.
pub(crate) fn cargo_for(target: &str, linker: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), linker);
    cargo.current_dir(crate::folders::project_folder());
    cargo
}

/// Runs a program to its end and gives what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{} failed: {}", command.get_program().display(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
