//! Panels as figures of a page.

use crate::figure::frame::Panel;
use crate::figure::inline::{self, UsedColours};
use crate::figure::page_panel::PagePanel;

/// A figure: its picture for wide pages and for phones, and its words.
pub(super) struct Figure {
    pub(super) id: String,
    pub(super) title: String,
    /// The title stands above it already.
    pub(super) repeats: bool,
    pub(super) about: String,
    pub(super) notes: Vec<String>,
    /// Two have room beside each other.
    pub(super) small: bool,
    /// The pictures, as SVG.
    pub(super) pictures: Vec<String>,
}

/// Makes figures, each with an identifier of its own, and remembers their colours.
#[derive(Default)]
pub(super) struct Figures {
    pub(super) used: UsedColours,
    count: usize,
}

impl Figures {
    pub(super) fn make(&mut self, panels: impl IntoIterator<Item = Box<dyn Panel>>) -> Vec<Figure> {
        panels.into_iter().map(|panel| self.figure(PagePanel::new(panel))).collect()
    }

    fn figure(&mut self, panel: PagePanel) -> Figure {
        self.count += 1;
        let id = format!("figure-{}", self.count);
        let named_by = format!("{id}-title {id}-about");
        let class = if panel.narrow.is_some() { "wide" } else { "any" };
        let small = panel.is_small();
        let mut pictures = vec![inline::write(&panel.wide, class, &named_by, true, &mut self.used)];
        // Phones have no pointer that rests on something.
        pictures.extend(panel.narrow.map(|scene| inline::write(&scene, "narrow", &named_by, false, &mut self.used)));
        Figure { id, title: panel.title, repeats: false, about: panel.about, notes: panel.notes, small, pictures }
    }
}
