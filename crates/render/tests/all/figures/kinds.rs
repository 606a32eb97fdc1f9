//! Figures of sweeps with counters, prefetchers, distributions, regions and pairs of nodes; and what has none.

use memgauge_model::counters::{Counters, ProgramCount, Scope};
use memgauge_model::estimate::Estimate;
use memgauge_model::interleave::Goal;
use memgauge_model::metrics::Role;
use memgauge_model::persistent::{PersistentNamespace, PersistentRegion};
use memgauge_model::result::{CurveShare, Report, ShareMissed};
use memgauge_model::traffic::Mix;

use crate::samples::interleave::interleave;
use crate::samples::{self, machines, sweeps};
use crate::shown::format;
use memgauge_model::units::Bytes;
use memgauge_render::{Appearance, Document};

use super::{holds, laid_out, lay_out, one};

const PANELS: [&str; 3] =
    ["Miss rates by working set, per access of the level", "Miss rates by working set, per load", "Misses per pass over the working set"];

/// How often a text stands alone.
fn times(report: &Report, text: &str) -> usize {
    laid_out(text, &one(report)).texts().iter().filter(|(t, _)| *t == text).count()
}

#[test]
fn tiers_are_drawn_with_what_firmware_claims() {
    let mut report = samples::tiers();
    let scene = lay_out("tiers", &one(&report));
    for text in ["node 0, claimed: 95 ns", "node 2, claimed: 240 ns", "node 0, claimed: 280.0 GB/s", "node 2, claimed: 56.0 GB/s"] {
        assert!(holds(&scene, text), "{text}: {:?}", scene.texts());
    }
    assert!(holds(&scene, "Latency under load") && holds(&scene, "Bandwidth by node") && !holds(&scene, "stand-in"));
    report.machine.topology.nodes.iter_mut().for_each(|node| node.hmat.clear());
    let namespace = PersistentNamespace { memory_node: Some(2), ..PersistentNamespace::default() };
    let region = PersistentRegion { emulated: Some("a virtual device".into()), namespaces: vec![namespace], ..PersistentRegion::default() };
    report.machine.topology.persistent = vec![region];
    let scene = lay_out("tiers without claims", &one(&report));
    assert!(!holds(&scene, "claimed") && holds(&scene, "The memory of node 2 is a volatile stand-in: a virtual device."));
}

#[test]
fn interleave_weights_are_drawn_with_their_plateau() {
    for (tiers, goal) in [(2, Goal::Bandwidth), (3, Goal::Bandwidth), (2, Goal::LatencyAt(180.0)), (3, Goal::LatencyAt(180.0))] {
        let report = interleave(tiers, goal);
        let scene = lay_out(&format!("interleave of {tiers} nodes, {goal:?}"), &one(&report));
        assert!(holds(&scene, "Bandwidth by interleave weights") && holds(&scene, "by interleave weights, all-reads"));
        assert!(holds(&scene, "use ") && holds(&scene, "node 0 only"), "{:?}", scene.texts());
        assert!(goal != Goal::Bandwidth || holds(&scene, "shaded: within 1 % of the best"), "the plateau: {:?}", scene.texts());
    }
}

#[test]
fn counters_of_a_sweep_are_panels_on_its_axis() {
    let report = sweeps::counted(&[], 1000);
    let scene = lay_out("sweep with counters", &one(&report));
    assert!(holds(&scene, "Latency by working set") && holds(&scene, "Bandwidth by working set"));
    for title in PANELS {
        assert_eq!(times(&report, title), 2, "{title}: of the chase and of the loads");
    }
    // Eight panels on one axis, under the bands of the caches; each of the six names its levels directly.
    for (text, of) in [("Working set", 8), ("L1d 48 KiB", 8), ("1 GiB", 8), ("L1", 6), ("L2", 6), ("LLC", 6)] {
        assert_eq!(times(&report, text), of, "{text}");
    }
    assert!(!holds(&scene, "Not counted") && !holds(&scene, "No panel") && !holds(&scene, "took turns"));
}

#[test]
fn what_was_not_counted_has_no_panel_and_a_caption() {
    let some = sweeps::counted(&[Role::LlcMisses], 400);
    let scene = lay_out("sweep, LLC misses not counted", &one(&some));
    assert!(holds(&scene, "Not counted: LLC: llc-miss is not known to this kernel"), "{:?}", scene.texts());
    assert!(holds(&scene, "at least 40 % of the time, and scaled"));
    let none = sweeps::counted(&[Role::L2Misses, Role::LlcMisses], 1000);
    let scene = lay_out("sweep, loads not counted", &one(&none));
    assert_eq!(times(&none, PANELS[1]), 0);
    assert!(holds(&scene, "No panel 'Miss rates by working set, per load': llc-miss is not known to this kernel."));
    let mut nothing = sweeps::counted(&[], 1000);
    for m in &mut nothing.results {
        m.counters = Some(Box::new(Counters::missing("no hardware counters: the hypervisor gives this virtual machine no PMU")));
    }
    let scene = lay_out("sweep without a PMU", &one(&nothing));
    assert!(PANELS.iter().all(|title| !holds(&scene, title)));
    let said = scene.texts().iter().filter(|(t, _)| t.contains("No miss rates: no hardware counters")).count();
    assert_eq!(said, 1, "once");
}

