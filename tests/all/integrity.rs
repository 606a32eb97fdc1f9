//! Bits that are stuck or flip are found by every mode that claims to compare with what was written: another process damages the buffers.
//!
//! `MEMGAUGE_INJECTIONS=100 cargo test --test all integrity -- --nocapture` injects 100 faults in each mode.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use memgauge_model::integrity::TestPattern;
use memgauge_model::result::{Incomplete, Mismatch, Report, WrongWordKind};

use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support::injector::{Damage, Fault, Injection, Injector};
use crate::support::watch::{Ended, InTime, Watched};
use crate::support::{beside_another, program, temporary, text};

/// Faults in each mode where nothing else is said: of the first content, and of a later one.
const INJECTIONS: u32 = 2;
const MIB: u64 = 1 << 20;
/// What is written to memory stays there for longer than this before it is compared, in runs that hold it. Whoever looks at it as often sees it.
const SEEN: Duration = Duration::from_millis(40);
/// The complement of a pattern is compared as soon as it is written, in runs that hold nothing.
const COMPLEMENT: Duration = Duration::from_millis(2);

fn injections() -> u32 {
    std::env::var("MEMGAUGE_INJECTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(INJECTIONS)
}

/// A number from 0 to 1 that differs from injection to injection.
fn spread(n: u32) -> f64 {
    (f64::from(n + 1) * 0.618_033_988_75).fract()
}

/// A run whose memory was damaged.
struct Damaged {
    ended: Ended,
    damage: Damage,
}

impl Damaged {
    fn run(mut command: Command, injection: Injection) -> Self {
        let _permit = beside_another();
        let run = Watched::start(&mut command);
        let injector = Injector::start(run.id(), injection);
        let ended = run.end();
        Self { ended, damage: injector.end() }
    }

    fn status(&self) -> i32 {
        self.ended.output.status.code().unwrap_or(-1)
    }

    fn report(&self) -> Report {
        let output = &self.ended.output;
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Why nothing was injected, or nothing had to be found: nobody had the CPUs for it.
    fn not_tested(&self) -> Option<String> {
        self.not_tested_within(SEEN)
    }

    /// The same where contents stay for so long.
    fn not_tested_within(&self, stays: Duration) -> Option<String> {
        if self.damage.changes == 0 || self.damage.longest_gap > stays {
            return Some(format!(
                "the injector changed {} bits, and once did not look for {:?}",
                self.damage.changes, self.damage.longest_gap
            ));
        }
        self.ended.starved().filter(|_| self.status() == 4)
    }

    fn said(&self) -> String {
        let Output { stdout, stderr, .. } = &self.ended.output;
        let out = String::from_utf8_lossy(&stdout[..stdout.len().min(2000)]).into_owned();
        format!("status {}, {} changes, {out} {}", self.status(), self.damage.changes, String::from_utf8_lossy(stderr))
    }
}

/// Damages memory that holds a content which is compared later: whatever was injected must be found. An error says why it was not injected. `stays`
/// is the least time until a comparison, but for the first content of a buffer, which is read for longer: a bit that flips there is always seen.
fn finds(mode: &str, faults: &[Fault], stays: Duration, command: impl Fn() -> Command) -> Result<(), String> {
    let mapping = 16 * MIB;
    let mut found = 0;
    for n in 0..injections() {
        let (fault, contents) = (faults[n as usize % faults.len()], 1 + n % 2);
        let injection = Injection { fault, mapping, at: spread(n * 7 + 3), bit: (spread(n) * 7.99) as u8, contents, after: Duration::ZERO };
        let run = Damaged::run(command(), injection);
        let stays = if contents == 1 && matches!(fault, Fault::FlipsOnce) { SEEN } else { stays };
        if run.status() != 3
            && let Some(why) = run.not_tested_within(stays)
        {
            return Err(why);
        }
        assert!(run.damage.changes > 0, "{mode}: nothing was injected: {injection:?}, {}", run.said());
        assert_eq!(run.status(), 3, "{mode}: {injection:?}: {}", run.said());
        found += 1;
    }
    println!("{mode}: {found} of {found} found");
    Ok(())
}

const STUCK: [Fault; 2] = [Fault::StuckAt0, Fault::StuckAt1];

fn memgauge(line: &str) -> Command {
    let mut command = program();
    command.args(line.split(' '));
    command
}

/// A scan whose contents stay for a while.
const SCAN: &str = "scan --size 32M --region 16M --passes 3 --node 0 --integrity --hold 100ms --format json --patterns";
const CHECKED: &str = "bandwidth --line check --mix all-reads --width sse2 --size 16M --time 60ms --hold 50ms --format json";

#[test]
fn a_scan_finds_bits_that_are_stuck_and_that_flip_once() {
    for faults in [&STUCK[..], &[Fault::FlipsOnce]] {
        // A bit that is stuck at its own value shows in the next content, so that the complement of the first pattern must not be the last.
        if let Err(why) = finds("scan --integrity", faults, SEEN, || memgauge(&format!("{SCAN} random,checkerboard"))) {
            not_tested!("{why}");
        }
    }
}

#[test]
fn checked_reads_find_bits_that_are_stuck_and_that_flip_once() {
    for faults in [&STUCK[..], &[Fault::FlipsOnce]] {
        if let Err(why) = finds("bandwidth --line check", faults, SEEN, || memgauge(CHECKED)) {
            not_tested!("{why}");
        }
    }
}

#[test]
fn a_stream_finds_stuck_bits() {
    // It writes its content once, and reads it in all passes: half a second at least. A bit that is stuck at its own value shows only in the
    // complement.
    let stuck = |n: u32| if n.is_multiple_of(2) { Fault::StuckAt0 } else { Fault::StuckAt1 };
    for n in 0..injections() {
        let after = Duration::from_millis(u64::from(n % 2) * 50);
        let injection = Injection { fault: stuck(n), mapping: 32 * MIB, at: spread(n * 7 + 3), bit: (n % 8) as u8, contents: 1, after };
        let run = Damaged::run(memgauge("stream 32M --passes 200 --format json"), injection);
        if run.status() != 3
            && let Some(why) = run.not_tested_within(COMPLEMENT)
        {
            not_tested!("{why}");
        }
        assert_eq!(run.status(), 3, "{injection:?}: {}", run.said());
    }
}

#[test]
fn what_checked_reads_compare_is_held() {
    let line = "--line check --mix all-reads --size 16M --time 100ms --patterns address --hold 150ms --format json";
    for command in ["bandwidth", "loaded --delay 0,400"] {
        if command.starts_with("loaded") && std::thread::available_parallelism().unwrap().get() < 2 {
            not_tested_in_part!("{command}: one CPU");
            continue;
        }
        let _permit = beside_another();
        let ended = Watched::start(&mut memgauge(&format!("{command} {line}"))).end();
        let said = text(&ended.output.stderr);
        if ended.output.status.code() != Some(0)
            && let Some(why) = ended.starved()
        {
            not_tested_in_part!("{command}: {why}");
            continue;
        }
        assert_eq!(ended.output.status.code(), Some(0), "{command}: {said}");
        let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
        for m in &report.results {
            let integrity = m.evidence.integrity.as_ref().unwrap();
            assert!(integrity.held_s.is_some_and(|held| held >= 0.15) && integrity.patterns >= 2, "{command}: {integrity:?}");
        }
        // Two writes of the pattern and the complement, and two comparisons after the reading at least.
        assert!(ended.took >= Duration::from_millis(5 * 150), "{command}: {:?}", ended.took);
        assert!(!said.contains("cut short"), "{said}");
    }
    let plan = memgauge("bandwidth --line check --mix all-reads --size 16M --hold 300ms --plan").output().unwrap();
    assert!(text(&plan.stdout).contains("contents written and compared, each held 0.3 s at least"), "{}", text(&plan.stdout));
}

#[test]
fn a_check_of_reads_that_its_time_does_not_suffice_for_is_not_complete() {
    let _permit = beside_another();
    let line = "bandwidth --line check --mix all-reads --size 16M --time 200ms --hold 2s --within 4s --format json";
    let ended = Watched::start(&mut memgauge(line)).end();
    if ended.output.status.code() == Some(4)
        && let Some(why) = ended.starved()
    {
        not_tested!("{why}");
    }
    assert_eq!(ended.output.status.code(), Some(1), "{}", text(&ended.output.stderr));
    let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
    assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::OutOfTime)), "{:?}", report.notes);
    let integrity = report.results[0].evidence.integrity.as_ref().unwrap();
    assert!(integrity.patterns < integrity.patterns_planned, "{integrity:?}");
}

