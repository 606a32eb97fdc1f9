//! Less memory, CPU time, threads, files, stack and system calls than usual: measured smaller, or refused with the reason; never killed, and
//! never a panic.
#![allow(clippy::unnecessary_cast, reason = "the type of resources' numbers differs between C libraries")]

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};

use memgauge_model::experiment::PrefetchRequest;
use memgauge_model::policy::PolicyMode;
use memgauge_model::result::{Incomplete, PlacementSource, PlacementStatus, Report};
use memgauge_model::units::Bytes;
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support;
use crate::support::confined::{self, CONTAINER, Group, PODMAN, PODMAN_ABSENT, SYSTEM_SERVICE, fails};
use crate::support::{beside_another, had_no_cpu_time, measured, program, text, unwrapped};

/// Short runs of everything that allocates.
const COMMANDS: [&str; 6] = [
    "stream --passes 2",
    "chase --passes 2 --order full-random --stride 256",
    "latency --order window-local --time 5ms",
    "bandwidth --width sse2 --mix 1:1-nt --time 5ms",
    "c2c --time 5ms",
    "loaded --delay 0 --time 5ms",
];

/// The program itself needs more than it may have: it says what helps in place of an abort.
#[test]
fn a_program_without_memory_for_its_own_data_says_what_helps() {
    let folder = support::temporary("exhausted");
    let mut ended = 0;
    // The runtime asks for memory to read RUST_BACKTRACE where it is set.
    for (limit, backtrace) in
        [("-d 1024", ""), ("-d 1024", "0"), ("-d 2048", ""), ("-d 2048", "0"), ("-d 2048", "1"), ("-d 3072", "1"), ("-v 40960", "0")]
    {
        let line = format!(
            "ulimit {limit}; exec {} render {}/tests/results/two-nodes.json -q -o {}/a.png",
            env!("CARGO_BIN_EXE_memgauge"),
            env!("CARGO_MANIFEST_DIR"),
            folder.display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env_remove("RUST_BACKTRACE");
        if !backtrace.is_empty() {
            shell.env("RUST_BACKTRACE", backtrace);
        }
        let output = shell.output().unwrap();
        let said = text(&output.stderr);
        assert!(!matches!(output.status.signal(), Some(libc::SIGABRT)) && output.status.code() != Some(134), "{limit}: {said}");
        if said.contains("memory allocation of") {
            ended += 1;
            assert_eq!(output.status.code(), Some(4), "{limit}: {said}");
            assert!(said.contains("ulimit -d"), "{limit}: {said}");
        }
    }
    assert!(ended > 0, "no limit was low enough");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Those of the commands that can be run on this machine.
fn possible<'a>(lines: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let one = std::thread::available_parallelism().unwrap().get() < 2;
    lines.iter().copied().filter(move |line| !(one && (line.starts_with("c2c") || line.starts_with("loaded"))))
}

/// Runs the program as `confine` says.
fn run(line: &str, confine: impl FnOnce(&mut Command)) -> Output {
    let _permit = beside_another();
    let mut command = program();
    command.args(line.split_whitespace());
    confine(&mut command);
    measured(&mut command)
}

/// It ended by itself, and with a status that is documented for what it said.
fn ended_well(what: &str, output: &Output) -> String {
    let stderr = text(&output.stderr).to_owned();
    assert!(output.status.signal().is_none(), "{what}: killed by {:?}: {stderr}", output.status.signal());
    assert!(matches!(output.status.code(), Some(0 | 1 | 4)) && !stderr.contains("panicked"), "{what}: {:?}: {stderr}", output.status);
    assert!(!(stderr.is_empty() && output.stdout.is_empty()), "{what} says nothing");
    stderr
}

fn report(output: &Output) -> Report {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)))
}

#[test]
fn within_a_memory_limit_everything_measures_smaller_and_nobody_is_killed() {
    for (mib, lines) in [(64, COMMANDS.as_slice()), (256, &COMMANDS[..2])] {
        let Some(group) = Group::new(&format!("small-{mib}"), mib << 20) else {
            not_tested!("no control group with a limit on memory can be made here")
        };
        for line in possible(lines) {
            let output = run(&format!("{line} --format json"), |c| group.enter(c));
            ended_well(&format!("{mib} MiB: {line}"), &output);
            if had_no_cpu_time(&output) {
                not_tested_in_part!("{mib} MiB: {line}: others had the CPUs");
                continue;
            }
            let report = report(&output);
            let measured = report.results.iter().filter(|m| m.estimate.value.is_some()).count();
            assert!(measured > 0 && report.machine.allowed.room() < Bytes::mib(mib).0, "{mib} MiB: {line}: {:?}", report.results);
            assert!(
                report.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::SmallBuffer) || mib > 64 || line.starts_with("c2c"),
                "{line}: {:?}",
                report.notes
            );
        }
        for line in ["stream 512M", "chase 512M"] {
            let output = run(line, |c| group.enter(c));
            let stderr = ended_well(line, &output);
            assert!(output.status.code() == Some(4) && stderr.contains("512 MiB") && stderr.contains("control group"), "{line}: {stderr}");
        }
    }
}

