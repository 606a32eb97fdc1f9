//! What plans say of their time.

use std::time::Duration;

use super::*;
use crate::spec::SweepShape;

#[test]
fn a_larger_budget_moves_the_most_further_than_the_estimate() {
    let of = |budget: u64| planned(Task::Suite, |s| s.budget = Some(Duration::from_millis(budget))).unwrap();
    let (short, long) = (of(500), of(4000));
    assert!(short.max_s < 1.2 * short.estimated_s, "the suite's own budget is close to the fewest bursts: {}", short.max_s);
    assert!(long.max_s > 1.5 * long.estimated_s, "{} {}", long.max_s, long.estimated_s);
    let fixed = planned(Task::Suite, |s| s.time = Some(Duration::from_secs(1))).unwrap();
    assert!((fixed.max_s / fixed.estimated_s - 1.0).abs() < 1e-9, "a fixed time is what it is");
    for plan in [&short, &long, &fixed] {
        assert!((plan.steps.iter().map(|s| s.estimated_s).sum::<f64>() / plan.estimated_s - 1.0).abs() < 1e-9);
    }
}

#[test]
fn virtual_machines_have_wider_intervals_and_say_so() {
    let mut guest = machine();
    guest.identity.hypervisor = Some("KVM".into());
    let target = |machine: &Machine, confidence: Option<f64>| {
        let spec = Spec { confidence, ..Spec::new(Task::Latency(LatencyShape::One)) };
        let plan = plan(&spec, machine, &[]).unwrap();
        (plan.stop.relative_half_width, plan.notes.iter().any(|note| note.code == "guest-intervals"))
    };
    assert_eq!(target(&machine(), None), (0.01, false));
    assert_eq!(target(&guest, None), (0.03, true));
    assert_eq!(target(&guest, Some(0.005)), (0.005, false), "what was asked for is not changed");
}

#[test]
fn a_run_that_is_to_end_in_time_gives_its_cells_less() {
    let suite = planned(Task::Suite, |_| ()).unwrap();
    let within = |seconds: f64, task| planned(task, |s| s.within = Some(Duration::from_secs_f64(seconds))).unwrap();
    let roomy = within(2.0 * suite.max_s, Task::Suite);
    assert_eq!((roomy.stop.budget_s, roomy.max_s), (suite.stop.budget_s, suite.max_s), "no less than it may have");
    let sweep = within(30.0, Task::Sweep(SweepShape::One));
    assert!(sweep.max_s <= 0.95 * 30.0 && sweep.max_s > 0.85 * 30.0, "{}", sweep.max_s);
    assert!(sweep.notes.iter().all(|n| n.code != "within-too-short"));
    // A budget that was asked for is not changed; what does not fit is said.
    let requested = planned(Task::Suite, |s| (s.within, s.budget) = (Some(Duration::from_secs(10)), Some(Duration::from_secs(2)))).unwrap();
    assert_eq!((requested.stop.budget_s, requested.within_s), (2.0, Some(10.0)));
    assert!(requested.notes.iter().any(|n| n.code == "within-too-short"));
    let never = within(1.0, Task::Suite);
    assert!(never.notes.iter().any(|n| n.code == "within-too-short") && never.stop.budget_s < 0.01);
}

#[test]
fn what_earlier_cells_set_up_is_not_paid_again() {
    let matrix = planned(Task::Bandwidth(BandwidthShape::Matrix), |s| s.nodes = Some(IdSet::one(0))).unwrap();
    let one = planned(Task::Bandwidth(BandwidthShape::One), |s| s.nodes = Some(IdSet::one(0))).unwrap();
    let cells = matrix.steps[0].cells.len() as f64;
    assert!(matrix.estimated_s < cells * one.estimated_s, "the calibration of stores is made once");
    let long = planned(Task::Loaded, |s| s.delays = vec![0, 100]).unwrap();
    let longer = planned(Task::Loaded, |s| s.delays = vec![0, 50, 100, 200]).unwrap();
    let point = (longer.estimated_s - long.estimated_s) / 2.0;
    assert!(point > 0.4 && point < 4.1, "{point}");
}
