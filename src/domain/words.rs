//! Words of a command line as bash reads them.

use std::borrow::Cow;

/// A word for bash: bare where no shell sees more in it than its characters, else in single quotes.
///
/// Not that of shell-words, which leaves `{a,b}` bare: bash makes two words of it.
pub fn quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
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
        for quoted in ["{a,b}", "=x", "a b", "~", "*", "$x", "é", "\n"] {
            assert_eq!(quote(quoted), format!("'{quoted}'"));
        }
    }
}
