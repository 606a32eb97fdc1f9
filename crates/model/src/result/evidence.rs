//! Observations while a number was measured: kernels, pages, placement, disturbances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::directory::FileEvidence;
use crate::experiment::PageRequest;
use crate::result::environment::RfoReason;
use crate::result::integrity::{DimmErrors, Integrity};
use crate::traffic::Rfo;
use crate::units::Bytes;

/// What was observed while the number was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Threads that took part (probe and loaders).
    pub threads: u32,
    /// The kernel or protocol, such as `chase`, `load-avx2`, `store-then-chase`.
    pub kernel: String,
    /// The kernels that were tried and how fast they were, in the result's unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels_tried: Vec<KernelTrial>,
    /// Whether the kernel was chosen by trials that were disturbed: another one may be faster. Absent if not.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub kernel_chosen_busy: bool,
    /// Bytes of all buffers together.
    pub buffer: Bytes,
    /// Bytes of the chase's window; absent without a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Distance between chased lines; absent without a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<Bytes>,
    /// Hops in each sample, if a number of hops was asked for instead of a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u64>,
    /// Bytes that the CPUs of a transfer read from other buffers to move the lines to an outer cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushes: Option<Pushes>,
    /// Fresh allocations that the samples come from.
    pub allocations: u32,
    /// The pages that backed the buffers, read back; absent without buffers, and in files with [`Common`](crate::result::Common) fields if
    /// they are as there.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub pages: PageEvidence,
    /// The file that was used as memory; absent for memory without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileEvidence>,
    /// The nodes of the pages, read back.
    pub placement: Placement,
    /// Time during which all threads ran, over the longest thread's time; `null` with one thread.
    pub coverage: Option<f64>,
    /// Bandwidth of the slowest loader over that of the fastest; absent with one loader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<f64>,
    /// Each loader's own bandwidth in GB/s, by CPU.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gbs_by_cpu: BTreeMap<u32, f64>,
    /// The checksums that were compared; absent if none were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Checksums>,
    /// Bytes by kind; absent for latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficRates>,
    /// Whether prefetchers helped; for chases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchEvidence>,
    /// The check of the buffer's size against the measured plateau; for chases whose size was derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plateau: Option<Plateau>,
    /// Where the buffer is in the machine's physical memory; for regions of a scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical: Option<PhysicalRange>,
    /// The comparison of what was written with what was read back, word by word; for regions of a scan with `--integrity`, and for loaders
    /// with `--line check`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<Integrity>,
    /// The part of a full-random latency that is address translation: its excess over the window-local latency of the same cell, whose
    /// translations stay in the TLBs. 0 if the intervals of the two overlap; absent for other results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation_ns: Option<f64>,
    /// Bytes that each thread loaded and stored per core cycle. The frequency is the first core's, the mean of before and after; for
    /// bandwidths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_cycle: Option<f64>,
    /// Proof that the loop did its work; for `memgauge stream` and `memgauge chase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<crate::microbench::LoopProof>,
    /// What disturbed the measurement.
    pub noise: Noise,
}

/// Checksums of what the loaders read, pass by pass over their buffers, compared with that of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checksums {
    /// Passes compared.
    pub passes: u64,
    /// Passes with another checksum.
    pub mismatches: u64,
}

/// Bytes that the CPUs of a transfer read from other buffers at each handover of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pushes {
    /// Bytes that the holder read after taking the lines.
    pub holder: Bytes,
    /// Bytes that the reader read before it read the lines.
    pub reader: Bytes,
}

/// The trial of one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelTrial {
    /// Its name.
    pub kernel: String,
    /// How fast it was, in the result's unit.
    pub value: f64,
}

