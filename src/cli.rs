//! The native command line → [`memgauge_core::spec::Spec`]. Each option is defined once: name, help and effect side by side.

mod c2c;
pub(crate) mod command;
mod latency;
mod loaders;
pub(crate) mod loops;
mod options;
pub(crate) mod output;
pub(crate) mod prefetch;
mod quick;
pub(crate) mod request;
pub(crate) mod run;
mod scan;
mod sweep;
#[cfg(test)]
mod tests;
pub(crate) mod values;
