//! The line below a table that proves what was measured.

use std::collections::BTreeSet;

use memgauge_model::directory::{FileBacking, FileEvidence};
use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Measurement, PlacementStatus};
use memgauge_model::stats::median;
use memgauge_model::wording::spelled;

use super::grid::DETAILED_COLUMNS;
use crate::number::{bounds, count, from_to, measured, number, percent, range, sizes, value_of};
use crate::pages::pages;

/// The properties that the measurements share, each in a few words. Only measurements with a value count.
pub(super) fn evidence(measurements: &[&Measurement]) -> Vec<String> {
    let ms = measured(measurements);
    buffers(&ms).into_iter().chain(prefetch(&ms)).chain(sampling(&ms)).collect()
}

/// The same without what chases show of the prefetchers, for results in several states of these.
pub(super) fn evidence_without_prefetch(measurements: &[&Measurement]) -> Vec<String> {
    let ms = measured(measurements);
    [buffers(&ms), sampling(&ms)].concat()
}

/// Kernel, buffers, pages and their places.
fn buffers(ms: &[&Measurement]) -> Vec<String> {
    if ms.is_empty() {
        return Vec::new();
    }
    let mut items: Vec<String> = Vec::new();
    let kernels: BTreeSet<&str> = ms.iter().map(|m| m.evidence.kernel.as_str()).filter(|k| !k.is_empty()).collect();
    if kernels.len() == 1 {
        items.extend(kernels.iter().map(|k| (*k).to_owned()));
    }
    let loaders = ms.iter().any(|m| m.evidence.traffic.is_some());
    // A scan states the size of its regions above the table.
    let buffers = ms.iter().filter(|m| m.experiment != Experiment::MemoryScan);
    let buffers = sizes(buffers.map(|m| m.evidence.buffer).filter(|b| b.0 > 0));
    items.extend(buffers.map(|size| if loaders { format!("buffers {size} in all") } else { format!("buffer {size}") }));
    items.push(pages(ms));
    items.push(placement(ms));
    items.extend(ms.iter().filter_map(|m| m.evidence.file.as_ref()).map(file).collect::<BTreeSet<_>>());
    items.extend(sizes(ms.iter().filter_map(|m| m.evidence.window)).map(|window| format!("window {window}")));
    items.extend(sizes(ms.iter().filter_map(|m| m.evidence.stride)).map(|stride| format!("stride {stride}")));
    items.retain(|i| !i.is_empty());
    items
}

/// How threads ran together, how many samples there are, and what disturbed them.
fn sampling(ms: &[&Measurement]) -> Vec<String> {
    let mut items = Vec::new();
    let at_least = |share: fn(&Measurement) -> Option<f64>| {
        bounds(ms.iter().filter_map(|m| share(m))).map(|(low, _)| percent((low * 100.0).floor() / 100.0))
    };
    items.extend(at_least(|m| m.evidence.coverage).map(|share| format!("threads ran together ≥ {share} of the time")));
    items.extend(at_least(|m| m.evidence.fairness).map(|share| format!("slowest : fastest thread ≥ {share}")));
    // Memory gives a core only a few bytes per cycle. The rate from caches is shown, to be compared with what the core can do.
    let cached = ms.iter().filter_map(|m| m.evidence.bytes_per_cycle).filter(|b| *b >= CACHE_BYTES);
    items.extend(range(cached).map(|bytes| format!("{bytes} B per cycle and CPU")));
    if let Some((low, high)) = bounds(ms.iter().map(|m| f64::from(m.evidence.allocations))).filter(|(low, _)| *low > 1.0) {
        items.push(format!("{} allocations", from_to(format!("{low:.0}"), format!("{high:.0}"))));
    }
    if let (Some(low), Some(high)) = (ms.iter().map(|m| m.estimate.n).min(), ms.iter().map(|m| m.estimate.n).max()) {
        items.push(format!("n = {}", from_to(low.to_string(), high.to_string())));
    }
    if let Some((_, high)) = bounds(ms.iter().filter_map(|m| m.estimate.outliers)).filter(|(_, high)| *high >= NOTABLE_OUTLIERS) {
        items.push(format!("outliers ≤ {}", percent(high)));
    }
    let repeated: u32 = ms.iter().filter_map(|m| m.evidence.noise.bursts_repeated).sum();
    if repeated > 0 {
        items.push(format!("{} repeated", count(repeated as usize, "disturbed burst", "disturbed bursts")));
    }
    items
}

/// More bytes per cycle than any core gets from memory.
const CACHE_BYTES: f64 = 24.0;

