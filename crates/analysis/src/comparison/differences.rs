//! What differs between two sets of runs apart from the numbers.

use std::collections::BTreeSet;

use memgauge_model::result::Report;
use memgauge_model::topology::Identity;
use memgauge_model::wording::native::option;
use memgauge_model::wording::spelled;
use memgauge_model::words::Knob;
use serde::{Deserialize, Serialize};

/// Something that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    /// What.
    pub field: DifferentField,
    /// Its values in the runs before, each once; empty where none is known.
    pub before: Vec<String>,
    /// The same of the runs after.
    pub after: Vec<String>,
}

/// A property of a machine, of its state, or of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DifferentField {
    /// The machine's name.
    Host,
    /// The CPU's model name.
    Cpu,
    /// Family, model, stepping.
    CpuModel,
    /// The CPU's microcode.
    Microcode,
    /// Vendor, product and BIOS version.
    Firmware,
    /// The hypervisor.
    Hypervisor,
    /// Kernel release.
    Kernel,
    /// Online CPUs.
    Cpus,
    /// Whether several hardware threads share a core.
    Smt,
    /// Memory nodes.
    Nodes,
    /// Memory, in GiB.
    Memory,
    /// Channels and their speed.
    Channels,
    /// The technology that encrypts memory.
    MemoryEncryption,
    /// CPUs that this process may use.
    AllowedCpus,
    /// Transparent huge pages.
    TransparentHugePages,
    /// The pages that backed buffers.
    Pages,
    /// Frequency governors.
    Governor,
    /// Energy/performance preferences.
    EnergyPreference,
    /// Whether turbo is allowed.
    Turbo,
    /// The kernel's NUMA balancing.
    NumaBalancing,
    /// The prefetchers' state.
    Prefetchers,
    /// The clock that was used.
    Clock,
    /// memgauge's version.
    Version,
    /// The command line, without output files.
    CommandLine,
}

impl DifferentField {
    /// Its value in one run; `None` where it is not known.
    pub fn value(self, report: &Report) -> Option<String> {
        FIELDS.iter().find(|(field, _)| *field == self).and_then(|(_, read)| read(report)).filter(|value| !value.is_empty())
    }
}

type ReadField = fn(&Report) -> Option<String>;

const FIELDS: [(DifferentField, ReadField); 24] = [
    (DifferentField::Host, |r| r.run.host.as_ref()?.hostname.clone()),
    (DifferentField::Cpu, |r| r.machine.identity.model_name.clone()),
    (DifferentField::CpuModel, |r| Some(model(&r.machine.identity))),
    (DifferentField::Microcode, |r| r.machine.identity.model.get("microcode").cloned()),
    (DifferentField::Firmware, |r| joined(r.machine.identity.firmware.values().cloned())),
    (DifferentField::Hypervisor, |r| r.machine.identity.hypervisor_for_all().map(str::to_owned)),
    (DifferentField::Kernel, |r| r.machine.identity.kernel.clone()),
    (DifferentField::Cpus, |r| Some(r.machine.topology.cpus.len().to_string())),
    (DifferentField::Smt, |r| r.machine.topology.smt_active.map(on_or_off)),
    (DifferentField::Nodes, |r| Some(r.machine.topology.nodes.len().to_string())),
    (DifferentField::Memory, |r| memory_gib(r).map(|gib| gib.to_string())),
    (DifferentField::Channels, |r| Some(r.machine.identity.installed.peak().ok()?.formula())),
    (DifferentField::MemoryEncryption, |r| r.machine.identity.memory_encryption.clone()),
    (DifferentField::AllowedCpus, |r| Some(r.machine.allowed.cpus.len().to_string())),
    (DifferentField::TransparentHugePages, |r| r.environment.thp.clone()),
    (DifferentField::Pages, pages),
    (DifferentField::Governor, |r| joined(r.environment.governors.iter().cloned())),
    (DifferentField::EnergyPreference, |r| joined(r.environment.energy_preferences.iter().cloned())),
    (DifferentField::Turbo, |r| r.environment.turbo.map(on_or_off)),
    (DifferentField::NumaBalancing, |r| r.environment.numa_balancing.map(on_or_off)),
    (DifferentField::Prefetchers, |r| r.environment.prefetch.as_ref().map(|p| spelled(&p.status))),
    (DifferentField::Clock, |r| r.environment.clock.as_ref().map(|c| c.source.clone())),
    (DifferentField::Version, |r| joined([Some(r.tool.version.clone()), r.tool.commit.clone()].into_iter().flatten())),
    (DifferentField::CommandLine, |r| Some(command(&r.argv))),
];

fn on_or_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn joined(words: impl Iterator<Item = String>) -> Option<String> {
    Some(words.collect::<Vec<_>>().join(" ")).filter(|w| !w.is_empty())
}

/// Everything that identifies the model but the microcode, which firmware and kernel update.
fn model(identity: &Identity) -> String {
    let words = identity.model.iter().filter(|(key, _)| *key != "microcode").map(|(key, value)| format!("{key} {value}"));
    words.collect::<Vec<_>>().join(", ")
}

/// Of all nodes. Firmware and kernel keep parts of it, which differ from boot to boot: whole GiB.
fn memory_gib(report: &Report) -> Option<u64> {
    let bytes: u64 = report.machine.topology.nodes.iter().map(|n| n.memory.map(|memory| memory.0)).sum::<Option<u64>>()?;
    Some((bytes + (1 << 29)) >> 30)
}

fn pages(report: &Report) -> Option<String> {
    let kinds: BTreeSet<_> = report.results.iter().filter_map(|m| m.evidence.pages.obtained).collect();
    joined(kinds.iter().map(spelled))
}

/// The arguments, without names of output files.
fn command(argv: &[String]) -> String {
    let output = option(Knob::Output);
    let mut words = Vec::new();
    let mut arguments = argv.iter().skip(1);
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "-o" => drop(arguments.next()),
            w if w == output => drop(arguments.next()),
            w if w.strip_prefix(output).is_some_and(|rest| rest.starts_with('=')) || (w.starts_with("-o") && !w.starts_with("--")) => {}
            _ => words.push(word.as_str()),
        }
    }
    words.join(" ")
}

/// Properties of a run, its machine and the machine's state, in the order of [`DifferentField`]; `None` for those that are not known.
pub fn properties(report: &Report) -> Vec<(DifferentField, Option<String>)> {
    FIELDS.iter().map(|&(field, read)| (field, read(report))).collect()
}

/// The properties that differ, in the order of [`DifferentField`].
pub(super) fn between(before: &[Report], after: &[Report]) -> Vec<Difference> {
    let values = |reports: &[Report], read: ReadField| -> Vec<String> {
        reports.iter().filter_map(read).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let differences = FIELDS.iter().map(|&(field, read)| Difference { field, before: values(before, read), after: values(after, read) });
    differences.filter(|d| d.before != d.after).collect()
}

/// Why runs are not of machines of one kind: the CPU's model, or metal against virtual. Everything else can be what was changed.
/// `None` if they are.
pub fn unlike(before: &[Report], after: &[Report]) -> Option<Difference> {
    let another = |b: &Report| after.iter().any(|a| b.is_on_another_hypervisor_than(a));
    between(before, after).into_iter().find(|difference| match difference.field {
        DifferentField::CpuModel => true,
        // Numbers say more than names do where there are any.
        DifferentField::Cpu => !before.iter().chain(after).all(|r| r.machine.identity.core_design().is_some()),
        DifferentField::Hypervisor => before.iter().any(another),
        _ => false,
    })
}
