//! aarch64: traffic over whole lines, one after the other, with NEON load and store pairs (32 bytes), their non-temporal forms, and
//! `dc zva`.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only (as Neoverse N1, which has 64-byte `dc zva`, and as `max`, which has not).
//!
//! Non-temporal pairs need no fence at the end: they are hints about caching and ordered like any store.

use std::arch::asm;

use crate::kernel::Kernel;
use crate::line::LINE;

/// Whether `dc zva` is allowed and zeroes 64 bytes, the alignment that streams have.
fn zva_64() -> bool {
    let id: u64;
    // SAFETY: reads an identification register open to programs.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) id, options(nomem, nostack, preserves_flags)) };
    // Bit 4: prohibited. Bits 0 to 3: the logarithm of the block's 4-byte words.
    id & 0x1F == 4
}

pub(super) const KERNELS: &[Kernel] = &[
    kernel!("load-neon", AllReads, streams [a = 0 read 256], burst pairs!("0,64,128,192", ldp!("a", 256))),
    // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
    kernel!("load-neon-x2", AllReads, streams [a = 0 read 128, b = 1 read 128],
        burst pairs!("0,64", ldp!("a", 128), ldp!("b", 128))),
    kernel!("load-neon-x4", AllReads, streams [a = 0 read 64, b = 1 read 64, c = 2 read 64, d = 3 read 64],
        burst pairs!("0", ldp!("a", 64), ldp!("b", 64), ldp!("c", 64), ldp!("d", 64))),
    // A prefetch beyond the stream's end is harmless: it never faults.
    kernel!("load-neon-prefetch", AllReads, streams [a = 0 read 256],
        burst concat!(
            each!("0,64,128,192", "4096", concat!("prfm pldl1keep, ", at!("a", 256))),
            pairs!("0,64,128,192", ldp!("a", 256)))),
    kernel!("load-neon-ldnp", AllReads, streams [a = 0 read 256],
        burst pairs!("0,64,128,192", concat!("ldnp q0, q1, ", at!("a", 256)))),
    // Loads reach 1008 bytes from their pointer, so it moves on after each burst.
    kernel!("mix-9:1-neon", R9W1, streams [a = 0 read 512, b = 1 write 64], advance own,
        burst concat!(
            pairs!("0,64,128,192,256,320,384,448", "ldp q0, q1, [{a}, #\\line + \\part]"),
            "stp q4, q5, [{b}]\n stp q6, q7, [{b}, #32]\n add {a}, {a}, #512\n add {b}, {b}, #64\n")),
    kernel!("mix-4:1-neon", R4W1, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(pairs!("0,64,128", ldp!("a", 192)), store_lines!("stp", "0", "b", 64))),
    kernel!("mix-3:1-neon", R3W1, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(pairs!("0,64", ldp!("a", 128)), store_lines!("stp", "0", "b", 64))),
    kernel!("mix-3:1-neon-x2", R3W1X2, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst concat!(pairs!("0", ldp!("a", 64), ldp!("b", 64)), store_lines!("stp", "0", "c", 64))),
    kernel!("mix-2:1-neon", R2W1, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(pairs!("0,64", ldp!("a", 128)), store_lines!("stp", "0,64", "b", 128))),
    kernel!("mix-3:2-neon", R3W2, streams [a = 0 read 64, b = 1 write 128],
        burst concat!(pairs!("0", ldp!("a", 64)), store_lines!("stp", "0,64", "b", 128))),
    kernel!("store-neon", R1W1, streams [a = 0 write 256], burst store_lines!("stp", "0,64,128,192", "a", 256)),
    kernel!("store-neon-x2", R1W1, streams [a = 0 write 128, b = 1 write 128],
        burst lines!("0,64",
            store_lines!("stp", "\\line", "a", 128), store_lines!("stp", "\\line", "b", 128))),
    kernel!("nt-store-neon", NtWrite, streams [a = 0 write 256],
        burst store_lines!("stnp", "0,64,128,192", "a", 256)),
    kernel!("mix-3:1-nt-neon", R3W1Nt, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(pairs!("0,64,128", ldp!("a", 192)), store_lines!("stnp", "0", "b", 64))),
    kernel!("mix-2:1-nt-neon", R2W1NtX1, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(pairs!("0,64", ldp!("a", 128)), store_lines!("stnp", "0", "b", 64))),
    // The sum needs both loads, as in STREAM's triad.
    kernel!("triad-nt-neon", R2W1Nt, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst pairs!("0",
            ldp!("a", 64),
            concat!("ldp q2, q3, ", at!("b", 64)),
            "add v0.4s, v0.4s, v2.4s",
            "add v1.4s, v1.4s, v3.4s",
            concat!("stnp q0, q1, ", at!("c", 64)))),
    kernel!("copy-nt-neon", R1W1Nt, streams [a = 0 read 128, b = 1 write 128],
        burst pairs!("0,64", ldp!("a", 128), concat!("stnp q0, q1, ", at!("b", 128)))),
    kernel!("copy-neon", Copy, streams [a = 0 read 128, b = 1 write 128],
        burst pairs!("0,64", ldp!("a", 128), concat!("stp q0, q1, ", at!("b", 128)))),
    kernel!("fill-zva", Fill, String, zva_64, streams [a = 0 write 256], advance fixed,
        burst each!("0,64,128,192", "0", "add x9, {a}, #256 * \\burst + \\line + \\part\n dc zva, x9")),
];
