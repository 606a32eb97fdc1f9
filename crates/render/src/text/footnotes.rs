//! Why a number is degraded or missing, in words, with what to do about it: in footnotes below each table, or once for the whole run.

use std::collections::{BTreeMap, BTreeSet};

use memgauge_model::experiment::Experiment;
use memgauge_model::result::{Measurement, Neighbours, QualityLevel, QualityReason, Report};
use memgauge_model::topology::{Machine, OperatingSystem};
use memgauge_model::wording::reasons::{not_measured, placement_problems};
use memgauge_model::words;
use memgauge_model::words::{Knob, Way, Ways};

use super::context::{Context, common_reasons};
use super::grid::{Cell, Value};
use super::page::{INDENT, Page, Style};
use crate::number::{DASH, SUPERSCRIPTS, bounds, number, percent, unit, value_of};

/// Nobody reads more footnotes than this; the rest is in the JSON result.
const MAX_FOOTNOTES: usize = 12;

/// Pages that moved on Linux were moved by this.
const NUMA_BALANCING: &str = "/proc/sys/kernel/numa_balancing";

/// A reason that holds for more than this share of a run's numbers comes with advice.
const NOTABLE: f64 = 0.1;

/// The footnotes of one table.
pub(super) struct Footnotes<'a> {
    report: &'a Report,
    table: &'a [&'a Measurement],
    /// Reasons that hold for every number of the table: printed once, without marks.
    everywhere: BTreeSet<QualityReason>,
    /// Values have the numbers of footnotes; otherwise `~` at most, which is explained at the end.
    numbered: bool,
    notes: Vec<(String, Option<QualityReason>)>,
}

