//! The figure of one or several results.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::Experiment;
use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::Report;

use super::bars::Bars;
use super::frame::{NamedPanel, Panel};
use super::layout::Figure;
use super::source::{MAX_SERIES, ResultSet};
use super::{bandwidth, blocks, distribution, interleave, latency, loaded, no_figure, node_pairs, prefetch, regions, sweep, transfer};
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
    all
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
    let spread = named(PanelName::DISTRIBUTION, sets.iter().flat_map(distribution::panels));
    let mut panels = section_panels(section, sets);
    panels.extend(spread);
    panels
}

/// The panels of one section. Its first kind is the one that its row of the table names first.
fn section_panels(section: Section, sets: Vec<ResultSet<'_>>) -> Vec<NamedPanel> {
    use Experiment as E;
    let plain = match section.experiment {
        E::IdleLatency => sets.into_iter().flat_map(latency::matrices).collect(),
        E::IdleLatencyPerCpu => latency::per_cpu(&sets),
        E::Bandwidth => chunked(&sets, bandwidth::by_mix),
        E::BandwidthSearch => chunked(&sets, bandwidth::search),
        E::BandwidthRamp => bandwidth::ramps(&sets),
        E::AccessSize => blocks::access_sizes(&sets),
        E::PersistLatency => blocks::persist_latencies(&sets),
        E::BandwidthMatrix => sets.into_iter().flat_map(bandwidth::matrices).collect(),
        E::BandwidthPerCache => chunked(&sets, bandwidth::by_domain),
        E::LoadedLatency => loaded::charts(&sets),
        E::Interleave => sets.iter().flat_map(interleave::panels).collect(),
        E::CacheToCache if section.by_node => return sets.into_iter().flat_map(node_pairs::panels).collect(),
        E::CacheToCache => sets.into_iter().map(|s| Box::new(transfer::representatives(s)) as Box<dyn Panel>).collect(),
        E::CacheToCacheMatrix => sets.into_iter().flat_map(transfer::maps).collect(),
        E::MemoryScan => sets.into_iter().flat_map(regions::panels).collect(),
        E::PrefetchComparison => sets.into_iter().flat_map(prefetch::panels).collect(),
        E::Sweep => return sweep::panels(&sets),
        // A loop over one size is a single number.
        E::Stream | E::Chase => {
            let sizes: BTreeSet<_> = sets.iter().flat_map(|s| &s.ms).filter_map(|m| m.at.working_set).collect();
            return if sizes.len() > 1 { sweep::panels(&sets) } else { Vec::new() };
        }
    };
    named(section.experiment.row().panels[0], plain)
}

/// Bars of as many results at once as there are colours.
fn chunked(sets: &[ResultSet<'_>], bars: impl Fn(&[ResultSet<'_>]) -> Bars) -> Vec<Box<dyn Panel>> {
    sets.chunks(MAX_SERIES).map(|some| Box::new(bars(some)) as Box<dyn Panel>).collect()
}

/// Where a result comes from: machine, program, time.
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
