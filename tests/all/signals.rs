//! How runs end that a signal or their time cuts short: soon, and with what was measured.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memgauge_model::result::{Incomplete, Report};
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support::watch::{Ended, InTime, Watched};
use crate::support::{alone, first_cpu, had_no_cpu_time, hangup, program, temporary, text};

/// Runs end half a second after a signal.
const SOON: Duration = Duration::from_secs(3);
const SIGNALS: [(i32, &str); 3] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];

/// When a signal is sent.
#[derive(Clone, Copy)]
enum When {
    /// When handlers of signals are there, and up to 0.2 s of CPU time later: another moment each time. Set-up of the larger sizes takes
    /// longer than that.
    AnyTime,
    /// So many bursts into the first cell.
    Bursts(u32),
    /// When it has used so much CPU time.
    Used(Duration),
    /// When it has run for so long.
    After(Duration),
    /// When it waits for a program that it has started.
    Waiting,
}

/// Starts a program and sends it these signals. `None` if it ended before.
fn signalled(mut command: Command, when: When, signals: &[i32]) -> Option<Ended> {
    let _permit = alone();
    hangup(&mut command, false);
    let mut run = Watched::start(&mut command);
    let there = match when {
        When::AnyTime => run.until_it_has_used(moment()),
        When::Bursts(bursts) => run.until_it_measures(bursts),
        When::Used(time) => run.until_it_has_used(time),
        When::After(time) => {
            std::thread::sleep(time);
            !run.ended()
        }
        When::Waiting => run.until_it_waits(),
    };
    if !there {
        return None;
    }
    signals.iter().for_each(|signal| run.signal(*signal));
    Some(run.end())
}

