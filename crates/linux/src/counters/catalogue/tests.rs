use std::collections::BTreeMap;

use super::*;
use crate::tests::fixture::Fixture;

/// A `/sys` with only the files that are read.
fn tree(files: &[(&str, &str)]) -> Fixture {
    let path = |file| format!("sys/bus/event_source/devices/{file}");
    files.iter().fold(Fixture::new(), |tree, (file, text)| tree.file(&path(file), format!("{text}\n")))
}

const X86_FORMAT: [(&str, &str); 4] = [
    ("cpu/format/event", "config:0-7"),
    ("cpu/format/umask", "config:8-15"),
    ("cpu/format/cmask", "config:24-31"),
    ("cpu/format/inv", "config:23"),
];

fn identity(vendor: &str, arch: &str, fields: &[(&str, &str)]) -> Identity {
    let model: BTreeMap<String, String> = fields.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Identity { vendor: Some(vendor.into()), arch: arch.into(), model, ..Identity::default() }
}

fn sapphire_rapids() -> Identity {
    identity("GenuineIntel", "x86_64", &[("family", "6"), ("model", "143"), ("stepping", "8")])
}

fn words(set: &EventSet, role: Role) -> u64 {
    set.events().find(|c| c.event.roles.contains(&role)).unwrap().config.as_ref().unwrap().words[0]
}

#[test]
fn codes_are_placed_as_the_format_says() {
    let mut files = X86_FORMAT.to_vec();
    files.extend([("cpu/type", "4"), ("cpu/events/cpu-cycles", "event=0x3c"), ("cpu/events/instructions", "event=0xc0")]);
    let tree = tree(&files);
    let set = Catalogue::read(tree.root(), &sapphire_rapids(), 0).metrics().unwrap();
    assert_eq!(words(&set, Role::Cycles), 0x3c);
    assert_eq!(words(&set, Role::L1Misses), 0x08d1);
    assert_eq!(words(&set, Role::DemandOutstanding), 0x0120);
    assert_eq!(words(&set, Role::DemandOutstandingCycles), 0x0100_0120);
    let source = |role| &set.events().find(|c| c.event.roles.contains(&role)).unwrap().event.source;
    assert_eq!(source(Role::Cycles), "sysfs");
    assert!(source(Role::L1Misses).contains("intel/perfmon"));
    assert!(set.system.is_empty());
}

#[test]
fn a_name_in_sysfs_takes_precedence_over_the_table() {
    let mut files = X86_FORMAT.to_vec();
    files.extend([("cpu/type", "4"), ("cpu/events/longest_lat_cache.miss", "event=0x99,umask=0x7")]);
    let tree = tree(&files);
    let set = Catalogue::read(tree.root(), &sapphire_rapids(), 0).metrics().unwrap();
    assert_eq!(words(&set, Role::LlcMisses), 0x0799);
    assert_eq!(words(&set, Role::LlcAccesses), 0x4f2e, "from the table");
}

#[test]
fn memory_controllers_are_opened_once_a_package() {
    let mut files = X86_FORMAT.to_vec();
    files.push(("cpu/type", "4"));
    for (unit, kind) in [("uncore_imc_0", "17"), ("uncore_imc_1", "18"), ("uncore_imc_free_running_0", "30")] {
        for (file, text) in [
            ("type", kind),
            ("cpumask", "0,32"),
            ("format/event", "config:0-7"),
            ("format/umask", "config:8-15"),
            ("events/cas_count_read", "event=0x05,umask=0xcf"),
            ("events/cas_count_read.scale", "6.103515625e-5"),
            ("events/cas_count_write", "event=0x05,umask=0xf0"),
        ] {
            files.push((Box::leak(format!("{unit}/{file}").into_boxed_str()), text));
        }
    }
    let tree = tree(&files);
    let set = Catalogue::read(tree.root(), &sapphire_rapids(), 0).metrics().unwrap();
    assert_eq!(set.system.len(), 4, "two controllers, reads and writes: {:?}", set.system);
    assert!(set.system.iter().all(|c| c.cpus == [0, 32]));
    assert_eq!(words(&set, Role::DramReads), 0xcf05);
    assert_eq!(words(&set, Role::DramWrites), 0xf005);
}

