//! Cache-to-cache transfers: representatives as a list, all pairs as a matrix or summed up by what the two CPUs share.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::experiment::LineState;
use memgauge_core::result::Measurement;
use memgauge_core::stats::median;
use memgauge_core::topology::Topology;

use super::evidence::evidence;
use super::grid::{Cell, Column, blocks, grid};
use super::latency::{order_name, without_half};
use super::marks::Marks;
use super::number::{bounds, human, number, value_of};
use super::page::{INDENT, Page, Style};
use super::{Context, node_name};

const ABOUT: &str = "ns per line";
/// Beyond this many CPUs the matrix of pairs is left to the JSON result.
const MATRIX_CPUS: usize = 32;
/// Beyond this many pairs a list is summed up.
const LISTED_PAIRS: usize = 48;

/// What two CPUs share, nearest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shared {
    Core,
    Cache(u8),
    Node,
    Package,
    Nothing,
    Unknown,
}

impl Shared {
    pub(crate) fn between(topology: &Topology, a: Option<u32>, b: Option<u32>) -> Self {
        let (Some(a), Some(b)) = (a.and_then(|c| topology.cpu(c)), b.and_then(|c| topology.cpu(c))) else {
            return Self::Unknown;
        };
        if a.siblings.contains(b.id) {
            return Self::Core;
        }
        match topology.cpu_caches(a.id).filter(|c| c.cpus.contains(b.id)).map(|c| c.level).min() {
            Some(level) => Self::Cache(level),
            None if a.package != b.package => Self::Nothing,
            None if a.node == b.node => Self::Node,
            None => Self::Package,
        }
    }
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Core => "same core".into(),
            Self::Cache(level) => format!("same L{level}"),
            Self::Node => "same node".into(),
            Self::Package => "same package".into(),
            Self::Nothing => "other package".into(),
            Self::Unknown => "not known".into(),
        }
    }
}

/// Reader, holder and home.
type Pair = (Option<u32>, Option<u32>, Option<u32>);

fn pair(m: &Measurement) -> Pair {
    (m.at.cpu, m.at.holder_cpu, m.at.memory_node)
}

/// What was done besides holding and reading.
fn besides(ms: &[&Measurement]) -> Vec<String> {
    let mut items: BTreeSet<String> = BTreeSet::new();
    for m in ms {
        items.extend(m.at.sharer_cpu.map(|cpu| format!("CPU {cpu} loads the lines in between, so that they are shared")));
        items.extend(m.at.order.map(|order| format!("lines visited {}", order_name(order))));
        if let Some(pushes) = m.evidence.pushes {
            let who = [("holder", pushes.holder, "once it has the lines"), ("reader", pushes.reader, "before it reads the lines")];
            items.extend(
                who.iter().filter(|w| w.1.0 > 0).map(|(who, bytes, when)| format!("the {who} reads {} elsewhere {when}", human(*bytes))),
            );
        }
    }
    items.into_iter().collect()
}

fn by_state<'a>(ms: &[&'a Measurement]) -> BTreeMap<(Pair, Option<LineState>), &'a Measurement> {
    let mut map = BTreeMap::new();
    for m in ms {
        map.entry((pair(m), m.at.state)).or_insert(*m);
    }
    map
}

/// The pairs, nearest first.
pub(super) fn pairs_of(ms: &[&Measurement], context: &Context<'_>) -> Vec<Pair> {
    let topology = &context.report.machine.topology;
    let mut pairs: Vec<Pair> = ms.iter().map(|m| pair(m)).collect::<BTreeSet<_>>().into_iter().collect();
    pairs.sort_by_key(|p| (Shared::between(topology, p.0, p.1), *p));
    pairs
}

/// Chosen pairs, one line each.
pub(super) fn representatives(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about(ABOUT);
    page.heading(&context.title(ms, "Cache-to-cache transfers"), &about);
    let mut marks = Marks::new(context.report, ms);
    let pairs = pairs_of(ms, context);
    list(page, context, &mut marks, &pairs, ms);
    marks.print(page, &mut context.advised);
    explain(page, ms);
    page.items(Style::Dim, INDENT, &evidence(ms));
}

/// Pairs one line each, or summed up where they are too many.
pub(super) fn list(page: &mut Page, context: &Context<'_>, marks: &mut Marks<'_>, pairs: &[Pair], ms: &[&Measurement]) {
    let (cells, topology) = (by_state(ms), &context.report.machine.topology);
    if pairs.len() > LISTED_PAIRS {
        page.table(&summed_up(ms, topology, page.width));
        page.text(Style::Plain, INDENT, INDENT, "every pair is in the JSON result");
    } else {
        // The head says CPU, so that the names of two fit beside the numbers.
        let cpu = |id: Option<u32>| id.map_or(String::new(), |id| context.cpu_name(id).replacen("CPU ", "", 1));
        let mut columns = vec![
            Column::words("reader CPU").with(pairs.iter().map(|p| Cell::text(cpu(p.0)))),
            Column::words("holder CPU").with(pairs.iter().map(|p| Cell::text(cpu(p.1)))),
            Column::words("relation").with(pairs.iter().map(|p| Cell::text(Shared::between(topology, p.0, p.1).name()))),
            Column::words("home").with(pairs.iter().map(|p| p.2.map_or(Cell::Blank, |n| Cell::text(node_name(Some(n)))))),
        ];
        for (state, head) in states() {
            columns.push(Column::numbers(head).with(pairs.iter().map(|p| marks.cell(cells.get(&(*p, state)).copied()))));
        }
        page.table(&grid(columns, page.width));
    }
}

