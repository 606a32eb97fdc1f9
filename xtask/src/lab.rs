//! `cargo xtask lab`: boots the lab's guests and prints their tests' results.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use memgauge_lab::contract::{DONE, OUTCOMES};
use memgauge_lab::{Arch, JOBS, Job, Outcome, Release};

mod emulate;
mod image;
mod packages;
mod qemu;

use crate::programs::{build_static, find_program};
use packages::Packages;

/// The arguments of `cargo xtask lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    /// Jobs to run [default: all but the optional ones]
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// List the jobs and what each shows, without running them
    #[arg(long)]
    list: bool,
    /// Only fetch and build what the jobs need
    #[arg(long)]
    build: bool,
    /// Keep what the guests wrote, in target/lab/jobs, even if all tests pass
    #[arg(long)]
    keep: bool,
    /// Boot the job's machine with a shell on this terminal instead of its tests
    #[arg(long)]
    shell: bool,
}

/// How many tests passed, and which failed.
#[derive(Default)]
struct Totals {
    passed: usize,
    failed: Vec<String>,
}

pub(crate) fn lab(args: &LabArgs) -> Result<()> {
    if args.list {
        let jobs = JOBS.iter().map(|job| (job.name, job.about, job.optional));
        for (name, about, optional) in jobs.chain(emulate::TARGETS.iter().map(|target| (target.name, target.about, target.optional))) {
            println!("{name:12} {about}{}", if optional { " (runs only if named)" } else { "" });
        }
        return Ok(());
    }
    let (jobs, targets) = chosen(&args.jobs)?;
    check_tools(&jobs, &targets)?;
    let folder = crate::folders::target_folder().join("lab");
    fs::create_dir_all(&folder)?;
    let began = Instant::now();
    // Built and fetched before anything runs: a compiler beside a guest would starve it.
    let mut built = BTreeMap::new();
    for arch in jobs.iter().map(|job| job.machine.arch).collect::<BTreeSet<_>>() {
        let kernel_tests = jobs.iter().any(|job| job.machine.arch == arch && job.machine.kernel_tests);
        built.insert(arch, Built::new(arch, kernel_tests)?);
    }
    let mut work = VecDeque::new();
    for job in jobs {
        let parts = Parts::find(job, &folder).with_context(|| format!("job {}", job.name))?;
        work.push_back(Work::Guest(job, &built[&job.machine.arch], parts));
    }
    for target in targets {
        work.push_back(Work::Emulated(target, emulate::build(target)?));
    }
    println!("built in {:.1} s", began.elapsed().as_secs_f64());
    if args.build {
        return Ok(());
    }
    if args.shell {
        let Some(Work::Guest(job, built, parts)) = work.pop_front().filter(|_| work.is_empty()) else {
            bail!("--shell needs the name of one guest; 'cargo xtask lab --list' names them")
        };
        return parts.prepare(job, built)?.boot(job, true);
    }
    let work = Mutex::new(work);
    let totals = Mutex::new(Totals::default());
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL_JOBS {
            scope.spawn(|| {
                while let Some(next) = next_job(&work) {
                    let result = next.run();
                    totals.lock().unwrap_or_else(PoisonError::into_inner).count(&next, result, args.keep);
                }
            });
        }
    });
    let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    for failed in &totals.failed {
        println!("failed: {failed}");
    }
    println!("\n{} passed, {} failed, in {:.1} s", totals.passed, totals.failed.len(), began.elapsed().as_secs_f64());
    ensure!(totals.failed.is_empty(), "tests failed");
    Ok(())
}

/// Jobs that run at the same time. A guest sometimes uses one CPU or none (while it boots, while its tests wait); two guests fill two CPUs.
const PARALLEL_JOBS: usize = 2;

/// A job that can start.
enum Work<'a> {
    Guest(&'static Job, &'a Built, Parts),
    Emulated(&'static emulate::Target, Vec<PathBuf>),
}

fn next_job<'a>(work: &Mutex<VecDeque<Work<'a>>>) -> Option<Work<'a>> {
    work.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// The result of a job.
struct JobResult {
    outcomes: Vec<Outcome>,
    seconds: f64,
}

