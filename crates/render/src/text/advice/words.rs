//! Advice in English.

use memgauge_analysis::advice::{
    Action, Advice, AgainstCeiling, Cause, Ceiling, Doubt, Effect, Fit, LeftOut, Model, Number, PossibleCause, Ratio, Recommendation, Role,
    Topic, WeightsPlace, Why,
};
use memgauge_model::experiment::{ChaseOrder, PrefetchRequest};
use memgauge_model::interleave::Weights;
use memgauge_model::topology::OperatingSystem;
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording::{ids, nodes, spelled};
use memgauge_model::words::Knob;

use crate::number::{human, number, percent};

/// The answer in a line.
pub(super) fn headline(advice: &Advice) -> String {
    let system = system(advice);
    let Some(first) = advice.recommendations.first() else {
        let command = advice.gaps.iter().find_map(|gap| gap.command.as_deref());
        let how = command.map(|command| format!("; measure: {command}")).unwrap_or_default();
        return format!("No advice: these results do not support any{how}");
    };
    if let Action::ExplainTokens { seen_tokens_per_s, ceiling, against, causes, .. } = &first.action {
        return seen(*seen_tokens_per_s, ceiling, *against, causes);
    }
    let tokens = advice.recommendations.iter().find_map(|r| match &r.action {
        Action::ExpectTokens { ceilings, .. } => {
            let highest = ceilings.first()?;
            Some(format!("{}: at most {} tokens/s", model(&highest.model), number(highest.tokens_per_s)))
        }
        _ => None,
    });
    match (&first.action, tokens) {
        (Action::ExpectTokens { .. }, Some(tokens)) => tokens,
        (_, Some(tokens)) => format!("{}; {tokens}", short(first, system)),
        (_, None) => short(first, system),
    }
}

/// Causes that fit and are named in the answer; the table has all.
const NAMED: usize = 2;

/// The rate that is seen against the ceiling, and the causes that fit, in a line.
fn seen(tokens_per_s: f64, ceiling: &Ceiling, against: AgainstCeiling, causes: &[PossibleCause]) -> String {
    let share = of_ceiling(tokens_per_s, ceiling);
    let fit: Vec<String> = fitting(causes).take(NAMED).map(|(name, rate)| format!("{name} ({})", number(rate))).collect();
    match against {
        AgainstCeiling::Below if fit.is_empty() => format!("{share}; {}", none_fits(causes)),
        AgainstCeiling::Below => format!("{share}; this fits: {}", fit.join(", ")),
        AgainstCeiling::At => format!("{share}; memory's bandwidth is the limit"),
        AgainstCeiling::Above => format!("{share}; the model reads fewer bytes for each token than {}", human(ceiling.model.bytes)),
    }
}

/// `6.10 of at most 9.40 tokens/s: 65 %`.
fn of_ceiling(tokens_per_s: f64, ceiling: &Ceiling) -> String {
    let share = percent(tokens_per_s / ceiling.tokens_per_s);
    format!("{} of at most {} tokens/s: {share}", number(tokens_per_s), number(ceiling.tokens_per_s))
}

/// The causes that fit, with their tokens a second.
fn fitting(causes: &[PossibleCause]) -> impl Iterator<Item = (String, f64)> {
    let fits = |possible: &PossibleCause| {
        possible.rate.filter(|rate| rate.fit == Fit::Fits).map(|rate| (cause(&possible.cause), rate.tokens_per_s))
    };
    causes.iter().filter_map(fits)
}

/// That the results have no cause that fits.
fn none_fits(causes: &[PossibleCause]) -> &'static str {
    match causes.iter().any(|possible| possible.rate.is_some()) {
        true => "no cause that was measured fits alone",
        false => "possible causes were not measured",
    }
}

