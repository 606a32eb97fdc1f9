//! Results of what was asked of the chase and of transfers. `SNAPSHOTS=overwrite cargo test -p memgauge-render` writes the texts anew.

use memgauge_model::distribution::Recorder;
use memgauge_model::distribution::*;
use memgauge_model::experiment::*;
use memgauge_model::experiment::{Hops, LineState};
use memgauge_model::plan::{BufferPlan, Cell, IdleChase, LoadCurve, Loading, OwnTraffic, Plan, Traffic, Work};
use memgauge_model::result::*;
use memgauge_model::traffic::{Access, Form, LineUse, Mix};
use memgauge_model::units::Bytes;
use memgauge_render::figure::Figure;
use memgauge_render::{Appearance, Document, Format, Named, Picture};

use crate::goldens::check;
use crate::samples;
use crate::shown::plan_text;

fn text(report: &Report, width: usize) -> String {
    String::from_utf8(report.render(Format::TEXT, &Appearance { width, colour: false, verbose: true, ..Appearance::default() }).unwrap())
        .unwrap()
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
    report.results.retain(|m| m.experiment == experiment);
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
    check("distribution-idle.txt", &text(&report, 100));
    check("distribution-idle-60.txt", &text(&report, 60));
    let mut report = only(Experiment::LoadedLatency);
    for m in report.results.iter_mut().filter(|m| m.metric == Metric::Latency) {
        m.distribution = distribution(1, m.estimate.value.unwrap());
    }
    check("distribution-loaded.txt", &text(&report, 100));
}

#[test]
fn interruptions_in_a_distribution_are_said_with_its_lowest_mode() {
    let mut report = only(Experiment::IdleLatency);
    let plain = text(&report, 100);
    let mut recorder = Recorder::new(1).unwrap();
    recorder.add_interrupted(&(0..1000).map(|i| if i % 3 == 0 { 90 } else { 400 + i % 100 }).collect::<Vec<_>>(), 0, 1.0);
    report.results[0].distribution = recorder.finish();
    let with = text(&report, 100);
    for expected in ["lowest mode", "interruptions are in these distributions"] {
        assert!(with.contains(expected) && !plain.contains(expected), "{with}");
    }
}

/// The table, the sketch and the figure of a sweep.
fn sweep_as_shown(report: &Report) -> (Vec<String>, String, Vec<u8>) {
    let text = String::from_utf8(
        report.render(Format::TEXT, &Appearance { width: 100, colour: false, verbose: false, ..Appearance::default() }).unwrap(),
    )
    .unwrap();
    let blocks = |line: &&str| line.chars().filter(|c| ('▁'..='█').contains(c)).count();
    let sketch = text.lines().max_by_key(blocks).unwrap_or_default();
    let table = text.lines().filter(|line| *line != sketch).map(str::to_owned).collect();
    (table, sketch.to_owned(), Figure::of_results(&[Named { name: "", report }]).write(Picture::Svg).unwrap())
}

#[test]
fn the_table_the_sketch_and_the_figure_of_a_sweep_show_one_value() {
    let mut report = samples::sweeps::counted(&[], 100);
    report.results.retain(|m| m.experiment == Experiment::Sweep && m.metric == Metric::Latency);
    let before = sweep_as_shown(&report);
    // Not the fastest sample, and not the slowest.
    let mut extremes = report.clone();
    for m in &mut extremes.results {
        (m.estimate.min, m.estimate.max) = (m.estimate.value.map(|v| v / 9.0), m.estimate.value.map(|v| v * 9.0));
    }
    assert_eq!(sweep_as_shown(&extremes), before);
    let in_l3 = report.results.iter().position(|m| m.at.working_set == Some(Bytes::mib(16))).unwrap();
    let estimate = &mut report.results[in_l3].estimate;
    for number in [&mut estimate.value, &mut estimate.ci95_low, &mut estimate.ci95_high].into_iter().flatten() {
        *number *= 3.0;
    }
    let after = sweep_as_shown(&report);
    assert!(after.0 != before.0 && after.1 != before.1 && after.2 != before.2, "{before:?}");
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
        memory: Some(MemoryPlace::Node(home)),
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
    check("c2c-nodes.txt", &text(&report, 100));
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
    for words in [
        "CPU 3 loads the lines before the reader",
        "lines visited full-random",
        "the holder reads 2 MiB of another buffer",
        "store-then-push",
    ] {
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
            Work::Latency(IdleChase { orders, hops, histogram, allocations, .. }) => {
                (*orders, *hops, *histogram) = (vec![ChaseOrder::Sequential], Some(Hops::Count(1000)), Some(64));
                *allocations = 1;
            }
            Work::Curve(LoadCurve { order, hops, .. }) => (*order, *hops) = (ChaseOrder::FullRandom, Some(Hops::OnePass)),
            Work::Handoff(h) => {
                (h.sharer, h.order, h.hops) = (Some(3), ChaseOrder::Sequential, Some(Hops::OnePass));
                h.chase_window = Some(Bytes::kib(32));
                (h.holder_pushes, h.reader_pushes) = (Bytes::mib(1), Bytes::kib(64));
            }
            Work::Bandwidth(_) | Work::Scan(_) | Work::Transfers(_) => {}
            Work::LatencySweep(_) | Work::BandwidthSweep(_) | Work::Interleave(_) => {}
        }
    }
    check("plan-asked.txt", &plan_text(report.plan.as_ref().unwrap(), &report.machine, 100));
}

