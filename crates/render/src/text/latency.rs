//! Idle latency: matrix of nodes, list of few pairs, list of CPUs.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::{ChaseOrder, MemoryPlace};
use memgauge_model::result::Measurement;
use memgauge_model::units::IdSet;
use memgauge_model::wording;

use super::context::{Context, memory_only};
use super::distribution::distributions;
use super::evidence::{evidence, left_out, spread, widest_interval};
use super::footnotes::Footnotes;
use super::grid::{CLAIMED, Cell, Column, DETAILED_COLUMNS, column_name, matrix as matrix_table, row_names, spread_columns, without_half};
use super::page::{INDENT, Page, Style};
use crate::groups::order_meaning;
use crate::number::{human, marked, number, percent, value_of};
use crate::pages::pages;

/// A row: node and CPU of the probe.
type Row = (Option<u32>, Option<u32>);

/// Beyond this many CPUs a list is summed up by node.
const LISTED_CPUS: usize = 64;
/// So many are listed as well on a page that explains everything.
const EXPLAINED_CPUS: usize = 256;

struct Cells<'a> {
    by_place: BTreeMap<(Row, Option<MemoryPlace>, ChaseOrder), &'a Measurement>,
    rows: Vec<Row>,
    columns: Vec<Option<MemoryPlace>>,
}

impl<'a> Cells<'a> {
    fn new(ms: &[&'a Measurement]) -> Self {
        let mut by_place = BTreeMap::new();
        for m in ms {
            let place = ((m.at.cpu_node, m.at.cpu), m.at.memory, m.at.order.unwrap_or(ChaseOrder::WindowLocal));
            by_place.entry(place).or_insert(*m);
        }
        let rows: BTreeSet<Row> = by_place.keys().map(|k| k.0).collect();
        let columns: BTreeSet<Option<MemoryPlace>> = by_place.keys().map(|k| k.1).collect();
        Self { by_place, rows: rows.into_iter().collect(), columns: columns.into_iter().collect() }
    }
    fn get(&self, row: Row, column: Option<MemoryPlace>, order: ChaseOrder) -> Option<&'a Measurement> {
        self.by_place.get(&(row, column, order)).copied()
    }
    fn value(&self, row: Row, column: Option<MemoryPlace>, order: ChaseOrder) -> Option<f64> {
        self.get(row, column, order).and_then(|m| value_of(&m.estimate))
    }
    fn has(&self, order: ChaseOrder) -> bool {
        self.by_place.keys().any(|k| k.2 == order)
    }
    /// The order that is shown where there is room for only one.
    fn primary(&self) -> ChaseOrder {
        ORDERS.into_iter().find(|&order| self.has(order)).unwrap_or(ChaseOrder::WindowLocal)
    }
    /// Cost of address translation: full-random less window-local; 0 where the intervals do not tell the two apart.
    fn translation(&self, row: Row, column: Option<MemoryPlace>) -> Option<f64> {
        let difference = self.value(row, column, ChaseOrder::FullRandom)? - self.value(row, column, ChaseOrder::WindowLocal)?;
        let told = self.get(row, column, ChaseOrder::FullRandom)?.evidence.translation_ns != Some(0.0);
        Some(if told { difference } else { 0.0 })
    }

    /// The same as a cell: `~` where one of the two is unreliable.
    fn translation_cell(&self, row: Row, column: Option<MemoryPlace>) -> Option<Cell> {
        let cost = self.translation(row, column)?;
        let sign = if self.translation_is_reliable(row, column) { "" } else { "~" };
        Some(if cost == 0.0 { "not seen".into() } else { Cell::number(format!("{sign}{}", signed(cost))) })
    }
    /// Whether both orders are reliable.
    fn translation_is_reliable(&self, row: Row, column: Option<MemoryPlace>) -> bool {
        let orders = [ChaseOrder::FullRandom, ChaseOrder::WindowLocal];
        orders.iter().filter_map(|order| self.get(row, column, *order)).all(|m| m.is_reliable())
    }
    fn pairs(&self) -> Vec<(Row, Option<MemoryPlace>)> {
        let all: BTreeSet<_> = self.by_place.keys().map(|k| (k.0, k.1)).collect();
        all.into_iter().collect()
    }
}

