//! Options of `memgauge sweep`.

use clap::Args;
use memgauge_core::experiment::Metric;
use memgauge_core::spec::{Spec, SweepShape, SweepSpec, Task};
use memgauge_core::units::Bytes;

use super::probe::OrderArg;
use super::{Chase, Counting, Load, Output, Pages, Planning, Request, Stop, Where, prefetch};

#[derive(Debug, Args)]
#[command(
    after_help = "Measures over buffers of growing size, finds the levels in the curves and names them by the caches that the machine describes.
All working sets are parts of one buffer, a working set is what each CPU uses. Latency is that of one CPU alone, bandwidth that of
all CPUs of the curve together.

Examples:
  memgauge sweep                            one CPU, from 4 KiB to 1 GiB, in under a minute
  memgauge sweep -o sweep.svg               the same, and draw it
  memgauge sweep --per-domain --max 256M    each last-level cache: are they alike?
  memgauge sweep --all-cpus --bandwidth     all CPUs together, each with its own working set
  memgauge sweep --latency --order full-random --pages 4k    with what the TLBs cost
  memgauge sweep --counters -o sweep.svg    and miss rates and misses, where the machine has counters"
)]
pub(crate) struct SweepArgs {
    /// The smallest working set of a CPU [default: 4K]
    #[arg(long, value_name = "SIZE", help_heading = "Sweep")]
    min: Option<Bytes>,
    /// The largest [default: 1G, less where less may be taken]
    #[arg(long, value_name = "SIZE", help_heading = "Sweep")]
    max: Option<Bytes>,
    /// Sizes in each doubling [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32), help_heading = "Sweep")]
    points_per_octave: Option<u32>,
    /// Measure latency only; with --bandwidth both, as without either
    #[arg(long, help_heading = "Sweep")]
    latency: bool,
    /// Measure bandwidth only
    #[arg(long, help_heading = "Sweep")]
    bandwidth: bool,
    /// A curve for each last-level cache, by the CPUs behind it [default: the first CPU only]
    #[arg(long, help_heading = "Where")]
    per_domain: bool,
    /// One curve by all CPUs together, each with a working set of its own
    #[arg(long, conflicts_with = "per_domain", help_heading = "Where")]
    all_cpus: bool,
    #[command(flatten)]
    place: Where,
    #[command(flatten)]
    prefetch: prefetch::Prefetch,
    /// Pages to use: auto takes free 2 MiB pages of a pool, else transparent huge pages, else base pages
    #[arg(long, value_name = "KIND", default_value = "auto", help_heading = "Memory")]
    pages: Pages,
    #[command(flatten)]
    chase: Chase,
    /// Order of the chase
    #[arg(long, value_name = "ORDER", default_value = "window-local", help_heading = "Chase")]
    order: OrderArg,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    counting: Counting,
    #[command(flatten)]
    stop: Stop,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    planning: Planning,
}

impl SweepArgs {
    pub(super) fn request(self) -> Request {
        let shape = match (self.per_domain, self.all_cpus) {
            (true, _) => SweepShape::PerDomain,
            (_, true) => SweepShape::AllCpus,
            _ => SweepShape::One,
        };
        let mut spec = Spec::new(Task::Sweep(shape));
        self.place.apply(&mut spec);
        self.prefetch.apply(&mut spec);
        spec.pages = self.pages.into();
        self.chase.apply(&mut spec);
        spec.chase.orders = self.order.other().into_iter().collect();
        self.load.apply(&mut spec);
        self.stop.apply(&mut spec);
        spec.counters = self.counting.counters;
        let metrics = [(self.latency, Metric::Latency), (self.bandwidth, Metric::Bandwidth)];
        let metrics = metrics.into_iter().filter(|(asked, _)| *asked).map(|(_, metric)| metric).collect();
        spec.sweep = SweepSpec { min: self.min, max: self.max, points_per_octave: self.points_per_octave, metrics };
        Request { spec, memory_dir: None, output: self.output, planning: self.planning, quick: None }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use memgauge_core::experiment::PrefetchRequest;

    use super::*;
    use crate::cli::{Asked, Cli};

    fn spec(line: &str) -> Spec {
        match Cli::try_parse_from(line.split(' ')).unwrap().asked().unwrap() {
            Asked::Measure(request) => request.spec,
            _ => panic!("{line} measures"),
        }
    }

    #[test]
    fn what_is_asked() {
        assert_eq!(spec("memgauge sweep"), Spec::new(Task::Sweep(SweepShape::One)));
        let got = spec("memgauge sweep --per-domain --latency --min 8K --max 64M --points-per-octave 2 --order full-random --mix 2:1");
        assert_eq!(got.task, Task::Sweep(SweepShape::PerDomain));
        assert_eq!((got.sweep.min, got.sweep.max, got.sweep.points_per_octave), (Some(Bytes::kib(8)), Some(Bytes::mib(64)), Some(2)));
        assert_eq!(got.sweep.metrics, [Metric::Latency]);
        assert_eq!(spec("memgauge sweep --latency --bandwidth").sweep.metrics, [Metric::Latency, Metric::Bandwidth]);
        assert_eq!(spec("memgauge sweep --prefetch off").prefetch, PrefetchRequest::Off);
        assert_eq!(spec("memgauge sweep --all-cpus").task, Task::Sweep(SweepShape::AllCpus));
        assert!(Cli::try_parse_from(["memgauge", "sweep", "--all-cpus", "--per-domain"]).is_err());
        assert!(Cli::try_parse_from(["memgauge", "sweep", "--points-per-octave", "0"]).is_err());
    }
}
