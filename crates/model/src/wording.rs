//! Data in words, for tables, figures, notes and findings alike: coordinates, CPUs and nodes here, reasons in [`reasons`],
//! what each operating system has in [`system`], names of what a user can set in [`native`].

pub mod native;
pub mod reasons;
pub mod system;

use std::fmt;

use serde::Serialize;

use crate::experiment::{ChaseOrder, Coordinates, MemoryPlace};
use crate::policy::{MemoryPolicy, PolicyMode};
use crate::tiers::MemoryKind;
use crate::traffic::{Access, LineUse};
use crate::units::IdSet;

/// Lists of ids with more characters than this are abbreviated.
const MAX_LIST_CHARS: usize = 24;

/// The place and manner of a measurement: `CPU 3, memory of node 1, 2:1, delay 300`. `all` when no coordinate is set.
///
/// A caller that wants fewer words clears the other fields first.
pub fn coordinates(at: &Coordinates) -> String {
    let words = [
        at.cpu.map(|cpu| format!("CPU {cpu}")),
        at.holder_cpu.map(|cpu| format!("from CPU {cpu}")),
        at.cpus.as_ref().map(cpus),
        at.cpu_node.map(|node| format!("on node {node}")),
        at.holder_node.map(|node| format!("from node {node}")),
        at.sharer_cpu.map(|cpu| format!("shared by CPU {cpu}")),
        at.memory.filter(|place| *place != MemoryPlace::Own).map(memory),
        at.memory_dir.as_ref().map(|directory| format!("files in {directory}")),
        at.load_nodes.as_ref().map(|list| format!("load on {}", nodes(list))),
        at.weights.as_ref().map(|weights| format!("weights {weights}")),
        at.region.map(|region| format!("region {region}")),
        at.working_set.map(|bytes| format!("working set {bytes}")),
        at.order.map(|order| chase_order(order).to_owned()),
        at.mix.map(|mix| mix.to_string()),
        at.access.map(|order| access(order).to_owned()),
        at.block.map(|bytes| format!("blocks of {bytes}")),
        at.line.and_then(line_use),
        at.delay_cycles.map(|cycles| format!("delay {cycles}")),
        at.prefetch.map(|state| format!("prefetchers {}", state.name())),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "all".to_owned() } else { words.join(", ") }
}

/// `CPU 3` or `CPUs 0-7`.
pub fn cpus(list: &IdSet) -> String {
    format!("{} {}", if list.len() == 1 { "CPU" } else { "CPUs" }, ids(list))
}

/// `1 word` or `3 words`.
pub fn number_of(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `node 2` or `nodes 1,3`.
pub fn nodes(list: &IdSet) -> String {
    format!("{} {}", if list.len() == 1 { "node" } else { "nodes" }, ids(list))
}

/// A memory policy: `bind to node 2`, `interleave over nodes 0-1`.
pub fn memory_policy(policy: &MemoryPolicy) -> String {
    let list = nodes(&policy.nodes);
    match policy.mode {
        PolicyMode::Default => "none".to_owned(),
        PolicyMode::Local => "local".to_owned(),
        PolicyMode::Bind => format!("bind to {list}"),
        PolicyMode::Preferred | PolicyMode::PreferredMany => format!("prefer {list}"),
        PolicyMode::Interleave => format!("interleave over {list}"),
        PolicyMode::WeightedInterleave => {
            let weights = policy.weights.as_ref().map_or_else(String::new, |weights| format!(" with weights {weights}"));
            format!("interleave over {list}{weights}")
        }
    }
}

/// A kind of memory, in a word or two.
pub const fn memory_kind(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Dram => "DRAM",
        MemoryKind::Hbm => "HBM",
        MemoryKind::Cxl => "CXL",
        MemoryKind::Persistent => "persistent memory as memory",
        MemoryKind::Gpu => "GPU memory",
        MemoryKind::WithoutCpus => "memory without CPUs",
    }
}

/// `memory of node 2`, `own memory` where each CPU uses the memory of its own node, `memory of a device`.
pub fn memory(place: MemoryPlace) -> String {
    match place {
        MemoryPlace::Own => "own memory".into(),
        MemoryPlace::Inherited => "memory of the inherited policy".into(),
        MemoryPlace::Node(node) | MemoryPlace::Device { node: Some(node) } => format!("memory of node {node}"),
        MemoryPlace::Device { node: None } => "memory of a device".into(),
    }
}

