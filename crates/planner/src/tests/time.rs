//! The times that plans state.

use std::time::Duration;

use memgauge_model::plan::Coarsening;
use memgauge_model::protocol;
use memgauge_model::spec::{SweepShape, SweepSpec};

use super::*;

#[test]
fn a_larger_budget_moves_the_most_further_than_the_estimate() {
    let of = |budget: u64| planned(Task::suite(), |s| s.budget = Some(Duration::from_millis(budget))).unwrap();
    let (short, long) = (of(500), of(4000));
    assert!(short.max_s < 1.2 * short.estimated_s, "the suite's own budget is close to the fewest bursts: {}", short.max_s);
    assert!(long.max_s > 1.5 * long.estimated_s, "{} {}", long.max_s, long.estimated_s);
    let fixed = planned(Task::suite(), |s| s.time = Some(Duration::from_secs(1))).unwrap();
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
        let spec = Spec { confidence, ..Spec::new(Task::latency(LatencyShape::One)) };
        let plan = plan(&spec, machine, &[]).unwrap();
        (plan.stop.relative_half_width, plan.notes.iter().any(|note| note.code == memgauge_model::note::NoteCode::GuestIntervals))
    };
    assert_eq!(target(&machine(), None), (0.01, false));
    assert_eq!(target(&guest, None), (0.05, true));
    assert_eq!(target(&guest, Some(0.005)), (0.005, false), "what was asked for is not changed");
    let mut unknown = machine();
    unknown.identity.hypervisor_unknown = Some("nothing says so".into());
    assert_eq!(target(&unknown, None), (0.05, true), "what is not known is not metal");
}

#[test]
fn a_run_that_is_to_end_in_time_gives_its_cells_less() {
    let suite = planned(Task::suite(), |_| ()).unwrap();
    let within = |seconds: f64, task| planned(task, |s| s.within = Some(Duration::from_secs_f64(seconds))).unwrap();
    let roomy = within(2.0 * suite.max_s, Task::suite());
    assert_eq!((roomy.stop.budget_s, roomy.max_s), (suite.stop.budget_s, suite.max_s), "no less than it may have");
    let sweep = within(30.0, Task::sweep(SweepShape::One));
    assert!(sweep.max_s <= 0.95 * 30.0 && sweep.max_s > 0.85 * 30.0, "{}", sweep.max_s);
    assert!(sweep.notes.iter().all(|n| n.code != memgauge_model::note::NoteCode::WithinTooShort));
    // A budget that was asked for is not changed; what does not fit is said.
    let requested =
        planned(Task::suite(), |s| (s.within, s.budget) = (Some(Duration::from_secs(10)), Some(Duration::from_secs(2)))).unwrap();
    assert_eq!((requested.stop.budget_s, requested.within_s), (2.0, Some(10.0)));
    assert!(requested.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::WithinTooShort));
    let never = within(0.5, Task::suite());
    assert!(never.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::WithinTooShort) && never.stop.budget_s < 0.01);
}

#[test]
fn what_does_not_fit_gets_coarser_and_no_kind_is_left_out() {
    use BandwidthShape as B;
    let tasks = [
        Task::suite(),
        Task::sweep(SweepShape::One),
        Task::latency(LatencyShape::Matrix),
        Task::bandwidth(B::Matrix),
        Task::bandwidth(B::Search),
        Task::loaded(),
        Task::c2c(TransferShape::Representatives),
        Task::quick(),
    ];
    for task in tasks {
        let whole = planned(task.clone(), |_| ()).unwrap();
        let titles = |plan: &Plan| plan.steps.iter().map(|s| s.title.clone()).collect::<Vec<_>>();
        let mut cells = 0;
        for seconds in [2.0, 3.0, 5.0, 10.0, 15.0, 25.0, 60.0, 300.0] {
            let plan = planned(task.clone(), |s| (s.within, s.counters) = (Some(Duration::from_secs_f64(seconds)), true)).unwrap();
            assert_eq!(titles(&plan), titles(&whole), "{task:?} within {seconds} s");
            assert!(plan.steps.iter().all(|s| !s.cells.is_empty()));
            let most: f64 = super::super::cost::cells(&plan).iter().map(|c| c.most_s).sum();
            let said = |code: &str| plan.notes.iter().any(|n| n.code.word() == code);
            assert!(most <= seconds || said("within-too-short"), "{task:?} within {seconds} s: {most}");
            assert!(seconds < 5.0 || !said("within-too-short"), "{task:?} within {seconds} s: {most}");
            assert_eq!(said("coarsened"), !plan.coarsened.is_empty());
            let now = plan.steps.iter().map(|s| s.cells.len()).sum();
            assert!(now >= cells, "more time, and fewer cells");
            cells = now;
        }
        assert!(matches!(task, Task::Quick(_)) || cells == whole.steps.iter().map(|s| s.cells.len()).sum::<usize>());
    }
}

