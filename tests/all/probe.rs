//! Options of the chase and of transfers, with the program as a black box.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use memgauge_model::experiment::{ChaseOrder, LineState, Metric};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::units::Bytes;
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support::{alone, first_cpu, had_no_cpu_time, program, report, run, text};

fn refused(line: &str, word: &str) {
    let output = run(line);
    assert_eq!(output.status.code(), Some(64), "{line}: {}", text(&output.stderr));
    assert!(text(&output.stderr).contains(word), "{line}: {}", text(&output.stderr));
}

/// The first two CPUs that may be used. The second is `None` on a machine with one.
fn two_cpus() -> Option<(u32, u32)> {
    let allowed = report("info").machine.allowed.cpus;
    let mut cpus = allowed.iter();
    cpus.next().zip(cpus.next())
}

fn value(report: &Report, order: ChaseOrder) -> f64 {
    report.results.iter().find(|m| m.at.order == Some(order)).and_then(|m| m.estimate.value).unwrap()
}

#[test]
fn orders_are_those_asked_for() {
    let report = report("latency --order sequential,full-random --size 16M --time 20ms");
    let orders: Vec<_> = report.results.iter().map(|m| m.at.order.unwrap()).collect();
    assert_eq!(orders, [ChaseOrder::Sequential, ChaseOrder::FullRandom]);
    let (random, sequential) = (&report.results[1], &report.results[0]);
    assert!(random.evidence.prefetch.is_some() && sequential.evidence.prefetch.is_none(), "an order is no evidence for itself");
    // How far they differ is the machine's, and what else runs on it.
    assert!(value(&report, ChaseOrder::FullRandom) > 0.2 && value(&report, ChaseOrder::Sequential) > 0.01, "{:?}", report.results);
    let shown = text(&run("latency --order sequential --size 16K --time 20ms -v").stdout).to_owned();
    assert!(shown.contains("sequential: ascending") && !shown.contains("window-local"), "{shown}");
}

#[test]
fn hops_are_counted() {
    let counted = report("latency --order window-local --size 16K --hops 100000");
    let m = &counted.results[0];
    assert_eq!((m.evidence.hops, m.evidence.allocations), (Some(100_000), 12));
    // One sample an allocation; something else may take the CPU for all of a sample's time.
    assert!((1..=12).contains(&m.estimate.n), "{:?}", m.estimate);
    assert!(m.estimate.min.unwrap() > 0.2, "faster than any core: {:?}", m.estimate);
    let pass = report("latency --order full-random --size 4M --stride 256 --hops pass");
    assert_eq!(pass.results[0].evidence.hops, Some((4 << 20) / 256));
}

#[test]
fn batches_are_distributed() {
    let report = report("latency --order full-random --size 16M --time 40ms --histogram 64");
    let Measurement { distribution: Some(d), estimate, .. } = &report.results[0] else { panic!("no distribution") };
    assert_eq!(d.batch_hops, 64);
    assert_eq!(d.buckets.iter().map(|b| b.count).sum::<u64>(), d.samples);
    assert!(d.samples > 0 && d.overhead_ns > 0.0, "{} batches, {} ns", d.samples, d.overhead_ns);
    assert!(d.percentiles.is_sorted_by(|a, b| a.ns <= b.ns) && d.percentile(99.99).unwrap() <= d.max_ns, "{:?}", d.percentiles);
    // Both are of the same chase: nanoseconds a hop, and neither those of a batch nor of a window.
    let (batch, window) = (d.percentile(50.0).unwrap(), estimate.value.unwrap());
    assert!(batch < 64.0 * window && window < 64.0 * batch, "{batch} ns by batch, {window} ns by window");
    let shown = text(&run("latency --size 16K --time 20ms --histogram").stdout).to_owned();
    assert!(shown.contains("distribution of batches of 8 hops") && shown.contains("99.9 %"), "{shown}");
    let hz = report.environment.clock.as_ref().unwrap().hz;
    assert_eq!(d.by_cycles(4, hz).iter().map(|s| s.1).sum::<u64>(), d.samples);
}

#[test]
fn a_chase_beside_loaders_as_asked() {
    let Some((_, second)) = two_cpus() else { not_tested!("one CPU") };
    let line = format!("loaded --width sse2 --probe-cpu {second} --delay 0,5000 --order full-random --hops 20000 --histogram 8 --size 8M");
    let report = report(&line);
    let latencies: Vec<_> = report.results.iter().filter(|m| m.metric == Metric::Latency).collect();
    assert_eq!(latencies.len(), 2);
    for m in latencies {
        assert_eq!((m.at.cpu, m.at.order), (Some(second), Some(ChaseOrder::FullRandom)));
        assert!(!m.at.cpus.as_ref().unwrap().contains(second));
        assert!(m.estimate.value.is_some() && m.distribution.as_ref().is_some_and(|d| d.samples > 0));
        assert_eq!(m.evidence.window, Some(Bytes::mib(8)));
    }
    assert!(report.results.iter().filter(|m| m.metric == Metric::Bandwidth).all(|m| m.distribution.is_none()));
}

#[test]
fn cpus_that_touch_and_that_are_kept_awake() {
    let Some((first, second)) = two_cpus() else { not_tested!("one CPU") };
    let line = format!("latency --cpu {first} --touch-cpu {second} --keep-awake {second} --size 8M --hops 50000 --order window-local");
    let report = report(&line);
    assert!(report.complete && report.results[0].estimate.value.is_some());
    let plan = report.plan.unwrap();
    assert_eq!((plan.keep_awake.first(), plan.keep_awake_named), (Some(second), true));
    let touched = plan.steps[0].cells[0].work.buffers()[0].touch.clone();
    assert_eq!((touched.len(), touched.first()), (1, Some(second)));
}

