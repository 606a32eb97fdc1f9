//! Faults that users found in figures, each by the coordinates of what is drawn.

use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::{QualityLevel, QualityReason, Report};
use memgauge_model::traffic::Mix;
use memgauge_render::figure::{Area, Figure, FigureOptions, Histogram, Scene};
use memgauge_render::{Appearance, Document, Format, Named, Picture};

use super::{holds, laid_out, lay_out, one};
use crate::samples::{self, machines, sweeps};

/// Where a text stands that begins like this.
fn place(scene: &Scene, text: &str) -> Area {
    let texts = scene.texts();
    texts.iter().find(|(t, _)| t.starts_with(text)).unwrap_or_else(|| panic!("no '{text}' in {texts:?}")).1
}

fn svg(figure: &Figure) -> String {
    String::from_utf8(figure.write(Picture::Svg).unwrap()).unwrap()
}

/// The corners of the curves: lines of two units.
fn curves(figure: &Figure) -> Vec<Vec<(f64, f64)>> {
    let svg = svg(figure);
    let curve = |line: &str| {
        let points = line.split("points=\"").nth(1)?.split('"').next()?;
        let point = |p: &str| p.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()));
        line.contains("stroke-width=\"2\"").then(|| points.split(' ').filter_map(point).collect())
    };
    svg.lines().filter_map(curve).collect()
}

fn curve() -> Report {
    machines::curves(&[Mix::AllReads])
}

/// The estimate of the nth point's latency.
fn latency(report: &mut Report, n: usize) -> &mut Estimate {
    let of = |m: &&mut memgauge_model::result::Measurement| m.metric == Metric::Latency;
    &mut report.results.iter_mut().filter(of).nth(n).unwrap().estimate
}

#[test]
fn one_wild_interval_does_not_stretch_an_axis() {
    let mut report = curve();
    latency(&mut report, 3).ci95_high = Some(15_000.0);
    let scene = lay_out("wild interval under load", &one(&report));
    let highest = scene.texts().iter().filter_map(|(t, _)| t.parse::<f64>().ok()).filter(|v| *v < 19_000.0).fold(0.0, f64::max);
    assert!(highest <= 4_000.0, "a tick at {highest}");
    assert!(scene.texts().iter().all(|(t, _)| *t != "15000") && holds(&scene, "Intervals with an arrow reach beyond the axis."));
    // The head of the arrow.
    assert!(scene.shapes().iter().any(|s| (s.width - 7.0).abs() < 0.01 && (s.height - 5.0).abs() < 0.01));
    // The same of bars and of CPUs.
    let mut report = machines::cpus(8);
    for m in report.results.iter_mut().filter(|m| m.experiment == Experiment::IdleLatencyPerCpu).take(1) {
        m.estimate.ci95_high = Some(15_000.0);
    }
    let scene = lay_out("wild interval of a CPU", &one(&report));
    assert!(scene.texts().iter().filter_map(|(t, _)| t.parse::<f64>().ok()).all(|v| v < 2_000.0), "{:?}", scene.texts());
    let mut report = samples::vm();
    report.results.retain(|m| m.experiment == Experiment::Bandwidth);
    let bar = |scene: &Scene| scene.shapes().iter().filter(|s| s.height == 14.0).map(|s| s.width).fold(0.0, f64::max);
    let before = bar(&laid_out("bars", &one(&report)));
    report.results[1].estimate.ci95_high = Some(15_000.0);
    let scene = lay_out("wild interval of a bar", &one(&report));
    assert!(bar(&scene) > before * 0.7 && holds(&scene, "Intervals with an arrow"), "{} {before}", bar(&scene));
}

#[test]
fn disturbed_points_are_apart_and_the_rest_is_in_order() {
    let mut report = curve();
    let corners = |report: &Report| curves(&one(report)).into_iter().map(|c| c.len()).collect::<Vec<_>>();
    assert_eq!(corners(&report), [10]);
    // Disturbed at three delays, far off the curve.
    for n in [2, 4, 5] {
        for m in report.results.iter_mut().filter(|m| m.at.delay_cycles == Some([20_000, 4_000, 1_900, 1_200, 800, 600][n])) {
            m.quality.level = QualityLevel::Unreliable;
            m.quality.reasons = vec![QualityReason::BusyMachine];
            m.estimate.value = m.estimate.value.map(|v| v * 0.5);
        }
    }
    let figure = one(&report);
    let scene = lay_out("disturbed points under load", &figure);
    assert_eq!(corners(&report), [7]);
    let line = &curves(&figure)[0];
    assert!(line.windows(2).take(5).all(|p| p[1].0 > p[0].0), "it doubles back: {line:?}");
    assert!(holds(&scene, "Lines join the points that were not disturbed.") && holds(&scene, "Unreliable, shown hollow, 6 of"));
    // What holds for a whole run does not take the line away.
    for m in &mut report.results {
        m.quality.level = QualityLevel::Degraded;
        m.quality.reasons = vec![QualityReason::PlacementUnverified];
    }
    assert_eq!(corners(&report), [10]);
}

