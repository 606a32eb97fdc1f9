//! Coordinates as columns of tables: what rows of CSV, labels of time series and databases call each coordinate, and how they write it.

use std::fmt;

use serde::Serialize;

use crate::axis::Axis;
use crate::experiment::{Coordinates, MemoryPlace};
use crate::traffic::LineUse;
use crate::units::Bytes;
use crate::wording::spelled;

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// Its name, with the unit if its values have one.
    pub name: &'static str,
    /// The axis that it shows.
    pub axis: Axis,
    /// What it has at coordinates.
    pub read: Read,
}

/// How a column is read.
#[derive(Debug)]
pub enum Read {
    /// A number.
    Number(fn(&Coordinates) -> Option<u64>),
    /// A word or a list.
    Text(fn(&Coordinates) -> Option<String>),
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A word or a list.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl Column {
    /// The value at coordinates that have one.
    pub fn value(&self, at: &Coordinates) -> Option<Value> {
        match self.read {
            Read::Number(read) => read(at).map(Value::Number),
            Read::Text(read) => read(at).map(Value::Text),
        }
    }
}

const fn column(name: &'static str, axis: Axis, read: Read) -> Column {
    Column { name, axis, read }
}

use Read::{Number, Text};

/// The columns, in the order of tables.
pub static COLUMNS: [Column; 21] = [
    column("cpu", Axis::Cpu, Number(|at| at.cpu.map(u64::from))),
    column("cpu_node", Axis::CpuNode, Number(|at| at.cpu_node.map(u64::from))),
    column("memory", Axis::Memory, Text(|at| at.memory.map(kind_of_place))),
    column("memory_node", Axis::Memory, Number(|at| at.memory_node().map(u64::from))),
    column("memory_dir", Axis::MemoryDir, Text(|at| at.memory_dir.clone())),
    column("holder_cpu", Axis::HolderCpu, Number(|at| at.holder_cpu.map(u64::from))),
    column("holder_node", Axis::HolderNode, Number(|at| at.holder_node.map(u64::from))),
    column("sharer_cpu", Axis::SharerCpu, Number(|at| at.sharer_cpu.map(u64::from))),
    column("state", Axis::State, Text(|at| at.state.as_ref().map(spelled))),
    // The loaders' CPUs, such as `0-3,8`.
    column("cpus", Axis::Cpus, Text(|at| at.cpus.as_ref().map(ToString::to_string))),
    column("load_nodes", Axis::LoadNodes, Text(|at| at.load_nodes.as_ref().map(ToString::to_string))),
    column("order", Axis::Order, Text(|at| at.order.as_ref().map(spelled))),
    column("mix", Axis::Mix, Text(|at| at.mix.as_ref().map(ToString::to_string))),
    column("delay_cycles", Axis::DelayCycles, Number(|at| at.delay_cycles.map(u64::from))),
    column("region", Axis::Region, Number(|at| at.region.map(u64::from))),
    column("prefetch", Axis::Prefetch, Text(|at| at.prefetch.as_ref().map(spelled))),
    column("working_set_bytes", Axis::WorkingSet, Number(|at| at.working_set.map(|Bytes(bytes)| bytes))),
    // The order of traffic where it is part of the place, such as `random`.
    column("access", Axis::Access, Text(|at| at.access.as_ref().map(spelled))),
    column("block_bytes", Axis::Block, Number(|at| at.block.map(|Bytes(bytes)| bytes))),
    column("line", Axis::Line, Text(|at| at.line.map(use_of_line))),
    // Interleave weights by node: `0=3,2=1`.
    column("weights", Axis::Weights, Text(|at| at.weights.as_ref().map(ToString::to_string))),
];

/// `own`, `inherited`, `node` or `device`: the node is in a column of its own.
fn kind_of_place(place: MemoryPlace) -> String {
    let word = match place {
        MemoryPlace::Own => "own",
        MemoryPlace::Inherited => "inherited",
        MemoryPlace::Node(_) => "node",
        MemoryPlace::Device { .. } => "device",
    };
    word.to_owned()
}

/// How lines are made durable: `persisted:clwb`, or `read-back:clwb` where they are loaded again.
fn use_of_line(line: LineUse) -> String {
    match line {
        LineUse::Persisted(method) => format!("persisted:{}", method.name()),
        LineUse::ReadBack(method) => format!("read-back:{}", method.name()),
        other => spelled(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ChaseOrder, LineState, PrefetchRequest};
    use crate::traffic::{Access, Mix, PersistMethod};
    use crate::units::IdSet;
    use crate::wording;

    /// Coordinates that state everything.
    fn everything() -> Coordinates {
        Coordinates {
            cpu_node: Some(1),
            memory: Some(MemoryPlace::Node(2)),
            memory_dir: Some("/mnt/pmem".into()),
            cpu: Some(3),
            holder_cpu: Some(4),
            holder_node: Some(5),
            sharer_cpu: Some(6),
            state: Some(LineState::Hitm),
            cpus: Some(IdSet::one(7)),
            load_nodes: Some(IdSet::one(8)),
            order: Some(ChaseOrder::FullRandom),
            mix: Some(Mix::R2W1),
            access: Some(Access::Random),
            delay_cycles: Some(9),
            region: Some(10),
            prefetch: Some(PrefetchRequest::Off),
            block: Some(Bytes(64)),
            line: Some(LineUse::Persisted(PersistMethod::ALL[0])),
            weights: "0=3,2=1".parse().ok(),
            working_set: Some(Bytes::kib(4)),
        }
    }

    #[test]
    fn axes_are_called_as_in_results() {
        let at = serde_json::to_value(everything()).unwrap();
        let mut names: Vec<&str> = Axis::ALL.iter().map(|axis| axis.name()).collect();
        names.sort_unstable();
        assert_eq!(at.as_object().unwrap().keys().collect::<Vec<_>>(), names);
        assert_eq!(everything().axes().collect::<Vec<_>>(), Axis::ALL);
    }

    #[test]
    fn every_axis_has_a_column_and_words() {
        let at = everything();
        for axis in Axis::ALL {
            let without = at.without(*axis);
            assert!(!axis.is_in(&without) && without.axes().count() == Axis::ALL.len() - 1, "{axis:?}");
            let columns: Vec<&Column> = COLUMNS.iter().filter(|column| column.axis == *axis).collect();
            assert!(!columns.is_empty(), "{axis:?}");
            assert!(columns.iter().all(|column| column.value(&at).is_some() && column.value(&without).is_none()), "{axis:?}");
            // The state of lines is in the titles of tables.
            assert_eq!(wording::coordinates(&without) == wording::coordinates(&at), *axis == Axis::State, "{axis:?}");
        }
    }

    #[test]
    fn columns_have_numbers_and_words() {
        let shown = |at: &Coordinates| {
            COLUMNS.iter().filter_map(|column| Some(format!("{}={}", column.name, column.value(at)?))).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            shown(&everything()),
            "cpu=3 cpu_node=1 memory=node memory_node=2 memory_dir=/mnt/pmem holder_cpu=4 holder_node=5 sharer_cpu=6 state=hitm cpus=7 \
             load_nodes=8 order=full-random mix=2:1 delay_cycles=9 region=10 prefetch=off working_set_bytes=4096 access=random \
             block_bytes=64 line=persisted:clwb weights=0=3,2=1"
        );
        let device = Coordinates { memory: Some(MemoryPlace::Device { node: None }), ..Coordinates::default() };
        assert_eq!(shown(&device), "memory=device");
    }
}
