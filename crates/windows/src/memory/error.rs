//! Why a buffer could not be allocated, and what to do about it.

use std::io;

use memgauge_model::memory::{MemoryError, MemoryErrorKind, see_nodes};
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageKind, Placement};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording::reasons;
use memgauge_model::words;
use memgauge_model::words::{Knob, Way, Ways};
use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_DISK_FULL, ERROR_DISK_QUOTA_EXCEEDED, ERROR_FILE_TOO_LARGE, ERROR_INVALID_PARAMETER,
    ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY, ERROR_NOT_ENOUGH_QUOTA, ERROR_OUTOFMEMORY, ERROR_PRIVILEGE_NOT_HELD,
    ERROR_PROC_NOT_FOUND, ERROR_TOO_MANY_OPEN_FILES,
};

use super::large;
use super::map::Backing;
use super::node_state::NodeState;
use crate::security::explained;

/// Windows refuses a commit with any of these if it, or a limit on this process, has too little left.
const SHORT: [u32; 5] =
    [ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY, ERROR_COMMITMENT_LIMIT, ERROR_NOT_ENOUGH_QUOTA, ERROR_NO_SYSTEM_RESOURCES];

/// Advice for a full node.
fn less() -> Ways {
    Way::Smaller(Knob::Size).or("use fewer CPUs").or("free memory on this node")
}

/// Pages that this machine has.
fn auto_pages() -> Way {
    Way::set(Knob::Pages, "auto")
}

/// Small pages, and where Windows says what failed.
fn small_pages() -> Ways {
    Way::set(Knob::Pages, "4k").then("see the System log of the Event Viewer")
}

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
        advice: see_nodes(),
    }
}

/// Checks that there is room for the buffer now. Windows would write the memory of other programs to a page file to make room.
pub(super) fn check_room(plan: &BufferPlan, state: &NodeState, len: usize) -> Result<(), MemoryError> {
    let Some(room) = state.room().filter(|room| *room < len as u64) else { return Ok(()) };
    let owner = if state.only_node { format!("node {}", plan.node) } else { "the machine".to_owned() };
    Err(MemoryError::new(MemoryErrorKind::Space, plan, format!("{owner} has {} MiB available", room >> 20), less()))
}

/// Pages are on other nodes, and the node has no room for them.
pub(super) fn went_elsewhere(plan: &BufferPlan, free: u64, placement: &Placement) -> MemoryError {
    let problems = reasons::placement_problems(&placement.problems);
    let why = format!("node {} has {} MiB free now; {problems}", plan.node, free >> 20);
    MemoryError::new(MemoryErrorKind::Space, plan, why, less())
}

/// Windows has no transparent huge pages.
pub(super) fn no_thp(plan: &BufferPlan) -> MemoryError {
    let why = "Windows has no transparent huge pages: large pages are what a program asks for";
    MemoryError::new(MemoryErrorKind::Pages, plan, why, Way::set(Knob::Pages, "2m").or(words![Knob::Pages, " auto"]))
}

/// Large pages are not available, for the reason `why`.
pub(super) fn large(plan: &BufferPlan, why: String) -> MemoryError {
    MemoryError::new(MemoryErrorKind::Pages, plan, why, Way::from(large::GRANT).or_else(auto_pages()))
}

/// Large pages have another size than was asked for.
pub(super) fn other_page(plan: &BufferPlan, page: usize) -> MemoryError {
    let why = format!("large pages have {} on this machine", Bytes(page as u64));
    MemoryError::new(MemoryErrorKind::Pages, plan, why, auto_pages())
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
                let newer = "use Windows 10 version 1803, Windows Server 2019 or later on a processor with such pages";
                let advice = Way::from(newer).or_else(words![Knob::Pages, " 2m"]);
                MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
            }
            short if SHORT.contains(&short) => {
                let why = format!("too little memory is free in whole pages of {page}: {}", explained(e));
                let restart = "restart Windows and measure soon after the start";
                let advice = Way::from(restart).or(Way::Smaller(Knob::Size)).or(auto_pages());
                MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
            }
            _ => MemoryError::new(MemoryErrorKind::Pages, plan, refused, auto_pages()),
        };
    }
    match code(e) {
        // An invalid parameter is a size that the address space cannot have: the node exists, and all else is constant.
        short if SHORT.contains(&short) || short == ERROR_INVALID_PARAMETER => {
            let lift = "lift the memory limit of the job that this process is in";
            let advice = Way::Smaller(Knob::Size).or("make the page file larger").or(lift);
            MemoryError::new(MemoryErrorKind::Space, plan, refused, advice)
        }
        _ => MemoryError::new(MemoryErrorKind::System, plan, refused, small_pages()),
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
            Way::from("look for errors of the device in the System log of the Event Viewer")
                .or("free space there")
                .or(Way::Smaller(Knob::Size)),
        ),
        _ => (MemoryErrorKind::System, format!("touching it failed: {}", explained(e)), small_pages()),
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
    let advice = Way::Smaller(Knob::Size).or("end programs that use much memory").or(auto_pages());
    MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
}

pub(super) fn file(plan: &BufferPlan, e: &io::Error) -> MemoryError {
    let advice = "give a directory of a local file system that this user may write to and whose files can be mapped";
    MemoryError::new(MemoryErrorKind::File, plan, explained(e), advice)
}

/// There is not enough free space for the file.
pub(super) fn no_space(plan: &BufferPlan, free: u64) -> MemoryError {
    let why = format!("the file system has {} MiB of free space for this user", free >> 20);
    MemoryError::new(MemoryErrorKind::Space, plan, why, less_in_file())
}

/// Advice for a full file system.
fn less_in_file() -> Ways {
    Way::Smaller(Knob::Size).or("use fewer CPUs").or("free space there")
}

pub(super) fn file_space(plan: &BufferPlan, e: &io::Error) -> MemoryError {
    let advice = match code(e) {
        ERROR_DISK_FULL | ERROR_DISK_QUOTA_EXCEEDED => less_in_file(),
        ERROR_FILE_TOO_LARGE => Way::Smaller(Knob::Size).or("a directory of a file system for larger files"),
        ERROR_TOO_MANY_OPEN_FILES => "use fewer CPUs".into(),
        short if SHORT.contains(&short) => Way::Smaller(Knob::Size).either_or("use fewer CPUs"),
        _ => return file(plan, e),
    };
    MemoryError::new(MemoryErrorKind::Space, plan, explained(e), advice)
}
