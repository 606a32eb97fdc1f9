//! What has no figure says so, and what shows it instead.

use memgauge_core::result::Report;

use super::frame::{Panel, WIDTH, Words};
use super::scene::{Point, Scene};

/// What shows a result that no figure does.
pub(crate) const INSTEAD: &str = "'memgauge render FILE' shows the result as text, and its JSON holds every number";

/// A panel of words alone.
pub(crate) struct Said(pub(crate) Words);

impl Panel for Said {
    fn size(&self) -> (f64, f64) {
        (WIDTH, self.0.above(WIDTH) + self.0.below(WIDTH))
    }

    fn draw(&self, scene: &mut Scene, at: Point) {
        self.0.draw_above(scene, at, WIDTH);
        self.0.draw_below(scene, (at.0, at.1 + self.0.above(WIDTH)), WIDTH);
    }
}

/// A kind of measurement that no figure knows.
pub(crate) fn no_figure(title: String, what: &str) -> Said {
    Said(Words::new(title, format!("{what}. {INSTEAD}.")))
}

/// The words of a figure without any panel.
pub(crate) fn nothing(reports: &[&Report]) -> Words {
    let why = if reports.iter().any(|r| r.program.is_some()) {
        format!("The counters of a program are numbers without an axis: {INSTEAD}.")
    } else if reports.iter().any(|r| r.results.is_empty() && r.plan.is_none() && r.complete) {
        format!("The result describes a machine and holds no measurement: {INSTEAD}.")
    } else {
        format!("The result holds no measurement; it may have been interrupted before the first: {INSTEAD}.")
    };
    Words::new("Nothing to draw", why)
}
