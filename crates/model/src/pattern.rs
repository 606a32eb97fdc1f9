//! The orders that a chase can visit the lines of a buffer in. This is pure arithmetic; the engine writes the orders into memory.
//!
//! A buffer is divided into windows and a window into slots, with one chased line in each slot. The chain visits every slot of a window
//! once, in a single cycle made by Sattolo's algorithm (S. Sattolo, "An algorithm to generate a random cyclic permutation", 1986), before
//! it goes to the next window. The windows follow each other in random order. Next-page, region and stream prefetchers therefore find no
//! pattern. A plain random permutation would consist of short cycles, which stay in a cache. With slots of two lines or more, the
//! adjacent-line prefetcher does not help. The chased line of a slot is chosen at random, so that all cache sets and channels are used.
//!
//! Every window can be built independently, so threads build windows in parallel. A window depends only on the entry of the next one, which
//! is known without building it. All randomness comes from generators that give the same values on every machine and in every release.

use std::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::experiment::ChaseOrder;
use crate::random::{GOLDEN, bounded, split_mix};
use crate::units::Bytes;

/// Why a chase cannot be laid out, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(String);

/// A chase over a buffer: its lines and their order. All offsets are in bytes from the start of the buffer.
///
/// To write it: [`next_entries`](Self::next_entries) once, then for every window, in any order and on any thread,
/// [`fill_window`](Self::fill_window). For one window that is the whole buffer ([`ChaseOrder::FullRandom`]): [`shuffle`](Self::shuffle)
/// once, then [`links`](Self::links) for ranges of its slots, on any thread. The chase then starts at [`start`](Self::start) and is back
/// there after [`slots`](Self::slots) loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChaseLayout {
    order: ChaseOrder,
    windows: usize,
    slots_per_window: usize,
    stride: usize,
    line: usize,
    seed: u64,
    even: bool,
}

/// The cycle of a window, four bytes per slot. Reused from window to window, it allocates once.
#[derive(Debug, Clone, Default)]
pub struct Cycle {
    /// For each slot of the window, the line (numbered within the window) that comes after its line.
    next: Vec<u32>,
}

impl ChaseLayout {
    /// Lays out a chase in `order` over the whole windows that fit into `buffer`.
    ///
    /// A window larger than the buffer becomes the whole buffer, cut to whole strides; so does any window in full-random order. A
    /// sequential chase ascends through all windows and uses the first line of each slot. There the window is only the part that one call
    /// builds.
    ///
    /// # Errors
    /// If the stride is not a multiple of the line, the window is not a multiple of the stride, or fewer than two slots fit.
    pub fn new(order: ChaseOrder, buffer: Bytes, window: Bytes, stride: Bytes, line: Bytes, seed: u64) -> Result<Self, LayoutError> {
        let error = |text: String| Err(LayoutError(text));
        if !line.0.is_power_of_two() {
            return error(format!("a line of {line} is not a power of two"));
        }
        if stride.0 == 0 || !stride.0.is_multiple_of(line.0) {
            return error(format!(
                "a stride of {stride} is not a multiple of the line ({line}): use {line}, or twice that, so that adjacent-line prefetch does not help"
            ));
        }
        if buffer.0 / stride.0 < 2 {
            return error(format!("a buffer of {buffer} holds fewer than two strides of {stride}: make it larger or the stride smaller"));
        }
        let whole = buffer.0 - buffer.0 % stride.0;
        let window = if order == ChaseOrder::FullRandom || window.0 > whole { Bytes(whole) } else { window };
        if !window.0.is_multiple_of(stride.0) || window.0 / stride.0 < 2 {
            return error(format!(
                "a window of {window} must be a multiple of the stride ({stride}) and at least twice it: use 512 KiB, or another multiple of {stride}"
            ));
        }
        let (windows, limit) = (buffer.0 / window.0, u64::from(u32::MAX));
        if window.0 / line.0 > limit || windows > limit || usize::try_from(whole).is_err() {
            return error(format!(
                "a buffer of {buffer} in windows of {window} has more lines or windows than 32 bits number: use a larger window, or a smaller buffer"
            ));
        }
        Ok(Self {
            order,
            windows: windows as usize,
            slots_per_window: (window.0 / stride.0) as usize,
            stride: stride.0 as usize,
            line: line.0 as usize,
            seed,
            even: false,
        })
    }

    /// The same, but with the chased lines spread as evenly as possible over the sets of any cache. A chase of the size of a cache then
    /// fits it. Lines drawn at random would overflow some sets of a cache that is two thirds full.
    ///
    /// The line of a slot is the digit sum of its page's number, in the base of lines a slot and modulo it: of pages that differ in the upper
    /// bits of their number only, and so fall into the same sets, each line has its turn (for two lines the sequence of Thue and Morse).
    #[must_use]
    pub fn evenly(self) -> Self {
        Self { even: true, ..self }
    }

