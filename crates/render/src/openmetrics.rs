//! OpenMetrics: the numbers that a monitoring system should keep, for node_exporter's textfile collector.
//!
//! A series lives for years, so its labels are what the user chose and what the machine has, never what one run found: a curve under load is
//! written as its ends and its knee, a sweep as its levels. Values that a machine has by the thousand, such as those of pairs of CPUs and of
//! regions of memory, are summed up by node as the smallest, the median and the largest, without an interval. Values have no timestamps,
//! because the collector refuses them.
//!
//! All series say what was asked for (`task`, `options`), because a collector that finds a series in two files keeps one of them or none.

mod encode;
pub(crate) mod hosts;
mod residency;
mod watch;

use std::collections::BTreeMap;

use memgauge_analysis::conclusions::summary::summarise;
use memgauge_model::columns::COLUMNS;
use memgauge_model::estimate::Estimate;
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::experiment_table::{Series, SeriesOf, all_series};
use memgauge_model::result::{Asked, CurveSummary, HealthStatus, LevelSummary, Measurement, QualityLevel, Report};
use memgauge_model::units::Bytes;
use memgauge_model::wording::{memory_policy, spelled};
use memgauge_model::words::Verb;

use crate::format::{Format, Named, RenderError};
use crate::groups::{Sweep, corrupted_results, loaded_curves, sweeps};
pub use encode::same_label;
use encode::{Family, Labels, Unit, label, with};
use residency::ResidencyGauges;
use watch::WatchGauges;

impl Format {
    /// Gauges for Prometheus.
    pub const OPENMETRICS: Self = Self::new("openmetrics", "prom", " (OpenMetrics)");
}

/// Gauges in base units, as OpenMetrics and the Prometheus text format write them. Several reports share the families; the label `result` tells
/// them apart.
pub(crate) fn openmetrics(results: &[Named<'_>]) -> Result<Vec<u8>, RenderError> {
    let mut all = Collected::default();
    for result in results {
        let name = (results.len() > 1).then(|| label("result", result.name));
        all.add(result.report, &with(&of_run(result.report), name));
    }
    all.encode()
}

/// The value of one series, in nanoseconds or GB/s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct MetricSample {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    quality: Option<QualityLevel>,
}

impl MetricSample {
    fn from_measurement(m: &Measurement) -> Self {
        let Estimate { value, ci95_low, ci95_high, .. } = m.estimate;
        Self { value, low: ci95_low, high: ci95_high, quality: Some(m.quality.level) }
    }
}

/// The task that a command line asked to measure, and its options if there are any.
fn asked<'a>(argv: impl IntoIterator<Item = &'a str>) -> Labels {
    let Some(Asked { task, options }) = Asked::from_words(argv) else { return Labels::new() };
    let options = Some(options).filter(|options| !options.is_empty()).map(|options| label("options", options));
    [label("task", task)].into_iter().chain(options).collect()
}

/// The task and options of a run, and the memory policy that it was started with: like an option, the policy decides which memory was measured.
fn of_run(report: &Report) -> Labels {
    let policy = report.machine.allowed.inherited_policy().map(|policy| label("memory_policy", memory_policy(policy)));
    with(&asked(report.argv.iter().map(String::as_str)), policy)
}

/// Everything that is written, by family and labels.
#[derive(Default)]
struct Collected {
    run: BTreeMap<Labels, f64>,
    complete: BTreeMap<Labels, f64>,
    results: BTreeMap<Labels, f64>,
    corrupted: BTreeMap<Labels, f64>,
    health: BTreeMap<Labels, f64>,
    /// By the name of a [`Series`].
    series: BTreeMap<&'static str, BTreeMap<Labels, MetricSample>>,
    watch: WatchGauges,
    residency: ResidencyGauges,
}

/// A group of cells that is summed up: what its cells have in common.
type MetricGroup = (&'static str, Labels);

/// What is known of a result's machine and run.
struct Subject<'a> {
    /// The node of a CPU.
    node: &'a dyn Fn(Option<u32>) -> Option<u32>,
    /// Whether the memory at these coordinates only stands in for persistent memory.
    stand_in: &'a dyn Fn(&Coordinates) -> bool,
}

