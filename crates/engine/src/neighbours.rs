//! How busy others keep the CPUs that share a core, a cache or memory with those that are measured.
//!
//! The time of CPUs is the only thing that a system tells of every program. It does not say what they do with memory, so it is a reason
//! for doubt and no proof.

mod cpus;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use memgauge_model::protocol::MAX_NEIGHBOURS;
use memgauge_model::result::Neighbours;
use memgauge_model::units::IdSet;
use memgauge_os::noise;

pub(crate) use cpus::NeighbourCpus;

/// The steps in which systems count the time of CPUs would hide everything else in less time than this: five of 10 ms.
const SHORTEST: Duration = Duration::from_millis(50);
/// CPUs up to which each burst has a look of its own. A kernel takes some microseconds for each CPU: with more of them, two looks would take
/// over a hundredth of a burst.
const MAX_LOOKED_AT: usize = 128;

/// The busy time of each neighbour at one moment.
#[derive(Debug, Clone)]
struct Look {
    busy_s: BTreeMap<u32, f64>,
    at: Instant,
    /// CPU time of this thread.
    own_ns: Option<u64>,
}

impl Look {
    fn new(root: &Path, cpus: &IdSet) -> Self {
        Self { busy_s: noise::busy_seconds(root, cpus), at: Instant::now(), own_ns: noise::thread_cpu_ns() }
    }
}

/// The time that neighbours were busy between looks.
#[derive(Debug, Clone, Default)]
struct Counted {
    busy_s: BTreeMap<u32, f64>,
    own_s: f64,
    time: Duration,
    /// Intervals between two looks. Each has its own rounding error.
    intervals: u32,
}

impl Counted {
    fn add(&mut self, from: &Look, to: &Look) {
        for (cpu, now) in &to.busy_s {
            if let Some(then) = from.busy_s.get(cpu) {
                *self.busy_s.entry(*cpu).or_default() += (now - then).max(0.0);
            }
        }
        self.own_s += to.own_ns.zip(from.own_ns).map_or(0.0, |(now, then)| now.saturating_sub(then) as f64 / 1e9);
        self.time += to.at - from.at;
        self.intervals += 1;
    }

    /// The shares, less `rounding` times the error of the steps; `None` where the system shows no CPU.
    fn shares(&self, cpus: &NeighbourCpus, rounding: f64) -> Option<Neighbours> {
        if self.busy_s.is_empty() {
            return None;
        }
        let busy = |group: &IdSet| {
            let busy: f64 = group.iter().filter_map(|cpu| self.busy_s.get(&cpu)).sum();
            // The error of a sum of n differences is about 0.4 sqrt(n) steps.
            let error = (group.len() as f64 * f64::from(self.intervals)).sqrt() * noise::BUSY_STEP_S;
            (busy - self.own_s - rounding * error).max(0.0)
        };
        Some(cpus.shares(self.time.as_secs_f64(), busy))
    }
}

/// Watches the neighbours of a cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct NeighbourWatch {
    cpus: NeighbourCpus,
    all: IdSet,
    since: Option<Look>,
    counted: Counted,
    /// This thread runs on a measured CPU, and never on a neighbour.
    pinned: bool,
}

impl NeighbourWatch {
    /// By a thread that may run on a neighbour: its time is not that of others.
    pub(crate) fn start(root: &Path, cpus: &NeighbourCpus) -> Self {
        let mut watch = Self { all: cpus.all(), cpus: cpus.clone(), ..Self::default() };
        watch.resume(root);
        watch
    }

    /// By a thread that is `pinned` to the measured CPU, or may run on any neighbour.
    pub(crate) fn start_measuring(root: &Path, cpus: &NeighbourCpus, pinned: bool) -> Self {
        Self { pinned, ..Self::start(root, cpus) }
    }

    /// Until [`Self::resume`], what happens does not count: this process works on these CPUs as well.
    pub(crate) fn pause(&mut self, root: &Path) {
        if let Some(since) = self.since.take() {
            self.counted.add(&since, &Look::new(root, &self.all));
        }
    }

    pub(crate) fn resume(&mut self, root: &Path) {
        if !self.all.is_empty() {
            self.since = Some(Look::new(root, &self.all));
        }
    }

    /// The time that was watched, apart from pauses.
    pub(crate) fn watched(&self) -> Duration {
        self.counted.time + self.since.as_ref().map_or(Duration::ZERO, |since| since.at.elapsed())
    }