#[test]
fn a_transfer_as_asked() {
    let Some((reader, holder)) = two_cpus() else { not_tested!("one CPU") };
    let line = format!(
        "c2c --reader {reader} --holder {holder} --state hitm --holder-pushes 256K --reader-pushes 64K --order full-random --size 1M --time 60ms"
    );
    let report = report(&line);
    assert_eq!(report.results[0].evidence.kernel, "store-then-push-then-push-then-chase");
    for m in &report.results {
        assert_eq!((m.at.cpu, m.at.holder_cpu, m.at.state), (Some(reader), Some(holder), Some(LineState::Hitm)));
        assert!(m.estimate.value.is_some_and(|ns| ns > 0.2));
        let pushes = m.evidence.pushes.unwrap();
        assert_eq!((pushes.holder, pushes.reader), (Bytes::kib(256), Bytes::kib(64)));
    }
    let matrix = self::report("c2c --node-matrix --size 1M --time 60ms");
    assert!(matrix.results.iter().all(|m| m.at.holder_node.is_some() && m.estimate.value.is_some()));
    assert!(matrix.results.iter().any(|m| m.at.state == Some(LineState::Hit)));
    let third = report_of_third();
    if let Some(third) = third {
        let shared = self::report(&format!("c2c --reader {reader} --holder {holder} --sharer {third} --size 1M --time 60ms"));
        assert!(shared.results.iter().all(|m| m.at.sharer_cpu == Some(third) && m.evidence.threads == 3));
        assert!(shared.results.iter().any(|m| m.evidence.kernel == "store-then-share-then-chase"));
    } else {
        not_tested_in_part!("the sharer needs a third CPU");
    }
}

fn report_of_third() -> Option<u32> {
    report("info").machine.allowed.cpus.iter().nth(2)
}

#[test]
fn what_cannot_be_is_wrong_usage() {
    refused("latency --histogram 3", "1, 8 or 64");
    refused("latency --hops 0", "above 0");
    refused("latency --hops 5 --time 1s", "cannot be used with");
    refused("latency --order sideways", "window-local");
    refused("latency --touch-cpu 99999", "there is no CPU 99999");
    refused("latency --keep-awake 9999", "--keep-awake: there is no CPU 9999");
    refused(&format!("latency --matrix --touch-cpu {}", first_cpu()), "one buffer");
    refused("loaded --probe-node 4444", "there is no node 4444");
    refused("loaded --start-signal a/b", "cannot name shared memory");
    refused("c2c --holder 0", "--reader");
    if let Some((a, b)) = two_cpus() {
        refused("c2c --node-matrix --node 0", "leave --node out");
        refused(&format!("c2c --reader {a} --holder {a}"), "name two CPUs");
        refused(&format!("c2c --reader {a} --holder {b} --sharer {a}"), "reads the lines");
        refused(&format!("c2c --reader {a} --holder {b} --sharer {b}"), "holds the lines");
    }
}

/// The start signal as another program sees it: the first 32 bits of the shared memory with this name.
struct Word(PathBuf);

impl Word {
    fn new(what: &str) -> (String, Self) {
        let name = format!("memgauge-{what}-{}", std::process::id());
        let word = Self(Path::new("/dev/shm").join(&name));
        (name, word)
    }
    fn read(&self) -> Option<u32> {
        let bytes = std::fs::read(&self.0).ok()?;
        Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().unwrap()))
    }
    fn write(&self, value: u32) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(&self.0).unwrap();
        file.write_all_at(&value.to_ne_bytes(), 0).unwrap();
    }
    fn wait_for(&self, wanted: Option<u32>, child: &mut Child) {
        self.wait_until(|value| value == wanted, child);
    }
    fn wait_until(&self, wanted: impl Fn(Option<u32>) -> bool, child: &mut Child) {
        let begin = Instant::now();
        while !wanted(self.read()) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", self.read());
            assert!(child.try_wait().unwrap().is_none() || wanted(self.read()), "it ended with {:?}", self.read());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn another_program_starts_each_cell() {
    let _permit = alone();
    let (name, word) = Word::new("start");
    let line = format!("bandwidth --width sse2 --mix all-reads,1:1 --size 8M --time 100ms --format json --start-signal {name}");
    let mut child = program().args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    word.wait_for(Some(0), &mut child);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(word.read(), Some(0), "it waits");
    word.write(1);
    word.wait_until(|value| value != Some(1), &mut child);
    word.wait_for(Some(3), &mut child);
    word.write(1);
    // It says 2 for as long as it measures, which nobody may see on a busy machine.
    word.wait_until(|value| value != Some(1), &mut child);
    let output = child.wait_with_output().unwrap();
    assert!(word.read().is_none(), "what was made is removed");
    if had_no_cpu_time(&output) {
        not_tested!("others had the CPUs");
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Report = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report.results.iter().filter(|m| m.estimate.value.is_some()).count(), 2);
}

#[test]
fn waiting_for_a_start_can_be_interrupted() {
    let _permit = alone();
    let (name, word) = Word::new("interrupt");
    let line = format!("bandwidth --size 8M --time 20ms --format json --start-signal {name}");
    let mut child = program().args(line.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    word.wait_for(Some(0), &mut child);
    // SAFETY: the process is our child and has not been waited for, so its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(word.read().is_none());
}
