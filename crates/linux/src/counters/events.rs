//! The event for each role on each core design: tables of codes for cores whose events sysfs does not name.
//!
//! A code from sysfs takes precedence over one from here. The rows of a group are counted together, so that both parts of a ratio come from
//! the same time. A group needs at most four programmable counters, which is what an Intel core has for each of two hardware threads. A test
//! compares every code with the values in its source.

mod amd;
mod arm;
mod intel;
mod kernel;
mod row;

pub use kernel::counts_nanoseconds;
pub(crate) use kernel::{GENERIC, NAMED, RAW, SOFTWARE_EVENTS};
pub(crate) use row::{Code, Row, Table};

use super::uarch::Microarchitecture;

/// The architected events of Arm, for cores without a table. Only those that sysfs shows are used, because the core has only those.
pub(crate) const ARM_COMMON: &Table = &arm::NEOVERSE;

/// The table of a core design.
pub(crate) fn table_for(design: Microarchitecture) -> &'static Table {
    use Microarchitecture as M;
    match design {
        M::SkylakeX | M::CascadeLakeX | M::IceLakeX => &intel::SKYLAKE_TO_ICE_LAKE,
        M::SapphireRapids | M::EmeraldRapids | M::GraniteRapids => &intel::SAPPHIRE_RAPIDS_ON,
        M::Zen2 => &amd::ZEN2,
        M::Zen3 => &amd::ZEN3,
        M::Zen4 => &amd::ZEN4,
        M::Zen5 => &amd::ZEN5,
        M::NeoverseN1 | M::NeoverseV1 | M::NeoverseN2 | M::NeoverseV2 => &arm::NEOVERSE,
    }
}

#[cfg(test)]
mod tests;
