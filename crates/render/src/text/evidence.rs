//! The line below a table that proves what was measured.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::directory::{FileBacking, FileEvidence};
use memgauge_core::experiment::Experiment;
use memgauge_core::result::{Measurement, PageKind, PlacementStatus};
use memgauge_core::stats::median;
use memgauge_core::units::Bytes;

use super::number::{bounds, human, number, percent, range, value_of};

/// What the measurements have in common, each item a few words. Only those with a value count: the others were not carried out.
pub(super) fn evidence(measurements: &[&Measurement]) -> Vec<String> {
    let ms: Vec<&Measurement> = measurements.iter().copied().filter(|m| value_of(&m.estimate).is_some()).collect();
    if ms.is_empty() {
        return Vec::new();
    }
    let mut items = Vec::new();
    let kernels: BTreeSet<&str> = ms.iter().map(|m| m.evidence.kernel.as_str()).filter(|k| !k.is_empty()).collect();
    if kernels.len() == 1 {
        items.extend(kernels.iter().map(|k| (*k).to_owned()));
    }
    let loaders = ms.iter().any(|m| m.evidence.traffic.is_some());
    // The regions of a scan are no buffers of their threads, and their size is said above the table.
    let buffers = ms.iter().filter(|m| m.experiment != Experiment::MemoryScan);
    if let Some(size) = sizes(buffers.map(|m| m.evidence.buffer).filter(|b| b.0 > 0)) {
        items.push(if loaders { format!("buffers {size} in all") } else { format!("buffer {size}") });
    }
    items.push(pages(&ms));
    items.push(placement(&ms));
    let files: BTreeSet<String> = ms.iter().filter_map(|m| m.evidence.file.as_ref()).map(file).collect();
    items.extend(files);
    if let Some(window) = sizes(ms.iter().filter_map(|m| m.evidence.window)) {
        items.push(format!("window {window}"));
    }
    if let Some(stride) = sizes(ms.iter().filter_map(|m| m.evidence.stride)) {
        items.push(format!("stride {stride}"));
    }
    items.extend(prefetch(&ms));
    if let Some((low, _)) = bounds(ms.iter().filter_map(|m| m.evidence.coverage)) {
        items.push(format!("threads together ≥ {}", percent((low * 100.0).floor() / 100.0)));
    }
    if let Some((low, _)) = bounds(ms.iter().filter_map(|m| m.evidence.fairness)) {
        items.push(format!("slowest : fastest thread ≥ {}", percent((low * 100.0).floor() / 100.0)));
    }
    // Memory gives a core a few bytes a cycle; what caches give is compared with what the core can do.
    let cached = ms.iter().filter_map(|m| m.evidence.bytes_per_cycle).filter(|b| *b >= CACHE_BYTES);
    items.extend(range(cached).map(|bytes| format!("{bytes} B per cycle and CPU")));
    if let Some((low, high)) = bounds(ms.iter().map(|m| f64::from(m.evidence.allocations))).filter(|(low, _)| *low > 1.0) {
        items.push(if low == high { format!("{low:.0} allocations") } else { format!("{low:.0}–{high:.0} allocations") });
    }
    if let (Some(low), Some(high)) = (ms.iter().map(|m| m.estimate.n).min(), ms.iter().map(|m| m.estimate.n).max()) {
        items.push(if low == high { format!("n = {low}") } else { format!("n = {low}–{high}") });
    }
    if let Some((_, high)) = bounds(ms.iter().filter_map(|m| m.estimate.outliers)).filter(|(_, high)| *high >= OUTLIERS_SAID) {
        items.push(format!("outliers ≤ {}", percent(high)));
    }
    let repeated: u32 = ms.iter().filter_map(|m| m.evidence.noise.bursts_repeated).sum();
    if repeated > 0 {
        items.push(format!("{repeated} disturbed bursts repeated"));
    }
    items.retain(|i| !i.is_empty());
    items
}

/// More bytes per cycle than any core gets from memory.
const CACHE_BYTES: f64 = 24.0;

/// A twentieth of the samples far off moves a median by a fortieth of its distribution: within its interval, and worth a word.
const OUTLIERS_SAID: f64 = 0.05;

fn sizes(sizes: impl Iterator<Item = Bytes>) -> Option<String> {
    let all: BTreeSet<Bytes> = sizes.collect();
    let (low, high) = (human(*all.first()?), human(*all.last()?));
    Some(if low == high { low } else { format!("{low}–{high}") })
}

