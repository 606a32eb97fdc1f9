//! The page of `where`: the placement of processes' memory, and its cost.

use std::collections::BTreeMap;

use memgauge_analysis::residency::could_be_better;
use memgauge_model::result::{
    BetterPlacement, MappingKind, NotPriced, PageBytes, PageKind, PlacementCost, PriceSource, Priced, Prices, ProcessMemory, Remedy,
    Report, Residency, WhyUnseen,
};
use memgauge_model::tiers::{self, MemoryKind};
use memgauge_model::units::Bytes;
use memgauge_model::wording;
use memgauge_model::words;
use memgauge_model::words::{Command, Knob, Verb};

use super::grid::Column;
use super::page::{INDENT, Page, Style};
use super::{machine, notes};
use crate::number::{DASH, count, doubted, half_width_of, human, number, percent, seconds};

/// Processes that are listed.
const SHOWN_PROCESSES: usize = 5;
/// Mappings that are listed.
const SHOWN_MAPPINGS: usize = 5;
/// Processes that were not seen, of those that are named.
const NAMED: usize = 3;
/// A change of memory by less than this share of it is none.
const MOVED: f64 = 0.01;

/// The page.
pub(super) fn page(page: &mut Page, report: &Report, residency: &Residency) {
    machine::title(page, report);
    page.items(Style::Plain, "", machine::identity(&report.machine));
    page.gap();
    let (text, style) = claim(report, residency);
    page.text(style, "", "  ", &text);
    if !residency.processes.is_empty() {
        nodes(page, report, residency);
        match report.machine.topology.nodes.len() {
            1 => source(page, residency, |page, from| page.paragraph(Style::Dim, from)),
            _ => cost(page, residency),
        }
        translation(page, residency);
        remedies(page, residency);
        processes(page, report, residency);
        page.heading("Pages", "");
        kinds(page, residency);
        settings(page, report, residency);
        mappings(page, residency);
    }
    unseen(page, residency);
    if residency.cost.is_some() {
        page.gap();
        page.text(Style::Dim, "", "  ", &counted(residency));
    }
    notes::brief(page, report, notes::Shown::Warnings);
}

/// The sentence about which pages count as used.
fn counted(residency: &Residency) -> String {
    let (all, touched) = (residency.processes.len(), residency.processes.iter().filter(|process| process.touched().is_some()).count());
    match touched {
        0 => "Pages were counted, not accesses: latencies are those if all pages of a process are used alike.".to_owned(),
        _ if touched == all => {
            "Touched pages were counted, not accesses: latencies are those if all touched pages of a process are used alike.".to_owned()
        }
        _ => format!("Pages were counted, not accesses: of {touched} of {all} processes the touched pages, of the others all pages."),
    }
}

/// All of it in a sentence.
pub(super) fn claim(report: &Report, residency: &Residency) -> (String, Style) {
    if residency.processes.is_empty() {
        return ("NOT SEEN: the program ended before its memory was read".to_owned(), Style::Error);
    }
    let one_node = report.machine.topology.nodes.len() == 1;
    let Some(cost) = &residency.cost else {
        if one_node {
            return (format!("ALL LOCAL: {} on the only node of this machine", human(residency.present())), Style::Bold);
        }
        let by_node = residency.by_node();
        let most = by_node.iter().max_by_key(|(_, bytes)| **bytes);
        let whole = total(by_node.values());
        let on = most.map(|(node, bytes)| format!(", {} of it on node {node}", percent(bytes.0 as f64 / whole.max(1) as f64)));
        return (format!("{}{}; {}", human(residency.present()), on.unwrap_or_default(), not_priced(residency)), Style::Bold);
    };
    let now = format!("{}{} ns", if cost.unreliable { "~" } else { "" }, with_interval(cost.latency_ns));
    let remote = percent(cost.remote);
    if could_be_better(cost) {
        let times = cost.latency_ns.value / cost.best.latency_ns.value;
        let best = number(cost.best.latency_ns.value);
        return (format!("{remote} REMOTE: an access costs {now}, {times:.2} times the {best} ns of the best placement"), Style::Warning);
    }
    let text = match () {
        () if one_node => format!("ALL LOCAL: {} on the only node of this machine, {now} an access", human(residency.present())),
        () if cost.unreliable => format!("{remote} REMOTE: an access costs {now}; the prices are unreliable, so nothing is advised"),
        () if cost.remote > 0.0 => {
            format!(
                "NOTHING TO GAIN BY MOVING: {remote} of the accesses are remote, an access costs {now}, and no better placement was found that fits"
            )
        }
        () => format!("ALL LOCAL: an access costs {now}, and no other placement is better"),
    };
    (text, if cost.unreliable { Style::Warning } else { Style::Bold })
}

