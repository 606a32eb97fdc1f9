//! A whole report as text.

use memgauge_model::experiment_table::Shape;
use memgauge_model::result::{Incomplete, Measurement, Report};
use memgauge_model::wording::reasons;

use super::block::{Block, Part};
use super::context::Context;
use super::layout::lay_out;
use super::notes::Shown;
use super::page::{Page, Style};
use super::{
    bandwidth, blocks, c2c, counters, curve, evidence, faults, footnotes, headline, interleave, latency, loops, machine, notes, places,
    plan, prefetch, published, residency, scan, state, sweep, tiers, verdict, watch,
};
use crate::appearance::Appearance;
use crate::groups::{Section, corrupted_results, tables};
use crate::number::{count, measured, seconds};

/// Aligned tables for people: the machine or its prefetchers for a report without plan and results, as `info` and `prefetch status` make it,
/// and the results for every other report.
pub(crate) fn report_text(report: &Report, appearance: &Appearance) -> String {
    let text = |blocks: &[Block]| lay_out(blocks, appearance.width, appearance.colour);
    let mut page = Page::new(appearance.verbose);
    if let Some(lines) = loops::lines(report).filter(|_| report.program.is_none()) {
        if report.results.iter().any(|m| m.counters.is_some()) {
            counters::measurement_counters(&mut page, report);
            notes::notes(&mut page, report);
        }
        return lines + &text(page.blocks());
    }
    write(&mut page, report, machine::info);
    // Again where the first time may have left the screen.
    if let Some(said_at) =
        page.blocks().iter().position(|block| matches!(block, Block::Part(Part::Incomplete))).filter(|_| !report.complete)
    {
        let lines = |blocks: &[Block]| text(blocks).matches('\n').count();
        if lines(page.blocks()) - lines(&page.blocks()[..said_at]) >= SCREEN {
            incomplete(&mut page, report);
        }
    }
    text(page.blocks())
}

/// Writes the subject of a report: a program, the machine or its prefetchers, or results. `info` writes the machine.
fn write(page: &mut Page, report: &Report, info: fn(&mut Page, &Report)) {
    page.part(Part::Machine);
    if let Some(program) = &report.program {
        counters::program_counters(page, report, program);
    } else if let Some(seen) = &report.watch {
        watch::page(page, report, seen);
    } else if let Some(residency) = &report.residency {
        residency::page(page, report, residency);
    } else if report.plan.is_none() && report.is_empty() && report.complete {
        match &report.environment.prefetch {
            Some(state) => prefetch::status(page, report, state),
            None => match &report.state {
                Some(state) => state::status(page, report, state),
                None => info(page, report),
            },
        }
    } else {
        results(page, report);
    }
}

fn results(page: &mut Page, report: &Report) {
    let mut context = Context::new(report, page.verbose);
    machine::header(page, report);
    prefetch::line(page, report);
    page.part(Part::Incomplete);
    incomplete(page, report);
    // Tables of dashes hide what happened.
    if matches!(report.incomplete, Some(Incomplete::Signal { .. })) && report.measured() == 0 && !page.verbose {
        page.line(Style::Plain, "Nothing was measured until then.");
        page.part(Part::Incomplete);
        closing(page, report);
        return;
    }
    if let Some(health) = &report.health {
        page.part(Part::Verdict);
        verdict::health(page, report, health);
    } else if let Some(answer) = faults::integrity(report) {
        page.part(Part::Verdict);
        page.gap();
        page.text(if corrupted_results(report) > 0 { Style::Error } else { Style::Bold }, "", "  ", &answer);
    }
    let tables = tables(report);
    let has_headline = tables.len() > 1 || report.health.is_some();
    let summary = report.summary.as_ref().filter(|_| has_headline || !report.is_empty());
    if let Some(summary) = summary {
        page.part(Part::Headline);
        headline::headline(page, report, summary, has_headline);
        context.brief = has_headline && !page.verbose;
    }
    page.part(Part::Places);
    places::matrices(page, &mut context);
    if let Some(plan) = &report.plan {
        tiers::nodes(page, plan, &report.machine);
        tiers::link_table(page, report);
        tiers::loads(page, report);
    }
    for ((section, directory, access), ms) in tables {
        context.directory = directory.map(str::to_owned);
        // A health check says what it found; its tables are evidence.
        if context.brief && (report.health.is_some() || headline::says_all(section, &ms)) {
            continue;
        }
        page.part(Part::Table(section, directory.map(str::to_owned), access));
        table(page, &mut context, section, &ms);
    }
    page.part(Part::Matrices);
    c2c::matrices(page, report);
    if page.verbose {
        page.part(Part::Published);
        published::references(page, report);
        page.part(Part::State);
        report.state.iter().for_each(|state| state::details(page, state));
    }
    // A health check has said what is wrong.
    if !page.verbose && report.health.is_none() {
        footnotes::explain_marks(page, &mut context);
    }
    page.part(Part::Incomplete);
    if report.is_empty() {
        page.gap();
        page.line(Style::Warning, "Nothing was measured.");
    }
    page.part(Part::Counters);
    counters::measurement_counters(page, report);
    if page.verbose {
        page.part(Part::Notes);
        notes::notes(page, report);
        page.part(Part::Timing);
        timing(page, report);
    } else {
        let shown = if summary.is_some() { Shown::Planned } else { Shown::Warnings };
        notes::brief(page, report, shown);
        closing(page, report);
    }
}

