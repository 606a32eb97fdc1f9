//! Buffers of memory: on the node asked for, backed by the pages asked for, touched, and both read back.
//!
//! A buffer is an anonymous private mapping between two guard pages, so nothing is left behind whatever way the process ends. Its
//! pages are bound to the node with `mbind` before they are touched; where a container refuses memory policies (`EPERM` of a seccomp
//! filter, `ENOSYS`), first touch from CPUs of that node places them instead. What was obtained is never assumed: the kind of page is
//! read from `/proc/self/smaps` and the node from `move_pages` in query mode or from `/proc/self/numa_maps`.
//!
//! A buffer in a directory is a shared mapping of a file without a name ([`file`](self::file)), which is gone with the process as well.

use std::path::Path;

use memgauge_core::directory::{FileBacking, FileEvidence};
use memgauge_core::experiment::PageRequest;
use memgauge_core::plan::BufferPlan;
use memgauge_core::result::{PageEvidence, PageKind, Placement, PlacementStatus};
use memgauge_core::units::{Bytes, IdSet};

mod error;
mod file;
mod map;
mod physical;
mod place;
mod readback;
mod scan;
mod scarcity;
mod system;
mod touch;

pub use error::{MemoryError, MemoryErrorKind};
pub use scarcity::Scarcity;

use map::Mapping;
use place::Policy;
use readback::Backed;
use system::{System, ThpMode};

/// The share of a buffer that pages asked for by name must back; the rest is what fragmentation may take.
const LARGE_MAJORITY: f64 = 0.9;

/// What to back a buffer with, in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backing {
    /// Pages of this many bytes of a pool.
    Pool(usize),
    /// Transparent huge pages of this many bytes.
    Thp(usize),
    /// Base pages of this many bytes, huge ones refused.
    Base(usize),
    /// A file, mapped in steps of this many bytes.
    File(usize),
}

impl Backing {
    fn page(self) -> usize {
        match self {
            Self::Pool(page) | Self::Thp(page) | Self::Base(page) | Self::File(page) => page,
        }
    }
}

/// Memory for a measurement, unmapped when dropped.
///
/// Its content is zero until somebody writes, but every page is present and private: the kernel's shared zero page is not involved.
/// The mapping is rounded up to whole pages of the kind that backs it, and a `PROT_NONE` page lies below and above: a kernel that runs
/// out of its buffer faults instead of measuring a neighbour, and the kernel cannot merge the buffer with other mappings, so what
/// smaps says of it is of it alone.
#[derive(Debug)]
pub struct Buffer {
    mapping: Mapping,
    len: usize,
    pages: PageEvidence,
    placement: Placement,
    file: Option<FileEvidence>,
    backing: Backing,
    node: u32,
    /// The machine has no other node with memory.
    only_node: bool,
}

impl Buffer {
    /// Allocates, binds, touches and reads back.
    ///
    /// `root` is the root of the sysfs that describes this machine, `/` outside tests. Limits on the amount of memory are the plan's
    /// business; here only what the node and the pool hold at this moment is checked, because a bound allocation beyond it would be
    /// killed by the kernel instead of refused.
    ///
    /// A buffer in a directory is a file there; see [`file`](self::file). Otherwise, with [`PageRequest::Auto`]: free pages of the node's 2 MiB pool when there are enough, else transparent huge pages, else base
    /// pages, the evidence saying why. Sizes of pools are never changed.
    ///
    /// # Errors
    /// When the size is zero, the node does not exist or may not be used, its memory, its pool or the file system does not suffice, pages asked for by
    /// name cannot be had, or policies are refused and no CPU of the node may touch for it. Each says what to do.
    pub fn allocate(plan: &BufferPlan, root: &Path) -> Result<Self, MemoryError> {
        Self::allocate_under(plan, root, &place::PROCESS)
    }

