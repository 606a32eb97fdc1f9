//! Comparing runs before a change with runs after it: is it better, is it worse, is it the same?
//!
//! A value of a side is the geometric mean of its runs' medians, and the effect is the ratio of the two sides' values. Its interval comes
//! from a bootstrap that resamples runs, within them allocations, and within them bursts (T. Kalibera, R. Jones, "Rigorous Benchmarking in
//! Reasonable Time", ISMM'13): samples of one run, however many, do not show how runs differ. Values are compared with values
//! at the same coordinates; curves of loaded latency at equal bandwidth and at their knees, because their delays rarely match.

mod differences;
mod effect;
mod outcome;
mod quantities;
mod states;
mod verdict;

#[cfg(test)]
mod tests;

use memgauge_model::result::Report;

pub use differences::unlike;
pub use outcome::*;

/// Compares runs before a change with runs after it. The names of the sides are for texts.
pub fn compare(before: (&str, &[Report]), after: (&str, &[Report]), options: ComparisonOptions) -> Comparison {
    let sorted = states::sort(before.1, after.1, options);
    let (pairs, not_compared) = quantities::pair(&counted(before.1, &sorted.counts.0), &counted(after.1, &sorted.counts.1));
    let different = !options.across && sorted.state.as_ref().is_some_and(|sides| sides.state == StateOfSides::Different);
    let cells = verdict::judge(&pairs, options, different);
    Comparison {
        comparison_version: COMPARISON_VERSION,
        verdict: verdict::overall(&cells),
        margin: options.margin,
        seed: options.seed,
        before: side(before, &sorted.counts.0),
        after: side(after, &sorted.counts.1),
        state: sorted.state,
        differences: memgauge_model::properties::differences(before.1, after.1),
        means: verdict::means(&cells),
        cells,
        not_compared,
    }
}

fn counted<'r>(reports: &'r [Report], counts: &[bool]) -> Vec<&'r Report> {
    reports.iter().zip(counts).filter(|(_, counts)| **counts).map(|(report, _)| report).collect()
}

fn side((name, reports): (&str, &[Report]), counts: &[bool]) -> Side {
    let run = |(r, counts): (&Report, &bool)| SideRun {
        id: r.run.id.clone(),
        started: r.started.utc.clone(),
        complete: r.complete,
        left_out: !counts,
    };
    Side { name: name.to_owned(), runs: reports.iter().zip(counts).map(run).collect() }
}
