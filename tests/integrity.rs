//! Bits that are stuck or flip are found by every mode that claims to compare with what was written: another process damages the buffers.
//!
//! `MEMGAUGE_INJECTIONS=100 cargo test --test integrity -- --nocapture` injects 100 faults in each mode.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is the failure report of its test, and the shares found are printed")]

#[path = "support/injector.rs"]
mod injector;
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memgauge_core::integrity::TestPattern;
use memgauge_core::result::{Incomplete, Mismatch, Report, WrongWordKind};

use injector::{Fault, Injection, Injector};
use support::{beside_another, program, temporary, text};

/// Faults in each mode where nothing else is said: each polarity, from the start and later.
const INJECTIONS: u32 = 4;
const MIB: u64 = 1 << 20;

fn injections() -> u32 {
    std::env::var("MEMGAUGE_INJECTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(INJECTIONS)
}

/// A number from 0 to 1 that differs from injection to injection.
fn spread(n: u32) -> f64 {
    (f64::from(n + 1) * 0.618_033_988_75).fract()
}

/// Runs a command while its memory is damaged. Returns its status, its output and how often the bit was changed.
fn damaged(mut command: Command, injection: Injection) -> (i32, Vec<u8>, u32) {
    let _permit = beside_another();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let injector = Injector::start(child.id(), injection);
    let output = child.wait_with_output().unwrap();
    let changes = injector.end();
    (output.status.code().unwrap_or(-1), output.stdout, changes)
}

/// Injects stuck bits; all that were injected must be found. `later`: when the late ones begin.
fn finds_stuck_bits(mode: &str, mapping: u64, later: Duration, command: impl Fn() -> Command) {
    let (mut injected, mut found) = (0, 0);
    for n in 0..injections() {
        let fault = if n % 2 == 0 { Fault::StuckAt0 } else { Fault::StuckAt1 };
        let after = if n / 2 % 2 == 0 { Duration::ZERO } else { later };
        let bit = (spread(n) * 7.99) as u8;
        let injection = Injection { fault, mapping, at: spread(n * 7 + 3), bit, after };
        let (status, output, changes) = damaged(command(), injection);
        assert!(changes > 0, "{mode}: nothing was injected: {injection:?}, status {status}");
        injected += 1;
        found += u32::from(status == 3);
        if status != 3 {
            println!(
                "{mode}: status {status} with {injection:?}, {changes} changes: {}",
                String::from_utf8_lossy(&output[..output.len().min(2000)])
            );
        }
    }
    println!("{mode}: {found} of {injected} stuck bits found");
    assert_eq!(found, injected, "{mode}");
}

fn memgauge(line: &str) -> Command {
    let mut command = program();
    command.args(line.split(' '));
    command
}

#[test]
fn a_scan_finds_stuck_bits() {
    // Held for so long, the patterns last until the late ones begin, and beyond.
    let patterns = "--integrity --patterns random,moving-inversions --hold 200ms";
    let line = format!("scan --size 128M --region 32M --passes 3 --node 0 {patterns} --format json");
    finds_stuck_bits("scan --integrity", 32 * MIB, Duration::from_millis(400), || memgauge(&line));
}

#[test]
fn checked_reads_find_stuck_bits() {
    let line = "bandwidth --line check --mix all-reads --size 64M --time 400ms --format json";
    finds_stuck_bits("bandwidth --line check", 64 * MIB, Duration::from_millis(600), || memgauge(line));
}

#[test]
fn a_stream_finds_stuck_bits() {
    // A pass takes 3 ms at least, so that the late ones begin while it reads.
    finds_stuck_bits("stream", 64 * MIB, Duration::from_millis(400), || memgauge("stream 64M --passes 800 --format json"));
}

#[test]
fn what_checked_reads_compare_is_held() {
    let line = "--line check --mix all-reads --size 16M --time 200ms --patterns address --hold 300ms --format json";
    for command in ["bandwidth", "loaded --delay 0,400"] {
        let started = Instant::now();
        let _permit = beside_another();
        let output = memgauge(&format!("{command} {line}")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {}", text(&output.stderr));
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        for m in &report.results {
            let integrity = m.evidence.integrity.as_ref().unwrap();
            assert!(integrity.held_s.is_some_and(|held| held >= 0.3) && integrity.patterns >= 2, "{command}: {integrity:?}");
        }
        // Two writes of the pattern and the complement, and two comparisons after the reading at least.
        assert!(started.elapsed() >= Duration::from_millis(5 * 300), "{command}: {:?}", started.elapsed());
        assert!(text(&output.stderr).is_empty() || !text(&output.stderr).contains("cut short"), "{}", text(&output.stderr));
    }
    let plan = memgauge("bandwidth --line check --mix all-reads --size 16M --hold 300ms --plan").output().unwrap();
    assert!(text(&plan.stdout).contains("contents written and compared, each held 0.3 s at least"), "{}", text(&plan.stdout));
}

#[test]
fn a_check_of_reads_that_its_time_does_not_suffice_for_is_not_complete() {
    let _permit = beside_another();
    let line = "bandwidth --line check --mix all-reads --size 16M --time 200ms --hold 3s --within 5s --format json";
    let output = memgauge(line).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::OutOfTime)), "{:?}", report.notes);
    let integrity = report.results[0].evidence.integrity.as_ref().unwrap();
    assert!(integrity.patterns < integrity.patterns_planned, "{integrity:?}");
}