/// The limit, and the bytes of a token, that follow from the rate that is seen.
fn explain(tokens_per_s: f64, ceiling: &Ceiling, against: AgainstCeiling, implied: Bytes, causes: &[PossibleCause]) -> String {
    let (share, bytes) = (of_ceiling(tokens_per_s, ceiling), human(ceiling.model.bytes));
    let implied_gib = human(implied);
    match against {
        AgainstCeiling::Below => {
            let fit = match fitting(causes).count() {
                0 => format!("But {}.", none_fits(causes)),
                1 => "One cause fits: test that first.".to_owned(),
                _ => "Several causes fit: test those first.".to_owned(),
            };
            format!("You see {share}. {fit} If all of the bandwidth is used, each token reads {implied_gib} and not {bytes}.")
        }
        AgainstCeiling::At => format!(
            "You see {share}. Memory's bandwidth is the limit: only fewer bytes for each token (a smaller quantisation) or more bandwidth make it faster."
        ),
        AgainstCeiling::Above => format!(
            "You see {share}. So each token reads at most {implied_gib} and not {bytes}: the size is wrong, or one of these is the cause. The rate of reading a prompt does not count: its tokens share the weights, as in a batch."
        ),
    }
}

/// What may be the cause.
pub(super) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::FewerThreads { threads } if threads.is_empty() => "too few threads".to_owned(),
        Cause::FewerThreads { threads } if *threads == IdSet::one(1) => "1 thread".to_owned(),
        Cause::FewerThreads { threads } => format!("{} threads", ids(threads)),
        Cause::Placement { place: None } => "weights on one node, or on another one".to_owned(),
        Cause::Placement { place: Some(place) } => format!("weights on {}", weights_on(place)),
        Cause::BasePages => "base pages".to_owned(),
        Cause::PrefetchersOff => "prefetchers off".to_owned(),
        Cause::RandomAccess => "random lines (experts)".to_owned(),
        Cause::LeftOut { what: LeftOut::KvCache } => "KV cache and activations (more bytes)".to_owned(),
        Cause::LeftOut { what: LeftOut::Compute } => "compute (dequantisation)".to_owned(),
        Cause::LeftOut { what } => left_out(*what).to_owned(),
    }
}

/// Whether a cause fits, in a word or two that [`FITS`] explains.
pub(super) const fn fit(fit: Fit) -> &'static str {
    match fit {
        Fit::Fits => "fits",
        Fit::Slower => "in part",
        Fit::Faster => "not alone",
    }
}

/// The words of [`fit`].
pub(super) const FITS: &str = "Fits: within 10 % of what you see. In part: slower than that, so it can be a part of the cause at most. Not \
alone: faster than that.";

/// Where a model's weights are.
pub(super) fn weights_on(place: &WeightsPlace) -> String {
    match place {
        WeightsPlace::OwnNodes { nodes: list } => format!("own nodes ({})", nodes(list)),
        WeightsPlace::OneNode { node } => format!("node {node}"),
        WeightsPlace::OtherNode { node, cpu_node } => format!("node {node}, threads on {cpu_node}"),
        WeightsPlace::Interleaved { weights } => format!("nodes in turn ({weights})"),
    }
}

/// A recommendation in a line.
fn short(recommendation: &Recommendation, system: OperatingSystem) -> String {
    match &recommendation.action {
        Action::UseThreads { mix, threads, of, share, .. } if threads < of => {
            format!("{threads} of {of} threads give {} of {}", percent(share.value), bandwidth_of(*mix))
        }
        Action::UseThreads { mix, of: 2, .. } => format!("Both threads are needed for {}", bandwidth_of(*mix)),
        Action::UseThreads { mix, of, .. } => format!("All {of} threads are needed for {}", bandwidth_of(*mix)),
        _ => {
            let text = action(recommendation, system);
            text.split(": ").next().unwrap_or(&text).trim_end_matches('.').to_owned()
        }
    }
}

fn bandwidth_of(mix: Mix) -> String {
    if mix == Mix::AllReads { "the read bandwidth".to_owned() } else { format!("the bandwidth of {mix}") }
}

