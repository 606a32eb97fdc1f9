//! The message in a figure about results that it cannot draw.

use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Measurement, Report};
use memgauge_model::words;
use memgauge_model::words::{Command, Verb, Words};

use super::frame::{Caption, Panel, Space};
use super::scene::{Point, Scene};

/// What shows them instead.
fn instead() -> Words {
    words!["'", Command::new(Verb::Render).word("FILE"), "' shows the result as text, and its JSON holds every number"]
}

/// A panel without a plot.
pub(crate) struct TextPanel(pub(crate) Caption);

impl Panel for TextPanel {
    fn size(&self, space: Space) -> (f64, f64) {
        (space.width, self.0.above(space.width) + self.0.below(space.width))
    }

    fn draw(&self, scene: &mut Scene, at: Point, space: Space) {
        self.0.draw_above(scene, at, space.width);
        self.0.draw_below(scene, (at.0, at.1 + self.0.above(space.width)), space.width);
    }

    fn caption(&mut self) -> &mut Caption {
        &mut self.0
    }
}

/// Why results have no panel, and what to do instead.
pub(crate) fn why_nothing(reports: &[&Report]) -> String {
    let instead = instead();
    let loops = |m: &Measurement| matches!(m.experiment, Experiment::Stream | Experiment::Chase);
    if reports.iter().any(|r| r.program.is_some()) {
        format!("the counters of a program are numbers without an axis; {instead}")
    } else if reports.iter().any(|r| r.results.iter().any(loops)) {
        let sweep = Command::new(Verb::Sweep).to("FILE.svg");
        format!("'stream' and 'chase' of one size are one number; give several sizes, or draw '{sweep}'; {instead}")
    } else if reports.iter().any(|r| r.results.is_empty() && r.plan.is_none() && r.complete) {
        format!("the result describes a machine and holds no measurement; {instead}")
    } else {
        format!("the result holds no measurement; it may have been interrupted before the first; {instead}")
    }
}

/// The caption of a figure without any panel.
pub(crate) fn nothing(reports: &[&Report]) -> Caption {
    Caption::new("Nothing to draw", why_nothing(reports))
}
