//! aarch64: the traffic kernels with NEON load and store pairs (32 bytes), their non-temporal forms, and `dc zva`.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only (as Neoverse N1, which has 64-byte `dc zva`, and as `max`, which has not).
//!
//! Non-temporal pairs need no fence at the end: they are hints about caching and ordered like any store.

use std::arch::asm;

use memgauge_core::traffic::{Mix, Width};

use crate::{BURSTS_PER_STEP, Kernel, LINE, Pointers, STORED_BYTE, Stream};

/// [`STORED_BYTE`] four times, to be broadcast to the register that is stored.
const STORED: u32 = u32::from_ne_bytes([STORED_BYTE; 4]);

/// The place in stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! at {
    ($s:literal, $bytes:literal) => {
        concat!("[{", $s, "}, #", $bytes, " * \\burst + \\line + \\part]")
    };
}

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst.
///
/// Loads go to `q0` and `q1`, a second stream's to `q2` and `q3`; `q4` holds what is stored; `x9` is free for addresses.
macro_rules! kernel {
    ($name:literal, $mix:ident, $width:ident, $supported:expr,
     streams [$($s:ident = $index:literal $access:ident $bytes:literal),+], burst $burst:expr) => {{
        unsafe fn run(p: &Pointers, steps: usize) {
            // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared.
            unsafe {
                asm!(
                    "cbz {n}, 3f",
                    "dup v4.4s, {stored:w}",
                    ".p2align 6",
                    "2:",
                    ".irp burst,0,1,2,3",
                    $burst,
                    ".endr",
                    $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, #4 * ", $bytes),)+
                    "subs {n}, {n}, #1",
                    "b.ne 2b",
                    "3:",
                    n = inout(reg) steps => _,
                    $($s = inout(reg) p[$index] => _,)+
                    stored = in(reg) STORED,
                    out("x9") _, out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _,
                    options(nostack),
                );
            }
        }
        unsafe fn paced(p: &Pointers, steps: usize, delay: u32) {
            // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared.
            unsafe {
                asm!(
                    "cbz {n}, 5f",
                    "dup v4.4s, {stored:w}",
                    ".p2align 6",
                    "2:",
                    ".irp burst,0",
                    $burst,
                    ".endr",
                    $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, #", $bytes),)+
                    // The count is 0 here, by the chain before: this delay starts when that one has ended.
                    "adds {count}, {count}, {delay}",
                    "b.eq 4f",
                    "3:",
                    "subs {count}, {count}, {one}",
                    "b.ne 3b",
                    "4:",
                    // Adds 0, after the chain: the next burst has no address before.
                    $(concat!("add {", stringify!($s), "}, {", stringify!($s), "}, {count}"),)+
                    "subs {n}, {n}, {one}",
                    "b.ne 2b",
                    "5:",
                    n = inout(reg) steps * BURSTS_PER_STEP as usize => _,
                    $($s = inout(reg) p[$index] => _,)+
                    count = inout(reg) 0_u64 => _,
                    delay = in(reg) u64::from(delay),
                    one = in(reg) 1_u64,
                    stored = in(reg) STORED,
                    out("x9") _, out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _,
                    options(nostack),
                );
            }
        }
        Kernel {
            name: $name,
            mix: Mix::$mix,
            width: Width::$width,
            streams: &[$(Stream::$access($bytes)),+],
            burst_lines: (0 $(+ $bytes)+) / LINE,
            supported: $supported,
            run,
            paced,
        }
    }};
}

/// Offsets of the two pairs in a line.
macro_rules! pairs {
    ($lines:literal, $($op:expr),+) => { each!($lines, "0,32", $($op),+) };
}

/// Loads a pair from stream `$s`.
macro_rules! ldp {
    ($s:literal, $bytes:literal) => {
        concat!("ldp q0, q1, ", at!($s, $bytes))
    };
}

/// Stores the fixed pair to stream `$s`.
macro_rules! stp {
    ($s:literal, $bytes:literal) => {
        concat!("stp q4, q4, ", at!($s, $bytes))
    };
}

