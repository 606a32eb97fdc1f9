//! Advice as text: the answer, each recommendation with the numbers behind it, and what the results do not tell.

mod words;

use memgauge_analysis::advice::{Action, Advice, CauseRate, Ceiling, Gap, Number, PossibleCause, Recommendation, Sureness, WeightsPlace};
use memgauge_model::topology::OperatingSystem;
use memgauge_model::wording::spelled;

use super::block::Block;
use super::comparison::{place, quantity};
use super::grid::Column;
use super::page::{Page, Style};
use crate::number::{half_width_of, human, maybe, number, percent, unit};

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
    if let Action::ExplainTokens { causes, .. } = &recommendation.action {
        possible_causes(page, causes);
    }
    for number in &recommendation.numbers {
        line(page, words::role(number), number, named);
    }
    page.paragraph(if recommendation.sureness == Sureness::Shown { Style::Dim } else { Style::Warning }, sure);
}

/// The ceilings, a row for each.
fn tokens(page: &mut Page, ceilings: &[Ceiling]) {
    let fits = |c: &Ceiling| if c.fits { String::new() } else { format!("does not fit: {}", human(c.memory)) };
    page.table([
        Column::text("model", ceilings.iter().map(|c| words::model(&c.model))),
        Column::text("bytes", ceilings.iter().map(|c| human(c.model.bytes))).only_if(ceilings.iter().any(|c| c.model.name.is_some())),
        Column::text("weights on", ceilings.iter().map(|c| words::weights_on(&c.place))),
        Column::numbers("GB/s", ceilings.iter().map(|c| c.read_gbs)),
        Column::numbers("tokens/s", ceilings.iter().map(|c| format!("≤ {}", number(c.tokens_per_s)))),
        Column::text("", ceilings.iter().map(|c| half_width_of(c.tokens_per_s, Some(c.low), Some(c.high)))),
        Column::text("memory", ceilings.iter().map(fits)).optional(),
    ]);
    if ceilings.iter().any(|c| matches!(c.place, WeightsPlace::OwnNodes { .. })) {
        page.paragraph(Style::Dim, "Own nodes: weights are divided among the nodes, and each thread reads those on its own.");
    }
}

/// The causes with a rate in a table, then the others with the commands that show them.
fn possible_causes(page: &mut Page, causes: &[PossibleCause]) {
    let rated: Vec<(&PossibleCause, CauseRate)> = causes.iter().filter_map(|possible| Some((possible, possible.rate?))).collect();
    if !rated.is_empty() {
        let name = |(possible, rate): &(&PossibleCause, CauseRate)| {
            format!("{}{}", words::cause(&possible.cause), if rate.guessed { " (guess)" } else { "" })
        };
        page.table([
            Column::text("possible cause", rated.iter().map(name)),
            Column::numbers("tokens/s", rated.iter().map(|(_, rate)| format!("≤ {}", number(rate.tokens_per_s)))),
            Column::text("", rated.iter().map(|(_, rate)| half_width_of(rate.tokens_per_s, Some(rate.low), Some(rate.high)))),
            Column::numbers("of ceiling", rated.iter().map(|(_, rate)| percent(rate.share.value))),
            Column::text("", rated.iter().map(|(_, rate)| words::fit(rate.fit))),
        ]);
        page.paragraph(Style::Dim, words::FITS);
    }
    if rated.iter().any(|(_, rate)| rate.guessed) {
        page.paragraph(Style::Dim, "Guess: the ceiling times what fewer CPUs lose. All together may lose less.");
    }
    let unrated: Vec<&PossibleCause> = causes.iter().filter(|possible| possible.rate.is_none()).collect();
    if unrated.iter().any(|possible| possible.command.is_some()) {
        page.text(Style::Plain, "  ", "    ", "Without a rate, and the command that shows more:");
    }
    for alike in unrated.chunk_by(|a, b| (&a.why, &a.command) == (&b.why, &b.command)) {
        let names: Vec<String> = alike.iter().map(|possible| words::cause(&possible.cause)).collect();
        let why = alike[0].why.as_ref().map(|why| format!(": {}", words::why(why))).unwrap_or_default();
        page.text(Style::Plain, "    ", "      ", &format!("{}{why}", names.join(", ")));
        // On a line of its own, so that it can be pasted.
        if let Some(command) = &alike[0].command {
            page.line(Style::Plain, &format!("      {command}"));
        }
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
