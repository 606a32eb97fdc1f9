//! What the operating systems call what memgauge advises.

use crate::topology::OperatingSystem;
use crate::words;
use crate::words::{Verb, Words};

/// What limits a process to some CPUs, and so allows it more of them.
pub const fn cpu_limits(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::Linux => "taskset, cpuset",
        OperatingSystem::Windows => "start /affinity, the job object",
    }
}

/// The command that shows the installed memory devices, and the privilege that it needs.
pub fn info_on_memory(system: OperatingSystem) -> Words {
    match system {
        OperatingSystem::Linux => words![Verb::Info, ", as root"],
        // Every user may read firmware's table there.
        OperatingSystem::Windows => Verb::Info.into(),
    }
}

/// Where the system writes what the hardware reported: errors, heat, limits.
pub const fn hardware_log(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::Linux => "the kernel's log",
        OperatingSystem::Windows => "the system's event log",
    }
}

/// Where the system writes errors of memory.
pub const fn memory_errors_log(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::Linux => "the kernel's log for machine checks and EDAC",
        OperatingSystem::Windows => "the system's event log for those of WHEA-Logger",
    }
}
