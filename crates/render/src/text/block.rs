//! Pieces of a page, before they are laid out as text or shown in HTML.

use memgauge_model::traffic::Access;

use super::column::Column;
use crate::groups::Section;

/// How a line is shown when colours are on. Colours do not change the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    /// Explains a table and how it was measured: dimmed, and only on pages that explain everything.
    Detail,
    Warning,
    Error,
}

/// What the blocks that follow belong to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The version of the program, the time, the machine and its state.
    Machine,
    /// That the run is incomplete, and why.
    Incomplete,
    /// The verdict of a health check.
    Verdict,
    /// What most readers look for.
    Headline,
    /// The part before the tables: nodes, directories, tiers.
    Places,
    /// The tables of one section, directory and kind of access.
    Table(Section, Option<String>, Option<Access>),
    /// Transfers between every two of many CPUs.
    Matrices,
    /// What was published about such machines.
    Published,
    /// The state of the machine, by stamps.
    State,
    /// Numbers from counters, of the measurements or of a program.
    Counters,
    /// What a reader should know.
    Notes,
    /// How long it took.
    Timing,
}

/// A piece of a page.
pub(crate) enum Block {
    Part(Part),
    /// An empty line, unless there is one or the page is still empty. HTML has distances of its own.
    Gap,
    /// The title of a section and, dimmed, what its numbers are.
    Heading {
        title: String,
        about: String,
    },
    /// A sentence or more, wrapped, and what to do about it. `first` and `rest` are the indentations; the first may hold a sign, such as the
    /// number of a footnote.
    Text {
        style: Style,
        first: String,
        rest: String,
        text: String,
        advice: Option<String>,
    },
    /// One line, as it is.
    Line {
        style: Style,
        text: String,
    },
    Facts(Vec<Fact>),
    /// Lines to paste into a shell.
    Commands(Vec<String>),
    /// Short texts that belong together, broken only between them.
    Items {
        style: Style,
        indent: &'static str,
        items: Vec<String>,
    },
    /// A curve in one line of block characters between its ends: the heights of its points, 0 to 1. HTML has a figure.
    Sketch {
        from: String,
        to: String,
        heights: Vec<Option<f64>>,
    },
    Table {
        columns: Vec<Column>,
        narrow: Narrow,
    },
}

/// A name, padded to `columns`, with the facts about it.
pub(crate) struct Fact {
    pub(crate) style: Style,
    pub(crate) indent: &'static str,
    pub(crate) name: String,
    pub(crate) columns: usize,
    pub(crate) text: String,
}

/// How a table is shown that is wider than the page without its optional columns.
pub(crate) enum Narrow {
    /// It stays wider.
    Wide,
    /// Two lines for each row stand in its place.
    Lines(Vec<[String; 2]>),
    /// Columns that do not fit stand below the others, after the first column again.
    Below,
}
