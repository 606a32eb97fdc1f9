//! Results of many hosts: their store, which hosts differ from their siblings, and what changed over time.

pub mod exports;
mod ingest;
mod row;
mod rows;
mod store;

pub use ingest::{
    INGEST_VERSION, IngestError, IngestEvent, IngestOptions, IngestOutcome, SkipReason, Skipped, ingest, ingest_line, ingest_text,
};
pub use row::{Cell, Fingerprint, HostRun, Row};
pub use rows::rows;
pub use store::{Recovered, Store, StoreError, StoredRun, read};