#[test]
fn amd_counts_memory_where_the_kernel_has_the_unit() {
    let mut files = X86_FORMAT.to_vec();
    files.extend([
        ("cpu/type", "4"),
        ("amd_umc_0/type", "12"),
        ("amd_umc_0/cpumask", "0"),
        ("amd_umc_0/format/event", "config:0-7"),
        ("amd_umc_0/format/rdwrmask", "config:8-9"),
    ]);
    let tree = tree(&files);
    let genoa = identity("AuthenticAMD", "x86_64", &[("family", "25"), ("model", "17")]);
    let set = Catalogue::read(tree.root(), &genoa, 0).metrics().unwrap();
    assert_eq!((words(&set, Role::DramReads), words(&set, Role::DramWrites)), (0x10a, 0x20a));
    assert_eq!(words(&set, Role::LlcMisses), 0xdc43);
    assert_eq!(words(&set, Role::LoadLlcMisses), 0xdc43, "one event, two roles");
}

/// The set of a machine with these files of units, whose names stand for `/sys/bus/event_source/devices`.
fn set_with(identity: &Identity, units: &[(&str, &str)]) -> EventSet {
    let mut files = X86_FORMAT.to_vec();
    files.push(("cpu/type", "4"));
    files.extend(units);
    let tree = tree(&files);
    Catalogue::read(tree.root(), identity, 0).metrics().unwrap()
}

fn roles(set: &EventSet) -> Vec<Role> {
    set.system.iter().flat_map(|e| e.event.roles.clone()).collect()
}

/// `spr_uncore_hbm` of Linux arch/x86/events/intel/uncore_snbep.c, beside the DDR5 of a Xeon Max.
#[test]
fn high_bandwidth_memory_is_counted_with_the_other_controllers() {
    let set = set_with(
        &sapphire_rapids(),
        &[
            ("uncore_imc_0/type", "17"),
            ("uncore_imc_0/events/cas_count_read", "config=0xcf05"),
            ("uncore_imc_0/events/cas_count_write", "config=0xf005"),
            ("uncore_hbm_0/type", "40"),
            ("uncore_hbm_0/cpumask", "0,56"),
            ("uncore_hbm_0/format/event", "config:0-7"),
            ("uncore_hbm_0/format/umask", "config:8-15"),
            ("uncore_cxlcm_0/type", "50"),
        ],
    );
    assert_eq!(roles(&set), [Role::DramReads, Role::DramWrites, Role::DramReads, Role::DramWrites]);
    let hbm: Vec<u64> = set.system[2..].iter().map(|e| e.config.as_ref().unwrap().words[0]).collect();
    assert_eq!((hbm, &set.system[2].cpus), (vec![0xcf05, 0xf005], &vec![0, 56]));
    assert_eq!(set.left_out().unwrap(), "memory traffic of uncore_cxlcm_0 (devices of CXL memory)");
}

/// Events and formats of Linux drivers/perf/arm_cspmu/nvidia_cspmu.c and arm_cspmu.c.
#[test]
fn grace_counts_beats_and_bytes() {
    let grace = identity("ARM", "aarch64", &[("part", "0xd4f")]);
    let units = [
        ("armv8_pmuv3_0/type", "8"),
        ("armv8_pmuv3_0/cpus", "0-71"),
        ("armv8_pmuv3_0/format/event", "config:0-15"),
        ("nvidia_scf_pmu_0/type", "11"),
        ("nvidia_scf_pmu_0/cpumask", "0"),
        ("nvidia_scf_pmu_0/format/event", "config:0-31"),
        ("nvidia_scf_pmu_0/events/cmem_rd_data", "event=0x1a5"),
        ("nvidia_nvlink_c2c0_pmu_0/type", "12"),
    ];
    let set = set_with(&grace, &units);
    assert_eq!(roles(&set), [Role::DramReads, Role::DramWrites]);
    assert_eq!((words(&set, Role::DramReads), words(&set, Role::DramWrites)), (0x1a5, 0x1db));
    assert!(set.left_out().unwrap().contains("nvidia_nvlink_c2c0_pmu_0"));
    // 64 bytes are two beats read, and 64 of the bytes written.
    let mut totals = memgauge_model::counters::EventTotals::default();
    totals.add(6400, 10, 10);
    let counted = crate::counters::join_counts(set.system.iter(), &[Ok(totals), Ok(totals)]);
    let lines: Vec<f64> = counted.iter().map(|c| c.outcome.as_ref().unwrap().scaled).collect();
    assert_eq!(lines, [3200.0, 100.0]);
}

