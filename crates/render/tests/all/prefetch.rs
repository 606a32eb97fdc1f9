//! Prefetchers in text. `SNAPSHOTS=overwrite cargo test -p memgauge-render` writes the texts anew.

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, MemoryPlace, Method, PrefetchRequest};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::prefetchers::{PrefetchStatus, Processor, RegisterReading, control, state};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::units::IdSet;
use memgauge_render::{Appearance, Document, Format};
use std::collections::BTreeMap;

use crate::{goldens, samples};

fn check(name: &str, report: &Report) {
    let text = String::from_utf8(
        report.render(Format::TEXT, &Appearance { width: 100, colour: false, verbose: true, ..Appearance::default() }).unwrap(),
    )
    .unwrap();
    goldens::check(name, &text);
}

fn read(cpus: u32, value: impl Fn(u32) -> Result<u64, String>) -> BTreeMap<u32, RegisterReading> {
    let skylake = Processor { arch: "x86_64", vendor: "GenuineIntel", family: Some(6), model: Some(0x55), ..Processor::default() };
    let control = control(&skylake).unwrap();
    (0..cpus).map(|cpu| (cpu, value(cpu).map(|v| (control, v)))).collect()
}

fn status(asked: PrefetchRequest, read: &BTreeMap<u32, RegisterReading>) -> Report {
    let mut report = samples::two_nodes();
    (report.plan, report.results, report.curves, report.notes) = (None, vec![], vec![], vec![]);
    report.environment.prefetch = Some(state(asked, read));
    report
}

#[test]
fn status_of_cpus_that_differ() {
    let mut report = status(PrefetchRequest::Leave, &read(8, |cpu| if cpu < 6 { Ok(0) } else { Ok(0x805) }));
    report.notes.push(Note::info(NoteCode::PrefetchKept, "prefetchers were switched by 'memgauge prefetch off' or 'on'").advise("restore"));
    check("prefetch-status.txt", &report);
}

#[test]
fn status_that_cannot_be_read() {
    let reason = "there is no /dev/cpu/0/msr: the kernel's msr module is not loaded";
    let mut report = status(PrefetchRequest::Leave, &read(8, |_| Err(reason.into())));
    report.environment.prefetch.as_mut().unwrap().advice = Some("as root: modprobe msr".into());
    check("prefetch-unknown.txt", &report);
}

fn comparison() -> Report {
    let mut report = samples::two_nodes();
    let chase = |m: &&Measurement| m.experiment == Experiment::IdleLatency;
    let latency = report.results.iter().find(chase).unwrap().clone();
    let bandwidth = report.results.iter().find(|m| m.method() == Method::Bandwidth).unwrap().clone();
    let mut results = Vec::new();
    for (state, speed) in [(PrefetchRequest::On, 1.0), (PrefetchRequest::Off, 0.5)] {
        for (node, far) in [(0, 1.0), (1, 1.6)] {
            let at = Coordinates {
                cpu_node: Some(0),
                memory: Some(MemoryPlace::Node(node)),
                cpu: Some(0),
                cpus: Some(IdSet::one(0)),
                prefetch: Some(state),
                ..Coordinates::default()
            };
            let number = |m: &Measurement, order, value: f64| Measurement {
                experiment: Experiment::PrefetchComparison,
                at: Coordinates { order, ..at.clone() },
                estimate: Estimate {
                    value: Some(value),
                    ci95_low: Some(value * 0.99),
                    ci95_high: Some(value * 1.01),
                    ..m.estimate.clone()
                },
                ..m.clone()
            };
            results.push(number(&bandwidth, None, 20.0 * speed / far));
            results.push(number(&latency, Some(ChaseOrder::Sequential), 40.0 * far / speed));
            results.push(number(&latency, Some(ChaseOrder::WindowLocal), 95.0 * far));
        }
    }
    (report.plan, report.curves, report.results) = (None, vec![], results);
    report.environment.prefetch = Some(state(PrefetchRequest::Leave, &read(8, |_| Ok(0))));
    report
}

#[test]
fn both_states_side_by_side() {
    check("prefetch-compare.txt", &comparison());
}

#[test]
fn a_contradiction_stands_in_the_run() {
    let mut report = comparison();
    report.results.retain(|m| m.at.prefetch == Some(PrefetchRequest::Off));
    let mut off = state(PrefetchRequest::Off, &read(8, |_| Ok(0xF)));
    off.status = PrefetchStatus::Unknown;
    off.reason = Some("registers say that prefetchers are off, but random order is 2.20 times as slow as sequential".into());
    report.environment.prefetch = Some(off);
    report.notes.push(Note::warning(memgauge_model::note::NoteCode::PrefetchOffNotEffective, "registers say off, latencies say on"));
    check("prefetch-contradicted.txt", &report);
}
