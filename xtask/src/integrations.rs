//! `cargo xtask integrations`: the tests of the folders in `integrations/`, each with the engine that it is for.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::folders::project_folder;
use crate::programs::build_static;

/// The status of a test whose engine is not installed (`integrations/testing.py`).
const NOT_INSTALLED: i32 = 77;
/// How long the test of a folder may take. The slowest needs half a minute here; one whose engine hangs must not stop the gate.
const LIMIT: Duration = Duration::from_secs(600);
/// How long it then has to end the engines that it started.
const GRACE: Duration = Duration::from_secs(60);
/// How often it is looked whether a test has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How long after its end its last lines may take to be read; something that it has started may hold its output longer.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The arguments of `cargo xtask integrations`.
#[derive(Debug, clap::Args)]
pub(crate) struct IntegrationsArgs {
    /// Which [default: all]
    names: Vec<String>,
    /// The memgauge to run [default: a static release build of this checkout]
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
    let memgauge = args.memgauge.clone().map_or_else(build, Ok)?;
    let memgauge = memgauge.canonicalize().with_context(|| format!("no program {}", memgauge.display()))?;
    let chosen = tests.iter().filter(|(name, _)| args.names.is_empty() || args.names.contains(name));
    let (started, mut passed, mut failed, mut not_checked) = (Instant::now(), 0, 0, Vec::new());
    for (name, test) in chosen {
        let begun = Instant::now();
        let mut command = Command::new(&args.python);
        command.arg(test).env("MEMGAUGE", &memgauge);
        if let Some(beside) = args.python.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(beside.to_path_buf()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(folders)?);
        }
        let run = run_test(&mut command, LIMIT, GRACE).with_context(|| format!("cannot run {}", test.display()))?;
        passed += run.passed;
        failed += run.failed;
        if run.status.code() == Some(NOT_INSTALLED) {
            not_checked.push(name.as_str());
        } else if !run.status.success() && run.failed == 0 {
            // A test that ended without a line failed as well.
            failed += 1;
        }
        if run.ended {
            println!("integration {name}: ended, because it was not done after {} s", LIMIT.as_secs());
        }
        println!("integration {name}: {:.1} s\n", begun.elapsed().as_secs_f64());
    }
    if !not_checked.is_empty() {
        println!("not checked, because their engines are not installed: {}", not_checked.join(", "));
    }
    println!("{passed} passed, {failed} failed, in {:.1} s", started.elapsed().as_secs_f64());
    ensure!(failed == 0, "integrations failed");
    Ok(())
}

/// Builds the program as it is released: static, because an image has no C library.
fn build() -> Result<PathBuf> {
    Ok(build_static(std::env::consts::ARCH, "release", &["memgauge"])?.join("memgauge"))
}

/// What came of the test of a folder.
#[derive(Debug)]
struct TestRun {
    passed: usize,
    failed: usize,
    status: ExitStatus,
    /// Whether it was ended, because it was not done in time.
    ended: bool,
}

/// Runs a test to its end, prints its lines, and counts those that say how a part of it went.
///
/// After `limit` it is asked to end, which `integrations/testing.py` answers by ending what it has started and by naming the part that
/// ran; after `grace`, it is killed with its process group.
fn run_test(command: &mut Command, limit: Duration, grace: Duration) -> Result<TestRun> {
    let began = Instant::now();
    // A group of its own: the signals reach what the test waits for.
    let mut child = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no output")?;
    let (sender, lines) = channel();
    thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
    let (mut passed, mut failed, mut ended, mut gone) = (0, 0, false, None);
    let status = loop {
        let status = child.try_wait()?;
        let gone_for = status.map(|_| gone.get_or_insert_with(Instant::now).elapsed());
        match (lines.recv_timeout(LOOK), status) {
            (Ok(line), _) => {
                println!("{line}");
                let part = line.starts_with("test ");
                passed += usize::from(part && line.contains(" ... ok"));
                failed += usize::from(part && !line.contains(" ... ok"));
            }
            (Err(RecvTimeoutError::Disconnected), Some(status)) => break status,
            (Err(RecvTimeoutError::Timeout), Some(status)) if gone_for > Some(LAST_LINES) => break status,
            (Err(RecvTimeoutError::Disconnected), None) => thread::sleep(LOOK),
            (Err(RecvTimeoutError::Timeout), _) => {}
        }
        if status.is_none() && !ended && began.elapsed() > limit {
            ended = true;
            signal_group(&child, libc::SIGTERM);
        } else if status.is_none() && began.elapsed() > limit + grace {
            signal_group(&child, libc::SIGKILL);
        }
    };
    Ok(TestRun { passed, failed, status, ended })
}

/// Sends a signal to a process that was not waited for, and to all of its group.
fn signal_group(child: &Child, signal: libc::c_int) {
    // SAFETY: kill takes no pointer. The group is the child's own: its number is in use until the child has been waited for.
    unsafe { libc::kill(-(child.id() as libc::pid_t), signal) };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_are_counted() {
        let script = "echo 'test a::b ... ok (0.1 s)'; echo 'test a::c ... FAILED'; echo '    why: test'; exit 1";
        let run = run_test(&mut sh(script), LIMIT, GRACE).unwrap();
        assert_eq!((run.passed, run.failed, run.status.code(), run.ended), (1, 1, Some(1), false));
    }

    #[test]
    fn what_hangs_is_ended_with_all_that_it_started() {
        let folder = std::env::temp_dir().join(format!("memgauge-integrations-{}", std::process::id()));
        // The first asks for nothing but a signal; the second listens to none.
        for (script, grace) in [("", GRACE), ("trap '' TERM; ", Duration::from_millis(100))] {
            let script = format!("{script}sleep 600 & echo $! >{}; wait; sleep 600", folder.display());
            let run = run_test(&mut sh(&script), Duration::from_secs(2), grace).unwrap();
            assert!(run.ended && !run.status.success());
            let sleeper = std::fs::read_to_string(&folder).unwrap();
            // Gone, or not yet waited for by whoever inherited it; a busy machine may need a moment for that.
            let stat = format!("/proc/{}/stat", sleeper.trim());
            let is_there = || std::fs::read_to_string(&stat).is_ok_and(|state| !state.contains(") Z "));
            let deadline = Instant::now() + Duration::from_secs(30);
            while is_there() && Instant::now() < deadline {
                thread::sleep(LOOK);
            }
            assert!(!is_there(), "{stat}");
            std::fs::remove_file(&folder).unwrap();
        }
    }
}
