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

use memgauge_core::topology::Identity;

/// The architected events of Arm, for cores without a table. Only those that sysfs shows are used, because the core has only those.
pub(crate) const ARM_COMMON: &Table = &arm::NEOVERSE;

/// The memory controllers of AMD's Zen 4 and later.
pub(crate) const AMD_MEMORY: &Table = &amd::MEMORY;

/// The table for the CPUs of this machine; `None` when there is none, or when the CPUs differ.
pub(crate) fn table_for(identity: &Identity) -> Option<&'static Table> {
    let field = |name: &str| identity.model.get(name).map(String::as_str);
    let number = |name: &str| field(name)?.parse::<u32>().ok();
    match identity.vendor.as_deref()? {
        "GenuineIntel" => intel_table(number("family")?, number("model")?),
        "AuthenticAMD" => amd_table(number("family")?, number("model")?),
        "ARM" => arm_table(field("part")?),
        _ => None,
    }
}

/// Models of family 6, from Linux `arch/x86/include/asm/intel-family.h`.
fn intel_table(family: u32, model: u32) -> Option<&'static Table> {
    match (family, model) {
        // Skylake-SP, Cascade Lake and Cooper Lake; Ice Lake-SP and -D.
        (6, 0x55 | 0x6a | 0x6c) => Some(&intel::SKYLAKE_TO_ICE_LAKE),
        // Sapphire Rapids; Emerald Rapids; Granite Rapids.
        (6, 0x8f | 0xcf | 0xad | 0xae) => Some(&intel::SAPPHIRE_RAPIDS_ON),
        _ => None,
    }
}

/// Families and models, from Linux `arch/x86/kernel/cpu/amd.c` (`bsp_init_amd`).
fn amd_table(family: u32, model: u32) -> Option<&'static Table> {
    match (family, model) {
        (0x17, 0x30..=0x4f | 0x60..=0x7f | 0x90..=0x91 | 0xa0..=0xaf) => Some(&amd::ZEN2),
        (0x19, 0x00..=0x0f | 0x20..=0x5f) => Some(&amd::ZEN3),
        (0x19, 0x10..=0x1f | 0x60..=0xaf) => Some(&amd::ZEN4),
        (0x1a, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Some(&amd::ZEN5),
        _ => None,
    }
}

/// Part numbers of Neoverse N1, V1, N2 and V2, from Linux `arch/arm64/include/asm/cputype.h`.
fn arm_table(part: &str) -> Option<&'static Table> {
    ["0xd0c", "0xd40", "0xd49", "0xd4f"].contains(&part).then_some(&arm::NEOVERSE)
}

#[cfg(test)]
mod tests;
