//! Text for people: one section a table, each with its evidence; what is wrong is marked and explained below its table.

mod bandwidth;
pub(crate) mod c2c;
mod counters;
pub(crate) mod curve;
mod distribution;
pub(crate) mod evidence;
mod grid;
mod health;
pub(crate) mod latency;
mod loops;
mod machine;
mod marks;
pub(crate) mod nodes;
mod notes;
pub(crate) mod number;
mod page;
mod plan;
mod prefetch;
mod scan;
mod sweep;

use std::collections::BTreeSet;

use memgauge_core::experiment::{Coordinates, Experiment, Table};
use memgauge_core::result::{Measurement, QualityReason, Report};
use memgauge_core::topology::HmatAccess;
use memgauge_core::units::IdSet;

use crate::{Format, RenderError};
use grid::{Cell, Column, grid};
use marks::Marks;
use number::{count, seconds, value_of};
use page::{INDENT, Page, Style};

pub use plan::plan_text;

/// Aligned tables for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Columns of the terminal; fewer than 60 count as 60.
    pub width: usize,
    /// Whether to emit ANSI colours.
    pub colour: bool,
}

impl Format for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    /// A report without plan and results, as `info` and `prefetch status` make it, shows the machine or its prefetchers; every other one shows its results.
    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        let mut page = Page::new(self.width, self.colour);
        if let Some(program) = &report.program {
            counters::of_program(&mut page, report, program);
        } else if report.plan.is_none() && report.results.is_empty() && report.complete {
            match &report.environment.prefetch {
                Some(state) => prefetch::status(&mut page, report, state),
                None => machine::info(&mut page, report),
            }
        } else if let Some(mut lines) = loops::lines(report) {
            if report.results.iter().any(|m| m.counters.is_some()) {
                counters::of_measurements(&mut page, report);
                notes::notes(&mut page, report);
                lines.push_str(&page.into_text());
            }
            return Ok(lines.into_bytes());
        } else {
            results(&mut page, report);
        }
        Ok(page.into_text().into_bytes())
    }
}

/// What the sections share.
struct Context<'a> {
    report: &'a Report,
    /// Directory whose files the section is about; `None` for memory without a file.
    directory: Option<String>,
    /// Reasons whose advice was printed already.
    advised: BTreeSet<QualityReason>,
    /// How intervals are written was explained already.
    intervals_explained: bool,
}

impl Context<'_> {
    /// What the numbers of a section are; the first section also says what follows the ±.
    fn about(&mut self, numbers: &str) -> String {
        if std::mem::replace(&mut self.intervals_explained, true) {
            return numbers.to_owned();
        }
        format!("{numbers}, median ± half of the 95 % interval")
    }

    /// `CPU 3`, with its node where there are several.
    fn cpu_name(&self, cpu: u32) -> String {
        let topology = &self.report.machine.topology;
        match topology.cpu(cpu).filter(|_| topology.nodes.len() > 1) {
            Some(c) => format!("CPU {cpu} (node {})", c.node),
            None => format!("CPU {cpu}"),
        }
    }

    /// The title that the plan gave these measurements, when it is one step's.
    fn title(&self, ms: &[&Measurement], otherwise: &str) -> String {
        let Some(first) = ms.first() else { return otherwise.to_owned() };
        let steps = self.report.plan.iter().flat_map(|p| &p.steps);
        let same = |at: &Coordinates| at.table == first.at.table && at.memory_dir == first.at.memory_dir && !at.repeat;
        let mut of_these = steps.filter(|s| s.experiment == first.experiment && s.cells.first().is_some_and(|c| same(&c.at)));
        match (of_these.next(), of_these.next(), &self.directory) {
            (Some(step), None, _) => step.title.clone(),
            (.., Some(directory)) => format!("{otherwise}, files in {directory}"),
            _ => otherwise.to_owned(),
        }
    }

    /// Where memory is. A device that does not state its node is called what it is.
    fn memory_name(&self, node: Option<u32>) -> String {
        match (node, &self.directory) {
            (None, Some(_)) => "device".to_owned(),
            _ => node_name(node),
        }
    }

    /// Firmware's claim of the read latency from a node's CPUs to a node's memory.
    fn claimed_ns(&self, cpu_node: Option<u32>, memory_node: Option<u32>) -> Option<String> {
        let claim = self.claim(cpu_node, memory_node)?;
        claim.read_latency_ns.map(|ns| ns.to_string())
    }

    /// The same for read bandwidth, in GB/s.
    fn claimed_gbs(&self, cpu_node: Option<u32>, memory_node: Option<u32>) -> Option<String> {
        let claim = self.claim(cpu_node, memory_node)?;
        claim.read_bandwidth_mbs.map(|mbs| number::number(mbs as f64 / 1e3))
    }

    /// Firmware speaks of nodes' memory, and not of files.
    fn claim(&self, cpu_node: Option<u32>, memory_node: Option<u32>) -> Option<&HmatAccess> {
        self.report.machine.topology.claim(cpu_node?, memory_node?).filter(|_| self.directory.is_none())
    }
}

