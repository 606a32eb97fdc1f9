//! Finds the levels of the memory hierarchy in a curve over the working set: its plateaus, the knees between them, and the caches that they
//! belong to. The arithmetic is the same for latency and bandwidth.
//!
//! 1. Smooth the logarithms of the values (median of three neighbours), then fit a step function that never falls (for bandwidth: never
//!    rises), by pooling adjacent violators with medians, so that a few disturbed points have no effect (R. Barlow et al., "Statistical
//!    Inference under Order Restrictions", 1972).
//! 2. Plateaus are the widest runs of that function that change by less than `FLAT`, the widest first. Neighbours that hardly differ are
//!    one plateau. The rest between two plateaus is a knee.
//! 3. A level ends where the curve leaves its plateau. A cyclic chase leaves a cache sharply under LRU, and gradually under any other
//!    replacement policy.
//! 4. Knees are matched with caches in order, so that the sum of the distances between their sizes is smallest.

use memgauge_model::axis::Axis;
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::result::{CacheSize, Knee, Level, LevelSummary, Measurement, Point};
use memgauge_model::stats;
use memgauge_model::topology::{Machine, Topology};
use memgauge_model::units::Bytes;

/// A plateau changes by less than this from end to end. Levels differ by at least 40 %; the slope within a level (more TLB misses, more
/// sets in use) and noise are smaller.
const FLAT: f64 = 0.10;
/// A plateau is at least this wide, in doublings. Anything narrower is part of a step.
const MIN_OCTAVES: f64 = 0.74;
/// A plateau has at least this many points.
const MIN_POINTS: usize = 3;
/// Neighbouring plateaus of latency whose values differ by less than this factor are one level. Misses of the second-level TLB add 10 to 20
/// %, and memory is a third faster if half of it stays in a shared cache, but the next cache takes at least twice as long.
const SAME_LATENCY: f64 = 1.5;
/// The same for bandwidth, whose steps prefetchers make smaller.
const SAME_BANDWIDTH: f64 = 1.3;
/// The curve has left a plateau when it has gone this share of the way to the next one: more than noise and slope, and early in the rise.
const DEPARTED: f64 = 0.15;
/// A knee and a cache further apart than this, in doublings, are matched only if nothing else fits. A hypervisor shows the whole size of a
/// cache to guests that have a part of it.
const FAR: f64 = 3.0;
/// The largest last-level cache that one CPU can fill today, except for AMD's 1.1 GiB of 3D V-Cache. A hypervisor may show less than that.
const LARGEST_CACHE: Bytes = Bytes::mib(256);

/// Finds the levels in every curve over the working set in `results`, by its reliable points.
pub fn summarise(results: &[Measurement], machine: &Machine) -> Vec<LevelSummary> {
    let mut curves: Vec<(Coordinates, Metric, Vec<&Measurement>)> = Vec::new();
    let is_point = |m: &&Measurement| m.experiment == Experiment::Sweep && m.at.working_set.is_some() && m.estimate.value.is_some();
    for m in results.iter().filter(is_point).filter(|m| m.is_reliable()) {
        let at = m.at.without(Axis::WorkingSet);
        match curves.iter_mut().find(|c| c.0 == at && c.1 == m.metric) {
            Some(curve) => curve.2.push(m),
            None => curves.push((at, m.metric, vec![m])),
        }
    }
    curves
        .into_iter()
        .map(|(at, metric, ms)| {
            let points: Vec<Point> = ms.iter().filter_map(|m| Some((m.at.working_set?, m.estimate.value?))).collect();
            let hidden = if machine.identity.may_be_virtual() { LARGEST_CACHE } else { Bytes::default() };
            let (levels, unseen) = find(&points, metric == Metric::Latency, &caches(&machine.topology, &at), hidden);
            LevelSummary { at, metric: Some(metric), levels, unseen }
        })
        .collect()
}

