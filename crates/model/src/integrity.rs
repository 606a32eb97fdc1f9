//! The patterns of memory tests: what is written to memory and compared with what is read back.
//!
//! The expected content of a word is computed from its place and never read from the memory that is tested. Memory is written and compared in
//! [`steps`]: each sweep over it compares what the sweep before has written and writes the next, so that nearly all of the time something
//! lies in memory that will be compared. Every pattern gives each bit both values.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::microbench;
use crate::traffic::LineContent;

/// Words of a block. Patterns are made block by block: 4 KiB, the smallest page.
pub const BLOCK_WORDS: usize = 512;
/// Bytes of a block.
pub const BLOCK_BYTES: usize = 8 * BLOCK_WORDS;
/// Bits of a word: what a walking bit walks through.
const WORD_BITS: u32 = u64::BITS;

/// A pattern of a memory test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TestPattern {
    /// Random words from a seed, no two blocks alike, and their complements. Finds any stuck bit, and lines that come from another address.
    Random,
    /// Each word holds its own address within the memory tested, and then the complement.
    Address,
    /// Alternating bits, the other way round in the next word, and then the complement.
    Checkerboard,
    /// Zeros in ascending order, ones in ascending order, zeros in descending order: disturbs each word's neighbours before and after it.
    MovingInversions,
    /// A one in each of the 64 bits of every word in turn, among zeros.
    WalkingOnes,
    /// A zero in each of the 64 bits of every word in turn, among ones.
    WalkingZeros,
}

impl TestPattern {
    /// All of them with their names, those first that find most in the least time.
    pub const ALL: [(&'static str, Self); 6] = [
        ("random", Self::Random),
        ("address", Self::Address),
        ("checkerboard", Self::Checkerboard),
        ("moving-inversions", Self::MovingInversions),
        ("walking-ones", Self::WalkingOnes),
        ("walking-zeros", Self::WalkingZeros),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, pattern)| *pattern == self).map_or("", |(name, _)| name)
    }

    /// How often all of the memory is written.
    pub const fn writes(self) -> u32 {
        match self {
            Self::Random | Self::Address | Self::Checkerboard => 2,
            Self::MovingInversions => 3,
            Self::WalkingOnes | Self::WalkingZeros => WORD_BITS,
        }
    }

    /// What the `nth` write writes.
    const fn step(self, nth: u32) -> TestStep {
        let (content, inverted) = match self {
            Self::Random => (Content::Random, nth == 1),
            Self::Address => (Content::Address, nth == 1),
            Self::Checkerboard => (Content::Checkerboard, nth == 1),
            Self::MovingInversions => (Content::Zeros, nth == 1),
            Self::WalkingOnes => (Content::WalkingOne(nth), false),
            Self::WalkingZeros => (Content::WalkingOne(nth), true),
        };
        let descending = matches!(self, Self::MovingInversions) && nth == 2;
        TestStep { pattern: self, content, inverted, descending, last: nth + 1 == self.writes() }
    }
}

/// One step of a memory test. It writes to all of the memory once; the next step, or the end of the test, compares what it wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct TestStep {
    /// The pattern that it belongs to.
    pub pattern: TestPattern,
    /// Whether memory is gone over from its end.
    pub descending: bool,
    /// Whether the pattern is complete once this is compared.
    pub last: bool,
    content: Content,
    inverted: bool,
}

impl TestStep {
    /// The words of memory whose first block has this number among all that is tested.
    pub fn words(&self, seed: u64, first_block: u64) -> Words {
        Words { inverted: self.inverted, ..Words::new(self.content.clone(), seed, first_block) }
    }
}

/// The steps of these patterns, one after the other.
pub fn steps(patterns: &[TestPattern]) -> Vec<TestStep> {
    patterns.iter().flat_map(|pattern| (0..pattern.writes()).map(|nth| pattern.step(nth))).collect()
}

/// Each of these patterns once, where it was named first.
pub fn each_once(patterns: &[TestPattern]) -> Vec<TestPattern> {
    let mut seen = BTreeSet::new();
    patterns.iter().copied().filter(|pattern| seen.insert(*pattern)).collect()
}

/// How words depend on their place.
#[derive(Debug, Clone, PartialEq)]
enum Content {
    Random,
    Address,
    Checkerboard,
    Zeros,
    /// The one is in this bit of the first word of a block, and one bit further in each next word.
    WalkingOne(u32),
    /// These lines, again and again.
    Lines(Vec<LineContent>),
}

/// The content that the words of a piece of memory must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Words {
    content: Content,
    seed: u64,
    first_block: u64,
    inverted: bool,
    /// Random words, which blocks combine with a word of their own.
    table: Vec<u64>,
}

impl Words {
    fn new(content: Content, seed: u64, first_block: u64) -> Self {
        let words = if content == Content::Random { BLOCK_WORDS as u64 } else { 0 };
        let table = (0..words).map(|i| microbench::word(seed, i)).collect();
        Self { content, seed, first_block, inverted: false, table }
    }

    /// Random words from a seed.
    pub fn random(seed: u64, first_block: u64) -> Self {
        Self::new(Content::Random, seed, first_block)
    }

    /// These lines again and again; random words if there is none.
    pub fn lines(lines: &[LineContent], seed: u64, first_block: u64) -> Self {
        let content = if lines.is_empty() { Content::Random } else { Content::Lines(lines.to_vec()) };
        // Lines begin anew in each buffer.
        let first_block = if lines.is_empty() { first_block } else { 0 };
        Self::new(content, seed, first_block)
    }

