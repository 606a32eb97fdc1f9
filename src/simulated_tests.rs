//! The program on simulated machines: plans, sampling, statistics, conclusions and renderers are the program's own, and a model answers
//! instead of threads.

mod advice;
mod axes;
mod causes;
mod compare;
mod disturbed;
mod history;
mod hops;
mod residency;
mod siblings;
mod state;
mod tiers;
mod turbo;
mod unmeasured;
mod watch;

use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use memgauge_analysis::conclusions::findings::Baselines;
use memgauge_engine::{BurstRates, ChaseWork, LoadWork, Observer, RunContext, SimulatedMachine, TransferWork};
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::{ChaseOrder, Coordinates, Metric};
use memgauge_model::plan::{Cell, KernelRow, Step};
use memgauge_model::result::{Finding, HealthStatus, Incomplete, QualityReason, Report};
use memgauge_model::spec::{BandwidthShape, LatencyShape, Spec, SweepShape, Task, TransferShape};
use memgauge_model::topology::Machine;
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::clock::Clock;
use memgauge_render::{Appearance, Document, Format};
use memgauge_simulation::{FAULTS, Fault, Model, Noise, Random, SERVICE, Shape, add_far_node};

use crate::commands::quick::{self, Deadlines};
use crate::host::HostIdentity;
use crate::progress::TimeLeft;
use crate::report;
use crate::runner::Runner;
use crate::signals::Stop;

static CLOCK: LazyLock<Clock> = LazyLock::new(|| Clock::calibrate(Path::new("/")));

/// No folder: nothing of the machine that runs the tests is read.
const ROOT: &str = "/a simulated machine has no files";

/// At most two kernels of each kind, so that trials are short.
fn kernels() -> Vec<KernelRow> {
    let mut kept: Vec<KernelRow> = Vec::new();
    for row in memgauge_kernels::rows() {
        if kept.iter().filter(|k| k.mix == row.mix && k.form == row.form).count() < 2 {
            kept.push(row);
        }
    }
    kept
}

/// What the program reports of a simulated machine.
fn run(spec: &Spec, machine: &Machine, model: &dyn SimulatedMachine, baseline: Option<&Report>) -> Report {
    run_beside(spec, machine, model, Baselines { baseline, ..Baselines::default() })
}

/// The same, compared with any references.
fn run_beside(spec: &Spec, machine: &Machine, model: &dyn SimulatedMachine, references: Baselines<'_>) -> Report {
    let root = Path::new(ROOT);
    let plan = memgauge_planner::plan(spec, machine, &kernels()).unwrap();
    let stop = Stop::raised(None);
    let mut context = RunContext::new(machine, *CLOCK, root.into(), stop.flag()).simulated(model);
    let deadlines = matches!(spec.task, Task::Quick(_)).then(|| Deadlines::begin(context.now(), spec.within));
    context.deadline = deadlines.map(|d| d.end(0)).or_else(|| spec.within.map(|within| context.now() + within));
    let mut report = report::blank(machine.clone(), root, &HostIdentity::withheld());
    report.environment.root = true;
    let mut runner = Runner::begin(context, &stop, true);
    runner.stamp(&plan, None, &mut report);
    runner.measure(&plan, None, &mut report);
    if deadlines.is_none() {
        runner.stamp(&plan, None, &mut report);
    }
    report.plan = Some(plan);
    runner.conclude(&mut report);
    report.remove_trials();
    if let Some(deadlines) = deadlines {
        quick::confirm(&mut report, references, &mut runner, deadlines);
    }
    report
}

/// What the program says how long a run still takes, and when: in seconds of the model's time.
struct Predictions<'a> {
    context: &'a RunContext<'a>,
    begin: Instant,
    time: TimeLeft,
    made: Vec<(f64, f64)>,
}

impl Predictions<'_> {
    fn now_s(&self) -> f64 {
        (self.context.now() - self.begin).as_secs_f64()
    }

    fn note(&mut self) {
        self.made.push((self.now_s(), self.time.left_s(self.now_s())));
    }
}

impl Observer for Predictions<'_> {
    fn cell(&mut self, step: &Step, _: &Cell) {
        self.time.begin_cell(self.now_s(), step);
        self.note();
    }

    fn progress(&mut self, share: f64) {
        self.time.progress(share);
        self.note();
    }
}

