//! Files and folders: their owners, locks, and paths that are not files.

mod access;

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER, ERROR_IO_PENDING, ERROR_LOCK_VIOLATION, GENERIC_READ, GENERIC_WRITE, WAIT_OBJECT_0,
    WAIT_TIMEOUT,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_TYPE_CHAR, FILE_TYPE_PIPE, GetFileType,
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, READ_CONTROL, WRITE_DAC,
};
use windows_sys::Win32::System::IO::OVERLAPPED;
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

use crate::host;
use crate::security::{Sid, own_owner, own_user};
use access::Access;

/// Owners that are as trusted as root is elsewhere: the group of administrators, the system, and the service that installs Windows.
const TRUSTED: [&str; 3] = ["S-1-5-32-544", "S-1-5-18", "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"];
/// The place of the byte that a lock takes: far behind any content, so that others can read the content meanwhile.
const LOCKED_BYTE: u64 = 1 << 62;

/// The owner of the path, if that is neither this user nor the administrators or the system. Links are not followed. `None` also if the
/// owner cannot be read, and on file systems without owners (FAT).
pub fn foreign_owner(path: &Path) -> Option<String> {
    let owner = owner(path)?;
    let trusted = is_ours(&owner) || owner.text().is_some_and(|text| TRUSTED.contains(&text.as_str()));
    if trusted { None } else { owner.name() }
}

/// Whether the path is this user's. Links are not followed. What an administrator makes belongs to the group of administrators.
pub fn is_own(path: &Path) -> bool {
    owner(path).is_some_and(|owner| is_ours(&owner))
}

fn is_ours(owner: &Sid) -> bool {
    [own_user(), own_owner()].iter().flatten().any(|own| own == owner)
}

fn owner(path: &Path) -> Option<Sid> {
    let mut options = OpenOptions::new();
    options.access_mode(READ_CONTROL).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS);
    Access::read(&options.open(path).ok()?)?.owner()
}

/// Whether everybody (`Everyone`) may write to the folder, remove what is in it, or give that right. `false` where its protection cannot be
/// read. The root of a drive gives members of `Users` rights that its folders inherit, as they have always had there: these do not count.
pub fn is_open_to_all(folder: &Path) -> bool {
    let opened = OpenOptions::new().access_mode(READ_CONTROL).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(folder);
    opened.ok().and_then(|folder| Access::read(&folder)).is_some_and(|access| access.lets_everybody_write())
}

/// What to do about a folder to which everybody may write.
pub const fn open_to_all_advice(_folder: &Path) -> &'static str {
    "take that right from Everyone (Properties, Security), or name another one"
}

/// Whether the path is a pipe or a device, which takes what is written.
pub fn is_stream(path: &Path) -> bool {
    if is_named_stream(path) {
        return true;
    }
    // No right is asked for, so a file or a device is not touched.
    let Ok(opened) = OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path) else { return false };
    // SAFETY: the handle is open while `opened` lives.
    [FILE_TYPE_CHAR, FILE_TYPE_PIPE].contains(&unsafe { GetFileType(opened.as_raw_handle()) })
}

