//! A machine that is compared with its own earlier checks, and how much must be compared for a verdict.

use memgauge_model::result::{ComparedWith, Host};

use super::*;

/// Checks of one machine, a day each.
fn checks(machine: &Machine, bandwidths: &[f64]) -> Vec<Report> {
    let mut checks = Vec::new();
    for (day, &gbs) in (1..).zip(bandwidths) {
        let mut check = report(machine.clone(), vec![node(0, gbs)]);
        check.started.utc = format!("2026-11-{day:02}T03:00:00.000Z");
        check.health = Some(Health::default());
        checks.push(check);
    }
    checks
}

fn beside(history: &[Report], now: &Report) -> Health {
    judge(now, Baselines { history, ..Baselines::default() })
}

#[test]
fn a_machine_that_became_slower_than_in_its_earlier_checks_is_told() {
    let earlier = checks(&silent(), &[60.3, 59.8, 60.1, 60.0, 59.9]);
    let three = |machine: Machine, gbs| report(machine, vec![node(0, gbs), again(node(0, gbs)), again(node(0, gbs))]);
    let good = beside(&earlier, &three(silent(), 59.5));
    assert_eq!((good.status, codes(&good), good.compared_with.clone()), (HealthStatus::Ok, vec![], vec!["history".to_owned()]));
    let compared = &good.compared[0];
    assert_eq!((compared.numbers, compared.count, compared.since.as_deref()), (1, Some(5), Some("2026-11-01T03:00:00.000Z")));
    assert!((compared.worst.unwrap() - 0.5 / 60.0).abs() < 1e-9, "{compared:?}");
    let slow = beside(&earlier, &three(silent(), 52.0));
    assert_eq!((slow.status, codes(&slow)), (HealthStatus::Failure, vec!["slower-than-before"]));
    assert!(
        slow.findings[0].message.ends_with(": 52.0 GB/s, usually 60.0 ±1.6 GB/s; in 3 tries: 52.0, 52.0, 52.0 GB/s"),
        "{}",
        slow.findings[0].message
    );
    // Four checks are needed for a failure, and a single one says little of how far they differ.
    assert_eq!(beside(&earlier[..2], &three(silent(), 50.0)).status, HealthStatus::Warning);
    assert_eq!(beside(&earlier[..1], &three(silent(), 55.5)).status, HealthStatus::Ok);
    // Virtual machines differ more between checks.
    let mut guest = silent();
    guest.identity.hypervisor = Some("kvm".into());
    assert_eq!(beside(&checks(&guest, &[60.3, 59.8, 60.1, 60.0, 59.9]), &three(guest.clone(), 55.0)).status, HealthStatus::Ok);
    assert_eq!(beside(&checks(&guest, &[60.3, 59.8, 60.1, 60.0, 59.9]), &three(guest, 45.0)).status, HealthStatus::Warning);
    let faster = beside(&earlier, &three(silent(), 70.0));
    assert_eq!((faster.status, faster.compared[0].worst.unwrap() < 0.0), (HealthStatus::Ok, true));
}

/// The same with an interval of this share on either side.
fn within(m: Measurement, share: f64) -> Measurement {
    let mut m = m;
    let value = m.estimate.value.unwrap();
    (m.estimate.ci95_low, m.estimate.ci95_high) = (Some(value * (1.0 - share)), Some(value * (1.0 + share)));
    m
}

#[test]
fn a_number_that_may_be_much_worse_has_not_passed() {
    let mut guest = silent();
    guest.identity.hypervisor = Some("kvm".into());
    let counts = |health: &Health| health.compared.iter().map(|c| (c.numbers, c.undecided)).collect::<Vec<_>>();
    // One check of a virtual machine says little of how far the next ones are from it.
    let both = |near, gbs| report(guest.clone(), vec![node(0, near), node(1, gbs)]);
    let mut earlier = both(60.0, 60.0);
    earlier.health = Some(Health::default());
    let earlier = [earlier];
    let of_history = |health: Health| health.compared.into_iter().find(|c| c.with == ComparedWith::History).unwrap();
    let doubtful = of_history(beside(&earlier, &both(59.0, 53.0)));
    assert_eq!((doubtful.numbers, doubtful.undecided), (1, 1));
    assert!((doubtful.worst.unwrap() - 1.0 / 60.0).abs() < 1e-9, "the worst of those that were compared: {doubtful:?}");
    let near = of_history(beside(&earlier, &both(59.0, 55.0)));
    assert_eq!((near.numbers, near.undecided), (2, 0));
    // The only one leaves the check without a verdict.
    let alone = |gbs, share| report(silent(), vec![within(node(0, gbs), share)]);
    let baseline = |now: &Report, then: &Report| judge(now, Baselines { baseline: Some(then), ..Baselines::default() });
    let open = baseline(&alone(50.0, 0.15), &alone(60.0, 0.15));
    assert_eq!((open.status, codes(&open), counts(&open)), (HealthStatus::Unknown, vec!["numbers-not-reliable"], vec![(0, 1)]));
    assert!(open.findings[0].message.contains("within the scatter") && open.findings[0].advice.is_some(), "{open:?}");
    let flagged = baseline(&alone(50.0, 0.01), &alone(60.0, 0.01));
    assert_eq!(counts(&flagged), [(1, 0)]);
    // Similar parts, too: intervals that overlap leave it open for both.
    let parts = health(vec![within(node(0, 60.0), 0.15), within(node(1, 50.0), 0.15)]);
    assert_eq!((parts.status, counts(&parts)), (HealthStatus::Unknown, vec![(0, 2)]), "{parts:?}");
    // A number that was measured again counts as its tries say.
    let mut first = alone(50.0, 0.01);
    first.repeats = vec![within(node(0, 59.9), 0.01), within(node(0, 60.2), 0.01)];
    let again = baseline(&first, &alone(60.0, 0.01));
    assert_eq!((again.status, codes(&again), counts(&again)), (HealthStatus::Ok, vec!["not-confirmed"], vec![(1, 0)]));
    assert!(again.compared[0].worst.unwrap() < 0.01, "{again:?}");
}