/// The mean over a run of how far the time left was off, as a share of the run's time.
fn error_of_time_left(spec: &Spec, machine: &Machine, model: &Model) -> f64 {
    let plan = memgauge_planner::plan(spec, machine, &kernels()).unwrap();
    let stop = Stop::raised(None);
    let context = RunContext::new(machine, *CLOCK, ROOT.into(), stop.flag()).simulated(model);
    let mut predictions = Predictions { context: &context, begin: context.now(), time: TimeLeft::new(&plan), made: Vec::new() };
    predictions.note();
    memgauge_engine::run(&plan, &context, &mut predictions);
    let total_s = predictions.now_s();
    // What is said stands until something else is said.
    let ends = predictions.made.iter().skip(1).map(|(now_s, _)| *now_s).chain([total_s]);
    let off = predictions.made.iter().zip(ends).map(|((from_s, left_s), to_s)| {
        let real_s = total_s - from_s.midpoint(to_s);
        (left_s - real_s).abs() * (to_s - from_s)
    });
    let error = off.sum::<f64>() / total_s / total_s;
    println!("{total_s:.1} s, planned {:.1} s: the time left was off by {:.1} % of it", plan.estimated_s, error * 100.0);
    error
}

#[test]
fn the_time_left_is_honest() {
    for (nodes, noise) in [(1, Noise::NONE), (2, Noise::NONE), (2, BUSY), (8, BUSY)] {
        let shape = Shape { packages: 2.min(nodes), nodes: nodes.div_ceil(2), ..TWO_NODES };
        let machine = shape.machine();
        // How few bursts a cell needs is not known before it, which shows in runs of few cells.
        for (task, most) in [(Task::suite(), 0.15), (Task::quick(), 0.35)] {
            print!("{nodes} nodes, {task:?}: ");
            let error = error_of_time_left(&Spec::new(task.clone()), &machine, &with_noise(&machine, noise));
            assert!(error < most, "{task:?} on {nodes} nodes: {error}");
        }
    }
}

/// So noisy that every cell needs its whole budget.
const BUSY: Noise = Noise { slow_bursts: 0.4, ..Noise::QUIET };

const TWO_NODES: Shape = Shape { packages: 2, nodes: 1, domains: 1, cores: 8, threads: 2, cache: Bytes::mib(32) };

/// Whether two numbers agree within this share.
fn close(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() < share
}

#[test]
fn the_suite_finds_what_its_model_says() {
    let machine = TWO_NODES.machine();
    let model = Model::new(&machine, None, 7);
    let report = run(&Spec::new(Task::suite()), &machine, &model, None);
    assert!(report.complete, "{:?}", report.notes);
    let summary = report.summary.as_ref().unwrap();
    let local: Vec<f64> = [0, 1].iter().map(|node| model.idle_ns(8 * node, *node).unwrap()).collect();
    let found = summary.idle_latency_local_ns.value.unwrap();
    assert!(close(found, (local[0] + local[1]) / 2.0, 0.01), "{found}, not {local:?}");
    let remote = summary.idle_latency_remote_ns.value.unwrap();
    assert!(close(remote - found, model.links[&(0, 1)].1, 0.05), "{remote} from {found}");
    let (peak, capacity) = (summary.peak_read_gbs.value.unwrap(), model.nodes.values().map(|n| n.0).sum::<f64>());
    assert!(peak < capacity * 1.01 && peak > 0.95 * capacity, "{peak} of {capacity}");
    assert!(summary.trust.missing == 0 && !report.curves.is_empty());
    let json = report.render(Format::JSON, &Appearance::default()).unwrap();
    assert_eq!(memgauge_render::read(&json).unwrap(), report, "the report survives its file");
}

#[test]
fn a_cache_that_nobody_describes_is_not_taken_for_memory() {
    // The hypervisor says 16 MiB; the processor has 320.
    let described = Shape { packages: 1, cache: Bytes::mib(16), ..TWO_NODES };
    let (machine, real) = (described.machine(), Shape { cache: Bytes::mib(320), ..described }.machine());
    let model = Model::new(&real, None, 7);
    let report = run(&Spec::new(Task::latency(LatencyShape::One)), &machine, &model, None);
    let m = report.results.iter().find(|m| m.at.order == Some(ChaseOrder::WindowLocal)).unwrap();
    let (found, memory, plateau) = (m.estimate.value.unwrap(), model.idle_ns(0, 0).unwrap(), m.evidence.plateau.unwrap());
    assert!(plateau.reached && m.evidence.buffer >= Bytes::mib(640), "{plateau:?} over {}", m.evidence.buffer);
    assert!(close(found, memory, 0.03), "{found}, not {memory}");
}

