//! Idle latency: a pointer chase alone, window-local and full-random, over fresh allocations.

use std::sync::Arc;
use std::time::Duration;

use memgauge_core::counters::WorkUnit;
use memgauge_core::directory::MemoryDir;
use memgauge_core::plan::{BufferPlan, Probe};
use memgauge_core::result::{ChaseOrder, Coordinates, Evidence, Experiment, Metric, Plateau, PrefetchEvidence};
use memgauge_core::stats;
use memgauge_core::units::{Bytes, IdSet};
use memgauge_kernels as kernels;
use memgauge_linux::clock::Clock;
use memgauge_linux::memory::Buffer;

use crate::burst::{Chase, Trace};
use crate::chain;
use crate::counting::{Sheet, certain};
use crate::pages::combined_pages;
use crate::session::{BURST_WINDOWS, CellError, Course, SETTLE_WINDOWS, Session, WINDOW, combined};

/// Counted windows of a chase that is only compared with another one: evidence, not a result.
const GLANCE_WINDOWS: usize = 4;
/// Times that it is tried: a thread whose time quota is used up misses a whole burst, and the next one begins with a new quota.
const MOST_GLANCES: u32 = 5;
/// Half of a buffer agrees with the whole within this: well above noise, well below the step from a cache to memory.
const PLATEAU_TOLERANCE: f64 = 0.05;
/// Times that a derived buffer may be doubled in search of the plateau.
const MOST_DOUBLINGS: u32 = 3;

/// Nanoseconds per hop in each counted window of a chase's trace; of the whole burst where a CPU shared with others left no window.
pub(crate) fn hop_ns(trace: &Trace, clock: &Clock, windows: usize) -> Vec<f64> {
    let of = |(ticks, units)| ns_per_hop(clock, ticks, units);
    let samples: Vec<f64> = (SETTLE_WINDOWS..SETTLE_WINDOWS + windows).filter_map(|i| trace.window(i)).filter_map(of).collect();
    if samples.is_empty() { trace.whole().and_then(of).into_iter().collect() } else { samples }
}

fn ns_per_hop(clock: &Clock, ticks: u64, units: u64) -> Option<f64> {
    (units > 0).then(|| clock.ns(ticks) / (units * kernels::CHASE_UNROLL as u64) as f64)
}

