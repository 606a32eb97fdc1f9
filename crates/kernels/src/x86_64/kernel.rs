//! x86-64: the frame of every vector kernel, and the widths that the lists of kernels are made for.

/// A list of kernels for each width: `SSE2`, `AVX2` and `AVX512`, by calling `$list!` with what differs.
///
/// `parts` are the offsets of a line's parts, `slots` count them from 1. Register 0 takes what is loaded; registers 1, 2 … hold the
/// line that is stored, so part n of a line is stored from the register that its slot names.
///
/// Nothing but vector instructions of the width is used, so that upper halves of registers never have to be merged; `clean`
/// zeroes them at the end, without which later SSE code would be slow.
#[rustfmt::skip] // It would put every word on a line of its own.
macro_rules! widths {
    ($list:ident) => {
        $list!(SSE2, "sse2", Sse2, || true, parts "0,16,32,48", slots ("1,2,3,4", 16, "xmm"), loaded "xmm0",
            move "movdqa ", non_temporal "movntdq ", add "paddd ", xor "pxor xmm\\slot, ", clean "");
        // The detection includes that the operating system saves the registers.
        $list!(AVX2, "avx2", Avx2, || std::arch::is_x86_feature_detected!("avx2"), parts "0,32", slots ("1,2", 32, "ymm"), loaded "ymm0",
            move "vmovdqa ", non_temporal "vmovntdq ", add "vpaddd ymm0, ", xor "vpxor ymm\\slot, ymm\\slot, ", clean "vzeroupper\n");
        $list!(AVX512, "avx512", Avx512, || std::arch::is_x86_feature_detected!("avx512f"), parts "0", slots ("1", 64, "zmm"), loaded "zmm0",
            move "vmovdqa64 ", non_temporal "vmovntdq ", add "vpaddd zmm0, ", xor "vpxorq zmm\\slot, zmm\\slot, ", clean "vzeroupper\n");
    };
}

/// Moves the slots of the line at `$place` by `$op`, from memory to their registers.
macro_rules! to_slots {
    ($op:literal, ($slots:literal, $size:literal, $register:literal), $place:expr) => {
        concat!(".irp slot,", $slots, "\n", $op, $register, "\\slot, [", $place, " + ", $size, " * \\slot - ", $size, "]\n.endr\n")
    };
}

/// Moves the slots of the line at `$place` by `$op`, from their registers to memory.
macro_rules! from_slots {
    ($op:literal, ($slots:literal, $size:literal, $register:literal), $place:expr) => {
        concat!(".irp slot,", $slots, "\n", $op, "[", $place, " + ", $size, " * \\slot - ", $size, "], ", $register, "\\slot\n.endr\n")
    };
}

/// `{line}` to the registers from which lines are stored.
macro_rules! stored {
    ($op:literal, $slots:tt) => {
        to_slots!($op, $slots, "{line}")
    };
}

/// The place in stream `$s`, of which a burst has `$bytes` bytes, of the line and burst that are counted.
macro_rules! line_at {
    ($s:literal, $bytes:literal) => {
        concat!("{", $s, "} + ", $bytes, " * \\burst + \\line")
    };
}

/// The operand of stream `$s`, of which a burst has `$bytes` bytes, of the part, line and burst that are counted.
macro_rules! at {
    ($s:literal, $bytes:literal) => {
        concat!("[", line_at!($s, $bytes), " + \\part]")
    };
}

/// The step from one burst, or step, to the next: `fixed` for loops whose bursts name their place in the step, `own` where the text of
/// the burst moves on by itself.
macro_rules! advance {
    (fixed, $s:ident, $bytes:expr) => {
        concat!("add {", stringify!($s), "}, ", $bytes)
    };
    (own, $s:ident, $bytes:expr) => {
        ""
    };
}

/// A kernel from the text of its burst. `streams` gives each stream's operand name, pointer, direction and bytes per burst;
/// `prepare` and `finish` come before and after the loop. The operand `{line}` is where `prepare` finds the line that is stored.
macro_rules! kernel {
    // Whole lines, one after the other.
    ($name:expr, $mix:ident, $width:ident, $supported:expr, streams $streams:tt,
     prepare $prepare:expr, burst $burst:expr, finish $finish:expr) => {
        kernel!($name, $mix, $width, $supported, form Sequential Whole of LINE, streams $streams, advance fixed,
            prepare $prepare, burst $burst, finish $finish, operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),])
    };
    ($name:expr, $mix:ident, $width:ident, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident = $index:literal $access:ident $bytes:tt),+], advance $advance:ident,
     prepare $prepare:expr, burst $burst:expr, finish $finish:expr, operands($walk:ident) [$($operand:tt)*]) => {{
        unsafe fn run($walk: &mut Walk<'_>, steps: usize) {
            // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared.
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
                    $(advance!($advance, $s, concat!("4 * ", $bytes)),)+
                    "sub {n}, 1",
                    "jnz 2b",
                    $finish,
                    "3:",
                    n = inout(reg) steps => _,
                    $($s = inout(reg) $walk.streams[$index] => _,)+
                    $($operand)*
                    // The names of the 16-byte registers stand for the whole of them.
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                    options(nostack),
                );
            }
        }
        unsafe fn paced($walk: &mut Walk<'_>, steps: usize, delay: u32) {
            // `sub` of a register, not of a constant, which some cores do in no time (see `dependent_adds`); it fuses with
            // the branch all the same.
            // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared.
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
                    $(advance!($advance, $s, $bytes),)+
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
                    $($s = inout(reg) $walk.streams[$index] => _,)+
                    count = inout(reg) 0_u64 => _,
                    delay = in(reg) u64::from(delay),
                    one = in(reg) 1_u64,
                    $($operand)*
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                    options(nostack),
                );
            }
        }
        const STREAMS: &[Stream] = &[$(Stream::$access($bytes)),+];
        Kernel {
            name: $name,
            mix: Mix::$mix,
            width: Width::$width,
            form: Form { access: Access::$order, line: LineUse::$use },
            streams: STREAMS,
            touched: $touched,
            burst_lines: burst_lines(STREAMS, $touched),
            supported: $supported,
            run,
            paced,
        }
    }};
}
