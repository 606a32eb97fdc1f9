//! Limits are of the bus: where stores read first, what programs get of it is less.

use memgauge_model::experiment::Experiment;
use memgauge_model::result::{LimitSource, Report, Verdict};
use memgauge_model::traffic::Mix;
use memgauge_render::Named;
use memgauge_render::figure::{Figure, Scene};

use super::{holds, lay_out, one};
use crate::samples::{self, machines};

/// Bandwidths of a mix each, against this limit.
fn limited(gbs: f64, keep: impl Fn(Mix) -> bool) -> Report {
    let mut report = samples::vm();
    report.results.retain(|m| m.experiment == Experiment::Bandwidth && m.at.mix.is_some_and(&keep));
    for m in &mut report.results {
        m.verdict = Verdict { limit: Some(gbs), limit_source: Some(LimitSource::Smbios), ..Verdict::default() };
    }
    (report.plan, report.curves) = (None, Vec::new());
    report
}

/// How long each bar is, of its limit; from above.
fn shares(scene: &Scene) -> Vec<f64> {
    let shapes = scene.shapes();
    let bars: Vec<_> = shapes.iter().filter(|s| s.height == 14.0 && s.width > 11.0).collect();
    // Not the axis, from which bars begin.
    let axis = bars.first().map_or(0.0, |b| b.x);
    let dashed = shapes.iter().filter(|s| s.width == 0.0 && (20.0..30.0).contains(&s.height) && s.x > axis);
    bars.iter().zip(dashed).map(|(bar, line)| bar.width / (line.x - bar.x)).collect()
}

#[test]
fn stores_that_read_first_leave_less_of_a_limit_to_the_program() {
    let report = limited(60.0, |mix| matches!(mix, Mix::AllReads | Mix::R1W1 | Mix::R2W1));
    let scene = lay_out("limit of mixes", &one(&report));
    let expected: Vec<f64> = report.results.iter().map(|m| m.evidence.traffic.unwrap().bus_estimate_gbs.unwrap() / 60.0).collect();
    let mut found = shares(&scene);
    let mut sorted = expected.clone();
    found.sort_by(f64::total_cmp);
    sorted.sort_by(f64::total_cmp);
    assert_eq!(found.len(), 3, "{:?}", scene.shapes());
    assert!(found.iter().zip(&sorted).all(|(f, e)| (f - e).abs() < 0.002), "{found:?} {expected:?}");
    assert!(holds(&scene, "Dashed: the limit of the traffic on the bus, 60.0 GB/s (smbios), minus what stores read first."));
}

#[test]
fn a_limit_that_all_bars_share_is_named_at_its_line() {
    let scene = lay_out("limit of loads", &one(&limited(60.0, |mix| mix == Mix::AllReads || mix == Mix::NtWrite)));
    assert!(holds(&scene, "limit 60.0 GB/s (smbios)") && !holds(&scene, "Dashed"));
    // It is not known whether this fill reads first: nothing is drawn.
    let scene = lay_out("limit of a fill", &one(&limited(60.0, |mix| mix == Mix::Fill)));
    assert!(!holds(&scene, "limit") && !holds(&scene, "Dashed") && shares(&scene).is_empty());
}

#[test]
fn limits_of_several_results_stand_at_the_bars_of_each() {
    let reads = |gbs| limited(gbs, |mix| mix == Mix::AllReads);
    let (fast, slow) = (reads(80.0), reads(50.0));
    let figure = Figure::of_results(&[Named { name: "fast", report: &fast }, Named { name: "slow", report: &slow }]);
    let scene = lay_out("limits of two results", &figure);
    let found = shares(&scene);
    assert!(found.len() == 2 && (found[0] - 41.72 / 80.0).abs() < 0.002 && (found[1] - 41.72 / 50.0).abs() < 0.002, "{found:?}");
    assert!(holds(&scene, "50.0 GB/s (smbios) or 80.0 GB/s (smbios)."));
}

#[test]
fn charts_of_stores_say_the_limit_in_words() {
    for (mix, drawn) in [(Mix::AllReads, true), (Mix::R2W1Nt, true), (Mix::R2W1, false)] {
        let mut curve = machines::curves(&[mix]);
        let mut ramp = machines::cpus(8);
        ramp.results.retain(|m| m.at.mix == Some(Mix::AllReads) && m.experiment == Experiment::BandwidthRamp);
        ramp.results.iter_mut().for_each(|m| m.at.mix = Some(mix));
        for (report, gbs) in [(&mut curve, 300.0), (&mut ramp, 1000.0)] {
            for m in &mut report.results {
                m.verdict = Verdict { limit: Some(gbs), limit_source: Some(LimitSource::Smbios), ..Verdict::default() };
            }
            let scene = lay_out(&format!("limit {gbs} of {mix}"), &one(report));
            let said = holds(&scene, "for the traffic on the bus, which is more than programs ask for where stores read first");
            let named = scene.texts().iter().any(|(t, _)| t.starts_with("limit "));
            assert_eq!((named, said), (drawn, !drawn), "{mix}: {:?}", scene.texts());
        }
    }
}

#[test]
fn load_on_other_nodes_is_said() {
    let mut report = machines::curves(&[Mix::AllReads]);
    let nodes = Some("2".parse().unwrap());
    report.results.iter_mut().for_each(|m| m.at.load_nodes.clone_from(&nodes));
    report.curves.iter_mut().for_each(|c| c.at.load_nodes.clone_from(&nodes));
    let scene = lay_out("load on node 2", &one(&report));
    assert!(holds(&scene, "CPU 0 chases in node 0, CPUs 1-15 load memory of node 2"), "{:?}", scene.texts());
}
