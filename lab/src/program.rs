//! memgauge as a user runs it, and its JSON.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memgauge_model::estimate::NotMeasured;
use memgauge_model::experiment::{Coordinates, Experiment};
use memgauge_model::plan::{Plan, Work};
use memgauge_model::result::{Measurement, PlacementStatus, Report};
use memgauge_model::units::IdSet;
use memgauge_model::wording::reasons;

use crate::contract::SHARE;
use crate::guest;

/// Where the image has it.
const MEMGAUGE: &str = "/bin/memgauge";

/// Far more than a short run needs on a guest: what takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A run without a limit of its own that takes longer hangs. It is ended, so that its test fails and says so, and not the guest.
const LONGEST: Duration = Duration::from_secs(180);
/// How often a run is made whose CPUs others had.
const TRIES: u32 = 4;
/// How the program begins to say that a measurement got no CPU time.
const CPU_TAKEN_AWAY: &str = "CPU taken away";

/// Others had the guest's CPUs, in every run of those that are repeated.
#[derive(Debug)]
pub struct NoCpuTime(String);

impl std::error::Error for NoCpuTime {}

impl std::fmt::Display for NoCpuTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "others had the CPUs: {}", self.0)
    }
}

/// A command line of memgauge, and the limits to run it under.
pub struct Memgauge {
    command: Command,
    json: PathBuf,
}

/// The outcome of a run.
pub struct Ran {
    /// Exit status; `None`: killed by a signal.
    pub status: Option<i32>,
    /// The result, when one was written.
    pub report: Option<Report>,
    /// Its standard error.
    pub stderr: String,
}

/// One that runs.
pub struct Running {
    child: Child,
    json: PathBuf,
}

fn program() -> Command {
    let mut command = Command::new(MEMGAUGE);
    // Each check is the first of its machine.
    command.env("MEMGAUGE_STATE", "");
    command
}

/// Commands whose runs have stamps unless that is refused. So has the suite, which has no name.
const STAMPED: [&str; 11] = ["latency", "bandwidth", "loaded", "c2c", "scan", "sweep", "quick", "run", "tiers", "pmem", "interleave"];

/// `memgauge LINE`, arguments separated by blanks, without the stamps of a run, which take as long as most measurements here. Arguments after
/// `--` are another program's.
pub fn memgauge(line: &str) -> Memgauge {
    let first = line.split_whitespace().next().unwrap_or_default();
    let measures = first.starts_with('-') || STAMPED.contains(&first) || line.starts_with("prefetch compare");
    with_result(&format!("{line}{}", if measures { " --no-stamp" } else { "" }))
}

