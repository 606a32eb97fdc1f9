//! More lines than colours are drawn in several charts.

use memgauge_model::units::Bytes;
use memgauge_render::Named;
use memgauge_render::figure::Figure;

use super::{holds, lay_out, one};
use crate::samples::{machines, sweeps};

#[test]
fn a_sweep_of_24_domains_is_four_charts_of_six_lines() {
    let scene = lay_out("sweep of 24 domains", &one(&sweeps::domains(24)));
    for i in 1..=4 {
        for title in ["Latency by working set", "Bandwidth by working set"] {
            assert!(holds(&scene, &format!("{title} ({i} of 4)")), "{title} {i}");
        }
    }
    for domain in 0..24 {
        let cpus = format!("CPUs {}-{}", domain * 4, domain * 4 + 3);
        let (chase, load) = (format!("CPU {}", domain * 4), cpus);
        for name in [chase, load] {
            assert_eq!(scene.texts().iter().filter(|(t, _)| *t == name).count(), 1, "{name}");
        }
    }
    let scene = lay_out("sweep of 6 domains", &one(&sweeps::domains(6)));
    assert!(holds(&scene, "Latency by working set") && !holds(&scene, "(1 of"));
}

#[test]
fn seven_results_by_cpu_are_two_charts() {
    let reports: Vec<_> = (0..7).map(|i| (format!("host {i}"), machines::cpus(8))).collect();
    let named: Vec<Named<'_>> = reports.iter().map(|(name, report)| Named { name, report }).collect();
    let scene = lay_out("latency by CPU of 7 results", &Figure::of_results(&named));
    assert!(holds(&scene, "Idle latency by CPU (1 of 2)") && holds(&scene, "Idle latency by CPU (2 of 2)"));
}

#[test]
fn bands_of_caches_are_those_of_every_line() {
    let same = lay_out("sweep of 2 domains", &one(&sweeps::domains(2)));
    assert!(holds(&same, "L3 32 MiB"));
    let mut other = sweeps::domains(2);
    other.machine.topology.caches.iter_mut().filter(|c| c.level == 3 && c.cpus.contains(4)).for_each(|c| c.size = Bytes::mib(96));
    let scene = lay_out("sweep of 2 domains with different caches", &one(&other));
    assert!(!holds(&scene, "L3") && holds(&scene, "The caches of these CPUs differ"), "{:?}", scene.texts());
}

#[test]
fn wild_intervals_end_at_the_axis_with_an_arrow() {
    let mut report = sweeps::counted(&[], 1000);
    for (i, m) in report.results.iter_mut().enumerate() {
        m.counters = None;
        if i % 9 < 2 {
            m.estimate.ci95_high = m.estimate.value.map(|v| v * 50.0);
            m.estimate.ci95_low = m.estimate.value.map(|v| v / 50.0);
        }
    }
    let scene = lay_out("sweep with wild intervals", &one(&report));
    let said = scene.texts().iter().filter(|(t, _)| t.contains("Intervals with an arrow reach beyond the axis")).count();
    assert_eq!(said, 2, "of latency and of bandwidth");
}
