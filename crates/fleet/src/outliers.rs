//! Which hosts are slower than their siblings.
//!
//! Values are compared as logarithms with median and median absolute deviation of the host's group. A host is named if, of all hosts, its
//! numbers are improbable enough that at most 5 % of the named ones are so by chance: the probabilities of a host's numbers are joined
//! (Simes), hosts are selected by Benjamini and Hochberg's rule, and within the selected ones the numbers (Y. Benjamini, M. Bogomolov,
//! "Selective inference on multiple families of hypotheses", Journal of the Royal Statistical Society B 76, 2014). Were all numbers of
//! all hosts adjusted together, a few hosts on which everything is slow would lower the bar for every number of every other host.
//!
//! The probabilities are those of normally distributed numbers. Hosts that are as improbably *better* than their siblings show how far that is
//! from true: nobody is named at a probability at which better hosts are more than 5 % as many as worse ones (the idea of R. F. Barber,
//! E. J. Candès, "Controlling the false discovery rate via knockoffs", Annals of Statistics 43, 2015), nor, of fewer than twenty, nearer than
//! half as far again as the best host, unless the difference is 10 % or more.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_analysis::fleet::robust::Centre;
use memgauge_analysis::fleet::{
    Duplicate, FALSE_DISCOVERIES, FLEET_VERSION, FleetOutliers, MIN_DIFFERENCE, MIN_ROBUST_Z, NotJudged, SlowHost, SlowNumber, UnknownHost,
    UnknownReason,
};
use memgauge_model::significance::{adjust, simes};

use crate::centres::{Centres, GroupCentre, centres};
use crate::groups::Groups;
use crate::latest::{CellValues, Latest, latest, name};
use crate::patterns::pattern;
use crate::populations;
use crate::row::{Cell, HostRun, Row};

/// Finds the hosts that are slower than hosts like them, by their latest values.
pub fn outliers(rows: &[Row]) -> FleetOutliers {
    let latest = latest(rows);
    let groups = Groups::new(&latest.fingerprints);
    let chosen: Vec<Option<u32>> = (0..latest.hosts.len() as u32).map(|host| groups.chosen(host)).collect();
    let used: BTreeSet<u32> = chosen.iter().flatten().copied().collect();
    let centres = centres(&latest, &groups, &used);
    let mut states: Vec<HostState> = latest.hosts.iter().map(|_| HostState::default()).collect();
    let not_judged = judge_all(&latest, &groups, &chosen, &used, &centres, &mut states);
    let named = name_slow(&states);

    let numbers: BTreeMap<u32, u32> = used.iter().copied().zip(0..).collect();
    let (mut slow, mut unknown) = (Vec::new(), Vec::new());
    for (i, (state, numbers_named)) in states.into_iter().zip(named).enumerate() {
        let run = latest.hosts[i];
        match chosen[i] {
            Some(group) if !numbers_named.is_empty() => slow.push(slow_host(run, numbers[&group], &state, numbers_named)),
            group => {
                let too_few = group.is_none().then(|| groups.with_hardware_of(i as u32) as u32);
                let reasons = state.reasons(run, too_few);
                if !reasons.is_empty() {
                    unknown.push(UnknownHost { name: name(run), reasons });
                }
            }
        }
    }
    slow.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    let mut found = populations::by_property(&latest, &groups);
    let mut splits = populations::unexplained(&latest, &groups, &centres);
    // A coarse group repeats the differences that a property has explained for all hosts with its hardware.
    splits.retain(|split| !split.fields.iter().any(|field| found.iter().any(|told| told.fields.contains(field))));
    found.extend(splits);
    FleetOutliers {
        fleet_version: FLEET_VERSION,
        hosts: latest.hosts.len() as u32,
        as_siblings: (latest.hosts.len() - slow.len() - unknown.len()) as u32,
        measured_from: latest.span.0.clone(),
        measured_to: latest.span.1.clone(),
        groups: used.iter().map(|&group| groups.all[group as usize].describe()).collect(),
        slow,
        unknown,
        populations: found,
        duplicates: duplicates(rows),
        not_judged: not_judged
            .into_iter()
            .map(|(group, of, hosts)| NotJudged {
                group: numbers[&group],
                experiment: of.cell.experiment,
                at: of.cell.at.clone(),
                metric: of.cell.metric,
                pages: of.pages,
                hosts,
            })
            .collect(),
    }
}

/// How much worse the worst number of a host is, as a logarithm.
fn worst(host: &SlowHost) -> f64 {
    host.numbers.first().map_or(0.0, |number| number.ratio.ln().abs())
}

