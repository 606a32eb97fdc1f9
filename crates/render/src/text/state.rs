//! The state of the machine, by stamps.

use memgauge_analysis::conclusions::state::{COARSE, disturbances};
use memgauge_model::result::{
    Difference, MachineState, ProbeComparison, ProbeReading, QualityReason, Report, Stamp, StateComparison, StateVerdict,
};
use memgauge_model::stats;
use memgauge_model::wording::{ids, reasons};

use super::comparison::{change, field, probe_change};
use super::grid::Column;
use super::page::{INDENT, Page, Style};
use super::{machine, notes};
use crate::number::{DASH, number, percent, seconds};

/// Changes and reasons that a sentence names; it counts the rest.
const NAMED: usize = 2;

/// The page of `stamp`.
pub(super) fn status(page: &mut Page, report: &Report, state: &MachineState) {
    machine::title(page, report);
    page.items(Style::Plain, "", machine::identity(&report.machine));
    page.gap();
    let (text, style) = claim(state);
    page.text(style, "", "  ", &text);
    details(page, state);
    notes::brief(page, report, notes::Shown::Warnings);
}

/// The stamps of a run, where all details are shown.
pub(super) fn details(page: &mut Page, state: &MachineState) {
    match &state.compared {
        Some(compared) => comparison(page, compared),
        None => state.stamps.iter().for_each(|stamp| readings(page, stamp)),
    }
}

/// One stamp, or the comparison of two, in a sentence.
pub(super) fn claim(state: &MachineState) -> (String, Style) {
    let Some(compared) = &state.compared else {
        let took: f64 = state.stamps.iter().map(|stamp| stamp.took_s).sum();
        if state.stamps.iter().flat_map(|stamp| &stamp.probes).all(|probe| probe.value.is_none()) {
            return ("NO STAMP: no probe could be measured".to_owned(), Style::Error);
        }
        let found: Vec<QualityReason> = state.stamps.iter().flat_map(disturbances).collect();
        return match found.is_empty() {
            true => (format!("A stamp was taken in {}.", seconds(took)), Style::Bold),
            false => (format!("BUSY: a stamp was taken while {}: it tells little of the machine", busy(&found)), Style::Warning),
        };
    };
    let (than, as_in) = match &compared.with {
        Some(file) => (format!("than in {file}"), format!("as in {file}")),
        None => ("afterwards".to_owned(), "before and after".to_owned()),
    };
    match compared.verdict {
        StateVerdict::Same => {
            let allowed = compared.probes.iter().map(|p| p.allowed).max_by(f64::total_cmp).unwrap_or(0.0);
            (
                format!("THE SAME STATE {as_in}: no probe differs by more than its scatter allows (at most {})", percent(allowed)),
                Style::Bold,
            )
        }
        StateVerdict::Another => (format!("ANOTHER STATE {than}: {}", what_changed(compared)), Style::Warning),
        StateVerdict::Busy => (format!("BUSY: {}; the state is not known", busy(&compared.busy)), Style::Warning),
        StateVerdict::Unknown if !compared.busy.is_empty() => {
            (format!("NOT KNOWN: during the earlier stamp {}", busy(&compared.busy)), Style::Warning)
        }
        StateVerdict::Unknown => {
            let missing = compared
                .not_compared
                .iter()
                .map(|probe| format!("{} was not measured in both stamps with the same CPUs, buffers and pages", probe.name()));
            let coarse = compared.probes.iter().filter(|p| p.allowed > COARSE);
            let coarse =
                coarse.map(|p| format!("{} scatters by so much that a change of {} is not seen", p.probe.name(), percent(p.allowed)));
            (format!("NOT KNOWN: {}", named(missing.chain(coarse).collect())), Style::Warning)
        }
    }
}

/// `the machine's state changed during the run: reads by all CPUs 46.1 → 80.2 GB/s (+74 %)`, for the line about trust.
pub(super) fn changed_during_run(report: &Report) -> Option<String> {
    let compared = report.state.as_ref()?.compared.as_ref()?;
    let changed = compared.verdict == StateVerdict::Another && compared.with.is_none();
    changed.then(|| format!("the machine's state changed during the run: {}", what_changed(compared)))
}

