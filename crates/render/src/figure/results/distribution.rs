//! Histograms of results that have a distribution, with percentiles.

use memgauge_model::distribution::{Bucket, Distribution};
use memgauge_model::experiment::Coordinates;
use memgauge_model::result::Measurement;
use memgauge_model::wording;

use crate::figure::frame::{Caption, Panel, boxed};
use crate::figure::histogram::Histogram;
use crate::figure::no_figure::TextPanel;
use crate::figure::source::{ResultSet, about};
use crate::number::{count, number};

/// Histograms of one result. A curve has one for each delay, and nobody reads all of them.
const MAX_HISTOGRAMS: usize = 6;
/// Percentiles that are marked.
const MARKED: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// This share of the batches is not drawn at either end, but counted in a note: a batch with an interrupt takes hundreds of times as long
/// and would squeeze all others.
const TAIL: f64 = 0.001;
/// Bins of a histogram, about.
const BINS: f64 = 60.0;
/// Largest over smallest value from which bins grow with the value.
const WIDE: f64 = 20.0;

/// The panels; nothing where no measurement has a distribution.
pub(crate) fn panels(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    let all: Vec<(&Measurement, &Distribution)> = set.ms.iter().filter_map(|m| Some((*m, m.distribution.as_ref()?))).collect();
    let mut panels = boxed(all.iter().take(MAX_HISTOGRAMS).map(|(m, d)| histogram(set, m, d).chart()));
    if all.len() > MAX_HISTOGRAMS {
        let more = count(all.len() - MAX_HISTOGRAMS, "more distribution is", "more distributions are");
        let caption =
            Caption::new(set.title("Distributions of latency"), format!("{more} in the JSON result, in its buckets and as HdrHistogram"));
        panels.push(Box::new(TextPanel(caption)));
    }
    panels
}

fn histogram(set: &ResultSet<'_>, m: &Measurement, d: &Distribution) -> Histogram {
    let at = Coordinates { cpu_node: None, cpus: None, mix: None, memory_dir: None, delay_cycles: None, ..m.at.clone() };
    let load = m.at.delay_cycles.map(|d| format!("during loads with delay {d}")).unwrap_or_default();
    let probe = wording::coordinates(&at);
    let batch = if d.batch_hops == 1 { "single hops".to_owned() } else { format!("batches of {} hops", d.batch_hops) };
    let (drawn, fast, slow) = without_tails(d);
    let step = set.report.environment.clock.as_ref().map_or(0.0, |c| c.resolution_ns / f64::from(d.batch_hops.max(1)));
    let (bins, width) = rebin(drawn, step);
    let clock = format!("{} ns per batch for reading the clock are subtracted", number(d.overhead_ns));
    let mut notes = Vec::new();
    if let Some(ns) = d.lowest_mode_ns {
        notes.push(format!("Interruptions are in these batches: none of them could be left out. The lowest mode is {} ns.", number(ns)));
    }
    if fast + slow > 0 {
        let fast = if fast > 0 { format!("the fastest {fast} and ") } else { String::new() };
        notes.push(format!("Not drawn: {fast}the slowest {slow} of {} batches, up to {} ns per hop.", d.samples, number(d.max_ns)));
    }
    if step > 0.0 && width.is_some_and(|w| w < 1.5 * step) {
        notes.push(format!("A bin is a step of the clock, {} ns per hop.", number(step)));
    }
    Histogram {
        title: set.title("Distribution of latency"),
        about: about(&[&probe, &load, &format!("{} {batch}", d.samples), &clock]),
        quantity: "Latency (ns per hop)".into(),
        unit: "ns".into(),
        bins,
        percentiles: MARKED.into_iter().filter_map(|p| Some((format!("p{p}"), d.percentile(p)?))).collect(),
        notes,
    }
}

/// Lower end, upper end and count.
type Bin = (f64, f64, u64);

