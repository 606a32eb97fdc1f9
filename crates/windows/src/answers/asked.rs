//! The questions to Windows about CPUs and memory.

use std::collections::BTreeMap;
use std::io;
use std::ptr::null_mut;

use memgauge_model::units::IdSet;
use windows_sys::Win32::Foundation::ERROR_INSUFFICIENT_BUFFER;
use windows_sys::Win32::System::SystemInformation::{
    GetLogicalProcessorInformationEx, GlobalMemoryStatusEx, LOGICAL_PROCESSOR_RELATIONSHIP, MEMORYSTATUSEX, RelationAll, RelationGroup,
    RelationNumaNodeEx, SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX,
};
use windows_sys::Win32::System::Threading::{GetNumaAvailableMemoryNodeEx, GetNumaHighestNodeNumber};

use super::inputs::{Answers, NodeMemory};
use super::node_totals;
use super::records::{self, Record};

/// The largest answer that is taken. A machine with 2,048 CPUs needs less than a megabyte.
const LARGEST: u32 = 64 << 20;
/// Numbers of nodes are below this. Windows has 64 nodes at most (1,024 in later versions).
const MAX_NODES: u32 = 1 << 12;

/// Asks all of it.
///
/// # Errors
/// When Windows does not answer for the CPUs. All other answers may be missing.
pub(crate) fn ask() -> io::Result<Answers> {
    let processors = processors(RelationAll)?;
    // Before Windows Server 2022 there is no such relationship, and no node with several groups.
    let whole_nodes = self::processors(RelationNumaNodeEx).unwrap_or_default();
    let memory = memory_status().ok();
    let mut nodes: BTreeMap<u32, NodeMemory> =
        (0..=highest_node()).filter_map(|node| Some((node, NodeMemory { total: None, available: Some(available_on(node)?) }))).collect();
    // The only node has all memory, whose size is known. Asking the performance counters takes a tenth of a second.
    if highest_node() > 0 {
        for (node, total) in node_totals::read().unwrap_or_default() {
            nodes.entry(node).or_default().total = Some(total);
        }
    }
    Ok(Answers {
        processors,
        whole_nodes,
        total: memory.map(|m| m.ullTotalPhys).filter(|&bytes| bytes > 0),
        available: memory.map(|m| m.ullAvailPhys),
        nodes,
    })
}

/// The memory of the system, and what of it this process may commit.
///
/// # Errors
/// When Windows does not answer.
pub(crate) fn memory_status() -> io::Result<MEMORYSTATUSEX> {
    let mut status = MEMORYSTATUSEX { dwLength: size_of::<MEMORYSTATUSEX>() as u32, ..MEMORYSTATUSEX::default() };
    // SAFETY: the structure states its own size and outlives the call.
    if unsafe { GlobalMemoryStatusEx(&raw mut status) } == 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// The active CPUs of all processor groups.
///
/// # Errors
/// When Windows does not answer, or its answer cannot be understood.
pub(crate) fn active_cpus() -> io::Result<IdSet> {
    let records = records::parse(&processors(RelationGroup)?).map_err(io::Error::other)?;
    let active = |record: Record| if let Record::Active(cpus) = record { Some(cpus) } else { None };
    Ok(records.into_iter().filter_map(active).reduce(|all, cpus| all.union(&cpus)).unwrap_or_default())
}

/// The bytes available on a node (`GetNumaAvailableMemoryNodeEx`): free and zeroed pages, and with one node also pages that only keep the content
/// of files. `None` where Windows does not say, or has no such node.
pub(crate) fn available_on(node: u32) -> Option<u64> {
    let mut bytes = 0u64;
    // SAFETY: the function writes one number, which outlives the call.
    let known = unsafe { GetNumaAvailableMemoryNodeEx(u16::try_from(node).ok()?, &raw mut bytes) } != 0;
    known.then_some(bytes)
}

/// The highest number of a node; 0 where Windows does not say.
pub(crate) fn highest_node() -> u32 {
    let mut highest = 0u32;
    // SAFETY: the function writes one number, which outlives the call.
    let known = unsafe { GetNumaHighestNodeNumber(&raw mut highest) } != 0;
    if known { highest.min(MAX_NODES - 1) } else { 0 }
}

/// The answer about these relationships.
fn processors(relationship: LOGICAL_PROCESSOR_RELATIONSHIP) -> io::Result<Vec<u8>> {
    let mut size = 0u32;
    // Words keep the buffer aligned as the structure is.
    let mut words: Vec<u64> = Vec::new();
    loop {
        let buffer = if words.is_empty() { null_mut() } else { words.as_mut_ptr().cast::<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX>() };
        // SAFETY: the buffer has at least `size` bytes (none at first) and the alignment of the structure. The function writes no more than
        // that, and what it has or needs into `size`. Both outlive the call.
        if unsafe { GetLogicalProcessorInformationEx(relationship, buffer, &raw mut size) } != 0 {
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            bytes.truncate(size as usize);
            return Ok(bytes);
        }
        let error = io::Error::last_os_error();
        // A CPU may be added between two calls, so the buffer grows until the answer fits.
        let more = size as usize > size_of_val(words.as_slice());
        if error.raw_os_error() != Some(ERROR_INSUFFICIENT_BUFFER.cast_signed()) || !more || size > LARGEST {
            return Err(error);
        }
        words = vec![0; (size as usize).div_ceil(size_of::<u64>())];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_answers() {
        let answers = ask().unwrap();
        assert!(!records::parse(&answers.processors).unwrap().is_empty());
        let (total, available) = (answers.total.unwrap(), answers.available.unwrap());
        assert!(available > 0 && available <= total, "{available} of {total}");
        for (node, memory) in &answers.nodes {
            assert!(memory.available.is_some_and(|bytes| bytes <= total), "node {node}: {memory:?} of {total}");
        }
    }

    #[test]
    fn groups_have_the_cpus_of_the_topology() {
        assert_eq!(active_cpus().unwrap(), crate::topology::interpret(&ask().unwrap()).unwrap().online());
    }

    #[test]
    fn a_relationship_that_windows_does_not_know_says_nothing() {
        // An error on Windows, an empty answer on Wine.
        assert!(processors(12_345).unwrap_or_default().is_empty());
    }

    #[test]
    fn a_node_that_is_not_there_has_no_memory() {
        // Wine knows no node's memory, not even of the first.
        assert_eq!(available_on(u32::MAX), None);
        assert_eq!(available_on(60_000), None);
    }
}
