//! Figures: golden SVG of saved results, and the rules of layout at every size.

mod faults;
mod kinds;
mod limits;
mod lines;

use std::path::PathBuf;

use memgauge_model::experiment::LineState;
use memgauge_model::result::{LimitSource, QualityLevel, Report};
use memgauge_model::traffic::Mix;
use memgauge_model::units::Bytes;
use memgauge_render::figure::{Figure, Histogram, Scene, WorkingSet, WorkingSetLine, WorkingSetPoint};
use memgauge_render::{Appearance, Document, Named, Picture};

use crate::goldens;
use crate::samples::{self, machines};
use crate::shown::format;

fn check(name: &str, figure: &Figure) {
    goldens::check(&format!("{name}.svg"), std::str::from_utf8(&figure.write(Picture::Svg).unwrap()).unwrap());
}

fn one(report: &Report) -> Figure {
    Figure::of_results(&[Named { name: "", report }])
}

/// Nothing leaves the canvas, no two texts touch, and every text is there.
fn lay_out(what: &str, figure: &Figure) -> Scene {
    let scene = laid_out(what, figure);
    // With `MEMGAUGE_FIGURES=folder`, every figure of these tests is written there, to be looked at.
    if let Some(folder) = std::env::var_os("MEMGAUGE_FIGURES") {
        let name = what.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        for (picture, ending) in [(Picture::Png, "png"), (Picture::Pdf, "pdf"), (Picture::Svg, "svg")] {
            std::fs::write(PathBuf::from(&folder).join(format!("{name}.{ending}")), figure.write(picture).unwrap()).unwrap();
        }
    }
    scene
}

fn laid_out(what: &str, figure: &Figure) -> Scene {
    let scene = figure.scene();
    let texts = scene.texts();
    assert!(!texts.is_empty(), "{what}: no text");
    for (text, area) in &texts {
        let inside = area.x >= 0.0 && area.y >= 0.0 && area.right() <= scene.width && area.bottom() <= scene.height;
        assert!(inside, "{what}: '{text}' leaves the canvas of {} x {}: {area:?}", scene.width, scene.height);
        assert!(area.height >= 9.0, "{what}: '{text}' is too small");
    }
    for area in scene.shapes() {
        let inside = area.x >= -0.01 && area.y >= -0.01 && area.right() <= scene.width + 0.01 && area.bottom() <= scene.height + 0.01;
        assert!(inside, "{what}: a shape leaves the canvas of {} x {}: {area:?}", scene.width, scene.height);
    }
    // By height first, so that 4,096 cells need no 16 million comparisons.
    let mut order: Vec<_> = texts.iter().collect();
    order.sort_by(|a, b| a.1.y.total_cmp(&b.1.y));
    for (i, (text, area)) in order.iter().enumerate() {
        for (other, theirs) in order[i + 1..].iter().take_while(|o| o.1.y < area.bottom()) {
            assert!(!area.overlaps(theirs), "{what}: '{text}' and '{other}' overlap: {area:?} {theirs:?}");
        }
    }
    scene
}

fn holds(scene: &Scene, text: &str) -> bool {
    scene.texts().iter().any(|(t, _)| t.contains(text))
}

#[test]
fn saved_results_as_svg() {
    for (name, report) in samples::all() {
        let figure = one(&report);
        lay_out(name, &figure);
        // Of the others the layout is looked at, and their numbers in tests of their kinds.
        if name == "two-nodes" {
            check(name, &figure);
        }
    }
}

#[test]
fn several_results_in_one_figure() {
    let (before, after) = (samples::two_nodes(), samples::vm());
    let named = [Named { name: "before", report: &before }, Named { name: "after <2>", report: &after }];
    let figure = Figure::of_results(&named);
    let scene = lay_out("several", &figure);
    for text in ["before", "after <2>", "Latency under load, all-reads", "Idle latency, window-local: before"] {
        assert!(holds(&scene, text), "{text}");
    }
    let svg = String::from_utf8(figure.write(Picture::Svg).unwrap()).unwrap();
    assert!(svg.contains("after &lt;2&gt;") && !svg.contains("<2>"));
}

