//! The prices of accesses, from a result of the machine, and sums over them.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, MemoryPlace, Metric};
use memgauge_model::result::{
    AccessShare, Measurement, PageKind, PairPrice, PriceSource, Priced, Prices, Report, ResidencyPoint, TranslationCost, TranslationPrice,
};
use memgauge_model::stats::significant;
use memgauge_model::traffic::Mix;
use memgauge_model::units::Bytes;

/// Shares of all accesses by node of the CPU and node of the memory.
pub(super) type Shares = BTreeMap<(u32, u32), f64>;

/// The prices in a result: idle latencies by node, and bandwidths of loads. `None` if it has no latency.
pub fn prices(report: &Report, from: PriceSource) -> Option<Prices> {
    let node = |cpu: u32| report.machine.topology.cpu(cpu).map(|cpu| cpu.node);
    let pair = |m: &Measurement| {
        let at = &m.at;
        let cpus = at.cpus.as_ref().and_then(|cpus| {
            let mut nodes: Vec<u32> = cpus.iter().filter_map(node).collect();
            nodes.dedup();
            <[u32; 1]>::try_from(nodes).ok().map(|[node]| node)
        });
        let cpu_node = at.cpu_node.or_else(|| at.cpu.and_then(node)).or(cpus)?;
        let memory_node = at.memory_node().or((at.memory == Some(MemoryPlace::Own)).then_some(cpu_node))?;
        let value = m.estimate.value.filter(|value| value.is_finite() && *value > 0.0 && at.memory_dir.is_none())?;
        let price = Priced { value, low: m.estimate.ci95_low.unwrap_or(value), high: m.estimate.ci95_high.unwrap_or(value) };
        Some(PairPrice { cpu_node, memory_node, price, unreliable: !m.is_reliable() })
    };
    // Of a pair the first one counts that is reliable, if any is.
    let of = |fits: &dyn Fn(&Measurement) -> bool| {
        let mut pairs: BTreeMap<(u32, u32), PairPrice> = BTreeMap::new();
        for price in report.results.iter().filter(|m| fits(m)).filter_map(pair) {
            let known = pairs.entry((price.cpu_node, price.memory_node)).or_insert(price);
            if known.unreliable && !price.unreliable {
                *known = price;
            }
        }
        pairs.into_values().collect::<Vec<_>>()
    };
    // Window-local chases hide most of the address translation, which does not depend on the node.
    let latency_ns = of(&|m| {
        let is_idle = matches!(m.experiment, Experiment::IdleLatency | Experiment::IdleLatencyPerCpu);
        is_idle && m.metric == Metric::Latency && m.at.order.is_none_or(|order| order == ChaseOrder::WindowLocal)
    });
    let bandwidth_gbs = of(&|m| {
        let is_bandwidth = matches!(m.experiment, Experiment::BandwidthMatrix | Experiment::Bandwidth);
        is_bandwidth && m.metric == Metric::Bandwidth && m.at.mix.is_none_or(|mix| mix == Mix::AllReads)
    });
    let translation_ns = translation(&report.results);
    (!latency_ns.is_empty()).then(|| Prices { from, measured: report.started.utc.clone(), latency_ns, bandwidth_gbs, translation_ns })
}

/// The latency that address translation adds to a load, by size of page: the first cell of each size that has both latencies, a reliable one if there is one.
fn translation(results: &[Measurement]) -> Vec<TranslationPrice> {
    let idle = |order: ChaseOrder| {
        results.iter().filter(move |m| m.experiment == Experiment::IdleLatency && m.metric == Metric::Latency && m.at.order == Some(order))
    };
    let mut found: BTreeMap<(Bytes, PageKind), TranslationPrice> = BTreeMap::new();
    for full in idle(ChaseOrder::FullRandom) {
        let at = Coordinates { order: Some(ChaseOrder::WindowLocal), ..full.at.clone() };
        let pages = &full.evidence.pages;
        let local = idle(ChaseOrder::WindowLocal).find(|m| m.at == at && m.evidence.pages.page == pages.page);
        let (Some(kind), Some(page), Some(local), true) = (pages.obtained, pages.page, local, at.memory_dir.is_none()) else { continue };
        let (Some(price), buffer) = (excess(full, local), full.evidence.buffer) else { continue };
        let price = TranslationPrice { kind, page, buffer, price, unreliable: !full.is_reliable() || !local.is_reliable() };
        let known = found.entry((page, kind)).or_insert(price);
        if known.unreliable && !price.unreliable {
            *known = price;
        }
    }
    found.into_values().collect()
}

/// By how much the first latency is above the second, if both have intervals. These are independent.
fn excess(full: &Measurement, local: &Measurement) -> Option<Priced> {
    let [full, local] = [&full.estimate, &local.estimate].map(|estimate| {
        Some(Priced { value: estimate.value.filter(|value| value.is_finite())?, low: estimate.ci95_low?, high: estimate.ci95_high? })
    });
    let (full, local) = (full?, local?);
    let value = full.value - local.value;
    let down = (full.value - full.low).hypot(local.high - local.value);
    let up = (full.high - full.value).hypot(local.value - local.low);
    // No page is translated in less than no time.
    let [value, low, high] = [value, value - down, value + up].map(|ns| significant(ns.max(0.0)));
    Some(Priced { value, low, high })
}

