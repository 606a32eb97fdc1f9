//! Runs to which something happens at the right moment, and how long they then take without what other processes took.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A run that takes longer than this hangs, on any machine.
pub(crate) const HANGS: Duration = Duration::from_secs(300);
/// How often a run is looked at: much less often than would take a CPU from it.
const LOOK: Duration = Duration::from_millis(3);

/// How far a run is, as its record of progress says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Seen {
    /// Whether it has begun with its plan. Handlers of signals are there since before.
    pub(crate) began: bool,
    /// Bursts of the cell so far, those that choose a kernel included.
    pub(crate) bursts: u32,
    /// Its step and the cell in it.
    pub(crate) cell: String,
}

/// A run that is watched from outside.
pub(crate) struct Watched {
    child: Child,
    record: PathBuf,
    out: Option<JoinHandle<Vec<u8>>>,
    err: Option<JoinHandle<Vec<u8>>>,
    /// Nanoseconds for which each of its threads has waited for a CPU.
    waits: BTreeMap<String, u64>,
    /// Since when its time counts, and what its threads had waited then.
    mark: (Instant, u64),
    status: Option<ExitStatus>,
}

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) output: Output,
    /// From the mark to its end.
    pub(crate) took: Duration,
    /// How long its threads waited in that time for a CPU that others had. `None` where the kernel does not tell.
    pub(crate) waited: Option<Duration>,
}

/// Whether something took no longer than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InTime {
    Yes,
    No(String),
    /// It is late, and others had the CPUs.
    NotTested(String),
}

impl Ended {
    /// Why a result may be missing that is there on a machine with free CPUs: its threads waited for them for more than a quarter of its time.
    pub(crate) fn starved(&self) -> Option<String> {
        let waited = self.waited.filter(|waited| *waited > self.took / 4)?;
        Some(format!("others had the CPUs: of {:?}, its threads waited for {waited:?}", self.took))
    }

    /// Whether it took `bound` at most, without the time for which it waited for CPUs.
    pub(crate) fn within(&self, bound: Duration) -> InTime {
        let said = format!("it took {:?} for {bound:?} at most, and waited {:?} for CPUs", self.took, self.waited);
        match self.waited {
            _ if self.took <= bound => InTime::Yes,
            Some(waited) if self.took.saturating_sub(waited) > bound => InTime::No(said),
            _ => InTime::NotTested(said),
        }
    }
}

