//! `memgauge where` against the kernel, page by page: memory of every kind under every policy, moved, half touched, shared.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result, bail, ensure};
use memgauge_model::result::{MappingKind, PageKind, Residency};
use memgauge_model::units::Bytes;

use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{memgauge, with_result};

pub(crate) const JOB: Job = Job {
    name: "where",
    about: "layouts of memory by policy, kind of page and of mapping: bytes by node as move_pages says, page by page",
    optional: false,
    machine: Machine { qemu: super::hugepages::QEMU, kernel: &["numa_balancing=disable"], ..PLAIN },
    tests: tests![layouts, a_program_and_its_children, a_control_group, another_users_process],
};

/// linux/mempolicy.h.
const PREFERRED: libc::c_int = 1;
pub(super) const BIND: libc::c_int = 2;
pub(super) const INTERLEAVE: libc::c_int = 3;
const PREFERRED_MANY: libc::c_int = 5;
const MOVE: libc::c_uint = 1 << 1;

const PAGE: usize = 4096;
const HUGE: usize = 2 << 20;
/// Bytes of a mapping. No other mapping of the process is as large.
const BYTES: usize = 24 << 20;
/// With room before and behind it.
const RESERVED: usize = BYTES + 2 * HUGE;

/// What is behind a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backing {
    Base,
    Transparent,
    Pool,
    SharedAnonymous,
    Memfd,
    File,
}

impl Backing {
    const ALL: [Self; 6] = [Self::Base, Self::Transparent, Self::Pool, Self::SharedAnonymous, Self::Memfd, Self::File];

    const fn kind(self) -> MappingKind {
        match self {
            Self::Base | Self::Transparent | Self::Pool => MappingKind::Anonymous,
            Self::SharedAnonymous | Self::Memfd => MappingKind::Shared,
            Self::File => MappingKind::File,
        }
    }
}

/// A mapping of this process between two that may not be used, so that it touches no other memory. Given back when dropped.
struct Mapping {
    reserved: *mut libc::c_void,
    at: *mut libc::c_void,
    backing: Backing,
    _file: Option<OwnedFd>,
}

