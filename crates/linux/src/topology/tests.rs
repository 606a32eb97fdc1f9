use super::*;
use crate::tests::fixture::Fixture;
use memgauge_model::units::Bytes;

fn ids(list: &str) -> IdSet {
    list.parse().unwrap()
}

#[test]
fn no_cpu_is_an_error_that_says_what_to_do() {
    let tree = Fixture::new().file("sys/devices/system/cpu/online", "0-3");
    let error = read_machine(tree.root()).unwrap_err();
    assert!(matches!(error, TopologyError::NoCpus { .. }));
    let text = error.to_string();
    assert!(text.contains(tree.root().to_str().unwrap()) && text.contains("sys/devices/system/cpu"), "{text}");
    let error = read_machine(&tree.root().join("nowhere")).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn a_kernel_without_numa_has_one_node() {
    let tree = Fixture::new()
        .cpus(2)
        .file("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 4194304 kB\nMemAvailable: 6291456 kB\n")
        .file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8")
        .file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3");
    let machine = read_machine(tree.root()).unwrap();
    let [node] = machine.topology.nodes.as_slice() else { panic!("{:?}", machine.topology.nodes) };
    assert_eq!((node.id, node.cpus.clone(), node.memory, node.free), (0, ids("0-1"), Some(Bytes::gib(8)), Some(Bytes::gib(4))));
    assert_eq!((node.pools[0].page, node.pools[0].total, node.pools[0].free), (Bytes::mib(2), 8, 3));
    assert_eq!(machine.allowed.nodes, ids("0"));
    assert_eq!(machine.topology.cpus[1].node, 0);
}

#[test]
fn sets_fall_back_to_folders_and_masks() {
    let tree = Fixture::new().files(&[
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings", "00000000,00000005"),
        ("sys/devices/system/cpu/cpu2/online", "1"),
        ("sys/devices/system/cpu/cpu7/online", "0"),
        ("sys/devices/system/cpu/cpu2/topology/physical_package_id", "-1"),
        ("sys/devices/system/cpu/cpu2/topology/cluster_id", "65535"),
        ("sys/devices/system/cpu/cpufreq/x", ""),
        ("sys/devices/system/node/node3/cpumap", "1"),
        ("sys/devices/system/node/node5/cpu2", ""),
        ("sys/devices/system/node/node3/distance", "10 21"),
        ("sys/devices/system/node/node5/distance", "21 10"),
    ]);
    let topology = read_machine(tree.root()).unwrap().topology;
    assert_eq!(topology.online(), ids("0,2"));
    assert_eq!(topology.offline, ids("7"));
    assert_eq!(topology.cpus[1].siblings, ids("0,2"));
    assert_eq!((topology.cpus[1].package, topology.cpus[1].cluster, topology.cpus[1].node), (0, None, 5));
    assert_eq!(topology.node(3).unwrap().cpus, ids("0"));
    assert_eq!(topology.node(5).unwrap().distances, [(3, 21), (5, 10)].into());
    assert_eq!(topology.smt_active, None);
}

#[test]
fn caches_appear_once_and_keep_to_online_cpus() {
    let mut tree = Fixture::new().cpus(4).file("sys/devices/system/cpu/online", "0-2");
    for cpu in 0..4 {
        let pair = if cpu < 2 { "0-1" } else { "2-3" };
        for (index, level, kind, size, shared) in [
            (0, 1, "Data", "48K", pair),
            (1, 1, "Instruction", "32K", pair),
            (2, 2, "Unified", "1280K", pair),
            (3, 3, "Unified", "", "0-3"),
        ] {
            let at = |file: &str| format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{file}");
            tree = tree
                .file(&at("level"), level.to_string())
                .file(&at("type"), kind)
                .file(&at("shared_cpu_list"), shared)
                .file(&at("coherency_line_size"), "64")
                .file(&at("ways_of_associativity"), "12")
                .file(&at("number_of_sets"), "32768");
            if !size.is_empty() {
                tree = tree.file(&at("size"), size);
            }
        }
    }
    let topology = read_machine(tree.root()).unwrap().topology;
    let seen: Vec<(u8, Bytes, String)> = topology.caches.iter().map(|c| (c.level, c.size, c.cpus.to_string())).collect();
    let expected = [
        (1, Bytes::kib(48), "0-1"),
        (1, Bytes::kib(48), "2"),
        (2, Bytes::kib(1280), "0-1"),
        (2, Bytes::kib(1280), "2"),
        // The size follows from the geometry.
        (3, Bytes::mib(24), "0-2"),
    ];
    assert_eq!(seen, expected.map(|(level, size, cpus)| (level, size, cpus.to_owned())));
}

#[test]
fn attributes_of_memory() {
    let tree = Fixture::new().cpus(2).node(0, "0-1", 4096).node(4, "", 2048).files(&[
        ("sys/devices/system/node/online", "0,4"),
        ("sys/devices/system/node/node4/access0/initiators/node0/x", ""),
        ("sys/devices/system/node/node4/access0/initiators/read_latency", "170"),
        ("sys/devices/system/node/node4/access0/initiators/read_bandwidth", "65536"),
        ("sys/devices/system/node/node4/access0/initiators/write_bandwidth", "0"),
        ("sys/devices/system/node/node4/memory_side_cache/index1/size", "4294967296"),
        ("sys/devices/system/node/node4/memory_side_cache/index1/line_size", "64"),
        ("sys/devices/system/node/node4/hugepages/hugepages-1048576kB/nr_hugepages", "2"),
        ("sys/devices/system/node/node4/hugepages/hugepages-1048576kB/free_hugepages", "1"),
        ("sys/devices/system/node/node4/hugepages/hugepages-2048kB/nr_hugepages", "9"),
        ("sys/devices/system/node/node4/hugepages/hugepages-2048kB/free_hugepages", "9"),
    ]);
    let machine = read_machine(tree.root()).unwrap();
    let node = machine.topology.node(4).unwrap();
    assert!(node.cpus.is_empty());
    let [access] = node.hmat.as_slice() else { panic!("{:?}", node.hmat) };
    assert_eq!((access.class, access.initiators.clone(), access.read_latency_ns), (0, ids("0"), Some(170)));
    assert_eq!((access.read_bandwidth_mbs, access.write_bandwidth_mbs, access.write_latency_ns), (Some(65_536), None, None));
    assert_eq!((node.memory_side_caches[0].size, node.memory_side_caches[0].line), (Bytes::gib(4), Some(64)));
    assert_eq!(node.pools.iter().map(|p| (p.page, p.free)).collect::<Vec<_>>(), [(Bytes::mib(2), 9), (Bytes::gib(1), 1)]);
    assert_eq!(machine.allowed.nodes, ids("0,4"));
}

#[test]
fn memory_that_nothing_states_is_not_known_and_accuses_nobody() {
    let node = "sys/devices/system/node";
    let tree = || Fixture::new().cpus(2).file(&format!("{node}/node0/cpulist"), "0-1").file(&format!("{node}/node0/distance"), "10");
    let read = |tree: &Fixture| {
        let machine = read_machine(tree.root()).unwrap();
        let notes = crate::environment::read_environment(tree.root(), &machine).limits.into_iter().map(|n| n.code.word().to_owned());
        // These recordings say nothing of a hypervisor either.
        (machine, notes.filter(|code| code != "hypervisor-not-known").collect::<Vec<String>>())
    };
    let (machine, notes) = read(&tree());
    assert_eq!((machine.topology.nodes[0].memory, machine.topology.nodes[0].free, machine.allowed.memory), (None, None, None));
    assert_eq!(machine.allowed.nodes, ids("0"), "a node is not taken away because a file is missing");
    assert_eq!(machine.allowed.memory_limited_by, "/sys/devices/system/node/node0/meminfo and /proc/meminfo are missing");
    assert_eq!(notes, ["memory-not-known"]);
    // The only node has all of the memory.
    let (machine, notes) = read(&tree().file("proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 4194304 kB\nMemAvailable: 6291456 kB\n"));
    assert_eq!(machine.topology.nodes[0].memory, Some(Bytes::gib(8)));
    assert!(machine.allowed.memory.is_some() && machine.allowed.node_memory.contains_key(&0) && notes.is_empty(), "{notes:?}");
    // Two nodes; one of them states nothing.
    let two = tree()
        .file(&format!("{node}/node0/cpulist"), "0")
        .node(1, "1", 4096)
        .file("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB\n");
    let (machine, notes) = read(&two);
    assert_eq!((machine.topology.nodes[0].memory, machine.allowed.nodes.clone()), (None, ids("0-1")));
    assert!(machine.allowed.memory_limited_by.contains("MemAvailable"), "{}", machine.allowed.memory_limited_by);
    assert_eq!(machine.allowed.node_memory.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(notes, ["memory-not-known"]);
    // The kernel says which nodes have memory.
    let (machine, _) = read(&two.file(&format!("{node}/has_memory"), "1"));
    assert_eq!((machine.topology.nodes[0].memory, machine.allowed.nodes.clone()), (Some(Bytes(0)), ids("1")));
}

#[test]
fn a_node_without_memory_is_listed_but_not_allowed() {
    let tree = Fixture::new().cpus(2).node(0, "0", 4096).node(1, "1", 0);
    let machine = read_machine(tree.root()).unwrap();
    assert_eq!(machine.topology.node(1).map(|n| (n.cpus.clone(), n.memory)), Some((ids("1"), Some(Bytes(0)))));
    assert_eq!((machine.topology.cpus[1].node, machine.allowed.nodes), (1, ids("0")));
    assert_eq!(machine.allowed.node_memory.len(), 1);
}

#[test]
fn kinds_of_cores() {
    let kinds =
        |tree: &Fixture| -> Vec<Option<String>> { read_machine(tree.root()).unwrap().topology.cpus.into_iter().map(|c| c.kind).collect() };
    let plain = Fixture::new().cpus(2);
    assert_eq!(kinds(&plain), [None, None]);
    let intel = Fixture::new().cpus(3).file("sys/devices/cpu_core/cpus", "0-1").file("sys/devices/cpu_atom/cpus", "2");
    assert_eq!(kinds(&intel)[1..], [Some("performance".into()), Some("efficiency".into())]);
    // A hybrid with only one kind online has no kinds.
    let half = Fixture::new().cpus(1).file("sys/devices/cpu_core/cpus", "0").file("sys/devices/cpu_atom/cpus", "");
    assert_eq!(kinds(&half), [None]);
    // Meteor Lake: the last efficiency cores are on another die, without the L3 of all others. If no efficiency core has one, they are alike.
    let cache = |tree: Fixture, level: &str, cpus: &str, size: &str, of: &[u32]| {
        of.iter().fold(tree, |tree, id| {
            let folder = format!("sys/devices/system/cpu/cpu{id}/cache/index{level}");
            let file = |name: &str| format!("{folder}/{name}");
            tree.files(&[(&file("level"), level), (&file("type"), "Unified"), (&file("size"), size), (&file("shared_cpu_list"), cpus)])
        })
    };
    let l3 = |tree: Fixture, cpus: &str, size: &str, of: &[u32]| cache(tree, "3", cpus, size, of);
    let with_l1 =
        |tree: Fixture, sizes: [&str; 4]| (0..4).fold(tree, |tree, id| cache(tree, "1", &id.to_string(), sizes[id as usize], &[id]));
    let bare = || Fixture::new().cpus(4).file("sys/devices/cpu_core/cpus", "0-1").file("sys/devices/cpu_atom/cpus", "2-3");
    let atoms = || with_l1(bare(), ["48K", "48K", "32K", "32K"]);
    let named = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
    let lpe = named(&["performance", "performance", "efficiency", "low-power"]);
    assert_eq!(kinds(&l3(atoms(), "0-2", "24576K", &[0, 1, 2])), lpe);
    let alike = named(&["performance", "performance", "efficiency", "efficiency"]);
    assert_eq!(kinds(&l3(atoms(), "0-1", "12288K", &[0, 1])), alike);
    assert_eq!(kinds(&atoms()), alike, "no L3 is known");
    assert_eq!(kinds(&l3(bare(), "0-2", "24576K", &[0, 1, 2])), alike, "nothing is known of the last one");
    // Without the PMUs, by the first-level caches.
    let intel = || Fixture::new().cpus(4).file("proc/cpuinfo", "processor: 0\nvendor_id: GenuineIntel\nflags: lm\n");
    let unnamed = l3(with_l1(intel(), ["48K", "48K", "32K", "32K"]), "0-2", "24576K", &[0, 1, 2]);
    assert_eq!(kinds(&unnamed), named(&["l1d-48k", "l1d-48k", "l1d-32k", "l1d-32k-without-l3"]));
    // AMD: L3s of two sizes and frequencies together.
    let amd = |sizes: [&str; 2], mhz: [u32; 4]| {
        let info = "processor: 0\nvendor_id: AuthenticAMD\nflags: lm\n";
        let tree = l3(l3(Fixture::new().cpus(4).file("proc/cpuinfo", info), "0-1", sizes[0], &[0, 1]), "2-3", sizes[1], &[2, 3]);
        (0..4).fold(tree, |tree, id| {
            tree.file(&format!("sys/devices/system/cpu/cpu{id}/cpufreq/cpuinfo_max_freq"), (mhz[id] * 1000).to_string())
        })
    };
    assert_eq!(kinds(&amd(["16384K", "8192K"], [5100, 5000, 3300, 3300])), alike, "Zen 5 and Zen 5c");
    let stacked = named(&["l3-96m", "l3-96m", "l3-32m", "l3-32m"]);
    assert_eq!(kinds(&amd(["98304K", "32768K"], [5250, 5250, 5750, 5700])), stacked);
    assert_eq!(kinds(&amd(["16384K", "8192K"], [5100, 5000, 5050, 5000])), [None, None, None, None], "sizes alone");
    assert_eq!(kinds(&amd(["32768K", "32768K"], [5700, 5700, 5200, 5200])), [None, None, None, None], "favoured cores");
    let arm = Fixture::new().cpus(2).file(
        "proc/cpuinfo",
        "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xfff\n",
    );
    assert_eq!(kinds(&arm), [Some("cortex-a55".into()), Some("part-0xfff".into())]);
    let unnamed = Fixture::new()
        .cpus(2)
        .file("sys/devices/system/cpu/cpu0/cpu_capacity", "446")
        .file("sys/devices/system/cpu/cpu1/cpu_capacity", "1024");
    assert_eq!(kinds(&unnamed), [Some("capacity-446".into()), Some("capacity-1024".into())]);
}

#[test]
fn identities() {
    let identity = |cpuinfo: &str, more: &[(&str, &str)]| {
        let tree = Fixture::new().cpus(1).file("proc/cpuinfo", cpuinfo).files(more);
        read_machine(tree.root()).unwrap().identity
    };
    let x86 = "processor: 0\nvendor_id : GenuineIntel\ncpu family: 6\nmodel : 143\nmodel name: Xeon  8480+ \nstepping: 8\nmicrocode: 0x2b\nflags : lm sse2";
    let intel = identity(x86, &[("proc/version", "Linux version 6.1.0-13-amd64 (a@b)")]);
    assert_eq!((intel.arch.as_str(), intel.vendor.as_deref()), ("x86_64", Some("GenuineIntel")));
    assert_eq!((intel.model_name.as_deref(), intel.kernel.as_deref()), (Some("Xeon 8480+"), Some("6.1.0-13-amd64")));
    assert_eq!((intel.model["model"].as_str(), intel.model["microcode"].as_str()), ("143", "0x2b"));
    assert_eq!(intel.hypervisor, None);

    let guest = format!("{x86} hypervisor");
    assert_eq!(identity(&guest, &[]).hypervisor.as_deref(), Some("unknown hypervisor"));
    let clock = ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock");
    let qemu = ("sys/class/dmi/id/sys_vendor", "QEMU");
    // The CPU does not show a hypervisor, but firmware does.
    assert_eq!(identity(x86, &[qemu]).hypervisor.as_deref(), Some("QEMU"));
    assert_eq!(
        identity(x86, &[("sys/class/dmi/id/sys_vendor", "Google"), ("sys/class/dmi/id/product_name", "Google Compute Engine")]).hypervisor,
        None
    );
    assert_eq!(identity(&guest, &[clock]).hypervisor.as_deref(), Some("KVM"));
    assert_eq!(identity(&guest, &[qemu]).hypervisor.as_deref(), Some("QEMU"));
    assert_eq!(identity(&guest, &[qemu, clock]).hypervisor.as_deref(), Some("QEMU/KVM"));
    assert_eq!(
        identity(&guest, &[("sys/firmware/acpi/tables/FACP", "FACP....xxFIRECKFCVMFADT")]).hypervisor.as_deref(),
        Some("Firecracker")
    );
    assert_eq!(identity(x86, &[("sys/hypervisor/type", "xen")]).hypervisor.as_deref(), Some("Xen"));

    let ec2 = "processor: 0\nCPU implementer: 0x41\nCPU architecture: 8\nCPU variant: 0x0\nCPU part: 0xd4f\nCPU revision: 1";
    let product = "sys/class/dmi/id/product_name";
    let arm = identity(ec2, &[("sys/class/dmi/id/sys_vendor", "Amazon EC2"), (product, "r8g.large")]);
    assert_eq!((arm.arch.as_str(), arm.vendor.as_deref(), arm.model_name.as_deref()), ("aarch64", Some("ARM"), Some("Neoverse-V2")));
    assert_eq!(arm.hypervisor.as_deref(), Some("Amazon EC2 (Nitro)"));
    assert_eq!(arm.firmware["product_name"], "r8g.large");
    assert_eq!(identity(ec2, &[("sys/class/dmi/id/sys_vendor", "Amazon EC2"), (product, "r8g.metal-24xl")]).hypervisor, None);

    let riscv = identity("processor : 0\nhart: 0\nisa : rv64imafdc\nuarch : sifive,u74-mc\nmvendorid: 0x489", &[]);
    assert_eq!(
        (riscv.arch.as_str(), riscv.model_name.as_deref(), riscv.vendor.as_deref()),
        ("riscv64", Some("sifive,u74-mc"), Some("SiFive"))
    );
    let unlisted = identity("processor : 0\nhart: 0\nisa : rv64imafdc\nmvendorid: 0x1234", &[]);
    assert_eq!(unlisted.vendor.as_deref(), Some("mvendorid 0x1234"));
    let loongson = identity("system type : generic\n\nprocessor : 0\nCPU Family : Loongson-64bit\nModel Name : Loongson-3C5000L", &[]);
    assert_eq!((loongson.arch.as_str(), loongson.model_name.as_deref()), ("loongarch64", Some("Loongson-3C5000L")));
    assert_eq!(identity("", &[]).arch, "unknown");
}

#[test]
fn cpusets_of_recordings() {
    let machine = |tree: Fixture| {
        let allowed = read_machine(tree.root()).unwrap().allowed;
        (allowed.cpus, allowed.nodes)
    };
    let base = || Fixture::new().cpus(4).node(0, "0-1", 1024).node(1, "2-3", 1024);
    assert_eq!(machine(base()), (ids("0-3"), ids("0-1")));
    let status = base().file("proc/self/status", "Cpus_allowed_list:\t1-2,9\nMems_allowed_list:\t1,7\n");
    assert_eq!(machine(status), (ids("1-2"), ids("1")));
    let v2 = base().files(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        ("proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/a/cpuset.cpus.effective", "3"),
        ("sys/fs/cgroup/a/b/cpuset.cpus.effective", ""),
        ("sys/fs/cgroup/a/b/cpuset.mems.effective", "0"),
    ]);
    assert_eq!(machine(v2), (ids("3"), ids("0")));
    let old = base().files(&[
        ("proc/self/cpuset", "/jobs\n"),
        ("proc/mounts", "none /dev/cpuset cpuset rw 0 0\n"),
        ("dev/cpuset/jobs/cpus", "0-1"),
        ("dev/cpuset/jobs/mems", "1"),
    ]);
    assert_eq!(machine(old), (ids("0-1"), ids("1")));
}

#[test]
fn a_changed_cpuset_is_noticed() {
    let tree = Fixture::new().cpus(4).node(0, "0-3", 1024).file("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    let topology = read_machine(tree.root()).unwrap().topology;
    assert_eq!(cpu::read_allowed(tree.root(), &topology).cpus, ids("0-3"));
    let tree = tree.file("proc/self/status", "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t5\n");
    assert_eq!(cpu::read_allowed(tree.root(), &topology), cpu::AllowedSets { cpus: ids("0-1"), ..Default::default() });
    let tree = tree.file("sys/devices/system/cpu/online", "1-3");
    assert_eq!(cpu::read_allowed(tree.root(), &topology).cpus, ids("1"));
}

/// `isolcpus=2-5` on two nodes of four CPUs: every process starts with the affinity 0-1,6-7, unless `taskset` sets another one. With
/// `isolcpus=2-7`, the second node has only isolated CPUs.
#[test]
fn isolated_cpus_may_be_used_unless_the_affinity_was_chosen() {
    let machine = |isolated: &str, affinity: &str, cpuset: Option<&str>| {
        let tree = Fixture::new().cpus(8).node(0, "0-3", 1024).node(1, "4-7", 1024).files(&[
            ("sys/devices/system/cpu/isolated", isolated),
            ("proc/self/status", &format!("Cpus_allowed_list:\t{affinity}\n")),
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ]);
        let tree = if let Some(cpus) = cpuset { tree.file("sys/fs/cgroup/a/cpuset.cpus.effective", cpus) } else { tree };
        let machine = read_machine(tree.root()).unwrap();
        (machine.allowed.cpus.to_string(), machine.allowed.isolated.to_string(), machine.default_cpus().to_string())
    };
    let sets = |all: &str, isolated: &str, default: &str| (all.to_owned(), isolated.to_owned(), default.to_owned());
    assert_eq!(machine("2-5", "0-1,6-7", None), sets("0-7", "2-5", "0-1,6-7"));
    assert_eq!(machine("2-7", "0-1", None), sets("0-7", "2-7", "0-1,4-7"), "a node without others");
    assert_eq!(machine("2-5", "0-1,6-7", Some("0-3,6-7")), sets("0-3,6-7", "2-3", "0-1,6-7"), "the cpuset leaves out 4-5");
    assert_eq!(machine("2-5", "0-1", None), sets("0-1", "", "0-1"), "taskset -c 0-1");
    assert_eq!(machine("2-5", "1-2", None), sets("1-2", "", "1-2"), "taskset -c 1-2");
    assert_eq!(machine("", "0-7", None), sets("0-7", "", "0-7"));
}

/// The beginning of the file ends within a block, at each place of the last lines in turn.
#[test]
fn a_value_that_is_cut_is_no_other_value() {
    let block = |cpu: u32, padding: usize| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: X\nstepping\t: 8\nmicrocode\t: 0x2b0005c0\nflags\t\t: {}\n\n",
            "x".repeat(1500 + padding)
        )
    };
    for padding in 0..180 {
        let text: String = (0..40).map(|cpu| block(cpu, padding)).collect();
        let tree = Fixture::new().cpus(1).file("proc/cpuinfo", &text);
        let identity = read_machine(tree.root()).unwrap().identity;
        let of = |key: &str| identity.model.get(key).map(String::as_str);
        assert_eq!((of("family"), of("model"), of("stepping"), of("microcode")), (Some("6"), Some("143"), Some("8"), Some("0x2b0005c0")));
    }
}

