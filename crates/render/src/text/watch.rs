//! A machine that is watched: a line for each change, and a page at the end.

use memgauge_model::result::{Condition, Moment, OthersBandwidth, OthersScale, ProbeLevel, Report, StateChange, Watch, WatchedState};
use memgauge_model::wording::reasons;

use super::comparison::probe_change;
use super::grid::Column;
use super::layout::lay_out;
use super::page::{Page, Style};
use super::{machine, notes, state};
use crate::appearance::Appearance;
use crate::number::{DASH, count, number, percent, seconds};

/// States that have a column; the others are counted.
const SHOWN_STATES: usize = 4;
/// So many 95 % intervals are above nothing by chance at most, and as many again.
const BY_CHANCE: f64 = 0.05;
/// Changes that are listed: the last ones.
const SHOWN_CHANGES: usize = 10;

/// A change of a watched machine, as it is printed when it is seen: `2026-11-30 05:13:20  state 2: memory latency 152.6 → 170.1 ns (+11.5 %)`.
pub fn watch_line(change: &StateChange, watch: &Watch, appearance: &Appearance) -> String {
    let mut page = Page::new(true);
    row(&mut page, change, watch);
    lay_out(page.blocks(), appearance.width, appearance.colour)
}

/// What is printed before the first of these lines: for how long stamps of at most `stamp_s` are taken, and how often.
pub fn watch_head(report: &Report, stamp_s: f64, every_s: f64, for_s: Option<f64>, appearance: &Appearance) -> String {
    let mut page = Page::new(true);
    machine::title(&mut page, report);
    page.items(Style::Plain, "", machine::identity(&report.machine));
    let until = for_s.map_or_else(|| "until Ctrl-C".to_owned(), |s| format!("for {}", seconds(s)));
    let rate = format!("A stamp of at most {} every {}, {until}. Times are UTC.", seconds(stamp_s), seconds(every_s));
    page.text(Style::Dim, "", "  ", &rate);
    lay_out(page.blocks(), appearance.width, appearance.colour) + "\n"
}

fn row(page: &mut Page, change: &StateChange, watch: &Watch) {
    let time = time(&change.at);
    let style = if change.to == Condition::Busy { Style::Warning } else { Style::Plain };
    page.text(style, &format!("{time}  "), &" ".repeat(time.chars().count() + 2), &what_changed(change, watch));
}

/// `2026-11-30 05:13:20`, UTC.
fn time(moment: &Moment) -> String {
    let whole = moment.utc.split_once('.').map_or(moment.utc.trim_end_matches('Z'), |(whole, _)| whole);
    whole.replace('T', " ")
}

/// `state 2: memory latency 152.6 → 170.1 ns (+11.5 %); others seem to use 6.1 GB/s (4.0 to 8.2)`.
fn what_changed(change: &StateChange, watch: &Watch) -> String {
    let others = change.others.filter(|others| others.low_gbs > 0.0).map(|others| format!("; others seem to use {}", bandwidth(others)));
    let others = others.unwrap_or_default();
    let Condition::Quiet { state: number } = change.to else {
        let busy = change.busy.iter().map(|reason| reasons::quality(*reason));
        return format!("busy: {}{others}", busy.collect::<Vec<_>>().join(", "));
    };
    if let Some(folded) = change.folded {
        return format!("state {number} again: state {folded} turned out to be the same{others}");
    }
    let again = if change.again { " again" } else { "" };
    let found = state::named(state::settings(&change.settings).chain(change.probes.iter().map(probe_change)).collect());
    let found = match watch.states.get(number.wrapping_sub(1)) {
        Some(first) if found.is_empty() && !change.again => levels(first),
        _ => found,
    };
    if found.is_empty() { format!("state {number}{again}{others}") } else { format!("state {number}{again}: {found}{others}") }
}

fn levels(state: &WatchedState) -> String {
    let level = |p: &ProbeLevel| format!("{} {} {}", p.probe.name(), number(p.value), p.unit);
    state.probes.iter().map(level).collect::<Vec<_>>().join(", ")
}

/// `6.1 GB/s (4.0 to 8.2)`, or `at least 4.0 GB/s`.
fn bandwidth(others: OthersBandwidth) -> String {
    match others.high_gbs {
        Some(high) => format!("{} GB/s ({} to {})", number(others.gbs), number(others.low_gbs), number(high)),
        None => format!("at least {} GB/s", number(others.low_gbs)),
    }
}

/// The whole watch in a sentence.
pub(super) fn claim(report: &Report, watch: &Watch) -> (String, Style) {
    if watch.states.is_empty() {
        let (what, style) = match watch.stamps {
            0 => ("NO STAMP was taken".to_owned(), Style::Error),
            n if watch.busy == n => ("BUSY all the time: the state is not known".to_owned(), Style::Warning),
            _ => ("NO STATE: no probe could be measured".to_owned(), Style::Error),
        };
        return (format!("{what}, in {}", seconds(report.timing.total_s)), style);
    }
    let changes = watch.changed as usize;
    let all = watch.stamps.max(1) as f64;
    let mut parts: Vec<String> = Vec::new();
    let mut states = numbered(watch);
    if states.len() > 1 {
        states.sort_by_key(|(_, state)| std::cmp::Reverse(state.stamps));
        let most = states.iter().take(2);
        parts.extend(most.map(|(nth, state)| format!("state {nth} in {} of the stamps", percent(state.stamps as f64 / all))));
    }
    parts.extend((watch.busy > 0).then(|| format!("busy in {}", percent(watch.busy as f64 / all))));
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let style = if states.len() > 1 || watch.busy > 0 { Style::Warning } else { Style::Bold };
    let states = count(states.len(), "STATE", "STATES");
    (format!("{states}, {} in {}{parts}", count(changes, "change", "changes"), seconds(report.timing.total_s)), style)
}

