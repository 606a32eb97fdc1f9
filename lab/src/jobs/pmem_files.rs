//! The devices of persistent memory and the directories on them, for the jobs that measure files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::guest;

/// A file system with DAX.
pub(super) const DAX: &str = "/tmp/dax";
/// A tmpfs.
pub(super) const TMPFS: &str = "/tmp/tmpfs";

/// The block devices of persistent memory: the one that can do DAX, and the one that cannot.
pub(super) fn devices() -> Result<(String, String)> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for name in ["pmem0", "pmem1"] {
        let queue = Path::new("/sys/block").join(name).join("queue/dax");
        guest::appears(&queue)?;
        if guest::read(&queue)? == "1" { &mut with } else { &mut without }.push(format!("/dev/{name}"));
    }
    match (&with[..], &without[..]) {
        ([with], [without]) => Ok((with.clone(), without.clone())),
        _ => bail!("with DAX: {with:?}, without: {without:?}"),
    }
}

/// The entries of a directory, except the folder that mke2fs creates.
pub(super) fn names_in(directory: &str) -> Result<BTreeSet<PathBuf>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<BTreeSet<_>>>()?;
    Ok(names.into_iter().filter(|path| !path.ends_with("lost+found")).collect())
}

/// Bytes free on the file system of a directory.
pub(super) fn free(directory: &str) -> Result<u64> {
    let path = std::ffi::CString::new(directory)?;
    // SAFETY: zero is a value of every field.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a string that ends in zero, and a structure to write to.
    ensure!(unsafe { libc::statvfs(path.as_ptr(), &raw mut found) } == 0, "statvfs {directory}: {}", std::io::Error::last_os_error());
    Ok(found.f_bfree * found.f_bsize)
}

/// The directory has its former content, and its file system has this much free space again. ext4 frees files in the background.
pub(super) fn nothing_left(directory: &str, before: u64) -> Result<()> {
    ensure!(names_in(directory)?.is_empty(), "left behind: {:?}", names_in(directory)?);
    let deadline = Instant::now() + Duration::from_secs(5);
    // A block or two of the file system's own records may stay.
    while free(directory)? + (64 << 10) < before {
        ensure!(Instant::now() < deadline, "{} of {before} bytes are free in {directory}", free(directory)?);
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
