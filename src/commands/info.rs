//! `memgauge info`: shows the machine, and measures nothing but the clock.

use memgauge_model::persistent::PersistentDevice;
use memgauge_model::tiers;
use memgauge_os::clock::Clock;

use crate::cli::info::InfoArgs;
use crate::console::Stream;
use crate::exit::ExitStatus;
use crate::machine;
use crate::report;
use crate::sinks::Sinks;

/// Describes this machine, or a recorded one.
pub(crate) fn info(args: InfoArgs) -> anyhow::Result<ExitStatus> {
    let root = args.machine.as_deref().unwrap_or(machine::root());
    args.report.output.check_figures(&[], "a description of the machine is text: keep it with .json or .txt")?;
    let sinks = Sinks::of_results(&args.report.output, Stream::Output)?;
    let machine = machine::read(root)?;
    let mut report = report::blank(machine, root, &args.report.identity()?);
    report.memory_kinds = tiers::kinds(&report.machine);
    let regions = &report.machine.topology.persistent;
    let notes: Vec<_> = regions.iter().flat_map(|region| PersistentDevice::from(region).notes()).collect();
    report::add_notes(&mut report, notes);
    if args.machine.is_none() {
        report.environment.clock = Some(Clock::calibrate(root).report());
    }
    report::end(&mut report);
    sinks.keep(&report)?;
    Ok(ExitStatus::SUCCESS)
}
