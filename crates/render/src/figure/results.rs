//! The figure of one or several results.

use std::collections::BTreeMap;

use memgauge_core::result::{Measurement, Report};

use super::bars::Bars;
use super::frame::Panel;
use super::layout::{Figure, Picture};
use super::source::{MAX_SERIES, ResultSet};
use super::{bandwidth, distribution, latency, loaded, no_figure, node_pairs, prefetch, regions, sweep, transfer};
use crate::format::{Format, Named, RenderError};
use crate::groups::Section;
use crate::number::count;

impl Figure {
    /// A figure of everything in these results. Several results share the panels of curves, mixes and numbers of CPUs; each has its own
    /// matrices.
    pub fn of_results(results: &[Named<'_>]) -> Self {
        let mut sets: BTreeMap<(Section, Option<&str>), Vec<ResultSet<'_>>> = BTreeMap::new();
        for result in results {
            let mut own: BTreeMap<(Section, Option<&str>), Vec<&Measurement>> = BTreeMap::new();
            for m in &result.report.results {
                own.entry((Section::for_measurement(m), m.at.memory_dir.as_deref())).or_default().push(m);
            }
            for ((section, directory), ms) in own {
                let name = (results.len() > 1).then_some(result.name);
                sets.entry((section, directory)).or_default().push(ResultSet { name, report: result.report, directory, ms });
            }
        }
        let mut panels: Vec<Box<dyn Panel>> = sets.into_iter().flat_map(|((section, _), sets)| panels(section, sets)).collect();
        panels.extend(results.iter().flat_map(|r| r.report.matrices.iter().map(|m| transfer::matrix(m, r.report))));
        let named = results.len() > 1;
        let sources = results.iter().map(|r| source(r, named)).collect();
        let reports: Vec<&Report> = results.iter().map(|r| r.report).collect();
        Self::new("memgauge", panels, sources).or_caption(no_figure::nothing(&reports))
    }
}

/// The panels of one section, then those of its distributions.
fn panels(section: Section, sets: Vec<ResultSet<'_>>) -> Vec<Box<dyn Panel>> {
    let spread: Vec<Box<dyn Panel>> = sets.iter().flat_map(distribution::panels).collect();
    let mut panels = section_panels(section, sets);
    panels.extend(spread);
    panels
}

fn section_panels(section: Section, sets: Vec<ResultSet<'_>>) -> Vec<Box<dyn Panel>> {
    match section {
        Section::IdleLatency => sets.into_iter().flat_map(latency::matrices).collect(),
        Section::IdleLatencyPerCpu => latency::per_cpu(&sets),
        Section::Bandwidth => chunked(&sets, bandwidth::by_mix),
        Section::BandwidthSearch => chunked(&sets, bandwidth::search),
        Section::BandwidthRamp => bandwidth::ramps(&sets),
        Section::BandwidthMatrix => sets.into_iter().flat_map(bandwidth::matrices).collect(),
        Section::LoadedLatency => loaded::charts(&sets),
        Section::CacheToCache => sets.into_iter().map(|s| Box::new(transfer::representatives(s)) as Box<dyn Panel>).collect(),
        Section::CacheToCacheMatrix => sets.into_iter().flat_map(transfer::maps).collect(),
        Section::Sweep => sweep::panels(&sets),
        Section::BandwidthPerCache => chunked(&sets, bandwidth::by_domain),
        Section::CacheToCacheByNode => sets.into_iter().flat_map(node_pairs::panels).collect(),
        Section::MemoryScan => sets.into_iter().flat_map(regions::panels).collect(),
        Section::PrefetchComparison => sets.into_iter().flat_map(prefetch::panels).collect(),
        Section::Loop => sets.iter().map(no_loop).collect(),
    }
}

/// A loop is a single number.
fn no_loop(set: &ResultSet<'_>) -> Box<dyn Panel> {
    let what = "'stream' and 'chase' measure one number each; 'memgauge sweep -o FILE.svg' draws them over the working set";
    Box::new(no_figure::panel(set.title("No figure of one loop"), what))
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

impl Format for Picture {
    fn name(&self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Pdf => "pdf",
        }
    }

    fn render(&self, report: &Report) -> Result<Vec<u8>, RenderError> {
        self.render_all(&[Named { name: "", report }])
    }

    /// One figure of all of them.
    fn render_all(&self, results: &[Named<'_>]) -> Result<Vec<u8>, RenderError> {
        Figure::of_results(results).write(*self)
    }
}
