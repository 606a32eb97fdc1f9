//! Kernels of other instruction sets under QEMU's user-mode emulation: that they are correct, and nothing about their speed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use memgauge_lab::Outcome;

use crate::folders::project_folder;
use crate::programs::{UNOPTIMISED, cargo_for, run};

/// An instruction set to emulate.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Rust's name of it.
    triple: &'static str,
    linker: &'static str,
    /// The emulator, with its arguments.
    runner: &'static str,
    /// Whether it is checked that the whole program compiles: not where a guest runs it.
    check_program: bool,
    /// Runs only when named: a guest runs the same tests.
    pub(crate) optional: bool,
    /// Programs needed, and the Debian packages that have them.
    pub(crate) needs: &'static [(&'static str, &'static str)],
}

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "user-aarch64",
        about: "kernels of aarch64 touch exactly the bytes that they declare, emulated",
        triple: "aarch64-unknown-linux-musl",
        linker: "rust-lld",
        // A core without `dc cvap`: QEMU before 8.2 announces it to programs and then refuses it. The guest of the job arm has it.
        runner: "qemu-aarch64-static -cpu cortex-a72",
        check_program: false,
        optional: true,
        needs: &[("qemu-aarch64-static", "qemu-user-static")],
    },
    Target {
        name: "user-riscv64",
        about: "kernels of riscv64 touch exactly the bytes that they declare, emulated",
        triple: "riscv64gc-unknown-linux-gnu",
        linker: "riscv64-linux-gnu-gcc",
        runner: "qemu-riscv64-static -L /usr/riscv64-linux-gnu",
        check_program: true,
        optional: false,
        needs: &[("qemu-riscv64-static", "qemu-user-static"), ("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross")],
    },
];

/// Checks that the whole program compiles for a target that no guest runs, and builds the kernels' tests.
///
/// # Errors
/// When one does not.
pub(crate) fn build(target: &Target) -> Result<Vec<PathBuf>> {
    run(Command::new("rustup").args(["target", "add", target.triple]))?;
    if target.check_program {
        let mut cargo = cargo_for(target.triple, target.linker);
        cargo.args(["check", "--quiet", "-p", "memgauge", "--target", target.triple]).args(UNOPTIMISED);
        ensure!(cargo.status()?.success(), "memgauge does not compile for {}", target.triple);
    }
    test_programs(target.triple, target.linker)
}

/// Runs the kernels' tests that were built for a target.
///
/// # Errors
/// When the tests do not run, or not to their end.
pub(crate) fn run_tests(target: &Target, programs: &[PathBuf], outcomes: &mut Vec<Outcome>) -> Result<()> {
    for program in programs {
        let mut words = target.runner.split(' ');
        let mut emulator = Command::new(words.next().unwrap_or_default());
        emulator.args(words).arg(program).current_dir(project_folder().join("crates/kernels"));
        let output = emulator.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", target.runner))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // The test runner does not say how long each took.
        let outcome = |line: &str| {
            let (test, became) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
            let failure = match became {
                "ok" => None,
                "FAILED" => Some(text.clone().into_owned()),
                _ => return None,
            };
            Some(Outcome { test: test.into(), seconds: 0.0, failure, not_tested: None })
        };
        let before = outcomes.len();
        outcomes.extend(text.lines().filter_map(outcome));
        let failed = outcomes[before..].iter().any(|outcome| outcome.failure.is_some());
        ensure!(output.status.success() || failed, "{} did not end well: {}\n{text}", program.display(), output.status);
    }
    ensure!(!outcomes.is_empty(), "no tests ran on {}", target.triple);
    Ok(())
}

/// The kernels' test programs for a target.
///
/// # Errors
/// When they do not build.
pub(crate) fn test_programs(triple: &str, linker: &str) -> Result<Vec<PathBuf>> {
    let mut cargo = cargo_for(triple, linker);
    cargo.args(["test", "--quiet", "--no-run", "--message-format", "json", "-p", "memgauge-kernels", "--target", triple]).args(UNOPTIMISED);
    let messages = run(&mut cargo)?;
    let programs = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    Ok(programs.collect())
}
