//! No content of any file may make the readers panic, and 1,024 CPUs must not make them slow.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::fixture::Fixture;
use crate::cpu::read_allowed;
use crate::environment::read_environment;
use crate::topology::read_machine;

/// Every file that is read, for a machine with two CPUs and two nodes.
const FILES: [&str; 72] = [
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/version",
    "proc/mounts",
    "proc/self/cgroup",
    "proc/self/cpuset",
    "proc/self/limits",
    "proc/self/mountinfo",
    "proc/self/status",
    "proc/sys/kernel/numa_balancing",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/perf_event_paranoid",
    "proc/sys/vm/overcommit_memory",
    "proc/device-tree/compatible",
    "proc/device-tree/hypervisor/compatible",
    "proc/device-tree/psci/method",
    "proc/sysinfo",
    "sys/bus/cxl/devices/mem0/numa_node",
    "sys/bus/cxl/devices/mem0/ram/size",
    "sys/bus/cxl/devices/region0/resource",
    "sys/class/dmi/id/chassis_type",
    "sys/class/dmi/id/chassis_vendor",
    "sys/class/dmi/id/product_name",
    "sys/class/dmi/id/sys_vendor",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_core/cpus",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
    "sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size",
    "sys/devices/system/cpu/cpu0/cache/index0/level",
    "sys/devices/system/cpu/cpu0/cache/index0/number_of_sets",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_map",
    "sys/devices/system/cpu/cpu0/cache/index0/size",
    "sys/devices/system/cpu/cpu0/cache/index0/type",
    "sys/devices/system/cpu/cpu0/cache/index0/ways_of_associativity",
    "sys/devices/system/cpu/cpu0/cpu_capacity",
    "sys/devices/system/cpu/cpu0/cpufreq/affected_cpus",
    "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu0/topology/cluster_id",
    "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
    "sys/devices/system/cpu/cpu0/topology/core_id",
    "sys/devices/system/cpu/cpu0/topology/die_id",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings",
    "sys/devices/system/cpu/cpu1/online",
    "sys/devices/system/cpu/cpu1/topology/core_cpus_list",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/smt/active",
    "sys/devices/system/memory/block_size_bytes",
    "sys/devices/system/memory/memory0/node0",
    "sys/devices/system/node/has_memory",
    "sys/devices/system/node/node0/access0/initiators/read_latency",
    "sys/devices/system/node/node0/cpulist",
    "sys/devices/system/node/node0/cpumap",
    "sys/devices/system/node/node0/distance",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
    "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "sys/devices/system/node/node0/meminfo",
    "sys/devices/system/node/node0/memory_side_cache/index1/size",
    "sys/devices/system/node/node7/cpulist",
    "sys/devices/system/node/node7/distance",
    "sys/devices/system/node/node7/meminfo",
    "sys/devices/system/node/online",
    "sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
    "sys/firmware/acpi/tables/FACP",
    "sys/firmware/dmi/tables/DMI",
    "sys/fs/cgroup/cpu.max",
    "sys/fs/cgroup/memory.max",
    "sys/kernel/mm/transparent_hugepage/enabled",
];

/// Texts at the edges of the formats.
const NASTY: [&str; 24] = [
    "",
    "\0\0",
    "-1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "0-",
    "-",
    ",",
    "0-8191",
    "0-1:0",
    "[",
    "]",
    "always ] [",
    ":",
    "::",
    "0::/../..\n4:memory:",
    "ffffffff,ffffffff,ffffffff",
    "1 2 3 : / / - cgroup2 cgroup2 rw",
    "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "MemTotal: 18446744073709551615 kB\nMemFree: 18446744073709551615 kB\nMemAvailable: x kB\nNode 0 MemTotal: 1 kB\nNode",
    "processor: 0\nCPU implementer: 0x\nCPU part: 0x41\nprocessor: 4294967295\n: :\nflags:",
    "18446744073709551615K",
];

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => prop::sample::select(NASTY.as_slice()).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => "[0-9a-fkKMG:,. \\n/-]{0,24}".prop_map(String::into_bytes),
    ]
}

proptest! {
    // Each case writes about sixty files.
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(contents in prop::collection::vec(prop::option::of(content()), FILES.len())) {
        let mut tree = Fixture::new();
        for (file, content) in FILES.iter().zip(contents) {
            if let Some(content) = content {
                tree = tree.file(file, content);
            }
        }
        if let Ok(machine) = read_machine(tree.root()) {
            prop_assert!(machine.allowed.cpus.is_subset(&machine.topology.online()));
            for cpu in &machine.topology.cpus {
                prop_assert!(machine.topology.node(cpu.node).is_some());
                prop_assert!(cpu.siblings.contains(cpu.id));
            }
            read_environment(tree.root(), &machine);
            prop_assert!(read_allowed(tree.root(), &machine.topology).cpus.is_subset(&machine.topology.online()));
        }
    }
}

/// A package of `cores` cores with two threads each, in two nodes.
fn package(cores: u32) -> Fixture {
    let (half, all) = (cores / 2, 2 * cores - 1);
    let nodes = [(0, half - 1), (half, cores - 1)].map(|(first, last)| format!("{first}-{last},{}-{}", first + cores, last + cores));
    let mut tree = Fixture::new().cpus(2 * cores).node(0, &nodes[0], 1 << 20).node(1, &nodes[1], 1 << 20);
    tree = tree.file("proc/cpuinfo", "processor: 0\nvendor_id: GenuineIntel\nflags: lm\n");
    let whole = format!("0-{all}");
    for cpu in 0..2 * cores {
        let pair = format!("{},{}", cpu % cores, cpu % cores + cores);
        tree = tree.file(&format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"), &pair);
        for (index, level, size, shared) in [(0, "1", "48K", &pair), (1, "2", "2048K", &pair), (2, "3", "512M", &whole)] {
            let at = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{file}");
            tree = tree.file(&at("level"), level).file(&at("type"), "Unified").file(&at("size"), size).file(&at("shared_cpu_list"), shared);
        }
    }
    tree
}

#[test]
fn the_time_to_read_a_machine_grows_with_its_cpus_and_not_with_their_square() {
    let read = |tree: &Fixture| {
        let start = Instant::now();
        let machine = read_machine(tree.root()).unwrap();
        let environment = read_environment(tree.root(), &machine);
        (start.elapsed(), machine, environment)
    };
    let (small, large) = (package(64), package(512));
    let (mut took, machine, environment) = read(&large);
    assert_eq!(machine.allowed.cpus.len(), 1024);
    assert_eq!(machine.topology.caches.len(), 512 + 512 + 1);
    assert_eq!(machine.topology.one_per_core(&machine.topology.online()).len(), 512);
    assert_eq!(environment.limits, []);
    let best_of_small = (0..3).map(|_| read(&small).0).min().unwrap();
    let times = |took: Duration| took.as_secs_f64() / best_of_small.as_secs_f64();
    // Again where other programs keep this machine busy.
    for _ in 0..2 {
        if times(took) >= 24.0 {
            took = took.min(read(&large).0);
        }
    }
    let times = times(took);
    assert!(times < 24.0, "eight times as many CPUs take {times:.1} times as long: {took:?}");
}
