//! What is asked of a loaded-latency curve beside its delays.

use clap::Args;
use memgauge_core::spec::Spec;
use memgauge_core::units::{IdSet, ParseError};

/// For `loaded`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Curve")]
pub(super) struct Curve {
    /// Also find the latency at these shares of the peak bandwidth, such as 50%,75%,90%
    #[arg(long = "at", value_name = "PERCENT", value_delimiter = ',', value_parser = parse_share)]
    at_percent: Vec<u32>,
    /// Nodes of the loaders' memory, while the chase stays in its own: how one node or tier disturbs another. The CPUs nearest to
    /// them load
    #[arg(long = "load-node", value_name = "LIST")]
    load_nodes: Option<IdSet>,
}

impl Curve {
    pub(super) fn apply(self, spec: &mut Spec) {
        spec.load_nodes = self.load_nodes;
        spec.at_percent = self.at_percent;
        spec.at_percent.sort_unstable();
        spec.at_percent.dedup();
    }
}

/// A share of the peak in whole percent: `75%` or `75`.
fn parse_share(text: &str) -> Result<u32, ParseError> {
    let digits = text.trim().strip_suffix('%').unwrap_or(text.trim()).trim_end();
    let share = digits.parse().ok().filter(|percent| (1..=99).contains(percent));
    share.ok_or_else(|| ParseError { input: text.into(), expected: "whole percent of the peak from 1% to 99%, such as 75%" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_percent_below_the_peak() {
        for (text, share) in
            [("50%", Some(50)), ("90", Some(90)), (" 7 %", Some(7)), ("100%", None), ("0", None), ("0.5", None), ("x", None)]
        {
            assert_eq!(parse_share(text).ok(), share, "{text}");
        }
    }
}
