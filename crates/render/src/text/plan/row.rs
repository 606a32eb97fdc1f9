//! One line of a plan, and what its cell does, in words.

use std::collections::BTreeSet;

use memgauge_model::experiment::{ChaseOrder, Hops, LineState};
use memgauge_model::integrity::TestPattern;
use memgauge_model::plan::{
    BufferPlan, Cell as PlanCell, Delays, Handoff, IdleChase, LoadCurve, Loading, Probe, Scan, Traffic, Transfers, Work,
};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording;

use crate::number::{count, human, seconds, sizes};

/// One line of the plan. The states of a transfer share a line; loaders that do different things have a line each.
#[derive(Clone, PartialEq, Default)]
pub(super) struct Row {
    pub(super) cpu: Option<u32>,
    pub(super) holder: Option<u32>,
    pub(super) loaders: IdSet,
    pub(super) cpu_node: Option<u32>,
    pub(super) memory: BTreeSet<u32>,
    /// The node of the chase and the nodes of the loaders, where these were named.
    pub(super) chase_and_load: Option<(u32, IdSet)>,
    /// Each CPU's memory is on its own node, so that naming the nodes would say nothing.
    pub(super) own: bool,
    pub(super) mix: Option<String>,
    pub(super) states: BTreeSet<LineState>,
    /// Of one buffer.
    pub(super) sizes: BTreeSet<Bytes>,
    /// How many buffers. One that several CPUs share counts once.
    pub(super) buffers: usize,
    /// Of all buffers that exist at the same time.
    pub(super) total: Bytes,
    pub(super) pages: BTreeSet<&'static str>,
    pub(super) kernels: Vec<String>,
    /// Core cycles between bursts, where that was asked for.
    pub(super) delay: Option<u32>,
    /// Regions of a scan.
    pub(super) regions: Option<u32>,
    pub(super) detail: String,
}

impl Row {
    /// A line with the cell's coordinates and nothing else.
    pub(super) fn new(cell: &PlanCell) -> Self {
        let at = &cell.at;
        Self { cpu: at.cpu, cpu_node: at.cpu_node, delay: at.delay_cycles, ..Self::default() }
    }

    /// Counts buffers.
    pub(super) fn add_buffers(&mut self, buffers: &[&BufferPlan]) {
        let mut shared: Vec<&BufferPlan> = Vec::new();
        for b in buffers {
            self.memory.extend(b.nodes().iter());
            self.sizes.insert(b.bytes);
            self.pages.insert(if b.directory.is_some() { "of the file system" } else { b.pages.name() });
            if b.shared {
                if shared.contains(b) {
                    continue;
                }
                shared.push(b);
            }
            self.buffers += 1;
            self.total = Bytes(self.total.0.saturating_add(b.bytes.0));
        }
        if let Some(regions) = self.regions {
            self.buffers = regions as usize;
            self.total = Bytes(self.total.0.saturating_mul(regions.into()));
        }
    }

    /// Where the memory is.
    pub(super) fn memory_text(&self) -> String {
        if let Some((chase, load)) = &self.chase_and_load {
            return format!("{}, load on {}", wording::node(Some(*chase)), wording::nodes(load));
        }
        if self.own {
            return "own nodes".to_owned();
        }
        if self.memory.is_empty() { "device".to_owned() } else { wording::nodes(&self.memory.iter().copied().collect()) }
    }

    /// The kinds of pages.
    pub(super) fn pages_text(&self) -> String {
        self.pages.iter().copied().collect::<Vec<_>>().join(", ")
    }

    /// Number and sizes of the buffers.
    pub(super) fn buffers_text(&self) -> String {
        let sizes = sizes(self.sizes.iter().copied()).unwrap_or_default();
        if self.buffers > 1 && self.holder.is_none() { format!("{} × {sizes}", self.buffers) } else { sizes }
    }
}

/// Fills in what a cell does, except for its loaders and buffers.
pub(super) fn describe(row: &mut Row, cell: &PlanCell) {
    match &cell.work {
        Work::Latency(IdleChase { probe, allocations, orders, hops, histogram }) => {
            row.cpu = Some(probe.cpu);
            row.detail = latency(probe, *allocations, orders) + &chase_options(*hops, *histogram);
        }
        Work::Bandwidth(Loading { traffic, delay, .. }) => {
            row.delay = row.delay.or((*delay > 0).then_some(*delay));
            row.detail = line_patterns(traffic);
        }
        Work::Curve(LoadCurve { probe, traffic, delays, at_percent, order, hops, histogram, .. }) => {
            row.cpu = Some(probe.cpu);
            row.detail = curve(delays, at_percent) + &other_order(*order) + &chase_options(*hops, *histogram);
            row.detail.extend(Some(line_patterns(traffic)).filter(|patterns| !patterns.is_empty()).map(|patterns| format!(", {patterns}")));
            row.chase_and_load = cell.at.load_nodes.clone().map(|nodes| (probe.buffer.node, nodes));
        }
        Work::Interleave(search) => {
            row.cpu = Some(search.probe.cpu);
            let nodes: Vec<String> = search.nodes.iter().map(u32::to_string).collect();
            row.detail = format!("weights of nodes {}, chosen while measuring", nodes.join(", "));
        }
        Work::Handoff(h) => handoff(row, h),
        Work::Transfers(t) => transfers(row, t),
        Work::LatencySweep(sweep) => {
            row.cpu = Some(sweep.probe.cpu);
            let order = wording::chase_order(sweep.order);
            row.detail = format!("{}, {order}, stride {}", working_sets(&sweep.sizes), human(sweep.probe.stride));
        }
        Work::BandwidthSweep(sweep) => row.detail = working_sets(&sweep.sizes),
        Work::Scan(s) => scan(row, s),
    }
}

