//! How much of what is free stays free, for the rest of the system.

use crate::units::Bytes;

/// The percentage of what is free that may be taken. The rest is for page tables, for what other processes allocate meanwhile, and for the error
/// of the estimate.
const USABLE_PERCENT: u64 = 80;
/// The percentage of all memory that stays free, of memory that can be given to processes at all.
const RESERVE_PERCENT: u64 = 5;
/// A buffer is small if this many of its size would fit into the free memory. A small buffer is allowed whatever the reserve is.
const SMALL_ONE_IN: u64 = 4;

/// The limits of a reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    /// The least that stays free.
    pub least: Bytes,
    /// The most that stays free for its sake. Allocations of other processes within a run do not grow with the machine.
    pub most: Bytes,
}

impl Reserve {
    /// Nothing beyond the fifth that is never taken: for limits that are this process's own.
    pub const NONE: Self = Self { least: Bytes(0), most: Bytes(0) };
    /// Of the whole system. The least is the most that Linux reserves for itself by default (`min_free_kbytes` is limited to 256 MiB).
    pub const SYSTEM: Self = Self { least: Bytes::mib(256), most: Bytes::gib(4) };
    /// Of a node. The least is less than for the system: nodes of CXL, HBM or guests may have a few hundred MiB.
    pub const NODE: Self = Self { least: Bytes::mib(64), most: Bytes::gib(2) };

    /// Bytes of `left` that may be taken: four fifths, but so that 5 % of `total` stay free within the limits of the reserve; always a quarter.
    /// `total` is the memory that processes can be given.
    pub fn may_be_taken(self, left: u64, total: u64) -> u64 {
        let kept = (total / 100 * RESERVE_PERCENT).min(self.most.0).max(self.least.0);
        let share = left / 100 * USABLE_PERCENT;
        share.min(left.saturating_sub(kept).max(left / SMALL_ONE_IN))
    }
}

/// The amount of free memory and how much of it stays free, in words: `45.8 GiB, 4.0 GiB of it kept for the rest of the system`.
pub fn in_words(left: u64, may_be_taken: u64) -> String {
    let kept = left.saturating_sub(may_be_taken);
    if kept == 0 {
        return amount(left);
    }
    format!("{}, {} of it kept for the rest of the system", amount(left), amount(kept))
}

/// A size in words, in GiB or MiB.
pub fn amount(bytes: u64) -> String {
    if bytes >= 1 << 30 { format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64) } else { format!("{} MiB", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_reserve_has_a_share_and_bounds() {
        let taken = |least, most, left: u64, total: u64| {
            Reserve { least: Bytes(least * GIB), most: Bytes(most * GIB) }.may_be_taken(left * GIB, total * GIB).div_ceil(GIB)
        };
        // 80 % of what is left.
        assert_eq!(taken(0, 1000, 1000, 1000), 800);
        // When little is left, 5 % of the total stay free.
        assert_eq!(taken(0, 1000, 100, 1000), 50);
        // So does the least, and no more than the most.
        assert_eq!(taken(700, 1000, 1000, 1000), 300);
        assert_eq!(taken(0, 20, 100, 1000), 80);
        // A quarter of what is left is small.
        assert_eq!(taken(0, 1000, 40, 1000), 10);
        assert_eq!(taken(900, 1000, 1000, 1000), 250);
        let all = Reserve { least: Bytes(0), most: Bytes(u64::MAX) };
        assert_eq!(all.may_be_taken(u64::MAX, u64::MAX), u64::MAX / 100 * 80);
        assert_eq!(Reserve::NONE.may_be_taken(1000, u64::MAX), 800);
    }

    #[test]
    fn large_machines_keep_a_few_gibibytes() {
        for total in [256, 1024, 6144].map(|gib| gib * GIB) {
            assert_eq!(Reserve::SYSTEM.may_be_taken(12 * GIB, total), 8 * GIB);
            assert_eq!(Reserve::NODE.may_be_taken(8 * GIB, total), 6 * GIB);
            // Less is free than is to be kept: 64 MiB are nothing of that.
            assert!(Reserve::SYSTEM.may_be_taken(3 * GIB, total) >= 64 << 20);
        }
        assert_eq!(Reserve::SYSTEM.may_be_taken(0, 1024 * GIB), 0);
    }

    #[test]
    fn words_name_what_is_kept() {
        assert_eq!(in_words(46 * GIB, 42 * GIB), "46.0 GiB, 4.0 GiB of it kept for the rest of the system");
        assert_eq!(in_words(512 << 20, 512 << 20), "512 MiB");
    }
}
