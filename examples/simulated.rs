//! The program on a machine of two packages and a node of CXL memory, for which a model answers: tests of what it prints need no such machine,
//! and no time. Under the name `mlc` it is the drop-in.

use std::process::ExitCode;
use std::sync::LazyLock;

use memgauge_model::topology::Machine;
use memgauge_model::units::Bytes;
use memgauge_simulation::{Model, Shape, add_far_node};

/// 16 CPUs and three nodes, as many as the examples of the documentation name.
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let mut machine = Shape { packages: 2, nodes: 1, domains: 1, cores: 4, threads: 2, cache: Bytes::mib(16) }.machine();
    add_far_node(&mut machine);
    machine
});

/// The same in every run.
static MODEL: LazyLock<Model> = LazyLock::new(|| Model::new(&MACHINE, None, 7));

fn main() -> ExitCode {
    memgauge::main_on(memgauge::StandIn { machine: MACHINE.clone(), simulate: |context| context.simulated(&*MODEL) })
}
