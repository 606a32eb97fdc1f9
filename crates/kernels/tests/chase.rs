//! Pointer chases follow exactly as many pointers as they are asked to, and change only what they say.

use memgauge_kernels::{CHASE_UNROLL, chase, chase_exact, chase_store, chase_timed, ticks_fenced};
use proptest::prelude::*;

/// A line: the pointer to the next, and seven words that are not its business.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    next: usize,
    rest: [u64; 7],
}

const UNTOUCHED: u64 = 0xDEAD_BEEF_0BAD_F00D;

/// Lines threaded in `order` into one cycle.
fn cycle(order: &[usize]) -> Vec<Line> {
    let mut lines = vec![Line { next: 0, rest: [UNTOUCHED; 7] }; order.len()];
    let base = lines.as_ptr();
    for (k, &i) in order.iter().enumerate() {
        lines[i].next = base.wrapping_add(order[(k + 1) % order.len()]) as usize;
    }
    lines
}

/// Where lines are.
fn bytes_of(lines: &[Line]) -> std::ops::Range<*const u8> {
    let std::ops::Range { start, end } = lines.as_ptr_range();
    start.cast()..end.cast()
}

fn orders() -> impl Strategy<Value = Vec<usize>> {
    (1_usize..300).prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_chase_ends_after_exactly_its_hops(order in orders(), hops in 0_usize..1000) {
        let lines = cycle(&order);
        let at = |k: usize| lines.as_ptr().wrapping_add(order[k % order.len()]).cast::<u8>();
        // SAFETY: every line holds a pointer to another.
        let (end, round) = unsafe { (chase_exact(at(0), hops), chase_exact(at(0), order.len())) };
        prop_assert_eq!(end, at(hops));
        prop_assert_eq!(round, at(0));
    }

    #[test]
    fn unrolled_chase_rounds_down(order in orders(), hops in 0_usize..1000) {
        let lines = cycle(&order);
        let at = |k: usize| lines.as_ptr().wrapping_add(order[k % order.len()]).cast::<u8>();
        // SAFETY: every line holds a pointer to another.
        let end = unsafe { chase(at(0), hops) };
        prop_assert_eq!(end, at(hops / CHASE_UNROLL * CHASE_UNROLL));
    }

    /// Each batch has its time, all together no more than passes around them.
    #[test]
    fn timed_chase_follows_its_batches(order in orders(), hops in 0_usize..100, batches in 0_usize..20) {
        let lines = cycle(&order);
        let at = |k: usize| lines.as_ptr().wrapping_add(order[k % order.len()]).cast::<u8>();
        let mut ticks = vec![u64::MAX; batches + 1];
        let before = ticks_fenced();
        // SAFETY: every line holds a pointer to another.
        let end = unsafe { chase_timed(at(0), hops, &mut ticks[..batches]) };
        let passed = ticks_fenced() - before;
        prop_assert_eq!(end, at(hops * batches));
        prop_assert_eq!(ticks.pop(), Some(u64::MAX));
        let sum = ticks.iter().try_fold(0_u64, |sum, &t| sum.checked_add(t));
        prop_assert!(sum.is_some_and(|sum| sum <= passed), "{:?} in {}", ticks, passed);
    }

    #[test]
    fn storing_chase_changes_the_second_word_of_lines_left(order in orders(), hops in 0_usize..300) {
        let hops = hops.min(order.len());
        let mut lines = cycle(&order);
        let mut want = lines.clone();
        for (k, &i) in order[..hops].iter().enumerate() {
            want[i].rest[0] = (hops - k) as u64;
        }
        let base = lines.as_mut_ptr();
        // SAFETY: every line holds a pointer to another and may be written.
        let end = unsafe { chase_store(base.wrapping_add(order[0]).cast(), hops, bytes_of(&lines)) };
        prop_assert_eq!(end, base.wrapping_add(order[hops % order.len()]).cast::<u8>().cast_const());
        for (line, want) in lines.iter().zip(&want) {
            prop_assert_eq!(line.rest, want.rest);
            // The clone's pointers are the original's.
            prop_assert_eq!(line.next, want.next);
        }
    }
}

/// The store beside a pointer that memory has changed would be anywhere in the program.
#[test]
fn a_storing_chase_writes_nowhere_but_in_its_memory() {
    let mut other = [Line { next: 0, rest: [UNTOUCHED; 7] }; 2];
    other[0].next = &raw const other[1] as usize;
    other[1].next = &raw const other[0] as usize;
    for changed in 0..4 {
        let mut lines = cycle(&[0, 1, 2, 3]);
        lines[changed].next = &raw const other[0] as usize;
        // SAFETY: the first line holds a pointer, and all of them may be written.
        let end = unsafe { chase_store(lines.as_ptr().cast(), 1000, bytes_of(&lines)) };
        assert!(memgauge_kernels::is_lost(end), "a chase that met a pointer out of its memory says so");
        // SAFETY: a chase that was lost stays where it is.
        assert!(memgauge_kernels::is_lost(unsafe { chase_store(end, 3, bytes_of(&lines)) }));
        assert!(other.iter().all(|line| line.rest == [UNTOUCHED; 7]), "line {changed}: {other:?}");
        let left: Vec<bool> = lines.iter().map(|line| line.rest[0] != UNTOUCHED).collect();
        assert_eq!(left, (0..4).map(|i| i <= changed).collect::<Vec<_>>());
        // The last pair of words of the memory is in it, and a line that is only partly there is not.
        let short = bytes_of(&lines).start..(&raw const lines[3].rest[1]).cast();
        lines[changed].next = &raw const lines[(changed + 1) % 4] as usize;
        // SAFETY: as before.
        let (whole, part) = unsafe {
            let start = lines.as_ptr().cast::<u8>();
            (chase_store(start, 4, short.clone()), chase_store(start, 4, short.start..short.end.wrapping_sub(1)))
        };
        assert!(std::ptr::eq(whole.cast(), lines.as_ptr()) && memgauge_kernels::is_lost(part));
    }
}
