//! Idle latency: matrix of nodes, list of few pairs, list of CPUs.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_core::experiment::ChaseOrder;
use memgauge_core::result::Measurement;
use memgauge_core::stats::median;

use super::distribution::distributions;
use super::evidence::{evidence, pages, spread};
use super::grid::{Cell, Column, blocks, grid};
use super::marks::Marks;
use super::number::{bounds, human, number, percent, value_of};
use super::page::{INDENT, Page, Style};
use super::{Context, ids, memory_only, node_name};

/// A row (node and CPU of the probe) or a pair with its memory node.
type Row = (Option<u32>, Option<u32>);

/// Beyond this many columns a matrix shows values only, so that it stays readable.
pub(super) const DETAILED_COLUMNS: usize = 16;
/// Beyond this many CPUs a list is summed up by node.
const LISTED_CPUS: usize = 64;

struct Cells<'a> {
    by_place: BTreeMap<(Row, Option<u32>, ChaseOrder), &'a Measurement>,
    rows: Vec<Row>,
    columns: Vec<Option<u32>>,
}

impl<'a> Cells<'a> {
    fn new(ms: &[&'a Measurement]) -> Self {
        let mut by_place = BTreeMap::new();
        for m in ms {
            let place = ((m.at.cpu_node, m.at.cpu), m.at.memory_node, m.at.order.unwrap_or(ChaseOrder::WindowLocal));
            by_place.entry(place).or_insert(*m);
        }
        let rows: BTreeSet<Row> = by_place.keys().map(|k| k.0).collect();
        let columns: BTreeSet<Option<u32>> = by_place.keys().map(|k| k.1).collect();
        Self { by_place, rows: rows.into_iter().collect(), columns: columns.into_iter().collect() }
    }
    fn get(&self, row: Row, column: Option<u32>, order: ChaseOrder) -> Option<&'a Measurement> {
        self.by_place.get(&(row, column, order)).copied()
    }
    fn value(&self, row: Row, column: Option<u32>, order: ChaseOrder) -> Option<f64> {
        self.get(row, column, order).and_then(|m| value_of(&m.estimate))
    }
    fn has(&self, order: ChaseOrder) -> bool {
        self.by_place.keys().any(|k| k.2 == order)
    }
    /// The order that stands for a cell where there is place for one.
    fn primary(&self) -> ChaseOrder {
        ORDERS.into_iter().find(|&order| self.has(order)).unwrap_or(ChaseOrder::WindowLocal)
    }
    /// Cost of address translation: full-random less window-local.
    fn translation(&self, row: Row, column: Option<u32>) -> Option<f64> {
        Some(self.value(row, column, ChaseOrder::FullRandom)? - self.value(row, column, ChaseOrder::WindowLocal)?)
    }
    fn pairs(&self) -> Vec<(Row, Option<u32>)> {
        let all: BTreeSet<_> = self.by_place.keys().map(|k| (k.0, k.1)).collect();
        all.into_iter().collect()
    }
}

const ABOUT: &str = "ns per dependent load";
const ORDERS: [ChaseOrder; 3] = [ChaseOrder::WindowLocal, ChaseOrder::FullRandom, ChaseOrder::Sequential];

/// By node of the CPU and node of the memory.
pub(super) fn matrix(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let cells = Cells::new(ms);
    let about = context.about(ABOUT);
    page.heading(&context.title(ms, "Idle latency"), &about);
    let mut marks = Marks::new(context.report, ms);
    if cells.columns.len() == 1 || cells.pairs().len() <= 2 {
        let lines = list(&cells, context, &mut marks, page.width);
        page.table(&lines);
    } else {
        matrices(page, &cells, context, &mut marks);
    }
    finish(page, context, marks, &cells, ms);
}

/// By CPU.
pub(super) fn per_cpu(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let cells = Cells::new(ms);
    let about = context.about(ABOUT);
    page.heading(&context.title(ms, "Idle latency by CPU"), &about);
    let mut marks = Marks::new(context.report, ms);
    let lines = if cells.pairs().len() <= LISTED_CPUS {
        list(&cells, context, &mut marks, page.width)
    } else {
        by_node(&cells, context, page.width)
    };
    page.table(&lines);
    if cells.pairs().len() > LISTED_CPUS {
        slowest(page, &cells);
    }
    finish(page, context, marks, &cells, ms);
}

