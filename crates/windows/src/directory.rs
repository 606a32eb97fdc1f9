//! A directory whose files serve as memory: its properties, and files in it that Windows deletes when they are closed.
//!
//! The properties are those of a file that is created in the same way as the files of buffers. DAX is a property of the volume, which is
//! chosen when it is formatted.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{SystemTime, UNIX_EPOCH};

use memgauge_model::directory::{FileBacking, FileEvidence, MemoryDir};
use memgauge_model::units::Bytes;
use memgauge_model::words::Problem;
use windows_sys::Win32::Foundation::{ERROR_DIRECTORY, GENERIC_READ, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ATTRIBUTE_TEMPORARY, FILE_FLAG_DELETE_ON_CLOSE, FILE_SHARE_DELETE, GetDiskFreeSpaceExW, GetDiskFreeSpaceW,
    GetVolumeInformationByHandleW, GetVolumeNameForVolumeMountPointW, GetVolumePathNameW,
};
use windows_sys::Win32::System::SystemServices::FILE_DAX_VOLUME;

use crate::security::explained;

/// The number of names to try. They hold the process's number and the time, so two clashes are not a coincidence.
const NAME_ATTEMPTS: u32 = 8;
/// Room for a path or the name of a file system, in UTF-16 units: no longer path is possible (`\\?\` and 32,767).
const TEXT: usize = 32 << 10;

/// Why the files of a directory cannot serve as memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The path as given is not a suitable directory.
    #[error("{0}: {1}")]
    Request(String, Problem),
    /// It is a suitable directory, but its files cannot be used.
    #[error("{0}: {1}")]
    Unavailable(String, Problem),
}

/// Reads the properties of the files in `path` on the running machine; `root` is not used. Nothing is left in the directory.
///
/// # Errors
/// [`DirectoryError::Request`] when `path` is not a directory, and [`DirectoryError::Unavailable`] when files cannot be created there.
pub fn read(path: &Path, _root: &Path) -> Result<MemoryDir, DirectoryError> {
    let named = path.display().to_string();
    let request = |what: &'static str, advice: &'static str| DirectoryError::Request(named.clone(), Problem::new(what, advice));
    let unavailable = |what: String, advice: &'static str| DirectoryError::Unavailable(named.clone(), Problem::new(what, advice));
    let no_directory = || request("it is not a directory", "give a directory of the file system to use");
    let full = fs::canonicalize(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => request("there is no such directory", "make it, or mount a volume there"),
        io::ErrorKind::NotADirectory => no_directory(),
        _ if e.raw_os_error() == Some(ERROR_DIRECTORY as i32) => no_directory(),
        _ => unavailable(explained(&e), "give a directory that this user may use"),
    })?;
    let found = full.metadata().map_err(|e| unavailable(explained(&e), "give a directory that this user may use"))?;
    if !found.is_dir() {
        return Err(no_directory());
    }
    let text = full.to_str().ok_or_else(|| request("its name is not Unicode, so no result can hold it", "give it another name"))?;
    let text = plain(text);
    let file = create_temporary(Path::new(&text)).map_err(|e| {
        let (what, advice) = cannot_create(&e);
        unavailable(what, advice)
    })?;
    let other = |e: io::Error| unavailable(format!("its volume does not say what it is: {}", explained(&e)), "give another directory");
    describe(&file, &text).map_err(other)
}

