//! Ctrl-C, SIGTERM and a closed terminal end a run after the burst in progress. What was measured is kept.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memgauge_core::result::Incomplete;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXCPU};
use signal_hook::flag;

use crate::exit::ExitStatus;

/// Whether a signal has asked to stop, and which one.
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Set when a signal arrives.
    pub(crate) fn flag(&self) -> &AtomicBool {
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

/// Watches for these signals from now on. A second one ends the program at once.
///
/// # Errors
/// When the kernel refuses a handler.
pub(crate) fn watch() -> io::Result<Stop> {
    let stop = Stop { flag: Arc::default(), signal: Arc::default() };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The order matters: at the first signal, the flag must still be clear when the shutdown handler reads it.
        flag::register_conditional_shutdown(signal, i32::from(ExitStatus::INTERRUPTED.0), stop.flag.clone())?;
        flag::register(signal, stop.flag.clone())?;
        flag::register_usize(signal, stop.signal.clone(), signal as usize)?;
    }
    // The kernel repeats this one every second, until it kills the process.
    flag::register(SIGXCPU, stop.flag.clone())?;
    flag::register_usize(SIGXCPU, stop.signal.clone(), SIGXCPU as usize)?;
    memgauge_os::process::warn_of_cpu_limit(std::thread::available_parallelism().map_or(1, usize::from));
    Ok(stop)
}
