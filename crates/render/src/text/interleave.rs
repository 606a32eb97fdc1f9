//! Interleave weights: what was measured by weights, what the best gain, and the lines that set them.

use memgauge_model::interleave::{Goal, Reading, Trial, Weights};
use memgauge_model::result::{InterleaveSummary, Measurement, Reference};
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::context::Context;
use super::evidence::evidence;
use super::grid::{Cell, Column, Value};
use super::page::{INDENT, Page, Style};
use crate::groups::interleave::{by_share, ratio};
use crate::number::number;

/// Columns of a full bar.
const BAR: usize = 24;
/// Where the kernel keeps its weights.
const SYSFS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// Every search, then what their sockets do with each other's weights.
pub(super) fn searches(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let all = context.report.interleaves.as_slice();
    for summary in all {
        let of_this_search = |m: &&&Measurement| m.at.cpus == summary.at.cpus && m.at.mix == summary.at.mix;
        one_search(page, context, summary, &ms.iter().filter(of_this_search).copied().collect::<Vec<_>>());
    }
    global(page, all);
}

fn one_search(page: &mut Page, context: &mut Context<'_>, summary: &InterleaveSummary, ms: &[&Measurement]) {
    let cpus = summary.at.cpus.as_ref().map(wording::cpus).unwrap_or_default();
    let mix = summary.at.mix.map(|m| format!(" with {m}")).unwrap_or_default();
    let chase = summary.at.cpu.map(|cpu| format!(", CPU {cpu} chases")).unwrap_or_default();
    page.heading("Weighted interleave", &context.about(&format!("nodes {}; {cpus} load{mix}{chase}", join(&summary.nodes))));
    let shown: Vec<&Trial> = by_share(summary).into_iter().filter(|t| page.verbose || notable(summary, t)).collect();
    let most = shown.iter().map(|t| t.bandwidth_gbs.value).fold(0.0, f64::max);
    let at = if let Goal::LatencyAt(gbs) = summary.goal { format!("ns at {} GB/s", number(gbs)) } else { "ns".into() };
    page.table([
        Column::text("weights", shown.iter().map(|t| ratio(summary, &t.weights))),
        Column::numbers("GB/s", shown.iter().map(|t| value(t.bandwidth_gbs))),
        Column::numbers(at, shown.iter().map(|t| t.latency_ns.map(value))),
        Column::text("bandwidth", shown.iter().map(|t| Cell::bar(t.bandwidth_gbs.value / most, BAR))).optional(),
        Column::text("", shown.iter().map(|t| remarks(summary, t))),
    ]);
    page.gap();
    for line in conclusions(summary) {
        page.paragraph(Style::Plain, line);
    }
    // Windows has no policy of weights: a program places its pages itself there.
    if context.report.machine.identity.system.is_linux() {
        match commands(&context.report.machine, summary) {
            Ok(lines) => lines.iter().for_each(|line| page.command(line)),
            Err(why) => page.paragraph(Style::Plain, why),
        }
    }
    let what = "weights: pages in turn on each node; bandwidth includes the chase; the front has no other weights with both more bandwidth and less latency";
    page.paragraph(Style::Detail, what);
    page.items(Style::Detail, INDENT, evidence(ms));
}

/// Whether a trial gets a line even if not all do: references, the best, and the front.
fn notable(summary: &InterleaveSummary, trial: &Trial) -> bool {
    let weights = &trial.weights;
    weights.only_node().is_some()
        || [&summary.best, &summary.recommended].contains(&weights)
        || summary.gains.iter().any(|gain| gain.weights == *weights)
        || summary.front.contains(weights)
}

fn remarks(summary: &InterleaveSummary, trial: &Trial) -> String {
    let is = |weights: &Weights| *weights == trial.weights;
    let mut words = Vec::new();
    if is(&summary.recommended) {
        words.push("◂ use these");
    } else if is(&summary.best) {
        words.push("best");
    }
    if summary.gains.iter().any(|gain| gain.over == Reference::Kernel && is(&gain.weights)) {
        words.push("the kernel's");
    }
    if summary.front.iter().any(is) {
        words.push("front");
    }
    words.join(", ")
}

fn conclusions(summary: &InterleaveSummary) -> Vec<String> {
    let ours = ratio(summary, &summary.recommended);
    let mut lines = Vec::new();
    if summary.recommended != summary.best {
        lines.push(format!("{ours} is within 1 % of the best, {}, with smaller weights.", ratio(summary, &summary.best)));
    }
    if summary.gains.iter().any(|gain| gain.over == Reference::NearestOnly && gain.weights == summary.recommended) {
        lines.push(format!("{ours} serves this load best: interleaving gains nothing."));
    }
    lines.extend(plateau(summary));
    for gain in summary.gains.iter().filter(|gain| gain.weights != summary.recommended) {
        let over = match gain.over {
            Reference::NearestOnly => ratio(summary, &gain.weights),
            Reference::Equal => format!("equal weights ({})", ratio(summary, &gain.weights)),
            Reference::Kernel => format!("the kernel's weights ({})", ratio(summary, &gain.weights)),
        };
        let latency = gain.latency.map(|l| format!(", latency {}", change(l))).unwrap_or_default();
        lines.push(format!("{ours} against {over}: bandwidth {}{latency}.", change(gain.bandwidth)));
    }
    lines
}

