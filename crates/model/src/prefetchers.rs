//! Hardware prefetchers and the registers that switch them: which registers a CPU has, what their bits mean, and what follows for the
//! state.
//!
//! The tables hold documented registers only. Nothing is written on a model that is not in them, because the same bit may mean something
//! else there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::PrefetchRequest;
use crate::note::{Note, NoteCode};
use crate::topology::Machine;
use crate::units::IdSet;
use crate::words;
use crate::words::{Knob, Ways};

/// Intel's `MSR_MISC_FEATURE_CONTROL` (Intel SDM volume 4; `MSR_PREFETCH_CONTROL` in its later tables). 1 in a bit switches off.
pub const INTEL_REGISTER: u32 = 0x1A4;
/// AMD's Prefetch Control (AMD PPR of families 19h and 1Ah). 1 in a bit switches off.
const AMD_REGISTER: u32 = 0xC000_0108;
/// The document that describes most of its bits.
const INTEL_SDM: &str = "Intel SDM volume 4";
/// The document that describes bits 4 to 7 of servers and of Meteor Lake.
const INTEL_ZONE: &str = "Intel, optimization-zone: hardware prefetch controls";

/// A prefetcher and its bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefetcher {
    /// Bit of the register.
    pub bit: u8,
    /// Short name, such as `l2-streamer`.
    pub name: &'static str,
}

const fn p(bit: u8, name: &'static str) -> Prefetcher {
    Prefetcher { bit, name }
}

/// Nehalem and later (Intel SDM volume 4; Intel, "Disclosure of H/W prefetcher control on some Intel processors").
const CORE: [Prefetcher; 4] = [p(0, "l2-streamer"), p(1, "l2-adjacent-line"), p(2, "l1-streamer"), p(3, "l1-ip-stride")];
/// 12th generation's performance cores add the adaptive multipath prefetcher (Intel SDM; bit 5 also in intel/optimization-zone and
/// intel/PerfSpect, which others give as bit 6).
const GOLDEN_COVE: [Prefetcher; 5] = [CORE[0], CORE[1], CORE[2], CORE[3], p(5, "l2-amp")];
/// Meteor Lake's performance cores: and pages of the last-level cache.
const METEOR_LAKE: [Prefetcher; 6] = [CORE[0], CORE[1], CORE[2], CORE[3], p(5, "l2-amp"), p(6, "llc-page")];
/// Sapphire and Emerald Rapids: and the next page of the L1.
const SAPPHIRE_RAPIDS: [Prefetcher; 6] = [CORE[0], CORE[1], CORE[2], CORE[3], p(4, "l1-next-page"), p(5, "l2-amp")];
/// Granite Rapids: and arrays of pointers.
const GRANITE_RAPIDS: [Prefetcher; 8] =
    [CORE[0], CORE[1], CORE[2], CORE[3], p(4, "l1-next-page"), p(5, "l2-amp"), p(6, "llc-page"), p(7, "array-of-pointers")];
/// Goldmont has two (Linux: `get_prefetch_disable_bits` of resctrl writes 0x5 there).
const GOLDMONT: [Prefetcher; 2] = [p(0, "l2-streamer"), p(2, "l1-streamer")];
/// Knights Landing and Mill (Intel SDM: bit 0 is the L1's).
const KNIGHTS: [Prefetcher; 2] = [p(0, "l1-streamer"), p(1, "l2-streamer")];
/// Zen 3 and later, where CPUID announces the register.
const ZEN: [Prefetcher; 5] = [p(0, "l1-stream"), p(1, "l1-stride"), p(2, "l1-region"), p(3, "l2-stream"), p(5, "l2-up-down")];
const CORE_MODELS: [u32; 34] = [
    0x1A, 0x1E, 0x1F, 0x2E, 0x25, 0x2C, 0x2F, // Nehalem, Westmere
    0x2A, 0x2D, 0x3A, 0x3E, // Sandy and Ivy Bridge
    0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56, // Haswell, Broadwell
    0x4E, 0x5E, 0x55, 0x8E, 0x9E, 0xA5, 0xA6, 0x66, // Skylake (and Cascade Lake) to Cannon Lake
    0x6A, 0x6C, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7, // Ice Lake, Tiger Lake, Rocket Lake
];

/// The register of a kind of CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Address of the register.
    pub register: u32,
    /// Its name in the vendor's manual.
    pub name: &'static str,
    /// The prefetchers that it switches.
    pub prefetchers: &'static [Prefetcher],
    /// The document that describes it.
    pub source: &'static str,
}

