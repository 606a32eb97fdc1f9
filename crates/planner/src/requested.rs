//! A task's request for its chases and loaders, in one form for the code that plans them for several tasks.

use std::collections::BTreeMap;

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::spec::{BandwidthShape, ChaseSpec, LatencyShape, LoadSpec, Task, TrafficSpec, TransferShape, WidthRequest};
use memgauge_model::traffic::{Access, LineUse, Mix};
use memgauge_model::units::Bytes;

/// The request. Options that a task lacks count as not given.
#[derive(Clone, Copy)]
pub(super) struct Requested<'a> {
    pub(super) chase: ChaseSpec,
    /// Orders of the chase.
    pub(super) orders: &'a [ChaseOrder],
    /// Bytes of each loader's buffer.
    pub(super) loader_buffer: Option<Bytes>,
    /// Mixes of traffic.
    pub(super) mixes: &'a [Mix],
    /// Width of loads and stores.
    pub(super) width: WidthRequest,
    pub(super) traffic: &'a TrafficSpec,
    /// The task names the nodes of its memory itself: each cell of a matrix does, and what compares nodes.
    pub(super) names_nodes: bool,
}

/// Every line, in order.
static PLAIN: TrafficSpec = TrafficSpec {
    load: LoadSpec { mixes: Vec::new(), width: WidthRequest::Best },
    buffer: None,
    access: Access::Sequential,
    stride: None,
    window: None,
    line: LineUse::Whole,
    patterns: Vec::new(),
    hold: None,
    shared: false,
    contents: Vec::new(),
    burst_lines: BTreeMap::new(),
    threads: Vec::new(),
};

impl<'a> Requested<'a> {
    pub(super) fn by(task: &'a Task) -> Self {
        match task {
            Task::Suite(suite) => Self::sized(suite.buffer).loading(&suite.load),
            Task::Latency(latency) => {
                let names_nodes = latency.shape == LatencyShape::Matrix;
                Self { chase: latency.chase, orders: &latency.orders, names_nodes, ..Self::sized(None) }
            }
            Task::Bandwidth(bandwidth) => {
                Self { names_nodes: bandwidth.shape == BandwidthShape::Matrix, ..Self::sized(None).with_traffic(&bandwidth.traffic) }
            }
            Task::Loaded(loaded) => {
                Self { chase: loaded.chase, orders: loaded.order.as_slice(), ..Self::sized(None).with_traffic(&loaded.traffic) }
            }
            Task::Interleave(interleave) => Self { names_nodes: true, ..Self::sized(interleave.buffer).loading(&interleave.load) },
            Task::C2c(transfer) => {
                let (stride, touch, hops) = (transfer.stride, transfer.touch, transfer.hops);
                let sized = Self::sized(transfer.buffer);
                let names_nodes = transfer.shape == TransferShape::NodeMatrix;
                Self { chase: ChaseSpec { stride, touch, hops, ..sized.chase }, names_nodes, ..sized }
            }
            Task::Scan(scan) => Self { width: scan.width, ..Self::sized(None) },
            Task::Sweep(sweep) => {
                let chase = ChaseSpec { stride: sweep.stride, window: sweep.window, ..ChaseSpec::default() };
                Self { chase, orders: sweep.order.as_slice(), ..Self::sized(None).loading(&sweep.load) }
            }
            Task::Quick(quick) => Self::sized(quick.buffer),
            Task::Prefetch(prefetch) => Self { names_nodes: true, ..Self::sized(prefetch.buffer) },
            Task::Pmem(pmem) => Self { names_nodes: true, ..Self::sized(pmem.file) },
            Task::Tiers(tiers) => {
                let sized = Self::sized(tiers.buffer).loading(&tiers.load);
                let chase = ChaseSpec { hops: tiers.hops, histogram: tiers.histogram, ..sized.chase };
                Self { chase, names_nodes: true, ..sized }
            }
        }
    }

    /// Chases and loaders with buffers of this size, and plain traffic.
    fn sized(buffer: Option<Bytes>) -> Self {
        let chase = ChaseSpec { buffer, ..ChaseSpec::default() };
        Self { chase, orders: &[], loader_buffer: buffer, mixes: &[], width: WidthRequest::Best, traffic: &PLAIN, names_nodes: false }
    }

    fn loading(self, load: &'a LoadSpec) -> Self {
        Self { mixes: &load.mixes, width: load.width, ..self }
    }

    fn with_traffic(self, traffic: &'a TrafficSpec) -> Self {
        Self { loader_buffer: traffic.buffer, traffic, ..self.loading(&traffic.load) }
    }

    /// The size of buffers, if it is given.
    pub(super) fn buffer(&self) -> Option<Bytes> {
        self.chase.buffer.or(self.loader_buffer)
    }
}