fn latency(probe: &Probe, allocations: u32, orders: &[ChaseOrder]) -> String {
    let allocations = count(allocations as usize, "allocation", "allocations");
    let orders: String = orders.iter().map(|order| format!(", {}", wording::chase_order(*order))).collect();
    format!("window {}, stride {}, {allocations}{orders}", human(probe.window), human(probe.stride))
}

fn curve(delays: &Delays, at_percent: &[u32]) -> String {
    let delays = match delays {
        Delays::Adaptive { points } => format!("up to {points} delays, chosen while measuring"),
        Delays::Cycles(list) => format!("delays {}", list.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    if at_percent.is_empty() {
        return delays;
    }
    let shares: Vec<String> = at_percent.iter().map(|p| format!("{p} %")).collect();
    format!("{delays}, then those for {} of the peak", shares.join(", "))
}

fn handoff(row: &mut Row, h: &Handoff) {
    row.cpu = Some(h.reader);
    row.holder = Some(h.holder);
    row.states.insert(h.state);
    row.detail = format!("window {}, stride {}{}", human(h.window), human(h.stride), other_order(h.order));
    if let Some(window) = h.chase_window {
        row.detail.push_str(&format!(", random within {}", human(window)));
    }
    row.detail.push_str(&chase_options(h.hops, None));
    if let Some(sharer) = h.sharer {
        row.detail.push_str(&format!(", shared by CPU {sharer}"));
    }
    for (who, bytes) in [("holder", h.holder_pushes), ("reader", h.reader_pushes)] {
        if bytes.0 > 0 {
            row.detail.push_str(&format!(", {who} pushes {}", human(bytes)));
        }
    }
}

fn transfers(row: &mut Row, t: &Transfers) {
    row.loaders = t.ends.iter().map(|e| e.cpu).collect();
    row.states.extend(&t.states);
    let mut windows: Vec<String> = t.ends.iter().map(|e| human(e.window)).collect();
    windows.sort_unstable();
    windows.dedup();
    row.detail = format!(
        "{} in {}, up to {} at once; window {}, stride {}{}",
        count(t.pairs() as usize, "ordered pair", "ordered pairs"),
        count(t.rounds as usize, "round", "rounds"),
        t.at_once,
        windows.join(" or "),
        human(t.stride),
        t.order.map_or_else(String::new, |order| format!(", {}", wording::chase_order(order)))
    );
}

fn scan(row: &mut Row, scan: &Scan) {
    row.loaders.clone_from(&scan.cpus);
    row.mix = Some(scan.traffic.mix.to_string());
    row.kernels.clone_from(&scan.traffic.kernels);
    row.regions = Some(scan.regions);
    row.detail = format!("{} over each region", count(scan.passes as usize, "pass", "passes"));
    if scan.integrity {
        row.detail += &format!("; {}{}", patterns(&scan.patterns), held(scan.hold_s));
    }
}

/// Patterns of checked lines, and how long contents are held; nothing where there are none.
fn line_patterns(traffic: &Traffic) -> String {
    let held = held(traffic.hold_s);
    match traffic.patterns.is_empty() {
        true if held.is_empty() => held,
        true => format!("contents written and compared{held}"),
        false => patterns(&traffic.patterns) + &held,
    }
}

/// How long contents stay in the memory before they are compared.
fn held(hold_s: f64) -> String {
    if hold_s > 0.0 { format!(", each held {} at least", seconds(hold_s)) } else { String::new() }
}

fn patterns(patterns: &[TestPattern]) -> String {
    let names: Vec<&str> = patterns.iter().map(|p| p.name()).collect();
    format!("patterns written and compared: {}", names.join(", "))
}

/// The order of a chase where it is not the usual one.
fn other_order(order: ChaseOrder) -> String {
    if order == ChaseOrder::WindowLocal { String::new() } else { format!(", {}", wording::chase_order(order)) }
}

/// The length of a chase, and what else is timed, if that was asked for.
fn chase_options(hops: Option<Hops>, histogram: Option<u32>) -> String {
    let hops = hops.map(|hops| match hops {
        Hops::Count(hops) => format!(", {hops} hops each"),
        Hops::OnePass => ", one pass each".to_owned(),
    });
    let batches = histogram.map(|batch| format!(", batches of {batch} timed"));
    [hops, batches].into_iter().flatten().collect()
}

/// `73 working sets from 4 KiB to 1 GiB`.
fn working_sets(sizes: &[Bytes]) -> String {
    match (sizes.first(), sizes.last()) {
        (Some(from), Some(to)) => format!("{} from {} to {}", count(sizes.len(), "working set", "working sets"), human(*from), human(*to)),
        _ => "no working set".into(),
    }
}
