//! The native command line → [`memgauge_model::spec::Spec`]: the commands, each in a file of its own. Each option is defined once: name, help and
//! effect side by side.

pub(crate) mod advise;
mod c2c;
pub(crate) mod compare;
pub(crate) mod count;
pub(crate) mod fleet;
mod help;
pub(crate) mod info;
pub(crate) mod interleave;
mod latency;
mod loaders;
pub(crate) mod loops;
pub(crate) mod options;
pub(crate) mod output;
mod pmem;
pub(crate) mod prefetch;
mod quick;
pub(crate) mod reference;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod residency;
pub(crate) mod run;
mod scan;
pub(crate) mod stamp;
mod sweep;
#[cfg(test)]
mod tests;
mod tiers;
pub(crate) mod values;
pub(crate) mod watch;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use memgauge_model::experiment::Experiment;
use memgauge_model::spec::{PrefetchSpec, Spec, SuiteSpec, Task};

use self::advise::AdviseArgs;
use self::c2c::C2cArgs;
use self::compare::CompareArgs;
use self::count::CountArgs;
use self::fleet::{FleetArgs, FleetCommand};
use self::info::InfoArgs;
use self::interleave::{InterleaveArgs, InterleaveRequest, WeightsAction};
use self::latency::LatencyArgs;
use self::loaders::{BandwidthArgs, LoadedArgs};
use self::loops::{ChaseArgs, LoopRequest, StreamArgs};
use self::options::{Load, Prefetch, with_default};
use self::output::panels;
use self::pmem::PmemArgs;
use self::prefetch::{PrefetchAction, PrefetchArgs, PrefetchCommand};
use self::quick::QuickArgs;
use self::reference::ReferenceArgs;
use self::render::RenderArgs;
use self::report::ReportArgs;
use self::request::{Common, Request};
use self::residency::WhereArgs;
use self::run::RunArgs;
use self::scan::ScanArgs;
use self::stamp::StampArgs;
use self::sweep::SweepArgs;
use self::tiers::TiersArgs;
use self::watch::WatchArgs;
use crate::exit::UsageError;

const AFTER_HELP: &str = "\
Examples:
  memgauge                                   measure everything
  memgauge -o before.json                    the same, and keep the result
  memgauge latency --matrix                  idle latency between all nodes
  memgauge bandwidth --mix 2:1 --cpu 0-1     one mix, two CPUs
  memgauge loaded --mix all-reads --mix 2:1  two curves of latency under load
  memgauge --plan                            what would be done, for how long
  memgauge quick                             a verdict in under 45 s
  memgauge render before.json                show a saved result
  memgauge report before.json -o page.html   a page to send or to print
  memgauge compare before.json after.json    what a change did

Exit status:
  0    measured
  1    measured in part
  3    memory did not keep what was written to it
  4    could not measure
  64   wrong usage
  130  interrupted
quick, compare, stamp, where, advise, count, stream and chase have their own; see their help.";

const ABOUT: &str = "\
Measures how this machine's memory behaves: latency, bandwidth, latency under load, cache-to-cache transfers. Without a command, the whole \
suite is measured. Needs no root; says what it could not do, and why.";

