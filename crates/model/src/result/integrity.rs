//! Whether memory returned what was written to it.

use serde::{Deserialize, Serialize};

use crate::integrity::TestPattern;
use crate::units::Bytes;

/// The comparison of what memory returned with what had been written to it, word by word. The expected value was computed, not read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Integrity {
    /// Contents that were written to the whole buffer and compared.
    pub patterns: u32,
    /// The same for all that was to be compared; more than `patterns` if the check was cut short. 0 in results of earlier versions.
    #[serde(default)]
    pub patterns_planned: u32,
    /// Test patterns that were compared completely; empty for loaders with `--line check` and no `--patterns`, which compare their
    /// contents and the complement. Of a curve, the first point has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested: Vec<TestPattern>,
    /// Bytes that were compared.
    #[serde(default)]
    pub compared: Bytes,
    /// Time spent on writing and comparing.
    #[serde(default)]
    pub seconds: f64,
    /// The shortest time between writing the buffer and comparing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_s: Option<f64>,
    /// Share of the time from the first write to the last comparison during which a single bit flip would be found, 0 to 1: the mean
    /// time between writing a word and comparing it, over the time of such a cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<f64>,
    /// Whether lines were dropped from the caches between writing and comparing. If not (this CPU lets no program do that), what fits into
    /// the caches was compared there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past_caches: Option<bool>,
    /// Words of 8 bytes that differed from what had been written, over all comparisons.
    pub mismatches: u64,
    /// The first of them, each word once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first: Vec<Mismatch>,
    /// What the memory controllers corrected meanwhile; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc: Option<EccCounts>,
}

/// A word that differed from what had been written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mismatch {
    /// Offset from the start of the buffer, in bytes.
    pub offset: u64,
    /// Virtual address in the process that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Physical address; `null` if this process may not see it.
    pub physical: Option<u64>,
    /// Node of its page; absent if the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// The memory devices that may hold this physical address, as firmware describes them (SMBIOS types 20 and 17). Several where
    /// addresses are interleaved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Why they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_unknown: Option<String>,
    /// The test pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<TestPattern>,
    /// What had been written.
    pub written: u64,
    /// What was read.
    pub read: u64,
    /// The second reading, from memory, after the line was dropped from the caches. It equals `written` if only the first
    /// reading was wrong (soft).
    #[serde(alias = "reread")]
    pub second_read: u64,
    /// What was read 2 ms after the word was written once more as it should be; absent if the second reading was right, or the sweep had
    /// done so with as many words as are listed, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten_read: Option<u64>,
    /// The CPU that read it.
    pub cpu: u32,
}

impl Mismatch {
    /// What kind of error it was.
    pub const fn kind(&self) -> WrongWordKind {
        match self.rewritten_read {
            _ if self.second_read == self.written => WrongWordKind::Reading,
            Some(read) if read == self.written => WrongWordKind::Flipped,
            Some(_) => WrongWordKind::Stuck,
            None => WrongWordKind::Memory,
        }
    }
}

/// Kinds of wrong words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongWordKind {
    /// The second reading was right: memory held what was written (soft).
    Reading,
    /// Memory held something else, and kept what was written to it once more (soft).
    Flipped,
    /// It did not keep that either (hard).
    Stuck,
    /// Memory held something else; whether it would keep what is written once more was not tried.
    Memory,
}

/// Errors that all memory controllers of the machine have counted since it started (EDAC).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EccCounts {
    /// Corrected errors before the check.
    pub corrected_before: Option<u64>,
    /// Corrected errors after it.
    pub corrected_after: Option<u64>,
    /// Uncorrected errors before the check.
    pub uncorrected_before: Option<u64>,
    /// Uncorrected errors after it.
    pub uncorrected_after: Option<u64>,
    /// DIMMs that counted errors meanwhile; empty if none did, or the driver does not tell them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dimms: Vec<DimmErrors>,
    /// Why they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Errors that a DIMM has counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DimmErrors {
    /// Its label as the driver or the administrator gave it; otherwise its controller, number and place.
    pub dimm: String,
    /// Corrected ones.
    pub corrected: u64,
    /// Uncorrected ones.
    pub uncorrected: u64,
}

impl DimmErrors {
    /// What each DIMM counted from `before` to `after`; those that counted nothing are left out.
    pub fn since(before: &[Self], after: &[Self]) -> Vec<Self> {
        // Two DIMMs may have the same label: they are in the same order both times, unless a driver was loaded meanwhile.
        let alike = before.len() == after.len();
        let old = |index: usize| before.get(index).filter(|_| alike).cloned().unwrap_or_default();
        let since = after.iter().enumerate().map(|(index, now)| Self {
            dimm: now.dimm.clone(),
            corrected: now.corrected.saturating_sub(old(index).corrected),
            uncorrected: now.uncorrected.saturating_sub(old(index).uncorrected),
        });
        since.filter(|d| alike && d.corrected + d.uncorrected > 0).collect()
    }

    /// Adds what was counted in another time.
    pub fn add(all: &mut Vec<Self>, others: &[Self]) {
        for other in others {
            match all.iter_mut().find(|d| d.dimm == other.dimm) {
                Some(known) => {
                    (known.corrected, known.uncorrected) = (known.corrected + other.corrected, known.uncorrected + other.uncorrected)
                }
                None => all.push(other.clone()),
            }
        }
    }
}
