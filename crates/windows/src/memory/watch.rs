//! Whether memory is getting scarce, for a measurement that takes most of it.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;

use memgauge_model::units::Bytes;
use windows_sys::Win32::System::Memory::{
    CreateMemoryResourceNotification, LowMemoryResourceNotification, QueryMemoryResourceNotification,
};

use super::node_state::{self, SystemMemory};
use crate::answers::available_on;

/// Watches memory while it is taken.
#[derive(Debug)]
pub struct MemoryWatch {
    node: u32,
    margin: u64,
    /// The notification that Windows sets while memory is low; `None` where it gave none.
    low: Option<OwnedHandle>,
}

impl MemoryWatch {
    /// Starts to watch. On `node` and in the system, `margin` bytes stay free. The running machine is watched, whatever the root is.
    pub fn start(_root: &Path, node: u32, margin: Bytes) -> Self {
        Self { node, margin: margin.0, low: low_memory().ok() }
    }

    /// Why `next` more bytes should not be taken, in words.
    ///
    /// Windows has no counter of the time that tasks wait for memory, and none of what was written to page files that programs may read
    /// without performance counters. It says whether memory is low (`QueryMemoryResourceNotification`), and how much is left
    /// (`GlobalMemoryStatusEx`, `GetNumaAvailableMemoryNodeEx`).
    pub fn shortage(&mut self, next: Bytes) -> Option<String> {
        if self.low.as_ref().is_some_and(is_low) {
            return Some("Windows says that memory is low (QueryMemoryResourceNotification)".to_owned());
        }
        let rooms = rooms(node_state::system_memory(), self.node, available_on(self.node));
        shortage(&rooms, next.0, self.margin)
    }
}

/// The bytes that are left, each with the name of their owner.
fn rooms(system: Option<SystemMemory>, node: u32, free: Option<u64>) -> Vec<(u64, String)> {
    let physical = system.map(|memory| (memory.physical, "the system (available physical memory)".to_owned()));
    let commit = system.map(|memory| (memory.commit, "the limit on committed memory".to_owned()));
    let node = free.map(|free| (free, format!("node {node}")));
    [physical, commit, node].into_iter().flatten().collect()
}

fn shortage(rooms: &[(u64, String)], next: u64, margin: u64) -> Option<String> {
    let (left, owner) = rooms.iter().min_by_key(|(left, _)| *left)?;
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    (*left < next.saturating_add(margin)).then(|| format!("{owner} has {} left, and {} must stay free", mib(*left), mib(margin)))
}

fn low_memory() -> io::Result<OwnedHandle> {
    // SAFETY: the call has no preconditions.
    let handle = unsafe { CreateMemoryResourceNotification(LowMemoryResourceNotification) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just made, and nothing else closes it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn is_low(notification: &OwnedHandle) -> bool {
    let mut low = 0;
    // SAFETY: the handle is that of a notification, and the call writes one number.
    let known = unsafe { QueryMemoryResourceNotification(notification.as_raw_handle(), &raw mut low) };
    known != 0 && low != 0
}

/// Does nothing: Windows kills no process when memory runs out. It refuses to commit more, which is an error of the allocation.
pub fn prefer_out_of_memory_kill() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_stays_free_in_the_system_and_on_the_node() {
        let system = |physical: u64, commit: u64| Some(SystemMemory { physical: physical << 20, commit: commit << 20 });
        let why = |system, node: Option<u64>, next: u64| shortage(&rooms(system, 3, node.map(|mib| mib << 20)), next << 20, 200 << 20);
        assert_eq!(why(system(1000, 2000), None, 800), None);
        let physical = why(system(1000, 2000), None, 801).unwrap();
        assert!(physical.contains("physical memory) has 1000 MiB left, and 200 MiB must stay free"), "{physical}");
        assert!(why(system(1000, 900), None, 701).unwrap().starts_with("the limit on committed memory has 900 MiB"));
        assert!(why(system(1000, 900), Some(400), 201).unwrap().starts_with("node 3 has 400 MiB left"));
        assert_eq!(why(None, None, 1 << 30), None, "nothing is known");
    }

    #[test]
    fn this_machine_has_no_room_for_everything() {
        let mut watch = MemoryWatch::start(Path::new("/"), 0, Bytes::mib(1));
        let why = watch.shortage(Bytes::gib(1 << 20)).unwrap();
        assert!(why.contains("left") || why.contains("low"), "{why}");
    }
}
