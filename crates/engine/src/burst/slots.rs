//! The part of a burst that counts: the slots of its windows during which every thread was on its CPU all the time.
//!
//! A thread that is taken off its CPU, by the scheduler, the hypervisor or firmware, finds that one of its blocks took much longer than the
//! others. That slot is left out for all threads, because the others had its share of the memory, and so is the next one, because its caches
//! are cold. Time off the CPU that shows in no long block shows in the thread's CPU time over a window.
//!
//! A long block during which the thread was on its CPU is a stall: its memory did not answer. Stalls are in the bandwidth of loaders. A chase
//! leaves them out, because its samples are of the time that a load usually takes, and the result says how much of the time they took.

use std::ops::Range;

use memgauge_model::protocol::{GUARD_SLOTS, LONG_BLOCK, MAX_AWAY, MIN_CLEAN, SLOT, WINDOW};
use memgauge_model::stats;
use memgauge_os::clock::Clock;

use super::absence::Absence;
use super::result::{BurstResult, BurstShape};
use super::windows::{Mark, Trace};

/// The work of a burst's threads in the windows that count.
#[derive(Default)]
pub(crate) struct BurstWindows {
    /// Ticks and work by window, and in each by thread.
    pub(crate) windows: Vec<Vec<(u64, u64)>>,
    /// Nothing of it was measured while a thread was off its CPU.
    pub(crate) clean: bool,
    /// Share of the counted time that was left out, 0 to 1. If the windows are not clean: share of their time during which threads were off
    /// their CPUs, which is in the samples; 1 if the threads never read the clock together, so that nothing shows it.
    pub(crate) left_out: f64,
    /// Share of the counted time during which memory did not answer threads that were on their CPUs, 0 to 1; `None` if the kernel does not
    /// report CPU times.
    pub(crate) stalled: Option<f64>,
    /// The first thread's work that counts: for each interval, the work done before it and the work done at its end.
    pub(crate) first_work: Vec<Range<u64>>,
}

/// From a mark to the next one.
#[derive(Clone, Copy)]
struct Interval {
    ticks: u64,
    /// Work done at its beginning.
    from: u64,
    work: u64,
}

/// A thread's marks of the slots that are judged together.
#[derive(Clone, Copy)]
struct Part {
    first: Mark,
    /// Ticks that noting the other marks took, which are in no sample.
    noting: u64,
    block: Block,
}

/// A thread's intervals, and which of them count.
struct Thread<'a> {
    trace: &'a Trace,
    /// `None`: interrupted, or just after an interruption.
    clean: Vec<Option<Interval>>,
    /// Intervals that count for others and not for this thread: those of a chase during which its memory did not answer, and just after them.
    stalled: Vec<bool>,
    /// The time off the CPU in each window.
    windows: Vec<Option<OffCpu>>,
}

/// The role of a thread. It decides which time the thread's samples leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Chase,
    Loader,
}

impl BurstWindows {
    /// Of the threads that measured together, by their traces; `counted` are the windows that count, and a tick takes `tick_ns`. After an
    /// interruption `guard` slots are left out. A chase is the first.
    ///
    /// If too few slots are left in every window, windows count as they are, interruptions included. If no window has clock readings of all threads,
    /// the whole burst is one.
    pub(crate) fn new(traces: &[&Trace], first: Role, counted: Range<usize>, tick_ns: f64, guard: usize) -> Self {
        let slots = traces.iter().map(|trace| trace.slots).max().unwrap_or(1);
        let usual: Vec<f64> = traces.iter().map(|trace| usual_block(trace, counted.start)).collect();
        // Blocks of half a slot and more leave too few marks: such a burst is judged window by window.
        let coarse = slots == 1 || usual.iter().any(|block| 2.0 * block * tick_ns > SLOT.as_nanos() as f64);
        let (each, guard) = if coarse { (slots, 0) } else { (1, guard) };
        let role = |index| if index == 0 { first } else { Role::Loader };
        let threads = traces.iter().zip(usual).enumerate();
        let threads: Vec<Thread<'_>> =
            threads.map(|(index, (trace, usual))| Thread::new(trace, role(index), usual, (each, guard), tick_ns)).collect();
        let stalled = stalled(&threads, first, &counted);
        let in_window = slots / each;
        let min = (MIN_CLEAN * in_window as f64).ceil() as usize;
        let (mut windows, mut left, mut first_work) = (Vec::new(), 0, Vec::new());
        for window in counted.clone() {
            if threads.iter().any(|thread| thread.unseen(window)) {
                continue;
            }
            let common: Vec<usize> = (window * in_window..(window + 1) * in_window).filter(|slot| counts(&threads, *slot)).collect();
            // A chase has samples of its own.
            let of_first = common.iter().filter(|slot| threads.first().is_none_or(|thread| !thread.stalled[**slot])).count();
            if of_first < min {
                continue;
            }
            left += of_first;
            first_work.extend(threads.iter().take(1).flat_map(|first| first.counting(&common)).map(|i| i.from..i.from + i.work));
            windows.extend(threads.iter().map(|thread| thread.sum(&common)).collect::<Option<Vec<_>>>());
        }
        let all = (counted.len() * in_window).max(1);
        if windows.is_empty() {
            return Self { stalled, ..with_interruptions(&threads, counted) };
        }
        let left_out = 1.0 - left as f64 / all as f64;
        Self { windows, clean: true, left_out, stalled, first_work }
    }
}

