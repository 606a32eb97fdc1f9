//! Which measurements belong together: what tables and figures have in common.

pub(crate) mod bandwidth;
pub(crate) mod curves;
pub(crate) mod latency;
pub(crate) mod prefetch;
pub(crate) mod section;
pub(crate) mod sweeps;
pub(crate) mod transfers;