/// `Llama`, or the bytes of a model without a name.
pub(super) fn model(model: &Model) -> String {
    model.name.clone().unwrap_or_else(|| human(model.bytes))
}

/// The subject of a piece of advice.
pub(super) const fn topic(topic: Topic) -> &'static str {
    match topic {
        Topic::Threads => "Threads",
        Topic::TokensPerSecond => "Tokens a second",
        Topic::Smt => "Hardware threads of a core",
        Topic::Load => "Load",
        Topic::Placement => "Node placement",
        Topic::Interleave => "Interleaving",
        Topic::NodesPerPackage => "Nodes per package (NPS, SNC)",
        Topic::HugePages => "Huge pages",
        Topic::Prefetchers => "Prefetchers",
    }
}

/// The recommended action, and the reason for it.
pub(super) fn action(recommendation: &Recommendation, system: OperatingSystem) -> String {
    match &recommendation.action {
        Action::UseThreads { mix, threads, of, share, knee } => use_threads(recommendation, *mix, (*threads, *of), *share, *knee),
        Action::ExpectTokens { .. } => {
            "Expect no more tokens a second than this: the read bandwidth over the bytes for each token.".to_owned()
        }
        Action::ExplainTokens { seen_tokens_per_s, ceiling, against, implied, causes, .. } => {
            explain(*seen_tokens_per_s, ceiling, *against, *implied, causes)
        }
        Action::UseSecondThreads { mix, cores, threads, bandwidth, effect } => second_threads(*mix, *cores, *threads, *bandwidth, *effect),
        Action::StayBelow { mix, gbs, share, growth } => format!(
            "Keep the load ({mix}) below {} GB/s: that is {} of the highest bandwidth, and at the highest load latency is {} times as long.",
            number(*gbs),
            of_range(*share),
            number(growth.value)
        ),
        Action::KeepLocal { latency, latency_effect, bandwidth, bandwidth_effect } => {
            let costs = *latency_effect == Some(Effect::More) || *bandwidth_effect == Some(Effect::Less);
            let what = both(*latency, *bandwidth);
            if costs {
                format!("Keep threads and their memory on one node ({}): memory of another node has {what}.", system.words().on_one_node)
            } else {
                format!("Threads may use the memory of any node: that of another one has {what}.")
            }
        }
        Action::InterleaveNodes { mix, weights, bandwidth, effect } => interleave_nodes(*mix, weights, *bandwidth, *effect, system),
        Action::InterleaveForLatency { mix, weights, demand_gbs, latency, effect } => {
            interleave_for_latency(*mix, weights, *demand_gbs, *latency, *effect, system)
        }
        Action::SeparateNodesOfPackage { nodes_per_package, latency, effect } => {
            let change = change(*latency);
            match effect {
                Effect::Same | Effect::Less => format!(
                    "The {nodes_per_package} nodes of a package may be treated as one: another of them changes latency by {change}."
                ),
                Effect::More => format!(
                    "Keep programs that fit on one of the {nodes_per_package} nodes of a package there: another of them costs {change} latency."
                ),
            }
        }
        Action::ChooseNodesPerPackage { fewer, more, latency, latency_effect, bandwidth, bandwidth_effect } => {
            let gains = *latency_effect == Some(Effect::Less) || *bandwidth_effect == Some(Effect::More);
            let loses = *latency_effect == Some(Effect::More) || *bandwidth_effect == Some(Effect::Less);
            let what = format!("with {more} instead of {fewer}, memory has {}", both(*latency, *bandwidth));
            match (gains, loses) {
                (true, false) => format!("Set {more} nodes per package, for programs that keep to their node: {what}."),
                (false, true) => format!("Set {fewer} nodes per package: {what}."),
                (true, true) => format!("Choose by what matters more: {what}."),
                (false, false) => format!("Keep {fewer} nodes per package: {what}."),
            }
        }
        Action::UseHugePages { order, latency, effect } => {
            let (change, order) = (change(*latency), order_of(*order));
            match effect {
                Effect::Less => format!("Use huge pages for large data that is read in random order: latency {order} changes by {change}."),
                Effect::Same => format!("Huge pages hardly matter: latency {order} changes by {change}."),
                Effect::More => format!("Keep base pages: with huge pages latency {order} changes by {change}."),
            }
        }
        Action::ExpectFromLargerPages { pages, latency, effect, .. } => {
            let (change, kind) = (change(*latency), pages.in_words());
            match effect {
                Effect::More => format!(
                    "Larger pages may help random access: with {kind}, translation adds {change} to its latency. That is the most they can save."
                ),
                Effect::Same | Effect::Less => {
                    format!("Larger pages would hardly help: with {kind}, translation changes the latency of random access by {change}.")
                }
            }
        }
        Action::SetPrefetchers { to, bandwidth, latency, .. } => {
            let what = both(*latency, *bandwidth);
            match to {
                PrefetchRequest::Off => format!("Try without prefetchers: without them, memory has {what}."),
                PrefetchRequest::On | PrefetchRequest::Leave => format!("Leave prefetchers on: without them, memory has {what}."),
            }
        }
    }
}

