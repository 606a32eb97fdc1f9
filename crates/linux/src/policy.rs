//! The memory policy that this process was started with (`get_mempolicy(2)`). Threads inherit it, and nothing here changes it: buffers that
//! are bound have policies of their own.

use std::io;
use std::path::Path;

use memgauge_model::interleave::Weights;
use memgauge_model::policy::{MemoryPolicy, PolicyMode};
use memgauge_model::units::IdSet;

use crate::interleave::KernelWeights;
use crate::security::explained;
use crate::tree::{NODE_DIR, Tree};

/// Bits of the mask that the kernel fills in; no kernel has more nodes (`NODES_SHIFT` is at most 10).
const BITS: usize = 1024;
/// Flags that the mode carries: the mask is the user's, and the nodes are those of it that are allowed.
const STATIC_NODES: libc::c_int = 1 << 15;
/// The mask is the user's, and counts the allowed nodes.
const RELATIVE_NODES: libc::c_int = 1 << 14;
/// NUMA balancing may move the pages within the mask.
const NUMA_BALANCING: libc::c_int = 1 << 13;
/// The policies as numa_maps writes them (`mpol_to_str`, mm/mempolicy.c), the longer of those that begin alike first.
const WORDS: [(&str, PolicyMode); 7] = [
    ("default", PolicyMode::Default),
    ("prefer (many)", PolicyMode::PreferredMany),
    ("prefer", PolicyMode::Preferred),
    ("bind", PolicyMode::Bind),
    ("weighted interleave", PolicyMode::WeightedInterleave),
    ("interleave", PolicyMode::Interleave),
    ("local", PolicyMode::Local),
];

/// The policy of this process, or of the one that recorded the machine. `allowed` are the nodes whose memory it may use. The error says in
/// words why it is not known.
pub(crate) fn read(tree: Tree<'_>, allowed: &IdSet) -> Result<MemoryPolicy, String> {
    let shown = || tree.text("proc/self/numa_maps").as_deref().and_then(of_stack);
    let (mode, nodes) = if tree.is_live() {
        match ask() {
            Ok((mode, nodes)) => decode(mode, &nodes, allowed)?,
            // A kernel without NUMA has no policies.
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) && !tree.exists(NODE_DIR) => (PolicyMode::Default, IdSet::new()),
            // Filters of containers deny the call, and leave the file.
            Err(e) => shown().ok_or_else(|| format!("get_mempolicy: {}", explained(&e)))?,
        }
    } else {
        shown().ok_or("the recording does not hold it (proc/self/numa_maps)")?
    };
    let weights = if mode == PolicyMode::WeightedInterleave { kernel_weights(&tree.path(""), &nodes) } else { None };
    Ok(MemoryPolicy { mode, nodes, weights })
}

/// The mode of the calling thread's policy, with its flags, and the nodes.
fn ask() -> io::Result<(libc::c_int, IdSet)> {
    let (mut mode, mut mask) = (0, [0u64; BITS / 64]);
    let nowhere = std::ptr::null::<libc::c_void>();
    // SAFETY: the call writes one integer and at most `BITS` bits of the mask, which has as many; it reads one bit less than the number given.
    let rc = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, mask.as_mut_ptr(), BITS + 1, nowhere, 0) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |node: &u32| mask[*node as usize / 64] >> (node % 64) & 1 == 1;
    Ok((mode, (0..BITS as u32).filter(is_set).collect()))
}

/// Decodes the kernel's answer, with the nodes that are in force.
fn decode(mode: libc::c_int, nodes: &IdSet, allowed: &IdSet) -> Result<(PolicyMode, IdSet), String> {
    let rule = match mode & !(STATIC_NODES | RELATIVE_NODES | NUMA_BALANCING) {
        0 => PolicyMode::Default,
        1 if nodes.is_empty() => PolicyMode::Local,
        1 => PolicyMode::Preferred,
        2 => PolicyMode::Bind,
        3 => PolicyMode::Interleave,
        4 => PolicyMode::Local,
        5 => PolicyMode::PreferredMany,
        6 => PolicyMode::WeightedInterleave,
        other => return Err(format!("get_mempolicy: mode {other} is of a kernel later than this program")),
    };
    let in_force = match () {
        () if mode & RELATIVE_NODES != 0 && !allowed.is_empty() => {
            let nth = |node: u32| allowed.iter().nth(node as usize % allowed.len());
            nodes.iter().filter_map(nth).collect()
        }
        () if mode & STATIC_NODES != 0 => {
            Some(nodes.intersection(allowed)).filter(|both| !both.is_empty()).unwrap_or_else(|| allowed.clone())
        }
        () => nodes.clone(),
    };
    Ok((rule, in_force))
}