impl Mapping {
    fn new(backing: Backing) -> Result<Self> {
        let file = match backing {
            Backing::Memfd => {
                // SAFETY: the name ends with a zero, and the new descriptor is owned by nobody else.
                let fd = unsafe { libc::memfd_create(c"layout".as_ptr(), 0) };
                ensure!(fd >= 0, "memfd_create: {}", std::io::Error::last_os_error());
                // SAFETY: as above.
                Some(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
            }
            Backing::File => {
                let path = "/tmp/layout";
                let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
                std::fs::remove_file(path)?;
                Some(file)
            }
            _ => None,
        };
        if let Some(file) = &file {
            file.set_len(BYTES as u64)?;
        }
        let flags = match backing {
            Backing::Base | Backing::Transparent => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            Backing::Pool => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB,
            Backing::SharedAnonymous => libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            Backing::Memfd | Backing::File => libc::MAP_SHARED,
        };
        let fd = file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: the kernel chooses the place of a new mapping.
        let reserved = unsafe { libc::mmap(std::ptr::null_mut(), RESERVED, libc::PROT_NONE, nothing, -1, 0) };
        ensure!(reserved != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        // SAFETY: the address is within what is reserved, and at least a page behind its beginning.
        let inside = unsafe { reserved.cast::<u8>().add(PAGE) };
        // SAFETY: with that it is less than a huge page further, and as much is reserved behind the end.
        let aligned = unsafe { inside.add(inside.align_offset(HUGE)) };
        // SAFETY: the range lies in what is reserved, which nothing uses.
        let at = unsafe { libc::mmap(aligned.cast(), BYTES, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_FIXED, fd, 0) };
        ensure!(at != libc::MAP_FAILED, "mmap {backing:?}: {}", std::io::Error::last_os_error());
        let advice = if backing == Backing::Transparent { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range is the mapping. A refusal, as of memory of a pool, changes nothing.
        unsafe { libc::madvise(at, BYTES, advice) };
        Ok(Self { reserved, at, backing, _file: file.map(OwnedFd::from) })
    }

    /// Sets the policy of a part of it, with these flags.
    fn bind(&self, (from, to): (usize, usize), mode: libc::c_int, nodes: u64, flags: libc::c_uint) -> Result<()> {
        // SAFETY: the range is within the mapping, and the mask has the 64 bits that the call is given.
        let rc = unsafe { libc::syscall(libc::SYS_mbind, self.at.cast::<u8>().add(from), to - from, mode, &raw const nodes, 65, flags) };
        ensure!(rc == 0, "mbind: {}", std::io::Error::last_os_error());
        Ok(())
    }

    /// Stores to every page of a part, from this CPU.
    fn touch(&self, (from, to): (usize, usize), cpu: u32) -> Result<()> {
        memgauge_os::cpu::pin_to(cpu).map_err(|error| anyhow::anyhow!("CPU {cpu}: {error}"))?;
        for offset in (from..to).step_by(PAGE) {
            // SAFETY: the byte is within the mapping, which nothing else refers to.
            unsafe { self.at.cast::<u8>().add(offset).write_volatile(1) };
        }
        Ok(())
    }

    /// Bytes by node as `move_pages` says it of each page.
    fn by_node(&self) -> Result<BTreeMap<u32, Bytes>> {
        let count = BYTES / PAGE;
        let pages: Vec<*const libc::c_void> =
            // SAFETY: the addresses are within the mapping.
            (0..count).map(|i| unsafe { self.at.cast::<u8>().add(i * PAGE) }.cast_const().cast()).collect();
        let mut status = vec![0_i32; count];
        // SAFETY: both lists have `count` entries, and no nodes are given, so that nothing moves.
        let rc = unsafe { libc::syscall(libc::SYS_move_pages, 0, count, pages.as_ptr(), std::ptr::null::<i32>(), status.as_mut_ptr(), 0) };
        ensure!(rc == 0, "move_pages: {}", std::io::Error::last_os_error());
        let mut sums: BTreeMap<u32, Bytes> = BTreeMap::new();
        for node in status.into_iter().filter_map(|node| u32::try_from(node).ok()) {
            sums.entry(node).or_default().0 += PAGE as u64;
        }
        Ok(sums)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own.
        unsafe { libc::munmap(self.reserved, RESERVED) };
    }
}

/// What is done to a mapping.
struct Layout {
    name: String,
    backing: Backing,
    /// The policy, and its nodes.
    policy: Option<(libc::c_int, u64)>,
    /// The CPU that touches it, and how much of it.
    touch: (u32, (usize, usize)),
    /// Where which part of it is moved afterwards.
    moved: Option<((usize, usize), u64)>,
}

const WHOLE: (usize, usize) = (0, BYTES);
const HALF: (usize, usize) = (0, BYTES / 2);

fn all_layouts() -> Vec<Layout> {
    let mut all = Vec::new();
    let mut add = |name: String, backing, policy, touch, moved| all.push(Layout { name, backing, policy, touch, moved });
    for backing in Backing::ALL {
        for node in 0..3_u64 {
            add(format!("{backing:?} bound to node {node}"), backing, Some((BIND, 1 << node)), (0, WHOLE), None);
        }
        add(format!("{backing:?} interleaved"), backing, Some((INTERLEAVE, 0b111)), (0, WHOLE), None);
        add(format!("{backing:?} touched by a CPU of node 1"), backing, None, (2, WHOLE), None);
        add(format!("{backing:?} touched by half"), backing, Some((BIND, 0b10)), (0, HALF), None);
        add(format!("{backing:?} of which half was moved"), backing, Some((BIND, 1)), (0, WHOLE), Some((HALF, 0b10)));
    }
    for backing in [Backing::Base, Backing::Transparent, Backing::Memfd] {
        add(format!("{backing:?} interleaved over two"), backing, Some((INTERLEAVE, 0b101)), (2, WHOLE), None);
        add(format!("{backing:?} preferred on node 2"), backing, Some((PREFERRED, 0b100)), (0, WHOLE), None);
        add(format!("{backing:?} preferred on two"), backing, Some((PREFERRED_MANY, 0b110)), (0, WHOLE), None);
        add(format!("{backing:?} touched at its end"), backing, Some((BIND, 0b100)), (3, (BYTES / 2, BYTES)), None);
    }
    all
}

/// What `memgauge where` says of this process.
fn seen() -> Result<Residency> {
    let report = memgauge(&format!("where --for 10ms {}", std::process::id())).measure()?;
    Ok(*report.residency.context("no memory in the result")?)
}

fn check(layout: &Layout) -> Result<()> {
    let mapping = Mapping::new(layout.backing)?;
    if let Some((mode, nodes)) = layout.policy {
        mapping.bind(WHOLE, mode, nodes, 0)?;
    }
    mapping.touch(layout.touch.1, layout.touch.0)?;
    if let Some((part, nodes)) = layout.moved {
        mapping.bind(part, BIND, nodes, MOVE)?;
    }
    let truth = mapping.by_node()?;
    let present: u64 = truth.values().map(|bytes| bytes.0).sum();
    ensure!(present >= (layout.touch.1.1 - layout.touch.1.0) as u64, "only {present} bytes are there: {truth:?}");
    let residency = seen()?;
    let [process] = residency.processes.as_slice() else { bail!("{} processes", residency.processes.len()) };
    let found = process.mappings.iter().find(|found| found.present.0 == present && found.kind == mapping.backing.kind());
    let found = found.with_context(|| format!("no mapping of {present} bytes: {:?}", process.mappings.first()))?;
    ensure!(found.by_node == truth, "{:?} instead of {truth:?}", found.by_node);
    // The kernel's own sum of all mappings is that of all nodes.
    let whole: u64 = process.memory.by_node.values().map(|bytes| bytes.0).sum();
    ensure!(whole + process.memory.unplaced.0 == process.memory.present.0, "{:?}", process.memory);
    if layout.backing == Backing::Pool {
        ensure!(found.huge.0 == present, "{} bytes in huge pages", found.huge.0);
        let pool = process.memory.by_page.iter().find(|pages| pages.kind == PageKind::Pool);
        ensure!(pool.is_some_and(|pool| pool.bytes.0 == present && pool.page == Bytes(HUGE as u64)), "{:?}", process.memory.by_page);
    }
    Ok(())
}

fn layouts() -> Result<()> {
    for node in 0..3 {
        guest::write(guest::pool(node, 2048).join("nr_hugepages"), &(BYTES / HUGE).to_string())?;
    }
    let all = all_layouts();
    ensure!(all.len() >= 50, "{} layouts", all.len());
    let checked = check_all(&all);
    for node in 0..3 {
        guest::write(guest::pool(node, 2048).join("nr_hugepages"), "0")?;
    }
    checked
}

fn check_all(all: &[Layout]) -> Result<()> {
    let mut wrong = Vec::new();
    for layout in all {
        if let Err(error) = check(layout) {
            wrong.push(format!("{}: {error:#}", layout.name));
        }
    }
    ensure!(wrong.is_empty(), "{} of {} layouts: {}", wrong.len(), all.len(), wrong.join("; "));
    Ok(())
}

/// Memory of several kinds under policies that another job's guest has, and bound to one node and half moved to another.
pub(super) fn layouts_under(policies: &[(libc::c_int, u64)], moved: (u64, u64)) -> Result<()> {
    let mut all = Vec::new();
    for backing in [Backing::Base, Backing::Transparent, Backing::SharedAnonymous, Backing::Memfd, Backing::File] {
        let layout = |policy: (libc::c_int, u64), moved| Layout {
            name: format!("{backing:?} under {policy:?}"),
            backing,
            policy: Some(policy),
            touch: (0, WHOLE),
            moved,
        };
        all.extend(policies.iter().map(|policy| layout(*policy, None)));
        all.push(layout((BIND, moved.0), Some((HALF, moved.1))));
    }
    check_all(&all)
}

/// A chase that is bound to another node than its CPU's: all of its pages are remote, and moving its thread would help.
fn a_program_and_its_children() -> Result<()> {
    let prices = with_result("latency --matrix --order window-local --size 4M --time 40ms --no-stamp").measure()?;
    let path = "/tmp/prices.json";
    File::create(path)?.write_all(&memgauge_render::json_text(&prices)?)?;
    let line = format!("where --prices {path} -- /bin/memgauge chase 32M --passes 20");
    let report = memgauge(&line).under_policy(BIND, 0b10).measure()?;
    let residency = report.residency.context("no memory in the result")?;
    let [process] = residency.processes.as_slice() else { bail!("{:?}", residency.processes) };
    ensure!(process.name == "memgauge" && process.memory.by_node.get(&1).is_some_and(|bytes| bytes.0 >= 32 << 20), "{process:?}");
    ensure!(residency.prices.is_some() && residency.cost.is_some(), "{:?}", residency.not_priced);
    Ok(())
}

fn a_control_group() -> Result<()> {
    let group = guest::control_group("where", &[])?;
    let running = memgauge("chase 16M --passes 100000").in_group(&group).start()?;
    running.until("it has its buffer", |id| !crate::memory::buffers(id).is_empty())?;
    let report = memgauge(&format!("where --cgroup {}", group.display())).measure()?;
    let residency = report.residency.context("no memory in the result")?;
    ensure!(residency.processes.len() == 1 && residency.processes[0].pid == running.id(), "{:?}", residency.processes);
    ensure!(residency.processes[0].ran_s() > 0.0, "{:?}", residency.processes[0].cpu_s);
    let mut running = running;
    running.kill()
}

fn another_users_process() -> Result<()> {
    let ran = memgauge("where --for 100ms 1").without_root().run()?;
    ran.refused(4, &["user 0", "CAP_SYS_PTRACE"])
}
