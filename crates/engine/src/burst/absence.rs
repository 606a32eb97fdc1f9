//! Whether a thread was off its CPU or its memory did not answer. Both make a block take much longer than the others; the thread's CPU time
//! shows which of the two it was, if the kernel reports it.

use memgauge_model::protocol::MAX_UNSEEN;

/// The finding on a thread's long blocks, by its CPU time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Absence {
    /// The number of the longest blocks that are time off the CPU. During the other long blocks the thread ran: they are stalls.
    pub(crate) away: usize,
    /// Time off the CPU that is in none of the long blocks.
    pub(crate) unseen: f64,
}

impl Absence {
    /// Judges long blocks by their `excess` over the usual time, the longest first, and by the CPU time that the thread lost meanwhile: blocks
    /// are time off the CPU until they explain the lost time. If the kernel does not report CPU times (`None`), all blocks are.
    pub(crate) fn of(lost: Option<f64>, excess: &[f64]) -> Self {
        let Some(lost) = lost else { return Self { away: excess.len(), unseen: 0.0 } };
        let mut unseen = lost.max(0.0);
        // If half of a block was lost, the block is a short interruption that something else made longer.
        let away = excess.iter().take_while(|excess| {
            let explains = unseen > 0.0 && unseen >= **excess / 2.0;
            unseen = if explains { (unseen - **excess).max(0.0) } else { unseen };
            explains
        });
        Self { away: away.count(), unseen }
    }

    /// Whether a thread that was off its CPU for `unseen` of the time `took` was so for longer than its long blocks show.
    pub(crate) fn is_hidden(unseen: f64, took: f64) -> bool {
        unseen > MAX_UNSEEN * took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_tells_stalls_from_time_off_the_cpu() {
        let of = |lost, excess: &[f64]| {
            let found = Absence::of(lost, excess);
            (found.away, found.unseen)
        };
        assert_eq!(of(Some(0.0), &[300.0, 40.0]), (0, 0.0), "the thread ran all the time");
        assert_eq!(of(Some(310.0), &[300.0, 40.0]), (1, 10.0), "the longer one was away");
        assert_eq!(of(Some(345.0), &[300.0, 40.0]), (2, 5.0));
        assert_eq!(of(Some(900.0), &[300.0, 40.0]), (2, 560.0), "and it was away in other blocks");
        assert_eq!(of(Some(20.0), &[300.0, 40.0]), (0, 20.0), "a moment off the CPU does not explain the stall");
        assert_eq!(of(Some(-3.0), &[40.0]), (0, 0.0), "CPU time is counted in steps");
        assert_eq!(of(None, &[300.0, 40.0]), (2, 0.0), "not told");
    }
}
