//! Cache-to-cache transfers: chosen pairs as bars, all pairs as a map.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::LineState;
use memgauge_model::result::{PairMatrix, Report};
use memgauge_model::stats::median;
use memgauge_model::topology::Topology;

use crate::figure::bars::{Bar, BarRow, Bars};
use crate::figure::frame::{Caption, Panel, boxed};
use crate::figure::heat::{HeatCell, HeatMap, breaks, noise};
use crate::figure::palette::{Style, series};
use crate::figure::source::{ResultSet, about};
use crate::groups::transfers::{self, Pair, PairHome, Relation, STATES, pair_maps};
use crate::number::{bounds, number, value_of};

/// More pairs than this are summed up by the relation of their CPUs.
const LISTED: usize = 40;

fn state_name(state: Option<LineState>) -> &'static str {
    match state {
        Some(LineState::Hit) => "HIT (the holder has loaded the line)",
        Some(LineState::Hitm) => "HITM (the holder has modified it)",
        None => "state not stated",
    }
}

/// Chosen pairs as bars, one for each state of the line.
pub(crate) fn representatives(set: &ResultSet<'_>) -> Bars {
    let table = transfers::by_pair(&set.ms, &set.report.machine.topology);
    let pairs = &table.rows;
    let states: Vec<Option<LineState>> = STATES.into_iter().map(|s| s.0).filter(|state| table.columns.contains(state)).collect();
    let rows = if pairs.len() > LISTED {
        by_relation(set, &states)
    } else {
        let cpu = |id: Option<u32>| id.map_or_else(|| "?".to_owned(), |id| id.to_string());
        let row = |of: &(Relation, Pair)| {
            let (relation, pair) = of;
            let home = pair.2.map(|n| format!(", home node {n}")).unwrap_or_default();
            BarRow {
                name: format!("CPU {} from {}", cpu(pair.0), cpu(pair.1)),
                detail: format!("{}{home}", relation.name()),
                bars: states.iter().enumerate().map(|(i, state)| Bar::for_measurement(table.get(of, state), series(i))).collect(),
            }
        };
        pairs.iter().map(row).collect()
    };
    let parts = ["ns per line", "home: the node of the line's memory"];
    let mut caption = set.caption("Cache-to-cache transfers", &parts, false);
    caption.key = states.iter().enumerate().map(|(i, s)| (Style::of_bars(i), state_name(*s).to_owned())).collect();
    if pairs.len() > LISTED && set.ms.iter().any(|m| value_of(&m.estimate).is_some() && !m.is_reliable()) {
        caption.notes.push("Medians and ranges are of what is reliable.".to_owned());
    }
    Bars { caption, unit: "ns", rows, limit_name: None }
}

/// For each relation of two CPUs the median of its pairs, with their range as whisker.
fn by_relation(set: &ResultSet<'_>, states: &[Option<LineState>]) -> Vec<BarRow> {
    let groups = transfers::by_relation(&set.ms, &[], &set.report.machine.topology);
    let relations: BTreeSet<&Relation> = groups.keys().map(|k| &k.0).collect();
    let row = |relation: &Relation| {
        let values = |state: Option<LineState>| groups.get(&(relation.clone(), state)).map_or(&[][..], Vec::as_slice);
        let bar = |(i, state): (usize, &Option<LineState>)| {
            let interval = bounds(values(*state).iter().copied());
            let after = interval.map(|(low, high)| format!("({}–{})", number(low), number(high))).unwrap_or_default();
            Bar { colour: series(i), value: median(values(*state)), interval, after, doubt: None, limit: None }
        };
        BarRow {
            name: relation.name(),
            detail: format!("{} pairs, median and range", states.iter().map(|s| values(*s).len()).max().unwrap_or(0)),
            bars: states.iter().enumerate().map(bar).collect(),
        }
    };
    relations.into_iter().map(row).collect()
}

/// All pairs as a map, one for each state of the line and, where they differ, each home.
pub(crate) fn maps(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    boxed(pair_maps(&set.ms).into_iter().map(|m| {
        let part = ResultSet { ms: m.table.measurements(), ..*set };
        let home = match m.home {
            PairHome::Node(node) => format!("lines at home on node {node}"),
            PairHome::Reader if part.ms.iter().any(|m| m.at.memory_node().is_some()) => "lines at home on the reader's node".to_owned(),
            PairHome::Reader => String::new(),
        };
        let (title, state) = match m.state {
            Some(state) => (format!("Core-to-core latency, {}", m.state_name), state_name(Some(state))),
            None => ("Core-to-core latency".to_owned(), ""),
        };
        let caption = part.caption(&title, &["ns per line", state, &home], false);
        let noise = noise(&part.ms);
        let cells = part.ms.iter().filter_map(|m| Some((m.at.cpu?, m.at.holder_cpu?, HeatCell::for_measurement(Some(m)))));
        HeatMap { noise, ..map(caption, &set.report.machine.topology, &transfers::cpus(&part.ms), cells) }
    }))
}

/// All pairs of many CPUs as a map.
pub(crate) fn matrix(matrix: &PairMatrix, report: &Report) -> Box<dyn Panel> {
    let home = matrix.home.map_or_else(|| "lines at home on the reader's node".to_owned(), |node| format!("lines at home on node {node}"));
    let state = STATES.into_iter().find(|s| s.0 == Some(matrix.state)).map_or("", |s| s.1);
    let about = about(&["ns per line", state_name(Some(matrix.state)), &home]);
    let mut caption = Caption::new(format!("Core-to-core latency, {state}"), about);
    let (_, degraded, missing) = matrix.counts();
    if degraded + missing > 0 {
        caption.notes.push(format!("Degraded, {degraded}; missing, {missing}."));
    }
    let cells = matrix.pairs().map(|pair| (pair.reader, pair.holder, HeatCell::Value(pair.value)));
    Box::new(map(caption, &report.machine.topology, &matrix.cpus.iter().copied().collect(), cells))
}

fn map(caption: Caption, topology: &Topology, ids: &BTreeSet<u32>, pairs: impl Iterator<Item = (u32, u32, HeatCell)>) -> HeatMap {
    let mut ids: Vec<u32> = ids.iter().copied().collect();
    // Sorted by package, node and core, so that blocks show what CPUs share.
    ids.sort_by_key(|id| topology.cpu(*id).map(|c| (c.package, c.node, c.siblings.first(), *id)));
    let place: BTreeMap<u32, usize> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let mut cells = vec![HeatCell::Void; ids.len() * ids.len()];
    for (reader, holder, cell) in pairs {
        if let Some((row, column)) = place.get(&reader).zip(place.get(&holder)) {
            cells[row * ids.len() + column] = cell;
        }
    }
    let places = || ids.iter().map(|id| topology.cpu(*id).map(|c| (c.package, c.node)));
    let names: Vec<String> = ids.iter().map(u32::to_string).collect();
    HeatMap {
        caption,
        unit: "ns",
        row_title: "reader CPU ↓".into(),
        column_title: "holder CPU →".into(),
        row_breaks: breaks(places()),
        column_breaks: breaks(places()),
        rows: names.clone(),
        columns: names,
        cells,
        separate_low: true,
        ..HeatMap::default()
    }
}
