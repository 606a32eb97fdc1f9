//! The machine: a header for results, the whole of it for `info`.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::persistent::PersistentNamespace;
use memgauge_model::result::{ClockReport, Measurement, Report};
use memgauge_model::topology::{Identity, Machine, Node, OperatingSystem, Topology};
use memgauge_model::units::{Bytes, IdSet};
use memgauge_model::wording;

use super::block::Part;
use super::grid::Column;
use super::page::{INDENT, Page, Style};
use super::{notes, places, tiers};
use crate::number::{bounds, count, from_to, human, number};
use crate::pages;

/// With more nodes than this, distances are summed up.
const DISTANCE_NODES: usize = 16;

/// Prints the version of the program, the time, the machine and its state, which are needed to compare the numbers.
pub(super) fn header(page: &mut Page, report: &Report) {
    title(page, report);
    page.items(Style::Plain, "", identity(&report.machine));
    let mut items = memory(&report.machine);
    items.extend(page_kinds(report));
    if page.verbose {
        items.extend(frequency(report));
        items.extend(report.environment.clock.as_ref().map(clock));
    }
    page.items(Style::Plain, "", &items);
}

pub(super) fn title(page: &mut Page, report: &Report) {
    let when = report.started.utc.replace('T', " ").replace('Z', " UTC");
    page.heading(&format!("{} {}", report.tool.name, report.tool.version), &when);
}

/// Model, packages, cores, threads, virtualisation, kernel.
pub(super) fn identity(machine: &Machine) -> Vec<String> {
    let id = &machine.identity;
    let t = &machine.topology;
    let model = id.model_name.clone().or_else(|| maker(id)).unwrap_or_else(|| match id.arch.as_str() {
        "unknown" => "CPU not known".to_owned(),
        arch => format!("unknown {arch} CPU"),
    });
    let cores = t.one_per_core(&t.online()).len();
    let mut items = vec![
        model,
        format!(
            "{}, {}, {}",
            count(t.packages().len(), "package", "packages"),
            count(cores, "core", "cores"),
            count(t.cpus.len(), "thread", "threads")
        ),
    ];
    if machine.allowed.cpus.len() != t.cpus.len() {
        items.push(format!("{} allowed", count(machine.allowed.cpus.len(), "CPU", "CPUs")));
    }
    items.push(match (&id.hypervisor, id.is_virtual()) {
        (Some(name), _) => format!("virtual machine ({name})"),
        (None, Some(_)) => "no hypervisor".to_owned(),
        (None, None) => "hypervisor not known".to_owned(),
    });
    items.extend(id.memory_encryption.as_ref().map(|technology| format!("memory encrypted ({technology})")));
    items.extend(id.kernel.as_ref().map(|k| if id.system.is_linux() { format!("Linux {k}") } else { k.clone() }));
    items
}

/// The CPU's maker, with the numbers of the design, for a CPU without a name.
fn maker(id: &Identity) -> Option<String> {
    let numbers = ["part", "family", "model"].iter().filter_map(|key| Some(format!(" {key} {}", id.model.get(*key)?)));
    id.vendor.as_ref().map(|vendor| format!("{vendor}{}", numbers.collect::<String>()))
}

/// The machine in one line.
pub(super) fn line(machine: &Machine) -> String {
    identity(machine).into_iter().chain(memory(machine)).collect::<Vec<_>>().join(" · ")
}

fn memory(machine: &Machine) -> Vec<String> {
    let nodes = &machine.topology.nodes;
    let total = nodes.iter().try_fold(0u64, |sum, n| Some(sum.saturating_add(n.memory?.0)));
    let total = total.map_or_else(|| "memory of unknown size".to_owned(), |total| human(Bytes(total)));
    let with_memory = nodes.iter().filter(|n| n.has_memory()).count();
    let bare = nodes.iter().filter(|n| n.has_memory() && n.cpus.is_empty()).count();
    let without = if bare > 0 { format!(" ({bare} without CPUs)") } else { String::new() };
    let mut items = vec![format!("{}{without} with {}", count(with_memory, "memory node", "memory nodes"), total)];
    items.extend(policy(machine).map(|policy| format!("memory policy: {policy} (inherited, as from numactl)")));
    items
}

/// The inherited memory policy, where it places memory.
fn policy(machine: &Machine) -> Option<String> {
    machine.allowed.inherited_policy().map(wording::memory_policy)
}