/// A number that is worse than the siblings' by more than differences that count as none.
#[derive(Clone)]
struct Suspect<'a> {
    row: &'a Row,
    centre: Centre,
    /// How much worse it is than the median, as a logarithm.
    worse: f64,
    score: f64,
    p: f64,
}

/// What is known of a host.
#[derive(Default)]
struct HostState<'a> {
    /// The cells that it measured with good quality and that its siblings measured, too.
    judged: Vec<&'a Cell>,
    suspects: Vec<Suspect<'a>>,
    /// Probabilities of the numbers that are as far from the siblings' median on the better side.
    better: Vec<f64>,
    missing: u32,
    other_pages: u32,
    degraded: u32,
    look_slow: u32,
    slower_population: u32,
    /// By stable word.
    not_measured: BTreeMap<String, u32>,
}

impl HostState<'_> {
    fn unknown_numbers(&self) -> u32 {
        self.missing + self.other_pages + self.degraded + self.slower_population + self.not_measured.values().sum::<u32>()
    }

    /// Why it is not known whether the host is slower; empty if it is known. `too_few`: how many hosts are like it, where they are too few.
    fn reasons(&self, run: &HostRun, too_few: Option<u32>) -> Vec<UnknownReason> {
        if let Some(hosts) = too_few {
            return vec![UnknownReason::TooFewSiblings { hosts }];
        }
        let mut reasons = Vec::new();
        if !run.complete {
            reasons.push(UnknownReason::Incomplete);
        }
        let without_value = self.not_measured.values().sum();
        if let Some((why, _)) = self.not_measured.iter().max_by_key(|(_, n)| **n) {
            reasons.push(UnknownReason::NotMeasured { numbers: without_value, why: why.clone() });
        }
        if self.missing > 0 {
            reasons.push(UnknownReason::Missing { numbers: self.missing });
        }
        if self.other_pages > 0 {
            reasons.push(UnknownReason::OtherPages { numbers: self.other_pages });
        }
        if self.degraded > 0 {
            reasons.push(UnknownReason::Degraded { numbers: self.degraded, look_slow: self.look_slow });
        }
        if self.slower_population > 0 {
            reasons.push(UnknownReason::SlowerPopulation { numbers: self.slower_population });
        }
        if reasons.is_empty() && self.judged.is_empty() {
            reasons.push(UnknownReason::NothingToCompare);
        }
        reasons
    }
}

/// The reason for a row whose value is not a positive number.
const NO_NUMBER: &str = "not-a-positive-number";

