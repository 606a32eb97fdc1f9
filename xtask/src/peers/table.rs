//! The comparison as Markdown.

use std::fmt::Write;

use super::compare::{Series, ratio};
use super::row::{Measure, Row};

/// A tool's part in a row.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The tool.
    pub(super) tool: String,
    /// Which of its ways was the fastest.
    pub(super) way: String,
    /// Its command.
    pub(super) command: String,
    /// Its figures of undisturbed runs.
    pub(super) series: Series,
    /// Its best bursts in these runs, of memgauge only.
    pub(super) best: Series,
    /// Whether its figures are the best of their passes.
    pub(super) prints_best: bool,
    /// Runs left out because others used the machine.
    pub(super) disturbed: usize,
    /// The share of its memory in huge pages, when that was read; the median of the rounds.
    pub(super) huge: Option<f64>,
    /// Why rounds have no figure, each once.
    pub(super) failures: Vec<String>,
}

/// A row with figures: memgauge's, then the peers'.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) row: Row,
    pub(super) ours: Part,
    pub(super) peers: Vec<Part>,
}

/// Three digits that count.
fn figure(value: f64) -> String {
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

fn spread(series: &Series) -> String {
    series.spread().map_or_else(|| "—".to_owned(), |[low, median, high]| format!("{} ({}–{})", figure(median), figure(low), figure(high)))
}

/// All rows with ratios.
pub(super) fn ratios(outcomes: &[Outcome]) -> String {
    let mut text = String::from(
        "| what, size per CPU, CPUs | unit | memgauge: median (min–max) | kernel | peer | its way | its huge pages | peer: median (min–max) | memgauge : peer | IQR | 95 % | n | verdict |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for Outcome { row, ours, peers } in outcomes.iter().filter(|o| o.row.measure != Measure::HandOff) {
        for peer in peers {
            let huge = peer.huge.map_or_else(|| "—".to_owned(), |share| format!("{:.0} %", share * 100.0));
            // Like with like: the best pass with the best burst.
            let (ours_series, which) = if peer.prints_best { (&ours.best, " (best burst)") } else { (&ours.series, "") };
            let (ratio, quartiles, interval, n, verdict) = match ratio(ours_series, &peer.series) {
                Some(r) => (
                    format!("**{:.3}**", r.median),
                    format!("{:.3}–{:.3}", r.quartiles.0, r.quartiles.1),
                    r.interval.map_or_else(|| "—".to_owned(), |(low, high)| format!("{low:.3}–{high:.3}")),
                    r.n,
                    r.verdict(row.measure.is_time()),
                ),
                None => ("—".to_owned(), "—".to_owned(), "—".to_owned(), 0, "no figure"),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {huge} | {} | {ratio} | {quartiles} | {interval} | {n} | {verdict} |",
                row.name(),
                row.measure.unit(),
                spread(ours_series),
                format_args!("{}{which}", ours.way),
                peer.tool,
                peer.way,
                spread(&peer.series),
            );
        }
    }
    text
}

/// What is shown side by side only.
pub(super) fn hand_offs(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for Outcome { row, ours, peers } in outcomes.iter().filter(|o| o.row.measure == Measure::HandOff) {
        let _ = writeln!(text, "| {}: tool and protocol | ns: median (min–max) |\n| --- | --- |", row.name());
        for part in std::iter::once(ours).chain(peers) {
            let _ = writeln!(text, "| {}, {} | {} |", part.tool, part.way, spread(&part.series));
        }
    }
    text
}

/// Each row's commands.
pub(super) fn commands(outcomes: &[Outcome]) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for Outcome { ours, peers, .. } in outcomes {
        for part in std::iter::once(ours).chain(peers) {
            if !lines.contains(&part.command.as_str()) {
                lines.push(&part.command);
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Runs without a figure that counts.
pub(super) fn failures(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for Outcome { row, ours, peers } in outcomes {
        for part in std::iter::once(ours).chain(peers) {
            if part.disturbed > 0 {
                let _ = writeln!(text, "- {}, {}: {} left out, others used the machine meanwhile", part.tool, row.name(), part.disturbed);
            }
            for why in &part.failures {
                let _ = writeln!(text, "- {}, {}: {why}", part.tool, row.name());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::row::Pages;
    use memgauge_core::units::IdSet;

    fn part(tool: &str, values: &[f64]) -> Part {
        Part {
            tool: tool.to_owned(),
            way: "fast".to_owned(),
            command: format!("run {tool}"),
            series: Series(values.iter().map(|v| Some(*v)).collect()),
            best: Series(values.iter().map(|v| Some(v * 1.05)).collect()),
            prints_best: false,
            huge: Some(0.994),
            disturbed: 0,
            failures: Vec::new(),
        }
    }

    fn outcome(measure: Measure) -> Outcome {
        let row = Row { measure, bytes: 16 << 10, cpus: IdSet::one(0), pages: Pages::Huge };
        Outcome { row, ours: part("memgauge", &[220.0; 7]), peers: vec![part("mbw", &[200.0; 7]), part("other", &[9.0])] }
    }

    #[test]
    fn a_line_for_each_peer() {
        let text = ratios(&[outcome(Measure::Reads), outcome(Measure::HandOff)]);
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("| reads, 16 KiB, 1 CPU | GB/s | 220 (220–220) | fast | mbw | fast | 99 % | 200 (200–200) | **1.100** | 1.100–1.100 | 1.100–1.100 | 7 | ahead |"), "{text}");
        assert!(text.contains("| 24.444 |") || text.contains("| **24.444** | 24.444–24.444 | — | 1 | too few rounds |"), "{text}");
    }

    #[test]
    fn the_best_pass_is_compared_with_the_best_burst() {
        let mut outcome = outcome(Measure::Triad);
        outcome.peers[0].prints_best = true;
        let text = ratios(&[outcome]);
        assert!(text.contains("| 231 (231–231) | fast (best burst) | mbw | fast | 99 % | 200 (200–200) | **1.155** |"), "{text}");
        assert!(text.contains("| 220 (220–220) | fast | other |"), "{text}");
    }

    #[test]
    fn protocols_are_not_divided() {
        let text = hand_offs(&[outcome(Measure::Reads), outcome(Measure::HandOff)]);
        assert!(text.contains("| mbw, fast | 200 (200–200) |") && !text.contains("1.100"), "{text}");
    }

    #[test]
    fn commands_once_and_failures_with_their_row() {
        let mut bad = outcome(Measure::Reads);
        bad.peers[1].failures.push("not done after 60 s".to_owned());
        bad.ours.disturbed = 2;
        assert_eq!(commands(&[bad.clone(), outcome(Measure::Copy)]), "run memgauge\nrun mbw\nrun other\n");
        assert_eq!(
            failures(&[bad]),
            "- memgauge, reads, 16 KiB, 1 CPU: 2 left out, others used the machine meanwhile\n- other, reads, 16 KiB, 1 CPU: not done after 60 s\n"
        );
    }
}
