//! Cache-to-cache transfers: what the two CPUs share, and where the lines are at home.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::LineState;
use memgauge_model::result::{Measurement, PairMatrix};
use memgauge_model::topology::Topology;

use crate::number::value_of;
use crate::pivot::{Pivot, layers};

/// The states of a line, in the order in which they are shown.
pub(crate) const STATES: [(Option<LineState>, &str); 3] =
    [(Some(LineState::Hit), "HIT"), (Some(LineState::Hitm), "HITM"), (None, "state not stated")];

/// The nearest thing that two CPUs share, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    SameCore,
    SameCache(u8),
    SameNode,
    SamePackage,
    OtherPackage,
    Unknown,
}

impl Relation {
    pub(crate) fn between(topology: &Topology, a: Option<u32>, b: Option<u32>) -> Self {
        let (Some(a), Some(b)) = (a.and_then(|c| topology.cpu(c)), b.and_then(|c| topology.cpu(c))) else {
            return Self::Unknown;
        };
        if a.siblings.contains(b.id) {
            return Self::SameCore;
        }
        match topology.cpu_caches(a.id).filter(|c| c.cpus.contains(b.id)).map(|c| c.level).min() {
            Some(level) => Self::SameCache(level),
            None if a.package != b.package => Self::OtherPackage,
            None if a.node == b.node => Self::SameNode,
            None => Self::SamePackage,
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::SameCore => "same core".into(),
            Self::SameCache(level) => format!("same L{level}"),
            Self::SameNode => "same node".into(),
            Self::SamePackage => "same package".into(),
            Self::OtherPackage => "other package".into(),
            Self::Unknown => "not known".into(),
        }
    }
}

/// Reader, holder, and the home node of the lines.
pub(crate) type Pair = (Option<u32>, Option<u32>, Option<u32>);

/// A row for each pair, nearest first, a column for each state of the line.
pub(crate) type PairTable<'a> = Pivot<'a, (Relation, Pair), Option<LineState>>;

/// The table of these pairs.
pub(crate) fn by_pair<'a>(ms: &[&'a Measurement], topology: &Topology) -> PairTable<'a> {
    let pair = |m: &Measurement| (m.at.cpu, m.at.holder_cpu, m.at.memory_node());
    Pivot::new(ms, |m| ((Relation::between(topology, m.at.cpu, m.at.holder_cpu), pair(m)), m.at.state))
}

/// Values by relation and state of the line.
pub(crate) type ByRelation = BTreeMap<(Relation, Option<LineState>), Vec<f64>>;

/// The values of all pairs by relation and state of the line: those that are reliable, and those of matrices.
pub(crate) fn by_relation(ms: &[&Measurement], matrices: &[PairMatrix], topology: &Topology) -> ByRelation {
    let single = ms.iter().map(|m| ([m.at.cpu, m.at.holder_cpu], m.at.state, value_of(&m.estimate).filter(|_| m.is_reliable())));
    let of_matrices =
        matrices.iter().flat_map(|m| m.pairs().map(|pair| ([Some(pair.reader), Some(pair.holder)], Some(m.state), Some(pair.value))));
    let mut groups = ByRelation::new();
    for ([reader, holder], state, value) in single.chain(of_matrices) {
        groups.entry((Relation::between(topology, reader, holder), state)).or_default().extend(value);
    }
    groups
}

/// Pairs of CPUs whose lines are in one state, and whose lines share a home.
pub(crate) struct PairMap<'a> {
    pub(crate) state: Option<LineState>,
    /// The name of the state.
    pub(crate) state_name: &'static str,
    pub(crate) home: PairHome,
    /// A row for each reader, a column for each holder, both of them all CPUs.
    pub(crate) table: Pivot<'a, Option<u32>, Option<u32>>,
}

/// The CPUs that read or hold.
pub(crate) fn cpus(ms: &[&Measurement]) -> BTreeSet<u32> {
    ms.iter().flat_map(|m| [m.at.cpu, m.at.holder_cpu]).flatten().collect()
}

/// Where the lines of all pairs of a map are at home.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PairHome {
    /// Each reader's own node, or not stated.
    Reader,
    /// One node for all.
    Node(u32),
}

/// Splits all pairs by state and home. Usually each reader's own node is the home, and one map for each state holds them all.
pub(crate) fn pair_maps<'a>(ms: &[&'a Measurement]) -> Vec<PairMap<'a>> {
    let own = ms.iter().all(|m| m.at.memory_node().is_none() || m.at.memory_node() == m.at.cpu_node);
    let home = |m: &Measurement| m.at.memory_node().filter(|_| !own).map_or(PairHome::Reader, PairHome::Node);
    let all: Vec<Option<u32>> = cpus(ms).into_iter().map(Some).collect();
    let mut maps: Vec<PairMap<'a>> = Vec::new();
    for (state, state_name) in STATES {
        let of_state: Vec<&Measurement> = ms.iter().copied().filter(|m| m.at.state == state).collect();
        for (home, ms) in layers(&of_state, home) {
            let table = Pivot::new(&ms, |m| (m.at.cpu, m.at.holder_cpu)).over(&all, &all);
            maps.push(PairMap { state, state_name, home, table });
        }
    }
    maps
}

/// The possible homes of lines, in words.
const HOMES: [&str; 3] =
    ["at home on the holder's node", "at home on the reader's node", "at home on a third node, the nearest that may be used"];

/// Which of these is the home of a transfer between nodes.
fn home(m: &Measurement) -> usize {
    let nodes = [m.at.holder_node, m.at.cpu_node];
    nodes.iter().position(|node| *node == m.at.memory_node()).unwrap_or(nodes.len())
}

/// Whether it belongs to the near pair: the transfer stays within a node, or its lines are unmodified, which only the near pair has. If each
/// node has one CPU, the modified lines of the near pair are in the matrix.
fn is_near(m: &Measurement) -> bool {
    m.at.holder_node == m.at.cpu_node || m.at.state != Some(LineState::Hitm)
}

/// A row for each holder's node, a column for each reader's.
pub(crate) type NodeTable<'a> = Pivot<'a, Option<u32>, Option<u32>>;

/// The near pair, and the transfers between nodes by the home of their lines, all of the same rows and columns.
pub(crate) fn by_node<'a>(ms: &[&'a Measurement]) -> (Vec<&'a Measurement>, Vec<(&'static str, NodeTable<'a>)>) {
    let (near, far): (Vec<&Measurement>, Vec<&Measurement>) = ms.iter().copied().partition(|m| is_near(m));
    let table = |ms: &[&'a Measurement]| Pivot::new(ms, |m| (m.at.holder_node, m.at.cpu_node));
    let all = table(&far);
    let of_home = |(home, ms): (usize, Vec<_>)| (HOMES[home], table(&ms).over(&all.rows, &all.columns));
    (near, layers(&far, home).into_iter().map(of_home).collect())
}