/// The policy of the process by the entry of its stack in numa_maps, which has no policy of its own.
fn of_stack(maps: &str) -> Option<(PolicyMode, IdSet)> {
    let line = maps.lines().find(|line| line.split(' ').any(|word| word == "stack"))?;
    let (_, text) = line.split_once(' ')?;
    parse_policy(text).map(|(mode, nodes, _)| (mode, nodes))
}

/// The policy at the beginning of a text of numa_maps, its nodes, and the text behind it.
pub(crate) fn parse_policy(text: &str) -> Option<(PolicyMode, IdSet, &str)> {
    let (mode, rest) = WORDS.into_iter().find_map(|(word, mode)| Some((mode, text.strip_prefix(word)?)))?;
    let (flags, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let nodes = flags.split_once(':').map_or(Ok(IdSet::new()), |(_, nodes)| nodes.parse()).ok()?;
    Some((mode, nodes, rest))
}

/// The kernel's weights of these nodes; `None` where it has none: then each counts as 1.
pub(crate) fn kernel_weights(root: &Path, nodes: &IdSet) -> Option<Weights> {
    let state = KernelWeights::new(root, Path::new("")).read()?;
    Weights::new(nodes.iter().map(|node| (node, state.weights.get(&node).copied().unwrap_or(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    #[test]
    fn the_kernels_answer_has_a_rule_and_the_nodes_in_force() {
        let of = |mode, nodes: &str, allowed: &str| decode(mode, &ids(nodes), &ids(allowed));
        assert_eq!(of(0, "", "0-1"), Ok((PolicyMode::Default, IdSet::new())));
        assert_eq!(of(1, "", "0-1"), Ok((PolicyMode::Local, IdSet::new())), "as numactl --localalloc sets it before Linux 5.14");
        assert_eq!(of(2, "1", "0-1"), Ok((PolicyMode::Bind, ids("1"))));
        assert_eq!(of(2 | NUMA_BALANCING, "1", "0-1"), Ok((PolicyMode::Bind, ids("1"))));
        assert_eq!(of(3 | STATIC_NODES, "0-3", "1-2"), Ok((PolicyMode::Interleave, ids("1-2"))));
        assert_eq!(of(2 | STATIC_NODES, "0", "1-2"), Ok((PolicyMode::Bind, ids("1-2"))), "none of them is allowed: the kernel takes all");
        assert_eq!(of(2 | RELATIVE_NODES, "0,3", "1,4"), Ok((PolicyMode::Bind, ids("1,4"))), "the first, and the fourth of two");
        assert_eq!(of(6, "0,2", "0-2"), Ok((PolicyMode::WeightedInterleave, ids("0,2"))));
        assert!(of(7, "0", "0").is_err_and(|why| why.contains("mode 7")));
    }

    #[test]
    fn a_stack_has_the_policy_of_its_process() {
        let maps = |policy: &str| {
            format!("55d0c000 bind:1 file=/bin/memgauge mapped=5 N0=5\n7ffd1000 {policy} stack anon=3 dirty=3 N2=3 kernelpagesize_kB=4")
        };
        let of = |policy: &str| of_stack(&maps(policy)).unwrap();
        assert_eq!(of("default"), (PolicyMode::Default, IdSet::new()));
        assert_eq!(of("bind:2"), (PolicyMode::Bind, ids("2")));
        assert_eq!(of("prefer:1"), (PolicyMode::Preferred, ids("1")));
        assert_eq!(of("prefer (many):0-1"), (PolicyMode::PreferredMany, ids("0-1")));
        assert_eq!(of("interleave=static:0,2"), (PolicyMode::Interleave, ids("0,2")));
        assert_eq!(of("weighted interleave:0-1"), (PolicyMode::WeightedInterleave, ids("0-1")));
        assert_eq!(of("local"), (PolicyMode::Local, IdSet::new()));
        assert_eq!(of_stack("55d0c000 default heap"), None);
        assert_eq!(of_stack(&maps("newer:1")), None);
    }

    #[test]
    fn this_process_has_a_policy_or_a_reason() {
        let policy = read(Tree::new(Path::new("/")), &ids("0"));
        assert!(
            policy.as_ref().is_ok_and(|policy| policy.nodes.is_empty() != (policy.mode == PolicyMode::Bind))
                || policy.is_err_and(|why| !why.is_empty())
        );
    }
}
