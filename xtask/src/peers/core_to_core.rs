//! core-to-core-latency: a compare-and-swap that two cores win in turn on one line; half of a round trip. Another quantity than the fetch of
//! a modified line, which memgauge measures.

use anyhow::{Result, anyhow};

use super::command::Call;
use super::row::{Measure, Row};
use super::tool::{Found, Tool, Way, short};

pub(super) const TOOL: Tool =
    Tool { name: "core-to-core-latency", files: &["core-to-core-latency"], slow: None, version: None, prints_best: false, ways };

fn ways(row: &Row, found: &Found) -> Vec<Way> {
    let Some(program) = found.get("core-to-core-latency").filter(|_| row.measure == Measure::HandOff) else { return Vec::new() };
    let pair: Vec<String> = row.cpus.iter().map(|cpu| cpu.to_string()).collect();
    let call = Call::new(program, ["1000", "300", "-b", "1", "--csv", "-c", &pair.join(",")]);
    vec![Way::new("compare-and-swap", call, read)]
}

/// The one number of the matrix that `--csv` prints for two cores.
fn read(text: &str, _: &Row) -> Result<f64> {
    let field = text.lines().filter(|line| line.contains(',')).flat_map(|line| line.split(',')).find_map(|f| f.trim().parse().ok());
    field.ok_or_else(|| anyhow!("no number in: {}", short(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::row::Pages;

    #[test]
    fn one_pair() {
        let row = Row { measure: Measure::HandOff, bytes: 0, cpus: "0-1".parse().unwrap(), pages: Pages::Huge };
        let found = Found { files: [("core-to-core-latency", "/x/core-to-core-latency".into())].into(), ..Found::default() };
        assert_eq!(ways(&row, &found)[0].call.line(), "core-to-core-latency 1000 300 -b 1 --csv -c 0,1");
        assert_eq!(read(",\n1212.9924500000002,\n\nCPU: AMD EPYC\nNum cores: 2\n", &row).unwrap(), 1_212.992_450_000_000_2);
        assert!(read("thread 'main' panicked", &row).is_err());
    }
}
