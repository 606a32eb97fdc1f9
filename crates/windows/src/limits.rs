//! How much memory and CPU time may be taken.
//!
//! Windows refuses to commit more than it has, and kills nobody for it, but a machine that runs short writes memory to page files, which no
//! measurement survives. So all limits are read (available memory of each node and of the system, what this process may commit, the limits
//! of its job object), and a margin of each stays free, as on Linux.
//!
//! Containers of Windows are job objects. Of nested jobs a process sees its own only.

use std::collections::BTreeMap;

use memgauge_model::policy::MemoryPolicy;
use memgauge_model::reserve::{self, Reserve, amount as gib};
use memgauge_model::topology::{Allowed, Node, SettingsFrom};
use memgauge_model::units::Bytes;
use windows_sys::Win32::System::JobObjects::{
    JOB_OBJECT_CPU_RATE_CONTROL, JOB_OBJECT_CPU_RATE_CONTROL_ENABLE, JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
    JOB_OBJECT_CPU_RATE_CONTROL_MIN_MAX_RATE, JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_PROCESS_MEMORY, JOB_OBJECT_LIMIT_WORKINGSET,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicAccountingInformation, JobObjectCpuRateControlInformation, JobObjectExtendedLimitInformation,
};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS_EX};
use windows_sys::Win32::System::SystemInformation::MEMORYSTATUSEX;
use windows_sys::Win32::System::Threading::{ALL_PROCESSOR_GROUPS, GetActiveProcessorCount, GetCurrentProcess};

use crate::answers::memory_status;
use crate::cpu::AllowedSets;
use crate::job;

/// `JOBOBJECT_CPU_RATE_CONTROL_INFORMATION` counts cycles of this many.
const RATE_UNIT: u32 = 10_000;

/// What a limit leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Headroom {
    /// Bytes that may be taken. The margin is already subtracted.
    bytes: u64,
    /// The limit in words.
    name: String,
}

impl Headroom {
    fn new(left: u64, name: &str) -> Self {
        Self { bytes: Reserve::NONE.may_be_taken(left, 0), name: format!("{name}, {} left", gib(left)) }
    }
}

/// Reads how much memory may be taken in total and on each of the nodes that may be used, and how much CPU time. The margins are already
/// subtracted. A node whose free memory Windows does not tell has no limit of its own.
pub(crate) fn read(nodes: &[Node], usable: AllowedSets) -> Allowed {
    let status = memory_status().ok();
    let mut limits = status.as_ref().map(system_headroom).unwrap_or_default();
    if let Some(job) = job_limits() {
        limits.extend(job_headroom(&job, &own_use(), jobs_processes()));
    }
    let rate = job_cpu_rate().and_then(|(flags, rate)| quota(flags, rate, processors()));
    combined(nodes, usable, limits, rate)
}

fn combined(nodes: &[Node], usable: AllowedSets, others: Vec<Headroom>, cpu_quota: Option<f64>) -> Allowed {
    let AllowedSets { cpus, isolated, nodes: allowed } = usable;
    let room = |node: &Node| {
        let memory = node.memory?.0;
        let left = node.free?.0.min(memory);
        let bytes = Reserve::NODE.may_be_taken(left, memory);
        Some((node.id, (Bytes(bytes), reserve::in_words(left, bytes))))
    };
    let rooms: BTreeMap<u32, (Bytes, String)> = nodes.iter().filter(|node| allowed.contains(node.id)).filter_map(room).collect();
    let node_memory: BTreeMap<u32, Bytes> = rooms.iter().map(|(&id, (bytes, _))| (id, *bytes)).collect();
    let node_limited_by = rooms.into_iter().map(|(id, (_, words))| (id, words)).collect();
    let mut limits = Vec::new();
    // The sum says nothing while a part of it is not known.
    if !allowed.is_empty() && allowed.iter().all(|node| node_memory.contains_key(&node)) {
        let on_nodes = node_memory.values().fold(0u64, |sum, bytes| sum.saturating_add(bytes.0));
        limits.push(Headroom { bytes: on_nodes, name: format!("free memory of the allowed nodes ({allowed})") });
    }
    limits.extend(others);
    // The nodes come first, so that they are named when another limit is equal.
    let lowest = limits.into_iter().min_by_key(|limit| limit.bytes);
    let unknown = || (None, "Windows does not say how much memory is available (GlobalMemoryStatusEx)".to_owned());
    let (memory, memory_limited_by) = lowest.map_or_else(unknown, |limit| (Some(Bytes(limit.bytes)), limit.name));
    Allowed {
        cpus,
        isolated,
        nodes: allowed,
        memory,
        memory_limited_by,
        node_memory,
        node_limited_by,
        cpu_quota,
        settings: SettingsFrom::Here,
        // A process inherits none: memory is on the node of the thread that touches it, unless it asks for another.
        memory_policy: Some(MemoryPolicy::default()),
        memory_policy_unknown: None,
    }
}

/// The memory that the system leaves: physical memory that is available without writing any to disk, and memory that this process may still
/// commit, which is less if page files are small and programs have reserved much.
fn system_headroom(status: &MEMORYSTATUSEX) -> Vec<Headroom> {
    let MEMORYSTATUSEX { ullTotalPhys: total, ullAvailPhys: available, ullAvailPageFile: commit, .. } = *status;
    let bytes = Reserve::SYSTEM.may_be_taken(available, total);
    vec![
        Headroom { bytes, name: format!("available memory (GlobalMemoryStatusEx, {})", reserve::in_words(available, bytes)) },
        Headroom::new(commit, "commit limit of memory and page files (GlobalMemoryStatusEx)"),
    ]
}