/// From which to which weights it makes no difference; nothing where only one was as good.
fn plateau(summary: &InterleaveSummary) -> Option<String> {
    let (most, least) = summary.plateau.first().zip(summary.plateau.last()).filter(|(most, least)| most != least)?;
    let near = summary.nodes.first().copied()?;
    let share = |weights: &Weights| format!("{:.0}", 100.0 * weights.share(near));
    let (most_share, least_share) = (share(most), share(least));
    Some(format!(
        "Within 1 % of the best: {} to {}, {} % of the pages on node {near} ({} measured).",
        ratio(summary, least),
        ratio(summary, most),
        if most_share == least_share { most_share } else { format!("{least_share} to {most_share}") },
        summary.plateau.len()
    ))
}

/// A relative change with its interval: `+31.2 % ±1.4`.
fn change(reading: Reading) -> String {
    format!("{:+.1} % ±{:.1}", 100.0 * reading.value, 100.0 * reading.half)
}

/// The lines that give a program's pages these weights. Without the kernel's policy, no command does.
fn commands(machine: &Machine, summary: &InterleaveSummary) -> Result<Vec<String>, &'static str> {
    if let Some(node) = summary.recommended.only_node() {
        return Ok(vec![format!("numactl --membind={node} PROGRAM")]);
    }
    let nodes: Vec<u32> = summary.recommended.nodes().iter().collect();
    if nodes.iter().any(|node| machine.topology.node(*node).is_none_or(|node| node.interleave_weight.is_none())) {
        return Err("This kernel has no weighted interleave (that needs Linux 6.9): a program must place its pages itself.");
    }
    let settings = machine.allowed.settings;
    let set = summary.recommended.iter().map(|(node, weight)| settings.change(&format!("{SYSFS}/node{node}"), &weight.to_string()));
    Ok(set.chain([format!("numactl -w {} PROGRAM", join(&nodes))]).collect())
}

/// Whether both are of the same load from different sockets.
fn comparable(a: &InterleaveSummary, b: &InterleaveSummary) -> bool {
    let load = |s: &InterleaveSummary| (s.at.mix, s.at.cpus.as_ref().map(IdSet::len));
    a.at.cpu_node != b.at.cpu_node && load(a) == load(b)
}

/// The kernel has one weight for each node, whichever socket asks: says which weights serve both, or what the one loses with the other's.
fn global(page: &mut Page, all: &[InterleaveSummary]) {
    for (i, a) in all.iter().enumerate() {
        for b in all.iter().skip(i + 1).filter(|b| comparable(a, b) && b.recommended != a.recommended) {
            let shared: Vec<u32> = a.nodes.iter().filter(|node| b.nodes.contains(node)).copied().collect();
            if shared.is_empty() {
                continue;
            }
            let socket = |s: &InterleaveSummary| s.at.cpu_node.map_or("these CPUs".into(), |node| format!("CPUs of node {node}"));
            let alone = [a, b].iter().any(|s| s.recommended.only_node().is_some());
            if let Some(both) = a.recommended.joined(&b.recommended).filter(|_| !alone) {
                page.gap();
                page.paragraph(Style::Plain, format!("{} and {} share nodes {}: {both} serves both.", socket(a), socket(b), join(&shared)));
                continue;
            }
            let mut text =
                format!("The kernel has one weight for each node, and {} and {} share nodes {}.", socket(a), socket(b), join(&shared));
            for (own, other) in [(a, b), (b, a)] {
                let loss = own.trial(&own.recommended).zip(own.trial(&other.recommended));
                text += &match loss {
                    Some((best, with)) => {
                        let loss = with.bandwidth_gbs.gain_over(best.bandwidth_gbs);
                        format!(" With the other's weights {} have {} bandwidth.", socket(own), change(loss))
                    }
                    None => format!(" What {} have with the other's weights was not measured.", socket(own)),
                };
            }
            page.gap();
            page.paragraph(Style::Warning, text);
        }
    }
}

fn value(reading: Reading) -> Cell {
    let half = if reading.half > 0.0 { format!("±{}", number(reading.half)) } else { String::new() };
    Value { number: number(reading.value), half, ..Value::default() }.into()
}

fn join(nodes: &[u32]) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
