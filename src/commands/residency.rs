//! `memgauge where`: on which nodes the memory of programs lies, and what that costs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use memgauge_analysis::residency::{price, prices};
use memgauge_model::experiment::{ChaseOrder, PageRequest};
use memgauge_model::experiment_table::PanelName;
use memgauge_model::result::{
    AccessShare, Incomplete, PriceSource, Prices, ProcessMemory, Report, Residency, ResidencyPoint, UnseenProcess, WhyUnseen,
};
use memgauge_model::spec::{BandwidthShape, LatencyShape, Spec, Task};
use memgauge_model::stats::significant;
use memgauge_model::topology::Machine;
use memgauge_model::units::Bytes;
use memgauge_os::clock::{self, Clock};
use memgauge_os::residency::{self, ThreadWatch};
use memgauge_os::security::explained;
use memgauge_os::{process, program};

use super::count::{exit_code, not_started};
use crate::cli::residency::WhereArgs;
use crate::console::{Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::machine;
use crate::report;
use crate::runner::Runner;
use crate::signals::{self, Stop};
use crate::sinks::{Sinks, read_report};
use crate::state_folder;

/// How long processes are observed unless asked otherwise.
const OBSERVED: Duration = Duration::from_secs(1);
/// From one look at threads to the next: the kernel counts their time in hundredths of a second.
const LOOK: Duration = Duration::from_millis(50);
/// From one reading of a command's memory to the next; the first ones come sooner, for commands that end soon.
const EVERY: Duration = Duration::from_secs(1);
/// Looks and readings take at most a tenth of the time: the kernel holds up a process while its memory is read.
const ONE_IN: u32 = 10;
/// Readings that are kept. If there are more, every second one goes.
const MOST_POINTS: usize = 8_000;
/// Processes that a message names.
const NAMED: usize = 3;
/// The time in which prices are measured.
const MEASURE: Duration = Duration::from_secs(10);
/// The shares of the time left that latencies by node and bandwidths by node may take. Small machines need less.
const BY_NODE: [f64; 2] = [0.5, 0.6];
/// The shares that address translation with each of [`TRANSLATED`] then may take.
const TRANSLATION: [f64; 2] = [0.5, 1.0];
/// The pages whose translation is measured.
const TRANSLATED: [PageRequest; 2] = [PageRequest::Base, PageRequest::Thp];

/// Observes processes, and says what the place of their memory costs.
pub(crate) fn show_where(args: WhereArgs) -> anyhow::Result<ExitStatus> {
    args.report.output.check_figures(&PanelName::OF_RESIDENCY, "")?;
    let identity = args.report.identity()?;
    let root = machine::root();
    let subject = Subject::of(&args, root)?;
    let machine = machine::read(root)?;
    let mut report = report::blank(machine.clone(), root, &identity);
    let named = args.prices.as_deref().map(|path| read_prices(path, &report)).transpose()?;
    let stream = if args.command.is_empty() { Stream::Output } else { Stream::Error };
    let sinks = Sinks::of_results(&args.report.output, stream)?;
    let stop = signals::watch().context("cannot install signal handlers")?;
    let measured = if args.measure { measure(&machine, root, &stop, args.report.output.to.quiet)? } else { None };
    if stop.interruption().is_some() {
        return Ok(ExitStatus::INTERRUPTED);
    }
    let mut observer = Observer::new(root, &machine, args.every, args.touched);
    let mut status = None;
    if let Subject::Command = subject {
        match observer.run(&args) {
            Ok(code) => status = Some(code),
            Err(error) => return Ok(ExitStatus(not_started(&args.command, &error))),
        }
    } else {
        let time = args.time.or(args.every.is_none().then_some(OBSERVED));
        observer.follow(&subject, time, &|| stop.interruption().is_some());
    }
    let mut residency = observer.finish(&subject);
    if residency.processes.is_empty() && status.is_none() {
        // An earlier file stays.
        return if stop.interruption().is_some() { Ok(ExitStatus::INTERRUPTED) } else { Err(none_seen(&residency)) };
    }
    if identity.is_withheld() {
        withhold_names(&mut residency);
    }
    match measured.or(named) {
        Some(prices) => price(&mut residency, &machine, Some(prices)),
        None => price_as_kept(&mut residency, &report, &machine),
    }
    let seen = if residency.not_seen.is_empty() { ExitStatus::SUCCESS } else { ExitStatus::MEASURED_IN_PART };
    // A watch without an end is ended by a signal.
    if args.time.is_some() || args.every.is_none() {
        report.incomplete = stop.interruption();
        report.complete = report.incomplete.is_none();
    }
    report.residency = Some(Box::new(residency));
    report::end(&mut report);
    sinks.keep(&report)?;
    Ok(status.map_or(seen, ExitStatus))
}

/// Why no process was seen.
fn none_seen(residency: &Residency) -> anyhow::Error {
    let named = residency.not_seen.iter().take(NAMED).map(|unseen| {
        let name = unseen.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        format!("process {}{name}: {}", unseen.pid, unseen.why)
    });
    let more = residency.not_seen.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    anyhow::anyhow!("the memory of no process was seen: {}", named.chain(more).collect::<Vec<_>>().join("; "))
}

/// Whose memory is looked at.
enum Subject {
    Processes(BTreeSet<u32>),
    Group(PathBuf),
    Command,
}

impl Subject {
    /// # Errors
    /// When there is no such control group.
    fn of(args: &WhereArgs, root: &Path) -> Result<Self, UsageError> {
        match &args.cgroup {
            Some(path) => {
                residency::of_cgroup(root, path).map_err(|why| UsageError(format!("--cgroup: {why}")))?;
                Ok(Self::Group(path.clone()))
            }
            None if args.command.is_empty() => Ok(Self::Processes(args.pids.iter().copied().collect())),
            None => Ok(Self::Command),
        }
    }

    /// Its processes now.
    fn pids(&self, root: &Path) -> BTreeSet<u32> {
        let own = std::process::id();
        match self {
            Self::Processes(pids) => pids.clone(),
            Self::Group(path) => {
                let mut pids = residency::of_cgroup(root, path).unwrap_or_default();
                pids.remove(&own);
                pids
            }
            Self::Command => {
                let mut pids = residency::with_children(root, &[own].into());
                pids.remove(&own);
                pids
            }
        }
    }
}

/// Looks at threads often and reads memory now and then.
struct Observer<'a> {
    root: &'a Path,
    machine: &'a Machine,
    every: Option<Duration>,
    /// Whether pages count only if they were touched.
    touched: bool,
    /// Processes whose touched pages are watched, and why those of others are not.
    watched: BTreeSet<u32>,
    not_watched: BTreeMap<u32, String>,
    started: bool,
    threads: ThreadWatch,
    began: Instant,
    /// When threads were looked at last.
    looked: Instant,
    processes: Vec<ProcessMemory>,
    /// Memory that was free when these were read.
    free: BTreeMap<u32, Bytes>,
    seen: BTreeSet<u32>,
    not_seen: BTreeMap<u32, UnseenProcess>,
    points: Vec<ResidencyPoint>,
    /// Seconds that the threads of each process had run at the last reading, by CPU.
    ran: BTreeMap<u32, BTreeMap<u32, f64>>,
}