impl Collected {
    fn add(&mut self, report: &Report, shared: &Labels) {
        self.add_run(report, shared);
        report.watch.iter().for_each(|watch| self.watch.add(watch, shared));
        report.residency.iter().for_each(|residency| self.residency.add(residency, shared));
        let mut groups: BTreeMap<MetricGroup, Vec<MetricSample>> = BTreeMap::new();
        let stand_in = |at: &Coordinates| report.stand_in(at).is_some();
        let subject = Subject { node: &|cpu| node_of(report, cpu), stand_in: &stand_in };
        self.add_results(&report.results, &subject, shared, &mut groups);
        Self::add_matrices(report, shared, &mut groups);
        groups.into_iter().for_each(|((series, labels), samples)| self.sum_up(series, &labels, &samples));
        self.add_curves(&report.results, &report.curves, &subject, shared);
        let swept: Vec<&Measurement> = report.results.iter().filter(|m| m.experiment == Experiment::Sweep).collect();
        let curves = sweeps(&swept);
        report.levels.iter().for_each(|levels| self.add_levels(&curves, levels, &subject, shared));
    }

    /// Adds single values. Values that a machine has by the thousand are put into groups instead, to be summed up.
    fn add_results(
        &mut self,
        results: &[Measurement],
        subject: &Subject<'_>,
        shared: &Labels,
        groups: &mut BTreeMap<MetricGroup, Vec<MetricSample>>,
    ) {
        for m in results {
            let Some(series) = &m.quantity().series else { continue };
            let stand_in = (subject.stand_in)(&m.at);
            let sample = MetricSample::from_measurement(m);
            match series.of {
                SeriesOf::Results => {
                    let each = label("experiment", m.experiment.name());
                    self.insert(series.name, with(shared, place(&m.at, stand_in).into_iter().chain([each])), sample);
                }
                SeriesOf::Nodes => {
                    let labels = with(shared, place(&by_node(subject.node, &m.at), stand_in));
                    groups.entry((series.name, labels)).or_default().push(sample);
                }
                SeriesOf::Points | SeriesOf::Levels => {}
            }
        }
    }

    /// All pairs of CPUs, as groups by the nodes of both.
    fn add_matrices(report: &Report, shared: &Labels, groups: &mut BTreeMap<MetricGroup, Vec<MetricSample>>) {
        for matrix in &report.matrices {
            let Some(series) = &matrix.experiment.quantity(Metric::Latency).series else { continue };
            let sample = |(value, quality)| MetricSample { value, quality: Some(quality), ..MetricSample::default() };
            for (at, pairs) in matrix.between_nodes(&report.machine.topology) {
                let labels = with(shared, place(&at, report.stand_in(&at).is_some()));
                groups.entry((series.name, labels)).or_default().extend(pairs.into_iter().map(sample));
            }
        }
    }

    /// Which run it is, how far to trust it, and the verdict of a health check.
    fn add_run(&mut self, report: &Report, shared: &Labels) {
        let hostname = report.run.host.as_ref().and_then(|host| host.hostname.clone());
        let own = [("version", Some(report.tool.version.clone())), ("started", Some(report.started.utc.clone())), ("hostname", hostname)];
        let own = own.into_iter().chain([("run_id", Some(report.run.id.clone()).filter(|id| !id.is_empty()))]);
        let own = own.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        self.run.insert(with(shared, encode::user_labels(&report.run.labels).into_iter().chain(own)), 1.0);
        self.complete.insert(shared.clone(), f64::from(report.complete));
        // A watch and a look at processes have no results that are good or not.
        if (report.watch.is_some() || report.residency.is_some()) && report.is_empty() {
            return;
        }
        let trust = report.summary.as_ref().map_or_else(|| summarise(report).trust, |summary| summary.trust.clone());
        use QualityLevel::{Degraded, Good, None as Missing, Unreliable};
        for (level, n) in [(Good, trust.good), (Degraded, trust.degraded), (Unreliable, trust.unreliable), (Missing, trust.missing)] {
            self.results.insert(with(shared, [label("quality", spelled(&level))]), f64::from(n));
        }
        self.corrupted.insert(shared.clone(), corrupted_results(report) as f64);
        self.add_health(report.health.as_ref().map(|health| health.status), shared);
    }

