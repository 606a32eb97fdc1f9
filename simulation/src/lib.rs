//! A model of a machine's memory: it answers instead of threads, so that plans, sampling, statistics, conclusions and renderers run whole on
//! machines that nobody has, in milliseconds each. `docs/method/simulated-machine.md` describes it.

pub mod coverage;
pub mod fleet;
mod machines;
mod network;
mod random;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memgauge_engine::{BurstRates, ChaseWork, LoadWork, SimulatedMachine, TransferWork};
use memgauge_model::experiment::{ChaseOrder, LineState};
use memgauge_model::stats;
use memgauge_model::topology::Machine;
use memgauge_model::traffic::Access;
use memgauge_model::units::Bytes;

pub use machines::{FAULTS, Fault, Shape, add_far_node};
use network::{Flow, Served, Station, solve};
pub use random::Random;

/// Bytes of a line.
const LINE: f64 = 64.0;
/// Nanoseconds that a bank of memory, a link or a cache's port is busy with a line.
pub const SERVICE: f64 = 12.0;
/// A store's line costs the memory so much more than a load's: the bus turns around.
const WRITE_COST: f64 = 1.15;
/// Stores that do not read first hold their line in flight for this share of a load's latency.
const POSTED: f64 = 0.5;
/// Nanoseconds of the core in a latency, at 3 GHz.
const CORE_CYCLES: f64 = 45.0;

/// How steady the machine is: standard deviations as shares.
#[derive(Debug, Clone, Copy)]
pub struct Noise {
    /// Of bursts, all windows together.
    pub burst: f64,
    /// Of windows.
    pub window: f64,
    /// Share of the windows that are slower by up to a fifth.
    pub outliers: f64,
    /// Share of the bursts that are slower by a fifth: a second level.
    pub slow_bursts: f64,
    /// Slower by this share each second.
    pub drift: f64,
    /// Of allocations: all that is measured in a buffer is slower or faster by the same factor.
    pub allocation: f64,
    /// Of the machine's state, which wanders around its middle.
    pub state: f64,
    /// Seconds after which a third (1 / e) of a state is left.
    pub state_s: f64,
}

impl Noise {
    /// The noise of quiet servers.
    pub const QUIET: Self = Self { burst: 0.003, window: 0.005, outliers: 0.005, ..Self::NONE };
    /// None at all.
    pub const NONE: Self =
        Self { burst: 0.0, window: 0.0, outliers: 0.0, slow_bursts: 0.0, drift: 0.0, allocation: 0.0, state: 0.0, state_s: 1.0 };

    /// The factor that slows all windows of a burst.
    fn burst_factor(&self, random: &mut Random) -> f64 {
        let slow = if random.between(0.0, 1.0) < self.slow_bursts { 1.2 } else { 1.0 };
        random.factor(self.burst) * slow
    }

    /// A window's own factor.
    fn window_factor(&self, random: &mut Random) -> f64 {
        let outlier = if random.between(0.0, 1.0) < self.outliers { random.between(1.0, 1.2) } else { 1.0 };
        outlier * random.factor(self.window)
    }

    /// The median of the factors by which windows are slower, over all bursts, allocations and states, from this many of them.
    pub fn median_factor(&self, windows: u32) -> Option<f64> {
        let mut random = Random::new(1);
        let factors = (0..windows).map(|_| {
            let shared = random.factor(self.allocation) * random.factor(self.state);
            shared * self.burst_factor(&mut random) * self.window_factor(&mut random)
        });
        stats::median(&factors.collect::<Vec<_>>())
    }
}

/// What a CPU is behind.
#[derive(Debug, Clone)]
struct Place {
    package: u32,
    node: u32,
    domain: usize,
    /// While all CPUs work.
    ghz: f64,
    /// Bytes and core cycles of each cache level.
    levels: Vec<(f64, f64)>,
    prefetches: bool,
}

