//! Events that the kernel defines for every machine.

use memgauge_model::metrics::Role;

use super::row::{Code, Row, Table};

/// `PERF_TYPE_HARDWARE`, and below `PERF_TYPE_SOFTWARE`, `PERF_TYPE_HW_CACHE` and `PERF_TYPE_RAW`.
pub(crate) const HARDWARE: u32 = 0;
pub(crate) const SOFTWARE: u32 = 1;
const HW_CACHE: u32 = 3;
pub(crate) const RAW: u32 = 4;

/// `PERF_COUNT_HW_CACHE_RESULT_MISS` for reads of a cache.
const MISS: u64 = 1 << 16;

const fn kernel(name: &'static str, aliases: &'static [&'static str], roles: &'static [Role], kind: u32, config: u64) -> Row {
    Row { name, aliases, roles, code: Code::Kernel(kind, config) }
}

/// The kernel's generic events. The kernel decides what they count on a core, so they are used last.
pub(crate) const GENERIC: Table = Table {
    source: "the kernel's generic events, perf_event_open(2)",
    groups: &[
        &[
            kernel("cycles", &["cpu-cycles", "cpu_cycles"], &[Role::Cycles], HARDWARE, 0),
            kernel("instructions", &["inst_retired"], &[Role::Instructions], HARDWARE, 1),
            kernel("L1-dcache-loads", &[], &[Role::Loads, Role::L1Accesses], HW_CACHE, 0),
            kernel("L1-dcache-load-misses", &[], &[Role::L1Misses], HW_CACHE, MISS),
        ],
        &[
            kernel("LLC-loads", &[], &[Role::LlcAccesses], HW_CACHE, 2),
            kernel("LLC-load-misses", &[], &[Role::LlcMisses], HW_CACHE, 2 | MISS),
        ],
    ],
};

/// Generic events that users may name. They have no role, because what they count differs too much between cores.
pub(crate) const NAMED: &[Row] = &[
    kernel("cache-references", &[], &[], HARDWARE, 2),
    kernel("cache-misses", &[], &[], HARDWARE, 3),
    kernel("branches", &["branch-instructions"], &[], HARDWARE, 4),
    kernel("branch-misses", &[], &[], HARDWARE, 5),
    kernel("bus-cycles", &[], &[], HARDWARE, 6),
    kernel("stalled-cycles-frontend", &[], &[], HARDWARE, 7),
    kernel("stalled-cycles-backend", &[], &[], HARDWARE, 8),
    kernel("ref-cycles", &[], &[], HARDWARE, 9),
    kernel("dTLB-loads", &[], &[], HW_CACHE, 3),
    kernel("dTLB-load-misses", &[], &[], HW_CACHE, 3 | MISS),
    kernel("node-loads", &[], &[], HW_CACHE, 6),
    kernel("node-load-misses", &[], &[], HW_CACHE, 6 | MISS),
];

/// The kernel's own events, which need no hardware (perf_event_open(2), `PERF_TYPE_SOFTWARE`).
pub(crate) const SOFTWARE_EVENTS: &[Row] = &[
    kernel("task-clock", &[], &[], SOFTWARE, 1),
    kernel("page-faults", &["faults"], &[], SOFTWARE, 2),
    kernel("context-switches", &["cs"], &[], SOFTWARE, 3),
    kernel("cpu-migrations", &["migrations"], &[], SOFTWARE, 4),
    kernel("minor-faults", &[], &[], SOFTWARE, 5),
    kernel("major-faults", &[], &[], SOFTWARE, 6),
    kernel("cpu-clock", &[], &[], SOFTWARE, 0),
];

/// Whether the event counts nanoseconds and not occurrences.
pub fn counts_nanoseconds(name: &str) -> bool {
    matches!(name, "task-clock" | "cpu-clock")
}