#[test]
fn checked_reads_of_given_contents_find_stuck_bits() {
    let folder = temporary("contents");
    let file = folder.join("lines.txt");
    std::fs::write(&file, format!("{}\n{}\n", "0f".repeat(64), "5a".repeat(64))).unwrap();
    let line = format!("bandwidth --line check --mix all-reads --size 64M --time 400ms --contents {} --format json", file.display());
    finds_stuck_bits("bandwidth --line check --contents", 64 * MIB, Duration::from_millis(600), || memgauge(&line));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn checked_reads_write_and_compare_patterns() {
    let line = "bandwidth --line check --mix all-reads --size 64M --time 200ms --patterns moving-inversions,address --format json";
    let injection = Injection { fault: Fault::StuckAt1, mapping: 64 * MIB, at: 0.25, bit: 3, after: Duration::ZERO };
    let (status, output, _) = damaged(memgauge(line), injection);
    assert_eq!(status, 3, "{}", text(&output));
    let report: Report = serde_json::from_slice(&output).unwrap();
    let integrity = report.results[0].evidence.integrity.as_ref().unwrap();
    assert_eq!(integrity.tested, [TestPattern::MovingInversions, TestPattern::Address]);
    // Three writes, two, the complement, and two comparisons after the reading.
    assert_eq!((integrity.patterns, integrity.patterns_planned), (8, 8));
    assert_eq!(integrity.first[0].pattern, Some(TestPattern::MovingInversions), "{:?}", integrity.first[0]);
}

#[test]
fn the_drop_in_finds_stuck_bits() {
    finds_stuck_bits("mlc --loaded_latency -I", 64 * MIB, Duration::from_millis(600), || drop_in("-t1"));
}

#[test]
fn the_drop_in_says_that_data_were_corrupted() {
    let injection = Injection { fault: Fault::StuckAt1, mapping: 64 * MIB, at: 0.5, bit: 2, after: Duration::ZERO };
    let (status, output, _) = damaged(drop_in("-t1"), injection);
    let out = text(&output);
    assert!(status == 3 && out.ends_with("\nChecksum mismatch. Data corruption detected. Exiting..\n"), "status {status}: {out}");
    assert!(!out.lines().any(|line| line.starts_with(" 00000\t")), "no number of memory that is not sound: {out}");
}

fn drop_in(time: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    // Whoever runs the tests as root did not ask for registers to be written.
    command.env("MEMGAUGE_MLC_PREFETCH", "leave");
    command.args(["--loaded_latency", "-I", "-R", "-d0", time, "-b65536"]).stdin(Stdio::null());
    command
}

#[test]
fn a_scan_says_which_bit_was_wrong_and_keeps_its_values() {
    let line = "scan --size 64M --region 16M --passes 3 --node 0 --integrity --patterns random,checkerboard --format json";
    let injection = Injection { fault: Fault::StuckAt1, mapping: 16 * MIB, at: 0.5, bit: 5, after: Duration::ZERO };
    let (status, output, _) = damaged(memgauge(line), injection);
    assert_eq!(status, 3, "{}", text(&output));
    let report: Report = serde_json::from_slice(&output).unwrap();
    assert!(report.complete && report.results.iter().all(|m| m.estimate.value.is_some()));
    let words: Vec<_> = report.results.iter().flat_map(|m| &m.evidence.integrity.as_ref().unwrap().first).collect();
    let [word] = words[..] else { panic!("one word expected: {words:?}") };
    assert_eq!((word.offset, word.written ^ word.read, word.written & 0x20), (8 * MIB, 0x20, 0), "{word:x?}");
    assert!(word.address.is_some() && word.pattern.is_some(), "{word:?}");
    assert_eq!((word.second_read, word.kind()), (word.read, WrongWordKind::Stuck), "{word:x?}");
    is_placed(&report, word);
    let told = report.notes.iter().find(|note| note.code == "memory-corrupted").unwrap();
    assert!(told.message.contains("wrong when read again, and after it was written again"), "{told:?}");
}

#[test]
fn a_bit_that_flips_is_told_from_one_that_is_stuck() {
    let line = "scan --size 64M --region 16M --passes 3 --node 0 --integrity --patterns random --hold 1s --format json";
    let injection = Injection { fault: Fault::FlipsOnce, mapping: 16 * MIB, at: 0.25, bit: 0, after: Duration::from_millis(1200) };
    let (status, output, changes) = damaged(memgauge(line), injection);
    assert_eq!((status, changes), (3, 1), "{}", text(&output));
    let report: Report = serde_json::from_slice(&output).unwrap();
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
    let mut line = memgauge("scan --size 64M --region 16M --passes 3 --node 0 --integrity --patterns random --hold 60s --format json");
    let child = line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    // SAFETY: the process is our child and has not been waited for, so its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(sent.elapsed() < Duration::from_secs(10), "{:?}", sent.elapsed());
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!report.complete && report.results.len() == 4);
    for m in &report.results {
        let integrity = m.evidence.integrity.as_ref().unwrap();
        assert_eq!((integrity.patterns, integrity.patterns_planned, integrity.mismatches), (0, 2, 0), "{integrity:?}");
        assert!(m.estimate.value.is_some(), "{:?}", m.estimate);
    }
}

