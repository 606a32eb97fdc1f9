//! The data behind panels: the measurements of one table, from one result or from several.

use std::collections::BTreeSet;

use memgauge_model::experiment::Metric;
use memgauge_model::result::{Measurement, QualityLevel, QualityReason, Report};
use memgauge_model::wording::reasons::not_measured;
use memgauge_model::wording::reasons::quality;

use super::chart::Sample;
use super::frame::Caption;
use crate::groups::{Sweep, sweeps, where_and_how};
use crate::number::{measured, value_of};
use crate::pages::pages;

/// The measurements of one section of one result.
pub(crate) struct ResultSet<'a> {
    /// Tells results apart; `None` with only one.
    pub(crate) name: Option<&'a str>,
    pub(crate) report: &'a Report,
    pub(crate) ms: Vec<&'a Measurement>,
}

impl<'a> ResultSet<'a> {
    /// The curves over the working set of one metric.
    pub(crate) fn sweeps(&self, metric: Metric) -> Vec<Sweep<'a>> {
        sweeps(&self.ms).into_iter().filter(|s| s.metric == metric).collect()
    }

    /// The measurements that `keep` accepts.
    pub(crate) fn only(&self, keep: impl Fn(&Measurement) -> bool) -> Self {
        ResultSet { ms: self.ms.iter().copied().filter(|m| keep(m)).collect(), ..*self }
    }

    /// In which order, and in whose files; empty for memory without a file.
    fn place(&self) -> String {
        self.ms.first().map(|m| where_and_how(m)).unwrap_or_default()
    }

    /// The caption of a panel of these results alone.
    pub(crate) fn caption(&self, title: &str, parts: &[&str], hollow: bool) -> Caption {
        caption(std::slice::from_ref(self), title, parts, hollow)
    }

    /// The title, with what distinguishes it from panels of the same kind.
    pub(crate) fn title(&self, title: &str) -> String {
        let place = self.place();
        match self.name {
            Some(name) => format!("{title}{place}: {name}"),
            None => format!("{title}{place}"),
        }
    }
}

/// The title of a panel that shows several results together.
pub(crate) fn shared_title(sets: &[ResultSet<'_>], title: &str) -> String {
    match sets {
        [one] => one.title(title),
        _ => {
            format!("{title}{}", sets.first().map(ResultSet::place).unwrap_or_default())
        }
    }
}

/// `2 MiB huge pages of the pool`, of all sets when they agree.
pub(crate) fn common_pages(sets: &[ResultSet<'_>]) -> String {
    let kinds: BTreeSet<String> = sets.iter().map(|s| pages(&measured(&s.ms))).filter(|p| !p.is_empty()).collect();
    kinds.into_iter().collect::<Vec<_>>().join(" or ")
}

/// Joins what is not empty.
pub(crate) fn about(parts: &[&str]) -> String {
    parts.iter().filter(|p| !p.is_empty()).copied().collect::<Vec<_>>().join("; ")
}

/// The caption of a panel of these results: its title, what it shows and in which pages, and what is missing or degraded.
pub(crate) fn caption(sets: &[ResultSet<'_>], title: &str, parts: &[&str], hollow: bool) -> Caption {
    let pages = common_pages(sets);
    let mut caption = Caption::new(shared_title(sets, title), about(&[parts, &[pages.as_str()]].concat()));
    notes(&mut caption, sets, hollow);
    caption
}

/// Footnotes on what is missing, and on what is unreliable or degraded.
pub(crate) fn notes(caption: &mut Caption, sets: &[ResultSet<'_>], hollow: bool) {
    let all = || sets.iter().flat_map(|s| &s.ms);
    let missing: Vec<&Measurement> = all().copied().filter(|m| value_of(&m.estimate).is_none()).collect();
    let why: BTreeSet<String> = missing.iter().filter_map(|m| m.estimate.not_measured.as_ref()).map(not_measured).collect();
    if !missing.is_empty() {
        let shown: Vec<&str> = why.iter().take(2).map(String::as_str).collect();
        let more = if why.len() > shown.len() { "; and other reasons" } else { "" };
        let shown = if shown.is_empty() { "the result does not say why".to_owned() } else { shown.join("; ") };
        caption.notes.push(format!("Not measured, {} of {}: {shown}{more}.", missing.len(), all().count()));
    }
    for (level, name) in [(QualityLevel::Unreliable, "Unreliable"), (QualityLevel::Degraded, "Degraded")] {
        let doubted: Vec<&Measurement> = all().copied().filter(|m| is_degraded(m) && m.quality.level == level).collect();
        if !doubted.is_empty() {
            let reasons: BTreeSet<QualityReason> = doubted.iter().flat_map(|m| &m.quality.reasons).copied().collect();
            let list: Vec<&str> = reasons.into_iter().map(quality).collect();
            let hollow = if hollow { ", shown hollow" } else { "" };
            caption.notes.push(format!("{name}{hollow}, {} of {}: {}.", doubted.len(), all().count(), list.join(", ")));
        }
    }
}

/// Whether it has a value, and something may have distorted it.
pub(crate) fn is_degraded(m: &Measurement) -> bool {
    matches!(m.quality.level, QualityLevel::Degraded | QualityLevel::Unreliable) && value_of(&m.estimate).is_some()
}

/// Whether other programs or guests took time from it, so that it may lie anywhere; not what holds for a whole run, such as a placement
/// that nobody verified.
pub(crate) fn is_disturbed(m: &Measurement) -> bool {
    use QualityReason as R;
    let disturbance = |r: &R| {
        matches!(
            r,
            R::Steal
                | R::BusyMachine
                | R::InvoluntarySwitches
                | R::Migrated
                | R::Coverage
                | R::BurstsDisturbed
                | R::BusyNeighbours
                | R::TimeLeftOut
                | R::Stalled
        )
    };
    is_degraded(m) && m.quality.reasons.iter().any(disturbance)
}

/// The 95 % interval.
pub(crate) fn interval(m: &Measurement) -> Option<(f64, f64)> {
    let (low, high) = (m.estimate.ci95_low?, m.estimate.ci95_high?);
    (low.is_finite() && high.is_finite() && low <= high).then_some((low, high))
}

/// A measurement as a point of a chart; `None` without a value.
pub(crate) fn sample(x: f64, m: &Measurement) -> Option<Sample> {
    let y = value_of(&m.estimate)?;
    Some(Sample { x, y, y_interval: interval(m), x_interval: None, degraded: is_degraded(m), apart: is_disturbed(m) })
}