#[test]
fn many_results_stay_apart() {
    for n in [3usize, 6, 7, 13] {
        let reports: Vec<(String, Report)> =
            (0..n).map(|i| (format!("host-{i}-with-a-rather-long-name-of-its-own"), machines::scaled(1.0 + i as f64 * 0.11))).collect();
        let named: Vec<Named<'_>> = reports.iter().map(|(name, report)| Named { name, report }).collect();
        lay_out(&format!("{n} results"), &Figure::of_results(&named));
    }
}

#[test]
fn node_matrices_of_every_size() {
    for (rows, columns) in [(1, 1), (1, 2), (2, 4), (8, 8), (16, 16), (33, 33), (64, 64)] {
        let report = machines::nodes(rows, columns);
        let scene = lay_out(&format!("{rows} x {columns} nodes"), &one(&report));
        let values = report.results.iter().filter(|m| m.estimate.value.is_some()).count();
        if rows.max(columns) <= 32 {
            assert!(scene.texts().len() > values, "every cell shows its number: {} texts for {values}", scene.texts().len());
        } else {
            // 300 mm at 96 units an inch; with numbers it would be twice as wide.
            assert!(scene.texts().len() < values && scene.width < 300.0 / 25.4 * 96.0, "{} wide", scene.width);
        }
    }
}

#[test]
fn pairs_of_1_to_1024_cpus() {
    for cpus in [2, 3, 4, 16, 48, 64, 65, 192, 1024] {
        let report = machines::pairs(cpus);
        let figure = one(&report);
        let scene = lay_out(&format!("pairs of {cpus} CPUs"), &figure);
        // The nearest pairs do not eat the range of the others: their scale is another.
        assert_eq!(holds(&scene, "on a scale of their own"), cpus > 2, "{cpus}");
        assert!(figure.write(Picture::Svg).unwrap().len() < 4 << 20, "{cpus}");
    }
}

#[test]
fn latency_and_bandwidth_of_1_to_1024_cpus() {
    for cpus in [1, 2, 3, 8, 96, 1024] {
        let scene = lay_out(&format!("{cpus} CPUs"), &one(&machines::cpus(cpus)));
        assert!(holds(&scene, "Bandwidth by number of CPUs") && holds(&scene, "Idle latency by CPU"));
    }
}

#[test]
fn curves_of_1_to_9_mixes() {
    for n in [1, 2, 3, 6, 9] {
        let report = machines::curves(&Mix::PEAK[..n]);
        let scene = lay_out(&format!("{n} curves"), &one(&report));
        for mix in &Mix::PEAK[..n] {
            assert!(holds(&scene, mix.name()), "{mix} of {n} has no label");
        }
        assert_eq!(holds(&scene, "unloaded"), n == 1);
    }
}

#[test]
fn a_limit_is_marked_and_one_far_away_is_said() {
    for (limit, words) in [(300.0, "limit 300.0 GB/s (smbios)"), (1200.0, "Limit: 1200 GB/s (smbios).")] {
        let mut report = machines::curves(&[Mix::AllReads]);
        for m in &mut report.results {
            m.verdict.limit = Some(limit);
            m.verdict.limit_source = Some(LimitSource::Smbios);
        }
        let scene = lay_out(&format!("limit {limit}"), &one(&report));
        assert!(holds(&scene, words), "{:?}", scene.texts());
    }
}

#[test]
fn degraded_and_missing_numbers_are_said() {
    let scene = lay_out("interrupted", &one(&samples::interrupted()));
    assert!(holds(&scene, "Not measured") && holds(&scene, "12 MiB free") && holds(&scene, "—"));
    assert!(holds(&scene, "No values to draw."), "of the bars");
    let scene = lay_out("degraded", &one(&samples::degraded()));
    assert!(holds(&scene, "Degraded"));
    let mut nothing = samples::two_nodes();
    for m in &mut nothing.results {
        m.estimate = memgauge_model::estimate::Estimate::default();
        m.quality.level = QualityLevel::None;
    }
    lay_out("nothing", &one(&nothing));
    assert!(holds(&lay_out("info", &one(&samples::info())), "holds no measurement"));
}

