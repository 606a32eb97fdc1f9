//! Persistent memory by size of access: bandwidth of blocks, and the time until a block is durable.

use std::collections::BTreeSet;

use memgauge_model::experiment::Coordinates;
use memgauge_model::result::{AccessKnee, Measurement};
use memgauge_model::traffic::LineUse;
use memgauge_model::units::Bytes;
use memgauge_model::wording;

use super::context::Context;
use super::evidence::evidence;
use super::footnotes::Footnotes;
use super::grid::matrix;
use super::page::{INDENT, Page, Style};
use crate::groups::Section;
use crate::groups::blocks::{BlockRow, by_block, row};
use crate::number::{human, percent};

/// A row for each node and mix or method, a column for each size.
pub(super) fn table(page: &mut Page, context: &mut Context<'_>, section: Section, ms: &[&Measurement]) {
    let (about, corner) = match section.is_latency() {
        true => ("ns to store a block and have it durable", "method ↓  block →"),
        false => ("GB/s of blocks in random order", "mix ↓  block →"),
    };
    context.heading(page, ms, &section.title(), about);
    by_size(page, context, ms, corner);
    knees(page, context, ms);
    let read_back = "then read: each line is loaded again once it is durable, and the time of that is included";
    if ms.iter().any(|m| matches!(m.at.line, Some(LineUse::ReadBack(_)))) {
        page.paragraph(Style::Dim, read_back);
    }
}

/// `all-reads: blocks of 256 B have what the memory gives, blocks of 64 B 24 % of it`, of each row.
fn knees(page: &mut Page, context: &Context<'_>, ms: &[&Measurement]) {
    let smallest = ms.iter().filter_map(|m| m.at.block).min().map(human).unwrap_or_default();
    let of_these = |knee: &&AccessKnee| ms.iter().any(|m| Coordinates { block: None, ..m.at.clone() } == knee.at);
    let found: Vec<&AccessKnee> = context.report.access_knees.iter().filter(of_these).collect();
    let nodes: BTreeSet<Option<u32>> = found.iter().map(|knee| knee.at.cpu_node).collect();
    for AccessKnee { at, knee, smallest_share } in found {
        let from = if nodes.len() > 1 { format!(", from {}", wording::node(at.cpu_node)) } else { String::new() };
        let mix = at.mix.map(|mix| mix.to_string()).unwrap_or_default();
        let share = percent(*smallest_share);
        let text = match knee {
            Some(block) => {
                format!("knee at {}: larger blocks bring less than 10 % more, blocks of {smallest} have {share} of the most", human(*block))
            }
            None => format!("no knee: blocks of {smallest} have {share} of the most"),
        };
        page.paragraph(Style::Plain, format!("{mix}{from}: {text}"));
    }
}

fn by_size(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement], corner: &str) {
    let mut footnotes = Footnotes::new(context, ms);
    // In the order in which they were planned.
    let table = by_block(ms).in_order(ms.iter().map(|m| row(m)));
    let nodes: BTreeSet<Option<u32>> = ms.iter().map(|m| m.at.cpu_node).collect();
    let name = |(node, access): &BlockRow| {
        let node = if nodes.len() > 1 { format!(", from {}", wording::node(*node)) } else { String::new() };
        format!("{access}{node}")
    };
    let size = |size: &Option<Bytes>| size.map(human).unwrap_or_default();
    matrix(page, corner, &table, name, size, |m, _, _| footnotes.cell(m));
    footnotes.print(page, &mut context.advised);
    page.items(Style::Detail, INDENT, evidence(ms));
}
