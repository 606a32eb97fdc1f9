//! Hardware counters: what they showed around each measurement, or of a program, with a legend of every formula shown.

use std::collections::BTreeSet;

use memgauge_model::counters::{Counters, Event, EventEstimate, MetricEstimate, ProgramCount, ProgramRun, Scope};
use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::metrics::{CounterMetric, MetricUnit, Role};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::wording;

use super::block::Part;
use super::grid::{Cell, Column};
use super::page::{INDENT, Page, Style};
use super::{machine, notes, sweep};
use crate::groups::sweeps;
use crate::number::{DASH, count, half_width, number, percent, seconds, size, value_of};

/// With more measurements than this, each is a line with the metrics that fit.
const MAX_COLUMNS: usize = 6;

/// The most useful metrics. If they do not all fit, the first ones are kept.
const MAIN_METRICS: [CounterMetric; 8] = [
    CounterMetric::Ipc,
    CounterMetric::CyclesPerWork,
    CounterMetric::L1MissRate,
    CounterMetric::L2MissRate,
    CounterMetric::LlcMissRate,
    CounterMetric::OffcoreMlp,
    CounterMetric::MissLatencyNs,
    CounterMetric::DramBandwidth,
];

/// Prints the counters of the results. If nothing was counted, a note says why.
pub(super) fn measurement_counters(page: &mut Page, report: &Report) {
    let all: Vec<Counted<'_>> = report.results.iter().filter_map(|m| Some((m, m.counters.as_deref()?))).collect();
    let all: Vec<Counted<'_>> = all.into_iter().filter(|(_, c)| c.events.iter().any(|e| e.value.is_some())).collect();
    let Some((_, first)) = all.first() else { return };
    page.heading("Counters", "of the measuring threads, during exactly the windows that were measured");
    let is_sweep = |m: &Measurement| all.len() > MAX_COLUMNS && m.experiment == Experiment::Sweep;
    let (swept, single): (Vec<Counted<'_>>, Vec<Counted<'_>>) = all.iter().copied().partition(|(m, _)| is_sweep(m));
    let mut shown = BTreeSet::new();
    if !single.is_empty() {
        shown.extend(single_cells(page, &single));
    }
    if !swept.is_empty() {
        shown.extend(by_working_set(page, report, &swept));
    }
    scope(page, first.scope, all.iter().filter_map(|(_, c)| c.running).reduce(f64::min));
    let events = first.events.iter().filter(|e| e.value.is_some()).map(|e| &e.event);
    let shown: Vec<CounterMetric> = CounterMetric::ALL.into_iter().filter(|m| shown.contains(m)).collect();
    legend(page, &shown, events);
}

/// A measurement and what was counted of it.
type Counted<'a> = (&'a Measurement, &'a Counters);

