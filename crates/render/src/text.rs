//! Text for people: a table for each section, with its evidence. What is wrong is marked and explained below its table.

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

pub use plan::plan_text;
pub use report::Text;
