//! The guest's first process: sets the machine up, runs the job's tests, writes their results, and powers the machine off.
#![allow(clippy::print_stdout, reason = "the guest's console helps when something goes wrong")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use memgauge_lab::contract::{DONE, JOB_ARGUMENT, MODULES, OUTCOMES, SHARE, SHARE_TAG, SHELL_ARGUMENT};
use memgauge_lab::program::NoCpuTime;
use memgauge_lab::{Outcome, find, guest};

fn main() {
    if std::process::id() != 1 {
        println!("This is the first process of the lab's guests; 'cargo xtask lab' boots them.");
        std::process::exit(64);
    }
    if let Err(error) = run() {
        println!("lab: {error:#}");
    }
    guest::power_off();
}

fn run() -> Result<()> {
    set_up()?;
    let arguments = fs::read_to_string("/proc/cmdline")?;
    let argument = |name: &str| arguments.split_whitespace().find_map(|a| a.strip_prefix(name));
    if argument(SHELL_ARGUMENT).is_some() {
        println!("lab: memgauge is in /bin; leave with 'exit'");
        Command::new("/bin/busybox").args(["setsid", "-c", "sh", "-l"]).env("PATH", "/bin:/tools").status().context("no shell")?;
        return Ok(());
    }
    let name = argument(JOB_ARGUMENT).ok_or_else(|| anyhow!("the kernel's arguments name no job"))?;
    let job = find(name).ok_or_else(|| anyhow!("there is no job {name}"))?;
    let mut outcomes = OpenOptions::new().create(true).append(true).open(Path::new(SHARE).join(OUTCOMES))?;
    for test in job.tests {
        guest::begin(test.name)?;
        let began = Instant::now();
        let (failure, not_tested) = match (test.run)() {
            Ok(()) => (None, None),
            Err(error) if error.is::<NoCpuTime>() => (None, Some(format!("{error:#}"))),
            Err(error) => (Some(format!("{error:#}")), None),
        };
        let outcome = Outcome { test: test.name.into(), seconds: began.elapsed().as_secs_f64(), failure, not_tested };
        println!("lab: {outcome:?}");
        writeln!(outcomes, "{}", serde_json::to_string(&outcome)?)?;
    }
    File::create(Path::new(SHARE).join(DONE))?;
    Ok(())
}

/// Does the set-up that an ordinary system does before anybody logs in.
fn set_up() -> Result<()> {
    guest::mount("proc", "/proc", "proc", "")?;
    guest::mount("sysfs", "/sys", "sysfs", "")?;
    // The kernel may have mounted it already.
    let _ = guest::mount("devtmpfs", "/dev", "devtmpfs", "");
    guest::mount("tmpfs", "/tmp", "tmpfs", "")?;
    guest::mount("tmpfs", "/dev/shm", "tmpfs", "")?;
    guest::mount("cgroup2", "/sys/fs/cgroup", "cgroup2", "")?;
    for module in fs::read_to_string(MODULES).context("the image has no list of modules")?.lines() {
        guest::load_module(Path::new(module))?;
    }
    guest::mount(SHARE_TAG, SHARE, "9p", "trans=virtio,version=9p2000.L,msize=131072")
}
