//! The figure of one or several results: a panel for each table. Each kind of panel has a file.

mod bandwidth;
mod blocks;
mod distribution;
mod interleave;
mod latency;
mod loaded;
mod misses;
mod node_matrix;
mod node_pairs;
mod prefetch;
mod regions;
mod residency;
mod sweep;
mod time;
mod transfer;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::Experiment;
use memgauge_model::experiment_table::{PanelName, Shape};
use memgauge_model::result::Report;

use super::frame::{NamedPanel, Panel, boxed};
use super::layout::Figure;
use super::no_figure;
use super::palette::MAX_SERIES;
use super::source::ResultSet;
use crate::appearance::{FigureOptions, Picture};
use crate::format::{Named, RenderError};
use crate::groups::{Section, Table, tables};
use crate::number::count;

impl Figure {
    /// A figure of everything in these results. Several results share the panels of curves, mixes and numbers of CPUs; each has its own
    /// matrices.
    pub fn of_results(results: &[Named<'_>]) -> Self {
        let panels = all_panels(results).into_iter().map(|p| p.1).collect();
        Self::with_sources(results, panels)
    }

    /// The same as these options ask for.
    ///
    /// # Errors
    /// When the results have none of the panels that were asked for, or nothing at all that a figure shows.
    pub fn of_results_as(results: &[Named<'_>], options: &FigureOptions) -> Result<Self, RenderError> {
        let all = all_panels(results);
        let complete = results.iter().all(|r| r.report.complete);
        if all.is_empty() && complete {
            return Err(RenderError::NothingToDraw(no_figure::why_nothing(&reports(results))));
        }
        let has: Vec<PanelName> = PanelName::all().into_iter().filter(|name| all.iter().any(|p| p.0 == *name)).collect();
        if let Some(missing) = options.panels.iter().find(|name| !has.contains(name)) {
            return Err(RenderError::NoPanel { asked: missing.name(), has: PanelName::list(&has) });
        }
        let asked = |p: &NamedPanel| options.panels.is_empty() || options.panels.contains(&p.0);
        let panels = all.into_iter().filter(asked).map(|p| p.1).collect();
        Ok(Self::with_sources(results, panels).drawn_as(options.clone()))
    }

    fn with_sources(results: &[Named<'_>], panels: Vec<Box<dyn Panel>>) -> Self {
        let sources = results.iter().map(|r| source(r, results.len() > 1)).collect();
        Self::new("memgauge", panels, sources).or_caption(no_figure::nothing(&reports(results)))
    }
}

fn reports<'a>(results: &[Named<'a>]) -> Vec<&'a Report> {
    results.iter().map(|r| r.report).collect()
}