    /// The order of the chase.
    pub const fn order(&self) -> ChaseOrder {
        self.order
    }

    /// Bytes of the lines that are chased, without those between them.
    pub const fn chased_bytes(&self) -> Bytes {
        Bytes((self.windows * self.slots_per_window * self.line) as u64)
    }

    /// How many windows.
    pub fn windows(&self) -> usize {
        self.windows
    }

    /// Bytes of a window.
    pub fn window_bytes(&self) -> usize {
        self.slots_per_window * self.stride
    }

    /// Bytes of the buffer that the chase uses: whole windows.
    pub fn buffer_bytes(&self) -> usize {
        self.windows * self.window_bytes()
    }

    /// How many lines of a window are chased.
    pub fn slots_per_window(&self) -> usize {
        self.slots_per_window
    }

    /// How many lines are chased: loads in one lap.
    pub fn slots(&self) -> usize {
        self.windows * self.slots_per_window
    }

    /// The windows in the order of the chain, which goes on with the first after the last.
    pub fn window_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.windows as u32).collect();
        if self.order != ChaseOrder::Sequential {
            let mut random = generator(self.seed, WINDOW_ORDER);
            for i in (1..order.len()).rev() {
                order.swap(i, bounded(random.next_u64(), i as u64 + 1) as usize);
            }
        }
        order
    }

    /// For each window, where the chain goes after it: the entry of the window that follows in [`window_order`](Self::window_order).
    pub fn next_entries(&self) -> Vec<usize> {
        let order = self.window_order();
        let mut entries = vec![0; self.windows];
        for (i, &window) in order.iter().enumerate() {
            entries[window as usize] = self.entry(order[(i + 1) % order.len()] as usize);
        }
        entries
    }

    /// The first line of a window that the chain visits.
    pub fn entry(&self, window: usize) -> usize {
        let slot = match self.order {
            ChaseOrder::Sequential => 0,
            _ => bounded(split_mix(split_mix(self.seed ^ ENTRY) ^ window as u64), self.slots_per_window as u64) as usize,
        };
        window * self.window_bytes() + self.line_of(self.line_key(window), slot) as usize * self.line
    }

    /// Where the chase starts.
    pub fn start(&self) -> usize {
        self.window_order().first().map_or(0, |&window| self.entry(window as usize))
    }

    /// The offset of each chased line, in ascending order.
    pub fn lines(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.windows).flat_map(move |window| {
            let (key, base) = (self.line_key(window), window * self.window_bytes());
            (0..self.slots_per_window).map(move |slot| base + self.line_of(key, slot) as usize * self.line)
        })
    }

    /// The line that a chase has reached `hops` hops after its start. Finding it takes as long as building a window.
    pub fn after(&self, hops: u64) -> usize {
        self.after_in(&self.window_order(), hops)
    }

    /// The same where the [`window_order`](Self::window_order) is known.
    pub fn after_in(&self, order: &[u32], hops: u64) -> usize {
        let hops = (hops % self.slots() as u64) as usize;
        let (nth, left) = (hops / self.slots_per_window, hops % self.slots_per_window);
        let window = order.get(nth).map_or(0, |w| *w as usize);
        let (mut cycle, mut next, base) = (Cycle::default(), Vec::with_capacity(self.slots_per_window), window * self.window_bytes());
        let entry = self.entry(window);
        self.fill_window(window, entry, &mut cycle, |_, to| next.push(to));
        (0..left).fold(entry, |at, _| next[(at - base) / self.stride])
    }

    /// Generates a window's cycle and emits every link, in ascending order of the line that holds it: `emit(from, to)`. The link that
    /// would close the cycle leads to `next_entry` instead.
    pub fn fill_window(&self, window: usize, next_entry: usize, cycle: &mut Cycle, emit: impl FnMut(usize, usize)) {
        self.shuffle(window, cycle, || false);
        self.links(window, cycle, 0..self.slots_per_window, next_entry, emit);
    }

    /// Generates a window's cycle. Asks now and then whether it is `interrupted`, and then leaves it unfinished: over gigabytes it takes seconds.
    pub fn shuffle(&self, window: usize, cycle: &mut Cycle, mut interrupted: impl FnMut() -> bool) {
        let n = self.slots_per_window;
        let key = self.line_key(window);
        cycle.next.clear();
        cycle.next.reserve_exact(n);
        for from in (0..n).step_by(SLOTS_AT_A_TIME) {
            if from > 0 && interrupted() {
                return;
            }
            cycle.next.extend((from..n.min(from + SLOTS_AT_A_TIME)).map(|slot| self.line_of(key, slot)));
        }
        if self.order == ChaseOrder::Sequential {
            cycle.next.rotate_left(1);
            return;
        }
        let mut random = generator(self.seed, window as u64);
        for i in (1..n).rev() {
            if i.is_multiple_of(SLOTS_AT_A_TIME) && interrupted() {
                return;
            }
            // Sattolo: a partner below i, never i itself, so that cycles join and never split.
            cycle.next.swap(i, bounded(random.next_u64(), i as u64) as usize);
        }
    }

    /// Emits the links of some `slots` of a window whose `cycle` was shuffled, as [`fill_window`](Self::fill_window) does of all.
    pub fn links(&self, window: usize, cycle: &Cycle, slots: Range<usize>, next_entry: usize, mut emit: impl FnMut(usize, usize)) {
        let key = self.line_key(window);
        let base = window * self.window_bytes();
        let entry = self.entry(window);
        for (slot, &next) in slots.clone().zip(&cycle.next[slots]) {
            let from = base + self.line_of(key, slot) as usize * self.line;
            let to = base + next as usize * self.line;
            emit(from, if to == entry { next_entry } else { to });
        }
    }

    /// The key that chooses the lines of a window's slots.
    fn line_key(&self, window: usize) -> u64 {
        if self.even {
            // Where the window begins.
            return (window * self.window_bytes()) as u64;
        }
        split_mix(split_mix(self.seed ^ LINE) ^ window as u64)
    }

    /// The line of a slot that is chased, numbered within the window.
    fn line_of(&self, key: u64, slot: usize) -> u32 {
        let lines = self.stride / self.line;
        let chosen = match self.order {
            _ if lines == 1 => 0,
            ChaseOrder::Sequential => 0,
            _ if self.even => digit_sum((key as usize + slot * self.stride) / PAGE, lines) % lines,
            _ => bounded(split_mix(key.wrapping_add(slot as u64)), lines as u64) as usize,
        };
        (slot * lines + chosen) as u32
    }
}