impl<'a> Observer<'a> {
    fn new(root: &'a Path, machine: &'a Machine, every: Option<Duration>, touched: bool) -> Self {
        let now = Instant::now();
        Self {
            root,
            machine,
            every,
            touched,
            watched: BTreeSet::new(),
            not_watched: BTreeMap::new(),
            started: false,
            threads: ThreadWatch::new(root),
            began: now,
            looked: now,
            processes: Vec::new(),
            free: BTreeMap::new(),
            seen: BTreeSet::new(),
            not_seen: BTreeMap::new(),
            points: Vec::new(),
            ran: BTreeMap::new(),
        }
    }

    /// Looks at the threads of these processes. Returns how many there are.
    fn look(&mut self, pids: &BTreeSet<u32>) -> usize {
        self.looked = Instant::now();
        self.threads.look(pids.iter().copied())
    }

    /// Observes until the time is over, all have ended, or a signal asks to stop.
    fn follow(&mut self, subject: &Subject, time: Option<Duration>, stop: &dyn Fn() -> bool) {
        let end = time.map(|time| self.began + time);
        let mut due = Some(self.began);
        loop {
            let begun = Instant::now();
            let pids = subject.pids(self.root);
            let threads = self.look(&pids);
            let is_over = stop() || threads == 0 || end.is_some_and(|end| begun >= end);
            if due.is_some_and(|due| begun >= due) || (is_over && (self.every.is_none() || self.touched)) {
                let seen = self.read(&pids);
                if seen.is_empty() && self.processes.is_empty() {
                    // Nothing of them can be seen.
                    return;
                }
                self.keep(seen, subject);
                let earliest = Instant::now() + begun.elapsed() * (ONE_IN - 1);
                due = self.every.map(|every| (due.unwrap_or(begun) + every).max(earliest));
            }
            if is_over || self.processes.iter().all(|process| self.has_ended(process.pid)) {
                return;
            }
            pause(LOOK.max(begun.elapsed() * (ONE_IN - 1)), end, stop);
        }
    }

