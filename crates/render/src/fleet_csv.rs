//! Statements about a fleet as CSV. Unknown values are empty.

use memgauge_analysis::fleet::{
    BaselineNumber, FleetBaseline, FleetHistory, FleetOutliers, HistoryRun, HostGroup, HostName, Series, SeriesPoint, SlowHost, SlowNumber,
    UnknownReason,
};
use memgauge_model::result::PageKind;
use memgauge_model::wording::spelled;

use crate::csv::{CsvColumn, maybe, table_csv};
use crate::format::RenderError;
use crate::text::fleet::{group_words, pattern, spot};

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
    type Slow<'a> = (&'a SlowHost, &'a SlowNumber);
    type Row<'a> = (&'a HostName, Result<Slow<'a>, &'a UnknownReason>);
    let slow = found.slow.iter().flat_map(|host| host.numbers.iter().map(move |number| (&host.name, Ok((host, number)))));
    let unknown = found.unknown.iter().flat_map(|host| host.reasons.iter().map(move |why| (&host.name, Err(why))));
    fn of(row: &Row<'_>, value: impl Fn(&SlowHost, &SlowNumber) -> String) -> String {
        row.1.map(|(host, number)| value(host, number)).unwrap_or_default()
    }
    let group = |host: &SlowHost| found.groups.get(host.group as usize).map(group_words).unwrap_or_default();
    let columns: [CsvColumn<'_, Row<'_>>; 20] = [
        ("host", &|row| row.0.host.clone()),
        ("machine_id_hash", &|row| row.0.machine_id_hash.clone().unwrap_or_default()),
        ("run_id", &|row| row.0.run_id.clone()),
        ("status", &|row| if row.1.is_ok() { "slow" } else { "unknown" }.to_owned()),
        ("what", &|row| of(row, |host, _| pattern(host))),
        ("experiment", &|row| of(row, |_, n| n.experiment.name().to_owned())),
        ("where", &|row| of(row, |_, n| spot(&n.at))),
        ("metric", &|row| of(row, |_, n| spelled(&n.metric))),
        ("unit", &|row| of(row, |_, n| spelled(&n.unit))),
        ("value", &|row| of(row, |_, n| n.value.to_string())),
        ("siblings_median", &|row| of(row, |_, n| n.siblings_median.to_string())),
        ("ratio", &|row| of(row, |_, n| n.ratio.to_string())),
        ("ratio_low", &|row| of(row, |_, n| maybe(n.ratio_low))),
        ("ratio_high", &|row| of(row, |_, n| maybe(n.ratio_high))),
        ("robust_z", &|row| of(row, |_, n| n.robust_z.to_string())),
        ("siblings", &|row| of(row, |_, n| n.siblings.to_string())),
        ("group", &|row| of(row, |host, _| group(host))),
        ("measured", &|row| of(row, |_, n| n.measured.clone())),
        ("reason", &|row| row.1.err().map_or("", reason).to_owned()),
        ("pages", &|row| of(row, |_, n| pages(n.pages))),
    ];
    table_csv(&columns, slow.chain(unknown))
}

/// A row for each number of each group.
///
/// # Errors
/// When the writer refuses a row.
pub(crate) fn fleet_baseline_csv(baseline: &FleetBaseline) -> Result<Vec<u8>, RenderError> {
    let rows = baseline.groups.iter().flat_map(|group| group.numbers.iter().map(|number| (&group.group, number)));
    let columns: [CsvColumn<'_, (&HostGroup, &BaselineNumber)>; 15] = [
        ("group", &|(group, _)| group_words(group)),
        ("group_hosts", &|(group, _)| group.hosts.to_string()),
        ("level", &|(group, _)| spelled(&group.level)),
        ("experiment", &|(_, n)| n.experiment.name().to_owned()),
        ("where", &|(_, n)| spot(&n.at)),
        ("metric", &|(_, n)| spelled(&n.metric)),
        ("unit", &|(_, n)| spelled(&n.unit)),
        ("hosts", &|(_, n)| n.hosts.to_string()),
        ("median", &|(_, n)| n.median.to_string()),
        ("median_low", &|(_, n)| n.median_low.to_string()),
        ("median_high", &|(_, n)| n.median_high.to_string()),
        ("spread", &|(_, n)| n.spread.to_string()),
        ("flagged_beyond", &|(_, n)| n.flagged_beyond.to_string()),
        ("slower_population", &|(_, n)| maybe(n.slower_population)),
        ("pages", &|(_, n)| pages(n.pages)),
    ];
    table_csv(&columns, rows)
}

/// A row for each value of each run, with the level that it is of.
///
/// # Errors
/// When the writer refuses a row.
pub(crate) fn fleet_history_csv(history: &FleetHistory) -> Result<Vec<u8>, RenderError> {
    let run = |point: &SeriesPoint| history.runs.get(point.run as usize);
    let rows = history.series.iter().flat_map(|s| s.points.iter().filter_map(move |point| Some((s, point, run(point)?))));
    let level = |s: &Series, p: &SeriesPoint| s.levels.iter().position(|level| (level.first_run..=level.last_run).contains(&p.run));
    let columns: [CsvColumn<'_, (&Series, &SeriesPoint, &HistoryRun)>; 14] = [
        ("host", &|_| history.host.clone()),
        ("run_id", &|(.., run)| run.run_id.clone()),
        ("started", &|(.., run)| run.started.clone()),
        ("experiment", &|(s, ..)| s.experiment.name().to_owned()),
        ("where", &|(s, ..)| spot(&s.at)),
        ("metric", &|(s, ..)| spelled(&s.metric)),
        ("unit", &|(s, ..)| spelled(&s.unit)),
        ("value", &|(_, p, _)| maybe(p.value)),
        ("low", &|(_, p, _)| maybe(p.low)),
        ("high", &|(_, p, _)| maybe(p.high)),
        ("quality", &|(_, p, _)| p.quality.as_ref().map(spelled).unwrap_or_default()),
        ("not_measured", &|(_, p, _)| p.not_measured.clone().unwrap_or_default()),
        ("level", &|(s, p, _)| level(s, p).map(|level| (level + 1).to_string()).unwrap_or_default()),
        ("level_median", &|(s, p, _)| maybe(level(s, p).map(|level| s.levels[level].median))),
    ];
    table_csv(&columns, rows)
}
