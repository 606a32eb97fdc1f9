//! Numbers for people: three or four significant digits, by the same rule everywhere.

use std::collections::BTreeSet;

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::Unit;
use memgauge_model::result::Measurement;
use memgauge_model::units::Bytes;

/// Digits after the point: two below 10, one below 1000, none above, for nanoseconds and GB/s alike. Below 1, as many as three significant
/// digits need, at most nine.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v > 0.0 && v < 0.9995 => ((2.0 - v.log10().floor()) as usize).min(9),
        v if v < 9.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    }
}

/// A value without its unit; a dash if it is not finite.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return DASH.to_owned();
    }
    if value.abs() >= 1e7 {
        return format!("{value:.1e}");
    }
    let d = decimals(value);
    format!("{value:.d$}")
}

/// A number that comes from a measurement: `~` before it where that is not reliable.
pub(crate) fn marked(m: &Measurement, value: f64) -> String {
    doubted(!m.is_reliable(), value)
}

/// The same, with a sign before it if the number is to be doubted.
pub(crate) fn doubted(doubt: bool, value: f64) -> String {
    let sign = if doubt { "~" } else { "" };
    format!("{sign}{}", number(value))
}

/// Digits of footnote marks.
pub(crate) const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

/// What stands where nothing was measured.
pub(crate) const DASH: &str = "—";

/// A value that may be missing.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| DASH.to_owned(), number)
}

/// The measured value, unless it is missing or no number.
pub(crate) fn value_of(estimate: &Estimate) -> Option<f64> {
    estimate.value.filter(|v| v.is_finite())
}

/// The measurements that have a value.
pub(crate) fn measured<'a>(ms: &[&'a Measurement]) -> Vec<&'a Measurement> {
    ms.iter().copied().filter(|m| value_of(&m.estimate).is_some()).collect()
}

/// If one half of an interval is more than this many times the other, its ends are printed instead of `±`.
const SKEWED: f64 = 1.5;
/// Unless the larger half is at most this share of the value: then the ends would differ from the value in the last digits only.
const NARROW: f64 = 0.05;

/// The 95 % interval: `±0.4`, the larger half, rounded up to the digits that the value shows, so that it never claims more than was
/// measured; or `(16.0–44.2)` where it is wide and asymmetric. Empty without an interval.
pub(crate) fn half_width(estimate: &Estimate) -> String {
    value_of(estimate).map_or_else(String::new, |value| half_width_of(value, estimate.ci95_low, estimate.ci95_high))
}

/// The same of a value with the ends of its interval.
pub(crate) fn half_width_of(value: f64, low: Option<f64>, high: Option<f64>) -> String {
    let (Some(low), Some(high)) = (low, high) else {
        return String::new();
    };
    let (down, up) = ((value - low).max(0.0), (high - value).max(0.0));
    let half = down.max(up);
    if !half.is_finite() {
        return String::new();
    }
    if half > SKEWED * down.min(up) && half > NARROW * value.abs() {
        return format!("({})", from_to(number(low), number(high)));
    }
    let d = decimals(value);
    let scale = 10f64.powi(d as i32);
    // The small constant keeps 0.4 from becoming 0.5 by binary rounding.
    let up = (half * scale - 1e-6).max(0.0).ceil() / scale;
    format!("±{up:.d$}")
}

/// The unit as printed.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::GigabytesPerSecond => "GB/s",
    }
}

/// Memory in the binary unit that keeps the number short: `7.8 GiB`, `512 MiB`.
pub(crate) fn human(bytes: Bytes) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let Some((size, unit)) = units.into_iter().find(|(size, _)| bytes.0 >= *size) else {
        return format!("{} B", bytes.0);
    };
    let value = bytes.0 as f64 / size as f64;
    let text = if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") };
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// The same with two digits for quarters, which are usual for caches and working sets: `1.25 MiB`.
pub(crate) fn size(bytes: Bytes) -> String {
    let unit = [1u64 << 40, 1 << 30, 1 << 20, 1 << 10].into_iter().find(|unit| bytes.0 >= *unit).unwrap_or(1);
    let text = human(bytes);
    match (bytes.0 % unit == unit / 4 || bytes.0 % unit == unit / 4 * 3, text.rsplit_once(' ')) {
        (true, Some((_, name))) if unit > 1 => format!("{:.2} {name}", bytes.0 as f64 / unit as f64),
        _ => text,
    }
}

