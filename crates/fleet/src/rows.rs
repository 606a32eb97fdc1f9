//! The parts of a result that go into a fleet's store: its host, and a row for every quantity.

use std::sync::Arc;

use memgauge_model::experiment::{Coordinates, Metric};
use memgauge_model::result::DifferentField;
use memgauge_model::result::{Measurement, PairMatrix, PairNumber, QualityLevel, Report};
use memgauge_model::stats::median;

use crate::row::{Cell, Fingerprint, HostRun, Row};

/// Digits of the hash of a machine ID that name a host without a name, or with one that others have too.
pub(crate) const ID_DIGITS: usize = 12;

/// The rows of one run: every number of its results, those that were not measured too, with their reasons. Unreliable ones are kept with
/// their quality. Points of curves under load are at their delays. Of transfers between all pairs of CPUs there is a row for every two
/// nodes, the median of their pairs: a million rows of one host would not say more about it. Repeats of cells are left out.
pub fn rows(report: &Report) -> Vec<Row> {
    let run = Arc::new(HostRun::from_report(report));
    let single = report.results.iter().map(|m| measured(&run, m, report));
    let matrices = report.matrices.iter().flat_map(|matrix| between_nodes(&run, matrix, report));
    single.chain(matrices).collect()
}

fn measured(run: &Arc<HostRun>, m: &Measurement, report: &Report) -> Row {
    let Measurement { experiment, metric, unit, estimate, .. } = m;
    let value = estimate.value.filter(|v| v.is_finite());
    Row {
        run: run.clone(),
        cell: Arc::new(Cell { experiment: *experiment, at: m.at.clone(), metric: *metric, unit: *unit }),
        value,
        interval: value.and(estimate.ci95_low.zip(estimate.ci95_high)).filter(|(low, high)| low.is_finite() && high.is_finite()),
        pages: m.evidence.pages.obtained,
        volatile: report.stand_in(&m.at).map(str::to_owned),
        quality: value.map(|_| m.quality.level),
        not_measured: value.is_none().then(|| estimate.not_measured.as_ref().map_or_else(|| NO_REASON.to_owned(), memgauge_render::cause)),
    }
}

/// The word for a number that is missing without a reason.
const NO_REASON: &str = "no-reason";

/// The medians over the pairs of CPUs of every two nodes. They are good if more than half of the pairs are.
fn between_nodes(run: &Arc<HostRun>, matrix: &PairMatrix, report: &Report) -> Vec<Row> {
    let missing = report.incomplete.as_ref().map_or_else(|| "cells-missing".to_owned(), memgauge_render::cause);
    let row = |(at, pairs): (Coordinates, Vec<PairNumber>)| {
        let measured = pairs.into_iter().filter_map(|(value, quality)| Some((value?, quality)));
        let (values, mut qualities): (Vec<f64>, Vec<QualityLevel>) = measured.unzip();
        qualities.sort_unstable();
        let volatile = report.stand_in(&at).map(str::to_owned);
        let value = median(&values);
        Row {
            run: run.clone(),
            cell: Arc::new(Cell { experiment: matrix.experiment, at, metric: Metric::Latency, unit: matrix.unit }),
            value,
            interval: None,
            pages: matrix.evidence.pages.obtained,
            volatile,
            quality: qualities.get(qualities.len() / 2).copied(),
            not_measured: value.is_none().then(|| missing.clone()),
        }
    };
    matrix.between_nodes(&report.machine.topology).into_iter().map(row).collect()
}

impl HostRun {
    /// The run of a report, with its host.
    pub fn from_report(report: &Report) -> Self {
        let host = report.run.host.as_ref();
        let machine_id_hash = host.and_then(|h| h.machine_id_hash.clone()).filter(|hash| !hash.is_empty());
        let by_id = || machine_id_hash.as_ref().map(|hash| format!("id-{}", hash.chars().take(ID_DIGITS).collect::<String>()));
        let name = host.and_then(|h| h.hostname.clone()).filter(|name| !name.is_empty()).or_else(by_id);
        Self {
            host: name.unwrap_or_else(|| format!("run-{}", report.run.id)),
            machine_id_hash,
            run_id: report.run.id.clone(),
            started: report.started.utc.clone(),
            labels: report.run.labels.clone(),
            complete: report.complete,
            fingerprint: Fingerprint::from_report(report),
        }
    }
}

