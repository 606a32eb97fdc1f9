//! A search for interleave weights over tiers of given capacities.

use std::collections::BTreeMap;

use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::interleave::{Goal, Reading, Search, Trial, Weights};
use memgauge_model::result::{InterleaveSummary, Report};
use memgauge_model::traffic::{Mix, Rfo};
use memgauge_model::units::IdSet;

use super::build::Lab;
use super::cxl_lab;

/// Capacity in GB/s and latency in ns of each node.
const TIERS: [(u32, f64, f64); 3] = [(0, 261.4, 108.9), (2, 121.0, 254.1), (3, 61.0, 338.7)];

/// The first tiers of the machine with CXL memory, searched from a socket.
pub fn interleave(tiers: usize, goal: Goal) -> Report {
    let nodes: Vec<u32> = TIERS.iter().take(tiers).map(|(node, ..)| *node).collect();
    let search = searched(&nodes, goal);
    let at = Coordinates {
        cpu_node: Some(0),
        cpu: Some(0),
        cpus: Some("1-15".parse::<IdSet>().unwrap()),
        mix: Some(Mix::AllReads),
        ..Coordinates::default()
    };
    let mut lab: Lab = cxl_lab();
    for trial in &search.trials {
        lab.bandwidth(Experiment::Interleave, Some(0), None, "1-15", Mix::AllReads, trial.bandwidth_gbs.value, "load-avx512", Rfo::No);
    }
    let mut report = lab.report();
    for (m, trial) in report.results.iter_mut().zip(&search.trials) {
        m.at = Coordinates { weights: Some(trial.weights.clone()), ..at.clone() };
    }
    let kernel = Weights::new(nodes.iter().map(|node| (*node, if *node == 0 { 5 } else { 1 })));
    report.interleaves = InterleaveSummary::from_search(at, &nodes, goal, kernel.as_ref(), &search).into_iter().collect();
    report
}

/// What the slowest tier for its share allows, and a latency that grows with the load of each.
fn searched(nodes: &[u32], goal: Goal) -> Search {
    let tiers: BTreeMap<u32, (f64, f64)> = TIERS.iter().map(|(node, gbs, ns)| (*node, (*gbs, *ns))).collect();
    let always: Vec<Weights> = Weights::new(nodes.iter().map(|node| (*node, if *node == 0 { 5 } else { 1 }))).into_iter().collect();
    let mut search = Search::new(nodes.to_vec(), goal);
    let mut measure = |weights: &Weights| {
        let most = weights.iter().map(|(node, _)| tiers[&node].0 / weights.share(node)).fold(f64::INFINITY, f64::min);
        let gbs = 0.97 * most;
        let served = if let Goal::LatencyAt(demand) = goal { demand } else { gbs };
        let wait = |(node, _): (u32, u32)| {
            let used = weights.share(node) * served / tiers[&node].0;
            weights.share(node) * (tiers[&node].1 + 12.0 * used / (1.0 - used).max(0.02))
        };
        let latency = (served <= gbs).then(|| weights.iter().map(wait).sum::<f64>());
        let reading = |value: f64| Reading { value, half: 0.006 * value };
        Ok::<_, ()>(Trial { weights: weights.clone(), bandwidth_gbs: reading(gbs), latency_ns: latency.map(reading), measured: 1 })
    };
    search.run(&always, &mut measure).unwrap();
    search
}
