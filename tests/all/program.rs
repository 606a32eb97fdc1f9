//! The program as a black box: what it measures, what it refuses, how it ends.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memgauge_model::directory::FileBacking;
use memgauge_model::experiment::{ChaseOrder, Experiment, Metric};
use memgauge_model::plan::Plan;
use memgauge_model::result::{
    Absent, Health, HealthStatus, Incomplete, LimitSource, Measurement, PageKind, PlacementStatus, QualityLevel, Report, VerdictReason,
};
use memgauge_model::traffic::Rfo;
use memgauge_model::units::IdSet;
use memgauge_testing::{not_tested, not_tested_in_part};

use crate::support::watch::{HANGS, InTime, Watched};
use crate::support::{beside_another, hangup, measured, program, refused, report, run, simulated, temporary, text};

/// CPUs that this test may use.
fn allowed_cpus() -> IdSet {
    report("info").machine.allowed.cpus
}

#[test]
fn a_chase_is_one_of_dependent_loads_and_proves_its_placement() {
    let small = report("latency --size 16K --time 10ms");
    let large = report("latency --size 32M --time 20ms");
    // How many times as long memory takes, a simulated machine decides. A dependent load that is faster than this is none.
    let cache = small.results.iter().find(|m| m.at.order == Some(ChaseOrder::WindowLocal)).and_then(|m| m.estimate.min).unwrap();
    assert!(cache > 0.2, "{cache} ns for a dependent load is faster than any core");
    for m in &large.results {
        let e = &m.estimate;
        assert!(e.min <= e.value && e.value <= e.max, "{e:?}");
        // Few samples, as beside other work, have no interval.
        assert!(e.ci95_low.zip(e.ci95_high).is_none_or(|(low, high)| Some(low) <= e.value && e.value <= Some(high)), "{e:?}");
        assert_ne!(m.evidence.placement.status, PlacementStatus::Wrong);
        assert!(m.evidence.allocations >= 3, "a latency is the median over several allocations");
        let evidence = m.evidence.prefetch.unwrap();
        assert!(evidence.random_over_sequential > 0.0, "{evidence:?}");
    }
}

#[test]
fn bandwidth_counts_what_its_kernel_declares() {
    let report = simulated::report("bandwidth --peak");
    let mixes: Vec<_> = report.results.iter().filter_map(|m| m.at.mix).collect();
    assert!(mixes.len() >= 5, "{mixes:?}");
    for m in &report.results {
        let total = m.estimate.value.unwrap();
        let traffic = m.evidence.traffic.unwrap();
        assert!((traffic.app_read_gbs + traffic.app_write_gbs - total).abs() < 1e-6 * total, "{m:?}");
        let (read, written) = m.at.mix.unwrap().lines();
        assert!(
            (traffic.app_read_gbs * f64::from(written) - traffic.app_write_gbs * f64::from(read)).abs() < 1e-6 * total,
            "{:?}",
            m.at.mix
        );
        assert!(m.evidence.kernels_tried.is_empty() || m.evidence.kernels_tried.iter().any(|t| t.kernel == m.evidence.kernel));
    }
}

#[test]
fn latency_under_load_has_both_quantities_at_every_delay() {
    let report = simulated::report("loaded --delay 0,1000,20000");
    for delay in [0, 1000, 20000] {
        for metric in [Metric::Latency, Metric::Bandwidth] {
            let found = report.results.iter().filter(|m| m.at.delay_cycles == Some(delay) && m.metric == metric).count();
            assert_eq!(found, 1, "{metric:?} at {delay}");
        }
    }
    assert_eq!(report.curves.len(), 1);
}

#[test]
fn cache_to_cache_names_its_protocol() {
    if allowed_cpus().len() < 2 {
        not_tested!("one CPU");
    }
    let report = report("c2c --size 1M --time 20ms");
    let kernels: Vec<&str> = report.results.iter().map(|m| m.evidence.kernel.as_str()).collect();
    assert!(kernels.contains(&"load-then-chase") && kernels.contains(&"store-then-chase"), "{kernels:?}");
    assert!(report.results.iter().all(|m| m.estimate.value.is_some_and(|ns| ns > 0.2)));
}

