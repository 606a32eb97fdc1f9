//! Faults in memory that is measured: a file behind it was truncated, a page of it has a hardware error, or a chase met a pointer that led
//! elsewhere. They cost what was being measured and not the process.
//!
//! One handler of SIGSEGV and SIGBUS serves the process. A fault of a chase's load makes that chase go on from a line that leads to itself
//! ([`memgauge_kernels::recover`]). A SIGBUS in a range that is watched (`Watched`) maps zeros there, marks the range, and repeats the access:
//! loops go on without harm until they look at the clock, and whoever asks the range afterwards learns that what was read is worth nothing.
//! Any other fault ends the process as it did before: the earlier action is put back, and the instruction faults again.

use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::base_page;

/// Ranges of a block: the buffers of most runs. A scan of terabytes, and a run on a thousand CPUs, have more blocks.
const RANGES: usize = 512;
/// `si_code` of a SIGBUS for a page with a hardware error that this thread has used (`BUS_MCEERR_AR`, asm-generic/siginfo.h).
const BUS_MCEERR_AR: i32 = 4;
/// The same for a page that nobody has used yet (`BUS_MCEERR_AO`): the kernel tells processes that have it mapped where they or
/// `vm.memory_failure_early_kill` ask for that, and always where it is a page of persistent memory.
const BUS_MCEERR_AO: i32 = 5;

/// The first fault in a range: what the signal said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// A hardware error; otherwise the page could not be provided.
    pub(crate) poisoned: bool,
    /// The page, as a distance in bytes from the start of the range.
    pub(crate) offset: u64,
    /// The page's physical address, where it has an error and the kernel tells.
    pub(crate) physical: Option<u64>,
}

impl Fault {
    /// All but the physical address as a number that is not 0. Offsets are those of pages, whose lowest bits are 0.
    const fn packed(self) -> u64 {
        self.offset | 1 | (self.poisoned as u64) << 1
    }

    const fn unpacked(packed: u64, physical: u64) -> Option<Self> {
        if packed == 0 {
            return None;
        }
        let physical = if physical == 0 { None } else { Some(physical) };
        Some(Self { poisoned: packed & 2 != 0, offset: packed & !3, physical })
    }
}

/// A range that is watched, or a free place. The handler reads it at any time, so it is atomics.
///
/// A thread that fills it increments `fills` before it writes the new range. A reader that finds the same count before and after the rest
/// has read one range, and not the start of one and the end of the next.
struct Range {
    fills: AtomicUsize,
    /// 0 where the place is free, 1 while it is being filled.
    start: AtomicUsize,
    end: AtomicUsize,
    page: AtomicUsize,
    /// A [`Fault`], or 0.
    fault: AtomicU64,
    /// Its physical address, or 0.
    physical: AtomicU64,
}

/// Some ranges, and the block with more of them, or none. Blocks are added and never taken away: the handler may be reading any of them.
struct Block {
    ranges: [Range; RANGES],
    next: AtomicPtr<Block>,
}

static WATCHED: Block = Block::free();

impl Block {
    const fn free() -> Self {
        Self { ranges: [const { Range::free() }; RANGES], next: AtomicPtr::new(null_mut()) }
    }

    fn next(&self) -> Option<&'static Self> {
        // SAFETY: null, or a block that was leaked.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    /// The next block, which is made where there is none.
    fn next_or_new(&self) -> &'static Self {
        self.next().unwrap_or_else(|| {
            let new = Box::into_raw(Box::new(Self::free()));
            match self.next.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it was just leaked, and is never freed.
                Ok(_) => unsafe { &*new },
                Err(other) => {
                    // SAFETY: it was just leaked, nobody else has seen it, and the other one, which another thread has made, was leaked, too.
                    unsafe {
                        drop(Box::from_raw(new));
                        &*other
                    }
                }
            }
        })
    }

    /// All ranges.
    fn all() -> impl Iterator<Item = &'static Range> {
        std::iter::successors(Some(&WATCHED), |block| block.next()).flat_map(|block| &block.ranges)
    }

    /// A free place, which is now being filled.
    fn place() -> &'static Range {
        let mut block = &WATCHED;
        loop {
            if let Some(place) = block.ranges.iter().find(|range| range.take()) {
                return place;
            }
            block = block.next_or_new();
        }
    }
}

