//! Prefetcher registers end to end, with a file system in place of `/dev/cpu`.

mod drop_in;

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use memgauge_analysis::conclusions::advise::PREFETCHING_RATIO;
use memgauge_model::experiment::{Experiment, Metric, PrefetchRequest};
use memgauge_model::note::NoteCode;
use memgauge_model::prefetchers::PrefetchStatus;
use memgauge_model::result::Report;
use memgauge_model::units::Bytes;
use memgauge_testing::not_tested;

use crate::support;
use crate::support::registers::Registers;
use crate::support::{beside_another, measured, measured_by, program, text};
use drop_in::{UNABLE, mlc};

fn run(registers: &Registers, line: &str) -> Output {
    let _permit = beside_another();
    measured(registers.program().args(line.split_whitespace()))
}

fn report(registers: &Registers, line: &str) -> Report {
    let output = run(registers, &format!("{line} --format json"));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The run must fail, must not claim that prefetchers are off, and must print these words.
fn refused(registers: &Registers, line: &str, words: &[&str]) {
    let before = registers.values();
    let output = run(registers, line);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{line}: {stderr}");
    assert!(output.stdout.is_empty(), "{line} claims nothing: {}", text(&output.stdout));
    for word in words {
        assert!(stderr.contains(word), "'{word}' is missing: {stderr}");
    }
    assert_eq!(registers.values(), before, "{line}");
    assert!(!registers.journals().join("prefetch-run.journal").exists(), "{line} leaves a journal");
}

fn start(registers: &Registers, line: &str) -> Child {
    let mut command = registers.program();
    command.args(line.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "not seen within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: a process that this test has started and not waited for.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
}

/// The guardian of a run.
fn guardian_of(run: &Child) -> u32 {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let mut found = None;
    until("a guardian", || {
        found = std::fs::read_to_string(&children).unwrap_or_default().split_whitespace().next().and_then(|id| id.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

fn all_off(registers: &Registers, mask: u64) -> bool {
    registers.values().values().all(|v| v & mask == mask)
}

#[test]
fn status_names_what_is_on_and_off() {
    let Some(registers) = Registers::intel("status") else { not_tested!("no FUSE file system can be mounted here") };
    let cpus: Vec<u32> = registers.values().keys().copied().collect();
    for cpu in &cpus {
        registers.set(*cpu, 0x805);
    }
    let state = report(&registers, "prefetch status").environment.prefetch.unwrap();
    assert_eq!((state.status, state.groups.len()), (PrefetchStatus::Partly, 1));
    let group = &state.groups[0];
    assert_eq!(group.cpus.iter().collect::<Vec<_>>(), cpus);
    assert_eq!((group.value.as_deref(), group.off.join(" ")), (Some("0x805"), "l2-streamer l1-streamer".into()));
    let shown = run(&registers, "prefetch");
    let shown = text(&shown.stdout);
    assert!(shown.contains("0x1a4 MISC_FEATURE_CONTROL") && shown.contains("l2-adjacent-line, l1-ip-stride"), "{shown}");
    assert!(registers.state().written.is_empty(), "status writes nothing");
    // If the register of one CPU cannot be read, nothing can be claimed about all of them.
    registers.state().offline = vec![cpus[cpus.len() - 1]];
    let output = run(&registers, "prefetch --format json");
    assert_eq!(output.status.code(), Some(4));
    let state = serde_json::from_slice::<Report>(&output.stdout).unwrap().environment.prefetch.unwrap();
    assert_eq!(state.status, PrefetchStatus::Unknown);
    assert!(state.reason.unwrap().contains("offline"));
}

#[test]
fn a_run_sets_verifies_measures_and_restores() {
    for (registers, register, mask) in [(Registers::intel("run-intel"), 0x1A4, 0xF), (Registers::amd("run-amd"), 0xC000_0108, 0x2F)] {
        let Some(registers) = registers else { not_tested!("no FUSE file system can be mounted here") };
        let before = registers.values();
        let permit = beside_another();
        let output = measured_by(|| {
            registers.state().written.clear();
            registers.program().args("latency --prefetch off --size 4M --time 20ms --format json".split(' ')).output().unwrap()
        });
        drop(permit);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("tainted"), "it is told beforehand: {}", text(&output.stderr));
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report.notes.iter().any(|n| n.code == NoteCode::KernelTainted), "{:?}", report.notes);
        assert_eq!(registers.values(), before);
        for (cpu, value) in &before {
            let written: Vec<u64> = registers.state().written.iter().filter(|w| (w.0, w.1) == (*cpu, register)).map(|w| w.2).collect();
            assert_eq!(written, [value | mask, *value], "CPU {cpu}");
        }
        // These registers switch nothing. If reliable latencies show that prefetchers are on, the report must not claim that they are off.
        let at_work = report.results.iter().any(|m| {
            m.is_reliable()
                && m.evidence.buffer > Bytes::mib(16)
                && m.evidence.prefetch.is_some_and(|p| p.random_over_sequential > PREFETCHING_RATIO)
        });
        let state = report.environment.prefetch.unwrap();
        assert_eq!(state.requested, PrefetchRequest::Off);
        assert_eq!(state.status, if at_work { PrefetchStatus::Unknown } else { PrefetchStatus::Off });
        assert_eq!(report.notes.iter().any(|n| n.code == NoteCode::PrefetchOffNotEffective), at_work, "{:?}", report.notes);
        assert!(state.groups.iter().all(|g| g.on.is_empty() && g.value.is_some()), "{state:?}");
        assert_eq!(std::fs::read_dir(registers.journals()).unwrap().count(), 1, "only the lock's file stays");
    }
}

#[test]
fn compare_measures_both_states() {
    let Some(registers) = Registers::intel("compare") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let report = report(&registers, "prefetch compare --node 0 --size 2M --time 10ms");
    assert!(report.complete, "{:?}", report.notes);
    for state in [PrefetchRequest::On, PrefetchRequest::Off] {
        let results: Vec<_> = report.results.iter().filter(|m| m.at.prefetch == Some(state)).collect();
        assert!(results.iter().all(|m| m.experiment == Experiment::PrefetchComparison && m.estimate.value.is_some()), "{results:?}");
        let count = |metric| results.iter().filter(|m| m.metric == metric).count();
        assert_eq!((count(Metric::Bandwidth), count(Metric::Latency)), (1, 2));
    }
    assert_eq!(registers.values(), before);
    let written: Vec<u64> = registers.state().written.iter().filter(|w| w.0 == 0).map(|w| w.2).collect();
    assert!(written.ends_with(&[0xF, 0]), "{written:x?}");
    assert_eq!(report.environment.prefetch.unwrap().groups.iter().map(|g| g.cpus.len()).sum::<usize>(), before.len());
}

#[test]
fn what_cannot_be_switched_is_refused_by_name() {
    let Some(registers) = Registers::intel("refused") else { not_tested!("no FUSE file system can be mounted here") };
    let last = *registers.values().keys().last().unwrap();
    let line = "latency --prefetch off --size 1M --time 10ms";
    registers.state().valid.insert(0x1A4, 0x7);
    refused(&registers, line, &["CPU 0", "0x1a4", "reserved", "BIOS"]);
    refused(&registers, "prefetch compare --size 1M --time 10ms --quiet", &[]);
    registers.state().valid.clear();
    refused(&registers, line, &["CPU 0 refuses to read register 0x1a4"]);
    registers.state().valid.insert(0x1A4, 0xF);
    registers.state().forgets = true;
    refused(&registers, line, &["CPU 0", "was written with 0xf and reads back 0x0", "hypervisor"]);
    refused(&registers, "prefetch off", &["reads back"]);
    registers.state().forgets = false;
    registers.state().refuses_writes = Some(libc::EPERM);
    refused(&registers, line, &["the kernel refuses to write register 0x1a4 of CPU 0", "lockdown"]);
    registers.state().refuses_writes = None;
    registers.state().offline = vec![last];
    refused(&registers, line, &[&format!("CPU {last} is offline"), "online"]);
    registers.state().offline.clear();
    registers.state().cpus.clear();
    refused(&registers, line, &["msr module is not loaded", "modprobe msr"]);
}

#[test]
fn a_cpu_that_goes_offline_after_the_first_look_ends_the_run() {
    let Some(registers) = Registers::intel("gone") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let before = registers.values();
    // Every register is read once for the journal, and again when the guardian is ready.
    registers.state().opens_left = Some(before.len());
    let mut child = start(&registers, "prefetch compare --node 0 --size 1M --time 10ms");
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    let hung = child.try_wait().unwrap().is_none();
    if hung {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(!hung, "the run waits for its guardian, and the guardian for the run's lock");
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("offline") && output.stdout.is_empty(), "{stderr}");
    assert_eq!(registers.state().opens_left, None, "it was not reached: {stderr}");
    assert!(!registers.journals().join("prefetch-run.journal").exists() && registers.values() == before);
}

#[test]
fn registers_that_are_not_back_are_told_though_nobody_reads_the_result() {
    let Some(registers) = Registers::intel("left") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let mut child = start(&registers, "latency --prefetch off --order window-local --size 1M --time 500ms");
    drop(child.stdout.take());
    until("all off", || all_off(&registers, 0xF));
    registers.state().refuses_writes = Some(libc::EPERM);
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert_eq!(stderr.matches("not restored").count(), 1, "{stderr}");
    registers.state().refuses_writes = None;
    assert!(registers.program().args(["prefetch", "restore", "-q"]).status().unwrap().success());
    assert!(!all_off(&registers, 0xF));
}

#[test]
fn a_file_that_cannot_be_written_leaves_registers_alone() {
    let Some(registers) = Registers::intel("unwritable") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    for line in ["prefetch off -o /nonexistent/a.json", "prefetch on -o a.xyz", "prefetch restore -o /nonexistent/a.json"] {
        assert_eq!(run(&registers, line).status.code(), Some(64), "{line}");
    }
    assert_eq!(registers.values(), before);
    assert!(registers.state().written.is_empty() && !registers.journals().join("prefetch-kept.journal").exists());
}

#[test]
fn a_sweep_takes_the_option_too() {
    let Some(registers) = Registers::intel("sweep") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let report = report(&registers, "sweep --prefetch off --min 4K --max 16K --points-per-octave 1 --latency --time 20ms");
    assert!(report.complete && !report.results.is_empty());
    assert_eq!(report.environment.prefetch.unwrap().requested, PrefetchRequest::Off);
    assert!(registers.state().written.iter().any(|w| w.2 & 0xF == 0xF));
    assert_eq!(registers.values(), before);
}

#[test]
fn a_register_that_another_program_changes_is_noticed() {
    let Some(registers) = Registers::intel("changed") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let child = start(&registers, "latency --prefetch off --order window-local --size 1M --time 600ms --format json");
    until("all off", || all_off(&registers, 0xF));
    // The program reads back what it wrote before it begins: a change before that is a refusal, and not what this test is about.
    std::thread::sleep(Duration::from_millis(300));
    registers.set(0, 0x80E);
    let output = child.wait_with_output().unwrap();
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let state = report.environment.prefetch.unwrap();
    assert_eq!(state.status, PrefetchStatus::Unknown);
    assert!(
        report.notes.iter().any(|n| n.code == NoteCode::PrefetchStateLost && n.message.to_string().contains("CPU 0")),
        "{:?}",
        report.notes
    );
    assert_eq!(registers.values()[&0], 0x800, "its bit stays, ours go back");
}

#[test]
fn interrupts_restore() {
    let Some(registers) = Registers::intel("interrupt") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let before = registers.values();
    for (name, second) in [(libc::SIGINT, false), (libc::SIGTERM, false), (libc::SIGINT, true)] {
        let child = start(&registers, "latency --prefetch off --size 1M --time 20s --format json");
        until("all off", || all_off(&registers, 0xF));
        signal(child.id(), name);
        if second {
            // The second signal ends the program at once, before it can clean up.
            signal(child.id(), name);
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        until("restored", || registers.values() == before);
        until("no journal", || !registers.journals().join("prefetch-run.journal").exists());
    }
}

#[test]
fn killed_at_random_moments_the_state_is_back_each_time() {
    const LINE: &str = "bandwidth --prefetch off --size 1M --time 20s";
    const MOMENTS: u32 = 30;
    let Some(registers) = Registers::intel("killed") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let before = registers.values();
    // The time that a run needs to switch everything.
    let begin = Instant::now();
    let mut child = start(&registers, LINE);
    until("all off", || all_off(&registers, 0xF));
    let span = begin.elapsed().as_nanos() as u64;
    signal(child.id(), libc::SIGKILL);
    child.wait().unwrap();
    until("restored", || registers.values() == before);
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut changed, mut unchanged) = (0, 0);
    for moment in 0..MOMENTS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let writes = registers.state().written.len();
        let mut child = start(&registers, LINE);
        if moment % 2 == 0 {
            std::thread::sleep(Duration::from_nanos(random % (2 * span)));
        } else {
            // During the writes and at the start of measuring, however slow the machine is.
            until("a write", || registers.state().written.len() > writes);
            std::thread::sleep(Duration::from_micros(random % 20_000));
        }
        signal(child.id(), libc::SIGKILL);
        if registers.values() == before {
            unchanged += 1
        } else {
            changed += 1
        }
        child.wait().unwrap();
        until("restored after SIGKILL", || registers.values() == before);
    }
    assert!(changed >= MOMENTS / 4 && unchanged >= 1, "{changed} with changed registers, {unchanged} without: moments are not spread");
    // The next run restores what was left changed, and only once.
    assert!(registers.program().args(["prefetch", "restore", "-q"]).status().unwrap().success());
    assert_eq!(registers.values(), before);
}

#[test]
fn a_journal_is_replayed_after_both_processes_died_and_dropped_after_a_boot() {
    let Some(registers) = Registers::intel("journal") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let before = registers.values();
    let journal = registers.journals().join("prefetch-run.journal");
    let kill_both = || {
        let mut child = start(&registers, "latency --prefetch off --size 1M --time 20s");
        until("all off", || all_off(&registers, 0xF));
        signal(guardian_of(&child), libc::SIGKILL);
        signal(child.id(), libc::SIGKILL);
        child.wait().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(all_off(&registers, 0xF) && journal.exists(), "nobody is left to restore");
    };
    let codes = |registers: &Registers, line: &str| {
        let output = registers.program().args(line.split_whitespace()).args(["--format", "json"]).output().unwrap();
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        report.notes.into_iter().map(|n| n.code.word().to_owned()).collect::<Vec<_>>()
    };
    kill_both();
    assert_eq!(codes(&registers, "prefetch status"), ["prefetch-run-journal"]);
    assert_eq!(codes(&registers, "prefetch restore"), ["prefetch-restored"]);
    assert_eq!(registers.values(), before);
    assert_eq!(codes(&registers, "prefetch restore"), ["prefetch-nothing-to-restore"]);
    kill_both();
    assert!(codes(&registers, "latency --prefetch off --size 1M --time 10ms").contains(&"prefetch-restored-earlier".to_owned()));
    assert_eq!(registers.values(), before);
    kill_both();
    let left = std::fs::read_to_string(&journal).unwrap();
    let boot = left.lines().find(|l| l.starts_with("boot ")).unwrap().to_owned();
    std::fs::write(&journal, left.replace(&boot, "boot 00000000-0000-0000-0000-000000000000")).unwrap();
    let writes = registers.state().written.len();
    assert_eq!(codes(&registers, "prefetch restore"), ["prefetch-journal-void"]);
    assert!(!journal.exists() && registers.state().written.len() == writes, "nothing of an earlier boot is written");
}

/// Which codes a command has in its result, and its status.
fn codes_and_status(registers: &Registers, line: &str) -> (Vec<String>, Option<i32>) {
    let output = registers.program().args(line.split_whitespace()).args(["--format", "json"]).output().unwrap();
    let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{line}: {}", text(&output.stderr)));
    (report.notes.into_iter().map(|n| n.code.word().to_owned()).collect(), output.status.code())
}

#[test]
fn a_cpu_that_went_offline_keeps_neither_the_other_journal_nor_what_is_online() {
    let Some(registers) = Registers::amd("waits") else { return };
    let before = registers.values();
    report(&registers, "prefetch off");
    let _permit = beside_another();
    let mut child = start(&registers, "latency --prefetch on --size 1M --time 20s");
    until("all on", || registers.values().values().all(|value| value & 0x2F == 0));
    signal(guardian_of(&child), libc::SIGKILL);
    signal(child.id(), libc::SIGKILL);
    child.wait().unwrap();
    let last = *before.keys().last().unwrap();
    registers.state().offline = vec![last];
    let (codes, status) = codes_and_status(&registers, "prefetch restore");
    assert_eq!((codes.iter().filter(|code| *code == "prefetch-waits-for-cpus").count(), status), (2, Some(1)), "{codes:?}");
    let online = |values: BTreeMap<u32, u64>| values.into_iter().filter(|(cpu, _)| *cpu != last).collect::<Vec<_>>();
    assert_eq!(online(registers.values()), online(before.clone()));
    registers.state().offline.clear();
    let (codes, status) = codes_and_status(&registers, "prefetch restore");
    assert_eq!((codes.iter().filter(|code| *code == "prefetch-restored").count(), status), (2, Some(0)), "{codes:?}");
    assert_eq!(registers.values(), before);
}

#[test]
fn two_runs_do_not_overlap() {
    let Some(registers) = Registers::intel("overlap") else { not_tested!("no FUSE file system can be mounted here") };
    let _permit = beside_another();
    let before = registers.values();
    // It waits for a signal that nobody gives.
    let line = format!("bandwidth --prefetch off --size 1M --start-signal memgauge-overlap-{}", std::process::id());
    let mut child = start(&registers, &line);
    until("all off", || all_off(&registers, 0xF));
    for line in ["latency --prefetch on --size 1M --time 10ms", "prefetch on", "prefetch restore", "prefetch compare --size 1M"] {
        let output = registers.program().args(line.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{line}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(&format!("another memgauge (process {})", child.id())), "{line}: {stderr}");
        assert!(all_off(&registers, 0xF), "{line}");
    }
    signal(child.id(), libc::SIGTERM);
    child.wait().unwrap();
    assert_eq!(registers.values(), before);
}

#[test]
fn off_and_on_last_until_restore() {
    let Some(registers) = Registers::amd("kept") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let off = report(&registers, "prefetch off").environment.prefetch.unwrap();
    assert_eq!((off.status, all_off(&registers, 0x2F)), (PrefetchStatus::Off, true));
    let on = report(&registers, "prefetch on").environment.prefetch.unwrap();
    assert_eq!(on.status, PrefetchStatus::On);
    assert_eq!(
        report(&registers, "latency --prefetch off --size 1M --time 10ms").environment.prefetch.unwrap().requested,
        PrefetchRequest::Off
    );
    assert_eq!(registers.values(), before.keys().map(|cpu| (*cpu, 0)).collect::<BTreeMap<_, _>>(), "a run puts back what it found");
    let kept = report(&registers, "prefetch");
    assert!(kept.notes.iter().any(|n| n.code == NoteCode::PrefetchKept), "{:?}", kept.notes);
    report(&registers, "prefetch restore");
    assert_eq!(registers.values(), before);
}

/// Without a test's directory, the stand-in processor is ignored: a real register is never mistaken for that of another model.
#[test]
fn a_made_up_cpu_needs_made_up_registers() {
    let output = program().env("MEMGAUGE_PREFETCH_AS", "AuthenticAMD,23,49").args(["prefetch", "--format", "json"]).output().unwrap();
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let groups = report.environment.prefetch.unwrap().groups;
    assert!(
        groups.iter().all(|g| g.reason.as_deref() != Some("AMD family 0x17 has no documented prefetch control register")),
        "{groups:?}"
    );
}

/// In PID and mount namespaces of its own, with a tmpfs of its own for journals, as a privileged container has.
#[test]
fn a_container_that_would_take_the_journal_with_it_is_refused() {
    let Some(registers) = Registers::intel("container") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    std::fs::create_dir_all(registers.journals()).unwrap();
    let inside = |program: Command| {
        let mut inside = Command::new("unshare");
        let script = "mount -t tmpfs none \"$MEMGAUGE_RUNTIME_DIR\" && exec \"$0\" \"$@\"";
        inside.args(["--pid", "--fork", "--mount", "--mount-proc", "/bin/sh", "-c", script]);
        inside.arg(program.get_program()).args(program.get_args());
        inside.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        // Where namespaces or mounts are not permitted, nothing can be tried.
        inside.output().ok().filter(|output| !["unshare", "mount:"].iter().any(|word| text(&output.stderr).contains(word)))
    };
    let mut off = registers.program();
    off.args(["prefetch", "off"]);
    let Some(output) = inside(off) else { not_tested!("a container's journal: no namespaces or mounts here") };
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("belongs to this container") && stderr.contains("-v /run/memgauge:/run/memgauge"), "{stderr}");
    assert_eq!(registers.values(), before);
    // The drop-in measures nevertheless.
    let output = measured_by(|| inside(mlc(&registers, "--latency_matrix -b1m -t0.01", true)).unwrap());
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains(UNABLE) && out.contains("for random access"), "{out}{err}");
    assert!(err.contains("prefetchers stay on: ") && err.contains("belongs to this container"), "{err}");
    assert!(registers.values() == before && registers.state().written.is_empty());
}

/// What may write registers is not chosen by the environment alone: a journal in a folder that it names is not replayed to real registers.
#[test]
fn a_folder_of_journals_counts_only_with_registers_that_are_not_real() {
    let folder = support::temporary("journals");
    let journal = "memgauge prefetch journal 1\nid 1-1\nboot unknown\ncpu 0 register 0x1a4 mask 0xf value 0x0\nend\n";
    std::fs::write(folder.join("prefetch-kept.journal"), journal).unwrap();
    let codes = |command: &mut std::process::Command| {
        let output = command.env("MEMGAUGE_RUNTIME_DIR", &folder).args(["prefetch", "status", "--format", "json"]).output().unwrap();
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        report.notes.iter().filter(|n| n.code == NoteCode::PrefetchKept).count()
    };
    assert_eq!(codes(&mut program()), 0, "with the real devices");
    assert_eq!(codes(program().env("MEMGAUGE_MSR_ROOT", "/dev/cpu/../cpu")), 0, "with the real devices by another name");
    std::os::unix::fs::symlink("/dev", folder.join("cpu")).unwrap();
    assert_eq!(codes(program().env("MEMGAUGE_MSR_ROOT", folder.join("cpu"))), 0, "with a link to them");
    std::fs::create_dir(folder.join("other")).unwrap();
    assert_eq!(codes(program().env("MEMGAUGE_MSR_ROOT", folder.join("other"))), 1, "with a stand-in");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Somebody else may have made what lies where the journal should be: it is neither followed, waited for, nor replayed.
#[test]
fn a_journal_that_is_not_ours_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(registers) = Registers::intel("untrusted") else { not_tested!("no FUSE file system can be mounted here") };
    let before = registers.values();
    let path = registers.journals().join("prefetch-kept.journal");
    std::fs::create_dir_all(registers.journals()).unwrap();
    let good = "memgauge prefetch journal 1\nid 1-1\nboot unknown\ncpu 0 register 0x1a4 mask 0xf value 0xf\nend\n";
    let restore = |what: &str, words: &str| {
        let mut child = start(&registers, "prefetch restore");
        until(what, || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(4) && stderr.contains(words), "{what}: {stderr}");
        assert_eq!(registers.values(), before, "{what}");
        std::fs::remove_file(&path).unwrap();
    };
    let fifo = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the call reads the path.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    restore("a FIFO", "not a regular file");
    std::fs::write(registers.journals().join("elsewhere"), good).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    restore("a link", "symbolic link");
    std::fs::write(&path, good).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    restore("a file that others may write", "may be written by others");
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        std::fs::write(&path, good).unwrap();
        std::os::unix::fs::chown(&path, Some(54321), None).unwrap();
        restore("a file of another user", "belongs to user 54321");
    }
    for wrong in [good.replace("0x1a4", "0x3a"), good.replace("mask 0xf ", "mask 0xffffffffffffffff ")] {
        std::fs::write(&path, wrong).unwrap();
        restore("another register", "does not switch prefetchers");
    }
}

/// A journal is made so that nobody else can read or change it.
#[test]
fn a_journal_is_private() {
    use std::os::unix::fs::MetadataExt as _;
    let Some(registers) = Registers::intel("private") else { not_tested!("no FUSE file system can be mounted here") };
    assert!(run(&registers, "prefetch off").status.success());
    let made = std::fs::metadata(registers.journals().join("prefetch-kept.journal")).unwrap();
    assert_eq!(made.mode() & 0o7777, 0o600);
}
