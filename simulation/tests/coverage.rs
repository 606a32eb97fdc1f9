//! Printed intervals hold the truth as often as they say. `cargo xtask coverage` counts more of them, and other kinds of noise.
#![allow(clippy::unwrap_used, reason = "a panic is a test's report, in its helpers too")]

use memgauge_simulation::coverage::{KINDS, Kind, NOISES, NoiseKind, rows};

const CELLS: u32 = 400;

fn kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap()
}

fn noise(name: &str) -> &'static NoiseKind {
    NOISES.iter().find(|noise| noise.name == name).unwrap()
}

#[test]
fn intervals_of_95_percent_hold_the_truth_in_93_to_97() {
    let windows = noise("independent windows, 2 %");
    let (bursts, wide) = (noise("bursts differ, 0.5 %"), noise("bursts differ, 1.5 %"));
    let wanted = [
        (kind("latency, 0.3 s"), wide),
        (kind("latency, 0.3 s"), noise("allocations differ, 1.5 %")),
        (kind("bandwidth, three mixes"), windows),
        (kind("bandwidth, three mixes"), bursts),
        (kind("bandwidth, three mixes, 0.1 s"), wide),
        (kind("loaded: latency"), windows),
        (kind("loaded: bandwidth"), bursts),
        (kind("c2c, 0.45 s"), wide),
        (kind("c2c"), bursts),
        (kind("sweep: latency"), bursts),
        (kind("sweep: bandwidth"), wide),
    ];
    for row in rows(&wanted, CELLS, 1) {
        let (held, cells) = (f64::from(row.held.held), f64::from(row.held.cells));
        let what = format!("{}, {}: {held} of {cells}, ±{:.2} %", row.kind.name, row.noise.name, 100.0 * row.held.half_width());
        println!("{what}");
        assert!(row.held.cells >= CELLS, "{what}");
        // Three standard deviations of a count of so many: one set of eleven in seventy is outside by chance, and this seed is not.
        let off = |share: f64| 3.0 * (cells * share * (1.0 - share)).sqrt();
        assert!(held > 0.93 * cells - off(0.93) && held < 0.97 * cells + off(0.97), "{what}");
    }
}
