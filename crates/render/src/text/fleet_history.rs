//! The history of a host as text: when its numbers changed, and what changed with them.

use memgauge_analysis::fleet::{Change, ChangedNumber, FleetHistory, Series};
use memgauge_model::wording::number_of;

use super::block::Block;
use super::comparison::{change, field, quantity};
use super::fleet::{day, number_words, spot};
use super::grid::{Cell, Column};
use super::page::{Page, Style};
use crate::number::{number, percent, unit};

/// Numbers of a change on a page that does not show everything.
const BRIEF_ROWS: usize = 6;

/// When the numbers of a host changed. `verbose`: every number of a change, and the levels of every series.
pub(crate) fn fleet_history_blocks(history: &FleetHistory, verbose: bool) -> Vec<Block> {
    let mut page = Page::new(verbose);
    headline(&mut page, history);
    history.changes.iter().for_each(|change| one_change(&mut page, history, change));
    if verbose {
        series(&mut page, history);
    }
    page.into_blocks()
}

fn headline(page: &mut Page, history: &FleetHistory) {
    let changes = history.changes.iter().filter(|c| !c.numbers.is_empty()).count();
    let worse = history.changes.iter().any(|c| c.numbers.iter().any(|n| n.worse));
    let runs = number_of(history.runs.len() as u64, "run", "runs");
    let style = if worse { Style::Warning } else { Style::Bold };
    let what = match changes {
        0 if history.series.iter().all(|s| s.levels.is_empty()) => "too few values to tell a change".to_owned(),
        0 => "no number changed".to_owned(),
        _ => format!("numbers changed {}", times(changes)),
    };
    page.text(style, "", "  ", &format!("{}: {what} in {runs}", history.host));
    if let (Some(first), Some(last)) = (history.runs.first(), history.runs.last()) {
        let span = format!("{} to {}", day(&first.started), day(&last.started));
        page.text(Style::Dim, "", "  ", &format!("{span} · {}", number_of(history.series.len() as u64, "number", "numbers")));
    }
    if history.machine_id_hashes.len() > 1 {
        let text = format!("machines with {} ids are shown as one host", history.machine_id_hashes.len());
        page.remark(Style::Warning, "  ! ", &text, None);
    }
    let untold = history.series.iter().filter(|s| s.levels.is_empty()).count();
    if untold > 0 {
        let text = format!("{} has fewer than six values: too few to tell a change", number_of(untold as u64, "number", "numbers"));
        let text = if untold == 1 { text } else { text.replace("numbers has", "numbers have") };
        page.text(Style::Warning, "  ! ", "    ", &text);
    }
    let incomplete = history.runs.iter().filter(|r| !r.complete).count();
    if incomplete > 0 {
        let text = format!("{} did not measure everything that was planned", number_of(incomplete as u64, "run", "runs"));
        page.text(Style::Warning, "  ! ", "    ", &text);
    }
}

fn times(n: usize) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

fn one_change(page: &mut Page, history: &FleetHistory, at: &Change) {
    let run = |i: u32| history.runs.get(i as usize);
    let (Some(before), Some(after)) = (run(at.before), run(at.after)) else { return };
    page.heading(&format!("Between {} and {}", before.started, after.started), "");
    page.paragraph(Style::Detail, format!("runs {} and {}", before.run_id, after.run_id));
    for difference in &at.differences {
        let value = |values: &[String]| values.first().cloned().unwrap_or_else(|| "not known".to_owned());
        let text = format!("{}: {} → {}", field(difference.field), value(&difference.before), value(&difference.after));
        page.text(Style::Plain, "  ", "    ", &text);
    }
    if at.numbers.is_empty() {
        page.paragraph(Style::Dim, "no number changed");
        return;
    }
    let worse = at.numbers.iter().filter(|n| n.worse).count();
    let counts = [(worse, "worse"), (at.numbers.len() - worse, "better")];
    let counts: Vec<String> = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let numbers = number_of(history.series.len() as u64, "number", "numbers");
    let nothing = if at.differences.is_empty() { "; nothing else that is recorded changed" } else { "" };
    page.paragraph(if worse > 0 { Style::Warning } else { Style::Plain }, format!("of {numbers} {}{nothing}", counts.join(", ")));
    let shown = page.shown(at.numbers.len(), BRIEF_ROWS);
    let rows = || at.numbers.iter().take(shown).filter_map(|n| Some((n, history.series.get(n.series as usize)?)));
    let lines = |(n, s): (&ChangedNumber, &Series)| {
        let values = format!("{} → {} {}", number(n.before), number(n.after), unit(s.unit));
        [number_words(s.experiment, s.metric, &s.at), format!("{} · {values}", change(n.ratio))]
    };
    let columns = [
        Column::text("what", rows().map(|(_, s)| quantity(s.experiment, s.metric))),
        Column::text("where", rows().map(|(_, s)| spot(&s.at))),
        Column::numbers("before", rows().map(|(n, _)| n.before)),
        Column::numbers("after", rows().map(|(n, _)| n.after)),
        Column::text("", rows().map(|(_, s)| unit(s.unit))),
        Column::numbers("change", rows().map(|(n, _)| change(n.ratio))),
    ];
    page.table_or_lines(columns, rows().map(lines));
    page.and_more(at.numbers.len(), shown);
}

fn series(page: &mut Page, history: &FleetHistory) {
    page.heading("Numbers", "the levels between changes, in order of time");
    let rows = || history.series.iter();
    // Too few values for levels are shown themselves.
    let levels = |s: &Series| match s.levels.as_slice() {
        [] => s.points.iter().filter_map(|p| p.value).map(number).collect::<Vec<_>>().join(", "),
        levels => levels.iter().map(|l| format!("{} ({})", number(l.median), l.values)).collect::<Vec<_>>().join(" → "),
    };
    let values = |s: &Series| Cell::number(s.points.iter().filter(|p| p.value.is_some()).count().to_string());
    let lines = |s: &Series| {
        let noise = s.noise.map(|noise| format!(" · noise {}", percent(noise))).unwrap_or_default();
        [number_words(s.experiment, s.metric, &s.at), format!("{} {}{noise}", levels(s), unit(s.unit))]
    };
    let columns = [
        Column::text("what", rows().map(|s| quantity(s.experiment, s.metric))),
        Column::text("where", rows().map(|s| spot(&s.at))),
        Column::numbers("values", rows().map(values)),
        Column::numbers("noise", rows().map(|s| s.noise.map(percent))).optional(),
        Column::text("levels (values)", rows().map(levels)),
        Column::text("", rows().map(|s| unit(s.unit))),
    ];
    page.table_or_lines(columns, rows().map(lines));
}
