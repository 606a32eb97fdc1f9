//! Panels for pages: each in a picture of its own, its title and its notes apart, because a page sets them as its own text.

use super::frame::{HALF, Panel, Space};
use super::scene::Scene;

/// Width of a picture, and of one for a phone.
const WIDE: f64 = 720.0;
const NARROW: f64 = 340.0;
/// Space around a picture: labels at the edge are not cut, whatever the font.
const MARGIN: f64 = 4.0;

/// A panel of a page.
pub(crate) struct PagePanel {
    pub(crate) title: String,
    /// What is shown and how it was measured.
    pub(crate) about: String,
    /// What is missing or degraded.
    pub(crate) notes: Vec<String>,
    pub(crate) wide: Scene,
    /// For a phone; absent where the wide picture fits one.
    pub(crate) narrow: Option<Scene>,
}

impl PagePanel {
    /// Whether two have room beside each other.
    pub(crate) fn is_small(&self) -> bool {
        self.wide.width <= HALF + 2.0 * MARGIN
    }

    /// Takes the words out of a panel, and lays the rest out.
    pub(crate) fn new(mut panel: Box<dyn Panel>) -> Self {
        let caption = panel.caption();
        let title = std::mem::take(&mut caption.title);
        let about = std::mem::take(&mut caption.about);
        let notes = std::mem::take(&mut caption.notes);
        let width = if panel.is_small() { HALF } else { WIDE };
        let wide = lay_out(panel.as_ref(), &title, Space { width, gutter: 0.0, fixed: false });
        let fits = wide.width <= NARROW + 2.0 * MARGIN;
        let narrow = (!fits).then(|| lay_out(panel.as_ref(), &title, Space { width: NARROW, gutter: 0.0, fixed: true }));
        Self { title, about, notes, wide, narrow }
    }
}

fn lay_out(panel: &dyn Panel, title: &str, space: Space) -> Scene {
    let (width, height) = panel.size(space);
    let mut scene = Scene::new(title);
    panel.draw(&mut scene, (MARGIN, MARGIN), space);
    scene.width = (width.max(space.width) + 2.0 * MARGIN).ceil();
    scene.height = (height + 2.0 * MARGIN).ceil();
    scene
}
