//! Properties of a run, its machine and the machine's state, and what differs between runs.

use std::collections::BTreeSet;

use crate::result::{Difference, DifferentField, Report};
use crate::topology::{HYPERVISOR_NOT_KNOWN, Identity, UNKNOWN_HYPERVISOR};
use crate::wording::native::option;
use crate::wording::spelled;
use crate::words::Knob;

impl DifferentField {
    /// Whether it may change between two runs on one machine without anyone measuring something else.
    const fn is_of_state(self) -> bool {
        use DifferentField as F;
        matches!(
            self,
            F::Microcode
                | F::Hypervisor
                | F::Kernel
                | F::Cpus
                | F::Memory
                | F::AllowedCpus
                | F::TransparentHugePages
                | F::Governor
                | F::EnergyPreference
                | F::Turbo
                | F::NumaBalancing
        )
    }

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
pub fn differences(before: &[Report], after: &[Report]) -> Vec<Difference> {
    let values = |reports: &[Report], read: ReadField| -> Vec<String> {
        reports.iter().filter_map(read).collect::<BTreeSet<_>>().into_iter().collect()
    };
    let differences = FIELDS.iter().map(|&(field, read)| Difference { field, before: values(before, read), after: values(after, read) });
    differences.filter(|d| d.before != d.after).collect()
}

/// Settings of the machine that both runs know and that differ. Root reads more precise names of hypervisors than users.
pub fn changed_settings(before: &Report, after: &Report) -> Vec<Difference> {
    let unnamed = |value: &String| [UNKNOWN_HYPERVISOR, HYPERVISOR_NOT_KNOWN].contains(&value.as_str());
    let differing = |&(field, read): &(DifferentField, ReadField)| {
        let (before, after) = (read(before)?, read(after)?);
        let known = field != DifferentField::Hypervisor || !(unnamed(&before) || unnamed(&after));
        (known && before != after).then(|| Difference { field, before: vec![before], after: vec![after] })
    };
    FIELDS.iter().filter(|(field, _)| field.is_of_state()).filter_map(differing).collect()
}
