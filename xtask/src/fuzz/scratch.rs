//! Folders for files that are written often and read at once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// The names of folders that targets make.
pub(super) const SCRATCH: [&str; 8] =
    ["fuzz-machine", "fuzz-journal", "fuzz-tree", "fuzz-fleet", "fuzz-batches", "fuzz-weights", "fuzz-parquet", "fuzz-columns"];

/// A folder for files of this process, in memory where there is such a file system.
pub(crate) fn scratch(name: &str) -> Result<PathBuf> {
    let folder = scratch_of(name, std::process::id());
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

pub(super) fn scratch_of(name: &str, process: u32) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    base.join(format!("memgauge-{name}-{process}"))
}