const ABOUT: &str = "ns per dependent load";
const ORDERS: [ChaseOrder; 3] = [ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential];

/// By node of the CPU and node of the memory.
pub(super) fn matrix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let cells = Cells::new(ms);
    context.heading(page, ms, "Idle latency", ABOUT);
    let mut footnotes = Footnotes::new(context, ms);
    if cells.columns.len() == 1 || cells.pairs().len() <= 2 {
        list(page, &cells, context, &mut footnotes);
    } else {
        matrices(page, &cells, context, &mut footnotes);
    }
    finish(page, context, footnotes, &cells, ms);
}

/// By CPU.
pub(super) fn per_cpu(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let cells = Cells::new(ms);
    context.heading(page, ms, "Idle latency by CPU", ABOUT);
    let mut footnotes = Footnotes::new(context, ms);
    if cells.pairs().len() <= LISTED_CPUS {
        list(page, &cells, context, &mut footnotes);
    } else {
        by_node(page, &cells);
        let primary: Vec<&Measurement> =
            cells.pairs().iter().filter_map(|(row, memory)| cells.get(*row, *memory, cells.primary())).collect();
        page.paragraph(Style::Dim, left_out(&primary).unwrap_or_default());
        slowest(page, &cells);
        if page.verbose && cells.pairs().len() <= EXPLAINED_CPUS {
            list(page, &cells, context, &mut footnotes);
        }
    }
    finish(page, context, footnotes, &cells, ms);
}

/// One line a pair of CPU and node.
fn list(page: &mut Page, cells: &Cells<'_>, context: &Context<'_>, footnotes: &mut Footnotes<'_>) {
    let pairs = cells.pairs();
    let kind = |cpu: Option<u32>| context.report.machine.topology.cpu(cpu?).and_then(|c| c.kind.clone());
    let mut values = |order| -> Vec<Cell> { pairs.iter().map(|(row, memory)| footnotes.cell(cells.get(*row, *memory, order))).collect() };
    page.table([
        Column::text("CPU", pairs.iter().map(|((node, cpu), _)| cpu.map_or_else(|| wording::node(*node), |cpu| context.cpu_name(cpu)))),
        Column::text("core", pairs.iter().map(|((_, cpu), _)| kind(*cpu))),
        Column::text("memory", pairs.iter().map(|(_, memory)| wording::place(*memory))),
        Column::numbers("window-local", values(ChaseOrder::WindowLocal)),
        Column::numbers("full-random", values(ChaseOrder::FullRandom)),
        Column::numbers("sequential", values(ChaseOrder::Sequential)).optional(),
        Column::numbers("translation", pairs.iter().map(|(row, memory)| cells.translation_cell(*row, *memory))),
        Column::numbers("firmware", pairs.iter().map(|((node, _), memory)| claimed_ns(context, *node, *memory).map(Cell::number))),
    ]);
}

/// A matrix for each order; only of the primary order where there are many columns.
fn matrices(page: &mut Page, cells: &Cells<'_>, context: &Context<'_>, footnotes: &mut Footnotes<'_>) {
    let detailed = context.has_room(cells.columns.len());
    let rows = row_names(&cells.rows, |cpu| format!("CPU {cpu}"));
    let columns: Vec<_> = cells.columns.iter().map(|&memory| (memory, column_name(memory, detailed))).collect();
    for order in ORDERS {
        // A second matrix of many columns says nothing that the line on translation does not.
        if !cells.has(order) || (!detailed && order != cells.primary()) {
            continue;
        }
        let claim = |row: Row, memory| claimed_ns(context, row.0, memory).filter(|_| order == ChaseOrder::WindowLocal && detailed);
        let claimed = cells.rows.iter().any(|&row| cells.columns.iter().any(|&memory| claim(row, memory).is_some()));
        let claimed = if claimed { CLAIMED } else { "" };
        let meaning = if page.verbose { format!(": {}", order_meaning(order)) } else { String::new() };
        page.paragraph(Style::Plain, format!("{}{meaning}{claimed}", wording::chase_order(order)));
        matrix_table(page, "CPU ↓  memory →", &rows, &columns, |&row, &memory| {
            without_half(footnotes.claimed(cells.get(row, memory, order), claim(row, memory).unwrap_or_default()), detailed)
        });
    }
    if !detailed {
        page.paragraph(Style::Dim, widest_interval(cells.by_place.values(), cells.columns.len()).unwrap_or_default());
    }
}

