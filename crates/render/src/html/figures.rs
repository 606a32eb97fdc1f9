//! Panels as figures of a page.

use crate::figure::frame::Panel;
use crate::figure::inline::{self, Used};
use crate::figure::plate::Plate;

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
    pub(super) used: Used,
    count: usize,
}

impl Figures {
    pub(super) fn make(&mut self, panels: impl IntoIterator<Item = Box<dyn Panel>>) -> Vec<Figure> {
        panels.into_iter().map(|panel| self.figure(Plate::new(panel))).collect()
    }

    fn figure(&mut self, plate: Plate) -> Figure {
        self.count += 1;
        let id = format!("figure-{}", self.count);
        let named_by = format!("{id}-title {id}-about");
        let class = if plate.narrow.is_some() { "wide" } else { "any" };
        let small = plate.is_small();
        let mut pictures = vec![inline::write(&plate.wide, class, &named_by, true, &mut self.used)];
        // Phones have no pointer that rests on something.
        pictures.extend(plate.narrow.map(|scene| inline::write(&scene, "narrow", &named_by, false, &mut self.used)));
        Figure { id, title: plate.title, repeats: false, about: plate.about, notes: plate.notes, small, pictures }
    }
}