    /// The verdict of a health check, if it was one.
    fn add_health(&mut self, health: Option<HealthStatus>, shared: &Labels) {
        use HealthStatus::{CouldNotMeasure, Failure, Incident, Ok, Unknown, Warning};
        let Some(health) = health else { return };
        for status in [Ok, Unknown, Warning, CouldNotMeasure, Failure, Incident] {
            self.health.insert(with(shared, [label("status", spelled(&status))]), f64::from(health == status));
        }
    }

    /// Of each curve the points at the lowest and the highest load, the knee, and the shares of the peak that were asked for.
    fn add_curves(&mut self, results: &[Measurement], curves: &[CurveSummary], subject: &Subject<'_>, shared: &Labels) {
        let loaded: Vec<&Measurement> = results.iter().filter(|m| m.experiment == Experiment::LoadedLatency).collect();
        for curve in loaded_curves(&loaded) {
            let summary = curve.summary(curves);
            let at_delay = |delay: Option<u32>| curve.points.iter().find(|p| p.delay == delay && delay.is_some());
            let knee = summary.and_then(|s| at_delay(Some(s.knee?.delay_cycles)));
            let ends = match curve.points.as_slice() {
                [only] => [None, Some(only)],
                points => [points.first(), points.last()],
            };
            let shares = summary.iter().flat_map(|s| &s.shares);
            let shares = shares.filter(|s| s.missed.is_none()).map(|s| (format!("{}-percent", s.percent), at_delay(s.delay_cycles)));
            let [lowest, highest] = ends;
            let named = [("lowest-load", lowest), ("knee", knee), ("highest-load", highest)].map(|(name, p)| (name.to_owned(), p));
            for (name, point) in named.into_iter().chain(shares) {
                let at = place(&curve.at, (subject.stand_in)(&curve.at));
                let labels = with(shared, at.into_iter().chain([label("point", name)]));
                for m in point.into_iter().flat_map(|p| [p.latency, p.bandwidth]).flatten() {
                    if let Some(series) = &m.quantity().series {
                        self.insert(series.name, labels.clone(), MetricSample::from_measurement(m));
                    }
                }
            }
        }
    }