/// Pipes and consoles, by their names: opening a pipe would use it up, and a console opens for reading or writing only.
fn is_named_stream(path: &Path) -> bool {
    let name = path.to_string_lossy().replace('/', "\\").to_ascii_lowercase();
    let device = name.strip_prefix(r"\\.\").or_else(|| name.strip_prefix(r"\\?\"));
    let is_console = |name: &str| ["con", "conout$", "conin$", "nul"].contains(&name);
    // \\SERVER\pipe\NAME is a pipe of another machine.
    let remote = || name.strip_prefix(r"\\").and_then(|rest| rest.split_once('\\')).is_some_and(|(_, rest)| rest.starts_with(r"pipe\"));
    is_console(&name) || device.is_some_and(|device| device.starts_with(r"pipe\") || is_console(device)) || remote()
}

/// Whether the path is one of the kernel's links to an open file: Windows has none.
pub const fn names_open_file(_path: &Path) -> bool {
    false
}

/// Writes to a pipe or a device. A pipe without a reader is an error at once, so nothing is waited for.
///
/// # Errors
/// Those of opening and writing.
pub fn write_to_stream(path: &Path, bytes: &[u8], _gives_up: &mut dyn FnMut() -> bool) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(bytes)
}

/// Opens a regular file for reading. Links are followed. Nothing else is opened: opening a pipe uses it up.
///
/// # Errors
/// Those of opening, and for what is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    if is_stream(path) || !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Reads a file to its end, or what a pipe gives until then: `most` bytes, and not more. Events of a console arrive in a thread of their own, so
/// that the last one ends the program while a pipe is waited for.
///
/// # Errors
/// Those of opening and reading.
pub fn read_to_end(path: &Path, most: u64, _gives_up: &mut dyn FnMut() -> bool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The permissions of a new file. Windows has none of this kind: a file inherits its protection from its folder.
pub const fn permissions(_private: bool) -> Option<Permissions> {
    None
}

/// Gives a new file the protection of the one that it will replace, `path`, if that has one of its own. Windows adds the protection
/// that the folder hands down. It is done as far as this user may.
///
/// # Errors
/// None: if this is not allowed, the new file is protected as its folder says.
pub fn copy_owner(path: &Path, _old: &Metadata, file: &File) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.access_mode(READ_CONTROL).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_BACKUP_SEMANTICS);
    if let Some(old) = options.open(path).ok().and_then(|old| Access::read(&old)).filter(Access::is_own_of_the_file) {
        // A refusal leaves what is inherited.
        old.give_to(file);
    }
    Ok(())
}

/// Whether the process of this number has ended; `None` where the system does not say.
pub fn process_has_ended(id: u32) -> Option<bool> {
    // SAFETY: the function takes numbers.
    let process = unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, id) };
    if process.is_null() {
        return match io::Error::last_os_error().raw_os_error()?.cast_unsigned() {
            ERROR_INVALID_PARAMETER => Some(true),
            // It is somebody else's, so there is one.
            ERROR_ACCESS_DENIED => Some(false),
            _ => None,
        };
    }
    // SAFETY: the handle was just opened, and nothing else owns it.
    let process = unsafe { OwnedHandle::from_raw_handle(process) };
    // A process stays known after its end as long as somebody has a handle of it.
    // SAFETY: the handle is open, and has the right to wait. The call does not wait.
    match unsafe { WaitForSingleObject(process.as_raw_handle(), 0) } {
        WAIT_OBJECT_0 => Some(true),
        WAIT_TIMEOUT => Some(false),
        _ => None,
    }
}

/// Names those among whom the number of a process is unique: this host. `None` where Windows does not tell.
pub fn numbering_of_processes() -> Option<String> {
    host::machine_id(Path::new("/")).or_else(|| host::name(Path::new("/")))
}

/// Opens a file for reading and writing, or makes it, so that nobody but this user, administrators and the system may open it: anybody who
/// can open a file can hold its lock for ever. A link is not followed. If the file system has no protection, or the file is somebody else's,
/// the protection stays as it is.
///
/// # Errors
/// When it cannot be opened, or is a link.
pub fn open_private(path: &Path) -> io::Result<File> {
    let open = |rights: u32| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).access_mode(rights).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
        options.open(path)
    };
    let rights = GENERIC_READ | GENERIC_WRITE;
    let file = open(rights | READ_CONTROL | WRITE_DAC).or_else(|_| open(rights))?;
    if file.metadata()?.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return Err(io::Error::other("is a link, which is not followed"));
    }
    if Access::read(&file).and_then(|access| access.owner()).is_some_and(|owner| is_ours(&owner)) {
        // Something else may have made it before. A refusal changes nothing.
        access::keep_private(&file);
    }
    Ok(file)
}

/// Reads the beginning of a file that another process may hold locked by [`try_lock`].
///
/// # Errors
/// Those of reading.
pub fn read_locked(file: &File, text: &mut [u8]) -> io::Result<usize> {
    file.seek_read(text, 0)
}

/// Takes the lock of an open file, if nobody else has it (`LockFileEx`). The system gives it back when the file is closed, however the
/// process ends. Locks of Windows keep others from reading what is locked: a byte far behind the content is locked in its place.
///
/// # Errors
/// When the file system has no locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = LOCKED_BYTE as u32;
    place.Anonymous.Anonymous.OffsetHigh = (LOCKED_BYTE >> 32) as u32;
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open while `file` lives. The file was not opened for overlapped access and the call fails at once if it
    // would have to wait, so nobody uses `place` after it.
    if unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &raw mut place) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING) => Ok(false),
        _ => Err(error),
    }
}

/// Brings the names in a folder to its device: NTFS and ReFS log changes of names themselves, and Windows lets only administrators flush a
/// folder, so nothing is left to do.
///
/// # Errors
/// None.
pub const fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes `at` lead to the file `name` in the same folder: another name of the file itself, because symbolic links need a privilege. `at`
/// must not exist.
///
/// # Errors
/// Those of making a link, as on file systems without them (FAT).
pub fn link_to(name: impl AsRef<OsStr>, at: &Path) -> io::Result<()> {
    fs::hard_link(at.with_file_name(name), at)
}

/// A folder whose files are in memory: Windows has none.
pub const fn folder_in_memory() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests;
