//! Why a program that decodes tokens is slower or faster than the ceiling of read bandwidth: the rates that possible causes would allow.

use memgauge_model::experiment::{Experiment, Metric};
use memgauge_model::note::NoteCode;
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words::{Command, Knob, Verb};

use super::document::{
    Action, AgainstCeiling, Cause, CauseRate, Ceiling, Doubt, Effect, Fit, LeftOut, Model, PossibleCause, Ratio, Role, Topic, WeightsPlace,
    Why,
};
use super::evidence::{Found, Results, TopicAdvice, is_whole, why_not};
use super::pages::is_backed_by;
use super::placement::has_nodes;
use super::prefetchers;
use super::threads::{ENOUGH, ramp_command};
use super::tokens::{ceiling, highest_by_place, place, reads};

/// A rate up to this share away from what is seen fits it: a model's file is not exactly what is read for each token, and neither of the two
/// rates is exact.
const CLOSE: f64 = 0.10;

/// Points of a ramp between two that were measured: enough to tell one that fits, at a second or two each.
const POINTS_BETWEEN: usize = 8;

/// The rate that is seen and its ceiling, which causes are compared with.
struct Question<'q, 'a> {
    results: &'q Results<'a>,
    /// Every usable read bandwidth.
    reads: &'q [Found<'a>],
    seen_tokens_per_s: f64,
    /// The model's bytes in GB.
    gb: f64,
    ceiling: &'q Ceiling,
    /// The ceiling's bandwidth.
    highest: Found<'a>,
}

/// A cause with the number that its rate is from.
type Considered<'a> = (PossibleCause, Option<(Role, Found<'a>)>);

