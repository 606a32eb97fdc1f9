//! Idle latency: matrix of nodes, list of few pairs, list of CPUs.

use std::collections::BTreeMap;

use memgauge_model::experiment::{ChaseOrder, MemoryPlace};
use memgauge_model::result::Measurement;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::context::{Context, memory_only};
use super::distribution::distributions;
use super::evidence::{evidence, left_out, spread, widest_interval};
use super::footnotes::Footnotes;
use super::grid::{Cell, Column, DETAILED_COLUMNS, spread_columns};
use super::nodes::node_table;
use super::page::{INDENT, Page, Style};
use crate::groups::nodes::{NodeMatrix, Prober, Way, node_matrix, way};
use crate::groups::order_meaning;
use crate::number::{human, marked, number, percent, value_of};
use crate::pages::pages;
use crate::pivot::Pivot;

/// Beyond this many CPUs a list is summed up by node.
const LISTED_CPUS: usize = 64;
/// So many are listed as well on a page that explains everything.
const EXPLAINED_CPUS: usize = 256;

/// A row for each way from a CPU to memory, a column for each order; and the same by node.
struct Ways<'a> {
    table: Pivot<'a, Way<'a>, ChaseOrder>,
    nodes: NodeMatrix<'a>,
}

impl<'a> Ways<'a> {
    fn new(ms: &[&'a Measurement]) -> Self {
        Self { table: Pivot::new(ms, |m| (way(m), m.at.order.unwrap_or(ChaseOrder::WindowLocal))), nodes: node_matrix(ms) }
    }
    fn all(&self) -> &[Way<'a>] {
        &self.table.rows
    }
    fn get(&self, way: &Way<'a>, order: ChaseOrder) -> Option<&'a Measurement> {
        self.table.get(way, &order)
    }
    /// What was measured in this order.
    fn of_order(&self, order: ChaseOrder) -> Vec<&'a Measurement> {
        self.all().iter().filter_map(|way| self.get(way, order)).collect()
    }
    fn has(&self, order: ChaseOrder) -> bool {
        self.table.columns.contains(&order)
    }
    /// The order that is shown where there is room for only one.
    fn primary(&self) -> ChaseOrder {
        ORDERS.into_iter().find(|&order| self.has(order)).unwrap_or(ChaseOrder::WindowLocal)
    }
    /// Cost of address translation: full-random less window-local; 0 where the intervals do not tell the two apart.
    fn translation(&self, way: &Way<'a>) -> Option<f64> {
        let (random, local) = (self.get(way, ChaseOrder::FullRandom)?, self.get(way, ChaseOrder::WindowLocal)?);
        let difference = value_of(&random.estimate)? - value_of(&local.estimate)?;
        Some(if random.evidence.translation_ns == Some(0.0) { 0.0 } else { difference })
    }
    /// The same as a cell: `~` where one of the two is unreliable.
    fn translation_cell(&self, way: &Way<'a>) -> Option<Cell> {
        let cost = self.translation(way)?;
        let sign = if self.translation_is_reliable(way) { "" } else { "~" };
        Some(if cost == 0.0 { "not seen".into() } else { Cell::number(format!("{sign}{}", signed(cost))) })
    }
    /// Whether both orders are reliable.
    fn translation_is_reliable(&self, way: &Way<'a>) -> bool {
        let orders = [ChaseOrder::FullRandom, ChaseOrder::WindowLocal];
        orders.into_iter().filter_map(|order| self.get(way, order)).all(Measurement::is_reliable)
    }
}

const ABOUT: &str = "ns per dependent load";
const ORDERS: [ChaseOrder; 3] = [ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential];

/// By node of the CPU and node of the memory.
pub(super) fn matrix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let ways = Ways::new(ms);
    context.heading(page, ms, "Idle latency", ABOUT);
    let mut footnotes = Footnotes::new(context, ms);
    if ways.nodes.columns.len() == 1 || ways.all().len() <= 2 {
        list(page, &ways, context, &mut footnotes);
    } else {
        matrices(page, &ways, context, &mut footnotes);
    }
    finish(page, context, footnotes, &ways, ms);
}

