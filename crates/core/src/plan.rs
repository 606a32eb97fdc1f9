//! What will be done: every default is decided and every cell is bound to CPUs, nodes, buffers and kernels. [`crate::planner`] makes it.

mod loaders;
mod scan;
mod steps;
mod transfers;

pub use loaders::{BufferPlan, Delays, KernelRow, Loader, OwnTraffic, Probe, Traffic};
pub(crate) use scan::shuffle;
pub use scan::{Scan, more_passes, pass_order};
pub use steps::{BandwidthSweep, Cell, Coarsened, Coarsening, InterleaveSearch, LatencySweep, Plan, Step, StopRule, Work};
pub(crate) use transfers::MIN_TRANSFER_S;
pub use transfers::{Handoff, TransferEnd, Transfers};