/// A model of a machine.
pub struct Model {
    places: BTreeMap<u32, Place>,
    packages: BTreeMap<u32, u32>,
    /// GB/s and unloaded nanoseconds beyond the core, by node.
    pub nodes: BTreeMap<u32, (f64, f64)>,
    /// GB/s from the memory of a package to the cores of another, and the nanoseconds that it adds.
    pub links: BTreeMap<(u32, u32), (f64, f64)>,
    /// GB/s of each last-level cache's path to memory.
    pub domains: Vec<f64>,
    /// Lines that a core keeps in flight without and with prefetchers.
    pub in_flight: (f64, f64),
    /// Nanoseconds that translation adds to a chase over a whole buffer.
    pub translation_ns: f64,
    /// Hops of a chase that a core still waits for when it reads its clock without a fence. 0: threads have no blocks and read no clock.
    pub hops_in_flight: u32,
    /// The nanoseconds that a hop takes longer on a thread that was just woken, and how long this lasts.
    pub cold: (f64, Duration),
    /// How steady it is.
    pub noise: Noise,
    /// A core alone runs faster by this share than all together; in between it is by how many work.
    pub turbo: f64,
    cores: usize,
    /// The factor by which transfers between caches are slower than usual.
    transfers: f64,
    random: Mutex<Random>,
    /// A CPU whose caches hold nothing of what its next burst visits.
    driven_out: Mutex<Option<u32>>,
    elapsed_ns: AtomicU64,
    /// The factor of each buffer that was used, by its address.
    allocations: Mutex<HashMap<usize, f64>>,
    /// The machine's state in standard deviations, and when that was, in seconds.
    state: Mutex<Option<(f64, f64)>>,
    solved: Mutex<HashMap<Vec<u64>, Arc<Vec<Served>>>>,
}

/// A thread of a burst: where it runs, where its memory is, and what it does.
struct Thread<'a> {
    place: &'a Place,
    ghz: f64,
    memory: Vec<(u32, f64)>,
    bytes: f64,
    in_flight: f64,
    think: f64,
    /// Lines waited for, lines that move towards the core and lines stored, per line of work.
    waits: f64,
    read: f64,
    written: f64,
}

impl Model {
    /// A healthy model of `machine`, with the small differences that similar parts have, and `fault`.
    pub fn new(machine: &Machine, fault: Option<Fault>, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let topology = &machine.topology;
        let ghz = random.between(2.2, 3.6);
        // Level 3, or a lower one where the machine has no such cache.
        let last_level = topology.caches.iter().map(|c| c.level.min(3)).max();
        let last: Vec<_> = topology.caches.iter().filter(|c| Some(c.level) == last_level).collect();
        let cycles = [4.5, 15.0, 55.0];
        let places = topology.cpus.iter().map(|cpu| {
            let domain = last.iter().position(|c| c.cpus.contains(cpu.id)).unwrap_or(0);
            let levels = topology.cpu_caches(cpu.id).map(|c| (c.size.0 as f64, cycles[usize::from(c.level.clamp(1, 3)) - 1]));
            let levels = levels.collect();
            (cpu.id, Place { package: cpu.package, node: cpu.node, domain, ghz, levels, prefetches: true })
        });
        let places: BTreeMap<u32, Place> = places.collect();
        let in_flight = (random.between(12.0, 16.0), random.between(30.0, 44.0));
        let dram_ns = random.between(70.0, 100.0);
        // Cores could take more than their cache's path moves, and all caches of a node more than its memory.
        let core_gbs = in_flight.1 * LINE / (dram_ns + CORE_CYCLES / ghz);
        let per_domain = last.first().map_or(topology.cpus.len(), |c| c.cpus.len()) as f64
            / topology.cpus.first().map_or(1, |c| c.siblings.len()) as f64;
        let nodes_with_cpus = topology.nodes.iter().filter(|n| !n.cpus.is_empty()).count().max(1);
        let domains_of_node = (last.len() / nodes_with_cpus).max(1) as f64;
        let domain_gbs = random.between(0.45, 0.6) * core_gbs * per_domain;
        let node_gbs =
            if domains_of_node > 1.0 { random.between(0.6, 0.8) * domain_gbs * domains_of_node } else { 0.6 * core_gbs * per_domain };
        let domain_gbs = if domains_of_node > 1.0 { domain_gbs } else { 2.0 * core_gbs * per_domain };
        let per_package = topology.nodes.iter().filter(|n| !n.cpus.is_empty()).count() as f64 / topology.packages().len().max(1) as f64;
        let link = (random.between(0.35, 0.6) * node_gbs * per_package, random.between(50.0, 80.0));
        let mut model = Self {
            packages: topology.nodes.iter().filter_map(|n| Some((n.id, topology.cpu(n.cpus.first()?)?.package))).collect(),
            nodes: topology.nodes.iter().map(|n| (n.id, (node_gbs * random.factor(0.004), dram_ns * random.factor(0.003)))).collect(),
            links: BTreeMap::new(),
            // A machine that lists no caches has one path to memory.
            domains: (0..last.len().max(1)).map(|_| domain_gbs * random.factor(0.004)).collect(),
            in_flight,
            translation_ns: random.between(5.0, 30.0),
            hops_in_flight: 0,
            cold: (0.0, Duration::ZERO),
            noise: Noise::QUIET,
            turbo: 0.0,
            cores: topology.one_per_core(&topology.cpus.iter().map(|c| c.id).collect()).len(),
            transfers: 1.0,
            random: Mutex::new(random),
            driven_out: Mutex::new(None),
            elapsed_ns: AtomicU64::new(0),
            allocations: Mutex::default(),
            state: Mutex::default(),
            solved: Mutex::default(),
            places,
        };
        for from in topology.packages().iter() {
            for to in topology.packages().iter().filter(|to| *to != from) {
                let factor = model.random().factor(0.004);
                model.links.insert((from, to), (link.0 * factor, link.1));
            }
        }
        fault.into_iter().for_each(|fault| model.inject(fault, machine));
        model
    }