impl<'a> Footnotes<'a> {
    /// Footnotes for a table of these measurements.
    pub(super) fn new(context: &Context<'a>, table: &'a [&'a Measurement]) -> Self {
        let everywhere = if context.verbose { common_reasons(table) } else { context.everywhere.clone() };
        Self { report: context.report, table, everywhere, numbered: context.verbose, notes: Vec::new() }
    }

    /// The measurement as a cell with its footnotes; blank where there is none.
    pub(super) fn cell(&mut self, m: Option<&Measurement>) -> Cell {
        self.claimed(m, String::new())
    }

    /// The same with a claim of firmware beside it.
    pub(super) fn claimed(&mut self, m: Option<&Measurement>, claim: String) -> Cell {
        let Some(m) = m else { return Cell::Blank };
        Value { claim, marks: self.marks(m), ..Value::of(m) }.into()
    }

    /// The marks of a measurement, such as `¹·²`.
    fn marks(&mut self, m: &Measurement) -> String {
        if !self.numbered {
            return String::new();
        }
        let mut numbers = Vec::new();
        if value_of(&m.estimate).is_none() {
            let why = m.estimate.not_measured.as_ref().map_or_else(|| "the result does not say why".to_owned(), not_measured);
            numbers.push(self.note(format!("not measured: {why}"), None));
        } else {
            let mut reasons: BTreeSet<QualityReason> = m.quality.reasons.iter().copied().collect();
            if m.estimate.modes.len() > 1 {
                reasons.insert(QualityReason::SeveralModes);
            }
            for reason in reasons {
                if !self.everywhere.contains(&reason) {
                    let text = self.sentence(reason, Some(m));
                    numbers.push(self.note(text, Some(reason)));
                }
            }
        }
        numbers.dedup();
        numbers.into_iter().map(superscript).collect::<Vec<_>>().join("·")
    }

    fn note(&mut self, text: String, reason: Option<QualityReason>) -> usize {
        if let Some(i) = self.notes.iter().position(|(t, _)| *t == text) {
            return i + 1;
        }
        self.notes.push((text, reason));
        self.notes.len()
    }

    /// Prints the footnotes. Advice is given the first time that a reason occurs in the whole report.
    pub(super) fn print(self, page: &mut Page, advised: &mut BTreeSet<QualityReason>) {
        if !self.numbered {
            return;
        }
        if self.table.iter().any(|m| m.quality.level == QualityLevel::Unreliable) {
            page.text(
                Style::Warning,
                "  ~ ",
                "    ",
                "unreliable: disturbances are in the value, or left too little of the time; run again when idle",
            );
        }
        let machine = &self.report.machine;
        for &reason in &self.everywhere {
            let text = format!("all values: {}{}", self.sentence(reason, None), advice(reason, machine, advised));
            page.text(Style::Warning, "  ! ", "    ", &text);
        }
        for (i, (text, reason)) in self.notes.iter().enumerate().take(MAX_FOOTNOTES) {
            let mark = superscript(i + 1);
            let text = format!("{text}{}", reason.map(|r| advice(r, machine, advised)).unwrap_or_default());
            page.text(Style::Warning, &format!("{INDENT}{mark} "), "    ", &text);
        }
        if self.notes.len() > MAX_FOOTNOTES {
            page.paragraph(Style::Warning, format!("and {} more, each in the JSON result", self.notes.len() - MAX_FOOTNOTES));
        }
    }

    /// A sentence for each reason and the whole run, with how many numbers have it, the most first.
    fn print_once(&self, page: &mut Page, advised: &mut BTreeSet<QualityReason>) {
        let (all, machine) = (self.table.len(), &self.report.machine);
        let mut reasons: BTreeMap<QualityReason, usize> = BTreeMap::new();
        self.table.iter().flat_map(|m| &m.quality.reasons).for_each(|reason| *reasons.entry(*reason).or_default() += 1);
        let mut reasons: Vec<(QualityReason, usize)> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let rare = |(i, (reason, n)): &(usize, &(QualityReason, usize))| {
            *i >= REASONS && *n as f64 <= NOTABLE * all as f64 && !is_alarming(*reason)
        };
        let left_out: Vec<(QualityReason, usize)> = reasons.iter().enumerate().filter(rare).map(|(_, reason)| *reason).collect();
        // Leaving out a single reason saves nothing: the line that says so is as long as the reason's own.
        let left_out = if left_out.len() > 1 { left_out } else { Vec::new() };
        reasons.retain(|reason| !left_out.contains(reason));
        for (reason, n) in reasons {
            let advice = if n as f64 > NOTABLE * all as f64 { advice(reason, machine, advised) } else { String::new() };
            let text = format!("{n} of {all}: {}{advice}", self.sentence(reason, None));
            page.text(Style::Warning, "  ! ", "    ", &text);
        }
        if let Some((_, most)) = left_out.first() {
            let each = if *most == 1 { "one number each".to_owned() } else { format!("at most {most} numbers each") };
            page.text(Style::Warning, "  ! ", "    ", &format!("and {} more reasons, of {each}: -v", left_out.len()));
        }
        let mut missing: BTreeMap<String, usize> = BTreeMap::new();
        for m in self.table.iter().filter(|m| value_of(&m.estimate).is_none()) {
            let why = m.estimate.not_measured.as_ref().map_or_else(|| "the result does not say why".to_owned(), not_measured);
            *missing.entry(why).or_default() += 1;
        }
        for (why, n) in missing.iter().take(MAX_FOOTNOTES) {
            page.text(Style::Warning, &format!("  {DASH} "), "    ", &format!("{n} of {all} not measured: {why}"));
        }
        if missing.len() > MAX_FOOTNOTES {
            page.paragraph(Style::Warning, format!("and {} more reasons, each in the JSON result", missing.len() - MAX_FOOTNOTES));
        }
    }

    /// Says what happened to one measurement, or to all measurements of the table that have this reason.
    fn sentence(&self, reason: QualityReason, one: Option<&Measurement>) -> String {
        use QualityReason as R;
        let affected = Affected(self.table.iter().copied().filter(|m| m.quality.reasons.contains(&reason)).collect());
        match reason {
            R::Steal => format!("the hypervisor gave {}the CPU time to others", affected.part(|m| m.evidence.noise.steal)),
            R::BusyMachine => format!("other processes used {}the CPUs measured", affected.part(|m| m.evidence.noise.others)),
            R::InvoluntarySwitches => affected.switches(),
            R::Migrated => "a measuring thread ran on another CPU than planned".into(),
            R::FrequencyDrift => {
                let step = one.and_then(|m| Some((m.evidence.noise.ghz_before?, m.evidence.noise.ghz_after?)));
                let step = step.map(|(a, b)| format!(" ({a:.2} to {b:.2} GHz)")).unwrap_or_default();
                format!("the core frequency changed by more than 5 %{step}")
            }
            R::Coverage => {
                let low = affected.bounds(|m| m.evidence.coverage).map(|(low, _)| format!(" ({})", percent(low)));
                format!("the threads ran together for less than 95 % of the time{}", low.unwrap_or_default())
            }
            R::NotConverged => self.not_converged(),
            R::SeveralModes => one.map_or_else(|| "several modes".into(), modes),
            R::PlacementWrong => "some pages were not on the node asked for".into(),
            R::PlacementUnverified => {
                let why = affected.0.iter().map(|m| &m.evidence.placement.problems).find(|p| !p.is_empty());
                let why = why.map(|w| format!(" ({})", placement_problems(w))).unwrap_or_default();
                format!("the node of the pages could not be read back{why}")
            }
            R::PlateauNotReached => "part of the buffer may be in a cache: latency still grows with its size".into(),
            R::Drift => one.map_or_else(|| "drift".into(), |m| self.drift(m)),
            R::BurstsDisturbed => affected.disturbed_bursts(),
            R::AboveCore => {
                let highest = affected.bounds(|m| m.evidence.bytes_per_cycle).map(|(_, b)| format!(" ({b:.0} B)")).unwrap_or_default();
                format!("more bytes per cycle and core{highest} than any core can load and store")
            }
            R::MemoryErrors => "memory errors were reported during the measurement".into(),
            R::BusyNeighbours => {
                let share = affected.part(|m| m.evidence.noise.neighbours.as_ref().and_then(Neighbours::most));
                format!("others used {share}the CPUs that share a core, caches or memory with those measured")
            }
            R::TimeLeftOut => {
                let share = affected.part(|m| m.evidence.noise.left_out);
                format!("threads were off their CPUs for {share}the time: what is left is a selection")
            }
            R::Stalled => {
                let share = affected.part(|m| m.evidence.noise.stalled);
                format!("memory did not answer for {share}the time, while the threads were on their CPUs")
            }
            R::KernelChosenBusy => "the loop was chosen while others used the CPUs measured, so that another one may be faster".into(),
            R::PagesMigrated => "the kernel moved pages between nodes during the measurement".into(),
            R::StateChanged => "the machine was in another state at the end of the run than at its beginning".into(),
        }
    }

    fn not_converged(&self) -> String {
        if self.table.first().is_some_and(|m| m.experiment == Experiment::MemoryScan) {
            return format!("the interval is too wide to tell regions apart; more {} narrow it", Knob::Passes);
        }
        let target = self.report.plan.as_ref().map(|plan| format!("the ±{} ", percent(plan.stop.relative_half_width)));
        format!("the interval is wider than {}asked for", target.unwrap_or_default())
    }

    fn drift(&self, m: &Measurement) -> String {
        let within = m.estimate.drift.map(|d| {
            let verb = if d.change > 0.0 { "rose" } else { "fell" };
            format!("{verb} by {} while it was measured", percent(d.change.abs()))
        });
        let again = self.report.repeats.iter().find(|o| o.is_of_same_cell(m)).and_then(|o| value_of(&o.estimate));
        if let (Some(within), None) = (&within, again) {
            return within.clone();
        }
        let again = again.map(|v| format!(" at the end: {} {}", number(v), unit(m.unit))).unwrap_or_default();
        format!("measured again{again}, and the two intervals do not overlap: the machine's state changed during the run")
    }
}

/// A run states this many reasons, the most frequent first. It states further ones if they concern many numbers, or are alarming.
const REASONS: usize = 4;

/// Whether a reason is worth a line even if it concerns one number.
const fn is_alarming(reason: QualityReason) -> bool {
    use QualityReason as R;
    matches!(reason, R::MemoryErrors | R::AboveCore | R::PlacementWrong | R::PagesMigrated)
}

/// Explains the mark of a whole run, and why numbers have it, are degraded or are missing.
pub(super) fn explain_marks(page: &mut Page, context: &mut Context<'_>) {
    let all: Vec<&Measurement> = context.report.results.iter().collect();
    if all.iter().all(|m| m.quality.level == QualityLevel::Good) {
        return;
    }
    let unreliable = all.iter().any(|m| m.quality.level == QualityLevel::Unreliable);
    page.heading("Reliability", if unreliable { "~ unreliable, do not use" } else { "" });
    let mut advised = std::mem::take(&mut context.advised);
    Footnotes::new(context, &all).print_once(page, &mut advised);
}

/// The measurements of a table that have a reason.
struct Affected<'a>(Vec<&'a Measurement>);

