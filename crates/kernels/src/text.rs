//! Assembly text shared by the instruction sets.
//!
//! The assembler's own `.irp name,values` repeats lines with each value in turn put in place of `\name`; kernels
//! are written as one access and expanded over chunks, lines and parts of lines.

/// Hops of [`chase`](crate::chase) between two of its branches: every instruction set repeats the load this often.
pub const CHASE_UNROLL: usize = 64;

/// Additions of `dependent_adds` between two of its branches.
pub(crate) const ADDS_UNROLL: u64 = 64;

/// The kernels of all mixes in one form. Each row of [`memgauge_model::mixes`] goes to `$mixes`, one of the five macros below. It hands the row
/// of a mix that has a kernel in this form to the macro `$kernel`: `$arguments`, the mix, its kind of stores, the two parts of its kernels' name
/// and its chunk.
macro_rules! each_mix {
    ($mixes:ident => $kernel:ident $arguments:tt) => {
        memgauge_model::mixes!(rows ($mixes ($kernel $arguments)))
    };
}

/// The list of lists, each of one kernel or none, that `$mixes` makes of the rows.
macro_rules! rows {
    (($mixes:ident $to:tt) $(
        $(#[$attribute:meta])*
        $mix:ident { chunk: $chunk:tt, stores: $stores:ident $(($compared:expr))?, kernel: $head:literal $tail:literal, $($other:tt)+ }
    )+) => {
        &[$($mixes!($to $mix $stores $head $tail $chunk)),+]
    };
}

/// Lines one after the other: all mixes but those for a string instruction.
macro_rules! sequential_mixes {
    ($to:tt $mix:ident ByString $($row:tt)+) => { &[] };
    (($kernel:ident $arguments:tt) $($row:tt)+) => { &[$kernel!($arguments $($row)+)] };
}

/// Lines a stride apart: the same without plain copies.
macro_rules! strided_mixes {
    ($to:tt Copy $($row:tt)+) => { &[] };
    ($to:tt $($row:tt)+) => { sequential_mixes!($to $($row)+) };
}

/// Parts of lines: mixes with plain stores and at most one stream of loads. Nothing is compared with 9:1.
macro_rules! part_mixes {
    ($to:tt R9W1 $($row:tt)+) => { &[] };
    (($kernel:ident $arguments:tt) $mix:ident $stores:ident $head:literal $tail:literal {
        $(Load $a:ident at $loaded:tt;)? $(Store $b:ident at $stored:tt;)?
    }) => {
        &[$kernel!($arguments $mix $stores $head $tail { $(Load $a at $loaded;)? $(Store $b at $stored;)? })]
    };
    ($to:tt $($row:tt)+) => { &[] };
}

/// Random lines of one window: mixes with at most one stream of loads.
macro_rules! random_mixes {
    ($to:tt $mix:ident ByString $($row:tt)+) => { &[] };
    // Nothing is copied: some lines of the window are loaded, and others are stored.
    ($to:tt R1W1Nt $stores:ident $head:literal $tail:literal { Load a, NtStoreLoaded b at $lines:tt; }) => {
        random_mixes!($to R1W1Nt $stores "mix-1:1-nt" $tail { Load a at $lines; NtStore b at $lines; })
    };
    (($kernel:ident $arguments:tt) $mix:ident $stores:ident $head:literal $tail:literal { $($operation:ident $s:ident at $lines:tt;)+ }) => {
        &[$kernel!($arguments $mix $stores $head $tail { $($operation $s at $lines;)+ })]
    };
    ($to:tt $($row:tt)+) => { &[] };
}

/// Lines that are written back once they are stored: mixes with plain stores and at most one stream of loads.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! written_back_mixes {
    (($kernel:ident $arguments:tt) $mix:ident $stores:ident $head:literal $tail:literal {
        $(Load $a:ident at $loaded:tt;)? Store $b:ident at $stored:tt;
    }) => {
        &[$kernel!($arguments $mix $stores $head $tail { $(Load $a at $loaded;)? Store $b at $stored; })]
    };
    ($to:tt $($row:tt)+) => { &[] };
}

/// The place of a stream among those of a walk.
macro_rules! number_of {
    (a) => {
        0
    };
    (b) => {
        1
    };
    (c) => {
        2
    };
    (d) => {
        3
    };
}

/// A chunk's operation in a stream: on these lines, with `$bytes` of each.
macro_rules! stream {
    ($operation:ident $lines:tt, $bytes:expr) => {
        Stream::by(memgauge_model::traffic::Operation::$operation, $lines.len(), $bytes)
    };
}