impl Control {
    /// All bits that switch a prefetcher.
    pub fn mask(&self) -> u64 {
        bits(self.prefetchers)
    }

    /// Names of the prefetchers whose bits are set in `value` (off), or clear (on).
    pub fn names(&self, value: u64, off: bool) -> Vec<String> {
        self.prefetchers.iter().filter(|p| (value >> p.bit & 1 == 1) == off).map(|p| p.name.to_owned()).collect()
    }
}

/// What decides which register a CPU has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Processor<'a> {
    /// Instruction set, as the kernel names it.
    pub arch: &'a str,
    /// `GenuineIntel`, `AuthenticAMD` …
    pub vendor: &'a str,
    /// Family, as `/proc/cpuinfo` has it.
    pub family: Option<u32>,
    /// Model.
    pub model: Option<u32>,
    /// Kind of core on a hybrid machine: `performance`, `efficiency`.
    pub kind: Option<&'a str>,
    /// CPUID 8000_0021h EAX bit 13: AMD's register is there.
    pub announced: bool,
    /// The machine is virtual.
    pub virtual_machine: bool,
}

/// The register that switches a CPU's prefetchers.
///
/// # Errors
/// If no such register is documented: the reason, in words.
pub fn control(cpu: &Processor<'_>) -> Result<Control, String> {
    if !matches!(cpu.arch, "x86_64" | "i686") {
        return Err(format!("Linux has no interface to prefetchers' registers on {}", cpu.arch));
    }
    let (family, model) = (cpu.family.unwrap_or(0), cpu.model.unwrap_or(0));
    match cpu.vendor {
        "GenuineIntel" => {
            // Undocumented registers and these cores' own logic steer their prefetchers, in addition to 0x1A4.
            let efficiency =
                || Err("prefetchers of efficiency cores are also steered by registers that Intel does not document".to_owned());
            let (prefetchers, source): (&'static [Prefetcher], _) = match (family, model) {
                (6, _) if matches!(cpu.kind, Some("efficiency" | "low-power")) => return efficiency(),
                // Sierra Forest, Clearwater Forest, Grand Ridge, Alder Lake-N: efficiency cores only.
                (6, 0xAF | 0xDD | 0xB6 | 0xBE) => return efficiency(),
                (6, 0x97 | 0x9A | 0xB7 | 0xBA | 0xBF) => (&GOLDEN_COVE, INTEL_SDM),
                (6, 0xAA) => (&METEOR_LAKE, INTEL_ZONE),
                (6, 0x8F | 0xCF) => (&SAPPHIRE_RAPIDS, INTEL_ZONE),
                (6, 0xAD | 0xAE) => (&GRANITE_RAPIDS, INTEL_ZONE),
                (6, 0x5C | 0x5F) => (&GOLDMONT, "Linux, resctrl's pseudo_lock.c"),
                (6, 0x57 | 0x85) => (&KNIGHTS, INTEL_SDM),
                (6, model) if CORE_MODELS.contains(&model) => (&CORE, INTEL_SDM),
                _ => {
                    return Err(format!(
                        "Intel family {family:#x} model {model:#x} is not in the table of documented prefetch control bits"
                    ));
                }
            };
            Ok(Control { register: INTEL_REGISTER, name: "MISC_FEATURE_CONTROL", prefetchers, source })
        }
        "AuthenticAMD" if family < 0x19 => Err(format!("AMD family {family:#x} has no documented prefetch control register")),
        "AuthenticAMD" if !cpu.announced => {
            let why = if cpu.virtual_machine { ", as hypervisors rarely pass it on" } else { "" };
            Err(format!("the CPU does not announce a prefetch control register (CPUID 8000_0021h EAX bit 13 is clear){why}"))
        }
        "AuthenticAMD" => Ok(Control {
            register: AMD_REGISTER,
            name: "Prefetch Control",
            prefetchers: &ZEN,
            source: "AMD PPR, announced by CPUID 8000_0021h EAX bit 13",
        }),
        other => Err(format!("no documented prefetch control register is known for CPUs of {other}")),
    }
}

fn bits(table: &[Prefetcher]) -> u64 {
    table.iter().fold(0, |mask, p| mask | 1 << p.bit)
}

/// All bits of a register that switch a prefetcher of some processor; `None` if it does not switch any.
pub fn switching_bits(register: u32) -> Option<u64> {
    const INTEL: [&[Prefetcher]; 7] = [&CORE, &GOLDEN_COVE, &METEOR_LAKE, &SAPPHIRE_RAPIDS, &GRANITE_RAPIDS, &GOLDMONT, &KNIGHTS];
    match register {
        INTEL_REGISTER => Some(INTEL.into_iter().fold(0, |mask, table| mask | bits(table))),
        AMD_REGISTER => Some(bits(&ZEN)),
        _ => None,
    }
}

