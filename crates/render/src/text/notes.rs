//! Notes: what a reader should know besides the numbers, the most severe first.

use std::collections::BTreeSet;

use memgauge_model::note::{Note, NoteCode, Severity};
use memgauge_model::result::Report;

use super::page::{Page, Style};

/// The notes of the run, of its plan, and the limits that affect numbers, each once.
pub(super) fn notes(page: &mut Page, report: &Report) {
    let limits = report.environment.limits.iter().filter(|n| n.severity > Severity::Info);
    let planned = report.plan.iter().flat_map(|p| &p.notes);
    list(page, "Notes", report.notes.iter().chain(planned).chain(limits));
}

/// Which notes a short page shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Those from warnings on.
    Warnings,
    /// The same without those of the run, which the headline has.
    Planned,
}

/// The notes that a short page shows, and how many others there are.
pub(super) fn brief(page: &mut Page, report: &Report, shown: Shown) {
    let of_run = report.notes.iter().filter(|_| shown == Shown::Warnings);
    // A note of the plan that the run repeats stands in the headline, too.
    let told = |note: &&Note| shown == Shown::Warnings || !report.notes.contains(note);
    let planned = report.plan.iter().flat_map(|p| &p.notes).filter(told);
    let all = of_run.chain(planned).chain(&report.environment.limits);
    list(page, "Notes", all.filter(|note| note.severity > Severity::Info && !is_told(report, note)));
}

/// Whether a short page says below *Reliability* what the note says: why a cell was not measured.
pub(super) fn is_told(report: &Report, note: &Note) -> bool {
    note.code == NoteCode::CellNotMeasured && report.health.is_none()
}

/// Notes below a heading; nothing when there are none.
pub(super) fn list<'n>(page: &mut Page, title: &str, notes: impl Iterator<Item = &'n Note>) {
    list_all(page, title, notes.collect());
}

/// Once for all kinds of iterators.
fn list_all(page: &mut Page, title: &str, notes: Vec<&Note>) {
    let mut seen = BTreeSet::new();
    let mut notes: Vec<&Note> = notes.into_iter().filter(|n| seen.insert((&n.code, n.message.to_string()))).collect();
    if notes.is_empty() {
        return;
    }
    notes.sort_by_key(|n| std::cmp::Reverse(n.severity));
    page.heading(title, "");
    for note in notes {
        let (sign, style) = match note.severity {
            Severity::Error => ("  ✗ ", Style::Error),
            Severity::Warning => ("  ! ", Style::Warning),
            Severity::Info => ("  · ", Style::Plain),
        };
        page.remark(style, sign, &note.message, note.advice.as_ref());
    }
}