#[test]
fn checked_reads_of_given_contents_find_stuck_bits() {
    let folder = temporary("contents");
    let file = folder.join("lines.txt");
    std::fs::write(&file, format!("{}\n{}\n", "0f".repeat(64), "5a".repeat(64))).unwrap();
    let line = format!("{CHECKED} --contents {}", file.display());
    let found = finds("bandwidth --line check --contents", &STUCK, SEEN, || memgauge(&line));
    std::fs::remove_dir_all(folder).unwrap();
    if let Err(why) = found {
        not_tested!("{why}");
    }
}

#[test]
fn checked_reads_write_and_compare_patterns() {
    let injection = Injection { fault: Fault::StuckAt1, mapping: 16 * MIB, at: 0.25, bit: 3, contents: 1, after: Duration::ZERO };
    let run = Damaged::run(memgauge(&format!("{CHECKED} --patterns moving-inversions,address")), injection);
    let report = run.report();
    let integrity = report.results[0].evidence.integrity.as_ref();
    let complete = integrity.is_some_and(|i| i.patterns == i.patterns_planned);
    if (run.status() != 3 || !complete)
        && let Some(why) = run.not_tested().or_else(|| run.ended.starved())
    {
        not_tested!("{why}");
    }
    assert_eq!(run.status(), 3, "{}", run.said());
    let integrity = integrity.unwrap();
    assert_eq!(integrity.tested, [TestPattern::MovingInversions, TestPattern::Address]);
    // Three writes, two, the complement, and two comparisons after the reading.
    assert_eq!((integrity.patterns, integrity.patterns_planned), (8, 8));
    assert_eq!(integrity.first[0].pattern, Some(TestPattern::MovingInversions), "{:?}", integrity.first[0]);
}

