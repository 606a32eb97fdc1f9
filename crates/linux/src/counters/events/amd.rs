//! AMD's Zen 2 to Zen 5.
//!
//! A fill from beyond a cache is a miss of that cache: `ls_dmnd_fills_from_sys` counts demand fills of the first level by their source. The
//! last-level cache is that of the core complex.

use memgauge_model::metrics::Role as R;

use super::row::{Row, Table, alias, row};

const SOURCE: &str = "AMD PPRs for families 17h, 19h, 1Ah, as in libpfm4 91970fe and Linux tools/perf/pmu-events/arch/x86/amdzen*";

const CYCLES: Row = alias("ls_not_halted_cyc", &["cpu-cycles"], &[R::Cycles], "event=0x76");
const INSTRUCTIONS: Row = alias("ex_ret_instr", &["instructions"], &[R::Instructions], "event=0xc0");
/// Pure loads, and instructions that load and store.
const LOADS: Row = row("ls_dispatch.ld_dispatch+ld_st_dispatch", &[R::Loads], "event=0x29,umask=0x05");
const ACCESSES: Row = row("ls_dispatch.all", &[R::L1Accesses], "event=0x29,umask=0x07");
const L2_ACCESSES: Row = row("l2_cache_req_stat.dc_access", &[R::L2Accesses], "event=0x64,umask=0xf8");
const L2_MISSES: Row = row("l2_cache_req_stat.ls_rd_blk_c", &[R::L2Misses], "event=0x64,umask=0x08");
/// A first-level TLB miss that the second level does not have is a page walk.
const WALKS: Row = row("ls_l1_d_tlb_miss.all_l2_miss", &[R::TlbWalks], "event=0x45,umask=0xf0");
/// Misses in flight, counted each cycle.
const IN_FLIGHT: Row = row("ls_alloc_mab_count", &[R::L1Outstanding], "event=0x5f");

/// Zen 2. Its fills do not distinguish the cache of this complex from that of another complex on the same die. Both count as the last level.
pub(super) const ZEN2: Table = Table {
    source: SOURCE,
    groups: &[
        &[CYCLES, INSTRUCTIONS, LOADS, ACCESSES, row("ls_mab_alloc.loads+stores", &[R::L1Misses], "event=0x41,umask=0x03")],
        &[
            L2_ACCESSES,
            L2_MISSES,
            row("ls_refills_from_sys.beyond_l2", &[R::LlcAccesses, R::LoadL2Misses], "event=0x43,umask=0x5a"),
            row("ls_refills_from_sys.beyond_local_cache", &[R::LlcMisses, R::LoadLlcMisses], "event=0x43,umask=0x58"),
            WALKS,
        ],
    ],
};

/// Zen 3.
pub(super) const ZEN3: Table = Table {
    source: SOURCE,
    groups: &[
        &[CYCLES, INSTRUCTIONS, LOADS, ACCESSES, row("ls_mab_alloc.load_store_allocations", &[R::L1Misses], "event=0x41,umask=0x3f")],
        &[
            L2_ACCESSES,
            L2_MISSES,
            row("ls_dmnd_fills_from_sys.beyond_l2", &[R::LlcAccesses, R::LoadL2Misses], "event=0x43,umask=0x5e"),
            row("ls_dmnd_fills_from_sys.beyond_ccx", &[R::LlcMisses, R::LoadLlcMisses], "event=0x43,umask=0x5c"),
        ],
        &[WALKS, IN_FLIGHT],
    ],
};

/// Zen 4. Bit 7 of the fills: memory other than DRAM, such as CXL's.
pub(super) const ZEN4: Table = Table {
    source: SOURCE,
    groups: &[
        &[CYCLES, INSTRUCTIONS, LOADS, ACCESSES, row("ls_mab_alloc.load_store_allocations", &[R::L1Misses], "event=0x41,umask=0x3f")],
        ZEN4_CACHES,
        &[WALKS, IN_FLIGHT],
    ],
};

const ZEN4_CACHES: &[Row] = &[
    L2_ACCESSES,
    L2_MISSES,
    row("ls_dmnd_fills_from_sys.beyond_l2", &[R::LlcAccesses, R::LoadL2Misses], "event=0x43,umask=0xde"),
    row("ls_dmnd_fills_from_sys.beyond_ccx", &[R::LlcMisses, R::LoadLlcMisses], "event=0x43,umask=0xdc"),
];

/// Zen 5.
pub(super) const ZEN5: Table = Table {
    source: SOURCE,
    groups: &[
        &[CYCLES, INSTRUCTIONS, LOADS, ACCESSES, row("ls_mab_alloc.load_store_allocations", &[R::L1Misses], "event=0x41,umask=0x07")],
        ZEN4_CACHES,
        &[WALKS, IN_FLIGHT],
    ],
};

/// Memory controllers since Zen 4.
pub(super) const MEMORY: Table = Table {
    source: "AMD PPR, as in Linux tools/perf/pmu-events/arch/x86/amdzen4",
    groups: &[&[
        row("umc_cas_cmd.rd", &[R::DramReads], "event=0x0a,rdwrmask=1"),
        row("umc_cas_cmd.wr", &[R::DramWrites], "event=0x0a,rdwrmask=2"),
    ]],
};

/// The data fabric of Zen 2 and Zen 3: lines read or written by each of eight channels.
pub(super) const FABRIC: Table = Table {
    source: "AMD PPR, as in Linux tools/perf/pmu-events/arch/x86/amdzen{2,3}/data-fabric.json",
    groups: &[&[
        row("dram_channel_data_controller_0", &[R::DramTransfers], "event=0x07,umask=0x38"),
        row("dram_channel_data_controller_1", &[R::DramTransfers], "event=0x47,umask=0x38"),
        row("dram_channel_data_controller_2", &[R::DramTransfers], "event=0x87,umask=0x38"),
        row("dram_channel_data_controller_3", &[R::DramTransfers], "event=0xc7,umask=0x38"),
        row("dram_channel_data_controller_4", &[R::DramTransfers], "event=0x107,umask=0x38"),
        row("dram_channel_data_controller_5", &[R::DramTransfers], "event=0x147,umask=0x38"),
        row("dram_channel_data_controller_6", &[R::DramTransfers], "event=0x187,umask=0x38"),
        row("dram_channel_data_controller_7", &[R::DramTransfers], "event=0x1c7,umask=0x38"),
    ]],
};
