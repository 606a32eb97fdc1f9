//! One burst: threads start together at a clock deadline, count their work into windows that they pick by reading the clock at block
//! boundaries, and stop at a deadline. No thread samples another, so nothing disturbs what is measured.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memgauge_core::pattern::ChaseLayout;
use memgauge_core::units::IdSet;
use memgauge_kernels as kernels;
use memgauge_os::clock::Clock;
use memgauge_os::memory::Buffer;

use crate::counting::{Count, Switches};
use crate::load::Load;
use crate::session::{CellError, LEAD, LEAD_PER_THREAD, SETTLE_WINDOWS, Session, WINDOW};
use crate::team::{Disturbance, Done, Job};

/// Threads read the clock about this often. A reading costs some 10 ns and a fence after non-temporal stores some 150 ns, so both together
/// below 1 %; a window is 250 times longer.
pub(crate) const BLOCK_NS: f64 = 20_000.0;
/// A string instruction is one block, and stops reading the lines that it is to write once it is long: on Zen 5 from the size of the
/// last-level cache on, which makes copies 1.2 and fills 1.3 times as fast. 4 ms reach that (45 to 90 MB a stream) and still give each window
/// of 5 ms its look at the clock.
pub(crate) const STRING_BLOCK_NS: f64 = 4_000_000.0;

/// Reading a worker's counters before the burst takes this long at most, the memory controllers' on other packages included.
const LEAD_TO_READ: Duration = Duration::from_millis(1);

/// When a burst starts and ends, in clock ticks.
#[derive(Clone, Copy)]
pub(crate) struct Schedule<'a> {
    pub(crate) clock: Clock,
    pub(crate) start: u64,
    pub(crate) window: u64,
    pub(crate) windows: usize,
    /// Hardware counters of the worker that has this schedule.
    pub(crate) counters: Option<Switches<'a>>,
}

impl Schedule<'_> {
    fn end(&self) -> u64 {
        self.start + self.window * self.windows as u64
    }

    fn wait_for_start(&self) {
        while self.clock.now() < self.start {
            kernels::spin_hint();
        }
    }
}

/// What a thread did: how much work was done when it first looked at the clock in each window.
pub(crate) struct Trace {
    /// (ticks, work) at the first block boundary in window 0, 1 … and after the end. `None`: the thread never looked in that window.
    marks: Vec<Option<(u64, u64)>>,
    began: u64,
    ended: u64,
    /// What was counted from the first counted window's beginning to the end.
    count: Option<Count>,
}

impl Trace {
    fn new(windows: usize) -> Self {
        Self { marks: vec![None; windows + 1], began: 0, ended: 0, count: None }
    }

    /// What the worker's hardware counters showed.
    pub(crate) fn count(&self) -> Option<&Count> {
        self.count.as_ref()
    }

    /// Ticks and work of a window, when the thread looked at the clock in it and in the next.
    pub(crate) fn window(&self, index: usize) -> Option<(u64, u64)> {
        let (from, to) = (self.marks.get(index).copied().flatten()?, self.marks.get(index + 1).copied().flatten()?);
        (to.0 > from.0).then(|| (to.0 - from.0, to.1 - from.1))
    }

    /// Ticks and work of the whole burst.
    pub(crate) fn whole(&self) -> Option<(u64, u64)> {
        let mut marks = self.marks.iter().flatten();
        let (from, to) = (marks.next()?, marks.next_back()?);
        (to.0 > from.0).then(|| (to.0 - from.0, to.1 - from.1))
    }

    /// A trace with these marks.
    #[cfg(test)]
    pub(crate) fn of(marks: Vec<Option<(u64, u64)>>) -> Self {
        Self { marks, began: 0, ended: 0, count: None }
    }

    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }
}

