//! Results of many hosts: their store, which hosts differ from their siblings, and what changed over time.

mod baseline;
mod groups;
mod history;
mod latest;
mod outliers;
mod patterns;
mod populations;
mod robust;
mod row;

pub use baseline::{baseline, group_for};
pub use history::{UnknownName, history};
pub use outliers::outliers;
pub use row::{Cell, Fingerprint, HostRun, Row};
