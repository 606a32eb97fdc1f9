//! Health checks of a machine that is compared with its own earlier ones.

use memgauge_analysis::conclusions::findings::earlier_checks;

use super::*;

/// A check of the machine on one day, whose memory is slower by this share. Days differ by 1 %.
fn check(machine: &Machine, day: u64, slower: f64, history: &[Report]) -> Report {
    let mut model = Model::new(machine, None, 5).again(1000 + day);
    let of_day = (1.0 - slower) * Random::new(day).factor(0.01);
    model.nodes.values_mut().for_each(|(gbs, ns)| (*gbs, *ns) = (*gbs * of_day, *ns / of_day));
    let mut report = run_beside(&Spec::new(Task::quick()), machine, &model, Baselines { history, ..Baselines::default() });
    report.started.utc = format!("2026-11-{:02}T03:00:00.000Z", day % 28 + 1);
    report
}

#[test]
fn a_machine_is_compared_with_its_earlier_checks() {
    let machine = TWO_NODES.machine();
    let earlier: Vec<Report> = (0..8).map(|day| check(&machine, day, 0.0, &[])).collect();
    let history = earlier_checks(&earlier[0], earlier.clone()).checks;
    assert_eq!(history.len(), 8);
    let flagged = |days: std::ops::Range<u64>, slower, history: &[Report]| {
        let is_flagged = |day: &u64| {
            let health = check(&machine, *day, slower, history).health.unwrap();
            assert!(health.compared_with.iter().any(|with| with == "history"), "{health:?}");
            health.findings.iter().any(|f| f.code.word() == "slower-than-before")
        };
        days.filter(is_flagged).count()
    };
    assert_eq!(flagged(100..120, 0.0, &history), 0, "healthy ones");
    assert_eq!(flagged(200..210, 0.15, &history), 10, "both nodes lost 15 %, which siblings cannot show");
    assert_eq!(flagged(300..310, 0.0, &history[..1]), 0, "a single check");
    assert_eq!(flagged(400..405, 0.30, &history[..1]), 5, "a single check, and a large loss");
}
