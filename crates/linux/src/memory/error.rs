//! Why a buffer could not be allocated, and what to do about it.

use std::io;
use std::path::Path;

use memgauge_model::memory::{MemoryError, MemoryErrorKind, see_nodes};
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageKind, Placement};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording::reasons;
use memgauge_model::words;
use memgauge_model::words::{Knob, Way, Ways};

use super::map::Backing;
use super::node_state::{NodeState, thp_disabled, thp_disabled_advice, thp_switched_off_by};
use crate::security::explained;
use crate::setting;
use crate::tree::Tree;

pub(super) fn unconfined() -> Ways {
    let allow = "allow memory policies: in Docker or Podman add --cap-add SYS_NICE, in Kubernetes the capability SYS_NICE";
    Way::from(allow).or_else("measure this node from its own CPUs")
}

/// The kernel does not refuse to map private memory for any other reason than that there is too little.
const FILTERED: &str =
    "look for a filter of system calls (the container's seccomp profile, SystemCallFilter=) or a security module that denies mmap";

pub(super) fn no_such_node(node: u32, online: &IdSet) -> MemoryError {
    MemoryError {
        kind: MemoryErrorKind::Node,
        node,
        bytes: None,
        what: format!("cannot allocate on node {node}"),
        why: format!("memory node {node} is not online; online are {online}"),
        advice: see_nodes(),
    }
}

/// Advice for a node that is full.
fn less() -> Ways {
    Way::Smaller(Knob::Size).or("use fewer CPUs").or("free memory on this node")
}

/// Pages that this machine has.
fn auto_pages() -> Way {
    Way::set(Knob::Pages, "auto")
}

/// Checks that the node can hold the buffer now. The kernel does not refuse a bound allocation beyond that: it kills the process.
pub(super) fn check_room(plan: &BufferPlan, state: &NodeState, len: usize) -> Result<(), MemoryError> {
    let Some(room) = state.room.filter(|room| *room < len as u64) else { return Ok(()) };
    let why = format!("node {} has {} MiB free or reclaimable", plan.node, room >> 20);
    Err(MemoryError::new(MemoryErrorKind::Space, plan, why, less()))
}

/// The node had room for the buffer, and it was gone before all pages were touched.
pub(super) fn went_elsewhere(plan: &BufferPlan, root: &Path, placement: &Placement) -> MemoryError {
    let node = plan.node;
    let room = match NodeState::read(root, node) {
        Err(online) => return no_such_node(node, &online),
        Ok(state) => state.room.map_or_else(String::new, |room| format!("node {node} has {} MiB free or reclaimable now; ", room >> 20)),
    };
    MemoryError::new(MemoryErrorKind::Space, plan, format!("{room}{}", reasons::placement_problems(&placement.problems)), less())
}

pub(super) fn thp_off(plan: &BufferPlan, state: &NodeState, why: String) -> MemoryError {
    let tree = Tree::new(&state.root);
    let how = thp_switched_off_by(tree).and_then(|file| setting::change(tree, setting::changed_from(tree), &file, "madvise"));
    let advice = match how {
        Some(how) => Way::from(format!("enable them {how}")).or_else(auto_pages()),
        None if thp_disabled(Tree::new(Path::new("/"))) == Some(true) => thp_disabled_advice().or_else(auto_pages()),
        None => auto_pages().into(),
    };
    MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
}

