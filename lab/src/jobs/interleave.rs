//! Weighted interleave: memgauge's placement beside the kernel's own policy, page by page; the kernel's weights set and put back.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::PageRequest;
use memgauge_model::interleave::Weights;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::{PageKind, PlacementStatus, Reference};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::memory::Buffer;

use crate::guest;
use crate::job::{Job, Machine, PLAIN, Release, tests};
use crate::program::{measured, memgauge, without_result};

pub(crate) const JOB: Job = Job {
    name: "interleave",
    about: "pages in turn as the kernel's weighted interleave places them; its weights set, put back, also after a kill (Linux 6.12)",
    optional: true,
    machine: Machine { qemu: QEMU, kernel: &["numa_balancing=disable"], release: Release::Backports, ..PLAIN },
    tests: tests![
        info_shows_the_kernels_weights,
        base_pages_are_where_the_kernel_puts_them,
        huge_pages_are_where_the_kernel_puts_them,
        a_search_places_by_its_weights,
        applied_and_restored,
        killed_between_two_writes,
        killed_at_any_moment,
        automatic_weights_of_a_later_kernel,
        where_sees_weighted_memory,
    ],
};

/// A node with CPUs and two without.
const QEMU: &[&str] = &[
    "-machine q35",
    "-cpu max,vendor=GenuineIntel",
    "-smp 2",
    "-m 1280M",
    "-object memory-backend-ram,id=m0,size=768M",
    "-object memory-backend-ram,id=m1,size=256M",
    "-object memory-backend-ram,id=m2,size=256M",
    "-numa node,nodeid=0,memdev=m0,cpus=0-1",
    "-numa node,nodeid=1,memdev=m1",
    "-numa node,nodeid=2,memdev=m2",
    "-numa dist,src=0,dst=1,val=14",
    "-numa dist,src=0,dst=2,val=17",
    "-numa dist,src=1,dst=2,val=24",
];

pub(super) const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
pub(super) const JOURNAL: &str = "/run/memgauge/interleave.journal";
const BASE_PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
/// linux/mempolicy.h.
const MPOL_WEIGHTED_INTERLEAVE: libc::c_int = 6;

/// The kernel's weights, by node.
pub(super) fn kernel_weights() -> Result<BTreeMap<u32, u32>> {
    (0..3).map(|node| Ok((node, guest::read(file(node))?.parse()?))).collect()
}

fn set_kernel_weights(weights: &Weights) -> Result<()> {
    weights.iter().try_for_each(|(node, weight)| guest::write(file(node), &weight.to_string()))
}

fn file(node: u32) -> String {
    format!("{WEIGHTS}/node{node}")
}

fn info_shows_the_kernels_weights() -> Result<()> {
    set_kernel_weights(&"0=7,1=3,2=2".parse()?)?;
    let nodes = memgauge("info").measure()?.machine.topology.nodes;
    let shown: Vec<Option<u32>> = nodes.iter().map(|node| node.interleave_weight).collect();
    ensure!(shown == [Some(7), Some(3), Some(2)], "{shown:?}");
    Ok(())
}

pub(super) fn base_pages_are_where_the_kernel_puts_them() -> Result<()> {
    ["0=3,1=1", "0=2,2=5", "0=7,1=3,2=2", "1=1,2=1"].iter().try_for_each(|w| same_pages(&w.parse()?, PageRequest::Base, 8 << 20))
}

pub(super) fn huge_pages_are_where_the_kernel_puts_them() -> Result<()> {
    ["0=3,1=1", "0=2,1=3,2=1"].iter().try_for_each(|w| same_pages(&w.parse()?, PageRequest::Thp, 96 << 20))
}

/// `memgauge where` beside `move_pages`, with weights that differ, over two nodes and three.
fn where_sees_weighted_memory() -> Result<()> {
    set_kernel_weights(&"0=7,1=3,2=2".parse()?)?;
    let policies = [0b11, 0b101, 0b111].map(|nodes| (MPOL_WEIGHTED_INTERLEAVE, nodes));
    super::residency::layouts_under(&policies, (0b1, 0b100))
}