/// One line a pair of CPU and node.
fn list(cells: &Cells<'_>, context: &Context<'_>, marks: &mut Marks<'_>, width: usize) -> Vec<String> {
    let pairs = cells.pairs();
    let kind = |cpu: Option<u32>| context.report.machine.topology.cpu(cpu?).and_then(|c| c.kind.clone());
    let show_kind = pairs.iter().any(|((_, cpu), _)| kind(*cpu).is_some());
    let mut columns = vec![
        Column::words("CPU")
            .with(pairs.iter().map(|((node, cpu), _)| Cell::text(cpu.map_or_else(|| node_name(*node), |cpu| context.cpu_name(cpu))))),
        Column::words("memory").with(pairs.iter().map(|(_, memory)| Cell::text(context.memory_name(*memory)))),
    ];
    if show_kind {
        let kinds = pairs.iter().map(|((_, cpu), _)| Cell::text(kind(*cpu).unwrap_or_default()));
        columns.insert(1, Column::words("core").with(kinds));
    }
    let mut values = |order| -> Vec<Cell> { pairs.iter().map(|(row, memory)| marks.cell(cells.get(*row, *memory, order))).collect() };
    columns.push(Column::numbers("window-local").with(values(ChaseOrder::WindowLocal)));
    columns.push(Column::numbers("full-random").with(values(ChaseOrder::FullRandom)));
    columns.push(Column::numbers("sequential").optional().with(values(ChaseOrder::Sequential)));
    let translation = pairs.iter().map(|(row, memory)| cells.translation(*row, *memory).map_or(Cell::Blank, |t| Cell::number(signed(t))));
    columns.push(Column::numbers("translation").with(translation));
    let claims = pairs.iter().map(|((node, _), memory)| context.claimed_ns(*node, *memory).map_or(Cell::Blank, Cell::number));
    columns.push(Column::numbers("firmware").with(claims));
    grid(columns, width)
}

fn matrices(page: &mut Page, cells: &Cells<'_>, context: &Context<'_>, marks: &mut Marks<'_>) {
    let detailed = cells.columns.len() <= DETAILED_COLUMNS;
    for order in ORDERS {
        // A second matrix of many columns says nothing that the line on translation does not.
        if !cells.has(order) || (!detailed && order != cells.primary()) {
            continue;
        }
        let mut claimed = false;
        let columns: Vec<Column> = cells
            .columns
            .iter()
            .map(|&memory| {
                let values: Vec<Cell> = cells
                    .rows
                    .iter()
                    .map(|&row| {
                        let claim = (order == ChaseOrder::WindowLocal && detailed).then(|| context.claimed_ns(row.0, memory)).flatten();
                        claimed |= claim.is_some();
                        without_half(marks.claimed(cells.get(row, memory, order), claim.unwrap_or_default()), detailed)
                    })
                    .collect();
                Column::numbers(column_name(context, memory, detailed)).with(values)
            })
            .collect();
        let mut about = match order {
            ChaseOrder::WindowLocal => "window-local: random within a window, translation mostly hidden".to_owned(),
            ChaseOrder::FullRandom => "full-random: random over the whole buffer, translation included".to_owned(),
            ChaseOrder::Sequential => "sequential: what prefetchers make of it".to_owned(),
        };
        if claimed {
            about.push_str("; in brackets: what firmware claims (HMAT)");
        }
        page.text(Style::Plain, INDENT, INDENT, &about);
        for block in blocks(&row_names(&cells.rows), &columns, page.width) {
            page.table(&block);
        }
    }
    if !detailed {
        let halves = cells.by_place.values().filter_map(|m| {
            let e = &m.estimate;
            Some((e.ci95_high? - e.ci95_low?) / 2.0 / value_of(e)?)
        });
        if let Some((_, widest)) = bounds(halves) {
            page.text(
                Style::Dim,
                INDENT,
                INDENT,
                &format!("every interval is within ±{:.1} %; each is in the JSON result", widest * 100.0),
            );
        }
    }
}

/// The first column of a matrix: nodes, with the CPU where a node has several rows.
fn row_names(rows: &[Row]) -> Column {
    let several = |node: Option<u32>| rows.iter().filter(|r| r.0 == node).count() > 1 || node.is_none();
    Column::words("CPU ↓  memory →").with(rows.iter().map(|&(node, cpu)| {
        Cell::text(match cpu {
            Some(cpu) if node.is_none() => format!("CPU {cpu}"),
            Some(cpu) if several(node) => format!("{}, CPU {cpu}", node_name(node)),
            _ => node_name(node),
        })
    }))
}

/// The head of a matrix's column: only the node's number where there are many.
pub(super) fn column_name(context: &Context<'_>, memory: Option<u32>, detailed: bool) -> String {
    match memory {
        Some(node) if !detailed => node.to_string(),
        _ => context.memory_name(memory),
    }
}

/// Drops the interval from a cell of a matrix that is too wide for it.
pub(super) fn without_half(cell: Cell, detailed: bool) -> Cell {
    match cell {
        Cell::Value { number, claim, marks, .. } if !detailed => Cell::Value { number, half: String::new(), claim, marks },
        other => other,
    }
}

fn signed(value: f64) -> String {
    if value < 0.0 { format!("−{}", number(-value)) } else { format!("+{}", number(value)) }
}

