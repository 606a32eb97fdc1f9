//! The native command line → [`memgauge_model::spec::Spec`]. Each option is defined once: name, help and effect side by side.

pub(crate) mod advise;
mod c2c;
pub(crate) mod command;
pub(crate) mod compare;
pub(crate) mod count;
pub(crate) mod fleet;
mod help;
pub(crate) mod info;
pub(crate) mod interleave;
mod latency;
mod loaders;
pub(crate) mod loops;
pub(crate) mod options;
pub(crate) mod output;
mod pmem;
pub(crate) mod prefetch;
mod quick;
pub(crate) mod reference;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod run;
mod scan;
mod sweep;
#[cfg(test)]
mod tests;
mod tiers;
pub(crate) mod values;