/// Looks at every number of every host. Returns the numbers by which no host of a group was judged: the group, the cell with its pages, and how
/// many hosts have it.
fn judge_all<'l, 'a>(
    latest: &'l Latest<'a>,
    groups: &Groups,
    chosen: &[Option<u32>],
    used: &BTreeSet<u32>,
    centres: &Centres,
    states: &mut [HostState<'a>],
) -> Vec<(u32, &'l CellValues<'a>, u32)> {
    let mut not_judged = Vec::new();
    let all: Vec<(&CellValues<'_>, &BTreeMap<u32, GroupCentre>)> = latest.cells.iter().zip(centres).collect();
    // A cell with each kind of pages.
    for parts in all.chunk_by(|(a, _), (b, _)| a.cell == b.cell) {
        let mut with_row: BTreeMap<u32, u32> = BTreeMap::new();
        let mut has_row = vec![false; latest.hosts.len()];
        let of_other_pages = |group: u32| parts.iter().find_map(|(_, centres)| centres.get(&group));
        for (values, centres) in parts {
            let mut counts: BTreeMap<u32, Counts> = BTreeMap::new();
            for &(host, row) in &values.rows {
                has_row[host as usize] = true;
                for group in groups.containing(host).into_iter().filter(|g| used.contains(g)) {
                    *with_row.entry(group).or_default() += 1;
                    counts.entry(group).or_default().add(row);
                }
                let Some(group) = chosen[host as usize] else { continue };
                let state = &mut states[host as usize];
                match (centres.get(&group), of_other_pages(group)) {
                    (Some(found), _) => judge(row, found, state),
                    // Rows without a value do not differ in their pages.
                    (None, Some(found)) if row.any_cost().is_none() => judge(row, found, state),
                    (None, Some(_)) => state.other_pages += 1,
                    (None, None) => {}
                }
            }
            // Rows without a value are nowhere else listed, if no host of the group has a value.
            let is_listed = |group: &u32, of: &Counts| of.valued > 0 || of_other_pages(*group).is_none();
            let without_centre = counts.iter().filter(|&(group, of)| !centres.contains_key(group) && is_listed(group, of));
            not_judged.extend(without_centre.map(|(&group, of)| (group, *values, of.good)));
        }
        for (&group, &rows) in &with_row {
            let members = &groups.all[group as usize].members;
            // Each host is expected to have the rows that most of its siblings have.
            if 2 * rows as usize > members.len() && of_other_pages(group).is_some() {
                let lacking = members.iter().filter(|&&host| chosen[host as usize] == Some(group) && !has_row[host as usize]);
                lacking.for_each(|&host| states[host as usize].missing += 1);
            }
        }
    }
    not_judged
}

/// How many rows of a cell the hosts of a group have.
#[derive(Default)]
struct Counts {
    valued: u32,
    good: u32,
}

impl Counts {
    fn add(&mut self, row: &Row) {
        self.valued += u32::from(row.any_cost().is_some());
        self.good += u32::from(row.cost().is_some());
    }
}

/// Looks at one number of one host.
fn judge<'a>(row: &'a Row, found: &GroupCentre, state: &mut HostState<'a>) {
    let Some(cost) = row.any_cost() else {
        let why = if row.value.is_some() { NO_NUMBER } else { row.not_measured.as_deref().unwrap_or("no-reason-given") };
        *state.not_measured.entry(why.to_owned()).or_default() += 1;
        return;
    };
    let centre = found.population(cost);
    let score = centre.score(cost);
    let differs = score.abs() > MIN_ROBUST_Z && is_apart(row, cost, centre);
    let worse = differs && score > 0.0;
    if row.cost().is_none() {
        state.degraded += 1;
        state.look_slow += u32::from(worse);
        return;
    }
    state.judged.push(&row.cell);
    state.slower_population += u32::from(found.split.as_ref().is_some_and(|split| cost > split.between));
    if worse {
        state.suspects.push(Suspect { row, centre, worse: cost - centre.median, score, p: centre.probability(score) });
    } else if differs {
        state.better.push(centre.probability(-score));
    }
}

/// Whether a value differs from the median by more than 3 %, and by more than both intervals together.
fn is_apart(row: &Row, cost: f64, centre: Centre) -> bool {
    let (side, difference) = ((cost - centre.median).signum(), (cost - centre.median).abs());
    // The end of the interval that is nearer to the median.
    let own = row.interval.map_or(0.0, |(low, high)| {
        let ends = [low, high].into_iter().filter(|end| end.is_finite() && *end > 0.0).map(|end| side * (cost - row.cell.cost(end)));
        ends.fold(0.0, f64::max)
    });
    row.cell.worse_by(difference) > MIN_DIFFERENCE && difference > own + centre.half_width()
}

/// For each host the numbers that name it slow; empty for a host that is not slow.
fn name_slow<'a>(states: &[HostState<'a>]) -> Vec<Vec<Suspect<'a>>> {
    // Numbers that are not suspects count as tests that show nothing.
    let joined = |state: &HostState<'_>, mut ps: Vec<f64>| (!state.judged.is_empty()).then(|| simes(&mut ps, state.judged.len()));
    let worse: Vec<Option<f64>> = states.iter().map(|s| joined(s, s.suspects.iter().map(|s| s.p).collect())).collect();
    let better: Vec<Option<f64>> = states.iter().map(|s| joined(s, s.better.clone())).collect();
    let bar = bar_of_better_hosts(&worse, &better);
    let mut selected = adjust(&worse);
    for ((q, p), state) in selected.iter_mut().zip(&worse).zip(states) {
        let is_clear = state.suspects.iter().any(|s| s.row.cell.worse_by(s.worse) >= CLEAR_DIFFERENCE);
        // As a test that shows nothing.
        if p.is_some_and(|p| p > bar) && !is_clear {
            *q = Some(1.0);
        }
    }
    let is_selected = |q: &Option<f64>| q.is_some_and(|q| q <= FALSE_DISCOVERIES);
    let hosts = selected.iter().filter(|q| q.is_some()).count() as f64;
    let share = selected.iter().filter(|q| is_selected(q)).count() as f64 / hosts;
    let numbers = |(state, q): (&HostState<'a>, &Option<f64>)| {
        if !is_selected(q) {
            return Vec::new();
        }
        let mut ps: Vec<Option<f64>> = state.suspects.iter().map(|s| Some(s.p)).collect();
        ps.resize(state.judged.len(), Some(1.0));
        let adjusted = adjust(&ps);
        let named = state.suspects.iter().zip(adjusted).filter(|(_, q)| q.is_some_and(|q| q <= FALSE_DISCOVERIES * share));
        named.map(|(suspect, _)| suspect.clone()).collect()
    };
    states.iter().zip(&selected).map(numbers).collect()
}

