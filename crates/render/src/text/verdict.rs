//! The verdict of a health check.

use memgauge_model::note::Code;
use memgauge_model::result::{Compared, ComparedWith, Finding, FindingCode, Health, HealthStatus, LikelyCause, Report};
use memgauge_model::words::Ways;

use super::page::{Page, Style};
use crate::number::count;

/// A verdict's word.
pub(crate) const fn word(status: HealthStatus) -> (&'static str, Style) {
    match status {
        HealthStatus::Ok => ("NO FAULT FOUND", Style::Plain),
        HealthStatus::Unknown => ("NOT JUDGED", Style::Plain),
        HealthStatus::Warning => ("WARNING", Style::Warning),
        HealthStatus::CouldNotMeasure => ("COULD NOT MEASURE", Style::Warning),
        HealthStatus::Failure => ("FAILURE", Style::Error),
        HealthStatus::Incident => ("INCIDENT", Style::Error),
    }
}

/// The verdict in a sentence: `NO FAULT FOUND: as fast as in 7 earlier checks since 12 November`, `WARNING: slower than before: …`.
pub(super) fn sentence(report: &Report, health: &Health) -> String {
    let first = gravest(health).is_some_and(|finding| finding.code == FindingCode::FirstCheck);
    let word = if first { "FIRST CHECK" } else { word(health.status).0 };
    let why = match (gravest(health), health.status) {
        (Some(finding), _) => finding.message.clone(),
        (None, HealthStatus::Ok) => {
            let reasons: Vec<String> = health.compared.iter().filter_map(|compared| reason(report, compared)).collect();
            reasons.join("; ")
        }
        (None, _) => String::new(),
    };
    if why.is_empty() { word.to_owned() } else { format!("{word}: {why}") }
}

/// The finding that the verdict rests on; `None` for a good one.
fn gravest(health: &Health) -> Option<&Finding> {
    health.findings.iter().find(|finding| finding.severity > HealthStatus::Ok && finding.severity == health.status)
}

/// Findings besides the one that the verdict rests on.
pub(super) fn further(health: &Health) -> usize {
    health.findings.iter().filter(|finding| finding.severity > HealthStatus::Ok).count().saturating_sub(1)
}

/// Why a machine is good, by what its numbers were compared with.
fn reason(report: &Report, compared: &Compared) -> Option<String> {
    if compared.numbers == 0 {
        return None;
    }
    let since = || compared.since.as_deref().map(|utc| day(utc, &report.started.utc)).unwrap_or_default();
    let Code::Known(with) = compared.with else { return None };
    // Numbers that may be worse have not passed.
    let all = compared.numbers + compared.undecided;
    let part = if compared.undecided > 0 { format!("{} of {all} numbers", compared.numbers) } else { String::new() };
    let text = match with {
        ComparedWith::Siblings if part.is_empty() => "similar parts of the machine are alike".to_owned(),
        ComparedWith::Siblings => "alike in similar parts of the machine".to_owned(),
        ComparedWith::Limit => format!("at least {:.0} % of what its memory can transfer", 100.0 * (1.0 - compared.worst?)),
        ComparedWith::Baseline => match &compared.file {
            Some(file) => format!("as fast as in {file} of {}", since()),
            None => format!("as fast as on {}", since()),
        },
        ComparedWith::Rules => "within the rules".to_owned(),
        ComparedWith::Fleet => format!("as fast as {}", count(compared.count? as usize, "host like it", "hosts like it")),
        ComparedWith::Published => return None,
        ComparedWith::History => match compared.count? {
            1 => format!("as fast as in an earlier check of {}", since()),
            checks => format!("as fast as in {checks} earlier checks since {}", since()),
        },
    };
    Some(format!("{part} {text}").trim_start().to_owned())
}

/// How many numbers were compared with one thing: `compared with earlier checks: 6 of 8 numbers, at most 2.1 % slower; not compared: 2 unreliable`.
fn extent(compared: &Compared) -> String {
    let name = match &compared.with {
        Code::Known(ComparedWith::Siblings) => "similar parts",
        Code::Known(ComparedWith::Limit) => "the limit",
        Code::Known(ComparedWith::Baseline) => compared.file.as_deref().unwrap_or("the baseline"),
        Code::Known(ComparedWith::Rules) => "rules",
        Code::Known(ComparedWith::Fleet) => "the fleet",
        Code::Known(ComparedWith::History) => "earlier checks",
        Code::Known(ComparedWith::Published) => "published values",
        Code::Unknown(word) => word,
    };
    let all = compared.numbers + compared.unreliable + compared.undecided + compared.absent;
    let worst = compared.worst.map_or_else(String::new, |worst| match worst {
        worst if compared.with == ComparedWith::Limit => format!(", the lowest {:.0} % of it", 100.0 * (1.0 - worst)),
        worst if compared.with == ComparedWith::Published && worst <= 0.0 => ", within them or better".to_owned(),
        worst if worst.abs() < 0.000_5 => if compared.numbers > 1 { ", none slower" } else { ", as fast" }.to_owned(),
        worst if worst > 0.0 && compared.numbers > 1 => format!(", at most {:.1} % slower", 100.0 * worst),
        worst if worst > 0.0 => format!(", {:.1} % slower", 100.0 * worst),
        worst if compared.numbers > 1 => format!(", each at least {:.1} % faster", -100.0 * worst),
        worst => format!(", {:.1} % faster", -100.0 * worst),
    });
    let mut why = Vec::new();
    why.extend((compared.unreliable > 0).then(|| format!("{} unreliable", compared.unreliable)));
    why.extend(
        (compared.undecided > 0).then(|| format!("{} undecided (slower by 10 % or more, but within the scatter)", compared.undecided)),
    );
    why.extend((compared.absent > 0).then(|| format!("{} with nothing to compare with", compared.absent)));
    let left = if why.is_empty() { String::new() } else { format!("; not compared: {}", why.join(", ")) };
    format!("compared with {name}: {} of {all} numbers{worst}{left}", compared.numbers)
}

