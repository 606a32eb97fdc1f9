//! Files read by several threads and handed out in their order, with a bound on what is in memory at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Bytes of JSON that are parsed at a time. A parsed result takes a few times its size.
const BYTES: u64 = 64 << 20;
/// Results that may wait for an earlier one which takes longer.
const AHEAD: usize = 64;

/// What the threads share.
struct State<T> {
    /// The next file that nobody has taken.
    next: usize,
    /// The next file to hand out.
    wanted: usize,
    /// Bytes that are being parsed.
    bytes: u64,
    done: BTreeMap<usize, T>,
    /// Threads that may still add to `done`.
    working: usize,
}

/// Works on files in several threads, and hands the outcomes to `take` in the order of the files, until `stop` is set or `take` fails.
///
/// # Panics
/// When `work` panics.
pub(super) fn in_order<T: Send, E>(
    files: &[PathBuf],
    stop: &AtomicBool,
    size: impl Fn(&PathBuf) -> u64 + Sync,
    work: impl Fn(&PathBuf) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8).min(files.len().max(1));
    let state = Mutex::new(State { next: 0, wanted: 0, bytes: 0, done: BTreeMap::new(), working: threads });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let failed = AtomicBool::new(false);
    let ends = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let worker = || {
        let _ends = AtEnd(|| {
            let mut guard = lock();
            guard.working -= 1;
            // Nobody will hand out the file of a thread that panics, and those that wait for their turn after it must not wait for ever.
            if thread::panicking() {
                failed.store(true, Ordering::Relaxed);
            }
            drop(guard);
            changed.notify_all();
        });
        loop {
            let mut guard = lock();
            if guard.next >= files.len() || ends() {
                break;
            }
            let index = guard.next;
            guard.next += 1;
            drop(guard);
            let bytes = size(&files[index]);
            let mut guard = lock();
            while !ends() && (index >= guard.wanted + AHEAD || guard.bytes > 0 && guard.bytes + bytes > BYTES) {
                guard = wait(&changed, guard);
            }
            guard.bytes += bytes;
            drop(guard);
            let outcome = work(&files[index]);
            let mut guard = lock();
            guard.bytes -= bytes;
            guard.done.insert(index, outcome);
            changed.notify_all();
        }
    };
    thread::scope(|scope| {
        (0..threads).for_each(|_| drop(scope.spawn(worker)));
        loop {
            let mut guard = lock();
            let wanted = guard.wanted;
            let outcome = loop {
                match guard.done.remove(&wanted) {
                    Some(outcome) => break Some(outcome),
                    None if guard.working == 0 => break None,
                    None => guard = wait(&changed, guard),
                }
            };
            guard.wanted += 1;
            changed.notify_all();
            drop(guard);
            let Some(outcome) = outcome else { return Ok(()) };
            if let Err(error) = take(wanted, outcome) {
                // With the lock: otherwise a thread that has just read the flag would begin to wait after the notification, and miss it.
                let guard = lock();
                failed.store(true, Ordering::Relaxed);
                drop(guard);
                changed.notify_all();
                return Err(error);
            }
        }
    })
}

/// Calls something when it is dropped, also while its thread panics.
struct AtEnd<F: Fn()>(F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Waits for a change. A thread that panicked has left the state as it was between two changes.
fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
    changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::path::Path;
    use std::time::Duration;

    fn files(count: usize) -> Vec<PathBuf> {
        (0..count).map(|i| i.to_string().into()).collect()
    }

    fn number(path: &Path) -> u64 {
        path.to_string_lossy().parse().unwrap()
    }

    #[test]
    fn outcomes_come_in_the_order_of_files_also_when_one_takes_long_and_all_are_large() {
        let mut taken = Vec::new();
        let slow_first = |path: &PathBuf| {
            let n = number(path);
            thread::sleep(Duration::from_millis(if n == 0 { 50 } else { 0 }));
            n
        };
        let all = files(500);
        let take = |_, n| {
            taken.push(n);
            Ok::<(), Infallible>(())
        };
        in_order(&all, &AtomicBool::new(false), |_| 2 * BYTES, slow_first, take).unwrap();
        assert_eq!(taken, (0..500).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_that_panics_ends_the_work() {
        let (ended, ends) = std::sync::mpsc::channel();
        // Of a thread of its own: a failure of this test must not hang.
        thread::spawn(move || {
            let panics = |path: &PathBuf| assert_ne!(number(path), 7, "this panic is part of the test");
            let all = files(500);
            let stop = AtomicBool::new(false);
            let work = || in_order(&all, &stop, |_| 1, panics, |_, ()| Ok::<(), Infallible>(()));
            let _ = ended.send(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        });
        assert_eq!(ends.recv_timeout(Duration::from_secs(300)), Ok(true), "the panic is passed on, and nobody waits");
    }

    #[test]
    fn a_failure_and_a_stop_end_the_work() {
        let all = files(10_000);
        let stop = AtomicBool::new(false);
        let fails = |_, n| if n == 3 { Err(n) } else { Ok(()) };
        assert_eq!(in_order(&all, &stop, |_| 1, |path| number(path), fails), Err(3));
        let mut taken = 0;
        let stops = |_, _| {
            taken += 1;
            stop.store(taken == 5, Ordering::Relaxed);
            stop.fetch_or(taken > 5, Ordering::Relaxed);
            Ok::<(), Infallible>(())
        };
        in_order(&all, &stop, |_| 1, |path| number(path), stops).unwrap();
        assert!((5..200).contains(&taken), "{taken}");
    }
}
