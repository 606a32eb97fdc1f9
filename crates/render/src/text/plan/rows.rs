//! The lines of a plan's step.

use std::collections::BTreeMap;

use memgauge_model::directory::MemoryDir;
use memgauge_model::plan::{Cell as PlanCell, LoadCurve, Loader, Loading, OwnTraffic, Traffic, Work};
use memgauge_model::traffic::Access;
use memgauge_model::units::Bytes;
use memgauge_model::wording;

use super::row::{Row, describe};
use crate::number::human;

/// The lines of a step's cells; the states of a transfer share one.
pub(super) fn rows(cells: &[PlanCell], directories: &[MemoryDir]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut handoffs: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for cell in cells {
        let mut added = cell_rows(cell);
        if directories.iter().any(|d| d.is_dax() && d.file.device_node.is_none() && Some(&d.file.path) == cell.at.memory_dir.as_ref()) {
            // The nodes planned are those that touch it.
            added.iter_mut().for_each(|row| row.memory.clear());
        }
        if let Work::Handoff(h) = &cell.work {
            let key = (h.reader, h.holder, h.buffer.node);
            if let Some(&i) = handoffs.get(&key) {
                if let Some(earlier) = rows.get_mut(i) {
                    earlier.states.insert(h.state);
                }
                continue;
            }
            handoffs.insert(key, rows.len());
        }
        rows.extend(added);
    }
    rows
}

/// Loaders of a cell that do the same thing, and their traffic.
struct Group<'a> {
    loaders: Vec<&'a Loader>,
    traffic: &'a Traffic,
}

impl Group<'_> {
    fn own(&self) -> Option<&OwnTraffic> {
        self.loaders.first()?.own.as_deref()
    }
}

/// Loaders without traffic of their own are one group. Others are grouped where they do the same thing over buffers of the same size.
fn groups<'a>(loaders: &'a [Loader], traffic: &'a Traffic) -> Vec<Group<'a>> {
    type Kind<'k> = Option<(&'k Traffic, Option<u32>, u32, Bytes, Option<(Bytes, u32, Option<&'k str>)>)>;
    fn kind(loader: &Loader) -> Kind<'_> {
        let own = loader.own.as_deref()?;
        let second = own.second.as_ref().map(|b| (b.bytes, b.node, b.directory.as_deref()));
        Some((&own.traffic, own.delay, own.second_percent, loader.buffer.bytes, second))
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for loader in loaders {
        match groups.iter_mut().find(|g| g.loaders.first().is_some_and(|first| kind(first) == kind(loader))) {
            Some(group) => group.loaders.push(loader),
            None => groups.push(Group { loaders: vec![loader], traffic: loader.own.as_ref().map_or(traffic, |own| &own.traffic) }),
        }
    }
    groups
}

/// The lines of one cell. The first has the probe and what all loaders share; each further one has loaders that do something else.
fn cell_rows(cell: &PlanCell) -> Vec<Row> {
    let mut first = Row::new(cell);
    let (groups, mut buffers) = match &cell.work {
        Work::Bandwidth(Loading { loaders, traffic, .. }) => (groups(loaders, traffic), Vec::new()),
        Work::BandwidthSweep(sweep) => (groups(&sweep.loaders, &sweep.traffic), Vec::new()),
        Work::Interleave(search) => (groups(&search.loaders, &search.traffic), vec![&search.probe.buffer]),
        Work::Curve(LoadCurve { loaders, traffic, probe, .. }) => (groups(loaders, traffic), vec![&probe.buffer]),
        Work::Latency(_) | Work::Handoff(_) | Work::Transfers(_) | Work::Scan(_) | Work::LatencySweep(_) => {
            (Vec::new(), cell.work.buffers())
        }
    };
    describe(&mut first, cell);
    let common = std::mem::take(&mut first.detail);
    let mut rows: Vec<Row> = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let mut row = if i == 0 { first.clone() } else { Row::new(cell) };
        row.cpu = row.cpu.filter(|_| i == 0);
        row.loaders = group.loaders.iter().map(|l| l.cpu).collect();
        row.mix = Some(group.traffic.mix.to_string());
        row.kernels.clone_from(&group.traffic.kernels);
        buffers.extend(group.loaders.iter().flat_map(|l| l.buffers()));
        row.add_buffers(&buffers);
        buffers.clear();
        let mut parts = vec![if i == 0 { common.clone() } else { String::new() }];
        if let Some(own) = group.own() {
            row.delay = own.delay.or(row.delay);
            parts.extend(own_traffic(own));
        }
        parts.retain(|p| !p.is_empty());
        row.detail = parts.join(", ");
        rows.push(row);
    }
    if rows.is_empty() {
        first.add_buffers(&buffers);
        first.detail = common;
        rows.push(first);
    }
    let total = rows.iter().fold(0u64, |sum, r| sum.saturating_add(r.total.0));
    rows.iter_mut().for_each(|r| r.total = Bytes(total));
    // If the place of the memory was given, CPUs need not use the memory of their own node.
    let placed = cell.at.memory_node().is_some() || cell.at.load_nodes.is_some() || groups.iter().any(|g| g.own().is_some());
    rows.iter_mut().for_each(|r| r.own = !placed && r.memory.len() > 1);
    rows
}

/// Describes the traffic of a loader that differs from the others.
fn own_traffic(own: &OwnTraffic) -> Vec<String> {
    let mut parts = vec![access_form(&own.traffic)];
    if let Some(second) = &own.second {
        let place = second.directory.as_ref().map_or_else(|| format!("on node {}", second.node), |d| format!("in {d}"));
        parts.push(format!("{} % of the accesses go to a second buffer {place}", own.second_percent));
    }
    parts
}

/// How traffic goes over its memory; empty where it goes from line to line.
fn access_form(traffic: &Traffic) -> String {
    let line = wording::line_use(traffic.form.line).unwrap_or_default();
    let access = match traffic.form.access {
        Access::Sequential => String::new(),
        Access::Strided => traffic.stride.map_or_else(String::new, |s| format!("one line every {}", human(s))),
        Access::Random => format!("random access{}", traffic.window.map(|w| format!(" in windows of {}", human(w))).unwrap_or_default()),
        Access::Blocks => traffic.block.map_or_else(String::new, |b| format!("random blocks of {}", human(b))),
    };
    [access, line].into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}
