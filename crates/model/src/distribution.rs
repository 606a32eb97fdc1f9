//! The distribution of the times of short batches of hops: percentiles, and buckets that are fine enough to draw any histogram.
//!
//! The median is what a load usually takes. Refresh, row conflicts, TLB misses and interrupts are in the tail. Values are kept in an
//! HdrHistogram (G. Tene, <https://hdrhistogram.org>) of three decimal digits.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Batches that can be asked for: one hop, the pointers of one line, and one iteration of the unrolled chase.
pub const BATCHES: [u32; 3] = [1, 8, 64];
/// The default batch. Eight hops share the overhead of the clock, which is about ten hops of a first-level cache.
pub const DEFAULT_BATCH: u32 = 8;
/// The longest step of the clock, in nanoseconds for each hop of a batch. Times are multiples of the step, so peaks that are closer together
/// than this are one, and one peak may look like two: 5 % of a load from DRAM keep caches and memory apart.
const MAX_STEP_NS: f64 = 5.0;
/// Percentiles that a result lists.
pub const PERCENTS: [f64; 10] = [1.0, 5.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// Decimal digits of a value that the histogram keeps: finer than any clock's step over a batch.
const DIGITS: u8 = 3;
/// The longest time of a hop that is recorded, in picoseconds: one second, far longer than any wait for a CPU that matters. Longer times
/// count as this.
const MAX_PS: u64 = 1_000_000_000_000;
/// Buckets of a result are 2^-6 of a power of two wide, at most 1.6 %: below the width that a histogram in steps of four cycles needs at
/// 100 ns.
const BUCKET_BITS: u32 = 6;

/// The smallest batch whose distribution shows the memory and not the steps of the clock, which are `step_ns` long; `None` if no batch is
/// long enough.
pub fn least_batch(step_ns: f64) -> Option<u32> {
    BATCHES.into_iter().find(|&batch| step_ns <= MAX_STEP_NS * f64::from(batch))
}

/// The distribution of the times of batches of hops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Hops per batch. Every value is the time of a batch divided by this.
    pub batch_hops: u32,
    /// Batches timed.
    pub samples: u64,
    /// The time that reading the clock adds to a batch: the median of batches without a hop. It is subtracted from each batch.
    pub overhead_ns: f64,
    /// Nanoseconds per hop below which the given percentage of the batches are.
    pub percentiles: Vec<Percentile>,
    /// Nanoseconds per hop of the slowest batch.
    pub max_ns: f64,
    /// The lowest mode, in nanoseconds per hop: the time of batches during which the thread stayed on its CPU. Present if no burst had
    /// enough time without interruptions, so that the batches include interrupted ones; otherwise those are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_mode_ns: Option<f64>,
    /// Number of batches by time, ascending; empty buckets are left out. A bucket ends at `upper_ns`. Its width is 2^-6 of the power of two
    /// at or below its start, in picoseconds, and at least one picosecond.
    pub buckets: Vec<Bucket>,
    /// The histogram as other tools read it: HdrHistogram V2, compressed, base64; values are picoseconds per hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hdr: Option<String>,
}

/// A percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentile {
    /// Percent of the batches.
    pub percent: f64,
    /// Nanoseconds per hop.
    pub ns: f64,
}

/// A bucket of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Its end, in nanoseconds per hop. Its batches took less.
    pub upper_ns: f64,
    /// Batches in it.
    pub count: u64,
}

impl Bucket {
    /// Its start, in nanoseconds per hop.
    pub fn lower_ns(&self) -> f64 {
        let end = (self.upper_ns * 1e3).round() as u64;
        bounds(end.saturating_sub(1)).0 as f64 / 1e3
    }
}

impl Distribution {
    /// Nanoseconds per hop at a percentile that is listed.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles.iter().find(|p| p.percent == percent).map(|p| p.ns)
    }

    /// The histogram in steps of 2^`bucket_log2` cycles of a clock of `hz`: (cycles at which a step begins, batches in it), ascending,
    /// empty steps are left out. A bucket counts for the step that its middle is in.
    pub fn by_cycles(&self, bucket_log2: u32, hz: f64) -> Vec<(u64, u64)> {
        let width = (1u64 << bucket_log2.min(62)) as f64;
        let mut steps = BTreeMap::new();
        for bucket in &self.buckets {
            let middle = f64::midpoint(bucket.lower_ns(), bucket.upper_ns) * hz / 1e9;
            *steps.entry((middle / width) as u64).or_insert(0) += bucket.count;
        }
        steps.into_iter().map(|(step, count)| (step << bucket_log2.min(62), count)).collect()
    }
}

/// The first value of the bucket that a value is in, and the first value after it.
fn bounds(value: u64) -> (u64, u64) {
    let shift = value.checked_ilog2().map_or(0, |octave| octave.saturating_sub(BUCKET_BITS));
    let lower = value >> shift << shift;
    (lower, lower.saturating_add(1 << shift))
}

/// Collects batches.
pub struct Recorder {
    batch_hops: u32,
    clean: Batches,
    /// From bursts without enough uninterrupted time. They count only where all bursts are like that.
    interrupted: Batches,
}