/// What a health check alarms about.
fn alarms(report: &Report) -> Vec<&Finding> {
    report.health.iter().flat_map(|h| &h.findings).filter(|f| f.severity >= HealthStatus::Warning).collect()
}

fn needs_baseline(finding: &Finding) -> bool {
    finding.code.word().contains("baseline")
}

/// Whether a health check can see a fault without an earlier result: the machine has a part that is like the faulty one and healthy, or
/// what is wrong shows by itself.
fn shows_alone(fault: &Fault, shape: &Shape) -> bool {
    match fault {
        Fault::Channel { .. } | Fault::Node { .. } => shape.packages * shape.nodes > 1,
        Fault::Link { both, .. } => !both,
        Fault::Domain { .. } | Fault::Core { .. } | Fault::PrefetchersOff { .. } => true,
        Fault::WrongNodes => false,
    }
}

/// Faults of a kind: how many there were, and how many were found.
#[derive(Default, Clone, Copy)]
struct Found {
    faults: u32,
    /// Those that show without a baseline.
    alone: u32,
    found_alone: u32,
    found: u32,
}

#[derive(Default)]
struct Tally {
    kinds: [Found; FAULTS.len()],
    healthy: u32,
    /// Alarms about healthy machines, without a baseline and with one.
    alarms: [u32; 2],
}

/// Checks random machines, each healthy, healthy against a baseline, and with a fault against a baseline.
fn tally(machines: u64, seed: u64) -> Tally {
    let mut tally = Tally::default();
    for number in 0..machines {
        let seed = seed + number;
        let mut random = Random::new(seed);
        let shape = Shape::random(&mut random);
        let machine = shape.machine();
        let spec = Spec::new(Task::quick());
        let healthy = |run: u64| Model::new(&machine, None, seed).again(seed * 10 + run);
        let baseline = run(&spec, &machine, &healthy(1), None);
        let again = run(&spec, &machine, &healthy(2), Some(&baseline));
        tally.healthy += 1;
        for (count, report) in tally.alarms.iter_mut().zip([&baseline, &again]) {
            let found = alarms(report);
            *count += u32::from(!found.is_empty());
            found.iter().for_each(|f| println!("seed {seed}: a healthy {shape:?}: {} {}", f.code.word(), f.message));
        }
        let wanted = number as usize % FAULTS.len();
        let fault = (wanted..).find_map(|kind| Fault::random(kind % FAULTS.len(), &shape, &mut random)).unwrap();
        let faulty = fault.shape(&shape).machine();
        let model = Model::new(&faulty, Some(fault), seed).again(seed * 10 + 3);
        let report = run(&spec, &faulty, &model, Some(&baseline));
        let found = alarms(&report);
        let kind = &mut tally.kinds[fault.kind()];
        let (alone, by_itself) = (shows_alone(&fault, &shape), found.iter().any(|f| !needs_baseline(f)));
        kind.faults += 1;
        kind.alone += u32::from(alone);
        kind.found_alone += u32::from(alone && by_itself);
        kind.found += u32::from(!found.is_empty());
        if found.is_empty() || (alone && !by_itself) {
            println!("seed {seed}: {fault:?} of {shape:?} not found{}", if found.is_empty() { "" } else { " without a baseline" });
        }
    }
    println!("{:<18} {:>7} {:>18} {:>18}", "fault", "faults", "found, baseline", "found alone");
    for (name, k) in FAULTS.iter().zip(&tally.kinds) {
        println!("{name:<18} {:>7} {:>18} {:>18}", k.faults, k.found, format!("{} of {}", k.found_alone, k.alone));
    }
    println!("{} healthy machines from seed {seed}: {} alarms, {} against a baseline", tally.healthy, tally.alarms[0], tally.alarms[1]);
    tally
}

/// At least 99 % of the faults that can show are found, and at most 1 % of the healthy machines cause an alarm.
fn assert_rates(tally: &Tally) {
    let sum = |part: fn(&Found) -> u32| f64::from(tally.kinds.iter().map(part).sum::<u32>());
    assert!(sum(|k| k.found) >= 0.99 * sum(|k| k.faults), "against a baseline");
    assert!(sum(|k| k.found_alone) >= 0.99 * sum(|k| k.alone), "without a baseline");
    assert!(tally.alarms.iter().all(|alarms| f64::from(*alarms) <= 0.01 * f64::from(tally.healthy)), "{:?}", tally.alarms);
}

