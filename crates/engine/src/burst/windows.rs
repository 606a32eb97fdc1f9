//! How a thread measures: it runs blocks of work until a deadline, and picks windows and their slots by reading the clock at block boundaries.
//!
//! A core reads its counter while loads of the block before are still on their way: as many hops of a chase as its scheduler holds, some
//! 100. Readings at the ends of blocks may be early by that, because the next block begins with the same reading. Where a window begins this is
//! not so: the thread asks the kernel for its CPU time, and the hops on their way end during that call, in no window's time. The marks of windows
//! are therefore read behind a fence ([`ThreadClock::stamp`]), and a chase's marks of slots as well.

use std::time::Duration;

use memgauge_model::protocol::{SETTLE_WINDOWS, SLOT};
use memgauge_os::clock::{Clock, core_ghz};
use memgauge_os::noise;

use super::counters::{BurstCount, CounterSwitches};

/// Threads read the clock about this often. A reading costs some 10 ns, less than 0.1 %; a slot is 12 times longer.
pub(crate) const BLOCK_NS: f64 = 20_000.0;
/// The same for kernels that wait for their stores at the end of every block. A fence after non-temporal stores cost 95 ns on Zen 4: 0.5 % of
/// 20 µs, and 0.1 % of this. A fence of a microsecond would be 5 % and 1 %.
pub(crate) const FENCED_BLOCK_NS: f64 = 80_000.0;
/// A string instruction is one block, and stops reading the lines that it writes once it is long: on Zen 5 from the size of the last-level
/// cache on, which makes copies 1.2 and fills 1.3 times as fast. 4 ms reach that (45 to 90 MB a stream) and still give each window of 5 ms
/// its reading of the clock.
pub(crate) const STRING_BLOCK_NS: f64 = 4_000_000.0;

/// When a burst starts and ends, in clock ticks.
#[derive(Clone, Copy)]
pub(crate) struct Schedule<'a> {
    pub(crate) clock: Clock,
    pub(crate) start: u64,
    pub(crate) window: u64,
    pub(crate) windows: usize,
    /// Hardware counters of the worker that has this schedule.
    pub(crate) counters: Option<&'a CounterSwitches>,
}

impl Schedule<'_> {
    fn end(&self) -> u64 {
        self.start + self.window * self.windows as u64
    }

    pub(crate) fn wait_for_start(&self) {
        self.wait_by(&self.clock);
    }

    fn wait_by(&self, time: &impl ThreadClock) {
        while time.now() < self.start {
            std::hint::spin_loop();
        }
    }
}

/// The clocks that a thread reads while it measures.
pub(crate) trait ThreadClock {
    /// The clock, while loads may be on their way.
    fn now(&self) -> u64;

    /// The clock, once all earlier loads have their data and before any later one starts.
    fn stamp(&self) -> u64;

    /// Whether [`Self::now`] may be early by the loads that are on their way.
    fn is_early(&self) -> bool;

    /// CPU time of the thread; `None` where the kernel does not tell.
    fn cpu_ns(&self) -> Option<u64>;

    /// Frequency of the core.
    fn ghz(&self) -> Option<f64>;
}

/// A clock whose reading takes this long is read by a call of the kernel, which waits for loads by itself; a second reading would be in the
/// samples. Counters take 10 to 40 ns, and the kernel's clock read without a call 25 to 60.
const SYSTEM_CALL_NS: f64 = 300.0;

impl ThreadClock for Clock {
    fn now(&self) -> u64 {
        self.now()
    }

    fn stamp(&self) -> u64 {
        self.stamp()
    }

    fn is_early(&self) -> bool {
        self.overhead_ns() < SYSTEM_CALL_NS
    }

    fn cpu_ns(&self) -> Option<u64> {
        noise::thread_cpu_ns()
    }

    fn ghz(&self) -> Option<f64> {
        Some(core_ghz(self))
    }
}

/// Which marks wait for the loads before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fences {
    /// Those of windows: loads that do not depend on each other would lose the time to fill the pipeline again, up to a latency each.
    Windows,
    /// Those of slots too: the hops of a chase wait for each other anyway, so a fence costs nothing.
    Slots,
}

/// A block boundary at which a thread noted what it had done.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    pub(crate) ticks: u64,
    /// When the next block began: noting this, and reading the thread's CPU time, are in no sample.
    pub(crate) resumed: u64,
    pub(crate) work: u64,
    /// Ticks of the longest block from here to the next mark. Time off the CPU is in it.
    pub(crate) longest: u64,
    /// CPU time of the thread, at the first mark in each window.
    pub(crate) cpu_ns: Option<u64>,
}

