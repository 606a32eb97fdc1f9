//! x86-64: the traffic kernels at SSE2, AVX2 and AVX-512 width and the string instructions.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use memgauge_core::traffic::{Mix, Width};

use crate::{BURSTS_PER_STEP, Kernel, LINE, Pointers, STORED_BYTE, Stream, joined};

/// [`STORED_BYTE`] four times, to be broadcast to the register that is stored.
const STORED: u32 = u32::from_ne_bytes([STORED_BYTE; 4]);

pub(crate) const KERNELS: &[Kernel] = &joined::<{ 3 * PER_WIDTH + 2 }>(&[&vector::SSE2, &vector::AVX2, &vector::AVX512, &string::KERNELS]);

/// The operand of stream `$s`, of which a burst has `$bytes` bytes.
macro_rules! at {
    ($s:literal, $bytes:literal) => {
        concat!("[{", $s, "} + ", $bytes, " * \\burst + \\line + \\part]")
    };
}

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst;
/// `prepare` and `finish` come before and after the loop.
macro_rules! kernel {
    ($name:expr, $mix:ident, $width:ident, $supported:expr,
     streams [$($s:ident = $index:literal $access:ident $bytes:literal),+],
     prepare $prepare:expr, burst $burst:expr, finish $finish:expr) => {{
        unsafe fn run(p: &Pointers, steps: usize) {
            // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared.
            unsafe {
                core::arch::asm!(
                    "test {n}, {n}",
                    "jz 3f",
                    $prepare,
                    ".p2align 6",
                    "2:",
                    ".irp burst,0,1,2,3",
                    $burst,
                    ".endr",
                    $(concat!("add {", stringify!($s), "}, 4 * ", $bytes),)+
                    "sub {n}, 1",
                    "jnz 2b",
                    $finish,
                    "3:",
                    n = inout(reg) steps => _,
                    $($s = inout(reg) p[$index] => _,)+
                    stored = in(reg) STORED,
                    // The names of the 16-byte registers stand for the whole of them.
                    out("xmm0") _, out("xmm1") _,
                    options(nostack),
                );
            }
        }
        unsafe fn paced(p: &Pointers, steps: usize, delay: u32) {
            // `sub` of a register, not of a constant, which some cores do in no time (see `dependent_adds`); it fuses with
            // the branch all the same.
            // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared.
            unsafe {
                core::arch::asm!(
                    "test {n}, {n}",
                    "jz 5f",
                    $prepare,
                    ".p2align 6",
                    "2:",
                    ".irp burst,0",
                    $burst,
                    ".endr",
                    $(concat!("add {", stringify!($s), "}, ", $bytes),)+
                    // The count is 0 here, by the chain before: this delay starts when that one has ended.
                    "add {count}, {delay}",
                    "jz 4f",
                    "3:",
                    "sub {count}, {one}",
                    "jnz 3b",
                    "4:",
                    // Adds 0, after the chain: the next burst has no address before.
                    $(concat!("add {", stringify!($s), "}, {count}"),)+
                    "sub {n}, {one}",
                    "jnz 2b",
                    $finish,
                    "5:",
                    n = inout(reg) steps * BURSTS_PER_STEP as usize => _,
                    $($s = inout(reg) p[$index] => _,)+
                    count = inout(reg) 0_u64 => _,
                    delay = in(reg) u64::from(delay),
                    one = in(reg) 1_u64,
                    stored = in(reg) STORED,
                    out("xmm0") _, out("xmm1") _,
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

/// Kernels of one width.
const PER_WIDTH: usize = 13;

/// Every kernel of one width: `$v0` takes what is loaded, `$v1` holds what is stored; `$parts` are the offsets of a line's parts.
///
/// Nothing but vector instructions of the width is used, so that upper halves of registers never have to be merged; `$clean`
/// zeroes them at the end, without which later SSE code would be slow.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! width {
    ($list:ident, $suffix:literal, $width:ident, $supported:expr, parts $parts:literal, registers $v0:literal $v1:literal,
     move $mov:literal, non_temporal $nt:literal, add $add:literal, broadcast $broadcast:literal, clean $clean:literal) => {
        pub(super) const $list: [Kernel; PER_WIDTH] = [
            kernel!(concat!("load-", $suffix), AllReads, $width, $supported,
                streams [a = 0 read 256],
                prepare $broadcast,
                burst each!("0,64,128,192", $parts, concat!($mov, $v0, ", ", at!("a", 256))),
                finish $clean),
            // Two and four streams: more pages open at once, more streams for the prefetchers to follow.
            kernel!(concat!("load-", $suffix, "-x2"), AllReads, $width, $supported,
                streams [a = 0 read 128, b = 1 read 128],
                prepare $broadcast,
                burst each!("0,64", $parts, concat!($mov, $v0, ", ", at!("a", 128)), concat!($mov, $v0, ", ", at!("b", 128))),
                finish $clean),
            kernel!(concat!("load-", $suffix, "-x4"), AllReads, $width, $supported,
                streams [a = 0 read 64, b = 1 read 64, c = 2 read 64, d = 3 read 64],
                prepare $broadcast,
                burst each!("0", $parts,
                    concat!($mov, $v0, ", ", at!("a", 64)), concat!($mov, $v0, ", ", at!("b", 64)),
                    concat!($mov, $v0, ", ", at!("c", 64)), concat!($mov, $v0, ", ", at!("d", 64))),
                finish $clean),
            // A prefetch beyond the stream's end is harmless: it never faults.
            kernel!(concat!("load-", $suffix, "-prefetch"), AllReads, $width, $supported,
                streams [a = 0 read 256],
                prepare $broadcast,
                burst concat!(
                    each!("0,64,128,192", "4096", concat!("prefetcht0 ", at!("a", 256))),
                    each!("0,64,128,192", $parts, concat!($mov, $v0, ", ", at!("a", 256)))),
                finish $clean),
            kernel!(concat!("mix-4:1-", $suffix), R4W1, $width, $supported,
                streams [a = 0 read 192, b = 1 write 64],
                prepare $broadcast,
                burst concat!(
                    each!("0,64,128", $parts, concat!($mov, $v0, ", ", at!("a", 192))),
                    each!("0", $parts, concat!($mov, at!("b", 64), ", ", $v1))),
                finish $clean),
            kernel!(concat!("mix-3:1-", $suffix), R3W1, $width, $supported,
                streams [a = 0 read 128, b = 1 write 64],
                prepare $broadcast,
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $v0, ", ", at!("a", 128))),
                    each!("0", $parts, concat!($mov, at!("b", 64), ", ", $v1))),
                finish $clean),
            kernel!(concat!("mix-2:1-", $suffix), R2W1, $width, $supported,
                streams [a = 0 read 128, b = 1 write 128],
                prepare $broadcast,
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $v0, ", ", at!("a", 128))),
                    each!("0,64", $parts, concat!($mov, at!("b", 128), ", ", $v1))),
                finish $clean),
            kernel!(concat!("store-", $suffix), R1W1, $width, $supported,
                streams [a = 0 write 256],
                prepare $broadcast,
                burst each!("0,64,128,192", $parts, concat!($mov, at!("a", 256), ", ", $v1)),
                finish $clean),
            kernel!(concat!("nt-store-", $suffix), NtWrite, $width, $supported,
                streams [a = 0 write 256],
                prepare $broadcast,
                burst each!("0,64,128,192", $parts, concat!($nt, at!("a", 256), ", ", $v1)),
                finish concat!("sfence\n", $clean)),
            // The sum needs both loads, as in STREAM's triad.
            kernel!(concat!("triad-nt-", $suffix), R2W1Nt, $width, $supported,
                streams [a = 0 read 64, b = 1 read 64, c = 2 write 64],
                prepare $broadcast,
                burst each!("0", $parts,
                    concat!($mov, $v0, ", ", at!("a", 64)),
                    concat!($add, $v0, ", ", at!("b", 64)),
                    concat!($nt, at!("c", 64), ", ", $v0)),
                finish concat!("sfence\n", $clean)),
            kernel!(concat!("copy-nt-", $suffix), R1W1Nt, $width, $supported,
                streams [a = 0 read 128, b = 1 write 128],
                prepare $broadcast,
                burst each!("0,64", $parts, concat!($mov, $v0, ", ", at!("a", 128)), concat!($nt, at!("b", 128), ", ", $v0)),
                finish concat!("sfence\n", $clean)),
            kernel!(concat!("copy-", $suffix), Copy, $width, $supported,
                streams [a = 0 read 128, b = 1 write 128],
                prepare $broadcast,
                burst each!("0,64", $parts, concat!($mov, $v0, ", ", at!("a", 128)), concat!($mov, at!("b", 128), ", ", $v0)),
                finish $clean),
            kernel!(concat!("store-", $suffix, "-x2"), R1W1, $width, $supported,
                streams [a = 0 write 128, b = 1 write 128],
                prepare $broadcast,
                burst each!("0,64", $parts, concat!($mov, at!("a", 128), ", ", $v1), concat!($mov, at!("b", 128), ", ", $v1)),
                finish $clean),
        ];
    };
}