/// Events of Linux tools/perf/pmu-events/arch/x86/amdzen3/data-fabric.json, format of arch/x86/events/amd/uncore.c (`event14`).
#[test]
fn the_fabric_of_zen_2_and_3_counts_reads_and_writes_together() {
    let fabric = [
        ("amd_df/type", "13"),
        ("amd_df/cpumask", "0"),
        ("amd_df/format/event", "config:0-7,32-35,59-60"),
        ("amd_df/format/umask", "config:8-15"),
    ];
    let milan = identity("AuthenticAMD", "x86_64", &[("family", "25"), ("model", "1")]);
    let set = set_with(&milan, &fabric);
    assert_eq!(roles(&set), [Role::DramTransfers; 8]);
    let codes: Vec<u64> = set.system.iter().map(|e| e.config.as_ref().unwrap().words[0]).collect();
    assert_eq!((codes[0], codes[7]), (0x3807, 0x1_0000_38c7));
    let genoa = identity("AuthenticAMD", "x86_64", &[("family", "25"), ("model", "17")]);
    assert!(set_with(&genoa, &fabric).system.is_empty(), "its fabric has other codes");
}

/// `spr_uncore_cha_formats_attr` and, for Skylake-SP, `skx_uncore_cha_formats_attr` of Linux arch/x86/events/intel/uncore_snbep.c.
#[test]
fn the_mesh_counts_reads_at_every_home_agent_and_cycles_once() {
    let agents = |umask| {
        [
            ("uncore_cha_0/type", "60"),
            ("uncore_cha_0/cpumask", "0,56"),
            ("uncore_cha_0/format/event", "config:0-7"),
            ("uncore_cha_0/format/umask", umask),
            ("uncore_cha_1/type", "61"),
            ("uncore_cha_1/cpumask", "0,56"),
            ("uncore_cha_1/format/event", "config:0-7"),
            ("uncore_cha_1/format/umask", umask),
        ]
    };
    let mesh = set_with(&sapphire_rapids(), &agents("config:8-15,32-63")).mesh;
    let roles: Vec<Role> = mesh.iter().flat_map(|e| e.event.roles.clone()).collect();
    use Role::{MeshCycles, MeshOutstanding, MeshReads};
    assert_eq!(roles, [MeshReads, MeshOutstanding, MeshCycles, MeshReads, MeshOutstanding]);
    let codes: Vec<u64> = mesh.iter().map(|e| e.config.as_ref().unwrap().words[0]).collect();
    assert_eq!(codes[..3], [0x00c8_17fe_0000_0135, 0x00c8_17fe_0000_0136, 0x01]);
    assert_eq!((&mesh[0].cpus, &mesh[2].cpus), (&vec![0, 56], &vec![0]));
    let skylake_sp = identity("GenuineIntel", "x86_64", &[("family", "6"), ("model", "85")]);
    let old = set_with(&skylake_sp, &agents("config:8-15")).mesh;
    assert_eq!(old, []);
}

/// `snb_uncore_imc_events` and `tgl_uncore_imc_events` of Linux arch/x86/events/intel/uncore_snb.c.
#[test]
fn clients_have_controllers_of_their_own() {
    let skylake = identity("GenuineIntel", "x86_64", &[("family", "6"), ("model", "94")]);
    let old = [
        ("uncore_imc/type", "14"),
        ("uncore_imc/format/event", "config:0-7"),
        ("uncore_imc/events/data_reads", "event=0x01"),
        ("uncore_imc/events/data_reads.scale", "6.103515625e-5"),
        ("uncore_imc/events/data_writes", "event=0x02"),
    ];
    let set = set_with(&skylake, &old);
    assert_eq!((words(&set, Role::DramReads), words(&set, Role::DramWrites)), (1, 2));
    let unnamed = set_with(&skylake, &[("uncore_imc_0/type", "14")]);
    assert!(unnamed.system.is_empty() && unnamed.left_out().unwrap().contains("uncore_imc_0"), "{unnamed:?}");
    // `adl_uncore_imc`, and `adl_uncore_imc_freerunning_events`, whose counters have the same traffic.
    let both = [
        ("uncore_imc_0/type", "14"),
        ("uncore_imc_free_running_0/type", "15"),
        ("uncore_imc_free_running_0/format/event", "config:0-7"),
        ("uncore_imc_free_running_0/format/umask", "config:8-15"),
        ("uncore_imc_free_running_0/events/data_read", "event=0xff,umask=0x20"),
        ("uncore_imc_free_running_0/events/data_write", "event=0xff,umask=0x30"),
    ];
    let both = set_with(&skylake, &both);
    assert_eq!((both.system.len(), both.left_out()), (2, None), "{both:?}");
    let mesh = set_with(&skylake, &[("arm_cmn_0/type", "14"), ("arm_cmn_1/type", "15")]);
    assert!(mesh.left_out().unwrap().starts_with("memory traffic of arm_cmn_0 and 1 more"), "{mesh:?}");
}

