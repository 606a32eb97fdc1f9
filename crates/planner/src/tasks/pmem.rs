//! The suite for persistent memory: every node with CPUs and every directory, in tables that those who know mlc's scripts expect.

use std::collections::BTreeSet;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{Cell, Delays, KernelRow, Loader, Loading, Step, Traffic, Work};
use memgauge_model::spec::{PmemSpec, Spec};
use memgauge_model::traffic::{Access, Form, LineUse, Mix, PersistMethod};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words::Knob;

use crate::check::{PlanError, invalid, named};
use crate::context::Planner;
use crate::room::Reserved;
use crate::sizes::STEP;

/// The mixes of the ten runs, in the order of mlc's letters R, W6, W7, W5 and W2. W7 has one read stream in either order; two are W10.
pub const MIXES: [Mix; 5] = [Mix::AllReads, Mix::NtWrite, Mix::R2W1NtX1, Mix::R1W1, Mix::R2W1];
/// The mixes of the ramp.
const RAMP_MIXES: [Mix; 2] = [Mix::AllReads, Mix::R2W1];
/// Both orders of every run.
pub const ORDERS: [Access; 2] = [Access::Sequential, Access::Random];
/// Bytes of each CPU's buffer where there is room: what such scripts take, 400,000 KiB, as whole buffers of the planner.
const PER_CPU: Bytes = Bytes(400_000 << 10);
/// Fresh files of a chase: the fewest for which a non-parametric 95 % interval exists.
const ALLOCATIONS: u32 = 6;
/// The delays of latency under load: those of the field's script for persistent memory, which saturates with few CPUs. mlc's own list is
/// another one.
const DELAYS: [u32; 20] = [0, 50, 100, 200, 300, 400, 500, 700, 850, 1000, 1150, 1300, 1500, 1700, 2500, 3500, 5000, 20000, 40000, 80000];

/// Access sizes from a line to a page: modules read and write units of 256 bytes inside, so smaller accesses waste a part.
const BLOCKS: [Bytes; 7] = [Bytes(64), Bytes(128), Bytes(256), Bytes(512), Bytes(1024), Bytes(2048), Bytes(4096)];
/// The same for persist latency, which each method has.
const PERSISTED_BLOCKS: [Bytes; 4] = [Bytes(64), Bytes(256), Bytes(1024), Bytes(4096)];