/// The bounds of a range, as its place had them at one moment.
#[derive(Clone, Copy)]
struct Bounds {
    start: usize,
    end: usize,
    page: usize,
}

impl Range {
    const fn free() -> Self {
        let [fills, start, end, page] = [const { AtomicUsize::new(0) }; 4];
        let [fault, physical] = [const { AtomicU64::new(0) }; 2];
        Self { fills, start, end, page, fault, physical }
    }

    /// Takes the place to fill it, if it is free.
    fn take(&self) -> bool {
        // Most are not, and a look costs less than an exchange.
        self.start.load(Ordering::Relaxed) == 0 && self.start.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The range in this place, where it has `address`.
    fn around(&self, address: usize) -> Option<Bounds> {
        let fills = self.fills.load(Ordering::Acquire);
        let [start, end, page] = [&self.start, &self.end, &self.page].map(|bound| bound.load(Ordering::Acquire));
        let is_one = self.fills.load(Ordering::Acquire) == fills;
        (is_one && start > 1 && (start..end).contains(&address)).then_some(Bounds { start, end, page })
    }
}

/// The place whose range has `address`, and the range.
fn watched(address: usize) -> Option<(&'static Range, Bounds)> {
    Block::all().find_map(|place| Some((place, place.around(address)?)))
}

/// The actions before this program's, of SIGSEGV and of SIGBUS.
static EARLIER: OnceLock<[libc::sigaction; 2]> = OnceLock::new();
const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// A range of memory that is watched until this is dropped.
pub(crate) struct Watched(Option<&'static Range>);

impl Watched {
    /// Not watched.
    pub(crate) const fn nothing() -> Self {
        Self(None)
    }

    /// Watches `len` bytes from `start` on. `page` is the least of it that can be mapped anew: a page of its pool, and otherwise a base page,
    /// as the kernel splits a transparent huge page where a part of it has an error.
    ///
    /// # Safety
    /// The range is mapped, whole pages, and the caller's until it drops this value: zeros may be mapped over any of its pages when an access
    /// to it raises SIGBUS.
    pub(crate) unsafe fn new(start: *const u8, len: usize, page: usize) -> Self {
        install();
        let range = Block::place();
        range.fills.fetch_add(1, Ordering::Release);
        range.end.store(start as usize + len, Ordering::Release);
        range.page.store(page, Ordering::Release);
        range.fault.store(0, Ordering::Relaxed);
        range.physical.store(0, Ordering::Relaxed);
        range.start.store(start as usize, Ordering::Release);
        Self(Some(range))
    }

    /// The first that happened to it.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let range = self.0?;
        Fault::unpacked(range.fault.load(Ordering::Acquire), range.physical.load(Ordering::Relaxed))
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Watched").field(&self.fault()).finish()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(range) = self.0 {
            range.start.store(0, Ordering::Release);
        }
    }
}

/// Installs the handler once. If the kernel refuses it, faults end the process as they would without it.
fn install() {
    EARLIER.get_or_init(|| {
        SIGNALS.map(|signal| {
            // SAFETY: a `sigaction` of zeros is valid: the default action with no flags.
            let (mut action, mut earlier): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
            action.sa_sigaction = handle as *const () as usize;
            // The standard library has given every thread a stack of its own for handlers. The kernel may announce an error in the middle of a
            // system call of a thread that does not use the page, so that call is restarted.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            // SAFETY: both point to structures of this function; the handler does nothing that is not safe in one. A fault before `EARLIER` is
            // set finds it empty and the default action.
            unsafe { libc::sigaction(signal, &raw const action, &raw mut earlier) };
            earlier
        })
    });
}

