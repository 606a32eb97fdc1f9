//! Cache-to-cache transfers: chosen pairs as bars, all pairs as a map.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::experiment::LineState;
use memgauge_core::result::Measurement;
use memgauge_core::stats::median;

use super::bars::{Bar, Bars, Row};
use super::frame::{Panel, Words};
use super::heat::{Cell, HeatMap};
use super::latency::breaks;
use super::palette::series;
use super::source::{Set, about, bar, common_pages, notes};
use crate::text::c2c::Shared;
use crate::text::number::{bounds, number, value_of};

/// More pairs than this are summed up by what their CPUs share.
const LISTED: usize = 40;

fn state_name(state: Option<LineState>) -> &'static str {
    match state {
        Some(LineState::Hit) => "HIT (the holder has loaded the line)",
        Some(LineState::Hitm) => "HITM (the holder has modified it)",
        None => "state not stated",
    }
}

/// Chosen pairs as bars, one for each state of the line.
pub(crate) fn representatives(set: Set<'_>) -> Bars {
    type Pair = (Shared, Option<u32>, Option<u32>, Option<u32>);
    let topology = &set.report.machine.topology;
    let key =
        |m: &Measurement| -> Pair { (Shared::between(topology, m.at.cpu, m.at.holder_cpu), m.at.cpu, m.at.holder_cpu, m.at.memory_node) };
    let pairs: BTreeSet<Pair> = set.ms.iter().map(|m| key(m)).collect();
    let states: Vec<Option<LineState>> = set.ms.iter().map(|m| m.at.state).collect::<BTreeSet<_>>().into_iter().collect();
    let rows = if pairs.len() > LISTED {
        summed_up(&set, &states)
    } else {
        let cpu = |id: Option<u32>| id.map_or_else(|| "?".to_owned(), |id| id.to_string());
        let row = |pair: &Pair| {
            let home = pair.3.map(|n| format!(", home node {n}")).unwrap_or_default();
            let find = |state: &Option<LineState>| set.ms.iter().copied().find(|m| key(m) == *pair && m.at.state == *state);
            Row {
                name: format!("CPU {} from {}", cpu(pair.1), cpu(pair.2)),
                detail: format!("{}{home}", pair.0.name()),
                bars: states.iter().enumerate().map(|(i, s)| bar(find(s), series(i))).collect(),
            }
        };
        pairs.iter().map(row).collect()
    };
    let (title, pages) = (set.title("Cache-to-cache transfers"), common_pages(std::slice::from_ref(&set)));
    let mut words = Words::new(title, about(&["ns per line", "home: the node of the line's memory", &pages]));
    words.key = states.iter().enumerate().map(|(i, s)| (series(i), state_name(*s).to_owned())).collect();
    notes(&mut words, &[set], false);
    Bars { words, unit: "ns", rows, limit_name: None }
}

/// The median of the pairs that share the same, with their range as whisker.
fn summed_up(set: &Set<'_>, states: &[Option<LineState>]) -> Vec<Row> {
    let topology = &set.report.machine.topology;
    let mut groups: BTreeMap<Shared, BTreeMap<Option<LineState>, Vec<f64>>> = BTreeMap::new();
    for m in &set.ms {
        let shared = Shared::between(topology, m.at.cpu, m.at.holder_cpu);
        groups.entry(shared).or_default().entry(m.at.state).or_default().extend(value_of(&m.estimate));
    }
    let row = |(shared, by_state): (Shared, BTreeMap<Option<LineState>, Vec<f64>>)| {
        let bar = |(i, state): (usize, &Option<LineState>)| {
            let values = by_state.get(state).cloned().unwrap_or_default();
            let interval = bounds(values.iter().copied());
            let after = interval.map(|(low, high)| format!("({}–{})", number(low), number(high))).unwrap_or_default();
            Bar { colour: series(i), value: median(&values), interval, after, degraded: false, limit: None }
        };
        Row {
            name: shared.name(),
            detail: format!("{} pairs, median and range", by_state.values().map(Vec::len).max().unwrap_or(0)),
            bars: states.iter().enumerate().map(bar).collect(),
        }
    };
    groups.into_iter().map(row).collect()
}

/// All pairs as a map, one for each state of the line and, where they differ, each home.
pub(crate) fn maps(set: Set<'_>) -> Vec<Box<dyn Panel>> {
    // Usually each reader's own node is home; then one map holds them all.
    let own = set.ms.iter().all(|m| m.at.memory_node.is_none() || m.at.memory_node == m.at.cpu_node);
    let home = |m: &Measurement| if own { None } else { m.at.memory_node };
    let keys: BTreeSet<(Option<LineState>, Option<u32>)> = set.ms.iter().map(|m| (m.at.state, home(m))).collect();
    let mut panels: Vec<Box<dyn Panel>> = Vec::new();
    for (state, node) in keys {
        let part = Set { ms: set.ms.iter().copied().filter(|m| (m.at.state, home(m)) == (state, node)).collect(), ..set };
        let nodes = part.ms.iter().filter_map(|m| m.at.memory_node).collect::<BTreeSet<_>>();
        let homes = match (own, node.or_else(|| nodes.first().copied().filter(|_| nodes.len() == 1))) {
            (_, Some(node)) => format!("lines at home on node {node}"),
            (true, None) if !nodes.is_empty() => "lines at home on the reader's node".to_owned(),
            _ => String::new(),
        };
        let title = match state {
            Some(LineState::Hit) => "Core-to-core latency, HIT",
            Some(LineState::Hitm) => "Core-to-core latency, HITM",
            None => "Core-to-core latency",
        };
        let state = state.map(|s| state_name(Some(s))).unwrap_or_default();
        let pages = common_pages(std::slice::from_ref(&part));
        let mut words = Words::new(part.title(title), about(&["ns per line", state, &homes, &pages]));
        notes(&mut words, std::slice::from_ref(&part), false);
        panels.push(Box::new(map(words, &part)));
    }
    panels
}

fn map(words: Words, set: &Set<'_>) -> HeatMap {
    let topology = &set.report.machine.topology;
    let ids: BTreeSet<u32> = set.ms.iter().flat_map(|m| [m.at.cpu, m.at.holder_cpu]).flatten().collect();
    let mut ids: Vec<u32> = ids.into_iter().collect();
    // Neighbours in the machine stand together: by package, node, and core, so that blocks show what is shared.
    ids.sort_by_key(|id| topology.cpu(*id).map(|c| (c.package, c.node, c.siblings.first(), *id)));
    let place: BTreeMap<u32, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let mut cells = vec![Cell::Void; ids.len() * ids.len()];
    for m in &set.ms {
        let at = m.at.cpu.and_then(|c| place.get(&c)).zip(m.at.holder_cpu.and_then(|c| place.get(&c)));
        if let Some((row, column)) = at {
            cells[row * ids.len() + column] = value_of(&m.estimate).map_or(Cell::Missing, Cell::Value);
        }
    }
    let places = || ids.iter().map(|id| topology.cpu(*id).map(|c| (c.package, c.node)));
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    HeatMap {
        words,
        unit: "ns",
        row_title: "reader CPU ↓".into(),
        column_title: "holder CPU →".into(),
        row_breaks: breaks(places()),
        column_breaks: breaks(places()),
        rows: names.clone(),
        columns: names,
        cells,
        apart: true,
    }
}
