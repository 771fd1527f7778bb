//! Words of a command line as bash reads them.

use std::borrow::Cow;

use super::visible::is_hidden;

/// A word for bash, in one line: bare where no shell sees more in it than its characters, else in single quotes; `$'…'` where
/// there are characters that a terminal would obey or not show.
///
/// Not that of shell-words, which leaves `{a,b}` bare: bash makes two words of it.
///
/// ```
/// use atom_launch::domain::words::quote;
///
/// assert_eq!(quote("--kv_cache_dtype"), "--kv_cache_dtype");
/// assert_eq!(quote(r#"{"use_index_cache":true}"#), r#"'{"use_index_cache":true}'"#);
/// assert_eq!(quote("it's"), r"'it'\''s'");
/// ```
pub fn quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else if word.contains(is_hidden) {
        Cow::Owned(escaped(word))
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// A word as bash's `$'…'`; by bytes, which mean the same in every locale.
fn escaped(word: &str) -> String {
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => {
                for byte in c.to_string().bytes() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
            c => out.push(c),
        }
    }
    out + "'"
}

/// Words for bash on one line.
pub fn join<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> = words
        .into_iter()
        .map(|word| quote(word.as_ref()).into_owned())
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_without_meaning_to_a_shell_stand_bare() {
        for bare in ["--a=b", "/x/y-1.0_z", "http://h:1", "1,2"] {
            assert_eq!(quote(bare), bare);
        }
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(
            quote("it's\n\u{1b}[1m\u{202e}\\"),
            r"$'it\'s\n\x1b[1m\xe2\x80\xae\\'"
        );
        for quoted in ["{a,b}", "=x", "a b", "~", "*", "$x", "é"] {
            assert_eq!(quote(quoted), format!("'{quoted}'"));
        }
    }
}