/// The data caches of the curve's CPU, by ascending size. The size is the part that one of the curve's CPUs can fill while the others use
/// theirs.
pub fn caches(topology: &Topology, at: &Coordinates) -> Vec<CacheSize> {
    let cpus = at.cpus.clone().unwrap_or_else(|| at.cpu.into_iter().collect());
    let Some(cpu) = cpus.first() else { return Vec::new() };
    let mut caches: Vec<CacheSize> = topology
        .cpu_caches(cpu)
        .filter(|c| c.size.0 > 0)
        .map(|c| {
            let sharers = c.cpus.intersection(&cpus).len().max(1) as u64;
            CacheSize { name: if c.level == 1 { "L1d".into() } else { format!("L{}", c.level) }, size: Bytes(c.size.0 / sharers) }
        })
        .collect();
    caches.sort_by_key(|c| c.size);
    caches
}

/// Finds the levels of one curve, and the caches without a step. `rising`: values grow with the working set, as latency does. `hidden`: the
/// size of a cache that there may be although `caches` does not have it, 0 for none.
pub fn find(points: &[Point], rising: bool, caches: &[CacheSize], hidden: Bytes) -> (Vec<Level>, Vec<CacheSize>) {
    let mut points: Vec<Point> = points.iter().copied().filter(|p| p.0.0 > 0 && p.1.is_finite() && p.1 > 0.0).collect();
    points.sort_by_key(|p| p.0);
    let sign = if rising { 1.0 } else { -1.0 };
    let logs: Vec<f64> = points.iter().map(|p| p.1.ln() * sign).collect();
    let stairs = staircase(&median_of_three(&logs));
    let octave: Vec<f64> = points.iter().map(|p| (p.0.0 as f64).log2()).collect();
    let mut runs = Vec::new();
    plateaus(&stairs, &octave, 0, stairs.len(), &mut runs);
    runs.sort_unstable();
    let runs = merged(&runs, &stairs, if rising { SAME_LATENCY } else { SAME_BANDWIDTH });
    let mut levels = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let values: Vec<f64> = points[run.0..run.1].iter().map(|p| p.1).collect();
        let sorted = stats::sorted(&values);
        let (Some(first), Some(last)) = (sorted.first().copied(), sorted.last().copied()) else { continue };
        let (low, high) = stats::median_interval(&sorted).unwrap_or((first, last));
        let knee = runs.get(i + 1).map(|next| {
            let edge = height(&stairs, *run) + departure(height(&stairs, *next) - height(&stairs, *run));
            let spills = (run.0..points.len()).find(|&p| stairs[p] > edge).unwrap_or(next.0).max(run.0 + 1);
            Knee { fits: points[spills - 1].0, spills: points[spills].0, cache: None, agrees: None }
        });
        // Points at its end that have left the plateau are not part of it.
        let to = knee.as_ref().map_or(points[run.1 - 1].0, |k| points[run.1 - 1].0.min(k.fits));
        let value = stats::median(&values).unwrap_or(first);
        levels.push(Level { name: "?".into(), from: points[run.0].0, to, value, low, high, knee });
    }
    let unseen = name(&mut levels, caches, hidden, &points);
    (levels, unseen)
}

/// The part of a logarithmic step at which the curve has gone [`DEPARTED`] of the linear way.
fn departure(step: f64) -> f64 {
    (1.0 + DEPARTED * (step.exp() - 1.0)).ln()
}

/// The median of each value and its two neighbours. The ends stay as they are.
fn median_of_three(values: &[f64]) -> Vec<f64> {
    let mut out = values.to_vec();
    for (i, w) in values.windows(3).enumerate() {
        out[i + 1] = w[0].max(w[1]).min(w[0].min(w[1]).max(w[2]));
    }
    out
}

