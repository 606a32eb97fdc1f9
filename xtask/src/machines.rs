//! Recorded machines that no laboratory has: written from a description, as archives like those that real machines and guests give.
//!
//! One is larger than anything at hand: two packages of 256 cores with two threads each in sixteen nodes, as the largest two-socket servers
//! of 2026 are when each package is cut into eight nodes. On it plans have to stay short, quick to make and right.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

/// Name of the archive and of the one folder in it.
const NAME: &str = "2p1024c16n";

const PACKAGES: u32 = 2;
const CORES_PER_PACKAGE: u32 = 256;
const CORES: u32 = PACKAGES * CORES_PER_PACKAGE;
/// Linux numbers the first threads of all cores, then the second ones.
const CPUS: u32 = 2 * CORES;
const NODES: u32 = 16;
const CORES_PER_NODE: u32 = CORES / NODES;
const NODES_PER_PACKAGE: u32 = NODES / PACKAGES;
/// A chiplet's share of cores: one last-level cache.
const CORES_PER_L3: u32 = 8;

/// Memory of a node.
const NODE_KIB: u64 = 64 << 20;
/// Pages of each pool on a node, all free: size in KiB, count.
const POOLS: [(u64, u64); 2] = [(2 << 10, 8192), (1 << 20, 4)];
/// What the kernel and its page cache took of a node.
const NODE_USED_KIB: u64 = 2 << 20;
const NODE_CACHE_KIB: u64 = 512 << 10;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    File(String),
    Link(String),
}

/// Files and links, in the order in which they are packed.
type Tree = Vec<(String, Item)>;

