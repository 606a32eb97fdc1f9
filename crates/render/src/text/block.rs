//! What a page consists of before it is laid out, for pages that are no text.

use memgauge_model::traffic::Access;

use super::column::Column;
use crate::groups::Section;

/// How a line is shown when colours are on. Colours do not change the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    /// What a table means and how it was measured: dimmed, and only on pages that explain everything.
    Detail,
    Warning,
    Error,
}

/// What the blocks that follow belong to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// Who measured, when, and which machine in which state.
    Machine,
    /// That the run is incomplete, and why.
    Incomplete,
    /// The verdict of a health check.
    Verdict,
    /// What most readers look for.
    Headline,
    /// What stands before the tables: nodes, directories, tiers.
    Places,
    /// The tables of one section, directory and kind of access.
    Table(Section, Option<String>, Option<Access>),
    /// Transfers between every two of many CPUs.
    Matrices,
    /// What was published about such machines.
    Published,
    /// What counters counted, of the measurements or of a program.
    Counters,
    /// What a reader should know.
    Notes,
    /// How long it took.
    Timing,
}

/// A piece of a page.
pub(crate) enum Block {
    Part(Part),
    /// The title of a section, and what its numbers are.
    Heading {
        title: String,
        about: String,
    },
    /// A sentence or more, after a sign, such as the number of a footnote; the sign may be empty.
    Text {
        style: Style,
        sign: String,
        text: String,
    },
    /// What to do about what was just said.
    Advice(String),
    /// A name with what is known about it.
    Fact {
        name: String,
        text: String,
    },
    /// A line to paste into a shell.
    Command(String),
    /// Short texts that belong together.
    Items {
        style: Style,
        items: Vec<String>,
    },
    Table(Vec<Column>),
}