#[test]
fn a_health_check_finds_faults_and_leaves_healthy_machines_alone() {
    assert_rates(&tally(50, 1));
}

#[test]
#[ignore = "a thousand machines take minutes: cargo test --release --lib simulated -- --ignored --nocapture"]
fn a_health_check_finds_faults_of_a_thousand_machines() {
    let tally = tally(1000, 10_000);
    assert_rates(&tally);
}

/// What a run in a process of its own took.
#[derive(Debug)]
struct Cost {
    /// The most memory that the process had, in MB.
    memory_mb: f64,
    /// Bytes of the JSON result.
    json: usize,
}

/// Names the run that the test below makes.
const RUN: &str = "MEMGAUGE_SIMULATED_RUN";

/// Machines of many CPUs and nodes: two packages of so many nodes, 16 cores on each.
fn large(nodes: u32) -> Shape {
    Shape { packages: 2, nodes: nodes / 2, domains: 1, cores: 16, threads: 1, cache: Bytes::mib(32) }
}

fn task(name: &str) -> Task {
    match name {
        "quick" => Task::quick(),
        "c2c" => Task::c2c(TransferShape::CpuMatrix),
        _ => Task::suite(),
    }
}

#[test]
#[ignore = "the tests of large machines run it in a process of its own"]
fn a_run_in_a_process_of_its_own() {
    let Ok(what) = std::env::var(RUN) else { return };
    let (name, nodes) = what.split_once(' ').unwrap();
    let machine = large(nodes.parse().unwrap()).machine();
    let report = run(&Spec::new(task(name)), &machine, &Model::new(&machine, None, 3), None);
    let json = report.render(Format::JSON, &Appearance::default()).unwrap();
    let text = String::from_utf8(
        report.render(Format::TEXT, &Appearance { width: 100, colour: false, verbose: true, ..Appearance::default() }).unwrap(),
    )
    .unwrap();
    println!("{}", text.lines().take(60).collect::<Vec<_>>().join("\n"));
    let measured = report.measured();
    drop(report);
    assert_eq!(serde_json::from_slice::<Report>(&json).unwrap().measured(), measured);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak: u64 = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    println!("{RUN} {peak} {} {measured}", json.len());
}

/// Runs a task on a large machine in a process of its own. Returns what it took, and how many numbers were measured.
fn cost(name: &str, nodes: u32) -> (Cost, usize) {
    let mut program = std::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "--nocapture", "simulated_tests::a_run_in_a_process_of_its_own"]);
    let output = program.env(RUN, format!("{name} {nodes}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find_map(|l| l.strip_prefix(RUN)).unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let numbers: Vec<usize> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    let cost = Cost { memory_mb: numbers[0] as f64 * 1024.0 / 1e6, json: numbers[1] };
    println!("{text}\n{name} on {} CPUs and {nodes} nodes: {cost:?}, {} numbers", 16 * nodes, numbers[2]);
    (cost, numbers[2])
}

/// Bytes of the result file for each pair, of which a matrix of 1,024 CPUs has 2.1 million in two states.
const BYTES_PER_PAIR: usize = 9;

#[test]
fn a_matrix_of_many_pairs_is_small() {
    let (cost, numbers) = cost("c2c", 8);
    assert_eq!(numbers, 2 * 128 * 127, "every pair in two states");
    // The machine itself and the plan take some 100 kB.
    assert!(cost.json < BYTES_PER_PAIR * numbers + 400_000, "{cost:?}");
    assert!(cost.memory_mb < 150.0, "{cost:?}");
}

/// Bytes of the result file for each number of a suite on 20 nodes, with the machine and the plan; 3.1 kB where nothing is said once.
const BYTES_PER_NUMBER: usize = 2200;

#[test]
fn a_suite_of_many_cells_says_once_what_they_have_alike() {
    let (cost, numbers) = cost("suite", 20);
    assert!(numbers > 1000 && cost.json < BYTES_PER_NUMBER * numbers, "{cost:?}");
}

#[test]
#[ignore = "takes minutes: cargo test --release --lib simulated -- --ignored --nocapture"]
fn a_machine_of_a_thousand_cpus_is_measured_in_little_memory() {
    for name in ["quick", "c2c", "suite"] {
        let (cost, _) = cost(name, 64);
        assert!(cost.memory_mb < 300.0 && cost.json < 20_000_000, "{name}: {cost:?}");
    }
}

/// A model of [`TWO_NODES`] with this noise.
fn with_noise(machine: &Machine, noise: Noise) -> Model {
    let mut model = Model::new(machine, None, 11);
    model.noise = noise;
    model
}

#[test]
fn the_knee_is_where_the_models_latency_bends() {
    let machine = TWO_NODES.machine();
    let model = with_noise(&machine, Noise::NONE);
    let report = run(&Spec::new(Task::loaded()), &machine, &model, None);
    let curve = report.curves.iter().find(|c| c.at.mix == Some(Mix::AllReads)).unwrap();
    let (unloaded, saturated, knee) = (curve.unloaded_ns.unwrap(), curve.saturated_ns.unwrap(), curve.knee.unwrap());
    assert!(close(unloaded, model.idle_ns(0, 0).unwrap(), 0.02), "{unloaded}");
    // Of W = S u / (2 (1 - u)) the point furthest below the line from nothing to the highest is where its slope is the line's.
    let used: IdSet =
        report.plan.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells).flat_map(|c| c.work.loaders()).map(|l| l.buffer.node).collect();
    let capacity: f64 = used.iter().map(|node| model.nodes[&node].0).sum();
    let bent = 1.0 - (SERVICE / 2.0 * (curve.peak_gbs.unwrap() / capacity) / (saturated - unloaded)).sqrt();
    let found = knee.bandwidth_gbs / capacity;
    assert!((found - bent).abs() < 0.1, "a knee at {found:.2} of the capacity, not {bent:.2}: {curve:?}");
    // Every point lies on the model's curve.
    for m in report
        .results
        .iter()
        .filter(|m| m.metric == Metric::Latency && m.at == Coordinates { delay_cycles: m.at.delay_cycles, ..curve.at.clone() })
    {
        let gbs = report.results.iter().find(|b| b.metric == Metric::Bandwidth && b.at == m.at).unwrap().estimate.value.unwrap();
        let load = gbs / capacity;
        let expected = unloaded + SERVICE * load / (2.0 * (1.0 - load.min(0.97)));
        assert!(load > 0.9 || close(m.estimate.value.unwrap(), expected, 0.05), "{:?} at {load}, not {expected}", m.estimate.value);
    }
}

