//! The state of the machine that affects results, and notes on what is limited here, why, and how to lift it.

use std::collections::BTreeMap;
use std::path::Path;

use memgauge_model::note::{Note, NoteCode};
use memgauge_model::result::Environment;
use memgauge_model::topology::{Machine, Node, Topology};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::words;
use memgauge_model::words::{Knob, Way};

use crate::limits::{gib, memory_groups, nothing_stated};
use crate::memory::{THP_SWITCH, thp_disabled_advice};
use crate::noise;
use crate::security::held_capabilities;
use crate::setting;
use crate::substitute::Substitutes;
use crate::tree::{CPU_DIR, Tree, field, kib_field};

/// Capabilities that matter here, by bit (`include/uapi/linux/capability.h`).
const CAPABILITIES: [(u32, &str); 5] =
    [(14, "CAP_IPC_LOCK"), (17, "CAP_SYS_RAWIO"), (21, "CAP_SYS_ADMIN"), (23, "CAP_SYS_NICE"), (38, "CAP_PERFMON")];
/// The usual huge page: that of a PMD on x86-64, and on Arm with 4 KiB base pages.
const HUGE_PAGE: Bytes = Bytes::mib(2);
/// The size of the pool that the advice suggests: enough for a buffer several times larger than today's last-level caches.
const ADVISED_POOL: Bytes = Bytes::gib(1);
/// With less memory than this, buffers cannot be several times larger than a server's last-level cache, and latencies are partly those of the
/// cache.
const MIN_MEMORY: Bytes = Bytes::gib(1);

/// Reads the state of `machine` below `root` that affects measurements, except for the clock and the core frequencies, which must be
/// measured.
pub fn read_environment(root: &Path, machine: &Machine) -> Environment {
    let tree = Tree::new(root);
    let status = tree.text("proc/self/status").unwrap_or_default();
    // The real, effective, saved and file system user.
    let effective_user = field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1));
    let held = held_capabilities(&status);
    let [governors, energy_preferences, drivers] =
        cpufreq(tree, machine, ["scaling_governor", "energy_performance_preference", "scaling_driver"]);
    let mut environment = Environment {
        root: effective_user == Some("0"),
        capabilities: CAPABILITIES.iter().filter(|(bit, _)| held >> bit & 1 == 1).map(|(_, name)| (*name).to_owned()).collect(),
        clock: None,
        core_ghz: BTreeMap::new(),
        all_cores_ghz: BTreeMap::new(),
        // 1 balances, and 2 promotes between memory tiers. Both migrate pages.
        numa_balancing: tree.parsed::<u32>("proc/sys/kernel/numa_balancing").map(|mode| mode != 0),
        demotion: tree.text("sys/kernel/mm/numa/demotion_enabled").and_then(|state| state.parse().ok()),
        thp: tree.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        thp_disabled: crate::memory::thp_disabled(tree),
        thp_defrag: tree.chosen("sys/kernel/mm/transparent_hugepage/defrag"),
        turbo: turbo(tree),
        limits: Vec::new(),
        stores_read: Vec::new(),
        prefetch: None,
        disturbing_processes: Vec::new(),
        memory_errors: None,
        thermal_throttles: None,
        governors,
        energy_preferences,
    };
    environment.limits = [
        allowed_notes(tree, machine),
        cpu_notes(tree, machine),
        file_notes(tree, root),
        memory_notes(tree, machine),
        page_notes(tree, machine, &environment),
        frequency_notes(tree, machine, &environment, &drivers),
        privilege_notes(tree, machine, &environment),
    ]
    .concat();
    environment
}

fn turbo(tree: Tree<'_>) -> Option<bool> {
    let no_turbo = tree.parsed::<u8>(&format!("{CPU_DIR}/intel_pstate/no_turbo")).map(|off| off == 0);
    no_turbo.or_else(|| tree.parsed::<u8>(&format!("{CPU_DIR}/cpufreq/boost")).map(|on| on != 0))
}

