//! What is compared: a quantity at a size, on CPUs, with pages.

use memgauge_core::topology::{Machine, Topology};
use memgauge_core::traffic::Mix;
use memgauge_core::units::{Bytes, IdSet};

/// The quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// A chase, random within a window of 512 KiB, windows in random order.
    WindowLatency,
    /// A chase, random over the whole buffer.
    RandomLatency,
    /// Loads only.
    Reads,
    /// A copy as the tool makes it: plain stores, a string instruction, or what libc chooses.
    Copy,
    /// A copy with non-temporal stores, or libc's where that is what it does.
    CopyNt,
    /// Two loads, one plain store.
    Triad,
    /// Two loads, one non-temporal store.
    TriadNt,
    /// Plain stores only.
    Writes,
    /// Non-temporal stores only.
    WritesNt,
    /// Memory filled as libc or a string instruction does it.
    Fill,
    /// One core's modified line to another. Every tool has its own protocol: shown side by side, never as a ratio.
    HandOff,
}

/// The window of [`Measure::WindowLatency`]: memgauge's own default, within reach of a first-level TLB of 96 entries and up with 4 KiB
/// pages and of every second-level one.
pub(super) const WINDOW: u64 = 512 << 10;
/// Distance between chased lines: two lines, because many prefetchers fetch pairs.
pub(super) const STRIDE: u64 = 128;

impl Measure {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::WindowLatency => "latency, window-local",
            Self::RandomLatency => "latency, full-random",
            Self::Reads => "reads",
            Self::Copy => "copy",
            Self::CopyNt => "copy, NT stores",
            Self::Triad => "triad",
            Self::TriadNt => "triad, NT stores",
            Self::Writes => "writes",
            Self::WritesNt => "writes, NT stores",
            Self::Fill => "fill",
            Self::HandOff => "hand-off",
        }
    }

    /// The mix of memgauge that moves the same bytes; `None` for latencies.
    pub(super) const fn mix(self) -> Option<Mix> {
        Some(match self {
            Self::Reads => Mix::AllReads,
            Self::Copy => Mix::Copy,
            Self::CopyNt => Mix::R1W1Nt,
            Self::Triad => Mix::R3W1X2,
            Self::TriadNt => Mix::R2W1Nt,
            Self::Writes => Mix::R1W1,
            Self::WritesNt => Mix::NtWrite,
            Self::Fill => Mix::Fill,
            Self::WindowLatency | Self::RandomLatency | Self::HandOff => return None,
        })
    }

    /// Whether smaller is faster.
    pub(super) const fn is_time(self) -> bool {
        self.mix().is_none()
    }

    pub(super) const fn unit(self) -> &'static str {
        if self.is_time() { "ns" } else { "GB/s" }
    }
}

/// The pages that are requested for buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pages {
    /// Transparent huge pages, requested with `madvise`.
    Huge,
    /// The kernel's base pages: what a program with static arrays gets.
    Base,
}

/// One line of the table, for each peer that has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// The quantity.
    pub(super) measure: Measure,
    /// All streams of one CPU together.
    pub(super) bytes: u64,
    /// The CPUs that take part.
    pub(super) cpus: IdSet,
    /// In what.
    pub(super) pages: Pages,
}

impl Row {
    /// All CPUs' bytes.
    pub(super) fn total(&self) -> u64 {
        self.bytes * self.cpus.len() as u64
    }

    /// What it is called in the table and matched by `--rows`.
    pub(super) fn name(&self) -> String {
        let cpus = match self.cpus.len() {
            1 => "1 CPU".to_owned(),
            n => format!("{n} CPUs"),
        };
        let pages = if self.pages == Pages::Base { ", base pages" } else { "" };
        match self.measure {
            Measure::HandOff => format!("{}, CPUs {}", self.measure.name(), self.cpus),
            _ => format!("{}, {}, {cpus}{pages}", self.measure.name(), Bytes(self.bytes)),
        }
    }
}

/// A size of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    bytes: u64,
    /// It is memory: divided among the CPUs, and worth stores that go past the caches.
    memory: bool,
}

/// Half of a first-level data cache of 32 KiB, which is the smallest in use.
const L1: u64 = 16 << 10;
/// What the public figures for this kind of machine were measured with.
const MIN_MEMORY: u64 = 512 << 20;

/// Sizes: in L1, in L2, in the last-level cache, in memory. `None` for a cache that the machine does not state.
fn levels(topology: &Topology, cpu: u32, asked: &[Bytes]) -> Vec<Level> {
    let llc = topology.last_level_cache(cpu).filter(|c| c.level > 2);
    let all_llc: u64 = topology.caches.iter().filter(|c| llc.is_some_and(|l| l.level == c.level)).map(|c| c.size.0).sum();
    if !asked.is_empty() {
        let most = llc.map_or(4 << 20, |c| c.size.0);
        return asked.iter().map(|b| Level { bytes: b.0, memory: b.0 > most }).collect();
    }
    let l2 = topology.cpu_caches(cpu).find(|c| c.level == 2).map(|c| c.size.0 / c.cpus.len().max(1) as u64);
    let mut levels = vec![Level { bytes: L1, memory: false }];
    levels.extend(l2.map(|bytes| Level { bytes: bytes / 2, memory: false }));
    // A quarter of the CPU's share: guests are often shown more cache than they get.
    let share = llc.map(|c| (c.size.0 / c.cpus.len().max(1) as u64 / 4).max(2 * l2.unwrap_or(0)));
    levels.extend(share.map(|bytes| Level { bytes, memory: false }));
    levels.push(Level { bytes: MIN_MEMORY.max(4 * all_llc), memory: true });
    levels
}

