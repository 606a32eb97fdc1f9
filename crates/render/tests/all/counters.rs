//! Text of hardware counters: metrics beside each other, each formula explained, what is missing left to the notes.

use memgauge_model::counters::{
    CountedWork, Counters, CountingContext, Event, EventEstimate, EventOutcome, EventTotals, ExpectedEvents, MetricEstimate, ProgramCount,
    ProgramRun, Scope, WorkUnit,
};
use memgauge_model::estimate::Estimate;
use memgauge_model::metrics::Role;
use memgauge_model::result::Report;
use memgauge_render::{Appearance, Document, Format};

use crate::samples;

fn counted(name: &str, role: Role, value: u64, running: u64) -> EventOutcome {
    let mut tally = EventTotals::default();
    tally.add(value, 1000, running);
    EventOutcome {
        event: Event { name: name.into(), roles: vec![role], code: format!("cpu/{name}/"), source: "a test".into() },
        outcome: Ok(tally),
    }
}

fn counters() -> Counters {
    let account = CountingContext {
        scope: Scope::User,
        threads: 1,
        thread_s: 1.0,
        wall_s: 1.0,
        work: Some(CountedWork { unit: WorkUnit::Hop, count: 10_000_000 }),
        expected: ExpectedEvents::default(),
    };
    let list = [
        counted("cpu_clk_unhalted.thread", Role::Cycles, 2_000_000_000, 1000),
        counted("inst_retired.any", Role::Instructions, 20_000_000, 1000),
        counted("longest_lat_cache.reference", Role::LlcAccesses, 5_000_000, 500),
        counted("longest_lat_cache.miss", Role::LlcMisses, 4_000_000, 500),
        EventOutcome {
            event: Event { name: "dtlb".into(), roles: vec![Role::TlbWalks], code: "x".into(), source: "a test".into() },
            outcome: Err("is refused".into()),
        },
    ];
    Counters::new(&account, &list)
}

fn text(report: &Report) -> String {
    String::from_utf8(
        report.render(Format::TEXT, &Appearance { width: 100, colour: false, verbose: true, ..Appearance::default() }).unwrap(),
    )
    .unwrap()
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|l| l.trim_start().starts_with(start)).unwrap_or_else(|| panic!("no line '{start}' in:\n{text}"))
}

#[test]
fn metrics_stand_beside_each_other_with_a_legend() {
    let mut report = samples::vm();
    for m in report.results.iter_mut().filter(|m| m.at.order.is_some()) {
        m.counters = Some(Box::new(counters()));
    }
    let text = text(&report);
    assert!(line(&text, "cycles ").contains("200.0 a hop"), "{text}");
    assert!(line(&text, "instructions ").contains("2.00 a hop"));
    assert!(line(&text, "LLC miss rate ").contains("80 %"));
    assert!(!text.contains("\n  TLB walks"), "what is missing has no row");
    assert!(line(&text, "LLC miss rate =").contains("llc-misses / llc-accesses: per access of that level"));
    assert!(text.contains("llc-misses = longest_lat_cache.miss"));
    assert!(text.contains("counted for at least 50 % of the time, and scaled"));
    assert!(text.lines().all(|l| l.chars().count() <= 100));
}

#[test]
fn many_measurements_are_lines() {
    let mut report = samples::vm();
    let one = report.results[0].clone();
    report.results = (0..40)
        .map(|cpu| {
            let mut m = one.clone();
            m.at.cpu = Some(cpu);
            m.counters = Some(Box::new(counters()));
            m
        })
        .collect();
    let text = text(&report);
    let from = text.find("\nCounters").unwrap();
    assert_eq!(text[from..].lines().filter(|l| l.contains("80 %") && l.contains("CPU ")).count(), 40, "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100));
}

#[test]
fn where_nothing_was_counted_there_is_no_section() {
    let mut report = samples::vm();
    let before = text(&report);
    report.results[0].counters = Some(Box::new(Counters::missing("no hardware counters")));
    assert_eq!(text(&report), before);
}

#[test]
fn a_program_has_medians_and_spreads() {
    let mut report = samples::info();
    let one = counters();
    let estimate =
        |v: Option<f64>| Estimate { value: v, n: 7, ci95_low: v.map(|v| v * 0.98), ci95_high: v.map(|v| v * 1.01), ..Estimate::default() };
    let events = one.events.iter().map(|e| EventEstimate { event: e.event.clone(), unit: None, estimate: estimate(e.value) });
    let metrics = one.metrics.iter().map(|m| MetricEstimate {
        metric: m.metric,
        formula: m.formula.clone(),
        unit: m.unit,
        estimate: estimate(m.value),
    });
    report.program = Some(Box::new(ProgramCount {
        command: vec!["app".into(), "input".into()],
        scope: Scope::UserAndKernel,
        runs: vec![ProgramRun::Exited(0), ProgramRun::Exited(2)],
        elapsed_s: estimate(Some(1.5)),
        running: Some(0.5),
        events: events.collect(),
        metrics: metrics.collect(),
    }));
    let text = text(&report);
    assert!(text.contains("Counters of app input"), "{text}");
    assert!(line(&text, "inst_retired.any").contains("20,000,000"));
    assert!(line(&text, "inst_retired.any").contains("±2 %"));
    assert!(line(&text, "LLC miss rate ").contains("80 %"));
    assert!(text.contains("took 1.5 s · ended with status 2"));
    assert!(text.contains("the kernel's work on its behalf"));
    assert!(!text.contains("dtlb"), "an event without count is for the notes");
}