#[test]
fn a_sweep_that_is_coarsened_keeps_both_curves_and_their_ends() {
    let sweep = |within: Option<u64>| {
        planned(Task::Sweep(SweepSpec { max: Some(Bytes::mib(4)), ..Default::default() }), |s| {
            (s.within, s.counters) = (within.map(Duration::from_secs), true);
        })
        .unwrap()
    };
    let (whole, short) = (sweep(None), sweep(Some(5)));
    let sizes = |plan: &Plan, step: usize| match &plan.steps[step].cells[0].work {
        Work::LatencySweep(sweep) => sweep.sizes.clone(),
        Work::BandwidthSweep(sweep) => sweep.sizes.clone(),
        other => panic!("{other:?}"),
    };
    for step in 0..2 {
        let (whole, short) = (sizes(&whole, step), sizes(&short, step));
        assert!(short.len() >= 9 && short.len() < whole.len(), "{} of {}", short.len(), whole.len());
        assert_eq!((short.first(), short.last()), (whole.first(), whole.last()));
    }
    assert!(short.coarsened.iter().any(|c| c.what == Coarsening::Points && c.from == 41.0), "{:?}", short.coarsened);
}

#[test]
fn a_short_budget_shortens_bursts_and_is_kept() {
    let measuring = |budget_s: f64| {
        let of =
            |budget_s: f64| planned(Task::bandwidth(BandwidthShape::One), |s| s.budget = Some(Duration::from_secs_f64(budget_s))).unwrap();
        of(budget_s).max_s - of(0.06).max_s
    };
    // Beyond the shortest bursts (0.06 s): what is counted, and the starts of the bursts. With less than that, trials are shorter as well.
    for budget_s in [0.2, 0.5, 1.0] {
        let seconds = measuring(budget_s) + 0.06;
        assert!(seconds >= 0.9 * budget_s && seconds <= 1.25 * budget_s, "{budget_s}: {seconds}");
    }
}

#[test]
fn below_the_fewest_bursts_windows_are_shorter() {
    let window = |ms: u64, counted| protocol::window(Duration::from_millis(ms).as_secs_f64(), counted).as_micros();
    assert_eq!([1, 12, 30, 40, 60, 1000].map(|ms| window(ms, false)), [1000, 1000, 2500, 3250, 5000, 5000]);
    assert_eq!(window(5, true), 5000, "all groups of events have their turn");
    // Six bursts of a settling window and two that count: 90 ms of 5 ms each, and 18 ms.
    let seconds = |budget| planned(Task::bandwidth(BandwidthShape::One), |s| s.budget = Some(budget)).unwrap().max_s;
    assert!(seconds(Duration::from_millis(59)) - seconds(Duration::from_millis(5)) > 0.07);
    // Everything else is given up before.
    let plans = [3, 5, 7, 9, 12].map(|within| planned(Task::suite(), |s| s.within = Some(Duration::from_secs(within))).unwrap());
    let fewest = |plan: &Plan| plan.steps.iter().all(|step| step.cells.len() == 1);
    assert!(plans.iter().all(|plan| fewest(plan) || plan.stop.budget_s >= 0.99 * 0.06));
    assert!(fewest(&plans[0]) && !fewest(&plans[4]));
}

#[test]
fn what_earlier_cells_set_up_is_not_paid_again() {
    let matrix = planned(Task::bandwidth(BandwidthShape::Matrix), |s| s.nodes = Some(IdSet::one(0))).unwrap();
    let one = planned(Task::bandwidth(BandwidthShape::One), |s| s.nodes = Some(IdSet::one(0))).unwrap();
    let cells = matrix.steps[0].cells.len() as f64;
    assert!(matrix.estimated_s < cells * one.estimated_s, "the calibration of stores is made once");
    let long = planned(Task::loaded(), |s| curve(s).delays = vec![0, 100]).unwrap();
    let longer = planned(Task::loaded(), |s| curve(s).delays = vec![0, 50, 100, 200]).unwrap();
    let point = (longer.estimated_s - long.estimated_s) / 2.0;
    assert!(point > 0.4 && point < 4.1, "{point}");
}

#[test]
fn of_a_matrix_each_nodes_own_memory_and_the_farthest_are_worth_most() {
    use memgauge_model::plan::worth::cell_ranks;
    let step = planned(Task::bandwidth(BandwidthShape::Matrix), |_| ()).unwrap().steps.remove(0);
    let ranks = cell_ranks(&step.cells);
    let of = |rank: u32| {
        let cells = step.cells.iter().zip(&ranks).filter(|(_, r)| **r == rank).map(|(c, _)| c);
        cells.map(|c| (c.at.cpu_node.unwrap(), c.at.memory_node().unwrap(), c.repeat)).collect::<Vec<_>>()
    };
    let highest = *ranks.iter().max().unwrap();
    assert!(matches!(of(highest)[..], [(_, _, true)]), "the repeat: {ranks:?}");
    // Node 2 has no CPUs. Nodes 0 and 2 are as far from node 1, and of those one stays.
    let others = of(highest - 1);
    assert!(others.len() == 2 && others.contains(&(0, 1, false)) && !others.contains(&(0, 2, false)), "{others:?}");
    assert_eq!(of(0).len(), 1);
}
