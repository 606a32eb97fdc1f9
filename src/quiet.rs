//! Waiting until the CPUs that will be used are idle, and naming the processes that disturbed a run.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memgauge_engine::RunContext;
use memgauge_model::note::{Note, NoteCode};
use memgauge_model::plan::Plan;
use memgauge_model::result::{DisturbingProcess, Neighbours, QualityLevel, Report};
use memgauge_model::units::IdSet;
use memgauge_model::words;
use memgauge_model::words::{Knob, Ways};
use memgauge_os::noise::{ProcessTimes, busy_seconds, may_be_hidden};

use crate::host::HostIdentity;

/// The CPUs are idle when none was busy for more than this share of [`LOOK`].
const IDLE: f64 = 0.05;
/// `/proc/stat` counts in steps of 10 ms, a hundredth of this.
const LOOK: Duration = Duration::from_secs(1);
/// Share of the time of results, or of the CPUs, from which on it is said what took it.
const DISTURBED: f64 = 0.05;

/// Waits until the CPUs of `plan` are idle, for `longest` at most. Returns a note where they did not become so. `say` gets what is waited for.
pub(crate) fn wait(context: &RunContext<'_>, plan: &Plan, longest: Duration, say: impl FnMut(&str)) -> Option<Note> {
    let cells = plan.steps.iter().flat_map(|step| &step.cells);
    let cpus = cells.fold(IdSet::new(), |all, cell| all.union(&cell.work.cpus()));
    let stopped = || context.stop.load(Ordering::Relaxed);
    let busiest = || {
        let (before, began) = (busy_seconds(&context.root, &cpus), Instant::now());
        while began.elapsed() < LOOK && !stopped() {
            memgauge_os::process::sleep(LOOK / 20);
        }
        let (after, seconds) = (busy_seconds(&context.root, &cpus), began.elapsed().as_secs_f64());
        let shares = after.iter().filter_map(|(cpu, now)| Some((*cpu, (now - before.get(cpu)?) / seconds)));
        shares.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let begin = Instant::now();
    wait_until_idle(busiest, || begin.elapsed() + LOOK > longest || stopped(), say)
}

/// Looks at the busiest CPU, and its share, again and again until it is idle or the time is `over`.
fn wait_until_idle(
    mut busiest: impl FnMut() -> Option<(u32, f64)>,
    mut over: impl FnMut() -> bool,
    mut say: impl FnMut(&str),
) -> Option<Note> {
    // Where the kernel does not tell, there is nothing to wait for.
    while let Some((cpu, share)) = busiest().filter(|(_, share)| *share > IDLE) {
        let busy = format!("CPU {cpu} is {:.0} % busy", 100.0 * share);
        if over() {
            let message = format!("the CPUs did not become idle in the time of --wait-quiet: {busy}");
            return Some(Note::warning(NoteCode::NotQuiet, message).advise("stop what runs there, or wait longer"));
        }
        say(&format!("waiting until the CPUs are idle: {busy}"));
    }
    None
}

/// Names in the report the processes that used CPUs since `before`, unless it is to say nothing about its host, and adds a note where they
/// may have disturbed the results.
pub(crate) fn name_disturbers(report: &mut Report, before: &ProcessTimes, root: &std::path::Path, identity: &HostIdentity) {
    if !identity.is_withheld() {
        report.environment.disturbing_processes = ProcessTimes::read(root).since(before);
    }
    let looked = match (identity.is_withheld(), may_be_hidden(root)) {
        (true, _) => Looked::Not,
        (false, true) => Looked::AtSome,
        (false, false) => Looked::AtAll,
    };
    report.notes.extend(note(report, looked));
}

/// At which processes it was looked whether they ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    Not,
    /// Others of the same host are hidden, or may be.
    AtSome,
    AtAll,
}

