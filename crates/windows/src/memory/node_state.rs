//! The state of a node just before an allocation.

use memgauge_model::units::IdSet;
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::GetNumaNodeProcessorMaskEx;

use crate::answers::{available_on, highest_node, memory_status};

/// What affects one allocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeState {
    /// Whether the node is the only one.
    pub(super) only_node: bool,
    /// Bytes free on the node; see [`available_on`].
    pub(super) free: Option<u64>,
    /// Bytes of physical memory available in the system; see [`system_memory`].
    pub(super) system: Option<u64>,
}

impl NodeState {
    /// Reads what affects an allocation on `node`. The error has the nodes that exist, when `node` is not among them.
    pub(super) fn read(node: u32) -> Result<Self, IdSet> {
        let nodes = nodes();
        if !nodes.contains(node) {
            return Err(nodes);
        }
        Ok(Self { only_node: nodes == IdSet::one(node), free: available_on(node), system: system_memory().map(|memory| memory.physical) })
    }

    /// Bytes that the buffers on the node may use, where that is known. On a machine with several nodes what is free on one excludes pages
    /// that only keep the content of files, which Windows takes when it needs them; so only the whole machine's limit is certain.
    pub(super) fn room(&self) -> Option<u64> {
        if self.only_node { self.free.into_iter().chain(self.system).min() } else { self.system }
    }
}

/// The nodes of this machine: node 0, and every number up to `GetNumaHighestNodeNumber` whose processors or memory Windows states. Numbers
/// between may be missing.
pub(super) fn nodes() -> IdSet {
    let exists = |node: &u32| {
        let mut mask = GROUP_AFFINITY::default();
        // SAFETY: the call writes one `GROUP_AFFINITY`.
        *node == 0 || available_on(*node).is_some() || unsafe { GetNumaNodeProcessorMaskEx(*node as u16, &raw mut mask) } != 0
    };
    (0..=highest_node()).filter(exists).collect()
}

/// What is left in the system.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemMemory {
    /// Bytes of physical memory that can be used at once (`ullAvailPhys`).
    pub(super) physical: u64,
    /// Bytes that this process may commit still (`ullAvailPageFile`).
    pub(super) commit: u64,
}

/// What is left in the system (`GlobalMemoryStatusEx`); `None` where Windows does not say.
pub(super) fn system_memory() -> Option<SystemMemory> {
    memory_status().ok().map(|status| SystemMemory { physical: status.ullAvailPhys, commit: status.ullAvailPageFile })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_its_nodes_and_memory() {
        let nodes = nodes();
        assert!(nodes.contains(0) && nodes.len() <= 64, "{nodes}");
        let state = NodeState::read(0).unwrap();
        assert_eq!(state.only_node, nodes.len() == 1);
        let memory = system_memory().unwrap();
        assert!(memory.physical > 0 && memory.commit > 0 && state.room().is_some_and(|room| room <= memory.physical + (1 << 30)));
        assert_eq!(NodeState::read(1000).unwrap_err(), nodes);
    }

    #[test]
    fn the_room_of_one_of_several_nodes_is_the_system_s() {
        let state = |only_node| NodeState { only_node, free: Some(1), system: Some(5) }.room();
        assert_eq!((state(true), state(false)), (Some(1), Some(5)));
        assert_eq!(NodeState { only_node: true, free: None, system: Some(5) }.room(), Some(5));
        assert_eq!(NodeState { only_node: true, free: None, system: None }.room(), None);
    }
}
