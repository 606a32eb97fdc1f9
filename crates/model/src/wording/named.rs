//! Coordinates by name, for formats that programs read.

use serde::Serialize;

use super::spelled;
use crate::experiment::{Coordinates, MemoryPlace};
use crate::traffic::LineUse;

/// A coordinate's value; `None` where it does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedValue {
    /// A number.
    Number(Option<u64>),
    /// A word, or several.
    Word(Option<String>),
}

impl NamedValue {
    /// As text.
    pub fn text(self) -> Option<String> {
        match self {
            Self::Number(number) => number.map(|number| number.to_string()),
            Self::Word(word) => word,
        }
    }
}

/// How many coordinates have a name.
pub const NAMED: usize = 21;

/// The coordinates, each with its name, in the order of the columns of CSV.
pub fn named(at: &Coordinates) -> [(&'static str, NamedValue); NAMED] {
    fn number(of: Option<impl Into<u64>>) -> NamedValue {
        NamedValue::Number(of.map(Into::into))
    }
    fn word(of: Option<impl Serialize>) -> NamedValue {
        NamedValue::Word(of.map(|value| spelled(&value)))
    }
    let memory = at.memory.map(|place| match place {
        MemoryPlace::Own => "own",
        MemoryPlace::Inherited => "inherited",
        MemoryPlace::Node(_) => "node",
        MemoryPlace::Device { .. } => "device",
    });
    [
        ("cpu", number(at.cpu)),
        ("cpu_node", number(at.cpu_node)),
        ("memory", word(memory)),
        ("memory_node", number(at.memory_node())),
        ("memory_dir", word(at.memory_dir.as_ref())),
        ("holder_cpu", number(at.holder_cpu)),
        ("holder_node", number(at.holder_node)),
        ("sharer_cpu", number(at.sharer_cpu)),
        ("state", word(at.state)),
        // The loaders' CPUs, such as `0-3,8`.
        ("cpus", word(at.cpus.as_ref())),
        ("load_nodes", word(at.load_nodes.as_ref())),
        ("order", word(at.order)),
        ("mix", word(at.mix)),
        ("delay_cycles", number(at.delay_cycles)),
        ("region", number(at.region)),
        ("prefetch", word(at.prefetch)),
        ("working_set_bytes", number(at.working_set.map(|size| size.0))),
        // The order of traffic where it is part of the place, such as `random`.
        ("access", word(at.access)),
        ("block_bytes", number(at.block.map(|size| size.0))),
        ("line", word(at.line.map(line))),
        // By node: `0=3,2=1`.
        ("weights", word(at.weights.as_ref().map(ToString::to_string))),
    ]
}

/// How lines are made durable: `persisted:clwb`, or `read-back:clwb` where they are loaded again.
fn line(of: LineUse) -> String {
    match of {
        LineUse::Persisted(method) => format!("persisted:{}", method.name()),
        LineUse::ReadBack(method) => format!("read-back:{}", method.name()),
        other => spelled(&other),
    }
}
