//! Results of what was asked of the chase and of transfers. `SNAPSHOTS=overwrite cargo test -p memgauge-render` writes the texts anew.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

mod samples;

use std::path::PathBuf;

use memgauge_core::distribution::Recorder;
use memgauge_core::plan::{LineState, Work};
use memgauge_core::result::*;
use memgauge_core::spec::Hops;
use memgauge_core::units::Bytes;
use memgauge_render::{Format, Text, plan_text};
use snapbox::Data;

fn check(name: &str, text: String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    snapbox::Assert::new().action_env("SNAPSHOTS").eq(Data::text(text).raw(), Data::read_from(&path, None).raw());
}

fn text(report: &Report, width: usize) -> String {
    String::from_utf8(Text { width, colour: false }.render(report).unwrap()).unwrap()
}

/// A thousand batches around a median, a few of them late.
fn distribution(batch: u32, median_ns: f64) -> Option<Distribution> {
    let mut recorder = Recorder::new(batch).unwrap();
    let late = |i: u64| if i.is_multiple_of(200) { 4.0 } else { 1.0 };
    let ticks: Vec<u64> =
        (0..1000).map(|i| 60 + (median_ns * f64::from(batch) * 3.0 * late(i) * (0.9 + i as f64 / 5000.0)) as u64).collect();
    recorder.add(&ticks, 60, 1.0 / 3.0);
    recorder.finish()
}

/// The results of one experiment of a machine with two nodes.
fn only(experiment: Experiment) -> Report {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == experiment && !m.at.repeat);
    report.curves.retain(|_| experiment == Experiment::LoadedLatency);
    report.plan.as_mut().unwrap().steps.retain(|s| s.experiment == experiment);
    report
}

#[test]
fn distributions_stand_below_their_latencies() {
    let mut report = only(Experiment::IdleLatency);
    for m in &mut report.results {
        m.distribution = distribution(8, m.estimate.value.unwrap());
    }
    check("distribution-idle.txt", text(&report, 100));
    check("distribution-idle-60.txt", text(&report, 60));
    let mut report = only(Experiment::LoadedLatency);
    for m in report.results.iter_mut().filter(|m| m.metric == Metric::Latency) {
        m.distribution = distribution(1, m.estimate.value.unwrap());
    }
    check("distribution-loaded.txt", text(&report, 100));
}

#[test]
fn many_distributions_are_left_to_the_json() {
    let mut report = samples::eight_nodes();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency);
    for m in &mut report.results {
        m.distribution = distribution(8, m.estimate.value.unwrap());
    }
    assert!(text(&report, 100).contains("distributions are in the JSON result"));
}

#[test]
fn every_order_alone_makes_a_table() {
    for order in [ChaseOrder::FullRandom, ChaseOrder::Sequential] {
        for sample in [samples::two_nodes(), samples::eight_nodes(), samples::vm()] {
            let mut report = sample;
            report.results.retain(|m| m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::WindowLocal));
            report.results.iter_mut().for_each(|m| m.at.order = Some(order));
            let shown = text(&report, 100);
            let value = format!("{:.1}", report.results[0].estimate.value.unwrap());
            assert!(shown.contains(&value) && !shown.contains("window-local"), "{shown}");
        }
    }
}

/// A transfer between these CPUs, made from one of the sample.
fn transfer(
    like: &Measurement,
    (reader, reader_node): (u32, u32),
    (holder, holder_node): (u32, u32),
    home: u32,
    state: LineState,
) -> Measurement {
    let at = Coordinates {
        cpu: Some(reader),
        cpu_node: Some(reader_node),
        holder_cpu: Some(holder),
        holder_node: Some(holder_node),
        memory_node: Some(home),
        state: Some(state),
        ..like.at.clone()
    };
    Measurement { at, ..like.clone() }
}

#[test]
fn a_matrix_of_nodes_has_a_near_pair_and_both_homes() {
    let mut report = only(Experiment::CacheToCache);
    let like = report.results[0].clone();
    use LineState::*;
    report.results = vec![
        transfer(&like, (0, 0), (1, 0), 0, Hit),
        transfer(&like, (0, 0), (1, 0), 0, Hitm),
        transfer(&like, (0, 0), (16, 1), 1, Hitm),
        transfer(&like, (0, 0), (16, 1), 0, Hitm),
        transfer(&like, (16, 1), (0, 0), 0, Hitm),
        transfer(&like, (16, 1), (0, 0), 1, Hitm),
    ];
    check("c2c-nodes.txt", text(&report, 100));
    // Where each node has one CPU the near pair is one of the matrix.
    report.results.drain(..2);
    report.results.insert(0, transfer(&like, (0, 0), (16, 1), 0, Hit));
    let shown = text(&report, 100);
    assert!(
        shown.contains("HIT:") && shown.contains("at home on the holder's node") && shown.contains("at home on the reader's node"),
        "{shown}"
    );
}

#[test]
fn a_transfer_says_what_was_done_besides() {
    let mut report = only(Experiment::CacheToCache);
    for m in &mut report.results {
        (m.at.sharer_cpu, m.at.order) = (Some(3), Some(ChaseOrder::FullRandom));
        m.evidence.pushes = Some(Pushes { holder: Bytes::mib(2), reader: Bytes(0) });
        m.evidence.kernel = "store-then-push-then-share-then-chase".into();
    }
    let shown = text(&report, 100);
    for words in ["CPU 3 loads the lines in between", "lines visited full-random", "the holder reads 2 MiB elsewhere", "store-then-push"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("the reader reads"), "{shown}");
}

#[test]
fn a_plan_says_how_it_chases() {
    let mut report = samples::two_nodes();
    let plan = report.plan.as_mut().unwrap();
    plan.start_signal = Some("go".into());
    for cell in plan.steps.iter_mut().flat_map(|s| &mut s.cells) {
        match &mut cell.work {
            Work::Latency { orders, hops, histogram, allocations, .. } => {
                (*orders, *hops, *histogram) = (vec![ChaseOrder::Sequential], Some(Hops::Count(1000)), Some(64));
                *allocations = 1;
            }
            Work::Curve { order, hops, .. } => (*order, *hops) = (ChaseOrder::FullRandom, Some(Hops::OnePass)),
            Work::Handoff(h) => {
                (h.sharer, h.order) = (Some(3), ChaseOrder::Sequential);
                (h.holder_pushes, h.reader_pushes) = (Bytes::mib(1), Bytes::kib(64));
            }
            Work::Bandwidth { .. } | Work::Scan(_) | Work::LatencySweep(_) | Work::BandwidthSweep(_) => {}
        }
    }
    check("plan-asked.txt", plan_text(report.plan.as_ref().unwrap(), &report.machine, 100));
}
