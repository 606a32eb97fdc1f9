//! Latency under load: the curve as a table with its knee, and what it says in one line.

use std::collections::BTreeSet;

use memgauge_model::estimate::Estimate;
use memgauge_model::result::{CurveShare, CurveSummary, Measurement};
use memgauge_model::wording::reasons::share_missed;

use super::context::Context;
use super::distribution::distributions;
use super::evidence::evidence;
use super::faults::checksums;
use super::footnotes::Footnotes;
use super::grid::{Cell, Column, Value};
use super::load::{Load, SummaryNumbers};
use super::page::{INDENT, Page, Style};
use crate::groups::{LoadedCurve, LoadedPoint, loaded_curves, measured_by};
use crate::number::{bounds, half_width, number, value_of};

/// Columns of a full bar.
const BAR: usize = 24;

/// Every curve, in the order of its coordinates.
pub(super) fn curves(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let all = loaded_curves(ms);
    for curve in &all {
        one_curve(page, context, curve, all.len() > 1);
    }
}

/// `several`: the headline says it of one curve only.
fn one_curve(page: &mut Page, context: &mut Context<'_>, curve: &LoadedCurve<'_>, several: bool) {
    let ms = &curve.measurements[..];
    let mix = curve.at.mix.map(|m| format!(" with {m}")).unwrap_or_default();
    page.heading(&context.title(ms, "Latency under load"), &format!("{}{mix}", measured_by(&curve.at)));
    let mut footnotes = Footnotes::new(context, ms);
    let all = &curve.points;
    let summary = curve.summary(&context.report.curves);
    let knee = summary.and_then(|s| s.knee).map(|k| k.delay_cycles);
    let latency = |m: Option<&Measurement>| m.and_then(|m| value_of(&m.estimate));
    let highest = bounds(all.iter().filter_map(|p| latency(p.latency))).map(|b| b.1);
    let points: Vec<&LoadedPoint<'_>> = if context.brief { few_points(all, knee) } else { all.iter().collect() };
    let in_flight = points.iter().map(|p| p.bandwidth.and_then(|m| m.lines_in_flight));
    let shape = |p: &&LoadedPoint<'_>| {
        let share = latency(p.latency).zip(highest).map(|(v, highest)| v / highest);
        Cell::named_bar(share, BAR, (p.delay.is_some() && p.delay == knee).then_some("knee"))
    };
    page.table([
        Column::numbers("delay", points.iter().map(|p| p.delay.map(|d| d.to_string()))),
        Column::numbers("GB/s", points.iter().map(|p| footnotes.cell(p.bandwidth))),
        Column::numbers("ns", points.iter().map(|p| footnotes.cell(p.latency))),
        Column::numbers("in flight", in_flight).optional().only_if(page.verbose),
        Column::text("latency", points.iter().map(shape)),
    ]);
    let latencies: Vec<&Measurement> = points.iter().filter_map(|p| p.latency).collect();
    distributions(page, &latencies, "delay", |m| m.at.delay_cycles.map_or(String::new(), |d| d.to_string()));
    if let Some(summary) = summary.filter(|_| several || !context.brief) {
        summary_lines(page, summary, &SummaryNumbers::new(&Load::new(curve, summary)), all.len());
    }
    if let Some(summary) = summary {
        shares(page, summary, all, &mut footnotes);
    }
    footnotes.print(page, &mut context.advised);
    page.paragraph(Style::Detail, "delay: core cycles that a loader waits after every four lines; bandwidth includes the chase");
    if ms.iter().any(|m| m.lines_in_flight.is_some()) {
        let law = "in flight: cache lines on their way to all CPUs together, by Little's law (bandwidth x latency / line size), assuming that loads wait as long as the chase";
        page.paragraph(Style::Detail, law);
    }
    checksums(page, &all.iter().filter_map(|p| p.bandwidth).collect::<Vec<_>>());
    page.items(Style::Detail, INDENT, evidence(ms));
}

/// Points of a curve that are listed where there is much else to read.
const FEW: usize = 6;

