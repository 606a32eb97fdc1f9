//! The arguments of `memgauge reference`.

use clap::Args;
use memgauge_render::{Document, Format, Published};

use super::output::format_name;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge reference                       what there is, by CPU generation
  memgauge reference here                  about CPUs like this machine's
  memgauge reference 'zen 4' --sources     each with method and source")]
pub(crate) struct ReferenceArgs {
    /// A CPU generation or a part of a CPU's name; `here` is this machine's generation
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Show each value with its method and where it is published
    #[arg(long)]
    pub(crate) sources: bool,
    /// Format of standard output; JSON has everything
    #[arg(long, default_value = "text", value_parser = format_name(Published::FORMATS), help_heading = "Output")]
    pub(crate) format: Format,
}