impl BurstResult {
    /// The work of its threads in the windows that count: first the chase's, if there is one, then the loaders'.
    pub(crate) fn windows(&self, clock: &Clock, shape: BurstShape) -> BurstWindows {
        let traces: Vec<&Trace> = self.chase.iter().map(|(trace, _)| trace).chain(self.loads.iter().map(|l| &l.trace)).collect();
        // Short windows are those of working sets, which must fill their caches again: that takes about a window.
        let guard = if shape.window < WINDOW { (shape.window.as_nanos() / SLOT.as_nanos()) as usize } else { GUARD_SLOTS };
        let first = if self.chase.is_some() { Role::Chase } else { Role::Loader };
        BurstWindows::new(&traces, first, shape.counted_windows(), clock.ns(1), guard)
    }
}

/// Whether a slot counts: nearly all threads were on their CPUs.
fn counts(threads: &[Thread<'_>], slot: usize) -> bool {
    let away = threads.iter().filter(|thread| thread.clean.get(slot).is_none_or(Option::is_none)).count();
    away as f64 <= MAX_AWAY * threads.len() as f64
}

/// How long a thread's longest block in a slot usually is, in ticks: the lower quartile, so that it holds where most slots were interrupted.
/// Before the `first` window that counts blocks are still growing.
fn usual_block(trace: &Trace, first: usize) -> f64 {
    let longest: Vec<f64> = trace.marks.iter().skip(first * trace.slots).flatten().map(|mark| mark.longest as f64).collect();
    // The last mark is at the end: no block follows it.
    let blocks = &longest[..longest.len().saturating_sub(1)];
    stats::quantile(&stats::sorted(blocks), 0.25).unwrap_or(f64::INFINITY)
}

/// The kind of the block at a thread's mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Usual,
    /// The thread was on its CPU, and its memory did not answer.
    Stalled,
    Away,
}

/// Of each mark of a trace, what its longest block is, and what is known of each window, where a block usually takes `usual` ticks.
fn blocks(trace: &Trace, usual: f64, tick_ns: f64) -> (Vec<Block>, Vec<Option<OffCpu>>) {
    let slots = trace.slots.max(1);
    let mut blocks = vec![Block::Usual; trace.marks.len()];
    let window = |window: usize| {
        let from = window * slots;
        let marks = trace.marks[from..(from + slots).min(trace.marks.len())].iter().enumerate();
        let long = marks.filter_map(|(slot, mark)| {
            let longest = mark.as_ref()?.longest as f64;
            (longest > LONG_BLOCK * usual).then_some((from + slot, (longest - usual) * tick_ns))
        });
        let mut long: Vec<(usize, f64)> = long.collect();
        long.sort_by(|a, b| b.1.total_cmp(&a.1));
        let ends = trace.window_mark(window).zip(trace.window_mark(window + 1));
        let took_ns = ends.map(|(first, last)| last.ticks.saturating_sub(first.ticks) as f64 * tick_ns);
        let ran = ends.and_then(|(first, last)| Some(last.cpu_ns?.saturating_sub(first.cpu_ns?) as f64));
        let lost = took_ns.zip(ran).map(|(took, ran)| took - ran);
        let excess: Vec<f64> = long.iter().map(|(_, excess)| *excess).collect();
        let absence = Absence::of(lost, &excess);
        for (nth, (mark, _)) in long.iter().enumerate() {
            blocks[*mark] = if nth < absence.away { Block::Away } else { Block::Stalled };
        }
        let (away, stalled) = excess.split_at(absence.away);
        let stalled_ns = lost.map(|_| stalled.iter().sum());
        Some(OffCpu { took_ns: took_ns?, seen_ns: away.iter().sum(), unseen_ns: absence.unseen, stalled_ns })
    };
    let windows = (0..trace.marks.len().div_ceil(slots)).map(window).collect();
    (blocks, windows)
}