/// The native command line.
#[derive(Debug, Parser)]
#[command(
    name = "memgauge",
    // With the commit, for whoever reports a fault.
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("MEMGAUGE_BUILD"), ")"),
    about = ABOUT,
    long_about = None,
    args_conflicts_with_subcommands = true,
    after_help = AFTER_HELP,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    suite: SuiteArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the machine as memgauge sees it: CPUs, caches, memory nodes, page pools, and limits of this process.
    Info(InfoArgs),
    /// Measure idle latency: one CPU and node, or all of them.
    Latency(LatencyArgs),
    /// Measure bandwidth: one mix of reads and writes, the usual ten, a node matrix, or 1 to n CPUs.
    Bandwidth(BandwidthArgs),
    /// Measure latency while other CPUs load memory, from idle to saturation.
    Loaded(LoadedArgs),
    /// Measure transfers from one CPU's cache to another's.
    C2c(C2cArgs),
    /// Check the machine's memory in under 45 s: a verdict, findings with advice, and an exit status for schedulers.
    Quick(QuickArgs),
    /// Measure what a file tells each CPU to do.
    Run(RunArgs),
    /// Measure the bandwidth of every GiB of free memory, find weak regions, and check that memory keeps what is written.
    Scan(ScanArgs),
    /// Measure latency and bandwidth over the working set, and find the caches in them.
    Sweep(SweepArgs),
    /// Measure persistent memory, or any directory's files: latency, bandwidth and their curves for every socket and directory.
    Pmem(PmemArgs),
    /// Compare the kinds of memory: DRAM, HBM, CXL, persistent memory; alone, and disturbed by load on another.
    Tiers(TiersArgs),
    /// Find the weights for interleaving pages over tiers of memory: DRAM, CXL, HBM.
    Interleave(InterleaveArgs),
    /// Read a buffer from start to end: bandwidth of one thread, with a checksum of what was read.
    Stream(StreamArgs),
    /// Follow pointers through a buffer: nanoseconds per hop of one thread, and where it ended.
    Chase(ChaseArgs),
    /// Count hardware events of a program and its children: miss rates, parallelism, latency per miss.
    Count(CountArgs),
    /// Tell states of the machine apart: a stamp now, against an earlier one, or before and after a program.
    Stamp(StampArgs),
    /// Watch the state of the machine: a line for each change, for minutes or days.
    Watch(Box<WatchArgs>),
    /// Show on which nodes the memory of programs lies, what that costs, and what would help.
    Where(Box<WhereArgs>),
    /// Show, compare and switch hardware prefetchers.
    Prefetch(PrefetchArgs),
    /// Show a saved result in another format.
    Render(RenderArgs),
    /// Make one page of results, to send or to print: HTML that opens offline, with figures, tables and the data.
    Report(ReportArgs),
    /// Compare results before a change with results after it: better, worse, the same, or not known yet.
    Compare(Box<CompareArgs>),
    /// Advise from results: threads, tokens a second, nodes, pages, prefetchers; each with the numbers behind it.
    Advise(AdviseArgs),
    /// Keep the results of many hosts together, and ask about them.
    Fleet(FleetArgs),
    /// List published latencies and bandwidths by CPU generation, with their sources.
    Reference(ReferenceArgs),
    /// Take the command lines of Intel MLC and print its tables: memgauge mlc --help, man mlc.
    #[command(disable_help_flag = true)]
    Mlc(MlcArgs),
}

/// What the suite measures.
const SUITE: [Experiment; 5] =
    [Experiment::IdleLatency, Experiment::Bandwidth, Experiment::BandwidthMatrix, Experiment::LoadedLatency, Experiment::CacheToCache];