/// `143.0 ±4.1`.
fn with_interval(price: Priced) -> String {
    let half = half_width_of(price.value, Some(price.low), Some(price.high));
    format!("{} {half}", number(price.value)).trim_end().to_owned()
}

/// Memory, threads and prices by node.
fn nodes(page: &mut Page, report: &Report, residency: &Residency) {
    let what = match residency.processes.as_slice() {
        [one] => format!("of {} ({}), {}", one.name, one.pid, count(one.threads as usize, "thread", "threads")),
        all => format!("of {}", count(all.len(), "process", "processes")),
    };
    page.heading("Memory by node", &format!("{what}, observed for {}", seconds(residency.observed_s)));
    let bytes = residency.by_node();
    let time = time_by_node(report, residency);
    let kinds = tiers::kinds(&report.machine);
    let kind = |node: u32| kinds.iter().find(|kind| kind.node == node);
    let mut rows: Vec<u32> = bytes.keys().chain(time.keys()).copied().collect();
    rows.sort_unstable();
    rows.dedup();
    let whole = total(bytes.values());
    let of = |node: &u32| bytes.get(node).copied().unwrap_or_default();
    let kind_of = |node: &u32| {
        kind(*node)
            .map_or(DASH.to_owned(), |kind| format!("{}{}", wording::memory_kind(kind.kind), if kind.guessed { " (guess)" } else { "" }))
    };
    let unreliable = residency.cost.as_ref().is_some_and(|cost| cost.unreliable);
    let price = |node: &u32| {
        let price = residency.prices.as_ref().and_then(|prices| mean_price(prices, &time, *node));
        price.map_or(DASH.to_owned(), |ns| doubted(unreliable, ns))
    };
    let touched = residency.touched_by_node();
    let touched_of = |node: &u32| touched.as_ref().map_or(DASH.to_owned(), |touched| human(touched.get(node).copied().unwrap_or_default()));
    let free = |node: &u32| residency.free.get(node).copied().map_or(DASH.to_owned(), human);
    page.table([
        Column::text("node", rows.iter().map(ToString::to_string)),
        Column::text("kind", rows.iter().map(kind_of)).optional(),
        Column::numbers("memory", rows.iter().map(|node| human(of(node)))),
        Column::numbers("share", rows.iter().map(|node| percent(of(node).0 as f64 / whole.max(1) as f64))),
        Column::numbers("touched", rows.iter().map(touched_of)).only_if(touched.is_some()),
        Column::numbers("threads' time", rows.iter().map(|node| time.get(node).map_or(DASH.to_owned(), |share| percent(*share)))),
        Column::numbers("ns from there", rows.iter().map(price)).only_if(residency.cost.is_some()),
        Column::numbers("free or cache", rows.iter().map(free)).optional(),
    ]);
    if residency.cost.is_some() {
        page.paragraph(Style::Dim, "ns from there: latency from the CPUs that the threads ran on, as they shared the time");
    }
    let unplaced = total(residency.processes.iter().map(|process| &process.memory.unplaced));
    if unplaced as f64 > MOVED * whole as f64 {
        let text = format!(
            "{} more are present on nodes that the kernel does not show: memory of devices, or mappings that changed meanwhile.",
            human(Bytes(unplaced))
        );
        page.paragraph(Style::Warning, text);
    }
    if residency.processes.iter().all(|process| process.ran_s() <= 0.0) {
        page.paragraph(Style::Warning, "No thread ran while they were observed: each counts where it was seen last.");
    }
    changes(page, residency);
    far(page, residency, &kinds, &time);
}

