//! The timed loops: memory traffic, pointer chases, clocks and delays, in assembly, one file per instruction set.
//!
//! Every loop is an `asm!` block, so the code that is measured is the code that is written here: no compiler drops a load whose value is unused,
//! widens a store or reorders a mix. Instruction-set extensions are detected at run time, so nothing depends on compiler flags.
//!
//! **A kernel declares its traffic.** Each [`Kernel`] states the bytes that one step reads and writes in each of its streams, and the
//! tests hold it to that: they record the address of every access that a kernel makes and compare it with the declaration.
//!
//! **The shape of a kernel.** The unit is a *chunk* of four cache lines, or of three or nine where the ratio of the mix needs it. The list of
//! mixes (`mixes.rs` in `memgauge_model::traffic`) has its operations; an instruction set has a text for each operation (load, store, non-temporal
//! store …), and for each [form](Kernel::form) a text that leads from line to line. A run without delay is a loop over *steps* of [`CHUNKS_PER_ITERATION`] chunks, 12 to 36 lines, long enough that the loop's
//! own two or three instructions cost nothing next to the loads and stores. A paced run is a loop over the same chunks with a delay
//! after each.
//!
//! **Forms.** Most kernels visit every line, one after the other, and touch all of it. The others have a different
//! [form](Kernel::form): one line per stride, a part of each line, lines in pseudo-random order ([`Order`]), lines written back
//! after the store, lines added to a checksum. A [`Walk`] holds what such a run needs.
//!
//! **Registers are overwritten unconsumed.** Loads of a kernel that only reads all go to the same register. Register renaming gives
//! each load a register of its own, so no load waits for another. Adding the values up, as compiled code must, would only add work.
//!
//! **The data stored is not zero** unless the instruction allows nothing else ([`Line::STORED`], or the caller's line): some Intel cores do not
//! write back lines that were zero and are overwritten with zeros, and memory or links may compress zeros. It comes from registers that
//! hold one line, so storing a pattern costs what storing a constant does.
//!
//! **Alignment.** Streams start at cache-line boundaries and accesses never straddle lines. On x86-64 and aarch64 the heads of kernels'
//! loops, of [`chase`], of [`chase_timed`]'s batches and of [`dependent_adds`] are 64-byte aligned, so that their fetching and decoding do not
//! vary from build to build. [`chase_exact`] and [`chase_store`] are a load and a branch, whose time is that of the load at any alignment.
//!
//! **Non-temporal stores and write-backs are fenced** once, at the end of a run, where they are not ordered like other stores, so that the
//! time of a run includes the last of them and another thread that sees the run's end sees its data. Non-temporal pairs of aarch64 are
//! ordered like any store and need no fence.
//!
//! No other crate has `cfg(target_arch)`, except `windows` for CPUID.

use std::sync::LazyLock;

use memgauge_model::plan::KernelRow;
use memgauge_model::traffic::LineUse;

mod core_type;
mod kernel;
mod line;
mod order;
mod recovery;
#[macro_use]
mod text;
mod wide;

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

pub use arch::{chase, chase_exact, chase_store, chase_timed, dependent_adds};
pub use core_type::CoreType;
pub use kernel::{CHUNKS_PER_ITERATION, Kernel, MAX_STREAMS, Stream, Walk};
pub use line::{LINE, Line, STORED_BYTE};
pub use order::Order;
pub use recovery::{is_lost, recover};
pub use text::CHASE_UNROLL;
pub use wide::Wide;

/// Every kernel of this instruction set, whether or not this CPU can run it.
pub fn all() -> &'static [Kernel] {
    static ALL: LazyLock<Vec<Kernel>> = LazyLock::new(arch::kernels);
    &ALL
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
    available().map(|k| KernelRow { name: k.name.to_owned(), mix: k.mix, width: k.width, form: k.form }).collect()
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

/// Whether the CPU says that this runs under a hypervisor; `None` where CPUs do not say.
pub fn hypervisor_announced() -> Option<bool> {
    arch::hypervisor_announced()
}

/// The type of the core that runs this; `None` where the CPU does not say that there are several.
pub fn core_type() -> Option<CoreType> {
    arch::core_type()
}

/// The time counter's name if it runs at one rate whatever the core's frequency and sleep state.
///
/// # Errors
///
/// The reason why that is unknown.
pub fn invariant_counter() -> Result<&'static str, &'static str> {
    arch::invariant_counter()
}

/// The exclusive or of the 8-byte words from `start` on, read as fast as the widest loads of this CPU can: a checksum that changes with any
/// bit. Rounds down to whole words.
///
/// # Safety
///
/// `bytes` bytes from `start`, which is 8-byte aligned, are valid for reads and initialised. Nobody writes to them meanwhile.
pub unsafe fn checksum_xor(start: *const u8, bytes: usize) -> u64 {
    let words = |from: usize, to: usize| {
        (from / 8..to / 8).fold(0, |sum, word| {
            // SAFETY: within what the caller promises.
            sum ^ unsafe { start.cast::<u64>().add(word).read() }
        })
    };
    let head = start.align_offset(LINE as usize).min(bytes);
    let widest = available().filter(|k| k.form.line == LineUse::Checked).max_by_key(|k| k.width);
    let Some(kernel) = widest else { return words(0, bytes) };
    let steps = (bytes - head) / kernel.streams[0].advance();
    let mut streams = [std::ptr::null_mut(); MAX_STREAMS];
    streams[0] = start.wrapping_add(head).cast_mut();
    let mut walk = Walk::new(streams);
    // SAFETY: within what the caller promises; the kernel has one stream and only reads it.
    unsafe { kernel.walk(&mut walk, steps, None) };
    words(0, head) ^ walk.sum.xor_of_words() ^ words(head + steps * kernel.streams[0].advance(), bytes)
}

/// Writes this line back to memory if modified and drops it from every cache; done for certain only after a [`fence`].
/// Does nothing on riscv64, where programs may flush only with an extension (Zicbom) that nothing here asks for.
///
/// # Safety
///
/// `line` points to mapped, readable memory.
#[inline(always)]
pub unsafe fn flush(line: *const u8) {
    // SAFETY: the caller's promise is the function's requirement.
    unsafe { arch::flush(line) }
}

/// Asks for a line that will be read soon. Any address will do: what is not mapped is left alone. Does nothing on riscv64.
#[inline(always)]
pub fn prefetch(line: *const u8) {
    arch::prefetch(line);
}

/// Writes words so that the caches do not hold them afterwards: by non-temporal stores where there are any, otherwise by stores whose lines
/// are dropped ([`flush`]). Done for certain only after a [`fence`].
///
/// # Safety
///
/// As many words from `to` on, which is a multiple of 16, are valid for writes, and no other thread uses them.
#[inline(always)]
pub unsafe fn write_past_caches(to: *mut u64, words: &[u64]) {
    // SAFETY: the caller's promise is the function's requirement.
    unsafe { arch::write_past_caches(to, words) }
}

/// Runs loops that the compiler turns into vector instructions, compiled for wider registers where this CPU has them: AVX2 on x86-64.
pub fn with_wide_registers<W: Wide>(work: W) -> W::Output {
    arch::with_wide_registers(work)
}

/// Whether [`flush`] drops lines from the caches on this instruction set.
pub const fn flushes() -> bool {
    arch::FLUSHES
}

/// Waits until every earlier load, store and flush of this thread is done.
#[inline(always)]
pub fn fence() {
    arch::fence();
}

/// Whether the CPU announces AMD's register of prefetchers (CPUID 8000_0021h EAX bit 13).
pub fn has_prefetch_control() -> bool {
    arch::has_prefetch_control()
}