/// The pool of `page` bytes cannot back the buffer. The advice is the command that makes the pool large enough.
pub(super) fn pool(plan: &BufferPlan, state: &NodeState, page: u64, len: usize, why: String) -> MemoryError {
    let advice = match state.pools.iter().find(|p| p.page.0 == page) {
        Some(pool) => {
            let total = pool.total + (len as u64).div_ceil(page).saturating_sub(state.usable(pool));
            let file = state.pool_file(plan.node, page);
            let boot = if page == 1 << 30 {
                format!(" (when memory is too fragmented: boot with hugepagesz=1G hugepages={total})")
            } else {
                String::new()
            };
            let how = setting::changed_from(Tree::new(&state.root)).change(&file.display().to_string(), &total.to_string());
            Way::from(format!("reserve pages {how}{boot}")).or_else(auto_pages())
        }
        None => {
            let have: Vec<String> = state.pools.iter().map(|p| p.page.to_string()).collect();
            let have = if have.is_empty() { "none".to_owned() } else { have.join(", ") };
            let size = Bytes(page);
            let boot = format!("this kernel offers pools of {have}; for pages of {size} it must boot with hugepagesz= and nr_hugepages");
            Way::from(boot).or(auto_pages())
        }
    };
    MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
}

pub(super) fn mapping(plan: &BufferPlan, backing: Backing, e: &io::Error) -> MemoryError {
    let (kind, advice) = match (backing, e.raw_os_error()) {
        (Backing::Pool(_), Some(libc::ENOMEM)) => {
            let taken = "another process took the pool's free pages: raise the node's nr_hugepages";
            (MemoryErrorKind::Pages, Way::from(taken).or(auto_pages()))
        }
        (Backing::Pool(_), _) => (MemoryErrorKind::Pages, auto_pages().into()),
        (_, Some(libc::ENOMEM)) => (
            MemoryErrorKind::Space,
            Way::Smaller(Knob::Size).or("lift the limit: ulimit -v (address space), vm.overcommit_memory, vm.max_map_count"),
        ),
        _ => (MemoryErrorKind::System, FILTERED.into()),
    };
    MemoryError::new(kind, plan, format!("the kernel refused the mapping: {}", explained(e)), advice)
}

pub(super) fn bind(plan: &BufferPlan, state: &NodeState, e: &io::Error) -> MemoryError {
    if e.raw_os_error() == Some(libc::EINVAL) {
        let allowed = state.mems_allowed.as_ref().map_or("other nodes".to_owned(), |nodes| format!("nodes {nodes}"));
        let why = format!("this process may not use memory of node {}: its cpuset allows {allowed}", plan.node);
        let widen = "widen the cpuset (cpuset.mems of the control group, numactl, --cpuset-mems of the container)";
        let advice = Way::Choose("an allowed node".into(), Knob::Node).or(widen);
        return MemoryError::new(MemoryErrorKind::Node, plan, why, advice);
    }
    MemoryError::new(MemoryErrorKind::System, plan, format!("binding to node {} failed: {e}", plan.node), unconfined())
}

pub(super) fn touch(plan: &BufferPlan, backing: Backing, state: &NodeState, e: &io::Error) -> MemoryError {
    /// `EHWPOISON` of asm-generic/errno.h.
    const EHWPOISON: i32 = 133;
    if e.kind() == io::ErrorKind::Interrupted {
        return MemoryError::interrupted(plan);
    }
    let (kind, why, advice) = match (backing, e.raw_os_error()) {
        (_, Some(EHWPOISON)) => (
            MemoryErrorKind::System,
            "the kernel found a page with a hardware memory error (EHWPOISON)".to_owned(),
            "look for memory errors in dmesg and in /sys/devices/system/edac/mc, and replace the module".into(),
        ),
        // MADV_POPULATE_WRITE returns EFAULT where a store would have raised SIGBUS: the node's part of the pool is used up, or the control
        // group has reached its limit on huge pages.
        (Backing::Pool(page), Some(libc::EFAULT | libc::ENOMEM)) => {
            let (page, node) = (page as u64, plan.node);
            let size = Bytes(page);
            let why = format!("the pool of {size} pages on node {node} ran dry, or the control group limits huge pages (hugetlb.*.max)");
            return pool(plan, state, page, plan.bytes.0 as usize, why);
        }
        // EFAULT: a store would have raised SIGBUS, because the file system or its device could not serve the page.
        (Backing::File(_), Some(libc::EFAULT | libc::EIO)) => (
            MemoryErrorKind::File,
            format!("the file system cannot provide a page of the file: {e}"),
            Way::from("look for errors of the device in dmesg").or("free space there").or(Way::Smaller(Knob::Size)),
        ),
        (_, Some(libc::ENOMEM | libc::EFAULT)) => {
            let less = Way::Smaller(Knob::Size).either_or("use fewer CPUs");
            (MemoryErrorKind::Space, format!("memory ran out while touching it: {e}"), less)
        }
        _ => (MemoryErrorKind::System, format!("touching it failed: {e}"), Way::set(Knob::Pages, "4k").and("see dmesg")),
    };
    MemoryError::new(kind, plan, why, advice)
}

