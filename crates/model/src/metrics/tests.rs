use std::collections::{BTreeMap, BTreeSet};

use super::*;

mod recorded;

/// One second of one thread at 2 GHz. Numbers are small and round, so that every expected value below can be computed by hand.
fn counts() -> BTreeMap<Role, f64> {
    use Role as R;
    BTreeMap::from([
        (R::Cycles, 2e9),
        (R::Instructions, 1e9),
        (R::Loads, 4e8),
        (R::L1Accesses, 4e8),
        (R::L1Misses, 1e8),
        (R::L1Replacements, 1.2e8),
        (R::L2Accesses, 8e7),
        (R::L2Misses, 4e7),
        (R::LlcAccesses, 5e7),
        (R::LlcMisses, 1e7),
        (R::LoadL2Misses, 2e7),
        (R::LoadLlcMisses, 8e6),
        (R::L1Outstanding, 6e9),
        (R::L1OutstandingCycles, 1.5e9),
        (R::DemandOutstanding, 3e9),
        (R::DemandOutstandingCycles, 1e9),
        (R::DataOutstanding, 8e9),
        (R::DataOutstandingCycles, 1.6e9),
        (R::DemandRequests, 1.5e7),
        (R::TlbWalks, 1e6),
        (R::TlbWalkCycles, 3e7),
        (R::ReadsOutstanding, 9e9),
        (R::Reads, 3e8),
        (R::DramReads, 1e9),
        (R::DramWrites, 5e8),
        (R::DramTransfers, 1.25e9),
        (R::MeshReads, 1e8),
        (R::MeshOutstanding, 2.4e10),
        (R::MeshCycles, 4e9),
    ])
}

fn evaluate(metric: CounterMetric, counts: &BTreeMap<Role, f64>) -> Result<f64, String> {
    let count = |role: Role| counts.get(&role).copied().ok_or_else(|| format!("no {role}"));
    metric.evaluate(&Inputs { count: &count, thread_s: 1.0, wall_s: 2.0, work: Some(1e8) })
}

#[test]
fn every_formula_by_hand() {
    use CounterMetric as M;
    let expected = [
        (M::Ipc, 0.5),            // 1e9 / 2e9
        (M::CyclesPerWork, 20.0), // 2e9 / 1e8
        (M::InstructionsPerWork, 10.0),
        (M::L1MissesPerWork, 1.0),
        (M::L2MissesPerWork, 0.4),
        (M::LlcMissesPerWork, 0.1),
        (M::TlbWalksPerWork, 0.01),
        (M::L1MissRate, 0.25),          // 1e8 / 4e8
        (M::L1ReplacementRate, 0.3),    // 1.2e8 / 4e8
        (M::L2MissRate, 0.5),           // 4e7 / 8e7
        (M::LlcMissRate, 0.2),          // 1e7 / 5e7
        (M::L2MissesPerLoad, 0.05),     // 2e7 / 4e8
        (M::LlcMissesPerLoad, 0.02),    // 8e6 / 4e8
        (M::L1Mlp, 4.0),                // 6e9 / 1.5e9
        (M::L1MlpAverage, 3.0),         // 6e9 / 2e9
        (M::L1MissLatency, 60.0),       // 6e9 / 1e8
        (M::OffcoreMlp, 3.0),           // 3e9 / 1e9
        (M::OffcoreMlpAverage, 1.5),    // 3e9 / 2e9
        (M::OffcoreDataMlp, 5.0),       // 8e9 / 1.6e9
        (M::MissLatency, 200.0),        // 3e9 / 1.5e7
        (M::MissLatencyNs, 100.0),      // 200 cycles at 2 GHz
        (M::ClassicMissLatency, 300.0), // 3e9 / 1e7: half as much again as the right pair says
        (M::MeshMlp, 6.0),              // 2.4e10 / 4e9
        (M::MeshLatencyNs, 120.0),      // 240 cycles; 4e9 cycles in 2 s are 2 GHz
        (M::ReadMlp, 4.5),
        (M::ReadLatency, 30.0),
        (M::TlbWalksPerLoad, 0.0025),
        (M::TlbWalkLatency, 30.0),
        (M::DramReadBytes, 6.4e10),
        (M::DramWriteBytes, 3.2e10),
        (M::DramBandwidth, 48.0), // 96 GB in 2 s
        (M::DramTransferBytes, 8e10),
        (M::DramTransferBandwidth, 40.0), // 80 GB in 2 s
    ];
    assert_eq!(expected.len(), M::ALL.len());
    for (metric, value) in expected {
        let got = evaluate(metric, &counts()).unwrap();
        assert!((got / value - 1.0).abs() < 1e-12, "{metric:?}: {got}, by hand {value}");
    }
}

#[test]
fn a_metric_needs_every_role_that_its_definition_names_and_no_other() {
    for metric in CounterMetric::ALL {
        let roles = metric.definition().roles;
        for missing in counts().into_keys() {
            let mut counts = counts();
            counts.remove(&missing);
            let got = evaluate(metric, &counts);
            assert_eq!(got.is_err(), roles.contains(&missing), "{metric:?} without {missing:?}: {got:?}");
            if let Err(reason) = got {
                assert_eq!(reason, format!("no {missing}"));
            }
        }
    }
}

#[test]
fn formulas_name_their_roles() {
    for metric in CounterMetric::ALL {
        let definition = metric.definition();
        let formula = definition.formula();
        for role in definition.roles {
            assert!(formula.contains(&role.to_string()), "{metric:?}: {formula}");
        }
        assert!(!definition.meaning.is_empty() && !definition.source.is_empty());
        assert_eq!(definition.per_work, formula.ends_with("/ work"), "{metric:?}");
    }
}

#[test]
fn names_are_as_in_results_and_unique() {
    let mut names = BTreeSet::new();
    for role in counts().into_keys() {
        assert_eq!(serde_json::to_value(role).unwrap(), role.to_string());
        assert!(names.insert(role.to_string()));
    }
}

#[test]
fn nothing_is_divided_by_zero() {
    for metric in CounterMetric::ALL {
        let count = |_: Role| Ok(0.0);
        let got = metric.evaluate(&Inputs { count: &count, thread_s: 0.0, wall_s: 0.0, work: Some(0.0) });
        assert!(got.as_ref().is_err() || got.as_ref().is_ok_and(|v| v.is_finite()), "{metric:?}: {got:?}");
    }
}

#[test]
fn little() {
    // 100 GB/s at 128 ns are 12,800 bytes under way: 200 lines of 64 bytes.
    assert!((lines_in_flight(100.0, 128.0, 64.0) - 200.0).abs() < 1e-9);
}
