//! Bandwidth: loaders alone, with the kernels that short trials found fastest.

use std::time::Duration;

use memgauge_core::counters::WorkUnit;
use memgauge_core::plan::{Loader, Traffic};
use memgauge_core::result::{Coordinates, Experiment, Metric};
use memgauge_core::stats;

use crate::crew::{Deeds, window_gbs};
use crate::session::{BURST_WINDOWS, CellError, Course, Session, WINDOW};

/// Bursts of a cell, at least: six is the fewest of which a non-parametric 95 % interval exists.
const LEAST_BURSTS: u32 = 6;

impl Session<'_> {
    pub(crate) fn bandwidth(
        &mut self,
        experiment: Experiment,
        at: &Coordinates,
        loaders: &[Loader],
        traffic: &Traffic,
        delay: u32,
    ) -> Result<(), CellError> {
        let crew = self.crew(loaders, traffic)?;
        let watch = self.watch(crew.first_cpu(), &crew.cpus())?;
        let choice = self.choose(&crew)?;
        self.calibrate_rfo(&crew, loaders, traffic)?;
        let clock = self.clock();
        let windows = self.burst_windows(LEAST_BURSTS);
        let (mut groups, mut spent) = (Vec::new(), Duration::ZERO);
        let (mut course, mut deeds) = (Course::default(), Deeds::default());
        let mut loads = self.loads(&crew, &choice, delay)?;
        loop {
            let mut burst = self.burst(None, loads, windows)?;
            course.add(&burst);
            deeds.add(&burst);
            self.tally_loads(&mut deeds.loaded, &burst.loads);
            groups.push(window_gbs(&burst, |t| clock.ns(t), windows));
            loads = burst.take_loads();
            spent += WINDOW * windows as u32;
            let converged = stats::estimate(&groups, self.plan.stop.relative_half_width).converged;
            if self.interrupted()
                || (groups.len() >= LEAST_BURSTS as usize && self.enough(spent, groups.iter().any(|g| !g.is_empty()), converged))
            {
                break;
            }
        }
        let estimate = stats::estimate(&groups, self.plan.stop.relative_half_width);
        let mut evidence = deeds.evidence(&crew, &choice, |t| clock.ns(t));
        let (rfo, in_memory) = (self.known_rfo(), self.memory_sized(&crew));
        evidence.traffic = estimate.value.map(|gbs| deeds.traffic(gbs, rfo, in_memory));
        evidence.coverage = course.coverage;
        evidence.noise = self.unwatch(watch, &course.disturbance);
        self.tell_of_corruption(&evidence, at);
        self.push(experiment, at.clone(), Metric::Bandwidth, estimate, evidence);
        self.attach(&deeds.loaded, WorkUnit::Line, crew.certain(self.setting.machine, &choice));
        Ok(())
    }

    /// Counted windows of a burst: a fixed time is shared among the fewest bursts.
    pub(crate) fn burst_windows(&self, bursts: u32) -> usize {
        let fixed = (self.plan.stop.budget_s / f64::from(bursts) / WINDOW.as_secs_f64()).ceil() as usize;
        if self.plan.stop.fixed_time { fixed.max(1) } else { BURST_WINDOWS }
    }
}
