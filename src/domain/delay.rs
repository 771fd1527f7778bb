//! A short time as people write it: `2`, `1.5s`, `300ms`.

use std::fmt;
use std::str::FromStr;

/// A time in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Delay(pub u64);

impl Delay {
    /// As a duration.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{}s", self.0 / 1000)
        } else {
            write!(f, "{}ms", self.0)
        }
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no time: expected seconds such as `2`, `1.5s` or `300ms`");
        let (number, scale) = match text.strip_suffix("ms") {
            Some(number) => (number, 1),
            None => (text.strip_suffix('s').unwrap_or(text), 1000),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let fraction_fits = fraction.is_empty() && !number.contains('.')
            || scale == 1000 && digits(fraction) && fraction.len() <= 3;
        if !digits(whole) || !fraction_fits {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let fraction: u64 = format!("{fraction:0<3}").parse().map_err(|_| wrong())?;
        let milliseconds = whole
            .checked_mul(scale)
            .and_then(|ms| ms.checked_add(fraction));
        // A year is more than any rehearsal.
        match milliseconds {
            Some(ms) if ms <= 365 * 24 * 3_600_000 => Ok(Self(ms)),
            _ => Err(wrong()),
        }
    }
}