#[test]
fn the_list_of_online_cpus_is_not_believed_against_their_own_files() {
    let tree = Fixture::new()
        .cpus(4)
        .file("sys/devices/system/cpu/online", "0")
        .files(&[("sys/devices/system/cpu/cpu1/online", "1"), ("sys/devices/system/cpu/cpu2/online", "0")]);
    let topology = read_machine(tree.root()).unwrap().topology;
    assert_eq!((topology.online(), topology.offline), (ids("0-1"), ids("2-3")));
}

#[test]
fn processors_that_a_container_numbers_anew_name_no_cpus_design() {
    let block = |id: u32, part: &str| format!("processor: {id}\nCPU implementer: 0x41\nCPU architecture: 8\nCPU part: {part}\n\n");
    let kinds = |parts: [&str; 2], mounts: &str| {
        let tree = Fixture::new()
            .cpus(2)
            .file("proc/cpuinfo", [block(0, parts[0]), block(1, parts[1])].concat())
            .file("proc/self/mountinfo", mounts);
        read_machine(tree.root()).unwrap().topology.cpus.iter().map(|c| c.kind.clone()).collect::<Vec<_>>()
    };
    let lxcfs = "30 20 0:40 /proc/cpuinfo /proc/cpuinfo rw - fuse.lxcfs lxcfs rw\n";
    assert_eq!(kinds(["0xd0b", "0xd05"], ""), [Some("cortex-a76".to_owned()), Some("cortex-a55".to_owned())]);
    assert_eq!(kinds(["0xd0b", "0xd05"], lxcfs), [None, None]);
}

