//! The date of a moment.

use std::time::Duration;

/// `2026-12-01T10:44:00Z` for a time since 1970.
pub fn date(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days counted in eras of 400 years that begin in March, so that the leap day comes last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        let of = |seconds| date(Duration::from_secs(seconds));
        assert_eq!(of(0), "1970-01-01T00:00:00Z");
        assert_eq!(of(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(of(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(of(1_709_251_200), "2024-03-01T00:00:00Z");
        assert_eq!(of(1_796_121_840), "2026-12-01T10:44:00Z");
    }
}
