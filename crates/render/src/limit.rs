//! The limit of the memory bus, as tables, bars and charts show it.

use memgauge_model::result::Measurement;
use memgauge_model::traffic::Mix;
use memgauge_model::wording::reasons::limit_source;

use crate::number::{measured, number, value_of};

/// A limit of the bus, and who states it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    /// In GB/s.
    pub(crate) gbs: f64,
    source: String,
}

impl Limit {
    fn for_measurement(m: &Measurement) -> Option<Self> {
        let gbs = m.verdict.limit.filter(|l| l.is_finite() && *l > 0.0)?;
        let source = m.verdict.limit_source.map(|s| format!(" ({})", limit_source(s, m.verdict.limit_share))).unwrap_or_default();
        Some(Self { gbs, source })
    }

    /// `332.8 GB/s (smbios)`.
    pub(crate) fn text(&self) -> String {
        format!("{} GB/s{}", number(self.gbs), self.source)
    }
}

/// The limit that all measurements with a value share; `None` when they have different ones, or one of them has none.
pub(crate) fn limit(ms: &[&Measurement]) -> Option<Limit> {
    let mut limits = measured(ms).into_iter().map(Limit::for_measurement);
    let first = limits.next()??;
    limits.all(|l| l.is_some_and(|l| l.gbs == first.gbs)).then_some(first)
}

/// All limits, each once, lowest first.
pub(crate) fn limits(ms: &[&Measurement]) -> Vec<Limit> {
    let mut limits: Vec<Limit> = measured(ms).into_iter().filter_map(Limit::for_measurement).collect();
    limits.sort_by(|a, b| a.gbs.total_cmp(&b.gbs).then_with(|| a.source.cmp(&b.source)));
    limits.dedup();
    limits
}

/// The limit of the bus, converted to the bytes that the program reads and writes, in GB/s. It is lower where stores read lines first,
/// because the bus then moves more than the program asks for. `None` where it is not known what the bus moves.
pub(crate) fn limit_of_program(m: &Measurement) -> Option<f64> {
    let limit = Limit::for_measurement(m)?.gbs;
    let value = value_of(&m.estimate).filter(|v| *v > 0.0)?;
    match m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).filter(|b| b.is_finite() && *b > 0.0) {
        // A difference of a millionth is rounding.
        Some(bus) if bus / value - 1.0 < 1e-6 => Some(limit),
        Some(bus) => Some(limit * value / bus),
        None => m.at.mix.is_some_and(moves_what_it_asks).then_some(limit),
    }
}

/// What the bus moved over its limit. `None` where it is not known what the bus moved, and where no limit is known.
pub(crate) fn share_of_limit(m: &Measurement) -> Option<f64> {
    Some(value_of(&m.estimate)? / limit_of_program(m)?)
}

/// Whether the bus moves exactly what the program reads and writes, whatever the machine does at stores.
fn moves_what_it_asks(mix: Mix) -> bool {
    mix == Mix::AllReads || mix.non_temporal()
}

/// Whether that holds for all measurements of a chart. Only then can its axis, in bytes of programs, show the limit of the bus.
pub(crate) fn bus_moves_what_is_asked(ms: &[&Measurement]) -> bool {
    ms.iter().all(|m| m.at.mix.is_some_and(moves_what_it_asks))
}

/// A limit at more than this factor above the peak would squeeze what is drawn: it goes into a note.
pub(crate) const MAX_LIMIT_RATIO: f64 = 1.6;

/// The limit in words, for a chart that does not show it.
pub(crate) fn limit_note(limit: &Limit, ms: &[&Measurement]) -> String {
    let why = if bus_moves_what_is_asked(ms) {
        ""
    } else {
        " for the traffic on the bus, which is more than programs ask for where stores read first"
    };
    format!("Limit: {}{why}.", limit.text())
}