fn page_kinds(report: &Report) -> Option<String> {
    let ms: Vec<&Measurement> = report.results.iter().filter(|m| m.evidence.pages.obtained.is_some()).collect();
    (!ms.is_empty()).then(|| pages::pages(&ms))
}

fn frequency(report: &Report) -> Option<String> {
    let (low, high) = bounds(report.environment.core_ghz.values().copied())?;
    let ghz = from_to(format!("{low:.2}"), format!("{high:.2}"));
    Some(format!("{} at {ghz} GHz", if ghz.contains('–') { "cores" } else { "core" }))
}

fn clock(c: &ClockReport) -> String {
    format!("clock {} ±{} ppm", c.source, number(c.error_ppm))
}

/// Everything that is known about the machine, and what limits measuring on it.
pub(super) fn info(page: &mut Page, report: &Report) {
    let m = &report.machine;
    title(page, report);
    page.items(Style::Plain, "", identity(m));
    details(page, report);
    limits(page, report);
}

/// The same without the details.
pub(super) fn brief_info(page: &mut Page, report: &Report) {
    header(page, report);
    page.part(Part::Notes);
    limits(page, report);
}

fn limits(page: &mut Page, report: &Report) {
    notes::list(page, "Limits and notes", report.environment.limits.iter().chain(&report.notes));
}

/// Prints the details of the machine and its state that the header leaves out.
pub(super) fn details(page: &mut Page, report: &Report) {
    let m = &report.machine;
    processors(page, m);
    caches(page, &m.topology);
    nodes(page, &m.topology, m.identity.system);
    kinds(page, report);
    persistent(page, &m.topology);
    devices(page, m);
    firmware_claims(page, &m.topology);
    distances(page, &m.topology);
    allowed(page, m);
    state(page, report);
}

/// Aligned pairs of a name and a text; empty texts are left out.
fn facts(page: &mut Page, facts: &[(impl AsRef<str>, String)]) {
    let facts: Vec<_> = facts.iter().filter(|(_, text)| !text.is_empty()).collect();
    let wide = facts.iter().map(|(name, _)| name.as_ref().chars().count()).max().unwrap_or(0);
    for (name, text) in facts {
        page.fact(Style::Plain, INDENT, (name.as_ref(), wide + 2), text);
    }
}

fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>().join(", ")
}

fn processors(page: &mut Page, m: &Machine) {
    let t = &m.topology;
    page.heading("Processors", "");
    let smt = match t.smt_active {
        Some(true) => "two or more hardware threads per core",
        Some(false) => "one hardware thread per core",
        None => "",
    };
    let mut kinds: BTreeMap<&str, IdSet> = BTreeMap::new();
    for cpu in &t.cpus {
        if let Some(kind) = &cpu.kind {
            kinds.entry(kind).or_default().insert(cpu.id);
        }
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, cpus)| format!("{kind} {}", wording::ids(cpus))).collect();
    let mhz = bounds(t.cpus.iter().filter_map(|c| c.max_mhz).map(f64::from));
    let mhz = mhz.map(|(low, high)| format!("{} MHz", from_to(format!("{low:.0}"), format!("{high:.0}"))));
    let offline = if t.offline.is_empty() { String::new() } else { t.offline.to_string() };
    let list = [
        ("CPUs online", t.online().to_string()),
        ("CPUs offline", offline),
        ("threads", smt.to_owned()),
        ("kinds of core", kinds.join(" · ")),
        ("stated maximum", mhz.unwrap_or_default()),
        ("vendor", m.identity.vendor.clone().unwrap_or_default()),
        ("model", pairs(&m.identity.model)),
        ("firmware", pairs(&m.identity.firmware)),
    ];
    facts(page, &list);
}

/// Level, size, number of CPUs that share it, line, ways.
type CacheKind = (u8, Bytes, usize, Option<u32>, Option<u32>);

