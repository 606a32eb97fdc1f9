//! Signals at random moments: a run ends with what it has, leaves no part of a file, and ends soon.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::bench::{Bench, Dice, Outcome};

/// Runs of all commands that measure, which would take seconds and more.
const LINES: [&str; 23] = [
    "--time 5s",
    "latency --time 5s --size 4M -o x.json",
    "latency --time 5s --size 64M --order full-random",
    "bandwidth --time 5s --size 4M -o x.svg",
    "bandwidth --line check --time 5s --size 16M",
    "loaded --time 3s --size 4M",
    "c2c --time 5s",
    "sweep --time 5s",
    "scan --within 5s -o x.txt",
    "scan --integrity --size 64M --passes 1000",
    "stream 64M --passes 10000",
    "chase 64M --passes 10000",
    "quick --within 10s",
    "pmem --time 5s --size 4M .",
    "tiers --time 5s",
    "interleave --time 5s",
    "prefetch compare --time 5s",
    "run x.toml --time 5s",
    "compare --runs 9 -- true --- true",
    "mlc --idle_latency -t20",
    "mlc --latency_matrix -t20",
    "mlc --loaded_latency -t20",
    "mlc --peak_injection_bandwidth -t20",
];
/// The content of the file of threads.
const THREADS: &str = "[[threads]]\ncpus = \"0\"\nsize = \"16M\"\n";
/// The longest that a run goes on before the signal.
const LATEST_MS: u64 = 1500;
/// Runs end within half a second of a signal. If other processes occupy the CPUs, the time that runs wait for a CPU comes on top.
const SOON: Duration = Duration::from_secs(3);
/// On a busy machine that is occasionally not enough, so a run that took longer is tried again.
const TRIES: u32 = 3;

pub(super) fn once(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let (line, signal) = (*dice.pick(&LINES), *dice.pick(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]));
    let after = Duration::from_millis(dice.next() % LATEST_MS);
    let what = format!("{line}, signal {signal} after {after:?}");
    let mut outcome = Outcome::Passed;
    for _ in 0..TRIES {
        let took;
        (outcome, took) = signalled(bench, line, signal, after)?;
        if took < SOON {
            break;
        }
        outcome = Outcome::Failed(format!("ended {took:?} after the signal"));
    }
    Ok((what, outcome))
}

fn signalled(bench: &Bench, line: &str, signal: libc::c_int, after: Duration) -> Result<(Outcome, Duration)> {
    std::fs::write(bench.folder.join("x.toml"), THREADS)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let child = bench.command(&words).spawn()?;
    std::thread::sleep(after);
    // SAFETY: a process that was started here and not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    let sent = Instant::now();
    let outcome = match bench.judge(child, super::bench::LONGEST)? {
        // Before it watches for signals, one ends it as it ends any program.
        Outcome::Failed(why) if why.starts_with(&format!("ended by signal {signal}:")) => Outcome::Passed,
        outcome => outcome,
    };
    Ok((outcome, sent.elapsed()))
}
