//! What a buffer is backed with.

/// What to back a buffer with, in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// Pages of this many bytes from a huge-page pool.
    Pool(usize),
    /// Transparent huge pages of this many bytes.
    Thp(usize),
    /// Base pages of this many bytes, with huge pages refused.
    Base(usize),
    /// A file, mapped in steps of this many bytes.
    File(usize),
}

impl Backing {
    /// The page in bytes.
    pub(super) fn page(self) -> usize {
        match self {
            Self::Pool(page) | Self::Thp(page) | Self::Base(page) | Self::File(page) => page,
        }
    }
}
