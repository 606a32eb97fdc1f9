//! One run: the data that every output format is made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::counters::ProgramCount;
use crate::estimate::NotMeasured;
use crate::experiment::Coordinates;
use crate::note::Note;
use crate::plan::Plan;
use crate::result::common::{Common, MANY_RESULTS};
use crate::result::curves::{CurveSummary, LevelSummary};
use crate::result::environment::Environment;
use crate::result::health::Health;
use crate::result::interleave::InterleaveSummary;
use crate::result::matrix::PairMatrix;
use crate::result::measurement::Measurement;
use crate::result::moment::Moment;
use crate::result::persistent::{AccessKnee, BestWriters};
use crate::result::reference::{PublishedSpan, Unreferenced};
use crate::result::residency::Residency;
use crate::result::stamp::MachineState;
use crate::result::summary::Summary;
use crate::result::watch::Watch;
use crate::tiers::NodeKind;
use crate::topology::{HYPERVISOR_NOT_KNOWN, Identity, Machine, UNKNOWN_HYPERVISOR};

/// The version of the contract; raised when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// One run of the program: the data that every output format is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The numbers that most readers look for.
    pub summary: Option<Summary>,
    /// The program.
    pub tool: Tool,
    /// This run, and the name of the machine.
    pub run: Run,
    /// Its command line.
    pub argv: Vec<String>,
    /// When it started.
    pub started: Moment,
    /// When it ended.
    pub ended: Moment,
    /// Whether everything that was planned was measured.
    pub complete: bool,
    /// Why not.
    pub incomplete: Option<Incomplete>,
    /// The machine.
    pub machine: Machine,
    /// The kind of each node's memory, and how that is known; for `info` only. The plan has it if tiers are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_kinds: Vec<NodeKind>,
    /// The state it was in.
    pub environment: Environment,
    /// What was to be done; `null` for `info`.
    pub plan: Option<Plan>,
    /// Values that most results share, in files with more than a thousand of them; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<Box<Common>>,
    /// What was measured.
    pub results: Vec<Measurement>,
    /// Cells that were measured again: as a control of drift, or to confirm what looked wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Measurement>,
    /// Transfers between every two of many CPUs, which are not in `results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<PairMatrix>,
    /// The program that `memgauge count` ran; absent for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramCount>>,
    /// Summaries of loaded-latency curves, whose points are in `results`.
    pub curves: Vec<CurveSummary>,
    /// The levels found in curves over the working set, whose points are in `results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelSummary>,
    /// What was published about machines of the same CPU generation. No verdict is made from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<PublishedSpan>,
    /// Kinds of numbers without comparable published values, and why; absent if every kind has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_reference: Option<Unreferenced>,
    /// What searches for interleave weights found; what they measured is in `results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interleaves: Vec<InterleaveSummary>,
    /// For each node and directory of persistent memory, the number of writers with the most bandwidth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best_writers: Vec<BestWriters>,
    /// For each node, directory and mix, the smallest blocks that reach the memory's bandwidth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_knees: Vec<AccessKnee>,
    /// The state of the machine at the beginning and at the end of the run, by stamps; absent if none was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Box<MachineState>>,
    /// What a watch of the machine saw; absent for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Box<Watch>>,
    /// Where the memory of programs lies; absent for other commands than `where`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residency: Option<Box<Residency>>,
    /// How the time was spent.
    pub timing: Timing,
    /// What a reader should know.
    pub notes: Vec<Note>,
    /// The verdict of a health check; absent for other commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