/// Firmware's claim of the read latency.
fn claimed_ns(context: &Context<'_>, cpu_node: Option<u32>, memory: Option<MemoryPlace>) -> Option<String> {
    context.claim(cpu_node, memory)?.read_latency_ns.map(|ns| ns.to_string())
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("−{}", number(-value)) } else { format!("+{}", number(value)) }
}

/// Many CPUs, summed up by node of the CPU and of the memory. What is not reliable does not count.
fn by_node(page: &mut Page, cells: &Cells<'_>) {
    let mut groups: BTreeMap<(Option<u32>, Option<MemoryPlace>), Vec<f64>> = BTreeMap::new();
    for (row, memory) in cells.pairs() {
        let reliable = cells.get(row, memory, cells.primary()).filter(|m| m.is_reliable());
        groups.entry((row.0, memory)).or_default().extend(reliable.and_then(|m| value_of(&m.estimate)));
    }
    let mut columns = vec![
        Column::text("CPUs of", groups.keys().map(|(node, _)| wording::node(*node))),
        Column::text("memory", groups.keys().map(|(_, memory)| wording::place(*memory))),
        Column::numbers("CPUs", groups.values().map(|g| Cell::number(g.len().to_string()))),
    ];
    columns.extend(spread_columns(groups.values()));
    page.table(columns);
}

fn slowest(page: &mut Page, cells: &Cells<'_>) {
    let value = |(row, memory): (Row, Option<MemoryPlace>)| {
        let m = cells.get(row, memory, cells.primary())?;
        Some((value_of(&m.estimate)?, row.1?, m))
    };
    let mut all: Vec<(f64, u32, &Measurement)> = cells.pairs().into_iter().filter_map(value).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let list: Vec<String> = all.iter().take(8).map(|(v, cpu, m)| format!("CPU {cpu} {}", marked(m, *v))).collect();
    if !list.is_empty() {
        let more = match (cells.pairs().len() <= EXPLAINED_CPUS, page.verbose) {
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

/// What stands below the tables: distributions, the cost of translation, footnotes, the legend and the evidence.
fn finish(page: &mut Page, context: &mut Context<'_>, footnotes: Footnotes<'_>, cells: &Cells<'_>, ms: &[&Measurement]) {
    let pairs = cells.pairs();
    distributions(page, ms, "order", |m| {
        let order = wording::chase_order(m.at.order.unwrap_or(ChaseOrder::WindowLocal)).to_owned();
        let place = || Some(format!(", {} to {}", context.cpu_name(m.at.cpu?), wording::place(m.at.memory)));
        if pairs.len() > 1 { order + &place().unwrap_or_default() } else { order }
    });
    let costs: Vec<(f64, bool)> = pairs
        .iter()
        .filter_map(|(row, memory)| Some((cells.translation(*row, *memory)?, cells.translation_is_reliable(*row, *memory))))
        .collect();
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
    if pairs.len() == 1 && (cells.has(ChaseOrder::FullRandom) || cells.has(ChaseOrder::Sequential)) {
        page.items(Style::Detail, INDENT, legend(cells, ms));
    }
    let mut items = evidence(ms);
    let probes: IdSet = cells.rows.iter().filter_map(|r| r.1).collect();
    if pairs.len() > 1 && cells.rows.len() <= DETAILED_COLUMNS && cells.columns.len() > 1 && !probes.is_empty() {
        items.push(format!("from {}", wording::cpus(&probes)));
    }
    page.items(Style::Detail, INDENT, &items);
    page.items(Style::Dim, INDENT, memory_only(context.report, cells.columns.iter().copied()));
}

/// What the columns of a single pair mean.
fn legend(cells: &Cells<'_>, ms: &[&Measurement]) -> Vec<String> {
    let has = |order| cells.has(order);
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
