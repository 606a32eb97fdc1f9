//! SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014), which gives the same numbers in every version
//! of every library.

/// 2⁶⁴ over the golden ratio, odd: multiples of different numbers differ.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number that the generator gives in `state`; its next state is `state` + [`GOLDEN`].
#[inline]
pub const fn split_mix(state: u64) -> u64 {
    let z = state.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number below `limit` from 64 random bits, by multiplication (D. Lemire, "Fast Random Integer Generation in an Interval", 2019).
/// Without his rejection step: its bias, at most `limit` / 2^64, cannot be seen here.
#[inline]
pub fn bounded(random: u64, limit: u64) -> u64 {
    ((u128::from(random) * u128::from(limit)) >> 64) as u64
}

/// 4 KiB, the smallest page: no page is larger than what differs.
pub const CONTENT_WORDS: usize = 512;
/// Words without pattern (SplitMix64). Each 4 KiB of memory begins with another word instead of the first of these: its address times
/// [`GOLDEN`]. So no two pages are alike, which would be merged, and none is compressed.
pub const CONTENT: [u64; CONTENT_WORDS] = {
    let (mut words, mut i) = ([0; CONTENT_WORDS], 0);
    while i < CONTENT_WORDS {
        words[i] = split_mix((i as u64).wrapping_mul(GOLDEN));
        i += 1;
    }
    words
};
