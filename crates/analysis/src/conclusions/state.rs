//! Whether two stamps show the same state of the machine.

use memgauge_model::estimate::is_possible;
use memgauge_model::experiment::Metric;
use memgauge_model::protocol::LEAST_STAMP_ROUNDS;
use memgauge_model::result::{
    Difference, Measurement, ProbeComparison, ProbeReading, QualityLevel, QualityReason, Report, Stamp, StampProbe, StateComparison,
    StateVerdict,
};
use memgauge_model::stats;
use memgauge_model::units::Bytes;

use super::judge::{OTHERS, neighbours_busy};

/// The smallest change of a probe that is another state. Stamps one right after the other on a quiet machine differ by less, because each has
/// buffers of its own.
pub(super) const LEAST_CHANGE: f64 = 0.03;
/// A probe that would miss a larger change than this does not show that the state is the same: people act on differences of a tenth.
pub const COARSE: f64 = 0.1;
/// Standard errors of the difference of two medians that chance explains: with five rounds each, without the one that deviates most, chance
/// exceeds this in 0.2 % of the comparisons of a probe, whether rounds are distributed normally or by Student's t with three degrees of freedom
/// (20,000 draws each), and stamps have six probes.
pub(super) const STANDARD_ERRORS: f64 = 7.0;
/// Of so many rounds one may be out of line by chance, such as an interrupted one, and does not count for the scatter.
const ROUNDS_WITH_OUTLIER: usize = 5;
/// Share of the threads' time that they may be off their CPUs. Threads of a stamp run for a tenth of a second together: kernel threads take up
/// to half of this from them, and a program that uses a CPU for 30 % of the time twice as much or more.
const MAX_OFF_CPU: f64 = 0.02;
/// The standard error of a median over that of a mean, for samples of a normal distribution: the root of π/2.
const OF_MEDIANS: f64 = 1.253_314_137_3;

/// Compares two stamps. `settings` are those that differ, `with` the file that the first stamp is from.
pub fn compare(before: &Stamp, after: &Stamp, settings: Vec<Difference>, with: Option<String>) -> StateComparison {
    let (mut probes, mut not_compared) = (Vec::new(), Vec::new());
    for probe in StampProbe::ALL {
        match (before.reading(probe), after.reading(probe)) {
            // A machine without this probe.
            (None, None) => {}
            (Some(a), Some(b)) => match compare_readings(a, b) {
                Some(compared) => probes.push(compared),
                None => not_compared.push(probe),
            },
            _ => not_compared.push(probe),
        }
    }
    let (busy_before, busy_after) = (disturbances(before), disturbances(after));
    // Another run's stamp says nothing of now.
    let busy_now = !busy_after.is_empty() || (with.is_none() && !busy_before.is_empty());
    let verdict = match () {
        () if !settings.is_empty() => StateVerdict::Another,
        () if busy_now => StateVerdict::Busy,
        () if !busy_before.is_empty() || probes.is_empty() => StateVerdict::Unknown,
        () if probes.iter().any(|p| p.differs) => StateVerdict::Another,
        () if !not_compared.is_empty() || probes.iter().any(|p| p.allowed > COARSE) => StateVerdict::Unknown,
        () => StateVerdict::Same,
    };
    let mut busy = [busy_before, busy_after].concat();
    busy.sort_unstable();
    busy.dedup();
    StateComparison { verdict, probes, not_compared, settings, busy, with }
}

/// What others did to the CPUs and the memory during a stamp.
pub fn disturbances(stamp: &Stamp) -> Vec<QualityReason> {
    let noise = &stamp.noise;
    let above = |value: Option<f64>, limit: f64| value.is_some_and(|v| v > limit);
    let found = [
        (QualityReason::Steal, above(noise.steal, MAX_OFF_CPU)),
        (QualityReason::BusyMachine, above(noise.others, OTHERS)),
        (QualityReason::InvoluntarySwitches, above(noise.waited, MAX_OFF_CPU)),
        (QualityReason::BusyNeighbours, neighbours_busy(noise)),
    ];
    found.into_iter().filter_map(|(reason, seen)| seen.then_some(reason)).collect()
}

