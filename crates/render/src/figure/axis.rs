//! Axes: which values they span, where their ticks are, and what the ticks say.

use memgauge_model::units::Bytes;

use crate::number::{number, size};

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// A place on an axis; the minor ones have no label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: Option<String>,
}

/// The kind of values on an axis.
#[derive(Debug, Clone, PartialEq)]
enum Values {
    Numbers,
    Bytes,
    Counts,
    /// Places in a list of names.
    Names(Vec<String>),
}

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) ticks: Vec<Tick>,
    values: Values,
}

/// Finite bounds that are never equal, so that any values make a scale.
fn sane(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = (if low.is_finite() { low } else { 0.0 }, if high.is_finite() { high } else { 1.0 });
    let (low, high) = (low.min(high), low.max(high));
    if high - low > high.abs().max(low.abs()) * 1e-6 {
        (low, high)
    } else {
        (low - low.abs() * 0.05 - 0.5e-6, high + high.abs() * 0.05 + 0.5e-6)
    }
}

/// The step of 1, 2 or 5 times a power of ten that makes at most `max_ticks` steps of a range.
fn step(range: f64, max_ticks: usize) -> f64 {
    let rough = range / max_ticks.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * magnitude).find(|s| *s >= rough * 0.999_999).unwrap_or(magnitude * 10.0)
}

/// A multiple of the step with as many digits as the step needs.
fn multiple(value: f64, step: f64) -> String {
    let digits = (0..=9).find(|d| (step * 10f64.powi(*d)).fract().min(1.0 - (step * 10f64.powi(*d)).fract()) < 1e-6).unwrap_or(9);
    if value.abs() >= 1e7 {
        return format!("{value:.1e}");
    }
    let text = format!("{value:.*}", digits as usize);
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') { "0".into() } else { text.replace('-', "−") }
}

impl Axis {
    /// A linear axis that holds the values, with at most about `max_ticks` ticks, ending at ticks.
    pub(crate) fn linear(title: impl Into<String>, low: f64, high: f64, max_ticks: usize) -> Self {
        let (low, high) = sane(low, high);
        let step = step(high - low, max_ticks);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ticks = (0..=((last - first) as usize).min(100))
            .map(|i| (first + i as f64) * step)
            .map(|value| Tick { value, label: Some(multiple(value, step)) })
            .collect();
        Self { title: title.into(), scale: Scale::Linear, low: first * step, high: last * step, ticks, values: Values::Numbers }
    }

    /// Whole numbers such as CPUs, every nth of them labelled; half a step of room at both ends.
    pub(crate) fn indices(title: impl Into<String>, names: &[String], max_ticks: usize) -> Self {
        let stride = (0..).map(|p| 1usize << p).find(|s| names.len().div_ceil(*s) <= max_ticks.max(1)).unwrap_or(1);
        let label = |i: usize| names.get(i).cloned();
        let ticks = (0..names.len()).step_by(stride).map(|i| Tick { value: i as f64, label: label(i) }).collect();
        Self {
            title: title.into(),
            scale: Scale::Linear,
            low: -0.5,
            high: names.len().max(1) as f64 - 0.5,
            ticks,
            values: Values::Names(names.to_vec()),
        }
    }

    /// Decades with ticks at 1, 2 and 5, or only at powers of ten where there are many. Values must be above 0.
    pub(crate) fn decades(title: impl Into<String>, low: f64, high: f64) -> Self {
        let (low, high) = sane(low.max(1e-9), high.max(1e-9));
        let low = low.max(high * 1e-12).max(1e-12);
        let wide = high / low > 1e4;
        let labelled = |m: u32| if wide { m == 1 } else { matches!(m, 1 | 2 | 5) };
        let mut ticks = Vec::new();
        for power in (low.log10().floor() as i32)..=(high.log10().ceil() as i32) {
            for m in 1..10u32 {
                let value = f64::from(m) * 10f64.powi(power);
                ticks.push(Tick { value, label: labelled(m).then(|| multiple(value, 10f64.powi(power))) });
            }
        }
        let labels = |t: &&Tick| t.label.is_some();
        let bottom = ticks.iter().filter(labels).rfind(|t| t.value <= low * 1.0001).map_or(low, |t| t.value);
        let top = ticks.iter().filter(labels).find(|t| t.value >= high * 0.9999).map_or(high, |t| t.value);
        ticks.retain(|t| t.value >= bottom * 0.9999 && t.value <= top * 1.0001);
        Self { title: title.into(), scale: Scale::Logarithmic, low: bottom, high: top, ticks, values: Values::Numbers }
    }

