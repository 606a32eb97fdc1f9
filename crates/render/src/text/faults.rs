//! Words that memory did not return as they were written, and what was compared.

use memgauge_analysis::conclusions::scan;
use memgauge_model::estimate::NotMeasured;
use memgauge_model::integrity::TestPattern;
use memgauge_model::plan::Work;
use memgauge_model::result::{Integrity, Measurement, Report, WrongWordKind};
use memgauge_model::units::Bytes;

use super::grid::Column;
use super::page::{Page, Style};
use crate::number::{count, human, number, percent, seconds};

/// Words that are listed. The result has more, and counts all.
const LISTED: usize = 20;

/// A hold time that is worth a word.
const SHORTEST_HELD_S: f64 = 0.05;

/// The first words that were wrong.
pub(super) fn faults(page: &mut Page, ms: &[&Measurement]) {
    let all: Vec<_> = ms.iter().flat_map(|m| m.evidence.integrity.iter().flat_map(move |i| &i.first).map(move |w| (*m, w))).collect();
    let listed = &all[..all.len().min(LISTED)];
    if listed.is_empty() {
        return;
    }
    page.table([
        Column::text("region", listed.iter().map(|(m, _)| m.at.region.map(|r| r.to_string())))
            .only_if(ms.iter().any(|m| m.at.region.is_some())),
        Column::text("offset", listed.iter().map(|(_, w)| format!("{:#x}", w.offset))),
        Column::text("physical address", listed.iter().map(|(_, w)| w.physical.map(|p| format!("{p:#x}")))),
        Column::text("virtual", listed.iter().map(|(_, w)| w.address.map(|a| format!("{a:#x}")))).optional(),
        Column::text("node", listed.iter().map(|(_, w)| w.node.map(|n| n.to_string()))).optional(),
        Column::text("pattern", listed.iter().map(|(_, w)| w.pattern.map(|p| p.name()))),
        Column::text("written", listed.iter().map(|(_, w)| format!("{:016x}", w.written))),
        Column::text("bits that differ", listed.iter().map(|(_, w)| format!("{:016x}", w.written ^ w.read))),
        Column::text("read again", listed.iter().map(|(_, w)| read_again(w.kind()))),
        Column::text("device", listed.iter().map(|(_, w)| (!w.devices.is_empty()).then(|| w.devices.join(" or ")))).optional(),
    ]);
    let wrong: u64 = ms.iter().filter_map(|m| m.evidence.integrity.as_ref()).map(|i| i.mismatches).fold(0, u64::saturating_add);
    let corrupted = ms.iter().filter(|m| scan::corrupted(m)).count();
    page.paragraph(
        Style::Error,
        format!(
            "{} wrong, over all comparisons, in {}; {} listed, each once",
            if wrong == 1 { "1 word was".to_owned() } else { format!("{wrong} words were") },
            count(corrupted, "result", "results"),
            count(listed.len(), "word is", "words are")
        ),
    );
}

/// The result of reading a wrong word again, in a few words.
const fn read_again(kind: WrongWordKind) -> &'static str {
    match kind {
        WrongWordKind::Reading => "right (soft)",
        WrongWordKind::Flipped => "wrong; right once rewritten (soft)",
        WrongWordKind::Stuck => "wrong, also once rewritten (hard)",
        WrongWordKind::Memory => "wrong",
    }
}

