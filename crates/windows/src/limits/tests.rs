use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use windows_sys::Win32::System::JobObjects::JOB_OBJECT_CPU_RATE_CONTROL_WEIGHT_BASED;

use super::*;
use crate::topology::read_machine;

const GIB: u64 = 1 << 30;

fn ids(list: &str) -> IdSet {
    list.parse().unwrap()
}

fn node(id: u32, memory: u64, free: Option<u64>) -> Node {
    Node { id, memory: Some(Bytes(memory)), free: free.map(Bytes), ..Node::default() }
}

fn sets(nodes: &str) -> AllowedSets {
    AllowedSets { cpus: ids("0-3"), isolated: IdSet::new(), nodes: ids(nodes) }
}

/// 80 %, rounded as the code rounds it.
fn share(bytes: u64) -> u64 {
    bytes / 100 * 80
}

#[test]
fn the_lowest_limit_is_named() {
    let nodes = [node(0, 16 * GIB, Some(16 * GIB)), node(1, 16 * GIB, Some(8 * GIB))];
    let allowed = combined(&nodes, sets("0-1"), Vec::new(), Some(1.5));
    assert_eq!(allowed.node_memory, [(0, Bytes(share(16 * GIB))), (1, Bytes(share(8 * GIB)))].into());
    assert_eq!(allowed.memory, Some(Bytes(share(16 * GIB) + share(8 * GIB))));
    assert!(allowed.memory_limited_by.contains("nodes (0-1)"), "{}", allowed.memory_limited_by);
    assert_eq!((allowed.cpus, allowed.nodes, allowed.cpu_quota), (ids("0-3"), ids("0-1"), Some(1.5)));

    let status = MEMORYSTATUSEX { ullTotalPhys: 32 * GIB, ullAvailPhys: 4 * GIB, ullAvailPageFile: 2 * GIB, ..MEMORYSTATUSEX::default() };
    let limits = system_headroom(&status);
    assert_eq!(
        limits[0],
        Headroom {
            bytes: 4 * GIB - 32 * GIB / 100 * 5,
            name: "available memory (GlobalMemoryStatusEx, 4.0 GiB, 1.6 GiB of it kept for the rest of the system)".into()
        }
    );
    let allowed = combined(&nodes, sets("0-1"), limits, None);
    assert_eq!(allowed.memory, Some(Bytes(share(2 * GIB))));
    assert!(allowed.memory_limited_by.contains("commit limit") && allowed.memory_limited_by.contains("2.0 GiB left"));
}

#[test]
fn a_node_whose_free_memory_is_unknown_limits_nothing() {
    let nodes = [node(0, 16 * GIB, Some(GIB)), node(1, 16 * GIB, None)];
    let available = vec![Headroom { bytes: 20 * GIB, name: "available".into() }];
    let allowed = combined(&nodes, sets("0-1"), available, None);
    assert_eq!(allowed.node_memory.keys().copied().collect::<Vec<_>>(), [0]);
    assert_eq!((allowed.memory, allowed.memory_limited_by.as_str()), (Some(Bytes(20 * GIB)), "available"));
    // A node that may not be used plays no part.
    let allowed = combined(&nodes, sets("0"), Vec::new(), None);
    assert!(allowed.memory_limited_by.contains("nodes (0)"));
    // Nothing is known.
    let allowed = combined(&nodes[1..], sets("1"), Vec::new(), None);
    assert_eq!(allowed.memory, None);
    assert!(allowed.memory_limited_by.contains("does not say"));
}

#[test]
fn limits_of_job_objects() {
    let own = OwnUse { committed: Some(GIB), working_set: Some(512 << 20) };
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION {
        ProcessMemoryLimit: 3 << 30,
        JobMemoryLimit: 8 << 30,
        PeakJobMemoryUsed: 6 << 30,
        PeakProcessMemoryUsed: 2 << 30,
        ..JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default()
    };
    limits.BasicLimitInformation.MaximumWorkingSetSize = 1 << 30;
    assert_eq!(job_headroom(&limits, &own, Some(1)), [], "none of them is switched on");

    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_JOB_MEMORY;
    let left = |processes| job_headroom(&limits, &own, processes).iter().map(|room| room.bytes).collect::<Vec<_>>();
    assert_eq!(left(Some(1)), [share(7 * GIB)], "this process has all that is used");
    assert_eq!(left(Some(2)), [share(2 * GIB)], "others had up to 6 GiB");
    assert_eq!(left(None), [share(2 * GIB)]);
    let unknown = |limits: &JOBOBJECT_EXTENDED_LIMIT_INFORMATION| {
        job_headroom(limits, &OwnUse::default(), Some(1)).iter().map(|room| room.bytes).collect::<Vec<_>>()
    };
    assert_eq!(unknown(&limits), [share(2 * GIB)], "the most that it ever was");

    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY | JOB_OBJECT_LIMIT_WORKINGSET;
    let found = job_headroom(&limits, &own, Some(1));
    assert_eq!(found.iter().map(|room| room.bytes).collect::<Vec<_>>(), [share(2 * GIB), share(512 << 20)]);
    assert_eq!(unknown(&limits), [share(GIB), share(GIB)]);
    assert_eq!(
        found[0].name, "the job object's limit on the memory of a process (ProcessMemoryLimit) of 3.0 GiB, 2.0 GiB left",
        "says which limit, how much, and what is left"
    );
}

#[test]
fn quotas() {
    let (on, hard) = (JOB_OBJECT_CPU_RATE_CONTROL_ENABLE, JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP);
    assert_eq!(quota(on | hard, 2_500, 8), Some(2.0));
    assert_eq!(quota(on | hard, 10_000, 8), None, "all CPUs");
    assert_eq!(quota(on | hard, 0, 8), None);
    assert_eq!(quota(hard, 2_500, 8), None, "switched off");
    assert_eq!(quota(on, 2_500, 8), None, "only while others want the CPUs");
    assert_eq!(quota(on | JOB_OBJECT_CPU_RATE_CONTROL_WEIGHT_BASED, 5, 8), None);
    assert_eq!(quota(on | JOB_OBJECT_CPU_RATE_CONTROL_MIN_MAX_RATE, 5_000 << 16 | 1_000, 4), Some(2.0));
}

#[test]
fn this_machine() {
    let Machine { topology, allowed, .. } = read_machine(std::path::Path::new("/")).unwrap();
    let total: u64 = topology.nodes.iter().map(|node| node.stated_bytes()).sum();
    assert!(allowed.memory.is_some_and(|memory| memory.0 > 0 && memory.0 < total), "{:?} of {total}", allowed.memory);
    assert!(!allowed.memory_limited_by.is_empty());
    assert!(allowed.node_memory.values().all(|bytes| bytes.0 < total));
    let OwnUse { committed, working_set } = own_use();
    // Wine does not count what is committed.
    assert!(committed.is_none_or(|bytes| bytes < total) && working_set.is_some_and(|bytes| bytes < total), "{committed:?} {working_set:?}");
    assert!(processors() > 0);
    if let Some(job) = job::cpus() {
        assert!(!job.intersection(&topology.online()).is_empty(), "{job}");
    }
    assert!(allowed.cpu_quota.is_none_or(|cpus| cpus > 0.0 && cpus < f64::from(processors())));
}
