//! Whether huge pages help: latencies with base pages and with huge pages, or the part of a latency that is address translation.

use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, Metric};
use memgauge_model::result::PageKind;
use memgauge_model::units::Bytes;
use memgauge_model::words::{Command, Knob, Verb};

use super::document::{Action, Role, Topic, Why};
use super::evidence::{Found, Results, TopicAdvice, longer, why_not};

/// Buffers whose sizes differ by more than this factor need different numbers of translations.
const ALIKE_BUFFERS: f64 = 1.25;

/// Whether the pages are of this kind throughout.
pub(super) fn is_backed_by(found: &Found<'_>, huge: bool) -> bool {
    let pages = &found.m.evidence.pages;
    match pages.obtained {
        Some(PageKind::Base) => !huge,
        Some(PageKind::Thp | PageKind::Pool | PageKind::Large) => huge && pages.share.is_none_or(|share| share > 0.99),
        _ => false,
    }
}

/// Advises on huge pages.
pub(super) fn huge_pages(results: &Results<'_>) -> TopicAdvice {
    let mut advice = TopicAdvice::default();
    let all: Vec<Found<'_>> = results.measurements(&[Experiment::IdleLatency, Experiment::IdleLatencyPerCpu], Metric::Latency).collect();
    // Over the whole buffer every page is as likely as every other, so it shows most.
    let compared = [ChaseOrder::FullRandom, ChaseOrder::WindowLocal].into_iter().any(|order| compare(&all, order, &mut advice));
    if !compared {
        translation(&all, &mut advice);
    }
    advice
}

/// Compares base pages with huge pages at the same coordinates. Whether there was anything to compare.
fn compare(all: &[Found<'_>], order: ChaseOrder, advice: &mut TopicAdvice) -> bool {
    let of_order = || all.iter().filter(|f| f.m.at.order == Some(order));
    let (mut usable, mut unusable) = (Vec::new(), Vec::new());
    for base in of_order().filter(|f| is_backed_by(f, false)) {
        let alike = |f: &&Found<'_>| {
            let ratio = f.m.evidence.buffer.0 as f64 / base.m.evidence.buffer.0.max(1) as f64;
            is_backed_by(f, true) && f.m.at == base.m.at && (1.0 / ALIKE_BUFFERS..=ALIKE_BUFFERS).contains(&ratio)
        };
        for huge in of_order().filter(alike) {
            if base.is_usable() && huge.is_usable() {
                usable.push((*base, *huge));
            } else {
                for found in [base, huge].into_iter().filter(|f| !f.is_usable()) {
                    if !unusable.iter().any(|known: &Found<'_>| std::ptr::eq(known.m, found.m)) {
                        unusable.push(*found);
                    }
                }
            }
        }
    }
    // The nearest memory of the first CPU comes first in every result.
    let Some((base, huge, latency)) = usable.iter().find_map(|(base, huge)| Some((*base, *huge, huge.over(base)?))) else {
        if !unusable.is_empty() {
            advice.add_gap(
                Topic::HugePages,
                why_not(&unusable),
                &unusable,
                Some(Command::new(Verb::Latency).set(Knob::Pages, "4k").to("base.json")),
            );
        }
        return !unusable.is_empty();
    };
    match latency.effect() {
        Some(effect) => {
            let action = Action::UseHugePages { order, latency, effect };
            advice.recommend(Topic::HugePages, action, &[(Role::BasePages, base), (Role::HugePages, huge)], Vec::new());
        }
        None => {
            advice.add_gap(Topic::HugePages, Why::Open, &[base, huge], Some(longer(Command::new(Verb::Latency)).to("latency.json")));
        }
    }
    true
}

/// Says how much of a latency is translation, and how to measure the other kind of pages.
fn translation(all: &[Found<'_>], advice: &mut TopicAdvice) {
    let local = |full: &Found<'_>| {
        let at = Coordinates { order: Some(ChaseOrder::WindowLocal), ..full.m.at.clone() };
        all.iter()
            .find(|f| std::ptr::eq(f.report, full.report) && f.m.at == at && f.m.experiment == full.m.experiment && f.is_usable())
            .copied()
    };
    let full = all.iter().filter(|f| f.m.at.order == Some(ChaseOrder::FullRandom) && f.is_usable());
    let pair = full.filter_map(|full| local(full).map(|local| (*full, local))).find(|(full, _)| full.m.evidence.pages.obtained.is_some());
    let measured = pair.map(|(full, _)| full).or_else(|| all.first().copied());
    if let Some((full, local)) = pair
        && let (Some(latency), Some(pages)) = (full.over(&local), full.m.evidence.pages.obtained)
        && let Some(effect) = latency.effect()
    {
        let page: Option<Bytes> = full.m.evidence.pages.page;
        let action = Action::ExpectFromLargerPages { pages, page, latency, effect };
        advice.recommend(Topic::HugePages, action, &[(Role::FullRandom, full), (Role::WindowLocal, local)], Vec::new());
    }
    let kind = measured.and_then(|f| f.m.evidence.pages.obtained);
    let why = kind.map_or(Why::NotMeasured, |pages| Why::OneKindOfPages { pages });
    let thp = measured.is_none_or(|f| f.report.machine.identity.system.is_linux());
    let (pages, file) = match kind {
        Some(PageKind::Base) if thp => ("thp", "huge.json"),
        Some(PageKind::Base) => ("2m", "huge.json"),
        _ => ("4k", "base.json"),
    };
    advice.add_gap(Topic::HugePages, why, &[], Some(Command::new(Verb::Latency).set(Knob::Pages, pages).to(file)));
}
