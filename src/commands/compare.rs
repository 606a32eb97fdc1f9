//! `memgauge compare`: results before a change with results after it, saved ones or measured in turn.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus as ExitStatusOfChild, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, anyhow, bail};
use memgauge_analysis::comparison::{Comparison, ComparisonOptions, ComparisonVerdict, compare as compare_runs, unlike};
use memgauge_model::result::Report;
use memgauge_model::wording::reasons;
use memgauge_os::signals::interrupt_child;
use tempfile::TempDir;

use crate::cli::compare::CompareArgs;
use crate::console::{Program, Stream};
use crate::exit::{ExitStatus, UsageError};
use crate::input::result_files;
use crate::output_file::temporary_folder;
use crate::signals::{self, Stop};
use crate::sinks::{Sinks, read_report};
use crate::state_folder;

/// What separates the two commands of `--runs`.
const BETWEEN_COMMANDS: &str = "---";

/// The runs of one side, and its name in texts.
struct Runs {
    name: String,
    reports: Vec<Report>,
}

/// Reads or measures both sides, compares them, and writes the comparison.
pub(crate) fn compare(args: CompareArgs) -> anyhow::Result<ExitStatus> {
    args.output.figure.check_one(&args.output.to.output)?;
    let sinks =
        Sinks::open::<Comparison>(&args.output.to, Stream::Output)?.verbose(args.output.verbose).figures(&args.output.figure.options());
    let (before, after) = match args.runs {
        Some(runs) if args.after.is_empty() => {
            // Before anything is measured: a name may be wrong.
            let before = (!args.before.is_empty()).then(|| read_side(&args.before)).transpose()?;
            let Some(now) = measure_now(&args, runs, usize::from(before.is_some()))? else { return Ok(ExitStatus::INTERRUPTED) };
            let Some(before) = before else { return Ok(ExitStatus::SUCCESS) };
            (before, now)
        }
        Some(runs) => match measure_in_turn(&args, runs)? {
            Some(sides) => sides,
            None => return Ok(ExitStatus::INTERRUPTED),
        },
        None => read_sides(&args)?,
    };
    if !args.across
        && let Some(difference) = unlike(&before.reports, &after.reports)
    {
        let value = |values: &[String]| if values.is_empty() { "none".to_owned() } else { values.join(" | ") };
        let (a, b) = (value(&difference.before), value(&difference.after));
        bail!(UsageError(format!("the machines are not of one kind: {a} before, {b} after; --across compares them nevertheless")));
    }
    let in_turn = args.runs.is_some() && !args.after.is_empty();
    let options = ComparisonOptions { margin: args.margin, seed: args.seed, across: args.across, in_turn };
    let comparison = compare_runs((&before.name, &before.reports), (&after.name, &after.reports), options);
    sinks.write(&comparison)?;
    Ok(status(&comparison))
}

const fn status(comparison: &Comparison) -> ExitStatus {
    match comparison.verdict {
        ComparisonVerdict::Same | ComparisonVerdict::Better => ExitStatus::SUCCESS,
        ComparisonVerdict::Inconclusive => ExitStatus::INCONCLUSIVE,
        ComparisonVerdict::Worse => ExitStatus::WORSE,
    }
}

fn read_sides(args: &CompareArgs) -> Result<(Runs, Runs), UsageError> {
    let after: Vec<PathBuf> = args.after.iter().map(PathBuf::from).collect();
    match (&args.before[..], &after[..]) {
        ([before, after], []) => different_runs(read_side(std::slice::from_ref(before))?, read_side(std::slice::from_ref(after))?),
        ([], _) | (_, []) => {
            Err(UsageError("name results of both sides: memgauge compare before.json after.json, or BEFORE… -- AFTER…".into()))
        }
        (before, after) => {
            let option = after.iter().find(|path| path.to_string_lossy().starts_with('-') && !path.exists());
            match option {
                Some(option) => Err(UsageError(format!("{}: options stand before the results", option.display()))),
                None => different_runs(read_side(before)?, read_side(after)?),
            }
        }
    }
}

/// # Errors
/// When a run is on both sides: it differs from itself by nothing.
fn different_runs(before: Runs, after: Runs) -> Result<(Runs, Runs), UsageError> {
    let is_before = |run: &Report| !run.run.id.is_empty() && before.reports.iter().any(|other| other.run.id == run.run.id);
    if after.reports.iter().any(is_before) {
        return Err(UsageError(format!("{} and {} have the same run; compare two runs", before.name, after.name)));
    }
    Ok((before, after))
}

fn read_side(paths: &[PathBuf]) -> Result<Runs, UsageError> {
    let files = result_files(paths)?;
    let reports = files.iter().map(|file| read_report(file)).collect::<Result<Vec<_>, _>>()?;
    if let Some((first, again)) = same_run(&reports) {
        return Err(UsageError::file(&files[again], format!("is the same run as {}; name each run once", files[first].display())));
    }
    let measured = reports.iter().position(|r| r.measured() == 0);
    if let (Some(i), [path]) = (measured, paths) {
        let which = if path.is_dir() { format!("run {} in it", i + 1) } else { "it".to_owned() };
        return Err(UsageError::file(path, format_args!("{which} has no measured number to compare")));
    }
    let more = if paths.len() > 1 { ", …" } else { "" };
    let name = paths.first().map(|p| format!("{}{more}", p.display())).unwrap_or_default();
    Ok(Runs { name, reports })
}

