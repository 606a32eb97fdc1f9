//! Advice as text: the answer, each recommendation with the numbers behind it, and what the results do not tell.

mod words;

use memgauge_analysis::advice::{Action, Advice, Ceiling, Gap, Number, Recommendation, Sureness, WeightsPlace};
use memgauge_model::topology::OperatingSystem;
use memgauge_model::wording::{nodes, spelled};

use super::block::Block;
use super::comparison::{place, quantity};
use super::grid::Column;
use super::page::{Page, Style};
use crate::number::{half_width_of, human, maybe, number, unit};

/// The answer in a line.
pub(crate) fn advice_line(advice: &Advice) -> String {
    words::headline(advice) + "\n"
}

/// Advice in words and tables.
pub(crate) fn advice_blocks(advice: &Advice) -> Vec<Block> {
    let mut page = Page::new(true);
    page.text(Style::Bold, "", "  ", &words::headline(advice));
    for result in &advice.results {
        let cpu = result.cpu.as_deref().unwrap_or("CPU not stated");
        let part = if result.complete { "" } else { ", not complete" };
        page.text(Style::Dim, "  ", "    ", &format!("{}: {cpu}, {}{part}", result.name, result.started));
    }
    let named = advice.results.len() > 1;
    for recommendation in &advice.recommendations {
        one(&mut page, recommendation, named, words::system(advice));
    }
    gaps(&mut page, &advice.gaps, named);
    page.into_blocks()
}

fn one(page: &mut Page, recommendation: &Recommendation, named: bool, system: OperatingSystem) {
    let sure = match recommendation.sureness {
        Sureness::Shown => "shown: good numbers, and their intervals leave no other conclusion".to_owned(),
        Sureness::Likely => format!("likely: {}", recommendation.doubts.iter().map(words::doubt).collect::<Vec<_>>().join("; ")),
    };
    page.heading(words::topic(recommendation.topic), "");
    page.paragraph(Style::Plain, words::action(recommendation, system));
    if let Action::ExpectTokens { ceilings, leaves_out, .. } = &recommendation.action {
        tokens(page, ceilings);
        let left_out: Vec<&str> = leaves_out.iter().map(|what| words::left_out(*what)).collect();
        page.paragraph(Style::Dim, format!("The ceiling is bandwidth over bytes. It leaves out {}.", left_out.join(", ")));
    }
    for number in &recommendation.numbers {
        line(page, words::role(number), number, named);
    }
    page.paragraph(if recommendation.sureness == Sureness::Shown { Style::Dim } else { Style::Warning }, sure);
}

/// The ceilings, a row for each.
fn tokens(page: &mut Page, ceilings: &[Ceiling]) {
    let weights = |c: &Ceiling| match &c.place {
        WeightsPlace::OwnNodes { nodes: list } => format!("own nodes ({})", nodes(list)),
        WeightsPlace::OneNode { node } => format!("node {node}"),
        WeightsPlace::Interleaved { weights } => format!("interleaved {weights}"),
    };
    let fits = |c: &Ceiling| if c.fits { String::new() } else { format!("does not fit: {}", human(c.memory)) };
    page.table([
        Column::text("model", ceilings.iter().map(|c| words::model(&c.model))),
        Column::text("bytes", ceilings.iter().map(|c| human(c.model.bytes))).only_if(ceilings.iter().any(|c| c.model.name.is_some())),
        Column::text("weights on", ceilings.iter().map(weights)),
        Column::numbers("GB/s", ceilings.iter().map(|c| c.read_gbs)),
        Column::numbers("tokens/s", ceilings.iter().map(|c| format!("≤ {}", number(c.tokens_per_s)))),
        Column::text("", ceilings.iter().map(|c| half_width_of(c.tokens_per_s, Some(c.low), Some(c.high)))),
        Column::text("memory", ceilings.iter().map(fits)).optional(),
    ]);
    if ceilings.iter().any(|c| matches!(c.place, WeightsPlace::OwnNodes { .. })) {
        page.paragraph(Style::Dim, "Own nodes: weights are divided among the nodes, and each thread reads those on its own.");
    }
}

/// A number, what it is of, and where it is.
fn line(page: &mut Page, role: String, n: &Number, named: bool) {
    let half = n.value.map(|value| half_width_of(value, n.ci95_low, n.ci95_high)).filter(|half| !half.is_empty());
    let half = half.map(|half| format!(" {half}")).unwrap_or_default();
    let quality = match n.reasons[..] {
        [] => String::new(),
        _ => format!("; {}: {}", spelled(&n.quality), n.reasons.iter().map(spelled).collect::<Vec<_>>().join(", ")),
    };
    let file = if named { format!("; {}", n.result) } else { String::new() };
    let text = format!(
        "{role}: {}{half} {} ({}, {}{quality}{file})",
        maybe(n.value),
        unit(n.unit),
        quantity(n.experiment, n.metric),
        place(&n.at)
    );
    page.text(Style::Plain, "    ", "      ", &text);
}

/// Lists the questions that the results do not answer, with the commands that measure the answers.
fn gaps(page: &mut Page, gaps: &[Gap], named: bool) {
    if gaps.is_empty() {
        return;
    }
    page.heading("Not known", "and the command that measures it");
    for gap in gaps {
        page.text(Style::Plain, "  ", "    ", &format!("{}: {}", words::topic(gap.topic), words::why(&gap.why)));
        for number in &gap.numbers {
            line(page, words::role(number), number, named);
        }
        // On a line of its own, so that it can be pasted.
        if let Some(command) = &gap.command {
            page.line(Style::Plain, &format!("    {command}"));
        }
    }
}
