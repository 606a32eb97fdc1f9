//! Values that fall into two populations.

use memgauge_analysis::fleet::robust::{Centre, centre};
use memgauge_analysis::fleet::{MIN_DIFFERENCE, MIN_HOSTS};

/// Two populations of one cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Costs above this are of the slower one.
    pub(crate) between: f64,
    pub(crate) faster: Centre,
    pub(crate) slower: Centre,
}

/// The smaller population has at least this share, and eight hosts: fewer are outliers.
const MIN_SHARE: f64 = 0.1;
/// How many spreads apart two populations are at least (K. M. Ashman, C. M. Bird, S. E. Zepf, "Detecting bimodality in astronomical
/// datasets", The Astronomical Journal 108, 1994, who ask for 2). The halves of one normal distribution are 2.7 apart, those of a uniform
/// one 3.5, and in samples of sixteen values these reach 6.
const MIN_SEPARATION: f64 = 6.0;
/// On either side this share of the values is left out of the search: outliers would be taken for a population.
const EXTREMES: f64 = 0.02;

/// Finds two populations in costs, where the variance between them is greatest (N. Otsu, "A threshold selection method from gray-level
/// histograms", 1979). `worse_by`: the share that a difference of costs is.
pub(crate) fn split(costs: &mut [f64], worse_by: impl Fn(f64) -> f64) -> Option<Split> {
    if costs.len() < 2 * MIN_HOSTS {
        return None;
    }
    costs.sort_unstable_by(f64::total_cmp);
    let n = costs.len();
    let cut = (EXTREMES * n as f64) as usize;
    let inner = &costs[cut..n - cut];
    let total: f64 = inner.iter().sum();
    let (mut sum, mut best) = (0.0, (f64::NEG_INFINITY, 0));
    for (i, pair) in inner.windows(2).enumerate() {
        sum += pair[0];
        let (left, right) = ((i + 1) as f64, (inner.len() - i - 1) as f64);
        let between = left * right * (sum / left - (total - sum) / right).powi(2);
        if between > best.0 {
            best = (between, i);
        }
    }
    let between = (inner[best.1] + inner[best.1 + 1]) / 2.0;
    let at = costs.partition_point(|&cost| cost <= between);
    if at.min(n - at) < MIN_HOSTS.max((MIN_SHARE * n as f64).ceil() as usize) {
        return None;
    }
    let (left, right) = costs.split_at(at);
    let (faster, slower) = (centre(&mut left.to_vec())?, centre(&mut right.to_vec())?);
    let difference = slower.median - faster.median;
    let spread = ((faster.spread.powi(2) + slower.spread.powi(2)) / 2.0).sqrt();
    (difference > MIN_SEPARATION * spread && worse_by(difference) > MIN_DIFFERENCE).then_some(Split { between, faster, slower })
}