struct Batches {
    /// Picoseconds per hop.
    histogram: Histogram<u64>,
    overheads_ns: Vec<f64>,
}

impl Batches {
    fn new() -> Option<Self> {
        Some(Self { histogram: Histogram::new_with_bounds(1, MAX_PS, DIGITS).ok()?, overheads_ns: Vec::new() })
    }
}

impl Recorder {
    /// A recorder for batches of `batch_hops` hops; `None` if that is 0.
    pub fn new(batch_hops: u32) -> Option<Self> {
        (batch_hops > 0).then_some(())?;
        Some(Self { batch_hops, clean: Batches::new()?, interrupted: Batches::new()? })
    }

    /// Hops of a batch.
    pub const fn batch_hops(&self) -> u32 {
        self.batch_hops
    }

    /// Adds the times of batches in ticks. Reading the clock took `overhead` of each.
    pub fn add(&mut self, ticks: &[u64], overhead: u64, ns_per_tick: f64) {
        Self::record(self.batch_hops, &mut self.clean, (ticks, overhead, ns_per_tick));
    }

    /// Adds batches of a burst whose thread was off its CPU so often that hardly any time without interruptions was left.
    pub fn add_interrupted(&mut self, ticks: &[u64], overhead: u64, ns_per_tick: f64) {
        Self::record(self.batch_hops, &mut self.interrupted, (ticks, overhead, ns_per_tick));
    }

    fn record(batch_hops: u32, into: &mut Batches, (ticks, overhead, ns_per_tick): (&[u64], u64, f64)) {
        into.overheads_ns.push(overhead as f64 * ns_per_tick);
        let ps = ns_per_tick * 1e3 / f64::from(batch_hops);
        for &batch in ticks {
            // A batch may be shorter than the median reading of the clock. It then counts as the shortest time that can be recorded.
            into.histogram.saturating_record((batch.saturating_sub(overhead) as f64 * ps) as u64);
        }
    }

    /// What was collected; `None` when nothing was.
    pub fn finish(self) -> Option<Distribution> {
        let interrupted = self.clean.histogram.is_empty();
        let Batches { histogram, mut overheads_ns } = if interrupted { self.interrupted } else { self.clean };
        if histogram.is_empty() {
            return None;
        }
        overheads_ns.sort_by(f64::total_cmp);
        let overhead_ns = overheads_ns.get(overheads_ns.len() / 2).copied().unwrap_or_default();
        let ns = |ps: u64| ps as f64 / 1e3;
        let mut buckets = BTreeMap::new();
        for value in histogram.iter_recorded() {
            *buckets.entry(bounds(value.value_iterated_to()).1).or_insert(0) += value.count_at_value();
        }
        let buckets: Vec<Bucket> = buckets.into_iter().map(|(end, count)| Bucket { upper_ns: ns(end), count }).collect();
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(&histogram, &mut bytes);
        Some(Distribution {
            batch_hops: self.batch_hops,
            samples: histogram.len(),
            overhead_ns,
            percentiles: PERCENTS.map(|percent| Percentile { percent, ns: ns(histogram.value_at_quantile(percent / 100.0)) }).to_vec(),
            max_ns: ns(histogram.max()),
            lowest_mode_ns: interrupted.then(|| lowest_mode_ns(&buckets)).flatten(),
            buckets,
            hdr: written.is_ok().then(|| base64::engine::general_purpose::STANDARD.encode(&bytes)),
        })
    }
}

/// A mode and its surroundings hold this share of all batches.
const MODE_SHARE: f64 = 0.05;
/// A mode's surroundings reach from its time divided by this to its time multiplied by it.
const MODE_WIDTH: f64 = 1.125;

