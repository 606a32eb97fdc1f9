//! The prefetcher registers of this machine: which CPUs have one, and what it says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use memgauge_model::experiment::PrefetchRequest;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::prefetchers::{self, Control, PrefetchState, PrefetchStatus, Processor, RegisterReading};
use memgauge_model::topology::Machine;
use memgauge_model::units::IdSet;
use memgauge_model::wording::number_of;
use memgauge_model::words;
use memgauge_model::words::{Knob, Problem, Verb, Way};
use memgauge_os::prefetch::{JOURNALS, Leftover, PrefetchError, PrefetchRegisters};
use memgauge_os::prefetch::{MSR_DEVICES, MsrError};
use memgauge_os::process::has_more_privileges_than_its_user;

/// For tests: a folder in place of `/dev/cpu`.
const MSR_ROOT: &str = "MEMGAUGE_MSR_ROOT";
/// For tests: the processor to stand in for, `VENDOR,FAMILY,MODEL[,announced][,obeys]`; one that obeys is taken to do what its registers say.
/// It counts only together with the folder above, so that no real register is mistaken for that of another processor.
const ACT_AS: &str = "MEMGAUGE_PREFETCH_AS";
/// For tests: a folder in place of `/run/memgauge`. It counts only together with the first one.
const RUNTIME: &str = "MEMGAUGE_RUNTIME_DIR";

/// What the environment puts in place of real registers. There is one way to ask for it, so that nothing of it ever meets a real register.
#[derive(Debug, PartialEq, Eq)]
struct StandIn {
    devices: PathBuf,
    journals: PathBuf,
    /// The words that describe the processor.
    processor: Option<String>,
}

impl StandIn {
    fn find() -> Option<Self> {
        Self::from_variables(|name| std::env::var_os(name), has_more_privileges_than_its_user())
    }

    /// Journals decide what is written to registers, and a processor what they mean, so both count only beside a folder of registers that is
    /// not below `/dev`; and nothing of this where the program has privileges that its user does not have.
    fn from_variables(variable: impl Fn(&str) -> Option<OsString>, privileged: bool) -> Option<Self> {
        let devices = PathBuf::from(variable(MSR_ROOT).filter(|_| !privileged)?);
        if devices.canonicalize().ok()?.starts_with("/dev") {
            return None;
        }
        let journals = variable(RUNTIME).map_or_else(|| devices.join("journals"), PathBuf::from);
        Some(Self { devices, journals, processor: variable(ACT_AS).and_then(|words| words.into_string().ok()) })
    }

    /// Whether the registers are those of a processor that is taken to do what they say: registers of files switch no prefetcher.
    fn obeys(&self) -> bool {
        self.processor.as_deref().is_some_and(|words| words.split(',').any(|word| word == "obeys"))
    }
}

/// The registers and the journal of this machine, or of a test.
pub(crate) fn place() -> PrefetchRegisters {
    match StandIn::find() {
        Some(StandIn { devices, journals, .. }) => PrefetchRegisters::new(devices, journals, "/"),
        None => PrefetchRegisters::new(MSR_DEVICES, JOURNALS, "/"),
    }
}

/// The register of every online CPU, or why it has none.
fn find_controls(machine: &Machine) -> BTreeMap<u32, Result<Control, String>> {
    let Some(stand_in) = StandIn::find().and_then(|stand_in| stand_in.processor) else {
        return prefetchers::controls(machine, memgauge_kernels::has_prefetch_control());
    };
    let words: Vec<&str> = stand_in.split(',').collect();
    let number = |i: usize| words.get(i).and_then(|w| w.parse().ok());
    let cpu = Processor {
        arch: "x86_64",
        vendor: words.first().copied().unwrap_or_default(),
        family: number(1),
        model: number(2),
        kind: None,
        announced: words.contains(&"announced"),
        virtual_machine: false,
    };
    machine.topology.cpus.iter().map(|c| (c.id, prefetchers::control(&cpu))).collect()
}

/// Whether registers stand in for those of a processor that does what they say, so that chases need not show it.
pub(crate) fn stand_in_obeys() -> bool {
    StandIn::find().is_some_and(|stand_in| stand_in.obeys())
}

/// An error that says what to do about it.
pub(crate) fn with_advice(error: &PrefetchError) -> anyhow::Error {
    Problem::new(error.to_string(), error.advice()).into()
}

/// Which CPUs have a register that controls their prefetchers.
pub(crate) struct PrefetchControls {
    /// The register of each CPU that has one.
    pub(crate) by_cpu: BTreeMap<u32, Control>,
    /// Why the other CPUs have none.
    without: BTreeMap<u32, String>,
    offline: IdSet,
}

impl PrefetchControls {
    /// Which CPUs of this machine have a register.
    pub(crate) fn find(machine: &Machine) -> Self {
        let mut controls = Self { by_cpu: BTreeMap::new(), without: BTreeMap::new(), offline: machine.topology.offline.clone() };
        for (cpu, control) in find_controls(machine) {
            match control {
                Ok(control) => drop(controls.by_cpu.insert(cpu, control)),
                Err(why) => drop(controls.without.insert(cpu, why)),
            }
        }
        controls
    }

