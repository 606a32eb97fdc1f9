//! `cargo xtask windows`: the programs for Windows, built here and run under Wine.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::folders::{project_folder, target_folder};
use crate::programs::{find_program, run};
use crate::wine::Wine;

const TARGET: &str = "x86_64-pc-windows-gnu";
/// Rust calls it to link for this target.
const LINKER: &str = "x86_64-w64-mingw32-gcc";
/// The crates of the edge towards the system, which are built within a minute.
const EDGE: &[&str] = &["memgauge-windows", "memgauge-os", "memgauge-kernels"];
/// The other crates whose unit and property tests run there.
const REST: &[&str] = &["memgauge-core", "memgauge-engine", "memgauge-render", "memgauge-fleet", "memgauge"];
/// Tests of these crates that cannot pass there.
const LEFT_OUT: &[&str] = &[
    // It finds a file without a name in /proc.
    "what_is_in_place_of_memory_that_faulted_is_no_mismatch",
    // Wine 8 does not know the CPU time of a thread (QueryThreadCycleTime).
    "a_thread_notes_each_slot_and_its_cpu_time_in_each_window",
    // They read files of Linux that the test writes: its identity, and its counts of memory errors.
    "a_host_is_read_unless_it_is_withheld",
    "memory_errors_are_those_of_the_whole_run",
    // Process 1 is always there on Linux only.
    "what_an_earlier_process_of_the_same_number_left_is_removed",
];

/// The arguments of `cargo xtask windows`.
#[derive(Debug, clap::Args)]
pub(crate) struct WindowsArgs {
    /// Only the crates of the edge towards the system, as the gate does; without the programs
    #[arg(long)]
    edge: bool,
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
    let mut tally = Tally::default();
    units(&wine, args.edge, &mut tally)?;
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

/// What passed and failed.
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
    let mut cargo = Command::new(env!("CARGO"));
    wine.set(&mut cargo).env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &wine.program).current_dir(project_folder());
    // The gate's wrapper is for the programs of this system.
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    cargo
}

