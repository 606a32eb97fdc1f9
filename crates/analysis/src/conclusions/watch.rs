//! Watching a machine: which of its stamps show one state, and when another begins.
//!
//! A stamp shows another state than the current one if a probe differs from the state's level by more than stamps of that state scatter. One such
//! stamp is chance; the second in a row, with the same probe and in the same direction, begins another state. That state is one that was seen before
//! with the same settings, or, if the two agree with each other, a new one. A new state whose level turns out to be that of an earlier one is
//! folded into it.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::result::{
    Condition, Difference, DifferentField, Moment, OthersBandwidth, OthersScale, ProbeComparison, ProbeLevel, ProbeReading, Stamp,
    StampProbe, StateChange, Watch, WatchPoint, WatchedState,
};
use memgauge_model::stats;

use super::others;
use super::state::{LEAST_CHANGE, STANDARD_ERRORS, disturbances, relative_error, usable};

/// The level of a state is that of its first stamps, so that a machine that becomes slower bit by bit is seen to.
const LEVEL_STAMPS: usize = 30;
/// So many stamps show how much stamps of a state scatter. Before, the scatter within stamps counts, too, and more standard errors.
const KNOWN_SCATTER: usize = 10;
/// Standard errors that chance explains where the scatter is known. Two stamps in a row are beyond, in one probe and direction, in one of 10^9 pairs
/// if stamps are independent.
const KNOWN_ERRORS: f64 = 4.0;
/// Stamps in a row that begin another condition.
const IN_A_ROW: usize = 2;
/// Stamps in a row beside the current state that begin another one even if they disagree with each other.
const ANYWAY: usize = 4;
/// The standard deviation of a normal distribution over its median absolute deviation.
const OF_DEVIATION: f64 = 1.4826;
/// Points that are kept. If there are more, every second one goes.
const MOST_POINTS: usize = 8_000;
/// The last states that are known again.
const MOST_STATES: usize = 500;
/// Changes that are kept: the last ones.
const MOST_CHANGES: usize = 10_000;

/// Values of a stamp by probe, as logarithms, with their standard errors.
type Values = BTreeMap<StampProbe, (f64, f64)>;

/// A quiet stamp that does not show the current state.
#[derive(Debug)]
struct Beside {
    at: Moment,
    values: Values,
    /// The probes that differ, and whether they are above the state's level.
    beyond: BTreeSet<(StampProbe, bool)>,
}

/// Settings of the system that are not those of the first stamp.
type Settings = BTreeMap<DifferentField, Vec<String>>;

/// A state by the stamps that showed it.
#[derive(Debug, Default)]
struct Known {
    stamps: u64,
    first: Vec<Values>,
    settings: Settings,
    /// The number of the earlier state that this one turned out to be.
    folded: Option<usize>,
    /// Its level, once it was known, was compared with those of earlier states.
    is_compared: bool,
}

/// Follows a machine from stamp to stamp.
#[derive(Debug)]
pub struct Watcher {
    watch: Watch,
    states: Vec<Known>,
    /// Of the last stamp whose state is known.
    state: Option<usize>,
    condition: Option<Condition>,
    /// The last state that was reported.
    reported: Option<usize>,
    /// The last quiet stamps, if they do not show the current state.
    beside: Vec<Beside>,
    /// When the last stamps began, if they were busy ones while the machine is quiet, or the other way round.
    turning: Vec<Moment>,
    /// Settings that were changed, as they were at the first stamp.
    original: Settings,
    /// Of so many points one is kept.
    one_in: u64,
}

impl Watcher {
    /// Begins to watch, with a stamp every so many seconds.
    pub fn new(every_s: f64, others: Option<OthersScale>) -> Self {
        let watch = Watch { every_s, others, ..Watch::default() };
        Self {
            watch,
            states: Vec::new(),
            state: None,
            condition: None,
            reported: None,
            beside: Vec::new(),
            turning: Vec::new(),
            original: Settings::new(),
            one_in: 1,
        }
    }

    /// All that was seen so far.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The same, at the end.
    pub fn into_watch(self) -> Watch {
        self.watch
    }

