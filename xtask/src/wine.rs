//! Wine, which runs programs for Windows here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result};

use crate::folders::{project_folder, target_folder};
use crate::programs::{find_program, run};

/// The target of the programs that it runs.
pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";
/// Debian's path of Wine, outside of PATH.
const DEBIANS: &str = "/usr/lib/wine/wine64";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";
/// A library of Windows that Rust's standard library needs and Wine 8 does not have, and our source of it.
const RANDOM: &str = "drive_c/windows/system32/bcryptprimitives.dll";
const RANDOM_SOURCE: &str = "xtask/src/wine/bcryptprimitives.c";

/// A folder that Wine uses as drive C, and its server until the value goes away.
pub(crate) struct Wine {
    pub(crate) program: PathBuf,
    prefix: PathBuf,
}

impl Wine {
    /// Wine, if it is installed here and the library that it lacks can be built.
    ///
    /// # Errors
    /// When it is there and does not start.
    pub(crate) fn find() -> Result<Option<Self>> {
        let debians = || Some(PathBuf::from(DEBIANS)).filter(|wine| wine.exists());
        let Some(program) = find_program("wine64").or_else(debians).or_else(|| find_program("wine")) else { return Ok(None) };
        let wine = Self { program, prefix: target_folder().join("wine") };
        let library = wine.prefix.join(RANDOM);
        let Some(compiler) = find_program(COMPILER) else { return Ok(None) };
        if !library.parent().is_some_and(Path::exists) {
            fs::create_dir_all(&wine.prefix)?;
            run(wine.set(&mut Command::new(&wine.program)).args(["wineboot", "-i"])).context("Wine does not start")?;
        }
        // It is built each time, which takes a moment: its source may have changed.
        let source = project_folder().join(RANDOM_SOURCE);
        run(Command::new(compiler).args(["-O2", "-shared", "-o"]).arg(&library).arg(source).arg("-ladvapi32"))?;
        Ok(Some(wine))
    }

    /// Its environment. Its own messages and its debugger would be in the way: tests crash on purpose.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        [("WINEPREFIX", self.prefix.display().to_string()), ("WINEDEBUG", "-all".into()), ("WINEDLLOVERRIDES", "winedbg.exe=d".into())]
            .into_iter()
    }

    /// Gives a command its environment.
    pub(crate) fn set<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(self.variables())
    }

    /// Runs a program with a line of arguments to its end, in a folder.
    ///
    /// # Errors
    /// When Wine does not start.
    pub(crate) fn run(&self, program: &Path, folder: &Path, line: &str) -> Result<Output> {
        let mut command = Command::new(&self.program);
        command.arg(program).args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
        self.set(&mut command).output().with_context(|| format!("{line}: Wine does not start"))
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        let beside = self.program.with_file_name("wineserver64");
        let server = if beside.exists() { beside } else { PathBuf::from("wineserver") };
        let _ = self.set(&mut Command::new(server)).arg("-k").status();
    }
}
