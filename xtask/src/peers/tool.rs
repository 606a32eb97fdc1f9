//! A tool: its programs, its commands for a row, and how their output is read. Each tool has a file of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::command::Call;
use super::row::Row;

/// A peer.
pub(super) struct Tool {
    /// Its name in the table, and for `--only`.
    pub(super) name: &'static str,
    /// Names of its programs; each may be there or not.
    pub(super) files: &'static [&'static str],
    /// Why it runs only if it is named; `None` for the others.
    pub(super) slow: Option<&'static str>,
    /// A command whose output names its version, and the words before it; `None` if there is no such command.
    pub(super) version: Option<(&'static [&'static str], &'static str)>,
    /// Whether it prints the best of its passes. memgauge's best burst is then compared with it, not its median.
    pub(super) prints_best: bool,
    /// Its ways to measure a row; empty if it cannot. The fastest in a trial is used.
    pub(super) ways: fn(&Row, &Found) -> Vec<Way>,
}

/// A way to do a row.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// Which of the tool's, such as the kernel's name.
    pub(super) name: String,
    /// The command.
    pub(super) call: Call,
    /// The figure in what it says: nanoseconds, or 10⁹ application bytes a second.
    pub(super) read: fn(&str, &Row) -> Result<f64>,
}

impl Way {
    pub(super) fn new(name: impl Into<String>, call: Call, read: fn(&str, &Row) -> Result<f64>) -> Self {
        Self { name: name.into(), call, read }
    }
}

/// Programs that were found, and what was learnt of them before the comparison.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Where each is, by name.
    pub(super) files: BTreeMap<&'static str, PathBuf>,
    /// likwid-bench's kernels.
    pub(super) likwid_kernels: Vec<String>,
    /// STREAM's three arrays together.
    pub(super) stream_bytes: Option<u64>,
    /// Whether programs that do not ask get huge pages (`enabled` is `always`).
    pub(super) thp_always: bool,
}

impl Found {
    pub(super) fn get(&self, file: &str) -> Option<&Path> {
        self.files.get(file).map(PathBuf::as_path)
    }
}

/// The first number after `label`, which may be followed by blanks, a colon or an equals sign.
pub(super) fn number_after(text: &str, label: &str) -> Result<f64> {
    let rest = text.split_once(label).with_context(|| format!("no '{label}' in: {}", short(text)))?.1;
    let rest = rest.trim_start_matches([' ', '\t', ':', '=', '(']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | 'e' | '+' | '-')).unwrap_or(rest.len());
    rest[..end].parse().with_context(|| format!("no number after '{label}' in: {}", short(text)))
}

/// The end of an output, for messages.
pub(super) fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words[words.len().saturating_sub(40)..].join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_after_labels() {
        assert_eq!(number_after("a\nMByte/s:\t\t60200.87\n", "MByte/s").unwrap(), 60200.87);
        assert_eq!(number_after("x = 1.5e+03 MB", "x").unwrap(), 1500.0);
        assert!(number_after("nothing", "x").unwrap_err().to_string().contains("no 'x'"));
        assert!(number_after("x: none", "x").is_err());
    }
}
