//! Progress on standard error: the share that is done, the time that the rest takes, the cell that is being measured, and the values so far.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memgauge_engine::{Heartbeat, Observer, RunContext};
use memgauge_model::experiment::{ChaseOrder, Coordinates, Experiment, LineState, Metric};
use memgauge_model::plan::{Cell, Plan, Step};
use memgauge_model::result::{Measurement, QualityLevel};
use memgauge_model::traffic::Mix;
use memgauge_model::wording;
use memgauge_os::process::has_more_privileges_than_its_user;

use crate::console::Stream;

/// Columns where the terminal does not tell its width.
const COLUMNS: usize = 80;
/// Columns of the bar between its brackets.
const BAR: usize = 8;
/// Columns of a cell's name that are worth more than a value.
const CELL: usize = 20;

/// While memory is set up, the line is drawn at most so often.
const REDRAW: Duration = Duration::from_millis(250);
/// The environment variable that names a file to record predictions in, to measure how honest they are.
const RECORD: &str = "MEMGAUGE_PROGRESS";

/// A line of progress. It is drawn between bursts and while memory is set up, never while something is measured, and has neither a thread nor
/// a timer.
pub(crate) struct Progress<'a> {
    context: &'a RunContext<'a>,
    state: Arc<Mutex<State>>,
    /// Gets results as they are measured.
    live: &'a mut dyn FnMut(&[Measurement]),
}

/// The state that the line shows.
struct State {
    bar: ProgressBar,
    begin: Instant,
    drawn: Instant,
    /// When the run must end.
    end: Option<Instant>,
    time: TimeLeft,
    /// The cell that is being measured.
    cell: String,
    values: Values,
    /// How often the engine has reported since the cell began: at its beginning, and after each burst.
    reports: u32,
    /// Gets seconds of the run, the share that is done and the seconds that are left, as predicted then, the bursts of the cell so far, trials
    /// included, and the cell.
    record: Option<File>,
}

impl State {
    fn elapsed_s(&self, now: Instant) -> f64 {
        (now - self.begin).as_secs_f64()
    }

    fn draw(&mut self, now: Instant) {
        let now_s = self.elapsed_s(now);
        let until_end = self.end.map(|end| end.saturating_duration_since(now).as_secs_f64());
        let left_s = self.time.left_s(now_s).min(until_end.unwrap_or(f64::INFINITY));
        let width = Stream::Error.columns().unwrap_or(COLUMNS);
        self.bar.set_message(line(width, now_s, left_s, &self.cell, &self.values.texts()));
        self.drawn = now;
        if let Some(file) = &mut self.record {
            // The run goes on if the record cannot be written.
            let bursts = self.reports.saturating_sub(1);
            let _ = writeln!(file, "{now_s:.3}\t{:.4}\t{left_s:.3}\t{bursts}\t{}", self.time.share, self.cell);
        }
    }
}

impl<'a> Progress<'a> {
    /// Progress of `plan`; `quiet` hides it.
    pub(crate) fn new(plan: &Plan, context: &'a RunContext<'a>, quiet: bool, live: &'a mut dyn FnMut(&[Measurement])) -> Self {
        // Nothing is drawn to a hidden target, nor to standard error when it is not a terminal.
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        // Who has no more privileges than the program names a file of their own.
        let path = std::env::var_os(RECORD).filter(|_| !has_more_privileges_than_its_user());
        let record = path.and_then(|path| File::options().append(true).create(true).open(path).ok());
        let now = context.now();
        let mut state = State {
            bar,
            begin: now,
            drawn: now,
            end: context.deadline,
            time: TimeLeft::new(plan),
            cell: "setting up".to_owned(),
            values: Values::default(),
            reports: 0,
            record,
        };
        state.draw(now);
        Self { context, state: Arc::new(Mutex::new(state)), live }
    }