#[test]
fn the_drop_in_finds_bits_that_are_stuck_and_that_flip_once() {
    for faults in [&STUCK[..], &[Fault::FlipsOnce]] {
        if let Err(why) = finds("mlc --loaded_latency -I", faults, COMPLEMENT, || drop_in("-t0.2")) {
            not_tested!("{why}");
        }
    }
}

#[test]
fn the_drop_in_says_that_data_were_corrupted() {
    let injection = Injection { fault: Fault::StuckAt1, mapping: 16 * MIB, at: 0.5, bit: 2, contents: 1, after: Duration::ZERO };
    let run = Damaged::run(drop_in("-t0.2"), injection);
    if run.status() != 3
        && let Some(why) = run.not_tested()
    {
        not_tested!("{why}");
    }
    let out = text(&run.ended.output.stdout);
    assert!(run.status() == 3 && out.ends_with("\nChecksum mismatch. Data corruption detected. Exiting..\n"), "{}", run.said());
    assert!(!out.lines().any(|line| line.starts_with(" 00000\t")), "no number of memory that is not sound: {out}");
}

fn drop_in(time: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    // Whoever runs the tests as root did not ask for registers to be written.
    command.env("MEMGAUGE_MLC_PREFETCH", "leave");
    command.args(["--loaded_latency", "-I", "-R", "-d0", time, "-b16384"]).stdin(Stdio::null());
    command
}

