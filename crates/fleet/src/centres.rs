//! The middle and the spread of each cell in each group of hosts.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_analysis::fleet::MIN_HOSTS;
use memgauge_analysis::fleet::robust::{Centre, centre, median};
use memgauge_model::experiment::{Experiment, Metric};

use crate::groups::Groups;
use crate::latest::Latest;
use crate::split::{Split, split};

/// The centre of a group's hosts at a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupCentre {
    /// The centre of all hosts, or of the faster population.
    pub(crate) centre: Centre,
    /// The split, if the hosts fall into two populations.
    pub(crate) split: Option<Split>,
}

impl GroupCentre {
    /// The centre of the population that a value is in.
    pub(crate) fn population(&self, cost: f64) -> Centre {
        match &self.split {
            Some(split) if cost > split.between => split.slower,
            _ => self.centre,
        }
    }
}

/// Centres by cell and group. A group has none if fewer than eight of its hosts have a value.
pub(crate) type Centres = Vec<BTreeMap<u32, GroupCentre>>;

/// The centre of each cell in each of the `wanted` groups.
pub(crate) fn centres(latest: &Latest<'_>, groups: &Groups, wanted: &BTreeSet<u32>) -> Centres {
    let mut all: Centres = Vec::with_capacity(latest.cells.len());
    for cell in &latest.cells {
        let mut costs: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for &(host, row) in &cell.rows {
            if let Some(cost) = row.cost() {
                groups.containing(host).into_iter().filter(|g| wanted.contains(g)).for_each(|g| costs.entry(g).or_default().push(cost));
            }
        }
        costs.retain(|_, costs| costs.len() >= MIN_HOSTS);
        let found = costs.into_iter().filter_map(|(group, mut costs)| {
            let split = split(&mut costs, |difference| cell.cell.worse_by(difference));
            let centre = match &split {
                Some(split) => split.faster,
                None => centre(&mut costs)?,
            };
            Some((group, GroupCentre { centre, split }))
        });
        all.push(found.collect());
    }
    share_spreads(latest, &mut all);
    all
}

/// The spread of few values may be far too small by chance. So none is smaller than what is usual for numbers of its experiment in its
/// group.
fn share_spreads(latest: &Latest<'_>, centres: &mut Centres) {
    let mut spreads: BTreeMap<(u32, Experiment, Metric), Vec<f64>> = BTreeMap::new();
    for (cell, centres) in latest.cells.iter().zip(centres.iter()) {
        for (&group, found) in centres {
            spreads.entry((group, cell.cell.experiment, cell.cell.metric)).or_default().push(found.centre.spread);
        }
    }
    let usual: BTreeMap<_, f64> = spreads.into_iter().filter_map(|(family, mut all)| Some((family, median(&mut all)?))).collect();
    for (cell, centres) in latest.cells.iter().zip(centres.iter_mut()) {
        for (&group, found) in centres {
            if let Some(&least) = usual.get(&(group, cell.cell.experiment, cell.cell.metric)) {
                found.centre = found.centre.with_spread(least);
                if let Some(split) = &mut found.split {
                    split.slower = split.slower.with_spread(least);
                }
            }
        }
    }
}
