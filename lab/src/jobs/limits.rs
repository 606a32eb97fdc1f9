//! Limits, and changes in the middle of runs: control groups with little memory for every command, CPUs that go offline, a clock that jumps.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memgauge_model::units::Bytes;

use crate::guest::{self, control_group, set_online};
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{Ran, memgauge, printed, start_to_print};

pub(crate) const JOB: Job = Job {
    name: "limits",
    about: "memory.max of 64 MiB to 1 GiB for every command, CPUs that go offline in the middle of runs, a clock that jumps",
    optional: false,
    machine: Machine { qemu: QEMU, ..PLAIN },
    tests: tests![
        every_command_in_64_mib,
        every_command_in_256_mib,
        every_command_in_1_gib,
        what_writes_no_result_in_64_mib,
        more_than_the_limit_is_refused,
        a_cpu_goes_in_the_middle,
        the_clock_jumps_in_the_middle,
    ],
};

/// Two nodes, one of them without CPUs, and several times as much memory as the largest limit.
pub(super) const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel,+invtsc",
    "-smp 3",
    "-m 4G",
    "-object memory-backend-ram,id=m0,size=3584M",
    "-object memory-backend-ram,id=m1,size=512M",
    "-numa node,nodeid=0,memdev=m0,cpus=0-2",
    "-numa node,nodeid=1,memdev=m1",
    "-numa dist,src=0,dst=1,val=17",
];

/// Every command that takes memory to measure, with buffers of its own choice. Times mean nothing here, so they are short.
pub(super) const COMMANDS: &[&str] = &[
    "--within 2s",
    "latency --within 2s",
    "bandwidth --time 20ms",
    "loaded --delay 0 --time 40ms",
    "c2c --within 2s",
    "quick --within 2s",
    "scan --region 16M --within 2s",
    "sweep --within 1s",
    "interleave --within 2s",
    "pmem /tmp --within 2s",
    "run /tmp/cells --time 40ms",
    "stream 24M --passes 1",
    "chase 24M --passes 1",
];
pub(super) const CELLS: &str = "[[threads]]\ncpus = \"0-1\"\n";
/// Commands that measure what a profile of a security module keeps from them, or that measure another program.
const MORE: &[&str] = &["tiers --within 2s", "prefetch compare --within 2s", "count -- /bin/memgauge --version"];
/// Commands whose output is not a result of a run.
const OTHER_OUTPUT: &[&str] = &[
    "mlc --idle_latency -t0.1",
    "mlc --latency_matrix -t0.1",
    "mlc --peak_injection_bandwidth -t0.1",
    "compare --runs 1 -- /bin/memgauge --version --- /bin/memgauge --version",
];
/// So many runs together take less than the machine has in groups of the largest limit.
const AT_A_TIME: usize = 3;
/// Far more than any of these runs needs here: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(40);

fn every_command_in_64_mib() -> Result<()> {
    every_command_in(Bytes::mib(64), VERSION_2)
}

fn every_command_in_256_mib() -> Result<()> {
    every_command_in(Bytes::mib(256), VERSION_2)
}

fn every_command_in_1_gib() -> Result<()> {
    every_command_in(Bytes::gib(1), VERSION_2)
}

/// Control groups of one version.
#[derive(Clone, Copy)]
pub(super) struct Version {
    /// Makes a group with this limit on memory.
    pub(super) make: fn(&str, Bytes) -> Result<PathBuf>,
    /// The file that counts what the kernel killed, and how it says that it killed nothing.
    pub(super) kills: (&'static str, &'static str),
}

const VERSION_2: Version = Version {
    make: |name, limit| control_group(name, &[("memory.max", &limit.0.to_string())]),
    kills: ("memory.events", "\noom 0\noom_kill 0"),
};

impl Version {
    fn nobody_was_killed(self, group: &Path) -> Result<()> {
        let (file, none) = self.kills;
        let events = guest::read(group.join(file))?;
        ensure!(events.contains(none), "{}", events.replace('\n', ", "));
        Ok(())
    }
}

