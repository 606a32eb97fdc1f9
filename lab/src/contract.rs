//! The contract of the host's and the guest's side: names, and results of tests.

/// Tag of the folder that host and guest share.
pub const SHARE_TAG: &str = "share";
/// Where the guest mounts it.
pub const SHARE: &str = "/share";
/// In the shared folder: one [`Outcome`] a line, as JSON.
pub const OUTCOMES: &str = "outcomes";
/// In the shared folder: exists once all tests have run.
pub const DONE: &str = "done";
/// Argument of the kernel that names the job to the guest's first process.
pub const JOB_ARGUMENT: &str = "lab.job=";
/// Argument of the kernel that asks for a shell instead of the tests.
pub const SHELL_ARGUMENT: &str = "lab.shell";
/// In the guest: names of module files below `/modules`, in the order in which to load them.
pub const MODULES: &str = "/modules/order";
/// In the guest: the kernels crate's test programs, where the machine asks for them.
pub const KERNEL_TESTS: &str = "/kernel-tests";

/// The result of a test.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// Its name.
    pub test: String,
    /// How long it took in the guest.
    pub seconds: f64,
    /// Why it failed; `None` if it passed, or could not test.
    pub failure: Option<String>,
    /// Why it could not test: the host had the guest's CPUs.
    pub not_tested: Option<String>,
}
