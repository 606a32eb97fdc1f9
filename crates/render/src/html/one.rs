//! The page of one result.

use askama::Template;
use memgauge_model::result::{HealthStatus, Report};

use super::data::Data;
use super::document::Document;
use super::figures::Figures;
use super::groups::{Group, groups, take};
use super::values::{AllValues, all};
use super::view::View;
use crate::appearance::PageOptions;
use crate::figure::results::{matrix_panels, panels_by_table, panels_over_time};
use crate::format::{Named, RenderError};
use crate::json::report_json;
use crate::text::block::{Block, Fact, Part};
use crate::text::headline::{TRUST, UNRELIABLE};
use crate::text::one_line;
use crate::text::plan::rules;
use crate::text::report::{machine_blocks, reliability_blocks, report_blocks};
use crate::text::verdict;

/// The page.
#[derive(Template)]
#[template(path = "one.html", whitespace = "minimize")]
struct ResultPage<'a> {
    document: Document,
    data: Option<Data>,
    result: ResultView<'a>,
}

/// One result in sections.
pub(super) struct ResultView<'a> {
    /// What sets its identifiers apart from those of other results in the page.
    pub(super) prefix: String,
    pub(super) name: String,
    /// When, by which program, and the user's labels.
    pub(super) about: Vec<String>,
    /// `ok`, `warning` or `error` with the word of the verdict; absent without a health check.
    pub(super) verdict: Option<(&'static str, &'static str)>,
    pub(super) verdicts: Vec<Group>,
    pub(super) incomplete: Vec<Group>,
    /// The headline in a line, where it has no tiles.
    pub(super) line: String,
    pub(super) tiles: Vec<Tile>,
    pub(super) machine: Vec<Group>,
    pub(super) machine_details: Vec<Group>,
    pub(super) reliability: Vec<Group>,
    pub(super) notes: Vec<Group>,
    pub(super) results: Vec<Group>,
    pub(super) values: Option<AllValues>,
    pub(super) how: Vec<String>,
    pub(super) command: String,
    pub(super) timing: Vec<Group>,
    pub(super) report: &'a Report,
}

/// A number of the headline.
pub(super) struct Tile {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) rest: String,
}

impl Tile {
    fn new(name: &str, text: &str) -> Self {
        let (value, rest) = match text.trim_start_matches('~').strip_prefix(|c: char| c.is_ascii_digit()) {
            Some(_) => text.split_at(number_ends(text)),
            None => text.split_once(" · ").or_else(|| text.split_once(": ")).unwrap_or((text, "")),
        };
        let rest = rest.trim_start_matches([' ', '·', ',', ':']);
        Self { name: name.to_owned(), value: value.to_owned(), rest: rest.to_owned() }
    }
}

/// A fact of the headline as a page shows it: how far to trust a result has one name, whatever it is.
pub(super) fn trust_named(Fact { name, text, .. }: &Fact) -> (&str, String) {
    match name.as_ref() {
        UNRELIABLE => (TRUST, format!("{UNRELIABLE}: {text}")),
        // A page of text says no more than how many.
        TRUST if text.starts_with(|c: char| c.is_ascii_digit()) => (TRUST, format!("good: {text}")),
        _ => (name, text.clone()),
    }
}

/// The end of a number in the text, after its unit, and after its half interval if it has one.
fn number_ends(text: &str) -> usize {
    let mut ends = text.match_indices(' ').map(|(at, _)| at).chain([text.len()]);
    let unit = ends.nth(1).unwrap_or(text.len());
    match text.get(unit..).and_then(|rest| rest.strip_prefix(" ±")) {
        Some(_) => ends.next().unwrap_or(text.len()),
        None => unit,
    }
}

/// The name of the machine, or of its CPU.
pub(super) fn machine_name(report: &Report) -> String {
    let host = report.run.host.as_ref().and_then(|host| host.hostname.clone());
    host.or_else(|| report.machine.identity.model_name.clone()).unwrap_or_else(|| report.machine.identity.arch.clone())
}

/// The class of a verdict.
const fn verdict_class(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Ok => "ok",
        HealthStatus::Unknown => "neutral",
        HealthStatus::Warning | HealthStatus::CouldNotMeasure => "warning",
        HealthStatus::Failure | HealthStatus::Incident => "error",
    }
}