fn all_panels(results: &[Named<'_>]) -> Vec<NamedPanel> {
    let mut all: Vec<NamedPanel> = panels_by_table(results).into_iter().flat_map(|(_, panels)| panels).collect();
    all.extend(matrix_panels(results));
    all.extend(panels_over_time(results));
    all
}

/// The panels over time: of watched machines, and of the memory of processes.
pub(crate) fn panels_over_time(results: &[Named<'_>]) -> Vec<NamedPanel> {
    watch::panels(results).into_iter().chain(residency::panels(results)).collect()
}

/// The panels of transfers between every two of many CPUs.
pub(crate) fn matrix_panels(results: &[Named<'_>]) -> Vec<NamedPanel> {
    named(
        Experiment::CacheToCacheMatrix.row().panels[0],
        results.iter().flat_map(|r| r.report.matrices.iter().map(|m| transfer::matrix(m, r.report))),
    )
}

/// All other panels, in the order of the tables that show the same.
pub(crate) fn panels_by_table<'a>(results: &[Named<'a>]) -> Vec<(Table<'a>, Vec<NamedPanel>)> {
    let mut sets: BTreeMap<Table<'_>, Vec<ResultSet<'_>>> = BTreeMap::new();
    for result in results {
        let name = (results.len() > 1).then_some(result.name);
        for (table, ms) in tables(result.report) {
            sets.entry(table).or_default().push(ResultSet { name, report: result.report, ms });
        }
    }
    sets.into_iter().map(|(table, sets)| (table, panels(table.0, sets))).collect()
}

fn named(name: PanelName, panels: impl IntoIterator<Item = Box<dyn Panel>>) -> Vec<NamedPanel> {
    panels.into_iter().map(|p| (name, p)).collect()
}

/// The panels of one section, then those of its distributions.
fn panels(section: Section, sets: Vec<ResultSet<'_>>) -> Vec<NamedPanel> {
    let mut panels = section_panels(section, &sets);
    panels.extend(named(PanelName::DISTRIBUTION, each(&sets, distribution::panels)));
    panels
}

/// The panels of one section. Its first kind is the one that its row of the table names first.
fn section_panels(section: Section, sets: &[ResultSet<'_>]) -> Vec<NamedPanel> {
    let plain = match section.shape() {
        Shape::Nodes if section.is_latency() => each(sets, latency::matrices),
        Shape::Nodes => each(sets, bandwidth::matrices),
        Shape::Cpus => latency::per_cpu(sets),
        // Bars of as many results at once as there are colours.
        Shape::Mixes => boxed(sets.chunks(MAX_SERIES).map(|some| bandwidth::by_mix(section, some))),
        Shape::BestOfMixes => boxed(sets.chunks(MAX_SERIES).map(bandwidth::search)),
        Shape::CpuCounts => bandwidth::ramps(sets),
        Shape::Blocks => blocks::charts(section, sets),
        Shape::Delays => loaded::charts(sets),
        Shape::Weights => each(sets, interleave::panels),
        Shape::Pairs if section.by_node => return sets.iter().flat_map(node_pairs::panels).collect(),
        Shape::Pairs => boxed(sets.iter().map(transfer::representatives)),
        Shape::AllPairs => each(sets, transfer::maps),
        Shape::Regions => each(sets, regions::panels),
        Shape::Prefetchers => each(sets, prefetch::panels),
        Shape::WorkingSets => return sweep::panels(sets),
        // A loop over one size is a single number.
        Shape::Loop => {
            let sizes: BTreeSet<_> = sets.iter().flat_map(|s| &s.ms).filter_map(|m| m.at.working_set).collect();
            return if sizes.len() > 1 { sweep::panels(sets) } else { Vec::new() };
        }
    };
    named(section.experiment.row().panels[0], plain)
}

/// The panels of each result.
fn each(sets: &[ResultSet<'_>], panels: impl Fn(&ResultSet<'_>) -> Vec<Box<dyn Panel>>) -> Vec<Box<dyn Panel>> {
    sets.iter().flat_map(panels).collect()
}

/// The origin of a result: machine, program, time.
fn source(result: &Named<'_>, named: bool) -> String {
    let Report { machine, tool, started, complete, .. } = result.report;
    let mut parts = Vec::new();
    parts.extend(machine.identity.model_name.clone());
    parts.push(count(machine.topology.packages().len(), "package", "packages"));
    parts.push(count(machine.topology.cpus.len(), "CPU", "CPUs"));
    parts.push(count(machine.topology.nodes.len(), "node", "nodes"));
    parts.extend(machine.identity.hypervisor.as_ref().map(|h| format!("under {h}")));
    parts.push(format!("{} {}", tool.name, tool.version));
    parts.push(started.utc.clone());
    parts.extend((!complete).then(|| "incomplete".to_owned()));
    let name = if named { format!("{}: ", result.name) } else { String::new() };
    format!("{name}{}", parts.iter().filter(|p| !p.is_empty()).cloned().collect::<Vec<_>>().join(" · "))
}

/// One figure of all results, drawn as the options say.
pub(crate) fn results_figure(results: &[Named<'_>], picture: Picture, options: &FigureOptions) -> Result<Vec<u8>, RenderError> {
    Figure::of_results_as(results, options)?.write(picture)
}