/// The work of a thread: how much it had done when it first read the clock in each slot.
#[derive(Default)]
pub(crate) struct Trace {
    /// The first block boundary in slot 0, 1 … and after the end. `None`: the thread did not read the clock in that slot.
    pub(crate) marks: Vec<Option<Mark>>,
    /// Slots in a window.
    pub(crate) slots: usize,
    /// The clock at the beginning and at the end.
    pub(crate) span: (u64, u64),
    /// Hardware events from the beginning of the first counted window to the end.
    pub(crate) count: Option<BurstCount>,
    /// Frequency of the core in GHz right after the end, while the others of the burst measure theirs: all of them are as busy as before.
    pub(crate) ghz: Option<f64>,
}

impl Trace {
    /// Of a thread that noted (ticks, work) once in each window and was never off its CPU.
    #[cfg(test)]
    pub(crate) fn of_windows(marks: Vec<Option<(u64, u64)>>) -> Self {
        let mark = |(ticks, work)| Mark { ticks, resumed: ticks, work, longest: 0, cpu_ns: None };
        let marks: Vec<Option<Mark>> = marks.into_iter().map(|noted| noted.map(mark)).collect();
        let ends = || marks.iter().flatten().map(|mark| mark.ticks);
        let span = (ends().next().unwrap_or(0), ends().next_back().unwrap_or(0));
        Self { span, marks, slots: 1, ..Self::default() }
    }

    /// The first mark in a window.
    pub(crate) fn window_mark(&self, index: usize) -> Option<&Mark> {
        self.marks.chunks(self.slots.max(1)).nth(index)?.iter().flatten().next()
    }

    /// Ticks and work of the whole burst.
    pub(crate) fn whole(&self) -> Option<(u64, u64)> {
        let mut marks = self.marks.iter().flatten();
        let (from, to) = (marks.next()?, marks.next_back()?);
        (to.ticks > from.ticks).then(|| (to.ticks - from.ticks, to.work - from.work))
    }
}

/// Notes into a trace what a thread has done.
struct Marker {
    trace: Trace,
    /// The slot of the last mark.
    last: usize,
    /// Ticks of the longest block since then.
    longest: u64,
}

impl Marker {
    fn new(schedule: &Schedule<'_>) -> Self {
        let slots = (schedule.clock.ns(schedule.window) / SLOT.as_nanos() as f64).round().max(1.0) as usize;
        let trace = Trace { marks: vec![None; schedule.windows * slots + 1], slots, ..Trace::default() };
        Self { trace, last: 0, longest: 0 }
    }

    fn slot_at(&self, schedule: &Schedule<'_>, now: u64) -> usize {
        let slot = (now - schedule.start) * self.trace.slots as u64 / schedule.window.max(1);
        slot.min(self.trace.marks.len() as u64 - 1) as usize
    }

    /// Whether a mark in `slot` is the first one in its window.
    const fn begins_window(&self, slot: usize) -> bool {
        slot == 0 || slot / self.trace.slots > self.last / self.trace.slots
    }

    /// Notes the state at the first block boundary in `slot`.
    fn mark(&mut self, slot: usize, ticks: u64, work: u64, time: &impl ThreadClock) {
        let cpu_ns = if self.begins_window(slot) { time.cpu_ns() } else { None };
        if let Some(last) = &mut self.trace.marks[self.last] {
            last.longest = self.longest;
        }
        self.trace.marks[slot] = Some(Mark { ticks, resumed: ticks, work, longest: 0, cpu_ns });
        (self.last, self.longest) = (slot, 0);
    }

    /// The next block begins `now`.
    fn resume(&mut self, now: u64) -> u64 {
        if let Some(mark) = &mut self.trace.marks[self.last] {
            mark.resumed = now;
        }
        now
    }
}

/// A reading of the clock may take this share of a block.
const READING: f64 = 0.01;

/// How long a block takes at least, in nanoseconds, where it should take about `block_ns` and a reading of the clock takes `reading_ns`.
pub(crate) fn shortest_block(block_ns: f64, reading_ns: f64) -> f64 {
    (block_ns / 2.0).max(reading_ns / READING)
}

/// How long a window must be, `planned` at least, so that each has two block boundaries where a reading of the clock takes `reading_ns`.
pub(crate) fn shortest_window(planned: Duration, reading_ns: f64) -> Duration {
    // Blocks double until they are long enough.
    let longest_block = 2.0 * shortest_block(BLOCK_NS, reading_ns);
    planned.max(Duration::from_secs_f64(2.0 * longest_block / 1e9))
}

