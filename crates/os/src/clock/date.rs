//! The date, with the time that no time service adjusts.

use std::time::Duration;

use memgauge_model::result::Moment;

use crate::system::clock::reference_ns;

/// The present moment: the date in UTC, for people, and a time that no time service adjusts.
pub fn moment() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Moment { utc: utc(since), monotonic_ns: reference_ns() }
}

/// A time since 1970 in the form of RFC 3339, with milliseconds. The algorithm is Howard Hinnant's `civil_from_days`.
fn utc(since: Duration) -> String {
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years start in March here, so that the leap day is the last of the year. An era has 400 years.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second, ms) = (second / 3600, second / 60 % 60, second % 60, since.subsec_millis());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |s| utc(Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00.000Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(utc(Duration::from_millis(1_767_225_600_123)), "2026-01-01T00:00:00.123Z");
    }

    #[test]
    fn moments_ascend() {
        let (a, b) = (moment(), moment());
        assert!(b.monotonic_ns >= a.monotonic_ns && a.monotonic_ns > 0);
    }
}
