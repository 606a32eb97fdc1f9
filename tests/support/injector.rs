//! Faults of memory, made from outside: a thread that writes to another process's memory through `/proc/PID/mem`, as a bit that is stuck or
//! that flips once would.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What happens to a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    StuckAt0,
    StuckAt1,
    FlipsOnce,
}

/// Where and when a bit is damaged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Injection {
    pub(crate) fault: Fault,
    /// Bytes of the mapping that is damaged.
    pub(crate) mapping: u64,
    /// Share of the mapping before the damaged byte.
    pub(crate) at: f64,
    pub(crate) bit: u8,
    /// How long after the mapping appeared.
    pub(crate) after: Duration,
}

/// Damages a process until it is stopped.
pub(crate) struct Injector {
    stop: Arc<AtomicBool>,
    /// How often the bit was changed.
    changes: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Injector {
    pub(crate) fn start(pid: u32, injection: Injection) -> Self {
        let (stop, changes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (stopped, changed) = (stop.clone(), changes.clone());
        let thread = std::thread::spawn(move || {
            // A bit that is stuck waits for no CPU. Only root may ask for this; others find fewer faults.
            // SAFETY: the priority of the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
            damage(pid, injection, &stopped, &changed);
        });
        Self { stop, changes, thread }
    }

    /// Ends it. Returns how often it changed the bit.
    pub(crate) fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.changes.load(Ordering::Relaxed)
    }
}

fn damage(pid: u32, injection: Injection, stop: &AtomicBool, changes: &AtomicU32) {
    let stopped = || stop.load(Ordering::Relaxed);
    let address = loop {
        if stopped() {
            return;
        }
        if let Some(start) = mapping(pid, injection.mapping) {
            break start + (injection.mapping as f64 * injection.at) as u64;
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    let from = Instant::now() + injection.after;
    while Instant::now() < from && !stopped() {
        std::thread::sleep(Duration::from_micros(500));
    }
    let Ok(memory) = File::options().read(true).write(true).open(format!("/proc/{pid}/mem")) else { return };
    let mask = 1 << injection.bit;
    let mut byte = [0];
    // Often enough for a sweep of some milliseconds, and seldom enough to leave the CPU to the process.
    while !stopped() && memory.read_exact_at(&mut byte, address).is_ok() {
        let damaged = match injection.fault {
            Fault::StuckAt0 => byte[0] & !mask,
            Fault::StuckAt1 => byte[0] | mask,
            Fault::FlipsOnce => byte[0] ^ mask,
        };
        if damaged != byte[0] {
            let written = memory.write_all_at(&[damaged], address).is_ok();
            changes.fetch_add(u32::from(written), Ordering::Relaxed);
            if written && injection.fault == Fault::FlipsOnce {
                return;
            }
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// The first mapping of this size, or a little more.
fn mapping(pid: u32, bytes: u64) -> Option<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        (words.next()?.starts_with("rw") && (bytes..bytes + bytes / 8).contains(&(end - start))).then_some(start)
    })
}
