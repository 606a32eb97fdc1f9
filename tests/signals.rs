//! How runs end that a signal or their time cuts short: soon, and with what was measured.
// A panic in a helper is the failure report of its test. A test that is skipped prints why.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memgauge_core::result::{Incomplete, Report};
use memgauge_testing::not_tested_in_part;

use support::{alone, hangup, program, temporary, text};

/// Runs end half a second after a signal. Other processes may have the CPUs for a while.
const SOON: Duration = Duration::from_secs(3);
const SIGNALS: [(i32, &str); 3] = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];

/// Starts a program and sends it these signals, the first after `delay`, the others at once. Returns how it ended, and how long after the
/// first. One that took too long is started again, twice at most: other processes may have had the CPUs.
fn signalled(command: impl Fn() -> Command, delay: impl Fn() -> Duration, signals: &[i32]) -> (Output, Duration) {
    let _permit = alone();
    let tries = (0..3).map(|_| signalled_once(command(), delay(), signals));
    let mut late = None;
    for tried in tries {
        if tried.1 < SOON {
            return tried;
        }
        late = Some(tried);
    }
    late.unwrap()
}

fn signalled_once(mut command: Command, delay: Duration, signals: &[i32]) -> (Output, Duration) {
    hangup(&mut command, false);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(delay);
    let sent = Instant::now();
    for signal in signals {
        // SAFETY: the process is our child and has not been waited for, so its number is still its own.
        unsafe { libc::kill(child.id() as i32, *signal) };
    }
    let output = child.wait_with_output().unwrap();
    (output, sent.elapsed())
}

fn memgauge(line: &str) -> Command {
    let mut command = program();
    command.args(line.split_whitespace()).args(["--format", "json"]);
    // Whoever runs the tests as root did not ask for registers to be written: there are none in this folder.
    command.env("MEMGAUGE_MSR_ROOT", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// A moment within the first seconds, another one each time. Set-up of the larger sizes takes longer than that.
fn moment() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Duration::from_millis(200 + u64::from(now.subsec_micros()) % 2300)
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
    std::fs::write(&threads, "[[threads]]\ncpus = \"0\"\nsize = \"64M\"\n").unwrap();
    // What a tenth of the machine's memory is, so that setting up takes a while.
    let large = (free_kib() / 10 / 1024).clamp(64, 4096);
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
    let mut longest = (Duration::ZERO, String::new());
    for (nth, line) in lines.iter().enumerate() {
        let (signal, name) = SIGNALS[nth % SIGNALS.len()];
        let command = || if other(line) { plain(line) } else { memgauge(line) };
        let (output, took) = signalled(command, moment, &[signal]);
        let what = format!("{line}, {name}: {:?} {}", output.status, text(&output.stderr));
        assert!(took < SOON, "{took:?}: {what}");
        longest = longest.max((took, line.clone()));
        if other(line) {
            let ended = output.status.code() == Some(130) || output.status.signal() == Some(signal);
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
    eprintln!("the longest: {longest:?}");
}

fn plain(line: &str) -> Command {
    let mut command = program();
    // Whoever runs the tests as root did not ask for registers to be written.
    command.args(line.split_whitespace()).env("MEMGAUGE_MLC_PREFETCH", "leave");
    command
}

#[test]
fn a_long_time_is_measured_in_parts_of_which_those_before_a_signal_count() {
    for line in ["bandwidth --time 60s --size 16M", "latency --time 60s --size 16M", "stream 16M --passes 10000"] {
        let (output, took) = signalled(|| memgauge(line), || Duration::from_secs(4), &[libc::SIGTERM]);
        assert!(took < SOON, "{line}: {took:?}");
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report.results[0].estimate.value.is_some(), "{line}: {:?}", report.results[0].estimate);
    }
}

#[test]
fn two_signals_at_once_lose_nothing() {
    let line = "bandwidth --mix all-reads --size 16M --time 30s";
    let both = [libc::SIGINT, libc::SIGTERM];
    for _ in 0..3 {
        let (output, took) = signalled(|| memgauge(line), || Duration::from_secs(2), &both);
        assert!(took < SOON, "{took:?}");
        assert_eq!(output.status.code(), Some(130));
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        assert!(matches!(report.incomplete, Some(Incomplete::Signal { .. })));
    }
    let mlc = || {
        let mut mlc = Command::new(env!("CARGO_BIN_EXE_mlc"));
        mlc.env("MEMGAUGE_MLC_PREFETCH", "leave").args(["--max_bandwidth", "-t5", "-b16m"]);
        mlc
    };
    let (output, took) = signalled(mlc, || Duration::from_secs(8), &both);
    let printed = text(&output.stdout);
    assert!(took < SOON && output.status.code() == Some(130), "{took:?} {:?}", output.status);
    assert!(printed.contains("ALL Reads"), "what was measured is printed: {printed}");
}

#[test]
fn nohup_keeps_a_run_alive() {
    let _permit = alone();
    let mut command = memgauge("bandwidth --mix all-reads --size 16M --time 3s");
    hangup(&mut command, true);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    // SAFETY: the process is our child and has not been waited for, so its number is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGHUP) };
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?} {}", output.status, text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.complete, "{:?}", report.incomplete);
}

#[test]
fn a_run_keeps_its_time_whatever_else_is_asked() {
    for line in ["bandwidth --time 60s --size 64M", "latency --time 60s --size 64M", "loaded --time 60s --size 64M", "quick --time 30s"] {
        let _permit = alone();
        let run = || {
            let began = Instant::now();
            let output = memgauge(line).args(["--within", "3s"]).output().unwrap();
            (output, began.elapsed())
        };
        // Other processes may have had the CPUs.
        let mut tries = (0..3).map(|_| run());
        let mut last = tries.next().unwrap();
        while last.1 >= Duration::from_secs(3) + SOON
            && let Some(again) = tries.next()
        {
            last = again;
        }
        let (output, took) = last;
        assert!(took < Duration::from_secs(3) + SOON, "{line}: {took:?} {}", text(&output.stderr));
    }
}

/// How often a run is tried that other processes may have held up.
const TRIES: u32 = 5;

/// The mean number of threads that had or wanted a CPU in the last minute, and the number of CPUs.
fn load() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get();
    (text.split(' ').next().unwrap().parse().unwrap(), cpus as f64)
}

#[test]
fn a_large_buffer_is_set_up_within_the_time() {
    // As much as takes longer than a second to set up, or what there is.
    let large = (free_kib() / 4 / 1024).clamp(64, 4096);
    for line in [
        format!("latency --size {large}M"),
        format!("latency --order full-random --size {large}M"),
        format!("bandwidth --size {}M", large / 2),
        format!("loaded --size {}M", large / 2),
        format!("scan --integrity --size {large}M"),
        format!("prefetch compare --size {large}M"),
    ] {
        let _permit = alone();
        // 10 % and half a second more than a second.
        let bound = Duration::from_millis(1600);
        let mut times = Vec::new();
        while times.last().is_none_or(|took| *took > bound) && times.len() < TRIES as usize {
            let began = Instant::now();
            let output = memgauge(&line).args(["--within", "1s"]).output().unwrap();
            times.push(began.elapsed());
            assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{line}: {:?} {}", output.status, text(&output.stderr));
        }
        let best = *times.iter().min().unwrap();
        // Only where others have the CPUs is that no fault.
        let (wanted, cpus) = load();
        let slack = if wanted > cpus { SOON } else { Duration::ZERO };
        assert!(best <= bound + slack, "{line}: {times:?} where {wanted} threads want {cpus} CPUs");
    }
}
