//! Results that no section is for.

use memgauge_core::result::Measurement;
use memgauge_core::wording;

use super::context::Context;
use super::evidence::evidence;
use super::footnotes::Footnotes;
use super::grid::{Cell, Column, grid};
use super::page::{INDENT, Page, Style};
use crate::number::unit;

/// A list of them, each with its coordinates and its unit.
pub(super) fn list(page: &mut Page, context: &mut Context<'_>, ms: &[&Measurement]) {
    let about = context.about("each with its unit");
    page.heading("Other results", &about);
    let mut footnotes = Footnotes::new(context.report, ms);
    let lines = grid(
        vec![
            Column::text("what").cells(ms.iter().map(|m| Cell::text(wording::coordinates(&m.at)))),
            Column::numbers("value").cells(ms.iter().map(|m| footnotes.cell(Some(m)))),
            Column::text("unit").cells(ms.iter().map(|m| Cell::text(unit(m.unit)))),
        ],
        page.width,
    );
    page.table(&lines);
    footnotes.print(page, &mut context.advised);
    page.items(Style::Dim, INDENT, &evidence(ms));
}