#[test]
fn a_sweep_finds_the_models_caches() {
    let machine = TWO_NODES.machine();
    let model = with_noise(&machine, Noise::QUIET);
    let mut spec = Spec::new(Task::sweep(SweepShape::One));
    options!(&mut spec.task, Sweep).metrics = vec![Metric::Latency];
    let report = run(&spec, &machine, &model, None);
    let [curve] = &report.levels[..] else { panic!("{:?}", report.levels) };
    let levels: Vec<&str> = curve.levels.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(levels, ["L1d", "L2", "L3", "memory"]);
    let expected = model.level_ns(0).into_iter().chain(model.idle_ns(0, 0));
    for (level, ns) in curve.levels.iter().zip(expected) {
        assert!(close(level.value, ns, 0.03), "{level:?}, not {ns}");
        assert!(level.knee.as_ref().is_none_or(|k| k.agrees == Some(true)), "{level:?}");
    }
}

#[test]
fn trials_of_a_sweep_are_not_measuring() {
    let machine = TWO_NODES.machine();
    let mut spec = Spec::new(Task::sweep(SweepShape::One));
    options!(&mut spec.task, Sweep).metrics = vec![Metric::Bandwidth];
    let report = run(&spec, &machine, &with_noise(&machine, Noise::QUIET), None);
    let trials_s = report.timing.setup.unwrap().trials_s;
    // At each of four levels some kernels, in bursts of at least two windows of a millisecond.
    assert!(trials_s > 0.01, "{:?}", report.timing);
    assert!(report.timing.setup_s >= trials_s, "{:?}", report.timing);
}

#[test]
fn a_short_cell_is_preceded_by_a_short_trial() {
    let machine = TWO_NODES.machine();
    let trials_s = |budget: Duration| {
        let mut spec = Spec::new(Task::bandwidth(BandwidthShape::One));
        spec.budget = Some(budget);
        let report = run(&spec, &machine, &with_noise(&machine, Noise::NONE), None);
        assert!(report.results[0].estimate.value.is_some());
        (report.timing.setup.unwrap().trials_s, report.plan.unwrap().estimated_s)
    };
    let ((long_s, long_plan_s), (short_s, short_plan_s)) = (trials_s(Duration::from_millis(60)), trials_s(Duration::from_millis(59)));
    // Kernels that are far behind do not take part in the second and third round.
    assert!(short_s > 0.0 && short_s < 0.6 * long_s, "{short_s} and {long_s}");
    assert!(short_plan_s < long_plan_s - 0.02, "{short_plan_s} and {long_plan_s}");
}

