//! Allocation on this machine and on made-up ones.

use std::fs;

use memgauge_model::result::{Placement, PlacementSource};
use memgauge_model::units::IdSet;
use memgauge_testing::{not_tested, not_tested_in_part};

use super::*;
use crate::memory::{node_state, page_maps, prefer_out_of_memory_kill};
use crate::tests::fixture::Fixture;

pub(in crate::memory) fn plan(bytes: Bytes, pages: PageRequest) -> BufferPlan {
    BufferPlan { touch: local_cpus(), ..BufferPlan::plain(bytes, first_node(), pages) }
}

fn status(field: &str) -> IdSet {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|l| l.strip_prefix(field)).map_or(IdSet::one(0), |t| t.parse().unwrap())
}

fn first_node() -> u32 {
    status("Mems_allowed_list:").first().unwrap()
}

fn local_cpus() -> IdSet {
    let cpus = fs::read_to_string(format!("/sys/devices/system/node/node{}/cpulist", first_node()));
    cpus.map_or(status("Cpus_allowed_list:"), |t| t.parse::<IdSet>().unwrap().intersection(&status("Cpus_allowed_list:")))
}

fn root() -> &'static Path {
    Path::new("/")
}

/// The entries of `/proc/self/maps` that touch this range: start, end, permissions.
fn maps(start: usize, end: usize) -> Vec<(usize, usize, String)> {
    let text = fs::read_to_string("/proc/self/maps").unwrap();
    let entry = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (low, high) = words.next()?.split_once('-')?;
        Some((usize::from_str_radix(low, 16).ok()?, usize::from_str_radix(high, 16).ok()?, words.next()?.to_owned()))
    };
    text.lines().filter_map(entry).filter(|(low, high, _)| *low < end && *high > start).collect()
}

#[test]
fn base_pages_are_base_pages_on_the_node() {
    let buffer = Buffer::allocate(&plan(Bytes::mib(64), PageRequest::Base), root()).unwrap();
    let pages = buffer.pages();
    assert_eq!((pages.obtained, pages.share), (Some(PageKind::Base), Some(1.0)), "{pages:?}");
    assert_eq!(pages.page, Some(Bytes(crate::base_page() as u64)));
    assert_eq!(buffer.len(), 64 << 20);
    let placement = buffer.placement();
    assert_eq!(placement.status, PlacementStatus::Verified, "{placement:?}");
    if placement.source == Some(PlacementSource::MovePages) {
        assert_eq!(placement.pages_by_node.values().sum::<u64>(), ((64 << 20) / crate::base_page() as u64).min(8192));
    }
}

#[test]
fn huge_pages_are_obtained_or_refused_with_advice() {
    let Ok(page) = node_state::thp(root()).0 else {
        not_tested_in_part!("transparent huge pages are off here");
        let e = Buffer::allocate(&plan(Bytes::mib(64), PageRequest::Thp), root()).unwrap_err();
        assert!(e.advice.to_string().contains("transparent_hugepage/enabled"), "{e:?}");
        return;
    };
    match Buffer::allocate(&plan(Bytes::mib(64), PageRequest::Thp), root()) {
        Ok(buffer) => {
            let pages = buffer.pages();
            assert_eq!((pages.obtained, pages.page), (Some(PageKind::Thp), Some(Bytes(page as u64))));
            assert!(pages.share.unwrap() >= LARGE_MAJORITY);
            assert_eq!(buffer.as_ptr() as usize % page, 0);
            assert_eq!(buffer.placement().status, PlacementStatus::Verified);
        }
        // Fragmented memory: the refusal must say so.
        Err(e) => assert!(e.advice.to_string().contains("compact_memory"), "{e:?}"),
    }
}

#[test]
fn auto_takes_the_best_pages_and_says_why_none_better() {
    let buffer = Buffer::allocate(&plan(Bytes::mib(64), PageRequest::Auto), root()).unwrap();
    let pages = buffer.pages();
    let state = NodeState::read(root(), first_node()).unwrap();
    match pages.obtained.unwrap() {
        PageKind::Pool => assert!(state.pools.iter().any(|p| p.page == Bytes::mib(2) && p.total >= 32)),
        PageKind::Thp => assert!(state.thp.is_ok()),
        PageKind::Base => assert!(pages.reason.is_some(), "{pages:?}"),
        PageKind::File | PageKind::Dax | PageKind::Large => panic!("{pages:?}"),
    }
    // Every page is present, private and unlike the others.
    // SAFETY: the buffer is 64 MiB long and nothing else uses it.
    let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr(), buffer.len()) };
    let mut pages: Vec<&[u8]> = bytes.chunks(4096).collect();
    pages.sort_unstable();
    assert!(pages.windows(2).all(|two| two[0] != two[1]) && pages.iter().all(|page| page.iter().any(|b| *b != 0)));
}