    /// Keeps what was read. Of processes that were named, those that have ended stay as they were.
    fn keep(&mut self, seen: Vec<ProcessMemory>, subject: &Subject) {
        if seen.is_empty() {
            return;
        }
        let before = std::mem::replace(&mut self.processes, seen);
        if matches!(subject, Subject::Processes(_)) {
            let now: BTreeSet<u32> = self.processes.iter().map(|process| process.pid).collect();
            self.processes.extend(before.into_iter().filter(|process| !now.contains(&process.pid)));
        }
        self.free = residency::free_by_node(self.root);
    }

    /// Whether a process has ended since it was seen. One that nobody has waited for has no memory.
    fn has_ended(&self, pid: u32) -> bool {
        self.not_seen.get(&pid).is_some_and(|unseen| matches!(unseen.why, WhyUnseen::Gone | WhyUnseen::NoMemory))
    }

    /// Runs a command and observes it until it ends. Returns the exit status that says how it ended.
    ///
    /// # Errors
    /// When it cannot be started.
    fn run(&mut self, args: &WhereArgs) -> std::io::Result<u8> {
        let mut command = Command::new(&args.command[0]);
        command.args(&args.command[1..]);
        self.started = true;
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| self.follow_command(&|| ended.load(Ordering::SeqCst)));
            let run = program::run(&mut command);
            ended.store(true, Ordering::SeqCst);
            run.map(|ended| exit_code(&ended))
        })
    }

    /// Reads the memory of a command soon and then ever more seldom, and keeps the reading with most memory.
    fn follow_command(&mut self, ended: &dyn Fn() -> bool) {
        let every = self.every.unwrap_or(EVERY);
        let (mut step, mut due, mut most) = (LOOK, self.began + LOOK, 0);
        while !ended() {
            let begun = Instant::now();
            let pids = Subject::Command.pids(self.root);
            self.look(&pids);
            if begun >= due {
                let seen = self.read(&pids);
                let present = seen.iter().map(|process| process.memory.present.0).sum();
                // Of several with most memory the last, which has seen most of what is touched.
                if present >= most {
                    most = present;
                    self.keep(seen, &Subject::Command);
                }
                step = (step * 2).min(every);
                due = (due + step).max(Instant::now() + begun.elapsed() * (ONE_IN - 1));
            }
            pause(LOOK.min(step).max(begun.elapsed() * (ONE_IN - 1)), None, ended);
        }
    }

    /// Reads the memory of these processes, and adds a point.
    fn read(&mut self, pids: &BTreeSet<u32>) -> Vec<ProcessMemory> {
        let mut seen = Vec::new();
        for pid in pids {
            match residency::read(self.root, *pid) {
                Ok(mut process) => {
                    if !self.is_watched(*pid) {
                        process.memory.touched = None;
                    }
                    self.not_seen.remove(pid);
                    self.seen.insert(*pid);
                    seen.push(process);
                }
                Err(unseen) => drop(self.not_seen.insert(*pid, unseen)),
            }
        }
        if seen.is_empty() {
            return seen;
        }
        let by_node = Residency { processes: seen.clone(), ..Residency::default() }.by_node();
        let accesses = self.accesses(&seen);
        self.points.push(ResidencyPoint { at: clock::moment(), processes: seen.len() as u32, by_node, accesses, latency_ns: None });
        if self.points.len() > MOST_POINTS {
            let mut nth = 0_u64;
            // The first stays.
            self.points.retain(|_| {
                nth += 1;
                !nth.is_multiple_of(2)
            });
        }
        seen
    }

    /// Whether the pages that a process touches were watched until now: since it was first seen, or, if it is younger than this program, since it was
    /// started. From now on they are, if the kernel lets it.
    fn is_watched(&mut self, pid: u32) -> bool {
        if !self.touched || self.watched.contains(&pid) {
            return self.touched;
        }
        let is_younger = self.threads.is_younger(pid);
        if !is_younger && let Err(error) = residency::forget_touched(self.root, pid) {
            self.not_watched.entry(pid).or_insert_with(|| explained(&error));
            return false;
        }
        self.watched.insert(pid);
        is_younger
    }

    /// Says of how many processes all pages count although it was asked for those that are touched.
    fn tell_not_watched(&self, processes: &[ProcessMemory]) {
        let all: Vec<&ProcessMemory> = processes.iter().filter(|process| process.memory.touched.is_none()).collect();
        let Some(first) = all.first().filter(|_| self.touched) else { return };
        let why = self.not_watched.get(&first.pid).map_or("there was one reading only", String::as_str);
        let (some, of) = (all.len(), processes.len());
        let message =
            format!("touched pages of {some} of {of} processes are not known, such as process {}: {why}; all pages count", first.pid);
        Program::MEMGAUGE.message(message);
    }

    /// Shares of the accesses of these processes since the last reading, by the time that their threads ran.
    fn accesses(&mut self, seen: &[ProcessMemory]) -> Vec<AccessShare> {
        let mut shares: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for process in seen {
            let now = self.threads.cpu_s(process.pid);
            let before = self.ran.insert(process.pid, now.clone()).unwrap_or_default();
            let used = process.used_by_node();
            let bytes: f64 = used.values().map(|bytes| bytes.0 as f64).sum();
            for (cpu, s) in now {
                let ran = s - before.get(&cpu).unwrap_or(&0.0);
                let Some(cpu) = self.machine.topology.cpu(cpu).filter(|_| ran > 0.0 && bytes > 0.0) else { continue };
                for (memory, of_node) in used {
                    *shares.entry((cpu.node, *memory)).or_default() += ran * of_node.0 as f64 / bytes;
                }
            }
        }
        let whole: f64 = shares.values().sum();
        let share =
            |((cpu_node, memory_node), share): ((u32, u32), f64)| AccessShare { cpu_node, memory_node, share: significant(share / whole) };
        shares.into_iter().map(share).collect()
    }

    fn finish(mut self, subject: &Subject) -> Residency {
        let mut processes = std::mem::take(&mut self.processes);
        processes.iter_mut().for_each(|process| self.threads.add_to(process));
        processes.sort_by_key(|process| std::cmp::Reverse(process.memory.present));
        self.tell_not_watched(&processes);
        // One that was seen has ended since. Of a group and of a command's children, some end before they are looked at.
        let is_named = matches!(subject, Subject::Processes(_));
        let is_finding = |unseen: &UnseenProcess| is_named || !matches!(unseen.why, WhyUnseen::Gone | WhyUnseen::NoMemory);
        let not_seen = self.not_seen.into_values().filter(|unseen| !self.seen.contains(&unseen.pid) && is_finding(unseen));
        Residency {
            not_seen: not_seen.collect(),
            processes,
            started: self.started,
            observed_s: (self.looked - self.began).as_secs_f64(),
            free: self.free,
            points: self.points,
            numa_balancing: residency::numa_balancing(self.root),
            ..Residency::default()
        }
    }
}

