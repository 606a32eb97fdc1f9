//! The cost of placements by latencies that were measured, beside the cost that the model has.

use std::collections::BTreeMap;

use memgauge_analysis::residency::{price, prices};
use memgauge_model::result::{MemorySums, PriceSource, ProcessMemory, Residency};

use super::*;

/// Placements that are compared.
const PLACEMENTS: usize = 200;
/// Machines that they are on.
const MACHINES: usize = 20;

/// A process with some memory on every node, whose threads ran on some CPUs.
fn a_process(machine: &Machine, random: &mut Random) -> ProcessMemory {
    let nodes = machine.topology.nodes.iter().map(|node| (node.id, Bytes::mib(1 + u64::from(random.pick(&[0, 64, 512, 3000])))));
    let by_node: BTreeMap<u32, Bytes> = nodes.collect();
    let cpus: Vec<u32> = machine.topology.cpus.iter().map(|cpu| cpu.id).collect();
    let cpu_s = (0..4).map(|_| (random.pick(&cpus), random.between(0.01, 0.5))).collect();
    let present = Bytes(by_node.values().map(|bytes| bytes.0).sum());
    ProcessMemory { pid: 1, memory: MemorySums { present, by_node, ..MemorySums::default() }, cpu_s, ..ProcessMemory::default() }
}

/// Nanoseconds of an access if all pages are used alike, as the model has them.
fn modelled(model: &Model, memory: &BTreeMap<u32, Bytes>, cpu_s: &[(u32, f64)]) -> f64 {
    let (bytes, ran) = (memory.values().map(|bytes| bytes.0 as f64).sum::<f64>(), cpu_s.iter().map(|(_, s)| s).sum::<f64>());
    let of = |(cpu, s): &(u32, f64)| {
        memory.iter().map(|(node, of)| s / ran * of.0 as f64 / bytes * model.idle_ns(*cpu, *node).unwrap()).sum::<f64>()
    };
    cpu_s.iter().map(of).sum()
}

#[test]
fn placements_cost_what_the_model_says() {
    let mut random = Random::new(35);
    let (mut near, mut best_near) = (0, 0);
    for trial in 0..MACHINES {
        let shape = loop {
            let shape = Shape::random(&mut random);
            if shape.packages * shape.nodes > 1 {
                break shape;
            }
        };
        let mut machine = shape.machine();
        let far = add_far_node(&mut machine);
        let mut model = Model::new(&machine, None, trial as u64);
        let (gbs, ns) = model.nodes[&0];
        model.nodes.insert(far, (gbs / 2.0, ns * random.between(1.5, 3.0)));
        model.noise = Noise { burst: 0.01, ..Noise::QUIET };
        let mut task = Task::latency(LatencyShape::Matrix);
        options!(&mut task, Latency).orders = vec![ChaseOrder::WindowLocal];
        let measured = run(&Spec::new(task), &machine, &model, None);
        let found = prices(&measured, PriceSource::Measured).unwrap();
        for _ in 0..PLACEMENTS / MACHINES {
            let process = a_process(&machine, &mut random);
            let (memory, cpu_s) = (process.memory.by_node.clone(), process.cpu_s.iter().map(|(cpu, s)| (*cpu, *s)).collect::<Vec<_>>());
            let mut residency = Residency { processes: vec![process], observed_s: 1.0, ..Residency::default() };
            price(&mut residency, &machine, Some(found.clone()));
            let cost = residency.cost.unwrap();
            let agrees = |predicted: f64, truth: f64| (predicted / truth - 1.0).abs() <= 0.05;
            near += usize::from(agrees(cost.latency_ns.value, modelled(&model, &memory, &cpu_s)));
            // Threads and pages that fit on a node are together on the one with the least latency.
            let local = machine.topology.cpus.iter().map(|cpu| model.idle_ns(cpu.id, cpu.node).unwrap()).fold(f64::INFINITY, f64::min);
            best_near += usize::from(agrees(cost.best.latency_ns.value, local));
        }
    }
    assert!(near >= PLACEMENTS * 95 / 100 && best_near >= PLACEMENTS * 99 / 100, "{near} and {best_near} of {PLACEMENTS}");
}
