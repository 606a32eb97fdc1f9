//! What a page is to be like.

/// A page of HTML: one result in full, or several beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOptions {
    /// What the page is called; the name of the machine if absent.
    pub title: Option<String>,
    /// Whether the results are in the page as JSON, too, to be saved from it.
    pub data: bool,
}

impl Default for PageOptions {
    fn default() -> Self {
        Self { title: None, data: true }
    }
}
