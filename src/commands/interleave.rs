//! `memgauge interleave --apply` and `--restore`: the kernel's weights. What they should be is measured as everything else is
//! ([`super::measure`]).

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use memgauge_core::interleave::Weights;
use memgauge_core::note::Note;
use memgauge_core::result::Report;
use memgauge_os::interleave::{KernelWeights, RestoredWeights, WeightsState};
use memgauge_os::prefetch::JOURNALS;

use crate::cli::interleave::WeightsAction;
use crate::console::Program;
use crate::exit::ExitStatus;

fn kernel() -> KernelWeights {
    KernelWeights::new(Path::new("/"), Path::new(JOURNALS))
}

/// Sets weights or puts them back, and says what was done.
pub(crate) fn change(action: WeightsAction) -> anyhow::Result<ExitStatus> {
    let done = match action {
        WeightsAction::Apply(weights) => applied(&weights, &kernel().apply(&weights)?),
        WeightsAction::Restore => match kernel().restore()? {
            Some(RestoredWeights { automatic: true, .. }) => "the kernel derives its weights automatically again".to_owned(),
            Some(RestoredWeights { before, .. }) => {
                let boot = if before.auto == Some(true) {
                    "; the kernel can derive weights again only after a reboot, because firmware states no bandwidths"
                } else {
                    ""
                };
                format!("put back the weights {}{boot}", listed(&before))
            }
            None => "no weights to put back: memgauge has set none since the last boot".to_owned(),
        },
    };
    Program::MEMGAUGE.message(done);
    Ok(ExitStatus::SUCCESS)
}

fn applied(weights: &Weights, before: &WeightsState) -> String {
    let manual = if before.auto == Some(true) { " This ended the kernel's automatic weights." } else { "" };
    format!(
        "set the kernel's weights to {weights}; they were {}.{manual} Only memory that is allocated from now on follows them, in programs that ask for weighted interleave (numactl -w). 'memgauge interleave --restore' puts back what was",
        listed(before)
    )
}

fn listed(state: &WeightsState) -> String {
    let each: Vec<String> = state.weights.iter().map(|(node, weight)| format!("{node}={weight}")).collect();
    each.join(",")
}

/// Sets the weights that a run found, and adds a note.
///
/// # Errors
/// When searches disagree about a node's weight, nothing was found, or the weights cannot be set.
pub(crate) fn apply_found(report: &mut Report) -> anyhow::Result<()> {
    let weights = common_weights(report)?;
    let before = kernel().apply(&weights)?;
    report.notes.push(Note::info("weights-applied", applied(&weights, &before)));
    Ok(())
}

/// The weights that all searches recommend.
fn common_weights(report: &Report) -> anyhow::Result<Weights> {
    let mut all: BTreeMap<u32, u32> = BTreeMap::new();
    if !report.complete {
        return Err(anyhow!("the kernel's weights were not changed, because the search did not end"));
    }
    for summary in &report.interleaves {
        if let Some(node) = summary.recommended.only_node() {
            return Err(anyhow!(
                "the kernel's weights were not changed: memory of node {node} alone serves this load best, and a program gets that without weights"
            ));
        }
        for (node, weight) in summary.recommended.iter() {
            if all.insert(node, weight).is_some_and(|other| other != weight) {
                return Err(anyhow!(
                    "the kernel's weights were not changed: they are the same for all programs, and the searches found different ones for node {node}; choose with --apply NODE=WEIGHT,..."
                ));
            }
        }
    }
    // Weights of several sockets must not be divided by what they have in common by chance: each stands for itself.
    let text: Vec<String> = all.iter().map(|(node, weight)| format!("{node}={weight}")).collect();
    text.join(",").parse().map_err(|_| anyhow!("the kernel's weights were not changed, because none were found"))
}