/// Runs `block` until the schedule's end. `block(units)` does that many units of work. Units double from 1 until a block takes about
/// `block_ns`, whatever the speed of the memory, and longer where reading the clock takes long. The trace counts units.
pub(crate) fn run_until_end(schedule: &Schedule<'_>, block_ns: f64, fences: Fences, block: impl FnMut(usize)) -> Trace {
    run_by(&schedule.clock, schedule, block_ns, fences, block)
}

/// The same by what `time` reads, in ticks of the schedule's clock.
pub(crate) fn run_by(
    time: &impl ThreadClock,
    schedule: &Schedule<'_>,
    block_ns: f64,
    fences: Fences,
    mut block: impl FnMut(usize),
) -> Trace {
    let clock = &schedule.clock;
    let mut marker = Marker::new(schedule);
    let (mut work, mut units, end) = (0, 1, schedule.end());
    let short = (shortest_block(block_ns, clock.overhead_ns()) / clock.ns(1)) as u64;
    let before = schedule.counters.map(|c| c.read());
    // Ticks and work when the counters were switched on.
    let mut counting: Option<(u64, u64)> = None;
    let mut waiting = schedule.counters.is_some();
    schedule.wait_by(time);
    let mut now = time.now();
    marker.trace.span.0 = now;
    let early = time.is_early();
    // When the next slot begins. Until then a block costs two comparisons.
    let mut until = 0;
    loop {
        if now >= until {
            let mut current = marker.slot_at(schedule, now);
            let fenced = early && (fences == Fences::Slots || marker.begins_window(current));
            if fenced {
                let arrived = time.stamp();
                // An interruption meanwhile shows as a long block.
                marker.longest = marker.longest.max(arrived - now);
                now = arrived;
                current = marker.slot_at(schedule, now);
            }
            if waiting && current >= SETTLE_WINDOWS * marker.trace.slots {
                waiting = false;
                schedule.counters.into_iter().for_each(CounterSwitches::on);
                // Switching belongs to the window before, which does not count.
                now = time.stamp();
                current = marker.slot_at(schedule, now);
                counting = Some((now, work));
            }
            marker.mark(current, now, work, time);
            if now >= end {
                let mut trace = marker.trace;
                if let (Some(counters), Some(before), Some((from, done))) = (schedule.counters, before, counting) {
                    counters.off();
                    trace.count = Some(BurstCount { before, after: counters.read(), ticks: now - from, work: work - done });
                }
                trace.span.1 = now;
                trace.ghz = time.ghz();
                return trace;
            }
            until = schedule.start + (schedule.window * (current as u64 + 1)).div_ceil(marker.trace.slots as u64);
            now = marker.resume(if fenced { time.stamp() } else { time.now() });
        }
        block(units);
        work += units as u64;
        let took = time.now() - now;
        now += took;
        // Blocks begin at multiples of their length, so that they do not end just after a pass over a buffer of a power of two.
        if took < short && work.is_multiple_of(2 * units as u64) {
            units *= 2;
        }
        marker.longest = marker.longest.max(took);
    }
}

