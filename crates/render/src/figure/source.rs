//! What panels are made from: the measurements of one table, from one result or from several.

use std::collections::BTreeSet;

use memgauge_core::result::{Measurement, QualityLevel, QualityReason, Report};
use memgauge_core::traffic::Mix;

use super::bars::Bar;
use super::frame::Words;
use super::palette::{Colour, SERIES};
use crate::text::evidence::pages;
use crate::text::number::{half_width, number, value_of};

/// The measurements of one table of one result.
pub(crate) struct Set<'a> {
    /// Tells results apart; `None` with only one.
    pub(crate) name: Option<&'a str>,
    pub(crate) report: &'a Report,
    /// Directory whose files were the memory.
    pub(crate) directory: Option<&'a str>,
    pub(crate) ms: Vec<&'a Measurement>,
}

impl Set<'_> {
    /// The title, with what tells it from panels of the same kind.
    pub(crate) fn title(&self, title: &str) -> String {
        let directory = self.directory.map(|d| format!(", files in {d}")).unwrap_or_default();
        match self.name {
            Some(name) => format!("{title}{directory}: {name}"),
            None => format!("{title}{directory}"),
        }
    }
}

/// More lines than this in one chart cannot be told apart: there are as many colours.
pub(crate) const MOST_SERIES: usize = SERIES.len();

/// What a title says of the nth chart of several: nothing where there is one.
pub(crate) fn part_of(n: usize, of: usize) -> String {
    if of > 1 { format!(" ({} of {of})", n + 1) } else { String::new() }
}

/// The title of a panel that shows several results together.
pub(crate) fn shared_title(sets: &[Set<'_>], title: &str) -> String {
    match sets {
        [one] => one.title(title),
        _ => {
            let directory = sets.first().and_then(|s| s.directory).map(|d| format!(", files in {d}")).unwrap_or_default();
            format!("{title}{directory}")
        }
    }
}

/// `2 MiB huge pages of the pool`, of all sets when they agree.
pub(crate) fn common_pages(sets: &[Set<'_>]) -> String {
    let kinds: BTreeSet<String> = sets.iter().map(|s| pages(&measured(&s.ms))).filter(|p| !p.is_empty()).collect();
    kinds.into_iter().collect::<Vec<_>>().join(" or ")
}

fn measured<'a>(ms: &[&'a Measurement]) -> Vec<&'a Measurement> {
    ms.iter().copied().filter(|m| value_of(&m.estimate).is_some()).collect()
}

/// Joins what is not empty.
pub(crate) fn about(parts: &[&str]) -> String {
    parts.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join("; ")
}

/// Footnotes on what is missing and what is degraded.
pub(crate) fn notes(words: &mut Words, sets: &[Set<'_>], hollow: bool) {
    let all = || sets.iter().flat_map(|s| &s.ms);
    let missing: Vec<&Measurement> = all().copied().filter(|m| value_of(&m.estimate).is_none()).collect();
    let why: BTreeSet<&str> = missing.iter().filter_map(|m| m.estimate.reason.as_deref()).collect();
    if !missing.is_empty() {
        let shown: Vec<&str> = why.iter().take(2).copied().collect();
        let more = if why.len() > shown.len() { "; and other reasons" } else { "" };
        let shown = if shown.is_empty() { "the result does not say why".to_owned() } else { shown.join("; ") };
        words.notes.push(format!("Not measured, {} of {}: {shown}{more}.", missing.len(), all().count()));
    }
    let degraded: Vec<&Measurement> = all().copied().filter(|m| is_degraded(m)).collect();
    if !degraded.is_empty() {
        let reasons: BTreeSet<QualityReason> = degraded.iter().flat_map(|m| &m.quality.reasons).copied().collect();
        let list: Vec<&str> = reasons.into_iter().map(word).collect();
        let hollow = if hollow { ", shown hollow" } else { "" };
        words.notes.push(format!("Degraded{hollow}, {} of {}: {}.", degraded.len(), all().count(), list.join(", ")));
    }
}

/// Whether it has a value that something may have distorted.
pub(crate) fn is_degraded(m: &Measurement) -> bool {
    m.quality.level == QualityLevel::Degraded && value_of(&m.estimate).is_some()
}

/// A few words for a reason.
const fn word(reason: QualityReason) -> &'static str {
    use QualityReason as R;
    match reason {
        R::Steal => "time stolen by the hypervisor",
        R::BusyMachine => "other processes ran",
        R::InvoluntarySwitches => "threads were taken off their CPUs",
        R::Migrated => "threads ran on other CPUs",
        R::FrequencyDrift => "core frequency changed",
        R::Coverage => "threads did not run together all the time",
        R::NotConverged => "interval wider than asked for",
        R::SeveralModes => "several modes",
        R::PlacementWrong => "pages on another node",
        R::PlacementUnverified => "placement not verified",
        R::PlateauNotReached => "buffer partly in a cache",
        R::Drift => "differs when measured again",
        R::MemoryErrors => "memory errors",
        R::PagesMigrated => "pages were migrated",
        R::BurstsDisturbed => "bursts were disturbed",
        R::AboveCore => "more bytes a cycle than a core can",
    }
}