#[test]
fn hostile_numbers_and_names_stay_inside() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -5.0, 1e300, 1e-300] {
        for (name, mut report) in samples::all() {
            for (i, m) in report.results.iter_mut().enumerate() {
                if i % 3 != 1 {
                    m.estimate.value = Some(value);
                    m.estimate.ci95_high = Some(value);
                }
                m.verdict.limit = Some(value);
                m.at.memory_dir = m.at.memory_dir.as_ref().map(|d| d.repeat(40));
            }
            let what = format!("{name} with {value}");
            let named = Named { name: &"long name ".repeat(60), report: &report };
            let scene = laid_out(&what, &Figure::of_results(&[named, named]));
            assert!(!format!("{scene:?}").contains("NaN"), "{what}");
        }
    }
}

#[test]
fn drawings_are_the_same_every_time() {
    for picture in [Picture::Svg, Picture::Png, Picture::Pdf] {
        let write = || one(&samples::two_nodes()).write(picture).unwrap();
        assert!(write() == write(), "{picture:?}");
    }
}

#[test]
fn bitmaps_decode_and_are_not_empty() {
    for report in [samples::two_nodes(), machines::pairs(65), machines::nodes(2, 4)] {
        let scene = one(&report).scene();
        let bytes = report.render(format("x.PNG"), &Appearance::default()).unwrap();
        let image = tiny_skia::Pixmap::decode_png(&bytes).unwrap();
        assert_eq!((f64::from(image.width()), f64::from(image.height())), (scene.width * 2.0, scene.height * 2.0));
        let white = image.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) == (255, 255, 255)).count();
        let share = white as f64 / image.pixels().len() as f64;
        assert!((0.2..0.97).contains(&share), "{share} of the figure is white");
        // Dark text where the scene says that there is text.
        let (_, title) = scene.texts()[0];
        let dark = |x: u32, y: u32| image.pixel(x, y).is_some_and(|p| p.red() < 100);
        let (x, y) = ((title.x * 2.0) as u32, (title.y * 2.0) as u32);
        let inked = (0..(title.width * 2.0) as u32).flat_map(|i| (0..24).map(move |j| (x + i, y + j))).filter(|p| dark(p.0, p.1)).count();
        assert!(inked as f64 > title.width, "{inked}");
    }
}

#[test]
fn documents_hold_their_fonts_and_text_back_to_characters() {
    let bytes = samples::two_nodes().render(format("x.pdf"), &Appearance::default()).unwrap();
    let shown = String::from_utf8_lossy(&bytes);
    assert!(shown.starts_with("%PDF-1.7") && shown.trim_end().ends_with("%%EOF"));
    for part in ["/Inter-Regular", "/Inter-SemiBold", "/FontFile3", "/CIDFontType0C", "/ToUnicode", "beginbfchar", "/MediaBox"] {
        assert!(shown.contains(part), "{part}");
    }
}

