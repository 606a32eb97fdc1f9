//! Processes of made-up machines, and this one.

use std::io::Cursor;

use memgauge_model::result::{MappingKind, MemorySums, PageBytes, PageKind};
use memgauge_model::units::IdSet;

use super::maps::{MapsReader, Pages};
use super::*;
use crate::tests::fixture::Fixture;

const SMAPS: &str = "\
55d000000000-55d000002000 r-xp 00000000 08:01 131 /usr/bin/app server
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   8 kB
Pss:                   4 kB
Shared_Clean:          8 kB
55d000010000-55d000020000 rw-p 00000000 00:00 0          [heap]
KernelPageSize:        4 kB
Rss:                  64 kB
Pss:                  64 kB
Swap:                  4 kB
7f0000000000-7f0000800000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
Rss:                8192 kB
Pss:                8192 kB
AnonHugePages:      4096 kB
7f0000800000-7f0000801000 rw-p 00000000 00:00 0
KernelPageSize:        4 kB
Rss:                   4 kB
Pss:                   4 kB
7f1000000000-7f1000400000 rw-p 00000000 00:10 77         /anon_hugepage (deleted)
KernelPageSize:     2048 kB
Rss:                   0 kB
Private_Hugetlb:    4096 kB
7f2000000000-7f2000001000 rw-s 00000000 00:01 9          /memfd:ring (deleted)
KernelPageSize:        4 kB
Rss:                   4 kB
Pss:                   2 kB
Shared_Dirty:          4 kB
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0          [stack]
KernelPageSize:        4 kB
Rss:                  12 kB
Pss:                  12 kB
";

const NUMA_MAPS: &str = "\
55d000000000 default file=/usr/bin/app\\040server mapped=2 N1=2 kernelpagesize_kB=4
55d000010000 default heap anon=16 dirty=16 N0=16 kernelpagesize_kB=4
7f0000000000 interleave:0-1 anon=2048 dirty=2048 N0=1024 N1=1024 kernelpagesize_kB=4
7f0000800000 bind:1 anon=1 dirty=1 N1=1 kernelpagesize_kB=4
7f1000000000 prefer (many):0-1 file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N0=1 N1=1 kernelpagesize_kB=2048
7f2000000000 default file=/memfd:ring\\040(deleted) dirty=1 N0=1 kernelpagesize_kB=4
7ffd00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
";

const PAGES: Pages = Pages { base: 4096, transparent: 2 << 20, only_node: None };

fn process(pid: u32) -> Fixture {
    let own = |file: &str| format!("proc/{pid}/{file}");
    Fixture::new()
        .file(&own("smaps"), SMAPS)
        .file(&own("numa_maps"), NUMA_MAPS)
        .file(&own("comm"), "app server\n")
        .file(&own("status"), "Name:\tapp\nThreads:\t3\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n")
}

fn sums(smaps: &str, numa_maps: Option<&str>, pages: Pages) -> MemorySums {
    let mut reader = MapsReader::new(Cursor::new(smaps), numa_maps.map(Cursor::new), pages);
    reader.read().unwrap();
    reader.into_sums().0
}

#[test]
fn bytes_are_by_node_page_and_kind_of_mapping() {
    let tree = process(7);
    let process = read(tree.root(), 7).unwrap();
    let kib = Bytes::kib;
    assert_eq!(process.memory.present, kib(8 + 64 + 8192 + 4 + 4096 + 4 + 12));
    assert_eq!(process.memory.by_node, [(0, kib(64 + 4096 + 2048 + 4 + 12)), (1, kib(8 + 4096 + 4 + 2048))].into());
    assert_eq!((process.memory.unplaced, process.memory.swapped, process.memory.shared), (Bytes(0), kib(4), kib(12)));
    let page = |kind, page, bytes| PageBytes { kind, page, bytes };
    assert_eq!(
        process.memory.by_page,
        [
            page(PageKind::Base, kib(4), kib(8 + 64 + 4096 + 4 + 4 + 12)),
            page(PageKind::Thp, Bytes::mib(2), kib(4096)),
            page(PageKind::Pool, Bytes::mib(2), kib(4096)),
        ]
    );
    use MappingKind::{Anonymous, File, Heap, Shared, Stack};
    let kinds = [(Heap, kib(64)), (Stack, kib(12)), (Anonymous, kib(8192 + 4 + 4096)), (File, kib(8)), (Shared, kib(4))];
    assert_eq!(process.memory.by_kind, kinds.into());
    let named: Vec<(MappingKind, Option<&str>, Bytes)> = process.mappings.iter().map(|m| (m.kind, m.name.as_deref(), m.present)).collect();
    assert_eq!(named[..2], [(Anonymous, None, kib(8196)), (Anonymous, None, kib(4096))], "unnamed mappings that touch are one");
    assert!(named.contains(&(File, Some("/usr/bin/app server"), kib(8))));
    let policies: Vec<(PolicyMode, String, Bytes)> =
        process.policies.iter().map(|p| (p.policy.mode, p.policy.nodes.to_string(), p.present)).collect();
    assert_eq!(policies[0], (PolicyMode::Interleave, "0-1".into(), kib(8192)));
    assert_eq!(policies[1], (PolicyMode::PreferredMany, "0-1".into(), kib(4096)));
    assert!(policies.contains(&(PolicyMode::Bind, "1".into(), kib(4))));
    assert_eq!((process.name.as_str(), process.threads, process.allowed_nodes), ("app server", 3, "0-1".parse::<IdSet>().unwrap()));
}