/// The sections of a result. `figures`: makes its figures; without, they stand elsewhere.
pub(super) fn sections<'a>(result: Named<'a>, prefix: &str, figures: Option<&mut Figures>) -> ResultView<'a> {
    let report = result.report;
    let mut parts = groups(report_blocks(report), Part::Machine);
    if let Some(figures) = figures {
        add_figures(&mut parts, &result, figures);
    }
    let headline = take(&mut parts, |part| *part == Part::Headline);
    let mut tiles = Vec::new();
    for view in headline.iter().flat_map(|group| &group.views) {
        if let View::Block(Block::Facts(facts)) = view {
            tiles.extend(facts.iter().map(trust_named).map(|(name, text)| Tile::new(name, &text)));
        }
    }
    let measured = report.plan.is_some() || !report.is_empty();
    // Of a result of one section only the trust has a tile; the line says it as well as the number.
    if tiles.len() == 1 && report.health.is_none() && measured {
        tiles.clear();
    }
    let line = if tiles.is_empty() && report.health.is_none() && measured { one_line::line(report) } else { String::new() };
    let mut about =
        vec![report.started.utc.replace('T', " ").replace('Z', " UTC"), format!("{} {}", report.tool.name, report.tool.version)];
    about.extend(report.run.labels.iter().map(|(key, value)| format!("{key}={value}")));
    about.retain(|text| !text.is_empty());
    let mut machine = take(&mut parts, |part| *part == Part::Machine);
    // Program and time are in the page's header.
    machine.iter_mut().for_each(|group| group.title.clear());
    ResultView {
        prefix: prefix.to_owned(),
        name: if result.name.is_empty() { machine_name(report) } else { result.name.to_owned() },
        about,
        verdict: report.health.as_ref().map(|health| (verdict_class(health.status), verdict::word(health.status).0)),
        verdicts: take(&mut parts, |part| *part == Part::Verdict),
        incomplete: take(&mut parts, |part| *part == Part::Incomplete),
        line,
        tiles,
        machine,
        machine_details: groups(machine_blocks(report), Part::Machine).into_iter().map(|(_, group)| group).collect(),
        reliability: reliability(report),
        notes: take(&mut parts, |part| *part == Part::Notes),
        timing: take(&mut parts, |part| *part == Part::Timing),
        results: take(&mut parts, |_| true),
        values: all(&report.results),
        how: report.plan.as_ref().map(rules).unwrap_or_default(),
        command: command(&report.argv),
        report,
    }
}

/// Why numbers are degraded or missing. The marks that the text explains are footnotes in a page.
fn reliability(report: &Report) -> Vec<Group> {
    let groups = groups(reliability_blocks(report), Part::Notes).into_iter();
    groups.map(|(_, group)| Group { about: String::new(), ..group }).collect()
}

/// The command line as a shell would take it.
fn command(argv: &[String]) -> String {
    let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c));
    let quoted = |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Puts each figure to the first table of its section.
fn add_figures(parts: &mut Vec<(Part, Group)>, result: &Named<'_>, figures: &mut Figures) {
    let results = [*result];
    let mut add = |part: Part, panels: Vec<_>| {
        let made = figures.make(panels);
        if made.is_empty() {
            return;
        }
        match parts.iter_mut().find(|(of, _)| *of == part) {
            Some((_, group)) => group.add_figures(made),
            None => parts.push((part, Group { figures: made, ..Group::default() })),
        }
    };
    for ((section, directory, access), panels) in panels_by_table(&results) {
        let part = Part::Table(section, directory.map(str::to_owned), access);
        add(part, panels.into_iter().map(|(_, panel)| panel).collect());
    }
    add(Part::Matrices, matrix_panels(&results).into_iter().map(|(_, panel)| panel).collect());
    add(Part::State, panels_over_time(&results).into_iter().map(|(_, panel)| panel).collect());
}

/// The page of one result.
pub(super) fn page(options: &PageOptions, result: Named<'_>) -> Result<String, RenderError> {
    let mut figures = Figures::default();
    let view = sections(result, "", Some(&mut figures));
    let title = options.title.clone().unwrap_or_else(|| machine_name(result.report));
    let name = if result.name.is_empty() { machine_name(result.report) } else { result.name.to_owned() };
    let data = if options.data { Some(Data::new(&name, &report_json(result.report)?)) } else { None };
    Ok(ResultPage { document: Document::new(title, &figures.used), data, result: view }.render()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_show_the_number_large_and_the_rest_small() {
        let parts = |text: &str| {
            let tile = Tile::new("", text);
            (tile.value, tile.rest)
        };
        let pair = |value: &str, rest: &str| (value.to_owned(), rest.to_owned());
        assert_eq!(parts("112.7 ns ±0.7 · remote 186.4 ns ±1.0"), pair("112.7 ns ±0.7", "remote 186.4 ns ±1.0"));
        assert_eq!(parts("491.8 GB/s ±2.2 all-reads · 74 %"), pair("491.8 GB/s ±2.2", "all-reads · 74 %"));
        assert_eq!(parts("129.4 ns ±2.0 unmodified (HIT)"), pair("129.4 ns ±2.0", "unmodified (HIT)"));
        assert_eq!(parts("~352.3 ns at full load, up to ~245.9 GB/s"), pair("~352.3 ns", "at full load, up to ~245.9 GB/s"));
        assert_eq!(parts("good: 51 of 51 good; ± is"), pair("good", "51 of 51 good; ± is"));
        assert_eq!(
            [parts("112.7 ns"), parts("7"), parts("unreliable: 3 of 5")],
            [("112.7 ns", ""), ("7", ""), ("unreliable", "3 of 5")].map(|(a, b)| pair(a, b))
        );
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let argv = ["memgauge", "--label", "place=a b", "it's", ""].map(str::to_owned);
        assert_eq!(command(&argv), "memgauge --label 'place=a b' 'it'\\''s' ''");
    }
}
