//! Cache-to-cache transfers by node: a near pair, and a matrix for each way of being at home.

use std::collections::BTreeSet;

use memgauge_core::experiment::LineState;
use memgauge_core::result::Measurement;

use super::c2c::{explain, list, pairs_of};
use super::evidence::evidence;
use super::grid::{Cell, Column, blocks};
use super::latency::{DETAILED_COLUMNS, column_name, without_half};
use super::marks::Marks;
use super::page::{INDENT, Page, Style};
use super::{Context, node_name};

/// Where lines are at home, in words, and whether those of a result are.
pub(crate) type Home = (&'static str, fn(&Measurement) -> bool);

pub(crate) const HOMES: [Home; 3] = [
    ("at home on the holder's node", |m| m.at.memory_node == m.at.holder_node),
    ("at home on the reader's node", |m| m.at.memory_node != m.at.holder_node && m.at.memory_node == m.at.cpu_node),
    ("at home on another node, the nearest that may be used", |m| {
        m.at.memory_node != m.at.holder_node && m.at.memory_node != m.at.cpu_node
    }),
];

/// By node of the holder and node of the reader.
pub(super) fn pairs(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about("ns per line");
    page.heading(&context.title(ms, "Cache-to-cache transfers by node"), &about);
    let mut marks = Marks::new(context.report, ms);
    let (near, far): (Vec<&Measurement>, Vec<&Measurement>) = ms.iter().copied().partition(|m| is_near(m));
    if !near.is_empty() {
        list(page, context, &mut marks, &pairs_of(&near, context), &near);
    }
    let (holders, readers) = (nodes(&far, |m| m.at.holder_node), nodes(&far, |m| m.at.cpu_node));
    let detailed = readers.len() <= DETAILED_COLUMNS;
    for (home, is_home) in HOMES {
        let here: Vec<&Measurement> = far.iter().copied().filter(|m| is_home(m)).collect();
        if here.is_empty() {
            continue;
        }
        page.text(Style::Plain, INDENT, INDENT, &format!("HITM, lines {home}"));
        let lead = Column::words("holder ↓  reader →").with(holders.iter().map(|&h| Cell::text(node_name(h))));
        let columns: Vec<Column> = readers
            .iter()
            .map(|&reader| {
                let cell = |&holder: &Option<u32>| {
                    let found = here.iter().copied().find(|m| m.at.holder_node == holder && m.at.cpu_node == reader);
                    if found.is_none() && holder == reader { Cell::text("· ") } else { without_half(marks.cell(found), detailed) }
                };
                Column::numbers(column_name(context, reader, detailed)).with(holders.iter().map(cell).collect::<Vec<_>>())
            })
            .collect();
        for block in blocks(&lead, &columns, page.width) {
            page.table(&block);
        }
    }
    marks.print(page, &mut context.advised);
    explain(page, ms);
    page.items(Style::Dim, INDENT, &evidence(ms));
}

/// Whether it belongs to the near pair: within a node, or unmodified lines, which no other pair has. Where each node has one CPU the near pair's
/// modified lines stand in the matrix.
pub(crate) fn is_near(m: &Measurement) -> bool {
    m.at.holder_node == m.at.cpu_node || m.at.state != Some(LineState::Hitm)
}

fn nodes(ms: &[&Measurement], of: fn(&Measurement) -> Option<u32>) -> Vec<Option<u32>> {
    ms.iter().map(|m| of(m)).collect::<BTreeSet<_>>().into_iter().collect()
}
