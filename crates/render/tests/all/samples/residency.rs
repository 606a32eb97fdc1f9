//! A result of `where`: a program on a machine of two nodes, with a part of its memory on the far one.

use memgauge_analysis::residency::{price, prices};
use memgauge_model::policy::{MemoryPolicy, PolicyMode};
use memgauge_model::result::{
    AccessShare, MappingKind, MappingMemory, MemorySums, Moment, PageBytes, PageKind, PolicyMemory, PriceSource, Priced, ProcessMemory,
    Report, Residency, ResidencyPoint, TranslationPrice, UnseenProcess, WhyUnseen,
};
use memgauge_model::units::Bytes;

use super::build::set;
use super::two_nodes;

/// A database with a helper, watched for two minutes while its pages are moved.
pub fn residency() -> Report {
    let saved = two_nodes();
    let translation = |kind, page, value: f64| TranslationPrice {
        kind,
        page,
        buffer: Bytes::gib(1),
        price: Priced { value, low: value - 0.8, high: value + 0.8 },
        unreliable: false,
    };
    let mut prices = prices(&saved, PriceSource::File { path: "prices.json".into() }).unwrap();
    prices.translation_ns = vec![translation(PageKind::Base, Bytes::kib(4), 21.4), translation(PageKind::Thp, Bytes::mib(2), 6.1)];
    let mut report = Report { results: Vec::new(), plan: None, curves: Vec::new(), notes: Vec::new(), ..saved };
    let gib = |n: u64| Bytes::gib(n);
    let database = ProcessMemory {
        pid: 4711,
        name: "database".into(),
        memory: MemorySums {
            present: Bytes(gib(12).0 + Bytes::mib(96).0),
            shared: gib(2),
            proportional: gib(11),
            swapped: Bytes::mib(16),
            by_node: [(0, gib(5)), (1, Bytes(gib(7).0 + Bytes::mib(96).0))].into(),
            touched: None,
            unplaced: Bytes(0),
            by_page: vec![
                PageBytes { kind: PageKind::Base, page: Bytes::kib(4), bytes: Bytes(gib(3).0 + Bytes::mib(96).0) },
                PageBytes { kind: PageKind::Thp, page: Bytes::mib(2), bytes: gib(9) },
            ],
            by_kind: [
                (MappingKind::Heap, Bytes::mib(80)),
                (MappingKind::Anonymous, gib(10)),
                (MappingKind::Shared, gib(2)),
                (MappingKind::File, Bytes::mib(16)),
            ]
            .into(),
        },
        mappings: vec![
            MappingMemory {
                kind: MappingKind::Anonymous,
                name: None,
                present: gib(10),
                by_node: [(0, gib(4)), (1, gib(6))].into(),
                huge: gib(9),
            },
            MappingMemory {
                kind: MappingKind::Shared,
                name: Some("/dev/shm/buffers".into()),
                present: gib(2),
                by_node: [(0, gib(1)), (1, gib(1))].into(),
                huge: Bytes(0),
            },
        ],
        policies: vec![
            PolicyMemory { policy: MemoryPolicy::default(), present: gib(10) },
            PolicyMemory {
                policy: MemoryPolicy { mode: PolicyMode::Interleave, nodes: set("0-1"), weights: None },
                present: Bytes(gib(2).0 + Bytes::mib(96).0),
            },
        ],
        allowed_cpus: set("0-63"),
        allowed_nodes: set("0-1"),
        threads: 24,
        cpu_s: [(0, 20.0), (1, 32.0), (2, 28.0), (17, 4.0)].into(),
        threads_by_cpu: [(0, 8), (1, 8), (2, 7), (17, 1)].into(),
        cost: None,
    };
    let helper = ProcessMemory {
        pid: 4712,
        name: "helper".into(),
        memory: MemorySums {
            present: Bytes::mib(64),
            by_node: [(0, Bytes::mib(64))].into(),
            by_kind: [(MappingKind::Anonymous, Bytes::mib(64))].into(),
            ..MemorySums::default()
        },
        threads: 1,
        cpu_s: [(0, 2.0)].into(),
        threads_by_cpu: [(0, 1)].into(),
        ..ProcessMemory::default()
    };
    let access = |cpu_node, memory_node, share| AccessShare { cpu_node, memory_node, share };
    let point = |(i, far): (u64, u64)| ResidencyPoint {
        at: Moment { utc: format!("2026-07-25T09:0{i}:00.000Z"), monotonic_ns: i * 30_000_000_000 },
        processes: 2,
        by_node: [(0, Bytes(gib(12 - far).0 + Bytes::mib(64).0)), (1, Bytes(gib(far).0 + Bytes::mib(96).0))].into(),
        accesses: vec![
            access(0, 0, 0.95 * (12 - far) as f64 / 12.0),
            access(0, 1, 0.95 * far as f64 / 12.0),
            access(1, 0, 0.05 * (12 - far) as f64 / 12.0),
            access(1, 1, 0.05 * far as f64 / 12.0),
        ],
        latency_ns: None,
    };
    let mut residency = Residency {
        processes: vec![database, helper],
        not_seen: vec![UnseenProcess { pid: 1, name: Some("init".into()), why: WhyUnseen::Refused { owner: 0 } }],
        observed_s: 120.0,
        points: (0..5).zip([1, 2, 5, 6, 7]).map(point).collect(),
        numa_balancing: Some(false),
        ..Residency::default()
    };
    residency.free = [(0, gib(40)), (1, gib(36))].into();
    price(&mut residency, &report.machine, Some(prices));
    report.residency = Some(Box::new(residency));
    report
}
