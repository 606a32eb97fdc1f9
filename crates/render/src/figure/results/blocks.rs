//! Lines over the size of blocks: bandwidth of random accesses, and the time until a block is durable.

use std::collections::BTreeSet;

use memgauge_model::result::Measurement;
use memgauge_model::traffic::LineUse;

use crate::figure::axis::Axis;
use crate::figure::chart::{Chart, Sample, Series};
use crate::figure::frame::{Panel, boxed, part_of};
use crate::figure::palette::{MAX_SERIES, Style};
use crate::figure::source::{ResultSet, caption, sample};
use crate::groups::Section;
use crate::groups::blocks::by_block;
use crate::number::bounds;

/// A line for each mix or method. Measurements that read blocks back have one size only, and are in the table.
pub(crate) fn charts(section: Section, sets: &[ResultSet<'_>]) -> Vec<Box<dyn Panel>> {
    let (what, axis) = match section.is_latency() {
        true => ("time to store a block and have it durable, with the 95 % interval", "Latency (ns)"),
        false => ("GB/s of blocks in random order, with the 95 % interval", "Bandwidth (GB/s)"),
    };
    let sets: Vec<ResultSet<'_>> = sets.iter().map(|set| set.only(|m| !matches!(m.at.line, Some(LineUse::ReadBack(_))))).collect();
    let nodes: BTreeSet<Option<u32>> = sets.iter().flat_map(|s| &s.ms).map(|m| m.at.cpu_node).collect();
    let mut lines: Vec<(String, Vec<&Measurement>)> = Vec::new();
    for set in &sets {
        let table = by_block(&set.ms);
        lines.extend(table.rows.iter().map(|row| {
            let from = row.0.filter(|_| nodes.len() > 1).map(|node| format!("from node {node}"));
            let parts = [set.name.map(str::to_owned), Some(row.1.clone()), from];
            (parts.into_iter().flatten().collect::<Vec<_>>().join(", "), table.row(row).collect())
        }));
    }
    let parts = lines.len().div_ceil(MAX_SERIES);
    let chart = |(part, lines): (usize, &[(String, Vec<&Measurement>)])| {
        let all = || lines.iter().flat_map(|(_, ms)| ms.iter().copied());
        let samples = |ms: &[&Measurement]| -> Vec<Sample> { ms.iter().filter_map(|m| sample(m.at.block?.0 as f64, m)).collect() };
        let highest = bounds(all().filter_map(|m| sample(0.0, m)).map(|s| s.y_interval.map_or(s.y, |i| i.1))).map_or(1.0, |b| b.1);
        let sizes =
            bounds(all().filter_map(|m| m.at.block).map(|b| b.0 as f64)).map_or((64, 4096), |(low, high)| (low as u64, high as u64));
        let mut caption = caption(&sets, &section.title(), &[what], true);
        caption.title.push_str(&part_of(part, parts));
        let x = Axis::doublings("Block (bytes)", sizes.0.max(1), sizes.1.max(2 * sizes.0.max(1)), 8);
        let mut chart = Chart::new(caption, x, Axis::linear(axis, 0.0, highest, 7));
        for (i, (name, ms)) in lines.iter().enumerate() {
            chart.series.push(Series { name: Some(name.clone()), style: Style::of_points(i), samples: samples(ms), joined: true });
        }
        chart
    };
    boxed(lines.chunks(MAX_SERIES).enumerate().map(chart))
}
