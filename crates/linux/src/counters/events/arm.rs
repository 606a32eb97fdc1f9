//! Arm's architected events, as Neoverse N1, V1, N2 and V2 have them.
//!
//! None of the four counts requests in flight; cores that do (`mem_access_rd_percyc`) name it in sysfs.

use memgauge_core::metrics::Role as R;

use super::row::{Table, row};

/// Neoverse N1, V1, N2, V2.
pub(super) const NEOVERSE: Table = Table {
    source: "github.com/ARM-software/data 6aeb4c8, pmu/neoverse-{n1,v1,n2,v2}.json; Arm Architecture Reference Manual D13",
    groups: &[
        &[
            row("cpu_cycles", &[R::Cycles], "event=0x11"),
            row("inst_retired", &[R::Instructions], "event=0x08"),
            row("l1d_cache", &[R::L1Accesses], "event=0x04"),
            row("l1d_cache_refill", &[R::L1Misses], "event=0x03"),
            row("l2d_cache", &[R::L2Accesses], "event=0x16"),
            row("l2d_cache_refill", &[R::L2Misses], "event=0x17"),
        ],
        &[
            row("ll_cache_rd", &[R::LlcAccesses], "event=0x36"),
            row("ll_cache_miss_rd", &[R::LlcMisses, R::LoadLlcMisses], "event=0x37"),
            row("dtlb_walk", &[R::TlbWalks], "event=0x34"),
            // Speculative: includes loads on paths that were not taken.
            row("ld_spec", &[R::Loads], "event=0x70"),
        ],
    ],
};
