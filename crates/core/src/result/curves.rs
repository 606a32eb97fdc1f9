//! Summary of a loaded-latency curve.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::experiment::Coordinates;

/// Summary of a loaded-latency curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveSummary {
    /// The coordinates that all its points share.
    pub at: Coordinates,
    /// Latency at the lowest load.
    pub unloaded_ns: Option<f64>,
    /// The knee: the last point before latency grows much faster than bandwidth.
    pub knee: Option<CurvePoint>,
    /// Latency at the highest load.
    pub saturated_ns: Option<f64>,
    /// Highest bandwidth, probe included.
    pub peak_gbs: Option<f64>,
    /// Whether bandwidth fell while load and latency still grew.
    pub over_saturated: bool,
    /// Latency at shares of the peak, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<CurveShare>,
}

/// The point of a curve that is closest to a share of its peak. The results contain it, with its evidence, at its delay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurveShare {
    /// The share that was asked for, in percent of the peak.
    pub percent: u32,
    /// The share that was reached, 0 to 1; `null` if nothing was measured.
    pub reached: Option<f64>,
    /// The delay at which it was reached.
    pub delay_cycles: Option<u32>,
    /// Latency there, in ns.
    pub latency: Estimate,
    /// Bandwidth there, in GB/s, probe included.
    pub bandwidth: Estimate,
    /// Why no point is close to the share; absent if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<ShareMissed>,
}

/// Why no point of a curve is close to a share of its peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ShareMissed {
    /// No point of the curve was measured.
    NothingMeasured,
    /// No delay gave less bandwidth: the chase alone uses as much, or bandwidth jumps past that share.
    NoLessBandwidth,
    /// No delay came closer: bandwidth jumps past that share, or was not steady.
    NotCloser,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Injection delay, in core cycles after every four lines.
    pub delay_cycles: u32,
    /// Bandwidth, probe included.
    pub bandwidth_gbs: f64,
    /// Latency.
    pub latency_ns: f64,
}

impl CurvePoint {
    /// Whether both numbers are finite and positive.
    pub fn is_sane(&self) -> bool {
        self.bandwidth_gbs.is_finite() && self.bandwidth_gbs > 0.0 && self.latency_ns.is_finite() && self.latency_ns > 0.0
    }
}
