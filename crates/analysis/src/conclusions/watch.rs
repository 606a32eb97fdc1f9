//! Watching a machine: which of its stamps show one state, and when another begins.
//!
//! A stamp shows another state than the current one if a probe differs from the state's level by more than stamps of that state scatter. One such
//! stamp is chance; the second in a row, with the same probe and in the same direction, begins another state. That state is one that was seen before,
//! or a new one.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::result::{
    Condition, Difference, Moment, OthersBandwidth, OthersScale, ProbeComparison, ProbeLevel, ProbeReading, Stamp, StampProbe, StateChange,
    Watch, WatchPoint, WatchedState,
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

/// A state by the stamps that showed it.
#[derive(Debug, Default)]
struct Known {
    stamps: u64,
    first: Vec<Values>,
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
    /// Of so many points one is kept.
    one_in: u64,
}

impl Watcher {
    /// Begins to watch, with a stamp every so many seconds.
    pub fn new(every_s: f64, others: Option<OthersScale>) -> Self {
        let watch = Watch { every_s, others, ..Watch::default() };
        Self { watch, states: Vec::new(), state: None, condition: None, reported: None, beside: Vec::new(), turning: Vec::new(), one_in: 1 }
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
        self.watch.changes.extend(change.clone());
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
        Some(self.begin(at, to, true, Vec::new(), Vec::new()))
    }

    fn begin(&mut self, at: Moment, to: Condition, again: bool, probes: Vec<ProbeComparison>, settings: Vec<Difference>) -> StateChange {
        self.condition = Some(to);
        if let Condition::Quiet { state } = to {
            self.watch.changed += u64::from(self.reported.is_some_and(|before| before != state));
            self.reported = Some(state);
        }
        let again = again && matches!(to, Condition::Quiet { .. });
        StateChange { at, to, again, probes, settings, busy: Vec::new(), others: None }
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
            let before = self.state;
            let state = self.add_state(vec![values]);
            let probes = before.map(|before| self.changes(before, state)).unwrap_or_default();
            self.beside.clear();
            self.turning.clear();
            return Some(self.begin(stamp.taken.clone(), Condition::Quiet { state: state + 1 }, false, probes, settings));
        };
        let beyond = self.states[current].beyond(&values);
        if beyond.is_empty() {
            self.beside.clear();
            self.states[current].add(values);
            return if was_busy { self.turn(stamp, Condition::Quiet { state: current + 1 }) } else { None };
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
        let row = self.beside.split_off(last);
        self.beside.clear();
        self.turning.clear();
        let at = row[0].at.clone();
        let stamps: Vec<Values> = row.into_iter().map(|stamp| stamp.values).collect();
        let others = (0..self.states.len()).filter(|i| *i != current);
        let fitting = others.filter_map(|i| Some((i, self.states[i].fit(&stamps)?)));
        let earlier = fitting.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i);
        let state = match earlier {
            Some(earlier) => {
                stamps.into_iter().for_each(|values| self.states[earlier].add(values));
                self.state = Some(earlier);
                earlier
            }
            None => self.add_state(stamps),
        };
        let probes = self.changes(current, state);
        Some(self.begin(at, Condition::Quiet { state: state + 1 }, earlier.is_some(), probes, Vec::new()))
    }

    /// A new state, which is the current one from now on.
    fn add_state(&mut self, stamps: Vec<Values>) -> usize {
        if let Some(oldest) = self.states.len().checked_sub(MOST_STATES) {
            self.states[oldest].first.clear();
        }
        self.states.push(Known { stamps: stamps.len() as u64, first: stamps });
        self.state = Some(self.states.len() - 1);
        self.states.len() - 1
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
        self.watch.states =
            self.states.iter().map(|state| WatchedState { stamps: state.stamps, probes: state.levels().collect() }).collect();
        let quietest = self.quietest();
        if let (Some(scale), Some(quiet)) = (self.watch.others.as_mut(), quietest) {
            scale.quiet_ns = Some(stats::significant(quiet.log.exp()));
            scale.detection_gbs = others::detection_gbs(scale, with_level(quiet.scatter, quiet.n));
        }
    }
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
mod tests {
    use memgauge_model::result::{DifferentField, Neighbours, OthersPoint};
    use memgauge_model::units::IdSet;

    use super::*;

    /// A stamp of a machine whose memory has this latency, the nth of a watch.
    fn stamp(n: u64, ns: f64) -> Stamp {
        // Stamps scatter by some 0.5 %, always the same way.
        let off = 1.0 + 0.005 * ((n * 7919 % 13) as f64 / 6.0 - 1.0);
        let reading = |probe: StampProbe, value: f64| ProbeReading {
            probe,
            unit: probe.unit().into(),
            value: Some(value),
            not_measured: None,
            rounds: [-1.0, -0.5, 0.0, 0.5, 1.0].map(|step| value * (1.0 + 0.004 * step)).to_vec(),
            cpus: IdSet::one(0),
            bytes: None,
            pages: None,
        };
        let probes = vec![reading(StampProbe::MemoryLatency, ns * off), reading(StampProbe::Frequency, 3.0)];
        Stamp { taken: Moment { utc: String::new(), monotonic_ns: n }, took_s: 0.2, probes, ..Stamp::default() }
    }

    fn busy(n: u64, ns: f64) -> Stamp {
        let mut stamp = stamp(n, ns);
        stamp.noise.neighbours = Some(Neighbours { memory: Some(0.4), ..Neighbours::default() });
        stamp
    }

