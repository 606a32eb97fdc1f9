//! A folder with one text file for each run of the suite for persistent memory, beside the whole result.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use memgauge_core::experiment::{ChaseOrder, Coordinates, Experiment};
use memgauge_core::result::{Measurement, Report};
use memgauge_core::traffic::{Access, Mix};
use memgauge_render::{FILE_WIDTH, Format, Text};

use crate::exit::UsageError;
use crate::output_file::OutputFile;

/// The files that have all of the result; their endings choose their formats.
const WHOLE: [&str; 5] = ["result.json", "summary.txt", "figures.svg", "figures.png", "figures.pdf"];

/// The folder.
#[derive(Debug)]
pub(crate) struct RunFolder(PathBuf);

impl RunFolder {
    /// Makes the folder, or takes an empty one, so that no two results are mixed.
    ///
    /// # Errors
    /// When it cannot be made, or holds something.
    pub(crate) fn open(path: PathBuf) -> Result<Self, UsageError> {
        fs::create_dir_all(&path).map_err(|e| UsageError::file(&path, format_args!("the folder cannot be made: {e}; name another one")))?;
        let mut entries = fs::read_dir(&path).map_err(|e| UsageError::file(&path, format_args!("the folder cannot be read: {e}")))?;
        if entries.next().is_some() {
            return Err(UsageError::file(&path, "the folder is not empty; name a new one, such as one with the date"));
        }
        Ok(Self(path))
    }

    /// The files for the whole result.
    pub(crate) fn whole_results(&self) -> impl Iterator<Item = PathBuf> {
        WHOLE.iter().map(|name| self.0.join(name))
    }

    /// Writes a file for each run.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        let text = Text { width: FILE_WIDTH, colour: false, verbose: true };
        for (name, run) in runs(report) {
            let path = self.0.join(format!("{name}.txt"));
            let write = || -> anyhow::Result<()> { Ok(OutputFile::open(&path)?.write(&text.render(&run)?)?) };
            write().with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// The runs by name, each a report of its own measurements.
fn runs(report: &Report) -> BTreeMap<String, Report> {
    let mut by_name: BTreeMap<String, Vec<Measurement>> = BTreeMap::new();
    let labels = labels(report);
    for m in &report.results {
        by_name.entry(run_name(m, &labels)).or_default().push(m.clone());
    }
    let frame = Report { results: Vec::new(), repeats: Vec::new(), curves: Vec::new(), ..report.clone() };
    let run = |results: Vec<Measurement>| {
        let point_of = |at: &Coordinates| results.iter().any(|m| Coordinates { delay_cycles: None, ..m.at.clone() } == *at);
        let curves = report.curves.iter().filter(|curve| point_of(&curve.at)).cloned().collect();
        Report { results, curves, ..frame.clone() }
    };
    by_name.into_iter().map(|(name, results)| (name, run(results))).collect()
}

/// What each directory is called in names of files: its last part, and a number where several end alike.
fn labels(report: &Report) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for dir in report.plan.iter().flat_map(|plan| &plan.directories) {
        let last = Path::new(&dir.file.path).file_name().unwrap_or_default().to_string_lossy();
        let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).collect();
        let plain = if plain.is_empty() { "root".to_owned() } else { plain };
        let mut label = plain.clone();
        let mut n = 2;
        while labels.values().any(|used| *used == label) {
            label = format!("{plain}-{n}");
            n += 1;
        }
        labels.insert(dir.file.path.clone(), label);
    }
    labels
}

/// `pmem0_node1_bandwidth_rand_W6`: directory, node of the CPUs, and the run by the letters that users of mlc's scripts know.
fn run_name(m: &Measurement, labels: &BTreeMap<String, String>) -> String {
    let order = match (m.at.access, m.at.order) {
        (Some(Access::Random), _) | (None, Some(ChaseOrder::WindowLocal | ChaseOrder::FullRandom)) => "_rand",
        (Some(_), _) | (None, Some(ChaseOrder::Sequential)) => "_seq",
        (None, None) => "",
    };
    let letter = match m.at.mix {
        Some(Mix::AllReads) => "_R",
        Some(Mix::R2W1) => "_W2",
        Some(Mix::R1W1) => "_W5",
        Some(Mix::NtWrite) => "_W6",
        Some(Mix::R2W1Nt | Mix::R2W1NtX1) => "_W7",
        _ => "",
    };
    let run = match m.experiment {
        Experiment::IdleLatency => format!("idle_latency{order}"),
        Experiment::LoadedLatency => format!("loaded_latency{order}"),
        Experiment::BandwidthRamp => format!("ramp{order}{letter}"),
        Experiment::Bandwidth => format!("bandwidth{order}{letter}"),
        other => memgauge_core::wording::spelled(&other).replace('-', "_"),
    };
    let directory = m.at.memory_dir.as_ref().and_then(|path| labels.get(path)).map_or("memory", String::as_str);
    let node = m.at.cpu_node.map(|node| format!("_node{node}")).unwrap_or_default();
    format!("{directory}{node}_{run}")
}