/// The first and the last point, the knee, and others that divide the bandwidth between them evenly.
fn few_points<'a, 'm>(all: &'a [LoadedPoint<'m>], knee: Option<u32>) -> Vec<&'a LoadedPoint<'m>> {
    let gbs = |p: &LoadedPoint<'_>| p.bandwidth.and_then(|m| value_of(&m.estimate));
    let Some((low, high)) = bounds(all.iter().filter_map(gbs)).filter(|_| all.len() > FEW) else { return all.iter().collect() };
    let last = all.len() - 1;
    let mut listed: BTreeSet<usize> = [0, last].into_iter().chain(all.iter().position(|p| p.delay.is_some() && p.delay == knee)).collect();
    for step in 1..FEW {
        let wanted = low + (high - low) * step as f64 / FEW as f64;
        let distance = |i: &usize| gbs(&all[*i]).map_or(f64::INFINITY, |v| (v - wanted).abs());
        if let Some(nearest) = (0..=last).min_by(|a, b| distance(a).total_cmp(&distance(b))).filter(|_| listed.len() < FEW) {
            listed.insert(nearest);
        }
    }
    listed.into_iter().map(|i| &all[i]).collect()
}

/// Latency at the shares of the peak that were asked for, with what the points at these delays are marked with.
fn shares(page: &mut Page, summary: &CurveSummary, points: &[LoadedPoint<'_>], footnotes: &mut Footnotes<'_>) {
    if summary.shares.is_empty() {
        return;
    }
    let mut value = |share: &CurveShare, of_point: for<'m> fn(&LoadedPoint<'m>) -> Option<&'m Measurement>, e: &Estimate| {
        let point = points.iter().find(|p| p.delay.is_some() && p.delay == share.delay_cycles);
        match point.and_then(of_point) {
            Some(m) => footnotes.cell(Some(m)),
            None => value_of(e).map(|v| Value { number: number(v), half: half_width(e), ..Value::default() }).into(),
        }
    };
    let bandwidths: Vec<Cell> = summary.shares.iter().map(|s| value(s, |p| p.bandwidth, &s.bandwidth)).collect();
    let latencies: Vec<Cell> = summary.shares.iter().map(|s| value(s, |p| p.latency, &s.latency)).collect();
    let texts = |text: fn(&CurveShare) -> Option<String>| summary.shares.iter().map(text);
    page.table([
        Column::numbers("of the peak", texts(|s| Some(format!("{} %", s.percent)))),
        Column::numbers("reached", texts(|s| Some(format!("{:.1} %", 100.0 * s.reached?)))),
        Column::numbers("delay", texts(|s| Some(s.delay_cycles?.to_string()))),
        Column::numbers("GB/s", bandwidths),
        Column::numbers("ns", latencies),
    ]);
    for share in &summary.shares {
        if let Some(why) = share.missed.map(share_missed) {
            page.text(Style::Warning, "  ! ", "    ", &format!("{} % of the peak was not reached: {why}", share.percent));
        }
    }
}

/// The knee and the ends of the curve.
fn summary_lines(page: &mut Page, s: &CurveSummary, numbers: &SummaryNumbers, points: usize) {
    // Numbers that are not reliable show no knee, whether there is one or not.
    let no_knee = s.knee.is_none() && points > 2 && numbers.peak_gbs.as_ref().is_some_and(|peak| !peak.starts_with('~'));
    let items = [
        numbers.unloaded_ns.as_ref().map(|ns| format!("unloaded {ns} ns")),
        numbers.knee.as_ref().map(|(gbs, ns, delay)| format!("knee at {gbs} GB/s with {ns} ns (delay {delay})")),
        numbers.saturated_ns.as_ref().map(|ns| format!("saturated {ns} ns")),
        numbers.peak_gbs.as_ref().map(|gbs| format!("peak {gbs} GB/s")),
        no_knee.then(|| "no knee up to this load".to_owned()),
    ];
    page.items(Style::Plain, INDENT, items.into_iter().flatten());
    if no_knee {
        page.paragraph(Style::Detail, "no knee: latency does not grow much faster than bandwidth, or by no more than the intervals");
    }
    if s.over_saturated {
        page.paragraph(Style::Plain, "over-saturated: past the peak, more load brings less bandwidth and more latency");
    }
}