#[test]
fn labels_of_unreliable_numbers_say_so_and_deny_no_knee() {
    let reliable = lay_out("a reliable curve", &one(&curve()));
    assert!(!reliable.texts().iter().any(|(text, _)| text.contains("unreliable")));
    let mut report = curve();
    report.results.iter_mut().for_each(|m| m.quality.level = QualityLevel::Unreliable);
    report.curves.iter_mut().for_each(|curve| curve.knee = None);
    let scene = lay_out("an unreliable curve", &one(&report));
    for label in ["peak ", "112."] {
        assert!(scene.texts().iter().any(|(text, _)| text.starts_with(label) && text.ends_with("(unreliable)")), "{:?}", scene.texts());
    }
    assert!(!scene.texts().iter().any(|(text, _)| text.contains("no knee")), "{:?}", scene.texts());
}

#[test]
fn nothing_strikes_through_the_label_of_the_unloaded_latency() {
    let mut report = curve();
    for m in report.results.iter_mut().filter(|m| m.at.delay_cycles == Some(20_000)) {
        let value = m.estimate.value.unwrap();
        (m.estimate.ci95_low, m.estimate.ci95_high) = (Some(value * 0.6), Some(value * 8.0));
    }
    let scene = lay_out("wide interval unloaded", &one(&report));
    let label = place(&scene, "112.");
    let grid = |s: &Area| s.height == 0.0 && s.width > 500.0;
    let through: Vec<Area> = scene
        .shapes()
        .into_iter()
        .filter(|s| {
            !grid(s)
                && s.height.min(s.width) < 0.1
                && label.overlaps(&Area { x: s.x - 0.1, y: s.y - 0.1, width: s.width + 0.2, height: s.height + 0.2 })
        })
        .collect();
    assert!(through.is_empty(), "{label:?} {through:?}");
}

#[test]
fn small_maps_have_a_scale_and_stand_beside_each_other() {
    let mut report = samples::two_nodes();
    report.results.retain(|m| m.experiment == Experiment::IdleLatency);
    report.curves.clear();
    let scene = lay_out("two maps of two nodes", &one(&report));
    let (first, second) = (place(&scene, "Idle latency, window-local"), place(&scene, "Idle latency, full-random"));
    assert!(first.y == second.y && second.x > first.right(), "{first:?} {second:?}");
    assert_eq!(scene.texts().iter().filter(|(t, _)| *t == "darker is slower").count(), 2);
    // One alone takes half of the width.
    let order = report.results[0].at.order;
    report.results.retain(|m| m.at.order == order);
    let scene = laid_out("one map", &one(&report));
    assert!(scene.width < 450.0, "{}", scene.width);
}

#[test]
fn the_diagonal_is_struck_out() {
    let scene = laid_out("pairs", &one(&machines::pairs(8)));
    let strokes = scene.shapes().into_iter().filter(|s| s.width > 20.0 && s.height > 20.0 && s.width < 100.0);
    let cells = scene.texts().iter().filter(|(t, _)| *t == "·").count();
    // Cells and strokes have the same area: each of the eight of the diagonal is there twice.
    let mut places: Vec<(i64, i64)> = strokes.map(|s| (s.x as i64, s.y as i64)).collect();
    places.sort_unstable();
    let twice = places.windows(2).filter(|p| p[0] == p[1]).count();
    assert_eq!((twice, cells), (8, 0));
}

#[test]
fn no_line_crosses_the_name_of_a_percentile() {
    let names = [("p50", 92.0), ("p90", 94.0), ("p99", 95.0), ("p99.9", 140.0)];
    let figure = Histogram {
        quantity: "Latency (ns)".into(),
        unit: "ns".into(),
        bins: (0..60).map(|i| (80.0 + f64::from(i), 81.0 + f64::from(i), 10)).collect(),
        percentiles: names.map(|(n, v)| (n.to_owned(), v)).into(),
        ..Histogram::default()
    };
    let scene = lay_out("close percentiles", &figure.figure());
    for (name, _) in names {
        let label = place(&scene, &format!("{name} "));
        let lines = scene.shapes().into_iter().filter(|s| s.width == 0.0 && s.height > 50.0);
        let through: Vec<Area> = lines.filter(|s| s.x > label.x && s.x < label.right() && s.y < label.bottom()).collect();
        assert!(through.is_empty(), "{name} {label:?}: {through:?}");
    }
    let same = Histogram { percentiles: vec![("p99".into(), 119.7), ("p99.9".into(), 119.7)], ..figure };
    assert!(holds(&laid_out("same percentiles", &same.figure()), "p99, p99.9 119.7 ns"));
}

