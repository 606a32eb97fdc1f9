//! Notes on the results as a whole: what no single number shows.

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{ChaseOrder, Coordinates, Method, Metric, PageRequest};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::protocol::IDLE_DELAY_CYCLES;
use memgauge_model::result::{Measurement, PageKind};
use memgauge_model::topology::{Machine, OperatingSystem};
use memgauge_model::units::Bytes;
use memgauge_model::words;
use memgauge_model::words::{Knob, Way};

use crate::conclusions::judge::drifted;
use crate::conclusions::scan;

/// Below this ratio of random to sequential latency, prefetchers do not seem to help a sequential chase at all.
const PREFETCH_VISIBLE: f64 = 1.3;
/// A curve's unloaded point and the idle latency of the same CPU and node agree within this (ASCT's sanity rule).
const IDLE_AGREEMENT: f64 = 0.05;
/// Buffers below this may be in a cache, where order matters little.
const LARGE: Bytes = Bytes::mib(16);
/// Above this ratio of random to sequential latency a prefetcher is active, whatever the registers say. Without prefetchers, open DRAM
/// pages and adjacent lines make ascending order at most this much faster.
pub const PREFETCHING_RATIO: f64 = 1.5;
/// The page size of the pool that advice names.
const POOL_PAGE: Bytes = Bytes::mib(2);

/// Notes on `results` as a whole. Unreliable numbers are not compared.
pub fn notes(results: &[Measurement], machine: &Machine) -> Vec<Note> {
    let single = [small_pages(results, machine), prefetchers(results), plateau(results), lowest_load(results)];
    single.into_iter().flatten().chain(scan::notes(results, machine.identity.system)).collect()
}

/// The part of a full-random latency that is address translation: its excess over the window-local one. 0 if their intervals overlap,
/// `None` if one was not measured.
pub fn translation_ns(local: &Estimate, full: &Estimate) -> Option<f64> {
    let (short, long) = (local.value?, full.value?);
    let apart = full.ci95_low.unwrap_or(long) > local.ci95_high.unwrap_or(short);
    Some(if apart { long - short } else { 0.0 })
}

/// The translation time in the first cell that has both orders; `None` if there is none.
fn translation(results: &[Measurement]) -> Option<f64> {
    let idle = |order| results.iter().filter(move |m| m.method() == Method::IdleLatency && m.at.order == Some(order) && m.is_reliable());
    let (local, full) = idle(ChaseOrder::WindowLocal).find_map(|local| {
        let at = Coordinates { order: Some(ChaseOrder::FullRandom), ..local.at.clone() };
        Some((&local.estimate, &idle(ChaseOrder::FullRandom).find(|m| m.at == at)?.estimate))
    })?;
    translation_ns(local, full).filter(|ns| *ns > 0.0)
}

/// How a user gets large pages on Windows.
const LARGE_PAGES_OF_WINDOWS: &str = "for large pages, grant this user 'Lock pages in memory' (secpol.msc, Local Policies, User Rights \
     Assignment), and log on again";

fn small_pages(results: &[Measurement], machine: &Machine) -> Option<Note> {
    // A region of a scan is read in order, so few of its loads wait for a translation.
    let small = |m: &&Measurement| {
        m.method() != Method::MemoryScan && m.evidence.pages.obtained == Some(PageKind::Base) && m.evidence.buffer > Bytes::mib(2)
    };
    let first = results.iter().find(small)?;
    if first.evidence.pages.requested == PageRequest::Base {
        return None;
    }
    let page = first.evidence.pages.page.map_or_else(|| "the base size".into(), |p| p.to_string());
    let cost = match translation(results) {
        Some(ns) => format!("full-random latency includes about {ns:.0} ns of translation (TLB misses)"),
        None => "latency over large buffers includes translation (TLB misses)".into(),
    };
    let node = first.at.memory_node().or_else(|| machine.allowed.nodes.first()).unwrap_or(0);
    let needed = first.evidence.buffer.0.div_ceil(POOL_PAGE.0);
    // The number is that of all pages of the pool: a smaller one would take away those that are free.
    let pool = machine.topology.node(node).and_then(|node| node.pools.iter().find(|pool| pool.page == POOL_PAGE));
    let total = pool.map_or(needed, |pool| pool.total_for(needed));
    let advice = match machine.identity.system {
        OperatingSystem::Linux => machine.pool_change(Some(node), POOL_PAGE, total).map(|how| format!("reserve 2 MiB pages {how}")),
        OperatingSystem::Windows => Some(LARGE_PAGES_OF_WINDOWS.to_owned()),
    };
    let note = Note::warning(NoteCode::SmallPages, format!("pages are {page}: {cost}"));
    Some(match advice {
        Some(advice) => note.advise(advice),
        None => note,
    })
}