/// All hardware threads against one on each core.
fn second_threads(mix: Mix, cores: u32, threads: u32, bandwidth: Ratio, effect: Effect) -> String {
    let change = change(bandwidth);
    match effect {
        Effect::More => {
            format!("Use all {threads} hardware threads: {change} bandwidth ({mix}) over one on each of {cores} cores.")
        }
        Effect::Less => {
            format!("Use one thread on each of {cores} cores: all {threads} hardware threads change the bandwidth ({mix}) by {change}.")
        }
        Effect::Same => {
            format!("One thread on each of {cores} cores is enough: all {threads} give the same bandwidth ({mix}), {change}.")
        }
    }
}

/// Pages on several nodes against the nearest one, by bandwidth.
fn interleave_nodes(mix: Option<Mix>, weights: &Weights, bandwidth: Ratio, effect: Effect, system: OperatingSystem) -> String {
    let (change, mix) = (change(bandwidth), mix.map(|mix| format!(" ({mix})")).unwrap_or_default());
    match effect {
        Effect::More => format!(
            "Interleave pages with the weights {weights} ({}): {change} bandwidth{mix} over the nearest node alone.",
            system.words().by_weights
        ),
        Effect::Less | Effect::Same => {
            format!("Keep pages on the nearest node: interleaving with the weights {weights} changes the bandwidth{mix} by {change}.")
        }
    }
}

/// The same by the latency at a demand.
fn interleave_for_latency(
    mix: Option<Mix>,
    weights: &Weights,
    demand_gbs: f64,
    latency: Ratio,
    effect: Effect,
    system: OperatingSystem,
) -> String {
    let (change, mix) = (change(latency), mix.map(|mix| format!(" ({mix})")).unwrap_or_default());
    let load = format!("{} GB/s{mix}", number(demand_gbs));
    match effect {
        Effect::Less => format!(
            "Interleave pages with the weights {weights} ({}): {change} latency at {load} over the nearest node alone.",
            system.words().by_weights
        ),
        Effect::More | Effect::Same => {
            format!("Keep pages on the nearest node: at {load}, interleaving with the weights {weights} changes latency by {change}.")
        }
    }
}

/// The operating system of the results; Linux where they are of several.
pub(super) fn system(advice: &Advice) -> OperatingSystem {
    let mut systems = advice.results.iter().map(|result| result.system);
    let first = systems.next().unwrap_or_default();
    if systems.all(|system| system == first) { first } else { OperatingSystem::Linux }
}

