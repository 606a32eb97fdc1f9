//! The headline: what most readers look for, in a line each, and how far to trust it.

use memgauge_analysis::conclusions::summary::{peaks, with_unreliable};
use memgauge_model::experiment::{ChaseOrder, Experiment};
use memgauge_model::note::{Note, NoteCode, Severity};
use memgauge_model::result::{Absent, Measurement, Over, OverWhat, QualityLevel, Report, Summary, SummaryValue, Trust};
use memgauge_model::traffic::Mix;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::load::Load;
use super::notes::is_told;
use super::page::{Page, Style};
use super::state;
use crate::groups::{Section, where_and_how_at};
use crate::limit::share_of_limit;
use crate::number::{count, doubted, half_width, half_width_of, marked, number, percent, range, unit, value_of};

/// Columns of the longest name and the blanks after it.
const NAMES: usize = 20;

/// Whether a section repeats what the headline says: the only node's latency, or the only pair's transfers, all of them reliable.
pub(super) fn says_all(section: Section, ms: &[&Measurement]) -> bool {
    let places = |m: &Measurement| (m.at.cpu, m.at.memory, m.at.holder_cpu);
    let one_place = ms.iter().all(|m| ms.first().is_some_and(|first| places(first) == places(m)));
    let plain =
        |m: &&Measurement| m.is_reliable() && value_of(&m.estimate).is_some() && m.distribution.is_none() && m.at.memory_dir.is_none();
    let plain_order = |m: &&Measurement| m.at.order != Some(ChaseOrder::Sequential) && m.at.sharer_cpu.is_none();
    matches!(section, Section { experiment: Experiment::IdleLatency | Experiment::CacheToCache, by_node: false })
        && one_place
        && ms.iter().all(plain)
        && ms.iter().all(plain_order)
}

/// Prints the trust, the lines of a report of several sections (`lines`), and the notes of the run.
///
/// The trust stands first if the numbers are unreliable, and last otherwise.
pub(super) fn headline(page: &mut Page, report: &Report, summary: &Summary, lines: bool) {
    let shown = with_unreliable(report);
    let unreliable = summary.trust.level == QualityLevel::Unreliable;
    // A page that explains everything has all notes at its end.
    let verbose = page.verbose;
    let told = |note: &&Note| !verbose && note.severity > Severity::Info && !is_told(report, note);
    let (culprits, others): (Vec<&Note>, Vec<&Note>) =
        report.notes.iter().filter(told).partition(|note| unreliable && note.code == NoteCode::MachineBusy);
    let state = state::changed_during_run(report).map(|changed| format!("; {changed}")).unwrap_or_default();
    page.gap();
    if unreliable {
        page.fact(Style::Warning, "", (UNRELIABLE, NAMES), &(counts(&summary.trust) + &state));
        remarks(page, &culprits);
    }
    let values = [
        ("Idle latency", idle(report, &shown)),
        ("Peak bandwidth", bandwidth(report, &shown)),
        ("Latency under load", loaded(report)),
        ("Cache to cache", transfers(&shown)),
    ];
    for (name, text) in values.into_iter().filter_map(|(name, text)| Some((name, text?))).filter(|_| lines) {
        page.fact(Style::Bold, "", (name, NAMES), &text);
    }
    if !unreliable {
        let interval = if lines { "; ± is the 95 % interval" } else { "" };
        page.fact(Style::Bold, "", (TRUST, NAMES), &(trust(&summary.trust) + &state + interval));
    }
    remarks(page, &others);
}

/// The name of the fact that says how far to trust the numbers.
pub(crate) const TRUST: &str = "Trust";
/// Its name if they are not to be trusted at all.
pub(crate) const UNRELIABLE: &str = "UNRELIABLE";

fn remarks(page: &mut Page, notes: &[&Note]) {
    for note in notes {
        page.remark(Style::Warning, "  ! ", &note.message, note.advice.as_ref());
    }
}

/// `98.2 ns ±0.4`, `~98.2 ns ±0.4` where no result is reliable, `203.8 ns (114.4–210.8 over 56 pairs)` of a median; what is missing instead;
/// `None` for what was not asked for.
pub(super) fn value(value: &SummaryValue, unit: &str) -> Option<String> {
    let Some(v) = value.value.filter(|v| v.is_finite()) else {
        return match value.absent? {
            Absent::Unreliable => Some("unreliable".to_owned()),
            Absent::NotMeasured => Some("not measured".to_owned()),
            Absent::NotPlanned | Absent::OneNode => None,
        };
    };
    let interval = match value.over {
        Some(over) => spread(value, over),
        None => half_width_of(v, value.ci95_low, value.ci95_high),
    };
    let shown = doubted(value.quality == Some(QualityLevel::Unreliable), v);
    Some(format!("{shown} {unit} {interval}").trim_end().to_owned())
}

