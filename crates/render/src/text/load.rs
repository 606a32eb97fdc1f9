//! Which points of a curve under load are reliable, and so which numbers of its summary.

use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::result::{CurveSummary, Measurement, Report};

use crate::number::{doubted, value_of};

/// The measurements of a curve's points.
fn points<'a>(report: &'a Report, curve: &'a CurveSummary) -> impl Iterator<Item = &'a Measurement> {
    let of_curve =
        |m: &&Measurement| m.experiment == Experiment::LoadedLatency && Coordinates { delay_cycles: None, ..m.at.clone() } == curve.at;
    report.results.iter().filter(of_curve)
}

/// The delays at which something was measured.
fn delays<'a>(report: &'a Report, curve: &'a CurveSummary) -> impl Iterator<Item = u32> {
    points(report, curve).filter(|m| value_of(&m.estimate).is_some()).filter_map(|m| m.at.delay_cycles)
}

/// Whether latency and bandwidth at this delay are reliable.
pub(super) fn is_point_reliable(report: &Report, curve: &CurveSummary, delay_cycles: u32) -> bool {
    points(report, curve).filter(|m| m.at.delay_cycles == Some(delay_cycles)).all(Measurement::is_reliable)
}

/// The latency at a curve's highest load; `None` for a curve without load.
pub(super) fn full_load<'a>(report: &'a Report, curve: &'a CurveSummary) -> Option<&'a Measurement> {
    let delay = delays(report, curve).min().filter(|_| curve.saturated_ns.is_some())?;
    points(report, curve).find(|m| m.metric == Metric::Latency && m.at.delay_cycles == Some(delay))
}

/// The highest bandwidth of a curve.
pub(super) fn peak<'a>(report: &'a Report, curve: &'a CurveSummary) -> Option<&'a Measurement> {
    points(report, curve).find(|m| m.metric == Metric::Bandwidth && m.estimate.value.is_some() && m.estimate.value == curve.peak_gbs)
}

/// The numbers of a curve's summary as text: `~` before those whose points are not reliable.
pub(super) struct SummaryNumbers {
    pub(super) unloaded_ns: Option<String>,
    pub(super) saturated_ns: Option<String>,
    pub(super) peak_gbs: Option<String>,
    /// Bandwidth, latency and delay.
    pub(super) knee: Option<(String, String, u32)>,
}

impl SummaryNumbers {
    pub(super) fn new(report: &Report, curve: &CurveSummary) -> Self {
        let at = |delay: Option<u32>| delay.is_some_and(|delay| !is_point_reliable(report, curve, delay));
        let peak = peak(report, curve).and_then(|m| m.at.delay_cycles);
        Self {
            unloaded_ns: curve.unloaded_ns.map(|ns| doubted(at(delays(report, curve).max()), ns)),
            saturated_ns: curve.saturated_ns.map(|ns| doubted(at(delays(report, curve).min()), ns)),
            peak_gbs: curve.peak_gbs.map(|gbs| doubted(at(peak), gbs)),
            knee: curve.knee.map(|knee| {
                let doubt = at(Some(knee.delay_cycles));
                (doubted(doubt, knee.bandwidth_gbs), doubted(doubt, knee.latency_ns), knee.delay_cycles)
            }),
        }
    }
}