fn use_threads(recommendation: &Recommendation, mix: Mix, (threads, of): (u32, u32), share: Ratio, knee: Option<u32>) -> String {
    let value = |role| recommendation.numbers.iter().find(|n| n.role == role);
    let compared = |a: Option<&Number>, b: Option<&Number>| {
        let (a, b) = (a?, b?);
        Some((a.at.cpus.as_ref()?.len(), percent(a.value? / b.value?)))
    };
    let mut text = if threads < of {
        format!(
            "Use {threads} of {of} threads: they give {} of {} that {} reach.",
            of_range(share),
            highest(mix),
            highest_threads(recommendation)
        )
    } else {
        format!("Use all {of} threads for {}.", highest(mix))
    };
    if let Some((fewer, part)) = compared(value(Role::Fewer), value(Role::Highest).or_else(|| value(Role::Advised))) {
        text += &format!(" {fewer} {} {part}.", if fewer == 1 { "gives" } else { "give" });
    }
    if let Some((all, part)) = compared(value(Role::All), value(Role::Highest).or_else(|| value(Role::Advised))) {
        text += &format!(" All {all} together give {part}.");
    }
    if let Some(knee) = knee {
        text += &format!(" The knee of the ramp is at {knee}.");
    }
    text
}

fn highest(mix: Mix) -> String {
    if mix == Mix::AllReads { "the highest read bandwidth".to_owned() } else { format!("the highest bandwidth of {mix}") }
}

/// `64` or `they`.
fn highest_threads(recommendation: &Recommendation) -> String {
    let highest = recommendation.numbers.iter().find(|n| n.role == Role::Highest);
    highest.and_then(|n| n.at.cpus.as_ref()).map_or_else(|| "they".to_owned(), |cpus| cpus.len().to_string())
}

/// The changes of latency and bandwidth.
fn both(latency: Option<Ratio>, bandwidth: Option<Ratio>) -> String {
    let parts = [latency.map(|r| format!("{} latency", change(r))), bandwidth.map(|r| format!("{} read bandwidth", change(r)))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

/// `+5.1 % (+4.0 to +6.2)`.
fn change(ratio: Ratio) -> String {
    let percents = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0)).replace('-', "−");
    format!("{} % ({} to {})", percents(ratio.value), percents(ratio.low), percents(ratio.high))
}

/// `97 % (96 to 98 %)`.
fn of_range(ratio: Ratio) -> String {
    let (low, high) = (percent(ratio.low), percent(ratio.high));
    if low == high { percent(ratio.value) } else { format!("{} ({} to {high})", percent(ratio.value), low.trim_end_matches(" %")) }
}

const fn order_of(order: ChaseOrder) -> &'static str {
    match order {
        ChaseOrder::FullRandom => "in random order over the whole buffer",
        ChaseOrder::WindowLocal => "in random order within windows",
        ChaseOrder::Sequential => "in ascending order",
    }
}

/// Why advice is not more than likely.
pub(super) fn doubt(doubt: &Doubt) -> String {
    match doubt {
        Doubt::IntervalTooWide => "the intervals do not exclude the other side of the threshold".to_owned(),
        Doubt::Degraded { reasons } => {
            let reasons: Vec<String> = reasons.iter().map(spelled).collect();
            format!("numbers are degraded ({})", reasons.join(", "))
        }
        Doubt::PointsLeftOut { threads } => format!("the points of {} threads are unreliable or missing, and left out", ids(threads)),
        Doubt::NotMeasuredHere => {
            "the tokens a second and the bytes for each were given and not measured; a cause that fits need not be the one".to_owned()
        }
        Doubt::PartOfMachine { cores, of } => {
            format!("the ceiling may be too low, because at most {cores} of {of} cores read at once in these results")
        }
    }
}

/// What a ceiling leaves out.
pub(super) const fn left_out(what: LeftOut) -> &'static str {
    match what {
        LeftOut::KvCache => "the KV cache",
        LeftOut::Compute => "compute",
        LeftOut::Synchronisation => "synchronisation of threads",
        LeftOut::Batches => "batches (several sequences share a reading)",
        LeftOut::UnusedExperts => "experts that a token does not use (give the bytes of the active ones)",
        LeftOut::Caches => "caches (what stays in them is not read again)",
    }
}