    /// The same with other noise: another run on the same machine.
    pub fn again(mut self, seed: u64) -> Self {
        self.random = Mutex::new(Random::new(seed));
        self.elapsed_ns = AtomicU64::new(0);
        self.allocations = Mutex::default();
        self.state = Mutex::default();
        self
    }

    /// All cores run at this share of their frequency.
    pub fn clock_down(&mut self, share: f64) {
        self.places.values_mut().for_each(|place| place.ghz *= share);
    }

    /// All nodes have these shares of their bandwidth and of their latency.
    pub fn slow_memory(&mut self, bandwidth: f64, latency: f64) {
        self.nodes.values_mut().for_each(|node| *node = (node.0 * bandwidth, node.1 * latency));
    }

    /// Loads from last-level caches become slower by this factor.
    pub fn slow_caches(&mut self, times: f64) {
        self.places.values_mut().filter_map(|place| place.levels.last_mut()).for_each(|(_, cycles)| *cycles *= times);
    }

    /// Transfers between caches become slower by this factor.
    pub const fn slow_transfers(&mut self, times: f64) {
        self.transfers *= times;
    }

    fn inject(&mut self, fault: Fault, machine: &Machine) {
        match fault {
            Fault::Channel { node, less } => self.nodes.get_mut(&node).into_iter().for_each(|n| n.0 *= 1.0 - less),
            Fault::Node { node, less } => {
                self.nodes.get_mut(&node).into_iter().for_each(|n| *n = (n.0 * (1.0 - less), n.1 * (1.0 + less)));
            }
            Fault::Link { from, to, both, less } => {
                let hit = |pair: (u32, u32)| pair == (from, to) || (both && pair == (to, from));
                self.links.iter_mut().filter(|(pair, _)| hit(**pair)).for_each(|(_, link)| link.0 *= 1.0 - less);
            }
            Fault::Domain { cpu, less } => self.domains[self.places[&cpu].domain] *= 1.0 - less,
            Fault::Core { cpu, less } => {
                let siblings = machine.topology.cpu(cpu).map(|c| c.siblings.clone()).unwrap_or_default();
                self.places.iter_mut().filter(|(id, _)| siblings.contains(**id)).for_each(|(_, place)| place.ghz *= 1.0 - less);
            }
            Fault::PrefetchersOff { package } => {
                let hit = |place: &Place| package.is_none_or(|p| p == place.package);
                self.places.values_mut().filter(|place| hit(place)).for_each(|place| place.prefetches = false);
            }
            // The machine itself has other nodes.
            Fault::WrongNodes => {}
        }
    }