    /// The shares that others used; `None` if the system does not show them, or the time was too short.
    pub(crate) fn finish(mut self, root: &Path) -> Option<Neighbours> {
        self.pause(root);
        if self.pinned {
            self.counted.own_s = 0.0;
        }
        self.counted.shares(&self.cpus, 1.0).filter(|_| self.counted.time >= SHORTEST)
    }

    /// How much longer to watch until there is something to say.
    pub(crate) fn too_short_by(&self) -> Duration {
        if self.all.is_empty() { Duration::ZERO } else { SHORTEST.saturating_sub(self.watched()) }
    }
}

/// The shares of CPUs that others had during a burst.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Others {
    /// Share of the measured CPUs' time that the hypervisor gave to others; `None` outside of virtual machines.
    pub(crate) steal: Option<f64>,
    /// Shares of neighbours' time, with the error of the system's steps.
    pub(crate) neighbours: Option<Neighbours>,
    /// Neighbours were busy, whatever that error is.
    pub(crate) neighbours_busy: bool,
}

/// A look at the neighbours before a burst.
pub(crate) struct NeighbourLook(Option<Look>);

impl NeighbourLook {
    /// Looks at no CPU if there are more than `MAX_LOOKED_AT`, because looking takes long then.
    pub(crate) fn new(root: &Path, cpus: &NeighbourCpus) -> Self {
        let all = cpus.all();
        Self((!all.is_empty() && all.len() <= MAX_LOOKED_AT).then(|| Look::new(root, &all)))
    }

    /// Returns the use by others since then, and whether neighbours were certainly busy.
    pub(crate) fn since(&self, root: &Path, cpus: &NeighbourCpus) -> (Option<Neighbours>, bool) {
        let Some(before) = &self.0 else { return (None, false) };
        let mut counted = Counted::default();
        counted.add(before, &Look::new(root, &cpus.all()));
        let busy = counted.shares(cpus, 1.0).and_then(|shares| shares.most()).is_some_and(|share| share > MAX_NEIGHBOURS);
        (counted.shares(cpus, 0.0), busy)
    }
}

#[cfg(test)]
mod tests {
    use memgauge_model::topology::{Node, Topology};

    use super::*;

    /// One node of four CPUs, the first of them measured.
    fn neighbours() -> NeighbourCpus {
        let node = Node { id: 0, cpus: (0..4).collect(), ..Node::default() };
        let one = IdSet::one(0);
        NeighbourCpus::new(&Topology { nodes: vec![node], ..Topology::default() }, &one, &one, &one)
    }

    #[test]
    fn busy_neighbours_show_in_steps_of_the_system() {
        let cpus = neighbours();
        let (other, now) = (cpus.memory.first().unwrap(), Instant::now());
        let look = |busy_s: f64, ms: u64| Look {
            busy_s: cpus.all().iter().map(|cpu| (cpu, if cpu == other { busy_s } else { 0.0 })).collect(),
            at: now + Duration::from_millis(ms),
            own_ns: Some(0),
        };
        let mut counted = Counted::default();
        counted.add(&look(7.0, 0), &look(7.5, 1000));
        let domain = cpus.memory.len() as f64 + 1.0;
        let exact = counted.shares(&cpus, 0.0).unwrap().memory.unwrap();
        assert!((exact - 0.5 / domain).abs() < 1e-9, "{exact}");
        let careful = counted.shares(&cpus, 1.0).unwrap().memory.unwrap();
        assert!(careful < exact && careful > 0.5 * exact, "{careful} {exact}");
        // CPU time in a pause does not count.
        counted.add(&look(9.0, 1500), &look(9.0, 2500));
        assert!((counted.shares(&cpus, 0.0).unwrap().memory.unwrap() - 0.25 / domain).abs() < 1e-9);
        assert_eq!(Counted::default().shares(&cpus, 0.0), None, "the system shows nothing");
    }

    #[test]
    fn a_watch_of_nothing_says_nothing() {
        let (root, none) = (Path::new("/"), NeighbourCpus::default());
        let watch = NeighbourWatch::start(root, &none);
        assert_eq!((watch.too_short_by(), watch.finish(root)), (Duration::ZERO, None));
        assert_eq!(NeighbourLook::new(root, &none).since(root, &none), (None, false));
    }
}
