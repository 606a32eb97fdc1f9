//! Why a buffer could not be allocated, and what to do about it.

use std::io;

use memgauge_core::memory::{MemoryError, MemoryErrorKind};
use memgauge_core::plan::BufferPlan;
use memgauge_core::result::{PageKind, Placement};
use memgauge_core::units::{Bytes, IdSet};
use memgauge_core::wording::reasons;
use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_DISK_FULL, ERROR_DISK_QUOTA_EXCEEDED, ERROR_FILE_TOO_LARGE, ERROR_INVALID_PARAMETER,
    ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY, ERROR_NOT_ENOUGH_QUOTA, ERROR_OUTOFMEMORY, ERROR_PRIVILEGE_NOT_HELD,
    ERROR_PROC_NOT_FOUND, ERROR_TOO_MANY_OPEN_FILES,
};

use super::large;
use super::map::Backing;
use super::node_state::NodeState;
use crate::security::explained;

/// Windows refuses a commit for any of these where it, or a limit on this process, has too little left.
const SHORT: [u32; 5] =
    [ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY, ERROR_COMMITMENT_LIMIT, ERROR_NOT_ENOUGH_QUOTA, ERROR_NO_SYSTEM_RESOURCES];

/// What helps where a node is full.
const LESS: &str = "give a smaller --size, use fewer CPUs, or free memory on this node";

fn code(e: &io::Error) -> u32 {
    e.raw_os_error().unwrap_or(0) as u32
}

pub(super) fn no_such_node(node: u32, nodes: &IdSet) -> MemoryError {
    MemoryError {
        kind: MemoryErrorKind::Node,
        node,
        bytes: None,
        what: format!("cannot allocate on node {node}"),
        why: format!("memory node {node} does not exist; this machine has {nodes}"),
        advice: "run 'memgauge info' to see the nodes, and choose one with --node".to_owned(),
    }
}

/// Checks that there is room for the buffer now. Windows would write the memory of other programs to a page file to make room.
pub(super) fn check_room(plan: &BufferPlan, state: &NodeState, len: usize) -> Result<(), MemoryError> {
    let Some(room) = state.room().filter(|room| *room < len as u64) else { return Ok(()) };
    let owner = if state.only_node { format!("node {}", plan.node) } else { "the machine".to_owned() };
    Err(MemoryError::new(MemoryErrorKind::Space, plan, format!("{owner} has {} MiB available", room >> 20), LESS))
}

/// Pages are on other nodes, and the node has no room for them.
pub(super) fn went_elsewhere(plan: &BufferPlan, free: u64, placement: &Placement) -> MemoryError {
    let problems = reasons::placement_problems(&placement.problems);
    let why = format!("node {} has {} MiB free now; {problems}", plan.node, free >> 20);
    MemoryError::new(MemoryErrorKind::Space, plan, why, LESS)
}

/// There are no transparent huge pages on Windows.
pub(super) fn no_thp(plan: &BufferPlan) -> MemoryError {
    let why = "Windows has no transparent huge pages: large pages are what a program asks for";
    MemoryError::new(MemoryErrorKind::Pages, plan, why, "use --pages 2m, or --pages auto")
}

/// Large pages cannot be had, as `why` says.
pub(super) fn large(plan: &BufferPlan, why: String) -> MemoryError {
    MemoryError::new(MemoryErrorKind::Pages, plan, why, format!("{}; or use --pages auto", large::GRANT))
}

/// Large pages have another size than was asked for.
pub(super) fn other_page(plan: &BufferPlan, page: usize) -> MemoryError {
    let why = format!("large pages have {} on this machine", Bytes(page as u64));
    MemoryError::new(MemoryErrorKind::Pages, plan, why, "use --pages auto")
}

