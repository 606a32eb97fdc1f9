//! Threads whose work the user describes one by one.

use std::collections::BTreeMap;

use memgauge_model::experiment::Coordinates;
use memgauge_model::plan::{BufferPlan, Cell, Loader, Loading, OwnTraffic, Work};
use memgauge_model::spec::{BufferPlace, ThreadSpec};
use memgauge_model::units::{Bytes, IdSet};

use crate::check::{PlanError, check_cpus, check_nodes, invalid, unavailable};
use crate::context::Planner;
use crate::loaders::with_delays;
use crate::room::Reserved;
use crate::sizes::approximately;

impl Planner<'_> {
    /// The threads that the user describes, without a chase.
    pub(super) fn threads_alone(&mut self, delays: &[u32]) -> Result<Vec<Cell>, PlanError> {
        let loaders = self.threads(Reserved::Bytes(0), &IdSet::new())?;
        let at = Coordinates { cpus: Some(loaders.iter().map(|l| l.cpu).collect()), ..Default::default() };
        let traffic = loaders.first().and_then(|l| l.own.as_ref()).map(|own| own.traffic.clone()).unwrap_or_default();
        Ok(with_delays(Cell::new(at, Work::Bandwidth(Loading { loaders, traffic, delay: 0 })), delays))
    }

    /// The threads that the user describes, alongside a chase on `chaser` whose buffer is reserved.
    pub(super) fn threads(&mut self, reserved: Reserved<'_>, chaser: &IdSet) -> Result<Vec<Loader>, PlanError> {
        let mut loaders: Vec<Loader> = Vec::new();
        for thread in &self.requested.traffic.threads {
            check_cpus(&thread.cpus, self.machine)?;
            let twice: IdSet = loaders.iter().map(|l| l.cpu).chain(chaser.iter()).collect::<IdSet>().intersection(&thread.cpus);
            if !twice.is_empty() {
                return invalid(format!("CPU {twice} is given two things to do; name each CPU once"));
            }
            for cpu in thread.cpus.iter() {
                loaders.push(self.thread(thread, cpu, reserved)?);
            }
        }
        self.check_room(&loaders, reserved)?;
        Ok(loaders)
    }

    fn thread(&mut self, thread: &ThreadSpec, cpu: u32, reserved: Reserved<'_>) -> Result<Loader, PlanError> {
        let buffer = |planner: &mut Self, place: &BufferPlace| -> Result<BufferPlan, PlanError> {
            let (node, directory) = match place {
                BufferPlace::Node(node) => (check_nodes(&IdSet::one(*node), planner.machine).map(|_| *node)?, None),
                BufferPlace::Local => (planner.local_node(cpu), None),
                BufferPlace::Directory(dir) => (planner.local_node(cpu), Some(dir.as_ref())),
            };
            planner.sizes.thread_buffer(cpu, node, thread.size, directory, reserved)
        };
        let first = buffer(self, &thread.place)?;
        let second = thread.second.as_ref().map(|second| Ok((buffer(self, &second.place)?, second.percent))).transpose()?;
        if let Some((_, percent)) = second.as_ref().filter(|(_, percent)| !(1..=99).contains(percent)) {
            return invalid(format!("{percent} % of the accesses cannot go to a second buffer; give 1 to 99"));
        }
        let (second, second_percent) = second.map_or((None, 0), |(buffer, percent)| (Some(buffer), percent));
        let traffic = self.traffic_with_access(thread.mix, thread.access)?;
        Ok(Loader { cpu, buffer: first, own: Some(Box::new(OwnTraffic { traffic, delay: thread.delay, second, second_percent })) })
    }

    /// Checks that the buffers of all threads fit together beside what is reserved, on each node, in each directory and in all. Their sizes are
    /// mostly given by the user.
    fn check_room(&self, loaders: &[Loader], reserved: Reserved<'_>) -> Result<(), PlanError> {
        let allowed = &self.machine.allowed;
        let mut on_node: BTreeMap<u32, u64> = BTreeMap::new();
        let mut in_directory: BTreeMap<&str, u64> = BTreeMap::new();
        for buffer in loaders.iter().flat_map(Loader::buffers) {
            match &buffer.directory {
                Some(path) => *in_directory.entry(path).or_default() += buffer.bytes.0,
                None => buffer.nodes().iter().for_each(|node| *on_node.entry(node).or_default() += buffer.bytes_on(node)),
            }
        }
        let check = |needed: u64, room: u64, place: &str, limited_by: &str| {
            if needed <= room {
                return Ok(());
            }
            unavailable(format!(
                "the threads' buffers take {}{place} together, more than the {} that may be taken (limited by {limited_by}); give smaller sizes",
                Bytes(needed),
                approximately(room),
            ))
        };
        for (node, needed) in &on_node {
            // Pages of a pool are not part of the free memory.
            let room = allowed.node_memory.get(node).map_or(u64::MAX, |b| b.0.saturating_add(self.sizes.in_pool(*node)));
            let room = room.saturating_sub(reserved.on(*node));
            check(*needed, room, &format!(" on node {node}"), &allowed.limit_of_node(*node))?;
        }
        for dir in self.requested.traffic.thread_directories() {
            let needed = in_directory.get(dir.file.path.as_str()).copied().unwrap_or(0);
            check(needed, dir.capacity(), &format!(" in {}", dir.file.path), &dir.limited_by())?;
        }
        let pools: u64 = on_node.keys().map(|node| self.sizes.in_pool(*node)).sum();
        let room = allowed.room().saturating_sub(reserved.in_all()).saturating_add(pools);
        check(on_node.values().sum(), room, "", &allowed.memory_limited_by)
    }
}