/// memgauge's memory and memory under the kernel's policy have their pages on the same nodes, page by page, and each node as many of them as
/// its weight says, within one turn.
fn same_pages(weights: &Weights, pages: PageRequest, bytes: usize) -> Result<()> {
    set_kernel_weights(weights)?;
    let page = if pages == PageRequest::Thp { HUGE_PAGE } else { BASE_PAGE };
    let first = weights.nodes().iter().next().context("no node")?;
    let plan = BufferPlan { touch: "0-1".parse()?, weights: Some(weights.clone()), ..BufferPlan::plain(Bytes(bytes as u64), first, pages) };
    let ours = Buffer::allocate(&plan, Path::new("/"))?;
    let kind = if pages == PageRequest::Thp { PageKind::Thp } else { PageKind::Base };
    ensure!(ours.pages().obtained == Some(kind) && ours.pages().share == Some(1.0), "{weights}: {:?}", ours.pages());
    let theirs = Mapping::under_the_kernels_policy(bytes, &weights.nodes(), pages == PageRequest::Thp)?;
    let of_ours = by_turn(ours.as_ptr() as usize, bytes, page, weights).context("memgauge's pages")?;
    let of_theirs = by_turn(theirs.start, bytes, page, weights).context("the kernel's pages")?;
    ensure!(of_ours == of_theirs, "{weights}: nodes of a round {of_ours:?}, the kernel's {of_theirs:?}");
    Ok(())
}

/// The node of each page of a round, if every round of the memory is the same and all nodes have their share of the pages.
fn by_turn(start: usize, bytes: usize, page: usize, weights: &Weights) -> Result<BTreeMap<usize, i32>> {
    let total = weights.total() as usize;
    let addresses: Vec<usize> = (start..start + bytes).step_by(page).collect();
    let nodes = nodes_of(&addresses)?;
    let (mut round, mut counts) = (BTreeMap::new(), BTreeMap::<i32, usize>::new());
    for (address, node) in addresses.iter().zip(&nodes) {
        let turn = address / page % total;
        ensure!(round.insert(turn, *node).is_none_or(|before| before == *node), "turn {turn} at {address:#x} is on node {node}: {round:?}");
        *counts.entry(*node).or_default() += 1;
    }
    for (node, weight) in weights.iter() {
        let (found, share) = (counts.remove(&(node as i32)).unwrap_or(0), nodes.len() * weight as usize / total);
        ensure!(found.abs_diff(share) <= weight as usize, "node {node} has {found} of {} pages instead of {share}", nodes.len());
    }
    ensure!(counts.is_empty(), "pages elsewhere: {counts:?}");
    Ok(round)
}

/// The nodes of pages of this process, as `move_pages` tells; a negative number is an error of a page.
fn nodes_of(addresses: &[usize]) -> Result<Vec<i32>> {
    let mut nodes = vec![0i32; addresses.len()];
    // SAFETY: asks only, about as many pages as both lists have; both live until the call has ended.
    let done = unsafe {
        libc::syscall(libc::SYS_move_pages, 0, addresses.len(), addresses.as_ptr(), std::ptr::null::<i32>(), nodes.as_mut_ptr(), 0)
    };
    ensure!(done == 0, "move_pages: {}", std::io::Error::last_os_error());
    Ok(nodes)
}

/// Memory that begins with a huge page.
struct Mapping {
    all: (*mut libc::c_void, usize),
    start: usize,
}