/// `memory latency 118.2 → 142.0 ns (+20 %); and 1 more`.
fn what_changed(compared: &StateComparison) -> String {
    named(settings(&compared.settings).chain(compared.changes().into_iter().map(probe_change)).collect())
}

/// `governor performance → powersave`, for each setting.
pub(super) fn settings(changed: &[Difference]) -> impl Iterator<Item = String> {
    changed.iter().map(|d| format!("{} {} → {}", field(d.field), d.before.join(" | "), d.after.join(" | ")))
}

/// The first of them, and how many others there are.
pub(super) fn named(all: Vec<String>) -> String {
    let more = if all.len() > NAMED { format!("; and {} more", all.len() - NAMED) } else { String::new() };
    format!("{}{more}", all.into_iter().take(NAMED).collect::<Vec<_>>().join("; "))
}

fn busy(found: &[QualityReason]) -> String {
    let words = found.iter().map(|reason| reasons::quality(*reason));
    words.collect::<Vec<_>>().join(", ")
}

/// A stamp's probes.
fn readings(page: &mut Page, stamp: &Stamp) {
    let rows = &stamp.probes;
    page.heading("Stamp", "median of the rounds, and how much they scatter");
    page.table([
        Column::text("probe", rows.iter().map(|r| r.probe.name())),
        Column::numbers("value", rows.iter().map(|r| r.value.map_or_else(|| DASH.to_owned(), number))),
        Column::text("", rows.iter().map(|r| r.unit.clone())),
        Column::numbers("scatter", rows.iter().map(|r| scatter(r).map_or_else(|| DASH.to_owned(), |s| format!("±{}", percent(s))))),
        Column::numbers("rounds", rows.iter().map(|r| r.rounds.len().to_string())),
        Column::text("CPUs", rows.iter().map(|r| ids(&r.cpus))).optional(),
        Column::text("buffer", rows.iter().map(|r| r.bytes.map(|bytes| bytes.to_string()))).optional(),
    ]);
    for (reading, why) in rows.iter().filter_map(|r| Some((r, r.not_measured.as_ref()?))) {
        page.text(Style::Warning, INDENT, "    ", &format!("{}: {}", reading.probe.name(), reasons::not_measured(why)));
    }
    let disturbed = disturbances(stamp);
    if !disturbed.is_empty() {
        page.text(Style::Warning, INDENT, "    ", &format!("busy meanwhile: {}", busy(&disturbed)));
    }
}

/// Half of the range of the rounds, relative to their median.
fn scatter(reading: &ProbeReading) -> Option<f64> {
    let sorted = stats::sorted(&reading.rounds);
    Some((sorted.last()? - sorted.first()?) / 2.0 / reading.value?)
}

/// Two stamps side by side.
fn comparison(page: &mut Page, compared: &StateComparison) {
    let rows = &compared.probes;
    if rows.is_empty() {
        return;
    }
    page.heading("State of the machine", "by stamps; a change beyond what the scatter allows is another state");
    let (before, after) = if compared.with.is_some() { ("then", "now") } else { ("before", "after") };
    let mark = |p: &ProbeComparison| if p.differs { "!" } else { "" };
    page.table([
        Column::text("probe", rows.iter().map(|p| p.probe.name())),
        Column::numbers(before, rows.iter().map(|p| number(p.before))),
        Column::numbers(after, rows.iter().map(|p| number(p.after))),
        Column::text("", rows.iter().map(|p| p.unit.clone())),
        Column::numbers("change", rows.iter().map(|p| change(1.0 + p.change))),
        Column::numbers("allowed", rows.iter().map(|p| format!("±{}", percent(p.allowed)))),
        Column::text("", rows.iter().map(mark)),
    ]);
    if !compared.busy.is_empty() {
        page.text(Style::Warning, INDENT, "    ", &format!("busy meanwhile: {}", busy(&compared.busy)));
    }
}
