//! Text of others that goes to a terminal or into a log: it must not speak to the terminal, nor look like other text.

use std::borrow::Cow;

/// Whether a character does something to a terminal, or is not seen: control characters, and those that reorder or join text.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The text with its hidden characters written out: `\n`, `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_seen_is_written_out() {
        assert_eq!(visible("漢 é 'x'"), "漢 é 'x'");
        assert_eq!(
            visible("a\n\u{1b}[2J\u{202e}\u{feff}"),
            "a\\n\\u{1b}[2J\\u{202e}\\u{feff}"
        );
    }
}