/// The pages that backed a buffer, as `/proc/self/smaps` shows after first touch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageEvidence {
    /// What was asked for.
    pub requested: PageRequest,
    /// The kind that backs most of the buffer; `null` when it could not be read back.
    pub obtained: Option<PageKind>,
    /// The share of the buffer that `obtained` backs, 0 to 1.
    pub share: Option<f64>,
    /// Size of those pages.
    pub page: Option<Bytes>,
    /// Why the kind is not known, or not the one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A kind of page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PageKind {
    /// The kernel's base page.
    Base,
    /// Transparent huge page.
    Thp,
    /// Page of a huge-page pool.
    Pool,
    /// Large page of Windows (`MEM_LARGE_PAGES`), which is locked in memory.
    Large,
    /// Page of a file in DRAM: page cache or tmpfs.
    File,
    /// Page of a device mapped by DAX.
    Dax,
}

impl PageKind {
    /// Its name in a sentence, in the plural.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Base => "base pages",
            Self::Thp => "transparent huge pages",
            Self::Pool => "huge pages of the pool",
            Self::Large => "large pages",
            Self::File => "pages of files",
            Self::Dax => "pages of the device",
        }
    }
}

/// Where a buffer's pages were.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// The conclusion.
    pub status: PlacementStatus,
    /// How the pages were put there; `null` for a buffer that was never allocated.
    pub method: Option<PlacementMethod>,
    /// How it was read back; `null` when none of the ways may be used.
    pub source: Option<PlacementSource>,
    /// Pages checked, by node.
    pub pages_by_node: BTreeMap<u32, u64>,
    /// Why the placement is not verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<PlacementProblem>,
}

impl Placement {
    /// The placement of several buffers together: the worst status, and the sum of the pages.
    pub fn combined(placements: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Option<Self> = None;
        for placement in placements {
            let Some(sum) = &mut all else {
                all = Some(placement);
                continue;
            };
            for (node, pages) in placement.pages_by_node {
                *sum.pages_by_node.entry(node).or_insert(0) += pages;
            }
            let rank = |s: PlacementStatus| (s == PlacementStatus::Wrong, s == PlacementStatus::Unverified);
            if rank(placement.status) > rank(sum.status) {
                sum.status = placement.status;
                sum.problems = placement.problems;
            }
        }
        all.unwrap_or_default()
    }
}

/// How pages were put on their node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlacementMethod {
    /// A memory policy of the buffer.
    Mbind,
    /// A preferred node of the buffer (`VirtualAllocExNuma`, Windows).
    VirtualAllocNuma,
    /// First touch by a CPU of the node, because policies are refused or have no effect.
    FirstTouch,
    /// The file system's choice, with DAX.
    Device,
    /// The memory policy of the process, unchanged.
    AsGiven,
}

/// How the place of pages was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PlacementSource {
    /// `move_pages(2)` without a target.
    #[serde(rename = "move_pages")]
    MovePages,
    /// `/proc/self/numa_maps`.
    #[serde(rename = "numa_maps")]
    NumaMaps,
    /// `QueryWorkingSetEx` (Windows).
    #[serde(rename = "QueryWorkingSetEx")]
    QueryWorkingSetEx,
    /// The machine has no other node.
    #[serde(rename = "only-node")]
    OnlyNode,
    /// The node of the device as the kernel states it, with DAX. Neither of the first two shows such pages.
    #[serde(rename = "device")]
    Device,
}

/// Why it is not proven that pages were where they should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum PlacementProblem {
    /// Some pages were on other nodes.
    Elsewhere {
        /// How many.
        pages: u64,
        /// Of how many that were checked.
        of: u64,
        /// The node that they should be on.
        node: u32,
    },
    /// Of pages that are on several nodes in turn, some were not where their turn is.
    OutOfTurn {
        /// How many.
        pages: u64,
        /// Of how many that were checked.
        of: u64,
    },
    /// The places of pages could not be read back.
    NotReadBack {
        /// What each of the ways said.
        detail: String,
    },
    /// Memory policies are refused here, so the pages are where they were touched first.
    PolicyRefused {
        /// What the kernel said.
        detail: String,
    },
    /// The device is on another node than planned.
    DeviceElsewhere {
        /// The device's node.
        device: u32,
        /// The node that was planned.
        planned: u32,
    },
    /// The kernel does not state the device's node.
    DeviceNodeUnknown,
}

/// Whether pages were where they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlacementStatus {
    /// Every page that was checked was on the requested node.
    Verified,
    /// Some were not.
    Wrong,
    /// It could not be read back.
    #[default]
    Unverified,
}