/// The handler. It reads and writes atomics, maps memory and sets actions, and neither allocates nor locks.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes what it says about the signal.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // A chase's own loads are within its buffer as long as its pointers are right: a fault there is the buffer's.
    let served = signal == libc::SIGBUS && serve(code, address);
    // An error in memory of this process that nobody has used yet: whoever uses it gets another signal.
    if served || (signal == libc::SIGBUS && code == BUS_MCEERR_AO) {
        return;
    }
    // SAFETY: `context` is this handler's third argument. Signals that a process sent (codes up to 0) interrupt any instruction.
    if code > 0 && unsafe { memgauge_kernels::recover(context.cast()) } {
        return;
    }
    let earlier = EARLIER.get().and_then(|earlier| earlier.get(usize::from(signal == libc::SIGBUS)));
    // SAFETY: puts back an action that the kernel returned, or the default one, which zeros are.
    unsafe {
        let default = std::mem::zeroed();
        libc::sigaction(signal, earlier.unwrap_or(&default), std::ptr::null_mut());
        if code <= 0 {
            // The instruction will not fault again.
            libc::raise(signal);
        }
    }
}

/// Maps zeros where a watched range cannot be accessed any more, and marks it.
fn serve(code: i32, address: usize) -> bool {
    // A thread that accesses a range holds it, so that the place stays what it was found to be.
    let Some((range, Bounds { start, end, page })) = watched(address) else { return false };
    let poisoned = matches!(code, BUS_MCEERR_AR | BUS_MCEERR_AO);
    let from = address / page * page;
    // Behind the end of a file nothing is left, and each page would fault.
    let len = if poisoned { page } else { end - from };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: whole pages of a range whose owner agreed to this (`Watched::new`), and which it holds while a thread accesses it. `errno` is put
    // back for the code that was interrupted.
    let (mapped, physical) = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        // Only until it is mapped anew.
        let physical = poisoned.then(|| physical_address(address)).flatten();
        let mapped = libc::mmap(from as *mut libc::c_void, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        *errno = before;
        (mapped != libc::MAP_FAILED, physical)
    };
    if mapped {
        let fault = Fault { poisoned, offset: from.saturating_sub(start) as u64, physical };
        // The first one stays: it is what went wrong, and others may follow from it.
        if range.fault.compare_exchange(0, fault.packed(), Ordering::Release, Ordering::Relaxed).is_ok() {
            range.physical.store(physical.unwrap_or(0), Ordering::Relaxed);
        }
    }
    mapped
}