    /// Removes the line.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        state.bar.finish_and_clear();
        let now_s = state.elapsed_s(self.context.now());
        if let Some(file) = &mut state.record {
            let _ = writeln!(file, "{now_s:.3}\t1\t0");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Progress<'_> {
    fn cell(&mut self, step: &Step, cell: &Cell) {
        let now = self.context.now();
        let mut state = self.state();
        let now_s = state.elapsed_s(now);
        state.time.begin_cell(now_s, step);
        // The nodes of CPUs are known, and a mix tells more than the CPUs that load.
        let cpus = cell.at.cpus.clone().filter(|_| cell.at.mix.is_none());
        let at = Coordinates { cpus, cpu_node: None, holder_node: None, memory_dir: None, ..cell.at.clone() };
        state.cell = format!("{}: {}", step.title, wording::coordinates(&at));
        state.reports = 0;
        state.draw(now);
    }

    fn measured(&mut self, results: &[Measurement]) {
        let bar = {
            let mut state = self.state();
            results.iter().for_each(|m| state.values.add(m));
            state.bar.clone()
        };
        let live = &mut self.live;
        // Other output must not mix with the line on the terminal.
        bar.suspend(|| live(results));
    }

    fn progress(&mut self, share: f64) {
        let now = self.context.now();
        let mut state = self.state();
        state.time.progress(share);
        state.reports += 1;
        state.draw(now);
    }

    fn heartbeat(&self) -> Option<Heartbeat> {
        let state = Arc::clone(&self.state);
        Some(Arc::new(move || {
            // Another thread draws already, or something changes.
            let Ok(mut state) = state.try_lock() else { return };
            let now = Instant::now();
            if now.saturating_duration_since(state.drawn) >= REDRAW {
                state.draw(now);
            }
        }))
    }
}

/// The line: as much as fits into `width` columns, the newest values first to stay.
fn line(width: usize, now_s: f64, left_s: f64, cell: &str, values: &[String]) -> String {
    let share = now_s / (now_s + left_s).max(1e-9);
    let left = format!("{:>3.0} %, {} left", share * 100.0, rounded(left_s));
    let bar = "=".repeat((share * BAR as f64) as usize);
    let mut text = if width >= COLUMNS { format!("[{bar:BAR$}] {left}") } else { left };
    // A terminal may wrap a line that ends in its last column.
    let room = |text: &str| (width - 1).saturating_sub(text.chars().count());
    let newest = values.last().map_or(0, |value| value.chars().count() + 2);
    let longest = room(&text).saturating_sub(newest).max(cell.len().min(CELL));
    text += &cut(&format!("  {cell}"), longest.min(room(&text)));
    let mut kept = String::new();
    for value in values.iter().rev() {
        let with = if kept.is_empty() { format!("  {value}") } else { format!("  {value} · {}", kept.trim_start()) };
        if with.chars().count() <= room(&text) {
            kept = with;
        }
    }
    text + &kept
}

/// As much of a name as has room, up to the end of one of its parts if it has several.
fn cut(name: &str, room: usize) -> String {
    let kept: String = name.chars().take(room).collect();
    if kept.len() == name.len() || name.chars().nth(room).is_some_and(|next| matches!(next, ',' | ':')) {
        return kept;
    }
    match kept.rfind([',', ':']).filter(|end| *end >= CELL / 2) {
        Some(end) => kept[..end].to_owned(),
        None => kept,
    }
}

/// `12 s`, `3 min 20 s`: no more digits than an estimate has.
fn rounded(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |left| left.as_secs_f64().ceil() as u64) {
        s if s < 100 => format!("{s} s"),
        s if s < 6000 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

/// The values so far: the best of each quantity of the headline, and the newest of others.
#[derive(Default)]
struct Values(BTreeMap<&'static str, (usize, f64, String)>);

impl Values {
    fn add(&mut self, m: &Measurement) {
        let Some(value) = m.estimate.value else { return };
        let (name, unit) = (name_of(m), if m.metric == Metric::Latency { "ns" } else { "GB/s" });
        let newest = self.0.values().map(|(order, ..)| order + 1).max().unwrap_or_default();
        let sign = if m.quality.level == QualityLevel::Unreliable { "~" } else { "" };
        let digits = usize::from(value < 1000.0);
        let text = format!("{name} {sign}{value:.digits$} {unit}");
        // Of a bandwidth the highest counts, of a latency the last.
        if m.metric == Metric::Latency || self.0.get(name).is_none_or(|(_, highest, _)| value > *highest) {
            self.0.insert(name, (newest, value, text));
        }
    }

    /// The values as text, the newest last.
    fn texts(&self) -> Vec<String> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|(order, ..)| *order);
        all.into_iter().map(|(.., text)| text.clone()).collect()
    }
}

/// A quantity in a word.
fn name_of(m: &Measurement) -> &'static str {
    use Experiment as E;
    match (m.experiment, m.metric) {
        (E::IdleLatency | E::IdleLatencyPerCpu, _) => match (m.at.order, m.at.memory_node() == m.at.cpu_node) {
            (Some(ChaseOrder::FullRandom), _) => "random",
            (Some(ChaseOrder::Sequential), _) => "sequential",
            (_, true) => "latency",
            (_, false) => "remote",
        },
        (E::CacheToCache | E::CacheToCacheMatrix, _) => {
            if m.at.state == Some(LineState::Hitm) {
                "HITM"
            } else {
                "HIT"
            }
        }
        (_, Metric::Bandwidth) if m.at.mix == Some(Mix::AllReads) => "read",
        _ => m.quantity().short,
    }
}

