//! Messages of the planner and the engine in the drop-in's words: its letters in place of memgauge's long options.

use std::collections::BTreeMap;
use std::fmt::Display;

use memgauge_core::result::{Measurement, QualityLevel, QualityReason};

use super::letters::Mode;
use super::text::spell;
use crate::console::Program;

/// Writes a line to standard error.
pub(super) fn message(text: impl Display) {
    Program::MLC.message(text);
}

/// The same for text that may name memgauge's options.
pub(super) fn translated(mode: Mode, text: impl Display) {
    message(in_letters(mode, &text.to_string()));
}

/// Phrases around options whose letters mean the opposite or need other words.
const PHRASES: [(&str, &str); 7] = [
    ("measured only where --cpu names them or", "measured only where a letter names them or"),
    ("use --pages auto", "leave out -L and -h"),
    ("leave --pages out", "leave out -L and -h"),
    ("--memory-dir ", "-J "),
    ("to --cpu", "with --cpu"),
    ("choose one with --node", "choose another node"),
    ("'memgauge bandwidth --matrix'", "--bandwidth_matrix"),
];

/// The letter that stands for an option of memgauge in a mode, where there is one.
fn letter(option: &str, mode: Mode) -> Option<&'static str> {
    use Mode as M;
    Some(match option {
        "--size" if mode != M::Scan => "-b",
        "--cpu" => match mode {
            M::Idle => "-c",
            M::Peak | M::Max | M::Loaded => "-k",
            M::C2c => "-c and -w",
            M::Scan => "-n and -t",
            M::Full | M::LatencyMatrix | M::BandwidthMatrix => return None,
        },
        "--node" | "--probe-node" if matches!(mode, M::Idle | M::Loaded | M::Scan) => "-j",
        "--memory-dir" if mode == M::Idle => "-J",
        "--memory-dir" => "-o",
        "--touch-cpu" => "-i",
        "--keep-awake" => "-p",
        "--window" => {
            if mode == M::C2c {
                "-C"
            } else {
                "-D"
            }
        }
        "--reader" => "-c",
        "--holder" => "-w",
        "--sharer" => "-S",
        "--shared" => "-u",
        "--delay" => "-d",
        "--hops" => "-x",
        "--time" | "--budget" if mode != M::Scan => "-t",
        "--passes" => "-q",
        "--order" => "-r",
        "--stride" => "-l",
        "--verbose" => "-v",
        _ => return None,
    })
}

/// The text with letters for options. What only an option without a letter could do is left out: the alternative (`…, or …`) that names it,
/// or the whole clause after a semicolon.
pub(super) fn in_letters(mode: Mode, text: &str) -> String {
    let text = PHRASES.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours));
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let bare = word.trim_start_matches(['(', '\'']).trim_end_matches([')', '\'', ',', ';', ':', '.']);
        words.push(letter(bare, mode).map_or_else(|| word.to_owned(), |letter| word.replace(bare, letter)));
    }
    let text = words.join(" ");
    let kept: Vec<String> = text.split("; ").filter_map(without_options).collect();
    // Where nothing is left, the name of the thing stays.
    if kept.is_empty() { text.replace(" --", " ").trim_start_matches("--").to_owned() } else { kept.join("; ") }
}

/// A clause without the alternatives that name an option of memgauge; `None` if nothing is left.
fn without_options(clause: &str) -> Option<String> {
    let names_option = |text: &str| text.split([' ', '(', '\'']).any(|word| word.starts_with("--") && !word.contains('_'));
    if !names_option(clause) {
        return Some(clause.to_owned());
    }
    let alternatives: Vec<&str> = clause.split(" or ").filter(|part| !names_option(part)).map(|part| part.trim_end_matches(',')).collect();
    (!alternatives.is_empty()).then(|| alternatives.join(" or "))
}

/// Results that are not good, by level and reason.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    results: usize,
    levels: BTreeMap<QualityLevel, usize>,
    reasons: BTreeMap<(QualityLevel, QualityReason), usize>,
    /// The largest share of a result's time that is in no number, because threads were off their CPUs then.
    left_out: f64,
}

