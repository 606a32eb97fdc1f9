//! Files and folders: their owners, locks, and paths that are not files.

mod reading;

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use reading::TRY_PIPE;
pub(crate) use reading::{append, read_text};
pub use reading::{open_regular, read_to_end};

/// The permissions of a new file, before the umask takes some of them away.
const NEW_MODE: u32 = 0o666;
/// The permissions of a file that is nobody else's business.
const PRIVATE_MODE: u32 = 0o600;

/// The owner of the path, if that is neither this user nor root. Links are not followed. `None` also if the owner cannot be seen.
pub fn foreign_owner(path: &Path) -> Option<String> {
    let owner = path.symlink_metadata().ok()?.uid();
    (![0, rustix::process::geteuid().as_raw()].contains(&owner)).then(|| format!("user ID {owner}"))
}

/// Whether the path is this user's. Links are not followed.
pub fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

/// Whether everybody may write to the folder.
pub fn is_open_to_all(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| found.mode() & 0o002 != 0)
}

/// What to do about a folder to which everybody may write. One with the sticky bit, such as `/tmp`, is everybody's by design and has to stay so.
pub fn open_to_all_advice(folder: &Path) -> &'static str {
    let sticky = fs::metadata(folder).is_ok_and(|found| found.mode() & 0o1000 != 0);
    if sticky { "name a folder inside it" } else { "take that away (chmod o-w), or name another one" }
}

/// Whether the path is a pipe or a device, which takes what is written.
pub fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo() || found.file_type().is_char_device())
}

/// Whether the path is one of the kernel's links to an open file, such as `/dev/fd/3`, which have no path to follow: whoever opened it waits
/// for content in this very file.
///
/// `/dev/fd` is a link to a folder of `/proc`, so it is the folder that counts.
pub fn names_open_file(path: &Path) -> bool {
    path.parent().and_then(|folder| folder.canonicalize().ok()).is_some_and(|folder| folder.starts_with("/proc"))
}

/// Writes to a pipe or a device, or through one of the kernel's links to open files. A pipe without a reader, or whose reader is slow, is waited
/// for until `gives_up`. No other link is followed, and what is neither a pipe nor a device is not written to: something else may have taken the
/// name since [`is_stream`] was asked.
///
/// # Errors
/// Those of opening and writing, and `Interrupted` after it gave up.
pub fn write_to_stream(path: &Path, mut bytes: &[u8], gives_up: &mut dyn FnMut() -> bool) -> io::Result<()> {
    let named = names_open_file(path);
    let follow = if named { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | follow).bits() as i32;
    let interrupted = || io::Error::new(io::ErrorKind::Interrupted, "interrupted while nobody read the pipe");
    let mut stream = loop {
        match OpenOptions::new().write(true).custom_flags(flags).open(path) {
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) && is_pipe(path) => {
                if gives_up() {
                    return Err(interrupted());
                }
                crate::process::sleep(TRY_PIPE);
            }
            opened => break opened?,
        }
    };
    let found = stream.metadata()?.file_type();
    if !(named || found.is_fifo() || found.is_char_device()) {
        return Err(io::Error::other("is no longer the pipe or device that it was when the run began"));
    }
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if gives_up() {
                    return Err(interrupted());
                }
                let limit = Timespec { tv_sec: 0, tv_nsec: TRY_PIPE.as_nanos() as _ };
                match poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&limit)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether the path, or what it leads to, is a pipe: sockets and drivers have the error of a pipe without a reader, too.
fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// The permissions of a new file: what this user's umask leaves, or none for others. `None` where a system has no such thing.
pub fn permissions(private: bool) -> Option<Permissions> {
    Some(Permissions::from_mode(if private { PRIVATE_MODE } else { NEW_MODE }))
}

/// Gives a new file the permissions and the owner of the one that it will replace, `old`, as far as this user may.
///
/// # Errors
/// When the permissions cannot be set.
pub fn copy_owner(_path: &Path, old: &Metadata, file: &File) -> io::Result<()> {
    let (new, mode) = (file.metadata()?, old.mode() & 0o777);
    let group_kept = new.gid() == old.gid() || fchown(file, None, Some(old.gid())).is_ok();
    if new.uid() != old.uid() {
        // Only root may give files away.
        let _ = fchown(file, Some(old.uid()), None);
    }
    // The permissions of the old group must not pass to another group.
    file.set_permissions(Permissions::from_mode(if group_kept { mode } else { mode & !0o070 }))
}

