//! Gauges of many hosts, of whose runs only values are known and not the machine.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::result::{HealthStatus, Measurement, QualityLevel};
use memgauge_model::wording::spelled;

use super::encode::{Labels, user_labels};
use super::{Collected, MetricSample, Subject, asked, label, place, with};
use crate::format::RenderError;

/// The values of a run on a host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostValues<'a> {
    /// The host's name.
    pub host: &'a str,
    /// The version of memgauge that measured.
    pub version: &'a str,
    /// The command line, with the program's name.
    pub command: &'a str,
    /// The run.
    pub run_id: &'a str,
    /// When it began.
    pub started: &'a str,
    /// The user's labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Whether all that was planned was measured.
    pub complete: bool,
    /// The verdict of a health check.
    pub health: Option<HealthStatus>,
    /// What was measured. Of transfers between all pairs of CPUs the medians by node.
    pub results: Vec<Measurement>,
    /// Where it was measured on a stand-in for persistent memory: coordinates without a delay.
    pub volatile: BTreeSet<Coordinates>,
}

/// The gauges of many hosts; the label `host` tells them apart.
///
/// # Errors
/// When the writer refuses a value.
pub fn openmetrics_of_hosts(hosts: &[HostValues<'_>]) -> Result<Vec<u8>, RenderError> {
    let mut all = Collected::default();
    for host in hosts {
        let shared: Labels = with(&asked(host.command.split_whitespace()), [label("host", host.host)]);
        let own = [label("version", host.version), label("started", host.started), label("run_id", host.run_id)];
        all.run.insert(with(&shared, user_labels(host.labels).into_iter().chain(own)), 1.0);
        all.complete.insert(shared.clone(), f64::from(host.complete));
        for level in [QualityLevel::Good, QualityLevel::Degraded, QualityLevel::Unreliable, QualityLevel::None] {
            let count = host.results.iter().filter(|m| m.quality.level == level).count();
            all.results.insert(with(&shared, [label("quality", spelled(&level))]), count as f64);
        }
        all.add_health(host.health, &shared);
        // A median by node is one already.
        let (medians, results): (Vec<Measurement>, Vec<Measurement>) =
            host.results.iter().cloned().partition(|m| m.experiment == Experiment::CacheToCacheMatrix && m.at.cpu.is_none());
        let stand_in = |at: &Coordinates| host.volatile.contains(&Coordinates { delay_cycles: None, ..at.clone() });
        for m in &medians {
            let Some(series) = &m.quantity().series else { continue };
            let labels = with(&shared, place(&m.at, stand_in(&m.at)).into_iter().chain([label("statistic", "median")]));
            all.insert(series.name, labels, MetricSample::from_measurement(m));
        }
        let mut groups = BTreeMap::new();
        let subject = Subject { node: &|_| None, stand_in: &stand_in };
        all.add_results(&results, &subject, &shared, &mut groups);
        groups.into_iter().for_each(|((quantity, labels), samples)| all.sum_up(quantity, &labels, &samples));
        all.add_curves(&results, &[], &subject, &shared);
    }
    all.encode()
}
