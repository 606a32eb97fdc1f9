//! Figures: the tables of results as pictures, in SVG, PNG and PDF.
//!
//! A [`Figure`] is a column of panels, each a chart, bars or a heat map, laid out by the widths of a bundled font and drawn
//! into a [`Scene`] of a few kinds of shapes, which three small writers turn into bytes. The same result gives the same bytes.

mod axis;
mod bandwidth;
mod bars;
mod chart;
mod font;
mod frame;
mod heat;
mod histogram;
mod labels;
mod latency;
mod loaded;
mod misses;
mod node_pairs;
mod palette;
mod pdf;
mod png;
mod prefetch;
mod regions;
mod scene;
mod source;
mod spread;
mod svg;
mod sweep;
mod transfer;
mod unknown;
mod working_set;

use std::collections::BTreeMap;

use memgauge_core::experiment::Table;
use memgauge_core::result::{Measurement, Report};

use crate::text::Section;
use crate::text::number::count;
use crate::{Format, Named, RenderError};
use bars::Bars;
use font::Weight;
use frame::{ABOUT, Panel, WIDTH, Words, wrap};
use palette::{GREY, GRID};
use scene::{Stroke, Text};
use source::{MOST_SERIES, Set};

pub use histogram::Histogram;
pub use scene::{Area, Scene};
pub use working_set::{WorkingSet, WorkingSetLine, WorkingSetPoint};

/// Space around the figure and between panels.
const MARGIN: f64 = 24.0;
const BETWEEN: f64 = 34.0;
const LINE: f64 = 17.0;

/// Panels under each other, and where they come from.
pub struct Figure {
    title: String,
    panels: Vec<Box<dyn Panel>>,
    sources: Vec<String>,
    /// What it says where there is no panel.
    otherwise: Words,
}

/// The file types of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Picture {
    /// Vectors, with text as text.
    Svg,
    /// Pixels, two to a user unit.
    Png,
    /// Vectors, with the font embedded.
    Pdf,
}

impl Figure {
    fn of(title: &str, panels: Vec<Box<dyn Panel>>, sources: Vec<String>) -> Self {
        Self { title: title.to_owned(), panels, sources, otherwise: unknown::nothing(&[]) }
    }

