//! The CPUs and nodes that this process may use, and binding threads to CPUs.

use std::io;
use std::path::Path;

use memgauge_core::topology::Topology;
use memgauge_core::units::{Bytes, IdSet};

use crate::limits::cgroup;
use crate::tree::{CPU_DIR, Tree, field, parse_mask};

/// Bits in a mask's word.
const WORD: u32 = u64::BITS;
/// The first mask tried: 1,024 CPUs, what glibc's fixed `cpu_set_t` holds.
const FIRST_WORDS: usize = 16;
/// The largest mask tried: as many CPUs as an [`IdSet`] can name. Kernels are built for 8,192 at most today.
const MOST_WORDS: usize = (1 << 20) / WORD as usize;

/// CPUs and nodes that a process may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedSets {
    /// Online, in the affinity mask and in the cpuset.
    pub cpus: IdSet,
    /// Online nodes with memory that the cpuset allows (`Mems_allowed`).
    pub nodes: IdSet,
}

/// Online CPUs, and present ones that are not online.
///
/// Only CPUs that have a folder count: the kernel makes one for each present CPU, and a list without folders says nothing about them.
pub(crate) fn online_and_offline(tree: Tree<'_>) -> (IdSet, IdSet) {
    let folders = tree.numbered(CPU_DIR, "cpu");
    let listed = tree.ids(&format!("{CPU_DIR}/online")).map(|ids| ids.intersection(&folders)).filter(|ids| !ids.is_empty());
    // Each CPU that can be taken offline has a file `online`; CPU 0 often cannot and has none.
    let online = listed
        .unwrap_or_else(|| folders.iter().filter(|id| tree.text(&format!("{CPU_DIR}/cpu{id}/online")).as_deref() != Some("0")).collect());
    let present = tree.ids(&format!("{CPU_DIR}/present")).map_or_else(|| folders.clone(), |ids| ids.intersection(&folders));
    let offline = present.difference(&online);
    (online, offline)
}

/// Reads what this process (or, for a recorded folder, the recording one) may use now.
///
/// It takes a handful of system calls: cheap enough to be called between measurements, to notice that somebody changed the cpuset or took a
/// CPU offline. For the live machine the affinity is the main thread's, so that a measuring thread's own binding does not count; the main
/// thread must not bind itself.
pub fn read_allowed(root: &Path, topology: &Topology) -> AllowedSets {
    let tree = Tree::new(root);
    let online = online_and_offline(tree).0.intersection(&topology.online());
    let with_memory: IdSet = topology.nodes.iter().filter(|n| n.memory > Bytes(0)).map(|n| n.id).collect();
    let status = tree.text("proc/self/status").unwrap_or_default();
    let stated = |name: &str, mask: &str| -> Option<IdSet> {
        field(&status, name).and_then(|list| list.parse().ok()).or_else(|| parse_mask(field(&status, mask)?))
    };
    // `status` shows the cpuset's effect; the control group's files serve recordings that lack it.
    let mut cpus = online.clone();
    if let Some(ids) = stated("Cpus_allowed_list", "Cpus_allowed").or_else(|| cgroup::cpuset(tree, "cpus")) {
        cpus = cpus.intersection(&ids);
    }
    if tree.is_live()
        && let Ok(affinity) = process_affinity()
    {
        cpus = affinity.intersection(&online);
    }
    let mems = stated("Mems_allowed_list", "Mems_allowed").or_else(|| cgroup::cpuset(tree, "mems"));
    // A kernel without NUMA may state a set or none; its one node is allowed.
    let nodes = match mems {
        Some(ids) => with_memory.intersection(&ids),
        None => with_memory,
    };
    AllowedSets { cpus, nodes }
}

/// CPUs that the main thread of this process may run on; the kernel has already applied the cpuset.
///
/// # Errors
/// When the kernel refuses to tell, as under a strict seccomp filter.
pub fn process_affinity() -> io::Result<IdSet> {
    // SAFETY: getpid has no preconditions.
    affinity_of(unsafe { libc::getpid() })
}