/// Bytes a second by kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrafficRates {
    /// What the program loaded.
    pub app_read_gbs: f64,
    /// What the program stored.
    pub app_write_gbs: f64,
    /// Estimate of what crossed the memory bus. `null` if it is not known whether plain stores read first, and for buffers that may stay in
    /// caches.
    pub bus_estimate_gbs: Option<f64>,
    /// Whether plain stores read the line first.
    pub rfo: Rfo,
    /// Why that is known, or why not; absent without plain stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rfo_reason: Option<RfoReason>,
}

/// Whether prefetchers helped a chase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrefetchEvidence {
    /// Latency of a chase over the same buffer in ascending order.
    pub sequential_ns: f64,
    /// The random chase's latency over the sequential one's. Far above 1: prefetchers are on, and the random order defeats them. About 1:
    /// they are off, or this machine has none.
    pub random_over_sequential: f64,
}

/// Whether the buffer was large enough to measure memory rather than a cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plateau {
    /// Latency over half of the buffer.
    pub half_ns: f64,
    /// Latency over all of it.
    pub whole_ns: f64,
    /// Latency over it right after the CPU had read so much else that no cache held it; `null` where that was not tried, or was shown
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ns: Option<f64>,
    /// Whether they agree: the buffer lies on the plateau, and no cache holds it.
    pub reached: bool,
}

/// Physical addresses of a buffer, as `/proc/self/pagemap` shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhysicalRange {
    /// Address of its first page; `null` if this process may not see it.
    pub first: Option<u64>,
    /// The lowest address of any of its pages.
    pub low: Option<u64>,
    /// The end of its highest page, not included.
    pub high: Option<u64>,
    /// Whether its pages follow each other in physical memory as they do in the buffer.
    pub contiguous: Option<bool>,
    /// Why the addresses are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What disturbed a burst. A burst with several causes counts for the first of them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DisturbanceCause {
    /// A thread ran on another CPU.
    Migrated,
    /// The hypervisor gave a CPU to other guests.
    Stolen,
    /// A thread was taken off its CPU.
    TakenOff,
    /// Others used CPUs that share a core, a cache or memory with the measured ones.
    Neighbours,
    /// The core's frequency was not that of most bursts.
    Frequency,
}

/// CPU time that others used on CPUs that are not measured, as shares, 0 to 1. It does not show what they did with memory.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Neighbours {
    /// Of the other hardware threads of the measured cores; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<f64>,
    /// Of all CPUs behind the measured CPUs' last-level caches, the measured ones among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<f64>,
    /// Of all CPUs of the nodes whose CPUs or memory are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
}

impl Neighbours {
    /// The largest of the shares.
    pub fn most(&self) -> Option<f64> {
        [self.core, self.cache, self.memory].into_iter().flatten().max_by(f64::total_cmp)
    }
}