/// Each command measures with what it may have, or says why not, and nothing is killed for want of memory. Some run at a time, each in a
/// group of its own: they take no less memory for that, and times mean nothing here.
pub(super) fn every_command_in(limit: Bytes, version: Version) -> Result<()> {
    fs::write("/tmp/cells", CELLS)?;
    for lines in [COMMANDS, MORE].concat().chunks(AT_A_TIME) {
        let mut started = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            let group = (version.make)(&format!("limits{i}"), limit)?;
            started.push((line, memgauge(line).in_group(&group).start()?, group));
        }
        for (line, running, group) in started {
            let ran = running.within(PATIENCE).with_context(|| format!("{line} in {limit}"))?;
            version.nobody_was_killed(&group).and_then(|()| kept_within(limit, &ran)).with_context(|| format!("{line} in {limit}"))?;
            has_ended_well(line, &ran)?;
            fs::remove_dir(&group)?;
        }
    }
    Ok(())
}

/// The drop-in and a comparison print something else than a result, and are within the limit, too.
/// All run at the same time, each in a group of its own: times mean nothing here.
fn what_writes_no_result_in_64_mib() -> Result<()> {
    let mut started = Vec::new();
    for (i, line) in OTHER_OUTPUT.iter().copied().enumerate() {
        let group = (VERSION_2.make)(&format!("other{i}"), Bytes::mib(64))?;
        started.push((line, start_to_print(line, &group)?, group));
    }
    // All are waited for first: none runs on beside the next test.
    let ended: Vec<_> = started.into_iter().map(|(line, running, group)| (line, printed(running), group)).collect();
    for (line, printed, group) in ended {
        let (status, said) = printed.with_context(|| line.to_owned())?;
        VERSION_2.nobody_was_killed(&group).with_context(|| line.to_owned())?;
        // A comparison of single runs may say that it cannot tell.
        ensure!([0, 1, 2, 4].contains(&status) && !said.trim().is_empty(), "{line}: exit status {status}: {said}");
        fs::remove_dir(&group)?;
    }
    Ok(())
}

/// Buffers are within the allowed memory.
fn kept_within(limit: Bytes, ran: &Ran) -> Result<()> {
    let Some(report) = &ran.report else {
        ensure!(ran.status == Some(4), "exit status {:?} and no result: {}", ran.status, ran.stderr);
        return Ok(());
    };
    let allowed = Bytes(report.machine.allowed.room());
    ensure!(allowed <= limit, "it thinks that it may use {allowed}");
    for m in report.measurements() {
        ensure!(m.evidence.buffer <= allowed, "a buffer of {} where {allowed} are allowed", m.evidence.buffer);
    }
    Ok(())
}

/// It has measured all, or a part with reasons for missing values, or refused with a reason.
pub(super) fn has_ended_well(line: &str, ran: &Ran) -> Result<()> {
    let status = ran.status.with_context(|| format!("{line}: ended by a signal: {}", ran.stderr))?;
    // A health check has statuses of its own: 2 and 3 are verdicts.
    ensure!([0, 1, 4].contains(&status) || line.starts_with("quick"), "{line}: exit status {status}: {}", ran.stderr);
    let reason = !ran.stderr.trim().is_empty() || ran.report.as_ref().is_some_and(|report| report.incomplete.is_some());
    ensure!(status == 0 || reason, "{line}: exit status {status} without a word");
    for m in ran.report.iter().flat_map(|report| report.measurements()) {
        let estimate = &m.estimate;
        ensure!(estimate.value.is_some() || estimate.not_measured.is_some(), "{line}: {:?} has neither a value nor a reason", m.at);
        ensure!(estimate.value.is_some() || status != 0, "{line}: exit status 0, and {:?} was not measured", m.at);
    }
    Ok(())
}