/// The least address space, in steps of 1 MiB, that the program starts in: with less, the loader ends it before it can say why.
fn least_address_space() -> u64 {
    let starts = |bytes: &u64| {
        let mut command = program();
        confined::limit(command.arg("--version"), libc::RLIMIT_AS as u32, *bytes);
        command.output().unwrap().status.success()
    };
    (1..200).map(|mib| mib << 20).find(starts).unwrap()
}

/// A limit, its number, a value that leaves room for measuring, and one that leaves next to none.
fn resources() -> [(&'static str, u32, u64, u64); 6] {
    [
        ("RLIMIT_AS", libc::RLIMIT_AS as u32, 200 << 20, least_address_space()),
        ("RLIMIT_DATA", libc::RLIMIT_DATA as u32, 64 << 20, 8 << 20),
        ("RLIMIT_MEMLOCK", libc::RLIMIT_MEMLOCK as u32, 0, 0),
        ("RLIMIT_NOFILE", libc::RLIMIT_NOFILE as u32, 64, 6),
        ("RLIMIT_STACK", libc::RLIMIT_STACK as u32, 256 << 10, 64 << 10),
        ("RLIMIT_FSIZE", libc::RLIMIT_FSIZE as u32, 0, 0),
    ]
}

/// Limits on what a run does not use, whatever is left of it. `RLIMIT_RTTIME` counts microseconds of real-time scheduling.
const UNUSED: [(u32, u64); 8] = [
    (libc::RLIMIT_CORE as u32, 0),
    (libc::RLIMIT_RSS as u32, 0),
    (libc::RLIMIT_SIGPENDING as u32, 0),
    (libc::RLIMIT_MSGQUEUE as u32, 0),
    (libc::RLIMIT_NICE as u32, 0),
    (libc::RLIMIT_RTPRIO as u32, 0),
    (libc::RLIMIT_RTTIME as u32, 1),
    (libc::RLIMIT_LOCKS as u32, 0),
];

/// Where memory is not what is limited, a small buffer shows as much in less time.
const SMALL: &str = "bandwidth --width sse2 --mix 1:1-nt --size 1M --time 5ms";

#[test]
fn limits_on_resources_are_kept_or_named() {
    let measures = |what: &str, line: &str, output: &Output| {
        let stderr = ended_well(&format!("{what}: {line}"), output);
        assert!(output.status.success() || had_no_cpu_time(output), "{what}: {line}: {stderr}");
    };
    for (name, which, room, none) in resources() {
        let memory = name == "RLIMIT_AS" || name == "RLIMIT_DATA";
        for line in possible(if memory { &COMMANDS } else { &[SMALL] }) {
            measures(&format!("{name} {room}"), line, &run(line, |c| confined::limit(c, which, room)));
        }
        if room == none {
            continue;
        }
        for line in if memory {
            &["stream 1M --passes 2", "latency --size 1M --time 5ms", "info"]
        } else {
            &["latency --size 1M --time 5ms --order window-local"][..]
        } {
            ended_well(&format!("{name} {none}: {line}"), &run(line, |c| confined::limit(c, which, none)));
        }
    }
    let unused = run(SMALL, |c| UNUSED.iter().for_each(|&(which, value)| confined::limit(c, which, value)));
    measures("limits on what it does not use", SMALL, &unused);
}

#[test]
fn a_limit_on_cpu_time_ends_a_run_that_keeps_what_it_measured() {
    let output = run("latency --size 1M --time 600s --format json", |c| confined::limit(c, libc::RLIMIT_CPU as u32, 2));
    let stderr = text(&output.stderr);
    assert!(output.status.signal().is_none(), "{:?}: {stderr}", output.status);
    let incomplete = report(&output).incomplete;
    assert!(matches!(&incomplete, Some(Incomplete::Signal { name }) if name.contains("ulimit -t")), "{incomplete:?}: {stderr}");
}

#[test]
fn a_limit_on_threads_is_named() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        not_tested!("only root can run a program as a user without other processes");
    }
    let folder = support::temporary("threads");
    let copy = folder.join("memgauge");
    support::copy_program(program().get_program().as_ref(), &copy);
    let mut command = Command::new("/bin/sh");
    // The limit counts the processes of the user, and does not bind root. Nobody else runs as this one.
    confined::limit(&mut command, libc::RLIMIT_NPROC as u32, 1);
    let line = format!("exec < {}; exec /proc/self/fd/0 bandwidth --size 1M --time 60ms", copy.display());
    let output = command.args(["-c", &line]).uid(54321).gid(54321).output().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    let stderr = ended_well("one thread", &output);
    assert!(stderr.contains("cannot start a thread") && stderr.contains("ulimit -u"), "{stderr}");
}

