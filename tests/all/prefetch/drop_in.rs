//! Prefetchers that the drop-in switches off while it chases.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use memgauge_testing::not_tested;

use super::{signal, until};
use crate::support::registers::Registers;
use crate::support::{beside_another, had_no_cpu_time, measured, measured_by, text};

/// The drop-in with these registers. `obeys`: they are taken to do what they say.
pub(crate) fn mlc(registers: &Registers, line: &str, obeys: bool) -> Command {
    let mut command = registers.beside(Command::new(env!("CARGO_BIN_EXE_mlc")));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    if obeys {
        command.env("MEMGAUGE_PREFETCH_AS", "GenuineIntel,6,85,obeys");
    }
    command
}

pub(crate) const UNABLE: &str = "*** Unable to modify prefetchers";

#[test]
fn the_drop_in_switches_prefetchers_off_while_it_chases() {
    let Some(registers) = Registers::intel("mlc-off") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let _permit = beside_another();
    for line in ["--idle_latency -b1m -t0.02", "--latency_matrix -b1m -t0.02"] {
        let output = measured_by(|| {
            registers.state().written.clear();
            mlc(&registers, line, true).output().unwrap()
        });
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && !out.contains("***"), "{line}: {out}{err}");
        assert!(err.contains("tainted"), "{err}");
        assert_eq!(out.contains("for sequential access"), line.contains("matrix"), "{out}");
        // Off and back for the trial, off and back for the chase; only the CPU that chases.
        let written: Vec<u64> = registers.state().written.iter().filter(|w| w.0 == 0).map(|w| w.2).collect();
        assert_eq!(written, [0xF, 0, 0xF, 0], "{line}");
        assert!(registers.state().written.iter().all(|w| w.0 == 0), "{line}: {:?}", registers.state().written);
        assert_eq!(registers.values(), before, "{line}");
        assert!(!registers.journals().join("prefetch-run.journal").exists(), "{line}");
    }
}

#[test]
fn the_drop_in_leaves_prefetchers_on_where_it_should_or_must() {
    let Some(registers) = Registers::intel("mlc-on") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let _permit = beside_another();
    let run = |line: &str, obeys: bool, change: &dyn Fn(&mut Command)| {
        let mut command = mlc(&registers, line, obeys);
        change(&mut command);
        let output = measured(&mut command);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        assert_eq!(registers.values(), before, "{line}");
        assert!(!registers.journals().join("prefetch-run.journal").exists(), "{line}");
        (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    let matrix = "--latency_matrix -b1m -t0.01";
    for (line, random) in [(format!("{matrix} -e"), false), (format!("{matrix} -e -r"), true)] {
        let (out, _) = run(&line, true, &|_| {});
        assert!(!out.contains(UNABLE) && out.contains("for random access") == random, "{line}: {out}");
    }
    let (out, _) = run(matrix, true, &|command| {
        command.env("MEMGAUGE_MLC_PREFETCH", "leave");
    });
    assert!(out.contains(UNABLE) && out.contains("for random access"), "{out}");
    run("--bandwidth_matrix -b1m -t0.01", true, &|_| {});
    assert!(registers.state().written.is_empty(), "nothing was to be switched: {:?}", registers.state().written);
    registers.state().refuses_writes = Some(libc::EPERM);
    let (out, err) = run(matrix, true, &|_| {});
    assert!(out.contains(UNABLE) && out.contains("for random access"), "{out}");
    assert!(err.contains("prefetchers stay on: the kernel refuses to write"), "{err}");
    registers.state().refuses_writes = None;
    // Registers of files switch nothing: where this machine's chases show prefetchers at work, that is not taken for off.
    let (out, err) = run(matrix, false, &|_| {});
    assert_eq!(out.contains(UNABLE), err.contains("a prefetcher is active"), "{out}{err}");
    assert_eq!(out.contains(UNABLE), out.contains("for random access"), "{out}");
    assert!(registers.state().written.iter().any(|w| w.2 & 0xF == 0xF), "it was tried");
}

/// What a register refuses later costs the run nothing but the order of its chases.
#[test]
fn the_drop_in_goes_on_with_prefetchers_on_where_they_cannot_be_switched_any_more() {
    let Some(registers) = Registers::intel("mlc-later") else { not_tested!("no FUSE file system can be mounted here") };
    if std::thread::available_parallelism().unwrap().get() < 2 {
        not_tested!("registers that refuse later: one CPU");
    }
    let before = registers.values();
    let _permit = beside_another();
    let mut child = mlc(&registers, "-b1m -t0.01", true).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut out: Vec<String> = lines.by_ref().take_while(|line| !line.contains("Measuring Peak Injection")).collect();
    // The latencies by node are printed, and loaded latency is to come.
    until("put back", || registers.values() == before);
    registers.state().refuses_writes = Some(libc::EPERM);
    out.extend(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(registers.values(), before);
    assert!(!registers.journals().join("prefetch-run.journal").exists());
    if had_no_cpu_time(&output) {
        not_tested!("registers that refuse later: others had the CPUs");
    }
    let (out, err) = (out.join("\n"), text(&output.stderr));
    assert!(output.status.success(), "{:?}: {out}{err}", output.status);
    assert_eq!(err.matches("prefetchers stay on from here: the kernel refuses to write").count(), 1, "{err}");
    let (first, rest) = out.split_once(UNABLE).unwrap();
    assert!(first.contains("for sequential access") && !rest.contains(UNABLE), "{out}");
    assert!(rest.contains("Measuring Loaded Latencies") && rest.contains(" 00000\t"), "{out}");
}

#[test]
fn the_drop_in_puts_prefetchers_back_however_it_ends() {
    let Some(registers) = Registers::intel("mlc-ends") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let _permit = beside_another();
    for (number, code) in [(libc::SIGINT, Some(130)), (libc::SIGTERM, Some(143)), (libc::SIGKILL, None)] {
        registers.state().written.clear();
        let mut command = mlc(&registers, "--idle_latency -b2m -t20", true);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The second time is that of the chase.
        until("off for the chase", || registers.state().written.iter().filter(|w| w.2 & 0xF == 0xF).count() == 2);
        signal(child.id(), number);
        assert_eq!(child.wait_with_output().unwrap().status.code(), code);
        until("restored", || registers.values() == before);
        until("no journal", || !registers.journals().join("prefetch-run.journal").exists());
    }
}
