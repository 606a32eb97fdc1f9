//! Signals at random moments: a run ends with what it has, leaves no part of a file, and ends soon.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::bench::{Bench, Dice, Outcome, wait};

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
/// What the file of threads says.
const THREADS: &str = "[[threads]]\ncpus = \"0\"\nsize = \"16M\"\n";
/// The longest that a run goes on before the signal.
const LATEST_MS: u64 = 1500;
/// Runs end within half a second of a signal. Where other processes have the CPUs, they wait for those meanwhile.
const SOON: Duration = Duration::from_secs(3);
/// Once in a while that is not enough on a machine that is busy, so what took longer is tried again.
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

/// Runs that write files, which take their names when they are whole.
const WRITING: [&str; 6] = [
    "info -q -o x.json -o x.svg -o x.html",
    "latency --time 20ms --size 1M -q -o x.json -o x.svg",
    "bandwidth --time 20ms --size 1M -q -o x.json -o x.csv",
    "stream 1M --passes 2 -q -o x.json",
    "pmem --within 2s --size 1M --out x .",
    "quick --within 2s --state x",
];
/// The longest that a run which writes goes on before it is killed.
const KILLED_MS: u64 = 400;

/// SIGKILL while a run writes: what has its name is whole, and the next run removes the rest.
pub(super) fn killed(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let line = *dice.pick(&WRITING);
    let after = Duration::from_micros(dice.next() % (KILLED_MS * 1000));
    let what = format!("{line}, killed after {after:?}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut child = bench.command(&words).spawn()?;
    std::thread::sleep(after);
    child.kill()?;
    wait(&mut child, super::bench::LONGEST)?;
    let mut partial = Vec::new();
    for folder in [bench.folder.clone(), bench.folder.join("x")] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (name, bytes) = (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap_or_default());
            let whole = match name.rsplit('.').next() {
                Some("json") => serde_json::from_slice::<memgauge_model::result::Report>(&bytes).is_ok(),
                Some("svg") => bytes.ends_with(b"</svg>\n"),
                Some("html") => bytes.ends_with(b"</html>\n"),
                _ => true,
            };
            // What has no name yet is hidden, and known by it.
            if !whole && !name.starts_with('.') {
                partial.push(format!("{name} has {} bytes", bytes.len()));
            }
        }
    }
    // The next run knows what is left by its name. A folder of results is for one run only.
    if !line.starts_with("pmem") {
        if wait(&mut bench.command(&words).spawn()?, super::bench::LONGEST)?.is_none() {
            partial.push("the next run does not end".to_owned());
        }
        let inside = std::fs::read_dir(bench.folder.join("x")).into_iter().flatten().flatten();
        partial.extend(inside.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with('.')));
    }
    let mut left = bench.tidy()?;
    left.extend(partial);
    Ok((what, if left.is_empty() { Outcome::Passed } else { Outcome::Failed(left.join(", ")) }))
}
