//! Whether memory is getting scarce, for a measurement that takes most of it, and which process the kernel kills when it runs out.

use std::path::{Path, PathBuf};
use std::time::Instant;

use memgauge_model::units::Bytes;

use super::node_state;
use crate::limits::{self, gib};
use crate::tree::{NODE_DIR, Tree, kib_field};

/// If some task waited for memory (PSI) for more than this share of the time, no more memory is taken. Users notice a fifth. Assembling huge
/// pages from fragmented memory counts as waiting too, and stays below this unless memory is nearly full.
const MAX_STALLED: f64 = 0.2;
/// A share is computed over at least this time. A shorter time has too few events.
const MIN_INTERVAL_S: f64 = 0.05;
/// The most that any process may have swapped out meanwhile. Idle kernels write less than this now and then.
const MAX_SWAPPED: u64 = 4 << 20;

/// Watches memory while it is taken.
#[derive(Debug)]
pub struct MemoryWatch {
    root: PathBuf,
    node: u32,
    margin: u64,
    since: Instant,
    stalled_us: Option<u64>,
    swapped: Option<u64>,
}

impl MemoryWatch {
    /// Starts to watch. On `node` and in the system, `margin` bytes stay free. In control groups the usual margin stays free.
    pub fn start(root: &Path, node: u32, margin: Bytes) -> Self {
        let tree = Tree::new(root);
        Self {
            root: root.to_owned(),
            node,
            margin: margin.0,
            since: Instant::now(),
            stalled_us: stalled_us(tree),
            swapped: swapped_out(tree),
        }
    }

    /// Why `next` more bytes should not be taken, in words. It looks at what has happened since the last call.
    pub fn shortage(&mut self, next: Bytes) -> Option<String> {
        let tree = Tree::new(&self.root);
        let (stalled, swapped, now) = (stalled_us(tree), swapped_out(tree), Instant::now());
        let seconds = (now - self.since).as_secs_f64();
        let since = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let share = since(stalled, self.stalled_us).filter(|_| seconds > MIN_INTERVAL_S).map(|us| us as f64 / 1e6 / seconds);
        let written = since(swapped, self.swapped);
        self.swapped = swapped;
        if seconds > MIN_INTERVAL_S {
            (self.since, self.stalled_us) = (now, stalled);
        }
        if let Some(share) = share.filter(|s| *s > MAX_STALLED) {
            return Some(format!("tasks waited for memory {:.0} % of the time (PSI)", share.min(1.0) * 100.0));
        }
        if let Some(bytes) = written.filter(|b| *b > MAX_SWAPPED) {
            return Some(format!("{} were swapped out meanwhile", gib(bytes)));
        }
        if let Some(group) = limits::memory_groups(tree).into_iter().find(|room| room.bytes < next.0) {
            return Some(format!("no more may be taken ({})", group.name));
        }
        let system = kib_field(&tree.text("proc/meminfo").unwrap_or_default(), "MemAvailable");
        let node = tree.text(&format!("{NODE_DIR}/node{}/meminfo", self.node)).and_then(|meminfo| node_state::room(&meminfo));
        let rooms = [(system, "the system (MemAvailable)".to_owned()), (node, format!("node {}", self.node))];
        let (left, owner) = rooms.into_iter().filter_map(|(left, owner)| Some((left?, owner))).min_by_key(|(left, _)| *left)?;
        (left < next.0.saturating_add(self.margin))
            .then(|| format!("{owner} has {} left, and {} must stay free", gib(left), gib(self.margin)))
    }
}

/// Microseconds during which some task has waited for memory; `None` without PSI.
fn stalled_us(tree: Tree<'_>) -> Option<u64> {
    crate::noise::pressure(&tree.text("proc/pressure/memory")?)
}

/// Bytes swapped out since the machine was started.
fn swapped_out(tree: Tree<'_>) -> Option<u64> {
    let text = tree.text("proc/vmstat")?;
    let pages: u64 = text.lines().find_map(|line| line.strip_prefix("pswpout ")?.trim().parse().ok())?;
    Some(pages.saturating_mul(crate::base_page() as u64))
}

/// Asks the kernel to kill this process first when memory runs out, because a benchmark must not harm the real work of a machine.
///
/// A process may raise its own score without privilege. Nothing happens where `/proc` is read-only.
pub fn prefer_out_of_memory_kill() {
    // 1000 is the highest score (proc(5), oom_score_adj). The measurement goes on when the score cannot be raised.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::Fixture;

    /// MiB available, seconds stalled, pages swapped.
    fn memory(tree: Fixture, available: u64, stalled: u64, swapped: u64) -> Fixture {
        tree.file("proc/meminfo", format!("MemTotal: 9999999 kB\nMemAvailable: {} kB\n", available << 10))
            .file("proc/pressure/memory", format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", stalled * 1_000_000))
            .file("proc/vmstat", format!("nr_free_pages 5\npswpin 1\npswpout {swapped}\n"))
    }

    #[test]
    fn the_margin_stays_free_on_the_system_and_on_the_node() {
        let tree = memory(Fixture::new(), 1000, 0, 0);
        let mut watch = MemoryWatch::start(tree.root(), 0, Bytes::mib(200));
        assert_eq!(watch.shortage(Bytes::mib(800)), None);
        let why = watch.shortage(Bytes::mib(801)).unwrap();
        assert!(why.contains("MemAvailable") && why.contains("1000 MiB left") && why.contains("200 MiB must stay free"), "{why}");
        let _tree = tree.file("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 2097152 kB\nNode 0 MemFree: 409600 kB\n");
        let why = watch.shortage(Bytes::mib(201)).unwrap();
        assert!(why.starts_with("node 0 has 400 MiB left"), "{why}");
    }

    #[test]
    fn waiting_and_swapping_are_reported_once_each() {
        let tree = memory(Fixture::new(), 1000, 0, 0);
        let mut watch = MemoryWatch::start(tree.root(), 0, Bytes(0));
        std::thread::sleep(std::time::Duration::from_millis(60));
        let tree = memory(tree, 1000, 3, 0);
        assert!(watch.shortage(Bytes::mib(1)).unwrap().contains("100 % of the time"));
        assert_eq!(watch.shortage(Bytes::mib(1)), None);
        let _tree = memory(tree, 1000, 3, 1 << 20);
        assert!(watch.shortage(Bytes::mib(1)).unwrap().contains("swapped out"));
        assert_eq!(watch.shortage(Bytes::mib(1)), None);
    }

    #[test]
    fn a_control_group_that_fills_up_is_a_shortage() {
        let tree = memory(Fixture::new(), 1000, 0, 0)
            .file("proc/self/cgroup", "0::/job\n")
            .file("proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
            .file("sys/fs/cgroup/job/memory.max", "104857600\n")
            .file("sys/fs/cgroup/job/memory.current", "52428800\n");
        let mut watch = MemoryWatch::start(tree.root(), 0, Bytes::mib(200));
        // 50 MiB are left. A fifth of them stays free.
        assert_eq!(watch.shortage(Bytes::mib(39)), None);
        assert!(watch.shortage(Bytes::mib(41)).unwrap().contains("memory.max of control group /job"));
    }

    #[test]
    fn without_any_counters_there_is_no_shortage() {
        let tree = Fixture::new();
        let mut watch = MemoryWatch::start(tree.root(), 0, Bytes::gib(1));
        assert_eq!(watch.shortage(Bytes::gib(1)), None);
    }
}