fn caches(page: &mut Page, t: &Topology) {
    if t.caches.is_empty() {
        page.heading("Caches", "");
        page.paragraph(Style::Plain, "not known: the machine shows none");
        return;
    }
    // Caches that differ only in their CPUs share a line.
    let mut kinds: BTreeMap<CacheKind, Vec<&IdSet>> = BTreeMap::new();
    for c in &t.caches {
        kinds.entry((c.level, c.size, c.cpus.len(), c.line, c.ways)).or_default().push(&c.cpus);
    }
    page.heading("Caches", "data and unified");
    let shared_by = |(k, instances): (&CacheKind, &Vec<&IdSet>)| {
        let example = instances.first().map(|c| wording::ids(c)).unwrap_or_default();
        let dots = if instances.len() > 1 { ", …" } else { "" };
        format!("{} ({example}{dots})", count(k.2, "CPU", "CPUs"))
    };
    page.table([
        Column::text("level", kinds.keys().map(|k| format!("L{}", k.0))),
        Column::numbers("each", kinds.keys().map(|k| human(k.1))),
        Column::numbers("instances", kinds.values().map(|v| v.len().to_string())),
        Column::numbers("total", kinds.iter().map(|(k, v)| human(Bytes(k.1.0.saturating_mul(v.len() as u64))))),
        Column::text("shared by", kinds.iter().map(shared_by)),
        Column::numbers("line", kinds.keys().map(|k| k.3.map(|l| format!("{l} B")))).optional(),
        Column::numbers("ways", kinds.keys().map(|k| k.4.map(|n| n.to_string()))).optional(),
    ]);
}

fn nodes(page: &mut Page, t: &Topology, system: OperatingSystem) {
    if t.nodes.is_empty() {
        return;
    }
    page.heading("Memory nodes", "");
    let pools = |n: &Node| {
        let some = n.pools.iter().filter(|p| p.total > 0);
        some.map(|p| format!("{}/{} × {}", p.free, p.total, human(p.page))).collect::<Vec<_>>().join(", ")
    };
    let size = |n: &Node| match n.memory {
        None => "not known".to_owned(),
        Some(Bytes(0)) => "none".to_owned(),
        Some(memory) => human(memory),
    };
    let side = |n: &Node| n.memory_side_caches.iter().map(|c| human(c.size)).collect::<Vec<_>>().join(", ");
    page.table([
        Column::text("node", t.nodes.iter().map(|n| n.id.to_string())),
        Column::text("CPUs", t.nodes.iter().map(|n| if n.cpus.is_empty() { "none".into() } else { wording::ids(&n.cpus) })),
        Column::numbers("memory", t.nodes.iter().map(size)),
        Column::numbers("free", t.nodes.iter().map(|n| n.free.map(human))),
        Column::text("memory-side cache", t.nodes.iter().map(side)),
        Column::text("huge pages free", t.nodes.iter().map(pools)),
    ]);
    if system.is_linux() && t.nodes.iter().all(|n| n.pools.iter().all(|p| p.total == 0)) {
        let shown = t.nodes.iter().any(|n| !n.pools.is_empty());
        let words = if shown { "no huge pages are reserved in any pool" } else { "no pools of huge pages are shown" };
        page.paragraph(Style::Dim, words);
    }
}

/// The kind of each node's memory; older results have none.
fn kinds(page: &mut Page, report: &Report) {
    let kinds = tiers::kinds(&report.memory_kinds);
    if !kinds.is_empty() {
        page.heading("Kinds of memory", "the kind of each node, and the evidence");
        facts(page, &kinds);
    }
}

/// Regions of persistent memory, what stands behind them, and what their namespaces are used as.
fn persistent(page: &mut Page, t: &Topology) {
    if t.persistent.is_empty() {
        return;
    }
    page.heading("Persistent memory", "as the kernel states it; it belongs to a node only where this is stated");
    let mut list = Vec::new();
    for region in &t.persistent {
        let volatile = region.emulated.as_ref().map(|why| format!("volatile stand-in: {why}"));
        let free = region.available.filter(|free| free.0 > 0).map(|free| format!("{} in no namespace", human(free)));
        let items = places::region(&region.into()).into_iter().chain(free).chain(volatile);
        list.push((region.name.clone(), items.collect::<Vec<_>>().join(" · ")));
        list.extend(region.namespaces.iter().map(|namespace| (format!("{INDENT}{}", namespace.name), used_as(namespace))));
    }
    facts(page, &list);
}

