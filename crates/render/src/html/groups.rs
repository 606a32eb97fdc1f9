//! Blocks of the text in groups: what stands below one heading.

use super::figures::Figure;
use super::view::View;
use crate::text::block::{Block, Part, Style};

/// What stands below one heading.
#[derive(Default)]
pub(super) struct Group {
    /// Empty where the text has no heading.
    pub(super) title: String,
    /// Describes its numbers.
    pub(super) about: String,
    pub(super) figures: Vec<Figure>,
    pub(super) views: Vec<View>,
    /// How to read it, and how it was measured.
    pub(super) details: Vec<View>,
}

impl Group {
    /// Calls its tables as their heading does; several are numbered.
    pub(super) fn name_tables(&mut self) {
        let title = &self.title;
        let tables = self.views.iter_mut().chain(&mut self.details).filter_map(|view| match view {
            View::Table(table) => Some(table),
            _ => None,
        });
        for (i, table) in tables.enumerate() {
            table.name = if i == 0 { title.clone() } else { format!("{title}, table {}", i + 1) };
        }
    }

    /// Adds figures; a title that is the group's is not shown twice.
    pub(super) fn add_figures(&mut self, figures: Vec<Figure>) {
        let title = &self.title;
        self.figures.extend(figures.into_iter().map(|figure| Figure { repeats: figure.title == *title, ..figure }));
    }
}

/// The groups of a page with the part that each belongs to. `first` is the part of what comes before any other.
pub(super) fn groups(blocks: Vec<Block>, first: Part) -> Vec<(Part, Group)> {
    let mut all: Vec<(Part, Group)> = Vec::new();
    let mut part = first;
    let mut fresh = true;
    for block in blocks {
        match block {
            Block::Part(next) => {
                part = next;
                fresh = true;
            }
            Block::Heading { title, about } => {
                all.push((part.clone(), Group { title, about, ..Group::default() }));
                fresh = false;
            }
            Block::Gap | Block::Sketch { .. } => {}
            block => {
                if std::mem::take(&mut fresh) || all.is_empty() {
                    all.push((part.clone(), Group::default()));
                }
                let Some((_, group)) = all.last_mut() else { continue };
                let detail = matches!(&block, Block::Text { style: Style::Detail, .. } | Block::Items { style: Style::Detail, .. });
                if detail { &mut group.details } else { &mut group.views }.push(View::new(block));
            }
        }
    }
    all.iter_mut().for_each(|(_, group)| group.name_tables());
    all
}

/// Takes the groups of the parts that `wanted` accepts.
pub(super) fn take(groups: &mut Vec<(Part, Group)>, wanted: impl Fn(&Part) -> bool) -> Vec<Group> {
    groups.extract_if(.., |(part, _)| wanted(part)).map(|(_, group)| group).collect()
}
