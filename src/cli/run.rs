//! `memgauge run FILE`: its command line, and the file that says what each CPU does.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use memgauge_model::spec::{
    BandwidthShape, BandwidthSpec, BufferPlace, ChaseSpec, CurveSpec, LoadedSpec, SecondStream, Spec, Task, ThreadSpec, TrafficSpec,
};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_os::directory;
use serde::Deserialize;

use super::options::{Pages, Precision, Prefetch};
use super::request::{Request, RunOptions};
use super::values::MAX_DELAY_CYCLES;
use crate::input;

const AFTER_HELP: &str = "\
The file is TOML:

  # optional: injection delays, a result for each
  delays = [0, 200]
  # optional: a chase beside the threads
  [chase]
  cpu = 0
  # what some CPUs do, each with its own buffer
  [[threads]]
  cpus = \"1-7\"
  # all-reads if absent
  mix = \"2:1\"
  # sequential if absent
  access = \"random\"
  # size of each CPU's buffer
  size = \"256M\"
  # or: directory = \"/mnt/pmem\"; the CPU's own node if both are absent
  node = 1
  # instead of the delays above
  delay = 100
  [[threads]]
  cpus = \"8-15\"
  # a second buffer, and its share of the accesses
  second = { node = 2, percent = 25 }

Examples:
  memgauge run threads.toml
  memgauge run threads.toml --plan          what each CPU would do
  memgauge run threads.toml -o result.json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RunArgs {
    /// A file that says what each CPU does (TOML, see below)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    prefetch: Prefetch,
    #[command(flatten)]
    pages: Pages,
    #[command(flatten)]
    precision: Precision,
    #[command(flatten)]
    run: RunOptions,
}