/// The physical address of a page with a hardware error. The kernel has left an entry of swap in its place whose offset is the page's frame
/// number, and shows that to processes with CAP_SYS_ADMIN (Documentation/admin-guide/mm/pagemap.rst). May set `errno`; for a handler.
fn physical_address(address: usize) -> Option<u64> {
    /// Bits 0 to 54: five bits for the kind of the swap entry, and then its offset.
    const FRAME: u64 = (1 << 55) - 1;
    const KIND_BITS: u32 = 5;
    const SWAPPED: u64 = 1 << 62;
    let page = base_page();
    let mut entry = 0_u64;
    // SAFETY: a string that ends in zero; reads eight bytes to a number; closes what was opened.
    let read = unsafe {
        let file = libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return None;
        }
        let read = libc::pread(file, (&raw mut entry).cast(), size_of::<u64>(), (address / page * size_of::<u64>()) as libc::off_t);
        libc::close(file);
        read
    };
    if read != size_of::<u64>() as isize {
        return None;
    }
    let frame = if entry & SWAPPED == 0 { 0 } else { (entry & FRAME) >> KIND_BITS };
    (frame != 0).then(|| frame * page as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Installs the handler as the first buffer does.
    fn installed() {
        install();
    }

    #[test]
    fn a_chase_that_meets_a_wrong_pointer_ends_and_says_so() {
        installed();
        // A pointer to nowhere, one that no address may be, one into the kernel.
        for wrong in [0x10_usize, 0x7ff0_0000_0000, 0x00ff_0000_0000_1230, usize::MAX - 4095] {
            let mut ring = [[0_usize; 8]; 4];
            let at = |i: usize, ring: &[[usize; 8]; 4]| &raw const ring[i] as usize;
            (ring[0][0], ring[1][0], ring[2][0]) = (at(1, &ring), at(2, &ring), wrong);
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
            assert!(!memgauge_kernels::is_lost(end) && end as usize == at(2, &ring));
        }
    }

    #[test]
    fn a_file_that_is_truncated_reads_as_zeros_and_is_known_to_be_gone() {
        use std::os::fd::AsRawFd;
        let path = std::env::temp_dir().join(format!("memgauge-faults-{}", std::process::id()));
        let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (page, len) = (65536, 16 * 65536);
        file.set_len(len as u64).unwrap();
        let flags = libc::MAP_SHARED;
        // SAFETY: a mapping of the test's own file at an address of the kernel's choice.
        let data = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, file.as_raw_fd(), 0) };
        assert_ne!(data, libc::MAP_FAILED);
        let data = data.cast::<u8>();
        // SAFETY: the test's own mapping, of whole pages, which it keeps.
        let watched = unsafe { Watched::new(data, len, 4096) };
        // SAFETY: all bytes are within the mapping.
        unsafe { data.add(3 * page).write_volatile(7) };
        assert_eq!(watched.fault(), None);
        file.set_len(page as u64).unwrap();
        // SAFETY: as above; the access faults, and is served.
        unsafe {
            assert_eq!(data.add(3 * page).read_volatile(), 0);
            data.add(len - 1).write_volatile(9);
            assert_eq!(data.add(len - 1).read_volatile(), 9);
        }
        assert_eq!(watched.fault(), Some(Fault { poisoned: false, offset: 3 * page as u64, physical: None }));
        drop(watched);
        // SAFETY: the test's own mapping, which nothing uses any more.
        unsafe { libc::munmap(data.cast(), len) };
    }

    /// Threads watch a page below an address and one above it, in turn. The address is in neither.
    #[test]
    fn no_address_is_between_the_start_of_one_range_and_the_end_of_the_next() {
        use std::sync::atomic::AtomicBool;
        let page = base_page();
        // SAFETY: a mapping at an address of the kernel's choice, that nothing accesses.
        let data = unsafe { libc::mmap(std::ptr::null_mut(), 3 * page, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(data, libc::MAP_FAILED);
        let (below, ended) = (data as usize, AtomicBool::new(false));
        let found = std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        for start in [below, below + 2 * page] {
                            // SAFETY: whole pages of the test's own mapping, which it keeps.
                            drop(unsafe { Watched::new(start as *const u8, page, page) });
                        }
                    }
                });
            }
            let begin = std::time::Instant::now();
            let mut found = 0;
            while begin.elapsed() < std::time::Duration::from_millis(500) {
                found += (0..1000).filter(|_| watched(below + page).is_some()).count();
            }
            ended.store(true, Ordering::Relaxed);
            found
        });
        assert_eq!(found, 0);
        // SAFETY: the test's own mapping, which nothing uses any more.
        unsafe { libc::munmap(data, 3 * page) };
    }

    /// As many as a scan of 20 TB has regions of 1 GiB, which it holds to its end.
    #[test]
    fn every_range_is_watched_however_many_there_are() {
        const REGIONS: usize = 20_000;
        let page = base_page();
        // SAFETY: a mapping at an address of the kernel's choice, that nothing accesses.
        let data =
            unsafe { libc::mmap(std::ptr::null_mut(), REGIONS * page, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(data, libc::MAP_FAILED);
        let first = data as usize;
        // SAFETY: whole pages of the test's own mapping, which it keeps.
        let watch = |region: usize| unsafe { Watched::new((first + region * page) as *const u8, page, page) };
        let half = REGIONS / 2;
        let regions: Vec<Watched> = std::thread::scope(|scope| {
            let threads = [0..half, half..REGIONS].map(|part| scope.spawn(move || part.map(watch).collect::<Vec<_>>()));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let start = |region: usize| watched(first + region * page + page / 2).map(|(_, bounds)| bounds.start);
        assert_eq!(regions.len(), REGIONS);
        assert!((0..REGIONS).step_by(97).chain([REGIONS - 1]).all(|region| start(region) == Some(first + region * page)));
        // The last one is served.
        assert!(serve(BUS_MCEERR_AR, first + (REGIONS - 1) * page));
        assert_eq!(regions[REGIONS - 1].fault(), Some(Fault { poisoned: true, offset: 0, physical: None }));
        drop(regions);
        assert_eq!(start(REGIONS - 1), None);
        // SAFETY: the test's own mapping, which nothing uses any more.
        unsafe { libc::munmap(data, REGIONS * page) };
    }

    #[test]
    fn the_first_fault_is_kept_with_its_page() {
        for (poisoned, offset, physical) in [(false, 0, None), (true, 0, Some(4096)), (true, 7 << 30, None), (true, 4096, Some(5 << 40))] {
            let fault = Fault { poisoned, offset, physical };
            assert_eq!(Fault::unpacked(fault.packed(), physical.unwrap_or(0)), Some(fault));
        }
        assert_eq!(Fault::unpacked(0, 0), None);
    }

    /// Calls the part of the handler that serves ranges, as the kernel does for a page with a hardware error.
    #[test]
    fn a_page_with_a_hardware_error_reads_as_zeros_and_its_neighbours_as_before() {
        let (page, len) = (base_page(), 8 * base_page());
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // The page behind the range is this test's too: another test's buffer could be there.
        let mapping = len + page;
        // SAFETY: a mapping at an address of the kernel's choice.
        let data = unsafe { libc::mmap(std::ptr::null_mut(), mapping, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(data, libc::MAP_FAILED);
        let data = data.cast::<u8>();
        // SAFETY: the test's own mapping, of whole pages, which it keeps.
        unsafe { data.write_bytes(7, len) };
        for code in [BUS_MCEERR_AR, BUS_MCEERR_AO] {
            // SAFETY: as above.
            let watched = unsafe { Watched::new(data, len, page) };
            let at = if code == BUS_MCEERR_AR { 2 } else { 5 };
            assert!(serve(code, data as usize + at * page + 24));
            assert!(serve(BUS_MCEERR_AR, data as usize + 6 * page), "another page, later");
            // The kernel knows of no error here.
            assert_eq!(watched.fault(), Some(Fault { poisoned: true, offset: (at * page) as u64, physical: None }));
            // SAFETY: all bytes are within the mapping.
            let read = |at: usize| unsafe { data.add(at * page + 24).read_volatile() };
            assert_eq!((read(at - 1), read(at), read(at + 2)), (7, 0, 7));
            assert!(!serve(code, data as usize + len), "behind the range");
        }
        // SAFETY: the test's own mapping, which nothing uses any more.
        unsafe { libc::munmap(data.cast(), mapping) };
    }

    #[test]
    fn any_other_fault_ends_the_process_as_before() {
        const CHILD: &str = "MEMGAUGE_TEST_FAULT";
        if std::env::var_os(CHILD).is_some() {
            installed();
            // SAFETY: none: this process is to end by it.
            unsafe { (16 as *const u8).read_volatile() };
            std::process::exit(0);
        }
        use std::os::unix::process::ExitStatusExt;
        let test = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(test);
        let name = "faults::tests::any_other_fault_ends_the_process_as_before";
        let output = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{:?}", output.status);
    }
}