fn prefetchers(results: &[Measurement]) -> Option<Note> {
    let proves = |m: &&Measurement| m.is_reliable() && m.evidence.prefetch.is_some() && m.evidence.buffer > LARGE;
    let idle = results.iter().filter(proves).find(|m| m.method() == Method::IdleLatency)?;
    let ratio = idle.evidence.prefetch?.random_over_sequential;
    (ratio < PREFETCH_VISIBLE).then(|| {
        Note::info(
            NoteCode::PrefetchNotSeen,
            format!("random order is only {ratio:.2} times as slow as sequential: prefetchers seem to be off, or have little effect here"),
        )
    })
}

/// A note if latencies contradict registers that say that prefetchers are off. `results` were measured in that state.
pub fn contradicted<'a>(results: impl IntoIterator<Item = &'a Measurement>) -> Option<Note> {
    let results: Vec<&Measurement> = results.into_iter().filter(|m| m.method() == Method::IdleLatency && m.is_reliable()).collect();
    let large = |m: &&&Measurement| m.evidence.buffer > LARGE && m.at.order != Some(ChaseOrder::Sequential);
    let ratios = results.iter().filter(large).filter_map(|m| m.evidence.prefetch).map(|p| p.random_over_sequential);
    let highest = ratios.fold(0.0, f64::max);
    (highest > PREFETCHING_RATIO).then(|| {
        Note::warning(
            NoteCode::PrefetchOffNotEffective,
            format!(
                "registers say that prefetchers are off, but random order is {highest:.2} times as slow as sequential: a prefetcher is active, so these numbers do not show the machine with prefetchers off"
            ),
        )
        .advise("the hypervisor may ignore the write, or firmware may control other prefetchers: look for them in the BIOS set-up")
    })
}

fn plateau(results: &[Measurement]) -> Option<Note> {
    let m = results.iter().find(|m| m.evidence.plateau.is_some_and(|p| !p.reached))?;
    let (p, buffer) = (m.evidence.plateau?, m.evidence.buffer);
    let message = match p.cold_ns {
        // The caches are emptied only where half of the buffer was as slow as all of it.
        Some(cold_ns) => format!(
            "latency over {buffer} is {:.1} ns, but {cold_ns:.1} ns right after the caches were emptied: part of it may be a cache that the machine does not state",
            p.whole_ns
        ),
        None => format!(
            "latency still grows with the buffer: {:.1} ns over half of {buffer}, {:.1} ns over all of it; part of it may be a cache",
            p.half_ns, p.whole_ns
        ),
    };
    Some(Note::warning(NoteCode::PlateauNotReached, message).advise(Way::Larger(Knob::Size)))
}

