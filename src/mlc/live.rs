//! Rows on standard output as soon as they are known.
//!
//! Tables are made from whole reports. While a section is measured, it is rendered twice from what there is so far: once with cells that
//! are still missing as `nan`, once with a value that is higher than any. The missing cells cannot change the common beginning of both
//! texts, so it is printed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memgauge_model::distribution::{Distribution, Recorder};
use memgauge_model::estimate::{Estimate, NotMeasured};
use memgauge_model::experiment::{Coordinates, Experiment, Metric};
use memgauge_model::plan::{Cell, Plan};
use memgauge_model::result::{Measurement, Report};

use super::sections::Section;
use super::text::body;
use crate::prefetch::guard::unmeasured;

/// Higher than any bandwidth or latency, in GB/s and ns.
const HIGHEST: f64 = 1e12;

/// Writes bytes at once.
type Print<'a> = dyn FnMut(&[u8]) -> anyhow::Result<()> + 'a;

/// The output of a section.
pub(super) struct Live<'a> {
    section: &'a Section,
    /// The results so far.
    known: Report,
    /// Cells that are still to be measured; curves stay, because they may have more points until the end.
    pending: Vec<(Experiment, Cell)>,
    printed: String,
    /// Why nothing can be printed any more.
    failed: Option<anyhow::Error>,
    /// Prints bytes at once.
    print: Box<Print<'a>>,
}

impl<'a> Live<'a> {
    /// A section of these plans. `blank`: its report with the first of the plans, and without results.
    pub(super) fn begin(section: &'a Section, blank: Report, plans: &[Plan], print: impl FnMut(&[u8]) -> anyhow::Result<()> + 'a) -> Self {
        let cells = plans.iter().flat_map(|p| &p.steps).flat_map(|step| step.cells.iter().map(|cell| (step.experiment, cell.clone())));
        let pending = cells.filter(|(_, cell)| !cell.repeat).collect();
        Self { section, known: blank, pending, printed: String::new(), failed: None, print: Box::new(print) }
    }

    /// Prints the rows that these results complete. Returns whether more can be printed; [`Self::finish`] says why not.
    pub(super) fn measured(&mut self, results: &[Measurement]) -> bool {
        self.known.results.extend_from_slice(results);
        // Results of a chase name their order, and all orders of a cell come together.
        let is_row = |m: &Measurement, at: &Coordinates| Coordinates { order: at.order, ..m.at.clone() } == *at;
        self.pending.retain(|(experiment, cell)| !results.iter().any(|m| m.experiment == *experiment && is_row(m, &cell.at)));
        // After a signal no row becomes certain. The missing rows are printed at the end.
        if !results.iter().all(|m| m.estimate.not_measured == Some(NotMeasured::Interrupted)) {
            let text = self.certain();
            self.print(&text);
        }
        self.failed.is_none()
    }

