//! Every mode and every letter, alone and together: what the tests of the subjects below share.

mod letters;
mod machines;
mod properties;
mod specs;

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use memgauge_model::directory::MemoryDir;
use memgauge_model::plan::KernelRow;
use memgauge_model::spec::{Spec, Task, TrafficSpec};
use memgauge_model::topology::Machine;
use memgauge_model::traffic::{Access, Form, LineUse, Mix, Width};
use memgauge_model::units::IdSet;

use super::letters::{CommandLine, Letters, Mode, parse};
use super::sections::{Inputs, Translation, translate};

/// Two packages of 16 cores with two threads each: CPUs 0-63, nodes 0-1, nothing measured.
pub(super) fn two_nodes() -> Machine {
    let report = memgauge_render::read(include_bytes!("../../tests/results/two-nodes.json")).unwrap();
    report.machine
}

fn pmem(path: &Path) -> Result<MemoryDir, String> {
    let report = memgauge_render::read(include_bytes!("../../tests/results/pmem.json")).unwrap();
    let mut dir = report.plan.unwrap().directories[0].clone();
    dir.file.path = path.display().to_string();
    Ok(dir)
}

/// The kernels that an x86-64 CPU may have: every mix in order, strided and random; parts of lines; written back with plain stores; checked reads.
fn kernels(widths: &[Width]) -> Vec<KernelRow> {
    let forms = [
        (Access::Sequential, LineUse::Whole),
        (Access::Strided, LineUse::Whole),
        (Access::Random, LineUse::Whole),
        (Access::Strided, LineUse::Part),
        (Access::Sequential, LineUse::WrittenBack),
        (Access::Sequential, LineUse::Checked),
    ];
    let mut rows = Vec::new();
    for (mix, width) in Mix::ALL.into_iter().flat_map(|m| widths.iter().map(move |w| (m, *w))) {
        for (access, line) in forms {
            let plain_stores = mix.lines().1 > 0 && !mix.non_temporal();
            let exists = match (access, line) {
                (Access::Random, _) => mix == mix.with_one_read_stream(),
                (_, LineUse::WrittenBack) => plain_stores,
                (_, LineUse::Checked) => mix == Mix::AllReads,
                (_, LineUse::Part) => !mix.non_temporal(),
                _ => true,
            };
            if exists {
                let form = Form { access, line };
                rows.push(KernelRow { name: format!("{mix}-{width}-{access:?}-{line:?}"), mix, width, form });
            }
        }
    }
    rows
}

const X86: [Width; 3] = [Width::Sse2, Width::Avx2, Width::Avx512];

fn arguments(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn letters_of(line: &str) -> (Mode, Letters, Vec<String>) {
    match parse(&arguments(line)) {
        Ok(CommandLine::Measure { mode, letters, ignored }) => (mode, *letters, ignored),
        other => panic!("{line}: {other:?}"),
    }
}

fn files(path: &Path) -> Result<String, String> {
    Ok(match path.to_str() {
        Some("delays") => "0\n300\n".into(),
        Some("pattern") => format!("{}\n", "5a".repeat(64)),
        Some("threads") => {
            "0 R seq 1m dram 1\n1-3 W5 rand 2m dram 0 100\n4-5 W6 seq 2m pmem /pmemfs0\n6 W21 seq 1m dram 0 dram 1 25\n".into()
        }
        Some("alone") => "0-0 R seq 40000 dram 1 # no load\n".into(),
        Some("stores") => "1 W5 seq 2m dram 0 100\n2 R seq 2m dram\n3 W5 rand 2m dram\n".into(),
        _ => return Err(format!("{}: not there", path.display())),
    })
}

/// The machine and files of the tests, with these kernels.
fn inputs(kernels: &[KernelRow]) -> Inputs<'_> {
    Inputs { machine: &MACHINE, kernels, prefetchers_off: false, read: &files, directory: &pmem }
}

fn ask_on(line: &str, widths: &[Width]) -> Result<Translation, String> {
    let (mode, letters, _) = letters_of(line);
    translate(mode, &letters, &inputs(&kernels(widths)))
}

/// The same with kernels that can run.
pub(super) fn ask_with(line: &str, kernels: &[KernelRow]) -> Translation {
    let (mode, letters, _) = letters_of(line);
    translate(mode, &letters, &inputs(kernels)).unwrap()
}

fn ask(line: &str) -> Translation {
    ask_on(line, &X86).unwrap()
}

/// The only spec of a mode's only section.
fn spec(line: &str) -> Spec {
    let translation = ask(line);
    assert_eq!(translation.sections.len(), 1, "{line}");
    assert_eq!(translation.sections[0].specs.len(), 1, "{line}");
    translation.sections[0].specs[0].clone()
}

/// The traffic of a spec.
fn traffic(spec: &Spec) -> &TrafficSpec {
    match &spec.task {
        Task::Bandwidth(bandwidth) => &bandwidth.traffic,
        task => &options!(task, Loaded).traffic,
    }
}

fn ids(list: &str) -> Option<IdSet> {
    Some(list.parse().unwrap())
}

static MACHINE: LazyLock<Machine> = LazyLock::new(two_nodes);
static KERNELS: LazyLock<Vec<KernelRow>> = LazyLock::new(|| kernels(&X86));