impl Affected<'_> {
    fn bounds(&self, value: fn(&Measurement) -> Option<f64>) -> Option<(f64, f64)> {
        bounds(self.0.iter().filter_map(|m| value(m)))
    }

    /// `up to 3 % of `, by the highest share; `part of ` where it is not known.
    fn part(&self, share: fn(&Measurement) -> Option<f64>) -> String {
        self.bounds(share).map_or("part of ".into(), |(_, high)| format!("up to {} of ", percent(high)))
    }

    fn switches(&self) -> String {
        let times = self.bounds(|m| m.evidence.noise.involuntary_switches.map(|n| n as f64));
        let times = times.map(|(_, n)| format!(" (up to {n:.0} times)")).unwrap_or_default();
        let waited = self.bounds(|m| m.evidence.noise.waited);
        let waited = waited.map(|(_, share)| format!(" for up to {} of the time", percent(share))).unwrap_or_default();
        format!("the kernel took a measuring thread off its CPU{times}{waited}")
    }

    fn disturbed_bursts(&self) -> String {
        let share = self.bounds(|m| Some(f64::from(m.evidence.noise.bursts_disturbed?) / f64::from(m.evidence.noise.bursts?)));
        let share = share.map(|(_, share)| format!(" ({})", percent(share))).unwrap_or_default();
        let kept = self.0.iter().any(|m| m.evidence.noise.bursts_left_out == Some(0));
        let kept = if kept { "; they were kept because too few clean ones remained" } else { "" };
        format!("many bursts were disturbed{share}{kept}")
    }
}

