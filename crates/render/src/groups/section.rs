//! The sections of a report: a table of the text, a panel of the figure.

use memgauge_core::experiment::Experiment;
use memgauge_core::result::Measurement;

/// Which section a measurement belongs to; the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    IdleLatency,
    IdleLatencyPerCpu,
    Bandwidth,
    BandwidthSearch,
    BandwidthRamp,
    BandwidthMatrix,
    BandwidthPerCache,
    LoadedLatency,
    CacheToCache,
    CacheToCacheByNode,
    CacheToCacheMatrix,
    MemoryScan,
    PrefetchComparison,
    Sweep,
    Loop,
}

impl Section {
    pub(crate) fn for_measurement(m: &Measurement) -> Self {
        match m.experiment {
            Experiment::IdleLatency => Self::IdleLatency,
            Experiment::IdleLatencyPerCpu => Self::IdleLatencyPerCpu,
            Experiment::Bandwidth => Self::Bandwidth,
            Experiment::BandwidthSearch => Self::BandwidthSearch,
            Experiment::BandwidthRamp => Self::BandwidthRamp,
            Experiment::BandwidthMatrix => Self::BandwidthMatrix,
            Experiment::BandwidthPerCache => Self::BandwidthPerCache,
            Experiment::LoadedLatency => Self::LoadedLatency,
            Experiment::CacheToCache if m.at.holder_node.is_some() => Self::CacheToCacheByNode,
            Experiment::CacheToCache => Self::CacheToCache,
            Experiment::CacheToCacheMatrix => Self::CacheToCacheMatrix,
            Experiment::MemoryScan => Self::MemoryScan,
            Experiment::PrefetchComparison => Self::PrefetchComparison,
            Experiment::Sweep => Self::Sweep,
            Experiment::Stream | Experiment::Chase => Self::Loop,
        }
    }
}
