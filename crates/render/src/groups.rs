//! Which measurements belong together: what tables and figures have in common.

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::scan;
use memgauge_model::directory::{FileEvidence, STAND_IN};
use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, Metric, PrefetchRequest};
use memgauge_model::experiment_table::{EXPERIMENTS, Measures, Shape};
use memgauge_model::plan::{Scan, Work};
use memgauge_model::result::{CurveSummary, LevelSummary, Measurement, Report};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use crate::number::value_of;
use crate::pivot::{Pivot, layers};

pub(crate) mod blocks;
pub(crate) mod interleave;
pub(crate) mod nodes;
pub(crate) mod transfers;

/// Which table a measurement belongs to; in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Section {
    /// The first experiment of the table.
    pub(crate) experiment: Experiment,
    /// Transfers between nodes have a table apart from those between chosen CPUs.
    pub(crate) by_node: bool,
}

impl Section {
    pub(crate) fn for_measurement(m: &Measurement) -> Self {
        let by_node = m.experiment == Experiment::CacheToCache && m.at.holder_node.is_some();
        Self { by_node, ..Self::of_experiment(m.experiment) }
    }

    pub(crate) fn of_experiment(experiment: Experiment) -> Self {
        let first = EXPERIMENTS.iter().find(|row| row.title == experiment.row().title);
        Self { experiment: first.map_or(experiment, |row| row.experiment), by_node: false }
    }

    /// The shape of its table.
    pub(crate) fn shape(self) -> Shape {
        self.experiment.row().shape
    }

    /// Whether they are latencies and nothing else.
    pub(crate) fn is_latency(self) -> bool {
        matches!(self.experiment.row().measures, Measures::Latency(_))
    }

    /// The title where several results are shown.
    pub(crate) fn title(self) -> String {
        format!("{}{}", self.experiment.row().title, if self.by_node { " by node" } else { "" })
    }
}

/// A table is a section of one directory and kind of access.
pub(crate) type Table<'a> = (Section, Option<&'a str>, Option<Access>);

/// The results of a report by table, in the order in which they are shown.
pub(crate) fn tables(report: &Report) -> BTreeMap<Table<'_>, Vec<&Measurement>> {
    let all: Vec<&Measurement> = report.results.iter().collect();
    layers(&all, |m| (Section::for_measurement(m), m.at.memory_dir.as_deref(), m.at.access))
}

/// What a chase in this order measures.
pub(crate) const fn order_meaning(order: ChaseOrder) -> &'static str {
    match order {
        ChaseOrder::WindowLocal => "random within a window, which hides most of the address translation",
        ChaseOrder::FullRandom => "random over the whole buffer, address translation included",
        ChaseOrder::Sequential => "ascending, helped by prefetchers",
    }
}

/// The end of a title, after the measured quantity: the order of accesses, and the files if memory is in files.
pub(crate) fn where_and_how(m: &Measurement) -> String {
    let order = m.at.access.map(|access| format!(", {}", wording::access(access))).unwrap_or_default();
    let label = m.evidence.file.as_ref().map(FileEvidence::label).or_else(|| m.at.memory_dir.clone());
    order + &label.map(|label| format!(", files in {label}")).unwrap_or_default()
}

/// The same of a place, without a comma before it.
pub(crate) fn where_and_how_at(report: &Report, at: &Coordinates) -> String {
    let order = at.access.map(|access| wording::access(access).to_owned());
    let stand_in = if report.stand_in(at).is_some() { STAND_IN } else { "" };
    let files = at.memory_dir.as_ref().map(|directory| format!("files in {directory}{stand_in}"));
    [order, files].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether it is of memory that did not return what was written to it: as a scan or a check of traffic found, or as a loop's proof says.
pub(crate) fn corrupted(m: &Measurement) -> bool {
    scan::corrupted(m) || m.evidence.proof.as_ref().is_some_and(|proof| proof.mismatches > 0)
}

/// How many results are of such memory.
pub(crate) fn corrupted_results(report: &Report) -> usize {
    report.measurements().filter(|m| corrupted(m)).count()
}

/// How many threads loaded memory.
pub(crate) fn thread_count(m: &Measurement) -> usize {
    m.at.cpus.as_ref().map_or(m.evidence.threads as usize, IdSet::len)
}

/// The measurement with the highest value of each mix.
pub(crate) fn highest_by_mix<'a>(ms: &[&'a Measurement]) -> BTreeMap<Option<Mix>, &'a Measurement> {
    let value = |m: &Measurement| value_of(&m.estimate).unwrap_or(f64::MIN);
    let highest = |ms: Vec<&'a Measurement>| ms.into_iter().reduce(|best, m| if value(m) > value(best) { m } else { best });
    layers(ms, |m| m.at.mix).into_iter().filter_map(|(mix, ms)| Some((mix, highest(ms)?))).collect()
}

/// The mix of a ramp, the node of its CPUs and the node of its memory.
pub(crate) type Ramp = (Option<Mix>, Option<u32>, Option<u32>);

