//! `cargo xtask windows`: the programs for Windows, built here and run under Wine.

mod cases;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use cases::{CASES, FILES};

use crate::folders::{project_folder, target_folder};
use crate::programs::{self, UNOPTIMISED, find_program, run};
use crate::wine::{TARGET, Wine};

/// Rust calls it to link for this target.
const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// The crates of the edge towards the system, which are built within a minute.
const EDGE: &[&str] = &["memgauge-windows", "memgauge-os", "memgauge-kernels"];
/// The other crates whose unit and property tests run there.
const REST: &[&str] =
    &["memgauge-model", "memgauge-planner", "memgauge-analysis", "memgauge-engine", "memgauge-render", "memgauge-fleet", "memgauge"];
/// Tests of these crates that cannot pass there.
const LEFT_OUT: &[&str] = &[
    // It finds a file without a name in /proc.
    "what_is_in_place_of_memory_that_faulted_is_no_mismatch",
    // Wine 8 does not know the CPU time of a thread (QueryThreadCycleTime), which is needed to determine its time off the CPU.
    "a_thread_notes_each_slot_and_its_cpu_time_in_each_window",
    "samples_are_right_however_long_a_reading_of_the_clock_takes",
    // They read files of Linux that the test writes: its identity, and its counts of memory errors.
    "a_host_is_read_unless_it_is_withheld",
    "memory_errors_are_those_of_the_whole_run",
    // They write weights of Linux' memory, and files in place of its registers.
    "what_a_search_found_is_written_and_told",
    "real_registers_and_a_privileged_program_have_no_stand_in",
    // Process 1 is always there on Linux only.
    "what_an_earlier_process_of_the_same_number_left_is_removed",
];

/// The arguments of `cargo xtask windows`.
#[derive(Debug, clap::Args)]
pub(crate) struct WindowsArgs {
    /// Only the crates of the edge towards the system, without the programs
    #[arg(long)]
    edge: bool,
    /// Only build the tests of crates
    #[arg(long)]
    build: bool,
    /// Only what the programs print: help, errors and commands, without tests of crates
    #[arg(long, conflicts_with = "edge")]
    commands: bool,
}

pub(crate) fn windows(args: &WindowsArgs) -> Result<()> {
    let begun = Instant::now();
    let missing = |why: &dyn std::fmt::Display| {
        println!("not checked: {why:#}");
        println!("0 passed, 0 failed, in {:.1} s", begun.elapsed().as_secs_f64());
        Ok(())
    };
    let (Some(wine), Some(_)) = (Wine::find()?, find_program(LINKER)) else {
        return missing(&"Wine or mingw is not installed (on Debian: apt-get install wine64 gcc-mingw-w64-x86-64)");
    };
    if let Err(why) = has_target() {
        return missing(&why);
    }
    if args.build {
        return run(tests(&wine, args.edge).arg("--no-run")).map(drop);
    }
    let mut tally = Tally::default();
    if !args.commands {
        units(&wine, args.edge, &mut tally)?;
    }
    if !args.edge {
        let programs = build()?;
        commands(&wine, &programs, &mut tally)?;
        ctrl_c(&wine, &programs, &mut tally)?;
        goldens(&wine, &programs, &mut tally)?;
    }
    println!("{} passed, {} failed, in {:.1} s", tally.passed, tally.failed, begun.elapsed().as_secs_f64());
    ensure!(tally.failed == 0, "tests under Wine failed");
    Ok(())
}

fn has_target() -> Result<()> {
    run(Command::new("rustup").args(["target", "add", TARGET])).map(drop).with_context(|| format!("the Rust target {TARGET} cannot be had"))
}

/// The numbers of tests that passed and failed.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    fn count(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => {
                self.passed += 1;
                println!("test windows {name} ... ok");
            }
            Err(why) => {
                self.failed += 1;
                println!("test windows {name} ... FAILED: {why:#}");
            }
        }
    }

    /// Adds what a test program of cargo's says at its end, and prints the tests that failed.
    fn add_cargos(&mut self, printed: &str) {
        for line in printed.lines() {
            let number = |after: &str| line.split(after).next()?.split_whitespace().last()?.parse::<usize>().ok();
            if line.starts_with("test result:") {
                self.passed += number(" passed").unwrap_or(0);
                self.failed += number(" failed").unwrap_or(0);
                println!("{line}");
            } else if line.ends_with("FAILED") || line.contains("panicked at") {
                println!("{line}");
            }
        }
    }
}

/// Cargo, which runs what it builds under Wine.
fn cargo(wine: &Wine) -> Command {
    let mut cargo = programs::cargo();
    wine.set(&mut cargo).env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &wine.program);
    // The gate's wrapper is for the programs of this system.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    cargo
}

