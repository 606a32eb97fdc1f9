//! When to give up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When to give up what takes long, for any thread: once the user stops the run, or from a time on. By default never.
#[derive(Clone, Default)]
pub(crate) struct Cutoff {
    stop: Arc<AtomicBool>,
    end: Option<Instant>,
    heartbeat: Option<Heartbeat>,
}

/// A function that any thread calls every few milliseconds while memory is set up. It must return at once.
pub type Heartbeat = Arc<dyn Fn() + Send + Sync>;

impl Cutoff {
    /// Once the user stops the run, or from `end` on.
    pub(crate) fn new(stop: &Arc<AtomicBool>, end: Option<Instant>) -> Self {
        Self { stop: stop.clone(), end, heartbeat: None }
    }

    /// The same, which calls this at each look. Only for what is not measured.
    pub(crate) fn with_heartbeat(self, heartbeat: Option<&Heartbeat>) -> Self {
        Self { heartbeat: heartbeat.cloned(), ..self }
    }

    /// Whether it is time to give up. Takes a nanosecond, or some 30 where there is an end.
    pub(crate) fn passed(&self) -> bool {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat();
        }
        self.stop.load(Ordering::Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// A thread that has not come back this long after its work should have ended is lost.
pub(crate) const WORKER_TIMEOUT: Duration = Duration::from_secs(20);
