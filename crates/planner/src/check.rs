//! Whether what the user names exists, may be used and fits together.

use std::collections::BTreeMap;

use memgauge_model::directory::FileBacking;
use memgauge_model::distribution::BATCHES;
use memgauge_model::experiment::{Hops, PageRequest};
use memgauge_model::plan::{BufferPlan, Step};
use memgauge_model::spec::{BandwidthShape, Spec, Task};
use memgauge_model::topology::{Machine, PagePool};
use memgauge_model::traffic::{Access, LineUse, Mix};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Verb, Way, Ways, Words};

use crate::requested::Requested;

/// Bytes of a cache line: the step of every kernel here, and the line size if the machine states none.
pub(super) const LINE: u64 = 64;

/// Why no plan can be made. Every message names the cause and what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The request itself is wrong on this machine.
    #[error("{0}")]
    Request(Problem),
    /// The request is valid, but this process may not use what it needs.
    #[error("{0}")]
    Unavailable(Problem),
}

impl PlanError {
    /// A problem and its ways out.
    pub const fn problem(&self) -> &Problem {
        match self {
            Self::Request(problem) | Self::Unavailable(problem) => problem,
        }
    }
}

pub(super) fn invalid<T>(why: impl Into<Problem>) -> Result<T, PlanError> {
    Err(PlanError::Request(why.into()))
}

pub(super) fn unavailable<T>(why: impl Into<Problem>) -> Result<T, PlanError> {
    Err(PlanError::Unavailable(why.into()))
}

/// The requested CPUs, if all of them may be used.
pub(super) fn check_cpus(requested: &IdSet, machine: &Machine) -> Result<IdSet, PlanError> {
    let (online, system) = (machine.topology.online(), machine.identity.system.words());
    if requested.is_empty() {
        return invalid(words![Knob::Cpus, " names no CPU; online are {online}"]);
    }
    for cpu in requested.iter() {
        if machine.topology.offline.contains(cpu) {
            let what = format!("CPU {cpu} is offline; online are {online}");
            return invalid(match system.switches_cpus {
                true => Problem::new(what, words!["'", Verb::Info, "' says how to switch it on"]),
                false => what.into(),
            });
        }
        if !online.contains(cpu) {
            return invalid(format!("there is no CPU {cpu}; online are {online}"));
        }
        if !machine.allowed.cpus.contains(cpu) {
            let (may, why) = (&machine.allowed.cpus, system.cpu_left_out);
            return unavailable(format!("this process may not use CPU {cpu}; it may use {may} ({why})"));
        }
    }
    Ok(requested.clone())
}

/// Checks that `--memory-dir` fits the other options.
pub(super) fn check_directory(spec: &Spec, machine: &Machine) -> Result<(), PlanError> {
    let Some(dir) = &spec.memory_dir else { return Ok(()) };
    let path = &dir.file.path;
    if matches!(spec.task, Task::Suite(_) | Task::C2c(_) | Task::Scan(_)) {
        return invalid(words![Knob::MemoryDir, " is for 'latency', 'bandwidth' and 'loaded'"]);
    }
    if spec.pages != PageRequest::Auto {
        return invalid(
            words![
                Knob::Pages,
                format!(" {} does not go with ", spec.pages.name()),
                Knob::MemoryDir,
                ": the file system at {path} chooses the pages of its files"
            ]
            .advise(Way::LeaveOut(Knob::Pages)),
        );
    }
    let refused = |why: String| words![Knob::Node, " does not go with ", Knob::MemoryDir, " here: ", why];
    match dir.file.backing {
        FileBacking::Dax if spec.nodes.is_some() => {
            invalid(refused(format!("files in {path} are where their device is (DAX)")).advise(Way::LeaveOut(Knob::Node)))
        }
        FileBacking::PageCache if spec.nodes.is_some() => {
            let out = Ways::from(Way::LeaveOut(Knob::Node));
            let ways = match machine.identity.system.words().bindable_directory {
                Some(give) => out.or(give),
                None => out,
            };
            invalid(refused(format!("the page cache of {path} cannot be bound to a node")).advise(ways))
        }
        _ => Ok(()),
    }
}

/// The requested nodes, if all of them have memory that may be used.
pub(super) fn check_nodes(requested: &IdSet, machine: &Machine) -> Result<IdSet, PlanError> {
    let nodes: IdSet = machine.topology.nodes.iter().filter(|n| n.has_memory()).map(|n| n.id).collect();
    if requested.is_empty() {
        return invalid(words![Knob::Node, " names no node; nodes with memory are {nodes}"]);
    }
    for node in requested.iter() {
        match machine.topology.node(node) {
            None => return invalid(format!("there is no node {node}; nodes with memory are {nodes}")),
            Some(n) if !n.has_memory() => {
                return invalid(format!("node {node} has CPUs but no memory; nodes with memory are {nodes}"));
            }
            Some(_) if !machine.allowed.nodes.contains(node) => {
                return unavailable(format!(
                    "this process may not use the memory of node {node}; it may use {}{}",
                    machine.allowed.nodes,
                    machine.identity.system.words().node_limits_in_brackets
                ));
            }
            Some(_) => {}
        }
    }
    Ok(requested.clone())
}

