//! `memgauge quick`: its command line.

use clap::Args;
use memgauge_core::spec::{Spec, Task};

use super::options::{Limit, Prefetch, with_default};
use super::request::{Common, ReferenceFiles, Request};

const AFTER_HELP: &str = "\
What looks wrong is measured twice more before it counts. On virtual machines, on busy machines and without root, problems are warnings \
at most.

Nodes are compared with each other, and so are last-level caches. Bandwidths are compared with what the memory could transfer. You can add \
a saved result (--against), the hosts of a fleet that are like this one (--baseline), and rules of your own (--rules). A file of rules is \
TOML:

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
  memgauge quick -o today.json             the same, and keep the result
  memgauge quick --against first-day.json  has anything changed?
  memgauge quick --baseline fleet/         is this host as its siblings are?
  memgauge quick --limit 460.8             12 channels of DDR5-4800

Exit status:
  0    all well
  1    warning
  2    failure
  3    corrupted data, or memory errors
  4    could not measure
  64   wrong usage
  130  interrupted";

#[derive(Debug, Args)]
#[command(
    mut_arg("budget", |budget| with_default(budget, "0.5s")),
    mut_arg("within", |arg| arg.help("End the whole check after this time: everything is measured more coarsely until it fits [default: 45s]")),
    mut_arg("confidence", |confidence| with_default(confidence, "1.5%")),
    mut_arg("peak_gbs", |arg| arg.help_heading("Verdict")),
    after_help = AFTER_HELP
)]
pub(super) struct QuickArgs {
    #[command(flatten)]
    references: ReferenceFiles,
    #[command(flatten)]
    limit: Limit,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    prefetch: Prefetch,
}

impl QuickArgs {
    pub(super) fn request(self) -> Request {
        let mut spec = Spec::new(Task::Quick);
        spec.prefetch = self.prefetch.prefetch;
        spec.peak_gbs = self.limit.peak_gbs;
        Request { quick: Some(self.references), ..self.common.request(spec) }
    }
}

#[cfg(test)]
mod tests {
    use memgauge_core::conclusions::findings::Rules;

    use super::*;

    #[test]
    fn the_rules_in_the_help_can_be_pasted() {
        let example = AFTER_HELP.split("TOML:\n").nth(1).unwrap().split("Examples:").next().unwrap();
        let rules: Rules = toml::from_str(example).unwrap();
        assert_eq!(toml::from_str::<Rules>("").unwrap(), Rules::default());
        assert_ne!(rules, Rules::default());
        assert!(example.lines().all(|line| line.len() < 80), "a longer line would be wrapped");
    }
}
