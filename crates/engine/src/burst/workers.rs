//! One pinned thread per CPU, alive for the whole run, so that a burst costs a wake-up and not a thread.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memgauge_model::result::Noise;
use memgauge_os::security::explained_start;
use memgauge_os::{cpu, noise};

use crate::error::WorkerError;

/// Stack of a worker: loops and a few calls. Small, because there may be a thousand workers.
const STACK_BYTES: usize = 256 << 10;
/// A single job that has not ended after this long is given up: setting up takes a few seconds at most.
const JOB_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// A job's return value, and the scheduler's interruptions of its thread meanwhile.
pub(crate) struct Finished<T> {
    pub(crate) value: T,
    pub(crate) scheduler: SchedulerNoise,
}

/// The scheduler's interruptions of threads while they measured; adds up over threads and bursts.
#[derive(Clone, Copy, Default)]
pub(crate) struct SchedulerNoise {
    /// Threads that were found on another CPU when they ended.
    pub(crate) migrations: u64,
    /// Times that the kernel took a thread off its CPU; `None` when it does not tell.
    pub(crate) switches: Option<u64>,
    /// Nanoseconds that threads were ready to run and did not.
    waited_ns: Option<u64>,
    /// Nanoseconds of all threads.
    total_ns: u64,
}

impl SchedulerNoise {
    /// Share of the threads' time during which they were ready to run and did not.
    pub(crate) fn waited_share(&self) -> Option<f64> {
        (self.total_ns > 0).then(|| self.waited_ns.map(|ns| ns as f64 / self.total_ns as f64))?
    }

    /// The noise of a whole cell, with this instead of what happened to all of its threads.
    pub(crate) fn replace_in(&self, noise: &Noise) -> Noise {
        Noise { involuntary_switches: self.switches, waited: self.waited_share(), migrations: Some(self.migrations), ..noise.clone() }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| b.map(|b| b + a.unwrap_or(0)).or(a);
        self.migrations += other.migrations;
        self.switches = sum(self.switches, other.switches);
        self.waited_ns = sum(self.waited_ns, other.waited_ns);
        self.total_ns += other.total_ns;
    }
}

/// Runs a job on a CPU that the thread is pinned to, and counts what the scheduler does to it.
pub(crate) fn run_observed<T>(cpu: u32, job: impl FnOnce() -> T) -> Finished<T> {
    let started = Instant::now();
    let (switches, waited) = (noise::thread_involuntary_switches(), noise::thread_waited_ns());
    let value = job();
    let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
    let scheduler = SchedulerNoise {
        waited_ns: since(noise::thread_waited_ns(), waited),
        switches: since(noise::thread_involuntary_switches(), switches),
        migrations: u64::from(cpu::current_cpu().is_ok_and(|now| now != cpu)),
        total_ns: started.elapsed().as_nanos() as u64,
    };
    Finished { value, scheduler }
}

type Task = Box<dyn FnOnce() + Send>;

struct Worker {
    tasks: Sender<Task>,
    thread: JoinHandle<()>,
}

/// Pinned threads by CPU, started when first needed.
pub(crate) struct Workers {
    by_cpu: BTreeMap<u32, Worker>,
    /// Starts a thread for a CPU.
    start: fn(u32) -> Result<Worker, WorkerError>,
    /// CPUs whose thread was given up or has ended.
    lost: Vec<u32>,
}

impl Default for Workers {
    fn default() -> Self {
        Self { by_cpu: BTreeMap::new(), start: Worker::start, lost: Vec::new() }
    }
}

