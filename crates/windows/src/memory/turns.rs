//! Pages on several nodes in turn, and which pages are looked up.

use memgauge_model::interleave::Weights;

/// The fewest pages of one of many buffers that are looked up: enough to show that a part of it is elsewhere.
const LEAST_SAMPLE: usize = 64;

/// The node of each page of a buffer whose pages are on several nodes in turn.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    pub(super) weights: Weights,
    /// Bytes that are placed at once; see [`Backing::turn`].
    pub(super) page: usize,
}

impl Turns {
    /// The node of the page at an address.
    pub(super) fn node_at(&self, address: usize) -> u32 {
        self.weights.node_of_page((address / self.page) as u64)
    }

    /// The parts of `len` bytes from `data` on that are on one node each: where they begin and end, as distances from `data`, and the node.
    pub(super) fn runs(&self, data: usize, len: usize) -> Vec<(usize, usize, u32)> {
        let mut runs: Vec<(usize, usize, u32)> = Vec::new();
        let mut at = 0;
        while at < len {
            let until = len.min(((data + at) / self.page + 1) * self.page - data);
            let node = self.node_at(data + at);
            match runs.last_mut() {
                Some(last) if last.2 == node => last.1 = until,
                _ => runs.push((at, until, node)),
            }
            at = until;
        }
        runs
    }
}

/// All of `count` indices when they are few, otherwise `most` of them, evenly spread, with the first and the last.
pub(super) fn sample(count: usize, most: usize) -> impl Iterator<Item = usize> {
    let taken = count.min(most.max(LEAST_SAMPLE));
    (0..taken).map(move |i| if taken < 2 { 0 } else { (i as u128 * (count - 1) as u128 / (taken - 1) as u128) as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 8192;

    #[test]
    fn a_sample_has_both_ends_and_no_index_twice() {
        for count in [0, 1, 2, 100, MOST, MOST + 1, 131_072, 1 << 40] {
            let indices: Vec<usize> = sample(count, MOST).collect();
            assert_eq!(indices.len(), count.min(MOST));
            assert!(indices.windows(2).all(|w| w[0] < w[1]));
            if count > 0 {
                assert_eq!((indices[0], indices[indices.len() - 1]), (0, count - 1));
            }
        }
    }
}