impl Planner<'_> {
    /// The steps of each directory, one directory after the other, so that one's files do not take the other's space or time.
    pub(super) fn pmem(&mut self, request: &PmemSpec) -> Result<Vec<Step>, PlanError> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = request.directories.iter().find(|dir| !seen.insert(&dir.file.path)) {
            return invalid(format!("the directory {} is given twice; name each once", twice.file.path));
        }
        let cpus = self.measuring_cpus(request)?;
        let mut steps = Vec::new();
        for dir in &request.directories {
            let own = Spec { memory_dir: Some(dir.clone()), cpus: Some(cpus.clone()), ..self.spec.clone() };
            let mut planner = Planner::new(&own, self.requested, self.machine, self.kernels)?;
            steps.extend(planner.directory(request)?);
            self.notes.extend(planner.notes);
        }
        Ok(steps)
    }

    /// The CPUs of the nodes that were named.
    fn measuring_cpus(&self, request: &PmemSpec) -> Result<IdSet, PlanError> {
        let Some(nodes) = &request.cpu_nodes else { return Ok(self.cpus.clone()) };
        for node in nodes.iter() {
            if self.cpus_on(node).is_empty() {
                let all = self.cpu_nodes();
                return Err(named(
                    Knob::Node,
                    PlanError::Request(format!("no CPU of node {node} measures; nodes with such CPUs are {all}").into()),
                ));
            }
        }
        Ok(self.cpus.iter().filter(|cpu| nodes.contains(self.cpu_node(*cpu))).collect())
    }

    /// All that is measured of one directory.
    fn directory(&mut self, request: &PmemSpec) -> Result<Vec<Step>, PlanError> {
        let rows = self.cpu_nodes();
        let mut latencies = Vec::new();
        for row in rows.iter() {
            let Some(cpu) = self.cpus_on(row).first() else { continue };
            let home = self.local_node(cpu);
            let probe = self.probe(cpu, home)?;
            latencies.push(self.latency_cell(probe, ALLOCATIONS, vec![ChaseOrder::Sequential, ChaseOrder::WindowLocal]));
        }
        let mut steps = vec![self.step("Idle latency", Experiment::IdleLatency, latencies)];
        steps.extend(self.runs("Bandwidth by mix", Experiment::Bandwidth, &MIXES, |all| vec![all])?);
        let title = "Bandwidth by number of writers";
        steps.extend(self.of_order(Access::Sequential, title, Experiment::BandwidthRamp, &[Mix::NtWrite], writer_counts)?);
        steps.extend(self.access_sizes()?);
        steps.extend(self.persist_latencies()?);
        if request.ramp {
            steps.extend(self.runs("Bandwidth by number of CPUs", Experiment::BandwidthRamp, &RAMP_MIXES, ramp_counts)?);
        }
        if request.loaded {
            for access in ORDERS {
                steps.extend(self.loaded_rows(access)?);
            }
        }
        Ok(steps)
    }

    /// A step for each order of access, with a cell for each row, number of CPUs and mix.
    fn runs(
        &mut self,
        title: &str,
        experiment: Experiment,
        mixes: &[Mix],
        counts: impl Fn(usize) -> Vec<usize>,
    ) -> Result<Vec<Step>, PlanError> {
        let mut steps = Vec::new();
        for access in ORDERS {
            steps.extend(self.of_order(access, title, experiment, mixes, &counts)?);
        }
        Ok(steps)
    }

    fn of_order(
        &mut self,
        access: Access,
        title: &str,
        experiment: Experiment,
        mixes: &[Mix],
        counts: impl Fn(usize) -> Vec<usize>,
    ) -> Result<Option<Step>, PlanError> {
        let mut cells = Vec::new();
        for row in self.cpu_nodes().iter() {
            let order = self.machine.topology.spread(&self.cpus_on(row));
            let loaders = self.file_loaders(&order, order.len(), Reserved::Bytes(0))?;
            let mixes = self.with_kernels(mixes, access);
            // One number of CPUs after the other: what the last cell used stays for the next.
            for n in counts(order.len()) {
                for mix in &mixes {
                    cells.push(self.file_cell(row, loaders[..n].to_vec(), *mix, access)?);
                }
            }
        }
        Ok((!cells.is_empty()).then(|| self.step(&titled(title, access), experiment, cells)))
    }

    /// A bandwidth of these loaders.
    fn file_cell(&self, row: u32, loaders: Vec<Loader>, mix: Mix, access: Access) -> Result<Cell, PlanError> {
        let (node, cpus) = (loaders.first().map(|l| l.buffer.node), loaders.iter().map(|l| l.cpu).collect());
        let at = Coordinates { access: Some(access), ..self.traffic_at(Some(row), node, cpus, mix) };
        Ok(Cell::new(at, Work::Bandwidth(Loading { loaders, traffic: self.traffic_with_access(mix, access)?, delay: 0 })))
    }

    /// Bandwidth of all CPUs of a row by the size of the blocks that they visit in random order: loads, and stores past the caches.
    fn access_sizes(&mut self) -> Result<Option<Step>, PlanError> {
        let mut cells = Vec::new();
        for row in self.cpu_nodes().iter() {
            let cpus = self.machine.topology.spread(&self.cpus_on(row));
            let loaders = self.file_loaders(&cpus, cpus.len(), Reserved::Bytes(0))?;
            for mix in self.with_kernels(&[Mix::AllReads, Mix::NtWrite], Access::Blocks) {
                for block in BLOCKS {
                    let mut cell = self.file_cell(row, loaders.clone(), mix, Access::Blocks)?;
                    cell.at = Coordinates { access: None, block: Some(block), ..cell.at };
                    if let Work::Bandwidth(loading) = &mut cell.work {
                        loading.traffic.block = Some(block);
                    }
                    cells.push(cell);
                }
            }
        }
        Ok((!cells.is_empty()).then(|| self.step("Bandwidth by access size", Experiment::AccessSize, cells)))
    }

    /// The first CPU of each row stores blocks and makes them durable, by every method that it has.
    fn persist_latencies(&mut self) -> Result<Option<Step>, PlanError> {
        let mut cells = Vec::new();
        for row in self.cpu_nodes().iter() {
            let Some(cpu) = self.cpus_on(row).first() else { continue };
            let loaders = self.file_loaders(&[cpu], self.cpus_on(row).len(), Reserved::Bytes(0))?;
            for method in PersistMethod::ALL {
                let stored = PERSISTED_BLOCKS.map(|block| (LineUse::Persisted(method), block));
                for (line, block) in stored.into_iter().chain([(LineUse::ReadBack(method), BLOCKS[0])]) {
                    let form = Form { access: Access::Blocks, line };
                    let kernels: Vec<&KernelRow> = self.kernels.iter().filter(|k| k.form == form).collect();
                    let Some(first) = kernels.first() else { continue };
                    let names = kernels.iter().map(|k| k.name.clone()).collect();
                    let traffic = Traffic { mix: first.mix, kernels: names, form, block: Some(block), ..Traffic::default() };
                    let at = Coordinates {
                        cpu_node: Some(row),
                        memory: self.memory_place(loaders.first().map(|l| l.buffer.node)).0,
                        cpu: Some(cpu),
                        block: Some(block),
                        line: Some(line),
                        ..Coordinates::default()
                    };
                    cells.push(Cell::new(at, Work::Bandwidth(Loading { loaders: loaders.clone(), traffic, delay: 0 })));
                }
            }
        }
        if cells.is_empty() {
            let message = "this CPU has no instruction that makes stores durable and that programs may use: persist latency is left out";
            self.notes.push(Note::info(NoteCode::NoPersistInstruction, message));
        }
        Ok((!cells.is_empty()).then(|| self.step("Persist latency", Experiment::PersistLatency, cells)))
    }

    /// Those mixes that this CPU can produce, with a note about the others.
    fn with_kernels(&mut self, mixes: &[Mix], access: Access) -> Vec<Mix> {
        let (with, without): (Vec<Mix>, Vec<Mix>) = mixes.iter().partition(|mix| self.has_kernel(**mix, access));
        if !without.is_empty() {
            let list = without.iter().map(Mix::to_string).collect::<Vec<_>>().join(", ");
            self.notes
                .push(Note::info(NoteCode::NoKernelForMix, format!("this CPU cannot produce these mixes, which are left out: {list}")));
        }
        with
    }

    /// Loaders of files on `cpus`, each as large as `sharers` of them may be beside what is reserved.
    fn file_loaders(&mut self, cpus: &[u32], sharers: usize, reserved: Reserved<'_>) -> Result<Vec<Loader>, PlanError> {
        let Some(home) = cpus.first().map(|cpu| self.local_node(*cpu)) else { return Ok(Vec::new()) };
        let mut loaders = self.loaders(cpus, Some(home), reserved)?;
        if self.requested.buffer().is_none() {
            let sharers = sharers as u64;
            let (room, _) = self.sizes.max_bytes(home, sharers, sharers);
            let room = room.saturating_sub(reserved.in_all().div_ceil(sharers)) / STEP * STEP;
            for loader in &mut loaders {
                loader.buffer.bytes = loader.buffer.bytes.max(PER_CPU.min(Bytes(room)));
            }
        }
        Ok(loaders)
    }

    /// The curve of each row. The chase goes in the order of the loaders: ascending, or random.
    fn loaded_rows(&mut self, access: Access) -> Result<Option<Step>, PlanError> {
        let mut cells = Vec::new();
        for row in self.cpu_nodes().iter() {
            let Some((chaser, loading)) = self.chaser_and_loaders(row) else { continue };
            let home = self.local_node(chaser);
            let probe = self.probe(chaser, home)?;
            let loaders = self.file_loaders(&loading, loading.len(), Reserved::Buffer(&probe.buffer))?;
            let mut cell = self.curve_cell(probe, loaders, Mix::AllReads, Delays::Cycles(DELAYS.to_vec()))?;
            let chase = if access == Access::Random { ChaseOrder::WindowLocal } else { ChaseOrder::Sequential };
            (cell.at.access, cell.at.order) = (Some(access), Some(chase));
            if let Work::Curve(curve) = &mut cell.work {
                curve.traffic = self.traffic_with_access(Mix::AllReads, access)?;
                curve.order = chase;
            }
            cells.push(cell);
        }
        Ok((!cells.is_empty()).then(|| self.step(&titled("Latency under load", access), Experiment::LoadedLatency, cells)))
    }
}

