use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::counters::pmu::parse_number;

/// Event, umask and cmask of a row.
fn code(row: &Row) -> (u64, u64, u64) {
    let Code::Terms(terms) = row.code else { panic!("{} has a code of the kernel's", row.name) };
    let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
    for term in terms.split(',') {
        let (key, value) = term.split_once('=').unwrap();
        assert!(parts.insert(key, parse_number(value).unwrap()).is_none(), "{terms}");
        assert!(["event", "umask", "cmask"].contains(&key), "{terms}");
    }
    let value = |key| parts.get(key).copied().unwrap_or(0);
    (value("event"), value("umask"), value("cmask"))
}

fn code_of(table: &Table, role: Role) -> Option<(u64, u64, u64)> {
    table.rows().find(|r| r.roles.contains(&role)).map(code)
}

#[test]
fn every_table_can_be_read_and_gives_each_role_once() {
    let tables = [
        ("Intel before Skylake", &intel::HASWELL_AND_BROADWELL),
        ("Gracemont", &intel::GRACEMONT),
        ("Crestmont", &intel::CRESTMONT),
        ("Intel before Sapphire Rapids", &intel::SKYLAKE_TO_ICE_LAKE),
        ("Intel since Sapphire Rapids", &intel::SAPPHIRE_RAPIDS_ON),
        ("Zen 2", &amd::ZEN2),
        ("Zen 3", &amd::ZEN3),
        ("Zen 4", &amd::ZEN4),
        ("Zen 5", &amd::ZEN5),
        ("Neoverse", ARM_COMMON),
    ];
    for (cores, table) in tables {
        let mut roles = BTreeSet::new();
        let mut names = BTreeSet::new();
        for row in table.rows() {
            code(row);
            assert!(names.insert(row.name), "{cores}: {} twice", row.name);
            for role in row.roles {
                assert!(roles.insert(*role), "{cores}: {role:?} twice");
            }
        }
        for role in [Role::Cycles, Role::Instructions, Role::L1Accesses, Role::L1Misses, Role::L2Misses, Role::LlcMisses, Role::TlbWalks] {
            assert!(roles.contains(&role), "{cores} lacks {role:?}");
        }
        // Intel has fixed counters for cycles and instructions, Arm has one for cycles, and AMD has six counters of one kind.
        let programmable =
            |group: &&[Row]| group.iter().filter(|r| !r.roles.contains(&Role::Cycles) && !r.roles.contains(&Role::Instructions)).count();
        assert!(table.groups.iter().all(|g| programmable(g) <= 5), "{cores}");
        assert!(!table.source.is_empty());
    }
}

/// Intel's codes from the vendor's lists (event, umask, cmask).
#[test]
fn intel() {
    let common = [
        (Role::Loads, (0xd0, 0x81, 0)),
        (Role::L1Misses, (0xd1, 0x08, 0)),
        (Role::LoadL2Misses, (0xd1, 0x10, 0)),
        (Role::LoadLlcMisses, (0xd1, 0x20, 0)),
        (Role::L2Accesses, (0x24, 0xe1, 0)),
        (Role::L2Misses, (0x24, 0x21, 0)),
        (Role::LlcAccesses, (0x2e, 0x4f, 0)),
        (Role::LlcMisses, (0x2e, 0x41, 0)),
        (Role::L1Outstanding, (0x48, 0x01, 0)),
        (Role::L1OutstandingCycles, (0x48, 0x01, 1)),
        (Role::L1Replacements, (0x51, 0x01, 0)),
    ];
    // The codes of the off-core events and of page walks changed with Sapphire Rapids.
    for (table, (outstanding, requests, walks)) in [
        (&intel::HASWELL_AND_BROADWELL, (0x60, 0xb0, 0x08)),
        (&intel::SKYLAKE_TO_ICE_LAKE, (0x60, 0xb0, 0x08)),
        (&intel::SAPPHIRE_RAPIDS_ON, (0x20, 0x21, 0x12)),
    ] {
        for (role, expected) in common {
            assert_eq!(code_of(table, role), Some(expected), "{outstanding:#x} {role:?}");
        }
        for (role, expected) in [
            (Role::DemandOutstanding, (outstanding, 0x01, 0)),
            (Role::DemandOutstandingCycles, (outstanding, 0x01, 1)),
            (Role::DataOutstanding, (outstanding, 0x08, 0)),
            (Role::DataOutstandingCycles, (outstanding, 0x08, 1)),
            (Role::DemandRequests, (requests, 0x01, 0)),
            (Role::TlbWalks, (walks, 0x0e, 0)),
            (Role::TlbWalkCycles, (walks, 0x10, 0)),
        ] {
            assert_eq!(code_of(table, role), Some(expected), "{outstanding:#x} {role:?}");
        }
    }
}

/// The efficiency cores' codes from the vendor's lists: the umasks of retired loads changed with Crestmont.
#[test]
fn intel_efficiency_cores() {
    for (table, l1_miss, l2_miss, walk_cycles) in
        [(&intel::GRACEMONT, 0x08, 0x10, None), (&intel::CRESTMONT, 0x40, 0x80, Some((0x08, 0x10, 0)))]
    {
        for (role, expected) in [
            (Role::Loads, Some((0xd0, 0x81, 0))),
            (Role::L1Misses, Some((0xd1, l1_miss, 0))),
            (Role::LoadL2Misses, Some((0xd1, l2_miss, 0))),
            (Role::LlcAccesses, Some((0x2e, 0x4f, 0))),
            (Role::LlcMisses, Some((0x2e, 0x41, 0))),
            (Role::TlbWalks, Some((0x08, 0x0e, 0))),
            (Role::TlbWalkCycles, walk_cycles),
            (Role::DemandOutstanding, None),
        ] {
            assert_eq!(code_of(table, role), expected, "{l1_miss:#x} {role:?}");
        }
    }
    // Haswell and Broadwell count outstanding first-level misses with one counter only.
    let together = |group: &&[Row]| group.iter().filter(|r| code(r).0 == 0x48).count();
    assert!(intel::HASWELL_AND_BROADWELL.groups.iter().all(|g| together(g) <= 1));
}