impl<'a> Thread<'a> {
    /// Intervals of `each` slots. An interval counts if the thread was on its CPU during it and during the `guard` intervals before.
    fn new(trace: &'a Trace, role: Role, usual: f64, (each, guard): (usize, usize), tick_ns: f64) -> Self {
        let (blocks, windows) = blocks(trace, usual, tick_ns);
        let part = |(marks, blocks): (&[Option<Mark>], &[Block])| {
            let noting = marks.iter().flatten().skip(1).map(|mark| mark.resumed - mark.ticks).sum();
            let found = [Block::Away, Block::Stalled].into_iter().find(|found| blocks.contains(found));
            marks.iter().flatten().next().map(|first| Part { first: *first, noting, block: found.unwrap_or(Block::Usual) })
        };
        let parts: Vec<Option<Part>> = trace.marks.chunks(each).zip(blocks.chunks(each)).map(part).collect();
        let intervals = parts.len().saturating_sub(1);
        let (mut clean, mut stalled) = (vec![None; intervals], vec![false; intervals]);
        let (mut since_away, mut since_stall) = (guard, guard);
        let mut at = 0;
        while at < intervals {
            // A stall longer than a slot leaves none of the marks that it skips: its interval ends at the next one.
            let next = match parts[at] {
                Some(Part { block: Block::Stalled, .. }) => (at + 1..parts.len()).find(|part| parts[*part].is_some()),
                _ => Some(at + 1),
            };
            let ends = next.and_then(|next| Some((next, parts[at]?, parts[next]?)));
            let uninterrupted = ends.filter(|(_, from, to)| from.block != Block::Away && to.first.ticks > from.first.resumed + from.noting);
            let Some((next, Part { first: from, noting, block }, Part { first: to, .. })) = uninterrupted else {
                since_away = 0;
                at += 1;
                continue;
            };
            since_away += 1;
            since_stall = if block == Block::Stalled { 0 } else { since_stall + 1 };
            let of_chase = role == Role::Chase && (block == Block::Stalled || since_stall <= guard);
            if since_away > guard {
                let whole = Interval { ticks: to.ticks - from.resumed - noting, from: from.work, work: to.work - from.work };
                // All of it is in the first of its slots.
                clean[at..next].fill(Some(Interval { ticks: 0, from: to.work, work: 0 }));
                clean[at] = Some(whole);
            }
            stalled[at..next].fill(of_chase);
            at = next;
        }
        Self { trace, clean, stalled, windows }
    }

    /// Its time off the CPU in a window; `None` without the marks at the window's ends.
    fn off_cpu(&self, window: usize) -> Option<OffCpu> {
        self.windows.get(window).copied().flatten()
    }

    /// Whether the thread was off its CPU in a window for longer than its long blocks show.
    fn unseen(&self, window: usize) -> bool {
        self.off_cpu(window).is_some_and(|off| Absence::is_hidden(off.unseen_ns, off.took_ns))
    }

    /// Its intervals that count for it, of those in `slots`.
    fn counting(&self, slots: &[usize]) -> impl Iterator<Item = Interval> {
        slots.iter().filter(|slot| !self.stalled[**slot]).filter_map(|slot| self.clean[*slot])
    }

    /// Ticks and work in `slots`, without those during which this thread was interrupted; `None` if nothing was done.
    fn sum(&self, slots: &[usize]) -> Option<(u64, u64)> {
        let (ticks, work) = self.counting(slots).fold((0, 0), |(ticks, work), interval| (ticks + interval.ticks, work + interval.work));
        (work > 0).then_some((ticks, work))
    }
}