/// The share of the threads' time by node, of all processes.
fn time_by_node(report: &Report, residency: &Residency) -> BTreeMap<u32, f64> {
    let node = |cpu: u32| report.machine.topology.cpu(cpu).map(|cpu| cpu.node);
    let ran: f64 = residency.processes.iter().map(ProcessMemory::ran_s).sum();
    let mut time: BTreeMap<u32, f64> = BTreeMap::new();
    for process in &residency.processes {
        let weight = if ran > 0.0 { process.ran_s() / ran } else { 1.0 / residency.processes.len() as f64 };
        process.threads_by_node(node).into_iter().for_each(|(node, share)| *time.entry(node).or_default() += weight * share);
    }
    time.retain(|_, share| *share > 0.0);
    time
}

/// The latency to a node's memory from where the threads run.
fn mean_price(prices: &Prices, time: &BTreeMap<u32, f64>, memory: u32) -> Option<f64> {
    let of = |cpu: u32| prices.latency_ns.iter().find(|p| (p.cpu_node, p.memory_node) == (cpu, memory)).map(|p| p.price.value);
    let whole: f64 = time.values().sum();
    let sum = time.iter().map(|(cpu, share)| Some(share * of(*cpu)?)).sum::<Option<f64>>()?;
    (whole > 0.0).then_some(sum / whole)
}

/// What memory of other kinds than DRAM adds.
fn far(page: &mut Page, residency: &Residency, kinds: &[tiers::NodeKind], time: &BTreeMap<u32, f64>) {
    let Some(prices) = residency.prices.as_ref().filter(|_| residency.cost.is_some()) else { return };
    let bytes = residency.used_by_node();
    let whole: f64 = bytes.values().map(|bytes| bytes.0 as f64).sum();
    let is_dram = |kind: &&tiers::NodeKind| kind.kind == MemoryKind::Dram;
    let unreliable = residency.cost.as_ref().is_some_and(|cost| cost.unreliable);
    let nearest = kinds.iter().filter(is_dram).filter_map(|kind| mean_price(prices, time, kind.node)).min_by(f64::total_cmp);
    for kind in kinds.iter().filter(|kind| !is_dram(kind)) {
        let (Some(of_node), Some(dram), Some(own)) = (bytes.get(&kind.node), nearest, mean_price(prices, time, kind.node)) else {
            continue;
        };
        let adds = of_node.0 as f64 / whole * (own - dram);
        let name = wording::memory_kind(kind.kind);
        page.paragraph(
            Style::Plain,
            format!("{name} on node {} adds {} ns to an access, against the nearest DRAM.", kind.node, doubted(unreliable, adds)),
        );
    }
}

/// How memory grew and moved while it was watched.
fn changes(page: &mut Page, residency: &Residency) {
    let [first, .., last] = residency.points.as_slice() else { return };
    let nodes: Vec<u32> = first.by_node.keys().chain(last.by_node.keys()).copied().collect();
    let of = |point: &BTreeMap<u32, Bytes>, node: u32| point.get(&node).map_or(0, |bytes| bytes.0);
    let whole = total(last.by_node.values());
    let mut changed: Vec<(u32, i128)> =
        nodes.into_iter().map(|node| (node, i128::from(of(&last.by_node, node)) - i128::from(of(&first.by_node, node)))).collect();
    changed.sort_unstable();
    changed.dedup();
    changed.retain(|(_, change)| change.unsigned_abs() as f64 > MOVED * whole as f64);
    if changed.is_empty() {
        return;
    }
    let by = |(node, change): &(u32, i128)| {
        let sign = if *change < 0 { "−" } else { "+" };
        format!("node {node} {sign}{}", human(Bytes(change.unsigned_abs() as u64)))
    };
    let reads = count(residency.points.len(), "reading", "readings");
    page.paragraph(
        Style::Plain,
        format!("From the first of {reads} to the last: {}.", changed.iter().map(by).collect::<Vec<_>>().join(", ")),
    );
}

