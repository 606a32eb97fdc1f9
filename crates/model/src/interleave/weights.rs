//! Weights of nodes, as the kernel's policy of weighted interleave counts pages with them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::units::{IdSet, ParseError};

/// The largest sum of weights that is searched. Finer ratios differ by less than memory's bandwidth varies, and a round of more pages is longer
/// than many allocations.
pub const MAX_TOTAL: u32 = 32;
/// The kernel keeps a weight in a byte.
const MAX_WEIGHT: u32 = 255;

/// Pages in turn on each of some nodes: with 3 on node 0 and 1 on node 2, every fourth page is on node 2. Those that are computed have
/// no common divisor. Those that a user gives are kept as given, because other nodes keep their weights in the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Weights(BTreeMap<u32, u32>);

impl Weights {
    /// These weights by node, divided by what they have in common. Nodes of weight 0 have no pages. `None` if no node has any.
    pub fn new(weights: impl IntoIterator<Item = (u32, u32)>) -> Option<Self> {
        let mut weights: BTreeMap<u32, u32> = weights.into_iter().filter(|(_, weight)| *weight > 0).collect();
        let common = weights.values().copied().fold(0, gcd);
        weights.values_mut().for_each(|weight| *weight /= common.max(1));
        (!weights.is_empty()).then_some(Self(weights))
    }

    /// All pages on one node.
    pub fn only(node: u32) -> Self {
        Self(BTreeMap::from([(node, 1)]))
    }

    /// As many pages on each node.
    pub fn equal(nodes: impl IntoIterator<Item = u32>) -> Option<Self> {
        Self::new(nodes.into_iter().map(|node| (node, 1)))
    }

    /// Weights of the nodes of both, with each ratio kept, so that the kernel's one list serves both. `None` if there are none
    /// that the kernel can keep.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        let shared = self.0.iter().find_map(|(node, own)| Some((*own, *other.0.get(node)?)));
        let (own_times, other_times) = shared.map_or((1, 1), |(own, others)| {
            let common = gcd(own, others).max(1);
            (others / common, own / common)
        });
        let scaled = |weights: &Self, times: u32| weights.iter().map(|(node, weight)| Some((node, weight.checked_mul(times)?))).collect();
        let (own, others): (Option<Vec<_>>, Option<Vec<_>>) = (scaled(self, own_times), scaled(other, other_times));
        let mut all = BTreeMap::new();
        for (node, weight) in own?.into_iter().chain(others?) {
            if weight > MAX_WEIGHT || all.insert(node, weight).is_some_and(|before| before != weight) {
                return None;
            }
        }
        Some(Self(all))
    }

    /// Nodes with their weights, ascending by node.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + '_ {
        self.0.iter().map(|(node, weight)| (*node, *weight))
    }

    /// The nodes that have pages.
    pub fn nodes(&self) -> IdSet {
        self.0.keys().copied().collect()
    }

    /// The node that has all pages, if there is one.
    pub fn only_node(&self) -> Option<u32> {
        self.0.keys().copied().next().filter(|_| self.0.len() == 1)
    }

    /// Pages in a round.
    pub fn total(&self) -> u32 {
        self.0.values().sum()
    }

    /// The share of the pages that a node has.
    pub fn share(&self, node: u32) -> f64 {
        f64::from(self.0.get(&node).copied().unwrap_or(0)) / f64::from(self.total())
    }

    /// The node of a page by its number, as the kernel counts (`weighted_interleave_nid`, mm/mempolicy.c): a round goes over the nodes in
    /// ascending order. For anonymous memory the number is the page's address over the page's size.
    pub fn node_of_page(&self, number: u64) -> u32 {
        let mut left = number % u64::from(self.total());
        for (node, weight) in self.iter() {
            match left.checked_sub(u64::from(weight)) {
                Some(less) => left = less,
                None => return node,
            }
        }
        unreachable!("the number is less than the sum of the weights")
    }
}

/// `0=3,2=1`.
impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<String> = self.iter().map(|(node, weight)| format!("{node}={weight}")).collect();
        f.write_str(&each.join(","))
    }
}

impl FromStr for Weights {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::new(text, "NODE=WEIGHT,NODE=WEIGHT with each weight 1 to 255, such as 0=3,2=1");
        let mut weights = BTreeMap::new();
        for pair in text.split(',') {
            let (node, weight) = pair.split_once('=').ok_or_else(refused)?;
            let number = |part: &str| part.trim().parse::<u32>().map_err(|_| refused());
            let weight = number(weight)?;
            if !(1..=MAX_WEIGHT).contains(&weight) || weights.insert(number(node)?, weight).is_some() {
                return Err(refused());
            }
        }
        Ok(Self(weights))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_on_the_nodes_in_turn() {
        let weights = Weights::new([(2, 2), (0, 6)]).unwrap();
        assert_eq!((weights.to_string().as_str(), weights.total(), weights.share(2)), ("0=3,2=1", 4, 0.25));
        let nodes: Vec<u32> = (0..9).map(|page| weights.node_of_page(page)).collect();
        assert_eq!(nodes, [0, 0, 0, 2, 0, 0, 0, 2, 0]);
        assert_eq!(Weights::only(5).only_node(), Some(5));
    }

    #[test]
    fn given_weights_are_kept_as_given() {
        let weights: Weights = "1=10,0=10".parse().unwrap();
        assert_eq!(
            (weights.to_string().as_str(), weights.total(), weights.node_of_page(9), weights.node_of_page(10)),
            ("0=10,1=10", 20, 0, 1)
        );
    }

    #[test]
    fn one_list_serves_two_searches_where_their_ratios_allow_it() {
        let joined = |a: &str, b: &str| {
            let (a, b): (Weights, Weights) = (a.parse().unwrap(), b.parse().unwrap());
            a.joined(&b).map(|both| both.to_string())
        };
        assert_eq!(joined("0=3,2=1", "1=2,3=1").as_deref(), Some("0=3,1=2,2=1,3=1"), "nothing shared");
        assert_eq!(joined("0=3,2=1", "1=2,2=1").as_deref(), Some("0=3,1=2,2=1"));
        assert_eq!(joined("0=3,2=1", "1=3,2=2").as_deref(), Some("0=6,1=3,2=2"), "each keeps its ratio");
        assert_eq!(joined("0=3,2=1", "0=2,2=1"), None);
        assert_eq!(joined("0=200,2=1", "1=3,2=2"), None, "the kernel keeps a byte");
        assert_eq!(joined("0=3,2=1", "0=3,2=1").as_deref(), Some("0=3,2=1"));
    }

    #[test]
    fn wrong_weights_are_refused() {
        for text in ["", "0", "0=0", "0=256", "0=1,0=2", "0=1;1=1", "a=1", "0=1,"] {
            assert!(text.parse::<Weights>().is_err(), "{text}");
        }
    }
}
