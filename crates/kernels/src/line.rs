//! A cache line, and what is stored there.

/// Bytes of a cache line: the unit in which kernels touch memory on every instruction set here. Machines with 128-byte lines
/// (Apple, POWER) or 256-byte ones (A64FX) see as many accesses to each; what memory
/// then moves beyond them is for the caller to count.
pub const LINE: u32 = 64;

/// Stored lines consist of this byte unless a [`Walk`](crate::Walk) says otherwise.
pub const STORED_BYTE: u8 = 0xA5;

/// The content of one cache line.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line(pub [u8; LINE as usize]);

impl Line {
    /// The line that kernels store by default: [`STORED_BYTE`]s.
    pub const STORED: Self = Self([STORED_BYTE; LINE as usize]);
    /// Zeros: the value that a checksum begins with.
    pub const ZERO: Self = Self([0; LINE as usize]);

    /// The exclusive or of its eight 8-byte words.
    pub fn xor_of_words(&self) -> u64 {
        let mut sum = 0;
        for word in self.0.as_chunks().0 {
            sum ^= u64::from_ne_bytes(*word);
        }
        sum
    }
}
