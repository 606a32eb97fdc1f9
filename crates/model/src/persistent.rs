//! Persistent memory as the kernel describes it: a namespace, its region, and the modules behind it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::note::{Note, NoteCode};
use crate::units::Bytes;

/// A namespace of persistent memory with a block device, and what it is part of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersistentDevice {
    /// The namespace, such as `namespace0.0`.
    pub namespace: Option<String>,
    /// Its mode as ndctl calls it: `fsdax`, `sector`, `devdax`, `raw`.
    pub mode: Option<String>,
    /// Its size.
    pub bytes: Option<Bytes>,
    /// The region that it is in, such as `region0`.
    pub region: String,
    /// The region's size.
    pub region_bytes: Option<Bytes>,
    /// Memory node of the region as the kernel states it.
    pub node: Option<u32>,
    /// How far stores must go to be durable: `memory_controller` or `cpu_cache`.
    pub persistence_domain: Option<String>,
    /// The region's interleave set: the cookie that names it in labels, in hexadecimal digits.
    pub interleave_set: Option<String>,
    /// Whether the region may only be read.
    pub read_only: bool,
    /// Ranges with known errors in the region.
    pub bad_ranges: u32,
    /// Whether the region's bus is being searched for errors, which takes bandwidth; absent where the kernel does not say.
    pub scrubbing: Option<bool>,
    /// The source that announced the memory, such as `ACPI.NFIT`, `CXL`, `e820`.
    pub provider: Option<String>,
    /// Why it does not survive a power cut like real modules; absent where nothing says so.
    pub emulated: Option<String>,
    /// The modules that the region is spread over.
    pub modules: Vec<PersistentModule>,
    /// Persistent capacity of every module of the machine by name: as the kernel states it (CXL), otherwise at least this much: the
    /// sum of what all regions use of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacities: BTreeMap<String, Bytes>,
}

/// A module (DIMM, CXL device) of persistent memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersistentModule {
    /// The kernel's name, such as `nmem0`.
    pub name: String,
    /// What the region uses of it.
    pub bytes: Option<Bytes>,
    /// All of its persistent capacity, where the kernel states it (CXL).
    pub capacity: Option<Bytes>,
    /// Identity of vendor and device, as in `0x8089:0x5141`.
    pub model: Option<String>,
    /// Serial number as the kernel writes it.
    pub serial: Option<String>,
    /// Version of its firmware, where the kernel states it without vendor tools (CXL).
    pub firmware: Option<String>,
    /// State flags that the platform set, such as `save_fail`, `smart_event`, `not_armed`. None is good.
    pub faults: Vec<String>,
    /// Times that power was lost before it had saved everything.
    pub dirty_shutdowns: Option<u64>,
    /// State of its lock: `disabled`, `unlocked`, `locked`, `frozen`, …
    pub security: Option<String>,
}

/// A region of persistent memory, and what its namespaces are used as.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersistentRegion {
    /// The kernel's name, such as `region0`.
    pub name: String,
    /// Its size.
    pub bytes: Option<Bytes>,
    /// The bytes that no namespace has taken; absent if the kernel does not say.
    pub available: Option<Bytes>,
    /// Its memory node as the kernel states it.
    pub node: Option<u32>,
    /// How far stores must go to be durable: `memory_controller` or `cpu_cache`.
    pub persistence_domain: Option<String>,
    /// Its interleave set: the cookie that names it in labels, in hexadecimal digits.
    pub interleave_set: Option<String>,
    /// Whether it may only be read.
    pub read_only: bool,
    /// Ranges with known errors in it.
    pub bad_ranges: u32,
    /// Whether its bus is being searched for errors, which takes bandwidth; absent where the kernel does not say.
    pub scrubbing: Option<bool>,
    /// The source that announced the memory, such as `ACPI.NFIT`, `CXL`, `e820`.
    pub provider: Option<String>,
    /// Why it does not survive a power cut like real modules; absent where nothing says so.
    pub emulated: Option<String>,
    /// The modules that it is spread over. Their serial numbers are left out: they identify a machine.
    pub modules: Vec<PersistentModule>,
    /// Its namespaces that have a size.
    pub namespaces: Vec<PersistentNamespace>,
}

