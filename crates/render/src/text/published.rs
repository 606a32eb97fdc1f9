//! Published values: beside what was measured, and the table itself.

use std::collections::BTreeMap;

use memgauge_core::reference::PublishedValue;
use memgauge_core::result::{Comparable, Position, PublishedSpan, Report};

use super::grid::{Cell, Column};
use super::page::{Page, Style};
use crate::number::{bounds, from_to, number, unit};

/// What is compared, and how it was measured elsewhere.
const fn words(comparable: Comparable) -> &'static str {
    match comparable {
        Comparable::IdleLocalRandom => "idle latency, random chase over the whole buffer",
        Comparable::IdleLocalTranslationHidden => "idle latency, random chase, address translation hidden",
        Comparable::IdleRemoteRandom => "idle latency to another socket, random chase over the whole buffer",
        Comparable::ReadPerSocket => "all-reads per socket, same channels and speed",
        Comparable::TransferSameSocket => "modified line from the same socket",
        Comparable::TransferOtherSocket => "modified line from another socket",
    }
}

/// What was published about machines like this one, a line each.
pub(super) fn references(page: &mut Page, report: &Report) {
    if report.references.is_empty() {
        return;
    }
    page.heading("Published", "what others saw on CPUs of this generation; nothing is judged by it");
    for reference in &report.references {
        page.text(Style::Plain, "  ", "    ", &line(reference));
    }
}

/// `Zen 4, idle latency, random chase …: 113–133 ns (n = 8); here 138 ns, above that span`.
fn line(r: &PublishedSpan) -> String {
    let machines = match r.virtual_machines {
        Some(true) => ", virtual machines",
        Some(false) => ", bare metal",
        None => "",
    };
    let span = from_to(number(r.low), number(r.high));
    let position = match r.position {
        Position::Below => ", below that",
        Position::Within => "",
        Position::Above => ", above that",
    };
    let corrected = if r.corrected > 0 { format!(", {} corrected for cache hits", r.corrected) } else { String::new() };
    let unit = unit(r.unit);
    format!(
        "{}{machines}, {}: {span} {unit} (n = {}{corrected}); here {} {unit}{position}",
        r.microarch,
        words(r.comparable),
        r.n,
        number(r.measured)
    )
}

/// Published values as a table: how many of each quantity and method each generation has, and their span. With `sources`, each value.
pub fn published_text(values: &[PublishedValue<'_>], sources: bool, width: usize, colour: bool) -> String {
    let mut page = Page::new(width, colour);
    if sources {
        every_value(&mut page, values);
    } else {
        spans(&mut page, values);
    }
    page.into_text()
}

fn spans(page: &mut Page, values: &[PublishedValue<'_>]) {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<f64>> = BTreeMap::new();
    for v in values {
        groups.entry((v.microarch, v.quantity, v.unit)).or_default().push(v.value);
    }
    let span = |all: &Vec<f64>| bounds(all.iter().copied()).map(|(low, high)| from_to(number(low), number(high)));
    page.table([
        Column::text("CPU generation", groups.keys().map(|k| if k.0.is_empty() { "(not stated)" } else { k.0 })),
        Column::text("quantity", groups.keys().map(|k| k.1)),
        Column::numbers("values", groups.values().map(|all| Cell::number(all.len().to_string()))),
        Column::text("span", groups.values().map(span)),
        Column::text("unit", groups.keys().map(|k| k.2)),
    ]);
}

fn every_value(page: &mut Page, values: &[PublishedValue<'_>]) {
    for v in values {
        let corrected = v.corrected.map_or_else(String::new, |c| format!(" ({} without cache hits, our estimate)", number(c)));
        page.gap();
        page.line(Style::Bold, &format!("{} {} {}{corrected}", v.quantity, number(v.value), v.unit));
        let memory = [
            v.mem_type.to_owned(),
            v.channels.map(|n| format!("{n} channels")).unwrap_or_default(),
            v.mts.map(|n| format!("{n} MT/s")).unwrap_or_default(),
        ];
        page.items(Style::Plain, "  ", [v.microarch, v.cpu_model, v.mode, memory.join(" ").trim(), v.pages]);
        page.paragraph(Style::Plain, v.method);
        page.paragraph(Style::Dim, format!("{}: {}", v.confidence, v.source));
        page.paragraph(Style::Dim, v.note);
    }
}
