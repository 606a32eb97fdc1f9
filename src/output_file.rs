//! Files that results are written to: whole or not at all, and never through a link that another user has planted.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use memgauge_os::files;
use memgauge_os::process::has_more_privileges_than_its_user;
use memgauge_os::security::explained;
use sha2::{Digest, Sha256};
use tempfile::{Builder, NamedTempFile};

use crate::exit::UsageError;
use crate::signals;

/// Links that are followed before a path counts as a circle, as in the kernel.
const MAX_LINKS: usize = 40;
/// Of a target's name, as many characters are in that of its temporary file: a file system allows 255 bytes.
const NAME_CHARS: usize = 40;
/// The longest wait for the reader of a pipe after a signal has ended the run.
const LATE_READER: Duration = Duration::from_millis(200);
/// The text after the target's name in the name of a temporary file.
const MARK: &str = ".memgauge-";
/// The end of temporary files' names.
const SUFFIX: &str = ".tmp";
/// A temporary file of this age counts as abandoned, if it is not known whether its process still runs.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Stands in a temporary file's name for a numbering of processes that is not known.
const UNKNOWN_NUMBERING: &str = "unknown";

/// A file that will be written. Everything that can be checked without touching it was checked.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// As the user named it.
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file, or none yet: a new one takes this name, which is not that of a link.
    Replaced(PathBuf),
    /// A pipe or a device, which is written to directly, or the kernel's link to an open file.
    Stream(PathBuf),
}

impl OutputFile {
    /// Checks that the file can be written, by creating another one beside it; removes what a killed run has left there.
    ///
    /// # Errors
    /// When it is a directory, a link that another user made, or in a directory that takes no new file ([`UsageError`]), and where its disk takes
    /// no more writes.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Self::open_unless(path, |_| false)
    }

    /// As [`Self::open`], also where the disk is full now or takes no more writes: for a result that goes elsewhere if it still is when it is
    /// written.
    ///
    /// # Errors
    /// As those of [`Self::open`], but for such a disk.
    pub(crate) fn open_on_full_disk(path: &Path) -> anyhow::Result<Self> {
        Self::open_unless(path, takes_no_more)
    }

    fn open_unless(path: &Path, may_fail: impl Fn(&io::Error) -> bool) -> anyhow::Result<Self> {
        let refused = |why: &str| Err(UsageError::file(path, why).into());
        let unwritable = |resolved: &Path, e: io::Error| -> anyhow::Error {
            let directory = directory_of(resolved);
            // One that may not be seen does not look like one that is not there.
            let missing = directory.metadata().is_err_and(|found| found.kind() != io::ErrorKind::PermissionDenied);
            let why = if missing { "does not exist".to_owned() } else { format!("takes no new file: {}", explained(&e)) };
            let error = UsageError::file(path, format_args!("cannot be written: the directory {} {why}", directory.display()));
            // Nothing in the command line is wrong where a disk is full or read-only, as when that shows only once the result is written.
            if takes_no_more(&e) { anyhow::anyhow!(error.0) } else { error.into() }
        };
        let target = match resolve(path)? {
            resolved if resolved.is_dir() => return refused("is a directory; name a file in it"),
            resolved => match fs::metadata(path) {
                _ if files::is_stream(path) => Target::Stream(resolved),
                Ok(_) if files::names_open_file(&resolved) => Target::Stream(resolved),
                Ok(found) if !found.is_file() => return refused("is neither a file nor a pipe; name a file"),
                _ => {
                    if let Err(error) = temporary(&resolved, None)
                        && !may_fail(&error)
                    {
                        return Err(unwritable(&resolved, error));
                    }
                    remove_stale(&resolved);
                    Target::Replaced(resolved)
                }
            },
        };
        Ok(Self { path: path.to_owned(), target })
    }

    /// The path as the user named it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether writing would replace a file that holds something.
    pub(crate) fn replaces_content(&self) -> bool {
        matches!(&self.target, Target::Replaced(path) if path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() > 0))
    }

    /// Writes a file under a temporary name and renames it, so that neither readers nor a crash see a part of it. A file that it replaces
    /// passes on its permissions, and its owner where this is allowed; other hard links to it keep the old content.
    ///
    /// # Errors
    /// When it cannot be written; then the earlier file is as it was, and nothing is left beside it. For a pipe without a reader, it waits
    /// until a signal asks to end.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let target = match &self.target {
            Target::Stream(target) => return files::write_to_stream(target, bytes, &mut gives_up()),
            Target::Replaced(target) => target,
        };
        // A link that was planted after the check is replaced, not followed.
        let old = target.symlink_metadata().ok().filter(Metadata::is_file);
        let mut file = temporary(target, old.as_ref())?;
        // The library's own way names the temporary file in its errors.
        file.as_file_mut().write_all(bytes)?;
        if let Some(old) = old {
            files::copy_owner(target, &old, file.as_file())?;
        }
        // Only then may it take the name: after a power cut, some file systems would have the name without the content.
        file.as_file().sync_all()?;
        file.persist(target).map(drop).map_err(|e| e.error)
    }
}

