//! Cache-to-cache transfers by node: a map for each way of being at home.

use std::collections::BTreeSet;

use memgauge_core::result::Measurement;

use super::frame::{Panel, Words};
use super::heat::{Cell, HeatMap};
use super::source::{Set, about, common_pages, notes};
use super::transfer::representatives;
use crate::text::nodes::{HOMES, is_near};
use crate::text::number::value_of;

/// The near pair as bars, then the maps.
pub(crate) fn panels(set: Set<'_>) -> Vec<Box<dyn Panel>> {
    let (near, far): (Vec<&Measurement>, Vec<&Measurement>) = set.ms.iter().copied().partition(|m| is_near(m));
    let mut panels: Vec<Box<dyn Panel>> = Vec::new();
    if !near.is_empty() {
        panels.push(Box::new(representatives(Set { ms: near, ..set })));
    }
    let of = |node: fn(&Measurement) -> Option<u32>| far.iter().map(|m| node(m)).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
    let (holders, readers) = (of(|m| m.at.holder_node), of(|m| m.at.cpu_node));
    for (home, is_home) in HOMES {
        let here = Set { ms: far.iter().copied().filter(|m| is_home(m)).collect(), ..set };
        if here.ms.is_empty() {
            continue;
        }
        let cell = |holder: Option<u32>, reader: Option<u32>| {
            let found = here.ms.iter().find(|m| m.at.holder_node == holder && m.at.cpu_node == reader);
            found.map_or(Cell::Void, |m| value_of(&m.estimate).map_or(Cell::Missing, Cell::Value))
        };
        let pages = common_pages(std::slice::from_ref(&here));
        let lines = format!("lines {home}");
        let mut words = Words::new(here.title("Transfers of modified lines between nodes"), about(&["ns per line, HITM", &lines, &pages]));
        notes(&mut words, std::slice::from_ref(&here), false);
        let name = |n: &Option<u32>| n.map_or_else(|| "?".to_owned(), |n| n.to_string());
        panels.push(Box::new(HeatMap {
            words,
            unit: "ns",
            row_title: "holder's node ↓".into(),
            column_title: "reader's node →".into(),
            rows: holders.iter().map(name).collect(),
            columns: readers.iter().map(name).collect(),
            cells: holders.iter().flat_map(|h| readers.iter().map(move |r| (*h, *r))).map(|(h, r)| cell(h, r)).collect(),
            row_breaks: Vec::new(),
            column_breaks: Vec::new(),
            apart: false,
        }));
    }
    panels
}
