//! Bandwidths by mix and by number of CPUs.

use std::collections::BTreeMap;

use memgauge_core::result::Measurement;
use memgauge_core::traffic::Mix;
use memgauge_core::units::IdSet;

use crate::number::value_of;

/// How many threads loaded memory.
pub(crate) fn thread_count(m: &Measurement) -> usize {
    m.at.cpus.as_ref().map_or(m.evidence.threads as usize, IdSet::len)
}

/// The measurement with the highest value of each mix.
pub(crate) fn highest_by_mix<'a>(ms: &[&'a Measurement]) -> BTreeMap<Option<Mix>, &'a Measurement> {
    let value = |m: &Measurement| value_of(&m.estimate).unwrap_or(f64::MIN);
    let mut highest: BTreeMap<Option<Mix>, &Measurement> = BTreeMap::new();
    for m in ms {
        let best = highest.entry(m.at.mix).or_insert(m);
        if value(m) > value(best) {
            *best = m;
        }
    }
    highest
}