/// `two modes: 27.1 ns (70 %), 105.0 ns (30 %)`, and the disturbances in the samples, which make modes too.
fn modes(m: &Measurement) -> String {
    let list: Vec<_> =
        m.estimate.modes.iter().map(|mode| format!("{} {} ({})", number(mode.value), unit(m.unit), percent(mode.share))).collect();
    let noise = &m.evidence.noise;
    let disturbed = noise.bursts_disturbed.zip(noise.bursts).filter(|_| !m.is_reliable());
    let disturbed = disturbed.map(|(some, all)| format!("; {some} of {all} bursts were disturbed")).unwrap_or_default();
    match list.len() {
        0 => format!("the samples form several clusters{disturbed}"),
        2 => format!("two modes: {}{disturbed}", list.join(", ")),
        _ => format!("several modes: {}{disturbed}", list.join(", ")),
    }
}

fn advice(reason: QualityReason, machine: &Machine, advised: &mut BTreeSet<QualityReason>) -> String {
    use QualityReason as R;
    let system = machine.identity.system;
    let text: Ways = match reason {
        R::Steal => "repeat when the host is quieter, or on a dedicated instance".into(),
        R::BusyMachine => Way::from("stop them").or(Way::name("idle CPUs", Knob::Cpus)),
        R::InvoluntarySwitches => Way::from("stop other work on these CPUs").or(Way::name("idle ones", Knob::Cpus)),
        R::Migrated => "repeat while nothing changes which CPUs this process may use".into(),
        R::FrequencyDrift => system.words().steady_frequency.into(),
        R::Coverage => Way::name("fewer CPUs", Knob::Cpus).or(words!["measure longer with ", Knob::Time]),
        R::NotConverged => Way::Say(words!["raise ", Knob::Budget]).or(words!["accept a wider interval with ", Knob::Confidence]),
        R::SeveralModes => "the median hides them".into(),
        R::PlacementWrong => Way::from("free memory on that node").or(words!["ask for a smaller ", Knob::Size]),
        R::PlacementUnverified => system.words().placement.into(),
        R::PlateauNotReached => words!["ask for a larger ", Knob::Size].into(),
        R::Drift | R::StateChanged => "repeat on a machine that is warm and otherwise idle".into(),
        R::MemoryErrors => system.words().find_memory_errors.into(),
        R::BurstsDisturbed | R::KernelChosenBusy | R::TimeLeftOut => "repeat when these CPUs are idle".into(),
        R::Stalled => {
            "repeat; if it stays, look for throttled memory, links that retry and firmware interrupts, in a guest for a busy host".into()
        }
        R::BusyNeighbours => "repeat when the whole machine is idle: they may use the memory, too".into(),
        R::AboveCore => "time or frequency was misread: do not use the number, and report it with the JSON result".into(),
        R::PagesMigrated if system == OperatingSystem::Windows => {
            "repeat where memory is not short: Windows moved pages to another node during the run".into()
        }
        R::PagesMigrated => format!("for the time of the run, {}", machine.allowed.settings.change(NUMA_BALANCING, "0")).into(),
    };
    if advised.insert(reason) { format!("; {text}") } else { String::new() }
}