/// A policy that names the only node changes no measurement, and is told all the same. Two nodes are for the lab (`inherited`).
#[test]
fn the_callers_memory_policy_is_read_and_told() {
    const BIND: libc::c_int = 2;
    const INTERLEAVE: libc::c_int = 3;
    /// Linux 6.9 and later.
    const WEIGHTED_INTERLEAVE: libc::c_int = 6;
    for (mode, rule, words) in [
        (BIND, PolicyMode::Bind, "bind to node 0"),
        (INTERLEAVE, PolicyMode::Interleave, "interleave over node 0"),
        (WEIGHTED_INTERLEAVE, PolicyMode::WeightedInterleave, "interleave over node 0 with weights 0="),
    ] {
        let mut possible = program();
        confined::policy(&mut possible, mode, 1);
        if let Err(error) = possible.arg("--version").output() {
            not_tested_in_part!("{words}: set_mempolicy: {error}");
            continue;
        }
        let output = run("latency --size 1M --time 5ms --order window-local --format json", |c| confined::policy(c, mode, 1));
        ended_well(words, &output);
        let policy = report(&output).machine.allowed.memory_policy.unwrap();
        assert_eq!((policy.mode, policy.nodes.to_string().as_str()), (rule, "0"), "{words}");
        let output = run("info", |c| confined::policy(c, mode, 1));
        assert!(text(&output.stdout).contains(words), "{}", text(&output.stdout));
        let output = run("latency --size 1M --time 5ms --order window-local", |c| confined::policy(c, mode, 1));
        let told =
            text(&output.stdout).lines().any(|line| line.contains(&format!("memory policy: {words}")) && line.contains(" (inherited"));
        assert!(told, "{}", text(&output.stdout));
        let output = run("mlc --idle_latency -b1m -t0.1", |c| confined::policy(c, mode, 1));
        assert!(text(&output.stderr).contains(words) && output.status.success(), "{}", text(&output.stderr));
        // As filters of containers do. The kernel shows the policy in numa_maps as well.
        let output = run("info --format json", |c| {
            confined::policy(c, mode, 1);
            confined::deny(c, &[libc::SYS_get_mempolicy], libc::EPERM);
        });
        let allowed = report(&output).machine.allowed;
        let known = allowed.memory_policy.is_some_and(|policy| policy.mode == rule && policy.nodes.to_string() == "0");
        assert!(known || allowed.memory_policy_unknown.is_some_and(|why| why.contains("get_mempolicy")), "{words}");
    }
    let none = report(&run("info --format json", |_| ())).machine.allowed.memory_policy;
    assert!(none.is_some_and(|policy| policy.is_local()) || std::fs::metadata("/proc/self/numa_maps").is_err(), "no policy was set");
}

/// What is said where others had the CPUs.
const NO_TIME: &str = "got no time in many bursts";

/// Every call that a run makes and that a filter may deny: the run goes on without it, or says what it misses.
#[test]
fn a_denied_system_call_is_named_and_never_a_panic() {
    let line = "latency --size 1M --time 5ms --order window-local";
    let denied = |calls: &[libc::c_long], errno: i32| {
        let output = run(line, |c| confined::deny(c, calls, errno));
        (ended_well(&format!("without {calls:?}: {errno}"), &output), output.status.code())
    };
    let not_needed = [
        libc::SYS_getrandom,
        libc::SYS_get_mempolicy,
        libc::SYS_mbind,
        libc::SYS_move_pages,
        libc::SYS_perf_event_open,
        libc::SYS_prctl,
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_yield,
        libc::SYS_sysinfo,
        libc::SYS_uname,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_madvise,
    ];
    for errno in [libc::EPERM, libc::ENOSYS] {
        let (stderr, code) = denied(&not_needed, errno);
        assert!(code == Some(0) || stderr.contains(NO_TIME), "{stderr}");
    }
    let (stderr, code) = denied(&[libc::SYS_mbind], libc::EINVAL);
    assert!(code == Some(0) || stderr.contains(NO_TIME), "the node is allowed, so the filter refuses it: {stderr}");
    let (stderr, code) = denied(&[libc::SYS_sched_setaffinity], libc::EPERM);
    assert!(code == Some(4) && stderr.contains("seccomp") && !stderr.contains("cpuset"), "{stderr}");
}