    /// The same without binding: the calling thread touches all of it, wherever it runs, and the process's memory policy decides where the
    /// pages are, so that `taskset` and `numactl` from outside mean what they say. `plan.touch` is not used and `plan.node` only for
    /// what the kernel offers there. [`PageRequest::Auto`] leaves the pools out, whose pages the policy may not reach.
    ///
    /// # Errors
    /// When the size is zero, pages asked for by name cannot be had, or there is not enough memory.
    pub fn allocate_as_given(plan: &BufferPlan, root: &Path) -> Result<Self, MemoryError> {
        let system = System::read(root, plan.node)?;
        let len = usize::try_from(plan.bytes.0).ok().filter(|&n| n > 0 && n <= isize::MAX as usize / 2);
        let len = len.ok_or_else(|| error::size(plan))?;
        let (backing, reasons) = match (plan.pages, &system.thp) {
            (PageRequest::Base, _) => (Backing::Base(system.base_page), Vec::new()),
            (PageRequest::Huge2M, _) => (Backing::Pool(2 << 20), Vec::new()),
            (PageRequest::Huge1G, _) => (Backing::Pool(1 << 30), Vec::new()),
            (PageRequest::Thp, ThpMode::Off(why)) => return Err(error::thp_off(plan, why.clone())),
            (PageRequest::Thp, ThpMode::Usable(page)) => (Backing::Thp(*page), Vec::new()),
            (PageRequest::Auto, ThpMode::Off(why)) => (Backing::Base(system.base_page), vec![why.clone()]),
            (PageRequest::Auto, ThpMode::Usable(page)) => match worth_rounding(Backing::Thp(*page), len) {
                Ok(backing) => (backing, Vec::new()),
                Err(why) => (Backing::Base(system.base_page), vec![why]),
            },
        };
        let mut mapping = Mapping::new(len, backing).map_err(|e| error::mapping(plan, backing, &e))?;
        touch::populate(&mut mapping, backing, &IdSet::new(), false).map_err(|e| error::touch(plan, backing, &system, &e))?;
        let mut backed = mapping.read_pages();
        if let (Backing::Thp(_), Ok(b)) = (backing, &backed)
            && b.thp_share() < LARGE_MAJORITY
            && mapping.collapse()
        {
            backed = mapping.read_pages();
        }
        let pages = evidence(plan.pages, backing, backed, &reasons);
        check_kind(plan, backing, &pages, &system)?;
        let mut placement = place::read_back(&mapping, backing, plan.node, system.only_node, &place::PROCESS);
        placement.method = "as-given".to_owned();
        if !placement.pages_by_node.is_empty() {
            // No node was asked for, so none is wrong.
            (placement.status, placement.reason) = (PlacementStatus::Verified, None);
        }
        Ok(Self { mapping, len, pages, placement, file: None, backing, node: plan.node, only_node: system.only_node })
    }

    fn allocate_under(plan: &BufferPlan, root: &Path, policy: &Policy) -> Result<Self, MemoryError> {
        let system = System::read(root, plan.node)?;
        let len = usize::try_from(plan.bytes.0).ok().filter(|&n| n > 0 && n <= isize::MAX as usize / 2);
        let len = len.ok_or_else(|| error::size(plan))?;
        if let Some(directory) = &plan.directory {
            return file::allocate(plan, len, directory, &system, policy);
        }
        let (backings, mut reasons) = choose(plan, len, &system)?;
        let last = backings.len() - 1;
        for (i, backing) in backings.into_iter().enumerate() {
            match Self::attempt(plan, len, backing, &system, policy, &reasons) {
                // Another process may have taken the pool's pages meanwhile; with auto there are other kinds.
                Err(e) if i < last && matches!(e.kind, MemoryErrorKind::Pages) => reasons.push(e.why),
                outcome => return outcome,
            }
        }
        unreachable!("the last attempt returns")
    }

    fn attempt(
        plan: &BufferPlan,
        len: usize,
        backing: Backing,
        system: &System,
        policy: &Policy,
        reasons: &[String],
    ) -> Result<Self, MemoryError> {
        if !matches!(backing, Backing::Pool(_)) {
            system.check_room(plan, len)?;
        }
        let mut mapping = Mapping::new(len, backing).map_err(|e| error::mapping(plan, backing, &e))?;
        let bound = policy.bind(mapping.data(), mapping.len(), plan.node).map_err(|e| error::bind(plan, system, &e))?;
        let local = plan.touch.intersection(&system.node_cpus);
        // Bound pages are right whoever touches them; otherwise only CPUs of the node make them so.
        let cpus = if bound.is_ok() || local.is_empty() { &plan.touch } else { &local };
        let strictly = bound.is_err() && !local.is_empty();
        touch::populate(&mut mapping, backing, cpus, strictly).map_err(|e| error::touch(plan, backing, system, &e))?;

        let mut backed = mapping.read_pages();
        if let (Backing::Thp(_), Ok(b)) = (backing, &backed)
            && b.thp_share() < LARGE_MAJORITY
            && mapping.collapse()
        {
            backed = mapping.read_pages();
        }
        let pages = evidence(plan.pages, backing, backed, reasons);
        check_kind(plan, backing, &pages, system)?;

        let mut placement = place::read_back(&mapping, backing, plan.node, system.only_node, policy);
        placement.method = if bound.is_ok() { "mbind" } else { "first-touch" }.to_owned();
        if let Err(refusal) = bound
            && placement.status != PlacementStatus::Verified
        {
            if local.is_empty() {
                return Err(error::cannot_place(plan, &refusal));
            }
            let seen = placement.reason.take().unwrap_or_else(|| "some pages are on other nodes".to_owned());
            placement.reason = Some(format!("{seen}; {refusal}"));
        }
        Ok(Self { mapping, len, pages, placement, file: None, backing, node: plan.node, only_node: system.only_node })
    }

    /// The first byte; aligned to the pages that back the buffer.
    pub fn as_ptr(&self) -> *mut u8 {
        self.mapping.data()
    }

    /// Bytes that were asked for.
    #[expect(clippy::len_without_is_empty, reason = "a buffer of no bytes cannot be allocated")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The pages that back it, read back after they were touched.
    pub fn pages(&self) -> &PageEvidence {
        &self.pages
    }

    /// The node that its pages were on after they were touched.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The file that it is; `None` for memory without a file.
    pub fn file(&self) -> Option<&FileEvidence> {
        self.file.as_ref()
    }