fn processes(page: &mut Page, report: &Report, residency: &Residency) {
    let all = &residency.processes;
    if all.len() < 2 {
        return;
    }
    page.heading("Processes", "memory that several of them have mapped counts for each");
    let shown = &all[..page.shown(all.len(), SHOWN_PROCESSES)];
    let node = |cpu: u32| report.machine.topology.cpu(cpu).map(|cpu| cpu.node);
    page.table([
        Column::numbers("PID", shown.iter().map(|p| p.pid.to_string())),
        Column::text("name", shown.iter().map(|p| p.name.clone())),
        Column::numbers("memory", shown.iter().map(|p| human(p.memory.present))),
        Column::text("on nodes", shown.iter().map(|p| by_node(&p.memory.by_node))),
        Column::text("runs on nodes", shown.iter().map(|p| shares(&p.threads_by_node(node)))).optional(),
        Column::numbers("CPU s", shown.iter().map(|p| number(p.ran_s()))).optional(),
        Column::numbers(
            "ns",
            shown.iter().map(|p| p.cost.as_ref().map_or(DASH.to_owned(), |cost| doubted(cost.unreliable, cost.latency_ns.value))),
        )
        .only_if(residency.cost.is_some()),
    ]);
    page.and_more(all.len(), shown.len());
    let proportional = total(all.iter().map(|p| &p.memory.proportional));
    let shared = total(all.iter().map(|p| &p.memory.shared));
    if shared > 0 {
        page.paragraph(Style::Dim, format!("{} if what is shared counts once in equal parts (PSS).", human(Bytes(proportional))));
    }
}

/// `0: 62 %, 1: 38 %`, or the only node.
fn shares(of: &BTreeMap<u32, f64>) -> String {
    match of.keys().collect::<Vec<_>>().as_slice() {
        [] => DASH.to_owned(),
        [only] => only.to_string(),
        _ => of.iter().map(|(node, share)| format!("{node}: {}", percent(*share))).collect::<Vec<_>>().join(", "),
    }
}

fn by_node(bytes: &BTreeMap<u32, Bytes>) -> String {
    let whole = total(bytes.values());
    shares(&bytes.iter().filter(|(_, bytes)| bytes.0 > 0).map(|(node, bytes)| (*node, bytes.0 as f64 / whole as f64)).collect())
}

/// The sum, also of what a damaged file says.
fn total<'a>(bytes: impl Iterator<Item = &'a Bytes>) -> u64 {
    bytes.fold(0, |sum, bytes| sum.saturating_add(bytes.0))
}

/// Memory by kind of page and of mapping.
fn kinds(page: &mut Page, residency: &Residency) {
    let all = || residency.processes.iter().map(|process| &process.memory);
    let mut pages: BTreeMap<(PageKind, Bytes), u64> = BTreeMap::new();
    for PageBytes { kind, page, bytes } in all().flat_map(|memory| &memory.by_page) {
        let sum = pages.entry((*kind, *page)).or_default();
        *sum = sum.saturating_add(bytes.0);
    }
    let of_kind = |kind: MappingKind| total(all().filter_map(|memory| memory.by_kind.get(&kind)));
    let pages = pages.into_iter().map(|((kind, page), bytes)| format!("{} in {} of {page}", human(Bytes(bytes)), kind.in_words()));
    let mappings = MappingKind::ALL.into_iter().map(|kind| (kind, of_kind(kind))).filter(|(_, bytes)| *bytes > 0);
    page.items(Style::Plain, INDENT, pages);
    page.items(Style::Plain, INDENT, mappings.map(|(kind, bytes)| format!("{} {}", kind.name(), human(Bytes(bytes)))));
    let swapped = total(all().map(|memory| &memory.swapped));
    if swapped > 0 {
        page.paragraph(Style::Warning, format!("{} are swapped out and on no node.", human(Bytes(swapped))));
    }
}

fn mappings(page: &mut Page, residency: &Residency) {
    let [only] = residency.processes.as_slice() else { return };
    let shown = &only.mappings[..page.shown(only.mappings.len(), SHOWN_MAPPINGS)];
    if shown.is_empty() {
        return;
    }
    page.heading("Largest mappings", "");
    page.table([
        Column::numbers("memory", shown.iter().map(|m| human(m.present))),
        Column::text("kind", shown.iter().map(|m| m.kind.name())),
        Column::text("on nodes", shown.iter().map(|m| by_node(&m.by_node))),
        Column::numbers("huge pages", shown.iter().map(|m| percent(m.huge.0 as f64 / m.present.0.max(1) as f64))),
        Column::text("name", shown.iter().map(|m| m.name.clone().unwrap_or_default())).optional(),
    ]);
    page.and_more(only.mappings.len(), shown.len());
}

