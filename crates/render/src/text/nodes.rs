//! A matrix by node of the CPUs and place of the memory.

use memgauge_model::experiment::MemoryPlace;
use memgauge_model::wording;

use super::footnotes::Footnotes;
use super::grid::{column_name, matrix, without_half};
use super::page::{Page, Style};
use crate::groups::nodes::{NodeMatrix, Prober};

/// The matrix below a line that says what it is. `detailed`: there is room for intervals and for what firmware claims of each cell.
pub(super) fn node_table(
    page: &mut Page,
    footnotes: &mut Footnotes<'_>,
    (about, corner): (&str, &str),
    table: &NodeMatrix<'_>,
    detailed: bool,
    claim: impl Fn(&Prober<'_>, &Option<MemoryPlace>) -> Option<String>,
) {
    let claim = |from: &Prober<'_>, memory: &Option<MemoryPlace>| claim(from, memory).filter(|_| detailed);
    let claimed = table.rows.iter().any(|from| table.columns.iter().any(|memory| claim(from, memory).is_some()));
    page.paragraph(Style::Plain, format!("{about}{}", if claimed { "; in brackets: what firmware claims (HMAT)" } else { "" }));
    let several = |node| table.rows.iter().filter(|from| from.node == node).count() > 1;
    let row_name = |from: &Prober<'_>| match from.cpus_name() {
        Some(cpus) if from.node.is_none() => cpus,
        Some(cpus) if several(from.node) => format!("{}, {cpus}", wording::node(from.node)),
        _ => wording::node(from.node),
    };
    matrix(
        page,
        corner,
        table,
        row_name,
        |memory| column_name(*memory, detailed),
        |m, from, memory| without_half(footnotes.claimed(m, claim(from, memory).unwrap_or_default()), detailed),
    );
}