#[derive(Debug, Args)]
#[command(mut_arg("budget", |budget| with_default(budget, "0.48s")), mut_arg("panels", |arg| panels(arg, &SUITE)))]
struct SuiteArgs {
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    prefetch: Prefetch,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
struct MlcArgs {
    /// A mode and letters as mlc takes them, such as --loaded_latency -t5 -W3
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// What a command line asks for.
pub(crate) enum Invocation {
    Measure(Box<Request>),
    Info(InfoArgs),
    Count(Box<CountArgs>),
    Stamp(Box<StampArgs>),
    Watch(Box<WatchArgs>),
    Where(Box<WhereArgs>),
    Loop(Box<LoopRequest>),
    Render(RenderArgs),
    Report(ReportArgs),
    Compare(Box<CompareArgs>),
    Advise(AdviseArgs),
    Fleet(FleetCommand),
    Reference(ReferenceArgs),
    Prefetch(PrefetchAction),
    Weights(WeightsAction),
    /// Do what mlc would do with these arguments.
    Mlc(Vec<OsString>),
}

impl SuiteArgs {
    fn request(self) -> Request {
        let (prefetch, peak_gbs) = (self.prefetch.prefetch, self.load.limit.peak_gbs);
        let task = Task::Suite(SuiteSpec { buffer: self.common.size, load: self.load.spec() });
        self.common.request(Spec { prefetch, peak_gbs, ..Spec::new(task) })
    }
}

impl Cli {
    /// Reads a command line, with the program's name.
    ///
    /// # Errors
    /// When it cannot be read, or asks for help: `-h` for the options that matter most, `--help` for all.
    pub(crate) fn parse_line(words: &[OsString]) -> Result<Self, clap::Error> {
        let asks_for_all = || words.iter().any(|word| word == "--help" || word == "help");
        let read = Self::command().try_get_matches_from(words).and_then(|matches| {
            interleave::check_alone(&Self::command(), &matches)?;
            Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))
        });
        read.map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp if !asks_for_all() => help::brief(Self::command()).try_get_matches_from(words).err().unwrap_or(error),
            ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict => help::with_advice(error, &Self::command(), words),
            _ => error,
        })
    }

    /// # Errors
    /// When a file that the command line names cannot be read or is wrong.
    pub(crate) fn invocation(self) -> Result<Invocation, UsageError> {
        // Errors in files have causes; one line shows them all.
        let usage = |error: anyhow::Error| UsageError(format!("{error:#}"));
        let request = match self.command {
            None => self.suite.request(),
            Some(Command::Latency(args)) => args.request(),
            Some(Command::Bandwidth(args)) => args.request().map_err(usage)?,
            Some(Command::Loaded(args)) => args.request().map_err(usage)?,
            Some(Command::Run(args)) => args.request().map_err(usage)?,
            Some(Command::C2c(args)) => args.request(),
            Some(Command::Scan(args)) => args.request(),
            Some(Command::Sweep(args)) => args.request(),
            Some(Command::Quick(args)) => args.request(),
            Some(Command::Pmem(args)) => args.request(),
            Some(Command::Tiers(args)) => args.request(),
            Some(Command::Prefetch(args)) => match args.command {
                None => return Ok(Invocation::Prefetch(PrefetchAction::Status(args.report))),
                Some(PrefetchCommand::Action(action)) => return Ok(Invocation::Prefetch(action)),
                Some(PrefetchCommand::Compare(common)) => {
                    let task = Task::Prefetch(PrefetchSpec { buffer: common.size });
                    common.request(Spec::new(task))
                }
            },
            Some(Command::Interleave(args)) => match args.request() {
                InterleaveRequest::Change(action) => return Ok(Invocation::Weights(action)),
                InterleaveRequest::Search(request) => *request,
            },
            Some(Command::Info(args)) => return Ok(Invocation::Info(args)),
            Some(Command::Watch(args)) => return Ok(Invocation::Watch(args)),
            Some(Command::Where(args)) => return Ok(Invocation::Where(args)),
            Some(Command::Stamp(args)) => return Ok(Invocation::Stamp(Box::new(args))),
            Some(Command::Count(args)) => return Ok(Invocation::Count(Box::new(args))),
            Some(Command::Stream(args)) => return Ok(Invocation::Loop(Box::new(args.request()))),
            Some(Command::Chase(args)) => return Ok(Invocation::Loop(Box::new(args.request()))),
            Some(Command::Render(args)) => return Ok(Invocation::Render(args)),
            Some(Command::Report(args)) => return Ok(Invocation::Report(args)),
            Some(Command::Compare(args)) => return Ok(Invocation::Compare(args)),
            Some(Command::Advise(args)) => return Ok(Invocation::Advise(args)),
            Some(Command::Fleet(args)) => return Ok(Invocation::Fleet(args.command)),
            Some(Command::Reference(args)) => return Ok(Invocation::Reference(args)),
            Some(Command::Mlc(args)) => return Ok(Invocation::Mlc(args.arguments)),
        };
        Ok(Invocation::Measure(Box::new(request)))
    }
}
