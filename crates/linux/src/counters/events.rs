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

use memgauge_model::metrics::Role;
use memgauge_model::topology::Identity;

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

/// NVIDIA Grace: its coherent fabric counts reads of a socket's own memory in beats of 32 bytes, and writes in bytes.
const GRACE_MEMORY: Table = Table {
    source: "Linux drivers/perf/arm_cspmu/nvidia_cspmu.c; units as in github.com/RRZE-HPC/likwid d9c523b, groups/nvidia_grace/MEM.txt",
    groups: &[&[row("cmem_rd_data", &[Role::DramReads], "event=0x1a5"), row("cmem_wr_total_bytes", &[Role::DramWrites], "event=0x1db")]],
};

/// How many counts of an event are 64 bytes of memory traffic.
pub(crate) fn counts_per_line(name: &str) -> f64 {
    match name {
        "cmem_rd_data" => 2.0,
        "cmem_wr_total_bytes" => 64.0,
        _ => 1.0,
    }
}

/// Units that count memory traffic, by the part of their names before the number, with events that sysfs need not name.
pub(crate) const MEMORY_UNITS: [(&str, &Table); 3] =
    [("uncore_hbm_", &intel::HIGH_BANDWIDTH_MEMORY), ("amd_umc_", &amd::MEMORY), ("nvidia_scf_pmu_", &GRACE_MEMORY)];

/// The data fabric of AMD cores whose kernel has no unit for memory controllers.
pub(crate) fn fabric_for(cores: &Table) -> Option<&'static Table> {
    [amd::ZEN2, amd::ZEN3].contains(cores).then_some(&amd::FABRIC)
}

/// The events of the mesh beside these cores.
pub(crate) fn mesh_for(cores: &Table) -> Option<&'static Table> {
    let meshes = [(&intel::SKYLAKE_TO_ICE_LAKE, &intel::MESH_OF_ICE_LAKE), (&intel::SAPPHIRE_RAPIDS_ON, &intel::MESH)];
    meshes.into_iter().find(|(of, _)| *of == cores).map(|(_, mesh)| mesh)
}

/// Units whose memory traffic is not counted: the beginning of their names in sysfs, and the source of the traffic in words.
pub(crate) const UNCOUNTED_UNITS: [(&str, &str); 5] = [
    ("arm_cmn_", "requests at the mesh, which do not state their bytes"),
    ("cxl_pmu_mem", "devices of CXL memory"),
    ("uncore_cxl", "devices of CXL memory"),
    ("nvidia_nvlink_c2c", "accesses of other chips"),
    ("hisi_sccl", "memory controllers of HiSilicon"),
];

/// The table for a CPU of this machine; `None` when there is none, or when the CPUs differ otherwise than by being efficiency cores.
pub(crate) fn table_for(identity: &Identity, efficiency: bool) -> Option<&'static Table> {
    let field = |name: &str| identity.model.get(name).map(String::as_str);
    let number = |name: &str| field(name)?.parse::<u32>().ok();
    match identity.vendor.as_deref()? {
        "GenuineIntel" => intel_table(number("family")?, number("model")?, efficiency),
        "AuthenticAMD" => amd_table(number("family")?, number("model")?),
        "ARM" => arm_table(field("part")?),
        _ => None,
    }
}

/// Models of family 6, from mapfile.csv of github.com/intel/perfmon and Linux `arch/x86/include/asm/intel-family.h`.
fn intel_table(family: u32, model: u32, efficiency: bool) -> Option<&'static Table> {
    Some(match (family, model) {
        // Haswell and Broadwell: clients, -EP and -EX, -D.
        (6, 0x3c | 0x3f | 0x45 | 0x46 | 0x3d | 0x47 | 0x4f | 0x56) => &intel::HASWELL_AND_BROADWELL,
        // Skylake-SP, Cascade Lake and Cooper Lake; Ice Lake-SP and -D.
        (6, 0x55 | 0x6a | 0x6c) => &intel::SKYLAKE_TO_ICE_LAKE,
        // Skylake, Kaby, Coffee, Comet Lake; Ice, Tiger and Rocket Lake.
        (6, 0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7) => &intel::SKYLAKE_TO_ICE_LAKE,
        // Sapphire Rapids; Emerald Rapids; Granite Rapids.
        (6, 0x8f | 0xcf | 0xad | 0xae) => &intel::SAPPHIRE_RAPIDS_ON,
        // Alder and Raptor Lake; Alder Lake-N has efficiency cores only.
        (6, 0x97 | 0x9a | 0xb7 | 0xba | 0xbf) if !efficiency => &intel::SAPPHIRE_RAPIDS_ON,
        (6, 0x97 | 0x9a | 0xb7 | 0xba | 0xbf | 0xbe) => &intel::GRACEMONT,
        // Meteor Lake and Arrow Lake-U; Sierra Forest and Grand Ridge have efficiency cores only.
        (6, 0xaa | 0xac | 0xb5) if !efficiency => &intel::SAPPHIRE_RAPIDS_ON,
        (6, 0xaa | 0xac | 0xb5 | 0xaf | 0xb6) => &intel::CRESTMONT,
        _ => return None,
    })
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
