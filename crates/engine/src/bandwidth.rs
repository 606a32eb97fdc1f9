//! Bandwidth: loaders alone, with the kernels that short trials found fastest.

use std::time::Duration;

use memgauge_core::counters::WorkUnit;
use memgauge_core::experiment::{Coordinates, Experiment, Metric};
use memgauge_core::plan::{Loader, Traffic};

use crate::crew::{Deeds, window_gbs};
use crate::session::{BURST_WINDOWS, CellError, Session, WINDOW};
use crate::takes::Takes;

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
        let (choice, mut loads) = self.aside(|session| {
            let choice = session.choose(&crew)?;
            session.calibrate_rfo(&crew, loaders, traffic)?;
            let loads = session.loads(&crew, &choice, delay)?;
            Ok::<_, CellError>((choice, loads))
        })?;
        let clock = self.clock();
        let windows = self.burst_windows(LEAST_BURSTS);
        let (mut takes, mut spent) = (Takes::by_burst(LEAST_BURSTS as usize), Duration::ZERO);
        let (mut deeds, target) = (Deeds::default(), self.plan.stop.relative_half_width);
        loop {
            let mut burst = self.burst(None, loads, windows)?;
            let mark = self.mark(&burst, crew.first_cpu());
            deeds.add(&burst);
            self.tally_loads(&mut deeds.loaded, &burst.loads);
            takes.add(0, vec![window_gbs(&burst, |t| clock.ns(t), windows)], mark);
            loads = burst.take_loads();
            spent += WINDOW * windows as u32;
            let converged = takes.settled() && takes.converged(0, target);
            if self.interrupted() || (takes.len() >= LEAST_BURSTS as usize && self.enough(spent, takes.sampled(), converged)) {
                break;
            }
        }
        let (estimate, course) = (takes.conclude(0, target), takes.course());
        let mut evidence = deeds.evidence(&crew, &choice, |t| clock.ns(t));
        let (rfo, in_memory) = (self.known_rfo(), self.memory_sized(&crew));
        evidence.traffic = estimate.value.map(|gbs| deeds.traffic(gbs, rfo, in_memory));
        evidence.coverage = course.coverage;
        evidence.noise = self.unwatch(watch, &course.disturbance);
        takes.tell(&mut evidence.noise);
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