impl Work<'_> {
    fn name(&self) -> (&'static str, &'static str) {
        match self {
            Self::Guest(job, ..) => (job.name, job.about),
            Self::Emulated(target, _) => (target.name, target.about),
        }
    }

    fn run(&self) -> JobResult {
        let (began, mut outcomes) = (Instant::now(), Vec::new());
        let ended = match self {
            Self::Guest(job, built, parts) => parts.prepare(job, built).and_then(|guest| guest.run(job, &mut outcomes)),
            Self::Emulated(target, programs) => emulate::run_tests(target, programs, &mut outcomes),
        };
        let seconds = began.elapsed().as_secs_f64();
        // A job that dies has not passed, even if all its tests did.
        if let Err(error) = ended {
            outcomes.push(Outcome { test: "end".into(), seconds: 0.0, failure: Some(format!("{error:#}")), not_tested: None });
        }
        JobResult { outcomes, seconds }
    }
}

fn chosen(names: &[String]) -> Result<(Vec<&'static Job>, Vec<&'static emulate::Target>)> {
    if names.is_empty() {
        let jobs = JOBS.iter().copied().filter(|job| !job.optional).collect();
        return Ok((jobs, emulate::TARGETS.iter().filter(|target| !target.optional).collect()));
    }
    let (mut jobs, mut targets) = (Vec::new(), Vec::new());
    for (i, name) in names.iter().enumerate() {
        // A job has one folder: named twice, it runs once.
        if names[..i].contains(name) {
            continue;
        }
        if let Some(job) = memgauge_lab::find(name) {
            jobs.push(job);
        } else if let Some(target) = emulate::TARGETS.iter().find(|t| t.name == name) {
            targets.push(target);
        } else {
            bail!("there is no job '{name}'; 'cargo xtask lab --list' names them");
        }
    }
    Ok((jobs, targets))
}

/// Reports every missing program at once, with the command that installs it.
fn check_tools(jobs: &[&Job], targets: &[&emulate::Target]) -> Result<()> {
    let mut needed: Vec<(&str, &str)> = Vec::new();
    if !jobs.is_empty() {
        needed.extend([("apt-get", "apt"), ("dpkg", "dpkg"), ("cpio", "cpio"), ("xz", "xz-utils")]);
    }
    for job in jobs {
        if job.machine.release != Release::Backports {
            needed.push(qemu::program(job.machine.arch));
        }
        if job.machine.release != Release::Stable {
            needed.push(("zstd", "zstd"));
        }
        needed.extend(job.machine.tools.iter().filter(|tool| fetched(tool).is_none()).map(|&tool| (tool, tool_package(tool))));
    }
    for target in targets {
        needed.extend(target.needs);
    }
    let mut missing: Vec<&str> = needed.iter().filter(|(program, _)| find_program(program).is_none()).map(|(_, p)| *p).collect();
    missing.sort_unstable();
    missing.dedup();
    ensure!(
        missing.is_empty(),
        "the lab needs programs that are missing here; on Debian, install them with:\n  apt-get install --no-install-recommends {}",
        missing.join(" ")
    );
    Ok(())
}

/// The package that has a tool of a guest.
fn tool_package(tool: &str) -> &'static str {
    match tool {
        "mke2fs" => "e2fsprogs",
        "mkfs.xfs" => "xfsprogs",
        _ => "ndctl",
    }
}

/// The package, and the place in it, of a tool that is fetched as the kernels are: where it is installed it changes the machine.
fn fetched(tool: &str) -> Option<(&'static str, &'static str)> {
    match tool {
        "apparmor_parser" => Some(("apparmor", "sbin/apparmor_parser")),
        "secilc" => Some(("secilc", "usr/bin/secilc")),
        _ => None,
    }
}

/// The programs that a guest of one instruction set runs.
struct Built {
    /// The folder with the program and the tests.
    folder: PathBuf,
    kernel_tests: Vec<PathBuf>,
}

impl Built {
    fn new(arch: Arch, kernel_tests: bool) -> Result<Self> {
        let profile = match arch {
            // The release of this instruction set is often built already.
            Arch::X86_64 => "release",
            Arch::Aarch64 => "lab",
        };
        let folder = build_static(&arch.to_string(), profile, &["memgauge", "memgauge-lab"])?;
        let tests = || emulate::test_programs(&format!("{arch}-unknown-linux-musl"), "rust-lld");
        Ok(Self { folder, kernel_tests: if kernel_tests { tests()? } else { Vec::new() } })
    }
}

/// Programs and packages for a job's guest, and the folder of everything that is this job's.
struct Parts {
    qemu: PathBuf,
    firmware: Vec<PathBuf>,
    kernel: PathBuf,
    /// The kernel's package with its modules, and its release.
    package: (PathBuf, String),
    busybox: PathBuf,
    tools: Vec<PathBuf>,
    own: PathBuf,
}