/// Slots of a cycle that are shuffled between two questions whether it is interrupted: a few milliseconds.
const SLOTS_AT_A_TIME: usize = 1 << 18;

/// The smallest distance, in bytes, after which the sets of a cache repeat: one way of a first-level cache, whose sets are chosen by
/// address bits within a page.
const PAGE: usize = 4096;

/// The digit sum of `n` in this base, which is at least 2.
fn digit_sum(mut n: usize, base: usize) -> usize {
    let mut sum = 0;
    while n > 0 {
        (sum, n) = (sum + n % base, n / base);
    }
    sum
}

/// Domains of the seed, apart from window numbers, which are below 2^32.
const WINDOW_ORDER: u64 = 1 << 32;
const ENTRY: u64 = 2 << 32;
const LINE: u64 = 3 << 32;

/// A generator for one purpose or window: SplitMix64 fills its state, as its authors advise.
fn generator(seed: u64, purpose: u64) -> Xoshiro256PlusPlus {
    let mut bytes = [0; 32];
    let start = split_mix(seed) ^ purpose;
    for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&split_mix(start.wrapping_add(GOLDEN.wrapping_mul(i as u64))).to_le_bytes());
    }
    Xoshiro256PlusPlus::from_seed(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(order: ChaseOrder, buffer: u64, window: u64, stride: u64) -> Result<ChaseLayout, LayoutError> {
        ChaseLayout::new(order, Bytes(buffer), Bytes(window), Bytes(stride), Bytes(64), 1)
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused_with_advice() {
        use ChaseOrder::WindowLocal;
        let text = |e: Result<ChaseLayout, LayoutError>| e.unwrap_err().to_string();
        assert!(text(layout(WindowLocal, 1 << 20, 4096, 96)).contains("use 64 B"));
        assert!(text(layout(WindowLocal, 1 << 20, 4096, 32)).contains("not a multiple of the line"));
        assert!(text(layout(WindowLocal, 1 << 20, 4096, 0)).contains("not a multiple of the line"));
        assert!(text(layout(WindowLocal, 1 << 20, 4100, 128)).contains("use 512 KiB"));
        assert!(text(layout(WindowLocal, 1 << 20, 128, 128)).contains("at least twice"));
        assert!(text(layout(WindowLocal, 1 << 20, 0, 128)).contains("at least twice"));
        assert!(text(layout(WindowLocal, 255, 256, 128)).contains("make it larger"));
        assert!(text(layout(WindowLocal, 1 << 40, 256, 128)).contains("32 bits"));
        assert!(text(layout(ChaseOrder::FullRandom, 1 << 40, 256, 128)).contains("32 bits"));
        let line = ChaseLayout::new(WindowLocal, Bytes(4096), Bytes(4096), Bytes(96), Bytes(96), 1);
        assert!(text(line).contains("a line of 96 B is not a power of two"));
    }

    #[test]
    fn buffer_is_cut_to_whole_windows_and_window_to_buffer() {
        let cut = layout(ChaseOrder::WindowLocal, 10_000, 4096, 128).unwrap();
        assert_eq!((cut.windows(), cut.buffer_bytes(), cut.slots()), (2, 8192, 64));
        let small = layout(ChaseOrder::WindowLocal, 10_000, 1 << 19, 128).unwrap();
        assert_eq!((small.windows(), small.window_bytes()), (1, 9984));
        let full = layout(ChaseOrder::FullRandom, 10_000, 4096, 128).unwrap();
        assert_eq!((full.windows(), full.window_bytes()), (1, 9984));
    }

    /// Offsets in the order of the chase.
    fn lap(order: ChaseOrder) -> Vec<usize> {
        let chase = ChaseLayout::new(order, Bytes(1024), Bytes(512), Bytes(128), Bytes(64), 42).unwrap();
        let next = chase.next_entries();
        let mut memory = vec![usize::MAX; 1024];
        let mut cycle = Cycle::default();
        for (window, next) in next.into_iter().enumerate() {
            chase.fill_window(window, next, &mut cycle, |from, to| memory[from] = to);
        }
        std::iter::successors(Some(chase.start()), |&at| Some(memory[at])).take(chase.slots()).collect()
    }

    #[test]
    fn orders_are_the_same_in_every_release() {
        assert_eq!(lap(ChaseOrder::Sequential), [0, 128, 256, 384, 512, 640, 768, 896]);
        assert_eq!(lap(ChaseOrder::WindowLocal), [896, 512, 768, 704, 192, 384, 256, 0]);
        assert_eq!(lap(ChaseOrder::FullRandom), [384, 832, 0, 192, 640, 960, 576, 256]);
        // The generator's own reference: state 1, 2, 3, 4 (D. Blackman, S. Vigna).
        let mut state = [0; 32];
        (0..4).for_each(|i| state[8 * i] = i as u8 + 1);
        let mut random = Xoshiro256PlusPlus::from_seed(state);
        assert_eq!([random.next_u64(), random.next_u64(), random.next_u64()], [41_943_041, 58_720_359, 3_588_806_011_781_223]);
        // SplitMix64 from state 0.
        assert_eq!(split_mix(0), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn an_even_chase_uses_all_sets_alike_at_every_size() {
        for (stride, window) in [(128, 32 << 10), (256, 64 << 10), (128, 512 << 10)] {
            let buffer = 8 << 20;
            let chase = layout(ChaseOrder::WindowLocal, buffer, window, stride).unwrap().evenly();
            let mut cycle = Cycle::default();
            let next = chase.next_entries();
            let mut lines = std::collections::BTreeSet::new();
            for (w, next) in next.into_iter().enumerate() {
                chase.fill_window(w, next, &mut cycle, |from, _| assert!(lines.insert(from / 64), "no line twice"));
            }
            assert!(lines.contains(&(chase.start() / 64)), "it starts on a line of the chain");
            assert!(chase.lines().map(|at| at / 64).eq(lines.iter().copied()), "the lines are known without the chain");
            assert_eq!(lines.len() as u64, buffer / stride);
            // Ways of 4 KiB (L1), 64 KiB and 128 KiB (L2).
            for sets in [64, 1024, 2048] {
                let mut in_set = vec![0_usize; sets];
                lines.iter().for_each(|line| in_set[line % sets] += 1);
                let mean = lines.len() / sets;
                assert!(in_set.iter().all(|n: &usize| n.abs_diff(mean) <= 1), "stride {stride}, {sets} sets of {mean}: {in_set:?}");
            }
        }
    }

    #[test]
    fn where_a_chase_is_can_be_computed() {
        for order in [ChaseOrder::Sequential, ChaseOrder::WindowLocal, ChaseOrder::FullRandom] {
            let chase = ChaseLayout::new(order, Bytes(1024), Bytes(512), Bytes(128), Bytes(64), 42).unwrap();
            let lap = lap(order);
            for hops in 0..20 {
                assert_eq!(chase.after(hops), lap[hops as usize % lap.len()], "{order:?}, {hops} hops");
            }
        }
    }

    #[test]
    fn numbers_below_a_limit_are_even() {
        let mut random = generator(1, 2);
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[bounded(random.next_u64(), 7) as usize] += 1);
        // Standard deviation 93.
        assert!(counts.iter().all(|c| c.abs_diff(10_000) < 400), "{counts:?}");
    }
}
