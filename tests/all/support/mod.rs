//! Running the program as a black box.

pub(crate) mod confined;
pub(crate) mod injector;
pub(crate) mod registers;
pub(crate) mod simulated;
pub(crate) mod watch;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

use memgauge_model::result::Report;
use memgauge_render::{Appearance, Document, Format};

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgauge"));
    // Checks of tests are not this user's.
    command.stdin(Stdio::null()).env_remove("NO_COLOR").env("MEMGAUGE_STATE", "");
    command
}

/// Writes a report to a file, as the program does.
pub(crate) fn save(report: &Report, file: impl AsRef<Path>) {
    std::fs::write(file, report.render(Format::JSON, &Appearance::default()).unwrap()).unwrap();
}

/// Starts the program with the default action for SIGINT and SIGHUP, or with SIGHUP ignored, however the tests were started: shells ignore SIGINT
/// for what they start in the background, `nohup` ignores SIGHUP.
pub(crate) fn hangup(command: &mut Command, ignored: bool) {
    let action = if ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: it sets no handler, only an action that the kernel has.
    let set = |signal, action| match unsafe { libc::signal(signal, action) } {
        libc::SIG_ERR => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    };
    // SAFETY: between fork and exec it makes two system calls only.
    unsafe { command.pre_exec(move || set(libc::SIGINT, libc::SIG_DFL).and_then(|()| set(libc::SIGHUP, action))) };
}

/// Copies a program to where it is run at once. `cp` does it: a descriptor that this process has open for writing would be in the children that
/// other tests just start, and the kernel runs no file that is being written (ETXTBSY).
pub(crate) fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// Writes a program in the same way.
pub(crate) fn write_script(to: &Path, content: &str) {
    let write = "printf '%s' \"$1\" > \"$0\" && chmod 755 \"$0\"";
    assert!(Command::new("sh").arg("-c").arg(write).arg(to).arg(content).status().unwrap().success());
}

/// How many runs may measure at once: most of a short run is set-up on one CPU.
const AT_ONCE: u32 = 2;
static FREE: Mutex<u32> = Mutex::new(AT_ONCE);
static RETURNED: Condvar = Condvar::new();

/// Permission to measure, returned when dropped.
pub(crate) struct Permit(u32);

impl Drop for Permit {
    fn drop(&mut self) {
        *FREE.lock().unwrap_or_else(PoisonError::into_inner) += self.0;
        RETURNED.notify_all();
    }
}

fn permit(n: u32) -> Permit {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    while *free < n {
        free = RETURNED.wait(free).unwrap_or_else(PoisonError::into_inner);
    }
    *free -= n;
    Permit(n)
}

/// To measure beside another test: what is measured does not matter.
pub(crate) fn beside_another() -> Permit {
    permit(1)
}

/// To measure alone: numbers or times matter.
pub(crate) fn alone() -> Permit {
    permit(AT_ONCE)
}

pub(crate) fn run(line: &str) -> Output {
    let _permit = beside_another();
    measured(program().args(line.split_whitespace()))
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A page in one line, to look for a sentence in it: where a line ends depends on how long paths are.
pub(crate) fn unwrapped(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The CPUs that this process may use.
pub(crate) fn own_cpus() -> Vec<usize> {
    // SAFETY: all zeros is a valid, empty set; the call writes that set only.
    let mut own: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as long as the call is told.
    assert_eq!(unsafe { libc::sched_getaffinity(0, size_of_val(&own), &raw mut own) }, 0);
    // SAFETY: the numbers are in the set's range.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &own) }).collect()
}

/// The first of them: where a cpuset leaves CPU 0 out, it is another one.
pub(crate) fn first_cpu() -> usize {
    own_cpus()[0]
}

/// Whether a result, or what was said of it, is that a CPU had no time for it.
pub(crate) fn had_no_cpu_time(output: &Output) -> bool {
    [&output.stdout, &output.stderr].into_iter().any(|said| {
        let said = String::from_utf8_lossy(said);
        [
            "got no time",
            "never ran at the same time",
            "CPU taken away",
            "\"never-together\"",
            "\"no-cpu-time\"",
            "\"cpu-taken-away\"",
            "\"no-samples\"",
        ]
        .iter()
        .any(|why| said.contains(why))
    })
}

/// What this thread starts comes before other processes until this is dropped, where the user may ask for that: root may.
struct Urgent {
    before: libc::c_int,
}

impl Urgent {
    fn new() -> Self {
        // SAFETY: the calls take and return numbers. On Linux, 0 is the calling thread.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        // SAFETY: as above.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -19) };
        Self { before }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, self.before) };
    }
}

/// Runs a command that measures. Where others had a CPU for all of a short run, it is run again, before them.
pub(crate) fn measured(command: &mut Command) -> Output {
    measured_by(|| command.output().unwrap())
}

/// The same, however it is run.
pub(crate) fn measured_by(mut run: impl FnMut() -> Output) -> Output {
    const TRIES: u32 = 8;
    let mut output = run();
    for _ in 1..TRIES {
        if !had_no_cpu_time(&output) {
            break;
        }
        let _urgent = Urgent::new();
        output = run();
    }
    output
}

/// Runs a measuring command and reads its JSON.
pub(crate) fn report(line: &str) -> Report {
    let line = format!("{line} --format json");
    let output = run(&line);
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Standard error of a run that ends with this status and prints nothing else.
pub(crate) fn refused(line: &str, code: i32) -> String {
    let output = run(line);
    assert_eq!(output.status.code(), Some(code), "{line}: {}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{line} prints nothing on standard output");
    text(&output.stderr).to_owned()
}

/// A directory for one test; tests of other files may use the same name.
#[track_caller]
pub(crate) fn temporary(name: &str) -> PathBuf {
    let of = Path::new(std::panic::Location::caller().file()).file_stem().unwrap().to_string_lossy();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{of}-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
