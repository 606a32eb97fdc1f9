//! A word of shared memory by which another program starts a measurement and sees it run.
//!
//! The word is the first 32 bits, in the machine's byte order, of the POSIX shared memory of a name (`shm_open(3)`; on Linux the file
//! `/dev/shm/NAME`). The other program writes [`START`]; memgauge answers with [`MEASURING`] and, once it has measured, [`DONE`]. The next
//! [`START`] begins the next measurement.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Nobody has asked yet; what the word is when it is made.
pub const IDLE: u32 = 0;
/// Written by the other program: measure.
pub const START: u32 = 1;
/// Written by memgauge: it measures.
pub const MEASURING: u32 = 2;
/// Written by memgauge: it has measured.
pub const DONE: u32 = 3;

/// The word is looked at this often; what waits sleeps in between, so that it disturbs nobody.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);
/// Bytes of the word.
const WORD: usize = size_of::<AtomicU32>();

/// Why there is no such word.
#[derive(Debug, thiserror::Error)]
#[error("shared memory '{name}' cannot be {what}: {why}")]
pub struct StartSignalError {
    name: String,
    what: &'static str,
    why: io::Error,
}

/// The word, mapped. Shared memory that was made here is removed on drop; what others have mapped stays with them.
#[derive(Debug)]
pub struct StartSignal {
    name: CString,
    word: *mut AtomicU32,
    made: bool,
}

impl StartSignal {
    /// Opens the shared memory of this name, with or without its leading slash; makes it, readable and writable by this user only, where there
    /// is none.
    ///
    /// # Errors
    /// When it can neither be opened nor made, is of another user, or holds no word.
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
            // SAFETY: `path` is a text with a final zero, and the call has no other requirement.
            let fd = unsafe { libc::shm_open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | flags, 0o600 as libc::mode_t) };
            // SAFETY: a number that is not negative is a descriptor that was just opened and that nothing else owns.
            (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
        };
        // Only what this call makes is removed later: so it is asked to fail where the name exists.
        let (made, fd) = match open(libc::O_CREAT | libc::O_EXCL) {
            Some(fd) => (true, fd),
            None if io::Error::last_os_error().kind() == io::ErrorKind::AlreadyExists => (false, open(0).ok_or_else(|| failed("opened"))?),
            None => return Err(failed("made")),
        };
        let mut signal = Self { name: path, word: std::ptr::null_mut(), made };
        let size = std::fs::File::from(fd.try_clone().map_err(|_| failed("opened"))?).metadata().map_err(|_| failed("read"))?.len();
        // SAFETY: grows a descriptor that is ours; new bytes are zero, so the word is `IDLE`.
        if size < WORD as u64 && unsafe { libc::ftruncate(fd.as_raw_fd(), WORD as libc::off_t) } != 0 {
            return Err(failed("grown"));
        }
        let flags = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a file that holds at least a word, at an address that the kernel chooses.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), WORD, flags, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if map == libc::MAP_FAILED {
            return Err(failed("mapped"));
        }
        signal.word = map.cast();
        Ok(signal)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: set by `open` to a mapping that lives as long as `self`, aligned to a page. Other processes change it, which is what atomics
        // are for.
        unsafe { &*self.word }
    }

    /// Waits until the word is [`START`] and makes it [`MEASURING`]; false when `given_up` said so first. It is asked every millisecond.
    pub fn wait(&self, given_up: impl Fn() -> bool) -> bool {
        while self.word().compare_exchange(START, MEASURING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            if given_up() {
                return false;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        true
    }

    /// Makes the word [`DONE`].
    pub fn done(&self) {
        self.word().store(DONE, Ordering::Release);
    }
}

impl Drop for StartSignal {
    fn drop(&mut self) {
        if !self.word.is_null() {
            // SAFETY: the mapping that `open` made; nothing refers to it any more.
            unsafe { libc::munmap(self.word.cast(), WORD) };
        }
        if self.made {
            // SAFETY: a text with a final zero. That the name is gone already is no error.
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
    fn a_start_is_answered_and_what_was_made_is_removed() {
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
        assert!(file(&name).exists(), "it was not made by the second");
        drop(signal);
        assert!(!file(&name).exists());
    }

    #[test]
    fn waiting_can_be_given_up() {
        let signal = StartSignal::open(&name("stop")).unwrap();
        let looks = std::cell::Cell::new(0);
        let third = || looks.replace(looks.get() + 1) == 2;
        assert!(!signal.wait(third), "asked again and again");
        assert_eq!(looks.get(), 3);
        assert_eq!(signal.word().load(Ordering::Acquire), IDLE);
    }

    #[test]
    fn shared_memory_of_others_stays_and_what_cannot_be_is_named() {
        let name = name("others");
        std::fs::write(file(&name), START.to_ne_bytes()).unwrap();
        let signal = StartSignal::open(&name).unwrap();
        assert!(signal.wait(|| false), "it was to start before anybody waited");
        drop(signal);
        assert_eq!(std::fs::read(file(&name)).unwrap(), MEASURING.to_ne_bytes());
        std::fs::remove_file(file(&name)).unwrap();
        assert!(StartSignal::open("a\0b").unwrap_err().to_string().contains("cannot be named"));
        assert!(StartSignal::open(&"x".repeat(300)).unwrap_err().to_string().contains("cannot be made"));
    }
}