impl Report {
    /// A complete report of a machine, in which nothing was planned or measured.
    pub fn of_machine(tool: Tool, machine: Machine) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            summary: None,
            tool,
            run: Run::default(),
            argv: Vec::new(),
            started: Moment::default(),
            ended: Moment::default(),
            complete: true,
            incomplete: None,
            machine,
            memory_kinds: Vec::new(),
            environment: Environment::default(),
            plan: None,
            common: None,
            results: Vec::new(),
            repeats: Vec::new(),
            matrices: Vec::new(),
            program: None,
            curves: Vec::new(),
            levels: Vec::new(),
            references: Vec::new(),
            no_reference: None,
            interleaves: Vec::new(),
            best_writers: Vec::new(),
            access_knees: Vec::new(),
            state: None,
            watch: None,
            residency: None,
            timing: Timing::default(),
            notes: Vec::new(),
            health: None,
        }
    }

    /// Everything that was measured, repeats included.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.results.iter().chain(&self.repeats)
    }

    /// Whether nothing was measured or planned to be.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty() && self.matrices.is_empty()
    }

    /// How many numbers have a value, without repeats.
    pub fn measured(&self) -> usize {
        let pairs: usize = self.matrices.iter().map(|m| m.pairs().count()).sum();
        self.results.iter().filter(|m| m.estimate.value.is_some()).count() + pairs
    }

    /// Why the memory at these coordinates is only a stand-in for persistent memory: files on tmpfs, in the page cache or on an emulated
    /// device, or a node whose memory is such a device. `None` where nothing says so.
    pub fn stand_in(&self, at: &Coordinates) -> Option<&str> {
        if let Some(path) = &at.memory_dir {
            let directories = self.plan.iter().flat_map(|plan| &plan.directories);
            return directories.into_iter().find(|dir| dir.file.path == *path)?.file.volatile.as_deref();
        }
        self.machine.topology.emulated_persistent(at.memory_node()?)
    }

    /// Whether both are of one machine, by its id. Without one it is not known.
    pub fn is_of_same_machine(&self, other: &Self) -> bool {
        let id = |report: &Self| report.run.host.as_ref().and_then(|host| host.machine_id_hash.clone());
        id(self).is_some() && id(self) == id(other)
    }

    /// Whether the two are of different hypervisors, or one is of a virtual machine and the other is not. An unknown hypervisor does not differ,
    /// nor do two names on one machine (by its id): root reads more precise names than users.
    pub fn is_on_another_hypervisor_than(&self, other: &Self) -> bool {
        let one_machine = self.is_of_same_machine(other);
        let [a, b] = [self, other].map(|report| &report.machine.identity);
        let named = |identity: &Identity| {
            identity.hypervisor_for_all().filter(|name| ![UNKNOWN_HYPERVISOR, HYPERVISOR_NOT_KNOWN].contains(name)).map(str::to_owned)
        };
        match (a.is_virtual(), b.is_virtual()) {
            (Some(true), Some(true)) => !one_machine && named(a).zip(named(b)).is_some_and(|(a, b)| a != b),
            (Some(a), Some(b)) => a != b,
            _ => false,
        }
    }

    /// The report as a file of many results has it: what they have alike is said once. `None` if there are few.
    pub fn compact(&self) -> Option<Self> {
        if self.results.len() <= MANY_RESULTS {
            return None;
        }
        let common = Common::from_results(self.measurements());
        let mut compact = self.clone();
        compact.with_value().for_each(|m| common.take_from(m));
        compact.common = Some(Box::new(common));
        Some(compact)
    }

    /// Gives each result what its file says once, so that nobody else needs to know of it.
    pub fn expand(&mut self) {
        if let Some(common) = self.common.take() {
            self.with_value().for_each(|m| common.give_to(m));
        }
    }

    fn with_value(&mut self) -> impl Iterator<Item = &mut Measurement> {
        self.results.iter_mut().chain(&mut self.repeats).filter(|m| m.estimate.value.is_some())
    }

    /// Removes the kernels that were tried, which only `--verbose` asks for.
    pub fn remove_trials(&mut self) {
        for m in self.results.iter_mut().chain(&mut self.repeats) {
            m.evidence.kernels_tried = Vec::new();
        }
    }
}

/// Why not everything that was planned was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "cause", rename_all = "kebab-case")]
pub enum Incomplete {
    /// A signal ended the run.
    Signal {
        /// Its name, such as `SIGINT`.
        name: String,
    },
    /// The time given to the run was not enough.
    OutOfTime,
    /// Some cells could not be measured; their results say why, or notes where a scan got less memory than planned.
    CellsMissing,
    /// The program that is counted could not be started again.
    ProgramNotRestarted,
    /// A signal ended the program that is counted before its last run.
    ProgramKilled,
}

impl From<&NotMeasured> for Incomplete {
    fn from(why: &NotMeasured) -> Self {
        // The caller knows whether a signal interrupted the run.
        if matches!(why, NotMeasured::Interrupted | NotMeasured::OutOfTime) { Self::OutOfTime } else { Self::CellsMissing }
    }
}

impl Incomplete {
    /// Why the whole is incomplete, from why two parts are: the time was over, where it was for one of them.
    pub fn join(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        if [&first, &second].contains(&&Some(Self::OutOfTime)) { Some(Self::OutOfTime) } else { first.or(second) }
    }
}

/// One run, and the name of the machine that it ran on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// A random id, different for every run.
    pub id: String,
    /// The user's labels, from `--label KEY=VALUE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The name of the machine; absent with `--no-host-identity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// The name of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Its name; `null` where it has none.
    pub hostname: Option<String>,
    /// A keyed hash of `/etc/machine-id`. It is the same in every run on this installation, and cannot be compared with the hashes of other
    /// programs. `null` if the machine has no id.
    pub machine_id_hash: Option<String>,
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// `memgauge`.
    pub name: String,
    /// Release.
    pub version: String,
    /// Commit that it was built from, when the build knew it.
    pub commit: Option<String>,
}

/// Seconds spent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timing {
    /// Allocating, first touch, building chains, choosing kernels.
    pub setup_s: f64,
    /// Measuring.
    pub measuring_s: f64,
    /// All.
    pub total_s: f64,
    /// What most of the set-up was spent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetUp>,
}

/// Parts of the set-up, in seconds. The rest is waking threads, watching the machine and computing intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetUp {
    /// Mapping buffers, first touch, reading back their pages and nodes.
    pub buffers_s: f64,
    /// Laying out chases and writing them into memory.
    pub chains_s: f64,
    /// Waiting until the core's frequency is steady, and until a full-random chase in new memory is.
    pub warm_up_s: f64,
    /// Bursts that only decide how to measure: which kernel is fastest, whether stores read first.
    pub trials_s: f64,
}
