//! The state of the machine that affects results, and notes on what is limited here, why, and how to lift it.

mod power;

use std::collections::BTreeMap;
use std::path::Path;

use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::Environment;
use memgauge_model::topology::Machine;
use memgauge_model::units::{Bytes, IdSet};

use crate::process::{Refused, refused};
use crate::security::{is_elevated, privileges};
use power::Power;

/// The privilege that large pages need.
const LARGE_PAGES: &str = "SeLockMemoryPrivilege";
/// Privileges that matter here: large pages; adjusting other processes' memory and priorities; profiling single processes and the system.
const PRIVILEGES: [&str; 5] = [
    LARGE_PAGES,
    "SeIncreaseBasePriorityPrivilege",
    "SeIncreaseWorkingSetPrivilege",
    "SeProfileSingleProcessPrivilege",
    "SeSystemProfilePrivilege",
];
/// With less memory than this, buffers cannot be several times larger than a server's last-level cache, and latencies are partly those of
/// the cache.
const MIN_MEMORY: Bytes = Bytes::gib(1);

/// Reads the state of `machine` that affects measurements, except for the clock and the core frequencies, which must be measured.
///
/// `root` says whether the process is elevated (`TokenElevation`), `capabilities` which privileges its token has, `governors` the name of
/// the power plan, and `turbo` whether that plan allows boost. NUMA balancing and transparent huge pages do not exist on Windows.
pub fn read_environment(_root: &Path, machine: &Machine) -> Environment {
    environment(machine, Power::read(), is_elevated(), &privileges())
}

fn environment(machine: &Machine, power: Power, elevated: Option<bool>, held: &[String]) -> Environment {
    let limits = [
        allowed_notes(machine),
        cpu_notes(machine),
        memory_notes(machine),
        page_notes(held),
        power.notes(),
        refused_notes(refused()),
        privilege_notes(machine),
    ]
    .concat();
    Environment {
        root: elevated == Some(true),
        capabilities: PRIVILEGES.iter().filter(|name| held.iter().any(|held| held == *name)).map(|name| (*name).to_owned()).collect(),
        clock: None,
        core_ghz: BTreeMap::new(),
        all_cores_ghz: BTreeMap::new(),
        numa_balancing: None,
        demotion: None,
        thp: None,
        thp_defrag: None,
        thp_disabled: None,
        turbo: power.turbo(),
        energy_preferences: power.preference().into_iter().collect(),
        governors: power.plan.into_iter().collect(),
        limits,
        stores_read: Vec::new(),
        prefetch: None,
        disturbing_processes: Vec::new(),
        memory_errors: None,
        thermal_throttles: None,
    }
}

/// What Windows refused when the program began.
fn refused_notes(refused: &[Refused]) -> Vec<Note> {
    let note = |refused: &Refused| match refused {
        Refused::FullSpeed => Note::info(
            NoteCode::MayBeSlowedDown,
            "Windows did not promise to leave this process at full speed (EcoQoS): it may be slowed down to save energy",
        )
        .advise("choose the power plan 'High performance', and keep the window in front"),
        Refused::Timer => {
            Note::info(NoteCode::CoarseTimer, "Windows keeps the resolution of its timer: waits between bursts may be longer than planned")
        }
        Refused::Awake => Note::info(NoteCode::MayFallAsleep, "Windows did not promise to stay awake while this runs")
            .advise("choose 'Never' for sleep in the power settings before a long run"),
    };
    refused.iter().map(note).collect()
}

/// `CPU 4` or `CPUs 4-7`.
fn named(what: &str, ids: &IdSet) -> String {
    format!("{what}{} {ids}", if ids.len() == 1 { "" } else { "s" })
}

