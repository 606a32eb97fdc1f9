//! SIGKILL at random moments: no partial file, no changed register, and nothing left behind that the next run does not remove.
//!
//! `MEMGAUGE_KILLS` is the number of kills, `MEMGAUGE_SEED` repeats the moments of an earlier run.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is the failure report of its test, and the seed must be seen")]

#[path = "support/registers.rs"]
#[allow(dead_code, reason = "no test program needs all of it")]
mod registers;
mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use memgauge_core::result::Report;
use registers::Registers;

use support::{beside_another, program, temporary};

/// Kills in the usual run of the tests; a thousand take some minutes.
const KILLS: u64 = 30;
/// How long a run waits for its start signal before it is killed, at most.
const WAITING: Duration = Duration::from_millis(200);

/// A command that writes, and what it writes.
struct Victim<'a> {
    name: &'static str,
    line: String,
    files: Vec<PathBuf>,
    registers: Option<&'a Registers>,
    /// Within this time, it is killed.
    takes: Duration,
}

impl Victim<'_> {
    fn command(&self, tmp: &Path) -> Command {
        let mut command = self.registers.map_or_else(program, Registers::program);
        command.args(self.line.split_whitespace()).env("TMPDIR", tmp).stderr(Stdio::null());
        for file in &self.files {
            command.arg("-o").arg(file);
        }
        command
    }
}

/// The SplitMix64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) % n
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Every result is whole, and what is beside it has a name by which a later run knows it.
fn check_results(folder: &Path, what: &str) {
    for name in names(folder) {
        let temporary = name.starts_with('.') && name.contains(".memgauge-") && name.ends_with(".tmp");
        let bytes = fs::read(folder.join(&name)).unwrap();
        let whole = match name.rsplit_once('.').unwrap().1 {
            "json" => serde_json::from_slice::<Report>(&bytes).is_ok(),
            _ => bytes.ends_with(b"</svg>\n"),
        };
        assert!(temporary || whole, "{what}: {name} has {} bytes", bytes.len());
    }
}

#[test]
fn kills_leave_nothing_partial_and_nothing_for_ever() {
    let _permit = beside_another();
    let seed = number("MEMGAUGE_SEED").unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64);
    let kills = number("MEMGAUGE_KILLS").unwrap_or(KILLS);
    eprintln!("MEMGAUGE_SEED={seed} MEMGAUGE_KILLS={kills}");
    let (results, memory, tmp) = (temporary("kills"), temporary("kills-memory"), temporary("kills-tmp"));
    let word = format!("memgauge-kills-{}", std::process::id());
    let shared = Path::new("/dev/shm").join(&word);
    // Where no file system can stand in for the registers, the rest is tested.
    let registers = Registers::intel("kills");
    let initial = registers.as_ref().map(Registers::values);
    let file = |name: &str| results.join(name);
    let short = "--size 1M --time 20ms -q";
    let victim = |name, line: String, files: &[&str]| Victim {
        name,
        line,
        files: files.iter().map(|name| file(name)).collect(),
        registers: None,
        takes: WAITING,
    };
    let mut victims = vec![
        victim("info", "info -q".into(), &["info.json"]),
        victim("latency", format!("latency {short}"), &["latency.json", "latency.svg"]),
        victim("files", format!("bandwidth --mix all-reads {short} --memory-dir {}", memory.display()), &["files.json"]),
    ];
    victims.extend(registers.as_ref().map(|registers| Victim {
        registers: Some(registers),
        ..victim("registers", format!("latency --prefetch off {short}"), &["registers.json"])
    }));
    for victim in &mut victims {
        let begin = Instant::now();
        let output = victim.command(&tmp).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code <= 1), "{}: {output:?}", victim.name);
        victim.takes = begin.elapsed();
    }
    victims.push(victim("signal", format!("bandwidth --mix all-reads {short} --start-signal {word}"), &["signal.json"]));

    let mut random = Random(seed);
    let mut ended = 0;
    for _ in 0..kills {
        let victim = &victims[random.below(victims.len() as u64) as usize];
        let moment = Duration::from_nanos(random.below(victim.takes.as_nanos() as u64));
        let mut child = victim.command(&tmp).spawn().unwrap();
        std::thread::sleep(moment / 2);
        if let Ok(word) = fs::OpenOptions::new().write(true).open(&shared) {
            word.write_all_at(&1u32.to_ne_bytes(), 0).unwrap();
        }
        std::thread::sleep(moment / 2);
        child.kill().unwrap();
        ended += u64::from(child.wait().unwrap().code().is_some());
        let what = format!("{} after {moment:?}, MEMGAUGE_SEED={seed}", victim.name);
        check_results(&results, &what);
        assert!(names(&memory).is_empty() && names(&tmp).is_empty(), "{what}");
        if let Some(registers) = victim.registers {
            let output = registers.program().args(["prefetch", "restore", "-q"]).output().unwrap();
            assert!(output.status.success(), "{what}: {output:?}");
            assert_eq!(Some(registers.values()), initial, "{what}");
        }
    }
    assert!(ended < kills, "no run was killed before its end");

    // The next runs remove what is left.
    for victim in &victims {
        let mut child = victim.command(&tmp).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if let Ok(word) = fs::OpenOptions::new().write(true).open(&shared) {
                // The run may end, and remove the word, at any time.
                let _ = word.write_all_at(&1u32.to_ne_bytes(), 0);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let mut expected: Vec<_> =
        victims.iter().flat_map(|v| &v.files).map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    expected.sort_unstable();
    assert_eq!(names(&results), expected);
    assert!(!shared.exists(), "the start signal's word");
    [results, memory, tmp].into_iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
}
