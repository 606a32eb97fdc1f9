//! Options for loaders' traffic that is not every line of a buffer in order.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use memgauge_core::spec::TrafficSpec;
use memgauge_core::traffic::{Access, LineContent, LineUse};
use memgauge_core::units::Bytes;

/// Lines of a contents file that are read: more than that repeat too late to be a pattern.
const MOST_LINES: usize = 256;

/// How loaders go over their memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub(crate) struct Shape {
    /// Order in which lines are visited
    #[arg(long, value_name = "ORDER", default_value = "sequential")]
    access: AccessArg,
    /// Random access: finish a window of this size before the next [default: the whole buffer]
    #[arg(long, value_name = "SIZE", requires = "access")]
    random_window: Option<Bytes>,
    /// Visit one line every so many bytes
    #[arg(long, value_name = "SIZE")]
    line_stride: Option<Bytes>,
    /// What to do with a line: touch all of it, touch a part of it, write it back to memory after the store (CLWB, CLFLUSHOPT), or compare
    /// checksums of what is read, pass by pass, with what was written
    #[arg(long = "line", value_name = "USE", default_value = "whole")]
    line_use: LineArg,
    /// All loaders read one buffer: the bandwidth of shared caches when it is small
    #[arg(long)]
    shared_buffer: bool,
    /// Fill buffers with the lines of FILE, again and again: 128 hexadecimal digits each, 64 bytes. Stores write the first of them
    #[arg(long, value_name = "FILE")]
    contents: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessArg {
    Sequential,
    Random,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LineArg {
    Whole,
    Part,
    WriteBack,
    Check,
}

impl Shape {
    /// # Errors
    /// When the file of contents cannot be read or is none.
    pub(crate) fn apply(self, traffic: &mut TrafficSpec) -> anyhow::Result<()> {
        traffic.access = match self.access {
            AccessArg::Sequential => Access::Sequential,
            AccessArg::Random => Access::Random,
        };
        traffic.window = self.random_window;
        traffic.stride = self.line_stride;
        traffic.line = match self.line_use {
            LineArg::Whole => LineUse::Whole,
            LineArg::Part => LineUse::Part,
            LineArg::WriteBack => LineUse::WrittenBack,
            LineArg::Check => LineUse::Checked,
        };
        traffic.shared = self.shared_buffer;
        traffic.contents = self.contents.map(|path| read_contents(&path)).transpose()?.unwrap_or_default();
        Ok(())
    }
}

/// Lines of 128 hexadecimal digits; empty ones are left out.
///
/// # Errors
/// With the file's name and the line's number.
pub(crate) fn read_contents(path: &Path) -> anyhow::Result<Vec<LineContent>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let contents: Vec<LineContent> = lines
        .map(|(number, line)| line.parse().with_context(|| format!("line {} of {}", number + 1, path.display())))
        .collect::<anyhow::Result<_>>()?;
    ensure!(!contents.is_empty(), "{} has no line of 128 hexadecimal digits", path.display());
    ensure!(contents.len() <= MOST_LINES, "{} has {} lines; at most {MOST_LINES} are taken", path.display(), contents.len());
    Ok(contents)
}