#[test]
fn working_sets_over_caches() {
    let sizes = (0..64).map(|i| Bytes((4096.0 * 2f64.powf(f64::from(i) / 4.0)).round() as u64));
    let latency = |b: Bytes| match b.0 {
        0..=32_768 => 1.1,
        32_769..=1_048_576 => 3.8 + (b.0 as f64 / 9e5).powi(3),
        1_048_577..=12_000_000 => 15.2 + (b.0 as f64 / 1.1e7).powi(4) * 50.0,
        _ => 148.0 + (b.0 % 7) as f64,
    };
    let point = |size: Bytes| {
        let value = latency(size);
        WorkingSetPoint { size, value, interval: Some((value * 0.98, value * 1.04)), degraded: size.0 > 1 << 27 }
    };
    let line = WorkingSetLine {
        name: String::new(),
        points: sizes.map(point).collect(),
        plateaus: vec![
            (Bytes::kib(4), Bytes::kib(32), 1.1),
            (Bytes::kib(48), Bytes::kib(512), 3.8),
            (Bytes::mib(2), Bytes::mib(8), 15.2),
            (Bytes::mib(16), Bytes::mib(256), 148.0),
        ],
    };
    let mut figure = WorkingSet {
        title: "Latency by working set".into(),
        about: "full-random chase, 2 MiB pages, CPU 0".into(),
        quantity: "Latency (ns)".into(),
        unit: "ns".into(),
        logarithmic: true,
        caches: [("L1d", Bytes::kib(32)), ("L2", Bytes::mib(1)), ("L3", Bytes::mib(32))].map(|(n, b)| (n.to_owned(), b)).into(),
        beyond: "DRAM".into(),
        lines: vec![line],
        notes: vec![],
    };
    let scene = lay_out("working set", &figure.figure());
    for text in ["L1d 32 KiB", "L2 1 MiB", "DRAM", "4 KiB", "148.0 ns", "15.2 ns", "3.80 ns", "1.10 ns"] {
        assert!(holds(&scene, text), "{text}");
    }
    check("working-set", &figure.figure());
    let second = WorkingSetLine {
        name: "prefetchers off".into(),
        plateaus: vec![],
        points: figure.lines[0].points.iter().map(|p| WorkingSetPoint { value: p.value * 1.6, interval: None, ..*p }).collect(),
    };
    figure.lines[0].name = "prefetchers on".into();
    figure.lines.push(second);
    let scene = lay_out("working set, two lines", &figure.figure());
    assert!(holds(&scene, "prefetchers on") && holds(&scene, "prefetchers off"));
    for lines in [vec![], vec![WorkingSetLine::default()]] {
        lay_out("working set of nothing", &WorkingSet { lines, ..figure.clone() }.figure());
    }
    figure.caches.clear();
    figure.lines[0].points.truncate(1);
    figure.lines.truncate(1);
    lay_out("working set of one point", &figure.figure());
}

#[test]
fn histograms_with_percentiles() {
    let bins = (0..60).map(|i| {
        let x = f64::from(i);
        (80.0 + x, 81.0 + x, (10_000.0 * (-(x - 12.0).powi(2) / 40.0).exp() + 300.0 * (-(x - 45.0).powi(2) / 8.0).exp()) as u64)
    });
    let mut figure = Histogram {
        title: "Latency of each hop".into(),
        about: "10 million hops, CPU 0 to node 0".into(),
        quantity: "Latency (ns)".into(),
        unit: "ns".into(),
        bins: bins.collect(),
        percentiles: [("p50", 92.0), ("p90", 97.0), ("p99", 124.0), ("p99.9", 127.0)].map(|(n, v)| (n.to_owned(), v)).into(),
        notes: vec!["Bins of 1 ns.".into()],
    };
    let scene = lay_out("histogram", &figure.figure());
    for text in ["p50 92.0 ns", "p99 124.0 ns", "p99.9 127.0 ns"] {
        assert!(holds(&scene, text), "{text}");
    }
    figure.bins = (0..24).map(|i| (f64::from(1 << i), f64::from(2 << i), 1u64 << (24 - i))).collect();
    lay_out("histogram of decades", &figure.figure());
    figure.bins.clear();
    lay_out("histogram of nothing", &figure.figure());
}

/// What the samples below are made of must be what the figures are tested with.
#[test]
fn machines_are_as_large_as_they_say() {
    assert_eq!(machines::pairs(48).results.len(), 48 * 47);
    assert_eq!(machines::nodes(2, 4).results.len(), 2 * 4 * 2);
    let mixes = [Mix::AllReads, Mix::R2W1];
    assert_eq!(machines::curves(&mixes).curves.len(), 2);
    let states = machines::pairs(4).results.iter().all(|m| m.at.state == Some(LineState::Hitm));
    assert!(states);
}
