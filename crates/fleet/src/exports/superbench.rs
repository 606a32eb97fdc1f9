//! SuperBench (<https://github.com/microsoft/superbenchmark>): a line for each node as `results-summary.jsonl` has it, and the baseline that
//! `sb result diagnosis` compares nodes with. A metric is `memgauge-EXPERIMENT/METRIC_UNIT_COLUMN=VALUE…`.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::columns::COLUMNS;
use memgauge_model::experiment::{Metric, Unit};
use memgauge_model::printable::escape_json;
use memgauge_model::stats::median;
use serde_json::{Map, json};

use super::run::{ExportError, ExportRun, is_usable, names};
use crate::row::Cell;

/// A line for each run. Values that were not measured or are unreliable are absent; the `return_code` of their experiment is then 1,
/// which the rule `failure_check` finds.
///
/// # Errors
/// When the JSON writer refuses something.
pub fn superbench(runs: &[ExportRun]) -> Result<Vec<u8>, ExportError> {
    let mut text = Vec::new();
    for (run, name) in runs.iter().zip(names(runs)) {
        let mut line = Map::new();
        line.insert("node".into(), json!(name));
        let (mut codes, mut values) = (BTreeMap::new(), BTreeMap::new());
        for row in &run.rows {
            let code = codes.entry(format!("{}/return_code", benchmark(&row.cell))).or_insert(0);
            match row.value.filter(|_| is_usable(row)) {
                Some(value) => drop(values.insert(metric(&row.cell), value)),
                None => *code = 1,
            }
        }
        line.extend(codes.into_iter().map(|(name, code)| (name, json!(code))));
        line.extend(values.into_iter().map(|(name, value)| (name, json!(value))));
        text.extend(escape_json(&serde_json::to_string(&line)?).bytes());
        text.push(b'\n');
    }
    Ok(text)
}

/// The median of each metric over the runs, which have to be of one kind of hardware.
///
/// # Errors
/// When the runs are of several kinds.
pub fn superbench_baseline(runs: &[ExportRun]) -> Result<Vec<u8>, ExportError> {
    let kinds: BTreeSet<String> = runs.iter().map(ExportRun::kind).collect();
    if kinds.len() > 1 {
        return Err(ExportError::SeveralKinds(kinds.into_iter().collect()));
    }
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut baseline = Map::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        baseline.insert(format!("{}/return_code", benchmark(&row.cell)), json!(0));
        if let Some(value) = row.value.filter(|_| is_usable(row)) {
            values.entry(metric(&row.cell)).or_default().push(value);
        }
    }
    baseline.extend(values.into_iter().filter_map(|(name, values)| Some((name, json!(median(&values)?)))));
    Ok(memgauge_render::json_text(&baseline)?)
}

fn benchmark(cell: &Cell) -> String {
    format!("memgauge-{}", cell.experiment.name())
}

/// The name of a metric. SuperBench gives `/` and `:` a meaning, and rules are regular expressions.
fn metric(cell: &Cell) -> String {
    let unit = match cell.unit {
        Unit::Nanoseconds => "ns",
        Unit::GigabytesPerSecond => "gbs",
    };
    let kind = match cell.metric {
        Metric::Latency => "latency",
        Metric::Bandwidth => "bandwidth",
    };
    let mut name = format!("{kind}_{unit}");
    for (column, value) in COLUMNS.iter().filter_map(|column| Some((column.name, column.value(&cell.at)?))) {
        name.extend(["_", column, "="]);
        name.extend(value.to_string().chars().map(|c| match c {
            ':' => '-',
            c if c.is_ascii_alphanumeric() || ".,=-".contains(c) => c,
            _ => '_',
        }));
    }
    format!("{}/{name}", benchmark(cell))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use memgauge_model::experiment::{Coordinates, Experiment};
    use memgauge_model::result::QualityLevel;

    use super::*;
    use crate::row::{Fingerprint, HostRun, Row};

    fn run(host: &str, nodes: u32, values: &[(Option<f64>, QualityLevel)]) -> ExportRun {
        let fingerprint = Fingerprint { nodes, ..Fingerprint::default() };
        let run = Arc::new(HostRun {
            host: host.into(),
            machine_id_hash: None,
            run_id: host.into(),
            started: String::new(),
            labels: BTreeMap::new(),
            complete: true,
            fingerprint,
        });
        let row = |(i, (value, quality)): (usize, &(Option<f64>, QualityLevel))| Row {
            run: run.clone(),
            cell: Arc::new(Cell {
                experiment: Experiment::Bandwidth,
                at: Coordinates {
                    cpus: Some("0-1".parse().unwrap()),
                    mix: Some(["all-reads", "2:1", "3:1"][i].parse().unwrap()),
                    ..Coordinates::default()
                },
                metric: Metric::Bandwidth,
                unit: Unit::GigabytesPerSecond,
            }),
            value: *value,
            interval: None,
            pages: None,
            volatile: None,
            quality: value.map(|_| *quality),
            not_measured: value.is_none().then(|| "no-memory".into()),
        };
        let rows = values.iter().enumerate().map(row).collect();
        ExportRun { run: run.clone(), memgauge: "0.1.0".into(), command: String::new(), health: None, findings: Vec::new(), rows }
    }

    #[test]
    fn nodes_have_a_line_each_and_what_is_missing_is_a_return_code() {
        use QualityLevel::{Good, Unreliable};
        let runs = [
            run("n1", 2, &[(Some(100.0), Good), (Some(80.0), Good)]),
            run("n2", 2, &[(Some(102.0), Good), (None, Good)]),
            run("n3", 2, &[(Some(101.0), Good), (Some(20.0), Unreliable)]),
        ];
        let text = String::from_utf8(superbench(&runs).unwrap()).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let reads = "memgauge-bandwidth/bandwidth_gbs_cpus=0-1_mix=all-reads";
        let mixed = "memgauge-bandwidth/bandwidth_gbs_cpus=0-1_mix=2-1";
        assert_eq!(lines[0], json!({"node": "n1", "memgauge-bandwidth/return_code": 0, reads: 100.0, mixed: 80.0}));
        assert_eq!(lines[1], json!({"node": "n2", "memgauge-bandwidth/return_code": 1, reads: 102.0}));
        assert_eq!(lines[2], json!({"node": "n3", "memgauge-bandwidth/return_code": 1, reads: 101.0}));
        let baseline: serde_json::Value = serde_json::from_slice(&superbench_baseline(&runs).unwrap()).unwrap();
        assert_eq!(baseline, json!({"memgauge-bandwidth/return_code": 0, reads: 101.0, mixed: 80.0}));
    }

    #[test]
    fn a_baseline_is_of_one_kind_of_hardware() {
        let runs = [run("n1", 2, &[]), run("n2", 4, &[])];
        let refused = superbench_baseline(&runs).unwrap_err().to_string();
        assert!(refused.contains("--fingerprint") && refused.contains("unknown-4n-"), "{refused}");
    }
}
