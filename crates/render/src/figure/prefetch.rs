//! Prefetchers on and off: bandwidth and latency of each node's memory, a bar for each state.

use std::collections::BTreeSet;

use memgauge_core::experiment::{ChaseOrder, Experiment, PrefetchRequest};
use memgauge_core::result::Measurement;

use super::bars::{Bar, Bars, Row};
use super::frame::{Panel, Words};
use super::palette::series;
use super::source::{Set, about, bar, common_pages, notes};
use crate::text::cpus_name;

/// Bandwidth and latency of one result.
pub(crate) fn panels(set: Set<'_>) -> Vec<Box<dyn Panel>> {
    [Experiment::Bandwidth, Experiment::IdleLatency]
        .into_iter()
        .filter_map(|of| bars(&set, of))
        .map(|b| Box::new(b) as Box<dyn Panel>)
        .collect()
}

fn bars(all: &Set<'_>, experiment: Experiment) -> Option<Bars> {
    let set = Set { ms: all.ms.iter().copied().filter(|m| m.experiment == experiment).collect(), ..*all };
    let first = *set.ms.first()?;
    let latency = experiment == Experiment::IdleLatency;
    let states: Vec<Option<PrefetchRequest>> = set.ms.iter().map(|m| m.at.prefetch).collect::<BTreeSet<_>>().into_iter().collect();
    let nodes: BTreeSet<Option<u32>> = set.ms.iter().map(|m| m.at.memory_node).collect();
    let find = |node: Option<u32>, order: Option<ChaseOrder>, state: Option<PrefetchRequest>| -> Option<&Measurement> {
        let here = || set.ms.iter().copied().filter(move |m| m.at.memory_node == node && m.at.prefetch == state);
        // A state that could not be set has one result for both orders.
        here().find(|m| m.at.order == order).or_else(|| here().find(|m| m.at.order.is_none()))
    };
    let orders: &[(Option<ChaseOrder>, &str)] =
        if latency { &[(Some(ChaseOrder::Sequential), "sequential"), (Some(ChaseOrder::WindowLocal), "random")] } else { &[(None, "")] };
    let rows =
        nodes.iter().flat_map(|&node| orders.iter().map(move |&(order, detail)| (node, order, detail))).map(|(node, order, detail)| Row {
            name: node.map_or_else(|| "own node".to_owned(), |n| format!("node {n}")),
            detail: detail.to_owned(),
            // One CPU's traffic is far from the limit of a node.
            bars: states.iter().enumerate().map(|(i, s)| Bar { limit: None, ..bar(find(node, order, *s), series(i)) }).collect(),
        });
    let rows = rows.collect();
    let (title, numbers) = match latency {
        true => ("Idle latency with prefetchers on and off", "ns per dependent load, with the 95 % interval"),
        false => ("Read bandwidth with prefetchers on and off", "GB/s, read in order, with the 95 % interval"),
    };
    let who = match (latency, first.at.cpu, &first.at.cpus) {
        (true, Some(cpu), _) => format!("CPU {cpu}"),
        (false, _, Some(cpus)) => cpus_name(cpus),
        _ => String::new(),
    };
    let mut words = Words::new(set.title(title), about(&[numbers, &who, &common_pages(std::slice::from_ref(&set))]));
    words.key =
        states.iter().enumerate().map(|(i, s)| (series(i), format!("prefetchers {}", s.map_or("?", PrefetchRequest::name)))).collect();
    notes(&mut words, std::slice::from_ref(&set), false);
    if set.report.notes.iter().any(|n| n.code == memgauge_core::conclusions::prefetchers::NOT_EFFECTIVE) {
        words.notes.push("Off is what the registers say; latencies contradict them (see the notes of the result).".to_owned());
    }
    Some(Bars { words, unit: if latency { "ns" } else { "GB/s" }, rows, limit_name: None })
}