/// The 95 % interval.
pub(crate) fn interval(m: &Measurement) -> Option<(f64, f64)> {
    let (low, high) = (m.estimate.ci95_low?, m.estimate.ci95_high?);
    (low.is_finite() && high.is_finite() && low <= high).then_some((low, high))
}

/// A measurement as a bar.
pub(crate) fn bar(m: Option<&Measurement>, colour: Colour) -> Bar {
    let value = m.and_then(|m| value_of(&m.estimate));
    // An interval wider than any number of memory is nothing to print.
    let half = |m: &Measurement| Some(half_width(&m.estimate)).filter(|h| h.len() <= 16).unwrap_or_default();
    let after = m.map(half).unwrap_or_default();
    Bar { colour, value, interval: m.and_then(interval), after, degraded: m.is_some_and(is_degraded), limit: m.and_then(limit_of_program) }
}

/// A limit of the bus, and who says so.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    /// In GB/s.
    pub(crate) gbs: f64,
    source: String,
}

impl Limit {
    fn of(m: &Measurement) -> Option<Self> {
        let gbs = m.verdict.limit.filter(|l| l.is_finite() && *l > 0.0)?;
        let source = m.verdict.limit_source.as_ref().map(|s| format!(" ({s})")).unwrap_or_default();
        Some(Self { gbs, source })
    }

    /// `332.8 GB/s (smbios)`.
    pub(crate) fn text(&self) -> String {
        format!("{} GB/s{}", number(self.gbs), self.source)
    }
}

/// The limit that all measurements with a value share; `None` when they have different ones, or one of them has none.
pub(crate) fn limit(ms: &[&Measurement]) -> Option<Limit> {
    let mut limits = measured(ms).into_iter().map(Limit::of);
    let first = limits.next()??;
    limits.all(|l| l.is_some_and(|l| l.gbs == first.gbs)).then_some(first)
}

/// All limits, each once, least first.
pub(crate) fn limits(ms: &[&Measurement]) -> Vec<Limit> {
    let mut limits: Vec<Limit> = measured(ms).into_iter().filter_map(Limit::of).collect();
    limits.sort_by(|a, b| a.gbs.total_cmp(&b.gbs).then_with(|| a.source.cmp(&b.source)));
    limits.dedup();
    limits
}

/// What the bus's limit leaves of the bytes that a program reads and writes, in GB/s: less where stores read lines first, because the bus
/// then moves more than the program asks for. `None` where it is not known what the bus moves.
pub(crate) fn limit_of_program(m: &Measurement) -> Option<f64> {
    let limit = Limit::of(m)?.gbs;
    let value = value_of(&m.estimate).filter(|v| *v > 0.0)?;
    match m.evidence.traffic.and_then(|t| t.bus_estimate_gbs).filter(|b| b.is_finite() && *b > 0.0) {
        // The bus moves no less than the program; a difference of a millionth is none.
        Some(bus) if bus / value - 1.0 < 1e-6 => Some(limit),
        Some(bus) => Some(limit * value / bus),
        None => m.at.mix.is_some_and(moves_what_it_asks).then_some(limit),
    }
}

/// Whether the bus moves exactly what the program reads and writes, whatever the machine does at stores.
fn moves_what_it_asks(mix: Mix) -> bool {
    mix == Mix::AllReads || mix.non_temporal()
}

/// Whether that is so of all measurements of a chart: its axis is in bytes of programs and can show the bus's limit only then.
pub(crate) fn bus_moves_what_is_asked(ms: &[&Measurement]) -> bool {
    ms.iter().all(|m| m.at.mix.is_some_and(moves_what_it_asks))
}

/// A limit further away than this, over the peak, would squeeze what is drawn: it is said in words.
pub(crate) const FAR: f64 = 1.6;

/// The limit in words, for a chart that does not show it.
pub(crate) fn limit_note(limit: &Limit, ms: &[&Measurement]) -> String {
    let why = if bus_moves_what_is_asked(ms) {
        ""
    } else {
        " of what crosses the bus; where stores read first, that is more than programs ask for"
    };
    format!("Limit: {}{why}.", limit.text())
}