/// The same with the options that the line has.
pub fn with_result(line: &str) -> Memgauge {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let name = format!("{}-{}.json", guest::current(), NEXT.fetch_add(1, Ordering::Relaxed));
    let json = Path::new(SHARE).join(name);
    let mut command = program();
    let (own, program) = line.split_at(line.find(" -- ").unwrap_or(line.len()));
    command.args(own.split_whitespace()).arg("--quiet").arg("--output").arg(&json).args(program.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Memgauge { command, json }
}

/// The same without options for a result, which commands that measure nothing refuse.
pub fn without_result(line: &str) -> Memgauge {
    let mut command = program();
    command.args(line.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Memgauge { command, json: PathBuf::new() }
}

/// `mlc LINE`, whose tables nobody reads.
pub fn drop_in(line: &str) -> Memgauge {
    without_result(&format!("mlc {line}"))
}

impl Memgauge {
    /// Under this memory policy (linux/mempolicy.h) over the nodes of this mask, as `numactl` starts a program.
    #[must_use]
    pub fn under_policy(mut self, mode: libc::c_int, nodes: u64) -> Self {
        let set = move || {
            // SAFETY: the mask has the 64 bits that the call is given; the call reads one bit fewer.
            let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, &raw const nodes, 65) };
            if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec of a process with one thread only one system call is made.
        unsafe { self.command.pre_exec(set) };
        self
    }

    /// In this control group.
    #[must_use]
    pub fn in_group(mut self, group: &Path) -> Self {
        let procs = group.join("cgroup.procs");
        // SAFETY: between fork and exec of a process with one thread only a file is written.
        unsafe { self.command.pre_exec(move || fs::write(&procs, "0")) };
        self
    }

    /// Makes the kernel refuse these system calls with `EPERM`, as a container runtime's filter does.
    #[must_use]
    pub fn without_calls(mut self, calls: &'static [libc::c_long]) -> Self {
        // SAFETY: between fork and exec of a process with one thread only memory is allocated and prctl is called.
        unsafe { self.command.pre_exec(move || refuse(calls)) };
        self
    }

    /// Makes this file empty, for this run only.
    #[must_use]
    pub fn hiding(mut self, file: &'static str) -> Self {
        // SAFETY: between fork and exec of a process with one thread only memory is allocated and system calls are made.
        unsafe { self.command.pre_exec(move || hide(file)) };
        self
    }

    /// With the result in this file.
    #[must_use]
    pub fn writing_to(mut self, json: &Path) -> Self {
        let mut command = program();
        command.args(self.command.get_args().map(|arg| if arg == self.json.as_os_str() { json.as_os_str() } else { arg }));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        (self.command, self.json) = (command, json.to_owned());
        self
    }

    /// As a user without privileges, the result in a folder of that user's.
    #[must_use]
    pub fn without_root(mut self) -> Self {
        let nobody = 65534;
        let folder = Path::new("/tmp/unprivileged");
        // If this fails, the program cannot write its result, and that error shows.
        let _ = fs::create_dir_all(folder).and_then(|()| std::os::unix::fs::chown(folder, Some(nobody), Some(nobody)));
        let json = folder.join(self.json.file_name().unwrap_or_default());
        self = self.writing_to(&json);
        self.command.uid(nobody).gid(nobody);
        self
    }

    /// Runs it to its end, and again where others had its CPUs: a guest's CPUs are threads of a host that may be busy.
    ///
    /// # Errors
    /// When it cannot be started or its result cannot be read.
    pub fn run(mut self) -> Result<Ran> {
        let mut once = || Running { child: self.spawn()?, json: self.json.clone() }.end();
        let mut ran = once()?;
        for _ in 1..TRIES {
            if !ran.wants_cpu_time() {
                break;
            }
            ran = once()?;
        }
        Ok(ran)
    }

    /// The same, which is not tested if others had the CPUs each time.
    fn run_with_cpu_time(self) -> Result<Ran> {
        let ran = self.run()?;
        if ran.status != Some(0) && ran.wants_cpu_time() {
            bail!(NoCpuTime(ran.stderr));
        }
        Ok(ran)
    }

    /// Runs it to its end, which must be that everything was measured.
    ///
    /// # Errors
    /// When it ends otherwise.
    pub fn measure(self) -> Result<Report> {
        let ran = self.run_with_cpu_time()?;
        ensure!(ran.status == Some(0), "exit status {:?}: {}", ran.status, ran.stderr);
        ran.report.context("it wrote no result")
    }

    /// The same, and the page that it prints of its result.
    ///
    /// # Errors
    /// When it ends otherwise, or its result cannot be printed.
    pub fn measure_and_print(self) -> Result<(Report, String)> {
        let json = self.json.clone();
        let ran = self.run_with_cpu_time()?;
        ensure!(ran.status == Some(0), "exit status {:?}: {}", ran.status, ran.stderr);
        let page = page(&json, &ran)?;
        Ok((ran.report.context("it wrote no result")?, page))
    }

    /// Runs it to its end, and prints the page of its result.
    ///
    /// # Errors
    /// When it wrote no result, or this cannot be printed.
    pub fn run_and_print(self) -> Result<(Ran, String)> {
        let json = self.json.clone();
        let ran = self.run()?;
        let page = page(&json, &ran)?;
        Ok((ran, page))
    }

    /// Its plan. It measures nothing.
    ///
    /// # Errors
    /// When it plans nothing.
    pub fn plan(mut self) -> Result<Plan> {
        let output = self.command.arg("--plan").output()?;
        ensure!(output.status.success(), "no plan: {}", String::from_utf8_lossy(&output.stderr));
        Ok(serde_json::from_slice(&fs::read(&self.json)?)?)
    }

    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(mut self) -> Result<Running> {
        let child = self.spawn()?;
        Ok(Running { child, json: self.json })
    }

    fn spawn(&mut self) -> Result<Child> {
        self.command.spawn().with_context(|| format!("cannot start {MEMGAUGE}"))
    }
}

/// The page of a result in a file.
fn page(json: &Path, ran: &Ran) -> Result<String> {
    let output = program().args(["render", "--verbose"]).arg(json).stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "render: {}: {} {}", output.status, String::from_utf8_lossy(&output.stderr), ran.stderr);
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs the drop-in, which must succeed, and returns its output. Repeats the run where others had the CPUs.
///
/// # Errors
/// When it ends otherwise; [`NoCpuTime`] where others had the CPUs each time.
pub fn mlc(line: &str) -> Result<String> {
    let mut said = String::new();
    for _ in 0..TRIES {
        let output = program().arg("mlc").args(line.split_whitespace()).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8(output.stdout)?);
        }
        said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Its reasons are words: mlc has no result in JSON.
        ensure!(said.contains(CPU_TAKEN_AWAY), "mlc {line}: {}: {said}", output.status);
    }
    bail!(NoCpuTime(said))
}

