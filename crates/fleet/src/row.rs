//! What a fleet's store holds: values of runs on hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use memgauge_model::experiment::{Coordinates, Experiment, Metric, Unit};
use memgauge_model::result::{PageKind, QualityLevel};

/// One value of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The run.
    pub run: Arc<HostRun>,
    /// The quantity that was measured, and where.
    pub cell: Arc<Cell>,
    /// In the cell's unit; `None` where it was not measured.
    pub value: Option<f64>,
    /// The 95 % interval of the value.
    pub interval: Option<(f64, f64)>,
    /// The pages that backed the memory; `None` where that is not known.
    pub pages: Option<PageKind>,
    /// Why the memory is only a stand-in for persistent memory; `None` where nothing says so.
    pub volatile: Option<String>,
    /// How far to trust the value; `None` where there is none.
    pub quality: Option<QualityLevel>,
    /// The reason for a missing value: a stable word.
    pub not_measured: Option<String>,
}

/// A quantity at its coordinates, which the hosts of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Of which experiment.
    pub experiment: Experiment,
    /// At which coordinates.
    pub at: Coordinates,
    /// Latency or bandwidth.
    pub metric: Metric,
    /// The unit of its values.
    pub unit: Unit,
}

/// One run on one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostRun {
    /// The host's name: its hostname, else `id-` and the first twelve digits of the hash of its machine id, else `run-` and the run's id.
    pub host: String,
    /// The hash of its machine id. Two hosts with one hash were installed from one image.
    pub machine_id_hash: Option<String>,
    /// The run's id.
    pub run_id: String,
    /// When it began: UTC, RFC 3339.
    pub started: String,
    /// The user's labels.
    pub labels: BTreeMap<String, String>,
    /// Whether all that was planned was measured.
    pub complete: bool,
    /// What it is like.
    pub fingerprint: Fingerprint,
}

/// A host's name and the hash of its machine id, which tell hosts apart: judging two hosts of one name together would hide either.
pub(crate) type HostId = (String, Option<String>);

impl HostRun {
    /// Which host it is of.
    pub(crate) fn id(&self) -> HostId {
        (self.host.clone(), self.machine_id_hash.clone())
    }

    /// Whether it is of this host.
    pub(crate) fn is_of(&self, host: &HostId) -> bool {
        self.host == host.0 && self.machine_id_hash == host.1
    }
}

/// The properties by which hosts are grouped, the most important first. `None`: not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    /// The CPU's model name.
    pub cpu: Option<String>,
    /// Family, model, stepping.
    pub stepping: Option<String>,
    /// The hypervisor as far as every user sees it; `None` on metal, `not known` where that is so.
    pub hypervisor: Option<String>,
    /// Online CPUs.
    pub cpus: u32,
    /// Memory nodes: they tell NPS and SNC modes.
    pub nodes: u32,
    /// Channels and their speed, such as `12 × 4800 MT/s × 8 B`, and the technology that encrypts them.
    pub memory: Option<String>,
    /// The kinds of pages that backed buffers. They are what a run asked for and got, and hosts are not grouped by them.
    pub pages: Option<String>,
    /// The CPU's microcode.
    pub microcode: Option<String>,
    /// Vendor, product and BIOS version.
    pub firmware: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
}