    /// The changes of a watch of these stamps: the number of the stamp and the condition.
    fn changes(watcher: &mut Watcher, stamps: impl IntoIterator<Item = Stamp>) -> Vec<(u64, Condition, bool)> {
        let changes = stamps.into_iter().filter_map(|stamp| watcher.see(&stamp, Vec::new()).1);
        changes.map(|change| (change.at.monotonic_ns, change.to, change.again)).collect()
    }

    #[test]
    fn a_state_begins_with_the_first_of_two_stamps_and_is_known_again() {
        let mut watcher = Watcher::new(20.0, None);
        let ns = |n: u64| if (20..40).contains(&n) { 120.0 } else { 100.0 };
        let seen = changes(&mut watcher, (0..60).map(|n| stamp(n, ns(n))));
        let quiet = |state| Condition::Quiet { state };
        assert_eq!(seen, [(0, quiet(1), false), (20, quiet(2), false), (40, quiet(1), true)]);
        let [.., change] = &watcher.watch().changes[..] else { panic!() };
        assert!(change.probes[0].probe == StampProbe::MemoryLatency && (change.probes[0].change + 1.0 / 6.0).abs() < 0.02, "{change:?}");
        assert_eq!(watcher.watch().states.iter().map(|state| state.stamps).collect::<Vec<_>>(), [40, 20]);
        assert_eq!(watcher.watch().changed, 2);
        // A state of few stamps allows much; the nearest one counts.
        let mut three = Watcher::new(20.0, None);
        let ns = |n: u64| [100.0, 120.0, 112.0, 100.0, 112.0][(n / 15) as usize];
        let seen = changes(&mut three, (0..75).map(|n| stamp(n, ns(n))));
        assert_eq!(seen.iter().map(|change| change.1).collect::<Vec<_>>(), [quiet(1), quiet(2), quiet(3), quiet(1), quiet(3)]);
        // One stamp is chance.
        let mut other = Watcher::new(20.0, None);
        let odd = |n: u64| if n % 9 == 8 { 130.0 } else { 100.0 };
        assert_eq!(changes(&mut other, (0..90).map(|n| stamp(n, odd(n)))).len(), 1);
    }

    #[test]
    fn a_machine_that_becomes_slower_bit_by_bit_is_in_another_state() {
        let mut watcher = Watcher::new(20.0, None);
        let seen = changes(&mut watcher, (0..200).map(|n| stamp(n, 100.0 * (1.0 + n as f64 * 0.0005))));
        assert!((2..=4).contains(&seen.len()), "{seen:?}");
    }

    #[test]
    fn a_busy_machine_is_in_no_state_and_returns_to_the_one_it_was_in() {
        let mut watcher = Watcher::new(20.0, None);
        let seen = changes(&mut watcher, (0..30).map(|n| if (10..20).contains(&n) { busy(n, 140.0) } else { stamp(n, 100.0) }));
        let quiet = Condition::Quiet { state: 1 };
        assert_eq!(seen, [(0, quiet, false), (10, Condition::Busy, false), (20, quiet, true)]);
        assert_eq!((watcher.watch().stamps, watcher.watch().busy, watcher.watch().changed), (30, 10, 0), "it is in the state of before");
        // A single busy stamp is not a condition of the machine.
        let mut other = Watcher::new(20.0, None);
        assert_eq!(changes(&mut other, (0..30).map(|n| if n == 10 { busy(n, 140.0) } else { stamp(n, 100.0) })).len(), 1);
        let mut from_the_beginning = Watcher::new(20.0, None);
        let seen = changes(&mut from_the_beginning, (0..4).map(|n| if n < 2 { busy(n, 140.0) } else { stamp(n, 100.0) }));
        assert_eq!(seen, [(0, Condition::Busy, false), (2, quiet, false)]);
    }

    #[test]
    fn a_setting_is_another_state_at_once() {
        let mut watcher = Watcher::new(20.0, None);
        watcher.see(&stamp(0, 100.0), Vec::new());
        let settings =
            vec![Difference { field: DifferentField::Governor, before: vec!["performance".into()], after: vec!["powersave".into()] }];
        let (_, change) = watcher.see(&stamp(1, 100.0), settings.clone());
        let change = change.unwrap();
        assert_eq!((change.to, change.settings), (Condition::Quiet { state: 2 }, settings));
    }

    #[test]
    fn higher_latency_is_read_as_bandwidth_of_others_also_while_they_are_seen() {
        let curve = [(0.0, 1.0), (10.0, 1.5)].map(|(gbs, ratio)| OthersPoint { gbs, ratio, error: 0.0 });
        let scale = OthersScale { peak_gbs: 10.0, curve: curve.to_vec(), ..OthersScale::default() };
        let mut watcher = Watcher::new(20.0, Some(scale));
        changes(&mut watcher, (0..30).map(|n| stamp(n, 100.0)));
        let detection = watcher.watch().others.as_ref().unwrap().detection_gbs.unwrap();
        assert!((0.1..1.0).contains(&detection), "{detection}");
        for stamp in [stamp(30, 125.0), busy(31, 125.0)] {
            let others = watcher.see(&stamp, Vec::new()).0.others.unwrap();
            assert!((others.gbs - 5.0).abs() < 0.3 && others.low_gbs > 4.0 && others.high_gbs.is_some_and(|high| high < 6.0), "{others:?}");
        }
    }

    #[test]
    fn a_long_watch_keeps_fewer_of_its_points() {
        let mut watcher = Watcher::new(20.0, None);
        changes(&mut watcher, (0..3 * MOST_POINTS as u64).map(|n| stamp(n, 100.0)));
        let points = &watcher.watch().points;
        assert!(points.len() <= MOST_POINTS && points.len() > MOST_POINTS / 3, "{}", points.len());
        assert!(points.windows(2).all(|two| two[0].at.monotonic_ns < two[1].at.monotonic_ns));
    }
}