impl Fingerprint {
    /// The properties of a run's machine. The fields are those by which `memgauge compare` distinguishes machines.
    pub fn from_report(report: &Report) -> Self {
        let field = |field: DifferentField| field.value(report);
        let joined = |parts: [Option<String>; 2]| parts.into_iter().flatten().reduce(|all, part| format!("{all}, {part}"));
        let encryption = field(DifferentField::MemoryEncryption).map(|technology| format!("encrypted by {technology}"));
        Self {
            cpu: field(DifferentField::Cpu),
            stepping: field(DifferentField::CpuModel),
            hypervisor: field(DifferentField::Hypervisor),
            cpus: report.machine.topology.cpus.len() as u32,
            nodes: report.machine.topology.nodes.len() as u32,
            memory: joined([field(DifferentField::Channels), encryption]),
            pages: field(DifferentField::Pages),
            microcode: field(DifferentField::Microcode),
            firmware: field(DifferentField::Firmware),
            kernel: field(DifferentField::Kernel),
        }
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::estimate::{Estimate, NotMeasured};
    use memgauge_model::experiment::{ChaseOrder, Experiment, LineState};
    use memgauge_model::result::{Host, Quality};

    use super::*;

    fn saved() -> Report {
        memgauge_render::read(include_bytes!("../../../tests/results/two-nodes.json")).unwrap()
    }

    #[test]
    fn every_result_is_a_row_and_what_was_not_measured_has_its_word() {
        let mut report = saved();
        let whole = rows(&report);
        assert_eq!(whole.len(), report.results.len());
        assert!(whole.iter().all(|row| row.value.is_some() == row.not_measured.is_none() && row.value.is_some() == row.quality.is_some()));
        assert_eq!((whole[0].value, whole[0].cell.at.order), (Some(112.7), Some(ChaseOrder::WindowLocal)));
        report.results[0].estimate = Estimate {
            not_measured: Some(NotMeasured::NoMemory { failure: None, node: None, bytes: None, detail: "x".into() }),
            ..Estimate::default()
        };
        report.results[1].quality = Quality { level: QualityLevel::Unreliable, reasons: vec![] };
        let rows = rows(&report);
        assert_eq!((rows[0].value, rows[0].quality, rows[0].not_measured.as_deref()), (None, None, Some("no-memory")));
        assert_eq!(rows[1].quality, Some(QualityLevel::Unreliable));
        assert_eq!(rows[1].value, whole[1].value, "unreliable, but not hidden");
    }

    #[test]
    fn a_stand_in_for_persistent_memory_is_told_in_each_row() {
        let mut report: Report = memgauge_render::read(include_bytes!("../../../tests/results/pmem.json")).unwrap();
        assert!(rows(&report).iter().all(|row| row.volatile.is_none()));
        report.plan.as_mut().unwrap().directories[0].file.volatile = Some("tmpfs".into());
        assert!(rows(&report).iter().all(|row| row.volatile.as_deref() == Some("tmpfs")));
    }

    #[test]
    fn hosts_without_a_name_are_named_by_their_machine_id_and_those_without_either_by_their_run() {
        let mut report = saved();
        report.run.id = "r1".into();
        let name = |report: &Report| HostRun::from_report(report).host;
        assert_eq!(name(&report), "run-r1");
        report.run.host = Some(Host { hostname: None, machine_id_hash: Some("0123456789abcdef".into()) });
        assert_eq!(name(&report), "id-0123456789ab");
        report.run.host = Some(Host { hostname: Some("n17".into()), machine_id_hash: None });
        assert_eq!(name(&report), "n17");
    }

    #[test]
    fn all_pairs_become_a_row_for_every_two_nodes() {
        let mut report = saved();
        report.results.clear();
        let cpus: Vec<u32> = report.machine.topology.cpus.iter().map(|c| c.id).collect();
        let mut matrix = PairMatrix::new(cpus.clone(), LineState::Hitm, None);
        let node = |cpu: u32| report.machine.topology.cpu(cpu).unwrap().node;
        for &reader in &cpus {
            for &holder in cpus.iter().filter(|holder| **holder != reader && node(reader) != 1) {
                let value = Some(if node(reader) == node(holder) { 50.0 } else { 150.0 });
                matrix.set(reader, holder, &Estimate { value, ..Estimate::default() }, &Quality::default());
            }
        }
        report.matrices = vec![matrix];
        let rows = rows(&report);
        let found: Vec<_> = rows.iter().map(|r| (r.cell.at.cpu_node, r.cell.at.holder_node, r.value)).collect();
        assert_eq!(
            found,
            [(Some(0), Some(0), Some(50.0)), (Some(0), Some(1), Some(150.0)), (Some(1), Some(0), None), (Some(1), Some(1), None)]
        );
        assert!(rows.iter().all(|r| r.cell.experiment == Experiment::CacheToCacheMatrix));
        assert_eq!(rows[2].not_measured.as_deref(), Some("cells-missing"));
    }

    #[test]
    fn fingerprints_hold_what_the_machine_states() {
        let fingerprint = Fingerprint::from_report(&saved());
        assert!(fingerprint.cpu.is_some() && fingerprint.cpus > 0 && fingerprint.nodes == 2, "{fingerprint:?}");
        assert_eq!(fingerprint.hypervisor, None);
    }
}