/// Two of these that are one run, which says nothing about how runs differ. A report without an ID may be any.
fn same_run(reports: &[Report]) -> Option<(usize, usize)> {
    let first = |id: &str| reports.iter().position(|r| r.run.id == id);
    let again = reports.iter().enumerate().filter(|(_, r)| !r.run.id.is_empty());
    again.filter_map(|(i, r)| Some((first(&r.run.id)?, i))).find(|(first, again)| first != again)
}

/// How the names of both sides' files begin.
const SIDES: [&str; 2] = ["before", "after"];

/// The name of a file that an earlier comparison kept in a folder, such as `before-1.json`. A run that fails leaves it as it is, and it
/// would be read as if it had just been measured.
fn kept_before(folder: &Path) -> io::Result<Option<String>> {
    let is_kept = |name: &str| {
        let number = |side: &str| name.strip_prefix(side)?.strip_prefix('-')?.strip_suffix(".json")?.parse::<u32>().ok();
        SIDES.into_iter().any(|side| number(side).is_some())
    };
    let names: Vec<OsString> = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    let kept = names.iter().filter_map(|name| name.to_str()).filter(|name| is_kept(name));
    Ok(kept.min().map(str::to_owned))
}

/// Where the results of the runs are until they are compared: a folder of the user's, or one that goes away.
enum Folder {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl Folder {
    fn new(keep: Option<&Path>) -> anyhow::Result<Self> {
        match keep {
            Some(path) => {
                fs::create_dir_all(path).map_err(|e| UsageError::file(path, format_args!("cannot be made: {e}")))?;
                if let Some(name) = kept_before(path).map_err(|e| UsageError::file(path, format_args!("cannot be read: {e}")))? {
                    bail!(UsageError::file(path, format!("has {name} of an earlier comparison; name a new folder, or remove its results")));
                }
                Ok(Self::Kept(path.to_owned()))
            }
            None => {
                let parent = temporary_folder().unwrap_or_else(|| PathBuf::from("."));
                let made = TempDir::with_prefix_in("memgauge-compare-", parent);
                Ok(Self::Temporary(made.context("cannot make a folder for the results")?))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }

    /// Keeps what was measured, if anything was, and says where it is.
    fn keep(&mut self, sides: &[Runs]) -> String {
        if sides.iter().all(|side| side.reports.is_empty()) {
            return "nothing was measured".to_owned();
        }
        if let Self::Temporary(folder) = self {
            folder.disable_cleanup(true);
        }
        format!("results so far: {}", self.path().display())
    }
}

/// Runs of this program, one after the other, on one side of a comparison or on both.
struct Rounds {
    program: PathBuf,
    /// What each run measures.
    arguments: Vec<String>,
    stop: Stop,
    folder: Folder,
    sides: Vec<Runs>,
    begin: Instant,
}

impl Rounds {
    fn begin(args: &CompareArgs, names: impl IntoIterator<Item = String>) -> anyhow::Result<Self> {
        Ok(Self {
            arguments: words(&args.measure).map_err(|why| UsageError(format!("--measure {}: {why}", args.measure)))?,
            program: std::env::current_exe().context("cannot find this program's file")?,
            stop: signals::watch().context("cannot install signal handlers")?,
            folder: Folder::new(args.keep.as_deref())?,
            sides: names.into_iter().map(|name| Runs { name, reports: Vec::new() }).collect(),
            begin: Instant::now(),
        })
    }

    /// Measures a side once more, into this file, after the command that makes its state. Whether no signal ended it.
    fn measure(&mut self, side: usize, file: &str, command: Option<&[OsString]>) -> anyhow::Result<bool> {
        let file = self.folder.path().join(file);
        let changed = command.map_or(Ok(()), |command| change(command, &self.stop));
        let measured = changed.and_then(|()| measure(&self.program, &self.arguments, &file, &self.stop));
        if let Some(interruption) = self.stop.interruption() {
            Program::MEMGAUGE.message(format_args!("{}; {}", reasons::incomplete(&interruption), self.folder.keep(&self.sides)));
            return Ok(false);
        }
        match measured {
            Ok(report) => self.sides[side].reports.push(report),
            Err(error) => bail!("{error:#}; {}", self.folder.keep(&self.sides)),
        }
        Ok(true)
    }

    /// Says how far it is, and how long the rest takes if it takes as long as what is done.
    fn progress(&self, what: &str, round: u32, rounds: u32) {
        let left_s = self.begin.elapsed().as_secs_f64() / f64::from(round) * f64::from(rounds - round);
        let left = if round < rounds { format!("; about {left_s:.0} s left") } else { String::new() };
        Program::MEMGAUGE.message(format_args!("measured {what}{round} of {rounds} times{left}"));
    }
}

/// The machine as it is now, to be compared with runs from before a change, or with those after it: `side` is 1 or 0. `None` if a signal
/// ended it.
fn measure_now(args: &CompareArgs, runs: u32, side: usize) -> anyhow::Result<Option<Runs>> {
    if side == 0 && args.keep.is_none() {
        bail!(UsageError(
            "--runs needs results to compare with, two commands, or a folder for the runs: memgauge compare --runs 5 --keep BEFORE; after \
             the change memgauge compare --runs 5 BEFORE"
                .into()
        ));
    }
    let mut rounds = Rounds::begin(args, ["now".to_owned()])?;
    for run in 1..=runs {
        if !rounds.measure(0, &format!("{}-{run}.json", SIDES[side]), None)? {
            return Ok(None);
        }
        rounds.progress("", run, runs);
    }
    if let (0, Some(kept)) = (side, &args.keep) {
        let kept = kept.display();
        let text = format!("The runs are in {kept}. After the change: memgauge compare --runs {runs} {kept}\n");
        Stream::Output.print(text.as_bytes())?;
    }
    Ok(rounds.sides.pop())
}

/// The two states in turn, A B B A …, each with a measurement after its command. `None` if a signal ended it.
fn measure_in_turn(args: &CompareArgs, runs: u32) -> anyhow::Result<Option<(Runs, Runs)>> {
    let commands: Vec<&[OsString]> = args.after.split(|word| word == BETWEEN_COMMANDS).collect();
    let (&[a, b], []) = (&commands[..], &args.before[..]) else {
        bail!(UsageError("--runs with commands needs two of them: memgauge compare --runs 5 -- COMMAND-A --- COMMAND-B".into()));
    };
    if a.is_empty() || b.is_empty() {
        bail!(UsageError("--runs needs a command on each side of ---; `true` changes nothing".into()));
    }
    let mut rounds = Rounds::begin(args, [a, b].map(shown))?;
    for run in 1..=runs {
        let order = if run % 2 == 1 { [0, 1] } else { [1, 0] };
        for side in order {
            if !rounds.measure(side, &format!("{}-{run}.json", SIDES[side]), Some([a, b][side]))? {
                return Ok(None);
            }
        }
        rounds.progress("both sides ", run, runs);
    }
    let after = rounds.sides.pop();
    Ok(rounds.sides.pop().zip(after))
}

fn shown(command: &[OsString]) -> String {
    command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs a command that changes the machine. Its output goes to standard error: standard output is the comparison's.
fn change(command: &[OsString], stop: &Stop) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().ok_or_else(|| anyhow!("no command"))?;
    let mut child = Command::new(program);
    child.args(arguments).stdin(Stdio::null()).stdout(io::stderr());
    let status = run(child, stop).with_context(|| format!("cannot run {}", program.to_string_lossy()))?;
    if !status.success() {
        bail!("`{}` failed ({status}), so the state that it should make is not known", shown(command));
    }
    Ok(())
}

/// Runs this program, and reads what it measured. A health check that finds something has measured, too.
fn measure(program: &Path, arguments: &[String], file: &Path, stop: &Stop) -> anyhow::Result<Report> {
    let mut command = Command::new(program);
    command.args(arguments).arg("-q").arg("-o").arg(file).stdin(Stdio::null()).stdout(Stdio::null());
    // A state that is tried is not what the machine usually is.
    command.env(state_folder::VARIABLE, "");
    let status = run(command, stop).context("cannot run memgauge again")?;
    let report = if file.exists() { Some(read_report(file)?) } else { None };
    report.filter(|report| report.measured() > 0).ok_or_else(|| anyhow!("`memgauge {}` measured nothing ({status})", arguments.join(" ")))
}

/// The words of a command line, as a shell without variables splits them: at spaces that are not in quotes or behind a backslash.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            // In double quotes a backslash is one, unless it stands before a quote or another.
            (None | Some('"'), '\\') => {
                let next = chars.next().ok_or("it ends in a backslash")?;
                let word = word.get_or_insert_default();
                if quote.is_some() && !matches!(next, '"' | '\\') {
                    word.push('\\');
                }
                word.push(next);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quote is not closed") } else { Ok(words) }
}

/// How often to look whether a program has ended. What is measured runs alone all the same: looking takes microseconds.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a program to its end. A signal that asks this one to stop is passed on.
fn run(mut command: Command, stop: &Stop) -> io::Result<ExitStatusOfChild> {
    let mut child = command.spawn()?;
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.flag().load(Ordering::SeqCst) && !told {
            told = true;
            // It may have ended just now.
            let _ = interrupt_child(&child);
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_quotes_is_one_word() {
        let split = |line| words(line).unwrap();
        assert_eq!(split("  quick --within\t20s "), ["quick", "--within", "20s"]);
        assert_eq!(split(r#"sweep --label 'run of=a "b"' "" x"y z"w"#), ["sweep", "--label", "run of=a \"b\"", "", "xy zw"]);
        assert_eq!(split(r#"a\ b "c\"d\e" 'f\g' \\"#), ["a b", r#"c"d\e"#, r"f\g", r"\"]);
        assert_eq!(split(""), [""; 0]);
        assert!(words("a 'b").is_err() && words("a \\").is_err());
    }
}