    /// The node that its pages are on now: the kernel's balancing, a tiering daemon or an administrator may have moved them since.
    pub fn placement_now(&self) -> Placement {
        if self.file.as_ref().is_some_and(|f| f.backing == FileBacking::Dax) {
            // A file stays where its file system put it.
            return self.placement.clone();
        }
        let now = place::read_back(&self.mapping, self.backing, self.node, self.only_node, &place::PROCESS);
        Placement { method: self.placement.method.clone(), ..now }
    }
}

/// What to try for this request, in order, and why better kinds are not among it.
fn choose(plan: &BufferPlan, len: usize, system: &System) -> Result<(Vec<Backing>, Vec<String>), MemoryError> {
    let pool = |page: u64| system.pool_for(plan.node, page, len).map(|()| Backing::Pool(page as usize));
    let thp = || match &system.thp {
        ThpMode::Usable(page) => Ok(Backing::Thp(*page)),
        ThpMode::Off(why) => Err(why.clone()),
    };
    let base = Backing::Base(system.base_page);
    match plan.pages {
        PageRequest::Base => Ok((vec![base], Vec::new())),
        PageRequest::Thp => thp().map(|b| (vec![b], Vec::new())).map_err(|why| error::thp_off(plan, why)),
        PageRequest::Huge2M => pool(2 << 20).map(|b| (vec![b], Vec::new())).map_err(|why| error::pool(plan, system, 2 << 20, len, why)),
        PageRequest::Huge1G => pool(1 << 30).map(|b| (vec![b], Vec::new())).map_err(|why| error::pool(plan, system, 1 << 30, len, why)),
        PageRequest::Auto => {
            let (mut backings, mut reasons) = (Vec::new(), Vec::new());
            for candidate in [pool(2 << 20), thp().and_then(|b| worth_rounding(b, len))] {
                match candidate {
                    Ok(backing) => backings.push(backing),
                    Err(why) => reasons.push(why),
                }
            }
            backings.push(base);
            Ok((backings, reasons))
        }
    }
}

/// Rounding up to a huge page must not take much more than was planned for: on kernels with 64 KiB base pages it has 512 MiB.
fn worth_rounding(backing: Backing, len: usize) -> Result<Backing, String> {
    let page = backing.page();
    let waste = len.next_multiple_of(page) - len;
    if waste <= (len / 8).max(2 << 20) {
        Ok(backing)
    } else {
        Err(format!("a transparent huge page has {} here, too much for {}", Bytes(page as u64), Bytes(len as u64)))
    }
}

/// What smaps proves.
fn evidence(requested: PageRequest, backing: Backing, backed: Result<Backed, String>, reasons: &[String]) -> PageEvidence {
    let backed = match backed {
        Ok(backed) => backed,
        Err(why) => return PageEvidence { requested, reason: Some(why), ..PageEvidence::default() },
    };
    let thp_page = if let Backing::Thp(page) = backing { page as u64 } else { 0 };
    let (kind, share, page) = if backed.pool > 0 {
        (PageKind::Pool, backed.share(backed.pool), backed.page)
    } else if backed.thp_share() >= 0.5 {
        (PageKind::Thp, backed.thp_share(), thp_page)
    } else {
        (PageKind::Base, backed.share(backed.resident.saturating_sub(backed.thp)), backed.page)
    };
    let mut why: Vec<String> = if kind == PageKind::Base && requested == PageRequest::Auto { reasons.to_vec() } else { Vec::new() };
    if matches!(backing, Backing::Thp(_)) && backed.thp_share() < LARGE_MAJORITY {
        why.push(format!("the kernel backed {:.0} % with transparent huge pages: free memory is fragmented", backed.thp_share() * 100.0));
    }
    let reason = (!why.is_empty()).then(|| why.join("; "));
    PageEvidence { requested, obtained: Some(kind), share: Some(share), page: Some(Bytes(page)).filter(|p| p.0 > 0), reason }
}

/// Pages asked for by name must be what was obtained, where it could be read back.
fn check_kind(plan: &BufferPlan, backing: Backing, pages: &PageEvidence, system: &System) -> Result<(), MemoryError> {
    let wanted = match backing {
        Backing::Pool(_) => PageKind::Pool,
        Backing::Thp(_) => PageKind::Thp,
        Backing::Base(_) => PageKind::Base,
        Backing::File(_) => PageKind::File,
    };
    let (Some(obtained), Some(share)) = (pages.obtained, pages.share) else { return Ok(()) };
    if plan.pages == PageRequest::Auto || (obtained == wanted && share >= LARGE_MAJORITY) {
        return Ok(());
    }
    Err(error::not_obtained(plan, obtained, share, system))
}

/// Asks the kernel to end this process first when memory runs out: a benchmark must not cost a machine's real work.
///
/// Raising one's own score needs no privilege; where `/proc` may not be written nothing happens.
pub fn die_first() {
    // 1000 is the highest score (proc(5), oom_score_adj). Not being able to raise it is no reason not to measure.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

#[cfg(test)]
mod tests;