/// The smallest share of time left out that is reported: a tenth changes the comparison with results that count bytes by the time that passed.
const TOLD_LEFT_OUT: f64 = 0.1;

impl Doubts {
    /// Adds the results of a section.
    pub(super) fn add<'a>(&mut self, results: impl Iterator<Item = &'a Measurement>) {
        for m in results.filter(|m| m.estimate.value.is_some()) {
            self.results += 1;
            self.left_out = self.left_out.max(m.evidence.noise.left_out.unwrap_or(0.0));
            *self.levels.entry(m.quality.level).or_default() += 1;
            let unreliable = m.quality.level == QualityLevel::Unreliable;
            // A degraded result counts only with reasons that may have moved the number itself. Time left out has its own line.
            let told = |reason: &&QualityReason| (unreliable || reason.is_of_others()) && **reason != QualityReason::TimeLeftOut;
            for reason in m.quality.reasons.iter().filter(told) {
                *self.reasons.entry((m.quality.level, *reason)).or_default() += 1;
            }
        }
    }

    /// A line for each reason, the gravest first, and one for time that is left out.
    pub(super) fn lines(&self) -> Vec<String> {
        let left_out = (self.left_out >= TOLD_LEFT_OUT).then(|| {
            format!(
                "warning: threads were off their CPUs for up to {:.0} % of the time of a result; numbers are those of the rest of the time",
                100.0 * self.left_out
            )
        });
        self.reasons_in_words().into_iter().chain(left_out).collect()
    }

    fn reasons_in_words(&self) -> Vec<String> {
        let results_are =
            |n: usize| if self.results == 1 { "the result is".to_owned() } else { format!("{n} of {} results are", self.results) };
        let line = |((level, reason), n): (&(QualityLevel, QualityReason), &usize)| {
            let why = match reason {
                QualityReason::Steal => "the hypervisor gave CPU time to others".to_owned(),
                QualityReason::BusyMachine => "other processes used the CPUs measured".to_owned(),
                QualityReason::InvoluntarySwitches => "measuring threads were taken off their CPUs".to_owned(),
                QualityReason::Coverage => "the threads did not run together all the time".to_owned(),
                QualityReason::NotConverged => "repeated samples scatter".to_owned(),
                QualityReason::BurstsDisturbed => "most of the time was disturbed".to_owned(),
                QualityReason::KernelChosenBusy => "the loop was chosen while others used the CPUs".to_owned(),
                QualityReason::BusyNeighbours => "other processes used CPUs that share memory or caches with those measured".to_owned(),
                QualityReason::Stalled => "memory did not answer for moments".to_owned(),
                other => spell(other).replace('-', " "),
            };
            format!("warning: {} {}: {why}; -v says which", results_are(*n), spell(level))
        };
        let unreliable = self.levels.get(&QualityLevel::Unreliable).copied().unwrap_or(0);
        if unreliable > 0 && self.reasons.keys().all(|(level, _)| *level != QualityLevel::Unreliable) {
            return vec![format!("warning: {} unreliable; -v says which", results_are(unreliable))];
        }
        self.reasons.iter().rev().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use memgauge_core::result::Report;

    use super::super::letters::MODES;
    use super::*;

    #[test]
    fn what_is_not_reliable_is_told_once_for_each_reason() {
        let mut report: Report = serde_json::from_str(include_str!("../../tests/results/two-nodes.json")).unwrap();
        let lines = |report: &Report| {
            let mut doubts = Doubts::default();
            doubts.add(report.measurements());
            doubts.lines()
        };
        report.results.iter_mut().for_each(|m| m.quality.level = QualityLevel::Good);
        assert_eq!(lines(&report), Vec::<String>::new());
        let all = report.measurements().filter(|m| m.estimate.value.is_some()).count();
        for m in report.results.iter_mut().take(3) {
            m.quality.level = QualityLevel::Unreliable;
            m.quality.reasons = vec![QualityReason::Steal, QualityReason::BurstsDisturbed];
        }
        let told = lines(&report);
        assert_eq!(told.len(), 2, "{told:?}");
        let unreliable = format!("warning: 3 of {all} results are unreliable: ");
        assert!(told[1].starts_with(&(unreliable + "the hypervisor")), "{told:?}");
        // A degraded number is reported if others may have moved it.
        let m = report.results.iter_mut().skip(3).find(|m| m.estimate.value.is_some()).unwrap();
        m.quality.level = QualityLevel::Degraded;
        m.quality.reasons = vec![QualityReason::NotConverged, QualityReason::BusyNeighbours];
        let told = lines(&report);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[2].starts_with(&format!("warning: 1 of {all} results are degraded: other processes")), "{told:?}");
        report.results[1].evidence.noise.left_out = Some(0.876);
        report.results[1].quality.reasons.push(QualityReason::TimeLeftOut);
        let told = lines(&report);
        assert!(told.len() == 4 && told[3].contains("off their CPUs for up to 88 % of the time"), "{told:?}");
    }

    #[test]
    fn letters_stand_for_options() {
        for (mode, theirs, ours) in [
            (Mode::Idle, "more than there is; give a smaller --size", "more than there is; give a smaller -b"),
            (Mode::Peak, "allow one (taskset, cpuset) or name two with --cpu", "allow one (taskset, cpuset) or name two with -k"),
            (Mode::Idle, "reserve pages as root: echo 3; or use --pages auto", "reserve pages as root: echo 3; or leave out -L and -h"),
            (Mode::C2c, "--sharer: there is no CPU 9; online are 0-1", "-S: there is no CPU 9; online are 0-1"),
            (Mode::Idle, "--keep-awake: there is no CPU 9", "-p: there is no CPU 9"),
            (Mode::Full, "no limit is known; give it with --limit GB/s", "no limit is known"),
            (
                Mode::Scan,
                "no room; free some there, raise the limit, or give a smaller --region",
                "no room; free some there, raise the limit",
            ),
            (Mode::Idle, "see -b, or --bandwidth_matrix", "see -b, or --bandwidth_matrix"),
        ] {
            assert_eq!(in_letters(mode, theirs), ours);
        }
    }

    /// String literals of a file that have a long option of memgauge's.
    fn literals(text: &str) -> Vec<&str> {
        let odd = text.split('"').enumerate().filter(|(i, _)| i % 2 == 1);
        odd.map(|(_, literal)| literal).filter(|l| l.contains(" --") || l.starts_with("--")).collect()
    }

    fn sources(path: &Path, found: &mut Vec<String>) {
        if path.is_dir() {
            std::fs::read_dir(path).unwrap().for_each(|entry| sources(&entry.unwrap().path(), found));
        } else {
            found.push(std::fs::read_to_string(path).unwrap());
        }
    }

    #[test]
    fn no_message_of_the_planner_the_engine_or_linux_keeps_a_long_option() {
        let mut files = Vec::new();
        let whole = ["core/src/planner", "core/src/conclusions", "linux/src/memory", "engine/src"].map(|folder| format!("crates/{folder}"));
        let others = ["crates/linux/src/directory.rs", "crates/linux/src/environment.rs", "crates/core/src/prefetchers.rs", "src/prefetch"];
        for path in whole.iter().map(String::as_str).chain(others) {
            sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &mut files);
        }
        let literals: Vec<&str> = files.iter().flat_map(|text| literals(text)).collect();
        assert!(literals.len() > 40, "{} messages were found", literals.len());
        for (literal, mode) in literals.iter().flat_map(|l| MODES.iter().map(move |(_, mode, _)| (l, *mode))) {
            let ours = in_letters(mode, literal);
            let left = ours.split([' ', '(', '\'']).find(|word| word.starts_with("--") && word.len() > 2 && !word.contains('_'));
            assert!(left.is_none() && !ours.is_empty(), "{mode:?}: {literal:?} became {ours:?}");
        }
    }
}