#[test]
fn what_changed_since_the_last_good_check_is_named() {
    let earlier = checks(&silent(), &[60.0, 60.0, 60.0, 50.0, 60.0]);
    let mut now = report(silent(), vec![node(0, 50.0), again(node(0, 50.0)), again(node(0, 50.0))]);
    let advice = |now: &Report| beside(&earlier, now).findings[0].advice.as_ref().unwrap().to_string();
    assert!(advice(&now).contains("nothing that memgauge records has changed"), "{}", advice(&now));
    now.machine.identity.kernel = Some("6.12.2".into());
    assert!(!advice(&now).contains("kernel"), "the earlier one is not known: {}", advice(&now));
    let mut with_kernel = earlier.clone();
    with_kernel.iter_mut().for_each(|check| check.machine.identity.kernel = Some("6.12.1".into()));
    let advice = beside(&with_kernel, &now).findings[0].advice.as_ref().unwrap().to_string();
    assert_eq!(advice, "this has changed since: kernel 6.12.1 → 6.12.2");
}

#[test]
fn earlier_checks_are_those_of_this_machine_in_its_state() {
    let mut now = report(silent(), vec![node(0, 60.0)]);
    let named = |id: &str| Some(Host { hostname: None, machine_id_hash: Some(id.into()) });
    now.run.host = named("this");
    now.environment.governors = vec!["performance".into()];
    let mut all = checks(&silent(), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    all.iter_mut().for_each(|check| check.run.host = named("this"));
    all.reverse();
    let kept = |all: &[Report]| -> Vec<f64> {
        earlier_checks(&now, all.to_vec()).checks.iter().map(|check| check.results[0].estimate.value.unwrap()).collect()
    };
    assert_eq!(kept(&all), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "the oldest first");
    all[0].run.host = named("another");
    all[1].machine.identity.model_name = Some("another".into());
    all[2].health = None;
    assert_eq!(kept(&all), [1.0, 2.0, 3.0], "neither of another machine nor of another command");
    for check in &mut all {
        check.environment.governors = vec!["powersave".into()];
    }
    assert_eq!(kept(&all).len(), 3, "in another state, where there are none in this one");
    all[5].environment.governors = vec!["performance".into()];
    assert_eq!(kept(&all), [1.0]);
}

#[test]
fn a_latency_alone_is_no_verdict_and_a_bandwidth_at_a_delay_is_not_judged() {
    let latency = |ns: f64| {
        let mut m = node(0, ns);
        (m.experiment, m.metric, m.at.mix, m.at.order) = (Experiment::IdleLatency, Metric::Latency, None, Some(ChaseOrder::WindowLocal));
        m
    };
    let before = report(silent(), vec![latency(100.0)]);
    let now = report(silent(), vec![latency(100.0), node(0, 60.0)]);
    let health = judge(&now, Baselines { baseline: Some(&before), ..Baselines::default() });
    assert_eq!((health.status, codes(&health)), (HealthStatus::Unknown, vec!["too-few-compared"]));
    assert_eq!((health.compared[0].numbers, health.compared[0].absent), (1, 1));
    let paced = |gbs: f64| {
        let mut m = node(0, gbs);
        (m.experiment, m.at.delay_cycles) = (Experiment::LoadedLatency, Some(20_000));
        m
    };
    let before = report(silent(), vec![paced(0.6), node(0, 60.0)]);
    let slow = report(silent(), vec![paced(0.3), node(0, 60.0)]);
    let health = judge(&slow, Baselines { baseline: Some(&before), ..Baselines::default() });
    assert_eq!((health.status, health.compared[0].numbers), (HealthStatus::Ok, 1), "{health:?}");
}
