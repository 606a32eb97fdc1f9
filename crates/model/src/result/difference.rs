//! Differences between runs in properties of the machine, its state and the run.

use serde::{Deserialize, Serialize};

/// Something that differs between runs before and runs after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// What.
    pub field: DifferentField,
    /// Its values in the runs before, each once; empty where none is known.
    pub before: Vec<String>,
    /// The same of the runs after.
    pub after: Vec<String>,
}

/// A property of a machine, of its state, or of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DifferentField {
    /// The machine's name.
    Host,
    /// The CPU's model name.
    Cpu,
    /// Family, model, stepping.
    CpuModel,
    /// The CPU's microcode.
    Microcode,
    /// Vendor, product and BIOS version.
    Firmware,
    /// The hypervisor.
    Hypervisor,
    /// Kernel release.
    Kernel,
    /// Online CPUs.
    Cpus,
    /// Whether several hardware threads share a core.
    Smt,
    /// Memory nodes.
    Nodes,
    /// Memory, in GiB.
    Memory,
    /// Channels and their speed.
    Channels,
    /// The technology that encrypts memory.
    MemoryEncryption,
    /// CPUs that this process may use.
    AllowedCpus,
    /// Transparent huge pages.
    TransparentHugePages,
    /// The pages that backed buffers.
    Pages,
    /// Frequency governors.
    Governor,
    /// Energy/performance preferences.
    EnergyPreference,
    /// Whether turbo is allowed.
    Turbo,
    /// The kernel's NUMA balancing.
    NumaBalancing,
    /// The prefetchers' state.
    Prefetchers,
    /// The clock that was used.
    Clock,
    /// memgauge's version.
    Version,
    /// The command line, without output files.
    CommandLine,
}