impl RunArgs {
    pub(super) fn request(self) -> anyhow::Result<Request> {
        let mut spec = read(&self.file)?;
        spec.prefetch = self.prefetch.prefetch;
        spec.pages = self.pages.pages;
        self.precision.apply(&mut spec);
        Ok(Request::new(spec, self.run))
    }
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    /// A chase beside the threads; without it only bandwidth is measured.
    chase: Option<Chase>,
    /// Core cycles to wait after every four lines (injection delay).
    #[serde(default)]
    delays: Vec<u32>,
    threads: Vec<Thread>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Chase {
    cpu: Option<u32>,
    node: Option<u32>,
    size: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Thread {
    cpus: Text,
    #[serde(default)]
    mix: Option<Text>,
    #[serde(default)]
    access: Access,
    size: Option<Text>,
    node: Option<u32>,
    directory: Option<PathBuf>,
    delay: Option<u32>,
    second: Option<Second>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Second {
    node: Option<u32>,
    directory: Option<PathBuf>,
    percent: u32,
}

/// A value in the command line's notation, or a plain number.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Text {
    Number(u64),
    Text(String),
}

impl Text {
    fn parse<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(&self) -> anyhow::Result<T> {
        match self {
            Self::Number(n) => Ok(n.to_string().parse()?),
            Self::Text(text) => Ok(text.parse()?),
        }
    }
}

/// What the file asks for.
///
/// # Errors
/// When the file cannot be read or parsed, or names a directory that cannot hold buffers.
fn read(path: &Path) -> anyhow::Result<Spec> {
    parse(&input::read_text(path)?).with_context(|| format!("{} does not say what threads do", path.display()))
}

pub(crate) fn parse(text: &str) -> anyhow::Result<Spec> {
    let file: File = input::parse_toml(text).map_err(anyhow::Error::msg)?;
    let buffer = file.chase.as_ref().and_then(|chase| chase.size.as_ref()).map(|s| s.parse()).transpose()?;
    file.delays.iter().try_for_each(|&delay| check_delay(delay))?;
    let delays = file.delays;
    ensure!(!file.threads.is_empty(), "it names no threads; add a [[threads]] table");
    let mut traffic = TrafficSpec::default();
    for (number, thread) in (1..).zip(file.threads) {
        traffic.threads.push(thread.spec().with_context(|| format!("threads table {number}"))?);
    }
    Ok(Spec::new(match file.chase {
        None => Task::Bandwidth(BandwidthSpec { shape: BandwidthShape::One, delays, traffic }),
        Some(Chase { cpu, node, .. }) => {
            let curve = CurveSpec { cpu, node, delays, ..CurveSpec::default() };
            Task::Loaded(LoadedSpec { chase: ChaseSpec { buffer, ..ChaseSpec::default() }, order: None, curve, traffic })
        }
    }))
}

/// The limit of the command line holds in files, too.
fn check_delay(cycles: u32) -> anyhow::Result<()> {
    ensure!(cycles <= MAX_DELAY_CYCLES, "a delay of {cycles} cycles is more than {MAX_DELAY_CYCLES}");
    Ok(())
}

impl Thread {
    fn spec(self) -> anyhow::Result<ThreadSpec> {
        let second = match self.second {
            Some(second) => Some(SecondStream { place: place(second.node, second.directory)?, percent: second.percent }),
            None => None,
        };
        self.delay.map_or(Ok(()), check_delay)?;
        ensure!(self.access != Access::Strided, "access is \"sequential\" or \"random\"");
        Ok(ThreadSpec {
            cpus: self.cpus.parse::<IdSet>()?,
            mix: self.mix.map(|m| m.parse()).transpose()?.unwrap_or(Mix::AllReads),
            access: self.access,
            size: self.size.map(|s| s.parse::<Bytes>()).transpose()?,
            place: place(self.node, self.directory)?,
            delay: self.delay,
            second,
        })
    }
}

fn place(node: Option<u32>, directory: Option<PathBuf>) -> anyhow::Result<BufferPlace> {
    match (node, directory) {
        (None, None) => Ok(BufferPlace::Local),
        (Some(node), None) => Ok(BufferPlace::Node(node)),
        (None, Some(path)) => Ok(BufferPlace::Directory(Box::new(directory::read(&path, Path::new("/"))?))),
        (Some(_), Some(_)) => bail!("a buffer is on a node or in a directory, not both"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file() {
        let spec = parse(
            "delays = [0, 100]\n[chase]\ncpu = 0\nsize = '200M'\n[[threads]]\ncpus = '1-3,8'\nmix = '2:1'\naccess = 'random'\nsize = '100M'\nnode = 1\ndelay = 50\n\
             [[threads]]\ncpus = 4\nsecond = { node = 2, percent = 25 }\n",
        )
        .unwrap();
        let loaded = options!(spec.task, Loaded);
        assert_eq!((loaded.curve.cpu, loaded.chase.buffer), (Some(0), Some(Bytes::mib(200))));
        assert_eq!(loaded.curve.delays, [0, 100]);
        let [a, b] = &loaded.traffic.threads[..] else { panic!("{loaded:?}") };
        assert_eq!((a.cpus.to_string().as_str(), a.mix, a.access, a.delay), ("1-3,8", Mix::R2W1, Access::Random, Some(50)));
        assert_eq!((a.size, &a.place), (Some(Bytes::mib(100)), &BufferPlace::Node(1)));
        assert_eq!((b.mix, &b.place, b.size), (Mix::AllReads, &BufferPlace::Local, None));
        assert_eq!(b.second, Some(SecondStream { place: BufferPlace::Node(2), percent: 25 }));
    }

    #[test]
    fn the_file_in_the_help_can_be_pasted() {
        let spec = parse(AFTER_HELP.split("TOML:").nth(1).unwrap().split("Examples:").next().unwrap()).unwrap();
        let loaded = options!(spec.task, Loaded);
        assert_eq!((loaded.curve.delays.len(), loaded.curve.cpu, loaded.traffic.threads.len()), (2, Some(0), 2));
        assert!(AFTER_HELP.lines().all(|line| line.len() < 80), "a longer line would be wrapped");
    }

    #[test]
    fn the_longest_delay() {
        let spec = parse("delays = [10000000]\n[[threads]]\ncpus = 0\ndelay = 10000000\n").unwrap();
        let bandwidth = options!(spec.task, Bandwidth);
        assert_eq!((bandwidth.delays, bandwidth.traffic.threads[0].delay), (vec![MAX_DELAY_CYCLES], Some(MAX_DELAY_CYCLES)));
    }

    #[test]
    fn without_a_chase_it_is_bandwidth() {
        let task = parse("[[threads]]\ncpus = '0'\n").unwrap().task;
        assert_eq!(options!(task, Bandwidth).shape, BandwidthShape::One);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("threads = []", "names no threads"),
            ("[[threads]]\ncpu = 1\n", "unknown field `cpu`"),
            ("[[threads]]\ncpus = 'x'\n", "threads table 1"),
            ("[[threads]]\ncpus = 0\nmix = '7:7'\n", "a mix"),
            ("[[threads]]\ncpus = 0\nnode = 0\ndirectory = '/tmp'\n", "not both"),
            ("[[threads]]\ncpus = 0\ndirectory = '/does/not/exist'\n", "/does/not/exist"),
            ("delays = [0, 10000001]\n[[threads]]\ncpus = 0\n", "10000001 cycles is more than 10000000"),
            ("[[threads]]\ncpus = 0\n[[threads]]\ncpus = 1\ndelay = 2000000000\n", "threads table 2: a delay of 2000000000 cycles"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
