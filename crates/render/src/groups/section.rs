//! The sections of a report: a table of the text, a panel of the figure.

use memgauge_core::experiment::Experiment;
use memgauge_core::result::Measurement;

/// Which section a measurement belongs to; the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    LatencyMatrix,
    LatencyByCpu,
    ByMix,
    Search,
    Ramp,
    BandwidthMatrix,
    CacheDomains,
    Curve,
    CacheToCache,
    NodePairs,
    CpuPairs,
    Scan,
    Prefetch,
    WorkingSet,
    Loop,
}

impl Section {
    pub(crate) fn for_measurement(m: &Measurement) -> Self {
        match m.experiment {
            Experiment::IdleLatency => Self::LatencyMatrix,
            Experiment::IdleLatencyPerCpu => Self::LatencyByCpu,
            Experiment::Bandwidth => Self::ByMix,
            Experiment::BandwidthSearch => Self::Search,
            Experiment::BandwidthRamp => Self::Ramp,
            Experiment::BandwidthMatrix => Self::BandwidthMatrix,
            Experiment::BandwidthPerCache => Self::CacheDomains,
            Experiment::LoadedLatency => Self::Curve,
            Experiment::CacheToCache if m.at.holder_node.is_some() => Self::NodePairs,
            Experiment::CacheToCache => Self::CacheToCache,
            Experiment::CacheToCacheMatrix => Self::CpuPairs,
            Experiment::MemoryScan => Self::Scan,
            Experiment::PrefetchComparison => Self::Prefetch,
            Experiment::Sweep => Self::WorkingSet,
            Experiment::Stream | Experiment::Chase => Self::Loop,
        }
    }
}
