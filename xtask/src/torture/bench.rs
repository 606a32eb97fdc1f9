//! Running memgauge once, and judging how it ended.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::folders::{project_folder, target_folder};
pub(super) use crate::fuzz::Dice;

/// The statuses that `--help` documents, and those of the shell's conventions for a program that `count` cannot start.
const STATUSES: [i32; 11] = [0, 1, 2, 3, 4, 64, 126, 127, 129, 130, 143];
/// A run that asks for tens of milliseconds ends long before this, even where a machine is busy and everything is swapped in anew.
pub(super) const LONGEST: Duration = Duration::from_secs(30);
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The outcome of one try.
pub(super) enum Outcome {
    Passed,
    /// Why.
    Failed(String),
    /// Names a thing that is missing here, so the try has no result.
    NotTried(String),
}

/// The program and the folder that all areas need.
pub(super) struct Bench {
    pub(super) memgauge: PathBuf,
    /// A folder for what runs write. Nothing else is in it between runs.
    pub(super) folder: PathBuf,
}

impl Bench {
    /// memgauge with these arguments.
    pub(super) fn command(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Command {
        let all: Vec<&std::ffi::OsStr> = std::iter::once(self.memgauge.as_os_str()).chain(words.iter().map(AsRef::as_ref)).collect();
        self.other(&all)
    }

    /// Another program, and its arguments.
    pub(super) fn other(&self, words: &[&std::ffi::OsStr]) -> Command {
        let mut command = Command::new(words.first().copied().unwrap_or_default());
        command.args(words.iter().skip(1)).current_dir(&self.folder).env("RUST_BACKTRACE", "0");
        // A user who runs this as root did not ask for registers to be written. A folder below /dev would not be accepted in their place.
        command
            .env("MEMGAUGE_MLC_PREFETCH", "leave")
            .env("MEMGAUGE_MSR_ROOT", project_folder())
            .env("MEMGAUGE_RUNTIME_DIR", target_folder())
            .env("MEMGAUGE_STATE", "");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // If `nohup` made this process ignore SIGHUP, the program would inherit that.
        // SAFETY: between fork and exec it makes one system call only, which cannot fail for this signal.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGHUP, libc::SIG_DFL);
                Ok(())
            });
        }
        command
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, command: &mut Command) -> Result<Outcome> {
        match command.spawn() {
            Ok(child) => self.judge(child, LONGEST),
            // A limit or a filter that keeps the system from starting a program says nothing of the program.
            Err(error) => Ok(Outcome::NotTried(format!("could not be started: {error}"))),
        }
    }

    /// Waits for the end of a run, at most for `longest`, and judges it.
    pub(super) fn judge(&self, mut child: Child, longest: Duration) -> Result<Outcome> {
        let ended = wait(&mut child, longest)?;
        let left = self.tidy()?;
        let Some(output) = ended else { return Ok(Outcome::Failed(format!("took more than {longest:?}"))) };
        let said = String::from_utf8_lossy(&output.stderr);
        let what = match (output.status.signal(), output.status.code()) {
            (Some(signal), _) => format!("ended by signal {signal}"),
            (_, Some(code)) if !STATUSES.contains(&code) => format!("undocumented status {code}"),
            _ if said.contains("panicked") => "panicked".to_owned(),
            (_, Some(1..)) if said.trim().is_empty() && output.stdout.is_empty() => "failed without a word".to_owned(),
            _ if !left.is_empty() => format!("left {}", left.join(", ")),
            _ => return Ok(Outcome::Passed),
        };
        Ok(Outcome::Failed(format!("{what}: {}", said.lines().take(3).collect::<Vec<_>>().join(" / "))))
    }

    /// Removes what a run has written. Returns the names of what it should not have left.
    pub(super) fn tidy(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let (name, path) = entry.map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()))?;
            if name.contains("tmp") || name.starts_with('.') {
                left.push(name);
            }
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
        Ok(left)
    }
}

/// Waits for the end of a process, at most for so long; then it is killed, and `None` returned.
pub(super) fn wait(child: &mut Child, longest: Duration) -> Result<Option<Output>> {
    let began = Instant::now();
    // Pipes hold 64 KiB: results of the short runs here are less, but help and matrices may be more.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let out = scope.spawn(|| read(stdout));
        let err = scope.spawn(|| read(stderr));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if began.elapsed() > longest {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(LOOK);
        };
        let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        Ok(status.map(|status| Output { status, stdout, stderr }))
    })
}

fn read(pipe: Option<impl std::io::Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Output that cannot be read counts as missing.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}
