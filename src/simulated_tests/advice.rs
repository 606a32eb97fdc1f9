//! Advice on simulated machines, whose ramps flatten where the model says.

use memgauge_analysis::advice::{Action, AgainstCeiling, Cause, CauseRate, Fit, Model as LanguageModel, Topic, WeightsPlace, Why, advise};
use memgauge_model::traffic::Access;
use memgauge_model::units::Bytes;

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
        let advice = advise(&[("ramp.json", &report)], &[], None);
        let found = advice.recommendations.iter().find(|r| r.topic == Topic::Threads).unwrap();
        let Action::UseThreads { threads: n, of: 16, share, knee, .. } = found.action else { panic!("{found:?}") };
        println!("memory is full at {full:.1} threads, 95 % at {exact}: {n} advised, share {:.3}, knee {knee:?}", share.value);
        assert!(n.abs_diff(exact) <= 1 && share.value >= 0.95, "{found:?}, not {exact}");
        // The sample of docs/advise.md is what this prints.
        println!("{}", advise(&[("ramp.json", &report)], &[], None).text(&Appearance { width: 80, ..Appearance::default() }));
        // Requests wait before the memory is full, so the last threads before that bring less than the first.
        assert!((f64::from(knee.unwrap()) - full).abs() <= 1.5, "{knee:?}, not {full}");
    }
}

#[test]
fn a_machine_that_is_too_noisy_gives_no_advice_on_threads() {
    let machine = Shape { packages: 1, cores: 16, threads: 1, ..TWO_NODES }.machine();
    let mut report = ramp(&machine, &Model::new(&machine, None, 1), "1-16");
    report.results.iter_mut().for_each(|m| m.quality.level = memgauge_model::result::QualityLevel::Unreliable);
    let advice = advise(&[("ramp.json", &report)], &[], None);
    assert!(advice.recommendations.iter().all(|r| r.topic != Topic::Threads));
    let gap = advice.gaps.iter().find(|gap| gap.topic == Topic::Threads).unwrap();
    assert_eq!((&gap.why, gap.numbers.len()), (&Why::Unreliable, 16));
}

#[test]
fn a_suite_says_which_command_measures_the_ramp() {
    let machine = TWO_NODES.machine();
    let report = run(&Spec::new(Task::suite()), &machine, &Model::new(&machine, None, 7), None);
    let advice = advise(&[("suite.json", &report)], &[], None);
    let topics: Vec<Topic> = advice.recommendations.iter().map(|r| r.topic).collect();
    assert!(topics.contains(&Topic::Placement) && topics.contains(&Topic::Load) && !topics.contains(&Topic::Threads), "{topics:?}");
    let gap = advice.gaps.iter().find(|gap| gap.topic == Topic::Threads).unwrap();
    assert_eq!((&gap.why, gap.command.as_deref()), (&Why::NotMeasured, Some("memgauge bandwidth --ramp -o ramp.json")));
}

#[test]
fn weights_on_one_node_explain_their_tokens_a_second() {
    let machine = TWO_NODES.machine();
    let mut model = Model::new(&machine, None, 7);
    model.noise = Noise::NONE;
    let bandwidths = |shape, access| {
        let mut spec = Spec::new(Task::bandwidth(shape));
        let traffic = &mut options!(&mut spec.task, Bandwidth).traffic;
        (traffic.load.mixes, traffic.access) = (vec![Mix::AllReads], access);
        run(&spec, &machine, &model, None)
    };
    let all = bandwidths(BandwidthShape::One, Access::Sequential);
    let matrix = bandwidths(BandwidthShape::Matrix, Access::Sequential);
    let random = bandwidths(BandwidthShape::One, Access::Random);
    let results = [("random.json", &random), ("all.json", &all), ("matrix.json", &matrix)];
    let value = |report: &Report| report.results[0].estimate.value.unwrap();
    let own = matrix.results.iter().find(|m| m.at.cpu_node == Some(0) && m.at.memory_node() == Some(0)).unwrap();
    let seen_tokens_per_s = own.estimate.value.unwrap() / 10.0;
    let model = LanguageModel { name: None, bytes: Bytes(10_000_000_000) };
    let advice = advise(&results, &[model], Some(seen_tokens_per_s));
    let Action::ExplainTokens { ceiling, against: AgainstCeiling::Below, causes, .. } = &advice.recommendations[0].action else {
        panic!("{advice:?}")
    };
    // The plan of the first file says that its lines were read in random order.
    assert_eq!(ceiling.read_gbs, value(&all), "{ceiling:?}");
    let rate = |cause: &Cause| causes.iter().find(|possible| possible.cause == *cause).and_then(|possible| possible.rate);
    let Some(CauseRate { tokens_per_s, fit: Fit::Fits, .. }) = rate(&Cause::Placement { place: Some(WeightsPlace::OneNode { node: 0 }) })
    else {
        panic!("{causes:?}")
    };
    assert!((tokens_per_s / seen_tokens_per_s - 1.0).abs() < 0.01, "{causes:?}");
    assert_eq!(rate(&Cause::RandomAccess).unwrap().tokens_per_s, value(&random) / 10.0);
    let text = advice.text(&Appearance { width: 80, ..Appearance::default() });
    assert!(text.contains("this fits: weights on node 0"), "{text}");
    println!("{text}");
}
