//! Kernels of other instruction sets under QEMU's user-mode emulation: that they are correct, and nothing about their speed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use memgauge_lab::{Arch, Outcome};

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
        needs: &[("qemu-aarch64-static", "qemu-user-static")],
    },
    Target {
        name: "user-riscv64",
        about: "kernels of riscv64 touch exactly the bytes that they declare, emulated",
        triple: "riscv64gc-unknown-linux-gnu",
        linker: "riscv64-linux-gnu-gcc",
        runner: "qemu-riscv64-static -L /usr/riscv64-linux-gnu",
        check_program: true,
        needs: &[("qemu-riscv64-static", "qemu-user-static"), ("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu libc6-dev-riscv64-cross")],
    },
];

/// Checks that the whole program compiles for a target, where no guest runs it, and builds the kernels' tests.
///
/// # Errors
/// When one does not.
pub(crate) fn build(target: &Target) -> Result<()> {
    run(Command::new("rustup").args(["target", "add", target.triple]))?;
    let builds = |what: &[&str]| -> Result<bool> {
        let mut cargo = cargo_for(target.triple, target.linker);
        Ok(cargo.args(what).args(UNOPTIMISED).args(["--quiet", "--target", target.triple]).status()?.success())
    };
    ensure!(!target.check_program || builds(&["check", "-p", "memgauge"])?, "memgauge does not compile for {}", target.triple);
    ensure!(builds(&["test", "--no-run", "-p", "memgauge-kernels"])?, "the kernels' tests do not build for {}", target.triple);
    Ok(())
}

/// Runs the kernels' tests of a target that was built.
///
/// # Errors
/// When the tests do not run, or not to their end.
pub(crate) fn run_tests(target: &Target, outcomes: &mut Vec<Outcome>) -> Result<()> {
    let mut cargo = cargo_for(target.triple, target.linker);
    cargo.env(format!("CARGO_TARGET_{}_RUNNER", target.triple.to_uppercase().replace('-', "_")), target.runner);
    cargo.args(["test", "--quiet", "--no-fail-fast", "-p", "memgauge-kernels", "--target", target.triple]).args(UNOPTIMISED);
    cargo.args(["--", "--format", "pretty"]);
    let output = cargo.stdin(Stdio::null()).output().context("cannot start cargo")?;
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
    outcomes.extend(text.lines().filter_map(outcome));
    ensure!(!outcomes.is_empty(), "no tests ran on {}: {}", target.triple, String::from_utf8_lossy(&output.stderr).trim());
    ensure!(output.status.success() || outcomes.iter().any(|o| o.failure.is_some()), "the tests did not end well:\n{text}");
    Ok(())
}

/// The kernels' test programs for a guest.
///
/// # Errors
/// When they do not build.
pub(crate) fn test_programs(arch: Arch) -> Result<Vec<PathBuf>> {
    let target = format!("{arch}-unknown-linux-musl");
    let mut cargo = cargo_for(&target, "rust-lld");
    cargo
        .args(["test", "--quiet", "--no-run", "--message-format", "json", "-p", "memgauge-kernels", "--target", &target])
        .args(UNOPTIMISED);
    let messages = run(&mut cargo)?;
    let programs = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    Ok(programs.collect())
}
