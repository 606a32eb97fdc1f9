//! A sweep over working sets: which sizes, on which CPUs. Every smaller working set is a part of the same buffer.

use std::collections::BTreeMap;

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, Metric};
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::{BandwidthSweep, Cell, LatencySweep, Loader, Probe, Step, Work};
use memgauge_model::spec::{SweepShape, SweepSpec};
use memgauge_model::traffic::Mix;
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Way};

use crate::check::{PlanError, invalid, unavailable};
use crate::context::Planner;
use crate::sizes::{approximately, floor_power_of_two};

/// The smallest working set: an eighth of the smallest first-level data cache in servers (32 KiB), and one step of every kernel.
const MIN: Bytes = Bytes::kib(4);
/// The largest working set: four times any last-level cache that one CPU can fill today, except for AMD's 1.1 GiB of 3D V-Cache.
const MAX: Bytes = Bytes::gib(1);
/// Sizes in each doubling: 5/4, 6/4, 7/4 of a power of two, as caches' sizes are.
const POINTS_PER_OCTAVE: u32 = 4;
/// More sizes in a doubling than this cost time without adding information: they would be closer together than the width of a level's edge.
const MAX_POINTS: u32 = 32;

/// Multiples of `granule` from `min` to `max`, both included, with `points` of them in each doubling at equal distances.
pub(super) fn sizes(min: Bytes, max: Bytes, points: u32, granule: u64) -> Vec<Bytes> {
    let down = |n: u64| n / granule * granule;
    let points = u64::from(points.max(1));
    let octaves = std::iter::successors(Some(floor_power_of_two(min.0.max(1))), |n| n.checked_mul(2)).take_while(|n| *n <= max.0);
    let mut all: Vec<u64> =
        octaves.flat_map(|base| (0..points).map(move |i| base + (u128::from(base) * u128::from(i) / u128::from(points)) as u64)).collect();
    all.retain(|n| (min.0..=max.0).contains(n));
    all.extend([min.0, max.0]);
    let mut all: Vec<u64> = all.into_iter().map(down).filter(|n| *n > 0).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(Bytes).collect()
}

