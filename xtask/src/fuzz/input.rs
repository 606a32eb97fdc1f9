//! Inputs: a seed of the target's corpus with a few mutations.

use anyhow::Result;
use memgauge_model::microbench::word;

use super::targets::Target;

/// The longest input.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The most mutations of an input.
const MUTATIONS: u64 = 8;
/// Texts that parsers of any format may stumble over.
const HOSTILE: [&str; 32] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e999",
    "-0.0",
    "NaN",
    "inf",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[2J",
    "\r\n",
    "\t",
    ",",
    "-",
    "..",
    "/",
    "=",
    "#",
    "9999999999999999999999999999999999999999",
];

/// Makes inputs from a corpus.
pub(super) struct Source {
    corpus: Vec<Vec<u8>>,
    words: &'static [&'static str],
    seed: u64,
}

/// Numbers in the order that a seed gives them (SplitMix64).
pub(crate) struct Dice(u64, u64);

impl Dice {
    /// The numbers of a run.
    pub(crate) const fn new(seed: u64, run: u64) -> Self {
        Self(seed, run << 32)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.1 += 1;
        word(self.0, self.1)
    }

    /// A number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

impl Source {
    /// # Errors
    /// When a file of the corpus cannot be read.
    pub(super) fn new(target: &Target, seed: u64) -> Result<Self> {
        let name = target.name.bytes().fold(0, |hash: u64, byte| word(hash, u64::from(byte)));
        Ok(Self { corpus: (target.corpus)()?, words: target.words, seed: seed ^ name })
    }

    /// The input with this number.
    pub(super) fn input(&self, number: u64) -> Vec<u8> {
        let mut dice = Dice::new(word(self.seed, number), 0);
        let pick = dice.below(self.corpus.len());
        let mut bytes = self.corpus.get(pick).cloned().unwrap_or_default();
        // The corpus itself comes first.
        if let Some(whole) = self.corpus.get(number as usize) {
            return whole.clone();
        }
        for _ in 0..1 + dice.next() % MUTATIONS {
            self.mutate(&mut bytes, &mut dice);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    fn mutate(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        let at = dice.below(bytes.len() + 1);
        let len = if dice.next().is_multiple_of(4) { dice.below(bytes.len() + 1) } else { dice.below(16) }.min(bytes.len() - at);
        match dice.next() % 9 {
            0 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (at % 8)),
            1 => bytes.insert(at, dice.next() as u8),
            2 => drop(bytes.drain(at..at + len)),
            3 => {
                // Up to the bound: what grows faster than its input shows then.
                let times = if dice.next().is_multiple_of(64) { (MAX_BYTES / 4 / len.max(1)).min(4096) } else { 1 };
                let copy = bytes[at..at + len].repeat(times);
                drop(bytes.splice(at..at, copy));
            }
            4 => drop(bytes.splice(at..at + len, HOSTILE[dice.below(HOSTILE.len())].bytes())),
            5 => replace_number(bytes, at, HOSTILE[dice.below(HOSTILE.len())]),
            6 if !self.words.is_empty() => drop(bytes.splice(at..at, self.words[dice.below(self.words.len())].bytes())),
            7 => {
                let other = &self.corpus[dice.below(self.corpus.len())];
                let from = dice.below(other.len() + 1);
                let part = other[from..(from + len.max(8)).min(other.len())].to_vec();
                drop(bytes.splice(at..at + len, part));
            }
            _ => bytes.truncate(at.max(bytes.len() / 2)),
        }
    }
}

/// Puts `text` in place of the first number behind `at`.
fn replace_number(bytes: &mut Vec<u8>, at: usize, text: &str) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) else { return };
    let end = bytes[start..].iter().position(|b| !b.is_ascii_digit() && *b != b'.').map_or(bytes.len(), |n| start + n);
    drop(bytes.splice(start..end, text.bytes()));
}
