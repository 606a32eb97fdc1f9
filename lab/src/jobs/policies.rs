//! Memory policies that a container runtime's filter refuses: first touch places, what is left to read back verifies.

use anyhow::{Context, Result, ensure};
use memgauge_model::experiment::Experiment;
use memgauge_model::result::{PlacementMethod, PlacementSource, PlacementStatus, QualityReason, Report};
use memgauge_model::wording::reasons;

use crate::guest;
use crate::job::{Job, Machine, PLAIN, tests};
use crate::program::{is_matrix, lost_only, measured, memgauge};

pub(crate) const JOB: Job = Job {
    name: "policies",
    about: "mbind, set_mempolicy, get_mempolicy and move_pages refused: first touch, verified or reported as unverified",
    optional: false,
    machine: Machine { qemu: super::hugepages::QEMU, kernel: &["numa_balancing=disable"], ..PLAIN },
    tests: tests![
        all_refused_latency,
        all_refused_bandwidth,
        all_refused_in_a_loaded_curve,
        all_refused_in_a_pool,
        a_node_without_cpus_is_refused,
        nodes_without_cpus_cost_their_cells_only,
        only_binding_refused,
        only_reading_back_refused,
        nothing_to_read_back_from,
        a_node_without_cpus_and_nothing_to_read_back_from,
        balancing_that_moves_pages_is_noticed,
    ],
};

const ALL: &[libc::c_long] = &[libc::SYS_mbind, libc::SYS_set_mempolicy, libc::SYS_get_mempolicy, libc::SYS_move_pages];
const NUMA_MAPS: &str = "/proc/self/numa_maps";

/// Every result was placed and read back like this, on the node that it was to be on.
fn is_placed(report: &Report, method: PlacementMethod, source: PlacementSource) -> Result<()> {
    for m in measured(report)? {
        let placement = &m.evidence.placement;
        ensure!(placement.method == Some(method) && placement.source == Some(source), "{:?}: {placement:?}", m.at);
        ensure!(placement.status == PlacementStatus::Verified && placement.problems.is_empty(), "{:?}: {placement:?}", m.at);
        ensure!(!m.quality.reasons.contains(&QualityReason::PlacementUnverified), "{:?}", m.quality);
    }
    Ok(())
}

fn all_refused_latency() -> Result<()> {
    let report = memgauge("latency --matrix --cpu 0 --node 0-1 --size 4M --time 40ms").without_calls(ALL).measure()?;
    is_matrix(&report, Experiment::IdleLatency, &"0".parse()?, &"0-1".parse()?)?;
    is_placed(&report, PlacementMethod::FirstTouch, PlacementSource::NumaMaps)
}

fn all_refused_bandwidth() -> Result<()> {
    for pages in ["4k", "thp"] {
        let report = memgauge(&format!("bandwidth --matrix --cpu 2 --node 0-1 --pages {pages} --size 4M --time 120ms"))
            .without_calls(ALL)
            .measure()?;
        is_matrix(&report, Experiment::BandwidthMatrix, &"1".parse()?, &"0-1".parse()?)?;
        is_placed(&report, PlacementMethod::FirstTouch, PlacementSource::NumaMaps)?;
    }
    Ok(())
}

fn all_refused_in_a_loaded_curve() -> Result<()> {
    let report = memgauge("loaded --cpu 0-1 --node 1 --delay 0 --size 2M --time 200ms").without_calls(ALL).measure()?;
    is_placed(&report, PlacementMethod::FirstTouch, PlacementSource::NumaMaps)
}

/// A pool's page is taken from the pool of the node whose CPU touches it.
fn all_refused_in_a_pool() -> Result<()> {
    for node in 0..2 {
        guest::write(guest::pool(node, 2048).join("nr_hugepages"), "4")?;
    }
    let report = memgauge("bandwidth --matrix --cpu 0 --node 0-1 --pages 2m --size 4M --time 120ms").without_calls(ALL).measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"0".parse()?, &"0-1".parse()?)?;
    is_placed(&report, PlacementMethod::FirstTouch, PlacementSource::NumaMaps)?;
    for node in 0..2 {
        ensure!(guest::pool_state(node, 2048)? == (4, 4), "{:?}", guest::pool_state(node, 2048)?);
        guest::write(guest::pool(node, 2048).join("nr_hugepages"), "0")?;
    }
    Ok(())
}

