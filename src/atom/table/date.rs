//! Days, as images and options have them.

use std::fmt;
use std::str::FromStr;

/// A day (UTC): year, month, day of the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub(crate) u16, pub(crate) u8, pub(crate) u8);

impl Date {
    /// A day of the calendar, or nothing when there is no such day.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        ((1..=days).contains(&day) && (1..=9999).contains(&year)).then_some(Self(year, month, day))
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0, self.1, self.2)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let part = |range: std::ops::Range<usize>| -> Option<u16> {
            let digits = text.get(range)?;
            digits
                .bytes()
                .all(|byte| byte.is_ascii_digit())
                .then(|| digits.parse().ok())?
        };
        let dashes = text.len() == 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
        dashes
            .then(|| {
                let (month, day) = (part(5..7)?, part(8..10)?);
                Self::new(
                    part(0..4)?,
                    u8::try_from(month).ok()?,
                    u8::try_from(day).ok()?,
                )
            })
            .flatten()
            .ok_or_else(|| format!("`{text}` is not a date of the form YYYY-MM-DD"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn dates_are_days_of_the_calendar() {
        assert_eq!(date("2026-07-23"), Date(2026, 7, 23));
        assert_eq!(date("2028-02-29").to_string(), "2028-02-29");
        for wrong in [
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-01",
            "+026-01-01",
            "20260101",
            "",
            "2026-01-0é",
            "0000-01-01",
            "2026-01-01 ",
        ] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
        assert_eq!(
            "x".parse::<Date>(),
            Err("`x` is not a date of the form YYYY-MM-DD".to_owned())
        );
    }
}