#[test]
fn prefetchers_on_and_off_are_bars_by_node() {
    let report = sweeps::prefetch(2);
    let scene = lay_out("prefetch", &one(&report));
    for text in
        ["prefetchers on", "prefetchers off", "node 0", "node 1", "sequential", "random", "Read bandwidth with", "Idle latency with"]
    {
        assert!(holds(&scene, text), "{text}");
    }
    lay_out("prefetch on 8 nodes", &one(&sweeps::prefetch(8)));
}

#[test]
fn distributions_of_results_are_histograms() {
    let report = sweeps::distributed();
    let d = report.results[0].distribution.as_ref().unwrap();
    let scene = lay_out("latency with histogram", &one(&report));
    for text in ["Distribution of latency", "batches of 8 hops", "p50 ", "p99"] {
        assert!(holds(&scene, text), "{text} {:?}", scene.texts());
    }
    // The few slow ones are counted in words.
    assert!(d.max_ns > 1e4 && holds(&scene, "Not drawn: the slowest "));
}

#[test]
fn regions_of_a_scan_have_a_panel_a_node_and_weak_ones_names() {
    let scene = lay_out("regions", &one(&samples::scan()));
    for text in [
        "weak below 8",
        "Bandwidth by region of node 0",
        "Bandwidth by region of node 1",
        "region 7: 61.8 GB/s",
        "region 8: 63.1 GB/s",
        "median 8",
    ] {
        assert!(holds(&scene, text), "{text} {:?}", scene.texts());
    }
}

#[test]
fn pairs_of_nodes_are_a_map() {
    for nodes in [2, 8, 16] {
        let scene = lay_out(&format!("pairs of {nodes} nodes"), &one(&sweeps::node_pairs(nodes)));
        assert!(holds(&scene, "Transfers of modified lines between nodes") && holds(&scene, "lines at home on the holder's node"));
    }
}

#[test]
fn shares_of_the_peak_are_marked() {
    let mut report = machines::curves(&[Mix::AllReads]);
    let at = |v: f64| Estimate { value: Some(v), ..Estimate::default() };
    let share = |percent, ns, gbs| CurveShare { percent, reached: Some(0.5), latency: at(ns), bandwidth: at(gbs), ..CurveShare::default() };
    let missed = CurveShare { percent: 10, missed: Some(ShareMissed::NoLessBandwidth), ..share(10, 112.0, 24.0) };
    report.curves[0].shares = vec![share(50, 120.0, 120.0), share(90, 187.4, 227.85), missed];
    let scene = lay_out("shares of the peak", &one(&report));
    assert!(holds(&scene, "50 %: 120.0 ns") && holds(&scene, "90 %: 187.4 ns") && !holds(&scene, "10 %: 112.0 ns"));
}

#[test]
fn what_has_no_figure_is_refused_with_what_shows_it() {
    let mut program = samples::info();
    program.program = Some(Box::new(ProgramCount {
        command: vec!["app".into()],
        scope: Scope::User,
        runs: vec![],
        elapsed_s: Estimate::default(),
        running: None,
        events: vec![],
        metrics: vec![],
    }));
    let cases = [
        (sweeps::one_loop(), "give several sizes, or draw 'memgauge sweep -o FILE.svg'"),
        (program, "counters of a program"),
        (samples::info(), "describes a machine"),
    ];
    for (report, words) in cases {
        let error = report.render(format("x.png"), &Appearance::default()).unwrap_err().to_string();
        assert!(error.starts_with("nothing to draw: ") && error.contains(words) && error.contains("memgauge render FILE"), "{error}");
    }
}

#[test]
fn loops_over_several_sizes_are_a_curve() {
    let mut report = sweeps::one_loop();
    let one = report.results[0].clone();
    for (i, mib) in [1u64, 4, 16, 64].into_iter().enumerate() {
        let mut m = one.clone();
        m.at.working_set = Some(Bytes::mib(mib));
        m.estimate.value = Some(10.0 + 40.0 * i as f64);
        report.results.push(m);
    }
    let scene = lay_out("loops over sizes", &super::one(&report));
    assert!(holds(&scene, "Latency by working set") && holds(&scene, "16 MiB"), "{:?}", scene.texts());
}