fn node_name(node: Option<u32>) -> String {
    node.map_or_else(|| "own node".to_owned(), |n| format!("node {n}"))
}

/// Says which of these nodes have memory and no CPUs.
fn memory_only(report: &Report, nodes: impl Iterator<Item = u32>) -> Option<String> {
    let bare = ids(nodes.filter(|&n| report.machine.topology.node(n).is_some_and(|n| n.cpus.is_empty())));
    match bare.len() {
        0 => None,
        1 => Some(format!("node {bare} has memory and no CPUs")),
        _ => Some(format!("nodes {bare} have memory and no CPUs")),
    }
}

/// Which section a measurement belongs to; the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    LatencyMatrix,
    LatencyByCpu,
    ByMix,
    Search,
    Ramp,
    BandwidthMatrix,
    CacheDomains,
    Curve,
    CacheToCache,
    NodePairs,
    CpuPairs,
    Scan,
    Prefetch,
    WorkingSet,
    Other,
}

impl Section {
    pub(crate) fn of(m: &Measurement) -> Self {
        match (m.experiment, m.at.table) {
            (_, Some(Table::WorkingSet)) => Self::WorkingSet,
            (Experiment::IdleLatency, Some(Table::NodeMatrix) | None) => Self::LatencyMatrix,
            (Experiment::IdleLatency, Some(Table::PerCpu)) => Self::LatencyByCpu,
            (Experiment::Bandwidth, Some(Table::PerMix) | None) => Self::ByMix,
            (Experiment::Bandwidth, Some(Table::Search)) => Self::Search,
            (Experiment::Bandwidth, Some(Table::Ramp)) => Self::Ramp,
            (Experiment::Bandwidth, Some(Table::NodeMatrix)) => Self::BandwidthMatrix,
            (Experiment::Bandwidth, Some(Table::CacheDomains)) => Self::CacheDomains,
            (Experiment::LoadedLatency, _) => Self::Curve,
            (Experiment::CacheToCache, Some(Table::NodeMatrix) | None) if m.at.holder_node.is_some() => Self::NodePairs,
            (Experiment::CacheToCache, Some(Table::NodeMatrix) | None) => Self::CacheToCache,
            (Experiment::CacheToCache, Some(Table::CpuPairs)) => Self::CpuPairs,
            (Experiment::MemoryScan, _) => Self::Scan,
            (_, Some(Table::Prefetch)) => Self::Prefetch,
            _ => Self::Other,
        }
    }
}

fn results(page: &mut Page, report: &Report) {
    let mut context = Context { report, directory: None, advised: BTreeSet::new(), intervals_explained: false };
    machine::header(page, report);
    prefetch::line(page, report);
    incomplete(page, report);
    if let Some(verdict) = &report.health {
        health::health(page, verdict);
    }
    let sections: BTreeSet<(Section, Option<String>)> = report.results.iter().map(|m| (Section::of(m), m.at.memory_dir.clone())).collect();
    for (section, directory) in sections {
        let of_this = |m: &&Measurement| Section::of(m) == section && m.at.memory_dir == directory && !m.at.repeat;
        let ms: Vec<&Measurement> = report.results.iter().filter(of_this).collect();
        if ms.is_empty() {
            continue;
        }
        context.directory.clone_from(&directory);
        match section {
            Section::LatencyMatrix => latency::matrix(page, &mut context, &ms),
            Section::LatencyByCpu => latency::per_cpu(page, &mut context, &ms),
            Section::ByMix => bandwidth::by_mix(page, &mut context, &ms),
            Section::Search => bandwidth::search(page, &mut context, &ms),
            Section::Ramp => bandwidth::ramp(page, &mut context, &ms),
            Section::BandwidthMatrix => bandwidth::matrix(page, &mut context, &ms),
            Section::CacheDomains => bandwidth::by_mix(page, &mut context, &ms),
            Section::Curve => curve::curves(page, &mut context, &ms),
            Section::CacheToCache => c2c::representatives(page, &mut context, &ms),
            Section::NodePairs => nodes::pairs(page, &mut context, &ms),
            Section::CpuPairs => c2c::pairs(page, &mut context, &ms),
            Section::Scan => scan::scans(page, &mut context, &ms),
            Section::Prefetch => prefetch::compare(page, &mut context, &ms),
            Section::WorkingSet => sweep::sweeps(page, &mut context, &ms),
            Section::Other => other(page, &mut context, &ms),
        }
    }
    if report.results.is_empty() {
        page.gap();
        page.line(Style::Warning, "Nothing was measured.");
    }
    counters::of_measurements(page, report);
    notes::notes(page, report);
    page.gap();
    let t = report.timing;
    let planned = report.plan.as_ref().filter(|_| t.setup.is_some()).map_or(String::new(), |p| format!(" (planned {})", plan::duration(p)));
    let spent = format!("measuring {} · set-up {} · total {}{planned}", seconds(t.measuring_s), seconds(t.setup_s), seconds(t.total_s));
    page.line(Style::Dim, &spent);
    if let Some(s) = t.setup.filter(|_| t.setup_s > NOTABLE_SETUP * t.total_s) {
        let parts = [("buffers", s.buffers_s), ("chains", s.chains_s), ("warming up", s.warm_up_s), ("choosing kernels", s.trials_s)];
        let parts: Vec<String> = parts.iter().map(|(what, s)| format!("{what} {}", seconds(*s))).collect();
        page.line(Style::Dim, &format!("set-up: {}", parts.join(" · ")));
    }
    incomplete(page, report);
}