/// `25 November`, with the year where it is not that of `now`; both UTC, RFC 3339.
fn day(utc: &str, now: &str) -> String {
    const MONTHS: [&str; 12] =
        ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
    let parts = || {
        let (year, rest) = utc.split_once('-')?;
        let (month, rest) = rest.split_once('-')?;
        let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
        let day: u32 = rest.get(..2)?.parse().ok()?;
        let year = if now.starts_with(year) { String::new() } else { format!(" {year}") };
        Some(format!("{day} {month}{year}"))
    };
    parts().unwrap_or_else(|| utc.to_owned())
}

/// The verdict and what led to it.
pub(super) fn health(page: &mut Page, report: &Report, health: &Health) {
    page.gap();
    let gravest = gravest(health);
    page.remark(word(health.status).1, "", &sentence(report, health), gravest.and_then(|finding| finding.advice.as_ref()));
    causes(page, &health.causes);
    let others = health.findings.iter().filter(|finding| !gravest.is_some_and(|first| std::ptr::eq(*finding, first)));
    let others: Vec<&Finding> = others.collect();
    // The causes say what to look at, and most findings follow from them.
    let explained = !health.causes.is_empty() && !page.verbose;
    let shown = if explained { page.shown(others.len(), MOST_FINDINGS) } else { others.len() };
    let mut advised = gravest.and_then(|finding| finding.advice.as_ref());
    for finding in others.iter().take(shown) {
        // Once for findings of one kind.
        let advice = finding.advice.as_ref().filter(|advice| !explained && advised != Some(*advice));
        print_finding(page, finding, advice);
        advised = advice.or(advised);
    }
    page.and_more(others.len(), shown);
    for compared in &health.compared {
        page.remark(Style::Plain, "  · ", &extent(compared), None);
    }
    if health.measured_again > 0 {
        page.remark(Style::Plain, "  · ", &format!("measured again: {}", count(health.measured_again as usize, "number", "numbers")), None);
    }
}

/// So many findings beside the gravest are shown where causes explain them.
const MOST_FINDINGS: usize = 5;
/// So many causes are shown, and so much of the evidence for those behind the first.
const MOST_CAUSES: usize = 3;
const MOST_EVIDENCE: usize = 2;

/// The likely causes, with their evidence.
fn causes(page: &mut Page, causes: &[LikelyCause]) {
    if causes.is_empty() {
        return;
    }
    page.gap();
    page.heading("Likely causes", "the likeliest first; + speaks for it, - against it");
    let shown = page.shown(causes.len(), MOST_CAUSES);
    for (place, cause) in causes.iter().take(shown).enumerate() {
        page.text(Style::Plain, &format!("  {}. ", place + 1), "     ", &format!("{}: {}", cause.code.word(), cause.what));
        let most = if place == 0 { cause.evidence.len() } else { MOST_EVIDENCE };
        for evidence in cause.evidence.iter().take(page.shown(cause.evidence.len(), most)) {
            let sign = match evidence.points {
                0 => "     · ",
                points if points > 0 => "     + ",
                _ => "     - ",
            };
            page.text(Style::Plain, sign, "       ", &evidence.text);
        }
        if let Some(check) = &cause.check {
            page.text(Style::Plain, "     → ", "       ", &check.to_string());
        }
    }
    page.and_more(causes.len(), shown);
    page.gap();
}

fn print_finding(page: &mut Page, finding: &Finding, advice: Option<&Ways>) {
    let (sign, style) = match finding.severity {
        HealthStatus::Ok | HealthStatus::Unknown => ("  · ", Style::Plain),
        HealthStatus::Warning | HealthStatus::CouldNotMeasure => ("  ! ", Style::Warning),
        HealthStatus::Failure | HealthStatus::Incident => ("  ✗ ", Style::Error),
    };
    page.remark(style, sign, &format!("{}: {}", finding.code.word(), finding.message), advice);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_a_year_where_it_is_another_one() {
        assert_eq!(day("2026-11-05T03:00:00.000Z", "2026-11-29T14:00:00.000Z"), "5 November");
        assert_eq!(day("2025-12-31T03:00:00.000Z", "2026-11-29T14:00:00.000Z"), "31 December 2025");
        assert_eq!(day("2026-13-05", "2026"), "2026-13-05");
        assert_eq!(day("", ""), "");
    }
}