#[test]
fn a_small_buffer_of_huge_pages_is_rounded_up_and_its_length_is_not() {
    let buffer = Buffer::allocate(&plan(Bytes::kib(16), PageRequest::Auto), root()).unwrap();
    assert_eq!(buffer.len(), 16 << 10);
    assert!((16 << 10..=2 << 20).contains(&buffer.mapping.len()));
    assert_eq!(buffer.placement().status, PlacementStatus::Verified);
}

#[test]
fn guard_pages_surround_a_buffer_and_nothing_remains() {
    for pages in [PageRequest::Base, PageRequest::Auto] {
        let buffer = Buffer::allocate(&plan(Bytes::mib(6), pages), root()).unwrap();
        let (page, start) = (crate::base_page(), buffer.as_ptr() as usize);
        let end = start + buffer.mapping.len();
        let around = maps(start - page, end + page);
        assert!(around.iter().any(|(low, high, _)| *low == start && *high == end), "{around:x?}");
        for guard in [start - 1, end] {
            let entry = around.iter().find(|(low, high, _)| *low <= guard && guard < *high).unwrap();
            assert_eq!(entry.2, "---p");
        }
        drop(buffer);
        // Other tests may map memory there meanwhile, but none of their mappings has exactly these bounds.
        assert!(maps(start, end).iter().all(|(low, high, _)| (*low, *high) != (start, end)));
    }
}

#[test]
fn neighbouring_buffers_are_counted_separately() {
    let one = Buffer::allocate(&plan(Bytes::mib(8), PageRequest::Base), root()).unwrap();
    let two = Buffer::allocate(&plan(Bytes::mib(8), PageRequest::Auto), root()).unwrap();
    let three = Buffer::allocate(&plan(Bytes::mib(8), PageRequest::Base), root()).unwrap();
    assert_eq!(one.mapping.read_pages().unwrap().mapped, 8 << 20);
    assert_eq!(two.mapping.read_pages().unwrap().mapped, two.mapping.len() as u64);
    assert_eq!(three.pages().share, Some(1.0));
}

#[test]
fn pools_that_are_too_small_come_with_the_command() {
    for (pages, folder) in [(PageRequest::Huge2M, "hugepages-2048kB"), (PageRequest::Huge1G, "hugepages-1048576kB")] {
        // More than the pool of any test machine.
        let e = Buffer::allocate(&plan(Bytes::gib(1 << 14), pages), root()).unwrap_err();
        assert_eq!(e.kind, MemoryErrorKind::Pages);
        if Path::new("/sys/kernel/mm/hugepages").join(folder).exists() {
            assert!(e.advice.to_string().contains(&format!("{folder}/nr_hugepages")), "{e:?}");
        } else {
            assert!(e.advice.to_string().contains("--pages auto"), "{e:?}");
        }
    }
}

#[test]
fn pages_of_a_free_pool_are_used() {
    let state = NodeState::read(root(), first_node()).unwrap();
    // Enough for the tests that run beside this one too.
    if state.pool_for(first_node(), 2 << 20, 120 << 20).is_err() {
        not_tested!("fewer than 60 free 2 MiB pages in a pool here");
    }
    for pages in [PageRequest::Huge2M, PageRequest::Auto] {
        let buffer = Buffer::allocate(&plan(Bytes::mib(8), pages), root()).unwrap();
        let seen = buffer.pages();
        assert_eq!((seen.obtained, seen.share, seen.page), (Some(PageKind::Pool), Some(1.0), Some(Bytes::mib(2))));
        assert_eq!(buffer.placement().status, PlacementStatus::Verified, "{:?}", buffer.placement());
    }
}

