//! memgauge under AppArmor, with profiles as an administrator writes them: what measuring needs, and nothing else, and less than that.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::limits::{CELLS, COMMANDS, has_ended_well};
use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "confined",
    about: "AppArmor: every command with only what measuring needs, and without /sys, /proc, folders, registers, memory policies",
    optional: false,
    machine: Machine { qemu: QEMU, kernel: &["apparmor=1", "security=apparmor"], modules: &["msr"], tools: &["apparmor_parser"], ..PLAIN },
    tests: tests![
        the_profile_is_in_force,
        every_command_with_what_measuring_needs,
        no_more_than_that_is_asked_for,
        folders_that_may_not_be_written,
        registers_that_may_not_be_written,
        addresses_are_not_shown,
        programs_that_may_not_be_run,
        without_sys,
        without_proc,
    ],
};

const QEMU: &[&str] = &["-machine q35", "-cpu max,vendor=GenuineIntel,family=6,model=85,+invtsc", "-smp 3", "-m 1G"];

/// The page with the profile that is recommended.
const PAGE: &str = include_str!("../../../docs/security.md");
/// Where the tests let it write.
const FOLDER: &str = "/var/lib/memgauge";

/// The rules of the profile in the documentation, for where the program is here. The lab's shared folder and file of threads are added.
fn documented() -> Result<String> {
    let profile =
        PAGE.split_once("```apparmor\n").and_then(|(_, rest)| rest.split_once("```")).context("no profile in the documentation")?.0;
    let (_, rules) = profile.split_once('{').context("a profile without rules")?;
    let (rules, _) = rules.rsplit_once('}').context("rules without end")?;
    Ok(rules.replace("/usr/bin/", "/bin/") + "  /share/** rw,\n  /tmp/cells r,\n")
}

