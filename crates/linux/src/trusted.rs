//! Files that decide what is written to registers: they must be ours. A file that somebody else may write, a symbolic link or a FIFO that
//! was put in its place is refused, and is neither followed nor waited for.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A journal of 8,192 CPUs, the most that Linux is built for, with two registers each has 1.2 MB.
const MAX_BYTES: u64 = 4 << 20;

/// Opens the file `path`, which is in a folder of its own. `Ok(Err(why))`: it is not to be trusted.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> io::Result<Result<File, String>> {
    if let Some(why) =
        path.parent().map(fs::symlink_metadata).transpose()?.and_then(|folder| objection(&folder, "a folder", folder.is_dir()))
    {
        return Ok(Err(format!("its folder {why}")));
    }
    let file = match options.clone().custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path) {
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return Ok(Err("it is a symbolic link".to_owned())),
        // A FIFO or a socket without a reader.
        Err(e) if e.raw_os_error() == Some(libc::ENXIO) => return Ok(Err("it is not a regular file".to_owned())),
        file => file?,
    };
    let found = file.metadata()?;
    let too_large = (found.len() > MAX_BYTES).then(|| format!("has {} bytes, more than a journal of 8,192 CPUs", found.len()));
    Ok(objection(&found, "a regular file", found.is_file()).or(too_large).map_or(Ok(file), |why| Err(format!("it {why}"))))
}

/// Why something is not to be trusted.
fn objection(found: &Metadata, kind: &str, is_kind: bool) -> Option<String> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    if !is_kind {
        return Some(format!("is not {kind}"));
    }
    if found.uid() != user && found.uid() != 0 {
        return Some(format!("belongs to user {}", found.uid()));
    }
    (found.mode() & 0o022 != 0).then(|| format!("may be written by others (mode {:o})", found.mode() & 0o7777))
}
