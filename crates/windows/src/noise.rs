//! The disturbances of a measurement, from the system's counters before and after it.

mod cycles;

use std::collections::BTreeMap;
use std::path::Path;
use std::ptr::null_mut;
use std::thread;
use std::time::{Duration, Instant};

use memgauge_model::result::Noise;
use memgauge_model::units::IdSet;
use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemProcessorPerformanceInformation};
use windows_sys::Win32::Foundation::{FILETIME, HANDLE};
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetActiveProcessorGroupCount, GetCurrentProcess, GetCurrentThread, GetProcessTimes, SetThreadGroupAffinity,
};
use windows_sys::Win32::System::WindowsProgramming::SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION;

use crate::answers::GROUP_CPUS;
use crate::cpu::{cpu_id, group_and_number};

pub use cycles::thread_cpu_ns;

/// Times of CPUs grow by whole ticks of the system's timer. In less time than this, the steps would hide everything else.
const MIN_TIME: Duration = Duration::from_millis(200);
/// The longest tick of the system's timer.
const TICK_S: f64 = 0.015_625;
/// The steps of [`busy_seconds`].
pub const BUSY_STEP_S: f64 = TICK_S;
/// The system's times are in units of 100 ns.
const UNITS_IN_S: f64 = 1e7;

/// The counters at the start of a measurement.
#[derive(Debug)]
pub struct NoiseProbe {
    cpus: IdSet,
    /// The start, moved later by the time of all pauses.
    started: Instant,
    /// The counters at the start, raised by what was counted during pauses.
    counters: Counters,
    /// The start of the current pause, and the counters then.
    paused: Option<(Instant, Counters)>,
    /// Intervals between pauses. Each has its own rounding error.
    intervals: u32,
}

/// The system's counters at one moment, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Counters {
    /// How many of the CPUs the system shows, and the sum of their busy times.
    busy: Option<(usize, f64)>,
    /// The time that the threads of this process ran.
    own_s: Option<f64>,
}

impl NoiseProbe {
    /// Reads the times of CPUs. `cpus` are all CPUs that this process keeps busy during the measurement, including those that it only keeps
    /// awake. Its time on any other CPU would count as its time on these, and hide as much time of other processes. Work on more CPUs needs
    /// a [pause](Self::pause).
    ///
    /// The first call of a process finds out, for some milliseconds, what the cycle times of threads mean: [`thread_cpu_ns`] is then cheap
    /// from the beginning.
    pub fn start(_root: &Path, cpus: &IdSet) -> Self {
        thread_cpu_ns();
        let counters = Counters::read(cpus);
        Self { counters, cpus: cpus.clone(), started: Instant::now(), paused: None, intervals: 1 }
    }

    /// Stops counting until [`Self::resume`], for work of this process on other CPUs.
    pub fn pause(&mut self) {
        self.paused = Some((Instant::now(), Counters::read(&self.cpus)));
    }

    /// Starts counting again after a pause.
    pub fn resume(&mut self) {
        if let Some((since, before)) = self.paused.take() {
            self.counters.add(&before, &Counters::read(&self.cpus));
            self.started += since.elapsed();
            self.intervals += 1;
        }
    }

    /// Reads the times again and returns the differences. The share of other processes needs at least 0.2 s, and is `None` for less.
    /// Windows has no documented counts of stolen time, of pages that it moved, of pressure or of memory errors: they are `None`.
    pub fn finish(self, involuntary_switches: Option<u64>) -> Noise {
        let elapsed = self.started.elapsed();
        let others = Counters::read(&self.cpus).others_since(&self.counters, elapsed, self.intervals);
        Noise { others, involuntary_switches, ..Noise::default() }
    }
}

impl Counters {
    fn read(cpus: &IdSet) -> Self {
        let by_cpu = busy_by_cpu(cpus);
        Self { busy: (!by_cpu.is_empty()).then(|| (by_cpu.len(), by_cpu.values().sum())), own_s: own_cpu_seconds() }
    }

    /// Adds the differences between two other moments.
    fn add(&mut self, from: &Self, to: &Self) {
        self.busy = match (self.busy, from.busy, to.busy) {
            (Some((cpus, at)), Some((before, from)), Some((after, to))) if cpus == before && cpus == after => {
                Some((cpus, at + (to - from).max(0.0)))
            }
            _ => None,
        };
        self.own_s = self.own_s.zip(from.own_s).zip(to.own_s).map(|((at, from), to)| at + (to - from));
    }

    /// The share of the CPUs' time that other processes used since `before`.
    fn others_since(&self, before: &Self, elapsed: Duration, intervals: u32) -> Option<f64> {
        let (((cpus, now), (cpus_before, then)), (own, own_before)) = (self.busy.zip(before.busy)?, self.own_s.zip(before.own_s)?);
        if cpus != cpus_before || elapsed < MIN_TIME {
            return None;
        }
        // The time of each CPU is in whole ticks in each interval. The error of a sum of n differences is about 0.4 sqrt(n) ticks. Here
        // sqrt(n) ticks are subtracted, so that rounding never looks like noise.
        let rounding = (cpus as f64 * f64::from(intervals)).sqrt() * TICK_S;
        let others = (now - then - rounding).max(0.0) - (own - own_before);
        Some((others / (elapsed.as_secs_f64() * cpus as f64)).clamp(0.0, 1.0))
    }
}