/// The nearest step function that never falls: adjacent violators are pooled at their median.
fn staircase(values: &[f64]) -> Vec<f64> {
    let mut blocks: Vec<(Vec<f64>, f64)> = Vec::new();
    for &value in values {
        blocks.push((vec![value], value));
        while let [.., left, right] = &blocks[..] {
            if left.1 <= right.1 {
                break;
            }
            let pooled = [left.0.as_slice(), right.0.as_slice()].concat();
            let median = stats::median(&pooled).unwrap_or(value);
            blocks.truncate(blocks.len() - 2);
            blocks.push((pooled, median));
        }
    }
    blocks.into_iter().flat_map(|(members, median)| vec![median; members.len()]).collect()
}

/// The widest flat run between two points, and those on both sides of it.
fn plateaus(stairs: &[f64], octave: &[f64], from: usize, to: usize, found: &mut Vec<(usize, usize)>) {
    let mut best: Option<(usize, usize)> = None;
    let mut end = from;
    let wide = |run: (usize, usize)| octave[run.1 - 1] - octave[run.0];
    for start in from..to {
        end = end.max(start + 1);
        while end < to && stairs[end] - stairs[start] < FLAT.ln_1p() {
            end += 1;
        }
        let run = (start, end);
        if end - start >= MIN_POINTS && wide(run) >= MIN_OCTAVES && best.is_none_or(|b| wide(run) > wide(b)) {
            best = Some(run);
        }
    }
    let Some((start, end)) = best else { return };
    found.push((start, end));
    plateaus(stairs, octave, from, start, found);
    plateaus(stairs, octave, end, to, found);
}

/// The median of a run.
fn height(stairs: &[f64], run: (usize, usize)) -> f64 {
    stats::median(&stairs[run.0..run.1]).unwrap_or_default()
}

/// Merges neighbouring plateaus that are one level.
fn merged(runs: &[(usize, usize)], stairs: &[f64], same: f64) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    // Later parts are compared with the height of the first part, so that a long slope is not one level.
    let mut first = 0.0;
    for &run in runs {
        match out.last_mut() {
            Some(last) if height(stairs, run) - first < same.ln() => last.1 = run.1,
            _ => {
                first = height(stairs, run);
                out.push(run);
            }
        }
    }
    out
}

/// Names the levels and their knees after caches. Returns the caches that are left.
fn name(levels: &mut [Level], caches: &[CacheSize], hidden: Bytes, points: &[Point]) -> Vec<CacheSize> {
    let edges: Vec<f64> = levels.iter().filter_map(|l| l.knee.as_ref()).map(knee_position).collect();
    let chosen = matched(&edges, caches);
    let mut left: Vec<CacheSize> = caches.to_vec();
    let mut knees = 0;
    let largest = caches.last().map(|c| c.size);
    let steps: Vec<Bytes> = points.iter().map(|p| p.0).collect();
    for level in levels.iter_mut() {
        let Some(knee) = &mut level.knee else {
            level.name = last_name(level, largest, &left, hidden);
            left.retain(|c| c.name != level.name);
            continue;
        };
        if let Some(cache) = chosen.get(knees).copied().flatten().and_then(|i| caches.get(i)) {
            let before = steps.iter().rev().find(|s| **s < knee.fits).copied().unwrap_or(knee.fits);
            let after = steps.iter().find(|s| **s > knee.spills).copied().unwrap_or(knee.spills);
            knee.agrees = Some((before..=after).contains(&cache.size));
            level.name.clone_from(&cache.name);
            left.retain(|c| c != cache);
            knee.cache = Some(cache.clone());
        }
        knees += 1;
    }
    // A sweep that ends inside a cache cannot show the step of that cache.
    let largest_swept = steps.last().copied().unwrap_or_default();
    left.retain(|c| c.size < largest_swept);
    left
}

