//! The lab: tests of memgauge on kernels and machines that a single small machine does not have.
//!
//! A [`Job`] is a virtual machine and the tests to run in it, both in one file below `jobs/`. The host's side (`cargo xtask lab`) reads
//! the machine, boots it under QEMU's software emulation and prints the tests' results; the guest's side (`main.rs`, the first process
//! there) runs the tests, which run the released program as a user would and judge its JSON.
//!
//! Emulated memory has no speed: no test here looks at nanoseconds, except on the guest of `icount`, where one instruction takes
//! one nanosecond by construction.

pub mod contract;
pub mod fragment;
pub mod guest;
mod job;
mod jobs;
pub mod memory;
pub mod program;

pub use contract::Outcome;
pub use job::{Arch, Job, Machine, PLAIN, Release, Test};

/// Every job, in the order in which they run.
pub const JOBS: &[&Job] = jobs::ALL;

/// The job of this name.
pub fn find(name: &str) -> Option<&'static Job> {
    JOBS.iter().find(|job| job.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_job_tests_something() {
        let names: BTreeSet<&str> = JOBS.iter().map(|job| job.name).collect();
        assert_eq!(names.len(), JOBS.len());
        for job in JOBS {
            let tests: BTreeSet<&str> = job.tests.iter().map(|t| t.name).collect();
            assert!(!tests.is_empty() && tests.len() == job.tests.len(), "{}", job.name);
        }
    }
}