/// By CPU.
pub(super) fn per_cpu(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let ways = Ways::new(ms);
    context.heading(page, ms, "Idle latency by CPU", ABOUT);
    let mut footnotes = Footnotes::new(context, ms);
    if ways.all().len() <= LISTED_CPUS {
        list(page, &ways, context, &mut footnotes);
    } else {
        let primary: Vec<&Measurement> = ways.of_order(ways.primary());
        by_node(page, &primary);
        page.paragraph(Style::Dim, left_out(&primary).unwrap_or_default());
        slowest(page, &primary, ways.all().len());
        if page.verbose && ways.all().len() <= EXPLAINED_CPUS {
            list(page, &ways, context, &mut footnotes);
        }
    }
    finish(page, context, footnotes, &ways, ms);
}

/// One line for each way.
fn list(page: &mut Page, ways: &Ways<'_>, context: &Context<'_>, footnotes: &mut Footnotes<'_>) {
    let rows = || ways.all().iter();
    let kind = |cpu: Option<u32>| context.report.machine.topology.cpu(cpu?).and_then(|c| c.kind.clone());
    let name = |from: &Prober<'_>| from.cpu.map_or_else(|| wording::node(from.node), |cpu| context.cpu_name(cpu));
    let mut values = |order| -> Vec<Cell> { rows().map(|way| footnotes.cell(ways.get(way, order))).collect() };
    page.table([
        Column::text("CPU", rows().map(|(from, _)| name(from))),
        Column::text("core", rows().map(|(from, _)| kind(from.cpu))),
        Column::text("memory", rows().map(|(_, memory)| wording::place(*memory))),
        Column::numbers("window-local", values(ChaseOrder::WindowLocal)),
        Column::numbers("full-random", values(ChaseOrder::FullRandom)),
        Column::numbers("sequential", values(ChaseOrder::Sequential)).optional(),
        Column::numbers("translation", rows().map(|way| ways.translation_cell(way))),
        Column::numbers("firmware", rows().map(|(from, memory)| claimed_ns(context, from.node, *memory).map(Cell::number))),
    ]);
}

/// A matrix for each order; only of the primary order where there are many columns.
fn matrices(page: &mut Page, ways: &Ways<'_>, context: &Context<'_>, footnotes: &mut Footnotes<'_>) {
    let Pivot { rows, columns, .. } = &ways.nodes;
    let detailed = context.has_room(columns.len());
    for order in ORDERS {
        // A second matrix of many columns says nothing that the line on translation does not.
        if !ways.has(order) || (!detailed && order != ways.primary()) {
            continue;
        }
        let meaning = if page.verbose { format!(": {}", order_meaning(order)) } else { String::new() };
        let about = format!("{}{meaning}", wording::chase_order(order));
        let claim = |from: &Prober<'_>, memory: &Option<MemoryPlace>| {
            claimed_ns(context, from.node, *memory).filter(|_| order == ChaseOrder::WindowLocal)
        };
        let table = node_matrix(&ways.of_order(order)).over(rows, columns);
        node_table(page, footnotes, (&about, "CPU ↓  memory →"), &table, detailed, claim);
    }
    if !detailed {
        page.paragraph(Style::Dim, widest_interval(ways.table.measurements().iter(), columns.len()).unwrap_or_default());
    }
}

/// Firmware's claim of the read latency.
fn claimed_ns(context: &Context<'_>, cpu_node: Option<u32>, memory: Option<MemoryPlace>) -> Option<String> {
    context.claim(cpu_node, memory)?.read_latency_ns.map(|ns| ns.to_string())
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("−{}", number(-value)) } else { format!("+{}", number(value)) }
}

/// Many CPUs, summed up by node of the CPU and of the memory. Unreliable numbers do not count.
fn by_node(page: &mut Page, ms: &[&Measurement]) {
    let mut groups: BTreeMap<(Option<u32>, Option<MemoryPlace>), Vec<f64>> = BTreeMap::new();
    for m in ms {
        groups.entry((m.at.cpu_node, m.at.memory)).or_default().extend(value_of(&m.estimate).filter(|_| m.is_reliable()));
    }
    let mut columns = vec![
        Column::text("CPUs of", groups.keys().map(|(node, _)| wording::node(*node))),
        Column::text("memory", groups.keys().map(|(_, memory)| wording::place(*memory))),
        Column::numbers("CPUs", groups.values().map(|g| Cell::number(g.len().to_string()))),
    ];
    columns.extend(spread_columns(groups.values()));
    page.table(columns);
}

