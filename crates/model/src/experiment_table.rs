//! The table of experiments: what planner, engine, texts, figures, exports and lists need to know of each.
//!
//! A part that only one experiment has (its cells, its loop, a sentence below its table) is in a file of its own.

use crate::axis::{Axes, Axis};
use crate::experiment::{Experiment, Method, Metric};

/// What is the same for all results of an experiment.
#[derive(Debug)]
pub struct Row {
    /// The experiment.
    pub experiment: Experiment,
    /// Its name in results and exports.
    pub name: &'static str,
    /// The title of its table. Experiments with the same title share a table.
    pub title: &'static str,
    /// Whether cells differ in which CPU uses which memory or cache. Such cells are measured in random order, and the first of them twice, so
    /// that drift does not look like an effect of topology.
    pub shuffled: bool,
    /// What it measures.
    pub measures: Measures,
    /// How tables and figures arrange its results.
    pub shape: Shape,
    /// What its results state of their place.
    pub axes: Axes,
    /// Its panels in figures.
    pub panels: &'static [PanelName],
    /// Whether hops can be timed one by one, for [`PanelName::DISTRIBUTION`].
    pub histogram: bool,
}

/// Stated as well if the memory is a file's, or on several nodes in turn.
const MEMORY: &[Axis] = &[Axis::MemoryDir, Axis::Weights];

/// What results of chases alone state.
const CHASE: Axes = Axes { always: &[Axis::CpuNode, Axis::Memory, Axis::Cpu, Axis::Order], sometimes: MEMORY };

/// What results of traffic state whose CPUs may be of several nodes.
const TRAFFIC: Axes = Axes { always: &[Axis::Memory, Axis::Cpus, Axis::Mix], sometimes: MEMORY };

/// What results of traffic from one node state.
const TRAFFIC_OF_NODE: Axes = Axes { always: &[Axis::CpuNode, Axis::Memory, Axis::Cpus, Axis::Mix], sometimes: MEMORY };

/// What results of a transfer between caches state.
const PAIR: &[Axis] = &[Axis::CpuNode, Axis::Memory, Axis::Cpu, Axis::HolderCpu, Axis::State];

/// What results are arranged by. An experiment whose shape exists has tables and panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nodes of CPUs and places of memory: a matrix for each order or mix.
    Nodes,
    /// CPUs.
    Cpus,
    /// Mixes of traffic.
    Mixes,
    /// The same, of each mix the highest of what was tried.
    BestOfMixes,
    /// Numbers of CPUs.
    CpuCounts,
    /// Sizes of access.
    Blocks,
    /// Injection delays: a curve.
    Delays,
    /// Interleave weights.
    Weights,
    /// Pairs of CPUs, or of nodes.
    Pairs,
    /// All pairs of CPUs.
    AllPairs,
    /// Regions of memory.
    Regions,
    /// States of the prefetchers.
    Prefetchers,
    /// Working sets: a curve.
    WorkingSets,
    /// One loop, over one working set or several.
    Loop,
}

/// The quantities of an experiment.
#[derive(Debug)]
pub enum Measures {
    /// A latency.
    Latency(Quantity),
    /// A bandwidth.
    Bandwidth(Quantity),
    /// Both.
    Both {
        /// The latency.
        latency: Quantity,
        /// The bandwidth.
        bandwidth: Quantity,
    },
}

/// A latency or a bandwidth that experiments measure.
#[derive(Debug, PartialEq, Eq)]
pub struct Quantity {
    /// How it is measured.
    pub method: Method,
    /// Its name in a sentence.
    pub noun: &'static str,
    /// Its name where there is little room.
    pub short: &'static str,
    /// How it is exported as a metric of a time series; absent if it is not.
    pub series: Option<Series>,
}

/// The metric that a quantity is exported as.
#[derive(Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name, without prefix and unit.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// Which results have a series.
    pub of: SeriesOf,
}

/// Which results have a series of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesOf {
    /// Each result.
    Results,
    /// The results of CPUs, pairs of CPUs or regions, summed up by node: a machine has thousands of them.
    Nodes,
    /// The named points of a curve: its delays are those that a search chose.
    Points,
    /// The levels that a sweep shows.
    Levels,
}