    /// Prints the rest of the section, and the blank line after it where there is one. Without a report there is nothing to print.
    ///
    /// # Errors
    /// When standard output could not be written, now or before.
    pub(super) fn finish(mut self, report: Option<&Report>) -> anyhow::Result<()> {
        if let Some(report) = report {
            let blank = if self.section.blank_after { "\n" } else { "" };
            self.print(&format!("{}{blank}", body(self.section, report)));
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Prints the part of `text` that is not printed yet.
    fn print(&mut self, text: &str) {
        // Text that contradicts the printed part would be a defect of a table. It is then printed again as a whole rather than lost.
        let new = text.strip_prefix(self.printed.as_str()).unwrap_or(text);
        if new.is_empty() || self.failed.is_some() {
            return;
        }
        match (self.print)(new.as_bytes()) {
            Ok(()) => text.clone_into(&mut self.printed),
            Err(error) => self.failed = Some(error),
        }
    }

    /// The lines that are certain.
    fn certain(&mut self) -> String {
        if self.known.results.iter().all(|m| m.estimate.value.is_none()) {
            return String::new();
        }
        let (low, high) = (self.with_pending(None), self.with_pending(Some(HIGHEST)));
        let same = low.split_inclusive('\n').zip(high.split_inclusive('\n')).take_while(|(a, b)| a == b);
        same.map(|(line, _)| line).collect()
    }

    /// The section's text if all pending cells had this value.
    fn with_pending(&mut self, value: Option<f64>) -> String {
        let measured = self.known.results.len();
        for (experiment, cell) in &self.pending {
            self.known.results.extend(pending_results(*experiment, cell, value));
        }
        let text = body(self.section, &self.known);
        self.known.results.truncate(measured);
        text
    }
}

/// A distribution for cells that could bring one. Made once: after a signal, making one for each pair of cells that are missing took longer than
/// anything else.
static ANY_DISTRIBUTION: LazyLock<Option<Distribution>> = LazyLock::new(|| {
    let mut recorder = Recorder::new(1)?;
    recorder.add(&[1], 0, 1.0);
    recorder.finish()
});

/// The results that a cell could bring. For a curve that is one more delay.
fn pending_results(experiment: Experiment, cell: &Cell, value: Option<f64>) -> Vec<Measurement> {
    let mut one = unmeasured(experiment, cell, &NotMeasured::OutOfTime);
    if let Some(value) = value {
        one.estimate = Estimate { value: Some(value), ..Estimate::default() };
    }
    // Lines that stand before a table.
    one.evidence.gbs_by_cpu = BTreeMap::from([(0, 1.0)]);
    one.distribution = value.and_then(|_| ANY_DISTRIBUTION.clone());
    if cell.work.delays().is_some() {
        one.at.delay_cycles = Some(u32::MAX);
        return [Metric::Latency, Metric::Bandwidth].map(|metric| Measurement { metric, ..one.clone() }).into();
    }
    cell.work.places(&one.at).into_iter().map(|at| Measurement { at, ..one.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use memgauge_engine::RunContext;
    use memgauge_os::clock::Clock;
    use memgauge_planner::plan;
    use memgauge_simulation::Model;

    use super::super::tests::{ask_with, two_nodes};
    use super::*;
    use crate::host::HostIdentity;
    use crate::report;
    use crate::runner::Runner;
    use crate::signals::Stop;

    /// The text printed for a command line's section on a simulated machine, each time that results come, and at the end.
    fn follow(line: &str) -> Vec<String> {
        let (machine, kernels) = (two_nodes(), memgauge_kernels::rows());
        let section = ask_with(line, &kernels).sections.remove(0);
        let plans: Vec<Plan> = section.specs.iter().map(|spec| plan(spec, &machine, &kernels).unwrap()).collect();
        let (root, stop, model) = (Path::new("/no files"), Stop::raised(None), Model::new(&machine, None, 7));
        let mut report = report::blank(machine.clone(), root, &HostIdentity::withheld());
        report.plan = plans.first().cloned();
        let clock = Clock::calibrate(Path::new("/"));
        report.environment.clock = Some(clock.report());
        let (printed, times) = (RefCell::new(String::new()), RefCell::new(Vec::new()));
        let mut live = Live::begin(&section, report.clone(), &plans, |bytes: &[u8]| {
            printed.borrow_mut().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(())
        });
        let context = RunContext::new(&machine, clock, root.into(), stop.flag()).simulated(&model);
        let runner = Runner::begin(context, &stop, true);
        for plan in &plans {
            runner.measure_live(plan, None, &mut report, &mut |results| {
                assert!(live.measured(results));
                times.borrow_mut().push(printed.borrow().clone());
            });
        }
        runner.conclude(&mut report);
        live.finish(Some(&report)).unwrap();
        times.borrow_mut().push(printed.borrow().clone());
        let whole = format!("{}{}", body(&section, &report), if section.blank_after { "\n" } else { "" });
        let times = times.take();
        assert_eq!(times.last(), Some(&whole), "{line}");
        assert!(times.iter().all(|text| whole.starts_with(text.as_str()) && !text.contains("nan")), "{line}: {times:#?}");
        times
    }

    /// How many lines that begin like this, or with a number, were printed at each time.
    fn rows(times: &[String], begin: &str) -> Vec<usize> {
        let row = |l: &&str| if begin.is_empty() { l.trim_start().starts_with(|c: char| c.is_ascii_digit()) } else { l.contains(begin) };
        times.iter().map(|text| text.lines().filter(row).count()).collect()
    }

    #[test]
    fn a_row_of_a_matrix_is_printed_when_its_last_cell_is_known() {
        for mode in ["--latency_matrix -b1m", "--bandwidth_matrix -b1m"] {
            let rows = rows(&follow(mode), "");
            // Two cells are a row; one is measured again at the end.
            assert_eq!(rows[..4], [0, 1, 1, 2], "{mode}: {rows:?}");
        }
    }

    #[test]
    fn a_row_of_a_curve_is_printed_when_its_delay_is_known() {
        for line in ["--loaded_latency -b1m -gdelays", "--loaded_latency -T -b1m -gdelays"] {
            assert_eq!(rows(&follow(line), ""), [1, 2, 2], "{line}");
        }
        // The text before the table is known only at the end.
        let times = follow("--loaded_latency -b1m -gdelays -B");
        assert_eq!((rows(&times, "====="), rows(&times, "CPU 1,")), (vec![0, 0, 1], vec![1, 2, 2]));
        assert_eq!(rows(&follow("--loaded_latency -b1m -gdelays -f5"), "====="), [0, 0, 1]);
        assert_eq!(rows(&follow("--loaded_latency -oalone -gdelays"), ""), [1, 2, 2], "one without load as well");
    }

    #[test]
    fn a_curve_ends_with_its_last_row_and_everything_else_with_a_blank_line() {
        for line in ["--loaded_latency -b1m -gdelays", "--loaded_latency -oalone -gdelays", "--loaded_latency -T -W4 -b1m -d0"] {
            let times = follow(line);
            let last = times.last().unwrap().lines().last().unwrap().to_owned();
            assert!(times.last().unwrap().ends_with(&format!("{last}\n")) && last.split('\t').count() == 3, "{line}: {last:?}");
        }
        assert!(follow("--latency_matrix -b1m").last().unwrap().ends_with("\t\n\n"));
    }

    #[test]
    fn a_mix_is_printed_when_all_of_its_cells_are_known() {
        for line in ["--peak_injection_bandwidth -b1m", "--peak_injection_bandwidth"] {
            assert_eq!(rows(&follow(line), ":\t"), [1, 2, 3, 4, 5, 5], "{line}");
        }
        let best = rows(&follow("--max_bandwidth"), ":\t");
        assert!(best[0] == 0 && best.contains(&1) && best.contains(&4), "{best:?}");
    }

    #[test]
    fn transfers_are_printed_when_they_are_known() {
        let times = follow("--c2c_latency");
        // Pairs between nodes are measured first and printed last, so all lines come with the pairs within a node.
        assert!(rows(&times[..times.len() - 1], "Local Socket").contains(&2), "{times:#?}");
    }
}
