//! Cores that run faster alone than all together.

use memgauge_model::result::QualityReason;

use super::*;

fn checked(fault: Option<Fault>) -> Report {
    let machine = TWO_NODES.machine();
    let mut model = Model::new(&machine, fault, 11);
    model.turbo = 0.35;
    run(&Spec::new(Task::quick()), &machine, &model, None)
}

#[test]
fn a_core_that_alone_runs_faster_is_no_alarm() {
    let report = checked(None);
    let codes: Vec<&str> = alarms(&report).iter().map(|f| f.code.word()).collect();
    assert!(codes.is_empty(), "{codes:?}");
    let drifted = |m: &memgauge_model::result::Measurement| m.quality.reasons.contains(&QualityReason::FrequencyDrift);
    assert_eq!(report.measurements().filter(|m| drifted(m)).map(|m| &m.at).collect::<Vec<_>>(), Vec::<&Coordinates>::new());
    // What is compared between cores is their frequency while all work; what a core showed alone is a third higher.
    let all = report.environment.all_cores_ghz.values().copied().fold(0.0, f64::max);
    let alone = report.environment.core_ghz.values().copied().fold(0.0, f64::max);
    assert!(close(alone / all, 1.35, 0.01), "{alone} GHz alone, {all} together");
}

#[test]
fn a_slow_core_is_found_beside_turbo() {
    let report = checked(Some(Fault::Core { cpu: 3, less: 0.15 }));
    let slow = alarms(&report).into_iter().find(|f| f.code.word() == "slow-cores");
    assert!(slow.is_some_and(|f| f.message.contains("CPUs 3")), "{:?}", report.health);
}
