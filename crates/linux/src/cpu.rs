//! The CPUs and nodes that this process may use, and binding threads to CPUs.

use std::io;
use std::path::Path;

use memgauge_model::topology::Topology;
use memgauge_model::units::{IdSet, MAX_ID};

use crate::cgroup;
use crate::security;
use crate::substitute::Substitutes;
use crate::system_call;
use crate::tree::{CPU_DIR, NODE_DIR, Tree, field, parse_mask};

/// Bits in a word of a mask.
const WORD: u32 = u64::BITS;
/// The size of the first mask that is tried: 1,024 CPUs, as in glibc's `cpu_set_t`.
const FIRST_WORDS: usize = 16;
/// The size of the largest mask that is tried.
const MAX_WORDS: usize = (MAX_ID / WORD) as usize;

/// CPUs and nodes that a process may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedSets {
    /// Online, in the cpuset, and in the affinity mask or isolated.
    pub cpus: IdSet,
    /// Those of `cpus` that the affinity mask leaves out only because the kernel isolates them.
    pub isolated: IdSet,
    /// Online nodes with memory that the cpuset allows (`Mems_allowed`).
    pub nodes: IdSet,
}

/// Online CPUs, and present ones that are not online.
///
/// Only CPUs that have a folder count. The kernel has one for each present CPU, and without a folder nothing is known about a CPU.
///
/// The kernel's answer takes precedence over the list: lxcfs replaces the list by the numbers 0 to N - 1 of a container of N CPUs. The
/// CPUs in the affinity of this process are online by the kernel's own rule.
pub(crate) fn online_and_offline(tree: Tree<'_>) -> (IdSet, IdSet) {
    let mut folders = tree.numbered(CPU_DIR, "cpu");
    let may_use = process_affinity().ok().filter(|_| tree.is_live() && !folders.is_empty()).unwrap_or_default();
    folders = folders.union(&may_use);
    let list = format!("{CPU_DIR}/online");
    let listed = tree.ids(&list).map(|ids| ids.intersection(&folders)).filter(|ids| !ids.is_empty());
    let listed = listed.filter(|ids| *ids == folders || !Substitutes::read(tree).cover(&list));
    // Each CPU that can be taken offline has a file `online`. CPU 0 often has none.
    let switch = |id: u32| tree.text(&format!("{CPU_DIR}/cpu{id}/online"));
    let online: IdSet = match listed {
        Some(listed) => listed.union(&folders.difference(&listed).iter().filter(|&id| switch(id).as_deref() == Some("1")).collect()),
        None => folders.iter().filter(|&id| switch(id).as_deref() != Some("0")).collect(),
    };
    let online = online.union(&may_use);
    let present = tree.ids(&format!("{CPU_DIR}/present")).map_or_else(|| folders.clone(), |ids| ids.intersection(&folders));
    let offline = present.difference(&online);
    (online, offline)
}

/// Reads what this process (or, for a recorded folder, the recording one) may use now.
///
/// This takes only a few system calls, so it can be called between measurements to notice a changed cpuset or a CPU that went offline. For the
/// running machine the affinity is that of the main thread, so that the pinning of measuring threads does not count. The main thread must not
/// be pinned.
pub fn read_allowed(root: &Path, topology: &Topology) -> AllowedSets {
    let tree = Tree::new(root);
    let online = online_and_offline(tree).0.intersection(&topology.online());
    let mut with_memory: IdSet = topology.nodes.iter().filter(|n| n.has_memory()).map(|n| n.id).collect();
    // All blocks of a node may have gone offline since the topology was read.
    if let Some(now) = tree.ids(&format!("{NODE_DIR}/has_memory")).filter(|ids| !ids.is_empty()) {
        with_memory = with_memory.intersection(&now);
    }
    let status = tree.text("proc/self/status").unwrap_or_default();
    let stated = |name: &str, mask: &str| -> Option<IdSet> {
        field(&status, name).and_then(|list| list.parse().ok()).or_else(|| parse_mask(field(&status, mask)?))
    };
    // `status` shows the effect of the cpuset. Recordings without it may have the control group's files.
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
    // A kernel without NUMA may state a set or none. Its only node is allowed.
    let nodes = match mems {
        Some(ids) => with_memory.intersection(&ids),
        None => with_memory,
    };
    let isolated = isolated_beside(tree, &online, &cpus);
    AllowedSets { cpus: cpus.union(&isolated), isolated, nodes }
}

