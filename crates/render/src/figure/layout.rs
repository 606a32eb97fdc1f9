//! A figure: panels below each other, and where the results come from.

use super::font::Weight;
use super::frame::{ABOUT, BETWEEN, Caption, HALF, Panel, Space, WIDTH, wrap};
use super::no_figure::nothing;
use super::palette::{GREY, GRID};
use super::scene::{Scene, Stroke, Text};
use super::{pdf, png, svg};
use crate::appearance::{FigureOptions, Picture};
use crate::format::RenderError;

/// Space around the figure; less where its width was asked for, because it goes into a document that has margins.
const MARGIN: f64 = 24.0;
const TIGHT: f64 = 4.0;
const LINE: f64 = 17.0;
/// From this width on, two small panels stand beside each other.
const TWO_COLUMNS: f64 = 600.0;

/// Panels below each other, and where their results come from.
pub struct Figure {
    title: String,
    panels: Vec<Box<dyn Panel>>,
    sources: Vec<String>,
    /// What stands there without any panel.
    otherwise: Caption,
    options: FigureOptions,
}

impl Figure {
    pub(super) fn new(title: &str, panels: Vec<Box<dyn Panel>>, sources: Vec<String>) -> Self {
        Self { title: title.to_owned(), panels, sources, otherwise: nothing(&[]), options: FigureOptions::default() }
    }

    /// Replaces the caption that stands there without any panel.
    pub(super) fn or_caption(self, otherwise: Caption) -> Self {
        Self { otherwise, ..self }
    }

    /// The same figure, drawn as these options say. Which panels it has is not changed.
    pub(super) fn drawn_as(mut self, options: FigureOptions) -> Self {
        if !options.titles {
            self.sources.clear();
            for panel in &mut self.panels {
                let caption = panel.caption();
                caption.title.clear();
                caption.about.clear();
            }
        }
        Self { options, ..self }
    }

    /// Lays all panels out in one picture.
    pub fn scene(&self) -> Scene {
        let panels: Vec<&dyn Panel> = self.panels.iter().map(AsRef::as_ref).collect();
        self.lay_out(&self.title, &panels)
    }

    /// Lays each panel out in a picture of its own. A figure without panels has one page, which says why.
    pub fn pages(&self) -> Vec<Scene> {
        let page = |panel: &dyn Panel| self.lay_out(&self.title, &[panel]);
        if self.panels.is_empty() { vec![self.scene()] } else { self.panels.iter().map(|p| page(p.as_ref())).collect() }
    }

    /// The space of these panels, and the margin around them.
    fn space(&self, panels: &[&dyn Panel]) -> (Space, f64) {
        let gutter = self.panels.iter().map(|p| p.gutter()).fold(0.0, f64::max);
        match self.options.width {
            Some(width) => (Space { width: width.units() - 2.0 * TIGHT, gutter, fixed: true }, TIGHT),
            None => {
                // A small panel alone would leave half of the figure blank.
                let small = matches!(panels, [only] if only.is_small());
                (Space { width: if small { HALF } else { WIDTH }, gutter, fixed: false }, MARGIN)
            }
        }
    }

    fn lay_out(&self, title: &str, panels: &[&dyn Panel]) -> Scene {
        let (space, margin) = self.space(panels);
        let sizes: Vec<(f64, f64)> = panels.iter().map(|p| p.size(space)).collect();
        let width = sizes.iter().map(|s| s.0).fold(space.width, f64::max);
        let mut scene = Scene::new(title);
        scene.width = width + 2.0 * margin;
        let (mut y, mut next) = (margin, 0);
        while let Some(panel) = panels.get(next) {
            let half = Space { width: (space.width - BETWEEN) / 2.0, ..space };
            let row: Vec<(&dyn Panel, Space)> = match panels.get(next + 1) {
                Some(second) if space.width >= TWO_COLUMNS && panel.is_small() && second.is_small() => {
                    vec![(*panel, half), (*second, half)]
                }
                _ => vec![(*panel, space)],
            };
            next += row.len();
            let mut x = margin;
            let mut tallest = 0.0f64;
            for (panel, space) in row {
                panel.draw(&mut scene, (x, y), space);
                tallest = tallest.max(panel.size(space).1);
                x += space.width + BETWEEN;
            }
            y += tallest + BETWEEN;
        }
        if panels.is_empty() {
            let caption = &self.otherwise;
            caption.draw_above(&mut scene, (margin, y), width);
            y += caption.above(width) + BETWEEN;
        }
        let lines: Vec<String> = self.sources.iter().flat_map(|s| wrap(s, width, ABOUT, Weight::Regular)).collect();
        if lines.is_empty() {
            y -= BETWEEN - margin;
        } else {
            y -= 10.0;
            scene.line((margin, y), (margin + width, y), Stroke::new(GRID, 1.0));
            for line in &lines {
                y += LINE;
                scene.text(Text::new(line, (margin, y + 2.0), ABOUT, GREY));
            }
            y += margin.max(12.0) - 6.0;
        }
        scene.height = y.ceil();
        // A width that was asked for is kept to the fraction of a unit.
        scene.width = if space.fixed { scene.width } else { scene.width.ceil() };
        scene
    }

    /// The figure as a file.
    ///
    /// # Errors
    /// When the figure is too large for a bitmap.
    pub fn write(&self, picture: Picture) -> Result<Vec<u8>, RenderError> {
        match picture {
            Picture::Svg => Ok(svg::write(&self.scene()).into_bytes()),
            Picture::Png => {
                let scene = self.scene();
                let print = self.options.width.is_some_and(|w| w.is_length());
                png::write(&scene, print).ok_or(RenderError::TooLarge { width: scene.width, height: scene.height })
            }
            Picture::Pdf => Ok(pdf::write(&self.title, &self.pages())),
        }
    }
}
