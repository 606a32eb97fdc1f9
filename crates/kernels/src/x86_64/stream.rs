//! x86-64: traffic over whole lines, one after the other, at SSE2, AVX2 and AVX-512 width, and the string instructions.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use crate::kernel::Kernel;
use crate::line::LINE;

/// The kernel of a mix.
macro_rules! sequential {
    (($w:ident) $mix:ident $stores:ident $head:literal $tail:literal {
        $($($operation:ident $s:ident),+ at $lines:tt;)+
    }) => {
        in_order!(concat!($head, "-", $w!(name), $tail), $mix, $w, $w!(supported), Whole, [$($($operation $s $lines),+),+],
            chunk concat!($(step!($w, $($operation $s),+ at $lines)),+), finish finish!($stores),
            line(walk) std::ptr::from_ref(walk.stored))
    };
}

/// Kernels of mixes that have others, too.
macro_rules! more {
    ($w:ident) => {
        &[&[
            // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
            sequential!(($w) AllReads None "load" "-x2" { Load a, Load b at [0, 64]; }),
            sequential!(($w) AllReads None "load" "-x4" { Load a, Load b, Load c, Load d at [0]; }),
            sequential!(($w) R1W1 Plain "store" "-x2" { Store a, Store b at [0, 64]; }),
            // A prefetch beyond the stream's end is harmless: it never faults.
            in_order!(concat!("load-", $w!(name), "-prefetch"), AllReads, $w, $w!(supported), Whole, [Load a [0, 64, 128, 192]],
                chunk concat!(
                    lines!([0, 64, 128, 192], concat!("prefetcht0 [", place!(a [0, 64, 128, 192]), " + 4096]")),
                    step!($w, Load a at [0, 64, 128, 192])),
                finish "", line(walk) std::ptr::from_ref(walk.stored)),
        ]]
    };
}

pub(super) const KERNELS: &[&[&[Kernel]]] = &[
    each_mix!(sequential_mixes => sequential (sse2)),
    more!(sse2),
    each_mix!(sequential_mixes => sequential (avx2)),
    more!(avx2),
    each_mix!(sequential_mixes => sequential (avx512)),
    more!(avx512),
    &[string::KERNELS],
];

/// The string instructions, whose width the core decides.
///
/// `clzero` is not among the fills: on Zen 5 it zeroes memory at twice the speed at which anything else writes, so it seems to send no
/// data.
mod string {
    use memgauge_model::traffic::{Access, Form, LineUse, Mix, Width};

    use crate::kernel::{CHUNKS_PER_ITERATION, Kernel, Stream, Walk};
    use crate::line::LINE;

    /// A kernel whose instruction handles `rcx` bytes and advances its pointers itself.
    macro_rules! string_kernel {
        ($name:literal, $mix:ident, $supported:expr, streams [$($register:tt = $index:literal $access:ident),+], chunk $bytes:literal,
         instruction $instruction:expr, operands($walk:ident) [$($operand:tt)*]) => {{
            unsafe fn run($walk: &mut Walk<'_>, steps: usize) {
                // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared; the ABI keeps the direction flag clear.
                unsafe {
                    core::arch::asm!(
                        $instruction,
                        inout("rcx") steps * CHUNKS_PER_ITERATION as usize * $bytes => _,
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
                        n = inout(reg) steps * CHUNKS_PER_ITERATION as usize => _,
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
                chunk_lines: [$(($bytes, $index)),+].len() as u32 * $bytes / LINE,
                supported: $supported,
                run,
                paced,
            }
        }};
    }

    pub(super) const KERNELS: &[Kernel] = &[
        string_kernel!("copy-movsb", Copy, || true, streams ["rsi" = 0 read, "rdi" = 1 write], chunk 128,
            instruction "rep movsb", operands(walk) []),
        string_kernel!("fill-stosb", Fill, || true, streams ["rdi" = 0 write], chunk 256,
            instruction "rep stosb", operands(walk) [in("al") walk.stored.0[0],]),
    ];
}