/// The name of the last plateau: memory if sizes on it say so, otherwise the cache that the sweep ends in, or both if it may be either.
fn last_name(level: &Level, largest: Option<Bytes>, left: &[CacheSize], hidden: Bytes) -> String {
    let Some(largest) = largest else { return "?".into() };
    // A plateau that continues to twice the size of a cache is not that of the cache.
    let beyond = |cache: Bytes| level.to.0 / 2 >= cache.0;
    let past_known = beyond(largest) || level.from >= largest || (left.is_empty() && level.to > largest);
    // One of the caches without a level.
    let own = || left.iter().filter(|c| c.size >= level.from);
    let cache = own().find(|c| !beyond(c.size)).or_else(|| own().next_back()).map(|c| &c.name);
    match cache {
        _ if past_known && beyond(hidden) => "memory".into(),
        Some(cache) if past_known => format!("{cache} or memory"),
        Some(cache) => cache.clone(),
        None => "memory?".into(),
    }
}

/// The position of a knee on the logarithmic axis.
fn knee_position(knee: &Knee) -> f64 {
    ((knee.fits.0 as f64).log2() + (knee.spills.0 as f64).log2()) / 2.0
}

/// The cache of each edge, in order and none twice: as many as possible, with the smallest sum of distances.
fn matched(edges: &[f64], caches: &[CacheSize]) -> Vec<Option<usize>> {
    // best[e][c]: the lowest cost from edge e and cache c on. Leaving out an edge costs as much as a far pair, leaving out a cache half of
    // that.
    let size = |c: usize| (caches[c].size.0 as f64).log2();
    let (n, m) = (edges.len(), caches.len());
    let mut best = vec![vec![0.0_f64; m + 1]; n + 1];
    for e in (0..n).rev() {
        for c in (0..=m).rev() {
            let skip_edge = best[e + 1][c] + FAR;
            let rest = if c < m { (best[e][c + 1] + FAR / 2.0).min(best[e + 1][c + 1] + (edges[e] - size(c)).abs()) } else { f64::MAX };
            best[e][c] = skip_edge.min(rest);
        }
    }
    // Caches beyond the last edge cost nothing: only edges decide.
    let mut out = vec![None; n];
    let (mut e, mut c) = (0, 0);
    while e < n && c < m {
        if best[e][c] == best[e + 1][c + 1] + (edges[e] - size(c)).abs() {
            out[e] = Some(c);
            (e, c) = (e + 1, c + 1);
        } else if best[e][c] == best[e + 1][c] + FAR {
            e += 1;
        } else {
            c += 1;
        }
    }
    parts(&mut out, edges, caches);
    out
}

/// Matches a single edge between the edges of two caches, if only one cache is left there. The edge is a part of that cache: what other
/// users or a hypervisor leave.
fn parts(out: &mut [Option<usize>], edges: &[f64], caches: &[CacheSize]) {
    for e in 0..out.len() {
        let before = out[..e].iter().rev().find(|c| c.is_some()).copied().flatten();
        let alone = out[e].is_none() && (e == 0 || out[e - 1].is_some()) && out.get(e + 1).is_none_or(Option::is_some);
        let after = out.get(e + 1).copied().flatten().unwrap_or(caches.len());
        let first = before.map_or(0, |c| c + 1);
        let octaves = caches.get(first).map_or(f64::MAX, |c| (c.size.0 as f64).log2() - edges[e]);
        if alone && after == first + 1 && (0.0..SMALLEST_PART).contains(&octaves) {
            out[e] = Some(first);
        }
        // A plateau that only begins when most of the cache is in use is not the plateau of that cache; the one before it is.
        if alone && after == first && (0.0..LARGEST_PART).contains(&octaves) {
            out.swap(e, e + 1);
        }
    }
}

/// How much smaller than described a cache may look, in doublings: cache partitioning on current servers leaves at least a sixteenth.
const SMALLEST_PART: f64 = 4.0;
/// Doublings below a cache's size. A plateau that begins later than this, at a third of the size, is not the plateau of that cache.
const LARGEST_PART: f64 = 1.6;

#[cfg(test)]
mod tests;
