//! Signals at random moments: a run ends with what it has, leaves no part of a file, and ends soon.

use std::time::Duration;

use anyhow::Result;

use super::bench::{Bench, Dice};

/// Runs that would take seconds.
const LINES: [&str; 7] = [
    "latency --time 5s --size 4M -o x.json",
    "bandwidth --time 5s --size 4M -o x.svg",
    "loaded --time 3s --size 4M",
    "c2c --time 5s",
    "sweep --time 5s",
    "scan --within 5s -o x.txt",
    "quick --within 10s",
];
/// The longest that a run goes on before the signal.
const LATEST_MS: u64 = 1500;

pub(super) fn once(bench: &Bench, dice: &mut Dice) -> Result<(String, Option<String>)> {
    let (line, signal) = (*dice.pick(&LINES), *dice.pick(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP]));
    let after = Duration::from_millis(dice.next() % LATEST_MS);
    let what = format!("{line}, signal {signal} after {after:?}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let child = bench.command(&words).spawn()?;
    std::thread::sleep(after);
    // SAFETY: a process that was started here and not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    let failure = bench.judge(child)?;
    // Before it watches for signals, one ends it as it ends any program.
    Ok((what, failure.filter(|why| !why.starts_with(&format!("ended by signal {signal}:")))))
}