fn used_as(namespace: &PersistentNamespace) -> String {
    let PersistentNamespace { mode, bytes, device, memory_node, .. } = namespace;
    let device = device.as_ref().map_or_else(
        || "no driver has it".to_owned(),
        |device| match memory_node {
            Some(node) => format!("{device}, memory of node {node}"),
            None => device.clone(),
        },
    );
    [bytes.map(human), mode.clone(), Some(device)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The memory devices that firmware lists, and what they could transfer. Older recordings have no such list.
fn devices(page: &mut Page, m: &Machine) {
    let installed = &m.identity.installed;
    if installed.is_silent() {
        return;
    }
    page.heading("Memory devices", "as firmware states them (SMBIOS)");
    let mut kinds: BTreeMap<(Option<Bytes>, String), usize> = BTreeMap::new();
    for d in &installed.devices {
        let kind = d.kind.clone().unwrap_or_else(|| "type not stated".into());
        let speed = match (d.configured_mts, d.rated_mts) {
            (Some(mts), Some(rated)) if rated > mts => format!(" at {mts} MT/s (rated {rated})"),
            (Some(mts), _) => format!(" at {mts} MT/s"),
            (None, _) => String::new(),
        };
        *kinds.entry((d.size, format!("{kind}{speed}"))).or_default() += 1;
    }
    let populated: Vec<String> = kinds.iter().map(|((size, kind), n)| format!("{n} × {} {kind}", size.map_or("?".into(), human))).collect();
    let empty = (installed.slots as usize).saturating_sub(installed.devices.len());
    let peak = match installed.peak() {
        Ok(p) => {
            let doubt = if p.channels_known { "" } else { ", if no two devices share a channel" };
            format!("{} GB/s: {}{doubt}", number(p.gbs), p.formula())
        }
        Err(why) => format!("not known: {why}"),
    };
    let empty = if empty > 0 { count(empty, "slot", "slots") } else { String::new() };
    facts(page, &[("populated", populated.join(", ")), ("empty", empty), ("could transfer", peak)]);
}

fn firmware_claims(page: &mut Page, t: &Topology) {
    let rows: Vec<_> = t.nodes.iter().flat_map(|n| n.hmat.iter().map(move |h| (n.id, h))).collect();
    if rows.is_empty() {
        return;
    }
    let computed = rows.iter().any(|(_, h)| h.cxl_region.is_some());
    let source = if computed { "Claims of firmware (HMAT) and of CXL devices (CDAT)" } else { "Firmware's claims (HMAT)" };
    page.heading(source, "read / written; not measured");
    let ns = |v: Option<u64>| v.map(|v| v.to_string());
    let gbs = |v: Option<u64>| v.map(|v| v as f64 / 1e3);
    page.table([
        Column::text("memory", rows.iter().map(|(n, _)| wording::node(Some(*n)))),
        Column::text("from nodes", rows.iter().map(|(_, h)| h.initiators.to_string())),
        Column::text("initiators", rows.iter().map(|(_, h)| if h.class == 1 { "CPUs" } else { "any" })).optional(),
        Column::numbers("read ns", rows.iter().map(|(_, h)| ns(h.read_latency_ns))),
        Column::numbers("write ns", rows.iter().map(|(_, h)| ns(h.write_latency_ns))),
        Column::numbers("read GB/s", rows.iter().map(|(_, h)| gbs(h.read_bandwidth_mbs))),
        Column::numbers("write GB/s", rows.iter().map(|(_, h)| gbs(h.write_bandwidth_mbs))),
    ]);
}

fn distances(page: &mut Page, t: &Topology) {
    let ids: BTreeSet<u32> = t.nodes.iter().flat_map(|n| n.distances.keys().copied()).collect();
    if ids.len() < 2 {
        return;
    }
    page.heading("Distances", "as firmware states them (SLIT); 10 is local");
    if t.nodes.len() > DISTANCE_NODES {
        let mut pairs: BTreeMap<u32, usize> = BTreeMap::new();
        for distance in t.nodes.iter().flat_map(|n| n.distances.values()) {
            *pairs.entry(*distance).or_default() += 1;
        }
        let items: Vec<String> = pairs.iter().map(|(distance, n)| format!("{distance} ({})", count(*n, "pair", "pairs"))).collect();
        page.items(Style::Plain, INDENT, &items);
        return;
    }
    let column = |to: &u32| Column::numbers(to.to_string(), t.nodes.iter().map(|n| n.distances.get(to).map(u32::to_string)));
    let lead = Column::text("from ↓  to →", t.nodes.iter().map(|n| wording::node(Some(n.id))));
    page.matrix(lead, ids.iter().map(column).collect());
}

fn allowed(page: &mut Page, m: &Machine) {
    let a = &m.allowed;
    page.heading("This process may use", "");
    let by_node: Vec<String> = a.node_memory.iter().map(|(n, b)| format!("{} on node {n}", human(*b))).collect();
    let list = [
        ("CPUs", a.cpus.to_string()),
        ("CPU time", a.cpu_quota.map(|q| format!("of {q:.2} CPUs (cpu.max)")).unwrap_or_default()),
        ("memory nodes", a.nodes.to_string()),
        (
            "memory",
            a.memory.map_or_else(
                || format!("not known: {}", a.memory_limited_by),
                |memory| format!("{}, limited by {}", human(memory), a.memory_limited_by),
            ),
        ),
        ("", if by_node.len() > 1 && by_node.len() <= DISTANCE_NODES { by_node.join(" · ") } else { String::new() }),
        ("memory policy", policy(m).map(|policy| format!("{policy}, inherited (numactl, set_mempolicy)")).unwrap_or_default()),
    ];
    facts(page, &list);
}

fn state(page: &mut Page, report: &Report) {
    let e = &report.environment;
    let on = |b: Option<bool>| b.map(|b| if b { "on" } else { "off" }.to_owned()).unwrap_or_default();
    let clock = e.clock.as_ref().map(|c| {
        let why = c.reason.as_ref().map(|r| format!("; {r}")).unwrap_or_default();
        format!(
            "{} at {:.3} GHz ±{} ppm, {} ns per step, {} ns per reading{why}",
            c.source,
            c.hz / 1e9,
            number(c.error_ppm),
            number(c.resolution_ns),
            number(c.overhead_ns)
        )
    });
    let thp = e.thp.as_ref().map(|t| match &e.thp_defrag {
        Some(defrag) => format!("{t}, defrag {defrag}"),
        None => t.clone(),
    });
    let disabled = if e.thp_disabled == Some(true) { ", disabled for this process" } else { "" };
    let thp = thp.map(|thp| format!("{thp}{disabled}"));
    let privileges = match (e.root, e.capabilities.is_empty()) {
        (true, _) if !report.machine.identity.system.is_linux() => "administrator".to_owned(),
        (true, _) => "root".to_owned(),
        (false, true) => "none, and none needed".to_owned(),
        (false, false) => e.capabilities.join(", "),
    };
    page.heading("State", "");
    let list = [
        ("clock", clock.unwrap_or_default()),
        ("core frequency", frequency(report).map(|f| format!("{f}, measured")).unwrap_or_default()),
        ("governor", e.governors.join(", ")),
        ("energy preference", e.energy_preferences.join(", ")),
        ("turbo", on(e.turbo)),
        ("transparent huge pages", thp.unwrap_or_default()),
        ("NUMA balancing", on(e.numa_balancing)),
        ("privileges", privileges),
    ];
    facts(page, &list);
}

#[cfg(test)]
mod tests {
    use memgauge_model::topology::{Allowed, Identity};

    use super::*;

    #[test]
    fn what_is_not_known_of_a_machine_is_not_said_to_be_none() {
        let line = |identity: Identity| {
            let machine = Machine { identity, topology: Topology::default(), allowed: Allowed::default() };
            let items = super::identity(&machine);
            (items[0].clone(), items[2].clone())
        };
        let of = |arch: &str, vendor: Option<&str>, model: &[(&str, &str)]| Identity {
            arch: arch.into(),
            vendor: vendor.map(Into::into),
            model: model.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..Identity::default()
        };
        let unknown = Identity { hypervisor_unknown: Some("nothing says so".into()), ..of("unknown", None, &[]) };
        assert_eq!(line(unknown), ("CPU not known".to_owned(), "hypervisor not known".to_owned()));
        assert_eq!(line(of("riscv64", None, &[])), ("unknown riscv64 CPU".to_owned(), "no hypervisor".to_owned()));
        assert_eq!(line(of("x86_64", Some("AuthenticAMD"), &[("family", "26"), ("model", "2")])).0, "AuthenticAMD family 26 model 2");
        assert_eq!(line(of("aarch64", Some("ARM"), &[("part", "0xd42"), ("implementer", "0x41")])).0, "ARM part 0xd42");
        let guest = Identity { hypervisor: Some("KVM".into()), ..of("aarch64", Some("ARM"), &[]) };
        assert_eq!(line(guest), ("ARM".to_owned(), "virtual machine (KVM)".to_owned()));
    }
}