/// The pace that the plan expects counts as much as the experience of this share of the run: of recorded suites, quiet and busy, the time
/// left was off least with it.
const PRIOR: f64 = 0.3;

/// How long a run still takes: the rest of the plan, at the pace of the run so far, with all of its set-up.
pub(crate) struct TimeLeft {
    planned_s: f64,
    /// The share of the whole that is done, as the engine says.
    share: f64,
    /// The cell in progress: its share of the whole, what was done before it, and when it began, in seconds of the run.
    cell: (f64, f64, f64),
}

impl TimeLeft {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self { planned_s: plan.estimated_s.max(1e-9), share: 0.0, cell: (0.0, 0.0, 0.0) }
    }

    /// A cell of `step` begins at `now_s` seconds of the run.
    pub(crate) fn begin_cell(&mut self, now_s: f64, step: &Step) {
        let share = step.estimated_s / step.cells.len().max(1) as f64 / self.planned_s;
        self.cell = (share, self.cell.1 + self.cell.0, now_s);
    }

    /// The engine says that so much of the whole is done, 0 to 1. Cells that take long say so of their parts as well.
    pub(crate) fn progress(&mut self, share: f64) {
        self.share = share;
    }

    /// Seconds that the rest takes, at `now_s` seconds of the run.
    pub(crate) fn left_s(&self, now_s: f64) -> f64 {
        let pace = |took_s: f64, share: f64| (took_s / self.planned_s + PRIOR) / (share + PRIOR);
        let (cell, before, began_s) = self.cell;
        // A cell that does not report its progress counts as far as it should be at the pace of the cells before it, but at most as done.
        let expected = (now_s - began_s) / (pace(began_s, before) * self.planned_s);
        let done = self.share.max(before + expected.min(cell)).min(1.0);
        (1.0 - done) * self.planned_s * pace(now_s, done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_the_terminal() {
        let values: Vec<String> = ["latency 98.4 ns", "read 41.7 GB/s", "under load 146.2 ns"].map(Into::into).into();
        let at =
            |width, values: &[String]| line(width, 20.0, 9.2, "Latency under load: CPU 0, CPUs 1-15, memory of node 0, all-reads", values);
        for width in [20, 40, 60, 79, 80, 100, 200] {
            let text = at(width, &values);
            assert!(text.chars().count() < width, "{width}: {text}");
            assert!(text.contains("68 %, 10 s left"), "{text}");
        }
        assert_eq!(at(40, &values), " 68 %, 10 s left  Latency under load");
        assert_eq!(at(80, &values), "[=====   ]  68 %, 10 s left  Latency under load: CPU 0  under load 146.2 ns");
        let mix = |values: &[String]| line(80, 20.0, 9.2, "Peak bandwidth by mix: 4:1", values);
        assert_eq!(mix(&values[..2]), "[=====   ]  68 %, 10 s left  Peak bandwidth by mix: 4:1  read 41.7 GB/s");
        assert_eq!(mix(&[]), "[=====   ]  68 %, 10 s left  Peak bandwidth by mix: 4:1");
        let all = "[=====   ]  68 %, 10 s left  Latency under load: CPU 0, CPUs 1-15, memory of node 0, all-reads  latency 98.4 ns · read 41.7 GB/s · under load 146.2 ns";
        assert_eq!(at(200, &values), all);
        assert_eq!(line(80, 9.0, 0.0, "x", &[]), "[========] 100 %, 0 s left  x");
        assert_eq!([99.2, 100.0, 5999.0, 7200.0].map(rounded), ["1 min 40 s", "1 min 40 s", "99 min 59 s", "2 h 00 min"]);
    }

    fn suite() -> (memgauge_model::topology::Machine, Plan) {
        let machine = memgauge_os::topology::read_machine(std::path::Path::new("/")).unwrap();
        let spec = memgauge_model::spec::Spec::new(memgauge_model::spec::Task::suite());
        let plan = memgauge_planner::plan(&spec, &machine, &[]).unwrap();
        (machine, plan)
    }

    #[test]
    fn the_line_goes_on_while_memory_is_set_up() {
        let (machine, plan) = suite();
        let stop = Arc::default();
        let context = RunContext::new(&machine, memgauge_os::clock::Clock::calibrate(std::path::Path::new("/")), "/".into(), &stop);
        let mut live = |_: &[Measurement]| {};
        let progress = Progress::new(&plan, &context, true, &mut live);
        let heartbeat = progress.heartbeat().unwrap();
        let message = || progress.state().bar.message();
        let first = message();
        heartbeat();
        assert_eq!(message(), first, "not more often than it can be read");
        // As if two seconds of setting up had passed since.
        {
            let mut state = progress.state();
            state.begin -= Duration::from_secs(2);
            state.drawn -= Duration::from_secs(2);
        }
        heartbeat();
        assert_ne!(message(), first);
        // A thread that draws is not waited for.
        let held = progress.state();
        heartbeat();
        drop(held);
    }

    #[test]
    fn cells_that_took_longer_make_the_rest_longer() {
        let (_, plan) = suite();
        let cells = vec![plan.steps[0].cells[0].clone(); 8];
        let step = Step { estimated_s: 8.0, cells, ..plan.steps[0].clone() };
        let mut time = TimeLeft::new(&Plan { estimated_s: 8.0, ..plan });
        assert_eq!(time.left_s(0.0), 8.0);
        for n in 0..4 {
            time.begin_cell(2.0 * f64::from(n), &step);
            time.progress(0.125 * f64::from(n));
        }
        // Three cells took two seconds each. Five are left, and one of them has begun.
        let left = time.left_s(6.0);
        assert!((7.0..10.0).contains(&left), "{left}");
        assert!((left - 1.3..left - 0.7).contains(&time.left_s(7.0)), "{left}, time passes within a cell: {}", time.left_s(7.0));
        assert!(time.left_s(30.0) > left, "a cell that does not end makes the rest longer");
        // A cell that says how much of it is done is believed.
        time.progress(0.45);
        assert!(time.left_s(6.5) < left - 1.0, "{}", time.left_s(6.5));
    }
}
