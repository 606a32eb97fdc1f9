//! Results of many hosts: their store, which hosts differ from their siblings, and what changed over time.

mod baseline;
mod centres;
mod compared;
pub mod exports;
mod groups;
mod history;
mod hosts;
mod ingest;
mod latest;
mod outliers;
mod patterns;
mod populations;
mod row;
mod rows;
mod split;
mod store;

pub use baseline::{baseline, group_for};
pub use compared::compared;
pub use history::history;
pub use hosts::{HostError, KnownHost};
pub use ingest::{INGEST_VERSION, IngestError, IngestEvent, IngestOptions, IngestOutcome, SkipReason, Skipped, ingest};
pub use outliers::outliers;
pub use row::{Cell, Fingerprint, HostRun, Row};
pub use rows::rows;
pub use store::{Recovered, Store, StoreError, StoredRun, read};