/// The table of a section.
fn table(page: &mut Page, context: &mut Context<'_>, section: Section, ms: &[&Measurement]) {
    match section.shape() {
        Shape::Nodes if section.is_latency() => latency::matrix(page, context, ms),
        Shape::Nodes => bandwidth::matrix(page, context, ms),
        Shape::Cpus => latency::per_cpu(page, context, ms),
        Shape::Mixes => bandwidth::by_mix(page, context, ms),
        Shape::BestOfMixes => bandwidth::search(page, context, ms),
        Shape::CpuCounts => bandwidth::ramp(page, context, ms),
        Shape::Blocks => blocks::table(page, context, section, ms),
        Shape::Delays => curve::curves(page, context, ms),
        Shape::Weights => interleave::searches(page, context, ms),
        Shape::Pairs if section.by_node => c2c::by_node(page, context, ms),
        Shape::Pairs => c2c::representatives(page, context, ms),
        Shape::AllPairs => c2c::pairs(page, context, ms),
        Shape::Regions => scan::scans(page, context, ms),
        Shape::Prefetchers => prefetch::compare(page, context, ms),
        Shape::WorkingSets => sweep::tables(page, context, ms),
        Shape::Loop => loops::section(page, &context.report.machine.topology, ms),
    }
}

/// Blocks with all details.
fn blocks(write: impl FnOnce(&mut Page)) -> Vec<Block> {
    let mut page = Page::new(true);
    write(&mut page);
    page.into_blocks()
}

/// The whole report, but for what [`machine_blocks`] has.
pub(crate) fn report_blocks(report: &Report) -> Vec<Block> {
    blocks(|page| write(page, report, machine::brief_info))
}

/// The machine and its state, but for the header.
pub(crate) fn machine_blocks(report: &Report) -> Vec<Block> {
    blocks(|page| machine::details(page, report))
}

/// Why numbers are degraded or missing, and how many.
pub(crate) fn reliability_blocks(report: &Report) -> Vec<Block> {
    blocks(|page| footnotes::explain_marks(page, &mut Context::new(report, false)))
}

/// The lines of the headline by name.
pub(crate) fn headline_blocks(report: &Report) -> Vec<Block> {
    blocks(|page| report.summary.iter().for_each(|summary| headline::headline(page, report, summary, true)))
}

/// Lines of a small terminal.
const SCREEN: usize = 24;

/// How long the run took, and the parts of a long set-up.
fn timing(page: &mut Page, report: &Report) {
    page.gap();
    let t = report.timing;
    let planned = report.plan.as_ref().filter(|_| t.setup.is_some()).map_or(String::new(), |p| format!(" (planned {})", plan::duration(p)));
    let times = format!("measuring {} · set-up {} · total {}{planned}", seconds(t.measuring_s), seconds(t.setup_s), seconds(t.total_s));
    page.line(Style::Dim, &times);
    if let Some(s) = t.setup.filter(|_| t.setup_s > NOTABLE_SETUP * t.total_s) {
        let parts = [("buffers", s.buffers_s), ("chains", s.chains_s), ("warming up", s.warm_up_s), ("choosing kernels", s.trials_s)];
        let parts: Vec<String> = parts.iter().map(|(what, s)| format!("{what} {}", seconds(*s))).collect();
        page.line(Style::Dim, &format!("set-up: {}", parts.join(" · ")));
    }
}

/// Prints the evidence for the numbers in a line, and says where the rest is.
fn closing(page: &mut Page, report: &Report) {
    let all: Vec<&Measurement> = report.results.iter().collect();
    let ms = measured(&all);
    page.gap();
    let mut items = if ms.is_empty() { Vec::new() } else { vec![evidence::placement(&ms)] };
    items.push(format!("took {}", seconds(report.timing.total_s)));
    items.push("more: -v".to_owned());
    page.items(Style::Dim, "", items);
}

/// The parts of the set-up are listed when it takes more than this share of the time.
const NOTABLE_SETUP: f64 = 0.25;

/// Says that the run is incomplete, and why.
fn incomplete(page: &mut Page, report: &Report) {
    if report.complete {
        return;
    }
    let measured = report.measured();
    let reason = report.incomplete.as_ref().map_or_else(|| "the result does not say why".to_owned(), reasons::incomplete);
    page.gap();
    let only = if measured > 0 { format!("; {} measured until then", count(measured, "number", "numbers")) } else { String::new() };
    let text = format!("INCOMPLETE: {reason}{only}");
    page.text(Style::Error, "", "  ", &text);
}
