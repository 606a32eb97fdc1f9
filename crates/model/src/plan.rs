//! The plan of a run: every default is decided and every cell is bound to CPUs, nodes, buffers and kernels. The crate `memgauge-planner` makes it.

mod loaders;
mod scan;
mod stamp;
mod steps;
mod transfers;
pub mod worth;

pub use loaders::{BufferPlan, Delays, KernelRow, Loader, OwnTraffic, Probe, Traffic};
pub use scan::{Scan, more_passes, pass_order, shuffle};
pub use stamp::StampPlan;
pub use steps::{
    BandwidthSweep, Cell, Coarsened, Coarsening, IdleChase, InterleaveSearch, LatencySweep, LoadCurve, Loading, Plan, Step, StopRule, Work,
};
pub use transfers::{Handoff, MIN_TRANSFER_S, TransferEnd, Transfers};