/// The isolated CPUs (`isolcpus=`) that this process may use although its affinity leaves them out. The kernel leaves them out of the affinity
/// of its first process, which all others inherit, but a thread may still ask for them. An affinity that is narrower than the inherited one,
/// or has isolated CPUs in it, was chosen by someone and is respected.
fn isolated_beside(tree: Tree<'_>, online: &IdSet, affinity: &IdSet) -> IdSet {
    let isolated = tree.ids(&format!("{CPU_DIR}/isolated")).unwrap_or_default().intersection(online);
    if isolated.is_empty() {
        return isolated;
    }
    let cpuset = cgroup::cpuset(tree, "cpus").map_or_else(|| online.clone(), |ids| ids.intersection(online));
    let inherited = cpuset.difference(&isolated).is_subset(affinity) && affinity.intersection(&isolated).is_empty();
    let beside = if inherited { isolated.intersection(&cpuset) } else { IdSet::new() };
    if tree.is_live() { accepted(&beside) } else { beside }
}

/// Those of `cpus` that the kernel lets a thread of this process use, found by asking for them in a thread of its own: control groups that
/// this process cannot see may leave some out, and the kernel takes only these from the mask that it is given.
fn accepted(cpus: &IdSet) -> IdSet {
    if cpus.is_empty() {
        return IdSet::new();
    }
    let ask = || set_affinity(cpus).and_then(|()| affinity(0));
    let asked = std::thread::scope(|scope| std::thread::Builder::new().spawn_scoped(scope, ask).map(std::thread::ScopedJoinHandle::join));
    asked.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or_default()
}

/// The CPUs that the main thread of this process may run on. The kernel has already applied the cpuset.
///
/// # Errors
/// When the kernel refuses, as under a strict seccomp filter.
pub fn process_affinity() -> io::Result<IdSet> {
    // SAFETY: getpid has no preconditions.
    affinity(unsafe { libc::getpid() })
}

/// Lets the calling thread, the main thread and those that they start run on every CPU that the kernel grants: what `taskset` or `numactl`
/// left out comes back, what a cpuset leaves out does not. Isolated CPUs stay left out. Returns the CPUs that came back; `None` if none did.
///
/// # Errors
/// When the kernel refuses, as under a strict seccomp filter.
pub fn widen_affinity(root: &Path) -> io::Result<Option<IdSet>> {
    let tree = Tree::new(root);
    let before = process_affinity()?;
    let isolated = tree.ids(&format!("{CPU_DIR}/isolated")).unwrap_or_default();
    let wanted = online_and_offline(tree).0.difference(&isolated).union(&before);
    if wanted.is_subset(&before) {
        return Ok(None);
    }
    set_affinity(&wanted)?;
    // SAFETY: getpid has no preconditions.
    set_affinity_of(unsafe { libc::getpid() }, &wanted)?;
    let back = process_affinity()?.difference(&before);
    Ok((!back.is_empty()).then_some(back))
}

/// The affinity of a thread; 0 is the calling one. The kernel returns EINVAL while the mask is smaller than its own, and shows the size of its own nowhere.
fn affinity(pid: libc::pid_t) -> io::Result<IdSet> {
    let mut words = FIRST_WORDS;
    loop {
        let mut mask = vec![0u64; words];
        // SAFETY: the kernel writes at most the given size, which is that of `mask`. A `u64` is aligned for the kernel's array of longs.
        let rc = unsafe { libc::sched_getaffinity(pid, size_of_val(mask.as_slice()), mask.as_mut_ptr().cast::<libc::cpu_set_t>()) };
        if rc >= 0 {
            return Ok(ids_in(&mask));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) || words >= MAX_WORDS {
            return Err(error);
        }
        words *= 2;
    }
}

