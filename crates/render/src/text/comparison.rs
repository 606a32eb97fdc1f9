//! A comparison as text: the verdict, what else differs, and a table for each verdict.

use memgauge_analysis::comparison::{
    Aspect, CellComparison, Comparison, ComparisonVerdict, Inconclusive, NotCompared, Side, SidesState, StateOfSides, WhyNotCompared,
};
use memgauge_model::experiment::{Coordinates, Experiment, LineState, Metric};
use memgauge_model::result::{DifferentField, ProbeComparison};
use memgauge_model::wording::{coordinates, number_of, spelled};
use memgauge_model::words;
use memgauge_model::words::{Knob, Ways};

use super::block::Block;
use super::grid::Column;
use super::page::{Page, Style};
use crate::number::{number, percent, unit};

/// Rows of a table on a page that does not explain everything.
const BRIEF_ROWS: usize = 12;

/// The verdict and how many numbers have which, in one line however long it is.
pub(crate) fn comparison_line(comparison: &Comparison) -> String {
    verdict(comparison).0 + "\n"
}

/// A comparison in words and tables. `verbose`: every number, also those that are the same.
pub(crate) fn comparison_blocks(comparison: &Comparison, verbose: bool) -> Vec<Block> {
    let mut page = Page::new(verbose);
    headline(&mut page, comparison);
    differences(&mut page, comparison);
    let tables = [
        (ComparisonVerdict::Worse, true),
        (ComparisonVerdict::Better, true),
        (ComparisonVerdict::Inconclusive, true),
        // Few numbers are few lines.
        (ComparisonVerdict::Same, verbose || comparison.cells.len() <= BRIEF_ROWS),
    ];
    for (verdict, shown) in tables {
        let mut cells: Vec<&CellComparison> = comparison.cells.iter().filter(|c| shown && c.verdict == verdict).collect();
        cells.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
        table(&mut page, title(verdict), &cells);
    }
    means(&mut page, comparison);
    missing(&mut page, &comparison.not_compared);
    page.into_blocks()
}

/// The title of the table of the numbers with this verdict.
pub(crate) const fn title(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "Better",
        ComparisonVerdict::Same => "The same",
        ComparisonVerdict::Inconclusive => "Inconclusive",
        ComparisonVerdict::Worse => "Worse",
    }
}

/// The verdict, and its style.
fn verdict(comparison: &Comparison) -> (String, Style) {
    let (word, style) = match comparison.verdict {
        ComparisonVerdict::Better => ("BETTER", Style::Bold),
        ComparisonVerdict::Same => ("THE SAME", Style::Bold),
        ComparisonVerdict::Inconclusive => ("INCONCLUSIVE", Style::Warning),
        ComparisonVerdict::Worse => ("WORSE", Style::Error),
    };
    let count = |verdict, what: &str| Some(comparison.count(verdict)).filter(|n| *n > 0).map(|n| format!("{n} {what}"));
    let same = format!("the same within ±{}", percent(comparison.margin));
    let counts = [
        count(ComparisonVerdict::Worse, "worse"),
        count(ComparisonVerdict::Better, "better"),
        count(ComparisonVerdict::Same, &same),
        count(ComparisonVerdict::Inconclusive, "inconclusive"),
    ];
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let what = number_of(comparison.cells.len() as u64, "number", "numbers");
    let unreliable = comparison.not_compared.iter().any(|missing| missing.why == WhyNotCompared::Unreliable);
    let nothing = if unreliable { "no number is reliable on both sides" } else { "nothing is in both" };
    let counts = match &comparison.cells[..] {
        [] => nothing.to_owned(),
        [only] => {
            let [name, change] = two_lines(only, None);
            let within = if only.verdict == ComparisonVerdict::Same { format!(", {same}") } else { String::new() };
            format!("{name}: {change}{within}")
        }
        _ => format!("of {what} {}", counts.join(", ")),
    };
    (format!("{word}: {counts}"), style)
}

fn headline(page: &mut Page, comparison: &Comparison) {
    let (text, style) = verdict(comparison);
    let state = comparison.state.as_ref().and_then(|sides| state_of_sides(comparison, sides));
    if let Some((text, advice)) = state.as_ref().filter(|_| is_in_different_states(comparison)) {
        page.remark(Style::Warning, "", text, advice.as_ref());
    }
    page.text(style, "", "  ", &text);
    if let Some((text, advice)) = state.as_ref().filter(|_| !is_in_different_states(comparison)) {
        page.remark(Style::Dim, "  ", text, advice.as_ref());
    }
    let side = |side: &Side| format!("{} ({})", side.name, number_of(side.runs.len() as u64, "run", "runs"));
    page.text(Style::Dim, "", "  ", &format!("before: {} · after: {}", side(&comparison.before), side(&comparison.after)));
    if comparison.has_single_run() && !comparison.cells.is_empty() {
        let text = "A side has one run. Its interval is that of its own samples; how much runs differ from each other is not known, so \
                    nothing is called better or worse.";
        let advice = Ways::from("measure each side several times, in turn; five runs show differences of 5 %");
        page.remark(Style::Warning, "  ! ", &text, Some(&advice));
    }
    let incomplete = |side: &Side| side.runs.iter().filter(|r| !r.complete).count();
    let incomplete = incomplete(&comparison.before) + incomplete(&comparison.after);
    if incomplete > 0 {
        let text = format!("{} did not measure everything that was planned.", number_of(incomplete as u64, "run", "runs"));
        page.remark(Style::Warning, "  ! ", &text, None);
    }
}

