//! Cache-to-cache transfers by node: a map for each home of the lines.

use memgauge_model::experiment_table::PanelName;

use super::transfer::representatives;
use crate::figure::frame::NamedPanel;
use crate::figure::heat::HeatMap;
use crate::figure::source::ResultSet;
use crate::groups::transfers::by_node;

/// The near pair as bars, then the maps.
pub(crate) fn panels(set: &ResultSet<'_>) -> Vec<NamedPanel> {
    let (near, maps) = by_node(&set.ms);
    let mut panels: Vec<NamedPanel> = Vec::new();
    if !near.is_empty() {
        panels.push((PanelName::TRANSFERS, Box::new(representatives(&ResultSet { ms: near, ..*set }))));
    }
    for (home, table) in maps {
        let here = ResultSet { ms: table.measurements(), ..*set };
        let parts = ["ns per line, HITM", &format!("lines {home}")];
        let caption = here.caption("Transfers of modified lines between nodes", &parts, false);
        let name = |n: &Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let map = HeatMap {
            row_title: "holder's node ↓".into(),
            column_title: "reader's node →".into(),
            ..HeatMap::of(caption, &table, name, name)
        };
        panels.push((PanelName::TRANSFERS_BY_NODE, Box::new(map)));
    }
    panels
}
