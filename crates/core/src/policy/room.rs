//! How much memory the inherited policy leaves.

use crate::interleave::Weights;
use crate::policy::{MemoryPolicy, PolicyMode};
use crate::topology::Allowed;
use crate::units::Bytes;

impl Allowed {
    /// The inherited policy, where it is known and does more than leave memory on the node of the CPU that touches it.
    pub fn inherited_policy(&self) -> Option<&MemoryPolicy> {
        self.memory_policy.as_ref().filter(|policy| !policy.is_local())
    }

    /// The most bytes of memory whose pages are on nodes in turn with these weights, and the node that limits it.
    pub(crate) fn in_turn(&self, weights: &Weights) -> Option<(Bytes, u32)> {
        let most = |(node, _)| Some((Bytes((self.node_memory.get(&node)?.0 as f64 / weights.share(node)) as u64), node));
        weights.iter().filter_map(most).min()
    }

    /// The most bytes that the inherited policy gives to memory which nothing else places, and what limits them, in words; `None` where it may
    /// be on every node.
    pub(crate) fn under_policy(&self) -> Option<(Bytes, String)> {
        let policy = self.inherited_policy()?;
        if let Some((bytes, node)) = policy.turns(&self.nodes).and_then(|weights| self.in_turn(&weights)) {
            return Some((bytes, self.limit_of_node(node)));
        }
        let nodes = policy.nodes.intersection(&self.nodes);
        if policy.mode != PolicyMode::Bind || nodes == self.nodes || nodes.is_empty() {
            return None;
        }
        let bytes = nodes.iter().filter_map(|node| self.node_memory.get(&node)).fold(0u64, |sum, room| sum.saturating_add(room.0));
        let limit = match nodes.first() {
            Some(node) if nodes.len() == 1 => self.limit_of_node(node),
            _ => format!("free memory of nodes {nodes}, which the inherited memory policy names"),
        };
        Some((Bytes(bytes), limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_that_of_the_policys_nodes() {
        let allowed = |policy: MemoryPolicy| Allowed {
            nodes: "0-2".parse().unwrap(),
            node_memory: [(0, Bytes::gib(8)), (1, Bytes::gib(4)), (2, Bytes::gib(1))].into(),
            memory_policy: Some(policy),
            ..Allowed::default()
        };
        let room = |mode, nodes: &str| {
            allowed(MemoryPolicy { mode, nodes: nodes.parse().unwrap(), weights: None }).under_policy().map(|(bytes, _)| bytes)
        };
        assert_eq!(room(PolicyMode::Bind, "2"), Some(Bytes::gib(1)));
        assert_eq!(room(PolicyMode::Bind, "1-2"), Some(Bytes::gib(5)));
        assert_eq!(room(PolicyMode::Interleave, "0-1"), Some(Bytes::gib(8)), "each has half");
        assert_eq!(room(PolicyMode::Preferred, "2"), None, "others have the rest");
        assert_eq!(room(PolicyMode::Bind, "0-2"), None);
        assert_eq!(room(PolicyMode::Default, ""), None);
    }
}