impl Mapping {
    /// Touched under `MPOL_WEIGHTED_INTERLEAVE` over these nodes.
    fn under_the_kernels_policy(bytes: usize, nodes: &IdSet, huge: bool) -> Result<Self> {
        let len = bytes + HUGE_PAGE;
        // SAFETY: new memory wherever the kernel has room.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        ensure!(at != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        let mapping = Self { all: (at, len), start: (at as usize).next_multiple_of(HUGE_PAGE) };
        let start = mapping.start as *mut libc::c_void;
        let mask: u64 = nodes.iter().map(|node| 1 << node).sum();
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range is in the mapping, which nothing else uses; the mask has the 64 bits that the call is given.
        let done = unsafe {
            libc::madvise(start, bytes, advice) == 0
                && libc::syscall(libc::SYS_mbind, start, bytes, MPOL_WEIGHTED_INTERLEAVE, &raw const mask, 65, 0) == 0
        };
        ensure!(done, "mbind: {}", std::io::Error::last_os_error());
        for offset in (0..bytes).step_by(BASE_PAGE) {
            // SAFETY: within the mapping.
            unsafe { start.cast::<u8>().add(offset).write_volatile(1) };
        }
        Ok(mapping)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `mmap` gave; no reference to it is left.
        unsafe { libc::munmap(self.all.0, self.all.1) };
    }
}

/// Every trial of a search has its pages where its weights say, and the kernel's own weights are among the trials.
fn a_search_places_by_its_weights() -> Result<()> {
    set_kernel_weights(&"0=5,1=2,2=1".parse()?)?;
    let report = memgauge("interleave --nodes 0,1 --pages 4k --size 4M --time 20ms").measure()?;
    for m in measured(&report)? {
        let weights = m.at.weights.as_ref().with_context(|| format!("no weights at {:?}", m.at))?;
        let placement = &m.evidence.placement;
        ensure!(placement.status == PlacementStatus::Verified, "{weights}: {placement:?}");
        let pages: u64 = placement.pages_by_node.values().sum();
        for (node, found) in &placement.pages_by_node {
            // At most two buffers, those of the chase and of the loader, each of which may end in the middle of a round.
            let (share, turns) = ((pages as f64 * weights.share(*node)) as u64, 2 * u64::from(weights.total()));
            ensure!(found.abs_diff(share) <= turns, "{weights}: {found} of {pages} pages are on node {node}");
        }
    }
    let gains: Vec<_> = report.interleaves.iter().flat_map(|summary| &summary.gains).collect();
    let kernel = gains.iter().find(|gain| gain.over == Reference::Kernel).with_context(|| format!("{gains:?}"))?;
    ensure!(kernel.weights == "0=5,1=2".parse()?, "{kernel:?}");
    Ok(())
}

/// Sets weights as an administrator would have set them before, and returns them.
fn earlier() -> Result<BTreeMap<u32, u32>> {
    set_kernel_weights(&"0=7,1=3,2=2".parse()?)?;
    ensure!(!Path::new(JOURNAL).exists(), "{JOURNAL} is there already");
    kernel_weights()
}

/// `--restore` puts these back, and forgets them.
fn restores(earlier: &BTreeMap<u32, u32>) -> Result<()> {
    let ran = without_result("interleave --restore").run()?;
    ensure!(ran.status == Some(0), "{:?}: {}", ran.status, ran.stderr);
    ensure!(kernel_weights()? == *earlier, "put back {:?} instead of {earlier:?}: {}", kernel_weights()?, ran.stderr);
    ensure!(!Path::new(JOURNAL).exists(), "{JOURNAL} stays");
    Ok(())
}

fn applied_and_restored() -> Result<()> {
    let earlier = earlier()?;
    for (given, expected) in [("0=5,1=2", [5, 2, 2]), ("0=9,2=4", [9, 2, 4])] {
        let ran = without_result(&format!("interleave --apply {given}")).run()?;
        ensure!(ran.status == Some(0), "{:?}: {}", ran.status, ran.stderr);
        ensure!(kernel_weights()?.into_values().eq(expected), "{:?}", kernel_weights()?);
        ensure!(ran.stderr.contains(given) && ran.stderr.contains("--restore"), "{}", ran.stderr);
    }
    restores(&earlier)?;
    without_result("interleave --apply 0=5,3=2").run()?.refused(4, &["no weight for node 3", "0, 1, 2"])?;
    without_result("interleave --apply 0=5,1=2").without_root().run()?.refused(4, &["root"])?;
    ensure!(kernel_weights()? == earlier, "{:?}", kernel_weights()?);
    let ran = without_result("interleave --restore").run()?;
    ensure!(ran.status == Some(0) && ran.stderr.contains("no weights to put back"), "{:?}: {}", ran.status, ran.stderr);
    Ok(())
}

