//! `cargo xtask fuzz`: every parser and every format with mutated input.
//!
//! A target is a function of bytes, at most 1 MiB, that must return without a panic and within a second of CPU time. It runs in a process of its
//! own, whose address space may grow by 128 MiB (512 MiB for targets that draw or decompress), which holds the input as well. An input is made
//! from the seed, the target and the input's number alone. So any input can be made again, and after an input has killed a process, another
//! process goes on behind that input.

mod fleets;
mod input;
mod renderings;
mod scratch;
mod targets;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memgauge_model::units::parse_duration;

use crate::folders::target_folder;
pub(crate) use input::Dice;
use input::{MAX_BYTES, Source};
pub(crate) use scratch::scratch;
use scratch::{SCRATCH, scratch_of};
use targets::{TARGETS, Target};

/// CPU time that one input may take.
const LONGEST: Duration = Duration::from_secs(1);
/// How often the process that runs a target is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Address space beyond that of the idle process, for the target, its input and the allocator. Targets may have a multiple.
const ADDRESS_SPACE: u64 = 128 << 20;
/// More findings than this of one target are one defect.
const ENOUGH: usize = 10;

/// The arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// What to fuzz [default: everything]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Time for each target
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,
    /// The seed of all inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run only the input with this number, and print it
    #[arg(long, value_name = "NUMBER")]
    input: Option<u64>,
    /// For the process that runs a target: the file to which it writes the number of its input, and the number of the first
    #[arg(long, hide = true, value_names = ["FILE", "NUMBER"], num_args = 2)]
    child: Option<Vec<String>>,
}

pub(crate) fn fuzz(args: &FuzzArgs) -> Result<()> {
    let named =
        |name: &String| TARGETS.iter().find(|t| t.name == name).with_context(|| format!("there is no target '{name}': {}", names()));
    let targets: Vec<&Target> =
        if args.targets.is_empty() { TARGETS.iter().collect() } else { args.targets.iter().map(named).collect::<Result<_>>()? };
    if let (Some([file, first]), [target]) = (args.child.as_deref(), targets.as_slice()) {
        return run_inputs(target, args, Path::new(file), first.parse()?);
    }
    if let (Some(number), [target]) = (args.input, targets.as_slice()) {
        let bytes = Source::new(target, args.seed)?.input(number);
        println!("{}", bytes.escape_ascii());
        let run = (target.prepare)()?;
        let ended = catch_unwind(AssertUnwindSafe(|| run(&bytes)));
        for name in SCRATCH {
            let _ = fs::remove_dir_all(scratch_of(name, std::process::id()));
        }
        ensure!(ended.is_ok(), "it panicked");
        return Ok(());
    }
    let (executions, findings) = run_targets(&targets, args.time, args.seed)?;
    println!("{} targets, {executions} executions, {findings} findings", targets.len());
    ensure!(findings == 0, "{findings} findings");
    Ok(())
}

fn names() -> String {
    TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ")
}

fn run_targets(targets: &[&Target], time: Duration, seed: u64) -> Result<(u64, usize)> {
    let folder = target_folder().join("fuzz");
    fs::create_dir_all(&folder)?;
    let (mut executions, mut findings) = (0, 0);
    for target in targets {
        let began = Instant::now();
        let (ran, found) = run_target(target, time, seed, &folder)?;
        println!("{:<12} {ran:>12} executions, {:>2} findings, {:>6.1} s", target.name, found.len(), began.elapsed().as_secs_f64());
        for (number, why) in &found {
            let bytes = Source::new(target, seed)?.input(*number);
            let file = folder.join(format!("{}-{seed}-{number}", target.name));
            fs::write(&file, bytes)?;
            println!("  {why}: cargo xtask fuzz {} --seed {seed} --input {number} ({})", target.name, file.display());
        }
        executions += ran;
        findings += found.len();
    }
    Ok((executions, findings))
}