pub(super) fn mapping(plan: &BufferPlan, backing: Backing, e: &io::Error) -> MemoryError {
    let refused = format!("Windows refused the memory: {}", explained(e));
    if let Backing::Large(page) = backing {
        let page = Bytes(page as u64);
        return match code(e) {
            ERROR_PRIVILEGE_NOT_HELD => large(plan, refused),
            ERROR_PROC_NOT_FOUND | ERROR_INVALID_PARAMETER if plan.pages.pool_page() == Some(Bytes::gib(1)) => {
                let why = format!(
                    "this Windows has no pages of {page} (VirtualAlloc2 with MEM_EXTENDED_PARAMETER_NONPAGED_HUGE): {}",
                    explained(e)
                );
                let advice = "use Windows 10 version 1803, Windows Server 2019 or later on a processor with such pages; or --pages 2m";
                MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
            }
            short if SHORT.contains(&short) => {
                let why = format!("too little memory is free in whole pages of {page}: {}", explained(e));
                let advice = "restart Windows and measure soon after the start, give a smaller --size, or use --pages auto";
                MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
            }
            _ => MemoryError::new(MemoryErrorKind::Pages, plan, refused, "use --pages auto"),
        };
    }
    match code(e) {
        // An invalid parameter is a size that the address space cannot have: the node exists, and all else is constant.
        short if SHORT.contains(&short) || short == ERROR_INVALID_PARAMETER => {
            let advice = "give a smaller --size, make the page file larger, or lift the memory limit of the job that this process is in";
            MemoryError::new(MemoryErrorKind::Space, plan, refused, advice)
        }
        _ => MemoryError::new(MemoryErrorKind::System, plan, refused, "use --pages 4k; see the System log of the Event Viewer"),
    }
}

pub(super) fn touch(plan: &BufferPlan, backing: Backing, e: &io::Error) -> MemoryError {
    if e.kind() == io::ErrorKind::Interrupted {
        return MemoryError::interrupted(plan);
    }
    let (kind, why, advice) = match backing {
        Backing::File(_) => (
            MemoryErrorKind::File,
            format!("the file system cannot provide a page of the file: {}", explained(e)),
            "look for errors of the device in the System log of the Event Viewer, free space there, or give a smaller --size",
        ),
        _ => (
            MemoryErrorKind::System,
            format!("touching it failed: {}", explained(e)),
            "use --pages 4k; see the System log of the Event Viewer",
        ),
    };
    MemoryError::new(kind, plan, why, advice)
}

pub(super) fn not_obtained(plan: &BufferPlan, obtained: PageKind, share: f64) -> MemoryError {
    let kind = match obtained {
        PageKind::Base => "base pages",
        PageKind::Large => "large pages",
        PageKind::File => "pages of a file",
        PageKind::Dax => "pages of a device",
        // Not on Windows.
        PageKind::Thp | PageKind::Pool => "huge pages",
    };
    let why = format!("read back: {kind} back {:.0} % of it", share * 100.0);
    let advice = "give a smaller --size, end programs that use much memory, or use --pages auto";
    MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
}

pub(super) fn file(plan: &BufferPlan, e: &io::Error) -> MemoryError {
    let advice = "give a directory of a local file system that this user may write to and whose files can be mapped";
    MemoryError::new(MemoryErrorKind::File, plan, explained(e), advice)
}

/// There is not enough free space for the file.
pub(super) fn no_space(plan: &BufferPlan, free: u64) -> MemoryError {
    let why = format!("the file system has {} MiB of free space for this user", free >> 20);
    MemoryError::new(MemoryErrorKind::Space, plan, why, "give a smaller --size, use fewer CPUs, or free space there")
}

pub(super) fn file_space(plan: &BufferPlan, e: &io::Error) -> MemoryError {
    let advice = match code(e) {
        ERROR_DISK_FULL | ERROR_DISK_QUOTA_EXCEEDED => "give a smaller --size, use fewer CPUs, or free space there",
        ERROR_FILE_TOO_LARGE => "give a smaller --size, or a directory of a file system for larger files",
        ERROR_TOO_MANY_OPEN_FILES => "use fewer CPUs",
        short if SHORT.contains(&short) => "give a smaller --size or use fewer CPUs",
        _ => return file(plan, e),
    };
    MemoryError::new(MemoryErrorKind::Space, plan, explained(e), advice)
}
