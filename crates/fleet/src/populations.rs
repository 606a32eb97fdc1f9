//! Hosts of one kind that fall into several populations, and what tells them apart.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_analysis::fleet::robust::{Centre, centre};
use memgauge_analysis::fleet::{FleetField, GroupLevel, MIN_DIFFERENCE, MIN_HOSTS, Population, PopulationNumber, Populations};
use memgauge_model::result::DifferentField;

use crate::centres::Centres;
use crate::groups::{Group, Groups, properties};
use crate::latest::{CellValues, Latest};
use crate::row::HostRun;

/// Medians of populations differ if they are this many standard errors apart. So many that chance plays no part among a few properties and
/// a few hundred numbers.
const MIN_ERRORS: f64 = 6.0;
/// Names of hosts that a population lists.
const NAMES: usize = 8;
/// Properties that change together explain the same share, up to this difference.
const SAME_SHARE: f64 = 0.02;
/// Properties that are searched one after the other, each for what those before leave unexplained.
const PROPERTIES: usize = 3;

/// The properties that may differ between populations of the same hardware.
const SEPARATING: [DifferentField; 3] = [DifferentField::Microcode, DifferentField::Firmware, DifferentField::Kernel];

fn property(run: &HostRun, field: DifferentField) -> Option<String> {
    properties(&run.fingerprint).into_iter().find(|(f, _)| *f == field).and_then(|(_, value)| value)
}

fn value_of(run: &HostRun, field: &FleetField) -> Option<String> {
    match field {
        FleetField::Property(property) => self::property(run, *property),
        FleetField::Label { label } => run.labels.get(label).cloned(),
    }
}

/// A property with the value that each host of a group has of it.
#[derive(Clone)]
struct Partition {
    field: FleetField,
    /// The values that at least eight hosts have.
    values: Vec<String>,
    /// By the place of the host in the group: the index of its value.
    of_host: Vec<Option<usize>>,
}

impl Partition {
    /// `None` if fewer than two values are usual.
    fn new(field: FleetField, latest: &Latest<'_>, members: &[u32], least: usize) -> Option<Self> {
        let of_host: Vec<Option<String>> = members.iter().map(|&host| value_of(latest.hosts[host as usize], &field)).collect();
        let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
        of_host.iter().flatten().for_each(|value| *counts.entry(value).or_default() += 1);
        let values: Vec<String> = counts.into_iter().filter(|(_, n)| *n >= least).map(|(value, _)| value.clone()).collect();
        let of_host = of_host.iter().map(|value| value.as_ref().and_then(|v| values.iter().position(|known| known == v))).collect();
        (values.len() > 1).then_some(Self { field, values, of_host })
    }
}

/// The costs of a cell in a group, each with the place of its host in the group.
#[derive(Clone)]
struct Costs<'a> {
    of: &'a CellValues<'a>,
    costs: Vec<(usize, f64)>,
}

fn costs_of<'a>(of: &'a CellValues<'a>, members: &[u32]) -> Costs<'a> {
    let cost = |&(host, row): &(u32, &crate::row::Row)| Some((members.binary_search(&host).ok()?, row.cost()?));
    Costs { of, costs: of.rows.iter().filter_map(cost).collect() }
}

/// How a partition divides a cell.
struct Division {
    /// The centre of each value; `None` where fewer than eight hosts have the cell.
    centres: Vec<Option<Centre>>,
    /// How much more the worst costs than the best.
    difference: f64,
    /// The share of the deviations from the common median that is gone with a median for each value.
    explained: f64,
}

/// The costs of a cell by the value that a host has of a partition's property.
fn costs_by_value(costs: &Costs<'_>, partition: &Partition) -> Vec<Vec<f64>> {
    let mut by_value: Vec<Vec<f64>> = vec![Vec::new(); partition.values.len()];
    for &(place, cost) in &costs.costs {
        if let Some(value) = partition.of_host[place] {
            by_value[value].push(cost);
        }
    }
    by_value
}