#[test]
fn without_numa_all_memory_is_on_the_only_node() {
    let tree = process(7);
    fs::remove_file(tree.root().join("proc/7/numa_maps")).unwrap();
    let process = read(tree.root(), 7).unwrap();
    assert_eq!(process.memory.by_node, [(0, process.memory.present)].into());
    assert!(process.policies.is_empty());
}

#[test]
fn pages_that_no_node_shows_are_counted_apart() {
    let cut = NUMA_MAPS.split_inclusive('\n').filter(|line| !line.contains("interleave")).collect::<String>();
    let sums = sums(SMAPS, Some(&cut), PAGES);
    assert_eq!(sums.unplaced, Bytes::mib(8));
    // Lines that nobody understands cost what they say, and no more.
    let odd = format!("x\n\nzz default N0=1\n{NUMA_MAPS}garbage N1=x\n");
    assert_eq!(self::sums(SMAPS, Some(&odd), PAGES).by_node, self::sums(SMAPS, Some(NUMA_MAPS), PAGES).by_node);
    assert_eq!(self::sums("Rss: 12 kB\n\u{0}\nabc", None, PAGES), MemorySums::default());
}

#[test]
fn a_process_that_is_not_there_or_has_no_memory_says_so() {
    let tree = Fixture::new().file("proc/2/smaps", "").file("proc/2/comm", "kthreadd");
    assert_eq!(read(tree.root(), 9).unwrap_err().why, WhyUnseen::Gone);
    let kernel = read(tree.root(), 2).unwrap_err();
    assert_eq!((kernel.name.as_deref(), kernel.why), (Some("kthreadd"), WhyUnseen::NoMemory));
}

#[test]
fn touched_memory_is_spread_as_its_mapping_is() {
    let smaps = "7f0000000000-7f0000800000 rw-p 00000000 00:00 0\nRss: 8192 kB\nReferenced: 2048 kB\n\
                 7f1000000000-7f1000400000 rw-p 00000000 00:10 77 /anon_hugepage (deleted)\nRss: 0 kB\nReferenced: 0 kB\nPrivate_Hugetlb: 4096 kB\nKernelPageSize: 2048 kB\n";
    let numa =
        "7f0000000000 default anon=2048 N0=512 N1=1536 kernelpagesize_kB=4\n7f1000000000 default huge anon=2 N1=2 kernelpagesize_kB=2048\n";
    let touched = self::sums(smaps, Some(numa), PAGES).touched.unwrap();
    // Pages of a pool all count: the kernel does not say which were touched.
    assert_eq!(touched, [(0, Bytes::kib(512)), (1, Bytes::kib(1536 + 4096))].into());
}

#[test]
fn only_pages_that_were_touched_since_count() {
    // More than what other tests of this process use meanwhile, and more pages than a TLB has translations for.
    const BYTES: usize = 192 << 20;
    let mut buffer = vec![0_u8; BYTES];
    // SAFETY: the address is on a page within the buffer, and so is the end of the range. A refusal changes nothing.
    unsafe { libc::madvise(buffer.as_mut_ptr().add(buffer.as_ptr().align_offset(4096)).cast(), BYTES - 4096, libc::MADV_NOHUGEPAGE) };
    let mut touch = |value: u8| buffer.iter_mut().step_by(4096).for_each(|byte| *byte = value);
    let touched = || {
        let memory = read(Path::new("/"), std::process::id()).unwrap().memory;
        memory.touched.map(|touched| touched.values().map(|bytes| bytes.0).sum::<u64>())
    };
    touch(1);
    let (Ok(()), Some(few)) = (forget_touched(Path::new("/"), std::process::id()), touched()) else {
        memgauge_testing::not_tested!("this kernel does not say which pages are touched");
    };
    touch(2);
    let all = touched().unwrap();
    // Memory may be swapped out where it is short.
    let swapped = read(Path::new("/"), std::process::id()).unwrap().memory.swapped.0;
    assert!(few < BYTES as u64 * 2 / 3 && all + swapped >= BYTES as u64 - 8192, "{few} and then {all}");
    assert!(forget_touched(Fixture::new().root(), 7).is_err());
}

