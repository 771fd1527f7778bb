//! Python's reading of numbers, and its way to quote a text in a message.

use std::borrow::Cow;
use std::fmt::Write;

/// More digits are an error in `int()` (`sys.set_int_max_str_digits`).
const MOST_DIGITS: usize = 4300;

/// Python's `int(text)`; the nearest number that fits when it has more than 128 bits.
pub(super) fn int(text: &str) -> Option<i128> {
    let ascii = to_ascii(text)?;
    let text = trim(&ascii);
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = without_underscores(digits)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.len() > MOST_DIGITS {
        return None;
    }
    let limit = if negative { i128::MIN } else { i128::MAX };
    let number = digits.bytes().try_fold(0_i128, |number, digit| {
        let digit = i128::from(digit - b'0');
        let number = number.checked_mul(10)?;
        if negative {
            number.checked_sub(digit)
        } else {
            number.checked_add(digit)
        }
    });
    Some(number.unwrap_or(limit))
}

/// Python's `float(text)`.
pub(super) fn float(text: &str) -> Option<f64> {
    let ascii = to_ascii(text)?;
    // Both languages agree on the rest: digits, point, exponent, `inf`, `infinity` and `nan` in any case, a sign.
    without_underscores(trim(&ascii))?.parse().ok()
}

/// The value of a decimal digit of any script.
pub(super) fn decimal(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.to_digit(10).and_then(|digit| u8::try_from(digit).ok());
    }
    let code = u32::from(c);
    let before = ZEROS.partition_point(|zero| *zero <= code);
    let zero = ZEROS.get(before.checked_sub(1)?)?;
    u8::try_from(code - zero).ok().filter(|digit| *digit < 10)
}

/// Digits of other scripts become ASCII digits, spaces beyond ASCII become spaces; other letters are no number.
fn to_ascii(text: &str) -> Option<Cow<'_, str>> {
    if text.is_ascii() {
        return Some(Cow::Borrowed(text));
    }
    let converted: Option<String> = text
        .chars()
        .map(|c| match c {
            c if c.is_ascii() => Some(c),
            c if is_space(c) => Some(' '),
            c => decimal(c).map(|digit| char::from(b'0' + digit)),
        })
        .collect();
    converted.map(Cow::Owned)
}

fn trim(text: &str) -> &str {
    text.trim_matches(['\t', '\n', '\u{b}', '\u{c}', '\r', ' '])
}

/// `str.isspace` beyond ASCII.
fn is_space(c: char) -> bool {
    matches!(
        c,
        '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
    )
}

/// A number without its underscores, each of which must stand between two digits.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let digit_at = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let well_placed = bytes.iter().enumerate().all(|(at, byte)| {
        *byte != b'_' || (digit_at(at.checked_sub(1)) && digit_at(at.checked_add(1)))
    });
    well_placed.then(|| Cow::Owned(text.replace('_', "")))
}

/// Python's `repr(text)`.
pub(super) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match (c, u32::from(c)) {
            ('\\', _) => out.write_str("\\\\"),
            ('\n', _) => out.write_str("\\n"),
            ('\r', _) => out.write_str("\\r"),
            ('\t', _) => out.write_str("\\t"),
            (c, _) if c == quote => write!(out, "\\{c}"),
            (' '..='~', _) => out.write_char(c),
            (c, 0x80..) if is_printable(c) => out.write_char(c),
            (_, code @ ..0x100) => write!(out, "\\x{code:02x}"),
            (_, code @ ..0x1_0000) => write!(out, "\\u{code:04x}"),
            (_, code) => write!(out, "\\U{code:08x}"),
        };
    }
    out.push(quote);
    out
}

/// `str.isprintable` beyond ASCII. Rust's table follows the same rule; its escapes exempt combining marks after a letter.
fn is_printable(c: char) -> bool {
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..=length]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

/// The zeros of all scripts beyond ASCII; the nine other digits follow each (Unicode 14, that of Python 3.11).
#[rustfmt::skip]
const ZEROS: &[u32] = &[
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0,
    0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0,
    0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_python_reads_them() {
        for (text, number) in [
            ("8", 8),
            (" 8\n", 8),
            ("+5", 5),
            ("-5", -5),
            ("1_000", 1000),
            ("00", 0),
            ("0_0", 0),
            ("-0", 0),
            ("٥", 5),
            ("5\u{85}", 5),
            ("\u{3000}５", 5),
            ("-1\n", -1),
        ] {
            assert_eq!(int(text), Some(number), "{text:?}");
        }
        for text in [
            "",
            " ",
            "0x10",
            "1e3",
            "1.0",
            "1__0",
            "_1",
            "1_",
            "+ 5",
            "--5",
            "+-5",
            "5\0",
            "\u{1c}5",
            "\u{1c}5٠",
            "五",
            "²",
            "1 0",
        ] {
            assert_eq!(int(text), None, "{text:?}");
        }
        assert_eq!(int(&"9".repeat(50)), Some(i128::MAX));
        assert_eq!(int(&format!("-{}", "9".repeat(50))), Some(i128::MIN));
        assert!(int(&"0".repeat(4300)).is_some());
        assert_eq!(int(&"0".repeat(4301)), None);
    }

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, number) in [
            ("0.9", 0.9),
            (" .5 ", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("+1E-1", 0.1),
            ("1_0.2_5", 10.25),
            ("1e1_0", 1e10),
            ("٥.٥", 5.5),
            ("INFINITY", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
            ("1e999", f64::INFINITY),
        ] {
            assert_eq!(
                float(text).map(f64::to_bits),
                Some(f64::to_bits(number)),
                "{text:?}"
            );
        }
        assert!(float("nan").is_some_and(f64::is_nan));
        assert!(float("-NaN").is_some_and(f64::is_nan));
        for text in [
            "", ".", "1e", "e1", "0x1p3", "1d3", "1._5", "1_.5", "1e_1", "n_an", "infinit", "1,5",
            "0.9f",
        ] {
            assert_eq!(float(text), None, "{text:?}");
        }
    }

    #[test]
    fn texts_are_quoted_as_python_quotes_them() {
        for (text, quoted) in [
            ("abc", "'abc'"),
            ("it's", "\"it's\""),
            ("\"it's\"", "'\"it\\'s\"'"),
            ("a\\b", "'a\\\\b'"),
            ("\t\n\r\u{1}\u{7f}", "'\\t\\n\\r\\x01\\x7f'"),
            ("é漢", "'é漢'"),
            ("\u{a0}\u{ad}", "'\\xa0\\xad'"),
            ("\u{200b}", "'\\u200b'"),
            ("e\u{301}", "'e\u{301}'"),
            ("\u{301}", "'\u{301}'"),
            ("😀", "'😀'"),
            ("\u{e0001}", "'\\U000e0001'"),
            ("\u{feff}", "'\\ufeff'"),
        ] {
            assert_eq!(repr(text), quoted);
        }
    }
}