mod vector {
    use super::*;

    width!(SSE2, "sse2", Sse2, || true, parts "0,16,32,48", registers "xmm0" "xmm1",
        move "movdqa ", non_temporal "movntdq ", add "paddd ",
        broadcast "movd xmm1, {stored:e}\n pshufd xmm1, xmm1, 0", clean "");
    // The detection includes that the operating system saves the registers.
    width!(AVX2, "avx2", Avx2, || std::arch::is_x86_feature_detected!("avx2"), parts "0,32", registers "ymm0" "ymm1",
        move "vmovdqa ", non_temporal "vmovntdq ", add "vpaddd ymm0, ",
        broadcast "vmovd xmm1, {stored:e}\n vpbroadcastd ymm1, xmm1", clean "vzeroupper");
    width!(AVX512, "avx512", Avx512, || std::arch::is_x86_feature_detected!("avx512f"), parts "0", registers "zmm0" "zmm1",
        move "vmovdqa64 ", non_temporal "vmovntdq ", add "vpaddd zmm0, ",
        broadcast "vpbroadcastd zmm1, {stored:e}", clean "vzeroupper");
}

/// The string instructions, whose width the core decides.
///
/// `clzero` is not among the fills: on Zen 5 it zeroes memory at twice the speed at which anything else writes, so it seems to send no
/// data.
mod string {
    use super::*;

