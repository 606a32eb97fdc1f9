//! Curves over the working set.

use std::collections::BTreeMap;

use memgauge_core::experiment::{Coordinates, Metric};
use memgauge_core::result::{LevelSummary, Measurement, Report};

/// A curve over the working set: what its points share, and the points by growing size.
pub(crate) struct Sweep<'a> {
    pub(crate) metric: Metric,
    pub(crate) at: Coordinates,
    pub(crate) points: Vec<&'a Measurement>,
}

impl Sweep<'_> {
    /// The levels that were found in it.
    pub(crate) fn levels<'r>(&self, report: &'r Report) -> Option<&'r LevelSummary> {
        report.levels.iter().find(|l| l.at == self.at && l.metric == Some(self.metric))
    }
}

/// The curves among these measurements, latencies first, in the order of their coordinates.
pub(crate) fn sweeps<'a>(ms: &[&'a Measurement]) -> Vec<Sweep<'a>> {
    let mut sweeps: BTreeMap<(Metric, Coordinates), Vec<&Measurement>> = BTreeMap::new();
    for &m in ms {
        sweeps.entry((m.metric, Coordinates { working_set: None, ..m.at.clone() })).or_default().push(m);
    }
    let by_size = |((metric, at), mut points): ((Metric, Coordinates), Vec<&'a Measurement>)| {
        points.sort_by_key(|m| m.at.working_set);
        Sweep { metric, at, points }
    };
    sweeps.into_iter().map(by_size).collect()
}