/// The centre of each; `None` of fewer than eight hosts.
fn centres_of(by_value: &mut [Vec<f64>]) -> Vec<Option<Centre>> {
    by_value.iter_mut().map(|c| if c.len() < MIN_HOSTS { None } else { centre(c) }).collect()
}

/// `None` if the populations do not differ.
fn division(costs: &Costs<'_>, partition: &Partition) -> Option<Division> {
    let mut by_value = costs_by_value(costs, partition);
    let centres = centres_of(&mut by_value);
    let known = || centres.iter().flatten();
    let best = known().min_by(|a, b| a.median.total_cmp(&b.median))?;
    let worst = known().max_by(|a, b| a.median.total_cmp(&b.median))?;
    let difference = worst.median - best.median;
    if costs.of.cell.worse_by(difference) <= MIN_DIFFERENCE || difference <= MIN_ERRORS * best.error().hypot(worst.error()) {
        return None;
    }
    let mut all: Vec<f64> = by_value.concat();
    let common = centre(&mut all)?.median;
    // A few values that are far away would hide what most of them show.
    let limit = 3.0 * difference;
    let deviation = |cost: f64, from: f64| (cost - from).abs().min(limit);
    let before: f64 = all.iter().map(|&cost| deviation(cost, common)).sum();
    let within = |(costs, centre): (&Vec<f64>, &Option<Centre>)| -> f64 {
        costs.iter().map(|&cost| deviation(cost, centre.map_or(common, |c| c.median))).sum()
    };
    let after: f64 = by_value.iter().zip(&centres).map(within).sum();
    Some(Division { centres, difference, explained: 1.0 - after / before.max(f64::MIN_POSITIVE) })
}

/// Populations that microcode, firmware or kernel tell apart, among hosts of the same hardware.
pub(crate) fn by_property(latest: &Latest<'_>, groups: &Groups) -> Vec<Populations> {
    let of_hardware = groups.all.iter().filter(|g| g.level == GroupLevel::Hardware && g.members.len() >= 2 * MIN_HOSTS);
    of_hardware.flat_map(|group| in_group(latest, group)).collect()
}

