//! `memgauge report`: which results, and what the page is called.

use std::path::PathBuf;

use clap::Args;

const AFTER_HELP: &str = "\
The page holds everything and loads nothing: verdict or headline, machine, what degraded the run, figures, tables with limits, how to read \
them, every number, the command line, and the result itself as JSON to save. Several results stand beside each other.

To tell a real change from chance, use compare. It makes its own page: memgauge compare before/ -- after/ -o change.html

Examples:
  memgauge report result.json -o report.html
  memgauge report node1.json node2.json node3.json -o nodes.html
  memgauge report result.json --title 'Rack 12, new BIOS' -o report.html
  memgauge quick --format json | memgauge report - -o check.html

Exit status:
  0    the page is written
  4    it could not be written
  64   wrong usage, or a file that is not a result";

/// What `memgauge report` takes.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReportArgs {
    /// Results that memgauge wrote as JSON, or folders of them; - is standard input
    #[arg(required = true, value_name = "RESULT")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the page to this file, which ends in .html [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Title of the page [default: the name of the machine, or those of the results]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Leave the results as JSON out of the page, which makes it smaller
    #[arg(long)]
    pub(crate) no_data: bool,
}