/// The latency that translation adds to accesses of memory in pages of these sizes, in these shares; `None` if one has no price.
pub(super) fn translation_cost(prices: &[TranslationPrice], shares: &BTreeMap<Bytes, f64>) -> Option<TranslationCost> {
    let of = |page: &Bytes| prices.iter().find(|price| price.page == *page);
    let (mut value, mut down, mut up, mut unreliable) = (0.0, 0.0, 0.0, false);
    for (page, share) in shares.iter().filter(|(_, share)| **share >= COUNTS) {
        let TranslationPrice { price, unreliable: doubtful, .. } = of(page)?;
        value += share * price.value;
        down += (share * (price.value - price.low)).powi(2);
        up += (share * (price.high - price.value)).powi(2);
        unreliable |= doubtful;
    }
    // Programs get transparent huge pages by a setting, and the others only if they ask for them.
    let transparent = prices.iter().find(|price| price.kind == PageKind::Thp);
    let best = transparent.or_else(|| prices.iter().min_by(|a, b| a.price.value.total_cmp(&b.price.value)))?;
    let [value, low, high] = [value, value - down.sqrt(), value + up.sqrt()].map(significant);
    let now_ns = Priced { value, low, high };
    let (best_kind, best_page, best_ns) = (best.kind, best.page, best.price);
    Some(TranslationCost { now_ns, best_kind, best_page, best_ns, unreliable: unreliable || best.unreliable })
}

/// Pages of a size that hold less than this share of the memory need no price.
const COUNTS: f64 = 0.01;

/// Prices by pair of nodes.
pub(super) struct Matrix {
    latency: BTreeMap<(u32, u32), Priced>,
    unreliable: BTreeSet<(u32, u32)>,
    bandwidth: BTreeMap<(u32, u32), f64>,
}

impl Matrix {
    pub(super) fn new(prices: &Prices) -> Self {
        let pair = |p: &PairPrice| (p.cpu_node, p.memory_node);
        Self {
            latency: prices.latency_ns.iter().map(|p| (pair(p), p.price)).collect(),
            unreliable: prices.latency_ns.iter().filter(|p| p.unreliable).map(pair).collect(),
            bandwidth: prices.bandwidth_gbs.iter().map(|p| (pair(p), p.price.value)).collect(),
        }
    }

    pub(super) fn latency(&self, pair: (u32, u32)) -> Option<Priced> {
        self.latency.get(&pair).copied()
    }

    /// Whether one of the prices of accesses in these shares is unreliable.
    pub(super) fn is_unreliable(&self, shares: &Shares) -> bool {
        shares.iter().any(|(pair, share)| *share > 0.0 && self.unreliable.contains(pair))
    }

    /// The expected latency of accesses in these shares. The intervals of pairs are independent.
    pub(super) fn expected(&self, shares: &Shares) -> Priced {
        self.weighted(shares.iter().map(|(pair, share)| (*pair, *share)))
    }

    /// How much lower the latency is with the second shares than with the first.
    pub(super) fn difference(&self, from: &Shares, to: &Shares) -> Priced {
        let mut weights = from.clone();
        for (pair, share) in to {
            *weights.entry(*pair).or_default() -= share;
        }
        self.weighted(weights.into_iter())
    }

    fn weighted(&self, weights: impl Iterator<Item = ((u32, u32), f64)>) -> Priced {
        let (mut value, mut down, mut up) = (0.0, 0.0, 0.0);
        for (pair, weight) in weights {
            let Some(price) = self.latency(pair) else { continue };
            let [below, above] = [price.value - price.low, price.high - price.value].map(|half| half.max(0.0) * weight);
            let (below, above) = if weight < 0.0 { (above, below) } else { (below, above) };
            value += weight * price.value;
            down += below * below;
            up += above * above;
        }
        let [value, low, high] = [value, value - down.sqrt(), value + up.sqrt()].map(significant);
        Priced { value, low, high }
    }

    /// The most bandwidth of loads in these shares: no link between two nodes carries more than was measured over it, and no memory returns more than
    /// was measured from the node that gets most of it.
    pub(super) fn ceiling(&self, shares: &Shares) -> Option<f64> {
        let used = || shares.iter().filter(|(_, share)| **share > 0.0);
        let by_link = used().map(|(pair, share)| Some(self.bandwidth.get(pair)? / share)).collect::<Option<Vec<f64>>>()?;
        let mut memories: BTreeMap<u32, f64> = BTreeMap::new();
        used().for_each(|((_, memory), share)| *memories.entry(*memory).or_default() += share);
        let most = |node: u32| self.bandwidth.iter().filter(|((_, memory), _)| *memory == node).map(|(_, gbs)| *gbs).max_by(f64::total_cmp);
        let by_memory = memories.into_iter().filter_map(|(node, share)| Some(most(node)? / share));
        by_link.into_iter().chain(by_memory).min_by(f64::total_cmp).map(significant)
    }

    /// The expected latency at one moment.
    pub(super) fn of_point(&self, point: &ResidencyPoint) -> Option<f64> {
        let price = |access: &AccessShare| Some(access.share * self.latency((access.cpu_node, access.memory_node))?.value);
        let sum = point.accesses.iter().map(price).sum::<Option<f64>>()?;
        (!point.accesses.is_empty()).then_some(significant(sum))
    }
}