/// The distinct words in these files of cpufreq over online CPUs. The CPUs of a policy share its files, so each policy is read once, through its
/// first online CPU.
fn cpufreq<const N: usize>(tree: Tree<'_>, machine: &Machine, files: [&str; N]) -> [Vec<String>; N] {
    let mut settings = [const { Vec::new() }; N];
    let mut seen = IdSet::new();
    for cpu in &machine.topology.cpus {
        if seen.contains(cpu.id) {
            continue;
        }
        let folder = format!("{CPU_DIR}/cpu{}/cpufreq", cpu.id);
        // `affected_cpus` is a list of numbers separated by spaces.
        for other in tree.text(&format!("{folder}/affected_cpus")).unwrap_or_default().split_whitespace() {
            if let Ok(id) = other.parse() {
                seen.insert(id);
            }
        }
        for (list, file) in settings.iter_mut().zip(files) {
            if let Some(word) = tree.text(&format!("{folder}/{file}")).filter(|word| !word.is_empty() && !list.contains(word)) {
                list.push(word);
            }
        }
    }
    settings
}

/// `CPU 4` or `CPUs 4-7`.
fn named(what: &str, ids: &IdSet) -> String {
    format!("{what}{} {ids}", if ids.len() == 1 { "" } else { "s" })
}

/// Advice names only the first of several.
fn and_so_on(ids: &IdSet) -> &'static str {
    if ids.len() == 1 { "" } else { " (and so on)" }
}

/// CPUs that any node has.
fn cpus_on_nodes(topology: &Topology) -> IdSet {
    topology.nodes.iter().fold(IdSet::new(), |all, n| all.union(&n.cpus))
}

fn allowed_notes(tree: Tree<'_>, machine: &Machine) -> Vec<Note> {
    let (topology, allowed) = (&machine.topology, &machine.allowed);
    let online = topology.online();
    let with_memory: IdSet = topology.nodes.iter().filter(|n| n.has_memory()).map(|n| n.id).collect();
    let far: IdSet = allowed.cpus.iter().filter(|&id| topology.cpu(id).is_some_and(|c| !allowed.nodes.contains(c.node))).collect();
    let message = |about: &str, what: &str, ids: &IdSet| (!ids.is_empty()).then(|| format!("{about}: {}", named(what, ids)));
    let notes = [
        message("online, but not measured because this process may not use them", "CPU", &online.difference(&allowed.cpus)).map(|m| {
            Note::info(NoteCode::CpusNotAllowed, m)
                .advise("start it without taskset or numactl, and outside the cpuset or container that leaves them out")
        }),
        (!allowed.isolated.is_empty()).then(|| {
            let isolated = named("CPU", &allowed.isolated);
            let m =
                words!["isolated (isolcpus), so measured only where ", Knob::Cpus, " names them or their node has no others: {isolated}"];
            Note::info(NoteCode::CpusIsolated, m)
        }),
        message("not measured because Mems_allowed leaves out their memory", "node", &with_memory.difference(&allowed.nodes)).map(|m| {
            Note::info(NoteCode::NodesNotAllowed, m).advise("start it outside the cpuset or container that leaves them out (cpuset.mems)")
        }),
        message("may be used without the memory of their own nodes, so that all accesses are remote", "CPU", &far)
            .map(|m| Note::warning(NoteCode::NoLocalMemory, m)),
        // A recording need not say.
        allowed.memory_policy_unknown.as_ref().filter(|_| tree.is_live() && allowed.nodes.len() > 1).map(|why| {
            let message =
                format!("the inherited memory policy is not known ({why}): memory for which no option names a node is on each CPU's own");
            Note::info(NoteCode::MemoryPolicyUnknown, message).advise(Way::name("nodes", Knob::Node).or("let it call get_mempolicy"))
        }),
        message("in no online node, so that no memory is local to them", "CPU", &online.difference(&cpus_on_nodes(topology)))
            .map(|m| Note::info(NoteCode::CpusWithoutNode, m)),
    ];
    notes.into_iter().flatten().collect()
}

fn cpu_notes(tree: Tree<'_>, machine: &Machine) -> Vec<Note> {
    let (topology, allowed) = (&machine.topology, &machine.allowed);
    let mut notes = Vec::new();
    if !topology.offline.is_empty() {
        let offline = named("CPU", &topology.offline);
        let message = format!("present, but not measured because they are offline: {offline}");
        notes.push(Note::info(NoteCode::CpusOffline, message).advise(setting::switch_on(tree, machine)));
    }
    if let Some(quota) = allowed.cpu_quota
        && quota < allowed.cpus.len() as f64
    {
        let cpus = allowed.cpus.len();
        notes.push(
            Note::warning(
                NoteCode::CpuQuota,
                format!("a control group allows {quota:.2} CPUs' worth of time on {cpus} CPUs: threads are stopped when it is used up"),
            )
            .advise(format!("lift the quota (cpu.max, a container's CPU limit) to {cpus} or more, or measure fewer CPUs")),
        );
    }
    if tree.is_live() && allowed.cpus.len() == 1 {
        notes.push(Note::info(
            NoteCode::OneCpu,
            "only one CPU may be used: latency under load and cache-to-cache transfers cannot be measured",
        ));
    }
    notes
}

