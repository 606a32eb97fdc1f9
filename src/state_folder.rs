//! A folder of checks (`memgauge quick`): one check at a time, the newest results, and a link to the last of them. Scheduled checks name theirs
//! (`--state`); others have one for each user.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use memgauge_model::result::Report;
use memgauge_os::security::explained;
use memgauge_os::{clock, files, process};
use memgauge_render::{Appearance, Document, Format};

use crate::console::Program;
use crate::exit::UsageError;
use crate::output_file::{self, OutputFile};
use crate::sinks::read_report;

/// The file that a check locks while it runs. Its content is the number of the process.
const LOCK: &str = "lock";
/// A link to the newest result.
const LATEST: &str = "latest.json";
/// Names the folder for checks that name none; empty: they are not kept.
pub(crate) const VARIABLE: &str = "MEMGAUGE_STATE";
/// How many checks are kept in the user's own folder. One of a machine with one node has about 25 kB.
const KEPT: usize = 30;
/// How often it is looked whether the other check has ended.
const LOOK: Duration = Duration::from_millis(100);

/// The checks of this user that are kept, the oldest first; none where none are. Nothing is locked: results are replaced in one step.
pub(crate) fn kept_checks() -> Vec<Report> {
    let Ok(Some(path)) = own_folder() else { return Vec::new() };
    let names = fs::read_dir(&path).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_result(name)).collect();
    names.sort_unstable();
    names.into_iter().filter_map(|name| read_report(&path.join(name)).ok()).collect()
}

/// The folder, and the lock on it until the value goes away. The kernel gives the lock back when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct StateFolder {
    path: PathBuf,
    keep: usize,
    /// The name of this check's result.
    name: String,
    /// The folder was made for this check.
    is_new: bool,
    _lock: File,
}

/// The folder for the checks of this user; `None` where they are not to be kept.
///
/// # Errors
/// When nothing says where it is.
fn own_folder() -> anyhow::Result<Option<PathBuf>> {
    if let Some(path) = env::var_os(VARIABLE).filter(|_| !process::has_more_privileges_than_its_user()) {
        return Ok(Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty()));
    }
    let Some(states) = process::state_folder() else {
        bail!("the environment names no home directory that can be trusted; name a folder with --state");
    };
    Ok(Some(states.join("memgauge")))
}

impl StateFolder {
    /// Makes the folder where it is missing, and waits at most `longest` for another check that uses it.
    ///
    /// # Errors
    /// When the folder cannot be used ([`UsageError`]), its disk is full before there is a lock, or the other check did not end in time.
    pub(crate) fn open(path: &Path, keep: usize, longest: Duration) -> anyhow::Result<Self> {
        Self::open_for(path, keep, Some(longest))
    }

    /// `longest`: for a scheduled check, how long it waits for another one.
    fn open_for(path: &Path, keep: usize, longest: Option<Duration>) -> anyhow::Result<Self> {
        let refused = |why: String| UsageError::file(path, why);
        // Nothing in the command line is wrong where the disk is full.
        let failed = |e: &io::Error, why: String| match output_file::takes_no_more(e) {
            true => anyhow::anyhow!("{}: {why}", path.display()),
            false => refused(why).into(),
        };
        // Of a folder that may not be seen it says that something else is there.
        let seen = |e| fs::metadata(path).err().filter(|found| found.kind() == io::ErrorKind::PermissionDenied).unwrap_or(e);
        let is_new = !path.exists();
        fs::create_dir_all(path)
            .map_err(seen)
            .map_err(|e| failed(&e, format!("the folder cannot be made: {}; name another one", explained(&e))))?;
        // Its owner could put links in the place of files that are removed here.
        if let Some(why) = files::why_not_own(path) {
            return Err(refused(why).into());
        }
        let opened = files::open_private(&path.join(LOCK));
        let mut lock =
            opened.map_err(|e| failed(&e, format!("its file '{LOCK}' cannot be opened: {}; name a folder of your own", explained(&e))))?;
        acquire(&mut lock, path, longest)?;
        // Only a message needs the number, so a full disk must not prevent the measurement.
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        output_file::remove_all_stale(path);
        let name = format!("{}.json", clock::moment().utc.replace(':', "-"));
        Ok(Self { path: path.to_owned(), keep, name, is_new, _lock: lock })
    }