/// A panel of a figure, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PanelName(&'static str);

const fn series(name: &'static str, help: &'static str, of: SeriesOf) -> Option<Series> {
    Some(Series { name, help, of })
}

/// A chase alone.
const IDLE: Quantity = Quantity {
    method: Method::IdleLatency,
    noun: "idle latency",
    short: "latency",
    series: series("idle_latency", "Time of one dependent load while nothing else uses memory", SeriesOf::Results),
};
/// Loaders alone.
const BANDWIDTH: Quantity = Quantity {
    method: Method::Bandwidth,
    noun: "bandwidth",
    short: "bandwidth",
    series: series("bandwidth", "Bytes that programs load and store", SeriesOf::Results),
};
/// A chase alongside loaders.
const LOADED: Quantity = Quantity {
    method: Method::LoadedLatency,
    noun: "latency under load",
    short: "under load",
    series: series("loaded_latency", "Time of one dependent load while other CPUs load memory", SeriesOf::Points),
};
/// The loaders alongside it.
const ALONGSIDE: Quantity = Quantity {
    method: Method::LoadedLatency,
    noun: "bandwidth alongside a chase",
    short: "bandwidth",
    series: series("loaded_bandwidth", "Bytes loaded and stored at that latency", SeriesOf::Points),
};
/// From one cache to another.
const TRANSFER: Quantity = Quantity {
    method: Method::CacheToCache,
    noun: "transfer",
    short: "transfer",
    series: series("transfer_latency", "Time to load a line that another core's cache holds", SeriesOf::Results),
};

/// What rows have unless they say otherwise.
const ROW: Row = Row {
    experiment: Experiment::IdleLatency,
    name: "",
    title: "",
    shuffled: false,
    measures: Measures::Latency(IDLE),
    shape: Shape::Nodes,
    axes: CHASE,
    panels: &[],
    histogram: false,
};

