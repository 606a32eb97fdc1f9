//! Prefetchers on and off.

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::experiment::PrefetchRequest::{self, Off, On};

use super::*;

#[test]
fn every_node_is_measured_from_one_cpu_in_both_states() {
    let plan = planned(Task::prefetch(), |_| ()).unwrap();
    let cells: Vec<_> = plan.steps.iter().flat_map(|s| &s.cells).collect();
    let of = |state: PrefetchRequest| cells.iter().filter(move |c| c.at.prefetch == Some(state)).map(|c| c.at.memory_node().unwrap());
    for state in [On, Off] {
        assert_eq!(of(state).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2], "bandwidths, then latencies");
    }
    // One state is done with before the next begins: registers are not written more often than needed.
    let states: Vec<_> = plan.steps.iter().map(|s| s.cells[0].at.prefetch).collect();
    assert_eq!(states, [Some(On), Some(On), Some(Off), Some(Off)]);
    for cell in &cells {
        match &cell.work {
            Work::Bandwidth(Loading { loaders, .. }) => assert_eq!(loaders.iter().map(|l| l.cpu).collect::<Vec<_>>(), [0]),
            Work::Latency(IdleChase { probe, orders, .. }) => {
                assert_eq!((probe.cpu, probe.buffer.node), (0, cell.at.memory_node().unwrap()));
                assert_eq!(orders, &[ChaseOrder::Sequential, ChaseOrder::WindowLocal]);
            }
            other => panic!("{other:?}"),
        }
    }
    let named = planned(Task::prefetch(), |s| (s.cpus, s.nodes) = (Some("4-6".parse().unwrap()), Some(IdSet::one(2)))).unwrap();
    assert_eq!(named.steps[0].cells[0].work.cpus(), "4-6".parse().unwrap());
    assert_eq!(named.steps[1].cells[0].work.cpus(), IdSet::one(4));
}

#[test]
fn what_taints_the_kernel_says_so_in_its_plan() {
    let tainted = |plan: Plan| plan.notes.iter().any(|n| n.code == memgauge_model::note::NoteCode::KernelTainted);
    let latency = Task::latency(LatencyShape::One);
    assert!(tainted(planned(Task::prefetch(), |_| ()).unwrap()));
    assert!(tainted(planned(latency.clone(), |s| s.prefetch = Off).unwrap()));
    assert!(!tainted(planned(latency, |_| ()).unwrap()));
}