    /// Opens the folder for the checks of this user. `None` if they are not to be kept, or cannot be, which a message says unless
    /// `quiet`: a check that cannot be kept is worth as much.
    pub(crate) fn open_own(quiet: bool) -> Option<Self> {
        let opened = own_folder().and_then(|path| path.map(|path| Self::open_for(&path, KEPT, None)).transpose());
        opened.unwrap_or_else(|why| {
            not_kept(&why, quiet);
            None
        })
    }

    /// The checks that are kept here, the oldest first. Files that are not results are left out.
    pub(crate) fn checks(&self) -> Vec<Report> {
        let names = self.results().unwrap_or_default();
        names.into_iter().filter_map(|name| read_report(&self.path.join(name)).ok()).collect()
    }

    /// Keeps a check of this user. If that fails, a message says so unless `quiet`.
    pub(crate) fn keep(&self, report: &Report, quiet: bool) {
        let written = || -> anyhow::Result<()> {
            let bytes = report.render(Format::JSON, &Appearance::default())?;
            OutputFile::open(&self.result())?.write(&bytes).with_context(|| self.result().display().to_string())?;
            self.finish()
        };
        match written() {
            Err(why) => not_kept(&why, quiet),
            Ok(()) if self.is_new && !quiet => Program::MEMGAUGE.message(format_args!(
                "kept in {}, to compare later checks of this machine with (--no-history keeps none)",
                self.path.display()
            )),
            Ok(()) => {}
        }
    }

    /// The file for this check's result.
    pub(crate) fn result(&self) -> PathBuf {
        self.path.join(&self.name)
    }

    /// Links to the result once it is written, and removes the oldest results. If it could not be written, all of them stay.
    ///
    /// # Errors
    /// When the link cannot be made or a result not be removed.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        if !self.result().is_file() {
            return Ok(());
        }
        self.link().with_context(|| format!("cannot link {}", self.path.join(LATEST).display()))?;
        for old in self.oldest()? {
            fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
        }
        Ok(())
    }

    /// Replaces the link in one step, so that there always is one.
    fn link(&self) -> io::Result<()> {
        let waiting = output_file::temporary_name(&self.path.join(LATEST));
        // A check that was killed here left its link; in a container its number may have been this one's.
        let _ = fs::remove_file(&waiting);
        files::link_to(&self.name, &waiting)?;
        fs::rename(&waiting, self.path.join(LATEST)).inspect_err(|_| drop(fs::remove_file(&waiting)))
    }

    /// The names of all results but the new one, the oldest first.
    fn results(&self) -> anyhow::Result<Vec<String>> {
        let entries = fs::read_dir(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_result(name) && *name != self.name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The results that are too many. The new one stays, even where the clock was set back.
    fn oldest(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut names = self.results()?;
        names.truncate((names.len() + 1).saturating_sub(self.keep));
        Ok(names.into_iter().map(|name| self.path.join(name)).collect())
    }
}

fn not_kept(why: &anyhow::Error, quiet: bool) {
    if !quiet {
        Program::MEMGAUGE.message(format_args!("earlier checks are left out, and this one is not kept: {why:#}"));
    }
}

/// Whether a check gave this name to its result. Other files in the folder are never removed.
fn is_result(name: &str) -> bool {
    const FORM: &str = "0000-00-00T00-00-00.000Z.json";
    let fits = |(found, form): (u8, u8)| if form == b'0' { found.is_ascii_digit() } else { found == form };
    name.len() == FORM.len() && name.bytes().zip(FORM.bytes()).all(fits)
}

/// Waits for the lock.
fn acquire(lock: &mut File, folder: &Path, longest: Option<Duration>) -> anyhow::Result<()> {
    let (begin, mut said) = (Instant::now(), false);
    loop {
        match files::try_lock(lock) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => bail!(UsageError::file(folder, format_args!("its file '{LOCK}' cannot be locked: {error}"))),
        }
        let other = || holder(lock).map(|id| format!(" (process {id})")).unwrap_or_default();
        let Some(longest) = longest else { bail!("another check uses {}{}", folder.display(), other()) };
        if begin.elapsed() >= longest {
            let (seconds, folder) = (longest.as_secs_f64(), folder.display());
            match longest.is_zero() {
                true => bail!("{folder}: another check runs{}; try again later, or wait for it with --lock-wait 60s", other()),
                false => bail!(
                    "{folder}: another check runs{} and has not ended in {seconds} s; try again later, or wait longer with --lock-wait",
                    other()
                ),
            }
        }
        if !std::mem::replace(&mut said, true) {
            let folder = folder.display();
            Program::MEMGAUGE.message(format_args!("{folder}: another check runs{}; waiting until it ends", other()));
        }
        process::sleep(LOOK);
    }
}

