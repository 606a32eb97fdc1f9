//! The arguments of `memgauge watch`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use memgauge_model::experiment_table::PanelName;
use memgauge_model::units::parse_duration;

use super::output::{ReportOptions, only_panels};

const AFTER_HELP: &str = "\
A stamp (memgauge stamp --help) is taken every 20 s (50 s on large machines), at most 1 % of the time. The current state is printed when it is first seen, and a line for each change: another \
state, with the probes that say so; busy, if others use the machine so that the state is not known; and the state before, if it is seen \
again. A change is printed once two stamps in a row show it. Nothing needs root or counters.

With a curve of latency under load of this machine, the latency of memory is also read as bandwidth that others use, with its interval and the least \
bandwidth that is detected. Whatever else makes memory slower reads as such bandwidth, too.

Examples:
  memgauge watch                              until Ctrl-C
  memgauge watch --for 1h -o hour.png         a figure of an hour
  memgauge watch --lines states.jsonl         a JSON line for each stamp
  memgauge watch --listen 9750                metrics at http://127.0.0.1:9750/
  memgauge loaded -o curve.json
  memgauge watch --curve curve.json           what others use, too

Exit status:
  0    ended after --for, or by a signal without --for
  4    no stamp could be taken, or a file could not be written
  64   wrong usage
  130  interrupted before the end of --for";

#[derive(Debug, Args)]
#[command(mut_arg("panels", |arg| only_panels(arg, &PanelName::OF_WATCH)), after_help = AFTER_HELP)]
pub(crate) struct WatchArgs {
    /// Begin a stamp every DURATION; at least 100 times as long as a stamp may take [default: 20s, 50s on large machines]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) every: Option<Duration>,
    /// End after DURATION, such as 10m or 8h [default: Ctrl-C ends it]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) time: Option<Duration>,
    /// Estimate the bandwidth of others by the curve of latency under load in FILE, a result of this machine as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "measure_curve")]
    pub(crate) curve: Option<PathBuf>,
    /// Measure that curve first: it loads all CPUs for some seconds
    #[arg(long)]
    pub(crate) measure_curve: bool,
    /// Append a JSON line for each stamp to FILE; - is standard output, in place of text
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) lines: Option<PathBuf>,
    /// Replace FILE after each stamp by OpenMetrics, for the textfile collector of node_exporter
    #[arg(long, value_name = "FILE.prom", help_heading = "Output")]
    pub(crate) textfile: Option<PathBuf>,
    /// Answer with OpenMetrics over HTTP at PORT of 127.0.0.1, or at ADDRESS:PORT
    #[arg(long, value_name = "PORT", value_parser = parse_listen, help_heading = "Output")]
    pub(crate) listen: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
}

impl WatchArgs {
    /// Whether JSON lines go to standard output.
    pub(crate) fn prints_lines(&self) -> bool {
        self.lines.as_deref() == Some(Path::new("-"))
    }
}

/// A port of the loopback interface, or an address with a port.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse().map(loopback).or_else(|_| text.parse());
    address.map_err(|_| format!("'{text}' is neither a port such as 9750 nor an address with a port such as 10.0.0.5:9750 or [::1]:9750"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_the_loopback_interface() {
        let listens = |text: &str| parse_listen(text).map(|address| address.to_string());
        assert_eq!(listens("9750").as_deref(), Ok("127.0.0.1:9750"));
        assert_eq!(listens("0.0.0.0:9750").as_deref(), Ok("0.0.0.0:9750"));
        assert_eq!(listens("[::1]:9750").as_deref(), Ok("[::1]:9750"));
        assert!(["", "localhost:9750", "65536", ":9750", "10.0.0.5"].iter().all(|text| listens(text).is_err()));
    }
}
