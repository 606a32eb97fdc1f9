//! The verdict of a health check: one line, and one for each finding.

use memgauge_core::result::{Finding, Health, HealthStatus};

use super::page::{Page, Style};

/// The verdict and what led to it.
pub(super) fn health(page: &mut Page, health: &Health) {
    let (word, style) = match health.status {
        HealthStatus::Ok => ("OK", Style::Plain),
        HealthStatus::Unknown => ("MEASURED, NOT JUDGED", Style::Plain),
        HealthStatus::Warning => ("WARNING", Style::Warning),
        HealthStatus::CouldNotMeasure => ("COULD NOT MEASURE", Style::Warning),
        HealthStatus::Failure => ("FAILURE", Style::Error),
        HealthStatus::Incident => ("INCIDENT", Style::Error),
    };
    let mut line = format!("VERDICT: {word}");
    if !health.compared_with.is_empty() {
        line.push_str(&format!("; compared with {}", health.compared_with.join(", ")));
    }
    match health.measured_again {
        0 => {}
        1 => line.push_str("; one number was measured again"),
        n => line.push_str(&format!("; {n} numbers were measured again")),
    }
    page.gap();
    page.text(style, "", "  ", &line);
    for finding in &health.findings {
        print_finding(page, finding);
    }
}

fn print_finding(page: &mut Page, finding: &Finding) {
    let (sign, style) = match finding.severity {
        HealthStatus::Ok | HealthStatus::Unknown => ("  · ", Style::Plain),
        HealthStatus::Warning | HealthStatus::CouldNotMeasure => ("  ! ", Style::Warning),
        HealthStatus::Failure | HealthStatus::Incident => ("  ✗ ", Style::Error),
    };
    page.remark(style, sign, &format!("{}: {}", finding.code, finding.message), finding.advice.as_deref());
}
