//! riscv64: traffic over whole lines, one after the other, by the base instruction set. It has no non-temporal stores and no string
//! instructions, so those mixes are absent.
//!
//! Verified by `tests/` under QEMU's user-mode emulation only.

use crate::kernel::Kernel;
use crate::line::LINE;

pub(super) const KERNELS: &[Kernel] = &[
    kernel!("load-scalar", AllReads, streams [a = 0 read 256], burst words!("0,64,128,192", access!("ld t0", "a", 256))),
    // Two streams: more pages open at once, more streams for the prefetchers to follow.
    kernel!("load-scalar-x2", AllReads, streams [a = 0 read 128, b = 1 read 128],
        burst words!("0,64", access!("ld t0", "a", 128), access!("ld t0", "b", 128))),
    // Additions of constants reach 2047, so pointers move on after each burst.
    kernel!("mix-9:1-scalar", R9W1, Scalar, || true, form Sequential Whole of LINE,
        streams [a = 0 read 512, b = 1 write 64], advance own,
        burst concat!(
            words!("0,64,128,192,256,320,384,448", "ld t0, \\line + \\part({a})"),
            line_by!("sd", "{b}"), "addi {a}, {a}, 512\n addi {b}, {b}, 64\n"),
        finish "", operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
    kernel!("mix-4:1-scalar", R4W1, streams [a = 0 read 192, b = 1 write 64],
        burst concat!(words!("0,64,128", access!("ld t0", "a", 192)), store_lines!("0", "b", 64))),
    kernel!("mix-3:1-scalar", R3W1, streams [a = 0 read 128, b = 1 write 64],
        burst concat!(words!("0,64", access!("ld t0", "a", 128)), store_lines!("0", "b", 64))),
    kernel!("mix-3:1-scalar-x2", R3W1X2, streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
        burst concat!(words!("0", access!("ld t0", "a", 64), access!("ld t0", "b", 64)), store_lines!("0", "c", 64))),
    kernel!("mix-2:1-scalar", R2W1, streams [a = 0 read 128, b = 1 write 128],
        burst concat!(words!("0,64", access!("ld t0", "a", 128)), store_lines!("0,64", "b", 128))),
    kernel!("mix-3:2-scalar", R3W2, streams [a = 0 read 64, b = 1 write 128],
        burst concat!(words!("0", access!("ld t0", "a", 64)), store_lines!("0,64", "b", 128))),
    kernel!("store-scalar", R1W1, streams [a = 0 write 256], burst store_lines!("0,64,128,192", "a", 256)),
    kernel!("copy-scalar", Copy, streams [a = 0 read 128, b = 1 write 128],
        burst words!("0,64", access!("ld t0", "a", 128), access!("sd t0", "b", 128))),
];