/// Says how the tokens a second that are seen of the first model compare with its ceiling, and what could explain the difference. Nothing if
/// they are not given, or no bandwidth makes a ceiling.
pub(super) fn explain(results: &Results<'_>, models: &[Model], seen_tokens_per_s: Option<f64>) -> TopicAdvice {
    let mut advice = TopicAdvice::default();
    let (Some(seen_tokens_per_s), [model, ..]) = (seen_tokens_per_s, models) else { return advice };
    let usable: Vec<Found<'_>> = reads(results, Access::Sequential).into_iter().filter(Found::is_usable).collect();
    let places = highest_by_place(&usable);
    let ceilings: Vec<(Ceiling, Found<'_>)> =
        places.iter().filter_map(|(place, found)| Some((ceiling(model, place.clone(), found)?, *found))).collect();
    let Some((ceiling, highest)) = ceilings.iter().find(|(ceiling, _)| ceiling.fits).or(ceilings.first()) else { return advice };
    let share = Ratio {
        value: seen_tokens_per_s / ceiling.tokens_per_s,
        low: seen_tokens_per_s / ceiling.high,
        high: seen_tokens_per_s / ceiling.low,
    };
    let against = match share.effect() {
        Some(Effect::More) => AgainstCeiling::Above,
        _ if share.value < 1.0 - CLOSE => AgainstCeiling::Below,
        _ => AgainstCeiling::At,
    };
    let implied = Bytes((ceiling.read_gbs * 1e9 / seen_tokens_per_s) as u64);
    let gb = model.bytes.0 as f64 / 1e9;
    let question = Question { results, reads: &usable, seen_tokens_per_s, gb, ceiling, highest: *highest };
    let mut considered = match against {
        AgainstCeiling::Below => question.slower(),
        AgainstCeiling::At => Vec::new(),
        AgainstCeiling::Above => question.faster(implied),
    };
    // Of equal rank, the closest comes first.
    considered
        .sort_by(|a, b| question.rank(&a.0).0.cmp(&question.rank(&b.0).0).then(question.rank(&a.0).1.total_cmp(&question.rank(&b.0).1)));
    let (causes, found): (Vec<PossibleCause>, Vec<_>) = considered.into_iter().unzip();
    let numbers: Vec<(Role, Found<'_>)> = std::iter::once((Role::Highest, *highest)).chain(found.into_iter().flatten()).collect();
    let doubts = std::iter::once(Doubt::NotMeasuredHere).chain(part_of_machine(&usable)).collect();
    let action = Action::ExplainTokens { seen_tokens_per_s, ceiling: ceiling.clone(), share, against, implied, causes };
    advice.recommend(Topic::TokensPerSecond, action, &numbers, doubts);
    advice
}

/// If no number is of all cores together: how many read at most. The ceiling may be too low then.
fn part_of_machine(usable: &[Found<'_>]) -> Option<Doubt> {
    let cores = |f: &Found<'_>, cpus: &IdSet| f.topology().one_per_core(cpus).len() as u32;
    let of = usable.iter().map(|f| cores(f, &f.report.machine.default_cpus())).max()?;
    let most = usable.iter().filter_map(|f| Some(cores(f, f.m.at.cpus.as_ref()?))).max()?;
    (most < of).then_some(Doubt::PartOfMachine { cores: most, of })
}

/// A cause without a rate.
const fn without_rate(cause: Cause, why: Why, command: Option<String>) -> PossibleCause {
    PossibleCause { cause, rate: None, why: Some(why), command }
}

/// The command that shows what a program does with the memory: misses, requests in flight, and where counters allow it bytes.
fn count() -> String {
    Command::new(Verb::Count).word("--").word("PROGRAM").to_string()
}

impl<'a> Question<'_, 'a> {
    /// What could make decoding slower than the ceiling.
    fn slower(&self) -> Vec<Considered<'a>> {
        let mut all = self.fewer_threads();
        all.extend(self.placements());
        all.extend([self.base_pages(), self.random_access()]);
        all.extend(self.prefetchers_off());
        let of_program = [LeftOut::KvCache, LeftOut::Compute, LeftOut::Synchronisation];
        all.extend(of_program.map(|what| (without_rate(Cause::LeftOut { what }, Why::OfTheProgram, Some(count())), None)));
        all
    }

    /// What could make it faster. Caches are named if they can hold what is not read.
    fn faster(&self, implied: Bytes) -> Vec<Considered<'a>> {
        let caches = &self.highest.topology().caches;
        let last = caches.iter().map(|cache| cache.level).max();
        let held: u64 = caches.iter().filter(|cache| Some(cache.level) == last).map(|cache| cache.size.0).sum();
        let not_read = self.ceiling.model.bytes.0.saturating_sub(implied.0);
        let in_caches = (held >= not_read).then_some(LeftOut::Caches);
        let all = [LeftOut::UnusedExperts, LeftOut::Batches].into_iter().chain(in_caches);
        all.map(|what| (without_rate(Cause::LeftOut { what }, Why::OfTheProgram, None), None)).collect()
    }

    /// The place of a cause among the others: its kind, and how far its rate is from what is seen.
    fn rank(&self, cause: &PossibleCause) -> (u8, f64) {
        let kind = match cause.rate.map(|rate| rate.fit) {
            Some(Fit::Fits) => 0,
            None => 1,
            Some(Fit::Slower) => 2,
            Some(Fit::Faster) => 3,
        };
        (kind, cause.rate.map_or(0.0, |rate| self.distance(rate.tokens_per_s)))
    }

    /// The distance of a rate from the one that is seen, by their ratio.
    fn distance(&self, tokens_per_s: f64) -> f64 {
        (tokens_per_s / self.seen_tokens_per_s).ln().abs()
    }

    fn rate(&self, tokens: Ratio, guessed: bool) -> CauseRate {
        let (c, seen) = (self.ceiling, self.seen_tokens_per_s);
        let fit = match tokens.value / seen {
            ratio if (ratio - 1.0).abs() <= CLOSE => Fit::Fits,
            ratio if ratio < 1.0 => Fit::Slower,
            _ => Fit::Faster,
        };
        let share = Ratio { value: tokens.value / c.tokens_per_s, low: tokens.low / c.high, high: tokens.high / c.low };
        CauseRate { tokens_per_s: tokens.value, low: tokens.low, high: tokens.high, share, fit, guessed }
    }

    /// A cause with the bandwidth that was measured with it.
    fn measured(&self, cause: Cause, role: Role, found: Found<'a>) -> Option<Considered<'a>> {
        let rate = self.rate(found.divided_by(self.gb)?, false);
        Some((PossibleCause { cause, rate: Some(rate), why: None, command: None }, Some((role, found))))
    }

    /// The one whose rate is closest to what is seen.
    fn closest(&self, found: impl Iterator<Item = Found<'a>>) -> Option<Found<'a>> {
        found.min_by(|a, b| self.distance(a.value() / self.gb).total_cmp(&self.distance(b.value() / self.gb)))
    }

    /// The measured numbers of threads just below and just above what is seen, and those between that were not measured. One that fits is
    /// enough.
    fn fewer_threads(&self) -> Vec<Considered<'a>> {
        let cause = |threads| Cause::FewerThreads { threads };
        let is_ramp = |f: &&Found<'a>| {
            f.m.experiment == Experiment::BandwidthRamp
                && matches!(place(f), Some(WeightsPlace::OwnNodes { .. } | WeightsPlace::OneNode { .. }))
        };
        let mut ramp: Vec<Found<'a>> = self.reads.iter().filter(is_ramp).copied().collect();
        if ramp.is_empty() {
            let many = self.results.any_machine(|_, allowed| allowed.len() > 1);
            let missing = without_rate(cause(IdSet::new()), Why::NotMeasured, Some(ramp_command().to_string()));
            return many.then_some((missing, None)).into_iter().collect();
        }
        ramp.sort_by_key(Found::cpus);
        let highest = ramp.iter().map(Found::value).fold(0.0, f64::max);
        ramp.retain(|f| f.value() < ENOUGH * highest);
        let at = |f: Found<'a>| self.measured(cause(IdSet::one(f.cpus())), Role::Fewer, f);
        let fits = |f: &Found<'a>| (f.value() / self.gb / self.seen_tokens_per_s - 1.0).abs() <= CLOSE;
        if let Some(best) = self.closest(ramp.iter().copied().filter(fits)) {
            return at(best).into_iter().collect();
        }
        let is_faster = |f: &Found<'a>| f.value() / self.gb > self.seen_tokens_per_s;
        let above = ramp.iter().position(is_faster);
        let below = above.unwrap_or(ramp.len()).checked_sub(1).map(|i| ramp[i]);
        let above = above.map(|i| ramp[i]);
        let mut all: Vec<Considered<'a>> = [below, above].into_iter().flatten().filter_map(at).collect();
        if let (Some(below), Some(above)) = (below, above)
            && below.cpus() + 1 < above.cpus()
        {
            let between: IdSet = (below.cpus() + 1..above.cpus()).collect();
            let step = between.len().div_ceil(POINTS_BETWEEN);
            let some = if step > 1 { format!("{between}:{step}") } else { between.to_string() };
            let command = Command::new(Verb::Bandwidth).set(Knob::Ramp, some).to("between.json");
            all.push((without_rate(cause(between), Why::NotMeasured, Some(command.to_string())), None));
        }
        all
    }

    /// The weights on one node, read by its own threads or by those of another one, and interleaved.
    fn placements(&self) -> Vec<Considered<'a>> {
        if !self.results.any_machine(has_nodes) {
            return Vec::new();
        }
        let is_other = |f: &Found<'a>| match (f.m.at.cpu_node, f.m.at.memory_node()) {
            (Some(cpu_node), Some(node)) if cpu_node != node && is_whole(f.topology(), node) => {
                Some(WeightsPlace::OtherNode { node, cpu_node })
            }
            _ => None,
        };
        // The points of a ramp are numbers of threads, also where all of them are on one node.
        let not_ramp = |f: &&Found<'a>| f.m.experiment != Experiment::BandwidthRamp;
        let placed: Vec<(WeightsPlace, Found<'a>)> =
            self.reads.iter().filter(not_ramp).filter_map(|f| Some((is_other(f).or_else(|| place(f))?, *f))).collect();
        // With few threads, a place has less than it can give.
        let is_highest =
            |(place, f): &&(WeightsPlace, Found<'a>)| placed.iter().all(|(other, found)| other != place || found.value() <= f.value());
        let of_kind = |role: Role, is_kind: fn(&WeightsPlace) -> bool| {
            let found: Vec<&(WeightsPlace, Found<'a>)> = placed.iter().filter(|(place, _)| is_kind(place)).filter(is_highest).collect();
            let best = self.closest(found.iter().map(|(_, f)| *f))?;
            let (place, _) = found.iter().find(|(_, f)| std::ptr::eq(f.m, best.m))?;
            self.measured(Cause::Placement { place: Some(place.clone()) }, role, best)
        };
        let single = [
            of_kind(Role::NearestOnly, |place| matches!(place, WeightsPlace::OneNode { .. })),
            of_kind(Role::Other, |place| matches!(place, WeightsPlace::OtherNode { .. })),
        ];
        let matrix = Command::new(Verb::Bandwidth).with(Knob::Matrix).to("matrix.json").to_string();
        let missing = single.iter().any(Option::is_none);
        let missing = missing.then(|| (without_rate(Cause::Placement { place: None }, Why::NotMeasured, Some(matrix)), None));
        let interleaved = of_kind(Role::Interleaved, |place| matches!(place, WeightsPlace::Interleaved { .. }));
        let is_news = |(cause, _): &Considered<'a>| cause.cause != Cause::Placement { place: Some(self.ceiling.place.clone()) };
        single.into_iter().flatten().chain(interleaved).filter(is_news).chain(missing).collect()
    }

    /// The same reads with base pages.
    fn base_pages(&self) -> Considered<'a> {
        let same = |f: &&Found<'a>| is_backed_by(f, false) && place(f).as_ref() == Some(&self.ceiling.place);
        let best = self.reads.iter().filter(same).copied().max_by(|a, b| a.value().total_cmp(&b.value()));
        best.and_then(|best| self.measured(Cause::BasePages, Role::BasePages, best)).unwrap_or_else(|| {
            let why = self.highest.m.evidence.pages.obtained.map_or(Why::NotMeasured, |pages| Why::OneKindOfPages { pages });
            let command = Command::new(Verb::Bandwidth).set(Knob::Pages, "4k").to("base.json");
            (without_rate(Cause::BasePages, why, Some(command.to_string())), None)
        })
    }

    /// The same bytes line by line in random order.
    fn random_access(&self) -> Considered<'a> {
        let all = reads(self.results, Access::Random);
        let (usable, left_out): (Vec<Found<'a>>, Vec<Found<'a>>) = all.into_iter().partition(Found::is_usable);
        let same = |f: &Found<'a>| place(f).as_ref() == Some(&self.ceiling.place);
        let best = usable.into_iter().filter(same).max_by(|a, b| a.value().total_cmp(&b.value()));
        best.and_then(|best| self.measured(Cause::RandomAccess, Role::RandomAccess, best)).unwrap_or_else(|| {
            let why = if left_out.is_empty() { Why::NotMeasured } else { why_not(&left_out) };
            let command = Command::new(Verb::Bandwidth).set(Knob::Access, "random").to("random.json");
            (without_rate(Cause::RandomAccess, why, Some(command.to_string())), None)
        })
    }

    /// The ceiling times what reads lose without prefetchers. `None` where prefetchers cannot be switched.
    fn prefetchers_off(&self) -> Option<Considered<'a>> {
        let is_read = |f: &Found<'a>| f.m.at.mix == Some(Mix::AllReads);
        let found: Vec<Found<'a>> =
            self.results.measurements(&[Experiment::PrefetchComparison], Metric::Bandwidth).filter(is_read).collect();
        let without = |why| {
            let command = prefetchers::command().to_string();
            self.results.are_of_linux().then(|| (without_rate(Cause::PrefetchersOff, why, Some(command)), None))
        };
        if found.iter().any(|f| f.report.notes.iter().any(|note| note.code == NoteCode::PrefetchOffNotEffective)) {
            return without(Why::PrefetchersStillOn);
        }
        let Some((off, on)) = prefetchers::off_and_on(&found) else {
            return without(if found.is_empty() { Why::NotMeasured } else { why_not(&found) });
        };
        let (ratio, c) = (off.over(&on)?, self.ceiling);
        let tokens = Ratio { value: c.tokens_per_s * ratio.value, low: c.low * ratio.low, high: c.high * ratio.high };
        let rate = self.rate(tokens, off.cpus() < self.highest.cpus());
        Some((
            PossibleCause { cause: Cause::PrefetchersOff, rate: Some(rate), why: None, command: None },
            Some((Role::PrefetchersOff, off)),
        ))
    }
}