/// When a twentieth of the samples are outliers, the median moves by a fortieth of the distribution: within its interval, but worth
/// mentioning.
const NOTABLE_OUTLIERS: f64 = 0.05;

/// `files in /mnt/pmem (ext4 on /dev/pmem0): DAX with MAP_SYNC`.
pub(super) fn file(file: &FileEvidence) -> String {
    let device = file.device.as_ref().map(|d| format!(" on {d}")).unwrap_or_default();
    let what = match (file.backing, file.map_sync) {
        (FileBacking::Dax, true) => "DAX with MAP_SYNC",
        (FileBacking::Dax, false) => "DAX without MAP_SYNC",
        (FileBacking::PageCache, _) => "page cache (DRAM), not DAX",
        (FileBacking::Tmpfs, _) => "shared memory (DRAM), not DAX",
    };
    let stand_in = file.volatile.as_ref().map(|why| format!("; volatile stand-in: {why}")).unwrap_or_default();
    format!("files in {} ({}{device}): {what}{stand_in}", file.path, file.filesystem)
}

pub(super) fn placement(ms: &[&Measurement]) -> String {
    let verified = ms.iter().filter(|m| m.evidence.placement.status == PlacementStatus::Verified).count();
    let wrong = ms.iter().filter(|m| m.evidence.placement.status == PlacementStatus::Wrong).count();
    let sources: BTreeSet<String> = ms.iter().filter_map(|m| m.evidence.placement.source).map(|source| spelled(&source)).collect();
    let by = if sources.is_empty() { String::new() } else { format!(" ({})", sources.into_iter().collect::<Vec<_>>().join(", ")) };
    match (verified, wrong) {
        (v, _) if v == ms.len() => format!("placement verified{by}"),
        (0, 0) => "placement not verified".into(),
        (v, 0) => format!("placement verified{by} for {v} of {}", ms.len()),
        (_, w) => format!("placement wrong for {w} of {}", ms.len()),
    }
}

/// Random over sequential: the proof that prefetchers did not help the chase.
fn prefetch(ms: &[&Measurement]) -> Option<String> {
    let ratios: Vec<f64> =
        ms.iter().filter(|m| m.is_reliable()).filter_map(|m| m.evidence.prefetch).map(|p| p.random_over_sequential).collect();
    let (low, high) = bounds(ratios.iter().copied())?;
    let text = range(ratios)?;
    let meaning = match (low > PREFETCHED, high > PREFETCHED) {
        (true, _) => "prefetchers are on; the random order defeats them",
        (false, true) => "prefetchers are at work in some of these cells; the random order defeats them",
        (false, false) => "no prefetcher at work",
    };
    Some(format!("random : sequential {text} ({meaning})"))
}

/// Up to this factor, sequential order gains no more than open DRAM pages give without any prefetcher.
const PREFETCHED: f64 = 1.5;

/// The widest interval of a matrix with this many columns, if it shows values only: the larger half of that interval, rounded up, so that it
/// never claims more than was measured.
pub(super) fn widest_interval<'a>(ms: impl Iterator<Item = &'a &'a Measurement>, columns: usize) -> Option<String> {
    let values: Vec<(&Estimate, f64)> = ms.filter_map(|m| Some((&m.estimate, value_of(&m.estimate)?))).collect();
    let larger_half = |(e, v): &(&Estimate, f64)| Some((v - e.ci95_low?).max(e.ci95_high? - v) / v).filter(|half| half.is_finite());
    let halves: Vec<f64> = values.iter().filter_map(larger_half).collect();
    let which = if halves.len() == values.len() { "all" } else { "all that have an interval" };
    let (_, widest) = bounds(halves)?;
    // The small constant keeps 0.4 from becoming 0.5 by binary rounding.
    let percent = (widest * 1e3 - 1e-6).max(0.0).ceil() / 10.0;
    let each = if columns <= DETAILED_COLUMNS { "each interval: -v" } else { "each interval is in the JSON result" };
    Some(format!("{which} within ±{percent:.1} %; {each}"))
}

/// How many values a sum leaves out because they are not reliable; `None` where there are none.
pub(super) fn left_out(ms: &[&Measurement]) -> Option<String> {
    let unreliable = ms.iter().filter(|m| value_of(&m.estimate).is_some() && !m.is_reliable()).count();
    (unreliable > 0).then(|| format!("{unreliable} unreliable left out"))
}

/// Range and median of many values in one line.
pub(super) fn spread(values: &[f64], unit: &str) -> Option<String> {
    let text = range(values.iter().copied())?;
    let middle = median(values)?;
    Some(if values.len() > 1 && text.contains('–') {
        format!("{text} {unit}, median {}", number(middle))
    } else {
        format!("{text} {unit}")
    })
}
