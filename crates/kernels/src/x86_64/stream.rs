//! x86-64: traffic over whole lines, one after the other, at SSE2, AVX2 and AVX-512 width, and the string instructions.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use crate::kernel::Kernel;
use crate::line::LINE;

/// A kernel that visits every line, one after the other. Its name has the width in the middle.
macro_rules! row {
    ($width:ident, $head:literal $($tail:literal)?, $mix:ident, $streams:tt, $burst:expr $(, $finish:literal)?) => {
        kernel!(concat!($head, "-", $width!(name) $(, $tail)?), $mix, $width, $width!(supported), form Sequential Whole of LINE,
            streams $streams, advance fixed, burst $burst, finish concat!($($finish)?),
            operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),])
    };
}

/// Every kernel of one width.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! sequential {
    ($w:ident) => {
        [
            row!($w, "load", AllReads, [a = 0 read 256], load_lines!($w, "0,64,128,192", "a", 256)),
            // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
            row!($w, "load" "-x2", AllReads, [a = 0 read 128, b = 1 read 128],
                each!("0,64", $w!(parts), load_part!($w, part_at!("a", 128)), load_part!($w, part_at!("b", 128)))),
            row!($w, "load" "-x4", AllReads, [a = 0 read 64, b = 1 read 64, c = 2 read 64, d = 3 read 64],
                each!("0", $w!(parts),
                    load_part!($w, part_at!("a", 64)), load_part!($w, part_at!("b", 64)),
                    load_part!($w, part_at!("c", 64)), load_part!($w, part_at!("d", 64)))),
            // A prefetch beyond the stream's end is harmless: it never faults.
            row!($w, "load" "-prefetch", AllReads, [a = 0 read 256],
                concat!(
                    each!("0,64,128,192", "4096", concat!("prefetcht0 [", part_at!("a", 256), "]")),
                    load_lines!($w, "0,64,128,192", "a", 256))),
            row!($w, "mix-9:1", R9W1, [a = 0 read 512, b = 1 write 64],
                concat!(load_lines!($w, "0,64,128,192,256,320,384,448", "a", 512), store_lines!($w, mov, "0", "b", 64))),
            row!($w, "mix-4:1", R4W1, [a = 0 read 192, b = 1 write 64],
                concat!(load_lines!($w, "0,64,128", "a", 192), store_lines!($w, mov, "0", "b", 64))),
            row!($w, "mix-3:1", R3W1, [a = 0 read 128, b = 1 write 64],
                concat!(load_lines!($w, "0,64", "a", 128), store_lines!($w, mov, "0", "b", 64))),
            row!($w, "mix-3:1" "-x2", R3W1X2, [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                concat!(
                    each!("0", $w!(parts), load_part!($w, part_at!("a", 64)), load_part!($w, part_at!("b", 64))),
                    store_lines!($w, mov, "0", "c", 64))),
            row!($w, "mix-2:1", R2W1, [a = 0 read 128, b = 1 write 128],
                concat!(load_lines!($w, "0,64", "a", 128), store_lines!($w, mov, "0,64", "b", 128))),
            row!($w, "mix-3:2", R3W2, [a = 0 read 64, b = 1 write 128],
                concat!(load_lines!($w, "0", "a", 64), store_lines!($w, mov, "0,64", "b", 128))),
            row!($w, "store", R1W1, [a = 0 write 256], store_lines!($w, mov, "0,64,128,192", "a", 256)),
            row!($w, "nt-store", NtWrite, [a = 0 write 256], store_lines!($w, nt_mov, "0,64,128,192", "a", 256), "sfence\n"),
            row!($w, "mix-3:1-nt", R3W1Nt, [a = 0 read 192, b = 1 write 64],
                concat!(load_lines!($w, "0,64,128", "a", 192), store_lines!($w, nt_mov, "0", "b", 64)), "sfence\n"),
            row!($w, "mix-2:1-nt", R2W1NtX1, [a = 0 read 128, b = 1 write 64],
                concat!(load_lines!($w, "0,64", "a", 128), store_lines!($w, nt_mov, "0", "b", 64)), "sfence\n"),
            // The sum needs both loads, as in STREAM's triad.
            row!($w, "triad-nt", R2W1Nt, [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                each!("0", $w!(parts),
                    load_part!($w, part_at!("a", 64)),
                    concat!($w!(add), "[", part_at!("b", 64), "]"),
                    store_loaded!($w, nt_mov, part_at!("c", 64))),
                "sfence\n"),
            row!($w, "copy-nt", R1W1Nt, [a = 0 read 128, b = 1 write 128],
                each!("0,64", $w!(parts), load_part!($w, part_at!("a", 128)), store_loaded!($w, nt_mov, part_at!("b", 128))), "sfence\n"),
            row!($w, "copy", Copy, [a = 0 read 128, b = 1 write 128],
                each!("0,64", $w!(parts), load_part!($w, part_at!("a", 128)), store_loaded!($w, mov, part_at!("b", 128)))),
            row!($w, "store" "-x2", R1W1, [a = 0 write 128, b = 1 write 128],
                each!("0,64", "0", store_slots!($w, mov, line_at!("a", 128)), store_slots!($w, mov, line_at!("b", 128)))),
        ]
    };
}

pub(super) const KERNELS: &[&[Kernel]] = &[&sequential!(sse2), &sequential!(avx2), &sequential!(avx512), string::KERNELS];

/// The string instructions, whose width the core decides.
///
/// `clzero` is not among the fills: on Zen 5 it zeroes memory at twice the speed at which anything else writes, so it seems to send no
/// data.
mod string {
    use memgauge_core::traffic::{Access, Form, LineUse, Mix, Width};

    use crate::kernel::{BURSTS_PER_STEP, Kernel, Stream, Walk};
    use crate::line::LINE;

    /// A kernel whose instruction handles `rcx` bytes and advances its pointers itself.
    macro_rules! string_kernel {
        ($name:literal, $mix:ident, $supported:expr, streams [$($register:tt = $index:literal $access:ident),+], burst $bytes:literal,
         instruction $instruction:expr, operands($walk:ident) [$($operand:tt)*]) => {{
            unsafe fn run($walk: &mut Walk<'_>, steps: usize) {
                // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared; the ABI keeps the direction flag clear.
                unsafe {
                    core::arch::asm!(
                        $instruction,
                        inout("rcx") steps * BURSTS_PER_STEP as usize * $bytes => _,
                        $(inout($register) $walk.streams[$index] => _,)+
                        $($operand)*
                        options(nostack),
                    );
                }
            }
            unsafe fn paced($walk: &mut Walk<'_>, steps: usize, delay: u32) {
                // The delay is that of the vector kernels.
                // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared; the ABI keeps the direction flag clear.
                unsafe {
                    core::arch::asm!(
                        "test {n}, {n}",
                        "jz 5f",
                        ".p2align 6",
                        "2:",
                        concat!("mov ecx, ", $bytes),
                        $instruction,
                        "add {count}, {delay}",
                        "jz 4f",
                        ".p2align 3",
                        "3:",
                        "sub {count}, {one}",
                        "jnz 3b",
                        "4:",
                        $(concat!("add ", $register, ", {count}"),)+
                        "sub {n}, {one}",
                        "jnz 2b",
                        "5:",
                        n = inout(reg) steps * BURSTS_PER_STEP as usize => _,
                        count = inout(reg) 0_u64 => _,
                        delay = in(reg) u64::from(delay),
                        one = in(reg) 1_u64,
                        out("rcx") _,
                        $(inout($register) $walk.streams[$index] => _,)+
                        $($operand)*
                        options(nostack),
                    );
                }
            }
            Kernel {
                name: $name,
                mix: Mix::$mix,
                width: Width::String,
                form: Form { access: Access::Sequential, line: LineUse::Whole },
                streams: &[$(Stream::$access($bytes)),+],
                touched: LINE,
                burst_lines: [$(($bytes, $index)),+].len() as u32 * $bytes / LINE,
                supported: $supported,
                run,
                paced,
            }
        }};
    }

    pub(super) const KERNELS: &[Kernel] = &[
        string_kernel!("copy-movsb", Copy, || true, streams ["rsi" = 0 read, "rdi" = 1 write], burst 128,
            instruction "rep movsb", operands(walk) []),
        string_kernel!("fill-stosb", Fill, || true, streams ["rdi" = 0 write], burst 256,
            instruction "rep stosb", operands(walk) [in("al") walk.stored.0[0],]),
    ];
}
