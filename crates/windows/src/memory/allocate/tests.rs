//! Allocation on this machine, which may be Wine: one node, no large pages, and no node of single pages.

use std::mem::size_of;

use memgauge_model::result::PlacementSource;
use windows_sys::Win32::System::Memory::{MEM_COMMIT, MEM_FREE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, VirtualQuery};

use super::*;

pub(in crate::memory) fn plan(bytes: Bytes, pages: PageRequest) -> BufferPlan {
    BufferPlan { touch: IdSet::one(0), ..BufferPlan::plain(bytes, 0, pages) }
}

fn root() -> &'static Path {
    Path::new("/")
}

/// The state of the memory at an address: free, reserved or committed.
pub(in crate::memory) fn state_at(address: usize) -> u32 {
    let mut found = MEMORY_BASIC_INFORMATION::default();
    // SAFETY: the call writes one structure of this size, and looks the address up only.
    let known = unsafe { VirtualQuery(address as *const core::ffi::c_void, &raw mut found, size_of::<MEMORY_BASIC_INFORMATION>()) };
    assert_ne!(known, 0, "{address:x}");
    found.State
}

/// The content of a buffer, by base pages.
fn content(buffer: &Buffer) -> Vec<&[u8]> {
    // SAFETY: the buffer has this length, and nothing writes to it while it is borrowed.
    unsafe { std::slice::from_raw_parts(buffer.as_ptr(), buffer.len()) }.chunks(4096).collect()
}

/// Checks the placement that is right on this machine: one node, and all pages found on it or certain to be there.
pub(in crate::memory) fn assert_placed(placement: &Placement, bytes: u64) {
    assert_eq!((placement.status, placement.method), (PlacementStatus::Verified, Some(PlacementMethod::VirtualAllocNuma)), "{placement:?}");
    match placement.source {
        Some(PlacementSource::QueryWorkingSetEx) => {
            assert_eq!(placement.pages_by_node.get(&0).copied(), placement.pages_by_node.values().copied().reduce(|a, b| a + b));
            let looked_up = (bytes / base_page() as u64).min(placement::SAMPLE as u64);
            assert!(placement.pages_by_node[&0] as f64 >= 0.99 * looked_up as f64 && placement.pages_by_node[&0] <= looked_up);
        }
        source => assert_eq!(source, Some(PlacementSource::OnlyNode)),
    }
}

#[test]
fn base_pages_are_base_pages_on_the_node() {
    let buffer = Buffer::allocate(&plan(Bytes::mib(64), PageRequest::Base), root()).unwrap();
    let pages = buffer.pages();
    assert_eq!((pages.obtained, pages.page), (Some(PageKind::Base), Some(Bytes(base_page() as u64))), "{pages:?}");
    assert!(pages.share.unwrap() > 0.99 && pages.reason.is_none(), "{pages:?}");
    assert_eq!(buffer.len(), 64 << 20);
    assert_placed(buffer.placement(), 64 << 20);
    assert_placed(&buffer.placement_now(), 64 << 20);
    assert_eq!(buffer.node_at(buffer.len()), None);
    assert!(buffer.node_at(4097).is_none_or(|node| node == 0));
    assert!(buffer.fault().is_none() && buffer.file().is_none());
    assert!(buffer.physical().reason.unwrap().contains("drivers only") && buffer.physical_address(0).is_none());
}

#[test]
fn every_page_is_unlike_the_others() {
    let [one, two] = [(); 2].map(|()| Buffer::allocate(&plan(Bytes::mib(5), PageRequest::Auto), root()).unwrap());
    let mut pages: Vec<&[u8]> = content(&one).into_iter().chain(content(&two)).collect();
    assert_eq!(pages.len(), 2 * 5 * 256);
    pages.sort_unstable();
    assert!(pages.windows(2).all(|two| two[0] != two[1]) && pages.iter().all(|page| page.iter().any(|b| *b != 0)));
}

#[test]
fn guards_surround_a_buffer_and_nothing_remains() {
    let buffer = Buffer::allocate(&plan(Bytes::kib(100), PageRequest::Base), root()).unwrap();
    let start = buffer.as_ptr() as usize;
    let end = start + buffer.mapping.len();
    assert_eq!(buffer.mapping.len(), 100 << 10);
    assert_eq!([start - 1, start, end - 1, end, end + 4096].map(state_at), [MEM_RESERVE, MEM_COMMIT, MEM_COMMIT, MEM_RESERVE, MEM_RESERVE]);
    // Of an allocation that is not one region the guards are their own.
    let turns = Turns { weights: "0=1,1=2".parse().unwrap(), page: 64 << 10 };
    let mapping = Mapping::in_turn(1 << 20, Backing::Base(base_page()), &turns).unwrap();
    let start = mapping.data() as usize;
    let at = [start - 1, start, start + (1 << 20) - 1, start + (1 << 20)];
    assert_eq!(at.map(state_at), [MEM_RESERVE, MEM_COMMIT, MEM_COMMIT, MEM_RESERVE]);
}

