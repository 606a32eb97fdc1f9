//! The page of several results: beside each other, then each in full.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use memgauge_model::experiment::Experiment;
use memgauge_model::properties::properties;

use super::data::Data;
use super::document::Document;
use super::figures::Figures;
use super::groups::Group;
use super::one::{ResultView, machine_name, sections, trust_named};
use super::values::beside;
use super::view::{Table, View, table};
use crate::appearance::PageOptions;
use crate::figure::results::{matrix_panels, panels_by_table};
use crate::format::{Named, RenderError};
use crate::groups::Section;
use crate::json::report_json;
use crate::text::block::{Block, Fact};
use crate::text::column::{Cell, Column};
use crate::text::comparison::field;
use crate::text::one_line;
use crate::text::report::headline_blocks;

/// The page.
#[derive(Template)]
#[template(path = "several.html", whitespace = "minimize")]
struct SideBySidePage<'a> {
    document: Document,
    /// Which results, and what each comes to.
    list: Vec<View>,
    headline: Vec<View>,
    differences: Vec<View>,
    sections: Vec<Group>,
    results: Vec<(ResultView<'a>, Option<Data>)>,
}

/// The page of several results.
pub(super) fn page(options: &PageOptions, results: &[Named<'_>]) -> Result<String, RenderError> {
    let mut figures = Figures::default();
    let sections_beside = side_by_side(results, &mut figures);
    let title = options.title.clone().unwrap_or_else(|| results.iter().map(|r| r.name).collect::<Vec<_>>().join(", "));
    let mut each = Vec::new();
    for (i, result) in results.iter().enumerate() {
        let data = if options.data { Some(Data::new(result.name, &report_json(result.report)?)) } else { None };
        each.push((sections(*result, &format!("result-{}-", i + 1), None), data));
    }
    let page = SideBySidePage {
        document: Document::new(title, &figures.used),
        list: vec![list(results)],
        headline: headline(results).into_iter().collect(),
        differences: differences(results).into_iter().collect(),
        sections: sections_beside,
        results: each,
    };
    Ok(page.render()?)
}

/// The results by name, with machine, time and what they come to.
fn list(results: &[Named<'_>]) -> View {
    let columns = [
        Column::text("result", results.iter().map(|r| r.name)),
        Column::text("machine", results.iter().map(|r| machine_name(r.report))),
        Column::text("started", results.iter().map(|r| r.report.started.utc.replace('T', " ").replace('Z', " UTC"))),
        Column::text("in a line", results.iter().map(|r| one_line::line(r.report))),
    ];
    unsorted("The results", &columns)
}

/// A table whose order has a meaning.
fn unsorted(name: &str, columns: &[Column]) -> View {
    View::Table(Table { sorted: false, ..table(columns).named(name) })
}

/// The headlines, a row for each number and a column for each result. `None` where no result has one.
fn headline(results: &[Named<'_>]) -> Option<View> {
    let facts = |block| if let Block::Facts(facts) = block { facts } else { Vec::new() };
    let all: Vec<Vec<Fact>> = results.iter().map(|result| headline_blocks(result.report).into_iter().flat_map(facts).collect()).collect();
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in all.iter().flatten().map(trust_named) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut columns = vec![Column::text("", names.iter().copied())];
    for (result, facts) in results.iter().zip(&all) {
        let fact = |name: &&str| facts.iter().map(trust_named).rfind(|(known, _)| known == name).map(|(_, text)| text);
        columns.push(Column::text(result.name, names.iter().map(fact)));
    }
    (!names.is_empty()).then(|| unsorted("Summary", &columns))
}

/// Differences between machines, their states and the runs, apart from the numbers.
fn differences(results: &[Named<'_>]) -> Option<View> {
    let all: Vec<_> = results.iter().map(|r| properties(r.report)).collect();
    let differ = |i: &usize| all.iter().map(|of| &of[*i].1).collect::<BTreeSet<_>>().len() > 1;
    let shown: Vec<usize> = (0..all.first().map_or(0, Vec::len)).filter(differ).collect();
    let mut columns = vec![Column::text("", shown.iter().map(|&i| field(all[0][i].0)))];
    for (result, of) in results.iter().zip(&all) {
        let value = |&i: &usize| Cell::Text(of[i].1.clone().unwrap_or_else(|| "not known".to_owned()));
        columns.push(Column::text(result.name, shown.iter().map(value)));
    }
    (!shown.is_empty()).then(|| unsorted("What differs besides the numbers", &columns))
}

/// The figures that results share and the table of their numbers, section by section.
fn side_by_side(results: &[Named<'_>], figures: &mut Figures) -> Vec<Group> {
    let mut panels: BTreeMap<Section, Vec<_>> = BTreeMap::new();
    for ((section, ..), some) in panels_by_table(results) {
        panels.entry(section).or_default().extend(some.into_iter().map(|(_, panel)| panel));
    }
    let measured: BTreeSet<Section> = results.iter().flat_map(|r| &r.report.results).map(Section::for_measurement).collect();
    let mut groups = Vec::new();
    for section in measured {
        let views = beside(results, section).into_iter().collect();
        let mut group = Group { title: section.title(), views, ..Group::default() };
        group.name_tables();
        group.add_figures(figures.make(panels.remove(&section).unwrap_or_default()));
        groups.push(group);
    }
    let matrices = figures.make(matrix_panels(results).into_iter().map(|(_, panel)| panel));
    if !matrices.is_empty() {
        groups.push(Group { title: Experiment::CacheToCacheMatrix.row().title.to_owned(), figures: matrices, ..Group::default() });
    }
    groups
}
