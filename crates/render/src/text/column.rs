//! Columns of tables, and what stands in their cells.

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Blank,
    Text(String),
    Value {
        /// Digits, or a dash.
        number: String,
        /// `±0.4` or `(16.0–44.2)`, or empty.
        half: String,
        /// What firmware claims, or empty.
        claim: String,
        /// Numbers of footnotes, or empty.
        marks: String,
    },
}

/// A text, or nothing where an option is empty.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Self::Blank, Into::into)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Cell {
    /// A number without interval.
    pub(crate) fn number(number: String) -> Self {
        Self::Value { number, half: String::new(), claim: String::new(), marks: String::new() }
    }
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Blank => true,
            Self::Text(t) => t.is_empty(),
            // A dash says that something was not measured.
            Self::Value { .. } => false,
        }
    }
}

/// A column.
pub(crate) struct Column {
    pub(crate) head: String,
    /// Numbers, aligned to the right.
    pub(crate) right: bool,
    pub(super) optional: bool,
    pub(crate) cells: Vec<Cell>,
}

impl Column {
    /// A column of texts, aligned to the left.
    pub(crate) fn text(head: impl Into<String>, cells: impl IntoIterator<Item = impl Into<Cell>>) -> Self {
        Self { head: head.into(), right: false, optional: false, cells: cells.into_iter().map(Into::into).collect() }
    }
    /// A column of numbers, aligned to the right.
    pub(crate) fn numbers(head: impl Into<String>, cells: impl IntoIterator<Item = impl Into<Cell>>) -> Self {
        Self { right: true, ..Self::text(head, cells) }
    }
    /// May be left out where the page is narrow.
    pub(crate) fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
    /// Left out unless this holds.
    pub(crate) fn only_if(mut self, shown: bool) -> Self {
        self.cells.retain(|_| shown);
        self
    }
}
