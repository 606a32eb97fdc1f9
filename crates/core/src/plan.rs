//! What will be done: every default is decided and every cell is bound to CPUs, nodes, buffers and kernels. [`crate::planner`] makes it.

mod loaders;
mod scan;
mod steps;
mod sweeps;
mod transfers;

pub use loaders::{BufferPlan, Delays, KernelRow, Loader, OwnTraffic, Probe, Traffic};
pub use scan::{Scan, more_passes, pass_order};
pub use steps::{Cell, Plan, Step, StopRule, Work};
pub use sweeps::{BandwidthSweep, LatencySweep};
pub(crate) use transfers::MIN_TRANSFER_S;
pub use transfers::{Handoff, TransferEnd, Transfers};