/// The middle of the lowest bucket that no bucket of its surroundings exceeds.
fn lowest_mode_ns(buckets: &[Bucket]) -> Option<f64> {
    let all: u64 = buckets.iter().map(|b| b.count).sum();
    let middle = |b: &Bucket| f64::midpoint(b.lower_ns(), b.upper_ns);
    let around = |at: f64| buckets.iter().filter(move |b| (at / MODE_WIDTH..=at * MODE_WIDTH).contains(&middle(b)));
    let is_mode = |b: &&Bucket| {
        let at = middle(b);
        around(at).map(|b| b.count).sum::<u64>() as f64 >= MODE_SHARE * all as f64 && around(at).all(|other| other.count <= b.count)
    };
    buckets.iter().find(is_mode).map(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use proptest::prelude::*;

    fn of(batch: u32, ticks: &[u64], overhead: u64) -> Distribution {
        let mut recorder = Recorder::new(batch).unwrap();
        recorder.add(ticks, overhead, 0.5);
        recorder.finish().unwrap()
    }

    #[test]
    fn the_overhead_is_subtracted_and_the_rest_shared_by_the_hops() {
        // 1,000 batches of 8 hops of 100 ns and one of 1,000 ns; a tick is half a nanosecond, the clock costs 40 of them.
        let mut ticks = vec![1640; 1000];
        ticks.push(16_040);
        let got = of(8, &ticks, 40);
        assert_eq!((got.samples, got.overhead_ns, got.batch_hops), (1001, 20.0, 8));
        assert!((got.percentile(50.0).unwrap() - 100.0).abs() < 0.1, "{got:?}");
        assert!((got.percentile(99.99).unwrap() - 1000.0).abs() < 1.0 && (got.max_ns - 1000.0).abs() < 1.0, "{got:?}");
        assert_eq!(got.percentiles.iter().map(|p| p.percent).collect::<Vec<_>>(), PERCENTS);
        assert_eq!(got.buckets.iter().map(|b| b.count).collect::<Vec<_>>(), [1000, 1]);
        assert!(got.buckets[0].lower_ns() <= 100.0 && 100.0 < got.buckets[0].upper_ns, "{:?}", got.buckets);
        assert_eq!(of(1, &[10], 40).max_ns, 0.0, "shorter than the clock's own cost");
        assert!(Recorder::new(0).is_none() && Recorder::new(1).unwrap().finish().is_none());
    }

    #[test]
    fn interrupted_batches_count_only_where_there_are_no_others() {
        let mut recorder = Recorder::new(1).unwrap();
        // Hops of 100 ns: most are interrupted for 250 ns, and in some the thread was off its CPU.
        let interrupted: Vec<u64> = (0..1000)
            .map(|i| match i % 10 {
                0..3 => 100 + i % 3,
                3..9 => 350 + i % 7,
                _ => 3_000_000,
            })
            .collect();
        recorder.add_interrupted(&interrupted, 0, 1.0);
        let only = recorder.finish().unwrap();
        assert_eq!(only.samples, 1000);
        assert!(only.lowest_mode_ns.is_some_and(|ns| (ns - 101.0).abs() < 2.0), "{:?}", only.lowest_mode_ns);
        assert!(only.percentile(50.0).unwrap() > 300.0, "what the median shows is not what a hop takes");
        let mut recorder = Recorder::new(1).unwrap();
        recorder.add_interrupted(&interrupted, 0, 1.0);
        recorder.add(&[100; 50], 0, 1.0);
        let clean = recorder.finish().unwrap();
        assert_eq!((clean.samples, clean.max_ns.round(), clean.lowest_mode_ns), (50, 100.0, None));
    }

    #[test]
    fn other_tools_read_the_histogram() {
        let got = of(1, &[200, 200, 400], 0);
        let bytes = base64::engine::general_purpose::STANDARD.decode(got.hdr.unwrap()).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((back.len(), back.count_at(100_000)), (3, 2));
    }

    #[test]
    fn coarse_clocks_need_batches() {
        // A TSC, 250 MHz, 121 and 100 MHz (10 ns, as some x86 cores count), 25 MHz, 24 MHz, and 1 MHz as on some RISC-V boards.
        for (step_ns, batch) in
            [(0.4, Some(1)), (4.0, Some(1)), (8.3, Some(8)), (10.0, Some(8)), (40.0, Some(8)), (41.7, Some(64)), (1000.0, None)]
        {
            assert_eq!(least_batch(step_ns), batch, "{step_ns} ns");
        }
        // Hops of 90 ns, timed by a clock that counts every 40 ns: single hops look like 80 and 120 ns.
        let through = |batch: u64| {
            let mut recorder = Recorder::new(batch as u32).unwrap();
            let read = |ns: u64| ns / 40;
            let ticks: Vec<u64> = (0..1000).map(|i| read(i * 7 + 90 * batch) - read(i * 7)).collect();
            recorder.add(&ticks, 0, 40.0);
            let got = recorder.finish().unwrap();
            (got.percentile(1.0).unwrap(), got.max_ns)
        };
        let near = |(low, high): (f64, f64), within: f64| (low - 90.0).abs() <= within && (high - 90.0).abs() <= within;
        assert!(!near(through(1), 9.0), "{:?}", through(1));
        assert!(near(through(least_batch(40.0).unwrap().into()), 5.1), "{:?}", through(8));
    }

    #[test]
    fn steps_of_cycles() {
        // 100, 101 and 300 ns at 2 GHz are 200, 202 and 600 cycles.
        let got = of(1, &[200, 202, 600], 0);
        assert_eq!(got.by_cycles(5, 2e9), [(192, 2), (576, 1)]);
        assert_eq!(got.by_cycles(20, 2e9), [(0, 3)]);
        assert_eq!(got.by_cycles(200, 2e9), [(0, 3)], "steps wider than any time");
    }

    proptest! {
        #[test]
        fn buckets_hold_their_values_and_no_others(value in 0u64..1 << 50) {
            let (lower, upper) = bounds(value);
            prop_assert!(lower <= value && value < upper);
            prop_assert_eq!(bounds(lower), (lower, upper));
            prop_assert_eq!(bounds(upper - 1), (lower, upper));
            prop_assert!(bounds(upper).0 == upper);
            prop_assert!((upper - lower) as f64 <= (lower as f64 / 64.0).max(1.0));
        }
    }
}