    /// Takes in a stamp. `settings` are those that changed since the last one that showed a state. Returns what it showed, and the condition that it begins.
    pub fn see(&mut self, stamp: &Stamp, settings: Vec<Difference>) -> (WatchPoint, Option<StateChange>) {
        let busy = disturbances(stamp);
        self.watch.stamps += 1;
        self.watch.busy += u64::from(!busy.is_empty());
        self.watch.stamps_s += stamp.took_s;
        let change = match busy.is_empty() {
            true => self.quiet(stamp, settings),
            false => self.busy(stamp),
        };
        let others = self.others(stamp);
        let change = change.map(|change| StateChange { busy: busy.clone(), others, ..change });
        self.watch.changes.extend(change.clone().filter(|change| change.folded.is_none()));
        if self.watch.changes.len() > MOST_CHANGES {
            self.watch.changes.remove(0);
        }
        self.describe();
        let probes: BTreeMap<StampProbe, f64> = stamp.probes.iter().filter_map(|reading| Some((reading.probe, usable(reading)?))).collect();
        let certain = !probes.is_empty() && self.beside.is_empty() && self.turning.is_empty();
        let condition = if busy.is_empty() { self.condition.filter(|_| certain) } else { Some(Condition::Busy) };
        let point = WatchPoint { at: stamp.taken.clone(), condition, busy, probes, others };
        if self.watch.stamps.is_multiple_of(self.one_in) {
            self.watch.points.push(point.clone());
        }
        if self.watch.points.len() > MOST_POINTS {
            let mut nth = 0_u64;
            self.watch.points.retain(|_| {
                nth += 1;
                nth.is_multiple_of(2)
            });
            self.one_in *= 2;
        }
        (point, change)
    }

    /// A stamp while others use the machine.
    fn busy(&mut self, stamp: &Stamp) -> Option<StateChange> {
        self.beside.clear();
        if self.condition == Some(Condition::Busy) {
            self.turning.clear();
            return None;
        }
        self.turn(stamp, Condition::Busy)
    }

    /// The condition `to`, if this stamp is not the first that shows it, or the first of all.
    fn turn(&mut self, stamp: &Stamp, to: Condition) -> Option<StateChange> {
        self.turning.push(stamp.taken.clone());
        if self.turning.len() < IN_A_ROW && self.condition.is_some() {
            return None;
        }
        let at = std::mem::take(&mut self.turning).swap_remove(0);
        Some(self.begin(at, to, true))
    }

    fn begin(&mut self, at: Moment, to: Condition, again: bool) -> StateChange {
        self.condition = Some(to);
        if let Condition::Quiet { state } = to {
            self.watch.changed += u64::from(self.reported.is_some_and(|before| before != state));
            self.reported = Some(state);
        }
        let again = again && matches!(to, Condition::Quiet { .. });
        StateChange { at, to, again, folded: None, probes: Vec::new(), settings: Vec::new(), busy: Vec::new(), others: None }
    }

    fn quiet(&mut self, stamp: &Stamp, settings: Vec<Difference>) -> Option<StateChange> {
        let values = values(stamp);
        if values.is_empty() {
            return None;
        }
        let was_busy = self.condition == Some(Condition::Busy);
        if !was_busy {
            self.turning.clear();
        }
        let Some(current) = self.state.filter(|_| settings.is_empty()) else {
            let now = self.settings(&settings);
            let before = self.state;
            let (state, again) = self.enter(vec![values], now, before);
            let probes = before.map(|before| self.changes(before, state)).unwrap_or_default();
            self.beside.clear();
            self.turning.clear();
            let change = self.begin(stamp.taken.clone(), Condition::Quiet { state: state + 1 }, again);
            return Some(StateChange { probes, settings, ..change });
        };
        let beyond = self.states[current].beyond(&values);
        if beyond.is_empty() {
            self.beside.clear();
            self.states[current].add(values);
            return if was_busy { self.turn(stamp, Condition::Quiet { state: current + 1 }) } else { self.fold(stamp, current) };
        }
        self.beside.push(Beside { at: stamp.taken.clone(), values, beyond });
        self.another(current)
    }

    /// Another state, if enough stamps in a row are beside the current one in the same probe.
    fn another(&mut self, current: usize) -> Option<StateChange> {
        let last = self.beside.len().checked_sub(IN_A_ROW)?;
        let row = &self.beside[last..];
        let common = row.iter().map(|stamp| stamp.beyond.clone()).reduce(|a, b| &a & &b)?;
        if common.is_empty() {
            self.beside.drain(..last + 1);
            return None;
        }
        let in_a_row = self.beside.len();
        // Two stamps that disagree with each other found no state: the second may be the first of one. If a probe differs at each stamp they never agree.
        let agree = Known::new(vec![row[0].values.clone()], Settings::new()).beyond(&row[1].values).is_empty() || in_a_row >= ANYWAY;
        let both: Vec<Values> = row.iter().map(|stamp| stamp.values.clone()).collect();
        let settings = self.states[current].settings.clone();
        if !agree && self.nearest(&both, &settings, Some(current)).is_none() {
            return None;
        }
        let at = row[0].at.clone();
        self.beside.clear();
        self.turning.clear();
        let (state, again) = self.enter(both, settings, Some(current));
        let probes = self.changes(current, state);
        let change = self.begin(at, Condition::Quiet { state: state + 1 }, again);
        Some(StateChange { probes, ..change })
    }

