//! lmbench's bw_mem and lat_mem_rd. Their own calibration does not end on a machine that is busy, so its results are given to them
//! (`ENOUGH`, `TIMING_O`, `LOOP_O`): the time of a measurement in microseconds, and no overhead, which is nothing beside it.
//! Both write to standard error; megabytes are decimal; a byte copied counts once.

use anyhow::{Context, Result};

use super::command::Call;
use super::row::{Measure, Pages, Row, STRIDE};
use super::tool::{Found, Tool, Way, short};

pub(super) const TOOL: Tool = Tool {
    name: "lmbench",
    files: &["bw_mem", "lat_mem_rd"],
    slow: Some("lat_mem_rd measures every size up to the one asked for, some hundred of them, and has no other way"),
    prints_best: false,
    version: None,
    ways,
};

fn calibrated(call: Call, microseconds: &str) -> Call {
    call.env("ENOUGH", microseconds).env("TIMING_O", "0").env("LOOP_O", "0").huge_malloc()
}

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    if row.pages == Pages::Base {
        return Vec::new();
    }
    let (operations, arrays): (&[&str], u64) = match row.measure {
        Measure::RandomLatency => {
            let Some(program) = found.get("lat_mem_rd") else { return Vec::new() };
            let mib = (row.bytes >> 20).max(1).to_string();
            let call = Call::new(program, ["-W", "0", "-N", "1", "-t", &mib, &STRIDE.to_string()]).on(&row.cpus);
            return vec![Way::new("lat_mem_rd -t", calibrated(call, "10000"), read_latency)];
        }
        // `rd` and `wr` touch one word of four and count them all: they would be four times too fast in a first-level cache.
        Measure::Reads => (&["frd"], 1),
        Measure::Writes => (&["fwr"], 1),
        Measure::Fill => (&["bzero"], 1),
        Measure::Copy => (&["fcp", "bcopy"], 2),
        Measure::CopyNt => (&["bcopy"], 2),
        _ => return Vec::new(),
    };
    let Some(program) = found.get("bw_mem") else { return Vec::new() };
    let way = |operation: &&str| {
        let (size, threads) = ((row.bytes / arrays).to_string(), row.cpus.len().to_string());
        let call = Call::new(program, ["-W", "0", "-N", "3", "-P", &threads, &size, operation]).on(&row.cpus);
        let read = if arrays == 2 { read_copy } else { read_rate };
        Way::new(format!("bw_mem {operation}"), calibrated(call, "100000"), read)
    };
    operations.iter().map(way).collect()
}

/// `MEGABYTES RATE`: the last line of two numbers.
fn read_rate(text: &str, _: &Row) -> Result<f64> {
    Ok(pairs(text).last().with_context(|| format!("no rate in: {}", short(text)))?.1 / 1e3)
}

fn read_copy(text: &str, row: &Row) -> Result<f64> {
    Ok(2.0 * read_rate(text, row)?)
}

/// `MIB NANOSECONDS` for every size: that of the size nearest to the row's, if it is within a quarter of it.
fn read_latency(text: &str, row: &Row) -> Result<f64> {
    let wanted = row.bytes as f64 / 1_048_576.0;
    let distance = |size: f64| (size / wanted).ln().abs();
    let nearest = pairs(text).into_iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    let near = nearest.filter(|(size, _)| distance(*size) < 1.25_f64.ln());
    Ok(near.with_context(|| format!("no latency at {wanted} MiB in: {}", short(text)))?.1)
}

/// Lines that are two numbers.
fn pairs(text: &str) -> Vec<(f64, f64)> {
    let pair = |line: &str| {
        let numbers: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        (line.split_whitespace().count() == 2 && numbers.len() == 2).then(|| (numbers[0], numbers[1]))
    };
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memgauge_core::units::IdSet;

    fn row(measure: Measure, bytes: u64) -> Row {
        Row { measure, bytes, cpus: IdSet::one(0), pages: Pages::Huge }
    }

    #[test]
    fn rates_are_decimal_and_copies_count_once() {
        assert_eq!(read_rate("67.11 22800.50\n", &row(Measure::Reads, 64 << 20)).unwrap(), 22.8005);
        assert_eq!(read_copy("0.016384 90000.00\n", &row(Measure::Copy, 32 << 10)).unwrap(), 180.0);
        assert!(read_rate("usage: bw_mem [-P]", &row(Measure::Reads, 1)).is_err());
    }

    #[test]
    fn the_size_asked_for_of_many() {
        let text = "\"stride=128\n0.00049 1.101\n0.01562 1.104\n0.50000 3.921\n4.00000 12.101\n";
        assert_eq!(read_latency(text, &row(Measure::RandomLatency, 16 << 10)).unwrap(), 1.104);
        assert_eq!(read_latency(text, &row(Measure::RandomLatency, 4 << 20)).unwrap(), 12.101);
        assert!(read_latency(text, &row(Measure::RandomLatency, 512 << 20)).is_err());
    }

    #[test]
    fn commands() {
        let found = Found { files: [("bw_mem", "/x/bw_mem".into()), ("lat_mem_rd", "/x/lat_mem_rd".into())].into(), ..Found::default() };
        let copy = ways(&row(Measure::Copy, 32 << 10), &found);
        assert!(copy[1].call.line().ends_with("taskset -c 0 bw_mem -W 0 -N 3 -P 1 16384 bcopy"), "{}", copy[1].call.line());
        let latency = ways(&row(Measure::RandomLatency, 512 << 20), &found);
        assert!(latency[0].call.line().ends_with("lat_mem_rd -W 0 -N 1 -t 512 128"), "{}", latency[0].call.line());
        assert!(ways(&row(Measure::WritesNt, 512 << 20), &found).is_empty());
    }
}
