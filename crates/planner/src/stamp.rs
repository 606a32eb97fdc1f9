//! Stamps: what is probed before and after a run to tell states of the machine apart.

use std::time::Duration;

use memgauge_model::experiment::{ChaseOrder, LineState, PageRequest};
use memgauge_model::plan::{BufferPlan, Handoff, KernelRow, Loader, Probe, StampPlan, Traffic};
use memgauge_model::topology::Machine;
use memgauge_model::traffic::{Mix, Width};
use memgauge_model::units::{Bytes, IdSet};

use crate::sizes::{floor_power_of_two, touchers};

/// A buffer of this many last-level caches is read from memory, and leaves nothing else in them: it is read in a circle, and no line is met again
/// while a cache may hold it.
const CACHES_TIMES: u64 = 2;
/// The smallest of these buffers; covers machines that state no caches.
const LEAST: u64 = 64 << 20;
/// The buffer of the chase over memory: before each round all caches are filled with the other buffer.
const CHASED: u64 = 16 << 20;
/// The largest of them. Touching and reading more takes longer than a stamp may: machines with larger caches have no stamps.
const MOST: u64 = 256 << 20;
/// No more than this part of the memory that may be taken is used, by all buffers of a node together.
const ONE_IN: u64 = 4;
/// Smaller buffers would measure caches, so that machines without room for these have no stamp.
const USEFUL: u64 = 16 << 20;
/// The cache's buffer is this many times the cache before it. A chase visits every second line.
const BEFORE_TIMES: u64 = 8;
/// The lines that change hands at a time: few, so that a round has many turns.
const HANDOFF_WINDOW: u64 = 64 << 10;
/// The buffer of these lines. A stamp does not come to its end.
const HANDOFF_BUFFER: u64 = 8 << 20;
/// A chase is random within this window, as those of measurements are.
const WINDOW: u64 = 512 << 10;
/// Rounds. The first warms up, and the scatter of five shows a difference of 3 %.
const ROUNDS: u32 = 6;
/// Rounds of a stamp that was asked for.
const ROUNDS_ALONE: u32 = 12;
/// The longest time of a stamp in seconds.
const AT_MOST_S: f64 = 0.2;
/// The same of one that was asked for.
const AT_MOST_ALONE_S: f64 = 0.9;
/// The same on machines with many CPUs or large caches.
const AT_MOST_LARGE_S: f64 = 0.5;
/// A stamp takes no more than this part of the time of a run that must end.
const ONE_IN_TIME: f64 = 10.0;
/// Setting up takes half of this: shorter stamps would have too few rounds.
const SHORTEST_S: f64 = 0.12;
/// Starting more threads than this takes milliseconds in each burst.
const MANY_CPUS: usize = 64;

