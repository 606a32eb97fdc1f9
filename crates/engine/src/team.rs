//! One pinned thread a CPU, alive for the whole run, so that a burst costs a wake-up and not a thread.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memgauge_os::{cpu, noise};

/// Stack of a worker: loops and a few calls. Small, because there may be a thousand.
const STACK_BYTES: usize = 256 << 10;

/// Work for one CPU.
pub(crate) type Job<T> = Box<dyn FnOnce() -> T + Send>;

/// What a CPU's job gave, and how it was disturbed.
pub(crate) struct Done<T> {
    pub(crate) value: T,
    pub(crate) disturbance: Disturbance,
}

/// What befell threads while they measured; adds up over threads and bursts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Disturbance {
    /// Threads that were found on another CPU when they ended.
    pub(crate) migrations: u64,
    /// Times that the kernel took a thread off its CPU; `None` when it does not tell.
    pub(crate) switches: Option<u64>,
    /// Nanoseconds that threads were ready to run and did not.
    waited_ns: Option<u64>,
    /// Nanoseconds of all threads.
    total_ns: u64,
}

impl Disturbance {
    /// Nothing befell anyone.
    #[cfg(test)]
    pub(crate) const NONE: Self = Self { migrations: 0, switches: None, waited_ns: None, total_ns: 0 };

    /// Share of the threads' time in which they were ready to run and did not.
    pub(crate) fn waited(&self) -> Option<f64> {
        (self.total_ns > 0).then(|| self.waited_ns.map(|ns| ns as f64 / self.total_ns as f64))?
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| b.map(|b| b + a.unwrap_or(0)).or(a);
        self.migrations += other.migrations;
        self.switches = sum(self.switches, other.switches);
        self.waited_ns = sum(self.waited_ns, other.waited_ns);
        self.total_ns += other.total_ns;
    }
}

/// Runs a job on a CPU that the thread is pinned to, and sees what befalls it.
fn watched<T>(cpu: u32, job: Job<T>) -> Done<T> {
    let begun = Instant::now();
    let (switches, waited) = (noise::thread_involuntary_switches(), noise::thread_waited_ns());
    let value = job();
    let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
    let disturbance = Disturbance {
        waited_ns: since(noise::thread_waited_ns(), waited),
        switches: since(noise::thread_involuntary_switches(), switches),
        migrations: u64::from(cpu::current_cpu().is_ok_and(|now| now != cpu)),
        total_ns: begun.elapsed().as_nanos() as u64,
    };
    Done { value, disturbance }
}

/// Why a job was not done.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum TeamError {
    #[error("cannot run on CPU {cpu} any more ({why}); it went offline or left this process's cpuset")]
    Pin { cpu: u32, why: String },
    #[error("cannot start a thread for CPU {cpu}: {why}")]
    Start { cpu: u32, why: String },
    #[error("the thread on CPU {cpu} did not finish in time; the CPU may be starved by work of higher priority")]
    TimedOut { cpu: u32 },
    #[error("the thread on CPU {cpu} ended unexpectedly")]
    Lost { cpu: u32 },
}

type Errand = Box<dyn FnOnce() + Send>;

struct Member {
    errands: Sender<Errand>,
    thread: JoinHandle<()>,
}

/// Pinned threads by CPU, started when first needed.
#[derive(Default)]
pub(crate) struct Team {
    members: BTreeMap<u32, Member>,
    /// CPUs whose thread was given up or has ended.
    lost: Vec<u32>,
}

