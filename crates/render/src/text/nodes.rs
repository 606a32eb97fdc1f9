//! Cache-to-cache transfers by node: a near pair, and a matrix for each home of the lines.

use memgauge_core::experiment::MemoryPlace;
use memgauge_core::result::Measurement;
use memgauge_core::wording;

use super::c2c::{explain, list};
use super::context::Context;
use super::evidence::evidence;
use super::footnotes::Footnotes;
use super::matrix::{DETAILED_COLUMNS, column_name, matrix, without_half};
use super::page::{INDENT, Page, Style};
use crate::groups::transfers::{HOMES, holder_and_reader_nodes, is_near};

/// By node of the holder and node of the reader.
pub(super) fn pairs(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Cache-to-cache transfers by node", "ns per line");
    let mut footnotes = Footnotes::new(context.report, ms);
    let (near, far): (Vec<&Measurement>, Vec<&Measurement>) = ms.iter().copied().partition(|m| is_near(m));
    if !near.is_empty() {
        list(page, context, &mut footnotes, &near);
    }
    let (holders, readers) = holder_and_reader_nodes(&far);
    let detailed = readers.len() <= DETAILED_COLUMNS;
    let rows: Vec<_> = holders.into_iter().map(|node| (node, wording::node(node))).collect();
    let columns: Vec<_> = readers.into_iter().map(|node| (node, column_name(node.map(MemoryPlace::Node), detailed))).collect();
    for (home, is_home) in HOMES {
        let here: Vec<&Measurement> = far.iter().copied().filter(|m| is_home(m)).collect();
        if here.is_empty() {
            continue;
        }
        page.paragraph(Style::Plain, format!("HITM, lines {home}"));
        matrix(page, "holder ↓  reader →", &rows, &columns, |&holder, &reader| {
            match here.iter().copied().find(|m| m.at.holder_node == holder && m.at.cpu_node == reader) {
                None if holder == reader => "· ".into(),
                m => without_half(footnotes.cell(m), detailed),
            }
        });
    }
    footnotes.print(page, &mut context.advised);
    explain(page, ms);
    page.items(Style::Dim, INDENT, &evidence(ms));
}