fn memgauge(line: &str) -> Command {
    let mut command = program();
    command.args(line.split_whitespace()).args(["--format", "json"]);
    // Whoever runs the tests as root did not ask for registers to be written: there are none in this folder.
    command.env("MEMGAUGE_MSR_ROOT", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// CPU time that a run has used when it is interrupted.
fn moment() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Duration::from_millis(50 + u64::from(now.subsec_micros()) % 150)
}

/// Kibibytes that are free here.
fn free_kib() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = info.lines().find(|l| l.starts_with("MemAvailable")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn every_command_ends_soon_after_a_signal_with_what_was_measured() {
    let directory = temporary("signals");
    let threads = directory.join("cells.toml");
    std::fs::write(&threads, format!("[[threads]]\ncpus = \"{}\"\nsize = \"64M\"\n", first_cpu())).unwrap();
    // What a tenth of the machine's memory is, so that setting up takes a while.
    let large = (free_kib() / 10 / 1024).clamp(64, 128);
    let lines = [
        "--time 60s".to_owned(),
        "quick --time 60s".to_owned(),
        "latency --time 60s --size 64M".to_owned(),
        format!("latency --size {large}M --order full-random --time 60s"),
        format!("latency --size {}M --memory-dir {} --time 60s", large / 4, directory.display()),
        "bandwidth --time 60s --size 64M".to_owned(),
        format!("bandwidth --time 60s --size {}M", large / 4),
        "loaded --time 60s --size 64M".to_owned(),
        "c2c --time 60s".to_owned(),
        "sweep --time 60s --max 16M".to_owned(),
        format!("scan --size {large}M --passes 1000"),
        format!("scan --size {large}M --integrity --passes 3"),
        format!("stream {large}M --passes 1000"),
        format!("chase {large}M --passes 1000"),
        "tiers --time 60s --size 64M".to_owned(),
        "interleave --time 60s --size 64M".to_owned(),
        format!("pmem {} --time 60s --size 16M", directory.display()),
        "prefetch compare --time 60s --size 64M".to_owned(),
        format!("run {} --time 60s", threads.display()),
        "bandwidth --line check --time 60s --size 64M".to_owned(),
        "compare --runs 9 -- true --- true".to_owned(),
        "mlc --idle_latency -t60".to_owned(),
        "mlc --latency_matrix -t60".to_owned(),
        "mlc --bandwidth_matrix -t60".to_owned(),
        "mlc --loaded_latency -t60".to_owned(),
        "mlc --c2c_latency -t60".to_owned(),
        "count -- sleep 60".to_owned(),
    ];
    // Their output is no result.
    let other = |line: &str| ["count", "compare", "mlc"].iter().any(|command| line.starts_with(command));
    for (nth, line) in lines.iter().enumerate() {
        let (signal, name) = SIGNALS[nth % SIGNALS.len()];
        let command = if other(line) { plain(line) } else { memgauge(line) };
        // These wait for what they start, and use no CPU time.
        let when = match line.split(' ').next() {
            Some("compare") => When::After(moment()),
            Some("count") => When::Waiting,
            _ => When::AnyTime,
        };
        let Some(ended) = signalled(command, when, &[signal]) else {
            // These need what not every machine has, and say so.
            let needs_more =
                ["loaded", "c2c", "tiers", "interleave", "mlc --c2c", "mlc --loaded"].iter().any(|start| line.starts_with(start));
            assert!(needs_more || line.starts_with("compare"), "{line} ended by itself");
            continue;
        };
        let output = &ended.output;
        let what = format!("{line}, {name}: {:?} {}", output.status, text(&output.stderr));
        match ended.within(SOON) {
            InTime::Yes => {}
            InTime::No(late) => panic!("{late}: {what}"),
            InTime::NotTested(why) => not_tested_in_part!("{line}: {why}"),
        }
        if other(line) {
            let status = if line.starts_with("mlc") { 128 + signal } else { 130 };
            let ended = output.status.code() == Some(status) || output.status.signal() == Some(signal);
            assert!(ended || line.starts_with("count"), "{what}");
            continue;
        }
        let needs =
            ["need two CPUs", "one tier of memory", "no second tier of memory"].into_iter().find(|why| text(&output.stderr).contains(why));
        if let Some(why) = needs.filter(|_| output.status.code() == Some(4)) {
            not_tested_in_part!("{line}: {why}");
            continue;
        }
        // Before it can measure anything, a signal ends it as it ends any program.
        if output.status.signal() == Some(signal) {
            eprintln!("too early: {what}");
            continue;
        }
        assert_eq!(output.status.code(), Some(130), "{what}");
        let nothing = output.stdout.is_empty() && (line.starts_with("stream") || line.starts_with("chase"));
        if nothing && text(&output.stderr).contains("interrupted before anything was measured") {
            continue;
        }
        let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {what}"));
        assert!(!report.complete, "{what}");
        assert_eq!(report.incomplete, Some(Incomplete::Signal { name: name.to_owned() }), "{what}");
    }
}

fn plain(line: &str) -> Command {
    let mut command = program();
    // Whoever runs the tests as root did not ask for registers to be written.
    command.args(line.split_whitespace()).env("MEMGAUGE_MLC_PREFETCH", "leave");
    command
}

#[test]
fn a_long_time_is_measured_in_parts_of_which_those_before_a_signal_count() {
    for (line, when) in [
        ("bandwidth --mix 1:1-nt --width sse2 --time 60s --size 4M", When::Used(Duration::from_millis(1200))),
        ("latency --order window-local --time 60s --size 4M", When::Used(Duration::from_millis(700))),
        ("stream 16M --passes 10000", When::Used(Duration::from_millis(700))),
    ] {
        let Some(ended) = signalled(memgauge(line), when, &[libc::SIGTERM]) else { panic!("{line} ended by itself") };
        let late = ended.within(SOON);
        assert!(!matches!(late, InTime::No(_)), "{line}: {late:?}");
        let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
        if report.results[0].estimate.value.is_none()
            && let Some(why) = ended.starved()
        {
            not_tested_in_part!("{line}: {why}");
            continue;
        }
        assert!(report.results[0].estimate.value.is_some(), "{line}: {:?}", report.results[0].estimate);
    }
}

#[test]
fn two_signals_at_once_lose_nothing() {
    let line = "bandwidth --mix all-reads --width sse2 --size 4M --time 30s";
    let both = [libc::SIGINT, libc::SIGTERM];
    for _ in 0..2 {
        let Some(ended) = signalled(memgauge(line), When::Bursts(3), &both) else { panic!("{line} ended by itself") };
        let late = ended.within(SOON);
        assert!(!matches!(late, InTime::No(_)), "{late:?}");
        assert_eq!(ended.output.status.code(), Some(130));
        let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
        assert!(matches!(report.incomplete, Some(Incomplete::Signal { .. })));
    }
    let mut mlc = Command::new(env!("CARGO_BIN_EXE_mlc"));
    mlc.env("MEMGAUGE_MLC_PREFETCH", "leave").args(["--max_bandwidth", "-t0.3", "-b16m"]).stdin(Stdio::null());
    hangup(&mut mlc, false);
    let _permit = alone();
    let mut run = Watched::start(&mut mlc);
    // All reads are the first cell.
    let first = std::cell::OnceCell::new();
    let second = |run: &Watched| {
        let seen = run.seen();
        seen.bursts > 0 && *first.get_or_init(|| seen.cell.clone()) != seen.cell
    };
    assert!(run.until(second), "it ended by itself");
    both.iter().for_each(|signal| run.signal(*signal));
    let ended = run.end();
    let (printed, late) = (text(&ended.output.stdout), ended.within(SOON));
    // Which of the two arrives first, the kernel decides.
    assert!(!matches!(late, InTime::No(_)) && matches!(ended.output.status.code(), Some(130 | 143)), "{late:?} {:?}", ended.output.status);
    assert!(printed.contains("ALL Reads"), "what was measured is printed: {printed}");
}

#[test]
fn nohup_keeps_a_run_alive() {
    let _permit = alone();
    let mut command = memgauge("bandwidth --width sse2 --mix all-reads --size 16M --time 300ms");
    hangup(&mut command, true);
    let mut run = Watched::start(&mut command);
    if !run.until_it_measures(1) {
        not_tested!("it ended before it got the signal");
    }
    run.signal(libc::SIGHUP);
    let ended = run.end();
    let output = &ended.output;
    if had_no_cpu_time(output) {
        not_tested!("others had the CPUs");
    }
    assert!(output.status.success(), "{:?} {}", output.status, text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.complete, "{:?}", report.incomplete);
}

#[test]
fn a_run_keeps_its_time_whatever_else_is_asked() {
    for line in ["bandwidth --time 60s --size 16M", "latency --time 60s --size 16M", "loaded --time 60s --size 16M", "quick --time 30s"] {
        let _permit = alone();
        let ended = Watched::start(memgauge(line).args(["--within", "300ms"])).end();
        match ended.within(Duration::from_millis(300) + SOON) {
            InTime::Yes => {}
            InTime::No(late) => panic!("{line}: {late}: {}", text(&ended.output.stderr)),
            InTime::NotTested(why) => not_tested_in_part!("{line}: {why}"),
        }
    }
}

#[test]
fn a_large_buffer_is_set_up_within_the_time() {
    // As much as takes longer than half a second to set up, or what there is.
    let large = (free_kib() / 4 / 1024).clamp(64, 2048);
    for line in [
        format!("latency --order full-random --size {large}M"),
        format!("loaded --size {}M", large / 2),
        format!("scan --integrity --size {large}M"),
    ] {
        let _permit = alone();
        let ended = Watched::start(memgauge(&line).args(["--within", "500ms"])).end();
        let output = &ended.output;
        assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{line}: {:?} {}", output.status, text(&output.stderr));
        // 10 % and half a second more than half a second.
        match ended.within(Duration::from_millis(1050)) {
            InTime::Yes => {}
            InTime::No(late) => panic!("{line}: {late}"),
            InTime::NotTested(why) => not_tested_in_part!("{line}: {why}"),
        }
    }
}
