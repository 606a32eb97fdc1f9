//! The clock: its source, and the measurement of its frequency, resolution and cost.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use memgauge_model::result::ClockReport;

use crate::system::clock::{REFERENCE, reference_ns, trusted_counter};
use crate::system::process;

/// Samples for the calibration. Samples that are half the series apart make 32 slopes, which is enough for a 95 % interval of their median.
const SAMPLES: usize = 64;
/// The time between two samples. The series takes 64 ms, so that the error of 20 ns in a sample is below 1 ppm.
const SAMPLE_GAP: Duration = Duration::from_millis(1);
/// Readings per sample. The one that took least time is kept.
const TRIES: usize = 5;

/// A clock for stamps and intervals. It is cheap to copy. Stamps of different CPUs can be compared when [`Clock::cross_cpu_check`] succeeds.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: Source,
    hz: f64,
    ns_per_tick: f64,
    error_ppm: f64,
    pub(super) resolution_ns: f64,
    step_ns: f64,
    overhead_ns: f64,
    /// Nanoseconds that a reading takes at least: more than 0 only in tests.
    slowed_ns: u64,
    /// Why the counter is not used.
    reason: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The CPU's counter of this name.
    Counter(&'static str),
    /// The system's clock, in nanoseconds.
    Reference,
}

impl Clock {
    /// Chooses the source and measures its frequency, resolution and cost. This takes about 80 ms.
    ///
    /// `root` is the root of the machine's description. The system may say there whether it trusts the CPU's counter.
    pub fn calibrate(root: &Path) -> Self {
        let counter = memgauge_kernels::invariant_counter().map_err(str::to_owned);
        match counter.and_then(|name| trusted_counter(root, name).map(|()| name)) {
            Ok(name) => Self::counter(name),
            // The clock is copied into every thread, so the text must live as long as the process. It is made once.
            Err(reason) => Self::reference(Some(reason.leak())),
        }
    }

    fn counter(name: &'static str) -> Self {
        let mut samples = Vec::with_capacity(SAMPLES);
        for i in 0..SAMPLES {
            if i > 0 {
                process::sleep(SAMPLE_GAP);
            }
            samples.push(Sample::read());
        }
        let measured = slope(&samples);
        let nominal = memgauge_kernels::counter_frequency().filter(|hz| (hz / measured.hz - 1.0).abs() * 1e6 <= measured.error_ppm);
        let clock = Self::new(Source::Counter(name), nominal.unwrap_or(measured.hz), None);
        Self { error_ppm: measured.error_ppm, ..clock }
    }

    /// This clock counts nanoseconds by definition. It cannot be compared with a better clock.
    fn reference(reason: Option<&'static str>) -> Self {
        Self::new(Source::Reference, 1e9, reason)
    }

    /// The system's clock as if the kernel read a device for it: each reading takes at least `reading_ns` nanoseconds. For tests.
    #[doc(hidden)]
    pub fn slowed(reading_ns: u64) -> Self {
        let clock = Self { slowed_ns: reading_ns, ..Self::reference(None) };
        Self { overhead_ns: clock.cost_of_reading(), ..clock }
    }

    fn new(source: Source, hz: f64, reason: Option<&'static str>) -> Self {
        let mut clock = Self {
            source,
            hz,
            ns_per_tick: 1e9 / hz,
            error_ppm: 0.0,
            resolution_ns: 0.0,
            step_ns: 0.0,
            overhead_ns: 0.0,
            slowed_ns: 0,
            reason,
        };
        let (smallest, step) = differences(|| clock.now());
        (clock.resolution_ns, clock.step_ns) = (clock.ns(smallest), clock.ns(step));
        clock.overhead_ns = match source {
            Source::Counter(_) => clock.cost_of_reading(),
            // If the kernel reads one device for all CPUs (hpet, acpi_pm), a reading takes longer the more CPUs read at once.
            Source::Reference => clock.cost_on_all(thread::available_parallelism().map_or(1, usize::from), |_| thread::Builder::new()),
        };
        clock
    }

    /// The current ticks. The CPU may reorder the reading with the instructions around it, so use [`Clock::stamp`] at the ends of short
    /// intervals.
    #[inline]
    pub fn now(&self) -> u64 {
        match self.source {
            Source::Counter(_) => memgauge_kernels::ticks(),
            Source::Reference => self.read_reference(),
        }
    }