    /// Unloaded nanoseconds of a load from a CPU to a node's memory; `None` where there is no such CPU or node.
    pub fn idle_ns(&self, cpu: u32, node: u32) -> Option<f64> {
        let place = self.places.get(&cpu)?;
        let memory = vec![(node, 1.0)];
        let ghz = self.core_ghz(place, 1);
        let thread = Thread { place, ghz, memory, bytes: f64::MAX, in_flight: 1.0, think: 0.0, waits: 1.0, read: 1.0, written: 0.0 };
        self.nodes.get(&node).map(|_| self.flow(&thread, f64::MAX).unloaded)
    }

    /// Nanoseconds of a hit in each of a CPU's caches, nearest first.
    pub fn level_ns(&self, cpu: u32) -> Vec<f64> {
        let ns = |place: &Place| place.levels.iter().map(|(_, cycles)| cycles / self.core_ghz(place, 1)).collect();
        self.places.get(&cpu).map_or(Vec::new(), ns)
    }

    /// The frequency of a core while `busy` CPUs work.
    fn core_ghz(&self, place: &Place, busy: usize) -> f64 {
        let others = busy.saturating_sub(1) as f64 / self.cores.saturating_sub(1).max(1) as f64;
        place.ghz * (1.0 + self.turbo * (1.0 - others.min(1.0)))
    }

    fn random(&self) -> MutexGuard<'_, Random> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stations: nodes, links, then last-level caches.
    fn stations(&self) -> Vec<Station> {
        let capacities = self.nodes.values().map(|n| n.0).chain(self.links.values().map(|l| l.0)).chain(self.domains.iter().copied());
        capacities.map(|capacity| Station { capacity, service: SERVICE }).collect()
    }

    /// A thread as a flow. `shared`: bytes that all threads behind its last-level cache go over.
    fn flow(&self, thread: &Thread<'_>, shared: f64) -> Flow {
        let place = thread.place;
        let mut memory = CORE_CYCLES / thread.ghz;
        let mut stations = vec![];
        for &(node, share) in &thread.memory {
            let (_, dram) = self.nodes.get(&node).copied().unwrap_or((1.0, 100.0));
            let package = self.packages.get(&node).copied().unwrap_or(place.package);
            let link = (package != place.package).then_some((package, place.package));
            // Another node of the package is some of the way to another package.
            let near = if link.is_none() && node != place.node { 10.0 } else { 0.0 };
            let far = link.and_then(|l| self.links.get(&l)).map_or(0.0, |l| l.1);
            memory += share * (dram + near + far);
            let at = self.nodes.keys().position(|n| *n == node).unwrap_or(0);
            stations.push((at, share * LINE * (thread.read + WRITE_COST * thread.written)));
            if let Some(link) = link.and_then(|l| self.links.keys().position(|k| *k == l)) {
                stations.push((self.nodes.len() + link, share * LINE * thread.read.max(thread.written)));
            }
        }
        let (mut hit, mut unloaded) = (0.0, 0.0);
        for (i, (size, cycles)) in place.levels.iter().enumerate() {
            let bytes = if i + 1 == place.levels.len() { shared } else { thread.bytes };
            // Least recently used lines go first: a loop over twice the cache finds none of its lines there.
            let in_level = (2.0 - bytes / size).clamp(hit, 1.0);
            unloaded += (in_level - hit) * cycles / thread.ghz;
            hit = in_level;
        }
        unloaded += (1.0 - hit) * memory;
        stations.push((self.nodes.len() + self.links.len() + place.domain, LINE * thread.read.max(thread.written)));
        let Thread { in_flight, think, waits, .. } = *thread;
        Flow { threads: 1.0, unloaded, in_flight, think, waits, misses: 1.0 - hit, stations }
    }

