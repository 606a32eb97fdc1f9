//! The conclusions of a health check. Siblings are compared with each other, and all numbers with the machine's limit, a baseline, the
//! hosts of a fleet, and rules.
//!
//! A number that looks wrong is suspicious at first. It counts if it looks wrong in each of three measurements. It is a failure only if
//! nothing but the machine can be the cause ([`crate::conclusions::limit::blameless`]).

mod causes;
mod compare;
mod compared;
mod fleet;
mod history;
mod machine;
mod published;
mod rounds;
mod rules;
mod run;
mod suspicion;

pub(crate) use compare::Bounds;
pub use history::{History, earlier_checks};
pub use rounds::{confirm, judge};
pub use rules::{Baselines, FleetSiblings, Rule, Rules};

#[cfg(test)]
mod tests;