fn memory_notes(tree: Tree<'_>, machine: &Machine) -> Vec<Note> {
    unlike_totals(tree, machine).into_iter().chain(unknown_nodes(tree, machine)).chain(limit_notes(tree, machine)).collect()
}

/// Nodes whose size nothing states, where that of the machine is known.
fn unknown_nodes(tree: Tree<'_>, machine: &Machine) -> Option<Note> {
    let unknown: IdSet = machine.topology.nodes.iter().filter(|n| n.memory.is_none()).map(|n| n.id).collect();
    let message = || format!("the memory of {} is not known: {}", named("node", &unknown), nothing_stated(tree, unknown.clone()));
    let some = !unknown.is_empty() && machine.allowed.memory.is_some();
    some.then(|| Note::info(NoteCode::MemoryNotKnown, message()).advise(advice_on_files(tree)))
}

/// Advice on files that are missing.
fn advice_on_files(tree: Tree<'_>) -> &'static str {
    if tree.is_live() { "let this program read the kernel's /proc and /sys" } else { "make the recording with these files" }
}

/// Files that others mount over to show a container, and that memgauge reads.
const SUBSTITUTED: [&str; 4] = ["proc/meminfo", "proc/cpuinfo", "proc/stat", "sys/devices/system/cpu/online"];

/// Notes on files that show something else than the kernel's figures, and on figures that are hidden because of that.
fn file_notes(tree: Tree<'_>, root: &Path) -> Vec<Note> {
    let mut notes = Vec::new();
    let substitutes = Substitutes::read(tree);
    let covered: Vec<String> = SUBSTITUTED.iter().filter(|file| substitutes.cover(file)).map(|file| format!("/{file}")).collect();
    if !covered.is_empty() {
        let by = if SUBSTITUTED.iter().any(|file| substitutes.by_lxcfs(file)) { " (lxcfs)" } else { "" };
        let memory = kib_field(&tree.text("proc/meminfo").unwrap_or_default(), "MemTotal").filter(|_| substitutes.cover("proc/meminfo"));
        let memory = memory.map_or_else(String::new, |bytes| format!(", whose memory is {}", gib(bytes)));
        let message = format!("these files show a container{by} and not the machine{memory}: {}", covered.join(", "));
        notes.push(Note::info(NoteCode::ContainerFiles, message));
    }
    if tree.is_live() && noise::stat(root).is_none() {
        let message = "/proc/stat is hidden here, or is not the kernel's: neither time that a hypervisor gives to others nor the load of other \
                       programs is seen";
        notes.push(Note::info(NoteCode::StatHidden, message).advise("let this program read the kernel's /proc to have them judged"));
    }
    notes
}

/// The nodes' totals may differ from the kernel's own by at most this share: drivers hold memory back, and not the same amount in both.
const MAX_TOTALS_APART: f64 = 0.1;

/// The kernel counts memory twice: in all, and by node. A guest to which memory was added later (Firecracker) has shown 7.3 of 23.5 GiB.
fn unlike_totals(tree: Tree<'_>, machine: &Machine) -> Option<Note> {
    // That of a container has nothing to do with the nodes.
    if Substitutes::read(tree).cover("proc/meminfo") {
        return None;
    }
    let total = kib_field(&tree.text("proc/meminfo")?, "MemTotal")?;
    let topology = &machine.topology;
    let nodes = topology.nodes.iter().map(|n| n.memory.map(|memory| memory.0)).sum::<Option<u64>>()?;
    let apart = nodes.abs_diff(total) as f64 / total.max(nodes).max(1) as f64;
    // Memory of a node that is not shown is missing with its CPUs.
    let stray = topology.online().difference(&cpus_on_nodes(topology));
    let why = if nodes < total && !stray.is_empty() {
        format!("a node is not shown, for no node has {}", named("CPU", &stray))
    } else {
        "one of the two is wrong".to_owned()
    };
    (nodes > 0 && apart > MAX_TOTALS_APART).then(|| {
        let message = format!("the kernel has {} of memory, its nodes add up to {}: {why}", gib(total), gib(nodes));
        // Nobody can do anything about what a hypervisor says.
        let note = if machine.identity.may_be_virtual() { Note::info } else { Note::warning };
        note(NoteCode::NodeMemoryDiffers, message)
            .advise("do not rely on the nodes' sizes; /proc/meminfo and /sys/devices/system/node/node*/meminfo show them")
    })
}

fn limit_notes(tree: Tree<'_>, machine: &Machine) -> Vec<Note> {
    let allowed = &machine.allowed;
    // A control group gets a note only when it is the limit that decides.
    let group = memory_groups(tree).into_iter().min_by_key(|group| group.bytes);
    let Some(most) = allowed.memory else {
        let message = format!("how much memory may be taken is not known: {}", allowed.memory_limited_by);
        return vec![Note::info(NoteCode::MemoryNotKnown, message).advise(advice_on_files(tree))];
    };
    let scarce = most < MIN_MEMORY;
    let message = format!("at most {} of memory is taken: {}", gib(most.0), allowed.memory_limited_by);
    if group.is_some_and(|group| group.name == allowed.memory_limited_by) {
        let note = if scarce { Note::warning(NoteCode::CgroupMemory, message) } else { Note::info(NoteCode::CgroupMemory, message) };
        return vec![note.advise("raise the limit of the control group (memory.max, a container's memory limit)")];
    }
    if scarce {
        let advice = "free memory or lift the limit; buffers may otherwise fit into the last-level cache";
        return vec![Note::warning(NoteCode::LittleMemory, message).advise(advice)];
    }
    Vec::new()
}

fn page_notes(tree: Tree<'_>, machine: &Machine, environment: &Environment) -> Vec<Note> {
    let mut notes = Vec::new();
    let change = |file: &str, value: &str| setting::change(tree, machine.allowed.settings, file, value);
    let topology = &machine.topology;
    let allowed = |id: u32| machine.allowed.nodes.contains(id);
    let nodes = || topology.nodes.iter().filter(|n| allowed(n.id));
    let pool = |n: &Node| n.pools.iter().find(|p| p.page == HUGE_PAGE).cloned();
    let offered = nodes().any(|n| pool(n).is_some());
    let without: IdSet = nodes().filter(|n| pool(n).is_none_or(|p| p.free == 0)).map(|n| n.id).collect();
    if offered && let Some(first) = without.first() {
        // At most half of what may be taken there, because nodes may be small.
        let limit = machine.allowed.node_memory.get(&first).map_or(0, |b| b.0 / 2);
        let pages = (ADVISED_POOL.0.min(limit) / HUGE_PAGE.0).max(1);
        let size = Bytes(pages * HUGE_PAGE.0);
        // Pages in use stay: the number written is that of all pages of the pool.
        let now = |id| topology.node(id).and_then(pool).map_or(0, |p| p.total);
        let (before, total) = (now(first), now(first).saturating_add(pages));
        let alike: IdSet = without.iter().filter(|&id| now(id) == before).collect();
        let note = Note::info(NoteCode::NoHugePagePool, format!("no free 2 MiB page in the pools of {}", named("node", &without)));
        let how = machine.pool_change(Some(first), HUGE_PAGE, total);
        let advice = how.map(|how| format!("{how}{} reserves {size} there; {before} gives it back", and_so_on(&alike)));
        notes.push(advised(note, advice));
    }
    if environment.thp_disabled == Some(true) && environment.thp.as_deref().is_some_and(|thp| thp != "never") {
        notes.push(
            Note::warning(NoteCode::ThpDisabled, "transparent huge pages are disabled for this process (PR_SET_THP_DISABLE of what started it): buffers are of small pages and latencies include TLB misses")
                .advise(thp_disabled_advice()),
        );
    }
    if environment.thp.as_deref() == Some("never") {
        let message =
            "transparent huge pages are switched off: without a pool, buffers are of small pages and latencies include TLB misses";
        notes.push(advised(Note::warning(NoteCode::ThpNever, message), change(THP_SWITCH, "madvise")));
    }
    if environment.numa_balancing == Some(true) && nodes().count() > 1 {
        let message = "NUMA balancing is on: the kernel may unmap and migrate pages while they are measured";
        let how = change("proc/sys/kernel/numa_balancing", "0").map(|how| format!("for the time of the measurement, {how}"));
        notes.push(advised(Note::warning(NoteCode::NumaBalancing, message), how));
    }
    notes
}

/// The note with what to do, where something can be done.
fn advised(note: Note, advice: Option<String>) -> Note {
    match advice {
        Some(advice) => note.advise(advice),
        None => note,
    }
}

/// How to give CPUs the highest frequency, where the driver lets anybody choose.
fn fastest(tree: Tree<'_>, machine: &Machine) -> Option<String> {
    let slow = |folder: &String| tree.text(&format!("{folder}/scaling_governor")).is_some_and(|governor| governor == "powersave");
    let folder = machine.topology.cpus.iter().map(|cpu| format!("{CPU_DIR}/cpu{}/cpufreq", cpu.id)).find(slow)?;
    let offered = tree.text(&format!("{folder}/scaling_available_governors"));
    let may = offered.is_none_or(|offered| offered.split_whitespace().any(|governor| governor == "performance"));
    let how = setting::change(tree, machine.allowed.settings, &format!("{folder}/scaling_governor"), "performance").filter(|_| may)?;
    Some(format!("{how} (and so on for other CPUs; cpupower frequency-set -g performance does it for all)"))
}

fn frequency_notes(tree: Tree<'_>, machine: &Machine, environment: &Environment, drivers: &[String]) -> Vec<Note> {
    let mut notes = Vec::new();
    // With these drivers in active mode, `powersave` is the ordinary dynamic policy. With others it is the lowest frequency.
    let dynamic = drivers.iter().all(|d| d == "intel_pstate" || d == "amd-pstate-epp");
    if !dynamic && environment.governors.iter().any(|g| g == "powersave") {
        let note = Note::warning(NoteCode::GovernorPowersave, "governor powersave holds CPUs at their lowest frequency");
        notes.push(advised(note, fastest(tree, machine)));
    }
    if environment.turbo == Some(false) {
        notes.push(Note::info(NoteCode::TurboOff, "turbo (boost) is switched off: results hold for the lower frequencies"));
    }
    notes
}

fn privilege_notes(tree: Tree<'_>, machine: &Machine, environment: &Environment) -> Vec<Note> {
    let mut notes = Vec::new();
    let identity = &machine.identity;
    if let Some(name) = &identity.hypervisor {
        notes.push(Note::info(
            NoteCode::VirtualMachine,
            format!("this is a virtual machine ({name}): caches, nodes and distances are what it shows, which need not be the host's"),
        ));
    }
    if let Some(why) = &identity.hypervisor_unknown {
        notes.push(Note::info(
            NoteCode::HypervisorNotKnown,
            format!(
                "whether this is a virtual machine is not known: {why}; it is planned and judged as one, and no low number is a failure"
            ),
        ));
    }
    let tables = "sys/firmware/dmi/tables/DMI";
    if tree.exists(tables) && std::fs::File::open(tree.path(tables)).is_err() {
        notes.push(
            Note::info(NoteCode::DmiUnreadable, "DMI tables cannot be read: modules, channels and the theoretical peak are not known")
                .advise("run as root, once, to have them in the result"),
        );
    } else if tree.is_live() && !tree.exists(tables) {
        notes.push(Note::info(
            NoteCode::DmiAbsent,
            "firmware gives no DMI tables: modules, channels and the theoretical peak are not known",
        ));
    }
    notes.extend(perf_note(tree, machine, environment));
    notes
}

/// What `perf_event_paranoid` forbids (`Documentation/admin-guide/sysctl/kernel.rst`). Debian and Ubuntu add levels 3 and 4.
fn perf_note(tree: Tree<'_>, machine: &Machine, environment: &Environment) -> Option<Note> {
    let file = "proc/sys/kernel/perf_event_paranoid";
    let Some(level) = tree.parsed::<i32>(file) else {
        // A recording may have been made without it.
        return tree
            .is_live()
            .then(|| Note::info(NoteCode::PerfAbsent, "this kernel has no performance events: nothing is counted by hardware"));
    };
    // The capabilities decide and not the user, because root in a container may lack them.
    let privileged = environment.capabilities.iter().any(|c| c == "CAP_PERFMON" || c == "CAP_SYS_ADMIN");
    if privileged || level <= 0 {
        return None;
    }
    let what = match level {
        1 => "counters of memory controllers and other CPUs' work may not be read",
        2 => "counters of memory controllers and of the kernel may not be read",
        _ => "no counter may be read",
    };
    let how = setting::change(tree, machine.allowed.settings, file, "0");
    let how = how.map_or_else(String::new, |how| format!("{how}, or "));
    Some(
        Note::info(NoteCode::PerfRestricted, format!("perf_event_paranoid is {level}: {what}"))
            .advise(format!("{how}give the program CAP_PERFMON")),
    )
}

#[cfg(test)]
mod tests;
