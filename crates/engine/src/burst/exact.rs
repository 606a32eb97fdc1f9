//! An exact number of hops, timed as a whole. Blocks during which the thread was off its CPU are left out.

use std::time::Duration;

use memgauge_kernels as kernels;
use memgauge_model::protocol::{LONG_BLOCK, MIN_CLEAN, SETTLE_HOPS};
use memgauge_os::clock::Clock;

use super::absence::Absence;
use super::windows::{BLOCK_NS, ThreadClock, shortest_block};
use crate::cutoff::Cutoff;

/// Before the later parts of a chase its thread has slept for a moment only. It is warmed up for this share of the last part's time.
const SETTLE_AGAIN: f64 = 0.05;

/// How long a chase is warmed up again after a part that took `part_ns`.
pub(crate) fn settle_again(part_ns: f64) -> Duration {
    Duration::from_secs_f64((SETTLE_AGAIN * part_ns / 1e9).min(SETTLE_HOPS.as_secs_f64()))
}

/// Long blocks that an exact chase remembers: a second has 170 of them if others take half of it in pieces of 3 ms.
const MAX_LONG: usize = 1024;

/// A number of hops, and the time that they took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExactHops {
    pub(crate) ticks: u64,
    hops: u64,
    /// Of both, in blocks during which the thread was off its CPU.
    cut_ticks: u64,
    cut_hops: u64,
    /// Ticks off the CPU in other blocks.
    unseen: u64,
    /// Ticks off the CPU in all blocks.
    away: u64,
    /// Ticks of long blocks during which the thread was on its CPU, beyond what they usually take; `None` where the kernel does not tell
    /// CPU times.
    stalled: Option<u64>,
}

impl ExactHops {
    /// A chase of `hops` hops that took `ticks`; the thread was off its CPU for `away` of them. The blocks of `long`, as (ticks, hops), that
    /// explain that time are left out. Blocks usually take `block` ticks.
    pub(crate) fn without_time_away(ticks: u64, hops: u64, away: Option<u64>, mut long: Vec<(u64, u64)>, block: u64) -> Self {
        long.sort_unstable_by_key(|(ticks, _)| std::cmp::Reverse(*ticks));
        let excess: Vec<f64> = long.iter().map(|(ticks, _)| ticks.saturating_sub(block) as f64).collect();
        let lost = away.unwrap_or(0);
        let absence = Absence::of(Some(lost as f64), &excess);
        let cut = long.iter().take(absence.away).fold((0, 0), |cut, block| (cut.0 + block.0, cut.1 + block.1));
        let stalled = away.map(|_| excess.iter().skip(absence.away).sum::<f64>() as u64);
        Self { ticks, hops, cut_ticks: cut.0, cut_hops: cut.1, unseen: absence.unseen as u64, away: lost, stalled }
    }

    /// Whether there is time off the CPU in what is not left out.
    fn is_away(&self) -> bool {
        Absence::is_hidden(self.unseen as f64, self.ticks as f64)
    }

    /// Hops that were made.
    pub(crate) const fn hops(&self) -> u64 {
        self.hops
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.hops += other.hops;
        self.cut_ticks += other.cut_ticks;
        self.cut_hops += other.cut_hops;
        self.unseen += other.unseen;
        self.away += other.away;
        // Nothing was made before the first part.
        let before = if self.ticks == 0 { Some(0) } else { self.stalled };
        self.stalled = before.zip(other.stalled).map(|(stalled, more)| stalled + more);
        self.ticks += other.ticks;
    }

    /// Ticks per hop, without the time off the CPU where enough is left without it; `None` where nothing was chased.
    pub(crate) fn ticks_per_hop(&self) -> Option<f64> {
        let (ticks, hops) = if self.clean() { (self.ticks - self.cut_ticks, self.hops - self.cut_hops) } else { (self.ticks, self.hops) };
        (hops > 0).then(|| ticks as f64 / hops as f64)
    }

    /// Whether enough was chased while the thread was on its CPU.
    pub(crate) fn clean(&self) -> bool {
        !self.is_away() && (self.hops - self.cut_hops) as f64 >= MIN_CLEAN * self.hops as f64
    }

    /// Share of the time that is left out or, if not enough is clean, that the thread spent off its CPU.
    pub(crate) fn left_out(&self) -> f64 {
        let ticks = if self.clean() { self.cut_ticks } else { self.away };
        ticks as f64 / self.ticks.max(1) as f64
    }

    /// Share of the time during which memory did not answer the thread, which was on its CPU; `None` if that is not known.
    pub(crate) fn stalled(&self) -> Option<f64> {
        Some(self.stalled? as f64 / self.ticks.max(1) as f64)
    }
}

/// The blocks of an exact chase: as long as those of windows.
struct ExactBlocks {
    /// Hops of the next one.
    size: usize,
    /// Ticks that one usually takes at most.
    usual: u64,
    /// The long ones, as (ticks, hops), and how many there were.
    long: Vec<(u64, u64)>,
    longs: usize,
}

impl ExactBlocks {
    fn new(clock: &Clock) -> Self {
        let usual = (2.0 * shortest_block(BLOCK_NS, clock.overhead_ns()) / clock.ns(1)) as u64;
        // Not zeros, so that it is mapped now.
        Self { size: kernels::CHASE_UNROLL, usual, long: vec![(1, 1); MAX_LONG], longs: 0 }
    }

    /// Adds a block of `hops` hops that took `ticks`.
    fn add(&mut self, ticks: u64, hops: usize) {
        if ticks as f64 > LONG_BLOCK * self.usual as f64 {
            // Interrupted, or out of a cache into memory.
            self.size = (self.size / 2).max(kernels::CHASE_UNROLL);
            self.long[self.longs % MAX_LONG] = (ticks, hops as u64);
            self.longs += 1;
        } else if ticks < self.usual / 2 && hops == self.size {
            self.size *= 2;
        }
    }
}

/// Times exactly `hops` hops, in blocks, or fewer where `cutoff` passes meanwhile. `hop(n)` makes that many. As many as take `settle` come
/// first: a thread that was just woken finds fewer translations and page tables in its caches, and blocks are still growing.
pub(crate) fn time_hops(
    time: &impl ThreadClock,
    clock: &Clock,
    (settle, hops): (Duration, u64),
    cutoff: &Cutoff,
    mut hop: impl FnMut(usize),
) -> ExactHops {
    let mut blocks = ExactBlocks::new(clock);
    let mut from = time.now();
    let settled = from + clock.to_ticks(settle);
    while from < settled && !cutoff.passed() {
        let size = blocks.size;
        hop(size);
        let to = time.now();
        blocks.add(to.saturating_sub(from), size);
        from = to;
    }
    blocks.longs = 0;
    let mut left = hops as usize;
    // Fenced at both ends: no hop before is in the time, and all of these are.
    let (ran, began) = (time.cpu_ns(), time.stamp());
    let mut from = began;
    while left > 0 && !cutoff.passed() {
        let part = left.min(blocks.size);
        hop(part);
        left -= part;
        let to = if left > 0 { time.now() } else { time.stamp() };
        blocks.add(to.saturating_sub(from), part);
        from = to;
    }
    let ticks = from.saturating_sub(began);
    let ran = time.cpu_ns().zip(ran).map(|(now, then)| (now.saturating_sub(then) as f64 / clock.ns(1)) as u64);
    let away = ran.map(|ran| ticks.saturating_sub(ran));
    blocks.long.truncate(blocks.longs);
    ExactHops::without_time_away(ticks, hops - left as u64, away, blocks.long, blocks.usual)
}