    /// A figure of everything that these results hold. Curves, mixes and numbers of CPUs of several results share a panel; matrices
    /// have one each.
    pub fn of_results(results: &[Named<'_>]) -> Self {
        let mut sets: BTreeMap<(Section, Option<&str>), Vec<Set<'_>>> = BTreeMap::new();
        for result in results {
            let mut own: BTreeMap<(Section, Option<&str>), Vec<&Measurement>> = BTreeMap::new();
            for m in result.report.results.iter().filter(|m| !m.at.repeat) {
                own.entry((Section::of(m), m.at.memory_dir.as_deref())).or_default().push(m);
            }
            for ((section, directory), ms) in own {
                let name = (results.len() > 1).then_some(result.name);
                sets.entry((section, directory)).or_default().push(Set { name, report: result.report, directory, ms });
            }
        }
        let panels = sets.into_iter().flat_map(|((section, _), sets)| panels(section, sets)).collect();
        let named = results.len() > 1;
        let sources = results.iter().map(|r| source(r, named)).collect();
        let reports: Vec<&Report> = results.iter().map(|r| r.report).collect();
        Self { otherwise: unknown::nothing(&reports), ..Self::of("memgauge", panels, sources) }
    }

    /// Lays the figure out.
    pub fn scene(&self) -> Scene {
        let sizes: Vec<(f64, f64)> = self.panels.iter().map(|p| p.size()).collect();
        let width = sizes.iter().map(|s| s.0).fold(WIDTH, f64::max);
        let mut scene = Scene::new(self.title.clone());
        scene.width = width + 2.0 * MARGIN;
        let mut y = MARGIN;
        for (panel, (_, height)) in self.panels.iter().zip(sizes) {
            panel.draw(&mut scene, (MARGIN, y));
            y += height + BETWEEN;
        }
        if self.panels.is_empty() {
            let words = &self.otherwise;
            words.draw_above(&mut scene, (MARGIN, y), width);
            y += words.above(width) + BETWEEN;
        }
        let lines: Vec<String> = self.sources.iter().flat_map(|s| wrap(s, width, ABOUT, Weight::Regular)).collect();
        if lines.is_empty() {
            y -= BETWEEN - MARGIN;
        } else {
            y -= 10.0;
            scene.line((MARGIN, y), (MARGIN + width, y), Stroke::new(GRID, 1.0));
            for line in &lines {
                y += LINE;
                scene.text(Text::new(line, (MARGIN, y + 2.0), ABOUT, GREY));
            }
            y += MARGIN - 6.0;
        }
        scene.height = y.ceil();
        scene.width = scene.width.ceil();
        scene
    }

    /// The figure as a file.
    ///
    /// # Errors
    /// When the figure is too large for a bitmap.
    pub fn write(&self, picture: Picture) -> Result<Vec<u8>, RenderError> {
        let scene = self.scene();
        match picture {
            Picture::Svg => Ok(svg::write(&scene).into_bytes()),
            Picture::Png => png::write(&scene).ok_or(RenderError::TooLarge { width: scene.width, height: scene.height }),
            Picture::Pdf => Ok(pdf::write(&scene)),
        }
    }
}

/// The panels of one table.
fn panels(section: Section, sets: Vec<Set<'_>>) -> Vec<Box<dyn Panel>> {
    let spread: Vec<Box<dyn Panel>> = sets.iter().flat_map(spread::panels).collect();
    let mut panels = of_table(section, sets);
    panels.extend(spread);
    panels
}

fn of_table(section: Section, sets: Vec<Set<'_>>) -> Vec<Box<dyn Panel>> {
    match section {
        Section::LatencyMatrix => sets.into_iter().flat_map(latency::matrices).collect(),
        Section::LatencyByCpu => latency::per_cpu(&sets),
        Section::ByMix => of_some(&sets, bandwidth::by_mix),
        Section::Search => of_some(&sets, bandwidth::search),
        Section::Ramp => bandwidth::ramps(&sets),
        Section::BandwidthMatrix => sets.into_iter().flat_map(bandwidth::matrices).collect(),
        Section::Curve => loaded::charts(&sets),
        Section::CacheToCache => sets.into_iter().map(|s| Box::new(transfer::representatives(s)) as Box<dyn Panel>).collect(),
        Section::CpuPairs => sets.into_iter().flat_map(transfer::maps).collect(),
        Section::WorkingSet => sweep::panels(&sets),
        Section::CacheDomains => of_some(&sets, bandwidth::by_domain),
        Section::NodePairs => sets.into_iter().flat_map(node_pairs::panels).collect(),
        Section::Scan => sets.into_iter().flat_map(regions::panels).collect(),
        Section::Prefetch => sets.into_iter().flat_map(prefetch::panels).collect(),
        Section::Other => sets.iter().map(no_figure).collect(),
    }
}

/// One loop is one number; other results are of a kind that this release does not know.
fn no_figure(set: &Set<'_>) -> Box<dyn Panel> {
    let is_loop = set.ms.iter().all(|m| m.at.table == Some(Table::Loop));
    let (title, what) = match is_loop {
        true => (
            "No figure of one loop",
            "'stream' and 'chase' measure one number each; 'memgauge sweep -o FILE.svg' draws them over the working set",
        ),
        false => ("No figure of other results", "these results are of a kind that figures do not show"),
    };
    Box::new(unknown::no_figure(set.title(title), what))
}

/// Bars of as many results at once as there are colours.
fn of_some(sets: &[Set<'_>], bars: impl Fn(&[Set<'_>]) -> Bars) -> Vec<Box<dyn Panel>> {
    sets.chunks(MOST_SERIES).map(|some| Box::new(bars(some)) as Box<dyn Panel>).collect()
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