fn lowest_load(results: &[Measurement]) -> Option<Note> {
    let lowest = results
        .iter()
        .filter(|m| m.method() == Method::LoadedLatency && m.metric == Metric::Latency && m.estimate.value.is_some())
        // Only a load that hardly ever meets the chase leaves it as fast as when idle.
        .filter(|m| m.at.delay_cycles.is_some_and(|delay| delay >= IDLE_DELAY_CYCLES) && m.is_reliable())
        .max_by_key(|m| m.at.delay_cycles)?;
    let idle = results.iter().find(|m| {
        m.method() == Method::IdleLatency
            && m.at.order == Some(ChaseOrder::WindowLocal)
            && m.at.cpu == lowest.at.cpu
            && m.at.memory_node() == lowest.at.memory_node()
            && m.evidence.window == lowest.evidence.window
            && m.is_reliable()
    })?;
    let apart = drifted(&idle.estimate, &lowest.estimate);
    let (loaded, idle) = (lowest.estimate.value?, idle.estimate.value?);
    (apart && (loaded - idle).abs() > IDLE_AGREEMENT * idle).then(|| {
        Note::warning(
            NoteCode::LowestLoadDiffersFromIdle,
            format!("latency at the lowest load is {loaded:.1} ns, idle latency {idle:.1} ns: more than 5 % apart, with intervals that do not overlap, so the machine changed in between"),
        )
        .advise(Way::from("run again on a quieter machine").or(words!["give more ", Knob::Budget]))
    })
}

#[cfg(test)]
mod tests {
    use memgauge_model::experiment::{Experiment, MemoryPlace, Unit};
    use memgauge_model::result::{Evidence, Quality, QualityLevel, Verdict};

    use super::*;

    fn idle(order: ChaseOrder, value: f64, half_interval: f64) -> Measurement {
        Measurement {
            distribution: None,
            counters: None,
            lines_in_flight: None,
            samples: None,
            experiment: Experiment::IdleLatency,
            at: Coordinates { cpu: Some(0), memory: Some(MemoryPlace::Node(1)), order: Some(order), ..Coordinates::default() },
            metric: Metric::Latency,
            unit: Unit::Nanoseconds,
            firmware: None,
            estimate: Estimate {
                value: Some(value),
                ci95_low: Some(value - half_interval),
                ci95_high: Some(value + half_interval),
                ..Estimate::default()
            },
            evidence: Evidence::default(),
            quality: Quality::default(),
            verdict: Verdict::default(),
        }
    }

    #[test]
    fn only_an_unloaded_point_is_compared_with_idle() {
        let loaded = |delay, value, half| {
            let m = idle(ChaseOrder::WindowLocal, value, half);
            let at = Coordinates { delay_cycles: Some(delay), order: None, ..m.at };
            Measurement { experiment: Experiment::LoadedLatency, at, ..m }
        };
        let note = |delay, value, half| lowest_load(&[idle(ChaseOrder::WindowLocal, 90.0, 1.0), loaded(delay, value, half)]);
        assert_eq!(note(0, 260.0, 1.0), None, "full load is slower on every healthy machine");
        assert_eq!(note(IDLE_DELAY_CYCLES, 91.0, 1.0), None);
        assert_eq!(note(IDLE_DELAY_CYCLES, 110.0, 25.0), None, "the intervals overlap");
        let mut disturbed = loaded(IDLE_DELAY_CYCLES, 110.0, 1.0);
        disturbed.quality.level = QualityLevel::Unreliable;
        assert_eq!(lowest_load(&[idle(ChaseOrder::WindowLocal, 90.0, 1.0), disturbed]), None, "other work was in it");
        assert_eq!(note(IDLE_DELAY_CYCLES, 110.0, 1.0).unwrap().code, NoteCode::LowestLoadDiffersFromIdle);
    }

    #[test]
    fn a_note_on_the_buffer_says_what_was_seen() {
        let note = |half_ns, whole_ns, cold_ns| {
            let mut m = idle(ChaseOrder::WindowLocal, whole_ns, 1.0);
            m.evidence.buffer = Bytes::mib(256);
            m.evidence.plateau = Some(memgauge_model::result::Plateau { half_ns, whole_ns, cold_ns, reached: false });
            plateau(&[m]).unwrap().message
        };
        assert!(note(90.0, 129.5, None).to_string().contains("still grows with the buffer: 90.0 ns over half of 256 MiB, 129.5 ns"));
        let cold = note(131.3, 129.5, Some(150.2));
        assert!(
            cold.to_string().starts_with("latency over 256 MiB is 129.5 ns, but 150.2 ns right after the caches were emptied"),
            "{cold}"
        );
        assert!(!cold.to_string().contains("grows"), "{cold}");
    }

