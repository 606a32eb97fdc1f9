//! The figure of one or several results.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::result::{Measurement, Report};
use memgauge_core::traffic::Access;

use super::bars::Bars;
use super::frame::{Kinded, Panel};
use super::layout::{Figure, Picture};
use super::options::{FigureOptions, PanelKind};
use super::source::{MAX_SERIES, ResultSet};
use super::{bandwidth, blocks, distribution, interleave, latency, loaded, no_figure, node_pairs, prefetch, regions, sweep, transfer};
use crate::format::{Format, Named, RenderError};
use crate::groups::Section;
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
        let has: BTreeSet<PanelKind> = all.iter().map(|p| p.0).collect();
        if let Some(missing) = options.panels.iter().find(|k| !has.contains(k)) {
            return Err(RenderError::NoPanel { asked: missing.name(), has: PanelKind::list(&has.into_iter().collect::<Vec<_>>()) });
        }
        let asked = |p: &Kinded| options.panels.is_empty() || options.panels.contains(&p.0);
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

/// What results of one table have in common: section, directory, access.
pub(crate) type Table<'a> = (Section, Option<&'a str>, Option<Access>);

fn all_panels(results: &[Named<'_>]) -> Vec<Kinded> {
    let mut all: Vec<Kinded> = panels_by_table(results).into_iter().flat_map(|(_, panels)| panels).collect();
    all.extend(matrix_panels(results));
    all
}

/// The panels of transfers between every two of many CPUs.
pub(crate) fn matrix_panels(results: &[Named<'_>]) -> Vec<Kinded> {
    of_kind(PanelKind::CoreToCore, results.iter().flat_map(|r| r.report.matrices.iter().map(|m| transfer::matrix(m, r.report))))
}

/// All other panels, in the order of the tables that show the same.
pub(crate) fn panels_by_table<'a>(results: &[Named<'a>]) -> Vec<(Table<'a>, Vec<Kinded>)> {
    let mut sets: BTreeMap<Table<'_>, Vec<ResultSet<'_>>> = BTreeMap::new();
    for result in results {
        let mut own: BTreeMap<Table<'_>, Vec<&Measurement>> = BTreeMap::new();
        for m in &result.report.results {
            own.entry((Section::for_measurement(m), m.at.memory_dir.as_deref(), m.at.access)).or_default().push(m);
        }
        for ((section, directory, access), ms) in own {
            let name = (results.len() > 1).then_some(result.name);
            sets.entry((section, directory, access)).or_default().push(ResultSet { name, report: result.report, ms });
        }
    }
    sets.into_iter().map(|(table, sets)| (table, panels(table.0, sets))).collect()
}

fn of_kind(kind: PanelKind, panels: impl IntoIterator<Item = Box<dyn Panel>>) -> Vec<Kinded> {
    panels.into_iter().map(|p| (kind, p)).collect()
}

/// The panels of one section, then those of its distributions.
fn panels(section: Section, sets: Vec<ResultSet<'_>>) -> Vec<Kinded> {
    let spread = of_kind(PanelKind::Distribution, sets.iter().flat_map(distribution::panels));
    let mut panels = section_panels(section, sets);
    panels.extend(spread);
    panels
}

fn section_panels(section: Section, sets: Vec<ResultSet<'_>>) -> Vec<Kinded> {
    use PanelKind as K;
    match section {
        Section::IdleLatency => of_kind(K::IdleLatency, sets.into_iter().flat_map(latency::matrices)),
        Section::IdleLatencyPerCpu => of_kind(K::LatencyByCpu, latency::per_cpu(&sets)),
        Section::Bandwidth => of_kind(K::Bandwidth, chunked(&sets, bandwidth::by_mix)),
        Section::BandwidthSearch => of_kind(K::Bandwidth, chunked(&sets, bandwidth::search)),
        Section::BandwidthRamp => of_kind(K::BandwidthByCpus, bandwidth::ramps(&sets)),
        Section::AccessSize => of_kind(K::AccessSizes, blocks::access_sizes(&sets)),
        Section::PersistLatency => of_kind(K::PersistLatency, blocks::persist_latencies(&sets)),
        Section::BandwidthMatrix => of_kind(K::BandwidthByNode, sets.into_iter().flat_map(bandwidth::matrices)),
        Section::BandwidthPerCache => of_kind(K::BandwidthByCache, chunked(&sets, bandwidth::by_domain)),
        Section::LoadedLatency => of_kind(K::LoadedLatency, loaded::charts(&sets)),
        Section::Interleave => of_kind(K::Interleave, sets.iter().flat_map(interleave::panels)),
        Section::CacheToCache => {
            let bars = sets.into_iter().map(|s| Box::new(transfer::representatives(s)) as Box<dyn Panel>);
            of_kind(K::Transfers, bars)
        }
        Section::CacheToCacheByNode => sets.into_iter().flat_map(node_pairs::panels).collect(),
        Section::CacheToCacheMatrix => of_kind(K::CoreToCore, sets.into_iter().flat_map(transfer::maps)),
        Section::MemoryScan => of_kind(K::Regions, sets.into_iter().flat_map(regions::panels)),
        Section::PrefetchComparison => of_kind(K::Prefetchers, sets.into_iter().flat_map(prefetch::panels)),
        Section::Sweep => sweep::panels(&sets),
        // A loop over one size is a single number.
        Section::Loop => {
            let sizes: BTreeSet<_> = sets.iter().flat_map(|s| &s.ms).filter_map(|m| m.at.working_set).collect();
            if sizes.len() > 1 { sweep::panels(&sets) } else { Vec::new() }
        }
    }
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

/// Figures in a file type, drawn as the options say.
#[derive(Debug, Clone)]
pub struct FigureFormat {
    /// The file type.
    pub picture: Picture,
    /// How they are drawn.
    pub options: FigureOptions,
}

impl Format for FigureFormat {
    fn name(&self) -> &'static str {
        match self.picture {
            Picture::Svg => "svg",
            Picture::Png => "png",
            Picture::Pdf => "pdf",
        }
    }

    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        self.render_all(&[Named { name: "", report }])
    }

    /// One figure of all of them.
    fn render_all(&self, results: &[Named<'_>]) -> Result<Vec<u8>, RenderError> {
        Figure::of_results_as(results, &self.options)?.write(self.picture)
    }
}