    /// All settings that differ from those of the first stamp, after some changed.
    fn settings(&mut self, changed: &[Difference]) -> Settings {
        let mut now = self.state.map(|state| self.states[state].settings.clone()).unwrap_or_default();
        for Difference { field, before, after } in changed {
            let original = self.original.entry(*field).or_insert_with(|| before.clone());
            match original == after {
                true => now.remove(field),
                false => now.insert(*field, after.clone()),
            };
        }
        now
    }

    /// The earlier state with these settings, other than the one `left`, that all of these stamps fit best.
    fn nearest(&self, stamps: &[Values], settings: &Settings, left: Option<usize>) -> Option<usize> {
        let others = (0..self.states.len()).filter(|i| Some(*i) != left && self.states[*i].settings == *settings);
        let fitting = others.filter_map(|i| Some((i, self.states[i].fit(stamps)?)));
        fitting.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
    }

    /// The state that these stamps show, which is the current one from now on, and whether it was seen before.
    fn enter(&mut self, stamps: Vec<Values>, settings: Settings, left: Option<usize>) -> (usize, bool) {
        let earlier = self.nearest(&stamps, &settings, left);
        let state = match earlier {
            Some(earlier) => {
                stamps.into_iter().for_each(|values| self.states[earlier].add(values));
                earlier
            }
            None => {
                if let Some(oldest) = self.states.len().checked_sub(MOST_STATES) {
                    self.states[oldest].first.clear();
                }
                self.states.push(Known::new(stamps, settings));
                self.states.len() - 1
            }
        };
        self.state = Some(state);
        (state, earlier.is_some())
    }

    /// Folds the current state into an earlier one, if its level is known by now and is that of the earlier one. Then no state began with it.
    fn fold(&mut self, stamp: &Stamp, current: usize) -> Option<StateChange> {
        if self.states[current].first.len() < KNOWN_SCATTER || std::mem::replace(&mut self.states[current].is_compared, true) {
            return None;
        }
        let same =
            |i: &usize| self.states[*i].settings == self.states[current].settings && self.states[*i].is_level_with(&self.states[current]);
        let earlier = (0..current).find(same)?;
        let folded = std::mem::take(&mut self.states[current]);
        self.states[earlier].stamps += folded.stamps;
        self.states[current].folded = Some(earlier + 1);
        self.state = Some(earlier);
        let [from, to] = [current, earlier].map(|state| Condition::Quiet { state: state + 1 });
        let rename = |condition: &mut Condition| {
            if *condition == from {
                *condition = to;
            }
        };
        let before = moves(&self.watch.changes);
        self.watch.points.iter_mut().filter_map(|point| point.condition.as_mut()).for_each(rename);
        for change in self.watch.changes.iter_mut().filter(|change| change.to == from) {
            (change.to, change.again) = (to, true);
        }
        self.watch.changes.dedup_by_key(|change| change.to);
        self.watch.changed -= before - moves(&self.watch.changes);
        self.condition = Some(to);
        self.reported = Some(earlier + 1);
        let mut change = self.begin(stamp.taken.clone(), to, true);
        change.folded = Some(current + 1);
        Some(change)
    }

    /// The probes that differ between the levels of two states, the largest change first.
    fn changes(&self, before: usize, after: usize) -> Vec<ProbeComparison> {
        let after = &self.states[after];
        let mut changes: Vec<ProbeComparison> = self.states[before]
            .levels()
            .filter_map(|level| {
                let now = after.level(level.probe)?.log.exp();
                let change = now / level.value - 1.0;
                let differs = (now / level.value).ln().abs() > level.allowed.ln_1p();
                let ProbeLevel { probe, unit, value, allowed, .. } = level;
                differs.then_some(ProbeComparison { probe, unit, before: value, after: now, change, allowed, differs })
            })
            .collect();
        changes.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
        changes
    }

    /// The state whose memory is fastest, of those that are known well; until there is one, the one with most stamps.
    fn quietest(&self) -> Option<Level> {
        let levels = || self.states.iter().filter_map(|state| state.level(StampProbe::MemoryLatency));
        let known = levels().filter(|level| level.n >= KNOWN_SCATTER).min_by(|a, b| a.log.total_cmp(&b.log));
        known.or_else(|| levels().max_by_key(|level| level.n))
    }

    /// The bandwidth that others seem to use during a stamp.
    fn others(&self, stamp: &Stamp) -> Option<OthersBandwidth> {
        let quiet = self.quietest()?;
        let reading = stamp.reading(StampProbe::MemoryLatency)?;
        let scatter = quiet.scatter.max(relative_error(&reading.rounds));
        Some(others::estimate(self.watch.others.as_ref()?, usable(reading)? / quiet.log.exp(), with_level(scatter, quiet.n)))
    }

