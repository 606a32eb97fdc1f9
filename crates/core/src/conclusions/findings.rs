//! What a health check concludes: siblings against each other, and against the machine's limit, a baseline and rules.
//!
//! A number that looks wrong is suspicious first. It counts when it looks wrong in each of three measurements. It is a failure only where
//! nothing but the machine can be the cause ([`crate::conclusions::limit::blameless`]).

mod compare;
mod machine;
mod rules;
mod suspicion;
mod verdict;

pub use rules::{References, Rule, Rules};
pub use verdict::{confirm, judge};

#[cfg(test)]
mod tests;
