//! Notes that a reader needs besides the numbers: a stable code, what was seen, what to do about it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::{Ways, Words};

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Explains a number.
    Info,
    /// A number may not mean what its reader expects.
    Warning,
    /// Something that was asked could not be measured.
    Error,
}

/// Words of an enumeration that scripts rely on, and that results of other versions may have others of.
pub trait Codes: Copy + 'static {
    /// All of them.
    const ALL: &[Self];

    /// The stable kebab-case word for it.
    fn word(self) -> &'static str;
}

/// Declares codes with their words.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident { $($code:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $code,)*
        }

        impl $crate::note::Codes for $name {
            const ALL: &[Self] = &[$(Self::$code),*];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$code => $word,)*
                }
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// The subject of a note.
    NoteCode {
        AboveLimit = "above-limit",
        CachesNotKnown = "caches-not-known",
        CellNotMeasured = "cell-not-measured",
        CgroupMemory = "cgroup-memory",
        CheckCutShort = "check-cut-short",
        ClocksNotComparable = "clocks-not-comparable",
        ClocksNotCompared = "clocks-not-compared",
        CoarseTimer = "coarse-timer",
        Coarsened = "coarsened",
        ContainerFiles = "container-files",
        CountersMissing = "counters-missing",
        CountersOneKindOfCore = "counters-one-kind-of-core",
        CpuQuota = "cpu-quota",
        CpusIsolated = "cpus-isolated",
        CpusNotAllowed = "cpus-not-allowed",
        CpusOffline = "cpus-offline",
        CpusWithoutNode = "cpus-without-node",
        DemotionOff = "demotion-off",
        DmiAbsent = "dmi-absent",
        DmiUnreadable = "dmi-unreadable",
        FewerAllocations = "fewer-allocations",
        FirmwareDiffers = "firmware-differs",
        FrequencyLimited = "frequency-limited",
        GovernorPowersave = "governor-powersave",
        GpuMemoryLeftOut = "gpu-memory-left-out",
        GuestIntervals = "guest-intervals",
        HitInOwnCache = "hit-in-own-cache",
        HypervisorNotKnown = "hypervisor-not-known",
        IsolatedCpusUsed = "isolated-cpus-used",
        KernelTainted = "kernel-tainted",
        Limit = "limit",
        LimitUnknown = "limit-unknown",
        LittleMemory = "little-memory",
        LoopNotRun = "loop-not-run",
        LowestLoadDiffersFromIdle = "lowest-load-differs-from-idle",
        MachineBusy = "machine-busy",
        MayBeSlowedDown = "may-be-slowed-down",
        MayFallAsleep = "may-fall-asleep",
        MemoryCorrupted = "memory-corrupted",
        MemoryDirNoMapSync = "memory-dir-no-map-sync",
        MemoryDirNodeUnknown = "memory-dir-node-unknown",
        MemoryDirPageCache = "memory-dir-page-cache",
        MemoryDirTmpfs = "memory-dir-tmpfs",
        MemoryNotKnown = "memory-not-known",
        MemoryPolicy = "memory-policy",
        MemoryPolicyUnknown = "memory-policy-unknown",
        MemorySideCache = "memory-side-cache",
        NoCoreToLoad = "no-core-to-load",
        NoCounters = "no-counters",
        NoFullRandom = "no-full-random",
        NoHugePagePool = "no-huge-page-pool",
        NoKernelForMix = "no-kernel-for-mix",
        NoLargePages = "no-large-pages",
        NoLocalMemory = "no-local-memory",
        NoPersistInstruction = "no-persist-instruction",
        NodeMemoryDiffers = "node-memory-differs",
        NodeShortOfMemory = "node-short-of-memory",
        NodesNotAllowed = "nodes-not-allowed",
        NodesShareCpus = "nodes-share-cpus",
        NotQuiet = "not-quiet",
        NumaBalancing = "numa-balancing",
        OnBattery = "on-battery",
        OneCore = "one-core",
        OneCpu = "one-cpu",
        OneNode = "one-node",
        PairsAtOnce = "pairs-at-once",
        PairsOneByOne = "pairs-one-by-one",
        PatternsLeftOut = "patterns-left-out",
        PerfAbsent = "perf-absent",
        PerfRestricted = "perf-restricted",
        PlateauNotReached = "plateau-not-reached",
        PmemBadRanges = "pmem-bad-ranges",
        PmemMixedCapacities = "pmem-mixed-capacities",
        PmemNotHealthy = "pmem-not-healthy",
        PmemScrubbing = "pmem-scrubbing",
        PoolUsed = "pool-used",
        PrefetchCpusOffline = "prefetch-cpus-offline",
        PrefetchCpusWithoutRegister = "prefetch-cpus-without-register",
        PrefetchJournalVoid = "prefetch-journal-void",
        PrefetchKept = "prefetch-kept",
        PrefetchNotRestored = "prefetch-not-restored",
        PrefetchNotSeen = "prefetch-not-seen",
        PrefetchNotSet = "prefetch-not-set",
        PrefetchNothingToRestore = "prefetch-nothing-to-restore",
        PrefetchOffNotEffective = "prefetch-off-not-effective",
        PrefetchRestored = "prefetch-restored",
        PrefetchRestoredEarlier = "prefetch-restored-earlier",
        PrefetchRunJournal = "prefetch-run-journal",
        PrefetchStateLost = "prefetch-state-lost",
        PrefetchWaitsForCpus = "prefetch-waits-for-cpus",
        SamplesThinned = "samples-thinned",
        ScanInCache = "scan-in-cache",
        ScanMargin = "scan-margin",
        ScanMemoryScarce = "scan-memory-scarce",
        ScanNoAddresses = "scan-no-addresses",
        ScanRegion = "scan-region",
        ScanShare = "scan-share",
        ScanStoppedGrowing = "scan-stopped-growing",
        ScanWeakRegion = "scan-weak-region",
        SizeInCaches = "size-in-caches",
        SmallBuffer = "small-buffer",
        SmallPages = "small-pages",
        StatHidden = "stat-hidden",
        Suspended = "suspended",
        SweepCut = "sweep-cut",
        ThpDisabled = "thp-disabled",
        ThpNever = "thp-never",
        TierOrder = "tier-order",
        TierShared = "tier-shared",
        TurboOff = "turbo-off",
        VirtualMachine = "virtual-machine",
        VolatileStandIn = "volatile-stand-in",
        WeightsApplied = "weights-applied",
        WeightsDiffer = "weights-differ",
        WithinTooShort = "within-too-short",
    }
}

