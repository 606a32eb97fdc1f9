//! The lab: memgauge on kernels and machines that one small machine cannot show.
//!
//! A [`Job`] is a virtual machine and the tests to run in it, both in one file below `jobs/`. The host's side (`cargo xtask lab`) reads
//! the machine, boots it under QEMU's software emulation and prints what the tests said; the guest's side (`main.rs`, the first process
//! there) runs the tests, which run the released program as a user would and judge its JSON.
//!
//! Emulated memory has no speed: no test here looks at nanoseconds, except on the guest of `icount`, where one instruction takes
//! one nanosecond by construction.

use std::fmt;

use anyhow::Result;

pub mod fragment;
pub mod guest;
mod jobs;
pub mod program;
pub mod record;
pub mod recorded;

/// A virtual machine and what is tried in it.
pub struct Job {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in one line.
    pub about: &'static str,
    /// Runs only when named: it needs more than the others.
    pub optional: bool,
    /// The machine.
    pub machine: Machine,
    /// The tests, in order; each finds the machine as the one before left it.
    pub tests: &'static [Test],
}

/// A virtual machine.
pub struct Machine {
    /// Its instruction set.
    pub arch: Arch,
    /// Arguments for QEMU beside those that every guest gets: machine, CPUs, memory, devices.
    pub qemu: &'static [&'static str],
    /// Arguments for the kernel beside those that every guest gets.
    pub kernel: &'static [&'static str],
    /// Kernel modules to load, beside those that every guest gets; what they depend on comes by itself.
    pub modules: &'static [&'static str],
    /// Programs of the building machine that the tests call, with the libraries that they need.
    pub tools: &'static [&'static str],
    /// Whether to bring the kernels crate's own test programs.
    pub kernel_tests: bool,
    /// The release of QEMU and of the kernel.
    pub release: Release,
}

/// The usual machine: nothing but processors and memory still to be said.
pub const PLAIN: Machine =
    Machine { arch: Arch::X86_64, qemu: &[], kernel: &[], modules: &[], tools: &[], kernel_tests: false, release: Release::Stable };

/// An instruction set that guests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// As the Rust target and QEMU name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The release of QEMU and of the kernel that a guest needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// The installed QEMU, Debian's stable kernel.
    Stable,
    /// Both from Debian's backports: QEMU 10 and Linux 6.12, for volatile CXL memory.
    Backports,
}

/// Something to show.
pub struct Test {
    /// Its name, unique in the job.
    pub name: &'static str,
    /// Runs it.
    pub run: fn() -> Result<()>,
}

/// The tests of a job, by the names of their functions.
#[macro_export]
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        &[$($crate::Test { name: stringify!($name), run: $name }),+]
    };
}

/// Every job, in the order in which they run.
pub const JOBS: &[&Job] = jobs::ALL;

/// The job of this name.
pub fn find(name: &str) -> Option<&'static Job> {
    JOBS.iter().find(|job| job.name == name).copied()
}

/// Names that the host's and the guest's side share.
pub mod contract {
    /// Tag of the folder that host and guest share.
    pub const SHARE_TAG: &str = "share";
    /// Where the guest mounts it.
    pub const SHARE: &str = "/share";
    /// In the shared folder: one [`super::Outcome`] a line, as JSON.
    pub const OUTCOMES: &str = "outcomes";
    /// In the shared folder: there when all tests ran.
    pub const DONE: &str = "done";
    /// Argument of the kernel that names the job to the guest's first process.
    pub const JOB_ARGUMENT: &str = "lab.job=";
    /// Argument of the kernel that asks for a shell instead of the tests.
    pub const SHELL_ARGUMENT: &str = "lab.shell";
    /// In the guest: names of module files below `/modules`, in the order in which to load them.
    pub const MODULES: &str = "/modules/order";
    /// In the guest: the kernels crate's test programs, where the machine asks for them.
    pub const KERNEL_TESTS: &str = "/kernel-tests";
}

/// What became of a test.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// Its name.
    pub test: String,
    /// How long it took in the guest.
    pub seconds: f64,
    /// Why it failed; `None`: it passed.
    pub failure: Option<String>,
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