#[test]
fn a_kernel_that_does_not_say_what_is_touched_leaves_it_open() {
    assert_eq!(self::sums(SMAPS, Some(NUMA_MAPS), PAGES).touched, None);
}

#[test]
fn children_of_children_belong_to_a_program() {
    let stat = |pid: u32, parent: u32| (format!("proc/{pid}/stat"), format!("{pid} (x) S {parent} 1 1"));
    let all = [stat(1, 0), stat(5, 1), stat(6, 5), stat(7, 6), stat(8, 1), ("proc/stat".into(), String::new())];
    let tree = all.iter().fold(Fixture::new(), |tree, (file, text)| tree.file(file, text));
    assert_eq!(with_children(tree.root(), &[5].into()), [5, 6, 7].into());
    assert_eq!(with_children(tree.root(), &[9].into()), [9].into());
    // As most kernels list them, thread by thread.
    let tree = tree.file("proc/5/task/5/children", "6 ").file("proc/6/task/6/children", "").file("proc/6/task/66/children", "7 10 ");
    assert_eq!(with_children(tree.root(), &[5].into()), [5, 6, 7, 10].into());
}

#[test]
fn the_page_cache_gives_way_and_shared_memory_does_not() {
    let meminfo = |free: u64| format!("Node 0 MemFree: {free} kB\nNode 0 FilePages: 500 kB\nNode 0 Shmem: 100 kB\n");
    let tree = Fixture::new()
        .file("sys/devices/system/node/node0/meminfo", meminfo(1000))
        .file("sys/devices/system/node/node2/meminfo", meminfo(0));
    assert_eq!(free_by_node(tree.root()), [(0, Bytes::kib(1400)), (2, Bytes::kib(400))].into());
    assert!(free_by_node(Fixture::new().root()).is_empty());
}

#[test]
fn processes_of_a_control_group_are_those_below_it_too() {
    let tree = Fixture::new()
        .file("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .file("sys/fs/cgroup/app.slice/cgroup.procs", "11\n12\n")
        .file("sys/fs/cgroup/app.slice/inner/cgroup.procs", "13\n0\n")
        .file("sys/fs/cgroup/empty/cgroup.procs", "")
        .file("sys/fs/cgroup/foreign/cgroup.procs", "0\n0\n");
    let of = |path: &str| of_cgroup(tree.root(), Path::new(path));
    assert_eq!(of("app.slice"), Ok([11, 12, 13].into()));
    assert_eq!(of("/app.slice"), of("app.slice"));
    assert_eq!(of_cgroup(Path::new("/"), &tree.root().join("sys/fs/cgroup/app.slice")), Ok([11, 12, 13].into()), "its folder");
    assert_eq!(of("nothing").unwrap_err(), "nothing is not a control group; they are below /sys/fs/cgroup");
    assert!(of("empty").unwrap_err().contains("has no processes"));
    assert!(of("foreign").unwrap_err().contains("another container"));
}

#[test]
fn this_process_lies_where_its_buffer_was_put() {
    let mut buffer = vec![0_u8; 64 << 20];
    buffer.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let process = read(Path::new("/"), std::process::id()).unwrap();
    assert!(process.memory.present >= Bytes::mib(64) && process.mappings[0].present >= Bytes::mib(64), "{process:?}");
    let placed: u64 = process.memory.by_node.values().map(|bytes| bytes.0).sum();
    assert!(placed >= 64 << 20, "{process:?}");
    assert!(process.threads >= 1 && !process.allowed_cpus.is_empty());
    drop(buffer);
}

#[test]
fn a_tebibyte_of_mappings_takes_no_memory_and_little_time() {
    // 1 TiB in 65,530 mappings, the most that the kernel allows by default (vm.max_map_count).
    let (mut smaps, mut numa) = (String::new(), String::new());
    for i in 0..65_530_u64 {
        let start = 0x7000_0000_0000 + i * (32 << 20);
        smaps += &format!(
            "{start:x}-{:x} rw-p 00000000 00:00 0\nSize: 16384 kB\nKernelPageSize: 4 kB\nRss: 16384 kB\nPss: 16384 kB\nAnonHugePages: 16384 kB\n",
            start + (16 << 20)
        );
        numa += &format!("{start:x} default anon=4096 dirty=4096 N0=1024 N1=3072 kernelpagesize_kB=4\n");
    }
    let mut reader = MapsReader::new(Cursor::new(&smaps), Some(Cursor::new(&numa)), PAGES);
    reader.read().unwrap();
    let (sums, mappings, _) = reader.into_sums();
    assert_eq!(sums.present, Bytes(65_530 << 24));
    assert_eq!(sums.by_node, [(0, Bytes(65_530 << 22)), (1, Bytes(65_530 * (12 << 20)))].into());
    assert_eq!(mappings.len(), 10);
}
