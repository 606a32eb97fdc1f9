//! Results of many hosts: their store, which hosts differ from their siblings, and what changed over time.

mod row;

pub use row::{Cell, Fingerprint, HostRun, Row};