/// Writes the archives into `folder`.
pub(crate) fn write(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{NAME}.tar.gz"));
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    pack(&tree(), file)?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Fails unless the archives in `folder` hold what [`write()`] would write. How they are compressed does not count: that changes with the
/// version of a library.
pub(crate) fn check(folder: &Path) -> Result<()> {
    let path = folder.join(format!("{NAME}.tar.gz"));
    let advice = "run 'cargo xtask machines' and commit it";
    let file = File::open(&path).with_context(|| format!("cannot read {}: {advice}", path.display()))?;
    let found = unpack(file).with_context(|| format!("{} is damaged: {advice}", path.display()))?;
    let expected: BTreeMap<String, Item> = tree().into_iter().collect();
    if found == expected {
        return Ok(());
    }
    let differs = |name: &&String| found.get(*name) != expected.get(*name);
    let first = found.keys().chain(expected.keys()).find(differs).map_or("", String::as_str);
    bail!("{} differs from its description, first in {first}: {advice}", path.display())
}

fn pack(tree: &Tree, out: impl Write) -> Result<()> {
    let mut archive = Builder::new(GzEncoder::new(out, Compression::best()));
    for (name, item) in tree {
        let path = Path::new(NAME).join(name);
        let mut header = Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_mode(0o644);
        match item {
            Item::File(text) => {
                header.set_size(text.len() as u64);
                archive.append_data(&mut header, path, text.as_bytes())?;
            }
            Item::Link(target) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_size(0);
                archive.append_link(&mut header, path, target)?;
            }
        }
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

fn unpack(packed: impl Read) -> Result<BTreeMap<String, Item>> {
    let mut items = BTreeMap::new();
    for entry in tar::Archive::new(GzDecoder::new(packed)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.strip_prefix(NAME)?.to_string_lossy().into_owned();
        let item = match entry.link_name()? {
            Some(target) => Item::Link(target.to_string_lossy().into_owned()),
            None => {
                let mut text = String::new();
                entry.read_to_string(&mut text)?;
                Item::File(text)
            }
        };
        ensure!(items.insert(path.clone(), item).is_none(), "{path} is there twice");
    }
    Ok(items)
}

/// The whole machine.
///
/// Files of one kind follow each other, which makes the archive a third smaller. What several CPUs have in common is there once, with links
/// to it, where the kernel repeats it.
fn tree() -> Tree {
    let mut tree = Tree::new();
    system(&mut tree);
    processors(&mut tree);
    caches(&mut tree);
    nodes(&mut tree);
    tree
}

fn file(tree: &mut Tree, path: impl Into<String>, text: impl std::fmt::Display) {
    tree.push((path.into(), Item::File(format!("{text}\n"))));
}

fn link(tree: &mut Tree, path: impl Into<String>, target: impl Into<String>) {
    tree.push((path.into(), Item::Link(target.into())));
}

/// Both threads of some cores, as the kernel's mask of all CPUs.
fn mask(cores: Range<u32>) -> String {
    let bit = |cpu: u32| cores.contains(&(cpu % CORES));
    let word = |word: u32| (0..32).filter(|i| bit(word * 32 + i)).fold(0u32, |bits, i| bits | 1 << i);
    (0..CPUS / 32).rev().map(|n| format!("{:08x}", word(n))).collect::<Vec<_>>().join(",")
}

/// The same as a list.
fn list(cores: Range<u32>) -> String {
    let (first, last) = (cores.start, cores.end - 1);
    format!("{first}-{last},{}-{}", first + CORES, last + CORES)
}

fn package_of(core: u32) -> u32 {
    core / CORES_PER_PACKAGE
}

fn group(core: u32, size: u32) -> Range<u32> {
    let first = core / size * size;
    first..first + size
}

fn system(tree: &mut Tree) {
    let all_cpus = format!("0-{}", CPUS - 1);
    for (name, text) in [
        ("kernel_max", "8191"),
        ("offline", ""),
        ("online", &all_cpus),
        ("possible", &all_cpus),
        ("present", &all_cpus),
        ("smt/active", "1"),
        ("smt/control", "on"),
    ] {
        file(tree, format!("{CPU}/{name}"), text);
    }
    let flags = "fpu tsc msr pae cx8 apic cmov pat clflush mmx fxsr sse sse2 ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nonstop_tsc \
                 pni ssse3 fma cx16 sse4_1 sse4_2 x2apic movbe popcnt aes xsave avx f16c rdrand topoext bmi1 avx2 bmi2 erms avx512f avx512dq \
                 clflushopt clwb avx512cd sha_ni avx512bw avx512vl clzero avx512_vbmi2 fsrm movdiri movdir64b";
    // One processor's block: the others would repeat it.
    let cpuinfo = format!(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 80\nmodel name\t: Generated {CORES_PER_PACKAGE}-Core Processor\n\
         stepping\t: 0\nphysical id\t: 0\nsiblings\t: {}\ncore id\t\t: 0\ncpu cores\t: {CORES_PER_PACKAGE}\nflags\t\t: {flags}\n\
         address sizes\t: 52 bits physical, 57 bits virtual\n",
        2 * CORES_PER_PACKAGE
    );
    file(tree, "proc/cpuinfo", cpuinfo);
    let nodes = u64::from(NODES);
    let free = nodes * node_free_kib();
    let cache = nodes * NODE_CACHE_KIB;
    file(
        tree,
        "proc/meminfo",
        format!(
            "MemTotal:       {} kB\nMemFree:        {free} kB\nMemAvailable:   {} kB\nHugePages_Total:   {}\nHugePages_Free:    {}\n\
             Hugepagesize:       2048 kB",
            nodes * NODE_KIB,
            free + cache,
            nodes * POOLS[0].1,
            nodes * POOLS[0].1
        ),
    );
    let last_node = NODES - 1;
    file(
        tree,
        "proc/self/status",
        format!(
            "Uid:\t1000\t1000\t1000\t1000\nVmSize:\t    8192 kB\nVmData:\t    1024 kB\nCapEff:\t0000000000000000\n\
             Cpus_allowed_list:\t{all_cpus}\nMems_allowed_list:\t0-{last_node}"
        ),
    );
    for (path, text) in [
        ("proc/sys/kernel/numa_balancing", "1"),
        ("proc/sys/kernel/osrelease", "6.18.0"),
        ("proc/sys/kernel/perf_event_paranoid", "2"),
        ("proc/sys/vm/overcommit_memory", "0"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("sys/devices/virtual/dmi/id/product_name", NAME),
        ("sys/devices/virtual/dmi/id/sys_vendor", "memgauge"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
    ] {
        file(tree, path, text);
    }
    link(tree, "sys/class/dmi/id", "../../devices/virtual/dmi/id");
    file(tree, "sys/devices/virtual/memory_tiering/memory_tier4/nodelist", format!("0-{last_node}"));
}

fn processors(tree: &mut Tree) {
    let mut each = |name: &str, text: &dyn Fn(u32) -> String| {
        for core in 0..CORES {
            file(tree, format!("{CPU}/cpu{core}/topology/{name}"), text(core));
        }
    };
    each("physical_package_id", &|core| package_of(core).to_string());
    each("core_id", &|core| (core % CORES_PER_PACKAGE).to_string());
    each("thread_siblings", &|core| mask(core..core + 1));
    for core in 0..CORES {
        let path = format!("{CPU}/cpu{core}/topology/core_siblings");
        match group(core, CORES_PER_PACKAGE) {
            all if all.start == core => file(tree, path, mask(all)),
            all => link(tree, path, format!("../../cpu{}/topology/core_siblings", all.start)),
        }
    }
    for core in 0..CORES {
        link(tree, format!("{CPU}/cpu{}", core + CORES), format!("cpu{core}"));
    }
}

/// A kind of cache.
struct Cache {
    index: u32,
    level: u32,
    kind: &'static str,
    kib: u32,
    ways: u32,
    /// Cores that share one.
    cores: u32,
}

/// No instruction cache: nothing here reads it, and it would be a fifth of the archive.
const CACHES: [Cache; 3] = [
    Cache { index: 0, level: 1, kind: "Data", kib: 48, ways: 12, cores: 1 },
    Cache { index: 1, level: 2, kind: "Unified", kib: 1024, ways: 16, cores: 1 },
    Cache { index: 2, level: 3, kind: "Unified", kib: 32 << 10, ways: 16, cores: CORES_PER_L3 },
];

fn caches(tree: &mut Tree) {
    for cache in CACHES {
        let index = cache.index;
        let files = [
            ("level", cache.level.to_string()),
            ("type", cache.kind.to_owned()),
            ("size", format!("{}K", cache.kib)),
            ("coherency_line_size", "64".to_owned()),
            ("ways_of_associativity", cache.ways.to_string()),
        ];
        let with_folder = || (0..CORES).step_by(cache.cores as usize);
        for (name, text) in files {
            for core in with_folder() {
                file(tree, format!("{CPU}/cpu{core}/cache/index{index}/{name}"), &text);
            }
        }
        for core in with_folder() {
            let path = format!("{CPU}/cpu{core}/cache/index{index}/shared_cpu_map");
            match cache.cores {
                1 => link(tree, path, "../../topology/thread_siblings"),
                several => file(tree, path, mask(group(core, several))),
            }
        }
        for core in (0..CORES).filter(|core| core % cache.cores > 0) {
            let first = group(core, cache.cores).start;
            link(tree, format!("{CPU}/cpu{core}/cache/index{index}"), format!("../../cpu{first}/cache/index{index}"));
        }
    }
}

fn node_free_kib() -> u64 {
    NODE_KIB - NODE_USED_KIB - POOLS.iter().map(|(kib, pages)| kib * pages).sum::<u64>()
}

/// Distances as firmware states them: within a node, within a package, to the other package.
fn distance(from: u32, to: u32) -> u32 {
    if from == to {
        10
    } else if from / NODES_PER_PACKAGE == to / NODES_PER_PACKAGE {
        12
    } else {
        32
    }
}

fn nodes(tree: &mut Tree) {
    for name in ["has_cpu", "has_memory", "has_normal_memory", "online", "possible"] {
        file(tree, format!("{NODE}/{name}"), format!("0-{}", NODES - 1));
    }
    for node in 0..NODES {
        let at = |name: &str| format!("{NODE}/node{node}/{name}");
        let cores = group(node * CORES_PER_NODE, CORES_PER_NODE);
        file(tree, at("cpumap"), mask(cores.clone()));
        file(tree, at("cpulist"), list(cores));
        file(tree, at("distance"), (0..NODES).map(|to| distance(node, to).to_string()).collect::<Vec<_>>().join(" "));
        let free = node_free_kib();
        let lines = [
            ("MemTotal", NODE_KIB),
            ("MemFree", free),
            ("MemUsed", NODE_KIB - free),
            ("Active(file)", NODE_CACHE_KIB),
            ("Inactive(file)", NODE_CACHE_KIB),
        ];
        file(tree, at("meminfo"), lines.map(|(name, kib)| format!("Node {node} {name}: {kib} kB")).join("\n"));
        for (kib, pages) in POOLS {
            for name in ["free_hugepages", "nr_hugepages"] {
                file(tree, at(&format!("hugepages/hugepages-{kib}kB/{name}")), pages);
            }
            file(tree, at(&format!("hugepages/hugepages-{kib}kB/surplus_hugepages")), 0);
        }
        // Two of a package's sixteen channels at 12.8 GT/s, and a latency as of a busy mesh.
        for access in ["access0", "access1"] {
            let at = |name: &str| at(&format!("{access}/initiators/{name}"));
            file(tree, at("read_latency"), 110);
            file(tree, at("write_latency"), 115);
            file(tree, at("read_bandwidth"), 204_800);
            file(tree, at("write_bandwidth"), 102_400);
            link(tree, at(&format!("node{node}")), format!("../../../node{node}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("memgauge-xtask-{name}-{}", std::process::id()))
    }

    #[test]
    fn archives_are_as_described() {
        check(&crate::folders::project_folder().join("tests/machines")).unwrap();
    }

    #[test]
    fn a_small_archive_and_always_the_same() {
        let folder = folder("machines");
        let packed = |tree: &Tree| {
            let mut bytes = Vec::new();
            pack(tree, &mut bytes).unwrap();
            bytes
        };
        let first = packed(&tree());
        assert!(first == packed(&tree()) && first.len() < 100_000, "{} bytes", first.len());

        let missing = check(&folder).unwrap_err().to_string();
        assert!(missing.contains("cargo xtask machines"), "{missing}");
        write(&folder).unwrap();
        check(&folder).unwrap();
        let mut other = tree();
        other.pop();
        fs::write(folder.join(format!("{NAME}.tar.gz")), packed(&other)).unwrap();
        let differs = check(&folder).unwrap_err().to_string();
        assert!(differs.contains("node15/access1/initiators/node15"), "{differs}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn masks_and_lists() {
        let first = mask(0..1);
        assert_eq!(first.len(), 32 * 9 - 1);
        assert!(first.ends_with(",00000001") && first.matches("00000001").count() == 2);
        assert_eq!(mask(0..CORES), vec!["ffffffff"; 32].join(","));
        assert_eq!(list(32..64), "32-63,544-575");
    }
}