    /// The service that each thread of a burst gets. Threads that do the same are solved as one flow.
    fn serve(&self, threads: &[Thread<'_>]) -> Vec<Served> {
        let mut shared: BTreeMap<usize, f64> = BTreeMap::new();
        threads.iter().for_each(|t| *shared.entry(t.place.domain).or_default() += t.bytes);
        let mut kinds: HashMap<Vec<u64>, usize> = HashMap::new();
        let mut flows: Vec<Flow> = Vec::new();
        let mut which = Vec::with_capacity(threads.len());
        let mut key: Vec<u64> = Vec::new();
        for t in threads {
            let numbers = [t.bytes, shared[&t.place.domain], t.in_flight, t.think, t.waits, t.read, t.written, t.ghz].map(f64::to_bits);
            let mut kind = vec![t.place.domain as u64];
            kind.extend(t.memory.iter().flat_map(|(node, share)| [u64::from(*node), share.to_bits()]));
            kind.extend(numbers);
            let at = *kinds.entry(kind).or_insert_with_key(|kind| {
                key.extend(kind);
                flows.push(Flow { threads: 0.0, ..self.flow(t, shared[&t.place.domain]) });
                flows.len() - 1
            });
            flows[at].threads += 1.0;
            which.push(at);
        }
        key.extend(flows.iter().map(|f| f.threads as u64));
        let mut solved = self.solved.lock().unwrap_or_else(PoisonError::into_inner);
        let served = solved.entry(key).or_insert_with(|| Arc::new(solve(&self.stations(), &flows))).clone();
        which.into_iter().map(|at| served[at]).collect()
    }

    fn chase_thread(&self, chase: &ChaseWork, busy: usize) -> Option<Thread<'_>> {
        let place = self.places.get(&chase.cpu)?;
        let ghz = self.core_ghz(place, busy);
        let ahead = chase.order == ChaseOrder::Sequential && place.prefetches;
        // A prefetcher is a few lines ahead of a sequential chase.
        let in_flight = if ahead { 10.0 } else { 1.0 };
        let memory = chase.memory.clone();
        Some(Thread { place, ghz, memory, bytes: chase.bytes.0 as f64, in_flight, think: 0.0, waits: 1.0, read: 1.0, written: 0.0 })
    }

    fn load_thread(&self, load: &LoadWork, busy: usize) -> Option<Thread<'_>> {
        let place = self.places.get(&load.cpu)?;
        let ghz = self.core_ghz(place, busy);
        let kernel = load.kernel;
        let (read, written) = (kernel.lines_read_per_iteration() as f64, kernel.lines_written_per_iteration() as f64);
        let (read, written) = (read / (read + written), written / (read + written));
        let fetched = if kernel.mix.non_temporal() { read } else { 1.0 };
        let (plain, prefetched) = self.in_flight;
        let in_flight = if place.prefetches && !matches!(kernel.form.access, Access::Random | Access::Blocks) { prefetched } else { plain };
        // Wider loops need fewer instructions for a line.
        let in_flight = in_flight * (1.0 + 0.01 * f64::from(kernel.width as u8));
        Some(Thread {
            place,
            ghz,
            memory: load.memory.clone(),
            bytes: load.bytes.0 as f64,
            in_flight,
            think: f64::from(load.delay) / 4.0 / ghz,
            waits: fetched + POSTED * (1.0 - fetched),
            read: fetched,
            written,
        })
    }

    /// Factors by which windows of a burst are slower.
    fn slowness(&self, windows: usize) -> Vec<f64> {
        let drift = 1.0 + self.noise.drift * self.elapsed().as_secs_f64();
        let mut random = self.random();
        let burst = self.noise.burst_factor(&mut random) * drift * self.state_factor(&mut random);
        (0..windows).map(|_| burst * self.noise.window_factor(&mut random)).collect()
    }

    /// The state's factor: a stationary process whose correlation falls exponentially with time (G. Uhlenbeck, L. Ornstein, 1930).
    fn state_factor(&self, random: &mut Random) -> f64 {
        let Noise { state: deviation, state_s, .. } = self.noise;
        if deviation == 0.0 {
            return 1.0;
        }
        let now_s = self.elapsed().as_secs_f64();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match *state {
            None => random.normal(),
            Some((at, when_s)) => {
                let kept = (-(now_s - when_s) / state_s).exp();
                kept * at + (1.0 - kept * kept).sqrt() * random.normal()
            }
        };
        *state = Some((at, now_s));
        1.0 + deviation * at.clamp(-4.0, 4.0)
    }

    /// The factor that slows everything that is measured in a buffer.
    fn allocation_factor(&self, buffer: usize) -> f64 {
        let deviation = self.noise.allocation;
        if deviation == 0.0 {
            return 1.0;
        }
        let mut factors = self.allocations.lock().unwrap_or_else(PoisonError::into_inner);
        *factors.entry(buffer).or_insert_with(|| self.random().factor(deviation))
    }
}