/// A path without the prefix `\\?\` that [`fs::canonicalize`] puts before it.
fn plain(path: &str) -> String {
    match (path.strip_prefix(r"\\?\UNC\"), path.strip_prefix(r"\\?\")) {
        (Some(share), _) => format!(r"\\{share}"),
        // A volume by its GUID has no other name.
        (None, Some(rest)) if rest.as_bytes().get(1) == Some(&b':') => rest.to_owned(),
        _ => path.to_owned(),
    }
}

fn cannot_create(e: &io::Error) -> (String, &'static str) {
    let advice = match e.kind() {
        io::ErrorKind::ReadOnlyFilesystem => "make the volume writable",
        io::ErrorKind::PermissionDenied => "give a directory that this user may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space there",
        _ => "give a directory of another volume",
    };
    (format!("no file can be created there: {}", explained(e)), advice)
}

/// Creates a file in `dir` that Windows deletes when its last handle is closed, however the process ends
/// (`FILE_FLAG_DELETE_ON_CLOSE`). No other process can open it but to delete it.
pub(crate) fn create_temporary(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).access_mode(GENERIC_READ | GENERIC_WRITE | DELETE).share_mode(FILE_SHARE_DELETE);
    options.attributes(FILE_ATTRIBUTE_TEMPORARY).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    for attempt in 0..NAME_ATTEMPTS {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        match options.open(dir.join(format!(".memgauge-{}-{now:x}-{attempt}", std::process::id()))) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            file => return file,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Reads the properties of `file`, which is in `dir`.
pub(crate) fn describe(file: &File, dir: &str) -> io::Result<MemoryDir> {
    let (filesystem, flags) = volume(file)?;
    let (free, block, device) = space(dir)?;
    let backing = if flags & FILE_DAX_VOLUME == 0 { FileBacking::PageCache } else { FileBacking::Dax };
    let (reason, volatile) = match backing {
        FileBacking::Dax => ("Windows has no MAP_SYNC: what was stored is durable after a flush of the file", None),
        _ => ("the volume is not a DAX volume (FILE_DAX_VOLUME)", Some("its files are in the file cache, which is DRAM".to_owned())),
    };
    Ok(MemoryDir {
        file: FileEvidence {
            path: dir.to_owned(),
            filesystem,
            device,
            // Windows has no documented function that tells the node of a volume.
            device_node: None,
            backing,
            map_sync: false,
            reason: Some(reason.to_owned()),
            volatile,
        },
        free: Some(free),
        block,
        persistent: None,
    })
}

/// The name of a file's file system and the flags of its volume (`GetVolumeInformationByHandleW`).
fn volume(file: &File) -> io::Result<(String, u32)> {
    let mut name = vec![0_u16; TEXT];
    let (mut flags, length) = (0, name.len() as u32);
    let handle = file.as_raw_handle();
    // SAFETY: the file is open. The call writes one number, and no more units than the length passed; it gets no other place to write to.
    let found =
        unsafe { GetVolumeInformationByHandleW(handle, null_mut(), 0, null_mut(), null_mut(), &raw mut flags, name.as_mut_ptr(), length) };
    if found == 0 { Err(io::Error::last_os_error()) } else { Ok((text(&name), flags)) }
}

/// The bytes free for this user (`GetDiskFreeSpaceExW`), the size of a cluster (`GetDiskFreeSpaceW`), and the name of the volume, which
/// directories of other machines do not have.
fn space(dir: &str) -> io::Result<(Bytes, Bytes, Option<String>)> {
    let path: Vec<u16> = Path::new(dir).as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the path ends in zero, and the call writes one number.
    if unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &raw mut free, null_mut(), null_mut()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut mount, mut name) = (vec![0_u16; TEXT], vec![0_u16; TEXT]);
    // SAFETY: the path ends in zero, and the call writes no more units than the length passed.
    if unsafe { GetVolumePathNameW(path.as_ptr(), mount.as_mut_ptr(), TEXT as u32) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let [mut sectors, mut sector, mut unused, mut clusters] = [0; 4];
    // SAFETY: the call before ended the path with a zero, and this one writes four numbers.
    let known = unsafe { GetDiskFreeSpaceW(mount.as_ptr(), &raw mut sectors, &raw mut sector, &raw mut unused, &raw mut clusters) };
    if known == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the path ends in a backslash and a zero, and the call writes no more units than the length passed.
    let named = unsafe { GetVolumeNameForVolumeMountPointW(mount.as_ptr(), name.as_mut_ptr(), TEXT as u32) } != 0;
    Ok((Bytes(free), Bytes(u64::from(sectors) * u64::from(sector)), named.then(|| text(&name))))
}

/// What is before the first zero.
fn text(units: &[u16]) -> String {
    String::from_utf16_lossy(units.split(|unit| *unit == 0).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A folder that is removed when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = Self(std::env::temp_dir().join(format!("memgauge-directory-{name}-{}", std::process::id())));
            fs::create_dir_all(&folder.0).unwrap();
            folder
        }

        fn is_empty(&self) -> bool {
            fs::read_dir(&self.0).unwrap().next().is_none()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_folder_is_described_and_nothing_is_left_in_it() {
        let folder = Folder::new("read");
        let dir = read(&folder.0, Path::new("/")).unwrap();
        assert!(folder.is_empty());
        assert!(!dir.file.filesystem.is_empty() && !dir.file.path.starts_with(r"\\?\"), "{dir:?}");
        assert!(Path::new(&dir.file.path).is_absolute() && dir.file.path.ends_with(&format!("read-{}", std::process::id())), "{dir:?}");
        assert!(dir.block.0 >= 512 && dir.free.is_some_and(|free| free.0 > 0), "{dir:?}");
        assert!(!dir.file.map_sync && dir.file.reason.is_some());
        assert_eq!(dir.file.volatile.is_some(), dir.file.backing == FileBacking::PageCache);
    }

    #[test]
    fn a_path_that_is_not_a_directory_is_a_wrong_request() {
        let folder = Folder::new("file");
        fs::write(folder.0.join("file"), "").unwrap();
        for path in ["absent", "file"] {
            let e = read(&folder.0.join(path), Path::new("/")).unwrap_err();
            assert!(matches!(e, DirectoryError::Request(..)), "{e:?}");
            assert!(e.to_string().contains(path) && e.to_string().contains("directory"), "{e}");
        }
    }

    #[test]
    fn a_temporary_file_is_gone_once_it_is_closed() {
        let folder = Folder::new("temporary");
        let (one, two) = (create_temporary(&folder.0).unwrap(), create_temporary(&folder.0).unwrap());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
        let name = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
        assert!(File::open(name).is_err(), "it is not shared");
        two.set_len(1 << 20).unwrap();
        drop((one, two));
        assert!(folder.is_empty());
    }

    #[test]
    fn prefixes_of_paths_are_left_out_where_there_is_another_name() {
        for (full, short) in [
            (r"\\?\C:\data", r"C:\data"),
            (r"\\?\UNC\host\share\data", r"\\host\share\data"),
            (r"\\?\Volume{0}\data", r"\\?\Volume{0}\data"),
            (r"C:\data", r"C:\data"),
        ] {
            assert_eq!(plain(full), short);
        }
    }
}