/// Whether that is why nothing is shown.
fn is_in_different_states(comparison: &Comparison) -> bool {
    comparison.cells.iter().any(|cell| cell.open == Some(Inconclusive::AnotherState))
}

/// A sentence about the states of both sides, with advice; `None` if all runs were in one state.
fn state_of_sides(comparison: &Comparison, sides: &SidesState) -> Option<(String, Option<Ways>)> {
    let changes = || {
        let named = sides.changes.iter().take(2).map(probe_change);
        named.collect::<Vec<_>>().join("; ")
    };
    let left_out = |side: &Side| side.runs.iter().filter(|run| run.left_out).count();
    Some(match sides.state {
        StateOfSides::Same => return None,
        StateOfSides::Sorted => {
            let (before, after) = (left_out(&comparison.before), left_out(&comparison.after));
            let text = format!(
                "{} before and {after} after do not count: the machine was in another state, or that is not known.",
                number_of(before as u64, "run", "runs")
            );
            (text, None)
        }
        StateOfSides::Mixed => ("Runs were measured in several states of the machine, and all of them count.".to_owned(), None),
        StateOfSides::Different => {
            let text = format!("Before and after were measured in different states of the machine: {}.", changes());
            let across = words!["give ", Knob::Across, " if the change made them; otherwise measure again, both sides in turn"];
            (text, Some(Ways::from(across)))
        }
        StateOfSides::MadeByCommands => (format!("The commands make different states of the machine: {}.", changes()), None),
    })
}

/// `memory latency 118.2 → 142.0 ns (+20 %)`.
pub(super) fn probe_change(p: &ProbeComparison) -> String {
    format!("{} {} → {} {} ({})", p.probe.name(), number(p.before), number(p.after), p.unit, change(1.0 + p.change))
}

fn differences(page: &mut Page, comparison: &Comparison) {
    if comparison.differences.is_empty() {
        return;
    }
    page.heading("What else differs", "before → after");
    let value = |values: &[String]| if values.is_empty() { "not known".to_owned() } else { values.join(" | ") };
    for difference in &comparison.differences {
        let text = format!("{}: {} → {}", field(difference.field), value(&difference.before), value(&difference.after));
        page.text(Style::Plain, "  ", "    ", &text);
    }
}

pub(crate) const fn field(field: DifferentField) -> &'static str {
    match field {
        DifferentField::Host => "host",
        DifferentField::Cpu => "CPU",
        DifferentField::CpuModel => "CPU family, model, stepping",
        DifferentField::Microcode => "microcode",
        DifferentField::Firmware => "system and BIOS",
        DifferentField::Hypervisor => "hypervisor",
        DifferentField::Kernel => "kernel",
        DifferentField::Cpus => "CPUs online",
        DifferentField::Smt => "SMT",
        DifferentField::Nodes => "memory nodes",
        DifferentField::Memory => "memory in GiB",
        DifferentField::Channels => "memory channels",
        DifferentField::MemoryEncryption => "memory encryption",
        DifferentField::AllowedCpus => "CPUs that may be used",
        DifferentField::TransparentHugePages => "transparent huge pages",
        DifferentField::Pages => "pages that backed buffers",
        DifferentField::Governor => "frequency governor",
        DifferentField::EnergyPreference => "energy preference",
        DifferentField::Turbo => "turbo",
        DifferentField::NumaBalancing => "NUMA balancing",
        DifferentField::Prefetchers => "prefetchers",
        DifferentField::Clock => "clock",
        DifferentField::Version => "memgauge",
        DifferentField::CommandLine => "command line",
    }
}