/// The stamps of runs on a machine with these kernels, which end after `within` if that is given. `None` where no CPU, too little memory or too
/// little time may be used.
pub(super) fn stamp(machine: &Machine, kernels: &[KernelRow], within: Option<Duration>) -> Option<StampPlan> {
    let topology = &machine.topology;
    let cpus = topology.one_per_core(&machine.default_cpus());
    let cpu = cpus.first()?;
    let line = topology.line().0.max(16);
    let largest = cpus.iter().filter_map(|cpu| topology.last_level_cache(cpu)).map(|cache| cache.size.0).max().unwrap_or(0);
    let home = |cpu: u32| {
        let local = topology.local_nodes(cpu).intersection(&machine.allowed.nodes);
        let own = topology.cpu(cpu).map_or(0, |c| c.node);
        local.first().or_else(|| machine.allowed.nodes.iter().min_by_key(|node| topology.distance(own, *node)))
    };
    let nodes: IdSet = cpus.iter().filter_map(home).collect();
    // Of the node that has least: one buffer on each, and on the first CPU's node those of the chases.
    let room = nodes.iter().filter_map(|node| machine.allowed.node_memory.get(&node)).map(|bytes| bytes.0 / 2).min();
    let room = room.unwrap_or(u64::MAX).min(machine.allowed.room() / (nodes.len() as u64 + 1)) / ONE_IN;
    let bytes = floor_power_of_two((CACHES_TIMES * largest).clamp(LEAST, MOST).next_power_of_two().min(room));
    // A cache that holds the buffer would be measured in place of memory.
    if bytes < USEFUL.max(largest) {
        return None;
    }
    let buffer = |bytes: u64, node: u32| BufferPlan {
        touch: topology.node(node).map(|node| touchers(machine, node)).unwrap_or_default(),
        // A pool belongs to those for whom it was made.
        leave_pools: true,
        ..BufferPlan::plain(Bytes(bytes), node, PageRequest::Auto)
    };
    let node = home(cpu)?;
    let stride = Bytes(2 * line);
    let probe = |bytes: u64| Probe { cpu, buffer: buffer(bytes, node), stride, window: Bytes(WINDOW.min(bytes)) };
    let loader = |cpu: u32| Some(Loader { cpu, buffer: BufferPlan { shared: true, ..buffer(bytes, home(cpu)?) }, own: None });
    let loaders: Vec<Loader> = cpus.iter().filter_map(loader).collect();
    let transfer = cpus.iter().nth(1).map(|holder| Handoff {
        holder,
        reader: cpu,
        state: LineState::Hitm,
        buffer: buffer(HANDOFF_BUFFER, node),
        window: Bytes(HANDOFF_WINDOW / stride.0 * stride.0),
        stride,
        order: ChaseOrder::WindowLocal,
        chase_window: None,
        hops: None,
        sharer: None,
        holder_pushes: Bytes(0),
        reader_pushes: Bytes(0),
    });
    let large = cpus.len() > MANY_CPUS || bytes > LEAST * 2;
    let usual_s = if large { AT_MOST_LARGE_S } else { AT_MOST_S };
    let at_most_s = within.map_or(usual_s, |within| usual_s.min(within.as_secs_f64() / ONE_IN_TIME));
    if at_most_s < SHORTEST_S {
        return None;
    }
    Some(StampPlan {
        memory: probe(CHASED),
        cache: cache_bytes(machine, cpu).map(probe),
        loaders,
        traffic: Traffic { kernels: widest_reads(kernels), ..Traffic::default() },
        transfer,
        rounds: ROUNDS,
        at_most_s,
    })
}

/// A stamp that was asked for: it may take longer than those of a run, and has more rounds.
pub(super) fn alone(stamp: StampPlan) -> StampPlan {
    StampPlan { rounds: ROUNDS_ALONE, at_most_s: AT_MOST_ALONE_S, ..stamp }
}

/// The needs of a stamp, for machines that have none.
pub(super) fn needs() -> String {
    format!(
        "a stamp needs a last-level cache of {} at most, and a quarter of the memory that may be taken for buffers of that size or {} on each node",
        Bytes(MOST),
        Bytes(USEFUL)
    )
}

/// Bytes of a buffer that is in a CPU's last-level cache and not in the one before it. `None` where there are no such two, or the last is not
/// large enough to tell them apart.
fn cache_bytes(machine: &Machine, cpu: u32) -> Option<u64> {
    let last = machine.topology.last_level_cache(cpu)?;
    let before = machine.topology.cpu_caches(cpu).filter(|cache| cache.level < last.level).map(|cache| cache.size.0).max()?;
    let bytes = floor_power_of_two((BEFORE_TIMES * before).min(last.size.0 / 2));
    (bytes >= 2 * before).then_some(bytes)
}

/// The widest kernel that reads sequentially: always the same one, so that stamps differ by the machine's state alone.
fn widest_reads(kernels: &[KernelRow]) -> Vec<String> {
    let reads = kernels.iter().filter(|k| k.mix == Mix::AllReads && k.form.is_plain() && k.width != Width::String);
    reads.max_by_key(|k| k.width).map(|k| k.name.clone()).into_iter().collect()
}
