//! Isolated CPUs: one beside others on its node, and a node that has no others.

use anyhow::{Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::units::IdSet;

use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "isolated",
    about: "isolcpus=3-7: a node of isolated CPUs only, and one beside others",
    optional: false,
    machine: Machine { qemu: super::numa::QEMU, kernel: &["isolcpus=3-7"], ..PLAIN },
    tests: tests![isolated_cpus_are_found, a_node_without_others_is_measured, a_named_cpu_is_measured],
};

fn isolated_cpus_are_found() -> Result<()> {
    let machine = memgauge("info").measure()?.machine;
    ensure!(machine.allowed.cpus == "0-7".parse()? && machine.allowed.isolated == "3-7".parse()?, "{:?}", machine.allowed);
    Ok(())
}

/// Rows of both nodes: CPUs 0-2 for the first, and the isolated CPUs 4-7 for the second.
fn a_node_without_others_is_measured() -> Result<()> {
    let report = memgauge("bandwidth --matrix --size 2M --time 200ms").measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"0-1".parse()?, &"0-3".parse()?)?;
    for m in measured(&report)? {
        let row: IdSet = if m.at.cpu_node == Some(0) { "0-2".parse()? } else { "4-7".parse()? };
        ensure!(m.at.cpus.as_ref() == Some(&row), "{:?}", m.at);
    }
    Ok(())
}

fn a_named_cpu_is_measured() -> Result<()> {
    let report = memgauge("latency --cpu 3 --size 4M --time 40ms").measure()?;
    ensure!(measured(&report)?.iter().all(|m| m.at.cpu == Some(3)), "{:?}", report.results);
    Ok(())
}
