//! The kernel's clocks, and whether it trusts the CPU's counter.

use std::fs;
use std::path::Path;

/// The name of the clock that is used if the CPU's counter is not: `CLOCK_MONOTONIC_RAW`, which no time service adjusts.
pub const REFERENCE: &str = "monotonic-raw";

/// The time of `CLOCK_MONOTONIC_RAW` in nanoseconds.
pub fn reference_ns() -> u64 {
    gettime_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// Whether the kernel trusts the CPU's counter of this name. On x86 it does when it keeps time with it: the kernel watches the counter for
/// drift between CPUs, and a hypervisor tells the kernel when not to use it. On other instruction sets all CPUs share one counter by
/// definition. `root` is the root of the sysfs that shows the kernel's clock source.
///
/// # Errors
/// Why it does not.
pub fn trusted_counter(root: &Path, name: &str) -> Result<(), String> {
    let current = fs::read_to_string(root.join("sys/devices/system/clocksource/clocksource0/current_clocksource")).ok();
    match current.as_deref().map(str::trim) {
        _ if name != "tsc" => Ok(()),
        Some("tsc") => Ok(()),
        Some(other) => Err(format!("the kernel keeps time by '{other}' and not by the TSC, so the TSC is not trusted")),
        None => Err("the kernel does not say what it keeps time by, so the TSC is not trusted".to_owned()),
    }
}

/// The nanoseconds that this machine has spent suspended since it booted. If two calls return different values, it was suspended in between.
/// No other clock used here shows that.
pub fn suspended_ns() -> u64 {
    // In this order the time between the two readings cannot look like time spent suspended.
    let all = gettime_ns(libc::CLOCK_BOOTTIME);
    all.saturating_sub(gettime_ns(libc::CLOCK_MONOTONIC))
}

pub(crate) fn gettime_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, and `time` is one. The clocks used here exist on every kernel since 2.6.39, so it cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::Fixture;

    #[test]
    fn x86_needs_the_kernels_trust() {
        let source =
            |name: &str| Fixture::new().file("sys/devices/system/clocksource/clocksource0/current_clocksource", format!("{name}\n"));
        assert_eq!(trusted_counter(source("tsc").root(), "tsc"), Ok(()));
        let why = trusted_counter(source("hyperv_clocksource_tsc_page").root(), "tsc").unwrap_err();
        assert!(why.contains("'hyperv_clocksource_tsc_page'"), "{why}");
        assert!(trusted_counter(Fixture::new().root(), "tsc").unwrap_err().contains("does not say"));
        assert_eq!(trusted_counter(Fixture::new().root(), "cntvct"), Ok(()));
    }

    #[test]
    fn only_time_spent_suspended_is_suspended() {
        assert_eq!(suspended_ns() / 1_000_000, suspended_ns() / 1_000_000);
        assert!(reference_ns() <= reference_ns());
    }
}
