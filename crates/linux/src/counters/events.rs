//! Which event has which role on which core: tables of codes for cores whose events sysfs does not name.
//!
//! A code from sysfs goes before one from here. Rows are in groups that are counted together, so that the parts of a ratio come from the
//! same stretch of time; a group needs at most four programmable counters, what an Intel core has for each of two hardware threads. A test
//! compares every code with the values that the source was read for.

use memgauge_core::metrics::Role;

use super::uarch::Microarchitecture;

mod amd;
mod arm;
mod intel;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    /// The vendor's name, in lower case as `perf list` writes it. Where sysfs names an event so, that code is taken.
    pub(crate) name: &'static str,
    /// Other names that sysfs has for it.
    pub(crate) aliases: &'static [&'static str],
    /// Its roles.
    pub(crate) roles: &'static [Role],
    /// Its code.
    pub(crate) code: Code,
}

/// How the kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Parts of a code, placed as the unit's `format/` says.
    Terms(&'static str),
    /// An event of the kernel itself: `perf_event_attr.type` and `config`.
    Kernel(u32, u64),
}

/// Events of a core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    /// Where the codes were read.
    pub(crate) source: &'static str,
    /// Rows counted together.
    pub(crate) groups: &'static [&'static [Row]],
}

impl Table {
    /// The table of a design.
    pub(crate) fn of(design: Microarchitecture) -> &'static Self {
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

    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Row> + use<> {
        self.groups.iter().flat_map(|group| group.iter())
    }
}

/// The architected events of Arm, for cores without a table: only those that sysfs shows, which are those that the core has.
pub(crate) const ARM_COMMON: &Table = &arm::NEOVERSE;

const fn row(name: &'static str, roles: &'static [Role], terms: &'static str) -> Row {
    Row { name, aliases: &[], roles, code: Code::Terms(terms) }
}

const fn alias(name: &'static str, aliases: &'static [&'static str], roles: &'static [Role], terms: &'static str) -> Row {
    Row { name, aliases, roles, code: Code::Terms(terms) }
}

/// `PERF_TYPE_HARDWARE`, `PERF_TYPE_SOFTWARE`, `PERF_TYPE_HW_CACHE`, `PERF_TYPE_RAW`.
pub(crate) const HARDWARE: u32 = 0;
pub(crate) const SOFTWARE: u32 = 1;
const HW_CACHE: u32 = 3;
pub(crate) const RAW: u32 = 4;

/// `PERF_COUNT_HW_CACHE_RESULT_MISS` of a cache's reads.
const MISS: u64 = 1 << 16;

const fn kernel(name: &'static str, aliases: &'static [&'static str], roles: &'static [Role], kind: u32, config: u64) -> Row {
    Row { name, aliases, roles, code: Code::Kernel(kind, config) }
}

/// The kernel's generic events: what they are on a core is the kernel's choice, so they are the last resort.
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

/// Generic events that can be named and have no role, because what they count differs too much between cores.
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

/// Software events that count nanoseconds.
pub(crate) fn counts_nanoseconds(name: &str) -> bool {
    matches!(name, "task-clock" | "cpu-clock")
}

#[cfg(test)]
mod tests;