fn more_than_the_limit_is_refused() -> Result<()> {
    for (limit, size) in [("64M", "96M"), ("256M", "300M"), ("1G", "1100M")] {
        let group = control_group("limits", &[("memory.max", limit)])?;
        let words = ["memory.max of control group /limits"];
        for line in ["latency --cpu 0 --node 0 --size", "bandwidth --cpu 0 --node 0 --size", "scan --node 0 --size", "stream", "chase"] {
            memgauge(&format!("{line} {size}")).in_group(&group).start()?.within(PATIENCE)?.refused(4, &words).context(line)?;
        }
        let events = guest::read(group.join("memory.events"))?;
        ensure!(events.contains("\noom 0\noom_kill 0"), "{limit}: {}", events.replace('\n', ", "));
        fs::remove_dir(&group)?;
    }
    Ok(())
}

/// CPU 2 goes while it measures and does not come back before the end.
fn a_cpu_goes_in_the_middle() -> Result<()> {
    for line in [
        "bandwidth --cpu 0-2 --mix all-reads,1:1,copy --size 1M --time 500ms",
        "c2c --matrix --state hitm --size 256K --time 300ms",
        "loaded --cpu 0-2 --delay 0,1000,5000 --size 1M --time 500ms",
    ] {
        let running = memgauge(line).start()?;
        let measures = running.until("it measures on CPU 2", |_| running.workers().contains(2));
        std::thread::sleep(Duration::from_millis(200));
        set_online(2, false)?;
        let ran = running.within(PATIENCE);
        set_online(2, true)?;
        measures?;
        let ran = ran.with_context(|| line.to_owned())?;
        has_ended_well(line, &ran)?;
        let report = ran.report()?;
        ensure!(report.complete == (ran.status == Some(0)), "{line}: exit status {:?}, complete: {}", ran.status, report.complete);
        ensure!(ran.status == Some(0) || ran.stderr.contains("CPU 2"), "{line}: {}", ran.stderr);
    }
    Ok(())
}

/// An hour forth and an hour back, each in the middle of a run: what it took is what it took.
fn the_clock_jumps_in_the_middle() -> Result<()> {
    let bandwidth = "bandwidth --size 1M --time 1200ms";
    // Enough for an emulated machine on a busy host to come as far as measuring.
    let scan = "scan --node 1 --size 64M --passes 10000 --within 6s";
    for (line, hours) in [(bandwidth, 1), (bandwidth, -1), ("--size 1M --within 6s", 1), (scan, -1)] {
        let began = Instant::now();
        let running = memgauge(line).start()?;
        running.until("it measures", |_| !running.workers().is_empty())?;
        std::thread::sleep(Duration::from_millis(500));
        jump(hours)?;
        let ran = running.within(PATIENCE)?;
        let took = began.elapsed().as_secs_f64();
        jump(-hours)?;
        has_ended_well(line, &ran)?;
        let report = ran.report()?;
        let stamped = (report.ended.monotonic_ns - report.started.monotonic_ns) as f64 * 1e-9;
        for said in [report.timing.total_s, stamped] {
            ensure!((0.5..=took).contains(&said), "{line}, {hours} h: it says {said} s and took {took} s");
        }
        // Far less than an hour. An emulated machine also needs seconds to start and end a program, which are not in what the run says.
        let total = report.timing.total_s;
        ensure!(total < 6.0 * 1.1 + 4.0, "{line}, {hours} h: took {total} s");
    }
    Ok(())
}

/// Sets the clock on the wall forth or back.
fn jump(hours: i64) -> Result<()> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a structure to write to, and the same to read from.
    let done = unsafe {
        libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) == 0 && {
            now.tv_sec += hours * 3600;
            libc::clock_settime(libc::CLOCK_REALTIME, &raw const now) == 0
        }
    };
    ensure!(done, "clock_settime: {}", std::io::Error::last_os_error());
    Ok(())
}