#[test]
fn impossible_sizes_and_nodes_are_named() {
    for bytes in [0, u64::MAX] {
        let e = Buffer::allocate(&plan(Bytes(bytes), PageRequest::Base), root()).unwrap_err();
        assert_eq!(e.kind, MemoryErrorKind::Size);
    }
    let elsewhere = BufferPlan { node: 1000, ..plan(Bytes::mib(1), PageRequest::Base) };
    let e = Buffer::allocate(&elsewhere, root()).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Node);
    assert!(e.to_string().contains("node 1000"), "{e}");
    let e = Buffer::allocate(&plan(Bytes::gib(1 << 15), PageRequest::Base), root()).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Space);
    assert!(!e.advice.to_string().is_empty());
}

#[test]
fn a_node_that_the_kernel_does_not_have_is_refused_by_it() {
    // This sysfs shows two nodes. The kernel that runs the test has fewer, and refuses as for a node outside Mems_allowed.
    let tree = Fixture::new().files(&[("sys/devices/system/node/online", "0-1023\n")]);
    let elsewhere = BufferPlan { node: 1000, ..plan(Bytes::mib(1), PageRequest::Base) };
    let e = Buffer::allocate_under(&elsewhere, tree.root(), &Policy::new(), &|| false).unwrap_err();
    assert!(matches!(e.kind, MemoryErrorKind::Node | MemoryErrorKind::Placement), "{e:?}");
    assert!(e.to_string().contains("node 1000"), "{e}");
}

#[test]
fn a_made_up_machine_is_read() {
    let node = "sys/devices/system/node/node1";
    let pool = format!("{node}/hugepages/hugepages-2048kB");
    let tree = Fixture::new().files(&[
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/has_memory", "0-1\n"),
        (&format!("{node}/cpulist"), "4-7\n"),
        (&format!("{node}/meminfo"), "Node 1 MemTotal: 4096 kB\nNode 1 MemFree:  1024 kB\nNode 1 Inactive(file): 512 kB\n"),
        (&format!("{pool}/nr_hugepages"), "10\n"),
        (&format!("{pool}/free_hugepages"), "9\n"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "20\n"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages", "15\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "536870912\n"),
    ]);
    let state = NodeState::read(tree.root(), 1).unwrap();
    assert_eq!(state.node_cpus.to_string(), "4-7");
    assert!(!state.only_node);
    assert_eq!(state.pools, [memgauge_model::topology::PagePool { page: Bytes::mib(2), total: 10, free: 9 }]);
    // Nine are free on the node, but 15 of the machine's 20 free ones are reserved by others.
    assert_eq!(state.usable(&state.pools[0]), 5);
    // 1 MiB is free; what is reclaimable the kernel makes room of for bound pages only.
    assert_eq!([512 << 10, (512 << 10) + 1].map(|len| Rule::choose(len, &state)), [Rule::First, Rule::Only]);
    assert!(state.pool_for(1, 2 << 20, 10 << 20).is_ok());
    let auto = BufferPlan { node: 1, ..plan(Bytes::mib(12), PageRequest::Auto) };
    let (backings, reasons) = choose_backings(&auto, 12 << 20, &state).unwrap();
    assert_eq!(backings, [Backing::Base(crate::base_page())]);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[1].contains("512 MiB"), "{reasons:?}");
    // The pool has room for 10 MiB, and is another program's.
    let of_pool = |leave_pools| choose_backings(&BufferPlan { leave_pools, ..auto.clone() }, 10 << 20, &state).unwrap();
    assert_eq!(of_pool(false).0, [Backing::Pool(2 << 20), Backing::Base(crate::base_page())]);
    let (left, why) = of_pool(true);
    assert!(left == [Backing::Base(crate::base_page())] && why[0].contains("left to other programs"), "{why:?}");
    let (backings, _) = choose_backings(&auto, 4 << 30, &state).unwrap();
    assert_eq!(backings[0], Backing::Thp(512 << 20));

    let explicit = BufferPlan { pages: PageRequest::Huge2M, ..auto.clone() };
    let e = choose_backings(&explicit, 12 << 20, &state).unwrap_err();
    // Ten in the pool, and one more than the five that are usable.
    assert!(e.advice.to_string().contains("as root: echo 11 > "), "{e:?}");
    assert!(e.advice.to_string().contains("node1/hugepages/hugepages-2048kB/nr_hugepages"), "{e:?}");
    let e = choose_backings(&BufferPlan { pages: PageRequest::Huge1G, ..auto.clone() }, 12 << 20, &state).unwrap_err();
    assert!(e.advice.to_string().contains("offers pools of 2 MiB"), "{e:?}");

    let e = Buffer::allocate(&BufferPlan { bytes: Bytes::mib(2), pages: PageRequest::Base, ..auto }, tree.root()).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Space);
    assert!(e.why.contains("1 MiB free"), "{e}");
    let e = Buffer::allocate(&BufferPlan { node: 2, ..plan(Bytes::mib(2), PageRequest::Base) }, tree.root()).unwrap_err();
    assert!(e.to_string().contains("online are 0-1"), "{e}");
}