/// `node 2`, `own node`, `policy's nodes` for those of the inherited memory policy, or `device` for one that does not state its node. `own node` where the place is not known, too.
pub fn place(place: Option<MemoryPlace>) -> String {
    match place {
        Some(MemoryPlace::Device { node: None }) => "device".to_owned(),
        Some(MemoryPlace::Inherited) => "policy's nodes".to_owned(),
        _ => node(place.and_then(MemoryPlace::node)),
    }
}

/// `node 2`, or `own node` where each CPU uses the memory of its own node.
pub fn node(id: Option<u32>) -> String {
    id.map_or_else(|| "own node".to_owned(), |id| format!("node {id}"))
}

/// The set in the kernel's list form, `0-3,8`. A long list is shortened to its ends and its size.
pub fn ids(set: &IdSet) -> String {
    let text = set.to_string();
    match (set.first(), set.last()) {
        (Some(first), Some(last)) if text.len() > MAX_LIST_CHARS => format!("{first}…{last} ({} of them)", set.len()),
        _ => text,
    }
}

/// A value of an enumeration as results spell it: `IdleLatency` is `idle-latency` there.
pub fn spelled(value: &impl Serialize) -> String {
    struct Spelled<'a, T>(&'a T);

    impl<T: Serialize> fmt::Display for Spelled<'_, T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.serialize(f)
        }
    }

    Spelled(value).to_string()
}

/// The order as the command line and the result call it.
pub const fn chase_order(order: ChaseOrder) -> &'static str {
    match order {
        ChaseOrder::WindowLocal => "window-local",
        ChaseOrder::FullRandom => "full-random",
        ChaseOrder::Sequential => "sequential",
    }
}

/// What is done with a line besides loading or storing it.
pub fn line_use(line: LineUse) -> Option<String> {
    Some(match line {
        LineUse::Whole => return None,
        LineUse::Part => "parts of lines".to_owned(),
        LineUse::WrittenBack => "lines written back after each store".to_owned(),
        LineUse::Checked => "checksums of what is read".to_owned(),
        LineUse::Persisted(method) => format!("made durable by {}", method.name()),
        LineUse::ReadBack(method) => format!("made durable by {} and read again", method.name()),
    })
}

/// In which order loaders visit lines.
pub const fn access(access: Access) -> &'static str {
    match access {
        Access::Sequential => "sequential access",
        Access::Strided => "strided access",
        Access::Random => "random access",
        Access::Blocks => "random blocks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Mix;
    use crate::units::Bytes;

    #[test]
    fn coordinates_are_said_from_the_cpu_to_the_traffic() {
        assert_eq!(coordinates(&Coordinates::default()), "all");
        let at = Coordinates {
            cpus: "0-3".parse().ok(),
            memory: Some(MemoryPlace::Node(1)),
            mix: Some(Mix::R2W1),
            delay_cycles: Some(300),
            ..Coordinates::default()
        };
        assert_eq!(coordinates(&at), "CPUs 0-3, memory of node 1, 2:1, delay 300");
        let at = Coordinates { cpu: Some(3), holder_cpu: Some(5), working_set: Some(Bytes::mib(4)), ..Coordinates::default() };
        assert_eq!(coordinates(&at), "CPU 3, from CPU 5, working set 4 MiB");
    }

    #[test]
    fn long_lists_are_abbreviated() {
        assert_eq!([1, 2].map(|n| number_of(n, "word", "words")), ["1 word", "2 words"]);
        let even: IdSet = (0..40).map(|n| n * 2).collect();
        assert_eq!((cpus(&even), cpus(&IdSet::one(3))), ("CPUs 0…78 (40 of them)".to_owned(), "CPU 3".to_owned()));
        assert_eq!(
            (nodes(&[1, 3].into_iter().collect()), nodes(&IdSet::one(u32::MAX))),
            ("nodes 1,3".to_owned(), "node 4294967295".to_owned())
        );
        assert_eq!((node(Some(2)), node(None)), ("node 2".to_owned(), "own node".to_owned()));
    }

    #[test]
    fn a_device_without_a_node_is_not_taken_for_the_own_node() {
        let places = [MemoryPlace::Own, MemoryPlace::Node(1), MemoryPlace::Device { node: Some(2) }, MemoryPlace::Device { node: None }];
        assert_eq!(places.map(|p| place(Some(p))), ["own node", "node 1", "node 2", "device"]);
    }
}