/// Far more than any of these runs needs here: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs of memgauge that begin from now on may do this and nothing else.
fn confine(rules: &str) -> Result<()> {
    let (file, kernel) = ("/tmp/profile", "/sys/kernel/security");
    if !Path::new(kernel).join("apparmor").exists() {
        guest::mount("securityfs", kernel, "securityfs", "")?;
    }
    fs::write(file, format!("profile confined /bin/memgauge {{{rules}}}\n"))?;
    let output = Command::new("/tools/apparmor_parser").args(["--replace", "--skip-cache", "--quiet", file]).output()?;
    ensure!(output.status.success(), "apparmor_parser: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn the_profile_is_in_force() -> Result<()> {
    fs::write("/tmp/cells", CELLS)?;
    guest::mount("tmpfs", FOLDER, "tmpfs", "")?;
    confine(&documented()?)?;
    let running = memgauge("bandwidth --size 1M --time 300ms").start()?;
    running.until("it measures", |_| !running.workers().is_empty())?;
    let profile = guest::read(format!("/proc/{}/attr/current", running.id()));
    let ran = running.within(PATIENCE)?;
    ensure!(profile? == "confined (enforce)", "it is not confined");
    ensure!(ran.status == Some(0), "exit status {:?}: {}", ran.status, ran.stderr);
    measured(ran.report()?).map(drop)
}

/// Root that is confined has no capability, and needs none to measure.
fn every_command_with_what_measuring_needs() -> Result<()> {
    confine(&documented()?)?;
    for lines in COMMANDS.chunks(2) {
        let started = lines.iter().map(|line| Ok((line, memgauge(&line.replace("/tmp ", &format!("{FOLDER} "))).start()?)));
        for (line, running) in started.collect::<Result<Vec<_>>>()? {
            let ran = running.within(PATIENCE).with_context(|| (*line).to_owned())?;
            has_ended_well(line, &ran)?;
            let some = ran.report()?.measurements().any(|m| m.estimate.value.is_some());
            ensure!(some, "{line}: nothing was measured: {}", ran.stderr);
        }
    }
    Ok(())
}

/// The kernel's log has every denial. Privileges that a run tries, in order to see whether it has them, are the only ones.
fn no_more_than_that_is_asked_for() -> Result<()> {
    let log = kernel_log()?;
    let denied = log.lines().filter(|line| line.contains("apparmor=\"DENIED\"") && !line.contains("operation=\"capable\""));
    let denied: Vec<&str> = denied.collect();
    ensure!(denied.is_empty(), "{}", denied.join("\n"));
    Ok(())
}

fn kernel_log() -> Result<String> {
    const READ_ALL: libc::c_int = 3;
    let mut text = vec![0_u8; 1 << 20];
    // SAFETY: a buffer of this size to write to.
    let read = unsafe { libc::klogctl(READ_ALL, text.as_mut_ptr().cast(), text.len() as libc::c_int) };
    ensure!(read >= 0, "klogctl: {}", std::io::Error::last_os_error());
    text.truncate(read as usize);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Results, states of checks and files as memory outside of the folders that may be written.
fn folders_that_may_not_be_written() -> Result<()> {
    confine(&documented()?)?;
    fs::create_dir_all("/tmp/denied")?;
    let ran = memgauge("latency --cpu 0 --size 1M --time 50ms").writing_to(Path::new("/tmp/denied/result.json")).run()?;
    ran.refused(4, &["/tmp/denied", "Permission denied"])?;
    memgauge("bandwidth --size 1M --time 50ms --memory-dir /tmp/denied").run()?.refused(4, &["/tmp/denied", "Permission denied"])?;
    memgauge("pmem /tmp/denied --within 2s").run()?.refused(4, &["/tmp/denied", "Permission denied"])?;
    memgauge("quick --within 2s --state /tmp/denied").run()?.refused(4, &["/tmp/denied", "Permission denied"])?;
    ensure!(fs::read_dir("/tmp/denied")?.next().is_none(), "something was written to /tmp/denied");
    // A signal of another name than the profile allows.
    memgauge("bandwidth --size 1M --time 50ms --start-signal other").run()?.refused(4, &["Permission denied"])
}

/// The device's file is denied; then it is allowed, and the capability is denied.
fn registers_that_may_not_be_written() -> Result<()> {
    for (more, words) in [("", ["/dev/cpu", "Permission denied"]), ("  /dev/cpu/*/msr rw,\n", ["CAP_SYS_RAWIO", "Operation not permitted"])]
    {
        confine(&format!("{}{more}", documented()?))?;
        memgauge("latency --prefetch off --size 1M --time 50ms").run()?.refused(4, &words)?;
        memgauge("prefetch off").run()?.refused(4, &words)?;
        // Without being asked to switch them, it measures, and says why it does not know their state.
        let report = memgauge("latency --cpu 0 --size 1M --time 50ms").measure()?;
        ensure!(report.environment.prefetch.is_none_or(|state| state.reason.is_some()), "it claims to know the registers");
    }
    Ok(())
}

/// Root without the capability is not shown where pages are.
fn addresses_are_not_shown() -> Result<()> {
    confine(&documented()?)?;
    let report = memgauge("scan --size 16M --region 8M --passes 2 --integrity --patterns random").measure()?;
    for m in measured(&report)? {
        let physical = m.evidence.physical.as_ref().context("no evidence of addresses")?;
        ensure!(physical.first.is_none() && physical.reason.as_ref().is_some_and(|why| why.contains("CAP_SYS_ADMIN")), "{physical:?}");
    }
    ensure!(report.notes.iter().any(|note| note.code == "scan-no-addresses"), "{:?}", report.notes);
    Ok(())
}

fn programs_that_may_not_be_run() -> Result<()> {
    confine(&documented()?)?;
    memgauge("count -- /bin/busybox true").run()?.refused(4, &["/bin/busybox", "Permission denied"])
}

/// Without /sys nothing is known of the machine.
fn without_sys() -> Result<()> {
    confine(&documented()?.replace("/sys/** r", "deny /sys/** rwkl"))?;
    for line in ["info", "latency --size 1M", "quick --within 2s", "chase 1M", "scan --size 16M"] {
        memgauge(line).run()?.refused(4, &["/sys/devices/system/cpu cannot be read: Permission denied", "AppArmor"]).context(line)?;
    }
    Ok(())
}

/// Without /proc it can measure, and does not know everything that it would say of the conditions.
fn without_proc() -> Result<()> {
    confine(&documented()?.replace("/proc/** r", "deny /proc/** rwkl").replace("owner /proc/*/oom_score_adj rw,", ""))?;
    for line in ["latency --cpu 0 --size 1M --time 50ms", "bandwidth --size 1M --time 50ms", "chase 1M --passes 2", "quick --within 3s"] {
        let ran = memgauge(line).start()?.within(PATIENCE)?;
        has_ended_well(line, &ran)?;
        ensure!(ran.status == Some(0) || ran.stderr.contains("/proc"), "{line}: exit status {:?}: {}", ran.status, ran.stderr);
    }
    Ok(())
}