impl Parts {
    /// Fetches what is missing.
    fn find(job: &Job, folder: &Path) -> Result<Self> {
        let arch = job.machine.arch;
        let packages = Packages::new(folder, arch, job.machine.release);
        let package = packages.kernel()?;
        let kernel = image::kernel(&package.0, &package.1, arch)?;
        let busybox = packages.get("busybox-static")?;
        let (qemu, firmware) = packages.qemu(qemu::program(arch))?;
        let mut tools = Vec::new();
        for &tool in job.machine.tools {
            tools.push(match fetched(tool) {
                Some((package, place)) => packages.get(package)?.join(place),
                None => image::installed(tool)?,
            });
        }
        Ok(Self { qemu, firmware, kernel, package, busybox, tools, own: folder.join("jobs").join(job.name) })
    }

    /// Makes the guest's image.
    fn prepare(&self, job: &Job, built: &Built) -> Result<Prepared<'_>> {
        let contents = image::Contents {
            memgauge: &built.folder.join("memgauge"),
            lab: &built.folder.join("memgauge-lab"),
            busybox: &self.busybox,
            kernel_tests: if job.machine.kernel_tests { &built.kernel_tests } else { &[] },
            tools: &self.tools,
        };
        let share = self.own.join("share");
        let _ = fs::remove_dir_all(&self.own);
        fs::create_dir_all(&share)?;
        let image = self.own.join("image");
        image::build(&self.own.join("root"), &image, job.machine.modules, (&self.package.0, &self.package.1), &contents)?;
        fs::remove_dir_all(self.own.join("root"))?;
        Ok(Prepared { parts: self, image, share, console: self.own.join("console") })
    }
}

/// Everything that a guest boots.
struct Prepared<'a> {
    parts: &'a Parts,
    image: PathBuf,
    share: PathBuf,
    console: PathBuf,
}

impl Prepared<'_> {
    /// Boots the guest and reads its tests' results.
    fn run(&self, job: &Job, outcomes: &mut Vec<Outcome>) -> Result<()> {
        let ended = self.boot(job, false);
        let text = fs::read_to_string(self.share.join(OUTCOMES)).unwrap_or_default();
        outcomes.extend(text.lines().map(serde_json::from_str).collect::<Result<Vec<Outcome>, _>>()?);
        ended?;
        let next = job.tests.get(outcomes.len()).map_or("the end", |t| t.name);
        ensure!(self.share.join(DONE).exists(), "the guest ended in the middle of {next}:\n{}", last_lines(&self.console));
        ensure!(outcomes.len() == job.tests.len(), "{} of {} tests reported a result", outcomes.len(), job.tests.len());
        Ok(())
    }

    fn boot(&self, job: &Job, shell: bool) -> Result<()> {
        let boot = qemu::Boot {
            qemu: &self.parts.qemu,
            firmware: &self.parts.firmware,
            kernel: &self.parts.kernel,
            image: &self.image,
            share: &self.share,
            console: &self.console,
        };
        qemu::boot(job, &boot, shell)
    }
}

impl Totals {
    /// Prints a job's tests in one piece and counts them; what the guest wrote stays when it failed, or to `keep`.
    fn count(&mut self, work: &Work, result: JobResult, keep: bool) {
        let (job, about) = work.name();
        println!("\njob {job}: {about}");
        let failed_before = self.failed.len();
        for Outcome { test, seconds, failure, not_tested } in result.outcomes {
            match (failure, not_tested) {
                (None, None) => {
                    println!("test {job}::{test} ... ok ({seconds:.1} s)");
                    self.passed += 1;
                }
                // In one line, which the gate gathers.
                (None, Some(why)) => println!("NOT TESTED: {job}::{test}: {}", why.trim_end().replace('\n', "; ")),
                (Some(why), _) => {
                    println!("test {job}::{test} ... FAILED ({seconds:.1} s)\n    {}", why.replace('\n', "\n    "));
                    self.failed.push(format!("{job}::{test}"));
                }
            }
        }
        println!("job {job}: {:.1} s", result.seconds);
        if let Work::Guest(_, _, Parts { own, .. }) = work {
            if keep || self.failed.len() > failed_before {
                println!("kept: {}", own.display());
            } else {
                let _ = fs::remove_dir_all(own);
            }
        }
    }
}

fn last_lines(console: &Path) -> String {
    let text = fs::read(console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_named_twice_runs_once() {
        let (job, target) = (JOBS[0].name, emulate::TARGETS[0].name);
        let (jobs, targets) = chosen(&[job, target, job, target].map(str::to_owned)).unwrap();
        assert_eq!((jobs.len(), targets.len()), (1, 1));
        assert_eq!((jobs[0].name, targets[0].name), (job, target));
        assert!(chosen(&["no-such-job".to_owned()]).is_err());
    }
}
