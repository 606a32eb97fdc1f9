//! The prefetcher registers of this machine: which CPUs have one, and what it says.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;
use memgauge_core::experiment::PrefetchRequest;
use memgauge_core::note::Note;
use memgauge_core::prefetchers::{self, Control, PrefetchState, PrefetchStatus, Processor, Read};
use memgauge_core::topology::Machine;
use memgauge_core::units::IdSet;
use memgauge_core::wording::number_of;
use memgauge_os::prefetch::{JOURNALS, Leftover, PrefetchError, PrefetchRegisters};
use memgauge_os::prefetch::{MSR_DEVICES, MsrError};
use memgauge_os::process::has_more_privileges_than_its_user;

/// For tests: a folder in place of `/dev/cpu`.
const MSR_ROOT: &str = "MEMGAUGE_MSR_ROOT";
/// For tests: the processor to stand in for, `VENDOR,FAMILY,MODEL[,announced][,obeys]`; one that obeys is taken to do what its registers say. It counts only together with the folder above, so that no real
/// register is mistaken for that of another processor.
const ACT_AS: &str = "MEMGAUGE_PREFETCH_AS";
/// For tests: a folder in place of `/run/memgauge`. It counts only together with the first one.
const RUNTIME: &str = "MEMGAUGE_RUNTIME_DIR";

/// The registers and the journal of this machine, or of a test.
///
/// Journals decide what is written to registers, so the environment may name their folder only where it names that of the registers as
/// well; and nothing of this where the program has privileges that its user does not have.
pub(crate) fn place() -> PrefetchRegisters {
    match stand_in() {
        Some(devices) => {
            let journals = std::env::var_os(RUNTIME).map_or_else(|| devices.join("journals"), PathBuf::from);
            PrefetchRegisters::new(devices, journals, "/")
        }
        None => PrefetchRegisters::new(MSR_DEVICES, JOURNALS, "/"),
    }
}

/// A test's folder in place of the devices, which is not below `/dev`.
fn stand_in() -> Option<PathBuf> {
    let folder = std::env::var_os(MSR_ROOT).map(PathBuf::from)?;
    let is_elsewhere = folder.canonicalize().is_ok_and(|real| !real.starts_with("/dev"));
    (is_elsewhere && !has_more_privileges_than_its_user()).then_some(folder)
}

/// The register of every online CPU, or why it has none.
fn find_controls(machine: &Machine) -> BTreeMap<u32, Result<Control, String>> {
    let stand_in = stand_in().and_then(|_| std::env::var(ACT_AS).ok());
    let Some(stand_in) = stand_in else { return prefetchers::controls(machine, memgauge_kernels::has_prefetch_control()) };
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

/// Whether registers stand in for those of a processor that does what they say. Registers of files switch no prefetcher.
pub(crate) fn stand_in_obeys() -> bool {
    std::env::var_os(MSR_ROOT).is_some() && std::env::var(ACT_AS).is_ok_and(|words| words.split(',').any(|word| word == "obeys"))
}

/// An error that says what to do about it.
pub(crate) fn with_advice(error: &PrefetchError) -> anyhow::Error {
    anyhow!("{error}; {}", error.advice())
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
            return Err(anyhow!(
                "prefetchers cannot be switched here: {why}; run without --prefetch, and compare the random with the sequential chase in the result"
            ));
        }
        let have: IdSet = self.by_cpu.keys().copied().collect();
        Err(anyhow!("prefetchers of CPUs {without} cannot be switched: {why}; choose CPUs among {have} with --cpu"))
    }

    /// What the values that were read mean.
    pub(crate) fn state(&self, requested: PrefetchRequest, values: &BTreeMap<u32, Result<u64, MsrError>>) -> PrefetchState {
        let mut read: BTreeMap<u32, Read> = self.without.iter().map(|(cpu, why)| (*cpu, Err(why.clone()))).collect();
        let mut advice = None;
        for (cpu, value) in values {
            let value = value.as_ref().map_err(|error| {
                advice.get_or_insert(error.advice());
                error.to_string()
            });
            if let Some(control) = self.by_cpu.get(cpu) {
                read.insert(*cpu, value.map(|v| (*control, *v)));
            }
        }
        let mut state = prefetchers::state(requested, &read);
        // If one register could not be read, nothing can be said about all CPUs.
        if let Some(error) = values.values().find_map(|v| v.as_ref().err()) {
            state.status = PrefetchStatus::Unknown;
            state.reason = Some(error.to_string());
            state.advice = advice.map(Into::into);
        }
        state
    }

    /// Which CPUs are left out.
    pub(crate) fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if !self.offline.is_empty() {
            notes.push(
                Note::info(
                    "prefetch-cpus-offline",
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
            notes.push(Note::info("prefetch-cpus-without-register", format!("{}: {why}", are(&without, "left alone"))));
        }
        notes
    }
}

/// What an earlier run left behind.
pub(crate) fn found_note(found: &Leftover) -> Option<Note> {
    match found {
        Leftover::Nothing => None,
        Leftover::EarlierBoot => {
            Some(Note::info("prefetch-journal-void", "a journal of an earlier boot was removed: the boot has reset the registers"))
        }
        Leftover::Restored(n) => Some(Note::info(
            "prefetch-restored-earlier",
            format!(
                "a run that was killed had left prefetchers changed; the registers of {} were put back before this run",
                number_of(*n as u64, "CPU", "CPUs")
            ),
        )),
    }
}

/// `CPU 3 is offline`, `CPUs 2-3 are offline`.
fn are(cpus: &IdSet, what: &str) -> String {
    if cpus.len() == 1 { format!("CPU {cpus} is {what}") } else { format!("CPUs {cpus} are {what}") }
}
