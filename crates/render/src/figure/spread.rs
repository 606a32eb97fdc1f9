//! Histograms of results that have a distribution, with percentiles.

use memgauge_core::distribution::Distribution;
use memgauge_core::result::Measurement;

use super::frame::{Panel, Words};
use super::histogram::Histogram;
use super::source::{Set, about};
use super::unknown::Said;
use crate::text::latency::order_name;
use crate::text::number::{count, number};

/// Histograms of one result; a curve has one a delay, which nobody reads all.
const MOST: usize = 6;
/// Percentiles that are marked.
const MARKED: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// What is beyond this percentile is said and not drawn: batches that an interrupt fell into, hundreds of times as long, would squeeze all
/// others.
const DRAWN: f64 = 99.9;

/// The panels; nothing where no measurement has a distribution.
pub(crate) fn panels(set: &Set<'_>) -> Vec<Box<dyn Panel>> {
    let all: Vec<(&Measurement, &Distribution)> = set.ms.iter().filter_map(|m| Some((*m, m.distribution.as_ref()?))).collect();
    let mut panels: Vec<Box<dyn Panel>> =
        all.iter().take(MOST).map(|(m, d)| Box::new(histogram(set, m, d).chart()) as Box<dyn Panel>).collect();
    if all.len() > MOST {
        let more = count(all.len() - MOST, "more distribution is", "more distributions are");
        let words =
            Words::new(set.title("Distributions of latency"), format!("{more} in the JSON result, in its buckets and as HdrHistogram"));
        panels.push(Box::new(Said(words)));
    }
    panels
}

fn histogram(set: &Set<'_>, m: &Measurement, d: &Distribution) -> Histogram {
    let at = &m.at;
    let parts = [
        at.cpu.map(|c| format!("CPU {c}")),
        at.memory_node.map(|n| format!("memory of node {n}")),
        at.order.map(|o| order_name(o).to_owned()),
        at.delay_cycles.map(|d| format!("beside loads of delay {d}")),
    ];
    let who: Vec<String> = parts.into_iter().flatten().collect();
    let batch = if d.batch_hops == 1 { "single hops".to_owned() } else { format!("batches of {} hops", d.batch_hops) };
    let last = d.percentile(DRAWN).filter(|v| v.is_finite()).unwrap_or(f64::INFINITY);
    let bins: Vec<(f64, f64, u64)> = d.buckets.iter().map(|b| (b.lower_ns(), b.upper_ns, b.count)).collect();
    let drawn: Vec<(f64, f64, u64)> = bins.iter().copied().filter(|b| b.0 <= last).collect();
    let beyond: u64 = bins.iter().filter(|b| b.0 > last).map(|b| b.2).fold(0, u64::saturating_add);
    let clock = format!("the clock's {} ns a batch are subtracted", number(d.overhead_ns));
    let notes =
        (beyond > 0).then(|| format!("Not drawn: the slowest {beyond} of {} batches, up to {} ns per hop.", d.samples, number(d.max_ns)));
    Histogram {
        title: set.title("Distribution of latency"),
        about: about(&[&who.join(", "), &format!("{} {batch}", d.samples), &clock]),
        quantity: "Latency (ns per hop)".into(),
        unit: "ns".into(),
        bins: drawn,
        percentiles: MARKED.into_iter().filter_map(|p| Some((format!("p{p}"), d.percentile(p)?))).collect(),
        notes: notes.into_iter().collect(),
    }
}