/// Share of the counted windows' time during which memory did not answer threads that ran: the mean of all threads or, if that is more, the
/// chase's, whose samples are its own. `None` if the kernel does not report CPU times.
fn stalled(threads: &[Thread<'_>], first: Role, counted: &Range<usize>) -> Option<f64> {
    let share = |thread: &Thread<'_>| {
        let known = counted.clone().filter_map(|window| thread.off_cpu(window));
        let (took, stalled) = known.fold((0.0, 0.0), |(took, stalled), off| match off.stalled_ns {
            Some(ns) => (took + off.took_ns, stalled + ns),
            None => (took, stalled),
        });
        (took > 0.0).then(|| stalled / took)
    };
    let shares: Vec<f64> = threads.iter().filter_map(share).collect();
    let chase = threads.first().filter(|_| first == Role::Chase).and_then(share);
    stats::mean(&shares).into_iter().chain(chase).reduce(f64::max)
}

/// A thread's time off the CPU in a window, in nanoseconds: what its long blocks show, and what only its CPU time shows.
#[derive(Debug, Clone, Copy)]
struct OffCpu {
    took_ns: f64,
    seen_ns: f64,
    unseen_ns: f64,
    /// Time in long blocks during which it ran, beyond what they usually take; `None` if the kernel does not report its CPU time.
    stalled_ns: Option<f64>,
}

impl OffCpu {
    fn share(&self) -> f64 {
        ((self.seen_ns + self.unseen_ns) / self.took_ns.max(1.0)).min(1.0)
    }
}

/// The windows in which every thread read the clock, as they are, or else the whole burst.
fn with_interruptions(threads: &[Thread<'_>], counted: Range<usize>) -> BurstWindows {
    let window = |trace: &Trace, index: usize| {
        let (from, to) = (trace.window_mark(index)?, trace.window_mark(index + 1)?);
        Some((to.ticks.saturating_sub(from.resumed), to.work - from.work)).filter(|(ticks, work)| *ticks > 0 && *work > 0)
    };
    let common = |index: &usize| threads.iter().map(|thread| window(thread.trace, *index)).collect::<Option<Vec<_>>>();
    let (read, windows): (Vec<usize>, Vec<_>) = counted.filter_map(|index| Some((index, common(&index)?))).unzip();
    if !windows.is_empty() {
        let share = |thread: &Thread<'_>| {
            let off = read.iter().filter_map(|window| thread.off_cpu(*window));
            stats::mean(&off.map(|off| off.share()).collect::<Vec<_>>())
        };
        let shares: Vec<f64> = threads.iter().filter_map(share).collect();
        // Loaders add up to a bandwidth; a chase, which is the first, is a sample of its own.
        let left_out = stats::mean(&shares).into_iter().chain(shares.first().copied()).fold(0.0, f64::max);
        return BurstWindows { windows, left_out, ..BurstWindows::default() };
    }
    // Of threads that never read the clock together nothing shows how long each was away.
    let whole = threads.iter().map(|thread| thread.trace.whole().filter(|(_, work)| *work > 0)).collect::<Option<Vec<_>>>();
    BurstWindows { windows: whole.into_iter().collect(), left_out: 1.0, ..BurstWindows::default() }
}

