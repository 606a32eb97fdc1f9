//! What came out: the result contract. `schema/result.schema.json` is generated from these types.

mod curves;
mod environment;
mod evidence;
mod health;
mod levels;
mod measurement;
mod report;

pub use curves::{CurvePoint, CurveShare, CurveSummary};
pub use environment::{ClockReport, Environment, RfoEvidence};
pub use evidence::{
    Checksums, Evidence, Integrity, Mismatch, Noise, PageEvidence, PageKind, PhysicalRange, Placement, PlacementStatus, Plateau,
    PrefetchEvidence, Pushes, TrafficRates, Trial,
};
pub use health::{Finding, Health, HealthStatus};
pub use levels::{CacheSize, Knee, Level, LevelSummary, Point};
pub use measurement::{Measurement, Quality, QualityLevel, QualityReason, Verdict, VerdictStatus};
pub use report::{Moment, Report, SCHEMA_VERSION, SetUp, Timing, Tool};
