//! `memgauge interleave`: its command line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use memgauge_model::experiment::Experiment;
use memgauge_model::interleave::Weights;
use memgauge_model::spec::{InterleaveSpec, Spec, Task};

use super::options::{Load, Prefetch, with_default};
use super::output::panels;
use super::request::{Common, Request};
use super::values::parse_gbs;

const AFTER_HELP: &str = "\
Pages are placed on the nodes in turn by memgauge itself, as the kernel's policy of weighted interleave would place them, so this needs no \
root and no particular kernel. For each socket and mix it searches the weights (their sum is at most 32) with the most bandwidth or, with \
--demand, with the least latency at that bandwidth. One CPU chases, the others load.

--apply writes the weights that were found to /sys/kernel/mm/mempolicy/weighted_interleave (Linux 6.9 or later, as root). This ends the \
kernel's automatic weights, and only memory that is allocated from then on follows. --restore puts back what was before the first --apply \
since the last boot.

Examples:
  memgauge interleave                       own nodes, and those near them
  memgauge interleave --node 0,2 --mix 2:1  these nodes, two reads to a write
  memgauge interleave --demand 40           least latency when 40 GB/s are moved
  memgauge interleave -o weights.svg        measure, and draw it
  memgauge interleave --apply               measure, set the kernel's weights
  memgauge interleave --apply 0=3,2=1       set these, without measuring
  memgauge interleave --restore";

#[derive(Debug, Args)]
#[command(
    mut_arg("node", |arg| arg.alias("nodes").help(
        "Memory nodes to interleave over, such as 0,2; also --nodes [default: each socket's own and the nodes without CPUs near it]"
    )),
    mut_arg("budget", |budget| with_default(budget, "1s")),
    mut_arg("panels", |arg| panels(arg, &[Experiment::Interleave])),
    after_help = AFTER_HELP
)]
pub(super) struct InterleaveArgs {
    /// Find the least latency while this much is moved, in GB/s, for each socket [default: find the most bandwidth]
    #[arg(long, value_name = "GB/s", value_parser = parse_gbs, help_heading = "Weights")]
    demand: Option<f64>,
    /// Numbers of CPUs that load, for each socket, with a search for each: 4 or 2,4,8 [default: all but the one that chases]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..), help_heading = "Weights")]
    threads: Vec<u32>,
    /// Set the kernel's weights: those found, or those given as NODE=WEIGHT,...
    #[arg(long, value_name = "WEIGHTS", num_args = 0..=1, help_heading = "Weights", conflicts_with_all = ["restore", "plan"])]
    apply: Option<Option<Weights>>,
    /// Put back the kernel's weights from before the first --apply
    #[arg(long, help_heading = "Weights", conflicts_with = "plan")]
    restore: bool,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    prefetch: Prefetch,
    #[command(flatten)]
    common: Common,
}

/// Refuses what would have no effect: --restore and --apply with weights measure nothing, so they stand alone.
pub(super) fn check_alone(program: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((command, matches)) = matches.subcommand().filter(|(name, _)| *name == "interleave") else { return Ok(()) };
    let action = match () {
        () if matches.get_flag("restore") => "restore",
        () if matches.get_one::<Weights>("apply").is_some() => "apply",
        () => return Ok(()),
    };
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let mut arguments = program.find_subcommand(command).into_iter().flat_map(Command::get_arguments);
    let Some(idle) = arguments.find(|arg| arg.get_id() != action && given(arg.get_id().as_str())) else { return Ok(()) };
    let mut error = clap::Error::new(ErrorKind::ArgumentConflict).with_cmd(program);
    error.insert(ContextKind::InvalidArg, ContextValue::String(format!("--{}", idle.get_long().unwrap_or_default())));
    let action = if action == "apply" { "--apply NODE=WEIGHT,..." } else { "--restore" };
    error.insert(ContextKind::PriorArg, ContextValue::String(action.to_owned()));
    Err(error)
}

/// What to do with the kernel's weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WeightsAction {
    /// Set these.
    Apply(Weights),
    /// Put back what was before.
    Restore,
}

/// What the command asks for.
pub(super) enum InterleaveRequest {
    /// A change that needs no measuring.
    Change(WeightsAction),
    /// A search for weights.
    Search(Box<Request>),
}

impl InterleaveArgs {
    pub(super) fn request(self) -> InterleaveRequest {
        if self.restore {
            return InterleaveRequest::Change(WeightsAction::Restore);
        }
        let apply = self.apply.is_some();
        if let Some(Some(weights)) = self.apply {
            return InterleaveRequest::Change(WeightsAction::Apply(weights));
        }
        let (prefetch, peak_gbs) = (self.prefetch.prefetch, self.load.limit.peak_gbs);
        let (buffer, load) = (self.common.size, self.load.spec());
        let task = Task::Interleave(InterleaveSpec { buffer, load, demand_gbs: self.demand, threads: self.threads });
        let spec = Spec { prefetch, peak_gbs, ..Spec::new(task) };
        InterleaveRequest::Search(Box::new(Request { apply_weights: apply, ..self.common.request(spec) }))
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use crate::cli::tests::{refused, spec};

    #[test]
    fn what_measures_nothing_takes_no_options_of_a_measurement() {
        let line = |line: &str| {
            let words: Vec<_> = line.split(' ').map(Into::into).collect();
            Cli::parse_line(&words).map(|_| ()).map_err(|error| error.to_string())
        };
        for options in ["-o w.json", "--demand 4", "--mix 2:1", "--format json", "--threads 2", "--node 0,1", "--plan"] {
            for action in ["--restore", "--apply 0=3,1=1"] {
                let why = line(&format!("memgauge interleave {options} {action}")).unwrap_err();
                assert!(why.contains("cannot be used with") && why.contains("leave one of them out"), "{options} {action}: {why}");
            }
        }
        for fine in ["--restore", "--apply 0=3,1=1", "--mix 2:1 --apply", "-o w.json --demand 4 --apply"] {
            assert_eq!(line(&format!("memgauge interleave {fine}")), Ok(()));
        }
    }

    #[test]
    fn nodes_mixes_and_a_demand() {
        let got = spec("memgauge interleave --nodes 0,2 --mix 2:1 --demand 40 --threads 3,7");
        let interleave = options!(got.task, Interleave);
        assert_eq!((got.nodes, interleave.demand_gbs, interleave.threads), (Some("0,2".parse().unwrap()), Some(40.0), vec![3, 7]));
        assert!(refused("memgauge interleave --apply 0=300").contains("each weight 1 to 255"));
        assert!(refused("memgauge interleave --apply --restore").contains("cannot be used with"));
        assert!(refused("memgauge interleave --demand 0").contains("a bandwidth in GB/s"));
    }
}
