//! What a figure says about results that it cannot draw.

use memgauge_core::result::Report;

use super::frame::{Caption, Panel, WIDTH};
use super::scene::{Point, Scene};

/// What shows them instead.
const INSTEAD: &str = "'memgauge render FILE' shows the result as text, and its JSON holds every number";

/// A panel without a plot.
pub(crate) struct TextPanel(pub(crate) Caption);

impl Panel for TextPanel {
    fn size(&self) -> (f64, f64) {
        (WIDTH, self.0.above(WIDTH) + self.0.below(WIDTH))
    }

    fn draw(&self, scene: &mut Scene, at: Point) {
        self.0.draw_above(scene, at, WIDTH);
        self.0.draw_below(scene, (at.0, at.1 + self.0.above(WIDTH)), WIDTH);
    }
}

/// The panel of measurements that figures do not show.
pub(crate) fn panel(title: String, what: &str) -> TextPanel {
    TextPanel(Caption::new(title, format!("{what}. {INSTEAD}.")))
}

/// The caption of a figure without any panel.
pub(crate) fn nothing(reports: &[&Report]) -> Caption {
    let why = if reports.iter().any(|r| r.program.is_some()) {
        format!("The counters of a program are numbers without an axis: {INSTEAD}.")
    } else if reports.iter().any(|r| r.results.is_empty() && r.plan.is_none() && r.complete) {
        format!("The result describes a machine and holds no measurement: {INSTEAD}.")
    } else {
        format!("The result holds no measurement; it may have been interrupted before the first: {INSTEAD}.")
    };
    Caption::new("Nothing to draw", why)
}