/// Many CPUs, summed up by node of the CPU and of the memory.
fn by_node(cells: &Cells<'_>, context: &Context<'_>, width: usize) -> Vec<String> {
    let mut groups: BTreeMap<(Option<u32>, Option<u32>), Vec<f64>> = BTreeMap::new();
    for (row, memory) in cells.pairs() {
        let group = groups.entry((row.0, memory)).or_default();
        group.extend(cells.value(row, memory, cells.primary()));
    }
    let number_of = |v: Option<f64>| v.map_or(Cell::Blank, |v| Cell::number(number(v)));
    grid(
        vec![
            Column::words("CPUs of").with(groups.keys().map(|(node, _)| Cell::text(node_name(*node)))),
            Column::words("memory").with(groups.keys().map(|(_, memory)| Cell::text(context.memory_name(*memory)))),
            Column::numbers("CPUs").with(groups.values().map(|g| Cell::number(g.len().to_string()))),
            Column::numbers("fastest").with(groups.values().map(|g| number_of(bounds(g.iter().copied()).map(|b| b.0)))),
            Column::numbers("median").with(groups.values().map(|g| number_of(median(g)))),
            Column::numbers("slowest").with(groups.values().map(|g| number_of(bounds(g.iter().copied()).map(|b| b.1)))),
        ],
        width,
    )
}

fn slowest(page: &mut Page, cells: &Cells<'_>) {
    let mut all: Vec<(f64, u32)> =
        cells.pairs().into_iter().filter_map(|(row, memory)| Some((cells.value(row, memory, cells.primary())?, row.1?))).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let list: Vec<String> = all.iter().take(8).map(|(v, cpu)| format!("CPU {cpu} {}", number(*v))).collect();
    if !list.is_empty() {
        page.text(Style::Plain, INDENT, INDENT, &format!("slowest: {} (ns); every CPU is in the JSON result", list.join(", ")));
    }
}

/// The order as the command line and the result call it.
pub(crate) fn order_name(order: ChaseOrder) -> &'static str {
    match order {
        ChaseOrder::WindowLocal => "window-local",
        ChaseOrder::FullRandom => "full-random",
        ChaseOrder::Sequential => "sequential",
    }
}

/// `19 % of full-random`.
fn share(ms: &[&Measurement]) -> Option<String> {
    let m = ms.iter().find(|m| m.evidence.translation_ns.is_some())?;
    if m.evidence.translation_ns == Some(0.0) {
        return Some("which the intervals do not tell from none".into());
    }
    Some(format!("{} of full-random", percent(m.evidence.translation_ns? / value_of(&m.estimate).filter(|v| *v > 0.0)?)))
}

fn finish(page: &mut Page, context: &mut Context<'_>, marks: Marks<'_>, cells: &Cells<'_>, ms: &[&Measurement]) {
    let pairs = cells.pairs();
    distributions(page, ms, "order", |m| {
        let order = order_name(m.at.order.unwrap_or(ChaseOrder::WindowLocal)).to_owned();
        let place = || Some(format!(", {} to {}", context.cpu_name(m.at.cpu?), context.memory_name(m.at.memory_node)));
        if pairs.len() > 1 { order + &place().unwrap_or_default() } else { order }
    });
    let costs: Vec<f64> = pairs.iter().filter_map(|(row, memory)| cells.translation(*row, *memory)).collect();
    if pairs.len() > 1
        && let Some(cost) = spread(costs, "ns")
    {
        page.text(Style::Plain, INDENT, INDENT, &format!("translation costs {cost} (full-random less window-local) on {}", pages(ms)));
    }
    marks.print(page, &mut context.advised);
    if pairs.len() == 1 && (cells.has(ChaseOrder::FullRandom) || cells.has(ChaseOrder::Sequential)) {
        let local = ms.iter().find(|m| m.at.order.is_none_or(|o| o == ChaseOrder::WindowLocal));
        let window = local.and_then(|m| m.evidence.window).map_or("a window".to_owned(), human);
        let both = cells.has(ChaseOrder::WindowLocal) && cells.has(ChaseOrder::FullRandom);
        let legend = [
            (cells.has(ChaseOrder::WindowLocal), format!("window-local: random within {window}, translation mostly hidden")),
            (cells.has(ChaseOrder::FullRandom), "full-random: over the whole buffer".to_owned()),
            (
                both,
                match share(ms) {
                    Some(share) => format!("translation: their difference, {share} on {}", pages(ms)),
                    None => "translation: their difference".to_owned(),
                },
            ),
            (cells.has(ChaseOrder::Sequential), "sequential: ascending, what prefetchers make of it".to_owned()),
        ];
        let legend: Vec<String> = legend.into_iter().filter(|(shown, _)| *shown).map(|(_, text)| text).collect();
        page.items(Style::Dim, INDENT, &legend);
    }
    let mut items = evidence(ms);
    let probes: BTreeSet<u32> = cells.rows.iter().filter_map(|r| r.1).collect();
    if pairs.len() > 1 && cells.rows.len() <= DETAILED_COLUMNS && cells.columns.len() > 1 && !probes.is_empty() {
        let list = ids(probes);
        items.push(format!("from {} {list}", if list.len() == 1 { "CPU" } else { "CPUs" }));
    }
    items.extend(memory_only(context.report, cells.columns.iter().copied().flatten()));
    page.items(Style::Dim, INDENT, &items);
}