/// The exit status of a verdict.
fn code_of(status: HealthStatus) -> i32 {
    match status {
        HealthStatus::Ok => 0,
        HealthStatus::Unknown | HealthStatus::Warning => 1,
        HealthStatus::Failure => 2,
        HealthStatus::Incident => 3,
        HealthStatus::CouldNotMeasure => 4,
    }
}

#[test]
fn a_health_check_gives_a_verdict_and_an_exit_status() {
    let folder = temporary("quick");
    let (saved, rules) = (folder.join("quick.json"), folder.join("rules.toml"));
    let quick = |more: &str| {
        let output = simulated::run(&format!("memgauge quick --format json {more}"));
        let report: Report = serde_json::from_slice(&output.stdout).unwrap();
        let health = report.health.clone().unwrap();
        assert_eq!(output.status.code(), Some(code_of(health.status)), "{health:?}");
        (report, health)
    };
    let (report, _) = quick(&format!("-o {}", saved.display()));
    assert!(report.results.iter().any(|m| m.experiment == Experiment::IdleLatency));
    assert!(report.results.iter().any(|m| m.experiment == Experiment::BandwidthMatrix));
    let (_, again) = quick(&format!("--against {}", saved.display()));
    assert!(again.status == HealthStatus::Ok && again.compared_with.iter().any(|with| with == "baseline"), "{again:?}");
    // Against a time when node 1 had twice its bandwidth, and against one when everything was slower.
    let against = |name: &str, change: &dyn Fn(&Measurement) -> f64| {
        let mut before = report.clone();
        before.health = None;
        for m in &mut before.results {
            let factor = change(m);
            for value in [&mut m.estimate.value, &mut m.estimate.ci95_low, &mut m.estimate.ci95_high] {
                *value = value.map(|v| v * factor);
            }
        }
        let path = folder.join(name);
        std::fs::write(&path, serde_json::to_string(&before).unwrap()).unwrap();
        quick(&format!("--against {}", path.display()))
    };
    let worse = |health: &Health| -> Vec<String> {
        health.findings.iter().filter(|f| f.code.word() == "worse-than-baseline").map(|f| f.message.clone()).collect()
    };
    let bandwidth_of_node_1 = |m: &Measurement| m.at.memory_node() == Some(1) && m.metric == Metric::Bandwidth;
    let (slow, found) = against("faster.json", &|m| if bandwidth_of_node_1(m) { 2.0 } else { 1.0 });
    let messages = worse(&found);
    assert!(!messages.is_empty() && messages.iter().all(|message| message.contains("node 1")), "{found:?}");
    let repeated = slow.repeats.iter().filter(|m| bandwidth_of_node_1(m)).count();
    assert!(found.measured_again > 0 && repeated >= 2, "what looks wrong is measured twice more: {found:?}");
    let (_, found) = against("slower.json", &|m| if m.metric == Metric::Bandwidth { 0.5 } else { 2.0 });
    assert!(worse(&found).is_empty() && found.compared_with.iter().any(|with| with == "baseline"), "{found:?}");
    // No memory has a bandwidth of 10^9 GB/s, so the rule is broken three times out of three.
    std::fs::write(&rules, "[[rule]]\nexperiment = \"bandwidth\"\nmix = \"all-reads\"\nwarn-below = 1e9\n").unwrap();
    let (report, broken) = quick(&format!("--rules {}", rules.display()));
    let found = broken.findings.iter().any(|f| f.code.word() == "rule-broken" && f.severity >= HealthStatus::Warning);
    let reads = report.repeats.iter().filter(|m| m.at.mix.is_some_and(|mix| mix.lines().1 == 0));
    assert!(found && reads.count() >= 2, "what looks wrong is measured twice more: {broken:?}");

    std::fs::write(&rules, "[[rule]]\nexperiment = \"bandwidth\"\nbelow = 3\n").unwrap();
    assert!(refused(&format!("quick --rules {}", rules.display()), 64).contains("rules.toml"));
    assert!(refused("quick --against /nonexistent.json", 64).contains("/nonexistent.json"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_limit_given_by_hand_is_what_bandwidth_is_judged_by() {
    let report = simulated::report("bandwidth --mix all-reads --limit 100000");
    let verdict = &report.results[0].verdict;
    assert_eq!((verdict.limit, verdict.limit_source), (Some(100_000.0), Some(LimitSource::User)), "{verdict:?}");
    assert_eq!(verdict.reason, VerdictReason::Below70Percent, "{verdict:?}");
    assert!(report.plan.unwrap().peak_gbs == Some(100_000.0));
}

#[test]
fn what_plain_stores_read_is_found_for_each_cell() {
    let report = simulated::report("bandwidth --mix 1:1,2:1");
    assert!(report.environment.stores_read.iter().any(|found| found.rfo != Rfo::Unknown));
    assert_eq!(report.environment.stores_read.len(), report.results.len());
    for (m, found) in report.results.iter().zip(&report.environment.stores_read) {
        assert_eq!((Some(found.mix), Some(&found.cpus)), (m.at.mix, m.at.cpus.as_ref()));
        assert_eq!(found.kernels[0], m.evidence.kernel);
        let traffic = m.evidence.traffic.unwrap();
        let (value, bus) = (m.estimate.value.unwrap(), traffic.bus_estimate_gbs);
        let expected = match found.rfo {
            Rfo::Yes => Some(value + traffic.app_write_gbs),
            Rfo::No => Some(value),
            Rfo::Unknown => None,
        };
        assert_eq!((traffic.rfo, traffic.rfo_reason), (found.rfo, Some(found.reason)));
        assert!(bus.zip(expected).is_none_or(|(a, b)| (a - b).abs() < 1e-6 * b) && bus.is_some() == expected.is_some(), "{traffic:?}");
    }
}

#[test]
fn info_describes_the_machine_and_measures_nothing() {
    let report = report("info");
    assert!(!report.machine.topology.cpus.is_empty());
    assert!(report.results.is_empty() && report.plan.is_none());
    assert!(text(&run("info").stdout).lines().count() > 5);
}

#[test]
fn values_and_gauges_are_formats_like_others() {
    let folder = temporary("data");
    let saved = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/two-nodes.json");
    for (ending, format, begins) in [("csv", "csv", "run_id,host,started,"), ("prom", "openmetrics", "# HELP memgauge_run_info ")] {
        let file = folder.join(format!("x.{ending}"));
        // node_exporter runs as another user.
        let line = format!("umask 022; exec {} render {saved} -q -o {}", env!("CARGO_BIN_EXE_memgauge"), file.display());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written.starts_with(begins), "{}", &written[..100]);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644, "{ending}");
        let printed = program().args(["render", saved, "--format", format]).output().unwrap();
        assert_eq!(text(&printed.stdout), written);
        // What a plan has is no value.
        assert!(refused(&format!("latency --plan --format {format}"), 64).contains("a plan has no values yet"));
        assert!(refused(&format!("latency --plan -o {}", file.display()), 64).contains("a plan is text or JSON"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_saved_result_renders_again() {
    let folder = temporary("render");
    let file = folder.join("a.json");
    let output = measured(program().args(["latency", "--size", "16K", "--time", "5ms", "-o"]).arg(&file));
    assert!(output.status.success());
    let again = program().arg("render").arg(&file).output().unwrap();
    assert_eq!(text(&again.stdout), text(&output.stdout));
    let piped = program().args(["render", "-"]).stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
    assert_eq!(piped.stdout, again.stdout);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_does_not_exist_is_named() {
    assert!(refused("latency --cpu 9999", 64).contains("there is no CPU 9999; online are"));
    assert!(refused("latency --cpu 99999", 64).contains("of numbers below 65536"));
    assert!(refused("latency --node 77", 64).contains("there is no node 77"));
    assert!(refused("render /nonexistent.json", 64).contains("/nonexistent.json"));
    assert!(refused("latency -o /nonexistent/a.json", 64).contains("/nonexistent/a.json"));
    assert!(refused("latency -o /tmp/a.xyz", 64).contains("ending"));
    assert!(refused("--plan --machine /nonexistent", 4).contains("/nonexistent"));
    assert!(refused("latency --size 900T", 4).contains("may be taken"));
}

#[test]
fn a_report_names_its_run_and_sums_it_up() {
    let line = "bandwidth --width sse2 --mix all-reads --size 4M --time 5ms --label rack=B12";
    let short = report(&format!("{line} --no-host-identity"));
    assert_eq!((short.run.labels["rack"].as_str(), &short.run.host, short.run.id.len()), ("B12", &None, 36));
    let summary = short.summary.as_ref().unwrap();
    // Where other processes leave the CPUs too little time, the value is no headline.
    let unreliable = short.results[0].quality.level == QualityLevel::Unreliable;
    assert_eq!(summary.peak_read_gbs.value, short.results[0].estimate.value.filter(|_| !unreliable));
    assert_eq!(summary.idle_latency_local_ns.absent, Some(Absent::NotPlanned));
    assert!(short.measurements().all(|m| m.evidence.kernels_tried.is_empty()));
    let named = report("latency --order window-local --size 1M --time 5ms");
    assert!(named.run.host.is_some() && named.run.id != short.run.id);
    // Beside other work trials may have no clean burst; the model has.
    let verbose = simulated::report("bandwidth --mix all-reads --verbose");
    assert!(verbose.measurements().any(|m| !m.evidence.kernels_tried.is_empty()));
}

#[test]
fn a_file_that_is_no_result_is_refused() {
    let folder = temporary("no-result");
    for (name, content, word) in [
        ("a.json", "hello", "not JSON"),
        ("b.json", "{}", "no result of memgauge"),
        ("c.json", "{\"schema_version\": 99}", "schema version 99"),
        ("d.json", "{\"schema_version\": 1}", "measure again"),
        ("e.json", "{\"schema_version\": 2}", "damaged"),
    ] {
        let file = folder.join(name);
        std::fs::write(&file, content).unwrap();
        let message = refused(&format!("render {}", file.display()), 64);
        assert!(message.contains(word), "{message}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_huge_page_pool_that_is_empty_is_refused_with_advice() {
    let pools = report("info").machine.topology.nodes.into_iter().flat_map(|n| n.pools);
    if pools.into_iter().any(|p| p.page.0 == 1 << 30 && p.free > 0) {
        not_tested!("there is a pool of 1 GiB pages");
    }
    for line in ["latency --pages 1g --time 100ms", "--pages 1g --plan", "stream --pages 1g"] {
        let output = run(line);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(4), 0), "{line}");
        let said = text(&output.stderr);
        assert!(said.lines().count() == 1 && said.contains("1 GiB pages") && said.contains("or use --pages auto"), "{line}: {said}");
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let _permit = beside_another();
    for (signal, name) in [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")] {
        let mut command = program();
        command.args(["bandwidth", "--mix", "all-reads,1:1", "--size", "16M", "--time", "60s", "--format", "json"]);
        hangup(&mut command, false);
        let mut run = Watched::start(&mut command);
        assert!(run.until_it_measures(3), "it ended by itself: {}", text(&run.end().output.stderr));
        run.signal(signal);
        let ended = run.end();
        assert_eq!(ended.output.status.code(), Some(130), "{signal}");
        let late = ended.within(Duration::from_secs(3));
        assert!(!matches!(late, InTime::No(_)), "it ends after the burst in progress: {late:?}");
        let report: Report = serde_json::from_slice(&ended.output.stdout).unwrap();
        assert!(!report.complete);
        assert_eq!(report.incomplete, Some(Incomplete::Signal { name: name.into() }));
        assert_eq!(report.results.len(), 2, "the cell that was not reached is there, without a value");
        assert!(report.results[1].estimate.value.is_none());
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = program().args(["info"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(err, "");
}

#[test]
fn a_reader_that_goes_away_changes_no_status() {
    let folder = temporary("no-reader");
    let rules = folder.join("rules.toml");
    std::fs::write(&rules, "[[rule]]\nexperiment = \"bandwidth\"\nmix = \"all-reads\"\nwarn-below = 1e9\n").unwrap();
    let (rules, saved) = (rules.to_str().unwrap(), folder.join("quick.json"));
    let code = |line: &[&str]| {
        let _permit = beside_another();
        let mut child = program().args(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(!text(&output.stderr).to_lowercase().contains("pipe"), "{}", text(&output.stderr));
        output.status.code()
    };
    assert!([Some(0), Some(4)].contains(&code(&["latency", "--size", "16K", "--time", "5ms"])), "4 is that others had the CPU");
    // No memory has a bandwidth of 10^9 GB/s. On a machine that is too busy to be judged, the verdict says that instead.
    let verdict = code(&["quick", "--within", "1s", "--size", "4M", "--rules", rules, "-o", saved.to_str().unwrap()]);
    let saved: Report = serde_json::from_slice(&std::fs::read(&saved).unwrap()).unwrap();
    assert_eq!(verdict, Some(code_of(saved.health.unwrap().status)));
    assert_ne!(verdict, Some(0));
    let pools = report("info").machine.topology.nodes.into_iter().flat_map(|n| n.pools);
    if !pools.into_iter().any(|p| p.page.0 == 1 << 30 && p.free > 0) {
        assert_eq!(code(&["latency", "--pages", "1g", "--time", "100ms"]), Some(4), "nothing was measured");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn no_colour_when_not_a_terminal() {
    assert!(!run("info").stdout.contains(&0x1b));
}

#[test]
fn quiet_prints_one_line_beside_the_file() {
    let folder = temporary("quiet");
    let file = folder.join("a.txt");
    let output = measured(program().args(["latency", "--size", "16K", "--time", "5ms", "-q", "-o"]).arg(&file));
    let line = text(&output.stdout);
    assert!(output.status.success() && output.stderr.is_empty() && line.lines().count() == 1 && line.contains(" ns"), "{line}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("ns"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Unpacks every recorded machine that `MEMGAUGE_MACHINES` names; the archives' names stay with their folders.
fn recorded_machines() -> Vec<(String, PathBuf)> {
    let Some(folder) = std::env::var_os("MEMGAUGE_MACHINES") else { return Vec::new() };
    let mut machines = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let archive = entry.unwrap().path();
        let name = archive.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".tar.bz2") else { continue };
        let to = temporary(stem);
        let status = Command::new("tar")
            .args(["-xjf"])
            .arg(&archive)
            .arg("-C")
            .arg(&to)
            .args(["--wildcards", "*/sys/devices/system", "*/proc"])
            .status();
        assert!(status.unwrap().success(), "{name}");
        let root = std::fs::read_dir(&to).unwrap().next().unwrap().unwrap().path();
        machines.push((stem.to_owned(), root));
    }
    assert!(!machines.is_empty(), "MEMGAUGE_MACHINES names a folder of *.tar.bz2");
    machines
}

#[test]
fn plans_for_recorded_machines_are_sane() {
    let machines = recorded_machines();
    if machines.is_empty() {
        not_tested!("MEMGAUGE_MACHINES is not set");
    }
    for (name, root) in machines {
        let info: Report =
            serde_json::from_slice(&program().args(["info", "--format", "json", "--machine"]).arg(&root).output().unwrap().stdout).unwrap();
        let machine = info.machine;
        let output = program().args(["--plan", "--format", "json", "--machine"]).arg(&root).output().unwrap();
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let plan: Plan = serde_json::from_slice(&output.stdout).unwrap();
        assert!(plan.estimated_s > 0.0);
        let (allowed, nodes) = (&machine.allowed.cpus, &machine.allowed.nodes);
        let rows: IdSet = allowed.iter().filter_map(|c| machine.topology.cpu(c)).map(|c| c.node).collect();
        for step in &plan.steps {
            for cell in &step.cells {
                let (cpus, buffers) = (cell.work.cpus(), cell.work.buffers());
                assert!(cpus.is_subset(allowed), "{name}: {} plans CPUs {cpus} of {allowed}", step.title);
                assert!(buffers.iter().all(|b| nodes.contains(b.node) && b.touch.is_subset(allowed)), "{name}: {}", step.title);
                let total: u64 = buffers.iter().map(|b| b.bytes.0).sum();
                assert!(total <= machine.allowed.room(), "{name}: {} takes {total} bytes", step.title);
            }
        }
        let matrix = plan.steps.iter().find(|s| s.experiment == Experiment::IdleLatency).unwrap();
        let mut cells: Vec<_> =
            matrix.cells.iter().filter(|c| !c.repeat).map(|c| (c.at.cpu_node.unwrap(), c.at.memory_node().unwrap())).collect();
        cells.sort_unstable();
        let expected: Vec<_> = rows.iter().flat_map(|r| nodes.iter().map(move |n| (r, n))).collect();
        assert_eq!(cells, expected, "{name}: a row for each node with CPUs, a column for each with memory");
        std::fs::remove_dir_all(root.parent().unwrap()).unwrap();
    }
}

#[test]
fn a_plan_says_what_and_how_long_and_measures_nothing() {
    let _permit = beside_another();
    let ended = Watched::start(program().arg("--plan")).end();
    let (output, late) = (&ended.output, ended.within(Duration::from_secs(15)));
    assert!(output.status.success());
    assert!(!matches!(late, InTime::No(_)), "a suite takes longer: {late:?}");
    assert!(text(&output.stdout).contains("Idle latency"));
}

#[test]
fn a_plan_is_written_to_files() {
    let folder = temporary("plan");
    let (json, plain) = (folder.join("plan.json"), folder.join("plan.txt"));
    let line = format!("latency --size 16K --plan -q -o {} -o {}", json.display(), plain.display());
    let output = run(&line);
    assert!(output.status.success() && text(&output.stdout).lines().count() == 1, "{}", text(&output.stdout));
    let plan: Plan = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(plan.steps[0].experiment, Experiment::IdleLatency);
    assert!(std::fs::read_to_string(&plain).unwrap().contains("Idle latency"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "no temporary file is left");
    // Without --quiet also on standard output.
    let shown = run(&format!("latency --size 16K --plan -o {}", plain.display()));
    assert_eq!(text(&shown.stdout), std::fs::read_to_string(&plain).unwrap());
    assert!(refused(&format!("--plan -o {}", folder.join("plan.svg").display()), 64).contains("text or JSON"));
    assert!(refused("--plan -o /nonexistent/plan.json", 64).contains("/nonexistent/plan.json"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A directory for files as buffers, on the disk of the build or on a tmpfs.
fn memory_dirs(name: &str) -> Vec<PathBuf> {
    let shm = PathBuf::from(format!("/dev/shm/memgauge-{name}-{}", std::process::id()));
    let mut folders = vec![temporary(name)];
    match std::fs::create_dir(&shm) {
        Ok(()) => folders.push(shm),
        Err(e) => not_tested_in_part!("/dev/shm: {e}"),
    }
    folders
}

#[test]
fn buffers_from_files_say_what_they_are_and_leave_nothing() {
    for folder in memory_dirs("files") {
        let path = folder.canonicalize().unwrap().to_str().unwrap().to_owned();
        let mut lines = vec!["latency --order window-local --size 1M --time 5ms", "bandwidth --width sse2 --mix 1:1 --size 1M --time 5ms"];
        if allowed_cpus().len() > 1 {
            lines.push("loaded --width sse2 --delay 1000 --size 1M --time 5ms");
        }
        for line in lines {
            let report = report(&format!("{line} --memory-dir {path}"));
            assert!(!report.results.is_empty());
            for m in &report.results {
                assert!(m.estimate.value.is_some(), "{m:?}");
                assert_eq!(m.at.memory_dir.as_ref(), Some(&path));
                let file = m.evidence.file.as_ref().unwrap();
                assert_eq!(file.path, path);
                assert_eq!(file.map_sync, file.backing == FileBacking::Dax, "MAP_SYNC and DAX go together");
                let kind = if file.backing == FileBacking::Dax { PageKind::Dax } else { PageKind::File };
                assert_eq!(m.evidence.pages.obtained, Some(kind));
                assert_ne!(m.evidence.placement.status, PlacementStatus::Wrong, "{:?}", m.evidence.placement);
            }
            let plan = report.plan.unwrap();
            assert_eq!(plan.directories.iter().map(|d| &d.file.path).collect::<Vec<_>>(), [&path]);
            let noted = report.notes.iter().any(|n| n.code.word().starts_with("memory-dir-"));
            assert!(noted || plan.directories[0].is_dax(), "{:?}", report.notes);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        }
        std::fs::remove_dir(folder).unwrap();
    }
}

#[test]
fn a_killed_run_leaves_no_file() {
    let _permit = beside_another();
    for folder in memory_dirs("killed") {
        let mut child = program()
            .args(["bandwidth", "--size", "16M", "--time", "30s", "--quiet", "--memory-dir"])
            .arg(&folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // During the run, a file of that directory is mapped, and has no name.
        let maps = PathBuf::from(format!("/proc/{}/maps", child.id()));
        let mapped = || std::fs::read_to_string(&maps).unwrap().lines().any(|l| l.contains(folder.to_str().unwrap()));
        let begin = Instant::now();
        while !mapped() {
            assert!(begin.elapsed() < HANGS, "no file is mapped: {}", std::fs::read_to_string(&maps).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir(folder).unwrap();
    }
}

#[test]
fn directories_that_cannot_be_memory_are_refused() {
    let folder = temporary("no-memory");
    let file = folder.join("file");
    std::fs::write(&file, "").unwrap();
    let with = |path: &Path| format!("latency --time 20ms --memory-dir {}", path.display());
    assert!(refused(&with(&folder.join("absent")), 64).contains("there is no such directory"));
    assert!(refused(&with(&file), 64).contains("it is not a directory"));
    assert!(refused(&with(Path::new("/proc/self")), 4).contains("no file can be created there"));
    assert!(refused(&format!("{} --pages 2m", with(&folder)), 64).contains("--pages 2m does not go with --memory-dir"));
    assert!(refused(&format!("{} --plan --machine /", with(&folder)), 64).contains("cannot be used with"));
    assert!(refused(&format!("{} --size 900T", with(&folder)), 4).contains("may be taken"));
    assert!(refused("c2c --memory-dir /dev/shm", 64).contains("unexpected argument"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn traffic_of_other_forms_is_named_by_its_kernel() {
    for (options, kernel, passes) in [
        ("--access random --random-window 1M --mix 2:1", "-random", false),
        ("--line-stride 256", "-strided", false),
        ("--line part --mix 1:1", "-part", false),
        ("--line check", "xor", true),
        ("--shared-buffer", "load-", false),
    ] {
        let report = report(&format!("bandwidth {options} --width sse2 --size 1M --time 5ms"));
        let [m] = &report.results[..] else { panic!("{options}: one result expected") };
        assert!(m.evidence.kernel.contains(kernel), "{options}: {}", m.evidence.kernel);
        assert!(m.estimate.value.is_some_and(|gbs| gbs > 0.01), "{options}: {:?}", m.estimate);
        assert_eq!(m.evidence.gbs_by_cpu.len(), m.evidence.threads as usize, "{options}");
        let buffers = if options == "--shared-buffer" { 1 } else { m.evidence.threads };
        assert_eq!(m.evidence.buffer.0, u64::from(buffers) << 20, "{options}");
        assert_eq!(m.evidence.checksums.is_some_and(|i| i.passes > 0 && i.mismatches == 0), passes, "{options}");
    }
    assert!(refused("bandwidth --line check --mix 1:1", 64).contains("nobody changes"));
    assert!(refused("bandwidth --contents /does/not/exist", 64).contains("/does/not/exist"));
}

#[test]
fn a_delay_bounds_the_bandwidth() {
    let report = report(&format!("bandwidth --cpu {} --width sse2 --delay 0,2000 --size 4M --time 5ms", allowed_cpus().first().unwrap()));
    let gbs = |delay| report.results.iter().find(|m| m.at.delay_cycles == Some(delay)).and_then(|m| m.estimate.value).unwrap();
    // Four lines every 2,000 cycles at 1 to 6 GHz are 0.13 to 0.77 GB/s. Less is left where others have the CPU.
    assert!(gbs(2000) < 0.8 && gbs(0) > 0.0, "{} {}", gbs(0), gbs(2000));
}

#[test]
fn a_search_shows_the_highest_of_each_mix() {
    let output = simulated::run("memgauge bandwidth --search --mix all-reads");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("Highest bandwidth by mix") && shown.matches("all-reads").count() == 1, "{shown}");
}

#[test]
fn a_file_says_what_each_cpu_does() {
    let cpus = allowed_cpus();
    let first = cpus.first().unwrap();
    let folder = temporary("threads");
    let file = folder.join("plan.toml");
    let thread = format!(
        "[[threads]]\ncpus = {first}\nmix = '1:1'\nsize = '4M'\ndelay = 100\nsecond = {{ directory = '/dev/shm', percent = 25 }}\n"
    );
    std::fs::write(&file, &thread).unwrap();
    let report = report(&format!("run {} --time 20ms", file.display()));
    let [m] = &report.results[..] else { panic!("one result expected") };
    assert!(m.estimate.value.is_some_and(|gbs| gbs > 0.01) && m.evidence.buffer.0 == 8 << 20, "{m:?}");
    assert!(m.at.mix.is_none() && m.at.cpus == Some(IdSet::one(first)), "{:?}", m.at);
    std::fs::write(&file, thread.replace("mix", "mux")).unwrap();
    assert!(refused(&format!("run {}", file.display()), 64).contains("unknown field `mux`"));
    std::fs::remove_dir_all(&folder).unwrap();
}
