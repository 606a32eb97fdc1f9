//! `memgauge quick`: its command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use memgauge_model::spec::{QuickSpec, Spec, Task};
use memgauge_model::units::{ParseError, parse_duration};

use super::options::{Limit, Prefetch, with_default};
use super::request::{Common, ReferenceFiles, Request, StateRequest};

const AFTER_HELP: &str = "\
A number that looks wrong is measured twice more before it counts. On virtual machines, on busy machines and without root, problems are warnings \
at most.

Numbers are compared with those of similar parts of this machine (nodes, last-level caches), with the most that its memory can transfer, \
and with its own earlier checks. You can add a saved result (--against), the hosts of a fleet that are like this one (--baseline), and rules \
of your own (--rules).

Each check is kept for later ones: the newest 30 in /var/lib/memgauge for root, in ~/.local/state/memgauge ($XDG_STATE_HOME) for others. \
MEMGAUGE_STATE names another folder, and with an empty name none. A slower machine is a warning, and a failure after four checks.

A file of rules is TOML:

  # true: also fail on virtual machines and without root
  strict = false
  [[rule]]
  # or: idle-latency, loaded-latency
  experiment = \"bandwidth\"
  # any mix if absent; also: order, cpu-node, memory-node, local
  mix = \"all-reads\"
  # GB/s or ns; also: warn-above, fail-above
  warn-below = 300.0
  fail-below = 250.0

Examples:
  memgauge quick                           is this machine's memory all right?
  memgauge quick -o today.json             the same, and write the result
  memgauge quick --against today.json      has anything changed?
  memgauge quick --baseline fleet/         is this host as its siblings are?
  memgauge quick --limit 460.8             12 channels of DDR5-4800
  memgauge quick -q --state checks         for a timer or a prolog

Exit status:
  0    no fault found
  1    warning, or nothing to compare a bandwidth with, such as in a first check
  2    failure
  3    corrupted data, or memory errors
  4    could not measure
  64   wrong usage
  130  interrupted";

#[derive(Debug, Args)]
#[command(
    mut_arg("budget", |budget| with_default(budget, "0.5s")),
    mut_arg("within", |arg| arg.help("End the whole check after this time: everything is measured more coarsely until it fits [default: 45s]")),
    mut_arg("confidence", |confidence| with_default(confidence, "1.5%, in a virtual machine 5%")),
    mut_arg("peak_gbs", |arg| arg.help_heading("Verdict")),
    mut_arg("pages", |arg| arg.help("Pages to use: auto takes transparent huge pages, else base pages, and leaves reserved huge pages alone")),
    after_help = AFTER_HELP
)]
pub(super) struct QuickArgs {
    #[command(flatten)]
    references: ReferenceFiles,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    schedule: Schedule,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: Prefetch,
}

/// What a check needs that a timer or a scheduler starts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kept checks")]
struct Schedule {
    /// Neither compare with the earlier checks of this machine nor keep this one
    #[arg(long, conflicts_with = "state")]
    no_history: bool,
    /// For a timer: keep the result in FOLDER, under the time of the check, with a link latest.json to the newest. One check at a time uses
    /// the folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "plan")]
    state: Option<PathBuf>,
    /// Keep N results in the folder, and remove older ones
    #[arg(long, value_name = "N", default_value = "30", value_parser = RangedU64ValueParser::<usize>::new().range(1..), requires = "state")]
    keep: usize,
    /// Wait this long for another check to end that uses the folder, then give up with status 4; 0 = do not wait
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_wait, requires = "state")]
    lock_wait: Duration,
}

/// A duration, or 0.
fn parse_wait(text: &str) -> Result<Duration, ParseError> {
    if ["0", "0s"].contains(&text.trim()) { Ok(Duration::ZERO) } else { parse_duration(text) }
}

impl QuickArgs {
    pub(super) fn request(self) -> Request {
        let mut spec = Spec::new(Task::Quick(QuickSpec { buffer: self.common.size }));
        spec.prefetch = self.prefetch.prefetch;
        spec.peak_gbs = self.limit.peak_gbs;
        let Schedule { no_history, state, keep, lock_wait } = self.schedule;
        let state = state.map(|folder| StateRequest { folder, keep, lock_wait });
        Request { quick: Some(self.references), state, history: !no_history, ..self.common.request(spec) }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use memgauge_analysis::conclusions::findings::Rules;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        quick: QuickArgs,
    }

    #[test]
    fn a_schedule_needs_a_folder() {
        let state = |line: &str| {
            let parsed = Line::try_parse_from(["quick"].into_iter().chain(line.split_whitespace()));
            parsed.map(|line| line.quick.request().state).map_err(|error| error.to_string())
        };
        assert_eq!(state(""), Ok(None));
        let folder = || PathBuf::from("/x");
        assert_eq!(state("--state /x"), Ok(Some(StateRequest { folder: folder(), keep: 30, lock_wait: Duration::from_secs(60) })));
        assert_eq!(
            state("--state /x --keep 1 --lock-wait 0"),
            Ok(Some(StateRequest { folder: folder(), keep: 1, lock_wait: Duration::ZERO }))
        );
        assert!(state("--state /x --lock-wait 2m").is_ok());
        for wrong in ["--keep 3", "--lock-wait 1s", "--state /x --keep 0", "--state /x --lock-wait soon", "--state /x --plan"] {
            assert!(state(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_rules_in_the_help_can_be_pasted() {
        let example = AFTER_HELP.split("TOML:\n").nth(1).unwrap().split("Examples:").next().unwrap();
        let rules: Rules = toml::from_str(example).unwrap();
        assert_eq!(toml::from_str::<Rules>("").unwrap(), Rules::default());
        assert_ne!(rules, Rules::default());
        assert!(example.lines().all(|line| line.len() < 80), "a longer line would be wrapped");
    }
}