#[test]
fn pages_touched_where_a_node_was_only_preferred_are_bound_afterwards() {
    let (backing, nodes) = (Backing::Base(crate::base_page()), IdSet::one(first_node()));
    let mut mapping = Mapping::new(4 << 20, backing).unwrap();
    let policy = Policy::new();
    let state = NodeState::read(root(), first_node()).unwrap();
    if let Err(refusal) = policy.place(&mapping, Rule::First, &nodes, &state).unwrap() {
        not_tested!("{refusal}");
    }
    let rule = |mapping: &Mapping| {
        let address = format!("{:x} ", mapping.range().0);
        let maps = fs::read_to_string("/proc/self/numa_maps").unwrap_or_default();
        maps.lines().find_map(|line| Some(line.strip_prefix(&address)?.split(' ').next()?.to_owned()))
    };
    let before = rule(&mapping);
    touch::populate(&mut mapping, backing, &local_cpus(), false, &|| false).unwrap();
    let plan = plan(Bytes::mib(4), PageRequest::Base);
    let placement = placement::bind_and_read_back(&mapping, backing, &plan, &state, &policy, (Rule::First, Ok(()))).unwrap();
    assert_eq!((placement.status, placement.method), (PlacementStatus::Verified, Some(PlacementMethod::Mbind)));
    let node = first_node();
    if before.is_some() {
        assert_eq!([before, rule(&mapping)], [Some(format!("prefer:{node}")), Some(format!("bind:{node}"))]);
    }
}

#[test]
fn settings_of_transparent_huge_pages() {
    let enabled = "sys/kernel/mm/transparent_hugepage/enabled";
    let own = "sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";
    let mode = |files: &[(&str, &str)]| node_state::thp(Fixture::new().files(files).root()).0;
    assert!(mode(&[]).is_err());
    assert_eq!(mode(&[(enabled, "[always] madvise never\n")]), Ok(2 << 20));
    assert!(mode(&[(enabled, "always madvise [never]\n")]).is_err());
    let by_size = [(enabled, "always [madvise] never\n"), (own, "always inherit madvise [never]\n")];
    assert!(mode(&by_size).is_err());
    let inherited = [(enabled, "always [madvise] never\n"), (own, "always [inherit] madvise never\n")];
    assert_eq!(mode(&inherited), Ok(2 << 20));
}

#[test]
fn smaps_of_a_range() {
    let text = "1000-3000 rw-p 00000000 00:00 0 [heap]\nSize: 8 kB\nKernelPageSize: 4 kB\nRss: 8 kB\nAnonHugePages: 0 kB\n\
                400000-800000 rw-p 00000000 00:00 0\nKernelPageSize:        4 kB\nRss:    4096 kB\nAnonHugePages:   2048 kB\n\
                Private_Hugetlb:       0 kB\nVmFlags: rd wr mr\n\
                900000-a00000 rw-p 00000000 00:00 0\nRss: 77 kB\n";
    let read = |start, end| page_maps::smaps(text.as_bytes(), start, end);
    let backed = read(0x40_0000, 0x80_0000).unwrap();
    assert_eq!((backed.mapped, backed.resident, backed.thp, backed.page), (4 << 20, 4 << 20, 2 << 20, 4096));
    assert_eq!(backed.thp_share(), 0.5);
    assert!(read(0x40_0000, 0x60_0000).unwrap_err().contains("merged"));
    assert!(read(0x100_0000, 0x200_0000).unwrap_err().contains("does not show"));
    let pool = "200000-600000 rw-p 0 00:0f 12 /anon_hugepage (deleted)\nKernelPageSize: 2048 kB\nRss: 0 kB\nPrivate_Hugetlb: 4096 kB\n";
    let backed = page_maps::smaps(pool.as_bytes(), 0x20_0000, 0x60_0000).unwrap();
    let pages = evidence(PageRequest::Auto, Backing::Pool(2 << 20), Ok(backed), &[]);
    assert_eq!((pages.obtained, pages.share, pages.page), (Some(PageKind::Pool), Some(1.0), Some(Bytes::mib(2))));
}