/// Bandwidths by ascending number of CPUs.
pub(crate) fn ramps<'a>(ms: &[&'a Measurement]) -> BTreeMap<Ramp, Vec<&'a Measurement>> {
    let mut ramps = layers(ms, |m| (m.at.mix, m.at.cpu_node, m.at.memory_node()));
    ramps.values_mut().for_each(|points| points.sort_by_key(|m| thread_count(m)));
    ramps
}

/// A curve: what its points share, and the points from the lightest load (the longest delay) to the heaviest.
pub(crate) struct LoadedCurve<'a> {
    pub(crate) at: Coordinates,
    pub(crate) measurements: Vec<&'a Measurement>,
    pub(crate) points: Vec<LoadedPoint<'a>>,
}

impl LoadedCurve<'_> {
    /// What is said of it.
    pub(crate) fn summary<'r>(&self, all: &'r [CurveSummary]) -> Option<&'r CurveSummary> {
        all.iter().find(|summary| summary.at == self.at)
    }
}

/// What was measured at one injection delay.
#[derive(Clone, Copy)]
pub(crate) struct LoadedPoint<'a> {
    pub(crate) delay: Option<u32>,
    pub(crate) latency: Option<&'a Measurement>,
    pub(crate) bandwidth: Option<&'a Measurement>,
}

/// The curves among these measurements, in the order of their coordinates.
pub(crate) fn loaded_curves<'a>(ms: &[&'a Measurement]) -> Vec<LoadedCurve<'a>> {
    let curves = layers(ms, |m| Coordinates { delay_cycles: None, ..m.at.clone() });
    curves.into_iter().map(|(at, measurements)| LoadedCurve { at, points: points(&measurements), measurements }).collect()
}

/// Says which CPU chases where, and which CPUs load what.
pub(crate) fn measured_by(at: &Coordinates) -> String {
    let order = at.order.map(|o| format!(" {}", wording::chase_order(o))).unwrap_or_default();
    let file = if at.memory_dir.is_some() { "a file at " } else { "" };
    let home = at.memory_node().map(|n| format!("{order} in {file}node {n}")).unwrap_or_default();
    let chase = at.cpu.map(|c| format!("CPU {c} chases{home}"));
    let what = at.load_nodes.as_ref().map(|nodes| format!(" memory of {}", wording::nodes(nodes))).unwrap_or_default();
    let load = at.cpus.as_ref().map(|c| format!("{} {}{what}", wording::cpus(c), if c.len() == 1 { "loads" } else { "load" }));
    [chase, load].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn points<'a>(ms: &[&'a Measurement]) -> Vec<LoadedPoint<'a>> {
    let table = Pivot::new(ms, |m| (m.at.delay_cycles, m.metric));
    let point = |delay: &Option<u32>| {
        let at = |metric| table.get(delay, &metric);
        LoadedPoint { delay: *delay, latency: at(Metric::Latency), bandwidth: at(Metric::Bandwidth) }
    };
    table.rows.iter().rev().map(point).collect()
}

/// A curve over the working set: what its points share, and the points by growing size.
pub(crate) struct Sweep<'a> {
    pub(crate) metric: Metric,
    pub(crate) at: Coordinates,
    pub(crate) points: Vec<&'a Measurement>,
}

impl Sweep<'_> {
    /// The levels that were found in it.
    pub(crate) fn levels<'r>(&self, report: &'r Report) -> Option<&'r LevelSummary> {
        report.levels.iter().find(|l| l.at == self.at && l.metric == Some(self.metric))
    }
}

/// The curves among these measurements, latencies first, in the order of their coordinates.
pub(crate) fn sweeps<'a>(ms: &[&'a Measurement]) -> Vec<Sweep<'a>> {
    let by_size = |((metric, at), mut points): ((Metric, Coordinates), Vec<&'a Measurement>)| {
        points.sort_by_key(|m| m.at.working_set);
        Sweep { metric, at, points }
    };
    layers(ms, |m| (m.metric, Coordinates { working_set: None, ..m.at.clone() })).into_iter().map(by_size).collect()
}

/// A row for each node and state of the prefetchers, a column for each metric and order.
pub(crate) type PrefetchTable<'a> = Pivot<'a, PrefetchRow, (Metric, Option<ChaseOrder>)>;

/// Node of the memory, and the state of the prefetchers.
pub(crate) type PrefetchRow = (Option<u32>, Option<PrefetchRequest>);

/// The table of these results.
pub(crate) fn by_prefetch<'a>(ms: &[&'a Measurement]) -> PrefetchTable<'a> {
    Pivot::new(ms, |m| ((m.at.memory_node(), m.at.prefetch), (m.metric, m.at.order)))
}

impl<'a> PrefetchTable<'a> {
    /// A state that could not be set has one result for all orders.
    pub(crate) fn find(&self, row: PrefetchRow, metric: Metric, order: Option<ChaseOrder>) -> Option<&'a Measurement> {
        self.get(&row, &(metric, order)).or_else(|| self.get(&row, &(metric, None)))
    }
}

/// The plan of the scan of this node.
pub(crate) fn planned_scan(report: &Report, node: Option<u32>) -> Option<&Scan> {
    let cells = report.plan.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells);
    cells.filter(|c| c.at.memory_node() == node).find_map(|c| match &c.work {
        Work::Scan(scan) => Some(scan),
        _ => None,
    })
}
