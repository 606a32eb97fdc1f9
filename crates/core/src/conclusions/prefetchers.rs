//! Whether prefetchers that were switched off are really off, as far as chases show.

use crate::experiment::{ChaseOrder, Method};
use crate::note::Note;
use crate::result::Measurement;
use crate::units::Bytes;

/// Above this ratio of random to sequential latency a prefetcher is active, whatever the registers say. Without prefetchers, open DRAM
/// pages and adjacent lines make ascending order at most this much faster.
pub const PREFETCHING_RATIO: f64 = 1.5;

/// Buffers below this may be in a cache, where order matters little.
const LARGE: Bytes = Bytes::mib(16);

/// Code of [`contradicted`]'s note.
pub const NOT_EFFECTIVE: &str = "prefetch-off-not-effective";

/// A note if latencies contradict registers that say that prefetchers are off. `results` were measured in that state.
pub fn contradicted<'a>(results: impl IntoIterator<Item = &'a Measurement>) -> Option<Note> {
    let results: Vec<&Measurement> = results.into_iter().filter(|m| m.method() == Method::IdleLatency).collect();
    let large = |m: &&&Measurement| m.evidence.buffer > LARGE && m.at.order != Some(ChaseOrder::Sequential);
    let ratios = results.iter().filter(large).filter_map(|m| m.evidence.prefetch).map(|p| p.random_over_sequential);
    let highest = ratios.fold(0.0, f64::max);
    (highest > PREFETCHING_RATIO).then(|| {
        Note::warning(
            NOT_EFFECTIVE,
            format!(
                "registers say that prefetchers are off, but random order is {highest:.2} times as slow as sequential: a prefetcher is active, so these numbers do not show the machine with prefetchers off"
            ),
        )
        .advise("the hypervisor may ignore the write, or firmware may control other prefetchers: look for them in the BIOS set-up")
    })
}
