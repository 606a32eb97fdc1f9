//! The CPUs and nodes that this process may use, and binding threads to CPUs.
//!
//! A CPU of Windows is a number within a processor group of up to 64. Here its number is `group * 64 + number`, so on machines with one
//! group nothing changes.

use std::io;
use std::path::Path;
use std::ptr::null_mut;

use memgauge_model::topology::Topology;
use memgauge_model::units::IdSet;
use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_INVALID_PARAMETER};
use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetActiveProcessorGroupCount, GetCurrentProcess, GetCurrentProcessorNumberEx, GetCurrentThread, GetProcessAffinityMask,
    SetThreadGroupAffinity,
};

use crate::answers::{GROUP_CPUS, active_cpus, ids_in};
use crate::job;

/// CPUs and nodes that a process may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedSets {
    /// Active, and in the affinity of the process and of its job object.
    pub cpus: IdSet,
    /// CPUs that the scheduler leaves alone and that may be used nevertheless: Windows has none.
    pub isolated: IdSet,
    /// Nodes with memory. Windows limits no process to some nodes.
    pub nodes: IdSet,
}

/// The processor group of a CPU, and its number within the group.
pub fn group_and_number(cpu: u32) -> (u16, u8) {
    // A group that no machine has, where the number of the group does not fit: Windows then refuses the CPU.
    (u16::try_from(cpu / GROUP_CPUS).unwrap_or(u16::MAX), (cpu % GROUP_CPUS) as u8)
}

/// The CPU with this number within a processor group.
pub fn cpu_id(group: u16, number: u8) -> u32 {
    u32::from(group) * GROUP_CPUS + u32::from(number)
}

/// Reads what this process may use now. It takes a few system calls, so it can be called between measurements.
///
/// The root is not used: machines that run Windows are not recorded.
pub fn read_allowed(_root: &Path, topology: &Topology) -> AllowedSets {
    let online = topology.online();
    let cpus = process_affinity().map_or_else(|_| online.clone(), |affinity| affinity.intersection(&online));
    let nodes = topology.nodes.iter().filter(|node| node.has_memory()).map(|node| node.id).collect();
    AllowedSets { cpus, isolated: IdSet::new(), nodes }
}

/// The CPUs that threads of this process may run on: the affinity of the process (`GetProcessAffinityMask`) and of its job object.
///
/// On a machine with several groups, the mask of a process says nothing about the groups that its threads are not in, because every thread
/// may choose a group (`SetThreadGroupAffinity`). A process whose mask leaves out CPUs of its own group was limited by someone
/// (`start /affinity`, `SetProcessAffinityMask`), which Windows allows within one group only: that mask is then all. Otherwise all groups
/// may be used. Binding a thread does not change any of this.
///
/// # Errors
/// When Windows refuses.
pub fn process_affinity() -> io::Result<IdSet> {
    let (mut process, mut system) = (0usize, 0usize);
    // SAFETY: the handle stands for the calling process and needs no closing. The function writes two numbers, which outlive the call.
    if unsafe { GetProcessAffinityMask(GetCurrentProcess(), &raw mut process, &raw mut system) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the function has no preconditions.
    let groups = unsafe { GetActiveProcessorGroupCount() }.max(1);
    let own = affinity(process as u64, system as u64, groups, current_group()?, active_cpus)?;
    Ok(job::cpus().map_or_else(|| own.clone(), |allowed| own.intersection(&allowed)))
}

/// Leaves the affinity as it is: who limits a process on Windows limits what it may ask for.
///
/// # Errors
/// None.
pub fn widen_affinity(_root: &Path) -> io::Result<Option<IdSet>> {
    Ok(None)
}

/// The CPUs that these masks of the process and of the system, which are of the group that the process is in, allow. Both are 0 where the
/// process is in several groups.
fn affinity(process: u64, system: u64, groups: u16, group: u16, all: impl Fn() -> io::Result<IdSet>) -> io::Result<IdSet> {
    let within = |group: u16| Ok(ids_in(group, process).map(Iterator::collect).unwrap_or_default());
    match groups {
        _ if process == 0 => all(),
        1 => within(0),
        _ if process != system => within(group),
        _ => all(),
    }
}

/// The group that the calling thread runs in.
fn current_group() -> io::Result<u16> {
    current_cpu().map(|cpu| group_and_number(cpu).0)
}

/// Why [`pin_to`] failed, in words.
pub fn why_not_pinned(error: &io::Error) -> String {
    match error.raw_os_error().map(i32::cast_unsigned) {
        Some(ERROR_INVALID_PARAMETER) => {
            "it does not exist, or the affinity of this process or of its job object leaves it out (start /affinity, limits of a container)"
                .to_owned()
        }
        Some(ERROR_ACCESS_DENIED) => {
            format!("binding a thread to it is denied (SetThreadGroupAffinity: {error}), as a job object or a sandbox does")
        }
        _ => format!("Windows refuses to bind a thread to it (SetThreadGroupAffinity: {error})"),
    }
}

/// Pins the calling thread to `cpu` (`SetThreadGroupAffinity`). It runs there when this returns.
///
/// # Errors
/// When the CPU does not exist or the affinity of the process or its job object leaves it out (`ERROR_INVALID_PARAMETER`), or when the call
/// is denied.
pub fn pin_to(cpu: u32) -> io::Result<()> {
    let (group, number) = group_and_number(cpu);
    let affinity = GROUP_AFFINITY { Mask: 1 << number, Group: group, Reserved: [0; 3] };
    // SAFETY: the handle stands for the calling thread and needs no closing. The function reads the structure, which outlives the call, and
    // writes no former affinity.
    if unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const affinity, null_mut()) } == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The CPU that the calling thread is running on (`GetCurrentProcessorNumberEx`).