/// The tails of what healthy hosts measure seldom reach so far; such a difference is named, however many hosts are better.
const CLEAR_DIFFERENCE: f64 = 0.10;

/// How much further from its siblings a host must be than the best of those that are better, where it is not one of many: a tail that falls
/// with the fifth power, as that of Student's t with five degrees of freedom, goes on so far in one fleet of nine.
const BEYOND_THE_BEST: f64 = 1.5;

/// The largest probability at which hosts that are better than their siblings are at most 5 % as many as those that are worse. Fewer than
/// twenty worse hosts need a margin to the best one: of two tails that are alike one is always the longer.
fn bar_of_better_hosts(worse: &[Option<f64>], better: &[Option<f64>]) -> f64 {
    let sorted = |ps: &[Option<f64>]| {
        let mut ps: Vec<f64> = ps.iter().flatten().copied().filter(|p| *p < 1.0).collect();
        ps.sort_unstable_by(f64::total_cmp);
        ps
    };
    let (worse, better) = (sorted(worse), sorted(better));
    // Of a normal tail's probability the logarithm goes with the square of the distance.
    let beyond = better.first().map_or(1.0, |best| best.powf(BEYOND_THE_BEST * BEYOND_THE_BEST));
    let holds = |(rank, p): &(usize, &f64)| match better.partition_point(|b| b <= *p) {
        0 => **p <= beyond,
        n => n as f64 <= FALSE_DISCOVERIES * (rank + 1) as f64,
    };
    worse.iter().enumerate().rev().find(holds).map_or(0.0, |(_, p)| *p)
}

fn slow_host(run: &HostRun, group: u32, state: &HostState<'_>, mut suspects: Vec<Suspect<'_>>) -> SlowHost {
    suspects.sort_by(|a, b| b.worse.total_cmp(&a.worse));
    let cells: Vec<&Cell> = suspects.iter().map(|s| &*s.row.cell).collect();
    let found = pattern(&state.judged, &cells);
    SlowHost {
        name: name(run),
        group,
        place: found.place,
        metric: found.metric,
        slow_numbers: found.slow,
        numbers_there: found.of,
        numbers: suspects.iter().map(slow_number).collect(),
        unknown_numbers: state.unknown_numbers(),
    }
}

fn slow_number(suspect: &Suspect<'_>) -> SlowNumber {
    let Suspect { row, centre, score, p, .. } = suspect;
    let cell = &row.cell;
    let siblings = cell.value(centre.median);
    let value = row.value.unwrap_or(siblings);
    let half = centre.half_width().exp();
    SlowNumber {
        experiment: cell.experiment,
        at: cell.at.clone(),
        metric: cell.metric,
        unit: cell.unit,
        pages: row.pages,
        value,
        measured: row.run.started.clone(),
        siblings_median: siblings,
        siblings: centre.n as u32,
        ratio: value / siblings,
        ratio_low: row.interval.map(|(low, _)| low / siblings / half),
        ratio_high: row.interval.map(|(_, high)| high / siblings * half),
        robust_z: *score,
        p: *p,
    }
}

/// Machine ids under several names, and names with several machine ids, in all runs of the store.
fn duplicates(rows: &[Row]) -> Vec<Duplicate> {
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut before: Option<&std::sync::Arc<HostRun>> = None;
    for row in rows {
        // Rows of a run follow each other.
        if before.is_some_and(|run| std::sync::Arc::ptr_eq(run, &row.run)) {
            continue;
        }
        before = Some(&row.run);
        if let Some(id) = row.run.machine_id_hash.as_deref() {
            names.entry(id).or_default().insert(&row.run.host);
            ids.entry(&row.run.host).or_default().insert(id);
        }
    }
    let owned = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let one_id = names.into_iter().filter(|(_, names)| names.len() > 1);
    let one_id = one_id.map(|(id, names)| Duplicate::OneIdManyNames { machine_id_hash: id.to_owned(), hosts: owned(names) });
    let one_name = ids.into_iter().filter(|(_, ids)| ids.len() > 1);
    let one_name = one_name.map(|(host, ids)| Duplicate::OneNameManyIds { host: host.to_owned(), machine_id_hashes: owned(ids) });
    one_id.chain(one_name).collect()
}