/// The metrics that one of these has.
fn available(counted: &[Counted<'_>]) -> Vec<CounterMetric> {
    CounterMetric::ALL.into_iter().filter(|m| counted.iter().any(|(_, c)| c.metric(*m).is_some())).collect()
}

/// The main metrics that one of these has.
fn main_metrics(counted: &[Counted<'_>]) -> Vec<CounterMetric> {
    let available = available(counted);
    MAIN_METRICS.into_iter().filter(|m| available.contains(m)).collect()
}

fn cell(counters: &Counters, metric: CounterMetric, suffix: &str) -> Option<Cell> {
    counters.metric(metric).map(|v| Cell::number(format!("{}{suffix}", value(metric.definition().unit, v))))
}

/// Few measurements as columns, many as lines. Returns the metrics shown.
fn single_cells(page: &mut Page, all: &[Counted<'_>]) -> Vec<CounterMetric> {
    let cell = |c: &Counters, m: CounterMetric| cell(c, m, &suffix(m, c));
    if all.len() <= MAX_COLUMNS {
        let shown = available(all);
        let column = |(m, c): &Counted<'_>| Column::numbers(head(m), shown.iter().map(|metric| cell(c, *metric)));
        page.matrix(Column::text("metric", shown.iter().map(|m| title(*m))), all.iter().map(column).collect());
        return shown;
    }
    let shown = main_metrics(all);
    let mut columns = vec![Column::text("of", all.iter().map(|(m, _)| head(m)))];
    columns.extend(shown.iter().map(|m| Column::numbers(title(*m), all.iter().map(|(_, c)| cell(c, *m))).optional()));
    page.table(columns);
    shown
}

/// A table for each curve over the working set, of the sizes that the curve's own table lists. Returns the metrics shown.
fn by_working_set(page: &mut Page, report: &Report, all: &[Counted<'_>]) -> Vec<CounterMetric> {
    let ms: Vec<&Measurement> = all.iter().map(|(m, _)| *m).collect();
    let mut shown_in_all = Vec::new();
    for curve in sweeps(&ms) {
        let listed = sweep::listed(&curve.points, curve.levels(report));
        let points: Vec<Counted<'_>> = listed.into_iter().filter_map(|m| Some((m, m.counters.as_deref()?))).collect();
        let shown = main_metrics(&points);
        let quantity = if curve.metric == Metric::Latency { "latency" } else { "bandwidth" };
        page.gap();
        page.paragraph(Style::Plain, format!("{quantity} by working set, {}", sweep::measured_by(&curve.at)));
        let mut columns = vec![Column::numbers("working set", points.iter().map(|(m, _)| m.at.working_set.map(size)))];
        columns.extend(shown.iter().map(|m| {
            let per = points.first().map(|(_, c)| suffix(*m, c)).unwrap_or_default();
            Column::numbers(format!("{}{per}", title(*m)), points.iter().map(|(_, c)| cell(c, *m, ""))).optional()
        }));
        page.table(columns);
        shown_in_all.extend(shown);
    }
    page.gap();
    shown_in_all
}

/// A program that was counted, in one line: its main metrics, or the events where there are none.
pub(super) fn program_line(program: &ProgramCount) -> String {
    let metric = |wanted: CounterMetric| {
        let found = program.metrics.iter().find(|m| m.metric == wanted)?;
        Some(format!("{} {}", title(wanted), value(wanted.definition().unit, value_of(&found.estimate)?)))
    };
    let mut parts: Vec<String> = MAIN_METRICS.into_iter().filter_map(metric).collect();
    if parts.is_empty() {
        parts.extend(
            program.events.iter().filter(|e| value_of(&e.estimate).is_some()).map(|e| format!("{} {}", e.event.name, event_count(e))),
        );
        parts.truncate(MAX_COLUMNS);
    }
    parts.extend(ends(program));
    parts.join(" · ")
}

/// A program that was counted.
pub(super) fn program_counters(page: &mut Page, report: &Report, program: &ProgramCount) {
    machine::header(page, report);
    page.part(Part::Counters);
    let runs = count(program.runs.len(), "run", "runs");
    let (spread, noun) = if program.runs.len() > 1 { (", median ± half of the 95 % interval", "medians") } else { ("", "counts") };
    page.heading(&format!("Counters of {}", program.command.join(" ")), &format!("{noun} of {runs}{spread}"));
    let spread_of = |e: &Estimate| match (value_of(e), e.ci95_low, e.ci95_high) {
        (Some(v), Some(low), Some(high)) if v > 0.0 => format!("±{}", percent((v - low).max(high - v) / v)),
        _ => String::new(),
    };
    let counted: Vec<_> = program.events.iter().filter(|e| value_of(&e.estimate).is_some()).collect();
    page.table([
        Column::text("event", counted.iter().map(|e| e.event.name.as_str())),
        Column::numbers("count", counted.iter().map(|e| event_count(e))),
        Column::numbers("spread", counted.iter().map(|e| spread_of(&e.estimate))),
    ]);
    let metrics: Vec<_> = program.metrics.iter().filter(|m| value_of(&m.estimate).is_some()).collect();
    if !metrics.is_empty() {
        let spread_of_metric = |m: &MetricEstimate| match m.unit {
            MetricUnit::Number | MetricUnit::Cycles | MetricUnit::Nanoseconds => half_width(&m.estimate),
            _ => spread_of(&m.estimate),
        };
        let value = |e: &Estimate, m: CounterMetric| value_of(e).map(|v| Cell::number(value(m.definition().unit, v)));
        page.table([
            Column::text("metric", metrics.iter().map(|m| title(m.metric))),
            Column::numbers("value", metrics.iter().map(|m| value(&m.estimate, m.metric))),
            Column::numbers("spread", metrics.iter().map(|m| spread_of_metric(m))),
        ]);
    }
    page.items(Style::Plain, INDENT, ends(program));
    scope(page, program.scope, program.running);
    let shown: Vec<CounterMetric> = metrics.iter().map(|m| m.metric).collect();
    legend(page, &shown, counted.iter().map(|e| &e.event));
    page.part(Part::Notes);
    notes::notes(page, report);
}

fn event_count(event: &EventEstimate) -> String {
    match value_of(&event.estimate) {
        // Nanoseconds of the kernel's clocks.
        Some(v) if event.unit.as_deref() == Some("ns") => format!("{} ms", number(v / 1e6)),
        Some(v) => whole(v),
        None => DASH.to_owned(),
    }
}

/// How long it took and how it ended.
fn ends(program: &ProgramCount) -> Vec<String> {
    let mut items: Vec<String> = value_of(&program.elapsed_s)
        .map(|s| format!("took {}", if s < 1.0 { format!("{} ms", number(s * 1e3)) } else { seconds(s) }))
        .into_iter()
        .collect();
    let other: BTreeSet<String> = program
        .runs
        .iter()
        .filter_map(|run| match run {
            ProgramRun::Exited(0) => None,
            ProgramRun::Exited(status) => Some(format!("ended with status {status}")),
            ProgramRun::Killed(signal) => Some(format!("ended by signal {signal}")),
        })
        .collect();
    items.extend(other);
    items
}

fn scope(page: &mut Page, scope: Scope, running: Option<f64>) {
    let mut items = vec![match scope {
        Scope::User => "user code only".to_owned(),
        Scope::UserAndKernel => "user code and the kernel's work on its behalf".to_owned(),
    }];
    if let Some(share) = running.filter(|s| *s < 0.995) {
        items.push(format!("the counters took turns: each event was counted for at least {} of the time, and scaled", percent(share)));
    }
    page.items(Style::Dim, INDENT, &items);
}

/// For each metric shown: its formula, what it says and where it comes from. Then which event has which role.
fn legend<'e>(page: &mut Page, shown: &[CounterMetric], events: impl Iterator<Item = &'e Event>) {
    let mut explained = BTreeSet::new();
    for metric in shown {
        let d = metric.definition();
        // Metrics per hop or per line need no explanation.
        if d.per_work || !explained.insert((d.title, d.formula())) {
            continue;
        }
        page.text(Style::Dim, INDENT, "    ", &format!("{} = {}: {} ({})", d.title, d.formula(), d.meaning, d.source));
    }
    let used: BTreeSet<_> = shown.iter().flat_map(|m| m.definition().roles).collect();
    let roles: Vec<String> = events
        .filter_map(|e| {
            let roles: Vec<String> = e.roles.iter().filter(|r| used.contains(r)).map(Role::to_string).collect();
            (!roles.is_empty() && roles != [e.name.clone()]).then(|| format!("{} = {}", roles.join(" and "), e.name))
        })
        .collect();
    page.items(Style::Dim, INDENT, &roles);
}

fn title(metric: CounterMetric) -> String {
    let d = metric.definition();
    match d.unit {
        MetricUnit::Cycles => format!("{}, cycles", d.title),
        MetricUnit::Nanoseconds => format!("{}, ns", d.title),
        MetricUnit::GigabytesPerSecond => format!("{}, GB/s", d.title),
        _ => d.title.to_owned(),
    }
}

fn value(unit: MetricUnit, v: f64) -> String {
    match unit {
        MetricUnit::Share => share(v),
        MetricUnit::Bytes => bytes(v),
        _ => number(v),
    }
}

/// The unit of work that a number is counted per: ` a hop`.
fn suffix(metric: CounterMetric, counters: &Counters) -> String {
    let work = counters.work.filter(|_| metric.definition().per_work);
    work.map(|w| format!(" a {}", w.unit.name())).unwrap_or_default()
}

/// Rates go down to parts in a million, where hundredths of a percent would show nothing.
fn share(v: f64) -> String {
    match v * 100.0 {
        p if p == 0.0 || !p.is_finite() || p >= 0.05 => percent(v),
        p => format!("{p:.1e} %"),
    }
}

/// Decimal, as bandwidth is.
fn bytes(v: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let (size, unit) = units.into_iter().find(|(size, _)| v >= *size).unwrap_or((1.0, "B"));
    format!("{} {unit}", number(v / size))
}

/// A count, its digits in groups of three.
fn whole(v: f64) -> String {
    if !v.is_finite() || v.abs() >= 1e18 {
        return number(v);
    }
    let digits = format!("{:.0}", v.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A measurement in the head of a column.
fn head(m: &Measurement) -> String {
    let at = &m.at;
    if let Some(bytes) = at.working_set {
        let traffic = at.mix.map(|mix| mix.to_string()).or_else(|| at.order.map(|o| wording::chase_order(o).to_owned()));
        let cpus = at.cpu.map(|c| format!("CPU {c}")).or_else(|| at.cpus.as_ref().map(wording::cpus));
        return [traffic, cpus, Some(size(bytes))].into_iter().flatten().collect::<Vec<_>>().join(", ");
    }
    let name = match at.order {
        Some(order) => wording::chase_order(order),
        None if at.delay_cycles.is_some() && m.metric == Metric::Latency => "chase",
        None if at.delay_cycles.is_some() => "load",
        None => "",
    };
    if at.order.is_some() && m.experiment == Experiment::Chase {
        return name.to_owned();
    }
    // Cells of a curve differ in their delay only.
    let in_curve = at.cpu.is_some() && (m.metric == Metric::Bandwidth || at.delay_cycles.is_some());
    let place = match in_curve {
        true => Coordinates { delay_cycles: at.delay_cycles, ..Coordinates::default() },
        false => Coordinates { memory_dir: None, order: None, ..at.clone() },
    };
    let place = wording::coordinates(&place);
    if name.is_empty() { place } else { format!("{name}, {place}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0.0, 999.0, 1000.0, 1234567.4].map(whole), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn small_rates_keep_their_digits() {
        assert_eq!([0.0, 0.25, 0.001, 0.000_012].map(share), ["0 %", "25 %", "0.1 %", "1.2e-3 %"]);
    }

    #[test]
    fn bytes_are_decimal() {
        assert_eq!([12.0, 6.4e10, 2.5e6].map(bytes), ["12.0 B", "64.0 GB", "2.50 MB"]);
    }
}
