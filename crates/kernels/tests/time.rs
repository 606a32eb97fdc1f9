//! Clocks, delays and flushes. Ratios only, and the least of many runs: these pass on busy machines.
#![allow(clippy::unwrap_used, reason = "a panic in a test is its failure report")]

use memgauge_kernels::*;

/// The least ticks that `work` takes. Not for emulators, which do not keep time.
#[cfg(target_arch = "x86_64")]
fn least(mut work: impl FnMut()) -> f64 {
    (0..50)
        .map(|_| {
            let start = ticks_fenced();
            work();
            ticks_fenced() - start
        })
        .min()
        .unwrap() as f64
}

/// Asserts that a ratio of times lies in `range` in some moment of a second: others use these CPUs too, and a loop that is wrong is never right.
#[cfg(target_arch = "x86_64")]
fn settles(what: &str, range: std::ops::Range<f64>, mut ratio: impl FnMut() -> f64) {
    let mut seen = Vec::new();
    for _ in 0..100 {
        let now = ratio();
        if range.contains(&now) {
            return;
        }
        seen.push(now);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{what}: {seen:?}");
}

#[test]
fn counter_advances() {
    let start = ticks();
    dependent_adds(10_000_000);
    assert!(ticks() > start);
    let start = ticks_fenced();
    dependent_adds(10_000_000);
    assert!(ticks_fenced() > start);
}

/// What the CPU states is the rate at which the counter runs, within 2 % of the system's clock.
#[test]
fn stated_counter_frequency_is_true() {
    let Some(hz) = counter_frequency() else { return };
    let (clock, start) = (std::time::Instant::now(), ticks_fenced());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let (ticks, seconds) = (ticks_fenced() - start, clock.elapsed().as_secs_f64());
    let measured = ticks as f64 / seconds;
    assert!((0.98..1.02).contains(&(measured / hz)), "stated {hz}, measured {measured}");
}

#[test]
fn invariance_has_a_name_or_a_reason() {
    match invariant_counter() {
        Ok(name) => assert!(["tsc", "cntvct"].contains(&name)),
        Err(reason) => assert!(reason.len() > 10),
    }
}

#[test]
fn any_number_of_dependent_adds_is_done() {
    for n in (0..200).chain([1000, 123_456]) {
        assert_eq!(dependent_adds(n), n);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn dependent_adds_take_time_in_proportion() {
    let time = |n| {
        least(|| {
            dependent_adds(n);
        })
    };
    settles("additions", 1.9..2.1, || time(400_000) / time(200_000));
}

#[cfg(target_arch = "x86_64")]
mod delay {
    use super::*;

    const STEPS: usize = 16;
    const CHUNKS: u64 = STEPS as u64 * CHUNKS_PER_ITERATION as u64;

    /// Ticks of a paced run in the L1 cache.
    fn paced(kernel: &Kernel, delay: u32) -> f64 {
        let mut memory = vec![0_u128; 9 << 10];
        let base = memory.as_mut_ptr().cast::<u8>();
        let base = base.wrapping_add(base.align_offset(64));
        let streams = std::array::from_fn(|i| base.wrapping_add(i * STEPS * 2048));
        let order = Order::new(STEPS * 16, 1).unwrap();
        // SAFETY: no stream is longer than 2 KiB a step, and the order's window has 16 KiB.
        least(|| unsafe { kernel.walk(&mut Walk::new(streams).with_order(&order, 0), STEPS, Some(delay)) })
    }

    #[test]
    fn scales() {
        for kernel in available().filter(|k| k.name.starts_with("load-")) {
            settles(kernel.name, 1.8..2.2, || paced(kernel, 4000) / paced(kernel, 2000));
        }
    }

    /// In core cycles: as long as that many dependent additions, twice as long on cores that take a branch every second cycle. Of two
    /// delays, so that what a kernel does besides is left out, and of long ones, in which lines are written back that it flushed.
    #[test]
    fn is_in_core_cycles() {
        for kernel in available() {
            let adds = || {
                least(|| {
                    dependent_adds(CHUNKS * 8000);
                })
            };
            settles(kernel.name, 0.95..2.3, || (paced(kernel, 16_000) - paced(kernel, 8000)) / adds());
        }
    }
}

/// Batches of a timed chase take time in proportion to their hops, beyond what batches without any take.
#[cfg(target_arch = "x86_64")]
#[test]
fn timed_chases_take_time_in_proportion() {
    let mut line = Box::new([0_usize; 16]);
    line[0] = line.as_ptr() as usize;
    let at = line.as_ptr().cast::<u8>();
    let time = |hops| {
        let mut ticks = vec![0; 1000];
        // SAFETY: the line holds its own address.
        unsafe { chase_timed(at, hops, &mut ticks) };
        *ticks.iter().min().unwrap() as f64
    };
    settles("batches", 1.9..2.1, || {
        let (empty, short, long) = (time(0), time(500), time(1000));
        // A batch of none that takes longer than one of many was disturbed.
        if empty > 0.0 && empty < short { (long - empty) / (short - empty) } else { f64::NAN }
    });
}

/// A flushed line takes longer to load than a cached one.
#[cfg(target_arch = "x86_64")]
#[test]
fn flush_drops_the_line() {
    let line = Box::new([0_u64; 16]);
    let mut me = line;
    me[0] = me.as_ptr() as usize as u64;
    let at = me.as_ptr().cast::<u8>();
    let mut times = [Vec::new(), Vec::new()];
    for k in 0..1001 {
        let flushed = k % 2;
        // SAFETY: the line holds its own address.
        unsafe {
            if flushed == 1 {
                flush(at);
            }
            fence();
            let start = ticks_fenced();
            chase_exact(at, 1);
            times[flushed].push(ticks_fenced() - start);
        }
    }
    let [cached, flushed] = times.map(|mut t| {
        t.sort_unstable();
        t[t.len() / 2]
    });
    assert!(flushed > cached + 50, "cached {cached}, flushed {flushed} ticks");
}
