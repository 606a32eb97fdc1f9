//! Recorded machines: the topology agrees with `lscpu` and with the known facts about each machine.
//!
//! Archives (one folder with `sys/` and `proc/` each) are those of `tests/machines`, `NAME.tar.gz`, and those of the folder that
//! `MEMGAUGE_MACHINES` names, `NAME.tar.bz2`, such as hwloc's `tests/hwloc/linux`. Without that variable, without `tar` for its archives,
//! or without `lscpu`, these tests say what they skip.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test reports by panics and by what it prints")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use memgauge_linux::environment::read_environment;
use memgauge_linux::topology::read_machine;
use memgauge_model::experiment::PageRequest;
use memgauge_model::note::Note;
use memgauge_model::spec::{BandwidthShape, LatencyShape, Spec, Task};
use memgauge_model::tiers::{self, MemoryKind};
use memgauge_model::topology::{Machine, Node, NodeDeviceKind, Topology};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_planner::plan;
use memgauge_testing::{not_tested, not_tested_in_part};

/// Ending of the archives of `tests/machines`.
const OURS: &str = ".tar.gz";
/// Ending of archives that others recorded.
const THEIRS: &str = ".tar.bz2";

/// An unpacked archive.
struct Recording {
    /// Removed when this is dropped.
    own: Option<PathBuf>,
    root: PathBuf,
}