impl Team {
    /// Runs every job on its CPU at the same time and waits for all; the caller sleeps meanwhile. At most one job a CPU.
    pub(crate) fn run<T: Send + 'static>(&mut self, jobs: Vec<(u32, Job<T>)>, patience: Duration) -> Result<Vec<Done<T>>, TeamError> {
        let needed = jobs.len();
        self.run_most(jobs, needed, patience)
    }

    /// The same, where only the first `needed` jobs must be done: the others are left out when their CPU may not be used any more, or no
    /// thread can be had for it.
    pub(crate) fn run_most<T: Send + 'static>(
        &mut self,
        jobs: Vec<(u32, Job<T>)>,
        needed: usize,
        patience: Duration,
    ) -> Result<Vec<Done<T>>, TeamError> {
        let (sender, receiver) = mpsc::channel();
        let cpus: Vec<u32> = jobs.iter().map(|(cpu, _)| *cpu).collect();
        let mut results: Vec<Option<Result<Done<T>, TeamError>>> = cpus.iter().map(|_| None).collect();
        for (index, (cpu, job)) in jobs.into_iter().enumerate() {
            let sender = sender.clone();
            let errand: Errand = Box::new(move || {
                // Pinned anew each time: a CPU that went offline and came back has lost its threads.
                let result = cpu::pin_to(cpu).map_err(|e| TeamError::Pin { cpu, why: e.to_string() }).map(|()| watched(cpu, job));
                // The receiver is gone only when the caller gave up waiting.
                let _ = sender.send((index, result));
            });
            match self.member(cpu) {
                Ok(member) => member.errands.send(errand).map_err(|_| TeamError::Lost { cpu })?,
                Err(error) if dispensable(index, needed, &error) => results[index] = Some(Err(error)),
                Err(error) => return Err(error),
            }
        }
        drop(sender);
        let waiting = results.iter().filter(|r| r.is_none()).count();
        for _ in 0..waiting {
            match receiver.recv_timeout(patience) {
                Ok((index, result)) => results[index] = Some(result),
                Err(error) => {
                    // Whoever has not answered may never do so; nobody waits for them again, at the end neither.
                    let silent: Vec<u32> = cpus.iter().zip(&results).filter(|(_, r)| r.is_none()).map(|(cpu, _)| *cpu).collect();
                    silent.iter().for_each(|cpu| self.remove(*cpu));
                    let cpu = silent.first().copied().unwrap_or(0);
                    return Err(if error == RecvTimeoutError::Timeout { TeamError::TimedOut { cpu } } else { TeamError::Lost { cpu } });
                }
            }
        }
        let results = results.into_iter().flatten().enumerate();
        let left_out = |index, result: &Result<_, TeamError>| result.as_ref().is_err_and(|error| dispensable(index, needed, error));
        results.filter(|(index, result)| !left_out(*index, result)).map(|(_, result)| result).collect()
    }

    /// CPUs whose thread was given up or has ended since this was last asked: what belonged to it, such as its counters, is gone as well.
    pub(crate) fn take_lost(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.lost)
    }

    fn remove(&mut self, cpu: u32) {
        if self.members.remove(&cpu).is_some() {
            self.lost.push(cpu);
        }
    }

    /// Runs one job on one CPU.
    pub(crate) fn run_on<T: Send + 'static>(&mut self, cpu: u32, job: impl FnOnce() -> T + Send + 'static) -> Result<T, TeamError> {
        let mut done = self.run(vec![(cpu, Box::new(job) as Job<T>)], Duration::from_secs(60))?;
        done.pop().map(|d| d.value).ok_or(TeamError::Lost { cpu })
    }

    fn member(&mut self, cpu: u32) -> Result<&Member, TeamError> {
        if self.members.get(&cpu).is_some_and(|m| m.thread.is_finished()) {
            self.remove(cpu);
        }
        Ok(match self.members.entry(cpu) {
            Entry::Occupied(member) => member.into_mut(),
            Entry::Vacant(place) => place.insert(Member::start(cpu)?),
        })
    }
}

/// Whether a job is done without, where only the first `needed` must be done.
const fn dispensable(index: usize, needed: usize, error: &TeamError) -> bool {
    index >= needed && matches!(error, TeamError::Pin { .. } | TeamError::Start { .. })
}