/// A share from 0 to 1 in percent: with tenths below 10 %, unless it is a whole number.
pub(crate) fn percent(share: f64) -> String {
    let p = share * 100.0;
    if !p.is_finite() {
        return DASH.to_owned();
    }
    if p.abs() >= 9.95 {
        return format!("{p:.0} %");
    }
    let text = format!("{p:.1}");
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Seconds as `0.8 s`, `48 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn seconds(s: f64) -> String {
    if !s.is_finite() || s < 0.0 {
        return DASH.to_owned();
    }
    match s {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 119.5 => format!("{s:.0} s"),
        s if s < 7170.0 => format!("{} min {:02} s", s.round() as u64 / 60, s.round() as u64 % 60),
        s => format!("{} h {:02} min", (s / 60.0).round() as u64 / 60, (s / 60.0).round() as u64 % 60),
    }
}

/// `3 nodes`, `1 node`.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// `41.2` or `41.2–48.3`, of values in any order; `None` of none.
pub(crate) fn range(values: impl IntoIterator<Item = f64>) -> Option<String> {
    let (low, high) = bounds(values)?;
    Some(from_to(number(low), number(high)))
}

/// `41.2–48.3`, or one of them where both read the same.
pub(crate) fn from_to(low: String, high: String) -> String {
    if low == high { low } else { format!("{low}–{high}") }
}

/// The smallest and the largest size: `512 MiB`, or `256 MiB–1 GiB`; `None` of none.
pub(crate) fn sizes(sizes: impl IntoIterator<Item = Bytes>) -> Option<String> {
    let all: BTreeSet<Bytes> = sizes.into_iter().collect();
    Some(from_to(human(*all.first()?), human(*all.last()?)))
}

/// The smallest and the largest.
pub(crate) fn bounds(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| v.is_finite()).fold(None, |b, v| {
        let (low, high) = b.unwrap_or((v, v));
        Some((low.min(v), high.max(v)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_size_of_the_value() {
        let shown = [1.2345, 9.996, 98.24, 999.94, 999.96, 12345.6].map(number);
        assert_eq!(shown, ["1.23", "10.0", "98.2", "999.9", "1000", "12346"]);
        let small = [0.0, 0.0041, -0.0041, 0.05, 0.1234, 0.99949, 0.99951].map(number);
        assert_eq!(small, ["0.00", "0.00410", "-0.00410", "0.0500", "0.123", "0.999", "1.00"]);
        assert_eq!(number(f64::NAN), "—");
    }

    #[test]
    fn narrow_intervals_are_their_larger_half_rounded_up() {
        let e = |low, high| Estimate { value: Some(98.2), ci95_low: Some(low), ci95_high: Some(high), ..Estimate::default() };
        assert_eq!(half_width(&e(98.1, 98.6)), "±0.4");
        assert_eq!(half_width(&e(98.19, 98.21)), "±0.1");
        assert_eq!(half_width(&e(98.2, 98.2)), "±0.0");
        assert_eq!(half_width_of(0.0041, Some(0.0040), Some(0.0042)), "±0.00010");
        assert_eq!(half_width(&Estimate { value: Some(98.2), ..Estimate::default() }), "");
    }

    #[test]
    fn wide_asymmetric_intervals_show_their_ends() {
        let e = |low, high| Estimate { value: Some(36.0), ci95_low: Some(low), ci95_high: Some(high), ..Estimate::default() };
        assert_eq!(half_width(&e(16.0, 44.0)), "(16.0–44.0)");
        assert_eq!(half_width(&e(35.5, 14866.0)), "(35.5–14866)");
        assert_eq!(half_width(&e(26.0, 44.0)), "±10.0", "nearly symmetric");
    }

    #[test]
    fn sizes_and_times_stay_short() {
        assert_eq!(human(Bytes(8_321_499_136)), "7.8 GiB");
        assert_eq!(human(Bytes::mib(512)), "512 MiB");
        assert_eq!(human(Bytes(100)), "100 B");
        let sizes = [Bytes::kib(1280), Bytes::kib(1792), Bytes::kib(2560), Bytes::mib(48), Bytes(3), Bytes(1 << 30), Bytes::kib(1300)];
        assert_eq!(sizes.map(size), ["1.25 MiB", "1.75 MiB", "2.5 MiB", "48 MiB", "3 B", "1 GiB", "1.3 MiB"]);
        assert_eq!([0.83, 48.2, 200.0, 7500.0].map(seconds), ["0.8 s", "48 s", "3 min 20 s", "2 h 05 min"]);
        assert_eq!([0.64, 0.013, 0.01, 0.004, 0.0].map(percent), ["64 %", "1.3 %", "1 %", "0.4 %", "0 %"]);
    }
}
