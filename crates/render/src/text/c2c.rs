//! Cache-to-cache transfers: representatives as a list, nodes and all pairs as matrices or summed up by what the two CPUs share.

use std::collections::BTreeSet;

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::result::{Measurement, PairMatrix, QualityReason, Report};
use memgauge_model::topology::Topology;
use memgauge_model::wording::{self, reasons};

use super::context::Context;
use super::evidence::{evidence, left_out};
use super::footnotes::Footnotes;
use super::grid::{Column, column_name, matrix, spread_columns, without_half};
use super::page::{INDENT, Page, Style};
use crate::groups::transfers::{self, PairHome, STATES, pair_maps};
use crate::number::human;

const ABOUT: &str = "ns per line";
/// Beyond this many CPUs the matrix of pairs is left to the JSON result.
const MATRIX_CPUS: usize = 32;
/// Beyond this many pairs a list is summed up.
const LISTED_PAIRS: usize = 48;

/// Other accesses of the CPUs, besides holding and reading.
fn other_accesses(ms: &[&Measurement]) -> Vec<String> {
    let mut items: BTreeSet<String> = BTreeSet::new();
    for m in ms {
        items.extend(m.at.sharer_cpu.map(|cpu| format!("CPU {cpu} loads the lines before the reader, so that they are shared")));
        items.extend(m.at.order.map(|order| format!("lines visited {}", wording::chase_order(order))));
        if let Some(pushes) = m.evidence.pushes {
            let who = [("holder", pushes.holder, "after it has taken the lines"), ("reader", pushes.reader, "before it reads the lines")];
            items.extend(
                who.iter()
                    .filter(|w| w.1.0 > 0)
                    .map(|(who, bytes, when)| format!("the {who} reads {} of another buffer {when}", human(*bytes))),
            );
        }
    }
    items.into_iter().collect()
}

/// Chosen pairs, one line each.
pub(super) fn representatives(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Cache-to-cache transfers", ABOUT);
    let mut footnotes = Footnotes::new(context, ms);
    list(page, context, &mut footnotes, ms);
    finish(page, context, footnotes, ms);
}

/// By node of the holder and node of the reader.
pub(super) fn by_node(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Cache-to-cache transfers by node", "ns per line");
    let mut footnotes = Footnotes::new(context, ms);
    let (near, maps) = transfers::by_node(ms);
    if !near.is_empty() {
        list(page, context, &mut footnotes, &near);
    }
    for (home, table) in maps {
        let detailed = context.has_room(table.columns.len());
        let reader = |node: &Option<u32>| column_name(node.map(MemoryPlace::Node), detailed);
        page.paragraph(Style::Plain, format!("HITM, lines {home}"));
        matrix(
            page,
            "holder ↓  reader →",
            &table,
            |node| wording::node(*node),
            reader,
            |m, holder, reader| match m {
                None if holder == reader => "· ".into(),
                m => without_half(footnotes.cell(m), detailed),
            },
        );
    }
    finish(page, context, footnotes, ms);
}

/// Pairs one line each, or summed up where they are too many.
fn list(page: &mut Page, context: &Context<'_>, footnotes: &mut Footnotes<'_>, ms: &[&Measurement]) {
    let topology = &context.report.machine.topology;
    let table = transfers::by_pair(ms, topology);
    let pairs = &table.rows;
    if pairs.len() > LISTED_PAIRS {
        by_relation(page, ms, topology);
        if !page.verbose {
            page.paragraph(Style::Plain, "every pair: -v");
            return;
        }
    }
    // The head says CPU, so that the names of two fit beside the numbers.
    let cpu = |id: Option<u32>| id.map_or(String::new(), |id| context.cpu_name(id).replacen("CPU ", "", 1));
    let mut columns = vec![
        Column::text("reader CPU", pairs.iter().map(|(_, p)| cpu(p.0))),
        Column::text("holder CPU", pairs.iter().map(|(_, p)| cpu(p.1))),
        Column::text("relation", pairs.iter().map(|(relation, _)| relation.name())),
        Column::text("home", pairs.iter().map(|(_, p)| p.2.map(|n| wording::node(Some(n))))),
    ];
    for (state, head) in STATES {
        columns.push(Column::numbers(head, pairs.iter().map(|pair| footnotes.cell(table.get(pair, &state)))));
    }
    page.table(columns);
}

