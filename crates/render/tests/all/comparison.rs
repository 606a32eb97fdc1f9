//! A comparison as text, table and figure.

use memgauge_analysis::comparison::{Comparison, ComparisonOptions, ComparisonVerdict, compare};
use memgauge_model::experiment::Metric;
use memgauge_model::result::Report;
use memgauge_model::traffic::Mix;
use memgauge_render::Picture;
use memgauge_render::figure::FigureOptions;

use crate::samples;
use crate::shown::{comparison_csv, comparison_figure, comparison_text};

/// Five runs of the sample machine, which differ by tenths of a percent; latencies `factor` times as high.
fn runs(factor: f64) -> Vec<Report> {
    let run = |n: u32| {
        let mut report = samples::machines::curves(&[Mix::AllReads]);
        let jitter = 1.0 + 0.002 * f64::from(n % 3);
        for m in &mut report.results {
            let of_metric = if m.metric == Metric::Latency { factor } else { 1.0 };
            m.estimate.value = m.estimate.value.map(|v| v * jitter * of_metric);
        }
        report
    };
    (0..5).map(run).collect()
}

fn comparison(factor: f64) -> Comparison {
    compare(("before", &runs(1.0)), ("after", &runs(factor)), ComparisonOptions::default())
}

#[test]
fn the_first_line_is_the_answer_and_lines_fit() {
    let worse = comparison(1.2);
    assert_eq!(worse.verdict, ComparisonVerdict::Worse);
    for width in [80, 100] {
        let text = comparison_text(&worse, width, false, false);
        assert!(text.starts_with("WORSE: of "), "{text}");
        assert!(text.contains("latency at ") && text.contains("+20."), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
    let same = comparison_text(&comparison(1.0), 100, false, false);
    assert!(same.starts_with("THE SAME: ") && !same.contains("Worse"), "{same}");
}

#[test]
fn every_number_is_a_row_and_a_point() {
    let worse = comparison(1.2);
    let csv = String::from_utf8(comparison_csv(&worse).unwrap()).unwrap();
    assert_eq!(csv.lines().count(), worse.cells.len() + 1);
    assert!(csv.lines().skip(1).any(|line| line.contains(",worse,")), "{csv}");
    let svg = comparison_figure(&worse, Picture::Svg, &FigureOptions::default()).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    assert_eq!(svg.matches("<circle").count(), worse.cells.len(), "{svg}");
    assert!(svg.contains("What changed") && svg.contains("before: before (5 runs)"), "{svg}");
    // In a column of a paper and on a phone, changes are still apart, and the numbers below the axis do not touch.
    let narrow = FigureOptions { width: Some("85mm".parse().unwrap()), ..FigureOptions::default() };
    let narrow = String::from_utf8(comparison_figure(&worse, Picture::Svg, &narrow).unwrap()).unwrap();
    let x = |text: &str| text.split(" x=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
    let middle = narrow.split("<text").filter(|text| text.contains("\"middle\"") && !text.contains("Change"));
    let ticks: Vec<f64> = middle.filter_map(x).collect();
    assert!(ticks.len() > 2 && ticks.windows(2).all(|pair| pair[1] - pair[0] > 25.0), "{ticks:?}");
    let nothing = Comparison { cells: Vec::new(), ..worse };
    assert!(comparison_figure(&nothing, Picture::Png, &FigureOptions::default()).is_err());
}
