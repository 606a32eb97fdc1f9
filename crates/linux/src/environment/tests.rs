use super::*;
use crate::tests::fixture::Fixture;
use crate::topology::read_machine;

fn read(tree: &Fixture) -> Environment {
    read_environment(tree.root(), &read_machine(tree.root()).unwrap())
}

fn note<'e>(environment: &'e Environment, code: &str) -> Option<&'e Note> {
    environment.limits.iter().find(|n| n.code.word() == code)
}

#[test]
fn a_plain_server_has_no_notes() {
    let tree = Fixture::new().cpus(2).node(0, "0-1", 64 << 10).files(&[
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "8"),
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "8"),
        ("proc/cpuinfo", "processor: 0\nvendor_id: GenuineIntel\nflags: lm"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never"),
        ("proc/self/status", "Uid:\t1000\t0\t0\t0\nCapEff:\t0000004000a00000\n"),
        ("proc/sys/kernel/perf_event_paranoid", "2"),
        ("proc/sys/kernel/numa_balancing", "1"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate"),
        ("sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "performance"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_driver", "intel_pstate"),
    ]);
    let environment = read(&tree);
    assert_eq!(environment.limits, []);
    assert!(environment.root);
    assert_eq!(environment.capabilities, ["CAP_SYS_ADMIN", "CAP_SYS_NICE", "CAP_PERFMON"]);
    assert_eq!((environment.thp.as_deref(), environment.thp_defrag.as_deref()), (Some("madvise"), Some("madvise")));
    assert_eq!(environment.governors, ["powersave", "performance"]);
    assert_eq!(environment.energy_preferences, ["performance"]);
    assert_eq!((environment.turbo, environment.numa_balancing), (Some(true), Some(true)));
}

#[test]
fn limits_come_with_advice() {
    let tree = Fixture::new().cpus(4).node(0, "0-1", 64 << 10).node(1, "2-3", 64 << 10).files(&[
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "8"),
        ("sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "0"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
        ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nCpus_allowed_list: 0,2-3\nMems_allowed_list: 0\n"),
        ("proc/sys/kernel/perf_event_paranoid", "4"),
        ("proc/cpuinfo", "processor: 0\nvendor_id: AuthenticAMD\nflags: lm hypervisor"),
        ("sys/devices/system/cpu/cpufreq/boost", "0"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "acpi-cpufreq"),
        ("proc/self/cgroup", "0::/j\n"),
        ("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/j/cpu.max", "150000 100000"),
        ("sys/fs/cgroup/j/memory.max", "536870912"),
        ("sys/fs/cgroup/j/memory.current", "0"),
    ]);
    let environment = read(&tree);
    let assert_note = |code: &str, words: &[&str]| {
        let note = note(&environment, code).unwrap_or_else(|| panic!("no {code} in {:#?}", environment.limits));
        let text = format!("{} {}", note.message, note.advice.as_ref().map(ToString::to_string).as_deref().unwrap_or_default());
        for word in words {
            assert!(text.contains(word), "{code}: '{word}' is not in: {text}");
        }
    };
    assert_note("cpus-not-allowed", &[": CPU 1 "]);
    assert_note("nodes-not-allowed", &[": node 1 "]);
    assert_note("no-local-memory", &["CPUs 2-3"]);
    assert_note("cpu-quota", &["1.50", "cpu.max"]);
    assert_note("cgroup-memory", &["409 MiB", "memory.max of control group /j"]);
    assert_note(
        "no-huge-page-pool",
        &[
            "node 0",
            // Eight pages are in use.
            "echo 520 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages reserves 1 GiB there; 8 gives it back",
        ],
    );
    assert_note("thp-never", &["echo madvise"]);
    assert_note("virtual-machine", &["unknown hypervisor"]);
    assert_note("perf-restricted", &["4", "CAP_PERFMON"]);
    assert_note("governor-powersave", &["performance"]);
    assert_note("turbo-off", &[]);
    assert!(!environment.root && environment.capabilities.is_empty());
    // With one allowed node there is nothing to balance.
    assert!(note(&environment, "numa-balancing").is_none());
}