fn allowed_notes(machine: &Machine) -> Vec<Note> {
    let (topology, allowed) = (&machine.topology, &machine.allowed);
    let online = topology.online();
    let far: IdSet = allowed.cpus.iter().filter(|&id| topology.cpu(id).is_some_and(|c| !allowed.nodes.contains(c.node))).collect();
    let on_nodes = topology.nodes.iter().fold(IdSet::new(), |all, n| all.union(&n.cpus));
    let message = |about: &str, ids: &IdSet| (!ids.is_empty()).then(|| format!("{about}: {}", named("CPU", ids)));
    let notes = [
        message("online, but not measured because this process may not use them", &online.difference(&allowed.cpus)).map(|m| {
            Note::info(NoteCode::CpusNotAllowed, m)
                .advise("start it without an affinity (start /affinity), and outside the job object or container that leaves them out")
        }),
        message("may be used without the memory of their own nodes, so that all accesses are remote", &far)
            .map(|m| Note::warning(NoteCode::NoLocalMemory, m)),
        message("in no online node, so that no memory is local to them", &online.difference(&on_nodes))
            .map(|m| Note::info(NoteCode::CpusWithoutNode, m)),
    ];
    notes.into_iter().flatten().collect()
}

fn cpu_notes(machine: &Machine) -> Vec<Note> {
    let (topology, allowed) = (&machine.topology, &machine.allowed);
    let mut notes = Vec::new();
    if !topology.offline.is_empty() {
        let offline = named("CPU", &topology.offline);
        notes.push(
            Note::info(NoteCode::CpusOffline, format!("present, but not measured because Windows does not use them: {offline}"))
                .advise("remove the limit on processors (msconfig, Boot, Advanced options; or bcdedit /deletevalue numproc), and boot"),
        );
    }
    let cpus = allowed.cpus.len();
    if let Some(quota) = allowed.cpu_quota.filter(|quota| *quota < cpus as f64) {
        let message = format!("a job object allows {quota:.2} CPUs' worth of time on {cpus} CPUs: threads are stopped when it is used up");
        notes.push(
            Note::warning(NoteCode::CpuQuota, message)
                .advise(format!("lift the limit (a container's CPU limit) to {cpus} or more, or measure fewer CPUs")),
        );
    }
    if cpus == 1 {
        notes.push(Note::info(
            NoteCode::OneCpu,
            "only one CPU may be used: latency under load and cache-to-cache transfers cannot be measured",
        ));
    }
    notes
}

fn memory_notes(machine: &Machine) -> Vec<Note> {
    let allowed = &machine.allowed;
    let message = |memory: Bytes| {
        format!("at most {:.1} GiB of memory is taken: {}", memory.0 as f64 / (1u64 << 30) as f64, allowed.memory_limited_by)
    };
    let advice = "free memory or lift the limit; buffers may otherwise fit into the last-level cache";
    let scarce = allowed.memory.filter(|memory| *memory < MIN_MEMORY);
    scarce.map(|memory| Note::warning(NoteCode::LittleMemory, message(memory)).advise(advice)).into_iter().collect()
}

fn page_notes(held: &[String]) -> Vec<Note> {
    let missing = !held.iter().any(|name| name == LARGE_PAGES);
    let message = "this process may not use large pages: buffers are of pages of 4 KiB, and latencies include TLB misses";
    let advice =
        "grant 'Lock pages in memory' to this user (secpol.msc, Local Policies, User Rights Assignment), log on again, and run elevated";
    missing.then(|| Note::info(NoteCode::NoLargePages, message).advise(advice)).into_iter().collect()
}

fn privilege_notes(machine: &Machine) -> Vec<Note> {
    let virtual_machine = machine.identity.hypervisor.as_ref().map(|name| {
        let message =
            format!("this is a virtual machine ({name}): caches, nodes and distances are what it shows, which need not be the host's");
        Note::info(NoteCode::VirtualMachine, message)
    });
    let unknown = machine.identity.hypervisor_unknown.as_ref().map(|why| {
        let message = format!(
            "whether this is a virtual machine is not known: {why}; it is planned and judged as one, and no low number is a failure"
        );
        Note::info(NoteCode::HypervisorNotKnown, message)
    });
    let absent = machine
        .identity
        .installed
        .reason
        .as_ref()
        .map(|why| Note::info(NoteCode::DmiAbsent, format!("{why}: modules, channels and the theoretical peak are not known")));
    let driver = Note::info(
        NoteCode::PerfAbsent,
        "hardware counters, the registers of prefetchers and physical addresses need a driver on Windows, and memgauge brings none: \
         nothing is counted by hardware, and prefetchers are not switched",
    );
    virtual_machine.into_iter().chain(unknown).chain(absent).chain([driver]).collect()
}

#[cfg(test)]
mod tests;