/// What disturbed a measurement: differences of the kernel's counters over its time. A field is absent if this kernel does not provide the
/// counter, and in files with [`Common`](crate::result::Common) fields if it is as there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Noise {
    /// Share of all CPU time that the hypervisor gave to other guests (steal), 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Share of the measured CPUs' time that other processes used, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// CPU time that others used on CPUs that are not measured but share a core, a cache or memory with measured ones; absent if it is not
    /// known, or the time was too short to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<Neighbours>,
    /// Number of bursts; absent if samples do not come from bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<u32>,
    /// Bursts during which a measuring thread was disturbed: it was taken off its CPU or moved to another one, the hypervisor gave its CPU to
    /// other guests, or its core ran at another frequency than in most bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts_disturbed: Option<u32>,
    /// Extra bursts that were measured because others were disturbed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts_repeated: Option<u32>,
    /// Disturbed bursts that do not count because enough clean ones remained. Switches, waiting time, migrations and coverage are then
    /// those of the bursts that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts_left_out: Option<u32>,
    /// Share of the counted bursts' time that is not in any sample, because a thread was off its CPU or had just come back, 0 to 1. If it is
    /// present, samples do not contain any such time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<f64>,
    /// Share of the samples' time during which threads were off their CPUs, as their blocks of work and their CPU time show, 0 to 1. It is
    /// present if no burst had enough time left without interruptions. A burst whose threads never read the clock together, so that
    /// nothing shows it, counts as 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_cpu: Option<f64>,
    /// Share of the time during which memory did not answer although the threads were on their CPUs, by their CPU times: the time beyond
    /// the usual of blocks of work that took more than twice as long. The bandwidth of loaders includes it, the samples of a chase do not.
    /// Absent if the kernel does not report CPU times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<f64>,
    /// Number of bursts that each cause disturbed. A burst with several causes counts for the first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disturbed_by: BTreeMap<DisturbanceCause, u32>,
    /// Number of times that the kernel took a measuring thread off its CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Share of the measuring threads' time during which they were ready to run but had no CPU, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<f64>,
    /// Number of times that a measuring thread was found on another CPU than planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// Core frequency of the first CPU in GHz, right after the first burst; before the measurement where there is one burst or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ghz_before: Option<f64>,
    /// The same right after the last burst, while all measuring CPUs are busy as they were after the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ghz_after: Option<f64>,
    /// Pages that the kernel migrated between nodes, system-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_migrated: Option<u64>,
    /// Hinting faults of NUMA balancing, system-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_hint_faults: Option<u64>,
    /// Huge pages that khugepaged assembled, system-wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thp_collapsed: Option<u64>,
    /// Share of the measurement's time during which some task waited for a CPU (PSI), 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<f64>,
    /// The same for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure: Option<f64>,
    /// Corrected and uncorrected memory errors reported (EDAC) from the beginning of the cell to its end, also while it was set up. Results
    /// of one cell have the same; the environment has those of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_errors: Option<u64>,
    /// DIMMs that counted some of them meanwhile; empty if none did, or the driver does not tell them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_errors_by_dimm: Vec<DimmErrors>,
}

impl Noise {
    /// Adds what disturbed another measurement: the higher of two shares, the sum of two counts, and the last frequency.
    pub fn add(&mut self, other: &Self) {
        fn higher(a: &mut Option<f64>, b: Option<f64>) {
            *a = a.iter().copied().chain(b).max_by(f64::total_cmp);
        }
        fn sum<T: Copy + std::ops::Add<Output = T>>(a: &mut Option<T>, b: Option<T>) {
            *a = a.zip(b).map(|(a, b)| a + b).or(*a).or(b);
        }
        higher(&mut self.steal, other.steal);
        higher(&mut self.others, other.others);
        if let Some(more) = &other.neighbours {
            let all = self.neighbours.get_or_insert_default();
            higher(&mut all.core, more.core);
            higher(&mut all.cache, more.cache);
            higher(&mut all.memory, more.memory);
        }
        higher(&mut self.waited, other.waited);
        higher(&mut self.off_cpu, other.off_cpu);
        higher(&mut self.stalled, other.stalled);
        higher(&mut self.cpu_pressure, other.cpu_pressure);
        higher(&mut self.memory_pressure, other.memory_pressure);
        sum(&mut self.bursts, other.bursts);
        sum(&mut self.bursts_disturbed, other.bursts_disturbed);
        sum(&mut self.bursts_repeated, other.bursts_repeated);
        sum(&mut self.bursts_left_out, other.bursts_left_out);
        sum(&mut self.involuntary_switches, other.involuntary_switches);
        sum(&mut self.migrations, other.migrations);
        sum(&mut self.pages_migrated, other.pages_migrated);
        sum(&mut self.numa_hint_faults, other.numa_hint_faults);
        sum(&mut self.thp_collapsed, other.thp_collapsed);
        sum(&mut self.memory_errors, other.memory_errors);
        DimmErrors::add(&mut self.memory_errors_by_dimm, &other.memory_errors_by_dimm);
        for (cause, bursts) in &other.disturbed_by {
            *self.disturbed_by.entry(*cause).or_default() += bursts;
        }
        self.ghz_before = self.ghz_before.or(other.ghz_before);
        self.ghz_after = other.ghz_after.or(self.ghz_after);
    }
}