/// Why [`pin_to`] failed, in words.
pub fn why_not_pinned(error: &io::Error) -> String {
    match error.raw_os_error() {
        // The mask has no CPU that is online and allowed.
        Some(libc::EINVAL) => "it is offline, or not in this process's cpuset (cpuset.cpus, taskset -p)".to_owned(),
        // The kernel's own refusal is EPERM.
        Some(libc::EACCES) => {
            format!("binding a thread to it is denied (sched_setaffinity: {error}): {}", security::culprit())
        }
        _ => format!("the kernel refuses to bind a thread to it (sched_setaffinity: {error}), as filters of system calls (seccomp) do"),
    }
}

/// Pins the calling thread to `cpu`.
///
/// # Errors
/// When the CPU does not exist, is offline or is not in the cpuset (EINVAL), or when the call is forbidden (EPERM, and EACCES by a security module).
pub fn pin_to(cpu: u32) -> io::Result<()> {
    set_affinity(&IdSet::one(cpu))
}

/// Restricts the calling thread to `cpus`.
fn set_affinity(cpus: &IdSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Restricts a thread to `cpus`; 0 is the calling one.
fn set_affinity_of(thread: libc::pid_t, cpus: &IdSet) -> io::Result<()> {
    let mask = to_mask(cpus);
    // SAFETY: the kernel reads the given size, which is that of `mask`. A `u64` is aligned for the kernel's array of longs.
    system_call(|| unsafe { libc::sched_setaffinity(thread, size_of_val(mask.as_slice()), mask.as_ptr().cast::<libc::cpu_set_t>()) == 0 })
}

/// The CPU that the calling thread is running on.
///
/// # Errors
/// When the kernel or a seccomp filter refuses.
pub fn current_cpu() -> io::Result<u32> {
    // SAFETY: sched_getcpu has no preconditions.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).map_err(|_| io::Error::last_os_error())
}

/// The CPUs of a mask. The kernel's masks are arrays of longs. Arrays of `u64` have the same bytes on all 64-bit and all little-endian
/// machines, and this program is built only for such machines.
fn ids_in(mask: &[u64]) -> IdSet {
    (0u32..)
        .zip(mask)
        .flat_map(|(word, &bits)| (0..WORD).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * WORD + bit))
        .collect()
}

/// The mask of a set of CPUs.
fn to_mask(ids: &IdSet) -> Vec<u64> {
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
            let mask = to_mask(&ids);
            assert!(mask.len() >= FIRST_WORDS);
            assert_eq!(ids_in(&mask), ids, "{list}");
        }
        assert_eq!(to_mask(&IdSet::one(8191)).len(), 128);
    }

    #[test]
    fn a_thread_runs_where_it_is_pinned() {
        // Not in the test's own thread: the harness may run other tests there.
        std::thread::spawn(|| {
            let all = affinity(0).unwrap();
            assert!(!all.is_empty());
            for cpu in all.iter() {
                pin_to(cpu).unwrap();
                assert_eq!(current_cpu().unwrap(), cpu);
                assert_eq!(affinity(0).unwrap(), IdSet::one(cpu));
            }
            set_affinity(&all).unwrap();
            assert_eq!(affinity(0).unwrap(), all);
            // A CPU number that no kernel has, beyond its own mask.
            assert_eq!(pin_to(1_000_000).unwrap_err().raw_os_error(), Some(libc::EINVAL));
            assert_eq!(affinity(0).unwrap(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_kernel_says_which_cpus_it_accepts() {
        let all = process_affinity().unwrap();
        // No machine has a CPU of the second number. The kernel drops it, or refuses where nothing else is asked for.
        assert_eq!(accepted(&all.union(&IdSet::one(8_000))), all);
        assert_eq!(accepted(&IdSet::one(8_000)), IdSet::new());
        assert_eq!(process_affinity().unwrap(), all, "asked for in another thread");
    }

    #[test]
    fn pinning_a_thread_does_not_change_the_affinity_of_the_process() {
        let before = process_affinity().unwrap();
        std::thread::spawn(move || {
            pin_to(affinity(0).unwrap().first().unwrap()).unwrap();
            assert_eq!(process_affinity().unwrap(), before);
        })
        .join()
        .unwrap();
    }
}