/// Runs a target in processes, one after the other, until the time is over. Returns the number of executions, and each finding: the number
/// of its input, and what happened.
fn run_target(target: &Target, time: Duration, seed: u64, folder: &Path) -> Result<(u64, Vec<(u64, String)>)> {
    let progress = folder.join(format!("{}.{}", target.name, std::process::id()));
    let (end, mut first, mut findings) = (Instant::now() + time, 0u64, Vec::new());
    while findings.len() < ENOUGH {
        let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| *left > LOOK) else { break };
        fs::write(&progress, first.to_le_bytes())?;
        let mut child = start(target, left, seed, &progress, first)?;
        let ended = watch(&mut child, &progress, end);
        let number = read_number(&progress)?;
        // Folders that its targets had made.
        for name in SCRATCH {
            let folder = scratch_of(name, child.id());
            if folder.exists() {
                fs::remove_dir_all(folder)?;
            }
        }
        match ended? {
            None => {
                first = number + 1;
                break;
            }
            Some(why) => findings.push((number, why)),
        }
        first = number + 1;
    }
    fs::remove_file(&progress)?;
    Ok((first, findings))
}

fn start(target: &Target, time: Duration, seed: u64, progress: &Path, first: u64) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["fuzz", target.name, "--seed", &seed.to_string(), "--time", &format!("{}ms", time.as_millis()), "--child"]);
    command
        .env("RUST_BACKTRACE", "0")
        .arg(progress)
        .arg(first.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let space = idle_address_space()? + ADDRESS_SPACE * target.memory_times;
    let limit = libc::rlimit { rlim_cur: space, rlim_max: space };
    // SAFETY: between fork and exec it makes one system call, which reads one `rlimit`.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &raw const limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    Ok(command.spawn()?)
}

/// The address space of this process, which has done little yet.
fn idle_address_space() -> Result<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    // Pages of at least 4 KiB; larger ones make the limit lower, and none of the machines that fuzz has them.
    statm.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok()).map(|pages| pages << 12).context("/proc/self/statm")
}

/// Waits until the process ends. `Some`: the reason why that was a failure.
fn watch(child: &mut Child, progress: &Path, end: Instant) -> Result<Option<String>> {
    let cpu_time = |child: &Child| -> Option<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", child.id())).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    };
    let (mut number, mut since) = (u64::MAX, Duration::ZERO);
    loop {
        if let Some(status) = child.try_wait()? {
            let said = std::io::read_to_string(child.stderr.take().context("stderr is piped")?)?;
            return Ok(match (status.code(), status.signal()) {
                (Some(0), _) => None,
                (_, Some(signal)) => Some(format!("signal {signal}: {}", said.trim())),
                _ => Some(said.lines().take(2).collect::<Vec<_>>().join(" ")),
            });
        }
        let (now, used) = (read_number(progress)?, cpu_time(child).unwrap_or_default());
        if now != number {
            (number, since) = (now, used);
        } else if used > since + LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("took more than {LONGEST:?} of CPU time")));
        } else if Instant::now() > end + 60 * LONGEST {
            child.kill()?;
            child.wait()?;
            bail!("the process of a target does not end");
        }
        std::thread::sleep(LOOK);
    }
}

fn read_number(progress: &Path) -> Result<u64> {
    let mut bytes = [0; 8];
    File::open(progress)?.read_exact_at(&mut bytes, 0)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Runs a target's inputs, in a process of its own. It ends with an error at the first panic.
fn run_inputs(target: &Target, args: &FuzzArgs, progress: &Path, first: u64) -> Result<()> {
    let progress = File::options().write(true).open(progress)?;
    let (source, run) = (Source::new(target, args.seed)?, (target.prepare)()?);
    let end = Instant::now() + args.time;
    for number in first.. {
        let bytes = source.input(number);
        debug_assert!(bytes.len() <= MAX_BYTES);
        progress.write_all_at(&number.to_le_bytes(), 0)?;
        if catch_unwind(AssertUnwindSafe(|| run(&bytes))).is_err() {
            bail!("panicked");
        }
        if number % 16 == 0 && Instant::now() >= end {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_depends_on_its_number_seed_and_target_only() {
        for target in TARGETS {
            let (a, b, other) = (Source::new(target, 7).unwrap(), Source::new(target, 7).unwrap(), Source::new(target, 8).unwrap());
            assert!((0..200).all(|n| a.input(n) == b.input(n) && a.input(n).len() <= MAX_BYTES), "{}", target.name);
            assert!((0..200).any(|n| a.input(n) != other.input(n)), "{}", target.name);
        }
    }
}
