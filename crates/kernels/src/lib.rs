//! The timed loops: memory traffic, pointer chases, clocks and delays, in assembly, one file per instruction set.
//!
//! Every loop is an `asm!` block, so what is measured is what is written here: no compiler drops a load whose value nobody wants, widens
//! a store or reorders a mix. Instruction-set extensions are detected at run time; nothing depends on how the program was compiled.
//!
//! **A kernel declares its traffic.** Each [`Kernel`] states the bytes that one step reads and writes in each of its streams, and the
//! tests hold it to that: they record the address of every access that a kernel makes and compare it with the declaration.
//!
//! **The shape of a kernel.** The unit is a *burst* of four cache lines (three where a mix's smallest unit has three), written once as
//! text.
//! [`Kernel::run`] is a loop over *steps* of [`BURSTS_PER_STEP`] bursts, 12 to 16 lines, long enough that the loop's own two or three
//! instructions
//! cost nothing next to the loads and stores. [`Kernel::run_paced`] is a loop over the same bursts with a delay after each.
//!
//! **Registers are overwritten unconsumed.** Loads of a kernel that only reads all go to the same register. Register renaming gives
//! each load
//! a register of its own, so none waits for another; adding the values up, as code for a compiler has to, would only add work.
//!
//! **The data stored is not zero** wherever the instruction leaves a choice ([`STORED_BYTE`]): some Intel cores do not write back lines
//! that were zero and
//! are overwritten with zeros, and memory or links may compress zeros.
//!
//! **Alignment.** Streams start at cache-line boundaries and accesses never straddle lines. The head of each loop is 64-byte aligned,
//! so that its
//! fetching and decoding do not vary from build to build.
//!
//! **Non-temporal stores are fenced** once, at the end of a run, so that the time of a run includes the write-combining buffers' last
//! lines and
//! another thread that sees the run's end sees its data.
//!
//! Other crates have no `cfg(target_arch)`: it is here, once.

use memgauge_core::plan::KernelRow;
use memgauge_core::traffic::{Mix, Width};

#[macro_use]
mod text;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
use aarch64 as arch;
#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "riscv64")]
use riscv64 as arch;
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
use x86_64 as arch;

/// The most streams that a kernel has.
pub const MAX_STREAMS: usize = 4;

/// Bursts in one step of every kernel.
pub const BURSTS_PER_STEP: u32 = 4;

/// Bytes of a cache line: the unit in which kernels touch memory on every instruction set here. Machines with 128-byte lines
/// (some Arm cores) see two consecutive accesses to each.
pub const LINE: u32 = 64;

/// The byte that plain and non-temporal store kernels and `rep stosb` write; `dc zva` writes zeros, copies and triads what they read.
pub const STORED_BYTE: u8 = 0xA5;

/// Hops of [`chase`] between two of its branches.
pub const CHASE_UNROLL: usize = 64;

/// One memory stream of a kernel: the bytes that one step reads and writes there.
///
/// A step touches each of the first `max(read, write)` bytes from where the last one ended exactly once, in ascending order of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Bytes read per step.
    pub read: u32,
    /// Bytes written per step.
    pub write: u32,
}

impl Stream {
    /// Bytes by which one step advances.
    pub const fn advance(&self) -> usize {
        if self.read > self.write { self.read as usize } else { self.write as usize }
    }

    /// A stream that is read: `burst` bytes a burst.
    const fn read(burst: u32) -> Self {
        Self { read: burst * BURSTS_PER_STEP, write: 0 }
    }

    /// A stream that is written: `burst` bytes a burst.
    const fn write(burst: u32) -> Self {
        Self { read: 0, write: burst * BURSTS_PER_STEP }
    }
}

type Pointers = [*mut u8; MAX_STREAMS];

/// A loop that produces memory traffic, and what it declares about it.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Its name, such as `load-avx2` or `triad-nt-avx512`.
    pub name: &'static str,
    /// The mix it produces.
    pub mix: Mix,
    /// The width of its loads and stores.
    pub width: Width,
    /// Its streams; they advance together.
    pub streams: &'static [Stream],
    /// Lines moved, loads and stores together, between two delays of the paced form.
    pub burst_lines: u32,
    supported: fn() -> bool,
    run: unsafe fn(&Pointers, usize),
    paced: unsafe fn(&Pointers, usize, u32),
}

impl Kernel {
    /// Bytes that the program reads in one step, all streams together.
    pub fn read_per_step(&self) -> u64 {
        self.streams.iter().map(|s| u64::from(s.read)).sum()
    }

    /// Bytes that the program writes in one step, all streams together.
    pub fn written_per_step(&self) -> u64 {
        self.streams.iter().map(|s| u64::from(s.write)).sum()
    }

    /// Whether this CPU, and the operating system on it, can run the kernel.
    pub fn supported(&self) -> bool {
        (self.supported)()
    }

    /// Runs `steps` steps from these stream pointers; pointers beyond the kernel's streams are ignored.
    ///
    /// # Safety
    ///
    /// The kernel is [supported](Self::supported). Each stream's pointer is 64-byte aligned and valid for `steps` times its
    /// [`advance`](Stream::advance), for writes where the stream is written, and no written stream overlaps another. No reference
    /// to the memory is live.
    #[inline]
    pub unsafe fn run(&self, streams: &[*mut u8; MAX_STREAMS], steps: usize) {
        // SAFETY: the caller's promise is the function's requirement.
        unsafe { (self.run)(streams, steps) }
    }