impl Workers {
    /// Runs every job on its CPU at the same time and waits for all; the caller sleeps meanwhile. At most one job per CPU.
    pub(crate) fn run<T: Send + 'static>(&mut self, jobs: Vec<(u32, Job<T>)>, timeout: Duration) -> Result<Vec<Finished<T>>, WorkerError> {
        let required = jobs.len();
        self.run_required(jobs, required, timeout)
    }

    /// The same where only the first `required` jobs must be done. Others are left out when their CPU may not be used any more or has no
    /// thread. A job that must be done and cannot begin ends the start of those after it; those before it are waited for.
    pub(crate) fn run_required<T: Send + 'static>(
        &mut self,
        jobs: Vec<(u32, Job<T>)>,
        required: usize,
        timeout: Duration,
    ) -> Result<Vec<Finished<T>>, WorkerError> {
        let (sender, receiver) = mpsc::channel();
        let cpus: Vec<u32> = jobs.iter().map(|(cpu, _)| *cpu).collect();
        let mut results: Vec<Option<Result<Finished<T>, WorkerError>>> = cpus.iter().map(|_| None).collect();
        let mut failed: Option<WorkerError> = None;
        for (index, (cpu, job)) in jobs.into_iter().enumerate() {
            if let Some(error) = &failed {
                results[index] = Some(Err(error.clone()));
                continue;
            }
            let sender = sender.clone();
            let task: Task = Box::new(move || {
                // Pinned each time: a CPU that went offline and came back has lost its threads.
                let result =
                    cpu::pin_to(cpu).map_err(|e| WorkerError::Pin { cpu, why: cpu::why_not_pinned(&e) }).map(|()| run_observed(cpu, job));
                // The receiver is gone only when the caller has given up waiting.
                let _ = sender.send((index, result));
            });
            let begun = self.worker(cpu).and_then(|worker| worker.tasks.send(task).map_err(|_| WorkerError::Lost { cpu }));
            if let Err(error) = begun {
                failed = (!may_be_left_out(index, required, &error)).then(|| error.clone());
                results[index] = Some(Err(error));
            }
        }
        drop(sender);
        let waiting = results.iter().filter(|r| r.is_none()).count();
        for _ in 0..waiting {
            match receiver.recv_timeout(timeout) {
                Ok((index, result)) => results[index] = Some(result),
                Err(error) => {
                    // A thread that has not answered may never do so; nobody waits for it again, not even at the end.
                    let silent: Vec<u32> = cpus.iter().zip(&results).filter(|(_, r)| r.is_none()).map(|(cpu, _)| *cpu).collect();
                    silent.iter().for_each(|cpu| self.remove(*cpu));
                    let cpu = silent.first().copied().unwrap_or(0);
                    return Err(if error == RecvTimeoutError::Timeout { WorkerError::TimedOut { cpu } } else { WorkerError::Lost { cpu } });
                }
            }
        }
        let results = results.into_iter().flatten().enumerate();
        let left_out = |index, result: &Result<_, WorkerError>| result.as_ref().is_err_and(|e| may_be_left_out(index, required, e));
        results.filter(|(index, result)| !left_out(*index, result)).map(|(_, result)| result).collect()
    }

    /// CPUs whose thread was given up or has ended since the last call: what belonged to it, such as its counters, is gone as well.
    pub(crate) fn take_lost(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.lost)
    }

    fn remove(&mut self, cpu: u32) {
        if self.by_cpu.remove(&cpu).is_some() {
            self.lost.push(cpu);
        }
    }

    /// Runs one job on one CPU.
    pub(crate) fn run_on<T: Send + 'static>(&mut self, cpu: u32, job: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkerError> {
        let mut finished = self.run(vec![(cpu, Box::new(job) as Job<T>)], JOB_TIMEOUT)?;
        finished.pop().map(|f| f.value).ok_or(WorkerError::Lost { cpu })
    }

    fn worker(&mut self, cpu: u32) -> Result<&Worker, WorkerError> {
        if self.by_cpu.get(&cpu).is_some_and(|w| w.thread.is_finished()) {
            self.remove(cpu);
        }
        Ok(match self.by_cpu.entry(cpu) {
            Entry::Occupied(worker) => worker.into_mut(),
            Entry::Vacant(entry) => entry.insert((self.start)(cpu)?),
        })
    }
}

/// Whether a job that failed so can be done without, where only the first `required` must be done.
const fn may_be_left_out(index: usize, required: usize, error: &WorkerError) -> bool {
    index >= required && matches!(error, WorkerError::Pin { .. } | WorkerError::Start { .. })
}