    /// The current ticks, read after all earlier loads have their data and before any later instruction starts. Earlier stores may not have
    /// reached memory yet. If they must have, put a [`memgauge_kernels::fence`] before this call.
    #[inline]
    pub fn stamp(&self) -> u64 {
        match self.source {
            Source::Counter(_) => memgauge_kernels::ticks_fenced(),
            Source::Reference => {
                // The kernel's clock may be read without a call of the kernel, and on some CPUs without a fence.
                memgauge_kernels::fence();
                self.read_reference()
            }
        }
    }

    fn read_reference(&self) -> u64 {
        let mut now = reference_ns();
        if self.slowed_ns > 0 {
            let until = now + self.slowed_ns;
            while now < until {
                now = reference_ns();
            }
        }
        now
    }

    /// A number of ticks in nanoseconds, exact to 16 digits.
    #[inline]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// A duration in ticks, or the largest number when it does not fit (centuries).
    pub fn to_ticks(&self, duration: Duration) -> u64 {
        // Converting a float to an integer saturates.
        (duration.as_secs_f64() * self.hz) as u64
    }

    /// The time of a reading while every CPU reads, in nanoseconds.
    pub const fn overhead_ns(&self) -> f64 {
        self.overhead_ns
    }

    /// Whether the ticks are those of the CPU's counter, which timed loops read themselves.
    pub fn is_counter(&self) -> bool {
        matches!(self.source, Source::Counter(_))
    }

    /// The step of the clock, in nanoseconds. [`ClockReport::resolution_ns`] is longer if reading the clock takes longer than a step.
    pub fn step_ns(&self) -> f64 {
        self.step_ns
    }

    /// How good the clock is, for the result.
    pub fn report(&self) -> ClockReport {
        let source = match self.source {
            Source::Counter(name) => name,
            Source::Reference => REFERENCE,
        };
        ClockReport {
            source: source.to_owned(),
            hz: self.hz,
            error_ppm: self.error_ppm,
            resolution_ns: self.resolution_ns,
            overhead_ns: self.overhead_ns,
            reason: self.reason.map(str::to_owned),
        }
    }

    /// The highest cost of a reading while this many threads read at once, or as many as can be started if threads are limited.
    /// `builder` makes the thread of each number.
    fn cost_on_all(&self, threads: usize, builder: impl Fn(usize) -> thread::Builder) -> f64 {
        let go = AtomicBool::new(false);
        let read = || {
            while !go.load(Ordering::Acquire) {
                thread::yield_now();
            }
            self.cost_of_reading()
        };
        let costs = thread::scope(|scope| {
            // The waiting threads must get the signal to go even if the next thread cannot be started.
            let others: Vec<_> = (1..threads).map_while(|number| builder(number).spawn_scoped(scope, read).ok()).collect();
            go.store(true, Ordering::Release);
            let own = read();
            others.into_iter().filter_map(|thread| thread.join().ok()).fold(own, f64::max)
        });
        costs.max(self.cost_of_reading())
    }

    /// The fastest of several batches, because an interruption can only make a batch slower.
    fn cost_of_reading(&self) -> f64 {
        const READINGS: u32 = 1000;
        let batch = || {
            let start = self.stamp();
            for _ in 0..READINGS {
                std::hint::black_box(self.now());
            }
            self.ns(self.stamp().saturating_sub(start)) / f64::from(READINGS)
        };
        (0..7).map(|_| batch()).fold(f64::INFINITY, f64::min)
    }
}

