//! A figure of the hosts of a fleet that are slower than their siblings. `SNAPSHOTS=overwrite cargo test -p memgauge-render` writes it anew.

use crate::shown::fleet_outliers_figure;
use memgauge_analysis::fleet::{BaselineNumber, ComparedHost, ComparedNumber, FLEET_VERSION, FleetOutliers, GroupLevel, HostGroup};
use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::traffic::Mix;
use memgauge_render::Picture;
use memgauge_render::figure::FigureOptions;

/// `hosts` alike, of which none is listed as slow: a figure takes them from the numbers.
fn found(hosts: u32) -> FleetOutliers {
    FleetOutliers {
        fleet_version: FLEET_VERSION,
        hosts,
        as_siblings: hosts,
        measured_from: "2026-11-01T10:00:00Z".into(),
        measured_to: "2026-11-20T10:00:00Z".into(),
        groups: vec![HostGroup { level: GroupLevel::Firmware, fields: Vec::new(), hosts }],
        slow: Vec::new(),
        unknown: Vec::new(),
        populations: Vec::new(),
        duplicates: Vec::new(),
        not_judged: Vec::new(),
    }
}

/// A bandwidth of `hosts`, every 29th of them slow and every 13th degraded.
fn number(hosts: u32) -> ComparedNumber {
    let host = |i: u32| {
        let slow = i % 29 == 5;
        let value = 240.0 + f64::from(i * 7 % 11) - if slow { 45.0 } else { 0.0 };
        let interval = Some((0.995 * value, 1.006 * value));
        ComparedHost { host: format!("rack{:02}-n{:04}", i / 40, i), value, interval, good: i % 13 != 3, slow }
    };
    let number = BaselineNumber {
        experiment: Experiment::Bandwidth,
        at: Coordinates { cpus: Some("0-63".parse().unwrap()), mix: Some(Mix::AllReads), ..Coordinates::default() },
        metric: Metric::Bandwidth,
        unit: Unit::GigabytesPerSecond,
        pages: None,
        hosts,
        median: 245.0,
        median_low: 244.2,
        median_high: 245.8,
        spread: 0.012,
        flagged_beyond: 231.0,
        slower_population: None,
    };
    ComparedNumber { group: 0, number, hosts: (0..hosts).map(host).collect() }
}

fn svg(hosts: u32) -> String {
    String::from_utf8(fleet_outliers_figure(&found(hosts), &[number(hosts)], Picture::Svg, &FigureOptions::default()).unwrap()).unwrap()
}

#[test]
fn every_host_is_a_point_and_slow_ones_are_named() {
    let text = svg(60);
    crate::goldens::check("fleet-outliers.svg", &text);
    assert_eq!(text.matches("<circle").count(), 60, "{text}");
    for word in
        ["rack00-n0005: 197.0 GB/s, −19.6 %", "rack00-n0034: ", "median 245", "flagged below 231", "60 hosts with the same hardware"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn of_many_siblings_some_are_drawn_and_of_slow_hosts_all() {
    let text = svg(10_000);
    let slow = number(10_000).hosts.iter().filter(|host| host.slow).count();
    assert!((slow + 900..=slow + 1000).contains(&text.matches("<circle").count()), "{}", text.matches("<circle").count());
    assert!(text.contains("One of 10 siblings is drawn, and every slow host."), "{slow}");
    assert!(text.contains(&format!("Of {slow} slow hosts those are named that have room")), "{slow}");
}

#[test]
fn every_kind_of_file_is_drawn_and_nothing_is_an_error() {
    for hosts in [8, 60, 10_000] {
        for picture in [Picture::Png, Picture::Pdf] {
            for options in
                [FigureOptions::default(), FigureOptions { width: Some("85mm".parse().unwrap()), titles: false, ..Default::default() }]
            {
                let bytes = fleet_outliers_figure(&found(hosts), &[number(hosts)], picture, &options).unwrap();
                assert!(bytes.starts_with(if picture == Picture::Png { b"\x89PNG" } else { b"%PDF" }), "{hosts}");
                if let (Some(folder), Picture::Png) = (std::env::var_os("MEMGAUGE_FIGURES"), picture) {
                    let name = format!("fleet-{hosts}-{}.png", if options.titles { "whole" } else { "narrow" });
                    std::fs::write(std::path::Path::new(&folder).join(name), &bytes).unwrap();
                }
            }
        }
    }
    let error = fleet_outliers_figure(&found(7), &[], Picture::Svg, &FigureOptions::default()).unwrap_err().to_string();
    assert!(error.contains("eight comparable hosts"), "{error}");
}
