//! The sections of a report: a table of the text, a panel of the figure.

use memgauge_core::experiment::{Experiment, Table};
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
    Other,
}

impl Section {
    pub(crate) fn for_measurement(m: &Measurement) -> Self {
        match (m.experiment, m.at.table) {
            (_, Some(Table::WorkingSet)) => Self::WorkingSet,
            (Experiment::IdleLatency, Some(Table::NodeMatrix) | None) => Self::LatencyMatrix,
            (Experiment::IdleLatency, Some(Table::PerCpu)) => Self::LatencyByCpu,
            (Experiment::Bandwidth, Some(Table::PerMix) | None) => Self::ByMix,
            (Experiment::Bandwidth, Some(Table::Search)) => Self::Search,
            (Experiment::Bandwidth, Some(Table::Ramp)) => Self::Ramp,
            (Experiment::Bandwidth, Some(Table::NodeMatrix)) => Self::BandwidthMatrix,
            (Experiment::Bandwidth, Some(Table::CacheDomains)) => Self::CacheDomains,
            (Experiment::LoadedLatency, _) => Self::Curve,
            (Experiment::CacheToCache, Some(Table::NodeMatrix) | None) if m.at.holder_node.is_some() => Self::NodePairs,
            (Experiment::CacheToCache, Some(Table::NodeMatrix) | None) => Self::CacheToCache,
            (Experiment::CacheToCache, Some(Table::CpuPairs)) => Self::CpuPairs,
            (Experiment::MemoryScan, _) => Self::Scan,
            (_, Some(Table::Prefetch)) => Self::Prefetch,
            _ => Self::Other,
        }
    }
}