/// What stands below every table of transfers.
fn finish(page: &mut Page, context: &mut Context<'_>, footnotes: Footnotes<'_>, ms: &[&Measurement]) {
    footnotes.print(page, &mut context.advised);
    page.items(Style::Plain, INDENT, other_accesses(ms));
    let legend = ["HIT: the holder has loaded the lines", "HITM: it has modified them", "home: the node of the lines' memory"];
    page.items(Style::Detail, INDENT, legend);
    page.items(Style::Detail, INDENT, evidence(ms));
}

/// All pairs.
pub(super) fn pairs(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Cache-to-cache transfers by pair of CPUs", ABOUT);
    let mut footnotes = Footnotes::new(context, ms);
    let topology = &context.report.machine.topology;
    let cpus = transfers::cpus(ms);
    for map in pair_maps(ms).iter().filter(|_| cpus.len() <= MATRIX_CPUS) {
        let home = match map.home {
            PairHome::Node(node) => format!(", lines at home on node {node}"),
            PairHome::Reader => String::new(),
        };
        page.paragraph(Style::Plain, format!("{}{home}", map.state_name));
        let name = |cpu: &Option<u32>| cpu.map(|cpu| cpu.to_string()).unwrap_or_default();
        matrix(
            page,
            "reader ↓  holder →",
            &map.table,
            |cpu| format!("CPU {}", name(cpu)),
            name,
            |m, reader, holder| match m {
                None if reader == holder => "· ".into(),
                m => without_half(footnotes.cell(m), cpus.len() <= 4),
            },
        );
    }
    if cpus.len() > 4 {
        by_relation(page, ms, topology);
    }
    if cpus.len() > MATRIX_CPUS {
        page.paragraph(Style::Plain, format!("the matrix of {0} × {0} CPUs is in the JSON result; -o FILE.png draws it", cpus.len()));
    }
    finish(page, context, footnotes, ms);
}

/// All pairs of many CPUs: summed up, because nobody reads a matrix of thousands of numbers.
pub(super) fn matrices(page: &mut Page, report: &Report) {
    let Some(first) = report.matrices.first() else { return };
    page.heading("Cache-to-cache transfers by pair of CPUs", ABOUT);
    groups_by_relation(page, &transfers::by_relation(&[], &report.matrices, &report.machine.topology));
    let counts = report.matrices.iter().map(PairMatrix::counts).fold((0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
    let text = format!("the matrix of {0} × {0} CPUs is in the JSON result; -o FILE.png draws it", first.cpus.len());
    page.paragraph(Style::Plain, text);
    if counts.1 + counts.2 > 0 {
        let degraded: BTreeSet<&QualityReason> = report.matrices.iter().flat_map(|m| m.reasons.keys()).collect();
        let degraded: BTreeSet<String> = degraded.into_iter().map(wording::spelled).collect();
        let missing: BTreeSet<String> =
            report.matrices.iter().flat_map(|m| &m.not_measured).map(|entry| reasons::not_measured(&entry.why)).collect();
        let said = |count: u32, what: &str, why: BTreeSet<String>| match (count, why.is_empty()) {
            (0, _) => None,
            (_, true) => Some(format!("{count} {what}")),
            (_, false) => Some(format!("{count} {what} ({})", why.into_iter().collect::<Vec<_>>().join("; "))),
        };
        let said = [said(counts.1, "degraded", degraded), said(counts.2, "missing", missing)];
        page.paragraph(Style::Plain, said.into_iter().flatten().collect::<Vec<_>>().join(", "));
    }
}

/// Fastest, median and slowest of what is reliable, by what the CPUs share and the lines' state.
fn by_relation(page: &mut Page, ms: &[&Measurement], topology: &Topology) {
    groups_by_relation(page, &transfers::by_relation(ms, &[], topology));
    page.paragraph(Style::Dim, left_out(ms).unwrap_or_default());
}

fn groups_by_relation(page: &mut Page, groups: &transfers::ByRelation) {
    let state = |state| STATES.into_iter().find(|(s, _)| *s == state).map_or("", |(_, name)| name);
    let mut columns = vec![
        Column::text("relation", groups.keys().map(|k| k.0.name())),
        Column::text("state", groups.keys().map(|k| state(k.1))),
        Column::numbers("pairs", groups.values().map(|v| v.len().to_string())),
    ];
    columns.extend(spread_columns(groups.values()));
    page.table(columns);
}