/// Sleeps for a time, but not behind `end`, nor once it is over.
fn pause(time: Duration, end: Option<Instant>, is_over: &dyn Fn() -> bool) {
    let until = Instant::now() + time;
    let until = end.map_or(until, |end| until.min(end));
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero() && !is_over()) {
        process::sleep(left.min(LOOK));
    }
}

/// The prices in a file, which must be of this machine.
fn read_prices(path: &Path, observed: &Report) -> Result<Prices, UsageError> {
    let report = read_report(path)?;
    let known = |report: &Report| report.run.host.as_ref().is_some_and(|host| host.machine_id_hash.is_some());
    let alike = report.machine.identity.model_name == observed.machine.identity.model_name;
    if !alike || (known(&report) && known(observed) && !report.is_of_same_machine(observed)) {
        return Err(UsageError::file(path, "is a result of another machine; measure on this one with memgauge latency --matrix -o FILE"));
    }
    let none = || UsageError::file(path, "has no idle latency by node; make it with memgauge latency --matrix -o FILE");
    prices(&report, PriceSource::File { path: path.display().to_string() }).ok_or_else(none)
}

/// Prices it by the last check of this machine that has the latencies which that takes.
fn price_as_kept(residency: &mut Residency, observed: &Report, machine: &Machine) {
    let checks = state_folder::kept_checks().into_iter().rev().filter(|check| check.is_of_same_machine(observed));
    for prices in checks.filter_map(|check| prices(&check, PriceSource::Kept)) {
        let mut priced = residency.clone();
        price(&mut priced, machine, Some(prices));
        if priced.cost.is_some() {
            *residency = priced;
            return;
        }
    }
    price(residency, machine, None);
}