/// The process that holds the lock, if it can be determined: a process of another container has another number there.
fn holder(lock: &File) -> Option<u32> {
    let mut text = [0; 16];
    let length = files::read_locked(lock, &mut text).ok()?;
    let id: u32 = std::str::from_utf8(&text[..length]).ok()?.trim_end().parse().ok()?;
    (files::process_has_ended(id) == Some(false)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_results_are_removed() {
        let result = "2026-11-23T03-00-00.123Z.json";
        assert!(is_result(result) && format!("{}.json", clock::moment().utc.replace(':', "-")).len() == result.len());
        for other in
            ["latest.json", "lock", "first-day.json", "2026-11-23T03-00-00.123Z.html", "2026-11-23.json", "2026-11-23T03:00:00.123Z.json"]
        {
            assert!(!is_result(other), "{other}");
        }
    }

    #[test]
    fn the_oldest_are_too_many_and_the_new_one_never_is() {
        let folder = std::env::temp_dir().join(format!("memgauge-state-{}", std::process::id()));
        let mut state = StateFolder::open(&folder, 2, Duration::ZERO).unwrap();
        let name = |day: u32| format!("2026-11-{day:02}T03-00-00.000Z.json");
        for day in [3, 1, 2] {
            fs::write(folder.join(name(day)), name(day)).unwrap();
        }
        let removed =
            |state: &StateFolder| state.oldest().unwrap().iter().map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        let all: Vec<String> = removed(&state);
        assert_eq!(all, [name(1), name(2)], "the third and the new one are two");
        // The clock was set back.
        state.name = name(1);
        let all: Vec<String> = removed(&state);
        assert_eq!(all, [name(2)]);
        state.finish().unwrap();
        assert_eq!(fs::read_to_string(folder.join(LATEST)).unwrap(), name(1));
        assert!(!folder.join(name(2)).exists() && folder.join(name(3)).exists());
        // Windows removes no file that is open, as the lock is.
        drop(state);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_killed_check_left_does_not_stop_the_next_one() {
        let folder = std::env::temp_dir().join(format!("memgauge-killed-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // Checks in a container all have the same number.
        let link = output_file::temporary_name(&folder.join(LATEST));
        fs::write(folder.join("2026-11-01T03-00-00.000Z.json"), "").unwrap();
        files::link_to("2026-11-01T03-00-00.000Z.json", &link).unwrap();
        let state = StateFolder::open(&folder, 2, Duration::ZERO).unwrap();
        assert!(link.symlink_metadata().is_err(), "it is removed when the next check begins");
        files::link_to("2026-11-01T03-00-00.000Z.json", &link).unwrap();
        fs::write(state.result(), "the new one").unwrap();
        state.finish().unwrap();
        assert_eq!(fs::read_to_string(folder.join(LATEST)).unwrap(), "the new one");
        drop(state);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_second_names_the_first_and_gives_up_or_waits() {
        let folder = std::env::temp_dir().join(format!("memgauge-lock-{}", std::process::id()));
        let first = StateFolder::open(&folder, 1, Duration::ZERO).unwrap();
        let why = StateFolder::open(&folder, 1, Duration::ZERO).unwrap_err();
        assert!(!why.is::<UsageError>() && why.to_string().contains(&format!("(process {})", std::process::id())), "{why}");
        let waiting = std::thread::spawn({
            let folder = folder.clone();
            move || StateFolder::open(&folder, 1, Duration::from_secs(60)).map(drop)
        });
        std::thread::sleep(3 * LOOK);
        assert!(!waiting.is_finished());
        drop(first);
        waiting.join().unwrap().unwrap();
        fs::remove_dir_all(folder).unwrap();
    }
}
