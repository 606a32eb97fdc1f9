//! A word of shared memory by which another program starts a measurement and sees its state.
//!
//! The word is the first 32 bits, in the machine's byte order, of the POSIX shared memory of a name (`shm_open(3)`; on Linux the file
//! `/dev/shm/NAME`). The other program writes [`START`]; memgauge answers with [`MEASURING`] and, once it has measured, [`DONE`]. The next
//! [`START`] begins the next measurement.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// No measurement was requested yet. A new word has this value.
pub const IDLE: u32 = 0;
/// Written by the other program to start a measurement.
pub const START: u32 = 1;
/// Written by memgauge while it measures.
pub const MEASURING: u32 = 2;
/// Written by memgauge when it has measured.
pub const DONE: u32 = 3;

/// The time between two looks at the word. The waiting thread sleeps meanwhile, so that it disturbs nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Bytes of the word.
const WORD: usize = size_of::<AtomicU32>();

/// Why the shared memory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("shared memory '{name}' cannot be {what}: {why}")]
pub struct StartSignalError {
    name: String,
    what: &'static str,
    why: io::Error,
}

/// The mapped word. Dropping it removes the shared memory if it was created here. Other programs keep their mappings.
#[derive(Debug)]
pub struct StartSignal {
    name: CString,
    word: *mut AtomicU32,
    created: bool,
}

impl StartSignal {
    /// Opens the shared memory of this name, with or without its leading slash. If there is none, it is created, for this user only.
    ///
    /// # Errors
    /// When it cannot be opened or created, or cannot hold a word.
    pub fn open(name: &str) -> Result<Self, StartSignalError> {
        let failed = |what| {
            let why = io::Error::last_os_error();
            StartSignalError { name: name.to_owned(), what, why }
        };
        let bare = name.strip_prefix('/').unwrap_or(name);
        let path = CString::new(format!("/{bare}")).map_err(|e| StartSignalError {
            name: name.to_owned(),
            what: "named",
            why: io::Error::new(io::ErrorKind::InvalidInput, e),
        })?;
        let open = |flags: i32| {
            // SAFETY: `path` ends with a zero byte, and the call has no other requirement.
            let fd = unsafe { libc::shm_open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | flags, 0o600 as libc::mode_t) };
            // SAFETY: a number that is not negative is a descriptor that was just opened, and nothing else owns it.
            (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        };
        // Only memory that this call creates is removed later, so O_EXCL makes it fail when the name exists.
        let (created, fd) = match open(libc::O_CREAT | libc::O_EXCL) {
            Some(fd) => (true, fd),
            None if io::Error::last_os_error().kind() == io::ErrorKind::AlreadyExists => (false, open(0).ok_or_else(|| failed("opened"))?),
            None => return Err(failed("created")),
        };
        let mut signal = Self { name: path, word: std::ptr::null_mut(), created };
        let size = std::fs::File::from(fd.try_clone().map_err(|_| failed("opened"))?).metadata().map_err(|_| failed("read"))?.len();
        // SAFETY: the call takes an open descriptor of ours and a number. The new bytes are zero, so the word is `IDLE`.
        if size < WORD as u64 && unsafe { libc::ftruncate(fd.as_raw_fd(), WORD as libc::off_t) } != 0 {
            return Err(failed("grown"));
        }
        let flags = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced. The file holds at least a word.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), WORD, flags, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if map == libc::MAP_FAILED {
            return Err(failed("mapped"));
        }
        signal.word = map.cast();
        Ok(signal)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: `open` sets the pointer to a mapping that is aligned to a page and lives as long as `self`. Other processes may change the
        // word, which an atomic allows.
        unsafe { &*self.word }
    }

    /// Waits until the word is [`START`], and makes it [`MEASURING`]. Every millisecond `stop` is called, and when it returns true the wait ends
    /// with false.
    pub fn wait(&self, stop: impl Fn() -> bool) -> bool {
        while self.word().compare_exchange(START, MEASURING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            if stop() {
                return false;
            }
            crate::process::sleep(POLL_INTERVAL);
        }
        true
    }

    /// Sets the word to [`DONE`].
    pub fn done(&self) {
        self.word().store(DONE, Ordering::Release);
    }
}

impl Drop for StartSignal {
    fn drop(&mut self) {
        if !self.word.is_null() {
            // SAFETY: `open` made this mapping of `WORD` bytes, and nothing refers to it any more.
            unsafe { libc::munmap(self.word.cast(), WORD) };
        }
        if self.created {
            // SAFETY: the name ends with a zero byte. It is not an error if the name no longer exists.
            unsafe { libc::shm_unlink(self.name.as_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn name(what: &str) -> String {
        format!("memgauge-test-{what}-{}", std::process::id())
    }

    fn file(name: &str) -> PathBuf {
        PathBuf::from("/dev/shm").join(name)
    }

    #[test]
    fn a_start_is_answered_and_what_was_created_is_removed() {
        use std::os::unix::fs::PermissionsExt;
        let name = name("start");
        let signal = StartSignal::open(&name).unwrap();
        assert_eq!(std::fs::read(file(&name)).unwrap(), IDLE.to_ne_bytes());
        assert_eq!(std::fs::metadata(file(&name)).unwrap().permissions().mode() & 0o777, 0o600);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let other = StartSignal::open(&format!("/{name}")).unwrap();
                other.word().store(START, Ordering::Release);
                while other.word().load(Ordering::Acquire) != DONE {
                    std::thread::yield_now();
                }
            });
            assert!(signal.wait(|| false));
            assert_eq!(signal.word().load(Ordering::Acquire), MEASURING);
            signal.done();
            other.join().unwrap();
        });
        assert!(file(&name).exists(), "the second did not create it");
        drop(signal);
        assert!(!file(&name).exists());
    }

    #[test]
    fn waiting_can_be_stopped() {
        let signal = StartSignal::open(&name("stop")).unwrap();
        let looks = std::cell::Cell::new(0);
        let third = || looks.replace(looks.get() + 1) == 2;
        assert!(!signal.wait(third), "asked again and again");
        assert_eq!(looks.get(), 3);
        assert_eq!(signal.word().load(Ordering::Acquire), IDLE);
    }

    #[test]
    fn shared_memory_of_others_stays_and_an_impossible_name_is_refused() {
        let name = name("others");
        std::fs::write(file(&name), START.to_ne_bytes()).unwrap();
        let signal = StartSignal::open(&name).unwrap();
        assert!(signal.wait(|| false), "it was started before anybody waited");
        drop(signal);
        assert_eq!(std::fs::read(file(&name)).unwrap(), MEASURING.to_ne_bytes());
        std::fs::remove_file(file(&name)).unwrap();
        assert!(StartSignal::open("a\0b").unwrap_err().to_string().contains("cannot be named"));
        assert!(StartSignal::open(&"x".repeat(300)).unwrap_err().to_string().contains("cannot be created"));
    }
}
