//! Prefetchers off while latency is measured, as in the original: where the registers can be written and chases show that it has an effect.

use std::collections::BTreeMap;
use std::time::Duration;

use memgauge_analysis::conclusions::advise;
use memgauge_engine::{Observer, RunContext};
use memgauge_model::experiment::ChaseOrder;
use memgauge_model::plan::KernelRow;
use memgauge_model::prefetchers::taint_note;
use memgauge_model::spec::{ChaseSpec, LatencyShape, LatencySpec, Spec, Task};
use memgauge_model::topology::Machine;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_planner::plan;

use super::messages::message;
use super::sections::Translation;
use crate::console;
use crate::prefetch::controls::{PrefetchControls, found_notes, stand_in_obeys, with_advice};
use crate::prefetch::guard::GuardedChange;

/// `leave`: registers are not touched, and chases are random as where they cannot be.
pub(super) const VARIABLE: &str = "MEMGAUGE_MLC_PREFETCH";
/// The buffer whose chases show whether prefetchers are off. It need not be memory-sized: prefetchers hide a last-level cache, too.
const TRIAL_SIZE: Bytes = Bytes::mib(64);
const TRIAL_TIME: Duration = Duration::from_millis(200);

/// Whether the user keeps registers from being touched.
pub(super) fn left_alone() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "leave")
}

/// Prefetchers of the CPUs that chase, switched off and back for each section that chases.
pub(super) struct ChasePrefetchers(GuardedChange);

impl ChasePrefetchers {
    /// Switches them off, looks whether that has an effect, and back on.
    ///
    /// # Errors
    /// Why prefetchers stay on. The registers are as before.
    pub(super) fn begin(cpus: &IdSet, context: &RunContext<'_>, kernels: &[KernelRow]) -> anyhow::Result<Self> {
        let controls = PrefetchControls::find(context.machine);
        controls.check(cpus)?;
        let by_cpu: BTreeMap<_, _> = controls.by_cpu.into_iter().filter(|(cpu, _)| cpus.contains(*cpu)).collect();
        let guarded = GuardedChange::begin(&by_cpu).map_err(|e| with_advice(&e))?;
        message(taint_note().message);
        found_notes(guarded.change.leftover()).iter().for_each(|note| message(console::with_advice(note)));
        let mut this = Self(guarded);
        this.off()?;
        if !stand_in_obeys() {
            effect(cpus.first().unwrap_or(0), context, kernels)?;
        }
        this.back()?;
        Ok(this)
    }

    /// # Errors
    /// When a register cannot be written or does not keep its value.
    pub(super) fn off(&mut self) -> anyhow::Result<()> {
        self.0.change.set(true).map_err(|e| with_advice(&e))
    }

    /// # Errors
    /// When they were not off all the time, as far as their registers say now.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.0.change.verify().map(|_| ()).map_err(|e| with_advice(&e))
    }

    /// Puts the registers back until the next section that chases.
    ///
    /// # Errors
    /// When one does not take its value.
    pub(super) fn back(&mut self) -> anyhow::Result<()> {
        self.0.change.put_back().map_err(|e| with_advice(&e))
    }

    /// # Errors
    /// When registers could not be put back.
    pub(super) fn end(self) -> anyhow::Result<()> {
        self.0.end().map_err(|e| with_advice(&e))
    }
}

/// The CPUs whose latency is measured. Those that only make traffic keep their prefetchers.
pub(super) fn chasing_cpus(translation: &Translation, machine: &Machine, kernels: &[KernelRow]) -> IdSet {
    let specs = translation.sections.iter().filter(|section| section.chases()).flat_map(|section| &section.specs);
    let plans = specs.filter_map(|spec| plan(spec, machine, kernels).ok());
    let works = plans.flat_map(|plan| plan.steps).flat_map(|step| step.cells).map(|cell| cell.work);
    works.filter_map(|work| Some(work.probe()?.cpu)).collect()
}

/// # Errors
/// When chases on this CPU show that a prefetcher is active, or show nothing.
fn effect(cpu: u32, context: &RunContext<'_>, kernels: &[KernelRow]) -> anyhow::Result<()> {
    let chase = ChaseSpec { buffer: Some(TRIAL_SIZE), ..ChaseSpec::default() };
    let orders = vec![ChaseOrder::Sequential, ChaseOrder::WindowLocal];
    let mut spec = Spec::new(Task::Latency(LatencySpec { shape: LatencyShape::One, chase, orders }));
    (spec.cpus, spec.time) = (Some(IdSet::one(cpu)), Some(TRIAL_TIME));
    let plan = plan(&spec, context.machine, kernels)?;
    let outcome = memgauge_engine::run(&plan, context, &mut Unwatched);
    if let Some(note) = advise::contradicted(&outcome.results) {
        anyhow::bail!(note.message);
    }
    anyhow::ensure!(
        outcome.results.iter().any(|m| m.evidence.prefetch.is_some()),
        "whether switching them off has an effect could not be measured"
    );
    Ok(())
}

/// Watches nothing: a trial takes less than a second.
struct Unwatched;

impl Observer for Unwatched {
    fn cell(&mut self, _: &memgauge_model::plan::Step, _: &memgauge_model::plan::Cell) {}
    fn progress(&mut self, _: f64) {}
}
