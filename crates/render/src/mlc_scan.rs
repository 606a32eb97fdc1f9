//! The text of `--memory_bandwidth_scan`, in the words of the tool's version 3.9a where they are publicly known.
//!
//! A line that begins with a digit is a row of a table to parsers; the original's `1GB page allocation completed` is therefore left
//! out. Rows have three columns whatever the pages, because scripts take the third; the original's part in 4 KB pages has two. Titles of
//! the lists are this program's own.

use std::fmt::Write;

use memgauge_analysis::conclusions::scan;
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Measurement, Report};
use memgauge_model::units::Bytes;

use crate::groups::planned_scan;
use crate::pivot::layers;

/// Width of a bucket where the plan does not say it, in MB/s.
const BUCKET_MBS: f64 = 5000.0;
const GIB: u64 = 1 << 30;

/// The scan of each node of a report: what was taken, the histogram, and each region's address and MB/s. The middle column is the
/// number of the GiB that the address lies in. `nan`: not measured, or an address that may not be known.
pub fn mlc_scan(report: &Report) -> String {
    let is_region = |m: &&Measurement| m.experiment == Experiment::MemoryScan && m.at.region.is_some();
    let regions: Vec<&Measurement> = report.results.iter().filter(is_region).collect();
    let mut text = String::new();
    for (node, regions) in layers(&regions, |m| m.at.memory_node()) {
        one_node(&mut text, report, node, &regions);
    }
    text
}

fn one_node(text: &mut String, report: &Report, node: Option<u32>, regions: &[&Measurement]) {
    let name = node.unwrap_or(0);
    let first = regions.first();
    let threads = first.map_or(0, |m| m.evidence.threads);
    let cpu_node = first.and_then(|m| m.at.cpu_node).unwrap_or(name);
    let huge = |m: &&&Measurement| m.evidence.pages.page == Some(Bytes(GIB));
    let (large, small): (Vec<&Measurement>, Vec<&Measurement>) = regions.iter().partition(|m| huge(m));
    let bytes = |ms: &[&Measurement]| ms.iter().map(|m| m.evidence.buffer.0).fold(0, u64::saturating_add);
    let mut line = |args: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{args}");
    };
    line(format_args!("Running memory scan using {threads} threads on numa node {cpu_node} accessing memory on node {name}"));
    if !large.is_empty() {
        let pages = bytes(&large) / GIB;
        line(format_args!("Reserved {pages} 1GB pages"));
        line(format_args!("Now allocating {pages} 1GB pages. This may take several minutes.."));
    }
    let kind = small.first().map(|m| size_name(m.evidence.pages.page));
    if let Some(kind) = &kind {
        line(format_args!("Allocating remaining {} KB memory in {kind} pages", bytes(&small) / 1024));
    }
    let kinds: Vec<&str> = kind.iter().map(String::as_str).chain((!large.is_empty()).then_some("1GB")).collect();
    line(format_args!("Totally {} GB memory allocated in {} pages on NUMA node {name}", bytes(regions) / GIB, kinds.join("+")));
    let region = first.map_or_else(String::new, |m| size_name(Some(m.evidence.buffer)));
    line(format_args!("Measuring memory bandwidth for each of those {region} memory regions.."));
    let planned = planned_scan(report, node).map(|scan| scan.bucket_gbs * 1000.0);
    let bucket = planned.filter(|b| b.is_finite() && *b >= 1.0).unwrap_or(BUCKET_MBS);
    line(format_args!("Histogram of the regions' bandwidths (MB/sec)"));
    let values: Vec<f64> = regions.iter().filter_map(|m| mbs(m)).collect();
    for (low, count) in scan::histogram(&values, bucket) {
        line(format_args!("[{low:.0}-{:.0}]\t{count}", low + bucket - 1.0));
    }
    let rate = |m: &Measurement| or_nan(mbs(m).map(|v| format!("{v:.0}")));
    line(format_args!("phys_addr\tGB\tMB/sec"));
    let address = |m: &Measurement| or_nan(physical(m).map(|a| format!("{a:#x}")));
    for m in large.iter().chain(&small) {
        line(format_args!("{}\t{}\t{}", address(m), or_nan(physical(m).map(|a| (a / GIB).to_string())), rate(m)));
    }
}

/// MB/s, rounded as it is printed, so that each region is counted in the bucket that its number falls into.
fn mbs(m: &Measurement) -> Option<f64> {
    m.estimate.value.filter(|v| v.is_finite()).map(|gbs| (gbs * 1000.0).round())
}

fn physical(m: &Measurement) -> Option<u64> {
    m.evidence.physical.as_ref()?.first
}

fn or_nan(text: Option<String>) -> String {
    text.unwrap_or_else(|| "nan".to_owned())
}

/// `1GB`, `2MB`, `4KB`, as that tool calls them.
fn size_name(size: Option<Bytes>) -> String {
    match size.map(|s| s.0) {
        Some(n) if n >= GIB && n.is_multiple_of(GIB) => format!("{}GB", n >> 30),
        Some(n) if n >= 1 << 20 => format!("{}MB", n >> 20),
        Some(n) => format!("{}KB", n >> 10),
        None => "unknown".to_owned(),
    }
}