/// The page at the end.
pub(super) fn page(page: &mut Page, report: &Report, watch: &Watch) {
    machine::title(page, report);
    page.items(Style::Plain, "", machine::identity(&report.machine));
    page.gap();
    let (text, style) = claim(report, watch);
    page.text(style, "", "  ", &text);
    states(page, watch);
    changes(page, watch);
    if let Some(scale) = &watch.others {
        others(page, scale, watch);
    }
    page.gap();
    let each_s = watch.stamps_s / watch.stamps.max(1) as f64;
    let taken = count(watch.stamps as usize, "stamp", "stamps");
    let duty = percent(each_s / watch.every_s.max(each_s).max(f64::MIN_POSITIVE));
    page.text(Style::Dim, "", "  ", &format!("{taken} of {} every {}, {duty} of the time.", seconds(each_s), seconds(watch.every_s)));
    notes::brief(page, report, notes::Shown::Warnings);
}

fn states(page: &mut Page, watch: &Watch) {
    let Some(first) = watch.states.first() else { return };
    page.heading("States", "medians of stamps; the last two columns are of state 1");
    let mut shown = numbered(watch);
    let all = shown.len();
    shown.sort_by_key(|(nth, state)| (*nth > 1, std::cmp::Reverse(state.stamps)));
    shown.truncate(page.shown(all, SHOWN_STATES));
    let rows = &first.probes;
    let mut columns = vec![Column::text("probe", rows.iter().map(|p| p.probe.name()))];
    for (nth, state) in &shown {
        let value =
            |p: &ProbeLevel| state.probes.iter().find(|other| other.probe == p.probe).map_or_else(|| DASH.to_owned(), |p| number(p.value));
        columns.push(Column::numbers(format!("state {nth}"), rows.iter().map(value)));
    }
    columns.push(Column::text("", rows.iter().map(|p| p.unit.clone())));
    columns.push(Column::numbers("scatter", rows.iter().map(|p| format!("±{}", percent(p.scatter)))));
    columns.push(Column::numbers("allowed", rows.iter().map(|p| allowed(p.allowed))));
    page.table(columns);
    page.and_more(all, shown.len());
}

/// The states with their numbers, without those that turned out to be earlier ones.
fn numbered(watch: &Watch) -> Vec<(usize, &WatchedState)> {
    (1..).zip(&watch.states).filter(|(_, state)| state.folded.is_none()).collect()
}

/// A change that is not seen; of more than to twice the value nobody wants to know how much.
fn allowed(share: f64) -> String {
    if share > 1.0 { format!(">{}", percent(1.0)) } else { format!("±{}", percent(share)) }
}

fn changes(page: &mut Page, watch: &Watch) {
    let all = watch.changes.len();
    if all < 2 {
        return;
    }
    let shown = page.shown(all, SHOWN_CHANGES);
    page.heading("Changes", if shown < all { "the last ones, UTC" } else { "UTC" });
    watch.changes[all - shown..].iter().for_each(|change| row(page, change, watch));
    page.and_more(all, shown);
}

fn others(page: &mut Page, scale: &OthersScale, watch: &Watch) {
    page.heading("Bandwidth of others", "by the latency of memory and this machine's curve of latency under load");
    if scale.quiet_ns.is_none() {
        page.paragraph(Style::Warning, "Not known: no stamp was taken while the machine was quiet.");
        return;
    }
    let all: Vec<OthersBandwidth> = watch.points.iter().filter_map(|point| point.others).collect();
    let seen: Vec<OthersBandwidth> = all.iter().copied().filter(|others| others.low_gbs > 0.0).collect();
    let some = format!("{} of {} stamps", seen.len(), all.len());
    let said = match seen.iter().max_by(|a, b| a.gbs.total_cmp(&b.gbs)) {
        Some(most) if seen.len() as f64 > BY_CHANCE * all.len() as f64 => {
            format!("Others seemed to use some in {some}, {} at most.", bandwidth(*most))
        }
        Some(_) => format!("No more stamps than chance explains show that others used any: {some}."),
        None => "No stamp shows that others used any.".to_owned(),
    };
    page.paragraph(Style::Plain, said);
    let peak = format!("the curve's highest is {} GB/s", number(scale.peak_gbs));
    page.paragraph(
        Style::Dim,
        match scale.detection_gbs {
            Some(gbs) => {
                format!(
                    "A stamp detects {} GB/s, {} of the curve's highest ({} GB/s).",
                    number(gbs),
                    percent(gbs / scale.peak_gbs),
                    number(scale.peak_gbs)
                )
            }
            None => format!("No bandwidth of others is detected here: latency scatters by more than load changes it ({peak})."),
        },
    );
    page.paragraph(Style::Dim, "Anything else that makes memory slower reads as their bandwidth, too.");
}
