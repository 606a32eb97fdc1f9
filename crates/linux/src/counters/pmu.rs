//! The kernel's units that count events, from sysfs: the events that they name, and the bits of a code.

use std::collections::BTreeMap;
use std::path::Path;

use memgauge_model::units::IdSet;

use super::perf_event::{Config, CounterError};
use crate::tree::Tree;

/// The folder of the units, below the root.
const DEVICES: &str = "sys/bus/event_source/devices";

/// A field of a code: bits of `config`, `config1` or `config2`, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    word: usize,
    /// First and last bit.
    ranges: Vec<(u32, u32)>,
}

impl Field {
    /// Reads `config:0-7,32-35`.
    fn parse(text: &str) -> Option<Self> {
        let (word, bits) = text.trim().split_once(':')?;
        let word = match word {
            "config" => 0,
            "config1" => 1,
            "config2" => 2,
            _ => return None,
        };
        let range = |part: &str| -> Option<(u32, u32)> {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            (low <= high && high < 64).then_some((low, high))
        };
        Some(Self { word, ranges: bits.split(',').map(range).collect::<Option<_>>()? })
    }

    /// Stores a value in the field; `None` when it does not fit.
    fn store(&self, words: &mut [u64; 3], value: u64) -> Option<()> {
        let mut rest = value;
        for &(low, high) in &self.ranges {
            let bits = high - low + 1;
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            words[self.word] |= (rest & mask) << low;
            rest = rest.checked_shr(bits).unwrap_or(0);
        }
        (rest == 0).then_some(())
    }
}

/// A unit that counts events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pmu {
    /// Its name, such as `cpu` or `armv8_pmuv3_0`.
    pub(crate) name: String,
    /// `perf_event_attr.type`.
    pub(crate) kind: u32,
    /// The CPUs whose events it counts or, for a unit of the chip, the CPUs to open it on; `None` when sysfs shows neither.
    pub(crate) cpus: Option<IdSet>,
    /// Events that it names, and their codes.
    pub(crate) events: BTreeMap<String, String>,
    format: BTreeMap<String, Field>,
}

impl Pmu {
    fn read(tree: Tree<'_>, name: &str) -> Option<Self> {
        let folder = format!("{DEVICES}/{name}");
        let kind = tree.parsed(&format!("{folder}/type"))?;
        let cpus = ["cpus", "cpumask"].iter().find_map(|file| tree.ids(&format!("{folder}/{file}")));
        let texts = |sub: &str| -> Vec<(String, String)> {
            let names = tree.names(&format!("{folder}/{sub}"));
            names.into_iter().filter_map(|n| tree.text(&format!("{folder}/{sub}/{n}")).map(|text| (n, text))).collect()
        };
        // Files such as `cas_count_read.scale` describe the event `cas_count_read`.
        let describes = |name: &str| [".scale", ".unit", ".snapshot", ".per-pkg"].iter().any(|ending| name.ends_with(ending));
        let events = texts("events").into_iter().filter(|(n, _)| !describes(n)).collect();
        let format = texts("format").into_iter().filter_map(|(n, text)| Some((n, Field::parse(&text)?))).collect();
        Some(Self { name: name.to_owned(), kind, cpus, events, format })
    }

    /// Encodes terms such as `event=0xd1,umask=0x8`. `config=…` sets a whole word, and a name alone has the value 1.
    pub(crate) fn encode(&self, terms: &str) -> Result<Config, CounterError> {
        let mut words = [0; 3];
        for term in terms.split(',').map(str::trim).filter(|t| !t.is_empty()) {
            let (key, value) = term.split_once('=').unwrap_or((term, "1"));
            let number = parse_number(value).ok_or_else(|| CounterError::Unknown(format!("has a code that is not a number: '{term}'")))?;
            if let Some(word) = ["config", "config1", "config2"].iter().position(|w| *w == key) {
                words[word] |= number;
                continue;
            }
            let field = self
                .format
                .get(key)
                .ok_or_else(|| CounterError::Unknown(format!("needs '{key}', which the unit {} does not have", self.name)))?;
            field.store(&mut words, number).ok_or_else(|| CounterError::Unknown(format!("has a value that is too large: '{term}'")))?;
        }
        Ok(Config { kind: self.kind, words })
    }
}

/// A number in hexadecimal or decimal: `0x3c` or `60`.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The units of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pmus(Vec<Pmu>);

impl Pmus {
    /// Reads the units below `root`.
    pub(crate) fn read(root: &Path) -> Self {
        let tree = Tree::new(root);
        Self(tree.names(DEVICES).iter().filter_map(|name| Pmu::read(tree, name)).collect())
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Pmu> {
        self.0.iter().find(|p| p.name == name)
    }

    /// The unit that counts the events of the core of `cpu`: `cpu`, or the one of several units that has this CPU.
    pub(crate) fn core_unit(&self, cpu: u32) -> Option<&Pmu> {
        let core = |p: &&Pmu| {
            p.name == "cpu"
                || ["cpu_core", "cpu_atom"].contains(&p.name.as_str())
                || p.name.starts_with("armv")
                || p.events.contains_key("cpu_cycles")
        };
        self.0.iter().filter(core).find(|p| p.cpus.as_ref().is_none_or(|cpus| cpus.is_empty() || cpus.contains(cpu)))
    }

    /// The units whose name begins so.
    pub(crate) fn beginning<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Pmu> {
        self.0.iter().filter(move |p| p.name.starts_with(prefix))
    }

    /// The units whose name is `prefix` and a number, such as one for each channel of a memory controller.
    pub(crate) fn numbered<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Pmu> {
        let numbered = move |name: &str| name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        self.0.iter().filter(move |p| numbered(&p.name))
    }
}