    /// Why prefetchers of none of these CPUs can be switched.
    pub(crate) fn missing(&self, cpus: &IdSet) -> Option<String> {
        let why = |cpu| self.without.get(&cpu);
        cpus.iter().all(|cpu| why(cpu).is_some()).then(|| cpus.first().and_then(why).cloned())?
    }

    /// # Errors
    /// When one of these CPUs has no register.
    pub(crate) fn check(&self, cpus: &IdSet) -> anyhow::Result<()> {
        let without: IdSet = cpus.iter().filter(|cpu| self.without.contains_key(cpu)).collect();
        let Some(why) = without.first().and_then(|cpu| self.without.get(&cpu)) else { return Ok(()) };
        if self.by_cpu.is_empty() {
            let without = words!["run without ", Knob::Prefetch, ", and compare the random with the sequential chase in the result"];
            return Err(Problem::new(format!("prefetchers cannot be switched here: {why}"), without).into());
        }
        let have: IdSet = self.by_cpu.keys().copied().collect();
        let what = format!("prefetchers of CPUs {without} cannot be switched: {why}");
        Err(Problem::new(what, Way::Choose(format!("CPUs among {have}").into(), Knob::Cpus)).into())
    }

    /// What the values that were read mean.
    pub(crate) fn state(&self, requested: PrefetchRequest, values: &BTreeMap<u32, Result<u64, MsrError>>) -> PrefetchState {
        let mut read: BTreeMap<u32, RegisterReading> = self.without.iter().map(|(cpu, why)| (*cpu, Err(why.clone()))).collect();
        for (cpu, value) in values {
            if let Some(control) = self.by_cpu.get(cpu) {
                read.insert(*cpu, value.as_ref().map(|v| (*control, *v)).map_err(ToString::to_string));
            }
        }
        let mut state = prefetchers::state(requested, &read);
        // If one register could not be read, nothing can be said about all CPUs.
        if let Some(error) = values.values().find_map(|v| v.as_ref().err()) {
            state.status = PrefetchStatus::Unknown;
            state.reason = Some(error.to_string());
            state.advice = Some(error.advice());
        }
        state
    }

    /// Which CPUs are left out.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if !self.offline.is_empty() {
            notes.push(
                Note::info(
                    NoteCode::PrefetchCpusOffline,
                    format!(
                        "{}: their registers are neither read nor written, and the state of their prefetchers is unknown",
                        are(&self.offline, "offline")
                    ),
                )
                .advise("bring them online first if they are to be switched as well"),
            );
        }
        let without: IdSet = self.without.keys().copied().collect();
        if let Some((_, why)) = self.without.iter().next().filter(|_| !self.by_cpu.is_empty()) {
            notes.push(Note::info(NoteCode::PrefetchCpusWithoutRegister, format!("{}: {why}", are(&without, "left alone"))));
        }
        notes
    }
}

/// What an earlier run left behind.
pub(crate) fn found_notes(found: &Leftover) -> Vec<Note> {
    let mut notes = Vec::new();
    match found {
        Leftover::Nothing => {}
        Leftover::EarlierBoot => {
            notes.push(Note::info(
                NoteCode::PrefetchJournalVoid,
                "a journal of an earlier boot was removed: the boot has reset the registers",
            ));
        }
        Leftover::Restored(n) | Leftover::Partly(n, _) => {
            if *n > 0 {
                notes.push(Note::info(
                    NoteCode::PrefetchRestoredEarlier,
                    format!(
                        "a run that was killed had left prefetchers changed; the registers of {} were put back before this run",
                        number_of(*n as u64, "CPU", "CPUs")
                    ),
                ));
            }
            if let Leftover::Partly(_, offline) = found {
                notes.push(offline_note("a run that was killed", offline));
            }
        }
    }
    notes
}

/// A note about changes by `who` that could not be undone yet.
pub(crate) fn offline_note(who: &str, offline: &IdSet) -> Note {
    let message = format!("{}: what {who} had changed there was not put back, and the journal is kept", are(offline, "offline"));
    Note::warning(NoteCode::PrefetchWaitsForCpus, message).advise(words![
        "bring them online (",
        Verb::Info,
        " says how) and run as root: ",
        Verb::PrefetchRestore
    ])
}

/// `CPU 3 is offline`, `CPUs 2-3 are offline`.
fn are(cpus: &IdSet, what: &str) -> String {
    if cpus.len() == 1 { format!("CPU {cpus} is {what}") } else { format!("CPUs {cpus} are {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_registers_and_a_privileged_program_have_no_stand_in() {
        let of = |root: &str, privileged| {
            let variables = [(MSR_ROOT, root), (ACT_AS, "GenuineIntel,6,85,obeys"), (RUNTIME, "/tmp")];
            StandIn::from_variables(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()), privileged)
        };
        let folder = std::env::temp_dir();
        let found = of(folder.to_str().unwrap(), false).unwrap();
        assert!(found.obeys() && found.journals == std::path::Path::new("/tmp"), "{found:?}");
        assert_eq!(of(folder.to_str().unwrap(), true), None, "a program with file capabilities");
        // `/dev/cpu` is there only where a kernel has its module; `/dev` always is.
        for real in ["/dev", "/dev/", "/dev/../dev/cpu", "/nowhere"] {
            assert_eq!(of(real, false), None, "{real}");
        }
        assert_eq!(StandIn::from_variables(|name| (name == ACT_AS).then(|| "x,obeys".into()), false), None, "without a folder");
    }
}