/// A pipe in the place of node 1's weight holds the run between its first and its second write, and there it is killed.
fn killed_between_two_writes() -> Result<()> {
    let earlier = earlier()?;
    let (pipe, place) = ("/tmp/weight", file(1));
    let name = CString::new(pipe)?;
    // SAFETY: a string that ends in zero.
    ensure!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == 0, "mkfifo: {}", std::io::Error::last_os_error());
    guest::bind(pipe, &place)?;
    let mut running = without_result("interleave --apply 0=5,1=2").start()?;
    // Opening it waits until the run reads what the weight is.
    fs::OpenOptions::new().write(true).open(pipe)?.write_all(b"3\n")?;
    let first = running.until("it has written the first weight", |_| guest::read(file(0)).is_ok_and(|weight| weight == "5"));
    std::thread::sleep(Duration::from_millis(50));
    running.kill()?;
    let ran = running.wait();
    guest::unmount(&place)?;
    fs::remove_file(pipe)?;
    first?;
    ensure!(ran?.status.is_none(), "it had ended by itself");
    ensure!(kernel_weights()?.into_values().eq([5, 3, 2]), "{:?}", kernel_weights()?);
    ensure!(Path::new(JOURNAL).exists(), "killed between its writes, it has left no journal");
    restores(&earlier)
}

fn killed_at_any_moment() -> Result<()> {
    let earlier = earlier()?;
    let mut changed = 0;
    let begun = Instant::now();
    without_result("interleave --apply 0=5,1=2,2=1").run()?;
    // How fast the emulated machine is depends on its host.
    let whole = begun.elapsed();
    restores(&earlier)?;
    for moment in 0..12 {
        let mut running = without_result("interleave --apply 0=5,1=2,2=1").start()?;
        std::thread::sleep(whole * moment / 12);
        running.kill()?;
        running.wait()?;
        changed += u32::from(kernel_weights()? != earlier);
        restores(&earlier)?;
    }
    ensure!(changed > 0, "no run came to its first write");
    Ok(())
}

/// What Linux 6.16 has in addition, in files in place of its own: this kernel has weights, and none that it derives.
fn automatic_weights_of_a_later_kernel() -> Result<()> {
    for (name, automatic) in [("auto", "true"), ("__auto_type", "Y")] {
        guest::mount("tmpfs", WEIGHTS, "tmpfs", "")?;
        let auto = format!("{WEIGHTS}/{name}");
        let outcome = (|| {
            (0..3).try_for_each(|node| guest::write(file(node), "4"))?;
            guest::write(&auto, automatic)?;
            let mut running = without_result("interleave --apply 0=5,1=2").start()?;
            running.until("it has written a weight", |_| guest::read(file(0)).is_ok_and(|weight| weight == "5"))?;
            // Too late to keep it from writing, or not: its journal is there.
            running.kill()?;
            running.wait()?;
            // The kernel does this as soon as a weight is written.
            guest::write(&auto, "false")?;
            let ran = without_result("interleave --restore").run()?;
            ensure!(ran.status == Some(0) && ran.stderr.contains("automatically again"), "{:?}: {}", ran.status, ran.stderr);
            ensure!(guest::read(&auto)? == "1", "{name} is {}", guest::read(&auto)?);
            // Weights are then the kernel's to compute: to write one would end that.
            ensure!(guest::read(file(0))? == "5" && !Path::new(JOURNAL).exists(), "node 0: {}", guest::read(file(0))?);
            Ok(())
        })();
        guest::unmount(WEIGHTS)?;
        outcome?;
    }
    Ok(())
}
