//! The pseudo-random order in which random kernels visit the lines of a window.
//!
//! Random traffic is limited by how many lines a core can have in flight at once. Each instruction that finds the next line takes a slot
//! in the reorder buffer that a later line could have used. So nothing is computed per line: an order is a small table, from which two
//! instructions give a line's place. (On Zen 5, a permutation that was computed for each line in eight instructions gave less than half
//! of the bandwidth.)

use memgauge_model::random::{GOLDEN, bounded, split_mix};
use memgauge_model::traffic::Mix;

use crate::line::LINE;

/// Blocks of a window are a multiple of every kernel's chunk (3, 4 or 9 lines), so that a chunk never ends behind the table.
const BLOCK_UNIT: usize = 36;

const _: () = {
    let mut n = 0;
    while n < Mix::ALL.len() {
        let (loads, stores) = Mix::ALL[n].chunk_lines();
        assert!(BLOCK_UNIT.is_multiple_of((loads + stores) as usize), "the lines of a chunk divide the unit of blocks");
        n += 1;
    }
};

/// At this number of blocks, blocks are made larger instead. 576 to 1151 entries are at most 9 KiB, a part of any L1 cache, and far more
/// lines than a core has in flight.
const MAX_BLOCKS: usize = 1152;

/// Each visit to a block moves on by this number of lines from the visit before: 0.618 of 2^24, and odd, so that every line of a block is
/// visited, whichever power of two its size is.
pub(crate) const STEP_LINES: usize = 10_368_889;

/// A pseudo-random order of the lines of a window.
///
/// The window is divided into blocks of equal size, a power of two, which are visited in a random sequence, over and over. The line
/// visited in block `b` the `i`th time is `i` times an odd number, modulo the size, by exclusive or with a random number of the block.
/// No line is visited again before all the others were.
#[derive(Debug, Clone)]
pub struct Order {
    /// For each block, in the order of visits: where it begins plus its random number, as bytes.
    pub(crate) table: Box<[u64]>,
    /// Lines of a block, a power of two.
    block: usize,
}

impl Order {
    /// The smallest window, in lines.
    pub const MIN_LINES: usize = BLOCK_UNIT;

    /// The order of the largest window of at most `lines` lines that can have one: less than a sixteenth smaller where there are
    /// more than 576. `None` below [`MIN_LINES`](Self::MIN_LINES).
    pub fn new(lines: usize, seed: u64) -> Option<Self> {
        let mut block = 1;
        while lines / block >= MAX_BLOCKS {
            block *= 2;
        }
        let blocks = lines / block / BLOCK_UNIT * BLOCK_UNIT;
        if blocks == 0 {
            return None;
        }
        let mut random = Random(seed);
        let mut sequence: Vec<u64> = (0..blocks as u64).collect();
        for i in (1..blocks).rev() {
            sequence.swap(i, random.below(i as u64 + 1) as usize);
        }
        let place = |b: u64| (b * block as u64 + random.below(block as u64)) * u64::from(LINE);
        Some(Self { table: sequence.into_iter().map(place).collect(), block })
    }

    /// Lines of the window; a pass over it visits each once.
    #[inline]
    pub fn lines(&self) -> usize {
        self.table.len() * self.block
    }

    /// The line of the window that is visited after `index` others.
    pub fn line_at(&self, index: usize) -> usize {
        let place = self.table[index % self.table.len()] as usize / LINE as usize;
        place ^ (self.turn(index / self.table.len()) / LINE as usize)
    }

    /// The value that the table's entries are XORed with when each block was visited `times` times, in bytes.
    pub(crate) fn turn(&self, times: usize) -> usize {
        times.wrapping_mul(STEP_LINES * LINE as usize) & self.mask()
    }

    /// The bits of an offset that choose the line in its block.
    pub(crate) fn mask(&self) -> usize {
        (self.block - 1) * LINE as usize
    }
}

/// A sequence of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        let number = split_mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        bounded(number, n)
    }
}
