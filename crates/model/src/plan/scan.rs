//! A scan of memory: regions, passes and their order.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::integrity::TestPattern;
use crate::plan::loaders::{BufferPlan, Traffic};
use crate::random::GOLDEN;
use crate::units::{Bytes, IdSet};

/// A scan of the memory of one node, region by region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scan {
    /// The CPUs that read each region together.
    pub cpus: IdSet,
    /// One region.
    pub region: BufferPlan,
    /// The largest number of regions. Fewer are allocated if memory gets scarce.
    pub regions: u32,
    /// How much memory of the node and of the system stays free. No further region is allocated if less would be left.
    pub margin: Bytes,
    /// How often each region is read.
    pub passes: u32,
    /// What the CPUs do.
    pub traffic: Traffic,
    /// Width of the histogram's buckets in GB/s.
    pub bucket_gbs: f64,
    /// Whether patterns are written to the memory and compared with what is read back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub integrity: bool,
    /// Which patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<TestPattern>,
    /// How long a pattern stays in the memory at least before it is compared.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub hold_s: f64,
}

impl Scan {
    /// Bytes of all regions.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.region.bytes.0.saturating_mul(self.regions as u64))
    }

    /// How often all regions are written with a pattern. They are compared as often.
    pub fn pattern_writes(&self) -> u32 {
        self.patterns.iter().map(|pattern| pattern.writes()).sum()
    }
}

/// One extra pass is allowed for this many planned passes, if some were disturbed.
const ONE_MORE_IN: u32 = 5;

/// The largest number of extra passes over a region, which replace disturbed ones.
pub fn more_passes(planned: u32) -> u32 {
    (planned / ONE_MORE_IN).max(1)
}

/// The order in which pass number `pass` reads the regions. Each pass has its own order. So slow drift affects other regions in each pass,
/// and no region always follows the same one.
pub fn pass_order(regions: usize, pass: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..regions).collect();
    shuffle(&mut order, seed ^ u64::from(pass).wrapping_mul(GOLDEN));
    order
}

/// The Fisher-Yates shuffle, with a generator whose values are the same in every version of the library.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for i in (1..items.len()).rev() {
        // The remainder's bias is one in 2^40 for a million items.
        items.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
}
