//! memgauge: parse, plan, run, render. Two programs share it: `memgauge` and the drop-in `mlc`.

#[cfg(test)]
#[macro_use]
mod test_tasks;

mod cli;
mod commands;
mod console;
mod contents;
mod exit;
#[cfg(feature = "fuzz")]
pub mod fuzzing;
mod host;
mod input;
mod machine;
mod metrics_server;
mod mlc;
mod output_file;
mod prefetch;
mod progress;
mod quiet;
mod report;
mod run_folder;
mod runner;
mod signals;
mod sinks;
mod state_folder;

#[cfg(test)]
mod names_tests;
#[cfg(test)]
mod simulated_tests;

use std::path::Path;
use std::process::ExitCode;

use crate::cli::{Cli, Invocation};
use crate::commands::{
    advise, compare, count, fleet, info, interleave, loops, measure, prefetch as prefetchers, reference, render, residency, stamp, watch,
};
use crate::console::Program;
use crate::exit::ExitStatus;

/// The names under which the native program, or a link to it, is the drop-in. Scripts call the last one for wide loads and stores (`-Z`).
const DROP_IN_NAMES: [&str; 3] = ["mlc", "mlc.exe", "mlc_avx512"];

pub use machine::StandIn;

/// The native program. A link to it, or a copy, that has a name of the drop-in's is the drop-in.
pub fn main() -> ExitCode {
    start(Program::MEMGAUGE, main_by_name)
}

/// The native program where another machine stands in for this one.
pub fn main_on(machine: StandIn) -> ExitCode {
    _ = machine::STAND_IN.set(machine);
    main()
}

fn main_by_name() -> ExitCode {
    let name = std::env::args_os().next();
    if name.is_some_and(|name| Path::new(&name).file_name().is_some_and(|name| DROP_IN_NAMES.iter().any(|own| name == *own))) {
        return drop_in_main();
    }
    survive_limits();
    native_main()
}

fn native_main() -> ExitCode {
    match Cli::parse_line(&std::env::args_os().collect::<Vec<_>>()).map_err(Into::into).and_then(|cli| Ok(cli.invocation()?)) {
        Ok(Invocation::Mlc(arguments)) => exit(Program::MLC, mlc::run::run(&arguments)),
        Ok(Invocation::Measure(request)) => exit(Program::MEMGAUGE, measure::measure(*request)),
        Ok(Invocation::Info(args)) => exit(Program::MEMGAUGE, info::info(args)),
        Ok(Invocation::Count(args)) => exit(Program::MEMGAUGE, count::count(*args)),
        Ok(Invocation::Watch(args)) => exit(Program::MEMGAUGE, watch::watch(*args)),
        Ok(Invocation::Where(args)) => exit(Program::MEMGAUGE, residency::show_where(*args)),
        Ok(Invocation::Stamp(args)) => exit(Program::MEMGAUGE, stamp::stamp(*args)),
        Ok(Invocation::Loop(request)) => exit(Program::MEMGAUGE, loops::run_loop(*request)),
        Ok(Invocation::Render(args)) => exit(Program::MEMGAUGE, render::render(args)),
        Ok(Invocation::Report(args)) => exit(Program::MEMGAUGE, commands::report::report(&args)),
        Ok(Invocation::Compare(args)) => exit(Program::MEMGAUGE, compare::compare(*args)),
        Ok(Invocation::Advise(args)) => exit(Program::MEMGAUGE, advise::advise(&args)),
        Ok(Invocation::Fleet(command)) => exit(Program::MEMGAUGE, fleet::fleet(command)),
        Ok(Invocation::Reference(args)) => exit(Program::MEMGAUGE, reference::reference(&args)),
        Ok(Invocation::Prefetch(action)) => exit(Program::MEMGAUGE, prefetchers::prefetch(action)),
        Ok(Invocation::Weights(action)) => exit(Program::MEMGAUGE, interleave::change(action)),
        Err(error) => exit(Program::MEMGAUGE, Err(error)),
    }
}

/// The drop-in under its own name.
pub fn mlc_main() -> ExitCode {
    start(Program::MLC, drop_in_main)
}

/// Runs a program with as much stack as it needs.
fn start(program: Program, main: fn() -> ExitCode) -> ExitCode {
    memgauge_os::process::run(main).unwrap_or_else(|error| {
        let advice = memgauge_os::process::MORE_STACK;
        exit(program, Err(anyhow::anyhow!("cannot start a thread that has enough stack: {error}; {advice}")))
    })
}

fn drop_in_main() -> ExitCode {
    survive_limits();
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    // A run that switches prefetchers starts this file again as its guardian. No command line of mlc's begins with these words.
    if let [prefetch, guard, id] = &arguments[..]
        && prefetch == "prefetch"
        && guard == "guard"
    {
        return exit(Program::MLC, prefetchers::guard(&id.to_string_lossy()));
    }
    exit(Program::MLC, mlc::run::run(&arguments))
}

/// A write beyond the limit on file sizes shall fail with a reason. Where the kernel refuses the handler, it ends the program, as usual.
fn survive_limits() {
    let _ = memgauge_os::signals::survive_file_size_limit();
}

/// Reports an error and chooses the exit status. A reader that went away is not an error.
fn exit(program: Program, result: anyhow::Result<ExitStatus>) -> ExitCode {
    let status = result.unwrap_or_else(|error| {
        if console::is_broken_pipe(&error) {
            return ExitStatus::SUCCESS;
        }
        program.error(&error);
        ExitStatus::from(&error)
    });
    status.into()
}
