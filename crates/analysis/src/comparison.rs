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
    let (pairs, not_compared) = quantities::pair(&sorted.before, &sorted.after);
    let different = !options.across && sorted.state.as_ref().is_some_and(|sides| sides.state == StateOfSides::Different);
    let cells = verdict::judge(&pairs, options, different);
    Comparison {
        comparison_version: COMPARISON_VERSION,
        verdict: verdict::overall(&cells),
        margin: options.margin,
        seed: options.seed,
        before: side(before),
        after: side(after),
        state: sorted.state,
        differences: memgauge_model::properties::differences(before.1, after.1),
        means: verdict::means(&cells),
        cells,
        not_compared,
    }
}

fn side((name, reports): (&str, &[Report])) -> Side {
    let run = |r: &Report| SideRun { id: r.run.id.clone(), started: r.started.utc.clone(), complete: r.complete };
    Side { name: name.to_owned(), runs: reports.iter().map(run).collect() }
}
