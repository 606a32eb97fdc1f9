//! A word of shared memory by which another program starts a measurement and sees its state.
//!
//! The word is the first 32 bits, in the machine's byte order, of the POSIX shared memory of a name (`shm_open(3)`; on Linux the file
//! `/dev/shm/NAME`). The other program writes [`START`]; memgauge answers with [`MEASURING`] and, once it has measured, [`DONE`]. The next
//! [`START`] begins the next measurement.
//!
//! Behind the word, memgauge notes which process has created the memory. If that process is killed, the next one removes its memory.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::base_page;
use crate::faults::Watched;
use crate::files::open_regular;
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
/// The folder of the C library for POSIX shared memory.
const FOLDER: &str = "/dev/shm";
/// The largest shared memory that may hold the word. Other programs may keep more in it.
const MAX_BYTES: u64 = 1 << 20;
/// How the note behind the word begins.
const NOTE: &str = "memgauge start signal of process ";
/// Bytes of the note: the longest number of a process, the time of its start and its namespace fit.
const NOTE_LENGTH: usize = 92;

/// Why the shared memory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("shared memory '{name}' cannot be {what}: {}", explained(.why))]
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
    /// Another program may truncate the memory at any time.
    watched: Watched,
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
        remove_abandoned(bare);
        // Made beforehand, so that a run that is killed leaves its memory without a note only within a few instructions.
        let own_note = note(std::process::id());
        // Only memory that this call creates is removed later, so O_EXCL makes it fail when the name exists.
        let (created, file) =
            open_or_create(&path, own_note.as_ref()).map_err(|(what, why)| StartSignalError { name: name.to_owned(), what, why })?;
        let found = file.metadata().map_err(|why| StartSignalError { name: name.to_owned(), what: "read", why })?;
        if let Some(why) = objection(&found).filter(|_| !created) {
            let why = io::Error::other(format!("{why}; remove {FOLDER}/{bare}, or choose another name"));
            return Err(StartSignalError { name: name.to_owned(), what: "trusted", why });
        }
        // So that one run does not remove what another takes over. A program that keeps the lock is none of ours.
        let _ = lock(&file);
        if !created && file.metadata().is_ok_and(|found| found.nlink() == 0) {
            // Another run has removed what a killed one had left, after it was opened here.
            return Self::open(name);
        }
        // Another program may still have the memory of a run that was killed, so it is not replaced.
        let taken_over = !created && is_abandoned(&file);
        if taken_over {
            annotate(&file, own_note.as_ref());
        }
        let mut signal = Self { name: path, word: std::ptr::null_mut(), watched: Watched::nothing(), created: created || taken_over };
        // SAFETY: flock takes a descriptor, which `file` keeps open, and a number.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
        let size = file.metadata().map_err(|_| failed("read"))?.len();
        // SAFETY: the call takes an open descriptor of ours and a number. The new bytes are zero, so the word is `IDLE`.
        if size < WORD as u64 && unsafe { libc::ftruncate(file.as_raw_fd(), WORD as libc::off_t) } != 0 {
            return Err(failed("grown"));
        }
        (signal.word, signal.watched) = map_word(&file).ok_or_else(|| failed("mapped"))?;
        if taken_over {
            // Answers of the killed process are not valid for this one, so they are reset. A request to start stays valid.
            for state in [MEASURING, DONE] {
                let _ = signal.word().compare_exchange(state, IDLE, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
        Ok(signal)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: `open` sets the pointer to a mapping that is aligned to a page and lives as long as `self`. Other processes may change the
        // word, which an atomic allows.
        unsafe { &*self.word }
    }

    /// Waits until the word is [`START`], and makes it [`MEASURING`]. Every millisecond `stop` is called, and when it returns true the wait ends
    /// with false.
    ///
    /// # Errors
    /// When another program truncated the shared memory.
    pub fn wait(&self, stop: impl Fn() -> bool) -> Result<bool, StartSignalError> {
        while self.word().compare_exchange(START, MEASURING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            if self.watched.fault().is_some() {
                let why = io::Error::other("another program truncated it");
                return Err(StartSignalError { name: self.name.to_string_lossy().into_owned(), what: "read", why });
            }
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

/// The shared memory of this name, and whether this call created it; what failed, and why. Only memory that was created here is removed
/// later, so O_EXCL makes creating fail when the name exists.
fn open_or_create(path: &CStr, own_note: Option<&String>) -> Result<(bool, File), (&'static str, io::Error)> {
    let open = |flags: i32| {
        // SAFETY: `path` ends with a zero byte, and the call has no other requirement.
        let fd = unsafe { libc::shm_open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | flags, 0o600 as libc::mode_t) };
        // SAFETY: a number that is not negative is a descriptor that was just opened, and nothing else owns it.
        (fd >= 0).then(|| File::from(unsafe { OwnedFd::from_raw_fd(fd) })).ok_or_else(io::Error::last_os_error)
    };
    loop {
        match open(libc::O_CREAT | libc::O_EXCL) {
            Ok(file) => {
                annotate(&file, own_note);
                return Ok((true, file));
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(("created", error)),
            Err(_) => {}
        }
        match open(0) {
            Ok(file) => return Ok((false, file)),
            // Another run has just removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(("opened", error)),
        }
    }
}

/// Why the word of another program is not to be believed: somebody else could start a measurement, or hold it up.
fn objection(found: &fs::Metadata) -> Option<String> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    match found {
        _ if !found.is_file() => Some("it is not a regular file".to_owned()),
        _ if found.uid() != user && found.uid() != 0 => Some(format!("it belongs to user {}", found.uid())),
        _ if found.mode() & 0o002 != 0 => Some(format!("everybody may write to it (mode {:o})", found.mode() & 0o777)),
        _ if found.len() > MAX_BYTES => Some(format!("it has {} bytes, and a word has {WORD}", found.len())),
        _ => None,
    }
}

/// Maps the word of a file that holds one, watched for another program that truncates it.
fn map_word(file: &File) -> Option<(*mut AtomicU32, Watched)> {
    let flags = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses the address, so no existing mapping is replaced. The file holds at least a word.
    let map = unsafe { libc::mmap(std::ptr::null_mut(), WORD, flags, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    // SAFETY: the page that was just mapped; `StartSignal` unmaps it after it has stopped watching.
    (map != libc::MAP_FAILED).then(|| (map.cast(), unsafe { Watched::new(map.cast(), base_page(), base_page()) }))
}

impl Drop for StartSignal {
    fn drop(&mut self) {
        self.watched = Watched::nothing();
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

/// The note of a process of this namespace: its number and when it started, because numbers are used again. `None` if there is none.
fn note(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Field 22 of proc_pid_stat(5); the state, field 3, is the first after the name.
    let start = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(22 - 3)?;
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    let note = format!("{NOTE}{process} started {start} in {namespace}");
    Some(format!("{note:<width$}\n", width = NOTE_LENGTH - 1))
}

/// Notes whose memory it is. Without the note, which a full file system refuses, only this process can remove the memory.
fn annotate(file: &File, note: Option<&String>) {
    let _ = note.map(|note| file.write_all_at(note.as_bytes(), WORD as u64));
}

/// Whether a process of this namespace has created the memory, and has ended without removing it.
fn is_abandoned(file: &File) -> bool {
    let (mut bytes, ours) = ([0; NOTE_LENGTH], note(std::process::id()));
    let read = file.read_exact_at(&mut bytes, WORD as u64).is_ok();
    let (Some(found), Some(ours)) = (std::str::from_utf8(&bytes).ok().filter(|_| read), ours) else { return false };
    let namespace = |note: &str| note.rsplit_once(' ').map(|(_, inode)| inode.to_owned());
    let process = found.strip_prefix(NOTE).and_then(|rest| rest.split_once(' ')?.0.parse().ok());
    namespace(found.trim_end()) == namespace(ours.trim_end()) && process.is_some_and(|process| note(process).as_deref() != Some(found))
}

/// Locks the memory. Waits a moment where another run is just taking it over or removing it.
fn lock(file: &File) -> bool {
    (0..100).any(|nth| {
        if nth > 0 {
            crate::process::sleep(POLL_INTERVAL);
        }
        // SAFETY: flock takes a descriptor, which `file` keeps open, and a number.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
    })
}

/// Removes the memory that killed processes of this user have left under other names than `name`. Memory that cannot be removed stays.
fn remove_abandoned(name: &str) {
    let user = Path::new("/proc/self").metadata().map(|own| own.uid());
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let ours = |found: fs::Metadata| {
            found.is_file() && found.len() == (WORD + NOTE_LENGTH) as u64 && user.as_ref().is_ok_and(|user| *user == found.uid())
        };
        if entry.file_name() == name || !entry.metadata().is_ok_and(ours) {
            continue;
        }
        let Ok(file) = open_regular(&entry.path()) else { continue };
        if lock(&file) && is_abandoned(&file) {
            let _ = fs::remove_file(entry.path());
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
        assert_eq!(std::fs::read(file(&name)).unwrap()[..WORD], IDLE.to_ne_bytes());
        assert_eq!(std::fs::metadata(file(&name)).unwrap().permissions().mode() & 0o777, 0o600);
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
        assert!(file(&name).exists(), "the second did not create it");
        drop(signal);
        assert!(!file(&name).exists());
    }

    #[test]
    fn waiting_can_be_stopped() {
        let signal = StartSignal::open(&name("stop")).unwrap();
        let looks = std::cell::Cell::new(0);
        let third = || looks.replace(looks.get() + 1) == 2;
        assert!(!signal.wait(third).unwrap(), "asked again and again");
        assert_eq!(looks.get(), 3);
        assert_eq!(signal.word().load(Ordering::Acquire), IDLE);
    }

    #[test]
    fn what_a_killed_process_has_left_is_taken_over_or_removed() {
        let [same, other, alive] = ["same", "other", "alive"].map(name);
        // The number of this process with another start is that of a process that has ended.
        let own = note(std::process::id()).unwrap();
        let ended = own.replace(" started ", " started 9");
        let ended = format!("{:<width$}\n", ended.trim_end(), width = NOTE_LENGTH - 1);
        for (name, note) in [(&same, &ended), (&other, &ended), (&alive, &own)] {
            std::fs::write(file(name), [DONE.to_ne_bytes().as_slice(), note.as_bytes()].concat()).unwrap();
        }
        let signal = StartSignal::open(&same).unwrap();
        assert_eq!(signal.word().load(Ordering::Acquire), IDLE, "the answer of the killed process");
        assert_eq!((file(&other).exists(), file(&alive).exists()), (false, true));
        drop(signal);
        assert!(!file(&same).exists());
        drop(StartSignal::open(&alive).unwrap());
        assert!(file(&alive).exists(), "its process may still use it");
        std::fs::remove_file(file(&alive)).unwrap();
    }

    #[test]
    fn a_word_that_somebody_else_may_write_is_not_believed() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let name = name("untrusted");
        let refused = |words: &str| {
            let why = StartSignal::open(&name).unwrap_err().to_string();
            assert!(why.contains("cannot be trusted") && why.contains(words) && why.contains("another name"), "{why}");
        };
        std::fs::write(file(&name), START.to_ne_bytes()).unwrap();
        std::fs::set_permissions(file(&name), std::fs::Permissions::from_mode(0o666)).unwrap();
        refused("mode 666");
        std::fs::set_permissions(file(&name), std::fs::Permissions::from_mode(0o644)).unwrap();
        File::options().write(true).open(file(&name)).unwrap().set_len(1 << 40).unwrap();
        refused("1099511627776 bytes");
        std::fs::write(file(&name), START.to_ne_bytes()).unwrap();
        drop(StartSignal::open(&name).unwrap());
        // Only root can give files away.
        if chown(file(&name), Some(65_534), None).is_ok() {
            refused("user 65534");
        }
        std::fs::remove_file(file(&name)).unwrap();
    }

    #[test]
    fn shared_memory_of_others_stays_and_an_impossible_name_is_refused() {
        let name = name("others");
        std::fs::write(file(&name), START.to_ne_bytes()).unwrap();
        let signal = StartSignal::open(&name).unwrap();
        assert!(signal.wait(|| false).unwrap(), "it was started before anybody waited");
        drop(signal);
        assert_eq!(std::fs::read(file(&name)).unwrap(), MEASURING.to_ne_bytes());
        std::fs::remove_file(file(&name)).unwrap();
        assert!(StartSignal::open("a\0b").unwrap_err().to_string().contains("cannot be named"));
        assert!(StartSignal::open(&"x".repeat(300)).unwrap_err().to_string().contains("cannot be created"));
    }
}