/// The buckets without the tails, and the batches in each tail.
fn without_tails(d: &Distribution) -> (&[Bucket], u64, u64) {
    let most = (d.samples as f64 * TAIL) as u64;
    // How many buckets of an end hold no more than that, and how many batches they hold.
    let tail = |buckets: &mut dyn Iterator<Item = &Bucket>| {
        let (mut kept, mut batches) = (0, 0u64);
        for bucket in buckets {
            match batches.saturating_add(bucket.count) {
                more if more <= most => (kept, batches) = (kept + 1, more),
                _ => break,
            }
        }
        (kept, batches)
    };
    let (first, fast) = tail(&mut d.buckets.iter());
    let (last, slow) = tail(&mut d.buckets.iter().rev());
    (d.buckets.get(first..d.buckets.len().saturating_sub(last)).unwrap_or_default(), fast, slow)
}

/// Bins of whole steps of the clock: finer ones would be empty every now and then, and the histogram a comb. The width of a bin if all have
/// the same.
fn rebin(buckets: &[Bucket], step_ns: f64) -> (Vec<Bin>, Option<f64>) {
    let native = || buckets.iter().map(|b| (b.lower_ns(), b.upper_ns, b.count)).collect();
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return (Vec::new(), None) };
    let (low, high) = (first.lower_ns(), last.upper_ns);
    let coarsest = buckets.iter().map(|b| b.upper_ns - b.lower_ns()).fold(0.0, f64::max);
    let step = if step_ns.is_finite() && step_ns > 0.0 { step_ns } else { coarsest };
    if !(low.is_finite() && high.is_finite() && high > low && step > 0.0) || high > low.max(step) * WIDE {
        return (native(), None);
    }
    let width = ((high - low) / BINS / step).max(coarsest / step).ceil().max(1.0) * step;
    let count = ((high - low) / width).ceil() as usize;
    let mut shares = vec![0.0; count.max(1)];
    for bucket in buckets {
        // A bucket that lies in two bins counts for both by its parts.
        let (from, to) = ((bucket.lower_ns() - low) / width, (bucket.upper_ns - low) / width);
        let last = shares.len() - 1;
        for (i, share) in shares.iter_mut().enumerate().take((to as usize).min(last) + 1).skip((from as usize).min(last)) {
            let within = (to.min(i as f64 + 1.0) - from.max(i as f64)).max(0.0);
            *share += bucket.count as f64 * within / (to - from).max(f64::MIN_POSITIVE);
        }
    }
    let bin = |(i, share): (usize, f64)| (low + i as f64 * width, low + (i + 1) as f64 * width, share.round() as u64);
    (shares.into_iter().enumerate().map(bin).collect(), Some(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches at multiples of a step, as a coarse clock shows them.
    fn ticks(step: f64, count: u32) -> Vec<Bucket> {
        (0..count).map(|i| Bucket { upper_ns: 130.0 + f64::from(i) * step, count: 1000 + u64::from(i % 3) }).collect()
    }

    #[test]
    fn a_coarse_clock_makes_no_comb() {
        for step in [2.0, 3.7, 5.0] {
            let buckets = ticks(step, 20);
            let (bins, width) = rebin(&buckets, step);
            assert!(width.unwrap() >= step, "{width:?}");
            let empty = bins.iter().filter(|b| b.2 == 0).count();
            assert_eq!(empty, 0, "step {step}: {bins:?}");
            let (all, drawn) = (buckets.iter().map(|b| b.count).sum::<u64>(), bins.iter().map(|b| b.2).sum::<u64>());
            assert!(all.abs_diff(drawn) <= bins.len() as u64, "{all} {drawn}");
        }
    }

    #[test]
    fn a_few_fast_batches_do_not_stretch_the_axis() {
        let mut buckets = vec![Bucket { upper_ns: 5.0, count: 3 }];
        buckets.extend(ticks(2.0, 20));
        buckets.push(Bucket { upper_ns: 90_000.0, count: 9 });
        let samples = buckets.iter().map(|b| b.count).sum();
        let d = Distribution {
            batch_hops: 8,
            samples,
            overhead_ns: 20.0,
            percentiles: vec![],
            max_ns: 9e4,
            lowest_mode_ns: None,
            buckets,
            hdr: None,
        };
        let (drawn, fast, slow) = without_tails(&d);
        assert_eq!((fast, slow, drawn.len()), (3, 9, 20));
        assert!(drawn[0].lower_ns() > 120.0);
    }
}
