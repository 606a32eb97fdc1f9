//! Chases that follow a pointer which memory has changed.
//!
//! A changed pointer that leads out of mapped memory faults in the load that follows it. (One that leads to other memory of the program does
//! not: whoever chases compares where the chase ended with where it must be.) The loops of chases therefore say in a table of the program where
//! their loads are and how they go on, as a kernel does for its accesses to the memory of programs: each loop adds an entry to the section
//! `memgauge_recoveries` (on Windows `.mgrecov`), and has a few instructions behind its function that put the address of [`CELL`] into the loop's register and go
//! back. The cell points to itself, so the loop then runs to its end without harm, and where it ends says what happened. The loops
//! themselves have no instruction more.

use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::arch;

/// A line whose pointer leads to itself. Loops that modify lines write beside it.
#[repr(C, align(128))]
pub(crate) struct Cell(AtomicPtr<u8>, AtomicU64);

/// Chases that met a pointer out of mapped memory end here.
pub(crate) static CELL: Cell = Cell(AtomicPtr::new((&raw const CELL).cast_mut().cast()), AtomicU64::new(0));

/// An entry of the table: distances in bytes from each of its fields to the first instruction that may fault, to the one behind the last, and
/// to where the loop goes on.
#[repr(C)]
struct Recovery {
    from: i32,
    to: i32,
    resume: i32,
}

#[cfg(not(windows))]
unsafe extern "C" {
    // Defined by the linker.
    #[link_name = "__start_memgauge_recoveries"]
    static FIRST: Recovery;
    #[link_name = "__stop_memgauge_recoveries"]
    static END: Recovery;
}

/// The table.
#[cfg(not(windows))]
fn recoveries() -> &'static [Recovery] {
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
    // SAFETY: the linker puts nothing but entries between the two addresses, and they are never written.
    unsafe {
        let (first, end) = (&raw const FIRST, &raw const END);
        std::slice::from_raw_parts(first, (end as usize - first as usize) / size_of::<Recovery>())
    }
}

#[cfg(windows)]
unsafe extern "C" {
    // The address that the program was loaded at, defined by the linker.
    #[link_name = "__ImageBase"]
    static IMAGE: u8;
}

/// The table: the section `.mgrecov`, which the headers of the program list (Microsoft's "PE Format").
#[cfg(windows)]
fn recoveries() -> &'static [Recovery] {
    /// Where the DOS header has the place of the PE header.
    const PE_HEADER: usize = 0x3C;
    /// In the PE header: the number of sections, and the size of the optional header, which comes behind these 24 bytes.
    const SECTIONS: usize = 6;
    const OPTIONAL_SIZE: usize = 20;
    const HEADER: usize = 24;
    /// An entry of the table of sections: its name, size and place are at its beginning.
    const SECTION: usize = 40;
    const NAME: [u8; 8] = *b".mgrecov";
    let image = &raw const IMAGE;
    // SAFETY: the system has mapped the headers of the program that it runs, and what they state is in them. Nobody writes the section, which
    // holds entries only.
    unsafe {
        let word = |at: usize| usize::from(image.add(at).cast::<u16>().read_unaligned());
        let double = |at: usize| image.add(at).cast::<u32>().read_unaligned() as usize;
        let header = double(PE_HEADER);
        let first = header + HEADER + word(header + OPTIONAL_SIZE);
        let mut sections = (0..word(header + SECTIONS)).map(|number| first + number * SECTION);
        let Some(section) = sections.find(|at| image.add(*at).cast::<[u8; 8]>().read() == NAME) else { return &[] };
        let (bytes, place) = (double(section + 8), double(section + 12));
        std::slice::from_raw_parts(image.add(place).cast(), bytes / size_of::<Recovery>())
    }
}

/// The address that a field of an entry states.
fn target(field: &i32) -> usize {
    (&raw const *field as usize).wrapping_add_signed(*field as isize)
}

/// Whether a chase that ended here met a pointer that led out of mapped memory, or, if it stores, out of its own. A pointer to another line of
/// memory that can be read leads elsewhere.
pub fn is_lost(at: *const u8) -> bool {
    at == (&raw const CELL).cast()
}

/// For the handler of a fault: where a chase's load or store faulted, makes the thread go on in that chase, which then [is lost](is_lost).
/// Returns false, and changes nothing, where it was another instruction. Neither locks nor allocates.
///
/// # Safety
/// `context` is the third argument of a signal handler that the kernel called for a fault of this thread, or on Windows the `CONTEXT` that an
/// exception handler got for one, and is still valid.
pub unsafe fn recover(context: *mut u8) -> bool {
    // SAFETY: the caller promises the kernel's structure. Its program counter is an aligned word at this offset.
    let counter = unsafe { &mut *context.add(arch::COUNTER_IN_CONTEXT).cast::<usize>() };
    let faulted = |entry: &&Recovery| (target(&entry.from)..target(&entry.to)).contains(&*counter);
    let Some(resume) = recoveries().iter().find(faulted).map(|entry| target(&entry.resume)) else { return false };
    *counter = resume;
    true
}
