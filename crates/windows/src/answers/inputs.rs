//! Windows' answers, in the form that the rest of the program interprets.

use std::collections::BTreeMap;

/// Windows' answers about CPUs, caches and memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// `GetLogicalProcessorInformationEx` for `RelationAll`.
    pub processors: Vec<u8>,
    /// The same for `RelationNumaNodeEx`, which names all CPUs of nodes with several processor groups. Empty before Windows Server 2022,
    /// where a node has one group only.
    pub whole_nodes: Vec<u8>,
    /// Physical memory in bytes that Windows has (`GlobalMemoryStatusEx`, `ullTotalPhys`), if it says.
    pub total: Option<u64>,
    /// Physical memory in bytes that is available (`GlobalMemoryStatusEx`, `ullAvailPhys`), if it says.
    pub available: Option<u64>,
    /// What is known about the memory of each node.
    pub nodes: BTreeMap<u32, NodeMemory>,
}

/// The memory of a node, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeMemory {
    /// All of it (the performance counter `NUMA Node Memory\Total MBytes`), if it is known.
    pub total: Option<u64>,
    /// The part of it that is available (`GetNumaAvailableMemoryNodeEx`), if it is known.
    pub available: Option<u64>,
}

impl NodeMemory {
    /// Its size. If the size is not known, the memory that is available now, which is less; `None` if neither is known.
    pub(crate) fn most(self) -> Option<u64> {
        self.total.max(self.available)
    }
}
