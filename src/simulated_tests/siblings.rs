//! A health check of a machine whose siblings are in a fleet.

use memgauge_analysis::conclusions::findings::FleetSiblings;
use memgauge_fleet::{Fingerprint, baseline, group_for, rows};
use memgauge_model::result::Host;

use super::*;

/// Twelve runs on machines of one kind, as a fleet knows them. What this system says of itself (kernel, privileges) is the same in all.
fn siblings(machine: &Machine, slower: f64) -> Vec<Report> {
    let run_of = |number: u64| {
        let mut report = run(&Spec::new(Task::quick()), machine, &slow(machine, slower).again(100 + number), None);
        report.run.host = Some(Host { hostname: Some(format!("n{number}")), machine_id_hash: None });
        report.run.id = format!("{number:032x}");
        report
    };
    (0..12).map(run_of).collect()
}

/// A model whose memory takes so much longer, and moves so much less.
fn slow(machine: &Machine, by: f64) -> Model {
    let mut model = Model::new(machine, None, 5);
    model.nodes.values_mut().for_each(|(gbs, ns)| (*gbs, *ns) = (*gbs * (1.0 - by), *ns * (1.0 + by)));
    model
}

#[test]
fn a_machine_is_judged_by_its_siblings_in_a_fleet() {
    let machine = TWO_NODES.machine();
    let fleet: Vec<_> = siblings(&machine, 0.0).iter().flat_map(rows).collect();
    let fleet = baseline(&fleet);
    let check = |by: f64| {
        let model = slow(&machine, by).again(7);
        let probe = run(&Spec::new(Task::quick()), &machine, &model, None);
        let group = group_for(&fleet, &Fingerprint::from_report(&probe)).unwrap();
        let references = Baselines { fleet: Some(FleetSiblings::Group(group)), ..Baselines::default() };
        let health = run_beside(&Spec::new(Task::quick()), &machine, &model, references).health.unwrap();
        assert!(health.compared_with.iter().any(|with| with == "fleet"), "{health:?}");
        health.findings.iter().any(|f| f.code.word() == "slower-than-fleet")
    };
    assert!(!check(0.0), "it is as its siblings are");
    assert!(check(0.3), "thirty per cent of its memory's speed are missing");
}
