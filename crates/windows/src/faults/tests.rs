//! Faults that are made here, and what the handler does of one that cannot be made.

use windows_sys::Win32::System::Diagnostics::Debug::{SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX, SetErrorMode};

use super::*;

/// A ring of lines whose third pointer is wrong, in memory whose addresses stay.
fn broken_ring(wrong: usize) -> Box<[[usize; 8]; 4]> {
    let mut ring = Box::new([[0_usize; 8]; 4]);
    let at = |i: usize, ring: &[[usize; 8]; 4]| &raw const ring[i] as usize;
    (ring[0][0], ring[1][0], ring[2][0]) = (at(1, &ring), at(2, &ring), wrong);
    ring
}

#[test]
fn a_chase_that_meets_a_wrong_pointer_ends_and_says_so() {
    install();
    // A pointer to nowhere, one that no address may be, one into the kernel.
    for wrong in [0x10_usize, 0x7ff0_0000_0000, 0x00ff_0000_0000_1230, usize::MAX - 4095] {
        let ring = broken_ring(wrong);
        let start: *const u8 = (&raw const ring[0]).cast();
        // SAFETY: the first pointers lead within the ring, and a fault of what follows them is handled.
        let ends = unsafe {
            let mut batches = [1; 3];
            [
                memgauge_kernels::chase(start, 128),
                memgauge_kernels::chase_exact(start, 1000),
                memgauge_kernels::chase_store(start, 1000, start..start.add(size_of_val(&ring))),
                memgauge_kernels::chase_timed(start, 100, &mut batches),
            ]
        };
        assert!(ends.iter().all(|end| memgauge_kernels::is_lost(*end)), "{wrong:#x}: {ends:?}");
        // SAFETY: two hops stay within the ring.
        let end = unsafe { memgauge_kernels::chase_exact(start, 2) };
        assert!(!memgauge_kernels::is_lost(end) && std::ptr::eq(end.cast(), &raw const ring[2]));
    }
}

/// Marks as the handler does for an exception, which cannot be made without a device that fails.
#[test]
fn the_first_page_that_could_not_be_provided_is_kept() {
    let memory = vec![0_u8; 8 * PAGE];
    let start = memory.as_ptr().align_offset(PAGE);
    let start = memory.as_ptr().wrapping_add(start);
    let at = |offset: usize| start as usize + offset;
    let watched = Watched::new(start, 7 * PAGE);
    assert_eq!(watched.fault(), None);
    const IO_DEVICE_ERROR: NTSTATUS = 0xC000_0185_u32 as NTSTATUS;
    mark(at(7 * PAGE), IO_DEVICE_ERROR);
    assert_eq!(watched.fault(), None, "behind the range");
    mark(at(3 * PAGE + 24), IO_DEVICE_ERROR);
    mark(at(5 * PAGE), STATUS_HARDWARE_MEMORY_ERROR);
    assert_eq!(watched.fault(), Some(Fault { poisoned: false, offset: 3 * PAGE as u64 }));
    drop(watched);
    let again = Watched::new(start, 7 * PAGE);
    assert_eq!(again.fault(), None, "another buffer at the same place");
    mark(at(5 * PAGE), STATUS_HARDWARE_MEMORY_ERROR);
    assert_eq!(again.fault(), Some(Fault { poisoned: true, offset: 5 * PAGE as u64 }));
}

#[test]
fn a_fault_is_kept_with_its_page() {
    for (poisoned, offset) in [(false, 0), (true, 0), (true, 7 << 30), (false, 4096)] {
        let fault = Fault { poisoned, offset };
        assert_eq!(Fault::unpacked(fault.packed()), Some(fault));
    }
    assert_eq!(Fault::unpacked(0), None);
}

/// Threads watch a page below an address and one above it, in turn. The address is in neither.
#[test]
fn no_address_is_between_the_start_of_one_range_and_the_end_of_the_next() {
    use std::sync::atomic::AtomicBool;
    let memory = vec![0_u8; 4 * PAGE];
    let below = (memory.as_ptr() as usize).next_multiple_of(PAGE);
    let ended = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    for start in [below, below + 2 * PAGE] {
                        drop(Watched::new(start as *const u8, PAGE));
                    }
                }
            });
        }
        let begin = std::time::Instant::now();
        let mut found = 0;
        while begin.elapsed() < std::time::Duration::from_millis(300) {
            found += Block::all().take(100).filter(|place| place.around(below + PAGE).is_some()).count();
        }
        ended.store(true, Ordering::Relaxed);
        found
    });
    assert_eq!(found, 0);
}

/// Runs this test again in a process of its own, which does what is to end it, and returns its exit code.
fn ended_child(name: &str, doing: impl FnOnce()) -> Option<i32> {
    const CHILD: &str = "MEMGAUGE_TEST_FAULT";
    if std::env::var_os(CHILD).is_some() {
        // No dialogue and no debugger.
        // SAFETY: the call has no preconditions.
        unsafe { SetErrorMode(SEM_NOGPFAULTERRORBOX | SEM_FAILCRITICALERRORS) };
        doing();
        std::process::exit(0);
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", &format!("faults::tests::{name}"), "--nocapture"]).env(CHILD, "1").output().unwrap();
    output.status.code()
}

#[test]
fn any_other_fault_ends_the_process_as_before() {
    let code = ended_child("any_other_fault_ends_the_process_as_before", || {
        install();
        // SAFETY: none: this process is to end by it.
        unsafe { (16 as *const u8).read_volatile() };
    });
    assert_eq!(code, Some(EXCEPTION_ACCESS_VIOLATION));
}

#[test]
fn a_load_behind_the_end_of_a_buffer_ends_the_process() {
    let code = ended_child("a_load_behind_the_end_of_a_buffer_ends_the_process", || {
        let plan = memgauge_model::plan::BufferPlan {
            touch: memgauge_model::units::IdSet::one(0),
            ..memgauge_model::plan::BufferPlan::plain(
                memgauge_model::units::Bytes::kib(64),
                0,
                memgauge_model::experiment::PageRequest::Base,
            )
        };
        let buffer = crate::memory::Buffer::allocate(&plan, std::path::Path::new("/")).unwrap();
        // SAFETY: none behind the end: this process is to end by it.
        unsafe {
            buffer.as_ptr().add(buffer.len() - 1).read_volatile();
            buffer.as_ptr().add(buffer.len()).read_volatile();
        }
    });
    assert_eq!(code, Some(EXCEPTION_ACCESS_VIOLATION));
}
