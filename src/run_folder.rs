//! A folder with one text file for each run of the suite for persistent memory, beside the whole result. The files have the names that users
//! of the field's script around mlc know.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use memgauge_model::axis::Axis;
use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment};
use memgauge_model::plan::{Delays, LoadCurve, Plan, Work};
use memgauge_model::result::{Measurement, Report};
use memgauge_model::traffic::{Access, Mix};
use memgauge_model::units::IdSet;
use memgauge_render::{Appearance, Document};

use crate::exit::UsageError;
use crate::output_file::OutputFile;

mod modules;

/// The files that have all of the result; their endings choose their formats.
const WHOLE: [&str; 6] = ["result.json", "result.csv", "summary.txt", "figures.svg", "figures.png", "figures.pdf"];

/// The folder.
#[derive(Debug)]
pub(crate) struct RunFolder(PathBuf);

impl RunFolder {
    /// A folder with this name, which need not exist yet.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Makes the folder, or takes an empty one, so that no two results are mixed.
    ///
    /// # Errors
    /// When it cannot be made, or holds something.
    pub(crate) fn create(&self) -> Result<(), UsageError> {
        let path = &self.0;
        fs::create_dir_all(path).map_err(|e| UsageError::file(path, format_args!("the folder cannot be made: {e}; name another one")))?;
        let mut entries = fs::read_dir(path).map_err(|e| UsageError::file(path, format_args!("the folder cannot be read: {e}")))?;
        if entries.next().is_some() {
            return Err(UsageError::file(path, "the folder is not empty; name a new one, such as one with the date"));
        }
        Ok(())
    }

    /// The files for the whole result.
    pub(crate) fn whole_results(&self) -> impl Iterator<Item = PathBuf> {
        WHOLE.iter().map(|name| self.0.join(name))
    }

    /// Writes a file for each run, the list of delays, and what is known of the modules.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub(crate) fn write(&self, report: &Report) -> anyhow::Result<()> {
        for (name, run) in runs(report) {
            self.write_file(&name, run.text(&Appearance::default()).as_bytes())?;
        }
        let Some(plan) = &report.plan else { return Ok(()) };
        let delays: String = delays(plan).iter().map(|delay| format!("{delay}\n")).collect();
        if !delays.is_empty() {
            self.write_file(Path::new("delays.txt"), delays.as_bytes())?;
        }
        self.write_file(Path::new("dimm_info.dat"), modules::listed(&plan.directories).as_bytes())
    }

    fn write_file(&self, name: &Path, content: &[u8]) -> anyhow::Result<()> {
        let path = self.0.join(name);
        let write = || -> anyhow::Result<()> {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            Ok(OutputFile::open(&path)?.write(content)?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// The injection delays of the curves.
fn delays(plan: &Plan) -> Vec<u32> {
    let mut cells = plan.steps.iter().flat_map(|step| &step.cells);
    let listed =
        |work: &Work| if let Work::Curve(LoadCurve { delays: Delays::Cycles(list), .. }) = work { Some(list.clone()) } else { None };
    cells.find_map(|cell| listed(&cell.work)).unwrap_or_default()
}

/// The runs by name, each a report of its own measurements.
fn runs(report: &Report) -> BTreeMap<PathBuf, Report> {
    let mut by_name: BTreeMap<PathBuf, Vec<Measurement>> = BTreeMap::new();
    let places = places(report.plan.iter());
    for m in &report.results {
        let folder = places.get(&place(&m.at)).cloned().unwrap_or_default();
        by_name.entry(folder.join(run_name(m) + ".txt")).or_default().push(m.clone());
    }
    let frame = Report { results: Vec::new(), repeats: Vec::new(), curves: Vec::new(), ..report.clone() };
    let run = |results: Vec<Measurement>| {
        let point_of = |at: &Coordinates| results.iter().any(|m| m.at.without(Axis::DelayCycles) == *at);
        let curves = report.curves.iter().filter(|curve| point_of(&curve.at)).cloned().collect();
        Report { results, curves, ..frame.clone() }
    };
    by_name.into_iter().map(|(name, results)| (name, run(results))).collect()
}

/// A directory and the node of the CPUs that measure it.
type Place = (Option<String>, Option<u32>);

fn place(at: &Coordinates) -> Place {
    (at.memory_dir.clone(), at.cpu_node)
}

/// The subfolder of each place: `pmem0_node1`, by the last part of the directory. None where there is one place.
fn places<'a>(plan: impl Iterator<Item = &'a Plan> + Clone) -> BTreeMap<Place, PathBuf> {
    let all: BTreeSet<Place> = plan.clone().flat_map(|plan| &plan.steps).flat_map(|step| &step.cells).map(|cell| place(&cell.at)).collect();
    if all.len() < 2 {
        return BTreeMap::new();
    }
    let labels = labels(plan.flat_map(|plan| &plan.directories).map(|dir| dir.file.path.as_str()));
    let folder = |(directory, node): &Place| {
        let label = directory.as_ref().and_then(|path| labels.get(path)).map_or("memory", String::as_str);
        PathBuf::from(format!("{label}{}", node.map(|node| format!("_node{node}")).unwrap_or_default()))
    };
    all.into_iter().map(|place| (place.clone(), folder(&place))).collect()
}

/// What each directory is called in names of folders: its last part, and a number where several end alike.
fn labels<'a>(directories: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for path in directories {
        let last = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() || "-.".contains(c) { c } else { '-' }).collect();
        let plain = if plain.is_empty() { "root".to_owned() } else { plain };
        let mut label = plain.clone();
        let mut n = 2;
        while labels.values().any(|used| *used == label) {
            label = format!("{plain}-{n}");
            n += 1;
        }
        labels.insert(path.to_owned(), label);
    }
    labels
}