/// `(114.4–210.8 over 56 pairs)`: these ends are not those of an interval of the median.
fn spread(value: &SummaryValue, over: Over) -> String {
    let n = over.count as usize;
    let over = match over.what {
        OverWhat::Nodes => count(n, "node", "nodes"),
        OverWhat::Cpus => count(n, "CPU", "CPUs"),
        OverWhat::Pairs => count(n, "pair", "pairs"),
        OverWhat::Results => count(n, "result", "results"),
    };
    match range(value.ci95_low.into_iter().chain(value.ci95_high)) {
        Some(range) => format!("({range} over {over})"),
        None => format!("(median of {over})"),
    }
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// A measured value with its unit and interval: `~` before it where it is not reliable.
fn measured(m: &Measurement) -> Option<String> {
    let v = value_of(&m.estimate)?;
    Some(format!("{} {} {}", marked(m, v), unit(m.unit), half_width(&m.estimate)).trim_end().to_owned())
}

/// Latency of a chase over the whole buffer in the own node's memory. Of several nodes the table says it.
pub(super) fn full_random(report: &Report) -> Option<String> {
    let mut full_random = report.results.iter().filter(|m| {
        let own_node = m.at.cpu_node.is_some() && m.at.cpu_node == m.at.memory_node() && m.at.memory_dir.is_none();
        m.experiment == Experiment::IdleLatency && m.at.order == Some(ChaseOrder::FullRandom) && own_node
    });
    let (first, other) = (full_random.next()?, full_random.next());
    measured(first).filter(|_| other.is_none())
}

fn idle(report: &Report, summary: &Summary) -> Option<String> {
    let local = value(&summary.idle_latency_local_ns, "ns")?;
    let remote = value(&summary.idle_latency_remote_ns, "ns").map(|remote| format!("remote {remote}"));
    joined([Some(local), remote, full_random(report).map(|ns| format!("{ns} random over the whole buffer"))])
}

fn bandwidth(report: &Report, summary: &Summary) -> Option<String> {
    let [reads, fastest] = peaks(report);
    let read = value(&summary.peak_read_gbs, "GB/s").map(|read| match reads {
        Some(m) => format!("{read} {}{}", Mix::AllReads, by_part(report, m)),
        None => format!("{} {read}", Mix::AllReads),
    });
    let any = summary.peak_any_mix.filter(|mix| *mix != Mix::AllReads);
    let part = fastest.map(|m| by_part(report, m)).unwrap_or_default();
    let any = any.and_then(|mix| Some(format!("{} {mix}{part}", value(&summary.peak_any_gbs, "GB/s")?)));
    let share = reads.filter(|m| m.experiment == Experiment::Bandwidth && m.is_reliable()).and_then(share_of_limit);
    joined([read, share.map(|share| format!("{} of the limit", percent(share))), any])
}

/// ` by 20 of 40 cores, on memory of nodes 1,3`: which cores, and whose memory, gave a bandwidth; empty if all cores took part.
pub(super) fn by_part(report: &Report, m: &Measurement) -> String {
    let topology = &report.machine.topology;
    let Some(cpus) = m.at.cpus.as_ref() else { return String::new() };
    let cores = |cpus: &IdSet| topology.one_per_core(cpus).len();
    let all = cores(&report.machine.default_cpus());
    if cores(cpus) >= all {
        return String::new();
    }
    let own: IdSet = cpus.iter().filter_map(|cpu| topology.cpu(cpu)).map(|cpu| cpu.node).collect();
    let memory = m.at.load_nodes.clone().or_else(|| m.at.memory_node().map(IdSet::one));
    let elsewhere = memory.filter(|nodes| nodes.intersection(&own).is_empty());
    let on = elsewhere.map_or_else(String::new, |nodes| format!(", on memory of {}", wording::nodes(&nodes)));
    format!(" by {} of {all} cores{on}", cores(cpus))
}

/// Of the curve of loads alone, or the first one.
fn loaded(report: &Report) -> Option<String> {
    let curve = report.curves.iter().find(|c| c.at.mix == Some(Mix::AllReads)).or_else(|| report.curves.first())?;
    let load = Load::find(report, curve);
    let full = load.full_load().and_then(measured).map(|ns| format!("{ns} at full load"));
    let peak = load.peak().and_then(measured).filter(|_| full.is_some()).map(|gbs| format!(", up to {gbs}"));
    let full = full.map(|full| full + &peak.unwrap_or_default());
    let knee = curve.knee.filter(|k| load.is_reliable(k.delay_cycles));
    // The memory of nodes needs no name, but a reader cannot guess which files are read, and in what order.
    let place = curve.at.memory_dir.as_ref().map(|_| where_and_how_at(report, &curve.at));
    joined([full, knee.map(|k| format!("knee at {} GB/s", number(k.bandwidth_gbs))), place])
}

/// `146.2 ns ±0.6`: the latency at full load of the first curve that has one.
pub(super) fn under_load(report: &Report) -> Option<String> {
    let full = || report.curves.iter().filter_map(|curve| Load::find(report, curve).full_load());
    full().find(|m| m.is_reliable()).or_else(|| full().next()).and_then(measured)
}

fn transfers(summary: &Summary) -> Option<String> {
    let state = |of: &SummaryValue, name: &str| {
        let text = value(of, "ns")?;
        Some(if of.value.is_some() { format!("{text} {name}") } else { format!("{name} {text}") })
    };
    joined([state(&summary.transfer_hit_ns, "unmodified (HIT)"), state(&summary.transfer_hitm_ns, "modified (HITM)")])
}

/// `good: 35 of 36 good, 1 degraded`: the same words on a page and in a line.
pub(super) fn trust(trust: &Trust) -> String {
    let word = match trust.level {
        QualityLevel::Good => return counts(trust),
        QualityLevel::Degraded => "degraded",
        QualityLevel::Unreliable => UNRELIABLE,
        QualityLevel::None => "nothing was measured",
    };
    format!("{word}: {}", counts(trust))
}

/// How many numbers are good, and how many are not.
fn counts(t: &Trust) -> String {
    let all: u64 = [t.good, t.degraded, t.unreliable, t.missing].into_iter().map(u64::from).sum();
    let parts = [(t.degraded, "degraded"), (t.unreliable, "unreliable (~)"), (t.missing, "missing (—)")];
    let rest: String = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}")).collect();
    format!("{} of {all} good{rest}", t.good)
}
