//! Time as a horizontal axis.

use memgauge_model::result::Moment;

use crate::figure::axis::Axis;

/// Units of time, the shortest time that is shown in them, and their seconds.
const UNITS: [(&str, f64, f64); 4] =
    [("days", 172_800.0, 86_400.0), ("hours", 7_200.0, 3_600.0), ("minutes", 120.0, 60.0), ("seconds", 0.0, 1.0)];

/// The horizontal axis.
pub(super) struct Time {
    begin: u64,
    unit: &'static str,
    seconds: f64,
    end: f64,
}

impl Time {
    /// From the first of these moments to the last; `None` of none.
    pub(super) fn of<'a>(moments: impl Iterator<Item = &'a Moment> + Clone) -> Option<Self> {
        let (first, last) = (moments.clone().next()?, moments.last()?);
        let whole_s = last.monotonic_ns.saturating_sub(first.monotonic_ns) as f64 / 1e9;
        let (unit, _, seconds) = UNITS.into_iter().find(|(_, least, _)| whole_s >= *least)?;
        Some(Self { begin: first.monotonic_ns, unit, seconds, end: whole_s / seconds })
    }

    pub(super) fn at(&self, moment: &Moment) -> f64 {
        moment.monotonic_ns.saturating_sub(self.begin) as f64 / 1e9 / self.seconds
    }

    pub(super) fn axis(&self) -> Axis {
        Axis::linear(format!("Time ({})", self.unit), 0.0, self.end, 8)
    }
}
