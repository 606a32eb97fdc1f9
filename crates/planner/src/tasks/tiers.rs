//! Tiers of memory: each kind alone from every node with CPUs, and what load on one does to another.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use memgauge_model::experiment::Experiment;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Delays, Step};
use memgauge_model::spec::{BandwidthShape, LatencyShape};
use memgauge_model::tiers::{self, MemoryKind};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Verb, Way};

use super::loaded::CURVE_POINTS;
use crate::check::{PlanError, unavailable};
use crate::context::Planner;
use crate::room::Reserved;

/// Reads, and two reads to a write: a duplex link such as CXL's may move more of the second.
const MIXES: [Mix; 2] = [Mix::AllReads, Mix::R2W1];

impl Planner<'_> {
    /// The tables of all nodes, and the curves of the nearest node of each tier.
    pub(super) fn tiers(&mut self) -> Result<Vec<Step>, PlanError> {
        let rows: Vec<(u32, Vec<u32>)> = self.cpu_nodes().iter().map(|row| (row, self.tiers_from(row))).collect();
        if rows.iter().all(|(_, tiers)| tiers.len() < 2) {
            return unavailable(self.one_tier());
        }
        let columns = self.columns();
        let bandwidths = self.bandwidth_cells(&BandwidthShape::Matrix, &[], &MIXES, &columns)?;
        let mut steps = vec![self.latency(LatencyShape::Matrix)?, self.step("Bandwidth by node", Experiment::BandwidthMatrix, bandwidths)];
        let (mut alone, mut disturbed, mut together) = (Vec::new(), Vec::new(), Vec::new());
        for (row, tiers) in &rows {
            let (Some((chaser, loading)), Some((&near, others))) = (self.chaser_and_loaders(*row), tiers.split_first()) else { continue };
            for node in tiers {
                alone.extend(self.tier_curves(chaser, &loading, *node, &IdSet::one(*node))?);
            }
            for &other in others {
                disturbed.extend(self.tier_curves(chaser, &loading, near, &IdSet::one(other))?);
                disturbed.extend(self.tier_curves(chaser, &loading, other, &IdSet::one(near))?);
                if loading.len() > 1 {
                    together.extend(self.tier_curves(chaser, &loading, near, &[near, other].into_iter().collect())?);
                } else {
                    let message = format!("load on two tiers together from node {row} needs three cores there");
                    self.notes.push(Note::warning(NoteCode::NoCoreToLoad, message));
                }
            }
        }
        let titled = [
            ("Latency under load of one tier", alone),
            ("Latency in one tier under load of another", disturbed),
            ("Latency under load of two tiers together", together),
        ];
        let curves = titled.into_iter().filter(|(_, cells)| !cells.is_empty());
        steps.extend(curves.map(|(title, cells)| self.step(title, Experiment::LoadedLatency, cells)));
        Ok(steps)
    }

    /// A curve for each mix: the chase in `node`, the loaders' memory on `load_nodes`.
    fn tier_curves(&mut self, chaser: u32, loading: &[u32], node: u32, load_nodes: &IdSet) -> Result<Vec<Cell>, PlanError> {
        let mut cells = Vec::new();
        for mix in self.mixes(&MIXES[..1])? {
            let probe = self.probe(chaser, node)?;
            let loaders = self.loaders_on(loading, load_nodes, Reserved::Buffer(&probe.buffer))?;
            let mut cell = self.curve_cell(probe, loaders, mix, Delays::Adaptive { points: CURVE_POINTS })?;
            cell.at.load_nodes = Some(load_nodes.clone());
            cells.push(cell);
        }
        Ok(cells)
    }

    /// The nodes that stand for the tiers of these CPUs, their own first: those that are named, otherwise the nearest node of each kind.
    fn tiers_from(&self, row: u32) -> Vec<u32> {
        let topology = &self.machine.topology;
        let mut nodes: Vec<(MemoryKind, u32)> =
            tiers::kinds(self.machine).into_iter().filter(|k| self.nodes.contains(k.node)).map(|k| (k.kind, k.node)).collect();
        nodes.sort_by_key(|(kind, node)| (Reverse(*node == row), topology.distance(row, *node), *kind, *node));
        if self.spec.nodes.is_none() {
            let mut seen = BTreeSet::new();
            nodes.retain(|(kind, _)| seen.insert(*kind));
        }
        nodes.into_iter().map(|(_, node)| node).collect()
    }

    /// Why there is nothing to compare, and what was looked at.
    fn one_tier(&self) -> Problem {
        let measured = if self.nodes.len() > 1 { format!("nodes {} have", self.nodes) } else { format!("node {} has", self.nodes) };
        let bare = self.machine.topology.nodes.iter().filter(|n| n.cpus.is_empty() && n.has_memory()).count();
        let suite = words!["'", Verb::Suite, "'"];
        let advice = match &self.spec.nodes {
            Some(_) => Way::name("at least two", Knob::Node).into(),
            None if self.nodes.len() > 1 => Way::name("nodes", Knob::Node).to("compare them all the same").or(suite.after("use ")),
            None => suite.followed_by(" measures this one").into(),
        };
        let no_other = self.machine.identity.system.words().no_other_tier;
        let what = format!(
            "this machine has one tier of memory that may be used: {measured} one kind, {bare} nodes are without CPUs, and {no_other}"
        );
        Problem::new(what, advice)
    }
}
