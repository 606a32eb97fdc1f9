//! What a run reports when something else uses its CPU, and when its time is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memgauge_model::estimate::NotMeasured;
use memgauge_model::result::{HealthStatus, Incomplete, Measurement, QualityLevel, Report};
use memgauge_os::cpu;
use memgauge_testing::not_tested_in_part;

use crate::support::{had_no_cpu_time, program, report, text};

/// One test at a time: the competitor of another test would disturb it.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread of this process, not of the one that measures. It keeps a CPU busy for `on`, idles for `off`, and so on.
struct Competitor {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Competitor {
    fn on(cpu: u32, on: Duration, off: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            cpu::pin_to(cpu).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let begin = Instant::now();
                while begin.elapsed() < on && !stopped.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                std::thread::sleep(off);
            }
        });
        Self { stop, thread: Some(thread) }
    }

    fn always(cpu: u32) -> Self {
        Self::on(cpu, Duration::from_secs(3600), Duration::ZERO)
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn last_cpu() -> u32 {
    report("info").machine.allowed.cpus.iter().last().unwrap()
}

/// Runs once, with the priority of a competitor. `None` if others had the CPU for nearly all of it.
fn beside(line: &str) -> Option<Report> {
    let output = program().args(line.split(' ')).args(["--format", "json"]).output().unwrap();
    if had_no_cpu_time(&output) {
        not_tested_in_part!("{line}: others had the CPU");
        return None;
    }
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn only(report: &Report) -> &Measurement {
    assert_eq!(report.results.len(), 1);
    &report.results[0]
}

#[test]
fn a_run_whose_cpu_is_shared_says_so() {
    let _alone = alone();
    let cpu = last_cpu();
    let commands = [
        format!("bandwidth --cpu {cpu} --width sse2 --size 8M --pages 4k --budget 300ms"),
        format!("latency --cpu {cpu} --size 1M --order window-local --pages 4k --budget 300ms"),
    ];
    for command in commands {
        let (mut quiet, mut busy) = (Vec::new(), Vec::new());
        // In turn, so that everything else that runs here affects both alike.
        for _ in 0..2 {
            quiet.extend(beside(&command));
            let _competitor = Competitor::always(cpu);
            busy.extend(beside(&command));
        }
        if quiet.is_empty() || busy.is_empty() {
            continue;
        }
        for report in &busy {
            let m = only(report);
            let noise = &m.evidence.noise;
            // The competitor gets half of the CPU. That time is in no sample, or the number is marked.
            let left_out = noise.left_out.is_some_and(|share| share > 0.2);
            assert!(left_out || m.quality.level == QualityLevel::Unreliable, "{command}: {:?} {noise:?}", m.quality);
            assert!(noise.others.is_none_or(|share| share > 0.2) && noise.bursts.is_some_and(|all| all >= 6), "{command}: {noise:?}");
            assert!(m.estimate.value.is_some(), "{command}: a number all the same");
            assert!(
                report.notes.iter().any(|note| note.code == memgauge_model::note::NoteCode::MachineBusy),
                "{command}: {:?}",
                report.notes
            );
            // The name of this process, of which the kernel keeps 15 bytes.
            let named = &report.environment.disturbing_processes;
            assert!(named.iter().any(|process| process.name.starts_with(env!("CARGO_CRATE_NAME"))), "{command}: {named:?}");
        }
        // Beside six loops a competitor more is hardly seen.
        if quiet.iter().all(|report| only(report).evidence.noise.others.is_some_and(|share| share > 0.3)) {
            not_tested_in_part!("{command}: others use CPU {cpu} already");
            continue;
        }
        // Of the runs that know it.
        let least = |reports: &[Report], known: fn(&Measurement) -> Option<f64>| {
            reports.iter().filter_map(|report| known(only(report))).reduce(f64::min)
        };
        let left_out = [&quiet, &busy].map(|reports| least(reports, |m| m.evidence.noise.left_out));
        let [without, with] = left_out;
        assert!(without.zip(with).is_none_or(|(without, with)| without <= with), "{command}: less without the competitor: {left_out:?}");
        let others = [&quiet, &busy].map(|reports| least(reports, |m| m.evidence.noise.others));
        let [without, with] = others;
        assert!(without.zip(with).is_none_or(|(without, with)| without < with), "{command}: its time is others' time: {others:?}");
    }
}

#[test]
fn what_a_competitor_takes_now_and_then_is_in_no_sample() {
    let _alone = alone();
    let cpu = last_cpu();
    let _competitor = Competitor::on(cpu, Duration::from_millis(40), Duration::from_millis(250));
    let line = format!("bandwidth --cpu {cpu} --width sse2 --size 8M --pages 4k --confidence 0.001% --budget 1s");
    let Some(report) = beside(&line) else { return };
    let noise = &only(&report).evidence.noise;
    let (all, disturbed, left_out) = (noise.bursts.unwrap(), noise.bursts_disturbed.unwrap(), noise.bursts_left_out.unwrap());
    assert!(disturbed <= all && left_out <= disturbed, "{noise:?}");
    // On a quiet machine there are enough other bursts. On a busy one there may be none; then the disturbed ones count.
    // Windows in which the competitor ran are left out. Where nothing else is left, on a machine that is busy with other things as well, all
    // count and the number is marked.
    let marked = only(&report).quality.level == QualityLevel::Unreliable;
    assert!(noise.left_out.is_some_and(|share| share > 0.03) || marked, "{noise:?}");
}

#[test]
fn a_check_ends_in_its_time_and_says_what_it_left_out() {
    let _alone = alone();
    // The plan would take more than a quarter of a minute.
    let begin = Instant::now();
    let output = program().args(["quick", "--time", "4s", "--size", "8M", "--within", "2s", "--format", "json"]).output().unwrap();
    let spent = begin.elapsed();
    let report: Report = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)));
    assert!(spent < Duration::from_secs(12), "{spent:?}");
    let left: Vec<_> = report.results.iter().filter(|m| m.estimate.not_measured == Some(NotMeasured::OutOfTime)).collect();
    assert!(!left.is_empty() && report.incomplete == Some(Incomplete::OutOfTime), "{:?}", report.incomplete);
    let health = report.health.unwrap();
    let finding = health.findings.iter().find(|f| f.code.word() == "left-out").unwrap();
    let none = left.len() == report.results.len();
    assert_eq!(finding.severity, if none { HealthStatus::CouldNotMeasure } else { HealthStatus::Unknown });
    assert_ne!(health.status, HealthStatus::Failure);
}
