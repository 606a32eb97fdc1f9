//! The machine, as Windows describes it: `GetLogicalProcessorInformationEx`, `GlobalMemoryStatusEx`, the memory of nodes, the registry.
//!
//! CPUs are numbered `group * 64 + number within the group`, so a machine with one processor group has 0, 1, 2 … Packages, dies and modules
//! have no numbers on Windows; they are numbered by their first CPU.
//!
//! [`interpret`] makes the topology of answers that were given, and is built and tested on every system.

mod build;
#[cfg(windows)]
mod cpuid;
#[cfg(windows)]
mod identity;
mod smbios;

use std::path::PathBuf;
#[cfg(windows)]
use std::path::{Component, Path};

#[cfg(windows)]
use memgauge_model::topology::Machine;
use memgauge_model::topology::Topology;

use crate::answers;

pub use crate::answers::{Answers, NodeMemory};
#[cfg(windows)]
pub(crate) use identity::wine_version;
pub use smbios::{device_map, installed};

/// Why the machine cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// Windows does not say which CPUs there are.
    #[cfg(windows)]
    #[error(
        "Windows does not say which CPUs this machine has (GetLogicalProcessorInformationEx): {}; run this program outside of the sandbox \
         or the compatibility layer that denies it",
        crate::security::explained(.0)
    )]
    Refused(#[source] std::io::Error),
    /// The answer cannot be understood.
    #[error(
        "cannot understand what Windows says about this machine's CPUs (GetLogicalProcessorInformationEx): {0}; report this, with the \
         version of Windows"
    )]
    Garbled(String),
    /// The answer names no CPU.
    #[error(
        "Windows names no CPU (GetLogicalProcessorInformationEx); run this program outside of the sandbox or the compatibility layer that \
         hides them"
    )]
    NoCpus,
    /// Another machine's recording was asked for.
    #[error(
        "cannot read a recorded machine at {}: memgauge reads recordings of Linux machines, and on Linux only; read it there, or leave out \
         the folder for this machine",
        .0.display()
    )]
    Recorded(PathBuf),
}

/// The topology that these answers describe.
///
/// `Node::memory` of a machine with several nodes is the total that the performance counters state. If they state none (they can be
/// switched off), it is the memory that is available on the node, which is a lower bound: Windows documents no other source.
///
/// # Errors
/// When the bytes are cut or contradict themselves, or name no CPU.
pub fn interpret(answers: &Answers) -> Result<Topology, TopologyError> {
    let mut records = answers::parse(&answers.processors).map_err(TopologyError::Garbled)?;
    records.extend(answers::parse(&answers.whole_nodes).map_err(TopologyError::Garbled)?);
    build::topology(&records, answers).ok_or(TopologyError::NoCpus)
}

/// Reads this machine, and what this process may use of it. Windows machines are not recorded, so `root` must be `/`.
///
/// # Errors
/// When Windows does not say which CPUs there are, when its answer cannot be understood, or when `root` is another folder.
#[cfg(windows)]
pub fn read_machine(root: &Path) -> Result<Machine, TopologyError> {
    // Anything else would show this machine as the one that was asked for.
    if !root.has_root() || root.components().any(|part| !matches!(part, Component::Prefix(_) | Component::RootDir)) {
        return Err(TopologyError::Recorded(root.to_owned()));
    }
    let answers = answers::ask().map_err(TopologyError::Refused)?;
    let topology = interpret(&answers)?;
    let allowed = crate::limits::read(&topology.nodes, crate::cpu::read_allowed(root, &topology));
    Ok(Machine { identity: identity::read(), topology, allowed })
}

#[cfg(test)]
mod tests;