fn titled(title: &str, access: Access) -> String {
    format!("{title}, {}", memgauge_model::wording::access(access))
}

/// 1, 2, 4, 6 … n: the steps of such scripts.
fn ramp_counts(n: usize) -> Vec<usize> {
    let counts: BTreeSet<usize> = [1, n].into_iter().chain((2..=n).step_by(2)).filter(|count| *count <= n).collect();
    counts.into_iter().collect()
}

/// Numbers of writers: all small ones, because persistent memory is fastest with few, and doublings with what is between them.
fn writer_counts(n: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(4), |count| Some(count * 2)).take_while(|count| *count < n);
    let counts: BTreeSet<usize> = (1..=4).chain(doubled.flat_map(|count| [count, count * 3 / 2])).chain([n]).filter(|c| *c <= n).collect();
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_cpus_begin_with_one_and_end_with_all() {
        assert_eq!([1, 2, 3, 8].map(ramp_counts), [vec![1], vec![1, 2], vec![1, 2, 3], vec![1, 2, 4, 6, 8]]);
        assert_eq!([1, 2, 5].map(writer_counts), [vec![1], vec![1, 2], vec![1, 2, 3, 4, 5]]);
        assert_eq!(writer_counts(28), [1, 2, 3, 4, 6, 8, 12, 16, 24, 28]);
    }
}