/// Cargo with the unit and property tests of crates.
fn tests(wine: &Wine, edge: bool) -> Command {
    let mut command = cargo(wine);
    command.args(["test", "--quiet", "--no-fail-fast", "--lib", "--target", TARGET]);
    command.args(if edge { &UNOPTIMISED[..] } else { &[] });
    let crates = EDGE.iter().chain(if edge { &[] } else { REST });
    command.args(crates.flat_map(|name| ["-p", name]));
    command
}

/// Runs them.
fn units(wine: &Wine, edge: bool, tally: &mut Tally) -> Result<()> {
    let mut command = tests(wine, edge);
    command.arg("--").args(LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
    let before = tally.passed;
    let output = command.stdin(Stdio::null()).output()?;
    tally.add_cargos(&String::from_utf8_lossy(&output.stdout));
    let text = || String::from_utf8_lossy(&output.stderr).lines().rev().take(30).collect::<Vec<_>>().join("\n");
    ensure!(tally.passed > before, "no test ran: {}", text());
    if !output.status.success() {
        println!("{}", text());
        tally.failed += usize::from(tally.failed == 0);
    }
    Ok(())
}

/// The folder with the programs.
fn build() -> Result<PathBuf> {
    let mut cargo = programs::cargo();
    cargo.args(["build", "--quiet", "--bins", "-p", "memgauge", "--target", TARGET]);
    run(cargo.env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    Ok(target_folder().join(TARGET).join("debug"))
}

/// Help, and errors of the command line, as they are on Linux: the same files as those of `tests/all/commands.rs`.
fn goldens(wine: &Wine, programs: &Path, tally: &mut Tally) -> Result<()> {
    // A program is called in its help as its file is.
    let folder = target_folder().join("windows-goldens");
    fs::create_dir_all(folder.join("programs"))?;
    let program = folder.join("programs/memgauge");
    fs::copy(programs.join("memgauge.exe"), &program)?;
    let script = folder.join("memgauge");
    fs::write(&script, format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", wine.program.display(), program.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    // clap wraps help to the terminal; goldens are for one width.
    for (columns, files) in [("100", "tests/cmd/*.trycmd"), ("80", "tests/cmd/brief/*.trycmd")] {
        let cases = trycmd::TestCases::new();
        for (name, value) in wine.variables() {
            cases.env(name, value);
        }
        cases.register_bin("memgauge", &script).env("COLUMNS", columns).case(project_folder().join(files));
        // It prints the differences and panics where there are some.
        let outcome = catch_unwind(AssertUnwindSafe(|| cases.run()));
        tally.count(&format!("goldens {files}"), outcome.map_err(|_| anyhow::anyhow!("the differences are printed above")));
    }
    Ok(())
}

/// Commands with small budgets, and bad input.
fn commands(wine: &Wine, programs: &Path, tally: &mut Tally) -> Result<()> {
    let folder = target_folder().join("windows-commands");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    for (name, text) in FILES {
        fs::write(folder.join(name), text)?;
    }
    for case in CASES {
        let output = wine.run(&programs.join(format!("{}.exe", case.program)), &folder, case.line)?;
        tally.count(&format!("{} {}", case.program, case.line), case.check(&output, &folder));
    }
    Ok(())
}

/// Ctrl-C in the middle of a run ends it soon, and its results are kept. Wine makes an event of the console of SIGINT; Ctrl-Break, which
/// programs send each other, it refuses.
fn ctrl_c(wine: &Wine, programs: &Path, tally: &mut Tally) -> Result<()> {
    /// The exit status of an interrupted run.
    const INTERRUPTED: i32 = 130;
    /// Half a second, as the manual says, and as much again for Wine, which hands the signal from one process to another.
    const SOON: Duration = Duration::from_secs(1);
    let file = target_folder().join("windows-commands/interrupted.json");
    let mut command = Command::new(&wine.program);
    command.arg(programs.join("memgauge.exe")).args(["bandwidth", "--peak", "--time", "1s", "--size", "16m", "-o"]).arg(&file);
    let mut child = wine.set(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    // Some of the ten mixes, each of which takes a second and its trials.
    thread::sleep(Duration::from_secs(7));
    let asked = Instant::now();
    // SAFETY: kill takes no pointer. The number is the child's: it has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let status = child.wait()?;
    let took = asked.elapsed();
    let text = fs::read_to_string(&file).unwrap_or_default();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let results = report["results"].as_array().map_or(&[] as &[_], Vec::as_slice);
    let values = results.iter().filter(|m| m["value"].is_number()).count();
    println!("Ctrl-C: {status} after {:.0} ms, with {values} values", took.as_secs_f64() * 1e3);
    tally.count("Ctrl-C in the middle of a run", {
        let complete = &report["complete"];
        if status.code() == Some(INTERRUPTED) && took < SOON && *complete == false && values > 0 {
            Ok(())
        } else {
            Err(anyhow::anyhow!("{status} after {took:?}; complete: {complete}, {values} of {} results have a value", results.len()))
        }
    });
    Ok(())
}
