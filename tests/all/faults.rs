//! Memory that changes or goes away while it is measured. As root, another process can do that to any program.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use memgauge_model::estimate::{MemoryFaultKind, NotMeasured};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::traffic::Mix;
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support::watch::{HANGS, Watched};
use crate::support::{alone, program, temporary, text};

/// How often pointers are changed.
const BETWEEN_FLIPS: Duration = Duration::from_millis(20);
const PAGE: usize = 4096;

/// A range of addresses of a process, and the path behind it.
struct Range {
    start: u64,
    end: u64,
    path: String,
}

fn start(line: &str) -> Watched {
    let mut command = program();
    Watched::start(command.args(line.split_whitespace()).args(["--format", "json"]))
}

/// The writable ranges of a process.
fn ranges(process: u32) -> Vec<Range> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
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

/// Smaller ranges hold no buffer of a chase here.
const BUFFER: u64 = 16 << 20;

/// Flips one of the upper bits of one pointer of a chase, where its chain is written. Tells whether it did.
fn flip(process: u32, random: &mut Random) -> bool {
    let buffers: Vec<Range> = ranges(process).into_iter().filter(|r| r.end - r.start >= BUFFER && r.path.is_empty()).collect();
    if buffers.is_empty() {
        return false;
    }
    let range = &buffers[random.below(buffers.len() as u64) as usize];
    let Ok(memory) = File::options().read(true).write(true).open(format!("/proc/{process}/mem")) else { return false };
    let at = range.start + random.below((range.end - range.start) / PAGE as u64) * PAGE as u64;
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

fn may_write_memory_of_others() -> bool {
    // SAFETY: the call has no requirements.
    unsafe { libc::geteuid() == 0 }
}

/// How many pointers are changed in one run at most.
const FLIPS: u32 = 20;

/// How often each case is tried: `MEMGAUGE_FLIPS`.
fn times() -> u32 {
    std::env::var("MEMGAUGE_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// How often each command's files are truncated: `MEMGAUGE_TRUNCATIONS`.
fn truncations() -> u32 {
    std::env::var("MEMGAUGE_TRUNCATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// When something is done to a run.
#[derive(Clone, Copy, PartialEq)]
enum From {
    /// As soon as there is memory.
    Start,
    /// When it has used so much CPU time.
    Used(Duration),
    /// When it measures.
    Measuring,
    /// When the first of several cells is done, and the next one is measured.
    Later,
}

/// Waits for that moment. `false` if the run ended before.
fn wait_for(run: &mut Watched, from: From) -> bool {
    match from {
        From::Start => true,
        From::Used(time) => run.until_it_has_used(time),
        From::Measuring => run.until_it_measures(2),
        From::Later => {
            let mut first = None;
            run.until(move |run| {
                let seen = run.seen();
                let first = first.get_or_insert_with(|| seen.cell.clone());
                // Before the first cell, memory is set up, and the record has no cell.
                if !first.contains(": ") {
                    *first = seen.cell.clone();
                }
                *first != seen.cell && seen.bursts > 0
            })
        }
    }
}

/// A command whose pointers are changed.
struct Chasing {
    line: &'static str,
    from: From,
    /// How many are changed at a time.
    at_once: u32,
    /// How many are changed at most.
    flips: u32,
    /// Whether what was measured until then is in the result.
    keeps: fn(&Report) -> bool,
}

/// Two cells; the points of one curve share a cell.
const TWO_MIXES: &str = "loaded --width sse2 --mix all-reads,2:1 --delay 0";

/// Whether the result of the first mix, which was measured before, has both its numbers.
fn first_mix(report: &Report) -> bool {
    report.results.iter().filter(|m| m.at.mix == Some(Mix::AllReads) && m.estimate.value.is_some()).count() == 2
}

fn chasing() -> [Chasing; 4] {
    [
        // A pass takes some 0.1 s.
        Chasing {
            line: "chase 32M --pages 4k --passes 300",
            from: From::Used(Duration::from_millis(800)),
            at_once: 1,
            flips: FLIPS,
            keeps: |report| report.results[0].estimate.value.is_some(),
        },
        Chasing { line: "latency --size 32M --time 2s", from: From::Start, at_once: 1, flips: FLIPS, keeps: |_| true },
        Chasing {
            line: "loaded --width sse2 --mix all-reads,2:1 --delay 0 --size 32M --time 500ms",
            from: From::Later,
            at_once: 1,
            flips: FLIPS,
            keeps: first_mix,
        },
        Chasing {
            // Its chases are measured one after the other, and others use the CPUs in between, so that many change.
            line: "quick --size 32M --time 60ms --within 10s",
            from: From::Later,
            at_once: 20,
            flips: 400 * FLIPS,
            keeps: |report| report.results.iter().any(|m| m.estimate.value.is_some()) && report.health.is_some(),
        },
    ]
}

fn cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

#[test]
fn a_pointer_that_changes_in_memory_is_an_incident_and_not_a_crash() {
    if !may_write_memory_of_others() {
        not_tested!("only root may write the memory of another process");
    }
    let mut random = Random::new();
    for Chasing { line, from, at_once, flips: most, keeps } in chasing() {
        if line.starts_with("loaded") && cpus() < 2 {
            not_tested_in_part!("{line}: one CPU");
            continue;
        }
        for nth in 0..times() {
            let _permit = alone();
            let mut run = start(line);
            let there = wait_for(&mut run, from);
            // One that changes after the last pass over a buffer is never read, so this goes on for a while. Once one was read, each further one
            // is in memory that nobody reads any more.
            let (mut flips, mut last) = (0, None::<Instant>);
            let ended = run.until_it_ends(|run| {
                if last.is_some_and(|last| last.elapsed() < BETWEEN_FLIPS) {
                    return;
                }
                last = Some(Instant::now());
                for _ in 0..at_once {
                    flips += u32::from(flips < most && flip(run.id(), &mut random));
                }
            });
            let output = &ended.output;
            let what = format!("{line}, run {nth}, {flips} pointers changed: {:?} {}", output.status, text(&output.stderr));
            // A run that had few CPUs is over before all were changed, and may have read none of those.
            if !there || flips < most.min(FLIPS) && output.status.code() != Some(3) {
                not_tested_in_part!("the run ended too early: {what}");
                continue;
            }
            assert_eq!(output.status.code(), Some(3), "{what}");
            let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {what}"));
            let corrupted = report.notes.iter().any(|note| note.code == memgauge_model::note::NoteCode::MemoryCorrupted);
            assert!(corrupted, "{what}: {:?}", report.notes);
            if !keeps(&report)
                && let Some(why) = ended.starved()
            {
                not_tested_in_part!("{line}: what was measured before: {why}");
                continue;
            }
            assert!(keeps(&report), "{what}: {:#?}", report.results.iter().map(|m| (&m.at, &m.estimate)).collect::<Vec<_>>());
        }
        println!("{line}: {0} of {0} are an incident", times());
    }
}

#[test]
fn corrupted_memory_is_told_even_where_the_result_cannot_be_written() {
    if !may_write_memory_of_others() {
        not_tested!("only root may write the memory of another process");
    }
    let _permit = alone();
    let (line, elsewhere, mut random, mut flips) = ("latency --size 32M --time 2s", temporary("corrupted-full"), Random::new(), 0);
    let mut command = program();
    command.args(line.split_whitespace()).args(["--format", "json"]).env("TMPDIR", &elsewhere);
    let mut child = command.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < HANGS, "{line} hangs");
        flips += u32::from(flips < FLIPS && flip(child.id(), &mut random));
        std::thread::sleep(BETWEEN_FLIPS);
    }
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    if flips < FLIPS && output.status.code() != Some(3) {
        not_tested!("the run ended too early: {flips} pointers changed");
    }
    assert_eq!(output.status.code(), Some(3), "{flips} pointers changed: {said}");
    assert!(said.contains("No space left on device") && said.contains("the result is in"), "{said}");
    std::fs::remove_dir_all(elsewhere).unwrap();
}

#[test]
fn a_file_that_another_process_truncates_costs_its_measurement() {
    if !may_write_memory_of_others() {
        not_tested!("only root may write the memory of another process");
    }
    let directory = temporary("faults");
    for what in ["latency", "bandwidth --mix all-reads --width sse2", "loaded --delay 0", TWO_MIXES, "pmem"] {
        if what.starts_with("loaded") && cpus() < 2 {
            not_tested_in_part!("{what}: one CPU");
            continue;
        }
        for nth in 0..truncations() {
            let line = match what {
                "pmem" => format!("pmem {} --size 32M --time 50ms --within 2s", directory.display()),
                _ => format!("{what} --size 32M --memory-dir {} --time 400ms", directory.display()),
            };
            let _permit = alone();
            let mut run = start(&line);
            // A file that is truncated while it is filled is another error.
            let there = wait_for(&mut run, if what == TWO_MIXES { From::Later } else { From::Measuring });
            let (mut truncated, mut refused) = (0, false);
            let ended = run.until_it_ends(|run| {
                let files = ranges(run.id()).into_iter().filter(|r| r.path.contains("(deleted)") && r.end - r.start >= 16 << 20);
                // Those of later cells are left alone.
                for range in files.take(if truncated > 0 { 0 } else { usize::MAX }) {
                    let file = format!("/proc/{}/map_files/{:x}-{:x}", run.id(), range.start, range.end);
                    let opened = File::options().write(true).open(file);
                    refused |= opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
                    truncated += u32::from(opened.is_ok_and(|file| file.set_len(0).is_ok()));
                }
            });
            let output = &ended.output;
            if truncated == 0 && refused {
                not_tested!("truncated files: /proc/PID/map_files needs CAP_CHECKPOINT_RESTORE in the first user namespace");
            }
            let what = format!("{line}, run {nth}, {truncated} files: {:?} {}", output.status, text(&output.stderr));
            if !there || truncated == 0 {
                not_tested_in_part!("the run ended before its file was truncated: {what}");
                continue;
            }
            assert!(matches!(output.status.code(), Some(1 | 4)), "{what}");
            let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {what}"));
            // The directory, what happened and where: in the result and on the terminal.
            let says = format!("another process truncated its file in {}: it ends before byte ", directory.display());
            let lost = |m: &Measurement| {
                matches!(&m.estimate.not_measured, Some(NotMeasured::MemoryFailed { fault, .. })
                    if fault.kind == MemoryFaultKind::Truncated && fault.directory.as_deref() == directory.to_str())
            };
            // With so few CPUs, the cell may have been over when its file went away, and the next one was being filled.
            if !report.results.iter().any(lost)
                && let Some(why) = ended.starved()
            {
                not_tested_in_part!("{line}: {why}");
                continue;
            }
            assert!(report.results.iter().any(lost), "{what}");
            assert!(text(&output.stderr).contains(&says), "{what}");
            assert!(!line.contains(TWO_MIXES) || first_mix(&report) || ended.starved().is_some(), "{what}");
        }
        println!("{what}: {0} of {0} cost a measurement", truncations());
    }
}

/// The word of a start signal.
struct Word(std::path::PathBuf);

impl Word {
    fn file(&self) -> Option<File> {
        File::options().read(true).write(true).open(&self.0).ok()
    }

    fn is(&self, value: u32) -> bool {
        let mut word = [0; 4];
        self.file().is_some_and(|file| file.read_exact_at(&mut word, 0).is_ok() && u32::from_ne_bytes(word) == value)
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_start_signal_that_another_process_truncates_is_an_error_and_keeps_what_was_measured() {
    let name = format!("memgauge-faults-{}", std::process::id());
    let line = format!("bandwidth --width sse2 --mix all-reads --size 1M --delay 0,100 --time 20ms --start-signal {name}");
    for nth in 0..times() {
        for cells in [0, 1] {
            let _permit = alone();
            let word = Word(format!("/dev/shm/{name}").into());
            let (mut given, mut truncated) = (0, false);
            let ended = start(&line).until_it_ends(|_| {
                let Some(file) = word.file() else { return };
                // 3: the cell is done. From then on again and again: a file that is just made is grown to a word.
                if truncated || cells == 0 || given == cells && word.is(3) {
                    file.set_len(0).unwrap();
                    truncated = true;
                } else if given < cells && word.is(0) {
                    file.write_all_at(&1_u32.to_ne_bytes(), 0).unwrap();
                    given += 1;
                }
            });
            let output = &ended.output;
            let what = format!("run {nth}, after {cells} cells: {:?} {}", output.status, text(&output.stderr));
            assert!(truncated && text(&output.stderr).contains("another program truncated it"), "{what}");
            if cells == 0 {
                assert_eq!(output.status.code(), Some(4), "{what}");
                continue;
            }
            assert_eq!(output.status.code(), Some(1), "{what}");
            let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {what}"));
            let values: Vec<bool> = report.results.iter().map(|m| m.estimate.value.is_some()).collect();
            assert_eq!(values, [true, false], "{what}");
        }
    }
    println!("start signal: {0} of {0} are an error", 2 * times());
}