fn table(page: &mut Page, title: &str, cells: &[&CellComparison]) {
    if cells.is_empty() {
        return;
    }
    page.heading(title, "largest change first; ratio of medians with its 95 % interval");
    let shown = page.shown(cells.len(), BRIEF_ROWS);
    let rows = || cells.iter().copied().take(shown);
    let settle = |c: &CellComparison| match (c.open, c.runs_to_settle) {
        (Some(_), Some(runs)) => Some(format!("{runs} runs")),
        (Some(Inconclusive::IntervalTooWide | Inconclusive::ManyCells), None) => Some("> 100 runs".to_owned()),
        _ => None,
    };
    let columns = [
        Column::text("what", rows().map(what)),
        Column::text("where", rows().map(|c| place(&c.at))),
        Column::numbers("before", rows().map(|c| c.before)),
        Column::numbers("after", rows().map(|c| c.after)),
        Column::text("", rows().map(|c| unit(c.unit))),
        Column::numbers("change", rows().map(|c| change(c.ratio))),
        Column::text("interval", rows().map(interval)),
        Column::text("settled by", rows().map(settle)).optional(),
    ];
    page.table_or_lines(columns, rows().map(|cell| two_lines(cell, settle(cell))));
    page.and_more(cells.len(), shown);
}

/// A number where a table does not fit.
fn two_lines(cell: &CellComparison, settled: Option<String>) -> [String; 2] {
    let interval = interval(cell).map(|ends| format!(" ({ends})")).unwrap_or_default();
    let settled = settled.map(|runs| format!(" · settled by {runs}")).unwrap_or_default();
    let values = format!("{} → {} {}", number(cell.before), number(cell.after), unit(cell.unit));
    [format!("{}, {}", what(cell), place(&cell.at)), format!("{}{interval} · {values}{settled}", change(cell.ratio))]
}

/// The coordinates, without the node of CPUs that are named, and the state of a line that is transferred.
pub(crate) fn place(at: &Coordinates) -> String {
    let named = at.cpu.is_some() || at.cpus.is_some();
    let place = coordinates(&Coordinates { cpu_node: at.cpu_node.filter(|_| !named), ..at.clone() });
    match at.state {
        None => place,
        Some(LineState::Hit) => format!("{place}, unmodified (HIT)"),
        Some(LineState::Hitm) => format!("{place}, modified (HITM)"),
    }
}

/// The measured quantity, in words.
pub(crate) fn what(cell: &CellComparison) -> String {
    named(Some(cell.aspect), cell.experiment, cell.metric)
}

fn named(aspect: Option<Aspect>, experiment: Experiment, metric: Metric) -> String {
    match aspect {
        None | Some(Aspect::Value) => quantity(experiment, metric),
        Some(Aspect::AtBandwidth { gbs }) => format!("latency at {} GB/s", number(gbs)),
        Some(Aspect::KneeBandwidth) => "bandwidth at the knee".to_owned(),
        Some(Aspect::KneeLatency) => "latency at the knee".to_owned(),
        Some(Aspect::PeakBandwidth) => "peak of the curve".to_owned(),
        Some(Aspect::PairMedian) => "median of all pairs".to_owned(),
    }
}

/// `idle latency`, `sweep, bandwidth`.
pub(crate) fn quantity(experiment: Experiment, metric: Metric) -> String {
    let (name, metric) = (experiment.name().replace('-', " "), spelled(&metric));
    if name.contains(&metric) || experiment.is_cache_to_cache() { name } else { format!("{name}, {metric}") }
}

/// `+5.1 %`.
pub(crate) fn change(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0)).replace('-', "−")
}

/// `−5.1 to +2.0`.
pub(crate) fn changes(low: Option<f64>, high: Option<f64>) -> Option<String> {
    let end = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0)).replace('-', "−");
    Some(format!("{} to {}", end(low?), end(high?)))
}

fn interval(cell: &CellComparison) -> Option<String> {
    changes(cell.ratio_low, cell.ratio_high)
}

fn means(page: &mut Page, comparison: &Comparison) {
    let means: Vec<_> = comparison.means.iter().filter(|m| m.cells > 1).collect();
    if means.is_empty() {
        return;
    }
    page.heading("Means", "geometric, of the ratios of all numbers");
    let name = |experiment, metric, cells: u32| format!("{} ({cells})", quantity(experiment, metric));
    page.items(Style::Plain, "  ", means.iter().map(|m| format!("{} {}", name(m.experiment, m.metric, m.cells), change(m.ratio))));
}

fn missing(page: &mut Page, not_compared: &[NotCompared]) {
    let reasons = [
        (WhyNotCompared::Unreliable, "unreliable on one side or both"),
        (WhyNotCompared::OnlyBefore, "measured before only"),
        (WhyNotCompared::OnlyAfter, "measured after only"),
    ];
    if not_compared.is_empty() {
        return;
    }
    page.heading("Not compared", "");
    for (why, words) in reasons {
        let names: Vec<String> = not_compared
            .iter()
            .filter(|n| n.why == why)
            .map(|n| format!("{} ({})", named(n.aspect, n.experiment, n.metric), place(&n.at)))
            .collect();
        let Some(first) = names.first() else { continue };
        let shown = if page.verbose { names.join("; ") } else { format!("{first}{}", if names.len() > 1 { ", …" } else { "" }) };
        page.text(Style::Plain, "  ", "    ", &format!("{words}: {}, {shown}", number_of(names.len() as u64, "number", "numbers")));
    }
}
