//! The same measurements by the program for this system and by the one for Windows under Wine, in turn.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, ensure};
use memgauge_model::stats::median;
use serde_json::Value;

use crate::folders::{project_folder, target_folder};
use crate::programs::run;
use crate::wine::{TARGET, Wine};

/// What a row measures: a program and its arguments. Pages are of 4 KiB on both sides, because Wine has no others.
const ROWS: &[(&str, &str)] = &[
    ("memgauge", "chase 16k --pages 4k --cpu 0 --format json"),
    ("memgauge", "chase 256k --pages 4k --cpu 0 --format json"),
    ("memgauge", "stream 16k --pages 4k --cpu 0 --format json"),
    ("memgauge", "latency --cpu 0 --pages 4k --size 256m --time 1s --format json"),
    ("memgauge", "bandwidth --pages 4k --size 128m --mix all-reads --time 1s --format json"),
    ("memgauge", "bandwidth --pages 4k --size 128m --mix copy --time 1s --format json"),
    ("memgauge", "bandwidth --pages 4k --size 128m --mix triad --time 1s --format json"),
    ("memgauge", "bandwidth --pages 4k --size 128m --mix nt-write --time 1s --format json"),
    ("memgauge", "bandwidth --pages 4k --size 128m --mix fill --time 1s --format json"),
    ("memgauge", "c2c --pages 4k --format json"),
    ("mlc", "--idle_latency -c0 -b256m -t1"),
];

/// What is written of each side.
const TRANSCRIPTS: &[(&str, &str)] = &[("memgauge", ""), ("mlc", "")];

/// The two sides: what starts a program, and where they are.
struct Sides<'a> {
    wine: &'a Wine,
    native: PathBuf,
    windows: PathBuf,
}

impl Sides<'_> {
    /// What the program prints.
    fn run(&self, windows: bool, program: &str, line: &str) -> Result<String> {
        let mut command = if windows {
            let mut command = Command::new(&self.wine.program);
            self.wine.set(&mut command).arg(self.windows.join(format!("{program}.exe")));
            command
        } else {
            Command::new(self.native.join(program))
        };
        let output = command.args(line.split_whitespace()).stdin(Stdio::null()).output()?;
        // A result that is missing some of its cells says so itself.
        let measured = output.status.code().is_some_and(|status| status <= 1);
        ensure!(measured, "{program} {line}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Builds both sides and compares them `rounds` times, or writes what they print into a folder, or both.
///
/// # Errors
/// When a program cannot be built, does not run, or prints no number.
pub(super) fn compare(wine: &Wine, rounds: Option<u32>, transcript: Option<&Path>, profile: &str) -> Result<()> {
    for target in [&[] as &[&str], &["--target", TARGET]] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--bins", "-p", "memgauge", "--profile", profile]).args(target).current_dir(project_folder());
        run(cargo.env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    }
    let folder = if profile == "dev" { "debug" } else { profile };
    let sides = Sides { wine, native: target_folder().join(folder), windows: target_folder().join(TARGET).join(folder) };
    if let Some(folder) = transcript {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (program, line) in TRANSCRIPTS {
            for (windows, side) in [(false, "native"), (true, "wine")] {
                let file = folder.join(format!("{program}-{side}.txt"));
                fs::write(&file, sides.run(windows, program, line)?).with_context(|| format!("cannot write {}", file.display()))?;
                println!("{}", file.display());
            }
        }
    }
    if let Some(rounds) = rounds {
        println!("{:<84} {:>10} {:>10} {:>7}", "command, median of runs in turn", "native", "Wine", "ratio");
        for (program, line) in ROWS {
            let (native, windows) = row(&sides, program, line, rounds)?;
            let (Some(native), Some(windows)) = (median(&native), median(&windows)) else { continue };
            let shown = format!("{program} {}", line.trim_end_matches(" --format json"));
            println!("{shown:<84} {native:>10.3} {windows:>10.3} {:>7.3}", windows / native);
        }
    }
    Ok(())
}

/// The values of both sides. The first of a round is the second of the next, so that a drift of the machine does not look like a difference.
fn row(sides: &Sides<'_>, program: &str, line: &str, rounds: u32) -> Result<(Vec<f64>, Vec<f64>)> {
    let (mut native, mut windows) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for second in [false, true] {
            let is_windows = second != (round % 2 == 1);
            let printed = sides.run(is_windows, program, line)?;
            let value = value(&printed).with_context(|| format!("{program} {line}"))?;
            let side = if is_windows { &mut windows } else { &mut native };
            side.push(value);
        }
    }
    Ok((native, windows))
}

/// The first value of a result in JSON, or the nanoseconds of mlc's line.
fn value(printed: &str) -> Result<f64> {
    if let Ok(report) = serde_json::from_str::<Value>(printed) {
        let results = report["results"].as_array().map_or(&[] as &[_], Vec::as_slice);
        return results.iter().find_map(|m| m["value"].as_f64()).ok_or_else(|| anyhow!("no result has a value"));
    }
    let words: Vec<&str> = printed.split_whitespace().collect();
    let at = words.windows(2).find(|pair| pair[1] == "ns)").map(|pair| pair[0]);
    at.and_then(|number| number.parse().ok()).ok_or_else(|| anyhow!("no number is in: {printed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_results_and_in_what_mlc_prints() {
        let report = r#"{"results": [{"value": null}, {"value": 125.5}]}"#;
        assert_eq!(value(report).unwrap(), 125.5);
        assert_eq!(
            value("Using buffer size of 256.000MiB\nEach iteration took 302.9 base frequency clocks (\t116.5\tns)\n").unwrap(),
            116.5
        );
        assert!(value("{\"results\": []}").is_err() && value("nothing").is_err());
    }
}
