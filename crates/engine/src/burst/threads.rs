//! The pinned threads of this machine, and what others have of their CPUs meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memgauge_kernels as kernels;
use memgauge_model::units::IdSet;
use memgauge_os::clock::Clock;
use memgauge_os::noise;

use super::counters::RunCounters;
use super::workers::{Finished, Job, Workers};
use crate::cutoff::Cutoff;
use crate::error::WorkerError;
use crate::neighbours::{NeighbourCpus, NeighbourLook, Others};

/// A thread woken from sleep arrives within this time on an idle machine; threads that come later show as lack of coverage.
pub(crate) const LEAD: Duration = Duration::from_micros(400);
/// And this much more for each thread of a large group.
const LEAD_PER_THREAD: Duration = Duration::from_micros(20);

/// Tells others that a job has ended: when it returns, and also when it is dropped because it could not run.
pub(crate) struct EndFlag(Arc<AtomicBool>);

impl EndFlag {
    /// A flag to set on drop, and the same flag to wait for.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        (Self(ended.clone()), ended)
    }
}

impl Drop for EndFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Keeps a CPU busy without touching memory until something has ended.
pub(crate) fn keep_awake_until(ended: &AtomicBool) {
    while !ended.load(Ordering::Acquire) {
        kernels::dependent_adds(1000);
    }
}

/// Jobs that keep CPUs awake until something has ended.
pub(crate) fn keep_awake_jobs<T: 'static>(cpus: &IdSet, ended: &Arc<AtomicBool>) -> Vec<(u32, Job<Option<T>>)> {
    let job = |cpu| {
        let ended = ended.clone();
        let keep_awake: Job<Option<T>> = Box::new(move || {
            keep_awake_until(&ended);
            None
        });
        (cpu, keep_awake)
    };
    cpus.iter().map(job).collect()
}

/// The pinned threads, their clock and their hardware counters.
pub(crate) struct Threads {
    pub(crate) clock: Clock,
    root: PathBuf,
    /// A hypervisor may give time to others.
    may_be_virtual: bool,
    pub(crate) counters: Option<RunCounters>,
    pub(crate) cutoff: Cutoff,
    pub(crate) workers: Workers,
    /// Of the CPUs and the memory of the cell in progress.
    pub(crate) neighbours: NeighbourCpus,
}

/// The readings of other programs' CPU time before a burst.
pub(crate) struct Before {
    stolen: Option<f64>,
    neighbours: NeighbourLook,
}

impl Threads {
    /// No thread yet, on a machine whose `/sys` and `/proc` are below `root`.
    pub(crate) fn new(clock: Clock, root: PathBuf, may_be_virtual: bool, counters: Option<RunCounters>, cutoff: Cutoff) -> Self {
        Self { clock, root, may_be_virtual, counters, cutoff, workers: Workers::default(), neighbours: NeighbourCpus::default() }
    }

    /// Runs jobs that measure on `cpus` for `length`, and after them in the list jobs that keep other CPUs awake. Returns what they did, and
    /// what others had of CPUs meanwhile.
    pub(crate) fn run_jobs<T: Send + 'static>(
        &mut self,
        jobs: Vec<(u32, Job<T>)>,
        cpus: &IdSet,
        length: Duration,
        timeout: Duration,
    ) -> Result<(Vec<Finished<T>>, Others), WorkerError> {
        let before = self.look(cpus);
        let finished = self.workers.run_required(jobs, cpus.len(), timeout)?;
        let others = self.others_since(&before, cpus, length);
        Ok((finished, others))
    }

    /// Time until all of `threads` threads that are woken now have arrived.
    pub(crate) fn lead(threads: usize) -> Duration {
        LEAD + LEAD_PER_THREAD * threads as u32
    }

    /// Seconds that the hypervisor has given to others, of the time of `cpus`. On metal nothing is read: the file is long on large machines.
    fn stolen(&self, cpus: &IdSet) -> Option<f64> {
        self.may_be_virtual.then(|| noise::stolen_seconds(&self.root, cpus)).flatten()
    }

    /// The time that others had so far on `cpus`, and on their neighbours.
    pub(crate) fn look(&self, cpus: &IdSet) -> Before {
        Before { stolen: self.stolen(cpus), neighbours: NeighbourLook::new(&self.root, &self.neighbours) }
    }

    /// The shares that others had since `before` on `cpus`, each in use for `length`, and on their neighbours.
    pub(crate) fn others_since(&self, before: &Before, cpus: &IdSet, length: Duration) -> Others {
        let seconds = length.as_secs_f64() * cpus.len() as f64;
        let steal = self.stolen(cpus).zip(before.stolen).filter(|_| seconds > 0.0).map(|(now, then)| (now - then) / seconds);
        let (neighbours, neighbours_busy) = before.neighbours.since(&self.root, &self.neighbours);
        Others { steal, neighbours, neighbours_busy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_kept_awake_for_a_thread_that_cannot_run_ends() {
        let cpu = memgauge_os::cpu::current_cpu().unwrap();
        let (flag, ended) = EndFlag::new();
        let jobs: Vec<(u32, Job<()>)> = vec![(1_000_000, Box::new(move || drop(flag))), (cpu, Box::new(move || keep_awake_until(&ended)))];
        let result = Workers::default().run(jobs, Duration::from_secs(20));
        assert!(matches!(result, Err(WorkerError::Pin { cpu: 1_000_000, .. })), "and not a thread that did not finish");
    }
}
