//! A scan of memory: regions, passes and their order.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::plan::loaders::{BufferPlan, Traffic};
use crate::units::{Bytes, IdSet};
use serde::{Deserialize, Serialize};

/// All the memory of a node that may be taken, region by region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scan {
    /// The CPUs that read each region together.
    pub cpus: IdSet,
    /// One region.
    pub region: BufferPlan,
    /// How many regions, at most: growing stops earlier when memory gets scarce.
    pub regions: u32,
    /// How much of the node and of the system stays available; growing stops before less would.
    pub margin: Bytes,
    /// How often each region is read.
    pub passes: u32,
    /// What the CPUs do.
    pub traffic: Traffic,
    /// Width of the histogram's buckets in GB/s.
    pub bucket_gbs: f64,
    /// Whether patterns are written and compared afterwards.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub integrity: bool,
}

impl Scan {
    /// Bytes of all regions.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.region.bytes.0.saturating_mul(self.regions as u64))
    }
}

/// Planned passes for which there is one more, where some over a region were disturbed.
const ONE_MORE_IN: u32 = 5;

/// Passes over a region beyond those planned, at most: where so many were disturbed that others are wanted.
pub fn more_passes(planned: u32) -> u32 {
    (planned / ONE_MORE_IN).max(1)
}

/// The order in which pass number `pass` reads so many regions. Each pass has its own: what drifts while it goes on then falls on other
/// regions the next time, and no region always follows the same one.
pub fn pass_order(regions: usize, pass: u32, seed: u64) -> Vec<usize> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(pass).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut order: Vec<usize> = (0..regions).collect();
    for i in (1..regions).rev() {
        // Fisher and Yates; the remainder's bias is one in 2^40 here.
        order.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
    order
}