#[test]
fn an_arm_core_without_a_table_has_what_sysfs_shows() {
    let tree = tree(&[
        ("armv8_pmuv3/type", "8"),
        ("armv8_pmuv3/cpus", "0-1"),
        ("armv8_pmuv3/format/event", "config:0-15"),
        ("armv8_pmuv3/events/cpu_cycles", "event=0x0011"),
        ("armv8_pmuv3/events/inst_retired", "event=0x0008"),
    ]);
    let unknown = identity("ARM", "aarch64", &[("part", "0x051")]);
    let catalogue = Catalogue::read(tree.root(), &unknown, 1);
    let set = catalogue.metrics().unwrap();
    let table: Vec<&str> = set.groups[0].iter().map(|c| c.event.name.as_str()).collect();
    assert_eq!(table, ["cpu_cycles", "inst_retired"]);
    assert_eq!(words(&set, Role::Instructions), 8);
    // For events that sysfs does not show, the kernel decides whether they exist.
    let misses = set.events().find(|c| c.event.roles.contains(&Role::L1Misses)).unwrap();
    assert_eq!(misses.config, Ok(Config { kind: 3, words: [0x1_0000, 0, 0] }));
    // The architected code can be used by name, and the role makes a wrong zero detectable.
    let named = catalogue.named("l1d_cache_refill").unwrap();
    assert_eq!((named.config, named.event.roles), (Ok(Config { kind: 8, words: [3, 0, 0] }), vec![Role::L1Misses]));
    let neoverse = identity("ARM", "aarch64", &[("part", "0xd0c")]);
    assert_eq!(words(&Catalogue::read(tree.root(), &neoverse, 0).metrics().unwrap(), Role::L2Misses), 0x17);
}

#[test]
fn a_hybrid_machine_is_counted_by_the_unit_of_the_cpu() {
    let tree = tree(&[
        ("cpu_core/type", "4"),
        ("cpu_core/cpus", "0-7"),
        ("cpu_core/events/cpu-cycles", "event=0x3c"),
        ("cpu_core/format/event", "config:0-7"),
        ("cpu_atom/type", "10"),
        ("cpu_atom/cpus", "8-15"),
        ("cpu_atom/events/cpu-cycles", "event=0x3c"),
        ("cpu_atom/format/event", "config:0-7"),
    ]);
    let unit_type = |cpu| Catalogue::read(tree.root(), &Identity::default(), cpu).named("cpu-cycles").unwrap().config.unwrap().kind;
    assert_eq!((unit_type(0), unit_type(9)), (4, 10));
}

#[test]
fn a_missing_unit_is_explained() {
    let tree = tree(&[("software/type", "1")]);
    let cloud = Identity { hypervisor: Some("KVM".into()), ..Identity::default() };
    let catalogue = Catalogue::read(tree.root(), &cloud, 0);
    assert_eq!(
        catalogue.metrics().unwrap_err().to_string(),
        "no hardware counters: the hypervisor (KVM) gives this virtual machine no PMU"
    );
    assert!(matches!(catalogue.named("cycles").unwrap().config, Err(CounterError::NoPmu(_))));
    assert_eq!(catalogue.named("faults").unwrap().config, Ok(Config { kind: 1, words: [2, 0, 0] }));
}

#[test]
fn events_by_name() {
    let mut files = X86_FORMAT.to_vec();
    files.extend([("cpu/type", "4"), ("cpu/events/mem-loads", "event=0xcd,umask=0x1,inv")]);
    let tree = tree(&files);
    let catalogue = Catalogue::read(tree.root(), &sapphire_rapids(), 0);
    let code = |name: &str| catalogue.named(name).unwrap().config.unwrap();
    assert_eq!(code("mem-loads").words[0], 0x80_01cd);
    assert_eq!(code("cpu/mem-loads/").words[0], 0x80_01cd);
    assert_eq!(code("cpu/event=0xd1,umask=0x20,cmask=2/").words[0], 0x0200_20d1);
    assert_eq!(code("cpu/config=0x1234/").words[0], 0x1234);
    assert_eq!(code("mem_load_retired.l3_miss").words[0], 0x20d1);
    assert_eq!(code("r20d1"), Config { kind: 4, words: [0x20d1, 0, 0] });
    assert_eq!(code("cache-misses"), Config { kind: 0, words: [3, 0, 0] });
    let no = |name: &str| catalogue.named(name).unwrap_err().to_string();
    assert!(no("nonsense").contains("no event 'nonsense'"));
    assert!(no("gpu/event=1/").contains("no unit 'gpu'"));
    assert!(no("cpu/event=0x1ff/").contains("too large"));
    assert!(no("cpu/colour=1/").contains("'colour'"));
    assert!(no("cpu/event=red/").contains("not a number"));
}
