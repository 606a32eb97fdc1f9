//! What a search for interleave weights found.

use serde::{Deserialize, Serialize};

use crate::experiment::Coordinates;
use crate::interleave::{Goal, Reading, Search, Trial, Weights};

/// The search of one socket's CPUs with one mix. The results have its measurements, with their evidence, by weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterleaveSummary {
    /// The coordinates that all measurements share.
    pub at: Coordinates,
    /// The goal of the weights.
    pub goal: Goal,
    /// The nodes, the nearest first.
    pub nodes: Vec<u32>,
    /// The measured weights, in order of time.
    pub trials: Vec<Trial>,
    /// The weights that came out best.
    pub best: Weights,
    /// The smallest weights that are as good but for one per cent: those to use.
    pub recommended: Weights,
    /// All weights that were measured as good as the best but for one per cent, the most pages on the nearest node first: the plateau.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plateau: Vec<Weights>,
    /// What the recommended weights gain.
    pub gains: Vec<Gain>,
    /// Weights with which nothing else has both more bandwidth and less latency, ascending by bandwidth.
    pub front: Vec<Weights>,
}

/// What the recommended weights gain over others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// Over what.
    pub over: Reference,
    /// Its weights.
    pub weights: Weights,
    /// Relative change of the bandwidth: 0.3 is 30 % more.
    pub bandwidth: Reading,
    /// Relative change of the latency: -0.2 is 20 % less. Absent if one of the two has no latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Reading>,
}

/// What weights are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// The nearest node alone.
    NearestOnly,
    /// As many pages on every node.
    Equal,
    /// The kernel's own weights when the run began.
    Kernel,
}

impl InterleaveSummary {
    /// Sums up a search; `None` if nothing was measured.
    pub fn from_search(at: Coordinates, nodes: &[u32], goal: Goal, kernel: Option<&Weights>, search: &Search) -> Option<Self> {
        let (best, recommended) = (search.best_trial()?, search.recommended()?);
        let references = [
            (Reference::NearestOnly, nodes.first().map(|node| Weights::only(*node))),
            (Reference::Equal, Weights::equal(nodes.iter().copied())),
            (Reference::Kernel, kernel.cloned()),
        ];
        let trial = |weights: &Weights| search.trials.iter().find(|trial| trial.weights == *weights);
        let gains = references.into_iter().filter_map(|(over, weights)| {
            let (weights, other) = weights.and_then(|weights| trial(&weights).map(|trial| (weights.clone(), trial)))?;
            let latency = recommended.latency_ns.zip(other.latency_ns).map(|(ours, theirs)| ours.gain_over(theirs));
            Some(Gain { over, weights, bandwidth: recommended.bandwidth_gbs.gain_over(other.bandwidth_gbs), latency })
        });
        let mut front: Vec<&Trial> = search.trials.iter().filter(|t| t.latency_ns.is_some() && !search.dominated(t)).collect();
        front.sort_by(|a, b| a.bandwidth_gbs.value.total_cmp(&b.bandwidth_gbs.value));
        Some(Self {
            at,
            goal,
            nodes: nodes.to_vec(),
            best: best.weights.clone(),
            recommended: recommended.weights.clone(),
            plateau: search.plateau().into_iter().map(|t| t.weights.clone()).collect(),
            gains: gains.collect(),
            front: front.into_iter().map(|t| t.weights.clone()).collect(),
            trials: search.trials.clone(),
        })
    }

    /// The trial of these weights.
    pub fn trial(&self, weights: &Weights) -> Option<&Trial> {
        self.trials.iter().find(|trial| trial.weights == *weights)
    }
}
