//! The verdict of a health check.

use serde::{Deserialize, Serialize};

use crate::note::{Code, codes};
use crate::words::Ways;

/// The verdict of a health check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// The worst of the findings.
    pub status: HealthStatus,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// References that at least one number was compared with: `siblings`, `limit`, `baseline`, `rules`, `fleet`, `history`,
    /// `published`.
    pub compared_with: Vec<String>,
    /// How many numbers were compared with each of those that there were, and how far they are from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// Number of results that were measured again because they looked wrong.
    pub measured_again: u32,
    /// The likely causes of numbers that are worse than they should be, the likeliest first. Empty if no number is worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<LikelyCause>,
}

codes! {
    /// References that numbers can be compared with, in the order of a verdict.
    ComparedWith {
        Siblings = "siblings",
        Limit = "limit",
        Baseline = "baseline",
        Rules = "rules",
        Fleet = "fleet",
        History = "history",
        Published = "published",
    }
}

/// How many numbers were compared with one thing, and how far they are from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// With what: `siblings` (similar parts of the machine), `limit` (the most that the memory can transfer), `baseline` (a result that was
    /// given), `rules` (those that were given), `fleet` (hosts like this one), `history` (earlier checks of this machine),
    /// `published` (values of the CPU's generation: no verdict rests on them alone).
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub with: Code<ComparedWith>,
    /// Results that were compared.
    pub numbers: u32,
    /// Results with a value that were not compared because they, or what they would be compared with, are not reliable.
    pub unreliable: u32,
    /// Results that are worse by 10 % or more, with intervals or a scatter of earlier checks that leave open whether that is chance. They were
    /// neither passed nor flagged.
    #[serde(default)]
    pub undecided: u32,
    /// Results with a value for which there is nothing to compare with, or only with other pages.
    pub absent: u32,
    /// By what share the worst of the compared numbers is worse; negative where each is better. Below the limit for `limit`, worse than all
    /// values for `published`; `null` for `rules`, and where nothing was compared.
    pub worst: Option<f64>,
    /// The file that it was read from, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When it was measured, the earliest where there are several: UTC, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How many checks or hosts it consists of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

impl Compared {
    /// Nothing was compared yet.
    pub fn new(with: ComparedWith) -> Self {
        Self { with: with.into(), numbers: 0, unreliable: 0, undecided: 0, absent: 0, worst: None, file: None, since: None, count: None }
    }
}

/// How healthy a machine's memory is, from good to bad. The worst finding decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HealthStatus {
    /// No problem was found.
    #[default]
    Ok,
    /// Too little was measured or compared for a verdict.
    Unknown,
    /// Worse than it should be, or much worse but with another possible cause.
    Warning,
    /// The numbers say nothing about the machine.
    CouldNotMeasure,
    /// Much worse than it should be in three measurements, without another possible cause.
    Failure,
    /// Data was corrupted, or the kernel reported memory errors during the check.
    Incident,
}

codes! {
    /// What was found.
    FindingCode {
        BaselineOfAnotherMachine = "baseline-of-another-machine",
        BaselineWithoutCells = "baseline-without-cells",
        BelowLimit = "below-limit",
        BusyMachine = "busy-machine",
        FewerCpus = "fewer-cpus",
        FirstCheck = "first-check",
        FleetGroup = "fleet-group",
        FleetNotCompared = "fleet-not-compared",
        FleetOtherPages = "fleet-other-pages",
        FleetWithoutNumbers = "fleet-without-numbers",
        LeftOut = "left-out",
        MachineChanged = "machine-changed",
        MemoryCorrupted = "memory-corrupted",
        MemoryErrors = "memory-errors",
        MemoryStalled = "memory-stalled",
        NoSiblingsInFleet = "no-siblings-in-fleet",
        NodeMemoryDiffers = "node-memory-differs",
        NotConfirmed = "not-confirmed",
        NotMeasured = "not-measured",
        NothingToCompareWith = "nothing-to-compare-with",
        NumbersNotReliable = "numbers-not-reliable",
        PrefetchersOff = "prefetchers-off",
        RuleBroken = "rule-broken",
        RuleWithoutCell = "rule-without-cell",
        SmallerPages = "smaller-pages",
        SlowCores = "slow-cores",
        SlowerCores = "slower-cores",
        SlowerPopulation = "slower-population",
        SlowerThanBefore = "slower-than-before",
        SlowerThanFleet = "slower-than-fleet",
        SlowerThanSiblings = "slower-than-siblings",
        TooFewCompared = "too-few-compared",
        UnequalPopulation = "unequal-population",
        UnlikePublished = "unlike-published",
        WorseThanBaseline = "worse-than-baseline",
    }
}

codes! {
    /// Causes of memory, or of measurements, that are slower than they should be.
    CauseCode {
        CpuLimits = "cpu-limits",
        EmptyChannel = "empty-channel",
        FrequencyLimited = "frequency-limited",
        KernelOrFirmwareChanged = "kernel-or-firmware-changed",
        LinkBetweenPackages = "link-between-packages",
        MemoryEncryption = "memory-encryption",
        MemoryErrors = "memory-errors",
        MemoryOfOneNode = "memory-of-one-node",
        ModulesClockedDown = "modules-clocked-down",
        NodesPerPackage = "nodes-per-package",
        NumaBalancing = "numa-balancing",
        OtherPrograms = "other-programs",
        PathOfOneCache = "path-of-one-cache",
        PrefetchersOff = "prefetchers-off",
        SlowCores = "slow-cores",
        SmallPages = "small-pages",
        ThermalThrottling = "thermal-throttling",
        UnequalModules = "unequal-modules",
        Virtualisation = "virtualisation",
    }
}

/// One thing that may have made numbers worse, and what speaks for and against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LikelyCause {
    /// Stable kebab-case word that scripts can rely on, such as `empty-channel`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: Code<CauseCode>,
    /// It in words.
    pub what: String,
    /// The points of its evidence together, by which causes are ranked. They are weights that experience suggests, and no probability.
    pub points: i32,
    /// The evidence for it and against it, the strongest first.
    pub evidence: Vec<CauseEvidence>,
    /// The command or the place that tells whether it is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub check: Option<Ways>,
}

/// Something that speaks for or against a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseEvidence {
    /// How much it speaks for the cause; less than 0: against it.
    pub points: i32,
    /// The observation. A statement of firmware is named as such.
    pub text: String,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable kebab-case word that scripts can rely on, such as `slower-than-siblings`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: Code<FindingCode>,
    /// How bad it is. A finding with `ok` is an explanation only.
    pub severity: HealthStatus,
    /// What was found.
    pub message: String,
    /// Ways for the reader to respond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub advice: Option<Ways>,
}

impl Finding {
    /// A finding with what can be done about it.
    pub fn new(code: FindingCode, severity: HealthStatus, message: impl Into<String>, advice: impl Into<Ways>) -> Self {
        Self { advice: Some(advice.into()), ..Self::bare(code, severity, message) }
    }

    /// A finding that nothing can be done about.
    pub fn bare(code: FindingCode, severity: HealthStatus, message: impl Into<String>) -> Self {
        Self { code: code.into(), severity, message: message.into(), advice: None }
    }
}
