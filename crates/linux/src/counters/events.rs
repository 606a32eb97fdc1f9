//! The event for each role on each core design: tables of codes for cores whose events sysfs does not name.
//!
//! A code from sysfs takes precedence over one from here. The rows of a group are counted together, so that both parts of a ratio come from
//! the same time. A group needs at most four programmable counters, which is what an Intel core has for each of two hardware threads. A test
//! compares every code with the values in its source.

mod amd;
mod intel;
mod kernel;
mod row;

pub use kernel::counts_nanoseconds;
pub(crate) use kernel::{GENERIC, NAMED, RAW, SOFTWARE_EVENTS};
pub(crate) use row::{Code, Row, Table};

use memgauge_core::metrics::Role;
use memgauge_core::topology::Identity;

use row::row;

/// Arm's architected events, as Neoverse N1, V1, N2 and V2 have them, and for cores without a table. Only those that sysfs shows are used
/// there, because such a core has only those.
///
/// None of the four counts requests in flight; cores that do (`mem_access_rd_percyc`) name it in sysfs.
pub(crate) const ARM_COMMON: &Table = &Table {
    source: "github.com/ARM-software/data 6aeb4c8, pmu/neoverse-{n1,v1,n2,v2}.json; Arm Architecture Reference Manual D13",
    groups: &[
        &[
            row("cpu_cycles", &[Role::Cycles], "event=0x11"),
            row("inst_retired", &[Role::Instructions], "event=0x08"),
            row("l1d_cache", &[Role::L1Accesses], "event=0x04"),
            row("l1d_cache_refill", &[Role::L1Misses], "event=0x03"),
            row("l2d_cache", &[Role::L2Accesses], "event=0x16"),
            row("l2d_cache_refill", &[Role::L2Misses], "event=0x17"),
        ],
        &[
            row("ll_cache_rd", &[Role::LlcAccesses], "event=0x36"),
            row("ll_cache_miss_rd", &[Role::LlcMisses, Role::LoadLlcMisses], "event=0x37"),
            row("dtlb_walk", &[Role::TlbWalks], "event=0x34"),
            // Speculative: includes loads on paths that were not taken.
            row("ld_spec", &[Role::Loads], "event=0x70"),
        ],
    ],
};

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
    ["0xd0c", "0xd40", "0xd49", "0xd4f"].contains(&part).then_some(ARM_COMMON)
}

#[cfg(test)]
mod tests;