fn superscript(n: usize) -> String {
    n.to_string().chars().filter_map(|c| c.to_digit(10)).filter_map(|d| SUPERSCRIPTS.get(d as usize)).collect()
}

#[cfg(test)]
mod tests {
    use memgauge_model::topology::{Allowed, Identity, SettingsFrom, Topology};

    use super::*;

    fn machine(system: OperatingSystem) -> Machine {
        let identity = Identity { system, ..Identity::default() };
        Machine { identity, topology: Topology::default(), allowed: Allowed::default() }
    }

    #[test]
    fn superscripts() {
        assert_eq!([1, 10, 234].map(superscript), ["¹", "¹⁰", "²³⁴"]);
    }

    #[test]
    fn advice_for_windows_names_nothing_of_linux() {
        use QualityReason as R;
        for reason in [R::Migrated, R::FrequencyDrift, R::PlacementUnverified, R::MemoryErrors, R::PagesMigrated] {
            let said = advice(reason, &machine(OperatingSystem::Windows), &mut BTreeSet::new());
            let foreign = ["sysctl", "governor", "cpuset", "CAP_", "EDAC", "kernel"].into_iter().find(|word| said.contains(word));
            assert_eq!(foreign, None, "{said}");
        }
    }

    #[test]
    fn settings_are_changed_where_the_machine_lets_them() {
        let mut machine = machine(OperatingSystem::Linux);
        let said = advice(QualityReason::PagesMigrated, &machine, &mut BTreeSet::new());
        assert_eq!(said, "; for the time of the run, as root: echo 0 > /proc/sys/kernel/numa_balancing");
        machine.allowed.settings = SettingsFrom::OutsideContainer;
        let said = advice(QualityReason::PagesMigrated, &machine, &mut BTreeSet::new());
        assert!(said.contains("outside of this container") && !said.contains("echo"), "{said}");
    }

    #[test]
    fn advice_comes_once() {
        let (linux, mut advised) = (machine(OperatingSystem::Linux), BTreeSet::new());
        assert!(advice(QualityReason::Steal, &linux, &mut advised).starts_with("; "));
        assert_eq!(advice(QualityReason::Steal, &linux, &mut advised), "");
    }
}