/// Says what was compared, when, and what could not be seen.
pub(super) fn compared(ms: &[&Measurement]) -> Option<String> {
    // A region with a hardware error was given up in the middle, which it says itself.
    let given_up = |m: &Measurement| m.estimate.not_measured.as_ref().is_some_and(NotMeasured::is_corruption);
    let ms: Vec<&Measurement> = ms.iter().copied().filter(|m| !given_up(m)).collect();
    let all: Vec<&Integrity> = ms.iter().filter_map(|m| m.evidence.integrity.as_ref()).collect();
    let patterns = all.iter().map(|i| i.patterns).min()?;
    let least = |value: fn(&Integrity) -> Option<f64>| all.iter().filter_map(|i| value(i)).min_by(f64::total_cmp);
    let wrong: u64 = all.iter().map(|i| i.mismatches).fold(0, u64::saturating_add);
    let bytes: u64 = all.iter().map(|i| i.compared.0).fold(0, u64::saturating_add);
    let regions = ms.iter().any(|m| m.at.region.is_some());
    let what = match all.len() == ms.len() {
        true if regions => count(all.len(), "region", "regions"),
        true => "all of the buffers".to_owned(),
        false => format!("{} of {}", all.len(), count(ms.len(), "region", "regions")),
    };
    let mut text = match wrong {
        0 => format!("{} written to {what} were read back as written", count(patterns as usize, "content", "contents")),
        _ => format!("{} written to {what} were not all read back as written", count(patterns as usize, "content", "contents")),
    };
    if let Some(planned) = all.iter().map(|i| i.patterns_planned).max().filter(|planned| *planned > patterns) {
        text += &format!(" (cut short: {planned} were planned)");
    }
    let mut tested: Vec<&str> = all.iter().min_by_key(|i| i.patterns)?.tested.iter().map(|p| p.name()).collect();
    tested.dedup();
    if !tested.is_empty() {
        text += &format!(": {}", tested.join(", "));
    }
    if bytes > 0 {
        text += &format!("; {} compared", human(Bytes(bytes)));
    }
    // Less is the time between two sweeps, and not between writing a word and comparing it.
    if let Some(held) = least(|i| i.held_s).filter(|held| *held >= SHORTEST_HELD_S) {
        text += &format!(", each word at least {} after it was written", seconds(held));
    }
    if let Some(watched) = least(|i| i.watched) {
        text += &format!("; a bit that flips once is found in {} % of the check's time", number(watched * 100.0));
    }
    if all.iter().any(|i| i.past_caches == Some(false)) {
        text += "; programs cannot flush this CPU's caches, so small buffers were compared in the cache";
    }
    Some(text)
}

/// `NO ERRORS in 6.0 of 23.5 GiB (26 %), pattern random`: the answer of a scan that compares contents; `None` of every other run.
pub(super) fn integrity(report: &Report) -> Option<String> {
    let regions: Vec<&Measurement> = report.results.iter().filter(|m| m.at.region.is_some()).collect();
    let checks: Vec<(&Measurement, &Integrity)> = regions.iter().filter_map(|m| Some((*m, m.evidence.integrity.as_ref()?))).collect();
    let mut planned = report.plan.iter().flat_map(|p| &p.steps).flat_map(|s| &s.cells);
    let asked = planned.any(|cell| matches!(&cell.work, Work::Scan(scan) if scan.integrity));
    if checks.is_empty() {
        return asked.then(|| "NOTHING CHECKED: no region's contents were compared".to_owned());
    }
    let corrupted = regions.iter().filter(|m| scan::corrupted(m)).count();
    let found = if corrupted == 0 { "NO ERRORS".to_owned() } else { format!("ERRORS in {}", count(corrupted, "region", "regions")) };
    let checked = Bytes(checks.iter().map(|(m, _)| m.evidence.buffer.0).sum());
    let all = report.machine.topology.nodes.iter().map(|node| node.memory.map(|memory| memory.0)).sum::<Option<u64>>();
    let share = match all.filter(|all| *all > 0) {
        Some(all) => format!("{} of {} ({})", human(checked), human(Bytes(all)), percent(checked.0 as f64 / all as f64)),
        None => human(checked).to_string(),
    };
    // All regions were compared in full with these contents.
    let tested: Vec<&str> = TestPattern::ALL
        .iter()
        .filter(|(_, pattern)| checks.iter().all(|(_, check)| check.tested.contains(pattern)))
        .map(|(name, _)| *name)
        .collect();
    let patterns = match tested.as_slice() {
        [] => "no pattern compared in full".to_owned(),
        [one] => format!("pattern {one}"),
        some => format!("patterns {}", some.join(", ")),
    };
    let left = TestPattern::ALL.len() - tested.len();
    let not =
        if left > 0 && !tested.is_empty() { format!("; {left} of {} patterns not tested", TestPattern::ALL.len()) } else { String::new() };
    Some(format!("{found} in {share}, {patterns}{not}"))
}

/// Prints the result of comparing checksums and contents, if that was asked for.
pub(super) fn checksums(page: &mut Page, ms: &[&Measurement]) {
    let checked: Vec<_> = ms.iter().filter_map(|m| m.evidence.checksums).collect();
    if checked.is_empty() {
        return;
    }
    let passes: u64 = checked.iter().map(|c| c.passes).sum();
    let wrong: u64 = checked.iter().map(|c| c.mismatches).sum();
    let style = if ms.iter().any(|m| scan::corrupted(m)) { Style::Error } else { Style::Dim };
    page.paragraph(style, format!("checksums compared: {passes} passes over buffers, {wrong} wrong"));
    compared(ms).into_iter().for_each(|text| page.paragraph(style, text));
    faults(page, ms);
}