/// The smallest difference between two readings that is not zero, and the largest number that divides all of them: counters may advance
/// by several ticks at once.
fn differences(mut now: impl FnMut() -> u64) -> (u64, u64) {
    let (mut smallest, mut step) = (u64::MAX, 0);
    let mut last = now();
    for _ in 0..20_000 {
        let next = now();
        if next > last {
            smallest = smallest.min(next - last);
            step = greatest_common_divisor(step, next - last);
        }
        last = next;
    }
    // No difference in 20,000 readings: the clock is as coarse as a tick of the kernel. Wait for one tick.
    if smallest == u64::MAX {
        while smallest == u64::MAX {
            smallest = Some(now() - last).filter(|ticks| *ticks > 0).unwrap_or(u64::MAX);
        }
        step = smallest;
    }
    (smallest, step)
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A moment, read from both clocks.
#[derive(Debug, Clone, Copy)]
struct Sample {
    ticks: f64,
    ns: f64,
    /// Ticks between the two readings around that of the system's clock. The error of the sample is at most half of this.
    width: f64,
}

impl Sample {
    fn read() -> Self {
        let one = |_| {
            let before = memgauge_kernels::ticks_fenced();
            let ns = reference_ns();
            let width = memgauge_kernels::ticks_fenced().saturating_sub(before) as f64;
            Self { ticks: before as f64 + width / 2.0, ns: ns as f64, width }
        };
        let first = one(0);
        (1..TRIES).map(one).fold(first, |best, next| if next.width < best.width { next } else { best })
    }
}

/// A frequency and the half-width of its 95 % interval.
#[derive(Debug, Clone, Copy)]
struct Frequency {
    hz: f64,
    error_ppm: f64,
}

/// The median of the slopes between samples that are half the series apart. This is the estimator of Theil and Sen with each sample used
/// once, so that the slopes are independent. A few disturbed samples do not move it. The interval comes from order statistics, and is never
/// narrower than the width of a sample allows.
fn slope(samples: &[Sample]) -> Frequency {
    let half = samples.len() / 2;
    let mut slopes: Vec<f64> =
        samples[..half].iter().zip(&samples[half..]).map(|(a, b)| (b.ticks - a.ticks) / (b.ns - a.ns).max(1.0) * 1e9).collect();
    slopes.sort_by(f64::total_cmp);
    let n = slopes.len();
    let hz = (slopes[(n - 1) / 2] + slopes[n / 2]) / 2.0;
    let rank = (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()).max(0.0) as usize;
    let spread = (slopes[n - 1 - rank] - hz).max(hz - slopes[rank]) / hz;
    let narrowest = samples.iter().map(|s| s.width).fold(f64::INFINITY, f64::min);
    let floor = narrowest / 2.0 / (samples[n].ticks - samples[0].ticks).max(1.0);
    Frequency { hz, error_ppm: spread.max(floor) * 1e6 }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::clock::core_ghz;

    #[test]
    fn agrees_with_the_standard_clock() {
        let clock = Clock::calibrate(Path::new("/"));
        // An interruption between the two readings of a pair shows as a difference; three attempts are enough to see one without.
        let off = (0..3).map(|_| {
            let (std, own) = (Instant::now(), clock.stamp());
            std::thread::sleep(Duration::from_millis(50));
            let (own, std) = (clock.ns(clock.stamp() - own), std.elapsed().as_nanos() as f64);
            (own / std - 1.0).abs()
        });
        let off = off.fold(f64::INFINITY, f64::min);
        assert!(off < 1e-3, "{off} {clock:?}");
    }

    #[test]
    fn the_report_is_of_this_machine() {
        let clock = Clock::calibrate(Path::new("/"));
        let report = clock.report();
        assert!(report.hz > 1e5 && report.hz <= 1e10, "{report:?}");
        assert!(report.error_ppm < 1000.0, "{report:?}");
        assert!(report.resolution_ns > 0.0 && report.resolution_ns < 1e5, "{report:?}");
        assert!(report.overhead_ns > 0.0 && report.overhead_ns < 1e5, "{report:?}");
        assert_eq!(report.reason.is_some(), report.source == REFERENCE);
        assert!(clock.now() <= clock.stamp() && clock.stamp() <= clock.now());
    }

    #[test]
    fn the_step_is_that_of_the_counter_and_not_the_cost_of_reading_it() {
        // Ticks a second, the step of the counter in ticks, and nanoseconds that reading it takes.
        let step_ns = |hz: f64, advance: u64, cost_ns: f64| {
            let mut reading = 0.0;
            let (smallest, step) = differences(|| {
                reading += 1.0 + 0.01 * (reading % 7.0);
                (reading * cost_ns * hz / 1e9) as u64 / advance * advance
            });
            assert!(smallest >= step);
            step as f64 / hz * 1e9
        };
        for (hz, advance, cost_ns, expected) in [
            (25e6, 1, 15.0, 40.0),
            (1e9, 10, 20.0, 10.0),
            (3.6e9, 36, 11.0, 10.0),
            (121e6, 1, 12.0, 8.3),
            (2.4e9, 1, 9.0, 0.4),
            (1e9, 4_000_000, 30.0, 4e6),
        ] {
            let got = step_ns(hz, advance, cost_ns);
            assert!((got / expected - 1.0).abs() < 0.05, "{hz} Hz by {advance}: {got} ns");
        }
        let clock = Clock::calibrate(Path::new("/"));
        assert!(clock.step_ns() > 0.0 && clock.step_ns() <= clock.report().resolution_ns);
    }

    #[test]
    fn without_a_trusted_counter_nanoseconds_of_the_kernel_are_ticks() {
        let clock = Clock::reference(Some("the kernel keeps time by 'kvm-clock'"));
        let report = clock.report();
        assert_eq!((report.source.as_str(), report.hz), (REFERENCE, 1e9));
        assert!(report.reason.unwrap().contains("'kvm-clock'"));
        let (std, own) = (Instant::now(), clock.now());
        std::thread::sleep(Duration::from_millis(5));
        assert!(clock.ns(clock.now() - own) >= 5e6 && std.elapsed().as_nanos() >= 5_000_000);
        assert!(core_ghz(&clock) > 0.05);
    }

    #[test]
    fn where_threads_are_limited_those_that_were_started_read() {
        let clock = Clock::reference(None);
        for limit in [1, 3] {
            let started = std::cell::Cell::new(0);
            // No address space has room for such a stack, so the thread is refused as one beyond pids.max is.
            let builder = |number| {
                started.set(number);
                thread::Builder::new().stack_size(if number < limit { 64 << 10 } else { 1 << 50 })
            };
            let ns = clock.cost_on_all(64, builder);
            assert!(ns.is_finite() && ns > 0.0, "{ns}");
            assert_eq!(started.get(), limit, "none is tried after one that was refused");
        }
    }

    #[test]
    fn arithmetic_holds_for_a_year() {
        for hz in [24e6, 1e9, 4.2e9] {
            let clock = Clock { ns_per_tick: 1e9 / hz, hz, ..Clock::reference(None) };
            let year = Duration::from_secs(365 * 86_400);
            let ticks = clock.to_ticks(year);
            assert!((clock.ns(ticks) / year.as_nanos() as f64 - 1.0).abs() < 1e-12);
            assert_eq!(clock.to_ticks(Duration::from_secs(1)), hz as u64);
            assert!(clock.ns(u64::MAX).is_finite());
        }
        assert_eq!(Clock::reference(None).to_ticks(Duration::MAX), u64::MAX);
    }

    #[test]
    fn disturbed_samples_do_not_move_the_frequency() {
        let mut samples: Vec<Sample> =
            (0..64).map(|i| Sample { ticks: f64::from(i) * 2.5e6 + 7e12, ns: f64::from(i) * 1e6, width: 50.0 }).collect();
        samples[3].ns += 40_000.0;
        samples[40].ns += 900_000.0;
        let f = slope(&samples);
        assert!((f.hz - 2.5e9).abs() < 1.0, "{f:?}");
        assert!(f.error_ppm > 0.0 && f.error_ppm < 1.0, "{f:?}");
    }

    #[test]
    fn the_stated_error_covers_the_true_one() {
        // Samples with errors of up to 10 µs, from a generator that is the same in every run (xorshift).
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as f64 / f64::from(u32::MAX) * 1e4
        };
        let mut covered = 0;
        for _ in 0..200 {
            let samples: Vec<Sample> =
                (0..64).map(|i| Sample { ticks: f64::from(i) * 1e6 + noise(), ns: f64::from(i) * 1e6, width: 50.0 }).collect();
            let f = slope(&samples);
            assert!(f.error_ppm > 5.0 && f.error_ppm < 200.0, "{f:?}");
            covered += u32::from((f.hz / 1e9 - 1.0).abs() * 1e6 <= f.error_ppm);
        }
        assert!(covered >= 180, "{covered} of 200");
    }
}
