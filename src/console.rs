//! Standard output and standard error. Nothing else in the program prints, except clap and the progress bar.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use anyhow::{Context, anyhow};
use clap::error::ErrorKind;
use memgauge_model::note::{Note, NoteCode, Severity};
use memgauge_model::printable::escape_controls;
use memgauge_model::wording::native::{FrontEnd, Native};
use memgauge_os::process::{interprets_escapes, standard_output_was_closed};

/// Which of the two programs runs: messages start with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program(&'static str);

impl Program {
    /// The native command line.
    pub(crate) const MEMGAUGE: Self = Self("memgauge");
    /// The drop-in for mlc's command lines.
    pub(crate) const MLC: Self = Self("mlc");

    /// Writes one line to standard error.
    pub(crate) fn message(self, message: impl Display) {
        // If standard error is closed, the message is lost.
        let _ = writeln!(io::stderr().lock(), "{}: {}", self.0, printable(&message.to_string()));
    }

    /// Reports an error with its causes. clap prints its own: help and version go to standard output.
    pub(crate) fn error(self, error: &anyhow::Error) {
        match error.downcast_ref::<clap::Error>() {
            // If the stream is closed, the message is lost.
            Some(error) => match error.render().to_string().strip_prefix("error: ") {
                // Help of an option's values, which clap calls an error.
                Some(text) if error.kind() == ErrorKind::DisplayHelp => drop(Stream::Output.print(text.as_bytes())),
                _ => drop(error.print()),
            },
            None => self.message(format_args!("{error:#}")),
        }
    }

    /// Reports what could not be measured.
    pub(crate) fn not_measured(self, notes: &[Note]) {
        failures(notes).for_each(|note| self.message(format_args!("not measured: {}", with_advice(note))));
    }

    /// Reports that memory did not keep the data written to it.
    pub(crate) fn corrupted(self, notes: &[Note]) {
        notes.iter().filter(|n| n.code == NoteCode::MemoryCorrupted).for_each(|note| self.message(&note.message));
    }
}

/// Notes on what could not be measured.
pub(crate) fn failures(notes: &[Note]) -> impl Iterator<Item = &Note> {
    // These two are reported where they happen; they are not about a cell without a value.
    let elsewhere = |n: &&Note| n.code == NoteCode::MemoryCorrupted || n.code == NoteCode::PrefetchNotRestored;
    notes.iter().filter(move |n| n.severity == Severity::Error && !elsewhere(n))
}

/// A note's message, and what to do about it.
pub(crate) fn with_advice(note: &Note) -> String {
    Native.advised(&note.message, note.advice.as_ref())
}

/// The most characters of a message. A longer one repeats a file that was not made for memgauge.
const MAX_MESSAGE: usize = 2_000;

/// A message without what files and names of files may bring into it: control characters, which a terminal would obey, and great length.
fn printable(message: &str) -> String {
    let cut: String = message.chars().take(MAX_MESSAGE).collect();
    let more = if cut.len() < message.len() { "…" } else { "" };
    cut.split('\n').map(escape_controls).collect::<Vec<_>>().join("\n") + more
}

/// Columns of text without a terminal.
const NO_TERMINAL: usize = 100;
/// No terminal is narrower. One that says so does not know its width.
const MIN_COLUMNS: usize = 20;

/// Where a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Output,
    /// Standard error, if standard output belongs to another program.
    Error,
}

impl Stream {
    /// Writes everything, then flushes.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub(crate) fn print(self, bytes: &[u8]) -> anyhow::Result<()> {
        let write = |stream: &mut dyn Write| stream.write_all(bytes).and_then(|()| stream.flush());
        match self {
            // Rust's runtime has put /dev/null there, which takes everything.
            Self::Output if standard_output_was_closed() => Err(anyhow!("cannot write to standard output: it is closed")),
            Self::Output => write(&mut io::stdout().lock()).context("cannot write to standard output"),
            Self::Error => write(&mut io::stderr().lock()).context("cannot write to standard error"),
        }
    }

    /// Whether it is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Output => io::stdout().is_terminal(),
            Self::Error => io::stderr().is_terminal(),
        }
    }

    /// Whether to use colours.
    pub(crate) fn colours(self) -> bool {
        self.is_terminal()
            && interprets_escapes()
            && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
    }

    /// Columns of a page.
    pub(crate) fn width(self) -> usize {
        self.columns().unwrap_or(NO_TERMINAL)
    }

    /// Columns of the terminal, or what COLUMNS says.
    pub(crate) fn columns(self) -> Option<usize> {
        let size = match self {
            Self::Output => terminal_size::terminal_size_of(io::stdout()),
            Self::Error => terminal_size::terminal_size_of(io::stderr()),
        };
        let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns >= MIN_COLUMNS);
        asked.or_else(|| size.map(|(width, _)| usize::from(width.0)).filter(|columns| *columns >= MIN_COLUMNS))
    }
}

/// Whether the reader of a stream went away, which is not an error of this program.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