/// System calls, and what a filter does with them.
type Lists<'a> = &'a [(&'a [libc::c_long], u32)];

#[test]
fn profiles_of_containers_and_services_let_it_measure() {
    let (refused, absent) = (fails(libc::EPERM), fails(libc::ENOSYS));
    let podman = [(PODMAN, refused), (PODMAN_ABSENT, absent)];
    // A unit that does not set SystemCallErrorNumber= has the program killed at the first call that is denied.
    let killed = [(SYSTEM_SERVICE, libc::SECCOMP_RET_KILL_PROCESS)];
    let profiles: [(&str, Lists<'_>); 4] = [
        ("Docker", &[(CONTAINER, refused)]),
        ("podman", &podman),
        ("services with an error number", &[(SYSTEM_SERVICE, refused)]),
        ("services", &killed),
    ];
    for (name, lists) in profiles {
        for line in possible(&[
            "latency --size 1M --time 5ms --order window-local",
            "bandwidth --width sse2 --mix 1:1-nt --size 1M --time 5ms",
            "stream 1M --passes 20",
            "c2c --size 1M --time 5ms",
            "info",
        ]) {
            let output = run(line, |c| confined::filter(c, lists));
            let stderr = ended_well(&format!("{name}: {line}"), &output);
            assert!(output.status.success() || had_no_cpu_time(&output), "{name}: {line}: {:?} {stderr}", output.status);
        }
    }
    // Where pages are is then known from another place, and no less certain.
    let output = run("latency --size 1M --time 5ms --order window-local --format json", |c| confined::filter(c, &podman));
    for m in &report(&output).results {
        let placement = &m.evidence.placement;
        let other = placement.source.is_some_and(|source| source != PlacementSource::MovePages);
        assert!(placement.status == PlacementStatus::Verified && other, "{placement:?}");
    }
}

#[test]
fn without_proc_or_sys_or_a_root_that_can_be_written_it_measures_or_says_why() {
    let hidden = |what: &str, line: &str| {
        let _permit = beside_another();
        let script = format!("{what} && exec \"$0\" {line}");
        Command::new("unshare").args(["--mount", "/bin/sh", "-c", &script]).arg(program().get_program()).output()
    };
    for what in ["mount -t tmpfs none /proc", "mount -t tmpfs none /sys", "mount -o remount,bind,ro /", "mount -t tmpfs none /dev"] {
        for line in ["latency --size 1M --time 5ms --order window-local", "stream 1M --passes 2", "info", "prefetch status"] {
            let Ok(output) = hidden(what, line) else { not_tested!("there is no unshare") };
            let stderr = text(&output.stderr);
            if stderr.contains("unshare:") || stderr.contains("mount:") {
                not_tested_in_part!("{what}: {stderr}");
                break;
            }
            ended_well(&format!("{what}: {line}"), &output);
        }
    }
}

/// File capabilities are enough for physical addresses and for counters with the kernel's part; and the environment is not believed then.
#[test]
fn capabilities_of_the_file_are_enough_without_root() {
    let folder = support::temporary("capabilities");
    let (copy, tested) = (folder.join("memgauge"), "physical addresses with file capabilities");
    support::copy_program(program().get_program().as_ref(), &copy);
    let able = Command::new("setcap").arg("cap_perfmon,cap_sys_admin,cap_sys_rawio+ep").arg(&copy).output();
    if !able.is_ok_and(|output| output.status.success()) {
        not_tested!("{tested}: setcap is missing or may not do it");
    }
    // What the environment and the working directory offer, to this user as well.
    let (offered, here) = (std::env::temp_dir().join(format!("memgauge-offered-{}", std::process::id())), "here");
    let for_all = std::os::unix::fs::PermissionsExt::from_mode;
    for folder in [offered.clone(), offered.join(here)] {
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, for_all(0o777)).unwrap();
    }
    std::os::unix::fs::symlink("/dev/full", offered.join("full.json")).unwrap();
    let nobody = |line: &str| {
        let _permit = beside_another();
        // The folder may be below one that this user may not enter, so the shell opens the file.
        let script = format!("exec /proc/self/fd/9 {line}");
        let mut command = Command::new("/bin/sh");
        command.env("MEMGAUGE_MSR_ROOT", &folder).env("MEMGAUGE_RUNTIME_DIR", &folder).args(["-c", &script]);
        command.env("TMPDIR", &offered).current_dir(offered.join(here));
        command
    };
    let run = |line: &str| {
        let mut command = nobody(line);
        let file = std::fs::File::open(&copy).unwrap();
        let from = std::os::fd::AsRawFd::as_raw_fd(&file);
        // The file may have that number already: it is then open in the shell only if told so.
        let keep_open = move || {
            // SAFETY: between fork and exec it makes two system calls only, with descriptors that are open.
            if unsafe { libc::dup2(from, 9) == 9 && libc::fcntl(9, libc::F_SETFD, 0) == 0 } {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        };
        // SAFETY: as said of the closure.
        unsafe { command.pre_exec(keep_open) };
        measured(command.uid(54321).gid(54321))
    };
    let (_offered, _folder) = (Removed(&offered), Removed(&folder));
    let journal = "memgauge prefetch journal 1\nid 1-1\nboot unknown\ncpu 0 register 0x1a4 mask 0xf value 0x0\nend\n";
    std::fs::write(folder.join("prefetch-kept.journal"), journal).unwrap();
    let output = run("scan --size 16M --region 4M --passes 2 --format json");
    let stderr = ended_well(tested, &output);
    let found = report(&output);
    assert!(found.environment.capabilities.iter().any(|c| c == "CAP_SYS_ADMIN"), "{:?}: {stderr}", found.environment.capabilities);
    let places: Vec<_> = found.results.iter().map(|m| m.evidence.physical.as_ref()).collect();
    assert!(places.iter().all(|place| place.is_some_and(|p| p.first.is_some())), "{places:?}");
    // Where perf_event_paranoid is 2, as usual, others may count user code only, in which nothing switches.
    let count = "count --format json -e context-switches -- sleep 0.05";
    let switches = |output: &Output| {
        let found: Report = serde_json::from_slice(&output.stderr).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
        found.program.unwrap().events[0].estimate.value
    };
    match switches(&program().args(count.split(' ')).output().unwrap()) {
        Some(_) => assert!(switches(&run(count)).is_some_and(|switches| switches >= 1.0), "counted like any user"),
        None => not_tested_in_part!("counters with file capabilities: root may not count here"),
    }
    let status = report(&run("prefetch status --format json"));
    assert!(status.notes.iter().all(|n| n.code != memgauge_model::note::NoteCode::PrefetchKept), "{:?}", status.notes);
    let full = run(&format!("info -o {}", offered.join("full.json").display()));
    assert!(full.status.code() == Some(4) && text(&full.stderr).contains("/here/./memgauge-result-"), "{}", text(&full.stderr));
}

/// A folder that is removed however a test ends.
struct Removed<'a>(&'a std::path::Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

#[test]
fn without_registers_a_comparison_measures_what_is_there() {
    let folder = support::temporary("no-registers");
    let _permit = beside_another();
    let compare = |more: &[&str]| {
        let mut command = program();
        command.env("MEMGAUGE_MSR_ROOT", &folder).env("MEMGAUGE_PREFETCH_AS", "GenuineIntel,6,85");
        measured(command.args(["prefetch", "compare", "--node", "0", "--size", "2M", "--time", "5ms"]).args(more))
    };
    let output = compare(&["--format", "json"]);
    assert_eq!(output.status.code(), Some(1), "measured in part: {}", text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    let of = |state| report.results.iter().filter(move |m| m.at.prefetch == Some(state));
    assert!(
        of(PrefetchRequest::Leave).count() == 3 && of(PrefetchRequest::Leave).all(|m| m.estimate.value.is_some()),
        "{:?}",
        report.results
    );
    assert!(of(PrefetchRequest::Off).count() == 2 && of(PrefetchRequest::Off).all(|m| m.estimate.value.is_none()), "{:?}", report.results);
    assert!(of(PrefetchRequest::Leave).any(|m| m.evidence.prefetch.is_some()), "what the chases tell of prefetchers");
    assert!(report.environment.prefetch.is_some_and(|state| state.reason.is_some_and(|why| why.contains("msr module"))));
    let shown = unwrapped(text(&compare(&[]).stdout));
    assert!(shown.contains("as found") && shown.contains("—") && shown.contains("msr module is not loaded"), "{shown}");
    assert!(!shown.contains("tainted"), "nothing is written: {shown}");
    std::fs::remove_dir_all(folder).unwrap();
}