    /// Writes down the states and the scale as they are known now.
    fn describe(&mut self) {
        self.watch.states = self
            .states
            .iter()
            .map(|state| WatchedState { stamps: state.stamps, folded: state.folded, probes: state.levels().collect() })
            .collect();
        let quietest = self.quietest();
        if let (Some(scale), Some(quiet)) = (self.watch.others.as_mut(), quietest) {
            scale.quiet_ns = Some(stats::significant(quiet.log.exp()));
            scale.detection_gbs = others::detection_gbs(scale, with_level(quiet.scatter, quiet.n));
        }
    }
}

/// How often these changes lead from one state to another.
fn moves(changes: &[StateChange]) -> u64 {
    let mut states: Vec<Condition> = changes.iter().map(|change| change.to).filter(|to| *to != Condition::Busy).collect();
    states.dedup();
    states.len().saturating_sub(1) as u64
}

/// The standard error of the difference between a stamp and the level of `n` stamps that scatter like it.
fn with_level(scatter: f64, n: usize) -> f64 {
    scatter * (1.0 + 1.0 / n.max(1) as f64).sqrt()
}

fn values(stamp: &Stamp) -> Values {
    let value = |reading: &ProbeReading| Some((reading.probe, (usable(reading)?.ln(), relative_error(&reading.rounds))));
    stamp.probes.iter().filter_map(value).collect()
}

impl Known {
    fn new(first: Vec<Values>, settings: Settings) -> Self {
        Self { stamps: first.len() as u64, first, settings, folded: None, is_compared: false }
    }

    fn add(&mut self, values: Values) {
        self.stamps += 1;
        if self.first.len() < LEVEL_STAMPS {
            self.first.push(values);
        }
    }

    /// The level of a probe.
    fn level(&self, probe: StampProbe) -> Option<Level> {
        let (logs, errors): (Vec<f64>, Vec<f64>) = self.first.iter().filter_map(|values| values.get(&probe)).copied().unzip();
        let between = OF_DEVIATION * stats::mad(&logs)?;
        Some(Level { log: stats::median(&logs)?, scatter: between.max(stats::median(&errors)?), n: logs.len() })
    }

    /// The probes of a stamp that are beyond what the state's scatter allows, and whether they are above.
    fn beyond(&self, values: &Values) -> BTreeSet<(StampProbe, bool)> {
        let beyond = values.iter().filter_map(|(probe, (value, error))| {
            let level = self.level(*probe)?;
            let change = value - level.log;
            (change.abs() > level.allowed(*error)).then_some((*probe, change > 0.0))
        });
        beyond.collect()
    }

    /// The distance of stamps from this state: the largest share of the change that a probe is allowed. `None` if a stamp is beyond it or has none of its
    /// probes.
    fn fit(&self, stamps: &[Values]) -> Option<f64> {
        let share = |(probe, (value, error)): (&StampProbe, &(f64, f64))| {
            let level = self.level(*probe)?;
            Some((value - level.log).abs() / level.allowed(*error))
        };
        let furthest = |values: &Values| values.iter().filter_map(share).max_by(f64::total_cmp).filter(|share| *share <= 1.0);
        stamps.iter().map(furthest).collect::<Option<Vec<f64>>>()?.into_iter().max_by(f64::total_cmp)
    }

    /// Whether the levels of all probes differ by less than half of what either state allows a stamp. One that drifts is not level with where it began.
    fn is_level_with(&self, other: &Self) -> bool {
        let both = StampProbe::ALL.into_iter().filter_map(|probe| Some((self.level(probe)?, other.level(probe)?)));
        let mut level = both.map(|(a, b)| (a.log - b.log).abs() < a.allowed(0.0).min(b.allowed(0.0)) / 2.0).peekable();
        level.peek().is_some() && level.all(|level| level)
    }

    fn levels(&self) -> impl Iterator<Item = ProbeLevel> + '_ {
        StampProbe::ALL.into_iter().filter_map(|probe| {
            let level = self.level(probe)?;
            let [value, scatter, allowed] = [level.log.exp(), level.scatter, level.allowed(0.0).exp_m1()].map(stats::significant);
            Some(ProbeLevel { probe, unit: probe.unit().to_owned(), value, scatter, allowed })
        })
    }
}

/// The level of a probe in a state.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// The median of its stamps, as a logarithm.
    log: f64,
    /// The standard deviation of a stamp around it.
    scatter: f64,
    /// The stamps.
    n: usize,
}

impl Level {
    /// The largest change that the scatter allows to a stamp with this standard error, as a difference of logarithms.
    fn allowed(&self, error: f64) -> f64 {
        let allowed = match self.n < KNOWN_SCATTER {
            true => STANDARD_ERRORS * with_level(self.scatter.max(error), self.n),
            false => KNOWN_ERRORS * with_level(self.scatter, self.n),
        };
        allowed.max(LEAST_CHANGE.ln_1p())
    }
}

#[cfg(test)]
mod tests;
