//! x86-64: sequential traffic that writes stored lines back to memory (CLWB, CLFLUSHOPT), or keeps a checksum of what it loads.
//!
//! Verified on AMD Zen 5 (all of them) by `tests/`.

use memgauge_core::traffic::{Access, Form, LineUse, Mix, Width};

use crate::kernel::{BURSTS_PER_STEP, Kernel, LINE, Stream, Walk, burst_lines};

use super::cpu;

/// Combines the slots of the line at `$place` with their registers.
macro_rules! xor_slots {
    ($op:literal, ($slots:literal, $size:literal, $register:literal), $place:expr) => {
        concat!(".irp slot,", $slots, "\n", $op, "[", $place, " + ", $size, " * \\slot - ", $size, "]\n.endr\n")
    };
}

/// Kernels of one width.
pub(super) const PER_WIDTH: usize = 11;

/// Every kernel of one width.
#[rustfmt::skip] // It cannot indent calls inside a list.
macro_rules! line_use {
    ($list:ident, $suffix:literal, $width:ident, $supported:expr, parts $parts:literal, slots $slots:tt, loaded $loaded:literal,
     move $mov:literal, non_temporal $nt:literal, add $add:literal, xor $xor:literal, clean $clean:literal) => {
        pub(super) const $list: [Kernel; PER_WIDTH] = [
            kernel!(concat!("mix-9:1-", $suffix, "-clwb"), R9W1, $width, || cpu::has_clwb() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 512, b = 1 write 64], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128,192,256,320,384,448", $parts, concat!($mov, $loaded, ", ", at!("a", 512))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)), concat!("clwb [", line_at!("b", 64), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-4:1-", $suffix, "-clwb"), R4W1, $width, || cpu::has_clwb() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 192, b = 1 write 64], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128", $parts, concat!($mov, $loaded, ", ", at!("a", 192))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)), concat!("clwb [", line_at!("b", 64), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-3:1-", $suffix, "-clwb"), R3W1, $width, || cpu::has_clwb() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 128, b = 1 write 64], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)), concat!("clwb [", line_at!("b", 64), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-2:1-", $suffix, "-clwb"), R2W1, $width, || cpu::has_clwb() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 128, b = 1 write 128], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0,64", from_slots!($mov, $slots, line_at!("b", 128)), concat!("clwb [", line_at!("b", 128), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("store-", $suffix, "-clwb"), R1W1, $width, || cpu::has_clwb() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 write 256], advance fixed,
                prepare stored!($mov, $slots),
                burst lines!("0,64,128,192", from_slots!($mov, $slots, line_at!("a", 256)), concat!("clwb [", line_at!("a", 256), "]")),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-9:1-", $suffix, "-clflushopt"), R9W1, $width, || cpu::has_clflushopt() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 512, b = 1 write 64], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128,192,256,320,384,448", $parts, concat!($mov, $loaded, ", ", at!("a", 512))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)), concat!("clflushopt [", line_at!("b", 64), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-4:1-", $suffix, "-clflushopt"), R4W1, $width, || cpu::has_clflushopt() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 192, b = 1 write 64], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64,128", $parts, concat!($mov, $loaded, ", ", at!("a", 192))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)), concat!("clflushopt [", line_at!("b", 64), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-3:1-", $suffix, "-clflushopt"), R3W1, $width, || cpu::has_clflushopt() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 128, b = 1 write 64], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0", from_slots!($mov, $slots, line_at!("b", 64)), concat!("clflushopt [", line_at!("b", 64), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("mix-2:1-", $suffix, "-clflushopt"), R2W1, $width, || cpu::has_clflushopt() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 read 128, b = 1 write 128], advance fixed,
                prepare stored!($mov, $slots),
                burst concat!(
                    each!("0,64", $parts, concat!($mov, $loaded, ", ", at!("a", 128))),
                    lines!("0,64", from_slots!($mov, $slots, line_at!("b", 128)), concat!("clflushopt [", line_at!("b", 128), "]"))),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("store-", $suffix, "-clflushopt"), R1W1, $width, || cpu::has_clflushopt() && ($supported)(), form Sequential WrittenBack of LINE,
                streams [a = 0 write 256], advance fixed,
                prepare stored!($mov, $slots),
                burst lines!("0,64,128,192", from_slots!($mov, $slots, line_at!("a", 256)), concat!("clflushopt [", line_at!("a", 256), "]")),
                finish concat!("sfence\n", $clean),
                operands(walk) [line = in(reg) std::ptr::from_ref(walk.stored),]),
            kernel!(concat!("xor-", $suffix), AllReads, $width, $supported, form Sequential Checked of LINE,
                streams [a = 0 read 256], advance fixed,
                prepare to_slots!($mov, $slots, "{sum}"),
                burst lines!("0,64,128,192", xor_slots!($xor, $slots, line_at!("a", 256))),
                finish concat!(from_slots!($mov, $slots, "{sum}"), $clean),
                operands(walk) [sum = in(reg) &raw mut walk.sum,]),
        ];
    };
}

widths!(line_use);