fn slowest(page: &mut Page, ms: &[&Measurement], cpus: usize) {
    let mut all: Vec<(f64, u32, &Measurement)> = ms.iter().filter_map(|m| Some((value_of(&m.estimate)?, m.at.cpu?, *m))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let list: Vec<String> = all.iter().take(8).map(|(v, cpu, m)| format!("CPU {cpu} {}", marked(m, *v))).collect();
    if !list.is_empty() {
        let more = match (cpus <= EXPLAINED_CPUS, page.verbose) {
            (false, _) => "; every CPU is in the JSON result",
            (true, false) => "; every CPU: -v",
            (true, true) => "",
        };
        page.paragraph(Style::Plain, format!("slowest: {} (ns){more}", list.join(", ")));
    }
}

/// How much of the full-random latency is translation: `19 % of full-random`.
fn translation_share(ms: &[&Measurement]) -> Option<String> {
    let m = ms.iter().find(|m| m.evidence.translation_ns.is_some() && m.is_reliable())?;
    if m.evidence.translation_ns == Some(0.0) {
        return Some("too small for the intervals to show".into());
    }
    Some(format!("{} of full-random", percent(m.evidence.translation_ns? / value_of(&m.estimate).filter(|v| *v > 0.0)?)))
}

/// Prints the part below the tables: distributions, the cost of translation, footnotes, the legend and the evidence.
fn finish(page: &mut Page, context: &mut Context<'_>, footnotes: Footnotes<'_>, ways: &Ways<'_>, ms: &[&Measurement]) {
    let pairs = ways.all();
    distributions(page, ms, "order", |m| {
        let order = wording::chase_order(m.at.order.unwrap_or(ChaseOrder::WindowLocal)).to_owned();
        let place = || Some(format!(", {} to {}", context.cpu_name(m.at.cpu?), wording::place(m.at.memory)));
        if pairs.len() > 1 { order + &place().unwrap_or_default() } else { order }
    });
    let costs: Vec<(f64, bool)> =
        pairs.iter().filter_map(|way| Some((ways.translation(way)?, ways.translation_is_reliable(way)))).collect();
    let reliable: Vec<f64> = costs.iter().filter(|(_, reliable)| *reliable).map(|(cost, _)| *cost).collect();
    if pairs.len() > 1
        && let Some(cost) = spread(&reliable, "ns")
    {
        let left_out = match costs.len() - reliable.len() {
            0 => String::new(),
            unreliable => format!("; {unreliable} unreliable left out"),
        };
        page.paragraph(Style::Plain, format!("translation costs {cost} (full-random less window-local) on {}{left_out}", pages(ms)));
    }
    footnotes.print(page, &mut context.advised);
    if pairs.len() == 1 && (ways.has(ChaseOrder::FullRandom) || ways.has(ChaseOrder::Sequential)) {
        page.items(Style::Detail, INDENT, legend(ways, ms));
    }
    let mut items = evidence(ms);
    let probes: IdSet = ways.nodes.rows.iter().filter_map(|from| from.cpu).collect();
    if pairs.len() > 1 && ways.nodes.rows.len() <= DETAILED_COLUMNS && ways.nodes.columns.len() > 1 && !probes.is_empty() {
        items.push(format!("from {}", wording::cpus(&probes)));
    }
    page.items(Style::Detail, INDENT, &items);
    page.items(Style::Dim, INDENT, memory_only(context.report, ways.nodes.columns.iter().copied()));
}

/// What the columns of a single pair mean.
fn legend(ways: &Ways<'_>, ms: &[&Measurement]) -> Vec<String> {
    let has = |order| ways.has(order);
    let local = ms.iter().find(|m| m.at.order.is_none_or(|o| o == ChaseOrder::WindowLocal));
    let window = local.and_then(|m| m.evidence.window).map_or("a window".to_owned(), human);
    let translation = match translation_share(ms) {
        Some(share) => format!("translation: the difference of the two, {share} on {}", pages(ms)),
        None => "translation: the difference of the two".to_owned(),
    };
    let legend = [
        (has(ChaseOrder::WindowLocal), format!("window-local: random within {window}, which hides most of the address translation")),
        (has(ChaseOrder::FullRandom), "full-random: random over the whole buffer".to_owned()),
        (has(ChaseOrder::WindowLocal) && has(ChaseOrder::FullRandom), translation),
        (has(ChaseOrder::Sequential), "sequential: ascending, helped by prefetchers".to_owned()),
    ];
    legend.into_iter().filter(|(shown, _)| *shown).map(|(_, text)| text).collect()
}