impl Planner<'_> {
    /// A step for latency and one for bandwidth, each with a cell for each curve.
    pub(super) fn sweep(&mut self, request: &SweepSpec) -> Result<Vec<Step>, PlanError> {
        let wants = |metric: Metric| request.metrics.is_empty() || request.metrics.contains(&metric);
        let (latency, bandwidth) = (wants(Metric::Latency), wants(Metric::Bandwidth));
        let groups = self.sweep_groups(request.shape);
        let mut steps = Vec::new();
        if latency {
            let cells =
                groups.iter().filter_map(|group| group.first()).map(|&cpu| self.latency_sweep(request, cpu)).collect::<Result<_, _>>()?;
            steps.push(self.step("Latency by working set", Experiment::Sweep, cells));
        }
        if bandwidth {
            let mut cells = Vec::new();
            for mix in self.mixes(&[Mix::AllReads])? {
                for group in &groups {
                    cells.push(self.bandwidth_sweep(request, group, mix)?);
                }
            }
            steps.push(self.step(&self.titled("Bandwidth by working set"), Experiment::Sweep, cells));
        }
        Ok(steps)
    }

    /// The CPUs that work together, one group for each curve.
    fn sweep_groups(&self, shape: SweepShape) -> Vec<Vec<u32>> {
        let topology = &self.machine.topology;
        match shape {
            SweepShape::One => vec![self.cpus.first().into_iter().collect()],
            SweepShape::AllCpus => vec![topology.spread(&self.cpus)],
            SweepShape::PerDomain => {
                let mut domains: BTreeMap<u32, IdSet> = BTreeMap::new();
                for cpu in self.cpus.iter() {
                    domains.entry(topology.cache_domain(cpu)).or_default().insert(cpu);
                }
                domains.values().map(|cpus| topology.spread(cpus)).collect()
            }
        }
    }

    fn latency_sweep(&mut self, request: &SweepSpec, cpu: u32) -> Result<Cell, PlanError> {
        let node = self.sweep_home(cpu)?;
        let stride = self.sizes.stride()?;
        let spread = self.sizes.spread(stride);
        let sizes = self.working_sets(request, &[(cpu, node)], stride.0, spread)?;
        let largest = Bytes(sizes.last().copied().unwrap_or(MIN).0 * spread);
        let probe = Probe { cpu, buffer: self.sizes.buffer(largest, node, false), stride, window: self.sizes.window(largest, stride)? };
        let order = request.order.unwrap_or(ChaseOrder::WindowLocal);
        let at = Coordinates { order: Some(order), ..self.chase_at(&probe) };
        Ok(Cell::new(at, Work::LatencySweep(LatencySweep { probe, order, sizes })))
    }

    fn bandwidth_sweep(&mut self, request: &SweepSpec, cpus: &[u32], mix: Mix) -> Result<Cell, PlanError> {
        let homes = cpus.iter().map(|&cpu| Ok((cpu, self.sweep_home(cpu)?))).collect::<Result<Vec<_>, _>>()?;
        // The same sizes as for latency, so that both curves have the same points.
        let stride = self.sizes.stride()?;
        let sizes = self.working_sets(request, &homes, stride.0, 1)?;
        let largest = sizes.last().copied().unwrap_or(MIN);
        let loaders = homes.iter().map(|&(cpu, node)| Loader { cpu, buffer: self.sizes.buffer(largest, node, false), own: None }).collect();
        let nodes: IdSet = homes.iter().map(|h| h.1).collect();
        let rows: IdSet = cpus.iter().map(|&c| self.cpu_node(c)).collect();
        let only = |set: IdSet| set.first().filter(|_| set.len() == 1);
        let at = self.traffic_at(only(rows), only(nodes), cpus.iter().copied().collect(), mix);
        Ok(Cell::new(at, Work::BandwidthSweep(BandwidthSweep { loaders, traffic: self.traffic(mix)?, sizes })))
    }

    /// The requested node, or the CPU's own.
    fn sweep_home(&mut self, cpu: u32) -> Result<u32, PlanError> {
        Ok(self.one_node()?.unwrap_or_else(|| self.local_node(cpu)))
    }

    /// The working sets for buffers given as (CPU, node), within what each may use. Each is spread over `spread` times its size.
    fn working_sets(&mut self, request: &SweepSpec, homes: &[(u32, u32)], granule: u64, spread: u64) -> Result<Vec<Bytes>, PlanError> {
        let (min, points) = (request.min.unwrap_or(MIN), request.points_per_octave.unwrap_or(POINTS_PER_OCTAVE));
        if points == 0 || points > MAX_POINTS {
            return invalid(format!("a sweep cannot have {points} sizes in each doubling; give 1 to {MAX_POINTS}"));
        }
        if min < MIN {
            return invalid(format!("a working set of {min} is too small to measure; the smallest is {MIN}"));
        }
        let nodes: IdSet = homes.iter().map(|home| home.1).collect();
        let on_node = |node: u32| homes.iter().filter(|home| home.1 == node).count() as u64;
        let least = nodes.iter().map(|node| self.sizes.max_bytes(node, on_node(node), homes.len() as u64)).min();
        let (most, limited_by) = least.map_or((u64::MAX, String::new()), |(most, by)| (most / spread, by));
        let mut max = request.max.unwrap_or(MAX.max(min));
        if max.0 > most {
            if request.max.is_some() || most < MIN.0.max(min.0) {
                let (what, may) =
                    if homes.len() == 1 { ("a working set", "is more than the") } else { ("working sets", "are more than the") };
                let each = if homes.len() == 1 { "it" } else { "each" };
                let most = approximately(most);
                return unavailable(Problem::new(
                    format!("{what} of {max} {may} {most} that {each} may take ({limited_by})"),
                    Way::Smaller(Knob::Max),
                ));
            }
            let cut = Bytes(floor_power_of_two(most).max(min.0));
            let most = approximately(most);
            let message = format!("working sets up to {cut} instead of {max}: each CPU may take {most} ({limited_by})");
            let advice = Way::from("free memory or raise the limit").or(Way::name("fewer CPUs", Knob::Cpus));
            self.notes.push(Note::warning(NoteCode::SweepCut, message).advise(advice));
            max = cut;
        }
        if max < min {
            return invalid(words!["a sweep from {min} to {max} has no size; ", Knob::Min, " is at most ", Knob::Max]);
        }
        let all = sizes(min, max, points, granule);
        if all.is_empty() {
            return invalid(Problem::new(
                format!("no working set up to {max} holds a stride of {}", Bytes(granule)),
                Way::Larger(Knob::Max),
            ));
        }
        Ok(all)
    }
}
