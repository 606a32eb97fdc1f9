//! `memgauge reference`: published values of latency and bandwidth.

use anyhow::bail;
use memgauge_analysis::reference::{PublishedValue, microarchitecture, published};
use memgauge_render::{Appearance, Document, Published};

use crate::cli::reference::ReferenceArgs;
use crate::console::Stream;
use crate::exit::{ExitStatus, UsageError};
use crate::machine;

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
