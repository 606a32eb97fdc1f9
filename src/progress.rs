//! A progress bar on standard error. It is drawn between bursts only, and has neither a thread nor a timer.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memgauge_core::plan::{Cell, Plan, Step};
use memgauge_engine::Observer;

/// Steps of the bar.
const RESOLUTION: u64 = 1000;

/// The bar. It is hidden when standard error is not a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    begin: Instant,
    estimated: Duration,
}

impl Progress {
    /// A bar for `plan`; `quiet` hides it.
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        // Nothing is drawn to a hidden target, nor to standard error when it is not a terminal.
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(RESOLUTION), target);
        if let Ok(style) = ProgressStyle::with_template("{msg:34!} [{bar:30}] {percent:>3} % {prefix}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, begin: Instant::now(), estimated: Duration::try_from_secs_f64(plan.estimated_s).unwrap_or_default() }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn cell(&mut self, step: &Step, _: &Cell) {
        self.bar.set_message(step.title.clone());
    }

    fn progress(&mut self, share: f64) {
        // The plan's estimate holds for a quiet machine. Once some time has passed, the pace so far is a better guide.
        let elapsed = self.begin.elapsed();
        let left = if share > 0.05 { elapsed.mul_f64((1.0 - share) / share) } else { self.estimated.mul_f64(1.0 - share) };
        self.bar.set_prefix(format!("about {} s left", left.as_secs() + 1));
        self.bar.set_position((share * RESOLUTION as f64) as u64);
    }
}