    #[test]
    fn an_unreliable_chase_says_nothing_about_prefetchers() {
        let note = |level| {
            let mut m = idle(ChaseOrder::WindowLocal, 90.0, 1.0);
            m.evidence.buffer = Bytes::mib(64);
            m.evidence.prefetch = Some(memgauge_model::result::PrefetchEvidence { sequential_ns: 85.0, random_over_sequential: 1.05 });
            m.quality.level = level;
            prefetchers(&[m]).map(|note| note.code)
        };
        assert_eq!(note(QualityLevel::Degraded).unwrap(), NoteCode::PrefetchNotSeen);
        assert_eq!(note(QualityLevel::Unreliable), None);
    }

    #[test]
    fn latencies_overrule_registers() {
        let chase = |level, mib, ratio| {
            let mut m = idle(ChaseOrder::WindowLocal, 90.0, 1.0);
            m.evidence.buffer = Bytes::mib(mib);
            m.evidence.prefetch = Some(memgauge_model::result::PrefetchEvidence { sequential_ns: 50.0, random_over_sequential: ratio });
            m.quality.level = level;
            contradicted([&m]).map(|note| note.code)
        };
        assert_eq!(chase(QualityLevel::Good, 512, 2.4), Some(NoteCode::PrefetchOffNotEffective.into()));
        assert_eq!(chase(QualityLevel::Good, 512, 1.1), None);
        assert_eq!(chase(QualityLevel::Unreliable, 512, 2.4), None);
        // Within a cache order makes little difference, and what difference there is has other reasons.
        assert_eq!(chase(QualityLevel::Good, 8, 2.4), None);
    }

    #[test]
    fn advice_on_pages_leaves_the_pool_what_it_has() {
        use memgauge_model::topology::PagePool;

        use crate::conclusions::limit::tests::machine;
        let advice = |pools: Vec<PagePool>| {
            let mut m = idle(ChaseOrder::WindowLocal, 90.0, 1.0);
            m.evidence.buffer = Bytes::mib(64);
            m.evidence.pages.obtained = Some(PageKind::Base);
            let mut machine = machine();
            machine.topology.nodes[1].pools = pools;
            small_pages(&[m], &machine).unwrap().advice.map(|advice| advice.to_string()).unwrap_or_default()
        };
        let pool = |total, free| vec![PagePool { page: Bytes::mib(2), total, free }];
        let command = |pages: u32| format!("echo {pages} > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages");
        assert!(advice(pool(0, 0)).ends_with(&command(32)), "{}", advice(pool(0, 0)));
        assert!(advice(pool(1000, 10)).ends_with(&command(1022)), "{}", advice(pool(1000, 10)));
        assert!(advice(pool(1000, 40)).ends_with(&command(1000)), "no page is taken away: {}", advice(pool(1000, 40)));
        assert_eq!(advice(Vec::new()), "", "a kernel without such a pool has no file to write to");
    }

    #[test]
    fn translation_costs_something_only_where_the_intervals_tell_the_orders_apart() {
        let both = |local: f64, full: f64, half| [idle(ChaseOrder::WindowLocal, local, half), idle(ChaseOrder::FullRandom, full, half)];
        assert_eq!(translation(&both(90.0, 112.0, 2.0)), Some(22.0));
        assert_eq!(translation(&both(90.0, 92.0, 2.0)), None);
        // A guest on a busy host: 435 ns and then 285 ns. No note may speak of -151 ns of translation.
        assert_eq!(translation(&both(435.3, 284.7, 2.0)), None);
        assert_eq!(translation(&both(90.0, 112.0, 2.0)[..1]), None);
    }
}