#[test]
fn amd() {
    for (zen, table, misses, beyond_l2, beyond_llc) in [
        (2, &amd::ZEN2, 0x03, 0x5a, 0x58),
        (3, &amd::ZEN3, 0x3f, 0x5e, 0x5c),
        (4, &amd::ZEN4, 0x3f, 0xde, 0xdc),
        (5, &amd::ZEN5, 0x07, 0xde, 0xdc),
    ] {
        assert_eq!(code_of(table, Role::L1Misses), Some((0x41, misses, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::L1Accesses), Some((0x29, 0x07, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::L2Misses), Some((0x64, 0x08, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::L2Accesses), Some((0x64, 0xf8, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::LlcAccesses), Some((0x43, beyond_l2, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::LlcMisses), Some((0x43, beyond_llc, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::TlbWalks), Some((0x45, 0xf0, 0)), "Zen {zen}");
        assert_eq!(code_of(table, Role::L1Outstanding), (zen != 2).then_some((0x5f, 0, 0)), "Zen {zen}");
    }
}

#[test]
fn arm() {
    for (role, event) in [
        (Role::Cycles, 0x11),
        (Role::Instructions, 0x08),
        (Role::L1Accesses, 0x04),
        (Role::L1Misses, 0x03),
        (Role::L2Accesses, 0x16),
        (Role::L2Misses, 0x17),
        (Role::LlcAccesses, 0x36),
        (Role::LlcMisses, 0x37),
        (Role::TlbWalks, 0x34),
    ] {
        assert_eq!(code_of(ARM_COMMON, role), Some((event, 0, 0)), "{role:?}");
    }
    assert_eq!(code_of(ARM_COMMON, Role::DemandOutstanding), None, "no core of these counts requests in flight");
}

#[test]
fn the_kernels_own_events_are_those_of_its_header() {
    let find = |rows: &[Row], name: &str| rows.iter().find(|r| r.name == name).map(|r| r.code);
    assert_eq!(find(SOFTWARE_EVENTS, "task-clock"), Some(Code::Kernel(1, 1)));
    assert_eq!(find(SOFTWARE_EVENTS, "page-faults"), Some(Code::Kernel(1, 2)));
    assert_eq!(find(SOFTWARE_EVENTS, "context-switches"), Some(Code::Kernel(1, 3)));
    assert_eq!(find(NAMED, "cache-misses"), Some(Code::Kernel(0, 3)));
    // LL = 2, read = 0 << 8, miss = 1 << 16.
    let generic: Vec<Row> = GENERIC.rows().copied().collect();
    assert_eq!(find(&generic, "LLC-load-misses"), Some(Code::Kernel(3, 0x1_0002)));
}

fn identity(vendor: &str, fields: &[(&str, &str)]) -> Identity {
    Identity {
        vendor: Some(vendor.into()),
        model: fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        ..Identity::default()
    }
}

#[test]
fn tables_by_family_and_model() {
    let core =
        |model, efficiency| table_for(&identity("GenuineIntel", &[("family", "6"), ("model", model), ("stepping", "4")]), efficiency);
    let intel = |model| core(model, false);
    for model in ["60", "63", "79", "86"] {
        assert_eq!(intel(model), Some(&intel::HASWELL_AND_BROADWELL), "{model}");
    }
    for model in ["85", "106", "108", "94", "158", "140", "167"] {
        assert_eq!(intel(model), Some(&intel::SKYLAKE_TO_ICE_LAKE), "{model}");
    }
    for model in ["143", "207", "173", "174", "151", "183", "170"] {
        assert_eq!(intel(model), Some(&intel::SAPPHIRE_RAPIDS_ON), "{model}");
    }
    assert_eq!((core("151", true), core("170", true)), (Some(&intel::GRACEMONT), Some(&intel::CRESTMONT)), "hybrid");
    assert_eq!((intel("190"), intel("175")), (Some(&intel::GRACEMONT), Some(&intel::CRESTMONT)), "Alder Lake-N, Sierra Forest");
    assert!(intel("221").is_none(), "Clearwater Forest");
    let amd = |family, model| table_for(&identity("AuthenticAMD", &[("family", family), ("model", model)]), false);
    assert_eq!(amd("23", "49"), Some(&amd::ZEN2), "Rome");
    assert!(amd("23", "1").is_none(), "Naples");
    assert_eq!(amd("25", "1"), Some(&amd::ZEN3), "Milan");
    assert_eq!(amd("25", "17"), Some(&amd::ZEN4), "Genoa");
    assert_eq!(amd("25", "160"), Some(&amd::ZEN4), "Bergamo");
    assert_eq!(amd("26", "2"), Some(&amd::ZEN5), "Turin");
    let arm = |part| table_for(&identity("ARM", &[("part", part)]), false);
    for part in ["0xd0c", "0xd40", "0xd49", "0xd4f"] {
        assert_eq!(arm(part), Some(ARM_COMMON), "{part}");
    }
    assert!(arm("0xd05,0xd0b").is_none(), "cores that differ");
    assert!(table_for(&Identity::default(), false).is_none());
}
