//! Whether memory returned what was written to it.

use serde::{Deserialize, Serialize};

use crate::integrity::TestPattern;
use crate::units::Bytes;

/// The comparison of what memory returned with what had been written to it, word by word. What it should be was computed, not read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Integrity {
    /// Contents that were written to the whole buffer and compared.
    pub patterns: u32,
    /// The same for all that was to be compared; more than `patterns` if the check was cut short. 0 in results of earlier versions.
    #[serde(default)]
    pub patterns_planned: u32,
    /// Test patterns of which everything was compared; empty for loaders with `--line check`, which compare their contents and the
    /// complement.
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
    /// Share of the time from the first write to the last comparison in which a bit that flips once is found, 0 to 1: the mean time
    /// between writing a word and comparing it, over the time of such a cycle.
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
    /// The test pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<TestPattern>,
    /// What had been written.
    pub written: u64,
    /// What was read.
    pub read: u64,
    /// What was read the second time, from memory, after the line was dropped from the caches. It equals `written` if only the first
    /// reading was wrong (soft).
    #[serde(alias = "reread")]
    pub second_read: u64,
    /// The CPU that read it.
    pub cpu: u32,
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
    /// Why they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