fn a_node_without_cpus_is_refused() -> Result<()> {
    let ran = memgauge("latency --cpu 0 --node 2 --size 4M --time 40ms").without_calls(ALL).run()?;
    ran.refused(4, &["node 2", "mbind", "no CPU of node 2", "SYS_NICE"])?;
    ensure!(
        ran.report()?.results.iter().all(|m| m.estimate.value.is_none() && m.estimate.not_measured.is_some()),
        "{:?}",
        ran.report()?.results
    );
    Ok(())
}

fn nodes_without_cpus_cost_their_cells_only() -> Result<()> {
    let ran = memgauge("bandwidth --matrix --cpu 0 --size 2M --time 120ms").without_calls(ALL).run()?;
    lost_only(&ran, |at| at.memory_node() == Some(2), &["no CPU of node 2", "mbind"])
}

fn only_binding_refused() -> Result<()> {
    let report = memgauge("bandwidth --matrix --cpu 2 --node 0-1 --size 4M --time 120ms").without_calls(&[libc::SYS_mbind]).measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"1".parse()?, &"0-1".parse()?)?;
    is_placed(&report, PlacementMethod::FirstTouch, PlacementSource::MovePages)
}

fn only_reading_back_refused() -> Result<()> {
    let report = memgauge("bandwidth --matrix --cpu 0 --size 4M --time 120ms").without_calls(&[libc::SYS_move_pages]).measure()?;
    is_matrix(&report, Experiment::BandwidthMatrix, &"0".parse()?, &"0-2".parse()?)?;
    is_placed(&report, PlacementMethod::Mbind, PlacementSource::NumaMaps)
}

fn nothing_to_read_back_from() -> Result<()> {
    let report = memgauge("bandwidth --cpu 0 --node 1 --size 4M --time 120ms").without_calls(ALL).hiding(NUMA_MAPS).measure()?;
    let m = *measured(&report)?.first().context("no result")?;
    let placement = &m.evidence.placement;
    ensure!(placement.status == PlacementStatus::Unverified && placement.source.is_none(), "{placement:?}");
    ensure!(placement.method == Some(PlacementMethod::FirstTouch) && placement.pages_by_node.is_empty(), "{placement:?}");
    let why = reasons::placement_problems(&placement.problems);
    ensure!(["move_pages", "numa_maps"].iter().all(|word| why.contains(word)), "{placement:?}");
    ensure!(m.quality.reasons.contains(&QualityReason::PlacementUnverified), "{:?}", m.quality);
    Ok(())
}

fn a_node_without_cpus_and_nothing_to_read_back_from() -> Result<()> {
    let line = "bandwidth --cpu 0 --node 2 --size 4M --time 120ms";
    memgauge(line).without_calls(ALL).hiding(NUMA_MAPS).run()?.refused(4, &["no CPU of node 2", "SYS_NICE"])
}

/// NUMA balancing moves unbound pages to the nodes of the CPUs that use them, and leaves bound ones alone.
fn balancing_that_moves_pages_is_noticed() -> Result<()> {
    guest::mount("debugfs", "/tmp/debug", "debugfs", "")?;
    for file in ["scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms"] {
        guest::write(format!("/tmp/debug/sched/numa_balancing/{file}"), "20")?;
    }
    guest::write("/proc/sys/kernel/numa_balancing", "1")?;
    let line = "bandwidth --cpu 2 --node 0 --pages 4k --size 4M --time 800ms";
    let (moved, bound) = (memgauge(line).without_calls(ALL).measure(), memgauge(line).measure());
    guest::write("/proc/sys/kernel/numa_balancing", "0")?;
    let (moved, bound) = (moved?, bound?);
    let m = *measured(&moved)?.first().context("no result")?;
    ensure!(m.evidence.placement.status == PlacementStatus::Wrong, "{:?} {:?}", m.evidence.placement, m.evidence.noise);
    for reason in [QualityReason::PlacementWrong, QualityReason::PagesMigrated] {
        ensure!(m.quality.reasons.contains(&reason), "{:?}", m.quality);
    }
    ensure!(
        moved.environment.limits.iter().any(|n| n.code == memgauge_model::note::NoteCode::NumaBalancing),
        "{:?}",
        moved.environment.limits
    );
    is_placed(&bound, PlacementMethod::Mbind, PlacementSource::MovePages)
}
