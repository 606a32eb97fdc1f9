//! sysbench's memory test: words read from, or written to, each thread's own block (`scope=local`), again and again. It prints MiB/s.
//! A block is one event of its framework, so that small blocks measure the framework.

use anyhow::Result;

use super::command::Call;
use super::row::{Measure, Pages, Row};
use super::tool::{Found, Tool, Way, number_after};

pub(super) const TOOL: Tool =
    Tool { name: "sysbench", files: &["sysbench"], slow: None, version: Some((&["--version"], "sysbench")), prints_best: false, ways };

/// From this size on an event's own cost is below a percent.
const LEAST: u64 = 1 << 20;

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let operation = match row.measure {
        Measure::Reads => "read",
        Measure::Writes => "write",
        _ => return Vec::new(),
    };
    let Some(program) = found.get("sysbench").filter(|_| row.pages == Pages::Huge && row.bytes >= LEAST) else { return Vec::new() };
    let args = [
        "memory".to_owned(),
        format!("--memory-block-size={}K", row.bytes >> 10),
        "--memory-total-size=1000T".to_owned(),
        "--memory-scope=local".to_owned(),
        format!("--memory-oper={operation}"),
        format!("--threads={}", row.cpus.len()),
        "--time=1".to_owned(),
        "run".to_owned(),
    ];
    vec![Way::new(operation, Call::new(program, args).on(&row.cpus).huge_malloc(), read)]
}

fn read(text: &str, _: &Row) -> Result<f64> {
    Ok(number_after(text, "MiB transferred")? * 1_048_576.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: 256 << 20, cpus: "0-1".parse().unwrap(), pages: Pages::Huge }
    }

    #[test]
    fn its_rate() {
        let text = "Total operations: 29 (   28.43 per second)\n\n7424.00 MiB transferred (7279.32 MiB/sec)\n";
        assert!((read(text, &row(Measure::Reads)).unwrap() - 7.632_920).abs() < 1e-5);
        assert!(read("FATAL: Invalid value", &row(Measure::Reads)).is_err());
    }

    #[test]
    fn blocks_that_are_no_framework() {
        let found = Found { files: [("sysbench", "/usr/bin/sysbench".into())].into(), ..Found::default() };
        let line = ways(&row(Measure::Writes), &found)[0].call.line();
        assert!(line.contains("--memory-block-size=262144K") && line.contains("--memory-oper=write --threads=2"), "{line}");
        assert!(ways(&Row { bytes: 16 << 10, ..row(Measure::Writes) }, &found).is_empty());
        assert!(ways(&row(Measure::Copy), &found).is_empty());
    }
}