/// The bytes of a stream that a chunk goes over, whose lines are these.
macro_rules! bytes {
    ([$($line:literal),+]) => { concat!("(0", $(bytes!($line)),+, ")") };
    ($line:literal) => { " + 64" };
}

/// The instructions `$op`, in turn, for each of these lines of a stream. They use `\line`, and `\chunk`, which the loop around them counts.
macro_rules! lines {
    ([$($line:literal),+], $($op:expr),+) => { concat!(".irp line", $(",", $line),+, "\n", $($op, "\n",)+ ".endr\n") };
}

/// The instructions `$op`, in turn, `$n` times.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! times {
    ($n:literal, $($op:expr),+) => { concat!(".rept ", $n, "\n", $($op, "\n",)+ ".endr\n") };
}

/// A kernel from the texts of its loops: `run` counts `{n}` steps, and `paced` counts `{n}` chunks with a delay after each. Both may write the
/// registers that `overwrites` declares.
macro_rules! framed {
    ($name:expr, $mix:ident, $width:expr, $supported:expr, form $order:ident $use:ident of $touched:expr,
     streams [$($s:ident $stream:expr),+], operands($walk:ident) [$($operand:tt)*],
     run [$($run:tt)*], paced [$($paced:tt)*], overwrites [$($overwritten:tt)*]) => {{
        use memgauge_model::traffic::{Access, Form, LineUse, Mix, Width};

        use crate::kernel::{CHUNKS_PER_ITERATION, Stream, Walk, chunk_lines};

        unsafe fn run($walk: &mut Walk<'_>, steps: usize) {
            // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared.
            unsafe {
                std::arch::asm!(
                    $($run)*
                    n = inout(reg) steps => _,
                    $($s = inout(reg) $walk.streams[number_of!($s)] => _,)+
                    $($operand)*
                    $($overwritten)*
                    options(nostack),
                );
            }
        }
        unsafe fn paced($walk: &mut Walk<'_>, steps: usize, delay: u32) {
            // SAFETY: touches what `Kernel::walk` requires to be valid; every register written is declared.
            unsafe {
                std::arch::asm!(
                    $($paced)*
                    n = inout(reg) steps * CHUNKS_PER_ITERATION as usize => _,
                    $($s = inout(reg) $walk.streams[number_of!($s)] => _,)+
                    count = inout(reg) 0_u64 => _,
                    delay = in(reg) u64::from(delay),
                    one = in(reg) 1_u64,
                    $($operand)*
                    $($overwritten)*
                    options(nostack),
                );
            }
        }
        const STREAMS: &[Stream] = &[$($stream),+];
        Kernel {
            name: $name,
            mix: Mix::$mix,
            width: $width,
            form: Form { access: Access::$order, line: LineUse::$use },
            streams: STREAMS,
            touched: $touched,
            chunk_lines: chunk_lines(STREAMS, $touched),
            supported: $supported,
            run,
            paced,
        }
    }};
}

/// The text after a chase's loop, whose loads are between the labels 7 and 8: the instructions `$lost`, which put the address of
/// [`CELL`](crate::recovery::CELL) into the chase's register and go back into the loop, and the entry that leads there. The instructions are in a
/// later part of the section, behind the function.
#[cfg(not(windows))]
macro_rules! recovers {
    ($lost:expr) => {
        concat!(
            ".subsection 1\n9:\n",
            $lost,
            "\n.previous\n",
            ".pushsection memgauge_recoveries,\"aR\",@progbits\n.balign 4\n.long 7b - .\n.long 8b - .\n.long 9b - .\n.popsection\n"
        )
    };
}

/// The instruction that jumps.
#[cfg(all(windows, target_arch = "x86_64"))]
macro_rules! around {
    () => {
        "jmp"
    };
}
#[cfg(all(windows, not(target_arch = "x86_64")))]
macro_rules! around {
    () => {
        "b"
    };
}

/// The same for the object files of Windows, whose sections have no parts: a jump leads around the instructions. A linker may leave out what
/// nothing refers to, so four bytes behind them, which nothing executes, refer to the entry.
#[cfg(windows)]
macro_rules! recovers {
    ($lost:expr) => {
        concat!(
            around!(),
            " 21f\n9:\n",
            $lost,
            "\n.long 20f - .\n21:\n",
            ".pushsection .mgrecov,\"dr\"\n.balign 4\n20:\n.long 7b - .\n.long 8b - .\n.long 9b - .\n.popsection\n"
        )
    };
}