#[test]
fn a_check_that_its_time_does_not_suffice_for_is_not_complete() {
    let _permit = beside_another();
    let line = "scan --size 64M --region 16M --passes 3 --node 0 --integrity --patterns random --hold 60s --within 3s --format json";
    let output = memgauge(line).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report.complete, &report.incomplete), (false, &Some(Incomplete::OutOfTime)));
    for m in &report.results {
        let integrity = m.evidence.integrity.as_ref().unwrap();
        assert_eq!((integrity.patterns, integrity.patterns_planned, m.estimate.value.is_some()), (0, 2, true), "{integrity:?}");
    }
}

/// A flip is found if it happens between a write and the next comparison; the result says which share of the time that is.
#[test]
fn bits_that_flip_once_are_found_as_often_as_the_result_says() {
    let line = "scan --size 64M --region 16M --passes 3 --node 0 --integrity --patterns random --hold 1s --format json";
    let (mut found, mut expected) = (0, 0.0);
    for n in 0..injections() {
        // Memory is written within the first half second, and compared for the last time at least two seconds later.
        let after = Duration::from_secs_f64(0.7 + 1.2 * spread(n));
        let injection = Injection { fault: Fault::FlipsOnce, mapping: 16 * MIB, at: spread(n * 5 + 1), bit: (n % 8) as u8, after };
        let (status, output, changes) = damaged(memgauge(line), injection);
        let report: Report = serde_json::from_slice(&output).unwrap();
        let integrity: Vec<_> = report.results.iter().filter_map(|m| m.evidence.integrity.as_ref()).collect();
        assert!(changes == 1 && integrity.iter().all(|i| i.held_s.unwrap() >= 1.0), "{integrity:?}");
        let watched = integrity.iter().filter_map(|i| i.watched).fold(1.0, f64::min);
        assert!((0.8..=1.0).contains(&watched), "{watched}");
        found += u32::from(status == 3);
        expected += watched;
        println!("flip after {after:?}: status {status}, watched {watched:.3}");
    }
    println!("{found} of {} flips found, {expected:.1} expected at least", injections());
    assert!(f64::from(found) >= expected - 1.0, "{found} of {}", injections());
}

