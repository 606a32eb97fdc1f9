//! SIGKILL at random moments: no partial file, no changed register, and nothing left behind that the next run does not remove.
//!
//! `MEMGAUGE_KILLS` is the number of kills, `MEMGAUGE_SEED` repeats the moments of an earlier run.

use memgauge_model::random::{GOLDEN, split_mix};
use memgauge_testing::not_tested_in_part;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::support::registers::Registers;

use crate::support::{beside_another, program, simulated, temporary};

/// Kills in the usual run of the tests; a thousand take some minutes. Weights of interleaving are the kernel's alone, and applied in the lab.
const KILLS: u64 = 48;
/// How long a run waits for its start signal before it is killed, at most.
const WAITING: Duration = Duration::from_millis(200);

/// A command that writes, and what it writes.
struct Victim<'a> {
    name: &'static str,
    line: String,
    files: Vec<PathBuf>,
    registers: Option<&'a Registers>,
    /// It measures a simulated machine, and spends its time on what it writes.
    simulated: bool,
    /// A folder of results, which is made anew for each run.
    out: Option<PathBuf>,
    /// Within this time, it is killed.
    takes: Duration,
}

impl Victim<'_> {
    fn command(&self, tmp: &Path) -> Command {
        let mut command = match self.registers {
            _ if self.simulated => simulated::program("memgauge"),
            None => program(),
            Some(registers) => registers.program(),
        };
        if self.line.starts_with("mlc") {
            // Files in place of registers switch no prefetcher, which the drop-in would see.
            command.env("MEMGAUGE_PREFETCH_AS", "GenuineIntel,6,85,obeys");
        }
        let (own, another) = self.line.split_at(self.line.find(" -- ").unwrap_or(self.line.len()));
        command.args(own.split_whitespace()).env("TMPDIR", tmp).stdout(Stdio::null()).stderr(Stdio::null());
        for file in &self.files {
            command.arg("-o").arg(file);
        }
        if let Some(out) = &self.out {
            let _ = fs::remove_dir_all(out);
        }
        command.args(another.split_whitespace());
        command
    }

    /// Puts registers back that the run has left changed, as it may or must, and looks at them.
    fn restore(&self, initial: Option<&BTreeMap<u32, u64>>, what: &str) {
        let Some(registers) = self.registers else { return };
        let output = registers.program().args(["prefetch", "restore", "-q"]).output().unwrap();
        assert!(output.status.success(), "{what}: {output:?}");
        assert_eq!(Some(&registers.values()), initial, "{what}");
    }
}

/// A sequence of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        let number = split_mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        number % n
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
        // A run into a folder has one for each kind of result.
        if folder.join(&name).is_dir() {
            check_results(&folder.join(&name), what);
            continue;
        }
        let bytes = fs::read(folder.join(&name)).unwrap();
        let whole = match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
            // Also that of a comparison, and of advice.
            "json" => serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|value| value.is_object()),
            "svg" => bytes.ends_with(b"</svg>\n"),
            "html" => bytes.trim_ascii_end().ends_with(b"</html>"),
            "pdf" => bytes.trim_ascii_end().ends_with(b"%%EOF"),
            // The last chunk.
            "png" => bytes.len() > 12 && &bytes[bytes.len() - 8..bytes.len() - 4] == b"IEND",
            "txt" | "csv" | "dat" => bytes.ends_with(b"\n"),
            ending => ending.is_empty() && name == "lock",
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
    let registers = Registers::intel("kills");
    if registers.is_none() {
        not_tested_in_part!("registers: no FUSE file system can be mounted here");
    }
    let initial = registers.as_ref().map(Registers::values);
    let file = |name: &str| results.join(name);
    let short = "--size 1M --time 5ms -q";
    let victim = |name, line: String, files: &[&str]| Victim {
        name,
        line,
        files: files.iter().map(|name| file(name)).collect(),
        registers: None,
        simulated: false,
        out: None,
        takes: WAITING,
    };
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results/two-nodes.json");
    let (state, out, fleet) = (temporary("kills-state"), results.with_extension("out"), temporary("kills-fleet"));
    assert!(program().args(["fleet", "ingest", "-q"]).args([&fleet, &saved]).output().unwrap().status.success());
    let (saved, hosts) = (saved.display(), fleet.display());
    let mut victims = vec![
        victim("info", "info -q".into(), &["info.json"]),
        Victim { simulated: true, ..victim("curve", "loaded -q".into(), &["curve.json", "curve.svg", "curve.png", "curve.pdf"]) },
        victim("files", format!("bandwidth --width sse2 --mix all-reads {short} --memory-dir {}", memory.display()), &["files.json"]),
        Victim { simulated: true, ..victim("state", format!("quick -q --state {}", state.display()), &[]) },
        victim("compare", format!("compare -q {saved} {saved}"), &["compare.json", "compare.html", "compare.csv"]),
        victim("advise", format!("advise -q {saved}"), &["advise.json", "advise.txt"]),
        victim("outliers", format!("fleet outliers -q {hosts}"), &["outliers.json", "outliers.csv"]),
        victim("count", "count -q -- true".into(), &["count.json"]),
        victim("report", format!("report {saved}"), &["report.html"]),
        Victim {
            simulated: true,
            out: Some(out.clone()),
            ..victim("out", format!("pmem {} -q --time 60ms --out {}", memory.display(), out.display()), &[])
        },
    ];
    for (name, line) in [
        ("registers", format!("latency --prefetch off --order window-local {short}")),
        ("off", "prefetch off -q".to_owned()),
        ("on", "prefetch on -q".to_owned()),
        ("restore", "prefetch restore -q".to_owned()),
        ("mlc", "mlc --idle_latency -b2m -t0.02".to_owned()),
    ] {
        let own = format!("{name}.json");
        // The drop-in writes no file.
        let files: &[&str] = if name == "mlc" { &[] } else { &[&own] };
        victims.extend(registers.as_ref().map(|registers| Victim { registers: Some(registers), ..victim(name, line, files) }));
    }
    for victim in &mut victims {
        let begin = Instant::now();
        let output = victim.command(&tmp).output().unwrap();
        // A check of health, outliers and a comparison have verdicts of their own; a short check may have none.
        assert!(output.status.code().is_some_and(|code| code <= 4), "{}: {output:?}", victim.name);
        victim.takes = begin.elapsed();
        assert!(victim.files.iter().all(|file| file.exists()), "{}", victim.name);
        victim.restore(initial.as_ref(), victim.name);
    }
    victims.push(victim("signal", format!("bandwidth --width sse2 --mix all-reads {short} --start-signal {word}"), &["signal.json"]));

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
        let folders = [Some(&results), Some(&state), victim.out.as_ref()];
        folders.into_iter().flatten().filter(|folder| folder.exists()).for_each(|folder| check_results(folder, &what));
        assert!(names(&memory).is_empty() && names(&tmp).is_empty(), "{what}");
        victim.restore(initial.as_ref(), &what);
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
        victim.restore(initial.as_ref(), victim.name);
    }
    let mut expected: Vec<_> =
        victims.iter().flat_map(|v| &v.files).map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    expected.sort_unstable();
    assert_eq!(names(&results), expected);
    assert!(!names(&state).iter().any(|name| name.starts_with('.')), "{:?}", names(&state));
    assert!(!shared.exists(), "the start signal's word");
    [results, memory, tmp, state, out, fleet].into_iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
}
