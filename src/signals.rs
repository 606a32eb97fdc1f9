//! Ctrl-C, SIGTERM and a closed terminal end a run within half a second. What was measured is kept.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memgauge_model::result::Incomplete;
use memgauge_os::signals;

use crate::exit::ExitStatus;

/// Whether a signal has asked to stop, and which one.
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    status: fn(i32) -> ExitStatus,
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
        let (flag, signal) = (Arc::new(AtomicBool::new(number != 0)), Arc::new(AtomicUsize::new(number)));
        Self { flag, signal, status: |_| ExitStatus::INTERRUPTED }
    }

    /// Which signal ended the run, if one did.
    pub(crate) fn interruption(&self) -> Option<Incomplete> {
        let number = self.signal.load(Ordering::SeqCst) as i32;
        (number != 0).then(|| Incomplete::Signal { name: signals::name(number) })
    }

    /// The status of a program that a signal ended.
    pub(crate) fn status(&self) -> ExitStatus {
        (self.status)(self.signal.load(Ordering::SeqCst) as i32)
    }
}

/// Whether a signal has asked to end. For what waits outside a run: a run has its [`Stop`].
static ARRIVED: AtomicBool = AtomicBool::new(false);

/// Whether a signal that is watched for has asked to end.
pub(crate) fn have_arrived() -> bool {
    ARRIVED.load(Ordering::SeqCst)
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

/// Watches from now on for what asks to end. The first asks to stop; a third, or one that comes more than two seconds after the first, ends the
/// program at once.
///
/// # Errors
/// When the system refuses a handler.
pub(crate) fn watch() -> io::Result<Stop> {
    watch_with(|_| ExitStatus::INTERRUPTED)
}

/// The same for a program that a signal ends with the status that shells give it: 128 and the signal's number.
///
/// # Errors
/// As [`watch`].
pub(crate) fn watch_as_shells_count() -> io::Result<Stop> {
    watch_with(|number| ExitStatus(signals::status(number)))
}

fn watch_with(status: fn(i32) -> ExitStatus) -> io::Result<Stop> {
    let stop = Stop { flag: Arc::default(), signal: Arc::default(), status };
    let (arrivals, began) = (Arrivals::none(), Instant::now());
    let (flag, first) = (stop.flag.clone(), stop.signal.clone());
    // This runs in a handler: it reads the monotonic clock and changes atomics, and neither allocates nor locks nor panics.
    signals::watch(move |number| {
        if !signals::is_repeated(number) && arrivals.insists(began.elapsed()) {
            signals::end_now(i32::from(status(number).0));
        }
        let _ = first.compare_exchange(0, number as usize, Ordering::SeqCst, Ordering::SeqCst);
        flag.store(true, Ordering::SeqCst);
        ARRIVED.store(true, Ordering::SeqCst);
    })?;
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