#[test]
fn a_scan_says_which_bit_was_wrong_and_keeps_its_values() {
    let injection = Injection { fault: Fault::StuckAt1, mapping: 16 * MIB, at: 0.5, bit: 5, contents: 1, after: Duration::ZERO };
    let run = Damaged::run(memgauge(&format!("{SCAN} random,checkerboard")), injection);
    let report = run.report();
    let words: Vec<_> = report.results.iter().filter_map(|m| m.evidence.integrity.as_ref()).flat_map(|i| &i.first).collect();
    // A word that was written again is stuck only where it was damaged again before it was read, within these milliseconds.
    const REWRITTEN: Duration = Duration::from_millis(2);
    let stuck = words.iter().all(|word| word.kind() == WrongWordKind::Stuck);
    let within = if stuck { SEEN } else { REWRITTEN };
    if !(run.status() == 3 && stuck)
        && let Some(why) = run.not_tested_within(within).or_else(|| run.ended.starved().filter(|_| run.status() != 3))
    {
        not_tested!("{why}");
    }
    assert_eq!(run.status(), 3, "{}", run.said());
    assert!(report.complete && report.results.iter().all(|m| m.estimate.value.is_some()));
    let [word] = words[..] else { panic!("one word expected: {words:?}") };
    assert_eq!((word.offset, word.written ^ word.read, word.written & 0x20), (8 * MIB, 0x20, 0), "{word:x?}");
    assert!(word.address.is_some() && word.pattern.is_some(), "{word:?}");
    assert_eq!((word.second_read, word.kind()), (word.read, WrongWordKind::Stuck), "{word:x?}");
    is_placed(&report, word);
    let told = report.notes.iter().find(|note| note.code == memgauge_model::note::NoteCode::MemoryCorrupted).unwrap();
    assert!(told.message.to_string().contains("wrong when read again, and after it was written again"), "{told:?}");
}

#[test]
fn a_bit_that_flips_is_told_from_one_that_is_stuck() {
    let injection = Injection { fault: Fault::FlipsOnce, mapping: 16 * MIB, at: 0.25, bit: 0, contents: 1, after: Duration::ZERO };
    let run = Damaged::run(memgauge(&format!("{SCAN} random")), injection);
    if run.status() != 3
        && let Some(why) = run.not_tested()
    {
        not_tested!("{why}");
    }
    assert_eq!((run.status(), run.damage.changes), (3, 1), "{}", run.said());
    let report = run.report();
    let words: Vec<_> = report.results.iter().flat_map(|m| &m.evidence.integrity.as_ref().unwrap().first).collect();
    let [word] = words[..] else { panic!("one word expected: {words:?}") };
    assert_eq!((word.offset, word.written ^ word.read, word.second_read), (4 * MIB, 1, word.read), "{word:x?}");
    assert_eq!((word.rewritten_read, word.kind()), (Some(word.written), WrongWordKind::Flipped), "{word:x?}");
    is_placed(&report, word);
}

/// The node is the kernel's, and root sees the physical address and what firmware says about it, or why it says nothing.
fn is_placed(report: &Report, word: &Mismatch) {
    assert_eq!(word.node, Some(0), "{word:x?}");
    assert_eq!(word.devices.is_empty(), word.devices_unknown.is_some(), "{word:x?}");
    let shown = report.results[0].evidence.physical.as_ref().unwrap().first.is_some();
    assert_eq!(word.physical.is_some(), shown, "{word:x?}");
    if let Some(physical) = word.physical {
        assert_eq!(physical % 4096, word.address.unwrap() % 4096, "{word:x?}");
    }
}

#[test]
fn a_check_that_is_interrupted_says_how_much_it_compared() {
    let _permit = beside_another();
    let line = "scan --size 32M --region 16M --passes 3 --node 0 --integrity --patterns random --hold 60s --format json";
    let mut run = Watched::start(&mut memgauge(line));
    // All passes over both regions are read before the first comparison, which waits for a minute: nothing runs any more.
    if !run.until_it_begins() || !run.until_it_waits() {
        not_tested!("it ended before it waited: {}", text(&run.end().output.stderr));
    }
    run.signal(libc::SIGINT);
    let ended = run.end();
    assert_eq!(ended.output.status.code(), Some(130), "{}", text(&ended.output.stderr));
    let late = ended.within(Duration::from_secs(3));
    assert!(!matches!(late, InTime::No(_)), "{late:?}");
    let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
    assert!(!report.complete && report.results.len() == 2);
    for m in &report.results {
        let integrity = m.evidence.integrity.as_ref().unwrap();
        assert_eq!((integrity.patterns, integrity.patterns_planned, integrity.mismatches), (0, 2, 0), "{integrity:?}");
        assert!(m.estimate.value.is_some(), "{:?}", m.estimate);
    }
}

