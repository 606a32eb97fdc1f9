//! x86-64: traffic over whole lines, one after the other, at SSE2, AVX2 and AVX-512 width, and the string instructions.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use memgauge_core::traffic::{Access, Form, LineUse, Mix, Width};

use crate::kernel::{BURSTS_PER_STEP, Kernel, LINE, Stream, Walk, burst_lines};

/// Kernels of one width.
pub(super) const PER_WIDTH: usize = 17;

/// Every kernel of one width.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! sequential {
    ($list:ident, $suffix:literal, $width:ident, $supported:expr, parts $parts:literal, slots $slots:tt, loaded $loaded:literal,
     move $mov:literal, non_temporal $nt:literal, add $add:literal, xor $xor:literal, clean $clean:literal) => {
        pub(super) const $list: [Kernel; PER_WIDTH] = [
            kernel!(concat!("load-", $suffix), AllReads, $width, $supported,
                streams [a = 0 read 256],
                prepare stored!($mov, $slots),
                burst each!("0,64,128,192", $parts, concat!($mov, $loaded, ", ", at!("a", 256))),
                finish $clean),
            // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
            kernel!(concat!("load-", $suffix, "-x2"), AllReads, $width, $supported,
                streams [a = 0 read 128, b = 1 read 128],
                prepare stored!($mov, $slots),
                burst each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128)), concat!($mov, $loaded, ", ", at!("b", 128))),
                finish $clean),
            kernel!(concat!("load-", $suffix, "-x4"), AllReads, $width, $supported,
                streams [a = 0 read 64, b = 1 read 64, c = 2 read 64, d = 3 read 64],
                prepare stored!($mov, $slots),
                burst each!("0", $parts,
                    concat!($mov, $loaded, ", ", at!("a", 64)), concat!($mov, $loaded, ", ", at!("b", 64)),
                    concat!($mov, $loaded, ", ", at!("c", 64)), concat!($mov, $loaded, ", ", at!("d", 64))),
                finish $clean),
            // A prefetch beyond the stream's end is harmless: it never faults.
            kernel!(concat!("load-", $suffix, "-prefetch"), AllReads, $width, $supported,
                streams [a = 0 read 256],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128,192", "4096", concat!("prefetcht0 ", at!("a", 256))),
                    each!("0,64,128,192", $parts, concat!($mov, $loaded, ", ", at!("a", 256)))),
                finish $clean),
            kernel!(concat!("mix-9:1-", $suffix), R9W1, $width, $supported,
                streams [a = 0 read 512, b = 1 write 64],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128,192,256,320,384,448", $parts, concat!($mov, $loaded, ", ", at!("a", 512))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)))),
                finish $clean),
            kernel!(concat!("mix-4:1-", $suffix), R4W1, $width, $supported,
                streams [a = 0 read 192, b = 1 write 64],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128", $parts, concat!($mov, $loaded, ", ", at!("a", 192))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)))),
                finish $clean),
            kernel!(concat!("mix-3:1-", $suffix), R3W1, $width, $supported,
                streams [a = 0 read 128, b = 1 write 64],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)))),
                finish $clean),
            kernel!(concat!("mix-3:1-", $suffix, "-x2"), R3W1X2, $width, $supported,
                streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0", $parts, concat!($mov, $loaded, ", ", at!("a", 64)), concat!($mov, $loaded, ", ", at!("b", 64))),
                    lines!("0", from_slots!($mov, $slots, line_at!("c", 64)))),
                finish $clean),
            kernel!(concat!("mix-2:1-", $suffix), R2W1, $width, $supported,
                streams [a = 0 read 128, b = 1 write 128],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0,64", from_slots!($mov, $slots, line_at!("b", 128)))),
                finish $clean),
            kernel!(concat!("store-", $suffix), R1W1, $width, $supported,
                streams [a = 0 write 256],
                prepare stored!($mov, $slots),
                burst lines!("0,64,128,192", from_slots!($mov, $slots, line_at!("a", 256))),
                finish $clean),
            kernel!(concat!("nt-store-", $suffix), NtWrite, $width, $supported,
                streams [a = 0 write 256],
                prepare stored!($mov, $slots),
                burst lines!("0,64,128,192", from_slots!($nt, $slots, line_at!("a", 256))),
                finish concat!("sfence\n", $clean)),
            kernel!(concat!("mix-3:1-nt-", $suffix), R3W1Nt, $width, $supported,
                streams [a = 0 read 192, b = 1 write 64],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128", $parts, concat!($mov, $loaded, ", ", at!("a", 192))),
                    lines!("0", from_slots!($nt, $slots, line_at!("b", 64)))),
                finish concat!("sfence\n", $clean)),
            kernel!(concat!("mix-2:1-nt-", $suffix), R2W1NtX1, $width, $supported,
                streams [a = 0 read 128, b = 1 write 64],
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0", from_slots!($nt, $slots, line_at!("b", 64)))),
                finish concat!("sfence\n", $clean)),
            // The sum needs both loads, as in STREAM's triad.
            kernel!(concat!("triad-nt-", $suffix), R2W1Nt, $width, $supported,
                streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                prepare stored!($mov, $slots),
                burst each!("0", $parts,
                    concat!($mov, $loaded, ", ", at!("a", 64)),
                    concat!($add, $loaded, ", ", at!("b", 64)),
                    concat!($nt, at!("c", 64), ", ", $loaded)),
                finish concat!("sfence\n", $clean)),
            kernel!(concat!("copy-nt-", $suffix), R1W1Nt, $width, $supported,
                streams [a = 0 read 128, b = 1 write 128],
                prepare stored!($mov, $slots),
                burst each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128)), concat!($nt, at!("b", 128), ", ", $loaded)),
                finish concat!("sfence\n", $clean)),
            kernel!(concat!("copy-", $suffix), Copy, $width, $supported,
                streams [a = 0 read 128, b = 1 write 128],
                prepare stored!($mov, $slots),
                burst each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128)), concat!($mov, at!("b", 128), ", ", $loaded)),
                finish $clean),
            kernel!(concat!("store-", $suffix, "-x2"), R1W1, $width, $supported,
                streams [a = 0 write 128, b = 1 write 128],
                prepare stored!($mov, $slots),
                burst each!("0,64", "0",
                    from_slots!($mov, $slots, line_at!("a", 128)), from_slots!($mov, $slots, line_at!("b", 128))),
                finish $clean),
        ];
    };
}

widths!(sequential);

/// The string instructions, whose width the core decides.
///
/// `clzero` is not among the fills: on Zen 5 it zeroes memory at twice the speed at which anything else writes, so it seems to send no
/// data.
pub(super) mod string {
    use super::*;

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
                // SAFETY: as above. The delay is that of the vector kernels.
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

    pub(in super::super) const KERNELS: [Kernel; 2] = [
        string_kernel!("copy-movsb", Copy, || true, streams ["rsi" = 0 read, "rdi" = 1 write], burst 128,
            instruction "rep movsb", operands(walk) []),
        string_kernel!("fill-stosb", Fill, || true, streams ["rdi" = 0 write], burst 256,
            instruction "rep stosb", operands(walk) [in("al") walk.stored.0[0],]),
    ];
}
