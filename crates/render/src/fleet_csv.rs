//! What is said of a fleet as CSV. What is not known is empty.

use memgauge_analysis::fleet::{FleetBaseline, FleetHistory, FleetOutliers, UnknownReason};
use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::PageKind;
use memgauge_model::wording::spelled;

use crate::csv::finish;
use crate::format::RenderError;
use crate::text::fleet::{group_words, pattern, spot};

fn written(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<Vec<u8>, RenderError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header)?;
    rows.into_iter().try_for_each(|row| writer.write_record(row))?;
    finish(writer)
}

fn maybe(value: Option<f64>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn cell(experiment: Experiment, at: &Coordinates, metric: Metric, unit: Unit) -> [String; 4] {
    [experiment.name().to_owned(), spot(at), spelled(&metric), spelled(&unit)]
}

fn pages(of: Option<PageKind>) -> String {
    of.as_ref().map(spelled).unwrap_or_default()
}

/// The reason as JSON spells it.
const fn reason(of: &UnknownReason) -> &'static str {
    match of {
        UnknownReason::TooFewSiblings { .. } => "too-few-siblings",
        UnknownReason::NothingToCompare => "nothing-to-compare",
        UnknownReason::Incomplete => "incomplete",
        UnknownReason::NotMeasured { .. } => "not-measured",
        UnknownReason::Missing { .. } => "missing",
        UnknownReason::OtherPages { .. } => "other-pages",
        UnknownReason::Degraded { .. } => "degraded",
        UnknownReason::SlowerPopulation { .. } => "slower-population",
    }
}

/// A row for each slow number of a host, and for each reason why a host is unknown.
///
/// # Errors
/// When the writer refuses a row.
pub(crate) fn fleet_outliers_csv(found: &FleetOutliers) -> Result<Vec<u8>, RenderError> {
    let header = [
        "host",
        "machine_id_hash",
        "run_id",
        "status",
        "what",
        "experiment",
        "where",
        "metric",
        "unit",
        "value",
        "siblings_median",
        "ratio",
        "ratio_low",
        "ratio_high",
        "robust_z",
        "siblings",
        "group",
        "measured",
        "reason",
        "pages",
    ];
    let name = |name: &memgauge_analysis::fleet::HostName, status: &str| {
        vec![name.host.clone(), name.machine_id_hash.clone().unwrap_or_default(), name.run_id.clone(), status.to_owned()]
    };
    let slow = found.slow.iter().flat_map(|host| {
        let group = found.groups.get(host.group as usize).map(group_words).unwrap_or_default();
        host.numbers.iter().map(move |number| {
            let mut row = name(&host.name, "slow");
            row.push(pattern(host));
            row.extend(cell(number.experiment, &number.at, number.metric, number.unit));
            row.extend([number.value, number.siblings_median, number.ratio].map(|v| v.to_string()));
            row.extend([maybe(number.ratio_low), maybe(number.ratio_high), number.robust_z.to_string(), number.siblings.to_string()]);
            row.extend([group.clone(), number.measured.clone(), String::new(), pages(number.pages)]);
            row
        })
    });
    let unknown = found.unknown.iter().flat_map(|host| {
        host.reasons.iter().map(move |why| {
            let mut row = name(&host.name, "unknown");
            row.resize(header.len() - 2, String::new());
            row.extend([reason(why).to_owned(), String::new()]);
            row
        })
    });
    written(&header, slow.chain(unknown))
}

/// A row for each number of each group.
///
/// # Errors
/// When the writer refuses a row.
pub(crate) fn fleet_baseline_csv(baseline: &FleetBaseline) -> Result<Vec<u8>, RenderError> {
    let header = [
        "group",
        "group_hosts",
        "level",
        "experiment",
        "where",
        "metric",
        "unit",
        "hosts",
        "median",
        "median_low",
        "median_high",
        "spread",
        "flagged_beyond",
        "slower_population",
        "pages",
    ];
    let rows = baseline.groups.iter().flat_map(|group| {
        let words = group_words(&group.group);
        group.numbers.iter().map(move |number| {
            let mut row = vec![words.clone(), group.group.hosts.to_string(), spelled(&group.group.level)];
            row.extend(cell(number.experiment, &number.at, number.metric, number.unit));
            row.push(number.hosts.to_string());
            row.extend([number.median, number.median_low, number.median_high, number.spread, number.flagged_beyond].map(|v| v.to_string()));
            row.extend([maybe(number.slower_population), pages(number.pages)]);
            row
        })
    });
    written(&header, rows)
}

/// A row for each value of each run, with the level that it is of.
///
/// # Errors
/// When the writer refuses a row.
pub(crate) fn fleet_history_csv(history: &FleetHistory) -> Result<Vec<u8>, RenderError> {
    let header = [
        "host",
        "run_id",
        "started",
        "experiment",
        "where",
        "metric",
        "unit",
        "value",
        "low",
        "high",
        "quality",
        "not_measured",
        "level",
        "level_median",
    ];
    let rows = history.series.iter().flat_map(|series| {
        series.points.iter().filter_map(move |point| {
            let run = history.runs.get(point.run as usize)?;
            let mut row = vec![history.host.clone(), run.run_id.clone(), run.started.clone()];
            row.extend(cell(series.experiment, &series.at, series.metric, series.unit));
            row.extend([maybe(point.value), maybe(point.low), maybe(point.high)]);
            row.push(point.quality.as_ref().map(spelled).unwrap_or_default());
            row.push(point.not_measured.clone().unwrap_or_default());
            let level = series.levels.iter().position(|l| (l.first_run..=l.last_run).contains(&point.run));
            row.push(level.map(|level| (level + 1).to_string()).unwrap_or_default());
            row.push(maybe(level.map(|level| series.levels[level].median)));
            Some(row)
        })
    });
    written(&header, rows)
}
