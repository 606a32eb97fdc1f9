use memgauge_model::experiment::PageRequest;
use memgauge_model::integrity;
use memgauge_model::plan::BufferPlan;
use memgauge_model::result::WrongWordKind;
use memgauge_model::units::IdSet;

use super::*;

fn buffer(bytes: u64) -> Arc<Buffer> {
    allocated(bytes, None)
}

fn allocated(bytes: u64, directory: Option<String>) -> Arc<Buffer> {
    let plan =
        BufferPlan { touch: IdSet::one(cpu::current_cpu().unwrap()), directory, ..BufferPlan::plain(Bytes(bytes), 0, PageRequest::Auto) };
    Arc::new(Buffer::allocate(&plan, std::path::Path::new("/")).unwrap())
}

/// Runs one march in this thread.
fn go_over(tested: &mut TestedBuffer, write: Option<(Words, Option<TestPattern>)>, how: MarchOptions) {
    let started = Instant::now();
    let march = tested.march(write.as_ref().map(|w| w.0.clone()), how, Cutoff::default());
    while !march.portions.are_taken() {
        march.run(PIECE);
    }
    tested.finish(&march, write, started, Instant::now());
}

/// Applies `damage` to the word at `offset` after each write.
fn test_with(bytes: u64, offset: usize, damage: impl Fn(u64) -> u64) -> Integrity {
    let patterns = TestPattern::ALL.map(|(_, pattern)| pattern);
    let mut tested = TestedBuffer::new(buffer(bytes), vec![0]);
    let word = tested.buffer.as_ptr().wrapping_add(offset).cast::<u64>();
    let steps = integrity::steps(&patterns);
    for step in &steps {
        go_over(
            &mut tested,
            Some((step.words(5, 0), Some(step.pattern))),
            MarchOptions { descending: step.descending, ..MarchOptions::default() },
        );
        // SAFETY: an aligned word of the test's own buffer.
        unsafe { word.write_volatile(damage(word.read_volatile())) };
    }
    go_over(&mut tested, None, MarchOptions { drop_first: true, ..MarchOptions::default() });
    tested.take(steps.len() as u32, patterns.to_vec())
}

#[test]
fn sound_memory_has_no_mismatch_whatever_its_size() {
    for bytes in [1 << 20, 3 << 20, (64 << 10) + 4096, 4096 + 64] {
        let integrity = test_with(bytes, 0, |word| word);
        assert_eq!((integrity.mismatches, integrity.patterns, integrity.patterns_planned), (0, 137, 137), "{bytes}");
        assert_eq!(integrity.compared.0, 137 * bytes);
        assert!(integrity.watched.is_some_and(|share| share > 0.5 && share <= 1.0), "{integrity:?}");
    }
}

#[test]
fn bits_stuck_at_0_and_at_1_are_found_wherever_they_are() {
    for (bit, offset) in [(0, 0), (31, 4096 * 5 + 24), (32, (128 << 10) - 8), (63, 0)] {
        for (damage, stuck) in [(u64::MAX, 1u64 << bit), (!(1u64 << bit), 0)] {
            let integrity = test_with(128 << 10, offset, |word| word & damage | stuck);
            assert!(integrity.mismatches > 3, "{integrity:?}");
            let [word] = &integrity.first[..] else { panic!("{integrity:?}") };
            assert_eq!((word.offset, word.written ^ word.read, word.second_read), (offset as u64, 1 << bit, word.read));
            // Damage is done after a march's write only.
            assert_eq!((word.rewritten_read, word.kind()), (Some(word.written), WrongWordKind::Flipped));
            assert_eq!((word.pattern, word.cpu < 4096), (Some(TestPattern::Random), true));
        }
    }
}

#[test]
fn a_bit_that_flips_once_is_found_once() {
    let flipped = std::cell::Cell::new(false);
    let integrity = test_with(1 << 20, 4096, |word| if flipped.replace(true) { word } else { word ^ 0x40 });
    assert_eq!((integrity.mismatches, integrity.first.len()), (1, 1));
}

/// A flip is found where it falls between the write of its word and the next comparison: over all moments and places, as often as the result
/// says. A millisecond is what a portion takes here.
#[test]
fn flips_are_found_as_often_as_the_result_says() {
    // Of 64 KiB each, the smallest.
    const PORTIONS: u64 = 8;
    let origin = Instant::now();
    let at = |ms: u64| origin + Duration::from_millis(ms);
    let steps = integrity::steps(&[TestPattern::Random]);
    assert_eq!(steps.len(), 2);
    let tested_buffer = buffer(512 << 10);
    for held in [0, 2, 25] {
        let whole = 3 * PORTIONS + 2 * held;
        let (mut found, mut all, mut share) = (0, 0, 0.0);
        for moment in 0..whole {
            for place in 0..8 {
                let mut tested = TestedBuffer::new(tested_buffer.clone(), vec![0]);
                let word = tested.buffer.as_ptr().wrapping_add(((512 << 10) / 8) * place + 64).cast::<u64>();
                // SAFETY: an aligned word of the test's own buffer.
                let flip = || unsafe { word.write_volatile(word.read_volatile() ^ 4) };
                let mut now = 0;
                for next in steps.iter().map(|step| Some((step.words(5, 0), Some(step.pattern)))).chain([None]) {
                    let started = now;
                    let march = tested.march(next.as_ref().map(|w| w.0.clone()), MarchOptions::default(), Cutoff::default());
                    while !march.portions.are_taken() {
                        if now == moment {
                            flip();
                        }
                        march.run(1);
                        now += 1;
                    }
                    assert_eq!(now - started, PORTIONS);
                    tested.finish(&march, next, at(started), at(now));
                    if (now..now + held).contains(&moment) {
                        flip();
                    }
                    now += held;
                }
                let integrity = tested.take(2, vec![TestPattern::Random]);
                (found, all, share) = (found + integrity.mismatches, all + 1, integrity.watched.unwrap());
            }
        }
        // Places are eight of a continuum.
        let found = found as f64 / f64::from(all);
        assert!((found - share).abs() < 0.03, "{held} ms held: {found:.3} found, {share:.3} said");
    }
}

