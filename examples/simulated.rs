//! The program on a machine of two packages and a node of CXL memory, for which a model answers: tests of what it prints need no such machine,
//! and no time. Under the name `mlc` it is the drop-in. `SIMULATED_MACHINE` names a result in JSON whose machine is taken instead, such as
//! `memgauge info --machine FOLDER --format json` gives of a recorded one.

use std::process::ExitCode;
use std::sync::LazyLock;

use memgauge_model::topology::Machine;
use memgauge_model::units::Bytes;
use memgauge_simulation::{Model, Shape, add_far_node};

/// A machine of the user's, or 16 CPUs and three nodes, as many as the examples of the documentation name.
static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    if let Some(file) = std::env::var_os("SIMULATED_MACHINE") {
        let json = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return memgauge_render::read(&json).unwrap_or_else(|error| panic!("{}: {error}", file.display())).machine;
    }
    let mut machine = Shape { packages: 2, nodes: 1, domains: 1, cores: 4, threads: 2, cache: Bytes::mib(16) }.machine();
    add_far_node(&mut machine);
    machine
});

/// The same in every run.
static MODEL: LazyLock<Model> = LazyLock::new(|| Model::new(&MACHINE, None, 7));

fn main() -> ExitCode {
    memgauge::main_on(memgauge::StandIn { machine: MACHINE.clone(), simulate: |context| context.simulated(&*MODEL) })
}