fn states() -> [(Option<LineState>, &'static str); 3] {
    [(Some(LineState::Hit), "HIT"), (Some(LineState::Hitm), "HITM"), (None, "state not stated")]
}

pub(super) fn explain(page: &mut Page, ms: &[&Measurement]) {
    page.items(Style::Plain, INDENT, &besides(ms));
    let legend = ["HIT: the holder has loaded the lines", "HITM: it has modified them", "home: the node of their memory"];
    page.items(Style::Dim, INDENT, &legend.map(str::to_owned));
}

/// All pairs.
pub(super) fn pairs(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about(ABOUT);
    page.heading(&context.title(ms, "Cache-to-cache transfers by pair of CPUs"), &about);
    let mut marks = Marks::new(context.report, ms);
    let topology = &context.report.machine.topology;
    let cpus: BTreeSet<u32> = ms.iter().flat_map(|m| [m.at.cpu, m.at.holder_cpu]).flatten().collect();
    if cpus.len() <= MATRIX_CPUS {
        for (state, head) in states() {
            let homes: BTreeSet<Option<u32>> = ms.iter().filter(|m| m.at.state == state).map(|m| m.at.memory_node).collect();
            // Usually each reader's own node is home; then one matrix holds them all.
            let own = ms.iter().all(|m| m.at.memory_node.is_none() || m.at.memory_node == m.at.cpu_node);
            let homes: Vec<Option<Option<u32>>> =
                if own || homes.len() <= 1 { homes.iter().take(1).map(|_| None).collect() } else { homes.into_iter().map(Some).collect() };
            for home in homes {
                let of = |reader: u32, holder: u32| {
                    ms.iter().copied().find(|m| {
                        m.at.cpu == Some(reader)
                            && m.at.holder_cpu == Some(holder)
                            && m.at.state == state
                            && home.is_none_or(|h| m.at.memory_node == h)
                    })
                };
                let lead = Column::words("reader ↓  holder →").with(cpus.iter().map(|c| Cell::text(format!("CPU {c}"))));
                let columns: Vec<Column> = cpus
                    .iter()
                    .map(|&holder| {
                        let values: Vec<Cell> = cpus
                            .iter()
                            .map(|&reader| match of(reader, holder) {
                                None if reader == holder => Cell::text("· "),
                                m => without_half(marks.cell(m), cpus.len() <= 4),
                            })
                            .collect();
                        Column::numbers(format!("{holder}")).with(values)
                    })
                    .collect();
                let home = home.flatten().map(|n| format!(", lines at home on node {n}")).unwrap_or_default();
                page.text(Style::Plain, INDENT, INDENT, &format!("{head}{home}"));
                for block in blocks(&lead, &columns, page.width) {
                    page.table(&block);
                }
            }
        }
    }
    if cpus.len() > 4 {
        page.table(&summed_up(ms, topology, page.width));
    }
    if cpus.len() > MATRIX_CPUS {
        let text = format!("the matrix of {0} × {0} CPUs is in the JSON result", cpus.len());
        page.text(Style::Plain, INDENT, INDENT, &text);
    }
    marks.print(page, &mut context.advised);
    explain(page, ms);
    page.items(Style::Dim, INDENT, &evidence(ms));
}

/// Fastest, median and slowest by what the CPUs share and the lines' state.
fn summed_up(ms: &[&Measurement], topology: &Topology, width: usize) -> Vec<String> {
    let mut groups: BTreeMap<(Shared, Option<LineState>), Vec<f64>> = BTreeMap::new();
    for m in ms {
        let key = (Shared::between(topology, m.at.cpu, m.at.holder_cpu), m.at.state);
        groups.entry(key).or_default().extend(value_of(&m.estimate));
    }
    let head = |state: &Option<LineState>| states().into_iter().find(|(s, _)| s == state).map_or("", |(_, head)| head);
    let cell = |v: Option<f64>| v.map_or(Cell::Blank, |v| Cell::number(number(v)));
    grid(
        vec![
            Column::words("relation").with(groups.keys().map(|k| Cell::text(k.0.name()))),
            Column::words("state").with(groups.keys().map(|k| Cell::text(head(&k.1)))),
            Column::numbers("pairs").with(groups.values().map(|v| Cell::text(v.len().to_string()))),
            Column::numbers("fastest").with(groups.values().map(|v| cell(bounds(v.iter().copied()).map(|b| b.0)))),
            Column::numbers("median").with(groups.values().map(|v| cell(median(v)))),
            Column::numbers("slowest").with(groups.values().map(|v| cell(bounds(v.iter().copied()).map(|b| b.1)))),
        ],
        width,
    )
}
