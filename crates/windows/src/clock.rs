//! The system's own clock, and the time that the machine has slept.

use std::path::Path;
use std::sync::OnceLock;

use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;
use windows_sys::{s, w};

/// The clock's name if the CPU's counter is not used.
pub const REFERENCE: &str = "QueryPerformanceCounter";

/// Nanoseconds in the units of `QueryInterruptTime` and of file times.
pub(crate) const UNIT_NS: u64 = 100;
/// Readings of two clocks are repeated until none of their steps lies between them. Steps are at least half a millisecond apart.
const TRIES: usize = 16;

/// The frequencies in Hz and the names of the mainboard timers by which Windows keeps time if it does not trust the TSC
/// ("Acquiring high-resolution time stamps" in Microsoft's documentation).
const BOARD_TIMERS: [(u64, &str); 2] = [(3_579_545, "the ACPI power management timer"), (14_318_180, "the HPET")];

/// Nanoseconds by `QueryPerformanceCounter`, which no time service adjusts, from some moment before the process began.
pub fn reference_ns() -> u64 {
    let mut ticks = 0;
    // SAFETY: the function writes one `i64`. Microsoft documents that it cannot fail since Windows XP.
    unsafe { QueryPerformanceCounter(&raw mut ticks) };
    in_ns(ticks.unsigned_abs(), frequency())
}

fn in_ns(ticks: u64, frequency: u64) -> u64 {
    // The product has up to 94 bits.
    (u128::from(ticks) * 1_000_000_000 / u128::from(frequency.max(1))) as u64
}

/// Ticks of `QueryPerformanceCounter` in a second. They are fixed when the system starts.
fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let mut hz = 0;
        // SAFETY: the function writes one `i64`. Microsoft documents that it cannot fail since Windows XP.
        unsafe { QueryPerformanceFrequency(&raw mut hz) };
        hz.unsigned_abs()
    })
}

/// Whether the system itself trusts the CPU's counter of this name. Windows documents no call that says so. When it starts, it checks
/// whether the TSC runs at one rate and alike on all CPUs. If not, it keeps time by a timer of the mainboard, which its frequency
/// identifies.
///
/// # Errors
/// The timer by which Windows keeps time instead.
pub fn trusted_counter(_root: &Path, name: &str) -> Result<(), String> {
    trusted_at(name, frequency())
}

fn trusted_at(name: &str, frequency: u64) -> Result<(), String> {
    match BOARD_TIMERS.iter().find(|(hz, _)| *hz == frequency) {
        Some((_, timer)) if name == "tsc" => Err(format!("Windows keeps time by {timer} and not by the TSC, so the TSC is not trusted")),
        _ => Ok(()),
    }
}

/// The nanoseconds that this machine has spent suspended since it booted: interrupt time with and without sleep (`QueryInterruptTime`,
/// `QueryUnbiasedInterruptTime`). If two calls return different values, it was suspended in between. The value never changes if the first of
/// the two functions is missing, but every Windows that memgauge supports has it.
pub fn suspended_ns() -> u64 {
    let Some(interrupt_time) = interrupt_time() else { return 0 };
    let awake = || {
        let mut time = 0;
        // SAFETY: the function writes one `u64`. It fails for a null pointer only.
        unsafe { QueryUnbiasedInterruptTime(&raw mut time) };
        time
    };
    let mut asleep = 0;
    for _ in 0..TRIES {
        let before = awake();
        let mut all = 0;
        // SAFETY: the function writes one `u64`.
        unsafe { interrupt_time(&raw mut all) };
        let after = awake();
        // Both clocks move in the same steps. Time between the readings cannot look like time spent suspended.
        asleep = all.saturating_sub(after);
        if before == after {
            break;
        }
    }
    asleep * UNIT_NS
}

type InterruptTime = unsafe extern "system" fn(*mut u64);

/// `QueryInterruptTime`. It is looked up because import libraries name a set of functions for it that not every system has.
fn interrupt_time() -> Option<InterruptTime> {
    static FOUND: OnceLock<Option<InterruptTime>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: both names end with a zero. kernelbase.dll stays loaded as long as the process lives.
        let address = unsafe { GetProcAddress(GetModuleHandleW(w!("kernelbase.dll")), s!("QueryInterruptTime")) }?;
        // SAFETY: the exported function of this name has this signature in Microsoft's documentation (realtimeapiset.h).
        Some(unsafe { std::mem::transmute::<unsafe extern "system" fn() -> isize, InterruptTime>(address) })
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn nanoseconds_do_not_overflow() {
        assert_eq!(in_ns(10_000_000, 10_000_000), 1_000_000_000);
        assert_eq!(in_ns(i64::MAX as u64, 10_000_000_000), 922_337_203_685_477_580);
        assert_eq!(in_ns(3, 3_579_545), 838);
    }

    #[test]
    fn the_clock_ascends_and_agrees_with_the_library() {
        let (std, from) = (Instant::now(), reference_ns());
        let mut last = from;
        while std.elapsed() < Duration::from_millis(50) {
            let now = reference_ns();
            assert!(now >= last);
            last = now;
        }
        let (took, expected) = (reference_ns() - from, std.elapsed().as_nanos() as u64);
        assert!(took >= 50_000_000 - 1_000 && took <= expected + 1_000_000, "{took} ns of {expected}");
    }

    #[test]
    fn a_timer_of_the_mainboard_in_place_of_the_tsc_is_distrust() {
        for trusted in [10_000_000, 2_734_375] {
            assert_eq!(trusted_at("tsc", trusted), Ok(()));
        }
        assert!(trusted_at("tsc", 3_579_545).unwrap_err().contains("ACPI"));
        assert!(trusted_at("tsc", 14_318_180).unwrap_err().contains("HPET"));
        assert_eq!(trusted_at("cntvct", 14_318_180), Ok(()));
    }

    #[test]
    fn awake_time_is_not_sleep() {
        let before = suspended_ns();
        std::thread::sleep(Duration::from_millis(60));
        let more = suspended_ns().saturating_sub(before);
        assert!(more < 1_000_000, "{more} ns of 60 ms");
    }
}
