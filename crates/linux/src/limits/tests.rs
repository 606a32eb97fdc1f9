use super::*;
use crate::tests::fixture::Fixture;
use crate::topology::read_machine;

const GIB: u64 = 1 << 30;

/// Two nodes of 16 GiB, all free and available.
fn machine() -> Fixture {
    let kib = 32u64 << 20;
    Fixture::new()
        .cpus(4)
        .node(0, "0-1", 16 << 10)
        .node(1, "2-3", 16 << 10)
        .file("proc/meminfo", format!("MemTotal: {kib} kB\nMemFree: {kib} kB\nMemAvailable: {kib} kB\n"))
}

fn budget(tree: &Fixture) -> (u64, String) {
    let allowed = read_machine(tree.root()).unwrap().allowed;
    (allowed.memory.unwrap().0, allowed.memory_limited_by)
}

/// 80 %, rounded as the code rounds it.
fn share(bytes: u64) -> u64 {
    bytes / 100 * 80
}

#[test]
fn free_nodes_and_what_is_available() {
    let tree = machine();
    let (memory, by) = budget(&tree);
    assert_eq!(memory, 2 * share(16 * GIB));
    assert!(by.contains("nodes (0-1)"), "{by}");
    // One node only.
    let tree = tree.file("proc/self/status", "Mems_allowed_list: 1");
    let allowed = read_machine(tree.root()).unwrap().allowed;
    assert_eq!(allowed.node_memory, [(1, Bytes(share(16 * GIB)))].into());
    assert_eq!(allowed.room(), share(16 * GIB));
    // Less is available than is free on the node.
    let tree = tree.file("proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 4194304 kB\n");
    let (memory, by) = budget(&tree);
    assert_eq!(memory, 4 * GIB - 32 * GIB / 100 * 5);
    assert!(by.contains("MemAvailable, 4.0 GiB"), "{by}");
}

/// A machine of one node with this much memory, free memory and memory in a pool of 1 GiB pages, in GiB.
fn busy(total: u64, free: u64, pooled: u64) -> Fixture {
    let kib = |gib: u64| gib << 20;
    let text = |prefix: &str| format!("{prefix}MemTotal: {} kB\n{prefix}MemFree: {} kB\n", kib(total), kib(free));
    let pool = "sys/devices/system/node/node0/hugepages/hugepages-1048576kB";
    Fixture::new()
        .cpus(4)
        .node(0, "0-3", 1)
        .file("sys/devices/system/node/node0/meminfo", text("Node 0 "))
        .file("proc/meminfo", format!("{}MemAvailable: {} kB\n", text(""), kib(free)))
        .file(&format!("{pool}/nr_hugepages"), pooled.to_string())
        .file(&format!("{pool}/free_hugepages"), pooled.to_string())
}

#[test]
fn what_stays_free_has_an_upper_bound_and_a_name() {
    for (total, free) in [(256, 8), (1024, 20), (6144, 200)] {
        let allowed = read_machine(busy(total, free, 0).root()).unwrap().allowed;
        assert!(allowed.room() >= (free - 4) * GIB / 10 * 8, "{total}: {:?}", allowed.memory);
        let words = format!("{free}.0 GiB, ");
        assert!(allowed.memory_limited_by.contains(&words) && allowed.memory_limited_by.contains("of it kept for"), "{total}: {allowed:?}");
        assert!(allowed.limit_of_node(0).contains(&words), "{}", allowed.limit_of_node(0));
    }
    let (memory, by) = budget(&busy(256, 8, 0));
    assert_eq!(memory, 4 * GIB);
    assert!(by.contains("MemAvailable, 8.0 GiB, 4.0 GiB of it kept"), "{by}");
    // Less than what is to be kept is free, and several times a small buffer.
    assert!(budget(&busy(1024, 2, 0)).0 >= 256 << 20);
    assert_eq!(budget(&busy(1024, 0, 0)).0, 0);
}

#[test]
fn memory_in_pools_has_no_part_in_what_stays_free() {
    // 120 of 128 GiB are a pool of huge pages: 4 GiB are free of the 8 that processes share.
    let (memory, _) = budget(&busy(128, 4, 120));
    assert_eq!(memory, share(4 * GIB));
    // The same where the pool's folder is not shown.
    let tree = busy(128, 4, 0).file("proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 4194304 kB\nHugetlb: 125829120 kB\n");
    let (_, by) = budget(&tree);
    assert!(by.contains("nodes (0)"), "the node is the narrower: {by}");
}

#[test]
fn half_of_the_page_cache_counts_as_free() {
    let tree = machine().file(
        "sys/devices/system/node/node1/meminfo",
        "Node 1 MemTotal: 16777216 kB\nNode 1 MemFree: 4194304 kB\nNode 1 Active(file): 1048576 kB\nNode 1 Inactive(file): 2097152 kB\nNode 1 SReclaimable: 1048576 kB\n",
    );
    let allowed = read_machine(tree.root()).unwrap().allowed;
    assert_eq!(allowed.node_memory[&1].0, share(6 * GIB));
}