    /// A kernel whose instruction handles `rcx` bytes and advances its pointers itself.
    macro_rules! string_kernel {
        ($name:literal, $mix:ident, $supported:expr, streams [$($register:tt = $index:literal $access:ident),+], burst $bytes:literal,
         instruction $instruction:expr, operands [$($operand:tt)*]) => {{
            unsafe fn run(p: &Pointers, steps: usize) {
                // SAFETY: touches what `Kernel::run` requires to be valid; every register written is declared; the ABI keeps the direction flag clear.
                unsafe {
                    core::arch::asm!(
                        $instruction,
                        inout("rcx") steps * BURSTS_PER_STEP as usize * $bytes => _,
                        $(inout($register) p[$index] => _,)+
                        $($operand)*
                        options(nostack),
                    );
                }
            }
            unsafe fn paced(p: &Pointers, steps: usize, delay: u32) {
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
                        $(inout($register) p[$index] => _,)+
                        $($operand)*
                        options(nostack),
                    );
                }
            }
            Kernel {
                name: $name,
                mix: Mix::$mix,
                width: Width::String,
                streams: &[$(Stream::$access($bytes)),+],
                burst_lines: [$(($bytes, $index)),+].len() as u32 * $bytes / LINE,
                supported: $supported,
                run,
                paced,
            }
        }};
    }

    pub(super) const KERNELS: [Kernel; 2] = [
        string_kernel!("copy-movsb", Copy, || true, streams ["rsi" = 0 read, "rdi" = 1 write], burst 128,
            instruction "rep movsb", operands []),
        string_kernel!("fill-stosb", Fill, || true, streams ["rdi" = 0 write], burst 256,
            instruction "rep stosb", operands [in("al") STORED_BYTE,]),
    ];
}
