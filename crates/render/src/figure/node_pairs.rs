//! Cache-to-cache transfers by node: a map for each home of the lines.

use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::Measurement;

use super::frame::NamedPanel;
use super::heat::{HeatCell, HeatMap, noise};
use super::source::{ResultSet, caption};
use super::transfer::representatives;
use crate::groups::transfers::{HOMES, holder_and_reader_nodes, is_near};

/// The near pair as bars, then the maps.
pub(crate) fn panels(set: ResultSet<'_>) -> Vec<NamedPanel> {
    let (near, far): (Vec<&Measurement>, Vec<&Measurement>) = set.ms.iter().copied().partition(|m| is_near(m));
    let mut panels: Vec<NamedPanel> = Vec::new();
    if !near.is_empty() {
        panels.push((PanelName::TRANSFERS, Box::new(representatives(ResultSet { ms: near, ..set }))));
    }
    let (holders, readers) = holder_and_reader_nodes(&far);
    for (home, is_home) in HOMES {
        let here = set.only(|m| !is_near(m) && is_home(m));
        if here.ms.is_empty() {
            continue;
        }
        let cell = |holder: Option<u32>, reader: Option<u32>| {
            HeatCell::for_measurement(here.ms.iter().copied().find(|m| m.at.holder_node == holder && m.at.cpu_node == reader))
        };
        let parts = ["ns per line, HITM", &format!("lines {home}")];
        let caption = caption(std::slice::from_ref(&here), "Transfers of modified lines between nodes", &parts, false);
        let name = |n: &Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let map = HeatMap {
            caption,
            unit: "ns",
            row_title: "holder's node ↓".into(),
            column_title: "reader's node →".into(),
            rows: holders.iter().map(name).collect(),
            columns: readers.iter().map(name).collect(),
            cells: holders.iter().flat_map(|h| readers.iter().map(move |r| (*h, *r))).map(|(h, r)| cell(h, r)).collect(),
            noise: noise(&here.ms),
            ..HeatMap::default()
        };
        panels.push((PanelName::TRANSFERS_BY_NODE, Box::new(map)));
    }
    panels
}