fn in_group(latest: &Latest<'_>, group: &Group) -> Vec<Populations> {
    let members = &group.members;
    let fields = SEPARATING.into_iter().map(FleetField::Property);
    let mut partitions: Vec<Partition> = fields.filter_map(|f| Partition::new(f, latest, members, MIN_HOSTS)).collect();
    if partitions.is_empty() {
        return Vec::new();
    }
    let mut cells: Vec<Costs<'_>> = latest.cells.iter().map(|cell| costs_of(cell, members)).collect();
    cells.retain(|c| c.costs.len() >= 2 * MIN_HOSTS);
    // As they were measured: medians are of these.
    let measured = cells.clone();
    let mut found: Vec<Populations> = Vec::new();
    for _ in 0..PROPERTIES {
        let mut divided: Vec<(Partition, BTreeMap<usize, Division>)> = Vec::new();
        for partition in &partitions {
            let of_cell = |(i, costs): (usize, &Costs<'_>)| Some((i, division(costs, partition)?));
            let divisions: BTreeMap<usize, Division> = cells.iter().enumerate().filter_map(of_cell).collect();
            if !divisions.is_empty() {
                divided.push((partition.clone(), divisions));
            }
        }
        // Keeps the properties that explain most, and among those the ones with the fewest values.
        let all_cells: BTreeSet<usize> = divided.iter().flat_map(|(_, divisions)| divisions.keys().copied()).collect();
        let explained =
            |divisions: &BTreeMap<usize, Division>| divisions.values().map(|d| d.explained).sum::<f64>() / all_cells.len() as f64;
        let Some(most) = divided.iter().map(|(_, d)| explained(d)).max_by(f64::total_cmp) else { break };
        divided.retain(|(_, d)| explained(d) >= most - SAME_SHARE);
        let Some(fewest) = divided.iter().map(|(p, _)| p.values.len()).min() else { break };
        divided.retain(|(p, _)| p.values.len() == fewest);
        let besides = found.iter().flat_map(|told| told.fields.iter().cloned()).collect();
        found.push(Populations { besides, ..describe(latest, group, &divided, &measured) });
        let (partition, divisions) = &divided[0];
        take_out(&mut cells, partition, divisions);
        partitions.retain(|p| divided.iter().all(|(told, _)| told.field != p.field));
    }
    found
}

/// Takes out of the costs what a partition explains: all are as if of the fastest population.
fn take_out(cells: &mut [Costs<'_>], partition: &Partition, divisions: &BTreeMap<usize, Division>) {
    for (&i, division) in divisions {
        let fastest = division.centres.iter().flatten().map(|c| c.median).fold(f64::INFINITY, f64::min);
        for (place, cost) in &mut cells[i].costs {
            if let Some(centre) = partition.of_host[*place].and_then(|value| division.centres[value]) {
                *cost -= centre.median - fastest;
            }
        }
    }
}

fn describe(latest: &Latest<'_>, group: &Group, divided: &[(Partition, BTreeMap<usize, Division>)], cells: &[Costs<'_>]) -> Populations {
    let (partition, divisions) = &divided[0];
    let cost = |value: usize| divisions.values().filter_map(|d| d.centres[value]).map(|c| c.median).sum::<f64>();
    let mut order: Vec<usize> = (0..partition.values.len()).collect();
    order.sort_by(|&a, &b| cost(a).total_cmp(&cost(b)));
    let population = |&value: &usize| {
        let places = || (0..group.members.len()).filter(|&place| partition.of_host[place] == Some(value));
        let first = places().next();
        // Properties that change together have one value each in a population.
        let values = divided.iter().filter_map(|(p, _)| Some(p.values[p.of_host[first?]?].clone())).collect();
        let hosts = places().map(|place| latest.hosts[group.members[place] as usize].host.clone());
        Population { values, hosts: places().count() as u32, some: hosts.take(NAMES).collect() }
    };
    let number = |(&i, division): (&usize, &Division)| {
        let of = cells[i].of;
        let centres = centres_of(&mut costs_by_value(&cells[i], partition));
        let medians = order.iter().map(|&value| centres[value].map(|c| of.cell.value(c.median))).collect();
        number(of, medians, division.difference)
    };
    let mut numbers: Vec<PopulationNumber> = divisions.iter().map(number).collect();
    numbers.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    Populations {
        group: group.describe(),
        fields: divided.iter().map(|(p, _)| p.field.clone()).collect(),
        populations: order.iter().map(population).collect(),
        besides: Vec::new(),
        numbers,
        of_numbers: cells.len() as u32,
    }
}

fn number(of: &CellValues<'_>, medians: Vec<Option<f64>>, difference: f64) -> PopulationNumber {
    let cell = of.cell;
    PopulationNumber {
        experiment: cell.experiment,
        at: cell.at.clone(),
        metric: cell.metric,
        unit: cell.unit,
        pages: of.pages,
        medians,
        ratio: cell.value(difference),
    }
}

/// Two populations agree with a property, or with each other, if this share of the hosts does.
const MIN_AGREEING: f64 = 0.95;

/// The slower hosts of a group, and the cells that tell them apart.
type Slower = (BTreeSet<u32>, Vec<usize>);

/// Populations within groups of hosts that are alike: neither microcode nor firmware nor kernel tells them apart, but perhaps a label does.
pub(crate) fn unexplained(latest: &Latest<'_>, groups: &Groups, centres: &Centres) -> Vec<Populations> {
    let mut found: BTreeMap<u32, Vec<Slower>> = BTreeMap::new();
    for (i, centres) in centres.iter().enumerate() {
        for (&group, centre) in centres {
            let Some(split) = &centre.split else { continue };
            let members = &groups.all[group as usize].members;
            let is_slow = |&&(host, row): &&(u32, &crate::row::Row)| {
                members.binary_search(&host).is_ok() && row.cost().is_some_and(|cost| cost > split.between)
            };
            let slow: BTreeSet<u32> = latest.cells[i].rows.iter().filter(is_slow).map(|(host, _)| *host).collect();
            let of_group = found.entry(group).or_default();
            let agrees = |other: &BTreeSet<u32>| slow.intersection(other).count() as f64 >= MIN_AGREEING * slow.union(other).count() as f64;
            match of_group.iter_mut().find(|(hosts, _)| agrees(hosts)) {
                Some((_, cells)) => cells.push(i),
                None => of_group.push((slow, vec![i])),
            }
        }
    }
    let splits = found.into_iter().flat_map(|(group, splits)| splits.into_iter().map(move |split| (group, split)));
    splits.map(|(group, (slow, cells))| describe_split(latest, group, &groups.all[group as usize], &slow, &cells, centres)).collect()
}

fn describe_split(
    latest: &Latest<'_>,
    number_of_group: u32,
    group: &Group,
    slow: &BTreeSet<u32>,
    cells: &[usize],
    centres: &Centres,
) -> Populations {
    let fields = separating(latest, group, slow);
    let population = |slower: bool| {
        let hosts: Vec<u32> = group.members.iter().copied().filter(|host| slow.contains(host) == slower).collect();
        let value = |field| {
            let values: BTreeSet<String> = hosts.iter().filter_map(|&host| value_of(latest.hosts[host as usize], field)).collect();
            values.into_iter().collect::<Vec<_>>().join(", ")
        };
        let some = hosts.iter().take(NAMES).map(|&host| latest.hosts[host as usize].host.clone()).collect();
        Population { values: fields.iter().map(value).collect(), hosts: hosts.len() as u32, some }
    };
    let number = |&i: &usize| {
        let of = &latest.cells[i];
        let split = centres[i].get(&number_of_group)?.split.as_ref()?;
        let medians = [split.faster, split.slower].map(|c| Some(of.cell.value(c.median))).to_vec();
        Some(number(of, medians, split.slower.median - split.faster.median))
    };
    let mut numbers: Vec<PopulationNumber> = cells.iter().filter_map(number).collect();
    numbers.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    let in_group = |i: &&usize| centres[**i].contains_key(&number_of_group);
    let all: Vec<usize> = (0..centres.len()).collect();
    Populations {
        group: group.describe(),
        populations: vec![population(false), population(true)],
        fields,
        besides: Vec::new(),
        numbers,
        of_numbers: all.iter().filter(in_group).count() as u32,
    }
}

/// The properties and labels whose value tells whether a host is slow.
fn separating(latest: &Latest<'_>, group: &Group, slow: &BTreeSet<u32>) -> Vec<FleetField> {
    let labels: BTreeSet<&String> = group.members.iter().flat_map(|&host| latest.hosts[host as usize].labels.keys()).collect();
    let fields = SEPARATING.into_iter().map(FleetField::Property).chain(labels.into_iter().map(|l| FleetField::Label { label: l.clone() }));
    let tells = |field: &FleetField| {
        let mut by_value: BTreeMap<Option<String>, (usize, usize)> = BTreeMap::new();
        for host in &group.members {
            let counts = by_value.entry(value_of(latest.hosts[*host as usize], field)).or_default();
            if slow.contains(host) { counts.1 += 1 } else { counts.0 += 1 }
        }
        let agreeing: usize = by_value.values().map(|(fast, slow)| fast.max(slow)).sum();
        // A property with a different value for every host would agree with anything.
        by_value.len() > 1 && 4 * by_value.len() <= group.members.len() && agreeing as f64 >= MIN_AGREEING * group.members.len() as f64
    };
    fields.filter(tells).collect()
}
