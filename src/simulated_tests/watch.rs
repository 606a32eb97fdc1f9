//! A machine is watched: large ones, for hours of the model's time.

use memgauge_analysis::conclusions::others;
use memgauge_analysis::conclusions::watch::Watcher;
use memgauge_model::result::{Condition, OthersBandwidth, OthersScale, StampProbe, Watch};

use super::state::{CHANGES, Slower};
use super::*;

/// From one stamp to the next.
const EVERY: Duration = Duration::from_secs(50);

/// A watch of `stamps` stamps.
fn watch(machine: &Machine, model: &dyn SimulatedMachine, stamps: u64, scale: Option<OthersScale>) -> Watch {
    let plan = memgauge_planner::stamp_of_watch(machine, &kernels()).unwrap();
    assert!(plan.max_s * 100.0 <= EVERY.as_secs_f64(), "1 % of the time");
    let stop = Stop::raised(None);
    let context = RunContext::new(machine, *CLOCK, ROOT.into(), stop.flag()).simulated(model);
    let (mut watcher, begin) = (Watcher::new(EVERY.as_secs_f64(), scale), context.now());
    memgauge_engine::stamps(&plan, &context, &mut |stamp| {
        watcher.see(&stamp, Vec::new());
        let taken = watcher.watch().stamps;
        Some(begin + EVERY * taken as u32).filter(|_| taken < stamps)
    });
    watcher.into_watch()
}

#[test]
fn a_quiet_hour_of_a_large_machine_is_one_state() {
    for (i, shape) in [TWO_NODES, Shape { domains: 4, ..TWO_NODES }, large(8)].into_iter().enumerate() {
        let machine = shape.machine();
        for seed in 0..4 {
            let seen = watch(&machine, &Model::new(&machine, None, seed), 72, None);
            assert_eq!((seen.stamps, seen.changed, seen.states.len()), (72, 0, 1), "{i} {seed}: {:?}", seen.changes);
        }
    }
}

#[test]
fn a_change_of_five_percent_is_told_once_with_its_probe() {
    let machine = large(8).machine();
    for (probe, change) in CHANGES {
        let before = Model::new(&machine, None, 5);
        let mut after = Model::new(&machine, None, 5).again(6);
        change(&mut after, 0.05);
        // After 30 of 60 stamps.
        let seen = watch(&machine, &Slower { before: &before, after: &after, from: EVERY * 30 - EVERY / 2 }, 60, None);
        let [first, second] = &seen.changes[..] else { panic!("{probe:?}: {:?}", seen.changes) };
        assert_eq!((first.to, second.to), (Condition::Quiet { state: 1 }, Condition::Quiet { state: 2 }));
        assert!(second.probes.iter().any(|change| change.probe == probe), "{probe:?}: {second:?}");
        assert_eq!(seen.states.iter().map(|state| state.stamps).collect::<Vec<_>>(), [30, 30], "{probe:?}");
    }
}

/// The watch as all formats show it.
#[test]
fn a_watch_is_shown_in_every_format() {
    let machine = TWO_NODES.machine();
    let (before, mut after) = (Model::new(&machine, None, 7), Model::new(&machine, None, 7).again(8));
    after.slow_memory(1.0, 1.2);
    let curve = run(&Spec::new(Task::loaded()), &machine, &Model::new(&machine, None, 7), None);
    let slower = Slower { before: &before, after: &after, from: EVERY * 20 - EVERY / 2 };
    let seen = watch(&machine, &slower, 30, others::scale(&curve, None));
    let mut report = report::blank(machine.clone(), Path::new(ROOT), &HostIdentity::withheld());
    report.timing.total_s = 1500.0;
    report.watch = Some(Box::new(seen));
    let shown = |format: Format| report.render(format, &Appearance::default()).unwrap();
    let text = String::from_utf8(shown(Format::TEXT)).unwrap();
    for part in [
        "2 STATES, 1 change in 25 min",
        "state 2",
        "Changes",
        "state 2: memory latency",
        "Others seemed to use some in",
        "of the curve's highest",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let metrics = String::from_utf8(shown(Format::OPENMETRICS)).unwrap();
    for line in
        ["memgauge_state{", "memgauge_state_changes", "memgauge_stamp_latency_seconds{", "memgauge_others_bandwidth_low_bytes_per_second"]
    {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line}: {metrics}");
    }
    assert!(!metrics.contains("memgauge_results"), "it has no results");
    let figure = String::from_utf8(shown(Format::SVG)).unwrap();
    assert!(figure.contains("State of the machine") && figure.contains("Memory bandwidth that others seem to use"));
    let page = String::from_utf8(shown(Format::HTML)).unwrap();
    assert!(page.contains("State of the machine") && page.contains("2 STATES"));
    assert_eq!(memgauge_render::read(&shown(Format::JSON)).unwrap().watch, report.watch);
}

/// Memory that others slow down reads as bandwidth on the machine's own curve.
#[test]
fn slower_memory_reads_as_bandwidth_of_others_on_the_curve_of_the_machine() {
    let machine = TWO_NODES.machine();
    let curve = run(&Spec::new(Task::loaded()), &machine, &Model::new(&machine, None, 7), None);
    let scale = others::scale(&curve, None).unwrap();
    assert!(scale.curve.len() > 5 && scale.curve.windows(2).all(|two| two[0].ratio <= two[1].ratio), "{scale:?}");
    let (before, mut after) = (Model::new(&machine, None, 7), Model::new(&machine, None, 7).again(8));
    // A load somewhere on the curve.
    let point = *scale.curve.iter().find(|point| point.ratio > 1.3).unwrap();
    after.slow_memory(1.0, point.ratio);
    let seen = watch(&machine, &Slower { before: &before, after: &after, from: EVERY * 20 - EVERY / 2 }, 30, Some(scale));
    let detection = seen.others.as_ref().unwrap().detection_gbs.unwrap();
    assert!(detection > 0.0 && detection < point.gbs, "{detection}");
    let others = |from: usize| seen.points[from..].iter().filter_map(|point| point.others);
    assert!(others(0).take(20).filter(|o| o.low_gbs > 0.0).count() <= 2, "none before");
    // A part of latency is that of the core, which memory's does not change: other stamps have another share of it than the curve.
    let near =
        |o: &OthersBandwidth| (o.gbs / point.gbs - 1.0).abs() < 0.05 && o.low_gbs < o.gbs && o.high_gbs.is_some_and(|high| high > o.gbs);
    assert!(others(20).count() == 10 && others(20).all(|o| near(&o)), "{point:?}: {:?}", others(20).collect::<Vec<_>>());
    assert!(seen.states[0].probes.iter().any(|level| level.probe == StampProbe::MemoryLatency && level.scatter < 0.02));
}
