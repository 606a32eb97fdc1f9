//! A progress bar on stderr, drawn between bursts only: no thread of its own, no steady tick.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memgauge_core::plan::{Cell, Plan, Step};
use memgauge_engine::Observer;

/// Steps of the bar.
const RESOLUTION: u64 = 1000;

/// The bar, hidden when stderr is no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    estimated: Duration,
}

impl Progress {
    /// A bar for `plan`; `quiet` hides it.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        // A hidden target and a stderr that is no terminal both draw nothing.
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(RESOLUTION), target);
        if let Ok(style) = ProgressStyle::with_template("{msg:34!} [{bar:30}] {percent:>3} % {prefix}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, began: Instant::now(), estimated: Duration::try_from_secs_f64(plan.estimated_s).unwrap_or_default() }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn cell(&mut self, step: &Step, _: &Cell) {
        self.bar.set_message(step.title.clone());
    }

    fn progress(&mut self, share: f64) {
        // The plan's estimate is an upper bound; the pace so far is a better guide once there is some.
        let elapsed = self.began.elapsed();
        let left = if share > 0.05 { elapsed.mul_f64((1.0 - share) / share) } else { self.estimated.mul_f64(1.0 - share) };
        self.bar.set_prefix(format!("about {} s left", left.as_secs() + 1));
        self.bar.set_position((share * RESOLUTION as f64) as u64);
    }
}