/// Degrades the numbers of a run that depend on a probe that differs between its stamps, or all of them where a setting does.
pub fn mark(compared: &StateComparison, report: &mut Report) {
    if compared.verdict != StateVerdict::Another {
        return;
    }
    let changed: Vec<StampProbe> = compared.changes().iter().map(|change| change.probe).collect();
    let all = !compared.settings.is_empty();
    let last_level = report.machine.topology.caches.iter().map(|cache| cache.size).max().unwrap_or_default();
    for m in report.results.iter_mut().chain(&mut report.repeats).filter(|m| m.estimate.value.is_some()) {
        if all || changed.iter().any(|probe| depends_on(m, *probe, last_level)) {
            m.quality.level = m.quality.level.max(QualityLevel::Degraded);
            m.quality.reasons.push(QualityReason::StateChanged);
        }
    }
    if all || changed.iter().any(|probe| matches!(probe, StampProbe::Transfer | StampProbe::Frequency)) {
        report.matrices.iter_mut().for_each(|matrix| matrix.degrade(QualityReason::StateChanged));
    }
}

/// Whether a number changes with what a probe shows, on a machine whose largest cache has this size.
fn depends_on(m: &Measurement, probe: StampProbe, last_level: Bytes) -> bool {
    let transfer = m.experiment.is_cache_to_cache();
    let latency = m.metric == Metric::Latency;
    let cached = m.at.working_set.is_some_and(|bytes| bytes <= last_level);
    match probe {
        StampProbe::Frequency => true,
        StampProbe::Transfer => transfer,
        StampProbe::CacheLatency => cached,
        StampProbe::MemoryLatency => latency && !transfer && !cached,
        // Latency under load is that of queues.
        StampProbe::ReadsOfOneCpu => !latency && !cached && m.evidence.threads == 1,
        StampProbe::ReadsOfAllCpus => !transfer && !cached && (!latency || m.at.mix.is_some()) && m.evidence.threads != 1,
    }
}

/// `None` where one of them has no value or too few rounds, or they are of different things.
fn compare_readings(before: &ProbeReading, after: &ProbeReading) -> Option<ProbeComparison> {
    let alike = before.cpus == after.cpus && before.bytes == after.bytes && before.pages == after.pages;
    let (a, b) = (usable(before)?, usable(after)?);
    if !alike {
        return None;
    }
    let change = b / a - 1.0;
    let allowed = allowed(&before.rounds, &after.rounds);
    // A fall by a half is as large as a rise to twice.
    let differs = (b / a).ln().abs() > allowed.ln_1p();
    Some(ProbeComparison { probe: before.probe, unit: before.unit.clone(), before: a, after: b, change, allowed, differs })
}

/// The value of a reading. Files may have been written by others.
pub(super) fn usable(reading: &ProbeReading) -> Option<f64> {
    let possible = |value: &f64| *value > 0.0 && is_possible(*value);
    reading.value.filter(|value| possible(value) && reading.rounds.len() >= LEAST_STAMP_ROUNDS && reading.rounds.iter().all(possible))
}

/// The largest relative change of the median that the scatter of the rounds of both explains.
fn allowed(before: &[f64], after: &[f64]) -> f64 {
    let pooled = f64::midpoint(variance_of_log(before), variance_of_log(after));
    let error = OF_MEDIANS * (pooled * (1.0 / before.len().max(1) as f64 + 1.0 / after.len().max(1) as f64)).sqrt();
    (STANDARD_ERRORS * error).exp_m1().max(LEAST_CHANGE)
}

/// The standard error of the median of the rounds, relative to it.
pub(super) fn relative_error(rounds: &[f64]) -> f64 {
    OF_MEDIANS * (variance_of_log(rounds) / rounds.len().max(1) as f64).sqrt()
}