/// Whether the process of this number has ended; `None` where nobody knows which processes there are, as without `/proc`.
pub fn process_has_ended(id: u32) -> Option<bool> {
    Path::new("/proc/self").exists().then(|| !Path::new("/proc").join(id.to_string()).exists())
}

/// Names those among whom the number of a process is unique: this boot of this host and, in it, the container. `None` where the kernel does not
/// tell.
pub fn numbering_of_processes() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let pids = match fs::read_link("/proc/self/ns/pid") {
        Ok(pids) => pids.display().to_string(),
        // A kernel without namespaces of processes has one numbering.
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(_) => return None,
    };
    Some(format!("{}\n{}\n{pids}", boot.trim(), host.trim()))
}

/// Opens a file for reading and writing, or makes it, so that nobody else may open it: whoever can open a file can hold its lock for ever. A
/// link is not followed, and a pipe not waited for.
///
/// # Errors
/// When it cannot be opened, or not be kept from others, and when it is not a regular file.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE_MODE)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    let file = match options.open(path) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(io::Error::other("it is a link, which is not followed"));
        }
        file => file?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // Something else may have made it before.
    if found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
    }
    Ok(file)
}

/// Reads the beginning of a file that another process may hold locked.
///
/// # Errors
/// Those of reading.
pub fn read_locked(file: &File, text: &mut [u8]) -> io::Result<usize> {
    file.read_at(text, 0)
}

/// Takes the lock of an open file, if nobody else has it. The kernel gives it back when the file is closed, however the process ends.
///
/// # Errors
/// When the file system has no locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Brings the names in a folder to its device, so that a file which was renamed there has its new name after a power cut.
///
/// # Errors
/// Those of opening the folder and of the device.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes `at` lead to the file `name` in the same folder. `at` must not exist.
///
/// # Errors
/// Those of making a link.
pub fn link_to(name: impl AsRef<OsStr>, at: &Path) -> io::Result<()> {
    symlink(name.as_ref(), at)
}

/// A folder whose files are in memory, for what a full disk does not take.
pub fn folder_in_memory() -> Option<PathBuf> {
    Some(PathBuf::from("/dev/shm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_was_made_for_everybody_is_kept_from_others() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let lock = folder.join("lock");
        fs::write(&lock, "").unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
        let file = open_private(&lock).unwrap();
        assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o777, PRIVATE_MODE);
        assert!(try_lock(&file).unwrap() && !try_lock(&open_private(&lock).unwrap()).unwrap());
        drop(file);
        assert!(try_lock(&open_private(&lock).unwrap()).unwrap());
        link_to("lock", &folder.join("link")).unwrap();
        assert!(open_private(&folder.join("link")).is_err(), "a link is not followed");
    }

    #[test]
    fn the_kernels_links_to_open_files_are_known_by_their_folder() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        link_to("/proc/self/fd", &folder.join("fd")).unwrap();
        assert!(names_open_file(Path::new("/proc/self/fd/1")) && names_open_file(&folder.join("fd/1")));
        assert!(!names_open_file(&folder.join("fd")) && !names_open_file(&folder.join("nowhere/1")));
    }

    #[test]
    fn own_files_and_those_of_root_are_trusted() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        assert_eq!((foreign_owner(folder), is_own(folder)), (None, true));
        assert_eq!(foreign_owner(Path::new("/")), None);
        assert!(!is_open_to_all(folder) && is_open_to_all(Path::new("/tmp")) && is_stream(Path::new("/dev/null")));
        assert_eq!(open_to_all_advice(Path::new("/tmp")), "name a folder inside it", "nobody is told to close /tmp");
        assert!(open_to_all_advice(folder).contains("chmod o-w"));
        assert_eq!(process_has_ended(std::process::id()), Some(false));
    }
}