/// Time that a hypervisor gave to others: Windows shows none.
pub const fn stolen_seconds(_root: &Path, _cpus: &IdSet) -> Option<f64> {
    None
}

/// Seconds since boot that each of `cpus` was busy, in ticks of the system's timer (1 to 16 ms). CPUs that the system does not show are
/// left out.
pub fn busy_seconds(_root: &Path, cpus: &IdSet) -> BTreeMap<u32, f64> {
    busy_by_cpu(cpus)
}

/// How often the system took the calling thread off its CPU: Windows has no documented count for a thread.
pub const fn thread_involuntary_switches() -> Option<u64> {
    None
}

/// How long the calling thread was ready but did not run: Windows has no documented time for it. [`thread_cpu_ns`] against the clock shows
/// when a thread was off its CPU.
pub const fn thread_waited_ns() -> Option<u64> {
    None
}

/// The time that all threads of this process ran, in user and kernel mode (`GetProcessTimes`).
fn own_cpu_seconds() -> Option<f64> {
    // SAFETY: the pseudo handle of this process is always valid.
    let units = unsafe { process_cpu_units(GetCurrentProcess()) }?;
    Some(units as f64 / UNITS_IN_S)
}

/// The time that the threads of a process have run, in units of 100 ns.
///
/// # Safety
/// `process` is the handle of a process, with the right to query limited information.
pub(crate) unsafe fn process_cpu_units(process: HANDLE) -> Option<u64> {
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the caller passes a handle, and the function writes four times, which are there.
    let read = unsafe { GetProcessTimes(process, &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user) } != 0;
    let units = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    read.then(|| units(kernel) + units(user))
}

/// Seconds since boot that CPUs were busy, by CPU. The system answers for the processor group of the thread that asks, so on a machine with
/// several groups a thread in each of them does.
fn busy_by_cpu(cpus: &IdSet) -> BTreeMap<u32, f64> {
    // SAFETY: the function has no arguments and no requirement.
    let one_group = unsafe { GetActiveProcessorGroupCount() } <= 1;
    let groups: IdSet = cpus.iter().map(|cpu| u32::from(group_and_number(cpu).0)).collect();
    let mut all = BTreeMap::new();
    for group in groups.iter().filter_map(|group| u16::try_from(group).ok()) {
        let wanted: Vec<u8> = cpus.iter().map(group_and_number).filter(|(of, _)| *of == group).map(|(_, number)| number).collect();
        let first = wanted.first().copied().unwrap_or(0);
        let times = if one_group { group_times() } else { in_group(group, first, group_times) };
        for number in wanted {
            if let Some(time) = times.get(usize::from(number)) {
                all.insert(cpu_id(group, number), busy(time));
            }
        }
    }
    all
}

/// The result of `ask` in a thread on this CPU; the default if no thread can run there.
fn in_group<T: Send + Default>(group: u16, number: u8, ask: fn() -> T) -> T {
    let on_it = move || {
        let affinity = GROUP_AFFINITY { Mask: 1 << number, Group: group, Reserved: [0; 3] };
        // SAFETY: the pseudo handle is that of the calling thread. The function reads one structure and writes none.
        let moved = unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, null_mut()) } != 0;
        if moved { ask() } else { T::default() }
    };
    thread::scope(|scope| {
        let asking = thread::Builder::new().spawn_scoped(scope, on_it);
        asking.ok().and_then(|thread| thread.join().ok()).unwrap_or_default()
    })
}

/// The times of the CPUs of the calling thread's processor group, by number (`NtQuerySystemInformation`, documented with winternl.h).
fn group_times() -> Vec<SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION> {
    let mut times = vec![SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION::default(); GROUP_CPUS as usize];
    let (room, mut written) = (size_of_val(&*times) as u32, 0);
    // SAFETY: the function writes at most `room` bytes to `times`, which has as many and may hold any bytes, and their number to `written`.
    let status =
        unsafe { NtQuerySystemInformation(SystemProcessorPerformanceInformation, times.as_mut_ptr().cast(), room, &raw mut written) };
    let read = if status >= 0 { written.min(room) as usize / size_of::<SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION>() } else { 0 };
    times.truncate(read);
    times
}

/// The seconds that a CPU was busy. Its kernel time includes the time that it was idle.
fn busy(time: &SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION) -> f64 {
    (time.KernelTime + time.UserTime).saturating_sub(time.IdleTime).max(0) as f64 / UNITS_IN_S
}

#[cfg(test)]
mod tests;
