//! Times in UTC as numbers.

/// Microseconds from 1970 to a time in the form of RFC 3339 in UTC, such as `2026-03-14T09:26:53.250Z`. `None` if it is not one.
pub(crate) fn microseconds(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let number = |digits: &str, length: usize| -> Option<i64> {
        (digits.len() == length && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
    };
    let mut date = date.split('-');
    let (year, month, day) = (number(date.next()?, 4)?, number(date.next()?, 2)?, number(date.next()?, 2)?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut time = time.split(':');
    let (hour, minute, second) = (number(time.next()?, 2)?, number(time.next()?, 2)?, number(time.next()?, 2)?);
    let rest = date.next().is_some() || time.next().is_some();
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let digits = fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit());
    if rest || !fits || !digits {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + micros)
}

/// Days from 1970 to a date, by Howard Hinnant's `days_from_civil`: years start in March, so that the leap day is the last of the year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_other_texts_are_not() {
        assert_eq!(microseconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(microseconds("2000-02-29T12:00:00.5Z"), Some(951_825_600_500_000));
        assert_eq!(microseconds("2026-03-14T09:26:53.250Z"), Some(1_773_480_413_250_000));
        for wrong in
            ["", "yesterday", "2026-03-14", "2026-03-14T09:26:53", "2026-13-14T09:26:53Z", "2026-03-14T9:26:53Z", "2026-03-14T09:26:53.x1Z"]
        {
            assert_eq!(microseconds(wrong), None, "{wrong}");
        }
    }
}