#[test]
fn numa_maps_of_a_range() {
    let text = "1000 default heap anon=2 dirty=2 N0=2 kernelpagesize_kB=4\n\
                400000 bind:1 anon=1024 dirty=1024 N0=24 N1=1000 kernelpagesize_kB=4\n\
                500000 bind:1 anon=1 N1=1 kernelpagesize_kB=4\n800000 default N3=9\n";
    let read = |start, end| page_maps::numa_maps(text.as_bytes(), start, end);
    assert_eq!(read(0x40_0000, 0x80_0000).unwrap().into_iter().collect::<Vec<_>>(), [(0, 24), (1, 1001)]);
    assert_eq!(read(0x90_0000, 0xa0_0000), None);
}

#[test]
fn fragmented_memory_shows_in_the_evidence() {
    let backed = PageCounts { mapped: 100, resident: 100, thp: 60, file_huge: 0, pool: 0, page: 4096 };
    let pages = evidence(PageRequest::Thp, Backing::Thp(2 << 20), Ok(backed), &[]);
    assert_eq!((pages.obtained, pages.share), (Some(PageKind::Thp), Some(0.6)));
    assert!(pages.reason.as_deref().unwrap().contains("60 %"));
    let state = NodeState::read(root(), first_node()).unwrap();
    let thp = plan(Bytes(100), PageRequest::Thp);
    let e = check_kind(&thp, Backing::Thp(2 << 20), &pages, &state).unwrap_err();
    assert!(e.why.contains("60 %") && e.advice.to_string().contains("compact_memory"), "{e:?}");
    let auto = plan(Bytes(100), PageRequest::Auto);
    assert!(check_kind(&auto, Backing::Thp(2 << 20), &pages, &state).is_ok());
}

/// Makes these system calls fail with `EPERM` in this thread and in those that it starts, as the default filter of containers does.
pub(in crate::memory) fn refuse(calls: &[libc::c_long]) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // The number of the call is the first word of seccomp_data.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for &call in calls {
        program.push(libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: 1, k: call as u32 });
        program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: both calls only restrict this thread. The kernel copies the filter during the call, and `program` outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter), 0);
    }
}

#[test]
fn where_policies_are_refused_first_touch_places_and_numa_maps_proves() {
    if !Path::new("/proc/self/numa_maps").exists() {
        not_tested!("no NUMA in this kernel");
    }
    let (policy, buffers) = std::thread::spawn(|| {
        refuse(&[libc::SYS_mbind, libc::SYS_set_mempolicy, libc::SYS_move_pages]);
        let policy = Policy::new();
        let allocate = |pages| Buffer::allocate_under(&plan(Bytes::mib(64), pages), root(), &policy, &|| false).unwrap();
        let buffers = [PageRequest::Base, PageRequest::Auto].map(allocate);
        (policy, buffers)
    })
    .join()
    .unwrap();
    for buffer in buffers {
        let placement = buffer.placement();
        assert_eq!((placement.status, placement.method), (PlacementStatus::Verified, Some(PlacementMethod::FirstTouch)), "{placement:?}");
        assert_eq!(placement.source, Some(PlacementSource::NumaMaps));
        // A transparent huge page counts as its base pages, and a pool page counts once.
        let page = if buffer.pages().obtained == Some(PageKind::Pool) { 2 << 20 } else { crate::base_page() as u64 };
        assert_eq!(placement.pages_by_node.get(&first_node()), Some(&((64 << 20) / page)));
    }
    // The refusal is remembered: the call is not tried again even where it would be allowed.
    let again = Buffer::allocate_under(&plan(Bytes::mib(1), PageRequest::Base), root(), &policy, &|| false).unwrap();
    assert_eq!(again.placement().method, Some(PlacementMethod::FirstTouch));
}

