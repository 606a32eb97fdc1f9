//! Histograms of results that have a distribution, with percentiles.

use memgauge_core::distribution::Distribution;
use memgauge_core::experiment::Coordinates;
use memgauge_core::result::Measurement;
use memgauge_core::wording;

use super::frame::{Caption, Panel};
use super::histogram::Histogram;
use super::no_figure::TextPanel;
use super::source::{ResultSet, about};
use crate::number::{count, number};

/// Histograms of one result. A curve has one for each delay, and nobody reads all of them.
const MAX_HISTOGRAMS: usize = 6;
/// Percentiles that are marked.
const MARKED: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
/// Samples beyond this percentile are counted in a note and not drawn: a batch with an interrupt takes hundreds of times as long and would
/// squeeze all others.
const LAST_DRAWN: f64 = 99.9;

/// The panels; nothing where no measurement has a distribution.
pub(crate) fn panels(set: &ResultSet<'_>) -> Vec<Box<dyn Panel>> {
    let all: Vec<(&Measurement, &Distribution)> = set.ms.iter().filter_map(|m| Some((*m, m.distribution.as_ref()?))).collect();
    let mut panels: Vec<Box<dyn Panel>> =
        all.iter().take(MAX_HISTOGRAMS).map(|(m, d)| Box::new(histogram(set, m, d).chart()) as Box<dyn Panel>).collect();
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
    let last = d.percentile(LAST_DRAWN).filter(|v| v.is_finite()).unwrap_or(f64::INFINITY);
    let bins: Vec<(f64, f64, u64)> = d.buckets.iter().map(|b| (b.lower_ns(), b.upper_ns, b.count)).collect();
    let drawn: Vec<(f64, f64, u64)> = bins.iter().copied().filter(|b| b.0 <= last).collect();
    let beyond: u64 = bins.iter().filter(|b| b.0 > last).map(|b| b.2).fold(0, u64::saturating_add);
    let clock = format!("{} ns per batch for reading the clock are subtracted", number(d.overhead_ns));
    let notes =
        (beyond > 0).then(|| format!("Not drawn: the slowest {beyond} of {} batches, up to {} ns per hop.", d.samples, number(d.max_ns)));
    Histogram {
        title: set.title("Distribution of latency"),
        about: about(&[&probe, &load, &format!("{} {batch}", d.samples), &clock]),
        quantity: "Latency (ns per hop)".into(),
        unit: "ns".into(),
        bins: drawn,
        percentiles: MARKED.into_iter().filter_map(|p| Some((format!("p{p}"), d.percentile(p)?))).collect(),
        notes: notes.into_iter().collect(),
    }
}
