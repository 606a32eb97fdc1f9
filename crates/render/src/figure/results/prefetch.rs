//! Prefetchers on and off: bandwidth and latency of each node's memory, a bar for each state.

use memgauge_model::experiment::{ChaseOrder, Metric, PrefetchRequest};

use crate::figure::bars::{Bar, BarRow, Bars};
use crate::figure::frame::{Panel, boxed};
use crate::figure::palette::{Style, series};
use crate::figure::source::ResultSet;
use crate::groups::by_prefetch;
use crate::pivot::sorted;
use memgauge_model::wording;

/// Bandwidth and latency of one result.
pub(crate) fn panels(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    boxed([Metric::Bandwidth, Metric::Latency].into_iter().filter_map(|metric| bars(set, metric)))
}

fn bars(all: &ResultSet<'_>, metric: Metric) -> Option<Bars> {
    let set = all.only(|m| m.metric == metric);
    let first = *set.ms.first()?;
    let latency = metric == Metric::Latency;
    let table = by_prefetch(&set.ms);
    let (nodes, states) = (sorted(table.rows.iter().map(|row| row.0)), sorted(table.rows.iter().map(|row| row.1)));
    let orders: &[(Option<ChaseOrder>, &str)] =
        if latency { &[(Some(ChaseOrder::Sequential), "sequential"), (Some(ChaseOrder::WindowLocal), "random")] } else { &[(None, "")] };
    let rows =
        nodes.iter().flat_map(|&node| orders.iter().map(move |&(order, detail)| (node, order, detail))).map(|(node, order, detail)| {
            BarRow {
                name: wording::node(node),
                detail: detail.to_owned(),
                // One CPU's traffic is far from the limit of a node.
                bars: states
                    .iter()
                    .enumerate()
                    .map(|(i, s)| Bar { limit: None, ..Bar::for_measurement(table.find((node, *s), metric, order), series(i)) })
                    .collect(),
            }
        });
    let rows = rows.collect();
    let (title, numbers) = match latency {
        true => ("Idle latency with prefetchers on and off", "ns per dependent load, with the 95 % interval"),
        false => ("Read bandwidth with prefetchers on and off", "GB/s, read in order, with the 95 % interval"),
    };
    let cpus = match (latency, first.at.cpu, &first.at.cpus) {
        (true, Some(cpu), _) => format!("CPU {cpu}"),
        (false, _, Some(cpus)) => wording::cpus(cpus),
        _ => String::new(),
    };
    let mut caption = set.caption(title, &[numbers, &cpus], false);
    caption.key = states
        .iter()
        .enumerate()
        .map(|(i, s)| (Style::of_bars(i), format!("prefetchers {}", s.map_or("?", PrefetchRequest::name))))
        .collect();
    if set.report.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::PrefetchOffNotEffective) {
        caption.notes.push("The registers say off, but the latencies contradict them (see the notes of the result).".to_owned());
    }
    Some(Bars { caption, unit: if latency { "ns" } else { "GB/s" }, rows, limit_name: None })
}
