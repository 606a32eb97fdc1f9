//! Ctrl-C, SIGTERM and a closed terminal end a run within half a second. What was measured is kept.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memgauge_core::result::Incomplete;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::flag;

use crate::exit::ExitStatus;

/// Whether a signal has asked to stop, and which one.
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Set when a signal arrives.
    pub(crate) fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// As if this signal had arrived.
    #[cfg(test)]
    pub(crate) fn raised(signal: Option<i32>) -> Self {
        let number = signal.unwrap_or(0) as usize;
        Self { flag: Arc::new(AtomicBool::new(number != 0)), signal: Arc::new(AtomicUsize::new(number)) }
    }

    /// Which signal ended the run, if one did.
    pub(crate) fn interruption(&self) -> Option<Incomplete> {
        let name = match self.signal.load(Ordering::SeqCst) as i32 {
            0 => return None,
            SIGINT => "SIGINT".to_owned(),
            SIGTERM => "SIGTERM".to_owned(),
            SIGHUP => "SIGHUP".to_owned(),
            SIGXCPU => "SIGXCPU (the limit on CPU time, ulimit -t)".to_owned(),
            number => format!("signal {number}"),
        };
        Some(Incomplete::Signal { name })
    }
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail with a reason. Without a handler, the signal ends the program.
///
/// # Errors
/// When the kernel refuses a handler.
pub(crate) fn survive_file_size_limit() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// A second signal that comes so soon after the first belongs to it: `timeout` signals its program and then its group.
const SAME_WISH: Duration = Duration::from_secs(2);

/// What has arrived so far. Signal handlers write it, so it is atomics.
struct Arrivals {
    count: AtomicUsize,
    /// Nanoseconds from the beginning of the watch to the first signal; `u64::MAX` before, and while another thread's handler stores it.
    first_ns: AtomicU64,
}

impl Arrivals {
    const fn none() -> Self {
        Self { count: AtomicUsize::new(0), first_ns: AtomicU64::new(u64::MAX) }
    }

    /// Whether the signal that arrives `at` this time since the watch began asks to end at once: the third, or one long after the first.
    fn insists(&self, at: Duration) -> bool {
        let ns = at.as_nanos() as u64;
        match self.count.fetch_add(1, Ordering::SeqCst) {
            0 => {
                self.first_ns.store(ns, Ordering::SeqCst);
                false
            }
            1 => ns.saturating_sub(self.first_ns.load(Ordering::SeqCst)) > SAME_WISH.as_nanos() as u64,
            _ => true,
        }
    }
}

/// Watches for these signals from now on. The first asks to stop; a third, or one that comes more than two seconds after the first, ends the
/// program at once. SIGHUP stays ignored where it was when the program started: `nohup` keeps a run alive that way.
///
/// # Errors
/// When the kernel refuses a handler.
pub(crate) fn watch() -> io::Result<Stop> {
    let stop = Stop { flag: Arc::default(), signal: Arc::default() };
    let (arrivals, began) = (Arc::new(Arrivals::none()), Instant::now());
    let watched = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !memgauge_os::process::is_ignored(SIGHUP));
    for signal in watched {
        let (flag, first, arrivals) = (stop.flag.clone(), stop.signal.clone(), arrivals.clone());
        let arrived = move || {
            if arrivals.insists(began.elapsed()) {
                signal_hook::low_level::exit(i32::from(ExitStatus::INTERRUPTED.0));
            }
            let _ = first.compare_exchange(0, signal as usize, Ordering::SeqCst, Ordering::SeqCst);
            flag.store(true, Ordering::SeqCst);
        };
        // SAFETY: a handler may only do what is safe in one: this reads the monotonic clock, changes atomics and calls `_exit`; it neither
        // allocates nor locks nor panics.
        unsafe { signal_hook::low_level::register(signal, arrived) }?;
    }
    // The kernel repeats this one every second, until it kills the process.
    flag::register(SIGXCPU, stop.flag.clone())?;
    flag::register_usize(SIGXCPU, stop.signal.clone(), SIGXCPU as usize)?;
    memgauge_os::process::warn_of_cpu_limit(std::thread::available_parallelism().map_or(1, usize::from));
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_signals_at_once_are_one_wish_and_a_third_or_a_late_one_insists() {
        let insists = |arrivals_ms: &[u64]| {
            let arrivals = Arrivals::none();
            arrivals_ms.iter().map(|ms| arrivals.insists(Duration::from_millis(*ms))).collect::<Vec<_>>()
        };
        assert_eq!(insists(&[5000, 5000]), [false, false]);
        assert_eq!(insists(&[5000, 6900, 6950]), [false, false, true]);
        assert_eq!(insists(&[5000, 7100]), [false, true]);
    }
}