/// The bandwidth cells of a plan by mix, as one step.
fn bandwidth_plan(change: impl Fn(&Cell) -> Vec<Cell>) -> (Plan, Report) {
    let report = samples::two_nodes();
    let mut plan = report.plan.clone().unwrap();
    plan.steps.retain(|s| s.experiment == Experiment::Bandwidth);
    let step = &mut plan.steps[0];
    step.cells = step.cells.iter().take(1).flat_map(change).collect();
    (plan, report)
}

fn delayed(cell: &Cell, cycles: u32) -> Cell {
    let mut cell = cell.clone();
    cell.at.delay_cycles = Some(cycles);
    if let Work::Bandwidth(Loading { delay, .. }) = &mut cell.work {
        *delay = cycles;
    }
    cell
}

#[test]
fn a_plan_tells_delays_apart() {
    let (plan, report) = bandwidth_plan(|cell| [0, 100, 500].map(|d| delayed(cell, d)).into());
    check("plan-delays.txt", &plan_text(&plan, &report.machine, 100));
    // As many as a search tries are summed up.
    let (plan, report) = bandwidth_plan(|cell| {
        let crew = |n: usize| {
            let mut cell = cell.clone();
            if let Work::Bandwidth(Loading { loaders, .. }) = &mut cell.work {
                loaders.truncate(n);
            }
            cell
        };
        [64, 32, 24, 16, 8].map(crew).iter().flat_map(|cell| [0, 10, 25, 50, 80].map(|d| delayed(cell, d))).collect()
    });
    let shown = plan_text(&plan, &report.machine, 100).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["8, 16, 24, 32, 64 CPUs at once", "delays 0, 10, 25, 50, 80 (core cycles between bursts of four lines)"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn a_plan_says_what_each_thread_does() {
    let (plan, report) = bandwidth_plan(|cell| {
        let mut cell = cell.clone();
        cell.at.mix = None;
        if let Work::Bandwidth(Loading { loaders, traffic, .. }) = &mut cell.work {
            loaders.truncate(8);
            let random = Form { access: Access::Random, line: LineUse::Whole };
            for (i, loader) in loaders.iter_mut().enumerate() {
                let mut own = OwnTraffic { traffic: traffic.clone(), delay: None, second: None, second_percent: 0 };
                match i {
                    0..4 => {}
                    4..6 => {
                        own.traffic = Traffic { mix: Mix::R2W1, kernels: vec!["r1w1-avx512".into()], ..Traffic::default() };
                        own.delay = Some(300);
                        loader.buffer.node = 1;
                    }
                    _ => {
                        own.traffic = Traffic {
                            mix: Mix::AllReads,
                            kernels: vec!["random-load-avx512".into()],
                            form: random,
                            window: Some(Bytes::mib(4)),
                            ..Traffic::default()
                        };
                        loader.buffer.bytes = Bytes::gib(1);
                        own.second = Some(BufferPlan { node: 1, ..loader.buffer.clone() });
                        own.second_percent = 25;
                    }
                }
                loader.own = Some(Box::new(own));
            }
        }
        vec![cell]
    });
    check("plan-threads.txt", &plan_text(&plan, &report.machine, 100));
}

#[test]
fn one_buffer_that_all_share_is_one() {
    let (plan, report) = bandwidth_plan(|cell| {
        let mut cell = cell.clone();
        if let Work::Bandwidth(Loading { loaders, .. }) = &mut cell.work {
            let shared = BufferPlan { shared: true, ..loaders[0].buffer.clone() };
            loaders.iter_mut().for_each(|l| l.buffer = shared.clone());
        }
        vec![cell]
    });
    let shown = plan_text(&plan, &report.machine, 100);
    assert!(shown.contains("256 MiB") && !shown.contains("× 256 MiB"), "{shown}");
}

#[test]
fn a_plan_says_where_the_load_is() {
    let mut report = samples::two_nodes();
    let plan = report.plan.as_mut().unwrap();
    plan.steps.retain(|s| s.experiment == Experiment::LoadedLatency);
    for cell in plan.steps.iter_mut().flat_map(|s| &mut s.cells) {
        cell.at.load_nodes = Some("1".parse().unwrap());
        cell.at.memory = None;
        if let Work::Curve(LoadCurve { loaders, .. }) = &mut cell.work {
            loaders.iter_mut().for_each(|l| l.buffer.node = 1);
        }
    }
    let shown = plan_text(report.plan.as_ref().unwrap(), &report.machine, 120);
    assert!(shown.contains("node 0, load on node 1") && !shown.contains("own nodes"), "{shown}");
}