/// A namespace of persistent memory, and what it is used as.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PersistentNamespace {
    /// The kernel's name, such as `namespace0.0`.
    pub name: String,
    /// Its mode as ndctl calls it: `fsdax`, `sector`, `devdax`, `raw`.
    pub mode: Option<String>,
    /// Its size.
    pub bytes: Option<Bytes>,
    /// The device that it is, such as `/dev/pmem0` or `/dev/dax0.0`; absent where no driver has it.
    pub device: Option<String>,
    /// The node whose ordinary memory it is (driver kmem); absent where it is none.
    pub memory_node: Option<u32>,
}

impl From<&PersistentRegion> for PersistentDevice {
    /// The region without its namespaces.
    fn from(region: &PersistentRegion) -> Self {
        Self {
            region: region.name.clone(),
            region_bytes: region.bytes,
            node: region.node,
            persistence_domain: region.persistence_domain.clone(),
            interleave_set: region.interleave_set.clone(),
            read_only: region.read_only,
            bad_ranges: region.bad_ranges,
            scrubbing: region.scrubbing,
            provider: region.provider.clone(),
            emulated: region.emulated.clone(),
            modules: region.modules.clone(),
            ..Self::default()
        }
    }
}

impl PersistentDevice {
    /// What makes numbers measured here doubtful or not comparable.
    pub fn notes(&self) -> Vec<Note> {
        let region = &self.region;
        let mut notes = Vec::new();
        let mut warn = |code: NoteCode, message: String, advice: &'static str| notes.push(Note::warning(code, message).advise(advice));
        // A region takes as much of each of its modules, so what it takes does not tell: the modules themselves are compared, all of them.
        let mut alike: BTreeMap<Bytes, Vec<&str>> = BTreeMap::new();
        for (name, bytes) in &self.capacities {
            alike.entry(*bytes).or_default().push(name);
        }
        if alike.len() > 1 {
            let list = alike.iter().map(|(bytes, names)| format!("{bytes}: {}", names.join(", "))).collect::<Vec<_>>().join("; ");
            let message = format!(
                "regions use different amounts of this machine's modules of persistent memory ({list}): if the modules differ in size, an interleave set is as fast as its slowest one"
            );
            warn(NoteCode::PmemMixedCapacities, message, "use modules of one capacity");
        }
        for module in self.modules.iter().filter(|m| !m.faults.is_empty()) {
            let message = format!("{} of {region} is not healthy: {}", module.name, module.faults.join(", "));
            warn(NoteCode::PmemNotHealthy, message, "see ndctl list --dimms --health; replace the module or update its firmware");
        }
        if self.bad_ranges > 0 {
            let ranges = if self.bad_ranges == 1 { "range" } else { "ranges" };
            let message = format!("{region} has {} {ranges} of addresses with known errors", self.bad_ranges);
            warn(NoteCode::PmemBadRanges, message, "see ndctl list --media-errors");
        }
        if self.scrubbing == Some(true) {
            let message = format!("{region} is being searched for errors (scrub), which takes bandwidth from what is measured");
            warn(NoteCode::PmemScrubbing, message, "wait for its end (ndctl wait-scrub) and measure again");
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Code;

    #[test]
    fn what_is_wrong_with_modules_is_said() {
        let module = |name: &str, gib| PersistentModule { name: name.into(), bytes: Some(Bytes::gib(gib)), ..PersistentModule::default() };
        let mut device =
            PersistentDevice { region: "region1".into(), modules: vec![module("nmem0", 128), module("nmem1", 128)], ..Default::default() };
        let codes = |d: &PersistentDevice| d.notes().into_iter().map(|n| n.code).collect::<Vec<_>>();
        assert_eq!(codes(&device), Vec::<Code<NoteCode>>::new());
        // As much of each, as in every interleave set.
        device.capacities =
            [("nmem0".into(), Bytes::gib(128)), ("nmem1".into(), Bytes::gib(256)), ("nmem2".into(), Bytes::gib(256))].into();
        device.modules[0].faults = vec!["save_fail".into(), "smart_event".into()];
        (device.bad_ranges, device.scrubbing) = (2, Some(true));
        assert_eq!(
            codes(&device),
            [NoteCode::PmemMixedCapacities, NoteCode::PmemNotHealthy, NoteCode::PmemBadRanges, NoteCode::PmemScrubbing]
        );
        let messages: Vec<String> = device.notes().into_iter().map(|n| n.message.to_string()).collect();
        assert!(
            messages[0].contains("(128 GiB: nmem0; 256 GiB: nmem1, nmem2)")
                && messages[1].contains("nmem0 of region1 is not healthy: save_fail, smart_event")
        );
    }
}
