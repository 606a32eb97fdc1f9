//! Where the memory of other processes lies: not read on Windows.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use memgauge_model::result::{ProcessMemory, UnseenProcess, WhyUnseen};
use memgauge_model::units::Bytes;

const UNSEEN: &str = "where memory of other processes lies is not read on Windows";

/// Reads where the memory of a process lies.
///
/// # Errors
/// Always.
pub fn read(_root: &Path, pid: u32) -> Result<ProcessMemory, UnseenProcess> {
    Err(UnseenProcess { pid, name: None, why: WhyUnseen::Unreadable { error: UNSEEN.to_owned() } })
}

/// Begins anew with the pages that a process touches.
///
/// # Errors
/// Always.
pub fn forget_touched(_root: &Path, _pid: u32) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, UNSEEN))
}

/// Whether the system moves pages and threads towards each other: it does not say.
pub const fn numa_balancing(_root: &Path) -> Option<bool> {
    None
}

/// Memory by node that is free: not asked for.
pub const fn free_by_node(_root: &Path) -> BTreeMap<u32, Bytes> {
    BTreeMap::new()
}

/// These processes.
pub fn with_children(_root: &Path, first: &BTreeSet<u32>) -> BTreeSet<u32> {
    first.clone()
}

/// The processes of a control group: Windows has none.
///
/// # Errors
/// Always.
pub fn of_cgroup(_root: &Path, path: &Path) -> Result<BTreeSet<u32>, String> {
    Err(format!("{} is not a control group: Windows has none", path.display()))
}

/// Watches the threads of processes: it sees none.
#[derive(Debug)]
pub struct ThreadWatch(());

impl ThreadWatch {
    /// Begins to watch.
    pub const fn new(_root: &Path) -> Self {
        Self(())
    }

    /// Looks at the threads of these processes.
    pub fn look(&mut self, _pids: impl IntoIterator<Item = u32>) -> usize {
        0
    }

    /// Whether a process was started after this program: not asked for.
    pub const fn is_younger(&self, _pid: u32) -> bool {
        false
    }

    /// Seconds that the threads of a process have run so far, by CPU.
    pub const fn cpu_s(&self, _pid: u32) -> BTreeMap<u32, f64> {
        BTreeMap::new()
    }

    /// Adds what was seen of a process's threads so far: nothing.
    pub const fn add_to(&self, _process: &mut ProcessMemory) {}
}