/// Around the median, without the round that deviates most where there are enough.
fn variance_of_log(rounds: &[f64]) -> f64 {
    let logs: Vec<f64> = rounds.iter().map(|v| v.ln()).collect();
    let Some(median) = stats::median(&logs).filter(|_| logs.len() > 1) else { return 0.0 };
    let mut squares = stats::sorted(&logs.iter().map(|l| (l - median).powi(2)).collect::<Vec<_>>());
    if squares.len() >= ROUNDS_WITH_OUTLIER {
        squares.pop();
    }
    squares.iter().sum::<f64>() / (squares.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use memgauge_model::result::{Neighbours, QualityReason};
    use memgauge_model::units::{Bytes, IdSet};

    use super::*;

    fn stamp(probes: &[(StampProbe, f64, f64)]) -> Stamp {
        let reading = |&(probe, value, scatter): &(StampProbe, f64, f64)| ProbeReading {
            probe,
            unit: probe.unit().into(),
            value: Some(value),
            not_measured: None,
            rounds: [-1.0, -0.5, 0.0, 0.5, 1.0].map(|step| value * (1.0 + scatter * step)).to_vec(),
            cpus: IdSet::one(0),
            bytes: Some(Bytes::mib(64)),
            pages: None,
        };
        Stamp { probes: probes.iter().map(reading).collect(), ..Stamp::default() }
    }

    #[test]
    fn a_change_counts_if_the_scatter_does_not_explain_it() {
        use StampProbe::{MemoryLatency, Transfer};
        let before = stamp(&[(MemoryLatency, 100.0, 0.003), (Transfer, 50.0, 0.003)]);
        let verdict = |after: &Stamp| compare(&before, after, Vec::new(), None);
        assert_eq!(verdict(&stamp(&[(MemoryLatency, 102.0, 0.003), (Transfer, 49.0, 0.003)])).verdict, StateVerdict::Same);
        let another = verdict(&stamp(&[(MemoryLatency, 100.0, 0.003), (Transfer, 52.5, 0.003)]));
        assert_eq!(another.verdict, StateVerdict::Another);
        let [change] = another.changes()[..] else { panic!("{another:?}") };
        assert!(change.probe == Transfer && (change.change - 0.05).abs() < 1e-9 && change.allowed < 0.031, "{change:?}");
        // The same change of a probe that scatters more.
        let scattered = verdict(&stamp(&[(MemoryLatency, 100.0, 0.003), (Transfer, 52.5, 0.06)]));
        assert!(!scattered.probes[1].differs && scattered.probes[1].allowed > COARSE, "{scattered:?}");
        assert_eq!(scattered.verdict, StateVerdict::Unknown, "nor does it show that nothing changed");
    }

    #[test]
    fn settings_are_another_state_and_a_busy_machine_tells_nothing_of_its_probes() {
        let quiet = stamp(&[(StampProbe::MemoryLatency, 100.0, 0.003)]);
        let neighbours = Some(Neighbours { memory: Some(0.3), ..Neighbours::default() });
        let mut busy = stamp(&[(StampProbe::MemoryLatency, 150.0, 0.003)]);
        busy.noise.neighbours = neighbours;
        let compared = compare(&quiet, &busy, Vec::new(), Some("before.json".into()));
        assert_eq!((compared.verdict, compared.busy), (StateVerdict::Busy, vec![QualityReason::BusyNeighbours]));
        let now_quiet = compare(&busy, &quiet, Vec::new(), Some("before.json".into()));
        assert_eq!(now_quiet.verdict, StateVerdict::Unknown, "the earlier stamp tells nothing");
        assert_eq!(compare(&busy, &quiet, Vec::new(), None).verdict, StateVerdict::Busy);
        let governor = memgauge_model::result::DifferentField::Governor;
        let settings = vec![Difference { field: governor, before: vec!["performance".into()], after: vec!["powersave".into()] }];
        assert_eq!(compare(&quiet, &busy, settings, None).verdict, StateVerdict::Another);
    }

    #[test]
    fn readings_of_other_buffers_are_not_compared() {
        let (before, mut after) = (stamp(&[(StampProbe::Frequency, 3.0, 0.0)]), stamp(&[(StampProbe::Frequency, 2.0, 0.0)]));
        after.probes[0].cpus = IdSet::one(1);
        assert_eq!(compare(&before, &after, Vec::new(), None).verdict, StateVerdict::Unknown);
        after.probes[0].cpus = IdSet::one(0);
        assert_eq!(compare(&before, &after, Vec::new(), None).verdict, StateVerdict::Another);
        // One probe that is the same does not speak for another that failed.
        let two = stamp(&[(StampProbe::MemoryLatency, 100.0, 0.003), (StampProbe::Frequency, 3.0, 0.0)]);
        let mut failed = two.clone();
        (failed.probes[0].value, failed.probes[0].rounds) = (None, Vec::new());
        let compared = compare(&two, &failed, Vec::new(), None);
        assert_eq!((compared.verdict, compared.not_compared), (StateVerdict::Unknown, vec![StampProbe::MemoryLatency]));
    }

    #[test]
    fn impossible_rounds_of_a_file_are_no_reading() {
        let sound = stamp(&[(StampProbe::Transfer, 50.0, 0.003)]);
        for rounds in [vec![], vec![50.0; 3], vec![0.0; 5], vec![1e-300, 1.0, 1e300, 1e-300, 1e300], vec![f64::NAN; 5], vec![-1.0; 5]] {
            let mut strange = sound.clone();
            strange.probes[0].rounds = rounds;
            assert_eq!(compare(&sound, &strange, Vec::new(), None).verdict, StateVerdict::Unknown);
        }
    }
}