/// The unit and property tests of crates.
fn units(wine: &Wine, edge: bool, tally: &mut Tally) -> Result<()> {
    let mut command = cargo(wine);
    command.args(["test", "--quiet", "--no-fail-fast", "--lib", "--target", TARGET]);
    let crates = EDGE.iter().chain(if edge { &[] } else { REST });
    command.args(crates.flat_map(|name| ["-p", name])).arg("--").args(LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
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
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--bins", "-p", "memgauge", "--target", TARGET]).current_dir(project_folder());
    run(cargo.env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    Ok(target_folder().join(TARGET).join("debug"))
}

/// Help, and errors of the command line, as they are on Linux.
fn goldens(wine: &Wine, programs: &Path, tally: &mut Tally) -> Result<()> {
    // A program is called in its help as its file is.
    let folder = target_folder().join("windows-goldens");
    fs::create_dir_all(folder.join("programs"))?;
    let program = folder.join("programs/memgauge");
    fs::copy(programs.join("memgauge.exe"), &program)?;
    let script = folder.join("memgauge");
    let text = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", wine.program.display(), program.display());
    fs::write(&script, text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let mut command = Command::new(env!("CARGO"));
    wine.set(&mut command).args(["test", "--quiet", "--workspace", "--test", "commands"]).env("MEMGAUGE_GOLDENS", &folder);
    let output = command.current_dir(project_folder()).stdin(Stdio::null()).output()?;
    tally.count("goldens of command lines", {
        let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        if output.status.success() {
            Ok(())
        } else {
            Err(anyhow::anyhow!("{}", said.lines().rev().take(20).collect::<Vec<_>>().join("\n")))
        }
    });
    Ok(())
}

/// A command line of a program, its exit statuses, and what it prints on either output.
struct Case(&'static str, &'static str, &'static [i32], &'static str);

/// Statuses of a run that measured: on a busy machine not all cells within the time.
const MEASURED: &[i32] = &[0, 1];

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case("memgauge", "info", &[0], "This process may use"),
    Case("memgauge", "--within 15s -o suite.json", MEASURED, "Idle latency"),
    Case("memgauge", "latency --within 3s --size 64m", MEASURED, "QueryWorkingSetEx"),
    Case("memgauge", "bandwidth --within 4s --size 32m -o bandwidth.json", MEASURED, "all-reads"),
    Case("memgauge", "loaded --within 5s --size 32m", MEASURED, "delay"),
    Case("memgauge", "c2c --within 15s", MEASURED, "HITM"),
    Case("memgauge", "sweep --within 5s --max 16m", MEASURED, "Latency by working set"),
    Case("memgauge", "stream 32m", &[0], "B/s"),
    Case("memgauge", "chase 1m", &[0], "ns"),
    Case("memgauge", "scan --integrity --size 256m --within 15s", MEASURED, "Memory scan"),
    Case("memgauge", "quick --within 8s", &[0, 1, 2], ""),
    Case("memgauge", "run threads.toml --within 5s", MEASURED, "as given"),
    Case("memgauge", "tiers --within 8s", &[4], "one tier of memory"),
    Case("memgauge", "interleave --within 8s", &[4], "no second tier"),
    Case("memgauge", "interleave --apply", &[4], "no second tier"),
    Case("memgauge", "pmem . --within 8s", MEASURED, "is not DAX"),
    Case("memgauge", "render suite.json -o suite.html", &[0], ""),
    Case("memgauge", "report suite.json -o report.html", &[0], ""),
    Case("memgauge", "compare suite.json -- suite.json", &[0, 1], ""),
    Case("memgauge", "advise suite.json", &[0, 1, 4], ""),
    Case("memgauge", "fleet ingest store suite.json", &[0], ""),
    Case("memgauge", "fleet outliers store", &[0, 1], ""),
    Case("mlc", "--idle_latency -t0.2 -b64m", &[0], "Each iteration took"),
    Case("mlc", "--c2c_latency -t0.2", &[0], "HIT"),
    Case("memgauge", "latency --cpu 99", &[64], "there is no CPU 99"),
    Case("memgauge", "latency --node 9", &[64], "there is no node 9"),
    Case("memgauge", "chase --size 0", &[64], "the size is zero"),
    Case("memgauge", "bandwidth --size 900g", &[4], "give a smaller --size"),
    Case("memgauge", "render nothing.json", &[64, 4], "nothing.json"),
    Case("memgauge", "latency -o folder/nothing/x.json", &[64], "does not exist"),
    Case("memgauge", "latency --within 2s -o .", &[64], "no format has this ending"),
    Case("memgauge", "latency --memory-dir nothing", &[64], "there is no such directory"),
    Case("memgauge", "latency --pages thp --within 2s", &[4], "no transparent huge pages"),
    Case("memgauge", "prefetch", &[4], "not known"),
    Case("memgauge", "count -e cycles -- cmd /c ver", &[64], "need a driver on Windows"),
    Case("mlc", "--idle_latency -c99", &[64, 1], "no CPU 99"),
];

/// Commands with small budgets, and bad input.
fn commands(wine: &Wine, programs: &Path, tally: &mut Tally) -> Result<()> {
    let folder = target_folder().join("windows-commands");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("threads.toml"), "[[threads]]\ncpus = \"0\"\nmix = \"2:1\"\nsize = \"32M\"\n")?;
    for Case(program, line, statuses, expected) in CASES {
        let output = wine.run(&programs.join(format!("{program}.exe")), &folder, line)?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let known = output.status.code().is_some_and(|status| statuses.contains(&status));
        let outcome = if known && said.contains(expected) && !said.contains("panicked at") {
            Ok(())
        } else {
            Err(anyhow::anyhow!("{:?}, without '{expected}':\n{said}", output.status.code()))
        };
        tally.count(&format!("{program} {line}"), outcome);
    }
    Ok(())
}

/// Ctrl-C in the middle of a run ends it soon, and what was measured is kept. Wine makes an event of the console of SIGINT; Ctrl-Break, which
/// programs send each other, it refuses.
fn ctrl_c(wine: &Wine, programs: &Path, tally: &mut Tally) -> Result<()> {
    /// The exit status of an interrupted run.
    const INTERRUPTED: i32 = 130;
    let file = target_folder().join("windows-commands/interrupted.json");
    let mut command = Command::new(&wine.program);
    command.arg(programs.join("memgauge.exe")).args(["latency", "--time", "30s", "--size", "16m", "-o"]).arg(&file);
    let mut child = wine.set(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    thread::sleep(Duration::from_secs(5));
    let asked = Instant::now();
    // SAFETY: kill takes no pointer. The number is the child's: it has not been waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
    let status = child.wait()?;
    let took = asked.elapsed();
    let result = fs::read_to_string(&file).unwrap_or_default();
    let whole = serde_json::from_str::<serde_json::Value>(&result).is_ok_and(|report| report["complete"] == false);
    tally.count("Ctrl-C in the middle of a run", {
        let ended = status.code() == Some(INTERRUPTED) && took < Duration::from_secs(3);
        if ended && whole {
            Ok(())
        } else {
            Err(anyhow::anyhow!("{status} after {took:?}; the result says that it is incomplete: {whole}"))
        }
    });
    Ok(())
}
