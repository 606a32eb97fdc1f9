//! The state that the sections of a report share while it is written.

use std::collections::BTreeSet;

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::plan::Cell;
use memgauge_model::result::{Measurement, QualityReason, Report};
use memgauge_model::topology::HmatAccess;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::grid::DETAILED_COLUMNS;
use super::page::Page;
use crate::groups;
use crate::number::value_of;

/// The report, the section's directory, and what was explained already.
pub(super) struct Context<'a> {
    pub(super) report: &'a Report,
    /// Directory whose files the section is about; `None` for memory without a file.
    pub(super) directory: Option<String>,
    /// Reasons whose advice was printed already.
    pub(super) advised: BTreeSet<QualityReason>,
    /// Reasons that hold for every number of the report.
    pub(super) everywhere: BTreeSet<QualityReason>,
    /// Reasons are given below each table, and not once for the whole run.
    pub(super) verbose: bool,
    /// The headline is above: sections list little, and nothing that stands there.
    pub(super) brief: bool,
    /// How intervals are written was explained already.
    intervals_explained: bool,
}

/// On a brief page a matrix with more columns than this shows values only: this many fit into 80 columns of text.
const BRIEF_COLUMNS: usize = 4;

impl<'a> Context<'a> {
    pub(super) fn new(report: &'a Report, verbose: bool) -> Self {
        let all: Vec<&Measurement> = report.results.iter().collect();
        let everywhere = common_reasons(&all);
        Self { report, directory: None, advised: BTreeSet::new(), everywhere, verbose, brief: false, intervals_explained: false }
    }

    /// Describes the numbers of a section; the first section also says what follows the ±.
    pub(super) fn about(&mut self, numbers: &str) -> String {
        if self.brief || std::mem::replace(&mut self.intervals_explained, true) {
            return numbers.to_owned();
        }
        format!("{numbers}, median and 95 % interval")
    }

    /// Whether a matrix with this many columns has room for intervals, and for the names of its columns.
    pub(super) const fn has_room(&self, columns: usize) -> bool {
        columns <= if self.verbose { DETAILED_COLUMNS } else { BRIEF_COLUMNS }
    }

    /// The heading of a section: the title that the plan gave it, or this one, and what its numbers are.
    pub(super) fn heading(&mut self, page: &mut Page, ms: &[&Measurement], title: &str, numbers: &str) {
        let about = self.about(numbers);
        page.heading(&self.title(ms, title), &about);
    }

    /// `CPU 3`, with its node where there are several.
    pub(super) fn cpu_name(&self, cpu: u32) -> String {
        let topology = &self.report.machine.topology;
        match topology.cpu(cpu).filter(|_| topology.nodes.len() > 1) {
            Some(c) => format!("CPU {cpu} (node {})", c.node),
            None => format!("CPU {cpu}"),
        }
    }

    /// The title that the plan gave these measurements, when it is one step's.
    pub(super) fn title(&self, ms: &[&Measurement], otherwise: &str) -> String {
        let Some(first) = ms.first() else { return otherwise.to_owned() };
        let steps = self.report.plan.iter().flat_map(|p| &p.steps);
        let same = |cell: &Cell| cell.at.memory_dir == first.at.memory_dir && cell.at.access == first.at.access && !cell.repeat;
        let mut of_these = steps.filter(|s| s.experiment == first.experiment && s.cells.first().is_some_and(same));
        match (of_these.next(), of_these.next()) {
            (Some(step), None) => step.title.clone(),
            _ => format!("{otherwise}{}", groups::where_and_how(first)),
        }
    }

    /// What firmware claims of the way from a node's CPUs to a node's memory. It says nothing about files.
    pub(super) fn claim(&self, cpu_node: Option<u32>, memory: Option<MemoryPlace>) -> Option<&'a HmatAccess> {
        self.report.machine.topology.claim(cpu_node?, memory?.node()?).filter(|_| self.directory.is_none())
    }
}

/// Reasons that all measured numbers have.
pub(super) fn common_reasons(all: &[&Measurement]) -> BTreeSet<QualityReason> {
    let measured: Vec<_> = all.iter().filter(|m| value_of(&m.estimate).is_some()).collect();
    let Some((first, rest)) = measured.split_first().filter(|(_, rest)| !rest.is_empty()) else { return BTreeSet::new() };
    let common = |r: &QualityReason| !is_individual(*r) && rest.iter().all(|m| m.quality.reasons.contains(r));
    first.quality.reasons.iter().copied().filter(common).collect()
}

/// Whether the sentence states figures of one measurement, so that it cannot stand for a whole table.
fn is_individual(reason: QualityReason) -> bool {
    matches!(reason, QualityReason::SeveralModes | QualityReason::Drift | QualityReason::FrequencyDrift)
}

/// A remark on those nodes that have memory and no CPUs.
pub(super) fn memory_only(report: &Report, places: impl Iterator<Item = Option<MemoryPlace>>) -> Option<String> {
    let nodes = places.filter_map(|p| p?.node());
    let bare: IdSet = nodes.filter(|&n| report.machine.topology.node(n).is_some_and(|n| n.cpus.is_empty())).collect();
    let verb = if bare.len() == 1 { "has" } else { "have" };
    (!bare.is_empty()).then(|| format!("{} {verb} memory and no CPUs", wording::nodes(&bare)))
}
