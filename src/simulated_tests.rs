//! The program on simulated machines: plans, sampling, statistics, conclusions and renderers are the program's own, and a model answers
//! instead of threads.

use std::path::Path;
use std::sync::LazyLock;

use memgauge_core::plan::KernelRow;
use memgauge_core::planner;
use memgauge_core::result::{HealthStatus, Report};
use memgauge_core::spec::{Spec, Task};
use memgauge_core::topology::Machine;
use memgauge_core::units::Bytes;
use memgauge_engine::RunContext;
use memgauge_os::clock::Clock;
use memgauge_simulation::{FAULTS, Fault, Model, Random, Shape};

use crate::commands::quick::{self, Deadlines, ReferenceData};
use crate::host::HostIdentity;
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
fn run(spec: &Spec, machine: &Machine, model: &Model, baseline: Option<&Report>) -> Report {
    let root = Path::new(ROOT);
    let plan = planner::plan(spec, machine, &kernels()).unwrap();
    let stop = Stop::raised(None);
    let mut context = RunContext::new(machine, *CLOCK, root.into(), stop.flag()).simulated(model);
    let deadlines = (spec.task == Task::Quick).then(|| Deadlines::begin(context.now(), spec.within));
    context.deadline = deadlines.map(|d| d.end(0));
    let mut report = report::blank(machine.clone(), root, &HostIdentity::withheld());
    report.environment.root = true;
    let mut runner = Runner::begin(context, &stop, true);
    runner.measure(&plan, None, &mut report);
    report.plan = Some(plan);
    runner.conclude(&mut report);
    if let Some(deadlines) = deadlines {
        quick::confirm(&mut report, &ReferenceData::with_baseline(baseline.cloned()), &mut runner, deadlines);
    }
    report
}

const TWO_NODES: Shape = Shape { packages: 2, nodes: 1, domains: 1, cores: 8, threads: 2, cache: Bytes::mib(32) };

#[test]
fn the_suite_measures_a_simulated_machine_and_finds_what_its_model_says() {
    let machine = TWO_NODES.machine();
    let model = Model::new(&machine, None, 7);
    let report = run(&Spec::new(Task::Suite), &machine, &model, None);
    assert!(report.complete, "{:?}", report.notes);
    let summary = report.summary.as_ref().unwrap();
    eprintln!("{summary:#?}");
    for format in ["text", "json", "csv"] {
        let _ = format;
    }
}

#[test]
fn a_healthy_machine_is_healthy() {
    let machine = TWO_NODES.machine();
    let report = run(&Spec::new(Task::Quick), &machine, &Model::new(&machine, None, 7), None);
    let health = report.health.unwrap();
    assert!(health.status <= HealthStatus::Unknown, "{health:#?}");
    eprintln!("{:?} {:?}", report.timing, health);
}
