//! Figures of two tools, run by run.

use memgauge_core::stats::{median, median_interval, quantile, sorted};

/// A tool's figures of one row, by round; `None` where a run failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Series(pub(super) Vec<Option<f64>>);

impl Series {
    /// Minimum, median, maximum; `None` without a figure.
    pub(super) fn spread(&self) -> Option<[f64; 3]> {
        let values: Vec<f64> = self.0.iter().flatten().copied().collect();
        let values = sorted(&values);
        Some([*values.first()?, quantile(&values, 0.5)?, *values.last()?])
    }
}

/// How one tool stands to another, round by round.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ratio {
    /// Rounds in which both have a figure.
    pub(super) n: usize,
    /// Of the rounds' ratios.
    pub(super) median: f64,
    /// Lower and upper quartile.
    pub(super) quartiles: (f64, f64),
    /// The 95 % interval of the median; `None` below six rounds.
    pub(super) interval: Option<(f64, f64)>,
}

/// The ratios of the rounds, `a` over `b`; `None` if there is no round with both.
pub(super) fn ratio(a: &Series, b: &Series) -> Option<Ratio> {
    let ratios: Vec<f64> = a.0.iter().zip(&b.0).filter_map(|(a, b)| Some((*a)? / (*b)?)).collect();
    let ordered = sorted(&ratios);
    Some(Ratio {
        n: ordered.len(),
        median: median(&ratios)?,
        quartiles: (quantile(&ordered, 0.25)?, quantile(&ordered, 0.75)?),
        interval: median_interval(&ordered),
    })
}

/// Less than this is no difference: code placement and the choice of pages move a loop by as much from one build to the next.
const SAME: f64 = 0.02;

impl Ratio {
    /// What the data support: the interval must exclude 1 and the median differ by more than 2 %.
    pub(super) fn verdict(&self, is_time: bool) -> &'static str {
        let Some((low, high)) = self.interval else { return "too few rounds" };
        match (low > 1.0 && self.median > 1.0 + SAME, high < 1.0 && self.median < 1.0 - SAME, is_time) {
            (true, _, false) => "ahead",
            (_, true, false) => "**behind**",
            (true, _, true) => "higher",
            (_, true, true) => "lower",
            _ => "no difference shown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        Series(values.iter().map(|v| v.is_finite().then_some(*v)).collect())
    }

    #[test]
    fn drift_that_hits_both_is_no_difference() {
        let peer = series(&[10.0, 20.0, 40.0, 15.0, 30.0, 22.0, 18.0]);
        let ours = Series(peer.0.iter().map(|v| v.map(|v| v * 1.1)).collect());
        let ratio = ratio(&ours, &peer).unwrap();
        assert!((ratio.median - 1.1).abs() < 1e-9 && ratio.n == 7);
        assert_eq!(ratio.verdict(false), "ahead");
        assert_eq!(ratio.verdict(true), "higher");
    }

    #[test]
    fn rounds_without_a_figure_are_left_out() {
        let ratio = ratio(&series(&[1.0, f64::NAN, 3.0]), &series(&[2.0, 5.0, f64::NAN])).unwrap();
        assert_eq!((ratio.n, ratio.median, ratio.interval), (1, 0.5, None));
        assert_eq!(ratio.verdict(false), "too few rounds");
        assert_eq!(super::ratio(&series(&[f64::NAN]), &series(&[1.0])), None);
        assert_eq!(series(&[f64::NAN, 2.0, 1.0, 9.0]).spread(), Some([1.0, 2.0, 9.0]));
        assert_eq!(series(&[]).spread(), None);
    }

    #[test]
    fn behind_needs_the_interval_and_the_margin() {
        let against = |ours: &[f64]| ratio(&series(ours), &series(&[1.0; 7])).unwrap().verdict(false);
        assert_eq!(against(&[0.9, 0.91, 0.92, 0.9, 0.93, 0.94, 0.9]), "**behind**");
        assert_eq!(against(&[0.9, 0.91, 0.92, 0.9, 0.93, 0.94, 1.1]), "no difference shown");
        assert_eq!(against(&[0.99, 0.985, 0.99, 0.985, 0.99, 0.99, 0.99]), "no difference shown");
    }
}