#[test]
fn every_ancestor_of_a_v2_group_counts() {
    let tree = machine().files(&[
        ("proc/self/cgroup", "0::/a/b/c\n"),
        ("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/a/memory.max", "2147483648"),
        ("sys/fs/cgroup/a/memory.current", "1610612736"),
        ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 536870912\n"),
        ("sys/fs/cgroup/a/b/memory.max", "max"),
        ("sys/fs/cgroup/a/b/memory.current", "1"),
        ("sys/fs/cgroup/a/b/c/memory.max", "8589934592"),
        ("sys/fs/cgroup/a/b/c/memory.current", "0"),
    ]);
    let (memory, by) = budget(&tree);
    assert_eq!(memory, share(GIB));
    assert!(by.contains("memory.max of control group /a (2.0 GiB, 1.0 GiB left)"), "{by}");
    let tree = tree.file("sys/fs/cgroup/a/b/memory.high", "536870912");
    let (memory, by) = budget(&tree);
    assert_eq!(memory, share(536_870_911));
    assert!(by.contains("memory.high of control group /a/b"), "{by}");
}

#[test]
fn v1_groups_and_container_mounts() {
    let mount = |root: &str| format!("35 31 0:32 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    let limit = |path: &str, root: &str| {
        let tree = machine()
            .file("proc/self/cgroup", format!("4:memory:{path}\n0::/\n"))
            .file("proc/self/mountinfo", mount(root))
            .file("sys/fs/cgroup/memory/memory.limit_in_bytes", (6 * GIB).to_string())
            .file("sys/fs/cgroup/memory/memory.usage_in_bytes", "0")
            .file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", (4 * GIB).to_string())
            .file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", (2 * GIB).to_string())
            .file("sys/fs/cgroup/memory/job/memory.stat", format!("inactive_file 0\ntotal_inactive_file {GIB}\n"));
        budget(&tree)
    };
    let job = share(3 * GIB);
    let top = share(6 * GIB);
    assert_eq!(limit("/job", "/").0, job);
    // Without a control group namespace, the mount shows the container's group, and the path is the full one.
    assert_eq!(limit("/docker/x/job", "/docker/x").0, job);
    assert!(limit("/docker/x/job", "/docker/x").1.contains("/docker/x/job"));
    assert_eq!(limit("/docker/x", "/docker/x").0, top);
    // With one, the path is relative to it or leads out of it.
    assert_eq!(limit("/", "/").0, top);
    assert_eq!(limit("/../other", "/..").0, top);
    // The folder is not visible, but its ancestors still count.
    assert_eq!(limit("/job/hidden", "/").0, job);
    // No limit.
    let (memory, by) = budget(
        &machine()
            .file("proc/self/cgroup", "4:memory:/\n")
            .file("proc/self/mountinfo", mount("/"))
            .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
    );
    assert_eq!(memory, 2 * share(16 * GIB));
    assert!(!by.contains("control group"), "{by}");
}

#[test]
fn resource_limits_and_commit_accounting() {
    let tree = machine()
        .file(
            "proc/self/limits",
            "Limit  Soft Limit  Hard Limit  Units\nMax data size             unlimited   unlimited  bytes\nMax address space         2147483648   unlimited  bytes\n",
        )
        .file("proc/self/status", "VmSize:\t 1048576 kB\n");
    let (memory, by) = budget(&tree);
    assert_eq!(memory, share(GIB));
    assert!(by.contains("ulimit -v"), "{by}");
    let strict = "MemTotal: 33554432 kB\nMemAvailable: 33554432 kB\nCommitLimit: 3145728 kB\nCommitted_AS: 2621440 kB\n";
    let tree = tree.file("proc/sys/vm/overcommit_memory", "2").file("proc/meminfo", strict);
    let (memory, by) = budget(&tree);
    assert_eq!(memory, share(GIB / 2));
    assert!(by.contains("overcommit"), "{by}");
}

#[test]
fn quotas() {
    let v2 = machine().files(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000"),
    ]);
    assert_eq!(cpu_quota(Tree::new(v2.root())), Some(1.5));
    let v1 = machine().files(&[
        ("proc/self/cgroup", "2:cpu,cpuacct:/j\n"),
        ("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/cpu/j/cpu.cfs_quota_us", "50000"),
        ("sys/fs/cgroup/cpu/j/cpu.cfs_period_us", "100000"),
    ]);
    assert_eq!(cpu_quota(Tree::new(v1.root())), Some(0.5));
    assert_eq!(cpu_quota(Tree::new(machine().root())), None);
}

/// On the machine that runs the tests, with any hierarchies and mounts.
#[test]
fn the_nearest_group_holds_this_process() {
    let tree = Tree::new(std::path::Path::new("/"));
    let own = std::process::id().to_string();
    for hierarchy in [Hierarchy::V2, Hierarchy::V1("memory"), Hierarchy::V1("cpu"), Hierarchy::V1("cpuset")] {
        let found = groups(tree, hierarchy);
        // There is nothing to check without such a hierarchy, or when the mount does not show the group itself.
        let Some(nearest) = found.first() else { continue };
        let paths = tree.text("proc/self/cgroup").unwrap();
        let whole = paths.lines().any(|line| line.ends_with(&format!(":{}", nearest.name)));
        if let Some(members) = tree.text(&format!("{}/cgroup.procs", nearest.folder)).filter(|_| whole) {
            assert!(members.lines().any(|pid| pid == own), "{hierarchy:?}: {nearest:?} holds {members}, not {own}");
        }
        assert!(found.windows(2).all(|pair| pair[0].folder.starts_with(&pair[1].folder)), "{found:?}");
    }
}
