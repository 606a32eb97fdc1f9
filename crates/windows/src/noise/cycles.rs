//! The time that a thread ran, from its cycles.
//!
//! `GetThreadTimes` counts whole ticks of the system's timer, up to 16 ms, which is longer than a window. `QueryThreadCycleTime` is exact,
//! but Microsoft leaves open what a cycle is. On x86 the system adds up differences of the TSC, without time in interrupts. Whether it does
//! so here is tried once: a thread that does nothing but compute must gain as many cycles as the TSC gains ticks. Otherwise the time is
//! unknown.

use std::sync::OnceLock;
use std::time::Duration;

use memgauge_model::stats;
use windows_sys::Win32::System::Threading::GetCurrentThread;
use windows_sys::Win32::System::WindowsProgramming::QueryThreadCycleTime;

use crate::clock::reference_ns;

/// How long the thread computes in one trial.
const TRIAL: Duration = Duration::from_millis(5);
/// Trials. The thread may be interrupted in some of them.
const TRIALS: usize = 5;
/// Cycles may differ from ticks by this share.
const MAX_APART: f64 = 0.02;
/// The number of readings of both clocks; the quickest is kept.
const TRIES: usize = 8;

/// What was gained in one trial.
#[derive(Debug, Clone, Copy)]
struct Trial {
    ns: f64,
    ticks: f64,
    cycles: f64,
}

/// Nanoseconds that the calling thread ran; `None` where its cycle time is not that of the TSC. The first call in a process computes for 25
/// ms to find that out ([`NoiseProbe::start`](super::NoiseProbe::start) makes it), later ones take less than a microsecond.
pub fn thread_cpu_ns() -> Option<u64> {
    let per_ns = cycles_per_ns()?;
    cycles().map(|cycles| (cycles as f64 / per_ns) as u64)
}

/// Cycles of the calling thread in a nanosecond.
fn cycles_per_ns() -> Option<f64> {
    static RATE: OnceLock<Option<f64>> = OnceLock::new();
    *RATE.get_or_init(|| {
        // Without a constant rate, ticks do not measure time.
        memgauge_kernels::invariant_counter().ok().filter(|name| *name == "tsc")?;
        let trials: Option<Vec<Trial>> = (0..TRIALS).map(|_| trial()).collect();
        rate(&trials?)
    })
}

/// The rate by these trials; `None` where cycles are not ticks in any of them. An interruption takes cycles away and adds none.
fn rate(trials: &[Trial]) -> Option<f64> {
    let shares = || trials.iter().map(|trial| trial.cycles / trial.ticks);
    let alike = shares().any(|share| share > 1.0 - MAX_APART) && shares().all(|share| share < 1.0 + MAX_APART);
    let rates: Vec<f64> = trials.iter().map(|trial| trial.ticks / trial.ns).collect();
    stats::quantile(&stats::sorted(&rates), 0.5).filter(|rate| alike && rate.is_finite() && *rate > 0.0)
}

fn trial() -> Option<Trial> {
    let (from, began) = (both(), cycles()?);
    while reference_ns().saturating_sub(from.0) < TRIAL.as_nanos() as u64 {
        std::hint::spin_loop();
    }
    let (to, ended) = (both(), cycles()?);
    let gained = |from: u64, to: u64| to.saturating_sub(from) as f64;
    Some(Trial { ns: gained(from.0, to.0), ticks: gained(from.1, to.1), cycles: gained(began, ended) })
}

/// Nanoseconds and ticks at the same moment, as nearly as can be.
fn both() -> (u64, u64) {
    let read = || {
        let before = reference_ns();
        let ticks = memgauge_kernels::ticks_fenced();
        let after = reference_ns();
        (after.saturating_sub(before), (before.midpoint(after), ticks))
    };
    let mut best = read();
    for _ in 1..TRIES {
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

/// The cycle time of the calling thread.
fn cycles() -> Option<u64> {
    let mut cycles = 0;
    // SAFETY: the pseudo handle is that of the calling thread, and the function writes one `u64`.
    (unsafe { QueryThreadCycleTime(GetCurrentThread(), &raw mut cycles) } != 0).then_some(cycles)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn trial(cycles: f64) -> Trial {
        Trial { ns: 5e6, ticks: 1.5e7, cycles }
    }

    #[test]
    fn cycles_that_are_ticks_are_time() {
        assert_eq!(rate(&[trial(1.5e7), trial(1.49e7), trial(0.7e7)]), Some(3.0), "one trial was interrupted");
        assert_eq!(rate(&[trial(0.7e7), trial(1.2e7)]), None, "none was undisturbed, or cycles are others");
        assert_eq!(rate(&[trial(1.5e7), trial(1.6e7)]), None, "faster than the clock");
        assert_eq!(rate(&[trial(0.0)]), None, "they do not advance");
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[Trial { ns: 0.0, ticks: 0.0, cycles: 0.0 }]), None);
    }

    #[test]
    fn the_time_of_a_thread_ascends_with_work_and_not_with_sleep_or_is_unknown() {
        // Wine 8 does not implement cycle times of threads.
        let Some(from) = thread_cpu_ns() else {
            assert_eq!(thread_cpu_ns(), None, "it stays so");
            return;
        };
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let worked = thread_cpu_ns().unwrap() - from;
        assert!(worked > 0 && worked as f64 <= began.elapsed().as_nanos() as f64 * 1.02, "{worked}");
        let from = thread_cpu_ns().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert!(thread_cpu_ns().unwrap() - from < 25_000_000, "asleep");
    }
}