/// Policies and settings that place memory.
fn settings(page: &mut Page, report: &Report, residency: &Residency) {
    let mut policies: BTreeMap<String, u64> = BTreeMap::new();
    for policy in residency.processes.iter().flat_map(|process| &process.policies) {
        let sum = policies.entry(wording::memory_policy(&policy.policy)).or_default();
        *sum = sum.saturating_add(policy.present.0);
    }
    let whole = policies.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    let mut policies: Vec<(String, u64)> = policies.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    policies.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let in_force = policies.iter().map(|(policy, bytes)| match policies.len() {
        1 => format!("memory policy {policy}"),
        _ => format!("{} under policy {policy}", percent(*bytes as f64 / whole as f64)),
    });
    let topology = &report.machine.topology;
    let with_memory = topology.nodes.iter().filter(|node| node.has_memory()).count();
    let cpus = match residency.processes.as_slice() {
        [only] if !only.allowed_cpus.is_empty() && only.allowed_cpus.len() < topology.cpus.len() => {
            Some(format!("may run on {}", wording::cpus(&only.allowed_cpus)))
        }
        _ => None,
    };
    let nodes = match residency.processes.as_slice() {
        [only] if !only.allowed_nodes.is_empty() && only.allowed_nodes.len() < with_memory => {
            Some(format!("memory from {} only", wording::nodes(&only.allowed_nodes)))
        }
        _ => None,
    };
    let several = topology.nodes.len() > 1;
    let balancing = residency.numa_balancing.filter(|_| several).map(|on| format!("NUMA balancing {}", if on { "on" } else { "off" }));
    page.items(Style::Plain, INDENT, in_force.chain(cpus).chain(nodes).chain(balancing));
}

/// Says where the prices are from, and whether they are reliable.
fn source(page: &mut Page, residency: &Residency, say: impl FnOnce(&mut Page, String)) {
    let Some(prices) = residency.prices.as_ref().filter(|_| residency.cost.is_some()) else { return };
    let measured = prices.measured.split('.').next().unwrap_or_default().replace('T', " ").replace('Z', "");
    say(
        page,
        match &prices.from {
            PriceSource::Measured => "prices measured at the beginning".to_owned(),
            PriceSource::File { path } => format!("prices from {path}, measured {measured} UTC"),
            PriceSource::Kept => format!("prices from the check of {measured} UTC"),
        },
    );
    let of_pairs = prices.latency_ns.iter().chain(&prices.bandwidth_gbs).any(|price| price.unreliable);
    if of_pairs || prices.translation_ns.iter().any(|price| price.unreliable) {
        page.paragraph(Style::Warning, "~ Prices are unreliable: the CPUs were used by others while they were measured.");
    }
}

fn cost(page: &mut Page, residency: &Residency) {
    let Some(cost) = &residency.cost else { return };
    source(page, residency, |page, from| page.heading("Cost", &from));
    let now = BetterPlacement { latency_ns: cost.latency_ns, ceiling_gbs: cost.ceiling_gbs, ..BetterPlacement::default() };
    let rows = [
        ("now", &now),
        ("if threads moved", &cost.best_for_threads),
        ("if pages moved", &cost.best_for_pages),
        ("the best that fits", &cost.best),
    ];
    let is_now = |placement: &BetterPlacement| placement.threads.is_empty();
    page.table([
        Column::text("placement", rows.iter().map(|(name, _)| *name)),
        Column::numbers("ns", rows.iter().map(|(_, p)| doubted(cost.unreliable, p.latency_ns.value))),
        Column::text("", rows.iter().map(|(_, p)| half_width_of(p.latency_ns.value, Some(p.latency_ns.low), Some(p.latency_ns.high)))),
        Column::numbers("saves", rows.iter().map(|(_, p)| if is_now(p) { String::new() } else { number(p.saves_ns.value.max(0.0)) })),
        Column::numbers("GB/s at most", rows.iter().map(|(_, p)| p.ceiling_gbs.map_or(DASH.to_owned(), number)))
            .only_if(cost.ceiling_gbs.is_some()),
        Column::text("threads on", rows.iter().map(|(_, p)| if is_now(p) { String::new() } else { shares(&p.threads) })).optional(),
        Column::text("pages on", rows.iter().map(|(_, p)| if is_now(p) { String::new() } else { by_node(&p.pages) })).optional(),
    ]);
    narrower(page, cost);
}