/// Runs `block` until the schedule's end. `block(units)` does that many units of work; units double from 1 until a block takes `block_ns`,
/// whatever the speed of the memory. The trace counts units.
pub(crate) fn keep_count(schedule: &Schedule<'_>, block_ns: f64, mut block: impl FnMut(usize)) -> Trace {
    let clock = &schedule.clock;
    let mut trace = Trace::new(schedule.windows);
    let (mut work, mut units, end) = (0, 1, schedule.end());
    let short = (block_ns / clock.ns(1)) as u64 / 2;
    let before = schedule.counters.map(|c| c.read());
    // Ticks and work when the counters were switched on.
    let mut counting: Option<(u64, u64)> = None;
    let mut waiting = schedule.counters.is_some();
    schedule.wait_for_start();
    let mut now = clock.now();
    trace.began = now;
    // Where the next window begins. Between two such moments a block costs one comparison.
    let mut until = 0;
    let place = |now: u64| ((now - schedule.start) / schedule.window).min(schedule.windows as u64) as usize;
    loop {
        if now >= until {
            let mut current = place(now);
            if waiting && current >= SETTLE_WINDOWS {
                waiting = false;
                schedule.counters.iter().for_each(Switches::on);
                // The switching belongs to the window before, which nobody counts.
                now = clock.now();
                current = place(now);
                counting = Some((now, work));
            }
            trace.marks[current] = Some((now, work));
            if now >= end {
                if let (Some(counters), Some(before), Some((from, done))) = (schedule.counters, before, counting) {
                    counters.off();
                    trace.count = Some(Count { before, after: counters.read(), ticks: now - from, work: work - done });
                }
                trace.ended = now;
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

/// Batches that a timed chase keeps of one burst, in memory that was touched before: 2 MiB. Later ones are chased and not timed.
const MOST_BATCHES: usize = 1 << 18;
/// Batches without a hop that tell what reading the clock costs.
const EMPTY_BATCHES: usize = 1001;

/// What a chase that times its batches of hops leaves.
#[derive(Clone)]
pub(crate) struct Batches {
    hops: u32,
    ticks: Vec<u64>,
    taken: usize,
    overhead: u64,
}

impl Batches {
    /// The ticks of each batch, and what reading the clock added to each.
    pub(crate) fn ticks(&self) -> (&[u64], u64) {
        (&self.ticks[..self.taken], self.overhead)
    }
}

/// A pointer chase that goes on where it stopped.
#[derive(Clone)]
pub(crate) struct Chase {
    position: usize,
    /// Where the buffer begins and which lines are chased, where all of them are to be touched before a burst.
    touched: Option<(usize, ChaseLayout)>,
    batches: Option<Box<Batches>>,
    /// Keeps the memory that `position` points to.
    _buffer: Arc<Buffer>,
}

impl Chase {
    /// A chase whose ring of pointers was written into `buffer` and contains the line at `offset`.
    pub(crate) fn new(buffer: Arc<Buffer>, offset: usize) -> Self {
        Self { position: buffer.as_ptr() as usize + offset, touched: None, batches: None, _buffer: buffer }
    }

    /// The same chase, whose bursts begin by loading every line of `layout`, by which its ring was written: loads that wait for none another
    /// bring into the caches in a short time what the chase would in a lap. What else ran on the CPU since the last burst is then no matter.
    pub(crate) fn touching(self, layout: ChaseLayout) -> Self {
        Self { touched: Some((self._buffer.as_ptr() as usize, layout)), ..self }
    }

    /// Loads every line, where that was asked for.
    fn touch(&self) {
        if let Some((base, layout)) = &self.touched {
            for line in layout.lines() {
                // SAFETY: a line of the ring, which was laid out within the buffer.
                unsafe { ((base + line) as *const u64).read_volatile() };
            }
        }
    }

    /// Where it is.
    pub(crate) fn position(&self) -> *const u8 {
        self.position as *const u8
    }

    /// The same chase, timing batches of `hops` in its next burst.
    pub(crate) fn timing(self, hops: u32) -> Self {
        // Not zeros: those would be mapped only when they are written, in the midst of measuring.
        let ticks = vec![1; MOST_BATCHES];
        Self { batches: Some(Box::new(Batches { hops, ticks, taken: 0, overhead: 0 })), ..self }
    }

    /// The chase without its batches, and those.
    pub(crate) fn into_parts(mut self) -> (Self, Option<Box<Batches>>) {
        let batches = self.batches.take();
        (self, batches)
    }

    /// Chases exactly `hops` hops. Returns the ticks that they took and the chase where it stopped.
    pub(crate) fn exactly(mut self, hops: u64, clock: &Clock) -> (u64, Self) {
        let start = self.position as *const u8;
        let unrolled = hops as usize / kernels::CHASE_UNROLL * kernels::CHASE_UNROLL;
        let from = clock.stamp();
        // SAFETY: as in `run`.
        let end = unsafe { kernels::chase_exact(kernels::chase(start, unrolled), hops as usize - unrolled) };
        let ticks = clock.stamp().saturating_sub(from);
        self.position = end as usize;
        (ticks, self)
    }

    /// Chases in timed batches for the whole burst; the trace's work is batches.
    fn run_timed(mut self, schedule: &Schedule<'_>, mut batches: Box<Batches>) -> (Trace, Self) {
        let mut position = self.position as *const u8;
        let hops = batches.hops as usize;
        let clock = schedule.clock;
        let Batches { ticks, taken, .. } = batches.as_mut();
        let trace = keep_count(schedule, BLOCK_NS, |units| {
            let timed = units.min(ticks.len() - *taken);
            let room = &mut ticks[*taken..*taken + timed];
            // SAFETY: as in `run`.
            position = unsafe { kernels::chase_exact(timed_chase(position, hops, room, &clock), (units - timed) * hops) };
            *taken += timed;
        });
        let mut empty = [0; EMPTY_BATCHES];
        // SAFETY: as in `run`; no hop is made.
        unsafe { timed_chase(position, 0, &mut empty, &clock) };
        empty.sort_unstable();
        batches.overhead = empty[EMPTY_BATCHES / 2];
        self.position = position as usize;
        self.batches = Some(batches);
        (trace, self)
    }

    /// Chases for the whole burst; the trace's work is [`kernels::CHASE_UNROLL`] hops. Returns the chase where it stopped.
    pub(crate) fn run(mut self, schedule: &Schedule<'_>) -> (Trace, Self) {
        if let Some(batches) = self.batches.take() {
            return self.run_timed(schedule, batches);
        }
        let mut schedule = *schedule;
        if self.touched.is_some() {
            self.touch();
            // A chase that touches is alone, so nobody waits for it: it starts when it is ready.
            schedule.start = schedule.start.max(schedule.clock.now());
        }
        let mut position = self.position as *const u8;
        let trace = keep_count(&schedule, BLOCK_NS, |units| {
            // SAFETY: `position` is a line of the ring in a buffer that lives as long as `self`; every pointer of the ring leads to
            // another line of it.
            position = unsafe { kernels::chase(position, units * kernels::CHASE_UNROLL) };
        });
        self.position = position as usize;
        (trace, self)
    }
}

/// [`kernels::chase_timed`] by the clock in use, which may be none of the CPU's.
///
/// # Safety
/// As there.
unsafe fn timed_chase(start: *const u8, hops: usize, batches: &mut [u64], clock: &Clock) -> *const u8 {
    if clock.is_counter() {
        // SAFETY: the caller's promise is the function's requirement.
        return unsafe { kernels::chase_timed(start, hops, batches) };
    }
    let mut at = start;
    for batch in batches {
        let from = clock.stamp();
        // SAFETY: as above.
        at = unsafe { kernels::chase_exact(at, hops) };
        kernels::fence();
        *batch = clock.stamp().saturating_sub(from);
    }
    at
}

/// Says that something has ended, however it ended.
pub(crate) struct Ended(Arc<AtomicBool>);

impl Ended {
    /// One that tells, and what it tells.
    pub(crate) fn new() -> (Self, Arc<AtomicBool>) {
        let told = Arc::new(AtomicBool::new(false));
        (Self(told.clone()), told)
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Keeps a CPU busy without touching memory until something has ended.
pub(crate) fn keep_awake_until(ended: &AtomicBool) {
    while !ended.load(Ordering::Acquire) {
        kernels::dependent_adds(1000);
    }
}

/// Keeps a CPU busy without touching memory.
fn keep_awake(schedule: &Schedule<'_>) -> Trace {
    keep_count(schedule, BLOCK_NS, |units| {
        kernels::dependent_adds(1000 * units as u64);
    })
}

/// Threads of one burst and what they left.
pub(crate) struct BurstResult {
    /// The chase's trace, and the chase to go on with.
    pub(crate) chase: Option<(Trace, Chase)>,
    /// What the loaders did, in their order.
    pub(crate) loads: Vec<Loaded>,
    pub(crate) disturbance: Disturbance,
    /// Time in which all measured threads ran, over the longest one's; `None` for a single thread.
    pub(crate) coverage: Option<f64>,
    /// Share of the CPUs' time that the hypervisor gave to others; `None` outside of virtual machines.
    pub(crate) stolen: Option<f64>,
}

/// A loader after a burst.
pub(crate) struct Loaded {
    pub(crate) cpu: u32,
    pub(crate) trace: Trace,
    /// To go on with.
    pub(crate) load: Load,
}

impl BurstResult {
    /// The loads, to go on with.
    pub(crate) fn take_loads(&mut self) -> Vec<(u32, Load)> {
        self.loads.drain(..).map(|l| (l.cpu, l.load)).collect()
    }
}

enum Left {
    Chased(Box<(Trace, Chase)>),
    Loaded(Box<Loaded>),
    Kept,
}

impl Session<'_> {
    /// Runs a chase and loaders together for `windows` counted windows.
    pub(crate) fn burst(&mut self, chase: Option<(u32, Chase)>, loads: Vec<(u32, Load)>, windows: usize) -> Result<BurstResult, CellError> {
        self.burst_of(chase, loads, windows, WINDOW)
    }

    /// The same with windows of another length.
    pub(crate) fn burst_of(
        &mut self,
        chase: Option<(u32, Chase)>,
        loads: Vec<(u32, Load)>,
        windows: usize,
        window: Duration,
    ) -> Result<BurstResult, CellError> {
        let windows = windows + SETTLE_WINDOWS;
        let busy: IdSet = chase.iter().map(|(cpu, _)| *cpu).chain(loads.iter().map(|(cpu, _)| *cpu)).collect();
        let keepers = self.keepers(&busy);
        let threads = busy.len() + keepers.len();
        self.open_counters(&busy)?;
        // What memory did belongs to the bandwidth, where there is one.
        let for_system = loads.first().map(|(cpu, _)| *cpu).or(chase.as_ref().map(|(cpu, _)| *cpu));
        let counters = busy.iter().filter_map(|cpu| Some((cpu, self.bench.as_ref()?.of(cpu, Some(cpu) == for_system)?)));
        let mut counters: BTreeMap<u32, _> = counters.collect();
        let clock = self.clock();
        let lead = if counters.is_empty() { LEAD } else { LEAD + LEAD_TO_READ };
        let start = clock.now() + clock.to_ticks(lead + LEAD_PER_THREAD * threads as u32);
        let schedule = Schedule { clock, start, window: clock.to_ticks(window), windows, counters: None };
        let mut jobs: Vec<(u32, Job<Left>)> = Vec::with_capacity(threads);
        // A chase that touches begins late, and so ends after the schedule.
        let (ended, told) = Ended::new();
        let late = chase.as_ref().is_some_and(|(_, chase)| chase.touched.is_some());
        if let Some((cpu, chase)) = chase {
            let counters = counters.remove(&cpu);
            jobs.push((
                cpu,
                Box::new(move || {
                    // Told of when this job ends, or is dropped because it cannot run.
                    let _ended = ended;
                    let switches = counters.as_ref().map(|(own, system)| Switches { own, system: system.as_deref() });
                    let (trace, chase) = chase.run(&Schedule { counters: switches, ..schedule });
                    Left::Chased(Box::new((trace, chase)))
                }),
            ));
        }
        for (cpu, load) in loads {
            let counters = counters.remove(&cpu);
            jobs.push((
                cpu,
                Box::new(move || {
                    let switches = counters.as_ref().map(|(own, system)| Switches { own, system: system.as_deref() });
                    let (trace, load) = load.run(&Schedule { counters: switches, ..schedule });
                    Left::Loaded(Box::new(Loaded { cpu, trace, load }))
                }),
            ));
        }
        for cpu in keepers.iter() {
            let told = late.then(|| told.clone());
            jobs.push((
                cpu,
                Box::new(move || {
                    keep_awake(&schedule);
                    told.iter().for_each(|told| keep_awake_until(told));
                    Left::Kept
                }),
            ));
        }
        let length = window * windows as u32;
        let before = self.stolen(&busy);
        let done = self.team.run_most(jobs, busy.len(), length + self.patience())?;
        let stolen = self.stolen_since(before, &busy, length);
        self.spent(length);
        self.worked(&busy);
        Ok(BurstResult { stolen, ..gather(done) })
    }
}

fn gather(done: Vec<Done<Left>>) -> BurstResult {
    let mut result = BurstResult { chase: None, loads: Vec::new(), disturbance: Disturbance::default(), coverage: None, stolen: None };
    let mut spans = Vec::new();
    for Done { value, disturbance } in done {
        match value {
            Left::Chased(chased) => {
                let (trace, chase) = *chased;
                spans.push((trace.began(), trace.ended()));
                result.chase = Some((trace, chase));
            }
            Left::Loaded(loaded) => {
                spans.push((loaded.trace.began(), loaded.trace.ended()));
                result.loads.push(*loaded);
            }
            // What befalls a thread that only keeps a package awake does not bear on the numbers.
            Left::Kept => continue,
        }
        result.disturbance.add(&disturbance);
    }
    result.coverage = coverage(&spans);
    result
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
    use super::*;
    use crate::team::{Team, TeamError};

    #[test]
    fn who_is_awake_for_a_thread_that_cannot_run_ends() {
        let cpu = memgauge_os::cpu::current_cpu().unwrap();
        let (ended, told) = Ended::new();
        let jobs: Vec<(u32, Job<()>)> = vec![(1_000_000, Box::new(move || drop(ended))), (cpu, Box::new(move || keep_awake_until(&told)))];
        let result = Team::default().run(jobs, Duration::from_secs(20));
        assert!(matches!(result, Err(TeamError::Pin { cpu: 1_000_000, .. })), "and not one that did not finish");
    }
}