impl Member {
    fn start(cpu: u32) -> Result<Self, TeamError> {
        let (errands, inbox) = mpsc::channel::<Errand>();
        let thread = std::thread::Builder::new()
            .name(format!("cpu{cpu}"))
            .stack_size(STACK_BYTES)
            .spawn(move || inbox.into_iter().for_each(|errand| errand()))
            .map_err(|e| TeamError::Start { cpu, why: e.to_string() })?;
        Ok(Self { errands, thread })
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for (_, Member { errands, thread }) in std::mem::take(&mut self.members) {
            drop(errands);
            // A worker that panicked has said so on stderr already.
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
        let mut team = Team::default();
        let seen = team.run_on(cpu, cpu::current_cpu).unwrap();
        assert_eq!(seen.unwrap(), cpu);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let error = Team::default().run_on(1_000_000, || ()).unwrap_err();
        assert!(error.to_string().contains("CPU 1000000"), "{error}");
    }

    #[test]
    fn a_job_that_is_not_needed_may_lose_its_cpu() {
        let cpu = a_cpu();
        let jobs = || [cpu, 1_000_000].map(|cpu| (cpu, Box::new(|| 7) as Job<i32>)).into();
        let done = Team::default().run_most(jobs(), 1, Duration::from_secs(10)).unwrap();
        assert_eq!(done.into_iter().map(|d| d.value).collect::<Vec<_>>(), [7]);
        assert!(matches!(Team::default().run(jobs(), Duration::from_secs(10)), Err(TeamError::Pin { cpu: 1_000_000, .. })));
    }

    #[test]
    fn a_panicking_job_is_an_error_and_the_cpu_works_afterwards() {
        let cpu = a_cpu();
        let mut team = Team::default();
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let lost = team.run_on(cpu, || panic!("on purpose"));
        std::panic::set_hook(hook);
        assert!(matches!(lost, Err(TeamError::Lost { .. })), "{lost:?}");
        assert_eq!(team.take_lost(), [cpu], "what belonged to it is gone");
        assert_eq!(team.run_on(cpu, || 7).unwrap(), 7);
        assert!(team.take_lost().is_empty());
    }

    #[test]
    fn only_cpus_that_cannot_be_had_are_done_without() {
        let (start, lost) = (TeamError::Start { cpu: 1, why: String::new() }, TeamError::Lost { cpu: 1 });
        assert!(dispensable(1, 1, &start) && !dispensable(0, 1, &start) && !dispensable(1, 1, &lost));
    }

    #[test]
    fn all_that_hang_are_given_up_and_the_team_ends() {
        let mut team = Team::default();
        // Threads are started before they are pinned, so that CPUs which do not exist hang as well as others; one CPU may be all there is.
        let cpu = a_cpu();
        let (releases, jobs): (Vec<_>, Vec<(u32, Job<()>)>) = [cpu, cpu + 1]
            .into_iter()
            .map(|member| {
                let (release, wait) = mpsc::channel::<()>();
                let errand: Errand = Box::new(move || {
                    let _ = wait.recv();
                });
                team.member(member).unwrap().errands.send(errand).unwrap();
                (release, (member, Box::new(|| ()) as Job<()>))
            })
            .unzip();
        let result = team.run(jobs, Duration::from_millis(20));
        assert!(matches!(result, Err(TeamError::TimedOut { cpu: named }) if named == cpu));
        assert_eq!(team.take_lost(), [cpu, cpu + 1]);
        // Would wait for a thread that hangs.
        drop(team);
        drop(releases);
    }

    #[test]
    fn a_job_that_hangs_is_given_up() {
        let cpu = a_cpu();
        let mut team = Team::default();
        let (release, wait) = mpsc::channel::<()>();
        let job: Job<()> = Box::new(move || {
            let _ = wait.recv();
        });
        let result = team.run(vec![(cpu, job)], Duration::from_millis(20));
        assert!(matches!(result, Err(TeamError::TimedOut { .. })));
        drop(release);
    }
}
