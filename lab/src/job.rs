//! A job: a virtual machine and the tests to run in it.

use std::fmt;

use anyhow::Result;

/// A virtual machine and the tests that run in it.
pub struct Job {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its description for the list of jobs, in one line.
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
    /// Arguments for QEMU in addition to those of every guest: machine, CPUs, memory, devices.
    pub qemu: &'static [&'static str],
    /// Arguments for the kernel in addition to those of every guest.
    pub kernel: &'static [&'static str],
    /// Kernel modules to load, in addition to those of every guest. Their dependencies are added.
    pub modules: &'static [&'static str],
    /// Programs of the building machine that the tests call, with the libraries that they need.
    pub tools: &'static [&'static str],
    /// Whether to bring the kernels crate's own test programs.
    pub kernel_tests: bool,
    /// The release of QEMU and of the kernel.
    pub release: Release,
}

/// A plain machine: a job adds its processors and memory.
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
    /// The installed QEMU, and the kernel from the backports to Debian's next release: Linux 6.16 or later.
    NewKernel,
}

/// A test.
pub struct Test {
    /// Its name, unique in the job.
    pub name: &'static str,
    /// Runs it.
    pub run: fn() -> Result<()>,
}

/// The tests of a job, by the names of their functions.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        &[$($crate::job::Test { name: stringify!($name), run: $name }),+]
    };
}
pub(crate) use tests;
