//! `cargo xtask integrations`: the tests of the folders in `integrations/`, each with the engine that it is for.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use crate::folders::project_folder;

/// The status of a test whose engine is not installed (`integrations/testing.py`).
const NOT_INSTALLED: i32 = 77;

/// The arguments of `cargo xtask integrations`.
#[derive(Debug, clap::Args)]
pub(crate) struct IntegrationsArgs {
    /// Which [default: all]
    names: Vec<String>,
    /// The memgauge to run [default: a release build of this checkout]
    #[arg(long, value_name = "PROGRAM")]
    memgauge: Option<PathBuf>,
    /// The Python to run the tests with; engines that are installed beside it are found
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

pub(crate) fn integrations(args: &IntegrationsArgs) -> Result<()> {
    let tests = tests()?;
    if let Some(unknown) = args.names.iter().find(|name| !tests.contains_key(*name)) {
        bail!("there is no integration {unknown}: {}", tests.keys().cloned().collect::<Vec<_>>().join(", "));
    }
    let memgauge = args.memgauge.clone().map_or_else(crate::peers::build, Ok)?;
    let memgauge = memgauge.canonicalize().with_context(|| format!("no program {}", memgauge.display()))?;
    let chosen = tests.iter().filter(|(name, _)| args.names.is_empty() || args.names.contains(name));
    let (started, mut passed, mut failed, mut not_checked) = (Instant::now(), 0, 0, Vec::new());
    for (name, test) in chosen {
        let begun = Instant::now();
        let mut command = Command::new(&args.python);
        command.arg(test).env("MEMGAUGE", &memgauge).stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(beside) = args.python.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(beside.to_path_buf()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders)?);
        }
        let mut child = command.spawn().with_context(|| format!("cannot start {}", args.python.display()))?;
        let mut failures = 0;
        for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
            let line = line?;
            println!("{line}");
            if line.starts_with("test ") && line.contains(" ... ok") {
                passed += 1;
            } else if line.starts_with("test ") {
                failures += 1;
            }
        }
        let status = child.wait()?;
        if status.code() == Some(NOT_INSTALLED) {
            not_checked.push(name.as_str());
        } else if !status.success() {
            // A test that ended without a line failed as well.
            failures = failures.max(1);
        }
        failed += failures;
        println!("integration {name}: {:.1} s\n", begun.elapsed().as_secs_f64());
    }
    if !not_checked.is_empty() {
        println!("not checked, because their engines are not installed: {}", not_checked.join(", "));
    }
    println!("{passed} passed, {failed} failed, in {:.1} s", started.elapsed().as_secs_f64());
    ensure!(failed == 0, "integrations failed");
    Ok(())
}

/// The test of each folder, by its name.
fn tests() -> Result<BTreeMap<String, PathBuf>> {
    let mut tests = BTreeMap::new();
    let folder = project_folder().join("integrations");
    for entry in folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let test = entry.path().join("test.py");
        if test.is_file() {
            tests.insert(entry.file_name().to_string_lossy().into_owned(), test);
        }
    }
    Ok(tests)
}
