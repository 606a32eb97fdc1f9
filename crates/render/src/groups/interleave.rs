//! Interleave weights: the trials in the order in which they are shown, and what weights are called.

use memgauge_model::interleave::{Trial, Weights};
use memgauge_model::result::InterleaveSummary;

/// The trials, those with the most pages on the nearest node first.
pub(crate) fn by_share(summary: &InterleaveSummary) -> Vec<&Trial> {
    let near = summary.nodes.first().copied().unwrap_or(0);
    let mut trials: Vec<&Trial> = summary.trials.iter().collect();
    trials.sort_by(|a, b| b.weights.share(near).total_cmp(&a.weights.share(near)));
    trials
}

/// `3:1` in the order of the nodes, or the one node that has all pages.
pub(crate) fn ratio(summary: &InterleaveSummary, weights: &Weights) -> String {
    if let Some(node) = weights.only_node() {
        return format!("node {node} only");
    }
    let weight = |node: &u32| weights.iter().find(|(n, _)| n == node).map_or(0, |(_, weight)| weight).to_string();
    summary.nodes.iter().map(weight).collect::<Vec<_>>().join(":")
}
