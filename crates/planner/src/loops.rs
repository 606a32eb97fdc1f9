//! The buffer of `stream` and `chase`, which have no plan: as large as asked for, within the limits on memory.

use memgauge_model::experiment::PageRequest;
use memgauge_model::microbench::{DEFAULT_SIZE, LoopSpec};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::topology::{Machine, PagePool};
use memgauge_model::units::Bytes;

use super::check::{PlanError, pool_too_small, unavailable};
use super::room::{pool_bytes, under_policy};
use super::sizes::{approximately, floor_power_of_two};

/// The smallest buffer that is taken in place of the default: less would measure a first-level cache, which is something else.
const SMALLEST: Bytes = Bytes::mib(1);

/// The size of a loop's buffer, and a note if it is less than the default because less memory may be taken.
///
/// # Errors
/// [`PlanError::Unavailable`] when the size asked for, or the smallest, is more than may be taken: the kernel would not refuse it, but kill
/// the process.
pub fn loop_size(spec: &LoopSpec, machine: &Machine) -> Result<(Bytes, Option<Note>), PlanError> {
    let (room, limited_by) = room(spec, machine);
    let wanted = spec.size.unwrap_or(DEFAULT_SIZE);
    check_pool(spec, machine, wanted)?;
    if wanted.0 <= room || auto_pool(spec, machine).is_some_and(|pool| wanted.0 <= pool) {
        return Ok((wanted, None));
    }
    let may_be_taken = approximately(room);
    if spec.size.is_some() || room < SMALLEST.0 {
        let wanted = spec.size.unwrap_or(SMALLEST);
        return unavailable(format!(
            "a buffer of {wanted} is more than the {may_be_taken} that may be taken (limited by {limited_by}); give a smaller size, or raise the limit"
        ));
    }
    let bytes = Bytes(floor_power_of_two(room));
    let message = format!("the buffer has {bytes} instead of {wanted}: {may_be_taken} may be taken (limited by {limited_by})");
    Ok((
        bytes,
        Some(Note::warning(NoteCode::SmallBuffer, message).advise("raise the limit, or give a size to compare with another machine")),
    ))
}

/// Checks that the pool named with `--pages` can hold the buffer.
fn check_pool(spec: &LoopSpec, machine: &Machine, wanted: Bytes) -> Result<(), PlanError> {
    let Some(page) = machine.pool_page(spec.pages) else { return Ok(()) };
    let nodes = machine.topology.nodes.iter().filter(|n| spec.node.is_none_or(|node| node == n.id));
    let pools: Vec<&PagePool> = nodes.flat_map(|node| &node.pools).filter(|pool| pool.page == page).collect();
    let sum = |count: fn(&PagePool) -> u64| pools.iter().map(|pool| count(pool)).sum();
    let pool = PagePool { page, total: sum(|pool| pool.total), free: sum(|pool| pool.free) };
    let needed = wanted.0.div_ceil(page.0);
    if needed <= pool.free {
        return Ok(());
    }
    unavailable(pool_too_small(machine, spec.node, Some(&pool).filter(|_| !pools.is_empty()), page, needed))
}

/// Free bytes of the pool that is tried first if no pages are asked for, on every node that the loop may run on.
fn auto_pool(spec: &LoopSpec, machine: &Machine) -> Option<u64> {
    let nodes = machine.topology.nodes.iter().filter(|n| spec.node.is_none_or(|node| node == n.id) && machine.allowed.nodes.contains(n.id));
    (spec.pages == PageRequest::Auto && machine.identity.system.is_linux())
        .then(|| nodes.map(|node| pool_bytes(node, PageRequest::Huge2M)).min())?
}

/// Bytes that a loop's buffer may have, and what limits them. Pages of a pool are not part of the free memory.
fn room(spec: &LoopSpec, machine: &Machine) -> (u64, String) {
    let allowed = &machine.allowed;
    let nodes = machine.topology.nodes.iter().filter(|n| spec.node.is_none_or(|node| node == n.id));
    let pools: u64 = nodes.map(|node| pool_bytes(node, spec.pages)).sum();
    let on_node = match spec.node {
        Some(node) => allowed.node_memory.get(&node).map(|room| (room.0, allowed.limit_of_node(node))),
        None => under_policy(allowed).map(|(room, by)| (room.0, by)),
    };
    let (memory, by) = on_node.filter(|(room, _)| *room < allowed.room()).unwrap_or((allowed.room(), allowed.memory_limited_by.clone()));
    (memory.saturating_add(pools), by)
}

#[cfg(test)]
mod tests {
    use memgauge_model::microbench::LoopKind;
    use memgauge_model::topology::{Allowed, Identity, Topology};
    use memgauge_model::units::IdSet;

    use super::*;

    fn size(size: Option<Bytes>, node: Option<u32>) -> Result<(Bytes, Option<Note>), PlanError> {
        let spec =
            LoopSpec { kind: LoopKind::Stream, size, cpu: None, node, pages: PageRequest::Auto, passes: 1, seed: 1, counters: false };
        let allowed = Allowed {
            memory: Some(Bytes::mib(200)),
            node_limited_by: Default::default(),
            memory_limited_by: "memory.max".into(),
            node_memory: [(0, Bytes::mib(40)), (1, Bytes::gib(1))].into(),
            cpus: IdSet::new(),
            isolated: IdSet::new(),
            nodes: "0-1".parse().unwrap(),
            cpu_quota: None,
            ..Allowed::default()
        };
        loop_size(&spec, &Machine { identity: Identity::default(), topology: Topology::default(), allowed })
    }

    #[test]
    fn the_default_shrinks_to_what_may_be_taken_and_a_size_given_is_refused() {
        let (bytes, note) = size(None, None).unwrap();
        assert_eq!(bytes, Bytes::mib(128));
        assert!(note.is_some_and(|n| n.message.to_string().contains("memory.max") && n.message.to_string().contains("200 MiB")));
        assert_eq!(size(Some(Bytes::mib(200)), None).unwrap(), (Bytes::mib(200), None));
        let refused = size(Some(Bytes::mib(201)), None).unwrap_err();
        assert!(matches!(&refused, PlanError::Unavailable(why) if why.to_string().contains("memory.max")), "{refused}");
    }

    #[test]
    fn a_node_has_a_limit_of_its_own() {
        let (bytes, note) = size(None, Some(0)).unwrap();
        assert_eq!(bytes, Bytes::mib(32));
        assert!(note.is_some_and(|n| n.message.to_string().contains("node 0")));
        assert_eq!(size(None, Some(1)).unwrap().0, Bytes::mib(128));
    }
}