/// CPUs that the calling thread may run on.
///
/// # Errors
/// As [`process_affinity`].
#[cfg(test)]
fn thread_affinity() -> io::Result<IdSet> {
    affinity_of(0)
}

/// The kernel answers EINVAL while the mask is smaller than its own, whose size it tells nowhere.
fn affinity_of(pid: libc::pid_t) -> io::Result<IdSet> {
    let mut words = FIRST_WORDS;
    loop {
        let mut mask = vec![0u64; words];
        // SAFETY: `mask` is writable memory of the size given, aligned for the kernel's array of longs.
        let rc = unsafe { libc::sched_getaffinity(pid, size_of_val(mask.as_slice()), mask.as_mut_ptr().cast::<libc::cpu_set_t>()) };
        if rc >= 0 {
            return Ok(ids_of(&mask));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words >= MOST_WORDS {
            return Err(error);
        }
        words *= 2;
    }
}

/// Lets the calling thread run on `cpu` only.
///
/// # Errors
/// When the CPU does not exist, is offline or outside the cpuset (EINVAL), or the call is forbidden (EPERM).
pub fn pin_to(cpu: u32) -> io::Result<()> {
    set_affinity(&IdSet::one(cpu))
}

/// Lets the calling thread run on `cpus` only.
///
/// # Errors
/// As [`pin_to`], when none of `cpus` may be used.
pub fn set_affinity(cpus: &IdSet) -> io::Result<()> {
    let mask = mask_of(cpus);
    // SAFETY: `mask` is readable memory of the size given, aligned for the kernel's array of longs; 0 is the calling thread.
    let rc = unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast::<libc::cpu_set_t>()) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPU that the calling thread runs on at this moment.
///
/// # Errors
/// When the kernel or a seccomp filter does not tell.
pub fn current_cpu() -> io::Result<u32> {
    // SAFETY: sched_getcpu has no preconditions.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| io::Error::last_os_error())
}

// The kernel's masks are arrays of longs; in arrays of u64 they are the same bytes on little-endian machines of any word size and on all
// 64-bit ones, which is every Linux that this program is built for.
fn ids_of(mask: &[u64]) -> IdSet {
    (0u32..)
        .zip(mask)
        .flat_map(|(word, &bits)| (0..WORD).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * WORD + bit))
        .collect()
}

fn mask_of(ids: &IdSet) -> Vec<u64> {
    let words = ids.last().map_or(1, |last| last / WORD + 1) as usize;
    let mut mask = vec![0u64; words.max(FIRST_WORDS)];
    for id in ids.iter() {
        mask[(id / WORD) as usize] |= 1 << (id % WORD);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_any_size() {
        for list in ["0", "63", "64", "0-1023", "1024", "3,1500,8191", ""] {
            let ids: IdSet = list.parse().unwrap();
            let mask = mask_of(&ids);
            assert!(mask.len() >= FIRST_WORDS);
            assert_eq!(ids_of(&mask), ids, "{list}");
        }
        assert_eq!(mask_of(&IdSet::one(8191)).len(), 128);
    }

    #[test]
    fn a_thread_runs_where_it_is_pinned() {
        // Not in the test's own thread: the harness may run other tests there.
        std::thread::spawn(|| {
            let all = thread_affinity().unwrap();
            assert!(!all.is_empty());
            for cpu in all.iter() {
                pin_to(cpu).unwrap();
                assert_eq!(current_cpu().unwrap(), cpu);
                assert_eq!(thread_affinity().unwrap(), IdSet::one(cpu));
            }
            set_affinity(&all).unwrap();
            assert_eq!(thread_affinity().unwrap(), all);
            // A CPU number that no kernel has, beyond its own mask.
            assert_eq!(pin_to(1_000_000).unwrap_err().raw_os_error(), Some(libc::EINVAL));
            assert_eq!(thread_affinity().unwrap(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn own_binding_does_not_narrow_the_process() {
        let before = process_affinity().unwrap();
        std::thread::spawn(move || {
            pin_to(thread_affinity().unwrap().first().unwrap()).unwrap();
            assert_eq!(process_affinity().unwrap(), before);
        })
        .join()
        .unwrap();
    }
}