/// Time common to all spans over the longest one; `None` for fewer than two.
pub(crate) fn coverage(spans: &[(u64, u64)]) -> Option<f64> {
    if spans.len() < 2 {
        return None;
    }
    let first_end = spans.iter().map(|s| s.1).min()?;
    let last_start = spans.iter().map(|s| s.0).max()?;
    let longest = spans.iter().map(|s| s.1.saturating_sub(s.0)).max()?;
    Some(first_end.saturating_sub(last_start) as f64 / longest.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use memgauge_model::protocol::{SWEEP_WINDOW, WINDOW};
    use memgauge_model::stats;
    use memgauge_testing::not_tested;

    use super::super::pipeline::Pipeline;
    use super::super::slots::{BurstWindows, Role};
    use super::*;

    /// Nanoseconds that a unit of work takes.
    const UNIT_NS: f64 = 100.0;

    /// Ticks per unit in each window of a thread whose units take [`UNIT_NS`], by a clock that takes `reading_ns` to read, and whether the
    /// thread was on its CPU.
    fn measured(reading_ns: u64, window: Duration) -> (Vec<f64>, bool) {
        let (clock, fast) = (Clock::slowed(reading_ns), Clock::slowed(0));
        let ticks = clock.to_ticks(window);
        let schedule = Schedule { clock, start: clock.now(), window: ticks, windows: 4, counters: None };
        let trace = run_until_end(&schedule, BLOCK_NS, Fences::Slots, |units| {
            let until = fast.now() + (UNIT_NS * units as f64) as u64;
            while fast.now() < until {}
        });
        let found = BurstWindows::new(&[&trace], Role::Chase, 1..4, 1.0, 0);
        (found.windows.iter().map(|threads| threads[0].0 as f64 / threads[0].1 as f64).collect(), found.clean)
    }

    #[test]
    fn samples_are_right_however_long_a_reading_of_the_clock_takes() {
        for reading_ns in [5_000u64, 20_000] {
            for window in [WINDOW, shortest_window(SWEEP_WINDOW, reading_ns as f64)] {
                let bursts: Vec<_> = (0..5).map(|_| measured(reading_ns, window)).collect();
                let clean: Vec<_> = bursts.iter().filter(|(_, clean)| *clean).collect();
                // If many were interrupted, some of the others may be disturbed as well.
                if clean.len() < 4 {
                    not_tested!("{} of {} bursts of {window:?} were interrupted", bursts.len() - clean.len(), bursts.len());
                }
                let median = stats::median(&clean.into_iter().flat_map(|(samples, _)| samples.clone()).collect::<Vec<f64>>()).unwrap();
                assert!((median / UNIT_NS - 1.0).abs() < 0.011, "{median} ns in {window:?} where a reading takes {reading_ns} ns");
            }
        }
        assert_eq!(shortest_window(SWEEP_WINDOW, 30.0), SWEEP_WINDOW);
    }

    /// A clock whose fence is none.
    struct Unfenced<'a, T: ThreadClock>(&'a T);

    impl<T: ThreadClock> ThreadClock for Unfenced<'_, T> {
        fn now(&self) -> u64 {
            self.0.now()
        }

        fn stamp(&self) -> u64 {
            self.0.now()
        }

        fn is_early(&self) -> bool {
            true
        }

        fn cpu_ns(&self) -> Option<u64> {
            self.0.cpu_ns()
        }

        fn ghz(&self) -> Option<f64> {
            self.0.ghz()
        }
    }

    #[test]
    fn hops_on_their_way_are_in_the_window_that_counts_them() {
        const IN_FLIGHT: u32 = 80;
        // Nanoseconds per hop over those of a hop in the median window. A block is 64 hops.
        let found = |hop_ns: f64, window: Duration, fenced: bool| {
            let clock = Clock::slowed(0);
            let schedule = Schedule { clock, start: 1000, window: clock.to_ticks(window), windows: 12, counters: None };
            let core = Pipeline::new(&clock, 0, IN_FLIGHT, 3.0);
            let block = |units: usize| core.hop(64 * units, hop_ns);
            let trace = match fenced {
                true => run_by(&core, &schedule, BLOCK_NS, Fences::Slots, block),
                false => run_by(&Unfenced(&core), &schedule, BLOCK_NS, Fences::Slots, block),
            };
            let found = BurstWindows::new(&[&trace], Role::Chase, 1..12, 1.0, 1);
            assert!(found.clean && found.left_out == 0.0, "{}", found.left_out);
            let ns: Vec<f64> = found.windows.iter().map(|threads| threads[0].0 as f64 / (64 * threads[0].1) as f64).collect();
            stats::median(&ns).unwrap() / hop_ns
        };
        for (hop_ns, window) in [(5.0, WINDOW), (100.0, WINDOW), (500.0, WINDOW), (100.0, SWEEP_WINDOW), (500.0, SWEEP_WINDOW)] {
            let missing = f64::from(IN_FLIGHT) * hop_ns / window.as_nanos() as f64;
            let (fenced, unfenced) = (found(hop_ns, window, true), found(hop_ns, window, false));
            assert!((fenced - 1.0).abs() < 2e-4, "{fenced} of {hop_ns} ns in {window:?}");
            // The number of hops in a window varies by a block, and readings between slots are in no window.
            assert!((unfenced + missing - 1.0).abs() < 0.2 * missing + 5e-5, "{unfenced} of {hop_ns} ns in {window:?}, {missing} missing");
        }
    }

    #[test]
    fn a_thread_notes_each_slot_and_its_cpu_time_in_each_window() {
        let clock = Clock::calibrate(std::path::Path::new("/"));
        let window = clock.to_ticks(std::time::Duration::from_millis(5));
        let schedule = Schedule { clock, start: clock.now(), window, windows: 3, counters: None };
        let trace = run_until_end(&schedule, BLOCK_NS, Fences::Slots, |units| _ = memgauge_kernels::dependent_adds(100 * units as u64));
        assert_eq!((trace.slots, trace.marks.len()), (20, 61));
        let marks: Vec<&Mark> = trace.marks.iter().flatten().collect();
        assert!(marks.is_sorted_by(|a, b| a.ticks <= a.resumed && a.resumed < b.ticks && a.work <= b.work));
        // Other processes may take the CPU for whole windows.
        let told = marks.iter().filter(|mark| mark.cpu_ns.is_some()).count();
        assert!((2..=4).contains(&told), "{told}");
        assert!(trace.ghz.is_some_and(|ghz| ghz > 0.05));
    }
}
