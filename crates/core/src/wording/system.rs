//! What the operating systems call what memgauge advises.

use crate::topology::{OperatingSystem, SettingsFrom};

/// How to write a value to a file of the kernel's settings, which must exist.
pub fn setting_change(from: SettingsFrom, file: &str, value: &str) -> String {
    match from {
        SettingsFrom::Here => format!("as root: echo {value} > {file}"),
        SettingsFrom::OutsideContainer => format!("outside of this container, as root: set {file} to {value}"),
        SettingsFrom::ReadOnly => format!("as root, where it is not read-only: set {file} to {value}"),
    }
}

/// What limits a process to some CPUs, and so allows it more of them.
pub const fn cpu_limits(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::Linux => "taskset, cpuset",
        OperatingSystem::Windows => "start /affinity, the job object",
    }
}

/// The command that shows the installed memory devices, and the privilege that it needs.
pub const fn info_on_memory(system: OperatingSystem) -> &'static str {
    match system {
        OperatingSystem::Linux => "memgauge info, as root",
        // Every user may read firmware's table there.
        OperatingSystem::Windows => "memgauge info",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_for_where_they_work() {
        let change = |from| setting_change(from, "/proc/sys/kernel/numa_balancing", "0");
        assert_eq!(change(SettingsFrom::Here), "as root: echo 0 > /proc/sys/kernel/numa_balancing");
        for from in [SettingsFrom::OutsideContainer, SettingsFrom::ReadOnly] {
            let words = change(from);
            assert!(!words.contains("echo") && words.ends_with("set /proc/sys/kernel/numa_balancing to 0"), "{words}");
        }
    }
}
