//! Which points of a curve under load are reliable, and so which numbers of its summary.

use memgauge_model::experiment::Experiment;
use memgauge_model::result::{CurveSummary, Measurement, Report};

use crate::groups::{LoadedCurve, LoadedPoint, loaded_curves};
use crate::number::{doubted, value_of};

/// A curve's points, and what was concluded from them.
pub(super) struct Load<'a> {
    summary: &'a CurveSummary,
    /// From the lightest load to the heaviest.
    points: Vec<LoadedPoint<'a>>,
}

impl<'a> Load<'a> {
    pub(super) fn new(curve: &LoadedCurve<'a>, summary: &'a CurveSummary) -> Self {
        Self { summary, points: curve.points.clone() }
    }

    /// The curve of a summary.
    pub(super) fn find(report: &'a Report, summary: &'a CurveSummary) -> Self {
        let ms: Vec<&Measurement> = report.results.iter().filter(|m| m.experiment == Experiment::LoadedLatency).collect();
        let curve = loaded_curves(&ms).into_iter().find(|curve| curve.at == summary.at);
        Self { summary, points: curve.map(|curve| curve.points).unwrap_or_default() }
    }

    /// The delays at which something was measured, the longest first.
    fn delays(&self) -> impl DoubleEndedIterator<Item = u32> {
        let measured = |p: &&LoadedPoint<'_>| [p.latency, p.bandwidth].into_iter().flatten().any(|m| value_of(&m.estimate).is_some());
        self.points.iter().filter(measured).filter_map(|p| p.delay)
    }

    /// Whether latency and bandwidth at this delay are reliable.
    pub(super) fn is_reliable(&self, delay_cycles: u32) -> bool {
        let at = self.points.iter().filter(|p| p.delay == Some(delay_cycles));
        at.flat_map(|p| [p.latency, p.bandwidth]).flatten().all(Measurement::is_reliable)
    }

    /// The latency at the highest load; `None` for a curve without load.
    pub(super) fn full_load(&self) -> Option<&'a Measurement> {
        let delay = self.delays().next_back().filter(|_| self.summary.saturated_ns.is_some())?;
        self.points.iter().find(|p| p.delay == Some(delay))?.latency
    }

    /// The highest bandwidth.
    pub(super) fn peak(&self) -> Option<&'a Measurement> {
        let is_peak = |m: &&Measurement| m.estimate.value.is_some() && m.estimate.value == self.summary.peak_gbs;
        self.points.iter().filter_map(|p| p.bandwidth).find(is_peak)
    }
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
    pub(super) fn new(load: &Load<'_>) -> Self {
        let summary = load.summary;
        let at = |delay: Option<u32>| delay.is_some_and(|delay| !load.is_reliable(delay));
        let peak = load.peak().and_then(|m| m.at.delay_cycles);
        Self {
            unloaded_ns: summary.unloaded_ns.map(|ns| doubted(at(load.delays().next()), ns)),
            saturated_ns: summary.saturated_ns.map(|ns| doubted(at(load.delays().next_back()), ns)),
            peak_gbs: summary.peak_gbs.map(|gbs| doubted(at(peak), gbs)),
            knee: summary.knee.map(|knee| {
                let doubt = at(Some(knee.delay_cycles));
                (doubted(doubt, knee.bandwidth_gbs), doubted(doubt, knee.latency_ns), knee.delay_cycles)
            }),
        }
    }
}
