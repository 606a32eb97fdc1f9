//! The two loops of `memgauge stream` and `memgauge chase`: what they read, and the proof that they read it.
//!
//! **Stream.** A buffer of `n` words of 8 bytes holds the first `n` numbers of SplitMix64 from a seed ([`word`]). Its checksum is the
//! exclusive or of all words. A pass goes over the buffer an odd number of times, because words read twice cancel, so the checksum of a
//! pass is that of the buffer: the same contents give the same checksum, whatever the width of the loads. After the last pass the complement of
//! all words is written and read once, so that a bit that is stuck at its own value shows.
//!
//! **Chase.** A buffer holds one cycle of pointers ([`ChaseLayout`](crate::pattern::ChaseLayout)). A pass follows it some whole laps and one hop further, so after
//! `p` passes the chase is at the line that is `p` hops from the start, which is computed without looking at the memory.

use serde::{Deserialize, Serialize};

use crate::experiment::{ChaseOrder, PageRequest};
use crate::random::{GOLDEN, split_mix};
use crate::units::Bytes;

/// A pass of a stream reads at least this much, so that the cost of reading the clock does not matter: a millisecond or less.
const MIN_STREAM: u64 = 64 << 20;
/// A pass of a chase makes at least this many hops: a millisecond where hops are fastest.
const MIN_HOPS: u64 = 1 << 20;

/// The buffer of a loop for which no size is given: larger than most caches.
pub const DEFAULT_SIZE: Bytes = Bytes::mib(512);

/// The request for one loop.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopSpec {
    /// Which one.
    pub kind: LoopKind,
    /// Bytes of the buffer; if not given, [`DEFAULT_SIZE`], or less where less memory may be taken.
    pub size: Option<Bytes>,
    /// The CPU to run on; if not given, any CPU that the process may use.
    pub cpu: Option<u32>,
    /// The node that the memory must be on; if not given, the memory policy of the process decides.
    pub node: Option<u32>,
    /// Which pages.
    pub pages: PageRequest,
    /// Passes that are timed, each a sample.
    pub passes: u32,
    /// Seed of the contents or of the order.
    pub seed: u64,
    /// Count hardware events while timed passes run.
    pub counters: bool,
}

/// Which loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// Reads every line in order.
    Stream,
    /// Follows pointers.
    Chase {
        /// In which order.
        order: ChaseOrder,
        /// Distance between chased lines.
        stride: Bytes,
        /// Window of the window-local order.
        window: Bytes,
    },
}

/// Proof that a loop did its work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopProof {
    /// Passes that were timed.
    pub passes: u32,
    /// How often a pass goes over the buffer.
    pub laps: u64,
    /// Hops of a pass of a chase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u64>,
    /// Exclusive or of the 8-byte words that the last pass of a stream read, 16 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The line at which a chase ended, numbered from the start of the buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_index: Option<u64>,
    /// Passes whose checksum was not the one computed without reading the memory, with the one that warms up and the one over the complement
    /// of the contents, which are not timed; for a chase, 1 if its last line was not the one computed.
    pub mismatches: u32,
}

/// Word `index` of a stream's buffer: output `index` (from 0) of SplitMix64 from `seed`.
pub const fn word(seed: u64, index: u64) -> u64 {
    split_mix(seed.wrapping_add(GOLDEN.wrapping_mul(index)))
}

/// The checksum that a stream's buffer of `bytes` bytes should have.
pub fn checksum(seed: u64, bytes: u64) -> u64 {
    (0..bytes / 8).fold(0, |sum, index| sum ^ word(seed, index))
}

/// How often a pass of a stream goes over `bytes`; an odd number.
pub fn stream_laps(bytes: Bytes) -> u64 {
    MIN_STREAM.div_ceil(bytes.0.max(1)) | 1
}

/// Laps of one pass of a chase over `lines` lines.
pub fn chase_laps(lines: u64) -> u64 {
    MIN_HOPS.div_ceil(lines.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_splitmix64() {
        // The generator's published values from seed 1234567.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|i| word(1_234_567, i)), expected);
        assert_eq!(checksum(1_234_567, 24), expected[0] ^ expected[1] ^ expected[2]);
        assert_ne!(checksum(1, 4096), checksum(1, 4096 + 8), "the size is in it");
        assert_ne!(checksum(1, 4096), checksum(2, 4096), "the contents are in it");
    }

    #[test]
    fn laps_are_odd_and_long_enough() {
        for bytes in [1, 64, 4096, 3 << 20, 64 << 20, 1 << 40] {
            let laps = stream_laps(Bytes(bytes));
            assert!(laps % 2 == 1 && (laps * bytes >= MIN_STREAM), "{bytes}: {laps}");
        }
        assert_eq!((chase_laps(2), chase_laps(1 << 20), chase_laps(1 << 30)), (1 << 19, 1, 1));
    }
}