#[cfg(test)]
// Lists of time ranges: one may be all there is.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    /// Ticks of a slot and of a block; a tick takes a nanosecond and does a unit of work.
    const SLOT: u64 = super::SLOT.as_nanos() as u64;
    const BLOCK: u64 = 20_000;
    const SLOTS: usize = 20;
    const WINDOWS: usize = 4;

    /// The notes of a thread whose blocks take [`BLOCK`] and do as many units, and which is off its CPU in the `away` spans. `tells`: the kernel
    /// reports its CPU time.
    fn trace(away: &[Range<u64>], tells: bool, block: u64) -> Trace {
        traced(away, &[], tells, block)
    }

    /// The same whose memory does not answer in the `stalls` spans.
    fn traced(away: &[Range<u64>], stalls: &[Range<u64>], tells: bool, block: u64) -> Trace {
        let mut trace = Trace { marks: vec![None; WINDOWS * SLOTS + 1], slots: SLOTS, ..Trace::default() };
        let (mut now, mut work, mut ran, mut last): (u64, u64, u64, Option<usize>) = (0, 0, 0, None);
        loop {
            let slot = ((now / SLOT) as usize).min(WINDOWS * SLOTS);
            if last.is_none_or(|last| slot > last) {
                let first = last.is_none_or(|last| slot / SLOTS > last / SLOTS);
                trace.marks[slot] = Some(Mark { ticks: now, resumed: now, work, longest: 0, cpu_ns: (tells && first).then_some(ran) });
                last = Some(slot);
            }
            if slot == WINDOWS * SLOTS {
                return trace;
            }
            let mut left = block;
            let mut end = now;
            let mut stalled = 0;
            while left > 0 {
                if let Some(span) = stalls.iter().find(|span| span.contains(&end)) {
                    stalled += span.end - end;
                    end = span.end;
                }
                end = away.iter().find(|span| span.contains(&end)).map_or(end, |span| span.end);
                let next = away.iter().chain(stalls).map(|span| span.start).filter(|start| *start > end).min().unwrap_or(u64::MAX);
                let part = left.min(next - end);
                (left, end) = (left - part, end + part);
            }
            let mark = last.and_then(|last| trace.marks[last].as_mut()).unwrap();
            mark.longest = mark.longest.max(end - now);
            (now, work, ran) = (end, work + block, ran + block + stalled);
        }
    }

    /// Units a tick of each window that counts, and what was left out.
    fn rates(traces: &[Trace]) -> (Vec<Vec<f64>>, bool, f64) {
        let traces: Vec<&Trace> = traces.iter().collect();
        let found = BurstWindows::new(&traces, Role::Chase, 1..WINDOWS, 1.0, 1);
        let rates = found.windows.iter().map(|window| window.iter().map(|(ticks, work)| *work as f64 / *ticks as f64).collect());
        (rates.collect(), found.clean, found.left_out)
    }

    #[test]
    fn time_off_the_cpu_is_in_no_sample() {
        assert_eq!(rates(&[trace(&[], true, BLOCK)]), (vec![vec![1.0]; 3], true, 0.0));
        // Off the CPU for 3 ms of every 6, and once for 30 µs.
        let off: Vec<_> = (0..4).map(|i| i * 6_000_000 + 1_000_000..i * 6_000_000 + 4_000_000).chain([4_500_000..4_530_000]).collect();
        for tells in [true, false] {
            let (found, clean, left_out) = rates(&[trace(&off, tells, BLOCK)]);
            assert_eq!((found, clean), (vec![vec![1.0]; 3], true), "whether the kernel tells the CPU time: {tells}");
            assert!((0.4..0.7).contains(&left_out), "{left_out}");
        }
    }

    #[test]
    fn stalls_are_in_the_bandwidth_and_in_no_chase() {
        // For 0.5 ms of every 5 nothing answers, and once the thread is away for 1 ms.
        let stalls: Vec<_> = (0..4).map(|i| i * 5_000_000 + 2_000_000..i * 5_000_000 + 2_500_000).collect();
        let away = [9_000_000..10_000_000];
        let of = |first, trace: &Trace| {
            let found = BurstWindows::new(&[trace], first, 1..WINDOWS, 1.0, 1);
            let rates: Vec<f64> = found.windows.iter().map(|window| window[0].1 as f64 / window[0].0 as f64).collect();
            (stats::mean(&rates).unwrap(), found.clean, found.left_out, found.stalled)
        };
        let told = traced(&away, &stalls, true, BLOCK);
        let (rate, clean, left_out, stalled) = of(Role::Loader, &told);
        assert!(clean && (rate - 0.89).abs() < 0.02 && left_out < 0.12, "{rate}, {left_out} left out");
        assert!(stalled.is_some_and(|share| (share - 0.1).abs() < 0.005), "{stalled:?}");
        let (rate, clean, left_out, stalled) = of(Role::Chase, &told);
        assert!(clean && (rate - 1.0).abs() < 1e-9 && (0.15..0.25).contains(&left_out), "{rate}, {left_out} left out");
        assert!(stalled.is_some_and(|share| (share - 0.1).abs() < 0.005), "{stalled:?}");
        // Nothing tells a stall from time off the CPU.
        let (rate, _, _, stalled) = of(Role::Loader, &traced(&away, &stalls, false, BLOCK));
        assert_eq!((rate, stalled), (1.0, None));
    }

    #[test]
    fn a_slot_counts_only_where_all_threads_were_on() {
        let (first, second) = (vec![6_000_000..9_000_000], vec![11_000_000..14_000_000]);
        let mut traces = vec![trace(&first, true, BLOCK), trace(&second, true, BLOCK)];
        let (found, clean, left_out) = rates(&traces);
        assert_eq!((found.len(), clean), (3, true));
        // Each is away for 12 slots, and the one in which it comes back and the one after it are left out as well.
        assert!((left_out - 28.0 / 60.0).abs() < 0.04, "{left_out}");
        // One of two hundred may be away: its bandwidth is half a percent.
        traces.extend((2..200).map(|_| trace(&[], true, BLOCK)));
        assert!(rates(&traces).2 < 0.01, "{}", rates(&traces).2);
    }

    #[test]
    fn what_is_always_interrupted_is_measured_and_not_clean() {
        // In every slot; only the CPU time shows it where it is short.
        let each = |ns: u64| (0..80).map(|i| i * SLOT + 100_000..i * SLOT + 100_000 + ns).collect::<Vec<_>>();
        let (found, clean, left_out) = rates(&[trace(&each(15_000), true, BLOCK)]);
        assert_eq!((found.len(), clean), (3, false));
        assert!((left_out - 15.0 / 250.0).abs() < 0.005, "time off the CPU that is in the samples: {left_out}");
        assert!(found.iter().all(|rate| rate[0] < 0.95), "{found:?}");
        assert!(rates(&[trace(&each(15_000), false, BLOCK)]).1, "without CPU time it is not seen");
        assert!(!rates(&[trace(&[0..20_000_000], true, BLOCK)]).1);
    }

    #[test]
    fn samples_show_how_much_time_off_the_cpu_is_in_them() {
        // Two of three slots are interrupted, and the third is the one after them.
        let each = |ns: u64| (0..80).filter(|i| i % 3 < 2).map(|i| i * SLOT + 100_000..i * SLOT + 100_000 + ns).collect::<Vec<_>>();
        // The kernel tells nothing.
        let (_, clean, off) = rates(&[trace(&each(60_000), false, BLOCK)]);
        assert!(!clean && (off - 2.0 / 3.0 * 60.0 / 250.0).abs() < 0.02, "{off}");
        // A few of many threads are always away for a moment: none of the slots counts, and hardly any bandwidth is missing.
        let mut many: Vec<Trace> = (0..96).map(|_| trace(&[], false, BLOCK)).collect();
        many.extend((0..4).map(|_| trace(&each(30_000), false, BLOCK)));
        let (found, clean, off) = rates(&many);
        assert!(!clean && found.len() == 3 && off < 0.01, "{off}");
        // The first thread is the chase, where there is one.
        many.rotate_right(4);
        assert!(rates(&many).2 > 0.05, "{}", rates(&many).2);
    }

    #[test]
    fn threads_that_never_read_the_clock_together_leave_one_sample() {
        let of = |traces: &[Trace]| BurstWindows::new(&traces.iter().collect::<Vec<_>>(), Role::Loader, 1..3, 1.0, 1);
        let steady = || Trace::of_windows((0..4).map(|w| Some((w * 100, w * 1000))).collect());
        assert_eq!(of(&[steady(), steady()]).windows, [[(100, 1000); 2]; 2]);
        // On a host with fewer CPUs than its guest a thread may read the clock only when it starts and when all is over.
        let rare = Trace::of_windows(vec![Some((0, 0)), None, None, Some((400, 1000))]);
        let found = of(&[steady(), rare]);
        assert_eq!((found.windows, found.clean), (vec![vec![(300, 3000), (400, 1000)]], false));
        let never = Trace::of_windows(vec![None, None, None, Some((400, 0))]);
        assert!(of(&[steady(), never]).windows.is_empty());
    }

    #[test]
    fn long_blocks_are_judged_by_cpu_time_alone() {
        let long = 4_000_000;
        let (found, clean, left_out) = rates(&[trace(&[], true, long)]);
        assert_eq!((found, clean, left_out), (vec![vec![1.0]; 3], true, 0.0));
        let (found, clean, left_out) = rates(&[trace(&[9_000_000..9_500_000], true, long)]);
        assert_eq!((found, clean), (vec![vec![1.0]; 2], true));
        assert!((left_out - 1.0 / 3.0).abs() < 1e-9, "{left_out}");
    }
}