    /// Each level, with the worst quality of the points on its plateau.
    fn add_levels(&mut self, curves: &[Sweep<'_>], levels: &LevelSummary, subject: &Subject<'_>, shared: &Labels) {
        let series = levels.metric.and_then(|metric| Experiment::Sweep.quantity(metric).series.as_ref());
        let Some(series) = series else { return };
        let points = || curves.iter().filter(|curve| Some(curve.metric) == levels.metric && curve.at == levels.at).flat_map(|c| &c.points);
        for level in &levels.levels {
            let on_plateau = |size: Bytes| (level.from..=level.to).contains(&size);
            let plateau = points().filter(|m| m.estimate.value.is_some() && m.at.working_set.is_some_and(on_plateau));
            let quality = plateau.map(|m| m.quality.level).max();
            let labels = with(shared, place(&levels.at, (subject.stand_in)(&levels.at)).into_iter().chain([label("level", &level.name)]));
            let sample = MetricSample { value: Some(level.value), low: Some(level.low), high: Some(level.high), quality };
            self.insert(series.name, labels, sample);
        }
    }

    /// The smallest, the median and the largest of many cells.
    fn sum_up(&mut self, series: &'static str, labels: &Labels, samples: &[MetricSample]) {
        let mut values: Vec<f64> = samples.iter().filter_map(|s| s.value).filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let measured = samples.iter().filter(|s| s.value.is_some()).filter_map(|s| s.quality);
        let quality = measured.max().or(Some(QualityLevel::None));
        let n = values.len();
        let median = (n > 0).then(|| f64::midpoint(values[(n - 1) / 2], values[n / 2]));
        for (statistic, value) in [("min", values.first().copied()), ("median", median), ("max", values.last().copied())] {
            let labels = with(labels, [label("statistic", statistic)]);
            self.insert(series, labels, MetricSample { value, quality, ..MetricSample::default() });
        }
    }

    /// The first sample with these labels is kept: a series has one value.
    fn insert(&mut self, series: &'static str, labels: Labels, sample: MetricSample) {
        self.series.entry(series).or_default().entry(labels).or_insert(sample);
    }

    fn encode(mut self) -> Result<Vec<u8>, RenderError> {
        let plain = |name: &str, help: &str, samples: BTreeMap<Labels, f64>| Family::new(name, help, Unit::None, samples);
        let mut families = vec![
            plain("run_info", "The run that the other values come from; always 1", self.run),
            plain("run_complete", "Whether everything that was planned was measured: 1 or 0", self.complete),
            plain("results", "Number of results by quality", self.results),
            plain("corrupted_results", "Number of results of memory that did not return what was written to it", self.corrupted),
            plain("health_status", &format!("1 for the verdict of {}, 0 for all other verdicts", Verb::Quick), self.health),
        ];
        for (&Series { name, help, .. }, metric) in all_series() {
            let Some(samples) = self.series.remove(name) else { continue };
            let unit = match metric {
                Metric::Latency => Unit::Seconds,
                Metric::Bandwidth => Unit::BytesPerSecond,
            };
            let part = |get: fn(&MetricSample) -> Option<f64>| {
                let present = |(labels, s): (&Labels, &MetricSample)| Some((labels.clone(), unit.in_base(get(s)?)?));
                samples.iter().filter_map(present).collect::<BTreeMap<_, _>>()
            };
            let quality = samples.iter().filter_map(|(labels, s)| Some((labels.clone(), f64::from(rank(s.quality?)))));
            families.push(Family::new(name, help, unit, part(|s| s.value)));
            families.push(Family::new(&format!("{name}_low"), &format!("{help}: lower end of the 95 % interval"), unit, part(|s| s.low)));
            families.push(Family::new(&format!("{name}_high"), &format!("{help}: upper end of the 95 % interval"), unit, part(|s| s.high)));
            let help = format!("{help}: 0 is good, 1 degraded, 2 unreliable, 3 not measured");
            families.push(Family::new(&format!("{name}_quality"), &help, Unit::None, quality.collect()));
        }
        families.extend(self.watch.families());
        families.extend(self.residency.families());
        encode::encode(families)
    }
}

const fn rank(quality: QualityLevel) -> u8 {
    match quality {
        QualityLevel::Good => 0,
        QualityLevel::Degraded => 1,
        QualityLevel::Unreliable => 2,
        QualityLevel::None => 3,
    }
}

fn node_of(report: &Report, cpu: Option<u32>) -> Option<u32> {
    report.machine.topology.cpu(cpu?).and_then(|cpu| cpu.node.into())
}

/// The coordinates of the group of a cell, which has a number for each CPU, pair of CPUs or region.
fn by_node(node: &dyn Fn(Option<u32>) -> Option<u32>, at: &Coordinates) -> Coordinates {
    Coordinates {
        cpu: None,
        cpu_node: at.cpu_node.or(node(at.cpu)),
        holder_cpu: None,
        holder_node: at.holder_node.or(node(at.holder_cpu)),
        region: None,
        ..at.clone()
    }
}

/// A cell's coordinates as labels, and that its memory only stands in for persistent memory.
fn place(at: &Coordinates, stand_in: bool) -> Labels {
    with(&coordinates(at), stand_in.then(|| label("volatile", true)))
}

/// A cell's coordinates as labels. Regions, which are summed up, and the kind of place have none.
fn coordinates(at: &Coordinates) -> Labels {
    let columns = COLUMNS.iter().filter(|column| !["memory", "region"].contains(&column.name));
    columns.filter_map(|column| Some(label(column.name, column.value(at)?))).collect()
}
