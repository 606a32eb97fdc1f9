//! The outcome of an ingest, for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use memgauge_model::printable::escape_controls;
use memgauge_model::wording::number_of;
use memgauge_model::words;
use memgauge_model::words::{Knob, Verb};
use memgauge_render::{Appearance, Document, Format, RenderError, json_text};

use super::files::MAX_RESULT;
use super::outcome::{IngestOutcome, SkipReason, Skipped};

/// Files that are named for each reason.
const NAMED: usize = 10;

impl Document for IngestOutcome {
    const NAME: &'static str = "an outcome";
    const FORMATS: &'static [Format] = &[Format::TEXT, Format::JSON];

    fn text(&self, _: &Appearance) -> String {
        ingest_text(self)
    }
    fn line(&self, _: &Appearance) -> String {
        ingest_line(self)
    }
    fn json(&self) -> Result<Vec<u8>, RenderError> {
        Ok(json_text(self)?)
    }
}

/// The first line: what was added.
pub(super) fn ingest_line(outcome: &IngestOutcome) -> String {
    let runs = number_of(outcome.runs, "run", "runs");
    let hosts = number_of(outcome.hosts, "host", "hosts");
    let mut line = format!("{}: {runs} of {hosts} added", escape_controls(&outcome.fleet));
    if outcome.runs > 0 {
        let _ = write!(line, ", {}", number_of(outcome.values, "value", "values"));
        if outcome.not_measured > 0 {
            let _ = write!(line, ", {} not measured", outcome.not_measured);
        }
    }
    if !outcome.already.is_empty() {
        let _ = write!(line, "; {} already there", number_of(outcome.already.len() as u64, "run", "runs"));
    }
    match outcome.unusable() {
        0 => {}
        n => line += &format!("; {} could not be used", number_of(n as u64, "file", "files")),
    }
    line + "\n"
}

/// All of it: the line, the files that were left out by reason, and what the fleet holds now.
pub(super) fn ingest_text(outcome: &IngestOutcome) -> String {
    let mut text = ingest_line(outcome);
    let mut by_reason: BTreeMap<SkipReason, Vec<&Skipped>> = BTreeMap::new();
    outcome.skipped.iter().for_each(|skipped| by_reason.entry(skipped.reason).or_default().push(skipped));
    for (reason, skipped) in by_reason {
        let (one, many) = if reason == SkipReason::FleetFolder { ("folder", "folders") } else { ("file", "files") };
        let _ = write!(text, "\n{} left out: {}\n", number_of(skipped.len() as u64, one, many), why(reason));
        for Skipped { file, detail, .. } in skipped.iter().take(NAMED) {
            let detail = detail.as_ref().map(|detail| format!(": {}", about(reason, detail))).unwrap_or_default();
            let _ = writeln!(text, "  {}", escape_controls(&format!("{file}{detail}")));
        }
        if skipped.len() > NAMED {
            let _ = writeln!(text, "  and {} more; {} json names all", skipped.len() - NAMED, Knob::Format);
        }
    }
    let recovered = outcome.recovered;
    if recovered.finished + recovered.removed > 0 {
        let _ = write!(
            text,
            "\nAn earlier ingest was killed: {} finished, {} removed. Its committed runs are kept.\n",
            number_of(recovered.finished.into(), "file", "files"),
            number_of(recovered.removed.into(), "file", "files")
        );
    }
    if outcome.interrupted {
        text += "\nInterrupted. Everything read so far is committed; the same command goes on from here.\n";
    }
    let (runs, hosts) = (number_of(outcome.fleet_runs, "run", "runs"), number_of(outcome.fleet_hosts, "host", "hosts"));
    let _ = write!(text, "\nThe fleet now holds {runs} of {hosts}.\n");
    text
}

/// Why files were left out, and what to do about it.
fn why(reason: SkipReason) -> String {
    match reason {
        SkipReason::Unreadable => "cannot be read".into(),
        SkipReason::NotAFile => "neither a file nor a folder".into(),
        SkipReason::TooLarge => format!("larger than {MAX_RESULT}, which no result is"),
        SkipReason::Empty => "empty".into(),
        SkipReason::CutOff => "cut off; copy them again from their hosts".into(),
        SkipReason::NotJson => "not JSON".into(),
        SkipReason::NotAResult => "JSON, but no results of memgauge".into(),
        SkipReason::OldSchema => "written by an older memgauge, with another schema; measure again".into(),
        SkipReason::NewSchema => "written by a newer memgauge; update this one".into(),
        SkipReason::Damaged => "damaged".into(),
        SkipReason::NoResults => words!["without results, as of ", Verb::Info, " or count"].to_string(),
        SkipReason::Duplicate => "their runs are in other files, too".into(),
        SkipReason::FleetFolder => "a fleet's own folder; to add its copies of results, name its folder results".into(),
    }
}

/// The detail in words.
fn about(reason: SkipReason, detail: &str) -> String {
    match reason {
        SkipReason::OldSchema | SkipReason::NewSchema => format!("schema version {detail}"),
        SkipReason::Duplicate => format!("as {detail}"),
        _ => detail.to_owned(),
    }
}
