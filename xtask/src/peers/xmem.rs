//! X-Mem: `-w` is KiB of one thread's working set, its rates are MiB/s. Its random order is a shuffle of all words of the working set and no
//! single cycle, so that its latencies at a size are those of the part that it happens to visit.

use anyhow::{Context, Result};

use super::command::Call;
use super::row::{Measure, Pages, Row};
use super::tool::{Found, Tool, Way, short};

pub(super) const TOOL: Tool = Tool { name: "X-Mem", files: &["xmem"], slow: None, version: None, prints_best: false, ways };

/// Its memory comes from the kernel in base pages, whatever malloc's settings are. Below one huge page that makes hardly any difference: the
/// first-level TLBs of today reach half as far.
const HUGE_PAGE: u64 = 2 << 20;

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let pages = if row.bytes < HUGE_PAGE { Pages::Huge } else { Pages::Base };
    let Some(program) = found.get("xmem").filter(|_| row.pages == pages) else { return Vec::new() };
    let (size, threads) = (format!("-w{}", row.bytes >> 10), format!("-j{}", row.cpus.len()));
    let throughput = |name: &str, which: &str, read| {
        let args = ["-t", &size, "-n1", &threads, "-u", "-c256", "-s", "-S1", which];
        vec![Way::new(name, Call::new(program, args).on(&row.cpus), read)]
    };
    match row.measure {
        Measure::RandomLatency => {
            vec![Way::new("-l", Call::new(program, ["-l", &size, "-n1", "-j1", "-u"]).on(&row.cpus), read_latency)]
        }
        Measure::Reads => throughput("-R", "-R", read_rate),
        Measure::Writes => throughput("-W", "-W", read_rate),
        _ => Vec::new(),
    }
}

/// The figure in front of `unit` in the line that sums up one benchmark's iterations.
fn summed_up(text: &str, unit: &str) -> Result<f64> {
    let line = text.lines().rev().find(|line| line.trim_start().starts_with("Median:") && line.contains(unit));
    let value = line.and_then(|line| line.split_once(':')?.1.split_whitespace().next()?.parse().ok());
    value.with_context(|| format!("no median in {unit} in: {}", short(text)))
}

fn read_latency(text: &str, _: &Row) -> Result<f64> {
    summed_up(text, "ns/access")
}

fn read_rate(text: &str, _: &Row) -> Result<f64> {
    Ok(summed_up(text, "MB/s")? * 1_048_576.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row(measure: Measure) -> Row {
        Row { measure, bytes: 512 << 10, cpus: IdSet::one(0), pages: Pages::Huge }
    }

    #[test]
    fn medians() {
        let text = "Iter #   0:    4.279 ns/access @    0.000 MB/s mean self-imposed load\nMean: 4.3 ns/access and 0 MB/s mean imposed load (not necessarily matched)\nMedian: 4.27941 ns/access\nMax: 4.3 ns/access\n";
        assert_eq!(read_latency(text, &row(Measure::RandomLatency)).unwrap(), 4.27941);
        assert!((read_rate("Mean: 1 MB/s\nMedian: 264991 MB/s\n", &row(Measure::Reads)).unwrap() - 277.863_202).abs() < 1e-5);
        assert!(read_rate(text, &row(Measure::Reads)).is_err());
    }

    #[test]
    fn commands() {
        let found = Found { files: [("xmem", "/x/xmem".into())].into(), ..Found::default() };
        let line = |measure| ways(&row(measure), &found)[0].call.line();
        assert!(line(Measure::RandomLatency).ends_with("taskset -c 0 xmem -l -w512 -n1 -j1 -u"));
        assert!(line(Measure::Writes).ends_with("taskset -c 0 xmem -t -w512 -n1 -j1 -u -c256 -s -S1 -W"));
        assert!(ways(&row(Measure::Triad), &found).is_empty());
        let large = Row { bytes: 512 << 20, ..row(Measure::Reads) };
        assert!(ways(&large, &found).is_empty());
        assert_eq!(ways(&Row { pages: Pages::Base, ..large }, &found).len(), 1);
    }
}