/// Leaves out the names of processes and of what they have mapped.
fn withhold_names(residency: &mut Residency) {
    for process in &mut residency.processes {
        process.name = "process".to_owned();
        process.mappings.iter_mut().for_each(|mapping| mapping.name = None);
    }
    residency.not_seen.iter_mut().for_each(|unseen| unseen.name = None);
}

/// Measures latencies and bandwidths by node, and address translation; `None` if a signal ended that.
///
/// # Errors
/// When they cannot be planned or measured.
fn measure(machine: &Machine, root: &Path, stop: &Stop, quiet: bool) -> anyhow::Result<Option<Prices>> {
    let clock = Clock::calibrate(root);
    let mut latency = Task::latency(LatencyShape::Matrix);
    if let Task::Latency(latency) = &mut latency {
        latency.orders = vec![ChaseOrder::WindowLocal];
    }
    let by_node = [latency, Task::bandwidth(BandwidthShape::Matrix)].map(Spec::new);
    let translation = TRANSLATED.map(|pages| Spec { pages, ..Spec::new(Task::latency(LatencyShape::One)) });
    let blank = || report::blank(machine.clone(), root, &crate::host::HostIdentity::withheld());
    // Apart: latencies by node are all of the same kind of pages.
    let (mut of_nodes, mut of_pages) = (blank(), blank());
    let end = Instant::now() + MEASURE;
    let run = |spec: Spec, share: f64, measured: &mut Report| -> anyhow::Result<()> {
        let within = end.saturating_duration_since(Instant::now()).mul_f64(share);
        if within.is_zero() || stop.interruption().is_some() {
            return Ok(());
        }
        let plan = memgauge_planner::plan(&Spec { within: Some(within), ..spec }, machine, &memgauge_kernels::rows())?;
        let mut context = machine::context(machine, clock, stop.flag());
        context.deadline = Some(context.now() + within);
        Runner::begin(context, stop, quiet).measure(&plan, None, measured);
        Ok(())
    };
    by_node.into_iter().zip(BY_NODE).try_for_each(|(spec, share)| run(spec, share, &mut of_nodes))?;
    // Latencies by node are worth having without it.
    let _ = translation.into_iter().zip(TRANSLATION).try_for_each(|(spec, share)| run(spec, share, &mut of_pages));
    if matches!(stop.interruption(), Some(Incomplete::Signal { .. })) {
        return Ok(None);
    }
    if let Some(found) = prices(&of_nodes, PriceSource::Measured) {
        let translation_ns = prices(&of_pages, PriceSource::Measured).map(|prices| prices.translation_ns).unwrap_or_default();
        return Ok(Some(Prices { translation_ns, ..found }));
    }
    Program::MEMGAUGE.message("the latencies of this machine could not be measured");
    Ok(None)
}