/// `bw_rnd_WRITE_NT`: what is measured, in which order, of which traffic. As in the script, the ramp says `rand` and the letters of mlc, and
/// everything else `rnd` and words.
fn run_name(m: &Measurement) -> String {
    let random = match (m.at.access, m.at.order) {
        (Some(access), _) => access == Access::Random,
        (None, order) => order.is_some_and(|order| order != ChaseOrder::Sequential),
    };
    let (order, ramp_order) = if random { ("rnd", "rand") } else { ("seq", "seq") };
    let (letter, traffic) = match m.at.mix {
        Some(Mix::AllReads) => ("R", "READ"),
        Some(Mix::R2W1) => ("W2", "2READ_1WRITE"),
        Some(Mix::R1W1) => ("W5", "1READ_1WRITE"),
        Some(Mix::NtWrite) => ("W6", "WRITE_NT"),
        Some(Mix::R2W1NtX1) => ("W7", "2READ_1WRITE_NT"),
        other => (other.map_or("", Mix::name), other.map_or("", Mix::name)),
    };
    let cpus = m.at.cpus.as_ref();
    match m.experiment {
        Experiment::IdleLatency => format!("idle_{order}"),
        Experiment::LoadedLatency => format!(
            "out_llat_{order}_{traffic}_{}", // A list may have a step, after a sign that Windows takes in no name.
            cpus.map(|list| list.to_string().replace(':', "_")).unwrap_or_default()
        ),
        Experiment::BandwidthRamp => format!("bw_{ramp_order}_{letter}_{}CPU", cpus.map_or(0, IdSet::len)),
        Experiment::Bandwidth => format!("bw_{order}_{traffic}"),
        other => other.name().replace('-', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_end_alike_have_different_folders() {
        let named = labels(["/mnt/pmem0", "/srv/pmem0", "/", "/mnt/a b"].into_iter());
        let names: Vec<&str> = ["/mnt/pmem0", "/srv/pmem0", "/", "/mnt/a b"].iter().map(|path| named[*path].as_str()).collect();
        assert_eq!(names, ["pmem0", "pmem0-2", "root", "a-b"]);
    }
}
