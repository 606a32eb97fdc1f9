//! Families of gauges as text, by the Prometheus project's own library.

use std::collections::BTreeMap;
use std::fmt;

use memgauge_model::printable::escape_controls;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{self, Registry};

use crate::format::RenderError;

/// Label names and values.
pub(super) type Labels = BTreeMap<String, String>;

/// The name and the value of a label.
pub(super) fn label(name: &'static str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

/// Both together.
pub(super) fn with(shared: &Labels, more: impl IntoIterator<Item = (String, String)>) -> Labels {
    shared.clone().into_iter().chain(more).collect()
}

/// Begins the names of all families.
const PREFIX: &str = "memgauge";

/// The unit of a family: the base units that the convention asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Bytes,
    Seconds,
    BytesPerSecond,
    Hertz,
}

impl Unit {
    /// A value in nanoseconds, GB/s or GHz in the base unit. The point is moved in its decimal digits, so that 104.3 ns stays 1.043e-7 s.
    pub(super) fn in_base(self, value: f64) -> Option<f64> {
        let exponent = match self {
            Self::None | Self::Bytes => 0,
            Self::Seconds => -9,
            Self::BytesPerSecond | Self::Hertz => 9,
        };
        format!("{value}e{exponent}").parse().ok().filter(|v: &f64| v.is_finite())
    }

    fn name(self) -> Option<registry::Unit> {
        match self {
            Self::None => None,
            Self::Bytes => Some(registry::Unit::Bytes),
            Self::Seconds => Some(registry::Unit::Seconds),
            Self::BytesPerSecond => Some(registry::Unit::Other("bytes_per_second".into())),
            Self::Hertz => Some(registry::Unit::Other("hertz".into())),
        }
    }
}

/// Gauges of one name.
#[derive(Debug)]
pub(super) struct Family {
    name: String,
    help: String,
    unit: Option<registry::Unit>,
    samples: Vec<(Vec<(String, String)>, f64)>,
}

impl Family {
    pub(super) fn new(name: &str, help: &str, unit: Unit, samples: BTreeMap<Labels, f64>) -> Self {
        let clean = |labels: Labels| labels.into_iter().map(|(name, value)| (name, escape_controls(&value))).collect();
        // Of labels that are equal now, one stays: a collector takes no series twice.
        let samples: BTreeMap<Vec<(String, String)>, f64> = samples.into_iter().map(|(labels, value)| (clean(labels), value)).collect();
        Self { name: name.into(), help: help.into(), unit: unit.name(), samples: samples.into_iter().collect() }
    }
}

impl Collector for Family {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauges = encoder.encode_descriptor(&self.name, &self.help, self.unit.as_ref(), MetricType::Gauge)?;
        self.samples.iter().try_for_each(|(labels, value)| match labels.as_slice() {
            [] => gauges.encode_gauge(value),
            _ => gauges.encode_family(labels)?.encode_gauge(value),
        })
    }
}

/// All families that have a sample.
pub(super) fn encode(families: Vec<Family>) -> Result<Vec<u8>, RenderError> {
    // A collector each instead of the library's own families: those are hash maps, and the same result shall give the same bytes.
    let mut registry = Registry::with_prefix(PREFIX);
    for family in families.into_iter().filter(|family| !family.samples.is_empty()) {
        registry.register_collector(Box::new(family));
    }
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text.into_bytes())
}

/// The name of a label of the user's: what the format does not allow becomes `_`.
pub(super) fn user_label(key: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("label_{}", key.chars().map(allowed).collect::<String>())
}

/// The user's labels. Of keys that get one name, all but the first get a number behind it.
pub(super) fn user_labels(labels: &BTreeMap<String, String>) -> Labels {
    let mut named = Labels::new();
    for (key, value) in labels {
        let name = user_label(key);
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        if let Some(free) = std::iter::once(name.clone()).chain(numbered).find(|name| !named.contains_key(name)) {
            named.insert(free, value.clone());
        }
    }
    named
}

/// Two keys of labels that get one name, if there are any, and that name.
pub fn same_label<'a>(keys: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, &'a str, String)> {
    let mut named: BTreeMap<String, &str> = BTreeMap::new();
    keys.into_iter().find_map(|key| named.insert(user_label(key), key).map(|other| (other, key, user_label(key))))
}
