//! Memory that changes or goes away while it is measured. As root, another process can do that to any program.
// A panic in a helper is the failure report of its test. A test that is skipped prints why.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use memgauge_core::estimate::NotMeasured;
use memgauge_core::result::{Measurement, Report};

use support::{alone, program, temporary, text};

/// Longer than any of these runs takes when it ends as it should.
const HANGS: Duration = Duration::from_secs(60);
const PAGE: usize = 4096;

/// A range of addresses of a process, and the path behind it.
struct Range {
    start: u64,
    end: u64,
    path: String,
}

fn start(line: &str) -> Child {
    let mut command = program();
    command.args(line.split_whitespace()).args(["--format", "json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The writable ranges of a process.
fn ranges(child: &Child) -> Vec<Range> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap_or_default();
    let range = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        words.next().filter(|rights| rights.starts_with("rw"))?;
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
        Some(Range { start, end, path: words.skip(3).collect::<Vec<_>>().join(" ") })
    };
    maps.lines().filter_map(range).collect()
}

/// Small and fast, and different each time.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Self(now.as_nanos() as u64 | 1)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Flips one of the upper bits of one pointer of a chase over a buffer of `bytes`, where the chain is written. Tells whether it did.
fn flip(child: &Child, bytes: u64, random: &mut Random) -> bool {
    let Some(range) = ranges(child).into_iter().find(|r| r.end - r.start == bytes && r.path.is_empty()) else { return false };
    let Ok(memory) = File::options().read(true).write(true).open(format!("/proc/{}/mem", child.id())) else { return false };
    let at = range.start + random.below(bytes / PAGE as u64) * PAGE as u64;
    let mut page = [0; PAGE];
    if memory.read_exact_at(&mut page, at).is_err() {
        return false;
    }
    let words = page.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).enumerate();
    // What else is in the buffer are words without pattern. Where chains share it, only those of one are read at a time, so any may be chosen.
    let from = 1 + random.below(PAGE as u64 / 8 - 1) as usize;
    let Some((index, pointer)) = words.skip(from).find(|(_, word)| (range.start..range.end).contains(word)) else { return false };
    let wrong = pointer ^ (1 << (41 + random.below(22)));
    memory.write_all_at(&wrong.to_ne_bytes(), at + 8 * index as u64).is_ok()
}

/// Does something to a process now and then until it has ended.
fn until_it_ends(mut child: Child, line: &str, mut each: impl FnMut(&Child)) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < HANGS, "{line} hangs");
        each(&child);
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

fn may_write_memory_of_others() -> bool {
    // SAFETY: the call has no requirements.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: only root may write the memory of another process");
    }
    root
}

/// How many pointers are changed in one run at most.
const FLIPS: u32 = 20;

