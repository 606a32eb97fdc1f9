//! Chases that follow a pointer which memory has changed.
//!
//! A changed pointer leads anywhere, and the load that follows it faults. The loops of chases therefore say in a table of the program where
//! their loads are and how they go on, as a kernel does for its accesses to the memory of programs: each loop adds an entry to the section
//! `memgauge_recoveries`, and has a few instructions behind its function that put the address of [`CELL`] into the loop's register and go
//! back. The cell points to itself, so the loop then runs to its end without harm, and where it ends says what happened. The loops
//! themselves have no instruction more.

use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::arch;

/// A line whose pointer leads to itself. Loops that modify lines write beside it.
#[repr(C, align(128))]
pub(crate) struct Cell(AtomicPtr<u8>, AtomicU64);

/// Where chases end that lost their way.
pub(crate) static CELL: Cell = Cell(AtomicPtr::new((&raw const CELL).cast_mut().cast()), AtomicU64::new(0));

/// An entry of the table: distances in bytes from each of its fields to the first instruction that may fault, to the one behind the last, and
/// to where the loop goes on.
#[repr(C)]
struct Recovery {
    from: i32,
    to: i32,
    resume: i32,
}

unsafe extern "C" {
    // Defined by the linker.
    #[link_name = "__start_memgauge_recoveries"]
    static FIRST: Recovery;
    #[link_name = "__stop_memgauge_recoveries"]
    static END: Recovery;
}

/// The address that a field of an entry states.
fn target(field: &i32) -> usize {
    (&raw const *field as usize).wrapping_add_signed(*field as isize)
}

/// Whether a chase that ended here met a pointer that led out of memory.
pub fn is_lost(at: *const u8) -> bool {
    at == (&raw const CELL).cast()
}

/// For the handler of a fault: where a chase's load or store faulted, makes the thread go on in that chase, which then [is lost](is_lost).
/// Returns false, and changes nothing, where it was another instruction. Neither locks nor allocates.
///
/// # Safety
/// `context` is the third argument of a signal handler that the kernel called for a fault of this thread, and is still valid.
pub unsafe fn recover(context: *mut u8) -> bool {
    // An entry that covers no instruction: linkers define the ends of sections that exist only.
    // SAFETY: adds data to a section of its own, and no instruction here.
    unsafe {
        std::arch::asm!(
            ".pushsection memgauge_recoveries,\"aR\",@progbits",
            ".balign 4",
            ".long 0, 0, 0",
            ".popsection",
            options(nomem, nostack, preserves_flags)
        );
    }
    // SAFETY: the caller promises the kernel's structure, in which the program counter is an aligned word at this offset.
    let counter = unsafe { &mut *context.add(arch::COUNTER_IN_CONTEXT).cast::<usize>() };
    // SAFETY: the linker puts nothing but entries between the two addresses, and they are never written.
    let entries = unsafe {
        let (first, end) = (&raw const FIRST, &raw const END);
        std::slice::from_raw_parts(first, (end as usize - first as usize) / size_of::<Recovery>())
    };
    let faulted = |entry: &&Recovery| (target(&entry.from)..target(&entry.to)).contains(&*counter);
    let Some(resume) = entries.iter().find(faulted).map(|entry| target(&entry.resume)) else { return false };
    *counter = resume;
    true
}
