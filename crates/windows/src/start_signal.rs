//! A word of shared memory by which another program starts a measurement and sees its state.
//!
//! The word is the first 32 bits, in the machine's byte order, of the named shared memory `Local\NAME` (`CreateFileMappingW`), which
//! programs of the same session see. The other program writes [`START`]; memgauge answers with [`MEASURING`] and, once it has measured,
//! [`DONE`]. The next [`START`] begins the next measurement.
//!
//! The system removes the memory when the last process that has it open ends, however it ends. Nothing is left behind, so there is nothing
//! to take over or to remove.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile, PAGE_READWRITE, UnmapViewOfFile,
};

use crate::registry::wide;
use crate::security::explained;

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
/// The name space of the session, and that of the machine, in which only services and administrators may make memory.
const SPACES: [&str; 2] = [r"Local\", r"Global\"];
/// Longer names are refused, as file names are.
const MAX_NAME: usize = 255;

/// Why the shared memory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("shared memory '{name}' cannot be {what}: {}", explained(.why))]
pub struct StartSignalError {
    name: String,
    what: &'static str,
    why: io::Error,
}

/// The mapped word. Other programs keep their mappings when it is dropped.
#[derive(Debug)]
pub struct StartSignal {
    word: *mut AtomicU32,
    _memory: OwnedHandle,
}

impl StartSignal {
    /// Opens the shared memory of this name, with or without a leading slash as it has elsewhere, or one of the prefixes `Local\` and
    /// `Global\`. If there is none, it is created, for this user only.
    ///
    /// # Errors
    /// When it cannot be opened or created.
    pub fn open(name: &str) -> Result<Self, StartSignalError> {
        let error = |what, why| StartSignalError { name: name.to_owned(), what, why };
        let path = object_name(name).map_err(|why| error("named", io::Error::new(io::ErrorKind::InvalidInput, why)))?;
        let path = wide(&path);
        // SAFETY: the name ends with a zero. Without security attributes the memory gets the user's default protection. No file is named,
        // so the memory is that of the page file, new memory is zero, and the word is `IDLE`.
        let memory = unsafe { CreateFileMappingW(INVALID_HANDLE_VALUE, null(), PAGE_READWRITE, 0, WORD as u32, path.as_ptr()) };
        if memory.is_null() {
            return Err(error("created", io::Error::last_os_error()));
        }
        // SAFETY: the handle was just opened, and nothing else owns it.
        let memory = unsafe { OwnedHandle::from_raw_handle(memory) };
        // SAFETY: the system chooses the address. It refuses a view that is larger than the memory.
        let view = unsafe { MapViewOfFile(memory.as_raw_handle(), FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, WORD) };
        if view.Value.is_null() {
            return Err(error("mapped", io::Error::last_os_error()));
        }
        Ok(Self { word: view.Value.cast(), _memory: memory })
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: `open` sets the pointer to a view that is aligned to a page and lives as long as `self`. Other processes may change the
        // word, which an atomic allows, but cannot make the memory smaller.
        unsafe { &*self.word }
    }

    /// Waits until the word is [`START`], and makes it [`MEASURING`]. Every millisecond `stop` is called, and when it returns true the wait
    /// ends with false.
    ///
    /// # Errors
    /// None on Windows: nobody can take the memory away.
    pub fn wait(&self, stop: impl Fn() -> bool) -> Result<bool, StartSignalError> {
        while self.word().compare_exchange(START, MEASURING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            if stop() {
                return Ok(false);
            }
            crate::process::sleep(POLL_INTERVAL);
        }
        Ok(true)
    }

    /// Sets the word to [`DONE`].
    pub fn done(&self) {
        self.word().store(DONE, Ordering::Release);
    }
}

impl Drop for StartSignal {
    fn drop(&mut self) {
        // SAFETY: `open` made this view, and nothing refers to it any more.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: self.word.cast() }) };
    }
}

/// The name of the object, in the session's name space unless another one is named.
fn object_name(name: &str) -> Result<String, &'static str> {
    let named = SPACES.into_iter().find_map(|space| Some((space, name.strip_prefix(space)?)));
    let (space, bare) = named.unwrap_or((SPACES[0], name.strip_prefix('/').unwrap_or(name)));
    match bare {
        "" => Err("the name is empty"),
        _ if bare.contains(['\0', '\\', '/']) => Err("a name has no zero, slash or backslash"),
        _ if bare.encode_utf16().count() > MAX_NAME => Err("the name has more than 255 characters"),
        _ => Ok(format!("{space}{bare}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(what: &str) -> String {
        format!("memgauge-test-{what}-{}", std::process::id())
    }

    #[test]
    fn a_start_is_answered_and_what_was_created_is_gone_afterwards() {
        let name = name("start");
        let signal = StartSignal::open(&name).unwrap();
        assert_eq!(signal.word().load(Ordering::Acquire), IDLE);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let other = StartSignal::open(&format!("/{name}")).unwrap();
                other.word().store(START, Ordering::Release);
                while other.word().load(Ordering::Acquire) != DONE {
                    std::thread::yield_now();
                }
            });
            assert!(signal.wait(|| false).unwrap());
            assert_eq!(signal.word().load(Ordering::Acquire), MEASURING);
            signal.done();
            other.join().unwrap();
        });
        assert_eq!(StartSignal::open(&format!(r"Local\{name}")).unwrap().word().load(Ordering::Acquire), DONE, "the same memory");
        drop(signal);
        assert_eq!(StartSignal::open(&name).unwrap().word().load(Ordering::Acquire), IDLE, "new memory");
    }

    #[test]
    fn waiting_can_be_stopped() {
        let signal = StartSignal::open(&name("stop")).unwrap();
        let looks = std::cell::Cell::new(0);
        let third = || looks.replace(looks.get() + 1) == 2;
        assert!(!signal.wait(third).unwrap(), "asked again and again");
        assert_eq!((looks.get(), signal.word().load(Ordering::Acquire)), (3, IDLE));
    }

    #[test]
    fn an_impossible_name_is_refused() {
        for name in ["", "/", r"Local\", "a\0b", "a/b", r"Session\b", &"x".repeat(300)] {
            assert!(StartSignal::open(name).unwrap_err().to_string().contains("cannot be named"), "{name:?}");
        }
        assert_eq!(object_name(r"Global\a").unwrap(), r"Global\a");
        assert_eq!((object_name("a"), object_name("/a")), (Ok(r"Local\a".to_owned()), Ok(r"Local\a".to_owned())));
    }
}