impl SimulatedMachine for Model {
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.elapsed_ns.load(Ordering::Relaxed))
    }

    fn allocated(&self, buffer: usize) {
        self.allocations.lock().unwrap_or_else(PoisonError::into_inner).remove(&buffer);
    }

    fn pass(&self, time: Duration) {
        self.elapsed_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn ghz(&self, cpu: u32, busy: usize) -> f64 {
        self.places.get(&cpu).map_or(0.0, |place| self.core_ghz(place, busy)) * self.random().factor(0.001)
    }

    fn burst(&self, chase: Option<ChaseWork>, loads: &[LoadWork], windows: usize, _: Duration) -> BurstRates {
        let busy = loads.len() + usize::from(chase.is_some());
        let chased = chase.and_then(|chase| self.chase_thread(&chase, busy).map(|thread| (chase.clone(), thread)));
        let probed = chased.is_some();
        let order = chased.as_ref().map(|(chase, _)| chase.order);
        let chased_buffer = chased.as_ref().map(|(chase, _)| self.allocation_factor(chase.buffer));
        let cold = self.driven_out.lock().unwrap_or_else(PoisonError::into_inner).take();
        let visited = |chase: &ChaseWork, bytes: f64| if cold == Some(chase.cpu) { f64::MAX } else { bytes };
        let mut threads: Vec<Thread<'_>> =
            chased.into_iter().map(|(chase, thread)| Thread { bytes: visited(&chase, thread.bytes), ..thread }).collect();
        threads.extend(loads.iter().filter_map(|load| self.load_thread(load, busy)));
        let served = self.serve(&threads);
        let common = self.slowness(windows);
        let hop_ns = served.first().filter(|_| probed).map_or(Vec::new(), |first| {
            // Translation counts where the data is not in a cache of the core.
            let translation = if order == Some(ChaseOrder::FullRandom) && first.latency > 30.0 { self.translation_ns } else { 0.0 };
            let slower = chased_buffer.unwrap_or(1.0);
            common.iter().map(|slow| (1.0 / first.rate + translation) * slower * slow).collect()
        });
        let loaded = served[usize::from(probed)..].iter().zip(loads);
        let lines_per_ns = loaded.map(|(served, load)| {
            let rate = served.rate / self.allocation_factor(load.buffer);
            common.iter().map(|slow| rate / slow).collect()
        });
        let lines_per_ns = lines_per_ns.collect();
        BurstRates { hop_ns, lines_per_ns, ..BurstRates::default() }
    }

    fn read_all(&self, cpu: u32, bytes: Bytes) {
        let held = self.places.get(&cpu).and_then(|place| place.levels.last()).map_or(0.0, |(size, _)| *size);
        if (bytes.0 as f64) < held {
            return;
        }
        *self.driven_out.lock().unwrap_or_else(PoisonError::into_inner) = Some(cpu);
    }

    fn hops_in_flight(&self) -> u32 {
        self.hops_in_flight
    }

    fn cold(&self) -> (f64, Duration) {
        self.cold
    }

    fn transfers(&self, work: &[TransferWork], _: Duration) -> Vec<Vec<f64>> {
        let transfer = |t: &TransferWork| {
            let (reader, holder) = (&self.places[&t.reader], &self.places[&t.holder]);
            let ns = match () {
                () if reader.domain == holder.domain => 20.0 + 50.0 / reader.ghz,
                () if reader.package == holder.package => 95.0,
                () => 95.0 + self.links.get(&(holder.package, reader.package)).map_or(0.0, |l| 1.5 * l.1),
            };
            let ns = if t.state == LineState::Hit { ns * 0.92 } else { ns };
            let ns = ns * self.transfers * self.allocation_factor(t.buffer);
            self.slowness(TURNS).into_iter().map(|slow| ns * slow).collect()
        };
        work.iter().map(transfer).collect()
    }
}

/// Turns of a reader that a run of transfers leaves.
const TURNS: usize = 12;