/// NEON is part of every aarch64 Linux.
fn always() -> bool {
    true
}

/// Whether `dc zva` is allowed and zeroes 64 bytes, the alignment that streams have.
fn zva_64() -> bool {
    let id: u64;
    // SAFETY: reads an identification register open to programs.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    // Bit 4: prohibited. Bits 0 to 3: the logarithm of the block's 4-byte words.
    id & 0x1F == 4
}

pub(crate) const KERNELS: &[Kernel] = &[
    kernel!("load-neon", AllReads, Neon, always, streams [a = 0 read 256], burst pairs!("0,64,128,192", ldp!("a", 256))),
    // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
    kernel!("load-neon-x2", AllReads, Neon, always, streams [a = 0 read 128, b = 1 read 128],
        burst pairs!("0,64", ldp!("a", 128), ldp!("b", 128))),
    kernel!("load-neon-x4", AllReads, Neon, always, streams [a = 0 read 64, b = 1 read 64, c = 2 read 64, d = 3 read 64],
        burst pairs!("0", ldp!("a", 64), ldp!("b", 64), ldp!("c", 64), ldp!("d", 64))),
    // A prefetch beyond the stream's end is harmless: it never faults.
    kernel!("load-neon-prefetch", AllReads, Neon, always, streams [a = 0 read 256],
        burst concat!(
            each!("0,64,128,192", "4096", concat!("prfm pldl1keep, ", at!("a", 256))),
            pairs!("0,64,128,192", ldp!("a", 256)))),
    kernel!("load-neon-ldnp", AllReads, Neon, always, streams [a = 0 read 256],
        burst pairs!("0,64,128,192", concat!("ldnp q0, q1, ", at!("a", 256)))),
    kernel!("mix-4:1-neon", R4W1, Neon, always, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(pairs!("0,64,128", ldp!("a", 192)), pairs!("0", stp!("b", 64)))),
    kernel!("mix-3:1-neon", R3W1, Neon, always, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(pairs!("0,64", ldp!("a", 128)), pairs!("0", stp!("b", 64)))),
    kernel!("mix-2:1-neon", R2W1, Neon, always, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(pairs!("0,64", ldp!("a", 128)), pairs!("0,64", stp!("b", 128)))),
    kernel!("store-neon", R1W1, Neon, always, streams [a = 0 write 256], burst pairs!("0,64,128,192", stp!("a", 256))),
    kernel!("store-neon-x2", R1W1, Neon, always, streams [a = 0 write 128, b = 1 write 128],
        burst pairs!("0,64", stp!("a", 128), stp!("b", 128))),
    kernel!("nt-store-neon", NtWrite, Neon, always, streams [a = 0 write 256],
        burst pairs!("0,64,128,192", concat!("stnp q4, q4, ", at!("a", 256)))),
    // The sum needs both loads, as in STREAM's triad.
    kernel!("triad-nt-neon", R2W1Nt, Neon, always, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst pairs!("0",
            ldp!("a", 64),
            concat!("ldp q2, q3, ", at!("b", 64)),
            "add v0.4s, v0.4s, v2.4s",
            "add v1.4s, v1.4s, v3.4s",
            concat!("stnp q0, q1, ", at!("c", 64)))),
    kernel!("copy-nt-neon", R1W1Nt, Neon, always, streams [a = 0 read 128, b = 1 write 128],
        burst pairs!("0,64", ldp!("a", 128), concat!("stnp q0, q1, ", at!("b", 128)))),
    kernel!("copy-neon", Copy, Neon, always, streams [a = 0 read 128, b = 1 write 128],
        burst pairs!("0,64", ldp!("a", 128), concat!("stp q0, q1, ", at!("b", 128)))),
    kernel!("fill-zva", Fill, String, zva_64, streams [a = 0 write 256],
        burst each!("0,64,128,192", "0", "add x9, {a}, #256 * \\burst + \\line + \\part\n dc zva, x9")),
];
