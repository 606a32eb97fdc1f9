//! Messages of the planner and the engine in the drop-in's words: its letters in place of memgauge's long options.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use memgauge_model::note::Note;
use memgauge_model::result::{Measurement, QualityLevel, QualityReason};
use memgauge_model::wording::native::{FrontEnd, option};
use memgauge_model::words::{Command, Knob, Verb, Way};

use super::letters::Mode;
use super::text::spell;
use crate::console::Program;
use crate::exit::problem;

/// Writes a line to standard error.
pub(super) fn message(text: impl Display) {
    Program::MLC.message(text);
}

/// A note's message, and what to do about it, in the letters of a mode.
pub(super) fn of_note(mode: Mode, note: &Note) -> String {
    mode.advised(&note.message, note.advice.as_ref())
}

/// An error with its causes, in the letters of a mode.
pub(super) fn of_error(mode: Mode, error: &anyhow::Error) -> String {
    let cause = |cause: &(dyn std::error::Error + 'static)| match problem(cause) {
        Some((Some(place), problem)) => format!("{place}: {}", mode.problem(problem)),
        Some((None, problem)) => mode.problem(problem),
        None => cause.to_string(),
    };
    error.chain().map(cause).collect::<Vec<_>>().join(": ")
}

/// The names of a mode's letters. Advice without a letter is left out.
impl FrontEnd for Mode {
    fn knob(&self, knob: Knob) -> Option<Cow<'static, str>> {
        letter(knob, *self).map(Cow::Borrowed)
    }

    fn command(&self, command: &Command) -> Option<String> {
        let matrix = Command::new(Verb::Bandwidth).with(Knob::Matrix);
        match command {
            command if *command == matrix => Some("--bandwidth_matrix".to_owned()),
            // Memgauge itself may be asked as well, as long as the drop-in's letters need not be found among its options.
            command if command.arguments.is_empty() => Some(command.to_string()),
            _ => None,
        }
    }

    fn own_words(&self, way: &Way) -> Option<String> {
        match way {
            Way::LeaveOut(Knob::Pages) => Some(SMALL_PAGES.to_owned()),
            Way::Use(Knob::Pages, kind) if kind == "auto" => Some(SMALL_PAGES.to_owned()),
            _ => None,
        }
    }

    fn unnamed(&self, knob: Knob) -> &'static str {
        match knob {
            Knob::Cpus => "a letter",
            knob => option(knob).trim_start_matches('-'),
        }
    }
}

/// Letters ask for huge pages, and small ones are what there is without.
const SMALL_PAGES: &str = "leave out -L and -h";

/// The letter that sets a knob in a mode, if there is one.
const fn letter(knob: Knob, mode: Mode) -> Option<&'static str> {
    use Mode as M;
    Some(match (knob, mode) {
        (Knob::Size, M::Scan) => return None,
        (Knob::Size, _) => "-b",
        (Knob::Cpus, M::Idle) => "-c",
        (Knob::Cpus, M::Peak | M::Max | M::Loaded) => "-k",
        (Knob::Cpus, M::C2c) => "-c and -w",
        (Knob::Cpus, M::Scan) => "-n and -t",
        (Knob::Node | Knob::ProbeNode, M::Idle | M::Loaded | M::Scan) => "-j",
        (Knob::MemoryDir, M::Idle) => "-J",
        (Knob::MemoryDir, _) => "-o",
        (Knob::TouchCpu, _) => "-i",
        (Knob::KeepAwake, _) => "-p",
        (Knob::Window, M::C2c) => "-C",
        (Knob::Window, _) => "-D",
        (Knob::Reader, _) => "-c",
        (Knob::Holder, _) => "-w",
        (Knob::Sharer, _) => "-S",
        (Knob::SharedBuffer, M::Loaded | M::Max) => "-u",
        (Knob::Delay, _) => "-d",
        (Knob::Hops, _) => "-x",
        (Knob::Time | Knob::Budget, M::Scan) => return None,
        (Knob::Time | Knob::Budget, _) => "-t",
        (Knob::Passes, _) => "-q",
        (Knob::Order, _) => "-r",
        (Knob::Stride, _) => "-l",
        _ => return None,
    })
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
    use memgauge_model::result::Report;
    use memgauge_model::words;
    use memgauge_model::words::Problem;

    use super::super::letters::MODES;
    use super::*;

    #[test]
    fn what_is_not_reliable_is_told_once_for_each_reason() {
        let mut report = memgauge_render::read(include_bytes!("../../tests/results/two-nodes.json")).unwrap();
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

    /// The options of memgauge in a text that the drop-in does not have.
    fn options(text: &str) -> Vec<&str> {
        let words = text.split([' ', '(', ')', '\'', ',', ';', ':']);
        words.filter(|word| word.starts_with("--") && word.len() > 2 && !word.contains('_')).collect()
    }

    #[test]
    fn letters_stand_for_options() {
        let auto = || Way::set(Knob::Pages, "auto");
        for (mode, problem, ours) in [
            (Mode::Idle, Problem::new("more than there is", Way::Smaller(Knob::Size)), "more than there is; give a smaller -b"),
            (
                Mode::Peak,
                Problem::new("one CPU", Way::from("allow one (taskset, cpuset)").either_or(Way::name("two", Knob::Cpus))),
                "one CPU; allow one (taskset, cpuset) or name two with -k",
            ),
            (
                Mode::Idle,
                Problem::new("no pages", Way::from("reserve pages as root: echo 3").or_else(auto())),
                "no pages; reserve pages as root: echo 3; or leave out -L and -h",
            ),
            (Mode::C2c, words![Knob::Sharer, ": there is no CPU 9; online are 0-1"].into(), "-S: there is no CPU 9; online are 0-1"),
            (Mode::Idle, words![Knob::KeepAwake, ": there is no CPU 9"].into(), "-p: there is no CPU 9"),
            (Mode::Full, Problem::new("no limit is known", words!["give it with ", Knob::Limit, " GB/s"]), "no limit is known"),
            (
                Mode::Scan,
                Problem::new("no room", Way::from("free some there").or("raise the limit").or(Way::Smaller(Knob::Region))),
                "no room; free some there, or raise the limit",
            ),
            (
                Mode::Peak,
                Problem::new("one node", words!["use '", Command::new(Verb::Bandwidth).with(Knob::Matrix), "'"]),
                "one node; use '--bandwidth_matrix'",
            ),
        ] {
            assert_eq!(mode.problem(&problem), ours);
        }
    }

    #[test]
    fn no_advice_in_any_mode_keeps_a_long_option() {
        let ways = |knob: Knob| {
            let command = Command::new(Verb::Latency).set(knob, "1");
            let said = words!["something with ", knob];
            [Way::Smaller(knob), Way::Larger(knob), Way::Give(knob), Way::set(knob, "x"), Way::LeaveOut(knob), Way::name("two", knob)]
                .into_iter()
                .chain([Way::Choose("one".into(), knob), said.into(), Way::Say(words![command]), Way::LeaveOut(knob).to("measure")])
        };
        for (_, mode, _) in MODES {
            for (knob, way) in Knob::ALL.iter().flat_map(|knob| ways(*knob).map(move |way| (knob, way))) {
                let said = mode.problem(&Problem::new(words![*knob, " is wrong"], way.clone().or("wait").or_else(way.clone()).and(way)));
                assert!(options(&said).is_empty(), "{mode:?}: {knob:?}: {said}");
                assert!(said.contains("wait"), "{mode:?}: {knob:?}: {said}");
            }
        }
    }
}
