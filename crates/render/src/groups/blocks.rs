//! Persistent memory by size of access.

use memgauge_model::result::Measurement;
use memgauge_model::traffic::LineUse;
use memgauge_model::units::Bytes;

use crate::pivot::Pivot;

/// Node of the CPUs, and what they do.
pub(crate) type BlockRow = (Option<u32>, String);

/// A row for each node and mix or method, a column for each size of block.
pub(crate) fn by_block<'a>(ms: &[&'a Measurement]) -> Pivot<'a, BlockRow, Option<Bytes>> {
    Pivot::new(ms, |m| (row(m), m.at.block))
}

pub(crate) fn row(m: &Measurement) -> BlockRow {
    (m.at.cpu_node, access(m))
}

/// The mix; or what makes lines durable, and whether they are read again.
fn access(m: &Measurement) -> String {
    match m.at.line {
        Some(LineUse::ReadBack(method)) => format!("{}, then read", method.name()),
        Some(LineUse::Persisted(method)) => method.name().to_owned(),
        _ => m.at.mix.map(|mix| mix.to_string()).unwrap_or_default(),
    }
}