impl Watched {
    pub(crate) fn start(command: &mut Command) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("progress-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let record = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_file(&record);
        let mut child = command.env("MEMGAUGE_PROGRESS", &record).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().map(reader);
        let err = child.stderr.take().map(reader);
        Self { child, record, out, err, waits: BTreeMap::new(), mark: (Instant::now(), 0), status: None }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How far it is.
    pub(crate) fn seen(&self) -> Seen {
        let record = std::fs::read_to_string(&self.record).unwrap_or_default();
        // The last line may be in the making.
        let line = record.rsplit_once('\n').map_or("", |(lines, _)| lines.rsplit('\n').next().unwrap_or_default());
        let mut fields = line.split('\t').skip(3);
        let bursts = fields.next().and_then(|bursts| bursts.parse().ok()).unwrap_or_default();
        Seen { began: !line.is_empty(), bursts, cell: fields.next().unwrap_or_default().to_owned() }
    }

    /// Whether it has ended.
    pub(crate) fn ended(&mut self) -> bool {
        self.look();
        if self.status.is_none() {
            self.status = self.child.try_wait().unwrap();
        }
        self.status.is_some()
    }

    /// Waits until it is as far as `reached` wants. `false` if it ended before.
    #[must_use]
    pub(crate) fn until(&mut self, mut reached: impl FnMut(&Self) -> bool) -> bool {
        let began = Instant::now();
        while !reached(self) {
            if self.ended() {
                return false;
            }
            self.assert_alive(began);
            std::thread::sleep(LOOK);
        }
        self.status.is_none()
    }

    /// Waits until it has begun, and has its handlers of signals. `false` if it ended before.
    #[must_use]
    pub(crate) fn until_it_begins(&mut self) -> bool {
        self.until(|run| run.seen().began)
    }

    /// Waits until it is so many bursts into a cell. `false` if it ended before.
    #[must_use]
    pub(crate) fn until_it_measures(&mut self, bursts: u32) -> bool {
        self.until(|run| run.seen().bursts >= bursts)
    }

    /// Waits until it has used so much CPU time, which is as far as it comes in this time where nothing else runs. `false` if it ended before.
    #[must_use]
    pub(crate) fn until_it_has_used(&mut self, time: Duration) -> bool {
        self.until(|run| run.cpu_time() >= time)
    }

    /// Waits until it does nothing but wait, but for a look now and then. `false` if it ended before.
    #[must_use]
    pub(crate) fn until_it_waits(&mut self) -> bool {
        const LOOKS: usize = 40;
        let mut idle = 0_usize;
        self.until(|run| {
            std::thread::sleep(Duration::from_millis(10));
            idle = if run.wants_a_cpu() { idle.saturating_sub(LOOKS / 8) } else { idle + 1 };
            idle >= LOOKS
        })
    }

    /// Whether a thread of it runs, or would run if a CPU were free.
    fn wants_a_cpu(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.child.id())) else { return true };
        threads.flatten().any(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['R', 'D']))
        })
    }

    /// The CPU time that it has used, all threads together.
    pub(crate) fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // After the name, which may have spaces, comes field 3; user and system time are fields 14 and 15.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace().skip(11);
        let ticks: u64 = fields.take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        // SAFETY: the call takes a number and returns one.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        Duration::from_secs_f64(ticks as f64 / per_second as f64)
    }

    /// Sends it a signal. Its time counts from here on.
    pub(crate) fn signal(&mut self, number: i32) {
        self.mark();
        // SAFETY: the process is our child and has not been waited for, so its number is still its own.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, number) }, 0);
    }

    /// Its time counts from here on.
    pub(crate) fn mark(&mut self) {
        self.look();
        self.mark = (Instant::now(), self.waits.values().sum());
    }

    /// Does something now and then until it has ended.
    pub(crate) fn until_it_ends(mut self, mut each: impl FnMut(&Self)) -> Ended {
        let began = Instant::now();
        while !self.ended() {
            self.assert_alive(began);
            each(&self);
            std::thread::sleep(LOOK);
        }
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let began = Instant::now();
        while !self.ended() {
            self.assert_alive(began);
            std::thread::sleep(LOOK);
        }
        let took = self.mark.0.elapsed();
        let waited = (!self.waits.is_empty()).then(|| Duration::from_nanos(self.waits.values().sum::<u64>() - self.mark.1));
        let [stdout, stderr] = [self.out.take(), self.err.take()].map(|read| read.unwrap().join().unwrap());
        Ended { output: Output { status: self.status.unwrap(), stdout, stderr }, took, waited }
    }

    fn assert_alive(&self, began: Instant) {
        assert!(began.elapsed() < HANGS, "it hangs: {:?}", self.seen());
    }

    /// Threads that end between two looks keep what they had waited before.
    fn look(&mut self) {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.child.id())) else { return };
        for thread in threads.flatten() {
            // Nanoseconds on a CPU, nanoseconds of waiting for one, and how often.
            let times = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            if let Some(waited) = times.split(' ').nth(1).and_then(|waited| waited.parse().ok()) {
                self.waits.insert(thread.file_name().to_string_lossy().into_owned(), waited);
            }
        }
    }
}

impl Drop for Watched {
    /// A test that fails leaves no run that goes on.
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let _ = std::fs::remove_file(&self.record);
    }
}

fn reader(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        all
    })
}