/// The memory that this process has taken, in bytes, as far as Windows reports it (Wine does not report everything).
#[derive(Debug, Clone, Copy, Default)]
struct OwnUse {
    /// Committed memory that is its own.
    committed: Option<u64>,
    /// Physical memory.
    working_set: Option<u64>,
}

/// The memory that the limits of a job object leave. `processes` is the number of processes in the job, if known.
///
/// Windows documents no call that returns the memory that all processes of a job have committed now. If this process is the only one, that is
/// its own use. Otherwise, and if its own use is not known, the highest value so far stands for it.
fn job_headroom(limits: &JOBOBJECT_EXTENDED_LIMIT_INFORMATION, own: &OwnUse, processes: Option<u32>) -> Vec<Headroom> {
    let flags = limits.BasicLimitInformation.LimitFlags;
    let of_process = own.committed.unwrap_or(limits.PeakProcessMemoryUsed as u64);
    let of_job = own.committed.filter(|_| processes == Some(1)).unwrap_or(limits.PeakJobMemoryUsed as u64);
    let rows = [
        (JOB_OBJECT_LIMIT_PROCESS_MEMORY, limits.ProcessMemoryLimit, Some(of_process), "memory of a process (ProcessMemoryLimit)"),
        (JOB_OBJECT_LIMIT_JOB_MEMORY, limits.JobMemoryLimit, Some(of_job), "memory of all its processes (JobMemoryLimit)"),
        (
            JOB_OBJECT_LIMIT_WORKINGSET,
            limits.BasicLimitInformation.MaximumWorkingSetSize,
            own.working_set,
            "physical memory of a process (MaximumWorkingSetSize)",
        ),
    ];
    let room = |(flag, limit, used, what): (u32, usize, Option<u64>, &str)| {
        let name = format!("the job object's limit on the {what} of {}", gib(limit as u64));
        // If the use is not known, the limit itself is the best estimate.
        (flags & flag != 0).then(|| Headroom::new((limit as u64).saturating_sub(used.unwrap_or(0)), &name))
    };
    rows.into_iter().filter_map(room).collect()
}

/// The CPUs' worth of time that a rate leaves; `None` where it limits nothing. A rate is cycles of 10,000, over all CPUs of the machine.
/// Weights and rates without a hard cap hold only while other programs want the CPUs.
fn quota(flags: JOB_OBJECT_CPU_RATE_CONTROL, rate: u32, processors: u32) -> Option<f64> {
    let rate = match flags {
        _ if flags & JOB_OBJECT_CPU_RATE_CONTROL_ENABLE == 0 => None,
        // The lower half is the least that is granted, the upper half the most.
        _ if flags & JOB_OBJECT_CPU_RATE_CONTROL_MIN_MAX_RATE != 0 => Some(rate >> 16),
        _ if flags & JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP != 0 => Some(rate),
        _ => None,
    };
    let rate = rate.filter(|rate| (1..RATE_UNIT).contains(rate))?;
    (processors > 0).then(|| f64::from(rate) / f64::from(RATE_UNIT) * f64::from(processors))
}

/// CPUs of the machine, in all groups.
fn processors() -> u32 {
    // SAFETY: the function has no preconditions.
    unsafe { GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) }
}

/// The memory that this process has taken (`GetProcessMemoryInfo`).
fn own_use() -> OwnUse {
    let mut counters = PROCESS_MEMORY_COUNTERS_EX::default();
    let size = size_of::<PROCESS_MEMORY_COUNTERS_EX>() as u32;
    // SAFETY: the handle stands for the calling process and needs no closing. The function takes either form of the structure, tells them
    // apart by the size, and writes no more than that.
    if unsafe { K32GetProcessMemoryInfo(GetCurrentProcess(), (&raw mut counters).cast(), size) } == 0 {
        return OwnUse::default();
    }
    // Every process has some memory: 0 is a system that does not count it.
    let counted = |bytes: usize| Some(bytes as u64).filter(|&bytes| bytes > 0);
    OwnUse { committed: counted(counters.PrivateUsage), working_set: counted(counters.WorkingSetSize) }
}

fn job_limits() -> Option<JOBOBJECT_EXTENDED_LIMIT_INFORMATION> {
    // SAFETY: the structure is that of the class, and has numbers only.
    let found = unsafe { job::query(JobObjectExtendedLimitInformation, JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default()) };
    found.map(|(limits, _)| limits)
}

/// How many processes the job has now.
fn jobs_processes() -> Option<u32> {
    // SAFETY: the structure is that of the class, and has numbers only.
    let found = unsafe { job::query(JobObjectBasicAccountingInformation, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default()) };
    found.map(|(accounting, _)| accounting.ActiveProcesses)
}

fn job_cpu_rate() -> Option<(JOB_OBJECT_CPU_RATE_CONTROL, u32)> {
    // SAFETY: the structure is that of the class, and has numbers only.
    let (control, _) = unsafe { job::query(JobObjectCpuRateControlInformation, JOBOBJECT_CPU_RATE_CONTROL_INFORMATION::default()) }?;
    // SAFETY: all forms of the union are 32 bits of numbers.
    Some((control.ControlFlags, unsafe { control.Anonymous.CpuRate }))
}

#[cfg(test)]
mod tests;