/// Checks that the options of the loaders' traffic fit together.
pub(super) fn check_traffic(spec: &Spec, requested: &Requested<'_>) -> Result<(), PlanError> {
    let traffic = requested.traffic;
    if let Some(stride) = traffic.stride.filter(|s| s.0 < LINE || s.0 % LINE != 0) {
        return invalid(format!("a stride of {stride} is not a multiple of {LINE} B"));
    }
    if traffic.window.is_some() && traffic.access != Access::Random {
        return invalid("a random window needs random access");
    }
    if traffic.stride.is_some() && traffic.access == Access::Random {
        return invalid("random access has no stride; leave one of them out");
    }
    if traffic.line != LineUse::Whole && (traffic.access == Access::Random || traffic.stride.is_some_and(|s| s.0 > LINE)) {
        return invalid("only traffic that visits every line in order can touch parts of lines, write them back or sum them up");
    }
    if traffic.line != LineUse::Checked && !traffic.patterns.is_empty() {
        return invalid(words!["patterns are for lines that are checked; add ", Knob::Line, " check"]);
    }
    if traffic.line != LineUse::Checked && traffic.hold.is_some() {
        return invalid(words!["a hold time is for lines that are checked; add ", Knob::Line, " check"]);
    }
    let reads = |mix: &Mix| *mix == Mix::AllReads;
    let writes = requested.mixes.iter().find(|m| !reads(m)).copied();
    let peak = match &spec.task {
        Task::Suite(_) => true,
        Task::Bandwidth(bandwidth) => matches!(bandwidth.shape, BandwidthShape::Peak | BandwidthShape::Search),
        _ => false,
    };
    let writes = writes.or((peak && requested.mixes.is_empty()).then_some(Mix::R1W1));
    match writes {
        Some(mix) if traffic.shared => invalid(format!("loaders that share one buffer can only read it; the mix {mix} writes")),
        Some(mix) if traffic.line == LineUse::Checked => {
            invalid(format!("a checksum needs data that nobody changes; the mix {mix} writes"))
        }
        _ => Ok(()),
    }
}

/// Checks that a pool named with `--pages` has enough pages for at least one cell. If it has, the cells that lack pages say so themselves.
pub(super) fn check_pool(spec: &Spec, machine: &Machine, steps: &[Step]) -> Result<(), PlanError> {
    // Scans take what there is, and interleaved pages are on several nodes.
    let Some(page) = machine.pool_page(spec.pages).filter(|_| !matches!(spec.task, Task::Scan(_) | Task::Interleave(_))) else {
        return Ok(());
    };
    let pool = |node: u32| machine.topology.node(node).and_then(|node| node.pools.iter().find(|pool| pool.page == page));
    let lacks = |buffer: &&BufferPlan| {
        let lacks = |node| buffer.bytes_on(node).div_ceil(page.0) > pool(node).map_or(0, |pool| pool.free);
        buffer.directory.is_none() && buffer.nodes().iter().any(lacks)
    };
    let mut needed: BTreeMap<u32, u64> = BTreeMap::new();
    for cell in steps.iter().flat_map(|step| &step.cells) {
        let buffers = cell.work.buffers();
        if !buffers.iter().any(lacks) {
            return Ok(());
        }
        let mut of_cell: BTreeMap<u32, u64> = BTreeMap::new();
        for buffer in buffers.into_iter().filter(|buffer| buffer.directory.is_none()) {
            for node in buffer.nodes().iter() {
                *of_cell.entry(node).or_default() += buffer.bytes_on(node).div_ceil(page.0);
            }
        }
        for (node, pages) in of_cell {
            let most = needed.entry(node).or_default();
            *most = pages.max(*most);
        }
    }
    let short = needed.into_iter().find(|(node, pages)| *pages > pool(*node).map_or(0, |pool| pool.free));
    short.map_or(Ok(()), |(node, pages)| unavailable(pool_too_small(machine, Some(node), pool(node), page, pages)))
}

/// Why the pool of a node, or of the machine, cannot give `needed` pages, and the command that makes it large enough.
pub(super) fn pool_too_small(machine: &Machine, node: Option<u32>, pool: Option<&PagePool>, page: Bytes, needed: u64) -> Problem {
    let auto = Way::set(Knob::Pages, "auto");
    let change = |total| machine.pool_change(node, page, total);
    let Some((pool, how)) = pool.and_then(|pool| Some((pool, change(pool.total_for(needed))?))) else {
        let (what, boot) = no_pool(page, needed);
        return Problem::new(what, Way::from(boot).or(auto));
    };
    let total = pool.total_for(needed);
    let boot = if page == Bytes::gib(1) {
        format!(" (when memory is too fragmented: boot with hugepagesz=1G hugepages={total})")
    } else {
        String::new()
    };
    let whose = node.filter(|_| machine.topology.nodes.len() > 1).map_or("the".to_owned(), |node| format!("node {node}'s"));
    let what = format!("{whose} pool of {page} pages has {} free of {}, and {needed} are needed", pool.free, pool.total);
    Problem::new(what, Way::from(format!("reserve pages {how}{boot}")).or_else(auto))
}