fn note(report: &Report, looked: Looked) -> Option<Note> {
    let above = |share: Option<f64>| share.is_some_and(|share| share > DISTURBED);
    let disturbed = report.results.iter().any(|m| {
        let noise = &m.evidence.noise;
        let near = noise.neighbours.as_ref().and_then(Neighbours::most);
        m.quality.level == QualityLevel::Unreliable || above(noise.others) || above(noise.left_out) || above(near)
    });
    let name = |process: &DisturbingProcess| format!("{} {:.0} %", process.name, process.cpu_percent);
    let names: Vec<String> = report.environment.disturbing_processes.iter().map(name).collect();
    let guest = report.machine.identity.may_be_virtual();
    let wait = || Ways::from("run again when they are idle").or(words!["wait for that with ", Knob::WaitQuiet, " 60s"]);
    let (named, advice) = match (names.is_empty(), looked, guest) {
        (false, ..) => (format!(": {} of a CPU", names.join(", ")), wait()),
        // Waiting helps only against what this kernel sees.
        (true, Looked::AtAll, true) => {
            (": something that has ended since, or another guest of the host".to_owned(), "run again when the host is quieter".into())
        }
        (true, Looked::AtSome, _) => (
            " and no process that can be seen from here did: others of the same host are hidden, as from a container".to_owned(),
            "look for them on the host, and run again when it is quieter".into(),
        ),
        (true, ..) => (String::new(), wait()),
    };
    let note = || Note::warning(NoteCode::MachineBusy, format!("others used the CPUs during the run{named}")).advise(advice);
    disturbed.then(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_the_busiest_cpu_is_idle_or_the_time_is_over() {
        let run = |shares: &[f64], looks: usize| {
            let (mut next, mut left, mut said) = (shares.iter(), looks, Vec::new());
            let over = || {
                left -= 1;
                left == 0
            };
            let note = wait_until_idle(|| next.next().map(|share| (3, *share)), over, |text| said.push(text.to_owned()));
            (note, said)
        };
        assert_eq!(run(&[0.02], 9), (None, vec![]));
        assert_eq!(run(&[], 9), (None, vec![]), "a kernel that does not tell");
        let (note, said) = run(&[0.63, 0.2, 0.04], 9);
        assert_eq!((note, said.len()), (None, 2));
        assert!(said[0].contains("CPU 3 is 63 % busy"), "{said:?}");
        let (note, _) = run(&[0.5, 0.5, 0.5], 2);
        assert!(note.is_some_and(|note| note.code == NoteCode::NotQuiet && note.message.to_string().contains("50 %")));
    }

    #[test]
    fn disturbers_are_named_where_they_may_have_disturbed() {
        let mut report = memgauge_render::read(include_bytes!("../tests/results/two-nodes.json")).unwrap();
        report.environment.disturbing_processes = vec![("rustc", 93.0), ("python3", 40.4)]
            .into_iter()
            .map(|(name, cpu_percent)| DisturbingProcess { name: name.into(), cpu_percent })
            .collect();
        report.results.iter_mut().for_each(|m| m.evidence.noise.others = Some(0.0));
        assert_eq!(note(&report, Looked::AtAll), None, "processes on other CPUs");
        report.results[0].evidence.noise.left_out = Some(0.4);
        assert!(note(&report, Looked::AtAll).is_some_and(|note| note.message.to_string().contains("rustc 93 %, python3 40 % of a CPU")));
        report.environment.disturbing_processes.clear();
        assert!(note(&report, Looked::AtAll).is_some_and(|note| note.message.to_string().ends_with("during the run")));
        let hidden = note(&report, Looked::AtSome).unwrap();
        assert!(
            hidden.message.to_string().contains("the same host are hidden") && hidden.advice.unwrap().to_string().contains("on the host"),
            "{}",
            hidden.message
        );
        report.machine.identity.hypervisor = Some("KVM".to_owned());
        let stolen = note(&report, Looked::AtAll).unwrap();
        assert!(
            stolen.message.to_string().contains("another guest of the host")
                && !stolen.advice.unwrap().to_string().contains("--wait-quiet")
        );
        let hidden = note(&report, Looked::AtSome).unwrap();
        assert!(!hidden.message.to_string().contains("guest"), "they may be of this guest: {}", hidden.message);
        assert!(note(&report, Looked::Not).unwrap().message.to_string().ends_with("during the run"), "nobody looked");
    }
}