/// How often each case is tried: `MEMGAUGE_FLIPS`.
fn times() -> u32 {
    std::env::var("MEMGAUGE_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(3)
}

/// How often each command's files are truncated: `MEMGAUGE_TRUNCATIONS`. Once takes some 10 s.
fn truncations() -> u32 {
    std::env::var("MEMGAUGE_TRUNCATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn a_pointer_that_changes_in_memory_is_an_incident_and_not_a_crash() {
    if !may_write_memory_of_others() {
        return;
    }
    let mut random = Random::new();
    let lines = ["chase 32M --pages 4k --passes 300", "latency --size 32M --time 2s", "loaded --size 32M --delay 0,400 --time 1s"];
    for line in lines {
        for nth in 0..times() {
            let _permit = alone();
            // One that changes after the last pass over a buffer is never read, so this goes on for a while. Once one was read, each further one
            // is in memory that nobody reads any more.
            let mut flips = 0;
            let output = until_it_ends(start(line), line, |child| flips += u32::from(flips < FLIPS && flip(child, 32 << 20, &mut random)));
            let what = format!("{line}, run {nth}, {flips} pointers changed: {:?} {}", output.status, text(&output.stderr));
            assert!(flips > 0, "{what}");
            assert_eq!(output.status.code(), Some(3), "{what}");
            let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {what}"));
            let corrupted = report.notes.iter().any(|note| note.code == "memory-corrupted");
            assert!(corrupted, "{what}: {:?}", report.notes);
        }
    }
}

#[test]
fn corrupted_memory_is_told_even_where_the_result_cannot_be_written() {
    if !may_write_memory_of_others() {
        return;
    }
    let _permit = alone();
    let (line, elsewhere, mut random, mut flips) = ("latency --size 32M --time 2s", temporary("corrupted-full"), Random::new(), 0);
    let mut command = program();
    command.args(line.split_whitespace()).args(["--format", "json"]).env("TMPDIR", &elsewhere);
    let child = command.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    let output = until_it_ends(child, line, |child| flips += u32::from(flips < FLIPS && flip(child, 32 << 20, &mut random)));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{flips} pointers changed: {said}");
    assert!(said.contains("No space left on device") && said.contains("the result is in"), "{said}");
    std::fs::remove_dir_all(elsewhere).unwrap();
}

#[test]
fn a_file_that_another_process_truncates_costs_its_measurement() {
    if !may_write_memory_of_others() {
        return;
    }
    let directory = temporary("faults");
    for what in ["latency", "bandwidth", "loaded --delay 0", "pmem"] {
        for nth in 0..truncations() {
            let line = match what {
                "pmem" => format!("pmem {} --size 32M --time 200ms --within 8s", directory.display()),
                _ => format!("{what} --size 32M --memory-dir {} --time 2s", directory.display()),
            };
            let _permit = alone();
            let began = Instant::now();
            let (mut truncated, mut refused) = (0, false);
            let output = until_it_ends(start(&line), &line, |child| {
                if began.elapsed() < Duration::from_secs(1) {
                    return;
                }
                for range in ranges(child).iter().filter(|r| r.path.contains("(deleted)") && r.end - r.start >= 16 << 20) {
                    let file = format!("/proc/{}/map_files/{:x}-{:x}", child.id(), range.start, range.end);
                    let opened = File::options().write(true).open(file);
                    refused |= opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
                    truncated += u32::from(opened.is_ok_and(|file| file.set_len(0).is_ok()));
                }
            });
            if truncated == 0 && refused {
                return eprintln!(
                    "NOT TESTED: truncated files: /proc/PID/map_files needs CAP_CHECKPOINT_RESTORE in the first user namespace"
                );
            }
            let what = format!("{line}, run {nth}, {truncated} files: {:?} {}", output.status, text(&output.stderr));
            assert!(truncated > 0, "{what}");
            assert!(matches!(output.status.code(), Some(1 | 4)), "{what}");
            let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {what}"));
            // The directory, what happened and where: in the result and on the terminal.
            let says = format!("another process truncated its file in {}: it ends before byte ", directory.display());
            let lost =
                |m: &Measurement| matches!(&m.estimate.not_measured, Some(NotMeasured::NoMemory { detail }) if detail.contains(&says));
            assert!(report.results.iter().any(lost), "{what}");
            assert!(text(&output.stderr).contains(&says), "{what}");
        }
    }
}

#[test]
fn a_start_signal_that_another_process_truncates_is_an_error_and_not_a_crash() {
    let name = format!("memgauge-faults-{}", std::process::id());
    let path = format!("/dev/shm/{name}");
    let line = format!("bandwidth --size 16M --start-signal {name}");
    let output = until_it_ends(start(&line), &line, |_| {
        if let Ok(file) = File::options().write(true).open(&path) {
            file.set_len(0).unwrap();
        }
    });
    let _ = std::fs::remove_file(&path);
    assert_eq!(output.status.code(), Some(4), "{:?} {}", output.status, text(&output.stderr));
    assert!(text(&output.stderr).contains("another program truncated it"), "{}", text(&output.stderr));
}
