//! A directory whose files are used as memory, as the kernel describes it: on persistent memory with DAX, in memory, or on a disk.

use serde::{Deserialize, Serialize};

use crate::note::{Note, NoteCode};
use crate::persistent::PersistentDevice;
use crate::units::Bytes;
use crate::words;
use crate::words::{Knob, Ways};

/// What backs the pages of a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FileBacking {
    /// The device itself (DAX): loads and stores reach persistent memory without a copy in DRAM.
    Dax,
    /// The page cache: DRAM, whatever device the file system is on.
    PageCache,
    /// tmpfs: DRAM, whose node can be chosen.
    Tmpfs,
}

/// The place of the file of a buffer, and the memory that backs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileEvidence {
    /// The directory, absolute and without links. The file in it has no name, so nothing remains there.
    pub path: String,
    /// Type of the file system, such as `ext4`, `xfs`, `tmpfs`.
    pub filesystem: String,
    /// Block device of the file system, such as `/dev/pmem0`; `null` when it has none.
    pub device: Option<String>,
    /// Memory node of that device as the kernel states it; `null` when it does not. For persistent memory that does not have a
    /// node of its own, the kernel states the nearest node.
    pub device_node: Option<u32>,
    /// The memory that backs its pages, according to `statx` of the file (`STATX_ATTR_DAX`).
    pub backing: FileBacking,
    /// Whether the kernel granted `MAP_SYNC`, which it does for DAX only: stores are durable once they have left the CPU's caches, without
    /// `fsync`.
    pub map_sync: bool,
    /// Why it is not DAX, or why `MAP_SYNC` was refused although it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it is not persistent, however it is mapped: tmpfs, the page cache, an emulated device. Absent where nothing says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatile: Option<String>,
}

impl FileEvidence {
    /// The path, marked where what is measured only stands in for persistent memory.
    pub fn label(&self) -> String {
        format!("{}{}", self.path, if self.volatile.is_some() { STAND_IN } else { "" })
    }
}

/// The suffix for the name of memory that loses its content, if a reader could take it for persistent memory.
pub const STAND_IN: &str = " (volatile stand-in)";

/// A directory to take buffers from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryDir {
    /// The properties of a file in it.
    #[serde(flatten)]
    pub file: FileEvidence,
    /// Bytes free for this user; `null` when the file system states no limit.
    pub free: Option<Bytes>,
    /// Block size of the file system.
    pub block: Bytes,
    /// The namespace of persistent memory that the file system is on; absent where it is on something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<PersistentDevice>,
}

/// Sizes that the plan chooses leave one part in this many of the free space to others and to the file system's metadata.
const KEPT_FREE: u64 = 16;

impl MemoryDir {
    /// Whether its files are the device itself.
    pub fn is_dax(&self) -> bool {
        self.file.backing == FileBacking::Dax
    }

    /// Bytes that buffers of requested sizes may use together.
    pub fn capacity(&self) -> u64 {
        self.free.map_or(u64::MAX, |free| free.0)
    }

    /// Bytes that buffers of derived sizes may use together. A margin stays free.
    pub fn room(&self) -> u64 {
        self.free.map_or(u64::MAX, |free| free.0 - free.0 / KEPT_FREE)
    }

    /// The limit on buffers there, in words.
    pub fn limited_by(&self) -> String {
        format!("the free space of {}, {}", self.file.path, self.file.filesystem)
    }

    /// Notes that a reader needs to judge numbers measured here.
    pub fn notes(&self) -> Vec<Note> {
        let FileEvidence { path, filesystem, device, device_node, backing, map_sync, reason, volatile } = &self.file;
        let why = reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
        let persistent = device.as_ref().is_some_and(|d| d.starts_with("/dev/pmem"));
        let mut notes: Vec<Note> = self.persistent.iter().flat_map(PersistentDevice::notes).collect();
        if let Some(why) = volatile {
            notes.push(Note::info(NoteCode::VolatileStandIn, format!("{path} is a volatile stand-in for persistent memory: {why}")));
        }
        match backing {
            FileBacking::PageCache => notes.push(
                Note::warning(
                    NoteCode::MemoryDirPageCache,
                    format!("{path} is not DAX: its files are the page cache, so DRAM is measured and not the device{why}"),
                )
                .advise(if persistent {
                    Ways::from("mount the file system with -o dax; a namespace without DAX must be put into fsdax mode first (ndctl create-namespace -f -e NAMESPACE -m fsdax, which destroys its content)")
                } else {
                    Ways::from(words![
                        "to measure persistent memory, give a directory of a file system on it that has DAX (mounted with -o dax; on Windows, formatted with /dax:enable); to measure DRAM, leave ",
                        Knob::MemoryDir,
                        " out"
                    ])
                }),
            ),
            FileBacking::Tmpfs => {
                notes.push(Note::info(NoteCode::MemoryDirTmpfs, format!("files in {path} ({filesystem}) are in DRAM: shared memory is measured")));
            }
            FileBacking::Dax => {
                if !map_sync {
                    notes.push(Note::info(NoteCode::MemoryDirNoMapSync, format!("files in {path} are DAX, but MAP_SYNC was refused{why}")));
                }
                if device_node.is_none() {
                    let device = device.as_deref().unwrap_or("the device");
                    notes.push(Note::info(
                        NoteCode::MemoryDirNodeUnknown,
                        format!("the kernel does not say at which memory node {device} is, so which CPUs are near it is not known"),
                    ));
                }
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Code;

    fn directory(device: &str, backing: FileBacking) -> MemoryDir {
        MemoryDir {
            file: FileEvidence {
                path: "/mnt".into(),
                filesystem: "ext4".into(),
                device: Some(device.into()),
                device_node: None,
                backing,
                map_sync: false,
                reason: Some("because".into()),
                volatile: None,
            },
            free: Some(Bytes(1600)),
            block: Bytes(4096),
            persistent: None,
        }
    }

    #[test]
    fn the_page_cache_is_called_dram_and_the_advice_fits_the_device() {
        let note = |device| directory(device, FileBacking::PageCache).notes().remove(0);
        let (raw, disc) = (note("/dev/pmem1"), note("/dev/vda"));
        assert!(raw.message.to_string().contains("DRAM") && raw.message.to_string().contains("because"), "{raw:?}");
        assert!(raw.advice.unwrap().to_string().contains("fsdax mode"));
        assert!(disc.advice.unwrap().to_string().contains("leave --memory-dir out"));
    }

    #[test]
    fn dax_says_what_is_missing() {
        let codes = |d: MemoryDir| d.notes().into_iter().map(|n| n.code).collect::<Vec<_>>();
        let mut dax = directory("/dev/pmem0", FileBacking::Dax);
        assert_eq!(codes(dax.clone()), [NoteCode::MemoryDirNoMapSync, NoteCode::MemoryDirNodeUnknown]);
        (dax.file.map_sync, dax.file.device_node) = (true, Some(1));
        assert_eq!(codes(dax), Vec::<Code<NoteCode>>::new());
        assert_eq!(codes(directory("", FileBacking::Tmpfs)), [NoteCode::MemoryDirTmpfs]);
    }

    #[test]
    fn derived_sizes_leave_a_margin() {
        let mut dir = directory("/dev/pmem0", FileBacking::Dax);
        assert_eq!((dir.capacity(), dir.room()), (1600, 1500));
        dir.free = None;
        assert_eq!((dir.capacity(), dir.room()), (u64::MAX, u64::MAX));
    }
}
