//! `memgauge count` and `--counters` as a black box. Software events are correct within bounds on every machine that allows them. Hardware
//! events have a value or a reason.

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use memgauge_model::counters::{ProgramCount, ProgramRun, Scope};
use memgauge_model::estimate::NotMeasured;
use memgauge_model::result::{Incomplete, Report};
use memgauge_testing::not_tested;

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgauge"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    program(arguments).output().unwrap()
}

/// Counts a program, with options before it, and reads the result.
fn counted(name: &str, options: &[&str], command: &[&str]) -> (Report, ProgramCount) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let json = folder.join(format!("count-{name}-{}.json", std::process::id()));
    let mut line = vec!["count", "-q", "-o", json.to_str().unwrap()];
    line.extend_from_slice(options);
    line.push("--");
    line.extend_from_slice(command);
    let output = run(&line);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    std::fs::remove_file(json).unwrap();
    let count = *report.program.clone().unwrap();
    (report, count)
}

/// The median of an event; `None`, and a message, if a container forbids perf_event_open.
fn median(count: &ProgramCount, name: &str) -> Option<f64> {
    let e = &count.events.iter().find(|e| e.event.name == name).unwrap().estimate;
    if e.value.is_none() {
        let Some(NotMeasured::NotCounted { detail }) = &e.not_measured else { panic!("{e:?}") };
        assert!(["refused", "does not have", "happens in the kernel"].iter().any(|why| detail.contains(why)), "{detail}");
        eprintln!("not counted here: {name} {detail}");
    }
    e.value
}

/// Events take descriptors, so memgauge raises its own limit on them.
#[test]
fn a_program_has_the_limits_that_memgauge_was_started_with() {
    let limits = "ulimit -S -n; ulimit -H -n; ulimit -S -t; ulimit -H -t";
    let line = format!(
        "ulimit -S -n 200; ulimit -H -n 1000; ulimit -t 300; {limits}; exec {} count -q -- sh -c '{limits}'",
        env!("CARGO_BIN_EXE_memgauge")
    );
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().collect::<Vec<_>>(), ["200", "1000", "300", "300", "200", "1000", "300", "300"]);
}

#[test]
fn page_faults_are_those_of_the_program() {
    let dd = |name, block: &str| {
        let (_, count) = counted(name, &["-e", "page-faults"], &["dd", "if=/dev/zero", "of=/dev/null", block, "count=1", "status=none"]);
        assert_eq!(count.runs, [ProgramRun::Exited(0)]);
        (count.scope, median(&count, "page-faults"))
    };
    let ((scope, Some(small)), (_, Some(large))) = (dd("small", "bs=4K"), dd("large", "bs=64M")) else { return };
    if scope == Scope::User {
        not_tested!("the kernel takes these faults while it reads for dd, and only the program's own part may be counted");
    }
    let pages = 64.0 * 256.0;
    // If huge pages back the buffer, there is only one fault for each 2 MiB.
    let thp = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").is_ok_and(|t| t.contains("[always]"));
    let least = if thp { 32.0 } else { pages };
    let more = large - small;
    assert!((least - 8.0..=pages + 64.0).contains(&more), "{more} faults more for 64 MiB (THP always: {thp})");
}

#[test]
fn time_and_switches_are_plausible() {
    let (_, count) = counted("time", &["-e", "task-clock,context-switches"], &["sleep", "0.2"]);
    let elapsed = count.elapsed_s.value.unwrap();
    assert!((0.2..5.0).contains(&elapsed), "{elapsed} s");
    let (Some(ns), Some(switches)) = (median(&count, "task-clock"), median(&count, "context-switches")) else { return };
    assert!(ns > 1e4 && ns < 0.15e9, "sleeping takes no CPU: {ns} ns");
    assert!((1.0..200.0).contains(&switches), "{switches} switches of a program that slept once");
}

#[test]
fn repetitions_have_a_median_and_an_interval() {
    let (report, count) = counted("runs", &["-r", "7", "-e", "page-faults"], &["true"]);
    assert!(report.complete && count.runs.len() == 7);
    assert_eq!(count.elapsed_s.n, 7);
    let e = &count.events[0].estimate;
    if median(&count, "page-faults").is_none() {
        return;
    }
    assert_eq!(e.n, 7);
    assert!(e.min <= e.ci95_low && e.ci95_low <= e.value && e.value <= e.ci95_high && e.ci95_high <= e.max, "{e:?}");
}

