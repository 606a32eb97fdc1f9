//! x86-64: traffic over one line every so many bytes, and traffic that touches a part of each line.
//!
//! A line's place is a register that moves on by another: one dependent addition a line, a cycle, which no memory is faster than.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`. A part is a whole line at AVX-512's width.

use memgauge_core::traffic::{Access, Form, LineUse, Mix, Width};

use crate::kernel::{BURSTS_PER_STEP, Kernel, LINE, Stream, Walk, burst_lines};

/// Bytes of one access.
macro_rules! slot_bytes {
    (($slots:literal, $size:literal, $register:literal)) => {
        $size
    };
}

/// Stores the first slot of the line.
macro_rules! first_slot {
    ($op:literal, ($slots:literal, $size:literal, $register:literal), $place:literal) => {
        concat!($op, "[", $place, "], ", $register, "1")
    };
}

/// Kernels of one width.
pub(super) const PER_WIDTH: usize = 16;

/// Every kernel of one width.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! strided {
    ($list:ident, $suffix:literal, $width:ident, $supported:expr, parts $parts:literal, slots $slots:tt, loaded $loaded:literal,
     move $mov:literal, non_temporal $nt:literal, add $add:literal, xor $xor:literal, clean $clean:literal) => {
        pub(super) const $list: [Kernel; PER_WIDTH] = [
            kernel!(concat!("load-", $suffix, "-strided"), AllReads, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 256], advance own,
                prepare stored!($mov, $slots),
                burst times!(4, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-9:1-", $suffix, "-strided"), R9W1, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 512, b = 1 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(8, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(1, from_slots!($mov, $slots, "{b}"), "add {b}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-4:1-", $suffix, "-strided"), R4W1, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 192, b = 1 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(3, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(1, from_slots!($mov, $slots, "{b}"), "add {b}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-3:1-", $suffix, "-strided"), R3W1, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 128, b = 1 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(2, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(1, from_slots!($mov, $slots, "{b}"), "add {b}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-3:1-", $suffix, "-x2-strided"), R3W1X2, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 64, b = 1 read 64, c = 2 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(1, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(1, parts!($parts, concat!($mov, $loaded, ", [{b} + \\part]")), "add {b}, {stride}"),
                    times!(1, from_slots!($mov, $slots, "{c}"), "add {c}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-2:1-", $suffix, "-strided"), R2W1, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 128, b = 1 write 128], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(2, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(2, from_slots!($mov, $slots, "{b}"), "add {b}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("store-", $suffix, "-strided"), R1W1, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 write 256], advance own,
                prepare stored!($mov, $slots),
                burst times!(4, from_slots!($mov, $slots, "{a}"), "add {a}, {stride}"),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("nt-store-", $suffix, "-strided"), NtWrite, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 write 256], advance own,
                prepare stored!($mov, $slots),
                burst times!(4, from_slots!($nt, $slots, "{a}"), "add {a}, {stride}"),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-3:1-nt-", $suffix, "-strided"), R3W1Nt, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 192, b = 1 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(3, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(1, from_slots!($nt, $slots, "{b}"), "add {b}, {stride}")),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-2:1-nt-", $suffix, "-strided"), R2W1NtX1, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 128, b = 1 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(2, parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]")), "add {a}, {stride}"),
                    times!(1, from_slots!($nt, $slots, "{b}"), "add {b}, {stride}")),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("triad-nt-", $suffix, "-strided"), R2W1Nt, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 64, b = 1 read 64, c = 2 write 64], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    parts!($parts,
                        concat!($mov, $loaded, ", [{a} + \\part]"),
                        concat!($add, $loaded, ", [{b} + \\part]"),
                        concat!($nt, "[{c} + \\part], ", $loaded)),
                    "add {a}, {stride}\n add {b}, {stride}\n add {c}, {stride}\n"),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("copy-nt-", $suffix, "-strided"), R1W1Nt, $width, $supported, form Strided Whole of LINE,
                streams [a = 0 read 128, b = 1 write 128], advance own,
                prepare stored!($mov, $slots),
                burst times!(2,
                    parts!($parts, concat!($mov, $loaded, ", [{a} + \\part]"), concat!($nt, "[{b} + \\part], ", $loaded)),
                    "add {a}, {stride}\n add {b}, {stride}\n"),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("load-", $suffix, "-part"), AllReads, $width, $supported, form Strided Part of slot_bytes!($slots),
                streams [a = 0 read { slot_bytes!($slots) * 4 }], advance own,
                prepare stored!($mov, $slots),
                burst times!(4, concat!($mov, $loaded, ", [{a}]"), "add {a}, {stride}"),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-3:1-", $suffix, "-part"), R3W1, $width, $supported, form Strided Part of slot_bytes!($slots),
                streams [a = 0 read { slot_bytes!($slots) * 2 }, b = 1 write { slot_bytes!($slots) * 1 }], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(2, concat!($mov, $loaded, ", [{a}]"), "add {a}, {stride}"),
                    times!(1, first_slot!($mov, $slots, "{b}"), "add {b}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("mix-2:1-", $suffix, "-part"), R2W1, $width, $supported, form Strided Part of slot_bytes!($slots),
                streams [a = 0 read { slot_bytes!($slots) * 2 }, b = 1 write { slot_bytes!($slots) * 2 }], advance own,
                prepare stored!($mov, $slots),
                burst concat!(
                    times!(2, concat!($mov, $loaded, ", [{a}]"), "add {a}, {stride}"),
                    times!(2, first_slot!($mov, $slots, "{b}"), "add {b}, {stride}")),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
            kernel!(concat!("store-", $suffix, "-part"), R1W1, $width, $supported, form Strided Part of slot_bytes!($slots),
                streams [a = 0 write { slot_bytes!($slots) * 4 }], advance own,
                prepare stored!($mov, $slots),
                burst times!(4, first_slot!($mov, $slots, "{a}"), "add {a}, {stride}"),
                finish $clean,
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored), stride = in(reg) walk.stride,]),
        ];
    };
}

widths!(strided);
