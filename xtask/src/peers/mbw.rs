//! mbw: copies between two arrays of whole MiB by libc or word by word. It prints MiB/s and counts a byte copied once.
//!
//! Its third way, block by block (`-t2`), does not take part: version 1.2.2 never moves on in the source, so that all but its first block
//! of 256 KiB come from the cache, and what it prints is no copy from memory.

use anyhow::Result;

use super::command::Call;
use super::row::{Measure, Pages, Row};
use super::tool::{Found, Tool, Way, number_after};

pub(super) const TOOL: Tool = Tool { name: "mbw", files: &["mbw"], slow: None, version: None, prints_best: false, ways };

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let mib = (row.bytes / 2) >> 20;
    if row.cpus.len() > 1 || mib == 0 || row.pages == Pages::Base || !matches!(row.measure, Measure::Copy | Measure::CopyNt) {
        return Vec::new();
    }
    let Some(program) = found.get("mbw") else { return Vec::new() };
    // A few milliseconds a pass in a cache: more of them.
    let passes = (1024 / mib).clamp(4, 200).to_string();
    [("memcpy", "-t0"), ("dumb", "-t1")]
        .map(|(name, which)| {
            let call = Call::new(program, ["-q", which, "-n", &passes, &mib.to_string()]).on(&row.cpus).huge_malloc();
            Way::new(name, call, read)
        })
        .to_vec()
}

fn read(text: &str, _: &Row) -> Result<f64> {
    let average = text.lines().find(|line| line.starts_with("AVG")).unwrap_or_default();
    Ok(2.0 * number_after(average, "Copy:")? * 1_048_576.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row() -> Row {
        Row { measure: Measure::Copy, bytes: 512 << 20, cpus: IdSet::one(0), pages: Pages::Huge }
    }

    #[test]
    fn both_directions_count() {
        let text = "0\tMethod: MEMCPY\tElapsed: 0.10375\tMiB: 256.00000\tCopy: 2467.541 MiB/s\nAVG\tMethod: MEMCPY\tElapsed: 0.08276\tMiB: 256.00000\tCopy: 3093.357 MiB/s\n";
        assert!((read(text, &row()).unwrap() - 6.487_240).abs() < 1e-6);
        assert!(read("mbw: out of memory", &row()).is_err());
    }

    #[test]
    fn two_arrays_of_half_the_size() {
        let found = Found { files: [("mbw", "/usr/bin/mbw".into())].into(), ..Found::default() };
        assert!(ways(&row(), &found)[0].call.line().ends_with("taskset -c 0 mbw -q -t0 -n 4 256"));
        assert!(ways(&Row { bytes: 16 << 10, ..row() }, &found).is_empty());
        assert!(ways(&Row { cpus: "0-1".parse().unwrap(), ..row() }, &found).is_empty());
    }
}