    /// The complement of each word.
    pub fn complement(&self) -> Self {
        Self { inverted: !self.inverted, ..self.clone() }
    }

    /// The words of block `number` of this memory.
    // Compiled where memory is checked, for the registers that are used there.
    #[inline(always)]
    pub fn block(&self, number: u64, to: &mut [u64; BLOCK_WORDS]) {
        let number = self.first_block + number;
        let mask = if self.inverted { u64::MAX } else { 0 };
        match &self.content {
            Content::Random => {
                // Far from the indices of the table.
                let own = microbench::word(!self.seed, number) ^ mask;
                to.iter_mut().zip(&self.table).for_each(|(to, word)| *to = word ^ own);
                // An odd number of words have the block's own, so that it is in the exclusive or of all.
                to[0] ^= own ^ mask;
            }
            Content::Address => {
                let first = number * BLOCK_BYTES as u64;
                to.iter_mut().zip(0u64..).for_each(|(to, i)| *to = (first + 8 * i) ^ mask);
            }
            Content::Checkerboard => to.as_chunks_mut::<2>().0.iter_mut().for_each(|to| {
                *to = [0x5555_5555_5555_5555 ^ mask, 0xAAAA_AAAA_AAAA_AAAA ^ mask];
            }),
            Content::Zeros => to.fill(mask),
            Content::WalkingOne(at) => {
                // Computed once: a shift for each word takes longer than reading it from memory.
                let mut ones = [0; WORD_BITS as usize];
                ones.iter_mut().zip(*at..).for_each(|(one, bit)| *one = (1u64 << (bit % WORD_BITS)) ^ mask);
                to.as_chunks_mut::<{ WORD_BITS as usize }>().0.iter_mut().for_each(|to| *to = ones);
            }
            Content::Lines(lines) => {
                let first = (number * (BLOCK_BYTES / size_of::<LineContent>()) as u64 % lines.len() as u64) as usize;
                let lines = lines.iter().cycle().skip(first);
                for (to, line) in to.as_chunks_mut::<8>().0.iter_mut().zip(lines) {
                    to.iter_mut().zip(line.0.as_chunks::<8>().0).for_each(|(to, bytes)| *to = u64::from_ne_bytes(*bytes) ^ mask);
                }
            }
        }
    }

    /// The exclusive or of the first words, as many as are in `bytes`.
    pub fn checksum(&self, bytes: u64) -> u64 {
        let mut block = [0; BLOCK_WORDS];
        (0..bytes.div_ceil(BLOCK_BYTES as u64)).fold(0, |sum, number| {
            self.block(number, &mut block);
            let words = ((bytes / 8 - number * BLOCK_WORDS as u64) as usize).min(BLOCK_WORDS);
            block[..words].iter().fold(sum, |sum, word| sum ^ word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_gives_each_bit_both_values() {
        for (name, pattern) in TestPattern::ALL {
            assert_eq!(pattern.name(), name);
            let steps = steps(&[pattern]);
            assert_eq!(steps.len() as u32, pattern.writes());
            assert!(steps.iter().position(|s| s.last) == Some(steps.len() - 1), "{name}");
            for block in [0, 1, 77_777] {
                let (mut ones, mut zeros) = ([0; BLOCK_WORDS], [0; BLOCK_WORDS]);
                for step in &steps {
                    let mut words = [0; BLOCK_WORDS];
                    step.words(1, 5).block(block, &mut words);
                    ones.iter_mut().zip(&words).for_each(|(seen, word)| *seen |= word);
                    zeros.iter_mut().zip(&words).for_each(|(seen, word)| *seen |= !word);
                }
                assert!(ones.iter().chain(&zeros).all(|seen| *seen == u64::MAX), "{name} in block {block}");
            }
        }
    }

    #[test]
    fn no_two_random_blocks_are_alike_nor_any_line_of_them_or_their_checksums() {
        let words = Words::random(7, 0);
        let (mut lines, mut sums) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for number in 0..300 {
            let mut block = [0; BLOCK_WORDS];
            words.block(number, &mut block);
            assert!(block.chunks(8).all(|line| lines.insert(line.to_vec())), "block {number}");
            assert!(sums.insert(block.iter().fold(0, |sum, word| sum ^ word)), "block {number}");
        }
        assert_ne!(Words::random(8, 0), words);
        let mut shifted = [0; BLOCK_WORDS];
        Words::random(7, 299).block(0, &mut shifted);
        assert!(shifted.chunks(8).all(|line| lines.contains(line)), "the block's number counts, wherever the memory begins");
    }

    #[test]
    fn checksums_are_those_of_the_words() {
        let lines: Vec<LineContent> = (1..=3).map(|b| LineContent([b * 17; 64])).collect();
        for words in [Words::random(3, 9), Words::random(3, 9).complement(), Words::lines(&lines, 0, 4)] {
            let mut all = vec![[0; BLOCK_WORDS]; 3];
            (0..).zip(&mut all).for_each(|(number, block)| words.block(number, block));
            for bytes in [0, 8, 64, 4096, 4096 + 64, 3 * 4096] {
                let sum = all.as_flattened()[..bytes / 8].iter().fold(0, |sum, word| sum ^ word);
                assert_eq!(words.checksum(bytes as u64), sum, "{bytes} bytes");
            }
        }
        let mut second = [0; BLOCK_WORDS];
        Words::lines(&lines, 0, 4).block(1, &mut second);
        assert_eq!(second[0], u64::from_ne_bytes([2 * 17; 8]), "line 64 is the second of three");
    }
}
