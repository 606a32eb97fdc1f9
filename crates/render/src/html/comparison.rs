//! The page of a comparison.

use askama::Template;
use memgauge_core::comparison::{Comparison, ComparisonVerdict, Side};
use memgauge_core::wording::number_of;

use super::data::Data;
use super::document::Document;
use super::figures::{Figure, Figures};
use super::groups::{Group, groups};
use super::view::{View, table};
use crate::figure::ratios::panels;
use crate::format::RenderError;
use crate::number::percent;
use crate::text::block::Part;
use crate::text::column::{Cell, Column};
use crate::text::comparison::comparison_blocks;

/// The page.
#[derive(Template)]
#[template(path = "comparison.html", whitespace = "minimize")]
struct Page {
    document: Document,
    class: &'static str,
    verdict: Vec<Group>,
    /// What else differs.
    differences: Vec<Group>,
    figures: Vec<Figure>,
    groups: Vec<Group>,
    how: Vec<String>,
    runs: Vec<View>,
    data: Data,
}

/// A comparison as a page that opens offline: the verdict, what else differs, a figure, every number, and the data itself.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn comparison_html(comparison: &Comparison) -> Result<Vec<u8>, RenderError> {
    let mut figures = Figures::default();
    let pictures = figures.make(panels(comparison));
    let all: Vec<Group> = groups(comparison_blocks(comparison), Part::Verdict).into_iter().map(|(_, group)| group).collect();
    let (verdict, mut groups): (Vec<Group>, Vec<Group>) = all.into_iter().partition(|group| group.title.is_empty());
    // What comes before the first table of numbers.
    let tables = groups.iter().position(|group| group.views.iter().any(|view| matches!(view, View::Table(_)))).unwrap_or(0);
    let rest = groups.split_off(tables);
    let title = format!("{} → {}", comparison.before.name, comparison.after.name);
    let mut json = serde_json::to_vec_pretty(comparison)?;
    json.push(b'\n');
    let page = Page {
        document: Document::new(title, &figures.used),
        class: match comparison.verdict {
            ComparisonVerdict::Better | ComparisonVerdict::Same => "ok",
            ComparisonVerdict::Inconclusive => "warning",
            ComparisonVerdict::Worse => "error",
        },
        verdict,
        differences: groups,
        figures: pictures,
        groups: rest,
        how: vec![
            format!("margin ±{}", percent(comparison.margin)),
            format!("seed of the bootstrap {}", comparison.seed),
            number_of(comparison.cells.len() as u64, "number", "numbers"),
        ],
        runs: vec![runs(&comparison.before, &comparison.after)],
        data: Data::new("comparison", &json),
    };
    Ok(page.render()?.into_bytes())
}

/// The runs of both sides.
fn runs(before: &Side, after: &Side) -> View {
    let all: Vec<_> = [("before", before), ("after", after)]
        .into_iter()
        .flat_map(|(name, side)| side.runs.iter().map(move |r| (name, side, r)))
        .collect();
    let columns = [
        Column::text("side", all.iter().map(|(name, ..)| *name)),
        Column::text("from", all.iter().map(|(_, side, _)| side.name.as_str())),
        Column::text("started", all.iter().map(|(.., run)| run.started.replace('T', " ").replace('Z', " UTC"))),
        Column::text("run", all.iter().map(|(.., run)| run.id.as_str())),
        Column::text("", all.iter().map(|(.., run)| (!run.complete).then(|| Cell::Text("incomplete".to_owned())))),
    ];
    View::Table(table(&columns))
}
