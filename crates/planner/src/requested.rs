//! A task's request for its chases and loaders, in one form for the code that plans them for several tasks.

use std::collections::BTreeMap;

use memgauge_model::experiment::ChaseOrder;
use memgauge_model::spec::{ChaseSpec, LoadSpec, TrafficSpec, WidthRequest};
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
    /// Chases and loaders with buffers of this size, and plain traffic.
    pub(super) fn sized(buffer: Option<Bytes>) -> Self {
        let chase = ChaseSpec { buffer, ..ChaseSpec::default() };
        Self { chase, orders: &[], loader_buffer: buffer, mixes: &[], width: WidthRequest::Best, traffic: &PLAIN, names_nodes: false }
    }

    pub(super) fn loading(self, load: &'a LoadSpec) -> Self {
        Self { mixes: &load.mixes, width: load.width, ..self }
    }

    pub(super) fn with_traffic(self, traffic: &'a TrafficSpec) -> Self {
        Self { loader_buffer: traffic.buffer, traffic, ..self.loading(&traffic.load) }
    }

    /// The size of buffers, if it is given.
    pub(super) fn buffer(&self) -> Option<Bytes> {
        self.chase.buffer.or(self.loader_buffer)
    }
}
