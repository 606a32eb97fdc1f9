//! Intel's server cores.

use memgauge_core::metrics::Role as R;

use super::row::{Row, Table, alias, row};

const SOURCE: &str = "github.com/intel/perfmon 6dadedf: SKX 1.37, CLX 1.25, ICX 1.30, SPR 1.39, EMR 1.24, GNR 1.20";

const CYCLES: Row = alias("cpu_clk_unhalted.thread", &["cpu-cycles"], &[R::Cycles], "event=0x3c");
const INSTRUCTIONS: Row = alias("inst_retired.any", &["instructions"], &[R::Instructions], "event=0xc0");

const LOADS: &[Row] = &[
    CYCLES,
    INSTRUCTIONS,
    row("mem_inst_retired.all_loads", &[R::Loads, R::L1Accesses], "event=0xd0,umask=0x81"),
    // Loads that found their line already on its way (FB_HIT) are no misses of this event.
    row("mem_load_retired.l1_miss", &[R::L1Misses], "event=0xd1,umask=0x08"),
    row("mem_load_retired.l2_miss", &[R::LoadL2Misses], "event=0xd1,umask=0x10"),
    row("mem_load_retired.l3_miss", &[R::LoadLlcMisses], "event=0xd1,umask=0x20"),
];

const CACHES: &[Row] = &[
    row("l2_rqsts.all_demand_data_rd", &[R::L2Accesses], "event=0x24,umask=0xe1"),
    row("l2_rqsts.demand_data_rd_miss", &[R::L2Misses], "event=0x24,umask=0x21"),
    row("longest_lat_cache.reference", &[R::LlcAccesses], "event=0x2e,umask=0x4f"),
    row("longest_lat_cache.miss", &[R::LlcMisses], "event=0x2e,umask=0x41"),
];

const L1_PENDING: Row = row("l1d_pend_miss.pending", &[R::L1Outstanding], "event=0x48,umask=0x01");
const L1_PENDING_CYCLES: Row = row("l1d_pend_miss.pending_cycles", &[R::L1OutstandingCycles], "event=0x48,umask=0x01,cmask=1");

/// Skylake-SP, Cascade Lake, Ice Lake. The vendor's list for Ice Lake lacks `cycles_with_demand_data_rd`, which is the same event with a mask
/// as on the others.
pub(super) const SKYLAKE_TO_ICE_LAKE: Table = Table {
    source: SOURCE,
    groups: &[
        LOADS,
        CACHES,
        &[
            L1_PENDING,
            L1_PENDING_CYCLES,
            row("dtlb_load_misses.walk_completed", &[R::TlbWalks], "event=0x08,umask=0x0e"),
            row("dtlb_load_misses.walk_pending", &[R::TlbWalkCycles], "event=0x08,umask=0x10"),
        ],
        &[
            row("offcore_requests_outstanding.demand_data_rd", &[R::DemandOutstanding], "event=0x60,umask=0x01"),
            row("offcore_requests_outstanding.cycles_with_demand_data_rd", &[R::DemandOutstandingCycles], "event=0x60,umask=0x01,cmask=1"),
            row("offcore_requests.demand_data_rd", &[R::DemandRequests], "event=0xb0,umask=0x01"),
        ],
        &[
            row("offcore_requests_outstanding.all_data_rd", &[R::DataOutstanding], "event=0x60,umask=0x08"),
            row("offcore_requests_outstanding.cycles_with_data_rd", &[R::DataOutstandingCycles], "event=0x60,umask=0x08,cmask=1"),
        ],
    ],
};

/// Sapphire, Emerald and Granite Rapids.
pub(super) const SAPPHIRE_RAPIDS_ON: Table = Table {
    source: SOURCE,
    groups: &[
        LOADS,
        CACHES,
        &[
            L1_PENDING,
            L1_PENDING_CYCLES,
            row("dtlb_load_misses.walk_completed", &[R::TlbWalks], "event=0x12,umask=0x0e"),
            row("dtlb_load_misses.walk_pending", &[R::TlbWalkCycles], "event=0x12,umask=0x10"),
        ],
        &[
            row("offcore_requests_outstanding.demand_data_rd", &[R::DemandOutstanding], "event=0x20,umask=0x01"),
            row("offcore_requests_outstanding.cycles_with_demand_data_rd", &[R::DemandOutstandingCycles], "event=0x20,umask=0x01,cmask=1"),
            row("offcore_requests.demand_data_rd", &[R::DemandRequests], "event=0x21,umask=0x01"),
        ],
        &[
            row("offcore_requests_outstanding.data_rd", &[R::DataOutstanding], "event=0x20,umask=0x08"),
            row("offcore_requests_outstanding.cycles_with_data_rd", &[R::DataOutstandingCycles], "event=0x20,umask=0x08,cmask=1"),
        ],
    ],
};
