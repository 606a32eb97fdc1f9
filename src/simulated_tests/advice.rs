//! Advice on simulated machines, whose ramps flatten where the model says.

use memgauge_analysis::advice::{Action, Topic, Why, advise};

use super::*;

/// The number of threads that fill the memory of a node: its capacity over what one thread gets alone.
fn filling(report: &Report, capacity_gbs: f64) -> f64 {
    let alone = report.results.iter().find(|m| m.at.cpus.as_ref().is_some_and(|cpus| cpus.len() == 1)).unwrap();
    capacity_gbs / alone.estimate.value.unwrap()
}

fn ramp(machine: &Machine, model: &Model, counts: &str) -> Report {
    let spec = Spec::new(Task::bandwidth(BandwidthShape::Ramp(counts.parse().unwrap())));
    run(&spec, machine, model, None)
}

/// The fewest threads of a ramp with 95 % of its highest bandwidth.
fn enough(report: &Report) -> u32 {
    let points = || report.results.iter().filter_map(|m| Some((m.at.cpus.as_ref()?.len() as u32, m.estimate.value?)));
    let highest = points().map(|p| p.1).fold(0.0, f64::max);
    points().filter(|p| p.1 >= 0.95 * highest).map(|p| p.0).min().unwrap()
}

#[test]
fn the_threads_that_fill_the_memory_are_found() {
    let machine = Shape { packages: 1, cores: 16, threads: 1, ..TWO_NODES }.machine();
    for (seed, threads) in [(1, 3.0), (2, 5.0), (3, 8.0)] {
        let mut model = Model::new(&machine, None, seed);
        // The cache's path to memory shall not be the limit.
        model.domains.iter_mut().for_each(|gbs| *gbs *= 20.0);
        let alone = filling(&ramp(&machine, &model, "1,2"), 1.0).recip();
        model.nodes.values_mut().for_each(|(gbs, _)| *gbs = threads * alone);
        let noise = std::mem::replace(&mut model.noise, Noise::NONE);
        let exact = enough(&ramp(&machine, &model, "1-16"));
        model.noise = noise;
        let report = ramp(&machine, &model, "1-16");
        let full = filling(&report, threads * alone);
        let advice = advise(&[("ramp.json", &report)], &[]);
        let found = advice.recommendations.iter().find(|r| r.topic == Topic::Threads).unwrap();
        let Action::UseThreads { threads: n, of: 16, share, knee, .. } = found.action else { panic!("{found:?}") };
        println!("memory is full at {full:.1} threads, 95 % at {exact}: {n} advised, share {:.3}, knee {knee:?}", share.value);
        assert!(n.abs_diff(exact) <= 1 && share.value >= 0.95, "{found:?}, not {exact}");
        // The sample of docs/advise.md is what this prints.
        println!("{}", advise(&[("ramp.json", &report)], &[]).text(&Appearance { width: 80, ..Appearance::default() }));
        // Requests wait before the memory is full, so the last threads before that bring less than the first.
        assert!((f64::from(knee.unwrap()) - full).abs() <= 1.5, "{knee:?}, not {full}");
    }
}

#[test]
fn a_machine_that_is_too_noisy_gives_no_advice_on_threads() {
    let machine = Shape { packages: 1, cores: 16, threads: 1, ..TWO_NODES }.machine();
    let mut report = ramp(&machine, &Model::new(&machine, None, 1), "1-16");
    report.results.iter_mut().for_each(|m| m.quality.level = memgauge_model::result::QualityLevel::Unreliable);
    let advice = advise(&[("ramp.json", &report)], &[]);
    assert!(advice.recommendations.iter().all(|r| r.topic != Topic::Threads));
    let gap = advice.gaps.iter().find(|gap| gap.topic == Topic::Threads).unwrap();
    assert_eq!((&gap.why, gap.numbers.len()), (&Why::Unreliable, 16));
}

#[test]
fn a_suite_says_which_command_measures_the_ramp() {
    let machine = TWO_NODES.machine();
    let report = run(&Spec::new(Task::suite()), &machine, &Model::new(&machine, None, 7), None);
    let advice = advise(&[("suite.json", &report)], &[]);
    let topics: Vec<Topic> = advice.recommendations.iter().map(|r| r.topic).collect();
    assert!(topics.contains(&Topic::Placement) && topics.contains(&Topic::Load) && !topics.contains(&Topic::Threads), "{topics:?}");
    let gap = advice.gaps.iter().find(|gap| gap.topic == Topic::Threads).unwrap();
    assert_eq!((&gap.why, gap.command.as_deref()), (&Why::NotMeasured, Some("memgauge bandwidth --ramp -o ramp.json")));
}
