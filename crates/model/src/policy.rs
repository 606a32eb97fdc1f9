//! The memory policy that a process was started with (`numactl`, `set_mempolicy`): it says where memory goes that nothing else places.

use serde::{Deserialize, Serialize};

use crate::interleave::Weights;
use crate::units::IdSet;

/// A memory policy.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryPolicy {
    /// Its rule.
    pub mode: PolicyMode,
    /// Its nodes, as the control group leaves them; none where the rule has none.
    #[serde(default, skip_serializing_if = "IdSet::is_empty")]
    pub nodes: IdSet,
    /// The kernel's weights of these nodes, for weighted interleave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
}

/// The rule of a memory policy, by the kernel's names (linux/mempolicy.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PolicyMode {
    /// None: the node of the CPU that touches a page first.
    #[default]
    Default,
    /// This node while it has memory, then others.
    Preferred,
    /// These nodes only, the nearest first.
    Bind,
    /// Page after page on each of these nodes in turn.
    Interleave,
    /// The node of the CPU that touches a page first, where all other policies are set aside.
    Local,
    /// These nodes while they have memory, then others.
    PreferredMany,
    /// On each of these nodes in turn, as many pages as its weight says.
    WeightedInterleave,
}

impl MemoryPolicy {
    /// Whether it leaves memory on the node of the CPU that touches it.
    pub fn is_local(&self) -> bool {
        matches!(self.mode, PolicyMode::Default | PolicyMode::Local) || self.nodes.is_empty()
    }

    /// The weights of its nodes among `nodes` if the policy places pages on them in turn; `None` if it places pages on the nearest node, or if
    /// there is only one.
    pub fn turns(&self, nodes: &IdSet) -> Option<Weights> {
        let mine = self.nodes.intersection(nodes);
        let weights = match (self.mode, &self.weights) {
            (PolicyMode::WeightedInterleave, Some(weights)) => Weights::new(weights.iter().filter(|(node, _)| mine.contains(*node))),
            (PolicyMode::Interleave | PolicyMode::WeightedInterleave, _) => Weights::equal(mine.iter()),
            _ => None,
        };
        weights.filter(|weights| weights.only_node().is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(mode: PolicyMode, nodes: &str) -> MemoryPolicy {
        MemoryPolicy { mode, nodes: nodes.parse().unwrap(), weights: None }
    }

    #[test]
    fn pages_are_in_turn_on_the_nodes_that_may_be_used() {
        let all: IdSet = "0-2".parse().unwrap();
        let turns = |policy: &MemoryPolicy, nodes: &IdSet| policy.turns(nodes).map(|w| w.to_string());
        assert_eq!(turns(&policy(PolicyMode::Interleave, "0,2"), &all).unwrap(), "0=1,2=1");
        assert_eq!(turns(&policy(PolicyMode::Interleave, "0,2"), &IdSet::one(2)), None, "one node is no turn");
        let weights = Some("0=3,1=2,2=1".parse().unwrap());
        let weighted = MemoryPolicy { weights, ..policy(PolicyMode::WeightedInterleave, "0,2") };
        assert_eq!(turns(&weighted, &all).unwrap(), "0=3,2=1");
        assert_eq!(turns(&policy(PolicyMode::WeightedInterleave, "0,2"), &all).unwrap(), "0=1,2=1", "the kernel's weights are 1 at first");
        assert_eq!(turns(&policy(PolicyMode::Bind, "0,2"), &all), None);
    }
}