/// All experiments, in the order of output.
pub static EXPERIMENTS: [Row; 18] = [
    Row {
        experiment: Experiment::IdleLatency,
        name: "idle-latency",
        title: "Idle latency",
        shuffled: true,
        measures: Measures::Latency(IDLE),
        shape: Shape::Nodes,
        axes: CHASE,
        panels: &[PanelName("idle-latency")],
        histogram: true,
    },
    Row {
        experiment: Experiment::IdleLatencyPerCpu,
        name: "idle-latency-per-cpu",
        title: "Idle latency by CPU",
        shuffled: true,
        measures: Measures::Latency(Quantity {
            series: series("cpu_idle_latency", "Idle latency of single CPUs, over the CPUs of a node", SeriesOf::Nodes),
            ..IDLE
        }),
        shape: Shape::Cpus,
        panels: &[PanelName("latency-by-cpu")],
        ..ROW
    },
    Row {
        experiment: Experiment::Bandwidth,
        name: "bandwidth",
        title: "Bandwidth by mix of traffic",
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::Mixes,
        axes: Axes {
            always: &[Axis::Cpus],
            sometimes: &[
                Axis::CpuNode,
                Axis::Memory,
                Axis::MemoryDir,
                Axis::Weights,
                Axis::Mix,
                Axis::Access,
                Axis::DelayCycles,
                Axis::LoadNodes,
            ],
        },
        panels: &[PanelName("bandwidth")],
        ..ROW
    },
    Row {
        experiment: Experiment::BandwidthSearch,
        name: "bandwidth-search",
        title: "Highest bandwidth by mix",
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::BestOfMixes,
        axes: Axes { always: &[Axis::Memory, Axis::Cpus, Axis::Mix, Axis::DelayCycles], sometimes: MEMORY },
        panels: &[PanelName("bandwidth")],
        ..ROW
    },
    Row {
        experiment: Experiment::BandwidthRamp,
        name: "bandwidth-ramp",
        title: "Bandwidth by number of CPUs",
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::CpuCounts,
        axes: Axes { sometimes: &[Axis::MemoryDir, Axis::Weights, Axis::CpuNode, Axis::Access], ..TRAFFIC },
        panels: &[PanelName("bandwidth-by-cpus")],
        ..ROW
    },
    Row {
        experiment: Experiment::BandwidthMatrix,
        name: "bandwidth-matrix",
        title: "Bandwidth by node",
        shuffled: true,
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::Nodes,
        axes: TRAFFIC_OF_NODE,
        panels: &[PanelName("bandwidth-by-node")],
        ..ROW
    },
    Row {
        experiment: Experiment::BandwidthPerCache,
        name: "bandwidth-per-cache",
        title: "Bandwidth by last-level cache",
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::Mixes,
        axes: TRAFFIC_OF_NODE,
        panels: &[PanelName("bandwidth-by-cache")],
        ..ROW
    },
    Row {
        experiment: Experiment::AccessSize,
        name: "access-size",
        title: "Bandwidth by access size",
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::Blocks,
        axes: Axes { always: &[Axis::CpuNode, Axis::Memory, Axis::Cpus, Axis::Mix, Axis::Block], sometimes: MEMORY },
        panels: &[PanelName("access-sizes")],
        ..ROW
    },
    Row {
        experiment: Experiment::PersistLatency,
        name: "persist-latency",
        title: "Persist latency",
        measures: Measures::Latency(Quantity {
            method: Method::PersistLatency,
            noun: "persist latency",
            short: "latency",
            series: series("persist_latency", "Time until a stored block is durable", SeriesOf::Results),
        }),
        shape: Shape::Blocks,
        axes: Axes { always: &[Axis::CpuNode, Axis::Memory, Axis::Cpu, Axis::Block, Axis::Line], sometimes: MEMORY },
        panels: &[PanelName("persist-latency")],
        ..ROW
    },
    Row {
        experiment: Experiment::LoadedLatency,
        name: "loaded-latency",
        title: "Latency under load",
        measures: Measures::Both { latency: LOADED, bandwidth: ALONGSIDE },
        shape: Shape::Delays,
        axes: Axes {
            always: &[Axis::CpuNode, Axis::Memory, Axis::Cpu, Axis::Cpus, Axis::DelayCycles],
            sometimes: &[Axis::MemoryDir, Axis::Weights, Axis::Mix, Axis::Order, Axis::Access, Axis::LoadNodes],
        },
        panels: &[PanelName("loaded-latency")],
        histogram: true,
        ..ROW
    },
    Row {
        experiment: Experiment::Interleave,
        name: "interleave",
        title: "Weighted interleave",
        measures: Measures::Both { latency: Quantity { series: None, ..LOADED }, bandwidth: Quantity { series: None, ..ALONGSIDE } },
        shape: Shape::Weights,
        axes: Axes { always: &[Axis::CpuNode, Axis::Cpu, Axis::Cpus, Axis::Mix, Axis::Weights], sometimes: &[Axis::DelayCycles] },
        panels: &[PanelName("interleave")],
        ..ROW
    },
    Row {
        experiment: Experiment::CacheToCache,
        name: "cache-to-cache",
        title: "Cache-to-cache transfers",
        shuffled: true,
        measures: Measures::Latency(TRANSFER),
        shape: Shape::Pairs,
        axes: Axes { always: PAIR, sometimes: &[Axis::MemoryDir, Axis::Weights, Axis::HolderNode, Axis::SharerCpu, Axis::Order] },
        panels: &[PanelName::TRANSFERS, PanelName::TRANSFERS_BY_NODE],
        ..ROW
    },
    Row {
        experiment: Experiment::CacheToCacheMatrix,
        name: "cache-to-cache-matrix",
        title: "Cache-to-cache transfers by pair of CPUs",
        shuffled: true,
        measures: Measures::Latency(Quantity {
            series: series(
                "transfer_matrix_latency",
                "Time to load a line that another core's cache holds, over the pairs of CPUs of two nodes",
                SeriesOf::Nodes,
            ),
            ..TRANSFER
        }),
        shape: Shape::AllPairs,
        axes: Axes {
            always: PAIR,
            // All CPUs, where none of their pairs was measured.
            sometimes: &[Axis::MemoryDir, Axis::Weights, Axis::Order, Axis::Cpus],
        },
        panels: &[PanelName("core-to-core")],
        ..ROW
    },
    Row {
        experiment: Experiment::MemoryScan,
        name: "memory-scan",
        title: "Memory scan",
        measures: Measures::Bandwidth(Quantity {
            method: Method::MemoryScan,
            series: series("scan_bandwidth", "Bandwidth of a region of memory, over the regions of a node", SeriesOf::Nodes),
            ..BANDWIDTH
        }),
        shape: Shape::Regions,
        axes: Axes { always: &[Axis::Memory, Axis::Cpus, Axis::Mix, Axis::Region], sometimes: &[Axis::CpuNode] },
        panels: &[PanelName("regions")],
        ..ROW
    },
    Row {
        experiment: Experiment::PrefetchComparison,
        name: "prefetch-comparison",
        title: "Prefetchers on and off",
        measures: Measures::Both { latency: IDLE, bandwidth: BANDWIDTH },
        shape: Shape::Prefetchers,
        axes: Axes {
            always: &[Axis::CpuNode, Axis::Memory, Axis::Cpus, Axis::Prefetch],
            sometimes: &[Axis::MemoryDir, Axis::Weights, Axis::Mix, Axis::Cpu, Axis::Order],
        },
        panels: &[PanelName("prefetchers")],
        ..ROW
    },
    Row {
        experiment: Experiment::Sweep,
        name: "sweep",
        title: "Latency and bandwidth by working set",
        measures: Measures::Both {
            latency: Quantity {
                series: series(
                    "level_latency",
                    "Time of one dependent load in a level of the memory hierarchy, as a sweep shows it",
                    SeriesOf::Levels,
                ),
                ..IDLE
            },
            bandwidth: Quantity {
                series: series("level_bandwidth", "Bandwidth of a level of the memory hierarchy, as a sweep shows it", SeriesOf::Levels),
                ..BANDWIDTH
            },
        },
        shape: Shape::WorkingSets,
        axes: Axes {
            always: &[Axis::Memory, Axis::WorkingSet],
            sometimes: &[Axis::CpuNode, Axis::MemoryDir, Axis::Weights, Axis::Cpu, Axis::Cpus, Axis::Order, Axis::Mix],
        },
        panels: &[PanelName::LATENCY_BY_SIZE, PanelName::BANDWIDTH_BY_SIZE, PanelName::MISSES],
        ..ROW
    },
    Row {
        experiment: Experiment::Stream,
        name: "stream",
        title: "Loops",
        measures: Measures::Bandwidth(BANDWIDTH),
        shape: Shape::Loop,
        axes: Axes { always: &[Axis::WorkingSet, Axis::Mix], sometimes: &[Axis::Cpu, Axis::Memory] },
        panels: &[PanelName::LATENCY_BY_SIZE, PanelName::BANDWIDTH_BY_SIZE],
        ..ROW
    },
    Row {
        experiment: Experiment::Chase,
        name: "chase",
        title: "Loops",
        measures: Measures::Latency(IDLE),
        shape: Shape::Loop,
        axes: Axes { always: &[Axis::WorkingSet, Axis::Order], sometimes: &[Axis::Cpu, Axis::Memory] },
        panels: &[PanelName::LATENCY_BY_SIZE, PanelName::BANDWIDTH_BY_SIZE],
        ..ROW
    },
];