#[test]
fn the_programs_output_and_status_are_its_own() {
    let output = run(&["count", "--", "sh", "-c", "echo out; exit 3"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"out\n".as_slice()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Counters of sh -c echo out; exit 3"));
    assert_eq!(run(&["count", "-q", "--", "sh", "-c", "kill -KILL $$"]).status.code(), Some(128 + 9));
    assert_eq!(run(&["count", "--", "/no/such/program"]).status.code(), Some(127));
    assert_eq!(run(&["count", "--", "/etc/passwd"]).status.code(), Some(126));
    let unknown = run(&["count", "-e", "no-such-event", "--", "true"]);
    assert_eq!(unknown.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no event 'no-such-event'"));
}

#[test]
fn signals_reach_the_program() {
    let begun = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("count-begun-{}", std::process::id()));
    let started = Instant::now();
    let line = ["count", "-q", "-r", "3", "--", "sh", "-c", "echo >> \"$0\"; exec sleep 30", begun.to_str().unwrap()];
    let mut child = program(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !begun.exists() {
        assert!(started.elapsed() < Duration::from_secs(20), "the program does not run");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: the child has not been waited for, so its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(128 + libc::SIGTERM), None));
    assert_eq!(std::fs::read_to_string(&begun).unwrap().lines().count(), 1, "the program ended, and no other run began");
    std::fs::remove_file(begun).unwrap();
}

#[test]
fn runs_before_one_that_does_not_start_are_kept() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("count-again-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (script, json) = (folder.join("once"), folder.join("once.json"));
    let write = "printf '#!/bin/sh\\nrm -- \"$0\"\\n' > \"$0\" && chmod 755 \"$0\"";
    // A child of another test would have the file open for writing if this process wrote it, and the kernel would not run it (ETXTBSY).
    assert!(Command::new("sh").arg("-c").arg(write).arg(&script).status().unwrap().success());
    let output = run(&["count", "-q", "-r", "3", "-o", json.to_str().unwrap(), "--", script.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run"));
    let report: Report = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(!report.complete && report.incomplete == Some(Incomplete::ProgramNotRestarted));
    assert_eq!(report.program.unwrap().runs, [ProgramRun::Exited(0)]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// A terminal with this many columns: the program's end of it, and ours.
fn terminal(columns: u16) -> (OwnedFd, std::fs::File) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize { ws_row: 25, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: openpty writes two descriptors, both of which are valid places; it reads the size and accepts null for the rest.
    let made = unsafe { libc::openpty(&raw mut ours, &raw mut theirs, std::ptr::null_mut(), std::ptr::null(), &raw const size) };
    assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both descriptors were just opened, and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(theirs), std::fs::File::from_raw_fd(ours)) }
}

#[test]
fn text_is_for_the_terminal_that_shows_it() {
    // The text goes to standard error; standard output is the counted program's.
    let count = |stdout: Stdio, stderr: Stdio| {
        let mut command = program(&["count", "-e", "page-faults,task-clock,context-switches", "--", "true"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR").stdout(stdout).stderr(stderr);
        // The command's copies of the descriptors go with it.
        command.spawn().unwrap()
    };
    let (theirs, mut ours) = terminal(60);
    let mut child = count(Stdio::null(), theirs.into());
    let mut shown = Vec::new();
    // A terminal whose other end is closed gives an error instead of an end.
    let _ = ours.read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("Counters of true") && shown.contains("\x1b["), "{shown}");
    let plain = |line: &str| -> usize {
        let parts = line.split("\x1b[").enumerate();
        parts
            .map(|(i, part)| if i == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) }.trim_end().chars().count())
            .sum()
    };
    assert!(shown.lines().all(|line| plain(line) <= 60), "{shown}");

    let (theirs, _ours) = terminal(60);
    let child = count(theirs.into(), Stdio::piped());
    let output = child.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(shown.contains("Counters of true") && !shown.contains("\x1b["), "{shown}");
}

#[test]
fn what_cannot_be_counted_is_said_once() {
    let (report, count) = counted("note", &[], &["true"]);
    let missing: Vec<_> = report.notes.iter().filter(|n| n.code == memgauge_model::note::NoteCode::CountersMissing).collect();
    assert!(missing.len() <= 1, "{missing:?}");
    let cycles = count.metrics.iter().any(|m| m.estimate.value.is_some());
    assert!(cycles || missing.len() == 1, "either metrics or the reason why there are none");
    for metric in &count.metrics {
        assert!(
            metric.estimate.value.is_some() || matches!(metric.estimate.not_measured, Some(NotMeasured::NotCounted { .. })),
            "{metric:?}"
        );
    }
}

#[test]
fn a_measurement_has_counters_or_one_reason() {
    let line = ["latency", "--size", "64K", "--window", "16K", "--time", "60ms", "--counters", "--format", "json"];
    let output = crate::support::measured(&mut program(&line));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report.results.len(), 2);
    assert!(report.plan.unwrap().counters);
    for m in &report.results {
        let counters = m.counters.as_ref().unwrap();
        match &counters.reason {
            Some(reason) => {
                assert!(counters.events.is_empty() && counters.metrics.is_empty(), "{counters:?}");
                assert!(reason.len() > 20, "{reason}");
            }
            None => {
                assert!(counters.work.unwrap().count > 0);
                assert!(counters.events.iter().all(|e| e.value.is_some() != e.reason.is_some()), "{counters:?}");
                assert!(counters.metrics.iter().all(|m| m.value.is_some() != m.reason.is_some()), "{counters:?}");
            }
        }
    }
    let nothing = report.results.iter().any(|m| m.counters.as_ref().unwrap().reason.is_some());
    assert_eq!(
        report.notes.iter().filter(|n| n.code == memgauge_model::note::NoteCode::NoCounters).count(),
        usize::from(nothing),
        "{:?}",
        report.notes
    );
}
