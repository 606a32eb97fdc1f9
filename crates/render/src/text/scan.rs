//! A scan of memory: how the regions' bandwidths are spread, and the weakest of them. A machine has hundreds; all of them are in the JSON.

use memgauge_analysis::conclusions::scan;
use memgauge_model::result::{LimitSource, Measurement, QualityLevel, QualityReason, VerdictReason};
use memgauge_model::stats;
use memgauge_model::wording;

use super::context::Context;
use super::evidence::evidence;
use super::faults::{compared, faults};
use super::footnotes::Footnotes;
use super::grid::{Cell, Column};
use super::page::{INDENT, Page, Style};
use crate::groups::planned_scan;
use crate::number::{count, human, maybe, number, range, value_of};
use crate::pivot::layers;

/// Regions that are listed. Nobody reads more, and the result has all of them.
const LISTED: usize = 10;
/// Columns of the longest bar.
const BAR: usize = 30;
/// Width of a bucket where the plan does not say it, in GB/s.
const BUCKET_GBS: f64 = 5.0;
/// With more buckets than this, wider ones are drawn.
const MAX_BUCKETS: usize = 24;

/// One histogram and one list for each node.
pub(super) fn scans(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    context.heading(page, ms, "Memory scan", "GB/s: 10⁹ bytes per second that all CPUs named together read from a region");
    for (i, (node, mut regions)) in layers(ms, |m| m.at.memory_node()).into_iter().enumerate() {
        if i > 0 {
            page.gap();
        }
        regions.sort_by_key(|m| m.at.region);
        one_node(page, context, node, &regions);
    }
}

fn one_node(page: &mut Page, context: &mut Context<'_>, node: Option<u32>, regions: &[&Measurement]) {
    let values: Vec<f64> = regions.iter().filter_map(|m| value_of(&m.estimate)).collect();
    let mut items = vec![wording::node(node)];
    items.extend(regions.first().map(|m| format!("{} of {}", count(regions.len(), "region", "regions"), human(m.evidence.buffer))));
    items.extend(regions.first().and_then(|m| m.at.cpus.as_ref()).map(wording::cpus));
    page.items(Style::Plain, INDENT, &items);
    histogram(page, &values, planned_scan(context.report, node).map_or(BUCKET_GBS, |s| s.bucket_gbs));
    let median = stats::median(&values);
    let mut listed = regions.to_vec();
    if regions.len() > LISTED {
        // Only regions below the median are among the weakest, however few there are.
        listed.retain(|m| value_of(&m.estimate).is_none_or(|v| median.is_none_or(|median| v < median)) || scan::corrupted(m));
        // Corrupted ones first, then those without a value: nothing is known of them.
        let value = |m: &Measurement| value_of(&m.estimate).unwrap_or(f64::MIN);
        listed.sort_by(|a, b| scan::corrupted(b).cmp(&scan::corrupted(a)).then(value(a).total_cmp(&value(b))));
        listed.truncate(LISTED);
    }
    let mut footnotes = Footnotes::new(context, &listed);
    let address = |m: &Measurement| m.evidence.physical.as_ref().and_then(scan::addresses);
    let against = |m: &Measurement| Some(format!("{:+.1} %", (value_of(&m.estimate)? / median? - 1.0) * 100.0));
    page.table([
        Column::text("region", listed.iter().map(|m| m.at.region.map(|r| r.to_string()))),
        Column::text("physical address", listed.iter().map(|m| address(m))),
        Column::numbers("GB/s", listed.iter().map(|m| footnotes.cell(Some(m)))),
        Column::numbers("from median", listed.iter().map(|m| against(m))).optional(),
        Column::text("", listed.iter().map(|m| verdict_word(m))),
    ]);
    // The usual advice against these, more time, is not an option of a scan.
    context.advised.extend([QualityReason::NotConverged, QualityReason::Coverage]);
    footnotes.print(page, &mut context.advised);
    faults(page, regions);
    let mut items = Vec::new();
    if let Some(range) = range(values.iter().copied()) {
        items.push(format!("{range} GB/s, median {}, MAD {}", maybe(median), maybe(stats::mad(&values))));
    }
    let corrupted = regions.iter().filter(|m| scan::corrupted(m)).count();
    items.extend((corrupted > 0).then(|| format!("{} CORRUPTED", count(corrupted, "region", "regions"))));
    let weak = regions.iter().filter(|m| scan::found_weak(m)).count();
    match regions.iter().find_map(|m| m.verdict.limit.filter(|_| m.verdict.limit_source == Some(LimitSource::RegionsOfNode))) {
        Some(limit) if weak == 0 => items.push(format!("none is weak (interval below {})", number(limit))),
        Some(limit) => items.push(format!("{} weak (interval below {})", count(weak, "region", "regions"), number(limit))),
        None if values.len() < scan::MIN_REGIONS => items.push("too few regions to tell weak ones".into()),
        None => items.push("the regions scatter too much to tell weak ones".into()),
    }
    items.extend(compared(regions));
    if regions.len() > listed.len() {
        let degraded = regions.iter().filter(|m| matches!(m.quality.level, QualityLevel::Degraded | QualityLevel::Unreliable)).count();
        let which = match (corrupted, weak) {
            (0, 0) => "slowest",
            (0, _) => "weakest",
            _ => "corrupted and slowest",
        };
        items.push(format!("the {} {which} are listed; all are in the JSON result (-o FILE.json)", listed.len()));
        items.extend((degraded > 0).then(|| format!("{degraded} of {} are degraded; the JSON result has the reasons", regions.len())));
    }
    page.items(Style::Dim, INDENT, &items);
    page.items(Style::Detail, INDENT, evidence(regions));
}

fn histogram(page: &mut Page, values: &[f64], bucket: f64) {
    let mut bucket = bucket;
    let mut buckets = scan::histogram(values, bucket);
    while buckets.len() > MAX_BUCKETS {
        bucket *= 2.0;
        buckets = scan::histogram(values, bucket);
    }
    let Some(largest) = buckets.iter().map(|b| b.1).max() else { return };
    page.table([
        Column::text("GB/s", buckets.iter().map(|(low, _)| format!("{}–{}", end(*low), end(low + bucket)))),
        Column::numbers("regions", buckets.iter().map(|(_, n)| Cell::number(n.to_string()))),
        Column::text("", buckets.iter().map(|(_, n)| Cell::bar(*n as f64 / largest as f64, BAR))).optional(),
    ]);
}

/// An end of a bucket, without a fraction where it has none.
fn end(gbs: f64) -> String {
    if gbs.fract().abs() < 1e-9 && gbs.abs() < 1e9 { format!("{gbs:.0}") } else { number(gbs) }
}

fn verdict_word(m: &Measurement) -> &'static str {
    match m.verdict.reason {
        VerdictReason::MemoryCorrupted => "corrupted",
        _ if scan::corrupted(m) => "corrupted",
        VerdictReason::WeakRegion => "weak",
        _ => "",
    }
}