#[test]
fn axes_say_where_they_begin_only_if_it_is_not_0() {
    let scene = laid_out("scan", &one(&samples::scan()));
    assert!(holds(&scene, "The vertical axis begins at 60, not at 0.") && holds(&scene, "weak below 83.5 GB/s"));
    assert!(holds(&laid_out("CPUs", &one(&machines::cpus(8))), "The vertical axis begins at"));
    let mut low = samples::scan();
    for (i, m) in low.results.iter_mut().enumerate() {
        m.estimate = Estimate { value: Some(1.0 + i as f64), ..Estimate::default() };
        m.verdict.limit = None;
    }
    let scene = lay_out("scan from 0", &one(&low));
    // One panel, so that an axis from 0 is this one's.
    low.results.retain(|m| m.at.memory_node() == Some(0));
    let scene_of_one = lay_out("scan of a node from 0", &one(&low));
    for scene in [&scene, &scene_of_one] {
        assert!(scene.texts().iter().any(|(t, _)| *t == "0"), "{:?}", scene.texts());
    }
    assert!(!holds(&scene_of_one, "not at 0"), "{:?}", scene_of_one.texts());
}

#[test]
fn panels_without_values_have_no_axes() {
    for report in [curve(), machines::cpus(4), machines::nodes(4, 4), sweeps::counted(&[], 1000), samples::scan()] {
        let mut report = report;
        for m in &mut report.results {
            m.estimate = Estimate::default();
            m.counters = None;
            m.quality.level = QualityLevel::None;
        }
        report.curves.clear();
        report.levels.clear();
        let scene = lay_out("no values", &one(&report));
        assert!(holds(&scene, "No values to draw.") && holds(&scene, "Not measured"), "{:?}", scene.texts());
        assert!(scene.texts().iter().all(|(t, _)| t.parse::<f64>().is_err()), "{:?}", scene.texts());
    }
}

#[test]
fn plots_below_each_other_begin_at_the_same_place() {
    let cases = [
        ("sweep", one(&sweeps::counted(&[], 1000))),
        ("domains", one(&sweeps::domains(2))),
        ("six curves", one(&machines::curves(&Mix::PEAK[..6]))),
        ("CPUs", one(&machines::cpus(64))),
        ("suite", one(&samples::vm())),
    ];
    for (name, figure) in cases {
        let scene = laid_out(name, &figure);
        let lines = scene.shapes().into_iter().filter(|s| s.height == 0.0 && s.width > 500.0 && s.x > 30.0);
        let starts: std::collections::BTreeSet<i64> = lines.map(|s| (s.x * 100.0) as i64).collect();
        assert!(starts.len() == 1, "{name}: {starts:?}");
    }
}

