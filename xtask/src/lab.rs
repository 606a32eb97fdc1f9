//! `cargo xtask lab`: boots the lab's guests and says what their tests said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use memgauge_lab::contract::{DONE, OUTCOMES};
use memgauge_lab::recorded::Archived;
use memgauge_lab::{Arch, JOBS, Job, Outcome, Release};

mod emulate;
mod image;
mod packages;
mod qemu;

use packages::Packages;

/// What `cargo xtask lab` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct LabArgs {
    /// Jobs to run [default: all but the optional ones]
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// Name the jobs and what each shows, and run nothing
    #[arg(long)]
    list: bool,
    /// Keep what the guests wrote, in target/lab/jobs, also when all passed
    #[arg(long)]
    keep: bool,
    /// Keep what guests recorded of themselves, in tests/machines, where it differs from what is there
    #[arg(long)]
    record: bool,
    /// Boot the job's machine with a shell on this terminal instead of its tests
    #[arg(long)]
    shell: bool,
}

/// Counts, in the test runner's manner.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
}

pub(crate) fn lab(args: &LabArgs) -> Result<()> {
    if args.list {
        for job in JOBS {
            println!("{:12} {}{}", job.name, job.about, if job.optional { " (only when named)" } else { "" });
        }
        for target in emulate::TARGETS {
            println!("{:12} {}", target.name, target.about);
        }
        return Ok(());
    }
    let (jobs, targets) = chosen(&args.jobs)?;
    check_tools(&jobs, &targets)?;
    let folder = crate::target_folder().join("lab");
    fs::create_dir_all(&folder)?;
    let mut tally = Tally::default();
    let began = Instant::now();
    if args.shell {
        let [job] = jobs[..] else { bail!("--shell needs the name of one guest; 'cargo xtask lab --list' names them") };
        return prepare(job, &folder)?.boot(job, true);
    }
    for job in jobs {
        guest(job, &folder, args, &mut tally)?;
    }
    for target in targets {
        let at = Instant::now();
        println!("\njob {}: {}", target.name, target.about);
        tally.count(&emulate::run_tests(target)?, target.name);
        println!("job {}: {:.1} s", target.name, at.elapsed().as_secs_f64());
    }
    for failed in &tally.failed {
        println!("failed: {failed}");
    }
    println!("\n{} passed, {} failed, in {:.1} s", tally.passed, tally.failed.len(), began.elapsed().as_secs_f64());
    ensure!(tally.failed.is_empty(), "the lab found faults");
    Ok(())
}

fn chosen(names: &[String]) -> Result<(Vec<&'static Job>, Vec<&'static emulate::Target>)> {
    if names.is_empty() {
        return Ok((JOBS.iter().copied().filter(|j| !j.optional).collect(), emulate::TARGETS.iter().collect()));
    }
    let (mut jobs, mut targets) = (Vec::new(), Vec::new());
    for name in names {
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

/// Says everything that is missing at once, with the command that installs it.
fn check_tools(jobs: &[&Job], targets: &[&emulate::Target]) -> Result<()> {
    let mut needed: Vec<(&str, &str)> = Vec::new();
    if !jobs.is_empty() {
        needed.extend([("apt-get", "apt"), ("dpkg", "dpkg"), ("cpio", "cpio"), ("xz", "xz-utils")]);
    }
    for job in jobs {
        if job.machine.release == Release::Stable {
            needed.push(qemu::program(job.machine.arch));
        }
        if job.machine.release == Release::Backports {
            needed.push(("zstd", "zstd"));
        }
        needed.extend(job.machine.tools.iter().map(|&tool| (tool, tool_package(tool))));
    }
    for target in targets {
        needed.extend(target.needs);
    }
    let mut missing: Vec<&str> = needed.iter().filter(|(program, _)| find_program(program).is_none()).map(|(_, p)| *p).collect();
    missing.sort_unstable();
    missing.dedup();
    ensure!(
        missing.is_empty(),
        "the lab needs programs that are not here; on Debian install them with:\n  apt-get install --no-install-recommends {}",
        missing.join(" ")
    );
    Ok(())
}

/// The package that has a tool of a guest.
fn tool_package(tool: &str) -> &'static str {
    match tool {
        "mke2fs" => "e2fsprogs",
        _ => "ndctl",
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder: PathBuf| folder.join(name)).find(|file| file.exists())
}

/// Everything that a guest boots.
struct Prepared {
    qemu: PathBuf,
    firmware: Vec<PathBuf>,
    kernel: PathBuf,
    image: PathBuf,
    share: PathBuf,
    console: PathBuf,
}

impl Prepared {
    fn boot(&self, job: &Job, shell: bool) -> Result<()> {
        let boot = qemu::Boot {
            qemu: &self.qemu,
            firmware: &self.firmware,
            kernel: &self.kernel,
            image: &self.image,
            share: &self.share,
            console: &self.console,
        };
        qemu::boot(job, &boot, shell)
    }
}

fn prepare(job: &Job, folder: &Path) -> Result<Prepared> {
    let arch = job.machine.arch;
    let packages = Packages::new(folder, arch, job.machine.release);
    let (package, release) = packages.kernel()?;
    let kernel = image::kernel(&package, &release, arch)?;
    let busybox = packages.get("busybox-static")?;
    let (qemu, firmware) = packages.qemu(qemu::program(arch))?;
    let built = build(arch)?;
    let kernel_tests = if job.machine.kernel_tests { emulate::test_programs(arch)? } else { Vec::new() };
    let contents = image::Contents {
        memgauge: &built.join("memgauge"),
        lab: &built.join("memgauge-lab"),
        busybox: &busybox,
        kernel_tests: &kernel_tests,
    };
    let own = folder.join("jobs").join(job.name);
    let share = own.join("share");
    let _ = fs::remove_dir_all(&own);
    fs::create_dir_all(&share)?;
    let image = own.join("image");
    image::build(&own.join("root"), &image, &job.machine, (&package, &release), &contents)?;
    Ok(Prepared { qemu, firmware, kernel, image, share, console: own.join("console") })
}

/// Builds the released program and the tests for a guest; the folder that they are in.
fn build(arch: Arch) -> Result<PathBuf> {
    let target = format!("{arch}-unknown-linux-musl");
    run(Command::new("rustup").args(["target", "add", &target]))
        .with_context(|| format!("the Rust target {target} is missing, and rustup could not add it"))?;
    let mut cargo = cargo_for(&target, "rust-lld");
    cargo.args(["build", "--quiet", "--release", "--target", &target, "-p", "memgauge", "-p", "memgauge-lab"]);
    ensure!(cargo.status()?.success(), "the programs for {target} do not build");
    Ok(crate::target_folder().join(target).join("release"))
}

/// Cargo, with a linker for another target.
fn cargo_for(target: &str, linker: &str) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), linker);
    cargo.current_dir(crate::project_folder());
    cargo
}

