//! The page of a comparison.

use askama::Template;
use memgauge_analysis::comparison::{Comparison, ComparisonVerdict, Side};
use memgauge_model::wording::number_of;

use super::data::Data;
use super::document::{Document, without_controls};
use super::figures::{Figure, Figures};
use super::groups::{Group, groups};
use super::view::{View, table};
use crate::figure::ratios::panels;
use crate::format::RenderError;
use crate::json::json_text;
use crate::number::percent;
use crate::text::block::{Block, Part};
use crate::text::column::{Cell, Column};
use crate::text::comparison::{comparison_blocks, title};

/// Rows that are shown before the rest of a table is folded: a phone's screen has room for these and the verdict.
const SHOWN: usize = 6;

/// The page.
#[derive(Template)]
#[template(path = "comparison.html", whitespace = "minimize")]
struct ComparisonPage {
    document: Document,
    class: &'static str,
    verdict: Vec<Group>,
    /// The numbers that the verdict is about.
    decisive: Vec<Group>,
    /// What else differs.
    differences: Vec<Group>,
    figures: Vec<Figure>,
    folded: Vec<Folded>,
    how: Vec<String>,
    runs: Vec<View>,
    data: Data,
}

/// What phones show on demand.
struct Folded {
    title: String,
    about: String,
    /// Its script unfolds it where there is room.
    wide: bool,
    group: Group,
}

impl Folded {
    fn new(group: Group, wide: bool) -> Self {
        let rows: usize = group.views.iter().map(|view| if let View::Table(table) = view { table.rows.len() } else { 0 }).sum();
        let title = if rows > 0 { format!("{} ({rows})", group.title) } else { group.title };
        Self { title, about: group.about, wide, group: Group { title: String::new(), about: String::new(), ..group } }
    }
}

/// A comparison as a page that opens offline: the verdict and the numbers behind it, then what else differs, a figure, every number, and the
/// data itself.
///
/// # Errors
/// When it cannot be written as JSON.
pub(crate) fn comparison_html(comparison: &Comparison) -> Result<Vec<u8>, RenderError> {
    let mut figures = Figures::default();
    let pictures = figures.make(panels(comparison));
    let all: Vec<Group> = groups(comparison_blocks(comparison, true), Part::Verdict).into_iter().map(|(_, group)| group).collect();
    let (verdict, mut groups): (Vec<Group>, Vec<Group>) = all.into_iter().partition(|group| group.title.is_empty());
    groups.iter_mut().flat_map(|group| &mut group.views).for_each(|view| {
        if let View::Table(table) = view {
            table.stacked = true;
        }
    });
    // What comes before the first table of numbers.
    let tables = groups.iter().position(|group| group.views.iter().any(|view| matches!(view, View::Table(_)))).unwrap_or(0);
    let rest = groups.split_off(tables);
    let same = title(ComparisonVerdict::Same);
    let decides = |group: &Group| comparison.verdict != ComparisonVerdict::Same && group.title == title(comparison.verdict);
    let (mut decisive, rest): (Vec<Group>, Vec<Group>) = rest.into_iter().partition(decides);
    let mut folded: Vec<Folded> = decisive.iter_mut().filter_map(rows_behind).map(|more| Folded::new(more, true)).collect();
    folded.extend(rest.into_iter().map(|group| {
        let wide = group.title != same;
        Folded::new(group, wide)
    }));
    let title = format!("{} → {}", comparison.before.name, comparison.after.name);
    let json = json_text(comparison)?;
    let page = ComparisonPage {
        document: Document::new(title, &figures.used),
        class: match comparison.verdict {
            ComparisonVerdict::Better | ComparisonVerdict::Same => "ok",
            ComparisonVerdict::Inconclusive => "warning",
            ComparisonVerdict::Worse => "error",
        },
        verdict,
        decisive,
        differences: groups,
        figures: pictures,
        folded,
        how: vec![
            format!("margin ±{}", percent(comparison.margin)),
            format!("seed of the bootstrap {}", comparison.seed),
            number_of(comparison.cells.len() as u64, "number", "numbers"),
        ],
        runs: vec![runs(&comparison.before, &comparison.after)],
        data: Data::new("comparison", &json),
    };
    Ok(without_controls(&page.render()?))
}

/// Takes the rows off a group's table that follow the first few, as a group of their own.
fn rows_behind(group: &mut Group) -> Option<Group> {
    let table = group.views.iter_mut().find_map(|view| if let View::Table(table) = view { Some(table) } else { None })?;
    if table.rows.len() <= SHOWN + 1 {
        return None;
    }
    let more = table.split_off(SHOWN);
    Some(Group { title: format!("{}, smaller changes", group.title), views: vec![View::Table(more)], ..Group::default() })
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
    View::Table(table(&columns).named("The runs"))
}
