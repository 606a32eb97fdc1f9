//! Runs with random limits on resources, in small control groups, and with random system calls denied.

#![allow(clippy::unnecessary_cast, reason = "the type of resources' numbers differs between C libraries")]

use anyhow::Result;

use super::bench::{Bench, Dice, Outcome};
use super::confined::{self, CONTAINER, Group, SYSTEM_SERVICE};

/// Short runs of everything.
pub(super) const LINES: [&str; 9] = [
    "latency --time 30ms",
    "bandwidth --time 30ms",
    "loaded --delay 0 --time 30ms",
    "c2c --time 60ms",
    "stream --passes 1",
    "chase --passes 1",
    "info",
    "prefetch status",
    "latency --time 30ms -o x.json",
];
/// Limits, and what they are set to: much less than usual, down to nothing.
const LIMITS: [(u32, &str, &[u64]); 15] = [
    (libc::RLIMIT_AS as u32, "RLIMIT_AS", &[64 << 20, 128 << 20, 256 << 20, 512 << 20]),
    (libc::RLIMIT_DATA as u32, "RLIMIT_DATA", &[4 << 20, 16 << 20, 64 << 20, 256 << 20]),
    (libc::RLIMIT_MEMLOCK as u32, "RLIMIT_MEMLOCK", &[0]),
    (libc::RLIMIT_NPROC as u32, "RLIMIT_NPROC", &[0, 1]),
    (libc::RLIMIT_NOFILE as u32, "RLIMIT_NOFILE", &[5, 6, 8, 16]),
    (libc::RLIMIT_STACK as u32, "RLIMIT_STACK", &[64 << 10, 256 << 10, 1 << 20]),
    (libc::RLIMIT_FSIZE as u32, "RLIMIT_FSIZE", &[0, 1, 4096]),
    (libc::RLIMIT_CORE as u32, "RLIMIT_CORE", &[0]),
    (libc::RLIMIT_RSS as u32, "RLIMIT_RSS", &[0, 1 << 20]),
    (libc::RLIMIT_SIGPENDING as u32, "RLIMIT_SIGPENDING", &[0, 1]),
    (libc::RLIMIT_MSGQUEUE as u32, "RLIMIT_MSGQUEUE", &[0]),
    (libc::RLIMIT_NICE as u32, "RLIMIT_NICE", &[0]),
    (libc::RLIMIT_RTPRIO as u32, "RLIMIT_RTPRIO", &[0]),
    (libc::RLIMIT_RTTIME as u32, "RLIMIT_RTTIME", &[0, 1]),
    (libc::RLIMIT_LOCKS as u32, "RLIMIT_LOCKS", &[0]),
];
/// Control groups' limits on memory.
const GROUPS: [u64; 4] = [64 << 20, 128 << 20, 256 << 20, 1 << 30];
/// Calls that a program may do without, or must say that it cannot.
const CALLS: [libc::c_long; 20] = [
    libc::SYS_clock_nanosleep,
    libc::SYS_get_mempolicy,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_ioctl,
    libc::SYS_madvise,
    libc::SYS_mbind,
    libc::SYS_move_pages,
    libc::SYS_nanosleep,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_open,
    libc::SYS_prctl,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_setrlimit,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_write,
];

pub(super) fn limited(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let line = *dice.pick(&LINES);
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    if dice.next().is_multiple_of(3) {
        let bytes = *dice.pick(&GROUPS);
        let Some(group) = Group::new("torture", bytes) else {
            return Ok((line.to_owned(), Outcome::NotTried("no control group can be made".to_owned())));
        };
        group.enter(&mut command);
        return Ok((format!("{line}, {} MiB in a control group", bytes >> 20), bench.run(&mut command)?));
    }
    let (which, name, values) = *dice.pick(&LIMITS);
    let value = *dice.pick(values);
    confined::limit(&mut command, which, value);
    Ok((format!("{line}, {name} {value}"), bench.run(&mut command)?))
}

pub(super) fn filtered(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let line = *dice.pick(&LINES);
    let calls = match dice.next() % 4 {
        0 => CONTAINER.to_vec(),
        1 => SYSTEM_SERVICE.to_vec(),
        _ => (0..1 + dice.next() % 4).map(|_| *dice.pick(&CALLS)).collect(),
    };
    // Rust's library needs random bytes for its tables, and gives up at errors of `getrandom` other than those of old kernels and of containers.
    let errors: &[i32] = if calls.contains(&libc::SYS_getrandom) {
        &[libc::EPERM, libc::ENOSYS]
    } else {
        &[libc::EPERM, libc::ENOSYS, libc::EACCES, libc::EINVAL]
    };
    let errno = *dice.pick(errors);
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    confined::deny(&mut command, &calls, errno);
    let outcome = match bench.run(&mut command)? {
        // Without `write` the program cannot print why it failed.
        Outcome::Failed(why) if calls.contains(&libc::SYS_write) && why.starts_with("failed without a word") => Outcome::Passed,
        outcome => outcome,
    };
    Ok((format!("{line}, without {calls:?}, error {errno}"), outcome))
}

/// Mounts that hide what a run reads or writes.
const HIDDEN: [&str; 4] =
    ["mount -t tmpfs none /proc", "mount -t tmpfs none /sys", "mount -o remount,bind,ro /", "mount -t tmpfs none /dev"];

/// Runs with `/proc`, `/sys` or `/dev` hidden, or with a root that cannot be written, in a mount namespace of their own.
pub(super) fn hidden(bench: &Bench, dice: &mut Dice) -> Result<(String, Outcome)> {
    let (line, mount) = (*dice.pick(&LINES), *dice.pick(&HIDDEN));
    let what = format!("{line}, after {mount}");
    if !std::process::Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|tried| tried.status.success()) {
        return Ok((what, Outcome::NotTried("a mount namespace cannot be made".to_owned())));
    }
    let script = format!("{mount} || exit 99; exec \"$0\" {line}");
    let program = bench.memgauge.as_os_str();
    let words = ["unshare", "--mount", "/bin/sh", "-c", &script].map(std::ffi::OsStr::new);
    let outcome = match bench.run(&mut bench.other(&[&words[..], &[program]].concat()))? {
        Outcome::Failed(why) if why.starts_with("undocumented status 99") => Outcome::NotTried(format!("{mount}: refused")),
        outcome => outcome,
    };
    Ok((what, outcome))
}
