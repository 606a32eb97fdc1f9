//! Persistent memory by size of access: bandwidth of blocks, and the time until a block is durable.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::result::Measurement;
use memgauge_core::traffic::LineUse;
use memgauge_core::units::Bytes;
use memgauge_core::wording;

use super::context::Context;
use super::evidence::evidence;
use super::footnotes::Footnotes;
use super::grid::matrix;
use super::page::{INDENT, Page, Style};
use crate::number::human;

/// A row for each node and mix, a column for each size.
pub(super) fn access_sizes(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Bandwidth by access size", "GB/s of blocks in random order");
    by_block(page, context, ms, "mix", |m| m.at.mix.map(|mix| mix.to_string()).unwrap_or_default());
}

/// A row for each node and method, a column for each size.
pub(super) fn persist_latencies(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Persist latency", "ns to store a block and have it durable");
    by_block(page, context, ms, "method", method);
    let read_back = "then read: each line is loaded again once it is durable, and the time of that is included";
    if ms.iter().any(|m| matches!(m.at.line, Some(LineUse::ReadBack(_)))) {
        page.paragraph(Style::Dim, read_back);
    }
}

/// What makes lines durable, and whether they are read again.
fn method(m: &Measurement) -> String {
    match m.at.line {
        Some(LineUse::ReadBack(method)) => format!("{}, then read", method.name()),
        Some(LineUse::Persisted(method)) => method.name().to_owned(),
        _ => String::new(),
    }
}

fn by_block(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement], what: &str, row: impl Fn(&Measurement) -> String) {
    let mut footnotes = Footnotes::new(context, ms);
    let nodes: BTreeSet<Option<u32>> = ms.iter().map(|m| m.at.cpu_node).collect();
    let name = |m: &Measurement| {
        let node = if nodes.len() > 1 { format!(", from {}", wording::node(m.at.cpu_node)) } else { String::new() };
        row(m) + &node
    };
    // In the order in which they were planned.
    let mut rows: Vec<String> = Vec::new();
    let mut cells: BTreeMap<(String, Option<Bytes>), &Measurement> = BTreeMap::new();
    for &m in ms {
        let name = name(m);
        if !rows.contains(&name) {
            rows.push(name.clone());
        }
        cells.entry((name, m.at.block)).or_insert(m);
    }
    let sizes: BTreeSet<Option<Bytes>> = ms.iter().map(|m| m.at.block).collect();
    let columns: Vec<_> = sizes.into_iter().map(|size| (size, size.map(human).unwrap_or_default())).collect();
    let rows: Vec<_> = rows.into_iter().map(|name| (name.clone(), name)).collect();
    matrix(page, &format!("{what} ↓  block →"), &rows, &columns, |row, size| footnotes.cell(cells.get(&(row.clone(), *size)).copied()));
    footnotes.print(page, &mut context.advised);
    page.items(Style::Detail, INDENT, evidence(ms));
}
