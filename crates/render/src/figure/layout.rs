//! A figure: panels below each other, and where the results come from.

use super::font::Weight;
use super::frame::{ABOUT, Caption, Panel, WIDTH, wrap};
use super::no_figure::nothing;
use super::palette::{GREY, GRID};
use super::scene::{Scene, Stroke, Text};
use super::{pdf, png, svg};
use crate::format::RenderError;

/// Space around the figure and between panels.
const MARGIN: f64 = 24.0;
const BETWEEN: f64 = 34.0;
const LINE: f64 = 17.0;

/// Panels below each other, and where their results come from.
pub struct Figure {
    title: String,
    panels: Vec<Box<dyn Panel>>,
    sources: Vec<String>,
    /// What stands there without any panel.
    otherwise: Caption,
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
    pub(super) fn new(title: &str, panels: Vec<Box<dyn Panel>>, sources: Vec<String>) -> Self {
        Self { title: title.to_owned(), panels, sources, otherwise: nothing(&[]) }
    }

    /// Replaces the caption that stands there without any panel.
    pub(super) fn or_caption(self, otherwise: Caption) -> Self {
        Self { otherwise, ..self }
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
            let caption = &self.otherwise;
            caption.draw_above(&mut scene, (MARGIN, y), width);
            y += caption.above(width) + BETWEEN;
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
