//! `memgauge fleet`: its commands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

mod questions;

pub(crate) use questions::*;

use memgauge_fleet::IngestOutcome;
use memgauge_render::{Document, Format};

use super::output::format_name;

const AFTER_HELP: &str = "\
A fleet is a folder that keeps the values of many hosts' results as Parquet files: memgauge answers questions from it, and so do DuckDB, \
pandas, Polars and Spark. It begins with an ingest.

Examples:
  memgauge fleet ingest fleet/ results/        read every result below results/
  memgauge fleet outliers fleet/               which hosts are slower?
  memgauge fleet export fleet/ --format ocptv  the latest runs, for another tool";

/// The commands for many hosts.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Read results into a fleet's folder; damaged, old and duplicate ones are named and left out.
    Ingest(IngestArgs),
    /// Find the hosts that are slower than hosts like them.
    Outliers(OutliersArgs),
    /// Show what hosts of each kind measure, and from where on a host is flagged.
    Baseline(BaselineArgs),
    /// Show when the numbers of a host changed, and what changed with them.
    History(HistoryArgs),
    /// Write runs in the format of another tool: OCPTV, SuperBench, OpenMetrics, hwloc.
    Export(ExportArgs),
}

const INGEST_HELP: &str = "\
Folders are searched for files that end in .json, and so are the folders in them. A run that the fleet has already, by its run ID, is not \
read again, so the same command may be repeated. Runs are committed in batches: an ingest that is killed loses at most the batch that it \
was working on, and the next one clears up behind it. A second ingest waits for the first.

The results stay where they are; the fleet keeps their paths. With --copy it keeps the files, too.

Examples:
  memgauge fleet ingest fleet/ results/
  memgauge fleet ingest fleet/ --copy inbox/*.json
  memgauge fleet ingest fleet/ results/ --format json | jq '.skipped[].file'

Exit status:
  0    every result is in the fleet
  1    some files were left out; they are named
  4    no file could be used, or the fleet could not be written
  64   wrong usage
  130  interrupted; what was committed stays";

/// What to read, and where to.
#[derive(Debug, Args)]
#[command(after_help = INGEST_HELP)]
pub(crate) struct IngestArgs {
    /// The fleet's folder; it is made if there is none
    #[arg(value_name = "FLEET")]
    pub(crate) fleet: PathBuf,
    /// Results that memgauge wrote as JSON, or folders of them
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Keep a copy of each result in the fleet's folder, so that the originals may go
    #[arg(long)]
    pub(crate) copy: bool,
    /// Commit after this many runs. Smaller batches lose less when the ingest is killed, and make more files
    #[arg(long, value_name = "RUNS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Format of standard output; JSON names every file that was left out
    #[arg(long, default_value = "text", value_parser = format_name(IngestOutcome::FORMATS), help_heading = "Output")]
    pub(crate) format: Format,
    /// Print only the first line
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

const EXPORT_HELP: &str = "\
From a fleet, the latest run of each host is written.

Formats:
  ocptv                 OCP Test & Validation, schema 2.0: JSON lines, one test run after another
  superbench            a line for each host, for `sb result diagnosis --data-file`
  superbench-baseline   the median of each metric over the hosts, for its --baseline-file
  openmetrics           gauges with the label `host`, for Prometheus
  hwloc                 the topology and memory attributes of one host as XML, for lstopo and hwloc-info

Examples:
  memgauge fleet export fleet/ --format superbench -o results-summary.jsonl
  memgauge fleet export fleet/ --format superbench-baseline -o baseline.json
  memgauge fleet export fleet/ --format ocptv --host n17
  memgauge fleet export result.json --format hwloc -o node.xml

Exit status:
  0    written
  4    nothing to write, or it could not be written
  64   wrong usage";

/// What to write, and how.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ExportArgs {
    /// A fleet's folder, or results that memgauge wrote as JSON
    #[arg(value_name = "FROM", required = true)]
    pub(crate) from: Vec<PathBuf>,
    /// The other tool's format
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// Only this host, by its name or by the first eight or more digits of its machine id; may be repeated
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Only hosts of this kind: the name of a folder below the fleet's values/, or a part of it
    #[arg(long, value_name = "WORD")]
    pub(crate) fingerprint: Option<String>,
    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
}

/// The formats of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Ocptv,
    Superbench,
    SuperbenchBaseline,
    Openmetrics,
    Hwloc,
}