///
/// # Errors
/// None on Windows, where this call cannot fail.
pub fn current_cpu() -> io::Result<u32> {
    let mut found = PROCESSOR_NUMBER::default();
    // SAFETY: the function writes one structure, which outlives the call.
    unsafe { GetCurrentProcessorNumberEx(&raw mut found) };
    Ok(cpu_id(found.Group, found.Number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &str) -> IdSet {
        list.parse().unwrap()
    }

    #[test]
    fn numbers_of_cpus() {
        for (cpu, expected) in [(0, (0, 0)), (63, (0, 63)), (64, (1, 0)), (200, (3, 8))] {
            assert_eq!(group_and_number(cpu), expected);
            assert_eq!(cpu_id(expected.0, expected.1), cpu);
        }
        assert_eq!(group_and_number(u32::MAX), (u16::MAX, 63));
    }

    #[test]
    fn masks_of_the_process() {
        let all = || Ok(ids("0-39,64-103"));
        let expected = ids("0-39,64-103");
        assert_eq!(affinity(0b1010, 0b1111, 1, 0, all).unwrap(), ids("1,3"), "one group: the mask is all");
        let group = (1 << 40) - 1;
        assert_eq!(affinity(group, group, 2, 1, all).unwrap(), expected, "nobody limited the process");
        assert_eq!(affinity(0b11, group, 2, 1, all).unwrap(), ids("64-65"), "limited within its group");
        assert_eq!(affinity(0, 0, 2, 1, all).unwrap(), expected, "in several groups");
    }

    #[test]
    fn a_thread_runs_where_it_is_pinned() {
        std::thread::spawn(|| {
            let all = process_affinity().unwrap();
            assert!(!all.is_empty());
            for cpu in all.iter() {
                pin_to(cpu).unwrap();
                assert_eq!(current_cpu().unwrap(), cpu);
            }
            // The affinity of the process is not that of a thread.
            assert_eq!(process_affinity().unwrap(), all);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there() {
        let error = pin_to(u32::MAX).unwrap_err();
        assert!(why_not_pinned(&error).contains("does not exist"), "{error}");
        let beyond = process_affinity().unwrap().last().unwrap() / GROUP_CPUS * GROUP_CPUS + GROUP_CPUS * 40;
        assert!(pin_to(beyond).is_err());
        let denied = io::Error::from_raw_os_error(ERROR_ACCESS_DENIED.cast_signed());
        assert!(why_not_pinned(&denied).contains("denied"));
        let other = io::Error::from_raw_os_error(8);
        assert!(why_not_pinned(&other).contains("refuses"));
    }

    #[test]
    fn what_is_allowed_is_part_of_the_machine() {
        let machine = crate::topology::read_machine(Path::new("/")).unwrap();
        let allowed = read_allowed(Path::new("/"), &machine.topology);
        assert!(!allowed.cpus.is_empty() && allowed.cpus.is_subset(&machine.topology.online()));
        assert!(allowed.isolated.is_empty());
        assert!(!allowed.nodes.is_empty());
        assert_eq!(allowed.cpus, machine.allowed.cpus);
    }
}
