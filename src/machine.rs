//! The machine that is measured: this one, or in tests another, for which a model answers.

use std::path::Path;
use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use memgauge_engine::RunContext;
use memgauge_model::result::Report;
use memgauge_model::topology::Machine;
use memgauge_os::clock::Clock;
use memgauge_os::environment;
use memgauge_os::topology::{self, TopologyError};

/// A machine in place of this one. None of its files exists.
pub struct StandIn {
    /// What is known of it.
    pub machine: Machine,
    /// Lets a model answer for it.
    pub simulate: fn(RunContext<'_>) -> RunContext<'_>,
}

pub(crate) static STAND_IN: OnceLock<StandIn> = OnceLock::new();

/// The folder that its files are below.
pub(crate) fn root() -> &'static Path {
    Path::new(if STAND_IN.get().is_some() { "/a simulated machine has no files" } else { "/" })
}

/// The machine whose files are below `root`.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(root: &Path) -> Result<Machine, TopologyError> {
    match STAND_IN.get() {
        Some(stand_in) if root == self::root() => Ok(stand_in.machine.clone()),
        _ => topology::read_machine(root),
    }
}

/// The machine that a report is of and its settings, as they are now. Its files are below `root`.
pub(crate) fn now(report: &Report, root: &Path) -> Report {
    let machine = read(root).unwrap_or_else(|_| report.machine.clone());
    let environment = environment::read_environment(root, &machine);
    Report { environment, ..Report::of_machine(report.tool.clone(), machine) }
}

/// A run on the machine.
pub(crate) fn context<'a>(machine: &'a Machine, clock: Clock, stop: &'a Arc<AtomicBool>) -> RunContext<'a> {
    let context = RunContext::new(machine, clock, root().to_path_buf(), stop);
    match STAND_IN.get() {
        Some(stand_in) => (stand_in.simulate)(context),
        None => context,
    }
}