#[test]
fn a_check_that_its_time_does_not_suffice_for_is_not_complete() {
    let _permit = beside_another();
    let line = "scan --size 32M --region 16M --passes 3 --node 0 --integrity --patterns random --hold 60s --within 2s --format json";
    let ended = Watched::start(&mut memgauge(line)).end();
    let status = ended.output.status.code();
    if status == Some(4)
        && let Some(why) = ended.starved()
    {
        not_tested!("{why}");
    }
    assert_eq!(status, Some(1), "{}", text(&ended.output.stderr));
    let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
    assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::OutOfTime)));
    let measured = report.results.iter().all(|m| m.estimate.value.is_some() && m.evidence.integrity.is_some());
    if !measured && let Some(why) = ended.starved() {
        not_tested!("{why}");
    }
    for m in &report.results {
        let integrity = m.evidence.integrity.as_ref().unwrap();
        assert_eq!((integrity.patterns, integrity.patterns_planned, m.estimate.value.is_some()), (0, 2, true), "{integrity:?}");
    }
}

/// The same faults and the same time as stressapptest (of Debian's package), which must be installed.
#[test]
#[ignore = "takes minutes, and needs stressapptest, an optimised build and a quiet machine"]
fn side_by_side_with_stressapptest() {
    const SECONDS: u32 = 10;
    let cases = [Fault::StuckAt0, Fault::StuckAt1, Fault::FlipsOnce];
    let mut found = [[0; 2]; 3];
    let mut rates = [Vec::new(), Vec::new()];
    for (row, fault) in cases.into_iter().enumerate() {
        for n in 0..injections() {
            let after = Duration::from_secs_f64(1.0 + 0.6 * f64::from(SECONDS) * spread(n));
            let injection = Injection { fault, mapping: 512 * MIB, at: spread(n * 7 + 3), bit: (n % 8) as u8, contents: 1, after };
            let within = format!(
                "scan --node 0 --size 512M --region 512M --passes 1 --integrity --patterns {PATTERNS} --within {SECONDS}s --format json"
            );
            let own = Damaged::run(memgauge(&within), injection);
            let (status, changes, report) = (own.status(), own.damage.changes, own.report());
            let integrity = report.results.iter().find_map(|m| m.evidence.integrity.as_ref()).unwrap();
            rates[0].push(integrity.compared.0 as f64 / 1e9 / report.timing.total_s);
            let mut other = Command::new("stressapptest");
            other.args(["-M", "512", "-s", &SECONDS.to_string()]).stdin(Stdio::null());
            let other = Damaged::run(other, injection);
            let (other_status, other_changes) = (other.status(), other.damage.changes);
            let other_text = String::from_utf8_lossy(&other.ended.output.stdout).into_owned();
            let (rate, failed) = (completed_gbs(&other_text), other_text.contains("Status: FAIL"));
            rates[1].push(rate);
            // A bit that held the damaged value all the time was not damaged.
            if changes > 0 && other_changes > 0 {
                found[row][0] += u32::from(status == 3);
                found[row][1] += u32::from(failed);
            }
            println!(
                "{fault:?} after {after:.1?}: memgauge status {status} ({changes} changes, {:.2} GB/s, {:.1} s), stressapptest status {other_status} ({other_changes} changes, {rate:.2} GB/s)",
                rates[0].last().unwrap(),
                report.timing.total_s
            );
        }
        println!("{fault:?}: memgauge {}, stressapptest {} of {}", found[row][0], found[row][1], injections());
    }
    assert!(found.iter().all(|[own, other]| own >= other), "{found:?}");
}

const PATTERNS: &str = "random,address,checkerboard,moving-inversions,walking-ones";

/// GB/s that stressapptest has copied and checked: what it states counts each byte twice, read and written.
fn completed_gbs(output: &str) -> f64 {
    let line = output.lines().find(|l| l.contains("Stats: Completed:")).unwrap_or_default();
    let number = |after: &str, before: &str| line.split(after).nth(1)?.split(before).next()?.trim().parse::<f64>().ok();
    number("Completed: ", "M in").zip(number(" in ", "s ")).map_or(f64::NAN, |(mib, seconds)| mib * 1.048_576e-3 / 2.0 / seconds)
}