#[test]
fn what_is_dropped_is_free() {
    // Addresses that other tests do not soon take: more than any of them allocates.
    let mapping = Mapping::new(4 << 30, Backing::Base(base_page()), Some(0)).map(|mapping| (mapping.data() as usize, mapping));
    let Ok((start, mapping)) = mapping else { return assert!(mapping.unwrap_err().raw_os_error().is_some()) };
    drop(mapping);
    assert_eq!(state_at(start + (2 << 30)), MEM_FREE);
}

#[test]
fn auto_takes_large_pages_or_says_why_not() {
    let buffer = Buffer::allocate(&plan(Bytes::mib(8), PageRequest::Auto), root()).unwrap();
    let pages = buffer.pages();
    match pages.obtained.unwrap() {
        PageKind::Large => assert_eq!((buffer.as_ptr() as usize % (2 << 20), pages.reason.as_deref()), (0, None)),
        PageKind::Base => assert!(!pages.reason.as_deref().unwrap().is_empty(), "{pages:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_asked_for_by_name_are_obtained_or_refused_with_advice() {
    for (request, page) in [(PageRequest::Huge2M, Bytes::mib(2)), (PageRequest::Huge1G, Bytes::gib(1))] {
        match Buffer::allocate(&plan(Bytes::mib(4), request), root()) {
            Ok(buffer) => assert_eq!((buffer.pages().obtained, buffer.pages().page), (Some(PageKind::Large), Some(page))),
            Err(e) => {
                assert!(matches!(e.kind, MemoryErrorKind::Pages | MemoryErrorKind::Space), "{e:?}");
                assert!(!e.why.is_empty() && e.advice.to_string().contains("--"), "{e:?}");
            }
        }
    }
    let e = Buffer::allocate(&plan(Bytes::mib(4), PageRequest::Thp), root()).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Pages);
    assert!(e.why.contains("Windows has no transparent huge pages") && e.advice.to_string().contains("--pages 2m"), "{e:?}");
}

#[test]
fn what_is_tried_depends_on_the_privilege() {
    let (base, large) = (Backing::Base(base_page()), Backing::Large(2 << 20));
    let tried = |pages, large| choose_backings(&plan(Bytes::mib(4), pages), large);
    assert_eq!(tried(PageRequest::Auto, Ok(2 << 20)).unwrap(), (vec![large, base], vec![]));
    assert_eq!(tried(PageRequest::Auto, Err("no".into())).unwrap(), (vec![base], vec!["no".to_owned()]));
    assert_eq!(tried(PageRequest::Base, Ok(2 << 20)).unwrap().0, [base]);
    assert_eq!(tried(PageRequest::Huge2M, Ok(2 << 20)).unwrap().0, [large]);
    assert_eq!(tried(PageRequest::Huge1G, Ok(2 << 20)).unwrap().0, [Backing::Large(1 << 30)]);
    let e = tried(PageRequest::Huge2M, Err("not held".into())).unwrap_err();
    let advice = e.advice.to_string();
    assert!(e.why == "not held" && advice.contains("Lock pages in memory") && advice.contains("log on again"), "{e:?}");
    assert!(tried(PageRequest::Huge2M, Ok(4 << 20)).unwrap_err().why.contains("4 MiB"));
}

#[test]
fn what_was_read_back_is_the_evidence() {
    let counts = |asked, resident, large| Ok(PageCounts { asked, resident, large });
    let kind = |backing, counts| {
        let pages = evidence(PageRequest::Auto, backing, counts, &["why".to_owned()]);
        (pages.obtained, pages.share, pages.page.map(|page| page.0), pages.reason)
    };
    let large = Backing::Large(2 << 20);
    assert_eq!(kind(large, counts(8, 8, 8)), (Some(PageKind::Large), Some(1.0), Some(2 << 20), None));
    assert_eq!(kind(large, counts(8, 8, 2)), (Some(PageKind::Base), Some(0.75), Some(4096), Some("why".to_owned())));
    assert_eq!(kind(Backing::Base(4096), counts(8, 6, 0)), (Some(PageKind::Base), Some(0.75), Some(4096), Some("why".to_owned())));
    for unknown in [counts(8, 0, 0), Err("no".to_owned())] {
        let (obtained, share, page, reason) = kind(large, unknown);
        assert_eq!((obtained, share, page), (None, None, None));
        assert!(reason.unwrap().starts_with("QueryWorkingSetEx: "));
    }
}

#[test]
fn impossible_sizes_and_nodes_are_named() {
    for bytes in [0, u64::MAX] {
        let e = Buffer::allocate(&plan(Bytes(bytes), PageRequest::Base), root()).unwrap_err();
        assert_eq!(e.kind, MemoryErrorKind::Size);
    }
    let weights = Some("0=1,1000=1".parse().unwrap());
    for elsewhere in [
        BufferPlan { node: 1000, ..plan(Bytes::mib(1), PageRequest::Base) },
        BufferPlan { weights, ..plan(Bytes::mib(1), PageRequest::Base) },
    ] {
        let e = Buffer::allocate(&elsewhere, root()).unwrap_err();
        assert_eq!(e.kind, MemoryErrorKind::Node);
        assert!(e.to_string().contains("node 1000 does not exist"), "{e}");
    }
    let e = Buffer::allocate(&plan(Bytes::gib(1 << 15), PageRequest::Base), root()).unwrap_err();
    assert_eq!(e.kind, MemoryErrorKind::Space);
    assert!(!e.advice.to_string().is_empty());
    // Without the check of what is available it is Windows that refuses.
    let base = Backing::Base(base_page());
    let refused = Mapping::new(1 << 50, base, Some(0)).unwrap_err();
    assert_eq!(error::mapping(&plan(Bytes(1 << 50), PageRequest::Base), base, &refused).kind, MemoryErrorKind::Space, "{refused:?}");
}

#[test]
fn an_interrupted_allocation_says_so() {
    let asked = std::sync::atomic::AtomicU32::new(0);
    let later = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 2;
    for interrupted in [&(|| true) as Interrupted<'_>, &later] {
        let e = Buffer::allocate_unless(&plan(Bytes::mib(32), PageRequest::Base), root(), interrupted).unwrap_err();
        assert_eq!(e.kind, MemoryErrorKind::Interrupted, "{e:?}");
        let e = Buffer::allocate_unbound(&plan(Bytes::mib(32), PageRequest::Base), root(), interrupted).unwrap_err();
        assert_eq!(e.kind, MemoryErrorKind::Interrupted, "{e:?}");
    }
}

#[test]
fn memory_without_a_node_is_as_given() {
    let buffer = Buffer::allocate_unbound(&plan(Bytes::mib(4), PageRequest::Auto), root(), &|| false).unwrap();
    assert_eq!((buffer.placement().status, buffer.placement().method), (PlacementStatus::Verified, Some(PlacementMethod::AsGiven)));
    assert_eq!(buffer.pages().obtained, Some(PageKind::Base));
    assert!(buffer.pages().reason.is_some());
}

#[test]
fn reserved_space_is_no_memory() {
    let pages = PageEvidence { obtained: Some(PageKind::Base), ..PageEvidence::default() };
    let buffer = Buffer::reserve(&plan(Bytes::gib(64), PageRequest::Base), pages.clone()).unwrap();
    assert_eq!((buffer.len(), buffer.pages(), buffer.shares()), (64 << 30, &pages, vec![(0, 1.0)]));
    assert_eq!(state_at(buffer.as_ptr() as usize + (32 << 30)), MEM_RESERVE);
    assert_eq!(buffer.placement_now(), *buffer.placement());
}

#[test]
fn pages_in_turn_are_read_back_page_by_page() {
    let plan = BufferPlan { weights: Some("0=3".parse().unwrap()), ..plan(Bytes::mib(16), PageRequest::Base) };
    let buffer = Buffer::allocate(&plan, root()).unwrap();
    let placement = buffer.placement();
    assert_eq!(placement.method, Some(PlacementMethod::VirtualAllocNuma));
    assert_eq!(placement.status, PlacementStatus::Verified, "{placement:?}");
    assert!(placement.pages_by_node[&0] <= 4096 && placement.pages_by_node[&0] > 4000);
    assert_eq!(buffer.placement_now(), *placement, "a later look keeps the counts of all pages");
    assert_eq!(buffer.shares(), [(0, 1.0)]);
    assert_eq!(content(&buffer).len(), 4096);
}

#[test]
fn turns_are_64_kib_and_longer_in_large_buffers() {
    let base = Backing::Base(4096);
    assert_eq!([1 << 20, 4 << 30, 5 << 30, 64 << 30].map(|len| base.turn(len)), [64 << 10, 64 << 10, 128 << 10, 1 << 20]);
    assert_eq!(Backing::Large(2 << 20).turn(1 << 30), 2 << 20);
}

#[test]
fn a_node_is_full_where_less_is_free_than_went_elsewhere() {
    assert!(placement::is_full(100 << 20, (50, 100), 49 << 20));
    assert!(!placement::is_full(100 << 20, (50, 100), 51 << 20));
}

#[test]
fn buffers_can_be_sent_and_shared() {
    fn both<T: Send + Sync>(_: &T) {}
    let buffer = Buffer::allocate(&plan(Bytes::mib(1), PageRequest::Base), root()).unwrap();
    both(&buffer);
    std::thread::scope(|scope| {
        let end = buffer.as_ptr() as usize + buffer.len() - 1;
        // SAFETY: the byte is inside the buffer, and it is read only after this thread has ended.
        scope.spawn(move || unsafe { (end as *mut u8).write(7) });
    });
    assert_eq!(content(&buffer).last().unwrap()[4095], 7);
}