const IN_CACHE: [Measure; 5] = [Measure::Reads, Measure::Copy, Measure::Triad, Measure::Writes, Measure::Fill];
const IN_MEMORY: [Measure; 8] =
    [Measure::Reads, Measure::Copy, Measure::CopyNt, Measure::Triad, Measure::TriadNt, Measure::Writes, Measure::WritesNt, Measure::Fill];

/// All rows, in groups whose tools run in turn: what one run of a tool tells for several rows is then one run a round.
///
/// `base_bytes` is the working set of a peer whose arrays are static and so in base pages, when there is one.
pub(super) fn groups(machine: &Machine, asked: &[Bytes], base_bytes: Option<u64>) -> Vec<Vec<Row>> {
    let cpus = &machine.allowed.cpus;
    let Some(first) = cpus.first() else { return Vec::new() };
    let one = IdSet::one(first);
    let levels = levels(&machine.topology, first, asked);
    let mut groups = Vec::new();
    for level in &levels {
        let orders: &[Measure] = if level.memory { &[Measure::WindowLatency, Measure::RandomLatency] } else { &[Measure::RandomLatency] };
        let row = |measure: &Measure, pages: Pages| Row { measure: *measure, bytes: level.bytes, cpus: one.clone(), pages };
        groups.push(orders.iter().map(|measure| row(measure, Pages::Huge)).collect());
        if level.memory {
            let measures = [Measure::RandomLatency, Measure::Reads, Measure::Writes];
            groups.push(measures.iter().map(|measure| row(measure, Pages::Base)).collect());
        }
    }
    let mut counts = vec![one.clone()];
    if cpus.len() > 1 {
        counts.push(cpus.clone());
    }
    for cpus in &counts {
        let n = cpus.len() as u64;
        for level in &levels {
            let bytes = if level.memory { (level.bytes / n).max(1 << 20) } else { level.bytes };
            let measures: &[Measure] = if level.memory { &IN_MEMORY } else { &IN_CACHE };
            let row = |measure: &Measure| Row { measure: *measure, bytes, cpus: cpus.clone(), pages: Pages::Huge };
            groups.push(measures.iter().map(row).collect());
        }
        let measures = [Measure::Copy, Measure::CopyNt, Measure::Triad];
        let base = |bytes: u64| measures.map(|measure| Row { measure, bytes: bytes / n, cpus: cpus.clone(), pages: Pages::Base }).to_vec();
        groups.extend(base_bytes.map(base));
    }
    if let [a, b] = cpus.iter().take(2).collect::<Vec<_>>()[..] {
        let pair = [a, b].into_iter().collect();
        groups.push(vec![Row { measure: Measure::HandOff, bytes: 0, cpus: pair, pages: Pages::Huge }]);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let cache = |level: u8, size: u64, cpus: &str| serde_json::json!({ "level": level, "kind": "unified", "size": size, "line": 64, "ways": 8, "cpus": cpus });
        let caches =
            [cache(1, 48 << 10, "0"), cache(1, 48 << 10, "1"), cache(2, 1 << 20, "0"), cache(2, 1 << 20, "1"), cache(3, 32 << 20, "0-1")];
        let mut machine = memgauge_core::topology::Machine {
            identity: memgauge_core::topology::Identity::default(),
            topology: Topology::default(),
            allowed: memgauge_core::topology::Allowed {
                cpus: "0-1".parse().unwrap(),
                nodes: IdSet::one(0),
                memory: Some(Bytes::gib(16)),
                node_limited_by: Default::default(),
                memory_limited_by: String::new(),
                node_memory: std::collections::BTreeMap::new(),
                isolated: IdSet::new(),
                cpu_quota: None,
                ..Default::default()
            },
        };
        machine.topology.caches = serde_json::from_value(serde_json::Value::from(caches.to_vec())).unwrap();
        machine
    }

    fn names(groups: &[Vec<Row>]) -> Vec<String> {
        groups.concat().iter().map(Row::name).collect()
    }

    #[test]
    fn sizes_are_in_the_caches_and_beyond_them() {
        let names = names(&groups(&machine(), &[], None));
        for name in [
            "latency, full-random, 16 KiB, 1 CPU",
            "latency, full-random, 512 KiB, 1 CPU",
            "latency, full-random, 4 MiB, 1 CPU",
            "latency, window-local, 512 MiB, 1 CPU",
            "reads, 16 KiB, 2 CPUs",
            "writes, NT stores, 512 MiB, 1 CPU",
            "writes, NT stores, 256 MiB, 2 CPUs",
            "hand-off, CPUs 0-1",
        ] {
            assert!(names.iter().any(|n| n == name), "{name} is not in {names:#?}");
        }
        assert!(!names.iter().any(|n| n.contains("NT stores, 16 KiB")), "{names:#?}");
    }

    #[test]
    fn base_pages_only_for_whom_they_are() {
        assert!(!names(&groups(&machine(), &[], None)).iter().any(|n| n.contains("triad") && n.contains("base pages")));
        let with = groups(&machine(), &[], Some(1536 << 20));
        assert!(names(&with).contains(&"triad, 768 MiB, 2 CPUs, base pages".to_owned()));
    }

    #[test]
    fn sizes_asked_for_replace_the_others() {
        let rows = groups(&machine(), &[Bytes::kib(32), Bytes::mib(64)], None).concat();
        let mut sizes: Vec<u64> = rows.iter().filter(|r| r.cpus.len() == 1).map(|r| r.bytes).collect();
        sizes.dedup();
        assert_eq!(sizes, [32 << 10, 64 << 20, 32 << 10, 64 << 20]);
        assert!(rows.iter().any(|r| r.measure == Measure::WritesNt && r.bytes == 32 << 20 && r.cpus.len() == 2));
    }
}
