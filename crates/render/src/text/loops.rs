//! `memgauge stream` and `memgauge chase`: one line each.

use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::microbench::LoopProof;
use memgauge_model::result::{Measurement, QualityLevel, Report};
use memgauge_model::topology::Topology;
use memgauge_model::wording;

use super::page::{INDENT, Page, Style, clean};
use crate::groups::corrupted;
use crate::number::{count, half_width, human, maybe, percent, range, unit, value_of};
use crate::pages::pages;

/// One line for each loop; `None` when the report has other results.
pub(super) fn lines(report: &Report) -> Option<String> {
    let is_loop = |m: &Measurement| matches!(m.experiment, Experiment::Stream | Experiment::Chase);
    if report.results.is_empty() || !report.results.iter().all(is_loop) {
        return None;
    }
    Some(report.results.iter().map(|m| clean(&line(m, &report.machine.topology)) + "\n").collect())
}

/// The same lines among the results of something else.
pub(super) fn section(page: &mut Page, topology: &Topology, ms: &[&Measurement]) {
    page.heading("Loops", "");
    for m in ms {
        page.text(Style::Plain, INDENT, "    ", &line(m, topology));
    }
}

fn line(m: &Measurement, topology: &Topology) -> String {
    let proof = m.evidence.proof.clone().unwrap_or_default();
    let size = m.at.working_set.map(human).unwrap_or_default();
    let name = if m.metric == Metric::Bandwidth { "stream" } else { "chase" };
    let half = half_width(&m.estimate);
    let half = if half.is_empty() { half } else { format!(" {half}") };
    let (sign, warning) = match m.quality.level {
        QualityLevel::Unreliable => ("~", "UNRELIABLE"),
        QualityLevel::Degraded => ("", "degraded"),
        QualityLevel::Good | QualityLevel::None => ("", ""),
    };
    let mut parts = vec![format!("{name} {size}: {sign}{}{half} {}", maybe(value_of(&m.estimate)), unit(m.unit))];
    parts.extend((!warning.is_empty()).then(|| format!("{warning} ({})", reasons(m))));
    let spread = range([m.estimate.min, m.estimate.max].into_iter().flatten()).map(|r| format!(" ({r})")).unwrap_or_default();
    let hops = proof.hops.map(|h| format!(" of {h} hops")).unwrap_or_default();
    parts.push(format!("{}{hops}{spread}", count(proof.passes as usize, "pass", "passes")));
    parts.push(proof_text(&proof));
    parts.extend((corrupted(m) && proof.mismatches == 0).then(|| "MEMORY CORRUPTED".to_owned()));
    parts.extend(m.at.order.map(|o| wording::chase_order(o).to_owned()));
    parts.extend(m.at.cpu.map(|c| format!("CPU {c}")));
    parts.extend(m.at.memory_node().map(|n| format!("node {n}")));
    parts.push(pages(&[m]));
    parts.extend(is_cached(m, topology).then(|| "its checksum may be slower than this cache".to_owned()));
    parts.extend(off_cpu(m));
    parts.retain(|p| !p.is_empty());
    parts.join(", ")
}

/// Whether a stream's buffer fits into a cache of its core: the checksum, and not the loads, may then be the limit.
fn is_cached(m: &Measurement, topology: &Topology) -> bool {
    let caches = topology.caches.iter().filter(|cache| cache.level <= 2);
    let largest = caches.map(|cache| cache.size).max();
    m.metric == Metric::Bandwidth && m.at.working_set.zip(largest).is_some_and(|(size, cache)| size <= cache)
}

/// Why a number is degraded or unreliable.
fn reasons(m: &Measurement) -> String {
    m.quality.reasons.iter().map(|reason| wording::spelled(reason).replace('-', " ")).collect::<Vec<_>>().join(", ")
}

/// Below this share of its time a loop's time off the CPU is not worth a word: its interval is wider.
const WORTH_SAYING: f64 = 0.01;

/// How much of the time the loop was off its CPU, and whether that is in the number.
fn off_cpu(m: &Measurement) -> Option<String> {
    let share = m.evidence.noise.waited.filter(|share| *share > WORTH_SAYING)?;
    let inside = if m.evidence.noise.left_out.is_some() { "left out" } else { "unreliable" };
    Some(format!("off CPU {}: {inside}", percent(share)))
}

/// The checksum, or where the chase ended.
fn proof_text(proof: &LoopProof) -> String {
    let text = match (&proof.checksum, proof.final_index) {
        (Some(sum), _) => format!("checksum {sum}"),
        (None, Some(index)) => format!("final index {index}"),
        (None, None) => return String::new(),
    };
    if proof.mismatches > 0 { format!("{text} IS WRONG") } else { text }
}
