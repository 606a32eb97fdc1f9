//! How the operating systems differ in what memgauge says: one row for each system.

use crate::topology::OperatingSystem;

/// An operating system's names for limits, logs and commands, as messages use them.
#[derive(Debug)]
pub struct SystemWords {
    /// The settings that limit a process to some CPUs.
    pub cpu_limits: &'static str,
    /// That this process may use no CPU, and where to look.
    pub no_cpu_allowed: &'static str,
    /// Why this process may not use a CPU.
    pub cpu_left_out: &'static str,
    /// `info` says how to switch CPUs on.
    pub switches_cpus: bool,
    /// `prefetch` switches prefetchers.
    pub switches_prefetchers: bool,
    /// The group whose CPU time is limited, and the setting that limits it.
    pub cpu_quota: (&'static str, &'static str),
    /// The setting that allows a process the memory of another node.
    pub node_limits: Option<&'static str>,
    /// The setting that lists the nodes which this process may use, in brackets.
    pub node_limits_in_brackets: &'static str,
    /// A kind of directory whose files can be bound to a node.
    pub bindable_directory: Option<&'static str>,
    /// The sources that name no other tier of memory.
    pub no_other_tier: &'static str,
    /// Follows the command that shows installed memory devices: the privilege that it needs. On Windows every user may read firmware's table.
    pub for_memory_devices: &'static str,
    /// The log of the hardware's reports: errors, heat, limits.
    pub hardware_log: &'static str,
    /// The log of memory errors.
    pub memory_errors_log: &'static str,
    /// How to find the DIMM with errors.
    pub find_bad_dimm: &'static str,
    /// How to find errors of memory that were counted while something was measured.
    pub find_memory_errors: &'static str,
    /// How to keep cores at one frequency.
    pub steady_frequency: &'static str,
    /// Advice where pages cannot be read back.
    pub placement: &'static str,
    /// Why nobody, or not everybody, may read physical addresses.
    pub no_addresses: &'static str,
    /// Why prefetchers cannot be switched.
    pub no_registers: &'static str,
    /// The command that keeps a program on a node.
    pub on_one_node: &'static str,
    /// The command that interleaves pages by weights.
    pub by_weights: &'static str,
}

const LINUX: SystemWords = SystemWords {
    cpu_limits: "taskset, cpuset",
    no_cpu_allowed: "this process may use no online CPU; check its affinity (taskset -p) and cpuset",
    cpu_left_out: "its affinity mask or cpuset leaves the others out: taskset -p, cpuset.cpus",
    switches_cpus: true,
    switches_prefetchers: true,
    cpu_quota: ("control group", "cpu.max of the group"),
    node_limits: Some("allow the node in cpuset.mems"),
    node_limits_in_brackets: " (cpuset.mems of its control group)",
    bindable_directory: Some("give a directory of a tmpfs"),
    no_other_tier: "neither the kernel's memory tiers nor firmware (HMAT), DAX or CXL devices tell of another",
    for_memory_devices: ", as root",
    hardware_log: "the kernel's log",
    memory_errors_log: "the kernel's log for machine checks and EDAC",
    find_bad_dimm: "look at /sys/devices/system/edac and the kernel's log for the DIMM",
    find_memory_errors: "look for EDAC messages in the kernel's log and check the DIMMs before you trust this machine",
    steady_frequency: "set the performance governor and repeat on a warm machine",
    placement: "in a container, allow move_pages (CAP_SYS_NICE); until then the node is only as sure as first touch makes it",
    no_addresses: "only root may read where pages are",
    no_registers: "try executing 'modprobe msr'",
    on_one_node: "numactl --cpunodebind=N --membind=N",
    by_weights: "numactl --weighted-interleave",
};

const WINDOWS: SystemWords = SystemWords {
    cpu_limits: "start /affinity, the job object",
    no_cpu_allowed: "this process may use no CPU; check its affinity (Task Manager, Details) and its job object",
    cpu_left_out: "its affinity or its job object leaves the others out",
    switches_cpus: false,
    switches_prefetchers: false,
    cpu_quota: ("job object", "the CPU rate of the job"),
    node_limits: None,
    node_limits_in_brackets: "",
    bindable_directory: None,
    no_other_tier: "Windows does not show what firmware (HMAT) or CXL devices tell",
    for_memory_devices: "",
    hardware_log: "the system's event log",
    memory_errors_log: "the system's event log for those of WHEA-Logger",
    find_bad_dimm: "look at the events of WHEA-Logger in the system's log for the DIMM",
    find_memory_errors: "look for events of WHEA-Logger in the system's log and check the DIMMs before you trust this machine",
    steady_frequency: "choose the power plan 'High performance' and repeat on a warm machine",
    placement: "until the pages can be read back, the node is only as sure as first touch makes it",
    no_addresses: "Windows shows no program where pages are",
    no_registers: "Windows has no driver for it",
    on_one_node: "start /node N PROGRAM",
    by_weights: "the program itself must, by VirtualAllocExNuma: Windows has no setting",
};

impl OperatingSystem {
    /// Its row.
    pub const fn words(self) -> &'static SystemWords {
        match self {
            Self::Linux => &LINUX,
            Self::Windows => &WINDOWS,
        }
    }
}
