//! The results: the public contract. `schema/result.schema.json` is generated from these types.

mod curves;
mod environment;
mod evidence;
mod health;
mod levels;
mod measurement;
mod report;
mod summary;

pub use curves::{CurvePoint, CurveShare, CurveSummary, ShareMissed};
pub use environment::{ClockReport, DisturbingProcess, Environment, RfoEvidence, RfoReason};
pub use evidence::{
    Checksums, DisturbanceCause, Evidence, Integrity, Mismatch, Noise, PageEvidence, PageKind, PhysicalRange, Placement, PlacementMethod,
    PlacementProblem, PlacementSource, PlacementStatus, Plateau, PrefetchEvidence, Pushes, TrafficRates, Trial,
};
pub use health::{Finding, Health, HealthStatus};
pub use levels::{CacheSize, Knee, Level, LevelSummary, Point};
pub use measurement::{
    LimitShare, LimitSource, Measurement, Quality, QualityLevel, QualityReason, Samples, Verdict, VerdictReason, VerdictStatus,
};
pub use report::{Host, Incomplete, Moment, Report, Run, SCHEMA_VERSION, SetUp, Timing, Tool};
pub use summary::{Absent, Summary, SummaryValue, Trust, TrustReason};
