//! How a thread measures: it runs blocks of work until a deadline and picks windows by reading the clock at block boundaries.

use memgauge_core::protocol::SETTLE_WINDOWS;
use memgauge_os::clock::Clock;

use super::counters::{BurstCount, CounterSwitches};

/// Threads read the clock about this often. A reading costs some 10 ns and a fence after non-temporal stores some 150 ns, so both together
/// cost less than 1 %; a window is 250 times longer.
pub(crate) const BLOCK_NS: f64 = 20_000.0;
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
        while self.clock.now() < self.start {
            std::hint::spin_loop();
        }
    }
}

/// What a thread did: how much work it had done when it first read the clock in each window.
#[derive(Default)]
pub(crate) struct Trace {
    /// (ticks, work) at the first block boundary in window 0, 1 … and after the end. `None`: the thread did not read the clock in that window.
    pub(crate) marks: Vec<Option<(u64, u64)>>,
    /// The clock at the beginning and at the end.
    pub(crate) span: (u64, u64),
    /// Hardware events from the beginning of the first counted window to the end.
    pub(crate) count: Option<BurstCount>,
}

impl Trace {
    /// Ticks and work of a window, where the thread read the clock in it and in the next one.
    pub(crate) fn window(&self, index: usize) -> Option<(u64, u64)> {
        let (from, to) = (self.marks.get(index).copied().flatten()?, self.marks.get(index + 1).copied().flatten()?);
        (to.0 > from.0).then(|| (to.0 - from.0, to.1 - from.1))
    }

    /// A thread that did so many units of work in each window from `start` on.
    #[cfg(feature = "simulate")]
    pub(crate) fn of_windows(start: u64, window: u64, units: &mut dyn Iterator<Item = f64>) -> Self {
        let mut marks = vec![Some((start, 0))];
        let (mut at, mut work) = (start, 0.0);
        for units in units {
            (at, work) = (at + window, work + units);
            marks.push(Some((at, work as u64)));
        }
        Self { marks, span: (start, at), count: None }
    }

    /// Ticks and work of the whole burst.
    pub(crate) fn whole(&self) -> Option<(u64, u64)> {
        let mut marks = self.marks.iter().flatten();
        let (from, to) = (marks.next()?, marks.next_back()?);
        (to.0 > from.0).then(|| (to.0 - from.0, to.1 - from.1))
    }
}

/// Runs `block` until the schedule's end. `block(units)` does that many units of work. Units double from 1 until a block takes `block_ns`,
/// whatever the speed of the memory. The trace counts units.
pub(crate) fn run_until_end(schedule: &Schedule<'_>, block_ns: f64, mut block: impl FnMut(usize)) -> Trace {
    let clock = &schedule.clock;
    let mut trace = Trace { marks: vec![None; schedule.windows + 1], ..Trace::default() };
    let (mut work, mut units, end) = (0, 1, schedule.end());
    let short = (block_ns / clock.ns(1)) as u64 / 2;
    let before = schedule.counters.map(|c| c.read());
    // Ticks and work when the counters were switched on.
    let mut counting: Option<(u64, u64)> = None;
    let mut waiting = schedule.counters.is_some();
    schedule.wait_for_start();
    let mut now = clock.now();
    trace.span.0 = now;
    // When the next window begins. Until then a block costs one comparison.
    let mut until = 0;
    let window_at = |now: u64| ((now - schedule.start) / schedule.window).min(schedule.windows as u64) as usize;
    loop {
        if now >= until {
            let mut current = window_at(now);
            if waiting && current >= SETTLE_WINDOWS {
                waiting = false;
                schedule.counters.into_iter().for_each(CounterSwitches::on);
                // Switching belongs to the window before, which does not count.
                now = clock.now();
                current = window_at(now);
                counting = Some((now, work));
            }
            trace.marks[current] = Some((now, work));
            if now >= end {
                if let (Some(counters), Some(before), Some((from, done))) = (schedule.counters, before, counting) {
                    counters.off();
                    trace.count = Some(BurstCount { before, after: counters.read(), ticks: now - from, work: work - done });
                }
                trace.span.1 = now;
                return trace;
            }
            until = schedule.start + schedule.window * (current as u64 + 1);
        }
        block(units);
        work += units as u64;
        let before = now;
        now = clock.now();
        if now - before < short {
            units *= 2;
        }
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