impl Experiment {
    /// Its row of the table.
    pub fn row(self) -> &'static Row {
        &EXPERIMENTS[self as usize]
    }

    /// Its name in results and exports.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its quantity of this metric, or the only one that it has.
    pub fn quantity(self, metric: Metric) -> &'static Quantity {
        match &self.row().measures {
            Measures::Latency(only) | Measures::Bandwidth(only) => only,
            Measures::Both { latency, bandwidth } => match metric {
                Metric::Latency => latency,
                Metric::Bandwidth => bandwidth,
            },
        }
    }

    /// How a quantity of the experiment is measured.
    pub fn method(self, metric: Metric) -> Method {
        self.quantity(metric).method
    }

    /// Whether caches and not memory are measured.
    pub fn is_cache_to_cache(self) -> bool {
        self.method(Metric::Latency) == Method::CacheToCache
    }
}

/// Everything that is exported as a time series, in the order of the table.
pub fn all_series() -> impl Iterator<Item = (&'static Series, Metric)> {
    let quantities = |row: &'static Row| match &row.measures {
        Measures::Latency(latency) => [Some((latency, Metric::Latency)), None],
        Measures::Bandwidth(bandwidth) => [None, Some((bandwidth, Metric::Bandwidth))],
        Measures::Both { latency, bandwidth } => [Some((latency, Metric::Latency)), Some((bandwidth, Metric::Bandwidth))],
    };
    EXPERIMENTS.iter().flat_map(quantities).flatten().filter_map(|(quantity, metric)| Some((quantity.series.as_ref()?, metric)))
}