/// A set-up that takes more than this share of the time is explained.
const NOTABLE_SETUP: f64 = 0.25;

/// Says so when the run is not what was planned.
fn incomplete(page: &mut Page, report: &Report) {
    if report.complete {
        return;
    }
    let measured = report.results.iter().filter(|m| value_of(&m.estimate).is_some()).count();
    let reason = report.incomplete_reason.as_deref().unwrap_or("the result does not say why");
    page.gap();
    let only = if measured > 0 { format!("; {} measured until then", count(measured, "number", "numbers")) } else { String::new() };
    let text = format!("INCOMPLETE: {reason}{only}");
    page.text(Style::Error, "", "  ", &text);
}

/// Results of a kind that no section above knows, one line each, so that none is lost.
fn other(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about("each with its unit");
    page.heading("Other results", &about);
    let mut marks = Marks::new(context.report, ms);
    let lines = grid(
        vec![
            Column::words("what").with(ms.iter().map(|m| Cell::text(place(&m.at)))),
            Column::numbers("value").with(ms.iter().map(|m| marks.cell(Some(m)))),
            Column::words("unit").with(ms.iter().map(|m| Cell::text(number::unit(m.unit)))),
        ],
        page.width,
    );
    page.table(&lines);
    marks.print(page, &mut context.advised);
    page.items(Style::Dim, INDENT, &evidence::evidence(ms));
}

/// Coordinates in words.
fn place(at: &Coordinates) -> String {
    let mut words = Vec::new();
    words.extend(at.cpu.map(|c| format!("CPU {c}")));
    words.extend(at.holder_cpu.map(|c| format!("from CPU {c}")));
    words.extend(at.cpus.as_ref().map(|c| format!("CPUs {c}")));
    words.extend(at.cpu_node.map(|n| format!("on node {n}")));
    words.extend(at.sharer_cpu.map(|c| format!("shared by CPU {c}")));
    words.extend(at.memory_node.map(|n| format!("memory of node {n}")));
    words.extend(at.memory_dir.as_ref().map(|d| format!("files in {d}")));
    words.extend(at.mix.map(|m| m.to_string()));
    words.extend(at.delay_cycles.map(|d| format!("delay {d}")));
    if words.is_empty() { "all".to_owned() } else { words.join(", ") }
}

/// A set of ids from a report, less the largest number there is: no machine has it, and the set's text counts one beyond its last id.
fn ids(ids: impl IntoIterator<Item = u32>) -> IdSet {
    ids.into_iter().filter(|id| *id < u32::MAX).collect()
}

/// `CPU 3` or `CPUs 0-7`.
pub(crate) fn cpus_name(cpus: &IdSet) -> String {
    format!("{} {}", if cpus.len() == 1 { "CPU" } else { "CPUs" }, shortened(cpus))
}

/// The set in the kernel's list form, or how many when that is too long to read.
pub(crate) fn shortened(set: &IdSet) -> String {
    let text = set.to_string();
    if text.len() <= 24 {
        return text;
    }
    match (set.first(), set.last()) {
        (Some(first), Some(last)) => format!("{first}…{last} ({} of them)", set.len()),
        _ => text,
    }
}