impl Session<'_> {
    pub(crate) fn latency(&mut self, experiment: Experiment, at: &Coordinates, probe: &Probe, allocations: u32) -> Result<(), CellError> {
        let watch = self.watch(probe.cpu, &IdSet::one(probe.cpu))?;
        let mut probe = probe.clone();
        let plateau = if probe.buffer.derived { self.find_plateau(&mut probe)? } else { None };
        let mut orders = vec![ChaseOrder::WindowLocal];
        if probe.window < probe.buffer.bytes {
            orders.push(ChaseOrder::FullRandom);
        }
        // A fixed time is shared among the allocations; otherwise short bursts, longer when the first allocations did not suffice.
        let fixed = self.plan.stop.budget_s / f64::from(allocations) / WINDOW.as_secs_f64();
        let mut windows = if self.plan.stop.fixed_time { (fixed.ceil() as usize).max(1) } else { BURST_WINDOWS };
        let mut samples: Vec<Vec<Vec<f64>>> = vec![Vec::new(); orders.len()];
        let (mut spent, mut made) = (Duration::ZERO, 0);
        let (mut pages, mut placements, mut sequential) = (Vec::new(), Vec::new(), None);
        let mut file;
        let mut course = Course::default();
        let mut sheets: Vec<Sheet> = orders.iter().map(|_| Sheet::default()).collect();
        loop {
            let buffer = self.allocate(&probe.buffer)?;
            pages.push((buffer.pages().clone(), probe.buffer.bytes));
            file = buffer.file().cloned();
            if sequential.is_none() {
                sequential = Some(self.glance(&probe, probe.buffer.bytes, ChaseOrder::Sequential, &buffer)?);
            }
            for ((order, groups), sheet) in orders.iter().zip(&mut samples).zip(&mut sheets) {
                let chase = self.chain(&probe, probe.buffer.bytes, *order, &buffer, u64::from(made))?;
                let burst = self.burst(Some((probe.cpu, chase)), Vec::new(), windows)?;
                course.add(&burst);
                if let Some((trace, _)) = &burst.chase {
                    self.tally_chase(sheet, probe.cpu, trace);
                }
                let clock = self.clock();
                groups.push(burst.chase.iter().flat_map(|(trace, _)| hop_ns(trace, &clock, windows)).collect());
            }
            // After the chase: pages that were moved meanwhile are found where they are now.
            placements.push(buffer.placement_now());
            spent += WINDOW * windows as u32;
            made += 1;
            let converged = samples.iter().all(|groups| stats::estimate(groups, self.plan.stop.relative_half_width).converged);
            if self.interrupted() || (made >= allocations && self.enough(spent, samples.iter().flatten().any(|g| !g.is_empty()), converged))
            {
                break;
            }
            if made == allocations {
                windows *= 2;
            }
        }
        let noise = self.unwatch(watch, &course.disturbance);
        let certain = certain(self.setting.machine, probe.cpu, probe.buffer.bytes, true);
        for ((order, groups), sheet) in orders.iter().zip(&samples).zip(&sheets) {
            let estimate = stats::estimate(groups, self.plan.stop.relative_half_width);
            let prefetch = estimate
                .value
                .zip(sequential)
                .map(|(random, sequential_ns)| PrefetchEvidence { sequential_ns, random_over_sequential: random / sequential_ns });
            let evidence = Evidence {
                threads: 1,
                kernel: "chase".into(),
                buffer: probe.buffer.bytes,
                window: Some(if *order == ChaseOrder::WindowLocal { probe.window } else { probe.buffer.bytes }),
                stride: Some(probe.stride),
                allocations: made,
                pages: combined_pages(pages.iter().map(|(p, bytes)| (p, *bytes))),
                file: file.clone(),
                placement: combined(placements.iter().cloned()),
                prefetch,
                plateau,
                noise: noise.clone(),
                ..Default::default()
            };
            self.push(experiment, Coordinates { order: Some(*order), ..at.clone() }, Metric::Latency, estimate, evidence);
            self.attach(sheet, WorkUnit::Hop, certain);
        }
        Ok(())
    }

    /// Writes a chain into the first `bytes` of `buffer`.
    pub(crate) fn chain(
        &mut self,
        probe: &Probe,
        bytes: Bytes,
        order: ChaseOrder,
        buffer: &Arc<Buffer>,
        nth: u64,
    ) -> Result<Chase, CellError> {
        Ok(Chase::new(buffer.clone(), self.chain_start(probe, bytes, order, buffer, nth)?))
    }

    /// Writes a chain and returns the offset of its first line. `nth` tells the chains of several allocations apart.
    pub(crate) fn chain_start(
        &self,
        probe: &Probe,
        bytes: Bytes,
        order: ChaseOrder,
        buffer: &Buffer,
        nth: u64,
    ) -> Result<usize, CellError> {
        let line = self.line();
        let seed = self.plan.seed.wrapping_add(nth);
        let order = chain::Order { bytes, window: probe.window, stride: probe.stride, line, order, seed };
        chain::write(buffer, &order, &probe.buffer.touch)
    }

    /// The machine's cache line; the largest where caches differ, 64 B where the machine does not say.
    pub(crate) fn line(&self) -> Bytes {
        let lines = self.setting.machine.topology.caches.iter().filter_map(|c| c.line);
        Bytes(lines.max().map_or(64, u64::from))
    }

    /// A short chase over the first `bytes` of `buffer`: median nanoseconds per hop.
    fn glance(&mut self, probe: &Probe, bytes: Bytes, order: ChaseOrder, buffer: &Arc<Buffer>) -> Result<f64, CellError> {
        let mut chase = self.chain(probe, bytes, order, buffer, 0)?;
        let clock = self.clock();
        for _ in 0..MOST_GLANCES {
            let burst = self.burst(Some((probe.cpu, chase)), Vec::new(), GLANCE_WINDOWS)?;
            let Some((trace, moved_on)) = burst.chase else { break };
            if let Some(ns) = stats::median(&hop_ns(&trace, &clock, GLANCE_WINDOWS)) {
                return Ok(ns);
            }
            chase = moved_on;
        }
        Err(CellError::Cannot(format!("CPU {} got no time in {MOST_GLANCES} bursts; the machine is overloaded", probe.cpu)))
    }

    /// Doubles the probe's buffer until half of it is as slow as all of it, so that what is measured is memory even where the machine's
    /// description of its caches is wrong, as it is in many virtual machines.
    fn find_plateau(&mut self, probe: &mut Probe) -> Result<Option<Plateau>, CellError> {
        let mut found = None;
        for _ in 0..=MOST_DOUBLINGS {
            let half = Bytes(probe.buffer.bytes.0 / 2);
            if half < probe.window {
                return Ok(None);
            }
            let buffer = match self.allocate(&probe.buffer) {
                // A pool or a node may not hold the larger buffer; the one before is the best there is.
                Err(_) if found.is_some() => {
                    probe.buffer.bytes = half;
                    break;
                }
                buffer => buffer?,
            };
            let half_ns = self.glance(probe, half, ChaseOrder::WindowLocal, &buffer)?;
            let whole_ns = self.glance(probe, probe.buffer.bytes, ChaseOrder::WindowLocal, &buffer)?;
            let reached = whole_ns <= half_ns * (1.0 + PLATEAU_TOLERANCE);
            found = Some(Plateau { half_ns, whole_ns, reached });
            let larger = Bytes(probe.buffer.bytes.0 * 2);
            if reached || self.interrupted() || !self.fits(&probe.buffer, larger) {
                break;
            }
            probe.buffer.bytes = larger;
        }
        Ok(found)
    }

    /// Whether a buffer of this size on this node, or in this directory, is within what this process may take.
    fn fits(&self, plan: &BufferPlan, bytes: Bytes) -> bool {
        let allowed = &self.setting.machine.allowed;
        let directory = self.plan.directory_of(plan);
        let in_memory = bytes <= allowed.memory && allowed.node_memory.get(&plan.node).is_none_or(|room| bytes <= *room);
        directory.is_none_or(|d| bytes.0 <= d.room()) && (in_memory || directory.is_some_and(MemoryDir::is_dax))
    }
}
