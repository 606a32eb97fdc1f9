//! `memgauge reference`: published values of latency and bandwidth.

use anyhow::bail;
use clap::Args;
use memgauge_core::reference::{PublishedValue, microarchitecture, published};
use memgauge_render::{Appearance, Document, Format, Published};

use crate::cli::output::format_name;
use crate::console::Stream;
use crate::exit::{ExitStatus, UsageError};
use crate::machine;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  memgauge reference                       what there is, by CPU generation
  memgauge reference here                  about CPUs like this machine's
  memgauge reference 'zen 4' --sources     each with method and source")]
pub(crate) struct ReferenceArgs {
    /// A CPU generation or a part of a CPU's name; `here` is this machine's generation
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Show each value with its method and where it is published
    #[arg(long)]
    sources: bool,
    /// Format of standard output; JSON has everything
    #[arg(long, default_value = "text", value_parser = format_name(Published::FORMATS), help_heading = "Output")]
    format: Format,
}

/// Prints the table, or the part of it that the name selects.
pub(crate) fn reference(args: &ReferenceArgs) -> anyhow::Result<ExitStatus> {
    let values = select(args.name.as_deref())?;
    let stream = Stream::Output;
    let appearance = Appearance { width: stream.width(), colour: stream.colours(), ..Appearance::default() };
    stream.print(&Published { values, sources: args.sources }.render(args.format, &appearance)?)?;
    Ok(ExitStatus::SUCCESS)
}

fn select(name: Option<&str>) -> anyhow::Result<Vec<PublishedValue<'static>>> {
    let Some(name) = name else { return Ok(published().collect()) };
    if name == "here" {
        let identity = machine::read(machine::root())?.identity;
        let Some(microarch) = microarchitecture(&identity) else {
            let model = identity.model_name.unwrap_or_else(|| "a CPU without a name".to_owned());
            bail!("no published reference: the generation of {model} is not in the list");
        };
        let values: Vec<_> = published().filter(|v| v.microarch == microarch).collect();
        if values.is_empty() {
            bail!("no published reference for {microarch}");
        }
        return Ok(values);
    }
    let wanted = name.to_lowercase();
    let exact: Vec<_> = published().filter(|v| v.microarch.to_lowercase() == wanted).collect();
    let matching = |text: &str| text.to_lowercase().contains(&wanted);
    let values = if exact.is_empty() { published().filter(|v| matching(v.microarch) || matching(v.cpu_model)).collect() } else { exact };
    if values.is_empty() {
        bail!(UsageError(format!("no published value is of a CPU '{name}'; memgauge reference lists the generations")));
    }
    Ok(values)
}