/// The latency that address translation adds, with these pages and with the best.
fn translation(page: &mut Page, residency: &Residency) {
    let Some(prices) = residency.prices.as_ref().filter(|prices| residency.cost.is_some() && !prices.translation_ns.is_empty()) else {
        return;
    };
    let Some(translation) = &residency.translation else {
        let known: Vec<String> = prices.translation_ns.iter().map(|price| price.page.to_string()).collect();
        let mut text = format!("The cost of address translation is known only for pages of {}.", known.join(" and "));
        if prices.from != PriceSource::Measured {
            text += &format!(" {} measures it for base pages and transparent huge pages.", Knob::Measure);
        }
        page.paragraph(Style::Dim, text);
        return;
    };
    let mut buffers: Vec<Bytes> = prices.translation_ns.iter().map(|price| price.buffer).collect();
    buffers.sort_unstable();
    buffers.dedup();
    let buffers: Vec<String> = buffers.into_iter().map(human).collect();
    let doubt = if translation.unreliable { "~" } else { "" };
    let page_size = translation.best_page;
    let mut text = format!("Address translation adds {doubt}{} ns to a random access", with_interval(translation.now_ns));
    if translation.best_ns.value < translation.now_ns.value {
        text += &format!("; it would add {doubt}{} ns if all were in pages of {page_size}", with_interval(translation.best_ns));
    }
    page.paragraph(Style::Plain, format!("{text} (measured in a buffer of {}).", buffers.join(" and ")));
}

/// A placement that is nearer may have less bandwidth.
fn narrower(page: &mut Page, cost: &PlacementCost) {
    let Some((now, best)) = cost.ceiling_gbs.zip(cost.best.ceiling_gbs) else { return };
    if best < now && could_be_better(cost) {
        let text = format!(
            "The best placement has less bandwidth: {} GB/s at most, now {}. It is worse for programs that need more: {} finds weights for these.",
            number(best),
            number(now),
            Command::new(Verb::Interleave)
        );
        page.paragraph(Style::Warning, text);
    }
}

fn not_priced(residency: &Residency) -> String {
    match &residency.not_priced {
        Some(NotPriced::NoPrices) | None => {
            let measure = Command::new(Verb::Latency).with(Knob::Matrix).to("prices.json");
            let words = words![
                "what it costs is not known: measure latencies (",
                measure,
                "; ",
                Knob::Prices,
                " prices.json), or give ",
                Knob::Measure
            ];
            words.to_string()
        }
        Some(NotPriced::PairMissing { cpu_node, memory_node }) => {
            format!("what it costs is not known: the prices have no latency from node {cpu_node} to memory of node {memory_node}")
        }
        Some(NotPriced::NothingPlaced) => "what it costs is not known: the kernel shows no node of its memory".to_owned(),
    }
}

fn remedies(page: &mut Page, residency: &Residency) {
    let moves = residency.remedies.iter().any(|remedy| *remedy != Remedy::HugePages);
    if !moves && residency.cost.as_ref().is_some_and(could_be_better) {
        page.paragraph(Style::Plain, "No single command leads to the best placement: the program must place its memory itself.");
    }
    if residency.remedies.is_empty() {
        return;
    }
    page.heading("To do", "nothing of this was done");
    for remedy in &residency.remedies {
        page.command(&match remedy {
            Remedy::MoveThreads { pid, cpus, .. } => format!("taskset -acp {cpus} {pid}"),
            Remedy::MovePages { pid, from, to } => format!("migratepages {pid} {from} {to}"),
            Remedy::StartOn { node } => format!("numactl --cpunodebind={node} --membind={node} COMMAND"),
            Remedy::HugePages => "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 COMMAND   # heap in huge pages".to_owned(),
        });
    }
}

fn unseen(page: &mut Page, residency: &Residency) {
    if residency.not_seen.is_empty() {
        return;
    }
    page.gap();
    let mut reasons: BTreeMap<&WhyUnseen, Vec<String>> = BTreeMap::new();
    for unseen in &residency.not_seen {
        let name = unseen.name.as_ref().map_or_else(|| unseen.pid.to_string(), |name| format!("{} ({name})", unseen.pid));
        reasons.entry(&unseen.why).or_default().push(name);
    }
    for (why, names) in reasons {
        let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
        let named = names.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
        page.text(Style::Warning, "", "  ", &format!("Not seen: process {named}{more}: {why}"));
    }
}