/// `4 KiB base pages`, `2 MiB transparent huge pages (64 %)`: in brackets the share of the buffer that they back.
pub(crate) fn pages(ms: &[&Measurement]) -> String {
    let mut kinds: BTreeMap<(PageKind, Option<Bytes>), Vec<f64>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for m in ms {
        let p = &m.evidence.pages;
        match p.obtained {
            Some(kind) => kinds.entry((kind, p.page)).or_default().extend(p.share.filter(|s| s.is_finite())),
            None => {
                unknown.insert(p.reason.as_deref().unwrap_or(""));
            }
        }
    }
    let mut texts: Vec<String> = kinds
        .into_iter()
        .map(|((kind, page), shares)| {
            let size = page.map(|p| format!("{} ", human(p))).unwrap_or_default();
            let name = match kind {
                PageKind::Base => format!("{size}base pages"),
                PageKind::Thp => format!("{size}transparent huge pages"),
                PageKind::Pool => format!("{size}huge pages of the pool"),
                PageKind::File => format!("{size}pages of files"),
                PageKind::Dax => format!("{size}pages of the device"),
            };
            match bounds(shares) {
                // Half a per cent is the tail of a buffer that is no multiple of the page.
                Some((low, high)) if low < 0.995 => {
                    let (low, high) = (percent(low), percent(high));
                    if low == high { format!("{name} ({low})") } else { format!("{name} ({}–{high})", low.trim_end_matches(" %")) }
                }
                _ => name,
            }
        })
        .collect();
    texts.extend(
        unknown.into_iter().map(|why| if why.is_empty() { "page kind unknown".into() } else { format!("page kind unknown: {why}") }),
    );
    texts.join(" or ")
}

/// `files in /mnt/pmem (ext4 on /dev/pmem0): DAX with MAP_SYNC`.
pub(super) fn file(file: &FileEvidence) -> String {
    let device = file.device.as_ref().map(|d| format!(" on {d}")).unwrap_or_default();
    let what = match (file.backing, file.map_sync) {
        (FileBacking::Dax, true) => "DAX with MAP_SYNC",
        (FileBacking::Dax, false) => "DAX without MAP_SYNC",
        (FileBacking::PageCache, _) => "page cache (DRAM), not DAX",
        (FileBacking::Tmpfs, _) => "shared memory (DRAM), not DAX",
    };
    format!("files in {} ({}{device}): {what}", file.path, file.filesystem)
}

fn placement(ms: &[&Measurement]) -> String {
    let verified = ms.iter().filter(|m| m.evidence.placement.status == PlacementStatus::Verified).count();
    let wrong = ms.iter().filter(|m| m.evidence.placement.status == PlacementStatus::Wrong).count();
    let sources: BTreeSet<&str> = ms.iter().filter_map(|m| m.evidence.placement.source.as_deref()).collect();
    let by = sources.into_iter().collect::<Vec<_>>().join(", ");
    let by = if by.is_empty() { by } else { format!(" ({by})") };
    match (verified, wrong) {
        (v, _) if v == ms.len() => format!("placement verified{by}"),
        (0, 0) => "placement not verified".into(),
        (v, 0) => format!("placement verified{by} for {v} of {}", ms.len()),
        (_, w) => format!("placement wrong for {w} of {}", ms.len()),
    }
}

/// Random over sequential: the proof that prefetchers did not help the chase.
fn prefetch(ms: &[&Measurement]) -> Option<String> {
    let ratios: Vec<f64> = ms.iter().filter_map(|m| m.evidence.prefetch).map(|p| p.random_over_sequential).collect();
    let (low, high) = bounds(ratios.iter().copied())?;
    let text = range(ratios)?;
    let meaning = match (low > PREFETCHED, high > PREFETCHED) {
        (true, _) => "prefetchers are on, and defeated",
        (false, true) => "prefetchers are at work in some of these cells, and defeated",
        (false, false) => "no prefetcher at work",
    };
    Some(format!("random : sequential {text} ({meaning})"))
}

/// Up to this factor, sequential order gains no more than open DRAM pages give without any prefetcher.
const PREFETCHED: f64 = 1.5;

/// Median and range of many cells in one line.
pub(super) fn spread(values: Vec<f64>, unit: &str) -> Option<String> {
    let text = range(values.iter().copied())?;
    let middle = median(&values)?;
    Some(if values.len() > 1 && text.contains('–') {
        format!("{text} {unit}, median {}", number(middle))
    } else {
        format!("{text} {unit}")
    })
}