impl Recording {
    fn unpack(archive: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let ours = archive.to_string_lossy().ends_with(OURS);
        let folder = if ours {
            memgauge_testing::unpacked(archive, tests).unwrap()
        } else {
            let folder = tests.join(format!("machine-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
            std::fs::create_dir_all(&folder).unwrap();
            unpack_parts(archive, &folder);
            folder
        };
        let root = folder.read_dir().unwrap().next().unwrap_or_else(|| panic!("nothing came out of {}", archive.display()));
        Self { root: root.unwrap().path(), own: (!ours).then_some(folder) }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(own) = &self.own {
            let _ = std::fs::remove_dir_all(own);
        }
    }
}

/// Others' archives hold all of `sys/`.
fn unpack_parts(archive: &Path, folder: &Path) {
    // tar reports patterns that match nothing, which is fine here. Only the unpacked files matter.
    let patterns = [
        "*/sys/devices/system",
        "*/sys/devices/cpu_*",
        "*/sys/bus/dax",
        "*/sys/devices/*/dax*",
        "*/sys/class/dmi",
        "*/sys/fs/cgroup",
        "*/sys/kernel/mm",
        "*/proc",
        "*/dev/cpuset",
    ];
    let mut tar = Command::new("tar");
    tar.arg("-xjf").arg(archive).arg("-C").arg(folder).arg("--wildcards").args(patterns).stderr(Stdio::null()).status().unwrap();
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The archives in a folder, by name.
fn archives(folder: &Path, ending: &str) -> BTreeMap<String, PathBuf> {
    let entries = folder.read_dir().unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let archives: BTreeMap<String, PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter_map(|path| Some((path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned(), path)))
        .collect();
    assert!(!archives.is_empty(), "{} holds no archive *{ending}", folder.display());
    archives
}

/// Others' archives, or why they cannot be used here.
fn archives_of_others() -> Result<BTreeMap<String, PathBuf>, &'static str> {
    let folder = std::env::var_os("MEMGAUGE_MACHINES").ok_or("MEMGAUGE_MACHINES names no folder of machines that others recorded")?;
    if !installed("tar") {
        return Err("tar is not installed");
    }
    // A wrong value of the variable is a mistake, and no reason.
    Ok(archives(Path::new(&folder), THEIRS))
}

fn ids(list: &str) -> IdSet {
    list.parse().unwrap()
}

fn lscpu(root: &Path, arguments: &[&str]) -> String {
    let output = Command::new("lscpu").env("LC_ALL", "C").arg("-s").arg(root).args(arguments).output().unwrap();
    assert!(output.status.success(), "lscpu {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `lscpu -p=columns`: the names of its columns, and its rows by CPU.
fn lscpu_rows(root: &Path, columns: &str) -> (Vec<String>, BTreeMap<u32, Vec<String>>) {
    let text = lscpu(root, &[&format!("-p={columns}")]);
    let split = |line: &str| line.split([',', ':']).map(str::to_owned).collect::<Vec<_>>();
    let names = text.lines().rfind(|l| l.starts_with("# CPU")).map(|l| split(l.trim_start_matches("# "))).unwrap();
    let rows = text.lines().filter(|l| !l.starts_with('#')).map(split).map(|row| (row[0].parse().unwrap(), row)).collect();
    (names, rows)
}

/// CPUs in groups, by any key.
fn groups<K: Ord>(pairs: impl IntoIterator<Item = (u32, K)>) -> BTreeSet<IdSet> {
    let mut groups: BTreeMap<K, IdSet> = BTreeMap::new();
    for (cpu, key) in pairs {
        groups.entry(key).or_default().insert(cpu);
    }
    groups.into_values().collect()
}

fn agrees_with_lscpu(root: &Path, topology: &Topology, name: &str) {
    let (_, rows) = lscpu_rows(root, "CPU,CORE,SOCKET");
    assert_eq!(topology.online(), rows.keys().copied().collect(), "{name}: online CPUs");
    let by_column = |column: usize| groups(rows.iter().map(|(cpu, row)| (*cpu, row[column].clone())));
    assert_eq!(groups(topology.cpus.iter().map(|c| (c.id, c.package))), by_column(2), "{name}: packages");
    // lscpu numbers the cores of each design from 0, so its core numbers are not unique on Arm machines with several designs.
    if topology.cpus.iter().all(|c| c.kind.is_none() || c.kind.as_deref() == Some("performance") || c.kind.as_deref() == Some("efficiency"))
    {
        assert_eq!(groups(topology.cpus.iter().map(|c| (c.id, c.siblings.clone()))), by_column(1), "{name}: cores");
    }

    let summary = lscpu(root, &[]);
    let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap();
    let offline = summary.lines().find(|l| l.starts_with("Off-line CPU(s) list")).map_or_else(String::new, value);
    assert_eq!(topology.offline, ids(&offline), "{name}: offline CPUs");
    let nodes: BTreeMap<u32, IdSet> = summary
        .lines()
        .filter_map(|line| {
            let (id, _) = line.strip_prefix("NUMA node")?.split_once(" CPU(s):")?;
            Some((id.parse().ok()?, ids(&value(line))))
        })
        .collect();
    assert_eq!(topology.nodes.iter().map(|n| (n.id, n.cpus.clone())).collect::<BTreeMap<_, _>>(), nodes, "{name}: nodes");
    caches_agree(root, topology, name);
}

fn caches_agree(root: &Path, topology: &Topology, name: &str) {
    let (columns, rows) = lscpu_rows(root, "CPU,CACHE");
    // "L1d", "L1i", "L2" …: all but instruction caches.
    let is_ours = |cache: &str| cache.starts_with('L') && !cache.ends_with('i');
    let level = |cache: &str| cache[1..2].parse::<u8>().unwrap();
    let levels: BTreeSet<u8> = columns.iter().filter(|c| is_ours(c)).map(|c| level(c)).collect();
    assert_eq!(topology.caches.iter().map(|c| c.level).collect::<BTreeSet<_>>(), levels, "{name}: cache levels");
    for (column, cache) in columns.iter().enumerate().filter(|(_, cache)| is_ours(cache)) {
        let theirs = groups(rows.iter().filter(|(_, row)| !row[column].is_empty()).map(|(cpu, row)| (*cpu, row[column].clone())));
        let ours = topology.caches.iter().filter(|c| c.level == level(cache)).map(|c| c.cpus.clone()).collect();
        assert_eq!(theirs, ours, "{name}: who shares {cache}");
    }
    let table = lscpu(root, &["-B", "-C=NAME,ONE-SIZE,ALL-SIZE"]);
    let mut compared = 0;
    for line in table.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [cache, one, all] = words.as_slice() else { panic!("{name}: lscpu -C: {line}") };
        if !is_ours(cache) {
            continue;
        }
        let sizes: Vec<u64> = topology.caches.iter().filter(|c| c.level == level(cache)).map(|c| c.size.0).collect();
        assert!(sizes.contains(&one.parse().unwrap()), "{name}: size of {cache}: {sizes:?}, {one}");
        let (sum, all): (u64, u64) = (sizes.iter().sum(), all.parse().unwrap());
        // lscpu also counts the caches of offline CPUs whose folders still exist.
        if topology.offline.is_empty() {
            assert_eq!(sum, all, "{name}: all {cache}");
        } else {
            assert!(sum <= all, "{name}: all {cache}: {sum}, {all}");
        }
        compared += 1;
    }
    assert_eq!(compared, levels.len(), "{name}: rows of lscpu -C");
}

/// What must be true for every machine.
fn is_consistent(machine: &Machine, name: &str) {
    let Machine { topology, allowed, .. } = machine;
    assert!(allowed.cpus.is_subset(&topology.online()) && !allowed.cpus.is_empty(), "{name}: allowed CPUs {}", allowed.cpus);
    assert!(topology.online().intersection(&topology.offline).is_empty(), "{name}: online and offline");
    assert!(topology.cpus.is_sorted_by_key(|c| c.id) && topology.nodes.is_sorted_by_key(|n| n.id), "{name}: order");
    assert_eq!(allowed.node_memory.keys().copied().collect::<IdSet>(), allowed.nodes, "{name}: memory by node");
    for cpu in &topology.cpus {
        assert!(topology.node(cpu.node).is_some(), "{name}: node of CPU {}", cpu.id);
        assert!(cpu.siblings.contains(cpu.id), "{name}: siblings of CPU {}", cpu.id);
    }
    for node in &topology.nodes {
        assert_eq!(node.distances.get(&node.id), Some(&10), "{name}: distance of node {} to itself", node.id);
        assert_eq!(node.distances.len(), topology.nodes.len(), "{name}: distances of node {}", node.id);
    }
    assert!(!allowed.memory_limited_by.is_empty(), "{name}: memory");
}

/// These machines were recorded while they were mostly idle.
fn has_memory_to_spare(machine: &Machine, name: &str) {
    let Machine { topology, allowed, .. } = machine;
    for (id, bytes) in &allowed.node_memory {
        let node = topology.node(*id).unwrap();
        let memory = node.stated_bytes();
        assert!(bytes.0 < memory && bytes.0 > memory / 4, "{name}: {bytes} on node {id} of {memory}");
    }
    assert!(allowed.memory.is_some_and(|memory| memory.0 > 0), "{name}: memory");
}

type Check = fn(&Machine);

/// Facts about machines: ours, and hwloc's.
const FACTS: [(&str, Check); 9] = [
    ("2p1024c16n", a_thousand_cpus),
    ("memorysidecaches", memory_side_caches),
    ("fakeheteromemtiers", memory_of_several_tiers),
    ("offline-cpu0-node0", offline_cpus_and_an_absent_node),
    ("48amd64-4pa2n6c-sparse", sparse_nodes),
    ("64amd64-4s2n4ca2co", compute_units_share_l2),
    ("16amd64-8n2c-cpusets", a_cpuset_without_local_memory),
    ("20em64t-hybrid-1p6c2t+2ca4co1t", performance_and_efficiency_cores),
    ("nvidia-dgx-gb10", arm_cores_of_two_designs),
];

/// Checks each machine. `more` is an additional check for all of them.
fn check_all(archives: &BTreeMap<String, PathBuf>, more: impl Fn(&Path, &Machine, &str) + Sync) {
    let compare = installed("lscpu");
    if !compare {
        not_tested_in_part!("lscpu is not installed");
    }
    let check = |name: &str, archive: &Path| {
        let recording = Recording::unpack(archive);
        let machine = read_machine(&recording.root).unwrap();
        is_consistent(&machine, name);
        more(&recording.root, &machine, name);
        if compare {
            agrees_with_lscpu(&recording.root, &machine.topology, name);
        }
        if let Some((_, check)) = FACTS.iter().find(|(machine, _)| *machine == name) {
            check(&machine);
        }
    };
    // Unpacking takes the time.
    std::thread::scope(|scope| {
        for (name, archive) in archives {
            let check = &check;
            std::thread::Builder::new().name(name.clone()).spawn_scoped(scope, move || check(name, archive)).unwrap();
        }
    });
}

#[test]
fn recorded_machines() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines");
    let followed = AtomicU32::new(0);
    // Guests are small, so little of their memory may be free.
    check_all(&archives(&folder, OURS), |root, machine, name| {
        followed.fetch_add(every_advice_names_files_that_root_may_write_to(root, machine, name), Ordering::Relaxed);
    });
    let followed = followed.into_inner();
    assert!(followed > 10, "{followed} files were named");
}

#[test]
fn machines_that_others_recorded() {
    match archives_of_others() {
        Ok(archives) => check_all(&archives, |root, machine, name| {
            has_memory_to_spare(machine, name);
            every_advice_names_files_that_root_may_write_to(root, machine, name);
        }),
        Err(why) => not_tested!("{why}"),
    }
}

#[test]
fn this_machine_agrees_with_lscpu() {
    let machine = read_machine(Path::new("/")).unwrap();
    is_consistent(&machine, "this machine");
    assert_eq!(machine.identity.arch, std::env::consts::ARCH);
    assert!(machine.identity.kernel.is_some());
    if !installed("lscpu") {
        not_tested!("lscpu is not installed");
    }
    agrees_with_lscpu(Path::new("/"), &machine.topology, "this machine");
}

fn a_thousand_cpus(machine: &Machine) {
    let (topology, allowed) = (&machine.topology, &machine.allowed);
    assert_eq!((topology.cpus.len(), topology.packages().len(), topology.nodes.len()), (1024, 2, 16));
    assert_eq!(topology.one_per_core(&topology.online()), ids("0-511"));
    assert_eq!((allowed.cpus.clone(), allowed.nodes.clone()), (ids("0-1023"), ids("0-15")));
    let count = |level: u8| topology.caches.iter().filter(|c| c.level == level).count();
    assert_eq!([1, 2, 3].map(count), [512, 512, 64]);
    assert_eq!(
        (topology.last_level_cache(9).unwrap().size, topology.last_level_cache(9).unwrap().cpus.clone()),
        (Bytes::mib(32), ids("8-15,520-527"))
    );
    let node = topology.node(9).unwrap();
    assert_eq!((node.cpus.clone(), node.memory), (ids("288-319,800-831"), Some(Bytes::gib(64))));
    assert_eq!([9, 8, 7].map(|to| node.distances[&to]), [10, 12, 32]);
    assert_eq!(
        node.hmat.iter().map(|h| (h.class, h.initiators.clone(), h.read_latency_ns)).collect::<Vec<_>>(),
        [(0, ids("9"), Some(110)), (1, ids("9"), Some(110)),]
    );
    assert_eq!(
        node.pools.iter().map(|p| (p.page, p.total, p.free)).collect::<Vec<_>>(),
        [(Bytes::mib(2), 8192, 8192), (Bytes::gib(1), 4, 4),]
    );
    assert_eq!(machine.identity.hypervisor, None);
    has_memory_to_spare(machine, "2p1024c16n");
}

fn memory_side_caches(machine: &Machine) {
    let topology = &machine.topology;
    assert_eq!((topology.cpus.len(), topology.packages().len(), topology.nodes.len()), (80, 2, 4));
    assert_eq!(topology.smt_active, Some(true));
    assert_eq!(topology.one_per_core(&topology.online()).len(), 40);
    for node in &topology.nodes {
        let [cache] = node.memory_side_caches.as_slice() else { panic!("node {}: {:?}", node.id, node.memory_side_caches) };
        assert_eq!((cache.level, cache.size, cache.line), (1, Bytes::gib(96), Some(64)));
        let [access] = node.hmat.as_slice() else { panic!("node {}: {:?}", node.id, node.hmat) };
        assert_eq!((access.class, &access.initiators), (0, &IdSet::one(node.id)));
        // Firmware states none of the values, so the kernel shows 0.
        assert_eq!((access.read_latency_ns, access.read_bandwidth_mbs), (None, None));
        assert_eq!(node.cpus, (node.id..80).step_by(4).collect());
        assert_eq!(node.pools.iter().map(|p| p.page).collect::<Vec<_>>(), [Bytes::mib(2), Bytes::gib(1)]);
    }
    assert_eq!(topology.node(0).unwrap().distances, [(0, 10), (1, 21), (2, 11), (3, 21)].into());
    assert_eq!(machine.identity.vendor.as_deref(), Some("GenuineIntel"));
    assert_eq!(machine.identity.kernel.as_deref(), Some("5.3.0-rc7"));
    assert_eq!(machine.identity.model["microcode"], "0x5000021");
    assert_eq!(machine.identity.hypervisor, None);
}

fn memory_of_several_tiers(machine: &Machine) {
    let topology = &machine.topology;
    assert_eq!(topology.cpus.len(), 6);
    assert_eq!(topology.nodes.iter().map(|n| n.id).collect::<IdSet>(), ids("0-2,4,6,8-9"));
    assert_eq!(topology.nodes.iter().filter(|n| n.cpus.is_empty()).map(|n| n.id).collect::<IdSet>(), ids("4,6,8-9"));
    assert!(topology.nodes.iter().all(|n| n.stated_bytes() > 0));
    assert_eq!(machine.allowed.nodes, ids("0-2,4,6,8-9"));
    // The tiers: what firmware states for the best initiators of each node.
    let claims: Vec<(u32, u8, String, Option<u64>)> = topology
        .nodes
        .iter()
        .flat_map(|n| n.hmat.iter().map(|h| (n.id, h.class, h.initiators.to_string(), h.read_bandwidth_mbs)))
        .collect();
    assert!(claims.contains(&(0, 1, "0".into(), Some(1000))), "{claims:?}");
    assert!(claims.contains(&(6, 1, "1".into(), Some(100))), "{claims:?}");
    assert_eq!(claims.len(), 7);
    assert_eq!(topology.node(9).unwrap().distances, [(0, 20), (1, 20), (2, 20), (4, 20), (6, 20), (8, 20), (9, 10)].into());
    assert_eq!(machine.identity.hypervisor.as_deref(), Some("QEMU"));
    // The devices that the driver kmem has; others (node 3, 5, 7) are not memory.
    let devices: Vec<(u32, &str, NodeDeviceKind)> =
        topology.nodes.iter().flat_map(|n| n.devices.iter().map(|d| (n.id, d.name.as_str(), d.kind))).collect();
    let (apart, nvdimm) = (NodeDeviceKind::SpecificPurpose, NodeDeviceKind::Nvdimm);
    assert_eq!(devices, [(2, "dax3.0", apart), (4, "dax1.0", apart), (6, "dax5.0", nvdimm), (8, "dax7.0", nvdimm), (9, "dax8.0", nvdimm)]);
    let kinds: Vec<_> = tiers::kinds(machine).into_iter().map(|k| (k.node, k.kind, k.guessed)).collect();
    use MemoryKind::{Dram, Hbm, Persistent};
    let expected = [(0, Dram, true), (1, Dram, true), (2, Hbm, true), (4, Hbm, true)];
    assert_eq!(kinds[..4], expected);
    assert_eq!(kinds[4..], [6, 8, 9].map(|node| (node, Persistent, false)));
}

fn offline_cpus_and_an_absent_node(machine: &Machine) {
    let topology = &machine.topology;
    assert_eq!(topology.online(), ids("4-20"));
    assert_eq!(topology.offline, ids("0-3,21-23"));
    let [node] = topology.nodes.as_slice() else { panic!("{:?}", topology.nodes) };
    assert_eq!((node.id, node.cpus.clone()), (1, ids("5,7,9,11,13,15,17,19")));
    assert_eq!(node.distances, [(1, 10)].into());
    assert!(topology.cpus.iter().all(|c| c.node == 1), "CPUs of the absent node get the existing one");
    assert!(topology.caches.iter().all(|c| c.cpus.is_subset(&ids("4-20"))));
    assert_eq!(topology.last_level_cache(4).unwrap().cpus, ids("4,6,8,10,12,14,16,18,20"));
    assert_eq!(machine.allowed.nodes, ids("1"));
}

fn sparse_nodes(machine: &Machine) {
    let topology = &machine.topology;
    assert_eq!(topology.nodes.iter().map(|n| n.id).collect::<IdSet>(), ids("0-2,33-34,45,72-73"));
    assert_eq!(topology.packages().len(), 4);
    assert_eq!(topology.cpu(20).unwrap().node, 33);
    // Columns stand for the online nodes in order.
    let distances = [(0, 22), (1, 16), (2, 16), (33, 10), (34, 16), (45, 16), (72, 22), (73, 22)];
    assert_eq!(topology.node(33).unwrap().distances, distances.into());
}

fn compute_units_share_l2(machine: &Machine) {
    let topology = &machine.topology;
    assert_eq!((topology.cpus.len(), topology.packages().len(), topology.nodes.len()), (64, 4, 8));
    for package in topology.packages().iter() {
        let nodes: BTreeSet<u32> = topology.cpus.iter().filter(|c| c.package == package).map(|c| c.node).collect();
        assert_eq!(nodes.len(), 2, "nodes of package {package}");
    }
    let shared: Vec<(u8, usize)> = topology.cpu_caches(10).map(|c| (c.level, c.cpus.len())).collect();
    assert_eq!(shared, [(1, 1), (2, 2), (3, 8)]);
    assert_eq!(machine.identity.model_name.as_deref(), Some("AMD Opteron(TM) Processor 6276"));
}

fn a_cpuset_without_local_memory(machine: &Machine) {
    let (topology, allowed) = (&machine.topology, &machine.allowed);
    assert_eq!(topology.offline, ids("4"));
    // The cpuset holds CPUs 0-6,12-15, of which 4 is offline, and nodes 1-4.
    assert_eq!(allowed.cpus, ids("0-3,5-6,12-15"));
    assert_eq!(allowed.nodes, ids("1-4"));
    let far: IdSet = allowed.cpus.iter().filter(|&id| !allowed.nodes.contains(topology.cpu(id).unwrap().node)).collect();
    assert_eq!(far, ids("0-1,12-15"));
    assert_eq!(topology.nodes.len(), 8);
}

fn performance_and_efficiency_cores(machine: &Machine) {
    let topology = &machine.topology;
    let of_kind = |kind: &str| -> IdSet { topology.cpus.iter().filter(|c| c.kind.as_deref() == Some(kind)).map(|c| c.id).collect() };
    assert_eq!((of_kind("performance"), of_kind("efficiency")), (ids("0-11"), ids("12-19")));
    assert_eq!(topology.one_per_core(&of_kind("performance")).len(), 6);
    assert_eq!(topology.one_per_core(&of_kind("efficiency")).len(), 8);
    let l2 = |cpu: u32| topology.cpu_caches(cpu).find(|c| c.level == 2).map(|c| (c.size, c.cpus.clone())).unwrap();
    assert_eq!(l2(0), (Bytes::kib(1280), ids("0-1")));
    assert_eq!(l2(13), (Bytes::mib(2), ids("12-15")));
    assert_eq!(topology.cpu(12).unwrap().max_mhz, Some(3900));
    assert!(topology.cpu(13).unwrap().cluster.is_some() && topology.cpu(13).unwrap().cluster == topology.cpu(12).unwrap().cluster);
}

fn arm_cores_of_two_designs(machine: &Machine) {
    let topology = &machine.topology;
    let of_kind = |kind: &str| -> IdSet { topology.cpus.iter().filter(|c| c.kind.as_deref() == Some(kind)).map(|c| c.id).collect() };
    assert_eq!((of_kind("cortex-a725"), of_kind("cortex-x925")), (ids("0-4,10-14"), ids("5-9,15-19")));
    assert_eq!(topology.one_per_core(&topology.online()).len(), 20);
    assert_eq!((topology.last_level_cache(3).unwrap().size, topology.last_level_cache(19).unwrap().size), (Bytes::mib(8), Bytes::mib(16)));
    assert_eq!((topology.nodes.len(), topology.packages()), (1, ids("36")));
    let identity = &machine.identity;
    assert_eq!((identity.arch.as_str(), identity.vendor.as_deref()), ("aarch64", Some("ARM")));
    assert_eq!(identity.model_name.as_deref(), Some("Cortex-A725 + Cortex-X925"));
    assert_eq!(identity.model["part"], "0xd87,0xd85");
    assert_eq!(identity.hypervisor, None);
}

/// All that is advised about a machine before anything is measured: notes, and the reasons of plans that cannot be made.
fn all_advice(root: &Path, machine: &Machine) -> Vec<String> {
    let advice = |notes: Vec<Note>| notes.into_iter().filter_map(|note| Some(note.advice?.to_string())).collect::<Vec<_>>();
    let mut all = advice(read_environment(root, machine).limits);
    for task in [Task::suite(), Task::quick(), Task::scan(), Task::latency(LatencyShape::Matrix), Task::bandwidth(BandwidthShape::Peak)] {
        for pages in [PageRequest::Auto, PageRequest::Huge2M, PageRequest::Huge1G] {
            let mut spec = Spec::new(task.clone());
            spec.pages = pages;
            match plan(&spec, machine, &[]) {
                Ok(plan) => all.extend(advice(plan.notes)),
                Err(error) => all.push(error.to_string()),
            }
        }
    }
    let offline = machine.topology.offline.first().map(IdSet::one);
    let spec = Spec { cpus: offline.clone(), ..Spec::new(Task::suite()) };
    all.extend(offline.and_then(|_| plan(&spec, machine, &[]).err()).map(|error| error.to_string()));
    all
}

/// The files of the kernel that a text names. Stars and upper case stand for several.
fn files_named(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "(),;".contains(c));
    words.filter(|word| word.starts_with("/sys/") || word.starts_with("/proc/")).filter(|file| !file.contains('*'))
}

/// The files exist. Returns how many are named.
fn every_advice_names_files_that_root_may_write_to(root: &Path, machine: &Machine, name: &str) -> u32 {
    let unlike = |node: &Node| node.has_memory() && !machine.allowed.nodes.contains(node.id);
    let mut followed = 0;
    for text in all_advice(root, machine) {
        assert!(
            !text.contains("cpuset.mems") || machine.topology.nodes.iter().any(unlike),
            "{name}: no control group is in the way: {text}"
        );
        for file in files_named(&text) {
            let found = root.join(&file[1..]).metadata();
            let writable = found.as_ref().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o200 != 0);
            assert!(writable, "{name}: {file}: {found:?}: {text}");
            followed += 1;
        }
    }
    followed
}