/// What a number shows.
pub(super) fn role(n: &Number) -> String {
    let threads = n.at.cpus.as_ref().map_or(0, |cpus| cpus.len());
    let threads = format!("{threads} {}", if threads == 1 { "thread" } else { "threads" });
    match n.role {
        Role::Advised | Role::Fewer | Role::All | Role::OnePerCore => threads,
        Role::Highest => format!("highest, {threads}"),
        Role::Knee => "at the knee".to_owned(),
        Role::LowestLoad => "at the lowest load".to_owned(),
        Role::HighestLoad => "at the highest load".to_owned(),
        Role::Own => "own node".to_owned(),
        Role::Other => "other node".to_owned(),
        Role::NearestOnly => "nearest node alone".to_owned(),
        Role::Interleaved => "interleaved".to_owned(),
        Role::FewerNodes => "fewer nodes".to_owned(),
        Role::MoreNodes => "more nodes".to_owned(),
        Role::BasePages => "base pages".to_owned(),
        Role::HugePages => "huge pages".to_owned(),
        Role::WindowLocal => "within windows".to_owned(),
        Role::FullRandom => "over the whole buffer".to_owned(),
        Role::PrefetchersOn => "prefetchers on".to_owned(),
        Role::PrefetchersOff => "prefetchers off".to_owned(),
        Role::RandomAccess => "random lines".to_owned(),
        Role::NotUsed => "not used".to_owned(),
    }
}

/// The reason why the results give no advice.
pub(super) fn why(why: &Why) -> String {
    match why {
        Why::NotMeasured => "not measured".to_owned(),
        Why::Unreliable => "what was measured is unreliable, has no interval, or is missing".to_owned(),
        Why::NotMemory => format!("the buffers may be in caches, so the numbers are not memory's; measure without {}", Knob::Size),
        Why::Open => "the intervals show neither a difference of more than 3 % nor that there is none".to_owned(),
        Why::NoKnee => "the curve has no knee that its intervals tell from noise".to_owned(),
        Why::OneNumberOfNodes { nodes_per_package } => format!(
            "only {nodes_per_package} for each package was measured; where firmware can change it, measure again and give both results"
        ),
        Why::OneKindOfPages { pages } => format!("only {} were measured", pages.in_words()),
        Why::PrefetchersStillOn => "latencies contradict the registers that say that prefetchers are off".to_owned(),
        Why::OfTheProgram => "it depends on the program".to_owned(),
        Why::NoModel => format!("give a model's size, such as {} 8G", Knob::ModelBytes),
    }
}

#[cfg(test)]
mod tests {
    use memgauge_analysis::advice::Sureness;
    use memgauge_model::interleave::Weights;

    use super::*;

    #[test]
    fn interleaving_for_latency_is_advised_where_latency_is_less() {
        let said = |system, value: f64, effect| {
            let latency = Ratio { value, low: value - 0.01, high: value + 0.01 };
            let weights = Weights::new([(0, 2), (1, 1)]).unwrap();
            let action = Action::InterleaveForLatency { mix: Some(Mix::AllReads), weights, demand_gbs: 20.0, latency, effect };
            let (topic, sureness) = (Topic::Interleave, Sureness::Shown);
            super::action(&Recommendation { topic, action, sureness, doubts: Vec::new(), numbers: Vec::new() }, system)
        };
        let less = said(OperatingSystem::Linux, 0.8, Effect::Less);
        assert!(
            less.starts_with("Interleave pages with the weights 0=2,1=1") && less.contains("−20.0 % (−21.0 to −19.0) latency"),
            "{less}"
        );
        let windows = said(OperatingSystem::Windows, 0.8, Effect::Less);
        assert!(less.contains("numactl") && !windows.contains("numactl") && windows.contains("VirtualAllocExNuma"), "{windows}");
        let more = said(OperatingSystem::Linux, 1.5, Effect::More);
        assert!(more.starts_with("Keep pages on the nearest node: at 20") && more.contains("latency by +50.0 %"), "{more}");
    }
}