#[test]
fn words_of_another_place_are_wrong_and_few_are_listed() {
    let mut tested = TestedBuffer::new(buffer(1 << 20), vec![0]);
    go_over(&mut tested, Some((Words::random(1, 0), None)), MarchOptions::default());
    tested.holds = Some((Words::random(1, 256), None));
    go_over(&mut tested, None, MarchOptions::default());
    let integrity = tested.take(1, vec![]);
    // The first words of blocks are alike.
    assert_eq!((integrity.mismatches, integrity.first.len()), ((1 << 17) - 256, MAX_LISTED));
    assert!(integrity.first.iter().all(|word| word.rewritten_read == Some(word.written)), "{:?}", integrity.first);
    assert!(integrity.first.windows(2).all(|two| two[0].offset < two[1].offset));
}

#[test]
fn a_march_that_is_cut_short_compares_nothing_later_on() {
    let mut tested = TestedBuffer::new(buffer(4 << 20), vec![0, 1]);
    go_over(&mut tested, Some((Words::random(1, 0), None)), MarchOptions::default());
    let march = tested.march(Some(Words::random(2, 0)), MarchOptions::default(), Cutoff::default());
    march.run(1);
    tested.finish(&march, Some((Words::random(2, 0), None)), Instant::now(), Instant::now());
    assert!(tested.holds.is_none());
    let integrity = tested.take(1, vec![]);
    assert_eq!((integrity.patterns, integrity.mismatches, integrity.compared), (0, 0, Bytes(0)));
}

#[test]
fn a_march_that_is_interrupted_in_its_last_portions_is_not_complete() {
    let stop = Arc::default();
    let mut tested = TestedBuffer::new(buffer(4 << 20), vec![0, 1]);
    go_over(&mut tested, Some((Words::random(1, 0), None)), MarchOptions::default());
    let march = tested.march(Some(Words::random(2, 0)), MarchOptions::default(), Cutoff::new(&stop, None));
    // All but the last portion: a 32nd of each of two threads.
    for _ in 0..63 {
        march.run(1);
    }
    assert!(!march.portions.are_taken());
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!((march.run(PIECE), march.run(PIECE)), (PIECE, PIECE), "nothing is gone over");
    tested.finish(&march, Some((Words::random(2, 0), None)), Instant::now(), Instant::now());
    assert!(tested.holds.is_none());
    let integrity = tested.take(1, vec![]);
    assert_eq!((integrity.patterns, integrity.compared), (0, Bytes(0)));
}

/// A file behind a buffer, by its size: it has no name.
fn file_of(bytes: u64) -> std::path::PathBuf {
    let mut files = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let is_its = |path: &std::path::PathBuf| {
        let unnamed = std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().ends_with("(deleted)"));
        unnamed && path.metadata().is_ok_and(|file| file.len() == bytes)
    };
    files.find(is_its).unwrap()
}

#[test]
fn what_is_in_place_of_memory_that_faulted_is_no_mismatch() {
    let (bytes, directory) = ((2 << 20) + (3 << 12), std::env::temp_dir().to_str().unwrap().to_owned());
    let buffer = allocated(bytes, Some(directory));
    let mut tested = TestedBuffer::new(buffer.clone(), vec![0]);
    let patterns = integrity::steps(&[TestPattern::Random]);
    let next = |step: usize| Some((patterns[step].words(5, 0), Some(TestPattern::Random)));
    go_over(&mut tested, next(0), MarchOptions::default());
    go_over(&mut tested, next(1), MarchOptions::default());
    assert!(buffer.fault().is_none());
    // Its second half goes away, and reads as zeros.
    std::fs::File::options().write(true).open(file_of(bytes)).unwrap().set_len(bytes / 2 / 4096 * 4096).unwrap();
    go_over(&mut tested, next(0), MarchOptions::default());
    assert!(buffer.fault().is_some());
    go_over(&mut tested, None, MarchOptions::default());
    let integrity = tested.take(3, vec![TestPattern::Random]);
    assert_eq!((integrity.patterns, integrity.mismatches, integrity.compared), (1, 0, Bytes(bytes)), "{integrity:?}");
}
