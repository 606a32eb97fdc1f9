//! `memgauge interleave --apply` and `--restore`: the kernel's weights. What they should be is measured as everything else is
//! ([`super::measure`]).

use std::path::Path;

use anyhow::anyhow;
use memgauge_model::interleave::Weights;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::Report;
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

/// Sets the weights that a run found, says so on standard error, and adds a note.
///
/// # Errors
/// When searches disagree about a node's weight, nothing was found, or the weights cannot be set.
pub(crate) fn apply_found(report: &mut Report) -> anyhow::Result<()> {
    let done = apply_found_to(&kernel(), report)?;
    Program::MEMGAUGE.message(done);
    Ok(())
}

/// Sets the weights of this kernel and adds a note. Returns what was done.
fn apply_found_to(kernel: &KernelWeights, report: &mut Report) -> anyhow::Result<String> {
    let weights = common_weights(report)?;
    let done = applied(&weights, &kernel.apply(&weights)?);
    report.notes.push(Note::info(NoteCode::WeightsApplied, done.clone()));
    Ok(done)
}

/// The weights that serve all searches: each has its own ratio in them.
fn common_weights(report: &Report) -> anyhow::Result<Weights> {
    if !report.complete {
        return Err(anyhow!("the kernel's weights were not changed, because the search did not end"));
    }
    let mut others: Vec<&Weights> = report.interleaves.iter().map(|summary| &summary.recommended).collect();
    if let Some(node) = others.iter().find_map(|weights| weights.only_node()) {
        return Err(anyhow!(
            "the kernel's weights were not changed: memory of node {node} alone serves this load best, and a program gets that without weights"
        ));
    }
    if others.is_empty() {
        return Err(anyhow!("the kernel's weights were not changed, because none were found"));
    }
    let mut all = others.remove(0).clone();
    while !others.is_empty() {
        // Those that share a node come first: between lists that share none, any ratio will do, and a later list may need a certain one.
        let shares = |weights: &&Weights| !weights.nodes().intersection(&all.nodes()).is_empty();
        let own = others.remove(others.iter().position(shares).unwrap_or(0));
        all = all.joined(own).ok_or_else(|| {
            anyhow!(
                "the kernel's weights were not changed: they are the same for all programs, and no list has the ratios of all searches ({own} is one); choose with --apply NODE=WEIGHT,..."
            )
        })?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use memgauge_model::experiment::Coordinates;
    use memgauge_model::interleave::Goal;
    use memgauge_model::result::InterleaveSummary;

    use super::*;

    fn report(recommended: &[&str]) -> Report {
        let mut report = memgauge_render::read(include_bytes!("../../tests/results/two-nodes.json")).unwrap();
        let summary = |weights: &&str| InterleaveSummary {
            at: Coordinates::default(),
            goal: Goal::Bandwidth,
            nodes: vec![0, 2],
            trials: Vec::new(),
            best: weights.parse().unwrap(),
            recommended: weights.parse().unwrap(),
            plateau: Vec::new(),
            gains: Vec::new(),
            front: Vec::new(),
        };
        report.interleaves = recommended.iter().map(summary).collect();
        report
    }

    fn common(recommended: &[&str]) -> String {
        common_weights(&report(recommended)).map_or_else(|why| why.to_string(), |weights| weights.to_string())
    }

    #[test]
    fn weights_that_serve_all_searches_are_applied_and_others_refused() {
        assert_eq!(common(&["0=3,2=1"]), "0=3,2=1");
        assert_eq!(common(&["0=3,2=1", "1=3,2=2"]), "0=6,1=3,2=2");
        assert_eq!(common(&["0=1,2=1", "1=1,3=1", "2=2,3=1"]), "0=2,1=1,2=2,3=1", "in whatever order");
        assert!(common(&["0=3,2=1", "0=2,2=1"]).contains("no list has the ratios of all searches"));
        assert!(common(&["0=1"]).contains("node 0 alone"));
        assert!(common(&[]).contains("none were found"));
        let mut interrupted = report(&["0=3,2=1"]);
        interrupted.complete = false;
        assert!(common_weights(&interrupted).unwrap_err().to_string().contains("did not end"));
    }

    #[test]
    fn what_a_search_found_is_written_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let weights = root.join("sys/kernel/mm/mempolicy/weighted_interleave");
        for folder in [&weights, &root.join("proc/sys/kernel/random"), &root.join("run")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(root.join("proc/sys/kernel/random/boot_id"), "boot\n").unwrap();
        ["node0", "node2"].iter().for_each(|node| fs::write(weights.join(node), "1\n").unwrap());
        let kernel = KernelWeights::new(root, &root.join("run"));
        let mut found = report(&["0=3,2=1"]);
        let told = apply_found_to(&kernel, &mut found).unwrap();
        assert!(told.contains("set the kernel's weights to 0=3,2=1; they were 0=1,2=1."), "{told}");
        assert!(found.notes.iter().any(|note| note.code == NoteCode::WeightsApplied && note.message.to_string() == told));
        assert_eq!(fs::read_to_string(weights.join("node0")).unwrap().trim(), "3");
        assert!(apply_found_to(&kernel, &mut report(&["0=1"])).is_err());
        assert_eq!(fs::read_to_string(weights.join("node0")).unwrap().trim(), "3", "a refusal changes nothing");
    }
}
