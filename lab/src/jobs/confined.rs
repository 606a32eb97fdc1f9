//! memgauge under AppArmor, with profiles as an administrator writes them: what measuring needs, and nothing else, and less than that.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use memgauge_model::wording::reasons;

use super::limits::{CELLS, COMMANDS, has_ended_well};
use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{Memgauge, PATIENCE, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "confined",
    about: "AppArmor: every command with only what measuring needs, and without /sys, /proc, folders, registers",
    optional: false,
    machine: Machine { qemu: QEMU, kernel: &["apparmor=1", "security=apparmor"], modules: &["msr"], tools: &["apparmor_parser"], ..PLAIN },
    tests: tests![
        the_profile_is_in_force,
        every_command_with_what_measuring_needs,
        folders_that_may_not_be_written,
        registers_that_may_not_be_written,
        addresses_are_not_shown,
        programs_that_may_not_be_run,
        without_sys,
        without_proc,
    ],
};

/// Two nodes, as some commands need.
pub(super) const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel,family=6,model=85",
    "-smp 3",
    "-m 1G",
    "-object memory-backend-ram,id=m0,size=768M",
    "-object memory-backend-ram,id=m1,size=256M",
    "-numa node,nodeid=0,memdev=m0,cpus=0-2",
    "-numa node,nodeid=1,memdev=m1",
    "-numa dist,src=0,dst=1,val=17",
];

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

/// Runs of memgauge that begin from now on may do this and nothing else.
fn confine(rules: &str) -> Result<()> {
    let (file, kernel) = ("/tmp/profile", "/sys/kernel/security");
    if !Path::new(kernel).join("apparmor").exists() {
        guest::mount("securityfs", kernel, "securityfs", "")?;
    }
    fs::write(file, format!("profile confined /bin/memgauge {{{rules}}}\n"))?;
    guest::call(&["/tools/apparmor_parser", "--replace", "--skip-cache", "--quiet", file])
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

/// Root that is confined has no capability, and needs none to measure. Time is short here, and is the only reason for missing values.
fn every_command_with_what_measuring_needs() -> Result<()> {
    confine(&documented()?)?;
    nothing_is_denied(COMMANDS, 3, FOLDER)
}

/// Runs commands, `at_once` at a time, with files in a folder. None of them is denied anything, and none says so.
pub(super) fn nothing_is_denied(commands: &[&str], at_once: usize, folder: &str) -> Result<()> {
    for lines in commands.chunks(at_once) {
        let started = lines.iter().map(|line| Ok((line, memgauge(&line.replace("/tmp ", &format!("{folder} "))).start()?)));
        for (line, running) in started.collect::<Result<Vec<_>>>()? {
            let ran = running.within(PATIENCE).with_context(|| (*line).to_owned())?;
            has_ended_well(line, &ran)?;
            let missing = ran.report()?.measurements().filter_map(|m| m.estimate.not_measured.as_ref()).map(reasons::not_measured);
            for text in missing.chain([ran.stderr.clone()]) {
                let told = ["denied", "not permitted", "SELinux", "AppArmor"].iter().any(|word| text.contains(word));
                ensure!(!told, "{line}: {text}");
            }
        }
    }
    Ok(())
}

/// It refuses, whether the command line or the machine is to blame, with these words.
pub(super) fn refuses(run: Memgauge, words: &[&str]) -> Result<()> {
    let ran = run.run()?;
    ran.refused(if ran.status == Some(64) { 64 } else { 4 }, words)?;
    ensure!(ran.report.is_none(), "it measured: {:?}", ran.report);
    Ok(())
}

/// Results, states of checks and files as memory outside of the folders that may be written.
fn folders_that_may_not_be_written() -> Result<()> {
    confine(&documented()?)?;
    fs::create_dir_all("/tmp/denied")?;
    let words = ["/tmp/denied", "Permission denied"];
    refuses(memgauge("latency --cpu 0 --size 1M --time 50ms").writing_to(Path::new("/tmp/denied/result.json")), &words)?;
    refuses(memgauge("bandwidth --size 1M --time 50ms --memory-dir /tmp/denied"), &words)?;
    refuses(memgauge("pmem /tmp/denied --within 2s"), &words)?;
    refuses(memgauge("quick --within 2s --state /tmp/denied"), &words)?;
    ensure!(fs::read_dir("/tmp/denied")?.next().is_none(), "something was written to /tmp/denied");
    // A signal of another name than the profile allows.
    let ran = memgauge("bandwidth --size 1M --time 50ms --start-signal other").run()?;
    ensure!(ran.status == Some(4) && ran.stderr.contains("Permission denied"), "exit status {:?}: {}", ran.status, ran.stderr);
    Ok(())
}

/// The journal's folder is denied; then it is allowed, and the device's file is denied; then the capability.
fn registers_that_may_not_be_written() -> Result<()> {
    fs::create_dir_all("/run")?;
    let (mut rules, journal, device) = (documented()?, "  /run/memgauge/ rw,\n  /run/memgauge/** rwlk,\n", "  /dev/cpu/*/msr rw,\n");
    for (more, words) in [("", "/run/memgauge"), (journal, "/dev/cpu/0/msr may not be opened"), (device, "CAP_SYS_RAWIO")] {
        rules += more;
        confine(&rules)?;
        for line in ["latency --prefetch off --size 1M --time 50ms", "prefetch off"] {
            refuses(memgauge(line), &[words]).context(line)?;
        }
        // Without being asked to switch them, it measures.
        measured(&memgauge("latency --cpu 0 --size 1M --time 50ms").measure()?)?;
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
    ensure!(report.notes.iter().any(|note| note.code == memgauge_model::note::NoteCode::ScanNoAddresses), "{:?}", report.notes);
    Ok(())
}

fn programs_that_may_not_be_run() -> Result<()> {
    confine(&documented()?)?;
    memgauge("count -- /bin/busybox true").run()?.refused(126, &["/bin/busybox", "Permission denied"])
}

/// Without /sys nothing is known of the machine.
fn without_sys() -> Result<()> {
    confine(&documented()?.replace("/sys/** r", "deny /sys/** rwkl"))?;
    for line in ["info", "latency --size 1M", "quick --within 2s", "chase 1M", "scan --size 16M"] {
        memgauge(line).run()?.refused(4, &["/sys/devices/system/cpu cannot be read: Permission denied", "AppArmor"]).context(line)?;
    }
    Ok(())
}

/// Without /proc it measures, and does not know everything that it would say of the conditions.
fn without_proc() -> Result<()> {
    confine(&documented()?.replace("/proc/** r", "deny /proc/** rwkl").replace("owner /proc/*/oom_score_adj rw,", ""))?;
    for line in ["latency --cpu 0 --size 1M --time 50ms", "bandwidth --size 1M --time 50ms", "chase 1M --passes 2"] {
        let ran = memgauge(line).start()?.within(PATIENCE)?;
        has_ended_well(line, &ran)?;
        ensure!(ran.status == Some(0) || ran.stderr.contains("/proc"), "{line}: exit status {:?}: {}", ran.status, ran.stderr);
    }
    Ok(())
}