    /// Powers of two of bytes, every nth of them labelled.
    pub(crate) fn bytes(title: impl Into<String>, low: Bytes, high: Bytes, max_ticks: usize) -> Self {
        let powers = |b: Bytes| b.0.max(1).ilog2();
        // The last power of two that 64 bits hold is the last tick, and not the only one.
        let (first, last) = (powers(low).min(62), if high.0.is_power_of_two() { powers(high) } else { powers(high) + 1 });
        let last = last.clamp(first + 1, 63);
        let every = (last - first) as usize / max_ticks.max(1) + 1;
        let label = |p: u32| ((p - first) as usize).is_multiple_of(every).then(|| Bytes(1 << p).to_string());
        let ticks = (first..=last).map(|p| Tick { value: 2f64.powi(p as i32), label: label(p) }).collect();
        let low = low.0.max(1) as f64;
        let high = (high.0 as f64).max(low * 2.0);
        let mut axis = Self { title: title.into(), scale: Scale::Logarithmic, low, high, ticks, values: Values::Bytes };
        axis.ticks.retain(|t| t.value >= low * 0.9999 && t.value <= high * 1.0001);
        axis
    }

    /// Powers of two of a count.
    pub(crate) fn doublings(title: impl Into<String>, low: u64, high: u64, max_ticks: usize) -> Self {
        let axis = Self::bytes(title, Bytes(low.max(1)), Bytes(high.max(2)), max_ticks);
        let plain = |t: &Tick| Tick { value: t.value, label: t.label.as_ref().map(|_| format!("{:.0}", t.value)) };
        Self { ticks: axis.ticks.iter().map(plain).collect(), values: Values::Counts, ..axis }
    }

    /// A value in words: `98.2`, `32 KiB`, `CPU 3`.
    pub(crate) fn name(&self, value: f64) -> String {
        match &self.values {
            Values::Numbers => number(value),
            Values::Bytes => size(Bytes(value.max(0.0) as u64)),
            Values::Counts => format!("{value:.0}"),
            Values::Names(names) => names.get(value.max(0.0).round() as usize).cloned().unwrap_or_default(),
        }
    }

    /// The place of a value: 0 at the axis's low end, 1 at the high end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value.max(self.low * 1e-3) / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().filter_map(|t| t.label.as_deref()).collect()
    }

    #[test]
    fn even_axes_end_at_round_ticks() {
        let axis = Axis::linear("", 0.0, 159.2, 8);
        assert_eq!(labels(&axis), ["0", "20", "40", "60", "80", "100", "120", "140", "160"]);
        assert_eq!(labels(&Axis::linear("", 0.0, 0.31, 4)), ["0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(labels(&Axis::linear("", -3.0, 6.0, 4)), ["−5.0", "−2.5", "0", "2.5", "5.0", "7.5"]);
        assert_eq!((axis.share(0.0), axis.share(80.0), axis.share(1e9)), (0.0, 0.5, 1.0));
    }

    #[test]
    fn values_read_as_on_the_axis() {
        assert_eq!(Axis::linear("", 0.0, 159.2, 8).name(98.24), "98.2");
        assert_eq!(Axis::bytes("", Bytes::kib(4), Bytes::mib(256), 9).name(49_152.0), "48 KiB");
        assert_eq!(Axis::doublings("", 1, 48, 8).name(48.0), "48");
        let names = ["CPU 0", "CPU 8"].map(str::to_owned);
        assert_eq!([0.0, 1.0, 7.0].map(|v| Axis::indices("", &names, 10).name(v)), ["CPU 0", "CPU 8", ""]);
    }

    #[test]
    fn an_axis_can_be_made_of_anything() {
        for (low, high) in [(5.0, 5.0), (0.0, 0.0), (f64::NAN, f64::INFINITY), (1e300, -1e300), (-4.0, -4.0), (1e-300, 1e-299)] {
            for axis in [Axis::linear("", low, high, 6), Axis::decades("", low, high)] {
                assert!(axis.high > axis.low && (2..=200).contains(&axis.ticks.len()), "{low} {high}: {axis:?}");
            }
        }
    }

    #[test]
    fn decades_and_doublings() {
        assert_eq!(labels(&Axis::decades("", 1.1, 148.0)), ["1", "2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(labels(&Axis::decades("", 0.02, 3e5)), ["0.01", "0.1", "1", "10", "100", "1000", "10000", "100000", "1000000"]);
        let sizes = Axis::bytes("", Bytes::kib(4), Bytes::mib(256), 9);
        assert_eq!(labels(&sizes), ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB", "64 MiB", "256 MiB"]);
        assert_eq!(labels(&Axis::doublings("", 1, 48, 8)), ["1", "2", "4", "8", "16", "32"]);
        for (low, high) in [(0, 0), (1 << 62, u64::MAX), (1 << 63, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
            let axis = Axis::bytes("", Bytes(low), Bytes(high), 9);
            assert!(axis.high > axis.low && axis.share(axis.high) == 1.0, "{low} {high}: {axis:?}");
        }
    }

    #[test]
    fn indices_are_thinned_by_powers_of_two() {
        let names: Vec<String> = (0..1024).map(|n| n.to_string()).collect();
        assert_eq!(labels(&Axis::indices("", &names, 10)), ["0", "128", "256", "384", "512", "640", "768", "896"]);
    }
}