#[test]
fn nine_curves_have_nine_colours_on_the_same_scales() {
    let figure = one(&machines::curves(&Mix::PEAK[..9]));
    let scene = laid_out("nine curves", &figure);
    let numbers = |upper: bool| {
        let middle = scene.height / 2.0;
        let texts = scene.texts().into_iter().filter(|(t, a)| t.parse::<f64>().is_ok() && (a.y < middle) == upper);
        texts.map(|(t, _)| t.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(true), numbers(false));
    let svg = svg(&figure);
    let curves = svg.lines().filter(|l| l.starts_with("<polyline") && l.contains("stroke-width=\"2\""));
    let colours: std::collections::BTreeSet<&str> = curves.filter_map(|l| l.split("stroke=\"").nth(1)?.split('"').next()).collect();
    assert_eq!(colours.len(), 9, "{colours:?}");
    assert!(svg.contains("<polygon"), "the colours that are darker have another shape");
}

fn as_asked(report: &Report, options: &FigureOptions) -> Figure {
    Figure::of_results_as(&[Named { name: "", report }], options).unwrap()
}

#[test]
fn a_document_has_a_page_for_each_panel() {
    let report = samples::two_nodes();
    let figure = one(&report);
    let pages = figure.pages();
    let titles = figure.scene().texts().iter().filter(|(_, a)| a.height > 14.0 && a.width > a.height).count();
    assert_eq!((pages.len(), titles), (7, 7));
    for page in &pages {
        assert!(page.width < 810.0 && page.height < 700.0, "{} x {}", page.width, page.height);
        assert!(holds(page, "INTEL(R) XEON(R) GOLD 6526Y"), "every page says where it comes from");
    }
    let pdf = String::from_utf8_lossy(&figure.write(Picture::Pdf).unwrap()).into_owned();
    assert_eq!((pdf.matches("/MediaBox").count(), pdf.matches("/FontFile3").count()), (7, 2));
}

#[test]
fn panels_are_chosen_by_name() {
    let report = samples::two_nodes();
    let options =
        FigureOptions { panels: vec![Experiment::LoadedLatency.row().panels[0], PanelName::TRANSFERS], ..FigureOptions::default() };
    let scene = as_asked(&report, &options).scene();
    assert!(holds(&scene, "Latency under load") && holds(&scene, "Cache-to-cache") && !holds(&scene, "Idle latency"));
    let options = FigureOptions { panels: vec![Experiment::MemoryScan.row().panels[0]], ..FigureOptions::default() };
    let error = report.render(Format::SVG, &Appearance { figure: options, ..Appearance::default() }).unwrap_err().to_string();
    let names = "idle-latency, bandwidth, bandwidth-by-cpus, bandwidth-by-node, loaded-latency, transfers";
    assert_eq!(error, format!("the result has no panel 'regions'; its panels: {names}"));
}

#[test]
fn every_figure_fits_the_width_that_was_asked_for() {
    let reports = [
        ("two nodes", samples::two_nodes()),
        ("degraded", samples::degraded()),
        ("scan", samples::scan()),
        ("16 nodes", machines::nodes(16, 16)),
        ("64 nodes", machines::nodes(64, 64)),
        ("192 CPUs", machines::pairs(192)),
        ("9 curves", machines::curves(&Mix::PEAK[..9])),
        ("CPUs", machines::cpus(96)),
        ("sweep", sweeps::counted(&[], 1000)),
        ("domains", sweeps::domains(8)),
        ("prefetch", sweeps::prefetch(2)),
        ("histogram", sweeps::distributed()),
        ("pairs of nodes", sweeps::node_pairs(8)),
    ];
    for (name, report) in reports {
        for width in ["60mm", "85mm", "180mm", "1200px"] {
            let options = FigureOptions { width: Some(width.parse().unwrap()), ..FigureOptions::default() };
            let figure = as_asked(&report, &options);
            let scene = lay_out(&format!("{name} at {width}"), &figure);
            assert!((scene.width - options.width.unwrap().units()).abs() < 0.01, "{name} at {width}: {}", scene.width);
            // 6 pt are 8 units.
            let smallest = svg(&figure)
                .split("font-size=\"")
                .skip(1)
                .map(|s| s.split('"').next().unwrap().parse::<f64>().unwrap())
                .fold(99.0, f64::min);
            assert!(smallest >= 8.0, "{name} at {width}: text of {smallest}");
        }
    }
}

#[test]
fn bitmaps_for_paper_say_how_large_they_are() {
    let options = FigureOptions { width: Some("85mm".parse().unwrap()), titles: false, ..FigureOptions::default() };
    let bytes = as_asked(&curve(), &options).write(Picture::Png).unwrap();
    let image = tiny_skia::Pixmap::decode_png(&bytes).unwrap();
    assert_eq!(image.width(), 1004, "85 mm at 300 pixels to an inch");
    let phys = bytes.windows(4).position(|w| w == b"pHYs").unwrap();
    let per_metre = u32::from_be_bytes(bytes[phys + 4..phys + 8].try_into().unwrap());
    assert_eq!(per_metre, 11_811);
}

#[test]
fn without_titles_only_the_plot_and_its_notes_remain() {
    let report = samples::degraded();
    let options = FigureOptions { titles: false, ..FigureOptions::default() };
    let scene = as_asked(&report, &options).scene();
    assert!(!holds(&scene, "Idle latency") && !holds(&scene, "ns per dependent load") && !holds(&scene, "i5-12600K"));
    assert!(holds(&scene, "Degraded") && holds(&scene, "CPU 0, node 0") && holds(&scene, "HITM"));
}

#[test]
fn an_unreliable_cell_of_a_map_is_marked_and_stretches_no_scale() {
    let mut report = samples::eight_nodes();
    report.results.retain(|m| m.experiment == Experiment::BandwidthMatrix);
    let before = lay_out("map of nodes", &one(&report));
    let m = &mut report.results[3];
    m.quality.level = QualityLevel::Unreliable;
    m.quality.reasons = vec![QualityReason::BurstsDisturbed];
    (m.estimate.value, m.estimate.ci95_low, m.estimate.ci95_high) = (Some(12.0), Some(5.0), Some(60.0));
    let after = lay_out("map of nodes with an unreliable cell", &one(&report));
    assert!(holds(&after, "~12.0") && holds(&after, "~ and grey: unreliable, not on the scale."), "{:?}", after.texts());
    // The labels of the scale, and the other numbers, are the same.
    let texts = |scene: &Scene| -> Vec<String> { scene.texts().iter().map(|(t, _)| (*t).to_owned()).collect() };
    let new: Vec<String> = texts(&after).into_iter().filter(|t| !texts(&before).contains(t)).collect();
    assert!(new.iter().all(|t| t.starts_with('~') || t.starts_with("Unreliable")), "{new:?}");
}