#[test]
fn numa_balancing_and_strays() {
    let tree = Fixture::new()
        .cpus(4)
        .file("sys/devices/system/cpu/online", "0-2")
        .node(0, "0", 64 << 10)
        .node(2, "1", 64 << 10)
        .files(&[("proc/sys/kernel/numa_balancing", "2"), ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n")]);
    let environment = read(&tree);
    let codes: Vec<&str> = environment.limits.iter().map(|n| n.code.word()).collect();
    assert_eq!(codes, ["cpus-without-node", "cpus-offline", "numa-balancing", "hypervisor-not-known"]);
}

#[test]
fn nodes_that_do_not_add_up_to_the_kernels_memory_are_told() {
    let with_total = |kib: &str| {
        let total = format!("MemTotal: {kib} kB\nMemAvailable: {kib} kB\n");
        let tree = Fixture::new().cpus(2).node(0, "0", 4 << 10).node(1, "1", 4 << 10).file("proc/meminfo", &total);
        note(&read(&tree), "node-memory-differs").map(|note| note.message.to_string())
    };
    // 24 GiB. The only node of a Firecracker guest showed 8 of them.
    assert_eq!(
        with_total("25165824").as_deref(),
        Some("the kernel has 24.0 GiB of memory, its nodes add up to 8.0 GiB: one of the two is wrong")
    );
    assert!(with_total("4194304").is_some());
    assert_eq!(with_total("8100000"), None);
    let hidden = Fixture::new().cpus(2).node(0, "0", 4 << 10).file("proc/meminfo", "MemTotal: 8388608 kB\n");
    let message = note(&read(&hidden), "node-memory-differs").map(|note| note.message.to_string());
    assert!(message.is_some_and(|m| m.to_string().ends_with("a node is not shown, for no node has CPU 1")));
}

/// Mounts of lxcfs over these files, as LXD makes them.
fn lxcfs(files: &[&str]) -> String {
    let line = |file: &&str| format!("40 20 0:40 /{file} /{file} rw - fuse.lxcfs lxcfs rw\n");
    format!("20 1 0:5 / /proc rw - proc proc rw\n{}", files.iter().map(line).collect::<String>())
}

#[test]
fn a_container_of_lxcfs_is_named_once_and_nothing_is_called_wrong() {
    let online = "sys/devices/system/cpu/online";
    let tree = Fixture::new()
        .cpus(4)
        .node(0, "0-3", 24 << 10)
        .file(online, "0-1")
        .file("sys/devices/system/cpu/cpu3/online", "0")
        .file("proc/meminfo", "MemTotal: 2097152 kB\nMemFree: 1900000 kB\nMemAvailable: 1950000 kB\n")
        .file("proc/self/status", "Cpus_allowed_list: 2\n")
        .file("proc/self/mountinfo", lxcfs(&["proc/meminfo", online]));
    let machine = read_machine(tree.root()).unwrap();
    assert_eq!(
        (machine.topology.online(), machine.topology.offline.clone()),
        ("0-2".parse().unwrap(), IdSet::one(3)),
        "the CPUs' own files count"
    );
    assert_eq!(machine.allowed.cpus, IdSet::one(2));
    assert!(machine.allowed.memory < Some(Bytes::gib(2)), "the container's limit holds");
    let environment = read(&tree);
    let found = note(&environment, "container-files").unwrap();
    assert!(
        found.message.to_string().contains("lxcfs")
            && found.message.to_string().contains("2.0 GiB")
            && found.message.to_string().contains("/proc/meminfo"),
        "{found:?}"
    );
    assert!(note(&environment, "node-memory-differs").is_none());
    let offline = note(&environment, "cpus-offline").unwrap();
    assert!(!offline.advice.as_ref().map(ToString::to_string).as_deref().unwrap_or_default().contains("echo"), "{offline:?}");
    // The same numbers without a mount contradict each other.
    let bare = tree.file("proc/self/mountinfo", lxcfs(&[]));
    assert!(note(&read(&bare), "node-memory-differs").is_some());
}

#[test]
fn transparent_huge_pages_that_are_disabled_for_the_process_are_no_matter_of_the_kernels_setting() {
    let with = |enabled: &str| {
        let tree = Fixture::new()
            .cpus(2)
            .node(0, "0-1", 64 << 10)
            .files(&[("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"), ("proc/self/status", enabled)]);
        let environment = read(&tree);
        let advice = note(&environment, "thp-disabled").map(|n| n.advice.clone().unwrap());
        (environment.thp_disabled, advice)
    };
    let (disabled, advice) = with("THP_enabled:\t0\n");
    assert_eq!(disabled, Some(true));
    assert!(advice.is_some_and(|advice| advice.to_string().contains("MemoryTHP=") && !advice.to_string().contains("echo")));
    assert_eq!(with("THP_enabled:\t1\n"), (Some(false), None));
    assert_eq!(with(""), (None, None));
}

#[test]
fn a_hypervisor_that_is_not_known_is_told_with_the_reason() {
    let found = |cpuinfo: &str| {
        let environment = read(&Fixture::new().cpus(1).node(0, "0", 64 << 10).file("proc/cpuinfo", cpuinfo));
        ["hypervisor-not-known", "virtual-machine"].map(|code| note(&environment, code).map(|note| note.message.to_string()))
    };
    let arm = "processor: 0\nCPU implementer: 0x41\nCPU architecture: 8\nCPU part: 0xd0c\n";
    assert!(matches!(found(arm), [Some(why), None] if why.contains("device tree") && why.contains("judged as one")));
    assert_eq!(found("processor: 0\nvendor_id: GenuineIntel\nflags: lm"), [None, None]);
    assert!(matches!(found("processor: 0\nvendor_id: GenuineIntel\nflags: lm hypervisor"), [None, Some(_)]));
}
