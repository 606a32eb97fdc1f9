//! `memgauge sweep`: its command line.

use clap::Args;
use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::spec::{Spec, SweepShape, SweepSpec, Task};
use memgauge_model::units::Bytes;

use super::options::{ChaseLines, CounterOptions, Load, Order, Pages, Placement, Precision, Prefetch, with_default};
use super::output::panels;
use super::request::{Request, RunOptions};

const AFTER_HELP: &str = "\
A sweep measures over buffers of growing size, finds the levels in the curves, and names them after the caches that the machine describes. \
All working sets are parts of one buffer; a working set is what each CPU uses. Latency is measured on one CPU alone, bandwidth on all CPUs \
of the curve together.

Examples:
  memgauge sweep                          one CPU, 4 KiB to 1 GiB
  memgauge sweep -o sweep.svg             the same, and draw it
  memgauge sweep --per-domain --max 256M  each last-level cache: are they alike?
  memgauge sweep --all-cpus --bandwidth   all CPUs, each with its own set
  memgauge sweep --latency --order full-random --pages 4k  with TLB misses
  memgauge sweep --counters -o sweep.svg  also miss rates, if there are counters";

#[derive(Debug, Args)]
#[command(
    mut_arg("budget", |budget| with_default(budget, "0.25s, with --counters 0.35s")),
    mut_arg("confidence", |confidence| with_default(confidence, "2%, in a virtual machine 5%")),
    mut_arg("panels", |arg| panels(arg, &[Experiment::Sweep])),
    after_help = AFTER_HELP
)]
pub(super) struct SweepArgs {
    /// Smallest working set of a CPU [default: 4K]
    #[arg(long, value_name = "SIZE", help_heading = "Sweep")]
    min: Option<Bytes>,
    /// Largest working set of a CPU [default: 1G, or less where there is less memory to take]
    #[arg(long, value_name = "SIZE", help_heading = "Sweep")]
    max: Option<Bytes>,
    /// Number of sizes in each doubling [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32), help_heading = "Sweep")]
    points_per_octave: Option<u32>,
    /// Measure only latency; with --bandwidth, and without either, both
    #[arg(long, help_heading = "Sweep")]
    latency: bool,
    /// Measure only bandwidth
    #[arg(long, help_heading = "Sweep")]
    bandwidth: bool,
    /// A curve for each last-level cache, measured on the CPUs that share it [default: the first CPU only]
    #[arg(long, help_heading = "Where")]
    per_domain: bool,
    /// One curve for all CPUs together, each with its own working set
    #[arg(long, conflicts_with = "per_domain", help_heading = "Where")]
    all_cpus: bool,
    #[command(flatten)]
    placement: Placement,
    #[command(flatten)]
    prefetch: Prefetch,
    #[command(flatten)]
    pages: Pages,
    #[command(flatten)]
    order: Order,
    #[command(flatten)]
    lines: ChaseLines,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    counting: CounterOptions,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    run: RunOptions,
}

impl SweepArgs {
    pub(super) fn request(self) -> Request {
        let shape = match (self.per_domain, self.all_cpus) {
            (true, _) => SweepShape::PerDomain,
            (_, true) => SweepShape::AllCpus,
            _ => SweepShape::One,
        };
        let metrics = [(self.latency, Metric::Latency), (self.bandwidth, Metric::Bandwidth)];
        let metrics = metrics.into_iter().filter(|(requested, _)| *requested).map(|(_, metric)| metric).collect();
        let peak_gbs = self.load.limit.peak_gbs;
        let mut spec = Spec::new(Task::Sweep(SweepSpec {
            shape,
            min: self.min,
            max: self.max,
            points_per_octave: self.points_per_octave,
            metrics,
            stride: self.lines.stride,
            window: self.lines.window,
            order: self.order.not_default(),
            load: self.load.spec(),
        }));
        self.placement.apply(&mut spec);
        spec.prefetch = self.prefetch.prefetch;
        spec.pages = self.pages.pages;
        spec.peak_gbs = peak_gbs;
        self.precision.apply(&mut spec);
        spec.counters = self.counting.counters;
        Request::new(spec, self.run)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use memgauge_model::experiment::PrefetchRequest;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::tests::spec;

    #[test]
    fn options_reach_the_spec() {
        assert_eq!(spec("memgauge sweep"), Spec::new(Task::sweep(SweepShape::One)));
        let sweep = |line: &str| options!(spec(line).task, Sweep);
        let got = sweep("memgauge sweep --per-domain --latency --min 8K --max 64M --points-per-octave 2 --order full-random --mix 2:1");
        assert_eq!(got.shape, SweepShape::PerDomain);
        assert_eq!((got.min, got.max, got.points_per_octave), (Some(Bytes::kib(8)), Some(Bytes::mib(64)), Some(2)));
        assert_eq!(got.metrics, [Metric::Latency]);
        assert_eq!(sweep("memgauge sweep --latency --bandwidth").metrics, [Metric::Latency, Metric::Bandwidth]);
        assert_eq!(spec("memgauge sweep --prefetch off").prefetch, PrefetchRequest::Off);
        assert_eq!(spec("memgauge sweep --all-cpus").task, Task::sweep(SweepShape::AllCpus));
        assert!(Cli::try_parse_from(["memgauge", "sweep", "--all-cpus", "--per-domain"]).is_err());
        assert!(Cli::try_parse_from(["memgauge", "sweep", "--points-per-octave", "0"]).is_err());
    }
}