/// Whether a disk that is full, or that the kernel made read-only, is why a file could not be made.
pub(crate) fn takes_no_more(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::ReadOnlyFilesystem)
}

/// Whether to stop waiting for a reader: a signal has asked to end. If it came before the wait, the reader gets a moment to take the result.
fn gives_up() -> impl FnMut() -> bool {
    let (begin, late) = (Instant::now(), signals::have_arrived());
    move || signals::have_arrived() && (!late || begin.elapsed() > LATE_READER)
}

/// The path after all links. Links of this user and of the administrator are followed; those of others could lead to any file that this user
/// may write.
fn resolve(path: &Path) -> Result<PathBuf, UsageError> {
    let mut at = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(found) = at.symlink_metadata() else { return Ok(at) };
        // The kernel's links to open files have no path to follow.
        if !found.is_symlink() || files::names_open_file(&at) {
            return Ok(at);
        }
        if let Some(owner) = files::foreign_owner(&at) {
            let why = format!("{} is a link that another user made ({owner}); name the file that it leads to", at.display());
            return Err(UsageError::file(path, why));
        }
        let next = fs::read_link(&at).map_err(|e| UsageError::file(path, format_args!("cannot be followed: {e}")))?;
        at = directory_of(&at).join(next);
    }
    Err(UsageError::file(path, "is a circle of links; name a file"))
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file beside the target, which goes away with the value. Nobody else can know its name, and an existing file is never opened.
fn temporary(target: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let prefix = format!("{}{}-{}-", prefix(target), std::process::id(), numbering());
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    // Until it gets those of the file that it replaces.
    if let Some(permissions) = files::permissions(old.is_some()) {
        builder.permissions(permissions);
    }
    let file = builder.tempfile_in(directory_of(target));
    // The library's errors name the temporary file behind the cause, which says nothing to the user.
    file.map_err(|e| {
        let text = e.to_string();
        io::Error::new(e.kind(), text.split(" at path ").next().unwrap_or_default())
    })
}

/// Tells the number of a process on this host and in this container from the same number elsewhere: folders are shared.
fn numbering() -> &'static str {
    static NUMBERING: OnceLock<String> = OnceLock::new();
    NUMBERING.get_or_init(|| {
        let digits = |name: String| Sha256::digest(name).iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        files::numbering_of_processes().map_or_else(|| UNKNOWN_NUMBERING.to_owned(), digits)
    })
}

/// How the names of a target's temporary files begin; the number of the writing process follows, and where it is its number.
fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    format!(".{}{MARK}", name.chars().take(NAME_CHARS).collect::<String>())
}

/// A name beside the target that a later run knows as a temporary one of this process.
pub(crate) fn temporary_name(target: &Path) -> PathBuf {
    directory_of(target).join(format!("{}{}-{}-link{SUFFIX}", prefix(target), std::process::id(), numbering()))
}

/// Removes temporary files for this target whose process was killed. Files that cannot be removed stay.
fn remove_stale(target: &Path) {
    let prefix = prefix(target);
    remove_ended(target, |name| name.strip_prefix(&prefix));
}

/// The same for all targets in a folder.
pub(crate) fn remove_all_stale(folder: &Path) {
    remove_ended(&folder.join("now"), |name| Some(name.strip_prefix('.')?.rsplit_once(MARK)?.1));
}

