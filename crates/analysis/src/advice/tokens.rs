//! Tokens a second: what read bandwidth allows for a model's bytes.

use memgauge_model::experiment::{Experiment, MemoryPlace, Metric};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words::{Command, Verb};

use super::document::{Action, Ceiling, LeftOut, Model, Role, Topic, WeightsPlace, Why};
use super::evidence::{Found, Results, TopicAdvice, homes, is_whole, why_not};

/// The command that measures read bandwidth of all CPUs from their own nodes, and from single nodes.
fn command() -> Command {
    Command::new(Verb::Suite).to("result.json")
}

/// The read bandwidths without injection delays whose lines were visited in this order.
pub(super) fn reads<'a>(results: &Results<'a>, access: Access) -> Vec<Found<'a>> {
    let experiments = &[
        Experiment::Bandwidth,
        Experiment::BandwidthMatrix,
        Experiment::BandwidthRamp,
        Experiment::BandwidthSearch,
        Experiment::Interleave,
    ];
    let is_it = move |f: &Found<'_>| {
        let at = &f.m.at;
        at.mix == Some(Mix::AllReads)
            && f.access() == access
            && at.delay_cycles.is_none_or(|cycles| cycles == 0)
            && at.line.is_none()
            && at.block.is_none()
    };
    results.measurements(experiments, Metric::Bandwidth).filter(is_it).collect()
}

/// Gives the ceilings of all models.
pub(super) fn tokens(results: &Results<'_>, models: &[Model]) -> TopicAdvice {
    let (usable, left_out): (Vec<Found<'_>>, Vec<Found<'_>>) = reads(results, Access::Sequential).into_iter().partition(|f| f.is_usable());
    if models.is_empty() {
        return if usable.is_empty() { TopicAdvice::default() } else { TopicAdvice::without_command(Topic::TokensPerSecond, Why::NoModel) };
    }
    let places = highest_by_place(&usable);
    let mut advice = TopicAdvice::default();
    if places.is_empty() {
        let why = if left_out.is_empty() { Why::NotMeasured } else { why_not(&left_out) };
        advice.add_gap(Topic::TokensPerSecond, why, &left_out, Some(command()));
        return advice;
    }
    let of_model = |model| places.iter().filter_map(move |(place, found)| ceiling(model, place.clone(), found));
    let numbers: Vec<(Role, Found<'_>)> = places.iter().map(|(_, found)| (Role::Highest, *found)).collect();
    let action = Action::ExpectTokens { ceilings: models.iter().flat_map(of_model).collect(), leaves_out: LeftOut::ALL.to_vec() };
    advice.recommend(Topic::TokensPerSecond, action, &numbers, Vec::new());
    advice
}

/// The highest read bandwidth of each kind of place, the highest first.
pub(super) fn highest_by_place<'a>(usable: &[Found<'a>]) -> Vec<(WeightsPlace, Found<'a>)> {
    let placed: Vec<(WeightsPlace, Found<'a>)> = usable.iter().filter_map(|f| Some((place(f)?, *f))).collect();
    let of_kind = |is_kind: fn(&WeightsPlace) -> bool| {
        placed.iter().filter(|(place, _)| is_kind(place)).max_by(|a, b| a.1.value().total_cmp(&b.1.value())).cloned()
    };
    let kinds: [fn(&WeightsPlace) -> bool; 3] = [
        |place| matches!(place, WeightsPlace::OwnNodes { .. }),
        |place| matches!(place, WeightsPlace::Interleaved { .. }),
        |place| matches!(place, WeightsPlace::OneNode { .. }),
    ];
    let mut best: Vec<_> = kinds.into_iter().filter_map(of_kind).collect();
    best.sort_by(|a, b| b.1.value().total_cmp(&a.1.value()));
    best
}

/// Where the memory of a measurement was. `None` for memory without CPUs, and where it is not known.
pub(super) fn place(found: &Found<'_>) -> Option<WeightsPlace> {
    let (topology, at) = (found.topology(), &found.m.at);
    let one = |node| is_whole(topology, node).then_some(WeightsPlace::OneNode { node });
    if let Some(weights) = &at.weights {
        return match weights.only_node() {
            Some(node) => one(node),
            None => Some(WeightsPlace::Interleaved { weights: weights.clone() }),
        };
    }
    match at.memory? {
        MemoryPlace::Own => {
            let nodes = homes(topology, at.cpus.as_ref()?);
            if nodes.len() == 1 { one(nodes.first()?) } else { Some(WeightsPlace::OwnNodes { nodes }) }
        }
        MemoryPlace::Node(node) => one(node),
        MemoryPlace::Inherited | MemoryPlace::Device { .. } => None,
    }
}

/// The most tokens a second of a model whose weights are there.
pub(super) fn ceiling(model: &Model, place: WeightsPlace, found: &Found<'_>) -> Option<Ceiling> {
    let nodes = match &place {
        WeightsPlace::OwnNodes { nodes } => nodes.clone(),
        WeightsPlace::OneNode { node } | WeightsPlace::OtherNode { node, .. } => IdSet::one(*node),
        WeightsPlace::Interleaved { weights } => weights.nodes(),
    };
    let of_nodes = nodes.iter().filter_map(|node| found.topology().node(node)).map(|n| n.memory.map(|memory| memory.0));
    let memory = Bytes(of_nodes.sum::<Option<u64>>()?);
    let per_s = found.divided_by(model.bytes.0 as f64 / 1e9)?;
    let (tokens_per_s, low, high) = (per_s.value, per_s.low, per_s.high);
    Some(Ceiling { model: model.clone(), place, read_gbs: found.value(), tokens_per_s, low, high, memory, fits: model.bytes < memory })
}
