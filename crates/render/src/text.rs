//! Text for people: the headline, and a table for each section. What is wrong is marked, and explained once at the end or, with all details,
//! below each table.

mod advice;
mod bandwidth;
pub(crate) mod block;
mod blocks;
mod c2c;
pub(crate) mod column;
pub(crate) mod comparison;
mod context;
mod counters;
mod curve;
mod distribution;
mod evidence;
mod faults;
pub(crate) mod fleet;
mod fleet_history;
mod footnotes;
mod grid;
pub(crate) mod headline;
mod interleave;
mod latency;
mod load;
mod loops;
mod machine;
mod nodes;
mod notes;
pub(crate) mod one_line;
mod page;
mod places;
pub(crate) mod plan;
mod prefetch;
mod published;
pub(crate) mod report;
mod scan;
mod sweep;
mod tiers;

pub(crate) use advice::{advice_line, advice_text};
pub(crate) use comparison::{comparison_line, comparison_text};
pub(crate) use fleet::{fleet_baseline_text, fleet_outliers_text};
pub(crate) use fleet_history::fleet_history_text;
pub(crate) use one_line::{plan_line, report_line};
pub(crate) use plan::plan_text;
pub use plan::{duration, plan_of_run_text};
pub(crate) use published::published_text;
pub(crate) use report::report_text;
