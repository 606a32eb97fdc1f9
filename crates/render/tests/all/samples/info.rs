//! What `info` says of a machine with persistent memory.

use std::collections::BTreeMap;

use memgauge_model::note::Severity;
use memgauge_model::persistent::{PersistentModule, PersistentNamespace, PersistentRegion};
use memgauge_model::result::Report;
use memgauge_model::topology::PagePool;
use memgauge_model::units::Bytes;

use super::build::set;
use super::{cxl_lab, of_another_version};

/// The same machine as `info` shows it.
pub fn info() -> Report {
    let mut lab = cxl_lab();
    for cpu in &mut lab.cpus {
        cpu.max_mhz = Some(4409);
    }
    lab.nodes[0].pools =
        vec![PagePool { page: Bytes::mib(2), total: 2048, free: 2048 }, PagePool { page: Bytes::gib(1), total: 0, free: 0 }];
    let mut report = lab.report();
    report.plan = None;
    report.memory_kinds = memgauge_model::tiers::kinds(&report.machine);
    report.machine.topology.persistent = vec![regions()];
    report.machine.topology.offline = set("64-71");
    report.machine.identity.firmware =
        BTreeMap::from([("vendor".into(), "Example Corp".into()), ("product".into(), "R2".into()), ("bios".into(), "2.4.1".into())]);
    report.environment.limits = vec![
        of_another_version(Severity::Info, "no-msr", "prefetchers can be neither read nor switched: /dev/cpu/*/msr may not be opened")
            .advise("not needed: the chase defeats prefetchers and shows the proof"),
        of_another_version(
            Severity::Warning,
            "governor",
            "the frequency governor is schedutil: short measurements may run below the full frequency",
        )
        .advise("run 'sudo cpupower frequency-set -g performance' before measuring"),
    ];
    report
}

/// Two modules, on which one namespace is for files and another serves as memory.
fn regions() -> PersistentRegion {
    let module = |name: &str| PersistentModule {
        name: name.into(),
        bytes: Some(Bytes::gib(126)),
        model: Some("0x8089:0x5141".into()),
        ..PersistentModule::default()
    };
    let namespace = |name: &str, mode: &str, gib, device: &str, memory_node| PersistentNamespace {
        name: name.into(),
        mode: Some(mode.into()),
        bytes: Some(Bytes::gib(gib)),
        device: Some(device.into()),
        memory_node,
    };
    PersistentRegion {
        name: "region1".into(),
        bytes: Some(Bytes::gib(252)),
        available: Some(Bytes::gib(4)),
        node: Some(1),
        persistence_domain: Some("memory_controller".into()),
        interleave_set: Some("0x59a6887c48d2cbcc".into()),
        provider: Some("ACPI.NFIT".into()),
        modules: vec![module("nmem4"), module("nmem5")],
        namespaces: vec![
            namespace("namespace1.0", "fsdax", 120, "/dev/pmem1", None),
            namespace("namespace1.1", "devdax", 128, "/dev/dax1.1", Some(3)),
        ],
        ..PersistentRegion::default()
    }
}