/// The loops that are functions of their own, from their texts. A pointer that leads out of memory ends each chase at
/// [`CELL`](crate::recovery::CELL).
macro_rules! loops {
    (dependent_adds [$($adds:tt)*], chase [$($chase:tt)*], chase_exact [$($exact:tt)*],
     chase_timed [$($timed:tt)*] scratch [$($scratch:tt)*] overwrites [$($overwritten:tt)*], chase_store [$($store:tt)*],) => {
        /// `n` dependent additions of one cycle each: the time that they take is `n` core cycles, which gives the core's frequency.
        /// Returns the sum, `n`.
        #[inline]
        pub fn dependent_adds(n: u64) -> u64 {
            let mut sum = 0;
            // SAFETY: touches no memory.
            unsafe {
                std::arch::asm!(
                    $($adds)*
                    rounds = inout(reg) n / crate::text::ADDS_UNROLL => _,
                    rest = inout(reg) n % crate::text::ADDS_UNROLL => _,
                    sum = inout(reg) sum,
                    one = in(reg) 1_u64,
                    options(nomem, nostack),
                );
            }
            sum
        }

        /// Follows `hops` pointers, one load each, and returns where it ends. Rounds down to a multiple of
        /// [`CHASE_UNROLL`](crate::CHASE_UNROLL).
        ///
        /// # Safety
        ///
        /// `start` and every pointer found from it within `hops` hops point to 8 aligned bytes that hold the next pointer.
        #[inline]
        pub unsafe fn chase(start: *const u8, hops: usize) -> *const u8 {
            let mut at = start;
            // SAFETY: reads what the caller promises to be readable.
            unsafe {
                std::arch::asm!(
                    $($chase)*
                    at = inout(reg) at,
                    rounds = inout(reg) hops / crate::CHASE_UNROLL => _,
                    cell = sym crate::recovery::CELL,
                    options(readonly, nostack),
                );
            }
            at
        }

        /// Follows exactly `hops` pointers, with a branch after each.
        ///
        /// # Safety
        ///
        /// As [`chase`].
        #[inline]
        pub unsafe fn chase_exact(start: *const u8, hops: usize) -> *const u8 {
            let mut at = start;
            // SAFETY: reads what the caller promises to be readable.
            unsafe {
                std::arch::asm!(
                    $($exact)*
                    at = inout(reg) at,
                    hops = inout(reg) hops => _,
                    cell = sym crate::recovery::CELL,
                    options(readonly, nostack),
                );
            }
            at
        }

        /// Follows pointers in batches of `hops`, with a branch after each, and writes the [ticks](crate::ticks_fenced) that each batch
        /// took: from after everything earlier to when its last load has its data. Batches of 0 hops give what reading the clock adds to
        /// each.
        ///
        /// # Safety
        ///
        /// As [`chase`], for `hops` times the number of batches.
        pub unsafe fn chase_timed(start: *const u8, hops: usize, batches: &mut [u64]) -> *const u8 {
            let mut at = start;
            // SAFETY: reads what the caller promises to be readable and writes `batches`.
            unsafe {
                std::arch::asm!(
                    $($timed)*
                    at = inout(reg) at,
                    left = inout(reg) batches.len() => _,
                    hops = in(reg) hops,
                    hop = out(reg) _,
                    began = out(reg) _,
                    $($scratch)*
                    out = inout(reg) batches.as_mut_ptr() => _,
                    $($overwritten)*
                    cell = sym crate::recovery::CELL,
                    options(nostack),
                );
            }
            at
        }

        /// Follows exactly `hops` pointers and modifies each line that it leaves (bytes 8 to 15 from the pointer receive the hops left), so
        /// that this core then holds it modified. A pointer that leads out of `memory` is not followed: the chase then [is
        /// lost](crate::is_lost).
        ///
        /// # Safety
        ///
        /// As [`chase`] for `start`, and every byte of `memory` may be written.
        #[inline]
        pub unsafe fn chase_store(start: *const u8, hops: usize, memory: std::ops::Range<*const u8>) -> *const u8 {
            let mut at = start;
            // How far from the first byte the last pair of words begins.
            let room = (memory.end as usize).saturating_sub(memory.start as usize).saturating_sub(15);
            // SAFETY: reads and writes what the caller promises to be readable and writable; each later pointer is compared with its bounds.
            unsafe {
                std::arch::asm!(
                    $($store)*
                    at = inout(reg) at,
                    hops = inout(reg) hops => _,
                    next = out(reg) _,
                    low = in(reg) memory.start,
                    room = in(reg) room,
                    cell = sym crate::recovery::CELL,
                    options(nostack),
                );
            }
            at
        }
    };
}