#[test]
fn what_nothing_says_of_a_hypervisor_is_not_known() {
    let found = |files: &[(&str, &str)]| {
        let identity = read_machine(Fixture::new().cpus(1).files(files).root()).unwrap().identity;
        match identity.is_virtual() {
            Some(true) => identity.hypervisor.unwrap(),
            Some(false) => "metal".to_owned(),
            None => "not known".to_owned(),
        }
    };
    let arm = ("proc/cpuinfo", "processor: 0\nCPU implementer: 0x41\nCPU architecture: 8\nCPU part: 0xd0c\n");
    let dmi = |field: &str| format!("sys/class/dmi/id/{field}");
    let [vendor, product, chassis, shape] = ["sys_vendor", "product_name", "chassis_vendor", "chassis_type"].map(dmi);
    let on_arm = |files: &[(&str, &str)]| found(&[&[arm], files].concat());

    assert_eq!(on_arm(&[]), "not known");
    for (maker, name) in [("Hetzner", "vServer"), ("KubeVirt", "None"), ("Tencent Cloud", "CVM"), ("Scaleway", "SCW-COPARM1-2C-8G")] {
        assert_eq!(on_arm(&[(&vendor, maker), (&product, name)]), "KVM", "{maker}");
    }
    assert_eq!(on_arm(&[(&vendor, "Somebody's Cloud"), (&chassis, "QEMU"), (&shape, "1")]), "QEMU");
    assert_eq!(on_arm(&[(&vendor, "Somebody's Cloud"), (&shape, "1")]), "not known", "as hypervisors state chassis");
    assert_eq!(on_arm(&[(&vendor, "GIGABYTE"), (&shape, "23")]), "metal");
    assert_eq!(on_arm(&[(&vendor, "Microsoft Corporation"), (&product, "Virtual Machine"), (&shape, "3")]), "Microsoft Hyper-V");
    // Firmware's own table, which root may read, says that it is a guest's: a BIOS structure of 24 bytes with the bit, and no strings.
    let mut table = vec![0u8; 26];
    (table[1], table[0x13]) = (24, 0x10);
    let tree = Fixture::new().cpus(1).files(&[arm]).file("sys/firmware/dmi/tables/DMI", table);
    let stated = read_machine(tree.root()).unwrap().identity;
    assert_eq!((stated.is_virtual(), stated.hypervisor_for_all()), (Some(true), Some("not known")), "users cannot read it");

    // A CPU that hides the hypervisor, and a device that only one has: VirtualBox's, as util-linux recorded it.
    let x86 = ("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme\n");
    let devices = |id: &str| format!("0000\t80861237\t0\t 0\n0010\t{id}\tb\t e0000008\n");
    for (id, name) in [("80eebeef", "VirtualBox"), ("15ad0405", "VMware"), ("1af41000", "metal")] {
        assert_eq!(found(&[x86, ("proc/bus/pci/devices", &devices(id))]), name, "{id}");
    }

    // Without DMI, the device tree.
    for folder in ["proc/device-tree", "sys/firmware/devicetree/base"] {
        let at = |file: &str| format!("{folder}/{file}");
        let [board, method, hypervisor] = ["compatible", "psci/method", "hypervisor/compatible"].map(at);
        assert_eq!(on_arm(&[(&board, "linux,dummy-virt\0"), (&method, "hvc\0")]), "unknown hypervisor");
        assert_eq!(on_arm(&[(&board, "linux,dummy-virt\0"), (&method, "smc\0")]), "unknown hypervisor");
        assert_eq!(on_arm(&[(&board, "acme,phone\0"), (&method, "hvc\0")]), "unknown hypervisor");
        assert_eq!(on_arm(&[(&board, "raspberrypi,5-model-b\0brcm,bcm2712\0"), (&method, "smc\0")]), "metal");
        assert_eq!(on_arm(&[(&board, "raspberrypi,4-model-b\0brcm,bcm2711\0")]), "metal", "CPUs that spin");
        assert_eq!(on_arm(&[(&hypervisor, "xen,xen-4.17\0xen,xen\0"), (&board, "xen,xenvm-4.17\0")]), "Xen");
        let riscv = ("proc/cpuinfo", "processor : 0\nhart: 0\nisa : rv64imafdc\n");
        assert_eq!(found(&[riscv, (&board, "riscv-virtio\0")]), "QEMU");
        assert_eq!(found(&[riscv, (&board, "sifive,hifive-unmatched-a00\0")]), "metal");
        assert_eq!(found(&[riscv]), "not known");
    }

    // x86 whose flags are hidden.
    let clock = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    assert_eq!(found(&[]), "not known");
    assert_eq!(found(&[(clock, "tsc kvm-clock ")]), "KVM");
    assert_eq!(found(&[(&vendor, "Dell Inc."), (&shape, "23")]), "metal");
    assert_eq!(found(&[(&vendor, "Amazon EC2"), (&product, "c5.metal")]), "metal");

    let mainframe = ("proc/cpuinfo", "vendor_id : IBM/S390\nfeatures : esan3\nprocessor 0: version = FF, machine = 8561\n");
    let sysinfo = |text: &str| found(&[mainframe, ("proc/sysinfo", text)]);
    assert_eq!(sysinfo("Manufacturer: IBM\nLPAR Name: A\nVM00 Name: guest\nVM00 Control Program: KVM/Linux\n"), "KVM");
    assert_eq!(sysinfo("Manufacturer: IBM\nVM00 Control Program: z/VM    7.2.0\n"), "z/VM");
    assert_eq!(sysinfo("Manufacturer: IBM\nLPAR Name: A\n"), "PR/SM");
    assert_eq!(found(&[mainframe]), "not known");

    let power = |rest: &str| found(&[("proc/cpuinfo", &format!("processor: 0\ncpu: POWER9 (architected)\n\n{rest}"))]);
    assert_eq!(power("platform: PowerNV\nmachine: PowerNV 8335-GTH\n"), "metal");
    assert_eq!(power("platform: pSeries\nmachine: CHRP IBM,9009-22A\n"), "PowerVM");
    assert_eq!(power("platform: pSeries\nmachine: CHRP IBM pSeries (emulated by qemu)\n"), "QEMU");
    assert_eq!(power(""), "not known");
}