    /// The same traffic with a delay of `delay` core cycles after every burst of [`burst_lines`](Self::burst_lines) lines.
    ///
    /// The delay is a chain of that many dependent subtractions. Chains follow one another without overlap, and the next burst's
    /// addresses depend on
    /// the end of the chain before, so an out-of-order core cannot issue bursts ahead of their delay: it starts one every `delay`
    /// cycles at most. The chain
    /// does not wait for the burst's data. A core that takes a branch only every second cycle makes the delay twice as long.
    ///
    /// A delay of 0 is legal and runs the loop over bursts without waiting. String kernels start their instruction anew
    /// for each burst, which may then choose another protocol towards memory than for a long run.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run).
    #[inline]
    pub unsafe fn run_paced(&self, streams: &[*mut u8; MAX_STREAMS], steps: usize, delay: u32) {
        // SAFETY: the caller's promise is the function's requirement.
        unsafe { (self.paced)(streams, steps, delay) }
    }
}

/// Every kernel of this instruction set, whether or not this CPU can run it.
pub fn all() -> &'static [Kernel] {
    arch::KERNELS
}

/// The kernels that this CPU can run.
pub fn available() -> impl Iterator<Item = &'static Kernel> {
    all().iter().filter(|k| k.supported())
}

/// The kernel of this name.
pub fn find(name: &str) -> Option<&'static Kernel> {
    all().iter().find(|k| k.name == name)
}

/// The kernels that this CPU can run, as the planner sees them.
pub fn rows() -> Vec<KernelRow> {
    available().map(|k| KernelRow { name: k.name.to_owned(), mix: k.mix, width: k.width }).collect()
}

/// The instruction set: `x86-64`, `aarch64` or `riscv64`.
pub fn isa() -> &'static str {
    arch::ISA
}

/// The time counter, in its own ticks; may be read before earlier instructions have finished.
#[inline(always)]
pub fn ticks() -> u64 {
    arch::ticks()
}

/// The time counter, read after every earlier load has its data and before any later instruction starts. Stores may still be on their way:
/// put a [`fence`] before where they must not be.
#[inline(always)]
pub fn ticks_fenced() -> u64 {
    arch::ticks_fenced()
}

/// The time counter's frequency in Hz, where the CPU or the hypervisor states it. Nominal: compare it with the system's clock before
/// trusting it.
pub fn counter_frequency() -> Option<f64> {
    arch::counter_frequency()
}

/// The time counter's name if it runs at one rate whatever the core's frequency and sleep state.
///
/// # Errors
///
/// Why it is not known to.
pub fn invariant_counter() -> Result<&'static str, &'static str> {
    arch::invariant_counter()
}

/// `n` dependent additions of one cycle each: the time that they take is `n` core cycles, which gives the core's frequency.
/// Returns the sum, `n`.
#[inline]
pub fn dependent_adds(n: u64) -> u64 {
    arch::dependent_adds(n)
}

/// Tells the core that this is a spin-wait loop.
#[inline(always)]
pub fn spin_hint() {
    core::hint::spin_loop();
}

/// Follows `hops` pointers, one load each, and returns where it ends. Rounds down to a multiple of [`CHASE_UNROLL`].
///
/// # Safety
///
/// `start` and every pointer found from it within `hops` hops point to 8 aligned bytes that hold the next pointer.
#[inline]
pub unsafe fn chase(start: *const u8, hops: usize) -> *const u8 {
    // SAFETY: the caller's promise is the function's requirement.
    unsafe { arch::chase(start, hops) }
}

/// Follows exactly `hops` pointers, with a branch after each.
///
/// # Safety
///
/// As [`chase`].
#[inline]
pub unsafe fn chase_exact(start: *const u8, hops: usize) -> *const u8 {
    // SAFETY: the caller's promise is the function's requirement.
    unsafe { arch::chase_exact(start, hops) }
}

/// Follows exactly `hops` pointers and modifies each line that it leaves (bytes 8 to 15 from the pointer receive the hops left), so
/// that this
/// core then holds it modified.
///
/// # Safety
///
/// As [`chase`], and bytes 8 to 15 of every place visited may be written.
#[inline]
pub unsafe fn chase_store(start: *const u8, hops: usize) -> *const u8 {
    // SAFETY: the caller's promise is the function's requirement.
    unsafe { arch::chase_store(start, hops) }
}

/// Writes this line back to memory if modified and drops it from every cache; done for certain only after a [`fence`].
/// Does nothing where [`can_flush`] is false.
///
/// # Safety
///
/// `line` points to mapped, readable memory.
#[inline(always)]
pub unsafe fn flush(line: *const u8) {
    // SAFETY: the caller's promise is the function's requirement.
    unsafe { arch::flush(line) }
}

/// Whether [`flush`] does something on this instruction set.
pub const fn can_flush() -> bool {
    arch::CAN_FLUSH
}

/// Waits until every earlier load, store and flush of this thread is done.
#[inline(always)]
pub fn fence() {
    arch::fence();
}

/// The CPU that this thread is on, by a register that the kernel sets, modulo 4096; cheap enough to detect a migration around a
/// measurement.
#[inline]
pub fn current_cpu_hint() -> Option<u32> {
    arch::current_cpu_hint()
}

/// Several lists of kernels as one; `N` is their length together.
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "the others have one list"))]
const fn joined<const N: usize>(lists: &[&[Kernel]]) -> [Kernel; N] {
    let mut out = [lists[0][0]; N];
    let (mut list, mut at, mut n) = (0, 0, 0);
    while n < N {
        if at == lists[list].len() {
            list += 1;
            at = 0;
        } else {
            out[n] = lists[list][at];
            at += 1;
            n += 1;
        }
    }
    assert!(list + 1 == lists.len() && at == lists[list].len(), "N is the lists' length together");
    out
}