/// Starts a command line in a control group.
///
/// # Errors
/// When it cannot be started.
pub fn start_to_print(line: &str, group: &Path) -> Result<Child> {
    let procs = group.join("cgroup.procs");
    let mut command = program();
    command.args(line.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: between fork and exec of a process with one thread only a file is written.
    unsafe { command.pre_exec(move || fs::write(&procs, "0")) };
    command.spawn().with_context(|| format!("cannot start {MEMGAUGE}"))
}

/// The exit status of a command line that was started, and all that it printed.
///
/// # Errors
/// When a signal ends it.
pub fn printed(running: Child) -> Result<(i32, String)> {
    let output = running.wait_with_output()?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let status = output.status.code().with_context(|| format!("{}: {said}", output.status))?;
    Ok((status, said))
}

impl Running {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as nothing can be caught.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    /// Stops it, or lets it go on.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn stop(&self, stop: bool) -> Result<()> {
        // SAFETY: the process is a child that has not been waited for, so its number is nobody else's.
        let sent = unsafe { libc::kill(self.id() as libc::pid_t, if stop { libc::SIGSTOP } else { libc::SIGCONT }) };
        ensure!(sent == 0 && !self.has_ended(), "memgauge has ended");
        Ok(())
    }

    /// Waits until `seen` is true of it.
    ///
    /// # Errors
    /// When it is not within half a minute, or has ended.
    pub fn until(&self, what: &str, mut seen: impl FnMut(u32) -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !seen(self.id()) {
            ensure!(!self.has_ended(), "memgauge ended before it came to this: {what}");
            ensure!(Instant::now() < deadline, "memgauge did not come to this within 30 s: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Z: ended, and nobody has asked yet how.
    fn has_ended(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.id())).is_ok_and(|stat| stat.contains(") Z "))
    }

    /// The CPUs for which it has started measuring threads so far.
    pub fn workers(&self) -> IdSet {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten().flatten();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
        // The engine names them `cpu7`.
        tasks.filter_map(name).filter_map(|name| name.trim().strip_prefix("cpu")?.parse().ok()).collect()
    }

    /// Waits until it measures on one of `cpus`, and gives one on which it does not yet.
    ///
    /// # Errors
    /// When it does not come to that, or uses all of them already.
    pub fn idle_of(&self, cpus: &IdSet) -> Result<u32> {
        self.until("it measures on a CPU", |_| !self.workers().is_empty())?;
        cpus.difference(&self.workers()).last().context("it uses every CPU already")
    }

    /// Waits for its end, which must come within this time.
    ///
    /// # Errors
    /// When it does not, and is killed, or its result cannot be read.
    pub fn within(mut self, time: Duration) -> Result<Ran> {
        let deadline = Instant::now() + time;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                self.child.kill()?;
                let ran = self.wait()?;
                bail!("it did not end within {} s: {}", time.as_secs(), ran.stderr);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When its result cannot be read, or lacks something because others had the CPUs.
    pub fn wait(self) -> Result<Ran> {
        let ran = self.end()?;
        if ran.wants_cpu_time() {
            bail!(NoCpuTime(ran.stderr));
        }
        Ok(ran)
    }

    /// The same where it may lack CPU time.
    fn end(self) -> Result<Ran> {
        let pid = self.child.id() as i32;
        let (ended, end) = mpsc::channel::<()>();
        // It sleeps meanwhile: a process that looks often would disturb what is measured.
        let watchdog = std::thread::spawn(move || {
            let hangs = end.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout);
            // SAFETY: kill takes two numbers. At worst the process has ended and was waited for within these few instructions.
            hangs && unsafe { libc::kill(pid, libc::SIGKILL) } == 0
        });
        let output = self.child.wait_with_output();
        drop(ended);
        let hung = watchdog.join().is_ok_and(|killed| killed);
        let output = output?;
        ensure!(!hung, "it did not end within {} s: {}", LONGEST.as_secs(), String::from_utf8_lossy(&output.stderr));
        let report = match fs::read(&self.json) {
            Ok(json) if !json.is_empty() => Some(memgauge_render::read(&json).with_context(|| format!("{}", self.json.display()))?),
            _ => None,
        };
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(Ran { status: output.status.code(), report, stderr })
    }
}

impl Ran {
    /// Whether something was not measured because others had the CPUs.
    fn wants_cpu_time(&self) -> bool {
        let results = self.report.iter().flat_map(|report| report.results.iter().chain(&report.repeats));
        results.filter_map(|m| m.estimate.not_measured.as_ref()).any(NotMeasured::is_want_of_cpu_time)
    }

    /// The result.
    ///
    /// # Errors
    /// If none was written.
    pub fn report(&self) -> Result<&Report> {
        self.report.as_ref().with_context(|| format!("it wrote no result, exit status {:?} (none: a signal): {}", self.status, self.stderr))
    }

    /// Makes sure that it refused to measure: this exit status, and every one of these words on standard error.
    ///
    /// # Errors
    /// When it did not.
    pub fn refused(&self, status: i32, words: &[&str]) -> Result<()> {
        ensure!(self.status == Some(status), "exit status {:?} instead of {status}: {}", self.status, self.stderr);
        for word in words {
            ensure!(self.stderr.contains(word), "'{word}' is missing in: {}", self.stderr);
        }
        Ok(())
    }
}

/// Results and repeats that have a value; makes sure that all have.
///
/// # Errors
/// If one has none: [`NoCpuTime`] where others had the CPUs.
pub fn measured(report: &Report) -> Result<Vec<&Measurement>> {
    for m in report.measurements() {
        if let Some(why) = m.estimate.not_measured.as_ref().filter(|why| why.is_want_of_cpu_time()) {
            bail!(NoCpuTime(format!("{:?}: {}", m.at, reasons::not_measured(why))));
        }
        ensure!(m.estimate.value.is_some_and(|v| v > 0.0), "{:?} has no value: {:?}", m.at, m.estimate.not_measured);
    }
    ensure!(!report.results.is_empty(), "no results");
    Ok(report.measurements().collect())
}

/// Installs a filter that refuses these system calls with `EPERM`.
fn refuse(calls: &[libc::c_long]) -> std::io::Result<()> {
    // seccomp(2): classic BPF over `struct seccomp_data`, whose first four bytes are the call's number.
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for &call in calls {
        filter.push(libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: 0, jf: 1, k: call as u32 });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: no new privileges, then a filter that lives until the call has ended; the kernel copies it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Makes sure that a run measured in part: cells that are `lost` have no value, and a reason with these words; all others have a value.
///
/// # Errors
/// When it did not.
pub fn lost_only(ran: &Ran, lost: impl Fn(&Coordinates) -> bool, words: &[&str]) -> Result<()> {
    let report = ran.report()?;
    ensure!(ran.status == Some(1), "exit status {:?} instead of 1: {}", ran.status, ran.stderr);
    ensure!(!report.complete && report.incomplete.is_some(), "complete, reason {:?}", report.incomplete);
    for m in report.measurements() {
        let reason = m.estimate.not_measured.as_ref().map(reasons::not_measured);
        ensure!(m.estimate.value.is_none() == lost(&m.at), "{:?}: {:?} {reason:?}", m.at, m.estimate.value);
        if let Some(reason) = &reason {
            for word in words {
                ensure!(reason.contains(word), "'{word}' is missing in the reason for {:?}: {reason}", m.at);
                ensure!(ran.stderr.contains(word), "'{word}' is missing in: {}", ran.stderr);
            }
        }
    }
    ensure!(report.results.iter().any(|m| lost(&m.at)) && report.results.iter().any(|m| !lost(&m.at)), "not both kinds of cells");
    Ok(())
}

/// Puts an empty file over `file`, in a name space of mounts of this process.
fn hide(file: &str) -> std::io::Result<()> {
    let text = |t: &str| std::ffi::CString::new(t).map_err(std::io::Error::from);
    let (empty, file, root) = (text("/tmp/empty")?, text(file)?, text("/")?);
    fs::write("/tmp/empty", "")?;
    let none = std::ptr::null();
    // SAFETY: strings that end in zero and live until the calls have ended.
    let done = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, root.as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0
            && libc::mount(empty.as_ptr(), file.as_ptr(), none, libc::MS_BIND, none.cast()) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The planned work of each cell.
///
/// # Errors
/// When the report has no plan.
pub fn works(report: &Report) -> Result<impl Iterator<Item = &Work>> {
    let plan = report.plan.as_ref().context("a report without plan")?;
    Ok(plan.steps.iter().flat_map(|step| &step.cells).map(|cell| &cell.work))
}

/// Makes sure that a report is a matrix of these rows and columns, with the pages of each cell verified on its column's node.
///
/// # Errors
/// When a cell is missing, has no value, or was elsewhere.
pub fn is_matrix(report: &Report, experiment: Experiment, rows: &IdSet, columns: &IdSet) -> Result<()> {
    let mut cells = BTreeSet::new();
    for m in measured(report)?.into_iter().filter(|m| m.experiment == experiment) {
        let column = m.at.memory_node().context("a cell without memory node")?;
        let placement = &m.evidence.placement;
        let nodes: IdSet = placement.pages_by_node.keys().copied().collect();
        ensure!(placement.status == PlacementStatus::Verified && nodes == IdSet::one(column), "{:?}: {placement:?}", m.at);
        cells.insert((m.at.cpu_node.context("a cell without CPU node")?, column));
    }
    let expected: BTreeSet<(u32, u32)> = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column))).collect();
    ensure!(cells == expected, "cells {cells:?}");
    Ok(())
}