fn guest(job: &'static Job, folder: &Path, args: &LabArgs, tally: &mut Tally) -> Result<()> {
    println!("\njob {}: {}", job.name, job.about);
    let prepared = prepare(job, folder).with_context(|| format!("job {}", job.name))?;
    let began = Instant::now();
    let ended = prepared.boot(job, false);
    let seconds = began.elapsed().as_secs_f64();
    let text = fs::read_to_string(prepared.share.join(OUTCOMES)).unwrap_or_default();
    let mut outcomes: Vec<Outcome> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let done = prepared.share.join(DONE).exists();
    // A guest that dies has not passed, whatever it said before.
    if let Err(error) = &ended {
        outcomes.push(Outcome { test: "boot".into(), seconds, failure: Some(format!("{error:#}")) });
    } else if !done {
        let test = job.tests.get(outcomes.len()).map_or("end", |t| t.name);
        let failure = format!("the guest ended in the middle of it:\n{}", last_lines(&prepared.console));
        outcomes.push(Outcome { test: test.into(), seconds: 0.0, failure: Some(failure) });
    } else if outcomes.len() != job.tests.len() {
        bail!("job {}: {} of {} tests said what became of them", job.name, outcomes.len(), job.tests.len());
    }
    tally.count(&outcomes, job.name);
    println!("job {}: {seconds:.1} s", job.name);
    let own = folder.join("jobs").join(job.name);
    let passed = outcomes.iter().all(|o| o.failure.is_none());
    if args.record && passed {
        keep_recordings(&prepared.share, &own.join("recorded"))?;
    }
    if args.keep || !passed {
        let _ = fs::remove_dir_all(own.join("root"));
        println!("kept: {}", own.display());
    } else {
        fs::remove_dir_all(own)?;
    }
    Ok(())
}

/// Copies the machines that a guest recorded, by way of the folder `scratch`. One that says the same as the one of its name that is there
/// already stays as it is: what differs are counters.
fn keep_recordings(share: &Path, scratch: &Path) -> Result<()> {
    for entry in fs::read_dir(share)? {
        let new = entry?.path();
        let Some(name) = new.file_name().and_then(|n| n.to_str()).filter(|n| n.ends_with(".tar.gz")) else { continue };
        let kept = crate::project_folder().join("tests/machines").join(name);
        let known = kept.exists().then(|| Archived::read(&kept, scratch)).transpose()?;
        if known == Some(Archived::read(&new, scratch)?) {
            println!("recorded before, and the same: {}", kept.display());
        } else {
            fs::copy(&new, &kept).with_context(|| format!("cannot write {}", kept.display()))?;
            println!("recorded: {}", kept.display());
        }
    }
    Ok(())
}

impl Tally {
    fn count(&mut self, outcomes: &[Outcome], job: &str) {
        for Outcome { test, seconds, failure } in outcomes {
            match failure {
                None => {
                    println!("test {job}::{test} ... ok ({seconds:.1} s)");
                    self.passed += 1;
                }
                Some(why) => {
                    println!("test {job}::{test} ... FAILED ({seconds:.1} s)\n    {}", why.replace('\n', "\n    "));
                    self.failed.push(format!("{job}::{test}"));
                }
            }
        }
    }
}

fn last_lines(console: &Path) -> String {
    let text = fs::read(console).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// Runs a program to its end and gives what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{} failed: {}", command.get_program().display(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
