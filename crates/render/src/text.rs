//! Text for people: the headline, and a table for each section. What is wrong is marked, and explained once at the end or, with all details,
//! below each table.

mod bandwidth;
mod c2c;
mod context;
mod counters;
mod curve;
mod distribution;
mod evidence;
mod faults;
mod footnotes;
mod grid;
mod headline;
mod latency;
mod loops;
mod machine;
mod notes;
mod page;
mod plan;
mod prefetch;
mod report;
mod scan;
mod sweep;

pub use plan::{plan_of_run_text, plan_text};
pub use report::Text;
