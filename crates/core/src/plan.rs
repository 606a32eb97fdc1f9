//! What will be done: every default decided, every cell bound to CPUs, nodes, buffers and kernels. [`crate::planner`] makes it.

mod loaders;
mod scan;
mod steps;
mod sweeps;
mod transfers;

pub use loaders::*;
pub use scan::*;
pub use steps::*;
pub use sweeps::*;
pub use transfers::*;