/// The code of a note or of a finding: one of this program's, or one that another version wrote into a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code<K> {
    /// One of this program's.
    Known(K),
    /// One that this program does not write.
    Unknown(String),
}

impl<K: Codes> Code<K> {
    /// The code that has this word.
    pub fn from_word(word: &str) -> Self {
        K::ALL.iter().find(|code| code.word() == word).map_or_else(|| Self::Unknown(word.to_owned()), |code| Self::Known(*code))
    }

    /// The kebab-case word for it.
    pub fn word(&self) -> &str {
        match self {
            Self::Known(code) => code.word(),
            Self::Unknown(word) => word,
        }
    }
}

impl<K: PartialEq> PartialEq<K> for Code<K> {
    fn eq(&self, code: &K) -> bool {
        matches!(self, Self::Known(known) if known == code)
    }
}

impl<K: Codes> From<K> for Code<K> {
    fn from(code: K) -> Self {
        Self::Known(code)
    }
}

impl<K: Codes> Serialize for Code<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de, K: Codes> Deserialize<'de> for Code<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|word| Self::from_word(&word))
    }
}

/// One thing to know about a run. Text, JSON and every other format show the same notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// Stable kebab-case word that scripts can rely on, such as `small-pages`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: Code<NoteCode>,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub message: Words,
    /// Advice for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub advice: Option<Ways>,
}

impl Note {
    fn new(severity: Severity, code: NoteCode, message: impl Into<Words>) -> Self {
        Self { code: code.into(), severity, message: message.into(), advice: None }
    }
    /// A note that explains.
    pub fn info(code: NoteCode, message: impl Into<Words>) -> Self {
        Self::new(Severity::Info, code, message)
    }
    /// A note that warns.
    pub fn warning(code: NoteCode, message: impl Into<Words>) -> Self {
        Self::new(Severity::Warning, code, message)
    }
    /// A note that says what could not be measured.
    pub fn error(code: NoteCode, message: impl Into<Words>) -> Self {
        Self::new(Severity::Error, code, message)
    }
    /// Adds what to do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<Ways>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}
