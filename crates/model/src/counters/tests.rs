use super::*;

fn event(name: &str, roles: &[Role]) -> Event {
    Event { name: name.into(), roles: roles.to_vec(), code: format!("cpu/{name}/"), source: "a test".into() }
}

fn counted(name: &str, role: Role, value: u64) -> EventOutcome {
    let mut tally = EventTotals::default();
    tally.add(value, 1_000_000_000, 1_000_000_000);
    EventOutcome { event: event(name, &[role]), outcome: Ok(tally) }
}

fn context(expected: ExpectedEvents) -> CountingContext {
    let work = Some(CountedWork { unit: WorkUnit::Hop, count: 10_000_000 });
    CountingContext { scope: Scope::User, threads: 1, thread_s: 1.0, wall_s: 1.0, work, expected }
}

const MISSED_L1: ExpectedEvents = ExpectedEvents { loads: true, l1_missed: true, l2_missed: false, llc_missed: false };

#[test]
fn turns_are_scaled_thread_by_thread() {
    let mut tally = EventTotals::default();
    tally.add(100, 1000, 500);
    tally.add(300, 1000, 1000);
    // 100 seen in half of the time are 200; the other thread had a counter all the time.
    assert_eq!((tally.raw, tally.scaled), (400, 500.0));
    assert_eq!(tally.running(), Some(0.75));
    assert_eq!(tally.starved, 0);
}

#[test]
fn a_thread_without_a_counter_spoils_the_sum() {
    let mut starved = counted("a", Role::Loads, 1000);
    if let Ok(tally) = &mut starved.outcome {
        tally.add(0, 1000, 0);
    }
    let events = judge(&[starved], ExpectedEvents::default());
    assert_eq!(events[0].value, None);
    assert!(events[0].reason.as_ref().unwrap().contains("got no counter"), "{events:?}");
}

#[test]
fn what_was_never_enabled_is_not_zero() {
    let events =
        judge(&[EventOutcome { event: event("a", &[Role::Loads]), outcome: Ok(EventTotals::default()) }], ExpectedEvents::default());
    assert!(events[0].value.is_none() && events[0].reason.is_some());
}

#[test]
fn a_miss_counter_stuck_at_zero_is_no_absence_of_misses() {
    let list = [
        counted("cycles", Role::Cycles, 2_000_000_000),
        counted("instructions", Role::Instructions, 10_000_000),
        counted("l1d_cache", Role::L1Accesses, 10_000_000),
        counted("l1d_cache_refill", Role::L1Misses, 0),
        counted("ll_cache_miss_rd", Role::LlcMisses, 0),
    ];
    let counters = Counters::new(&context(MISSED_L1), &list);
    assert_eq!(counters.count(Role::L1Misses), None, "the loop is larger than the L1");
    assert_eq!(counters.metric(CounterMetric::L1MissRate), None);
    let gaps = counters.gaps();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps.keys().next().unwrap().contains("never counted"), "{gaps:?}");
    // The loop fits the LLC, and the PMU does count cache events: no misses there are credible.
    assert_eq!(counters.count(Role::LlcMisses), Some(0.0));
}

#[test]
fn no_cache_event_that_counts_means_no_cache_events() {
    let list = [
        counted("cpu_cycles", Role::Cycles, 2_000_000_000),
        counted("inst_retired", Role::Instructions, 10_000_000),
        counted("ll_cache_rd", Role::LlcAccesses, 0),
        counted("ll_cache_miss_rd", Role::LlcMisses, 0),
    ];
    let counters = Counters::new(&context(ExpectedEvents::default()), &list);
    assert_eq!((counters.count(Role::LlcAccesses), counters.count(Role::LlcMisses)), (None, None));
    assert_eq!(counters.count(Role::Instructions), Some(1e7));
    assert_eq!(counters.metric(CounterMetric::Ipc), Some(0.005));
    assert_eq!(counters.metric(CounterMetric::InstructionsPerWork), Some(1.0));
}

#[test]
fn a_core_always_has_cycles() {
    let counters = Counters::new(&context(ExpectedEvents::default()), &[counted("cycles", Role::Cycles, 0)]);
    assert_eq!(counters.count(Role::Cycles), None);
}

#[test]
fn an_idle_stretch_may_count_nothing() {
    let list = [counted("instructions", Role::Instructions, 50), counted("l1d_cache_refill", Role::L1Misses, 0)];
    assert_eq!(Counters::new(&context(MISSED_L1), &list).count(Role::L1Misses), Some(0.0), "50 instructions need not miss");
}

#[test]
fn what_is_missing_says_why_in_every_metric_that_needs_it() {
    let list = [
        counted("cycles", Role::Cycles, 2_000_000_000),
        EventOutcome { event: event("inst_retired.any", &[Role::Instructions]), outcome: Err("is refused".into()) },
    ];
    let counters = Counters::new(&context(ExpectedEvents::default()), &list);
    let ipc = counters.metrics.iter().find(|m| m.metric == CounterMetric::Ipc).unwrap();
    assert_eq!((ipc.value, ipc.reason.as_deref()), (None, Some("inst_retired.any is refused")));
    let rate = counters.metrics.iter().find(|m| m.metric == CounterMetric::L2MissRate).unwrap();
    assert_eq!(rate.reason.as_deref(), Some("no event for l2-misses is known for this CPU"));
    let cycles = counters.metrics.iter().find(|m| m.metric == CounterMetric::CyclesPerWork).unwrap();
    assert_eq!((cycles.value, cycles.formula.as_str()), (Some(200.0), "cycles / hop"));
}

#[test]
fn the_share_of_time_counted_is_the_smallest() {
    let mut half = counted("a", Role::Loads, 0);
    if let Ok(tally) = &mut half.outcome {
        *tally = EventTotals::default();
        tally.add(500, 1000, 250);
    }
    let counters = Counters::new(&context(ExpectedEvents::default()), &[counted("cycles", Role::Cycles, 1), half]);
    assert_eq!(counters.running, Some(0.25));
    assert_eq!(counters.count(Role::Loads), Some(2000.0));
}

#[test]
fn one_event_can_have_several_roles() {
    let mut both = counted("fills", Role::LlcMisses, 7);
    both.event.roles.push(Role::LoadLlcMisses);
    let counters = Counters::new(&context(ExpectedEvents::default()), &[both]);
    assert_eq!((counters.count(Role::LlcMisses), counters.count(Role::LoadLlcMisses)), (Some(7.0), Some(7.0)));
}