#[test]
fn a_node_without_usable_cpus_cannot_be_placed_by_first_touch() {
    let tree = Fixture::new().files(&[
        ("sys/devices/system/node/online", "0-1000\n"),
        ("sys/devices/system/node/has_memory", "0-1000\n"),
        ("sys/devices/system/node/node1000/cpulist", "\n"),
    ]);
    let e = std::thread::spawn(move || {
        refuse(&[libc::SYS_mbind]);
        let far = BufferPlan { node: 1000, ..plan(Bytes::mib(1), PageRequest::Base) };
        Buffer::allocate_under(&far, tree.root(), &Policy::new(), &|| false).unwrap_err()
    })
    .join()
    .unwrap();
    assert_eq!(e.kind, MemoryErrorKind::Placement);
    assert!(e.why.contains("node 1000") && e.advice.to_string().contains("SYS_NICE"), "{e:?}");
}

#[test]
fn buffers_can_be_sent_and_shared() {
    fn both<T: Send + Sync>(_: &T) {}
    let buffer = Buffer::allocate(&plan(Bytes::mib(1), PageRequest::Base), root()).unwrap();
    both(&buffer);
    let sum = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // SAFETY: the byte is inside the buffer, and the other thread reads it only after this one was joined.
            unsafe { buffer.as_ptr().add(buffer.len() - 1).write(7) };
        });
        writer.join().unwrap();
        // SAFETY: the byte is inside the buffer, and the thread that wrote it has been joined.
        unsafe { buffer.as_ptr().add(buffer.len() - 1).read() }
    });
    assert_eq!(sum, 7);
}

#[test]
fn the_kernel_kills_this_process_first() {
    // In a child, because the score belongs to the process and must not change for other tests.
    // SAFETY: the child only makes system calls (opening a short path does not allocate), and exits without destructors or handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        prefer_out_of_memory_kill();
        let mut score = [0u8; 8];
        // SAFETY: the call reads into an array of the child, and then the child exits.
        unsafe {
            let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_RDONLY);
            let n = libc::read(file, score.as_mut_ptr().cast(), score.len());
            libc::_exit(i32::from(n != 5 || score[..5] != *b"1000\n"));
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just forked, and writes its status to `status`.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
}

#[test]
fn many_buffers_are_read_back_in_the_time_of_one() {
    let Ok(buffer) = Buffer::allocate(&plan(Bytes::mib(16), PageRequest::Base), root()) else {
        not_tested!("no memory");
    };
    let looked_up = |placement: Placement| placement.pages_by_node.values().sum::<u64>();
    if buffer.placement_now().source != Some(PlacementSource::MovePages) {
        not_tested!("pages cannot be looked up one by one");
    }
    let pages = (16 << 20) / crate::base_page() as u64;
    assert_eq!(looked_up(buffer.placement_now()), pages);
    assert_eq!(looked_up(buffer.placement_among(4)), pages.min(8192 / 4));
    assert_eq!(looked_up(buffer.placement_among(1024)), 64, "and not all of each");
}

#[test]
fn pages_in_turn_are_on_their_nodes_page_by_page() {
    let machine = crate::topology::read_machine(Path::new("/")).unwrap();
    let nodes = (1..).zip(machine.allowed.nodes.iter()).map(|(weight, node)| (node, weight));
    let weights = Weights::new(nodes).unwrap();
    for pages in [PageRequest::Base, PageRequest::Auto] {
        let plan = BufferPlan { weights: Some(weights.clone()), ..plan(Bytes::mib(16), pages) };
        let buffer = Buffer::allocate(&plan, Path::new("/")).unwrap();
        let placement = buffer.placement();
        if placement.status == PlacementStatus::Unverified {
            not_tested!("{:?}", placement.problems);
        }
        assert_eq!((placement.status, placement.method), (PlacementStatus::Verified, Some(PlacementMethod::Mbind)), "{placement:?}");
        let counted: u64 = placement.pages_by_node.values().sum();
        assert!(placement.pages_by_node.keys().copied().eq(weights.nodes().iter()), "{placement:?}");
        assert!(counted.is_power_of_two(), "every page is counted: {counted}");
        assert_eq!(buffer.placement_now(), *placement, "a later look keeps the counts of all pages");
        let shares: f64 = buffer.shares().iter().map(|(_, share)| share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}