/// Removes temporary files beside a target whose process has ended. `process_and_rest` is what follows the target's name in the name of a
/// temporary file. Nothing is known about a process on another host or in another container, so its file is removed when it is old.
///
/// It runs before this process has one of its own, so a file with this process's number is an earlier run's: if each run is the only process of a
/// container, all have the same number.
fn remove_ended(target: &Path, process_and_rest: impl Fn(&str) -> Option<&str>) {
    let Ok(entries) = fs::read_dir(directory_of(target)) else { return };
    // The folder's own clock: a server's differs from this host's.
    let mut now = None;
    let mut now = || *now.get_or_insert_with(|| temporary(target, None).and_then(|file| file.as_file().metadata()?.modified()).ok());
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| process_and_rest(name)?.strip_suffix(SUFFIX)) else { continue };
        let mut parts = rest.splitn(3, '-');
        let (Some(process), Some(numbering), random) = (parts.next().and_then(|id| id.parse().ok()), parts.next(), parts.next()) else {
            continue;
        };
        let Ok(found) = entry.metadata() else { continue };
        let ended = if random.is_some() && is_this(numbering) {
            process == std::process::id() || files::process_has_ended(process) == Some(true)
        } else {
            let age = now().zip(found.modified().ok()).and_then(|(now, then)| now.duration_since(then).ok());
            age.is_some_and(|age| age > ABANDONED)
        };
        if ended && (found.is_file() || found.is_symlink()) && files::is_own(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether this process's numbers are those of that numbering.
fn is_this(other: &str) -> bool {
    other == numbering() && other != UNKNOWN_NUMBERING
}

/// The folder for temporary files, which `TMPDIR` may name. A program with more privileges than its user takes no path from the environment.
pub(crate) fn temporary_folder() -> Option<PathBuf> {
    (!has_more_privileges_than_its_user()).then(std::env::temp_dir)
}

/// Writes to a new file, private to this user, in the first directory that takes it, for a result that its own file did not take.
pub(crate) fn save_elsewhere(bytes: &[u8]) -> Option<PathBuf> {
    let save = |directory: &Path| -> io::Result<PathBuf> {
        let mut file = Builder::new().prefix("memgauge-result-").suffix(".json").tempfile_in(directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(file.keep().map_err(|e| e.error)?.1)
    };
    // The working directory, and memory where the disks are full.
    let folders = [temporary_folder(), Some(PathBuf::from(".")), files::folder_in_memory()];
    folders.into_iter().flatten().find_map(|directory| save(&directory).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_process_of_the_same_number_left_is_removed() {
        let folder = std::env::temp_dir().join(format!("memgauge-same-number-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let left = |target: &str, process: u32| folder.join(format!(".{target}{MARK}{process}-{}-a1B2c3{SUFFIX}", numbering()));
        // Process 1 is always there.
        let (own, others, alive) = (left("r.json", std::process::id()), left("s.json", std::process::id()), left("r.json", 1));
        [&own, &others, &alive].iter().for_each(|path| fs::write(path, "half a res").unwrap());
        let target = OutputFile::open(&folder.join("r.json")).unwrap();
        assert_eq!([&own, &others, &alive].map(|path| path.exists()), [false, true, true]);
        target.write(b"whole").unwrap();
        assert_eq!(fs::read(folder.join("r.json")).unwrap(), b"whole");
        fs::remove_dir_all(folder).unwrap();
    }

    /// A folder that hosts and containers share: a process of the same number, or of one that is not known here, may be writing there.
    #[test]
    fn what_another_host_or_container_is_writing_stays_for_an_hour() {
        let folder = std::env::temp_dir().join(format!("memgauge-shared-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let own = std::process::id().to_string();
        // The kernel's numbers of processes end below 2^22. The last form is that of earlier versions.
        let rests = [
            format!("{own}-0123456789-a1B2c3"),
            "4194304-0123456789-a1B2c3".into(),
            format!("{own}-{UNKNOWN_NUMBERING}-a1B2c3"),
            format!("{own}-a1B2c3"),
        ];
        let left = |rest: &String| folder.join(format!(".r.json{MARK}{rest}{SUFFIX}"));
        let there = || rests.each_ref().map(|rest| left(rest).exists());
        let age = |minutes: u64| {
            let then = std::time::SystemTime::now() - Duration::from_secs(60 * minutes);
            rests.iter().for_each(|rest| fs::File::options().write(true).open(left(rest)).unwrap().set_modified(then).unwrap());
        };
        rests.iter().for_each(|rest| fs::write(left(rest), "half a res").unwrap());
        age(55);
        OutputFile::open(&folder.join("r.json")).unwrap();
        remove_all_stale(&folder);
        assert_eq!(there(), [true; 4]);
        age(65);
        OutputFile::open(&folder.join("other.json")).unwrap();
        assert_eq!(there(), [true; 4], "those of another target");
        OutputFile::open(&folder.join("r.json")).unwrap();
        assert_eq!(there(), [false; 4]);
        rests.iter().for_each(|rest| fs::write(left(rest), "half a res").unwrap());
        age(65);
        remove_all_stale(&folder);
        assert_eq!(there(), [false; 4]);
        fs::remove_dir_all(folder).unwrap();
    }
}
