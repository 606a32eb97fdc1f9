//! Intel's cores.

use memgauge_model::metrics::Role as R;

use super::row::{Row, Table, alias, row};

const SOURCE: &str = "github.com/intel/perfmon 6dadedf: HSW 36, HSX 29, BDW 30, BDX 23, BDW-DE 12, SKL 59, SKX 1.37, CLX 1.25, ICL 1.24, \
     ICX 1.30, TGL 1.19, RKL 1.04, SPR 1.39, EMR 1.24, GNR 1.20, ADL 1.40, MTL 1.22, SRF 1.18, GRR 1.13";

const CYCLES: Row = alias("cpu_clk_unhalted.thread", &["cpu-cycles"], &[R::Cycles], "event=0x3c");
const INSTRUCTIONS: Row = alias("inst_retired.any", &["instructions"], &[R::Instructions], "event=0xc0");

const LOADS: &[Row] = &[
    CYCLES,
    INSTRUCTIONS,
    row("mem_inst_retired.all_loads", &[R::Loads, R::L1Accesses], "event=0xd0,umask=0x81"),
    // This event does not count loads that found their line already on its way (FB_HIT).
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

const L1_LINES: &[Row] = &[L1_PENDING, L1_PENDING_CYCLES, L1_REPLACEMENTS];
const L1_REPLACEMENTS: Row = row("l1d.replacement", &[R::L1Replacements], "event=0x51,umask=0x01");

const DEMAND_READS: &[Row] = &[
    row("offcore_requests_outstanding.demand_data_rd", &[R::DemandOutstanding], "event=0x60,umask=0x01"),
    row("offcore_requests_outstanding.cycles_with_demand_data_rd", &[R::DemandOutstandingCycles], "event=0x60,umask=0x01,cmask=1"),
    row("offcore_requests.demand_data_rd", &[R::DemandRequests], "event=0xb0,umask=0x01"),
];

const DATA_READS_AND_WALKS: &[Row] = &[
    row("offcore_requests_outstanding.all_data_rd", &[R::DataOutstanding], "event=0x60,umask=0x08"),
    row("offcore_requests_outstanding.cycles_with_data_rd", &[R::DataOutstandingCycles], "event=0x60,umask=0x08,cmask=1"),
    row("dtlb_load_misses.walk_completed", &[R::TlbWalks], "event=0x08,umask=0x0e"),
    row("dtlb_load_misses.walk_pending", &[R::TlbWalkCycles], "event=0x08,umask=0x10"),
];

/// Haswell and Broadwell, of clients and servers. Only one of their counters counts outstanding misses of the first level, so the two events
/// take turns. Loads are counted as the micro-operations that they are.
pub(super) const HASWELL_AND_BROADWELL: Table = Table {
    source: SOURCE,
    groups: &[
        &[
            CYCLES,
            INSTRUCTIONS,
            row("mem_uops_retired.all_loads", &[R::Loads, R::L1Accesses], "event=0xd0,umask=0x81"),
            row("mem_load_uops_retired.l1_miss", &[R::L1Misses], "event=0xd1,umask=0x08"),
            row("mem_load_uops_retired.l2_miss", &[R::LoadL2Misses], "event=0xd1,umask=0x10"),
            row("mem_load_uops_retired.l3_miss", &[R::LoadLlcMisses], "event=0xd1,umask=0x20"),
        ],
        CACHES,
        &[L1_PENDING, L1_REPLACEMENTS],
        &[L1_PENDING_CYCLES],
        DEMAND_READS,
        DATA_READS_AND_WALKS,
    ],
};

/// Skylake to Tiger and Rocket Lake, of clients and servers. The vendor's list for Ice Lake lacks `cycles_with_demand_data_rd`, which is the same event with a mask
/// as on the others.
pub(super) const SKYLAKE_TO_ICE_LAKE: Table =
    Table { source: SOURCE, groups: &[LOADS, CACHES, L1_LINES, DEMAND_READS, DATA_READS_AND_WALKS] };

/// Sapphire, Emerald and Granite Rapids; performance cores of Alder, Raptor and Meteor Lake.
pub(super) const SAPPHIRE_RAPIDS_ON: Table = Table {
    source: SOURCE,
    groups: &[
        LOADS,
        CACHES,
        L1_LINES,
        &[
            row("offcore_requests_outstanding.demand_data_rd", &[R::DemandOutstanding], "event=0x20,umask=0x01"),
            row("offcore_requests_outstanding.cycles_with_demand_data_rd", &[R::DemandOutstandingCycles], "event=0x20,umask=0x01,cmask=1"),
            row("offcore_requests.demand_data_rd", &[R::DemandRequests], "event=0x21,umask=0x01"),
        ],
        &[
            row("offcore_requests_outstanding.data_rd", &[R::DataOutstanding], "event=0x20,umask=0x08"),
            row("offcore_requests_outstanding.cycles_with_data_rd", &[R::DataOutstandingCycles], "event=0x20,umask=0x08,cmask=1"),
            row("dtlb_load_misses.walk_completed", &[R::TlbWalks], "event=0x12,umask=0x0e"),
            row("dtlb_load_misses.walk_pending", &[R::TlbWalkCycles], "event=0x12,umask=0x10"),
        ],
    ],
};

const ATOM_CYCLES: Row = alias("cpu_clk_unhalted.core_p", &["cpu-cycles"], &[R::Cycles], "event=0x3c");
const ATOM_LOADS: Row = row("mem_uops_retired.all_loads", &[R::Loads, R::L1Accesses], "event=0xd0,umask=0x81");
const ATOM_LLC: Row = row("longest_lat_cache.reference", &[R::LlcAccesses], "event=0x2e,umask=0x4f");
const ATOM_LLC_MISSES: Row = row("longest_lat_cache.miss", &[R::LlcMisses], "event=0x2e,umask=0x41");
const ATOM_WALKS: Row = row("dtlb_load_misses.walk_completed", &[R::TlbWalks], "event=0x08,umask=0x0e");

/// Gracemont: efficiency cores of Alder and Raptor Lake, and Alder Lake-N. They have no events of requests in flight.
pub(super) const GRACEMONT: Table = Table {
    source: SOURCE,
    groups: &[
        &[
            ATOM_CYCLES,
            INSTRUCTIONS,
            ATOM_LOADS,
            row("mem_load_uops_retired.l1_miss", &[R::L1Misses, R::L2Accesses], "event=0xd1,umask=0x08"),
            row("mem_load_uops_retired.l2_miss", &[R::L2Misses, R::LoadL2Misses], "event=0xd1,umask=0x10"),
        ],
        &[ATOM_LLC, ATOM_LLC_MISSES, ATOM_WALKS],
    ],
};

/// Crestmont: efficiency cores of Meteor Lake, Sierra Forest, Grand Ridge.
pub(super) const CRESTMONT: Table = Table {
    source: SOURCE,
    groups: &[
        &[
            ATOM_CYCLES,
            INSTRUCTIONS,
            ATOM_LOADS,
            row("mem_load_uops_retired.l1_miss", &[R::L1Misses, R::L2Accesses], "event=0xd1,umask=0x40"),
            row("mem_load_uops_retired.l2_miss", &[R::L2Misses, R::LoadL2Misses], "event=0xd1,umask=0x80"),
        ],
        &[ATOM_LLC, ATOM_LLC_MISSES, ATOM_WALKS, row("dtlb_load_misses.walk_pending", &[R::TlbWalkCycles], "event=0x08,umask=0x10")],
    ],
};

/// Controllers of the high-bandwidth memory of Xeon Max: `uncore_hbm` since Linux 6.3. sysfs names no events of theirs.
pub(super) const HIGH_BANDWIDTH_MEMORY: Table = Table {
    source: "github.com/intel/perfmon 6dadedf, SPR 1.39, unit MCHBM; 64 bytes each as in github.com/RRZE-HPC/likwid d9c523b, groups/SPR/HBM.txt",
    groups: &[&[
        row("unc_mchbm_cas_count.rd", &[R::DramReads], "event=0x05,umask=0xcf"),
        row("unc_mchbm_cas_count.wr", &[R::DramWrites], "event=0x05,umask=0xf0"),
    ]],
};

const MESH_SOURCE: &str = "github.com/intel/perfmon 6dadedf: ICX 1.30, SPR 1.39, EMR 1.24, GNR 1.20, unit CHA";
const MESH_READS: Row = row("unc_cha_tor_inserts.ia_miss_drd", &[R::MeshReads], "event=0x35,umask=0xc817fe01");
const MESH_OUTSTANDING: Row = row("unc_cha_tor_occupancy.ia_miss_drd", &[R::MeshOutstanding], "event=0x36,umask=0xc817fe01");

/// The mesh's home agents of Ice Lake-SP. Those of Skylake-SP have no umask of this length.
pub(super) const MESH_OF_ICE_LAKE: Table =
    Table { source: MESH_SOURCE, groups: &[&[MESH_READS, MESH_OUTSTANDING, row("unc_cha_clockticks", &[R::MeshCycles], "event=0x00")]] };

/// Those since Sapphire Rapids.
pub(super) const MESH: Table =
    Table { source: MESH_SOURCE, groups: &[&[MESH_READS, MESH_OUTSTANDING, row("unc_cha_clockticks", &[R::MeshCycles], "event=0x01")]] };