/// Injects flips into a run that keeps contents under watch from half a second after its start to `until`. Those that are found must be as
/// many as `share` of them.
fn finds_flips(mode: &str, mapping: u64, until: Duration, command: impl Fn() -> Command, share: impl Fn(&[u8]) -> f64) {
    let (mut found, mut expected) = (0, 0.0);
    for n in 0..injections() {
        let after = Duration::from_millis(500) + (until - Duration::from_millis(500)).mul_f64(spread(n));
        let injection = Injection { fault: Fault::FlipsOnce, mapping, at: spread(n * 5 + 1), bit: (n % 8) as u8, after };
        let (status, output, changes) = damaged(command(), injection);
        assert_eq!(changes, 1, "{mode}: nothing was injected: {injection:?}, status {status}");
        let watched = share(&output);
        // Beside other work, sweeps take as long as the reading.
        assert!((0.4..=1.0).contains(&watched), "{mode}: {watched}");
        found += u32::from(status == 3);
        expected += watched;
        println!("{mode}: flip after {after:?}: status {status}, watched {watched:.3}");
    }
    println!("{mode}: {found} of {} flips found, {expected:.1} expected at least", injections());
    assert!(f64::from(found) >= expected - 1.0, "{mode}: {found} of {}", injections());
}

#[test]
fn checked_reads_find_bits_that_flip_once_as_often_as_the_result_says() {
    let line = "bandwidth --line check --mix all-reads --size 64M --time 2s --format json";
    finds_flips(
        "bandwidth --line check",
        64 * MIB,
        Duration::from_millis(1900),
        || memgauge(line),
        |output| {
            let report: Report = serde_json::from_slice(output).unwrap();
            report.results[0].evidence.integrity.as_ref().unwrap().watched.unwrap()
        },
    );
}

#[test]
fn the_drop_in_finds_bits_that_flip_once() {
    // The text of mlc does not say the share. It checks in the same way: less than a tenth of the time lies outside of it.
    let until = Duration::from_millis(1900);
    finds_flips("mlc --loaded_latency -I", 64 * MIB, until, || drop_in("-t2"), |_| 0.9);
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
            let injection = Injection { fault, mapping: 512 * MIB, at: spread(n * 7 + 3), bit: (n % 8) as u8, after };
            let within = format!(
                "scan --node 0 --size 512M --region 512M --passes 1 --integrity --patterns {PATTERNS} --within {SECONDS}s --format json"
            );
            let (status, output, changes) = damaged(memgauge(&within), injection);
            let report: Report = serde_json::from_slice(&output).unwrap();
            let integrity = report.results.iter().find_map(|m| m.evidence.integrity.as_ref()).unwrap();
            rates[0].push(integrity.compared.0 as f64 / 1e9 / report.timing.total_s);
            let mut other = Command::new("stressapptest");
            other.args(["-M", "512", "-s", &SECONDS.to_string()]).stdin(Stdio::null());
            let (other_status, other_output, other_changes) = damaged(other, injection);
            let other_text = String::from_utf8_lossy(&other_output).into_owned();
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
