//! Faults of memory, made from outside: a thread that writes to another process's memory through `/proc/PID/mem`, as a bit that is stuck or
//! that flips once would.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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
    /// When: after the byte's word has been seen with so many contents, one after the other, which were written to it.
    pub(crate) contents: u32,
    /// And so long after that.
    pub(crate) after: Duration,
}

/// Damages a process until it is stopped.
pub(crate) struct Injector {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// How often the bit was changed.
    changes: AtomicU32,
    /// Nanoseconds of the longest time between two looks at the word.
    longest_gap: AtomicU64,
}

impl Shared {
    /// Counts the time from the beginning of the last look to now, the end of one that began at `begins`: no gap between them was longer.
    fn looked(&self, last: &mut Instant, begins: Instant) {
        self.longest_gap.fetch_max(last.elapsed().as_nanos() as u64, Ordering::Relaxed);
        *last = begins;
    }
}

/// What was done to a process.
pub(crate) struct Damage {
    /// How often the bit was changed.
    pub(crate) changes: u32,
    /// The longest time for which nobody looked at the word: what the process did in between may have gone unnoticed.
    pub(crate) longest_gap: Duration,
}

impl Injector {
    pub(crate) fn start(pid: u32, injection: Injection) -> Self {
        let shared = Arc::new(Shared::default());
        let its = shared.clone();
        let thread = std::thread::spawn(move || {
            // A bit that is stuck waits for no CPU. Only root may ask for this; others find fewer faults.
            // SAFETY: the priority of the calling thread.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
            damage(pid, injection, &its);
        });
        Self { shared, thread }
    }

    /// Ends it.
    pub(crate) fn end(self) -> Damage {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        Damage {
            changes: self.shared.changes.load(Ordering::Relaxed),
            longest_gap: Duration::from_nanos(self.shared.longest_gap.load(Ordering::Relaxed)),
        }
    }
}

/// Often enough for a sweep of some milliseconds, and seldom enough to leave the CPU to the process.
const LOOK: Duration = Duration::from_micros(100);

fn damage(pid: u32, injection: Injection, shared: &Shared) {
    let stopped = || shared.stop.load(Ordering::Relaxed);
    let address = loop {
        if stopped() {
            return;
        }
        if let Some(start) = mapping(pid, injection.mapping) {
            break start + (injection.mapping as f64 * injection.at) as u64;
        }
        std::thread::sleep(2 * LOOK);
    };
    let Ok(memory) = File::options().read(true).write(true).open(format!("/proc/{pid}/mem")) else { return };
    let word = |address: u64| {
        let mut word = [0; 8];
        memory.read_exact_at(&mut word, address / 8 * 8).is_ok().then(|| u64::from_ne_bytes(word))
    };
    // Memory that nothing was written to is zero, and the first content is the filler of new buffers, which nothing compares.
    let (mut last, mut contents, mut looked, mut due) = (0, 0, Instant::now(), None::<Instant>);
    while !stopped() {
        let begins = Instant::now();
        let Some(now) = word(address) else { return };
        shared.looked(&mut looked, begins);
        if now != last {
            (last, contents) = (now, contents + 1);
        }
        if contents > injection.contents {
            due = due.or_else(|| Some(Instant::now() + injection.after));
        }
        if due.is_some_and(|due| due <= Instant::now()) {
            // While the process stands still, what it has written and not yet compared stays what it is.
            let Some(standing) = still(pid) else { return };
            let done = word(address) == Some(last) && alter(&memory, address, injection, shared);
            drop(standing);
            looked = Instant::now();
            if done {
                break;
            }
        }
        std::thread::sleep(LOOK);
    }
    while injection.fault != Fault::FlipsOnce && !stopped() {
        let begins = Instant::now();
        if word(address).is_none() {
            return;
        }
        alter(&memory, address, injection, shared);
        shared.looked(&mut looked, begins);
        std::thread::sleep(LOOK);
    }
}

/// Damages the byte, unless it is as the fault wants it. Tells whether it was changed.
fn alter(memory: &File, address: u64, injection: Injection, shared: &Shared) -> bool {
    let (mask, mut byte) = (1 << injection.bit, [0]);
    if memory.read_exact_at(&mut byte, address).is_err() {
        return false;
    }
    let damaged = match injection.fault {
        Fault::StuckAt0 => byte[0] & !mask,
        Fault::StuckAt1 => byte[0] | mask,
        Fault::FlipsOnce => byte[0] ^ mask,
    };
    let changed = damaged != byte[0] && memory.write_all_at(&[damaged], address).is_ok();
    shared.changes.fetch_add(u32::from(changed), Ordering::Relaxed);
    changed
}

/// A process that stands still, until this is dropped.
struct Still(OwnedFd);

impl Still {
    fn send(&self, signal: i32) -> bool {
        // SAFETY: the descriptor is that of a process, and the call reads no other memory.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, std::ptr::null::<u8>(), 0) == 0 }
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        self.send(libc::SIGCONT);
    }
}

/// Stops a process, and waits until none of its threads runs any more. `None` if it has ended, or its threads do not stop.
fn still(pid: u32) -> Option<Still> {
    // SAFETY: the call takes two numbers. What it returns is a descriptor of this process's own, or -1. A number of a process that has ended
    // may be another's only after its parent, this process, has waited for it: its injector reads its memory before, and that has failed then.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it was just opened, and nobody else has it.
    let standing = Still(unsafe { OwnedFd::from_raw_fd(descriptor) });
    let stands = |thread: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, fields)| !fields.starts_with(['R', 'S', 'D']))
    };
    let stand = || std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.flatten().all(stands));
    let began = Instant::now();
    while standing.send(libc::SIGSTOP) && began.elapsed() < Duration::from_secs(20) {
        if stand() {
            return Some(standing);
        }
        std::thread::sleep(LOOK);
    }
    None
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