impl Worker {
    fn start(cpu: u32) -> Result<Self, WorkerError> {
        let (tasks, inbox) = mpsc::channel::<Task>();
        let thread = std::thread::Builder::new()
            .name(format!("cpu{cpu}"))
            .stack_size(STACK_BYTES)
            .spawn(move || inbox.into_iter().for_each(|task| task()))
            .map_err(|e| WorkerError::Start { cpu, why: explained_start(&e) })?;
        Ok(Self { tasks, thread })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for (_, Worker { tasks, thread }) in std::mem::take(&mut self.by_cpu) {
            drop(tasks);
            // A worker that panicked has written so to stderr already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_cpu() -> u32 {
        cpu::current_cpu().unwrap()
    }

    #[test]
    fn a_job_runs_on_its_cpu() {
        let cpu = a_cpu();
        let mut workers = Workers::default();
        let seen = workers.run_on(cpu, cpu::current_cpu).unwrap();
        assert_eq!(seen.unwrap(), cpu);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = Workers::default().run_on(1_000_000, || ()).unwrap_err();
        assert!(error.to_string().contains("CPU 1000000"), "{error}");
    }

    #[test]
    fn a_job_that_is_not_required_may_lose_its_cpu() {
        let cpu = a_cpu();
        let jobs = || [cpu, 1_000_000].map(|cpu| (cpu, Box::new(|| 7) as Job<i32>)).into();
        let finished = Workers::default().run_required(jobs(), 1, Duration::from_secs(10)).unwrap();
        assert_eq!(finished.into_iter().map(|f| f.value).collect::<Vec<_>>(), [7]);
        assert!(matches!(Workers::default().run(jobs(), Duration::from_secs(10)), Err(WorkerError::Pin { cpu: 1_000_000, .. })));
    }

    #[test]
    fn jobs_that_began_are_waited_for_when_a_later_one_cannot_begin() {
        let start =
            |cpu| if cpu == 1_000_000 { Err(WorkerError::Start { cpu, why: "no threads left".into() }) } else { Worker::start(cpu) };
        let mut workers = Workers::default();
        workers.start = start;
        let ended = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let job = |cpu| {
            let ended = ended.clone();
            let work = move || {
                std::thread::sleep(Duration::from_millis(50));
                ended.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            };
            (cpu, Box::new(work) as Job<()>)
        };
        let result = workers.run(vec![job(a_cpu()), job(1_000_000), job(1_000_001)], Duration::from_secs(10));
        assert!(matches!(result, Err(WorkerError::Start { cpu: 1_000_000, .. })));
        assert_eq!(ended.load(std::sync::atomic::Ordering::SeqCst), 1, "the first job has ended, and the third never began");
    }

    #[test]
    fn a_panicking_job_is_an_error_and_the_cpu_works_afterwards() {
        let cpu = a_cpu();
        let mut workers = Workers::default();
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let lost = workers.run_on(cpu, || panic!("on purpose"));
        std::panic::set_hook(hook);
        assert!(matches!(lost, Err(WorkerError::Lost { .. })), "{lost:?}");
        assert_eq!(workers.take_lost(), [cpu], "what belonged to it is gone");
        assert_eq!(workers.run_on(cpu, || 7).unwrap(), 7);
        assert!(workers.take_lost().is_empty());
    }

    #[test]
    fn only_cpus_that_cannot_be_used_are_left_out() {
        let (start, lost) = (WorkerError::Start { cpu: 1, why: String::new() }, WorkerError::Lost { cpu: 1 });
        assert!(may_be_left_out(1, 1, &start) && !may_be_left_out(0, 1, &start) && !may_be_left_out(1, 1, &lost));
    }

    #[test]
    fn threads_that_hang_are_given_up_and_the_rest_end() {
        let mut workers = Workers::default();
        // Threads are started before they are pinned, so that CPUs which do not exist hang as well as others; one CPU may be all there is.
        let cpu = a_cpu();
        let (releases, jobs): (Vec<_>, Vec<(u32, Job<()>)>) = [cpu, cpu + 1]
            .into_iter()
            .map(|worker_cpu| {
                let (release, wait) = mpsc::channel::<()>();
                let task: Task = Box::new(move || {
                    let _ = wait.recv();
                });
                workers.worker(worker_cpu).unwrap().tasks.send(task).unwrap();
                (release, (worker_cpu, Box::new(|| ()) as Job<()>))
            })
            .unzip();
        let result = workers.run(jobs, Duration::from_millis(20));
        assert!(matches!(result, Err(WorkerError::TimedOut { cpu: named }) if named == cpu));
        assert_eq!(workers.take_lost(), [cpu, cpu + 1]);
        // Would wait for a thread that hangs.
        drop(workers);
        drop(releases);
    }

    #[test]
    fn a_job_that_hangs_is_given_up() {
        let cpu = a_cpu();
        let mut workers = Workers::default();
        let (release, wait) = mpsc::channel::<()>();
        let job: Job<()> = Box::new(move || {
            let _ = wait.recv();
        });
        let result = workers.run(vec![(cpu, job)], Duration::from_millis(20));
        assert!(matches!(result, Err(WorkerError::TimedOut { .. })));
        drop(release);
    }
}