#[test]
fn cores_without_a_name_have_their_makers_and_numbers() {
    let named = |cores: &[(&str, &str)]| {
        let blocks = cores
            .iter()
            .enumerate()
            .map(|(id, (maker, part))| format!("processor: {id}\nCPU implementer: {maker}\nCPU architecture: 8\nCPU part: {part}\n\n"));
        read_machine(Fixture::new().cpus(1).file("proc/cpuinfo", blocks.collect::<String>()).root()).unwrap().identity.model_name.unwrap()
    };
    assert_eq!(named(&[("0x41", "0xd42")]), "Cortex-A78AE");
    assert_eq!(named(&[("0x6d", "0xd49")]), "Azure-Cobalt-100");
    assert_eq!(named(&[("0x51", "0x001")]), "Oryon");
    assert_eq!(named(&[("0x41", "0xfff"), ("0x41", "0xfff")]), "ARM part 0xfff");
    assert_eq!(named(&[("0x77", "0x001"), ("0x41", "0xd03")]), "implementer 0x77 part 0x001 + Cortex-A53");
}

#[test]
fn an_empty_revision_of_microcode_is_left_out() {
    let tree = Fixture::new().cpus(1).file("sys/devices/system/cpu/cpu0/microcode/version", "\n");
    assert_eq!(read_machine(tree.root()).unwrap().identity.model, Default::default());
}
