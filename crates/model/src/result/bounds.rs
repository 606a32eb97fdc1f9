//! Bounds of every result, whoever wrote it: of the texts that stand beside each value, and of the values themselves.

use super::Report;
use crate::estimate::{Estimate, is_possible, is_possible_end};

/// Bytes of an ID or a name of a host. A hostname has 64 characters at most, a name in DNS 255.
const MAX_ID: usize = 256;
/// Bytes of all labels together, keys included. Each row of a table has them.
pub const MAX_LABEL_BYTES: usize = 8 << 10;

impl Report {
    /// Which part of it goes beyond what a result may have, and how. `None` for every result that memgauge wrote.
    pub fn beyond_bounds(&self) -> Option<String> {
        beyond(self)
    }
}

fn beyond(report: &Report) -> Option<String> {
    let run = &report.run;
    let host = |of: fn(&super::Host) -> Option<&String>| run.host.as_ref().and_then(of).map_or(0, String::len);
    let labels = run.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
    let texts = [
        ("run.id", run.id.len(), MAX_ID),
        ("run.host.hostname", host(|host| host.hostname.as_ref()), MAX_ID),
        ("run.host.machine_id_hash", host(|host| host.machine_id_hash.as_ref()), MAX_ID),
        ("run.labels", labels, MAX_LABEL_BYTES),
        ("started.utc", report.started.utc.len(), MAX_ID),
        ("tool.version", report.tool.version.len(), MAX_ID),
    ];
    let long = texts.into_iter().find(|(_, length, most)| length > most);
    let long = long.map(|(field, length, most)| format!("{field} has {length} bytes, and a result's has {most} at most"));
    long.or_else(|| report.measurements().find_map(|m| impossible(&m.estimate))).or_else(|| {
        let values = report.matrices.iter().flat_map(|matrix| matrix.values.iter().flatten().flatten());
        values.map(|value| f64::from(*value)).find(|value| !is_possible(*value)).map(no_value)
    })
}

fn impossible(estimate: &Estimate) -> Option<String> {
    let ends = [estimate.ci95_low, estimate.ci95_high, estimate.min, estimate.max];
    let end = ends.into_iter().flatten().find(|end| !is_possible_end(*end));
    estimate.value.filter(|value| !is_possible(*value)).or(end).map(no_value)
}

fn no_value(value: f64) -> String {
    format!("one of its values is {value:e}, which neither a latency nor a bandwidth is")
}