impl PanelName {
    /// Transfers between caches, of chosen pairs.
    pub const TRANSFERS: Self = Self("transfers");
    /// Transfers between caches of nodes.
    pub const TRANSFERS_BY_NODE: Self = Self("transfers-by-node");
    /// Latency by working set.
    pub const LATENCY_BY_SIZE: Self = Self("latency-by-size");
    /// Bandwidth by working set.
    pub const BANDWIDTH_BY_SIZE: Self = Self("bandwidth-by-size");
    /// Misses of caches by working set.
    pub const MISSES: Self = Self("misses");
    /// How often each latency was seen.
    pub const DISTRIBUTION: Self = Self("distribution");
    /// The probes of a watched machine over time.
    pub const STATE: Self = Self("state");
    /// The bandwidth that others use of a watched machine.
    pub const OTHERS: Self = Self("others");
    /// Those of a watched machine, which belong to no experiment.
    pub const OF_WATCH: [Self; 2] = [Self::STATE, Self::OTHERS];
    /// The memory of processes by node over time.
    pub const RESIDENCY: Self = Self("memory-by-node");
    /// The latency that their accesses are expected to have.
    pub const EXPECTED_LATENCY: Self = Self("expected-latency");
    /// Those of `where`, which belong to no experiment.
    pub const OF_RESIDENCY: [Self; 2] = [Self::RESIDENCY, Self::EXPECTED_LATENCY];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The panels that figures of these experiments may have, each once.
    pub fn of_experiments(experiments: impl IntoIterator<Item = Experiment>) -> Vec<Self> {
        let mut experiments: Vec<Experiment> = experiments.into_iter().collect();
        experiments.sort_unstable();
        let mut panels: Vec<Self> = Vec::new();
        for panel in experiments.iter().flat_map(|e| e.row().panels) {
            if !panels.contains(panel) {
                panels.push(*panel);
            }
        }
        panels.extend(experiments.iter().any(|e| e.row().histogram).then_some(Self::DISTRIBUTION));
        panels
    }

    /// All of them.
    pub fn all() -> Vec<Self> {
        let mut all = Self::of_experiments(EXPERIMENTS.iter().map(|row| row.experiment));
        all.extend(Self::OF_WATCH);
        all.extend(Self::OF_RESIDENCY);
        all
    }

    /// The names of these, `none` of none.
    pub fn list(panels: &[Self]) -> String {
        if panels.is_empty() { "none".to_owned() } else { panels.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ") }
    }
}

impl std::fmt::Display for PanelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for PanelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::all().into_iter().find(|p| p.name() == text);
        found.ok_or_else(|| format!("no panel has this name; use one of {}", Self::list(&Self::all())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::spelled;

    #[test]
    fn each_experiment_has_its_own_row() {
        for (i, row) in EXPERIMENTS.iter().enumerate() {
            assert_eq!(row.experiment as usize, i, "{}", row.name);
            assert_eq!(row.name, spelled(&row.experiment));
            assert!(!row.title.is_empty() && !row.panels.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn a_series_of_one_name_is_one_thing() {
        for (a, metric) in all_series() {
            for (b, other) in all_series().filter(|(b, _)| b.name == a.name) {
                assert_eq!((a, metric), (b, other));
            }
        }
    }

    #[test]
    fn panels_are_known_by_their_names() {
        for panel in PanelName::all() {
            assert_eq!(panel.name().parse(), Ok(panel));
        }
        let error = "latency".parse::<PanelName>().unwrap_err();
        assert!(error.contains("idle-latency, latency-by-cpu, bandwidth,"), "{error}");
    }
}
