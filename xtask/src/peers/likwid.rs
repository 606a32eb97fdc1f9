//! likwid-bench: kernels by instruction set. `-w N:SIZE:n` is all streams of all threads together, on the first `n` CPUs of the node; its
//! kB are 1000 bytes. It counts what loops load and store, not what stores read first.

use anyhow::Result;

use super::command::Call;
use super::row::{Measure, Pages, Row};
use super::tool::{Found, Tool, Way, number_after};

pub(super) const TOOL: Tool =
    Tool { name: "likwid-bench", files: &["likwid-bench"], slow: None, version: Some((&["-v"], "Version")), prints_best: false, ways };

/// Instruction sets whose kernels are tried; the scalar ones are never the fastest.
const SETS: [&str; 4] = ["sse", "avx", "avx512", "neon"];
/// Bytes that a run moves: some tenths of a second from memory, and from a cache several times faster.
const WORK_MEMORY: u64 = 12 << 30;
const WORK_CACHE: u64 = 96 << 30;

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let stem = match row.measure {
        Measure::Reads => "load",
        Measure::Copy => "copy",
        Measure::CopyNt => "copy_mem",
        Measure::Triad => "stream",
        Measure::TriadNt => "stream_mem",
        Measure::Writes => "store",
        Measure::WritesNt => "store_mem",
        _ => return Vec::new(),
    };
    let Some(program) = found.get("likwid-bench").filter(|_| row.pages == Pages::Huge) else { return Vec::new() };
    let n = row.cpus.len();
    let work = if row.bytes > 8 << 20 { WORK_MEMORY } else { WORK_CACHE };
    let iterations = (work / row.bytes).max(10).to_string();
    let size = format!("N:{}kB:{n}", row.total() / 1000);
    let kernels = SETS.iter().map(|set| format!("{stem}_{set}")).filter(|name| found.likwid_kernels.contains(name));
    kernels
        .map(|kernel| {
            let call = Call::new(program, ["-t", &kernel, "-w", &size, "-i", &iterations]).huge_malloc();
            Way::new(kernel, call, read)
        })
        .collect()
}

/// Names of the kernels that `likwid-bench -a` lists.
pub(super) fn kernels(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| Some(line.split_once(" - ")?.0.trim().to_owned())).collect()
}

/// `MByte/s`, decimal.
fn read(text: &str, _: &Row) -> Result<f64> {
    Ok(number_after(text, "MByte/s")? / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: 256 << 20, cpus: "0-1".parse().unwrap(), pages: Pages::Huge }
    }

    fn found() -> Found {
        let listed = "load - Double-precision load, only scalar operations\nload_avx - Double-precision load, optimized for AVX\nload_avx512 - Double-precision load, optimized for AVX-\n";
        Found { files: [("likwid-bench", "/usr/bin/likwid-bench".into())].into(), likwid_kernels: kernels(listed), ..Found::default() }
    }

    #[test]
    fn a_way_for_each_instruction_set_that_it_has() {
        let ways = ways(&row(Measure::Reads), &found());
        let names: Vec<&str> = ways.iter().map(|w| w.name.as_str()).collect();
        assert_eq!(names, ["load_avx", "load_avx512"]);
        assert!(ways[0].call.line().ends_with("likwid-bench -t load_avx -w N:536870kB:2 -i 48"), "{}", ways[0].call.line());
        assert!(super::ways(&row(Measure::Fill), &found()).is_empty());
        assert!(super::ways(&Row { pages: Pages::Base, ..row(Measure::Reads) }, &found()).is_empty());
    }

    #[test]
    fn its_rate() {
        let text = "Data volume (Byte):\t67108864000\nMByte/s:\t\t60200.87\nCycles per update:\t0.344528\nLoads per update:\t1\n";
        assert_eq!(read(text, &Row { cpus: IdSet::one(0), ..row(Measure::Reads) }).unwrap(), 60.20087);
        assert!(read("ERROR - Cannot allocate", &row(Measure::Reads)).is_err());
    }
}