#[test]
fn a_random_chase_in_new_memory_settles_before_it_is_measured() {
    let machine = TWO_NODES.machine();
    let timing = |task: Task, order| {
        let mut spec = Spec::new(task);
        let buffer = Some(Bytes::mib(512));
        match &mut spec.task {
            Task::Latency(latency) => (latency.orders, latency.chase.buffer) = (vec![order], buffer),
            Task::Loaded(loaded) => (loaded.order, loaded.chase.buffer, loaded.traffic.buffer) = (Some(order), buffer, buffer),
            task => {
                let sweep = options!(task, Sweep);
                (sweep.order, sweep.metrics) = (Some(order), vec![Metric::Latency]);
            }
        }
        spec.time = Some(Duration::from_millis(360));
        let report = run(&spec, &machine, &with_noise(&machine, Noise::NONE), None);
        (report.timing.setup.unwrap().warm_up_s, report.timing.measuring_s, report.plan.unwrap().estimated_s)
    };
    // 20 ms for each of six allocations, and before a curve; 40 and 80 ms for the last sizes of a sweep.
    for (task, least) in [(Task::latency(LatencyShape::One), 6.0 * 0.02), (Task::loaded(), 0.02), (Task::sweep(SweepShape::One), 0.12)] {
        let (local, random) = (timing(task.clone(), ChaseOrder::WindowLocal), timing(task.clone(), ChaseOrder::FullRandom));
        assert!(random.0 - local.0 >= least, "{task:?} {random:?} {local:?}");
        assert!((random.1 / local.1 - 1.0).abs() < 0.01 && random.2 - local.2 >= least, "{task:?} {random:?} {local:?}");
    }
}

#[test]
fn a_short_time_is_measured_in_short_windows() {
    let machine = TWO_NODES.machine();
    let measuring_s = |task: Task, ms: u64| {
        let mut spec = Spec::new(task);
        spec.time = Some(Duration::from_millis(ms));
        let report = run(&spec, &machine, &with_noise(&machine, Noise::NONE), None);
        assert!(report.results.iter().all(|m| m.estimate.value.is_some()));
        report.timing.measuring_s
    };
    // With the settling windows half as much again, or as much again.
    let bandwidth = [60, 12].map(|ms| measuring_s(Task::bandwidth(BandwidthShape::One), ms));
    assert!(bandwidth[0] > 0.06 && bandwidth[1] < 0.02, "{bandwidth:?}");
    let latency = [60, 12].map(|ms| measuring_s(Task::latency(LatencyShape::One), ms));
    assert!(latency[1] < 0.5 * latency[0], "{latency:?}");
}

#[test]
fn a_second_level_of_bursts_is_seen() {
    let machine = TWO_NODES.machine();
    let latency = |noise| {
        let mut spec = Spec::new(Task::latency(LatencyShape::One));
        spec.time = Some(Duration::from_secs(4));
        let report = run(&spec, &machine, &with_noise(&machine, noise), None);
        report.results[0].clone()
    };
    let two = latency(Noise { slow_bursts: 0.4, ..Noise::QUIET });
    let [fast, slow] = &two.estimate.modes[..] else { panic!("{:?}", two.estimate) };
    assert!(close(slow.value / fast.value, 1.2, 0.01) && slow.share > 0.2 && slow.share < 0.6, "{fast:?} {slow:?}");
    assert!(two.quality.reasons.contains(&QualityReason::SeveralModes));
    assert!(latency(Noise::QUIET).estimate.modes.is_empty());
}

#[test]
fn a_machine_that_slows_down_drifts() {
    let machine = TWO_NODES.machine();
    let bandwidth = |drift| {
        let mut spec = Spec::new(Task::bandwidth(BandwidthShape::One));
        spec.time = Some(Duration::from_secs(6));
        let report = run(&spec, &machine, &with_noise(&machine, Noise { drift, ..Noise::QUIET }), None);
        report.results[0].clone()
    };
    let slower = bandwidth(0.01);
    let change = slower.estimate.drift.unwrap().change;
    // Six bursts of a second: the last begins five seconds after the first.
    assert!((-0.06..-0.04).contains(&change), "{:?}", slower.estimate.drift);
    assert!(slower.quality.reasons.contains(&QualityReason::Drift));
    assert_eq!(bandwidth(0.0).estimate.drift, None);
}