/// Says that the kernel has no pool of pages of the size `page`, and how to get one with `pages` pages.
pub(super) fn no_pool(page: Bytes, pages: u64) -> (String, String) {
    let size = if page == Bytes::gib(1) { "1G" } else { "2M" };
    (format!("this kernel has no pool of {page} pages"), format!("boot it with hugepagesz={size} hugepages={pages}"))
}

/// The longest file name on Linux: `shm_open` makes a file.
const MAX_NAME_BYTES: usize = 255;

/// Checks that what the options of the chase name exists, may be used and fits together.
pub(super) fn check_chase(spec: &Spec, requested: &Requested<'_>, machine: &Machine) -> Result<(), PlanError> {
    let chase = &requested.chase;
    let (chaser, node) = match &spec.task {
        Task::Loaded(loaded) => (loaded.curve.cpu, loaded.curve.node),
        Task::C2c(transfer) => (transfer.reader, None),
        _ => (None, None),
    };
    let chasing: Words = "the chase's CPU".into();
    for (what, cpu) in [(chasing, chaser), (Knob::TouchCpu.into(), chase.touch)] {
        if let Some(cpu) = cpu {
            check_cpus(&IdSet::one(cpu), machine).map_err(|e| named(what, e))?;
        }
    }
    if let Some(node) = node {
        check_nodes(&IdSet::one(node), machine).map_err(|e| named(Knob::ProbeNode, e))?;
        if chase.touch.is_some() {
            return invalid(both(Knob::ProbeNode, Knob::TouchCpu, "where the chase's buffer is"));
        }
    }
    if chase.touch.is_some() && spec.nodes.is_some() && !matches!(spec.task, Task::Loaded(_)) {
        return invalid(both(Knob::Node, Knob::TouchCpu, "where the buffer is"));
    }
    // Only matrices among the tasks that name nodes have this option.
    if chase.touch.is_some() && requested.names_nodes {
        return invalid(words![Knob::TouchCpu, " places one buffer, and a matrix has one for each node"].advise(words![
            "leave ",
            Knob::Matrix,
            " or ",
            Knob::TouchCpu,
            " out"
        ]));
    }
    let backing = spec.memory_dir.as_ref().map(|d| d.file.backing);
    if node.is_some() && matches!(backing, Some(FileBacking::Dax | FileBacking::PageCache)) {
        return invalid(
            words![Knob::ProbeNode, " does not go with this ", Knob::MemoryDir, ": its files are not placed by node"]
                .advise(Way::LeaveOut(Knob::ProbeNode)),
        );
    }
    if chase.hops == Some(Hops::Count(0)) {
        return invalid(words![Knob::Hops, " 0 chases nothing"].advise("give a number of hops, or 'pass' for one pass over the buffer"));
    }
    if chase.hops.is_some() && spec.time.is_some() {
        return invalid(both(Knob::Hops, Knob::Time, "how long to chase"));
    }
    if let Some(batch) = chase.histogram.filter(|batch| !BATCHES.contains(batch)) {
        return invalid(format!("a histogram cannot have batches of {batch} hops; give 1, 8 or 64"));
    }
    match &spec.start_signal {
        Some(name) if !is_name(name) => invalid(format!(
            "'{name}' cannot name shared memory: give 1 to {MAX_NAME_BYTES} characters without a slash, such as memgauge-start"
        )),
        _ => Ok(()),
    }
}

/// Two knobs that say the same thing.
fn both(one: Knob, other: Knob, what: &'static str) -> Problem {
    words![one, " and ", other, " both say ", what].advise("leave one of them out")
}

/// Whether `shm_open` accepts it, with a slash in front.
fn is_name(name: &str) -> bool {
    let bare = name.strip_prefix('/').unwrap_or(name);
    (1..=MAX_NAME_BYTES).contains(&bare.len()) && !bare.contains(['/', '\0']) && bare != "." && bare != ".."
}

/// Adds what an error is about.
pub(super) fn named(what: impl Into<Words>, error: PlanError) -> PlanError {
    let named = |problem: Problem| Problem { what: words![": "].after(what).followed_by(problem.what), ..problem };
    match error {
        PlanError::Request(problem) => PlanError::Request(named(problem)),
        PlanError::Unavailable(problem) => PlanError::Unavailable(named(problem)),
    }
}