/// Another process truncated the file to `len` bytes while it was made.
pub(super) fn truncated(plan: &BufferPlan, len: u64) -> MemoryError {
    let directory = plan.directory.as_deref().unwrap_or_default();
    let why = format!("another process truncated its file in {directory}: it ends before byte {len}, while it is made");
    MemoryError::new(MemoryErrorKind::File, plan, why, "measure in a directory that nothing else changes")
}

pub(super) fn not_obtained(plan: &BufferPlan, obtained: PageKind, share: f64, state: &NodeState) -> MemoryError {
    let kind = match obtained {
        PageKind::Base => "base pages",
        PageKind::Thp => "transparent huge pages",
        PageKind::Pool => "pool pages",
        PageKind::Large => "large pages",
        PageKind::File => "pages of a file",
        PageKind::Dax => "pages of a device",
    };
    let why =
        format!("read back: {kind} back {:.0} % of it; the setting of transparent huge pages is '{}'", share * 100.0, state.thp_setting);
    let tree = Tree::new(&state.root);
    let compact = setting::change(tree, setting::changed_from(tree), "proc/sys/vm/compact_memory", "1");
    let short = "free memory is fragmented or short: ";
    let ways = match compact {
        Some(how) => Way::from(format!("{short}compact it {how}")).or_else(Way::Smaller(Knob::Size)),
        None => words![short, "give a smaller ", Knob::Size].into(),
    };
    let advice = ways.or(auto_pages());
    MemoryError::new(MemoryErrorKind::Pages, plan, why, advice)
}

pub(super) fn file(plan: &BufferPlan, e: &io::Error) -> MemoryError {
    let advice = "give a directory of a file system that this user may write to and whose files can be mapped";
    MemoryError::new(MemoryErrorKind::File, plan, e.to_string(), advice)
}

pub(super) fn file_space(plan: &BufferPlan, e: &io::Error) -> MemoryError {
    if e.kind() == io::ErrorKind::Interrupted {
        return MemoryError::interrupted(plan);
    }
    let advice = match e.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::ENOMEM) => Way::Smaller(Knob::Size).or("use fewer CPUs").or("free space there"),
        Some(libc::EMFILE | libc::ENFILE) => Way::from("use fewer CPUs").or("lift the limit on open files: ulimit -n"),
        Some(libc::EFBIG) => Way::Smaller(Knob::Size).or("lift the limit on a file's size: ulimit -f"),
        _ => return file(plan, e),
    };
    MemoryError::new(MemoryErrorKind::Space, plan, e.to_string(), advice)
}

pub(super) fn cannot_interleave(plan: &BufferPlan, refusal: &str) -> MemoryError {
    let why = format!("{refusal}, and pages can be placed on several nodes in turn by policies only");
    MemoryError::new(MemoryErrorKind::Placement, plan, why, unconfined())
}

pub(super) fn cannot_place(plan: &BufferPlan, refusal: &str) -> MemoryError {
    let why = format!("{refusal}, and no CPU of node {} may be used to touch its memory first", plan.node);
    MemoryError::new(MemoryErrorKind::Placement, plan, why, unconfined())
}