/// Whether the threads of a core share a register: Intel documents its own as one of the core (Intel SDM volume 4).
pub const fn is_shared_by_core(register: u32) -> bool {
    register == INTEL_REGISTER
}

/// The register of every online CPU of a machine, or why it has none. `announced`: whether CPUID announces AMD's register.
pub fn controls(machine: &Machine, announced: bool) -> BTreeMap<u32, Result<Control, String>> {
    let identity = &machine.identity;
    let number = |key: &str| identity.model.get(key).and_then(|text| text.parse().ok());
    let all = Processor {
        arch: &identity.arch,
        vendor: identity.vendor.as_deref().unwrap_or("an unknown maker"),
        family: number("family"),
        model: number("model"),
        kind: None,
        announced,
        virtual_machine: identity.hypervisor.is_some(),
    };
    machine.topology.cpus.iter().map(|cpu| (cpu.id, control(&Processor { kind: cpu.kind.as_deref(), ..all }))).collect()
}

/// The state of the prefetchers of all CPUs, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchState {
    /// What was asked for.
    pub requested: PrefetchRequest,
    /// The state, as far as it is known.
    pub status: PrefetchStatus,
    /// Why the state is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Advice for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub advice: Option<Ways>,
    /// The register and where it is documented, such as `0x1a4 MISC_FEATURE_CONTROL (Intel SDM volume 4)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register: Option<String>,
    /// CPUs with the same state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<PrefetchGroup>,
}

/// The known state of the prefetchers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PrefetchStatus {
    /// Every documented prefetcher is on, according to the registers of all CPUs in `groups` that have one.
    On,
    /// Every documented prefetcher is off, according to the same registers.
    Off,
    /// Some are on, some are off.
    Partly,
    /// The state is not known.
    #[default]
    Unknown,
}

/// CPUs whose prefetchers have the same state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchGroup {
    /// The CPUs.
    pub cpus: IdSet,
    /// The register's value, in hexadecimal; absent if it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Prefetchers that are on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// Prefetchers that are off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
    /// Why the state is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The reading from a CPU: its register and the value, or the reason why there is none.
pub type RegisterReading = Result<(Control, u64), String>;

/// Sums up what was read from each CPU: the register and its value, or why there is none.
pub fn state(requested: PrefetchRequest, read: &BTreeMap<u32, RegisterReading>) -> PrefetchState {
    let mut groups: Vec<(RegisterReading, IdSet)> = Vec::new();
    for (&cpu, found) in read {
        match groups.iter_mut().find(|(same, _)| same == found) {
            Some((_, cpus)) => cpus.insert(cpu),
            None => groups.push((found.clone(), IdSet::one(cpu))),
        }
    }
    let known: Vec<(Control, u64)> = read.values().flatten().copied().collect();
    let all = |off: bool| known.iter().all(|(control, value)| control.names(*value, !off).is_empty());
    let refused = read.values().find_map(|r| r.as_ref().err());
    // Efficiency cores have no register, so the status is that of the other groups. If no register could be read, the status is unknown.
    let status = if known.is_empty() {
        PrefetchStatus::Unknown
    } else if all(true) {
        PrefetchStatus::Off
    } else if all(false) {
        PrefetchStatus::On
    } else {
        PrefetchStatus::Partly
    };
    let register = known.first().map(|(c, _)| format!("{:#x} {} ({})", c.register, c.name, c.source));
    PrefetchState {
        requested,
        status,
        reason: if known.is_empty() { refused.cloned() } else { None },
        advice: None,
        register,
        groups: groups
            .into_iter()
            .map(|(found, cpus)| match found {
                Ok((control, value)) => PrefetchGroup {
                    cpus,
                    value: Some(format!("{value:#x}")),
                    on: control.names(value, false),
                    off: control.names(value, true),
                    reason: None,
                },
                Err(reason) => PrefetchGroup { cpus, reason: Some(reason), ..PrefetchGroup::default() },
            })
            .collect(),
    }
}

/// The note that is shown before a register is written.
pub fn taint_note() -> Note {
    Note::info(
        NoteCode::KernelTainted,
        "prefetchers are switched by writing to model-specific registers: the kernel logs it and marks itself tainted (CPU out of specification, 'S') until it is booted again",
    )
    .advise(words!["leave ", Knob::Prefetch, " out where a distribution's support must not see a tainted kernel"])
}

#[cfg(test)]
mod tests;
